//! `offload add`: further entries.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use bundle_format::EntryId;
use target_id::OffloadKind;

use crate::edit::{
    Complaints, Editor, Host, NewImages, Numbered, Output, Subject, Wishes, Within, Work,
};
use crate::parallel::Threads;
use crate::{Outcome, input, report};

/// Add images to a bundle or a package, in any file
///
/// They become the last entries. Everything that is there stays what it is. Compressed bundles are compressed again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  offload add kernels.hipfb hipv4-amdgcn-amd-amdhsa--gfx942=a.hsaco --in-place
  offload add fat.o openmp-amdgcn-amd-amdhsa--gfx942=a.o -o fatter.o
  offload add libfoo.so hipv4-amdgcn-amd-amdhsa--gfx942=a.hsaco --in bundle:1 --grow -o libbar.so

IDs are bundle entry IDs, also for packages, and are written in their canonical form. Where the file
has several bundles, --in tells which, with a container out of the column IN of `offload ls`.

In a linked program or library the device code has a place, as large as when it was linked. What
does not fit there is refused, unless --grow gives it a new place at the end of the file's memory.")]
pub(crate) struct Args {
    /// The file to edit; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bundle entry ID of the new entry, and the file with the image
    #[arg(required = true, value_name = "ID=IMAGE")]
    images: Vec<OsString>,
    #[command(flatten)]
    within: Within,
    /// Take images that are for other devices than their IDs say
    #[arg(long)]
    any_image: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    host: Host,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    limits: input::Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let images = match NewImages::open(&args.images) {
        Ok(images) => images,
        Err(fault) => {
            report::error(&fault);
            return Ok(Outcome::Faults);
        }
    };
    let editor = Editor {
        files: std::slice::from_ref(&args.file),
        output: &args.output,
        host: &args.host,
        limits: &args.limits,
        images,
        work: Work::Edit,
    };
    editor.run(|subject, images| decide(args, images, subject))
}

fn decide(args: &Args, images: &NewImages, subject: &Subject<'_>) -> Result<Wishes, Complaints> {
    let one = |fault| vec![fault];
    let numbered = Numbered::new(subject, &args.within).map_err(one)?;
    let container = numbered.only_container().map_err(one)?;
    let mut options = args.host.options(args.threads);
    options.any_image = args.any_image;
    let mut wishes = Wishes::new(options);
    let mut faults = Vec::new();
    for (number, typed) in images.ids().iter().enumerate() {
        match entry_id(typed) {
            Ok(id) => wishes.add(container, &id, number),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(wishes) } else { Err(faults) }
}

/// The canonical form of an ID.
fn entry_id(typed: &str) -> Result<String, String> {
    let id = EntryId::parse(typed).map_err(|error| error.to_string())?;
    if matches!(id.kind(), OffloadKind::Other(_)) {
        return Err(format!("'{typed}': unknown offload kind '{}'", id.kind()));
    }
    if !id.target_id().is_empty() {
        id.target().target_id().map_err(|error| format!("'{typed}': {error}"))?;
    }
    Ok(id.canonical())
}
