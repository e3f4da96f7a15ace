//! The new images that a command line names.

use std::ffi::OsString;
use std::fs::File;

use crate::bundle::split;
use crate::input;
use crate::payload::at;
use crate::report::reason;

/// What an argument `ID=IMAGE` names.
#[derive(Debug)]
pub(crate) struct NewImage {
    /// What was typed before the `=`.
    pub(crate) typed: String,
    pub(crate) file: String,
}

/// Opens all images; their positions are their numbers.
pub(crate) fn open(arguments: &[OsString]) -> Result<(Vec<NewImage>, Vec<File>), String> {
    let mut images = Vec::new();
    let mut files = Vec::new();
    for argument in arguments {
        let (typed, path) = split(argument)?;
        let typed = String::from_utf8_lossy(&typed).into_owned();
        let file = input::open_sized(&path).map_err(|error| reason(&at(&path, &error)))?;
        images.push(NewImage { typed, file: input::display(&path) });
        files.push(file);
    }
    Ok((images, files))
}
