//! The answer of files that belong together: a line for each GPU.

use std::io;

use device_select::{Device, FileSet, Selection, Support, Unit};

use super::view::conclusion;
use tool_kit::style;

/// The answers of the files of a package, or of those of a directory that are alternatives.
pub(super) struct Package {
    name: String,
    gpus: Vec<String>,
    files: FileSet,
}

impl Package {
    pub(super) fn new(name: &str, gpus: &[Device]) -> Self {
        let files = FileSet::new(gpus.len());
        Package { name: name.to_owned(), gpus: gpus.iter().map(Device::name).collect(), files }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Adds the answers of a file for a GPU.
    pub(super) fn add(&mut self, gpu: &Device, file: &str, units: &[Unit], answers: &Selection) {
        let name = gpu.name();
        let Some(gpu) = self.gpus.iter().position(|other| *other == name) else { return };
        // The name of the package is said once.
        let member = file.strip_prefix(&*self.name).and_then(|file| file.strip_prefix(':'));
        self.files.add(member.unwrap_or(file), gpu, units, answers);
    }

    /// Returns the worst answer.
    pub(super) fn support(&self) -> Support {
        let all = (0..self.gpus.len()).filter_map(|gpu| self.support_of(gpu));
        all.max().unwrap_or(Support::Yes)
    }

    /// Returns the names of the GPUs for which the answer is no, and other code would help.
    pub(super) fn lacking(&self) -> Vec<String> {
        let is_no = |(gpu, _): &(usize, &String)| {
            let questions = self.files.questions().iter();
            let mut lacking = questions.filter(|one| one.support(*gpu) == Some(Support::No));
            self.support_of(*gpu) == Some(Support::No)
                && lacking.any(|question| question.obstacle(*gpu).is_none())
        };
        self.gpus.iter().enumerate().filter(is_no).map(|(_, name)| name.clone()).collect()
    }

    /// Returns the answer for a GPU, by its number. Alternatives in directories may be of several packages.
    fn support_of(&self, gpu: usize) -> Option<Support> {
        if self.name.is_empty() {
            self.files.questions().iter().filter_map(|one| one.support(gpu)).max()
        } else {
            self.files.support(gpu)
        }
    }

    /// Prints a line for each GPU of whose vendor there is code; of alternatives in directories, a line for each of them.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = style::stdout();
        let gpus = || self.gpus.iter().enumerate();
        if !self.name.is_empty() {
            for answer in gpus().filter_map(|(gpu, name)| self.files.conclusion(gpu, name)) {
                conclusion(&mut out, &self.name, &answer)?;
            }
        }
        for question in self.files.questions().iter().filter(|_| self.name.is_empty()) {
            for answer in gpus().filter_map(|(gpu, name)| question.conclusion(gpu, name)) {
                conclusion(&mut out, question.name(), &answer)?;
            }
        }
        out.flush()
    }
}
