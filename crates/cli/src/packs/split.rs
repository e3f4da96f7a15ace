//! `offload split`: device code of HIP moved from libraries to kernel packs.

use crate::limits::{Limits, walk_open};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use byte_parts::Bounds;
use fat_edit::{EditOptions, EditPlan, EditableFile, Recipe, survey};
use fat_object::{Finding, Image, Visitor};
use kpack::{Marker, NewKpack, Scheme, search};

use super::RECIPE;
use super::frames::Frames;
use super::hashing::hash;
use crate::help::More;
use tool_kit::failure::Failure;
use tool_kit::opened::Opened;
use tool_kit::output::Outputs;
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::progress::Progress;
use tool_kit::style::{self, HEADING, PLAIN, TARGET, show};
use tool_kit::table::{Align, Table};
use tool_kit::{Outcome, input, report};

pub(crate) const MORE: More = More {
    examples: &[
        (
            "offload split libfoo.so --group foo -o out",
            "write out/libfoo.so and out/.kpack/foo_gfx1100.kpack and others",
        ),
        (
            "offload split lib/libfoo.so lib/libbar.so --group foo -o out --level 19",
            "split two libraries of a tree into one pack for each target",
        ),
        (
            "offload split libfoo.so --group foo -o out && offload match --gpu gfx1100 out/libfoo.so",
            "look whether a GPU finds its code",
        ),
    ],
    notes: &[
        "A library keeps its path below --prefix, and has it as its name in packs. Its wrappers lead to a marker that says where \
         packs are; nothing else in memory moves, and strip, objcopy and patchelf work on the new file. Code objects are numbered by \
         wrappers, as ROCm's loader looks for them.",
        "Code that a loader would not find in a pack is refused: SPIR-V, bitcode, bundles without a wrapper. A loader that finds no \
         pack for a GPU has no code for it, and takes no SPIR-V either.",
        "Packs note how the library was laid out, which loaders skip: with all of them, `offload join` makes the same file again, byte for \
         byte. Without the note, as after strip, it makes one with the same code objects.",
    ],
};

/// Move device code of HIP from libraries to kernel packs
///
/// Libraries are ELF or PE files with wrappers in .hipFatBinSegment. The result is a directory with the libraries without
/// device code, and a kernel pack (.kpack) for each target with the code objects of all of them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
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
    threads: Threads,
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

/// The level of zstd for the way back, which is small.
const RECIPE_LEVEL: i32 = 9;

/// A library to be split.
struct Library {
    opened: Opened,
    /// Below the prefix, with `/`.
    name: String,
    /// The number of its wrappers.
    wrappers: usize,
    plan: EditPlan,
    /// By the index of the image: its target, its entry ID, and the wrappers that lead to it.
    images: BTreeMap<usize, (String, Option<String>, Vec<u64>)>,
    recipe: Option<Vec<u8>>,
}

/// A pack in the making.
struct Pack {
    new: NewKpack,
    frames: Frames,
}

struct Done {
    libraries: Vec<(Library, u64)>,
    /// With paths, sizes, and code objects with their bytes.
    packs: Vec<(PathBuf, u64, u64, u64)>,
}

fn split(args: &Args) -> Result<Done, Failure> {
    let group = &args.group;
    if group.is_empty() || group.contains(['/', '\\']) {
        return Err(format!("--group: expected a name without slashes, found '{group}'").into());
    }
    let kpack_dir = plain(&args.kpack_dir)
        .ok_or_else(|| "--kpack-dir: expected a path below the output".to_owned())?;
    let mut libraries: Vec<Library> = Vec::new();
    for path in &args.files {
        let library = Library::plan(args, path, &kpack_dir).map_err(|failure| at(path, failure))?;
        if libraries.iter().any(|other| other.name == library.name) {
            let name = &library.name;
            return Err(format!("two libraries would have the name {name}: see --prefix").into());
        }
        libraries.push(library);
    }
    let mut packs: BTreeMap<String, Pack> = BTreeMap::new();
    let progress = Progress::start("splitting");
    for library in &libraries {
        library.pack(args, &mut packs).map_err(|failure| at(Path::new(&library.name), failure))?;
    }
    drop(progress);
    for library in &libraries {
        for pack in packs.values_mut() {
            if let Some(recipe) = &library.recipe {
                pack.new.note(&format!("{RECIPE}{}", library.name), recipe);
            }
        }
    }
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
    fn plan(args: &Args, path: &Path, kpack_dir: &str) -> Result<Self, Failure> {
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
        let up = "../".repeat(name.matches('/').count());
        let pattern = format!("{up}{kpack_dir}/{}_{}.kpack", args.group, search::PLACEHOLDER);
        let marker = Marker::new(&name, [pattern]).to_vec();
        let input = opened.reader();
        let limits = &args.limits;
        let options = limits.for_file(&limits.options(), opened.metadata().len());
        let contents = survey(input, &options).map_err(|e| e.to_string())?;
        if let Some(finding) = contents.findings().first() {
            return Err(finding.to_string().into());
        }
        let wrappers = contents.hip_wrappers(input).map_err(|error| error.to_string())?;
        let images = images(&contents, &wrappers)?;
        let options = EditOptions::default().with_drop_signature(args.drop_signature);
        let plan = contents.move_out(input, &marker, &options);
        let plan = plan.map_err(|error| error.to_string())?;
        let recipe = Recipe::of(&contents, &plan, input).map_err(|error| error.to_string())?;
        let recipe = match recipe {
            Some(recipe) => {
                // The file that comes out must be this one.
                let mut bytes = hash(&mut opened.reader())?.to_le_bytes().to_vec();
                let recipe = kpack::compress(&recipe.to_vec(), RECIPE_LEVEL);
                bytes.extend(recipe.map_err(|error| error.to_string())?);
                Some(bytes)
            }
            None => None,
        };
        let wrappers = wrappers.len();
        Ok(Library { opened, name, wrappers, plan, images, recipe })
    }

    /// Adds its code objects to the packs of their targets.
    fn pack(&self, args: &Args, packs: &mut BTreeMap<String, Pack>) -> Result<(), Failure> {
        let scheme = if args.no_compress { Scheme::Plain } else { Scheme::Zstd };
        let (sender, receiver) = mpsc::sync_channel::<(usize, Vec<u8>)>(0);
        let threads = args.threads.count();
        thread::scope(|scope| {
            let walk = scope.spawn(|| {
                let mut sending = Sending { library: self, sender, finding: None };
                let options = args.limits.options().with_enter_images(false);
                let walked =
                    walk_open(&self.opened, (&args.limits, &options), args.threads, &mut sending);
                match (walked, sending.finding) {
                    (Err(error), _) => Err(Failure::from(error)),
                    (_, Some(finding)) => Err(finding.into()),
                    (Ok(_), None) => Ok(()),
                }
            });
            let jobs = receiver.into_iter().map(|(index, code)| {
                let size = code.len() as u64;
                ((index, code), size)
            });
            let compress = || {
                |(index, code): (usize, Vec<u8>)| {
                    let size = code.len() as u64;
                    let stored = match scheme {
                        Scheme::Plain => Ok(code),
                        Scheme::Zstd => kpack::compress(&code, args.level),
                    };
                    (index, size, stored)
                }
            };
            let bounds = Bounds::new(threads).with_jobs(threads.get());
            for (index, size, stored) in byte_parts::in_order(scope, bounds, jobs, compress) {
                let stored = stored.map_err(|error| error.to_string())?;
                self.add(args, scheme, packs, (index, size), &stored)?;
            }
            walk.join().unwrap_or_else(|_| Err("a thread ended early".to_owned().into()))
        })
    }

    /// Adds a code object, once for each wrapper that leads to its bundle.
    fn add(
        &self,
        args: &Args,
        scheme: Scheme,
        packs: &mut BTreeMap<String, Pack>,
        (index, size): (usize, u64),
        stored: &[u8],
    ) -> Result<(), Failure> {
        let Some((target, id, wrappers)) = self.images.get(&index) else { return Ok(()) };
        let pack = match packs.get_mut(target) {
            Some(pack) => pack,
            None => {
                let new = NewKpack::new(&args.group, target, scheme);
                packs.entry(target.clone()).or_insert(Pack { new, frames: Frames::new()? })
            }
        };
        let mut first = None;
        for wrapper in wrappers {
            match first {
                None => first = Some(pack.new.add(&self.name, *wrapper, target, size)),
                Some(ordinal) => pack.new.add_again(&self.name, *wrapper, target, size, ordinal),
            }
            if let Some(id) = id {
                pack.new.set_entry_id(id);
            }
        }
        Ok(pack.frames.push(stored)?)
    }
}

/// A code object with its target, its entry ID and its wrappers.
type Images = BTreeMap<usize, (String, Option<String>, Vec<u64>)>;

/// Returns all code objects, by their indices, with the wrappers that lead to their bundles.
fn images(contents: &EditableFile, wrappers: &[usize]) -> Result<Images, Failure> {
    let mut images: Images = BTreeMap::new();
    for (number, container) in (0..).zip(wrappers) {
        let packable = contents.packable(*container).map_err(|error| error.to_string())?;
        for image in packable {
            let target = image.target().id().to_owned();
            let id = image.id().map(str::to_owned);
            let (_, _, wrappers) = images.entry(image.index()).or_insert((target, id, Vec::new()));
            wrappers.push(number);
        }
    }
    Ok(images)
}

/// Sends code objects to who compresses them.
struct Sending<'l> {
    library: &'l Library,
    sender: mpsc::SyncSender<(usize, Vec<u8>)>,
    finding: Option<String>,
}

impl Visitor for Sending<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if !self.library.images.contains_key(&image.index()) {
            return Ok(());
        }
        let mut code = Vec::new();
        // The size is what the file says: there may be less.
        let size = usize::try_from(image.size()).unwrap_or(usize::MAX);
        code.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        image.pieces(&mut |piece| {
            code.extend_from_slice(piece);
            Ok(())
        })?;
        // Nobody receives it after a failure, which is told there.
        self.sender.send((image.index(), code)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.finding.get_or_insert_with(|| finding.to_string());
        Ok(())
    }
}

/// Writes all files, which appear together.
fn write(
    args: &Args,
    libraries: Vec<Library>,
    packs: BTreeMap<String, Pack>,
    kpack_dir: &str,
) -> Result<Done, Failure> {
    let mut outputs = Outputs::default();
    let mut done = Done { libraries: Vec::new(), packs: Vec::new() };
    let of_all = NewPermissions::of_all(libraries.iter().map(|one| one.opened.permissions()));
    for library in libraries {
        let path = Path::new(&library.name);
        let below = path.parent().unwrap_or(Path::new(""));
        let directory = outputs.make_directory(&args.output.join(below))?;
        let name = directory.file(path.file_name().unwrap_or_default());
        outputs.write(&name, library.opened.permissions().into(), |out| {
            library.plan.write(&library.opened.file, &mut *out).map_err(io::Error::from)?;
            library.opened.check()
        })?;
        let size = library.plan.size();
        done.libraries.push((library, size));
    }
    let directory = outputs.make_directory(&args.output.join(kpack_dir))?;
    for (target, mut pack) in packs {
        let name = format!("{}_{target}.kpack", args.group);
        let parts = pack.new.layout(pack.frames.sizes()).map_err(|error| error.to_string())?;
        let file = directory.file(&name);
        outputs.write(&file, of_all.into(), |out| {
            parts.write_to(&mut pack.frames, out)?;
            Ok(())
        })?;
        let path = args.output.join(kpack_dir).join(name);
        done.packs.push((path, parts.size(), pack.new.len(), pack.frames.size()));
    }
    outputs.commit()?;
    Ok(done)
}

fn print(args: &Args, done: &Done) -> io::Result<()> {
    let mut out = style::stdout();
    for (library, size) in &done.libraries {
        let path = args.output.join(&library.name);
        let before = library.opened.metadata().len();
        let wrappers = match library.wrappers {
            1 => "1 wrapper".to_owned(),
            n => format!("{n} wrappers"),
        };
        let (path, part) = (input::display(&path), style::percent(*size, before));
        let [before, after] = [before, *size].map(style::size);
        show!(out, "{HEADING}{path}{HEADING:#}  {before} -> {after}, {part}, {wrappers}")?;
    }
    let mut table = Table::default()
        .column("PACK", Align::Left, TARGET)
        .column("IMAGES", Align::Right, PLAIN)
        .column("SIZE", Align::Right, PLAIN);
    for (path, size, count, _) in &done.packs {
        table.row(&[input::display(path), count.to_string(), style::size(*size)]);
    }
    table.print(&mut out, "  ", style::terminal_width())?;
    for (library, _) in &done.libraries {
        super::note(&library.name, &library.plan);
    }
    for (library, _) in done.libraries.iter().filter(|(library, _)| library.recipe.is_none()) {
        let name = &library.name;
        report::note(&format_args!(
            "{name}: packs do not note how it was laid out, as its bundles are compressed: `offload join` will write new ones"
        ));
    }
    out.flush()
}
