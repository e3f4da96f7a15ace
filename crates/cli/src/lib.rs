//! The tools of this workspace. Each binary is one call into this library, which exists so that they can share
//! modules; it is not a public API.

#![forbid(unsafe_code)]

mod add;
mod arguments;
mod budget;
mod bundle;
pub mod bundler;
mod completions;
mod compress;
mod compression;
mod decompress;
mod directory;
mod doctor;
mod drop_in;
mod each_once;
mod edit;
mod environment;
mod extract;
mod failure;
mod fatbin;
pub mod fatbinary;
mod gpus;
mod help;
mod input;
mod inputs;
mod json;
mod keep;
mod kernels;
mod link;
pub mod linker_wrapper;
mod llvm_cl;
mod ls;
mod manual;
mod match_gpu;
mod naming;
mod native;
pub mod offload;
mod opened;
mod output;
mod pack;
mod package;
pub mod packager;
mod packs;
mod parallel;
mod payload;
mod permissions;
mod positioned;
mod progress;
mod records;
mod registration;
mod remove;
mod replace;
mod report;
pub mod roc_obj;
mod scratch;
mod select;
mod special;
mod stamp;
mod standard;
mod store;
mod style;
mod suggest;
mod table;
mod temporary;
mod thin;
mod unbundle;
mod verify;
mod why;
mod wrap;
pub mod wrapper;

/// The result of a command that did not fail outright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing to complain about.
    Clean,
    /// Complaints were printed.
    Faults,
}
