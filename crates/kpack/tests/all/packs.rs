//! Packs as AMD's tools write them, and packs of ours.

use byte_parts::Source;
use kpack::{ErrorKind, Kpack, Marker, NewKpack, Scheme, Tables, Wrapper, search, toc_range};

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
    // Only code objects are damaged: nothing reads them.
    let whole = Kpack::parse(&pack).unwrap();
    let mut read = pack.clone();
    whole.blobs().ranges().iter().for_each(|range| {
        read[range.start as usize..range.end as usize].fill(0);
    });
    let mut file = [&b"before"[..], &read, b"after"].concat();
    let window = 6..6 + pack.len() as u64;
    let tables = Tables::read(&mut Source::of_bytes(&file), &window).unwrap().unwrap();
    assert_eq!(tables.blobs().ranges().len(), 3);
    assert_eq!(tables.blobs().ranges(), whole.blobs().ranges());
    assert_eq!(tables.toc().entries(), whole.toc().entries());
    file.truncate(file.len() - 6);
    let error = Tables::read(&mut Source::of_bytes(&file[..window.end as usize - 1]), &window);
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!(
        toc_range(&pack[..16], 1 << 40).unwrap_err().kind(),
        ErrorKind::Limit,
        "a table of a terabyte"
    );
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
    assert_eq!(marker.to_vec().unwrap(), expected);
    assert_eq!(expected.len(), 75);
    // Other bytes may follow.
    let mut longer = expected.to_vec();
    longer.extend([0xc1; 9]);
    assert_eq!(Marker::parse(&longer).unwrap(), (marker, 75));
    for len in 0..expected.len() {
        assert!(Marker::parse(&expected[..len]).is_err(), "{len}");
    }
    for bytes in [
        &b"\x81\xabkernel_name\xa1a"[..],
        b"\x83\xabkernel_name\xa1a\xb2kpack_search_paths\x91\xa1a\xabkernel_name\xa1b",
        b"\x83\xb2kpack_search_paths\x91\xa1a\xabkernel_name\xa1a\xb2kpack_search_paths\x91\xa1b",
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
    assert_eq!(search::subsets("amdgcn-amd-amdhsa--gfx906:xnack-"), ["gfx906:xnack-", "gfx906"]);
    assert_eq!(search::subsets("gfx906::xnack-:"), ["gfx906:xnack-", "gfx906"]);
    // As a loader goes: not those with more features first.
    let names = ["g:a:b:c", "g:a:b", "g:a:c", "g:a", "g:b:c", "g:b", "g:c", "g"];
    assert_eq!(search::subsets("g:a:b:c"), names);
    assert!(search::subsets("").is_empty() && search::subsets(":xnack+").is_empty());
    assert_eq!(search::subsets(&format!("g{}", ":a".repeat(40))).len(), 16);
    assert_eq!(search::path("no place", "gfx942"), "no place");
    assert_eq!(search::path("@GFXARCH@@GFXARCH@", "a"), "a@GFXARCH@");
    assert_eq!(search::key("lib/a.so", 12), "lib/a.so#12");
}

/// A frame of one block that is not compressed.
fn raw_frame(code: &[u8]) -> Vec<u8> {
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x20, code.len() as u8];
    let block = (code.len() as u32) << 3 | 1;
    [&head[..], &block.to_le_bytes()[..3], code].concat()
}

#[test]
fn compressed_packs_have_the_bytes_of_the_splitter() {
    let mut new = NewKpack::new("test", "gfx1100", Scheme::Zstd).with_family("gfx110X");
    new.add("lib/l.so", 0, "gfx1100", 3);
    new.set_metadata(&[("target", "hipv4-amdgcn-amd-amdhsa--gfx1100"), ("source_prefix", "a")]);
    new.add("lib/l.so", 0, "gfx1101", 4);
    let frames = [raw_frame(b"abc"), raw_frame(b"code")];
    let pack = bytes(&new, &frames);
    let text = |text: &str| match text.len() {
        len @ ..32 => [&[0xa0 | len as u8][..], text.as_bytes()].concat(),
        len => [&[0xd9, len as u8][..], text.as_bytes()].concat(),
    };
    let entry = |ordinal, size| {
        [
            &text("type")[..],
            &text("hsaco"),
            &text("ordinal"),
            &[ordinal],
            &text("original_size"),
            &[size],
        ]
        .concat()
    };
    let expected = [
        &b"KPAK\x01\0\0\0\x65\0\0\0\0\0\0\0"[..],
        &[0; 48],
        b"\x02\0\0\0\x0c\0\0\0\x28\xb5\x2f\xfd\x20\x03\x19\0\0abc",
        b"\x0d\0\0\0\x28\xb5\x2f\xfd\x20\x04\x21\0\0code",
        &[0x88],
        &text("format_version"),
        &[1],
        &text("group_name"),
        &text("test"),
        &text("gfx_arch_family"),
        &text("gfx110X"),
        &text("gfx_arches"),
        &[0x92],
        &text("gfx1100"),
        &text("gfx1101"),
        &text("toc"),
        &[0x81],
        &text("lib/l.so#0"),
        &[0x82],
        &text("gfx1100"),
        &[0x84],
        &entry(0, 3),
        &text("metadata"),
        &[0x82],
        &text("target"),
        &text("hipv4-amdgcn-amd-amdhsa--gfx1100"),
        &text("source_prefix"),
        &text("a"),
        &text("gfx1101"),
        &[0x83],
        &entry(1, 4),
        &text("compression_scheme"),
        &text("zstd-per-kernel"),
        &text("zstd_offset"),
        &[64],
        &text("zstd_size"),
        &[37],
    ];
    assert_eq!(pack, expected.concat());
    let pack = Kpack::parse(&pack).unwrap();
    assert!(pack.check().is_empty(), "{:?}", pack.check());
    let entry = pack.toc().find("lib/l.so#0", "gfx1100").unwrap();
    assert_eq!(kpack::decompress(pack.stored(entry).unwrap(), 3).unwrap(), b"abc");
    assert_eq!(entry.entry_id().unwrap(), "hipv4-amdgcn-amd-amdhsa--gfx1100");
    assert!(entry.metadata().unwrap().starts_with(b"\x82\xa6target"));
}

#[test]
fn sizes_of_frames_are_read_in_all_forms() {
    let size = |rest: &[u8]| kpack::content_size(&[&[0x28, 0xb5, 0x2f, 0xfd][..], rest].concat());
    assert_eq!(size(&[0x20, 7]), Some(7));
    assert_eq!(size(&[0x60, 1, 1]), Some(257 + 256));
    // With a window; with the number of a dictionary.
    assert_eq!(size(&[0x40, 9, 0, 1]), Some(512));
    assert_eq!(size(&[0xa3, 9, 9, 9, 9, 1, 0, 0, 1]), Some(0x100_0001));
    assert_eq!(size(&[0xc0, 9, 1, 0, 0, 0, 0, 0, 0, 1]), Some(0x100_0000_0000_0001));
    assert_eq!(size(&[0, 9, 1, 1, 1]), None);
    for cut in [&[][..], &[0x20], &[0x60, 1], &[0xa0, 1, 1, 1], &[0xc0, 9, 1, 1, 1, 1, 1, 1, 1]] {
        assert_eq!(size(cut), None);
    }
    assert_eq!(kpack::content_size(b"not a frame"), None);
    for len in [0, 1, 255, 256, 70_000] {
        let frame = kpack::compress(&vec![5; len], 3).unwrap();
        assert_eq!(kpack::content_size(&frame), Some(len as u64));
    }
}

#[test]
fn frames_without_a_size_are_read_and_told() {
    // Descriptor 0: a window follows, and no size.
    let frame = b"\x28\xb5\x2f\xfd\x00\x00\x21\x00\x00code".to_vec();
    let mut new = NewKpack::new("g", "gfx942", Scheme::Zstd);
    new.add("a", 0, "gfx942", 4);
    let faults_of = |frame: Vec<u8>| {
        let pack = bytes(&new, &[frame]);
        let pack = Kpack::parse(&pack).unwrap();
        let faults = pack.check();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].offset(), 72);
        (faults[0].kind(), faults[0].to_string())
    };
    assert_eq!(kpack::decompress(&frame, 4).unwrap(), b"code");
    let (kind, text) = faults_of(frame);
    assert_eq!(kind, ErrorKind::Unreachable);
    assert!(text.starts_with("toc: a#0 for gfx942: the frame does not say its size"), "{text}");
    let (kind, text) = faults_of(raw_frame(b"codes"));
    assert_eq!(kind, ErrorKind::Codec);
    assert!(text.contains("expected a frame of 4 bytes of code, found 5"), "{text}");
    let (kind, text) = faults_of(b"code".to_vec());
    assert_eq!(kind, ErrorKind::Codec);
    assert!(text.contains("expected a Zstandard frame"), "{text}");
}

#[test]
fn keys_have_the_number_that_loaders_write() {
    for (number, index) in [
        ("0", Some(0)),
        ("12", Some(12)),
        ("4294967295", Some(u64::from(u32::MAX))),
        ("4294967296", None),
        ("+1", None),
        ("01", None),
        ("", None),
        ("x", None),
    ] {
        let mut new = NewKpack::new("g", "gfx942", Scheme::Plain);
        new.add("a#1#9", 7, "gfx942", 1);
        let pack = bytes(&new, &[b"c".to_vec()]);
        // The key has nine bytes more with the longest number.
        let old = b"\xa7a#1#9#7";
        let at = pack.windows(old.len()).position(|bytes| bytes == old).unwrap();
        let key = format!("a#1#9#{number}");
        let head = [0xa0 | key.len() as u8];
        let pack = [&pack[..at], &head, key.as_bytes(), &pack[at + old.len()..]].concat();
        let pack = Kpack::parse(&pack).unwrap();
        let entry = &pack.toc().entries()[0];
        assert_eq!((entry.kernel_name(), entry.index()), ("a#1#9", index), "{number}");
        assert_eq!(pack.check().is_empty(), index.is_some());
    }
}

#[test]
fn unknown_keys_survive_a_rewrite() {
    let mut new = NewKpack::new("g", "gfx942", Scheme::Plain);
    new.add("a", 0, "gfx942", 1);
    new.note("later", b"x");
    let old = bytes(&new, &[b"c".to_vec()]);
    let entry = b"\x83\xa4type\xa5hsaco\xa7ordinal\x00\xadoriginal_size\x01";
    let more = [&b"\x85"[..], &entry[1..], b"\xa1n\x92\xc0\xc3\xa1m\xca\0\0\0\0"].concat();
    let at = old.windows(entry.len()).position(|bytes| bytes == entry).unwrap();
    let old = [&old[..at], &more, &old[at + entry.len()..]].concat();
    let pack = Kpack::parse(&old).unwrap();
    assert!(pack.check().is_empty(), "{:?}", pack.check());
    let (mut same, _) = NewKpack::some_of(pack.toc(), |_| true);
    assert_eq!(bytes(&same, &[b"c".to_vec()]), old);
    // A note replaces the one of its key.
    same.note("later", b"y");
    let again = bytes(&same, &[b"c".to_vec()]);
    assert_eq!(Kpack::parse(&again).unwrap().toc().note("later"), Some(&b"y"[..]));
    same.note("toc", b"z");
    let error = same.layout(&[1]).unwrap_err();
    assert!(error.to_string().starts_with("note: the key toc is one of the format's"), "{error}");
}

#[test]
fn layouts_that_could_not_be_read_are_refused() {
    let mut new = NewKpack::new("g", "gfx942", Scheme::Plain);
    new.add("a", 0, "gfx942", 3);
    let error = new.layout(&[4]).unwrap_err();
    assert!(error.to_string().contains("a#0 for gfx942: expected 3 bytes of code, found 4"));
    new.add_again("a", 1, "gfx942", 3, 1);
    let error = new.layout(&[3]).unwrap_err();
    assert!(error.to_string().contains("expected an ordinal below 1, found 1"), "{error}");
}

#[test]
fn wrappers_have_24_bytes() {
    let split = b"HIPK\x01\0\0\0\x00\x30\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";
    assert_eq!(&Wrapper::split(0x3000, 2).to_bytes(), split);
    let fat = b"FPIH\x01\0\0\0\x00\x30\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(&Wrapper::fat(0x3000).to_bytes(), fat);
    let fat = Wrapper::parse(fat).unwrap();
    assert!(!fat.is_split());
    assert_eq!((fat.version(), fat.pointer(), fat.index(), fat.last_word()), (1, 0x3000, None, 0));
    for len in 0..Wrapper::SIZE {
        assert_eq!(Wrapper::parse(&split[..len]).unwrap_err().kind(), ErrorKind::Truncated);
    }
    // Any version and last word are kept; loaders read half of the word.
    let mut odd = *split;
    (odd[4], odd[23]) = (9, 1);
    let wrapper = Wrapper::parse(&odd).unwrap();
    assert!(wrapper.is_split());
    assert_eq!((wrapper.version(), wrapper.index()), (9, Some(2)));
    assert_eq!(wrapper.to_bytes(), odd);
    odd[0] = b'h';
    let error = Wrapper::parse(&odd).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Magic);
    let text = "wrapper: expected the magic HIPF or HIPK, found 0x4b504968 (at 0x0)";
    assert_eq!(error.to_string(), text);
}
