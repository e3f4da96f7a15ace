//! Answers about files, packages and directories as values, before a tool prints them. Made for the tools of this workspace, and no
//! stable API.

#![forbid(unsafe_code)]

pub mod kernels;
pub mod listing;
pub mod matching;
pub mod row;
pub mod suggest;
