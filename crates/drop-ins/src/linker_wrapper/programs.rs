//! Programs that are run: where they are found, how they are shown, and what their end means.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::Files;
use tool_kit::permissions::NewPermissions;
use tool_kit::report::{self, reason};
use tool_kit::style::text;

/// Runs programs, or shows them only.
#[derive(Clone, Copy, Debug)]
pub struct Programs {
    /// `true` to print commands and not run them.
    pub is_dry: bool,
    /// `true` to print commands before they are run.
    pub is_verbose: bool,
    /// Looks for programs beside the name by which this one was called, not beside the file that it leads to.
    pub is_as_called: bool,
}

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Call {
    pub(crate) fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Call { program, arguments }
    }

    /// Runs the program to its end. Arguments that are longer than the system allows go into a file, which compilers and
    /// linkers read.
    pub(crate) fn run(&self, files: &Files) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        match offload_link::response_file(&self.arguments) {
            Some(words) => command.arg(self.response_file(&words, files)?),
            None => command.args(&self.arguments),
        };
        let why = match command.status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(_) => String::new(),
            Err(error) => format!(": {}", reason(&error)),
        };
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        Err(io::Error::other(format!("'{}' failed{why}", name.display())))
    }
}

impl Call {
    /// Writes the arguments to a file, and returns the argument that names it.
    fn response_file(&self, words: &[u8], files: &Files) -> io::Result<OsString> {
        let name = file_name(self.program.as_os_str());
        let path =
            files.write(&name, ".rsp", NewPermissions::PLAIN, |file| file.write_all(words))?;
        let mut argument = OsString::from("@");
        argument.push(path);
        Ok(argument)
    }
}

impl Programs {
    /// Shows a call where this is wanted.
    pub(crate) fn show(self, call: &Call) {
        if !self.is_dry && !self.is_verbose {
            return;
        }
        let mut text = format!(" \"{}\"", call.program.display());
        for argument in &call.arguments {
            text.push(' ');
            text.push_str(&argument.to_string_lossy());
        }
        report::say(&text!("{text}"));
    }

    /// Shows and runs a call.
    pub(crate) fn run(self, call: &Call, files: &Files) -> io::Result<()> {
        self.show(call);
        if self.is_dry { Ok(()) } else { call.run(files) }
    }

    /// Finds a program: in these directories, beside this one, beside the compiler that runs this one, or in
    /// `PATH`. In a dry run its name will do.
    pub(crate) fn find(self, name: &str, directories: &[PathBuf]) -> io::Result<PathBuf> {
        self.path_of(name, directories)
            .or_else(|| self.is_dry.then(|| PathBuf::from(name)))
            .ok_or_else(|| io::Error::other(format!("Unable to find '{name}' in path")))
    }

    /// Returns the path of a program that there is.
    pub(crate) fn path_of(self, name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
        let file = format!("{name}{}", env::consts::EXE_SUFFIX);
        let path = env::var_os("PATH");
        let beside = beside(self.is_as_called);
        let directories = directories.iter().cloned().chain(beside).chain(compiler());
        let directories = directories.chain(path.iter().flat_map(env::split_paths));
        directories.map(|directory| directory.join(&file)).find(|path| is_program(path))
    }
}

/// Returns the directory of this program.
fn beside(is_as_called: bool) -> Option<PathBuf> {
    let program = if is_as_called {
        env::args_os().next().map(PathBuf::from)
    } else {
        env::current_exe().ok()
    };
    program.as_deref().and_then(Path::parent).map(Path::to_owned)
}

/// Returns the directory of the compiler that runs this program: its `clang` is of the release that compiled the
/// objects, and the one in `PATH` may be another or missing.
#[cfg(target_os = "linux")]
fn compiler() -> Option<PathBuf> {
    let parent = std::os::unix::process::parent_id();
    let program = std::fs::read_link(format!("/proc/{parent}/exe")).ok()?;
    let name = program.file_name()?.to_str()?;
    let is_compiler = name.starts_with("clang") || name.starts_with("flang");
    is_compiler.then(|| program.parent().map(Path::to_owned)).flatten()
}

#[cfg(not(target_os = "linux"))]
fn compiler() -> Option<PathBuf> {
    None
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Returns the name of a file for the names of others.
pub(crate) fn file_name(path: &OsStr) -> OsString {
    Path::new(path).file_name().unwrap_or(path).to_owned()
}
