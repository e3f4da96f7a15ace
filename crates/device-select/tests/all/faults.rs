//! Files that fail or end early while their units are collected, and fat binaries in memory that are cut short or damaged.

use std::path::Path;

use device_select::{Device, load, units};
use fat_object::{Options, list_slice};
use faulty::check;

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("../../examples/data").join(name)).unwrap()
}

#[test]
fn units_end_with_the_error_of_the_file() {
    for name in ["hip.o", "hip-ccob-v3.hipfb", "packages.offload", "libhip.a", "cuda-fatbin.o"] {
        let file = data(name);
        check(|rig| units(rig.stream(&file)).map(|units| format!("{units:?}")));
    }
}

/// Of whatever is left of a fat binary, only images come that a listing finds too.
#[test]
fn no_damage_makes_an_image() {
    let gpus = ["gfx906:sramecc+:xnack-", "gfx1100", "sm_70"].map(|id| Device::parse(id).unwrap());
    for name in ["hip.hipfb", "packages.offload"] {
        let whole = data(name);
        let mut damaged = vec![];
        for at in (0..whole.len()).step_by(whole.len() / 64 + 1) {
            damaged.push(whole[..at].to_vec());
        }
        for at in 0..whole.len().min(1024) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            damaged.push(flipped);
        }
        for bytes in damaged {
            let listing = list_slice(&bytes, &Options::default().with_scan(false)).unwrap();
            let listed: Vec<_> =
                listing.iter().filter_map(|image| image.bytes_in(&bytes)).collect();
            for gpu in &gpus {
                let image = load(&bytes, gpu).unwrap_or_default();
                assert!(image.is_none_or(|image| listed.contains(&&*image)), "{name}");
            }
        }
    }
}

/// A container with one bit changed has another hash, or is none: nothing of it is loaded that was not in it.
#[test]
fn damaged_compressed_bundles_give_nothing_else() {
    let whole = data("hip-ccob-v3.hipfb");
    let gpu = Device::parse("gfx1100").unwrap();
    let image = load(&whole, &gpu).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        if let Ok(Some(found)) = load(&flipped, &gpu) {
            assert!(Some(found) == image, "byte {at}");
        }
        assert!(load(&whole[..at], &gpu).is_err(), "{at} bytes");
    }
}
