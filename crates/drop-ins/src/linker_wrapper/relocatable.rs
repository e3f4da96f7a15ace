//! The second half of `-r`: the entries of the object become its own, and its device code is not linked again.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use target_id::Triple;

use super::files::Files;
use super::programs::{Call, Programs};
use tool_kit::report::reason;

/// The section of entries, and the symbols of its bounds.
const NAMES: [&str; 3] =
    ["llvm_offload_entries", "__start_llvm_offload_entries", "__stop_llvm_offload_entries"];

/// Renames the section and the symbols by `llvm-objcopy`, with a part of the object's hash.
pub(super) fn make_private(
    object: &Path,
    host_triple: &str,
    programs: Programs,
    files: &Files,
) -> io::Result<()> {
    if Triple::parse(host_triple).os().starts_with("windows") {
        return Err(io::Error::other("Relocatable linking is not supported on COFF targets"));
    }
    let bytes = if programs.is_dry {
        Vec::new()
    } else {
        fs::read(object).map_err(|error| {
            io::Error::other(format!("'{}': {}", object.display(), reason(&error)))
        })?
    };
    let suffix = ccob::hash(&bytes);
    let [section, bounds @ ..] = NAMES;
    let renamed = |name: &str| format!("{name}={name}_{suffix:x}");
    let mut words: Vec<OsString> = vec![object.as_os_str().to_owned()];
    words.extend(["--remove-section", ".llvm.offloading"].map(OsString::from));
    words.extend(["--rename-section".into(), renamed(section).into()]);
    for bound in bounds {
        words.extend(["--redefine-sym".into(), renamed(bound).into()]);
    }
    let objcopy = programs.find("llvm-objcopy", &[])?;
    programs.run(&Call::new(objcopy, words), files)
}
