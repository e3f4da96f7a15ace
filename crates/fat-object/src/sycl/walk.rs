//! The walk through SYCL images of a host file.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::Budget;
use target_id::{OffloadKind, Target, Triple};

use super::memory::{Memory, number};
use super::modules::{self, module};
use super::table::{Described, Reader, Tables};
use super::{Error, SyclImage};
use crate::file_format::{FileFormat, SNIFF_LEN};
use crate::host::{Ranges, Section};
use crate::image::Description;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::source::Source;
use crate::walker::Walker;

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

fn may_have_tables(section: &Section) -> bool {
    section.name == ".tgtimg" || is_for_images(&section.name)
}

impl Walker<'_> {
    /// Returns whether the section holds SYCL images without a table: one that is compressed, or several. A section with
    /// one that is not is an entry of a bundle in the object form, as compilers write it.
    pub(crate) fn holds_sycl(
        &mut self,
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
    pub(crate) fn sycl_tables(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        sections: &[Section],
    ) -> io::Result<Images> {
        let is_likely = sections.is_empty() || sections.iter().any(may_have_tables);
        if source.is_start() || !is_likely {
            return Ok(Images::default());
        }
        let memory = Memory::read(source, window)?;
        if let Some(found) = memory.unread
            && sections.iter().any(|section| section.name == ".tgtimg")
        {
            self.finding(source, window.start, Error::Host { found }.into())?;
        }
        let len = window.end - window.start;
        let mut reader = Reader {
            source,
            memory: &memory,
            start: window.start,
            names: &mut self.names,
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
            self.finding(source, window.start, error.into())?;
        }
        let described: std::collections::HashSet<_> =
            images.iter().map(|image| image.address).collect();
        undescribed.retain(|address| !described.contains(address));
        if let Some(&address) = undescribed.first() {
            let count = undescribed.len();
            self.finding(source, window.start, Error::Undescribed { count, address }.into())?;
        }
        // Each byte belongs to one image; tables may repeat some.
        let mut left = Budget::new(len);
        let fitting =
            images.iter().take_while(|image| left.take(image.range.end - image.range.start));
        let fitting = fitting.count();
        if fitting < images.len() {
            images.truncate(fitting);
            self.finding(source, window.start, Error::Overlap { limit: len }.into())?;
        }
        Ok(Images { images, sizes })
    }

    /// Walks a section of SYCL images. Those between the ones that tables describe end where their own bytes tell; they
    /// are looked for in sections for images only. Returns the parts of the source that hold images, in order.
    pub(crate) fn sycl_section(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        name: &str,
        images: &Images,
    ) -> io::Result<Vec<Range<u64>>> {
        let mut at = window.start;
        let mut covered = Vec::new();
        for described in images.inside(window) {
            self.sycl_gap(source, window, at..described.range.start, name, &mut covered)?;
            covered.push(described.range.clone());
            at = at.max(described.range.end);
            let size = images.sizes.get(&described.address).copied();
            let compile_target = described.image.compile_target().unwrap_or_default();
            let target = self.sycl_target(&described.target, compile_target);
            let image = Some(Arc::clone(&described.image));
            self.sycl_image(source, window, &described.range, size, target, image)?;
        }
        self.sycl_gap(source, window, at..window.end, name, &mut covered)?;
        Ok(covered)
    }

    /// Walks the images that tables describe and that lie in none of the sections that were `walked`. Returns the parts of
    /// the host file that hold them.
    pub(crate) fn sycl_outside(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        images: &Images,
        walked: &Ranges,
    ) -> io::Result<Vec<Range<u64>>> {
        let mut covered = Vec::new();
        if images.images.is_empty() {
            return Ok(covered);
        }
        for gap in walked.gaps(window.end - window.start) {
            let gap = window.start + gap.start..window.start + gap.end;
            let inside = images.inside(&gap);
            let (Some(first), Some(last)) = (inside.first(), inside.last()) else { continue };
            let all = first.range.start..last.range.end.min(gap.end);
            let segment =
                PathStep::new(ContainerKind::OutsideSections, format!("{:#x}", all.start));
            self.within(source, segment, &all, None, |walker, source| {
                covered.extend(walker.sycl_section(source, &all, "", images)?);
                Ok(())
            })?;
        }
        let in_file = |range: &Range<u64>| range.start - window.start..range.end - window.start;
        Ok(covered.iter().map(in_file).collect())
    }

    /// Walks what lies between images that tables describe.
    fn sycl_gap(
        &mut self,
        source: &mut Source<'_>,
        section: &Range<u64>,
        gap: Range<u64>,
        name: &str,
        covered: &mut Vec<Range<u64>>,
    ) -> io::Result<()> {
        if !is_for_images(name) {
            return Ok(());
        }
        let mut at = gap.start;
        while at < gap.end {
            at = source.skip_zeros(&(at..gap.end))?;
            let rest = at..gap.end;
            if rest.is_empty() {
                break;
            }
            let Some(module) = module(source, &rest)? else {
                let first = source.peek(&rest, 8)?;
                let error = Error::Gap { start: at, end: gap.end, first };
                return self.finding(source, section.start, error.into());
            };
            let target = match name.as_bytes() == PE_SECTION {
                true => "",
                false => name.strip_prefix(SECTION).unwrap_or(name),
            };
            let target = self.sycl_target(target, "");
            self.sycl_image(source, section, &module.range, None, target, None)?;
            at = module.range.end;
            covered.push(module.range);
        }
        Ok(())
    }

    fn sycl_target(&mut self, target: &str, compile_target: &str) -> Arc<Target> {
        let triple = Some(Triple::parse(target)).filter(|_| !target.is_empty());
        Arc::new(Target::new(Some(OffloadKind::Sycl), triple, compile_target))
    }

    fn sycl_image(
        &mut self,
        source: &mut Source<'_>,
        section: &Range<u64>,
        range: &Range<u64>,
        recorded: Option<u64>,
        target: Arc<Target>,
        sycl: Option<Arc<SyclImage>>,
    ) -> io::Result<()> {
        let head = source.peek(range, SNIFF_LEN)?;
        let stored_size = range.end - range.start;
        let mut compression = None;
        let mut format = None;
        if modules::is_zstd(&head) {
            match recorded.or_else(|| modules::content_size(&head)) {
                None => self.finding(source, range.start, Error::NoSize.into())?,
                Some(uncompressed_size) => {
                    compression =
                        Some(Compression { method: "zstd", stored_size, uncompressed_size });
                    format = Some(self.inflated_format(source, range, uncompressed_size)?);
                }
            }
        } else {
            if let Some(expected) = recorded.filter(|&expected| expected != stored_size) {
                let error = Error::Size { expected, found: stored_size };
                self.finding(source, range.start, error.into())?;
            }
            self.check_spirv(source, range.start, &head, stored_size)?;
        }
        let description = Description {
            container: self.path().last().map_or(ContainerKind::Section, PathStep::kind),
            target,
            id: None,
            offset_in_container: range.start - section.start,
            offload_binary: None,
            format,
            compression,
            form: None,
            object: None,
            sycl,
            hcf: None,
        };
        self.image(source, range, &description)
    }

    /// The format of a compressed image. Unless only tables are read, it is decompressed to its end, to find what is wrong.
    fn inflated_format(
        &mut self,
        source: &mut Source<'_>,
        range: &Range<u64>,
        size: u64,
    ) -> io::Result<FileFormat> {
        let only_head = self.options.tables_only || !self.options.decompress;
        let (limit, cost) = match only_head {
            true => (self.decompressed.left(), size.min(modules::MAX_BLOCK as u64)),
            false => (self.decompression_budget(), size),
        };
        if cost > limit {
            let error = Error::Limit { size, limit };
            return self.finding(source, range.start, error.into()).map(|()| FileFormat::NotRead);
        }
        self.decompressed.spend(cost);
        let inflated = match only_head {
            true => modules::inflated_head(source, range, size)?,
            false => {
                let stored = source.read_range(range)?;
                ccob::decompress_stream(ccob::Method::ZSTD, &stored, size)
            }
        };
        match inflated {
            Ok(bytes) => {
                let head = bytes.get(..SNIFF_LEN.min(bytes.len())).unwrap_or_default();
                self.check_spirv(source, range.start, head, size)?;
                Ok(FileFormat::sniff(head))
            }
            Err(error) => {
                let error = Error::Stream(error);
                self.finding(source, range.start, error.into()).map(|()| FileFormat::NotRead)
            }
        }
    }

    fn check_spirv(
        &mut self,
        source: &Source<'_>,
        at: u64,
        head: &[u8],
        size: u64,
    ) -> io::Result<()> {
        let is_spirv = FileFormat::sniff(head) == FileFormat::SpirV;
        if !is_spirv || modules::is_spirv_header(head, size) {
            return Ok(());
        }
        let first = head.get(..20.min(head.len())).unwrap_or_default().to_vec();
        self.finding(source, at, Error::SpirV { size, first }.into())
    }
}
