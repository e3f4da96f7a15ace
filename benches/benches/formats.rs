//! The cost of reading each format and of deciding compatibility: `cargo bench -p offload-benches`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark may stop at what it did not expect"
)]

use std::hint::black_box;
use std::path::Path;

use bundle_format::{Bundle, EntryId, Layout};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use target_id::{Target, TargetId, compatible};

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data").join(name))
        .unwrap()
}

/// Real machine code: this very program, several megabytes of it.
fn machine_code() -> Vec<u8> {
    std::fs::read(std::env::current_exe().unwrap()).unwrap()
}

fn target_ids(c: &mut Criterion) {
    let mut group = c.benchmark_group("target-id");
    group.bench_function("parse", |b| {
        b.iter(|| TargetId::parse(black_box("gfx90a:xnack-:sramecc+")));
    });
    group.bench_function("canonicalise", |b| {
        let id = TargetId::parse("gfx90a:xnack-:sramecc+").unwrap();
        b.iter(|| black_box(&id).to_string());
    });
    group.bench_function("compatible", |b| {
        let code_object =
            EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+").unwrap().target();
        let device = Target::new(None, None, "gfx90a:sramecc+:xnack-");
        b.iter(|| compatible(black_box(&code_object), black_box(&device)));
    });
    group.finish();
}

fn formats(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    let entries: Vec<_> =
        (0..1000).map(|i| (format!("hipv4-amdgcn-amd-amdhsa--gfx{i}"), 16)).collect();
    let layout =
        Layout::new(entries.iter().map(|(id, size)| (id.as_bytes(), *size)), 4096).unwrap();
    let header = layout.header_bytes();
    group.bench_function("bundle of 1000 entries", |b| {
        b.iter(|| {
            Bundle::parse_prefix(black_box(header), layout.total_size()).unwrap().entries().count()
        });
    });
    let package = data("packages.offload");
    group.bench_function("package", |b| {
        b.iter(|| {
            offload_binary::OffloadBinary::parse(black_box(&package)).unwrap().entries().count()
        });
    });
    group.finish();
}

fn compression(c: &mut Criterion) {
    let code = machine_code();
    let compressed = ccob::compress(&code, &ccob::WriteOptions::default()).unwrap();
    let mut group = c.benchmark_group("ccob");
    group.throughput(Throughput::Bytes(code.len() as u64)).sample_size(10);
    group.bench_function("hash", |b| b.iter(|| ccob::hash(black_box(&code))));
    group.bench_function("decompress", |b| {
        b.iter(|| {
            ccob::decompress(black_box(&compressed), &ccob::Limits::default()).unwrap().data.len()
        });
    });
    group.finish();
}

criterion_group!(benches, target_ids, formats, compression);
criterion_main!(benches);
