//! From the arguments of the host linker to the inputs that are searched for device code.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use offload_link::Members;

use super::needed::{self, Places};
use super::options::{Line, Meaning};
use super::sources::{Input, Sources};
use tool_kit::input;
use tool_kit::opened::Opened;
use tool_kit::payload::at;

/// The inputs of a link, and names of symbols in linker scripts.
pub(super) struct LinkInputs {
    pub(super) sources: Sources,
    pub(super) names: Vec<Vec<u8>>,
}

/// Reads the device code of all inputs and libraries, in their order; for [`Members::Needed`] their symbols as well.
pub(super) fn read(line: &Line, threads: NonZeroUsize, members: Members) -> io::Result<LinkInputs> {
    let root = line.all(Meaning::Sysroot).last().map(|argument| PathBuf::from(&argument.value));
    let directories = directories(line, root.as_deref());
    let reads_symbols = members == Members::Needed;
    let mut search = Search {
        places: Places { libraries: &directories, root: root.as_deref() },
        distrusts_names: reads_symbols,
        inputs: Vec::new(),
        names: Vec::new(),
    };
    let mut state = State {
        is_whole: line.all(Meaning::AlwaysWholeArchive).next().is_some(),
        // A link for another link takes no shared library.
        is_static: reads_symbols && line.all(Meaning::Relocatable).next().is_some(),
    };
    let mut states = Vec::new();
    for argument in &line.host {
        match argument.meaning {
            Meaning::WholeArchive => state.is_whole = true,
            Meaning::NoWholeArchive => state.is_whole = false,
            Meaning::Library => {
                let path = find(&argument.value, &directories, state.is_static);
                let path = path.ok_or_else(|| {
                    let name = argument.value.display();
                    io::Error::other(format!("unable to find library -l{name}"))
                })?;
                search.add(path, state)?;
            }
            Meaning::Input => search.add(PathBuf::from(&argument.value), state)?,
            // LLVM's tool does not know these. They decide which member the host linker takes.
            Meaning::Other => {
                if reads_symbols {
                    state.change(&argument.value, &mut states);
                }
                if let Some(script) = needed::script(&argument.value) {
                    search.add(script, state)?;
                }
            }
            _ => {}
        }
    }
    let sources = Sources::read(threads, &search.inputs, reads_symbols, open)?;
    Ok(LinkInputs { sources, names: search.names })
}

/// Options that hold for the inputs after them.
#[derive(Clone, Copy)]
struct State {
    is_whole: bool,
    is_static: bool,
}

impl State {
    fn change(&mut self, option: &OsStr, states: &mut Vec<State>) {
        let bytes = input::bytes(option.to_owned());
        let Some(name) = bytes.strip_prefix(b"-") else { return };
        match name.strip_prefix(b"-").unwrap_or(name) {
            b"push-state" => states.push(*self),
            b"pop-state" => *self = states.pop().unwrap_or(*self),
            b"Bstatic" | b"static" | b"dn" | b"non_shared" => self.is_static = true,
            b"Bdynamic" | b"dy" | b"call_shared" => self.is_static = false,
            _ => {}
        }
    }
}

/// Scripts that name each other are followed up to this depth.
const MAX_DEPTH: usize = 8;

/// The inputs of a link, and the inputs that linker scripts name.
struct Search<'d> {
    places: Places<'d>,
    /// Looks for scripts among files with the names of objects and archives, too: `libm.a` may be one.
    distrusts_names: bool,
    inputs: Vec<Input>,
    names: Vec<Vec<u8>>,
}

impl Search<'_> {
    fn add(&mut self, path: PathBuf, state: State) -> io::Result<()> {
        // Most inputs of a link are objects and archives, by name too.
        let is_plain = path.extension().is_some_and(|it| it == "o" || it == "a" || it == "obj");
        if is_plain && !self.distrusts_names || !self.add_script(&path, state, 0)? {
            self.inputs.push(Input { path, is_whole: state.is_whole });
        }
        Ok(())
    }

    /// Adds the files of a linker script. Returns whether it is one and they are known.
    fn add_script(&mut self, path: &Path, state: State, depth: usize) -> io::Result<bool> {
        let script = needed::read_script(path).map_err(|error| at(path, &error))?;
        let Some(script) = script.filter(|_| depth < MAX_DEPTH) else { return Ok(false) };
        let file = |name: &Vec<u8>| match name.strip_prefix(b"-l") {
            Some(library) => {
                let name = input::path(library);
                find(name.as_os_str(), self.places.libraries, state.is_static)
            }
            None => self.places.find(path, name),
        };
        let files: Option<Vec<_>> = script.files.iter().map(file).collect();
        let Some(files) = files else { return Ok(false) };
        self.names.extend(script.names);
        for path in files {
            if !self.add_script(&path, state, depth + 1)? {
                self.inputs.push(Input { path, is_whole: state.is_whole });
            }
        }
        Ok(true)
    }
}

/// Opens an input. Missing files and directories are the host linker's business.
fn open(path: &Path) -> io::Result<Option<Opened>> {
    match Opened::regular(path) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if path.is_file() => Err(at(path, &error)),
        Err(_) => Ok(None),
    }
}

/// Returns whether a file is an archive or a shared library.
pub(super) fn is_library(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && offload_link::is_library(&head)
}

/// Returns the directories of libraries. One that starts with `=` is below the root of the system.
fn directories(line: &Line, root: Option<&Path>) -> Vec<PathBuf> {
    let place = |value: &OsString| {
        let bytes = input::bytes(value.clone());
        match bytes.strip_prefix(b"=") {
            Some(below) => {
                let below = input::path(below);
                let below = below.strip_prefix("/").unwrap_or(&below);
                root.unwrap_or(Path::new("")).join(below)
            }
            None => PathBuf::from(value),
        }
    };
    line.all(Meaning::LibraryPath).map(|argument| place(&argument.value)).collect()
}

/// Finds the library of `-l NAME`: a shared one before a static one of the same directory, unless that is not wanted.
fn find(name: &OsStr, directories: &[PathBuf], is_static: bool) -> Option<PathBuf> {
    let bytes = input::bytes(name.to_owned());
    let names = match bytes.strip_prefix(b":") {
        Some(name) => vec![name.to_vec()],
        None if bytes.ends_with(b".lib") => vec![bytes],
        None if is_static => vec![[b"lib", &bytes[..], b".a"].concat()],
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
        let found = |name: &str| find(OsStr::new(name), &directories, false);
        assert_eq!(found("x"), Some(a.join("libx.a")));
        assert_eq!(found("y"), Some(b.join("liby.a")));
        assert_eq!(found(":libx.so"), Some(b.join("libx.so")));
        assert_eq!(found("z.lib"), Some(b.join("z.lib")));
        assert_eq!(found("w"), None);
        let found = |name: &str| find(OsStr::new(name), &directories, true);
        assert_eq!((found("x"), found("y")), (Some(a.join("libx.a")), Some(b.join("liby.a"))));
    }

    #[test]
    fn options_hold_until_the_state_is_restored() {
        let mut state = State { is_whole: false, is_static: false };
        let mut states = Vec::new();
        let mut change = |option: &str| {
            state.change(OsStr::new(option), &mut states);
            state.is_static
        };
        let options =
            ["-Bstatic", "--push-state", "-Bdynamic", "-x", "--pop-state", "-dy", "-static"];
        assert_eq!(options.map(&mut change), [true, true, false, false, true, false, true]);
        assert!(change("--pop-state"));
    }

    #[test]
    fn files_of_linker_scripts_are_inputs() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("libx.so"), "GROUP(liby.a -lz) EXTERN(more)").unwrap();
        std::fs::write(at("liby.a"), "!<arch>\n").unwrap();
        std::fs::write(at("libz.so"), "INPUT(libz.so)").unwrap();
        let directories = [place.path().to_owned()];
        let mut search = Search {
            places: Places { libraries: &directories, root: None },
            distrusts_names: false,
            inputs: Vec::new(),
            names: Vec::new(),
        };
        let state = State { is_whole: false, is_static: false };
        search.add(at("libx.so"), state).unwrap();
        search.add(at("none.o"), state).unwrap();
        // One that names itself is an input like any other.
        let paths: Vec<_> = search.inputs.iter().map(|input| input.path.clone()).collect();
        assert_eq!(paths, [at("liby.a"), at("libz.so"), at("none.o")]);
        assert!(search.names.contains(&b"more".to_vec()));
    }
}
