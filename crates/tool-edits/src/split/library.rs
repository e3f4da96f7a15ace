//! A library of a wheel: unpacked, split, and packed again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use byte_parts::Source;
use fat_edit::survey;
use fat_object::FileFormat;
use object_edit::{ErrorKind, Format};
use tool_inputs::limits::Limits;
use tool_kit::failure::Failure;
use tool_kit::positioned::Positioned;
use tool_kit::scratch;

/// The contents of temporary files.
const MEMBER: &str = "a member of a wheel";

/// A member of a wheel, in a temporary file.
pub(super) struct Unpacked {
    file: File,
    size: u64,
}

/// The device code of a library, as far as it concerns a split.
pub(super) enum Code {
    /// For HIP, with wrappers by which its runtime finds it.
    Wrapped,
    /// In kernel packs already.
    MovedOut,
    /// Other code, or code that no wrapper leads to.
    Other,
    None,
}

impl Unpacked {
    pub(super) fn read(contents: &mut dyn Read) -> io::Result<Self> {
        let mut file = scratch::file(MEMBER)?;
        let size = io::copy(contents, &mut file).map_err(|error| scratch::copying(MEMBER, error))?;
        Ok(Unpacked { file, size })
    }

    /// Returns the file with its length.
    pub(super) fn subject(&self) -> (Positioned<'_>, u64) {
        (Positioned::new(&self.file), self.size)
    }

    /// Looks for device code where runtimes look for it.
    pub(super) fn code(&self, limits: &Limits) -> Result<Code, Failure> {
        let (reader, len) = self.subject();
        let mut source = Source::new(reader)?;
        let head = source.peek(&(0..len), FileFormat::SNIFF_LEN)?;
        let format = match FileFormat::sniff(&head) {
            FileFormat::Elf { .. } => Format::LinkedElf,
            FileFormat::Pe => Format::Pe,
            _ => return Ok(Code::None),
        };
        let wrappers = match object_edit::hip_wrappers(&mut source, &(0..len), format) {
            Ok(wrappers) => wrappers,
            Err(error) if error.kind() == ErrorKind::Read => {
                return Err(io::Error::from(error).into());
            }
            Err(error) => return Err(error.to_string().into()),
        };
        if wrappers.iter().any(|wrapper| wrapper.is_moved_out) {
            return Ok(Code::MovedOut);
        }
        if !wrappers.is_empty() {
            return Ok(Code::Wrapped);
        }
        let options = limits.for_file(&limits.options().with_scan(false), len);
        let contents = survey(reader, &options).map_err(|error| error.to_string())?;
        Ok(if contents.containers().is_empty() { Code::None } else { Code::Other })
    }

    /// Returns a file from its start that `write` writes.
    pub(super) fn rewritten(
        write: impl FnOnce(&mut File) -> Result<(), fat_edit::Error>,
    ) -> Result<File, Failure> {
        let mut file = scratch::file(MEMBER)?;
        write(&mut file).map_err(|error| match error.io() {
            Some(_) => Failure::from(scratch::copying(MEMBER, error.into())),
            None => error.to_string().into(),
        })?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}
