//! The output of `match`: documents, or tables with a conclusion for each GPU, and notes at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use device_select::{Answer, Device, FileSet, Need, Note, SetAnswer, SplitLibrary, Support};
use serde::Serialize;
use serde_json::Value;

use super::view;
use crate::ls;
use crate::packs::answer;
use tool_answers::matching::{File, Question, Reporter, SplitAnswer, VariantAnswer};
use tool_inputs::complaint::{self, Complaint};
use tool_inputs::headings::Headings;
use tool_inputs::inputs::Input;
use tool_inputs::split_library::Host;
use tool_kit::document::Document;
use tool_kit::finding::{Finding, Level};
use tool_kit::input;
use tool_kit::report::note;
use tool_kit::style::{self, ERROR, HEADING, Out, TARGET, show};

/// The part of the answers that is printed as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Text,
    Quiet,
}

/// An answer about a file, a package, or files that are alternatives; the fields of one JSON object.
#[derive(Serialize)]
struct Verdict<'a> {
    file: &'a str,
    gpu: &'a str,
    answer: &'static str,
    message: &'a str,
}

/// The standard output, and the notes for the end.
pub(crate) struct Printer<'a> {
    question: &'a Question<'a>,
    style: Style,
    document: &'a mut Document,
    verdicts: Vec<Value>,
    out: Out<'static>,
    /// `true` if a table was printed.
    is_begun: bool,
    /// The needs of the images that are given, with the last file that has it, and the number of files.
    needs: BTreeMap<Need, (String, usize)>,
    hints: BTreeSet<String>,
    /// The options with which compilers make the code that GPUs lack.
    advice: BTreeMap<String, String>,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(
        question: &'a Question<'a>,
        style: Style,
        document: &'a mut Document,
    ) -> Self {
        Printer {
            question,
            style,
            document,
            verdicts: Vec::new(),
            out: style::stdout(),
            is_begun: false,
            needs: BTreeMap::new(),
            hints: BTreeSet::new(),
            advice: BTreeMap::new(),
        }
    }

    /// Adds an answer to the document, with a finding if it is not yes.
    fn verdict(&mut self, file: &str, gpu: &str, answer: Support, message: &str) -> io::Result<()> {
        if !self.document.is_text() {
            let verdict = Verdict { file, gpu, answer: answer.as_str(), message };
            self.verdicts.push(serde_json::to_value(verdict)?);
        }
        let (code, level) = match answer {
            Support::Yes => return Ok(()),
            Support::Partly => ("targets/partly", Level::Warning),
            Support::Unknown => ("targets/unknown", Level::Error),
            Support::No => ("targets/missing", Level::Error),
        };
        let level = if self.question.fails(answer) { Level::Error } else { level };
        let mut gpus = self.question.gpus.iter();
        let options = gpus.find(|one| one.name() == gpu && !one.is_unknown());
        let help = options.map(|gpu| format!("build with {}", gpu.compiler_options()));
        let help = help.filter(|_| answer == Support::No);
        self.document.finding(Finding::error(code, file, message).with_level(level).with_help(help))
    }

    /// Adds a GPU that lacks code, if compilers know it.
    fn advise(&mut self, gpu: &Device) {
        if !gpu.is_unknown() {
            self.advice.entry(gpu.name()).or_insert_with(|| gpu.compiler_options());
        }
    }

    /// Prints what is left to say.
    pub(crate) fn end(self) -> io::Result<()> {
        self.document.field("verdicts", &self.verdicts)?;
        if self.style == Style::Quiet {
            return Ok(());
        }
        for (need, (file, count)) in &self.needs {
            match count {
                1 => note(&format_args!("{file} needs {need}")),
                count => note(&format_args!("{count} files need {need}")),
            }
        }
        self.hints.iter().for_each(|hint| note(hint));
        for (gpu, flags) in &self.advice {
            note(&format_args!("for {gpu}, install a build for it, or build with {flags}"));
        }
        Ok(())
    }
}

impl Reporter for Printer<'_> {
    fn complain(&mut self, complaints: &[Complaint]) -> io::Result<()> {
        complaint::report_all(self.document, complaints)
    }

    fn rows(&mut self, name: &str, file: &File) -> io::Result<()> {
        if self.document.is_text() {
            return Ok(());
        }
        self.document.about(name, || Some(complaint::about(&file.read.summary)));
        for n in 0..file.read.units.len() {
            for (gpu, answers) in self.question.gpus.iter().zip(&file.answers) {
                if let Some(record) = answers.record(&file.read.units, gpu, n) {
                    self.document.row_of(name, &record)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, input: &Input, file: &File, is_taken: bool) -> io::Result<()> {
        if !file.read.has_answer() {
            return Ok(());
        }
        let (question, name, units) = (self.question, input.name(), &file.read.units);
        let asked = || {
            let asked = file.asked(question, input);
            asked.filter_map(|(n, answers)| Some((question.gpus.get(n)?, answers)))
        };
        for (gpu, answers) in asked() {
            for need in answers.needs(units, gpu) {
                let (file, count) = self.needs.entry(need).or_default();
                if file != name {
                    name.clone_into(file);
                    *count += 1;
                }
            }
            // Other code would not help.
            let is_there = |one: &Answer| one.need().is_some() || one.note == Some(Note::Lost);
            let is_there = answers.answers().iter().any(is_there);
            if answers.support() == Support::No && !is_there && !is_taken {
                self.advise(gpu);
            }
            self.hints.extend(answers.hint(units, gpu));
        }
        if is_taken {
            return Ok(());
        }
        for (gpu, answers) in asked() {
            let conclusion = answers.conclusion(units, gpu);
            self.verdict(name, &gpu.name(), answers.support(), &conclusion.text)?;
        }
        if self.style == Style::Quiet {
            return Ok(());
        }
        let out = &mut self.out;
        if std::mem::replace(&mut self.is_begun, true) && input.is_named() {
            show!(out)?;
        }
        if input.is_named() {
            ls::heading(out, name, &file.read.summary)?;
            match (&question.gpus[..], &file.answers[..]) {
                _ if units.is_empty() => {}
                ([gpu], [answers]) => view::one_gpu(out, units, gpu, answers.answers())?,
                (gpus, answers) => view::several_gpus(out, units, gpus, answers)?,
            }
        }
        for (gpu, answers) in asked() {
            view::conclusion(out, name, &answers.conclusion(units, gpu))?;
        }
        // Keep what is printed and what is complained about in order on a shared terminal.
        out.flush()
    }

    fn variants(
        &mut self,
        VariantAnswer { wheel, gpu, support, text, .. }: &VariantAnswer<'_>,
    ) -> io::Result<()> {
        self.verdict(wheel, &gpu.name(), *support, text)?;
        let style = if *support < Support::Unknown { TARGET } else { ERROR };
        if self.style == Style::Text {
            show!(self.out, "{HEADING}{wheel}{HEADING:#}: {style}{text}{style:#}")?;
        }
        self.out.flush()
    }

    fn set(&mut self, set: &FileSet, is_variant: bool) -> io::Result<()> {
        if !is_variant {
            set.lacking().for_each(|gpu| self.advise(gpu));
        }
        let answers = set.answers();
        let mut names = Headings::new();
        for group in answers.chunk_by(|one, next| one.name == next.name) {
            for SetAnswer { name, gpu, support, conclusion, .. } in group {
                if !is_variant {
                    self.verdict(name, &gpu.name(), *support, &conclusion.text)?;
                }
                if self.style != Style::Text {
                    continue;
                }
                if group.len() > 1 && names.is_above(&mut self.out, name)? {
                    view::below(&mut self.out, conclusion)?;
                } else {
                    view::conclusion(&mut self.out, name, conclusion)?;
                }
            }
        }
        self.out.flush()
    }

    fn split_library(
        &mut self,
        input: &Input,
        host: &Host,
        answers: &[SplitAnswer],
    ) -> io::Result<()> {
        let name = input.name();
        if self.style == Style::Text && input.is_named() {
            show!(self.out, "{HEADING}{name}{HEADING:#}  {}", host.describe())?;
            answers.iter().try_for_each(|answer| answer::print_tried(answer, &mut self.out))?;
        }
        answers.iter().try_for_each(|answer| self.split(name, answer))
    }

    fn split(&mut self, name: &str, answer: &SplitAnswer) -> io::Result<()> {
        if !self.document.is_text() {
            self.document.row_of(name, &answer.record(|path| input::display(path)))?;
        }
        let support = answer.support();
        let words = answer.words(|path| input::display(path));
        self.verdict(name, answer.gpu(), support, &words)?;
        if support == Support::No {
            let mut gpus = self.question.gpus.iter();
            gpus.find(|gpu| gpu.name() == answer.gpu())
                .into_iter()
                .for_each(|gpu| self.advise(gpu));
        }
        if self.style == Style::Quiet {
            return Ok(());
        }
        answer::print(answer, &mut self.out, name)?;
        self.out.flush()
    }
}
