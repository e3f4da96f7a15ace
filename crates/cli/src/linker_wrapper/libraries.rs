//! From the arguments of the host linker to the inputs that are searched for device code.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::options::{Line, Meaning};
use super::sources::{Input, Sources};
use crate::input;
use crate::opened::Opened;
use crate::payload::at;

/// Reads the device code of all inputs and libraries, in their order.
pub(super) fn read(line: &Line, threads: NonZeroUsize) -> io::Result<Sources> {
    let directories = directories(line);
    let mut inputs = Vec::new();
    let mut is_whole = line.all(Meaning::AlwaysWholeArchive).next().is_some();
    for argument in &line.host {
        let path = match argument.meaning {
            Meaning::WholeArchive => {
                is_whole = true;
                continue;
            }
            Meaning::NoWholeArchive => {
                is_whole = false;
                continue;
            }
            Meaning::Library => find(&argument.value, &directories).ok_or_else(|| {
                let name = argument.value.display();
                io::Error::other(format!("unable to find library -l{name}"))
            })?,
            Meaning::Input => PathBuf::from(&argument.value),
            _ => continue,
        };
        inputs.push(Input { path, is_whole });
    }
    Sources::read(threads, &inputs, open)
}

/// Opens an input. Missing files and directories are the host linker's business.
fn open(path: &Path) -> io::Result<Option<Opened>> {
    match path.metadata() {
        Ok(found) if found.is_file() => {
            Opened::regular(path).map(Some).map_err(|error| at(path, &error))
        }
        _ => Ok(None),
    }
}

/// Returns whether a file is an archive or a shared library.
pub(super) fn is_library(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && offload_link::is_library(&head)
}

/// Returns the directories of libraries. One that starts with `=` is below the root of the system.
fn directories(line: &Line) -> Vec<PathBuf> {
    let root = line.all(Meaning::Sysroot).last().map(|argument| PathBuf::from(&argument.value));
    let place = |value: &OsString| {
        let bytes = input::bytes(value.clone());
        match bytes.strip_prefix(b"=") {
            Some(below) => {
                let below = input::path(below);
                let below = below.strip_prefix("/").unwrap_or(&below);
                root.as_deref().unwrap_or(Path::new("")).join(below)
            }
            None => PathBuf::from(value),
        }
    };
    line.all(Meaning::LibraryPath).map(|argument| place(&argument.value)).collect()
}

/// Finds the library of `-l NAME`: a shared one before a static one of the same directory.
fn find(name: &OsStr, directories: &[PathBuf]) -> Option<PathBuf> {
    let bytes = input::bytes(name.to_owned());
    let names = match bytes.strip_prefix(b":") {
        Some(name) => vec![name.to_vec()],
        None if bytes.ends_with(b".lib") => vec![bytes],
        None => [".so", ".a"].map(|end| [b"lib", &bytes[..], end.as_bytes()].concat()).to_vec(),
    };
    let names: Vec<_> = names.iter().map(|name| input::path(name)).collect();
    let paths = directories.iter().flat_map(|directory| names.iter().map(|it| directory.join(it)));
    paths.into_iter().find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_order() {
        let place = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| place.path().join(name));
        for (directory, file) in [(&a, "libx.a"), (&b, "libx.so"), (&b, "liby.a"), (&b, "z.lib")] {
            std::fs::create_dir_all(directory).unwrap();
            std::fs::write(directory.join(file), "").unwrap();
        }
        let directories = [a.clone(), b.clone()];
        let found = |name: &str| find(OsStr::new(name), &directories);
        assert_eq!(found("x"), Some(a.join("libx.a")));
        assert_eq!(found("y"), Some(b.join("liby.a")));
        assert_eq!(found(":libx.so"), Some(b.join("libx.so")));
        assert_eq!(found("z.lib"), Some(b.join("z.lib")));
        assert_eq!(found("w"), None);
    }
}
