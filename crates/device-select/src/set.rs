//! Files that belong together: a package, a directory, an environment.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::answer::{Answer, Note, Selection};
use crate::database::Database;
use crate::device::Device;
use crate::needs::Need;
use crate::support::Support;
use crate::unit::Unit;
use crate::vendor::Vendor;

/// Kind of a [`Question`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// A file that is judged alone.
    File,
    /// A database: of its files each is for one GPU, and those for one GPU are enough. Or files whose names differ in the GPU.
    Database,
    /// Builds of one library for several versions of CUDA or ROCm; a program loads one of them.
    Builds,
}

/// A part of a set of files that a device needs: one file, or one of several.
#[derive(Debug)]
pub struct Question {
    kind: QuestionKind,
    name: String,
    /// The path of the only file, if there is only one.
    only: Option<String>,
    answers: Vec<Answers>,
}

/// The answers of the files of a question, for one device.
#[derive(Debug, Default)]
struct Answers {
    /// The number of files with code for GPUs of its vendor, and how many of them run on it.
    files: usize,
    serving: usize,
    best: Option<Support>,
    worst: Option<Support>,
    is_conditional: bool,
    /// `true` if something without code for it is loaded unasked, or is for older devices.
    is_needed: bool,
    /// The number of containers that the device needs code of, and how many have it.
    containers: (usize, usize),
    /// The files without code for it, and what they have code for.
    missing: Vec<String>,
    built_for: Vec<String>,
    seen: HashSet<String>,
    /// The greatest obstacle, and the number of files that have all code and would run without obstacles.
    obstacle: Option<Obstacle>,
    kept_from: usize,
}

/// Something that keeps a device from code that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Obstacle {
    /// The software that is installed is too old.
    Needs(Need),
    /// Nothing that the program registers leads to it.
    Lost,
}

impl Obstacle {
    fn of(answer: &Answer) -> Option<Self> {
        match answer.note {
            Some(Note::Lost) => Some(Obstacle::Lost),
            _ => answer.need().map(Obstacle::Needs),
        }
    }
}

/// `needs driver 550 or later: PTX 8.4`.
impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Needs(need) => write!(f, "needs {need}"),
            Obstacle::Lost => f.write_str("no wrapper leads to it, so that no runtime finds it"),
        }
    }
}

impl Question {
    /// Returns the kind. The only one of files that would be several is a [`File`](QuestionKind::File).
    #[must_use]
    pub fn kind(&self) -> QuestionKind {
        if self.only.is_some() && self.name.contains('*') { QuestionKind::File } else { self.kind }
    }

    /// Returns the path of the file, the directory of the database, or the path that several files share, with a star in the
    /// place of the version or the GPU.
    #[must_use]
    pub fn name(&self) -> &str {
        self.only.as_ref().filter(|_| self.name.contains('*')).unwrap_or(&self.name)
    }

    /// Returns the answer for a device, by its number; `None` if there is nothing for its vendor.
    ///
    /// A database supports a device if some of its files are for it. Several builds support it
    /// [`Partly`](Support::Partly), if some do: it depends on the version that is there.
    #[must_use]
    pub fn support(&self, device: usize) -> Option<Support> {
        let answers = self.answers.get(device)?;
        let (best, worst) = (answers.best?, answers.worst?);
        Some(match self.kind {
            QuestionKind::Database => best,
            QuestionKind::Builds if best < Support::Unknown && worst >= Support::Unknown => {
                Support::Partly
            }
            QuestionKind::File | QuestionKind::Builds => worst,
        })
    }

    /// Returns the number of files with code for the vendor of a device, and how many of them have code for it.
    #[must_use]
    pub fn files(&self, device: usize) -> (usize, usize) {
        self.answers.get(device).map_or((0, 0), |answers| (answers.files, answers.serving))
    }

    /// Returns the number of containers that count for a device, and how many of them have code for it.
    #[must_use]
    pub fn containers(&self, device: usize) -> (usize, usize) {
        self.answers.get(device).map_or((0, 0), |answers| answers.containers)
    }

    /// Returns whether a file runs on the device on a condition only.
    #[must_use]
    pub fn is_conditional(&self, device: usize) -> bool {
        self.answers.get(device).is_some_and(|answers| answers.is_conditional)
    }

    /// Returns the paths of files without code for a device.
    #[must_use]
    pub fn missing(&self, device: usize) -> &[String] {
        self.answers.get(device).map_or(&[], |answers| &answers.missing)
    }

    /// Returns what keeps a device from code, if all that it lacks is there; of a database one file is enough.
    #[must_use]
    pub fn obstacle(&self, device: usize) -> Option<Obstacle> {
        let answers = self.answers.get(device)?;
        let is_all = answers.serving + answers.kept_from >= answers.files;
        answers.obstacle.filter(|_| is_all || self.kind == QuestionKind::Database)
    }

    /// Returns the targets of the code that a device does not load, each once.
    #[must_use]
    pub fn built_for(&self, device: usize) -> &[String] {
        self.answers.get(device).map_or(&[], |answers| &answers.built_for)
    }
}

/// Files that belong together, and what devices need of them.
///
/// ```
/// use device_select::{Device, FileSet, QuestionKind, Support, select, units};
///
/// let gpu = Device::parse("gfx906")?;
/// let mut set = FileSet::new([gpu.clone()]);
/// // Code for gfx1100 and gfx90a, which lies where rocBLAS has its kernels.
/// let units = units(std::fs::File::open("../../examples/data/kernels.hipfb").unwrap()).unwrap();
/// let answer = select(&units, &gpu);
/// set.add("rocblas/library/Kernels.so-000-gfx1100.hsaco", &units, [(0, &answer)]);
/// assert_eq!(set.support(0), Some(Support::No));
/// assert_eq!(set.questions()[0].kind(), QuestionKind::Database);
/// assert_eq!(set.questions()[0].name(), "rocblas/library");
/// # Ok::<(), device_select::NotADevice>(())
/// ```
#[derive(Debug)]
pub struct FileSet {
    name: String,
    devices: Vec<Device>,
    /// The vendors of all device code, by name.
    pub(crate) vendors: BTreeSet<&'static str>,
    pub(crate) has_code: bool,
    /// For each device the first reason why a file has no code for it.
    pub(crate) why: Vec<Option<String>>,
    questions: Vec<Question>,
    /// Their positions.
    by_name: HashMap<String, usize>,
    /// The names of the questions of files that were not read, and whether that failed. In a package one file is enough for all
    /// questions.
    unread: HashMap<String, bool>,
}

impl FileSet {
    /// Returns a set without files, for these devices.
    #[must_use]
    pub fn new(devices: impl IntoIterator<Item = Device>) -> Self {
        let devices: Vec<Device> = devices.into_iter().collect();
        FileSet {
            name: String::new(),
            vendors: BTreeSet::new(),
            has_code: false,
            why: devices.iter().map(|_| None).collect(),
            devices,
            questions: Vec::new(),
            by_name: HashMap::new(),
            unread: HashMap::new(),
        }
    }

    /// Returns the same for the files of a package: `name` and a colon are left out of their paths.
    #[must_use]
    pub fn with_package(self, name: &str) -> Self {
        FileSet { name: name.to_owned(), ..self }
    }

    /// Returns the name of the package; empty for files of several packages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the devices.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the kind of the question that a file belongs to, by its path, and its name.
    ///
    /// ```
    /// use device_select::{FileSet, QuestionKind};
    ///
    /// let name = |path| FileSet::question_of(path);
    /// assert_eq!(name("foo/libfoo_cuda118.so"), (QuestionKind::Builds, "foo/libfoo_cuda*.so".to_owned()));
    /// assert_eq!(name("hipblaslt/library/gfx90a/x.co").1, "hipblaslt/library");
    /// assert_eq!(name("foo/libfoo.so"), (QuestionKind::File, "foo/libfoo.so".to_owned()));
    /// ```
    #[must_use]
    pub fn question_of(path: &str) -> (QuestionKind, String) {
        if let Some(database) = Database::at(path) {
            return (QuestionKind::Database, database.directory().to_owned());
        }
        if let Some(name) = with_star(path, &PROCESSORS) {
            return (QuestionKind::Database, name);
        }
        match with_star(path, &PLATFORMS) {
            Some(name) => (QuestionKind::Builds, name),
            None => (QuestionKind::File, path.to_owned()),
        }
    }

    /// Adds a file with its containers, and the answers for the devices that it is to have code for, by their numbers.
    pub fn add<'s>(
        &mut self,
        path: &str,
        units: &[Unit],
        answers: impl IntoIterator<Item = (usize, &'s Selection)>,
    ) {
        self.has_code |= !units.is_empty();
        self.vendors.extend(units.iter().filter_map(|unit| Some(unit.vendor()?.as_str())));
        for (device, selection) in answers {
            if let Some(answers) = self.answers_of(path, device) {
                answers.add(path, units, selection);
            }
            if selection.is_partial() {
                self.add_unread(path);
            }
            let why = self.why.get_mut(device).zip(self.devices.get(device));
            if let Some((why @ None, device)) = why
                && selection.support() >= Support::Unknown
            {
                let name = path.rsplit('/').next().unwrap_or(path);
                let words = selection.conclusion(units, device).text;
                let hint = selection.hint(units, device);
                *why = Some(match hint {
                    Some(hint) => format!("{name} {words} ({hint})"),
                    None => format!("{name} {words}"),
                });
            }
        }
    }

    /// Adds a file whose device code lies elsewhere, such as in kernel packs of this vendor, with the answers for devices by their
    /// numbers: whether all code is there, and words.
    pub fn add_split(
        &mut self,
        path: &str,
        vendor: Vendor,
        answers: impl IntoIterator<Item = (usize, bool, String)>,
    ) {
        self.has_code = true;
        self.vendors.insert(vendor.as_str());
        for (device, is_served, words) in answers {
            let support = if is_served { Support::Yes } else { Support::No };
            if let Some(answers) = self.answers_of(path, device) {
                answers.is_needed |= !answers.count(path, support);
            }
            if let Some(why @ None) = self.why.get_mut(device)
                && !is_served
            {
                *why = Some(format!("{path} {words}"));
            }
        }
    }

    /// Adds a file that may hold device code and was not read, or not as a whole. No answer that it could change is
    /// [`No`](Support::No) then: in a package about all files, otherwise about those of its [question](Self::question_of).
    ///
    /// ```
    /// use device_select::{Device, FileSet, Support, select, units};
    ///
    /// let gpu = Device::parse("gfx906")?;
    /// let mut set = FileSet::new([gpu.clone()]).with_package("foo.whl");
    /// let units = units(std::fs::File::open("../../examples/data/kernels.hipfb").unwrap()).unwrap();
    /// set.add("foo.whl:foo/kernels.hipfb", &units, [(0, &select(&units, &gpu))]);
    /// set.add_unread("foo.whl:foo/damaged.so");
    /// assert_eq!(set.support(0), Some(Support::Unknown));
    /// let text = set.conclusion(0).unwrap().text;
    /// assert!(text.starts_with("was not read as a whole; what was read lacks code for gfx906 in "), "{text}");
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    pub fn add_unread(&mut self, path: &str) {
        self.unread.entry(Self::question_of(self.path_in(path)).1).or_default();
    }

    /// Adds a file that could not be read, as [`add_unread`](Self::add_unread) does. The words of each answer say so, of
    /// [`Yes`](Support::Yes), too: they count the files that were read.
    pub fn add_failed(&mut self, path: &str) {
        self.unread.insert(Self::question_of(self.path_in(path)).1, true);
    }

    /// Returns whether reading something of the package failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.unread.values().any(|has_failed| *has_failed)
    }

    /// Returns whether reading a file of a question failed.
    pub(crate) fn has_failed_in(&self, question: &Question) -> bool {
        self.unread.get(&question.name).is_some_and(|has_failed| *has_failed)
    }

    /// Returns whether something was not read.
    pub(crate) fn is_partial(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Returns the answer to a question for a device, by its number; `None` if there is nothing for its vendor.
    pub(crate) fn support_in(&self, question: &Question, device: usize) -> Option<Support> {
        let support = question.support(device)?;
        let is_partial = self.unread.contains_key(&question.name);
        Some(if is_partial { support.of_whole() } else { support })
    }

    /// Returns the path of a file without the package.
    fn path_in<'p>(&self, path: &'p str) -> &'p str {
        let member = path.strip_prefix(&*self.name).and_then(|member| member.strip_prefix(':'));
        member.unwrap_or(path)
    }

    /// Returns the answers that those of a file belong to.
    fn answers_of(&mut self, path: &str, device: usize) -> Option<&mut Answers> {
        let path = self.path_in(path);
        let (kind, name) = Self::question_of(path);
        let at = *self.by_name.entry(name).or_insert_with_key(|name| {
            let answers = self.devices.iter().map(|_| Answers::default()).collect();
            let only = Some(path.to_owned());
            self.questions.push(Question { kind, name: name.clone(), only, answers });
            self.questions.len() - 1
        });
        let question = self.questions.get_mut(at)?;
        question.only.take_if(|only| only != path);
        question.answers.get_mut(device)
    }

    /// Returns the questions, in the order of their first files.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Returns the answer for a device, by its number: the worst one of all questions; `None` if there is nothing for its vendor.
    ///
    /// CUDA loads code when it is asked for: where at least half of the files of a package run on the device, and the
    /// others have code for newer devices only, these are for what newer devices can do, and the answer is
    /// [`Partly`](Support::Partly).
    #[must_use]
    pub fn support(&self, device: usize) -> Option<Support> {
        let support = self.support_of_read(device)?;
        Some(if self.is_partial() { support.of_whole() } else { support })
    }

    /// Returns the answer for a device by the files that were read.
    pub(crate) fn support_of_read(&self, device: usize) -> Option<Support> {
        let of = |question: &Question| question.support(device);
        let worst = self.questions.iter().filter_map(of).max()?;
        let is_chosen = |question: &Question| {
            let answers = question.answers.get(device);
            of(question) != Some(Support::No) || answers.is_some_and(|answers| !answers.is_needed)
        };
        let answers = || self.questions.iter().filter_map(of);
        let serving = answers().filter(|support| *support < Support::Unknown).count();
        let are_most = serving > 0 && serving * 2 >= answers().count();
        let is_partly = are_most && worst == Support::No && self.questions.iter().all(is_chosen);
        Some(if is_partly { Support::Partly } else { worst })
    }

    /// Returns the answer for a device, by its number. Files of several packages are not judged together.
    fn support_of(&self, device: usize) -> Option<Support> {
        if self.name.is_empty() {
            self.questions.iter().filter_map(|one| self.support_in(one, device)).max()
        } else {
            self.support(device)
        }
    }

    /// Returns the worst answer for a device.
    #[must_use]
    pub fn worst(&self) -> Support {
        let all = (0..self.devices.len()).filter_map(|device| self.support_of(device));
        all.max().unwrap_or(Support::Yes)
    }

    /// Returns the devices for which the answer is no, and other code would help.
    pub fn lacking(&self) -> impl Iterator<Item = &Device> {
        let is_no = |device: usize| {
            let mut lacking = self
                .questions
                .iter()
                .filter(|one| self.support_in(one, device) == Some(Support::No));
            self.support_of(device) == Some(Support::No)
                && lacking.any(|question| question.obstacle(device).is_none())
        };
        self.devices.iter().enumerate().filter(move |(n, _)| is_no(*n)).map(|(_, device)| device)
    }
}

/// Files, some to be judged together, by their names.
///
/// ```
/// use device_select::Alternatives;
///
/// let files = Alternatives::of(["libfoo_cuda118.so", "libfoo_cuda128.so", "libbar_cuda118.so", "libbaz.so"]);
/// assert!(files.has("libfoo_cuda118.so"));
/// assert!(!files.has("libbar_cuda118.so") && !files.has("libbaz.so"));
/// ```
#[derive(Debug, Default)]
pub struct Alternatives {
    /// The number of files for each question that several files share, by their names.
    counts: HashMap<String, usize>,
}

impl Alternatives {
    /// Takes the names of all files.
    #[must_use]
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut counts = HashMap::new();
        for (kind, name) in names.into_iter().map(FileSet::question_of) {
            if kind != QuestionKind::File {
                *counts.entry(name).or_default() += 1;
            }
        }
        Alternatives { counts }
    }

    /// Returns whether a file is one of several for one [question](FileSet::question_of), or belongs to a database.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match FileSet::question_of(name) {
            (QuestionKind::File, _) => false,
            (_, name) if name.contains('*') => {
                // The only member of a compressed file is judged as that file.
                let name = name.strip_suffix(":contents").unwrap_or(&name);
                self.counts.get(name).is_some_and(|n| *n > 1)
            }
            _ => true,
        }
    }
}

impl Answers {
    /// Adds an answer; returns whether it is that there is code.
    fn count(&mut self, path: &str, support: Support) -> bool {
        self.files += 1;
        self.best = self.best.min(Some(support)).or(Some(support));
        self.worst = self.worst.max(Some(support));
        let serves = support < Support::Unknown;
        if serves {
            self.serving += 1;
        } else {
            self.missing.push(path.to_owned());
        }
        serves
    }

    fn add(&mut self, path: &str, units: &[Unit], selection: &Selection) {
        for answer in selection.answers().iter().filter(|answer| answer.counts()) {
            self.containers.0 += 1;
            self.containers.1 += usize::from(!answer.lacks_code());
        }
        if self.count(path, selection.of_read()) {
            let is_conditional = |answer: &Answer| answer.given.condition().is_some();
            self.is_conditional |= selection.answers().iter().any(is_conditional);
            return;
        }
        let lacking = units.iter().zip(selection.answers());
        let lacking: Vec<_> = lacking.filter(|(_, answer)| answer.lacks_code()).collect();
        let obstacles: Option<Vec<_>> =
            lacking.iter().map(|(_, answer)| Obstacle::of(answer)).collect();
        if let Some(obstacle) = obstacles.and_then(|all| all.into_iter().max()) {
            self.kept_from += 1;
            self.obstacle = self.obstacle.max(Some(obstacle));
        }
        self.is_needed |= !lacking.iter().all(|(_, answer)| answer.is_optional);
        for label in lacking.into_iter().flat_map(|(unit, _)| unit.built_for()) {
            if self.seen.insert(label.clone().into_owned()) {
                self.built_for.push(label.into_owned());
            }
        }
    }
}

/// Names of platforms before a version, and of processors before a number.
const PLATFORMS: [&str; 4] = ["cuda", "cu", "rocm", "hip"];
const PROCESSORS: [&str; 3] = ["sm_", "sm", "gfx"];

/// Returns the path of a build for a version of CUDA or ROCm, or for a GPU, with stars in the place of versions or numbers:
/// `libfoo_cuda118.so`, `cu118/libfoo.so`.
fn with_star(path: &str, names: &[&str]) -> Option<String> {
    let mut stars = String::new();
    let mut copied = 0;
    for (at, _) in path.char_indices() {
        let before = path.get(..at)?.chars().next_back();
        if at < copied || before.is_some_and(char::is_alphanumeric) {
            continue;
        }
        if let Some((name, len)) = numbered(path.get(at..)?, names) {
            stars.push_str(path.get(copied..at)?);
            stars.push_str(name);
            stars.push('*');
            copied = at + len;
            copied += without(path.get(copied..)?);
        }
    }
    stars.push_str(path.get(copied..)?);
    (copied > 0).then_some(stars)
}

/// Returns the length of the words that a text starts with which say that a build does without something: `_nocublaslt`.
fn without(text: &str) -> usize {
    let Some(word) = text.strip_prefix("_no") else { return 0 };
    let len = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    if len == 0 { 0 } else { text.len() - word.len() + len }
}

/// Returns which of these names a text starts with, if a number follows and ends the word; and the length of both.
fn numbered<'n>(text: &str, names: &[&'n str]) -> Option<(&'n str, usize)> {
    names.iter().find_map(|name| {
        let number = text.strip_prefix(*name)?;
        let is_digit = |c: &u8| match *name {
            "gfx" => c.is_ascii_hexdigit(),
            _ => c.is_ascii_digit() || *c == b'.',
        };
        let digits = number.bytes().take_while(is_digit).count();
        let digits = number.get(..digits)?.trim_end_matches('.');
        let after = number.get(digits.len()..)?;
        // `sm_90a` is a processor, too.
        let after = if name.starts_with("sm") {
            after.strip_prefix(['a', 'f']).unwrap_or(after)
        } else {
            after
        };
        let is_one = digits.starts_with(|c: char| c.is_ascii_digit())
            && !after.starts_with(char::is_alphanumeric);
        is_one.then_some((*name, text.len() - after.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_for_several_versions_or_gpus_are_one() {
        for (path, expected) in [
            ("a/libbitsandbytes_cuda118.so", Some("a/libbitsandbytes_cuda*.so")),
            ("a.whl:b/libfoo_cuda132_nocublaslt.so", Some("a.whl:b/libfoo_cuda*.so")),
            ("libfoo-cu12.4.so", Some("libfoo-cu*.so")),
            ("cuda12.dll", Some("cuda*.dll")),
            ("libfoo_rocm63.so", Some("libfoo_rocm*.so")),
            ("cuda12/libfoo.so", Some("cuda*/libfoo.so")),
            ("lib/libcudart.so.12", None),
            ("lib/libcuda.so.1", None),
            ("libcu12x.so", None),
            ("xcuda12.so", None),
            ("libfoo_cuda.so", None),
        ] {
            assert_eq!(with_star(path, &PLATFORMS).as_deref(), expected, "{path}");
        }
        for (path, expected) in [
            (
                "libnvinfer_builder_resource_sm86.so.10",
                Some("libnvinfer_builder_resource_sm*.so.10"),
            ),
            ("kernels/gemm_sm_90a.cubin", Some("kernels/gemm_sm_*.cubin")),
            ("images/kernel_gfx90a.hsaco", Some("images/kernel_gfx*.hsaco")),
            ("gfx1100/a.co", Some("gfx*/a.co")),
            ("gfx1100/a_gfx1100.co", Some("gfx*/a_gfx*.co")),
            ("k_gfx1100.o.zst:contents", Some("k_gfx*.o.zst:contents")),
            ("libfoo.so", None),
            ("charm86.so", None),
            ("sm_abc.so", None),
        ] {
            assert_eq!(with_star(path, &PROCESSORS).as_deref(), expected, "{path}");
        }
    }
}
