//! What the public types promise, whatever is in them: this file compiles, or a promise is broken.
#![forbid(unsafe_code)]

use core::error::Error as StdError;
use core::fmt::{Debug, Display};
use core::hash::Hash;
use core::panic::{RefUnwindSafe, UnwindSafe};

use ccob::{Codec, Decompressed, Error, Fault, Header, Limits, Method, Version, WriteOptions};

/// Sent to and shared by threads, printed for debugging, cloned, compared, a key of a map.
fn value<T>()
where
    T: Clone + Debug + Eq + Hash + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static,
{
}
fn copied<T: Copy>() {}
fn ordered<T: Ord>() {}
fn displayed<T: Display>() {}
fn defaulted<T: Default>() {}

#[test]
fn public_types_keep_their_promises() {
    value::<Codec>();
    value::<Decompressed>();
    value::<Error>();
    value::<Fault>();
    value::<Header>();
    value::<Limits>();
    value::<Method>();
    value::<Version>();
    value::<WriteOptions>();

    copied::<(Codec, Fault, Header, Limits, Method, Version)>();
    ordered::<(Codec, Method, Version)>();
    displayed::<Codec>();
    displayed::<Fault>();
    displayed::<Method>();
    displayed::<Version>();
    defaulted::<(Limits, Method, Version, WriteOptions)>();
    let _: &dyn StdError = &Error::OutOfMemory { size: 1 };
}

#[test]
fn setters_set() {
    let options = WriteOptions::default()
        .with_version(Version::V2)
        .with_method(Method::ZLIB)
        .with_level(9)
        .with_threads(2);
    assert_eq!((options.version, options.method), (Version::V2, Method::ZLIB));
    assert_eq!((options.level, options.threads), (Some(9), 2));
    assert_eq!(Limits::default().with_max_uncompressed(7).max_uncompressed, 7);
}

#[cfg(feature = "std")]
#[test]
fn errors_are_errors_of_io() {
    use std::io::{self, ErrorKind};

    let kind = |error: &Error| io::Error::from(error.clone()).kind();
    assert_eq!(kind(&Header::parse(b"", 0).unwrap_err()), ErrorKind::InvalidData);
    let too_large = Error::UncompressedSizeLimit { version: Version::V1, size: 1 << 32 };
    assert_eq!(kind(&too_large), ErrorKind::InvalidInput);
    let no_codec = Error::CodecNotCompiled { method: Method::ZLIB };
    assert_eq!(kind(&no_codec), ErrorKind::Unsupported);
    assert_eq!(
        io::Error::from(no_codec.clone()).get_ref().unwrap().downcast_ref(),
        Some(&no_codec)
    );
}
