//! Changes above changed layers: configurations, manifests, indexes, and the names of files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash};

use super::document::{Descriptor, Document, Role, digest_text, malformed};
use super::images::{Images, add_files, diff_ids};
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
    /// The names of layers with new contents.
    layers: BTreeSet<String>,
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

    /// Returns the old names of the files with new contents.
    pub(super) fn files(&self) -> BTreeSet<&str> {
        self.documents.keys().chain(&self.layers).map(String::as_str).collect()
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
    /// [`Refused`](ErrorKind::Refused) if an image that is not read, or another document, has a layer that changes;
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
    /// [`Signed`](ErrorKind::Signed), [`Refused`](ErrorKind::Refused).
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
    noted: HashSet<String>,
}

impl<'i> Change<'i> {
    fn new(
        images: &'i Images,
        touched: BTreeSet<usize>,
        new: &'i BTreeMap<usize, NewLayer>,
    ) -> Self {
        let (changed, dropped, documents, noted) = Default::default();
        Change { images, touched, new, changed, dropped, documents, noted }
    }

    /// Finds the documents about images that change. Each document is looked at once.
    fn find_dropped(&mut self, drops_signatures: bool) -> Result<(), Error> {
        let documents = &self.images.documents;
        let (mut above, mut about) = (HashMap::new(), HashMap::new());
        for (number, document) in documents.iter().enumerate() {
            let Role::Index(children) = &document.role else { continue };
            let items = document.json.root.get("manifests").map(Node::items).unwrap_or(&[]);
            for (item, child) in items.iter().zip(children) {
                let Some(child) = *child else { continue };
                above.entry(child).or_insert_with(Vec::new).push(number);
                for subject in self.subjects(item, child) {
                    about.entry(subject).or_insert_with(Vec::new).push(child);
                }
            }
        }
        let mut waiting: VecDeque<usize> = self.changing().into();
        let mut gone: HashSet<usize> = waiting.iter().copied().collect();
        while let Some(number) = waiting.pop_front() {
            let Some(document) = documents.get(number) else { continue };
            // An index changes with what it names.
            let mut next: Vec<usize> = above.remove(&number).into_iter().flatten().collect();
            let subject = digest_text(&document.digest);
            for child in about.remove(&subject).into_iter().flatten() {
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
                self.note(format!("{file} is dropped: it signs or describes {subject}"));
                next.push(child);
            }
            waiting.extend(next.into_iter().filter(|number| gone.insert(*number)));
        }
        self.check_others()
    }

    /// Fails if a document that is not looked into would lose a layer.
    fn check_others(&self) -> Result<(), Error> {
        let layers = self.touched.iter().filter_map(|number| self.images.layers.get(*number));
        let touched: HashSet<&str> = layers.map(|layer| &*layer.file).collect();
        if touched.is_empty() {
            return Ok(());
        }
        let documents = self.images.documents.iter().zip(0..);
        let dropped = documents.filter(|(_, number)| self.dropped.contains(number));
        let dropped: HashSet<&str> = dropped.map(|(document, _)| &*document.file).collect();
        for other in self.images.others.iter().filter(|other| !dropped.contains(&*other.file)) {
            let file = &other.file;
            let Some(names) = &other.names else {
                let text =
                    format!("{file}: it is not looked into, and may name a layer that changes");
                return Err(Error::refused(text));
            };
            if let Some(name) = names.iter().find(|name| touched.contains(&***name)) {
                let text =
                    format!("{file}: it is not looked into, and names {name}, which changes");
                return Err(Error::refused(text));
            }
        }
        Ok(())
    }

    /// Returns the manifests and configurations that change with their layers.
    fn changing(&self) -> Vec<usize> {
        let is_touched = |layer: &usize| self.touched.contains(layer);
        let images = self.images.images.iter();
        let images = images.filter(|image| image.layers.iter().any(is_touched));
        let configs: HashSet<usize> = images.map(|image| image.config).collect();
        let documents = self.images.documents.iter().enumerate();
        let changing = documents.filter(|(number, document)| match &document.role {
            Role::Manifest { layers, .. } => layers.iter().flatten().any(is_touched),
            Role::Config => configs.contains(number),
            Role::Index(_) | Role::DockerManifest | Role::Repositories => false,
        });
        changing.map(|(number, _)| number).collect()
    }

    /// Returns the digests of the documents that a manifest is about: by its `subject`, by the annotation of an
    /// attestation that buildx makes, or by the tag of a signature that cosign makes.
    fn subjects(&self, item: &Node, child: usize) -> Vec<String> {
        let annotation = |key: &str| item.get("annotations")?.get(key)?.text();
        let manifest = self.images.documents.get(child);
        let subject = manifest.and_then(|manifest| manifest.json.root.get("subject"));
        let tag = annotation("org.opencontainers.image.ref.name").and_then(|name| {
            let tag = name.rsplit(':').next().unwrap_or(name);
            let (digest, _) = tag.strip_prefix("sha256-")?.split_once('.')?;
            Some(format!("sha256:{digest}"))
        });
        let subject = subject.and_then(|it| it.get("digest")).and_then(Node::text);
        let attested = annotation("vnd.docker.reference.digest");
        subject.into_iter().chain(attested).map(str::to_owned).chain(tag).collect()
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
            self.changed.layers.insert(layer.file.clone());
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
                    self.set_descriptor(
                        item,
                        (&new.digest, new.size),
                        &document.file,
                        &mut changes,
                    );
                    self.drop_annotations(item, &document.file, &mut changes);
                }
                if let Some((hash, size)) = config.and_then(|it| self.documents.get(&it)).cloned()
                    && let Some(item) = root.get("config")
                {
                    self.set_descriptor(item, (&hash, size), &document.file, &mut changes);
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
                    } else if let Some((hash, size)) = self.documents.get(child).cloned() {
                        self.set_descriptor(item, (&hash, size), &document.file, &mut changes);
                        self.drop_annotations(item, &document.file, &mut changes);
                    }
                }
            }
            Role::DockerManifest => self.docker_manifest(root, &document.file, &mut changes),
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
        // Links to it are named by its hash, even if it is not.
        if !matches!(document.role, Role::DockerManifest | Role::Repositories) {
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

    fn docker_manifest(&mut self, root: &Node, file: &str, changes: &mut Changes) {
        let images = self.images;
        let changed = self.new.iter();
        let changed = changed.filter_map(|(number, new)| Some((images.layers.get(*number)?, new)));
        let of_digest: HashMap<String, &NewLayer> = changed
            .flat_map(|(layer, new)| {
                let name = layer.digest.as_ref().map(|it| format!("blobs/sha256/{}", it.to_hex()));
                name.into_iter().chain([layer.file.clone()]).map(move |name| (name, new))
            })
            .collect();
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
                if let Some(new) = of_digest.get(&descriptor.file()) {
                    self.set_descriptor(descriptor.node, (&new.digest, new.size), file, changes);
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
                self.note(format!("{file}: annotation {} is dropped", entry.key));
            }
        }
    }

    /// Gives a descriptor another hash and size, and drops what it says of the old contents.
    fn set_descriptor(
        &mut self,
        node: &Node,
        (hash, size): (&Hash, u64),
        file: &str,
        changes: &mut Changes,
    ) {
        for entry in node.entries() {
            match &*entry.key {
                "digest" => changes.set_text(&entry.value, &digest_text(hash)),
                "size" => changes.set_number(&entry.value, size),
                // A copy of the old contents, and places of it (OCI image specification, "Content Descriptors").
                key @ ("data" | "urls") => {
                    changes.remove(&entry.name);
                    self.note(format!(
                        "{file}: '{key}' of a descriptor is dropped: it has the old contents"
                    ));
                }
                _ => {}
            }
        }
    }

    /// Notes something once.
    fn note(&mut self, note: String) {
        if self.noted.insert(note.clone()) {
            self.changed.notes.push(note);
        }
    }

    /// Drops the files that only dropped documents have.
    fn drop_files(&mut self) {
        let documents = &self.images.documents;
        let files = |numbers: &mut dyn Iterator<Item = usize>| {
            let (mut seen, mut files) = (HashSet::new(), BTreeSet::new());
            numbers.for_each(|number| add_files(documents, number, &mut seen, &mut files));
            files
        };
        let gone = files(&mut self.dropped.iter().copied());
        let is_whole = |number: &usize| {
            let role = documents.get(*number).map(|document| &document.role);
            !self.dropped.contains(number)
                && matches!(role, Some(Role::Manifest { .. } | Role::Config))
        };
        let kept = files(&mut (0..documents.len()).filter(is_whole));
        let layers: BTreeSet<&str> = self.images.layers.iter().map(|it| &*it.file).collect();
        let gone =
            gone.into_iter().filter(|file| !kept.contains(file) && !layers.contains(&**file));
        self.changed.dropped = gone.collect();
    }
}
