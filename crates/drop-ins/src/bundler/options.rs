//! The command line of the bundler.

use std::path::PathBuf;

use crate::llvm_cl::{Kind, Matches, Opt, Tool, Visibility};
use tool_kit::input;

/// The reading of an ID whose triple has no environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// The last field is a target ID.
    TargetId,
    /// The last field is the environment, as in LLVM's tool, which so loses the target ID.
    Environment,
}

/// The options of `clang-offload-bundler`.
pub static TOOL: Tool = Tool {
    overview: "A tool to bundle several input files of the specified type <type> \n\
               referring to the same source file but different targets into a single \n\
               one. The resulting file can also be unbundled into different files by \n\
               this tool if -unbundle is provided.",
    positionals: "",
    min_positionals: 0,
    max_positionals: 0,
    heading: "clang-offload-bundler options:",
    options: &[
        Opt {
            required: true,
            ..Opt::new(
                "type",
                Kind::Value,
                "string",
                "Type of the files to be bundled/unbundled.\n\
                 Current supported types are:\n\
                 \x20 i    - cpp-output\n\
                 \x20 ii   - c++-cpp-output\n\
                 \x20 cui  - cuda-cpp-output\n\
                 \x20 hipi - hip-cpp-output\n\
                 \x20 d    - dependency\n\
                 \x20 ll   - llvm\n\
                 \x20 bc   - llvm-bc\n\
                 \x20 s    - assembler\n\
                 \x20 o    - object\n\
                 \x20 a    - archive of objects\n\
                 \x20 gch  - precompiled-header\n\
                 \x20 ast  - clang AST file",
            )
        },
        Opt::new("targets", Kind::CommaList, "string", "[<offload kind>-<target triple>,...]"),
        Opt::new(
            "input",
            Kind::List,
            "string",
            "Input file. Can be specified multiple times for multiple input files.",
        ),
        Opt::new(
            "output",
            Kind::List,
            "string",
            "Output file. Can be specified multiple times for multiple output files.",
        ),
        Opt::new("inputs", Kind::CommaList, "string", "[<input file>,...] (deprecated)"),
        Opt::new("outputs", Kind::CommaList, "string", "[<output file>,...] (deprecated)"),
        Opt::new("unbundle", Kind::Bool, "", "Unbundle bundled file into several output files."),
        Opt::new("list", Kind::Bool, "", "List bundle IDs in the bundled file."),
        Opt::new(
            "allow-missing-bundles",
            Kind::Bool,
            "",
            "Create empty files if bundles are missing when unbundling.",
        ),
        Opt::new("bundle-align", Kind::Unsigned, "uint", "Alignment of bundle for binary files"),
        Opt::new(
            "check-input-archive",
            Kind::Bool,
            "",
            "Check if input heterogeneous archive is valid in terms of TargetID rules.",
        ),
        Opt::new(
            "hip-openmp-compatible",
            Kind::Bool,
            "",
            "Treat hip and hipv4 offload kinds as compatible with openmp kind, and vice versa.",
        ),
        Opt::new("compress", Kind::Bool, "", "Compress output file when bundling."),
        Opt::new("compression-level", Kind::Signed, "n", "Specify the compression level (integer)"),
        Opt::new("verbose", Kind::Bool, "", "Print debug information."),
        Opt::new(
            "###",
            Kind::Bool,
            "",
            "Print any external commands that are to be executed instead of actually executing them \
             - for testing purposes.",
        ),
        Opt::new(
            "release",
            Kind::Choice(&["22", "23"]),
            "22|23",
            "Lose processors of targets without environment, as this release of LLVM does (default: as 22, but keep them)",
        ),
        Opt {
            visibility: Visibility::Hidden,
            ..Opt::new(
                "debug-only",
                Kind::CommaList,
                "string",
                "Print debug output of this type: CodeObjectCompatibility, for how entries and \
                 targets compare",
            )
        },
        Opt { visibility: Visibility::Never, ..Opt::new("h", Kind::Bool, "", "Alias for --help") },
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of clang-offload-bundler version 22.1.8\n"
    ),
};

/// A list of files, which two options give.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) files: Vec<PathBuf>,
    /// `--input` or `--output` was used.
    pub(super) current: bool,
    /// `--inputs` or `--outputs` was used.
    pub(super) deprecated: bool,
}

/// The command line, not checked yet.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) file_type: String,
    pub(super) targets: Vec<Vec<u8>>,
    pub(super) reading: Reading,
    pub(super) inputs: Files,
    pub(super) outputs: Files,
    pub(super) unbundle: bool,
    pub(super) list: bool,
    pub(super) allow_missing_bundles: bool,
    pub(super) bundle_align: u64,
    pub(super) check_input_archive: bool,
    pub(super) hip_openmp_compatible: bool,
    /// `None` leaves it to the environment.
    pub(super) compress: Option<bool>,
    pub(super) compression_level: Option<i32>,
    pub(super) verbose: Option<bool>,
    pub(super) dry_run: bool,
    pub(super) debug: bool,
    pub(super) help: bool,
}

impl Options {
    pub(super) fn new(matches: &Matches) -> Self {
        let files = |current, deprecated| Files {
            files: matches
                .values(deprecated)
                .chain(matches.values(current))
                .map(input::path)
                .collect(),
            current: matches.value(current).is_some(),
            deprecated: matches.value(deprecated).is_some(),
        };
        Options {
            file_type: String::from_utf8_lossy(matches.text("type")).into_owned(),
            targets: matches.values("targets").map(<[u8]>::to_vec).collect(),
            reading: match matches.value("release") {
                Some(_) => Reading::Environment,
                None => Reading::TargetId,
            },
            inputs: files("input", "inputs"),
            outputs: files("output", "outputs"),
            unbundle: matches.is_on("unbundle"),
            list: matches.is_on("list"),
            allow_missing_bundles: matches.is_on("allow-missing-bundles"),
            bundle_align: matches.unsigned("bundle-align").unwrap_or(1).into(),
            check_input_archive: matches.is_on("check-input-archive"),
            hip_openmp_compatible: matches.is_on("hip-openmp-compatible"),
            compress: matches.switch("compress"),
            compression_level: matches.signed("compression-level"),
            verbose: matches.switch("verbose"),
            dry_run: matches.is_on("###"),
            debug: matches.values("debug-only").any(|kind| kind == b"CodeObjectCompatibility"),
            help: matches.is_on("h"),
        }
    }
}
