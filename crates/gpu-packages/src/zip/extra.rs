//! Zip64 extra fields.

use std::ops::Range;

use zerocopy::{FromBytes, IntoBytes};

use super::wire::ExtraHeader;
use crate::path::Shown;

/// The number that says that the value is in the zip64 extra field.
pub(super) const IN_EXTRA: u32 = u32::MAX;

/// Returns the places of the extra fields in their area, each with its tag: header and data. Bytes that are not a field
/// end it.
pub(super) fn fields(area: &[u8]) -> impl Iterator<Item = (u16, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (header, data) = ExtraHeader::ref_from_prefix(area.get(at..)?).ok()?;
        let size = usize::from(header.size.get());
        if data.len() < size {
            return None;
        }
        let start = at;
        at += 4 + size;
        Some((header.tag.get(), start..at))
    })
}

/// Returns the place of the data of the zip64 extra field.
pub(super) fn zip64(area: &[u8]) -> Option<Range<usize>> {
    let (_, place) = fields(area).find(|(tag, _)| *tag == 1)?;
    Some(place.start + 4..place.end)
}

/// The tag of the Unicode path.
const UNICODE_PATH: u16 = 0x7075;

/// Returns why programs may read another name or other sizes from the area: a Unicode path that differs, or a field that
/// is there twice.
pub(super) fn fault(area: &[u8], name: &[u8]) -> Option<String> {
    let mut seen = [false; 2];
    for (tag, place) in fields(area) {
        let (is_known, what) = match (tag, &mut seen) {
            (1, [is_known, _]) => (is_known, "zip64 extra fields"),
            (UNICODE_PATH, [_, is_known]) => (is_known, "Unicode paths"),
            _ => continue,
        };
        if std::mem::replace(is_known, true) {
            return Some(format!("expected one of its {what}, found several"));
        }
        if tag != UNICODE_PATH {
            continue;
        }
        // Header of the field, version and CRC-32 are before the path.
        match area.get(place.start + 9..place.end) {
            Some(path) if path == name => {}
            Some(path) => {
                return Some(format!("its Unicode path is another name: {}", Shown(path)));
            }
            None => return Some("its Unicode path is cut short".to_owned()),
        }
    }
    None
}

/// The values of a record that may lie in its zip64 extra field. `None` is a number of the record itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) size: Option<usize>,
    pub(super) stored_size: Option<usize>,
    pub(super) offset: Option<usize>,
}

/// Returns the places of values in the area, in the order of the specification; `None` if the field is too short.
pub(super) fn places(
    area: &[u8],
    size: u32,
    stored_size: u32,
    offset: Option<u32>,
) -> Option<Places> {
    let wanted = [Some(size), Some(stored_size), offset].map(|value| value == Some(IN_EXTRA));
    if wanted == [false; 3] {
        return Some(Places::default());
    }
    let data = zip64(area)?;
    let mut at = data.start;
    let mut places = [None; 3];
    for (place, is_wanted) in places.iter_mut().zip(wanted) {
        if is_wanted {
            *place = Some(at);
            at += 8;
        }
    }
    let [size, stored_size, offset] = places;
    (at <= data.end).then_some(Places { size, stored_size, offset })
}

/// Returns the value at a place in the area, or else the value of the record.
pub(super) fn value(area: &[u8], place: Option<usize>, short: u32) -> u64 {
    let Some(at) = place else { return short.into() };
    // Places are in the area.
    let long = area.get(at..).and_then(|rest| rest.first_chunk());
    long.map_or(0, |long| u64::from_le_bytes(*long))
}

/// Returns the area with a new zip64 field of these values in the place of the old one, or at its start; without one if
/// there are no values.
pub(super) fn with_zip64(area: &[u8], values: &[u64]) -> Vec<u8> {
    let mut new = Vec::new();
    if let Ok(size) = u16::try_from(values.len() * 8)
        && size > 0
    {
        new.extend_from_slice(ExtraHeader { tag: 1.into(), size: size.into() }.as_bytes());
        new.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    let place = fields(area).find(|(tag, _)| *tag == 1).map_or(0..0, |(_, place)| place);
    [area.split_at(place.start).0, &new, area.split_at(place.end).1].concat()
}
