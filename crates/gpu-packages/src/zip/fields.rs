//! Numbers of headers that describe new contents.

use zerocopy::little_endian::{U16, U32};

use super::DESCRIPTOR;
use super::deflate::{NewContents, SEARCH};
use super::extra::IN_EXTRA;
use super::wire::Fields;

/// Returns the numbers of a record: in 32 bits, or the marker for the extra field.
pub(super) fn short(value: u64, is_in_extra: bool) -> U32 {
    if is_in_extra { IN_EXTRA } else { u32::try_from(value).unwrap_or(IN_EXTRA) }.into()
}

impl Fields {
    /// Raises the version that is needed to read the member to the version of zip64.
    pub(super) fn need_zip64(&mut self) {
        if self.version.get() & 0xff < 45 {
            self.version.set(45);
        }
    }

    /// Describes new contents, whose sizes may be in the extra field.
    pub(super) fn set_contents(
        &mut self,
        contents: &NewContents,
        is_size_in_extra: bool,
        is_stored_in_extra: bool,
    ) {
        self.flags &= !U16::from(DESCRIPTOR);
        if contents.method == 8 {
            self.flags = self.flags & !U16::from(SEARCH) | U16::from(contents.search);
        }
        self.method = contents.method.into();
        self.crc32 = contents.crc32.into();
        self.stored_size = short(contents.stored_size(), is_stored_in_extra);
        self.size = short(contents.size, is_size_in_extra);
        if is_size_in_extra || is_stored_in_extra {
            self.need_zip64();
        }
    }
}
