//! "Did you mean": the option whose name is nearest to what was typed.

use super::{Kind, Tool, Visibility, dashes, split_at_equals};

/// The nearest option, with the value that was given to the unknown one. Of equally near ones the first in the table.
pub(super) fn nearest(tool: &Tool, text: &[u8]) -> Option<String> {
    let (name, value) = split_at_equals(text);
    let mut best: Option<(usize, String)> = None;
    for option in tool.all().filter(|option| option.visibility != Visibility::Never) {
        let takes_value = !matches!(option.kind, Kind::Print(_));
        let typed = if takes_value { name } else { text };
        let distance = distance(option.name.as_bytes(), typed);
        if best.as_ref().is_none_or(|(least, _)| distance < *least) {
            let value = value.filter(|value| takes_value && !value.is_empty());
            let value = value.map(|value| format!("={}", String::from_utf8_lossy(value)));
            let written = format!("{}{}", option.name, value.unwrap_or_default());
            best = Some((distance, format!("{}{written}", dashes(&written))));
        }
    }
    best.map(|(_, written)| written)
}

/// Insertions, deletions and replacements that turn one name into the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut left = i + 1;
        let mut diagonal = i;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let above = *cell;
            left = (diagonal + usize::from(x != y)).min(left + 1).min(above + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("archiv", "archive", 1),
            ("image", "images", 1),
        ] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }
}
