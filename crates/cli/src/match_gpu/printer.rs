//! The output of `match`: JSON, or tables with a conclusion for each GPU, and notes at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use device_select::{Answer, Device, FileSet, Need, Note, SplitLibrary, Support};

use super::{Args, File, Question, view};
use crate::ls;
use crate::packs::answer::{self, Answer as PackAnswer};
use tool_inputs::headings::Headings;
use tool_inputs::inputs::Input;
use tool_inputs::split_library::Host;
use tool_kit::input;
use tool_kit::json::Array;
use tool_kit::report::note;
use tool_kit::style::{self, HEADING, Out, show};

/// The standard output, and the notes for the end.
pub(super) struct Printer<'a> {
    args: &'a Args,
    /// With `--json`.
    rows: Option<Array>,
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
    pub(super) fn new(args: &'a Args) -> io::Result<Self> {
        Ok(Printer {
            args,
            rows: args.json.then(Array::start).transpose()?,
            out: style::stdout(),
            is_begun: false,
            needs: BTreeMap::new(),
            hints: BTreeSet::new(),
            advice: BTreeMap::new(),
        })
    }

    /// Adds a GPU that lacks code, if compilers know it.
    fn advise(&mut self, gpu: &Device) {
        if !gpu.is_unknown() {
            self.advice.entry(gpu.name()).or_insert_with(|| gpu.compiler_options());
        }
    }

    /// Prints the answers about a file as JSON.
    pub(super) fn rows(&mut self, name: &str, file: &File) -> io::Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        for n in 0..file.units.len() {
            for (gpu, answers) in self.args.gpus.iter().zip(&file.answers) {
                if let Some(record) = answers.record(&file.units, gpu, n) {
                    rows.row_of(name, &record)?;
                }
            }
        }
        Ok(())
    }

    /// Prints the answers about a file. A file that is judged with others has its answers printed later.
    pub(super) fn file(
        &mut self,
        question: &Question<'_>,
        input: &Input,
        file: &File,
        is_taken: bool,
    ) -> io::Result<()> {
        if self.rows.is_some() || file.units.is_empty() {
            return Ok(());
        }
        let (args, name, units) = (self.args, input.name(), &file.units);
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
        if is_taken || args.quiet {
            return Ok(());
        }
        let out = &mut self.out;
        if std::mem::replace(&mut self.is_begun, true) && input.is_named() {
            show!(out)?;
        }
        if input.is_named() {
            ls::heading(out, name, &file.summary)?;
            match (&args.gpus[..], &file.answers[..]) {
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

    /// Prints the answers about files that are judged together.
    pub(super) fn set(&mut self, set: &FileSet) -> io::Result<()> {
        set.lacking().for_each(|gpu| self.advise(gpu));
        if self.rows.is_some() || self.args.quiet {
            return Ok(());
        }
        let answers = set.conclusions();
        let mut names = Headings::new();
        for group in answers.chunk_by(|one, next| one.0 == next.0) {
            for (name, answer) in group {
                if group.len() > 1 && names.is_above(&mut self.out, name)? {
                    view::below(&mut self.out, answer)?;
                } else {
                    view::conclusion(&mut self.out, name, answer)?;
                }
            }
        }
        self.out.flush()
    }

    /// Prints the answers about a library whose device code is in kernel packs.
    pub(super) fn split_library(
        &mut self,
        input: &Input,
        host: &Host,
        answers: &[PackAnswer],
    ) -> io::Result<()> {
        let name = input.name();
        if self.rows.is_none() && !self.args.quiet && input.is_named() {
            show!(self.out, "{HEADING}{name}{HEADING:#}  {}", host.describe())?;
            answers.iter().try_for_each(|answer| answer::print_tried(answer, &mut self.out))?;
        }
        answers.iter().try_for_each(|answer| self.split(name, answer))
    }

    /// Prints the answer about such a library for a GPU.
    pub(super) fn split(&mut self, name: &str, answer: &PackAnswer) -> io::Result<()> {
        if let Some(rows) = &mut self.rows {
            return rows.row_of(name, &answer.record(|path| input::display(path)));
        }
        if !answer.is_served() {
            let mut gpus = self.args.gpus.iter();
            gpus.find(|gpu| gpu.name() == answer.gpu())
                .into_iter()
                .for_each(|gpu| self.advise(gpu));
        }
        if self.args.quiet {
            return Ok(());
        }
        answer::print(answer, &mut self.out, name)?;
        self.out.flush()
    }

    /// Prints what is left to say.
    pub(super) fn end(self) -> io::Result<()> {
        if let Some(rows) = self.rows {
            return rows.end();
        }
        if self.args.quiet {
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
