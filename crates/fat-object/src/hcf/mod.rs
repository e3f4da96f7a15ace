//! HCF, the container of AdaptiveCpp: text, a marker, and the images.
//!
//! The text is lines of `key=value` and nodes, `{.name` up to `}.name`. A node `__binary` gives the place of an image in
//! the bytes after the marker: `start` and `size`, decimal (`hipSYCL/common/hcf_container.hpp`).
//!
//! [`text`] finds the end of the text in as many bytes as a program has read, [`Hcf::parse`] reads the text. No function
//! looks at the images.
//!
//! ```
//! let container = b"object-id=1\n{.ptx\n{.__binary\nstart=0\nsize=4\n}.__binary\n}.ptx\n\
//!     __hipsycl_hcf_binary_appendixcode";
//! let size = container.len() as u64;
//! // A text without its end: more bytes are needed.
//! assert_eq!(fat_object::hcf::text(&container[..40], size)?, None);
//! let text = fat_object::hcf::text(container, size)?.unwrap();
//! let container = fat_object::hcf::Hcf::parse(text, size)?;
//! assert_eq!(container.images[0].node(), "ptx");
//! assert_eq!(container.end, size);
//! # Ok::<(), fat_object::hcf::Error>(())
//! ```

mod container;
mod error;
mod image;
mod parse;

pub use error::{Error, ErrorKind};
pub use image::HcfImage;
pub use parse::{Hcf, MAGIC, text};

pub(crate) use container::{open, size};
