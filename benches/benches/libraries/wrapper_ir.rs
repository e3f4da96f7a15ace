use std::hint::black_box;

use criterion::{Criterion, Throughput};
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

pub(crate) fn benches(c: &mut Criterion) {
    let mut group = super::group(c, "wrapper-ir");
    for (name, size) in [("4 KiB", 4 << 10), ("4 MiB", 4 << 20)] {
        let image = super::machine_code(size);
        let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
        let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target);
        let module = wrapper.with_images([Image::from_bytes(&image)]).module().unwrap();
        let images = [&image[..]];
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(format!("LLVM IR, {name}"), |b| {
            b.iter(|| module.ir_to_string(black_box(&images)).unwrap().len());
        });
        group.bench_function(format!("bitcode, {name}"), |b| {
            b.iter(|| module.bitcode().unwrap().to_vec(black_box(&images)).unwrap().len());
        });
        group.bench_function(format!("object, {name}"), |b| {
            b.iter(|| module.object().unwrap().to_vec(black_box(&images)).unwrap().len());
        });
    }
    group.finish();
}
