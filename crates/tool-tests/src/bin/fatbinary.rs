//! `fatbinary`: NVIDIA's maker of fatbinaries, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::fatbinary::nvidia::main()
}
