//! `roc-obj-extract`: AMD's extractor of code objects, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::roc_obj::extract::main()
}
