//! Errors of wrapping.

use std::fmt::Display;
use std::io;

use crate::OffloadKind;
use crate::abi::Abi;
use crate::object_format::ObjectFormat;

/// Error of describing or writing registration code or entries.
///
/// The text says what is wrong, with which image or entry, and what was expected. Images, entries and inputs are numbered
/// from 0 in the order they were given; sizes are in bytes.
///
/// ```
/// use wrapper_ir::{ErrorKind, Target};
///
/// let error = Target::new("pdp11-dec-unix").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::UnknownName);
/// assert_eq!(error.to_string(), "unsupported target triple \"pdp11-dec-unix\"");
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    image: Option<usize>,
    head_needed: Option<u64>,
    package: Option<offload_binary::Error>,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No kind or generation has this name, or no data layout is known for the target triple.
    UnknownName,
    /// There is no registration code for this kind, generation, object format or flag.
    Unsupported,
    /// There is no writer for native objects of this target, or not for such code.
    NotNative,
    /// A name, target ID, alignment or data layout cannot be written, names repeat, or the head of an image is longer than
    /// the image.
    Invalid,
    /// There are no images or entries, or there is not a target ID for each image.
    Count,
    /// There are several images for a kind that registers one.
    SingleImage,
    /// More of the first bytes of an image are needed: [`Error::head_needed`].
    HeadTooShort,
    /// An offload binary is malformed, compressed, empty or of another kind, or something follows it.
    Package,
    /// Something is larger than its field or format can say.
    Limit,
    /// The images differ from the ones that were laid out, or there is not enough memory for the output.
    Output,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Error(Box::new(Inner { kind, image: None, head_needed: None, package: None, message }))
    }

    /// Creates an error about an image, to whose number the text is added.
    #[cold]
    pub(crate) fn of_image(kind: ErrorKind, image: usize, text: impl Display) -> Self {
        let mut error = Self::new(kind, format!("device image {image}{text}"));
        error.0.image = Some(image);
        error
    }

    #[cold]
    pub(crate) fn image_too_large(image: usize, size: u64, limit: u64) -> Self {
        let text = format!(" has {size:#x} bytes, expected at most {limit:#x}");
        Self::of_image(ErrorKind::Limit, image, text)
    }

    /// Creates the error of an offload binary whose head is too short.
    #[cold]
    pub(crate) fn head_too_short(image: usize, needed: u64) -> Self {
        let text = format!(" is a package: expected at least its first {needed:#x} bytes");
        let mut error = Self::of_image(ErrorKind::HeadTooShort, image, text);
        error.0.head_needed = Some(needed);
        error
    }

    /// Creates the error of an offload binary that cannot be read.
    #[cold]
    pub(crate) fn of_package(image: usize, package: offload_binary::Error) -> Self {
        let mut error = Self::of_image(ErrorKind::Package, image, format!(": {package}"));
        error.0.package = Some(package);
        error
    }

    /// Creates the error of data after an offload binary. LLVM registers the first of several and drops the others.
    #[cold]
    pub(crate) fn after_package(image: usize, package: u64, size: u64) -> Self {
        let text = format!(
            " is a package of {package:#x} bytes, followed by more data ({size:#x} bytes in total); wrap packages \
             one by one"
        );
        Self::of_image(ErrorKind::Package, image, text)
    }

    #[cold]
    pub(crate) fn too_many_images(found: usize) -> Self {
        let text = format!("{found} device images exceed the limit of a descriptor");
        Self::new(ErrorKind::Limit, text)
    }

    #[cold]
    pub(crate) fn single_image(kind: OffloadKind, found: usize) -> Self {
        let text = format!("{kind} registers exactly one device image, found {found}");
        Self::new(ErrorKind::SingleImage, text)
    }

    #[cold]
    pub(crate) fn unsupported(abi: Abi, kind: OffloadKind, format: ObjectFormat) -> Self {
        let text =
            format!("abi {abi} has no registration code of kind {kind} for {format} objects");
        Self::new(ErrorKind::Unsupported, text)
    }

    #[cold]
    pub(crate) fn bad_align(align: u64, limit: u64) -> Self {
        let text =
            format!("device image alignment {align} is not a power of two from 1 to {limit}");
        Self::new(ErrorKind::Invalid, text)
    }

    #[cold]
    pub(crate) fn of_entry(kind: ErrorKind, entry: usize, text: impl Display) -> Self {
        Self::new(kind, format!("offload entry {entry} {text}"))
    }

    #[cold]
    pub(crate) fn bad_entry_name(entry: usize, name: &str) -> Self {
        let name = name.escape_debug();
        let text = format!("has the name \"{name}\", expected text without NUL");
        Self::of_entry(ErrorKind::Invalid, entry, text)
    }

    /// Creates the error of a changed description that refers to what it does not have. Structures come before structures
    /// that contain them.
    #[cold]
    pub(crate) fn unknown_name(name: &str) -> Self {
        let name = name.escape_debug();
        let text = format!("module refers to \"{name}\", which it neither declares nor defines");
        Self::new(ErrorKind::Invalid, text)
    }

    /// Creates the error of a changed module that does what registration code does not.
    #[cold]
    pub(crate) fn not_native(symbol: &str, what: &str) -> Self {
        let symbol = symbol.escape_debug();
        Self::new(ErrorKind::NotNative, format!("no native form of \"{symbol}\": {what}"))
    }

    #[cold]
    pub(crate) fn object_too_large(format: ObjectFormat, size: u64, limit: u64) -> Self {
        let text = format!("object has {size:#x} bytes, but {format} allows at most {limit:#x}");
        Self::new(ErrorKind::Limit, text)
    }

    #[cold]
    pub(crate) fn output_too_large() -> Self {
        Self::new(ErrorKind::Limit, "output has more than 2^64 bytes")
    }

    /// Creates the error of a state that this crate never makes.
    #[cold]
    pub(crate) fn internal(what: &str) -> Self {
        debug_assert!(false, "{what}");
        Self::new(ErrorKind::Invalid, format!("internal error: {what}"))
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the number of the image with the fault, in the order they were given; `None` if the fault is not in one
    /// image.
    #[must_use]
    pub fn image(&self) -> Option<usize> {
        self.0.image
    }

    /// Returns how many of the first bytes of the [`image`](Self::image) are needed to unwrap the offload binary that
    /// it is; `None` if there are enough. It is not a fault of the image: give its head again, with at least as many
    /// bytes.
    #[must_use]
    pub fn head_needed(&self) -> Option<u64> {
        self.0.head_needed
    }

    /// Returns the error about the offload binary in the [`image`](Self::image); `None` if it can be read, or is not an
    /// offload binary.
    #[must_use]
    pub fn package(&self) -> Option<&offload_binary::Error> {
        self.0.package.as_ref()
    }
}

#[cfg(test)]
impl PartialEq<(ErrorKind, &str)> for Error {
    fn eq(&self, (kind, message): &(ErrorKind, &str)) -> bool {
        self.0.kind == *kind && self.0.message == *message
    }
}

impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        let mut output = Self::new(ErrorKind::Output, format!("wrapper: {error}"));
        if let byte_parts::Error::InputSize { input, .. } = error {
            output.0.image = Some(input);
        }
        output
    }
}

/// A block of bitcode, which has all images in it, is larger than its length can say.
impl From<llvm_bitcode::Error> for Error {
    fn from(error: llvm_bitcode::Error) -> Self {
        Self::new(ErrorKind::Limit, error.to_string())
    }
}

/// [`InvalidData`](io::ErrorKind::InvalidData) for the contents of an offload binary, and else
/// [`InvalidInput`](io::ErrorKind::InvalidInput). The error itself is inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Package => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}
