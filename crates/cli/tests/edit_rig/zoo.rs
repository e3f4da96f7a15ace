//! The files that are edited: linked by every linker in every way, of HIP sources for several GPUs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{command, each, must, said, settle, tool};
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

/// For which system a file is, and how it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum World {
    Glibc,
    Musl,
    /// Under `qemu-aarch64`.
    AArch64,
}

/// Shape of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Shared,
    Pie,
    /// At the addresses it was linked for.
    NoPie,
    Static,
    StaticPie,
}

/// A linked file.
#[derive(Clone, Debug)]
pub struct Linked {
    pub name: &'static str,
    pub path: PathBuf,
    pub world: World,
    pub shape: Shape,
    /// For which GPUs it has code.
    pub targets: &'static [&'static str],
    /// True if its bundles are compressed.
    pub compressed: bool,
    /// Number of bundles.
    pub bundles: usize,
    /// True if its bundles are for the new driver: they are not aligned, and have `hip` for `hipv4`.
    pub is_new: bool,
    /// The directory of the zoo.
    pub place: PathBuf,
}

impl Linked {
    /// Returns whether its layout is not the one its linker would make again: segments that are aligned more than they
    /// need, which an edit changes, or free space that patchelf left.
    pub fn has_odd_layout(&self) -> bool {
        ["so-bfd-64k", "so-lld-64k", "so-bfd-2m", "so-bfd-rpath"].contains(&self.name)
            || self.is_new
    }

    /// The least unit in which a file can lose bytes.
    pub fn page(&self) -> u64 {
        // Kernels for AArch64 may have pages of 64 KiB.
        if self.world == World::AArch64 { 0x1_0000 } else { 0x1000 }
    }
}

/// Command line that links a file.
struct Link {
    name: &'static str,
    linker: Linker,
    world: World,
    shape: Shape,
    units: Units,
    options: &'static [&'static str],
    /// Commands that change it after the link.
    finish: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linker {
    Bfd,
    Lld,
    Gold,
    Mold,
}

/// Translation units of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
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

impl Units {
    fn bundles(self) -> usize {
        match self {
            Units::One | Units::Rdc | Units::RdcNew => 1,
            Units::New => 2,
            Units::Many => MANY,
            _ => 3,
        }
    }

    fn targets(self) -> &'static [&'static str] {
        match self {
            Units::One | Units::Three => &FULL,
            _ => &FEW,
        }
    }
}

const fn link(name: &'static str, linker: Linker, shape: Shape, units: Units) -> Link {
    Link { name, linker, world: World::Glibc, shape, units, options: &[], finish: &[] }
}

impl Link {
    const fn with(self, options: &'static [&'static str]) -> Self {
        Link { options, ..self }
    }

    const fn on(self, world: World) -> Self {
        Link { world, ..self }
    }

    const fn then(self, finish: &'static [&'static str]) -> Self {
        Link { finish, ..self }
    }
}

/// Each linker with each shape, each way to lay out with one or two linkers, each kind of units with two.
const LINKS: &[Link] = {
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

/// All files, made once for each run of the tests.
pub fn zoo() -> &'static [Linked] {
    static ZOO: OnceLock<Vec<Linked>> = OnceLock::new();
    ZOO.get_or_init(|| {
        // It stays until the next run: what failed can be looked at.
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("edit-zoo");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        let builder = Builder { place };
        builder.compile();
        builder.link()
    })
}

/// Those of the files whose names contain one of the words in `RIG_FILES`, for work on the editor: all without it.
pub fn chosen() -> Vec<&'static Linked> {
    let words = std::env::var("RIG_FILES").unwrap_or_default();
    let is_chosen = |file: &&Linked| words.split(',').any(|word| file.name.contains(word));
    let chosen: Vec<_> = zoo().iter().filter(is_chosen).collect();
    assert!(!chosen.is_empty(), "no file has one of {words} in its name");
    chosen
}

/// The file of this name.
pub fn file(name: &str) -> &'static Linked {
    let found = zoo().iter().find(|file| file.name == name);
    found.unwrap_or_else(|| panic!("no file is called {name}"))
}

/// Compiles and links in a directory.
struct Builder {
    place: PathBuf,
}

/// A compiler run.
type Step = Vec<String>;

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

impl Builder {
    fn compile(&self) {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edit_rig/sources");
        let source = |name: &str| sources.join(name).to_str().unwrap().to_owned();
        let clang = llvm("clang++").to_str().unwrap().to_owned();
        let step = |text: &str| -> Step {
            let text = text
                .replace("@CLANG", &clang)
                .replace("@HOST", &source("host.cc"))
                .replace("@LOADER", &source("loader.c"))
                .replace("@RUNTIME", &source("runtime.c"));
            words(&text).collect()
        };
        let unit = |set: &str,
                    number: usize,
                    words: usize,
                    triple: &str,
                    options: &str,
                    targets: &[&str]|
         -> Step {
            let text = format!(
                "@CLANG --target={triple} -x hip -nogpuinc -nogpulib -Os -DUNIT={number} -DWORDS={words} {options} \
                 -cuid={set}{number} -use-spirv-backend -c"
            );
            let mut step = step(&text);
            step.extend(targets.iter().map(|target| format!("--offload-arch={target}")));
            step.extend([source("unit.hip"), "-o".into(), format!("{set}{number}.o")]);
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
        for (name, compiler) in
            [("", "@CLANG"), ("musl-", "musl-gcc"), ("aarch64-", "aarch64-linux-gnu-gcc")]
        {
            // There is a C++ library for one of these worlds only.
            let language = if name.is_empty() { "" } else { "-x c" };
            let c = if name.is_empty() { "-x c" } else { "" };
            for (model, pic) in [("pic", "-fPIC"), ("nopic", "-fno-pic"), ("debug", "-fPIC -g")] {
                steps.push(step(&format!(
                    "{compiler} {language} -O1 {pic} -c @HOST -o {name}host-{model}.o"
                )));
                steps.push(step(&format!(
                    "{compiler} {c} -O1 {pic} -c @LOADER -o {name}main-{model}.o"
                )));
            }
            let directory = format!("{name}runtime");
            fs::create_dir(self.place.join(&directory)).unwrap();
            steps.push(step(&format!(
                "{compiler} {c} -O1 -fPIC -shared @RUNTIME -o {directory}/libamdhip64.so -Wl,-soname,libamdhip64.so"
            )));
            steps.push(step(&format!("{compiler} {c} -O1 -fPIC -c @RUNTIME -o {name}runtime.o")));
            steps.push(step(&format!("{compiler} {c} -O1 -DLOADER @LOADER -o {name}loader -ldl")));
        }
        settle(&each(&steps, |step| self.step(step)));
    }

    fn step(&self, step: &[String]) -> Vec<String> {
        let output = command(Path::new(&step[0]))
            .args(&step[1..])
            .current_dir(&self.place)
            .output()
            .unwrap();
        let is_fine = output.status.success() && output.stderr.is_empty();
        if is_fine { Vec::new() } else { vec![format!("{}: {}", step.join(" "), said(&output))] }
    }

    fn link(&self) -> Vec<Linked> {
        settle(&each(LINKS, |link| {
            let complaints = self.step(&self.link_step(link));
            if let [tool_name, options @ ..] = link.finish {
                let tool =
                    if tool_name.starts_with("llvm-") { llvm(tool_name) } else { tool(tool_name) };
                let file = self.place.join(link.name);
                must(
                    &tool,
                    options.iter().map(|word| (*word).into()).chain([file.into_os_string()]),
                );
            }
            complaints
        }));
        let file = |link: &Link| Linked {
            name: link.name,
            path: self.place.join(link.name),
            world: link.world,
            shape: link.shape,
            targets: link.units.targets(),
            compressed: link.units == Units::Compressed,
            bundles: link.units.bundles(),
            is_new: matches!(link.units, Units::New | Units::RdcNew),
            place: self.place.clone(),
        };
        LINKS.iter().map(file).collect()
    }

    fn link_step(&self, link: &Link) -> Step {
        let clang = llvm("clang++").to_str().unwrap().to_owned();
        let linker = match link.linker {
            Linker::Bfd => "/usr/bin/ld.bfd".to_owned(),
            Linker::Lld => llvm("ld.lld").to_str().unwrap().to_owned(),
            Linker::Gold => "/usr/bin/ld.gold".to_owned(),
            Linker::Mold => "/usr/bin/mold".to_owned(),
        };
        let mut step: Step = match (link.world, link.linker) {
            (World::Glibc, _) => {
                words(&format!("{clang} --target=x86_64-unknown-linux-gnu --ld-path={linker}"))
                    .collect()
            }
            (World::Musl, _) => words("musl-gcc -Wl,--build-id").collect(),
            (World::AArch64, Linker::Bfd) => words("aarch64-linux-gnu-gcc").collect(),
            (World::AArch64, _) => words(&format!(
                "{clang} -x none --target=aarch64-linux-gnu --ld-path={linker} -nostdlib++"
            ))
            .collect(),
        };
        let prefix = match link.world {
            World::Glibc => "",
            World::Musl => "musl-",
            World::AArch64 => "aarch64-",
        };
        step.extend(words(match link.shape {
            Shape::Shared => "-shared -Wl,-z,defs",
            Shape::Pie => "-pie",
            Shape::NoPie => "-no-pie",
            Shape::Static => "-static",
            Shape::StaticPie => "-static-pie",
        }));
        let position = match link.shape {
            Shape::NoPie | Shape::Static
                if link.world == World::Glibc && link.units != Units::Compressed =>
            {
                "nopic"
            }
            _ => "pic",
        };
        let own = if link.world == World::AArch64 { "aarch64-" } else { position };
        let units = match link.units {
            Units::One => vec![format!("{own}0.o")],
            Units::Three => (0..3).map(|number| format!("{own}{number}.o")).collect(),
            Units::Debug => (0..3).map(|number| format!("debug{number}.o")).collect(),
            Units::Compressed => (0..3).map(|number| format!("compressed{number}.o")).collect(),
            Units::Referred => words("debug0.o referred1.o debug2.o").collect(),
            Units::Rdc => words("rdc0.o rdc1.o").collect(),
            Units::RdcNew => words("rdcnew0.o rdcnew1.o").collect(),
            Units::New => words("new0.o new1.o").collect(),
            Units::Many => (0..MANY).map(|number| format!("many{number}.o")).collect(),
        };
        step.extend(units);
        if matches!(link.units, Units::Rdc | Units::RdcNew) {
            let driver = if link.units == Units::Rdc {
                "no-offload-new-driver"
            } else {
                "offload-new-driver"
            };
            step.extend(words(&format!("--hip-link --{driver} -fgpu-rdc -no-hip-rt")));
            step.extend(FEW.iter().map(|target| format!("--offload-arch={target}")));
        }
        let host = if link.units == Units::Debug { "debug" } else { position };
        step.push(format!("{prefix}host-{host}.o"));
        if link.shape != Shape::Shared {
            step.push(format!("{prefix}main-{host}.o"));
        }
        step.push(match link.shape {
            Shape::Static | Shape::StaticPie => format!("{prefix}runtime.o"),
            _ => format!("{prefix}runtime/libamdhip64.so"),
        });
        step.extend(link.options.iter().map(|&option| option.to_owned()));
        step.extend(["-o".into(), link.name.into()]);
        step
    }
}

/// Returns the targets of a file that a list keeps, in the file's order, as bundle entry IDs.
pub fn ids(file: &Linked, keep: &[&str]) -> Vec<String> {
    let id = |target: &&str| match *target {
        "amdgcnspirv" => "hipv4-spirv64-amd-amdhsa--amdgcnspirv".to_owned(),
        target if file.is_new => format!("hip-amdgcn-amd-amdhsa--{target}"),
        target => format!("hipv4-amdgcn-amd-amdhsa--{target}"),
    };
    file.targets.iter().filter(|target| keep.contains(target)).map(id).collect()
}

/// Things that are the same for a file in all tests, found out once for each.
pub struct PerFile<T>(BTreeMap<&'static str, OnceLock<T>>);

impl<T> PerFile<T> {
    pub fn new() -> Self {
        PerFile(LINKS.iter().map(|link| (link.name, OnceLock::new())).collect())
    }

    pub fn get(&self, file: &Linked, find: impl FnOnce() -> T) -> &T {
        self.0[file.name].get_or_init(find)
    }
}
