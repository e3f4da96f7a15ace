//! `offload split`: device code of HIP moved from libraries to kernel packs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use fat_edit::{EditOptions, PackGroup, Split, survey};
use fat_object::Visitor;
use kpack::Scheme;

use super::CODES;
use tool_inputs::limits::{Limits, walk_open};
use tool_kit::failure::Failure;
use tool_kit::opened::Opened;
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::positioned::Positioned;
use tool_kit::progress::Progress;
use tool_kit::style::{self, HEADING, TARGET, show};
use tool_kit::table::{Align, Table};
use tool_kit::{Outcome, input, report, scratch, wildcards};

/// Move device code of HIP from libraries to kernel packs
///
/// Libraries are ELF or PE files with wrappers in .hipFatBinSegment. The result is a directory with the libraries without
/// device code, and a kernel pack (.kpack) for each target with the code objects of all of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Libraries or programs
    #[arg(required = true, value_name = "LIB")]
    files: Vec<PathBuf>,
    /// Name the packs GROUP_TARGET.kpack
    #[arg(long, value_name = "GROUP")]
    group: String,
    /// Write to this directory, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Put packs into this directory, below the output
    #[arg(long, value_name = "DIR", default_value = ".kpack")]
    kpack_dir: PathBuf,
    /// Name libraries by their paths below this directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    prefix: PathBuf,
    /// Set the level of zstd, up to 22
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    level: i32,
    /// Do not compress code objects
    #[arg(long, conflicts_with = "level")]
    no_compress: bool,
    /// Allow editing a signed file; remove its signature
    #[arg(long)]
    drop_signature: bool,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    match split(args) {
        Ok(done) => {
            print(args, &done)?;
            Ok(Outcome::Clean)
        }
        Err(failure) => failure.report(|complaint| report::error(&complaint)),
    }
}

/// A library to be split.
struct Library {
    opened: Opened,
    split: Split,
}

/// The packs in the making, with a file for the stored code objects of each target.
struct Packs {
    group: PackGroup,
    codes: BTreeMap<String, File>,
}

struct Done {
    libraries: Vec<Library>,
    /// With path, size, and number of code objects.
    packs: Vec<(PathBuf, u64, u64)>,
}

fn split(args: &Args) -> Result<Done, Failure> {
    let group = &args.group;
    if group.is_empty() || group.contains(['/', '\\']) {
        return Err(format!("--group: expected a name without slashes, found '{group}'").into());
    }
    let kpack_dir = plain(&args.kpack_dir)
        .ok_or_else(|| "--kpack-dir: expected a path below the output".to_owned())?;
    let scheme = if args.no_compress { Scheme::Plain } else { Scheme::Zstd };
    let group = PackGroup::new(group, &kpack_dir, scheme);
    let mut libraries: Vec<Library> = Vec::new();
    for path in &*wildcards::expanded(&args.files) {
        let library = Library::plan(args, path, &group).map_err(|failure| at(path, failure))?;
        let name = library.split.name();
        if libraries.iter().any(|other| other.split.name() == name) {
            return Err(format!("two libraries would have the name {name}: see --prefix").into());
        }
        libraries.push(library);
    }
    let mut packs = Packs { group, codes: BTreeMap::new() };
    let progress = Progress::start("splitting");
    for library in &libraries {
        let failed = |failure| at(Path::new(library.split.name()), failure);
        library.pack(args, &mut packs).map_err(failed)?;
    }
    drop(progress);
    write(args, libraries, packs, &kpack_dir)
}

fn at(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Complaints(all) => {
            let name = input::display(path);
            all.iter().map(|text| format!("{name}: {text}")).collect::<Vec<_>>().into()
        }
        Failure::NoCode => format!("{}: no device code found", input::display(path)).into(),
        other => other,
    }
}

/// Returns a relative path without parts that lead upwards, with `/`.
fn plain(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/")).filter(|path| !path.is_empty())
}

impl Library {
    /// Plans the library without its device code.
    fn plan(args: &Args, path: &Path, group: &PackGroup) -> Result<Self, Failure> {
        let opened = Opened::new(path, args.limits.max_input)?;
        let below = match (path.strip_prefix(&args.prefix), args.prefix.as_os_str() == ".") {
            (Ok(below), _) => below,
            (Err(_), true) => path,
            (Err(_), false) => {
                let prefix = args.prefix.display();
                return Err(format!("expected a file below --prefix {prefix}").into());
            }
        };
        let name = plain(below).or_else(|| plain(Path::new(path.file_name()?)));
        let name = name.ok_or_else(|| "expected a file name that is text".to_owned())?;
        let limits = &args.limits;
        let options = limits.for_file(&limits.options(), opened.metadata().len());
        let contents = survey(opened.reader(), &options).map_err(|e| e.to_string())?;
        if let Some(finding) = contents.findings().first() {
            return Err(finding.to_string().into());
        }
        let options = EditOptions::default().with_drop_signature(args.drop_signature);
        let split = contents.split(opened.reader(), &group.marker(&name), &options);
        let split = split.map_err(|error| error.to_string())?;
        Ok(Library { opened, split })
    }

    /// Adds its code objects to the packs of their targets.
    fn pack(&self, args: &Args, packs: &mut Packs) -> Result<(), Failure> {
        let Packs { group, codes } = packs;
        let options = args.limits.options().with_enter_images(false);
        let walk = |visitor: &mut dyn Visitor| {
            walk_open(&self.opened, (&args.limits, &options), args.limits.threads, visitor)
        };
        let mut store = |target: &str, stored: &[u8]| {
            let file = match codes.get_mut(target) {
                Some(file) => file,
                None => codes.entry(target.to_owned()).or_insert(scratch::file(CODES)?),
            };
            file.write_all(stored)
        };
        let how = (args.level, args.limits.threads.count());
        group.pack(&self.split, how, walk, &mut store).map_err(super::failed)
    }
}

/// Writes all files, which appear together.
fn write(
    args: &Args,
    libraries: Vec<Library>,
    Packs { group, codes }: Packs,
    kpack_dir: &str,
) -> Result<Done, Failure> {
    let mut outputs = Outputs::default();
    let mut packs = Vec::new();
    let of_all = NewPermissions::of_all(libraries.iter().map(|one| one.opened.permissions()));
    for Library { opened, split } in &libraries {
        let path = Path::new(split.name());
        let below = path.parent().unwrap_or(Path::new(""));
        let directory = outputs.make_directory(&args.output.join(below))?;
        let name = directory.file(path.file_name().unwrap_or(path.as_os_str()));
        outputs.write(&name, opened.permissions().into(), |out| {
            split.plan().write(&opened.file, &mut *out).map_err(io::Error::from)?;
            opened.check()
        })?;
    }
    let directory = outputs.make_directory(&args.output.join(kpack_dir))?;
    let layouts = group.layout(libraries.iter().map(|library| &library.split));
    for pack in layouts.map_err(|error| error.to_string())? {
        let file = directory.file(&pack.file_name);
        let codes = codes.get(&pack.target).map(Positioned::new);
        outputs.write(&file, of_all.into(), |out| {
            pack.parts.write_to(Vec::from_iter(codes).as_mut_slice(), out)?;
            Ok(())
        })?;
        let path = args.output.join(kpack_dir).join(pack.file_name);
        packs.push((path, pack.parts.size(), pack.images));
    }
    outputs.commit()?;
    Ok(Done { libraries, packs })
}

fn print(args: &Args, done: &Done) -> io::Result<()> {
    let mut out = style::stdout();
    for Library { opened, split } in &done.libraries {
        let path = args.output.join(split.name());
        let (before, after) = (opened.metadata().len(), split.plan().size());
        let wrappers = style::count(split.wrappers(), "wrapper");
        let (path, part) = (input::display(&path), style::percent(after, before));
        let [before, after] = [before, after].map(style::size);
        show!(out, "{HEADING}{path}{HEADING:#}  {before} -> {after}, {part}, {wrappers}")?;
    }
    let mut table =
        Table::default().column("PACK", Align::Left, TARGET).numbers(["IMAGES", "SIZE"]);
    for (path, size, count) in &done.packs {
        table.row(&[input::display(path), count.to_string(), style::size(*size)]);
    }
    table.print(&mut out, "  ", style::terminal_width())?;
    let splits = || done.libraries.iter().map(|library| &library.split);
    splits().for_each(|split| super::note(split.name(), split.plan()));
    for split in splits().filter(|split| !split.has_way_back()) {
        let name = split.name();
        report::note(&format_args!(
            "{name}: packs do not note how it was laid out, as its bundles are compressed: `offload join` compresses new ones"
        ));
    }
    out.flush()
}
