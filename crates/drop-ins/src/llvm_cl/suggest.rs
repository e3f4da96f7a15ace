//! "Did you mean": the option whose name is nearest to what was typed.

use super::table::{Kind, Tool, Visibility, dashes, split_at_equals};

/// Returns the nearest option, with the value that was given to the unknown one. Prefers the first in the table.
pub(super) fn nearest(tool: &Tool, text: &[u8]) -> Option<String> {
    let (name, value) = split_at_equals(text);
    let mut best: Option<(usize, String)> = None;
    for option in tool.all().filter(|option| option.visibility != Visibility::Never) {
        let takes_value = !matches!(option.kind, Kind::Print(_));
        let typed = if takes_value { name } else { text };
        let distance =
            strsim::generic_levenshtein(&option.name.bytes().collect::<Vec<_>>(), &typed.to_vec());
        if best.as_ref().is_none_or(|(least, _)| distance < *least) {
            let value = value.filter(|value| takes_value && !value.is_empty());
            let written = match value {
                Some(value) => format!("{}={}", option.name, String::from_utf8_lossy(value)),
                None => option.name.to_owned(),
            };
            best = Some((distance, format!("{}{written}", dashes(&written))));
        }
    }
    best.map(|(_, written)| written)
}
