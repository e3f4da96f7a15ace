//! Files and wheels split into host code and kernel packs.

mod contents;
mod device;
mod library;
mod options;
mod packs;
mod texts;
mod wheel;

pub use options::{DeviceWheel, SplitMember, WheelParts, WheelSplit};
pub use packs::{Pack, Packs, plan};
pub(crate) use texts::{BOOTSTRAP, is_host_line};
