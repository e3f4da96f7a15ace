//! The arguments with which `clang` links device code, as `clang-linker-wrapper` of LLVM 22 or 23 calls it.

use std::ffi::{OsStr, OsString};

use offload_binary::OffloadKind;
use target_id::Triple;

use crate::plan::Group;

/// Options of device links by `clang`.
#[derive(Clone, Debug, Default)]
pub struct ClangOptions {
    plugin_options: Vec<OsString>,
    mllvm_options: Vec<OsString>,
    linker_arguments: Vec<DeviceArgument>,
    compiler_arguments: Vec<DeviceArgument>,
    host_arguments: Vec<OsString>,
    save_temps: bool,
    save_temps_on_cpu: bool,
    emits_bitcode: bool,
    without_lto: bool,
}

/// Argument for device links: for all targets, or for those of one triple.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceArgument {
    triple: Option<String>,
    argument: OsString,
}

impl DeviceArgument {
    /// Creates an argument for all targets.
    #[must_use]
    pub fn new(argument: impl Into<OsString>) -> Self {
        DeviceArgument { triple: None, argument: argument.into() }
    }

    /// Creates an argument for the targets of a triple.
    #[must_use]
    pub fn for_triple(triple: impl Into<String>, argument: impl Into<OsString>) -> Self {
        DeviceArgument { triple: Some(triple.into()), argument: argument.into() }
    }

    /// Reads `VALUE` or `TRIPLE=VALUE`, as the options `--device-linker` and `--device-compiler` have it.
    ///
    /// The text before the first `=` is a triple if its architecture is known. Without anything after it, it is the
    /// value.
    ///
    /// ```
    /// use offload_link::DeviceArgument;
    ///
    /// let argument = DeviceArgument::parse("amdgcn-amd-amdhsa=-O2");
    /// assert_eq!(argument, DeviceArgument::for_triple("amdgcn-amd-amdhsa", "-O2"));
    /// assert_eq!(DeviceArgument::parse("-O=3"), DeviceArgument::new("-O=3"));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.split_once('=') {
            Some((triple, value)) if Triple::parse(triple).is_known_arch() => match value {
                "" => Self::new(triple),
                _ => Self::for_triple(triple, value),
            },
            _ => Self::new(text),
        }
    }

    fn is_for(&self, triple: &str) -> bool {
        self.triple.as_deref().is_none_or(|it| it == triple)
    }
}

/// Files of a device link.
#[derive(Clone, Copy, Debug)]
pub struct LinkFiles<'a> {
    pub(crate) inputs: &'a [OsString],
    pub(crate) output: &'a OsStr,
    program: &'a OsStr,
}

impl<'a> LinkFiles<'a> {
    /// Names the files with the code of [`Group::inputs`], in this order, and the file of the image.
    #[must_use]
    pub fn new(inputs: &'a [OsString], output: &'a OsStr) -> Self {
        LinkFiles { inputs, output, program: output }
    }

    /// Names the file of the program, after which other outputs are named. Otherwise it is the image.
    #[must_use]
    pub fn with_program(mut self, program: &'a OsStr) -> Self {
        self.program = program;
        self
    }
}

impl ClangOptions {
    /// Creates options without arguments of their own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds options of LLVM, for `--plugin-opt`.
    #[must_use]
    pub fn with_plugin_options(mut self, options: impl IntoIterator<Item = OsString>) -> Self {
        self.plugin_options.extend(options);
        self
    }

    /// Adds options of LLVM, for `-mllvm`.
    #[must_use]
    pub fn with_mllvm_options(mut self, options: impl IntoIterator<Item = OsString>) -> Self {
        self.mllvm_options.extend(options);
        self
    }

    /// Adds arguments for the linker that `clang` runs.
    #[must_use]
    pub fn with_linker_arguments(
        mut self,
        arguments: impl IntoIterator<Item = DeviceArgument>,
    ) -> Self {
        self.linker_arguments.extend(arguments);
        self
    }

    /// Adds arguments for `clang`.
    #[must_use]
    pub fn with_compiler_arguments(
        mut self,
        arguments: impl IntoIterator<Item = DeviceArgument>,
    ) -> Self {
        self.compiler_arguments.extend(arguments);
        self
    }

    /// Adds arguments of the host link that links for a CPU get as well: libraries and their directories.
    #[must_use]
    pub fn with_host_arguments(mut self, arguments: impl IntoIterator<Item = OsString>) -> Self {
        self.host_arguments.extend(arguments);
        self
    }

    /// Keeps the intermediate files of link-time optimisation.
    #[must_use]
    pub fn with_save_temps(mut self, save_temps: bool) -> Self {
        self.save_temps = save_temps;
        self
    }

    /// Does the same in links for a CPU, if such files are kept: the host linker is `lld`.
    #[must_use]
    pub fn with_save_temps_on_cpu(mut self, on_cpu: bool) -> Self {
        self.save_temps_on_cpu = on_cpu;
        self
    }

    /// Makes bitcode instead of machine code.
    #[must_use]
    pub fn with_bitcode(mut self, emits_bitcode: bool) -> Self {
        self.emits_bitcode = emits_bitcode;
        self
    }

    /// Sets whether links for AMD's GPUs get `-flto`. Default: `true`. LLVM 23 leaves it out: its clang always links them so.
    #[must_use]
    pub fn with_lto(mut self, lto: bool) -> Self {
        self.without_lto = !lto;
        self
    }

    /// Returns the arguments of `clang`, without its name, for one image.
    #[must_use]
    pub fn arguments(&self, group: &Group<'_>, files: LinkFiles<'_>) -> Vec<OsString> {
        let target = group.target();
        let triple = Triple::parse(target.triple());
        let (is_amdgpu, is_nvptx) = (triple.is_amdgpu(), triple.is_nvptx());
        let is_cpu = target.is_cpu();
        let processor = target.processor();
        let mut words = Words::default();
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
        if self.emits_bitcode {
            words.add(["-Wl,--lto-emit-llvm"]);
        }
        if group.kinds().contains(&OffloadKind::SYCL) {
            words.add(["--sycl-link"]);
            words.for_linker(format!("-triple={}", target.triple()).as_ref());
            words.for_linker(format!("-arch={processor}").as_ref());
        }
        let is_for = |argument: &&DeviceArgument| argument.is_for(target.triple());
        for given in self.linker_arguments.iter().filter(is_for) {
            words.for_linker(&given.argument);
        }
        let given = self.compiler_arguments.iter().filter(is_for);
        words.add(given.map(|given| &given.argument));
        words.0
    }
}

/// Length up to which arguments are passed as they are.
const MAX_LEN: usize = if cfg!(windows) { 30_000 } else { 120_000 };

/// Returns the contents of a response file, which `clang` and linkers read for an argument `@FILE`: these arguments, in quotes. `None`
/// if the system takes them as they are.
#[must_use]
pub fn response_file(arguments: &[OsString]) -> Option<Vec<u8>> {
    if arguments.iter().map(|word| word.len() + 1).sum::<usize>() <= MAX_LEN {
        return None;
    }
    let mut words = Vec::new();
    for word in arguments {
        words.push(b'"');
        for &byte in word.as_encoded_bytes() {
            // In files of Windows, backslashes are plain but before quotes.
            if byte == b'"' || byte == b'\\' && !cfg!(windows) {
                words.push(b'\\');
            }
            words.push(byte);
        }
        words.extend(b"\"\n");
    }
    Some(words)
}

/// A command line that grows.
#[derive(Default)]
pub(crate) struct Words(pub(crate) Vec<OsString>);

impl Words {
    pub(crate) fn add<W: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = W>) {
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
        let parse = DeviceArgument::parse;
        assert_eq!(parse("-v"), DeviceArgument::new("-v"));
        assert_eq!(parse("foo=bar"), DeviceArgument::new("foo=bar"));
        assert_eq!(
            parse("amdgcn-amd-amdhsa=-mllvm=-x"),
            DeviceArgument::for_triple("amdgcn-amd-amdhsa", "-mllvm=-x")
        );
        assert_eq!(parse("nvptx64-nvidia-cuda="), DeviceArgument::new("nvptx64-nvidia-cuda"));
    }
}
