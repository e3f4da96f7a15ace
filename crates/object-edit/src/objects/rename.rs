//! Other names for sections and symbols of an object.

use std::borrow::Cow;
use std::ops::Range;

use byte_parts::Source;

use super::archive::{self, MemberData};
use super::elf_class::by_class;
use super::elf_object;
use super::embed::{HEAD_LEN, Kind, in_memory};
use crate::error::{Error, ErrorKind};
use crate::output::Output;

/// The first bytes of LLVM bitcode, and of bitcode in a wrapper.
const BITCODE: [&[u8]; 2] = [b"BC\xc0\xde", &[0xde, 0xc0, 0x17, 0x0b]];

/// New names of sections and symbols of an object, and the names of sections that go.
///
/// The options of `llvm-objcopy` that do the same are `--rename-section`, `--redefine-sym` and `--remove-section`.
#[derive(Clone, Debug, Default)]
pub struct Renames {
    sections: Vec<Rename>,
    symbols: Vec<Rename>,
    removed: Vec<String>,
    retained: Vec<String>,
}

/// A name that becomes another one.
#[derive(Clone, Debug)]
struct Rename {
    old: String,
    new: String,
    /// The start of the name, if only a section of relocations has it.
    of_relocations: Option<&'static str>,
}

/// The starts of the names of sections with relocations, before the name of the section that they are for.
const OF_RELOCATIONS: [&str; 3] = [".rela", ".rel", ".crel"];

impl Renames {
    /// Creates a change of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives all sections of this name another one. The sections of their relocations follow: `.rela.old` becomes `.rela.new`.
    #[must_use]
    pub fn with_section(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        let (old, new) = (old.into(), new.into());
        self.sections.extend(OF_RELOCATIONS.map(|start| Rename {
            old: format!("{start}{old}"),
            new: format!("{start}{new}"),
            of_relocations: Some(start),
        }));
        self.sections.push(Rename { old, new, of_relocations: None });
        self
    }

    /// Gives all symbols of this name another one, defined or not.
    #[must_use]
    pub fn with_symbol(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.symbols.push(Rename { old: old.into(), new: new.into(), of_relocations: None });
        self
    }

    /// Removes all sections of this name.
    #[must_use]
    pub fn without_section(mut self, name: impl Into<String>) -> Self {
        self.removed.push(name.into());
        self
    }

    /// Sets the flag `SHF_GNU_RETAIN` of all sections that had this name: `--gc-sections` keeps them, whether or not the program refers to
    /// them. `llvm-objcopy` has no such option.
    #[must_use]
    pub fn with_retained_section(mut self, name: impl Into<String>) -> Self {
        self.retained.push(name.into());
        self
    }

    /// Fails for names that no object can have.
    fn check(&self) -> Result<(), Error> {
        let all = self.sections.iter().chain(&self.symbols);
        let all = all.flat_map(|rename| [&rename.old, &rename.new]).chain(&self.removed);
        let mut all = all.chain(&self.retained);
        match all.find(|name| name.is_empty() || name.contains('\0')) {
            Some(name) => {
                let text =
                    format!("name {name:?}: expected one that is not empty and has no zero byte");
                Err(Error::new(ErrorKind::Contents, text))
            }
            None => Ok(()),
        }
    }

    /// Returns true if no name becomes another one, and no flag is set.
    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.symbols.is_empty() && self.retained.is_empty()
    }

    /// Returns true if the section is retained whose name, with a zero, these bytes start with.
    pub(super) fn retains(&self, name: &[u8]) -> bool {
        self.retained.iter().any(|retained| is_at(name, retained))
    }

    /// Returns true if the section goes whose name, with a zero, these bytes start with.
    pub(super) fn removes(&self, name: &[u8]) -> bool {
        self.removed.iter().any(|removed| is_at(name, removed))
    }

    /// Returns the new name of the section whose name, with a zero, these bytes start with. The name of one with relocations starts
    /// like this.
    pub(super) fn section(&self, name: &[u8], of_relocations: Option<&str>) -> Option<&[u8]> {
        let has_kind = |rename: &&Rename| {
            rename.of_relocations.is_none() || rename.of_relocations == of_relocations
        };
        let mut renames = self.sections.iter().filter(has_kind);
        renames.find(|rename| is_at(name, &rename.old)).map(|rename| rename.new.as_bytes())
    }

    /// Returns the new name of the symbol whose name, with a zero, these bytes start with.
    pub(super) fn symbol(&self, name: &[u8]) -> Option<&[u8]> {
        let rename = self.symbols.iter().find(|rename| is_at(name, &rename.old));
        rename.map(|rename| rename.new.as_bytes())
    }
}

/// Returns true if the bytes start with the name and a zero.
fn is_at(bytes: &[u8], name: &str) -> bool {
    bytes.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(&[0]))
}

/// Returns `file`, a relocatable ELF object or an archive of such, with other names, laid out as `llvm-objcopy` 22 does it;
/// without any of the names, as it is.
///
/// The contents of sections do not change, and neither does the order of sections and symbols: only the tables of strings,
/// what refers to them, and where sections lie. Sections go as [`remove_sections`](crate::remove_sections) removes them. Members of
/// archives stay as they are, unless they are relocatable ELF objects. LLVM bitcode among them is an error, as its names cannot change.
///
/// Time and memory grow with the file.
///
/// ```
/// use object_edit::{Renames, rename};
///
/// # let object = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/host.o"))?;
/// let renames = Renames::new().with_symbol("answer", "the_answer");
/// let renamed = rename(&object, &renames)?;
/// assert!(renamed.windows(12).any(|bytes| bytes == b"\0the_answer\0"));
/// # Ok::<(), object_edit::Error>(())
/// ```
///
/// # Errors
///
/// - [`Contents`](crate::ErrorKind::Contents) for a name that is empty or has a zero byte.
/// - [`Unsupported`](crate::ErrorKind::Unsupported) for linked files, COFF objects, thin archives and bitcode in archives. Also for
///   symbols in the index of an archive, and for string tables with more than the names of sections and symbols.
/// - [`Refused`](crate::ErrorKind::Refused) where something needs a section that goes.
/// - [`Format`](crate::ErrorKind::Format) for files of other formats.
/// - [`Malformed`](crate::ErrorKind::Malformed) for files that are truncated or contradict themselves.
pub fn rename<'a>(file: &'a [u8], renames: &Renames) -> Result<Cow<'a, [u8]>, Error> {
    renames.check()?;
    let is_archive = file.starts_with(archive::MAGIC) || file.starts_with(archive::THIN_MAGIC);
    let renamed = in_memory(file, |source, window| {
        if is_archive {
            renamed_members(source, window, renames)
        } else {
            renamed(source, window, renames)
        }
    })?;
    Ok(renamed.map_or(Cow::Borrowed(file), Cow::Owned))
}

/// Returns the object in the window with other names; `None` if none changes.
fn renamed(
    source: &mut Source<'_>,
    window: &Range<u64>,
    renames: &Renames,
) -> Result<Option<Output>, Error> {
    match Kind::of(&source.peek(window, HEAD_LEN)?)? {
        Kind::Elf(class) => by_class!(class, H => elf_object::rename::<H>(source, window, renames)),
        Kind::Coff => Err(Error::cannot_change("names change in ELF objects, this one is COFF")),
        Kind::Wasm => Err(Error::unsupported_format("WebAssembly")),
    }
}

/// Returns the archive in the window with other names in its members; `None` if none changes.
fn renamed_members(
    source: &mut Source<'_>,
    window: &Range<u64>,
    renames: &Renames,
) -> Result<Option<Output>, Error> {
    let mut edits = Vec::new();
    for member in archive::members(source, window)? {
        let data = match member {
            MemberData::Index(names) => {
                check_index(&names, renames)?;
                continue;
            }
            MemberData::Other(data) => data,
        };
        let head = source.peek(&data, HEAD_LEN)?;
        if is_relocatable_elf(&head) {
            let edit = renamed(source, &data, renames);
            let edit = edit.map_err(|error| error.in_member(data.start))?;
            edits.extend(edit.map(|edit| (data, edit)));
        } else if BITCODE.iter().any(|magic| head.starts_with(magic)) {
            let error = Error::cannot_change("LLVM bitcode keeps its names");
            return Err(error.in_member(data.start));
        }
    }
    if edits.is_empty() {
        return Ok(None);
    }
    archive::edit_archive(source, window, edits).map(Some)
}

/// Fails if the index of an archive has a symbol that gets another name. The names have a zero each.
fn check_index(names: &[u8], renames: &Renames) -> Result<(), Error> {
    let mut names = names.split_inclusive(|&byte| byte == 0);
    match names.find(|name| renames.symbol(name).is_some()) {
        Some(name) => {
            let name = name.strip_suffix(&[0]).unwrap_or(name).escape_ascii();
            let text = format!("the archive's index has the symbol {name}, which would be another");
            Err(Error::cannot_change(text))
        }
        None => Ok(()),
    }
}

/// Returns true if a file that starts like this is an ELF object that is not linked.
fn is_relocatable_elf(head: &[u8]) -> bool {
    // `e_type` is in the byte order of the file.
    head.starts_with(b"\x7fELF") && matches!(head.get(16..18), Some([1, 0] | [0, 1]))
}
