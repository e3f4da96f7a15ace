//! The command line of `clang-offload-wrapper`, which LLVM had up to release 15 and AOMP has with `--offload-arch`
//! (the "Clang Offload Wrapper" documentation).

use std::process::ExitCode;

use wrapper_ir::Abi;

use super::{Request, images, run, text};
use crate::llvm_cl::{Kind, Opt, Tool};
use tool_kit::opened::MaxInput;

/// The options of `clang-offload-wrapper`.
pub static TOOL: Tool = Tool {
    overview: "A tool to create a wrapper bitcode for offload target binaries. Takes offload\n\
               target binaries as input and produces bitcode file containing target binaries packaged\n\
               as data and initialization code which registers target binaries in offload runtime.",
    positionals: "<input files>",
    min_positionals: 1,
    max_positionals: usize::MAX,
    heading: "clang-offload-wrapper options:",
    options: &[
        Opt { required: true, ..Opt::new("o", Kind::Value, "filename", "Output filename") },
        Opt::new(
            "offload-arch",
            Kind::List,
            "target ID",
            "Target of an image: the first use is for the first image, and so on",
        ),
        Opt {
            required: true,
            ..Opt::new("target", Kind::Value, "triple", "Target triple for the output module")
        },
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of clang-offload-wrapper of AOMP and LLVM version 15\n"
    ),
};

/// Runs `clang-offload-wrapper` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    run(&TOOL, "clang-offload-wrapper", |matches| {
        Ok(Request {
            kind: wrapper_ir::OffloadKind::OPENMP,
            // Without target IDs this is what LLVM 13 to 15 have.
            abi: Abi::Aomp,
            triple: text(matches.text("target")),
            relocatable: false,
            retain: false,
            as_llvm: false,
            images: images(matches),
            made: None,
            target_ids: matches.values("offload-arch").map(text).collect(),
            max_input: MaxInput::default(),
        })
    })
}
