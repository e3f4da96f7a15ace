//! Wheels with what they declare, and installed variants.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use device_select::Device;
use fat_object::is_named_for_code;
use gpu_packages::{MAX_VARIANT_JSON, PackageForm, WheelName, Zip, variant_json};
use offload_check::{INDEX_END, VariantCode, VariantDeclaration, VariantSet, Violation};

use crate::environment::{self, Distribution};
use crate::inputs::Inputs;
use crate::limits::Limits;
use crate::package::Package;
use crate::units::FileUnits;
use tool_kit::opened::Opened;
use tool_kit::output::at;
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::{input, report};

/// A wheel, and what it declares.
#[derive(Debug)]
pub struct Wheel {
    /// The path.
    pub path: PathBuf,
    /// The name of the file.
    pub name: WheelName,
    /// The declaration.
    pub declared: VariantDeclaration,
    /// The permissions of the file.
    pub permissions: NewPermissions,
}

/// A wheel that is open.
#[derive(Debug)]
pub struct OpenWheel {
    /// The wheel.
    pub wheel: Wheel,
    /// The file.
    pub opened: Arc<Opened>,
    /// The zip file that it is.
    pub zip: Zip,
}

impl OpenWheel {
    /// Opens a wheel, and reads its `variant.json`.
    ///
    /// # Errors
    ///
    /// With the path: an error of reading, or the file is not a wheel.
    pub fn open(path: &Path, limits: &Limits) -> io::Result<Self> {
        Self::read(path, limits).map_err(|error| at(path, &error))
    }

    /// Returns an error with the path.
    pub fn failed(&self, error: &impl ToString) -> io::Error {
        at(&self.wheel.path, &io::Error::other(error.to_string()))
    }

    fn read(path: &Path, limits: &Limits) -> io::Result<Self> {
        let name = path.file_name().map_or(Cow::Borrowed(""), |name| name.to_string_lossy());
        let name = WheelName::parse(&name).map_err(io::Error::other)?;
        let opened = Arc::new(Opened::new(path, limits.max_input)?);
        let Some(PackageForm::Zip(zip)) = Package::of(&opened)?.map(|package| package.form) else {
            return Err(io::Error::other("expected a wheel, found no zip file"));
        };
        let json = variant_json(&zip).map(|index| {
            zip.open(index, opened.reader()).map_err(io::Error::other).and_then(bounded)
        });
        let json = json.transpose()?;
        let declared = VariantDeclaration::of_wheel(&input::display(path), &name, json.as_deref());
        let permissions = opened.permissions();
        let wheel = Wheel { path: path.to_owned(), name, declared, permissions };
        Ok(OpenWheel { wheel, opened, zip })
    }
}

impl Wheel {
    /// Returns the path for messages.
    pub fn shown(&self) -> String {
        input::display(&self.path)
    }

    /// Reads all device code. With `check`, compressed code is read as well, in which its needs stand.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn code(&self, check: bool, limits: &Limits) -> io::Result<VariantCode> {
        let [_, _, platform] = self.name.tags();
        let on_arm = platform.contains("aarch64") || platform.contains("arm64");
        let mut code = VariantCode::new(&self.shown(), on_arm);
        let inputs = Inputs::find(slice::from_ref(&self.path));
        let mut is_damaged = false;
        let looked = FileUnits::read_all(&inputs, (check, limits), |input, file| {
            is_damaged |= file.is_damaged();
            code.add(input.name(), file.units);
        })?;
        if is_damaged || looked.is_faulty() {
            code.set_damaged();
        }
        Ok(code)
    }

    /// Reads all device code, without its needs.
    ///
    /// # Errors
    ///
    /// Some cannot be read.
    pub fn whole_code(&self, limits: &Limits) -> io::Result<VariantCode> {
        let code = self.code(false, limits)?;
        if code.is_damaged() {
            let text = "some of its device code could not be read: see `offload verify`";
            return Err(at(&self.path, &io::Error::other(text)));
        }
        Ok(code)
    }
}

/// Reads metadata of variants, which are small.
///
/// # Errors
///
/// An error of reading, or there are more than [`MAX_VARIANT_JSON`] bytes.
pub fn bounded(contents: impl Read) -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    contents.take(MAX_VARIANT_JSON + 1).read_to_end(&mut json)?;
    if json.len() as u64 > MAX_VARIANT_JSON {
        let text = format!("expected at most {MAX_VARIANT_JSON} bytes of metadata, found more");
        return Err(io::Error::other(text));
    }
    Ok(json)
}

/// Returns the files that are named, and those of directories that are named, sorted, whose names end with `end`.
///
/// # Errors
///
/// A directory cannot be read.
pub fn files(arguments: &[PathBuf], end: &str) -> io::Result<Vec<PathBuf>> {
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
///
/// # Errors
///
/// A directory cannot be read.
pub fn wheels(arguments: &[PathBuf], limits: &Limits) -> io::Result<(Vec<Wheel>, bool)> {
    let (mut wheels, mut has_faults) = (Vec::new(), false);
    let mut fail = |text: &str| {
        report::error(&text);
        has_faults = true;
    };
    for argument in arguments {
        let paths = files(slice::from_ref(argument), ".whl")?;
        // The files of an index may be alone.
        if paths.is_empty() && files(slice::from_ref(argument), INDEX_END)?.is_empty() {
            let what = if argument.is_dir() { "no wheels in it" } else { "not a wheel (.whl)" };
            fail(&format!("{}: {what}", input::display(argument)));
        }
        for path in paths {
            match OpenWheel::open(&path, limits) {
                Ok(OpenWheel { wheel, .. }) => wheels.push(wheel),
                Err(error) => fail(&report::reason(&error)),
            }
        }
    }
    Ok((wheels, has_faults))
}

/// Returns the distributions of all environments among arguments.
pub fn distributions_in(arguments: &[PathBuf]) -> impl Iterator<Item = Distribution> {
    let directories = arguments.iter().filter(|path| path.is_dir());
    let found = directories.filter_map(|path| environment::distributions(Some(path)).ok());
    found.flat_map(|(found, _)| found)
}

/// Judges a distribution that was installed from a variant: whether an installer would choose it for these GPUs, and with `limits`
/// whether its declaration agrees with its code. Nothing is wrong with other distributions.
pub fn judge_installed(
    distribution: &Distribution,
    gpus: &[Device],
    limits: Option<&Limits>,
) -> Vec<Violation> {
    let name = distribution.name();
    let declared = match distribution.variant_json() {
        Ok(None) => return Vec::new(),
        Ok(Some(json)) => VariantDeclaration::of_installed(name, &json),
        Err(fault) => {
            let text = distribution.tree().text(&fault);
            return vec![Violation::error("file/error", name, text)];
        }
    };
    let mut found: Vec<_> = gpus.iter().filter_map(|gpu| declared.other_gpu(gpu)).collect();
    let Some(limits) = limits else { return found };
    let mut set = VariantSet::default();
    found.extend(set.add(&declared));
    if declared.is_judged() {
        let code = installed_code(distribution, (declared.needs_contents(), limits));
        found.extend(set.judge(&declared, &code));
    }
    found
}

/// Reads the device code of a distribution.
fn installed_code(distribution: &Distribution, how: (bool, &Limits)) -> VariantCode {
    // The GPUs of Jetson modules are asked about where they are declared.
    let mut code = VariantCode::new(distribution.name(), false);
    let files = distribution.files(is_named_for_code);
    let is_whole = files.as_ref().is_ok_and(|files| files.faults.is_empty());
    for path in files.into_iter().flat_map(|files| files.paths) {
        let file = distribution.tree().input(&path);
        if file.split_host().is_some() {
            code.set_elsewhere();
            continue;
        }
        match FileUnits::read(&file, how, Threads::one()).0 {
            Some(read) => {
                if read.is_damaged() {
                    code.set_damaged();
                }
                code.add(&String::from_utf8_lossy(&path), read.units);
            }
            None => code.set_damaged(),
        }
    }
    if !is_whole {
        code.set_damaged();
    }
    code
}
