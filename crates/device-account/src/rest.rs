//! Bytes of a file that belong to no image.

use std::sync::Arc;

use fat_object::PathStep;

use crate::kind::{Amount, Kind};

/// Bytes of no image.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) kind: Kind,
    pub(crate) path: Arc<[PathStep]>,
    pub(crate) section: String,
    pub(crate) amount: Amount,
    pub(crate) is_damaged: bool,
}

impl Rest {
    /// Returns the target in rows.
    pub(crate) fn target(&self) -> &'static str {
        if self.kind.is_host() { "host" } else { "" }
    }
}
