//! The image that a runtime loads on a GPU, and why not the others: the rules of HIP, OpenMP, CUDA and SYCL.
//!
//! A file holds *containers*: bundles, fatbinaries, sections of offload binaries. A device needs one image from
//! each container that has kernels for it; the runtime of its kind chooses which. A library has a container for
//! each source file, so a GPU that has code in one of them may lack code in another; only CUDA loads them one by one
//! ([`Support`]).
//!
//! | for | see |
//! |---|---|
//! | the device: a target ID, the name of a product, a PCI ID, in any state of `xnack` and `sramecc` | [`Device`] |
//! | which image of a fat binary in memory to load | [`load`] |
//! | which images of a file, and what each container lacks | [`units`], [`select`] |
//! | whether a file, or files that belong together, run on a device | [`Support`], [`FileSet`] |
//! | answers in words | [`Selection::conclusion`], [`FileSet::conclusion`] |
//! | whether ROCm's loader finds the code of libraries that are split into kernel packs | [`PackAnswer`], [`PackSet`] |
//! | what to keep for some devices, and what may go | [`Rule`], [`Decision`] |
//! | sums of device code by kind, and by what a rule says of it | [`Tally`], [`Holding`] |
//! | which files of a database may go | [`Database`], [`LoosePlace`] |
//! | which files belong into the device package of a GPU | [`DeviceFile`], [`PackageGroup`] |
//! | which images somebody asks for, and what to say if there are none | [`ImageFilter`] |
//! | products, their processors and PCI IDs | [`Product`] |
//! | the GPUs of a machine, from what its files say | [`Machine`], [`Gpus`] |
//!
//! # Which image does my GPU load
//!
//! ```
//! # let fat_binary = std::fs::read("../../examples/data/hip.hipfb").unwrap();
//! let gpu = device_select::Device::parse("gfx1100")?;
//! if let Some(code_object) = device_select::load(&fat_binary, &gpu)? {
//!     assert_eq!(code_object[..4], *b"\x7fELF"); // borrowed: the bundle is not compressed
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Does this library serve my GPU
//!
//! ```
//! # #[cfg(feature = "files")] {
//! let file = std::fs::File::open("../../examples/data/hip-two-units.so").unwrap();
//! let units = device_select::units(file).unwrap();
//! let gpu = device_select::Device::parse("RX 7900 XTX").unwrap();
//! let selection = device_select::select(&units, &gpu);
//! for (unit, answer) in units.iter().zip(selection.answers()) {
//!     println!("{}: {:?}", unit.place(), answer.given); // Yes, If(xnack is on), No
//! }
//! assert!(selection.is_served());
//! # }
//! ```
//!
//! # Sources of the rules
//!
//! - HIP: `ExtractFatBinaryUsingCOMGR` of the HIP runtime, `lookUpCodeObject` of Comgr.
//! - OpenMP: `registerLib` of LLVM's libomptarget.
//! - CUDA: NVIDIA's compatibility guides for binary code and PTX.
//! - SYCL: `getDeviceImage` of `sycl-rt`, `urDeviceSelectBinary` of the unified runtime.
//!
//! Without the feature `files`, this crate is `no_std` and lacks [`units`] and [`Rule`].
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

extern crate alloc;
#[cfg(feature = "files")]
extern crate std;

mod database;
mod device;
mod device_file;
mod environment;
mod few;
mod machine;
mod memory;
mod needs;
mod not_a_device;
mod order;
mod overrides;
mod package_group;
mod products;
mod programs;
mod vendor;

#[cfg(feature = "files")]
mod answer;
#[cfg(feature = "files")]
mod candidate;
#[cfg(feature = "files")]
mod collect;
#[cfg(feature = "files")]
mod decision;
#[cfg(feature = "files")]
mod fatbinary;
#[cfg(feature = "files")]
mod filter;
#[cfg(feature = "files")]
mod fit;
#[cfg(feature = "files")]
mod holding;
#[cfg(feature = "files")]
mod kernels;
#[cfg(feature = "files")]
mod loose;
#[cfg(feature = "files")]
mod near;
#[cfg(feature = "files")]
mod pack_set;
#[cfg(feature = "files")]
mod packs;
#[cfg(feature = "files")]
mod reason;
#[cfg(feature = "files")]
mod rule;
#[cfg(feature = "files")]
mod runtime;
#[cfg(feature = "files")]
mod select;
#[cfg(all(feature = "files", feature = "serde"))]
mod serialize;
#[cfg(feature = "files")]
mod set;
#[cfg(feature = "files")]
mod set_words;
#[cfg(feature = "files")]
mod shrunk;
#[cfg(feature = "files")]
mod support;
#[cfg(feature = "files")]
mod tally;
#[cfg(feature = "files")]
mod unit;
mod variant;
#[cfg(feature = "files")]
mod wanted;
#[cfg(feature = "files")]
mod whole;
#[cfg(feature = "files")]
mod words;

#[cfg(feature = "files")]
pub use answer::{Answer, Condition, Given, Judged, Note, Selection};
#[cfg(feature = "files")]
pub use candidate::Candidate;
#[cfg(feature = "files")]
pub use collect::{Collector, units};
pub use database::Database;
#[cfg(feature = "files")]
pub use decision::{Decision, Missing};
pub use device::{Device, PtxJit};
pub use device_file::{DeviceFile, FileReader};
pub use environment::{Visible, overridden, visible_devices};
pub use few::few;
#[cfg(feature = "files")]
pub use few::{each_once, names};
#[cfg(feature = "files")]
pub use filter::{ImageFilter, PassedOver};
#[cfg(feature = "files")]
pub use holding::Holding;
#[cfg(feature = "files")]
pub use loose::{LooseImage, LoosePlace, PlaceVerdict};
pub use machine::{Gpu, Gpus, Machine, NoGpu, driver_version, kfd_processor, version_of};
pub use memory::{LoadError, LoadErrorKind, load};
pub use needs::{Need, NotAVersion, Software, Version};
#[cfg(feature = "files")]
pub use needs::{needs, needs_of_compression};
pub use not_a_device::NotADevice;
pub use overrides::Override;
#[cfg(feature = "files")]
pub use pack_set::PackSet;
pub use package_group::{PackageGroup, PackageLevel};
#[cfg(feature = "files")]
pub use packs::{PackAnswer, SplitLibrary};
pub use products::{Product, processors, target_id};
#[cfg(feature = "files")]
pub use rule::{Rule, is_compiler_library, is_host};
#[cfg(feature = "files")]
pub use runtime::Runtime;
#[cfg(feature = "files")]
pub use select::select;
#[cfg(all(feature = "files", feature = "serde"))]
pub use serialize::{AnswerRecord, PackRecord};
#[cfg(feature = "files")]
pub use set::{Alternatives, FileSet, Obstacle, Question, QuestionKind};
#[cfg(feature = "files")]
pub use set_words::{SetAnswer, Verdict, VerdictKind};
#[cfg(feature = "files")]
pub use shrunk::{Shrunk, Stay};
#[cfg(feature = "files")]
pub use support::Support;
#[cfg(feature = "files")]
pub use tally::{CodeKind, CodeSizes, Tally};
#[cfg(feature = "files")]
pub use unit::Unit;
pub use variant::{VariantValue, driver_of_cuda};
pub use vendor::Vendor;
#[cfg(feature = "files")]
pub use wanted::{Fate, Wanted};
#[cfg(feature = "files")]
pub use words::{Conclusion, Tone};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
