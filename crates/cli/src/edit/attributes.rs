//! What a file has beside its bytes, and what becomes of it when the file is edited in place.
//!
//! A file that is edited in place is replaced by a new one under its name. That has the permissions, the owner and the
//! extended attributes of the old one, as far as this process may give them to it. Its time is that of the edit, and
//! other names (hard links) keep the old file.

use std::fs::{File, Metadata};
use std::path::Path;

/// Signatures of the kernel over the contents of a file: they say nothing about another one.
#[cfg(unix)]
const SEALS: [&str; 2] = ["security.ima", "security.evm"];

/// The signature that the kernel keeps of a file, if there is one.
#[cfg(unix)]
pub(super) fn seal(file: &File) -> Option<&'static str> {
    use xattr::FileExt;
    SEALS.into_iter().find(|name| matches!(file.get_xattr(name), Ok(Some(_))))
}

#[cfg(not(unix))]
pub(super) fn seal(_file: &File) -> Option<&'static str> {
    None
}

/// What stands in the way of replacing a file whole, for a warning.
#[cfg(unix)]
pub(super) fn other_names(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let others = metadata.nlink().saturating_sub(1);
    let (names, keep) = if others == 1 { ("name", "keeps") } else { ("names", "keep") };
    (others > 0)
        .then(|| format!("{others} other {names} (hard links) of it {keep} the old contents"))
}

#[cfg(not(unix))]
pub(super) fn other_names(_metadata: &Metadata) -> Option<String> {
    None
}

/// The permissions of a new file that is made from this one, before the umask: nobody becomes somebody else by running
/// it.
#[cfg(unix)]
pub(super) fn mode(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o777
}

#[cfg(not(unix))]
pub(super) fn mode(_metadata: &Metadata) -> u32 {
    0o666
}

/// Gives a file that is written the owner, extended attributes and permissions of the one it replaces. Returns what was
/// not permitted.
#[cfg(unix)]
pub(super) fn hand_over(old: &File, metadata: &Metadata, new: &File) -> Vec<String> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let mut lost = Vec::new();
    // In this order: a new owner takes permissions and attributes away.
    let mut mode = metadata.permissions().mode() & 0o7777;
    if let Err(error) = hand_over_owner(metadata, new) {
        lost.push(format!(
            "its owner {}:{} could not be kept: {}",
            metadata.uid(),
            metadata.gid(),
            crate::report::reason(&error)
        ));
        if mode & SET_ID != 0 {
            lost.push("it is set-user-ID or set-group-ID no longer".to_owned());
            mode &= !SET_ID;
        }
    }
    for (name, error) in copy_attributes(old, new) {
        let reason = crate::report::reason(&error);
        lost.push(format!("its attribute {} could not be kept: {reason}", name.display()));
    }
    if let Err(error) = new.set_permissions(Permissions::from_mode(mode)) {
        lost.push(format!("its mode could not be kept: {}", crate::report::reason(&error)));
    }
    lost
}

#[cfg(not(unix))]
pub(super) fn hand_over(_old: &File, metadata: &Metadata, new: &File) -> Vec<String> {
    // Permissions are those of the old file already.
    let _ = (metadata, new);
    Vec::new()
}

#[cfg(unix)]
const SET_ID: u32 = 0o6000;

#[cfg(unix)]
fn hand_over_owner(metadata: &Metadata, new: &File) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let now = new.metadata()?;
    if (now.uid(), now.gid()) == (metadata.uid(), metadata.gid()) {
        return Ok(());
    }
    let both = fchown(new, Some(metadata.uid()), Some(metadata.gid()));
    if both.is_err() {
        // The group alone may be permitted.
        let _ = fchown(new, None, Some(metadata.gid()));
    }
    both
}

/// Copies extended attributes, access control lists among them. Returns those that could not be copied.
#[cfg(unix)]
fn copy_attributes(old: &File, new: &File) -> Vec<(std::ffi::OsString, std::io::Error)> {
    use xattr::FileExt;
    // Not every file system has them.
    let Ok(names) = old.list_xattr() else { return Vec::new() };
    names
        .filter(|name| !SEALS.iter().any(|seal| name == seal))
        .filter_map(|name| {
            let value = match old.get_xattr(&name) {
                Ok(value) => value?,
                Err(error) => return Some((name, error)),
            };
            // What the file system gives every new file needs no permission.
            if matches!(new.get_xattr(&name), Ok(Some(there)) if there == value) {
                return None;
            }
            new.set_xattr(&name, &value).err().map(|error| (name, error))
        })
        .collect()
}

/// Whether a package of Python is installed or unpacked around the file: it has a list of sizes and hashes.
pub(super) fn lies_in_python_package(path: &Path) -> bool {
    let Ok(path) = std::fs::canonicalize(path) else { return false };
    // An unpacked wheel has `package/lib/libfoo.so` beside `package-1.0.dist-info`.
    const LEVELS: usize = 4;
    let installed = |directory: &Path| {
        directory.ends_with("site-packages") || directory.ends_with("dist-packages")
    };
    path.ancestors().skip(1).any(installed)
        || path.ancestors().skip(1).take(LEVELS).any(has_dist_info)
}

fn has_dist_info(directory: &Path) -> bool {
    const ENTRIES: usize = 1000;
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.take(ENTRIES).flatten().any(|entry| {
        let path = entry.path();
        path.extension().is_some_and(|extension| extension == "dist-info")
            && path.join("RECORD").is_file()
    })
}
