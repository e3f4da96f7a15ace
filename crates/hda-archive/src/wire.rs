//! The header of a member, all of it ASCII.

/// The start of every archive.
pub(crate) const MAGIC: &[u8; 8] = b"!<arch>\n";

/// The most that the ten digits of [`Header::size`] can say.
pub(crate) const MAX_SIZE: u64 = 9_999_999_999;

/// The header of every member: name, date, owner, group, mode (octal), bytes of the member without its padding, and
/// two bytes that end it. Fields are padded with spaces.
pub(crate) type Header = [u8; 60];

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
fn header(texts: [&[u8]; 5], size: u64) -> Header {
    let mut header = [b' '; 60];
    let mut rest = &mut header[..];
    let size = size.to_string();
    let fields = texts.into_iter().chain([size.as_bytes(), b"`\n"]);
    for (text, width) in fields.zip([16, 12, 6, 6, 8, 10, 2]) {
        let Some((field, after)) = rest.split_at_mut_checked(width) else { break };
        for (to, from) in field.iter_mut().zip(text) {
            *to = *from;
        }
        rest = after;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_llvm() {
        let text = |header: Header| String::from_utf8(header.to_vec()).unwrap();
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
