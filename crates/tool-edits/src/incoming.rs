//! New images for `offload replace` and `offload add`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use fat_edit::NamedImages;

use super::editor::{Editor, Subject};
use super::new_images::NewImages;
use super::options::{Options, Within};
use super::report::Work;
use super::wishes::Wishes;
use tool_kit::Outcome;
use tool_kit::failure::Failure;

/// The options of commands that put new images into a file.
#[derive(clap::Args, Clone, Debug)]
pub struct Incoming {
    /// File to edit; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    within: Within,
    /// Allow images built for devices other than their IDs name
    #[arg(long)]
    any_image: bool,
    #[command(flatten)]
    options: Options,
}

impl Incoming {
    /// Edits the file with the images that arguments `ID=IMAGE` name, as `decide` wishes, which returns faults.
    pub fn run(
        &self,
        images: &[OsString],
        decide: impl Fn(&NamedImages<'_>, &NewImages, &mut Wishes) -> Vec<String> + Sync,
    ) -> io::Result<Outcome> {
        let images = NewImages::open(images, self.options.limits.max_input);
        let images = images.map_err(io::Error::other)?;
        let decide = |subject: &Subject<'_>| -> Result<Wishes, Failure> {
            let named = subject.named(&self.within)?;
            let mut wishes = Wishes::new(self.options.edit().with_any_image(self.any_image));
            wishes.edit = wishes.edit.with_images(images.files.iter().cloned());
            let faults = decide(&named, &images, &mut wishes);
            if faults.is_empty() { Ok(wishes) } else { Err(Failure::Refused(faults)) }
        };
        let files = std::slice::from_ref(&self.file);
        let editor = Editor::new(files, &self.options, Work::Edit, &decide);
        Editor { images: &images, ..editor }.run()
    }
}
