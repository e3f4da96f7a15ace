//! `fatbinary`: NVIDIA's maker of fatbinaries, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    offload_cli::fatbinary::nvidia::main()
}
