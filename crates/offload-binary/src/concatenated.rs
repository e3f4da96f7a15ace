//! Reading several binaries one after the other.

use core::iter::FusedIterator;

use crate::binary::OffloadBinary;
use crate::error::Error;
use crate::to_u64;

/// Reads binaries that lie one after the other in `data`, as a linker leaves them when it puts
/// sections of several object files together.
///
/// Each comes with the offset in bytes of its start in `data`. Zeros before, between and after
/// binaries are skipped, whatever their number; anything else ends the walk with an error, and
/// after an error there is nothing but `None`. Each step costs what
/// [`parse`](OffloadBinary::parse) does, and all together no more than one reading of `data`.
///
/// # Errors
///
/// As [`OffloadBinary::parse`] for a damaged binary, with its place; for bytes that are neither zero nor a binary,
/// [`NotABinary`](crate::ErrorKind::NotABinary) at the start of `data` and
/// [`TrailingData`](crate::ErrorKind::TrailingData) after it.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub fn binaries(data: &[u8]) -> impl FusedIterator<Item = Result<(u64, OffloadBinary<'_>), Error>> {
    Binaries { rest: data, offset: 0 }
}

/// Iterator over concatenated binaries, from [`binaries`].
struct Binaries<'data> {
    rest: &'data [u8],
    /// The offset of `rest`.
    offset: u64,
}

impl<'data> Binaries<'data> {
    /// Skips `count` bytes, everything if there are fewer.
    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
        self.offset = self.offset.saturating_add(to_u64(count));
    }

    fn read(&mut self) -> Result<(u64, OffloadBinary<'data>), Error> {
        let offset = self.offset;
        let binary = OffloadBinary::parse(self.rest).map_err(|error| error.in_binary(offset))?;
        // The binary lies in memory, so its size fits.
        self.skip(usize::try_from(binary.size()).unwrap_or(usize::MAX));
        Ok((offset, binary))
    }
}

impl<'data> Iterator for Binaries<'data> {
    type Item = Result<(u64, OffloadBinary<'data>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let zeros = self.rest.iter().take_while(|&&byte| byte == 0).count();
        self.skip(zeros);
        if self.rest.is_empty() {
            return None;
        }
        let result = self.read();
        if result.is_err() {
            self.rest = &[];
        }
        Some(result)
    }
}

impl FusedIterator for Binaries<'_> {}
