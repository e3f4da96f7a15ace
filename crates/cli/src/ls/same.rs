//! Images that are equal but for the name of their target.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::{self, Write};

use device_code::erase_target;
use fat_object::{FileFormat, Image};
use target_id::{Processor, TargetId};
use twox_hash::XxHash3_64;

use super::row::{Hashed, group};
use crate::style::{self, PLAIN, TARGET};
use crate::table::{Align, Table};

/// Hashes an image without the name of its target; `None` for formats in which it is not known where that is.
pub(super) fn hash(image: &mut Image<'_, '_>) -> io::Result<Option<String>> {
    if !matches!(image.format(), FileFormat::Elf { .. }) {
        return Ok(None);
    }
    let mut code = match image.code()? {
        Some(code) => code,
        None => {
            let mut code = Vec::new();
            image.pieces(&mut |piece| {
                code.extend_from_slice(piece);
                Ok(())
            })?;
            code
        }
    };
    if !erase_target(&mut code) {
        return Ok(None);
    }
    let mut hasher = XxHash3_64::new();
    hasher.write(&code);
    Ok(Some(format!("{:016x}", hasher.finish())))
}

/// Images of several targets with the same code.
struct Copies<'i> {
    size: u64,
    count: u64,
    targets: Vec<String>,
    ids: Vec<&'i str>,
}

/// Prints which images are the same code for several targets, and what that means.
pub(super) fn print(out: &mut dyn Write, images: &[&Hashed]) -> io::Result<()> {
    let mut by_hash: BTreeMap<(&str, u64), Copies<'_>> = BTreeMap::new();
    let mut total = 0_u64;
    for image in images {
        let size = image.listed.size();
        total = total.saturating_add(size);
        let Some(hash) = &image.same else { continue };
        let copies = by_hash.entry((hash, size)).or_insert(Copies {
            size,
            count: 0,
            targets: Vec::new(),
            ids: Vec::new(),
        });
        copies.count += 1;
        let target = group(&image.listed);
        if !copies.targets.contains(&target) {
            copies.targets.push(target);
            copies.ids.push(image.listed.target().id());
        }
    }
    let mut all: Vec<_> = by_hash.into_values().filter(|copies| copies.targets.len() > 1).collect();
    all.sort_by_key(|copies| std::cmp::Reverse(copies.more()));
    if all.is_empty() {
        return writeln!(out, "  no two images are equal but for the name of their target");
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
            generic(&copies.ids).map_or_else(|| "-".to_owned(), |one| one.name().to_owned()),
        ]);
    }
    table.print(out, "  ", style::terminal_width())?;
    let more = all.iter().map(Copies::more).fold(0, u64::saturating_add);
    let (size, share) = (style::size(more), style::percent(more, total));
    writeln!(out)?;
    writeln!(out, "  {size} of device code ({share}) are further copies of such images.")?;
    let is_any = all.iter().any(|copies| generic(&copies.ids).is_some());
    if is_any {
        writeln!(
            out,
            "  Code for a generic processor serves all of its processors with one image: --offload-arch=NAME of clang."
        )?;
    }
    writeln!(out, "  `offload match --gpu ID` tells what a GPU loads that has no image of its own.")
}

impl Copies<'_> {
    /// Returns the bytes of all images but one.
    fn more(&self) -> u64 {
        self.size.saturating_mul(self.count.saturating_sub(1))
    }
}

/// Returns the generic processor that covers all of these.
fn generic(ids: &[&str]) -> Option<&'static Processor> {
    let covering = |id: &&str| {
        let info = TargetId::parse(id).ok()?.processor_info()?;
        if info.is_generic() { Some(info) } else { info.covered_by() }
    };
    let first = covering(ids.first()?)?;
    ids.iter().all(|id| covering(id).is_some_and(|one| one.name() == first.name())).then_some(first)
}
