//! The walk through SYCL images of a host file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use byte_parts::Budget;
use device_code::FileFormat;
use target_id::{OffloadKind, Target, Triple};

use super::memory::{Memory, number};
use super::modules::{self, module};
use super::table::{Described, Reader, Tables};
use super::{Error, SyclImage};
use crate::context::Context;
use crate::host::Section as HostSection;
use crate::image::Description;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::opened::{Children, Found, Walked};
use crate::source::Source;

/// The eight bytes of a PE section name that are left of `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`.
pub(crate) const PE_SECTION: &[u8] = b"__CLANG_";

/// Start of the names of sections with images for a target of SYCL.
const SECTION: &str = "__CLANG_OFFLOAD_BUNDLE__sycl-";

/// Targets of Intel's toolchain. Its wrapper for libraries names sections by them.
const TARGETS: [&str; 4] = ["spir64", "spir64_gen", "spir64_x86_64", "spir64_fpga"];

/// The SYCL images of a host file that tables describe, and sizes that it records.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// By place.
    images: Vec<Described>,
    /// By address: sizes before compression.
    sizes: HashMap<u64, u64>,
}

impl Images {
    /// The images that lie in this part of the source.
    fn inside(&self, range: &Range<u64>) -> &[Described] {
        let first = self.images.partition_point(|image| image.range.start < range.start);
        let after = self.images.partition_point(|image| image.range.start < range.end);
        self.images.get(first..after).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Returns the part of this part of the source from the first image in it to the end of the last.
    pub(crate) fn extent(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let inside = self.inside(range);
        Some(inside.first()?.range.start..inside.last()?.range.end.min(range.end))
    }

    /// Returns whether an image starts in this part of the source.
    pub(crate) fn are_in(&self, range: &Range<u64>) -> bool {
        !self.inside(range).is_empty()
    }
}

/// Returns whether a section of this name holds SYCL images, if it starts with one.
pub(crate) fn is_sycl_section(name: &str) -> bool {
    name.as_bytes() == PE_SECTION || name.starts_with(SECTION)
}

/// Returns whether a section of this name is for SYCL images and nothing else.
fn is_for_images(name: &str) -> bool {
    is_sycl_section(name) || TARGETS.contains(&name)
}

fn may_have_tables(section: &HostSection) -> bool {
    section.name == ".tgtimg" || is_for_images(&section.name)
}

/// Returns whether the section holds SYCL images without a table: one that is compressed, or several. A section with
/// one that is not is an entry of a bundle in the object form, as compilers write it.
pub(crate) fn is_in_section(
    source: &mut Source<'_>,
    window: &Range<u64>,
    name: &str,
) -> io::Result<bool> {
    if !is_sycl_section(name) {
        return Ok(false);
    }
    let Some(first) = module(source, window)? else { return Ok(false) };
    let rest = source.skip_zeros(&(first.range.end..window.end))?;
    Ok(first.is_compressed || name.as_bytes() == PE_SECTION || rest < window.end)
}

/// Reads the tables of SYCL images of a host file, if it may have any. Nothing tells of one without sections.
pub(crate) fn tables(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    sections: &[HostSection],
    out: &mut Found,
) -> io::Result<Images> {
    let is_likely = sections.is_empty() || sections.iter().any(may_have_tables);
    if source.is_start() || !is_likely {
        return Ok(Images::default());
    }
    let memory = Memory::read(source, window)?;
    if let Some(found) = memory.unread
        && sections.iter().any(|section| section.name == ".tgtimg")
    {
        out.finding(window.start, Error::Host { found });
    }
    let len = window.end - window.start;
    let mut reader = Reader {
        source,
        memory: &memory,
        start: window.start,
        names: &mut cx.names,
        searched: Budget::new(len),
        records: Budget::new(len.saturating_mul(4).max(1 << 20)),
        texts: HashMap::new(),
        found: Tables::default(),
    };
    reader.search(&memory.data)?;
    if reader.found.images.is_empty() {
        reader.search(&memory.constants)?;
    }
    let Tables { mut images, findings } = reader.found;
    if images.is_empty() && sections.is_empty() {
        // Without a section for images it is other data that looks like a table.
        return Ok(Images::default());
    }
    images.sort_by_key(|image| (image.range.start, image.range.end));
    let mut sizes = HashMap::new();
    let mut undescribed = Vec::new();
    for section in sections.iter().filter(|section| section.name == ".tgtimg") {
        let Some(list) = memory.section(source, window, &section.range)? else { continue };
        for slot in list.chunks_exact(16) {
            let (address, size) = (number(slot, 0), number(slot, 8));
            if (address, size) == (0, 0) || sizes.insert(address, size).is_some() {
                continue;
            }
            undescribed.push(address);
        }
    }
    for error in findings {
        out.finding(window.start, error);
    }
    let described: HashSet<_> = images.iter().map(|image| image.address).collect();
    undescribed.retain(|address| !described.contains(address));
    if let Some(&address) = undescribed.first() {
        let count = undescribed.len();
        out.finding(window.start, Error::Undescribed { count, address });
    }
    // Each byte belongs to one image; tables may repeat some.
    let mut left = Budget::new(len);
    let fitting = images.iter().take_while(|image| left.take(image.range.end - image.range.start));
    let fitting = fitting.count();
    if fitting < images.len() {
        images.truncate(fitting);
        out.finding(window.start, Error::Overlap { limit: len });
    }
    Ok(Images { images, sizes })
}

/// A section of SYCL images. Those between the ones that tables describe end where their own bytes tell; they are looked
/// for in sections for images only.
pub(crate) struct Section {
    window: Range<u64>,
    /// `true` if it is for images and nothing else.
    is_for_images: bool,
    /// The target by the name of the section.
    target: String,
    images: Rc<Images>,
    /// Images that tables describe, up to this one.
    next: usize,
    at: u64,
    /// The parts that hold images, in order.
    covered: Vec<Range<u64>>,
}

impl Section {
    pub(crate) fn new(window: Range<u64>, name: &str, images: Rc<Images>) -> Self {
        let target = match name.as_bytes() == PE_SECTION {
            true => "",
            false => name.strip_prefix(SECTION).unwrap_or(name),
        };
        let next = images.images.partition_point(|image| image.range.start < window.start);
        Section {
            is_for_images: is_for_images(name),
            target: target.to_owned(),
            images,
            next,
            at: window.start,
            covered: Vec::new(),
            window,
        }
    }

    /// Adds the next image before `end` that no table describes. Returns `false` if there is none.
    fn undescribed(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        end: u64,
        out: &mut Found,
    ) -> io::Result<bool> {
        if !self.is_for_images || self.at >= end {
            return Ok(false);
        }
        let at = source.skip_zeros(&(self.at..end))?;
        let rest = at..end;
        if rest.is_empty() {
            return Ok(false);
        }
        let Some(module) = module(source, &rest)? else {
            let first = source.peek(&rest, 8)?;
            out.finding(self.window.start, Error::Gap { start: at, end, first });
            return Ok(false);
        };
        let target = sycl_target(&self.target, "");
        self.image(cx, source, &module.range, None, target, None, out)?;
        self.at = module.range.end;
        self.covered.push(module.range);
        Ok(true)
    }

    #[expect(clippy::too_many_arguments, reason = "what tables tell of an image")]
    fn image(
        &self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        range: &Range<u64>,
        recorded: Option<u64>,
        target: Target,
        sycl: Option<Arc<SyclImage>>,
        out: &mut Found,
    ) -> io::Result<()> {
        let head = source.peek(range, FileFormat::SNIFF_LEN)?;
        let stored_size = range.end - range.start;
        let kind = cx.path().last().map_or(ContainerKind::Section, PathStep::kind);
        let mut description = Description::new(kind, target.into());
        description.info.offset_in_container = range.start - self.window.start;
        description.info.sycl = sycl;
        if modules::is_zstd(&head) {
            match recorded.or_else(|| modules::content_size(&head)) {
                None => out.finding(range.start, Error::NoSize),
                Some(uncompressed_size) => {
                    description.info.compression =
                        Some(Compression { method: "zstd", stored_size, uncompressed_size });
                    let format = inflated_format(cx, source, range, uncompressed_size, out)?;
                    description.format = Some(format);
                }
            }
        } else {
            if let Some(expected) = recorded.filter(|&expected| expected != stored_size) {
                out.finding(range.start, Error::Size { expected, found: stored_size });
            }
            check_spirv(range.start, &head, stored_size, out);
        }
        out.image(range.clone(), description);
        Ok(())
    }
}

impl Children for Section {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Found,
    ) -> io::Result<bool> {
        let images = Rc::clone(&self.images);
        let described = images.images.get(self.next);
        let described = described.filter(|image| image.range.start < self.window.end);
        let end = described.map_or(self.window.end, |image| image.range.start);
        if self.undescribed(cx, source, end, found)? {
            return Ok(true);
        }
        let Some(described) = described else { return Ok(false) };
        self.next += 1;
        self.covered.push(described.range.clone());
        self.at = self.at.max(described.range.end);
        let size = images.sizes.get(&described.address).copied();
        let compile_target = described.image.compile_target().unwrap_or_default();
        let target = sycl_target(&described.target, compile_target);
        let image = Some(Arc::clone(&described.image));
        self.image(cx, source, &described.range, size, target, image, found)?;
        Ok(true)
    }

    fn walked(&mut self) -> Walked {
        Walked { covered: Some(std::mem::take(&mut self.covered)), ..Walked::default() }
    }
}

fn sycl_target(target: &str, compile_target: &str) -> Target {
    let triple = Some(Triple::parse(target)).filter(|_| !target.is_empty());
    Target::new(Some(OffloadKind::Sycl), triple, compile_target)
}

/// The format of a compressed image. Unless only tables are read, it is decompressed to its end, to find what is wrong.
fn inflated_format(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    range: &Range<u64>,
    size: u64,
    out: &mut Found,
) -> io::Result<FileFormat> {
    let (limit, cost) = match cx.options.tables_only {
        true => (cx.decompressed.left(), size.min(modules::MAX_BLOCK as u64)),
        false => (cx.decompression_budget(), size),
    };
    if cost > limit {
        out.finding(range.start, Error::Limit { size, limit });
        return Ok(FileFormat::NotRead);
    }
    cx.decompressed.spend(cost);
    let inflated = match cx.options.tables_only {
        true => modules::inflated_head(source, range, size)?,
        false => {
            let stored = source.read_range(range)?;
            ccob::decompress_stream(ccob::Method::ZSTD, &stored, size)
        }
    };
    match inflated {
        Ok(bytes) => {
            let head = bytes.get(..FileFormat::SNIFF_LEN.min(bytes.len())).unwrap_or_default();
            check_spirv(range.start, head, size, out);
            Ok(FileFormat::sniff(head))
        }
        Err(error) => {
            out.finding(range.start, Error::Stream(error));
            Ok(FileFormat::NotRead)
        }
    }
}

fn check_spirv(at: u64, head: &[u8], size: u64, out: &mut Found) {
    let is_spirv = FileFormat::sniff(head) == FileFormat::SpirV;
    if is_spirv && !modules::is_spirv_header(head, size) {
        let first = head.get(..20.min(head.len())).unwrap_or_default().to_vec();
        out.finding(at, Error::SpirV { size, first });
    }
}
