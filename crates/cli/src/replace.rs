//! `offload replace`: images put in the place of others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use fat_edit::NamedImages;

use crate::edit::{Incoming, NewImages, Wishes, unclear};
use crate::help::More;
use tool_kit::Outcome;

pub(crate) const MORE: More = More {
    examples: &[
        (
            "offload replace kernels.hipfb gfx906=gfx906.hsaco -o new.hipfb",
            "replace the only image for a GPU",
        ),
        (
            "offload replace kernels.hipfb hipv4-amdgcn-amd-amdhsa--gfx906=gfx906.hsaco --in-place",
            "replace the image with this bundle entry ID",
        ),
        (
            "offload replace libfoo.so 1=gfx1100.hsaco -o libbar.so",
            "replace the image that `offload ls` shows as 1",
        ),
        (
            "offload replace libfoo.so gfx906=gfx906.hsaco --in ccob:1 -o libbar.so",
            "replace an image in one of the bundles of a library",
        ),
        (
            "offload replace kernels.hipfb gfx906=gfx906.hsaco gfx1100=gfx1100.hsaco --in-place",
            "replace several \
             images",
        ),
    ],
    notes: &[
        "An ID is a bundle entry ID exactly as stored, a target ID that only one image has, or the number in the \
         first column of `offload ls`. If several images have the ID, as in libraries of several translation units, choose one by its number, or with --in and a container from the column IN.",
        "In a linked program or library, device code that no longer fits in its section is refused, unless --grow \
         allows moving it to the end of the file's memory.",
    ],
};

/// Replace images in any file
///
/// The new image may be larger or smaller than the old one; other images do not change. Compressed bundles are
/// compressed again. An image built for devices other than its entry names is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// File to edit; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Image to replace, and the file of the new one
    #[arg(required = true, value_name = "ID=IMAGE")]
    images: Vec<OsString>,
    #[command(flatten)]
    incoming: Incoming,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    args.incoming.run(&args.file, &args.images, decide)
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
