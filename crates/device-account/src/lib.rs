//! The account of a file with device code: each byte belongs to one row, and the rows add up to the size of the file.
//!
//! ```
//! use device_account::{Accountant, By};
//!
//! let mut file = std::fs::File::open("../../examples/data/cuda-fatbin.o")?;
//! let mut accountant = Accountant::new();
//! fat_object::walk(&mut file, &fat_object::Options::default(), &mut accountant)?;
//! let rows = accountant.finish(&mut file)?.rows(By::Target);
//! assert!(rows.iter().any(|row| row.target == "sm_70"));
//! assert_eq!(rows.iter().map(|row| row.amount.stored).sum::<u64>(), file.metadata()?.len());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Rules
//!
//! An [`Accountant`] is a visitor of the one walk of `fat-object`. Containers, images, sections and symbols claim bytes. A byte
//! goes to the innermost claim; of several on one level, to the one that starts first, then to the one that comes first.
//! [`Account::shared`] counts bytes that several claim on one level. A byte that nobody claims has the [`Kind`] of its surroundings:
//! container, padding, not understood.
//!
//! Each row has bytes [stored](Amount::stored) in the file, and bytes that are [plain](Amount::plain), not compressed. Compressed data
//! has no part for each image: its bytes are apportioned by plain sizes, with the largest remainders, so that they add up
//! ([`Account::is_apportioned`]).
//!
//! Files that thin archives name are files of their own: they are not part of the account.
//!
//! # Hostile files
//!
//! Claims are bounded by what the walk comes to and by the sections and symbols of images; n claims take time n log n. Names are read
//! up to four bytes for each byte of an image. Images that are damaged, or larger than the walk may hold, are
//! [not understood](Kind::NotUnderstood), and a [finding](Account::findings) says so. Tables of an image that are damaged, or share
//! bytes, are a finding, too: the first one of each image.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod account;
mod accountant;
mod claims;
mod copies;
mod functions;
mod host;
mod image;
mod kind;
mod ledger;
mod package;
mod rest;
mod rows;
mod sections;

pub use account::{Account, By, FunctionShare, ImageShare};
pub use accountant::Accountant;
pub use claims::apportion;
pub use copies::{Copies, Copy};
pub use kind::{Amount, Kind};
pub use package::PackageShare;
pub use rows::{Row, Rows};

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
