//! The tool `offload`: its binary is one call into this library, whose API is not stable.

#![forbid(unsafe_code)]

mod accounts;
mod add;
mod advice;
mod bundle;
mod check;
mod completions;
mod compress;
mod compression;
mod decompress;
mod doctor;
mod explain;
mod extract;
mod fatbin;
mod gpus;
mod help;
mod kernels;
mod link;
mod ls;
mod manual;
mod match_gpu;
mod native;
pub mod offload;
mod pack;
mod packs;
mod remove;
mod replace;
mod report;
mod select;
mod shrink;
mod size;
mod thin;
mod unbundle;
mod variant;
mod verify;
mod why;
mod wrap;

use tool_answers::suggest;
