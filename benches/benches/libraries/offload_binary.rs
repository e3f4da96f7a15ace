use std::hint::black_box;

use byte_parts::Part;
use criterion::{Criterion, Throughput};
use offload_binary::{FormatVersion, ImageEntry, OffloadBinary, OffloadKind};

/// Headers only, whatever the size of the images; and whole packages.
pub(crate) fn benches(c: &mut Criterion) {
    let mut group = super::group(c, "offload-binary");
    for count in [1, 100, 10_000] {
        let archs: Vec<_> = (0..count).map(|n| format!("gfx{n}")).collect();
        group.throughput(Throughput::Elements(count));
        for size in [1_u64 << 10, 1 << 30] {
            let entries: Vec<_> = archs
                .iter()
                .map(|arch| {
                    let entry = ImageEntry::new(size).with_string("triple", "amdgcn-amd-amdhsa");
                    entry.with_string("arch", arch).with_offload_kind(OffloadKind::HIP)
                })
                .collect();
            let what = format!("{count} x {} KiB", size >> 10);
            for (version, name) in [(FormatVersion::V1, "v1"), (FormatVersion::V2, "v2")] {
                group.bench_function(format!("lay out {what}, {name}"), |b| {
                    b.iter(|| offload_binary::layout(version, black_box(&entries)).unwrap().size());
                });
            }
            // All images in one binary.
            let layout = offload_binary::layout(FormatVersion::V2, &entries).unwrap();
            let first = layout.parts().iter().next();
            let Some(Part::Bytes(header)) = first else { unreachable!("a header comes first") };
            group.bench_function(format!("parse {what}"), |b| {
                b.iter(|| {
                    let total = layout.size();
                    let binary = OffloadBinary::parse_prefix(black_box(header), total).unwrap();
                    binary.entries().filter_map(|entry| entry.arch()).count()
                });
            });
        }
    }
    let image = super::machine_code(1 << 20);
    let images = [&image[..]; 8];
    let entries = images.map(|image| {
        ImageEntry::new(image.len() as u64).with_string("triple", "amdgcn-amd-amdhsa")
    });
    let layout = offload_binary::layout(FormatVersion::V1, &entries).unwrap();
    group.throughput(Throughput::Bytes(layout.size()));
    group.bench_function("write 8 MiB", |b| {
        b.iter(|| layout.to_vec(black_box(&images)).unwrap().len());
    });
    group.finish();
}
