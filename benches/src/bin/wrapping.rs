//! How fast 150 MB of device code become code that registers it, and how much memory that takes, beside `cp` and
//! LLVM's tools where they are installed: `cargo run --release -p offload-benches --bin wrapping`. LLVM takes two steps
//! to an object, `llvm-offload-wrapper` and `llc`. It takes 1 GiB where `TMPDIR` points; on a disk, what else is written
//! there disturbs it.
//!
//! Each row is the median of alternating runs in one go; compare ratios, not milliseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use offload_benches::{Measured, build, child, heading, llvm, machine_code, measure};

const RUNS: usize = 7;
const SIZE: u64 = 150_000_000;
const TRIPLE: &str = "--triple=x86_64-unknown-linux-gnu";

fn main() -> Result<(), Box<dyn Error>> {
    if child()? {
        return Ok(());
    }
    let (offload, drop_in) = (build("offload")?, build("llvm-offload-wrapper")?);
    let (theirs, llc) = (llvm("llvm-offload-wrapper"), llvm("llc"));
    let (cp, sh) = (PathBuf::from("/bin/cp"), PathBuf::from("/bin/sh"));
    let place = tempfile::tempdir()?;
    let path = |name: &str| place.path().join(name);
    let arg = |name: &str| path(name).into_os_string();
    machine_code(&path("image"), SIZE, 0)?;
    // Every command starts without outputs and with nothing left to write to the disk.
    let prepare = || {
        for name in ["copy", "out.bc", "out.o"] {
            let _ = fs::remove_file(path(name));
        }
        nix::unistd::sync();
        Ok(())
    };
    let copy: Measured<'_> = ("cp", &cp, vec![arg("image"), arg("copy")]);

    heading(RUNS);
    for kind in ["openmp", "hip"] {
        println!("\none image of 150 MB for {kind}");
        let kind = format!("--kind={kind}");
        let tool = |output: &str| {
            vec![OsString::from(&kind), TRIPLE.into(), "-o".into(), arg(output), arg("image")]
        };
        let offload_wrap = |output: &str| [vec!["wrap".into()], tool(output)].concat();
        let mut commands: Vec<Measured<'_>> = vec![
            copy.clone(),
            ("llvm-offload-wrapper, bitcode", &drop_in, tool("out.bc")),
            ("offload wrap, object", &offload, offload_wrap("out.o")),
        ];
        if let (Some(theirs), Some(llc)) = (&theirs, &llc) {
            commands.push(("LLVM 22's llvm-offload-wrapper, bitcode", theirs, tool("out.bc")));
            let both = both_steps(theirs, llc, &tool("out.bc"), &path("out.o"));
            commands.push(("LLVM 22's, then llc, object", &sh, both));
        }
        measure(RUNS, &commands, prepare)?;
    }
    Ok(())
}

/// One command of the shell for the two steps of LLVM.
fn both_steps(wrapper: &Path, llc: &Path, args: &[OsString], object: &Path) -> Vec<OsString> {
    let script = r#"wrapper=$1 llc=$2 object=$3 && shift 3 && "$wrapper" "$@" &&
        exec "$llc" -filetype=obj -relocation-model=pic -o "$object" "$4""#;
    let mut command = vec!["-c".into(), script.into(), "sh".into()];
    command.extend([wrapper, llc, object].map(|path| path.as_os_str().to_owned()));
    command.extend_from_slice(args);
    command
}
