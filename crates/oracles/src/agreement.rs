//! `true` if images are for the targets that they are stored for.

use arbitrary::{Result, Unstructured};
use fat_object::{BundleForm, Disagreement, FileFormat, Image, check_agreement};
use target_id::{Family, OffloadKind, Target, TargetId, Triple, compatible};

use crate::assert_message;

const TRIPLES: [&str; 7] = [
    "amdgcn-amd-amdhsa",
    "amdgcn-amd-amdhsa-unknown",
    "amdgpu9.06-amd-amdhsa",
    "nvptx64-nvidia-cuda",
    "spirv64-amd-amdhsa",
    "spirv64-unknown-unknown",
    "x86_64-unknown-linux-gnu",
];
const IDS: [&str; 9] = [
    "",
    "gfx906",
    "gfx90a:xnack+",
    "gfx90a:sramecc+:xnack-",
    "gfx9-generic",
    "gfx1100",
    "gfx9999",
    "amdgcnspirv",
    "sm_70",
];
/// Starts of images that are not code objects.
const STARTS: [&[u8]; 7] = [
    b"",
    b"BC\xc0\xde",
    b"\x03\x02\x23\x07",
    b"//\n.version 7.0\n",
    b"\x50\xed\x55\xba",
    b"__CLANG_OFFLOAD_BUNDLE__",
    b"text",
];
/// Bytes that are enough.
const ENOUGH: usize = 2048;

/// Checks a target and an image of the fuzzer's.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok((target, image)) = described(u) else { return };
    let result = check_agreement(&target, &image);
    let head = &image[..image.len().min(ENOUGH)];
    assert_eq!(check_agreement(&target, head), result);
    let found = code_object(&image);
    match &result {
        Ok(()) => {
            // Code of known processors that does not fit for a reason that the kinds do not report.
            let known = [&found, &target.target_id().ok()]
                .map(|id| id.as_ref().is_some_and(|id| id.processor_info().is_some()));
            let is_amd = target.triple().is_some_and(Triple::is_amdgpu);
            let is_host = target.kind() == Some(&OffloadKind::Host);
            if let Some(found) = found
                && known == [true, true]
                && is_amd
                && !is_host
                && target.id() != "amdgcnspirv"
            {
                let verdict = compatible(&Target::new(None, None, &found.to_string()), &target);
                assert!(verdict.is_compatible(), "{found} for {target}: {verdict}");
            }
        }
        Err(error) => {
            assert_message(error);
            assert!(target.triple().is_some() && target.kind() != Some(&OffloadKind::Host));
            assert!(!image.starts_with(b"BC\xc0\xde"));
            if let Disagreement::Target { found: id, verdict } = error {
                let is_nvidia = target.triple().is_some_and(Triple::is_nvptx);
                assert!(is_nvidia || Some(id) == found.map(|id| id.to_string()).as_ref());
                assert_eq!(&compatible(&Target::new(None, None, id), &target), verdict);
                assert!(!verdict.is_compatible());
            }
        }
    }
}

/// Checks that a walk marks the images that [`check_agreement`] refuses, if devices load their format.
pub fn check_marked(image: &Image<'_, '_>, contents: &[u8]) {
    let is_text = matches!(image.bundle_form(), Some(BundleForm::Text(_)));
    let format = FileFormat::sniff(&contents[..contents.len().min(ENOUGH)]);
    let is_device_code = matches!(
        format,
        FileFormat::Elf { .. } | FileFormat::Cubin | FileFormat::SpirV | FileFormat::Ptx
    );
    let refused = check_agreement(image.target(), contents).err();
    match image.disagreement() {
        Some(Disagreement::Kind { found, recorded }) => {
            let entry = image.offload_binary_entry().expect("only offload binaries record kinds");
            assert_eq!((*found, *recorded), (format, entry.image_kind()));
            assert_eq!(refused, None);
        }
        marked => assert_eq!(marked, refused.filter(|_| is_device_code && !is_text).as_ref()),
    }
    if let Some(disagreement) = image.disagreement() {
        assert_message(disagreement);
        assert!(!disagreement.found().is_empty());
    }
}

/// Returns the target ID of an AMD GPU code object.
fn code_object(image: &[u8]) -> Option<TargetId> {
    let is_amd = image.starts_with(b"\x7fELF") && image.get(18..20) == Some(&[224, 0]);
    let is_64 = image.get(4..6) == Some(&[2, 1]);
    let flags = image.get(48..52).filter(|_| is_amd && is_64 && image.len() >= 64)?;
    TargetId::from_elf_flags(u32::from_le_bytes(flags.try_into().ok()?), image[8])
        .filter(|id| id.processor_info().is_some_and(|info| info.family() == Family::AmdGcn))
}

fn described(u: &mut Unstructured<'_>) -> Result<(Target, Vec<u8>)> {
    let kinds = [
        None,
        Some(OffloadKind::Host),
        Some(OffloadKind::Hip),
        Some(OffloadKind::HipV4),
        Some(OffloadKind::OpenMp),
        Some(OffloadKind::Cuda),
    ];
    let kind = u.choose(&kinds)?.clone();
    let triple = match u.int_in_range(0..=7)? {
        0 => None,
        1 => Some(Triple::parse(u.arbitrary()?)),
        _ => Some(Triple::parse(u.choose(&TRIPLES[..])?)),
    };
    let id = if u.ratio(1, 8)? { u.arbitrary()? } else { *u.choose(&IDS)? };
    let target = Target::new(kind, triple, id);
    let mut image = if u.ratio(1, 4)? {
        u.choose(&STARTS)?.to_vec()
    } else {
        let mut header = b"\x7fELF\x02\x01\x01\x40".to_vec();
        header.push(*u.choose(&[3, 4, 2, 6])?);
        header.resize(64, 0);
        header[18] = *u.choose(&[224, 224, 224, 190, 62])?;
        // Processors and features as the code objects' ABI numbers them.
        let processor: u32 = u.int_in_range(0x20..=0x5f)?;
        let flags = processor | u32::from(u.arbitrary::<u8>()? & 0x0f) << 8;
        let flags = if u.ratio(1, 8)? { u.arbitrary()? } else { flags };
        header[48..52].copy_from_slice(&flags.to_le_bytes());
        header
    };
    if u.ratio(1, 8)? && !image.is_empty() {
        let at = u.choose_index(image.len())?;
        image[at] = u.arbitrary()?;
        image.truncate(u.int_in_range(0..=image.len())?);
    }
    let more = u.int_in_range(0..=3000)?;
    image.resize(image.len() + more, b' ');
    Ok((target, image))
}
