//! `offload replace`: images put in the place of others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::Outcome;
use crate::edit::{Incoming, NewImages, Numbered, Wishes};
use crate::failure::Failure;
use crate::help::More;

pub(crate) const MORE: More = More {
    examples: &[
        (
            "offload replace kernels.hipfb gfx906=gfx906.hsaco -o new.hipfb",
            "the image for a GPU, of which there is one",
        ),
        (
            "offload replace kernels.hipfb hipv4-amdgcn-amd-amdhsa--gfx906=gfx906.hsaco --in-place",
            "by the whole ID of the entry",
        ),
        ("offload replace libfoo.so 1=gfx1100.hsaco -o libbar.so", "what `offload ls` shows as 1"),
        (
            "offload replace libfoo.so gfx906=gfx906.hsaco --in ccob:1 -o libbar.so",
            "in one of the bundles of a library",
        ),
        (
            "offload replace kernels.hipfb gfx906=gfx906.hsaco gfx1100=gfx1100.hsaco --in-place",
            "several",
        ),
    ],
    notes: &[
        "An ID is a bundle entry ID, exactly as it is stored; or a target ID, if one image only has it; or the \
         number in the first column of `offload ls`. Where several images have the ID, as in libraries of several \
         translation units, the number tells which, or --in, with a container out of the column IN.",
        "In a linked program or library the device code has a place, as large as when it was linked. What does not \
         fit there is refused, unless --grow gives it a new place at the end of the file's memory.",
    ],
};

/// Put images in the place of others, in any file
///
/// The new image may be larger or smaller than the one before; everything else stays what it is. Compressed bundles are
/// compressed again. An image that is for other devices than its entry says is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// The file to edit; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The image to replace, and the file with the new one
    #[arg(required = true, value_name = "ID=IMAGE")]
    images: Vec<OsString>,
    #[command(flatten)]
    incoming: Incoming,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    args.incoming.run(&args.file, &args.images, decide)
}

fn decide(numbered: &Numbered<'_>, images: &NewImages, wishes: &mut Wishes) -> Result<(), Failure> {
    let mut faults = Vec::new();
    let mut replaced = BTreeMap::new();
    for (number, typed) in images.ids().iter().enumerate() {
        let old = match numbered.only(typed) {
            Ok(old) => old,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        if let Some(before) = replaced.insert(old.index(), typed) {
            let n = numbered.number(old);
            faults.push(format!("'{before}' and '{typed}' are both image {n}"));
        }
        wishes.replace(old, number);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}
