//! The tools beside LLVM 22's. They fail, not skip, where LLVM is missing.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::single_range_in_vec_init,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../hostile/mod.rs"]
mod hostile;
#[path = "../hostile/judge.rs"]
mod judge;
#[path = "../hostile/library.rs"]
mod library;
#[path = "../hostile/questions.rs"]
mod questions;
#[path = "../cases/runner.rs"]
mod runner;
#[path = "../hostile/runs.rs"]
mod runs;

mod bitcode_symbols;
mod bitcode_target;
#[cfg(unix)]
mod build_script;
mod bundler;
mod cases;
#[cfg(unix)]
mod clang_bundler;
mod compress;
mod device_linkers;
mod edit;
mod edit_objects;
mod edit_pe;
mod edit_references;
mod embed;
mod entries;
mod hda;
mod hostile_files;
mod kernels;
#[cfg(unix)]
mod linker_wrapper;
mod r#match;
mod members;
mod messages;
mod needs;
mod object_form;
mod packager;
mod peer;
mod processors;
mod retouch;
mod roc_obj;
mod rust_link;
mod split;
mod triples;
mod wrapper_bitcode;
mod wrapper_formats;
mod wrapper_ir;
mod wrapper_object;
mod wrapper_openmp;
mod x86_64;
