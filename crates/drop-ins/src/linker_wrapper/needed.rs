//! Members that the command line of the host linker asks for, and linker scripts in files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use offload_link::{HostOptions, LinkerScript, Members};

use super::options::Line;
use tool_kit::input;

/// Returns which members of archives are linked.
pub(super) fn members(line: &Line) -> io::Result<Members> {
    match line.text("archive-members").as_deref() {
        None | Some("all") => Ok(Members::All),
        Some("needed") if host_options(line).takes_more() => Ok(Members::All),
        Some("needed") => Ok(Members::Needed),
        Some(other) => Err(io::Error::other(format!(
            "--archive-members={other}: expected needed or all, found {other}"
        ))),
    }
}

/// Returns what options for the host linker say about members.
pub(super) fn host_options(line: &Line) -> HostOptions {
    let words = line.host.iter().flat_map(|argument| argument.words.iter().cloned());
    HostOptions::parse(&words.map(input::bytes).collect::<Vec<_>>())
}

/// Returns the linker script in the word of an option. One in a word of its own is an input.
pub(super) fn script(word: &OsStr) -> Option<PathBuf> {
    let word = input::bytes(word.to_owned());
    let starts = [&b"-T"[..], b"-dT", b"--script=", b"-script=", b"--default-script="];
    let values = starts.iter().filter_map(|start| word.strip_prefix(*start));
    values.map(input::path).find(|path| path.is_file())
}

/// Reads a linker script; `None` if the file is something else.
pub(super) fn read_script(path: &Path) -> io::Result<Option<LinkerScript>> {
    const MOST: u64 = LinkerScript::MOST;
    if !path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MOST) {
        return Ok(None);
    }
    let mut text = Vec::new();
    let mut file = File::open(path)?.take(MOST);
    file.by_ref().take(64).read_to_end(&mut text)?;
    if !LinkerScript::may_start(&text) {
        return Ok(None);
    }
    file.read_to_end(&mut text)?;
    Ok(LinkerScript::parse(&text))
}

/// Directories in which the files of scripts are searched.
#[derive(Debug)]
pub(super) struct Places<'p> {
    pub(super) libraries: &'p [PathBuf],
    pub(super) root: Option<&'p Path>,
}

impl Places<'_> {
    /// Finds a file that a script names, other than a library `-lx`.
    pub(super) fn find(&self, script: &Path, name: &[u8]) -> Option<PathBuf> {
        let below_root = |name: &[u8]| {
            let path = input::path(name);
            self.root.map(|root| root.join(path.strip_prefix("/").unwrap_or(&path)))
        };
        if let Some(name) = name.strip_prefix(b"=").or_else(|| name.strip_prefix(b"$SYSROOT")) {
            return below_root(name).filter(|path| path.is_file());
        }
        let path = input::path(name);
        if path.is_absolute() {
            let is_in_root = self.root.is_some_and(|root| script.starts_with(root));
            let in_root = below_root(name).filter(|path| is_in_root && path.is_file());
            return in_root.or(Some(path)).filter(|path| path.is_file());
        }
        let beside = script.parent().map(|directory| directory.join(&path));
        let in_libraries = self.libraries.iter().map(|directory| directory.join(&path));
        let mut all = [path.clone()].into_iter().chain(beside).chain(in_libraries);
        all.find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::parse(text.split(' ').map(|word| word.as_bytes().to_vec()).collect()).unwrap()
    }

    #[test]
    fn members_are_chosen() {
        let chosen = |text: &str| members(&line(text)).map_err(|error| error.to_string());
        assert_eq!(chosen("a.o"), Ok(Members::All));
        assert_eq!(chosen("--archive-members=all"), Ok(Members::All));
        assert_eq!(chosen("--archive-members=needed"), Ok(Members::Needed));
        assert_eq!(chosen("--archive-members=needed -ObjC"), Ok(Members::All));
        assert_eq!(chosen("--archive-members=needed --undefined-glob=x*"), Ok(Members::All));
        let error = "--archive-members=x: expected needed or all, found x";
        assert_eq!(chosen("--archive-members=x"), Err(error.to_owned()));
    }

    #[test]
    fn files_of_scripts_are_found() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["lib/x.o", "usr/y.o", "script/z.o"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        }
        let libraries = [at("lib")];
        let places = Places { libraries: &libraries, root: Some(place.path()) };
        let script = at("script/l.so");
        let find = |name: &str| places.find(&script, name.as_bytes());
        assert_eq!(find("x.o"), Some(at("lib/x.o")));
        assert_eq!(find("z.o"), Some(at("script/z.o")));
        assert_eq!(find("/usr/y.o"), Some(at("usr/y.o")));
        assert_eq!(find("=/usr/y.o"), Some(at("usr/y.o")));
        assert_eq!(find(at("usr/y.o").to_str().unwrap()), Some(at("usr/y.o")));
        assert_eq!((find("none.o"), find("/none.o")), (None, None));
        let option = |start: &str, path: PathBuf| {
            super::script(OsStr::new(&format!("{start}{}", path.to_str().unwrap())))
        };
        assert_eq!(option("-T", at("lib/x.o")), Some(at("lib/x.o")));
        assert_eq!(option("--script=", at("lib/x.o")), Some(at("lib/x.o")));
        assert_eq!(option("-Ttext=", at("lib/x.o")), None);
        assert_eq!(option("-T", at("none")), None);
    }
}
