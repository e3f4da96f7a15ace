//! `clang-offload-wrapper`: LLVM's maker of registration code, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::wrapper::clang::main()
}
