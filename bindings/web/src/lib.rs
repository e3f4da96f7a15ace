//! The module of the page: it reads a dropped file through one function of the page, and answers in JSON.
#![deny(missing_docs)]

mod answers;
#[cfg(target_arch = "wasm32")]
mod glue;

pub use answers::{Dropped, products, report};
