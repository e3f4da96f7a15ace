//! The edit of a file that is planned, and not written.

use fat_edit::{EditableFile, survey};
use fat_object::{ImageInfo, Location};
use tool_kit::failure::Failure;
use tool_kit::parallel::Threads;
use tool_kit::positioned::Positioned;

use super::editor::Subject;
use super::new_images::NewImages;
use super::options::Options;
use super::wishes::Wishes;
use super::words::{allow, explain, refused};

/// A file whose edits are tried, one after the other. Nothing is written.
#[derive(Debug)]
pub struct Trial<'a> {
    file: Positioned<'a>,
    walk: &'a fat_object::Options,
    contents: EditableFile,
}

impl<'a> Trial<'a> {
    /// Surveys a file.
    ///
    /// # Errors
    ///
    /// The failure of any edit of this file.
    pub fn new(
        file: Positioned<'a>,
        walk: &'a fat_object::Options,
        options: &Options,
    ) -> Result<Self, Failure> {
        let contents = survey(file, walk).map_err(|error| explain(&error, &NewImages::NONE))?;
        allow(options, contents.findings())?;
        if contents.containers().is_empty() {
            return Err(Failure::NoCode);
        }
        Ok(Trial { file, walk, contents })
    }

    /// Returns the file, for who decides how it is edited.
    pub fn subject(&self, is_named: bool, threads: Threads) -> Subject<'_> {
        let Trial { file, walk, ref contents } = *self;
        Subject { is_named, is_last: false, contents, file, walk, threads }
    }

    /// Checks whether the containers that an edit would change can be edited.
    ///
    /// # Errors
    ///
    /// The failure of this edit.
    pub fn check(&self, wishes: &Wishes) -> Result<(), Failure> {
        self.contents.check_edit(&wishes.edit).map_err(|error| self.refused(&error, wishes))
    }

    /// Returns the size of the edited file, in bytes; `None` if images leave compressed data, which would have to be compressed again.
    ///
    /// # Errors
    ///
    /// The failure of this edit.
    pub fn size(&self, wishes: &Wishes) -> Result<Option<u64>, Failure> {
        self.check(wishes)?;
        let removed = |image: &&ImageInfo| wishes.edit.removes(image.index());
        let is_compressed = |image: &ImageInfo| {
            let container = self.contents.container_of(image.index());
            container.is_some_and(|container| {
                container.compression().is_some()
                    || matches!(container.location(), Location::Decompressed(_))
            })
        };
        if self.contents.images().iter().filter(removed).any(is_compressed) {
            return Ok(None);
        }
        let plan = self.contents.plan(self.file, &wishes.edit);
        Ok(Some(plan.map_err(|error| self.refused(&error, wishes))?.size()))
    }

    fn refused(&self, error: &fat_edit::Error, wishes: &Wishes) -> Failure {
        refused(error, &NewImages::NONE, &self.contents, wishes)
    }
}
