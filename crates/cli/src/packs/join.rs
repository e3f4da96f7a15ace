//! `offload join`: device code of HIP moved from kernel packs into the library that it was split from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use byte_parts::{Part, Source};
use ccob::{Version, WriteOptions};
use fat_edit::{EditOptions, EditPlan, NewImage, Recipe, move_in};
use fat_object::FileFormat;
use object_edit::{Input, Output};

use super::RECIPE;
use super::hashing::Hashing;
use super::host::{Host, OpenPack};
use crate::help::More;
use tool_kit::failure::Failure;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::{How, Outputs};
use tool_kit::permissions::NewPermissions;
use tool_kit::positioned::Positioned;
use tool_kit::progress::Progress;
use tool_kit::stamp::Stamp;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input, report, scratch};

pub(crate) const MORE: More = More {
    examples: &[
        (
            "offload join split/libfoo.so -o joined.so",
            "take code objects from the packs that the library names",
        ),
        (
            "offload join split/libfoo.so split/.kpack/foo_gfx1100.kpack -o joined.so",
            "take those of one pack only",
        ),
        (
            "offload join split/libfoo.so -o joined.so && offload ls joined.so",
            "list what it has now",
        ),
    ],
    notes: &[
        "If the packs note how the library was laid out, and the library is the one that `offload split` wrote, the result is the \
         file that was split, byte for byte. Otherwise it gets new bundles in the place of the old ones: with more or larger code objects they need \
         --compress or --grow.",
    ],
};

/// Move device code from kernel packs into their library
///
/// The result is a library that needs no packs. Libraries that AMD's tools have split are not joined.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// Library without device code
    #[arg(value_name = "HOST")]
    host: PathBuf,
    /// Kernel packs (default: all where the library says)
    #[arg(value_name = "KPACK")]
    packs: Vec<PathBuf>,
    /// Write the result to OUT; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Compress new bundles
    #[arg(long)]
    compress: bool,
    /// Allow the file to grow; move device code that no longer fits to its end
    #[arg(long)]
    grow: bool,
    /// Allow editing a signed file; remove its signature
    #[arg(long)]
    drop_signature: bool,
    #[command(flatten)]
    max_input: MaxInput,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let name = input::display(&args.host);
    match join(args) {
        Ok(()) => Ok(Outcome::Clean),
        Err(failure) => {
            failure.report(|complaint| report::error(&format_args!("{name}: {complaint}")))
        }
    }
}

/// The largest way back that is read.
const MOST_OF_RECIPE: u64 = 64 << 20;

/// A code object in a pack: the pack, and the entry in its table.
type Place = (usize, usize);

/// The code objects of a library: by the number of the wrapper and the target.
type Codes = BTreeMap<(u64, String), Place>;

fn join(args: &Args) -> Result<(), Failure> {
    let opened = Opened::new(&args.host, args.max_input)?;
    let (mut new, file) = (opened.permissions(), opened.file);
    let stamp = Stamp::of(&file)?;
    let host = Host::read(Positioned::new(&file), &args.host)?
        .ok_or_else(|| "its device code is not in kernel packs".to_owned())?;
    let paths = if args.packs.is_empty() { host.packs()? } else { args.packs.clone() };
    if paths.is_empty() {
        let patterns = host.patterns().join(", ");
        return Err(format!("no kernel packs are there: looked for {patterns}").into());
    }
    let _progress = Progress::start("joining");
    let mut packs = Vec::new();
    for path in &paths {
        packs.push(OpenPack::open(path)?);
    }
    let codes = codes(&host, &packs);
    let used: BTreeSet<usize> = codes.values().map(|(pack, _)| *pack).collect();
    for pack in used.into_iter().filter_map(|pack| packs.get(pack)) {
        new = new.and_of(&pack.file)?;
    }
    if codes.is_empty() {
        let name = host.marker.kernel_name();
        return Err(format!("no kernel pack has code of {name}").into());
    }
    if let Some((expected, recipe)) = recipe(&host, &packs, stamp.size()) {
        if let Some(plan) = by_recipe(&recipe, &packs, &codes)?
            && write(args, (&file, new), stamp, &plan, Some(expected))?
        {
            return Ok(());
        }
        report::note(
            &"it is not the library that was split, or packs are missing: it gets new bundles",
        );
    }
    let plan = anew(args, &file, &host, &packs, &codes)?;
    write(args, (&file, new), stamp, &plan, None)?;
    super::note(&input::display(&args.host), &plan);
    Ok(())
}

/// Returns the code objects of the library, those of later packs where several have one.
fn codes(host: &Host, packs: &[OpenPack]) -> Codes {
    let mut codes = Codes::new();
    for (pack, open) in packs.iter().enumerate() {
        for (at, entry) in open.toc.entries().iter().enumerate() {
            if entry.kernel_name() == host.marker.kernel_name()
                && let Some(index) = entry.index()
            {
                codes.insert((index, entry.arch().to_owned()), (pack, at));
            }
        }
    }
    codes
}

/// Returns the way back to the file that was split, with the hash of that, for a host of this size.
fn recipe(host: &Host, packs: &[OpenPack], size: u64) -> Option<(u64, Recipe)> {
    let key = format!("{RECIPE}{}", host.marker.kernel_name());
    let note = packs.iter().find_map(|pack| pack.toc.note(&key))?;
    let (hash, frame) = note.split_first_chunk()?;
    let recipe_size = kpack::content_size(frame).filter(|size| *size <= MOST_OF_RECIPE)?;
    let recipe = kpack::decompress(frame, recipe_size).ok()?;
    let recipe = Recipe::parse(&recipe).filter(|recipe| recipe.host_size() == size)?;
    Some((u64::from_le_bytes(*hash), recipe))
}

/// The contents of the temporary file.
const CODES: &str = "code objects";

/// Code objects in a temporary file, one after the other.
struct Spool {
    file: File,
    end: u64,
    starts: BTreeMap<Place, (u64, u64)>,
}

impl Spool {
    fn new() -> io::Result<Self> {
        Ok(Spool { file: scratch::file(CODES)?, end: 0, starts: BTreeMap::new() })
    }

    /// Adds a code object, if it is not there; returns its start and its size.
    fn add(&mut self, packs: &[OpenPack], (pack, at): Place) -> Result<(u64, u64), Failure> {
        let Some((open, entry)) =
            packs.get(pack).and_then(|open| Some((open, open.toc.entries().get(at)?)))
        else {
            return Err("a kernel pack was changed".to_owned().into());
        };
        // Several entries may share one.
        let first = open.toc.entries().iter().position(|other| other.ordinal() == entry.ordinal());
        let place = (pack, first.unwrap_or(at));
        if let Some(known) = self.starts.get(&place) {
            return Ok(*known);
        }
        let code = open.code(entry)?;
        let start = self.end;
        self.file.write_all(&code).map_err(|error| scratch::copying(CODES, error))?;
        self.end = self.end.saturating_add(code.len() as u64);
        self.starts.insert(place, (start, code.len() as u64));
        Ok((start, code.len() as u64))
    }
}

/// Plans the file that was split; `None` if a code object is missing.
fn by_recipe(
    recipe: &Recipe,
    packs: &[OpenPack],
    codes: &Codes,
) -> Result<Option<EditPlan>, Failure> {
    let mut spool = Spool::new()?;
    let mut places = BTreeMap::new();
    for (wrapper, target, size) in recipe.images() {
        let Some(place) = codes.get(&(wrapper, target.to_owned())) else { return Ok(None) };
        let (start, found) = spool.add(packs, *place)?;
        if found != size {
            return Ok(None);
        }
        places.insert((wrapper, target.to_owned()), start);
    }
    let place = |wrapper, target: &str| Some((0, *places.get(&(wrapper, target.to_owned()))?));
    Ok(recipe.plan(place, vec![NewImage::new(spool.file)]))
}

/// Plans the library with new bundles.
fn anew(
    args: &Args,
    file: &File,
    host: &Host,
    packs: &[OpenPack],
    codes: &Codes,
) -> Result<EditPlan, Failure> {
    let mut spool = Spool::new()?;
    let placeholder = host_id(file)?;
    let (mut contents, mut offsets) = (Output::new(), Vec::new());
    // Wrappers with the same code objects share a bundle.
    let mut bundles: BTreeMap<Vec<(String, u64, u64)>, u64> = BTreeMap::new();
    for number in &host.numbers {
        let mut entries = vec![(placeholder.clone(), 0, 0)];
        let of_wrapper = codes.range((*number, String::new())..);
        for ((_, target), place) in of_wrapper.take_while(|((other, _), _)| other == number) {
            let entry = packs.get(place.0).and_then(|pack| pack.toc.entries().get(place.1));
            let id = entry.and_then(kpack::Entry::entry_id);
            let id = id.unwrap_or_else(|| format!("hipv4-amdgcn-amd-amdhsa--{target}"));
            let (start, size) = spool.add(packs, *place)?;
            entries.push((id, start, size));
        }
        if let Some(offset) = bundles.get(&entries) {
            offsets.push(*offset);
            continue;
        }
        let sizes = entries.iter().map(|(id, _, size)| (&**id, *size));
        let layout = bundle_format::layout(sizes, ALIGN).map_err(|error| error.to_string())?;
        let next = contents.size().next_multiple_of(ALIGN);
        contents.pad_to(next);
        let mut bundle = Output::new();
        for part in layout.parts.iter() {
            match part {
                Part::Bytes(bytes) => bundle.push_bytes(bytes),
                Part::Zeros(count) => bundle.push_zeros(count),
                Part::Input(&at, range) => {
                    let start = entries.get(at).map_or(0, |(_, start, _)| *start);
                    bundle.push_input(Input::New(0), start + range.start..start + range.end);
                }
            }
        }
        match args.compress {
            true => contents.push_vec(compressed(&bundle, &spool)?),
            false => contents.append(&bundle),
        }
        offsets.push(next);
        bundles.insert(entries, next);
    }
    let options =
        EditOptions::default().with_grow(args.grow).with_drop_signature(args.drop_signature);
    let images = vec![NewImage::new(spool.file)];
    move_in(Positioned::new(file), contents, &offsets, images, &options).map_err(|error| {
        let is_room = error.host().map(object_edit::Error::kind);
        let option = match is_room {
            Some(object_edit::ErrorKind::NoRoom) => " (--grow, or --compress)",
            Some(object_edit::ErrorKind::Signed) => " (--drop-signature drops it)",
            _ => "",
        };
        format!("{error}{option}").into()
    })
}

/// Returns the compressed form of a bundle.
fn compressed(bundle: &Output, spool: &Spool) -> Result<Vec<u8>, Failure> {
    let mut source = Source::new(Positioned::new(&spool.file))?;
    let mut plain = Vec::new();
    for part in bundle.iter() {
        match part {
            Part::Bytes(bytes) => plain.extend_from_slice(bytes),
            Part::Zeros(count) => {
                let count = usize::try_from(count).map_err(|error| error.to_string())?;
                plain.resize(plain.len().saturating_add(count), 0);
            }
            Part::Input(_, range) => source.append_range(&range, &mut plain)?,
        }
    }
    // Version 2, which all runtimes read, unless it cannot hold the bundle.
    let version = if u32::try_from(plain.len()).is_ok() { Version::V2 } else { Version::V3 };
    let options = WriteOptions::default().with_version(version);
    Ok(ccob::compress(&plain, &options).map_err(|error| error.to_string())?)
}

/// Code objects lie at pages, as clang lays them out.
const ALIGN: u64 = 4096;

/// Returns the entry ID of the host in a bundle for this file.
fn host_id(file: &File) -> io::Result<String> {
    let mut source = Source::new(Positioned::new(file))?;
    let head = source.peek(&(0..source.len()), FileFormat::SNIFF_LEN)?;
    Ok(match FileFormat::sniff(&head) {
        FileFormat::Elf { machine: 183 } => "host-aarch64-unknown-linux-gnu-",
        FileFormat::Elf { .. } => "host-x86_64-unknown-linux-gnu-",
        _ => "host-x86_64-pc-windows-msvc-",
    }
    .to_owned())
}

/// Writes the file; `false`, and nothing, if its hash is another one than expected.
fn write(
    args: &Args,
    (file, new): (&File, NewPermissions),
    stamp: Stamp,
    plan: &EditPlan,
    expected: Option<u64>,
) -> Result<bool, Failure> {
    let is_right = |hash| expected.is_none_or(|expected| expected == hash);
    let make = |out: &mut dyn Write| -> io::Result<bool> {
        let mut out = Hashing::new(out);
        plan.write(Positioned::new(file), &mut out).map_err(io::Error::from)?;
        stamp.check(file)?;
        Ok(is_right(out.hash()))
    };
    // Printed bytes cannot be taken back.
    let is_printed = args.output.as_os_str() == "-";
    if is_printed && expected.is_some() && !make(&mut io::sink())? {
        return Ok(false);
    }
    let mut outputs = Outputs::default();
    let how = How { new, replaces: None };
    if !outputs.write_or_print(&args.output, how, |out| make(out))? {
        return Ok(false);
    }
    outputs.commit()?;
    if !is_printed {
        let mut out = style::stdout();
        let path = input::display(&args.output);
        let [before, after] = [stamp.size(), plan.size()].map(style::size);
        let same = if expected.is_some() { ", the file that was split" } else { "" };
        show!(out, "{HEADING}{path}{HEADING:#}  {before} -> {after}{same}")?;
        out.flush()?;
    }
    Ok(true)
}
