//! New images for `offload replace` and `offload add`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use fat_edit::{NamedImages, NewImage};

use super::editor::{Editor, Subject};
use super::options::{Options, Within};
use super::report::Work;
use super::wishes::Wishes;
use tool_kit::arguments::split;
use tool_kit::failure::Failure;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::payload::at;
use tool_kit::permissions::NewPermissions;
use tool_kit::{Outcome, input, report};

/// The images that arguments `ID=IMAGE` name. The position of an argument is the number of its image.
#[derive(Debug)]
pub(crate) struct NewImages {
    /// The texts before the `=`.
    pub(crate) ids: Vec<String>,
    names: Vec<String>,
    pub(super) files: Vec<NewImage>,
    permissions: Vec<NewPermissions>,
}

impl NewImages {
    /// No images.
    pub(super) const NONE: Self = NewImages {
        ids: Vec::new(),
        names: Vec::new(),
        files: Vec::new(),
        permissions: Vec::new(),
    };

    /// Opens all images.
    fn open(arguments: &[OsString], max: MaxInput) -> Result<Self, String> {
        let mut images = NewImages::NONE;
        for argument in arguments {
            let (id, path) = split(argument)?;
            let opened = Opened::new(&path, max).map_err(|e| report::reason(&at(&path, &e)))?;
            images.ids.push(String::from_utf8_lossy(&id).into_owned());
            images.names.push(input::display(&path));
            images.permissions.push(opened.permissions());
            images.files.push(NewImage::new(opened.file));
        }
        Ok(images)
    }

    /// Returns the permissions of a file that gets some of the images.
    pub(super) fn narrow(&self, new: NewPermissions) -> NewPermissions {
        self.permissions.iter().fold(new, |new, image| new.and(*image))
    }

    /// Returns the file that an image comes from.
    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }
}

/// The options of commands that put new images into a file.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Incoming {
    #[command(flatten)]
    within: Within,
    /// Allow images built for devices other than their IDs name
    #[arg(long)]
    any_image: bool,
    #[command(flatten)]
    options: Options,
}

impl Incoming {
    /// Edits a file with the images that arguments `ID=IMAGE` name, as `decide` wishes, which returns faults.
    pub(crate) fn run(
        &self,
        file: &PathBuf,
        images: &[OsString],
        decide: impl Fn(&NamedImages<'_>, &NewImages, &mut Wishes) -> Result<Vec<String>, String>,
    ) -> io::Result<Outcome> {
        let images = match NewImages::open(images, self.options.limits.max_input) {
            Ok(images) => images,
            Err(fault) => {
                report::error(&fault);
                return Ok(Outcome::Faults);
            }
        };
        let decide = |subject: &Subject<'_>| -> Result<Wishes, Failure> {
            let named = subject.named(&self.within)?;
            let mut wishes = Wishes::new(self.options.edit().with_any_image(self.any_image));
            wishes.edit = wishes.edit.with_images(images.files.iter().cloned());
            let faults = decide(&named, &images, &mut wishes)?;
            if faults.is_empty() { Ok(wishes) } else { Err(faults.into()) }
        };
        let files = std::slice::from_ref(file);
        let editor = Editor::new(files, &self.options, Work::Edit, &decide);
        Editor { images: &images, ..editor }.run()
    }
}
