//! The files of container images: those of a directory, or the members of an archive.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_files::HEAD;
use gpu_packages::{
    Codec, Compression, Error, ErrorKind, ImageArchive, ImageFiles, PackageKind, sniff,
};

use crate::limits::Limits;
use tool_kit::directory::Held;
use tool_kit::opened::Opened;
use tool_kit::positioned::Positioned;
use tool_kit::scratch;

/// Returns whether a directory is an OCI layout, maybe one that lacks a document.
pub fn is_layout(path: &Path) -> bool {
    let look = |name: &str| fs::metadata(path.join(name));
    let is_file = |name: &str| look(name).is_ok_and(|data| data.is_file());
    let has_blobs = || look("blobs/sha256").is_ok_and(|data| data.is_dir());
    match DOCUMENTS.map(is_file) {
        [true, true] => true,
        [false, false] => false,
        _ => has_blobs(),
    }
}

/// The documents of a layout.
pub(crate) const DOCUMENTS: [&str; 2] = ["oci-layout", "index.json"];

/// Returns the OCI layout that a file is a blob of.
pub fn layout_of(blob: &Path) -> Option<&Path> {
    let layout = layout_place(blob)?;
    let layout = if layout.as_os_str().is_empty() { Path::new(".") } else { layout };
    is_layout(layout).then_some(layout)
}

/// Returns the directory that is the layout of a blob, if there are its documents.
pub(crate) fn layout_place(blob: &Path) -> Option<&Path> {
    let [_, hashes, blobs, layout] = blob.ancestors().take(4).collect::<Vec<_>>()[..] else {
        return None;
    };
    let is_named = |path: &Path, name: &str| path.file_name().is_some_and(|it| it == name);
    (is_named(hashes, "sha256") && is_named(blobs, "blobs")).then_some(layout)
}

/// The files of container images.
#[derive(Debug)]
pub enum ImageSource {
    /// A directory.
    Layout(Layout),
    /// An archive.
    Archive(Archive),
}

/// An archive of images.
#[derive(Debug)]
pub struct Archive {
    /// The file.
    pub opened: Arc<Opened>,
    /// The same without the compression of the whole.
    pub plain: Arc<Opened>,
    archive: ImageArchive,
}

/// A directory with images.
#[derive(Debug)]
pub struct Layout {
    held: Held,
    /// Sizes of the files, by their names with slashes.
    sizes: BTreeMap<String, u64>,
}

impl ImageSource {
    /// Returns the images that a directory has.
    ///
    /// # Errors
    ///
    /// A directory cannot be read.
    pub fn layout(held: Held) -> io::Result<Self> {
        let mut fault = None;
        let files = held.files(&mut |path, error| {
            let text = format!("'{}': {}", path.display(), tool_kit::report::reason(error));
            fault.get_or_insert(io::Error::other(text));
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        let mut sizes = BTreeMap::new();
        for file in files {
            let size = held.look(&file)?.map_or(0, |entry| entry.stamp.size());
            let name = file.components().map(|part| part.as_os_str().to_string_lossy());
            sizes.insert(name.collect::<Vec<_>>().join("/"), size);
        }
        Ok(ImageSource::Layout(Layout { held, sizes }))
    }

    /// Returns the images that an archive has; `None` for another file. One that is compressed as a whole, or lies on a server, is
    /// copied to a temporary file.
    ///
    /// # Errors
    ///
    /// The archive is damaged; the copy fails, or exceeds the limit.
    pub fn archive(opened: &Arc<Opened>, limits: &Limits) -> io::Result<Option<Self>> {
        let head = opened.head().get(..HEAD).unwrap_or(opened.head());
        let is_compressed = Codec::sniff(head) != Codec::None;
        if !is_compressed && sniff(head) != Some(PackageKind::Tar) {
            return Ok(None);
        }
        let plain = if is_compressed || opened.remote().is_some() {
            unpacked(opened, limits.copied_of(opened.len()))?.map(Arc::new)
        } else {
            Some(Arc::clone(opened))
        };
        let Some(plain) = plain else { return Ok(None) };
        let archive = ImageArchive::read(BufReader::with_capacity(4 << 10, plain.reader()));
        let opened = Arc::clone(opened);
        let archive = archive.map_err(io::Error::from)?;
        Ok(archive.map(|archive| ImageSource::Archive(Archive { opened, plain, archive })))
    }

    /// Opens a file.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or is not there.
    pub fn open(&self, name: &str) -> io::Result<ImageFile> {
        match self {
            ImageSource::Layout(layout) => {
                let opened = Opened::below(&layout.held, Path::new(name))?;
                let place = 0..opened.metadata().len();
                Ok(ImageFile { opened: Arc::new(opened), place })
            }
            ImageSource::Archive(Archive { plain, archive, .. }) => {
                let place = archive.place(name).ok_or(io::ErrorKind::NotFound)?;
                Ok(ImageFile { opened: Arc::clone(plain), place })
            }
        }
    }

    /// Returns the number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        match self {
            // Sparse files may have any size.
            ImageSource::Layout(layout) => layout
                .sizes
                .values()
                .try_fold(0_u64, |sum, size| sum.checked_add(*size))
                .unwrap_or(0),
            ImageSource::Archive(archive) => archive.opened.len(),
        }
    }
}

impl Layout {
    /// Fails if there is a symbolic link: a new layout would lack what it leads to.
    ///
    /// # Errors
    ///
    /// `InvalidData`, with the path of the link.
    pub fn check_links(&self) -> io::Result<()> {
        if let Some(link) = self.held.links().first() {
            let link = self.held.path_of(link);
            let text = format!("'{}' is a symbolic link: expected a file", link.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(())
    }

    /// Returns the names of all files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sizes.keys().map(String::as_str)
    }

    /// Returns the path of a file, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.held.path_of(Path::new(name))
    }
}

/// The contents of temporary files here.
const COPY: &str = "a decompressed container image";

/// Copies an archive of images without its compression; `None` for another file.
fn unpacked(opened: &Opened, most: u64) -> io::Result<Option<Opened>> {
    let reader = || BufReader::with_capacity(1 << 16, opened.reader());
    if !ImageArchive::is_likely(reader()) {
        return Ok(None);
    }
    let mut file = scratch::file(COPY)?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    ImageArchive::unpack(reader(), most, &mut out).map_err(|error| match error.kind() {
        ErrorKind::Limit => {
            let text = format!(
                "a decompressed copy exceeds the limit of {most} bytes (--max-decompressed)"
            );
            io::Error::new(io::ErrorKind::FileTooLarge, text)
        }
        _ => scratch::copying(COPY, error.into()),
    })?;
    out.flush().map_err(|error| scratch::copying(COPY, error))?;
    drop(out);
    opened.check()?;
    file.rewind()?;
    opened.decompressed(file).map(Some)
}

impl Archive {
    /// Returns the compression of the whole; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    pub fn compression(&self) -> io::Result<Option<Compression>> {
        if Codec::sniff(self.opened.head()) == Codec::None {
            return Ok(None);
        }
        let mut head = Vec::new();
        self.opened.reader().take(1 << 20).read_to_end(&mut head)?;
        Ok(Some(Compression::of(&head)))
    }
}

/// A file of container images.
#[derive(Debug)]
pub struct ImageFile {
    /// The file that it lies in.
    pub opened: Arc<Opened>,
    /// Its place in that.
    pub place: Range<u64>,
}

impl ImageFile {
    /// Returns a reader from its start.
    pub fn reader(&self) -> Positioned<'_> {
        self.opened.part(&self.place)
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.place.end - self.place.start
    }
}

impl ImageFiles for ImageSource {
    fn size(&self, name: &str) -> Option<u64> {
        match self {
            ImageSource::Layout(layout) => layout.sizes.get(name).copied(),
            ImageSource::Archive(Archive { archive, .. }) => {
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

    fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        match self {
            ImageSource::Layout(layout) => layout.names().any(is_wanted),
            ImageSource::Archive(Archive { archive, .. }) => archive.names().any(is_wanted),
        }
    }

    fn resolve(&self, name: &str) -> String {
        match self {
            ImageSource::Layout(_) => name.to_owned(),
            ImageSource::Archive(Archive { archive, .. }) => archive.resolve(name),
        }
    }
}
