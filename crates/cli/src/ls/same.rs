//! Images that differ only in the name of their target.

use std::io;

use fat_object::Copies;
use tool_answers::row::Row;
use tool_kit::style::{self, Out, TARGET, show};
use tool_kit::table::{Align, Table};

/// Returns a total of sizes that tables state.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// Prints which images are the same code for several targets, and what that means.
pub(super) fn print(out: &mut Out<'_>, images: &[&Row]) -> io::Result<()> {
    let total = sum(images.iter().map(|image| image.listed.size()));
    let all = Copies::of(images.iter().filter_map(|one| Some((&one.listed, one.same.as_deref()?))));
    if all.is_empty() {
        return show!(out, "  no two images differ only in the name of their target");
    }
    let mut table = Table::default()
        .numbers(["SIZE", "IMAGES"])
        .column("TARGETS", Align::Left, TARGET)
        .texts(["ONE IMAGE FOR ALL"]);
    for copies in &all {
        table.row(&[
            style::size(copies.size),
            copies.images.to_string(),
            copies.targets.join(" "),
            copies.for_all.unwrap_or("-").to_owned(),
        ]);
    }
    table.print(out, "  ", style::terminal_width())?;
    let more = sum(all.iter().map(Copies::further));
    let (size, share) = (style::size(more), style::percent(more, total));
    show!(out)?;
    show!(out, "  {size} of device code ({share}) are further copies of such images.")?;
    if all.iter().any(|copies| copies.is_estimate) {
        let stored = sum(all.iter().map(|copies| copies.stored));
        show!(
            out,
            "  They take about {} of the file: an estimate, as images are compressed together.",
            style::size(stored)
        )?;
    }
    if all.iter().any(|copies| copies.for_all.is_some()) {
        show!(
            out,
            "  An image for the target in the last column would run on all GPUs of its line: --offload-arch of clang."
        )?;
    }
    if all.iter().filter_map(|copies| copies.for_all).any(|target| target.ends_with("-generic")) {
        show!(out, "  Code for a generic processor may be slower than code for one processor.")?;
    }
    show!(out, "  `offload match --gpu ID` tells what a GPU loads that has no image of its own.")
}
