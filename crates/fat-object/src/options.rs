//! Options of a walk: its scope and its limits.

/// Options of a [`walk`](crate::walk): its scope and its limits. Which containers it opens is for the
/// [visitor](crate::Visitor::opens) to say.
///
/// ```
/// let options = fat_object::Options::default().with_max_decompressed(64 << 20).with_verify_hash(false);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) max_decompressed: u64,
    pub(crate) max_held: Option<u64>,
    pub(crate) max_expansion: u64,
    pub(crate) max_thin_bytes: u64,
    pub(crate) max_depth: usize,
    pub(crate) verify_hash: bool,
    pub(crate) enter_images: bool,
    pub(crate) tables_only: bool,
    pub(crate) check_compressed: bool,
    pub(crate) scan: bool,
    pub(crate) section_starts: bool,
    /// `true` if compressed bundles of version 1 are passed over, whose end only decompression shows.
    pub(crate) only_sized: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_decompressed: 2 << 30,
            max_held: None,
            max_expansion: 256,
            max_thin_bytes: 16 << 30,
            max_depth: 32,
            verify_hash: true,
            enter_images: true,
            tables_only: false,
            check_compressed: false,
            scan: true,
            section_starts: true,
            only_sized: false,
        }
    }
}

impl Options {
    /// Sets how many bytes of decompressed data, and of data copied out of LLVM bitcode, are held at one time, over all
    /// levels of nesting. Default: 2 GiB.
    #[must_use]
    pub fn with_max_decompressed(self, max_decompressed: u64) -> Self {
        Options { max_decompressed, ..self }
    }

    /// Returns how many bytes of decompressed data are held [at one time](Self::with_max_decompressed).
    #[must_use]
    pub fn max_decompressed(&self) -> u64 {
        self.max_decompressed
    }

    /// Lowers how many bytes of such data are held at one time, and not the [total](Self::with_max_expansion): for one of several
    /// threads that share a limit. Data that would exceed it is a finding, or an error. The default is `None`: the same limit.
    #[must_use]
    pub fn with_max_held(self, max_held: impl Into<Option<u64>>) -> Self {
        Options { max_held: max_held.into(), ..self }
    }

    /// Returns how many bytes of such data are held at one time: the lower one of both limits.
    #[must_use]
    pub fn max_held(&self) -> u64 {
        self.max_held.map_or(self.max_decompressed, |held| held.min(self.max_decompressed))
    }

    /// Sets how many bytes of such data each byte of the file may give, over the whole walk: the total is limited to
    /// the limit [at one time](Self::with_max_decompressed) plus this many times the size of the file, with the files
    /// that thin archives name. Compressed bundles expand to at most 20 times their size, unless they hold next to
    /// nothing. Default: 256.
    #[must_use]
    pub fn with_max_expansion(self, max_expansion: u64) -> Self {
        Options { max_expansion, ..self }
    }

    /// Sets how many bytes the files named by thin archives have together; each counts for 4 KiB at least. Default: 16 GiB.
    #[must_use]
    pub fn with_max_thin_bytes(self, max_thin_bytes: u64) -> Self {
        Options { max_thin_bytes, ..self }
    }

    /// Sets how many containers may lie around an image: archives in archives, bundles in bundles. Default: 32.
    #[must_use]
    pub fn with_max_depth(self, max_depth: usize) -> Self {
        Options { max_depth, ..self }
    }

    /// Sets whether the contents of compressed bundles are compared with their hash. It takes as long as decompressing:
    /// a second walk of the same file can do without. Default: `true`.
    #[must_use]
    pub fn with_verify_hash(self, verify_hash: bool) -> Self {
        Options { verify_hash, ..self }
    }

    /// Returns whether compressed bundles are compared with their [hash](Self::with_verify_hash).
    #[must_use]
    pub fn verify_hash(&self) -> bool {
        self.verify_hash
    }

    /// Sets whether the walk enters images that can hold further images: host objects, bundles in bundles. Default:
    /// `true`.
    ///
    /// [Indices](crate::ImageInfo::index) of images depend on it.
    #[must_use]
    pub fn with_enter_images(self, enter_images: bool) -> Self {
        Options { enter_images, ..self }
    }

    /// Sets whether compressed bundles are read only up to the end of their tables of entries, which have the IDs, offsets
    /// and sizes of images: their first kilobytes instead of hundreds of megabytes. Default: `false`.
    ///
    /// Images in them then have the format [`NotRead`](crate::FileFormat::NotRead) and no bytes to
    /// [read](crate::Image::reader), hashes are not compared, and damage after the table is not found. A bundle is
    /// read to its end nevertheless where its table does not tell everything: if something is wrong with it, if it
    /// is a text bundle, of version 1, or followed by something; compressed offload binaries are always; and, to
    /// [look into images](Self::with_enter_images), if it holds more than code for AMD GPUs. An entry for an AMD
    /// GPU that is a container nevertheless is not opened, unless it is the first.
    #[must_use]
    pub fn with_tables_only(self, tables_only: bool) -> Self {
        Options { tables_only, ..self }
    }

    /// Sets whether images that are compressed by themselves, in NVIDIA's fatbinaries, are decompressed and compared
    /// with their entries ([`ImageInfo::disagreement`](crate::ImageInfo::disagreement)). It takes as long as
    /// decompressing. Default: `false`.
    #[must_use]
    pub fn with_check_compressed(self, check_compressed: bool) -> Self {
        Options { check_compressed, ..self }
    }

    /// Sets whether host files (ELF, PE, Mach-O, COFF, WebAssembly) are searched for containers in all bytes that nothing
    /// accounts for: sections for other data, files without section headers, bytes after the last section. It costs
    /// less than reading those bytes. Default: `true`.
    ///
    /// A container is found by its magic and taken for one if all of its headers are in order. Such containers come
    /// after those of the host file's own sections; [`PathStep::is_found_by_scan`](crate::PathStep::is_found_by_scan) tells
    /// them apart.
    #[must_use]
    pub fn with_scan(self, scan: bool) -> Self {
        Options { scan, ..self }
    }

    /// Sets whether a section of an ELF, COFF, PE or Mach-O file is a container if it starts with one, whatever its name.
    /// ELF's symbols, relocations and groups are none. Without, only sections whose name or type says that they hold device
    /// code are containers, and a walk without a [scan](Self::with_scan) reads nothing but headers of a file that has none:
    /// a linker has no use for others. Default: `true`.
    #[must_use]
    pub fn with_section_starts(self, section_starts: bool) -> Self {
        Options { section_starts, ..self }
    }

    /// Returns whether host files are [searched](Self::with_scan).
    #[must_use]
    pub fn scan(&self) -> bool {
        self.scan
    }
}
