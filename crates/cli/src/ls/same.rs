//! Images that are equal but for the name of their target.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hasher;
use std::io;

use device_code::places_of_target;
use fat_object::{FileFormat, Image};
use target_id::Processor;
use twox_hash::XxHash3_64;

use super::row::{Hashed, group, stored};
use tool_kit::style::{self, Out, PLAIN, TARGET, show};
use tool_kit::table::{Align, Table};

/// These are hashed in the place of a target.
const ZEROS: &[u8] = &[0; 64];

/// Hashes an image without the name of its target; `None` for formats in which it is not known where that is.
pub(super) fn hash(image: &mut Image<'_, '_>) -> io::Result<Option<String>> {
    if !matches!(image.format(), FileFormat::Elf { .. }) {
        return Ok(None);
    }
    let code = image.bytes()?;
    let Some(places) = places_of_target(&code) else { return Ok(None) };
    let (mut hasher, mut done) = (XxHash3_64::new(), 0);
    for place in places {
        hasher.write(code.get(done..place.start).unwrap_or_default());
        for name in code.get(place.clone()).unwrap_or_default().chunks(ZEROS.len()) {
            hasher.write(ZEROS.get(..name.len()).unwrap_or_default());
        }
        done = place.end;
    }
    hasher.write(code.get(done..).unwrap_or_default());
    Ok(Some(format!("{:016x}", hasher.finish())))
}

/// Images of several targets with the same code.
struct Copies<'i> {
    size: u64,
    count: u64,
    /// Bytes in the file of all but the first one.
    stored: u64,
    /// `true` if that is an estimate.
    is_estimate: bool,
    targets: Vec<String>,
    seen: HashSet<String>,
    ids: Vec<&'i str>,
}

/// Prints which images are the same code for several targets, and what that means.
pub(super) fn print(out: &mut Out<'_>, images: &[&Hashed]) -> io::Result<()> {
    let mut by_hash: BTreeMap<(&str, u64), Copies<'_>> = BTreeMap::new();
    let mut total = 0_u64;
    for image in images {
        let size = image.listed.size();
        total = total.saturating_add(size);
        let Some(hash) = &image.same else { continue };
        let copies = by_hash.entry((hash, size)).or_insert(Copies {
            size,
            count: 0,
            stored: 0,
            is_estimate: false,
            targets: Vec::new(),
            seen: HashSet::new(),
            ids: Vec::new(),
        });
        if copies.count > 0 {
            copies.stored = copies.stored.saturating_add(stored(&image.listed));
            copies.is_estimate |= image.listed.stored_size().is_none();
        }
        copies.count += 1;
        let target = group(&image.listed);
        if copies.seen.insert(target.clone()) {
            copies.targets.push(target);
            copies.ids.push(image.listed.target().id());
        }
    }
    let mut all: Vec<_> = by_hash.into_values().filter(|copies| copies.targets.len() > 1).collect();
    all.sort_by_key(|copies| std::cmp::Reverse(copies.more()));
    if all.is_empty() {
        return show!(out, "  no two images are equal but for the name of their target");
    }
    let mut table = Table::default()
        .column("SIZE", Align::Right, PLAIN)
        .column("IMAGES", Align::Right, PLAIN)
        .column("TARGETS", Align::Left, TARGET)
        .column("ONE IMAGE FOR ALL", Align::Left, PLAIN);
    for copies in &all {
        table.row(&[
            style::size(copies.size),
            copies.count.to_string(),
            copies.targets.join(" "),
            one_for_all(copies).unwrap_or("-").to_owned(),
        ]);
    }
    table.print(out, "  ", style::terminal_width())?;
    let more = all.iter().map(Copies::more).fold(0, u64::saturating_add);
    let (size, share) = (style::size(more), style::percent(more, total));
    show!(out)?;
    show!(out, "  {size} of device code ({share}) are further copies of such images.")?;
    if all.iter().any(|copies| copies.is_estimate) {
        let stored = all.iter().map(|copies| copies.stored).fold(0, u64::saturating_add);
        show!(
            out,
            "  They take about {} of the file: an estimate, as images are compressed together.",
            style::size(stored)
        )?;
    }
    let targets: Vec<_> = all.iter().filter_map(one_for_all).collect();
    if !targets.is_empty() {
        show!(
            out,
            "  An image for the target in the last column would run on all GPUs of its line: --offload-arch of clang."
        )?;
    }
    if targets.iter().any(|target| target.ends_with("-generic")) {
        show!(out, "  Code for a generic processor may be slower than code for one processor.")?;
    }
    show!(out, "  `offload match --gpu ID` tells what a GPU loads that has no image of its own.")
}

impl Copies<'_> {
    /// Returns the bytes of all images but one.
    fn more(&self) -> u64 {
        self.size.saturating_mul(self.count.saturating_sub(1))
    }
}

/// Returns the processor whose code all targets load.
fn one_for_all(copies: &Copies<'_>) -> Option<&'static str> {
    Some(Processor::for_all(&copies.ids)?.name())
}
