//! Device code in finished libraries, edited.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use offload_benches::{GPUS, machine_code, run};

use super::inputs::{bundle, remove};
use super::{Done, LIBRARY, Operation};
use crate::bench::{Bench, hash_file};
use crate::record::Figures;

const KEPT: &str = "gfx1100";

pub(super) fn thin(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let library = library(bench, size, 2)?;
    let args = |to: &Path| -> Vec<OsString> {
        let words = ["thin".into(), library.clone().into(), "--keep".into(), KEPT.into()];
        [&words[..], &["-o".into(), to.into()]].concat()
    };
    let remains = bench.path("remains");
    run(&bench.ours("offload"), &args(&remains))?;
    let mut copy_all = bench.cp(&library);
    copy_all.name = "cp of the library".to_owned();
    let mut copy = bench.cp(&remains);
    copy.name = "cp of what remains".to_owned();
    let commands =
        vec![bench.our("offload thin", "offload", args(&bench.path("out"))), copy, copy_all];
    let result = bench.compare(operation, "", size, commands, |_, _| Ok(None))?;
    let ours = result.ours();
    let allowed = result.named("cp of what remains").map(|cp| 1.3 * cp.time() + 0.020);
    let time = ours.zip(allowed).map(|(ours, allowed)| ours.time() / allowed);
    let memory = ours.map(Figures::memory);
    if size == LIBRARY {
        bench.judge("thin time", time)?;
        bench.judge("thin memory", memory)?;
    }
    Ok(())
}

pub(super) fn compress(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    const ALONE: &str = "offload compress, the bundle alone";
    let library = library(bench, size, 1)?;
    let right = hash_file(&library)?;
    let args = |command: &str, from: &Path, to: &str| -> Vec<OsString> {
        vec![command.into(), from.into(), "-o".into(), bench.path(to).into()]
    };
    let commands = vec![
        bench.our("offload compress", "offload", args("compress", &library, "out")),
        bench.our(ALONE, "offload", args("compress", &bench.path("bundle-0"), "out")),
        bench.cp(&library),
    ];
    let back = args("decompress", &bench.path("out"), "back");
    let result = bench.compare(operation, "", size, commands, |bench, command| {
        if command.name == "offload compress" {
            run(&bench.ours("offload"), &back)?;
            if hash_file(&bench.path("back"))? != right {
                return Err("decompressed, the library is another".into());
            }
        }
        Ok(None)
    })?;
    let ours = result.ours();
    let time = ours.zip(result.named(ALONE)).map(|(ours, alone)| ours.ratio(alone));
    let busy = ours.map(|ours| ours.cpu() / ours.time());
    if size == LIBRARY {
        let cores = bench.machine.cores as f64;
        bench.judge("library time", time)?;
        bench.judge("library cores", busy.map(|busy| busy / cores))?;
    }
    Ok(())
}

/// Makes a shared object of `size` bytes: host code, and bundles of code for ten GPUs with a wrapper for each of them.
pub(super) fn library(bench: &Bench, size: u64, bundles: usize) -> Result<PathBuf, Box<dyn Error>> {
    let host = host_size(size);
    let mut text = String::new();
    for n in 0..bundles {
        let mut images = Vec::new();
        for gpu in 0..GPUS.len() {
            let image = bench.path(&format!("image-{gpu}"));
            let each = (size - host) / (bundles * GPUS.len()) as u64;
            bench.code.write(&image, gpu + n * GPUS.len(), each)?;
            images.push(image);
        }
        let bundle = bundle(bench, &format!("bundle-{n}"), &images, &[])?;
        remove(&images)?;
        writeln!(text, ".section .hip_fatbin, \"a\", @progbits\n.p2align 12")?;
        writeln!(text, ".Lbundle{n}: .incbin {bundle:?}")?;
        writeln!(text, ".section .hipFatBinSegment, \"aw\", @progbits\n.p2align 3")?;
        writeln!(text, ".long 0x48495046, 1\n.quad .Lbundle{n}, 0")?;
    }
    link(bench, host, &text)
}

/// Returns how many bytes of a library of `size` bytes are host code.
pub(super) fn host_size(size: u64) -> u64 {
    (size / 8).min(2_000_000)
}

/// Links a shared object of `host` bytes of host code, and of sections that `text` has in assembly language.
pub(super) fn link(bench: &Bench, host: u64, text: &str) -> Result<PathBuf, Box<dyn Error>> {
    machine_code(&bench.path("host"), host, 5)?;
    let (source, library) = (bench.path("library.s"), bench.path("library.so"));
    let mut all = format!(".text\n.incbin {:?}\n{text}", bench.path("host"));
    all.push_str(".section .note.GNU-stack, \"\", @progbits\n");
    fs::write(&source, all)?;
    let args = ["-shared", "-Wl,--build-id", "-o"].map(OsString::from);
    let files = [library.clone().into(), source.into()];
    run(Path::new("cc"), &[&args[..], &files].concat())?;
    Ok(library)
}
