//! Edit finished host files: sections of ELF, COFF, PE and WebAssembly files, and members of `ar` archives.
//!
//! # Adding
//!
//! [`embed`] and [`NewSections::offloading`] add a section to a compiled ELF or COFF object: the one that clang makes of
//! `-fembed-offload-object=FILE`, so that `clang-linker-wrapper` finds it when it links. Nothing is recompiled, and
//! nothing else in the object changes.
//!
//! [`NewSections`] adds any number of sections of any name to ELF files (linked ones, too), COFF objects and
//! WebAssembly modules. [`remove_sections`] removes sections, and restores the object that they were added to byte for
//! byte. [`HostObject`] does so for an object in a file, without reading the contents of the sections.
//!
//! [`rename`] gives sections and symbols of ELF objects other names, also in an archive. [`edit_archive`] lays out an archive with
//! other data for some members.
//!
//! The feature `objects` is this alone. The feature `linked`, on by default, adds what follows.
//!
//! # Editing
//!
//! [`edit`] lays out a host file with other contents in some of its sections. The answer is an [`Output`]: parts of the old file, of new inputs, and new bytes. Nothing is read but
//! headers, tables and what may refer to the sections, and nothing is written. Everything that depends on where contents lie
//! follows: segments, section headers, symbols, relocations, pointers of wrappers, checksums, indices of archives. The new
//! file is read again as if it were written, and compared with the old one.
//!
//! ```
//! use byte_parts::Source;
//! use object_edit::{Format, Options, SectionChange, SectionEdit, edit, embed, of_bytes, reader};
//! use std::io::{Cursor, Read};
//!
//! # let object = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/host.o"))?;
//! let object = embed(&object, b"contents")?;
//! let at = object.windows(8).position(|bytes| bytes == b"contents").unwrap() as u64;
//! let mut file = Cursor::new(object);
//! let change = SectionChange::Contents(of_bytes(*b"longer contents!"));
//! let section = SectionEdit::new(at..at + 8, ".llvm.offloading", change);
//! let mut source = Source::new(&mut file)?;
//! let window = 0..source.len();
//! let edited =
//!     edit(&mut source, &window, Format::ElfObject, vec![section], Options::default(), &mut ())?;
//! let mut new = Vec::new();
//! reader(&edited.parts, source.reader(), &mut ()).read_to_end(&mut new)?;
//! assert!(new.windows(16).any(|bytes| bytes == b"longer contents!"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Moving device code of HIP out, and in again
//!
//! [`move_out`] takes the bundles out of a linked file, and leaves a marker in the place of the first, to which all wrappers
//! lead: ROCm's loader finds the code objects in archives beside the file then. [`move_in`] is the way back.
//!
//! # Bounds
//!
//! Linked ELF files may have up to 1170 program headers, PE files up to 96 sections. Time grows as n log n with sections,
//! symbols and relocations; memory holds headers and tables.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "linked"),
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        reason = "objects need a part of what both use"
    )
)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
#[cfg(feature = "linked")]
mod linked;
#[cfg(feature = "objects")]
mod objects;
#[cfg(feature = "objects")]
mod output;
#[cfg(feature = "objects")]
mod patches;
#[cfg(feature = "objects")]
mod pod;
#[cfg(feature = "objects")]
mod tables;

pub use error::{Error, ErrorKind};
#[cfg(feature = "linked")]
pub use linked::{
    Edited, Format, HipWrapper, Item, Options, Registered, RegisteredWith, SectionChange,
    SectionEdit, Target, edit, edit_in_place, editable_in_place, explain_nothing, hip_wrappers,
    move_in, move_out, registered, sections_never_loaded, uneditable,
};
#[cfg(feature = "objects")]
pub use objects::{HostObject, NewSections, Renames, edit_archive, embed, remove_sections, rename};
#[cfg(feature = "objects")]
pub use output::{Input, NewInputs, Output, copy_of, is_copy_of, of_bytes, reader};
