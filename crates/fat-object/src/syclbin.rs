//! SYCLBIN files of Intel's compiler (`-fsyclbin`): version 1, and the entries of version 2, which is an offload binary.
//!
//! intel/llvm, "SYCLBIN - A format for separately compiled SYCL device code", version 1:
//!
//! ```text
//! file header     magic, version, numbers of abstract modules, IR modules and native images (u32 each), 4 bytes,
//!                 sizes of the metadata and of the bytes, offset and size of the global metadata (u64 each)
//! headers         32 bytes for each abstract module, IR module and native image, in this order
//! metadata        aligned to 8 bytes
//! bytes           aligned to 8 bytes
//! ```
//!
//! Each header starts with offset and size in the metadata. Headers of an abstract module go on with number and first
//! of its IR modules, and of its native images (u32 each), the others with offset and size in the bytes.
//!
//! Version 2 (`llvm/Object/SYCLBIN.h`): an entry has a `role`, and in `am_index` the number of its abstract module. In
//! those of the roles `ir` and `native` the size of their metadata (u64) and the metadata stand before the image.

use std::io;
use std::ops::Range;

use byte_parts::Window;
use device_code::{FileFormat, code_version};
use target_id::{OffloadKind, Target};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::context::Context;
use crate::disagreement::Disagreement;
use crate::error::Error;
use crate::image::{Description, ImageInfo};
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Container, Finds, Opened};
use crate::records::records;
use crate::source::Source;
use crate::{bare, image_target};

/// The header of a file.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FileHeader {
    magic: [u8; 4],
    version: U32,
    modules: U32,
    ir: U32,
    native: U32,
    padding: [u8; 4],
    metadata: U64,
    bytes: U64,
    global_metadata: Place,
}

/// A place in the metadata or in the bytes.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Place {
    offset: U64,
    size: U64,
}

impl Place {
    /// Returns the range of the place in `len` bytes; `None` if it exceeds them.
    fn within(&self, len: u64) -> Option<Range<u64>> {
        Window::new(&(0..len)).sized(self.offset.get(), self.size.get())
    }
}

/// The number and the first of the IR modules or native images of an abstract module.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Numbers {
    len: U32,
    first: U32,
}

/// The header of an abstract module.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ModuleHeader {
    metadata: Place,
    ir: Numbers,
    native: Numbers,
}

/// The header of an IR module or native image.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ImageHeader {
    metadata: Place,
    bytes: Place,
}

const FILE_HEADER: u64 = size_of::<FileHeader>() as u64;
/// The size of all other headers.
const HEADER: u64 = size_of::<ImageHeader>() as u64;
const ALIGN: u64 = 8;
const VERSION: u32 = 1;
/// The most headers that are read together.
const TOGETHER: u64 = 1 << 10;
/// The bytes of metadata among which the type of an IR module is looked for.
const METADATA: usize = 512;

/// Opens the SYCLBIN at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Error>> {
    let head = source.peek(window, size_of::<FileHeader>())?;
    let available = window.end - window.start;
    let Ok(header) = FileHeader::ref_from_bytes(&head) else {
        return Ok(Err(fault("its header", FILE_HEADER, available)));
    };
    if header.version != VERSION {
        return Ok(Err(fault("its version", VERSION.into(), u64::from(header.version))));
    }
    let layout = Layout::of(header);
    let end = layout.and_then(|layout| layout.data.checked_add(layout.bytes));
    let (Some(layout), Some(end)) = (layout, end.filter(|end| *end <= available)) else {
        return Ok(Err(fault("its size", available, end)));
    };
    let step = PathStep::new(ContainerKind::Syclbin, ordinal.to_string());
    let end = window.start + end;
    let images = Images { start: window.start, layout, modules: None, next: 0 };
    Ok(Ok((Opened::here(step, window.start..end, images), Some(end))))
}

/// Creates the error of a number; `None` if it does not fit 64 bits.
fn fault(what: &str, expected: u64, found: impl Into<Option<u64>>) -> Error {
    let found = found.into().map_or("more than 64 bits".into(), |found| format!("{found:#x}"));
    let message = format!("malformed SYCLBIN: {what} is {found}, expected {expected:#x}");
    Error::malformed(ContainerKind::Syclbin, message)
}

/// The numbers in the file header, and where the bytes start.
#[derive(Clone, Copy)]
struct Layout {
    modules: u64,
    ir: u64,
    native: u64,
    metadata: u64,
    data: u64,
    bytes: u64,
}

impl Layout {
    /// Returns the layout of a file; `None` if the bytes start at a number of more than 64 bits.
    fn of(header: &FileHeader) -> Option<Self> {
        let layout = Layout {
            modules: header.modules.into(),
            ir: header.ir.into(),
            native: header.native.into(),
            metadata: header.metadata.get(),
            data: 0,
            bytes: header.bytes.get(),
        };
        let end = layout.properties().checked_add(layout.metadata)?;
        Some(Layout { data: end.checked_next_multiple_of(ALIGN)?, ..layout })
    }

    /// Returns the number of IR modules and native images.
    fn images(&self) -> u64 {
        self.ir + self.native
    }

    /// Returns where the headers of images start.
    fn headers(&self) -> u64 {
        FILE_HEADER + HEADER * self.modules
    }

    /// Returns where the metadata starts.
    fn properties(&self) -> u64 {
        self.headers() + HEADER * self.images()
    }
}

/// The images, one after the other.
struct Images {
    start: u64,
    layout: Layout,
    /// The images of each abstract module in order, with its number; `None` before they were read.
    modules: Option<Vec<(Range<u64>, u64)>>,
    next: u64,
}

impl Images {
    /// Hands out the headers between two places, some at a time, with their numbers.
    fn headers<T: FromBytes + Immutable + KnownLayout + Unaligned>(
        &self,
        source: &mut Source<'_>,
        at: u64,
        numbers: Range<u64>,
        mut each: impl FnMut(u64, &T),
    ) -> io::Result<()> {
        let mut next = numbers.start;
        while next < numbers.end {
            let until = numbers.end.min(next + TOGETHER);
            let start = self.start + at;
            let bytes = source.read_range(&(start + HEADER * next..start + HEADER * until))?;
            (next..until).zip(records(&bytes)).for_each(|(n, header)| each(n, header));
            next = until;
        }
        Ok(())
    }

    /// Returns the images of each abstract module that has some, in order.
    fn modules(
        &self,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<Vec<(Range<u64>, u64)>> {
        let Layout { modules, ir, native, .. } = self.layout;
        let mut ranges = Vec::new();
        self.headers(source, FILE_HEADER, 0..modules, |n, header: &ModuleHeader| {
            let of_kinds =
                [("IR modules", &header.ir, 0, ir), ("native images", &header.native, ir, native)];
            for (what, numbers, before, count) in of_kinds {
                let (len, first) = (u64::from(numbers.len), u64::from(numbers.first));
                if first + len > count {
                    let what = format!("the end of the {what} of abstract module {n}");
                    found.finding(self.start, fault(&what, count, first + len));
                } else if len > 0 {
                    ranges.push((before + first..before + first + len, n));
                }
            }
        })?;
        ranges.sort_by_key(|(range, module)| (range.start, *module));
        for pair in ranges.windows(2) {
            let [(one, _), (other, module)] = pair else { continue };
            if other.start < one.end {
                let what = format!("the first image of abstract module {module}");
                found.finding(self.start, fault(&what, one.end, other.start));
                break;
            }
        }
        Ok(ranges)
    }

    /// Returns the first two images that share bytes.
    fn overlap(&self, source: &mut Source<'_>) -> io::Result<Option<Error>> {
        let layout = self.layout;
        let mut ranges = Vec::new();
        self.headers(source, layout.headers(), 0..layout.images(), |n, header: &ImageHeader| {
            let range = header.bytes.within(layout.bytes).filter(|range| !range.is_empty());
            ranges.extend(range.map(|range| (range.start, range.end, n)));
        })?;
        ranges.sort_unstable();
        let pair = ranges.windows(2).find(|pair| matches!(pair, [one, other] if other.0 < one.1));
        Ok(pair.and_then(|pair| {
            let [(_, _, first), (at, _, second)] = *pair else { return None };
            let at = layout.data + at;
            let message =
                format!("malformed SYCLBIN: images {first} and {second} overlap at {at:#x}");
            Some(Error::malformed(ContainerKind::Syclbin, message))
        }))
    }

    /// Returns the abstract module of an image.
    fn module(&self, image: u64) -> Option<u32> {
        let modules = self.modules.as_deref()?;
        let after = modules.partition_point(|(range, _)| range.start <= image);
        let (range, module) = modules.get(after.checked_sub(1)?)?;
        u32::try_from(*module).ok().filter(|_| range.contains(&image))
    }

    fn image(
        &self,
        source: &mut Source<'_>,
        n: u64,
        header: &ImageHeader,
        found: &mut Finds,
    ) -> io::Result<()> {
        let Layout { bytes, metadata, data, .. } = self.layout;
        let Some(Range { start, end }) = header.bytes.within(bytes) else {
            let end = header.bytes.offset.get().checked_add(header.bytes.size.get());
            found.finding(self.start, fault(&format!("the end of image {n}"), bytes, end));
            return Ok(());
        };
        let window = self.start + data + start..self.start + data + end;
        let head = source.peek(&window, FileFormat::SNIFF_LEN)?;
        let format = FileFormat::sniff(&head);
        let own = image_target::of_window(source, &window, format)?;
        let triple = own.as_ref().and_then(Target::triple).cloned();
        let id = own.as_ref().map_or("", Target::id);
        let target = Target::new(Some(OffloadKind::Sycl), triple, id);
        let mut description = Description::new(ContainerKind::Syclbin, target.into());
        description.format = Some(format);
        description.info.code_version = code_version(&head, format);
        description.info.offset_in_container = window.start - self.start;
        description.info.module = self.module(n);
        let (offset, size) = (header.metadata.offset.get(), header.metadata.size.get());
        let properties = if offset <= metadata {
            let at = self.start + self.layout.properties() + offset;
            source.peek(&(at..at + size.min(metadata - offset)), METADATA)?
        } else {
            Vec::new()
        };
        let kind = if n < self.layout.ir { Kind::of_ir(&properties) } else { Kind::Native };
        check(source, &window, format, kind, &mut description.info, found)?;
        found.image(window, description);
        Ok(())
    }
}

impl Children for Images {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        if self.modules.is_none() {
            // No byte is walked twice.
            if let Some(overlap) = self.overlap(source)? {
                found.finding(self.start, overlap);
                return Ok(false);
            }
            self.modules = Some(self.modules(source, found)?);
        }
        let images = self.layout.images();
        let until = images.min(self.next + TOGETHER);
        let at = |n: u64| self.start + self.layout.headers() + HEADER * n;
        let headers = source.read_range(&(at(self.next)..at(until)))?;
        for (n, header) in (self.next..until).zip(records(&headers)) {
            self.image(source, n, header, found)?;
        }
        self.next = until;
        Ok(until < images)
    }
}

/// The kind of an image, as its SYCLBIN says.
#[derive(Clone, Copy)]
enum Kind {
    SpirV,
    Ptx,
    /// Code for AMD's GPUs, or of a type that nothing names.
    OtherIr,
    Native,
}

impl Kind {
    /// Returns the kind of an IR module by its properties: `type=1|0` (intel/llvm, "SYCL binary property sets").
    fn of_ir(properties: &[u8]) -> Self {
        let mut lines = properties.split(|byte| *byte == b'\n');
        match lines.find_map(|line| line.strip_prefix(b"type=1|")) {
            Some(b"0") => Kind::SpirV,
            Some(b"1") => Kind::Ptx,
            _ => Kind::OtherIr,
        }
    }

    /// Returns the formats of such images in words, and whether this is one of them.
    fn expectation(self, found: FileFormat) -> (&'static str, bool) {
        let is_known = !matches!(found, FileFormat::Unknown | FileFormat::Empty);
        match self {
            Kind::SpirV => ("SPIR-V", found == FileFormat::SpirV),
            Kind::Ptx => ("PTX", found == FileFormat::Ptx),
            Kind::OtherIr => ("SPIR-V, PTX or LLVM bitcode", is_known),
            Kind::Native => ("an ELF file or another image of a known format", is_known),
        }
    }
}

/// Checks an image against what its SYCLBIN says of it, and its own headers.
fn check(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: FileFormat,
    kind: Kind,
    info: &mut ImageInfo,
    found: &mut Finds,
) -> io::Result<()> {
    let (expected, is_expected) = kind.expectation(format);
    if !is_expected {
        info.disagreement = Some(Box::new(Disagreement::Format { found: format, expected }));
    }
    if let Some(fault) = bare::fault(source, window, format)? {
        found.finding(window.start, fault);
    }
    Ok(())
}

/// Checks an entry of an offload binary that is one of a SYCLBIN of version 2, and adds its abstract module.
pub(crate) fn check_entry(
    source: &mut Source<'_>,
    window: &Range<u64>,
    info: &mut ImageInfo,
    found: &mut Finds,
) -> io::Result<()> {
    const SIZE: u64 = size_of::<U64>() as u64;
    let Some(entry) = &info.offload_binary_entry else { return Ok(()) };
    let Some(role) = entry.get("role") else { return Ok(()) };
    let (is_ir, is_native) = (role == b"ir", role == b"native");
    info.module = entry.get("am_index").and_then(|n| std::str::from_utf8(n).ok()?.parse().ok());
    if !is_ir && !is_native {
        return Ok(());
    }
    let head = source.peek(window, size_of::<U64>())?;
    let Ok(size) = U64::read_from_bytes(&head) else {
        found.finding(window.start, fault("the size of an image", SIZE, head.len() as u64));
        return Ok(());
    };
    let start = window.start + SIZE;
    let available = window.end - start;
    let size = size.get();
    if size > available {
        found.finding(window.start, fault("the size of the metadata of an image", available, size));
        return Ok(());
    }
    let image = start + size..window.end;
    let kind = if is_ir {
        Kind::of_ir(&source.peek(&(start..image.start), METADATA)?)
    } else {
        Kind::Native
    };
    let format = FileFormat::sniff(&source.peek(&image, FileFormat::SNIFF_LEN)?);
    check(source, &image, format, kind, info, found)
}
