//! The example files, and whatever can be made of their bytes.

use oracles::*;
use samples::fatbin::{Made, fatbin};

use crate::files;

fn over_samples(mut check: impl FnMut(&[u8])) {
    files().iter().for_each(|sample| check(sample));
}

#[test]
fn account_samples() {
    over_samples(|sample| drop(accounts::check(sample)));
    crate::images().iter().for_each(|image| drop(accounts::check(image)));
}

#[test]
fn archive_samples() {
    over_samples(archives::check);
}

#[test]
fn bare_samples() {
    over_samples(|sample| {
        for at in (0..sample.len()).step_by(997) {
            bare::check(&sample[at..]);
        }
    });
}

#[test]
fn kernel_samples() {
    over_samples(|sample| {
        for at in (0..sample.len()).step_by(997) {
            kernels::check(&sample[at..]);
        }
    });
    crate::images().iter().for_each(|image| kernels::check(image));
}

#[test]
fn load_samples() {
    let mut loaded = 0;
    over_samples(|sample| loaded += load::check(sample));
    assert!(loaded > 20, "only {loaded}");
}

/// Offload binaries after a bundle are not of its fat binary.
#[test]
fn load_of_a_bundle_before_offload_binaries() {
    let samples = files();
    let of = |magic: &[u8]| samples.iter().find(|sample| sample.starts_with(magic)).unwrap();
    let binaries = of(&offload_binary::MAGIC);
    for bundle in [of(&ccob::MAGIC), of(&bundle_format::MAGIC)] {
        let both = [&bundle[..], &binaries[..]].concat();
        assert_eq!(load::check(&both), load::check(bundle));
    }
}

#[test]
fn bitcode_samples() {
    over_samples(bitcode::check);
}

/// Each sample is a member of an archive, beside one without device code, and of an archive in an archive.
#[test]
fn samples_in_archives() {
    let host = samples::example("host.o");
    over_samples(|sample| {
        let archive = samples::ar::archive(&[("host.o", &host), ("sample", sample)]);
        let nested = samples::ar::archive(&[("inner.a", &archive), ("host.o", &host)]);
        for archive in [archive, nested] {
            walks::check(&archive);
            links::check(&archive);
        }
    });
}

#[test]
fn bundle_samples() {
    over_samples(bundles::check_binary);
    over_samples(bundles::check_text);
}

#[test]
fn compressed_samples() {
    over_samples(compressed::check_header);
    over_samples(compressed::check);
}

#[test]
fn edit_samples() {
    over_samples(edits::check);
    over_samples(|sample| {
        let step = if samples::faulty::is_thorough() { 997 } else { 3989 };
        for at in (0..sample.len()).step_by(step) {
            edits::check_model(&sample[at..]);
        }
    });
}

/// No table lists the bytes after the last section.
#[test]
fn edits_keep_containers_after_host_samples() {
    let mut hosts = 0;
    for sample in &files() {
        let Some(file) = edits::with_container_after(sample) else { continue };
        hosts += 1;
        for n in 0..if samples::faulty::is_thorough() { 100_u64 } else { 12 } {
            edits::check_seeded(&file, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), &|_| {});
        }
    }
    assert!(hosts > 15, "only {hosts}");
}

#[test]
fn object_samples() {
    over_samples(objects::check);
}

#[test]
fn package_samples() {
    over_samples(packages::check);
}

/// A length of 0 is not a request to remove.
#[test]
fn edits_of_bundles_that_claim_to_be_empty() {
    let mut claims = 0;
    for mut sample in files().into_iter().filter(|sample| sample.starts_with(&ccob::MAGIC)) {
        let size = match sample[4] {
            2 => 12..16,
            3 => 16..24,
            _ => continue,
        };
        sample[size].fill(0);
        claims += 1;
        (0..100_u64).for_each(|n| {
            let seed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            edits::check_seeded(&sample, seed, &|_| {});
        });
    }
    assert!(claims > 4, "only {claims}");
}

#[test]
fn faulty_samples() {
    over_samples(faults::check);
}

#[test]
fn fatbin_samples() {
    over_samples(|sample| {
        for at in (0..sample.len()).step_by(997) {
            fatbins::check(&sample[at..]);
        }
    });
}

#[test]
fn package_file_samples() {
    over_samples(|sample| {
        for at in (0..sample.len()).step_by(1999) {
            package_files::check(&sample[at..sample.len().min(at + 4000)]);
        }
    });
}

#[test]
fn id_samples() {
    over_samples(|sample| {
        let text = String::from_utf8_lossy(sample);
        ids::check_entry_ids(&text);
        ids::check_targets(&text);
    });
}

#[test]
fn names_of_processors() {
    let ids = [
        "gfx1250-strict:xnack+",
        "gfx12-5-generic",
        "amdgpu12.50s",
        "amdgpu12.50s-amd-amdhsa-unknown-gfx1250-strict:xnack-",
        "xe-bmg-g21",
        "20.1.4",
        "intel_gpu_bmg",
        "sm_107f",
        "generic",
    ];
    for arch in ["amdgcn", "amdgpu12.50s", "amdgpu99", "spir64_gen", "nvptx64"] {
        for pair in ids.windows(2) {
            let lines = pair.iter().map(|id| format!("? ? {id}\nhip {arch}-amd-amdhsa {id}\n"));
            ids::check_targets(&lines.collect::<String>());
        }
    }
}

#[test]
fn walk_samples() {
    over_samples(walks::check);
}

#[test]
fn image_samples() {
    let step = if samples::faulty::is_thorough() { 97 } else { 1997 };
    // Any bytes are a model.
    over_samples(|sample| {
        for at in (0..sample.len()).step_by(step) {
            images::check(&sample[at..sample.len().min(at + 400)]);
        }
    });
}

#[test]
fn wrapper_samples() {
    over_samples(|sample| {
        wrappers::check_image(sample);
        // Any bytes are images and options.
        for at in (0..sample.len()).step_by(997) {
            wrappers::check(&sample[at..]);
        }
    });
}

#[test]
fn models_have_packages_of_every_form() {
    let mut forms = std::collections::BTreeSet::new();
    over_samples(|sample| {
        let models = (0..sample.len()).step_by(997).filter_map(|at| model::make(&sample[at..]));
        for file in models {
            for package in file.windows(40).filter(|w| w.starts_with(&offload_binary::MAGIC)) {
                let version = package[4];
                forms.insert((version, version == 3 && package[32..] != [0; 8]));
            }
        }
    });
    for form in [(1, false), (2, false), (3, false), (3, true)] {
        assert!(forms.contains(&form), "{form:?} in {forms:?}");
    }
}

#[test]
fn model_samples() {
    let step = if samples::faulty::is_thorough() { 1 } else { 5 };
    // Any bytes are a model.
    over_samples(|sample| {
        for at in (0..sample.len()).step_by(997 * step) {
            agreement::check(&sample[at..]);
            model::check_walk(&sample[at..]);
            model::check_bundle(&sample[at..]);
            packages::check_layout(&sample[at..]);
            streams::check(&sample[at..]);
        }
        // These take longer.
        for at in (0..sample.len()).step_by(3989 * step) {
            ar::check(&sample[at..]);
            faults::check_model(&sample[at..]);
            hosts::check(&sample[at..]);
            linked::check(&sample[at..]);
        }
    });
}

#[test]
fn an_image_may_state_any_size() {
    for size in [1, u64::MAX / 2] {
        let cubin = Made { flags: 0x2001, size, ..Made::cubin(80, &[1; 100]) };
        let account = accounts::check(&fatbin(&[cubin]));
        assert_eq!(account.images()[0].info.size(), size);
    }
}
