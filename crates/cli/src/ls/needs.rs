//! The needs of the images of a file: versions of drivers and runtimes.

use std::collections::BTreeMap;
use std::io;

use device_select::{Need, needs};
use fat_object::ImageInfo;
use serde::Serialize;

use tool_kit::style::{self, Out};
use tool_kit::table::Table;

/// A need; the fields of one JSON object, in this order.
#[derive(Debug, Serialize)]
pub(super) struct Record {
    software: String,
    since: String,
    what: String,
}

/// Returns what an image needs, for JSON.
pub(super) fn records(image: &ImageInfo) -> Vec<Record> {
    let record = |need: Need| Record {
        software: need.software().to_string(),
        since: need.since().to_string(),
        what: need.what().to_string(),
    };
    needs(image).into_iter().map(record).collect()
}

/// Prints the needs of images, each with the number of those that have it.
pub(super) fn print<'i>(
    out: &mut Out<'_>,
    images: impl IntoIterator<Item = &'i ImageInfo>,
) -> io::Result<()> {
    let mut counts: BTreeMap<Need, usize> = BTreeMap::new();
    for need in images.into_iter().flat_map(needs) {
        *counts.entry(need).or_default() += 1;
    }
    if counts.is_empty() {
        return Ok(());
    }
    style::show!(out)?;
    let mut table = Table::default().texts(["NEEDS", "FOR"]).numbers(["IMAGES"]);
    for (need, count) in counts {
        let software = format!("{} {} or later", need.software(), need.since());
        table.row(&[software, need.what().to_string(), count.to_string()]);
    }
    table.print(out, "  ", style::terminal_width())
}
