//! The files of an image: those of a directory, or the members of an archive.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpu_packages::{Codec, Error, ImageArchive, ImageFiles, PackageKind, sniff};

use tool_inputs::inputs::Input;
use tool_inputs::package::HEAD;
use tool_kit::directory::Held;
use tool_kit::opened::Opened;
use tool_kit::positioned::Positioned;

/// Returns whether a directory is an OCI layout.
pub(crate) fn is_layout(path: &Path) -> bool {
    let is_file = |name: &str| fs::metadata(path.join(name)).is_ok_and(|data| data.is_file());
    is_file("oci-layout") && is_file("index.json")
}

/// Returns the OCI layout that a file is a blob of.
pub(crate) fn layout_of(blob: &Path) -> Option<&Path> {
    let [_, hashes, blobs, layout] = blob.ancestors().take(4).collect::<Vec<_>>()[..] else {
        return None;
    };
    let is_named = |path: &Path, name: &str| path.file_name().is_some_and(|it| it == name);
    let is_blob = is_named(hashes, "sha256") && is_named(blobs, "blobs");
    let layout = if layout.as_os_str().is_empty() { Path::new(".") } else { layout };
    (is_blob && is_layout(layout)).then_some(layout)
}

/// The files of an image.
pub(crate) enum ImageSource {
    Layout(Layout),
    Archive(Arc<Opened>, ImageArchive),
}

/// A directory.
pub(crate) struct Layout {
    held: Held,
    /// Sizes of the files, by their names with slashes.
    sizes: BTreeMap<String, u64>,
}

impl ImageSource {
    /// Returns the image that a directory is.
    pub(crate) fn layout(path: &Path) -> io::Result<Self> {
        let held = Held::open(path)?;
        let mut fault = None;
        let files = held.files(&mut |path, error| {
            let text = format!("'{}': {}", path.display(), tool_kit::report::reason(error));
            fault.get_or_insert(io::Error::other(text));
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        // A new layout would lack what they lead to.
        if let Some(link) = held.links().first() {
            let link = held.path_of(link);
            let text = format!("'{}' is a symbolic link: expected a file", link.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut sizes = BTreeMap::new();
        for file in files {
            let size = held.look(&file)?.map_or(0, |entry| entry.stamp.size());
            let name = file.components().map(|part| part.as_os_str().to_string_lossy());
            sizes.insert(name.collect::<Vec<_>>().join("/"), size);
        }
        Ok(ImageSource::Layout(Layout { held, sizes }))
    }

    /// Returns the image that an archive is; `None` for another file. Damage is for who reads it as a package.
    pub(crate) fn archive(file: &Input, opened: &Arc<Opened>) -> Option<Self> {
        let head = opened.head().get(..HEAD).unwrap_or(opened.head());
        let is_tar = sniff(head) == Some(PackageKind::Tar) && Codec::sniff(head) == Codec::None;
        if !is_tar || file.is_in_package() {
            return None;
        }
        let archive = ImageArchive::read(BufReader::with_capacity(4 << 10, opened.reader()));
        Some(ImageSource::Archive(Arc::clone(opened), archive.ok().flatten()?))
    }

    /// Opens a file.
    pub(crate) fn open(&self, name: &str) -> io::Result<ImageFile> {
        match self {
            ImageSource::Layout(layout) => {
                let opened = Opened::below(&layout.held, Path::new(name))?;
                let place = 0..opened.metadata().len();
                Ok(ImageFile { opened: Arc::new(opened), place })
            }
            ImageSource::Archive(opened, archive) => {
                let place = archive.place(name).ok_or(io::ErrorKind::NotFound)?;
                Ok(ImageFile { opened: Arc::clone(opened), place })
            }
        }
    }

    /// Returns the number of bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            // Sparse files may have any size.
            ImageSource::Layout(layout) => layout
                .sizes
                .values()
                .try_fold(0_u64, |sum, size| sum.checked_add(*size))
                .unwrap_or(0),
            ImageSource::Archive(opened, _) => opened.metadata().len(),
        }
    }
}

impl Layout {
    /// Returns the names of all files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.sizes.keys().map(String::as_str)
    }

    /// Returns the path of a file, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.held.path_of(Path::new(name))
    }
}

/// A file of an image.
pub(crate) struct ImageFile {
    pub(crate) opened: Arc<Opened>,
    pub(crate) place: Range<u64>,
}

impl ImageFile {
    pub(crate) fn reader(&self) -> Positioned<'_> {
        Positioned::of_range(&self.opened.file, &self.place)
    }

    pub(crate) fn size(&self) -> u64 {
        self.place.end - self.place.start
    }
}

impl ImageFiles for ImageSource {
    fn size(&self, name: &str) -> Option<u64> {
        match self {
            ImageSource::Layout(layout) => layout.sizes.get(name).copied(),
            ImageSource::Archive(_, archive) => {
                archive.place(name).map(|place| place.end - place.start)
            }
        }
    }

    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Error> {
        let file = self.open(name)?;
        let mut bytes = Vec::new();
        file.reader().take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(Error::refused(format!("a document exceeds the limit of {most} bytes")));
        }
        Ok(bytes)
    }

    fn resolve(&self, name: &str) -> String {
        match self {
            ImageSource::Layout(_) => name.to_owned(),
            ImageSource::Archive(_, archive) => archive.resolve(name),
        }
    }
}
