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
    assert_eq!(faults.len(), 1);
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
