//! The needs of the images of a file: versions of drivers and runtimes.

use std::collections::BTreeMap;
use std::io;

use device_select::Need;
use tool_kit::style::{self, Out};
use tool_kit::table::Table;

/// Prints the needs of images, each with the number of images that have it.
pub(super) fn print<'i>(
    out: &mut Out<'_>,
    needs: impl IntoIterator<Item = &'i Need>,
) -> io::Result<()> {
    let mut counts: BTreeMap<&Need, usize> = BTreeMap::new();
    for need in needs {
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
