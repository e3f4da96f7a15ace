//! CUDA libraries: listed, thinned, and their code taken out.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use nv_fatbin::{Architecture, Compression, Flags, NewEntry, NewFatbin};
use offload_benches::{SMS, cubin, nvidia, ptx, run};

use super::libraries::{host_size, link};
use super::{CUDA_CODE, CUDA_LIBRARY, Done, Operation};
use crate::bench::{Bench, hash_text};
use crate::record::{Command, Figures, Who};

const KEPT: &str = "sm_90";
const CUOBJDUMP: &str = "cuobjdump";
const REMAINS: &str = "cp of what remains";
const TASKSET: &str = "/usr/bin/taskset";
/// The forms in which `fatbinary` stores entries.
const FORMS: [Compression; 3] = [Compression::None, Compression::Lz4(3), Compression::Zstd(5)];

pub(super) fn list(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let Library { path, fatbins, .. } = library(bench, Until::Stored(size), &FORMS)?;
    let remains = bench.path("remains");
    run(&bench.ours("offload"), &thinned(&path, &remains))?;
    let args = |words: &[&str]| args(words, &path);
    let mut copy = bench.cp(&remains);
    copy.name = REMAINS.to_owned();
    let commands = vec![
        bench.our("offload ls", "offload", args(&["ls"])),
        bench.our("offload ls --no-scan", "offload", args(&["ls", "--no-scan"])),
        theirs("cuobjdump -all -lelf -lptx", args(&["-all", "-lelf", "-lptx"])),
        copy,
    ];
    let images = fatbins * (SMS.len() + 1);
    let what = format!("{fatbins} fatbinaries");
    let result = bench.compare(operation, &what, size, commands, |_, command| {
        let mut asked = Process::new(&command.program);
        match command.who {
            Who::Ours => asked.args(["ls", "--json"]).arg(&path),
            Who::Nvidia => asked.args(&command.args),
            _ => return Ok(None),
        };
        let output = asked.output()?.stdout;
        let lines = std::str::from_utf8(&output)?.lines();
        match lines.filter(|line| line.contains("sm_")).count() {
            found if found == images => Ok(Some(images as u64)),
            found => Err(format!("{} lists {found} of {images} images", command.name).into()),
        }
    })?;
    let copied = result.named(REMAINS).map(Figures::time);
    let time = result.ours().zip(copied).map(|(ours, copied)| ours.time() / copied);
    let memory = result.ours().map(Figures::memory);
    if size == CUDA_LIBRARY {
        bench.judge("ls cuda time", time)?;
        bench.judge("ls cuda memory", memory)?;
    }
    Ok(())
}

pub(super) fn thin(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let Library { path, fatbins, .. } = library(bench, Until::Stored(size), &FORMS)?;
    let remains = bench.path("remains");
    run(&bench.ours("offload"), &thinned(&path, &remains))?;
    if let Some(tool) = nvidia(CUOBJDUMP) {
        let output = Process::new(tool).args(["-all", "-lelf", "-lptx"]).arg(&remains).output()?;
        let output = String::from_utf8(output.stdout)?;
        if output.lines().count() != fatbins || output.lines().any(|line| !line.contains(KEPT)) {
            return Err("offload thin: cuobjdump finds other code".into());
        }
    }
    let mut copy_all = bench.cp(&path);
    copy_all.name = "cp of the library".to_owned();
    let mut copy = bench.cp(&remains);
    copy.name = REMAINS.to_owned();
    let commands = vec![
        bench.our("offload thin", "offload", thinned(&path, &bench.path("out"))),
        copy,
        copy_all,
    ];
    let what = format!("{fatbins} fatbinaries");
    let result = bench.compare(operation, &what, size, commands, |_, _| Ok(None))?;
    let ours = result.ours();
    let allowed = result.named(REMAINS).map(|cp| 1.3 * cp.time() + 0.020);
    let time = ours.zip(allowed).map(|(ours, allowed)| ours.time() / allowed);
    let memory = ours.map(Figures::memory);
    if size == CUDA_LIBRARY {
        bench.judge("thin cuda time", time)?;
        bench.judge("thin cuda memory", memory)?;
    }
    Ok(())
}

pub(super) fn extract(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    for (name, form) in [("zstd", Compression::Zstd(5)), ("LZ4", Compression::Lz4(3))] {
        bench.clear()?;
        let Library { path, fatbins, .. } = library(bench, Until::Code(size), &[form])?;
        let out = bench.path("out");
        let ours = args(&["extract", "-j", "1"], &path);
        let ours = bench.our("offload extract -j 1", "offload", ours);
        let all = args(&["-all", "-xelf", "all", "-xptx", "all"], &path);
        let theirs = theirs("cuobjdump -all -xelf all -xptx all", all);
        let commands = vec![alone(ours, &out), alone(theirs, &out)];
        let result = bench.compare(operation, name, size, commands, |_, command| {
            let (files, hash) = contents(&out)?;
            if files == fatbins * (SMS.len() + 1) {
                Ok(Some(hash))
            } else {
                Err(format!("{}: {files} files", command.name).into())
            }
        })?;
        let faster = result.faster_than(Who::Nvidia);
        if size == CUDA_CODE {
            bench.judge(&format!("extract {name}"), faster)?;
        }
    }
    Ok(())
}

/// Arguments that reduce a library to the code for one GPU.
fn thinned(library: &Path, to: &Path) -> Vec<OsString> {
    let words = ["thin", "--keep", KEPT].map(OsString::from);
    [&words[..], &[library.into(), "-o".into(), to.into()]].concat()
}

/// Words, and a file.
fn args(words: &[&str], file: &Path) -> Vec<OsString> {
    words.iter().map(Into::into).chain([file.into()]).collect()
}

/// NVIDIA's command, with a program that is not there if it cannot be found.
fn theirs(name: &str, args: Vec<OsString>) -> Command {
    let program = nvidia(CUOBJDUMP).unwrap_or_default();
    Command { who: Who::Nvidia, name: name.to_owned(), program, args }
}

/// The command on one core, in a new directory. A missing program is not changed.
fn alone(command: Command, directory: &Path) -> Command {
    const SCRIPT: &str = r#"mkdir "$0" && cd "$0" && exec "$@""#;
    if !command.program.exists() {
        return command;
    }
    let mut args: Vec<OsString> = ["-c", "0", "sh", "-c", SCRIPT].map(Into::into).to_vec();
    args.extend([directory.into(), command.program.into()]);
    args.extend(command.args);
    Command { program: TASKSET.into(), args, ..command }
}

/// The number of files in a directory, and a hash of their contents, without zeros at their ends.
fn contents(directory: &Path) -> Result<(usize, u64), Box<dyn Error>> {
    let mut hashes = Vec::new();
    for entry in fs::read_dir(directory)? {
        let mut content = fs::read(entry?.path())?;
        content.truncate(content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        hashes.push(twox_hash::XxHash3_64::oneshot(&content));
    }
    hashes.sort_unstable();
    Ok((hashes.len(), hash_text(&format!("{hashes:?}"))))
}

/// A shared object with fatbinaries.
struct Library {
    path: PathBuf,
    fatbins: usize,
}

/// Decides when a library is large enough.
#[derive(Clone, Copy)]
enum Until {
    /// The library has this many bytes.
    Stored(u64),
    /// The device code has this many bytes, decompressed.
    Code(u64),
}

/// Makes a shared object: host code, and fatbinaries of cubins for six GPUs and PTX with a wrapper for each of them. All
/// entries of a fatbinary have the same form, the next one of `forms` in turn.
fn library(bench: &Bench, until: Until, forms: &[Compression]) -> Result<Library, Box<dyn Error>> {
    const CUBIN: usize = 256 << 10;
    let (Until::Stored(size) | Until::Code(size)) = until;
    let host = host_size(size);
    let cubin_size = usize::try_from(size / 16)?.min(CUBIN).next_multiple_of(8);
    let mut codes: Vec<_> = (0..SMS.len()).map(|gpu| bench.code.code(gpu)).collect();
    let mut code = vec![0; cubin_size];
    let path = bench.path("fatbins");
    let mut file = BufWriter::new(File::create(&path)?);
    let (mut places, mut at, mut plain) = (Vec::new(), 0, 0);
    while match until {
        Until::Stored(size) => at < size - host,
        Until::Code(size) => plain < size,
    } {
        let form = forms.get(places.len() % forms.len()).copied().unwrap_or_default();
        let mut fatbin = NewFatbin::new();
        for (sm, stream) in SMS.iter().zip(&mut codes) {
            stream.read_exact(&mut code)?;
            let image = cubin(*sm, &code);
            let entry = NewEntry::cubin(architecture(*sm)?, &image)?;
            fatbin.add(&entry.with_flags(Flags::LINUX).with_compression(form))?;
            plain += image.len() as u64;
        }
        let newest = SMS.last().copied().unwrap_or_default();
        let text = ptx(newest, places.len(), cubin_size / 8);
        let entry = NewEntry::ptx(architecture(newest)?, text.as_bytes())?;
        plain += entry.code.len() as u64;
        fatbin.add(&entry.with_flags(Flags::LINUX).with_compression(form))?;
        let bytes = fatbin.to_vec()?;
        file.write_all(&bytes)?;
        places.push(at);
        at += bytes.len() as u64;
    }
    file.flush()?;
    let mut text = String::from(".section .nv_fatbin, \"a\", @progbits\n.p2align 3\n");
    writeln!(text, ".Lfatbins: .incbin {path:?}")?;
    writeln!(text, ".section .nvFatBinSegment, \"aw\", @progbits\n.p2align 3")?;
    for place in &places {
        writeln!(text, ".long 0x466243b1, 1\n.quad .Lfatbins + {place}, 0")?;
    }
    Ok(Library { path: link(bench, host, &text)?, fatbins: places.len() })
}

fn architecture(sm: u32) -> Result<Architecture, Box<dyn Error>> {
    Architecture::from_name(&format!("sm_{sm}")).ok_or_else(|| "no such architecture".into())
}
