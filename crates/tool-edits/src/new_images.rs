//! The new images that a command line names.

use std::ffi::OsString;

use fat_edit::NewImage;
use tool_kit::arguments::split;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::payload::at;
use tool_kit::permissions::NewPermissions;
use tool_kit::{input, report};

/// The images that arguments `ID=IMAGE` name. The position of an argument is the number of its image.
#[derive(Debug)]
pub struct NewImages {
    /// The texts before the `=`.
    pub ids: Vec<String>,
    names: Vec<String>,
    pub(crate) files: Vec<NewImage>,
    permissions: Vec<NewPermissions>,
}

impl NewImages {
    /// No images.
    pub(crate) const NONE: Self = NewImages {
        ids: Vec::new(),
        names: Vec::new(),
        files: Vec::new(),
        permissions: Vec::new(),
    };

    /// Opens all images.
    pub(crate) fn open(arguments: &[OsString], max: MaxInput) -> Result<Self, String> {
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
    pub(crate) fn narrow(&self, new: NewPermissions) -> NewPermissions {
        self.permissions.iter().fold(new, |new, image| new.and(*image))
    }

    /// Returns the file that an image comes from.
    pub(crate) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }
}
