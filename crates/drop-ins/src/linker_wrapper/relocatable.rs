//! The second half of `-r`: the entries of the object become its own, and its device code is not linked again.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use offload_link::RegisterOptions;
use target_id::Triple;

use super::programs::{Call, Programs};
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::report::reason;

/// The section of entries, and the symbols of its bounds.
const NAMES: [&str; 3] =
    ["llvm_offload_entries", "__start_llvm_offload_entries", "__stop_llvm_offload_entries"];

/// Renames the section and the symbols, with a part of the object's hash, and shows how `llvm-objcopy` would do it.
pub(super) fn make_private(
    object: &Path,
    host_triple: &str,
    options: RegisterOptions,
    programs: Programs,
) -> io::Result<()> {
    if Triple::parse(host_triple).os().starts_with("windows") {
        return Err(io::Error::other("Relocatable linking is not supported on COFF targets"));
    }
    let (bytes, permissions) =
        if programs.is_dry { (Vec::new(), NewPermissions::PLAIN) } else { read(object)? };
    let suffix = format!("{:x}", ccob::hash(&bytes));
    let [section, bounds @ ..] = NAMES;
    let renamed = |name: &str| format!("{name}={name}_{suffix}");
    let mut words: Vec<OsString> = vec![object.as_os_str().to_owned()];
    words.extend(["--remove-section", ".llvm.offloading"].map(OsString::from));
    words.extend(["--rename-section".into(), renamed(section).into()]);
    for bound in bounds {
        words.extend(["--redefine-sym".into(), renamed(bound).into()]);
    }
    programs.show(&Call::new("llvm-objcopy".into(), words));
    if programs.is_dry {
        return Ok(());
    }
    let options = options.with_private_entries(suffix);
    let private = options.host_object(&bytes)?;
    let mut outputs = Outputs::default();
    outputs.write_or_print(object, permissions, |file| file.write_all(&private))?;
    outputs.commit()
}

/// Returns the contents of a file, and its permissions.
fn read(path: &Path) -> io::Result<(Vec<u8>, NewPermissions)> {
    let failed = |error| io::Error::other(format!("'{}': {}", path.display(), reason(&error)));
    let metadata = path.metadata().map_err(failed)?;
    Ok((fs::read(path).map_err(failed)?, NewPermissions::of_input(&metadata)))
}
