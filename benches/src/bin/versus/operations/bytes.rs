//! Packages and directories read, beside programs that only copy, decompress or search the same bytes.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use offload_benches::{GPUS, run};

use super::inputs::{bundle, images, remove};
use super::{Done, LIBRARY, Operation};
use crate::bench::{Bench, UNZIP, ZSTD};
use crate::record::{Command, Figures, Who};

const TAR: &str = "/bin/tar";
const CAT: &str = "/bin/cat";
const GREP: &str = "/bin/grep";
const DPKG_DEB: &str = "/usr/bin/dpkg-deb";
/// An object without device code.
const OBJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/host.o");
const PYTHON: &str = "/usr/bin/python3";

/// Bundles in a wheel and files in a directory, and as many for a quick run.
const MEMBERS: u64 = 15_970;
const FILES: u64 = 10_000;
const FEW: u64 = 100;
/// Bytes of code in each.
const SMALL: u64 = 4 << 10;

const CONTROL: &str = "Package: code\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\nDescription: code\n";

/// Compresses a member many times, under other names.
const WHEEL: &str = r#"
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED)
image = open(sys.argv[2], "rb").read()
for number in range(int(sys.argv[3])):
    wheel.writestr(f"code/{number}.hipfb", image)
"#;

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// A command with the path of its input as the last word.
fn command(who: Who, name: &str, program: &Path, args: &[OsString], input: &Path) -> Command {
    let args = [args, &[input.into()]].concat();
    Command { who, name: name.to_owned(), program: program.to_owned(), args }
}

fn ours(bench: &Bench, args: &[OsString], input: &Path) -> Command {
    let name = args.iter().map(|word| word.to_string_lossy());
    let name = format!("offload {}", name.collect::<Vec<_>>().join(" "));
    command(Who::Ours, &name, &bench.ours("offload"), args, input)
}

fn is_missing(program: &str) -> bool {
    let is_missing = !Path::new(program).exists();
    if is_missing {
        println!("\n  not measured: no {program}");
    }
    is_missing
}

pub(super) fn read(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let tree = tree(bench, size)?;
    let tar = bench.path("code.tar");
    let code = || -> Vec<OsString> { vec!["-C".into(), tree.clone().into(), "usr".into()] };
    run(Path::new(TAR), &[vec!["-cf".into(), tar.clone().into()], code()].concat())?;
    let ls = words(["ls"]);

    let commands = vec![ours(bench, &ls, &tar), command(Who::Cp, "cat", Path::new(CAT), &[], &tar)];
    let result = bench.compare(operation, "tar file", size, commands, |_, _| Ok(None))?;
    let times = result.times(Who::Cp);
    judge(bench, size, "ls tar", times)?;

    if !is_missing(ZSTD) {
        let zst = bench.path("code.tar.zst");
        let args = [words(["-q", "-o"]), vec![zst.clone().into(), tar.clone().into()]].concat();
        run(Path::new(ZSTD), &args)?;
        let commands = vec![
            ours(bench, &ls, &zst),
            command(Who::Zstd, "zstd -dc", Path::new(ZSTD), &words(["-dc"]), &zst),
        ];
        let result = bench.compare(operation, "tar.zst file", size, commands, |_, _| Ok(None))?;
        let cpu = result.ours().zip(result.of(Who::Zstd)).map(|(ours, zstd)| ours.cpu_ratio(zstd));
        judge(bench, size, "ls tar.zst", cpu)?;
    }
    remove(&[tar])?;
    if !is_missing(DPKG_DEB) {
        package(bench, operation, size, &tree)?;
    }
    Ok(())
}

/// A Debian package, compressed by xz.
fn package(
    bench: &mut Bench,
    operation: &Operation,
    size: u64,
    tree: &Path,
) -> Result<(), Box<dyn Error>> {
    let deb = bench.path("code.deb");
    let args = words(["--root-owner-group", "-Zxz", "-z1", "--build"]);
    run(Path::new(DPKG_DEB), &[args, vec![tree.into(), deb.clone().into()]].concat())?;
    let theirs = "dpkg-deb --fsys-tarfile";
    let commands = vec![
        ours(bench, &words(["verify"]), &deb),
        ours(bench, &words(["ls"]), &deb),
        command(Who::Cp, theirs, Path::new(DPKG_DEB), &words(["--fsys-tarfile"]), &deb),
    ];
    let result = bench.compare(operation, "deb file", size, commands, |_, _| Ok(None))?;
    let cpu = result.ours().zip(result.of(Who::Cp)).map(|(ours, theirs)| ours.cpu_ratio(theirs));
    judge(bench, size, "verify deb", cpu)
}

pub(super) fn many(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let is_few = size < LIBRARY;
    let directory = bench.path("directory");
    fs::create_dir(&directory)?;
    for number in 0..if is_few { FEW } else { FILES } {
        fs::copy(OBJECT, directory.join(format!("{number}.o")))?;
    }
    let commands = vec![
        ours(bench, &words(["ls"]), &directory),
        command(Who::Cp, "grep -rc", Path::new(GREP), &words(["-rc", "ELF"]), &directory),
    ];
    let result = bench.compare(operation, "directory", size, commands, |_, _| Ok(None))?;
    let time = result.ours().map(|ours| ours.time() * 1e3);
    judge(bench, size, "ls files", time)?;
    fs::remove_dir_all(&directory)?;

    if is_missing(PYTHON) {
        return Ok(());
    }
    let image = bench.path("image");
    bench.code.write(&image, 0, SMALL)?;
    let image = bundle(bench, "small", &[image], &[])?;
    let wheel = bench.path("code-1-py3-none-any.whl");
    let members = if is_few { FEW } else { MEMBERS };
    let mut args: Vec<OsString> = vec!["-c".into(), WHEEL.into(), wheel.clone().into()];
    args.extend([image.into(), members.to_string().into()]);
    run(Path::new(PYTHON), &args)?;
    let matched = words(["match", "--gpu", GPUS[0]]);
    let commands = vec![
        ours(bench, &matched, &wheel),
        ours(bench, &words(["ls"]), &wheel),
        command(Who::Python, "unzip -p", Path::new(UNZIP), &words(["-p"]), &wheel),
    ];
    let result = bench.compare(operation, "wheel", size, commands, |_, _| Ok(None))?;
    let memory = result.ours().map(Figures::memory);
    judge(bench, size, "match members memory", memory)
}

/// The targets are for inputs of this size.
fn judge(
    bench: &mut Bench,
    size: u64,
    key: &str,
    figure: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    match size {
        LIBRARY => bench.judge(key, figure),
        _ => Ok(()),
    }
}

/// The files of a package: a bundle with code for ten GPUs, and what Debian's packages have beside their files.
fn tree(bench: &Bench, size: u64) -> Result<PathBuf, Box<dyn Error>> {
    let images = images(bench, size)?;
    let code = bundle(bench, "bundle", &images, &[])?;
    remove(&images)?;
    let tree = bench.path("tree");
    fs::create_dir_all(tree.join("usr/lib"))?;
    fs::create_dir(tree.join("DEBIAN"))?;
    fs::write(tree.join("DEBIAN/control"), CONTROL)?;
    fs::rename(code, tree.join("usr/lib/code.hipfb"))?;
    Ok(tree)
}
