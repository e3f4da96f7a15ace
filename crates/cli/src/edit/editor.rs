//! The way from a file to a new one.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use device_select::{Rule, SplitLibrary, Tally};
use fat_edit::{EditPlan, EditableFile, ErrorKind, NamedImages, survey, survey_closed};
use gpu_packages::wheel_file_name;

use super::loose::{Databases, LooseFiles};
use super::new_images::NewImages;
use super::options::{Options, Within};
use super::report::{About, FileRow, Stays, Work};
use super::reporter::{FullReport, Reporter};
use super::wishes::Wishes;
use super::words::{allow, describe, explain, is_about_hash, no_wheel, refused, unclear};
use crate::inputs::{Input, Inputs};
use crate::package::Package;
use crate::records::Lists;
use tool_kit::attributes;
use tool_kit::failure::Failure;
use tool_kit::holes;
use tool_kit::opened::Opened;
use tool_kit::output::{How, Name, Outputs, is_same};
use tool_kit::positioned::Positioned;
use tool_kit::progress::Progress;
use tool_kit::report::{self as messages, Message};
use tool_kit::store::Keep;
use tool_kit::{Outcome, style};

/// A file to be edited, for who decides how.
pub(crate) struct Subject<'a> {
    /// `false` for a file of a directory that is named, and may hold nothing for the command.
    pub(crate) is_named: bool,
    pub(crate) contents: &'a EditableFile,
    pub(crate) file: Positioned<'a>,
    /// The options of a walk through it, which may hold what is left.
    pub(crate) walk: &'a fat_object::Options,
}

impl<'a> Subject<'a> {
    /// Returns the images and containers by the names of a listing, in the containers that are meant.
    pub(crate) fn named(&self, within: &'a Within) -> Result<NamedImages<'a>, String> {
        let named = self.contents.named(self.file, self.walk, &within.steps);
        named.map_err(|error| unclear(&error, ""))
    }
}

/// Returns the wishes for a file.
pub(crate) type Decide<'d> = dyn Fn(&Subject<'_>) -> Result<Wishes, Failure> + 'd;

/// The common settings of all files.
pub(crate) struct Editor<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) options: &'a Options,
    pub(crate) images: &'a NewImages,
    pub(crate) work: Work,
    pub(crate) decide: &'a Decide<'a>,
    /// The images that are needed of members of packages.
    pub(crate) keep: Keep<'a>,
    /// Sums are taken by this rule, and files that are refused stay.
    pub(crate) shrinks: Option<&'a Rule>,
    /// Files of kernel databases and loose images for other GPUs are deleted.
    pub(crate) databases: Option<Databases<'a>>,
    /// The lists of installed packages that the files are in.
    pub(crate) lists: Lists,
    /// The most bytes that may be held beside the file that is edited now, those of its member, and those of new members.
    pub(crate) most_held: u64,
    pub(crate) held: Cell<u64>,
    pub(crate) kept: Cell<u64>,
}

impl<'a> Editor<'a> {
    pub(crate) fn new(
        files: &'a [PathBuf],
        options: &'a Options,
        work: Work,
        decide: &'a Decide<'a>,
    ) -> Self {
        Editor {
            files,
            options,
            images: const { &NewImages::NONE },
            work,
            decide,
            keep: Keep::All,
            shrinks: None,
            databases: None,
            lists: Lists::dropping_signatures(options.host.drop_signature),
            most_held: 0,
            held: Cell::new(0),
            kept: Cell::new(0),
        }
    }

    /// Edits each file by itself, and reports all of them.
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let mut reporter = FullReport::new(self.options, self.work);
        self.run_with(&mut reporter)
    }

    /// Edits each file by itself. The reporter gets the results in the order of the files.
    pub(crate) fn run_with(mut self, reporter: &mut dyn Reporter) -> io::Result<Outcome> {
        let inputs = Inputs::find(self.files);
        if let Some(fault) = self.options.output.fault(self.files) {
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
        if inputs.have_faults() {
            reporter.fail();
        }
        reporter.start(&inputs);
        let is_written = self.options.output.in_place && !self.options.output.dry_run;
        if is_written {
            self.lists.find_journals(inputs.files());
        }
        let loose = self.find_loose(&inputs)?;
        let (going, staying): (Vec<&Input>, Vec<&Input>) = inputs
            .files()
            .iter()
            .filter(|file| !loose.stays(file))
            .partition(|file| self.goes(file, &loose));
        loose.left.iter().for_each(|place| reporter.leave(place));
        loose.notes.iter().for_each(|note| reporter.say(&Message::Note(note.clone())));
        for fault in &loose.faults {
            reporter.say(&Message::Error(fault.clone()));
            reporter.fail();
        }
        let staying = staying.into_iter().map(|file| (file, false));
        for (file, is_going) in staying.chain(going.into_iter().map(|file| (file, true))) {
            if is_going && reporter.outcome() == Outcome::Faults {
                let text = "no file was deleted, as others could not be edited";
                reporter.say(&Message::Error(text.to_owned()));
                break;
            }
            let progress = Progress::start(&format!("{} {}", self.work.doing(), file.name()));
            let edited = self.edit_one(file, is_going, &loose);
            drop(progress);
            self.lists.take_said().iter().for_each(|message| reporter.say(message));
            reporter.take(file, edited)?;
        }
        if reporter.outcome() == Outcome::Clean
            && let Some(note) = loose.note(&inputs, self.options.limits.max_input)
        {
            reporter.say(&Message::Note(note));
        }
        if !self.lists.finish(is_written) {
            reporter.fail();
        }
        self.lists.take_said().iter().for_each(|message| reporter.say(message));
        reporter.end(directory.is_some())
    }

    /// Edits a file, or deletes it. A library whose device code is in kernel packs fails as one.
    fn edit_one(
        &mut self,
        file: &Input,
        is_going: bool,
        loose: &LooseFiles,
    ) -> Result<Vec<FileRow>, Failure> {
        let file = &file.held(self.open(file));
        let edited = if file.is_member() {
            Err("members are edited with their package: name that".to_owned().into())
        } else if is_going {
            self.delete(file).map(|row| vec![row])
        } else if loose.is_untouched(file) {
            let size = file.open(self.options.limits.max_input)?.metadata().len();
            let row = FileRow::untouched(file.name(), size);
            Ok(vec![row.written(self.options.output.dry_run, true)])
        } else {
            self.edit_any(file)
        };
        let output = &self.options.output;
        let can_stay = |failure: &Failure| match failure {
            Failure::Refused(_) => output.in_place || output.dry_run,
            _ => true,
        };
        let edited = edited.or_else(|failure| match file.open(self.options.limits.max_input) {
            Ok(opened) if can_stay(&failure) => {
                let contents = (opened.reader(), opened.metadata().len());
                self.staying(file.name(), contents, failure).map(|row| vec![row])
            }
            _ => Err(failure),
        });
        let mut rows = edited.map_err(|failure| {
            if matches!(failure, Failure::NotConcerned(_)) && !file.is_named() {
                return failure;
            }
            match file.split_host() {
                Some(host) if file.is_named() => host.describe().into(),
                Some(_) => Failure::NoCode,
                None => failure,
            }
        })?;
        if self.options.output.in_place {
            for row in &mut rows {
                if loose.keeps(file) && !row.changed {
                    row.notes.clear();
                }
                self.compare_unchanged(file, row);
                row.distributions = self.lists.distributions(file);
            }
        }
        Ok(rows)
    }

    /// Edits a file, or the members of a package.
    fn edit_any(&mut self, file: &Input) -> Result<Vec<FileRow>, Failure> {
        let opened = file.open(self.options.limits.max_input)?;
        self.most_held = self.options.limits.held_of(opened.metadata().len());
        self.held.set(0);
        self.kept.set(0);
        match Package::of(&opened) {
            Ok(Some(package)) if self.images.files.is_empty() => self.edit_package(file, &package),
            Ok(Some(_)) => {
                Err("is a package: images are added and replaced in files by themselves"
                    .to_owned()
                    .into())
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error.into()),
            _ => self.edit(file, opened).map(|row| vec![row]),
        }
    }

    /// Opens a file that is edited.
    fn open(&self, file: &Input) -> io::Result<Arc<Opened>> {
        if self.options.output.in_place && !file.is_below() {
            return Opened::regular(file.path()).map(Arc::new);
        }
        file.open(self.options.limits.max_input)
    }

    /// Returns whether a file is a loose image or one of a kernel database, and is deleted. One that cannot be read is not.
    fn goes(&self, file: &Input, loose: &LooseFiles) -> bool {
        if loose.goes(file) {
            return true;
        }
        let Some(Databases { rule, .. }) = self.databases.filter(|_| !file.is_named()) else {
            return false;
        };
        let Some(path) = file.real() else { return false };
        let Some(database) = rule.database(&path.to_string_lossy()) else { return false };
        let limits = &self.options.limits;
        file.open(limits.max_input).is_ok_and(|file| {
            let walk = limits.for_file(&limits.options(), file.metadata().len());
            rule.drops_database(&database, file.reader(), &walk).unwrap_or(false)
        })
    }

    fn delete(&mut self, file: &Input) -> Result<FileRow, Failure> {
        let size = file.open(self.options.limits.max_input)?.metadata().len();
        allow(self.options, &self.lists.compare(file, None)?)?;
        if !self.options.output.dry_run {
            self.lists.note(file, None)?;
            file.output()?.remove()?;
            self.lists.is_written();
        }
        Ok(FileRow::deleted(file.name(), size).written(self.options.output.dry_run, true))
    }

    fn edit(&mut self, named: &Input, opened: Arc<Opened>) -> Result<FileRow, Failure> {
        if self.options.output.build_tag.is_some() {
            return Err(no_wheel());
        }
        let new = self.images.narrow(opened.permissions());
        let (metadata, stamp) = (opened.metadata().clone(), opened.stamp());
        let (target, replaces) = self.output(named)?;

        let (contents, mut wishes, plan) = self.plan(opened.reader(), named.is_named())?;
        let changes = !plan.is_unchanged();
        wishes.notes.extend(note_holes(&plan).filter(|_| Outputs::appears_late(&target.path())));
        if changes && replaces {
            wishes.notes.extend(self.unseal(&opened.file)?);
            wishes.warnings.extend(self.compare(named, &opened.file)?);
        }
        if !self.options.output.dry_run && (changes || !replaces) {
            // The stamp detects another file that took the name.
            let how = How { new, replaces: replaces.then_some(stamp) };
            let (outputs, lost) = self.write(&plan, (named, &opened), &target, how)?;
            // Not every system replaces a file that is open.
            drop(opened);
            outputs.commit()?;
            if replaces {
                self.lists.is_written();
            }
            wishes.warnings.extend(lost);
            wishes.warnings.extend(attributes::other_names(&metadata).filter(|_| replaces));
        }
        let row = FileRow::new(named.name(), &target.path(), &contents, &plan, &wishes).tallied(
            self.shrinks,
            &contents,
            &plan,
            &wishes,
        );
        Ok(row.written(self.options.output.dry_run, replaces))
    }

    /// Returns the row of a file that stays as it is because it is refused, or has nothing for the targets, where that is no
    /// failure.
    ///
    /// # Errors
    ///
    /// Any other failure.
    pub(super) fn staying(
        &self,
        name: &str,
        (file, size): (Positioned<'_>, u64),
        failure: Failure,
    ) -> Result<FileRow, Failure> {
        let (rule, stays) = match (self.shrinks, failure) {
            (Some(rule), Failure::NotConcerned(_)) => (rule, Stays::Unconcerned),
            (Some(rule), Failure::Refused(why)) => (rule, Stays::Refused(why.join("; "))),
            (_, failure) => return Err(failure),
        };
        // What is damaged may have no sums.
        let listing = fat_object::list(file, &self.walk());
        let tally = listing.map(|listing| Tally::of(rule, listing.images(), |_| false));
        Ok(FileRow::staying(name, size, tally.unwrap_or_else(|_| Tally::default()), stays))
    }

    /// Returns warnings about a file that is about to be replaced, and differs from the lists that it is in.
    ///
    /// # Errors
    ///
    /// Such a file is refused unless findings are allowed.
    pub(super) fn compare(&mut self, input: &Input, file: &File) -> Result<Vec<String>, Failure> {
        let faults = self.lists.compare(input, Some(file))?;
        allow(self.options, &faults)
    }

    /// Warns of a file that stays, and has another size than the lists that it is in say.
    fn compare_unchanged(&mut self, file: &Input, row: &mut FileRow) {
        if !row.changed && row.about == About::File {
            let faults = self.lists.unchanged(file, row.size_before);
            let faults = faults.iter().map(|fault| format!("{fault}; its row is left as it is"));
            row.warnings.extend(faults);
        }
    }

    /// Returns the new file, and whether it replaces the old one.
    pub(super) fn output(&self, file: &Input) -> Result<(Name, bool), Failure> {
        let destination = &self.options.output;
        let target = match &destination.build_tag {
            // The name of the wheel has the tag as well.
            Some(tag) if destination.directory(file.path()).is_some() => {
                let is_wheel = file.path().extension().is_some_and(|extension| extension == "whl");
                let name = file.path().file_name().filter(|_| is_wheel).ok_or_else(no_wheel)?;
                let name = wheel_file_name(&name.to_string_lossy(), tag)
                    .map_err(|error| error.to_string())?;
                destination.target(&file.path().with_file_name(name))
            }
            _ => destination.target(file.path()),
        };
        let replaces = is_same(file.path(), &target);
        let name = if replaces && file.is_below() { file.output()? } else { Name::Typed(target) };
        Ok((name, replaces))
    }

    /// Returns the note that a kernel's signature of the file is dropped, if it has one and that is allowed.
    pub(super) fn unseal(&self, input: &File) -> Result<Option<String>, Failure> {
        let Some(seal) = attributes::seal(input) else { return Ok(None) };
        if !self.options.host.drop_signature {
            return Err(Failure::refused(format!(
                "file is signed ({seal}); the signature would become invalid \
                 (allow editing with --drop-signature)"
            )));
        }
        Ok(Some(format!("its signature ({seal}) is dropped")))
    }

    /// Surveys a file, and plans what is decided.
    pub(super) fn plan(
        &self,
        input: Positioned<'_>,
        is_named: bool,
    ) -> Result<(EditableFile, Wishes, EditPlan), Failure> {
        let (contents, warnings) = self.survey(input)?;
        if contents.containers().is_empty() {
            return Err(Failure::NoCode);
        }
        let walk = self.walk();
        let subject = Subject { is_named, contents: &contents, file: input, walk: &walk };
        let mut wishes = (self.decide)(&subject)?;
        wishes.warnings.extend(warnings);
        let plan = contents
            .plan(input, &wishes.edit)
            .map_err(|error| refused(&error, self.images, &contents, &wishes))?;
        for note in plan.notes() {
            wishes.notes.push(describe(note, &contents, &wishes));
        }
        Ok((contents, wishes, plan))
    }

    /// Returns how many further bytes may be held.
    pub(super) fn room(&self) -> u64 {
        // A member may be kept that took all the room.
        self.most_held.saturating_sub(self.held.get() + self.kept.get())
    }

    /// Returns the options of a walk that may hold them.
    pub(super) fn walk(&self) -> fat_object::Options {
        self.options.limits.options().with_max_decompressed(self.room())
    }

    /// Returns the contents of the file, and those of its findings that are allowed.
    fn survey(&self, input: Positioned<'_>) -> Result<(EditableFile, Vec<String>), Failure> {
        let allow_findings = self.options.host.allow_findings;
        let walk = self.walk();
        let opens = self.needs_images() || allow_findings;
        let mut warnings = Vec::new();
        let mut contents = if opens { survey(input, &walk) } else { survey_closed(input, &walk) };
        match &contents {
            // Compressed bundles stay beside bundles that are compressed now.
            Ok(surveyed)
                if !opens && self.work == Work::Compress && surveyed.is_compressed_in_part() =>
            {
                contents = survey(input, &walk);
            }
            Err(error) if allow_findings && is_about_hash(error) => {
                warnings.push(format!("{error}; hashes are not compared"));
                contents = survey(input, &walk.with_verify_hash(false));
            }
            _ => {}
        }
        let contents = contents.map_err(|error| explain(&error, self.images))?;
        warnings.extend(allow(self.options, contents.findings())?);
        Ok((contents, warnings))
    }

    /// Returns whether compressed bundles are opened before they are edited. Their result as a whole is checked
    /// while it is written.
    fn needs_images(&self) -> bool {
        match self.work {
            Work::Edit => true,
            Work::Compress => false,
            Work::Decompress => self.options.output.dry_run,
        }
    }

    /// Writes the new file, which has no name yet. Returns warnings about attributes of the old one that could not be
    /// kept.
    fn write(
        &mut self,
        plan: &EditPlan,
        (named, opened): (&Input, &Opened),
        target: &Name,
        how: How,
    ) -> Result<(Outputs, Vec<String>), Failure> {
        let mut outputs = Outputs::default();
        let filled = outputs.write_named_or_print(target, how, |out| {
            match plan.write(&opened.file, &mut *out) {
                Ok(()) if opened.check().is_err() => {
                    return Ok(Err("the file was changed during the edit".to_owned().into()));
                }
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Write => return Err(error.into()),
                Err(error) => return Ok(Err(explain(&error, self.images))),
            }
            if Outputs::appears_late(&target.path()) {
                holes::make(out, plan.zeros(&holes::of(&opened.file)));
            }
            if how.replaces.is_none() {
                return Ok(Ok(Vec::new()));
            }
            let lost = attributes::hand_over(&opened.file, opened.metadata(), out)?;
            Ok(self.lists.note(named, Some(out)).map_err(Failure::from).map(|()| lost))
        });
        Ok((outputs, filled??))
    }
}

/// Returns the note about the pages of zeros that an edit leaves, which are holes where the file system has them.
fn note_holes(plan: &EditPlan) -> Option<String> {
    let size = holes::size(plan.zeros(&[]));
    (size > 0 && plan.zeroed() > 0).then(|| {
        format!("{} of its zeros can be holes, which take no space on a disk", style::size(size))
    })
}
