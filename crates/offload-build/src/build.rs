//! The files and GPUs of a build, and the variables of cargo.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::{Job, NO_LIBRARIES};
use crate::error::{Error, ErrorKind};
use crate::language::Language;

/// Files with GPU code, and the GPUs that they are compiled for.
#[derive(Clone, Debug, Default)]
pub struct Build {
    files: Vec<(PathBuf, Option<Language>)>,
    gpus: Vec<String>,
    compiler: Option<PathBuf>,
    headers: Vec<PathBuf>,
    arguments: Vec<OsString>,
    link_arguments: Vec<OsString>,
    host: Option<String>,
    without_runtime: bool,
}

impl Build {
    /// Creates a build of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, whose extension tells the language: see [`Language`]. Paths are those of the build script: relative to the
    /// directory of the crate.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push((path.into(), None));
        self
    }

    /// Adds a file in this language, whatever its extension is.
    #[must_use]
    pub fn with_file_of(mut self, language: Language, path: impl Into<PathBuf>) -> Self {
        self.files.push((path.into(), Some(language)));
        self
    }

    /// Adds a header that only device code includes: a change of it runs the build script again. Clang tells which headers the host code
    /// includes, and not those.
    #[must_use]
    pub fn with_header(mut self, path: impl Into<PathBuf>) -> Self {
        self.headers.push(path.into());
        self
    }

    /// Compiles for this GPU, too, as clang's `--offload-arch` names it: `gfx90a:xnack+`, `sm_90`, `native`.
    /// HIP and CUDA take those of one vendor: a crate with both has two builds.
    #[must_use]
    pub fn with_gpu(mut self, gpu: impl Into<String>) -> Self {
        self.gpus.push(gpu.into());
        self
    }

    /// Sets the path of clang, or its name in `PATH`. Otherwise the variable `CLANG_PATH` says it, or it is `clang`.
    #[must_use]
    pub fn with_compiler(mut self, path: impl Into<PathBuf>) -> Self {
        self.compiler = Some(path.into());
        self
    }

    /// Adds an argument of clang, for the files: `-Iinclude`, `-DNDEBUG`. Arguments that say where a toolkit is, or that there is none, such as
    /// `--rocm-path=` and `-nogpulib`, are for links of device code, too.
    #[must_use]
    pub fn with_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds an argument of clang, for links of device code.
    #[must_use]
    pub fn with_link_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.link_arguments.push(argument.into());
        self
    }

    /// Sets the target triple of the host, as clang and rustc name it. Otherwise the variable `TARGET` says it, which cargo sets for build
    /// scripts.
    #[must_use]
    pub fn with_host(mut self, triple: impl Into<String>) -> Self {
        self.host = Some(triple.into());
        self
    }

    /// Sets whether cargo links the libraries of the runtime. Default: `true`.
    #[must_use]
    pub fn with_runtime(mut self, runtime: bool) -> Self {
        self.without_runtime = !runtime;
        self
    }

    /// Compiles and links the files, writes a static library into `OUT_DIR`, and prints the lines that make cargo link it. A package
    /// that does this several times needs a name for each.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`]. Messages of clang are printed as they come.
    pub fn compile(self, name: &str) -> Result<(), Error> {
        let directory = PathBuf::from(variable("OUT_DIR")?);
        // The library of another crate, or of another version, has another name.
        let (package, version) = (variable("CARGO_PKG_NAME")?, variable("CARGO_PKG_VERSION")?);
        let name = letters(&format!("{package}_{version}_{name}"));
        let job = self.job()?;
        let compiled = job.run(&directory, &name)?;
        for line in self.lines(&job, &directory, &name, &compiled.sources) {
            println!("cargo::{line}");
        }
        Ok(())
    }

    /// Compiles and links the files, and writes the static library `libNAME.a` into a directory, for builds without cargo's scripts. All
    /// of its members have to be linked (`--whole-archive`). Returns its path.
    ///
    /// Each library of a program has to have a name of its own, made of letters, digits and `_`: other characters become `_`.
    ///
    /// # Errors
    ///
    /// As [`compile`](Self::compile).
    pub fn compile_into(&self, directory: &Path, name: &str) -> Result<PathBuf, Error> {
        Ok(self.job()?.run(directory, &letters(name))?.library)
    }

    fn job(&self) -> Result<Job, Error> {
        if self.files.is_empty() || self.gpus.is_empty() {
            let text = "expected a file and a GPU: `with_file`, `with_gpu`";
            return Err(Error::new(ErrorKind::Incomplete, text));
        }
        let (mut arguments, mut link_arguments) = (vec![OsString::from("-fPIC")], Vec::new());
        // Cargo sets these for build scripts; other builds add arguments. Code for GPUs of AMD is generated when it is linked.
        if let Some(level) = env::var_os("OPT_LEVEL") {
            let mut argument = OsString::from("-O");
            argument.push(level);
            link_arguments.push(argument);
        }
        if env::var_os("DEBUG").is_some_and(|debug| debug != "false" && debug != "0") {
            link_arguments.push("-g".into());
        }
        arguments.extend(link_arguments.iter().cloned());
        let is_common = |argument: &&OsString| {
            let text = argument.to_string_lossy();
            TOOLKITS.iter().chain(&NO_LIBRARIES).any(|start| text.starts_with(start))
        };
        link_arguments.extend(self.arguments.iter().filter(is_common).cloned());
        link_arguments.extend(self.link_arguments.iter().cloned());
        let host = match &self.host {
            Some(host) => host.clone(),
            None => variable("TARGET")?,
        };
        arguments.push(format!("--target={}", of_clang(&host)).into());
        arguments.push(format!("--offload-arch={}", self.gpus.join(",")).into());
        arguments.extend(self.arguments.iter().cloned());
        let clang = self.compiler.clone().or_else(|| env::var_os("CLANG_PATH").map(PathBuf::from));
        let language = |(path, language): &(PathBuf, Option<Language>)| {
            (path.clone(), language.unwrap_or_else(|| Language::of(path)))
        };
        Ok(Job {
            files: self.files.iter().map(language).collect(),
            clang: clang.unwrap_or_else(|| "clang".into()),
            arguments,
            link_arguments,
            host,
        })
    }

    /// Returns what cargo is told.
    fn lines(
        &self,
        job: &Job,
        directory: &Path,
        name: &str,
        sources: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut lines = vec![
            format!("rustc-link-search=native={}", directory.display()),
            format!("rustc-link-lib=static:+whole-archive={name}"),
        ];
        let languages: BTreeSet<_> = job.files.iter().map(|(_, language)| *language).collect();
        for language in languages {
            let toolkit = language.toolkit();
            lines.extend(toolkit.map(|(variable, ..)| format!("rerun-if-env-changed={variable}")));
            if self.without_runtime {
                continue;
            }
            let directory = match toolkit {
                Some((variable, usual, below)) => {
                    let toolkit = env::var_os(variable).map_or_else(|| usual.into(), PathBuf::from);
                    Some(toolkit.join(below))
                }
                None => library_directory(&job.clang),
            };
            let search = directory.iter();
            lines.extend(search.map(|path| format!("rustc-link-search=native={}", path.display())));
            let libraries = language.libraries().iter();
            lines.extend(libraries.map(|library| format!("rustc-link-lib=dylib={library}")));
        }
        let is_cpp = job.files.iter().any(|(path, language)| language.is_cpp(path));
        if is_cpp && !self.without_runtime {
            let library = if job.host.contains("bsd") { "c++" } else { "stdc++" };
            lines.push(format!("rustc-link-lib=dylib={library}"));
        }
        let headers = self.headers.iter();
        lines.extend(headers.map(|header| format!("rerun-if-changed={}", header.display())));
        lines.extend(sources.iter().map(|source| format!("rerun-if-changed={source}")));
        lines.push("rerun-if-env-changed=CLANG_PATH".to_owned());
        lines
    }
}

/// The starts of arguments that say where a toolkit is.
const TOOLKITS: [&str; 3] = ["--rocm-path", "--cuda-path", "--rocm-device-lib-path"];

/// Returns a triple of rustc as clang knows it.
fn of_clang(triple: &str) -> String {
    match triple.split_once('-') {
        // The extensions are in the name of rustc's: `riscv64gc`.
        Some((arch, rest)) if arch.starts_with("riscv64") => format!("riscv64-{rest}"),
        Some((arch, rest)) if arch.starts_with("riscv32") => format!("riscv32-{rest}"),
        _ => triple.to_owned(),
    }
}

/// Returns the directory of LLVM's runtime for OpenMP, if clang has one of its own.
fn library_directory(clang: &Path) -> Option<PathBuf> {
    let mut command = Command::new(clang);
    let output = command.arg("-print-file-name=libomptarget.so").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then(|| path.parent().map(Path::to_owned)).flatten()
}

/// Returns a name whose characters the names of sections and files can have.
fn letters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns a variable that cargo sets for build scripts.
fn variable(name: &str) -> Result<String, Error> {
    env::var(name).map_err(|_| {
        let text = format!("{name} is not set: expected a build script of cargo");
        Error::new(ErrorKind::Incomplete, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_what_to_link_and_when_to_build_again() {
        let build = Build::new().with_file("src/a.hip").with_file_of(Language::Hip, "b.cpp");
        let build = build.with_header("only/device.h");
        let build = build.with_gpu("gfx90a").with_host("x86_64-unknown-linux-gnu");
        let job = build.job().unwrap();
        let sources = ["b.cpp", "include/a.h", "src/a.hip"].map(str::to_owned).into();
        let lines =
            build.clone().with_runtime(false).lines(&job, Path::new("/out"), "kernels", &sources);
        let expected = [
            "rustc-link-search=native=/out",
            "rustc-link-lib=static:+whole-archive=kernels",
            "rerun-if-env-changed=ROCM_PATH",
            "rerun-if-changed=only/device.h",
            "rerun-if-changed=b.cpp",
            "rerun-if-changed=include/a.h",
            "rerun-if-changed=src/a.hip",
            "rerun-if-env-changed=CLANG_PATH",
        ];
        assert_eq!(lines, expected);
        let lines = build.lines(&job, Path::new("/out"), "kernels", &sources);
        for library in ["amdhip64", "stdc++"] {
            assert!(lines.contains(&format!("rustc-link-lib=dylib={library}")), "{lines:?}");
        }
    }

    #[test]
    fn clang_has_names_of_its_own_for_some_triples() {
        assert_eq!(of_clang("riscv64gc-unknown-linux-gnu"), "riscv64-unknown-linux-gnu");
        assert_eq!(of_clang("x86_64-unknown-linux-gnu"), "x86_64-unknown-linux-gnu");
    }

    #[test]
    fn a_build_without_a_gpu_is_an_error() {
        let build = Build::new().with_file("a.hip");
        let error = build.compile_into(Path::new("."), "a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete);
        assert_eq!(error.to_string(), "expected a file and a GPU: `with_file`, `with_gpu`");
    }
}
