//! Failures, findings and notes of edits, in words.

use std::collections::BTreeMap;
use std::io;

use device_select::{few, names};
use fat_edit::{EditNote, EditableContainer, EditableFile, Error, ErrorKind, NoWayBack};
use tool_kit::failure::Failure;
use tool_kit::{report, scratch, style};

use super::new_images::NewImages;
use super::options::Options;
use super::wishes::Wishes;

/// The contents of temporary files with code objects.
pub const CODES: &str = "code objects";

/// The note about a split library that does not come back byte for byte; after it, the reason.
pub const NO_WAY_BACK: &str =
    "packs do not note how it was laid out, and `offload join` makes new bundles";

/// Returns each reason with the files that it is for.
pub(crate) fn by_reason<'f>(
    files: impl Iterator<Item = (NoWayBack, &'f str)>,
) -> impl Iterator<Item = String> {
    let mut all: BTreeMap<NoWayBack, Vec<&str>> = BTreeMap::new();
    files.for_each(|(reason, file)| all.entry(reason).or_default().push(file));
    all.into_iter().map(|(reason, files)| format!("{reason}: {}", few(files)))
}

/// The most findings that are warned of one by one.
const MOST: usize = 5;

/// Returns warnings about findings that are allowed.
///
/// # Errors
///
/// There are findings, and they are refused.
pub(crate) fn allow(options: &Options, findings: &[impl ToString]) -> Result<Vec<String>, Failure> {
    allow_if(options.host.allow_findings, findings)
}

/// As [`allow`], for commands with other options.
pub(crate) fn allow_if(
    is_allowed: bool,
    findings: &[impl ToString],
) -> Result<Vec<String>, Failure> {
    let advice = "allow editing with --allow-findings";
    if let ([first, others @ ..], false) = (findings, is_allowed) {
        let first = first.to_string();
        return Err(match others {
            [] => Failure::refused(format!("{first} ({advice})")),
            _ => Failure::refused(format!("{first} ({} findings; {advice})", findings.len())),
        });
    }
    let mut warnings: Vec<_> = findings.iter().take(MOST).map(ToString::to_string).collect();
    if let Some(more) = findings.len().checked_sub(MOST).filter(|&n| n > 0) {
        warnings.push(format!("{more} more findings of `offload verify`"));
    }
    Ok(warnings)
}

/// Returns why a package of `old` bytes stays: its new compression is worse than the one that it has.
pub(crate) fn grows(old: u64, new: u64) -> String {
    format!("compressed again without the code, it would be larger: {old} bytes now, {new} then")
}

/// Returns the failure of a member of a package, named by its path.
pub(crate) fn of_member(path: &str, failure: Failure) -> Failure {
    let named = |all: Vec<String>| all.iter().map(|text| format!(":{path}: {text}")).collect();
    match failure {
        Failure::Complaints(all) => Failure::Complaints(named(all)),
        Failure::Refused(all) => Failure::Refused(named(all)),
        other => other,
    }
}

/// Returns the failure of a plan of a join or a split, with the option that helps. Code objects lie in temporary files.
pub fn of_plan(error: Error) -> Failure {
    let option = match error.host().map(object_edit::Error::kind) {
        Some(object_edit::ErrorKind::NoRoom) => " (--grow, or --compress)",
        Some(object_edit::ErrorKind::Signed) => " (--drop-signature drops it)",
        _ => "",
    };
    match error.io() {
        Some(_) => scratch::copying(CODES, error.into()).into(),
        None => Failure::refused(format!("{error}{option}")),
    }
}

/// Returns an error of a package, with the option that helps.
pub(crate) fn of_package(error: gpu_packages::Error) -> Failure {
    match error.kind() {
        gpu_packages::ErrorKind::Signed => {
            Failure::refused(format!("{error} (--drop-signature drops the signature)"))
        }
        gpu_packages::ErrorKind::Io => Failure::from(io::Error::from(error)),
        _ => Failure::refused(error.to_string()),
    }
}

/// Returns an error of the library, with the option that helps.
pub(crate) fn explain(error: &Error, images: &NewImages) -> Failure {
    if let Some((number, target, disagreement)) = error.mismatch() {
        let file = images.name(number);
        let text = format!("'{file}' is not an image for {target}: {disagreement} (--any-image)");
        return Failure::refused(text);
    }
    let option = match error.host().map(object_edit::Error::kind) {
        Some(object_edit::ErrorKind::Signed) => " (--drop-signature drops it)",
        Some(object_edit::ErrorKind::NoRoom) => " (--grow)",
        _ if is_about_hash(error) => " (allow editing with --allow-findings)",
        _ => "",
    };
    match error.io() {
        Some(error) => report::reason(error).into(),
        None => Failure::refused(format!("{error}{option}")),
    }
}

/// Returns the error of a plan, and names the option that leaves uneditable containers alone.
pub(crate) fn refused(
    error: &Error,
    images: &NewImages,
    file: &EditableFile,
    wishes: &Wishes,
) -> Failure {
    let can_leave = images.files.is_empty();
    let uneditable = || file.containers().iter().filter(|c| c.uneditable().is_some());
    match error.kind() {
        ErrorKind::NoBundle => {
            Failure::refused(format!("{error} (--allow-uneditable leaves the file as it is)"))
        }
        ErrorKind::Unsupported if can_leave && uneditable().any(|c| c.path() == error.path()) => {
            let all: Vec<usize> = uneditable().map(EditableContainer::index).collect();
            let stays = match removed_from(file, wishes, &all) {
                names if names.is_empty() => "leaves it as it is".to_owned(),
                names => format!("leaves code for {names}"),
            };
            Failure::refused(format!("{error} (--allow-uneditable {stays})"))
        }
        _ => explain(error, images),
    }
}

/// Returns whether the hash of a compressed bundle is wrong.
pub(crate) fn is_about_hash(error: &Error) -> bool {
    let ccob = error.damage().and_then(fat_object::Error::ccob);
    ccob.is_some_and(|error| error.kind() == ccob::ErrorKind::Hash)
}

/// Returns the error of a name, with what helps where several images or places have it.
pub fn unclear(error: &Error, advice: &str) -> String {
    let text = error.io().map_or_else(|| error.to_string(), report::reason);
    let is_ambiguous = error.kind() == ErrorKind::Ambiguous;
    if is_ambiguous { format!("{text}; choose one by {advice}") } else { text }
}

/// Returns the answer to an option for wheels alone.
pub(crate) fn no_wheel() -> Failure {
    "build tags and variants are for wheels".to_owned().into()
}

/// Returns the note about files or members that no option selects.
pub(crate) fn left_alone(names: &[String]) -> String {
    format!("left alone, because no option selects their code: {}", few(names))
}

/// Returns a remark about the file around device code, in words.
pub fn describe_host(note: &EditNote) -> Option<String> {
    match note {
        EditNote::Zeroed { bytes } => Some(format!(
            "{} could not be removed from the file and are now zeros",
            style::size(*bytes)
        )),
        EditNote::SignatureDropped => Some(note.to_string()),
        _ => None,
    }
}

/// Returns a note in words, with the option that helps.
pub(crate) fn describe(note: &EditNote, file: &EditableFile, wishes: &Wishes) -> String {
    if let Some(text) = describe_host(note) {
        return text;
    }
    let advice = match note {
        EditNote::Uneditable { kind, containers } => {
            let names = removed_from(file, wishes, containers);
            if !names.is_empty() {
                return format!("{kind} cannot be edited: code for {names} stays");
            }
            ""
        }
        EditNote::NotDecompressible => ": decompress needs --grow, before and after",
        EditNote::OlderOffloadBinaries { .. } => {
            " (--format-version 3 compresses what is never loaded)"
        }
        _ => "",
    };
    format!("{note}{advice}")
}

/// Returns the targets of the images that were to leave these containers.
fn removed_from(file: &EditableFile, wishes: &Wishes, containers: &[usize]) -> String {
    names(wishes.edit.removed_from(file, containers))
}
