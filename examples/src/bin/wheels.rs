//! Which GPUs do the wheels in a directory carry code for?
//!
//! `wheels [--gpu TARGET-ID] PATH...`: wheels, other zip files, and directories of them. With `--gpu`, what that GPU can
//! load, and why not the rest; the exit status is 1 then if a wheel has nothing for it.
//!
//! Wheels come from strangers, and are never unpacked: each file in them whose first bytes are those of something that
//! can hold device code goes through memory, or through a temporary file without a name, up to a limit.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fat_object::{ImageFormat, Options, Severity, list};
use offload_examples::{Error, about, exit};
use target_id::{OffloadKind, Target, TargetId, Triple, compatible};
use tempfile::SpooledTempFile;
use zip::ZipArchive;

/// Larger files of a wheel wait on the disk.
const IN_MEMORY: usize = 64 << 20;
/// What the files of a wheel may come to: so much, or so many times its size. Honest ones come to ten times their size.
const MAX_UNPACKED: u64 = 16 << 20;
const MAX_EXPANSION: u64 = 64;

fn main() -> ExitCode {
    exit("wheels", scan(env::args_os().skip(1).collect()))
}

fn scan(mut args: Vec<OsString>) -> Result<(), Error> {
    let mut gpu = None;
    if let [option, id, ..] = &args[..]
        && option == "--gpu"
    {
        let target = Target::new(None, None, id.to_str().ok_or("target IDs are UTF-8")?);
        target.target_id()?; // otherwise it is compatible with nothing
        gpu = Some(target);
        args.drain(..2);
    }
    if args.is_empty() {
        return Err("usage: wheels [--gpu TARGET-ID] PATH...".into());
    }
    let (mut damaged, mut without) = (0, 0);
    for path in wheels(args)? {
        let mut wheel = Wheel::default();
        // A damaged wheel is no reason to be silent about what is in it, nor not to look at the next.
        if let Err(error) = wheel.scan(&path) {
            eprintln!("wheels: {}: {error}", path.display());
            damaged += 1;
        }
        wheel.print(&path, gpu.as_ref())?;
        without += i32::from(gpu.as_ref().is_some_and(|gpu| !wheel.serves(gpu)));
    }
    match (damaged, without) {
        (0, 0) => Ok(()),
        (0, n) => Err(format!("{n} without code for this GPU").into()),
        (n, _) => Err(format!("{n} damaged").into()),
    }
}

/// The files that are meant.
fn wheels(paths: Vec<OsString>) -> Result<Vec<PathBuf>, Error> {
    let mut wheels = Vec::new();
    for path in paths.into_iter().map(PathBuf::from) {
        if !path.is_dir() {
            wheels.push(path);
            continue;
        }
        let files = fs::read_dir(&path).and_then(|files| files.collect::<Result<Vec<_>, _>>());
        let files = files.map_err(about(&path))?.into_iter().map(|file| file.path());
        let is_wheel = |file: &PathBuf| file.extension().is_some_and(|e| e == "whl" || e == "zip");
        let mut files: Vec<_> = files.filter(is_wheel).collect();
        files.sort();
        wheels.append(&mut files);
    }
    Ok(wheels)
}

/// The images of a wheel, by what they are for and what they are.
#[derive(Default)]
struct Wheel(BTreeMap<(String, String), Row>);

struct Row {
    target: Target,
    images: usize,
    bytes: u64,
}

impl Wheel {
    fn scan(&mut self, path: &Path) -> Result<(), Error> {
        let file = File::open(path)?;
        let mut budget = MAX_UNPACKED.max(file.metadata()?.len().saturating_mul(MAX_EXPANSION));
        let mut zip = ZipArchive::new(BufReader::new(file))?;
        for index in 0..zip.len() {
            let member = zip.by_index(index)?;
            let name = member.name()?.escape_debug().to_string();
            self.scan_member(member, &mut budget).map_err(about(Path::new(&name)))?;
        }
        Ok(())
    }

    fn scan_member(&mut self, mut member: impl Read, budget: &mut u64) -> Result<(), Error> {
        let mut head = Vec::new();
        member.by_ref().take(2048).read_to_end(&mut head)?;
        let format = ImageFormat::sniff(&head);
        if format == ImageFormat::Empty || !format.is_read() {
            return Ok(());
        }
        // Sizes in a zip file are claims; what comes out of it is counted.
        let mut file = SpooledTempFile::new(IN_MEMORY);
        let size = io::copy(&mut (&head[..]).chain(member).take(*budget), &mut file)?;
        *budget -= size;
        if *budget == 0 {
            return Err("this wheel unpacks to more than a wheel does".into());
        }
        let listing = list(&mut file, &Options::default())?;
        for image in &listing {
            // As it is loaded: PTX runs on newer GPUs, too.
            self.add(&image.loaded_as(), image.format(), image.size());
        }
        // A file that is a code object itself is in no container, which would tell what it is for.
        if let Some(target) = code_object(&head) {
            self.add(&target, format, size);
        }
        match listing.findings().iter().find(|finding| finding.severity() == Severity::Error) {
            Some(finding) => Err(finding.to_string().into()),
            None => Ok(()),
        }
    }

    fn add(&mut self, target: &Target, format: ImageFormat, size: u64) {
        if target.kind() == Some(&OffloadKind::Host) || format == ImageFormat::Empty {
            return;
        }
        let target = target.clone();
        let name = match (target.id(), target.triple()) {
            ("", Some(triple)) => triple.as_str(),
            ("", None) => "?",
            (id, _) => id,
        };
        let key = (name.escape_debug().to_string(), format.to_string());
        let row = self.0.entry(key).or_insert(Row { target, images: 0, bytes: 0 });
        row.images += 1;
        row.bytes += size;
    }

    fn serves(&self, gpu: &Target) -> bool {
        self.0.values().any(|row| compatible(&row.target, gpu).is_compatible())
    }

    fn print(&self, path: &Path, gpu: Option<&Target>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let nothing = if self.0.is_empty() { ": no device code" } else { "" };
        writeln!(out, "{}{nothing}", path.display())?;
        for ((name, format), row) in &self.0 {
            let (images, kib) = (row.images, row.bytes as f64 / 1024.0);
            let why = gpu.map(|gpu| format!("  {}", compatible(&row.target, gpu)));
            let why = why.unwrap_or_default();
            writeln!(out, "  {name:24} {format:12} {images:6} images {kib:9.1} KiB{why}")?;
        }
        Ok(())
    }
}

/// What an AMD GPU code object is for, by its ELF header.
fn code_object(head: &[u8]) -> Option<Target> {
    if ImageFormat::sniff(head) != (ImageFormat::Elf { machine: 224 }) {
        return None;
    }
    let flags = u32::from_le_bytes(*head.get(48..)?.first_chunk()?);
    let id = TargetId::from_elf_flags(flags, *head.get(8)?)?;
    Some(Target::new(None, Some(Triple::parse("amdgcn-amd-amdhsa")), &id.to_string()))
}
