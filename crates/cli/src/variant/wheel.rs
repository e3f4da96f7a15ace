//! Wheels, and what they declare.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use gpu_packages::{
    MAX_VARIANT_JSON, PackageForm, VariantMetadata, VariantSchema, WheelName, Zip, normalized_name,
    variant_json,
};
use tool_inputs::limits::Limits;
use tool_inputs::package::Package;
use tool_kit::opened::Opened;
use tool_kit::output::at;
use tool_kit::permissions::NewPermissions;
use tool_kit::{input, report};

/// The end of the names of index files.
pub(super) const INDEX: &str = "-variants.json";

/// A wheel, and what it declares.
#[derive(Debug)]
pub(super) struct Wheel {
    pub(super) path: PathBuf,
    pub(super) name: WheelName,
    /// The contents of its `variant.json`, if it has one.
    pub(super) metadata: Option<VariantMetadata>,
    pub(super) permissions: NewPermissions,
    /// The places where this breaks the rules of the form.
    pub(super) faults: Vec<String>,
}

impl Wheel {
    /// Opens a wheel, and reads its `variant.json`.
    pub(super) fn open(path: &Path, limits: &Limits) -> io::Result<Self> {
        let failed = |error: io::Error| at(path, &error);
        let name = path.file_name().map_or(Cow::Borrowed(""), |name| name.to_string_lossy());
        let name = WheelName::parse(&name).map_err(|error| failed(io::Error::other(error)))?;
        let (opened, zip) = zip(path, limits)?;
        let permissions = opened.permissions();
        let (path, faults) = (path.to_owned(), Vec::new());
        let mut wheel = Wheel { path, name, metadata: None, permissions, faults };
        if let Some(index) = variant_json(&zip) {
            let contents = zip.open(index, opened.reader()).map_err(io::Error::other);
            let json = contents.and_then(bounded).map_err(failed)?;
            match VariantMetadata::read(&json) {
                Ok((metadata, faults)) => {
                    (wheel.metadata, wheel.faults) = (Some(metadata), faults);
                }
                Err(error) => wheel.faults.push(error.to_string()),
            }
        }
        Ok(wheel)
    }

    /// Returns the path for messages.
    pub(super) fn shown(&self) -> String {
        input::display(&self.path)
    }

    /// Returns whether it has a label or declares something.
    pub(super) fn is_variant(&self) -> bool {
        self.name.label().is_some() || self.metadata.is_some() || !self.faults.is_empty()
    }

    /// Returns the declared properties that name no GPU, as namespace, feature and value.
    pub(super) fn other_properties(&self) -> impl Iterator<Item = [&str; 3]> {
        let variants = self.metadata.iter().flat_map(|metadata| metadata.variants());
        let all = variants.flat_map(|(_, properties)| properties.iter());
        all.filter(|[namespace, feature, _]| {
            !matches!((*namespace, *feature), ("nvidia", "sm_arch") | ("amd", "gfx_arch"))
        })
    }

    /// Returns the name of the file of an index with this version: names are in lower case there.
    pub(super) fn index_name(&self) -> String {
        let name = normalized_name(self.name.name()).replace('-', "_");
        format!("{name}-{}{INDEX}", self.name.version())
    }
}

/// Opens the zip file that a wheel is.
pub(super) fn zip(path: &Path, limits: &Limits) -> io::Result<(Arc<Opened>, Zip)> {
    let failed = |error: io::Error| at(path, &error);
    let opened = Arc::new(Opened::new(path, limits.max_input).map_err(failed)?);
    match Package::of(&opened).map_err(failed)?.map(|package| package.form) {
        Some(PackageForm::Zip(zip)) => Ok((opened, zip)),
        _ => Err(failed(io::Error::other("expected a wheel, found no zip file"))),
    }
}

/// Reads metadata of variants, which are small.
pub(super) fn bounded(contents: impl Read) -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    contents.take(MAX_VARIANT_JSON + 1).read_to_end(&mut json)?;
    if json.len() as u64 > MAX_VARIANT_JSON {
        let text = format!("expected at most {MAX_VARIANT_JSON} bytes of metadata, found more");
        return Err(io::Error::other(text));
    }
    Ok(json)
}

/// Returns the files that are named, and those of directories that are named, sorted, whose names end so.
pub(super) fn files(arguments: &[PathBuf], end: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for argument in &*tool_kit::wildcards::expanded(arguments) {
        let is_one = |path: &Path| path.to_string_lossy().ends_with(end);
        if !argument.is_dir() {
            found.extend(Some(argument.clone()).filter(|path| is_one(path)));
            continue;
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(argument).map_err(|error| at(argument, &error))? {
            inside.push(entry.map_err(|error| at(argument, &error))?.path());
        }
        inside.retain(|path| path.is_file() && is_one(path));
        inside.sort();
        found.extend(inside);
    }
    Ok(found)
}

/// Opens all wheels of arguments, and prints what fails. The files are wheels, or directories with some.
pub(super) fn wheels(arguments: &[PathBuf], limits: &Limits) -> io::Result<(Vec<Wheel>, bool)> {
    let (mut wheels, mut has_faults) = (Vec::new(), false);
    let mut fail = |text: &str| {
        report::error(&text);
        has_faults = true;
    };
    for argument in arguments {
        let paths = files(std::slice::from_ref(argument), ".whl")?;
        // The files of an index may be alone.
        if paths.is_empty() && files(std::slice::from_ref(argument), INDEX)?.is_empty() {
            let what = if argument.is_dir() { "no wheels in it" } else { "not a wheel (.whl)" };
            fail(&format!("{}: {what}", input::display(argument)));
        }
        for path in paths {
            match Wheel::open(&path, limits) {
                Ok(wheel) => wheels.push(wheel),
                Err(error) => fail(&report::reason(&error)),
            }
        }
    }
    Ok((wheels, has_faults))
}

/// The form of new metadata.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Schema {
    /// Version 0.1.1 of PEP 825.
    Pep825,
    /// Version 0.2.0 of variantlib, which names the plugins of installers.
    Variantlib,
}

impl From<Schema> for VariantSchema {
    fn from(schema: Schema) -> Self {
        match schema {
            Schema::Pep825 => VariantSchema::Pep825,
            Schema::Variantlib => VariantSchema::Variantlib,
        }
    }
}
