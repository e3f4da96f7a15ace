//! The bounds of the work.

/// Bounds of the work on a file. [`Default`] suits files from anywhere.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    max_held: Option<u64>,
    no_scan: bool,
}

impl Options {
    /// Sets the most bytes that are held at one time, of members and of decompressed data. Default: 256 MiB and 256 bytes for each
    /// byte of the file, at most 2 GiB.
    #[must_use]
    pub fn with_max_held(self, bytes: u64) -> Self {
        Options { max_held: Some(bytes), ..self }
    }

    /// Sets whether host files are searched for containers outside of device sections. Default: `true`.
    #[must_use]
    pub fn with_scan(self, scans: bool) -> Self {
        Options { no_scan: !scans, ..self }
    }

    /// Returns the most bytes that are held at one time for a file of this length.
    pub(crate) fn held_of(&self, len: u64) -> u64 {
        self.max_held.unwrap_or_else(|| gpu_packages::Options::default().held_of(len))
    }

    /// Returns the options of a package of this length.
    pub(crate) fn of_package(&self, len: u64) -> gpu_packages::Options {
        gpu_packages::Options::default().with_max_held(self.held_of(len))
    }

    /// Returns the options of a walk that may hold these bytes.
    pub(crate) fn of_walk(&self, held: u64) -> fat_object::Options {
        let options = fat_object::Options::default().with_scan(!self.no_scan);
        let held = held.min(options.max_decompressed());
        options.with_max_decompressed(held)
    }
}
