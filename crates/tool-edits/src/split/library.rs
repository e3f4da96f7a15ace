//! The device code of a library, as far as it concerns a split.

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
}
