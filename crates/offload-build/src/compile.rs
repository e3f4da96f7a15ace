//! Compiling and linking.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hda_archive::{Member, write_archive};
use offload_link::{
    ClangOptions, CommandLinker, DeviceArgument, Inputs, Plan, PlanOptions, RegisterOptions,
};

use crate::error::{Error, ErrorKind};
use crate::language::Language;

/// Arguments that leave out libraries of device code.
pub(crate) const NO_LIBRARIES: [&str; 2] = ["-nogpulib", "--no-offloadlib"];

/// A build that is complete.
pub(crate) struct Job {
    pub(crate) files: Vec<(PathBuf, Language)>,
    pub(crate) clang: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) link_arguments: Vec<OsString>,
    /// The target triple of the host.
    pub(crate) host: String,
}

/// A build that is done.
pub(crate) struct Compiled {
    pub(crate) library: PathBuf,
    /// The files that it was made of, as clang names them.
    pub(crate) sources: BTreeSet<String>,
}

impl Job {
    /// Writes the static library of this name. Its entries have the name, too.
    pub(crate) fn run(&self, directory: &Path, name: &str) -> Result<Compiled, Error> {
        let (mut objects, mut sources) = (Vec::new(), BTreeSet::new());
        for (number, (file, language)) in self.files.iter().enumerate() {
            let path = directory.join(format!("{name}-{number}.o"));
            sources.extend(self.compile(file, *language, &path)?);
            let bytes = fs::read(&path).map_err(|error| Error::of_file(&path, error))?;
            objects.push((path, bytes));
        }
        let mut inputs = Inputs::new();
        for (path, bytes) in &objects {
            inputs.add(&path.to_string_lossy(), bytes)?;
        }
        let plan = Plan::new(&inputs, &PlanOptions::default())?;
        let images = plan.link(&mut self.linker().with_directory(directory))?;
        let options = RegisterOptions::new(&self.host).with_private_entries(name);
        let registration = images.object(&options)?.ok_or_else(|| {
            let files: Vec<_> =
                self.files.iter().map(|(file, _)| file.display().to_string()).collect();
            let text = format!("{}: no device code", files.join(", "));
            Error::new(ErrorKind::NoDeviceCode, text)
        })?;
        let mut members = Vec::new();
        for (number, (_, bytes)) in objects.iter().enumerate() {
            members.push(Member::new(format!("{name}-{number}.o"), options.host_object(bytes)?));
        }
        members.push(Member::new(format!("{name}-registration.o"), registration));
        let library = directory.join(format!("lib{name}.a"));
        write(&library, members).map_err(|error| Error::of_file(&library, error))?;
        Ok(Compiled { library, sources })
    }

    /// Returns the linker of device code, with the libraries that clang's driver gives it.
    fn linker(&self) -> CommandLinker {
        let arguments = self.link_arguments.iter().map(DeviceArgument::new);
        let mut options = ClangOptions::new().with_compiler_arguments(arguments);
        let is_without = |argument| NO_LIBRARIES.iter().any(|none| argument == none);
        let is_openmp = self.files.iter().any(|(_, language)| *language == Language::OpenMp);
        if is_openmp && !self.link_arguments.iter().any(is_without) {
            // Not for CPUs, where the host's library has all.
            let triples = ["amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda"];
            let runtime = |triple| DeviceArgument::for_triple(triple, "-lompdevice");
            options = options.with_linker_arguments(triples.map(runtime));
        }
        let linker = CommandLinker::new().with_clang(&self.clang, options);
        match env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()) {
            Some(jobs) => linker.with_jobs(jobs),
            None => linker,
        }
    }

    /// Compiles a file to a host object with device code. Returns the files that it was made of, without headers of the system.
    fn compile(
        &self,
        file: &Path,
        language: Language,
        object: &Path,
    ) -> Result<Vec<String>, Error> {
        let rule = object.with_extension("d");
        let mut command = Command::new(&self.clang);
        command.args(language.arguments()).args(&self.arguments);
        command.arg("-c").arg(file).arg("-o").arg(object).arg("-MMD").arg("-MF").arg(&rule);
        // Cargo reads the output of a build script.
        let status = command.stdout(Stdio::from(io::stderr())).status();
        let clang = self.clang.display();
        let failed = |why: String| Err(Error::new(ErrorKind::Compiler, why));
        match status {
            Ok(status) if status.success() => {
                let rule = fs::read_to_string(&rule).map_err(|e| Error::of_file(&rule, e))?;
                Ok(prerequisites(&rule))
            }
            Ok(status) => failed(format!("{}: {clang}: {status}", file.display())),
            Err(error) => failed(format!("{clang}: {error}: CLANG_PATH may name another clang")),
        }
    }
}

/// Returns the files that a rule of `make` names after the colon.
fn prerequisites(rule: &str) -> Vec<String> {
    let rule = rule.replace("\\\n", " ");
    let Some((_, names)) = rule.split_once(": ") else { return Vec::new() };
    let (mut files, mut name) = (Vec::new(), String::new());
    let mut chars = names.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(' ' | '#')) | ('$', Some('$')) => name.extend(chars.next()),
            (c, _) if c.is_whitespace() => files.push(mem::take(&mut name)),
            (c, _) => name.push(c),
        }
    }
    files.push(name);
    files.retain(|name| !name.is_empty());
    files
}

fn write(path: &Path, members: Vec<Member<'_>>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write_archive(&mut file, members)?;
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_files() {
        let rule = "out/a-0.o: src/a.hip \\\n  include/a\\ b.h \\\n  c$$d.h x\\#y.h\n";
        assert_eq!(prerequisites(rule), ["src/a.hip", "include/a b.h", "c$d.h", "x#y.h"]);
        assert_eq!(prerequisites("a.o:"), [""; 0]);
    }
}
