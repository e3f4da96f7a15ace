//! `offload`: see, extract and verify the GPU code in any file.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    offload_cli::offload::main()
}
