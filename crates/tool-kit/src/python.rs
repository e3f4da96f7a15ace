//! The directories in which Python finds modules, without running code of an environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::input::path;
use crate::report::reason;

/// Prints the directories of distributions. `-S` keeps Python from running the code in `.pth` files and `sitecustomize`,
/// `-I` from importing modules of the current directory; `site` then finds the directories as it does at every start. The
/// bytes are those of the file system: UTF-8 on Windows, where text would be in a code page that lacks some letters.
const PRINT_SITES: &str = "\
import os, sys, site
paths = []
def add(directory, known=None):
    paths.append(directory)
    return known
site.addsitedir = add
known = site.venv(set())
if site.ENABLE_USER_SITE is not False and not os.environ.get('PYTHONNOUSERSITE'):
    add(site.getusersitepackages())
site.addsitepackages(known)
sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, paths)))
";

/// Returns the directories of the Python that the shell would start, in the order in which it searches them.
///
/// # Errors
///
/// There is no Python, or it fails, or a directory has a name that is not text on Windows.
pub fn search_path() -> Result<Vec<PathBuf>, String> {
    // On Windows `python` may be a program of its store that only offers to install one.
    let pythons: &[&[&str]] =
        if cfg!(windows) { &[&["python"], &["py", "-3"]] } else { &[&["python3"]] };
    let mut faults = Vec::new();
    for python in pythons {
        match ask(python) {
            Ok(printed) => return directories(&printed, cfg!(windows)),
            Err(fault) => faults.push(fault),
        }
    }
    Err(faults.join("; "))
}

/// Returns what a Python prints, which words start.
fn ask(python: &[&str]) -> Result<Vec<u8>, String> {
    let name = python.join(" ");
    let mut words = python.iter().chain(&["-I", "-S", "-c", PRINT_SITES]);
    let mut command = Command::new(words.next().unwrap_or(&""));
    let asked = command.args(words).output();
    let asked = asked.map_err(|error| format!("{name} cannot be run: {}", reason(&error)))?;
    if asked.status.success() {
        Ok(asked.stdout)
    } else {
        Err(format!("{name} does not tell where its packages are"))
    }
}

/// Returns the directories that Python printed, which end at zero bytes. None is left out: the packages in it would be missed.
fn directories(printed: &[u8], are_text: bool) -> Result<Vec<PathBuf>, String> {
    let directory = |bytes: &[u8]| match str::from_utf8(bytes) {
        Err(_) if are_text => {
            let name = String::from_utf8_lossy(bytes);
            Err(format!(
                "{name}: Python's search path has a directory whose name is not valid text"
            ))
        }
        _ => Ok(path(bytes)),
    };
    printed.split(|&byte| byte == 0).filter(|bytes| !bytes.is_empty()).map(directory).collect()
}

/// Returns the directories with distributions below the prefix of an environment.
pub fn directories_in(prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for library in ["lib", "lib64", "local/lib"] {
        let entries = fs::read_dir(prefix.join(library)).into_iter().flatten();
        let entries = entries.filter_map(Result::ok).map(|entry| entry.path());
        let mut pythons: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        pythons.sort();
        for python in pythons {
            let name = python.file_name().map(|name| name.as_encoded_bytes());
            if name.is_some_and(|name| name.starts_with(b"python") || name.starts_with(b"pypy")) {
                found.push(python.join("site-packages"));
                found.push(python.join("dist-packages"));
            }
        }
    }
    found.push(prefix.join("Lib").join("site-packages"));
    found.retain(|path| path.is_dir());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_directory_of_python_is_left_out() {
        let found = directories("C:\\Users\\J\u{fc}rgen\0D:\\x\0".as_bytes(), true).unwrap();
        assert_eq!(found, [Path::new("C:\\Users\\J\u{fc}rgen"), Path::new("D:\\x")]);
        let in_code_page = b"C:\\Users\\J\xfcrgen";
        let error = directories(in_code_page, true).unwrap_err();
        assert!(error.starts_with("C:\\Users\\J\u{fffd}rgen: Python's search path"), "{error}");
        #[cfg(unix)]
        assert_eq!(directories(in_code_page, false).unwrap(), [path(in_code_page)]);
    }

    #[test]
    fn a_missing_python_is_named() {
        let error = ask(&["no-such-python", "-3"]).unwrap_err();
        assert!(error.starts_with("no-such-python -3 cannot be run: "), "{error}");
    }
}
