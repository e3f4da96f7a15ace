//! The tests of the tools that need nothing but the repository.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../editing/mod.rs"]
mod editing;
#[path = "../hostile/mod.rs"]
mod hostile;
#[path = "../hostile/library.rs"]
mod library;
#[path = "../cases/runner.rs"]
mod runner;

mod at_once;
mod bare;
#[cfg(target_os = "linux")]
mod budgets;
mod bundler;
mod cases;
mod circles;
mod commands;
mod debug;
mod docs;
#[cfg(target_os = "linux")]
mod docs_commands;
mod doctor;
mod edit;
#[cfg(unix)]
mod edit_faults;
mod errors;
#[cfg(target_os = "linux")]
#[path = "../faults/mod.rs"]
mod faults;
mod floors;
mod format;
mod golden;
mod help;
mod hip_fatbin;
mod hostile_files;
mod images;
#[cfg(unix)]
mod limits;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod link;
mod loose;
mod machine;
mod manual;
mod r#match;
mod merged_images;
mod misnamed;
mod network;
#[cfg(unix)]
mod odd_files;
mod packager;
mod packages;
mod promises;
mod public_api;
mod records;
mod report;
mod roc_obj;
#[cfg(target_os = "linux")]
mod screens;
mod shrink;
mod silent;
mod split_faults;
mod split_sets;
mod split_wheels;
mod suggest;
mod sycl;
mod threads;
#[cfg(target_os = "linux")]
mod variants;
mod view;
mod wheels;
mod why;
mod wrapped;
mod wrapper;
