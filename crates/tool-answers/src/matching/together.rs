//! Files that are judged together, and the answers of all files.

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
        let (file, complaints) = match read {
            Read::File(file, complaints) => (file, complaints),
            Read::Split(host, answers) => {
                reporter.split_library(input, &host, &answers)?;
                return Ok(Seen::faults(answers.iter().any(|answer| !answer.is_served())));
            }
            Read::Passed => return Ok(Seen::Nothing),
            // Packs of a library may come later. One without its library answers for itself.
            Read::Member(host) => {
                together.split.add_library(input.name(), &host, false);
                return Ok(Seen::Well);
            }
            Read::Online(host) => {
                together.online.add_library(input.name(), &host, false);
                return Ok(Seen::Well);
            }
            Read::Pack(pack) => {
                let name = pack.input.name();
                reporter.rows(name, &pack.file)?;
                let plain = without_features(&pack.path);
                together.split.add_pack(pack.path.clone(), plain, name, &pack.toc);
                together.packs.push(*pack);
                return Ok(Seen::Well);
            }
        };
        let is_done = |done: &Package| input.package() != Some(done.set.name());
        if let Some(done) = together.package.take_if(|done| is_done(done)) {
            together.end_package(done, reporter)?;
        }
        let is_partial = file.as_ref().is_none_or(|file| file.read.is_partial);
        let seen = File::seen(together, input, file.as_ref());
        if is_partial || matches!(seen, Err(Seen::Unread(_))) {
            together.add_unread(input);
        }
        let seen = match seen {
            Ok(seen) => seen,
            Err(seen) => return Ok(seen),
        };
        reporter.complain(&complaints)?;
        if let Some(file) = file {
            if let Some((path, toc)) = &file.pack {
                let plain = without_features(path);
                together.online.add_pack(path.clone(), plain, input.name(), toc);
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
    /// The split libraries and the kernel packs in packages.
    split: PackSet<Host>,
    packs: Vec<PackFile>,
    /// The split libraries and the kernel packs on servers that arguments name.
    online: PackSet<Host>,
    /// The marks of all inputs: packs may lie in any.
    partial: Vec<Partial>,
    variants: VariantAnswers,
    fails: bool,
}

/// The files of a package, and the mark that a part of it was not read.
#[derive(Debug)]
struct Package {
    set: FileSet,
    partial: Partial,
}

impl Package {
    /// Returns the files, when all that was not read is known.
    fn end(mut self) -> FileSet {
        if self.partial.is_set() {
            let name = self.set.name().to_owned();
            self.set.add_unread(&name);
        }
        self.set
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
        let (split, packs, online) = (PackSet::default(), Vec::new(), PackSet::default());
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
        let (package, fails) = (None, false);
        let partial = inputs.files().iter().map(|file| file.partial().clone()).collect();
        Together {
            question,
            several,
            package,
            alternatives,
            split,
            packs,
            online,
            partial,
            variants,
            fails,
        }
    }

    /// Returns whether a file is judged with others: as a member of a package, or as one of several alternatives in a directory.
    pub(super) fn is_about(&self, input: &Input) -> bool {
        input.package().is_some() || !input.is_named() && self.several.has(input.name())
    }

    /// Ends a package.
    fn end_package(&mut self, package: Package, reporter: &mut impl Reporter) -> io::Result<()> {
        let set = package.end();
        let is_variant = self.variants.take(&set);
        self.fails |= !is_variant && self.question.fails(set.worst());
        reporter.set(&set, is_variant)
    }

    /// Adds a file that was not read as a whole, for the answers about others.
    fn add_unread(&mut self, input: &Input) {
        if input.package().is_some() {
            input.partial().set();
        } else if self.is_about(input) {
            self.alternatives.add_unread(input.name());
        }
    }

    /// Returns whether a file is one of these, and adds it.
    fn takes(&mut self, input: &Input, file: &File) -> bool {
        if !self.is_about(input) {
            return false;
        }
        let Together { question, package, alternatives, .. } = self;
        let new = |name| FileSet::new(question.gpus.clone()).with_package(name);
        let set = match input.package() {
            Some(name) => {
                let partial = || input.partial().clone();
                let new = || Package { set: new(name), partial: partial() };
                &mut package.get_or_insert_with(new).set
            }
            None => alternatives,
        };
        file.add_to(set, input.name(), question, input);
        true
    }

    /// Ends all; returns whether an answer is one for exit status 1.
    fn end(mut self, reporter: &mut impl Reporter) -> io::Result<bool> {
        if let Some(done) = self.package.take() {
            self.end_package(done, reporter)?;
        }
        let is_partial = self.partial.iter().any(Partial::is_set);
        let mut fails = self.fails | self.question.fails(self.alternatives.worst());
        reporter.set(&self.alternatives, false)?;
        for answer in self.variants.all() {
            fails |= self.question.fails(answer.support);
            reporter.variants(&answer)?;
        }
        for gpu in self.question.gpus.iter().filter(|gpu| gpu.vendor() == Vendor::Amd) {
            for (name, answer) in self.split.answers(gpu) {
                let answer = answer.with_unread(is_partial);
                fails |= !answer.is_served();
                reporter.split(name, &answer)?;
            }
        }
        for gpu in &self.question.gpus {
            for (name, mut answer) in self.online.answers(gpu) {
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
        for pack in self.packs.iter().filter(|pack| !self.split.has_library_of(&pack.toc)) {
            // A pack that lies in no package has no name of one.
            let name = pack.input.package().unwrap_or_default();
            let directory = pack.path.parent().unwrap_or(&pack.path);
            let is_known =
                |(at, package): &(&Path, Package)| package.set.name() == name || *at == directory;
            let known = alone.iter().position(is_known).unwrap_or_else(|| {
                let set = FileSet::new(self.question.gpus.clone()).with_package(name);
                alone.push((directory, Package { set, partial: pack.input.partial().clone() }));
                alone.len() - 1
            });
            if let Some((_, Package { set, .. })) = alone.get_mut(known) {
                pack.file.add_to(set, &input::display(&pack.path), self.question, &pack.input);
            }
        }
        for (_, package) in alone {
            let set = package.end();
            fails |= self.question.fails(set.worst());
            reporter.set(&set, false)?;
        }
        Ok(fails)
    }
}
