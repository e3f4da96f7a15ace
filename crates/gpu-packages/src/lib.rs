//! Packages with device code: members as streams, and packages with some members changed and records that are right.
//!
//! [`Zip`] reads zip archives, wheels among them, and writes them again with some members changed: all others are copied as they
//! are. [`record`] reads and corrects `RECORD`, the list of files of a wheel or of an installed Python distribution.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::io::{Cursor, Read, Write};
//!
//! use gpu_packages::{Contents, Zip};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let wheel: &[u8] = b"PK\x03\x04\x0a\0\0\0\0\0\0\0\0\0\xc2\x41\x24\x35\x03\0\0\0\x03\0\0\0\x01\0\0\0aabc\
//! #     PK\x01\x02\x14\x03\x0a\0\0\0\0\0\0\0\0\0\xc2\x41\x24\x35\x03\0\0\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a\
//! #     PK\x05\x06\0\0\0\0\x01\0\x01\0\x2f\0\0\0\x22\0\0\0\0\0";
//! let zip = Zip::read(Cursor::new(wheel))?;
//! let member = &zip.members()[0];
//! let mut bytes = Vec::new();
//! zip.open(member, Cursor::new(wheel))?.read_to_end(&mut bytes)?;
//! assert_eq!((member.path(), &bytes[..]), ("a", &b"abc"[..]));
//!
//! let mut new = Contents::like(member, 6);
//! new.write_all(b"other")?;
//! let changes = BTreeMap::from([(0, Some(new.finish()?))]);
//! let parts = zip.rewrite(Cursor::new(wheel), &changes)?;
//! let changed = parts.to_vec(|_| wheel)?;
//! let zip = Zip::read(Cursor::new(&changed))?;
//! assert_eq!(zip.members()[0].size(), 5);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod error;
pub mod record;
mod zip;

pub use error::{Error, ErrorKind};
pub use zip::{Contents, ContentsWriter, Member, MemberReader, Zip};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
