//! The subject of a policy: a file, a package or a directory.

use std::collections::BTreeMap;

use device_select::{Need, Rule, Software};
use fat_object::ImageInfo;

use crate::policy::{Policy, Unknown};
use crate::values::{Bytes, DeviceCode, Percent};

/// Level of a [`Violation`].
///
/// Exhaustive: a violation fails, or it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It does not fail.
    Warning,
    /// It fails.
    Error,
}

/// Something that a policy does not permit, or a declaration that its code does not justify.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The code: `targets/unwanted`.
    pub code: &'static str,
    /// The level.
    pub level: Level,
    /// The file or package.
    pub file: String,
    /// One sentence.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
}

impl Violation {
    /// Creates an error.
    #[must_use]
    pub fn error(code: &'static str, file: &str, message: String) -> Self {
        Violation { code, level: Level::Error, file: file.to_owned(), message, help: None }
    }

    #[cfg(feature = "variants")]
    pub(crate) fn with_level(self, level: Level) -> Self {
        Violation { level, ..self }
    }

    fn with_help(self, help: &str) -> Self {
        Violation { help: Some(help.to_owned()), ..self }
    }
}

/// The number and the bytes of images.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    images: u64,
    stored: u64,
}

/// A file, a package or a directory that a policy judges.
#[derive(Debug)]
pub struct Subject<'p> {
    policy: &'p Policy,
    only: Rule,
    name: String,
    size: u64,
    code: DeviceCode,
    /// Device code by its target.
    targets: BTreeMap<String, u64>,
    /// Images that none of the GPUs of `only` loads, by file and target.
    unwanted: BTreeMap<(String, String), Sum>,
    /// Needs that are too new, with a file of each, and the number of images.
    needs: BTreeMap<Need, (String, u64)>,
    violations: Vec<Violation>,
}

impl<'p> Subject<'p> {
    /// Creates the subject of this name.
    #[must_use]
    pub fn new(policy: &'p Policy, name: &str) -> Self {
        Subject {
            policy,
            only: Rule::keep(policy.targets.only.iter().cloned()),
            name: name.to_owned(),
            size: 0,
            code: DeviceCode::default(),
            targets: BTreeMap::new(),
            unwanted: BTreeMap::new(),
            needs: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// Adds a file of this size. Members of a package add nothing: the package is one file.
    pub fn add_file(&mut self, size: u64) {
        // Sparse files may have any size.
        self.size = self.size.saturating_add(size);
    }

    /// Adds a file whose format is not understood.
    pub fn add_unknown(&mut self, file: &str, why: &str) {
        let level = match self.policy.files.unknown {
            Unknown::Error => Level::Error,
            Unknown::Warning => Level::Warning,
            Unknown::Allow => return,
        };
        let violation = Violation::error("file/unknown", file, why.to_owned());
        self.violations.push(Violation { level, ..violation });
    }

    /// Adds an image of a file. Images for the host do not count.
    pub fn add_image(&mut self, file: &str, image: &ImageInfo) {
        if !image.is_counted() || image.target().is_host() {
            return;
        }
        let stored = image.stored_estimate();
        let is_estimate = image.stored_size().is_none();
        self.code = self.code.with(DeviceCode { bytes: stored, is_estimate });
        let target = image.total_name();
        let sum = self.targets.entry(target.clone()).or_default();
        *sum = sum.saturating_add(stored);
        let only = &self.policy.targets.only;
        if !only.is_empty() && !only.iter().any(|one| self.only.means(one, image)) {
            let sum = self.unwanted.entry((file.to_owned(), target)).or_default();
            sum.images += 1;
            sum.stored = sum.stored.saturating_add(stored);
        }
        for need in device_select::needs(image) {
            let installed = match need.software() {
                Software::Driver => self.policy.needs.driver,
                Software::Rocm => self.policy.needs.rocm,
            };
            if installed.is_some_and(|installed| need.since() > installed) {
                self.needs.entry(need).or_insert_with(|| (file.to_owned(), 0)).1 += 1;
            }
        }
    }

    /// Returns the bytes of device code, as stored.
    #[must_use]
    pub fn device_code(&self) -> DeviceCode {
        self.code
    }

    /// Returns all that the policy does not permit.
    #[must_use]
    pub fn judge(self) -> Vec<Violation> {
        let Subject { policy, name, size, code, targets, needs, .. } = self;
        let mut violations = self.violations;
        for ((file, target), Sum { images, stored }) in self.unwanted {
            let s = if images == 1 { "" } else { "s" };
            let only: Vec<_> = policy.targets.only.iter().map(|one| one.text()).collect();
            let only = only.join(", ");
            let size = Bytes(stored);
            let message =
                format!("{images} image{s} ({size}) for {target}, and only {only} is permitted");
            let help = "`offload thin --keep` removes code for other GPUs";
            violations.push(Violation::error("targets/unwanted", &file, message).with_help(help));
        }
        if let Some(limit) = policy.budget.device_code.filter(|limit| code.bytes > limit.0) {
            let more = Bytes(code.bytes - limit.0);
            let largest = targets.iter().max_by_key(|(_, stored)| **stored);
            let largest = largest.map_or_else(String::new, |(target, stored)| {
                format!("; most is for {target}: {}", Bytes(*stored))
            });
            let message = format!("device code {code}, limit {limit} (+{more}{largest})");
            violations.push(Violation::error("size/budget", &name, message));
        }
        if let Some(limit) = policy.budget.file.filter(|limit| size > limit.0) {
            let message =
                format!("file {}, limit {limit} (+{})", Bytes(size), Bytes(size - limit.0));
            violations.push(Violation::error("size/file", &name, message));
        }
        for (need, (file, images)) in needs {
            let (code, installed) = match need.software() {
                Software::Driver => ("needs/driver", policy.needs.driver),
                Software::Rocm => ("needs/rocm", policy.needs.rocm),
            };
            let Some(installed) = installed else { continue };
            let s = if images == 1 { " needs" } else { "s need" };
            let message = format!("{images} image{s} {need}; limit {installed}");
            violations.push(Violation::error(code, &file, message));
        }
        violations
    }
}

/// Judges the growth of the device code of all subjects together against the base.
#[must_use]
pub fn growth(
    policy: &Policy,
    base: DeviceCode,
    now: impl IntoIterator<Item = DeviceCode>,
) -> Option<Violation> {
    let limit @ Percent(percent) = policy.budget.growth?;
    let now = now.into_iter().fold(DeviceCode::default(), DeviceCode::with);
    let (was, is) = (base.bytes as f64, now.bytes as f64);
    if is <= was * (1.0 + percent / 100.0) {
        return None;
    }
    let by = match base.bytes {
        0 => String::new(),
        _ => format!(" ({:+.1} %)", (is / was - 1.0) * 100.0),
    };
    let message = format!("device code {base} -> {now}{by}, limit +{limit}");
    Some(Violation::error("size/growth", "", message))
}
