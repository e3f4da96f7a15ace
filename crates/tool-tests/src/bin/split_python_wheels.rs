//! `split_python_wheels`: AMD's splitter of wheels, in Rust.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    drop_ins::split_python_wheels::main()
}
