//! Change the device code in finished files: images removed, replaced, added; bundles compressed or not.
//!
//! Finished files are edited in three steps. [`survey`] walks a file and lists its images and containers. An
//! [`Edit`] lists the changes: images removed, replaced, added; bundles compressed or decompressed.
//! [`EditableFile::plan`] computes the new file from headers and sizes, including everything around the device
//! code: sections, segments, members of archives. An [`EditPlan`] consists of parts of the old file, parts of new
//! images, and new bytes. Nothing is written before it is complete, and uncompressed parts are never held in
//! memory.
//!
//! ```
//! use std::io::Cursor;
//! use fat_edit::{CompressOptions, Edit, EditOptions, survey};
//! use fat_object::Options;
//!
//! let ids = ["hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx1100"];
//! let layout = bundle_format::layout(ids.map(|id| (id, 5000)), 4096)?;
//! let mut file = Cursor::new(layout.to_vec(&[&[1; 5000], &[2; 5000]])?);
//!
//! let contents = survey(&mut file, &Options::default())?;
//! let mut edit = Edit::new(EditOptions::default());
//! for image in contents.images() {
//!     if !image.target().is_host() && image.target().id() != "gfx1100" {
//!         edit.remove(image.index()); // without the first condition, `plan` refuses
//!     }
//! }
//! edit.compress(CompressOptions::default());
//! let plan = contents.plan(&mut file, &edit)?;
//! assert_eq!((plan.containers()[0].uncompressed_before, plan.containers()[0].uncompressed_after), (17288, 9096));
//!
//! let mut thin = Cursor::new(Vec::new());
//! plan.write(&mut file, &mut thin)?;
//! assert_eq!(survey(&mut thin, &Options::default())?.images().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Guarantees of every edit that succeeds:
//!
//! - Retained images keep every byte, their order, and the exact text of their IDs; those of offload binaries keep
//!   kinds, flags and strings. Unchanged containers are copied, with the bytes around them.
//! - A bundle keeps its alignment: whole pages, or none, or in between the largest that all its images have. In a
//!   file or section of bundles, each bundle that started at a multiple of 4096 still does.
//! - Edits are idempotent. Thinning a file twice equals thinning it once, for plain bundles that are aligned to
//!   pages or not at all.
//! - A compressed bundle keeps method and version (2 replaces 1, which does not record its end); if it would grow
//!   although images are removed, higher levels are tried. Compressing skips bundles that would not get smaller.
//!   Decompressing restores every byte of the file. A plan that compresses checks this: it reports the first byte
//!   that would differ ([`EditNote::NotRestored`]), and fails if nothing could be restored
//!   ([`ErrorKind::Refused`]).
//! - Removing the last device image of a bundle is an error without [`EditOptions::with_allow_empty`]; with it, a
//!   page with the entry of the host remains. An offload binary of version 1 is removed with its image, except the
//!   last one in its place.
//! - Removing the entry of the host is an error without [`EditOptions::with_remove_host`].
//! - New images must be for the target that their entry names, by [`check_agreement`](fat_object::check_agreement),
//!   unless [`EditOptions::with_any_image`] is set.
//!
//! Guarantees for PE executables and libraries (PE32+, for x86-64 and ARM64; "PE Format" by Microsoft):
//!
//! - A section `.hip_fatbin` (or `.hip_fat`, as some linkers truncate the name) keeps its place and size in memory,
//!   and is truncated in the file: loaders fill the rest with zeros. Sections follow each other without gaps, as
//!   Windows requires, and none becomes empty in the file. Everything outside is loaded as before; this is checked.
//! - Several bundles move together, and the pointers of the wrappers in `.hipFatBinSegment` with them, as do
//!   symbols. Bundles with other possible references (base relocations, exports, code) or without a wrapper do not
//!   move. The section is split before them, if there is room for a section header and there are no symbols;
//!   otherwise zeros stay in the file ([`EditNote::Zeroed`]).
//! - With [`EditOptions::with_grow`], device code that does not fit moves to a new section of the same name at the
//!   end of the image; the old section is renamed to `.hip_old` or `.nv_old`.
//! - Signed files are refused, unless [`EditOptions::with_drop_signature`] is set: then their certificates are
//!   removed. A checksum is computed again if there was one. The time stamp does not change, as symbol servers
//!   identify the file by it.
//!
//! NVIDIA fatbinaries lie in the sections `.nv_fatbin` and `__nv_relfatbin`, with wrappers in `.nvFatBinSegment`. They are
//! edited wherever bundles are. Entries that stay keep every byte. Removing the last entry of a fatbinary is an error without
//! [`EditOptions::with_allow_empty`]; with it, its header remains, to which wrappers still lead ([`EditNote::EmptyFatbinaries`]).
//! Entries are compressed by Zstandard with the feature `zstd`, otherwise by LZ4, as are those of CUDA 12 and older.
//!
//! Fatbinaries beside other data, in any section of a linked ELF or PE file, lose entries in place
//! ([`EditableContainer::is_in_place`]): entries that stay close up, zeros follow them up to the old end, and every byte outside keeps
//! its offset and its address. Nothing else can be done to them.
//!
//! HCF containers, SYCLBIN files, Mach-O files, WebAssembly modules, LLVM bitcode and the text bundles of the
//! first proposal cannot be edited: [`ErrorKind::Unsupported`], if they would have to change.
//! [`EditableContainer::uneditable`] tells so before an edit; with [`EditOptions::with_allow_uneditable`] they are
//! skipped, [`EditNote::Uneditable`] lists them, and the rest is edited.
//!
//! Every plan is checked: the new file, read before it is written, holds the images that are to be in it and no others.
//! They are compared by hash where they are not copied from the old file. Otherwise the plan fails
//! ([`ErrorKind::Refused`]).
//!
//! Damage that a walk finds is a [`fat_object::Error`] in the [`Error`], and a limit of a host file an
//! [`object_edit::Error`].
//!
//! Memory of edits: when they compress, 256 MiB of bundles at a time, or one larger bundle, and all compressed
//! results; when they decompress, one bundle at a time. For plain bundles, they read headers only.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod binary;
mod bundle;
mod check;
mod compress;
mod compressed_binary;
mod container;
mod decompress;
mod dispatch;
mod edit;
mod emptied;
mod error;
mod hash;
mod image_hash;
mod inputs;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
mod join;
mod kpack;
mod moved_out;
mod named;
mod no_way_back;
mod nv_fatbin;
mod object_form;
mod offload_form;
mod plan;
mod planner;
mod planning;
mod readers;
mod rebuild;
mod recipe;
mod registration;
mod restore;
mod sequence;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
mod split;
mod survey;
mod tally;
mod text;
mod uneditable;
mod wishes;
mod write;

pub use compress::{CompressOptions, FatbinaryCodec};
pub use compressed_binary::compress_offload_binary;
pub use edit::{Edit, EditOptions, NewImage};
pub use emptied::Emptied;
pub use error::{Error, ErrorKind};
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "ruzstd", feature = "zstd"))))]
pub use join::{Join, PackInput, new_compression};
pub use moved_out::{move_in, moved_out};
pub use named::NamedImages;
pub use no_way_back::NoWayBack;
pub use object_form::{
    HOST_PLACEHOLDER, PlacedHost, host_object, object_bundle, remove_bundle_sections,
};
pub use plan::{Change, ContainerChange, EditNote, EditPlan, ImageChange, TargetChange};
pub use recipe::Recipe;
pub use registration::{Registrable, Registration};
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "ruzstd", feature = "zstd"))))]
pub use split::{GroupPack, PackGroup, Split};
pub use survey::{EditableContainer, EditableFile, survey, survey_closed};

/// The first bytes of a file, which tell its format.
const SNIFF_LEN: usize = 2048;
