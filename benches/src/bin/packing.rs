//! How fast `llvm-offload-binary` packs and extracts 1 GiB, and how much memory that takes, beside `cp` and LLVM's
//! tool where it is installed: `cargo run --release -p offload-benches --bin packing`. It takes 3 GiB where `TMPDIR`
//! points; on a disk, what else is written there disturbs it.
//!
//! Each row is the median of alternating runs in one go; compare ratios, not milliseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use offload_benches::{Measured, build, child, concatenate, heading, llvm, machine_code, measure};

const RUNS: usize = 7;
const IMAGES: u64 = 8;
const SIZE: u64 = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    if child()? {
        return Ok(());
    }
    let ours = build("llvm-offload-binary")?;
    let theirs = llvm("llvm-offload-binary");
    let place = tempfile::tempdir()?;
    let images = make_images(place.path())?;
    let cp = PathBuf::from("/bin/cp");
    let path = |name: &str| place.path().join(name);
    let package = path("package");
    // Every command starts without outputs and with nothing left to write to the disk.
    let prepare = || {
        for name in ["out", "copy", "package-1"] {
            let _ = fs::remove_file(path(name));
        }
        nix::unistd::sync();
        Ok(())
    };

    heading(RUNS);
    println!("\npacking {IMAGES} images of machine code, 1 GiB together");
    let whole = path("whole");
    concatenate(&images, &whole)?;
    let specs = images.iter().zip(0..).map(|(image, n)| {
        let file = image.display();
        format!("--image=kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx{n},file={file}").into()
    });
    let pack: Vec<_> = ["-o".into(), path("out").into()].into_iter().chain(specs).collect();
    let copy = |from: &Path| vec![from.as_os_str().to_owned(), path("copy").into()];
    let mut commands: Vec<Measured<'_>> =
        vec![("cp", &cp, copy(&whole)), ("llvm-offload-binary", &ours, pack.clone())];
    commands
        .extend(theirs.iter().map(|tool| ("LLVM 22's llvm-offload-binary", &**tool, pack.clone())));
    measure(RUNS, &commands, prepare)?;
    fs::remove_file(&whole)?;

    println!("\nextracting one image of 1 GiB");
    let one = path("one.o");
    concatenate(&images, &one)?;
    for image in images {
        fs::remove_file(image)?;
    }
    let spec = format!("--image=triple=t,arch=x,file={}", one.display());
    let status = std::process::Command::new(&ours).arg("-o").arg(&package).arg(spec).status()?;
    if !status.success() {
        return Err("packing failed".into());
    }
    let filter = format!("--image=arch=x,file={}", path("out").display());
    let extract = vec![package.clone().into(), filter.into()];
    let mut commands: Vec<Measured<'_>> =
        vec![("cp", &cp, copy(&one)), ("llvm-offload-binary", &ours, extract.clone())];
    commands.extend(
        theirs.iter().map(|tool| ("LLVM 22's llvm-offload-binary", &**tool, extract.clone())),
    );
    measure(RUNS, &commands, prepare)?;
    Ok(())
}

fn make_images(place: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut images = Vec::new();
    for n in 0..IMAGES {
        let path = place.join(format!("image-{n}.o"));
        machine_code(&path, SIZE / IMAGES, usize::try_from(n)?)?;
        images.push(path);
    }
    Ok(images)
}
