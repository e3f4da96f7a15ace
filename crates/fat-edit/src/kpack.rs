//! Kernel packs: entries go, all others keep their bytes.

use std::collections::BTreeSet;
use std::ops::Range;

use ::kpack::{Blobs, Entry, NewKpack, Tables};
use byte_parts::{Part, Source};
use fat_object::ImageInfo;
use object_edit::{Output, copy_of};
use target_id::Target;

use crate::check::{self, Expected};
use crate::edit::{BundleEdit, Edit, ImageEdit};
use crate::error::Problem;
use crate::plan::{Change, ContainerChange, EditPlan, ImageChange};
use crate::survey::EditableFile;
use crate::wishes::Wish;

/// Plans the edit of a kernel pack.
pub(super) fn plan(
    contents: &EditableFile,
    source: &mut Source<'_>,
    edit: &Edit,
) -> Result<EditPlan, Problem> {
    if !matches!(edit.bundles, BundleEdit::Keep) {
        return Err(Problem::no_bundle());
    }
    let is_removal = |edit: &ImageEdit| matches!(edit, ImageEdit::Remove);
    if !edit.added.is_empty() || !edit.images.values().all(is_removal) {
        let kind = "kernel packs, except where images are removed,";
        return Err(Problem::unsupported(&[], kind));
    }
    // The survey has read it before.
    let tables = Tables::read(source, &(0..source.len()))?.map_err(|_| Problem::input_changed())?;
    let is_gone = |index: usize| edit.images.contains_key(&index);
    let mut gone: BTreeSet<(&str, &str)> = BTreeSet::new();
    for container in &contents.containers {
        let key = container.path.last().map_or("", |step| step.name());
        for image in contents.images_in(container) {
            if is_gone(image.index()) {
                gone.insert((key, image.target().id()));
            }
        }
    }
    let keeps = |entry: &Entry| !gone.contains(&(entry.key(), entry.arch()));
    let (new, numbers) = NewKpack::some_of(tables.toc(), keeps);
    if new.is_empty() && !edit.options.allow_empty {
        return Err(Problem::nothing_left(&[]));
    }
    let parts = if gone.is_empty() {
        copy_of(&(0..contents.size))
    } else {
        lay_out(&new, &numbers, tables.blobs())?
    };
    let plan = EditPlan {
        parts,
        derived: Vec::new(),
        new_images: Vec::new(),
        input_size: contents.size,
        containers: containers(contents, &is_gone),
        images: images(contents, &is_gone),
        notes: Vec::new(),
        needs: BTreeSet::new(),
    };
    let wish = |image: &ImageInfo| if is_gone(image.index()) { Wish::Remove } else { Wish::Keep };
    check::check(contents, source, &plan, Expected::new(contents, wish))?;
    Ok(plan)
}

/// Returns the new pack: its code objects are ranges of the old one.
fn lay_out(new: &NewKpack, numbers: &[u64], blobs: &Blobs) -> Result<Output, Problem> {
    let stored = |number: u64| {
        let number = usize::try_from(number).ok()?;
        blobs.ranges().get(number).cloned()
    };
    let stored: Vec<Range<u64>> = numbers
        .iter()
        .map(|number| stored(*number))
        .collect::<Option<_>>()
        .ok_or_else(Problem::input_changed)?;
    let sizes: Vec<u64> = stored.iter().map(|range| range.end - range.start).collect();
    let layout = new.layout(&sizes).map_err(|_| Problem::input_changed())?;
    let mut output = Output::new();
    for part in layout.iter() {
        match part {
            Part::Bytes(bytes) => output.push_bytes(bytes),
            Part::Zeros(count) => output.push_zeros(count),
            Part::Input(&n, range) => {
                let from = stored.get(n).map_or(0, |stored| stored.start);
                output.append(&copy_of(&(from + range.start..from + range.end)));
            }
        }
    }
    Ok(output)
}

fn containers(contents: &EditableFile, is_gone: &impl Fn(usize) -> bool) -> Vec<ContainerChange> {
    let changes = contents.containers.iter().map(|container| {
        let images = contents.images_in(container);
        let [mut stored, mut stored_left, mut size, mut size_left] = [0_u64; 4];
        let mut left = 0;
        for image in images {
            let own =
                image.compression().map_or(image.size(), |compression| compression.stored_size());
            // Headers state the sizes.
            let add = |sum: &mut u64, size| *sum = sum.saturating_add(size);
            add(&mut stored, own);
            add(&mut size, image.size());
            if !is_gone(image.index()) {
                left += 1;
                add(&mut stored_left, own);
                add(&mut size_left, image.size());
            }
        }
        ContainerChange {
            container: container.index,
            change: match left {
                0 => Change::Removed,
                left if left == images.len() => Change::Kept,
                _ => Change::Edited,
            },
            size_before: stored,
            size_after: stored_left,
            uncompressed_before: size,
            uncompressed_after: size_left,
        }
    });
    changes.collect()
}

fn images(contents: &EditableFile, is_gone: &impl Fn(usize) -> bool) -> Vec<ImageChange> {
    let images = contents.images.iter().enumerate().map(|(at, image)| ImageChange {
        index: Some(image.index()),
        container: contents.containers_of.get(at).copied().unwrap_or(0),
        target: Target::clone(image.target()),
        size_before: image.size(),
        size_after: (!is_gone(image.index())).then_some(image.size()),
    });
    images.collect()
}
