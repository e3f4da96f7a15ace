//! The answers about files that belong together, in words.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::device::Device;
use crate::few::{each_once, few};
use crate::set::{FileSet, Question, QuestionKind};
use crate::support::{Support, of_part};
use crate::vendor::Vendor;
use crate::words::{Conclusion, Tone};

impl FileSet {
    /// Returns the answer for a device in words, by its number; `None` if there is nothing for its vendor.
    ///
    /// ```
    /// use device_select::{Device, FileSet, select, units};
    ///
    /// let gpu = Device::parse("gfx906")?;
    /// let mut set = FileSet::new([gpu.clone()]);
    /// for file in ["hip.o", "kernels.hipfb"] {
    ///     let path = format!("../../examples/data/{file}");
    ///     let units = units(std::fs::File::open(path).unwrap()).unwrap();
    ///     set.add(file, &units, [(0, &select(&units, &gpu))]);
    /// }
    /// let text = set.conclusion(0).unwrap().text;
    /// assert_eq!(text, "lacks code for gfx906 in 1 of 2 files: kernels.hipfb: built for gfx1030, gfx90a");
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn conclusion(&self, device: usize) -> Option<Conclusion> {
        let support = self.support_of_read(device)?;
        let name = &self.devices().get(device)?.name();
        let questions: Vec<&Question> = self.questions().iter().collect();
        let asked = About { gpu: device, name, questions: about(&questions, device, |_| true) };
        let conclusion = Conclusion::new(asked.tone(support), asked.words(support));
        let is_whole = self.support(device) == Some(support) && !self.has_failed();
        Some(if is_whole { conclusion } else { conclusion.of_part() })
    }

    /// Returns the answers for all devices, with what they are about: the package, or each question about files of several
    /// packages.
    #[must_use]
    pub fn answers(&self) -> Vec<SetAnswer<'_>> {
        let devices = || self.devices().iter().enumerate();
        if !self.name().is_empty() {
            let of = |(n, gpu)| {
                let (support, conclusion) = self.support(n).zip(self.conclusion(n))?;
                Some(SetAnswer { name: self.name(), gpu, support, conclusion })
            };
            return devices().filter_map(of).collect();
        }
        let all = self.questions().iter().flat_map(|question| {
            devices().filter_map(move |(n, gpu)| {
                let (support, conclusion) =
                    self.support_in(question, n).zip(question.conclusion(n, &gpu.name()))?;
                let is_whole =
                    question.support(n) == Some(support) && !self.has_failed_in(question);
                let conclusion = if is_whole { conclusion } else { conclusion.of_part() };
                Some(SetAnswer { name: question.name(), gpu, support, conclusion })
            })
        });
        all.collect()
    }

    /// Returns the verdict about the package for a device, by its number.
    #[must_use]
    pub fn verdict(&self, device: usize) -> Verdict {
        let files = || self.questions().iter().map(|question| question.files(device));
        let serving = files().map(|(_, serving)| serving).sum();
        let files = files().map(|(files, _)| files).sum();
        let Some(gpu) = self.devices().get(device) else { return Verdict::default() };
        let (name, vendor) = (gpu.name(), gpu.vendor());
        let (kind, why) = match self.support(device).zip(self.conclusion(device)) {
            _ if !self.has_code && self.is_partial() => {
                (VerdictKind::Unknown, of_part("has no device code"))
            }
            _ if !self.has_code => (VerdictKind::NoDeviceCode, "no device code".to_owned()),
            None => {
                let why = if self.vendors.contains(vendor.as_str()) {
                    "has kernel packs for other GPUs only".to_owned()
                } else {
                    let vendors = Vec::from_iter(self.vendors.iter().copied()).join(", ");
                    let vendor = vendor.as_str();
                    format!(
                        "has code for GPUs of {vendors} only; install its build for {vendor}, if it is to use {name}"
                    )
                };
                if self.is_partial() {
                    (VerdictKind::Unknown, of_part(&why))
                } else {
                    (VerdictKind::OtherVendors, why)
                }
            }
            Some((Support::Yes, _)) => {
                let s = if files == 1 { "" } else { "s" };
                let why = if files == serving {
                    format!("has code for {name} in {files} file{s}")
                } else {
                    // Other questions have no such files here.
                    let databases = self.questions().iter().filter(|question| {
                        let (files, serving) = question.files(device);
                        serving < files
                    });
                    let databases = few(databases.map(Question::name));
                    format!(
                        "has code for {name} in {serving} of {files} files; each file of {databases} is for one GPU"
                    )
                };
                (VerdictKind::Serves, if self.has_failed() { of_part(&why) } else { why })
            }
            Some((Support::Partly, words)) => (VerdictKind::Partly, words.text),
            Some((Support::Unknown, words)) if self.is_partial() => {
                (VerdictKind::Unknown, words.text)
            }
            Some((Support::Unknown | Support::No, words)) => {
                let advice = match vendor {
                    Vendor::Amd => ", or one with generic code",
                    Vendor::Nvidia => ", or one with PTX",
                    Vendor::Intel => ", or one with SPIR-V",
                };
                // More can be said about a single file.
                let why = self.why.get(device).cloned().flatten();
                let why = why.filter(|_| self.questions().len() == 1).unwrap_or(words.text);
                (VerdictKind::DoesNotServe, format!("{why}; install a build for it{advice}"))
            }
        };
        Verdict { kind, why, files, serving }
    }
}

/// Answer about files that belong together, for a device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetAnswer<'s> {
    /// The package, or the question about files of several packages.
    pub name: &'s str,
    /// The device.
    pub gpu: &'s Device,
    /// The answer.
    pub support: Support,
    /// The answer in words.
    pub conclusion: Conclusion,
}

/// Verdict about a package for a device.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// The answer.
    pub kind: VerdictKind,
    /// The reason, and what helps, in words.
    pub why: String,
    /// The number of files with code for devices of this vendor.
    pub files: usize,
    /// The number of files with code for the device.
    pub serving: usize,
}

/// Kind of a [`Verdict`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerdictKind {
    /// The package has code for the device.
    Serves,
    /// Some of the code is for the device.
    Partly,
    /// The package lacks code for the device.
    DoesNotServe,
    /// Something that may hold code was not read, and the rest lacks code for the device.
    Unknown,
    /// All code is for devices of other vendors.
    OtherVendors,
    /// The package has no device code.
    #[default]
    NoDeviceCode,
}

impl VerdictKind {
    /// Returns the name used in machine-readable output: `does-not-serve`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            VerdictKind::Serves => "serves",
            VerdictKind::Partly => "partly",
            VerdictKind::DoesNotServe => "does-not-serve",
            VerdictKind::Unknown => "unknown",
            VerdictKind::OtherVendors => "other-vendors",
            VerdictKind::NoDeviceCode => "no-device-code",
        }
    }
}

impl Question {
    /// Returns the answer for a device in words, by its number, with its name; `None` if there is nothing for its vendor. The name
    /// of the question is said before.
    #[must_use]
    pub fn conclusion(&self, device: usize, name: &str) -> Option<Conclusion> {
        let support = self.support(device)?;
        let asked = About { gpu: device, name, questions: [self].into() };
        Some(Conclusion::new(asked.tone(support), asked.alone(self, support)))
    }
}

/// The questions about a GPU.
struct About<'a> {
    gpu: usize,
    name: &'a str,
    questions: Vec<&'a Question>,
}

/// Returns the questions with such an answer for a GPU.
fn about<'q>(
    questions: &[&'q Question],
    gpu: usize,
    is: impl Fn(Support) -> bool,
) -> Vec<&'q Question> {
    let has_one = |question: &&&Question| question.support(gpu).is_some_and(&is);
    questions.iter().filter(has_one).copied().collect()
}

impl About<'_> {
    fn tone(&self, support: Support) -> Tone {
        match support {
            Support::Yes if !self.questions.iter().any(|one| one.is_conditional(self.gpu)) => {
                Tone::Good
            }
            Support::Yes | Support::Partly => Tone::Mixed,
            Support::Unknown | Support::No => Tone::Bad,
        }
    }

    fn words(&self, support: Support) -> String {
        let name = self.name;
        match support {
            Support::Yes => {
                let conditional =
                    self.questions.iter().filter(|one| one.is_conditional(self.gpu)).count();
                let condition = match conditional {
                    0 => String::new(),
                    _ if self.questions.len() == 1 => ", on a condition".to_owned(),
                    n => format!(", on a condition in {}", self.count(n)),
                };
                format!("has code for {name} in {}{condition}", self.count(self.questions.len()))
            }
            Support::Partly => self.partly(),
            Support::Unknown | Support::No => self.lacks(),
        }
    }

    /// Returns what is said of a database or of builds, whose name is said before.
    fn alone(&self, question: &Question, support: Support) -> String {
        let name = self.name;
        let (files, serving) = question.files(self.gpu);
        let built_for = if support >= Support::Unknown {
            built_for(&[question], self.gpu)
        } else {
            String::new()
        };
        match (support, question.kind()) {
            (Support::Yes, _) => format!("has code for {name} in {}", some_of(serving, files)),
            (Support::Partly, QuestionKind::Builds) => format!("partly: {}", self.builds(question)),
            (Support::Partly, _) => {
                format!("partly: code for {name} in {} containers", self.share(question))
            }
            _ => format!("lacks code for {name} in {}{built_for}", some_of(files, files)),
        }
    }

    fn partly(&self) -> String {
        let name = self.name;
        let partly = about(&self.questions, self.gpu, |support| support == Support::Partly);
        let (builds, files): (Vec<&Question>, Vec<&Question>) =
            partly.into_iter().partition(|one| one.kind() == QuestionKind::Builds);
        let builds = builds.iter().map(|one| format!("{}: {}", one.name(), self.builds(one)));
        let mut words: Vec<String> = builds.collect();
        let shares = files.iter().map(|file| format!("{} ({})", file.name(), self.share(file)));
        let shares: Vec<String> = shares.collect();
        if !shares.is_empty() {
            words.push(format!("code for {name} in some containers of {}", few(shares)));
        }
        let lacking = about(&self.questions, self.gpu, |support| support >= Support::Unknown);
        if !lacking.is_empty() {
            let names = few(lacking.iter().map(|one| one.name()));
            let which = self.count(lacking.len());
            let built_for = built_for(&lacking, self.gpu);
            words.push(format!("no code for {name} in {which}: {names}{built_for}"));
        }
        format!("partly: {}", words.join("; "))
    }

    /// Returns how many containers have code for the GPU: `177 of 182`.
    fn share(&self, file: &Question) -> String {
        let (all, serving) = file.containers(self.gpu);
        format!("{serving} of {all}")
    }

    /// Returns what is said of builds if only some run on the GPU.
    fn builds(&self, builds: &Question) -> String {
        let (files, serving) = builds.files(self.gpu);
        let name = self.name;
        let have = if serving == 1 { "has" } else { "have" };
        match builds.missing(self.gpu) {
            [] => format!("code for {name} in {} containers of the builds", self.share(builds)),
            missing => {
                // The name of the builds has their directory.
                let missing =
                    missing.iter().map(|name| name.rsplit(['/', ':']).next().unwrap_or(name));
                let missing = few(missing);
                format!("{serving} of {files} builds {have} code for {name}, not {missing}")
            }
        }
    }

    fn lacks(&self) -> String {
        let lacking = about(&self.questions, self.gpu, |support| support >= Support::Unknown);
        let names: Vec<&str> = lacking.iter().map(|question| question.name()).collect();
        let files = if names.len() == self.questions.len() {
            String::new()
        } else {
            format!(": {}", few(&names))
        };
        let built_for = built_for(&lacking, self.gpu);
        format!("lacks code for {} in {}{files}{built_for}", self.name, self.count(lacking.len()))
    }

    /// Returns the number of some of the questions in words: `2 of 3 files`.
    fn count(&self, some: usize) -> String {
        let is_file = |question: &&Question| question.kind() == QuestionKind::File;
        let noun = if self.questions.iter().all(is_file) { "files" } else { "files and databases" };
        match (some, &self.questions[..]) {
            (_, [one]) => one.name().to_owned(),
            (2, [_, _]) => format!("both {noun}"),
            (some, all) if some == all.len() => format!("all {some} {noun}"),
            (some, all) => format!("{some} of {} {noun}", all.len()),
        }
    }
}

/// Returns what code without use for a GPU is for, in words, or what keeps the GPU from it.
fn built_for(lacking: &[&Question], gpu: usize) -> String {
    let obstacles: Option<Vec<_>> = lacking.iter().map(|one| one.obstacle(gpu)).collect();
    if let Some(obstacle) = obstacles.and_then(|all| all.into_iter().max()) {
        return format!(": {obstacle}");
    }
    let labels = each_once(lacking.iter().flat_map(|one| one.built_for(gpu)));
    match &labels[..] {
        [] => String::new(),
        labels => format!(": built for {}", few(labels)),
    }
}

/// Returns a number of files in words.
fn some_of(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "its only file".to_owned(),
        (2, 2) => "both files".to_owned(),
        (some, all) if some == all => format!("all {all} files"),
        (some, all) => format!("{some} of {all} files"),
    }
}
