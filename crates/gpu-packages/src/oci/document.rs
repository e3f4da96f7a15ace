//! Documents of an image: indexes, manifests and configurations, and their descriptors of each other.

use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash};

use super::json::{Json, Node};

/// A document of an image.
#[derive(Clone)]
pub(super) struct Document {
    /// Its name among the files of the image.
    pub(super) file: String,
    /// The hash that its descriptor says, or the one that it has.
    pub(super) digest: Hash,
    pub(super) json: Json,
    pub(super) role: Role,
}

/// The part that a document plays.
#[derive(Clone)]
pub(super) enum Role {
    /// An index: for each of its manifests the document, if it is one of ours.
    Index(Vec<Option<usize>>),
    /// A manifest: its configuration, and for each of its layers the number.
    Manifest { config: Option<usize>, layers: Vec<Option<usize>> },
    /// The configuration of an image.
    Config,
    /// `manifest.json` of `docker save`.
    DockerManifest,
    /// `repositories` of `docker save`.
    Repositories,
}

/// The entry of a document for another document or a layer (OCI image specification, "Content Descriptors").
pub(super) struct Descriptor<'j> {
    pub(super) node: &'j Node,
    pub(super) media_type: &'j str,
    pub(super) digest: Hash,
    pub(super) size: u64,
}

impl<'j> Descriptor<'j> {
    pub(super) fn of(node: &'j Node) -> Result<Self, Error> {
        let text = |key: &str| node.get(key).and_then(Node::text);
        let digest =
            text("digest").ok_or_else(|| malformed("expected 'digest' in a descriptor"))?;
        let size = node.get("size").and_then(Node::number);
        let size = size.ok_or_else(|| malformed("expected a number 'size' in a descriptor"))?;
        let media_type = text("mediaType").unwrap_or("");
        Ok(Descriptor { node, media_type, digest: parse_digest(digest)?, size })
    }

    /// Returns the name of its file in a layout.
    pub(super) fn file(&self) -> String {
        format!("blobs/sha256/{}", self.digest.to_hex())
    }
}

/// Parses a digest.
pub(super) fn parse_digest(text: &str) -> Result<Hash, Error> {
    let hex = text.strip_prefix("sha256:");
    let is_lower = |hex: &&str| !hex.contains(|c: char| c.is_ascii_uppercase());
    let hash = hex.filter(is_lower).and_then(|hex| Hash::from_hex(Algorithm::Sha256, hex));
    hash.ok_or_else(|| {
        let text = format!("digest: expected sha256: and 64 digits, found '{text}'");
        Error::new(ErrorKind::Unsupported, text)
    })
}

/// Returns whether a name is one that files of images have: it starts with a hash.
pub(super) fn has_hash(name: &[u8]) -> bool {
    let starts = [&b"blobs/sha256/"[..], b"sha256:"];
    let hash = starts.iter().find_map(|start| name.strip_prefix(*start)).unwrap_or(name);
    hash.get(..64).is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit))
}

/// Returns a digest as documents have it.
pub(super) fn digest_text(hash: &Hash) -> String {
    format!("sha256:{}", hash.to_hex())
}

/// Returns whether this is the media type of an index.
pub(super) fn is_index(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/vnd.oci.image.index.v1+json"
            | "application/vnd.docker.distribution.manifest.list.v2+json"
    )
}

/// Returns whether this is the media type of a manifest.
pub(super) fn is_manifest(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/vnd.oci.image.manifest.v1+json"
            | "application/vnd.docker.distribution.manifest.v2+json"
    )
}

/// Returns whether this is the media type of the configuration of an image.
pub(super) fn is_config(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/vnd.oci.image.config.v1+json"
            | "application/vnd.docker.container.image.v1+json"
    )
}

/// Returns whether this is the media type of a layer of files that is not encrypted.
pub(super) fn is_layer(media_type: &str) -> bool {
    let is_known = media_type.starts_with("application/vnd.oci.image.layer.")
        || media_type.starts_with("application/vnd.docker.image.rootfs.");
    is_known && !media_type.ends_with("+encrypted")
}

/// Returns whether this is the media type of a document in the place of a layer: signatures, attestations and lists of software
/// have the configuration of an image, too.
pub(super) fn is_document(media_type: &str) -> bool {
    let starts = ["text/", "application/vnd.cyclonedx"];
    media_type.ends_with("json") || starts.iter().any(|start| media_type.starts_with(start))
}

pub(super) fn malformed(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, text)
}
