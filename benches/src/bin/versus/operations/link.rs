//! The offload link step without the work of the compiler and the host linker, which do nothing.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

use object_edit::NewSections;
use offload_benches::{llvm, run};
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};

use super::{Done, Operation};
use crate::bench::{Bench, hash_file};
use crate::record::{Command, Figures, Who};

const TOOL: &str = "clang-linker-wrapper";
const GPUS: [&str; 4] = ["gfx906", "gfx90a", "gfx942", "gfx1100"];
const OBJECTS: u64 = 200;

/// Links `clang --no-default-config -o IMAGE ... INPUT...`: the image is what the inputs are.
const CLANG: &str = "#!/bin/sh\nimage=$3\nfor word; do case $word in *.o) cat \"$word\" >>\"$image\";; esac; done\n";
/// Links `ld -o PROGRAM REGISTRATION ...`: the program is the object that registers the images.
const LINKER: &str = "#!/bin/sh\nexec cp \"$3\" \"$2\"\n";
const NOTHING: &str = "/bin/true";

/// Objects with code for four GPUs each, linked.
pub(super) fn link(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let object = object(bench, size / OBJECTS / GPUS.len() as u64)?;
    let mut args: Vec<OsString> =
        vec!["--host-triple=x86_64-unknown-linux-gnu".into(), "-o".into()];
    args.push(bench.path("out").into());
    let mut linker = OsString::from("--linker-path=");
    linker.push(bench.path("linker"));
    args.push(linker);
    for number in 0..OBJECTS {
        let path = bench.path(&format!("unit{number}.o"));
        fs::write(&path, &object)?;
        args.push(path.into());
    }
    script(&bench.path("linker"), LINKER)?;
    let tools = [(Who::Ours, TOOL, Some(bench.ours(TOOL))), (Who::Llvm, "LLVM 22's", llvm(TOOL))];
    let (mut commands, mut bundles) = (Vec::new(), Vec::new());
    for (who, name, tool) in tools {
        let program = match tool {
            Some(tool) => {
                let place = bench.path(&format!("{who:?}"));
                let program = beside_clang(&place, &tool)?;
                run(&program, &args)?;
                bundles.extend(bundle(&bench.path("out"), &bench.path("bundle"))?);
                nothing(&program.with_file_name("clang"))?;
                program
            }
            None => PathBuf::new(),
        };
        commands.push(Command { who, name: name.to_owned(), program, args: args.clone() });
    }
    bundles.dedup();
    if bundles.len() > 1 {
        return Err("the programs register other images".into());
    }
    nothing(&bench.path("linker"))?;
    let result = bench.compare(operation, "", size, commands, |_, _| Ok(None))?;
    let llvm = result.of(Who::Llvm).map(Figures::memory);
    let ours = result.ours().map(Figures::memory);
    let (time, memory) = (result.faster_than(Who::Llvm), ours.zip(llvm).map(|(a, b)| a / b));
    if operation.sizes.last() == Some(&size) {
        bench.judge("link llvm", time)?;
        bench.judge("link memory", memory)?;
    }
    Ok(())
}

/// Returns a host object with an offload binary for each GPU in the section that clang makes.
fn object(bench: &Bench, code: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut package = Vec::new();
    for (gpu, arch) in GPUS.iter().enumerate() {
        let path = bench.path("code");
        bench.code.write(&path, gpu, code)?;
        let image = fs::read(path)?;
        let entry = ImageEntry::new(image.len() as u64)
            .with_offload_kind(OffloadKind::HIP)
            .with_string("triple", "amdgcn-amd-amdhsa")
            .with_string("arch", *arch);
        let layout = offload_binary::layout(FormatVersion::V1, &[entry])?;
        package.extend(layout.to_vec(&[&image])?);
    }
    let host = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/host.o"))?;
    let embedding = NewSections::offloading(&host, package.len() as u64)?;
    let mut object = Vec::new();
    embedding.write_to(&mut object, [&package[..]])?;
    Ok(object)
}

/// Puts a tool where it finds the stand-in for clang beside it, and says where that is.
fn beside_clang(place: &Path, tool: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let programs = place.join("bin");
    fs::create_dir_all(&programs)?;
    script(&programs.join("clang"), CLANG)?;
    let copy = programs.join(TOOL);
    fs::copy(tool, &copy)?;
    // LLVM's tools look for their library there, and for the bundler beside themselves.
    if let Some(bundler) = llvm("clang-offload-bundler") {
        let libraries = bundler.with_file_name("../lib");
        symlink(bundler, programs.join("clang-offload-bundler"))?;
        symlink(libraries, place.join("lib"))?;
    }
    Ok(copy)
}

fn script(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

/// Has a program do nothing.
fn nothing(program: &Path) -> Result<(), Box<dyn Error>> {
    fs::remove_file(program)?;
    Ok(symlink(NOTHING, program)?)
}

/// A hash of the bundle that the program registers.
fn bundle(program: &Path, to: &Path) -> Result<Option<u64>, Box<dyn Error>> {
    let Some(objcopy) = llvm("llvm-objcopy") else { return Ok(None) };
    let mut section = OsString::from("--dump-section=.hip_fatbin=");
    section.push(to);
    let done =
        process::Command::new(objcopy).arg(section).arg(program).arg("/dev/null").status()?;
    if done.success() { hash_file(to).map(Some) } else { Err("the program has no bundle".into()) }
}
