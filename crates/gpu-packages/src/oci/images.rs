//! The documents and layers of the images in a layout or an archive.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::{Algorithm, Hash};
use crate::path::MemberPath;

use super::document::{
    Descriptor, Document, Role, has_hash, is_config, is_document, is_index, is_layer, is_manifest,
    malformed, parse_digest,
};
use super::json::{Json, Node};

/// The most bytes of a document, as registries and runtimes have it.
const MAX_DOCUMENT: u64 = 4 << 20;
/// The most documents.
const MAX_DOCUMENTS: usize = 10_000;
/// The most bytes of memory for a value of a document, while it is parsed.
const NODE: u64 = 256;
/// The manifest of `docker save`.
const DOCKER: &str = "manifest.json";
/// The media type of the configuration of an image.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of a layer without compression.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// The most indexes in each other.
const MAX_DEPTH: usize = 8;

/// The files of a layout or of an archive, by their names in it, such as `blobs/sha256/4f1c...`.
pub trait ImageFiles {
    /// Returns the size of a file in bytes; `None` if there is none of this name. Links in an archive are followed.
    fn size(&self, name: &str) -> Option<u64>;

    /// Reads a file of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// Errors of reading; [`Limit`](ErrorKind::Limit) for a larger file.
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Error>;

    /// Returns whether there is a file with a name like this.
    fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool;

    /// Returns the name of the file that a name leads to, by links.
    fn resolve(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// The images of an OCI layout, an OCI archive or an archive of `docker save`: documents and layers.
///
/// A change goes through four steps: [`ImageLayer::read`] for each layer, [`Images::views`] and [`Images::change_lists`],
/// [`ImageLayer::rewrite`] for each layer that changes, [`Images::replace_layers`].
///
/// ```
/// use std::collections::BTreeMap;
/// use gpu_packages::{Error, ImageFiles, Images};
///
/// struct Files(BTreeMap<&'static str, &'static str>);
///
/// impl ImageFiles for Files {
///     fn size(&self, name: &str) -> Option<u64> {
///         Some(self.0.get(name)?.len() as u64)
///     }
///
///     fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
///         self.0.keys().any(|name| is_wanted(name))
///     }
///
///     fn read(&self, name: &str, _: u64) -> Result<Vec<u8>, Error> {
///         self.0.get(name).map(|text| text.as_bytes().to_vec()).ok_or(Error::refused("it is not there"))
///     }
/// }
///
/// let version = ("oci-layout", r#"{"imageLayoutVersion": "1.0.0"}"#);
/// let files = Files(BTreeMap::from([version, ("index.json", r#"{"manifests": []}"#)]));
/// let images = Images::read(&files, 1 << 20)?.ok_or("it is a layout")?;
/// assert_eq!((images.layers().len(), images.images().len()), (0, 0));
/// assert!(Images::read(&Files(BTreeMap::new()), 1 << 20)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Images {
    pub(super) documents: Vec<Document>,
    pub(super) layers: Vec<ImageLayer>,
    pub(super) images: Vec<Image>,
    findings: Vec<Finding>,
    unread: Vec<Finding>,
    notes: Vec<String>,
    pub(super) others: Vec<Other>,
}

/// A document beside the images, which is not looked into.
pub(super) struct Other {
    pub(super) file: String,
    /// The files that it names; `None` if that is not known.
    pub(super) names: Option<Vec<String>>,
}

/// A layer of images.
#[derive(Clone, Debug)]
pub struct ImageLayer {
    pub(super) file: String,
    pub(super) digest: Option<Hash>,
    pub(super) size: Option<u64>,
    pub(super) diff_id: Option<Hash>,
}

/// An image: its layers, from the lowest.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) config: usize,
    pub(super) layers: Vec<usize>,
    /// The tag that an index or `docker save` gives it.
    tag: Option<String>,
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Images")
            .field("documents", &self.documents.len())
            .field("layers", &self.layers.len())
            .field("images", &self.images.len())
            .finish_non_exhaustive()
    }
}

impl ImageLayer {
    /// Returns the name of its file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the hash of its file, if a manifest has it.
    #[must_use]
    pub fn digest(&self) -> Option<&Hash> {
        self.digest.as_ref()
    }

    /// Returns the hash of its tar file without compression, as the configuration has it.
    #[must_use]
    pub fn diff_id(&self) -> Option<&Hash> {
        self.diff_id.as_ref()
    }
}

impl Images {
    /// Reads the documents of images; `None` if they lack `oci-layout` with `index.json`, and the `manifest.json` of
    /// `docker save`. One of these alone, or another file of that name, is not damage unless other files are named by hashes.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) and absent documents, and [`Unsupported`](ErrorKind::Unsupported) digests and formats.
    /// [`Limit`](ErrorKind::Limit) for a document of more than 4 MiB, more than 10 000 documents, and indexes in more than 8 others.
    /// [`Limit`](ErrorKind::Limit) if all documents need more than `most_held` bytes of memory. Errors of the files.
    pub fn read(files: &dyn ImageFiles, most_held: u64) -> Result<Option<Self>, Error> {
        let is_there = |name: &str| files.size(name).is_some();
        let has_layout = is_there("oci-layout") && is_there("index.json");
        let has_manifest = is_there("manifest.json");
        let has_blobs = || files.has(&|name| has_hash(name.as_bytes()));
        if !has_layout && !has_manifest && has_blobs() {
            let pairs = [
                ("oci-layout", "index.json"),
                ("index.json", "oci-layout"),
                ("repositories", "manifest.json"),
            ];
            return match pairs.iter().find(|(name, _)| is_there(name)) {
                Some((name, absent)) => {
                    let text = format!("{absent}: expected this file beside {name}, found none");
                    Err(malformed(text))
                }
                None => Ok(None),
            };
        }
        let (images, by_file, layers) = (Images::new(), HashMap::new(), HashMap::new());
        let tag = None;
        let mut reader = Reader { files, images, by_file, layers, most_held, room: most_held, tag };
        if has_layout {
            reader.read_version()?;
            reader.index(&files.resolve("index.json"), None, 0)?;
        }
        if has_manifest && !reader.docker_manifest(has_layout || has_blobs())? {
            return Ok(None);
        }
        Ok((has_layout || has_manifest).then_some(reader.images))
    }

    fn new() -> Self {
        Images {
            documents: Vec::new(),
            layers: Vec::new(),
            images: Vec::new(),
            findings: Vec::new(),
            unread: Vec::new(),
            notes: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Returns the layers, each once.
    #[must_use]
    pub fn layers(&self) -> &[ImageLayer] {
        &self.layers
    }

    /// Returns the numbers of the layers of each image, from the lowest.
    pub fn images(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.images.iter().map(|image| &image.layers[..])
    }

    /// Returns names of the images in the order of the [views](Self::views), each different: the tag if there is one, and the
    /// platform, such as `latest, linux/arm64`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let (mut lists, mut known) = (HashSet::new(), HashSet::new());
        let images = self.images.iter().filter(|image| lists.insert(&image.layers[..]));
        let name = |image: &Image| {
            let config = self.documents.get(image.config);
            let text = |key: &str| config?.json.root.get(key)?.text();
            let platform = ["os", "architecture", "variant"].map(text);
            let platform: Vec<&str> = platform.into_iter().flatten().collect();
            let platform = Some(platform.join("/")).filter(|it| !it.is_empty());
            let parts: Vec<String> = image.tag.clone().into_iter().chain(platform).collect();
            let mut name = parts.join(", ");
            if let Some(config) = config
                && (name.is_empty() || !known.insert(name.clone()))
            {
                name = format!("{name}, {}", config.digest.to_hex());
            }
            name
        };
        images.map(name).collect()
    }

    /// Returns documents that differ from their hash or size.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns images that are not read because a layer is not there, or a part is encrypted or not understood. The path of a finding
    /// is the manifest.
    #[must_use]
    pub fn unread(&self) -> &[Finding] {
        &self.unread
    }

    /// Returns what is not looked into, and why: platforms that are not there, and documents of other media types.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

struct Reader<'f> {
    files: &'f dyn ImageFiles,
    images: Images,
    /// Documents by the names of their files.
    by_file: HashMap<String, usize>,
    /// Layers by the names of their files.
    layers: HashMap<String, usize>,
    /// The most bytes of memory for all documents, and the rest of them.
    most_held: u64,
    room: u64,
    /// The tag of the images that are read.
    tag: Option<String>,
}

impl Reader<'_> {
    fn read_version(&mut self) -> Result<(), Error> {
        let (json, _) = self.json("oci-layout", None)?;
        match json.root.get("imageLayoutVersion").and_then(Node::text) {
            Some("1.0.0") => Ok(()),
            found => {
                let found = found.unwrap_or("none");
                let text = format!("oci-layout: imageLayoutVersion: expected 1.0.0, found {found}");
                Err(Error::new(ErrorKind::Unsupported, text))
            }
        }
    }

    /// Reads a file, and compares it with what is expected.
    fn json(
        &mut self,
        file: &str,
        expected: Option<&Descriptor<'_>>,
    ) -> Result<(Json, Hash), Error> {
        let of_file = |error: Error| error.while_reading(file);
        if self.images.documents.len() >= MAX_DOCUMENTS {
            let text = format!("an image exceeds the limit of {MAX_DOCUMENTS} documents");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let text = self.files.read(file, MAX_DOCUMENT).map_err(of_file)?;
        let (hash, size) = (Hash::of(Algorithm::Sha256, &text), text.len() as u64);
        if let Some(expected) = expected {
            let fault = faults((Some(&expected.digest), Some(expected.size)), (&hash, size));
            self.images.findings.extend(fault.map(|text| finding(file, text)));
        }
        let held = size + Json::most_values(&text) * NODE;
        self.room = self.room.checked_sub(held).ok_or_else(|| {
            let most = self.most_held;
            let text = format!("the documents of the images exceed the limit of {most} bytes held");
            of_file(Error::new(ErrorKind::Limit, text))
        })?;
        let digest = expected.map_or(hash, |expected| expected.digest.clone());
        Ok((Json::parse(text).map_err(of_file)?, digest))
    }

    fn add(&mut self, file: &str, (json, digest): (Json, Hash), role: Role) -> usize {
        let number = self.images.documents.len();
        self.images.documents.push(Document { file: file.to_owned(), digest, json, role });
        self.by_file.insert(file.to_owned(), number);
        number
    }

    /// Returns the number of a document that was read already.
    fn known(&self, file: &str, expected: Option<&Descriptor<'_>>) -> Result<Option<usize>, Error> {
        let Some(number) = self.by_file.get(file) else { return Ok(None) };
        let known = self.images.documents.get(*number).map(|document| &document.digest);
        one_digest(file, known, expected)?;
        Ok(Some(*number))
    }

    /// Reads an index and all below it.
    fn index(
        &mut self,
        file: &str,
        expected: Option<&Descriptor<'_>>,
        depth: usize,
    ) -> Result<usize, Error> {
        if depth > MAX_DEPTH {
            let text = format!("{file}: an index in {MAX_DEPTH} others exceeds the limit");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let (json, digest) = self.json(file, expected)?;
        let items = json.root.get("manifests").filter(|items| items.is_array());
        let items =
            items.ok_or_else(|| malformed(format!("{file}: expected a list 'manifests'")))?;
        let mut children = Vec::new();
        for item in items.items() {
            let descriptor = Descriptor::of(item).map_err(|error| error.while_reading(file))?;
            let before = self.tag.clone();
            self.tag = tag_of(item).map(str::to_owned).or(before.clone());
            children.push(self.child(&descriptor, depth)?);
            self.tag = before;
        }
        Ok(self.add(file, (json, digest), Role::Index(children)))
    }

    /// Reads what an index names; `None` if it is not there, or something else than an image.
    fn child(&mut self, descriptor: &Descriptor<'_>, depth: usize) -> Result<Option<usize>, Error> {
        let file = self.files.resolve(&descriptor.file());
        if let Some(known) = self.known(&file, Some(descriptor))? {
            return Ok(Some(known));
        }
        if self.files.size(&file).is_none() {
            self.images.notes.push(format!("{file} is not there: an index names it"));
            return Ok(None);
        }
        let media_type = descriptor.media_type;
        if is_index(media_type) {
            return self.index(&file, Some(descriptor), depth + 1).map(Some);
        }
        if !is_manifest(media_type) {
            let text = format!("{file} is not looked into: its media type is '{media_type}'");
            self.images.notes.push(text);
            self.images.others.push(Other { file, names: None });
            return Ok(None);
        }
        self.manifest(&file, descriptor).map(Some)
    }

    fn manifest(&mut self, file: &str, expected: &Descriptor<'_>) -> Result<usize, Error> {
        let of_file = |error: Error| error.while_reading(file);
        let (json, digest) = self.json(file, Some(expected))?;
        let lacks = |what: &str| malformed(format!("{file}: expected {what}"));
        let config = json.root.get("config").ok_or_else(|| lacks("'config'"))?;
        let config = Descriptor::of(config).map_err(of_file)?;
        let items = json.root.get("layers").filter(|items| items.is_array());
        let items = items.ok_or_else(|| lacks("a list 'layers'"))?.items();
        let items = items.iter().map(Descriptor::of).collect::<Result<Vec<_>, _>>();
        let items = items.map_err(of_file)?;
        let fault = self.why_unread(&json.root, (&config, &items));
        let is_image = is_config(config.media_type)
            && items.iter().all(|item| is_layer(item.media_type))
            && !items.is_empty();
        if fault.is_some() || !is_image {
            let faults = fault.map(|(kind, text)| unread(file, kind, text));
            self.images.unread.extend(faults);
            let names = items.iter().map(|item| self.files.resolve(&item.file())).collect();
            self.images.others.push(Other { file: file.to_owned(), names: Some(names) });
            let layers = vec![None; items.len()];
            return Ok(self.add(file, (json, digest), Role::Manifest { config: None, layers }));
        }
        let layers = items
            .iter()
            .map(|item| self.layer(&self.files.resolve(&item.file()), Some(item)))
            .collect::<Result<Vec<_>, _>>()?;
        let number = self.config(&self.files.resolve(&config.file()), Some(&config), &layers)?;
        let layers = layers.into_iter().map(Some).collect();
        Ok(self.add(file, (json, digest), Role::Manifest { config: Some(number), layers }))
    }

    /// Returns why an image cannot be read; `None` also for a manifest of something else.
    fn why_unread(
        &self,
        manifest: &Node,
        (config, items): (&Descriptor<'_>, &[Descriptor<'_>]),
    ) -> Option<(ErrorKind, String)> {
        if items.iter().any(|item| item.media_type.ends_with("+encrypted")) {
            return Some((ErrorKind::Unsupported, "its layers are encrypted".to_owned()));
        }
        let names_something = |node: &Node| node.get("digest").is_some() || node.text().is_some();
        let mut marks = ["subject", "artifactType"].iter().filter_map(|key| manifest.get(key));
        if marks.any(names_something) {
            return None;
        }
        let (layers, others): (Vec<_>, Vec<_>) =
            items.iter().partition(|item| is_layer(item.media_type));
        if !is_config(config.media_type) {
            let found = config.media_type;
            let text =
                format!("mediaType of the configuration: expected {CONFIG}, found '{found}'");
            return (!layers.is_empty()).then_some((ErrorKind::Unsupported, text));
        }
        // A manifest with nothing but documents describes an image.
        let is_odd = |item: &&&Descriptor<'_>| !layers.is_empty() || !is_document(item.media_type);
        if let Some(odd) = others.iter().find(is_odd) {
            let (file, found) = (odd.file(), odd.media_type);
            let text = format!(
                "{file}: mediaType of a layer: expected {LAYER}, +gzip or +zstd, found '{found}'"
            );
            return Some((ErrorKind::Unsupported, text));
        }
        let absent = layers.iter().find(|item| self.files.size(&item.file()).is_none())?;
        let text = format!("its layer {} is not there", absent.file());
        Some((ErrorKind::Malformed, text))
    }

    /// Returns the number of a layer.
    fn layer(&mut self, file: &str, expected: Option<&Descriptor<'_>>) -> Result<usize, Error> {
        let layers = &mut self.images.layers;
        let number = *self.layers.entry(file.to_owned()).or_insert_with(|| {
            let file = file.to_owned();
            layers.push(ImageLayer { file, digest: None, size: None, diff_id: None });
            layers.len() - 1
        });
        if let Some((layer, expected)) = layers.get_mut(number).zip(expected) {
            one_digest(file, layer.digest.as_ref(), Some(expected))?;
            layer.digest = Some(expected.digest.clone());
            let size = *layer.size.get_or_insert(expected.size);
            let fault = faults((None, Some(expected.size)), (&expected.digest, size));
            self.images.findings.extend(fault.map(|text| finding(file, text)));
        }
        Ok(number)
    }

    /// Reads the configuration of an image with these layers, and adds the image.
    fn config(
        &mut self,
        file: &str,
        expected: Option<&Descriptor<'_>>,
        layers: &[usize],
    ) -> Result<usize, Error> {
        let number = match self.known(file, expected)? {
            Some(known) => known,
            None => {
                let json = self.json(file, expected)?;
                self.add(file, json, Role::Config)
            }
        };
        let document = self.images.documents.get(number);
        let ids = document.map_or(&[][..], |document| diff_ids(&document.json.root)).iter();
        let ids = ids.map(|id| parse_digest(id.text().unwrap_or("")));
        let ids = ids.collect::<Result<Vec<_>, _>>().map_err(|error| error.while_reading(file))?;
        if ids.len() != layers.len() {
            let (ids, layers) = (ids.len(), layers.len());
            return Err(malformed(format!(
                "{file}: rootfs.diff_ids: expected {layers}, one for each layer, found {ids}"
            )));
        }
        for (id, layer) in ids.into_iter().zip(layers) {
            let Some(layer) = self.images.layers.get_mut(*layer) else { continue };
            if layer.diff_id.as_ref().is_some_and(|known| *known != id) {
                let text = format!("{file}: another document has another hash for {}", layer.file);
                return Err(malformed(text));
            }
            layer.diff_id = Some(id);
        }
        let is_known = |image: &Image| image.config == number && image.layers == layers;
        if !self.images.images.iter().any(is_known) {
            let (layers, tag) = (layers.to_vec(), self.tag.clone());
            self.images.images.push(Image { config: number, layers, tag });
        }
        Ok(number)
    }

    /// Reads `manifest.json` and `repositories`; returns `false` if it is another file of this name, which it cannot be with
    /// `is_of_images`.
    fn docker_manifest(&mut self, is_of_images: bool) -> Result<bool, Error> {
        let file = self.files.resolve(DOCKER);
        let (json, digest) = match self.json(&file, None) {
            Err(error) if !is_of_images && error.kind() != ErrorKind::Io => return Ok(false),
            json => json?,
        };
        let is_one = |item: &Node| item.get("Config").is_some() && item.get("Layers").is_some();
        if json.root.items().is_empty() || !json.root.items().iter().all(is_one) {
            if !is_of_images {
                return Ok(false);
            }
            let found = match json.root.items() {
                [] if json.root.is_array() => "an empty one",
                [] => "another value",
                _ => "an item without them",
            };
            let text = "expected a list of images with 'Config' and 'Layers', found";
            return Err(malformed(format!("{DOCKER}: {text} {found}")));
        }
        for (number, item) in json.root.items().iter().enumerate() {
            self.docker_image(number, item)?;
        }
        self.add(&file, (json, digest), Role::DockerManifest);
        if self.files.size("repositories").is_some() {
            let file = self.files.resolve("repositories");
            let json = self.json(&file, None)?;
            self.add(&file, json, Role::Repositories);
        }
        Ok(true)
    }

    /// Reads an image of `manifest.json`, unless a layer of it is not there.
    fn docker_image(&mut self, number: usize, item: &Node) -> Result<(), Error> {
        let config = item.get("Config").and_then(Node::text);
        let layers = item.get("Layers").map(Node::items).unwrap_or(&[]).iter();
        let layers: Option<Vec<&str>> = layers.map(Node::text).collect();
        let (config, layers) = config
            .zip(layers)
            .ok_or_else(|| malformed(format!("{DOCKER}: expected names of files")))?;
        let tag = item.get("RepoTags").and_then(|tags| tags.items().first()?.text());
        let files: Vec<_> = layers.iter().map(|name| self.files.resolve(name)).collect();
        let mut all = layers.iter().zip(&files);
        if let Some((absent, _)) = all.find(|(_, file)| self.files.size(file).is_none()) {
            let image = tag.map_or_else(|| number.to_string(), str::to_owned);
            let text = format!("image {image}: its layer {absent} is not there");
            self.images.unread.push(unread(DOCKER, ErrorKind::Malformed, text));
            let names = Some(files);
            self.images.others.push(Other { file: DOCKER.to_owned(), names });
            return Ok(());
        }
        self.tag = tag.map(str::to_owned);
        let layers = files.iter().map(|file| self.layer(file, None));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        self.config(&self.files.resolve(config), None, &layers)?;
        Ok(())
    }
}

/// Returns the finding that an image is not read.
fn unread(manifest: &str, kind: ErrorKind, text: String) -> Finding {
    let path = MemberPath::default().join(manifest.as_bytes());
    Finding { path, kind: FindingKind::Unread, error: Error::new(kind, text) }
}

/// Returns the tag of an image in the entry of an index.
fn tag_of(item: &Node) -> Option<&str> {
    let annotations = item.get("annotations")?;
    let keys = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
    keys.iter().find_map(|key| annotations.get(key)?.text())
}

/// Fails if a file has another hash by another name: it would need two names after a change.
fn one_digest(
    file: &str,
    known: Option<&Hash>,
    expected: Option<&Descriptor<'_>>,
) -> Result<(), Error> {
    match (known, expected) {
        (Some(known), Some(Descriptor { digest, .. })) if known != digest => {
            let (known, digest) = (known.to_hex(), digest.to_hex());
            let text = format!("{file}: expected one digest, found sha256:{known} and {digest}");
            Err(malformed(text))
        }
        _ => Ok(()),
    }
}

/// Returns the hashes of layers in a configuration.
pub(super) fn diff_ids(config: &Node) -> &[Node] {
    let ids = config.get("rootfs").and_then(|rootfs| rootfs.get("diff_ids"));
    ids.map(Node::items).unwrap_or(&[])
}

/// Returns how a file differs from what is expected.
pub(super) fn faults(
    (hash, size): (Option<&Hash>, Option<u64>),
    (found, found_size): (&Hash, u64),
) -> Option<String> {
    if let Some(size) = size.filter(|size| *size != found_size) {
        return Some(format!("size: expected {size} bytes, found {found_size}"));
    }
    let expected = hash.filter(|hash| *hash != found)?;
    let (expected, found) = (expected.to_hex(), found.to_hex());
    Some(format!("digest: expected sha256:{expected}, found sha256:{found}"))
}

/// Returns a finding about a file of an image.
pub(super) fn finding(file: &str, text: String) -> Finding {
    let path = MemberPath::default().join(file.as_bytes());
    Finding { path, kind: FindingKind::Record, error: Error::new(ErrorKind::Mismatch, text) }
}

/// Adds the names of the files of a document and of all below it. Each document is looked at once.
pub(super) fn add_files(
    documents: &[Document],
    number: usize,
    seen: &mut HashSet<usize>,
    files: &mut BTreeSet<String>,
) {
    let mut waiting = vec![number];
    while let Some(number) = waiting.pop() {
        let Some(document) = documents.get(number).filter(|_| seen.insert(number)) else {
            continue;
        };
        files.insert(document.file.clone());
        match &document.role {
            Role::Index(children) => waiting.extend(children.iter().flatten()),
            Role::Manifest { .. } => {
                let layers = document.json.root.get("layers").map(Node::items).unwrap_or(&[]);
                let nodes = document.json.root.get("config").into_iter().chain(layers);
                files.extend(nodes.filter_map(|node| Some(Descriptor::of(node).ok()?.file())));
            }
            Role::Config | Role::DockerManifest | Role::Repositories => {}
        }
    }
}
