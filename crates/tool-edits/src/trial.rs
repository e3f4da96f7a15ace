//! The edit of a file that is planned, and not written.

use fat_edit::{EditableContainer, EditableFile, survey};
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

    /// Returns the size of the edited file, in bytes; `None` if images leave compressed data, which would have to be compressed again.
    ///
    /// # Errors
    ///
    /// The failure of this edit.
    pub fn size(&self, wishes: &Wishes) -> Result<Option<u64>, Failure> {
        let Trial { file, ref contents, .. } = *self;
        let removed = contents.images().iter().map(ImageInfo::index);
        let removed = removed.filter(|index| wishes.edit.removes(*index));
        let changed = || removed.clone().filter_map(|index| contents.container_of(index));
        let is_compressed = |container: &EditableContainer| {
            container.compression().is_some()
                || matches!(container.location(), Location::Decompressed(_))
        };
        if changed().any(is_compressed) && changed().all(|it| it.uneditable().is_none()) {
            return Ok(None);
        }
        let plan = contents.plan(file, &wishes.edit);
        let plan = plan.map_err(|error| refused(&error, &NewImages::NONE, contents, wishes))?;
        Ok(Some(plan.size()))
    }
}
