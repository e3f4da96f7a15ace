//! Published wheels: listed, and thinned to one GPU. `pip` downloads them and the package `wheel`, once.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use super::{Done, Operation, ROCM_WHEEL};
use crate::bench::{Bench, UNZIP, hash_text};
use crate::record::{Command, Figures, Who};

const KEPT: &str = "gfx942";
/// The package that unpacks wheels and packs them again.
const WHEEL: &str = "wheel==0.48.0";
const INFLATED: &str = "Python's zipfile, the ELF members inflated";

/// Prints the members that start as ELF files do.
const ELF_MEMBERS: &str = r#"
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
print(*(name for name in wheel.namelist() if wheel.open(name).read(4) == b"\x7fELF"), sep="\n")
"#;
/// Inflates the members that arguments name.
const INFLATE: &str = r"
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for name in sys.argv[2:]:
    with wheel.open(name) as member:
        while member.read(1 << 20):
            pass
";
/// Prints what all members hold but the list of their hashes, which tools write in their own way.
const MEMBERS: &str = r#"
import sys, zipfile
members = (m for m in zipfile.ZipFile(sys.argv[1]).infolist() if not m.is_dir())
print(sorted((m.filename, m.file_size, m.CRC) for m in members if not m.filename.endswith(".dist-info/RECORD")))
"#;
/// Thins a wheel by way of its files, in the directory `$0`.
const BY_HAND: &str = r#"
set -e
unpack=$1 python=$2 offload=$3 wheel=$4 keep=$5 out=$6
shift 6
mkdir -p "$0/unpacked"
case $unpack in
    wheel) "$python" -m wheel unpack -d "$0/unpacked" "$wheel" ;;
    unzip) unzip -q "$wheel" -d "$0/unpacked/wheel" ;;
esac
cd "$0"/unpacked/*
"$offload" thin --in-place --keep "$keep" "$@"
"$python" -m wheel pack -d "$0" .
mv "$0"/*.whl "$out"
"#;

/// A wheel that anybody can download.
struct Published {
    requirement: &'static str,
    file: &'static str,
    size: u64,
    /// Bytes of its members.
    installed: u64,
    /// Members with device code.
    libraries: &'static [&'static str],
    /// The program that unpacks it: `wheel` refuses wheels whose RECORD has no hashes.
    unpack: &'static str,
}

const PUBLISHED: [Published; 3] = [
    Published {
        requirement: "jax-rocm7-plugin==0.10.2",
        file: "jax_rocm7_plugin-0.10.2-cp311-cp311-manylinux_2_27_x86_64.whl",
        size: 3_785_890,
        installed: 10_431_975,
        libraries: &[
            "jax_rocm7_plugin/_linalg.so",
            "jax_rocm7_plugin/_prng.so",
            "jax_rocm7_plugin/_solver.so",
        ],
        unpack: "wheel",
    },
    Published {
        requirement: "onnxruntime-rocm==1.22.2.post3",
        file: "onnxruntime_rocm-1.22.2.post3-cp311-cp311-manylinux_2_34_x86_64.whl",
        size: 56_872_045,
        installed: 571_973_059,
        libraries: &["onnxruntime/capi/libonnxruntime_providers_rocm.so"],
        unpack: "unzip",
    },
    Published {
        requirement: "cupy-rocm-7-0==14.2.0",
        file: "cupy_rocm_7_0-14.2.0-cp311-cp311-manylinux2014_x86_64.whl",
        size: ROCM_WHEEL,
        installed: 388_836_070,
        libraries: &[
            "cupy/cuda/cub.cpython-311-x86_64-linux-gnu.so",
            "cupy/cuda/thrust.cpython-311-x86_64-linux-gnu.so",
            "cupy/random/_generator_api.cpython-311-x86_64-linux-gnu.so",
        ],
        unpack: "wheel",
    },
];

/// The sizes of the wheels, by which the operations distinguish them.
pub(super) const SIZES: &[u64] = &[PUBLISHED[0].size, PUBLISHED[1].size, PUBLISHED[2].size];

impl Published {
    /// The wheel's name in tables.
    fn name(&self) -> String {
        let name = self.requirement.replace("==", " ");
        format!("{name}, {:.0} MB installed", self.installed as f64 / 1e6)
    }
}

pub(super) fn list(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let Some(Wheel { published, path, python, .. }) = wheel(bench, size)? else { return Ok(()) };
    let members = output(&python, &[&["-c".into(), ELF_MEMBERS.into()], &[path.clone().into()]])?;
    let mut inflate: Vec<OsString> = vec!["-c".into(), INFLATE.into(), path.clone().into()];
    inflate.extend(members.lines().map(Into::into));
    let listed = bench.ours("offload");
    let listed = output(&listed, &[&["ls".into(), "--json".into(), path.clone().into()]])?;
    for library in published.libraries {
        if !listed.lines().any(|line| line.contains(library) && line.contains(KEPT)) {
            return Err(format!("offload ls: no code for {KEPT} in {library}").into());
        }
    }
    let unzip = vec!["-p".into(), path.clone().into()];
    let commands = vec![
        bench.our("offload ls", "offload", vec!["ls".into(), path.into()]),
        theirs(INFLATED, &python, inflate),
        theirs("unzip -p, all members inflated", Path::new(UNZIP), unzip),
    ];
    let result = bench.compare(operation, &published.name(), size, commands, |_, _| Ok(None))?;
    let inflated = result.ours().zip(result.named(INFLATED));
    let cpu = inflated.map(|(ours, inflated)| ours.cpu_ratio(inflated));
    if size == ROCM_WHEEL {
        bench.judge("ls wheel", cpu)?;
    }
    Ok(())
}

pub(super) fn thin(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let Some(wheel) = wheel(bench, size)? else { return Ok(()) };
    let Wheel { published, path, python, tool } = &wheel;
    let out = bench.path("out.whl");
    let words = ["thin", "--keep", KEPT, "-o"].map(OsString::from);
    let ours = [&words[..], &[out.clone().into(), path.into()]].concat();
    let by_hand = by_hand(bench, &wheel, &out);
    let what = published.name();
    let commands = vec![bench.our("offload thin", "offload", ours), by_hand];
    let has_tool = tool.is_some();
    let result = bench.compare(operation, &what, size, commands, |_, _| {
        let args = ["-c".into(), MEMBERS.into(), out.clone().into()];
        Ok(Some(hash_text(&output(python, &[&args])?)))
    })?;
    let ours = result.ours();
    let (cpu, memory) = (ours.map(Figures::cpu), ours.map(Figures::memory));
    let less = ours.zip(result.of(Who::Python)).map(|(ours, theirs)| theirs.cpu_ratio(ours));
    if !has_tool {
        println!("  {WHEEL} cannot be installed by pip");
    }
    if size == ROCM_WHEEL {
        bench.judge("thin wheel time", cpu)?;
        bench.judge("thin wheel memory", memory)?;
        bench.judge("thin wheel by hand", less)?;
    }
    Ok(())
}

/// The command that unpacks a wheel, thins the libraries with device code, and packs it again.
fn by_hand(bench: &Bench, wheel: &Wheel, out: &Path) -> Command {
    let Wheel { published, path, python, tool } = wheel;
    let name = match published.unpack {
        "wheel" => "wheel unpack, offload thin --in-place, wheel pack",
        _ => "unzip, offload thin --in-place, wheel pack",
    };
    let Some(tool) = tool else { return theirs(name, Path::new(""), Vec::new()) };
    let mut path_of_tool = OsString::from("PYTHONPATH=");
    path_of_tool.push(tool);
    let mut args: Vec<OsString> = vec![path_of_tool, "/bin/sh".into(), "-c".into(), BY_HAND.into()];
    args.extend([bench.path("out-files").into(), published.unpack.into(), python.into()]);
    args.extend([bench.ours("offload").into(), path.into(), KEPT.into(), out.into()]);
    args.extend(published.libraries.iter().map(Into::into));
    theirs(name, Path::new("/usr/bin/env"), args)
}

fn theirs(name: &str, program: &Path, args: Vec<OsString>) -> Command {
    Command { who: Who::Python, name: name.to_owned(), program: program.to_owned(), args }
}

/// A wheel, and the tools to handle it by hand.
struct Wheel {
    published: &'static Published,
    path: PathBuf,
    /// The interpreter itself, not a script that finds one.
    python: PathBuf,
    /// The directory of the package `wheel`.
    tool: Option<PathBuf>,
}

/// Downloads the wheel of this size. None, after a line that says so, where this is not possible.
fn wheel(bench: &Bench, size: u64) -> Result<Option<Wheel>, Box<dyn Error>> {
    let Some(published) = PUBLISHED.iter().find(|published| published.size == size) else {
        return Err("no such wheel".into());
    };
    let asked = ["-c", "import sys; print(sys.executable)"].map(OsString::from);
    let Ok(python) = output(Path::new("python3"), &[&asked]) else {
        println!("\n  not measured: no python3");
        return Ok(None);
    };
    let python = PathBuf::from(python.trim_end());
    let place = bench.ours("versus-wheels");
    let stored = place.join(published.file);
    if !stored.exists() {
        let platform = published.file.trim_end_matches(".whl").rsplit('-').next();
        let mut args = pip("download");
        args.extend(["--only-binary", ":all:", "--python-version", "3.11"].map(Into::into));
        args.extend(["--platform".into(), platform.unwrap_or_default().into()]);
        args.extend(["--dest".into(), place.clone().into(), published.requirement.into()]);
        if output(&python, &[&args]).is_err() {
            println!("\n  not measured: pip cannot download {}", published.requirement);
            return Ok(None);
        }
    }
    if fs::metadata(&stored)?.len() != size {
        return Err(format!("{} has another size", stored.display()).into());
    }
    let path = bench.path(published.file);
    fs::copy(&stored, &path)?;
    let tool = place.join(WHEEL);
    if !tool.exists() {
        let mut args = pip("install");
        args.extend(["--target".into(), tool.clone().into(), WHEEL.into()]);
        // The tool depends on another package.
        args.retain(|arg| arg != "--no-deps");
        if output(&python, &[&args]).is_err() && tool.exists() {
            fs::remove_dir_all(&tool)?;
        }
    }
    let tool = Some(tool).filter(|tool| tool.exists());
    Ok(Some(Wheel { published, path, python, tool }))
}

/// Arguments of Python for a command of `pip`.
fn pip(command: &str) -> Vec<OsString> {
    let words = ["-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps"];
    words.map(Into::into).to_vec()
}

/// Returns the output of a program.
fn output(program: &Path, args: &[&[OsString]]) -> Result<String, Box<dyn Error>> {
    let output = Process::new(program).args(args.concat()).output()?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("{} failed", program.display()).into())
    }
}
