//! Adding sections with device code to a relocatable object, and removing them.

mod coff;
mod elf;
mod sections;

use std::ops::Range;

use byte_parts::wasm;

pub(super) use sections::{HEAD_LEN, in_memory};
pub use sections::{HostObject, NewSections, remove_sections};

use crate::error::Error;
use crate::objects::elf_class::{Class, by_class};
use crate::objects::elf_object;
use crate::objects::error::ObjectPart;

/// Name of the section, as clang's `-fembed-offload-object` writes it and LLVM's tools look for it.
const SECTION_NAME: &[u8] = b".llvm.offloading";
/// Alignment of the section, of its size, and of what a linker puts after it.
const SECTION_ALIGNMENT: u64 = 8;

/// Returns a copy of `object` with one more section, `.llvm.offloading`, that holds `contents`.
///
/// [`NewSections::offloading`] says what the result looks like, and writes it without holding it in memory. It takes
/// as long as copying the object.
///
/// ```no_run
/// let object = std::fs::read("host.o")?;
/// let package = std::fs::read("images.offload")?; // one or several offload binaries, one after the other
/// std::fs::write("fat.o", object_edit::embed(&object, &package)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The errors of [`NewSections::offloading`], and [`Limit`](crate::ErrorKind::Limit) when the memory is too small.
pub fn embed(object: &[u8], contents: &[u8]) -> Result<Vec<u8>, Error> {
    NewSections::offloading(object, contents.len() as u64)?.to_vec(&[contents])
}

impl<'a> NewSections<'a> {
    /// Lays out an ELF or COFF object with one more section, which holds offload binaries of `size` bytes in total.
    ///
    /// The section is the one that clang makes of `-fembed-offload-object=FILE`: named `.llvm.offloading`, aligned
    /// to 8 bytes, of type `SHT_LLVM_OFFLOADING` with flag `SHF_EXCLUDE` in ELF, and with
    /// `IMAGE_SCN_LNK_REMOVE` and `IMAGE_SCN_MEM_DISCARDABLE` in COFF, so that a final link drops it. It is the last
    /// section and has no symbol. The contents are not interpreted; they are padded with zeros to a multiple of 8
    /// (offload binaries are multiples of 8 anyway), so that a relocatable link puts the packages of several objects one after
    /// the other without gaps.
    ///
    /// Everything else stays what it was, byte for byte: contents, symbols, relocations and the fields of all
    /// section headers but file offsets. In ELF nothing moves except the table of section names and the section
    /// header table, which are rewritten at the end of the file (where they mostly are to begin with). In COFF the
    /// section headers follow the file header, so everything after them moves and the offsets in them are
    /// adjusted; the one offset that is not is `PointerToLinenumber` in symbols of functions, which belongs to
    /// the line numbers that Microsoft deprecated and no current compiler writes. The name goes into the string
    /// table, unless the table has it already.
    ///
    /// An object that has a `.llvm.offloading` section gets a second one beside it. LLVM's tools and
    /// `fat_object::walk` read all of them; a relocatable link makes one of them.
    ///
    /// ```
    /// # use object_edit::NewSections;
    /// # fn embed(object: &[u8], package: &mut std::fs::File) -> Result<(), Box<dyn std::error::Error>> {
    /// let embedding = NewSections::offloading(object, package.metadata()?.len())?;
    /// let out = std::fs::File::create("fat.o")?;
    /// out.set_len(embedding.total_size())?;
    /// embedding.write_to(out, [package])?; // reads it once; the kernel copies where it can
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Format`](crate::ErrorKind::Format) for everything that is neither ELF nor COFF (WebAssembly, archives, bitcode),
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for Mach-O objects and files that are linked already,
    /// [`Limit`](crate::ErrorKind::Limit) where the format has no room, and [`Malformed`](crate::ErrorKind::Malformed) for objects
    /// that are truncated or contradict themselves.
    pub fn offloading(object: &'a [u8], size: u64) -> Result<Self, Error> {
        match Kind::of(object)? {
            Kind::Elf(class) => by_class!(class, H => elf::lay_out::<H>(object, size)),
            Kind::Coff => coff::lay_out(object, size),
            Kind::Wasm => Err(Error::unsupported_format(format_name(object))),
        }
    }
}

/// The formats whose objects can take sections; the last one no single one.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Elf(Class),
    Coff,
    Wasm,
}

impl Kind {
    pub(super) fn of(object: &[u8]) -> Result<Self, Error> {
        let field = |name, offset, found: &u8| {
            Error::field(elf_object::FORMAT, name, offset, (*found).into(), "1 or 2")
        };
        match object {
            [0x7f, b'E', b'L', b'F', class, order, ..] => {
                Class::of(object).map(Kind::Elf).ok_or_else(|| match class {
                    1 | 2 => field("e_ident[EI_DATA]", 5, order),
                    class => field("e_ident[EI_CLASS]", 4, class),
                })
            }
            [0x7f, b'E', b'L', b'F', ..] => {
                let (part, available) = (ObjectPart::FileHeader, object.len() as u64);
                Err(Error::outside(elf_object::FORMAT, part, 0, 16, available))
            }
            [b'M', b'Z', ..] => Err(Error::pe_image()),
            [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => {
                Err(Error::cannot_change("Mach-O objects are not edited"))
            }
            _ if object.starts_with(&wasm::HEADER[..4]) => Ok(Kind::Wasm),
            _ if is_coff(object) => Ok(Kind::Coff),
            _ => Err(Error::unsupported_format(format_name(object))),
        }
    }
}

/// Returns whether the object is COFF. It has no magic, only a machine number; plausible objects have no optional
/// header.
fn is_coff(object: &[u8]) -> bool {
    use object::pe;
    let machines = [
        pe::IMAGE_FILE_MACHINE_AMD64,
        pe::IMAGE_FILE_MACHINE_I386,
        pe::IMAGE_FILE_MACHINE_ARM64,
        pe::IMAGE_FILE_MACHINE_ARMNT,
    ];
    let Some(header) = object.get(..20) else { return false };
    header.starts_with(&[0, 0, 0xff, 0xff, 2, 0])
        || machines.iter().any(|machine| header.starts_with(&machine.0.to_le_bytes()))
            && header.get(16..18) == Some(&[0, 0])
}

/// Returns the name of the format of a file that sections cannot be added to.
fn format_name(file: &[u8]) -> &'static str {
    match file {
        [] => "empty files",
        [0xca, 0xfe, 0xba, 0xbe | 0xbf, ..] => "Mach-O",
        [b'B', b'C', 0xc0, 0xde, ..] | [0xde, 0xc0, 0x17, 0x0b, ..] => "LLVM bitcode",
        [0, b'a', b's', b'm', ..] => "WebAssembly",
        _ if file.starts_with(b"!<arch>\n") || file.starts_with(b"!<thin>\n") => "archives",
        _ => "files of unknown format",
    }
}

/// Returns the bytes of `range`; `None` when a part of it lies outside.
fn slice(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// Returns the offset of the new section's name in a table of strings, if it is there. It may be the end of a
/// longer one.
fn find_name(strings: &[u8]) -> Option<usize> {
    let len = SECTION_NAME.len() + 1;
    strings.windows(len).position(|window| {
        window.split_last().is_some_and(|(&end, name)| end == 0 && name == SECTION_NAME)
    })
}
