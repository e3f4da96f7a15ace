//! Widths of texts in cells of a terminal, and lines that fit.

use std::borrow::Cow;
use std::iter;

use unicode_width::UnicodeWidthChar;

/// Start and end of the escape sequences of a style.
const STYLE: (&str, char) = ("\x1b[", 'm');

/// Returns the number of cells that a line takes: two for a wide character, none for a style.
pub fn width(line: &str) -> usize {
    plain(line).map(cells).sum()
}

/// Returns the number of cells of a character that is printed.
pub fn cells(c: char) -> usize {
    // Characters that deceive are escaped before.
    c.width().unwrap_or(1)
}

/// Returns the characters of a line without styles.
fn plain(line: &str) -> impl Iterator<Item = char> + '_ {
    let mut rest = line;
    iter::from_fn(move || {
        while let Some((_, after)) =
            rest.strip_prefix(STYLE.0).and_then(|style| style.split_once(STYLE.1))
        {
            rest = after;
        }
        let c = rest.chars().next()?;
        rest = rest.get(c.len_utf8()..)?;
        Some(c)
    })
}

/// Cells by which the further lines of a message are indented more than its first.
pub(crate) const HANGING: usize = 2;

/// Returns a line broken between words where it is wider than `fit` cells. Its further lines are indented by `more` cells than the first. A
/// word that is wider by itself is left whole, so that names can be copied.
pub(crate) fn wrapped(line: &str, fit: usize, more: usize) -> Cow<'_, str> {
    // No character takes more cells than bytes.
    if line.len() <= fit || width(line) <= fit {
        return Cow::Borrowed(line);
    }
    let indent = plain(line).take_while(|&c| c == ' ').count();
    let indent = (indent + more).min(fit / 2);
    let mut broken = String::with_capacity(line.len() + 64);
    // Cells of the current line, and of the gap after them; whether the line has a word.
    let (mut filled, mut gap, mut has_word) = (0, 0, false);
    for (nth, word) in line.split(' ').enumerate() {
        gap += usize::from(nth > 0);
        if word.is_empty() {
            continue;
        }
        let word_width = width(word);
        if has_word && filled + gap + word_width > fit {
            broken.push('\n');
            (filled, gap) = (0, indent);
        }
        broken.extend(iter::repeat_n(' ', gap));
        broken.push_str(word);
        (filled, gap, has_word) = (filled + gap + word_width, 0, has_word || word_width > 0);
    }
    Cow::Owned(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_cells_and_styles_none() {
        assert_eq!(width("名前 a"), 6);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("\x1b[1m\x1b[31mred\x1b[0m"), 3);
        assert_eq!(width("▊ …"), 3);
    }

    #[test]
    fn lines_are_broken_between_words() {
        // Prose has no hanging indent.
        assert_eq!(wrapped("  one two three", 9, 0), "  one two\n  three");
        let wrapped = |line, fit| wrapped(line, fit, HANGING).into_owned();
        assert_eq!(wrapped("one two three", 13), "one two three");
        assert_eq!(wrapped("one two three", 12), "one two\n  three");
        assert_eq!(wrapped("  one  two three", 10), "  one  two\n    three");
        assert_eq!(wrapped("名前 名前 名前", 9), "名前 名前\n  名前");
        assert_eq!(wrapped("\x1b[1mone\x1b[0m two", 7), "\x1b[1mone\x1b[0m two");
        assert_eq!(wrapped("\x1b[1mone\x1b[0m two", 6), "\x1b[1mone\x1b[0m\n  two");
        // Names stay whole.
        assert_eq!(wrapped("a/very/long/name: ok, fine", 10), "a/very/long/name:\n  ok, fine");
        assert_eq!(wrapped("        deep deep", 10), "        deep\n     deep");
        assert_eq!(wrapped("\x1b[1m  deep word\x1b[0m", 8), "\x1b[1m  deep\n    word\x1b[0m");
        assert_eq!(wrapped("a  ", 1), "a");
        assert_eq!(wrapped("a b", 0), "a\nb");
    }
}
