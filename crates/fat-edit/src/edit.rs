//! Wishes for the images of a file.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byte_parts::ReadSeek;

#[cfg(doc)]
use fat_object::ImageInfo;

use crate::compress::CompressOptions;
#[cfg(doc)]
use crate::{EditNote, EditPlan, EditableContainer, EditableFile, ErrorKind};

/// Wishes for the images of a file. Without any wish nothing changes. A later wish for the same image takes
/// the place of an earlier one, as [`decompress`](Self::decompress) and [`compress`](Self::compress) replace each
/// other. [`EditableFile::plan`] checks indices and numbers.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// By [`ImageInfo::index`].
    pub(crate) images: BTreeMap<usize, ImageEdit>,
    pub(crate) added: Vec<Added>,
    /// By number.
    pub(crate) new_images: Vec<NewImage>,
    pub(crate) bundles: BundleEdit,
    pub(crate) options: EditOptions,
    /// `true` if compressed bundles may expand to any size: only headers are read.
    pub(crate) unlimited: bool,
}

/// Reader of a new image. Clones share it, so that several edits can use it.
#[derive(Clone)]
pub struct NewImage(Arc<Mutex<dyn ReadSeek + Send>>);

impl NewImage {
    /// Returns a new image: all bytes of the reader.
    pub fn new(reader: impl Read + Seek + Send + 'static) -> Self {
        NewImage(Arc::new(Mutex::new(reader)))
    }

    /// Locks the reader. Its position is arbitrary: every user seeks first.
    pub(crate) fn reader(&self) -> MutexGuard<'_, dyn ReadSeek + Send + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for NewImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewImage")
    }
}

/// Wish for one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageEdit {
    Remove,
    /// With the new image of this number.
    Replace(usize),
}

/// A new entry at the end of a bundle or offload binary.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    /// Index among [`EditableFile::containers`].
    pub(crate) container: usize,
    pub(crate) id: String,
    /// The number of the new image.
    pub(crate) image: usize,
}

/// Wish for all bundles.
#[derive(Clone, Debug, Default)]
pub(crate) enum BundleEdit {
    /// Compressed ones stay compressed, others stay uncompressed.
    #[default]
    Keep,
    Compress(CompressOptions),
    Decompress,
}

/// Permissions of an edit, and its threads. By default it may do nothing of this.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EditOptions {
    pub(crate) grow: bool,
    pub(crate) drop_signature: bool,
    pub(crate) allow_empty: bool,
    pub(crate) any_image: bool,
    pub(crate) remove_host: bool,
    pub(crate) allow_findings: bool,
    pub(crate) allow_uneditable: bool,
    pub(crate) threads: u32,
}

impl EditOptions {
    /// Sets whether device code that is larger than its place in a linked file gets a new place at the end of the
    /// program's memory. Default: refuse it.
    #[must_use]
    pub fn with_grow(mut self, grow: bool) -> Self {
        self.grow = grow;
        self
    }

    /// Sets whether a signature that the edit makes invalid is removed. Default: refuse signed files.
    #[must_use]
    pub fn with_drop_signature(mut self, drop_signature: bool) -> Self {
        self.drop_signature = drop_signature;
        self
    }

    /// Sets whether a bundle may lose its last device image, and an offload binary its last image. Default: refuse
    /// it.
    #[must_use]
    pub fn with_allow_empty(mut self, allow_empty: bool) -> Self {
        self.allow_empty = allow_empty;
        self
    }

    /// Sets whether a new image may be for another target than its ID names. Default: refuse it, judged by the image's
    /// own headers.
    #[must_use]
    pub fn with_any_image(mut self, any_image: bool) -> Self {
        self.any_image = any_image;
        self
    }

    /// Sets whether the host's entry of a bundle may be removed, which is the host's code in bundles of objects and
    /// bitcode. Nothing else would keep it: "every image that is not for this GPU" means it, too. Default: refuse
    /// it.
    #[must_use]
    pub fn with_remove_host(mut self, remove_host: bool) -> Self {
        self.remove_host = remove_host;
        self
    }

    /// Sets whether a file is edited although it has [findings](EditableFile::findings), or hashes of compressed
    /// bundles that do not match and that the survey did not [compare](fat_object::Options::with_verify_hash).
    /// Damage that hides the place of anything is always refused. Default: refuse both.
    #[must_use]
    pub fn with_allow_findings(mut self, allow_findings: bool) -> Self {
        self.allow_findings = allow_findings;
        self
    }

    /// Sets whether containers that [cannot be edited](EditableContainer::uneditable) are skipped where the edit
    /// would change them: [`EditNote::Uneditable`] lists them. Default: refuse the edit.
    #[must_use]
    pub fn with_allow_uneditable(mut self, allow_uneditable: bool) -> Self {
        self.allow_uneditable = allow_uneditable;
        self
    }

    /// Sets the number of threads that compress previously compressed bundles at the same time; 0 is one. Bundles
    /// that [`Edit::compress`] compresses are compressed by the threads of its options. Default: one.
    #[must_use]
    pub fn with_threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }
}

impl Edit {
    /// Returns an edit that changes nothing yet.
    #[must_use]
    pub fn new(options: EditOptions) -> Self {
        Edit { options, ..Edit::default() }
    }

    /// Returns this edit with these new images, which [`replace`](Self::replace) and [`add`](Self::add) name by number,
    /// from 0. One image can be used in several places. [`EditableFile::plan`] reads the size and the first bytes of
    /// each image, and all bytes of images that are compressed together with others; [`EditPlan::write`] reads the
    /// rest.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use fat_edit::{Edit, EditOptions, NewImage, survey};
    /// use fat_object::Options;
    ///
    /// let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    /// let bundle = bundle_format::layout([(id, 3)], 1)?.to_vec(&[b"old"])?;
    /// let mut file = Cursor::new(bundle);
    ///
    /// let surveyed = survey(&mut file, &Options::default())?;
    /// let image = NewImage::new(Cursor::new(b"BC\xc0\xdenewer")); // starts as LLVM bitcode does
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

    /// Removes the image with this index among [`EditableFile::images`]. A [listing](fat_object::list()) may count
    /// [otherwise](ImageInfo::index). The host's entry of a bundle is removed only with
    /// [`EditOptions::with_remove_host`].
    pub fn remove(&mut self, index: usize) {
        self.images.insert(index, ImageEdit::Remove);
    }

    /// Puts the [new image](Self::with_images) with the number `image` in the place of the one with this index among
    /// [`EditableFile::images`]. A [listing](fat_object::list()) may count [otherwise](ImageInfo::index).
    pub fn replace(&mut self, index: usize, image: usize) {
        self.images.insert(index, ImageEdit::Replace(image));
    }

    /// Adds the [new image](Self::with_images) with the number `image` to the container with this index among
    /// [`EditableFile::containers`], after its other entries. `id` is a bundle entry ID, also for offload binaries.
    pub fn add(&mut self, container: usize, id: impl Into<String>, image: usize) {
        self.added.push(Added { container, id: id.into(), image });
    }

    /// Compresses every uncompressed bundle, and every uncompressed offload binary of version 3 that no runtime but HIP's
    /// reads; with [`CompressOptions::with_recompress`] compressed ones again. Offload binaries of older versions stay, unless
    /// they are [upgraded](CompressOptions::with_upgrade_offload_binaries). A file without bundles and offload binaries is
    /// [refused](ErrorKind::NoBundle).
    pub fn compress(&mut self, options: CompressOptions) {
        self.bundles = BundleEdit::Compress(options);
    }

    /// Decompresses every compressed bundle and offload binary. A file without any is [refused](ErrorKind::NoBundle).
    pub fn decompress(&mut self) {
        self.bundles = BundleEdit::Decompress;
    }
}
