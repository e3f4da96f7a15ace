//! Reasons why a split library does not come back byte for byte.

use std::fmt;

/// Reason why packs do not note how a library was laid out, or why a library is not made again by that note.
///
/// ```
/// use fat_edit::NoWayBack;
///
/// assert_eq!(NoWayBack::Missing.to_string(), "the packs lack code objects of it");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NoWayBack {
    /// A compressed bundle has other bytes than this build's codec gives.
    Compressor,
    /// The compressed bundles have no level in common.
    Levels,
    /// More than 16 MiB of the bundles, beside zeros, are not code objects, or more than 1 GiB with zeros.
    OtherBytes,
    /// Its bundles are nested in other containers, or share bytes.
    Layout,
    /// The note would be larger than what [`Join`](crate::Join) reads.
    TooLarge,
    /// The packs lack code objects of the library, or have others.
    Missing,
    /// This build has no codec for its bundles, or another one than the build that split it.
    Codec,
    /// The file without device code is not the one that was made when the library was split.
    Changed,
    /// [`Changed`](Self::Changed) or [`Codec`](Self::Codec): the result is another file than the one that was split.
    ChangedOrCodec,
}

impl fmt::Display for NoWayBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoWayBack::Compressor => {
                "another compressor, another release of it, or a level that is not tried made its bundles"
            }
            NoWayBack::Levels => "its bundles have no compression level in common",
            NoWayBack::OtherBytes => "too much of its bundles is not code objects",
            NoWayBack::Layout => "its bundles are nested in other containers, or share bytes",
            NoWayBack::TooLarge => "the note would be too large",
            NoWayBack::Missing => "the packs lack code objects of it",
            NoWayBack::Codec => {
                "this build compresses its bundles with another codec, or another release of it, than the build that split it"
            }
            NoWayBack::Changed => "it is not the library that was split",
            NoWayBack::ChangedOrCodec => {
                "it is not the library that was split, or this build has another release of the codec"
            }
        })
    }
}
