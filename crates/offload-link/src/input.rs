//! The device code of the inputs of a link.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use byte_parts::{Source, internal};
use fat_object::{
    Container, ContainerKind, Enter, FileFormat, Image, ImageInfo, Location, Options, PathStep,
    ReadSeek, Visitor, elf_type,
};
use object::elf;
use offload_binary::{ImageKind, OffloadKind};
use twox_hash::XxHash3_128;

use crate::error::{Error, ErrorKind};
use crate::hosts::{Host, Hosts, NumberedSymbols, UnnumberedSymbols, Unread};
use crate::symbols::Symbols;
use crate::target::LinkTarget;

/// Inputs of a link in the order of the command line, and the device code that they hold.
#[derive(Debug, Default)]
pub struct Inputs<'d> {
    codes: Vec<DeviceCode<'d>>,
    whole_archive: bool,
    /// The number of inputs, searched or passed over.
    count: usize,
    has_symbols: bool,
    /// The first input whose symbols were not read.
    unread: Option<String>,
    /// Inputs and members, if their symbols are read.
    hosts: Hosts<'d>,
    /// The symbols of device code.
    numbered: OnceLock<NumberedSymbols>,
}

/// Device code for one target that a compiler stored in an object.
#[derive(Clone, Debug)]
pub struct DeviceCode<'d> {
    index: usize,
    input: usize,
    file: Arc<str>,
    member: Option<String>,
    is_lazy: bool,
    /// For a member, whether the host linker loaded it.
    is_loaded: Option<bool>,
    target: LinkTarget,
    offload_kind: OffloadKind,
    image_kind: ImageKind,
    place: CodeBytes<'d>,
    /// A hash of the code of a member.
    hash: Option<u128>,
    /// The number of its host object.
    host: Option<usize>,
    /// The symbols of code of a file.
    symbols: Symbols,
}

/// The place of device code.
#[derive(Clone, Debug)]
enum CodeBytes<'d> {
    Memory(Cow<'d, [u8]>),
    /// A range of the input's file.
    File(Range<u64>),
}

/// The sections that compilers store device code in start with this.
const SECTION: &str = ".llvm.offloading";
/// Images that are linked already lie in this one.
const LINKED_SECTION: &str = ".llvm.offloading.relocatable";

/// Bytes that tell whether a file is searched: up to `e_type` of an ELF header.
const HEAD: usize = 64;

impl<'d> Inputs<'d> {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Inputs::default()
    }

    /// Reads the symbols of the inputs that follow: of host objects, of device code, and of shared libraries what they refer
    /// to. [`Members::Needed`](crate::Members::Needed) decides by these.
    ///
    /// All inputs of the host link count, also those without device code. A [`Plan`](crate::Plan) reads the symbols of host
    /// objects in memory, if there is device code in members of archives: otherwise they decide nothing.
    #[must_use]
    pub fn with_symbols(mut self) -> Self {
        self.has_symbols = true;
        self
    }

    /// Sets whether members of the archives that follow are objects of the link as well, as `--whole-archive` does.
    ///
    /// Otherwise, members complete images that objects demand, and demand none.
    pub fn whole_archive(&mut self, whole: bool) {
        self.whole_archive = whole;
    }

    /// Adds an object, archive or offload binary in memory. Returns the number of device images in it.
    ///
    /// Objects are ELF or COFF files and LLVM bitcode. Shared libraries and other files are passed over.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`] for a malformed archive, object or offload binary, and for a thin archive, whose members
    /// [`read`](Self::read) opens.
    pub fn add(&mut self, name: &str, bytes: &'d [u8]) -> Result<usize, Error> {
        self.count += 1;
        let is_searched = is_searched(bytes.get(..HEAD).unwrap_or(bytes));
        if !self.has_symbols {
            self.unread.get_or_insert_with(|| name.to_owned());
        }
        if !is_searched && !self.has_symbols {
            return Ok(0);
        }
        let mut open = no_thin_members;
        let mut collector = self.collector(name, Some(bytes), &mut open);
        let walked = if is_searched {
            fat_object::walk_slice(bytes, &options(), &mut collector).map(drop)
        } else {
            Ok(())
        };
        let found = walked.and_then(|()| collector.finish(Source::of_bytes(bytes)));
        self.take(name, found)
    }

    /// Adds a member of an archive in memory, and whether the host linker loaded it. Returns the number of device images in it.
    ///
    /// This is for linkers that have resolved the symbols of host objects, whatever [`Members`](crate::Members) says. A loaded
    /// member is linked into all images that it fits. Another one is linked only into images whose device code refers to its
    /// device code, which a host linker does not see, so a linker adds all members; if several of these define a
    /// symbol, the first is linked. Where it cannot be told what device code refers to, all of them are linked: it is PTX, or another
    /// input was [read](Self::read) without [`with_symbols`](Self::with_symbols). Members that are added need no `with_symbols`.
    ///
    /// As members of other archives, it demands no image, unless it is loaded and of a [`whole_archive`](Self::whole_archive).
    /// Each call adds an input: a member with the same name and code is linked once, except of a whole archive.
    ///
    /// ```
    /// use offload_link::{Inputs, Plan, PlanOptions};
    ///
    /// let object = std::fs::read("../../examples/data/hip-packager.o")?;
    /// let mut inputs = Inputs::new();
    /// inputs.add("main.o", &object)?;
    /// for (member, loaded) in [("used.o", true), ("unused.o", false)] {
    ///     inputs.add_member("libkernels.a", member, &object, loaded)?;
    /// }
    /// let plan = Plan::new(&inputs, &PlanOptions::default())?;
    /// let [image] = plan.groups() else { panic!("one target") };
    /// let linked: Vec<_> = image.inputs().iter().map(|input| input.code().to_string()).collect();
    /// assert_eq!(linked, ["main.o", "libkernels.a(used.o)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`] for a malformed object or offload binary, and for a thin archive in the archive.
    pub fn add_member(
        &mut self,
        archive: &str,
        member: &str,
        bytes: &'d [u8],
        loaded: bool,
    ) -> Result<usize, Error> {
        self.count += 1;
        if loaded && !self.has_symbols {
            self.unread.get_or_insert_with(|| archive.to_owned());
        }
        let mut open = no_thin_members;
        let mut collector = self.collector(archive, Some(bytes), &mut open);
        collector.has_symbols = false;
        collector.is_lazy |= !loaded;
        collector.loaded = Some(Loaded { member, is_loaded: loaded });
        let walked = fat_object::walk_slice(bytes, &options(), &mut collector);
        let mut found = collector.found;
        let name = || format!("{archive}({member})");
        let is_root = loaded && self.has_symbols;
        if is_root || !found.codes.is_empty() {
            let symbols = if is_root {
                UnnumberedSymbols::Unread(Unread { bytes, is_input: false })
            } else {
                UnnumberedSymbols::Read(Symbols::NoObject)
            };
            found.hosts.list.push(Host { name: name(), is_lazy: false, symbols });
            found.codes.iter_mut().for_each(|code| code.host = Some(0));
        }
        walked.map_err(|error| Error::of(ErrorKind::Input, &name(), error))?;
        let count = found.codes.len();
        self.push(found);
        Ok(count)
    }

    /// Adds an object, archive or offload binary that is read from a file. Returns the number of device images in it.
    ///
    /// Code is not copied where it lies in the file as it is: [`DeviceCode::range`] tells where. `open` opens the file
    /// that a thin archive names; the name is relative to the archive's directory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`] for a file that cannot be read, and as [`add`](Self::add).
    pub fn read(
        &mut self,
        name: &str,
        mut input: impl Read + Seek,
        mut open: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
    ) -> Result<usize, Error> {
        self.count += 1;
        let mut head = Vec::new();
        let start =
            input.rewind().and_then(|()| input.by_ref().take(HEAD as u64).read_to_end(&mut head));
        start
            .and_then(|_| input.seek(SeekFrom::Start(0)))
            .map_err(|error| Error::of(ErrorKind::Input, name, error))?;
        let is_searched = is_searched(&head);
        if !self.has_symbols {
            self.unread.get_or_insert_with(|| name.to_owned());
        }
        if !is_searched && !self.has_symbols {
            return Ok(0);
        }
        let mut collector = self.collector(name, None, &mut open);
        let walked = if is_searched {
            fat_object::walk(&mut input, &options(), &mut collector).map(drop)
        } else {
            Ok(())
        };
        let found = walked.and_then(|()| collector.finish(Source::new(input)?));
        self.take(name, found)
    }

    /// Adds the inputs of another list after those of this one: lists can be made on several threads.
    pub fn append(&mut self, other: Inputs<'d>) {
        let before = self.count;
        self.count += other.count;
        self.unread = self.unread.take().or(other.unread);
        let codes = other.codes.into_iter();
        let codes = codes.map(|code| DeviceCode { input: before + code.input, ..code }).collect();
        self.push(InputContents { codes, hosts: other.hosts });
    }

    /// Returns the device code of all inputs, in their order.
    #[must_use]
    pub fn codes(&self) -> &[DeviceCode<'d>] {
        &self.codes
    }

    /// Returns the name of an input whose symbols were not read.
    pub(crate) fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    /// Returns the host objects, in the order of the inputs.
    pub(crate) fn hosts(&self) -> &Hosts<'d> {
        &self.hosts
    }

    /// Returns the symbols of all device code. Reads those of code in memory.
    pub(crate) fn device_symbols(&self) -> &NumberedSymbols {
        let symbols = self.codes.iter().map(|code| match code.bytes() {
            Some(bytes) => Cow::Owned(Unread { bytes, is_input: false }.read()),
            None => Cow::Borrowed(&code.symbols),
        });
        self.numbered.get_or_init(|| NumberedSymbols::of(symbols))
    }

    /// Returns the name of the input or member that some code is from.
    pub(crate) fn name_of<'i>(&'i self, code: &'i DeviceCode<'_>) -> &'i str {
        let host = code.host.and_then(|number| self.hosts.list.get(number));
        host.map_or(&code.file, |host| &host.name)
    }

    fn collector<'c>(
        &self,
        name: &str,
        bytes: Option<&'d [u8]>,
        open: &'c mut Open<'c>,
    ) -> Collector<'c, 'd> {
        let is_lazy = !self.whole_archive;
        Collector {
            input: self.count - 1,
            file: name.into(),
            bytes,
            is_lazy,
            loaded: None,
            open,
            has_symbols: self.has_symbols,
            thin: None,
            inside: Vec::new(),
            members: Vec::new(),
            found: InputContents::default(),
        }
    }

    fn take(&mut self, name: &str, found: io::Result<InputContents<'d>>) -> Result<usize, Error> {
        let found = found.map_err(|error| Error::of(ErrorKind::Input, name, error))?;
        let count = found.codes.len();
        self.push(found);
        Ok(count)
    }

    fn push(&mut self, found: InputContents<'d>) {
        self.numbered = OnceLock::new();
        let first = self.hosts.append(found.hosts);
        for mut code in found.codes {
            code.index = self.codes.len();
            code.host = code.host.map(|host| first + host);
            self.codes.push(code);
        }
    }
}

impl DeviceCode<'_> {
    /// Returns the name of the input.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the name of the member, if the input is an archive: the name of the innermost one.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Returns the last part of the name of the object without its extension.
    #[must_use]
    pub fn stem(&self) -> &str {
        let name = self.member.as_deref().unwrap_or(&self.file);
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => name,
        }
    }

    /// Returns whether it is a member of an archive that demands no image.
    #[must_use]
    pub fn is_lazy(&self) -> bool {
        self.is_lazy
    }

    /// Returns whether the host linker loaded the member, if it [said so](Inputs::add_member).
    #[must_use]
    pub fn is_loaded(&self) -> Option<bool> {
        self.is_loaded
    }

    /// Returns its target.
    #[must_use]
    pub fn target(&self) -> &LinkTarget {
        &self.target
    }

    /// Returns the programming model.
    #[must_use]
    pub fn offload_kind(&self) -> OffloadKind {
        self.offload_kind
    }

    /// Returns the kind of the image: an object or bitcode.
    #[must_use]
    pub fn image_kind(&self) -> ImageKind {
        self.image_kind
    }

    /// Returns the position of its input among all that were added and read.
    #[must_use]
    pub fn input(&self) -> usize {
        self.input
    }

    /// Returns its position among the code of all inputs.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the code; `None` where it has a [`range`](Self::range).
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.place {
            CodeBytes::Memory(bytes) => Some(bytes),
            CodeBytes::File(_) => None,
        }
    }

    /// Returns the range of bytes of the input's [`file`](Self::file) that the code is, if the input was
    /// [`read`](Inputs::read). `None` for code that is in memory: code of bitcode, of compressed offload binaries and
    /// of files that thin archives name.
    #[must_use]
    pub fn range(&self) -> Option<Range<u64>> {
        match &self.place {
            CodeBytes::Memory(_) => None,
            CodeBytes::File(range) => Some(range.clone()),
        }
    }

    /// Returns the number of bytes of the code.
    #[must_use]
    pub fn size(&self) -> u64 {
        match &self.place {
            CodeBytes::Memory(bytes) => bytes.len() as u64,
            CodeBytes::File(range) => range.end - range.start,
        }
    }

    /// Returns the number of its host object, if symbols were read.
    pub(crate) fn host(&self) -> Option<usize> {
        self.host
    }

    /// Returns what all copies of a member have in common: those of an archive that is named twice, or of a copy of it. `None`
    /// for code outside of archives.
    pub(crate) fn copy_key(&self) -> Option<CopyKey<'_>> {
        let member = self.member.as_deref()?;
        Some((member, &self.target, self.offload_kind, self.size(), self.hash?))
    }
}

/// The member, the target, the programming model, the size and the hash of code.
pub(crate) type CopyKey<'d> = (&'d str, &'d LinkTarget, OffloadKind, u64, u128);

/// `a.o`, or `libb.a(x.o)` for a member.
impl fmt::Display for DeviceCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member {
            Some(member) => write!(f, "{}({member})", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// Returns whether a file with these first 64 bytes is a library: an archive or a shared ELF file.
///
/// Device links for a CPU are given the libraries of the host link.
#[must_use]
pub fn is_library(head: &[u8]) -> bool {
    is_shared(head) || FileFormat::sniff(head) == FileFormat::Archive
}

/// Returns whether a file with these first bytes is a shared ELF file.
pub(crate) fn is_shared(head: &[u8]) -> bool {
    elf_type(head) == Some(elf::ET_DYN.0)
}

/// Returns whether a file with these first bytes is searched for device code.
fn is_searched(head: &[u8]) -> bool {
    match FileFormat::sniff(head) {
        FileFormat::Elf { .. } => !is_shared(head),
        FileFormat::Coff
        | FileFormat::Bitcode
        | FileFormat::Archive
        | FileFormat::OffloadBinary => true,
        _ => false,
    }
}

/// An image is linked as a whole, whatever is in it. Sections of device code have names that say so.
fn options() -> Options {
    Options::default().with_enter_images(false).with_scan(false).with_section_starts(false)
}

fn no_thin_members(_: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
    let reason = "a member of a thin archive is a file of its own: expected a complete archive";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Returns the range of the walked file that an image is.
fn stored_range(info: &ImageInfo) -> Option<Range<u64>> {
    let Location::File(start) = info.location() else { return None };
    let size = info.stored_size().filter(|_| info.compression().is_none())?;
    Some(start..start.checked_add(size)?)
}

fn hash(mut reader: impl Read) -> io::Result<u128> {
    let mut hash = XxHash3_128::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hash.finish_128()),
            read => hash.write(buffer.split_at(read).0),
        }
    }
}

/// Returns the bytes of a member.
fn part<'d>(bytes: &'d [u8], place: &Range<u64>) -> io::Result<&'d [u8]> {
    let index = |at| usize::try_from(at).ok();
    let range = index(place.start).zip(index(place.end));
    let part = range.and_then(|(start, end)| bytes.get(start..end));
    part.ok_or_else(|| io::Error::other(internal!("a member that ends after its archive")))
}

type Open<'c> = dyn FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>> + 'c;

/// The device code and the host objects of an input.
#[derive(Default)]
struct InputContents<'d> {
    codes: Vec<DeviceCode<'d>>,
    hosts: Hosts<'d>,
}

/// A member whose archive the host linker has read.
#[derive(Clone, Copy)]
struct Loaded<'c> {
    member: &'c str,
    is_loaded: bool,
}

/// Takes the images out of the sections that compilers put offload binaries into.
struct Collector<'c, 'd> {
    input: usize,
    file: Arc<str>,
    bytes: Option<&'d [u8]>,
    is_lazy: bool,
    /// The input is this member.
    loaded: Option<Loaded<'c>>,
    open: &'c mut Open<'c>,
    has_symbols: bool,
    /// The file of a thin archive that was opened last.
    thin: Option<Source<'static>>,
    /// The members that the walk is in, by their numbers; none for other containers.
    inside: Vec<Option<usize>>,
    /// The places of members in the input; those in other files are read at once.
    members: Vec<Option<Range<u64>>>,
    found: InputContents<'d>,
}

impl<'d> Collector<'_, 'd> {
    /// Reads the symbols of what was found: those of host objects in memory later.
    fn finish(mut self, mut source: Source<'_>) -> io::Result<InputContents<'d>> {
        if !self.has_symbols {
            return Ok(self.found);
        }
        let InputContents { codes, hosts } = &mut self.found;
        let hosts = &mut hosts.list;
        for (host, place) in hosts.iter_mut().zip(&self.members) {
            let Some(place) = place else { continue };
            host.symbols = match self.bytes {
                Some(bytes) => UnnumberedSymbols::Unread(Unread {
                    bytes: part(bytes, place)?,
                    is_input: false,
                }),
                None => UnnumberedSymbols::Read(Symbols::read(&mut source, place)?),
            };
        }
        for code in codes.iter_mut() {
            if let CodeBytes::File(range) = &code.place {
                code.symbols = Symbols::read(&mut source, range)?;
            }
        }
        // The input itself, after its members.
        let symbols = match self.bytes {
            Some(bytes) => UnnumberedSymbols::Unread(Unread { bytes, is_input: true }),
            None => UnnumberedSymbols::Read(Symbols::read_input(&mut source)?),
        };
        for code in codes.iter_mut() {
            code.host.get_or_insert(hosts.len());
        }
        hosts.push(Host { name: self.file.to_string(), is_lazy: false, symbols });
        Ok(self.found)
    }
}

impl Visitor for Collector<'_, '_> {
    fn opens(&mut self, container: &Container) -> Enter {
        let name = container.path().last().map_or("", |step| step.name());
        let opens = match container.kind() {
            ContainerKind::Member | ContainerKind::OffloadBinary => true,
            ContainerKind::Section => name.starts_with(SECTION) && name != LINKED_SECTION,
            _ => false,
        };
        if opens { Enter::Open } else { Enter::Skip }
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        let is_member = container.kind() == ContainerKind::Member && self.has_symbols;
        self.inside.push(is_member.then_some(self.found.hosts.list.len()));
        if !is_member {
            return Ok(());
        }
        let start = container.location().offset();
        let place = start..start + container.size();
        let (place, symbols) = match (container.location(), &mut self.thin) {
            (Location::File(_), _) => (Some(place), Symbols::Unknown),
            (Location::ThinMember(_), Some(file)) => (None, Symbols::read(file, &place)?),
            _ => (None, Symbols::Unknown),
        };
        self.members.push(place);
        let member = container.path().last().map_or("", |step| step.name());
        let name = format!("{}({member})", self.file);
        let symbols = UnnumberedSymbols::Read(symbols);
        self.found.hosts.list.push(Host { name, is_lazy: self.is_lazy, symbols });
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.inside.pop();
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let info = image.info();
        let Some(entry) = info.offload_binary_entry() else { return Ok(()) };
        let text = |key| String::from_utf8_lossy(entry.get(key).unwrap_or(b"")).into_owned();
        let target = LinkTarget::new(text("triple"), text("arch"));
        let (offload_kind, image_kind) = (entry.offload_kind().current(), entry.image_kind());
        let mut steps = info.path().iter().rev();
        let member = steps.find(|step| step.kind() == ContainerKind::Member);
        let member = member.map(PathStep::name).or(self.loaded.map(|loaded| loaded.member));
        let member = member.map(str::to_owned);
        let lent = self.bytes.and_then(|bytes| info.bytes_in(bytes));
        let range = stored_range(info).filter(|_| self.bytes.is_none());
        let place = match (lent, range) {
            (Some(bytes), _) => CodeBytes::Memory(Cow::Borrowed(bytes)),
            (None, Some(range)) => CodeBytes::File(range),
            (None, None) => {
                let mut bytes = Vec::new();
                image.reader().read_to_end(&mut bytes)?;
                CodeBytes::Memory(Cow::Owned(bytes))
            }
        };
        let hash = match &place {
            _ if member.is_none() => None,
            CodeBytes::Memory(bytes) => Some(XxHash3_128::oneshot(bytes)),
            CodeBytes::File(_) => Some(hash(image.reader())?),
        };
        self.found.codes.push(DeviceCode {
            index: 0,
            input: self.input,
            file: Arc::clone(&self.file),
            is_lazy: self.is_lazy && member.is_some(),
            is_loaded: self.loaded.map(|loaded| loaded.is_loaded),
            member,
            target,
            offload_kind,
            image_kind,
            place,
            hash,
            host: self.inside.iter().rev().flatten().next().copied(),
            symbols: Symbols::Unknown,
        });
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        if self.has_symbols {
            self.thin = Some(Source::new((self.open)(name)?)?);
        }
        (self.open)(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_libraries_and_other_files_are_passed_over() {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(HEAD, 0);
        for (kind, expected) in [(1, true), (2, true), (3, false)] {
            elf[16] = kind;
            elf[18] = 62;
            assert_eq!(is_searched(&elf), expected, "{kind}");
        }
        (elf[5], elf[16], elf[17], elf[18], elf[19]) = (2, 0, 3, 0, 22);
        assert!(!is_searched(&elf));
        for (head, expected) in [
            (&b"BC\xc0\xde"[..], true),
            (b"!<arch>\n", true),
            (b"!<thin>\n", true),
            (b"\x10\xff\x10\xad", true),
            (b"MZ", false),
            (b"INPUT(libc.so.6)", false),
            (b"", false),
        ] {
            assert_eq!(is_searched(head), expected, "{head:?}");
        }
    }
}
