//! Wheels, zip, tar, deb, rpm and conda packages, container images: members as streams, and changes that keep the records
//! of a package right.
//!
//! Nothing is unpacked to disk. Packages are recognised by content, not by name; packages in packages are read to a
//! bounded depth.
//!
//! # Reading
//!
//! [`walk()`] hands each member with a reader of its contents to a [`Visitor`], in the order of the file:
//!
//! ```
//! use std::io::{Cursor, Read};
//! use gpu_packages::{Error, Member, Options, Visitor, walk};
//!
//! struct Sizes(Vec<(String, u64)>);
//!
//! impl Visitor for Sizes {
//!     fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
//!         let size = std::io::copy(contents, &mut std::io::sink())?;
//!         self.0.push((member.path().to_string(), size));
//!         Ok(())
//!     }
//! }
//!
//! # let mut file = vec![0; 1536];
//! # file[..5].copy_from_slice(b"a.txt");
//! # file[124..136].copy_from_slice(b"00000000003\0");
//! # file[148..156].fill(b' ');
//! # file[257..265].copy_from_slice(b"ustar\x0000");
//! # let sum: u32 = file[..512].iter().map(|&byte| u32::from(byte)).sum();
//! # file[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
//! # file[512..515].copy_from_slice(b"abc");
//! let mut sizes = Sizes(Vec::new());
//! walk(Cursor::new(file), &Options::default(), &mut sizes)?;
//! assert_eq!(sizes.0, [("a.txt".to_owned(), 3)]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Members of a zip file are independent: [`Zip`] gives random access, and [`ZipWalker::member`] is the walk of one
//! member, for threads.
//!
//! | package | layers that have no name | name of a member |
//! |---|---|---|
//! | wheel, zip | | `pkg/libfoo.so` |
//! | another file with gzip, xz, zstd, bzip2, if the [visitor](Visitor::compressed) wants it | the compression | `contents` |
//! | tar, also with gzip, xz, zstd, bzip2 | the compression | `usr/lib/libfoo.so`, without `./` |
//! | deb | `data.tar.*` | `usr/lib/libfoo.so`; `control.tar:md5sums` |
//! | rpm | the compressed cpio file | `usr/lib/libfoo.so` |
//! | conda | `pkg-*.tar.zst`, `info-*.tar.zst` | `lib/libfoo.so`, `info/paths.json` |
//! | any in any other | | `layer.tar:usr/lib/libfoo.so` |
//!
//! # Changing
//!
//! - [`WheelEdit`] replaces members of a wheel. Rows of changed members in `RECORD` get new hashes and sizes; all other
//!   members are copied as they are, by the kernel from file to file.
//! - [`ZipEdit`] does so for other zip files.
//! - [`PackageEdit`] takes either, and compares members with `RECORD` while they are read. [`PackageForm`] tells what a file is.
//! - [`rewrite_tar`] and [`rewrite_deb`] replace members of tar files and Debian packages, which are compressed again as they were ([`Compression`]).
//! - [`VariantMetadata`] is what a variant of a wheel declares (PEP 825, a draft).
//! - [`NewZip`] and [`NewWheel`] write new files, also with members of others as they are stored there; [`WheelMetadata`] has names and
//!   tags for wheels that belong to another.
//! - [`Record`] changes the text of a `RECORD`; [`InstalledList`] corrects any list of installed files, conda's too,
//!   and [`InstalledNotes`] make it safe to interrupt.
//! - [`Images`] reads the documents of container images, whose [layers](ImageLayer) are read and written again;
//!   [`Images::replace_layers`] tells what changes above them, and [`ImageArchive`] writes an archive of it.
//!
//! # Checking
//!
//! [`verify()`] reads all contents, and compares them with checksums and records: `RECORD`, `md5sums`, `paths.json`.
//!
//! # Environments
//!
//! [`distributions`] lists what is installed in a Python environment, a [`Tree`] of the caller; each [`Distribution`] knows its
//! files.
//!
//! [`Extras`] sums up files that programs of an environment rarely need.
//!
//! # Robustness
//!
//! [`Options`] bounds decompressed bytes, depth and memory. Readers give at most the size that a package states. Unsafe
//! names (`..`, absolute ones), duplicates, overlaps, contradicting headers and hidden bytes are a [`Finding`] each, as is
//! what pip, dpkg and GNU tar refuse or other programs read differently ([`Ambiguous`](FindingKind::Ambiguous)).
//! No input makes this crate panic.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `bzip2` | yes | bzip2 in pure Rust |
//! | `ruzstd` | yes | zstd in pure Rust |
//! | `xz` | yes | xz in pure Rust |
//! | `zstd` | no | zstd by libzstd (C), preferred where both are on: all levels |
//!
//! Deflate and gzip are always there, in pure Rust. Rust 1.88 or later.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod ar;
mod checksums;
mod codec;
mod compression;
mod conda;
mod cpio;
mod deb;
mod deb_parts;
mod edit;
mod environment;
mod error;
mod extras;
mod gzip;
mod hash;
mod installed;
mod limits;
mod member;
mod names;
mod new_wheel;
mod oci;
mod package;
mod path;
mod reading;
mod record;
mod rewrite;
mod rpm;
mod tar;
mod text;
mod variant;
mod verify;
mod visitor;
mod walk;
mod wheel;
mod wheel_metadata;
mod wheel_name;
mod zip;

pub use checksums::checksum_names;
pub use codec::Codec;
pub use compression::{Compression, Encoder};
pub use deb::{DebRecords, set_installed_size};
pub use edit::{
    CheckedReader, PackageEdit, PackageForm, Unopened, changes_stream, rewrite_stream, stale_lists,
};
pub use environment::{
    Distribution, DistributionFiles, EntryKind, Looked, Site, Tree, TreeFault, distributions,
    has_distributions, lists_in, normalized_name, pth_directories, site_depth, sites_in,
};
pub use error::{Error, ErrorKind, Finding, FindingKind};
pub use extras::Extras;
pub use hash::{Algorithm, Hash, Hasher, hash_reader};
pub use installed::{FileHashes, InstalledList, InstalledNotes};
pub use limits::Options;
pub use member::{Member, MemberKind};
pub use new_wheel::NewWheel;
pub use oci::{
    ChangedImages, ChangedLists, FileChange, ImageArchive, ImageFiles, ImageLayer, ImageView,
    Images, LayerFile, LayerMembers, NewFile, NewLayer, VisibleMembers,
};
pub use package::{PackageKind, sniff};
pub use path::{MemberPath, unsafe_name};
pub use record::{Record, Row};
pub use rewrite::{Original, Replacement, RewriteOptions, Rewritten, rewrite_deb, rewrite_tar};
pub use tar::{TarKind, TarMember, TarReader};
pub use variant::{MAX_VARIANT_JSON, VariantMetadata, VariantProperties, VariantSchema};
pub use verify::{Verified, verify, verify_with};
pub use visitor::Visitor;
pub use walk::{ZipWalker, walk};
pub use wheel::{WheelEdit, check_wheel, dist_info, read_record, variant_json};
pub use wheel_metadata::WheelMetadata;
pub use wheel_name::WheelName;
pub use zip::{NewContents, NewZip, Rewrite, Storing, Zip, ZipEdit, ZipMember, ZipMemberReader};

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
