use std::hint::black_box;
use std::io::Cursor;

use bundle_format::{EntryId, Request};
use criterion::{Criterion, Throughput};
use hda_archive::{Member, Options, Unbundling, no_thin_members};

use super::entry_id;

/// Archives of bundles for four GPUs, taken apart in memory.
pub(crate) fn benches(c: &mut Criterion) {
    const GPUS: [usize; 4] = [906, 908, 942, 1100];
    let mut group = super::group(c, "hda-archive");
    // Nothing that looks like an object.
    let mut code = super::machine_code(4 << 10);
    code[..8].copy_from_slice(b"no magic");
    let entries = GPUS.map(|gpu| (entry_id(gpu), code.len() as u64));
    let bundle = bundle_format::layout(entries, 1).unwrap().to_vec(&[&code[..]; 4]).unwrap();
    let requests = GPUS.map(|gpu| Request::new(&EntryId::parse(&entry_id(gpu)).unwrap()));
    for count in [10_u64, 1000] {
        let members = (0..count).map(|n| Member::new(format!("member-{n}.o"), bundle.clone()));
        let mut archive = Vec::new();
        hda_archive::create(&mut archive, members).unwrap();
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("unbundle {count} members for 4 GPUs"), |b| {
            b.iter(|| {
                let mut input = Cursor::new(black_box(&archive));
                let options = Options::default();
                let requests = requests.clone();
                let plan =
                    Unbundling::plan(&mut input, requests, &options, no_thin_members).unwrap();
                let mut archives = [const { Vec::new() }; GPUS.len()];
                plan.write(&mut input, archives.iter_mut(), no_thin_members).unwrap();
                archives.map(|archive| archive.len())
            });
        });
    }
    group.finish();
}
