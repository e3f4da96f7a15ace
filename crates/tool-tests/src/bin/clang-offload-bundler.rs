//! `clang-offload-bundler`: LLVM's bundler of code objects, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::bundler::main()
}
