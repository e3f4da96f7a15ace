//! Operations that copy: listing, packing and bundling, and back.

use std::ffi::OsString;
use std::path::Path;

use offload_benches::{GPUS, run};

use super::inputs::{bundle, bundle_args, images, option, remove, unbundle_args};
use super::{Done, GIB, KIB, Operation};
use crate::bench::{Bench, hash_text, theirs};
use crate::record::{Figures, Who};

const BUNDLER: &str = "clang-offload-bundler";
const PACKER: &str = "llvm-offload-binary";

pub(super) fn list(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = images(bench, size)?;
    let bundle = bundle(bench, "bundle", &images, &[])?;
    remove(&images)?;
    let ours = bench.our("offload ls", "offload", vec!["ls".into(), bundle.clone().into()]);
    let args = vec!["-list".into(), "-type=o".into(), option("input", &bundle)];
    let commands = vec![
        ours,
        bench.our("clang-offload-bundler -list", BUNDLER, args.clone()),
        theirs("LLVM 22's clang-offload-bundler -list", BUNDLER, args),
    ];
    let result = bench.compare(operation, "", size, commands, |_, command| {
        if command.args.first() != Some(&"-list".into()) {
            return Ok(None);
        }
        let output = std::process::Command::new(&command.program).args(&command.args).output()?;
        let mut lines: Vec<_> = std::str::from_utf8(&output.stdout)?.lines().collect();
        lines.sort_unstable();
        Ok(Some(hash_text(&lines.join("\n"))))
    })?;
    let time = result.ours().map(|ours| ours.time() * 1e3);
    let memory = result.ours().map(Figures::memory);
    if size == GIB {
        bench.judge("ls time", time)?;
        bench.judge("ls memory", memory)?;
    }
    Ok(())
}

pub(super) fn pack(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = images(bench, size)?;
    let args = |out: &Path| -> Vec<OsString> {
        let specs = images.iter().zip(GPUS).map(|(image, gpu)| {
            let file = image.display();
            format!("--image=kind=hip,triple=amdgcn-amd-amdhsa,arch={gpu},file={file}").into()
        });
        ["-o".into(), out.into()].into_iter().chain(specs).collect()
    };
    let package = bench.path("package");
    run(&bench.ours(PACKER), &args(&package))?;
    let out = args(&bench.path("out"));
    let result = bench.compare_copy(operation, "", size, PACKER, out, &package)?;
    if size == GIB { bench.judge_copy("pack", &result) } else { Ok(()) }
}

pub(super) fn extract(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = images(bench, size)?;
    let package = bench.path("package");
    let mut args: Vec<OsString> = vec!["-o".into(), package.clone().into()];
    let mut out: Vec<OsString> = vec![package.clone().into()];
    for (n, (image, gpu)) in images.iter().zip(GPUS).enumerate() {
        let file = image.display();
        args.push(
            format!("--image=kind=hip,triple=amdgcn-amd-amdhsa,arch={gpu},file={file}").into(),
        );
        let file = bench.path(&format!("out-{n}"));
        out.push(format!("--image=arch={gpu},file={}", file.display()).into());
    }
    run(&bench.ours(PACKER), &args)?;
    remove(&images)?;
    let result = bench.compare_copy(operation, "", size, PACKER, out, &package)?;
    if size == GIB { bench.judge_copy("extract", &result) } else { Ok(()) }
}

pub(super) fn bundle_all(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = images(bench, size)?;
    let whole = bundle(bench, "bundle", &images, &[])?;
    let args = bundle_args(&images, &bench.path("out"), &[]);
    let result = bench.compare_copy(operation, "", size, BUNDLER, args, &whole)?;
    match size {
        SMALL => bench.judge("bundle small", result.faster_than(Who::Llvm)),
        GIB => bench.judge_copy("bundle", &result),
        _ => Ok(()),
    }
}

pub(super) fn unbundle(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let images = images(bench, size)?;
    let bundle = bundle(bench, "bundle", &images, &[])?;
    remove(&images)?;
    let args = unbundle_args(bench, "o", &bundle, &GPUS);
    let result = bench.compare_copy(operation, "", size, BUNDLER, args, &bundle)?;
    match size {
        SMALL => bench.judge("unbundle small", result.faster_than(Who::Llvm)),
        GIB => bench.judge_copy("unbundle", &result),
        _ => Ok(()),
    }
}

const SMALL: u64 = 4 * KIB;
