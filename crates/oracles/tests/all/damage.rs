//! The example files cut short and with bytes changed: no judge may be wrong about any of them.

use oracles::*;
use samples::damage::judge;

use crate::files;

fn over_samples(check: impl Fn(&[u8])) {
    over(b"", check);
}

/// Judges the samples that start with these bytes.
fn over(magic: &[u8], check: impl Fn(&[u8])) {
    let samples = files().into_iter().filter(|sample| sample.starts_with(magic));
    let judged = samples.map(|sample| judge(&sample, &check)).count();
    assert!(judged > 3, "only {judged} samples start with {magic:?}");
}

#[test]
fn accounts_of_damaged_files() {
    over_samples(|bytes| drop(accounts::check(bytes)));
    crate::images().iter().for_each(|image| judge(image, |bytes| drop(accounts::check(bytes))));
}

#[test]
fn archives_of_damaged_files() {
    over_samples(archives::check);
}

#[test]
fn bare_images() {
    over_samples(bare::check);
}

#[test]
fn bitcode_symbols() {
    over_samples(bitcode::check);
}

#[test]
fn bundles_of_every_form() {
    over_samples(bundles::check_binary);
    over_samples(bundles::check_text);
}

#[test]
fn compressed_bundles() {
    over(&ccob::MAGIC, compressed::check_header);
    over(&ccob::MAGIC, compressed::check);
}

#[test]
fn edits_of_damaged_files() {
    over_samples(edits::check);
}

#[test]
fn images_to_load() {
    over_samples(|bytes| {
        load::check(bytes);
    });
}

#[test]
fn kernels_of_damaged_images() {
    let images = crate::images();
    assert!(images.len() > 8, "only {}", images.len());
    images.iter().for_each(|image| judge(image, kernels::check));
}

#[test]
fn objects_with_device_code() {
    over_samples(objects::check);
}

#[test]
fn inputs_of_links() {
    over_samples(links::check);
}

#[test]
fn offload_binaries() {
    over(&offload_binary::MAGIC, packages::check);
}

#[test]
fn registered_images() {
    over(&offload_binary::MAGIC, wrappers::check_image);
}

#[test]
fn target_ids() {
    for id in
        ["gfx9-4-generic:sramecc+:xnack-:", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "sm_90a"]
    {
        judge(id.as_bytes(), |bytes| {
            let text = String::from_utf8_lossy(bytes);
            ids::check_entry_ids(&text);
            ids::check_targets(&format!("? ? {text}\n"));
        });
    }
}

#[test]
fn walks_of_damaged_files() {
    over_samples(walks::check);
}
