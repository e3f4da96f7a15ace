//! NVIDIA fatbinaries made of cubins, PTX and LTO-IR.

pub mod nvidia;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use nv_fatbin::{
    Architecture, CompressionMode, Fatbin, Flags, Kind, MAGIC, NewEntry, NewFatbin, concatenate,
};

use tool_kit::input;
use tool_kit::opened::MaxInput;
use tool_kit::payload::{Payload, at};
use tool_kit::permissions::NewPermissions;

/// Bytes of a file that are looked at to see whether it is PTX.
const HEAD: u64 = 4096;

/// A file to put into a fatbinary.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Kind and architecture; `None` for PTX that names its own, and for a fatbinary whose entries are taken.
    named: Option<(Kind, Architecture)>,
    path: PathBuf,
}

/// Options for all images.
#[derive(Debug)]
pub struct Options {
    /// The compression of entries.
    pub mode: CompressionMode,
    /// Cubins are compressed, too.
    pub compress_all: bool,
    /// `true` to make one entry of the images for one architecture.
    pub concatenate: bool,
    /// The flags that all entries get.
    pub flags: Flags,
    /// Size of addresses, for PTX and LTO-IR; `None` takes what these say.
    pub is_64: Option<bool>,
    /// The name of the source file.
    pub identifier: Option<Vec<u8>>,
    /// Options for `ptxas`, beside PTX.
    pub ptx_options: Vec<u8>,
    /// Options for `nvlink`, beside LTO-IR.
    pub lto_options: Vec<u8>,
    /// PTX may be for later architectures than its entry says, as NVIDIA's `fatbinary` permits.
    pub any_ptx: bool,
}

impl Image {
    /// Reads `sm_90a=FILE`, `compute_90=FILE`, `lto_90=FILE`, or the name of a file.
    pub fn parse(text: &[u8]) -> io::Result<Self> {
        let mut parts = text.splitn(2, |&byte| byte == b'=');
        let name = parts.next().and_then(|name| std::str::from_utf8(name).ok());
        let (Some(name), Some(path)) = (name, parts.next()) else {
            return Ok(Image { named: None, path: input::path(text) });
        };
        match named(name) {
            Some(named) => Ok(Image { named: Some(named), path: input::path(path) }),
            None if ["sm_", "compute_", "lto_"].iter().any(|kind| name.starts_with(kind)) => {
                Err(io::Error::other(format!(
                    "'{name}' is not an architecture: expected one such as sm_90, sm_90a, compute_90 or lto_90"
                )))
            }
            None => Ok(Image { named: None, path: input::path(text) }),
        }
    }
}

/// Returns the kind and architecture of a name.
fn named(name: &str) -> Option<(Kind, Architecture)> {
    let (kind, number) = match name.split_once('_')? {
        ("sm", number) => (Kind::ELF, number),
        ("compute", number) => (Kind::PTX, number),
        ("lto", number) => (Kind::LTO_IR, number),
        _ => return None,
    };
    Some((kind, Architecture::from_name(&format!("sm_{number}"))?))
}

/// Returns the name of code of this kind: `sm_90a`, `compute_90a`, `lto_90a`.
fn name_of(kind: Kind, architecture: Architecture) -> String {
    let (number, suffix) = (architecture.sm(), architecture.suffix());
    match kind {
        Kind::PTX | Kind::RELOCATABLE_PTX => format!("compute_{number}{suffix}"),
        Kind::LTO_IR => format!("lto_{number}{suffix}"),
        _ => format!("sm_{number}{suffix}"),
    }
}

/// Returns the flag of the system that this machine runs.
pub fn host() -> Flags {
    host_of(std::env::consts::OS)
}

/// Returns the flag of the system that a name or a triple names.
fn host_of(name: &str) -> Flags {
    let systems = [
        ("linux", Flags::LINUX),
        ("windows", Flags::WINDOWS),
        ("mingw", Flags::WINDOWS),
        ("macos", Flags::MACOS),
        ("darwin", Flags::MACOS),
    ];
    let found = systems.into_iter().find(|(system, _)| name.contains(system));
    found.map_or(Flags::empty(), |(_, flag)| flag)
}

impl Options {
    /// Returns what `fatbinary` does without options.
    pub fn new(flags: Flags) -> Self {
        Options {
            mode: CompressionMode::Default,
            compress_all: false,
            concatenate: false,
            flags,
            is_64: None,
            identifier: None,
            ptx_options: Vec::new(),
            lto_options: Vec::new(),
            any_ptx: false,
        }
    }
}

/// Makes the fatbinary to wrap of these files, for a host with this triple; `None` if they are one that is not to be packed.
pub fn to_wrap(images: &[PathBuf], triple: &str, max: MaxInput) -> io::Result<Option<Made>> {
    let images = images.iter().map(|image| Image::parse(&input::bytes(image.clone().into())));
    let images = images.collect::<io::Result<Vec<_>>>()?;
    if let [Image { named: None, path }] = &images[..] {
        // A pipe can be read once only.
        let is_file = path.as_os_str() != "-" && path.is_file();
        let head = if is_file { Payload::open(path, max, HEAD)?.1 } else { Vec::new() };
        if !head.starts_with(b"\x7fELF") && Architecture::of_ptx(&head).is_none() {
            return Ok(None);
        }
    }
    if images.is_empty() {
        return Ok(None);
    }
    make(&images, &Options::new(host_of(triple)), max).map(Some)
}

/// A fatbinary in memory.
pub struct Made {
    /// The fatbinary.
    pub bytes: Vec<u8>,
    /// The permissions of its file: no more than the images have.
    pub permissions: NewPermissions,
    /// The entries: `sm_90a`, of several images `sm_80 sm_90`; their size in the file, and the size of their code.
    pub entries: Vec<(String, u64, u64)>,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made")
            .field("bytes", &self.bytes.len())
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

/// Makes a fatbinary of files.
pub fn make(images: &[Image], options: &Options, max: MaxInput) -> io::Result<Made> {
    let files = images.iter().map(|image| read(&image.path, max));
    let files = files.collect::<io::Result<Vec<_>>>()?;
    let permissions = NewPermissions::of_all(files.iter().map(|(_, permissions)| *permissions));
    let mut new = Vec::new();
    let mut fatbin = NewFatbin::new();
    for (image, (file, _)) in images.iter().zip(&files) {
        let failed = |error| at(&image.path, &error);
        match entry(image, file, options).map_err(failed)? {
            Some(entry) => new.push(entry),
            None => keep(&mut fatbin, file).map_err(|error| failed(io::Error::other(error)))?,
        }
    }
    if options.concatenate {
        new = concatenate(new).map_err(io::Error::other)?;
    }
    for entry in new {
        let compression = options.mode.compression(entry.kind, entry.flags, options.compress_all);
        fatbin.add(&entry.with_compression(compression)).map_err(io::Error::other)?;
    }
    let bytes = fatbin.to_vec().map_err(io::Error::other)?;
    let entries = entries(&bytes).map_err(io::Error::other)?;
    Ok(Made { bytes, permissions, entries })
}

fn read(path: &Path, max: MaxInput) -> io::Result<(Vec<u8>, NewPermissions)> {
    let (file, _) = Payload::open(path, max, 0)?;
    Ok((file.read()?, file.permissions()))
}

/// Keeps all entries of a fatbinary.
fn keep<'a>(fatbin: &mut NewFatbin<'a>, file: &'a [u8]) -> Result<(), nv_fatbin::Error> {
    for entry in Fatbin::parse(file)?.entries() {
        fatbin.keep(&entry?)?;
    }
    Ok(())
}

/// Returns the entry of a file; `None` for a fatbinary.
fn entry<'a>(image: &Image, file: &'a [u8], options: &Options) -> io::Result<Option<NewEntry<'a>>> {
    let made = match image.named {
        None if file.starts_with(&MAGIC) => return Ok(None),
        None if file.starts_with(b"\x7fELF") => {
            let name = Architecture::of_cubin(file).map_err(io::Error::other)?;
            let path = image.path.display();
            return Err(io::Error::other(format!(
                "is a cubin: expected its architecture, such as {name}={path} or {name}a={path}"
            )));
        }
        None => match Architecture::of_ptx(file) {
            Some(architecture) => NewEntry::ptx(architecture, file),
            None => {
                let text = "expected a cubin, PTX, LTO-IR or a fatbinary";
                return Err(io::Error::other(text));
            }
        },
        Some((Kind::ELF, architecture)) => NewEntry::cubin(architecture, file),
        Some((Kind::LTO_IR, architecture)) => NewEntry::lto_ir(architecture, file),
        Some((_, architecture)) => {
            let target = Architecture::of_ptx(file);
            if let Some(target) = target.filter(|it| !options.any_ptx && !architecture.takes(*it)) {
                let (target, name) = (name_of(Kind::PTX, target), name_of(Kind::PTX, architecture));
                return Err(io::Error::other(format!("is PTX for {target}, not for {name}")));
            }
            NewEntry::ptx(architecture, file)
        }
    };
    let mut entry = made.map_err(io::Error::other)?;
    entry.flags |= options.flags;
    entry.identifier = options.identifier.clone().map(Into::into);
    let text = match entry.kind {
        Kind::PTX => &options.ptx_options,
        Kind::LTO_IR => &options.lto_options,
        kind => {
            // A cubin has its own width.
            return match options.is_64 {
                Some(is_64)
                    if kind == Kind::ELF && entry.flags.contains(Flags::BITS_64) != is_64 =>
                {
                    Err(io::Error::other(format!(
                        "is a cubin for addresses of {} bits: expected {}",
                        if is_64 { 32 } else { 64 },
                        if is_64 { 64 } else { 32 }
                    )))
                }
                _ => Ok(Some(entry)),
            };
        }
    };
    entry.options = Some(text.clone().into());
    if let Some(is_64) = options.is_64 {
        entry.flags.set(Flags::BITS_64, is_64);
    }
    Ok(Some(entry))
}

/// Describes the entries of a fatbinary.
fn entries(bytes: &[u8]) -> Result<Vec<(String, u64, u64)>, nv_fatbin::Error> {
    let described = |entry: Result<nv_fatbin::Entry<'_>, nv_fatbin::Error>| {
        let entry = entry?;
        let name = match entry.kind() {
            Kind::CONCATENATED => {
                let images = entry.concatenated()?;
                let names = images.iter().map(|one| name_of(one.kind(), one.architecture()));
                names.collect::<Vec<_>>().join(" ")
            }
            kind => name_of(kind, entry.architecture()),
        };
        Ok((name, entry.stored_size(), entry.size()))
    };
    Fatbin::parse(bytes)?.entries().map(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_an_architecture_or_a_name_alone() {
        for (text, name, path) in [
            ("sm_90a=a.cubin", Some("sm_90a"), "a.cubin"),
            ("compute_80=a=b.ptx", Some("compute_80"), "a=b.ptx"),
            ("lto_75=x", Some("lto_75"), "x"),
            ("a=b.ptx", None, "a=b.ptx"),
            ("sm_90a", None, "sm_90a"),
        ] {
            let image = Image::parse(text.as_bytes()).unwrap();
            let found = image.named.map(|(kind, architecture)| name_of(kind, architecture));
            assert_eq!((found.as_deref(), image.path.to_str().unwrap()), (name, path));
        }
    }
}
