//! Device code of HIP that moves out of a linked file, to archives beside it, and in again.
//!
//! A wrapper of a file with device code has the magic `HIPF` and leads to a bundle. In a file without, it has the magic `HIPK`,
//! leads to a marker, and its last word is the number that the archives know the bundle by (ROCm's `rocm-kpack`). No address
//! changes either way.

use std::ops::Range;

use byte_parts::Source;

use crate::error::{Error, ErrorKind};
use crate::linked::edit::Format;
use crate::linked::host::{Edited, HostContext, Options};
use crate::linked::registered::{RegisteredWith, wrappers};
use crate::linked::registration::Record;
use crate::linked::{elf, pe};
use crate::output::{NewInputs, Output};

/// A wrapper that registers device code with HIP's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HipWrapper {
    /// The place that it leads to: an offset in the file; `None` where no byte of the file is.
    pub target: Option<u64>,
    /// Its last word: the number of the bundle in archives beside the file.
    pub index: u64,
    /// `true` if the device code is there.
    pub is_moved_out: bool,
}

/// Returns the wrappers of the linked file in the window that lead to HIP's device code, in the order of their addresses; none
/// for a file of another format.
///
/// # Errors
///
/// [`Malformed`](crate::ErrorKind::Malformed), also where wrappers of both sorts are in one file, and
/// [`Read`](crate::ErrorKind::Read).
pub fn hip_wrappers(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
) -> Result<Vec<HipWrapper>, Error> {
    let (with, found) = wrappers(source, window, format, RegisteredWith::Hip)?;
    let is_moved_out = with == RegisteredWith::HipMovedOut;
    let mut all = Vec::new();
    for (wrapper, led) in found {
        let mut record = Record::default();
        source.read_exact_at(wrapper, record.as_flattened_mut())?;
        let [_, _, index] = record.map(u64::from_le_bytes);
        all.push(HipWrapper { target: led.flatten(), index, is_moved_out });
    }
    Ok(all)
}

/// Lays the file in the window out without its sections of HIP's device code. `marker` takes the place of the first bundle, all
/// wrappers lead to it, and have their numbers in their order. The caller has seen that the sections hold nothing but
/// bundles.
///
/// # Errors
///
/// As [`edit`](crate::edit()); [`Refused`](crate::ErrorKind::Refused) also where something else than a wrapper refers to a
/// bundle, and [`NoRoom`](crate::ErrorKind::NoRoom) for a marker that is larger than a page or than the device code.
pub fn move_out(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
    marker: &[u8],
    options: Options,
) -> Result<Edited, Error> {
    let context = HostContext { window, options };
    if marker.len() > 4096 {
        let (needed, available) = (marker.len() as u64, 4096);
        return Err(Error::no_room(needed, available));
    }
    match format {
        Format::LinkedElf => elf::moved_out::move_out(source, context, marker),
        Format::Pe => pe::moved_out::move_out(source, context, marker),
        Format::ElfObject | Format::Coff => Err(unsupported()),
    }
}

/// Lays the file in the window out with device code in the place of its marker. `offsets` has the place of the bundle of each
/// wrapper in the `contents`.
///
/// # Errors
///
/// As [`edit`](crate::edit()); [`Contents`](crate::ErrorKind::Contents) if there is not a place for each wrapper, or one is not
/// in the contents.
pub fn move_in(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
    contents: Output,
    offsets: &[u64],
    options: Options,
    new: &mut dyn NewInputs,
) -> Result<Edited, Error> {
    let context = HostContext { window, options };
    match format {
        Format::LinkedElf => elf::moved_out::move_in(source, context, contents, offsets),
        Format::Pe => pe::moved_out::move_in(source, new, context, contents, offsets),
        Format::ElfObject | Format::Coff => Err(unsupported()),
    }
}

fn unsupported() -> Error {
    Error::unsupported_kind("wrappers of files that are not linked")
}

/// The first bytes of device code that is to come, for the checks of an edit.
pub(crate) const PLACEHOLDER: &[u8; 4] = b"CCOB";

/// Checks that each wrapper gets a place in contents of this size.
pub(crate) fn check_offsets(offsets: &[u64], wrappers: usize, size: u64) -> Result<(), Error> {
    let text = match offsets.iter().find(|&&offset| offset >= size) {
        _ if offsets.len() != wrappers => {
            format!("places of {} bundles for {wrappers} wrappers", offsets.len())
        }
        Some(offset) => format!("a bundle at {offset:#x} of contents of {size:#x} bytes"),
        None => return Ok(()),
    };
    Err(Error::new(ErrorKind::Contents, text))
}

/// Returns the addresses of the bundles at these offsets of contents that lie at `start`.
pub(crate) fn at_offsets(start: u64, offsets: &[u64], wrappers: usize) -> Result<Vec<u64>, Error> {
    if offsets.len() != wrappers {
        return Err(Error::input_changed());
    }
    let addresses = offsets.iter().map(|offset| start.checked_add(*offset));
    addresses.collect::<Option<_>>().ok_or_else(Error::input_changed)
}

/// Returns device code that is to come, of this size.
pub(crate) fn placeholder(size: u64) -> Output {
    let mut contents = Output::new();
    contents.push_bytes(PLACEHOLDER);
    contents.pad_to(size);
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrapper_gets_a_place_in_the_contents() {
        let found =
            |offsets: &[u64]| check_offsets(offsets, 2, 16).map_err(|error| error.to_string());
        assert_eq!(found(&[0, 15]), Ok(()));
        assert_eq!(found(&[0, 16]).unwrap_err(), "a bundle at 0x10 of contents of 0x10 bytes");
        assert_eq!(found(&[16]).unwrap_err(), "places of 1 bundles for 2 wrappers");
        assert_eq!(at_offsets(4096, &[0, 15], 2).unwrap(), [4096, 4111]);
        assert_eq!(at_offsets(4096, &[0, 15], 3).unwrap_err().kind(), ErrorKind::InputChanged);
        assert_eq!(at_offsets(u64::MAX, &[1], 1).unwrap_err().kind(), ErrorKind::InputChanged);
    }
}
