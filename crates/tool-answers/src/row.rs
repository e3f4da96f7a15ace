//! One image as `ls` shows it, in tables and as JSON.

use std::hash::Hasher;
use std::io;

use device_code::places_of_target;
use device_select::{Need, few};
use fat_object::{FileFormat, Image, ImageInfo};
use serde::Serialize;
use target_id::IntelGpu;
use twox_hash::XxHash3_64;

/// An image; the fields of one JSON object after the file, in this order.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The description in its container.
    #[serde(flatten)]
    pub listed: ImageInfo,
    /// The hash of its bytes, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The hash without the target, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same: Option<String>,
    /// The GPUs of an archive of machine code of SYCL's, by their names; `SPIR-V` for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<Vec<String>>,
    /// The software that it needs, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<Need>>,
}

impl Row {
    /// Returns the target in tables: of PTX as it is compiled, of an archive those of its members, of a Metal
    /// library the system; a dash for none.
    pub fn target(&self) -> String {
        let image = &self.listed;
        let target = image.loaded_as();
        let id = match (target.id(), &self.archive) {
            ("", Some(gpus)) => few(gpus),
            ("", None) => image.platform().map_or_else(|| "-".to_owned(), |it| it.to_string()),
            (id, _) => id.to_owned(),
        };
        image.marked(&id)
    }

    /// Returns the containers from outside in, each as `kind:name`. Not as displayed: names are exact here.
    pub fn path(&self) -> String {
        let segments = self.listed.path().iter();
        let texts: Vec<_> = segments.map(|s| format!("{}:{}", s.kind(), s.name())).collect();
        texts.join(" ")
    }
}

/// Returns the GPUs that an archive of machine code is for, if the image is one. A finding has the reason why it cannot be read.
pub fn archive(image: &mut Image<'_, '_>) -> Option<Vec<String>> {
    image.sycl()?;
    let name = |gpu: String| match IntelGpu::find(&gpu) {
        _ if gpu == "generic_ir" => "SPIR-V".to_owned(),
        Some(known) => known.name().to_owned(),
        None => gpu,
    };
    let gpus = image.archived_gpus().ok().flatten()?;
    Some(gpus.into_iter().map(name).collect())
}

/// Hands the bytes that `offload extract` writes of an image to `take`, piece by piece. Returns `false` for an image that cannot
/// be decompressed: a finding has the reason.
///
/// # Errors
///
/// Errors of reading the file, and of `take`.
pub fn contents(
    image: &mut Image<'_, '_>,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let is_compressed = image.compression().is_some();
    if is_compressed && image.format() == FileFormat::NotRead {
        return Ok(false);
    }
    match image.code()? {
        Some(code) => take(&code)?,
        None => image.pieces(take)?,
    }
    Ok(true)
}

/// Hashes the bytes that `offload extract` writes of an image: XXH3 with 64 bits, as `xxhsum -H3` prints it. `None` for
/// an image that cannot be decompressed: a finding has the reason.
///
/// # Errors
///
/// Errors of reading the file.
pub fn hash(image: &mut Image<'_, '_>) -> io::Result<Option<String>> {
    let mut hasher = XxHash3_64::new();
    let is_whole = contents(image, &mut |piece| {
        hasher.write(piece);
        Ok(())
    })?;
    Ok(is_whole.then(|| format!("{:016x}", hasher.finish())))
}

/// Hashes an image without the name of its target; `None` for formats in which it is not known where that is.
///
/// # Errors
///
/// Errors of reading the file.
pub fn hash_without_target(image: &mut Image<'_, '_>) -> io::Result<Option<String>> {
    if !matches!(image.format(), FileFormat::Elf { .. }) {
        return Ok(None);
    }
    let code = image.bytes()?;
    let Some(places) = places_of_target(&code) else { return Ok(None) };
    let (mut hasher, mut rest) = (XxHash3_64::new(), 0);
    for place in places {
        let (Some(before), Some(name)) = (code.get(rest..place.start), code.get(place.clone()))
        else {
            return Ok(None);
        };
        hasher.write(before);
        name.iter().for_each(|_| hasher.write_u8(0));
        rest = place.end;
    }
    hasher.write(code.split_at(rest).1);
    Ok(Some(format!("{:016x}", hasher.finish())))
}
