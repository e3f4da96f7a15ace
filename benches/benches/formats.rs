//! The cost of reading each format and of deciding compatibility: `cargo bench -p offload-benches`.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark may stop at what it did not expect"
)]

use std::hint::black_box;
use std::path::Path;

use bundle_format::{Bundle, EntryId};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use offload_binary::{FormatVersion, ImageEntry, Layout, OffloadBinary, OffloadKind};
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
        bundle_format::Layout::new(entries.iter().map(|(id, size)| (id.as_bytes(), *size)), 4096)
            .unwrap();
    let header = layout.header_bytes();
    group.bench_function("bundle of 1000 entries", |b| {
        b.iter(|| {
            Bundle::parse_prefix(black_box(header), layout.total_size()).unwrap().entries().count()
        });
    });
    let package = data("packages.offload");
    group.bench_function("package", |b| {
        b.iter(|| OffloadBinary::parse(black_box(&package)).unwrap().entries().count());
    });
    group.finish();
}

/// Reading and laying out packages: per entry, whatever the size of the images.
fn packages(c: &mut Criterion) {
    const ENTRIES: usize = 100;
    let mut group = c.benchmark_group("package of 100 images");
    for (version, name) in [(FormatVersion::V1, "v1"), (FormatVersion::V2, "v2")] {
        for size in [1 << 10, 1 << 30] {
            let archs: Vec<_> = (0..ENTRIES).map(|i| format!("gfx{i}")).collect();
            let entry = |arch| {
                let entry = ImageEntry::new(size).string("triple", "amdgcn-amd-amdhsa");
                entry.string("arch", arch).offload_kind(OffloadKind::HIP)
            };
            let entries: Vec<_> = archs.iter().map(entry).collect();
            let what = format!("{name}, {} KiB each", size >> 10);
            group.bench_function(format!("lay out {what}"), |b| {
                b.iter(|| Layout::new(version, black_box(&entries)).unwrap().total_size());
            });
            // One binary: version 1 has one image in each, version 2 all images in one.
            let layout = Layout::new(version, &entries).unwrap();
            let (_, header) = layout.headers().next().unwrap();
            let end = match version {
                FormatVersion::V1 => layout.image_offset(0).unwrap() + size,
                _ => layout.total_size(),
            };
            group.bench_function(format!("read one binary of {what}"), |b| {
                b.iter(|| {
                    let binary = OffloadBinary::parse_prefix(black_box(header), end + 8).unwrap();
                    binary.entries().filter_map(|entry| entry.arch()).count()
                });
            });
        }
    }
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

criterion_group!(benches, target_ids, formats, packages, compression);
criterion_main!(benches);
