//! Changes above changed layers: configurations, manifests, indexes, and the names of files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash};

use super::document::{Descriptor, Document, Role, digest_text, malformed};
use super::images::{Images, diff_ids, files_of};
use super::json::{Changes, Json, Node};

/// A layer that was written again.
#[derive(Clone, Debug)]
pub struct NewLayer {
    /// The hash of its file.
    pub(super) digest: Hash,
    /// The size of its file in bytes.
    pub(super) size: u64,
    /// The hash of its tar file without compression.
    pub(super) diff_id: Hash,
}

impl NewLayer {
    /// Returns the size of its file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the hash of its file.
    #[must_use]
    pub fn digest(&self) -> &Hash {
        &self.digest
    }

    /// Returns the hash of its tar file without compression.
    #[must_use]
    pub fn diff_id(&self) -> &Hash {
        &self.diff_id
    }
}

/// The files of images whose layers changed: which have other contents, other names, or go.
#[derive(Clone, Default)]
pub struct ChangedImages {
    /// New contents of documents, by their old names.
    documents: BTreeMap<String, Vec<u8>>,
    dropped: BTreeSet<String>,
    /// Digits of hashes that are parts of names, before and after.
    names: BTreeMap<String, String>,
    notes: Vec<String>,
}

impl fmt::Debug for ChangedImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangedImages")
            .field("documents", &self.documents.len())
            .field("dropped", &self.dropped.len())
            .field("notes", &self.notes.len())
            .finish_non_exhaustive()
    }
}

impl ChangedImages {
    /// Returns the new contents of documents, by the old names of their files.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.documents.iter().map(|(name, text)| (&**name, &**text))
    }

    /// Returns the new contents of a document, by the old name of its file.
    #[must_use]
    pub fn document(&self, name: &str) -> Option<&[u8]> {
        self.documents.get(name).map(Vec::as_slice)
    }

    /// Returns whether a file goes: one of a signature or an attestation of the old image.
    #[must_use]
    pub fn is_dropped(&self, name: &str) -> bool {
        self.dropped.contains(name)
    }

    /// Returns the new name of a file: hashes in it are the new ones.
    #[must_use]
    pub fn name(&self, old: &str) -> String {
        String::from_utf8_lossy(&self.renamed(old.as_bytes())).into_owned()
    }

    /// Returns what was dropped.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns bytes with new hashes in the place of old ones, which have as many digits.
    pub(super) fn renamed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let mut at = 0;
        while let Some(digits) = bytes.get(at..at + DIGITS) {
            match std::str::from_utf8(digits).ok().and_then(|digits| self.names.get(digits)) {
                Some(new) => {
                    if let Some(place) = out.get_mut(at..at + DIGITS) {
                        place.copy_from_slice(new.as_bytes());
                    }
                    at += DIGITS;
                }
                None => at += 1,
            }
        }
        out
    }
}

/// The number of hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// Annotations about the form of a layer, which is another one after a change: eStargz, zstd:chunked, SOCI.
const ANNOTATIONS: [&str; 4] = [
    "containerd.io/snapshot/stargz/",
    "io.containers.estargz.",
    "io.github.containers.zstd-chunked.",
    "com.amazon.soci.",
];

impl Images {
    /// Returns what changes when layers, by their numbers, are replaced. Signatures, attestations and other documents about an
    /// image that changes are dropped if that is allowed.
    ///
    /// # Errors
    ///
    /// [`Signed`](ErrorKind::Signed) for documents about an image that changes, unless they are dropped;
    /// [`Malformed`](ErrorKind::Malformed) documents, and layers that were equal before and differ now.
    pub fn replace_layers(
        &self,
        new: &BTreeMap<usize, NewLayer>,
        drops_signatures: bool,
    ) -> Result<ChangedImages, Error> {
        let mut change = Change::new(self, new.keys().copied().collect(), new);
        change.find_dropped(drops_signatures)?;
        change.layers()?;
        // A document comes before the documents that have its hash.
        for (number, document) in self.documents.iter().enumerate() {
            change.document(number, document)?;
        }
        change.drop_files();
        Ok(change.changed)
    }

    /// Fails as [`replace_layers`](Self::replace_layers) for documents about images that would change with these layers.
    ///
    /// # Errors
    ///
    /// [`Signed`](ErrorKind::Signed).
    pub fn check_signatures(&self, layers: &BTreeSet<usize>) -> Result<(), Error> {
        let none = BTreeMap::new();
        Change::new(self, layers.clone(), &none).find_dropped(false)
    }
}

struct Change<'i> {
    images: &'i Images,
    /// The layers that change.
    touched: BTreeSet<usize>,
    new: &'i BTreeMap<usize, NewLayer>,
    changed: ChangedImages,
    /// Manifests and indexes that go.
    dropped: HashSet<usize>,
    /// Hash and size of changed documents.
    documents: BTreeMap<usize, (Hash, u64)>,
}

impl<'i> Change<'i> {
    fn new(
        images: &'i Images,
        touched: BTreeSet<usize>,
        new: &'i BTreeMap<usize, NewLayer>,
    ) -> Self {
        let (changed, dropped, documents) = Default::default();
        Change { images, touched, new, changed, dropped, documents }
    }

    /// Finds the documents about images that change.
    fn find_dropped(&mut self, drops_signatures: bool) -> Result<(), Error> {
        let documents = &self.images.documents;
        loop {
            let gone: HashSet<String> = (0..documents.len())
                .filter(|number| self.dropped.contains(number) || self.touches(*number))
                .filter_map(|number| Some(digest_text(&documents.get(number)?.digest)))
                .collect();
            let before = self.dropped.len();
            for document in documents {
                let Role::Index(children) = &document.role else { continue };
                let items = document.json.root.get("manifests").map(Node::items).unwrap_or(&[]);
                for (item, child) in items.iter().zip(children) {
                    let Some(child) = *child else { continue };
                    let Some(subject) = self.subject(item, child, &gone) else { continue };
                    if !self.dropped.insert(child) {
                        continue;
                    }
                    let file = documents.get(child).map_or("", |document| &document.file);
                    if !drops_signatures {
                        let text = format!(
                            "{file}: signs or describes {subject}, which changes with its layers"
                        );
                        return Err(Error::new(ErrorKind::Signed, text));
                    }
                    self.changed
                        .notes
                        .push(format!("{file} is dropped: it signs or describes {subject}"));
                }
            }
            if self.dropped.len() == before {
                return Ok(());
            }
        }
    }

    /// Returns the document that a manifest is about, if that is one of these: by its `subject`, by the annotation of an
    /// attestation that buildx makes, or by the tag of a signature that cosign makes.
    fn subject(&self, item: &Node, child: usize, gone: &HashSet<String>) -> Option<String> {
        let annotation = |key: &str| item.get("annotations")?.get(key)?.text();
        let manifest = self.images.documents.get(child)?;
        let subject = manifest.json.root.get("subject");
        let tag = annotation("org.opencontainers.image.ref.name").and_then(|name| {
            let tag = name.rsplit(':').next().unwrap_or(name);
            let (digest, _) = tag.strip_prefix("sha256-")?.split_once('.')?;
            Some(format!("sha256:{digest}"))
        });
        let subject = subject.and_then(|it| it.get("digest")).and_then(Node::text);
        let attested = annotation("vnd.docker.reference.digest");
        let all = subject.into_iter().chain(attested).map(str::to_owned).chain(tag);
        all.into_iter().find(|digest| gone.contains(digest))
    }

    /// Returns whether a document changes with its layers.
    fn touches(&self, number: usize) -> bool {
        let Some(document) = self.images.documents.get(number) else { return false };
        match &document.role {
            Role::Index(children) => children
                .iter()
                .flatten()
                .any(|child| self.dropped.contains(child) || self.touches(*child)),
            Role::Manifest { layers, .. } => {
                layers.iter().flatten().any(|layer| self.touched.contains(layer))
            }
            Role::Config => self.images.images.iter().any(|image| {
                image.config == number
                    && image.layers.iter().any(|layer| self.touched.contains(layer))
            }),
            Role::DockerManifest | Role::Repositories => false,
        }
    }

    /// Adds the new names of layers.
    fn layers(&mut self) -> Result<(), Error> {
        let mut ids: BTreeMap<&str, &Hash> = BTreeMap::new();
        let old: Vec<_> =
            self.images.layers.iter().map(|it| it.diff_id.as_ref().map(Hash::to_hex)).collect();
        for (number, (layer, old_id)) in self.images.layers.iter().zip(&old).enumerate() {
            let Some(old_id) = old_id else { continue };
            let new = self.new.get(&number);
            let id = new.map(|new| &new.diff_id).or(layer.diff_id.as_ref());
            if let Some(id) = id
                && *ids.entry(old_id).or_insert(id) != id
            {
                let file = &layer.file;
                return Err(malformed(format!(
                    "{file}: another layer with the same diff_id would get another one"
                )));
            }
            let Some(new) = new else { continue };
            let names = &mut self.changed.names;
            names.insert(old_id.clone(), new.diff_id.to_hex());
            if let Some(digest) = &layer.digest {
                names.insert(digest.to_hex(), new.digest.to_hex());
            }
        }
        Ok(())
    }

    fn document(&mut self, number: usize, document: &Document) -> Result<(), Error> {
        let mut changes = Changes::default();
        let Json { root, .. } = &document.json;
        if self.dropped.contains(&number) {
            return Ok(());
        }
        match &document.role {
            Role::Config => self.config(number, root, &mut changes)?,
            Role::Manifest { config, layers } => {
                let items = root.get("layers").map(Node::items).unwrap_or(&[]);
                for (item, layer) in items.iter().zip(layers) {
                    let Some(new) = layer.and_then(|layer| self.new.get(&layer)) else { continue };
                    set_descriptor(item, &new.digest, new.size, &mut changes);
                    self.drop_annotations(item, &document.file, &mut changes);
                }
                if let Some((hash, size)) = config.and_then(|it| self.documents.get(&it))
                    && let Some(item) = root.get("config")
                {
                    set_descriptor(item, hash, *size, &mut changes);
                }
                if !changes.is_empty() {
                    self.drop_annotations(root, &document.file, &mut changes);
                }
            }
            Role::Index(children) => {
                let items = root.get("manifests").map(Node::items).unwrap_or(&[]);
                for (item, child) in items.iter().zip(children) {
                    let Some(child) = child else { continue };
                    if self.dropped.contains(child) {
                        changes.remove(item);
                    } else if let Some((hash, size)) = self.documents.get(child) {
                        set_descriptor(item, hash, *size, &mut changes);
                        self.drop_annotations(item, &document.file, &mut changes);
                    }
                }
            }
            Role::DockerManifest => self.docker_manifest(root, &mut changes),
            Role::Repositories => {
                for repository in root.entries() {
                    for tag in repository.value.entries() {
                        self.rename(&tag.value, &mut changes);
                    }
                }
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        let text = document.json.changed(&changes);
        let hash = Hash::of(Algorithm::Sha256, &text);
        if !matches!(document.role, Role::DockerManifest | Role::Repositories)
            && document.file.contains(&document.digest.to_hex())
        {
            self.changed.names.insert(document.digest.to_hex(), hash.to_hex());
        }
        self.documents.insert(number, (hash, text.len() as u64));
        self.changed.documents.insert(document.file.clone(), text);
        Ok(())
    }

    fn config(&self, number: usize, root: &Node, changes: &mut Changes) -> Result<(), Error> {
        let images = self.images.images.iter().filter(|image| image.config == number);
        let mut known: BTreeMap<usize, &Hash> = BTreeMap::new();
        for image in images {
            for (at, (layer, id)) in image.layers.iter().zip(diff_ids(root)).enumerate() {
                let Some(new) = self.new.get(layer) else { continue };
                if *known.entry(at).or_insert(&new.diff_id) != &new.diff_id {
                    let text = "rootfs.diff_ids: two images with this configuration differ now";
                    return Err(malformed(text));
                }
                changes.set_text(id, &digest_text(&new.diff_id));
            }
        }
        Ok(())
    }

    fn docker_manifest(&self, root: &Node, changes: &mut Changes) {
        for item in root.items() {
            let layers = item.get("Layers").map(Node::items).unwrap_or(&[]).iter();
            for name in item.get("Config").into_iter().chain(layers) {
                self.rename(name, changes);
            }
            let mut sources = HashSet::new();
            for source in item.get("LayerSources").map(Node::entries).unwrap_or(&[]) {
                // Layers that differed in what was changed may be equal now.
                if !sources.insert(self.changed.name(&source.key)) {
                    changes.remove(&source.name);
                    continue;
                }
                self.rename(&source.name, changes);
                let Ok(descriptor) = Descriptor::of(&source.value) else { continue };
                let layers = self.images.layers.iter().enumerate();
                let mut new = layers.filter_map(|(number, layer)| {
                    let is_it = layer.file == descriptor.file();
                    self.new.get(&number).filter(|_| is_it)
                });
                if let Some(new) = new.next() {
                    set_descriptor(descriptor.node, &new.digest, new.size, changes);
                }
            }
        }
    }

    /// Gives a text that names files or hashes the new ones.
    fn rename(&self, node: &Node, changes: &mut Changes) {
        let Some(old) = node.text() else { return };
        let new = self.changed.name(old);
        if new != old {
            changes.set_text(node, &new);
        }
    }

    /// Drops what annotations say of the form of layers.
    fn drop_annotations(&mut self, node: &Node, file: &str, changes: &mut Changes) {
        for entry in node.get("annotations").map(Node::entries).unwrap_or(&[]) {
            if ANNOTATIONS.iter().any(|start| entry.key.starts_with(start)) {
                changes.remove(&entry.name);
                let note = format!("{file}: annotation {} is dropped", entry.key);
                if !self.changed.notes.contains(&note) {
                    self.changed.notes.push(note);
                }
            }
        }
    }

    /// Drops the files that only dropped documents have.
    fn drop_files(&mut self) {
        let documents = &self.images.documents;
        let files = |number: usize| files_of(documents, number);
        let gone = self.dropped.iter().flat_map(|number| files(*number));
        let is_whole = |number: &usize| {
            let role = documents.get(*number).map(|document| &document.role);
            !self.dropped.contains(number)
                && matches!(role, Some(Role::Manifest { .. } | Role::Config))
        };
        let kept: BTreeSet<String> =
            (0..documents.len()).filter(is_whole).flat_map(files).collect();
        let layers: BTreeSet<&str> = self.images.layers.iter().map(|it| &*it.file).collect();
        let gone = gone.filter(|file| !kept.contains(file) && !layers.contains(&**file));
        self.changed.dropped = gone.collect();
    }
}

fn set_descriptor(node: &Node, hash: &Hash, size: u64, changes: &mut Changes) {
    if let Some(digest) = node.get("digest") {
        changes.set_text(digest, &digest_text(hash));
    }
    if let Some(number) = node.get("size") {
        changes.set_number(number, size);
    }
}
