//! The inputs of tools: named files, all files below directories, members of packages, kernel packs of libraries, and
//! installed environments with the records of their files. Made for the tools of this workspace, and no stable API.

#![forbid(unsafe_code)]

pub mod checks;
pub mod complaint;
pub mod environment;
pub mod headings;
pub mod image_files;
pub mod inputs;
pub mod limits;
pub mod merged;
pub mod native;
pub mod online;
pub mod package;
pub mod records;
mod remote;
pub mod several;
pub mod split_library;
pub mod units;
pub mod variants;
