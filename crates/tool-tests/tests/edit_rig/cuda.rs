//! Files of CUDA sources, and the fatbinaries in them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nv_fatbin::{Codec, Fatbin, Kind};

use super::check::{Container, difference};
use super::zoo::{self, Builder, Link, Linker, Model, Shape, Step, World, link, words};
use super::{Complaints, command, must, said, tool};
use crate::common::nvidia;

/// The images of most fatbinaries: code for four GPUs, and PTX of each.
pub const FULL: [&str; 8] = [
    "sm_120",
    "compute_120",
    "sm_75",
    "compute_75",
    "sm_80",
    "compute_80",
    "sm_90a",
    "compute_90a",
];

/// The images of the other ones: PTX for later GPUs only.
pub const FEW: [&str; 4] = ["sm_75", "sm_80", "sm_90", "compute_90"];

/// The images of fatbinaries without PTX: linked code, and code of the new driver.
pub const CUBINS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

/// Number of translation units in the largest files.
const MANY: usize = 20;

/// Translation units of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    One,
    Three,
    /// The second one has code for other GPUs.
    Uneven,
    /// No image is compressed.
    Plain,
    /// All images are compressed.
    Compressed,
    /// One is plain, one is compressed well, one fast.
    Mixed,
    /// Images that are compressed as one.
    Concatenated,
    /// Fatbinaries with space between them.
    Aligned,
    /// Code refers to the second of three fatbinaries.
    Referred,
    /// With debug information.
    Debug,
    /// `-fgpu-rdc`: linked and relocatable code of two units, and one other unit.
    Rdc,
    /// The same for two units with the new driver: registration code by `clang-linker-wrapper`.
    RdcNew,
    /// The new driver, a fatbinary for each of two units.
    New,
    Many,
}

impl Units {
    /// Returns the images of each fatbinary, in the order in which these are registered.
    pub fn images(self) -> Vec<&'static [&'static str]> {
        match self {
            Units::One => vec![&FULL],
            Units::Three | Units::Concatenated => vec![&FULL; 3],
            Units::Uneven => vec![&FULL, &FEW, &FULL],
            // The linked code, of two units, and the other unit.
            Units::Rdc => vec![&CUBINS, &FEW, &FEW, &FEW],
            Units::RdcNew => vec![&CUBINS],
            Units::New => vec![&CUBINS; 2],
            Units::Many => vec![&FEW; MANY],
            _ => vec![&FEW; 3],
        }
    }

    /// Returns the codecs of the images.
    pub fn codecs(self) -> BTreeSet<&'static str> {
        let codecs: &[_] = match self {
            Units::Plain | Units::New | Units::RdcNew => &["none"],
            Units::Compressed => &["zstd"],
            Units::Mixed => &["none", "zstd", "lz4"],
            _ => &["none", "zstd"],
        };
        codecs.iter().copied().collect()
    }
}

/// Each linker with each shape, each way to lay out and each kind of units with one or two linkers.
const LINKS: &[Link<Units>] = {
    use Linker::*;
    use Shape::*;
    use Units::*;
    &[
        link("so-bfd", Bfd, Shared, Three),
        link("so-lld", Lld, Shared, Three),
        link("so-gold", Gold, Shared, One),
        link("so-mold", Mold, Shared, Three),
        link("pie-bfd", Bfd, Pie, One),
        link("pie-lld", Lld, Pie, Three),
        link("pie-gold", Gold, Pie, Three),
        link("pie-mold", Mold, Pie, One),
        link("exe-bfd", Bfd, NoPie, Three),
        link("exe-lld", Lld, NoPie, One),
        link("exe-gold", Gold, NoPie, One),
        link("exe-mold", Mold, NoPie, Three),
        link("static-bfd", Bfd, Static, One),
        link("static-lld", Lld, Static, Three),
        link("static-pie-bfd", Bfd, StaticPie, Three),
        link("static-pie-lld", Lld, StaticPie, One),
        link("so-bfd-noseparate", Bfd, Shared, Plain).with(&["-Wl,-z,noseparate-code"]),
        link("so-bfd-2m", Bfd, Shared, One).with(&["-Wl,-z,max-page-size=0x200000"]),
        link("so-bfd-relr", Bfd, Shared, Plain).with(&["-Wl,-z,pack-relative-relocs"]),
        link("pie-lld-relr", Lld, Pie, Mixed).with(&["-Wl,-z,pack-relative-relocs"]),
        link("so-bfd-stripped", Bfd, Shared, Plain).then(&["strip"]),
        link("so-lld-plain", Lld, Shared, Plain),
        link("exe-gold-plain", Gold, NoPie, Plain),
        link("so-bfd-uneven", Bfd, Shared, Uneven),
        link("so-lld-compressed", Lld, Shared, Compressed),
        link("pie-mold-compressed", Mold, Pie, Compressed),
        link("so-bfd-mixed", Bfd, Shared, Mixed),
        link("so-bfd-concatenated", Bfd, Shared, Concatenated),
        link("so-bfd-aligned", Bfd, Shared, Aligned),
        link("so-lld-referred", Lld, Shared, Referred),
        link("so-bfd-debug", Bfd, Shared, Debug),
        link("so-bfd-rdc", Bfd, Shared, Rdc),
        link("so-mold-rdc", Mold, Shared, Rdc),
        link("pie-lld-rdc", Lld, Pie, Rdc),
        link("exe-gold-rdc", Gold, NoPie, Rdc),
        link("static-bfd-rdc", Bfd, Static, Rdc),
        link("so-bfd-rdc-new", Bfd, Shared, RdcNew),
        link("pie-lld-rdc-new", Lld, Pie, RdcNew),
        link("so-lld-new", Lld, Shared, New),
        link("so-bfd-many", Bfd, Shared, Many),
        link("exe-mold-many", Mold, NoPie, Many),
        link("musl-so", Bfd, Shared, Plain).on(World::Musl),
        link("aarch64-so-bfd", Bfd, Shared, Three).on(World::AArch64),
        link("aarch64-so-lld", Lld, Shared, Three).on(World::AArch64),
        link("aarch64-pie-lld", Lld, Pie, One).on(World::AArch64),
    ]
};

/// Makes the directory that clang takes for CUDA: links to NVIDIA's tools, and a header that has the version. This is the
/// latest one that clang 22 knows.
fn make_cuda(place: &Path) {
    let (bin, include) = (place.join("cuda/bin"), place.join("cuda/include"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir(&include).unwrap();
    for tool in ["ptxas", "fatbinary", "nvlink"] {
        symlink(nvidia(tool), bin.join(tool)).unwrap();
    }
    fs::write(include.join("cuda.h"), "#define CUDA_VERSION 12080\n").unwrap();
}

impl zoo::Units for Units {
    const PLACE: &'static str = "edit-zoo-cuda";
    const RUNTIME: &'static str = "libcudart.so.12";
    const RUNTIME_OPTIONS: &'static str = "-DCUDA";

    fn links() -> &'static [Link<Self>] {
        LINKS
    }

    fn steps(builder: &Builder) -> Vec<Vec<Step>> {
        make_cuda(&builder.place);
        let unit = |set: &str, number: usize, words: usize, images: &[&str], options: &str| {
            let machine = if set == "aarch64-" { "aarch64" } else { "x86_64" };
            // PTX of no other architecture than these.
            let has_ptx = images.iter().any(|image| image.starts_with("compute_"));
            let no_ptx = if has_ptx { "--no-cuda-include-ptx=all" } else { "" };
            let text = format!(
                "@CLANG --target={machine}-unknown-linux-gnu -x cuda -nocudainc -nocudalib --cuda-path=cuda -Os \
                 -DUNIT={number} -DWORDS={words} -fPIC --no-offload-new-driver {options} \
                 -cuid={set}{number} {no_ptx} -c {set}{number}.cc -o {set}{number}.o"
            );
            // Relocatable units are told apart by the names of their sources.
            let source = builder.place.join(format!("{set}{number}.cc"));
            symlink(builder.source("unit.cc"), source).unwrap();
            let mut step = builder.parse(&text);
            step.extend(images.iter().map(|image| match image.strip_prefix("compute_") {
                Some(arch) => format!("--cuda-include-ptx=sm_{arch}"),
                None => format!("--cuda-gpu-arch={image}"),
            }));
            step
        };
        let fatbinary = |option: &str| format!("-Xcuda-fatbinary --{option}");
        let mut steps = Vec::new();
        for number in 0..3 {
            steps.push(unit("pic", number, 1000, &FULL, ""));
            steps.push(unit("nopic", number, 1000, &FULL, "-fno-pic"));
            steps.push(unit("aarch64-", number, 1000, &FULL, "-DALIGN=8"));
            steps.push(unit("concatenated", number, 1000, &FULL, &fatbinary("concat")));
            steps.push(unit("plain", number, 1000, &FEW, &fatbinary("compress-mode=none")));
            steps.push(unit("compressed", number, 1000, &FEW, &fatbinary("compress-all")));
            steps.push(unit("aligned", number, 1000, &FEW, "-DALIGN=8"));
            steps.push(unit("debug", number, 1000, &FEW, "-g"));
        }
        steps.push(unit("size", 1, 1000, &FEW, &fatbinary("compress-mode=size")));
        let fast = [fatbinary("compress-mode=speed"), fatbinary("compress-all")].join(" ");
        steps.push(unit("speed", 2, 1000, &FEW, &fast));
        steps.push(unit("referred", 1, 1000, &FEW, "-DREFERENCE"));
        for number in 0..2 {
            steps.push(unit("rdc", number, 1000, &FEW, "-fgpu-rdc"));
            let options = "--offload-new-driver";
            steps.push(unit("new", number, 1000, &CUBINS, options));
            let options = "--offload-new-driver -fgpu-rdc";
            steps.push(unit("rdcnew", number, 1000, &CUBINS, options));
        }
        for number in 0..MANY {
            steps.push(unit("many", number, 50, &FEW, ""));
        }
        let [link, pack, register] = device_link(builder);
        vec![steps, link, pack, register]
    }

    fn objects(link: &Link<Self>) -> Vec<String> {
        let three = |set: &str| (0..3).map(|number| format!("{set}{number}.o")).collect();
        let set = match (link.world, Self::model(link)) {
            (World::AArch64, _) => "aarch64-",
            (_, Model::NoPic) => "nopic",
            _ => "pic",
        };
        match link.units {
            Units::One => vec![format!("{set}0.o")],
            Units::Three => three(set),
            Units::Uneven => words("pic0.o plain1.o pic2.o").collect(),
            Units::Plain => three("plain"),
            Units::Compressed => three("compressed"),
            Units::Mixed => words("plain0.o size1.o speed2.o").collect(),
            Units::Concatenated => three("concatenated"),
            Units::Aligned => three("aligned"),
            Units::Referred => words("plain0.o referred1.o plain2.o").collect(),
            Units::Debug => three("debug"),
            Units::Rdc => words("rdc0.o rdc1.o plain2.o linked.o").collect(),
            Units::RdcNew => words("rdcnew0.o rdcnew1.o").collect(),
            Units::New => words("new0.o new1.o").collect(),
            Units::Many => (0..MANY).map(|number| format!("many{number}.o")).collect(),
        }
    }

    fn link_words(self) -> Vec<String> {
        match self {
            Units::RdcNew => words(
                "--offload-new-driver --cuda-path=cuda -Xlinker --device-compiler=--cuda-path=cuda",
            )
            .collect(),
            _ => Vec::new(),
        }
    }

    fn targets(self) -> &'static [&'static str] {
        match self {
            Units::One | Units::Three | Units::Uneven | Units::Concatenated => &FULL,
            Units::RdcNew | Units::New => &CUBINS,
            _ => &FEW,
        }
    }

    fn containers(self) -> usize {
        self.images().len()
    }

    fn is_compressed(self) -> bool {
        !self.codecs().contains("none")
    }

    fn is_new(self) -> bool {
        matches!(self, Units::New | Units::RdcNew)
    }

    fn model(link: &Link<Self>) -> Model {
        match (link.units, link.shape) {
            (Units::Debug, _) => Model::Debug,
            (Units::One | Units::Three, Shape::NoPie | Shape::Static)
                if link.world == World::Glibc =>
            {
                Model::NoPic
            }
            _ => Model::Pic,
        }
    }
}

/// Returns the runs that link relocatable device code, put it into a fatbinary, and make the object that registers this.
fn device_link(builder: &Builder) -> [Vec<Step>; 3] {
    let tool = |name: &str| format!("cuda/bin/{name}");
    let link = |(number, target): (usize, &&str)| {
        // One of the runs says which units there are.
        let list = if number == 0 { "--register-link-binaries=units.h" } else { "" };
        let link = tool("nvlink");
        builder.parse(&format!("{link} --arch={target} {list} rdc0.o rdc1.o -o {target}.cubin"))
    };
    let images = CUBINS.iter().map(|target| {
        let number = target.trim_start_matches("sm_");
        format!("--image3=kind=elf,sm={number},file={target}.cubin")
    });
    let mut pack =
        builder.parse(&format!("{} -64 -link --create=linked.fatbin", tool("fatbinary")));
    pack.extend(images);
    let source = builder.source("device_link.c");
    let register = builder.parse(&format!("@CLANG -x c -O1 -fPIC -I. -c {source} -o linked.o"));
    [CUBINS.iter().enumerate().map(link).collect(), vec![pack], vec![register]]
}

/// An image of a fatbinary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its target: `compute_90` of PTX, `sm_90` of a cubin.
    pub target: String,
    pub codec: Option<Codec>,
    /// The code, and the zeros that fill its entry up.
    pub code: Vec<u8>,
    /// The entry as stored, if it has one of its own, and if it is known.
    stored: Option<Vec<u8>>,
}

impl Image {
    /// Returns whether this is its code.
    pub fn is(&self, code: &[u8]) -> bool {
        unpadded(&self.code) == unpadded(code)
    }
}

/// A fatbinary that was taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatbinary {
    pub images: Vec<Image>,
}

impl Fatbinary {
    /// Returns the fatbinary with the images that have a reason to be in it.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept = self.images.iter().filter(|image| keep(&image.target));
        Fatbinary { images: kept.cloned().collect() }
    }

    /// Returns the fatbinary with its images stored in another way.
    pub fn stored_as(&self, codec: impl Fn(&Image) -> Option<Codec>) -> Self {
        let stored = |image: &Image| match codec(image) {
            codec if codec == image.codec => image.clone(),
            codec => Image { codec, stored: None, ..image.clone() },
        };
        Fatbinary { images: self.images.iter().map(stored).collect() }
    }

    /// Returns the fatbinary with other code in an image.
    pub fn with(&self, target: &str, code: &[u8]) -> Self {
        let mut with = self.clone();
        let image = with.images.iter_mut().find(|image| image.target == target).unwrap();
        image.code = code.to_vec();
        image.stored = None;
        with
    }

    /// Returns the fatbinary with entries whose code alone is known.
    pub fn with_unknown_storage(&self) -> Self {
        let unknown = |image: &Image| Image { stored: None, ..image.clone() };
        Fatbinary { images: self.images.iter().map(unknown).collect() }
    }

    /// Adds a cubin, which is stored as the other ones are.
    pub fn add(&mut self, target: &str, code: &[u8]) {
        let codec = self.images.iter().find(|image| image.target.starts_with("sm_"));
        let codec = codec.and_then(|image| image.codec);
        let (target, code) = (target.to_owned(), code.to_vec());
        self.images.push(Image { target, codec, code, stored: None });
    }

    /// Describes the contents in words.
    pub fn summary(&self) -> String {
        let image = |image: &Image| {
            let codec = image.codec.map_or("plain", Codec::name);
            format!("{} ({codec}, {} bytes)", image.target, image.code.len())
        };
        self.images.iter().map(image).collect::<Vec<_>>().join(", ")
    }
}

/// Code without the zeros that fill an entry up, and the one that ends PTX.
pub fn unpadded(code: &[u8]) -> &[u8] {
    let end = code.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &code[..end]
}

fn target(kind: Kind, architecture: nv_fatbin::Architecture) -> String {
    let name = architecture.to_string();
    if kind == Kind::PTX { name.replace("sm_", "compute_") } else { name }
}

/// A fatbinary as our library reads it. It has to end where the runtime thought.
pub fn decode(dump: &[u8]) -> Result<Fatbinary, nv_fatbin::Error> {
    let mut images = Vec::new();
    for entry in Fatbin::parse(dump)?.entries() {
        let entry = entry?;
        let code = entry.decompress(1 << 30)?;
        let codec = entry.codec();
        if entry.kind() == Kind::CONCATENATED {
            for image in entry.concatenated()? {
                let range = image.range();
                let range =
                    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                images.push(Image {
                    target: target(image.kind(), image.architecture()),
                    codec,
                    code: code[range].to_vec(),
                    stored: None,
                });
            }
        } else {
            images.push(Image {
                target: target(entry.kind(), entry.architecture()),
                codec,
                code: code.to_vec(),
                stored: entry.bytes().map(<[u8]>::to_vec),
            });
        }
    }
    Ok(Fatbinary { images })
}

/// Targets and codes of all images in a file as NVIDIA's tool finds them, sorted.
pub fn found_by_cuobjdump(file: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let place = tempfile::tempdir().unwrap();
    // It finds no device code in this file, edited or not, unless objcopy has laid out its end.
    let copy = tempfile::NamedTempFile::new().unwrap();
    let is_copied = file.file_name().is_some_and(|name| name == "static-lld");
    if is_copied {
        must(&tool("objcopy"), [file, copy.path()]);
    }
    let output = command(&nvidia("cuobjdump"))
        .args(["-all", "-xelf", "all", "-xptx", "all"])
        .arg(if is_copied { copy.path() } else { file })
        .current_dir(place.path())
        .output()
        .unwrap();
    // It tells where there is no image of a kind.
    if !output.status.success() || said(&output).contains("rror") {
        return Err(format!("cuobjdump: {}: {}", output.status, said(&output)));
    }
    let mut found = Vec::new();
    for file in fs::read_dir(place.path()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut parts = name.rsplit('.');
        let (kind, target) = (parts.next().unwrap(), parts.next().unwrap());
        let target = match kind {
            "ptx" => target.replace("sm_", "compute_"),
            _ => target.to_owned(),
        };
        found.push((target, unpadded(&fs::read(&path).unwrap()).to_vec()));
    }
    found.sort();
    Ok(found)
}

/// Returns what NVIDIA's tool should find in a file with these fatbinaries.
fn expected_of_cuobjdump(fatbinaries: &[Fatbinary]) -> Vec<(String, Vec<u8>)> {
    let images = fatbinaries.iter().flat_map(|fatbinary| &fatbinary.images);
    let mut expected: Vec<_> =
        images.map(|image| (image.target.clone(), unpadded(&image.code).to_vec())).collect();
    expected.sort();
    expected
}

fn compare_with_cuobjdump(file: &Path, fatbinaries: &[Fatbinary]) -> Result<(), String> {
    let (found, expected) = (found_by_cuobjdump(file)?, expected_of_cuobjdump(fatbinaries));
    if found == expected {
        return Ok(());
    }
    let names = |images: &[(String, Vec<u8>)]| {
        let names = images.iter().map(|(target, code)| format!("{target} ({})", code.len()));
        names.collect::<Vec<_>>().join(", ")
    };
    Err(format!("cuobjdump finds {}; not {}", names(&found), names(&expected)))
}

impl Container for Fatbinary {
    type Units = Units;

    fn decode(dump: &[u8], with_peer: bool) -> Result<Self, String> {
        let ours = decode(dump).map_err(|error| error.to_string())?;
        if with_peer {
            let file = tempfile::Builder::new().suffix(".fatbin").tempfile().unwrap();
            fs::write(file.path(), dump).unwrap();
            compare_with_cuobjdump(file.path(), std::slice::from_ref(&ours))?;
        }
        Ok(ours)
    }

    fn compare(&self, expected: &Self) -> Complaints {
        let names = |fatbinary: &Self| -> Vec<(String, Option<Codec>)> {
            fatbinary.images.iter().map(|image| (image.target.clone(), image.codec)).collect()
        };
        if names(self) != names(expected) {
            return vec![format!("is {}; not {}", self.summary(), expected.summary())];
        }
        let mut complaints = Complaints::new();
        for (found, expected) in self.images.iter().zip(&expected.images) {
            complaints.extend(difference(
                &found.target,
                unpadded(&found.code),
                unpadded(&expected.code),
            ));
            if let (Some(stored), Some(stored_expected)) = (&found.stored, &expected.stored) {
                let name = format!("{} as stored", found.target);
                complaints.extend(difference(&name, stored, stored_expected));
            }
        }
        complaints
    }

    fn check_file(file: &Path, expected: &[Self]) -> Complaints {
        // Where code refers to a fatbinary, edited files have several sections of one name; cuobjdump reads the first.
        let may_be_in_pieces = file.file_name().is_some_and(|name| name == "so-lld-referred");
        let first = if may_be_in_pieces { &expected[..1] } else { expected };
        let compared = compare_with_cuobjdump(file, expected);
        compared.or_else(|_| compare_with_cuobjdump(file, first)).err().into_iter().collect()
    }
}
