use std::hint::black_box;

use bundle_format::EntryId;
use criterion::{Criterion, Throughput};
use target_id::{Target, TargetId, compatible, conflicts};

pub(crate) fn benches(c: &mut Criterion) {
    let mut group = super::group(c, "target-id");
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
    for count in [10_u32, 1000] {
        let targets: Vec<_> = (0..count)
            .map(|n| {
                let features = if n % 2 == 0 { ":xnack+" } else { ":sramecc-:xnack-" };
                Target::new(None, None, &format!("gfx{}{features}", n / 2))
            })
            .collect();
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(format!("conflicts among {count}"), |b| {
            b.iter(|| conflicts(black_box(&targets)).len());
        });
    }
    group.finish();
}
