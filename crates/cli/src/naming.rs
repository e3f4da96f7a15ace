//! Names of images in tables, messages and files.

use fat_object::{Disagreement, FileFormat};
use target_id::{OffloadKind, Target};

/// Returns the name of an image's target by which `offload ls` counts it.
pub(crate) fn group(target: &Target, id: Option<&str>) -> String {
    let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let kind = target.kind();
    named(target.id())
        .or_else(|| (kind == Some(&OffloadKind::Host)).then(|| "host".to_owned()))
        .or_else(|| triple_text(target).and_then(named))
        .or_else(|| kind.map(ToString::to_string).and_then(|kind| named(&kind)))
        .or_else(|| id.and_then(named))
        .unwrap_or_else(|| "(unnamed)".to_owned())
}

/// Returns the name of an image's target, and the one that it really holds if that differs: `gfx906 (holds gfx1250)`.
pub(crate) fn marked(name: &str, disagreement: Option<&Disagreement>) -> String {
    match disagreement {
        Some(disagreement) => format!("{name} (holds {})", disagreement.found()),
        None => name.to_owned(),
    }
}

/// Returns the triple as people write it: without the empty environment field that bundle entry IDs carry.
pub(crate) fn triple_text(target: &Target) -> Option<&str> {
    let text = target.triple()?.offload_binary_form();
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the name of a format; a dash for an image that was not read.
pub(crate) fn format_text(format: FileFormat) -> String {
    match format {
        FileFormat::NotRead => "-".to_owned(),
        format => format.to_string(),
    }
}
