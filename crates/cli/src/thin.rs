//! `offload thin`: removes device code for other targets.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use bundle_format::EntryId;
use device_select::{Decision, Missing, Rule, Wanted, is_compiler_library, is_host, names};
use fat_edit::EditableFile;
use fat_object::{FileFormat, ImageInfo};

use crate::suggest;
use tool_edits::{Databases, Editor, Options, Subject, Uneditable, Wishes, Work};
use tool_inputs::package::Images;
use tool_kit::Outcome;
use tool_kit::failure::Failure;
use tool_kit::store::Keep;

/// The most faults of one kind that are reported one by one.
const MOST_FAULTS: usize = 10;

/// Remove device code for other GPUs from any file, linked or not
///
/// Files are bundles, offload binaries, fatbinaries, objects, archives, libraries and programs. --keep retains every
/// image that a device with one of these targets could load, by the rules of `offload match`: code for the processor
/// with any setting of the features that are not given, code for the generic processor that covers it, and SPIR-V that
/// the runtimes of its vendor compile. It retains what the driver takes of an NVIDIA fatbinary: the machine code with
/// the highest compute capability that the GPU runs, or PTX by the same rule if there is no machine code for it.
/// --exact retains only exact matches of the target IDs. --drop removes only images built for these targets. Entries of
/// the host are always retained. Retained images keep every byte. The file gets smaller, loads as before, and strip and
/// objcopy can process it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files or directories; - is standard input. Several need --in-place, --dry-run
    ///
    /// An OCI layout, an OCI archive or an archive of `docker save` is edited as a whole: layers, digests and names of files
    /// follow. A layout needs --output, which is a new directory.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keep images that devices of these targets could load; drop others. Repeatable
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        value_parser = suggest::known,
        required_unless_present = "drop",
        conflicts_with = "drop"
    )]
    keep: Vec<Wanted>,
    /// Drop images built for these targets; keep others. Repeatable
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = suggest::known)]
    drop: Vec<Wanted>,
    /// Keep exact target-ID matches only; drop generic code and SPIR-V
    #[arg(long, requires = "keep", conflicts_with = "drop")]
    exact: bool,
    /// Drop PTX of fatbinaries, even if that leaves a GPU without code
    #[arg(long, requires = "keep", conflicts_with = "drop")]
    drop_ptx: bool,
    /// Do not fail if a file has no image for an ID
    #[arg(long)]
    allow_missing: bool,
    /// Allow containers to lose all their device images
    #[arg(long)]
    allow_empty: bool,
    /// Allow removing code that a GPU of --keep would load
    #[arg(long, requires = "keep", conflicts_with = "drop")]
    allow_unserved: bool,
    /// Delete files of kernel databases and loose images for other GPUs
    ///
    /// They are deleted from directories and packages. Files of databases are files that ROCm's libraries load: files of Tensile,
    /// hipBLASLt and MIOpen in `rocblas/library`, `hipblaslt/library`, `hipsparselt/library` and `miopen/db`, and kernel packs.
    /// The name of such a file has its GPU. A file that all GPUs use stays, and so does a file whose contents differ from its
    /// name.
    ///
    /// Loose images are files of any name that are device code as a whole, compressed or not: cubins, code objects, PTX,
    /// fatbinaries, bundles. They are deleted if no image in them stays. A package with no loose image for the targets is left alone
    /// (--allow-missing), and so is one that would lose all of them (--allow-empty). Files that belong to no package count as one
    /// package. A file that is named is never deleted.
    #[arg(long)]
    databases: bool,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    suggest::explain_wanted(&args.keep);
    suggest::explain_wanted(&args.drop);
    let rule = if args.drop.is_empty() {
        Rule::keep(args.keep.clone()).with_exact(args.exact).with_drop_ptx(args.drop_ptx)
    } else {
        Rule::drop(args.drop.clone())
    };
    let thinning = Thinning {
        rule: &rule,
        permits: Permits {
            is_environment: false,
            missing: args.allow_missing,
            empty: args.allow_empty,
            unserved: args.allow_unserved,
            databases: args.databases,
            uneditable: args.uneditable,
        },
        options: &args.options,
    };
    thinning.edit(&args.files, |editor| editor.run())
}

/// The permissions to remove more, or to leave more as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permits {
    /// Files are one environment: named files without code for the targets are left alone, as those of directories are, and loose
    /// images for other GPUs of the same vendor go, also where all go.
    pub(crate) is_environment: bool,
    pub(crate) missing: bool,
    pub(crate) empty: bool,
    pub(crate) unserved: bool,
    pub(crate) databases: bool,
    pub(crate) uneditable: Uneditable,
}

/// The removal of device code by a rule.
#[derive(Debug)]
pub(crate) struct Thinning<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) permits: Permits,
    pub(crate) options: &'a Options,
}

impl Thinning<'_> {
    /// Runs an editor of these files, which decides by the rule.
    pub(crate) fn edit(
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

    pub(crate) fn decide(&self, subject: &Subject<'_>) -> Result<Wishes, Failure> {
        let Thinning { rule, permits, options } = self;
        let contents = subject.contents;
        let images = contents.images();
        // Libraries of compilers stay in an environment, and the report leaves them out.
        let is_left = |image| permits.is_environment && is_compiler_library(image);
        if images.iter().all(|image| is_host(image) || is_left(image)) {
            return Err(Failure::NoCode);
        }
        let (option, typed) = self.typed();
        let missing = if permits.missing { Vec::new() } else { rule.missing(images) };
        let why = |one: &Missing<'_>| {
            let has = names(images.iter().filter(|image| !is_host(image)));
            format!("{option} {}: {}", one.text(), one.words(&has))
        };
        let is_named = subject.is_named && !permits.is_environment;
        // A directory has files for other GPUs, too.
        let is_concerned = missing.len() < rule.wanted().len();
        if !missing.is_empty() && !is_named && !is_concerned {
            if !(permits.is_environment && rule.may_empty(images)) {
                return Err(Failure::NotConcerned(missing.iter().map(why).collect()));
            }
            if !subject.is_last {
                return Err(Failure::Postponed);
            }
        }
        if !missing.is_empty() && is_named {
            let missing =
                missing.iter().map(|one| format!("{}; --allow-missing ignores this", why(one)));
            return Err(missing.collect::<Vec<_>>().into());
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
            return Err(first_of(faults).into());
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
