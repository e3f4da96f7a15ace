//! Serialization of results, as `offload ls --json` prints them.

use crate::hcf::HcfImage;
use crate::sycl_table::{SyclImage, SyclProperty, SyclValue, aspect_name};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use target_id::{OffloadKind, Target};

use crate::error::Finding;
use crate::image::ImageInfo;
use crate::listing::Listing;
use crate::model::{Compression, ContainerKind, Location, PathStep, Severity};

/// The name used in machine-readable output.
impl Serialize for ContainerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The name used in machine-readable output.
impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// `kind:name`, not as displayed: the name is exact here.
impl Serialize for PathStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", self.kind(), self.name()))
    }
}

/// The offset in the walked file; nothing for what lies elsewhere.
impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.file_offset().serialize(serializer)
    }
}

/// `method`, `stored_size`, `uncompressed_size`.
impl Serialize for Compression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Compression", 3)?;
        fields.serialize_field("method", self.method())?;
        fields.serialize_field("stored_size", &self.stored_size())?;
        fields.serialize_field("uncompressed_size", &self.uncompressed_size())?;
        fields.end()
    }
}

/// One object of `offload ls --json`, without the name of the file.
impl Serialize for ImageInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let target = self.target();
        let id = Some(target.id()).filter(|id| !id.is_empty());
        let compression = self.compression_around().or(self.compression());
        let more = if self.disagreement().is_some() { 2 } else { 0 };
        let mut fields = serializer.serialize_struct("ImageInfo", 18 + more)?;
        fields.serialize_field("index", &self.index())?;
        fields.serialize_field("path", self.path())?;
        fields.serialize_field("container", &self.container())?;
        fields.serialize_field("kind", &target.kind().map(OffloadKind::as_str))?;
        fields.serialize_field("triple", &triple_text(target))?;
        fields.serialize_field("target", &id)?;
        fields.serialize_field("id", &self.id())?;
        fields.serialize_field("offset", &self.location())?;
        fields.serialize_field("offset_in_container", &self.offset_in_container())?;
        fields.serialize_field("size", &self.size())?;
        fields.serialize_field("stored_size", &self.stored_size())?;
        fields.serialize_field("stored_estimate", &self.stored_estimate())?;
        fields.serialize_field("compression", &compression)?;
        fields.serialize_field("image_format", &self.format())?;
        match self.platform() {
            Some(platform) => fields.serialize_field("platform", &platform.to_string())?,
            None => fields.skip_field("platform")?,
        }
        match self.sycl() {
            Some(sycl) => fields.serialize_field("sycl", &Sycl(sycl))?,
            None => fields.skip_field("sycl")?,
        }
        match self.hcf() {
            Some(hcf) => fields.serialize_field("hcf", &Hcf(hcf))?,
            None => fields.skip_field("hcf")?,
        }
        if let Some(disagreement) = self.disagreement() {
            fields.serialize_field("holds", &disagreement.found())?;
            fields.serialize_field("disagreement", &disagreement.to_string())?;
        }
        if self.path().iter().any(PathStep::is_found_by_scan) {
            fields.serialize_field("found_by", "scan")?;
        } else {
            fields.skip_field("found_by")?;
        }
        fields.end()
    }
}

/// An image of the crate `sycl-table`.
struct Sycl<'a>(&'a SyclImage);

/// `version`, `format`, `compile_options`, `link_options`, `compile_target`, `aspects`, `kernels`, `properties`.
impl Serialize for Sycl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |number| aspect_name(number).map_or_else(|| number.to_string(), str::to_owned);
        let image = self.0;
        let mut fields = serializer.serialize_struct("SyclImage", 8)?;
        fields.serialize_field("version", &image.version())?;
        fields.serialize_field("format", &image.format())?;
        fields.serialize_field("compile_options", image.compile_options())?;
        fields.serialize_field("link_options", image.link_options())?;
        fields.serialize_field("compile_target", &image.compile_target())?;
        fields.serialize_field("aspects", &image.aspects().map(name).collect::<Vec<_>>())?;
        fields.serialize_field("kernels", &image.kernels().collect::<Vec<_>>())?;
        let properties: Vec<_> = image.properties().iter().map(Property).collect();
        fields.serialize_field("properties", &properties)?;
        fields.end()
    }
}

/// A property of such an image.
struct Property<'a>(&'a SyclProperty);

/// `set`, `name`, `value`: a number, a text, an array of bytes, or nothing for a type that is not known.
impl Serialize for Property<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("SyclProperty", 3)?;
        fields.serialize_field("set", self.0.set())?;
        fields.serialize_field("name", self.0.name())?;
        match self.0.value() {
            SyclValue::Number(number) => fields.serialize_field("value", number)?,
            SyclValue::Bytes(bytes) => fields.serialize_field("value", &**bytes)?,
            SyclValue::Text(text) => fields.serialize_field("value", &**text)?,
            _ => fields.serialize_field("value", &())?,
        }
        fields.end()
    }
}

/// An image of the crate `hcf`.
struct Hcf<'a>(&'a HcfImage);

/// `node`, `format`, `kernels`.
impl Serialize for Hcf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("HcfImage", 3)?;
        fields.serialize_field("node", self.0.node())?;
        fields.serialize_field("format", &self.0.format())?;
        fields.serialize_field("kernels", &self.0.kernels().collect::<Vec<_>>())?;
        fields.end()
    }
}

/// `severity`, `path`, `offset`, `message`.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 4)?;
        fields.serialize_field("severity", &self.severity())?;
        fields.serialize_field("path", self.path())?;
        fields.serialize_field("offset", &self.location())?;
        fields.serialize_field("message", &format_args!("{self}"))?;
        fields.end()
    }
}

/// `format`, `size`, `images`, `findings`.
impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Listing", 4)?;
        fields.serialize_field("format", &self.format())?;
        fields.serialize_field("size", &self.size())?;
        fields.serialize_field("images", self.images())?;
        fields.serialize_field("findings", self.findings())?;
        fields.end()
    }
}

/// Returns the triple as people write it: without the empty environment field that bundle entry IDs carry.
fn triple_text(target: &Target) -> Option<&str> {
    let text = target.triple()?.offload_binary_form();
    Some(text).filter(|text| !text.is_empty())
}
