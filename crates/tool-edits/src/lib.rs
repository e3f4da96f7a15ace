//! Edits of device code in files, packages and directories: the way from a file to a new one, and the report about it. Made for the
//! tools of this workspace, and no stable API.
//!
//! An [`Editor`] edits all files that a command line names, as the command decides for each ([`Wishes`]), and tells a [`Reporter`].

#![forbid(unsafe_code)]

mod editor;
mod image;
mod incoming;
mod job;
mod join;
mod loose;
mod members;
mod new_images;
mod options;
mod package;
mod paths;
mod report;
mod reporter;
mod run;
mod short_report;
mod split;
mod thinning;
mod trial;
mod unpacked;
mod variant;
mod wishes;
mod words;

pub use editor::{Editor, Subject};
pub use incoming::Incoming;
pub use join::{JoinedWheel, WheelJoin};
pub use loose::{Databases, LeftPlace};
pub use new_images::NewImages;
pub use options::{Options, Uneditable, Within};
pub use report::{FileRow, Work};
pub use reporter::{Reporter, SizeReport};
pub use short_report::ShortReport;
pub use split::{DeviceWheel, Pack, Packs, SplitMember, WheelParts, WheelSplit, plan};
pub use thinning::{Permits, Thinning};
pub use trial::Trial;
pub use variant::write_variant;
pub use wishes::Wishes;
pub use words::{CODES, NO_WAY_BACK, describe_host, of_plan, unclear};
