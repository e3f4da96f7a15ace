//! The options of commands that edit files: the destination of the result.

use std::collections::BTreeSet;
use std::io;
use std::path::{self, Path, PathBuf};

use crate::output::Outputs;

use crate::format::ListFormat;

/// The destination of the result.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Destination {
    /// Write the result to OUT, or into the directory OUT/; - is standard output
    ///
    /// A directory is made if it is not there and OUT ends with a slash.
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"])]
    pub output: Option<PathBuf>,
    /// Replace the file itself, atomically
    ///
    /// Mode, owner and extended attributes are kept. Other hard links keep the old contents. On Windows the attributes are kept, such
    /// as hidden and read-only; access rights become those of a new file, and alternate data streams are lost.
    #[arg(long, conflicts_with = "output")]
    pub in_place: bool,
    /// Set the build tag of a wheel, such as 1gfx942
    ///
    /// The tag goes into the file WHEEL, and into the name of the wheel if OUT is a directory. Installers prefer a wheel
    /// with a build tag to one of the same version without.
    #[arg(long, value_name = "TAG", conflicts_with = "in_place")]
    pub build_tag: Option<String>,
    /// Report what would be done, without writing anything
    #[arg(long)]
    pub dry_run: bool,
    /// The format of the report.
    #[command(flatten)]
    pub format: ListFormat,
}

impl Destination {
    /// Returns a usage error that clap cannot find.
    pub fn fault(&self, files: &[PathBuf]) -> Option<&'static str> {
        let is_dash = |path: &Path| path.as_os_str() == "-";
        if let Some(output) = &self.output
            && files.len() > 1
        {
            if !is_directory(output) {
                return Some(
                    "--output takes one FILE or is a directory; several are edited with --in-place",
                );
            }
            let names: BTreeSet<_> = files.iter().map(|file| file.file_name()).collect();
            if names.len() < files.len() {
                return Some("--output is a directory, and two FILEs have the same name");
            }
        }
        if self.in_place && files.iter().any(|path| is_dash(path)) {
            return Some("standard input cannot be edited in place");
        }
        if !self.format.is_text() && self.output.as_deref().is_some_and(is_dash) && !self.dry_run {
            return Some("--format and --output=- would both write to standard output");
        }
        None
    }

    /// Returns whether the new file goes to standard output.
    pub fn is_stdout(&self) -> bool {
        !self.dry_run && self.output.as_deref() == Some(Path::new("-"))
    }

    /// Makes the directory for new files, if the output names one with a slash at its end. Without a commit of the result, it is removed
    /// again, if it is empty then.
    ///
    /// # Errors
    ///
    /// Errors of the system, with the name of the directory.
    pub fn make_directory(&self) -> io::Result<Outputs> {
        let mut outputs = Outputs::default();
        if let Some(output) = self.output.as_deref()
            && is_directory(output)
            && !self.dry_run
        {
            outputs.make_directory(output)?;
        }
        Ok(outputs)
    }

    /// Returns the directory that gets the new file of this one.
    pub fn directory(&self, file: &Path) -> Option<&Path> {
        self.output.as_deref().filter(|output| is_directory(output) && file.as_os_str() != "-")
    }

    /// Returns the path of the new file of this one.
    pub fn target(&self, file: &Path) -> PathBuf {
        match (&self.output, self.directory(file).zip(file.file_name())) {
            (_, Some((directory, name))) => directory.join(name),
            (Some(output), None) => output.clone(),
            (None, None) => file.to_owned(),
        }
    }
}

/// Returns whether a path is a directory, or is to be one: it ends with a slash.
pub fn is_directory(path: &Path) -> bool {
    let last = path.as_os_str().to_string_lossy().chars().next_back();
    path.is_dir() || last.is_some_and(path::is_separator)
}
