//! Errors of wrapping.

use std::{fmt, io};

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
#[derive(Debug)]
pub struct Error(pub(crate) Problem);

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
    /// The images are not those that were laid out, or there is not enough memory for the output.
    Output,
}

impl Error {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Problem::UnknownAbi { .. } | Problem::UnknownTriple { .. } => ErrorKind::UnknownName,
            Problem::Unsupported { .. }
            | Problem::TargetIdUnsupported { .. }
            | Problem::PrivateEntriesUnsupported { .. }
            | Problem::DifferentModules { .. }
            | Problem::EntriesUnsupported { .. }
            | Problem::UnregisteredEntry { .. } => ErrorKind::Unsupported,
            Problem::NoObjectWriter { .. } | Problem::NotNative { .. } => ErrorKind::NotNative,
            Problem::BadTargetText { .. }
            | Problem::UnsupportedDataLayout { .. }
            | Problem::BadTargetId { .. }
            | Problem::BadAlign { .. }
            | Problem::BadEntriesSuffix { .. }
            | Problem::BadEntryName { .. }
            | Problem::DuplicateEntry { .. }
            | Problem::BadEntrySymbol { .. }
            | Problem::EmptyVariable { .. }
            | Problem::UnknownName { .. }
            | Problem::UnknownBlob { .. }
            | Problem::UnknownLocal { .. } => ErrorKind::Invalid,
            Problem::NoImage { .. } | Problem::TargetIdCount { .. } | Problem::NoEntry { .. } => {
                ErrorKind::Count
            }
            Problem::SingleImage { .. } => ErrorKind::SingleImage,
            Problem::HeadTooShort { .. } => ErrorKind::HeadTooShort,
            Problem::Package { .. }
            | Problem::EmptyPackage { .. }
            | Problem::AfterPackage { .. }
            | Problem::PackageKind { .. } => ErrorKind::Package,
            Problem::TooManyImages { .. }
            | Problem::TooManyEntries { .. }
            | Problem::ImageTooLarge { .. }
            | Problem::EntryTooLarge { .. }
            | Problem::ObjectTooLarge { .. }
            | Problem::Bitcode(_)
            | Problem::OutputTooLarge => ErrorKind::Limit,
            Problem::HeadTooLong { .. } => ErrorKind::Invalid,
            Problem::Output(_) => ErrorKind::Output,
        }
    }

    /// Returns the number of the image that the error is about, in the order they were given; `None` if it is not about
    /// one image.
    #[must_use]
    pub fn image(&self) -> Option<usize> {
        match self.0 {
            Problem::ImageTooLarge { image, .. }
            | Problem::HeadTooShort { image, .. }
            | Problem::HeadTooLong { image, .. }
            | Problem::Package { image, .. }
            | Problem::EmptyPackage { image }
            | Problem::AfterPackage { image, .. }
            | Problem::PackageKind { image, .. }
            | Problem::BadTargetId { image, .. } => Some(image),
            Problem::Output(byte_parts::Error::InputSize { input, .. }) => Some(input),
            _ => None,
        }
    }

    /// Returns how many of the first bytes of the [`image`](Self::image) are needed to unwrap the offload binary that
    /// it is; `None` if there are enough. It is not a fault of the image: give its head again, with at least as many
    /// bytes.
    #[must_use]
    pub fn head_needed(&self) -> Option<u64> {
        match self.0 {
            Problem::HeadTooShort { needed, .. } => Some(needed),
            _ => None,
        }
    }

    /// Returns the error about the offload binary in the [`image`](Self::image); `None` if it can be read, or is not an
    /// offload binary.
    #[must_use]
    pub fn package(&self) -> Option<&offload_binary::Error> {
        match &self.0 {
            Problem::Package { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
impl PartialEq for Problem {
    fn eq(&self, other: &Problem) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

#[cfg(test)]
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        self.0 == other.0
    }
}

#[cfg(test)]
impl PartialEq<Problem> for Error {
    fn eq(&self, problem: &Problem) -> bool {
        self.0 == *problem
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        Error(Problem::Output(error))
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

/// [`InvalidData`](io::ErrorKind::InvalidData) if it is about what an offload binary holds, and else
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

/// One fault, with all that its text says.
///
/// Images, entries and inputs are numbered from 0 in the order they were given; sizes are in bytes.
#[derive(Debug)]
pub(crate) enum Problem {
    /// No generation has this name.
    UnknownAbi { name: Box<str> },

    /// The triple does not tell a data layout.
    UnknownTriple { triple: Box<str> },

    /// A triple or data layout given has characters it cannot have: it has to be printable ASCII
    /// without `"` and `\`.
    BadTargetText { text: Box<str> },

    /// A data layout given is none of ELF, COFF or Mach-O, or has pointers of neither 32 nor
    /// 64 bits.
    UnsupportedDataLayout { layout: Box<str>, specification: Box<str> },

    /// This generation has no such registration code for this object format.
    Unsupported { abi: Abi, kind: OffloadKind, format: ObjectFormat },

    /// There is no image.
    NoImage { kind: OffloadKind },

    /// There are several images for a kind that registers one.
    SingleImage { kind: OffloadKind, found: usize },

    /// There are more images than a 32-bit count holds.
    TooManyImages { found: usize },
    /// An offload binary names more entries than are registered.
    TooManyEntries { limit: usize },

    /// An image is larger than the target or the output format can hold.
    ImageTooLarge { image: usize, size: u64, limit: u64 },

    /// More bytes of an image are needed to unwrap the offload binary it is. The image may be valid: give at least this
    /// many.
    HeadTooShort { image: usize, needed: u64 },

    /// The head given for an image is longer than the image.
    HeadTooLong { image: usize, size: u64, head: u64 },

    /// An image starts as an offload binary does, and is damaged.
    Package { image: usize, error: offload_binary::Error },

    /// An offload binary has no images.
    EmptyPackage { image: usize },

    /// Something follows an offload binary. LLVM registers the first of several and drops the others.
    AfterPackage { image: usize, package: u64, size: u64 },

    /// An offload binary has an image of another kind.
    PackageKind { image: usize, entry: usize, kind: OffloadKind, found: OffloadKind },

    /// Some images have a target ID and some have none.
    TargetIdCount { images: usize, target_ids: usize },

    /// A target ID was given where none can be registered.
    TargetIdUnsupported { abi: Abi },

    /// A target ID is empty or has a NUL, which would end it.
    BadTargetId { image: usize, target_id: Box<str> },

    /// An alignment is not a power of two, or more than the object format has.
    BadAlign { align: u64, limit: u64 },

    /// The suffix of a private entries section is not a part of a C identifier.
    BadEntriesSuffix { suffix: Box<str> },

    /// A private entries section was asked for where the linker does not define its bounds.
    PrivateEntriesUnsupported { format: ObjectFormat },

    /// Two modules for different hosts, or of different generations, cannot become one.
    DifferentModules { what: &'static str, first: Box<str>, second: Box<str> },

    /// The kind registers no entries.
    EntriesUnsupported { kind: OffloadKind },

    /// No entries were added.
    NoEntry { kind: OffloadKind },

    /// The name of an entry is empty or has a NUL, which would end it.
    BadEntryName { entry: usize, name: Box<str> },

    /// Two entries have the same name.
    DuplicateEntry { entry: usize, first: usize, name: Box<str> },

    /// The symbol of an entry is empty, has a NUL, or is one that the module defines itself.
    BadEntrySymbol { entry: usize, symbol: Box<str> },

    /// A variable has the size of kernels.
    EmptyVariable { entry: usize },

    /// Registration code ignores variables with such flags.
    UnregisteredEntry { entry: usize, kind: OffloadKind, abi: Abi, flags: u32 },

    /// A number of an entry has no room in its record.
    EntryTooLarge { entry: usize, field: &'static str, value: u64, limit: u64 },

    /// A block of bitcode, which has all images in it, is larger than its length can say.
    Bitcode(llvm_bitcode::Error),

    /// A changed description refers to a variable, function or structure that it does not have. Structures come
    /// before those that contain them.
    UnknownName { name: Box<str> },

    /// A changed description refers to a part of an input that it does not have.
    UnknownBlob { blob: usize },

    /// A changed description refers to a value that is not defined by then, or defines values in
    /// another order than that of their numbers.
    UnknownLocal { function: Box<str>, local: usize },

    /// The inputs are not those of the images, or the output does not fit into memory.
    Output(byte_parts::Error),

    /// There is no writer for native objects of this target.
    NoObjectWriter { triple: Box<str> },

    /// A module that was changed does what registration code does not, and cannot be written as
    /// machine code.
    NotNative { symbol: Box<str>, what: &'static str },

    /// A section or object is larger than the object format can say.
    ObjectTooLarge { format: ObjectFormat, size: u64, limit: u64 },

    /// The output would be larger than 2⁶⁴ bytes.
    OutputTooLarge,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAbi { name } => write!(
                f,
                "unknown wrapper abi \"{}\", expected aomp, legacy, 18, 19, 22, current or 24",
                name.escape_debug()
            ),
            Self::UnknownTriple { triple } => {
                write!(f, "unsupported target triple \"{}\"", triple.escape_debug())
            }
            Self::BadTargetText { text } => write!(
                f,
                "target text \"{}\" has characters other than plain ASCII",
                text.escape_debug()
            ),
            Self::UnsupportedDataLayout { layout, specification } => write!(
                f,
                "data layout \"{}\" has the specification \"{}\", which is not supported",
                layout.escape_debug(),
                specification.escape_debug()
            ),
            Self::Unsupported { abi, kind, format } => {
                write!(f, "abi {abi} has no registration code of kind {kind} for {format} objects")
            }
            Self::NoImage { kind } => write!(f, "no device image to wrap for {kind}"),
            Self::SingleImage { kind, found } => {
                write!(f, "{kind} registers exactly one device image, found {found}")
            }
            Self::TooManyImages { found } => {
                write!(f, "{found} device images exceed the limit of a descriptor")
            }
            Self::TooManyEntries { limit } => {
                write!(f, "the device images name more than {limit} offload entries")
            }
            Self::ImageTooLarge { image, size, limit } => {
                write!(f, "device image {image} has {size:#x} bytes, expected at most {limit:#x}")
            }
            Self::HeadTooShort { image, needed } => write!(
                f,
                "device image {image} is a package: expected at least its first {needed:#x} bytes"
            ),
            Self::HeadTooLong { image, size, head } => {
                write!(
                    f,
                    "device image {image} has {size} bytes, less than its head of {head} bytes"
                )
            }
            Self::Package { image, error } => write!(f, "device image {image}: {error}"),
            Self::EmptyPackage { image } => {
                write!(f, "device image {image} is a package without images")
            }
            Self::AfterPackage { image, package, size } => write!(
                f,
                "device image {image} is a package of {package:#x} bytes, followed by more data ({size:#x} bytes \
                 in total); wrap packages one by one"
            ),
            Self::PackageKind { image, entry, kind, found } => write!(
                f,
                "device image {image} is a package whose entry {entry} has offload kind {}, expected {kind}",
                found.0
            ),
            Self::TargetIdCount { images, target_ids } => {
                write!(f, "{images} device images have {target_ids} target ids, expected one each")
            }
            Self::TargetIdUnsupported { abi } => {
                write!(f, "abi {abi} does not register the target ids of images, only aomp does")
            }
            Self::BadTargetId { image, target_id } => {
                write!(f, "device image {image} has the target id \"{}\"", target_id.escape_debug())
            }
            Self::BadAlign { align, limit } => {
                write!(f, "device image alignment {align} is not a power of two from 1 to {limit}")
            }
            Self::BadEntriesSuffix { suffix } => write!(
                f,
                "entries suffix \"{}\" is not made of letters, digits and underscores",
                suffix.escape_debug()
            ),
            Self::DifferentModules { what, first, second } => {
                write!(f, "modules to join have different {what}: expected {first}, found {second}")
            }
            Self::PrivateEntriesUnsupported { format } => {
                write!(f, "private entries need elf objects, the target has {format}")
            }
            Self::EntriesUnsupported { kind } => {
                write!(f, "{kind} registers no offload entries, expected openmp, cuda or hip")
            }
            Self::NoEntry { kind } => write!(f, "no offload entry to emit for {kind}"),
            Self::BadEntryName { entry, name } => write!(
                f,
                "offload entry {entry} has the name \"{}\", expected text without NUL",
                name.escape_debug()
            ),
            Self::DuplicateEntry { entry, first, name } => write!(
                f,
                "offload entries {first} and {entry} both have the name \"{}\"",
                name.escape_debug()
            ),
            Self::BadEntrySymbol { entry, symbol } => write!(
                f,
                "offload entry {entry} is at the symbol \"{}\", expected one that the program defines",
                symbol.escape_debug()
            ),
            Self::EmptyVariable { entry } => write!(
                f,
                "offload entry {entry} is a variable of 0 bytes, which is registered as a kernel"
            ),
            Self::UnregisteredEntry { entry, kind, abi, flags } => write!(
                f,
                "offload entry {entry} has the flags {flags:#x}, but abi {abi} registers no such variables of kind {kind}"
            ),
            Self::EntryTooLarge { entry, field, value, limit } => write!(
                f,
                "offload entry {entry} has the {field} {value:#x}, expected at most {limit:#x}"
            ),
            Self::Bitcode(error) => error.fmt(f),
            Self::UnknownName { name } => write!(
                f,
                "module refers to \"{}\", which it neither declares nor defines",
                name.escape_debug()
            ),
            Self::UnknownBlob { blob } => {
                write!(f, "module refers to blob {blob}, which it does not have")
            }
            Self::UnknownLocal { function, local } => write!(
                f,
                "function \"{}\" refers to local {local} where it is not defined",
                function.escape_debug()
            ),
            Self::Output(error) => write!(f, "wrapper: {error}"),
            Self::NoObjectWriter { triple } => write!(
                f,
                "no native objects for target triple \"{}\", expected elf for x86-64, aarch64 or riscv64, \
         or coff or mach-o for x86-64 or aarch64",
                triple.escape_debug()
            ),
            Self::NotNative { symbol, what } => {
                write!(f, "no native form of \"{}\": {what}", symbol.escape_debug())
            }
            Self::ObjectTooLarge { format, size, limit } => {
                write!(f, "object has {size:#x} bytes, but {format} allows at most {limit:#x}")
            }
            Self::OutputTooLarge => f.write_str("output has more than 2^64 bytes"),
        }
    }
}

impl From<llvm_bitcode::Error> for Problem {
    fn from(error: llvm_bitcode::Error) -> Self {
        Self::Bitcode(error)
    }
}
