//! Names that are like a pattern.

use alloc::vec::Vec;

/// Returns whether a name is like a pattern, in which `*` matches any characters and `?` one. Case matters.
///
/// ```
/// use byte_parts::is_like;
///
/// assert!(is_like("cutlass::gemm<float*>", "*gemm*"));
/// assert!(is_like("abc", "a?c") && !is_like("ac", "a?c"));
/// ```
#[must_use]
pub fn is_like(name: &str, pattern: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut taken) = (0, 0);
    // The place after the last star, and the end of the characters that the star matches so far.
    let mut star = None;
    while let Some(char) = name.get(taken) {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, taken));
            }
            Some(one) if *one == '?' || one == char => {
                at += 1;
                taken += 1;
            }
            _ => {
                let Some((after, end)) = star else { return false };
                (at, taken) = (after, end + 1);
                star = Some((after, taken));
            }
        }
    }
    pattern.iter().skip(at).all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("add", "add", true),
            ("add", "add2", false),
            ("*", "", true),
            ("?", "", false),
            ("", "a", false),
            ("*gemm*", "cutlass::gemm<float*>", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a?c*", "abc", true),
            ("*ab", "aab", true),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
            ("*a*b*", "xxaxxbxx", true),
            ("\u{e4}?", "\u{e4}\u{f6}", true),
            ("A", "a", false),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{pattern} {name}");
        }
    }
}
