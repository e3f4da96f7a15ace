//! Shared code of the commands that edit device code in files: outputs, and the way from a file to a new one.

mod editor;
mod incoming;
mod job;
mod loose;
mod new_images;
mod options;
mod package;
mod report;
mod reporter;
mod run;
mod short_report;
mod wishes;
mod words;

pub(crate) use editor::{Editor, Subject};
pub(crate) use incoming::Incoming;
pub(crate) use loose::Databases;
pub(crate) use new_images::NewImages;
pub(crate) use options::{Options, Uneditable, Within};
pub(crate) use report::Work;
pub(crate) use reporter::{Reporter, SizeReport};
pub(crate) use short_report::ShortReport;
pub(crate) use wishes::Wishes;
pub(crate) use words::{describe_host, unclear};
