//! A job, independent of the command line.

use std::path::{Path, PathBuf};

use bundle_format::Request;
use bundle_format::text::Leader;

use tool_kit::failure::Failure;
use tool_kit::opened::MaxInput;
use tool_kit::style::{Ours, Text, text};
use tool_kit::{output, special};

/// The form of a bundle, as the type of the files that it holds decides it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileType {
    /// Text, with a comment leader.
    Text(Leader),
    /// A binary bundle.
    Binary,
    /// Sections of the host's object; a binary bundle where the host has none.
    Object,
    /// An archive of objects, which can be read only.
    Archive,
}

impl FileType {
    /// Returns the form for one of the names of `--type`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "bc" | "gch" | "ast" => Some(FileType::Binary),
            "o" => Some(FileType::Object),
            "a" => Some(FileType::Archive),
            name => Leader::for_type(name).map(FileType::Text),
        }
    }

    /// Returns the file type, from the extensions of the files.
    pub fn of_files(files: &[PathBuf]) -> Result<Self, String> {
        let mut found: Option<(Option<Leader>, &Path)> = None;
        for file in files {
            // These have no extension.
            if file.as_os_str() == "-" || special::is_null(file) {
                continue;
            }
            let extension = file.extension().map(|extension| extension.to_string_lossy());
            let leader = extension.and_then(|extension| Leader::for_type(&extension));
            match found {
                Some((before, other)) if before != leader => {
                    return Err(format!(
                        "'{}' and '{}' are of different types: choose one with --type",
                        other.display(),
                        file.display()
                    ));
                }
                _ => found = Some((leader, file)),
            }
        }
        Ok(match found {
            Some((Some(leader), _)) => FileType::Text(leader),
            _ => FileType::Object,
        })
    }
}

/// A bundle to make.
#[derive(Clone, Debug)]
pub struct BundleJob {
    /// The form of the container.
    pub file_type: FileType,
    /// Bundle entry IDs, exactly as they are written, with the files of the entries; `-` is standard input. No rule
    /// of composition is checked here.
    pub entries: Vec<(String, PathBuf)>,
    /// Every code object of a binary bundle starts at a multiple of it.
    pub align: u64,
    /// `true` if and how the bundle is compressed; no object is.
    pub compression: Option<ccob::WriteOptions>,
    /// Limit for entries that are not files.
    pub max_input: MaxInput,
    /// `-` is standard output.
    pub output: PathBuf,
    /// Nothing is written, `Notes::commands` says what would be.
    pub dry_run: bool,
}

/// Entries to take out of a file.
#[derive(Clone, Debug)]
pub struct UnbundleJob {
    /// The form of the container.
    pub file_type: FileType,
    /// `-` is standard input.
    pub(crate) input: PathBuf,
    /// The requests, and the files for them; `-` is standard output.
    pub(crate) targets: Vec<(Request, PathBuf)>,
    /// Missing entries become empty files. If it holds no bundle at all, the host gets all of it.
    pub(crate) allow_missing: bool,
    /// Archives only: members that break a rule of composition are errors.
    pub(crate) check_input_archive: bool,
    /// Limits of decompression and others.
    pub(crate) limits: fat_object::Options,
    /// Archives only: notes say how each member is stored. Other files always have a note.
    pub(crate) verbose: bool,
    /// Every comparison of an entry with a target is noted.
    pub(crate) debug: bool,
    /// Nothing is written, `Notes::commands` says what would be.
    pub dry_run: bool,
}

impl UnbundleJob {
    /// Returns an error if a file is the output for two targets: it can be written once only.
    pub(super) fn check_outputs(&self) -> Result<(), Failure> {
        match output::named_twice(self.targets.iter().map(|(_, path)| &**path)) {
            None => Ok(()),
            Some(path) => {
                let path = path.display();
                Err(format!("'{path}': is the output for more than one target").into())
            }
        }
    }
}

/// Output other than errors, line by line.
#[derive(Debug, Default)]
pub struct Notes {
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Statistics of the compression.
    pub(crate) verbose: Vec<String>,
    /// Lines for [`UnbundleJob::debug`].
    pub(crate) debug: Vec<Text>,
    /// The commands of `llvm-objcopy` that do the same to an object.
    pub(crate) commands: Vec<String>,
    /// The places of the entries of a new bundle.
    pub places: Vec<EntryRange>,
}

/// The place of an entry of a new bundle.
#[derive(Clone, Copy, Debug)]
pub struct EntryRange {
    /// From the start of the bundle, as it is before compression; `None` in an object, where it is a section.
    pub offset: Option<u64>,
    pub size: u64,
}

/// Returns the line for [`UnbundleJob::debug`] that LLVM prints about a code object and a wanted target.
pub(super) fn debug_line(verdict: &str, code_object: &str, wanted: &str) -> Text {
    let tab = Ours("\t");
    text!("{verdict} {tab}[CodeObject: {code_object}]{tab}:{tab}[Target: {wanted}]")
}
