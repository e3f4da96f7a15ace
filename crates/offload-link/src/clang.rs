//! The arguments with which `clang` links device code, as `clang-linker-wrapper` of LLVM 22 or 23 calls it.

use std::ffi::{OsStr, OsString};

use offload_binary::OffloadKind;
use target_id::Triple;

use crate::plan::Group;

/// Options of device links by `clang`.
#[derive(Clone, Debug, Default)]
pub struct ClangOptions {
    /// Options of LLVM, for `--plugin-opt`.
    pub plugin_options: Vec<OsString>,
    /// Options of LLVM, for `-mllvm`.
    pub mllvm_options: Vec<OsString>,
    /// Arguments for the linker, with the triple that they are for; `None` for all.
    pub linker_arguments: Vec<(Option<String>, OsString)>,
    /// Arguments for `clang`, with the triple that they are for; `None` for all.
    pub compiler_arguments: Vec<(Option<String>, OsString)>,
    /// Arguments of the host link that links for a CPU get as well: libraries and their directories.
    pub host_arguments: Vec<OsString>,
    /// Keeps the intermediate files of link-time optimisation.
    pub save_temps: bool,
    /// Does the same in links for a CPU: the host linker is `lld`.
    pub save_temps_on_cpu: bool,
    /// Makes bitcode instead of machine code.
    pub emit_bitcode: bool,
    /// Leaves out `-flto` for AMD's GPUs, as LLVM 23 does, whose clang always links them so.
    pub without_lto: bool,
}

/// Files of a device link.
#[derive(Clone, Copy, Debug)]
pub struct LinkFiles<'a> {
    /// Files with the code of [`Group::inputs`], in this order.
    pub inputs: &'a [OsString],
    /// File of the image.
    pub output: &'a OsStr,
    /// File of the program, after which other outputs are named.
    pub program: &'a OsStr,
}

impl ClangOptions {
    /// Reads `VALUE` or `TRIPLE=VALUE`, as the options `--device-linker` and `--device-compiler` have it.
    ///
    /// The text before the first `=` is a triple if its architecture is known. Without anything after it, it is the
    /// value.
    #[must_use]
    pub fn argument(text: &str) -> (Option<String>, OsString) {
        match text.split_once('=') {
            Some((triple, value)) if Triple::parse(triple).is_known_arch() => match value {
                "" => (None, triple.into()),
                _ => (Some(triple.to_owned()), value.into()),
            },
            _ => (None, text.into()),
        }
    }

    /// Returns the arguments of `clang`, without its name, for one image.
    #[must_use]
    pub fn arguments(&self, group: &Group<'_>, files: LinkFiles<'_>) -> Vec<OsString> {
        let target = group.target();
        let triple = Triple::parse(target.triple());
        let (is_amdgpu, is_nvptx) = (triple.is_amdgpu(), triple.is_nvptx());
        let is_cpu = target.is_cpu();
        let processor = target.processor();
        let mut words = Words(Vec::new());
        words.add(["--no-default-config", "-o"]);
        words.add([files.output]);
        let directory = format!(".{}.{processor}.img.", target.architecture());
        words.add([OsStr::new("-dumpdir"), &joined(files.program, &directory)]);
        words.add([format!("--target={}", target.triple())]);
        match processor {
            "" => {}
            _ if is_amdgpu => words.add([format!("-mcpu={processor}")]),
            _ => words.add([format!("-march={processor}")]),
        }
        if is_amdgpu && !self.without_lto {
            words.add(["-flto"]);
        }
        for option in &self.plugin_options {
            words.for_linker(&joined("--plugin-opt=", option));
        }
        if is_amdgpu || is_cpu {
            words.add(["-Wl,--no-undefined"]);
        }
        words.add(files.inputs);
        if is_cpu {
            words.add(["-Wl,-Bsymbolic", "-shared"]);
            words.add(&self.host_arguments);
        }
        for option in &self.mllvm_options {
            words.for_linker(&joined("-mllvm=", option));
        }
        if self.save_temps && (is_amdgpu || is_nvptx || is_cpu && self.save_temps_on_cpu) {
            words.add(["-Wl,--save-temps"]);
        }
        if self.emit_bitcode {
            words.add(["-Wl,--lto-emit-llvm"]);
        }
        if group.kinds().contains(&OffloadKind::SYCL) {
            words.add(["--sycl-link"]);
            words.for_linker(format!("-triple={}", target.triple()).as_ref());
            words.for_linker(format!("-arch={processor}").as_ref());
        }
        let is_for = |only: &Option<String>| only.as_deref().is_none_or(|it| it == target.triple());
        for (_, value) in self.linker_arguments.iter().filter(|(only, _)| is_for(only)) {
            words.for_linker(value);
        }
        for (_, value) in self.compiler_arguments.iter().filter(|(only, _)| is_for(only)) {
            words.add([value]);
        }
        words.0
    }
}

/// A command line that grows.
struct Words(Vec<OsString>);

impl Words {
    fn add<W: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn for_linker(&mut self, word: &OsStr) {
        self.add([OsStr::new("-Xlinker"), word]);
    }
}

fn joined(start: impl AsRef<OsStr>, end: impl AsRef<OsStr>) -> OsString {
    let mut joined = start.as_ref().to_owned();
    joined.push(end);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_for_a_triple_with_a_known_architecture() {
        let text = |text| ClangOptions::argument(text);
        assert_eq!(text("-v"), (None, "-v".into()));
        assert_eq!(text("foo=bar"), (None, "foo=bar".into()));
        assert_eq!(text("-O=3"), (None, "-O=3".into()));
        assert_eq!(
            text("amdgcn-amd-amdhsa=-mllvm=-x"),
            (Some("amdgcn-amd-amdhsa".into()), "-mllvm=-x".into())
        );
        assert_eq!(text("nvptx64-nvidia-cuda="), (None, "nvptx64-nvidia-cuda".into()));
    }
}
