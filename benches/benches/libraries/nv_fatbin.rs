use std::hint::black_box;

use ccob::{Header, WriteOptions, compress};
use criterion::{Criterion, Throughput};
use nv_fatbin::{Architecture, Codec, Compression, Fatbin, Flags, Kind, NewEntry, NewFatbin};
use offload_benches::{SMS, cubin, ptx};

fn architecture(sm: u32) -> Architecture {
    Architecture::from_name(&format!("sm_{sm}")).unwrap()
}

pub(crate) fn benches(c: &mut Criterion) {
    const SIZE: usize = 4 << 20;
    let mut group = super::group(c, "nv-fatbin");
    for count in [10, 1000] {
        let mut fatbin = NewFatbin::new();
        for n in 0..count {
            let sm = SMS[n % SMS.len()];
            fatbin.add(&NewEntry::new(Kind::ELF, architecture(sm), cubin(sm, &[0; 64]))).unwrap();
        }
        let fatbin = fatbin.to_vec().unwrap();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("list {count} entries"), |b| {
            b.iter(|| {
                let entries = Fatbin::parse(black_box(&fatbin)).unwrap().entries();
                entries.map(|entry| entry.unwrap().architecture().sm()).sum::<u32>()
            });
        });
    }
    group.sample_size(10);
    let code = super::machine_code(SIZE);
    let text = ptx(90, 1, SIZE).into_bytes();
    // The frame after a header of its own: there is an encoder with and without libzstd.
    let frame = |code: &[u8]| {
        let bundle = compress(code, &WriteOptions::default()).unwrap();
        let header = Header::parse(&bundle, bundle.len() as u64).unwrap();
        bundle[header.header_len()..].to_vec()
    };
    let block = |code: &[u8]| {
        let entry =
            NewEntry::new(Kind::ELF, architecture(90), code).with_compression(Compression::Lz4(3));
        let mut fatbin = NewFatbin::new();
        fatbin.add(&entry).unwrap();
        let fatbin = fatbin.to_vec().unwrap();
        let entry = Fatbin::parse(&fatbin).unwrap().entries().next().unwrap().unwrap();
        entry.payload().unwrap().to_vec()
    };
    for (what, code) in [("machine code", &code), ("PTX", &text)] {
        group.throughput(Throughput::Bytes(code.len() as u64));
        for (codec, payload) in [(Codec::Lz4, block(code)), (Codec::Zstd, frame(code))] {
            let size = code.len() as u64;
            assert_eq!(codec.decompress(&payload, size).unwrap(), *code);
            group.bench_function(format!("decompress 4 MiB of {what}, {codec}"), |b| {
                b.iter(|| codec.decompress(black_box(&payload), size).unwrap().len());
            });
        }
    }
    let cubins = SMS.map(|sm| cubin(sm, &code[..SIZE / SMS.len()]));
    for (name, compression) in [("plain", Compression::None), ("LZ4", Compression::Lz4(3))] {
        group.throughput(Throughput::Bytes(cubins.iter().map(|cubin| cubin.len() as u64).sum()));
        group.bench_function(format!("write 4 MiB, {name}"), |b| {
            b.iter(|| {
                let mut fatbin = NewFatbin::new();
                for (sm, cubin) in SMS.iter().zip(&cubins) {
                    let entry = NewEntry::cubin(architecture(*sm), black_box(cubin)).unwrap();
                    fatbin
                        .add(&entry.with_flags(Flags::LINUX).with_compression(compression))
                        .unwrap();
                }
                fatbin.to_vec().unwrap().len()
            });
        });
    }
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("write 4 MiB of PTX", |b| {
        b.iter(|| NewEntry::ptx(architecture(90), black_box(&text)).unwrap().code.len());
    });
    group.finish();
}
