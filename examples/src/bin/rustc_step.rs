//! The offload step of a compiler such as rustc, for any number of GPUs, without LLVM in its process: device code is packed, linked
//! by `rust-lld` or assembled by `ptxas`, and registered with the names of its kernels.
//!
//! `rustc_step DIRECTORY HOST-TRIPLE RUST-LLD PTXAS KERNEL[,KERNEL]... GPU=FILE...`
//!
//! FILE is bitcode for a GPU of AMD, such as gfx90a, and PTX for one of NVIDIA, such as sm_80. The host knows a kernel by the
//! address of its variable `.KERNEL.region_id`. DIRECTORY gets the package `device.bin`, which other linkers of offloading
//! programs take as well, and the objects `entries.o` and `registration.o`, for the host linker.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_examples::{Error, exit, read, write};
use offload_link::{
    CommandLinker, Inputs, LldOptions, Plan, PlanOptions, PtxasOptions, RegisterOptions,
};
use wrapper_ir::{Abi, Entries, OffloadEntry, Target};

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    exit("rustc_step", step(&words))
}

fn step(words: &[OsString]) -> Result<(), Error> {
    let [directory, host, lld, ptxas, kernels, codes @ ..] = words else {
        let usage = "DIRECTORY HOST-TRIPLE RUST-LLD PTXAS KERNEL[,KERNEL]... GPU=FILE...";
        return Err(format!("usage: rustc_step {usage}").into());
    };
    let directory = Path::new(directory);
    let host = host.to_str().ok_or("a triple is text")?;
    let package = pack(codes)?;
    write(&directory.join("device.bin"), |file| Ok(file.write_all(&package)?))?;

    let mut inputs = Inputs::new();
    inputs.add("device.bin", &package)?;
    let plan = Plan::new(&inputs, &PlanOptions::default())?;
    let mut linker = CommandLinker::new()
        .with_lld(lld, LldOptions::new().with_flavor(true))
        .with_ptxas(ptxas, PtxasOptions::new());
    let images = plan.link(&mut linker)?;
    let registration = images.object(&RegisterOptions::new(host))?.ok_or("no device code")?;
    write(&directory.join("registration.o"), |file| Ok(file.write_all(&registration)?))?;

    let kernels = kernels.to_str().ok_or("names are text")?.split(',');
    let kernels: Vec<_> = kernels.map(|name| (name, format!(".{name}.region_id"))).collect();
    let kernels = kernels.iter().map(|(name, symbol)| OffloadEntry::kernel(*name, symbol));
    let module = Entries::new(OffloadKind::OPENMP, Abi::Current, Target::new(host)?)
        // Clang and rustc do not retain theirs, and the registration code is for such.
        .with_retain(false)
        .with_entries(kernels)
        .module()?;
    let entries = module.object()?;
    write(&directory.join("entries.o"), |file| Ok(entries.write_to(file, [&[][..]; 0])?))
}

/// Puts device code into offload binaries, one for each GPU, as LLVM 22 writes them.
fn pack(codes: &[OsString]) -> Result<Vec<u8>, Error> {
    let mut package = Vec::new();
    for word in codes {
        let word = word.to_str().ok_or("names are text")?;
        let (gpu, file) = word.split_once('=').ok_or("expected GPU=FILE")?;
        let code = read(file.as_ref())?;
        let (kind, triple) = if gpu.starts_with("sm_") {
            (ImageKind::PTX, "nvptx64-nvidia-cuda")
        } else {
            (ImageKind::BITCODE, "amdgcn-amd-amdhsa")
        };
        let entry = ImageEntry::new(code.len() as u64)
            .with_image_kind(kind)
            .with_offload_kind(OffloadKind::OPENMP)
            .with_string("triple", triple)
            .with_string("arch", gpu);
        package.extend(offload_binary::layout(FormatVersion::V1, &[entry])?.to_vec(&[&code])?);
    }
    Ok(package)
}
