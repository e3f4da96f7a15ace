//! The cost of inputs of a link that have no device code, beside the crate `object`, which parses their headers: ratios of
//! processor time, in one run. `cargo bench -p offload-benches --bench inputs [ARCHIVE...]`; without archives, those of LLVM 22.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at what it did not expect"
)]

use std::fs;
use std::hint::black_box;
use std::io::{Cursor, ErrorKind};
use std::path::PathBuf;

use fat_object::has_device_code;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};
use offload_link::{Inputs, Members, Plan, PlanOptions};

/// The directory of the static archives of LLVM 22.
const LLVM: &str = "/usr/lib/llvm-22/lib";
/// Objects that a large link has.
const OBJECTS: usize = 2000;
/// Rounds; the fastest counts.
const ROUNDS: usize = 7;

fn main() {
    let given = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let given: Vec<_> = given.collect();
    if given.iter().any(|path| !path.is_file()) {
        // The filter of another bench.
        return;
    }
    let archives = if given.is_empty() { archives_of_llvm() } else { given };
    let archives: Vec<_> = archives.iter().map(|path| fs::read(path).unwrap()).collect();
    let members = archives.iter().flat_map(|archive| {
        let members = ArchiveFile::parse(&archive[..]).unwrap();
        let members = members.members().map(|member| member.unwrap().data(&archive[..]).unwrap());
        members.map(<[u8]>::to_vec).collect::<Vec<_>>()
    });
    let mut objects: Vec<_> = members.take(OBJECTS).collect();
    if objects.is_empty() {
        println!("no archives in {LLVM}: the objects are small, and there is no second table");
        let host = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/host.o");
        objects = vec![fs::read(host).unwrap(); OBJECTS];
    }
    measure("objects", &objects);
    if !archives.is_empty() {
        measure("archives", &archives);
    }
}

fn archives_of_llvm() -> Vec<PathBuf> {
    let files = fs::read_dir(LLVM).into_iter().flatten().flatten().map(|file| file.path());
    let mut archives: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "a")).collect();
    archives.sort();
    archives
}

/// Prints a table of ratios.
fn measure(what: &str, files: &[Vec<u8>]) {
    let bytes: usize = files.iter().map(Vec::len).sum();
    println!("\n| {} {what}, {} MB | CPU time | beside `object` |", files.len(), bytes / 1_000_000);
    println!("|---|---:|---:|");
    let mut peer = None;
    let mut row = |name: &str, work: &dyn Fn() -> usize| {
        let time = (0..ROUNDS).map(|_| time(work)).fold(f64::INFINITY, f64::min);
        let ratio = time / *peer.get_or_insert(time);
        println!("| {name} | {:.1} ms | {ratio:.2} x |", time * 1e3);
    };
    row("`object`: headers and names of sections", &|| files.iter().map(|file| parsed(file)).sum());
    row("`has_device_code`", &|| files.iter().filter(|file| asked(file)).count());
    row("`Inputs::add`", &|| added(Inputs::new(), files).codes().len());
    row("`Inputs::add`, `with_symbols`", &|| {
        added(Inputs::new().with_symbols(), files).codes().len()
    });
    row("the same, and a plan of what is needed", &|| {
        let inputs = added(Inputs::new().with_symbols(), files);
        let options = PlanOptions::default().with_members(Members::Needed);
        Plan::new(&inputs, &options).unwrap().groups().len()
    });
    row("`Inputs::read`", &|| read(Inputs::new(), files).codes().len());
    row("`Inputs::read`, `with_symbols`", &|| {
        read(Inputs::new().with_symbols(), files).codes().len()
    });
}

/// Returns the seconds of processor time that some work takes.
fn time(work: &dyn Fn() -> usize) -> f64 {
    let now = || {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        (usage.user_time() + usage.system_time()).num_microseconds()
    };
    let start = now();
    black_box(work());
    (now() - start) as f64 / 1e6
}

/// Returns the number of sections with names.
fn parsed(file: &[u8]) -> usize {
    if let Ok(archive) = ArchiveFile::parse(file) {
        return archive.members().map(|member| parsed(member.unwrap().data(file).unwrap())).sum();
    }
    let Ok(object) = object::File::parse(black_box(file)) else { return 0 };
    object.sections().filter(|section| !section.name_bytes().unwrap().is_empty()).count()
}

fn asked(file: &[u8]) -> bool {
    has_device_code(black_box(file)).unwrap_or(true)
}

fn added<'f>(mut inputs: Inputs<'f>, files: &'f [Vec<u8>]) -> Inputs<'f> {
    for file in files {
        inputs.add("file", black_box(file)).unwrap();
    }
    inputs
}

fn read(mut inputs: Inputs<'static>, files: &[Vec<u8>]) -> Inputs<'static> {
    for file in files {
        inputs.read("file", Cursor::new(file), |_| Err(ErrorKind::NotFound.into())).unwrap();
    }
    inputs
}
