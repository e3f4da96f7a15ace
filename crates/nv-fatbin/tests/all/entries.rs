//! Headers, identifiers and options.

use nv_fatbin::{Codec, Entry, ErrorKind, Fatbin, Flags, Kind, fatbins};
use samples::fatbin::{Made, fatbin, options};

fn entries(bytes: &[u8]) -> Vec<Entry<'_>> {
    Fatbin::parse(bytes).unwrap().entries().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_field_is_read() {
    let ptx = Made {
        kind: 1,
        sm: 80,
        flags: 0x11,
        version: (8, 7),
        options: Some(options(64, "-O3 ")),
        payload: b".version 8.7\n\0".to_vec(),
        ..Made::default()
    };
    let cubin = Made {
        kind: 2,
        sm: 90,
        flags: 0x10_0001 | 1 << 40,
        version: (1, 8),
        identifier: Some("module_1"),
        payload: b"\x7fELF1234".to_vec(),
        ..Made::default()
    };
    let bytes = fatbin(&[ptx, cubin]);
    let found = entries(&bytes);
    let [ptx, cubin] = &found[..] else { panic!("{found:?}") };

    assert_eq!((ptx.index(), ptx.offset(), ptx.end()), (0, 16, cubin.offset()));
    assert_eq!((ptx.kind(), ptx.kind().name()), (Kind::PTX, Some("ptx")));
    assert_eq!((ptx.code_version(), ptx.version()), ((8, 7), 0x101));
    assert_eq!(ptx.flags(), Flags::BITS_64 | Flags::LINUX);
    assert_eq!((ptx.identifier().unwrap(), ptx.options().unwrap()), (None, Some(&b"-O3 "[..])));
    // Not compressed: with its padding.
    assert_eq!(ptx.payload(), Some(&b".version 8.7\n\0\0\0"[..]));
    assert_eq!((ptx.codec(), ptx.size(), ptx.stored_size()), (None, 16, 16));
    assert_eq!(ptx.range(), 16 + 64 + 16..cubin.offset());

    assert_eq!((cubin.index(), cubin.end()), (1, bytes.len() as u64));
    assert_eq!((cubin.architecture().sm(), cubin.architecture().suffix()), (90, "a"));
    assert_eq!(
        (cubin.identifier().unwrap(), cubin.options().unwrap()),
        (Some(&b"module_1"[..]), None)
    );
    assert_eq!(
        cubin.flags().bits(),
        0x100_0010_0001 & !0x100_0000_0000 | 1 << 40,
        "unknown flags stay"
    );
    assert_eq!(cubin.bytes(), Some(&bytes[cubin.offset() as usize..]));
}

#[test]
fn architectures_and_kinds_have_names() {
    for (flags, name) in [(0, "sm_120"), (0x10_0000, "sm_120a"), (0x20_0000, "sm_120f")] {
        let bytes = fatbin(&[Made { kind: 2, sm: 120, flags, ..Made::default() }]);
        assert_eq!(entries(&bytes)[0].architecture().to_string(), name);
    }
    let names = [1, 2, 4, 8, 0x20, 0x40, 0x80, 0x100, 3].map(|kind| Kind(kind).to_string());
    let expected =
        ["ptx", "elf", "cubin", "nvvm", "index", "reloc", "tileir", "concat", "kind 0x3"];
    assert_eq!(names, expected);
}

#[test]
fn flags_name_codecs() {
    let codec = |flags| Codec::of(Flags::from_bits_retain(flags)).map(Codec::name);
    for (flags, name) in [
        (1, None),
        (0x1001, Some("zlib")),
        (0x2001, Some("lz4")),
        (0x4001, Some("unknown")),
        (0x8001, Some("zstd")),
        (0x1_8001, Some("scrambled")),
        // Scrambled is what was compressed only.
        (0x1_0001, None),
    ] {
        assert_eq!(codec(flags), name, "{flags:#x}");
    }
}

/// CUDA 11 writes a descriptor of zeros, and no text.
#[test]
fn a_descriptor_of_zeros_has_no_options() {
    let bytes = fatbin(&[Made { kind: 1, sm: 80, options: Some(vec![0; 8]), ..Made::default() }]);
    assert_eq!(entries(&bytes)[0].options().unwrap(), None);
}

#[test]
fn extensions_outside_of_the_header_are_errors() {
    let made = Made { kind: 1, sm: 80, identifier: Some("name"), ..Made::default() };
    let bytes = fatbin(&[made]);
    for (at, value, what) in [
        (32, 63_u32, "identifier at 0x3f..0x43"),
        (32, 69, "identifier at 0x45..0x49"),
        (36, u32::MAX, "identifier at 0x40..0x10000003f"),
        (20, 65, "options at 0x41..0x49"),
        (20, 1, "options at 0x1..0x9"),
        (20, u32::MAX, "options at 0xffffffff..0x100000007"),
    ] {
        let mut bytes = bytes.clone();
        bytes[16 + at..][..4].copy_from_slice(&value.to_le_bytes());
        let entry = entries(&bytes)[0];
        let error = entry.identifier().and(entry.options()).unwrap_err();
        assert_eq!((error.kind(), error.entry()), (ErrorKind::Malformed, Some(0)));
        assert_eq!(
            error.to_string(),
            format!(
                "fatbinary entry 0 at 0x10: its {what} is not between 0x40 and the end of its header at 0x48"
            )
        );
    }
}

#[test]
fn fatbinaries_follow_each_other_with_zeros_between() {
    let one = fatbin(&[Made { kind: 2, sm: 90, payload: vec![7; 24], ..Made::default() }]);
    let section = [&one[..], &[0; 5], &one, &one, &[0; 90]].concat();
    let found = fatbins(&section).map(|found| found.map(|(at, fatbin)| (at, fatbin.size())));
    let size = one.len() as u64;
    assert_eq!(
        found.collect::<Result<Vec<_>, _>>().unwrap(),
        [(0, size), (size + 5, size), (2 * size + 5, size)]
    );
    let other = [&one[..], &[0, 0, 9], &one].concat();
    let found = fatbins(&other).collect::<Vec<_>>();
    assert_eq!(found.len(), 2);
    let error = found[1].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::NotAFatbin, Some(size + 2)));
}

/// A program may have read any part of a file.
#[test]
fn an_entry_says_what_it_needs_in_memory() {
    let made =
        Made { kind: 1, sm: 80, identifier: Some("name"), payload: vec![1; 40], ..Made::default() };
    let bytes = fatbin(&[made]);
    let size = bytes.len() as u64;
    let whole = Entry::parse(&bytes[16..], 0, 16, size).unwrap();
    for len in 64..bytes.len() - 16 {
        let entry = Entry::parse(&bytes[16..][..len], 0, 16, size).unwrap();
        assert_eq!((entry.range(), entry.bytes()), (whole.range(), None));
        assert_eq!(entry.payload().is_some(), len >= 64 + 8 + 40);
        let identifier = entry.identifier();
        if len >= 68 {
            assert_eq!(identifier.unwrap(), Some(&b"name"[..]));
        } else {
            let error = identifier.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Incomplete);
            assert_eq!(
                error.to_string(),
                "fatbinary entry 0 at 0x10: expected its first 72 bytes in memory"
            );
        }
    }
}
