//! `roc-obj-ls` and `roc-obj-extract`: AMD's tools that list code objects as URIs, and extract the bytes of a URI.

pub mod extract;
pub mod ls;
mod uri;
