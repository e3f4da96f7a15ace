//! Inputs, made here: offload binaries, alone, in archives and in objects.

use std::convert::Infallible;

use hda_archive::{Member, write_archive};
use object_edit::NewSections;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_link::{DeviceLinker, Group, Inputs, Parts, Plan, PlanOptions};
use samples::elf::{SymbolList, with_symbols};

pub(crate) const AMD: &str = "amdgcn-amd-amdhsa";
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";

/// Returns an offload binary with an image for each arch, which is called after it.
pub(crate) fn package(kind: OffloadKind, triple: &str, archs: &[&str]) -> Vec<u8> {
    let mut all = Vec::new();
    for arch in archs {
        let entry = ImageEntry::new(arch.len() as u64)
            .with_image_kind(ImageKind::BITCODE)
            .with_offload_kind(kind)
            .with_string("arch", *arch)
            .with_string("triple", triple);
        let layout = offload_binary::layout(FormatVersion::V1, &[entry]).unwrap();
        all.extend(layout.to_vec(&[arch.as_bytes()]).unwrap());
    }
    all
}

pub(crate) fn hip(archs: &[&str]) -> Vec<u8> {
    package(OffloadKind::HIP, AMD, archs)
}

pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_archive(&mut bytes, members.iter().map(|(name, data)| Member::new(*name, *data)))
        .unwrap();
    bytes
}

/// Returns an ELF object that carries an offload binary as clang puts it there.
pub(crate) fn object(package: &[u8]) -> Vec<u8> {
    let host = samples::example("host.o");
    let embedding = NewSections::offloading(&host, package.len() as u64).unwrap();
    let mut object = Vec::new();
    embedding.write_to(&mut object, [package]).unwrap();
    object
}

/// Returns an object with code for `gfx90a`, both with these symbols.
pub(crate) fn offloading(host: SymbolList<'_>, device: SymbolList<'_>) -> Vec<u8> {
    with_code(host, &[("gfx90a", &with_symbols(false, device))])
}

/// Returns an object with these symbols and code for these targets.
pub(crate) fn with_code(host: SymbolList<'_>, codes: &[(&str, &[u8])]) -> Vec<u8> {
    let package = codes.iter().flat_map(|(arch, code)| {
        let entry = ImageEntry::new(code.len() as u64)
            .with_offload_kind(OffloadKind::HIP)
            .with_string("arch", *arch)
            .with_string("triple", AMD);
        let layout = offload_binary::layout(FormatVersion::V1, &[entry]).unwrap();
        layout.to_vec(&[*code]).unwrap()
    });
    let package: Vec<u8> = package.collect();
    let host = with_symbols(false, host);
    let embedding = NewSections::offloading(&host, package.len() as u64).unwrap();
    let mut object = Vec::new();
    embedding.write_to(&mut object, [&package[..]]).unwrap();
    object
}

/// Returns the images of a plan, each with the names of its inputs, as one text: `gfx90a: a lib(b)`.
pub(crate) fn images(plan: &Plan<'_>) -> Vec<String> {
    let image = |group: &Group<'_>| {
        let inputs = group.inputs().iter().map(|input| format!(" {}", input.code()));
        format!("{}:{}", group.target().arch(), inputs.collect::<String>())
    };
    plan.groups().iter().map(image).collect()
}

/// Returns the images of these inputs, and the code that is in none.
pub(crate) fn planned(files: &[(&str, &[u8])], extract: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut inputs = Inputs::new();
    for (name, bytes) in files {
        inputs.add(name, bytes).unwrap();
    }
    let options = PlanOptions::default().with_should_extract(extract.iter().copied());
    let plan = Plan::new(&inputs, &options).unwrap();
    let left = plan
        .left_out()
        .iter()
        .map(|left| format!("{} {}: {}", left.code(), left.code().target().arch(), left.reason()));
    (images(&plan), left.collect())
}

/// A device linker that joins its inputs.
pub(crate) struct Join;

impl DeviceLinker for Join {
    type Error = Infallible;

    fn link(&mut self, group: &Group<'_>) -> Result<Parts, Infallible> {
        let inputs = group.inputs().iter().map(|input| input.code().bytes().unwrap());
        Ok(inputs.collect::<Vec<_>>().join(&b'+').into())
    }
}
