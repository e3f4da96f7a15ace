//! Errors of the drop-in tools start with the words of LLVM's, which build scripts and tests match; ours follow.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#[path = "../messages/mod.rs"]
mod compared;

use crate::common::{llvm, tool};
use compared::{
    PACKAGER, PACKAGES, WRAPPER, Words, bundler_cases, cases, compare_with, extractions,
};

fn compare(tool: &str, ours: &str, cases: &[(String, Words)]) {
    compare_with((tool, llvm), (ours, ""), cases, |_| {});
}

#[test]
fn errors_of_the_bundler_have_the_listed_words() {
    let ours = tool("clang-offload-bundler");
    compare("clang-offload-bundler", ours, &bundler_cases());
}

#[test]
fn errors_of_the_packager_have_the_listed_words() {
    let all = [cases(PACKAGER), extractions(PACKAGES)].concat();
    compare("llvm-offload-binary", tool("llvm-offload-binary"), &all);
}

#[test]
fn errors_of_the_wrapper_have_the_listed_words() {
    compare("llvm-offload-wrapper", tool("llvm-offload-wrapper"), &cases(WRAPPER));
}
