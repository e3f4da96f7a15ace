//! The walk through SYCL images of a host file.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use crate::sycl_table::{self, SyclImage, Tables, content_size, image_end, is_spirv_header};
use device_code::FileFormat;
use target_id::{OffloadKind, Target, Triple};

use super::inflate::{self, inflated_head};
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::image::Description;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::opened::{Children, Finds, Walked};
use crate::section::Section as HostSection;
use crate::source::Source;

/// The eight bytes of a PE section name that are left of `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`.
pub(crate) const PE_SECTION: &[u8] = b"__CLANG_";

/// Start of the names of sections with images for a target of SYCL.
const SECTION: &str = "__CLANG_OFFLOAD_BUNDLE__sycl-";

/// Targets of Intel's toolchain. Its wrapper for libraries names sections by them.
const TARGETS: [&str; 4] = ["spir64", "spir64_gen", "spir64_x86_64", "spir64_fpga"];

/// The SYCL images of a host file that tables describe, by place.
#[derive(Debug, Default)]
pub(crate) struct Images(Vec<Arc<SyclImage>>);

impl Images {
    /// Returns the images that lie in this part of the source.
    fn inside(&self, range: &Range<u64>) -> &[Arc<SyclImage>] {
        let (_, images) = self.0.split_at(self.first_at(range.start));
        images.split_at(images.partition_point(|image| image.range().start < range.end)).0
    }

    /// Returns the number of images that start before this place.
    fn first_at(&self, start: u64) -> usize {
        self.0.partition_point(|image| image.range().start < start)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the range from the first image in this part of the source to the end of the last one.
    pub(crate) fn extent(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let inside = self.inside(range);
        Some(inside.first()?.range().start..inside.last()?.range().end.min(range.end))
    }

    /// Returns whether an image starts in this part of the source.
    pub(crate) fn are_in(&self, range: &Range<u64>) -> bool {
        !self.inside(range).is_empty()
    }
}

/// Returns whether a section of this name holds SYCL images, if it starts with one.
pub(crate) fn is_sycl_section(name: &[u8]) -> bool {
    name == PE_SECTION || name.starts_with(SECTION.as_bytes())
}

/// Returns whether a section of this name is for SYCL images and nothing else.
fn is_for_images(name: &[u8]) -> bool {
    is_sycl_section(name) || TARGETS.iter().any(|target| target.as_bytes() == name)
}

/// Returns whether a file with a section of this name may have tables of SYCL images. These lie in any section.
pub(crate) fn may_have_tables(name: &[u8]) -> bool {
    name == b".tgtimg" || is_for_images(name)
}

/// Returns whether the section holds SYCL images without a table: one that is compressed, or several. A section with
/// one that is not is an entry of a bundle in the object form, as compilers write it.
pub(crate) fn is_in_section(
    source: &mut Source<'_>,
    window: &Range<u64>,
    name: &str,
) -> io::Result<bool> {
    if !is_sycl_section(name.as_bytes()) {
        return Ok(false);
    }
    let Some(end) = image_end(source, window)? else { return Ok(false) };
    let rest = source.skip_zeros(&(end..window.end))?;
    let head = source.peek(window, FileFormat::SNIFF_LEN)?;
    let is_compressed = FileFormat::sniff(&head) == FileFormat::Zstd;
    Ok(is_compressed || name.as_bytes() == PE_SECTION || rest < window.end)
}

/// Reads the tables of SYCL images of a host file, if it may have any. Without section headers, any file may.
pub(crate) fn tables(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    sections: &[HostSection],
    out: &mut Finds,
) -> io::Result<Images> {
    let is_likely = sections.is_empty()
        || sections.iter().any(|section| may_have_tables(section.name.as_bytes()));
    if source.is_start() || !is_likely {
        return Ok(Images::default());
    }
    let lists = sections.iter().filter(|section| section.name == ".tgtimg");
    let lists: Vec<_> = lists.map(|section| section.range.clone()).collect();
    let Tables { images, faults, .. } = Tables::read(source, window, &lists, &mut cx.names)?;
    if images.is_empty() && sections.is_empty() {
        // Without a section for images it is other data that looks like a table.
        return Ok(Images::default());
    }
    for fault in faults {
        let kind = match fault.kind() {
            sycl_table::ErrorKind::Unsupported | sycl_table::ErrorKind::Undescribed => {
                ErrorKind::NotRead
            }
            _ => ErrorKind::HostFile,
        };
        out.finding(window.start, Error::new(kind, fault.to_string()));
    }
    Ok(Images(images.into_iter().map(Arc::new).collect()))
}

/// A section of SYCL images. Images between those of the tables end where their own bytes say; they are looked
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
        let target = if name.as_bytes() == PE_SECTION {
            ""
        } else {
            name.strip_prefix(SECTION).unwrap_or(name)
        };
        let next = images.first_at(window.start);
        Section {
            is_for_images: is_for_images(name.as_bytes()),
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
        out: &mut Finds,
    ) -> io::Result<bool> {
        if !self.is_for_images || self.at >= end {
            return Ok(false);
        }
        let at = source.skip_zeros(&(self.at..end))?;
        let rest = at..end;
        if rest.is_empty() {
            return Ok(false);
        }
        let Some(end) = image_end(source, &rest)? else {
            let first = source.peek(&rest, 8)?;
            let message = format!(
                "bytes {at:#x}..{end:#x} do not belong to a SYCL image (first bytes {first:02x?})"
            );
            out.finding(self.window.start, Error::new(ErrorKind::TrailingData, message));
            return Ok(false);
        };
        let target = sycl_target(&self.target, "");
        self.image(cx, source, &(at..end), target, None, out)?;
        self.at = end;
        self.covered.push(at..end);
        Ok(true)
    }

    fn image(
        &self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        range: &Range<u64>,
        target: Target,
        sycl: Option<&Arc<SyclImage>>,
        out: &mut Finds,
    ) -> io::Result<()> {
        let recorded = sycl.and_then(|image| image.uncompressed_size());
        let head = source.peek(range, FileFormat::SNIFF_LEN)?;
        let stored_size = range.end - range.start;
        let kind = cx.path().last().map_or(ContainerKind::Section, PathStep::kind);
        let mut description = Description::new(kind, target.into());
        description.info.offset_in_container = range.start - self.window.start;
        description.info.sycl = sycl.cloned();
        if FileFormat::sniff(&head) == FileFormat::Zstd {
            match recorded.or_else(|| content_size(&head)) {
                None => out.finding(
                    range.start,
                    Error::new(ErrorKind::Image, "compressed SYCL image records no size"),
                ),
                Some(uncompressed_size) => {
                    description.info.compression = Some(Compression {
                        method: "zstd",
                        format_version: None,
                        stored_size,
                        uncompressed_size,
                    });
                    let format = inflated_format(cx, source, range, uncompressed_size, out)?;
                    description.format = Some(format);
                }
            }
        } else {
            if let Some(expected) = recorded.filter(|&expected| expected != stored_size) {
                let message = format!(
                    "SYCL image has {stored_size} bytes: expected {expected}, as in section .tgtimg"
                );
                out.finding(range.start, Error::new(ErrorKind::Image, message));
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
        found: &mut Finds,
    ) -> io::Result<bool> {
        let images = Rc::clone(&self.images);
        let described = images.0.get(self.next);
        let described = described.filter(|image| image.range().start < self.window.end);
        let end = described.map_or(self.window.end, |image| image.range().start);
        if self.undescribed(cx, source, end, found)? {
            return Ok(true);
        }
        let Some(described) = described else { return Ok(false) };
        self.next += 1;
        let range = described.range();
        self.covered.push(range.clone());
        self.at = self.at.max(range.end);
        let compile_target = described.compile_target().unwrap_or("");
        let target = sycl_target(described.target(), compile_target);
        self.image(cx, source, &range, target, Some(described), found)?;
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

/// Returns the format of a compressed image. Decompresses it to its end to find faults, unless only tables are read.
fn inflated_format(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    range: &Range<u64>,
    size: u64,
    out: &mut Finds,
) -> io::Result<FileFormat> {
    let (limit, cost) = if cx.options.tables_only {
        (cx.decompressed.left(), size.min(inflate::MAX_BLOCK as u64))
    } else {
        (cx.decompression_budget(), size)
    };
    if cost > limit {
        let message = format!(
            "compressed SYCL image: decompressing it ({size} bytes) would exceed the limit of {limit} bytes"
        );
        out.finding(range.start, Error::new(ErrorKind::Limit, message));
        return Ok(FileFormat::NotRead);
    }
    cx.decompressed.spend(cost);
    let inflated = if cx.options.tables_only {
        inflated_head(source, range, size)?
    } else {
        let stored = source.range(range)?;
        ccob::decompress_stream(ccob::Method::ZSTD, &stored, size)
    };
    match inflated {
        Ok(bytes) => {
            let head = bytes.get(..FileFormat::SNIFF_LEN).unwrap_or(&bytes);
            check_spirv(range.start, head, size, out);
            Ok(FileFormat::sniff(head))
        }
        Err(error) => {
            let message = format!("compressed SYCL image: {error}");
            out.finding(range.start, Error::new(ErrorKind::Image, message));
            Ok(FileFormat::NotRead)
        }
    }
}

fn check_spirv(at: u64, head: &[u8], size: u64, out: &mut Finds) {
    let is_spirv = FileFormat::sniff(head) == FileFormat::SpirV;
    if is_spirv && !is_spirv_header(head, size) {
        let first = head.get(..20).unwrap_or(head);
        let message = format!(
            "SPIR-V module of {size} bytes has a malformed header (first bytes {first:02x?})"
        );
        out.finding(at, Error::new(ErrorKind::Image, message));
    }
}
