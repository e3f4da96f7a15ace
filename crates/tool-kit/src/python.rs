//! The directories in which Python finds modules, without running code of an environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::input::path;
use crate::report::reason;

/// Prints the directories of distributions. `-S` keeps Python from running the code in `.pth` files and `sitecustomize`,
/// `-I` from importing modules of the current directory; `site` then finds the directories as it does at every start.
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
/// There is no Python, or it fails.
pub fn search_path() -> Result<Vec<PathBuf>, String> {
    let python = if cfg!(windows) { "python" } else { "python3" };
    let asked = Command::new(python).args(["-I", "-S", "-c", PRINT_SITES]).output();
    let asked = asked.map_err(|error| format!("{python} cannot be run: {}", reason(&error)))?;
    if !asked.status.success() {
        return Err(format!("{python} does not tell where its packages are"));
    }
    let printed = asked.stdout.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    Ok(printed.map(path).collect())
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
