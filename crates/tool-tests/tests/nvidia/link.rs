//! The link step for CUDA by an unmodified clang: programs register the same fatbinaries as with LLVM's linker wrapper and
//! NVIDIA's `fatbinary`, byte for byte.

use std::fs;
use std::os::unix::fs::symlink;

use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_link::{
    CommandLinker, Inputs, LinkFiles, Plan, PlanOptions, PtxasOptions, RegisterOptions,
};

use crate::common::{llvm, new_command, nvidia, stderr, tool};

use crate::edit::RIG;
use crate::edit_rig::cuda::Units;
use crate::edit_rig::observe::{Seen, observe};
use crate::edit_rig::settle;
use crate::edit_rig::zoo::{Builder, Units as _};

/// Returns what a program says and registers, without its build ID and without addresses of its host code.
fn facts(seen: &Seen) -> String {
    let text = format!("{}{}", seen.answers, seen.log);
    let lines = text.lines().filter(|line| !line.starts_with("build ID "));
    let lines = lines.map(|line| match line.split_once(" at ") {
        Some((start, end)) => {
            [start, end.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit())].concat()
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn programs_register_the_same_fatbinaries() {
    let ours = tempfile::tempdir().unwrap();
    let tool = tool("clang-linker-wrapper");
    symlink(tool, ours.path().join("clang-linker-wrapper")).unwrap();
    let links: Vec<_> = Units::links().iter().filter(|link| link.units == Units::RdcNew).collect();
    assert_eq!(links.len(), 2);
    for link in links {
        let theirs = RIG.file(link.name);
        let path = ours.path().join(link.name);
        let builder = Builder { place: theirs.place.clone() };
        let mut step = builder.link_step(link);
        step.insert(1, format!("-B{}", ours.path().display()));
        let at = step.iter().rposition(|word| word == "-o").unwrap() + 1;
        step[at] = path.to_str().unwrap().to_owned();
        settle(&builder.step(&step));
        let seen = observe(theirs, &path).unwrap();
        assert!(seen.log.contains(": registered\n"), "{}", seen.log);
        let before = &RIG.before(theirs).seen;
        assert_eq!(facts(&seen), facts(before), "{}", link.name);
        assert!(seen.containers == before.containers, "{}", link.name);
        assert!(seen.containers.iter().all(|fatbinary| !fatbinary.is_empty()));
    }
}

const PTX: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 values)
{
    ret;
}
";

/// PTX for two GPUs becomes two images by `ptxas`, with the arguments that clang gives it, and one fatbinary.
#[test]
fn ptxas_makes_images_of_ptx() {
    let entry = |arch| {
        ImageEntry::new(PTX.len() as u64)
            .with_image_kind(ImageKind::PTX)
            .with_offload_kind(OffloadKind::CUDA)
            .with_string("triple", "nvptx64-nvidia-cuda")
            .with_string("arch", arch)
    };
    let layout = offload_binary::layout(FormatVersion::V2, &[entry("sm_80"), entry("sm_90a")]);
    let package = layout.unwrap().to_vec(&[PTX.as_bytes(); 2]).unwrap();
    let mut inputs = Inputs::new();
    inputs.add("kernels.offload", &package).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    let mut linker = CommandLinker::new().with_ptxas(nvidia("ptxas"), PtxasOptions::new());
    let images = plan.link(&mut linker).unwrap();
    let options = RegisterOptions::new("x86_64-unknown-linux-gnu");
    let registered = images.register(&options).unwrap();
    let [container] = registered[0].containers() else { panic!("{registered:?}") };
    let container = container.to_vec(|_| &[]).unwrap();
    let (_, fatbinary) = nv_fatbin::fatbins(&container).next().unwrap().unwrap();
    let found: Vec<_> =
        fatbinary.entries().map(|entry| entry.unwrap().architecture().to_string()).collect();
    assert_eq!(found, ["sm_90a", "sm_80"]);
    for image in images.iter() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("image.cubin");
        fs::write(&path, image.parts.to_vec(|_| &[]).unwrap()).unwrap();
        let output = new_command(nvidia("cuobjdump")).arg("-elf").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(".text.scale"), "{said}");
    }
}

#[test]
fn ptxas_gets_the_arguments_that_clang_gives() {
    let place = tempfile::tempdir().unwrap();
    let sdk = place.path().join("sdk");
    fs::create_dir_all(sdk.join("bin")).unwrap();
    symlink(nvidia("ptxas"), sdk.join("bin/ptxas")).unwrap();
    fs::create_dir_all(sdk.join("include")).unwrap();
    fs::write(sdk.join("include/cuda.h"), "#define CUDA_VERSION 12090\n").unwrap();
    fs::create_dir_all(sdk.join("nvvm/libdevice")).unwrap();
    fs::write(place.path().join("code.s"), PTX).unwrap();
    let entry = ImageEntry::new(PTX.len() as u64)
        .with_image_kind(ImageKind::PTX)
        .with_offload_kind(OffloadKind::CUDA)
        .with_string("triple", "nvptx64-nvidia-cuda")
        .with_string("arch", "sm_90a");
    let layout = offload_binary::layout(FormatVersion::V2, &[entry]).unwrap();
    let package = layout.to_vec(&[PTX.as_bytes()]).unwrap();
    let mut inputs = Inputs::new();
    inputs.add("kernels.offload", &package).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    let code = ["code.s".into()];
    let files = LinkFiles::new(&code, "image".as_ref());
    for level in [0, 2, 3] {
        let options = PtxasOptions::new().with_level(level);
        let mut ours = options.arguments(&plan.groups()[0], files).unwrap();
        // Clang assembles for a link.
        ours.push("-c".into());
        let output = new_command(llvm("clang"))
            .args(["-###", "--target=nvptx64-nvidia-cuda", "-march=sm_90a", "-c", "code.s"])
            .args([&format!("--cuda-path={}", sdk.display()), &format!("-O{level}"), "-o", "image"])
            .current_dir(place.path())
            .output()
            .unwrap();
        let shown = stderr(&output);
        let words = shown.lines().last().unwrap().trim().trim_matches('"').split("\" \"");
        assert_eq!(ours, words.skip(1).collect::<Vec<_>>());
    }
}
