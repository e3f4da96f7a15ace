//! Which GPUs do the wheels in a directory carry code for?
//!
//! `wheels [--gpu GPU] PATH...`: wheels, other zip files, and directories of them. With `--gpu`, what that GPU
//! loads, why not the rest, and which containers lack code for it; the exit status is 1 then if a wheel does not run on
//! it.
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

use device_select::{Candidate, Device, Unit, select, units};
use fat_object::{FileFormat, Options, Severity, list};
use offload_examples::{Error, about, exit};
use tempfile::SpooledTempFile;
use zip::ZipArchive;

/// Larger files of a wheel wait on the disk.
const IN_MEMORY: usize = 64 << 20;
/// Most bytes that the files of a wheel may have: this, or a multiple of its size. Honest ones have ten times its size.
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
        gpu = Some(Device::parse(id.to_str().ok_or("target IDs are UTF-8")?)?);
        args.drain(..2);
    }
    if args.is_empty() {
        return Err("usage: wheels [--gpu GPU] PATH...".into());
    }
    let (mut damaged, mut without) = (0, 0);
    for path in wheels(args)? {
        let mut wheel = Wheel::default();
        // After a damaged wheel, list its readable images and go on to the next wheel.
        if let Err(error) = wheel.scan(&path, gpu.as_ref()) {
            eprintln!("wheels: {}: {error}", path.display());
            damaged += 1;
        }
        wheel.print(&path)?;
        without += i32::from(gpu.is_some() && !wheel.is_served());
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

/// The images of a wheel, by what they are for and what they are, and why a GPU loads them or not.
#[derive(Default)]
struct Wheel {
    rows: BTreeMap<(String, String, String), Row>,
    /// `true` if all containers of a file that count have code for the GPU.
    serves_a_file: bool,
    /// Containers that lack code for it.
    lacking: Vec<String>,
}

#[derive(Default)]
struct Row {
    images: usize,
    bytes: u64,
}

impl Wheel {
    fn scan(&mut self, path: &Path, gpu: Option<&Device>) -> Result<(), Error> {
        let file = File::open(path)?;
        let mut budget = MAX_UNPACKED.max(file.metadata()?.len().saturating_mul(MAX_EXPANSION));
        let mut zip = ZipArchive::new(BufReader::new(file))?;
        for index in 0..zip.len() {
            let member = zip.by_index(index)?;
            let name = member.name()?.escape_debug().to_string();
            self.scan_member(member, &name, gpu, &mut budget).map_err(about(Path::new(&name)))?;
        }
        Ok(())
    }

    fn scan_member(
        &mut self,
        mut member: impl Read,
        name: &str,
        gpu: Option<&Device>,
        budget: &mut u64,
    ) -> Result<(), Error> {
        let mut head = Vec::new();
        member.by_ref().take(2048).read_to_end(&mut head)?;
        let format = FileFormat::sniff(&head);
        if format == FileFormat::Empty || !format.is_read() {
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
        let units = units(&mut file)?;
        match gpu {
            Some(gpu) => self.judge(name, &units, gpu),
            None => {
                let images = units.iter().flat_map(Unit::candidates);
                images.for_each(|image| self.add(image, String::new()));
            }
        }
        match listing.findings().iter().find(|finding| finding.severity() == Severity::Error) {
            Some(finding) => Err(finding.to_string().into()),
            None => Ok(()),
        }
    }

    /// Adds the images of a file, with what becomes of each on a GPU.
    fn judge(&mut self, file: &str, units: &[Unit], gpu: &Device) {
        let selection = select(units, gpu);
        self.serves_a_file |= selection.is_served();
        for (unit, answer) in units.iter().zip(selection.answers()) {
            for (image, judged) in unit.candidates().iter().zip(&answer.images) {
                self.add(image, judged.reason().to_string());
            }
            // Files for GPUs of other vendors lie beside those for this one.
            if answer.lacks_code() && unit.vendor().is_none_or(|vendor| vendor == gpu.vendor()) {
                let place = unit.place().escape_debug().to_string();
                self.lacking.push(format!("{file}: {place}"));
            }
        }
    }

    fn add(&mut self, image: &Candidate, why: String) {
        if image.target().is_host() || image.format() == FileFormat::Empty {
            return;
        }
        let name = image.label().escape_debug().to_string();
        let row = self.rows.entry((name, image.format().to_string(), why)).or_default();
        row.images += 1;
        row.bytes += image.size();
    }

    /// Returns whether every container has code for the GPU that needs it.
    fn is_served(&self) -> bool {
        self.serves_a_file && self.lacking.is_empty()
    }

    fn print(&self, path: &Path) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let nothing = if self.rows.is_empty() { ": no device code" } else { "" };
        writeln!(out, "{}{nothing}", path.display())?;
        for ((name, format, why), row) in &self.rows {
            let (images, kib) = (row.images, row.bytes as f64 / 1024.0);
            let line = format!("  {name:24} {format:12} {images:6} images {kib:9.1} KiB  {why}");
            writeln!(out, "{}", line.trim_end())?;
        }
        self.lacking.iter().try_for_each(|place| writeln!(out, "  no code in {place}"))
    }
}
