//! The new images that a command line names.

use std::ffi::OsString;

use fat_edit::NewImage;

use crate::arguments::split;
use crate::input;
use crate::opened::MaxInput;
use crate::payload::at;
use crate::report::reason;

/// The images that arguments `ID=IMAGE` name. The position of an argument is the number of its image.
#[derive(Debug, Default)]
pub(crate) struct NewImages {
    ids: Vec<String>,
    names: Vec<String>,
    pub(super) files: Vec<NewImage>,
}

impl NewImages {
    /// Opens all images.
    pub(crate) fn open(arguments: &[OsString], max: MaxInput) -> Result<Self, String> {
        let mut images = NewImages::default();
        for argument in arguments {
            let (id, path) = split(argument)?;
            let file = input::open_sized(&path, max).map_err(|error| reason(&at(&path, &error)))?;
            images.ids.push(String::from_utf8_lossy(&id).into_owned());
            images.names.push(input::display(&path));
            images.files.push(NewImage::new(file));
        }
        Ok(images)
    }

    /// Returns the text before the `=` of each argument.
    pub(crate) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Returns the file that an image comes from.
    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }
}
