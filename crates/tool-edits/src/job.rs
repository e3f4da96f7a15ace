//! The edit of one file.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use device_select::{SplitLibrary, Tally};
use fat_edit::{EditPlan, EditableFile, ErrorKind, survey, survey_closed};

use super::editor::{Editor, Subject};
use super::loose::{LooseFate, LooseFiles};
use super::report::{About, FileRow, Stays, Work};
use super::wishes::Wishes;
use super::words::{allow, describe, explain, grows, is_about_hash, no_wheel, refused};
use tool_inputs::inputs::Input;
use tool_inputs::package::Package;
use tool_inputs::records::{Listed, Lists};
use tool_kit::attributes;
use tool_kit::failure::Failure;
use tool_kit::holes;
use tool_kit::opened::Opened;
use tool_kit::output::{How, Name, Outputs, is_same};
use tool_kit::parallel::Share;
use tool_kit::positioned::Positioned;
use tool_kit::style;

/// The rows of a file, or of a package and its members; or the reason why it was not edited.
pub(crate) type Edited = Result<Vec<FileRow>, Failure>;

/// The fate of a file.
pub(crate) enum Step {
    Done(Edited),
    /// It is deleted, after all others were edited.
    Delete,
    /// It loses all its code, after all others were edited.
    Empty,
}

/// When a file is edited: one that would lose all its code is edited after all others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// With all others: it is postponed.
    First,
    /// After the others: it loses all its code.
    Last,
    /// After the others: it stays as it is.
    Left,
}

/// The edit of one file, or of a package.
pub(crate) struct Job<'e> {
    pub(crate) editor: &'e Editor<'e>,
    pub(crate) lists: &'e Mutex<Lists>,
    pub(crate) listed: Listed<'e>,
    pub(crate) loose: &'e LooseFiles,
    pub(crate) share: Share,
    /// The time of the edit.
    pub(crate) stage: Cell<Stage>,
    /// `true` if it failed, and may not with more than the share.
    needs_more: Cell<bool>,
    /// The most bytes that may be held beside the file, those of the member that is edited now, and those of new members.
    pub(crate) most_held: u64,
    pub(crate) held: Cell<u64>,
    pub(crate) kept: Cell<u64>,
}

impl<'e> Job<'e> {
    pub(crate) fn new(
        editor: &'e Editor<'e>,
        (lists, loose): (&'e Mutex<Lists>, &'e LooseFiles),
        share: Share,
    ) -> Self {
        Job {
            editor,
            lists,
            listed: Listed::new(lists),
            loose,
            share,
            stage: Cell::new(Stage::First),
            needs_more: Cell::new(false),
            most_held: 0,
            held: Cell::new(0),
            kept: Cell::new(0),
        }
    }

    /// Edits a file, unless it is one that comes last.
    ///
    /// # Errors
    ///
    /// The share may be too small: this counts for nothing.
    pub(crate) fn edit(mut self, file: &Input) -> Result<Step, Step> {
        if self.loose.fate(file) == Some(LooseFate::Stays) {
            return Ok(Step::Done(Ok(Vec::new())));
        }
        let step = if self.goes(file) {
            Step::Delete
        } else {
            match self.rows_of(file, Self::edit_any) {
                Err(Failure::Postponed) => Step::Empty,
                edited => Step::Done(edited),
            }
        };
        if self.needs_more.get() { Err(step) } else { Ok(step) }
    }

    /// Edits a file that was postponed, or leaves it.
    pub(crate) fn edit_last(mut self, file: &Input, stage: Stage) -> Edited {
        self.stage.set(stage);
        self.rows_of(file, Self::edit_any)
    }

    /// Deletes a file.
    pub(crate) fn delete(mut self, file: &Input) -> Edited {
        self.rows_of(file, |job, file| job.delete_file(file).map(|row| vec![row]))
    }

    /// Does something with an open file. A library whose device code is in kernel packs fails as one.
    fn rows_of(&mut self, file: &Input, work: impl FnOnce(&mut Self, &Input) -> Edited) -> Edited {
        // Windows does not replace a file that is open.
        let file = &if cfg!(windows) { file.clone() } else { file.held(self.open(file)) };
        let edited = if file.is_member() {
            Err("members are edited with their package: name that".to_owned().into())
        } else {
            work(self, file)
        };
        let output = &self.editor.options.output;
        let can_stay = |failure: &Failure| match failure {
            Failure::Refused(_) => output.in_place || output.dry_run,
            Failure::Postponed => self.stage.get() != Stage::First,
            _ => true,
        };
        let max = self.editor.options.limits.max_input;
        let edited = edited.or_else(|failure| match file.open(max) {
            Ok(opened) if can_stay(&failure) && file.split_host().is_none() => {
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
        if self.editor.options.output.in_place {
            let distributions = self.listed.distributions(file);
            for row in &mut rows {
                if self.loose.fate(file) == Some(LooseFate::Kept) && !row.changed {
                    row.notes.clear();
                }
                self.compare_unchanged(file, row);
                row.distributions.clone_from(&distributions);
            }
        }
        Ok(rows)
    }

    /// Edits a file, or the members of a package. A package has several threads, and what it holds, by itself.
    fn edit_any(&mut self, file: &Input) -> Edited {
        let editor = self.editor;
        if let Some(edited) = self.edit_layout(file) {
            return edited;
        }
        let opened = file.open(editor.options.limits.max_input)?;
        if self.loose.fate(file) == Some(LooseFate::Untouched) {
            let row = FileRow::untouched(file.name(), opened.metadata().len());
            return Ok(vec![row.written(editor.options.output.dry_run, true)]);
        }
        self.most_held = editor.options.limits.held_of(opened.metadata().len());
        if let Some(edited) = self.edit_archive(file, &opened) {
            return edited;
        }
        match Package::of(&opened) {
            Ok(Some(_)) if self.share.bytes.is_some() => Err(self.missed(Failure::NoCode)),
            Ok(Some(package)) if editor.images.files.is_empty() => {
                self.edit_package(file, &package)
            }
            Ok(Some(_)) => Err(Failure::refused(
                "is a package: images are added and replaced in files by themselves",
            )),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error.into()),
            _ => self.edit_file(file, opened).map(|row| vec![row]),
        }
    }

    /// Returns whether it failed, and may not with more than the share.
    pub(crate) fn needs_more(&self) -> bool {
        self.needs_more.get()
    }

    /// Opens a file that is edited.
    fn open(&self, file: &Input) -> io::Result<Arc<Opened>> {
        if self.editor.options.output.in_place && !file.is_below() {
            return Opened::regular(file.path()).map(Arc::new);
        }
        file.open(self.editor.options.limits.max_input)
    }

    /// Returns whether a file is a loose image or one of a kernel database, and is deleted. One that cannot be read is not.
    fn goes(&self, file: &Input) -> bool {
        // The place of a loose image says what becomes of it, also if it is a file of a kernel database.
        if let Some(fate) = self.loose.fate(file) {
            return matches!(fate, LooseFate::Goes(_));
        }
        let databases = self.editor.databases.filter(|_| !file.is_named());
        let Some((databases, path)) = databases.zip(file.real()) else { return false };
        let Some(database) = databases.database(&path.to_string_lossy()) else { return false };
        let limits = &self.editor.options.limits;
        file.open(limits.max_input).is_ok_and(|file| {
            let walk = limits.for_file(&limits.options(), file.metadata().len());
            // The edit of one that needs more misses it as well.
            let walk = walk.with_max_held(self.share.bytes);
            databases.rule.drops_database(&database, file.reader(), &walk).unwrap_or(false)
        })
    }

    fn delete_file(&mut self, file: &Input) -> Result<FileRow, Failure> {
        let opened = file.open(self.editor.options.limits.max_input)?;
        let is_judged = match self.loose.fate(file) {
            Some(LooseFate::Goes(stamp)) => stamp == opened.stamp(),
            _ => self.goes(file),
        };
        if !is_judged {
            return Err("the file was changed after it was read".to_owned().into());
        }
        let size = opened.metadata().len();
        allow(self.editor.options, &self.listed.compare(file, None)?)?;
        if !self.editor.options.output.dry_run {
            self.listed.note(file, None)?;
            file.output()?.remove()?;
            self.listed.is_written();
        }
        Ok(FileRow::deleted(file.name(), size).written(self.editor.options.output.dry_run, true))
    }

    fn edit_file(&mut self, named: &Input, opened: Arc<Opened>) -> Result<FileRow, Failure> {
        if self.editor.is_for_wheels() {
            return Err(no_wheel());
        }
        let new = self.editor.images.narrow(opened.permissions());
        let (metadata, stamp) = (opened.metadata().clone(), opened.stamp());
        let (target, replaces) = self.output(named)?;

        let (contents, mut wishes, plan) = self.plan(opened.reader(), named.is_named())?;
        let changes = !plan.is_unchanged();
        wishes.notes.extend(note_holes(&plan).filter(|_| Outputs::appears_late(&target.path())));
        if changes && replaces {
            wishes.notes.extend(self.unseal(&opened.file)?);
            wishes.warnings.extend(self.compare(named, &opened.file)?);
        }
        if !self.editor.options.output.dry_run && (changes || !replaces) {
            // The stamp detects another file that took the name.
            let how = How { new, replaces: replaces.then_some(stamp) };
            let (outputs, lost) = self.write(&plan, (named, &opened), &target, how)?;
            // Not every system replaces a file that is open.
            drop(opened);
            outputs.commit()?;
            if replaces {
                self.listed.is_written();
            }
            wishes.warnings.extend(lost);
            wishes.warnings.extend(attributes::other_names(&metadata).filter(|_| replaces));
        }
        let names = (named.name(), &*target.path());
        let row = FileRow::new(names, &contents, &plan, &wishes, self.editor.shrinks);
        Ok(row.written(self.editor.options.output.dry_run, replaces))
    }

    /// Returns why a package of `old` bytes stays as it is if it only shrinks, and would have `new` bytes. A new variant or build of a
    /// wheel is another wheel, whatever its size.
    pub(crate) fn must_not_grow(&self, old: u64, new: u64) -> Option<String> {
        let only_shrinks = self.editor.shrinks.is_some() && !self.editor.is_for_wheels();
        (only_shrinks && new > old).then(|| grows(old, new))
    }

    /// Returns the row of a file that stays as it is, where a refusal is not a failure.
    ///
    /// # Errors
    ///
    /// Any other failure.
    pub(crate) fn staying(
        &self,
        name: &str,
        (file, size): (Positioned<'_>, u64),
        failure: Failure,
    ) -> Result<FileRow, Failure> {
        let (rule, stays) = match (self.editor.shrinks, failure) {
            (Some(rule), Failure::NotConcerned(_) | Failure::Postponed) => {
                (rule, Stays::Unconcerned)
            }
            (Some(rule), Failure::Refused(why)) => (rule, Stays::Refused(why.join("; "))),
            (_, failure) => return Err(failure),
        };
        // Damaged files may have no sums.
        let listing = fat_object::list(file, &self.walk());
        let tally = listing.map(|listing| Tally::of(rule, listing.images(), |_| false));
        let row = FileRow::staying(name, size, tally.unwrap_or_else(|_| Tally::default()), stays);
        Ok(row.written(self.editor.options.output.dry_run, self.editor.options.output.in_place))
    }

    /// Returns warnings about a file that is about to be replaced, and differs from the lists that it is in.
    ///
    /// # Errors
    ///
    /// Such a file is refused unless findings are allowed.
    pub(crate) fn compare(&mut self, input: &Input, file: &File) -> Result<Vec<String>, Failure> {
        let faults = self.listed.compare(input, Some(file))?;
        allow(self.editor.options, &faults)
    }

    /// Warns of a file that stays, and has another size than the lists that it is in say.
    fn compare_unchanged(&mut self, file: &Input, row: &mut FileRow) {
        if !row.changed && row.about == About::File {
            let faults = self.listed.unchanged(file, row.size_before);
            let faults = faults.iter().map(|fault| format!("{fault}; its row is left as it is"));
            row.warnings.extend(faults);
        }
    }

    /// Returns the new file, and whether it replaces the old one.
    pub(crate) fn output(&self, file: &Input) -> Result<(Name, bool), Failure> {
        let destination = &self.editor.options.output;
        let name = if self.editor.is_for_wheels() && destination.directory(file.path()).is_some() {
            let is_wheel = file.path().extension().is_some_and(|extension| extension == "whl");
            let name = file.path().file_name().filter(|_| is_wheel).ok_or_else(no_wheel)?;
            Some(self.editor.new_name(&name.to_string_lossy()).map_err(|e| e.to_string())?)
        } else {
            None
        };
        let target = match name {
            Some(name) => destination.target(&file.path().with_file_name(name)),
            None => destination.target(file.path()),
        };
        let replaces = is_same(file.path(), &target);
        let name = if replaces && file.is_below() { file.output()? } else { Name::Typed(target) };
        Ok((name, replaces))
    }

    /// Returns the note that a kernel's signature of the file is dropped, if it has one and that is allowed.
    pub(crate) fn unseal(&self, input: &File) -> Result<Option<String>, Failure> {
        let Some(seal) = attributes::seal(input) else { return Ok(None) };
        if !self.editor.options.host.drop_signature {
            return Err(Failure::refused(format!(
                "file is signed ({seal}); the signature would become invalid \
                 (allow editing with --drop-signature)"
            )));
        }
        Ok(Some(format!("its signature ({seal}) is dropped")))
    }

    /// Surveys a file, and plans what is decided.
    pub(crate) fn plan(
        &self,
        input: Positioned<'_>,
        is_named: bool,
    ) -> Result<(EditableFile, Wishes, EditPlan), Failure> {
        let (contents, warnings) = self.survey(input)?;
        if contents.containers().is_empty() {
            return Err(Failure::NoCode);
        }
        let (file, walk, threads) = (input, self.walk(), self.share.threads);
        let is_last = self.stage.get() == Stage::Last;
        let subject =
            Subject { is_named, is_last, contents: &contents, file, walk: &walk, threads };
        let mut wishes = (self.editor.decide)(&subject)?;
        wishes.warnings.extend(warnings);
        let plan = contents.plan(input, &wishes.edit).map_err(|error| {
            self.missed(refused(&error, self.editor.images, &contents, &wishes))
        })?;
        for note in plan.notes() {
            wishes.notes.push(describe(note, &contents, &wishes));
        }
        Ok((contents, wishes, plan))
    }

    /// Returns how many further bytes may be held.
    pub(crate) fn room(&self) -> u64 {
        // A member may be kept that took all the room.
        self.most_held.saturating_sub(self.held.get() + self.kept.get())
    }

    /// Returns the options of a walk that may hold them.
    pub(crate) fn walk(&self) -> fat_object::Options {
        let walk = self.editor.options.limits.options().with_max_decompressed(self.room());
        walk.with_max_held(self.share.bytes)
    }

    /// Returns the same failure, which counts for nothing if there is only a share.
    pub(crate) fn missed(&self, failure: Failure) -> Failure {
        self.needs_more.set(self.share.bytes.is_some());
        failure
    }

    /// Returns the contents of the file, and those of its findings that are allowed.
    fn survey(&self, input: Positioned<'_>) -> Result<(EditableFile, Vec<String>), Failure> {
        let allow_findings = self.editor.options.host.allow_findings;
        let walk = self.walk();
        let opens = self.needs_images() || allow_findings;
        let mut warnings = Vec::new();
        let mut contents = if opens { survey(input, &walk) } else { survey_closed(input, &walk) };
        match &contents {
            // Compressed bundles stay beside bundles that are compressed now.
            Ok(surveyed)
                if !opens
                    && self.editor.work == Work::Compress
                    && surveyed.is_compressed_in_part() =>
            {
                contents = survey(input, &walk);
            }
            Err(error) if allow_findings && is_about_hash(error) => {
                warnings.push(format!("{error}; hashes are not compared"));
                contents = survey(input, &walk.with_verify_hash(false));
            }
            _ => {}
        }
        let contents =
            contents.map_err(|error| self.missed(explain(&error, self.editor.images)))?;
        if !contents.findings().is_empty() && self.share.bytes.is_some() {
            return Err(self.missed(Failure::NoCode));
        }
        warnings.extend(allow(self.editor.options, contents.findings())?);
        Ok((contents, warnings))
    }

    /// Returns whether compressed bundles are opened before they are edited. Their result as a whole is checked
    /// while it is written.
    fn needs_images(&self) -> bool {
        match self.editor.work {
            Work::Edit => true,
            Work::Compress => false,
            Work::Decompress => self.editor.options.output.dry_run,
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
                Err(error) => return Ok(Err(self.missed(explain(&error, self.editor.images)))),
            }
            if Outputs::appears_late(&target.path()) {
                holes::make(out, plan.zeros(&holes::of(&opened.file)));
            }
            if how.replaces.is_none() {
                return Ok(Ok(Vec::new()));
            }
            let lost = attributes::hand_over(&opened.file, opened.metadata(), out)?;
            Ok(self.listed.note(named, Some(out)).map_err(Failure::from).map(|()| lost))
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
