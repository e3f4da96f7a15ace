//! Compressed bundles, written and read.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use offload_benches::{GPUS, run};

use super::inputs::{bundle, bundle_args, images, remove, unbundle_args};
use super::{Done, Operation, TEN_GPUS};
use crate::bench::{Bench, ZSTD, hash_file, theirs};
use crate::record::{Command, Who};

const BUNDLER: &str = "clang-offload-bundler";

pub(super) fn compress(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = code_objects(bench, size)?;
    let plain = bundle(bench, "bundle", &images, &[])?;
    let right = hash_file(&plain)?;
    let args = bundle_args(&images, &bench.path("out"), &["-compress"]);
    let commands = vec![
        bench.our("clang-offload-bundler -compress", BUNDLER, args.clone()),
        theirs("LLVM 22's clang-offload-bundler -compress", BUNDLER, args),
        bench.our("offload compress", "offload", to_out(bench, "compress", &plain)),
        zstd(bench, &["-3", "--long=27", "--single-thread"], &plain),
        zstd(bench, &["-3", "--long=27", "-T0"], &plain),
    ];
    let result = bench.compare(operation, "", size, commands, |bench, command| {
        if command.who == Who::Zstd {
            return Ok(None);
        }
        let back = bench.path("back");
        run(&bench.ours("offload"), &args_to("decompress", &bench.path("out"), &back))?;
        if hash_file(&back)? == right {
            Ok(Some(right))
        } else {
            Err(format!("{}: decompressed, the bundle is another", command.name).into())
        }
    })?;
    let (faster, ours, theirs) =
        (result.faster_than(Who::Llvm), result.ours(), result.of(Who::Llvm));
    let larger = ours.zip(theirs).map(|(ours, theirs)| ours.output as f64 / theirs.output as f64);
    if size == TEN_GPUS {
        bench.judge("compress llvm", faster)?;
        bench.judge("compress size", larger)?;
    }
    Ok(())
}

pub(super) fn decompress(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = code_objects(bench, size)?;
    let plain = bundle(bench, "bundle", &images, &[])?;
    let small = bundle(bench, "small", &images, &["-compress"])?;
    let zst = bench.path("bundle.zst");
    let mut args: Vec<OsString> = ["-q", "-3", "--long=27"].map(Into::into).to_vec();
    args.extend([plain.clone().into(), "-o".into(), zst.clone().into()]);
    if Path::new(ZSTD).exists() {
        run(Path::new(ZSTD), &args)?;
    }
    let right = hash_file(&plain)?;
    if images.iter().all(|image| image.parent() == plain.parent()) {
        remove(&images)?;
    }
    remove(&[plain])?;
    let args = unbundle_args(bench, "o", &small, &GPUS);
    let commands = vec![
        bench.our("clang-offload-bundler -unbundle", BUNDLER, args.clone()),
        theirs("LLVM 22's clang-offload-bundler -unbundle", BUNDLER, args),
        bench.our("offload decompress", "offload", to_out(bench, "decompress", &small)),
        zstd(bench, &["-d"], &zst),
    ];
    let result = bench.compare(operation, "", size, commands, |bench, command| {
        if command.name == "offload decompress" && hash_file(&bench.path("out"))? != right {
            return Err("offload decompress: the bundle is another".into());
        }
        if command.name.contains("-unbundle") { bench.same_outputs(command) } else { Ok(None) }
    })?;
    let faster = result.faster_than(Who::Llvm);
    if size == TEN_GPUS {
        bench.judge("decompress llvm", faster)?;
    }
    Ok(())
}

/// Code for ten GPUs: of the size that has a target, the code in `CODE_OBJECTS`, if it is there.
fn code_objects(bench: &Bench, size: u64) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    match std::env::var_os("CODE_OBJECTS") {
        Some(directory) if size == TEN_GPUS => {
            let mut files = largest_files(Path::new(&directory))?;
            files.truncate(GPUS.len());
            println!("\nthe code objects in {}:", Path::new(&directory).display());
            Ok(files)
        }
        _ => images(bench, size),
    }
}

/// The files of a directory, the largest first.
fn largest_files(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.push((fs::metadata(entry.path())?.len(), entry.path()));
    }
    files.sort();
    Ok(files.into_iter().rev().map(|(_, path)| path).collect())
}

fn to_out(bench: &Bench, command: &str, file: &Path) -> Vec<OsString> {
    args_to(command, file, &bench.path("out"))
}

fn args_to(command: &str, file: &Path, to: &Path) -> Vec<OsString> {
    vec![command.into(), file.into(), "-o".into(), to.into()]
}

fn zstd(bench: &Bench, options: &[&str], file: &Path) -> Command {
    let mut args: Vec<OsString> = vec!["-q".into(), "-f".into()];
    args.extend(options.iter().map(Into::into));
    args.extend([file.into(), "-o".into(), bench.path("out").into()]);
    let name = format!("zstd {}", options.join(" "));
    Command { who: Who::Zstd, name, program: ZSTD.into(), args }
}
