//! From an archive of bundles to an archive for each target.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use bundle_format::EntryId;
use byte_parts::ReadSeek;
use hda_archive::{ArchiveCopy, Error, ErrorKind, Unbundling};
use target_id::llvm::debug_text;

use super::job::debug_line;
use super::job::{Notes, UnbundleJob};
use super::members;
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::{self, How, Outputs};
use tool_kit::parallel::{self, Threads};
use tool_kit::permissions::NewPermissions;
use tool_kit::positioned::Positioned;
use tool_kit::report::reason;
use tool_kit::stamp::Stamp;

/// Takes the entries of all members out of an archive. Nothing is written unless all is well.
pub(super) fn unbundle(
    job: &UnbundleJob,
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    job.check_outputs()?;
    let archive = Archive::open(job)?;
    if job.check_input_archive {
        archive.check()?;
    }
    if job.debug {
        archive.compare(notes)?;
    }
    if job.verbose {
        archive.tell(notes)?;
    }
    let plan = archive.plan()?.with_allow_missing(job.allow_missing);
    let name = input::display(&job.input);
    notes.warnings.extend(plan.warnings().iter().map(|warning| format!("'{name}': {warning}")));
    let missing: Vec<_> = plan.missing().map(|target| nothing_for(target.id(), &name)).collect();
    if !missing.is_empty() && !job.allow_missing {
        return Err(missing.into());
    }
    if job.dry_run {
        return Ok(());
    }
    archive.write(&plan, outputs)?;
    Ok(archive.stamp.check(&archive.file).map_err(|error| at(&job.input, &error))?)
}

fn nothing_for(id: &str, archive: &str) -> String {
    format!(
        "no compatible code object found for the target '{id}' in heterogeneous archive library: {archive}"
    )
}

/// The input.
struct Archive<'j> {
    job: &'j UnbundleJob,
    file: File,
    stamp: Stamp,
    /// Permissions of the archives that are made from it.
    new_permissions: Cell<NewPermissions>,
}

impl<'j> Archive<'j> {
    fn open(job: &'j UnbundleJob) -> Result<Self, Failure> {
        let opened = Opened::new(&job.input, MaxInput::default());
        let opened = opened.map_err(|error| at(&job.input, &error))?;
        let new_permissions = opened.permissions().of_part().into();
        let stamp = Stamp::of(&opened.file)?;
        Ok(Archive { job, file: opened.file, stamp, new_permissions })
    }

    /// Finds entries that must not be in one bundle.
    fn check(&self) -> Result<(), Failure> {
        let Archive { job, file, .. } = self;
        let mut open_thin = |member: &[u8]| input::open_thin_member(&job.input, member);
        let conflicts =
            hda_archive::conflicts(&mut Positioned::new(file), &job.limits, &mut open_thin)
                .map_err(|error| failure(job, &error))?;
        if conflicts.is_empty() {
            return Ok(());
        }
        let name = input::display(&job.input);
        Err(conflicts
            .iter()
            .map(|conflict| format!("{conflict} of {name}"))
            .collect::<Vec<_>>()
            .into())
    }

    /// Notes how every member is stored.
    fn tell(&self, notes: &mut Notes) -> Result<(), Failure> {
        let Archive { job, file, .. } = self;
        members::tell(&job.input, file, &job.limits, &mut notes.verbose)
            .map_err(|error| at(&job.input, &error).into())
    }

    /// Notes how every entry compares with every target.
    fn compare(&self, notes: &mut Notes) -> Result<(), Failure> {
        let Archive { job, file, .. } = self;
        let mut open_thin = |member: &[u8]| input::open_thin_member(&job.input, member);
        hda_archive::entries(&mut Positioned::new(file), &job.limits, &mut open_thin, |entry| {
            // The warnings include errors in IDs.
            let Ok(id) = EntryId::parse(entry.id()) else {
                return Ok(());
            };
            let (code_object, target) = (id.standardized(), id.target());
            for (request, _) in &job.targets {
                let text = debug_text(&request.verdict(&target));
                notes.debug.push(debug_line(text, &code_object, request.id()));
            }
            Ok(())
        })
        .map_err(|error| failure(job, &error))
    }

    fn plan(&self) -> Result<Unbundling, Failure> {
        let Archive { job, file, .. } = self;
        let mut open_thin = |member: &[u8]| {
            let member = input::open_thin_file(&job.input, member)?;
            self.new_permissions.set(self.new_permissions.get().and_of(&member)?);
            Ok(Box::new(member) as Box<dyn ReadSeek>)
        };
        let targets = job.targets.iter().map(|(request, _)| request.clone());
        let (input, threads) = (Positioned::new(file), Threads::default().for_walks());
        Unbundling::plan_with_threads(&input, threads, targets, &job.limits, &mut open_thin)
            .map_err(|error| failure(job, &error))
    }

    fn write(&self, plan: &Unbundling, outputs: &mut Outputs) -> Result<(), Failure> {
        let Archive { job, file, .. } = self;
        let (how, mut files) = (How::from(self.new_permissions.get()), Vec::new());
        for (_, path) in &job.targets {
            // All of them are written at once.
            files.push(outputs.write_or_print(path, how, |file| file.try_clone())?);
        }
        let done = match plan.copies() {
            Some(copies) => copy(file, &copies, files),
            None => {
                let mut open_thin = |member: &[u8]| input::open_thin_member(&job.input, member);
                let (input, threads) = (Positioned::new(file), Threads::default().for_walks());
                plan.write_with_threads(&input, threads, files, &mut open_thin)
            }
        };
        done.map_err(|error| failure(job, &error))
    }
}

/// Writes every archive, several at the same time.
fn copy(file: &File, copies: &[ArchiveCopy<'_>], outputs: Vec<File>) -> Result<(), Error> {
    let threads = if Positioned::shares() { Threads::default().count() } else { NonZeroUsize::MIN };
    let jobs: Vec<_> = copies.iter().zip(outputs).collect();
    let write =
        |(copy, out): &(&ArchiveCopy<'_>, File)| copy.write(&mut Positioned::new(file), out);
    parallel::in_order(threads, &jobs, write, |_, written| written)
}

fn at(path: &Path, error: &io::Error) -> String {
    format!("'{}': {}", input::display(path), reason(error))
}

fn failure(job: &UnbundleJob, error: &Error) -> Failure {
    let name = input::display(&job.input);
    match (error.kind(), error.io()) {
        (ErrorKind::Write, Some(source)) if source.kind() == io::ErrorKind::BrokenPipe => {
            return io::Error::from(source.kind()).into();
        }
        (ErrorKind::Write, Some(source)) => {
            match error.archive().and_then(|archive| job.targets.get(archive)) {
                Some((_, path)) => output::at(path, source).to_string(),
                None => reason(source),
            }
        }
        (ErrorKind::Read, Some(source)) if error.member().is_none() => at(&job.input, source),
        // As LLVM says it, of larger files as well.
        (ErrorKind::Truncated, _) => format!("file too small to be an archive: '{name}'"),
        (ErrorKind::NotAnArchive, _) => {
            format!("file too small to be an archive: '{name}': {error}")
        }
        _ => format!("'{name}': {error}"),
    }
    .into()
}
