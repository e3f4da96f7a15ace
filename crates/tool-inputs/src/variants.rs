//! Wheels with what they declare, and installed variants.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use device_select::Device;
use fat_object::{Severity, is_named_for_code};
use gpu_packages::{MAX_VARIANT_JSON, PackageForm, TreeFault, WheelName, Zip, variant_json};
use offload_check::{INDEX_END, VariantCode, VariantDeclaration, VariantSet, Violation};

use crate::complaint::Complaint;
use crate::environment::{self, Distribution};
use crate::inputs::{Input, Inputs};
use crate::limits::Limits;
use crate::merged::ImageVariant;
use crate::package::Package;
use crate::split_library::Host;
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

    /// Reads all device code, without its needs.
    ///
    /// # Errors
    ///
    /// Some cannot be read.
    pub fn whole_code(&self, limits: &Limits) -> io::Result<VariantCode> {
        let (path, form) = (&self.wheel.path, PackageForm::Zip(self.zip.clone()));
        let inputs = Inputs::of_package(path, &self.opened, form);
        let code = self.wheel.code_of(&inputs, (false, limits))?;
        if code.is_damaged() {
            let text = "some of its device code could not be read: see `offload verify`";
            return Err(at(path, &io::Error::other(text)));
        }
        Ok(code)
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

    /// Reads all device code. With `check`, compressed code is read as well, and its needs are known.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn code(&self, check: bool, limits: &Limits) -> io::Result<VariantCode> {
        self.code_of(&Inputs::find(slice::from_ref(&self.path)), (check, limits))
    }

    fn code_of(&self, inputs: &Inputs, how: (bool, &Limits)) -> io::Result<VariantCode> {
        let [_, _, platform] = self.name.tags();
        let on_arm = platform.contains("aarch64") || platform.contains("arm64");
        let mut code = VariantCode::new(&self.shown(), on_arm);
        let (mut is_damaged, mut is_elsewhere) = (false, false);
        let looked = FileUnits::read_all(inputs, how, |input, file| {
            is_damaged |= file.is_damaged();
            is_elsewhere |= file.is_split;
            code.add(input.name(), file.units);
        })?;
        if is_damaged || looked.is_faulty() {
            code.set_damaged();
        }
        if is_elsewhere {
            code.set_elsewhere();
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

/// Returns the distributions of all environments among arguments, and faults of directories that may hide some. Other directories have
/// none.
pub fn distributions_in(arguments: &[PathBuf]) -> (Vec<Distribution>, Vec<String>) {
    let directories = arguments.iter().filter(|path| path.is_dir());
    let found = directories.filter_map(|path| environment::distributions(Some(path)).ok());
    let (found, faults): (Vec<_>, Vec<_>) = found.unzip();
    (found.into_iter().flatten().collect(), faults.into_iter().flatten().collect())
}

/// The device code of a file of an installed distribution.
#[derive(Clone, Debug)]
pub enum InstalledCode {
    /// The containers of a file.
    Units(FileUnits),
    /// A library whose code is in kernel packs.
    Split(Arc<Host>),
    /// A library in a container image, whose code is in kernel packs that are not looked for.
    Elsewhere,
}

/// Faults of an installed distribution that keep its code from being read as a whole.
#[derive(Debug, Default)]
pub struct InstalledFaults {
    /// Faults of its description and of the list of its files, with paths.
    pub tree: Vec<String>,
    /// Complaints about files that could not be read, or not as a whole.
    pub files: Vec<Complaint>,
    /// `true` if files that may hold device code were not read.
    pub is_partial: bool,
}

/// The files of an installed distribution that may have device code.
#[derive(Debug, Default)]
pub struct InstalledFiles {
    /// The files with their paths below `site-packages`.
    pub files: Vec<(Input, String)>,
    /// Faults of its description and of the list of its files, with paths.
    pub faults: Vec<String>,
    /// `true` if the list could not be read.
    pub is_partial: bool,
}

impl InstalledFiles {
    /// Finds the files of a distribution.
    pub fn of(distribution: &Distribution) -> Self {
        let tree = distribution.tree();
        let texts =
            |faults: &[TreeFault]| faults.iter().map(|fault| tree.text(fault)).collect::<Vec<_>>();
        let mut faults = texts(distribution.faults());
        let files = match distribution.files(is_named_for_code) {
            Ok(files) => files,
            Err(fault) => {
                faults.push(tree.text(&fault));
                return InstalledFiles { files: Vec::new(), faults, is_partial: true };
            }
        };
        faults.extend(texts(&files.faults));
        let named = |path: &Vec<u8>| {
            let (file, path) = (tree.input(path), input::path(path));
            let name = path.to_string_lossy();
            let name = name.rsplit_once("site-packages/").map_or(&*name, |(_, name)| name);
            (file, name.to_owned())
        };
        let files = files.paths.iter().map(named).collect();
        InstalledFiles { files, faults, is_partial: false }
    }
}

impl InstalledCode {
    /// Returns whether a part of the file was not read.
    fn is_partial(&self) -> bool {
        matches!(self, InstalledCode::Units(read) if read.is_partial)
    }

    /// Reads the device code of a file, and complains of errors. With `check`, compressed code is read as well.
    pub fn read(file: &Input, how: (bool, &Limits)) -> (Option<Self>, Vec<Complaint>) {
        if let Some(host) = file.split_host() {
            return (Some(InstalledCode::Split(host)), Vec::new());
        }
        let (read, mut complaints) = FileUnits::read(file, how, Threads::one());
        complaints.retain(|one| one.severity == Severity::Error);
        if read.as_ref().is_some_and(|read| !read.is_damaged()) {
            complaints.clear();
        }
        (read.map(InstalledCode::Units), complaints)
    }
}

/// Reads the device code of all files of a distribution, one by one, and hands it over with the file and its path below
/// `site-packages`. With `check`, compressed code is read as well.
pub fn read_installed(
    distribution: &Distribution,
    how: (bool, &Limits),
    mut take: impl FnMut(&Input, &str, InstalledCode),
) -> InstalledFaults {
    let InstalledFiles { files, faults, is_partial } = InstalledFiles::of(distribution);
    let mut faults = InstalledFaults { tree: faults, is_partial, ..InstalledFaults::default() };
    for (file, name) in files {
        let (code, complaints) = InstalledCode::read(&file, how);
        faults.files.extend(complaints);
        faults.is_partial |= code.as_ref().is_none_or(InstalledCode::is_partial);
        if let Some(code) = code {
            take(&file, &name, code);
        }
    }
    faults
}

/// The judgement of a distribution that was installed from a variant: whether an installer would choose it for GPUs, and whether
/// its declaration agrees with its code.
#[derive(Debug)]
pub struct InstalledVariant {
    declared: VariantDeclaration,
    set: VariantSet,
    code: VariantCode,
    found: Vec<Violation>,
}

impl InstalledVariant {
    /// Reads and judges the declaration; `None` if the distribution was not installed from a variant.
    pub fn of(distribution: &Distribution, gpus: &[Device]) -> Option<Self> {
        let (json, fault) = match distribution.variant_json() {
            Ok(json) => (json?, None),
            Err(fault) => (Vec::new(), Some(distribution.tree().text(&fault))),
        };
        Some(Self::new(distribution.name(), (&json, fault), gpus))
    }

    /// Reads and judges the declaration of a variant that is installed in a container image.
    pub fn of_image(ImageVariant { name, json, fault }: &ImageVariant, gpus: &[Device]) -> Self {
        Self::new(name, (json, fault.clone()), gpus)
    }

    fn new(name: &str, (json, fault): (&[u8], Option<String>), gpus: &[Device]) -> Self {
        let declared = VariantDeclaration::of_installed(name, json);
        let mut set = VariantSet::default();
        let found = match fault {
            Some(text) => vec![Violation::error("file/error", name, text)],
            None => {
                let others = gpus.iter().filter_map(|gpu| declared.other_gpu(gpu));
                others.chain(set.add(&declared)).collect()
            }
        };
        // The GPUs of Jetson modules are asked about where they are declared.
        let code = VariantCode::new(name, false);
        InstalledVariant { declared, set, code, found }
    }

    /// Returns whether it is compared with code.
    pub fn is_judged(&self) -> bool {
        self.declared.is_judged()
    }

    /// Returns whether it must be compared with the contents of code, not only with its headers.
    pub fn needs_contents(&self) -> bool {
        self.declared.needs_contents()
    }

    /// Returns what is wrong with the declaration alone.
    pub fn into_found(self) -> Vec<Violation> {
        self.found
    }

    /// Adds the code of a file.
    pub fn add(&mut self, path: &str, code: InstalledCode) {
        match code {
            InstalledCode::Units(read) => self.code.add(path, read.units),
            InstalledCode::Elsewhere => self.code.set_elsewhere(),
            InstalledCode::Split(host) => {
                let values = self.declared.values().filter(|value| value.namespace() == "amd");
                let answers = values.flat_map(|value| value.devices(true)).map(|gpu| {
                    let answer = host.answer(&gpu);
                    let words = answer.words(|path| input::display(path));
                    (gpu, answer.is_served(), words)
                });
                self.code.add_split(path, answers);
            }
        }
    }

    /// Compares the declaration with all code that was added; returns all that is wrong.
    pub fn judge(mut self) -> Vec<Violation> {
        if self.is_judged() {
            self.found.extend(self.set.judge(&self.declared, &self.code));
        }
        self.found
    }
}
