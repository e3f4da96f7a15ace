//! Attributes of a file other than its bytes, and their handling when the file is edited in place.
//!
//! A file that is edited in place is replaced by a new one under its name. The new file has the permissions, the
//! owner and the extended attributes of the old one, if this process may set them. Its time is the time of the edit,
//! and other names (hard links) keep the old file.

use std::fs::{File, Metadata};

#[cfg(unix)]
use crate::permissions::Permissions;

/// Signatures of the kernel over the contents of a file: they say nothing about another one.
#[cfg(unix)]
const SEALS: [&str; 2] = ["security.ima", "security.evm"];

/// Returns the signature that the kernel keeps of a file, if there is one.
#[cfg(unix)]
pub fn seal(file: &File) -> Option<&'static str> {
    use xattr::FileExt;
    SEALS.into_iter().find(|name| matches!(file.get_xattr(name), Ok(Some(_))))
}

/// Returns `None`: other systems have no such signatures.
#[cfg(not(unix))]
pub fn seal(_file: &File) -> Option<&'static str> {
    None
}

/// Returns a warning about other names of the file, which keep the old contents.
#[cfg(unix)]
pub fn other_names(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    // A file that was deleted has no name.
    let others = metadata.nlink().saturating_sub(1);
    let (names, keep) = if others == 1 { ("name", "keeps") } else { ("names", "keep") };
    (others > 0)
        .then(|| format!("{others} other {names} (hard links) of it {keep} the old contents"))
}

/// Returns `None`: other systems do not tell.
#[cfg(not(unix))]
pub fn other_names(_metadata: &Metadata) -> Option<String> {
    None
}

/// Gives a file that is being written the owner and the extended attributes of the one it replaces. Returns the ones
/// that were not permitted. Its mode is set when it is complete.
#[cfg(unix)]
pub fn hand_over(old: &File, metadata: &Metadata, new: &File) -> std::io::Result<Vec<String>> {
    let mut lost = Vec::new();
    let permissions = Permissions::of(metadata);
    // In this order: a new owner takes attributes away.
    if let Err(error) = hand_over_owner(permissions.owner(), new) {
        let (owner, group) = permissions.owner();
        let reason = crate::report::reason(&error);
        lost.push(format!("its owner {owner}:{group} could not be kept: {reason}"));
        if permissions.loses_set_id(&new.metadata()?) {
            lost.push("its set-user-ID and set-group-ID bits were removed".to_owned());
        }
    }
    for (name, error) in copy_attributes(old, new) {
        let reason = crate::report::reason(&error);
        lost.push(format!("its attribute {} could not be kept: {reason}", name.display()));
    }
    Ok(lost)
}

/// Does nothing: other systems have other attributes.
#[cfg(not(unix))]
pub fn hand_over(_old: &File, _metadata: &Metadata, _new: &File) -> std::io::Result<Vec<String>> {
    Ok(Vec::new())
}

#[cfg(unix)]
fn hand_over_owner((owner, group): (u32, u32), new: &File) -> std::io::Result<()> {
    use std::os::unix::fs::fchown;
    if Permissions::of(&new.metadata()?).owner() == (owner, group) {
        return Ok(());
    }
    let both = fchown(new, Some(owner), Some(group));
    if both.is_err() {
        // The group alone may be permitted.
        let _ = fchown(new, None, Some(group));
    }
    both
}

/// Copies extended attributes, access control lists among them. Returns the attributes that could not be copied.
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
            // Attributes that the file system gives every new file need no permission.
            if matches!(new.get_xattr(&name), Ok(Some(there)) if there == value) {
                return None;
            }
            new.set_xattr(&name, &value).err().map(|error| (name, error))
        })
        .collect()
}
