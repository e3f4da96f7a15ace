//! Packs of any contents.

use kpack::{Kpack, NewKpack, Scheme};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_pack_comes_back(
        entries in vec((0_u8..4, 0_u64..5, 0_u8..3, vec(any::<u8>(), 0..300), any::<bool>()), 0..20),
        compressed: bool,
    ) {
        let scheme = if compressed { Scheme::Zstd } else { Scheme::Plain };
        let mut new = NewKpack::new("group", "gfx900", scheme);
        let mut seen = std::collections::BTreeMap::new();
        let mut stored = Vec::new();
        for (name, wrapper, arch, code, again) in entries {
            let (name, arch) = (format!("lib/{name}.so"), format!("gfx90{arch}"));
            let key = (name.clone(), wrapper, arch.clone());
            if seen.contains_key(&key) {
                continue;
            }
            let last = stored.len().checked_sub(1).filter(|_| again);
            match last {
                Some(last) => {
                    let code: &Vec<u8> = &stored[last];
                    new.add_again(&name, wrapper, &arch, code.len() as u64, last as u64);
                    seen.insert(key, last);
                }
                None => {
                    new.add(&name, wrapper, &arch, code.len() as u64);
                    seen.insert(key, stored.len());
                    stored.push(code);
                }
            }
        }
        let frames: Vec<Vec<u8>> = match scheme {
            Scheme::Plain => stored.clone(),
            Scheme::Zstd => stored.iter().map(|code| kpack::compress(code, 1).unwrap()).collect(),
        };
        let bytes = crate::packs::bytes(&new, &frames);
        let pack = Kpack::parse(&bytes).unwrap();
        let odd = pack.check().into_iter().filter(|fault| fault.kind() != kpack::ErrorKind::Unreachable);
        prop_assert_eq!(odd.count(), 0);
        prop_assert_eq!(pack.toc().entries().len(), seen.len());
        for ((name, wrapper, arch), at) in &seen {
            let entry = pack.toc().find(&kpack::search::key(name, *wrapper), arch).unwrap();
            prop_assert_eq!(pack.stored(entry).unwrap(), &frames[*at]);
        }
        let (same, numbers) = NewKpack::some_of(pack.toc(), |_| true);
        prop_assert_eq!(numbers.len(), frames.len());
        // Targets without code go.
        if pack.toc().entries().iter().any(|entry| entry.arch() == "gfx900") {
            prop_assert_eq!(crate::packs::bytes(&same, &frames), bytes);
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Kpack::parse(&bytes);
        let _ = kpack::Marker::parse(&bytes);
    }
}
