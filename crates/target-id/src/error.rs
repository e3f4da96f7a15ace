//! Errors in a target ID or the name of an architecture.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;

/// The reason why a text is not a usable target ID, or not the name of an NVIDIA architecture.
///
/// The text says what is wrong, where, and what was expected. Any text is an [`OffloadKind`](crate::OffloadKind), a
/// [`Triple`](crate::Triple) and a [`Feature`](crate::Feature).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    kind: ErrorKind,
    offset: Option<usize>,
    message: Cow<'static, str>,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text before the first `:` is empty (or the whole target ID is).
    EmptyProcessor,
    /// Two `:` in a row, a sign without a name, or (old spelling) two `+` in a row.
    EmptyFeature,
    /// A feature does not end in `+` or `-`.
    MissingSign,
    /// A feature is given more than once, with equal or opposite signs.
    DuplicateFeature,
    /// The processor is known and does not have this feature in its target IDs, or the target IDs of all processors of the triple have no
    /// features.
    UnsupportedFeature,
    /// The processor is known and belongs to another architecture than the triple names.
    ForeignProcessor,
    /// The spelling of code object V2 and V3, `gfx906+xnack`; see [`TargetId::parse_v3`](crate::TargetId::parse_v3).
    OldSpelling,
    /// The text is not the name of an NVIDIA architecture, see [`NvidiaArch::parse`](crate::NvidiaArch::parse).
    NotNvidiaArch,
}

impl Error {
    #[cold]
    pub(crate) fn new(
        kind: ErrorKind,
        offset: impl Into<Option<usize>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error(Box::new(Inner { kind, offset: offset.into(), message: message.into() }))
    }

    #[cold]
    pub(crate) fn empty_processor() -> Self {
        Self::new(ErrorKind::EmptyProcessor, None, "target ID has no processor name")
    }

    #[cold]
    pub(crate) fn empty_feature(offset: usize) -> Self {
        let text = format!("target ID has an empty feature name at offset {offset}");
        Self::new(ErrorKind::EmptyFeature, offset, text)
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// use target_id::{ErrorKind, TargetId};
    ///
    /// let error = TargetId::parse("gfx906:xnack").unwrap_err();
    /// assert_eq!((error.kind(), error.offset()), (ErrorKind::MissingSign, Some(7)));
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns where the feature that is wrong starts, in bytes from the start of the target ID.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }
}
