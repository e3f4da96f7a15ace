//! The settings of edits that all files share, and who decides about each.

use std::path::PathBuf;

use device_select::Rule;
use fat_edit::{EditableFile, NamedImages};
use gpu_packages::{VariantMetadata, WheelName};

use super::loose::Databases;
use super::new_images::NewImages;
use super::options::{Options, Within};
use super::report::Work;
use super::wishes::Wishes;
use super::words::unclear;
use tool_kit::failure::Failure;
use tool_kit::parallel::Threads;
use tool_kit::positioned::Positioned;
use tool_kit::store::Keep;

/// A file to be edited, for who decides how.
#[derive(Debug)]
pub struct Subject<'a> {
    /// `false` for a file of a directory that is named, and may hold nothing for the command.
    pub is_named: bool,
    /// `true` once all other files are edited.
    pub is_last: bool,
    /// Its containers.
    pub contents: &'a EditableFile,
    /// Its bytes.
    pub file: Positioned<'a>,
    /// The options of a walk through it, which may hold what is left.
    pub walk: &'a fat_object::Options,
    /// The threads for it.
    pub threads: Threads,
}

impl<'a> Subject<'a> {
    /// Returns the images and containers by the names of a listing, in the containers that are meant.
    pub fn named(&self, within: &'a Within) -> Result<NamedImages<'a>, String> {
        let named = self.contents.named(self.file, self.walk, &within.steps);
        named.map_err(|error| unclear(&error, ""))
    }
}

/// Returns the wishes for a file.
pub(crate) type Decide<'d> = dyn Fn(&Subject<'_>) -> Result<Wishes, Failure> + Sync + 'd;

/// The common settings of all files.
#[allow(missing_debug_implementations)] // It has a function.
pub struct Editor<'a> {
    /// The files and directories that are named.
    pub(crate) files: &'a [PathBuf],
    /// The options that all commands have.
    pub(crate) options: &'a Options,
    pub(crate) images: &'a NewImages,
    /// The kind of work, for the report.
    pub(crate) work: Work,
    pub(crate) decide: &'a Decide<'a>,
    /// The images that are needed of members of packages.
    pub(crate) keep: Keep<'a>,
    /// Sums are taken by this rule, and files that are refused stay.
    pub(crate) shrinks: Option<&'a Rule>,
    /// Files of kernel databases and loose images for other GPUs are deleted.
    pub(crate) databases: Option<Databases<'a>>,
    /// Wheels become this variant.
    pub(crate) variant: Option<&'a VariantMetadata>,
}

impl<'a> Editor<'a> {
    /// Returns the settings of edits of files, or all files of directories, as `decide` wishes for each.
    pub fn new(
        files: &'a [PathBuf],
        options: &'a Options,
        work: Work,
        decide: &'a Decide<'a>,
    ) -> Self {
        Editor {
            files,
            options,
            images: const { &NewImages::NONE },
            work,
            decide,
            keep: Keep::All,
            shrinks: None,
            databases: None,
            variant: None,
        }
    }

    /// Keeps only what the edit needs of members of packages.
    #[must_use]
    pub fn with_keep(self, keep: Keep<'a>) -> Self {
        Editor { keep, ..self }
    }

    /// Takes sums by a rule, and leaves files that are refused as they are.
    #[must_use]
    pub fn with_sums(self, rule: &'a Rule) -> Self {
        Editor { shrinks: Some(rule), ..self }
    }

    /// Deletes files of kernel databases and loose images that are for other GPUs.
    #[must_use]
    pub fn with_databases(self, databases: Databases<'a>) -> Self {
        Editor { databases: Some(databases), ..self }
    }
    /// Makes wheels a variant: with its metadata, and its label in their names.
    #[must_use]
    pub fn with_variant(self, variant: &'a VariantMetadata) -> Self {
        Editor { variant: Some(variant), ..self }
    }

    /// Returns whether only wheels can be changed as is wished.
    pub(crate) fn is_for_wheels(&self) -> bool {
        self.options.output.build_tag.is_some() || self.variant.is_some()
    }

    /// Returns the name of a new wheel, with its build tag and the label of its variant.
    pub(crate) fn new_name(&self, old: &str) -> Result<String, gpu_packages::Error> {
        let mut name = WheelName::parse(old)?;
        if let Some(tag) = &self.options.output.build_tag {
            name = name.with_build(tag)?;
        }
        if let Some((label, _)) = self.variant.and_then(|variant| variant.variants().next()) {
            name = name.with_label(Some(label))?;
        }
        Ok(name.to_string())
    }
}
