//! `offload replace`: images put in the place of others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use fat_edit::NamedImages;

use tool_edits::{Incoming, NewImages, Wishes, unclear};
use tool_kit::Outcome;

/// Replace images in any file
///
/// The new image may be larger or smaller than the old one; other images do not change. Compressed bundles are
/// compressed again. An image built for devices other than its entry names is refused.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    incoming: Incoming,
    /// Image to replace, and the file of the new one
    #[arg(required = true, value_name = "ID=IMAGE")]
    images: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    args.incoming.run(&args.images, decide)
}

fn decide(named: &NamedImages<'_>, images: &NewImages, wishes: &mut Wishes) -> Vec<String> {
    let mut faults = Vec::new();
    let mut replaced = BTreeMap::new();
    for (number, typed) in images.ids.iter().enumerate() {
        let old = match named.only(typed) {
            Ok(old) => old,
            Err(error) => {
                faults.push(unclear(&error, "its number, or its container by --in"));
                continue;
            }
        };
        if let Some(before) = replaced.insert(old.index(), typed) {
            let n = named.number(old);
            faults.push(format!("'{before}' and '{typed}' are both image {n}"));
        }
        wishes.edit.replace(old.index(), number);
    }
    faults
}
