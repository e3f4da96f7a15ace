use std::hint::black_box;

use bundle_format::text::TextBundle;
use bundle_format::{Bundle, EntryId, text};
use byte_parts::Part;
use criterion::{Criterion, Throughput};

use super::entry_id;

pub(crate) fn benches(c: &mut Criterion) {
    let mut group = super::group(c, "bundle-format");
    group.bench_function("parse an entry ID", |b| {
        b.iter(|| EntryId::parse(black_box("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-")).is_ok());
    });
    for count in [10, 1000, 10_000] {
        let entries: Vec<_> = (0..count).map(|n| (entry_id(n), 1 << 20)).collect();
        let entries = || entries.iter().map(|(id, size)| (id, *size));
        let layout = bundle_format::layout(entries(), 4096).unwrap();
        let Some((_, Part::Bytes(header))) = layout.parts().at(0) else { unreachable!() };
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("parse {count} entries"), |b| {
            b.iter(|| {
                let bundle = Bundle::parse_prefix(black_box(header), layout.size());
                bundle.unwrap().entries().count()
            });
        });
        group.bench_function(format!("lay out {count} entries"), |b| {
            b.iter(|| bundle_format::layout(black_box(entries()), 4096).unwrap().size());
        });
    }
    let image = super::machine_code(1 << 20);
    let payloads = [&image[..]; 8];
    let layout = bundle_format::layout((0..8).map(|n| (entry_id(n), 1 << 20)), 4096).unwrap();
    group.throughput(Throughput::Bytes(layout.size()));
    group.bench_function("write 8 MiB", |b| {
        b.iter(|| layout.to_vec(black_box(&payloads)).unwrap().len());
    });
    let assembly = b"\tv_mov_b32_e32 v0, 0\n\ts_waitcnt vmcnt(0)\n".repeat(24 << 10);
    let contents: Vec<_> = (0..8).map(|n| (entry_id(n), &assembly[..])).collect();
    let contents: Vec<_> = contents.iter().map(|(id, content)| (&id[..], *content)).collect();
    let leader = text::Leader::for_type("s").unwrap();
    let bundle = text::to_vec(leader, &contents).unwrap();
    group.throughput(Throughput::Bytes(bundle.len() as u64));
    group.bench_function("parse 8 MiB of text", |b| {
        b.iter(|| TextBundle::parse(black_box(&bundle)).unwrap().entries().count());
    });
    group.bench_function("write 8 MiB of text", |b| {
        b.iter(|| text::to_vec(leader, black_box(&contents)).unwrap().len());
    });
    group.finish();
}
