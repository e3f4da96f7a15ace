//! Compiling and linking.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hda_archive::{Member, write_archive};
use offload_link::{
    ClangOptions, CommandLinker, DeviceArgument, Inputs, Plan, PlanOptions, RegisterOptions,
};

use crate::error::{Error, ErrorKind};
use crate::language::Language;

/// A build that is complete.
pub(crate) struct Job {
    pub(crate) files: Vec<(PathBuf, Language)>,
    pub(crate) clang: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) link_arguments: Vec<OsString>,
    /// The target triple of the host.
    pub(crate) host: String,
}

impl Job {
    /// Writes the static library of this name, and returns its path. Its entries have the name, too.
    pub(crate) fn run(&self, directory: &Path, name: &str) -> Result<PathBuf, Error> {
        let mut objects = Vec::new();
        for (number, (file, language)) in self.files.iter().enumerate() {
            let path = directory.join(format!("{name}-{number}.o"));
            self.compile(file, *language, &path)?;
            let bytes = fs::read(&path).map_err(|error| Error::of_file(&path, error))?;
            objects.push((path, bytes));
        }
        let mut inputs = Inputs::new();
        for (path, bytes) in &objects {
            inputs.add(&path.to_string_lossy(), bytes)?;
        }
        let plan = Plan::new(&inputs, &PlanOptions::default())?;
        let arguments = self.link_arguments.iter().map(DeviceArgument::new);
        let options = ClangOptions::new().with_compiler_arguments(arguments);
        let linker = CommandLinker::new().with_clang(&self.clang, options);
        let images = plan.link(&mut linker.with_directory(directory))?;
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
        Ok(library)
    }

    /// Compiles a file to a host object with device code.
    fn compile(&self, file: &Path, language: Language, object: &Path) -> Result<(), Error> {
        let mut command = Command::new(&self.clang);
        command.args(language.arguments()).args(&self.arguments);
        command.arg("-c").arg(file).arg("-o").arg(object);
        // Cargo reads the output of a build script.
        let status = command.stdout(Stdio::from(io::stderr())).status();
        let clang = self.clang.display();
        let failed = |why: String| Err(Error::new(ErrorKind::Compiler, why));
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => failed(format!("{}: {clang}: {status}", file.display())),
            Err(error) => failed(format!("{clang}: {error}: CLANG_PATH may name another clang")),
        }
    }
}

fn write(path: &Path, members: Vec<Member<'_>>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write_archive(&mut file, members)?;
    file.flush()
}
