//! `clang-linker-wrapper`: LLVM's tool that links device code before the host link, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    offload_cli::linker_wrapper::main()
}
