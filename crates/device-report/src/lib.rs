//! A page that shows where the bytes of files with GPU code go: one HTML file, with a treemap and a table.
//!
//! ```
//! use device_account::Accountant;
//! use device_report::{File, Report, Shell};
//!
//! let name = "../../examples/data/hip.o";
//! let mut file = std::fs::File::open(name)?;
//! let mut accountant = Accountant::new().with_functions(true);
//! fat_object::walk(&mut file, &fat_object::Options::default(), &mut accountant)?;
//! let accounts = [(name.to_owned(), accountant.finish(&mut file)?)];
//! let report = Report::new(&[File::new(name, &accounts).with_path(name.as_bytes())], Vec::new(), Shell::Posix);
//! let mut page = Vec::new();
//! report.write(&mut page)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Parts
//!
//! [`Report`] makes the data of the page from accounts. The page knows this data only, as JSON, and is the same for all data:
//! [`write_page`] writes it without any, for programs that make the data later and call `offloadReport.show(data)`. The README of the
//! crate describes the data.
//!
//! Equal accounts give equal pages. The page loads nothing, and its policy (Content-Security-Policy) forbids it to.
//!
//! # Hostile files
//!
//! Names come from files. Data cannot end the element that holds it, and the page sets names as text. A page has at most
//! [`MOST_ROWS`] rows with names of at most [`MOST_OF_NAME`] characters; what is smaller is summed in rows of their own.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod data;
mod file;
mod fold;
mod page;
mod quote;
mod report;
mod thin;
mod tree;
mod tries;

pub use data::{Gpu, Node, NodeKind, Note, Thin};
pub use file::File;
pub use fold::{MOST_OF_NAME, MOST_ROWS};
pub use page::{Front, write_front, write_page};
pub use quote::Shell;
pub use report::{MOST_NOTES, Report};
pub use thin::{MOST_CHOICES, choices};
pub use tree::MOST_GPUS;
pub use tries::{Tried, Tries};

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
