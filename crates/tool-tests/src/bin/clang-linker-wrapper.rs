//! `clang-linker-wrapper`: LLVM's tool that links device code before the host link, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::linker_wrapper::main()
}
