//! From linked images to an object that registers them: each runtime wants its images in a container of its own.

use bundle_format::{EntryId, HIP_ALIGN, composition};
use fat_object::FileFormat;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_examples::Error;
use target_id::Target;
use wrapper_ir::{Abi, Wrapper};

use super::{Linked, triple_and_id};

/// An object that registers images when its program starts.
pub(super) fn wrap(
    kind: OffloadKind,
    images: &[&Linked<'_>],
    host: &str,
) -> Result<Vec<u8>, Error> {
    let containers = match kind {
        // Each image in an offload binary of its own, which tells the runtime what it is for.
        OffloadKind::OPENMP => images
            .iter()
            .map(|image| package(FormatVersion::V1, kind, &[image]))
            .collect::<Result<_, _>>()?,
        OffloadKind::HIP => vec![bundle(images, host)?],
        OffloadKind::SYCL => vec![package(FormatVersion::V2, kind, images)?],
        // Made by NVIDIA's `fatbinary`, of the images for all GPUs.
        _ => images.iter().map(|image| fatbinary(image)).collect::<Result<_, _>>()?,
    };
    let module = Wrapper::new(kind, Abi::Current, wrapper_ir::Target::new(host)?)
        .with_images(containers.iter().map(|bytes| wrapper_ir::Image::from_bytes(bytes)))
        .module()?;
    let containers: Vec<_> = containers.iter().map(|bytes| &bytes[..]).collect();
    Ok(module.object()?.to_vec(&containers)?)
}

fn package(
    version: FormatVersion,
    kind: OffloadKind,
    images: &[&Linked<'_>],
) -> Result<Vec<u8>, Error> {
    let entries: Vec<_> = images.iter().map(|image| entry(kind, image)).collect();
    let bytes: Vec<_> = images.iter().map(|image| &image.bytes[..]).collect();
    Ok(offload_binary::layout(version, &entries)?.to_vec(&bytes)?)
}

fn entry<'a>(kind: OffloadKind, image: &Linked<'a>) -> ImageEntry<'a> {
    let (triple, arch) = triple_and_id(image.target);
    ImageEntry::new(image.bytes.len() as u64)
        .with_image_kind(ImageKind::from_magic(&image.bytes).unwrap_or(ImageKind::OBJECT))
        .with_offload_kind(kind)
        .with_string("arch", arch)
        .with_string("triple", triple)
}

/// The bundle that the HIP runtime takes: an entry without content for the host, then images at pages of their own.
fn bundle(images: &[&Linked<'_>], host: &str) -> Result<Vec<u8>, Error> {
    let host = format!("host-{host}");
    let mut ids = vec![EntryId::parse(&host)?.standardized()];
    ids.extend(images.iter().map(|image| {
        let kind = Some(target_id::OffloadKind::Hip);
        Target::new(kind, image.target.triple().cloned(), image.target.id()).to_string()
    }));
    if let Some(finding) = composition(ids.iter().map(|id| &id[..])).first() {
        return Err(finding.to_string().into());
    }
    let contents: Vec<_> =
        [&[][..]].into_iter().chain(images.iter().map(|image| &image.bytes[..])).collect();
    let sizes = contents.iter().map(|bytes| bytes.len() as u64);
    Ok(bundle_format::layout(ids.iter().zip(sizes), HIP_ALIGN)?.to_vec(&contents)?)
}

fn fatbinary(image: &Linked<'_>) -> Result<Vec<u8>, Error> {
    match FileFormat::sniff(&image.bytes) {
        FileFormat::Fatbinary => Ok(image.bytes.clone()),
        found => Err(format!("{found} for {}: CUDA registers fatbinaries", image.target).into()),
    }
}
