//! Names that are nearest to what was typed.

/// Letters that are inserted, left out, replaced, or swapped with the next, to get from one name to the other. Upper and
/// lower case are alike.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

/// Returns at most two of the names nearest to the typed one, if they are near enough for a typing error.
pub(crate) fn nearest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let most = 2.min(typed.chars().count() / 3);
    let mut near: Vec<_> = names
        .into_iter()
        // Much longer text cannot be near, and may be very long.
        .filter(|name| name.len().abs_diff(typed.len()) <= 4 * most)
        .map(|name| (distance(name, typed), name))
        .filter(|(distance, name)| *distance <= most && *name != typed)
        .collect();
    near.sort();
    near.dedup();
    let least = near.first().map_or(0, |(least, _)| *least);
    near.into_iter()
        .take_while(|(distance, _)| *distance == least)
        .map(|(_, name)| name)
        .take(2)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_typing_errors() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("gfx90a", "GFX90A", 0),
            ("generic", "gneric", 1),
            ("generic", "egneric", 1),
            ("sm_90", "sm90", 1),
            ("abcd", "badc", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }
}
