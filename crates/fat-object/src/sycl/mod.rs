//! Images that Intel's SYCL toolchain links into host files, as the crate `sycl-table` reads them.

mod inflate;
mod native;
mod walk;

pub(crate) use native::gpus;
pub(crate) use walk::{Images, Section, is_in_section, may_have_tables, tables};
