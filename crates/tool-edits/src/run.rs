//! Edits of many files, several at the same time.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::editor::Editor;
use super::job::{Job, Stage, Step};
use super::loose::LooseFiles;
use super::reporter::{FullReport, Reporter};
use tool_inputs::image_files::is_layout;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::records::{Listed, Lists};
use tool_kit::Outcome;
use tool_kit::parallel::{Shares, in_order_by};
use tool_kit::report::{self as messages, Message};
use tool_kit::wildcards;

impl Editor<'_> {
    /// Edits each file by itself, and reports all of them.
    pub fn run(self) -> io::Result<Outcome> {
        let mut reporter = FullReport::new(self.options, self.work);
        self.run_with(&mut reporter)
    }

    /// Edits each file by itself, several at the same time. The reporter gets the results in the order of the files; those of
    /// files that are deleted come last.
    pub fn run_with(self, reporter: &mut dyn Reporter) -> io::Result<Outcome> {
        let named = wildcards::expanded(self.files);
        let inputs = Inputs::find_with(&named, &is_layout);
        let files = inputs.files();
        if let Some(fault) = self.options.output.fault(&named) {
            tool_kit::arguments::usage(fault);
        }
        let directory = inputs.first_directory();
        if self.options.output.output.is_some()
            && let Some(directory) = directory
        {
            let advice = if self.shrinks.is_some() { "a file or package" } else { "--in-place" };
            messages::error(&format_args!("{directory}: Is a directory; expected {advice}"));
            return Ok(Outcome::Faults);
        }
        let made = match self.options.output.make_directory() {
            Ok(made) => made,
            Err(error) => {
                messages::error(&messages::reason(&error));
                return Ok(Outcome::Faults);
            }
        };
        if inputs.have_faults() {
            reporter.fail();
        }
        reporter.start(&inputs);
        let lists = Mutex::new(Lists::dropping_signatures(self.options.host.drop_signature));
        let lock = || lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_written = self.options.output.in_place && !self.options.output.dry_run;
        if self.options.output.in_place {
            lock().find(files, is_written);
        }
        let limits = &self.options.limits;
        let at_once = limits.threads.for_files(files.iter().map(Input::path));
        let shares = Shares::new(limits.held_of(u64::MAX), limits.threads, at_once);
        let names = |file: &Input| Listed::new(&lists).distributions(file);
        let loose = match &self.databases {
            Some(databases) => databases.find(&inputs, (limits, at_once.0, &shares), &names)?,
            None => LooseFiles::default(),
        };
        loose.left.iter().for_each(|place| reporter.leave(place));
        loose.notes.iter().for_each(|note| reporter.say(&Message::Note(note.clone())));
        for fault in &loose.faults {
            reporter.say(&Message::Error(fault.clone()));
            reporter.fail();
        }
        let progress = inputs.progress(self.work.doing());
        let edit = |file: &Input| {
            progress.present(file.name());
            shares.run(|share| Job::new(&self, (&lists, &loose), share).edit(file))
        };
        let (mut emptied, mut going) = (Vec::new(), Vec::new());
        in_order_by(at_once.0, files, Input::identity, edit, |file, edited| {
            progress.pass(|| file.size());
            match edited {
                Step::Done(edited) => reporter.take(file, edited),
                Step::Empty => {
                    emptied.push(file);
                    Ok(())
                }
                Step::Delete => {
                    going.push(file);
                    Ok(())
                }
            }
        })?;
        drop(progress);
        // Files lose all code last, and only where all went well and others have code for the targets.
        for file in emptied {
            let is_clean = reporter.outcome() == Outcome::Clean;
            let stage = if is_clean { Stage::Last } else { Stage::Left };
            let job = Job::new(&self, (&lists, &loose), shares.all());
            reporter.take(file, job.edit_last(file, stage))?;
        }
        if is_written && reporter.outcome() == Outcome::Clean {
            lock().note_deletions(&going);
        }
        // Arguments may overlap.
        let mut deleted = HashSet::new();
        for file in going {
            if reporter.outcome() == Outcome::Faults {
                // A report says itself that nothing is for the targets.
                if reporter.has_failed() {
                    let text = match (deleted.is_empty(), is_written) {
                        (true, true) => "no file was deleted, as others could not be edited",
                        (true, false) => "no file would be deleted, as others could not be edited",
                        (false, true) => "the other files were not deleted",
                        (false, false) => "the other files would not be deleted",
                    };
                    reporter.say(&Message::Error(text.to_owned()));
                }
                break;
            }
            if !deleted.insert(file.real()) {
                continue;
            }
            reporter.take(file, Job::new(&self, (&lists, &loose), shares.all()).delete(file))?;
        }
        if reporter.outcome() == Outcome::Clean
            && let Some(note) = loose.note(&inputs, limits.max_input)
        {
            messages::note(&note);
        }
        let said = lock().finish(is_written);
        for message in said {
            if matches!(message, Message::Error(_)) {
                reporter.fail();
            }
            reporter.say(&message);
        }
        let outcome = reporter.end(directory.is_some())?;
        // New files keep their directory, even if others failed.
        if outcome == Outcome::Clean {
            made.commit()?;
        }
        Ok(outcome)
    }
}
