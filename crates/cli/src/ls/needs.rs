//! The needs of the images of files: versions of drivers and runtimes.

use std::collections::BTreeMap;
use std::io;

use device_select::Need;
use tool_answers::row::Row;
use tool_kit::style::{self, Out};
use tool_kit::table::Table;

/// The needs of images, each with the number of images that have it.
#[derive(Debug, Default)]
pub(super) struct Needs(BTreeMap<Need, usize>);

impl Needs {
    pub(super) fn add(&mut self, image: &Row) {
        for need in image.needs.iter().flatten() {
            *self.0.entry(*need).or_default() += 1;
        }
    }

    pub(super) fn print(&self, out: &mut Out<'_>) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        style::show!(out)?;
        let mut table = Table::default().texts(["NEEDS", "FOR"]).numbers(["IMAGES"]);
        for (need, count) in &self.0 {
            let software = format!("{} {} or later", need.software(), need.since());
            table.row(&[software, need.what().to_string(), count.to_string()]);
        }
        table.print(out, "  ", style::terminal_width())
    }
}
