//! `clang-offload-bundler`: bundles code objects, and takes them apart again.
//!
//! The work is done by `bundle` and `unbundle`, which know nothing of command lines.

mod archive;
mod bundle;
mod checks;
mod commands;
mod entries;
mod environment;
mod job;
mod list;
mod members;
mod options;
mod unbundle;
mod verbose;

use std::path::Path;
use std::process::ExitCode;

use crate::drop_in;
use crate::llvm_cl;
pub use bundle::bundle;
use bundle_format::EntryId;
use checks::Command;
pub use checks::{Mode, doubts, targets};
use environment::Environment;
pub use job::{BundleJob, FileType, Notes, UnbundleJob};
use options::Options;
pub use options::{Reading, TOOL};
use tool_kit::failure::Failure;
use tool_kit::opened::MaxInput;
use tool_kit::output::Outputs;
use tool_kit::style::{show, text};
use tool_kit::{report, style};
pub(crate) use unbundle::unbundle;

/// Runs the bundler with the arguments and the environment of this process.
#[must_use]
pub fn main() -> ExitCode {
    let (invocation, options) = match drop_in::start(&TOOL, "clang-offload-bundler") {
        Ok((invocation, matches)) => (invocation, Options::new(&matches)),
        Err(exit) => return exit,
    };
    if options.help {
        let help = llvm_cl::help_list(&TOOL, &invocation.program, false);
        return report::print_help(&invocation.typed, &help);
    }
    let environment = Environment::of_process();
    for warning in &environment.warnings {
        report::say(&text!("{warning}"));
    }
    let tool = Tool { name: &invocation.typed, options: &options, environment: &environment };
    match tool.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => match failure.report(|complaint| report::error_of(tool.name, &complaint)) {
            Ok(_) => ExitCode::FAILURE,
            Err(error) => report::end(tool.name, &error),
        },
    }
}

/// Returns how the bundler compresses bundles with these options, in the environment of this process.
pub fn compression(compress: bool, level: Option<i32>) -> Option<ccob::WriteOptions> {
    Environment::of_process().compression(compress.then_some(true), level)
}

struct Tool<'a> {
    name: &'a str,
    options: &'a Options,
    environment: &'a Environment,
}

impl Tool<'_> {
    fn run(&self) -> Result<(), Failure> {
        let options = self.options;
        let mut warnings = Vec::new();
        let command = checks::command(options, &mut warnings);
        warnings.iter().for_each(|warning| report::warning_of(self.name, warning));
        match command? {
            Command::List(path) => self.list(path),
            Command::Unbundle(input) => {
                let ids = targets(&options.targets, Mode::Unbundle, options.reading)?;
                self.unbundle(self.file_type()?, &ids, input)
            }
            Command::Bundle(output) => {
                let ids = targets(&options.targets, Mode::Bundle, options.reading)?;
                let file_type = self.file_type()?;
                for doubt in doubts(&ids) {
                    report::warning_of(self.name, &doubt);
                }
                self.bundle(file_type, &ids, output)
            }
        }
    }

    /// Returns the type, or the first input that cannot be read, or that the type is unknown.
    fn file_type(&self) -> Result<FileType, Failure> {
        let name = &self.options.file_type;
        if let Some(file_type) = FileType::from_name(name) {
            return Ok(file_type);
        }
        for path in &self.options.inputs.files {
            tool_kit::payload::Payload::open(path, MaxInput::default(), 0)?;
        }
        Err(format!("'{name}': invalid file type specified").into())
    }

    fn list(&self, path: &Path) -> Result<(), Failure> {
        let file_type = self.file_type()?;
        let mut notes = Notes::default();
        let mut lines = Vec::new();
        // Sizes, times and hashes are reported for whole bundles.
        let tables_only = !self.verbose();
        let done = list::list(path, file_type, tables_only, &mut lines, &mut notes);
        self.print(&notes);
        let mut out = style::stdout();
        let printed =
            lines.iter().try_for_each(|line| show!(out, "{line}")).and_then(|()| out.flush());
        done?;
        printed.map_err(|error| Failure::printing(&error))
    }

    fn bundle(
        &self,
        file_type: FileType,
        ids: &[EntryId<'_>],
        output: &Path,
    ) -> Result<(), Failure> {
        let Tool { options, environment, .. } = self;
        let compression = environment.compression(options.compress, options.compression_level);
        let job = BundleJob {
            file_type,
            entries: ids
                .iter()
                .map(EntryId::canonical)
                .zip(options.inputs.files.iter().cloned())
                .collect(),
            align: options.bundle_align,
            compression,
            max_input: MaxInput::default(),
            output: output.to_owned(),
            dry_run: options.dry_run,
        };
        self.work(|outputs, notes| bundle(&job, outputs, notes))
    }

    fn unbundle(
        &self,
        file_type: FileType,
        ids: &[EntryId<'_>],
        input: &Path,
    ) -> Result<(), Failure> {
        let options = self.options;
        let job = UnbundleJob {
            file_type,
            input: input.to_owned(),
            targets: ids
                .iter()
                .map(|id| checks::request(id, options))
                .zip(options.outputs.files.iter().cloned())
                .collect(),
            allow_missing: options.allow_missing_bundles,
            check_input_archive: options.check_input_archive,
            limits: fat_object::Options::default().with_scan(false),
            verbose: self.verbose(),
            debug: options.debug,
            dry_run: options.dry_run,
        };
        self.work(|outputs, notes| unbundle(&job, outputs, notes))
    }

    fn work(
        &self,
        work: impl FnOnce(&mut Outputs, &mut Notes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut outputs = Outputs::default();
        let mut notes = Notes::default();
        let done = work(&mut outputs, &mut notes);
        self.print(&notes);
        done?;
        Ok(outputs.commit()?)
    }

    fn verbose(&self) -> bool {
        self.options.verbose.unwrap_or(self.environment.verbose)
    }

    fn print(&self, notes: &Notes) {
        let verbose = notes.verbose.iter().filter(|_| self.verbose());
        verbose.for_each(|line| report::say(&text!("{line}")));
        notes.debug.iter().for_each(report::say);
        notes.commands.iter().for_each(|line| report::say(&text!("{line}")));
        notes.warnings.iter().for_each(|warning| report::warning_of(self.name, warning));
    }
}
