//! Files that are judged together, and the answers of all files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::{Alternatives, FileSet, PackSet, Vendor};
use kpack::Toc;
pub use offload_check::VariantAnswer;
use offload_check::VariantAnswers;

use super::{File, Question, Read, SplitAnswer};
use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::split_library::{Host, without_features};
use tool_inputs::variants::OpenWheel;
use tool_kit::input;
use tool_kit::looked::{Partial, Seen};

/// The answers of files, one after the other.
#[derive(Debug)]
pub struct Matcher<'q, R> {
    together: Together<'q>,
    reporter: R,
}

/// Takes answers one by one, in the order of the files.
pub trait Reporter {
    /// Takes what is wrong with a file.
    ///
    /// # Errors
    ///
    /// Errors of printing, here and below.
    fn complain(&mut self, complaints: &[Complaint]) -> io::Result<()>;

    /// Takes the units of a file with their answers.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    fn rows(&mut self, name: &str, file: &File) -> io::Result<()>;

    /// Takes the answers about a file. Where it is judged with others, [`set`](Self::set) gets the verdicts.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    fn file(&mut self, input: &Input, file: &File, is_judged_later: bool) -> io::Result<()>;

    /// Takes the answers about files that are judged together. `is_variant` is `true` for one of several variants of a wheel: it need
    /// not have code for all GPUs.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    fn set(&mut self, set: &FileSet, is_variant: bool) -> io::Result<()>;

    /// Takes the answer about the variants of a wheel.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    fn variants(&mut self, answer: &VariantAnswer<'_>) -> io::Result<()>;

    /// Takes the answers about a library whose device code is in kernel packs.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    fn split_library(
        &mut self,
        input: &Input,
        host: &Host,
        answers: &[SplitAnswer],
    ) -> io::Result<()>;

    /// Takes the answer about such a library for a GPU.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    fn split(&mut self, name: &str, answer: &SplitAnswer) -> io::Result<()>;
}

impl<'q, R: Reporter> Matcher<'q, R> {
    /// Creates the answers of no file, of these to come.
    pub fn new(question: &'q Question<'q>, inputs: &Inputs, reporter: R) -> Self {
        Matcher { together: Together::new(question, inputs), reporter }
    }

    /// Takes what was read of a file.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    pub fn take(&mut self, input: &Input, read: Read) -> io::Result<Seen> {
        let Matcher { together, reporter } = self;
        together.note_images(input);
        let (file, complaints) = match read {
            Read::File(file, complaints) => (file, complaints),
            Read::Split(host, answers) => {
                reporter.split_library(input, &host, &answers)?;
                return Ok(Seen::faults(answers.iter().any(|answer| !answer.is_served())));
            }
            Read::Passed => return Ok(Seen::Nothing),
            // Packs of a library may come later. One without its library answers for itself.
            Read::Member(host) => {
                together.note_code(input);
                for set in input.sets() {
                    let host = set.path.map_or_else(|| Arc::clone(&host), |path| host.at(path));
                    let split = together.split.entry(set.image.to_owned()).or_default();
                    split.add_library(&set.name, &host, false);
                }
                return Ok(Seen::Well);
            }
            Read::OffDisk(host) => {
                together.off_disk.add_library(input.name(), &host, false);
                return Ok(Seen::Well);
            }
            Read::Pack(pack) => {
                let name = pack.input.name();
                reporter.rows(name, &pack.file)?;
                together.note_code(&pack.input);
                for set in pack.input.sets() {
                    let path = set.path.unwrap_or(&pack.path);
                    let split = together.split.entry(set.image.to_owned()).or_default();
                    split.add_pack(path.to_owned(), without_features(path), &set.name, &pack.toc);
                }
                together.packs.push(*pack);
                return Ok(Seen::Well);
            }
        };
        let is_done = |done: &Package| input.package() != Some(&done.name);
        if let Some(done) = together.package.take_if(|done| is_done(done)) {
            together.end_package(done, reporter)?;
        }
        let is_partial = file.as_ref().is_none_or(|file| file.read.is_partial);
        let seen = File::seen(together, input, file.as_ref());
        if is_partial || matches!(seen, Err(Seen::Unread(_))) {
            together.add_unread(input, file.as_ref().is_none_or(File::is_damaged));
        }
        let seen = match seen {
            Ok(seen) => seen,
            Err(seen) => return Ok(seen),
        };
        reporter.complain(&complaints)?;
        if let Some(file) = file {
            if let Some((path, toc)) = &file.pack {
                let plain = without_features(path);
                together.off_disk.add_pack(path.clone(), plain, input.name(), toc);
            }
            let is_taken = together.takes(input, &file);
            reporter.rows(input.name(), &file)?;
            reporter.file(input, &file, is_taken)?;
        }
        Ok(seen)
    }

    /// Ends all; returns whether an answer is one for exit status 1, and who took the answers.
    ///
    /// # Errors
    ///
    /// Errors of printing.
    pub fn end(self) -> io::Result<(bool, R)> {
        let Matcher { together, mut reporter } = self;
        let fails = together.end(&mut reporter)?;
        Ok((fails, reporter))
    }
}

/// The answers of files that are judged together: those of a package, whose members come one after the other, and those in
/// directories that are alternatives.
#[derive(Debug)]
pub(super) struct Together<'q> {
    pub(super) question: &'q Question<'q>,
    several: Alternatives,
    package: Option<Package>,
    alternatives: FileSet,
    /// The split libraries and the kernel packs in packages, by the name of a container image; with no name those in none.
    split: BTreeMap<String, PackSet<Host>>,
    packs: Vec<PackFile>,
    /// The split libraries and the kernel packs on servers, and of programs, that arguments name.
    off_disk: PackSet<Host>,
    /// The marks of all inputs: packs may lie in any.
    partial: Vec<Partial>,
    variants: VariantAnswers,
    /// The container images of inputs with several, and whether they have device code.
    images: BTreeMap<String, bool>,
    fails: bool,
}

/// A package whose members come.
#[derive(Debug)]
struct Package {
    name: String,
    /// One set of files, or one for each container image.
    sets: Vec<FileSet>,
    /// The mark that a part of it was not read.
    partial: Partial,
}

impl Package {
    fn new(input: &Input, name: &str) -> Self {
        Package { name: name.to_owned(), sets: Vec::new(), partial: input.partial().clone() }
    }

    /// Returns the set of a container image, or of the package; a new one if there is none.
    fn set(&mut self, name: &str, new: impl FnOnce() -> FileSet) -> Option<&mut FileSet> {
        if !self.sets.iter().any(|set| set.name() == name) {
            self.sets.push(new());
        }
        self.sets.iter_mut().find(|set| set.name() == name)
    }

    /// Returns the files, when all that was not read is known.
    fn end(mut self) -> Vec<FileSet> {
        if self.partial.is_set() {
            for set in &mut self.sets {
                let name = set.name().to_owned();
                if self.partial.has_failed() {
                    set.add_failed(&name);
                } else {
                    set.add_unread(&name);
                }
            }
        }
        self.sets
    }
}

/// A kernel pack in a package.
#[derive(Debug)]
pub struct PackFile {
    pub(super) input: Input,
    pub(super) file: File,
    pub(super) toc: Arc<Toc>,
    /// The path where it is installed.
    pub(super) path: PathBuf,
}

impl<'q> Together<'q> {
    fn new(question: &'q Question<'q>, inputs: &Inputs) -> Self {
        let found = inputs.files().iter().filter(|file| !file.is_named());
        let several = Alternatives::of(found.map(Input::name));
        let alternatives = FileSet::new(question.gpus.clone());
        let (split, packs, off_disk) = (BTreeMap::new(), Vec::new(), PackSet::default());
        let names = inputs.files().iter().map(Input::name);
        let mut variants = VariantAnswers::of(names, &question.gpus);
        for file in
            inputs.files().iter().filter(|file| variants.has(file.name())).collect::<Vec<_>>()
        {
            // The work itself complains of files that cannot be read.
            if let Ok(open) = OpenWheel::open(file.path(), question.limits) {
                variants.declare(file.name(), &open.wheel.declared);
            }
        }
        let (package, images, fails) = (None, BTreeMap::new(), false);
        let partial = inputs.files().iter().map(|file| file.partial().clone()).collect();
        Together {
            question,
            several,
            package,
            alternatives,
            split,
            packs,
            off_disk,
            partial,
            variants,
            images,
            fails,
        }
    }

    /// Notes the images of a container archive or layout with several of them.
    fn note_images(&mut self, input: &Input) {
        let images = input.images();
        if images.len() > 1 && !images.last().is_some_and(|it| self.images.contains_key(&**it)) {
            self.images.extend(images.iter().map(|it| (it.to_string(), false)));
        }
    }

    /// Notes that the images of a file have device code.
    fn note_code(&mut self, input: &Input) {
        for place in input.places() {
            self.images.entry(place.image.to_string()).and_modify(|has_code| *has_code = true);
        }
    }

    /// Returns whether a file is judged with others: as a member of a package, or as one of several alternatives in a directory.
    pub(super) fn is_about(&self, input: &Input) -> bool {
        input.package().is_some() || !input.is_named() && self.several.has(input.name())
    }

    /// Ends a package.
    fn end_package(&mut self, package: Package, reporter: &mut impl Reporter) -> io::Result<()> {
        for set in package.end() {
            let is_variant = self.variants.take(&set);
            self.fails |= !is_variant && self.question.fails(set.worst());
            reporter.set(&set, is_variant)?;
        }
        Ok(())
    }

    /// Adds a file that was not read as a whole, perhaps because that failed, for the answers about others.
    fn add_unread(&mut self, input: &Input, has_failed: bool) {
        match (input.package(), has_failed) {
            (Some(_), true) => input.partial().fail(),
            (Some(_), false) => input.partial().set(),
            (None, _) if !self.is_about(input) => {}
            (None, true) => self.alternatives.add_failed(input.name()),
            (None, false) => self.alternatives.add_unread(input.name()),
        }
    }

    /// Returns whether a file is one of these, and adds it.
    fn takes(&mut self, input: &Input, file: &File) -> bool {
        if !self.is_about(input) {
            return false;
        }
        if !file.read.units.is_empty() {
            self.note_code(input);
        }
        let Together { question, package, alternatives, .. } = self;
        let new = |name| FileSet::new(question.gpus.clone()).with_package(name);
        let Some(name) = input.package() else {
            file.add_to(alternatives, input.name(), question, input);
            return true;
        };
        let package = package.get_or_insert_with(|| Package::new(input, name));
        for set in input.sets() {
            let image = if set.image.is_empty() { name } else { set.image };
            if let Some(files) = package.set(image, || new(image)) {
                file.add_to(files, &set.name, question, input);
            }
        }
        true
    }

    /// Ends all; returns whether an answer is one for exit status 1.
    fn end(mut self, reporter: &mut impl Reporter) -> io::Result<bool> {
        if let Some(done) = self.package.take() {
            self.end_package(done, reporter)?;
        }
        let is_partial = self.partial.iter().any(Partial::is_set);
        let words = if is_partial { "no device code in what was read" } else { "no device code" };
        let bare = self.images.iter().filter(|(_, has_code)| !**has_code);
        let bare = bare.map(|(image, _)| Complaint::nothing(image, words));
        reporter.complain(&bare.collect::<Vec<_>>())?;
        let mut fails = self.fails | self.question.fails(self.alternatives.worst());
        reporter.set(&self.alternatives, false)?;
        for answer in self.variants.all() {
            fails |= self.question.fails(answer.support);
            reporter.variants(&answer)?;
        }
        for gpu in self.question.gpus.iter().filter(|gpu| gpu.vendor() == Vendor::Amd) {
            for (name, answer) in self.split.values().flat_map(|split| split.answers(gpu)) {
                let answer = answer.with_unread(is_partial);
                fails |= !answer.is_served();
                reporter.split(name, &answer)?;
            }
        }
        for gpu in &self.question.gpus {
            for (name, mut answer) in self.off_disk.answers(gpu) {
                if gpu.vendor() == Vendor::Amd {
                    answer = answer.with_unsought();
                }
                fails |= !answer.is_served();
                reporter.split(name, &answer)?;
            }
        }
        // Packs without their libraries answer for themselves: packs of a package together, and packs that are
        // installed for one library.
        let mut alone: Vec<(&Path, Package)> = Vec::new();
        for (pack, set) in self.packs.iter().flat_map(|pack| {
            let sets = pack.input.sets().into_iter();
            sets.map(move |set| (pack, set))
        }) {
            let split = self.split.get(set.image);
            if split.is_some_and(|split| split.has_library_of(&pack.toc)) {
                continue;
            }
            // A pack that lies in no package has no name of one.
            let is_in_image = !set.image.is_empty();
            let package = pack.input.package().unwrap_or_default();
            let name = if is_in_image { set.image } else { package };
            let path = pack.path.as_path();
            let directory = path.parent().unwrap_or(path);
            let is_known = |(at, package): &(&Path, Package)| {
                package.name == name || !is_in_image && *at == directory
            };
            let known = alone.iter().position(is_known).unwrap_or_else(|| {
                let set = FileSet::new(self.question.gpus.clone()).with_package(name);
                let sets = vec![set];
                alone.push((directory, Package { sets, ..Package::new(&pack.input, name) }));
                alone.len() - 1
            });
            let path = set.path.unwrap_or(path);
            if let Some((_, package)) = alone.get_mut(known)
                && let Some(one) = package.sets.first_mut()
            {
                pack.file.add_to(one, &input::display(path), self.question, &pack.input);
            }
        }
        for set in alone.into_iter().flat_map(|(_, package)| package.end()) {
            fails |= self.question.fails(set.worst());
            reporter.set(&set, false)?;
        }
        Ok(fails)
    }
}
