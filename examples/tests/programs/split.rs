//! A library that is split has its code in packs, where ROCm's loader looks.

use std::fs;

use kpack::search::{Loader, key, lookup};
use kpack::{Kpack, Wrapper};

use crate::common::{data, fails, images, names, run};

const SPLIT: &str = env!("CARGO_BIN_EXE_split");

#[test]
fn each_wrapper_finds_its_code() {
    for name in ["hip-two-units.so", "hip-two-units-ccob.so", "hip.dll"] {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        run(place, SPLIT, &[&data(name), &name, &"group", &"out"]);
        let host = fs::read(place.join("out").join(name)).unwrap();
        assert!(images(&place.join("out").join(name)).is_empty());
        let is_wrapper = |bytes: &&[u8]| bytes.starts_with(b"HIPK\x01\0\0\0");
        let wrappers = host.windows(Wrapper::SIZE).filter(is_wrapper);
        let numbers: Vec<u32> =
            wrappers.map(|bytes| Wrapper::parse(bytes).unwrap().index().unwrap()).collect();
        assert!((0..).zip(&numbers).all(|(n, number)| n == *number), "{name}: {numbers:?}");

        let mut found = Vec::new();
        let packs = place.join("out/.kpack");
        for number in numbers {
            // As `images` has them: the gfx1100 images of clang come first.
            for target in ["gfx1100", "gfx906"] {
                let path = packs.join(format!("group_{target}.kpack"));
                let Ok(bytes) = fs::read(path) else { continue };
                let pack = Kpack::parse(&bytes).unwrap();
                let key = key(name, number.into());
                let hit = lookup(&[pack.toc()], &[target], &key, Loader::First).unwrap();
                let stored = pack.stored(hit.entry).unwrap();
                found.push(kpack::decompress(stored, hit.entry.original_size()).unwrap());
            }
        }
        let expected = images(&data(name)).into_iter().map(|(_, bytes)| bytes);
        let expected: Vec<Vec<u8>> = expected.filter(|bytes| !bytes.is_empty()).collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(names(&packs).len(), if name == "hip-two-units.so" { 1 } else { 2 });
    }
}

#[test]
fn objects_are_not_split() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let said = fails(place, SPLIT, &[&data("hip.o"), &"hip.o", &"group", &"out"]);
    assert!(said.contains("hip.o: files that are not linked"), "{said}");
    assert!(names(place).is_empty());
}
