//! The end of a CUDA compiler: cubins and PTX packed into a fatbinary, as NVIDIA's `fatbinary --create` does, with the same bytes.
//!
//! `fatbin -o OUTPUT [--mode default|size|speed|none] [--ident NAME] [--cmdline OPTIONS] [-g] [-c] [--image ARCH=FILE | --keep FATBIN]...`
//!
//! ARCH is `sm_90a` or `compute_90a`. An image is a cubin or PTX. `--keep` takes the entries of a fatbinary as they are, `-g` and
//! `-c` say that the code has debug information or is relocatable. The host is Linux.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use nv_fatbin::{Architecture, CompressionMode, Fatbin, Flags, NewEntry, NewFatbin};
use offload_examples::{Error, about, exit, path_from_bytes, read, write};

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    exit("fatbin", pack(&args))
}

/// The command line.
struct Asked<'a> {
    output: Option<&'a Path>,
    mode: CompressionMode,
    identifier: Option<&'a str>,
    options: &'a str,
    flags: Flags,
    is_relocatable: bool,
    /// Architectures with files; a fatbinary has none.
    files: Vec<(Option<Architecture>, &'a Path)>,
}

fn pack(args: &[OsString]) -> Result<(), Error> {
    let asked = parse(args)?;
    let output = asked.output.ok_or("usage: fatbin -o OUTPUT [--image ARCH=FILE]...")?;
    let mut files = Vec::new();
    for (architecture, path) in &asked.files {
        files.push((*architecture, *path, read(path)?));
    }
    let mut fatbin = NewFatbin::new();
    for (architecture, path, file) in &files {
        let added = match architecture {
            Some(architecture) => {
                image(&asked, *architecture, file).and_then(|entry| fatbin.add(&entry))
            }
            None => keep(&mut fatbin, file),
        };
        added.map_err(about(path))?;
    }
    write(output, |file| {
        file.write_all(&fatbin.header())?;
        Ok(fatbin.entries().try_for_each(|entry| file.write_all(entry))?)
    })
}

/// Makes an entry of a cubin or of PTX.
fn image<'a>(
    asked: &Asked<'a>,
    architecture: Architecture,
    file: &'a [u8],
) -> Result<NewEntry<'a>, nv_fatbin::Error> {
    let mut entry = if file.starts_with(b"\x7fELF") {
        NewEntry::cubin(architecture, file)?
    } else {
        NewEntry::ptx(architecture, file)?.options(asked.options.as_bytes())
    };
    entry.identifier = asked.identifier.map(|name| name.as_bytes().into());
    entry.flags |= asked.flags;
    entry.compression = asked.mode.compression(entry.kind, entry.flags, asked.is_relocatable);
    Ok(entry)
}

/// Keeps all entries of a fatbinary.
fn keep<'a>(fatbin: &mut NewFatbin<'a>, file: &'a [u8]) -> Result<(), nv_fatbin::Error> {
    for entry in Fatbin::parse(file)?.entries() {
        fatbin.keep(&entry?)?;
    }
    Ok(())
}

fn parse(args: &[OsString]) -> Result<Asked<'_>, Error> {
    let mut asked = Asked {
        output: None,
        mode: CompressionMode::Default,
        identifier: None,
        options: "",
        flags: Flags::LINUX,
        is_relocatable: false,
        files: Vec::new(),
    };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let name = word.to_str().ok_or("options are UTF-8")?;
        match name {
            "-g" => {
                asked.flags |= Flags::DEBUG;
                continue;
            }
            "-c" => {
                asked.is_relocatable = true;
                continue;
            }
            _ => {}
        }
        let value = words.next().ok_or_else(|| format!("{name}: expected a value"))?;
        let text = || value.to_str().ok_or_else(|| format!("{name}: expected UTF-8"));
        match name {
            "-o" => asked.output = Some(Path::new(value)),
            "--mode" => asked.mode = mode(text()?)?,
            "--ident" => asked.identifier = Some(text()?),
            "--cmdline" => asked.options = text()?,
            "--keep" => asked.files.push((None, Path::new(value))),
            "--image" => {
                let bytes = value.as_encoded_bytes();
                let mut parts = bytes.splitn(2, |&byte| byte == b'=');
                let architecture = parts.next().and_then(|name| str::from_utf8(name).ok());
                let architecture = architecture.and_then(Architecture::from_name);
                let architecture = architecture.ok_or("--image: expected sm_90=FILE")?;
                let file = parts.next().ok_or("--image: expected sm_90=FILE")?;
                asked.files.push((Some(architecture), path_from_bytes(file)?));
            }
            _ => return Err(format!("{name}: unknown option").into()),
        }
    }
    Ok(asked)
}

fn mode(name: &str) -> Result<CompressionMode, Error> {
    Ok(match name {
        "default" => CompressionMode::Default,
        "size" => CompressionMode::Size,
        "speed" => CompressionMode::Speed,
        "none" => CompressionMode::None,
        _ => return Err(format!("{name}: expected default, size, speed or none").into()),
    })
}
