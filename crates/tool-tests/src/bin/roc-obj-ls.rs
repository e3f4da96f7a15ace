//! `roc-obj-ls`: AMD's lister of code objects, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::roc_obj::ls::main()
}
