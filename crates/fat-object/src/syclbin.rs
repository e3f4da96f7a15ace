//! SYCLBIN files of Intel's compiler (`-fsyclbin`), version 1: tables of modules before their bytes.
//!
//! intel/llvm, "SYCLBIN - A format for separately compiled SYCL device code":
//!
//! ```text
//! file header     magic, version, numbers of abstract modules, IR modules and native images (u32 each), 4 bytes,
//!                 sizes of the metadata and of the bytes, offset and size of the global metadata (u64 each)
//! headers         32 bytes for each abstract module, IR module and native image, in this order
//! metadata        aligned to 8 bytes
//! bytes           aligned to 8 bytes
//! ```
//!
//! The last two words of the header of an IR module or of a native image are offset and size in the bytes.

use std::io;
use std::ops::Range;

use device_code::FileFormat;
use target_id::{OffloadKind, Target};

use crate::context::Context;
use crate::error::Problem;
use crate::image::Description;
use crate::image_target;
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Found, Opened};
use crate::sequence::Container;
use crate::source::Source;

const FILE_HEADER: u64 = 56;
const HEADER: u64 = 32;
const ALIGN: u64 = 8;
const VERSION: u32 = 1;
/// The most headers that are read together.
const TOGETHER: u64 = 1 << 10;

/// Opens the SYCLBIN at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Problem>> {
    let head = source.peek(window, usize::try_from(FILE_HEADER).unwrap_or(usize::MAX))?;
    let available = window.end - window.start;
    let Some(layout) = Layout::of(&head) else {
        return Ok(Err(Problem::Syclbin {
            what: "its header",
            expected: FILE_HEADER,
            found: available,
        }));
    };
    if layout.version != VERSION {
        let (expected, found) = (u64::from(VERSION), u64::from(layout.version));
        return Ok(Err(Problem::Syclbin { what: "its version", expected, found }));
    }
    let end = layout.end().filter(|end| *end <= available);
    let Some(end) = end else {
        let found = layout.end().unwrap_or(u64::MAX);
        return Ok(Err(Problem::Syclbin { what: "its size", expected: available, found }));
    };
    let step = PathStep::new(ContainerKind::Syclbin, ordinal.to_string());
    let end = window.start + end;
    let images = Images { start: window.start, layout, next: 0 };
    Ok(Ok((Opened::here(step, window.start..end, images), Some(end))))
}

/// The numbers in the file header. None of the sums of a sound file overflow.
#[derive(Clone, Copy)]
struct Layout {
    version: u32,
    abstract_modules: u32,
    /// IR modules and native images.
    images: u64,
    metadata: u64,
    bytes: u64,
}

impl Layout {
    fn of(head: &[u8]) -> Option<Self> {
        let four = |at: usize| head.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        let eight = |at: usize| head.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        head.get(usize::try_from(FILE_HEADER).ok()? - 1)?;
        Some(Layout {
            version: four(4)?,
            abstract_modules: four(8)?,
            images: u64::from(four(12)?) + u64::from(four(16)?),
            metadata: eight(24)?,
            bytes: eight(32)?,
        })
    }

    /// Returns where the headers of images start.
    fn headers(&self) -> u64 {
        FILE_HEADER + HEADER * u64::from(self.abstract_modules)
    }

    /// Returns where the bytes start.
    fn data(&self) -> Option<u64> {
        let metadata = self.headers().checked_add(HEADER.checked_mul(self.images)?)?;
        metadata.checked_add(self.metadata)?.checked_next_multiple_of(ALIGN)
    }

    /// Returns where all ends.
    fn end(&self) -> Option<u64> {
        self.data()?.checked_add(self.bytes)
    }
}

/// The images, one after the other.
struct Images {
    start: u64,
    layout: Layout,
    next: u64,
}

impl Children for Images {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Found,
    ) -> io::Result<bool> {
        let Layout { images, bytes, .. } = self.layout;
        let Some(data) = self.layout.data() else { return Ok(false) };
        let until = images.min(self.next + TOGETHER);
        let at = |n: u64| self.start + self.layout.headers() + HEADER * n;
        let headers = source.read_range(&(at(self.next)..at(until)))?;
        for header in headers.chunks_exact(usize::try_from(HEADER).unwrap_or(usize::MAX)) {
            let word = |at: usize| header.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
            let (Some(offset), Some(size)) = (word(16), word(24)) else { continue };
            let Some(end) = offset.checked_add(size).filter(|end| *end <= bytes) else {
                let (what, found_at) = ("the end of an image", offset.saturating_add(size));
                found.finding(
                    self.start,
                    Problem::Syclbin { what, expected: bytes, found: found_at },
                );
                continue;
            };
            let window = self.start + data + offset..self.start + data + end;
            let format = FileFormat::sniff(&source.peek(&window, FileFormat::SNIFF_LEN)?);
            let own = image_target::of_window(source, &window, format)?;
            let triple = own.as_ref().and_then(Target::triple).cloned();
            let id = own.as_ref().map(Target::id).unwrap_or_default();
            let target = Target::new(Some(OffloadKind::Sycl), triple, id);
            let mut description = Description::new(ContainerKind::Syclbin, target.into());
            description.info.offset_in_container = window.start - self.start;
            found.image(window, description);
        }
        self.next = until;
        Ok(until < images)
    }
}
