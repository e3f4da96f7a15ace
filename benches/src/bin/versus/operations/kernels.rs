//! The kernels of images.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::Operation;
use super::inputs::{bundle, remove};
use crate::bench::{Bench, theirs};

/// Kernels that a file has at least.
const KERNELS: usize = 10_000;
/// The name of generated kernels begins with this. A copy gets a number of the same length.
const NAME: &[u8; 7] = b"kernel_";

pub(super) fn list(bench: &mut Bench, operation: &Operation, _: u64) -> Result<(), Box<dyn Error>> {
    let units = bench.code.units().to_vec();
    if units.is_empty() {
        return Err("kernels are made by clang 22, which is not installed".into());
    }
    // Kernels of several units, as often as there are enough, each time by other names.
    let (mut images, mut library) = (Vec::new(), Vec::new());
    let (mut kernels, mut size) = (0, 0);
    for (copy, unit) in units.iter().cycle().enumerate() {
        if kernels >= KERNELS {
            break;
        }
        let mut of_unit: Vec<PathBuf> = Vec::new();
        for (gpu, path) in unit.iter().enumerate() {
            let mut code = fs::read(path)?;
            kernels += rename(&mut code, copy)?;
            size += code.len() as u64;
            let image = bench.path(&format!("image-{copy}-{gpu}"));
            fs::write(&image, code)?;
            of_unit.push(image);
        }
        let bundled = bundle(bench, "bundle", &of_unit, &[])?;
        library.extend(fs::read(&bundled)?);
        library.resize(library.len().next_multiple_of(4096), 0);
        remove(&[bundled])?;
        images.extend(of_unit);
    }
    let file = bench.path("library");
    fs::write(&file, library)?;
    let ours = |more: &[&str]| -> Vec<OsString> {
        let words = ["kernels".into(), file.clone().into()];
        words.into_iter().chain(more.iter().map(Into::into)).collect()
    };
    let mut notes: Vec<OsString> = vec!["--notes".into()];
    notes.extend(images.iter().map(Into::into));
    let commands = vec![
        bench.our("offload kernels", "offload", ours(&[])),
        bench.our("offload kernels --json", "offload", ours(&["--json"])),
        theirs("LLVM 22's llvm-readobj --notes, of the images", "llvm-readobj", notes),
    ];
    let what = format!("{kernels} kernels");
    let result = bench.compare(operation, &what, size, commands, |_, _| Ok(None))?;
    let time = result.ours().map(|ours| ours.time() * 1e3 * KERNELS as f64 / kernels as f64);
    let memory = result.ours().map(crate::record::Figures::memory);
    bench.judge("kernels time", time)?;
    bench.judge("kernels memory", memory)
}

/// Gives kernels names that differ for each copy; returns how many there are.
fn rename(code: &mut [u8], copy: usize) -> Result<usize, Box<dyn Error>> {
    let found = device_code::kernels(code).and_then(|found| found.kernels);
    let kernels = found.ok_or("code without kernels")?.len();
    let name = format!("k{copy:05}_");
    let mut at = 0;
    while let Some(place) = code.get_mut(at..at + NAME.len()) {
        if place == NAME {
            place.copy_from_slice(name.as_bytes());
        }
        at += 1;
    }
    Ok(kernels)
}
