//! One image as `ls` shows it, in the table and as JSON.

use fat_object::{Compression, Image, ImageFormat};
use serde::Serialize;

use crate::select::triple_text;

/// The fields of one JSON object, in this order.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The file, as given on the command line.
    pub(super) file: String,
    /// Position among all images of the file, as `extract --index` takes it.
    pub(super) index: usize,
    /// The containers from outside in, each as `kind:name`.
    pub(super) path: Vec<String>,
    /// The format that describes the image.
    pub(super) container: &'static str,
    pub(super) kind: Option<String>,
    pub(super) triple: Option<String>,
    pub(super) target: Option<String>,
    pub(super) id: Option<String>,
    /// Offset in the file; null inside compressed data and in members of thin archives.
    pub(super) offset: Option<u64>,
    /// Offset from the start of the bundle (decompressed), package, fatbinary or section.
    pub(super) offset_in_container: u64,
    /// Bytes of the image, decompressed.
    pub(super) size: u64,
    /// Bytes it takes in the file; null for one of several images that are compressed together.
    pub(super) stored_size: Option<u64>,
    pub(super) compression: Option<Compressed>,
    pub(super) image_format: &'static str,
    #[serde(skip)]
    pub(super) format: ImageFormat,
}

/// The compressed container around an image, or the compression of the image itself.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Compressed {
    method: &'static str,
    stored_size: u64,
    uncompressed_size: u64,
}

impl From<Compression> for Compressed {
    fn from(compression: Compression) -> Self {
        Compressed {
            method: compression.method(),
            stored_size: compression.stored_size(),
            uncompressed_size: compression.uncompressed_size(),
        }
    }
}

impl Row {
    pub(super) fn new(file: &str, image: &Image<'_, '_>) -> Self {
        let target = image.target();
        let around = image.compressed_bundle();
        let stored_size = match (around, image.compression()) {
            (Some(_), _) => None,
            (None, Some(own)) => Some(own.stored_size()),
            (None, None) => Some(image.size()),
        };
        Row {
            file: file.to_owned(),
            index: image.index(),
            // Not as displayed: names are exact here.
            path: (image.path().iter())
                .map(|segment| format!("{}:{}", segment.kind(), segment.name()))
                .collect(),
            container: image.container().as_str(),
            kind: target.kind().map(ToString::to_string),
            triple: triple_text(target).map(str::to_owned),
            target: Some(target.id()).filter(|id| !id.is_empty()).map(str::to_owned),
            id: image.id().map(str::to_owned),
            offset: image.location().file_offset(),
            offset_in_container: image.offset_in_container(),
            size: image.size(),
            stored_size,
            compression: around.or(image.compression()).map(Compressed::from),
            image_format: image.format().as_str(),
            format: image.format(),
        }
    }

    /// Bytes in the file that this image stands for: exact, or its part of the compressed bundle around it.
    pub(super) fn stored(&self) -> u64 {
        match (self.stored_size, &self.compression) {
            (Some(stored), _) => stored,
            (None, Some(around)) if around.uncompressed_size > 0 => {
                let part = u128::from(self.size) * u128::from(around.stored_size)
                    / u128::from(around.uncompressed_size);
                u64::try_from(part).unwrap_or(u64::MAX)
            }
            _ => 0,
        }
    }

    /// The text of the STORED column: empty when stored as it is.
    pub(super) fn stored_text(&self) -> String {
        match (&self.compression, self.stored_size) {
            (None, _) => String::new(),
            _ if self.size == 0 => String::new(),
            (Some(_), Some(stored)) => crate::style::size(stored),
            (Some(_), None) => format!("~{}", crate::style::size(self.stored())),
        }
    }

    /// What totals are counted by: the target ID, else the kind or triple.
    pub(super) fn group(&self) -> String {
        let kind = self.kind.as_deref();
        match &self.target {
            Some(target) => target.clone(),
            None if kind == Some("host") => "host".to_owned(),
            None => {
                self.triple.clone().or(self.kind.clone()).unwrap_or_else(|| "(unnamed)".to_owned())
            }
        }
    }
}
