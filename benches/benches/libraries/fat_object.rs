use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput};
use fat_edit::{Edit, EditOptions, survey};
use fat_object::{Finding, Image, Options, Visitor, has_device_code, list, list_slice, walk};
use object::{Object, ObjectSection};

struct Counter(u64);

impl Visitor for Counter {
    fn image(&mut self, _: &mut Image<'_, '_>) -> std::io::Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> std::io::Result<()> {
        Err(std::io::Error::other(finding.to_string()))
    }
}

fn images(file: &[u8]) -> u64 {
    images_of(file, &Options::default())
}

fn images_of(file: &[u8], options: &Options) -> u64 {
    let mut counter = Counter(0);
    walk(&mut Cursor::new(file), options, &mut counter).unwrap();
    counter.0
}

/// A compressed bundle of code for ten GPUs.
fn compressed(size: usize) -> Vec<u8> {
    // Not an ELF file, which a walk would find malformed.
    let code = [&b"code"[..], &super::machine_code(size / 10)].concat();
    let entries = (0..10).map(|n| (super::entry_id(900 + n), code.len() as u64));
    let layout = bundle_format::layout(entries, 4096).unwrap();
    let bundle = layout.to_vec(&[&code[..]; 10]).unwrap();
    ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap()
}

/// The new file's size, with the last image removed.
fn thinned(file: &[u8]) -> usize {
    let mut input = Cursor::new(file);
    let contents = survey(&mut input, &Options::default()).unwrap();
    // The host's comes first.
    let image = contents.images().last().unwrap();
    // A bundle may have one.
    let mut edit = Edit::new(EditOptions::default().with_allow_empty(true));
    edit.remove(image.index());
    let plan = contents.plan(&mut input, &edit).unwrap();
    let mut out = Vec::new();
    plan.write(&mut input, &mut out).unwrap();
    out.len()
}

pub(crate) fn benches(c: &mut Criterion) {
    let mut group = super::group(c, "fat-object");
    for (what, name) in [
        ("an object", "hip.o"),
        ("a library", "hip-two-units.so"),
        ("an archive", "libhip.a"),
        ("a bundle", "hip.hipfb"),
    ] {
        let file = super::data(name);
        group.throughput(Throughput::Elements(images(&file)));
        group.bench_function(format!("walk {what}, per image"), |b| {
            b.iter(|| images(black_box(&file)));
        });
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(format!("remove an image from {what}"), |b| {
            b.iter(|| thinned(black_box(&file)));
        });
    }
    let file = compressed(16 << 20);
    let tables_only = Options::default().with_tables_only(true);
    for (how, options) in [("whole", Options::default()), ("by its table", tables_only)] {
        group.throughput(Throughput::Elements(images_of(&file, &options)));
        group.bench_function(format!("walk a compressed bundle of 16 MiB {how}, per image"), |b| {
            b.iter(|| images_of(black_box(&file), &options));
        });
    }
    group.finish();
    objects(c);
}

/// A linker's question to 10,000 objects; one in a hundred has device code.
fn objects(c: &mut Criterion) {
    let (host, hip) = (super::data("host.o"), super::data("hip.o"));
    let object = |n: u64| if n.is_multiple_of(100) { hip.clone() } else { host.clone() };
    let objects: Vec<Vec<u8>> = (0..10_000).map(object).collect();
    let parsed = |object: &[u8]| -> usize {
        let file = object::File::parse(object).unwrap();
        file.sections().filter(|section| !section.name_bytes().unwrap().is_empty()).count()
    };
    let mut group = super::group(c, "10,000 objects");
    group.throughput(Throughput::Elements(objects.len() as u64));
    group.bench_function("section headers, by object::File", |b| {
        b.iter(|| objects.iter().map(|object| parsed(black_box(object))).sum::<usize>());
    });
    group.bench_function("has_device_code", |b| {
        let asks = |object: &&Vec<u8>| has_device_code(black_box(object)).unwrap();
        b.iter(|| objects.iter().filter(asks).count());
    });
    let options = Options::default();
    group.bench_function("list_slice", |b| {
        let images = |object: &Vec<u8>| list_slice(black_box(object), &options).unwrap();
        b.iter(|| objects.iter().map(|object| images(object).images().len()).sum::<usize>());
    });
    group.bench_function("list", |b| {
        let images = |object: &Vec<u8>| list(Cursor::new(black_box(object)), &options).unwrap();
        b.iter(|| objects.iter().map(|object| images(object).images().len()).sum::<usize>());
    });
    group.finish();
}
