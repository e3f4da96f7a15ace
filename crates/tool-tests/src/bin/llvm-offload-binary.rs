//! `llvm-offload-binary`: LLVM's packager of device images, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::packager::main()
}
