//! The header of a member, all of it ASCII.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What every archive starts with.
pub(crate) const MAGIC: &[u8; 8] = b"!<arch>\n";

/// The most that the ten digits of [`Header::size`] can say.
pub(crate) const MAX_SIZE: u64 = 9_999_999_999;

/// What stands in front of every member. Fields are padded with spaces.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    name: [u8; 16],
    date: [u8; 12],
    owner: [u8; 6],
    group: [u8; 6],
    /// Octal.
    mode: [u8; 8],
    /// Bytes of the member, without the padding behind it.
    size: [u8; 10],
    end: [u8; 2],
}

const _: () = assert!(size_of::<Header>() == 60);

impl Header {
    /// Of a member: readable by all, of nobody and no time.
    pub(crate) fn member(name: &[u8], size: u64) -> Self {
        Header { mode: field(b"644"), ..Self::index(name, size) }
    }

    /// Of an index of symbols.
    pub(crate) fn index(name: &[u8], size: u64) -> Self {
        Header {
            date: field(b"0"),
            owner: field(b"0"),
            group: field(b"0"),
            mode: field(b"0"),
            ..Self::names(name, size)
        }
    }

    /// Of the table of long names.
    pub(crate) fn names(name: &[u8], size: u64) -> Self {
        Header {
            name: field(name),
            date: field(b""),
            owner: field(b""),
            group: field(b""),
            mode: field(b""),
            size: field(size.to_string().as_bytes()),
            end: *b"`\n",
        }
    }
}

/// The text, padded with spaces. Callers make sure that it fits.
fn field<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut field = [b' '; N];
    for (to, from) in field.iter_mut().zip(text) {
        *to = *from;
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_llvm() {
        let text = |header: Header| String::from_utf8(header.as_bytes().to_vec()).unwrap();
        assert_eq!(
            text(Header::member(b"a.o/", 11)),
            "a.o/            0           0     0     644     11        `\n"
        );
        assert_eq!(
            text(Header::index(b"/", 4)),
            "/               0           0     0     0       4         `\n"
        );
        assert_eq!(text(Header::names(b"//", MAX_SIZE)), format!("{:<48}9999999999`\n", "//"));
    }
}
