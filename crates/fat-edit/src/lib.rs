//! Change the device code in finished files: images removed, replaced, added; bundles compressed or not.
//!
//! Finished files are edited in three steps. [`survey`] walks a file and lists its images and containers. An [`Edit`]
//! says what becomes of them: images removed, replaced, added; bundles compressed or decompressed.
//! [`EditableFile::plan`] works out the new file, from headers and sizes, with everything around the device code: sections,
//! segments, members of archives. An [`EditPlan`] is parts of the old file, of new images, and new bytes: nothing is
//! written before it is complete, and what is not compressed is in memory at no time.
//!
//! ```
//! use std::io::Cursor;
//! use fat_edit::{CompressOptions, Edit, EditOptions, survey};
//! use fat_object::Options;
//!
//! let ids = ["hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx1100"];
//! let layout = bundle_format::Layout::new(ids.map(|id| (id, 5000)), 4096)?;
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
//! - Images that are kept keep every byte, their order, the exact text of their IDs; offload binaries their kinds, flags and
//!   strings. Containers of which nothing is wished are copied as they are, with whatever lies around them.
//! - A bundle is laid out as close as the alignment allows that it had: whole pages, or none, or in between the largest
//!   that all its images keep. In a file or section of bundles each starts at a multiple of 4096 that did so before.
//! - The same edit does nothing more when it is done again; and to thin a file twice is to thin it at once, for plain
//!   bundles aligned to pages or not at all.
//! - A compressed bundle keeps method and version (2 takes the place of 1, which does not tell where it ends); if it
//!   were to grow by what it loses, higher levels are tried. Compressing leaves bundles alone that would not get
//!   smaller. Decompressing restores every byte of the file. A plan that compresses checks this: it tells where the first
//!   other byte would be ([`EditNote::NotRestored`]), and fails if nothing could be restored ([`ErrorKind::NotRestorable`]).
//! - The last device image of a bundle stays, unless [`EditOptions::with_allow_empty`] says otherwise; then a page is left,
//!   with the entry of the host. An offload binary of version 1 goes with its image, but not the last one in its place.
//! - The entry of the host stays, unless [`EditOptions::with_remove_host`] says otherwise: to remove it is an error.
//! - New images have to be for the target that their entry names, as [`check_agreement`](fat_object::check_agreement) has it, unless
//!   [`EditOptions::with_any_image`] is set.
//!
//! And of PE executables and libraries (PE32+, for x86-64 and ARM64; "PE Format" by Microsoft):
//!
//! - A section `.hip_fatbin` (or `.hip_fat`, what linkers leave of the name) keeps its place and size in memory, and is
//!   cut at its end in the file: loaders fill the rest with zeros. Sections follow each other without gaps, as Windows
//!   wants it, and none gets empty in the file. Everything outside is loaded as before; this is checked.
//! - Several bundles move together, and the pointers of the wrappers in `.hipFatBinSegment` with them, as do symbols.
//!   Bundles that something else may refer to (base relocations, exports, code) or that no wrapper leads to stay. The
//!   section is split before them, if there is room for a section header and there are no symbols; otherwise zeros
//!   stay in the file ([`EditNote::Zeroed`]).
//! - With [`EditOptions::with_grow`], device code without room for it gets a new section of the same name at the end of the
//!   image; the old one is called `.hip_old` then.
//! - Signed files are refused, unless [`EditOptions::with_drop_signature`] is set: then their certificates go. A checksum is
//!   computed again where there was one. The time stamp stays, by which symbol servers know the file.
//!
//! NVIDIA fatbinaries, HCF containers, Mach-O files, WebAssembly modules, LLVM bitcode and the text bundles of the first proposal are
//! not edited: [`ErrorKind::Unsupported`], if something in them were to change. [`EditableContainer::uneditable`] tells
//! before; with [`EditOptions::with_allow_uneditable`] they stay as they are, [`EditNote::Uneditable`] lists them, and the rest
//! is edited.
//!
//! Damage that a walk finds is a [`fat_object::Error`] in the [`Error`], and a limit of a host file an
//! [`object_edit::Error`].
//!
//! Edits hold what they compress: 256 MiB of bundles at a time, or one that is larger, and what all came to; of
//! what they decompress one bundle at a time. For plain bundles, they read headers.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod binary;
mod bundle;
mod compress;
mod compressed_binary;
mod container;
mod decompress;
mod dispatch;
mod edit;
mod error;
mod inputs;
mod object_form;
mod plan;
mod planner;
mod readers;
mod rebuild;
mod restore;
mod sequence;
mod survey;
mod text;
mod uneditable;
mod wishes;
mod write;

pub use compress::CompressOptions;
pub use compressed_binary::compress_offload_binary;
pub use edit::{Edit, EditOptions, NewImage};
pub use error::{Error, ErrorKind};
pub use fat_object;
pub use object_form::{
    BUNDLE_SECTIONS, HOST_PLACEHOLDER, MACH_O_BUNDLE_SECTION, object_bundle, remove_bundle_sections,
};
pub use plan::{Change, ContainerChange, EditNote, EditPlan, ImageChange};
pub use survey::{EditableContainer, EditableFile, survey, survey_closed};

/// The first bytes of a file, which tell its format.
const SNIFF_LEN: usize = 2048;
