//! The command line of `llvm-offload-wrapper`.

use std::process::ExitCode;

use wrapper_ir::Abi;

use super::{Request, host_triple, images, kind_named, run, text};
use crate::llvm_cl::{Kind, Opt, Tool};
use crate::opened::MaxInput;

pub(crate) static TOOL: Tool = Tool {
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
            Kind::Choice(&["23", "24"]),
            "23|24",
            "Wrap for host objects of this release of LLVM (default: 23), with its modules",
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
        let kind = text(matches.value("kind").unwrap_or_default());
        let is_for_24 = matches.value("release") == Some(b"24");
        Ok(Request {
            kind: kind_named(&kind).map_err(std::io::Error::other)?,
            abi: if is_for_24 { Abi::Llvm24 } else { Abi::Current },
            triple: match matches.value("triple") {
                None | Some(b"") => host_triple(),
                Some(triple) => text(triple),
            },
            relocatable: matches.is_on("relocatable"),
            // As LLVM 24 does: nobody hands the arguments of a link over here.
            retain: is_for_24,
            images: images(matches),
            made: None,
            target_ids: Vec::new(),
            max_input: MaxInput::default(),
        })
    })
}
