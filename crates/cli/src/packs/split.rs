//! `offload split`: device code of HIP moved from libraries to kernel packs.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use fat_edit::{PackGroup, Split};
use gpu_packages::{PackageForm, PackageKind};
use kpack::Scheme;

use super::split_wheel;
use tool_edits::{NO_WAY_BACK, Pack, Packs, WheelSplit, of_plan, plan};
use tool_inputs::limits::Limits;
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::opened::Opened;
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::progress::Progress;
use tool_kit::style::{self, HEADING, TARGET, show};
use tool_kit::table::{Align, Table};
use tool_kit::{Outcome, input, report, wildcards};

/// The levels of zstd.
const LEVELS: std::ops::RangeInclusive<i64> = -131_072..=22;

/// Move device code of HIP from libraries to kernel packs
///
/// Libraries are ELF or PE files with wrappers in .hipFatBinSegment. The result is a directory with the libraries without
/// device code, and a kernel pack (.kpack) for each target with the code objects of all of them.
///
/// A wheel becomes a host wheel and a device wheel for each GPU, as AMD's splitter makes them: pip install NAME[device-gfx942].
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Libraries or programs, or one wheel
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name the packs GROUP_TARGET.kpack; those of a wheel have its name
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Write to this directory, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Put packs into this directory, below the output (default: .kpack)
    #[arg(long, value_name = "DIR", requires = "group")]
    kpack_dir: Option<PathBuf>,
    /// Name libraries by their paths below this directory (default: .)
    #[arg(long, value_name = "DIR", requires = "group")]
    prefix: Option<PathBuf>,
    #[command(flatten)]
    wheel: split_wheel::WheelArgs,
    /// Set the level of zstd, up to 22
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(LEVELS))]
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

impl Args {
    /// Returns the options of a split that are not for wheels only.
    fn common(&self) -> WheelSplit<'_> {
        WheelSplit {
            output: &self.output,
            overlay_root: None,
            device_prefix: None,
            device_requires: &[],
            readers: &[],
            scheme: self.scheme(),
            level: self.level,
            generator: concat!("offload ", env!("CARGO_PKG_VERSION")),
            allow_findings: false,
            drop_signature: self.drop_signature,
            limits: &self.limits,
        }
    }

    /// Returns the first file.
    fn first(&self) -> &Path {
        self.files.first().map_or(Path::new(""), |file| file)
    }

    /// Returns the form of code objects in packs.
    fn scheme(&self) -> Scheme {
        if self.no_compress { Scheme::Plain } else { Scheme::Zstd }
    }

    /// Opens all files, each once: one may be a pipe.
    fn open(&self) -> Result<Vec<Opening>, Failure> {
        let files = wildcards::expanded(&self.files);
        let open = |path: &PathBuf| match Opened::new(path, self.limits.max_input) {
            Ok(opened) => Ok((path.clone(), Arc::new(opened))),
            Err(error) => Err(at(path, error.into())),
        };
        files.iter().map(open).collect()
    }
}

/// A file that is open, with its path.
type Opening = (PathBuf, Arc<Opened>);

/// Returns the wheel that is to be split, if it is one.
fn package(files: &[Opening]) -> Result<Option<Package>, Failure> {
    for (path, opened) in files {
        let Some(package) = Package::of(opened).map_err(|error| at(path, error.into()))? else {
            continue;
        };
        if files.len() > 1 {
            let text = "a package among several files: wheels are split one at a time";
            return Err(at(path, text.to_owned().into()));
        }
        return Ok(Some(package));
    }
    Ok(None)
}

/// Returns whether a package is a wheel.
fn is_wheel(package: &Package) -> bool {
    matches!(&package.form, PackageForm::Zip(zip) if zip.kind() == PackageKind::Wheel)
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let opened = args.open().and_then(|files| Ok((package(&files)?, files)));
    let done = opened.and_then(|(package, files)| match (package, &args.group) {
        (Some(package), group) if group.is_none() || !is_wheel(&package) => {
            let split = args.wheel.split(&args.common(), &package);
            split.map_err(|failure| at(args.first(), failure))
        }
        (Some(_), _) => {
            Err("--group is for libraries: packs of a wheel have its name".to_owned().into())
        }
        (None, Some(group)) => {
            print(args, &split(args, group, files)?).map_err(|error| Failure::printing(&error))
        }
        (None, None) => {
            let text = "expected a wheel, or --group GROUP, which names the packs of libraries";
            Err(at(args.first(), text.to_owned().into()))
        }
    });
    match done {
        Ok(()) => Ok(Outcome::Clean),
        Err(failure) => failure.report(|complaint| report::error(&complaint)),
    }
}

/// A library to be split.
struct Library {
    opened: Arc<Opened>,
    split: Split,
}

struct Done {
    libraries: Vec<Library>,
    /// With their paths.
    packs: Vec<(PathBuf, Pack)>,
}

fn split(args: &Args, group: &str, files: Vec<Opening>) -> Result<Done, Failure> {
    if let Some(option) = args.wheel.given() {
        return Err(format!("{option} is for wheels").into());
    }
    if group.is_empty() || group.contains(['/', '\\']) {
        return Err(format!("--group: expected a name without slashes, found '{group}'").into());
    }
    let kpack_dir = plain(args.kpack_dir.as_deref().unwrap_or(Path::new(".kpack")))
        .ok_or_else(|| "--kpack-dir: expected a path below the output".to_owned())?;
    let mut packs = Packs::new(PackGroup::new(group, &kpack_dir, args.scheme()), args.level);
    let mut libraries: Vec<Library> = Vec::new();
    for (path, opened) in files {
        let library = Library::plan(args, (&path, opened), &packs);
        let library = library.map_err(|failure| at(&path, failure))?;
        let name = library.split.name();
        if libraries.iter().any(|other| other.split.name() == name) {
            return Err(format!("two libraries would have the name {name}: see --prefix").into());
        }
        libraries.push(library);
    }
    let progress = Progress::start("splitting");
    for library in &libraries {
        let failed = |failure| at(Path::new(library.split.name()), failure);
        let Library { opened, split } = library;
        let subject = (opened.reader(), opened.metadata().len());
        packs.add(split, subject, &args.limits).map_err(of_plan).map_err(failed)?;
    }
    drop(progress);
    write(args, libraries, packs, &kpack_dir)
}

fn at(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Complaints(all) | Failure::Refused(all) => {
            let name = input::display(path);
            // Members of a package are named by it and their path.
            let named = |text: &String| {
                let colon = if text.starts_with(':') { "" } else { ": " };
                format!("{name}{colon}{text}")
            };
            all.iter().map(named).collect::<Vec<_>>().into()
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
    fn plan(
        args: &Args,
        (path, opened): (&Path, Arc<Opened>),
        packs: &Packs,
    ) -> Result<Self, Failure> {
        let prefix = args.prefix.as_deref().unwrap_or(Path::new("."));
        let below = match (path.strip_prefix(prefix), prefix.as_os_str() == ".") {
            (Ok(below), _) => below,
            (Err(_), true) => path,
            (Err(_), false) => {
                let prefix = prefix.display();
                return Err(format!("expected a file below --prefix {prefix}").into());
            }
        };
        let name = plain(below).or_else(|| plain(Path::new(path.file_name()?)));
        let name = name.ok_or_else(|| "expected a file name that is text".to_owned())?;
        let subject = (opened.reader(), opened.metadata().len());
        let split = plan(subject, &packs.marker(&name), &args.limits, args.drop_signature)?;
        Ok(Library { opened, split })
    }
}

/// Writes all files, which appear together.
fn write(
    args: &Args,
    libraries: Vec<Library>,
    packs: Packs,
    kpack_dir: &str,
) -> Result<Done, Failure> {
    let mut outputs = Outputs::default();
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
    let mut written = Vec::new();
    for pack in packs.finish(libraries.iter().map(|library| &library.split))? {
        let path = args.output.join(kpack_dir).join(pack.file_name());
        outputs.write(&directory.file(pack.file_name()), of_all.into(), |out| pack.write(out))?;
        written.push((path, pack));
    }
    outputs.commit()?;
    Ok(Done { libraries, packs: written })
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
    for (path, pack) in &done.packs {
        table.row(&[input::display(path), pack.images().to_string(), style::size(pack.size())]);
    }
    table.print(&mut out, "  ", style::terminal_width())?;
    let splits = || done.libraries.iter().map(|library| &library.split);
    splits().for_each(|split| super::note(split.name(), split.plan()));
    for (name, reason) in splits().filter_map(|split| Some((split.name(), split.no_way_back()?))) {
        report::note(&format_args!("{name}: {NO_WAY_BACK}: {reason}"));
    }
    out.flush()
}
