//! Find the device code in any file.
//!
//! Offloading compilers hide device images in host files: in sections of ELF, COFF, PE, Mach-O and WebAssembly
//! files, in globals of LLVM bitcode, in archives of such files, in bundles, compressed bundles, offload binaries
//! and fatbinaries, and in all of these nested in each other. [`list`] lists the images in all of them, at any
//! depth:
//!
//! ```no_run
//! use std::fs::File;
//!
//! fn main() -> std::io::Result<()> {
//!     let mut file = File::open("libfoo.so")?;
//!     let listing = fat_object::list(&mut file, &fat_object::Options::default())?;
//!     for image in listing.images() {
//!         println!("{}: {} bytes of {}", image.target(), image.size(), image.format());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Containers and images in a static library of HIP code:
//!
//! ```text
//! libfoo.a
//! └─ member:foo.o                      an ELF object in an ar archive
//!    └─ section:.hip_fatbin            found by name, by section type, or by what it starts with
//!       ├─ ccob:0                      compressed bundles, back to back, zero-padded
//!       │  └─ bundle:0
//!       │     ├─ host-x86_64-unknown-linux-gnu-      (empty)
//!       │     └─ hipv4-amdgcn-amd-amdhsa--gfx90a     image 1, ELF
//!       └─ ccob:1 ...
//! ```
//!
//! The words before the colons are [`ContainerKind`]s; a line is a [`PathStep`] of the [path](ImageInfo::path) of
//! the lines below it.
//!
//! | where | what |
//! |---|---|
//! | ELF (relocatable, executable, shared) | sections of type `SHT_LLVM_OFFLOADING`, or that start with a sound container, or named `__CLANG_OFFLOAD_BUNDLE__<ID>` |
//! | COFF, PE, Mach-O (thin and universal), WebAssembly modules | the same by name and contents |
//! | LLVM bitcode, raw or in its wrapper, for the host | globals that the named metadata `llvm.embedded.objects` lists with the section `.llvm.offloading` |
//! | `ar` archives: GNU, BSD, COFF, thin | every member, recursively |
//! | text whose last line is the marker of a text bundle | the form of the first proposal of bundles; text bundles with other text in front |
//! | files and members of archives that are device images themselves | code objects, cubins, PTX, SPIR-V, LLVM bitcode for a device: an image in [no container](ContainerKind::File) |
//! | files and sections of containers | bundles (binary, text), compressed bundles, offload binaries, NVIDIA fatbinaries: concatenated, zero-padded |
//!
//! The crates [`bundle_format`], [`ccob`] and [`offload_binary`] read the formats of the containers, and name their
//! specifications. LLVM's offloading documentation specifies `SHT_LLVM_OFFLOADING` (`0x6fff4c0b`) and
//! `llvm.embedded.objects`. NVIDIA does not document its fatbinaries:
//!
//! ```text
//! header, 16 bytes          entry, header size from byte 4 (64 at least), little-endian
//!   0 u32 magic 0xBA55ED50    0 u16 kind: 1 PTX, 2 ELF       24 u16 minor, 26 u16 major version
//!   4 u16 version, 1          4 u32 header size              28 u32 sm architecture
//!   6 u16 header size, 16     8 u64 payload size, padded     40 u64 flags: 0x2000 lz4, 0x8000 zstd,
//!   8 u64 size of what       16 u32 compressed size, exact          0x100000 sm_90a, 0x200000 sm_100f
//!         follows                                            56 u64 uncompressed size
//! ```
//!
//! # Where to start
//!
//! | to | use |
//! |---|---|
//! | list images | [`list`], [`Listing`], [`ImageInfo`]; of large compressed libraries by [their tables](Options::with_tables_only) |
//! | know whether an input of a linker has device code | [`has_device_code`] |
//! | list or walk what is in memory, without copying images | [`list_slice`], [`walk_slice`], [`ImageInfo::bytes_in`] |
//! | get the bytes of one image | [`copy_image`] |
//! | read images | [`images()`] |
//! | see containers, too, and pass over some | [`walk`] with a [`Visitor`], [`Walk`]; [`walk_with_threads`] decompresses on several threads |
//! | tell what bytes are | [`FileFormat::sniff`] |
//! | tell for which target an image says it is | [`image_target`], [`Image::own_target`] |
//! | decompress an offload binary | [`decompress_offload_binary`] |
//! | change what a finished file holds | the crate `fat-edit`, which builds on this one |
//! | know whether an image is for a target | [`check_agreement`] |
//!
//! # Walking
//!
//! A walk reports every container, image and finding, in file order. It reads headers only; the bytes of images are
//! read on request, or to decompress a compressed bundle. There are three ways to walk:
//!
//! - A closure gets [all images](images()).
//! - A [`Visitor`] sees containers, images and findings, and decides which containers to [open](Enter); [`walk`]
//!   takes one.
//! - The events of a [`Walk`] are pulled, one after the other.
//!
//! ```
//! use std::io::{self, Cursor, Read};
//! use fat_object::{Container, ContainerKind, Enter, Image, Options, Visitor, walk};
//!
//! /// The bytes of all images for AMD GPUs that are not compressed.
//! struct CodeObjects(Vec<Vec<u8>>);
//!
//! impl Visitor for CodeObjects {
//!     fn opens(&mut self, container: &Container) -> Enter {
//!         if container.compression().is_some() { Enter::Skip } else { Enter::Open }
//!     }
//!
//!     fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
//!         if image.target().id().starts_with("gfx") {
//!             let mut bytes = Vec::new();
//!             image.reader().read_to_end(&mut bytes)?;
//!             self.0.push(bytes);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
//! let bundle = layout.to_vec(&[b"code"])?;
//! let mut found = CodeObjects(Vec::new());
//! walk(Cursor::new(bundle), &Options::default(), &mut found)?;
//! assert_eq!(found.0, [b"code"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bitcode
//!
//! A module for the host, compiled for link-time optimisation, has no sections yet. Its embedded objects are
//! entered as the section that they become, `section:.llvm.offloading`. Their data starts at any bit of the file:
//! it is copied out, and offsets in it are [`Location::Bitcode`]. A constant that several globals share is walked
//! once. Bitcode is read where it can be for the host: a file, a member of an archive, the host's entry of a
//! bundle. Bitcode for a device embeds nothing; as an entry of a container it is an image like any other.
//!
//! [`llvm_bitcode::symbols`] reads the symbols of bitcode for any target: LLVM enters the same into an archive's index.
//!
//! # Bounds
//!
//! Memory and time grow no faster than the size of the file, with small constants for honest files:
//!
//! - Ranges that overlap are errors, so that no byte is walked twice on one level, and levels are bounded by
//!   [`Options::with_max_depth`]. Each level holds headers, and at most the bytes of a text bundle.
//! - [`Options::with_max_decompressed`] bounds the bytes that are decompressed, or copied out of bitcode, at one
//!   time, and with [`Options::with_max_expansion`] their total. A compressed bundle is held as stored while it is
//!   decompressed; [`walk_with_threads`] holds one more for each thread, if these bytes allow.
//! - Names and strings can share bytes. Their total is limited to 64 MiB plus four times the bytes walked,
//!   including the names in paths.
//! - A [scan](Options::with_scan) reads the bytes of a host file once, and headers of false matches up to a quarter
//!   of the file plus 16 MiB; then it [ends](ErrorKind::Limit).
//! - At most one section of an object can be the object itself.
//! - Thin archives name files: [`Options::with_max_thin_bytes`] bounds those; thin archives in them are not opened.
//!
//! # Errors
//!
//! An error in a walked file is not an error of the walk but a [`Finding`] with an [`Error`] in it: its
//! [kind](ErrorKind) is for programs, its text says what is wrong and where, in bytes.
//!
//! | function | error |
//! |---|---|
//! | [`list`] | [`Error`] of reading: its kind is [`Io`](ErrorKind::Io) |
//! | [`has_device_code`] | [`Error`] |
//! | [`walk`] | [`io::Error`](std::io::Error) of reading, or of the visitor; `Error::from` takes out a [`Finding`] |
//! | [`check_agreement`] | [`Disagreement`] |
//!
//! All are [`Send`], [`Sync`] and `'static`.
//!
//! # Readers, writers, threads
//!
//! Readers and writers are taken by value: `file`, `&mut file` and `Cursor::new(bytes)` are all fine. Their
//! position is ignored, and unspecified afterwards. All values can be sent to other threads, except an [`Image`]
//! during a visit.
//!
//! # Other crates in this API
//!
//! Targets are those of [`target_id`], bundles those of [`bundle_format`], compressed bundles of [`ccob`], offload
//! binaries of [`offload_binary`], bitcode of [`llvm_bitcode`]. Add these crates to your dependencies to name their types. No type of another crate is in the API,
//! unless the feature `serde` is on.
//!
//! # Features
//!
//! | feature | default | what |
//! |---|---|---|
//! | `ruzstd` | yes | zstd in pure Rust: reads all levels, writes the fastest |
//! | `miniz_oxide` | yes | zlib in pure Rust |
//! | `zstd` | no | zstd by libzstd (C), preferred where both are on: decodes two to four times as fast, writes every level |
//! | `serde` | no | `serde::Serialize` for [`Listing`] and what it is made of, as `offload ls --json` prints it |
//!
//! A compressed bundle without a codec for it is a finding. The crate needs `std`, as it reads files. Minimum
//! supported Rust version: 1.88; it rises in a minor version only.
//!
//! # Stability
//!
//! Semantic versioning. Enums that can grow with the formats are `#[non_exhaustive]`, as are options and reports;
//! exhaustive ones say why. Texts of messages are for people and may change. The names that `as_str` returns and
//! the serialized forms are stable.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod agreement;
mod ahead;
mod archive;
mod bare;
mod bitcode;
mod bundle;
mod code;
mod compressed;
mod compressed_binary;
mod containers;
mod contents;
mod context;
mod copy;
mod disagreement;
mod elf;
mod error;
mod gzip;
pub mod hcf;
mod host;
mod host_parts;
mod image;
mod image_target;
mod inflate;
mod kernels;
mod kpack;
mod listing;
mod loose;
mod model;
mod no_images;
mod nv_fatbin;
mod offload;
mod opened;
mod options;
mod other;
mod question;
mod ranges;
mod records;
mod scan;
mod section;
mod sections;
mod sequence;
#[cfg(feature = "serde")]
mod serialize;
mod source;
mod sycl;
pub mod sycl_table;
mod syclbin;
mod symbols;
mod table;
mod text;
mod totals;
mod visitor;
mod walker;
mod wasm;

pub use agreement::check_agreement;
pub use ahead::walk_with_threads;
pub use code::Memory;
pub use compressed_binary::decompress_offload_binary;
pub use copy::copy_image;
pub use device_code::{FileFormat, MetalPlatform, elf_type, image_target};
pub use disagreement::Disagreement;
pub use error::{Error, ErrorKind, Finding};
pub use host_parts::{HostPart, HostPartKind, host_parts};
pub use image::{BundleForm, Image, ImageInfo, OffloadBinaryEntry};
pub use kernels::KernelVisitor;
pub use listing::{Listing, list, list_slice, list_with_thin_members};
pub use model::{Compression, Container, ContainerKind, Enter, Location, PathStep, Severity};
pub use options::Options;
pub use other::{is_named_for_code, is_scanned};
pub use question::has_device_code;
pub use source::ReadSeek;
pub use symbols::host_symbols;
pub use totals::{Copies, TargetTotal, TargetTotals};
pub use visitor::Visitor;
pub use walker::{Event, Summary, Walk, images, walk, walk_slice};
