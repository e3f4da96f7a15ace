//! The tables of processors against LLVM 22: names, numbers in ELF headers, texts of target IDs.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#[path = "../processors/mod.rs"]
mod asked;

use crate::common::llvm;

#[test]
fn every_processor_of_clang_is_known() {
    asked::all_are_known(&llvm("clang"));
}

#[test]
fn flags_are_those_of_the_tables() {
    asked::flags_are_those_of_the_tables(&llvm("clang"), &llvm("llc"));
}

#[test]
fn target_texts_are_read() {
    let ids = [("amdgcn-amd-amdhsa", "gfx906"), ("amdgcn-amd-amdhsa", "gfx9-4-generic")];
    asked::target_texts_are_read(&llvm("llc"), &ids);
}
