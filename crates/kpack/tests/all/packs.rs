//! Packs as AMD's tools write them, and packs of ours.

use kpack::{Blobs, ErrorKind, Kpack, Marker, NewKpack, Scheme, Toc, search, toc_range};

/// Returns a pack of two libraries for two targets.
pub(crate) fn sample(scheme: Scheme) -> (NewKpack, Vec<Vec<u8>>) {
    let code: Vec<Vec<u8>> = (1..=3).map(|n| vec![n; 100 * usize::from(n)]).collect();
    let mut new = NewKpack::new("test", "gfx1100", scheme).with_family("gfx110X");
    for (n, (name, arch)) in
        [("lib/libhip.so", "gfx1100"), ("lib/libhip.so", "gfx1101"), ("bin/hiptest", "gfx1100")]
            .into_iter()
            .enumerate()
    {
        assert_eq!(new.add(name, 0, arch, code[n].len() as u64), n as u64);
    }
    let stored = match scheme {
        Scheme::Plain => code,
        Scheme::Zstd => code.iter().map(|code| kpack::compress(code, 3).unwrap()).collect(),
    };
    (new, stored)
}

pub(crate) fn bytes(new: &NewKpack, stored: &[Vec<u8>]) -> Vec<u8> {
    let sizes: Vec<u64> = stored.iter().map(|code| code.len() as u64).collect();
    new.layout(&sizes).unwrap().to_vec(|&n| &stored[n]).unwrap()
}

#[test]
fn tables_have_the_order_and_the_forms_of_the_splitter() {
    let mut new = NewKpack::new("g", "gfx90a", Scheme::Plain);
    new.add("n", 0, "gfx90a", 300);
    let pack = bytes(&new, &[vec![7; 300]]);
    let text = |text: &str| [&[0xa0 | text.len() as u8][..], text.as_bytes()].concat();
    let expected = [
        &b"KPAK\x01\0\0\0"[..],
        &364_u64.to_le_bytes(),
        &[0; 48],
        &[7; 300],
        &[0x87],
        &text("format_version"),
        &[1],
        &text("group_name"),
        &text("g"),
        &text("gfx_arch_family"),
        &text("gfx90a"),
        &text("gfx_arches"),
        &[0x91],
        &text("gfx90a"),
        &text("toc"),
        &[0x81],
        &text("n#0"),
        &[0x81],
        &text("gfx90a"),
        &[0x83],
        &text("type"),
        &text("hsaco"),
        &text("ordinal"),
        &[0],
        &text("original_size"),
        &[0xcd, 1, 44],
        &text("compression_scheme"),
        &text("none"),
        &text("blobs"),
        &[0x91, 0x82],
        &text("offset"),
        &[64],
        &text("size"),
        &[0xcd, 1, 44],
    ];
    assert_eq!(pack, expected.concat());
}

#[test]
fn packs_are_read_as_they_were_written() {
    for scheme in [Scheme::Plain, Scheme::Zstd] {
        let (new, stored) = sample(scheme);
        let pack = bytes(&new, &stored);
        let pack = Kpack::parse(&pack).unwrap();
        let toc = pack.toc();
        assert!(pack.check().is_empty(), "{:?}", pack.check());
        assert_eq!((toc.group(), toc.family(), toc.scheme()), ("test", "gfx110X", scheme));
        assert_eq!(toc.archs(), ["gfx1100", "gfx1101"]);
        for (n, entry) in toc.entries().iter().enumerate() {
            assert_eq!(entry.ordinal(), n as u64);
            assert_eq!(pack.stored(entry).unwrap(), stored[n]);
            assert_eq!((entry.kind(), entry.index(), entry.entry_id()), ("hsaco", Some(0), None));
            if scheme == Scheme::Zstd {
                let code = kpack::decompress(&stored[n], entry.original_size()).unwrap();
                assert_eq!(code, vec![n as u8 + 1; 100 * (n + 1)]);
                for size in [0, 1, code.len() as u64 - 1, code.len() as u64 + 1, u64::MAX] {
                    assert!(kpack::decompress(&stored[n], size).is_err(), "{size}");
                }
            }
        }
        assert_eq!(toc.find("lib/libhip.so#0", "gfx1101").unwrap().ordinal(), 1);
        assert_eq!(toc.find("lib/libhip.so#1", "gfx1101"), None);
    }
}

#[test]
fn frames_have_their_size() {
    // Descriptor of the header: the size of the contents has a field.
    for len in [0, 1, 255, 256, 70_000] {
        let frame = kpack::compress(&vec![5; len], 3).unwrap();
        let descriptor = frame[4];
        assert!(descriptor & 0b1110_0000 > 0, "{len}");
        assert_eq!(kpack::decompress(&frame, len as u64).unwrap(), vec![5; len]);
    }
}

#[test]
fn readers_with_seek_need_little() {
    let (new, stored) = sample(Scheme::Zstd);
    let pack = bytes(&new, &stored);
    let table = toc_range(&pack[..16], pack.len() as u64).unwrap();
    let toc = Toc::parse(&pack[table.start as usize..], table.start).unwrap();
    let mut blobs = Blobs::new(&toc);
    let mut asked = Vec::new();
    while let Some(at) = blobs.next_length() {
        asked.push(at);
        let number = pack[at as usize..][..4].try_into().unwrap();
        blobs.set_length(u32::from_le_bytes(number)).unwrap();
    }
    assert_eq!(asked.len(), 4);
    assert_eq!(blobs.ranges(), Kpack::parse(&pack).unwrap().blobs().ranges());
}

#[test]
fn wrappers_may_share_code_and_notes_are_kept() {
    let mut new = NewKpack::new("g", "gfx942:xnack+", Scheme::Plain);
    let ordinal = new.add("lib/a.so", 0, "gfx942:xnack+", 2);
    new.add_again("lib/a.so", 1, "gfx942:xnack+", 2, ordinal);
    new.set_entry_id("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+");
    new.note("offload", b"recipe");
    let pack = bytes(&new, &[b"ab".to_vec()]);
    let pack = Kpack::parse(&pack).unwrap();
    assert!(pack.check().is_empty());
    assert_eq!(pack.toc().note("offload"), Some(&b"recipe"[..]));
    assert_eq!(pack.toc().note("other"), None);
    let entries = pack.toc().entries();
    assert_eq!(entries[0].entry_id(), None);
    assert_eq!(entries[1].entry_id().unwrap(), "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+");
    assert_eq!(pack.stored(&entries[0]), pack.stored(&entries[1]));
    let (same, numbers) = NewKpack::some_of(pack.toc(), |_| true);
    assert_eq!(numbers, [0]);
    assert_eq!(bytes(&same, &[b"ab".to_vec()]), bytes(&new, &[b"ab".to_vec()]));
}

#[test]
fn a_target_is_there_once() {
    let mut new = NewKpack::new("g", "gfx942", Scheme::Plain);
    new.add("a", 0, "gfx942", 1);
    new.add("a", 0, "gfx942", 1);
    let error = new.layout(&[1, 1]).unwrap_err();
    assert_eq!(error.to_string(), "a#0 has code for gfx942 twice (at 0x0)");
    assert!(new.layout(&[1]).is_err());
}

#[test]
fn markers_are_those_of_the_splitter() {
    let marker = Marker::new("lib/libtwo.so", ["../.kpack/t_@GFXARCH@.kpack"]);
    let expected =
        b"\x82\xb2kpack_search_paths\x91\xbb../.kpack/t_@GFXARCH@.kpack\xabkernel_name\xadlib/libtwo.so";
    assert_eq!(marker.to_vec(), expected);
    assert_eq!(expected.len(), 75);
    // Whatever follows, and in any order.
    let mut longer = expected.to_vec();
    longer.extend([0xc1; 9]);
    assert_eq!(Marker::parse(&longer).unwrap(), (marker, 75));
    for len in 0..expected.len() {
        assert!(Marker::parse(&expected[..len]).is_err(), "{len}");
    }
    for bytes in [
        &b"\x81\xabkernel_name\xa1a"[..],
        b"\x81\xb2kpack_search_paths\x91\xa1a",
        b"\x82\xabkernel_name\xa1a\xb2kpack_search_paths\x90",
        b"\x82\xabkernel_name\x01\xb2kpack_search_paths\x91\xa1a",
    ] {
        assert_eq!(Marker::parse(bytes).unwrap_err().kind(), ErrorKind::Malformed);
    }
    let more = b"\x83\xa1x\x91\xc0\xabkernel_name\xa1a\xb2kpack_search_paths\x92\xa1b\xa1c";
    let (marker, _) = Marker::parse(more).unwrap();
    assert_eq!(
        (marker.kernel_name(), marker.search_paths()),
        ("a", &["b".to_string(), "c".to_string()][..])
    );
}

#[test]
fn names_are_looked_up_from_the_most_specific() {
    assert_eq!(search::subsets("gfx1100"), ["gfx1100"]);
    assert_eq!(search::subsets("gfx906:xnack-"), ["gfx906:xnack-", "gfx906"]);
    assert_eq!(search::subsets(""), [""]);
    assert_eq!(search::subsets(&":a".repeat(40)).len(), 16);
    assert_eq!(search::path("no place", "gfx942"), "no place");
    assert_eq!(search::path("@GFXARCH@@GFXARCH@", "a"), "a@GFXARCH@");
    assert_eq!(search::key("lib/a.so", 12), "lib/a.so#12");
}
