//! Heterogeneous device archives: static libraries whose members are bundles of code for the host and for devices.
//!
//! The Clang Offload Bundler documentation ("Heterogeneous Device Archive") describes them: `ar` archives of
//! bundles, of object files with bundles in their sections, or of compressed bundles. A linker for one device wants
//! an ordinary archive of code for that device, with an index of symbols. [`Unbundling`] makes one for each target,
//! as `clang-offload-bundler --type=a --unbundle` does:
//!
//! ```text
//! libfoo.a                          libfoo-gfx90a.a
//! ├─ a.o   a fat object      ──►    ├─ /    the index of symbols
//! │  ├─ host                        ├─ //   long names
//! │  ├─ hip ... gfx90a              ├─ a-hip-amdgcn-amd-amdhsa--gfx90aa.bc
//! │  └─ hip ... gfx1100             └─ b-hip-amdgcn-amd-amdhsa--gfx90ab.bc
//! └─ b.o   a compressed bundle
//! ```
//!
//! ```
//! use std::io::Cursor;
//!
//! use bundle_format::{EntryId, Request};
//! use hda_archive::{Member, Options, Unbundling, no_thin_members};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A bundle, in an archive.
//! let id = "hip-amdgcn-amd-amdhsa--gfx90a";
//! let bundle = bundle_format::layout([(id, 4)], 1)?.to_vec(&[&b"code"[..]])?;
//! let mut library = Vec::new();
//! hda_archive::create(&mut library, [Member::new("kernels.o", bundle)])?;
//!
//! // The archive for a target.
//! let target = Request::new(&EntryId::parse("hip-amdgcn-amd-amdhsa--gfx90a:xnack+")?);
//! let mut input = Cursor::new(library);
//! let options = Options::default();
//! let plan = Unbundling::plan(&mut input, [target], &options, no_thin_members)?;
//! let names: Vec<_> = plan.archives()[0].members().map(|(name, _)| name).collect();
//! assert_eq!(names, [b"kernels-hip-amdgcn-amd-amdhsa--gfx90akernels.bc"]);
//! let mut archive = Vec::new();
//! plan.write(&mut input, [&mut archive], no_thin_members)?;
//! assert_eq!(archive.len() as u64, plan.archives()[0].size());
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Unbundling::plan`]; [`entries`] and [`conflicts`] read an archive, [`create`] writes one.
//!
//! # Archives
//!
//! The output is the GNU variant of the `ar` format, deterministic (no times, owners or permissions of the
//! machine), byte for byte as LLVM 22's tools write it on Linux. [`write_archive`] writes members that are in
//! memory.
//!
//! ```text
//! !<arch>\n                                                 8 bytes
//! /      symbol index: count, offsets of members, names     when a member is an object or bitcode
//! //     names that are too long for a header               when there are such names
//! NAME/  60 bytes: name, 0, 0, 0, 644, size                 then the member, padded to an even size by \n
//! ...
//! ```
//!
//! A header is text, its fields padded by spaces:
//!
//! ```text
//!   0          16       28    34    40      48        58
//!   | name     | time   | uid | gid | mode  | size    | `\n |
//!   | a.o/     | 0      | 0   | 0   | 644   | 1234    | `\n |    a short name, ended by /
//!   | /17      | 0      | 0   | 0   | 644   | 1234    | `\n |    byte 17 of the member //
//!   | /        | 0      | 0   | 0   | 0     | 88      | `\n |    the index; /SYM64/ with offsets of 64 bits
//!   | //       |        |     |     |       | 260     | `\n |    the names, each ended by /\n
//! ```
//!
//! The index has a number of symbols, as many offsets of the headers of their members, and as many names ended by NUL; its
//! numbers are big-endian, of 4 bytes, or 8 in `/SYM64/`, which there is once a member starts at 4 GiB or later.
//!
//! Input may be of any variant: GNU, BSD, COFF, thin.
//!
//! # Members of device archives
//!
//! They have the names that `clang-offload-bundler` 22 gives them, after the member that held the bundle and the entry's
//! ID, and an extension after the target ID:
//!
//! ```text
//! a.o  +  hip-amdgcn-amd-amdhsa--gfx90a:xnack+   ->   a-hip-amdgcn-amd-amdhsa--gfx90a_xnack+a.bc
//! │       │                                           │ │                                   ││
//! stem    the ID, with _ for :                      stem ID                              stem extension
//! ```
//!
//! The extension is `.bc` if there is `gfx` in the target ID, `.cubin` if there is `sm_`, else the extension of the
//! member. Names repeat where a member has several bundles. Every entry that is compatible with the target of an
//! archive becomes a member of it, in the order of the file; compatible as
//! [`Request::verdict`](bundle_format::Request::verdict) has it.
//!
//! # Bounds
//!
//! [`fat_object::walk`] reads GNU, BSD, COFF and thin archives. It never panics, and takes no more memory than the
//! largest member and [`Options::max_decompressed`] allow. Planning keeps the names and symbols of the new members:
//! names of at most 16 bytes for each byte of an object. Time grows with the input, once for planning and once for
//! writing, and with the targets that get an entry; each ID is compared with each target once.

//!
//! # Errors
//!
//! One [`Error`]: its [`kind`](Error::kind) is one of [`ErrorKind`], its [`member`](Error::member) says in which
//! member. [`write_archive`] returns [`io::Error`](std::io::Error), as most of its errors are of writing. A
//! [`Warning`] is odd input that is not an error.
//!
//! # Other crates in this API
//!
//! Targets are [`bundle_format`]'s [`Request`](bundle_format::Request)s. Input is walked by [`fat_object`]:
//! [`Options`], [`ReadSeek`](byte_parts::ReadSeek) and the errors inside of [`Error`] are its own. Add these
//! crates to your dependencies to name their types. Readers and writers are taken by value; `&mut file` is one.
//!
//! # Features and stability
//!
//! Features `ruzstd` and `miniz_oxide` (default) decode compressed members in pure Rust, `zstd` by libzstd, in C.
//! Needs `std`. Minimum supported Rust version: 1.88; it rises in a minor version only. Semantic versioning; enums
//! that can grow are `#[non_exhaustive]`. The bytes of archives are those of LLVM 22; messages are for people and
//! may change.

#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod check;
mod copy;
mod device_archive;
mod entries;
mod error;
mod fingerprint;
mod layout;
mod name;
mod symbols;
mod unbundle;
mod wire;
mod write;

pub use check::{Conflict, conflicts};
pub use copy::ArchiveCopy;
pub use device_archive::DeviceArchive;
pub use entries::{Entry, entries, no_thin_members};
pub use error::{Error, ErrorKind};
pub use fat_object::Options;
pub use unbundle::{Unbundling, Warning};
pub use write::{Member, create, write_archive};
