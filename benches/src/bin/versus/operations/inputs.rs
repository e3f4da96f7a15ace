//! Inputs, and the arguments that name them.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use offload_benches::{GPUS, run};

use crate::bench::Bench;

/// Bytes that the headers of containers take at most: inputs together with them are not larger than their size says.
const HEADERS: u64 = 64 << 10;

/// Makes ten images, one for each GPU, of `size` bytes together.
pub(super) fn images(bench: &Bench, size: u64) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let size = if size >= 1 << 30 { size - HEADERS } else { size };
    let mut images = Vec::new();
    for gpu in 0..GPUS.len() {
        let image = bench.path(&format!("image-{gpu}"));
        bench.code.write(&image, gpu, size / GPUS.len() as u64)?;
        images.push(image);
    }
    Ok(images)
}

/// The bundle entry ID of HIP code for a GPU.
pub(super) fn id(gpu: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{gpu}")
}

fn ids(gpus: &[&str]) -> String {
    gpus.iter().map(|gpu| id(gpu)).collect::<Vec<_>>().join(",")
}

/// Bundles an image for each GPU, as HIP's compiler does.
pub(super) fn bundle_args(images: &[PathBuf], to: &Path, more: &[&str]) -> Vec<OsString> {
    let mut args = vec!["-type=o".into(), "-bundle-align=4096".into(), "-input=/dev/null".into()];
    args.extend(images.iter().map(|image| option("input", image)));
    let gpus = GPUS.get(..images.len()).unwrap_or(&GPUS);
    args.push(format!("-targets=host-x86_64-unknown-linux-gnu-,{}", ids(gpus)).into());
    args.push(option("output", to));
    args.extend(more.iter().map(Into::into));
    args
}

/// Takes the images for these GPUs out of a bundle, or of an archive of them.
pub(super) fn unbundle_args(
    bench: &Bench,
    kind: &str,
    from: &Path,
    gpus: &[&str],
) -> Vec<OsString> {
    let mut args = vec![format!("-type={kind}").into(), "-unbundle".into(), option("input", from)];
    args.push(format!("-targets={}", ids(gpus)).into());
    args.extend((0..gpus.len()).map(|n| option("output", &bench.path(&format!("out-{n}")))));
    args
}

/// A bundle of images.
pub(super) fn bundle(
    bench: &Bench,
    name: &str,
    images: &[PathBuf],
    more: &[&str],
) -> Result<PathBuf, Box<dyn Error>> {
    let bundle = bench.path(name);
    run(&bench.ours("clang-offload-bundler"), &bundle_args(images, &bundle, more))?;
    Ok(bundle)
}

/// An option as LLVM's tools take it: `-name=path`.
pub(super) fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("-{name}="));
    option.push(path);
    option
}

/// Removes files.
pub(super) fn remove(files: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    for file in files {
        std::fs::remove_file(file)?;
    }
    Ok(())
}
