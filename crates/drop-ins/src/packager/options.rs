//! The command line of the packager.

use ccob::{Method, WriteOptions};
use offload_binary::llvm::Release;
use offload_binary::{FormatVersion, OffloadKind};

use crate::llvm_cl::{Kind, Matches, Opt, Print, Tool, Visibility, split_at_equals};
use tool_kit::parallel::Threads;

/// The tool as LLVM 22 and 23 have it: options that only 24 has are taken, and not shown.
pub static TOOL: Tool = tool(&OPTIONS);
/// The tool as LLVM 24 has it.
pub static TOOL_24: Tool = tool(&OPTIONS_24);

// LLVM 22 and 23 print for -h what they print without arguments.
static OPTIONS: [Opt; 9] = options(Visibility::Never, Kind::Bool);
static OPTIONS_24: [Opt; 9] =
    options(Visibility::Shown, Kind::Print(Print::Help { list: false, hidden: false }));

const fn tool(options: &'static [Opt]) -> Tool {
    Tool {
        overview: "A utility for bundling several object files into a single binary.\n\
                   The output binary can then be embedded into the host section table\n\
                   to create a fatbinary containing offloading code.",
        positionals: "Extract from <file>.",
        min_positionals: 0,
        max_positionals: 1,
        heading: "llvm-offload-binary options:",
        options,
        version: concat!(
            "offload ",
            env!("CARGO_PKG_VERSION"),
            ", in place of llvm-offload-binary of LLVM version 23.1.4\n"
        ),
    }
}

/// Returns all options; `since_24` is the visibility of options that came with LLVM 24, and `h` the kind of -h.
const fn options(since_24: Visibility, h: Kind) -> [Opt; 9] {
    [
        Opt::new("archive", Kind::Bool, "", "Write extracted files to a static archive"),
        Opt {
            visibility: since_24,
            ..Opt::new("compress", Kind::Bool, "", "Compress the packaged offload binary")
        },
        Opt {
            visibility: since_24,
            ..Opt::new(
                "compression-format",
                Kind::Named(&[("zstd", "Zstandard compression"), ("zlib", "zlib compression")]),
                "value",
                "Format used with --compress",
            )
        },
        Opt {
            visibility: since_24,
            ..Opt::new(
                "compression-level",
                Kind::Signed,
                "int",
                "Compression level used with --compress",
            )
        },
        Opt::new("o", Kind::Value, "file", "Write output to <file>."),
        Opt::new(
            "image",
            Kind::List,
            "<key>=<value>,...",
            "List of key and value arguments. Required keywords are 'file' and 'triple'.",
        ),
        Opt::new(
            "format-version",
            Kind::Choice(&["1", "2", "3"]),
            "1|2|3",
            "Version of the format to write: 1, which every LLVM reads (default), 2, for LLVM 23, or 3, for LLVM 24",
        ),
        Opt::new(
            "release",
            Kind::Choice(&["22", "23", "24"]),
            "22|23|24",
            "Write, extract and name files as this release of LLVM does (default: extract as 23, write version 1)",
        ),
        Opt { visibility: Visibility::Never, ..Opt::new("h", h, "", "Alias for -help") },
    ]
}

/// The command line.
#[derive(Debug)]
pub(super) struct Options {
    /// Empty when not given, as an empty name counts as none.
    pub(super) input: Vec<u8>,
    pub(super) output: Vec<u8>,
    pub(super) images: Vec<ImageSpec>,
    pub(super) archive: bool,
    pub(super) help: bool,
    pub(super) version: FormatVersion,
    pub(super) release: Release,
    /// The compression options, if the offload binary is to be compressed.
    pub(super) compression: Option<WriteOptions>,
}

impl Options {
    pub(super) fn new(mut matches: Matches) -> Self {
        let release = match matches.value("release") {
            Some(b"22") => Some(Release::Llvm22),
            Some(b"23") => Some(Release::Llvm23),
            Some(b"24") => Some(Release::Llvm24),
            _ => None,
        };
        let compression = matches.is_on("compress").then(|| {
            let method = match matches.value("compression-format") {
                Some(b"zlib") => Method::ZLIB,
                _ => Method::ZSTD,
            };
            WriteOptions::default()
                .with_method(method)
                .with_level(matches.signed("compression-level"))
                .with_threads(Threads::default().number())
        });
        Options {
            images: matches.values("image").map(ImageSpec::parse).collect(),
            output: matches.text("o").to_vec(),
            archive: matches.is_on("archive"),
            help: matches.is_on("h"),
            version: match matches.value("format-version") {
                Some(b"1") => FormatVersion::V1,
                Some(b"2") => FormatVersion::V2,
                Some(b"3") => FormatVersion::V3,
                _ => match release {
                    Some(Release::Llvm23) => FormatVersion::V2,
                    Some(Release::Llvm24) => FormatVersion::V3,
                    // Nothing else can be compressed.
                    None if compression.is_some() => FormatVersion::V3,
                    _ => FormatVersion::V1,
                },
            },
            release: release.unwrap_or(Release::Llvm23),
            compression,
            // As `output`.
            input: matches.positionals.pop().unwrap_or_default(),
        }
    }
}

/// The keys and values of one `--image`. The meaning of a key depends on whether images are packed or extracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSpec {
    /// Text as typed, for messages.
    text: String,
    /// Each key once, where it was first.
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl ImageSpec {
    /// Splits at commas, and each part at its first `=`; there is no way to write a comma. A part without `=` is a
    /// key with an empty value; values of a repeated key are put together with a comma.
    pub fn parse(text: &[u8]) -> Self {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for part in text.split(|&byte| byte == b',') {
            let (key, value) = split_at_equals(part);
            let value = value.unwrap_or_default();
            match pairs.iter_mut().find(|(k, _)| k == key) {
                Some((_, values)) => {
                    values.push(b',');
                    values.extend_from_slice(value);
                }
                None => pairs.push((key.to_vec(), value.to_vec())),
            }
        }
        ImageSpec { text: String::from_utf8_lossy(text).into_owned(), pairs }
    }

    /// Returns the text as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the keys, each once.
    pub fn keys(&self) -> Vec<&[u8]> {
        self.pairs.iter().map(|(key, _)| &key[..]).collect()
    }

    /// Returns the keys and their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.pairs().find(|(k, _)| *k == key.as_bytes()).map(|(_, value)| value)
    }

    /// Returns the offload kind, [`NONE`](OffloadKind::NONE) if none is given; the text that names no kind otherwise.
    pub fn kind(&self) -> Result<OffloadKind, String> {
        let Some(kind) = self.get("kind") else {
            return Ok(OffloadKind::NONE);
        };
        let text = String::from_utf8_lossy(kind).into_owned();
        OffloadKind::from_name(&text).ok_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        ImageSpec::parse(text.as_bytes()).pairs().map(|(k, v)| (string(k), string(v))).collect()
    }

    #[test]
    fn specs_are_split_as_llvm_does() {
        for (spec, expected) in [
            ("", &[("", "")][..]),
            ("a=b=c,d", &[("a", "b=c"), ("d", "")]),
            ("a=1,b=2,a=3,a", &[("a", "1,3,"), ("b", "2")]),
            (",a=1,", &[("", ","), ("a", "1")]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(k, v)| (String::from(*k), String::from(*v))).collect();
            assert_eq!(pairs(spec), expected, "{spec}");
        }
    }

    #[test]
    fn kinds_are_known_names() {
        let kind = |spec: &str| ImageSpec::parse(spec.as_bytes()).kind();
        assert_eq!(kind("file=a"), Ok(OffloadKind::NONE));
        assert_eq!(kind("kind=hip"), Ok(OffloadKind::HIP));
        assert_eq!(kind("kind=hip,kind=cuda"), Err("hip,cuda".to_owned()));
    }
}
