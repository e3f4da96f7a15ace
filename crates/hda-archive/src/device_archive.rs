//! The archives that are made of one: what goes into each.

use std::sync::Arc;

use bundle_format::Request;
use byte_parts::Layout;

use crate::error::{Error, ErrorKind};

/// The archive for one target.
#[derive(Debug)]
pub struct DeviceArchive {
    pub(crate) target: Request,
    pub(crate) names: Vec<Arc<[u8]>>,
    pub(crate) layout: Layout,
}

impl DeviceArchive {
    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> &Request {
        &self.target
    }

    /// Returns names and sizes of the members, in order. Names can repeat.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.names.iter().map(|name| &**name).zip(self.layout.sizes().iter().copied())
    }

    /// Returns whether the input has no code for the target: an archive of 8 bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the size of the archive in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.layout.size()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Refuses an archive for which the input has no code.
    pub(crate) fn check(&self, allow_missing: bool) -> Result<(), Error> {
        if self.is_empty() && !allow_missing {
            let text = format!("no code for {}", self.target.id().escape_debug());
            return Err(Error::new(ErrorKind::NoCode, text));
        }
        Ok(())
    }
}

/// An entry that becomes a member of one archive or several.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) size: u64,
    /// The hash of its bytes.
    pub(crate) fingerprint: u64,
    /// Its offset in the input; `None` when it has to be made: decompressed, restored, read from elsewhere.
    pub(crate) offset: Option<u64>,
    pub(crate) name: Arc<[u8]>,
    /// The archives that get it.
    pub(crate) archives: Arc<[usize]>,
}
