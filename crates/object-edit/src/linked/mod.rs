//! Contents of sections replaced in linked files and in objects, and members of archives, with everything that refers to them.

mod changes;
mod coff;
mod edit;
mod elf;
mod elf_object;
mod error;
mod host;
mod in_place;
mod moved_out;
mod moves;
mod pe;
mod read;
mod registered;
mod registration;
mod relayout;
mod scan;
mod unloaded;

pub use edit::{Format, edit, explain_nothing, uneditable};
pub use host::{Edited, Item, Options, SectionChange, SectionEdit};
pub use in_place::{edit_in_place, editable_in_place};
pub use moved_out::{HipWrapper, hip_wrappers, move_in, move_out};
pub use registered::{Registered, RegisteredWith, Target, registered};
pub use unloaded::sections_never_loaded;
