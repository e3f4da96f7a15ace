//! Files of HIP sources, and the bundles in them.

use std::fs;
use std::process::Output;

use bundle_format::Bundle as Plain;

use super::check::{Container, difference};
use super::zoo::{self, Builder, Link, Linked, Linker, Model, Shape, Step, World, link, words};
use super::{Complaints, run, said};
use crate::common::llvm;

/// The GPUs of most files, as clang orders them.
pub const FULL: [&str; 7] = [
    "amdgcnspirv",
    "gfx1100",
    "gfx9-generic",
    "gfx906",
    "gfx90a:xnack+",
    "gfx90a:xnack-",
    "gfx942",
];

/// The GPUs of the other ones.
pub const FEW: [&str; 3] = ["gfx1100", "gfx906", "gfx90a:xnack+"];

/// Number of translation units in the largest files.
const MANY: usize = 50;

/// Translation units of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    One,
    Three,
    /// With debug information.
    Debug,
    /// Compressed by the compiler.
    Compressed,
    /// Code refers to the second of three bundles.
    Referred,
    /// `-fgpu-rdc`, one bundle for two units.
    Rdc,
    /// The same with the new driver: registration code by `clang-linker-wrapper`.
    RdcNew,
    /// The new driver, a bundle for each of two units.
    New,
    /// 50.
    Many,
}

impl zoo::Units for Units {
    const PLACE: &'static str = "edit-zoo";
    const RUNTIME: &'static str = "libamdhip64.so";
    const RUNTIME_OPTIONS: &'static str = "";

    fn links() -> &'static [Link<Self>] {
        LINKS
    }

    fn steps(builder: &Builder) -> Vec<Vec<Step>> {
        let unit = |set: &str,
                    number: usize,
                    words: usize,
                    triple: &str,
                    options: &str,
                    targets: &[&str]|
         -> Step {
            let text = format!(
                "@CLANG --target={triple} -x hip -nogpuinc -nogpulib -Os -DUNIT={number} -DWORDS={words} {options} \
                 -cuid={set}{number} -use-spirv-backend -c @UNIT -o {set}{number}.o"
            );
            let mut step = builder.parse(&text);
            step.extend(targets.iter().map(|target| format!("--offload-arch={target}")));
            step
        };
        let x86_64 = "x86_64-unknown-linux-gnu";
        let mut steps = Vec::new();
        // The longest first.
        for number in 0..3 {
            let many = 2500;
            steps.push(unit("pic", number, many, x86_64, "--no-offload-new-driver -fPIC", &FULL));
            steps.push(unit(
                "nopic",
                number,
                many,
                x86_64,
                "--no-offload-new-driver -fno-pic",
                &FULL,
            ));
            let options = "--no-offload-new-driver -fPIC";
            steps.push(unit("aarch64-", number, many, "aarch64-unknown-linux-gnu", options, &FULL));
            steps.push(unit("debug", number, many, x86_64, &format!("{options} -g"), &FEW));
            let options = format!("{options} --offload-compress");
            steps.push(unit("compressed", number, many, x86_64, &options, &FEW));
        }
        let options = "--no-offload-new-driver -fPIC -DREFERENCE";
        steps.push(unit("referred", 1, 2500, x86_64, options, &FEW));
        for number in 0..2 {
            let options = "--no-offload-new-driver -fPIC -fgpu-rdc";
            steps.push(unit("rdc", number, 2500, x86_64, options, &FEW));
            steps.push(unit(
                "rdcnew",
                number,
                2500,
                x86_64,
                "--offload-new-driver -fPIC -fgpu-rdc",
                &FEW,
            ));
            steps.push(unit("new", number, 2500, x86_64, "--offload-new-driver -fPIC", &FEW));
        }
        for number in 0..MANY {
            steps.push(unit("many", number, 50, x86_64, "--no-offload-new-driver -fPIC", &FEW));
        }
        vec![steps]
    }

    fn objects(link: &Link<Self>) -> Vec<String> {
        let position = Self::model(link).name();
        let own = if link.world == World::AArch64 { "aarch64-" } else { position };
        match link.units {
            Units::One => vec![format!("{own}0.o")],
            Units::Three => (0..3).map(|number| format!("{own}{number}.o")).collect(),
            Units::Debug => (0..3).map(|number| format!("debug{number}.o")).collect(),
            Units::Compressed => (0..3).map(|number| format!("compressed{number}.o")).collect(),
            Units::Referred => words("debug0.o referred1.o debug2.o").collect(),
            Units::Rdc => words("rdc0.o rdc1.o").collect(),
            Units::RdcNew => words("rdcnew0.o rdcnew1.o").collect(),
            Units::New => words("new0.o new1.o").collect(),
            Units::Many => (0..MANY).map(|number| format!("many{number}.o")).collect(),
        }
    }

    fn link_words(self) -> Vec<String> {
        let driver = match self {
            Units::Rdc => "no-offload-new-driver",
            Units::RdcNew => "offload-new-driver",
            _ => return Vec::new(),
        };
        let mut step: Vec<_> =
            words(&format!("--hip-link --{driver} -fgpu-rdc -no-hip-rt")).collect();
        step.extend(FEW.iter().map(|target| format!("--offload-arch={target}")));
        step
    }

    fn targets(self) -> &'static [&'static str] {
        match self {
            Units::One | Units::Three => &FULL,
            _ => &FEW,
        }
    }

    fn containers(self) -> usize {
        match self {
            Units::One | Units::Rdc | Units::RdcNew => 1,
            Units::New => 2,
            Units::Many => MANY,
            _ => 3,
        }
    }

    fn is_compressed(self) -> bool {
        self == Units::Compressed
    }

    fn is_new(self) -> bool {
        matches!(self, Units::New | Units::RdcNew)
    }

    fn model(link: &Link<Self>) -> Model {
        match (link.units, link.shape) {
            (Units::Debug, _) => Model::Debug,
            (Units::Compressed, _) => Model::Pic,
            (_, Shape::NoPie | Shape::Static) if link.world == World::Glibc => Model::NoPic,
            _ => Model::Pic,
        }
    }
}

/// Each linker with each shape, each way to lay out with one or two linkers, each kind of units with two.
const LINKS: &[Link<Units>] = {
    use Linker::*;
    use Shape::*;
    use Units::*;
    &[
        link("so-bfd", Bfd, Shared, Three),
        link("so-lld", Lld, Shared, Three),
        link("so-gold", Gold, Shared, Three),
        link("so-mold", Mold, Shared, Three),
        link("so-bfd-one", Bfd, Shared, One),
        link("so-lld-one", Lld, Shared, One).then(&["llvm-strip"]),
        link("so-mold-one", Mold, Shared, One),
        link("pie-bfd", Bfd, Pie, Three),
        link("pie-lld", Lld, Pie, One),
        link("pie-gold", Gold, Pie, One),
        link("pie-mold", Mold, Pie, Three),
        link("exe-bfd", Bfd, NoPie, Three),
        link("exe-lld", Lld, NoPie, Three),
        link("exe-gold", Gold, NoPie, Three),
        link("exe-mold", Mold, NoPie, One),
        link("static-bfd", Bfd, Static, One),
        link("static-lld", Lld, Static, Three),
        link("static-gold", Gold, Static, Three),
        link("static-mold", Mold, Static, Three),
        link("static-pie-bfd", Bfd, StaticPie, Three),
        link("static-pie-lld", Lld, StaticPie, One),
        link("static-pie-mold", Mold, StaticPie, One),
        link("so-bfd-noseparate", Bfd, Shared, Three).with(&["-Wl,-z,noseparate-code"]),
        link("exe-bfd-noseparate", Bfd, NoPie, One).with(&["-Wl,-z,noseparate-code"]),
        link("so-lld-separate", Lld, Shared, Three).with(&["-Wl,-z,separate-loadable-segments"]),
        link("so-bfd-64k", Bfd, Shared, Three).with(&["-Wl,-z,max-page-size=65536"]),
        link("so-lld-64k", Lld, Shared, Three).with(&["-Wl,-z,max-page-size=65536"]),
        link("so-bfd-2m", Bfd, Shared, One).with(&["-Wl,-z,max-page-size=0x200000"]),
        link("so-bfd-2m-together", Bfd, Shared, Three)
            .with(&["-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=0x200000"]),
        link("so-bfd-relr", Bfd, Shared, Three).with(&["-Wl,-z,pack-relative-relocs"]),
        // Programs with RELR of mold 1.10 are refused by glibc.
        link("pie-lld-relr", Lld, Pie, Three).with(&["-Wl,-z,pack-relative-relocs"]),
        link("so-lld-relr", Lld, Shared, Compressed).with(&["-Wl,-z,pack-relative-relocs"]),
        link("static-pie-relr", Bfd, StaticPie, One).with(&["-Wl,-z,pack-relative-relocs"]),
        link("so-bfd-norelro", Bfd, Shared, Three).with(&["-Wl,-z,norelro"]),
        link("so-lld-norelro", Lld, Shared, One).with(&["-Wl,-z,norelro"]),
        link("so-bfd-stripped", Bfd, Shared, Three).then(&["strip"]),
        link("pie-bfd-stripped", Bfd, Pie, One).then(&["strip"]),
        link("so-bfd-rpath", Bfd, Shared, Three).then(&[
            "patchelf",
            "--set-rpath",
            "$ORIGIN/a/library/path",
        ]),
        link("so-bfd-debug", Bfd, Shared, Debug),
        link("pie-lld-debug", Lld, Pie, Debug),
        link("so-mold-debug", Mold, Shared, Debug),
        link("so-bfd-compressed", Bfd, Shared, Compressed),
        link("so-lld-compressed", Lld, Shared, Compressed),
        link("exe-gold-compressed", Gold, NoPie, Compressed),
        link("pie-mold-compressed", Mold, Pie, Compressed),
        link("so-bfd-referred", Bfd, Shared, Referred),
        link("so-lld-referred", Lld, Shared, Referred),
        link("so-bfd-rdc", Bfd, Shared, Rdc),
        link("pie-lld-rdc", Lld, Pie, Rdc),
        link("so-bfd-rdc-new", Bfd, Shared, RdcNew),
        link("pie-lld-rdc-new", Lld, Pie, RdcNew),
        link("so-lld-new", Lld, Shared, New),
        link("so-bfd-many", Bfd, Shared, Many),
        link("so-lld-many", Lld, Shared, Many),
        link("exe-mold-many", Mold, NoPie, Many),
        link("musl-so", Bfd, Shared, Three).on(World::Musl),
        link("musl-pie", Bfd, Pie, One).on(World::Musl),
        link("musl-so-compressed", Bfd, Shared, Compressed).on(World::Musl),
        link("aarch64-so-bfd", Bfd, Shared, Three).on(World::AArch64),
        link("aarch64-so-lld", Lld, Shared, Three).on(World::AArch64),
        link("aarch64-pie-lld", Lld, Pie, One).on(World::AArch64),
        link("aarch64-static-bfd", Bfd, Static, Three).on(World::AArch64),
    ]
};

/// Returns the targets of a file that a list keeps, in the file's order, as bundle entry IDs.
pub fn ids(file: &Linked, keep: &[&str]) -> Vec<String> {
    let id = |target: &&str| match *target {
        "amdgcnspirv" => "hipv4-spirv64-amd-amdhsa--amdgcnspirv".to_owned(),
        target if file.is_new => format!("hip-amdgcn-amd-amdhsa--{target}"),
        target => format!("hipv4-amdgcn-amd-amdhsa--{target}"),
    };
    file.targets.iter().filter(|target| keep.contains(target)).map(id).collect()
}

/// A bundle that was taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The version of the compressed form, if it is compressed.
    pub compressed: Option<u16>,
    /// Its bundle entry IDs and their meanings, in order.
    pub entries: Vec<(String, Vec<u8>)>,
}

impl Bundle {
    /// Without the entries for which there is no reason.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Bundle {
        let entries = self.entries.iter().filter(|(id, _)| id.starts_with("host-") || keep(id));
        Bundle { compressed: self.compressed, entries: entries.cloned().collect() }
    }

    /// Returns the image for a target.
    pub fn image(&self, target: &str) -> Option<&[u8]> {
        let is_for = |id: &str| id.split_once("--").is_some_and(|(_, of)| of == target);
        self.entries.iter().find(|(id, _)| is_for(id)).map(|(_, image)| &image[..])
    }

    /// The same in another form.
    pub fn compressed_as(&self, version: Option<u16>) -> Bundle {
        Bundle { compressed: version, entries: self.entries.clone() }
    }

    /// Describes the contents in words.
    pub fn summary(&self) -> String {
        let entries: Vec<_> = self
            .entries
            .iter()
            .map(|(id, bytes)| format!("{id} ({} bytes)", bytes.len()))
            .collect();
        let form = self
            .compressed
            .map_or("plain".into(), |version| format!("compressed, version {version}"));
        format!("{form}: {}", entries.join(", "))
    }
}

/// A bundle as our libraries read it. It has to end where the runtime thought.
pub fn decode(dump: &[u8]) -> Result<Bundle, String> {
    let mut compressed = None;
    let mut plain = dump.to_vec();
    if dump.starts_with(&ccob::MAGIC) {
        compressed = Some(u16::from_le_bytes([dump[4], dump[5]]));
        let found = ccob::decompress(dump, &ccob::ReadOptions::default())
            .map_err(|error| error.to_string())?;
        if found.consumed != dump.len() as u64 {
            return Err(format!(
                "a compressed bundle of {} bytes, of {}",
                found.consumed,
                dump.len()
            ));
        }
        plain = found.data;
    }
    let bundle = Plain::parse(&plain).map_err(|error| error.to_string())?;
    let entry = |entry: bundle_format::Entry<'_>| {
        let payload = entry.payload().ok_or("an entry beyond the end")?;
        Ok((entry.id_str().map_err(|error| error.to_string())?.to_owned(), payload.to_vec()))
    };
    Ok(Bundle { compressed, entries: bundle.entries().map(entry).collect::<Result<_, String>>()? })
}

/// The entries of a bundle as LLVM's tool reads them.
pub fn decode_with_llvm(dump: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let bundler = llvm("clang-offload-bundler");
    let place = tempfile::tempdir().unwrap();
    let input = place.path().join("bundle");
    fs::write(&input, dump).unwrap();
    let input = format!("-input={}", input.display());
    let checked = |output: Output| {
        if output.status.success() && output.stderr.is_empty() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(format!("clang-offload-bundler: {}: {}", output.status, said(&output)))
        }
    };
    let list = checked(run(&bundler, ["-type=o", "-list", &input]))?;
    // It lists them in no order.
    let ids: Vec<_> = list.lines().map(str::to_owned).collect();
    let mut words = vec![
        "-type=o".to_owned(),
        "-unbundle".into(),
        input,
        format!("-targets={}", ids.join(",")),
    ];
    let path = |index: usize| place.path().join(format!("{index}"));
    words.extend((0..ids.len()).map(|index| format!("-output={}", path(index).display())));
    checked(run(&bundler, &words))?;
    Ok(ids
        .into_iter()
        .enumerate()
        .map(|(index, id)| (id, fs::read(path(index)).unwrap()))
        .collect())
}

impl Container for Bundle {
    type Units = Units;

    fn decode(dump: &[u8], with_peer: bool) -> Result<Self, String> {
        let ours = decode(dump)?;
        if with_peer {
            let mut theirs = decode_with_llvm(dump)?;
            let mut sorted = ours.entries.clone();
            sorted.sort();
            theirs.sort();
            if sorted != theirs {
                let theirs = Bundle { compressed: ours.compressed, entries: theirs };
                return Err(format!("is {}; for LLVM it is {}", ours.summary(), theirs.summary()));
            }
        }
        Ok(ours)
    }

    fn compare(&self, expected: &Self) -> Complaints {
        let ids = |bundle: &Self| -> Vec<String> {
            bundle.entries.iter().map(|(id, _)| id.clone()).collect()
        };
        if self.compressed != expected.compressed || ids(self) != ids(expected) {
            return vec![format!("is {}; not {}", self.summary(), expected.summary())];
        }
        let pairs = self.entries.iter().zip(&expected.entries);
        pairs.filter_map(|((id, found), (_, expected))| difference(id, found, expected)).collect()
    }
}
