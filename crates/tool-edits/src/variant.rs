//! Wheels that become variants, with all their files.

use std::io;
use std::path::{Path, PathBuf};

use gpu_packages::{Error, VariantMetadata, WheelEdit};
use tool_inputs::variants::OpenWheel;
use tool_kit::output::Outputs;

/// Writes a wheel with these metadata and its other files as they are; returns its path and its size in bytes.
///
/// # Errors
///
/// With the path of the wheel: it has a signature that is not dropped, or cannot be read or written.
pub fn write_variant(
    from: &OpenWheel,
    metadata: &VariantMetadata,
    (directory, drops_signature): (&Path, bool),
) -> io::Result<(PathBuf, u64)> {
    let (OpenWheel { wheel, opened, zip }, failed) = (from, |error: Error| from.failed(&error));
    let label = metadata.variants().next().map(|(label, _)| label);
    let planned = WheelEdit::new(zip).and_then(|mut edit| {
        edit.variant(metadata).drop_signature(drops_signature).plan(opened.reader())
    });
    let rewrite = planned.map_err(failed)?;
    let name = wheel.name.clone().with_label(label).map_err(failed)?.to_string();
    let mut outputs = Outputs::default();
    let file = outputs.make_directory(directory)?.file(&name);
    outputs.write(&file, opened.permissions().into(), |out| {
        rewrite.write_to(&opened.file, &mut *out).map_err(io::Error::other)?;
        opened.check()
    })?;
    outputs.commit()?;
    Ok((directory.join(name), rewrite.size()))
}
