//! Layout of an archive, before a byte of it is written.

use std::collections::HashMap;
use std::fmt;

use byte_parts::Layout;
use zerocopy::IntoBytes;

use crate::error::{Error, ErrorKind};
use crate::symbols::Symbols;
use crate::wire::{Header, MAGIC, MAX_SIZE, index_header, member_header, names_header};

fn padding(size: u64) -> &'static [u8] {
    if size.is_multiple_of(2) { b"" } else { b"\n" }
}

/// Collects the members of an archive of the GNU variant, to lay it out from their names, sizes and symbols. Inputs of
/// the layout are the members, by index.
///
/// Byte for byte what LLVM 22's archive writer makes (`llvm-ar rcD --format=gnu`): every member at an even offset,
/// names of 16 bytes and more, or with a `/`, in a table that has each name once, an index when a member is an
/// object file or bitcode, and with 64-bit offsets (`/SYM64/`) when a member starts at 4 GiB or later.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct LayoutBuilder {
    members: Vec<(Header, u64)>,
    /// Offset of each member's header, from the first header.
    starts: Vec<u64>,
    end: u64,
    /// The table of long names, and where each is.
    long_names: Vec<u8>,
    places: HashMap<Vec<u8>, usize>,
    /// Symbols of each member.
    counts: Vec<u64>,
    symbol_names: Vec<u8>,
    has_object: bool,
}

impl LayoutBuilder {
    /// Starts an archive without members.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a member of `size` bytes at the end; [`Symbols::read`] finds `symbols` in it.
    ///
    /// # Errors
    ///
    /// [`Usage`](crate::ErrorKind::Usage) for the name, [`Limit`](crate::ErrorKind::Limit) for the size. Nothing was added then.
    pub(crate) fn push(
        &mut self,
        name: &[u8],
        size: u64,
        symbols: Option<&Symbols>,
    ) -> Result<(), Error> {
        if name.is_empty() || name.iter().any(|byte| matches!(byte, b'\n' | 0)) {
            let text = "the name is empty, or has a line break or nul";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if size > MAX_SIZE {
            return Err(Error::too_large("the member", size));
        }
        let stored = if name.len() >= 16 || name.contains(&b'/') {
            format!("/{}", self.long_name(name)).into_bytes()
        } else {
            [name, b"/"].concat()
        };
        self.members.push((member_header(&stored, size), size));
        self.starts.push(self.end);
        // Sizes have ten digits: memory is full of headers long before the sum could overflow.
        self.end += 60 + size.next_multiple_of(2);
        self.counts.push(symbols.map_or(0, Symbols::len));
        if let Some(symbols) = symbols {
            self.has_object = true;
            self.symbol_names.extend_from_slice(symbols.as_bytes());
        }
        Ok(())
    }

    /// Returns the offset of a name in the table of long names.
    fn long_name(&mut self, name: &[u8]) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = self.long_names.len();
        self.places.insert(name.to_vec(), place);
        self.long_names.extend_from_slice(name);
        self.long_names.extend_from_slice(b"/\n");
        place
    }

    /// Lays out the archive.
    ///
    /// # Errors
    ///
    /// [`Limit`](crate::ErrorKind::Limit) for an index or a table of names of 10^10 bytes, and for more than 2^32 symbols
    /// in an index with offsets of 32 bits.
    pub(crate) fn finish(self) -> Result<Layout, Error> {
        self.finish_with(1 << 32)
    }

    /// Finishes as [`finish`](Self::finish) does, with 64-bit offsets if the last member's header is at this offset or
    /// later.
    fn finish_with(mut self, wide_from: u64) -> Result<Layout, Error> {
        let mut head = MAGIC.to_vec();
        let names = self.name_table()?;
        if self.has_object && self.symbol_names.is_empty() {
            // LLVM pads an index without symbols for the tools of Solaris.
            self.symbol_names.extend_from_slice(&[0; 3]);
        }
        let index_size = |width: u64| {
            let size = (self.counts.iter().sum::<u64>() + 1) * width;
            (size + to_u64(self.symbol_names.len())).next_multiple_of(2)
        };
        let first_member = |width| 8 + 60 + index_size(width) + to_u64(names.len());
        let last_start = self.starts.last().copied().unwrap_or(0);
        let narrow = first_member(4) + last_start < wide_from;
        if !self.symbol_names.is_empty() {
            let width = if narrow { 4 } else { 8 };
            let size = index_size(width);
            if size > MAX_SIZE {
                return Err(Error::too_large("the index of symbols", size));
            }
            let name: &[u8] = if narrow { b"/" } else { b"/SYM64/" };
            head.extend_from_slice(index_header(name, size).as_bytes());
            let body = head.len();
            self.write_index(&mut head, narrow, first_member(width))?;
            head.extend_from_slice(&self.symbol_names);
            if !(head.len() - body).is_multiple_of(2) {
                head.push(0);
            }
        }
        head.extend_from_slice(&names);
        let mut layout = Layout::new(self.members.iter().map(|&(_, size)| size));
        layout.push_bytes(&head);
        for (index, (header, size)) in self.members.iter().enumerate() {
            layout.push_bytes(header.as_bytes());
            layout.push_input(index, 0..*size);
            layout.push_bytes(padding(*size));
        }
        Ok(layout)
    }

    /// Returns the member that holds the long names, with its header; empty when there are none.
    fn name_table(&self) -> Result<Vec<u8>, Error> {
        if self.long_names.is_empty() {
            return Ok(Vec::new());
        }
        let size = to_u64(self.long_names.len()).next_multiple_of(2);
        if size > MAX_SIZE {
            return Err(Error::too_large("the table of names", size));
        }
        let header = names_header(b"//", size);
        let padding = padding(to_u64(self.long_names.len()));
        Ok([header.as_bytes(), &self.long_names, padding].concat())
    }

    /// Writes the count of symbols, and for each the offset of its member's header.
    fn write_index(&self, head: &mut Vec<u8>, narrow: bool, first: u64) -> Result<(), Error> {
        let count: u64 = self.counts.iter().sum();
        let mut number = |number: u64| {
            if narrow {
                let number = u32::try_from(number).map_err(|_| {
                    let text = format!(
                        "the index of symbols has {count} entries: the ar format allows at most 4294967295"
                    );
                    Error::new(ErrorKind::Limit, text)
                })?;
                head.extend_from_slice(&number.to_be_bytes());
            } else {
                head.extend_from_slice(&number.to_be_bytes());
            }
            Ok::<_, Error>(())
        };
        number(count)?;
        for (start, count) in self.starts.iter().zip(&self.counts) {
            for _ in 0..*count {
                number(first + start)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for LayoutBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayoutBuilder")
            .field("members", &self.members.len())
            .finish_non_exhaustive()
    }
}

fn to_u64(len: usize) -> u64 {
    len as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use byte_parts::Part;

    /// Returns the bytes before the contents of the first member.
    fn head(layout: &Layout) -> Vec<u8> {
        let bytes = layout.parts().iter().map_while(|part| match part {
            Part::Bytes(bytes) => Some(bytes),
            _ => None,
        });
        bytes.collect::<Vec<_>>().concat()
    }

    fn symbols(names: &[&str]) -> Symbols {
        names.iter().collect()
    }

    #[test]
    fn offsets_beyond_4_gib_need_the_wide_index() {
        let mut builder = LayoutBuilder::new();
        builder.push(b"a", 3 << 30, Some(&symbols(&["f", "g"]))).unwrap();
        builder.push(b"b", 3 << 30, Some(&symbols(&["h"]))).unwrap();
        // The last member may end beyond 4 GiB: it starts before.
        let narrow = builder.clone().finish().unwrap();
        let first = 8 + 60 + 4 * 4 + 6;
        let bytes = head(&narrow);
        assert_eq!(bytes[8..24], *b"/               ");
        assert_eq!(bytes[68..72], 3u32.to_be_bytes());
        assert_eq!(bytes[72..76], u32::try_from(first).unwrap().to_be_bytes());
        assert_eq!(narrow.size(), u64::try_from(first).unwrap() + (6 << 30) + 120);

        builder.push(b"c", 1, None).unwrap();
        let wide = builder.finish().unwrap();
        let first = 8 + 60 + 4 * 8 + 6;
        let bytes = head(&wide);
        assert_eq!(bytes[8..24], *b"/SYM64/         ");
        assert_eq!(bytes.len(), first + 60);
        let numbers: Vec<u64> =
            bytes[68..100].chunks(8).map(|n| u64::from_be_bytes(n.try_into().unwrap())).collect();
        let first = u64::try_from(first).unwrap();
        assert_eq!(numbers, [3, first, first, first + (3 << 30) + 60]);
        assert_eq!(bytes[100..106], *b"f\0g\0h\0");
        assert_eq!(wide.size(), first + (6 << 30) + 180 + 2);
    }

    #[test]
    fn the_wide_index_starts_at_exactly_4_gib() {
        let mut builder = LayoutBuilder::new();
        builder.push(b"a", 10, Some(&symbols(&["f"]))).unwrap();
        builder.push(b"b", 10, Some(&symbols(&["g"]))).unwrap();
        let last_header = 8 + 60 + 12 + 4 + 70;
        let name = |layout: &Layout| head(layout)[8..16].to_vec();
        assert_eq!(name(&builder.clone().finish_with(last_header).unwrap()), b"/SYM64/ ");
        assert_eq!(name(&builder.finish_with(last_header + 1).unwrap()), b"/       ");
    }

    /// Output of LLVM 22: `SYM64_THRESHOLD=1 llvm-ar qcD OUT abcdefghijklmnop.o abcdefghijklmnop.o`.
    #[test]
    fn the_wide_index_is_that_of_llvm() {
        let mut builder = LayoutBuilder::new();
        for _ in 0..2 {
            builder.push(b"abcdefghijklmnop.o", 600, Some(&symbols(&["answer"]))).unwrap();
        }
        let layout = builder.finish_with(1).unwrap();
        let expected = [
            &b"!<arch>\n"[..],
            b"/SYM64/         0           0     0     0       38        `\n",
            &[0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 0, 0, 0, 0, 0, 0, 0xba],
            &[0, 0, 0, 0, 0, 0, 3, 0x4e],
            b"answer\0answer\0",
            b"//                                              20        `\n",
            b"abcdefghijklmnop.o/\n",
            b"/0              0           0     0     644     600       `\n",
        ]
        .concat();
        assert_eq!(head(&layout), expected);
        assert_eq!(layout.size(), 1506);
    }

    #[test]
    fn an_object_without_symbols_makes_an_empty_index() {
        let mut builder = LayoutBuilder::new();
        builder.push(b"a", 0, Some(&Symbols::default())).unwrap();
        let bytes = head(&builder.finish().unwrap());
        assert_eq!(bytes[68..76], [0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[76..78], *b"a/");
    }

    #[test]
    fn members_that_do_not_fit_a_header_are_refused() {
        let mut builder = LayoutBuilder::new();
        for name in [&b""[..], b"a\nb", b"a\0"] {
            assert_eq!(builder.push(name, 0, None).unwrap_err().kind(), ErrorKind::Usage);
        }
        assert!(builder.push(b"a", MAX_SIZE, None).is_ok());
        let error = builder.push(b"a", MAX_SIZE + 1, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(builder.finish().unwrap().sizes(), [MAX_SIZE]);
    }
}
