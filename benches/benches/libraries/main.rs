//! Times of the libraries in memory, per entry or per byte: `cargo bench -p offload-benches`, two minutes.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at what it did not expect"
)]

mod bundle_format;
mod ccob;
mod fat_object;
mod hda_archive;
mod nv_fatbin;
mod offload_binary;
mod target_id;
mod wrapper_ir;

use std::path::Path;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_main};

/// A real file of clang 22.
fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data").join(name))
        .unwrap()
}

/// Returns `size` bytes of real machine code: this very program, repeated.
fn machine_code(size: usize) -> Vec<u8> {
    let code = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    code.iter().copied().cycle().take(size).collect()
}

/// The bundle entry ID of HIP code for the `n`-th of many processors.
fn entry_id(n: usize) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--gfx{n}")
}

/// A group of benches that take a second each.
fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(15);
    group.warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_millis(700));
    group
}

fn all() {
    let mut c = Criterion::default().configure_from_args();
    for benches in [
        target_id::benches,
        offload_binary::benches,
        bundle_format::benches,
        ccob::benches,
        wrapper_ir::benches,
        hda_archive::benches,
        nv_fatbin::benches,
        fat_object::benches,
    ] {
        benches(&mut c);
    }
    c.final_summary();
}

criterion_main!(all);
