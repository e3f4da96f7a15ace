//! The image that a runtime loads of a fat binary in memory: a walk finds it, with a name that fits the device, and where none
//! is loaded, a walk finds none that fits.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use device_select::{Device, load};
use fat_object::{ContainerKind, ImageInfo, Options, images};
use offload_binary::ImageKind;
use target_id::{Target, compatible};

use crate::assert_message;

/// One device with its features, one without, GPUs of three makers.
const DEVICES: [&str; 6] =
    ["gfx906:sramecc+:xnack-", "gfx90a", "gfx1100", "sm_52", "sm_90", "intel_gpu_pvc"];

/// Most bytes that are decompressed, here and by the walk.
const LIMIT: u64 = 16 << 20;

/// Checks any bytes against each device. Returns the number of images that were loaded.
pub fn check(data: &[u8]) -> usize {
    let mut loaded = 0;
    // A header may promise gigabytes of zeros, which a few kilobytes do hold.
    if promised(data) > LIMIT {
        return loaded;
    }
    let walked = walked(data);
    for name in DEVICES {
        let device = Device::parse(name).expect("a device");
        let fits = |info: &ImageInfo| {
            let target = loaded_as(info);
            let mut states = device.states().iter();
            // The ID of an entry that is not text is for no device; a walk replaces what is not text in it.
            let is_text = info.id().is_some_and(|id| !id.contains(char::REPLACEMENT_CHARACTER));
            (is_text || info.container() != ContainerKind::Bundle)
                && !target.is_host()
                && states.any(|state| compatible(&target, state).is_compatible())
        };
        match load(data, &device) {
            Ok(Some(image)) => {
                loaded += 1;
                assert!(!image.is_empty());
                if let Cow::Borrowed(image) = image {
                    let (all, part) = (data.as_ptr_range(), image.as_ptr_range());
                    assert!(all.start <= part.start && part.end <= all.end);
                }
                let mut same = walked.iter().filter(|(_, bytes)| *bytes == *image);
                assert!(same.any(|(info, _)| fits(info)), "{name}: {} bytes", image.len());
            }
            Ok(None) => {
                let other = walked.iter().find(|(info, bytes)| !bytes.is_empty() && fits(info));
                assert!(
                    other.is_none(),
                    "{name}: {}",
                    other.map_or_else(String::new, |(info, _)| info.to_string())
                );
            }
            Err(error) => assert_message(&error),
        }
    }
    loaded
}

/// Returns the target by which a runtime chooses. An offload binary says itself whether an image is PTX, which is compiled
/// for any later GPU.
fn loaded_as(info: &ImageInfo) -> Cow<'_, Target> {
    let Some(entry) = info.offload_binary_entry() else { return info.loaded_as() };
    match info.target().id().strip_prefix("sm_") {
        Some(sm) if entry.image_kind() == ImageKind::PTX => {
            let (kind, triple) = (info.target().kind().cloned(), info.target().triple().cloned());
            Cow::Owned(Target::new(kind, triple, &format!("compute_{sm}")))
        }
        _ => Cow::Borrowed(info.target()),
    }
}

/// Returns the size that the header of a compressed bundle or offload binary promises.
fn promised(data: &[u8]) -> u64 {
    let len = data.len() as u64;
    let bundle = ccob::Header::parse(data, len).map_or(0, |header| header.uncompressed_size());
    let binary = offload_binary::CompressedBinary::parse_prefix(data, len).ok().flatten();
    bundle.max(binary.map_or(0, |header| header.inflated_size()))
}

/// Returns the images of the fat binary that the bytes start with, with their bytes.
fn walked(data: &[u8]) -> Vec<(ImageInfo, Vec<u8>)> {
    let options =
        Options::default().with_max_decompressed(LIMIT).with_enter_images(false).with_scan(false);
    let mut found = Vec::new();
    // Only offload binaries may be several.
    let starts_with_binary = data.starts_with(&offload_binary::MAGIC);
    let is_of_binaries = |kind| matches!(kind, ContainerKind::OffloadBinary) && starts_with_binary;
    // The fault of a walk may lie in later bytes.
    let _ = images(Cursor::new(data), &options, |image| {
        let is_first =
            image.path().iter().all(|step| is_of_binaries(step.kind()) || step.name() == "0");
        if is_first && image.container() != ContainerKind::File {
            let mut bytes = Vec::new();
            image.reader().read_to_end(&mut bytes)?;
            found.push((image.info().clone(), bytes));
        }
        Ok(())
    });
    found
}
