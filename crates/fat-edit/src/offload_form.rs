//! Plain offload binaries, and what compression makes of them.

use crate::compress::CompressOptions;

/// Offset of the entries in an offload binary that can be compressed: its header leaves no choice.
const ENTRIES_AT: u64 = 40;

/// The facts of a plain offload binary that compression needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OffloadBinaryForm {
    pub(super) version: u32,
    pub(super) entries_at: u64,
    pub(super) reader: Reader,
}

/// The reader of an offload binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reader {
    /// Tools: it lies in a file of offload binaries, or in a section that is never loaded.
    Tools,
    /// HIP's runtime.
    Hip,
    /// Another runtime.
    Program,
}

/// The outcome of compression for a plain offload binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Compress,
    /// As `Compress`; it becomes version 3 by that.
    Upgrade,
    /// It stays: readers of its version need not read version 3.
    Older,
    /// It stays: a runtime reads it that may not decompress it.
    Registered,
}

impl OffloadBinaryForm {
    pub(super) fn treatment(self, options: &CompressOptions) -> Treatment {
        match (self.reader, self.version) {
            (Reader::Program, _) => Treatment::Registered,
            (_, 3) if self.entries_at == ENTRIES_AT => Treatment::Compress,
            (Reader::Tools, _) if options.upgrade_offload_binaries => Treatment::Upgrade,
            _ => Treatment::Older,
        }
    }
}
