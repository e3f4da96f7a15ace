//! Shared code of the commands that edit device code in files: outputs, and the way from a file to a new one.

mod editor;
mod failures;
mod findings;
mod incoming;
mod new_images;
mod options;
mod package;
mod place;
mod report;
mod wishes;

pub(crate) use editor::{Editor, Subject, describe_host};
pub(crate) use incoming::Incoming;
pub(crate) use new_images::NewImages;
pub(crate) use options::{Options, Uneditable};
pub(crate) use place::{Numbered, Within};
pub(crate) use report::Work;
pub(crate) use wishes::{Wishes, names};
