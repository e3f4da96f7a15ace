//! Images that differ only in the name of their target.

use std::hash::Hasher;
use std::io;

use device_code::places_of_target;
use fat_object::{Copies, FileFormat, Image};
use twox_hash::XxHash3_64;

use super::row::Hashed;
use tool_kit::style::{self, Out, TARGET, show};
use tool_kit::table::{Align, Table};

/// Hashes an image without the name of its target; `None` for formats in which it is not known where that is.
pub(super) fn hash(image: &mut Image<'_, '_>) -> io::Result<Option<String>> {
    if !matches!(image.format(), FileFormat::Elf { .. }) {
        return Ok(None);
    }
    let code = image.bytes()?;
    let Some(places) = places_of_target(&code) else { return Ok(None) };
    let (mut hasher, mut rest) = (XxHash3_64::new(), 0);
    for place in places {
        let (Some(before), Some(name)) = (code.get(rest..place.start), code.get(place.clone()))
        else {
            return Ok(None);
        };
        hasher.write(before);
        name.iter().for_each(|_| hasher.write_u8(0));
        rest = place.end;
    }
    hasher.write(code.split_at(rest).1);
    Ok(Some(format!("{:016x}", hasher.finish())))
}

/// Returns a total of sizes that tables state.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// Prints which images are the same code for several targets, and what that means.
pub(super) fn print(out: &mut Out<'_>, images: &[&Hashed]) -> io::Result<()> {
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
