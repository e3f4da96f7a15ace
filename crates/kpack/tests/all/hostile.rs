//! Packs that are damaged, or made to harm.

use kpack::{ErrorKind, Kpack, Scheme};

use crate::packs::{bytes, sample};

#[test]
fn every_truncation_is_refused() {
    for scheme in [Scheme::Plain, Scheme::Zstd] {
        let (new, stored) = sample(scheme);
        let pack = bytes(&new, &stored);
        for len in 0..pack.len() {
            assert!(Kpack::parse(&pack[..len]).is_err(), "{len}");
        }
        let mut longer = pack.clone();
        longer.push(0);
        let error = Kpack::parse(&longer).unwrap_err();
        assert!(error.to_string().contains("expected the end of the file"), "{error}");
    }
}

#[test]
fn changed_bytes_are_read_within_bounds() {
    for scheme in [Scheme::Plain, Scheme::Zstd] {
        let (new, stored) = sample(scheme);
        let pack = bytes(&new, &stored);
        for at in 0..pack.len() {
            for byte in [0, 0x7f, 0x80, 0xff, pack[at] ^ 1] {
                let mut changed = pack.clone();
                changed[at] = byte;
                let Ok(changed) = Kpack::parse(&changed) else { continue };
                let _ = changed.check();
                for entry in changed.toc().entries() {
                    let stored = changed.stored(entry).map_or(0, <[u8]>::len);
                    assert!(stored <= pack.len());
                }
            }
        }
    }
}

/// Returns the sample with other bytes at a place.
fn with(at: usize, new: &[u8]) -> Vec<u8> {
    let (pack, stored) = sample(Scheme::Zstd);
    let mut pack = bytes(&pack, &stored);
    pack[at..at + new.len()].copy_from_slice(new);
    pack
}

#[test]
fn numbers_that_lie_are_errors() {
    let fails = |pack: &[u8], kind, words: &str| {
        let error = Kpack::parse(pack).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    fails(&with(0, b"kpak"), ErrorKind::Magic, "expected the magic KPAK");
    fails(&with(4, &[2]), ErrorKind::Unsupported, "expected version 1, found 2");
    fails(&with(8, &[0; 8]), ErrorKind::Malformed, "expected a table between");
    fails(&with(8, &[0xff; 8]), ErrorKind::Truncated, "expected a table between");
    fails(&with(64, &[0xff; 4]), ErrorKind::Malformed, "4294967295 frames do not fit");
    fails(&with(64, &[4]), ErrorKind::Malformed, "expected 1 more frames");
    fails(&with(68, &[0xff; 4]), ErrorKind::Malformed, "frame 0 of 4294967295 bytes");
    // One frame fewer: an entry has no code.
    let pack = with(64, &[2]);
    let faults = Kpack::parse(&pack).unwrap().check();
    assert_eq!(faults.len(), 2);
    assert!(faults[1].to_string().contains("expected the table after the last frame, found "));
    assert!(
        faults[0].to_string().contains("expected an ordinal below 2, found 2"),
        "{}",
        faults[0]
    );
}

/// Returns the sample with other text in its table.
fn replaced(scheme: Scheme, old: &[u8], new: &[u8]) -> Vec<u8> {
    let (pack, stored) = sample(scheme);
    let pack = bytes(&pack, &stored);
    let at = pack.windows(old.len()).rposition(|bytes| bytes == old).unwrap();
    [&pack[..at], new, &pack[at + old.len()..]].concat()
}

#[test]
fn contradictions_are_found() {
    let faults = |pack: &[u8]| -> Vec<String> {
        let pack = Kpack::parse(pack).unwrap();
        pack.check().iter().map(|fault| format!("{:?} {fault}", fault.kind())).collect()
    };
    let plain = |old: &[u8], new: &[u8]| faults(&replaced(Scheme::Plain, old, new));
    let found = plain(b"\xadbin/hiptest#0", b"\xadbin/hiptest-0");
    assert!(
        found[0].starts_with("Unreachable toc: bin/hiptest-0 for gfx1100: expected a key that"),
        "{found:?}"
    );
    let found = plain(b"\x92\xa7gfx1100\xa7gfx1101", b"\x91\xa7gfx1100");
    assert!(
        found[0].contains("lib/libhip.so#0 for gfx1101: gfx_arches lacks the target"),
        "{found:?}"
    );
    let found = plain(b"\xa7ordinal\x02", b"\xa7ordinal\x01");
    assert_eq!(found.len(), 2);
    assert!(
        found[0].contains("expected 300 bytes, found 200")
            && found[1].contains("no entry names code 2")
    );
    // Targets twice, and overlaps.
    let found = plain(b"\xa7gfx1101\x83", b"\xa7gfx1100\x83");
    assert!(found[0].contains("lib/libhip.so#0 for gfx1100 is there twice"), "{found:?}");
    let found =
        plain(b"\x82\xa6offset\xcc\xa4\xa4size\xcc\xc8", b"\x82\xa6offset\x50\xa4size\xcc\xc8");
    assert!(found.iter().any(|fault| fault.contains("shares bytes with other code")), "{found:?}");
}

#[test]
fn tables_that_lack_something_are_errors() {
    let fails = |scheme, old: &[u8], new: &[u8], words: &str| {
        let error = Kpack::parse(&replaced(scheme, old, new)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    fails(Scheme::Plain, b"\xaagroup_name", b"\xaagroup_nome", "expected the key group_name");
    fails(Scheme::Plain, b"\xa5blobs", b"\xa5blubs", "expected the key blobs");
    fails(Scheme::Plain, b"\xa4none", b"\xa4lzma", "none or zstd-per-kernel, found lzma");
    fails(
        Scheme::Plain,
        b"\xafgfx_arch_family",
        b"\xaagroup_name",
        "the key group_name is there twice",
    );
    fails(
        Scheme::Plain,
        b"\xadoriginal_size",
        b"\xadoriginal-size",
        "expected the keys ordinal and",
    );
    fails(
        Scheme::Plain,
        b"\xaeformat_version\x01",
        b"\xaeformat_version\x02",
        "expected format_version 1",
    );
    fails(
        Scheme::Zstd,
        b"\xabzstd_offset\x40",
        b"\xabzstd_offset\x05",
        "expected a blob before the table",
    );
    fails(Scheme::Zstd, b"\xa9zstd_size", b"\xa9zstd-size", "expected the key zstd_size");
    fails(Scheme::Plain, b"\xa3toc\x82", b"\xa3toc\x92", "toc: expected a map, found an array");
}

fn text(text: &str) -> Vec<u8> {
    [&[0xdb][..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// A pack without code: a table with these values of `gfx_arches` and `toc`.
fn empty(archs: &[u8], toc: &[u8]) -> Vec<u8> {
    let table = [
        &[0x86][..],
        &text("group_name"),
        &text("g"),
        &text("gfx_arch_family"),
        &text("f"),
        &text("gfx_arches"),
        archs,
        &text("toc"),
        toc,
        &text("compression_scheme"),
        &text("none"),
        &text("blobs"),
        &[0x90],
    ];
    [&b"KPAK\x01\0\0\0\x40\0\0\0\0\0\0\0"[..], &[0; 48], &table.concat()].concat()
}

#[test]
fn a_long_key_with_many_targets_takes_its_bytes_once() {
    // With a copy of the key for each target, or for each fault: 40 GB.
    let count = 20_000_u32;
    let mut toc =
        [&[0x81][..], &text(&"k".repeat(1 << 20)), &[0xdf], &count.to_be_bytes()].concat();
    for n in 0..count {
        toc.extend(text(&n.to_string()));
        toc.extend(b"\x82\xa7ordinal\x00\xadoriginal_size\x00");
    }
    let bytes = empty(&[0x90], &toc);
    let pack = Kpack::parse(&bytes).unwrap();
    assert_eq!(pack.toc().entries().len(), count as usize);
    let faults = pack.check();
    assert_eq!(faults.len(), 3 * count as usize);
    assert!(faults.iter().all(|fault| fault.to_string().len() < 400));
    let (new, _) = kpack::NewKpack::some_of(pack.toc(), |_| true);
    assert!(new.layout(&[0]).unwrap().size() < bytes.len() as u64);
}

#[test]
fn targets_are_few() {
    let archs =
        |count: u32| [&[0xdd][..], &count.to_be_bytes(), &vec![0xa0; count as usize]].concat();
    assert!(Kpack::parse(&empty(&archs(1 << 16), &[0x80])).is_ok());
    let error = Kpack::parse(&empty(&archs((1 << 16) + 1), &[0x80])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().starts_with("gfx_arches: expected at most 65536"), "{error}");
}

#[test]
fn tables_are_read_without_recursion_and_without_trust_in_counts() {
    let fails =
        |archs: &[u8], toc: &[u8]| Kpack::parse(&empty(archs, toc)).unwrap_err().to_string();
    for count in [&[0xdd, 0xff, 0xff, 0xff, 0xff][..], &[0xdc, 0xff, 0xff]] {
        let text = fails(count, &[0x80]);
        assert!(text.contains("values do not fit in the"), "{text}");
    }
    let text = fails(&[0x90], &[0xdf, 0x80, 0, 0, 0]);
    assert!(text.contains("values do not fit in the"), "{text}");
    // Nested in an unknown key of an entry.
    let entry = |value: &[u8]| {
        let start = b"\x81\xa1k\x81\xa1a\x83\xa7ordinal\x00\xadoriginal_size\x00\xa1x";
        [&start[..], value].concat()
    };
    let text = fails(&[0x90], &entry(&[0x91; 100_000]));
    assert!(text.contains("more than 16 values in each other"), "{text}");
    assert!(Kpack::parse(&empty(&[0x90], &entry(&[&[0x91; 16][..], &[0xc0]].concat()))).is_ok());
}

#[test]
fn keys_that_are_there_twice_are_found() {
    let entry = b"\x82\xa7ordinal\x00\xadoriginal_size\x00";
    let faults = |toc: &[u8]| -> Vec<String> {
        let bytes = empty(b"\x91\xa1a", toc);
        let pack = Kpack::parse(&bytes).unwrap();
        let faults = pack.check().into_iter().filter(|fault| fault.to_string().contains("twice"));
        faults.map(|fault| format!("{:?} {fault}", fault.kind())).collect()
    };
    // A key with one target each: loaders see both, AMD's Python tools the last.
    let found = faults(&[b"\x82\xa3k#0\x81\xa1a", &entry[..], b"\xa3k#0\x81\xa1b", entry].concat());
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("Malformed toc: k#0 is there twice"), "{found:?}");
    // The same target again, before and after others: the last counts.
    let other = b"\x82\xa7ordinal\x01\xadoriginal_size\x00";
    let toc = [&b"\x81\xa3k#0\x83\xa1a"[..], entry, b"\xa1b", entry, b"\xa1a", other].concat();
    let found = faults(&toc);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("Malformed toc: k#0 for a is there twice"), "{found:?}");
    let bytes = empty(b"\x91\xa1a", &toc);
    let pack = Kpack::parse(&bytes).unwrap();
    assert_eq!(pack.toc().find("k#0", "a").unwrap().ordinal(), 1);
    assert_eq!(pack.toc().find("k#0", "b"), None);
    // A key of an entry.
    let twice = b"\x81\xa3k#0\x81\xa1a\x83\xa7ordinal\x00\xa7ordinal\x01\xadoriginal_size\x00";
    let found = faults(twice);
    assert!(found[0].contains("k#0 for a: ordinal is there twice"), "{found:?}");
}

#[test]
fn every_bit_may_be_another() {
    for scheme in [Scheme::Plain, Scheme::Zstd] {
        let (new, stored) = sample(scheme);
        let mut pack = bytes(&new, &stored);
        for at in 0..pack.len() {
            for bit in 0..8 {
                pack[at] ^= 1 << bit;
                if let Ok(changed) = Kpack::parse(&pack) {
                    let _ = changed.check();
                    let (new, numbers) = kpack::NewKpack::some_of(changed.toc(), |_| true);
                    assert_eq!(new.len(), numbers.len() as u64);
                    for entry in changed.toc().entries() {
                        let stored = changed.stored(entry).map_or(0, <[u8]>::len);
                        assert!(stored <= pack.len());
                    }
                }
                pack[at] ^= 1 << bit;
            }
        }
    }
}
