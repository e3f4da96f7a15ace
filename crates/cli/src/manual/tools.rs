//! The tools that stand in for LLVM's.

use crate::llvm_cl::Tool;
use crate::{bundler, packager, wrapper};

/// The tools with options of their own.
pub(super) const TOOLS: [(&str, &Tool); 5] = [
    ("clang-offload-bundler", &bundler::TOOL),
    ("clang-offload-packager", &packager::TOOL_24),
    ("clang-offload-wrapper", &wrapper::clang::TOOL),
    ("llvm-offload-binary", &packager::TOOL_24),
    ("llvm-offload-wrapper", &wrapper::llvm::TOOL),
];
