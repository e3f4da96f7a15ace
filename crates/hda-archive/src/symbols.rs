//! The symbols that a member brings into the index of an archive.

use std::fmt;

use object::read::elf::{FileHeader, Sym};
use object::read::{Error as ObjectError, FileKind};
use object::{Endianness, File, Object, ObjectSymbol, SymbolKind, elf};

use crate::error::{Error, ErrorKind};

/// Bytes of names for each byte of an object. Names may share bytes: honest ones where one ends in the other, made up
/// ones until they are too many for any memory.
const NAMES_FOR_EACH_BYTE: usize = 16;

/// Names of symbols that others can link to, in the order in which an index has them.
#[derive(Default)]
pub(crate) struct Symbols {
    /// Each followed by a NUL.
    names: Vec<u8>,
    count: u64,
}

impl Symbols {
    /// Reads the symbols of an object file (ELF, COFF, PE, Mach-O) or of LLVM bitcode; `None` for other data, which
    /// has no part in an index.
    ///
    /// These are the global symbols that are defined, in the order of the symbol table, as LLVM's writer of
    /// archives takes them. Bitcode has a symbol table, too.
    ///
    /// Time and memory grow with the length of the data: names come to no more than 16 bytes for each of its bytes.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for what is malformed,
    /// [`Limit`](crate::ErrorKind::Limit) for names without end.
    pub(crate) fn read(data: &[u8]) -> Result<Option<Self>, Error> {
        // A number that is too large limits nothing.
        let limit = data.len().saturating_mul(NAMES_FOR_EACH_BYTE);
        let failed = |format| {
            move |error: Failed| match error {
                Failed::Malformed(error) => {
                    Error::malformed(format!("malformed {format} file: {error}"))
                }
                Failed::TooManyNames => {
                    let text = format!(
                        "the names of the symbols of the {format} file exceed {limit} bytes in total"
                    );
                    Error::new(ErrorKind::Limit, text)
                }
            }
        };
        // Too short to be told what it is, or nothing known: data.
        let Ok(kind) = FileKind::parse(data) else {
            return bitcode(data);
        };
        match kind {
            FileKind::Elf32 => {
                elf_symbols::<elf::FileHeader32<Endianness>>(data, limit).map_err(failed("ELF"))
            }
            FileKind::Elf64 => {
                elf_symbols::<elf::FileHeader64<Endianness>>(data, limit).map_err(failed("ELF"))
            }
            FileKind::Coff | FileKind::CoffBig => {
                other_symbols(data, limit).map_err(failed("COFF"))
            }
            FileKind::Pe32 | FileKind::Pe64 => other_symbols(data, limit).map_err(failed("PE")),
            FileKind::MachO32 | FileKind::MachO64 => {
                other_symbols(data, limit).map_err(failed("Mach-O"))
            }
            _ => return bitcode(data),
        }
        .map(Some)
    }

    /// Returns the number of symbols.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Returns all names, each followed by a NUL.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.names
    }

    /// Adds a name as [`push`](Self::push) does, unless the names would then exceed `limit` bytes.
    fn push_within(&mut self, name: &[u8], limit: usize) -> Result<(), Failed> {
        if self.names.len() + name.len() > limit {
            return Err(Failed::TooManyNames);
        }
        self.push(name);
        Ok(())
    }

    /// Adds a name up to its first NUL. Names of bitcode can hold a NUL, and would become two names in an index.
    fn push(&mut self, name: &[u8]) {
        self.names.extend(name.iter().take_while(|&&byte| byte != 0));
        self.names.push(0);
        self.count += 1;
    }
}

impl<N: AsRef<[u8]>> FromIterator<N> for Symbols {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        let mut symbols = Symbols::default();
        for name in names {
            symbols.push(name.as_ref());
        }
        symbols
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.split_inclusive(|&byte| byte == 0);
        let text = |name: &[u8]| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        f.debug_list().entries(names.map(text)).finish()
    }
}

fn bitcode(data: &[u8]) -> Result<Option<Symbols>, Error> {
    let names = llvm_bitcode::symbols(data)?;
    Ok(names.map(|names| names.into_iter().collect()))
}

/// The reason why the symbols of an object file cannot be read.
enum Failed {
    Malformed(ObjectError),
    TooManyNames,
}

impl From<ObjectError> for Failed {
    fn from(error: ObjectError) -> Self {
        Failed::Malformed(error)
    }
}

/// Reads the symbols of ELF by its symbol table alone: the general reader also requires a valid dynamic one.
fn elf_symbols<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    limit: usize,
) -> Result<Symbols, Failed> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?.symbols(endian, data, elf::SHT_SYMTAB)?;
    let mut symbols = Symbols::default();
    // The first is not a symbol.
    for symbol in table.iter().skip(1) {
        let special = [elf::STT_FILE, elf::STT_SECTION].contains(&symbol.st_type());
        if !symbol.is_local() && !symbol.is_undefined(endian) && !special {
            symbols.push_within(symbol.name(endian, table.strings())?, limit)?;
        }
    }
    Ok(symbols)
}

fn other_symbols(data: &[u8], limit: usize) -> Result<Symbols, Failed> {
    let mut symbols = Symbols::default();
    for symbol in File::parse(data)?.symbols() {
        let special = matches!(symbol.kind(), SymbolKind::File | SymbolKind::Section);
        if symbol.is_global() && !symbol.is_undefined() && !special {
            symbols.push_within(symbol.name_bytes()?, limit)?;
        }
    }
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn other_files_have_no_symbols() {
        for data in [&b""[..], b"text", b"!<arch>\n", b"__CLANG_OFFLOAD_BUNDLE__"] {
            assert!(Symbols::read(data).unwrap().is_none());
        }
    }

    #[test]
    fn objects_have_their_global_definitions() {
        let symbols = Symbols::read(&symbols_of_one_name(2, 3)).unwrap().unwrap();
        assert_eq!((symbols.len(), symbols.as_bytes()), (2, &b"aaa\0aaa\0"[..]));
    }

    #[test]
    fn a_damaged_object_is_an_error() {
        let object = symbols_of_one_name(20, 3);
        let error = Symbols::read(&object[..object.len() / 2]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().starts_with("malformed ELF file: "), "{error}");
    }

    /// Returns an ELF object of 64 bits with as many symbols as `count`, all of one name.
    fn symbols_of_one_name(count: usize, len: usize) -> Vec<u8> {
        let name = [b"\0".to_vec(), vec![b'a'; len], vec![0]].concat();
        let symbol = [&1_u32.to_le_bytes()[..], &[0x10, 0, 1, 0], &[0; 16]].concat();
        let table = [vec![0; 24], symbol.repeat(count)].concat();
        let headers = 64 + table.len() + name.len();
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend([1, 0, 62, 0, 1, 0, 0, 0]);
        bytes.extend([0, 0, headers as u64].map(u64::to_le_bytes).concat());
        bytes.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
        bytes.resize(64, 0);
        bytes.extend(&table);
        bytes.extend(&name);
        bytes.resize(headers + 64, 0);
        for (kind, offset, size, link) in
            [(2_u32, 64, table.len(), 2_u32), (3, 64 + table.len(), name.len(), 0)]
        {
            bytes.extend([0, kind].map(u32::to_le_bytes).concat());
            bytes.extend([0, 0, offset as u64, size as u64].map(u64::to_le_bytes).concat());
            bytes.extend([link, 0].map(u32::to_le_bytes).concat());
            bytes.extend([1_u64, 24].map(u64::to_le_bytes).concat());
        }
        bytes
    }

    #[test]
    fn names_may_share_bytes_up_to_a_limit() {
        let symbols = Symbols::read(&symbols_of_one_name(100, 100)).unwrap().unwrap();
        assert_eq!((symbols.len(), symbols.as_bytes().len()), (100, 100 * 101));
        // 20,000 times 500 KB.
        let data = symbols_of_one_name(20_000, 500_000);
        let error = Symbols::read(&data).unwrap_err();
        let limit = 16 * data.len();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(
            error.to_string(),
            format!("the names of the symbols of the ELF file exceed {limit} bytes in total")
        );
    }

    #[test]
    fn names_end_at_the_first_nul() {
        let symbols: Symbols = [&b"a\0b\0"[..], b"\0", b"c"].iter().collect();
        assert_eq!((symbols.len(), symbols.as_bytes()), (3, &b"a\0\0c\0"[..]));
    }

    #[test]
    fn names_are_listed_in_their_order() {
        let symbols: Symbols = ["b", "a"].iter().collect();
        assert_eq!(symbols.as_bytes(), b"b\0a\0");
        assert_eq!(format!("{symbols:?}"), r#"["b", "a"]"#);
    }
}
