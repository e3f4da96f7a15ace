//! What the commands share that edit device code in files: where results go, and the way from a file to a new one.

mod attributes;
mod editor;
mod incoming;
mod new_images;
mod options;
mod place;
mod report;
mod rules;
mod wishes;

pub(crate) use editor::{Editor, Subject};
pub(crate) use incoming::Incoming;
pub(crate) use new_images::NewImages;
pub(crate) use options::{Options, Uneditable};
pub(crate) use place::{Numbered, Within};
pub(crate) use report::Work;
pub(crate) use rules::{Fate, Rule, closest, is_host, is_misnamed};
pub(crate) use wishes::{Wishes, names};
