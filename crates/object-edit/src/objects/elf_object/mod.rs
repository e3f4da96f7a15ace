//! ELF files by their section headers: without some of their sections, and with other names.

mod change;
mod file;
mod part;
mod string_tables;

pub(crate) use change::{Loaded, remove, rename};
pub(crate) use file::{FORMAT, Object, decode, place, program_headers};
