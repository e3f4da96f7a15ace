//! The tools that stand in for LLVM's, AMD's and NVIDIA's.

use drop_ins::llvm_cl::Tool;
use drop_ins::{bundler, fatbinary, linker_wrapper, packager, roc_obj, wrapper};

/// The tools with options of their own.
pub(super) const TOOLS: [(&str, &Tool); 9] = [
    ("clang-linker-wrapper", &linker_wrapper::TOOL),
    ("clang-offload-bundler", &bundler::TOOL),
    ("clang-offload-packager", &packager::TOOL_24),
    ("clang-offload-wrapper", &wrapper::clang::TOOL),
    ("fatbinary", &fatbinary::nvidia::TOOL),
    ("llvm-offload-binary", &packager::TOOL_24),
    ("llvm-offload-wrapper", &wrapper::llvm::TOOL),
    ("roc-obj-extract", &roc_obj::extract::TOOL),
    ("roc-obj-ls", &roc_obj::ls::TOOL),
];
