//! `offload remove`: whole entries go.

use std::io;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use tool_edits::{Editor, Options, Subject, Uneditable, Wishes, Within, Work, unclear};
use tool_kit::Outcome;
use tool_kit::failure::Failure;

/// Remove entries of bundles and offload binaries, in any file
///
/// --id removes every image with that bundle entry ID; --in restricts it to one container. --index removes one
/// image. Retained images keep every byte. `offload thin` removes images by what a GPU could load.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to edit; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Remove the images with this bundle entry ID or target ID. Repeatable
    #[arg(
        long = "id",
        value_name = "ID",
        value_parser = NonEmptyStringValueParser::new(),
        required_unless_present = "index"
    )]
    ids: Vec<String>,
    /// Remove the image with this number in `offload ls`. Repeatable
    #[arg(long, value_name = "N")]
    index: Vec<usize>,
    #[command(flatten)]
    within: Within,
    /// Allow containers to lose all their device images
    #[arg(long)]
    allow_empty: bool,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let files = std::slice::from_ref(&args.file);
    Editor::new(files, &args.options, Work::Edit, &|subject| decide(args, subject)).run()
}

fn decide(args: &Args, subject: &Subject<'_>) -> Result<Wishes, Failure> {
    let named = subject.named(&args.within)?;
    let mut wishes = args.options.wishes(args.uneditable, subject.threads);
    let mut faults = Vec::new();
    let with_ids = args.ids.iter().map(|id| named.with_id(id));
    let with_numbers = args.index.iter().map(|&number| Ok(vec![named.with_number(number)?]));
    for found in with_ids.chain(with_numbers) {
        match found {
            Ok(images) => images.iter().for_each(|image| wishes.edit.remove(image.index())),
            Err(error) => faults.push(unclear(&error, "its ID or --index")),
        }
    }
    if !args.allow_empty {
        faults.extend(wishes.emptied(subject.contents).map(|(place, had)| {
            format!("no image would be left in {place} (has: {had}); --allow-empty permits this")
        }));
    }
    if faults.is_empty() { Ok(wishes) } else { Err(faults.into()) }
}
