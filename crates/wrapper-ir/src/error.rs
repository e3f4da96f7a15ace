//! What can be wrong with what is to be wrapped.

use std::io;

use crate::kinds::{Abi, Kind};
use crate::target::ObjectFormat;

/// What is wrong with what is to be wrapped, and where.
///
/// Images, entries and inputs are numbered from 0 in the order they were given; sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No kind has this name.
    #[error("unknown offload kind \"{}\", expected openmp, cuda, hip or sycl", name.escape_debug())]
    UnknownKind {
        /// The name.
        name: Box<str>,
    },

    /// No generation has this name.
    #[error(
        "unknown wrapper abi \"{}\", expected aomp, legacy, 18, 19, current or 24",
        name.escape_debug()
    )]
    UnknownAbi {
        /// The name.
        name: Box<str>,
    },

    /// The triple does not tell a data layout. [`Target::with_data_layout`] takes any.
    ///
    /// [`Target::with_data_layout`]: crate::Target::with_data_layout
    #[error("unsupported target triple \"{}\"", triple.escape_debug())]
    UnknownTriple {
        /// The triple.
        triple: Box<str>,
    },

    /// A triple or data layout given has characters it cannot have: it has to be printable ASCII
    /// without `"` and `\`.
    #[error("target text \"{}\" has characters other than plain ascii", text.escape_debug())]
    BadTargetText {
        /// The triple or data layout.
        text: Box<str>,
    },

    /// A data layout given is none of ELF, COFF or Mach-O, or has pointers of neither 32 nor
    /// 64 bits.
    #[error(
        "data layout \"{}\" has the specification \"{}\", which is not supported",
        layout.escape_debug(), specification.escape_debug()
    )]
    UnsupportedDataLayout {
        /// The data layout.
        layout: Box<str>,
        /// The part of it that does not fit, empty when what would name the object format is
        /// missing.
        specification: Box<str>,
    },

    /// This generation has no such registration code for this object format.
    #[error("abi {abi} has no registration code of kind {kind} for {format} objects")]
    Unsupported {
        /// The generation.
        abi: Abi,
        /// The kind.
        kind: Kind,
        /// The object format of the target.
        format: ObjectFormat,
    },

    /// There is no image.
    #[error("no device image to wrap for {kind}")]
    NoImage {
        /// The kind.
        kind: Kind,
    },

    /// There are several images for a kind that registers one.
    #[error("{kind} registers exactly one device image, but there are {found}")]
    SingleImage {
        /// The kind.
        kind: Kind,
        /// Images there are.
        found: usize,
    },

    /// There are more images than a 32-bit count holds.
    #[error("there are {found} device images, more than a descriptor can count")]
    TooManyImages {
        /// Images there are.
        found: usize,
    },

    /// An image is larger than the target or the output format can hold.
    #[error("device image {image} has {size:#x} bytes, but there is room for {limit:#x} only")]
    ImageTooLarge {
        /// Which image.
        image: usize,
        /// Its size.
        size: u64,
        /// The largest size there can be.
        limit: u64,
    },

    /// More bytes of an image are needed to unwrap the package it is. Not a fault of the image:
    /// give at least so many.
    #[error("device image {image} is a package whose first {needed:#x} bytes are needed")]
    HeadTooShort {
        /// Which image.
        image: usize,
        /// How many of its first bytes are needed.
        needed: u64,
    },

    /// The head given for an image is longer than the image.
    #[error("device image {image} has {size} bytes, but a head of {head} bytes")]
    HeadTooLong {
        /// Which image.
        image: usize,
        /// Size of the image.
        size: u64,
        /// Length of the head.
        head: u64,
    },

    /// An image starts as a package does, and is damaged.
    #[error("device image {image}: {error}")]
    Package {
        /// Which image.
        image: usize,
        /// What is wrong.
        error: offload_binary::Error,
    },

    /// A package has no images.
    #[error("device image {image} is a package without images")]
    EmptyPackage {
        /// Which image.
        image: usize,
    },

    /// Something follows a package. LLVM registers the first of several and drops the others.
    #[error(
        "device image {image} is a package of {package:#x} bytes with {size:#x} bytes in all; \
         wrap packages one by one"
    )]
    AfterPackage {
        /// Which image.
        image: usize,
        /// Size of the package.
        package: u64,
        /// Size of the image.
        size: u64,
    },

    /// A package has an image of another kind.
    #[error(
        "device image {image} is a package whose entry {entry} has offload kind {}, expected {kind}",
        found.0
    )]
    PackageKind {
        /// Which image.
        image: usize,
        /// Which entry of it.
        entry: usize,
        /// The kind that is wrapped.
        kind: Kind,
        /// The kind the entry has.
        found: offload_binary::OffloadKind,
    },

    /// Some images have a target ID and some have none.
    #[error("{images} device images have {target_ids} target ids, expected one each")]
    TargetIdCount {
        /// Images there are.
        images: usize,
        /// Images with a target ID.
        target_ids: usize,
    },

    /// A target ID was given where none can be registered.
    #[error("abi {abi} does not register the target ids of images, only aomp does")]
    TargetIdUnsupported {
        /// The generation.
        abi: Abi,
    },

    /// A target ID is empty or has a NUL, which would end it.
    #[error("device image {image} has the target id \"{}\"", target_id.escape_debug())]
    BadTargetId {
        /// Which image.
        image: usize,
        /// The target ID.
        target_id: Box<str>,
    },

    /// An alignment is not a power of two, or more than the object format has.
    #[error("device image alignment {align} is not a power of two from 1 to {limit}")]
    BadAlign {
        /// The alignment in bytes.
        align: u64,
        /// The largest one of the object format.
        limit: u64,
    },

    /// The suffix of a private entries section is no part of a C identifier.
    #[error("entries suffix \"{}\" is not made of letters, digits and underscores", suffix.escape_debug())]
    BadEntriesSuffix {
        /// The suffix.
        suffix: Box<str>,
    },

    /// A private entries section was asked for where the linker does not define its bounds.
    #[error("private entries need elf objects, the target has {format}")]
    PrivateEntriesUnsupported {
        /// The object format of the target.
        format: ObjectFormat,
    },

    /// The kind registers no entries.
    #[error("{kind} registers no offload entries, expected openmp, cuda or hip")]
    EntriesUnsupported {
        /// The kind.
        kind: Kind,
    },

    /// No entries were added.
    #[error("no offload entry to emit for {kind}")]
    NoEntry {
        /// The kind.
        kind: Kind,
    },

    /// The name of an entry is empty or has a NUL, which would end it.
    #[error("offload entry {entry} has the name \"{}\", expected text without NUL", name.escape_debug())]
    BadEntryName {
        /// Which entry.
        entry: usize,
        /// The name.
        name: Box<str>,
    },

    /// Two entries have the same name.
    #[error("offload entries {first} and {entry} both have the name \"{}\"", name.escape_debug())]
    DuplicateEntry {
        /// Which entry.
        entry: usize,
        /// The entry before it with that name.
        first: usize,
        /// The name.
        name: Box<str>,
    },

    /// The symbol of an entry is empty, has a NUL, or is one that the module defines itself.
    #[error(
        "offload entry {entry} is at the symbol \"{}\", expected one that the program defines",
        symbol.escape_debug()
    )]
    BadEntrySymbol {
        /// Which entry.
        entry: usize,
        /// The symbol.
        symbol: Box<str>,
    },

    /// A variable has the size of kernels.
    #[error("offload entry {entry} is a variable of 0 bytes, which is registered as a kernel")]
    EmptyVariable {
        /// Which entry.
        entry: usize,
    },

    /// Registration code ignores variables with such flags.
    #[error(
        "offload entry {entry} has the flags {flags:#x}, but abi {abi} registers no such variables of kind {kind}"
    )]
    UnregisteredEntry {
        /// Which entry.
        entry: usize,
        /// The kind.
        kind: Kind,
        /// The generation.
        abi: Abi,
        /// The flags.
        flags: u32,
    },

    /// A number of an entry has no room in its record.
    #[error(
        "offload entry {entry} has the {field} {value:#x}, but there is room for {limit:#x} only"
    )]
    EntryTooLarge {
        /// Which entry.
        entry: usize,
        /// The field of the record: `size` or `data`.
        field: &'static str,
        /// The number.
        value: u64,
        /// The largest number there can be.
        limit: u64,
    },

    /// There are not as many inputs as images.
    #[error("{found} inputs were given for {expected} device images")]
    InputCount {
        /// Images there are.
        expected: u64,
        /// Inputs that were given; with one too many, reading stops there.
        found: u64,
    },

    /// An input does not have the size of its image.
    #[error("device image {image} has {found:#x} bytes, expected {expected:#x}")]
    InputSize {
        /// Which image.
        image: usize,
        /// Its size.
        expected: u64,
        /// Bytes there were; with more than expected, reading stops at the first.
        found: u64,
    },

    /// A block of bitcode, which has all images in it, is larger than its length can say.
    #[error(transparent)]
    Bitcode(#[from] llvm_bitcode::Error),

    /// A changed description refers to a variable, function or structure that it does not have.
    /// Structures come in front of those that contain them.
    #[error("module refers to \"{}\", which it neither declares nor defines", name.escape_debug())]
    UnknownName {
        /// The name.
        name: Box<str>,
    },

    /// A changed description refers to a part of an input that it does not have.
    #[error("module refers to blob {blob}, which it does not have")]
    UnknownBlob {
        /// Which blob.
        blob: usize,
    },

    /// A changed description refers to a value that is not defined by then, or defines values in
    /// another order than that of their numbers.
    #[error("function \"{}\" refers to local {local} where it is not defined", function.escape_debug())]
    UnknownLocal {
        /// The function.
        function: Box<str>,
        /// Which local.
        local: usize,
    },

    /// The output does not fit into memory.
    #[error("output of {size:#x} bytes does not fit into memory")]
    OutOfMemory {
        /// Its size.
        size: u64,
    },

    /// There is no writer for native objects of this target.
    #[error(
        "no native objects for target triple \"{}\", expected elf for x86-64, aarch64 or riscv64, \
         or coff or mach-o for x86-64 or aarch64",
        triple.escape_debug()
    )]
    NoObjectWriter {
        /// The triple.
        triple: Box<str>,
    },

    /// A module that was changed does what registration code does not, and cannot be written as
    /// machine code.
    #[error("no native form of \"{}\": {what}", symbol.escape_debug())]
    NotNative {
        /// The function or variable.
        symbol: Box<str>,
        /// What is wrong with it.
        what: &'static str,
    },

    /// A section or object is larger than the object format can say.
    #[error("object has {size:#x} bytes, but {format} has room for {limit:#x} only")]
    ObjectTooLarge {
        /// The object format of the target.
        format: ObjectFormat,
        /// Size of the section or object.
        size: u64,
        /// The largest size there can be.
        limit: u64,
    },

    /// The output would be larger than 2⁶⁴ bytes.
    #[error("output has more than 2^64 bytes")]
    OutputTooLarge,
}

impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        use byte_parts::Error::{InputCount, InputSize, OutOfMemory};
        match error {
            InputCount { expected, found } => Self::InputCount { expected, found },
            InputSize { input, expected, found } => {
                Self::InputSize { image: input, expected, found }
            }
            OutOfMemory { size } => Self::OutOfMemory { size },
        }
    }
}

/// [`InvalidData`](io::ErrorKind::InvalidData) if it is about what a package holds,
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory), and else [`InvalidInput`](io::ErrorKind::InvalidInput). The error itself is
/// inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Package { .. }
            | Error::EmptyPackage { .. }
            | Error::AfterPackage { .. }
            | Error::PackageKind { .. } => io::ErrorKind::InvalidData,
            Error::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}
