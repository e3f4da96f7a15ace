//! Members of a zip file on a server: which ones are read, and how.

use std::ops::Range;

use gpu_packages::{Member, ZipMember};
use tool_kit::opened::Opened;
use tool_kit::remote::Remote;

/// Ends of the names of files without device code: text, Python's code, pictures, fonts.
const WITHOUT_CODE: [&str; 58] = [
    ".c",
    ".cc",
    ".cfg",
    ".cmake",
    ".cpp",
    ".css",
    ".csv",
    ".cu",
    ".cuh",
    ".cxx",
    ".d.ts",
    ".f90",
    ".gif",
    ".h",
    ".hh",
    ".hip",
    ".hpp",
    ".html",
    ".hxx",
    ".ico",
    ".inc",
    ".ini",
    ".inl",
    ".ipynb",
    ".jinja",
    ".jpeg",
    ".jpg",
    ".js",
    ".json",
    ".lock",
    ".map",
    ".md",
    ".mod",
    ".pc",
    ".pdf",
    ".png",
    ".proto",
    ".pxd",
    ".pxi",
    ".py",
    ".pyc",
    ".pyi",
    ".pyx",
    ".rst",
    ".sh",
    ".svg",
    ".template",
    ".toml",
    ".ttf",
    ".txt",
    ".typed",
    ".wasm.map",
    ".woff",
    ".woff2",
    ".xml",
    ".yaml",
    ".yml",
    ".zig",
];

/// Ends of the names of text that models have, too, with engines and kernels in them: these are large.
const PERHAPS_CODE: [&str; 2] = [".pth", ".ts"];

/// The most bytes of a member that is read by a name like [that](PERHAPS_CODE).
const MOST_TEXT: u64 = 64 << 10;

/// Parts of the names of files that are read in place where they are stored as they are.
const IN_PLACE: [&str; 12] = [
    ".so", ".dll", ".pyd", ".dylib", ".a", ".lib", ".o", ".obj", ".kpack", ".hsaco", ".co",
    ".fatbin",
];

/// The most bytes of a member that is read as a whole, though it is stored as it is: a walk holds programs of this size, because a
/// zip file may be at their end, and in place they would take more requests.
const SMALL: u64 = 64 << 20;

/// Prepares to read a member that lies at `place`; returns `false` for one that is not read, by its name. With `--scan`, all are.
pub(crate) fn prepare(remote: &Remote, member: &ZipMember, place: Option<&Range<u64>>) -> bool {
    // A size may be wrong.
    if member.is_directory() || member.size() == 0 && member.stored_size() == 0 {
        return false;
    }
    let name = String::from_utf8_lossy(member.name()).to_ascii_lowercase();
    let is_hidden = is_large_model(&name, member.size().max(member.stored_size()));
    if !remote.scans() && (is_hidden || !may_hold_code(&name)) {
        remote.add_unread(is_hidden);
        return false;
    }
    let is_stored = member.method() == 0 && member.stored_size() == member.size();
    if let Some(place) = place.filter(|_| !is_stored || !is_in_place(&name, member.size())) {
        remote.ranges.plan(place.clone());
    }
    true
}

/// Returns whether a member of a package is read where it lies, if it is stored as it is: on a server, only a large library.
pub(crate) fn is_read_in_place(package: &Opened, member: &Member) -> bool {
    let name = || String::from_utf8_lossy(member.path().name()).to_ascii_lowercase();
    package.remote().is_none() || is_in_place(&name(), member.size())
}

/// Returns whether a member with this name, in lower case, and size is a model by its size: it is not read, and may hold device code.
fn is_large_model(name: &str, size: u64) -> bool {
    size > MOST_TEXT && may_hold_code(name) && PERHAPS_CODE.iter().any(|end| name.ends_with(end))
}

/// Returns whether a member with this name, in lower case, may hold device code.
fn may_hold_code(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    // The records of a wheel have no suffix: `RECORD`.
    let is_record = name.split('/').rev().skip(1).any(|part| part.ends_with(".dist-info"));
    (!is_record || file.contains('.')) && !WITHOUT_CODE.iter().any(|end| file.ends_with(end))
}

/// Returns whether a member with this name, in lower case, is read at any place.
fn is_in_place(name: &str, size: u64) -> bool {
    size > SMALL && is_library(name)
}

/// Returns whether this is the name of a library, in lower case, or of another file with few bytes to read.
fn is_library(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let mut parts = file.match_indices('.').map(|(at, _)| file.split_at(at).1);
    parts.any(|part| {
        IN_PLACE.iter().any(|end| {
            let rest = part.strip_prefix(end);
            // A library may have a version: `.so.12`.
            rest.is_some_and(|rest| rest.is_empty() || *end == ".so" && rest.starts_with('.'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_read() {
        for name in [
            "a/b.so",
            "lib/libx.so.12",
            "x",
            "x.co",
            "x.bin",
            "x.dist-info",
            "pkg-x.tar.zst",
            "a.py/x",
            "x-1.dist-info/libx.so",
        ] {
            assert!(may_hold_code(name), "{name}");
        }
        for name in [
            "a/b.py",
            "x-1.dist-info/record",
            "x-1.dist-info/sboms/x",
            "x.h",
            "x.json",
            "x.pyc",
            "x.d.ts",
        ] {
            assert!(!may_hold_code(name), "{name}");
            assert!(!is_large_model(name, 1 << 30), "{name}");
        }
        for name in ["model.ts", "a/model.pth"] {
            assert!(may_hold_code(name), "{name}");
            assert!(is_large_model(name, 1 << 20) && !is_large_model(name, 100), "{name}");
        }
        for name in
            ["a/b.so", "lib/libx.so.12", "x.cpython-311-x86_64-linux-gnu.so", "x.dll", "x.co"]
        {
            assert!(is_library(name), "{name}");
        }
        for name in ["pkg-x.tar.zst", "x", "a.so/x.bin", "x.so2", "b.cool"] {
            assert!(!is_library(name), "{name}");
        }
    }
}
