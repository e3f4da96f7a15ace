//! Numbers as LLVM reads them: decimal, or with the prefix `0x`, `0b`, `0o` or `0`.

/// Returns a number of 32 bits.
pub(super) fn unsigned(text: &[u8]) -> Option<u32> {
    u32::try_from(magnitude(text)?).ok()
}

/// Parses a 32-bit number, with a minus before the prefix if it is negative.
pub(super) fn signed(text: &[u8]) -> Option<i32> {
    let number = match text.strip_prefix(b"-") {
        Some(rest) => -i128::from(magnitude(rest)?),
        None => i128::from(magnitude(text)?),
    };
    i32::try_from(number).ok()
}

fn magnitude(text: &[u8]) -> Option<u64> {
    let (digits, radix) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (rest, 16),
        [b'0', b'b' | b'B', rest @ ..] => (rest, 2),
        [b'0', b'o', rest @ ..] => (rest, 8),
        [b'0', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => (rest, 8),
        digits => (digits, 10),
    };
    // The standard library takes a plus, LLVM does not.
    let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_llvm() {
        for (text, number) in [
            ("0", Some(0)),
            ("5", Some(5)),
            ("010", Some(8)),
            ("0x10", Some(16)),
            ("0X1f", Some(31)),
            ("0b11", Some(3)),
            ("0B1", Some(1)),
            ("0o17", Some(15)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("08", None),
            ("0x", None),
            ("", None),
            ("-1", None),
            ("+5", None),
            ("0x+5", None),
            (" 5", None),
            ("5 ", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), number, "{text:?}");
        }
        for (text, number) in [
            ("-7", Some(-7)),
            ("-0x10", Some(-16)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("--1", None),
            ("-", None),
        ] {
            assert_eq!(signed(text.as_bytes()), number, "{text:?}");
        }
    }
}
