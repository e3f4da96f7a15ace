//! Images into code that registers them.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use offload_benches::llvm;

use super::{Done, GIB, LIBRARY, MIB, Operation};
use crate::bench::{Bench, hash_text, theirs};
use crate::record::{Command, Who};

const WRAPPER: &str = "llvm-offload-wrapper";

pub(super) fn bitcode(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let image = image(bench, size)?;
    for kind in ["openmp", "hip"] {
        let args = args(kind, &bench.path("out.bc"), &image);
        let commands = vec![
            bench.our(WRAPPER, WRAPPER, args.clone()),
            theirs("LLVM 22's llvm-offload-wrapper", WRAPPER, args),
            bench.cp(&image),
        ];
        let verify = |bench: &Bench, command: &Command| match command.who {
            Who::Ours | Who::Llvm if size <= MIB => image_in_bitcode(&bench.path("out.bc")),
            _ => Ok(None),
        };
        let result = bench.compare(operation, kind, size, commands, verify)?;
        if size == LIBRARY {
            bench.judge_copy(&format!("{kind} bitcode"), &result)?;
        }
    }
    Ok(())
}

pub(super) fn object(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let image = image(bench, size)?;
    for kind in ["openmp", "hip"] {
        let wrap = [vec!["wrap".into()], args(kind, &bench.path("out.o"), &image)].concat();
        let both = both_steps(&args(kind, &bench.path("out.bc"), &image), &bench.path("out.o"));
        let commands = vec![bench.our("offload wrap", "offload", wrap), both, bench.cp(&image)];
        let verify = |bench: &Bench, command: &Command| match command.who {
            Who::Ours | Who::Llvm if size < GIB => image_in_object(&image, &bench.path("out.o")),
            _ => Ok(None),
        };
        let result = bench.compare(operation, kind, size, commands, verify)?;
        if size == LIBRARY {
            bench.judge_copy(&format!("{kind} object"), &result)?;
        }
    }
    Ok(())
}

fn image(bench: &Bench, size: u64) -> Result<PathBuf, Box<dyn Error>> {
    let image = bench.path("image");
    bench.code.write(&image, 5, size)?;
    Ok(image)
}

fn args(kind: &str, output: &Path, image: &Path) -> Vec<OsString> {
    let kind = format!("--kind={kind}").into();
    let triple = "--triple=x86_64-unknown-linux-gnu".into();
    vec![kind, triple, "-o".into(), output.into(), image.into()]
}

/// One command of the shell for the two steps of LLVM.
fn both_steps(args: &[OsString], object: &Path) -> Command {
    let script = r#"wrapper=$1 llc=$2 object=$3 && shift 3 && "$wrapper" "$@" &&
        exec "$llc" -filetype=obj -relocation-model=pic -o "$object" "$4""#;
    let tools = llvm(WRAPPER).zip(llvm("llc"));
    let program = if tools.is_some() { "/bin/sh" } else { "" };
    let (wrapper, llc) = tools.unwrap_or_default();
    let mut words = vec!["-c".into(), script.into(), "sh".into()];
    words.extend([wrapper.into_os_string(), llc.into_os_string(), object.into()]);
    words.extend_from_slice(args);
    let name = "LLVM 22's llvm-offload-wrapper, then llc".to_owned();
    Command { who: Who::Llvm, name, program: program.into(), args: words }
}

/// A hash of the image: the longest string in the module as text.
fn image_in_bitcode(module: &Path) -> Result<Option<u64>, Box<dyn Error>> {
    let Some(llvm_dis) = llvm("llvm-dis") else { return Ok(None) };
    let output = process::Command::new(llvm_dis).arg(module).args(["-o", "-"]).output()?;
    if !output.status.success() {
        return Err("llvm-dis does not read the module".into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split('"').max_by_key(|string| string.len()).map(hash_text))
}

/// Zero if the object holds the image.
fn image_in_object(image: &Path, object: &Path) -> Result<Option<u64>, Box<dyn Error>> {
    const ALIGNED: usize = 8;
    let (image, object) = (fs::read(image)?, fs::read(object)?);
    let places = (0..object.len()).step_by(ALIGNED);
    let mut rest = places.filter_map(|at| object.get(at..));
    if rest.any(|rest| rest.starts_with(&image)) {
        Ok(Some(0))
    } else {
        Err("the object does not hold the image".into())
    }
}
