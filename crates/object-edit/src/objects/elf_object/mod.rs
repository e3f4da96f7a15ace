//! ELF files by their section headers, and without some of their sections.

mod file;
mod remove;

pub(crate) use file::{FORMAT, Object, decode, place, program_headers};
pub(crate) use remove::{Loaded, remove};
