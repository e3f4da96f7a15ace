//! Files that are judged together, and the answers of all files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::{Alternatives, FileSet, PackSet, Vendor};
use kpack::Toc;
use offload_check::VariantAnswers;

use super::{File, Printer, Question, Read};
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::split_library::{Host, without_features};
use tool_kit::input;
use tool_kit::looked::Seen;

/// The answers of files, one after the other.
pub(crate) struct Matcher<'q> {
    together: Together<'q>,
    printer: Printer<'q>,
}

impl<'q> Matcher<'q> {
    /// Creates the answers of no file, of these to come.
    pub(crate) fn new(question: &'q Question<'q>, inputs: &Inputs, printer: Printer<'q>) -> Self {
        Matcher { together: Together::new(question, inputs), printer }
    }

    /// Takes what was read of a file.
    pub(crate) fn take(&mut self, input: &Input, read: Read) -> io::Result<Seen> {
        let Matcher { together, printer } = self;
        let (file, complaints) = match read {
            Read::File(file, complaints) => (file, complaints),
            Read::Split(host, answers) => {
                printer.split_library(input, &host, &answers)?;
                return Ok(Seen::faults(answers.iter().any(|answer| !answer.is_served())));
            }
            Read::Passed => return Ok(Seen::Nothing),
            // Packs of a library may come later. One without its library answers for itself.
            Read::Member(host) => {
                together.split.add_library(input.name(), &host, false);
                return Ok(Seen::Well);
            }
            Read::Pack(pack) => {
                let name = pack.input.name();
                printer.rows(name, &pack.file)?;
                let plain = without_features(&pack.path);
                together.split.add_pack(pack.path.clone(), plain, name, &pack.toc);
                together.packs.push(*pack);
                return Ok(Seen::Well);
            }
        };
        if let Some(done) = together.package.take_if(|done| input.package() != Some(done.name())) {
            together.end_package(&done, printer)?;
        }
        let seen = match File::seen(together, input, file.as_ref()) {
            Ok(seen) => seen,
            Err(seen) => return Ok(seen),
        };
        printer.complain(&complaints)?;
        if let Some(file) = file {
            let is_taken = together.takes(input, &file);
            printer.rows(input.name(), &file)?;
            printer.file(input, &file, is_taken)?;
        }
        Ok(seen)
    }

    /// Ends all; returns whether an answer is one for exit status 1.
    pub(crate) fn end(self) -> io::Result<bool> {
        let Matcher { together, mut printer } = self;
        let fails = together.end(&mut printer)?;
        printer.end()?;
        Ok(fails)
    }
}

/// The answers of files that are judged together: those of a package, whose members come one after the other, and those in
/// directories that are alternatives.
pub(super) struct Together<'q> {
    pub(super) question: &'q Question<'q>,
    several: Alternatives,
    package: Option<FileSet>,
    alternatives: FileSet,
    /// The split libraries and the kernel packs in packages.
    split: PackSet<Host>,
    packs: Vec<PackFile>,
    variants: VariantAnswers,
    fails: bool,
}

/// A kernel pack in a package.
pub(crate) struct PackFile {
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
        let (split, packs) = (PackSet::default(), Vec::new());
        let names = inputs.files().iter().map(Input::name);
        let variants = VariantAnswers::of(names, &question.gpus);
        let (package, fails) = (None, false);
        Together { question, several, package, alternatives, split, packs, variants, fails }
    }

    /// Returns whether a file is judged with others: as a member of a package, or as one of several alternatives in a directory.
    pub(super) fn is_about(&self, input: &Input) -> bool {
        input.package().is_some() || !input.is_named() && self.several.has(input.name())
    }

    /// Ends a package.
    fn end_package(&mut self, set: &FileSet, printer: &mut Printer<'_>) -> io::Result<()> {
        let is_variant = self.variants.take(set);
        self.fails |= !is_variant && self.question.fails(set.worst());
        printer.set(set, is_variant)
    }

    /// Returns whether a file is one of these, and adds it.
    fn takes(&mut self, input: &Input, file: &File) -> bool {
        if !self.is_about(input) {
            return false;
        }
        let Together { question, package, alternatives, .. } = self;
        let new = |name| FileSet::new(question.gpus.clone()).with_package(name);
        let set = match input.package() {
            Some(name) => package.get_or_insert_with(|| new(name)),
            None => alternatives,
        };
        file.add_to(set, input.name(), question, input);
        true
    }

    /// Ends all; returns whether an answer is one for exit status 1.
    fn end(mut self, printer: &mut Printer<'_>) -> io::Result<bool> {
        if let Some(done) = self.package.take() {
            self.end_package(&done, printer)?;
        }
        let mut fails = self.fails | self.question.fails(self.alternatives.worst());
        printer.set(&self.alternatives, false)?;
        for answer in self.variants.all() {
            fails |= self.question.fails(answer.2);
            printer.variants(answer)?;
        }
        for gpu in self.question.gpus.iter().filter(|gpu| gpu.vendor() == Vendor::Amd) {
            for (name, answer) in self.split.answers(gpu) {
                fails |= !answer.is_served();
                printer.split(name, &answer)?;
            }
        }
        // Packs without their libraries answer for themselves: packs of a package together, and packs that are
        // installed for one library.
        let mut alone: Vec<(&Path, FileSet)> = Vec::new();
        for pack in self.packs.iter().filter(|pack| !self.split.has_library_of(&pack.toc)) {
            // A pack that lies in no package has no name of one.
            let name = pack.input.package().unwrap_or_default();
            let directory = pack.path.parent().unwrap_or(&pack.path);
            let known = alone.iter().position(|(at, set)| set.name() == name || *at == directory);
            let known = known.unwrap_or_else(|| {
                let set = FileSet::new(self.question.gpus.clone()).with_package(name);
                alone.push((directory, set));
                alone.len() - 1
            });
            if let Some((_, set)) = alone.get_mut(known) {
                pack.file.add_to(set, &input::display(&pack.path), self.question, &pack.input);
            }
        }
        for (_, set) in &alone {
            fails |= self.question.fails(set.worst());
            printer.set(set, false)?;
        }
        Ok(fails)
    }
}
