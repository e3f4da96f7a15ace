//! Wishes: what is to become of the images of a file.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byte_parts::ReadSeek;

#[cfg(doc)]
use fat_object::ImageInfo;

use crate::compress::CompressOptions;
#[cfg(doc)]
use crate::{Contents, EditNote, EditPlan, EditableContainer, ErrorKind};

/// What is to become of the images of a file. Without any wish nothing changes. A later wish for the same image takes
/// the place of an earlier one, as [`decompress`](Self::decompress) does that of [`compress`](Self::compress) and the
/// reverse. Indices and numbers are looked at by [`Contents::plan`].
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// By [`ImageInfo::index`].
    pub(crate) images: BTreeMap<usize, ImageEdit>,
    pub(crate) added: Vec<Added>,
    /// By number.
    pub(crate) new_images: Vec<NewImage>,
    pub(crate) bundles: BundleEdit,
    pub(crate) options: EditOptions,
}

/// Reader of a new image. Clones share it, so that several edits can use it.
#[derive(Clone)]
pub struct NewImage(Arc<Mutex<dyn ReadSeek + Send>>);

impl NewImage {
    /// Returns a new image: all bytes of the reader.
    pub fn new(reader: impl Read + Seek + Send + 'static) -> Self {
        NewImage(Arc::new(Mutex::new(reader)))
    }

    /// Nobody relies on the place where a reader stands.
    pub(crate) fn reader(&self) -> MutexGuard<'_, dyn ReadSeek + Send + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for NewImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewImage")
    }
}

/// What is to become of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageEdit {
    Remove,
    /// With the new image of this number.
    Replace(usize),
}

/// A new entry at the end of a bundle or package.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    /// Index among [`Contents::containers`].
    pub(crate) container: usize,
    pub(crate) id: String,
    /// The number of the new image.
    pub(crate) image: usize,
}

/// What is to become of all bundles.
#[derive(Clone, Debug, Default)]
pub(crate) enum BundleEdit {
    /// Compressed ones stay compressed, others stay plain.
    #[default]
    Keep,
    Compress(CompressOptions),
    Decompress,
}

/// What an edit may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EditOptions {
    /// Whether device code that is larger than its place in a linked file may get a new place at the end of the
    /// program's memory. Default: no.
    pub grow: bool,
    /// Whether a signature that the edit makes invalid is removed. Otherwise signed files are refused. Default: no.
    pub drop_signature: bool,
    /// Whether a bundle may lose its last device image, and a package its last image. Default: no.
    pub allow_empty: bool,
    /// Whether a new image may be for another target than its ID says, as far as its own headers tell. Default: no.
    pub any_image: bool,
    /// Whether the host's entry of a bundle may be removed, which is the host's code in bundles of objects and bitcode.
    /// Nothing else would keep it: "every image that is not for this GPU" means it, too. Default: no.
    pub remove_host: bool,
    /// `true` if a file is edited although it has [findings](Contents::findings), or hashes of compressed bundles that do
    /// not match and that the survey did not [compare](fat_object::Options::with_verify_hash). Damage that hides the place of
    /// anything is always refused. Default: `false`.
    pub allow_findings: bool,
    /// `true` if containers that [cannot be edited](EditableContainer::uneditable) stay as they are where the edit would
    /// change them: [`EditNote::Uneditable`] lists them. Otherwise the edit is refused. Default: `false`.
    pub allow_uneditable: bool,
    /// How many threads may compress at the same time bundles that were compressed before; 0 is one. Bundles that
    /// [`Edit::compress`] compresses are compressed by the threads of its options.
    pub threads: u32,
}

impl EditOptions {
    /// These options, with larger device code given [a new place](Self::grow) or not.
    #[must_use]
    pub fn with_grow(mut self, grow: bool) -> Self {
        self.grow = grow;
        self
    }

    /// These options, with signatures [removed](Self::drop_signature) or not.
    #[must_use]
    pub fn with_drop_signature(mut self, drop_signature: bool) -> Self {
        self.drop_signature = drop_signature;
        self
    }

    /// These options, with bundles left [without images](Self::allow_empty) or not.
    #[must_use]
    pub fn with_allow_empty(mut self, allow_empty: bool) -> Self {
        self.allow_empty = allow_empty;
        self
    }

    /// These options, with [any image](Self::any_image) taken or not.
    #[must_use]
    pub fn with_any_image(mut self, any_image: bool) -> Self {
        self.any_image = any_image;
        self
    }

    /// These options, with the host's entries of bundles [removed](Self::remove_host) or not.
    #[must_use]
    pub fn with_remove_host(mut self, remove_host: bool) -> Self {
        self.remove_host = remove_host;
        self
    }

    /// These options, with files edited although [something is wrong](Self::allow_findings) with them, or not.
    #[must_use]
    pub fn with_allow_findings(mut self, allow_findings: bool) -> Self {
        self.allow_findings = allow_findings;
        self
    }

    /// These options, with containers that cannot be edited [left as they are](Self::allow_uneditable), or not.
    #[must_use]
    pub fn with_allow_uneditable(mut self, allow_uneditable: bool) -> Self {
        self.allow_uneditable = allow_uneditable;
        self
    }

    /// These options with another number of [threads](Self::threads).
    #[must_use]
    pub fn with_threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }
}

impl Edit {
    /// An edit that changes nothing yet.
    #[must_use]
    pub fn new(options: EditOptions) -> Self {
        Edit { options, ..Edit::default() }
    }

    /// This edit with these new images, which [`replace`](Self::replace) and [`add`](Self::add) name by number, from 0. One
    /// can be put in several places. [`Contents::plan`] reads the size and the first bytes of each, and all of those that
    /// are compressed with others; [`EditPlan::write`] reads the rest.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use fat_edit::{Edit, EditOptions, NewImage, survey};
    /// use fat_object::Options;
    ///
    /// let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    /// let bundle = bundle_format::Layout::new([(id, 3)], 1)?.to_vec(&[b"old"])?;
    /// let mut file = Cursor::new(bundle);
    ///
    /// let surveyed = survey(&mut file, &Options::default())?;
    /// let image = NewImage::new(Cursor::new(b"newer".to_vec()));
    /// let mut edit = Edit::new(EditOptions::default()).with_images([image]);
    /// edit.replace(0, 0);
    /// let plan = surveyed.plan(&mut file, &edit)?;
    /// let mut new = Vec::new();
    /// plan.write(&mut file, &mut new)?;
    /// assert!(new.ends_with(b"newer"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_images(mut self, images: impl IntoIterator<Item = NewImage>) -> Self {
        self.new_images = images.into_iter().collect();
        self
    }

    /// Removes the image with this index among [`Contents::images`]. A [listing](fat_object::list()) may count
    /// [otherwise](ImageInfo::index). The host's entry of a bundle goes only with [`EditOptions::remove_host`].
    pub fn remove(&mut self, index: usize) {
        self.images.insert(index, ImageEdit::Remove);
    }

    /// Puts the [new image](Self::with_images) with the number `image` in the place of the one with this index among
    /// [`Contents::images`]. A [listing](fat_object::list()) may count [otherwise](ImageInfo::index).
    pub fn replace(&mut self, index: usize, image: usize) {
        self.images.insert(index, ImageEdit::Replace(image));
    }

    /// Adds the [new image](Self::with_images) with the number `image` to the container with this index among
    /// [`Contents::containers`], after its other entries. `id` is a bundle entry ID, also for packages.
    pub fn add(&mut self, container: usize, id: impl Into<String>, image: usize) {
        self.added.push(Added { container, id: id.into(), image });
    }

    /// Compresses every plain bundle, and every plain package of version 3 that no runtime but HIP's reads, and with
    /// [`CompressOptions::recompress`] compressed ones again. [Older packages](CompressOptions::upgrade_packages) stay. A
    /// file without bundles and packages is [refused](ErrorKind::NoBundle).
    pub fn compress(&mut self, options: CompressOptions) {
        self.bundles = BundleEdit::Compress(options);
    }

    /// Decompresses every compressed bundle and package. A file without any is [refused](ErrorKind::NoBundle).
    pub fn decompress(&mut self) {
        self.bundles = BundleEdit::Decompress;
    }
}
