//! The command line of `llvm-offload-wrapper`.

use std::process::ExitCode;

use wrapper_ir::Abi;

use super::{Request, host_triple, images, kind_named, run, text};
use crate::llvm_cl::{Kind, Opt, Tool};
use tool_kit::opened::MaxInput;

/// The options of `llvm-offload-wrapper`.
pub static TOOL: Tool = Tool {
    overview: "Generate runtime registration code for a device binary image",
    positionals: "Wrap input from <file>",
    min_positionals: 1,
    max_positionals: usize::MAX,
    heading: "llvm-offload-wrapper options:",
    options: &[
        Opt {
            required: true,
            ..Opt::new(
                "kind",
                Kind::Named(&[
                    ("openmp", "Wrap OpenMP binaries"),
                    ("cuda", "Wrap CUDA binaries"),
                    ("hip", "Wrap HIP binaries"),
                    ("sycl", "Wrap SYCL binaries"),
                ]),
                "value",
                "Wrap for offload kind:",
            )
        },
        Opt { required: true, ..Opt::new("o", Kind::Value, "file", "Write output to <file>.") },
        Opt::new(
            "relocatable",
            Kind::Bool,
            "",
            "Put OpenMP images where no later link takes them for the device again",
        ),
        Opt::new("triple", Kind::Value, "string", "Target triple for the wrapper module"),
        Opt::new(
            "release",
            Kind::Choice(&["22", "23", "24"]),
            "22|23|24",
            "Write the module of this release of LLVM, its faults included (default: 23, mended)",
        ),
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of llvm-offload-wrapper of LLVM version 23.1.4\n"
    ),
};

/// Runs `llvm-offload-wrapper` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    run(&TOOL, "llvm-offload-wrapper", |matches| {
        let kind = text(matches.text("kind"));
        let release = matches.value("release");
        Ok(Request {
            kind: kind_named(&kind).map_err(std::io::Error::other)?,
            abi: match release {
                Some(b"22") => Abi::Llvm22,
                Some(b"24") => Abi::Llvm24,
                _ => Abi::Current,
            },
            triple: match matches.value("triple") {
                None | Some(b"") => host_triple(),
                Some(triple) => text(triple),
            },
            relocatable: matches.is_on("relocatable"),
            // As LLVM 24 does: this tool does not print the arguments of a link.
            retain: release == Some(b"24"),
            as_llvm: release.is_some(),
            images: images(matches),
            made: None,
            target_ids: Vec::new(),
            max_input: MaxInput::default(),
        })
    })
}
