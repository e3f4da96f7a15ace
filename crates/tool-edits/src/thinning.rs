//! The removal of device code by a rule.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use bundle_format::EntryId;
use device_select::{Decision, Missing, Rule, Wanted, is_compiler_library, is_host, names};
use fat_edit::EditableFile;
use fat_object::{FileFormat, ImageInfo};

use super::editor::{Editor, Subject};
use super::loose::Databases;
use super::options::{Options, Uneditable};
use super::report::Work;
use super::wishes::Wishes;
use tool_inputs::package::Images;
use tool_kit::Outcome;
use tool_kit::failure::Failure;
use tool_kit::store::Keep;

/// The most faults of one kind that are reported one by one.
const MOST_FAULTS: usize = 10;

/// The permissions to remove more, or to leave more as it is.
#[derive(Clone, Copy, Debug)]
pub struct Permits {
    /// Files are one environment: named files without code for the targets are left alone, as those of directories are, and loose
    /// images for other GPUs of the same vendor go, also where all go.
    pub is_environment: bool,
    /// A file may lack code for a target of the rule.
    pub missing: bool,
    /// A container may lose all its device images.
    pub empty: bool,
    /// Code may go that a GPU of the rule would load.
    pub unserved: bool,
    /// Files of kernel databases and loose images for other GPUs are deleted.
    pub databases: bool,
    /// Device code that cannot be edited may stay as it is.
    pub uneditable: Uneditable,
}

/// The removal of device code by a rule.
#[derive(Debug)]
pub struct Thinning<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The permissions.
    pub permits: Permits,
    /// The options of the edit.
    pub options: &'a Options,
}

impl Thinning<'_> {
    /// Runs an editor of these files, which decides by the rule.
    ///
    /// # Errors
    ///
    /// The errors of `run`.
    pub fn edit(
        &self,
        files: &[PathBuf],
        run: impl FnOnce(Editor<'_>) -> io::Result<Outcome>,
    ) -> io::Result<Outcome> {
        let is_kept = |id: &str| {
            let id = EntryId::parse(id).ok();
            id.is_none_or(|id| id.is_host() || self.rule.keeps(&id.target()))
        };
        let images = Images(&is_kept);
        let decide = |subject: &Subject<'_>| self.decide(subject);
        let editor = Editor::new(files, self.options, Work::Edit, &decide);
        let editor = editor.with_keep(Keep::Needed(&images));
        if !self.permits.databases {
            return run(editor);
        }
        run(editor.with_databases(Databases {
            rule: self.rule,
            allow_missing: self.permits.missing,
            allow_other_gpus: self.permits.is_environment,
            allow_empty: self.permits.empty,
        }))
    }

    /// Returns the option of the rule, and with its arguments.
    fn typed(&self) -> (&'static str, String) {
        let (option, exact, drop_ptx) = match self.rule {
            Rule::Keep { exact, drop_ptx, .. } => ("--keep", *exact, *drop_ptx),
            Rule::Drop { .. } => ("--drop", false, false),
        };
        let typed: Vec<_> = self.rule.wanted().iter().map(Wanted::text).collect();
        let options = [(exact, " --exact"), (drop_ptx, " --drop-ptx")];
        let options = options.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name);
        (option, format!("{option} {}{}", typed.join(","), options.collect::<String>()))
    }

    /// Decides about a file.
    ///
    /// # Errors
    ///
    /// A failure if the file has no code for the targets, or would lose more than is permitted.
    pub fn decide(&self, subject: &Subject<'_>) -> Result<Wishes, Failure> {
        let Thinning { rule, permits, options } = self;
        let contents = subject.contents;
        let images = contents.images();
        // Libraries of compilers stay in an environment, and the report leaves them out.
        let is_left = |image| permits.is_environment && is_compiler_library(image);
        if images.iter().all(|image| is_host(image) || is_left(image)) {
            return Err(Failure::NoCode);
        }
        let (option, typed) = self.typed();
        let missing = rule.missing(images);
        let why = |one: &Missing<'_>| {
            let has = names(images.iter().filter(|image| !is_host(image)));
            format!("{option} {}: {}", one.text(), one.words(&has))
        };
        let is_named = subject.is_named && !permits.is_environment;
        // A directory has files for other GPUs, too. These lose their code only if both is permitted.
        let is_concerned = missing.len() < rule.wanted().len();
        let may_go = permits.missing && permits.empty;
        if !missing.is_empty() && !is_named && !is_concerned && !may_go {
            if !(permits.is_environment && rule.may_empty(images)) {
                return Err(Failure::NotConcerned(missing.iter().map(why).collect()));
            }
            if !subject.is_last {
                return Err(Failure::Postponed);
            }
        }
        if !missing.is_empty() && is_named && !permits.missing {
            let missing =
                missing.iter().map(|one| format!("{}; --allow-missing ignores this", why(one)));
            return Err(Failure::Refused(missing.collect()));
        }

        let mut wishes = options.wishes(permits.uneditable, subject.threads);
        wishes.warnings.extend(rule.doubts(images));
        let decision = rule.decide(images);
        decision.go.iter().for_each(|image| wishes.edit.remove(image.index()));
        let mut faults = Vec::new();
        if !permits.empty {
            let why = match rule {
                Rule::Keep { .. } => "matches no image of",
                Rule::Drop { .. } => "leaves no image in",
            };
            faults.extend(wishes.emptied(contents).map(|(place, had)| {
                format!("{typed} {why} {place} (has: {had}); --allow-empty permits this")
            }));
        }
        if !permits.unserved && faults.is_empty() {
            let container =
                |image: &&ImageInfo| Some(contents.container_of(image.index())?.index());
            let unserved: BTreeSet<usize> =
                decision.unserved.iter().filter_map(container).collect();
            let unserved = unserved.iter().filter_map(|index| contents.containers().get(*index));
            faults.extend(unserved.map(|container| {
                let name = container.place();
                format!(
                    "{typed} removes all that a GPU loads from {name}; --allow-unserved permits this"
                )
            }));
        }
        if !faults.is_empty() {
            return Err(Failure::Refused(first_of(faults)));
        }
        report(&decision, contents, &typed, &mut wishes);
        Ok(wishes)
    }
}

/// Returns the first of many faults, which are alike, and the number of the others.
fn first_of(mut faults: Vec<String>) -> Vec<String> {
    if let Some(more @ 1..) = faults.len().checked_sub(MOST_FAULTS) {
        faults.truncate(MOST_FAULTS);
        faults.push(format!("the same of {more} more containers"));
    }
    faults
}

/// Reports images that stay though not asked for, images that are dropped and hold other code than their entries say,
/// and fatbinaries without PTX.
fn report(decision: &Decision<'_>, contents: &EditableFile, typed: &str, wishes: &mut Wishes) {
    let names = |images: &[&ImageInfo]| names(images.iter().copied());
    let Wishes { edit, notes, warnings } = wishes;
    if !decision.stay_too.is_empty() {
        let (spirv, native): (Vec<_>, Vec<_>) =
            decision.stay_too.iter().partition(|image| image.format() == FileFormat::SpirV);
        let mut also = names(&native);
        if !spirv.is_empty() {
            let comma = if also.is_empty() { "" } else { ", " };
            also += &format!("{comma}{} (SPIR-V)", names(&spirv));
        }
        notes.push(format!("{typed} also keeps {also}, which it could load (--exact does not)"));
    }
    let n = edit.without_ptx(contents);
    if n > 0 {
        let fatbinaries = if n == 1 { "fatbinary" } else { "fatbinaries" };
        notes.push(format!("no PTX left in {n} {fatbinaries}: newer GPUs will not run their code"));
    }
    if !decision.misnamed.is_empty() {
        let names = names(&decision.misnamed);
        warnings.push(format!(
            "{typed} removes images that hold other code than their entries say: {names}"
        ));
    }
    if !decision.stay_unknown.is_empty() {
        let n = decision.stay_unknown.len();
        let images = if n == 1 { "image, whose" } else { "images, whose" };
        warnings.push(format!(
            "{typed} also keeps {n} {images} target is not known (--exact does not)"
        ));
    }
}
