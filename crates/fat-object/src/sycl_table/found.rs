//! The images that the tables of a file name.

use crate::sycl_table::error::Error;
use crate::sycl_table::image::SyclImage;

/// The content of the tables of a linked host file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Tables {
    /// Images by place.
    pub images: Vec<SyclImage>,
    /// Faults of what cannot be read.
    pub faults: Vec<Error>,
}
