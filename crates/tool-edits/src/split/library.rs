//! The kind of the device code of a library, by which a wheel is split.

use std::io;

use byte_parts::Source;
use fat_edit::survey;
use fat_object::FileFormat;
use object_edit::{ErrorKind, Format};
use tool_inputs::limits::Limits;
use tool_kit::failure::Failure;

use crate::unpacked::Unpacked;

/// The device code of a library.
pub(super) enum Code {
    /// For HIP, with wrappers by which its runtime finds it.
    Wrapped,
    /// In kernel packs already.
    MovedOut,
    /// Other code, or code that no wrapper leads to.
    Other,
    None,
    /// Not known, as the file is damaged in this way.
    Unknown(String),
    /// Some, with wrappers that are damaged in this way.
    Damaged(String),
}

impl Code {
    /// Looks for device code where runtimes look for it.
    pub(super) fn of(library: &Unpacked, limits: &Limits) -> Result<Self, Failure> {
        let (reader, len) = library.subject();
        let mut source = Source::new(reader)?;
        let head = source.peek(&(0..len), FileFormat::SNIFF_LEN)?;
        let format = match FileFormat::sniff(&head) {
            FileFormat::Elf { .. } => Format::LinkedElf,
            FileFormat::Pe => Format::Pe,
            _ => return Ok(Code::None),
        };
        let found = object_edit::hip_wrappers(&mut source, &(0..len), format);
        let fault = match found {
            Ok(wrappers) if wrappers.iter().any(|wrapper| wrapper.is_moved_out) => {
                return Ok(Code::MovedOut);
            }
            Ok(wrappers) if !wrappers.is_empty() => return Ok(Code::Wrapped),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::Read => {
                return Err(io::Error::from(error).into());
            }
            Err(error) => Some(error.to_string()),
        };
        let options = limits.for_file(&limits.options().with_scan(false), len);
        let contents = match survey(reader, &options) {
            Ok(contents) => contents,
            Err(error) if error.io().is_some() => return Err(io::Error::from(error).into()),
            Err(error) => return Ok(Code::Unknown(error.to_string())),
        };
        match (contents.containers(), fault) {
            // Files with debug information have the sections without their bytes.
            ([], _) => Ok(Code::None),
            (_, None) => Ok(Code::Other),
            (_, Some(fault)) => Ok(Code::Damaged(fault)),
        }
    }
}
