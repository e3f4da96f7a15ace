//! Steps that measure.

use std::env;

use crate::ci::Ci;
use crate::llvm::need_llvm;
use crate::process::{Result, command, run, succeeds};

/// Times beside LLVM's on larger inputs: shown, not judged.
pub(crate) fn versus(_: &mut Ci) -> Result {
    need_llvm()?;
    run(command("cargo run --quiet --release -p offload-benches --bin versus -- --quick"))?;
    run(command("cargo bench --quiet -p offload-benches --bench inputs"))
}

/// No command takes more than a time that grows with its input: five minutes.
pub(crate) fn doubling(_: &mut Ci) -> Result {
    let mut measure = command("cargo run --quiet --release -p offload-benches --bin doubling");
    if succeeds(command("test -w /dev/shm")) {
        measure.env("TMPDIR", "/dev/shm");
    } else if env::var_os("TMPDIR").is_none() {
        measure.env("TMPDIR", "/tmp");
    }
    run(measure)
}
