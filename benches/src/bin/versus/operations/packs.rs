//! Device code moved from libraries to kernel packs, and back.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;

use offload_benches::run;

use super::libraries::library;
use super::{Done, LIBRARY, Operation};
use crate::bench::{Bench, hash_file};

pub(super) fn split(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    const SPLIT: &str = "offload split";
    let library = library(bench, size, 2)?;
    let right = hash_file(&library)?;
    let args = split_args(&library, &bench.path("out-split"));
    let commands = vec![bench.our(SPLIT, "offload", args), bench.cp(&library)];
    let back = join_args(&bench.path("out-split"), &bench.path("back"));
    let result = bench.compare(operation, "", size, commands, |bench, command| {
        if command.name == SPLIT {
            run(&bench.ours("offload"), &back)?;
            if hash_file(&bench.path("back"))? != right {
                return Err("joined, the library is another".into());
            }
        }
        Ok(None)
    })?;
    let figures = result.ours().map(|ours| (ours.time(), ours.memory()));
    judge(bench, "split", size, figures)
}

pub(super) fn join(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let library = library(bench, size, 2)?;
    run(&bench.ours("offload"), &split_args(&library, &bench.path("split")))?;
    let args = join_args(&bench.path("split"), &bench.path("out"));
    let commands = vec![bench.our("offload join", "offload", args), bench.cp(&library)];
    let result = bench.compare(operation, "", size, commands, |bench, _| {
        hash_file(&bench.path("out")).map(Some)
    })?;
    let figures = result.ours().map(|ours| (ours.time(), ours.memory()));
    judge(bench, "join", size, figures)
}

fn split_args(library: &Path, to: &Path) -> Vec<OsString> {
    let words = ["split".into(), library.into(), "--group".into(), "versus".into()];
    [&words[..], &["-o".into(), to.into()]].concat()
}

/// The arguments that join the library that was split to a directory.
fn join_args(from: &Path, to: &Path) -> Vec<OsString> {
    vec!["join".into(), from.join("library.so").into(), "-o".into(), to.into()]
}

/// Judges the time and the memory for a library. In memory are an image of 7 MB for each thread, the one that is read, and what
/// zstd needs.
fn judge(
    bench: &mut Bench,
    key: &str,
    size: u64,
    figures: Option<(f64, f64)>,
) -> Result<(), Box<dyn Error>> {
    if size == LIBRARY {
        bench.judge(&format!("{key} time"), figures.map(|(time, _)| time))?;
        bench.judge(&format!("{key} memory"), figures.map(|(_, memory)| memory))?;
    }
    Ok(())
}
