//! Files that fail or end early while their units are collected, and fat binaries in memory that are cut short or damaged.

use device_select::{Device, load, units};
use samples::example;
use samples::faulty::check;

#[test]
fn units_end_with_the_error_of_the_file() {
    for name in ["hip.o", "hip-ccob-v3.hipfb", "packages.offload", "libhip.a", "cuda-fatbin.o"] {
        let file = example(name);
        check(|rig| units(rig.stream(&file)).map(|units| format!("{units:?}")));
    }
}

/// A container with one bit changed has another hash, or is not a container: nothing of it is loaded that was not in
/// it.
#[test]
fn damaged_compressed_bundles_give_no_other_image() {
    let whole = example("hip-ccob-v3.hipfb");
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
