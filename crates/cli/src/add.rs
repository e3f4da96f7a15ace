//! `offload add`: appends entries.

use std::ffi::OsString;
use std::io;

use bundle_format::EntryId;
use fat_edit::NamedImages;
use target_id::OffloadKind;
use target_id::near::did_you_mean;

use tool_edits::{Incoming, NewImages, Wishes, unclear};

use tool_kit::Outcome;

/// Add images to a bundle, offload binary or fatbinary, in any file
///
/// New entries are appended; existing entries do not change. Compressed bundles are compressed again. Fatbinaries take
/// cubins and PTX, with the ID of the processor: cuda-nvptx64-nvidia-cuda--sm_90.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    incoming: Incoming,
    /// Bundle entry ID or target ID of the new entry, and the file of its image
    #[arg(required = true, value_name = "ID=IMAGE")]
    images: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    args.incoming.run(&args.images, decide)
}

fn decide(named: &NamedImages<'_>, images: &NewImages, wishes: &mut Wishes) -> Vec<String> {
    let container = match named.only_container() {
        Ok(container) => container,
        Err(error) => return vec![unclear(&error, "--in")],
    };
    let mut faults = Vec::new();
    for (number, typed) in images.ids.iter().enumerate() {
        let id = match named.new_id(typed) {
            Ok(Some(id)) => entry_id(&id),
            Ok(None) => entry_id(typed),
            Err(error) => Err(unclear(&error, "its ID")),
        };
        match id {
            Ok(id) => {
                if let Some(near) = EntryId::near(typed) {
                    wishes
                        .warnings
                        .push(format!("'{typed}' is taken as it is; did you mean {near}?"));
                }
                wishes.edit.add(container, &id, number);
            }
            Err(fault) => faults.push(fault),
        }
    }
    faults
}

/// Returns the canonical form of an ID.
fn entry_id(typed: &str) -> Result<String, String> {
    let near = || did_you_mean(EntryId::near(typed).as_slice());
    let id = EntryId::parse(typed).map_err(|error| error.to_string())?;
    if matches!(id.kind(), OffloadKind::Other(_)) {
        return Err(format!("'{typed}': unknown offload kind '{}'{}", id.kind(), near()));
    }
    if !id.target_id().is_empty() {
        id.target().target_id().map_err(|error| format!("'{typed}': {error}{}", near()))?;
    }
    Ok(id.canonical())
}
