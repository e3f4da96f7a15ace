//! Host files: ELF, COFF, PE and Mach-O, and which of their sections hold device code.

use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};

use byte_parts::Budget;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::macho::{FatArch, MachHeader, MachOFatFile32, MachOFatFile64};
use object::read::{FileKind, ReadCache, ReadRef};
use object::{Endianness, Object, ObjectSection, elf, macho};

use crate::containers::{Start, lossy, starts_with};
use crate::error::Error;
use crate::file_format::FileFormat;
use crate::image::{BundleForm, Description};
use crate::model::{ContainerKind, PathStep};
use crate::source::{HeaderReader, Headers, Source};
use crate::walker::Walker;
use crate::{bare, sycl};

/// The segment and the section that bundles lie in, in Mach-O objects.
const MACH_O_SEGMENT: &[u8] = b"__LLVM";
const MACH_O_BUNDLE_SECTION: &[u8] = b"__offload_bundle";

/// Section type of offload binaries that clang embeds (LLVM's `ELF.h`, `SHT_LLVM_OFFLOADING`).
const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;

/// Sections of these names hold device code and nothing else. `.hip_fat`, `.nv_fatb` and `__nv_rel` are what is left of
/// longer names in the eight bytes of a PE section name.
const DEVICE_SECTIONS: [&str; 8] = [
    ".hip_fatbin",
    ".hip_fat",
    "__hip_fatbin",
    ".nv_fatbin",
    ".nv_fatb",
    "__nv_fatbin",
    "__nv_relfatbin",
    "__nv_rel",
];

pub(crate) struct Section {
    pub(crate) name: String,
    /// Offset and end in the host file.
    pub(crate) range: Range<u64>,
    /// Whether type or name say that it holds device code.
    pub(crate) device: bool,
    /// Whether it holds a bundle in the object form, where names are too short for IDs.
    pub(crate) holds_bundle: bool,
}

pub(crate) struct Slice {
    name: String,
    start: u64,
    size: u64,
}

/// A section as its header names it.
pub(crate) struct NamedSection<'a> {
    pub(crate) name: &'a [u8],
    /// Offset and end in the host file.
    pub(crate) range: Range<u64>,
    /// `true` if type or name say that it holds device code.
    pub(crate) device: bool,
    /// `true` if it holds a bundle in the object form, where names are too short for IDs.
    holds_bundle: bool,
}

impl NamedSection<'_> {
    /// Returns whether it is a bundle entry itself; such count when empty, too.
    pub(crate) fn is_bundle_entry(&self) -> bool {
        self.name.starts_with(bundle_format::MAGIC_TEXT.as_bytes())
    }
}

/// What the headers of a host file list.
pub(crate) enum Parts {
    /// Sections, each of which was handed out.
    Sections,
    Slices(Vec<Slice>),
    /// An ELF executable or library without section headers.
    Nothing,
    /// Sections whose names share bytes until they are too many.
    TooManyNames,
}

impl Walker<'_> {
    pub(crate) fn host_file(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
    ) -> io::Result<()> {
        let names = &mut self.names;
        let mut sections = Vec::new();
        let mut keep = |section: NamedSection<'_>| {
            let NamedSection { name, range, device, holds_bundle } = section;
            sections.push(Section { name: lossy(name), range, device, holds_bundle });
            ControlFlow::Continue(())
        };
        match with_object_reader(source, window, |data| parts(data, names, &mut keep))? {
            Ok(Parts::Sections) => {
                let sycl = self.sycl_tables(source, window, &sections)?;
                self.sections(source, window, &sections, &sycl)
            }
            Ok(Parts::Slices(slices)) => self.slices(source, window, slices),
            Ok(Parts::Nothing) => {
                // Code for a GPU is loaded by its segments.
                match bare::is_device_elf(FileFormat::sniff(&source.peek(window, 20)?)) {
                    true => Ok(()),
                    false => {
                        let sycl = self.sycl_tables(source, window, &[])?;
                        self.sections(source, window, &[], &sycl)?;
                        match self.options.scan {
                            true => Ok(()),
                            false => self.finding(source, window.start, Error::NoSectionHeaders),
                        }
                    }
                }
            }
            Ok(Parts::TooManyNames) => {
                let error = Error::TooManyNames { limit: self.names.limit() };
                self.finding(source, window.start, error)
            }
            Err(error) => self.finding(source, window.start, error),
        }
    }

    pub(crate) fn sections(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        sections: &[Section],
        sycl: &sycl::Images,
    ) -> io::Result<()> {
        let available = window.end - window.start;
        let mut walked = Ranges::default();
        // Sections that do not overlap have no more bytes than the file.
        let mut headers = Budget::new(available);
        let mut beyond_end = false;
        let mut covered = Vec::new();
        let scans = self.options.scan && !source.is_start() && !is_image(source, window)?;
        // Objects can lie in objects.
        let around = std::mem::take(&mut self.has_placeholder);
        let of_gcc = sections.iter().find(|section| is_gcc_section(section.name.as_bytes()));
        if let Some(section) = of_gcc {
            let at = window.start.saturating_add(section.range.start);
            self.finding(source, at, Error::GccIntermediateCode)?;
        }
        for section in sections {
            let Range { start, end } = section.range;
            if end > available {
                // The first says that the file is cut short; the others add nothing.
                if !beyond_end {
                    let name = section.name.clone();
                    let error = Error::SectionBeyondEnd { name, start, end, available };
                    self.finding(source, window.start, error)?;
                }
                beyond_end = true;
                continue;
            }
            let inner = window.start + start..window.start + end;
            let id = section.name.strip_prefix(bundle_format::MAGIC_TEXT).map(String::from);
            let is_sycl = sycl.are_in(&inner) || self.holds_sycl(source, &inner, &section.name)?;
            let known = section.device || id.is_some() || is_sycl;
            let start_of = match known {
                true => Start::Container,
                false => starts_with(source, &inner, &mut headers)?,
            };
            let overlaps = match start_of {
                Start::Nothing => continue,
                Start::Container => !walked.insert(&section.range),
                Start::Unknown => true,
            };
            if overlaps {
                let name = section.name.clone();
                let error = Error::OverlappingSections { name, start, end };
                self.finding(source, window.start, error)?;
                continue;
            }
            let segment = PathStep::new(ContainerKind::Section, &*section.name);
            let object = section.holds_bundle.then_some(window);
            // Other data may follow where only the first bytes speak of a container.
            let mixed = !known && scans && !self.options.tell_trailing;
            let mut walked_to = inner.end;
            self.within(source, segment, &inner, None, |walker, source| match id {
                _ if is_sycl => {
                    let images = walker.sycl_section(source, &inner, &section.name, sycl)?;
                    covered.push((start, images));
                    Ok(())
                }
                Some(id) => walker.section_entry(source, window, &inner, id),
                None => {
                    walked_to = walker.sequence(source, &inner, object, mixed)?;
                    Ok(())
                }
            })?;
            walked.cut(start, walked_to - window.start);
        }
        self.has_placeholder = around;
        for range in self.sycl_outside(source, window, sycl, &walked)? {
            walked.insert(&range);
        }
        for (start, images) in covered {
            walked.narrow(start, &images, window.start);
        }
        match scans {
            true => self.scan(source, window, &walked, sections),
            false => Ok(()),
        }
    }

    /// A section that is a bundle entry itself, as the bundler puts them into objects.
    fn section_entry(
        &mut self,
        source: &mut Source<'_>,
        object: &Range<u64>,
        window: &Range<u64>,
        id: String,
    ) -> io::Result<()> {
        self.composition(source, window.start, std::slice::from_ref(&id))?;
        let form = BundleForm::Section;
        let mut description = self.described_by_id(ContainerKind::Section, form, id, 0);
        self.object_form_entry(source, object, window, &mut description)?;
        self.image(source, window, &description)
    }

    /// Completes what is known of an entry of a bundle in the object form.
    pub(crate) fn object_form_entry(
        &mut self,
        source: &mut Source<'_>,
        object: &Range<u64>,
        window: &Range<u64>,
        description: &mut Description,
    ) -> io::Result<()> {
        description.object = Some(object.clone());
        // One zero byte stands for the host object. A device image can be one zero byte, too: the kind decides.
        let is_host = description.target.is_host();
        if is_host && source.peek(window, 2)? == [0] {
            // It stands for the whole object: a second one would make its contents a multiple of it.
            if std::mem::replace(&mut self.has_placeholder, true) {
                let id = description.id.clone().unwrap_or_default();
                return self.finding(source, window.start, Error::SecondHost { id });
            }
            description.format = Some(FileFormat::HostPlaceholder);
        }
        Ok(())
    }

    fn slices(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        slices: Vec<Slice>,
    ) -> io::Result<()> {
        let available = window.end - window.start;
        let mut walked = Ranges::default();
        for (index, slice) in slices.into_iter().enumerate() {
            let (start, end) = (slice.start, slice.start.saturating_add(slice.size));
            if end > available || !walked.insert(&(start..end)) {
                self.finding(source, window.start, Error::Slice { index, start, end, available })?;
                continue;
            }
            let inner = window.start + start..window.start + end;
            let segment = PathStep::new(ContainerKind::Slice, slice.name);
            self.within(source, segment, &inner, None, |walker, source| {
                walker.contents(source, &inner).map(drop)
            })?;
        }
        Ok(())
    }
}

/// Returns whether the file is a device image, which holds no others.
fn is_image(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<bool> {
    Ok(bare::is_device_elf(FileFormat::sniff(&source.peek(window, 64)?)))
}

/// Ranges that do not overlap.
#[derive(Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range; false if it shares bytes with one added before.
    fn insert(&mut self, range: &Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let before = self.0.range(..range.end).next_back();
        if before.is_some_and(|(_, &end)| end > range.start) {
            return false;
        }
        self.0.insert(range.start, range.end);
        true
    }

    /// Lets the range that starts here end earlier.
    fn cut(&mut self, start: u64, end: u64) {
        if let Some(old) = self.0.get_mut(&start) {
            *old = end.clamp(start, *old);
        }
    }

    /// Leaves of the range that starts here only these parts, which are in order and count from `base`.
    fn narrow(&mut self, start: u64, parts: &[Range<u64>], base: u64) {
        let Some(end) = self.0.remove(&start) else { return };
        let mut at = start;
        for part in parts {
            let first = part.start.saturating_sub(base).max(at);
            at = part.end.saturating_sub(base).min(end).max(first);
            self.insert(&(first..at));
        }
    }

    /// The ranges between, up to `len`.
    pub(crate) fn gaps(&self, len: u64) -> impl Iterator<Item = Range<u64>> {
        let ends = std::iter::once(0).chain(self.0.values().copied());
        let starts = self.0.keys().copied().chain([len]);
        ends.zip(starts).map(|(end, start)| end..start).filter(|gap| !gap.is_empty())
    }
}

/// Runs `f` over the window as the `object` crate reads it. Errors of reading come out as such, whatever `f`
/// made of them.
pub(crate) fn with_object_reader<'s, T>(
    source: &mut Source<'s>,
    window: &Range<u64>,
    f: impl for<'a, 'b> FnOnce(Headers<'a, 'b, 's>) -> T,
) -> io::Result<T> {
    let len = window.end - window.start;
    if let Some(bytes) = source.bytes(window) {
        return Ok(f(Headers::Memory(bytes)));
    }
    let cache = ReadCache::new(HeaderReader::new(source, len));
    let out = f(Headers::Cache(cache.range(window.start, len)));
    match cache.into_inner().failed {
        Some(error) => Err(error),
        None => Ok(out),
    }
}

/// Reads the headers of a host file, and hands out one section after the other, until it is told to stop.
pub(crate) fn parts<'d>(
    data: impl ReadRef<'d>,
    names: &mut Budget,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> Result<Parts, Error> {
    let malformed = |format| {
        move |error: object::read::Error| Error::Object { format, detail: error.to_string() }
    };
    match FileKind::parse(data).map_err(malformed("host"))? {
        FileKind::Elf32 => {
            elf_parts::<elf::FileHeader32<Endianness>>(data, names, each).map_err(malformed("ELF"))
        }
        FileKind::Elf64 => {
            elf_parts::<elf::FileHeader64<Endianness>>(data, names, each).map_err(malformed("ELF"))
        }
        FileKind::Coff | FileKind::CoffBig => {
            other_parts(data, names, each).map_err(malformed("COFF"))
        }
        FileKind::Pe32 | FileKind::Pe64 => other_parts(data, names, each).map_err(malformed("PE")),
        FileKind::MachO32 => check_commands::<macho::MachHeader32<Endianness>>(data)
            .and_then(|()| other_parts(data, names, each))
            .map_err(malformed("Mach-O")),
        FileKind::MachO64 => check_commands::<macho::MachHeader64<Endianness>>(data)
            .and_then(|()| other_parts(data, names, each))
            .map_err(malformed("Mach-O")),
        FileKind::MachOFat32 => {
            let file = MachOFatFile32::parse(data).map_err(malformed("Mach-O"))?;
            Ok(Parts::Slices(file.arches().iter().map(slice).collect()))
        }
        FileKind::MachOFat64 => {
            let file = MachOFatFile64::parse(data).map_err(malformed("Mach-O"))?;
            Ok(Parts::Slices(file.arches().iter().map(slice).collect()))
        }
        _ => Ok(Parts::Sections),
    }
}

fn slice(arch: &impl FatArch) -> Slice {
    let name = match arch.architecture() {
        object::Architecture::Unknown => format!("cpu-{}", arch.cputype().0),
        known => format!("{known:?}").to_ascii_lowercase(),
    };
    Slice { name, start: arch.offset().into(), size: arch.size().into() }
}

/// ELF by its section headers alone: symbol tables, which the general reader loads, can be large.
fn elf_parts<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
    names: &mut Budget,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> object::read::Result<Parts> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?;
    if table.is_empty() && [elf::ET_EXEC, elf::ET_DYN].contains(&header.e_type(endian)) {
        return Ok(Parts::Nothing);
    }
    for header in table.iter() {
        let Some((start, size)) = header.file_range(endian) else {
            continue;
        };
        let name = table.section_name(endian, header)?;
        if !names.take(name.len() as u64) {
            return Ok(Parts::TooManyNames);
        }
        let typed = header.sh_type(endian).0 == SHT_LLVM_OFFLOADING;
        let device = typed || is_device_section(name);
        let range = start..start.saturating_add(size);
        let section = NamedSection { name, range, device, holds_bundle: false };
        if size == 0 && !section.is_bundle_entry() {
            continue;
        }
        if each(section).is_break() {
            break;
        }
    }
    Ok(Parts::Sections)
}

/// Load commands up to the first malformed one are all that [`object::File`] knows of.
fn check_commands<'d, Mach: MachHeader>(data: impl ReadRef<'d>) -> object::read::Result<()> {
    let header = Mach::parse(data, 0)?;
    let mut commands = header.load_commands(header.endian()?, data, 0)?;
    while commands.next()?.is_some() {}
    Ok(())
}

fn other_parts<'d>(
    data: impl ReadRef<'d>,
    names: &mut Budget,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> object::read::Result<Parts> {
    let file = object::File::parse(data)?;
    for section in file.sections() {
        let Some((start, size)) = section.file_range() else {
            continue;
        };
        let name = section.name_bytes()?;
        if !names.take(name.len() as u64) {
            return Ok(Parts::TooManyNames);
        }
        let holds_bundle =
            name == MACH_O_BUNDLE_SECTION && section.segment_name_bytes()? == Some(MACH_O_SEGMENT);
        let device = holds_bundle || is_device_section(name);
        let range = start..start.saturating_add(size);
        let section = NamedSection { name, range, device, holds_bundle };
        if size == 0 && !section.is_bundle_entry() {
            continue;
        }
        if each(section).is_break() {
            break;
        }
    }
    Ok(Parts::Sections)
}

/// Returns whether the section is a part of GCC's intermediate code for devices (`gcc/lto-section-names.h`).
pub(crate) fn is_gcc_section(name: &[u8]) -> bool {
    name.starts_with(b".gnu.offload_lto_")
}

pub(crate) fn is_device_section(name: &[u8]) -> bool {
    // Part of a name: COFF objects may carry several `.llvm.offloading` sections with a suffix.
    name.starts_with(b".llvm.offloading")
        || DEVICE_SECTIONS.iter().any(|device| device.as_bytes() == name)
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
        ranges.narrow(0, &[102..104, 103..105, 104..104, 107..200], 100);
        assert_eq!(ranges.gaps(31).collect::<Vec<_>>(), [0..2, 5..7, 15..20, 20..30]);
        assert!(Ranges::default().gaps(7).eq(std::iter::once(0..7)));
    }
}
