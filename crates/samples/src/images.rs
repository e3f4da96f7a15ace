//! Images of containers, byte by byte: OCI layouts, and archives of `docker save`.

use std::collections::BTreeMap;

use sha2::Digest as _;

use crate::packages::{gzip, padded, tar, tar_header};

/// The name and contents of a file.
pub type File = (String, Vec<u8>);

/// Returns the hash of contents as hexadecimal digits.
#[must_use]
pub fn hex(contents: &[u8]) -> String {
    sha2::Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compression of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// None.
    Plain,
    /// gzip.
    Gzip,
    /// Zstandard, in blocks that are not compressed.
    Zstd,
}

/// Returns a Zstandard frame of blocks that are not compressed (RFC 8878, 3.1.1).
#[must_use]
pub fn zstd(contents: &[u8]) -> Vec<u8> {
    // A window of 128 KiB, no checksum.
    let mut out = b"\x28\xb5\x2f\xfd\x00\x38".to_vec();
    let mut chunks = contents.chunks(100_000).peekable();
    while let Some(chunk) = chunks.next() {
        let is_last = u32::from(chunks.peek().is_none());
        out.extend(&(u32::try_from(chunk.len()).unwrap() << 3 | is_last).to_le_bytes()[..3]);
        out.extend(chunk);
    }
    out
}

/// A layer.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its tar file.
    pub tar: Vec<u8>,
    /// Its compression.
    pub packed: Packed,
    /// The annotations of its descriptor, as JSON.
    pub annotations: String,
}

impl Layer {
    /// Returns a layer of these files.
    #[must_use]
    pub fn new(files: &[(&str, &[u8])], packed: Packed) -> Self {
        Layer { tar: tar(files), packed, annotations: String::new() }
    }

    /// Returns the bytes of its file.
    #[must_use]
    pub fn blob(&self) -> Vec<u8> {
        match self.packed {
            Packed::Plain => self.tar.clone(),
            Packed::Gzip => gzip(&self.tar),
            Packed::Zstd => zstd(&self.tar),
        }
    }

    fn media_type(&self) -> &'static str {
        match self.packed {
            Packed::Plain => "application/vnd.oci.image.layer.v1.tar",
            Packed::Gzip => "application/vnd.oci.image.layer.v1.tar+gzip",
            Packed::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }
}

/// The media type of a manifest, and of an index.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The files of a layout.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// All but `index.json`.
    pub files: Vec<File>,
}

impl Layout {
    /// Returns a layout without images.
    #[must_use]
    pub fn new() -> Self {
        Layout {
            files: vec![("oci-layout".into(), b"{\"imageLayoutVersion\": \"1.0.0\"}".to_vec())],
        }
    }

    /// Adds a file by its hash, and returns its descriptor without the last bracket.
    pub fn blob(&mut self, media_type: &str, contents: Vec<u8>) -> String {
        let (hex, size) = (hex(&contents), contents.len());
        let name = format!("blobs/sha256/{hex}");
        if self.files.iter().all(|(known, _)| *known != name) {
            self.files.push((name, contents));
        }
        format!("{{\"mediaType\":\"{media_type}\",\"digest\":\"sha256:{hex}\",\"size\":{size}")
    }

    /// Adds an image, and returns the descriptor of its manifest without the last bracket.
    pub fn image(&mut self, layers: &[Layer], more: &str) -> String {
        let config = self.blob("application/vnd.oci.image.config.v1+json", config(layers));
        let mut items = Vec::new();
        for layer in layers {
            let descriptor = self.blob(layer.media_type(), layer.blob());
            items.push(format!("{descriptor}{}}}", layer.annotations));
        }
        let layers = items.join(", ");
        let manifest = format!(
            "{{ \"schemaVersion\": 2, \"mediaType\": \"{MANIFEST}\",\n \"config\": {config}}},\n \"layers\": [{layers}]{more} }}\n"
        );
        self.blob(MANIFEST, manifest.into_bytes())
    }

    /// Adds an index of these descriptors, and returns its own without the last bracket.
    pub fn index(&mut self, items: &[String]) -> String {
        self.blob(INDEX, index(items))
    }

    /// Returns all files, with an `index.json` of these descriptors.
    #[must_use]
    pub fn finish(mut self, items: &[String]) -> Vec<File> {
        self.files.push(("index.json".into(), index(items)));
        self.files
    }
}

fn index(items: &[String]) -> Vec<u8> {
    let items = items.join(", ");
    format!("{{\"schemaVersion\": 2, \"x-kept\": 1.50, \"manifests\": [{items}]}}").into_bytes()
}

/// Returns the configuration of an image.
#[must_use]
pub fn config(layers: &[Layer]) -> Vec<u8> {
    let ids: Vec<_> = layers.iter().map(|it| format!("\"sha256:{}\"", hex(&it.tar))).collect();
    let history: Vec<_> = layers.iter().map(|_| "{\"created_by\": \"RUN pip\"}").collect();
    let (ids, history) = (ids.join(","), history.join(","));
    format!(
        "{{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{{\"Env\":[\"A=1\"]}},\"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[{ids}]}},\"history\":[{history}]}}"
    )
    .into_bytes()
}

/// Returns a layout of one image.
#[must_use]
pub fn layout(layers: &[Layer]) -> Vec<File> {
    let mut layout = Layout::new();
    let image = layout.image(layers, "");
    layout.finish(&[format!(
        "{image},\"annotations\":{{\"org.opencontainers.image.ref.name\":\"latest\"}}}}"
    )])
}

/// Returns an archive of files.
#[must_use]
pub fn archive(files: &[File]) -> Vec<u8> {
    let files: Vec<_> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    tar(&files)
}

/// Returns the archive that `docker save` wrote up to version 24: layers in directories of their own, whose names are other
/// hashes.
#[must_use]
pub fn docker_archive(layers: &[Layer]) -> Vec<u8> {
    let config = config(layers);
    let config_name = format!("{}.json", hex(&config));
    let mut out = Vec::new();
    let mut names = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let id = hex(format!("layer {number}").as_bytes());
        let name = format!("{id}/layer.tar");
        let plain = tar(&[(&format!("{id}/"), b""), (&format!("{id}/VERSION"), b"1.0")]);
        out.extend(&plain[..plain.len() - 1024]);
        out.extend(tar_header(name.as_bytes(), layer.tar.len() as u64, b'0', b""));
        out.extend(padded(&layer.tar));
        names.push(format!("\"{name}\""));
    }
    let top = hex(format!("layer {}", layers.len() - 1).as_bytes());
    let manifest = format!(
        "[{{\"Config\":\"{config_name}\",\"RepoTags\":[\"a:1\"],\"Layers\":[{}]}}]\n",
        names.join(",")
    );
    let repositories = format!("{{\"a\":{{\"1\":\"{top}\"}}}}\n");
    out.extend(tar(&[
        (&config_name, &config),
        ("manifest.json", manifest.as_bytes()),
        ("repositories", repositories.as_bytes()),
    ]));
    out
}

/// Returns the archive that skopeo and podman write: files by their hashes, and links to them.
#[must_use]
pub fn linked_archive(layers: &[Layer]) -> Vec<u8> {
    let config = config(layers);
    let config_name = format!("{}.json", hex(&config));
    let mut out = Vec::new();
    let mut names = Vec::new();
    for layer in layers {
        let name = format!("{}.tar", hex(&layer.tar));
        out.extend(tar_header(name.as_bytes(), layer.tar.len() as u64, b'0', b""));
        out.extend(padded(&layer.tar));
        let link = format!("{}/layer.tar", hex(name.as_bytes()));
        out.extend(tar_header(link.as_bytes(), 0, b'2', format!("../{name}").as_bytes()));
        names.push(format!("\"{name}\""));
    }
    let manifest = format!(
        "[{{\"Config\":\"{config_name}\",\"RepoTags\":null,\"Layers\":[{}]}}]",
        names.join(",")
    );
    out.extend(tar(&[(&config_name, &config), ("manifest.json", manifest.as_bytes())]));
    out
}

/// Returns the archive that `docker save` writes since version 25: an OCI layout, with `manifest.json` and `repositories`.
#[must_use]
pub fn hybrid_archive(layers: &[Layer]) -> Vec<u8> {
    let mut files = layout(layers);
    let blobs: Vec<_> = layers.iter().map(Layer::blob).collect();
    let names: Vec<_> = blobs.iter().map(|it| format!("\"blobs/sha256/{}\"", hex(it))).collect();
    let sources = layers.iter().zip(&blobs).map(|(layer, blob)| {
        let (id, digest, size, kind) = (hex(&layer.tar), hex(blob), blob.len(), layer.media_type());
        let source =
            format!("{{\"mediaType\":\"{kind}\",\"size\":{size},\"digest\":\"sha256:{digest}\"}}");
        (id, source)
    });
    // Equal layers have one.
    let sources: BTreeMap<_, _> = sources.collect();
    let sources: Vec<_> =
        sources.iter().map(|(id, source)| format!("\"sha256:{id}\":{source}")).collect();
    let manifest = format!(
        "[{{\"Config\":\"blobs/sha256/{}\",\"RepoTags\":[\"a:1\"],\"Layers\":[{}],\"LayerSources\":{{{}}}}}]",
        hex(&config(layers)),
        names.join(","),
        sources.join(",")
    );
    files.push(("manifest.json".into(), manifest.into_bytes()));
    let top = layers.last().map(|layer| hex(&layer.tar)).unwrap();
    files.push(("repositories".into(), format!("{{\"a\":{{\"1\":\"{top}\"}}}}").into_bytes()));
    archive(&files)
}

/// Returns a member of a tar file with extended attributes, and a name that only its pax header has.
#[must_use]
pub fn with_attributes(name: &str, contents: &[u8]) -> Vec<u8> {
    let record = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        let mut len = rest.len() + 1;
        while format!("{len}{rest}").len() != len {
            len += 1;
        }
        format!("{len}{rest}")
    };
    let records = record("path", name) + &record("SCHILY.xattr.security.capability", "\u{1}x");
    let mut out = tar_header(b"PaxHeaders/x", records.len() as u64, b'x', b"");
    out.extend(padded(records.as_bytes()));
    out.extend(tar_header(b"short", contents.len() as u64, b'0', b""));
    out.extend(padded(contents));
    out
}
