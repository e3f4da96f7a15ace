//! Failures of editing, in words.

use fat_edit::Error;
use tool_kit::failure::Failure;
use tool_kit::report as messages;

use super::new_images::NewImages;

/// Returns whether the hash of a compressed bundle is wrong.
pub(super) fn is_about_hash(error: &Error) -> bool {
    let ccob = error.damage().and_then(fat_object::Error::ccob);
    ccob.is_some_and(|error| error.kind() == ccob::ErrorKind::Hash)
}

/// Returns an error of the library, with the option that helps.
pub(super) fn explain(error: &Error, images: &NewImages) -> Failure {
    if let Some((number, target, disagreement)) = error.mismatch() {
        let file = images.name(number);
        return format!("'{file}' is not an image for {target}: {disagreement} (--any-image)")
            .into();
    }
    let option = match error.host().map(object_edit::Error::kind) {
        Some(object_edit::ErrorKind::Signed) => " (--drop-signature drops it)",
        Some(object_edit::ErrorKind::NoRoom) => " (--grow)",
        _ if is_about_hash(error) => " (allow editing with --allow-findings)",
        _ => "",
    };
    let text = error.io().map_or_else(|| error.to_string(), messages::reason);
    format!("{text}{option}").into()
}

/// Returns the answer to an option for wheels alone.
pub(super) fn no_wheel() -> Failure {
    "--build-tag is for wheels".to_owned().into()
}
