//! Questions about the GPU code of a file or a package, asked of any reader: no paths, no terminal.
//!
//! A file is what it is, or a package whose members are the files. The answers serialize as the rows of the tools' JSON.
//!
//! | question | answered by |
//! |---|---|
//! | the images | [`list`], [`Listing`] |
//! | the bytes of an image | [`copy_image`] |
//! | the bytes of many images, from one pass | [`copy_images`], [`ImageVisitor`] |
//! | the kernels, with their resources | [`kernels`], [`Kernels`] |
//! | the GPUs that it has code for, and why others get none | [`judge`], [`Verdicts`] |
//! | both, from one walk, for any number of GPUs | [`survey`], [`Survey`] |
//! | the containers from which a runtime chooses, in a walk of yours | [`UnitCollector`] |
//! | the files themselves, for other questions | [`each_file`], [`FileVisitor`] |
//!
//! ```
//! use std::io::Cursor;
//!
//! use device_files::{Options, judge, list};
//! use device_select::Device;
//!
//! let file = Cursor::new(std::fs::read("../../examples/data/hip.o")?);
//! let listing = list(file.clone(), &Options::default())?;
//! assert_eq!(listing.images[1].image.target().id(), "gfx1100");
//!
//! let gpu = Device::parse("RX 7600")?;
//! let verdicts = judge(file, &Options::default(), &[gpu])?;
//! assert_eq!(verdicts.verdicts[0].answer, "no");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Readers
//!
//! A reader is [`Read`](std::io::Read), [`Seek`](std::io::Seek) and [`Clone`]; clones have positions of their own, and read the same bytes. Members that lie in a package as
//! they are, are read in place; other members are held in memory while they are looked into, up to [`Options::with_max_held`] bytes.
//!
//! # Limits
//!
//! Files that a file names are not read: members of thin archives, and the kernel packs of split libraries, which a finding names.
//! A compressed member of no known format is searched as a whole if it has at most 64 MiB; of a larger one the first 64 KiB are, and a
//! finding names the bytes that were not read.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod chunks;
mod fault;
mod files;
mod images;
mod kernels;
mod layers;
mod members;
mod options;
mod part;
mod survey;
mod units;
mod verdicts;

pub use fault::{Fault, finding_code, hides_code};
pub use files::{DeviceFile, FileVisitor, each_file};
pub use images::{FileRow, ImageRow, ImageVisitor, Listing, copy_image, copy_images};
pub use kernels::{KernelRow, Kernels, kernels};
pub use members::{HEAD, Reading, complete, is_looked_into, not_read};
pub use options::Options;
pub use survey::{Survey, list, survey};
pub use units::UnitCollector;
pub use verdicts::{AnswerRow, Verdict, Verdicts, judge};

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
