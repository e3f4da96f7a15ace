//! The last step of an offloading compiler: device images go into the host object, from which a linker takes them
//! again (`linker.rs`, or `clang-linker-wrapper`).
//!
//! `compiler FAT.o HOST [ENTRY-ID IMAGE]...`
//!
//! HOST is an object, or anything that `cc` compiles. An entry ID has offload kind, triple and target ID:
//! `hip-amdgcn-amd-amdhsa--gfx90a:xnack+`, `openmp-x86_64-pc-linux-gnu-`.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};

use bundle_format::EntryId;
use fat_object::{FileFormat, check_agreement};
use object_edit::NewSections;
use offload_binary::llvm::{self, Release};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_examples::{Error, about, exit, read, run, write};
use target_id::Triple;

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    exit("compiler", compile(&args))
}

fn compile(args: &[OsString]) -> Result<(), Error> {
    let [output, host, images @ ..] = args else {
        return Err("usage: compiler FAT.o HOST [ENTRY-ID IMAGE]...".into());
    };
    let (images, []) = images.as_chunks() else {
        return Err("expected an image after each entry ID".into());
    };
    let images = images.iter().map(|[id, file]| Image::read(id, Path::new(file)));
    let images = images.collect::<Result<Vec<_>, Error>>()?;
    let package = pack(&images)?;

    let host = Path::new(host);
    let object = host_object(host)?;
    // The new object is parts of the old one, the offload binary, and two tables: nothing is copied before it is
    // written.
    let embedding = NewSections::offloading(&object, package.len() as u64).map_err(about(host))?;
    write(Path::new(output), |file| Ok(embedding.write_to(file, [&package[..]])?))
}

/// An image for one target.
struct Image {
    bytes: Vec<u8>,
    image_kind: ImageKind,
    offload_kind: OffloadKind,
    triple: String,
    arch: String,
}

impl Image {
    fn read(id: &OsStr, file: &Path) -> Result<Image, Error> {
        let id = id.to_str().ok_or("entry IDs are UTF-8")?;
        let id = EntryId::parse(id)?;
        let bytes = read(file)?;
        // An image for another target is better refused here than by a runtime that finds no code.
        check_agreement(&id.target(), &bytes).map_err(about(file))?;
        let offload_kind = OffloadKind::from_target_id(&id.kind())
            .ok_or_else(|| format!("{id}: packages have no images of kind {}", id.kind()))?;
        Ok(Image {
            // The end of the name tells the kind of files whose contents do not.
            image_kind: llvm::image_kind(Release::Llvm22, &bytes, &file.to_string_lossy()),
            offload_kind,
            // Entry IDs spell out the empty environment, offload binaries do not.
            triple: Triple::parse(id.triple()).offload_binary_form().to_owned(),
            arch: id.target_id().to_owned(),
            bytes,
        })
    }

    /// With the strings in the order in which LLVM 22's tool stores these two. No reader cares, and who compares bytes
    /// is pleased; [`llvm::string_order`] tells the order of any keys.
    fn entry(&self) -> ImageEntry<'_> {
        ImageEntry::new(self.bytes.len() as u64)
            .with_image_kind(self.image_kind)
            .with_offload_kind(self.offload_kind)
            .with_string("arch", &self.arch)
            .with_string("triple", &self.triple)
    }
}

/// Returns an offload binary for each image, one after the other, as LLVM 22's `llvm-offload-binary` writes them. All
/// linkers read version 1, those of LLVM 23 as well, although that release writes [`FormatVersion::V2`].
fn pack(images: &[Image]) -> Result<Vec<u8>, offload_binary::Error> {
    let entries: Vec<_> = images.iter().map(Image::entry).collect();
    let bytes: Vec<_> = images.iter().map(|image| &image.bytes[..]).collect();
    Ok(offload_binary::layout(FormatVersion::V1, &entries)?.to_vec(&bytes)?)
}

/// The host's part: as it is, or compiled.
fn host_object(host: &Path) -> Result<Vec<u8>, Error> {
    let bytes = read(host)?;
    if matches!(
        FileFormat::sniff(&bytes),
        FileFormat::Elf { .. } | FileFormat::Coff | FileFormat::Pe
    ) {
        return Ok(bytes);
    }
    let object = tempfile::NamedTempFile::new()?;
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    run(Command::new(compiler).args(["-c", "-fPIC", "-o"]).args([object.path(), host]))?;
    read(object.path())
}
