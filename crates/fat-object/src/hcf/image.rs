//! Description of an image.

use core::ops::Range;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

/// Description of an image in an HCF container of AdaptiveCpp.
#[derive(Debug, PartialEq)]
pub struct HcfImage {
    pub(crate) range: Range<u64>,
    pub(crate) node: String,
    pub(crate) format: Option<String>,
    pub(crate) kernels: Vec<Arc<str>>,
}

impl HcfImage {
    /// Returns the place of the image, in bytes from the start of the container.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the name of the image's node: `llvm-ir.global`.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the recorded format: `llvm-ir`. The bytes of the image may be of another.
    #[must_use]
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// Returns the names of the kernels that list this image among their providers, in stored order.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.kernels.iter().map(|name| &**name)
    }
}
