//! The files that are edited: linked by every linker in every way, of sources for several GPUs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{command, each, must, said, settle, tool};
use crate::common::llvm;

/// For which system a file is, and how it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum World {
    Glibc,
    Musl,
    /// Under `qemu-aarch64`.
    AArch64,
}

impl World {
    pub const ALL: [World; 3] = [World::Glibc, World::Musl, World::AArch64];

    /// The start of the names of files for this world.
    pub fn prefix(self) -> &'static str {
        match self {
            World::Glibc => "",
            World::Musl => "musl-",
            World::AArch64 => "aarch64-",
        }
    }
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
    /// True if the compiler has compressed its containers, or images.
    pub compressed: bool,
    /// Number of containers, such as bundles, that are registered.
    pub containers: usize,
    /// True if its bundles are for the new driver: they are not aligned, and have `hip` for `hipv4`.
    pub is_new: bool,
    /// The file name of the runtime that it needs.
    pub runtime: &'static str,
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

    /// Alignment of its segments, if it is larger than any page.
    pub fn alignment(&self) -> u64 {
        if self.name == "so-bfd-2m" { 0x20_0000 } else { 0 }
    }

    /// The least unit in which a file can lose bytes.
    pub fn page(&self) -> u64 {
        // Kernels for AArch64 may have pages of 64 KiB.
        if self.world == World::AArch64 { 0x1_0000 } else { 0x1000 }
    }
}

/// Command line that links a file.
pub struct Link<U> {
    pub name: &'static str,
    pub linker: Linker,
    pub world: World,
    pub shape: Shape,
    pub units: U,
    pub options: &'static [&'static str],
    /// Commands that change it after the link.
    pub finish: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linker {
    Bfd,
    Lld,
    Gold,
    Mold,
}

/// A compiler run.
pub type Step = Vec<String>;

/// Position dependence of host code, and its debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Pic,
    NoPic,
    /// `-fPIC`, with debug information.
    Debug,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Pic => "pic",
            Model::NoPic => "nopic",
            Model::Debug => "debug",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Model::Pic => "-fPIC",
            Model::NoPic => "-fno-pic",
            Model::Debug => "-fPIC -g",
        }
    }
}

/// Translation units of a file, written in one of the languages with device code.
pub trait Units: Copy + Send + Sync + 'static {
    /// The directory that the files lie in.
    const PLACE: &'static str;
    /// The file name of the runtime.
    const RUNTIME: &'static str;
    /// Compiler options for the stand-in for the runtime.
    const RUNTIME_OPTIONS: &'static str;

    /// Returns the files to link.
    fn links() -> &'static [Link<Self>];

    /// Returns the compiler runs that make the units of all files. Runs in one list do not need each other; those in a
    /// list need those in the lists before it.
    fn steps(builder: &Builder) -> Vec<Vec<Step>>;

    /// Returns the objects of a file.
    fn objects(link: &Link<Self>) -> Vec<String>;

    /// Returns further words for the command that links them.
    fn link_words(self) -> Vec<String>;

    fn targets(self) -> &'static [&'static str];
    fn containers(self) -> usize;
    fn is_compressed(self) -> bool;
    fn is_new(self) -> bool;

    /// Returns the model of the host code.
    fn model(link: &Link<Self>) -> Model;
}

pub const fn link<U: Copy>(name: &'static str, linker: Linker, shape: Shape, units: U) -> Link<U> {
    Link { name, linker, world: World::Glibc, shape, units, options: &[], finish: &[] }
}

impl<U: Copy> Link<U> {
    pub const fn with(self, options: &'static [&'static str]) -> Self {
        Link { options, ..self }
    }

    pub const fn on(self, world: World) -> Self {
        Link { world, ..self }
    }

    pub const fn then(self, finish: &'static [&'static str]) -> Self {
        Link { finish, ..self }
    }
}

/// Makes all files.
pub fn make<U: Units>() -> Vec<Linked> {
    // It stays until the next run: what failed can be looked at.
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(U::PLACE);
    // For work on the editor: the files of the last run, which take minutes to make.
    let is_kept = std::env::var_os("RIG_KEEP").is_some() && place.exists();
    let builder = Builder { place };
    if !is_kept {
        let _ = fs::remove_dir_all(&builder.place);
        fs::create_dir_all(&builder.place).unwrap();
        builder.compile::<U>();
        builder.link::<U>();
    }
    builder.linked::<U>()
}

/// Another name of the runtime with this file name, as repaired packages have: a link beside it.
pub fn renamed(runtime: &str) -> String {
    format!("lib-renamed-0123456789abcdef-{runtime}")
}

/// Compiles and links in a directory.
pub struct Builder {
    pub place: PathBuf,
}

pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

impl Builder {
    /// Returns the path of a source.
    pub fn source(&self, name: &str) -> String {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edit_rig/sources");
        sources.join(name).into_os_string().into_string().unwrap()
    }

    /// Returns a compiler run, from text with names for programs and sources.
    pub fn parse(&self, text: &str) -> Step {
        let text = text
            .replace("@CLANG", llvm("clang++").to_str().unwrap())
            .replace("@HOST", &self.source("host.cc"))
            .replace("@LOADER", &self.source("loader.c"))
            .replace("@RUNTIME", &self.source("runtime.c"))
            .replace("@UNIT", &self.source("unit.cc"));
        words(&text).collect()
    }

    fn compile<U: Units>(&self) {
        let mut lists = U::steps(self);
        let mut steps = Vec::new();
        for world in World::ALL {
            let prefix = world.prefix();
            let compiler = match world {
                World::Glibc => "@CLANG",
                World::Musl => "musl-gcc",
                World::AArch64 => "aarch64-linux-gnu-gcc",
            };
            // There is a C++ library for one of these worlds only.
            let is_cxx = world == World::Glibc;
            let (language, c) = if is_cxx { ("", "-x c") } else { ("-x c", "") };
            for model in [Model::Pic, Model::NoPic, Model::Debug] {
                let (name, options) = (model.name(), model.options());
                steps.push(self.parse(&format!(
                    "{compiler} {language} -O1 {options} -c @HOST -o {prefix}host-{name}.o"
                )));
                steps.push(self.parse(&format!(
                    "{compiler} {c} -O1 {options} -c @LOADER -o {prefix}main-{name}.o"
                )));
            }
            let directory = format!("{prefix}runtime");
            fs::create_dir(self.place.join(&directory)).unwrap();
            let (name, options) = (U::RUNTIME, U::RUNTIME_OPTIONS);
            let linked = self.place.join(&directory).join(renamed(name));
            std::os::unix::fs::symlink(name, linked).unwrap();
            steps.push(self.parse(&format!(
                "{compiler} {c} -O1 -fPIC {options} -shared @RUNTIME -o {directory}/{name} -Wl,-soname,{name}"
            )));
            steps.push(self.parse(&format!(
                "{compiler} {c} -O1 -fPIC {options} -c @RUNTIME -o {prefix}runtime.o"
            )));
            steps.push(
                self.parse(&format!("{compiler} {c} -O1 -DLOADER @LOADER -o {prefix}loader -ldl")),
            );
        }
        match lists.first_mut() {
            Some(first) => first.extend(steps),
            None => lists.push(steps),
        }
        for steps in lists {
            settle(&each(&steps, |step| self.step(step)));
        }
    }

    /// Returns the complaints about a compiler run: it should succeed and say nothing.
    pub fn step(&self, step: &[String]) -> Vec<String> {
        let output = command(Path::new(&step[0]))
            .args(&step[1..])
            .current_dir(&self.place)
            .output()
            .unwrap();
        let is_fine = output.status.success() && output.stderr.is_empty();
        if is_fine { Vec::new() } else { vec![format!("{}: {}", step.join(" "), said(&output))] }
    }

    fn link<U: Units>(&self) {
        settle(&each(U::links(), |link| {
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
    }

    fn linked<U: Units>(&self) -> Vec<Linked> {
        let file = |link: &Link<U>| Linked {
            name: link.name,
            path: self.place.join(link.name),
            world: link.world,
            shape: link.shape,
            targets: link.units.targets(),
            compressed: link.units.is_compressed(),
            containers: link.units.containers(),
            is_new: link.units.is_new(),
            runtime: U::RUNTIME,
            place: self.place.clone(),
        };
        U::links().iter().map(file).collect()
    }

    pub fn link_step<U: Units>(&self, link: &Link<U>) -> Step {
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
        let prefix = link.world.prefix();
        step.extend(words(match link.shape {
            Shape::Shared => "-shared -Wl,-z,defs",
            Shape::Pie => "-pie",
            Shape::NoPie => "-no-pie",
            Shape::Static => "-static",
            Shape::StaticPie => "-static-pie",
        }));
        step.extend(U::objects(link));
        step.extend(link.units.link_words());
        let host = U::model(link).name();
        step.push(format!("{prefix}host-{host}.o"));
        if link.shape != Shape::Shared {
            step.push(format!("{prefix}main-{host}.o"));
        }
        step.push(match link.shape {
            Shape::Static | Shape::StaticPie => format!("{prefix}runtime.o"),
            _ => format!("{prefix}runtime/{}", U::RUNTIME),
        });
        step.extend(link.options.iter().map(|&option| option.to_owned()));
        step.extend(["-o".into(), link.name.into()]);
        step
    }
}

/// Things that are the same for a file in all tests, found out once for each.
pub struct PerFile<T>(BTreeMap<&'static str, OnceLock<T>>);

impl<T> PerFile<T> {
    pub fn new<U: Units>() -> Self {
        PerFile(U::links().iter().map(|link| (link.name, OnceLock::new())).collect())
    }

    pub fn get(&self, file: &Linked, find: impl FnOnce() -> T) -> &T {
        self.0[file.name].get_or_init(find)
    }
}
