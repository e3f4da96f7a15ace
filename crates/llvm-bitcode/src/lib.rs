//! LLVM bitcode without LLVM: what a module says about itself and its symbols, the device code that it embeds, and a
//! writer of bitstreams.
//!
//! ```text
//! file     [wrapper: magic, version, offset, size, CPU type: u32 each]
//!          magic 42 43 C0 DE
//!          IDENTIFICATION_BLOCK
//!          MODULE_BLOCK              global variables, functions and what follows them
//!            BLOCKINFO_BLOCK         abbreviations for the other blocks
//!            CONSTANTS_BLOCK         the initialisers: the data
//!            METADATA_BLOCK          what names the global variables
//!            FUNCTION_BLOCK ...      skipped
//!          more modules (split for thin link-time optimisation), STRTAB_BLOCK, SYMTAB_BLOCK
//! ```
//!
//! - [`symbols`] returns the names that LLVM enters into the index of an archive.
//! - [`symbol_table`] returns what linkers read: the references as well, weak and common symbols.
//! - [`functions`] returns the functions that are defined, with their calling conventions.
//! - [`Reader`] goes through the modules of a file: their target triples, the processor of their functions, and the
//!   objects that they embed. Only the requested parts are read, piece by piece, from any [`ReadAt`].
//! - [`Writer`] writes a bitstream: blocks, records and blobs. The bytes of large blobs can be left out.
//!
//! ```
//! // A host module with device code in it, as clang writes one for link-time optimisation.
//! # let file = std::fs::read("../../examples/data/hip-embedded.bc").unwrap();
//! let mut source = &file[..];
//! let mut reader = llvm_bitcode::Reader::new(&mut source, 0..file.len() as u64)?;
//! let mut objects = Vec::new();
//! while let Some(module) = reader.next_module()? {
//!     assert_eq!(reader.triple(&module)?.as_deref(), Some(&b"x86_64-pc-linux-gnu"[..]));
//!     reader.embedded_objects(&module, &mut objects)?;
//! }
//! let (bytes, _) = objects[0].read(&mut source, 1 << 20)?;
//! assert_eq!(bytes[..4], [0x10, 0xff, 0x10, 0xad]);
//! # Ok::<(), llvm_bitcode::Error>(())
//! ```
//!
//! Reading never panics. Memory is bounded by the length of the input, or by the caller's limit.
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]
#![no_std]

extern crate alloc;

mod abbreviation;
mod bits;
mod cursor;
mod error;
mod functions;
mod globals;
mod module;
mod names;
mod processor;
mod reader;
mod source;
mod symbols;
mod symtab;
mod write;

pub use error::{Error, ErrorKind};
pub use functions::{Function, functions};
pub use module::EmbeddedObject;
pub use reader::{Module, Reader};
pub use source::{ReadAt, Unreadable};
pub use symbols::{symbol_table, symbols};
pub use symtab::{LinkerSymbol, SymbolTable};
pub use write::{BlobAbbreviation, Writer, signed};

/// The first four bytes of raw bitcode.
pub const MAGIC: [u8; 4] = *b"BC\xc0\xde";
/// The first four bytes of bitcode in its wrapper.
pub const WRAPPER_MAGIC: [u8; 4] = 0x0B17_C0DE_u32.to_le_bytes();

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
