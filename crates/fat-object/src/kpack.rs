//! AMD's kernel packs, as the crate `kpack` reads them.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use ::kpack::{Entry, Scheme, Tables, Toc, toc_range};
use byte_parts::{Window, internal};
use device_code::FileFormat;
use target_id::{OffloadKind, Target, Triple};

use crate::context::Context;
use crate::elf::EM_AMDGPU;
use crate::error::Error;
use crate::image::Description;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::opened::{Children, Finds, Known, Opened};
use crate::source::Source;

/// The keys of a pack: each is a container of the code objects for its targets.
pub(crate) struct Keys(Finds);

/// Opens the pack in the window.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Result<Keys, Error>> {
    let head = source.peek(window, 16)?;
    let table = match toc_range(&head, window.end - window.start) {
        Ok(table) => table,
        Err(error) => return Ok(Err(Error::of_kpack(&error))),
    };
    if let Err(error) = cx.take_names(table.end - table.start) {
        return Ok(Err(error));
    }
    let tables = match Tables::read(source, window)? {
        Ok(tables) => tables,
        Err(error) => return Ok(Err(Error::of_kpack(&error))),
    };
    let (toc, blobs) = (tables.toc(), tables.blobs());
    let mut found = Finds::default();
    for fault in toc.check(blobs) {
        found.finding(window.start, Error::of_kpack(&fault));
    }
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    let mut containers: Vec<(PathStep, Finds, Range<u64>)> = Vec::new();
    for entry in toc.entries() {
        let range = blobs.range(entry).and_then(|range| Window::new(window).part(range));
        let Some(range) = range else { continue };
        let at = *keys.entry(entry.key()).or_insert_with(|| {
            let step = PathStep::new(ContainerKind::Kpack, entry.key());
            containers.push((step, Finds::default(), range.clone()));
            containers.len() - 1
        });
        let container = containers.get_mut(at);
        let (_, images, whole) =
            container.ok_or_else(|| io::Error::other(internal!("a key without a container")))?;
        *whole = whole.start.min(range.start)..whole.end.max(range.end);
        images.image(range.clone(), description(toc, entry, window, &range));
    }
    for (step, images, whole) in containers {
        found.container(Opened::here(step, whole, Known(images)));
    }
    Ok(Ok(Keys(found)))
}

fn description(toc: &Toc, entry: &Entry, window: &Range<u64>, range: &Range<u64>) -> Description {
    let triple = Some(Triple::parse("amdgcn-amd-amdhsa"));
    let target = Target::new(Some(OffloadKind::Hip), triple, entry.arch());
    let mut description = Description::new(ContainerKind::Kpack, target.into());
    description.info.id = entry.entry_id();
    description.info.offset_in_container = range.start - window.start;
    if toc.scheme() == Scheme::Zstd {
        description.info.compression = Some(Compression {
            method: "zstd",
            format_version: None,
            stored_size: range.end - range.start,
            uncompressed_size: entry.original_size(),
        });
        // The first bytes of compressed code say nothing.
        description.format = Some(FileFormat::Elf { machine: EM_AMDGPU });
    }
    description
}

impl Children for Keys {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        _: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        match self.0.next() {
            Some(child) => {
                found.first(child);
                Ok(true)
            }
            None => Ok(false),
        }
    }
}
