//! The answer of files that belong together: a line for each GPU.

use std::io;

use device_select::{Device, FileSet, Question, QuestionKind, Selection, Support, Unit};

use tool_kit::each_once::each_once;
use tool_kit::report;
use tool_kit::style::{self, ERROR, HEADING, Out, TARGET, WARNING, show};

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
        match self.name.is_empty() {
            true => self.files.questions().iter().filter_map(|one| one.support(gpu)).max(),
            false => self.files.support(gpu),
        }
    }

    /// Prints a line for each GPU of whose vendor there is code; of alternatives in directories, a line for each of them.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = style::stdout();
        let questions: Vec<&Question> = self.files.questions().iter().collect();
        match self.name.is_empty() {
            false => self.print_about(&mut out, &questions)?,
            true => questions.chunks(1).try_for_each(|one| self.print_about(&mut out, one))?,
        }
        out.flush()
    }

    fn print_about(&self, out: &mut Out<'_>, questions: &[&Question]) -> io::Result<()> {
        for (gpu, name) in self.gpus.iter().enumerate() {
            let questions = about(questions, gpu, |_| true);
            let Some(worst) = questions.iter().filter_map(|one| one.support(gpu)).max() else {
                continue;
            };
            let of_all = self.files.support(gpu).filter(|_| !self.name.is_empty());
            let support = of_all.unwrap_or(worst);
            let asked = About { gpu, name, questions };
            let style = match support {
                Support::Yes if !asked.questions.iter().any(|one| one.is_conditional(gpu)) => {
                    TARGET
                }
                Support::Yes | Support::Partly => WARNING,
                Support::Unknown | Support::No => ERROR,
            };
            let (name, words) = match (&*self.name, &asked.questions[..]) {
                ("", [one]) => (one.name(), asked.alone(one, support)),
                (name, _) => (name, asked.words(support)),
            };
            show!(out, "{HEADING}{name}{HEADING:#}: {style}{words}{style:#}")?;
        }
        Ok(())
    }
}

/// Returns the answer of files that belong together for a GPU, by its number, in words; `None` if there is nothing for its vendor.
pub(crate) fn words(files: &FileSet, gpu: usize, name: &str) -> Option<(Support, String)> {
    let support = files.support(gpu)?;
    let questions: Vec<&Question> = files.questions().iter().collect();
    let asked = About { gpu, name, questions: about(&questions, gpu, |_| true) };
    Some((support, asked.words(support)))
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
        let built_for = match support >= Support::Unknown {
            true => built_for(&[question], self.gpu),
            false => String::new(),
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
            words.push(format!("code for {name} in some containers of {}", report::few(shares)));
        }
        let lacking = about(&self.questions, self.gpu, |support| support >= Support::Unknown);
        if !lacking.is_empty() {
            let names = report::few(lacking.iter().map(|one| one.name()));
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

    /// Returns what is said of builds of which some serve the GPU.
    fn builds(&self, builds: &Question) -> String {
        let (files, serving) = builds.files(self.gpu);
        let name = self.name;
        let have = if serving == 1 { "has" } else { "have" };
        match builds.missing(self.gpu) {
            [] => format!("code for {name} in {} containers of the builds", self.share(builds)),
            missing => {
                let missing = report::few(missing);
                format!("{serving} of {files} builds {have} code for {name}, not {missing}")
            }
        }
    }

    fn lacks(&self) -> String {
        let lacking = about(&self.questions, self.gpu, |support| support >= Support::Unknown);
        let names: Vec<&str> = lacking.iter().map(|question| question.name()).collect();
        let files = match names.len() == self.questions.len() {
            true => String::new(),
            false => format!(": {}", report::few(&names)),
        };
        let built_for = built_for(&lacking, self.gpu);
        format!("lacks code for {} in {}{files}{built_for}", self.name, self.count(lacking.len()))
    }

    /// Returns the number of some of the questions in words: `2 of 3 files`.
    fn count(&self, some: usize) -> String {
        let is_file = |question: &&Question| question.kind() == QuestionKind::File;
        let noun = match self.questions.iter().all(is_file) {
            true => "files",
            false => "files and databases",
        };
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
        labels => format!(": built for {}", report::few(labels)),
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
