//! The sections of a host file: containers in sections that are for device code, and in bytes that nothing accounts
//! for.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::vec;

use byte_parts::Budget;
use device_code::FileFormat;

use crate::bare;
use crate::bundle::SectionEntry;
use crate::containers::starts_with;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Content, Finds, Inside, Object, Opened, Start, Walked};
use crate::ranges::Ranges;
use crate::scan::Scan;
use crate::section::{Section, SectionContents, is_gcc_section};
use crate::sequence::Sequence;
use crate::source::Source;
use crate::sycl;

/// The sections of a host file, and what the scan finds beside them.
pub(crate) struct Sections {
    window: Range<u64>,
    sections: Rc<[Section]>,
    next: usize,
    sycl: Rc<sycl::Images>,
    object: Object,
    scans: bool,
    /// `true` if a section may be a container by its start alone.
    starts: bool,
    walked: Ranges,
    /// Sections that do not overlap have no more bytes than the file.
    headers: Budget,
    is_beyond_end: bool,
    /// Start of the section entered last.
    entered: u64,
    /// The parts of sections that hold SYCL images.
    covered: Vec<(u64, Vec<Range<u64>>)>,
    stage: Stage,
    /// Containers that were entered before.
    before: usize,
    fault: Option<Error>,
}

enum Stage {
    Sections,
    /// SYCL images in no section: between the sections that were walked.
    Outside(vec::IntoIter<Range<u64>>, Vec<Range<u64>>),
    Scan(Box<Scan>),
}

impl Sections {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        sections: Vec<Section>,
        sycl: sycl::Images,
    ) -> io::Result<Self> {
        let may_scan = !source.is_start() && !is_image(source, window)?;
        let scans = cx.options.scan && may_scan;
        cx.unsearched += usize::from(may_scan && !scans);
        // Objects can lie in objects.
        let has_placeholder = Rc::new(Cell::new(false));
        Ok(Sections {
            window: window.clone(),
            sections: sections.into(),
            next: 0,
            sycl: Rc::new(sycl),
            object: Object { window: window.clone(), has_placeholder },
            scans,
            starts: cx.options.section_starts,
            walked: Ranges::default(),
            headers: Budget::new(window.end - window.start),
            is_beyond_end: false,
            entered: 0,
            covered: Vec::new(),
            stage: Stage::Sections,
            before: cx.entered,
            fault: None,
        })
    }

    /// Adds an error after the sections.
    pub(crate) fn with_fault(self, fault: Option<Error>) -> Self {
        Sections { fault, ..self }
    }

    /// Adds the contents of a section.
    fn section(
        &mut self,
        source: &mut Source<'_>,
        section: &Section,
        found: &mut Finds,
    ) -> io::Result<()> {
        let base = self.window.start;
        let available = self.window.end - base;
        let Range { start, end } = section.range;
        if end > available {
            // The first says that the file is cut short; the others add nothing.
            if !std::mem::replace(&mut self.is_beyond_end, true) {
                found.finding(
                    base,
                    Error::section_beyond_end(&section.name, &section.range, available),
                );
            }
            return Ok(());
        }
        let inner = base + start..base + end;
        let id = section.name.strip_prefix(bundle_format::MAGIC_TEXT).map(String::from);
        let is_sycl =
            self.sycl.are_in(&inner) || sycl::is_in_section(source, &inner, &section.name)?;
        let is_known = section.contents == SectionContents::DeviceCode || id.is_some() || is_sycl;
        let start_of = if is_known {
            Start::Container
        } else if self.starts && section.contents == SectionContents::Unknown {
            starts_with(source, &inner, &mut self.headers)?
        } else {
            Start::Nothing
        };
        let overlaps = match start_of {
            Start::Nothing => return Ok(()),
            Start::Container => !self.walked.insert(&section.range),
            Start::Unknown => true,
        };
        if overlaps {
            found.finding(base, Error::overlapping_sections(&section.name, &section.range));
            return Ok(());
        }
        self.entered = start;
        let children: Box<dyn Children> = match id {
            _ if is_sycl => {
                Box::new(sycl::Section::new(inner.clone(), &section.name, Rc::clone(&self.sycl)))
            }
            Some(id) => {
                let object = self.object.clone();
                Box::new(SectionEntry { object, window: inner.clone(), id })
            }
            None => {
                // Other data may follow where only the first bytes speak of a container.
                let is_mixed = !is_known && self.scans;
                Box::new(Sequence::new(inner.clone(), is_mixed))
            }
        };
        let step = PathStep::new(ContainerKind::Section, &*section.name);
        let (window, inside) = (inner, Inside::Here(Content::Known(children)));
        found.container(Opened { step, window, compression: None, inside });
        Ok(())
    }

    /// Returns the start of a section, which may claim to lie anywhere.
    fn start_of(&self, section: &Section) -> u64 {
        self.window.start.saturating_add(section.range.start)
    }

    /// Adds what is wrong with the file as a whole.
    fn end(&mut self, cx: &Context<'_>, found: &mut Finds) {
        let base = self.window.start;
        let mut sections = self.sections.iter();
        if self.scans
            && cx.entered == self.before
            && let Some(alone) = sections.find(|section| is_of_entries(section))
        {
            let at = self.start_of(alone);
            let name = &alone.name;
            let message =
                format!("section {name} registers kernels, but the file holds no device code");
            found.finding(at, Error::warning(ErrorKind::NotRead, message));
        }
        if let Some(error) = self.fault.take() {
            found.finding(base, error);
        }
    }

    /// Adds the SYCL images in a part of the file between sections.
    fn outside(&self, gap: &Range<u64>, found: &mut Finds) {
        let base = self.window.start;
        let Some(all) = self.sycl.extent(&(base + gap.start..base + gap.end)) else { return };
        let step = PathStep::new(ContainerKind::OutsideSections, format!("{:#x}", all.start));
        let images = sycl::Section::new(all.clone(), "", Rc::clone(&self.sycl));
        found.container(Opened::here(step, all, images));
    }
}

impl Children for Sections {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let base = self.window.start;
        match &mut self.stage {
            Stage::Sections => {
                let sections = Rc::clone(&self.sections);
                if self.next == 0
                    && let Some(of_gcc) =
                        sections.iter().find(|s| is_gcc_section(s.name.as_bytes()))
                {
                    found.finding(self.start_of(of_gcc), Error::gcc_intermediate_code());
                }
                match sections.get(self.next) {
                    Some(section) => {
                        self.next += 1;
                        self.section(source, section, found)?;
                    }
                    None => {
                        let gaps: Vec<_> = if self.sycl.is_empty() {
                            Vec::new()
                        } else {
                            self.walked.gaps(self.window.end - base).collect()
                        };
                        self.stage = Stage::Outside(gaps.into_iter(), Vec::new());
                    }
                }
                Ok(true)
            }
            Stage::Outside(gaps, covered) => {
                if let Some(gap) = gaps.next() {
                    self.outside(&gap, found);
                    return Ok(true);
                }
                for range in covered {
                    self.walked.insert(range);
                }
                for (start, images) in self.covered.drain(..) {
                    self.walked.narrow(start, &images);
                }
                if self.scans {
                    let window = self.window.clone();
                    let scan = Scan::new(window, &self.walked, Rc::clone(&self.sections));
                    self.stage = Stage::Scan(Box::new(scan));
                    return Ok(true);
                }
                self.end(cx, found);
                Ok(false)
            }
            Stage::Scan(scan) => {
                if scan.next(cx, source, found)? {
                    return Ok(true);
                }
                self.end(cx, found);
                Ok(false)
            }
        }
    }

    fn left(&mut self, walked: Walked) {
        let base = self.window.start;
        let images = walked.covered.as_ref().map(|images| {
            images.iter().map(|image| image.start - base..image.end - base).collect::<Vec<_>>()
        });
        match &mut self.stage {
            Stage::Sections => {
                if let Some(end) = walked.end {
                    self.walked.cut(self.entered, end - base);
                }
                self.covered.extend(images.map(|images| (self.entered, images)));
            }
            Stage::Outside(_, covered) => covered.extend(images.into_iter().flatten()),
            Stage::Scan(scan) => scan.left(walked),
        }
    }
}

/// Returns whether a section holds the entries by which OpenMP and the offload link step register kernels.
fn is_of_entries(section: &Section) -> bool {
    matches!(&*section.name, "llvm_offload_entries" | "omp_offloading_entries")
        && !section.range.is_empty()
}

/// Returns whether the file is a device image, which holds no other images.
fn is_image(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<bool> {
    Ok(bare::is_device_elf(FileFormat::sniff(&source.peek(window, 64)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_notice_shared_bytes() {
        let mut ranges = Ranges::default();
        assert!(ranges.insert(&(10..20)));
        assert!(ranges.insert(&(20..30)));
        assert!(ranges.insert(&(0..10)));
        assert!(ranges.insert(&(15..15)));
        assert!(!ranges.insert(&(29..31)));
        assert!(!ranges.insert(&(0..40)));
        assert!(!ranges.insert(&(12..13)));
        assert!(ranges.insert(&(30..31)));
        assert!(ranges.gaps(40).eq(std::iter::once(31..40)));
        ranges.cut(10, 15);
        ranges.cut(20, 20);
        assert_eq!(ranges.gaps(31).collect::<Vec<_>>(), [15..20, 20..30]);
        ranges.narrow(0, &[2..4, 3..5, 4..4, 7..100]);
        assert_eq!(ranges.gaps(31).collect::<Vec<_>>(), [0..2, 5..7, 15..20, 20..30]);
        assert!(Ranges::default().gaps(7).eq(std::iter::once(0..7)));
    }
}
