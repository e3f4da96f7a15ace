//! The header of a member, all of it ASCII.

use zerocopy::{Immutable, IntoBytes};

/// The start of every archive.
pub(crate) const MAGIC: &[u8; 8] = b"!<arch>\n";

/// The most that the ten digits of [`Header::size`] can say.
pub(crate) const MAX_SIZE: u64 = 9_999_999_999;

/// Header of a member. All fields are text, padded with spaces.
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct Header {
    /// Name: ended by `/`, or `/` and an offset in the table of names.
    name: [u8; 16],
    /// Time of the last change.
    time: [u8; 12],
    /// Number of the owner.
    owner: [u8; 6],
    /// Number of the group.
    group: [u8; 6],
    /// Mode, octal.
    mode: [u8; 8],
    /// Bytes of the member without its padding.
    size: [u8; 10],
    /// End of the header: 60 0A.
    end: [u8; 2],
}

/// Returns the header of a member: readable by everyone, without owner and time.
pub(crate) fn member_header(name: &[u8], size: u64) -> Header {
    header([name, b"0", b"0", b"0", b"644"], size)
}

/// Returns the header of an index of symbols.
pub(crate) fn index_header(name: &[u8], size: u64) -> Header {
    header([name, b"0", b"0", b"0", b"0"], size)
}

/// Returns the header of the table of long names.
pub(crate) fn names_header(name: &[u8], size: u64) -> Header {
    header([name, b"", b"", b"", b""], size)
}

/// Callers make sure that the texts fit.
fn header([name, time, owner, group, mode]: [&[u8]; 5], size: u64) -> Header {
    Header {
        name: padded(name),
        time: padded(time),
        owner: padded(owner),
        group: padded(group),
        mode: padded(mode),
        size: padded(size.to_string().as_bytes()),
        end: *b"`\n",
    }
}

fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut field = [b' '; N];
    field.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_llvm() {
        let text = |header: Header| String::from_utf8(header.as_bytes().to_vec()).unwrap();
        assert_eq!(
            text(member_header(b"a.o/", 11)),
            "a.o/            0           0     0     644     11        `\n"
        );
        assert_eq!(
            text(index_header(b"/", 4)),
            "/               0           0     0     0       4         `\n"
        );
        assert_eq!(text(names_header(b"//", MAX_SIZE)), format!("{:<48}9999999999`\n", "//"));
    }
}
