//! Host files with SYCL images and the tables that describe them, made from the fuzzer's bytes.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use fat_object::{Options, list_slice};
use samples::sycl::{Form, Sample, file, spirv, strip};

const TARGETS: [&str; 3] = ["spir64", "spir64_gen", "spir64_x86_64"];

/// Makes a file and checks that exactly its images are found, and that no change of the fuzzer causes a panic.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok((form, images)) = made(u) else { return };
    let mut file = file(form, &images);
    if !form.is_pe && u.arbitrary().unwrap_or_default() {
        strip(&mut file.bytes);
    }
    let options = Options::default().with_tables_only(u.arbitrary().unwrap_or_default());
    let listing = list_slice(&file.bytes, &options).expect("memory does not fail");
    assert!(listing.findings().is_empty(), "{:?}", listing.findings());
    let found: BTreeMap<_, _> = listing
        .images()
        .iter()
        .filter_map(|image| Some((image.location().file_offset()?, image)))
        .collect();
    assert_eq!(found.len(), images.len());
    for (image, place) in images.iter().zip(&file.images) {
        let found = found[&(*place as u64)];
        assert_eq!(found.size(), image.size);
        assert_eq!(found.bytes_in(&file.bytes), Some(&image.stored[..]));
        let sycl = found.sycl().expect("a table describes it");
        assert!(sycl.kernels().eq(image.kernels.iter().map(String::as_str)));
        if form.version > 1 {
            assert_eq!(sycl.compile_target(), image.compile_target.as_deref());
            assert!(sycl.aspects().eq(image.aspects.iter().copied()));
        }
    }
    let mut bytes = file.bytes;
    for _ in 0..u.int_in_range(0..=4).unwrap_or(0) {
        // Tables follow the images.
        let first = file.images.first().copied().unwrap_or(0).min(bytes.len() - 8);
        let Ok(at) = u.int_in_range(first..=bytes.len() - 8) else { break };
        match u.arbitrary::<(bool, u64)>() {
            Ok((true, number)) => {
                bytes[at / 8 * 8..at / 8 * 8 + 8].copy_from_slice(&number.to_le_bytes());
            }
            Ok((false, number)) => bytes[at] = number.to_le_bytes()[0],
            Err(_) => break,
        }
    }
    let damaged = list_slice(&bytes, &options).expect("memory does not fail");
    damaged.findings().iter().for_each(crate::assert_message);
    let stored: u64 = damaged.images().iter().filter_map(|image| image.stored_size()).sum();
    assert!(stored <= 2 * bytes.len() as u64, "{stored} bytes of {}", bytes.len());
}

fn made(u: &mut Unstructured<'_>) -> Result<(Form, Vec<Sample>)> {
    let is_pe = u.arbitrary()?;
    let form = Form {
        version: u.int_in_range(1..=3)?,
        kind: *u.choose(&[4, 8])?,
        is_pe,
        relocated: !is_pe && u.arbitrary()?,
        new_entries: u.arbitrary()?,
        per_table: u.int_in_range(1..=4)?,
        section: *u.choose(&[None, None, Some(".rodata")])?,
        ..Form::default()
    };
    let mut images = Vec::new();
    for n in 0..u.int_in_range(1..=6_u32)? {
        let kernels: Vec<String> =
            (0..u.int_in_range(0..=3)?).map(|kernel| format!("kernel{n}.{kernel}")).collect();
        let kernels: Vec<_> = kernels.iter().map(String::as_str).collect();
        let mut image = Sample::plain(u.choose(&TARGETS)?, &spirv(n), &kernels);
        if u.arbitrary()? {
            image = image.compressed();
        }
        if u.arbitrary()? {
            image = image.compile_target("intel_gpu_pvc");
        }
        let aspects = (0..u.int_in_range(0..=3)?).map(|_| u.arbitrary());
        images.push(image.aspects(&aspects.collect::<Result<Vec<u32>>>()?));
    }
    Ok((form, images))
}
