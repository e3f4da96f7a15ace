//! The answer of a package: a line for each GPU, about all files in it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

use device_select::{Answer, Device, Selection, Unit};

use crate::report;
use crate::style::{ERROR, HEADING, Out, TARGET, WARNING, show};

/// The answers of the files of a package.
pub(super) struct Package {
    name: String,
    /// One for each GPU, in the order of the command line.
    gpus: Vec<Gpu>,
}

/// The answers for a GPU.
struct Gpu {
    name: String,
    /// The number of files that have code for GPUs of its vendor, and the first.
    files: usize,
    first: String,
    /// The files in which it lacks code.
    missing: Vec<String>,
    /// The targets of the code in those files, each once.
    built_for: Vec<String>,
    seen: HashSet<String>,
    /// The number of files that serve it under a condition.
    conditional: usize,
}

impl Package {
    pub(super) fn new(name: &str, gpus: &[Device]) -> Self {
        let gpus = gpus.iter().map(|gpu| Gpu {
            name: gpu.name(),
            files: 0,
            first: String::new(),
            missing: Vec::new(),
            built_for: Vec::new(),
            seen: HashSet::new(),
            conditional: 0,
        });
        Package { name: name.to_owned(), gpus: gpus.collect() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Adds the answers of a file for a GPU.
    pub(super) fn add(&mut self, gpu: &Device, file: &str, units: &[Unit], answers: &Selection) {
        let name = gpu.name();
        let Some(gpu) = self.gpus.iter_mut().find(|other| other.name == name) else { return };
        gpu.files += 1;
        // The name of the package is said once.
        let file = file.strip_prefix(&*self.name).and_then(|file| file.strip_prefix(':'));
        let file = file.unwrap_or_default();
        if gpu.files == 1 {
            gpu.first = file.to_owned();
        }
        if answers.is_served() {
            let is_conditional = |answer: &Answer| answer.given.condition().is_some();
            gpu.conditional += usize::from(answers.answers().iter().any(is_conditional));
            return;
        }
        gpu.missing.push(file.to_owned());
        let lacking = units.iter().zip(answers.answers());
        let lacking = lacking.filter(|(_, answer)| answer.lacks_code());
        for label in lacking.flat_map(|(unit, _)| unit.built_for()).map(Cow::into_owned) {
            if gpu.seen.insert(label.clone()) {
                gpu.built_for.push(label);
            }
        }
    }

    /// Prints a line for each GPU of whose vendor there is code.
    pub(super) fn print(&self, out: &mut Out<'_>) -> io::Result<()> {
        for gpu in self.gpus.iter().filter(|gpu| gpu.files > 0) {
            let style = match (gpu.missing.len(), gpu.conditional) {
                (0, 0) => TARGET,
                (0, _) => WARNING,
                _ => ERROR,
            };
            let words = gpu.words();
            let name = &self.name;
            show!(out, "{HEADING}{name}{HEADING:#}: {style}{words}{style:#}")?;
        }
        Ok(())
    }
}

impl Gpu {
    fn words(&self) -> String {
        let Gpu { name, files, first, missing, built_for, conditional, .. } = self;
        let count = *files;
        let files = |n: usize| match (n, count) {
            (_, 1) => first.clone(),
            (2, 2) => "both files".to_owned(),
            (n, all) if n == all => format!("all {all} files"),
            (n, all) => format!("{n} of {all} files"),
        };
        if missing.is_empty() {
            let condition = match *conditional {
                0 => String::new(),
                _ if count == 1 => ", on a condition".to_owned(),
                n => format!(", on a condition in {}", files(n)),
            };
            return format!("has code for {name} in {}{condition}", files(count));
        }
        let built_for = match &built_for[..] {
            [] => String::new(),
            labels => format!(": built for {}", report::few(labels)),
        };
        let missing_files = match missing.len() == count {
            true => String::new(),
            false => format!(": {}", report::few(missing)),
        };
        format!("lacks code for {name} in {}{missing_files}{built_for}", files(missing.len()))
    }
}
