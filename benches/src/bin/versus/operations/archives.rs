//! Heterogeneous device archives, taken apart.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use offload_benches::GPUS;

use super::inputs::{bundle, id, unbundle_args};
use super::{Done, Operation};
use crate::bench::Bench;
use crate::record::{Figures, Measurement, Who};

const BUNDLER: &str = "clang-offload-bundler";
const TARGETS: usize = 4;
const PIECE: usize = 32_000;
/// Bytes of code in a member.
pub(super) const MEMBER: u64 = (TARGETS * PIECE) as u64;

pub(super) fn plain(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let members = pieces(bench)?;
    let count = size / MEMBER;
    let result = take_apart(bench, operation, &members, count)?;
    let largest = members.iter().map(Vec::len).max().unwrap_or_default();
    let largest = largest as f64 / f64::from(1 << 20);
    let faster = result.faster_than(Who::Llvm);
    let memory = result.ours().map(|ours| ours.memory() - largest);
    if count == 2000 {
        bench.judge("hda llvm", faster)?;
        bench.judge("hda memory", memory)?;
    }
    Ok(())
}

pub(super) fn compressed(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let mut members = Vec::new();
    let mut largest: f64 = 0.0;
    for (n, unit) in bench.code.units().iter().enumerate() {
        let unit = unit.get(..TARGETS).unwrap_or_default();
        let whole = bundle(bench, "plain", unit, &[])?;
        largest = largest.max(fs::metadata(whole)?.len() as f64 / f64::from(1 << 20));
        members.push(fs::read(bundle(bench, &format!("member-{n}"), unit, &["-compress"])?)?);
    }
    if members.is_empty() {
        println!("\n  left out: code objects are wanted, and there is no clang 22");
        return Ok(());
    }
    let count = size / MEMBER;
    let result = take_apart(bench, operation, &members, count)?;
    let cores = bench.machine.cores as f64;
    let faster = result.faster_than(Who::Llvm);
    let memory = result.ours().map(Figures::memory);
    if count == 500 {
        bench.judge("hda elf llvm", faster)?;
        bench.judge("hda elf memory", memory.map(|memory| memory - cores * largest))?;
    }
    Ok(())
}

/// Makes an archive of `count` members, these in turn, and unbundles it.
fn take_apart(
    bench: &mut Bench,
    operation: &Operation,
    members: &[Vec<u8>],
    count: u64,
) -> Result<Measurement, Box<dyn Error>> {
    let archive = bench.path("device.a");
    let mut out = BufWriter::new(File::create(&archive)?);
    out.write_all(b"!<arch>\n")?;
    for (n, member) in (0..count).zip(members.iter().cycle()) {
        let name = format!("m{n}.o/");
        let size = member.len();
        writeln!(out, "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, 0, 644)?;
        out.write_all(member)?;
        if size % 2 == 1 {
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    drop(out);
    let size = fs::metadata(&archive)?.len();
    let gpus = GPUS.get(..TARGETS).unwrap_or_default();
    let args = unbundle_args(bench, "a", &archive, gpus);
    bench.compare_copy(operation, &format!("{count} members"), size, BUNDLER, args, &archive)
}

/// Bundles of code for four GPUs. Nothing in them may look like an object, which would be a damaged one.
fn pieces(bench: &Bench) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    const BUNDLES: usize = 200;
    let mut code = Vec::new();
    for gpu in 0..TARGETS {
        let path = bench.path("code");
        bench.code.write(&path, gpu, (BUNDLES * PIECE) as u64)?;
        code.push(read_pieces(&path)?);
    }
    let mut bundles = Vec::new();
    for n in 0..BUNDLES {
        let mut entries = vec![("host-x86_64-unknown-linux-gnu-".to_owned(), 0)];
        let mut contents: Vec<&[u8]> = vec![b""];
        for (pieces, gpu) in code.iter().zip(GPUS) {
            entries.push((id(gpu), PIECE as u64));
            contents.push(pieces.get(n).ok_or("no code")?);
        }
        bundles.push(bundle_format::layout(entries, 1)?.to_vec(&contents)?);
    }
    Ok(bundles)
}

fn read_pieces(path: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut code = fs::read(path)?;
    Ok(code
        .chunks_exact_mut(PIECE)
        .map(|piece| {
            piece.iter_mut().zip(b"no magic").for_each(|(to, from)| *to = *from);
            piece.to_vec()
        })
        .collect())
}
