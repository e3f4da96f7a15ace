//! The symbols of objects: definitions, and references to other objects.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::{Budget, Source, Window, internal};
use fat_object::FileFormat;
use object::elf;
use object::endian::Endianness;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::read::{FileKind, Object, ObjectSection, ObjectSymbol, ReadRef};

/// Facts about the symbols of an object.
#[derive(Clone, Debug)]
pub(crate) enum Symbols<S = Listed> {
    Known(S),
    /// Not an object, so that it refers to nothing: an archive, an offload binary, text.
    NoObject,
    /// An object of another format, a damaged one, or one that does not tell.
    Unknown,
}

/// Symbols by their names. Objects share names, but to find the shared ones takes longer than to read all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    /// The names, one after the other.
    names: Vec<u8>,
    /// The role of each symbol, and the length of its name.
    symbols: Vec<(Role, u32)>,
    is_bitcode: bool,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Defined,
    Common,
    Referred,
}

/// Symbols by their numbers in [`Names`].
#[derive(Debug, Default)]
pub(crate) struct Known {
    defined: Vec<usize>,
    /// Definitions that give way to others, so that linkers look for these.
    common: Vec<usize>,
    referred: Vec<usize>,
    is_bitcode: bool,
}

/// The names of symbols, each once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<Arc<[u8]>, usize>,
    list: Vec<Arc<[u8]>>,
}

/// Largest object that is read into memory at once: ELF files are not.
const MAX_IN_MEMORY: u64 = 256 << 20;
/// Bytes of names, symbols and modules that are looked at for each byte of a file. Tables can share bytes; the symbols of
/// a file that needs more are unknown.
const MOST_FOR_A_BYTE: u64 = 16;

/// Sections of an object for link-time optimisation, by LLVM beside machine code, and by GCC.
const LLVM_LTO: &[u8] = b".llvm.lto";
const GCC_LTO: &[u8] = b".gnu.lto_";
/// A section with names of further libraries to link.
const SHT_LLVM_DEPENDENT_LIBRARIES: u32 = 0x6fff_4c04;
/// The directives of a COFF object.
const DIRECTIVES: &[u8] = b".drectve";

impl Names {
    fn number(&mut self, name: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let name: Arc<[u8]> = name.into();
        self.list.push(Arc::clone(&name));
        self.numbers.insert(name, self.list.len() - 1);
        self.list.len() - 1
    }

    /// Returns the number of a name, if an object has it.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn name(&self, number: usize) -> &[u8] {
        self.list.get(number).map_or(&[], |name| &**name)
    }
}

impl Symbols {
    /// Reads the symbols of the object in the window.
    ///
    /// # Errors
    ///
    /// Errors of reading. A damaged object has unknown symbols.
    pub(crate) fn read(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Self> {
        let head = source.peek(window, 64)?;
        let mut found = SymbolReader::new();
        found.bytes_left.grow(Window::new(window).len(), MOST_FOR_A_BYTE);
        // A program or library for Windows refers to nothing of this link.
        if FileFormat::sniff(&head) == FileFormat::Pe {
            return Ok(Self::NoObject);
        }
        let read = match FileKind::parse(&head[..]) {
            Ok(FileKind::Elf32) => source
                .with_headers(window, |data| found.elf::<elf::FileHeader32<Endianness>>(data))?,
            Ok(FileKind::Elf64) => source
                .with_headers(window, |data| found.elf::<elf::FileHeader64<Endianness>>(data))?,
            Ok(FileKind::Coff | FileKind::CoffBig | FileKind::MachO32 | FileKind::MachO64) => {
                let Some(bytes) = in_memory(source, window)? else { return Ok(Self::Unknown) };
                found.other(&bytes)
            }
            // The latter is a symbol of a library.
            Ok(FileKind::Archive | FileKind::CoffImport) => return Ok(Self::NoObject),
            _ if is_bitcode(&head) => {
                let Some(bytes) = in_memory(source, window)? else { return Ok(Self::Unknown) };
                found.bitcode(&bytes)
            }
            _ if head.starts_with(&offload_binary::MAGIC) || is_text(&head) => {
                return Ok(Self::NoObject);
            }
            _ => None,
        };
        Ok(match read {
            Some(()) => Self::Known(found.symbols),
            None => Self::Unknown,
        })
    }

    /// Reads the symbols of an input, and not of a member. A file that is or names other files has unknown ones.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    pub(crate) fn read_input(source: &mut Source<'_>) -> io::Result<Self> {
        let whole = 0..source.len();
        Ok(match Symbols::read(source, &whole)? {
            Symbols::NoObject if Symbols::stands_for_others(source)? => Symbols::Unknown,
            symbols => symbols,
        })
    }

    /// Returns whether a file without symbols names or is other files: a linker script, or an offload binary, which is
    /// the device code of an object.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    fn stands_for_others(source: &mut Source<'_>) -> io::Result<bool> {
        let head = source.peek(&(0..source.len()), 64)?;
        let is_script = !head.is_empty() && !head.starts_with(b"!<") && is_text(&head);
        Ok(is_script || head.starts_with(&offload_binary::MAGIC))
    }

    /// Returns the symbols by their numbers in `names`. Adds new names.
    pub(crate) fn number(&self, names: &mut Names) -> Symbols<Known> {
        match self {
            Symbols::Known(listed) => Symbols::Known(listed.number(names)),
            Symbols::NoObject => Symbols::NoObject,
            Symbols::Unknown => Symbols::Unknown,
        }
    }
}

impl Listed {
    /// Adds a symbol; `None` if its name is too long.
    fn push(&mut self, role: Role, name: &[u8]) -> Option<()> {
        self.symbols.push((role, u32::try_from(name.len()).ok()?));
        self.names.extend_from_slice(name);
        Some(())
    }

    fn number(&self, names: &mut Names) -> Known {
        let mut known = Known { is_bitcode: self.is_bitcode, ..Known::default() };
        let mut rest = &self.names[..];
        for &(role, len) in &self.symbols {
            let split = usize::try_from(len).ok().and_then(|len| rest.split_at_checked(len));
            let Some((name, after)) = split else {
                internal!("a name of a symbol that was not kept");
                break;
            };
            rest = after;
            let list = match role {
                Role::Defined => &mut known.defined,
                Role::Common => &mut known.common,
                Role::Referred => &mut known.referred,
            };
            list.push(names.number(name));
        }
        known
    }
}

impl Known {
    /// Returns the symbols that satisfy a reference.
    pub(crate) fn provided(&self) -> impl Iterator<Item = usize> {
        self.defined.iter().chain(&self.common).copied()
    }

    /// Returns the symbols that need no other definition.
    pub(crate) fn defined(&self) -> impl Iterator<Item = usize> {
        self.defined.iter().copied()
    }

    /// Returns the symbols that a linker looks for.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = usize> {
        self.referred.iter().chain(&self.common).copied()
    }

    /// Returns whether code for it is generated in the link, which may refer to more.
    pub(crate) fn is_bitcode(&self) -> bool {
        self.is_bitcode
    }
}

/// Symbols of an object that is being read. Its functions return `None` if these are not all.
struct SymbolReader {
    bytes_left: Budget,
    symbols: Listed,
}

impl SymbolReader {
    fn new() -> Self {
        SymbolReader { bytes_left: Budget::new(0), symbols: Listed::default() }
    }

    /// Counts bytes that are about to be looked at.
    fn count(&mut self, len: usize) -> Option<()> {
        self.bytes_left.take(len as u64).then_some(())
    }

    /// Returns the text at this offset, which ends with a zero.
    fn text<'s>(&mut self, strings: &'s [u8], start: u32) -> Option<&'s [u8]> {
        let text = before(strings.get(usize::try_from(start).ok()?..)?, 0)?;
        self.count(text.len())?;
        Some(text)
    }

    fn add(&mut self, role: Role, name: &[u8]) -> Option<()> {
        self.count(name.len())?;
        self.symbols.push(role, name)
    }

    fn define(&mut self, name: &[u8]) -> Option<()> {
        self.add(Role::Defined, name)
    }

    fn define_common(&mut self, name: &[u8]) -> Option<()> {
        self.add(Role::Common, name)
    }

    fn refer(&mut self, name: &[u8]) -> Option<()> {
        self.add(Role::Referred, name)
    }

    /// Reads the symbol table of an object, or the dynamic one of a shared library.
    fn elf<'d, Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        data: impl ReadRef<'d>,
    ) -> Option<()> {
        let header = Elf::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let table = header.sections(endian, data).ok()?;
        let is_shared = header.e_type(endian) == elf::ET_DYN;
        if is_shared && table.is_empty() {
            return None;
        }
        let wanted = if is_shared { elf::SHT_DYNSYM } else { elf::SHT_SYMTAB };
        // All at once: one by one, names are a read each.
        let names = table.section(header.section_strings_index(endian, data).ok()?).ok()?;
        let names = names.data(endian, data).ok()?;
        for section in table.iter() {
            let name = self.text(names, section.sh_name(endian))?;
            let kind = section.sh_type(endian);
            if !is_shared && (name.starts_with(GCC_LTO) || kind.0 == SHT_LLVM_DEPENDENT_LIBRARIES) {
                return None;
            }
            if !is_shared && name == LLVM_LTO {
                let bitcode = section.data(endian, data).ok()?;
                self.count(bitcode.len())?;
                self.bitcode(bitcode)?;
            }
            if kind != wanted {
                continue;
            }
            let symbols: &[Elf::Sym] = section.data_as_array(endian, data).ok()?;
            self.count(size_of_val(symbols))?;
            let strings = table.section(section.link(endian)).ok()?;
            let strings = strings.data(endian, data).ok()?;
            for symbol in symbols {
                self.elf_symbol::<Elf>(symbol, endian, strings)?;
            }
        }
        Some(())
    }

    fn elf_symbol<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        symbol: &Elf::Sym,
        endian: Endianness,
        strings: &[u8],
    ) -> Option<()> {
        let binding = symbol.st_bind();
        if binding == elf::STB_LOCAL {
            return Some(());
        }
        let name = without_version(self.text(strings, symbol.st_name(endian))?);
        if symbol.is_undefined(endian) {
            // Linkers take no member for a weak reference.
            return if binding == elf::STB_WEAK { Some(()) } else { self.refer(name) };
        }
        if symbol.is_common(endian) { self.define_common(name) } else { self.define(name) }
    }

    /// Reads the symbols of a COFF or Mach-O object, whose weak references count.
    fn other(&mut self, bytes: &[u8]) -> Option<()> {
        let file = object::File::parse(bytes).ok()?;
        for symbol in file.symbols().filter(ObjectSymbol::is_global) {
            let name = symbol.name_bytes().ok()?;
            if symbol.is_common() {
                self.define_common(name)?;
            } else if symbol.is_undefined() {
                self.refer(name)?;
                // Linkers make the pointer to a symbol that is linked in.
                if let Some(pointed) = name.strip_prefix(b"__imp_") {
                    self.refer(pointed)?;
                }
            } else {
                self.define(name)?;
                // A weak reference of COFF, which has a definition of its own.
                if symbol.is_weak() && symbol.section_index().is_none() {
                    self.refer(name)?;
                }
            }
        }
        for section in file.sections() {
            let name = section.name_bytes().ok()?;
            self.count(name.len())?;
            if name == DIRECTIVES {
                return self.directives(section.data().ok()?);
            }
        }
        Some(())
    }

    /// Reads options for a COFF linker that name symbols.
    fn directives(&mut self, text: &[u8]) -> Option<()> {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || [b'"', b'\0'].contains(byte);
        for word in text.split(is_end) {
            let [b'/' | b'-', word @ ..] = word else { continue };
            let mut parts = word.splitn(2, |&byte| byte == b':');
            let (Some(option), Some(value)) = (parts.next(), parts.next()) else { continue };
            if option.eq_ignore_ascii_case(b"include") {
                self.refer(value)?;
            } else if option.eq_ignore_ascii_case(b"alternatename") {
                let at = value.iter().position(|&byte| byte == b'=')?;
                self.refer(value.get(at + 1..)?)?;
            }
        }
        Some(())
    }

    fn bitcode(&mut self, bytes: &[u8]) -> Option<()> {
        let table = llvm_bitcode::symbol_table(bytes).ok()??;
        self.symbols.is_bitcode = true;
        let is_elf = is_elf(table.triple());
        for symbol in table.iter() {
            if !symbol.is_global() || symbol.is_format_specific() {
                continue;
            }
            let name = if is_elf { without_version(symbol.name()) } else { symbol.name() };
            if symbol.is_common() {
                self.define_common(name)?;
            } else if !symbol.is_undefined() {
                self.define(name)?;
            } else if !(symbol.is_weak() && is_elf) {
                self.refer(name)?;
            }
        }
        self.directives(table.linker_options())
    }
}

/// Returns the name without the version of `name@VERSION` or `name@@VERSION`.
fn without_version(name: &[u8]) -> &[u8] {
    before(name, b'@').filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Returns the bytes before the first one that is this.
fn before(bytes: &[u8], end: u8) -> Option<&[u8]> {
    // The crate `object` searches fast.
    bytes.read_bytes_at_until(0..bytes.len() as u64, end).ok()
}

/// Returns whether objects for this triple are ELF files.
fn is_elf(triple: &[u8]) -> bool {
    let others = ["windows", "apple", "darwin", "macos", "ios", "cygwin", "mingw", "uefi", "win32"];
    let triple = String::from_utf8_lossy(triple);
    !triple.is_empty() && !others.iter().any(|other| triple.contains(other))
}

fn is_bitcode(head: &[u8]) -> bool {
    head.starts_with(&llvm_bitcode::MAGIC) || head.starts_with(&llvm_bitcode::WRAPPER_MAGIC)
}

/// Returns whether a file with these first bytes is text, or empty.
fn is_text(head: &[u8]) -> bool {
    !head.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// Returns the bytes of the window; `None` if they are too many to hold.
fn in_memory<'s>(
    source: &'s mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Option<Cow<'s, [u8]>>> {
    if source.bytes(window).is_some() {
        return Ok(source.bytes(window).map(Cow::Borrowed));
    }
    if Window::new(window).len() <= MAX_IN_MEMORY {
        source.read_range(window).map(|bytes| Some(Cow::Owned(bytes)))
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Cursor, Read, Seek, SeekFrom};

    use super::*;

    /// Bytes that are lent, and their number.
    #[derive(Clone, Copy)]
    struct Counted<'c>(&'c [u8], &'c Cell<u64>);

    impl<'c> ReadRef<'c> for Counted<'c> {
        fn len(self) -> Result<u64, ()> {
            ReadRef::len(self.0)
        }

        fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'c [u8], ()> {
            self.1.set(self.1.get() + size);
            self.0.read_bytes_at(offset, size)
        }

        fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'c [u8], ()> {
            let text = self.0.read_bytes_at_until(range, delimiter)?;
            self.1.set(self.1.get() + text.len() as u64);
            Ok(text)
        }
    }

    /// A file, and the bytes that were read from it.
    struct File<'c>(Cursor<&'c [u8]>, &'c Cell<u64>);

    impl Read for File<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let len = self.0.read(buf)?;
            self.1.set(self.1.get() + len as u64);
            Ok(len)
        }
    }

    impl Seek for File<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    /// Returns an ELF object of this many symbol tables, with as many bytes of symbols as of headers. Each table
    /// starts after `step` symbols of the one before.
    fn symbol_tables(count: usize, step: usize) -> Vec<u8> {
        let size = count * 64 / 24 * 24;
        let mut file = vec![0; 64 + size];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[16..20].copy_from_slice(&[1, 0, 62, 0]);
        let table = file.len() as u64;
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[58] = 64;
        file[60..62].copy_from_slice(&u16::try_from(count).unwrap().to_le_bytes());
        file[62] = 1;
        for n in 0..count {
            let start = n * step * 24;
            let (kind, start, size) = match n {
                0 => (0, 0, 0),
                1 => (3, 0, 1),
                _ => (2, start, size - start),
            };
            let words = [0, 64 + start, size, 1, 0, 24].map(|word| (word as u64).to_le_bytes());
            file.extend([[0, 0, 0, 0, kind, 0, 0, 0], [0; 8]].concat());
            file.extend(words.concat());
        }
        file
    }

    /// Tables that share bytes could be looked at, or read, once for each of them.
    #[test]
    fn work_is_in_proportion_to_the_file() {
        for (count, step) in [1000, 8000, 60_000].into_iter().flat_map(|n| [(n, 0), (n, 1)]) {
            let bytes = symbol_tables(count, step);
            let most = bytes.len() as u64 * 20 + (1 << 20);
            let counter = Cell::new(0);
            let mut found = SymbolReader::new();
            found.bytes_left.grow(bytes.len() as u64, MOST_FOR_A_BYTE);
            assert_eq!(found.elf::<elf::FileHeader64<Endianness>>(Counted(&bytes, &counter)), None);
            assert!(counter.get() > bytes.len() as u64 && counter.get() <= most, "{counter:?}");
            counter.set(0);
            let mut source = Source::new(File(Cursor::new(&bytes), &counter)).unwrap();
            let whole = 0..source.len();
            let symbols = Symbols::read(&mut source, &whole).unwrap();
            assert!(matches!(symbols, Symbols::Unknown), "{count} {step}");
            assert!(counter.get() <= most, "{count} {step}: {counter:?} of {}", bytes.len());
        }
    }

    /// Each section has a name of half of the file, from another byte on.
    #[test]
    fn names_of_coff_sections_are_counted() {
        let count = 4000_u16;
        let strings = 20 + 40 * u32::from(count);
        let mut file = vec![0; strings as usize];
        file[..2].copy_from_slice(&[0x64, 0x86]);
        file[2..4].copy_from_slice(&count.to_le_bytes());
        file[8..12].copy_from_slice(&strings.to_le_bytes());
        for n in 0..count {
            let name = format!("/{}", 4 + n);
            file[20 + 40 * usize::from(n)..][..name.len()].copy_from_slice(name.as_bytes());
        }
        let mut text = vec![b'n'; 100_000];
        text.push(0);
        file.extend((u32::try_from(text.len()).unwrap() + 4).to_le_bytes());
        file.extend(text);
        let mut enough = SymbolReader { bytes_left: Budget::new(u64::MAX), ..SymbolReader::new() };
        assert_eq!(enough.other(&file), Some(()));
        let limit = file.len() as u64 * MOST_FOR_A_BYTE;
        let mut found = SymbolReader { bytes_left: Budget::new(limit), ..SymbolReader::new() };
        assert_eq!(found.other(&file), None);
    }

    /// Returns the definitions and what is wanted, as text.
    fn texts(read: impl FnOnce(&mut SymbolReader)) -> (String, String) {
        let mut found = SymbolReader { bytes_left: Budget::new(1 << 20), ..SymbolReader::new() };
        read(&mut found);
        let mut names = Names::default();
        let symbols = found.symbols.number(&mut names);
        let text = |numbers: Vec<usize>| {
            let names = numbers.iter().map(|number| String::from_utf8_lossy(names.name(*number)));
            names.collect::<Vec<_>>().join(" ")
        };
        (text(symbols.provided().collect()), text(symbols.wanted().collect()))
    }

    fn data(name: &str) -> Vec<u8> {
        std::fs::read(format!("../../examples/data/{name}")).unwrap()
    }

    #[test]
    fn mach_o_and_coff() {
        let (defined, wanted) = texts(|found| found.other(&data("hip-macos.o")).unwrap());
        assert_eq!((&*defined, &*wanted), ("___hip_fatbin", ""));
        let (defined, wanted) = texts(|found| found.other(&data("hip.obj")).unwrap());
        assert!(defined.contains("scale") && !defined.contains("hipLaunchKernel"), "{defined}");
        assert!(wanted.contains("hipLaunchKernel"), "{wanted}");
    }

    #[test]
    fn directives_name_symbols() {
        let text = b" /DEFAULTLIB:x -include:a \"/INCLUDE:?b@@3HA\" /alternatename:c=d /export:e\0";
        let (defined, wanted) = texts(|found| found.directives(text).unwrap());
        assert_eq!((&*defined, &*wanted), ("", "a ?b@@3HA d"));
    }

    #[test]
    fn versions_are_no_part_of_names() {
        for (name, expected) in [("a", "a"), ("a@V", "a"), ("a@@V", "a"), ("@a", "@a"), ("", "")] {
            assert_eq!(without_version(name.as_bytes()), expected.as_bytes());
        }
        assert!(is_elf(b"x86_64-unknown-linux-gnu") && is_elf(b"amdgcn-amd-amdhsa"));
        assert!(!is_elf(b"x86_64-pc-windows-msvc") && !is_elf(b"arm64-apple-macosx14"));
    }

    /// Names that share bytes could be far longer than the file.
    #[test]
    fn the_length_of_names_is_bounded() {
        let mut found = SymbolReader { bytes_left: Budget::new(10), ..SymbolReader::new() };
        assert_eq!(found.define(b"12345"), Some(()));
        assert_eq!(found.refer(b"12345"), Some(()));
        assert_eq!(found.refer(b"1"), None);
    }
}
