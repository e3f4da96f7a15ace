use std::hint::black_box;

use ccob::{Header, Method, ReadOptions, WriteOptions, compress, decompress, hash};
use criterion::{Criterion, Throughput};

pub(crate) fn benches(c: &mut Criterion) {
    const SIZE: usize = 4 << 20;
    let code = super::machine_code(SIZE);
    let mut group = super::group(c, "ccob");
    let compressed = compress(&code, &WriteOptions::default()).unwrap();
    group.bench_function("parse a header", |b| {
        let size = compressed.len() as u64;
        b.iter(|| Header::parse(black_box(&compressed[..32]), size).unwrap());
    });
    group.sample_size(10);
    group.throughput(Throughput::Bytes(code.len() as u64));
    group.bench_function("hash 4 MiB", |b| b.iter(|| hash(black_box(&code))));
    for method in [Method::ZSTD, Method::ZLIB] {
        let options = WriteOptions::default().with_method(method);
        let codec = format!("{:?}", method.codec().unwrap());
        let compressed = compress(&code, &options).unwrap();
        group.bench_function(format!("compress 4 MiB, {codec}"), |b| {
            b.iter(|| compress(black_box(&code), &options).unwrap().len());
        });
        group.bench_function(format!("decompress 4 MiB, {codec}"), |b| {
            b.iter(|| {
                decompress(black_box(&compressed), &ReadOptions::default()).unwrap().data.len()
            });
        });
    }
    group.finish();
}
