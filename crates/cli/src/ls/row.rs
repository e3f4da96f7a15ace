//! One image as `ls` shows it, in the table and as JSON.

use std::cmp::Reverse;
use std::hash::Hasher;
use std::io;

use device_select::{Need, few};
use fat_object::{FileFormat, Image, ImageInfo, TargetTotal};
use serde::Serialize;
use target_id::IntelGpu;
use twox_hash::XxHash3_64;

use tool_kit::style;

/// Returns the text of the STORED column: empty for an image that is not compressed.
pub(super) fn stored_text(image: &ImageInfo) -> String {
    match (image.compression_around().or(image.compression()), image.stored_size()) {
        (None, _) => String::new(),
        _ if image.size() == 0 => String::new(),
        (Some(_), Some(stored)) => style::size(stored),
        (Some(_), None) => format!("~{}", style::size(image.stored_estimate())),
    }
}

/// Returns the containers from outside in, each as `kind:name`. Not as displayed: names are exact here.
pub(super) fn path(image: &ImageInfo) -> String {
    let segments = image.path().iter();
    let texts: Vec<_> = segments.map(|s| format!("{}:{}", s.kind(), s.name())).collect();
    texts.join(" ")
}

/// Keys of `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Key {
    /// In file order
    File,
    /// Largest first
    Size,
    /// Largest share of the file first
    Stored,
    /// By target ID
    Target,
}

impl Key {
    /// Sorts images, each with its hash.
    pub(super) fn sort(self, images: &mut [&Hashed]) {
        match self {
            Key::File => {}
            Key::Size => images.sort_by_key(|image| Reverse(image.listed.size())),
            Key::Stored => images.sort_by_key(|image| Reverse(image.listed.stored_estimate())),
            Key::Target => images.sort_by_cached_key(|image| image.listed.total_name()),
        }
    }

    /// Sorts sums, each with something about it.
    pub(super) fn sort_sums<T>(self, sums: &mut [(T, &TargetTotal)]) {
        match self {
            Key::File => {}
            Key::Size => sums.sort_by_key(|(_, total)| Reverse(total.size)),
            Key::Stored => sums.sort_by_key(|(_, total)| Reverse(total.stored)),
            Key::Target => sums.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name)),
        }
    }
}

/// An image; the fields of one JSON object after the file, in this order.
#[derive(Debug, Serialize)]
pub(super) struct Hashed {
    #[serde(flatten)]
    pub(super) listed: ImageInfo,
    /// With `--hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<String>,
    /// The hash without the target, with `--same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) same: Option<String>,
    /// The GPUs of an archive of machine code of SYCL's, by their names; `SPIR-V` for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) archive: Option<Vec<String>>,
    /// With `--needs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) needs: Option<Vec<Need>>,
}

impl Hashed {
    /// Returns the target in tables: of PTX as it is compiled, of an archive those of its members, of a Metal
    /// library the system; a dash for none.
    pub(super) fn target(&self) -> String {
        let image = &self.listed;
        let target = image.loaded_as();
        let id = match (target.id(), &self.archive) {
            ("", Some(gpus)) => few(gpus),
            ("", None) => image.platform().map_or_else(|| "-".to_owned(), |it| it.to_string()),
            (id, _) => id.to_owned(),
        };
        image.marked(&id)
    }
}

/// Returns the GPUs that an archive of machine code is for, if the image is one. A finding has the reason why it cannot be read.
pub(super) fn archive(image: &mut Image<'_, '_>) -> Option<Vec<String>> {
    image.sycl()?;
    let name = |gpu: String| match IntelGpu::find(&gpu) {
        _ if gpu == "generic_ir" => "SPIR-V".to_owned(),
        Some(known) => known.name().to_owned(),
        None => gpu,
    };
    let gpus = image.archived_gpus().ok().flatten()?;
    Some(gpus.into_iter().map(name).collect())
}

/// Hashes the bytes that `offload extract` writes of an image: XXH3 with 64 bits, as `xxhsum -H3` prints it. `None` for
/// an image that cannot be decompressed: a finding has the reason.
pub(super) fn hash(image: &mut Image<'_, '_>) -> io::Result<Option<String>> {
    let mut hasher = XxHash3_64::new();
    let is_compressed = image.compression().is_some();
    if is_compressed && image.format() == FileFormat::NotRead {
        return Ok(None);
    }
    match image.code()? {
        Some(code) => hasher.write(&code),
        None => image.pieces(&mut |piece| {
            hasher.write(piece);
            Ok(())
        })?,
    }
    Ok(Some(format!("{:016x}", hasher.finish())))
}
