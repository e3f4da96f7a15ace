//! Edits of packages: their members are edited, and their records corrected.

use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::{Database, few};
use fat_edit::EditPlan;
use fat_object::FileFormat;
use gpu_packages::{
    Error, ErrorKind, Finding, NewContents, Original, PackageEdit, PackageForm, PackageKind,
    Replacement, Rewrite, RewriteOptions, Rewritten, Zip, ZipMember, changes_stream,
    rewrite_stream, stale_lists, verify,
};

use super::job::{Job, Stage};
use super::loose::LooseMembers;
use super::members::Members;
use super::report::{About, FileRow, Stays};
use super::words::{allow, explain, no_wheel, of_package as of};
use tool_inputs::inputs::Input;
use tool_inputs::package::{HEAD, Package};
use tool_kit::attributes;
use tool_kit::budget::Budget;
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::output::{How, Outputs};
use tool_kit::piped::Piped;
use tool_kit::positioned::Positioned;
use tool_kit::retried::Retried;
use tool_kit::store::{Keep, Store, StoreReader, TOO_SMALL};

/// A package that is edited, and what became of its members.
struct Edited<'a> {
    name: &'a str,
    package: &'a Package,
    target: PathBuf,
    dry_run: bool,
    /// Findings of the package that are allowed.
    warnings: Vec<String>,
    members: Members,
    /// The reason why the package stays as it is although members could change.
    stays: Option<String>,
    /// The loose images, whose place says what becomes of them.
    loose: LooseMembers,
}

/// The plan of a member, if it changes, with its row in the report.
pub(crate) type Planned = Result<(Option<EditPlan>, FileRow), Failure>;

impl Job<'_> {
    /// Edits all members of a package, and writes it again. Files of kernel databases for other GPUs are left out.
    pub(crate) fn edit_package(
        &mut self,
        named: &Input,
        package: &Package,
    ) -> Result<Vec<FileRow>, Failure> {
        let dry_run = self.editor.options.output.dry_run;
        let (output, replaces) = self.output(named)?;
        let target = output.path();
        let opened = &package.opened;
        let limits = &self.editor.options.limits;
        let loose =
            self.editor.databases.map(|it| it.loose_members(package, limits)).transpose()?;
        let (metadata, stamp) = (opened.metadata(), opened.stamp());
        let mut edited = Edited {
            name: named.name(),
            package,
            target: target.clone(),
            dry_run,
            warnings: Vec::new(),
            members: Members::default(),
            stays: None,
            // Without databases nothing is left out.
            loose: loose.unwrap_or_else(LooseMembers::new),
        };
        let mut warnings = Vec::new();
        // A zip archive is laid out before it is written; other packages are written while they are read.
        let rewrite = match &package.form {
            PackageForm::Zip(zip) => Some(self.edit_zip(&mut edited, zip)?),
            PackageForm::Stream(_) => None,
        };
        if let Some(rewrite) = &rewrite {
            edited.stays = self.must_not_grow(metadata.len(), rewrite.size());
            edited.stays.iter().for_each(|why| edited.members.keep_all(why));
        }
        let seal = if replaces { self.unseal(&opened.file)? } else { None };
        if replaces && edited.members.changes_some() {
            warnings.extend(self.compare(named, &opened.file)?);
        }
        let mut size = rewrite.as_ref().map_or(0, Rewrite::size);
        if edited.stays.is_some() {
            size = metadata.len();
        }
        let is_for_nothing = replaces && rewrite.is_some() && !edited.members.changes_some();
        if dry_run && rewrite.is_none() {
            size = self.edit_stream(&mut edited, &mut Retried::Counted(0), replaces)?;
        } else if !dry_run && !is_for_nothing {
            let how = How { new: opened.permissions(), replaces: replaces.then_some(stamp) };
            let mut outputs = Outputs::default();
            outputs.write_named_or_print(&output, how, |out| {
                match &rewrite {
                    Some(_) if edited.stays.is_some() => {
                        io::copy(&mut opened.reader(), out)?;
                    }
                    Some(rewrite) => rewrite.write_to(&opened.file, &mut *out)?,
                    None => {
                        let mut edit =
                            |out: &mut Retried<'_>| self.edit_stream(&mut edited, out, replaces);
                        let new = if target.as_os_str() == "-" {
                            Retried::through("the new package", out, edit)
                        } else {
                            edit(&mut Retried::File(out))
                        };
                        match new {
                            Ok(new) => size = new,
                            Err(failure) => return Ok(Err(failure)),
                        }
                    }
                }
                opened.check()?;
                if replaces {
                    warnings.extend(attributes::hand_over(&opened.file, metadata, out)?);
                }
                if !replaces || !edited.members.changes_some() {
                    return Ok(Ok(()));
                }
                let noted = match rewrite {
                    Some(_) => Ok(Vec::new()),
                    None => self.compare(named, &opened.file),
                };
                Ok(noted.and_then(|faults| {
                    warnings.extend(faults);
                    Ok(self.listed.note(named, Some(out))?)
                }))
            })??;
            if edited.members.changes_some() || !replaces {
                outputs.commit()?;
                self.listed.is_written();
                warnings.extend(attributes::other_names(metadata).filter(|_| replaces));
            }
        }
        let changed = edited.members.changes_some();
        warnings.append(&mut edited.warnings);
        let mut notes = edited.notes();
        notes.extend(seal.filter(|_| changed));
        let mut whole = FileRow::default();
        (whole.file, whole.output) = (named.name().to_owned(), input::display(&target));
        (whole.size_before, whole.size_after) = (metadata.len(), size);
        (whole.about, whole.changed) = (About::Package, changed);
        (whole.notes, whole.warnings) = (notes, warnings);
        whole.stays = edited.stays.map_or(Stays::Nothing, Stays::Refused);
        let mut rows = edited.members.rows;
        rows.push(whole.written(dry_run, replaces));
        Ok(rows)
    }

    /// Edits the members of a zip archive, and lays it out again.
    fn edit_zip(&self, edited: &mut Edited<'_>, zip: &Zip) -> Result<Rewrite, Failure> {
        let reader = edited.package.opened.reader();
        let mut edit = PackageEdit::new(zip, reader).map_err(of)?;
        edited.allow(allow(self.editor.options, edit.findings()), edit.findings())?;
        let mut postponed = Vec::new();
        for (at, member) in zip.members().iter().enumerate() {
            let name = String::from_utf8_lossy(member.name()).into_owned();
            let goes = match edited.loose.get(member.name()) {
                Some(goes) => *goes,
                None => self.zip_member_goes((zip, at), &name, reader)?,
            };
            if goes {
                edit.remove(at);
                edited.delete(&name, member.size());
                continue;
            }
            if self.put_zip_member(edited, &mut edit, (zip, at), &name)? {
                postponed.push((at, name));
            }
        }
        let has_code = edited.members.rows.iter().any(|row| row.tally.kept.total() > 0);
        self.stage.set(if has_code { Stage::Last } else { Stage::Left });
        for (at, name) in postponed {
            self.put_zip_member(edited, &mut edit, (zip, at), &name)?;
        }
        edited.members.check(self.editor.shrinks.is_some())?;
        let is_for_wheels = self.editor.is_for_wheels();
        match zip.kind() {
            PackageKind::Wheel => edited.members.unopened.lists.clear(),
            _ if is_for_wheels => return Err(no_wheel()),
            _ => {}
        }
        let tag = self.editor.options.output.build_tag.as_deref();
        if let Some(variant) = self.editor.variant {
            edit.set_variant(variant.clone());
        }
        let rewrite =
            edit.plan(reader, tag, self.editor.options.host.drop_signature).map_err(of)?;
        edited.members.has_other_changes |= is_for_wheels;
        edited.members.unlisted.extend(rewrite.unlisted().map(text));
        Ok(rewrite)
    }

    /// Returns whether a member of a zip archive is a file of a kernel database that goes.
    fn zip_member_goes(
        &self,
        (zip, at): (&Zip, usize),
        name: &str,
        reader: Positioned<'_>,
    ) -> Result<bool, Failure> {
        let is_file = |member: &ZipMember| !member.is_directory() && !member.is_symlink();
        let database = self.editor.databases.and_then(|it| it.database(name));
        if database.is_none() || !zip.members().get(at).is_some_and(is_file) {
            return Ok(false);
        }
        let mut contents = zip.open(at, reader).map_err(of)?;
        let store = self.store(&[], &mut contents, Keep::All)?;
        self.store_goes(database.as_ref(), &store)
    }

    pub(crate) fn store_goes(
        &self,
        database: Option<&Database>,
        store: &Store,
    ) -> Result<bool, Failure> {
        let (Some(it), Some(database)) = (self.editor.databases, database) else {
            return Ok(false);
        };
        Ok(it.rule.drops_database(database, store.reader(), &self.walk())?)
    }

    /// Puts the new contents of a member of a zip archive in its place; returns `true` if it is postponed.
    fn put_zip_member(
        &self,
        edited: &mut Edited<'_>,
        edit: &mut PackageEdit<'_>,
        (zip, at): (&Zip, usize),
        name: &str,
    ) -> Result<bool, Failure> {
        let contents = self.edit_zip_member(edited, edit, (zip, at), name);
        if matches!(contents, Err(Failure::Postponed)) {
            return Ok(true);
        }
        if let Some(contents) = edited.members.settle(name, contents)? {
            edit.replace(at, contents);
        }
        Ok(false)
    }

    fn edit_zip_member(
        &self,
        edited: &mut Edited<'_>,
        edit: &mut PackageEdit<'_>,
        (zip, at): (&Zip, usize),
        name: &str,
    ) -> Result<Option<NewContents>, Failure> {
        let member = zip.members().get(at);
        let is_file = |member: &&ZipMember| !member.is_directory() && member.size() > 0;
        let Some(member) = member.filter(is_file) else { return Ok(None) };
        self.editor.keep.or_all(|keep| {
            let mut contents = edit.open(at, edited.package.opened.reader()).map_err(of)?;
            let mut head = Vec::new();
            contents.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
            if !edited.is_about(name, &head) {
                return Ok(Some(None));
            }
            let store = Arc::new(self.store(&head, &mut contents, keep)?);
            let faults = edit.faults(at, &contents.finish());
            let warnings = allow(self.editor.options, &faults)?;
            let new = self.plan_member_of(edited, name, &store).and_then(|(plan, row)| {
                let new = plan.map(|plan| self.deflate(member, plan, &store)).transpose()?;
                Ok((new, row))
            });
            if store.was_too_small() {
                return Ok(None);
            }
            let (new, mut row) = new?;
            row.warnings.extend(warnings);
            edited.members.rows.push(row);
            Ok(Some(new))
        })
    }

    /// Makes the new contents of a member of a zip archive.
    fn deflate(
        &self,
        member: &ZipMember,
        plan: EditPlan,
        store: &Arc<Store>,
    ) -> Result<NewContents, Failure> {
        let (level, threads) = (self.editor.options.package_level, self.share.threads.count());
        // Headers state how much the plan holds.
        let room = self.room().saturating_sub(plan.held());
        let bytes = new_bytes(plan, Arc::clone(store))?;
        let status = bytes.status();
        let new =
            NewContents::like(member, bytes, level, threads, room).map_err(|error| {
                match (error.kind(), status.take_error()) {
                    (ErrorKind::Limit, _) => {
                        let most = self.most_held;
                        format!(
                            "new members are larger together than --max-decompressed={most} allows"
                        )
                        .into()
                    }
                    (_, Some(error)) => explain(&error, self.editor.images),
                    (_, None) => of(error),
                }
            })?;
        self.kept.set(self.kept.get() + new.stored_size());
        Ok(new)
    }

    pub(crate) fn store(
        &self,
        head: &[u8],
        contents: &mut dyn Read,
        keep: Keep<'_>,
    ) -> Result<Store, Failure> {
        // As in `room`.
        let (budget, most) = (Budget::default(), self.most_held.saturating_sub(self.kept.get()));
        let mut account = budget.account(most);
        let store = Store::read(head, contents, keep, &mut account)?;
        self.held.set(most - account.left());
        Ok(store)
    }

    fn plan_member_of(&self, edited: &Edited<'_>, name: &str, store: &Store) -> Planned {
        let output = format!("{}:{name}", edited.target.display());
        self.plan_member((&format!("{}:{name}", edited.name), &output), store)
    }

    /// Plans the edit of a member with these names, before and after. Nothing counts if more of it is needed than was kept.
    pub(crate) fn plan_member(&self, (name, output): (&str, &str), store: &Store) -> Planned {
        let dry_run = self.editor.options.output.dry_run;
        let (contents, wishes, plan) = match self.plan(store.reader(), false) {
            Ok(planned) => planned,
            Err(failure @ Failure::NoCode) => return Err(failure),
            Err(Failure::Postponed) if self.stage.get() == Stage::First => {
                return Err(Failure::Postponed);
            }
            Err(failure) => {
                let row = self.staying(name, (store.reader(), store.size()), failure)?;
                return Ok((None, row.of_package(dry_run)));
            }
        };
        let names = (name, Path::new(output));
        let row = FileRow::new(names, &contents, &plan, &wishes, self.editor.shrinks);
        Ok((Some(plan).filter(|plan| !plan.is_unchanged()), row.of_package(dry_run)))
    }

    /// Edits the members of a tar file or a Debian package. Returns the size of the new one, which is not written if it would replace
    /// its like.
    fn edit_stream(
        &self,
        edited: &mut Edited<'_>,
        out: &mut Retried<'_>,
        replaces: bool,
    ) -> Result<u64, Failure> {
        let kind = match edited.package.form {
            PackageForm::Stream(kind) => kind,
            PackageForm::Zip(_) => PackageKind::Zip,
        };
        kind.check_edit().map_err(of)?;
        if self.editor.is_for_wheels() {
            return Err(no_wheel());
        }
        // Members are written while others are not read yet.
        self.stage.set(Stage::Left);
        let old = BufReader::with_capacity(1 << 16, edited.package.opened.reader());
        let verified = verify(
            old,
            &self.editor.options.limits.for_package(edited.package.opened.metadata().len()),
        )
        .map_err(of)?;
        edited.allow(allow(self.editor.options, &verified.findings), &verified.findings)?;
        // Most packages in directories have no device code: they are not compressed for nothing.
        let changes = self.editor.keep.or_all(|keep| {
            edited.members = Members::default();
            self.edit_stream_once(edited, kind, None, keep)
        })?;
        out.restart()?;
        if changes {
            self.editor.keep.or_all(|keep| {
                out.restart()?;
                edited.members = Members::default();
                self.edit_stream_once(edited, kind, Some(&mut *out), keep)
            })?;
            let old = edited.package.opened.metadata().len();
            edited.stays = self.must_not_grow(old, out.size()?);
            let Some(why) = &edited.stays else { return Ok(out.size()?) };
            edited.members.keep_all(why);
            out.restart()?;
        }
        if replaces {
            return Ok(edited.package.opened.metadata().len());
        }
        // Compressed again, it could have other bytes.
        io::copy(&mut edited.package.opened.reader(), out)?;
        Ok(out.size()?)
    }

    /// Writes the new package, or looks for the first change. Returns whether there is one; `None` if more of the members is needed
    /// than was kept.
    fn edit_stream_once(
        &self,
        edited: &mut Edited<'_>,
        kind: PackageKind,
        out: Option<&mut Retried<'_>>,
        keep: Keep<'_>,
    ) -> Result<Option<bool>, Failure> {
        let old = BufReader::with_capacity(1 << 16, edited.package.opened.reader());
        let options = RewriteOptions::default()
            .with_drop_signature(self.editor.options.host.drop_signature)
            .with_level(self.editor.options.package_level)
            .with_threads(self.share.threads.count());
        let (mut stopped, mut is_too_small, is_written) = (None, false, out.is_some());
        // The status of the member that is written last.
        let mut status = None;
        let change = |name: &[u8], original: &mut Original<'_>| {
            let is_loose = edited.loose.get(name).copied();
            let name = text(name);
            if is_loose == Some(true) {
                edited.delete(&name, original.size());
                return Ok(Some(Replacement::removal()));
            }
            let databases = self.editor.databases.filter(|_| is_loose.is_none());
            let database = databases.and_then(|it| it.database(&name));
            let is_about = edited.is_about(&name, original.head());
            if database.is_none() && !is_about {
                return Ok(None);
            }
            let mut replacement = || -> Result<_, Failure> {
                let keep = if database.is_some() { Keep::All } else { keep };
                let size = original.size();
                let store = Arc::new(self.store(&[], original, keep)?);
                if self.store_goes(database.as_ref(), &store)? {
                    edited.delete(&name, size);
                    return Ok(Replacement::removal());
                }
                if !is_about {
                    return Ok(Replacement::unchanged(store.size(), StoreReader::new(store)));
                }
                let planned = self.plan_member_of(edited, &name, &store);
                is_too_small |= store.was_too_small();
                if is_too_small {
                    return Err(TOO_SMALL.to_owned().into());
                }
                let plan =
                    edited.members.settle(&name, planned.map(Some))?.and_then(|(plan, row)| {
                        edited.members.rows.push(row);
                        plan
                    });
                // One that stays must be there as a whole.
                is_too_small |= is_written && plan.is_none() && store.has_holes();
                if is_too_small || !edited.members.complaints.is_empty() {
                    return Err(TOO_SMALL.to_owned().into());
                }
                let Some(plan) = plan else {
                    let size = store.size();
                    return Ok(if is_written {
                        Replacement::unchanged(size, StoreReader::new(store))
                    } else {
                        Replacement::unchanged(size, io::repeat(0).take(size))
                    });
                };
                let size = plan.size();
                if !is_written {
                    return Ok(Replacement::new(size, io::empty()));
                }
                let bytes = new_bytes(plan, Arc::clone(&store))?;
                status = Some((store, bytes.status()));
                Ok(Replacement::new(size, bytes))
            };
            replacement().map(Some).map_err(|failure| {
                stopped = Some(failure);
                Error::refused("the edit of a member failed")
            })
        };
        let rewritten = match out {
            None => changes_stream(kind, old, &options, change).map(Err),
            Some(out) => {
                let out = BufWriter::with_capacity(1 << 16, out);
                rewrite_stream(kind, old, out, &options, change).map(Ok)
            }
        };
        if is_too_small || status.as_ref().is_some_and(|(store, _)| store.was_too_small()) {
            return Ok(None);
        }
        edited.members.check_complaints()?;
        if let Some(error) = status.and_then(|(_, status)| status.take_error()) {
            return Err(explain(&error, self.editor.images));
        }
        if let Some(failure) = stopped {
            return Err(failure);
        }
        let rewritten = match rewritten.map_err(of)? {
            Err(true) => return Ok(Some(true)),
            Err(false) => None,
            Ok(rewritten) => Some(rewritten),
        };
        edited.members.check(self.editor.shrinks.is_some())?;
        edited.members.unlisted.extend(rewritten.iter().flat_map(Rewritten::unlisted).map(text));
        Ok(Some(rewritten.is_some()))
    }
}

/// Makes the new bytes of a member while they are read.
pub(crate) fn new_bytes(plan: EditPlan, store: Arc<Store>) -> io::Result<Piped<fat_edit::Error>> {
    Piped::start("edit", move |out| plan.write(store.reader(), out))
}

impl Edited<'_> {
    /// Fails if the package has findings that are not allowed, and remembers the others.
    fn allow(
        &mut self,
        warnings: Result<Vec<String>, Failure>,
        findings: &[Finding],
    ) -> Result<(), Failure> {
        self.warnings.extend(warnings.map_err(|failure| match failure {
            // Members are named by the package and their path.
            Failure::Refused(texts) if findings.first().is_some_and(|one| !one.path.is_empty()) => {
                Failure::Refused(texts.into_iter().map(|text| format!(":{text}")).collect())
            }
            failure => failure,
        })?);
        Ok(())
    }

    /// Returns whether a member that starts like this is edited. Remembers packages, which are not.
    fn is_about(&mut self, name: &str, head: &[u8]) -> bool {
        self.members.unopened.note(name, head);
        FileFormat::sniff(head).may_hold_code()
    }

    fn delete(&mut self, name: &str, size: u64) {
        self.members.has_other_changes = true;
        let row = FileRow::deleted(&format!("{}:{name}", self.name), size);
        self.members.rows.push(row.of_package(self.dry_run));
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.members.notes();
        notes.extend(self.stale());
        notes
    }

    /// Returns the note about lists of installed Python packages that have changed files.
    fn stale(&self) -> Option<String> {
        let changed = self.members.rows.iter().filter(|row| row.changed);
        let changed = changed.filter_map(|row| row.file.strip_prefix(self.name)?.strip_prefix(':'));
        let lists = stale_lists(&self.members.unopened.lists, changed);
        let are = "has sizes and hashes of changed files, which it does not follow here";
        (!lists.is_empty()).then(|| format!("{} {are}", few(lists)))
    }
}

pub(crate) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
