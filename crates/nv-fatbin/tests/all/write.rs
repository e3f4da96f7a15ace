//! Entries and fatbinaries that are written, and read again.

use nv_fatbin::{
    Architecture, Compression, CompressionMode, Entry, Error, ErrorKind, Fatbin, Flags, Kind,
    NewEntry, NewFatbin,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use samples::fatbin::{self, Made};

fn architecture(name: &str) -> Architecture {
    Architecture::from_name(name).unwrap()
}

fn entries(bytes: &[u8]) -> Vec<Entry<'_>> {
    Fatbin::parse(bytes).unwrap().entries().collect::<Result<_, _>>().unwrap()
}

fn written(entries: &[NewEntry<'_>]) -> Result<Vec<u8>, Error> {
    let mut fatbin = NewFatbin::new();
    entries.iter().try_for_each(|entry| fatbin.add(entry))?;
    let bytes = fatbin.to_vec()?;
    let parts =
        fatbin.entries().fold(fatbin.header().to_vec(), |file, entry| [&file, entry].concat());
    assert_eq!(bytes, parts);
    Ok(bytes)
}

/// A cubin's ELF header and, if there is one, a section `.nv.compat` as the second of two.
fn cubin(abi_version: u8, flags: u32, compat: Option<&[u8]>) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\x41".to_vec();
    file.push(abi_version);
    file.resize(18, 0);
    file.extend(190_u16.to_le_bytes());
    file.resize(40, 0);
    file.extend(64_u64.to_le_bytes());
    file.extend(flags.to_le_bytes());
    file.resize(58, 0);
    file.extend([64, 0, 2, 0, 0, 0]);
    file.resize(64 + 2 * 64, 0);
    if let Some(compat) = compat {
        file[128 + 4..][..4].copy_from_slice(&0x7000_0086_u32.to_le_bytes());
        file[128 + 24..][..8].copy_from_slice(&192_u64.to_le_bytes());
        file[128 + 32..][..8].copy_from_slice(&(compat.len() as u64).to_le_bytes());
        file.extend(compat);
    }
    file
}

/// An entry as it is written, field by field.
#[test]
fn every_field_is_written() {
    let mut entry = NewEntry::new(Kind::PTX, architecture("sm_90a"), &b".version 8.7\n\0"[..])
        .with_flags(Flags::BITS_64 | Flags::LINUX)
        .with_identifier(&b"module_1"[..])
        .with_options(&b"-O3 "[..]);
    entry.code_version = (8, 7);
    let expected = fatbin::fatbin(&[Made {
        kind: 1,
        sm: 90,
        flags: 0x10_0011,
        version: (8, 7),
        identifier: Some("module_1"),
        options: Some(fatbin::options(80, "-O3 ")),
        payload: b".version 8.7\n\0".to_vec(),
        size: 0,
    }]);
    assert_eq!(written(&[entry]).unwrap(), expected);
    assert_eq!(written(&[]).unwrap(), fatbin::fatbin(&[]));
}

/// A text of 8 bytes takes 16, as a NUL ends it; an empty one takes 8.
#[test]
fn texts_are_padded_with_their_nul() {
    for (len, header) in [(0, 72), (1, 72), (7, 72), (8, 80), (15, 80), (16, 88)] {
        let entry = NewEntry::new(Kind::ELF, architecture("sm_90"), vec![7; 16]);
        let bytes = written(&[entry.with_identifier(vec![b'x'; len])]).unwrap();
        assert_eq!(entries(&bytes)[0].range().start, 16 + header);
        assert_eq!(entries(&bytes)[0].identifier().unwrap(), Some(&vec![b'x'; len][..]));
    }
}

#[test]
fn a_cubin_says_what_its_entry_repeats() {
    let old = cubin(7, 0x50_0550, Some(b"compat"));
    assert_eq!(Architecture::of_cubin(&old).unwrap().to_string(), "sm_80");
    let entry = NewEntry::cubin(architecture("sm_80"), &old).unwrap();
    assert_eq!((entry.kind, entry.sm, entry.code_version), (Kind::ELF, 80, (1, 7)));
    // Below sm_100 the section is not copied.
    assert_eq!((entry.flags, entry.options), (Flags::BITS_64, None));

    let new = cubin(8, 0x0600_6402, Some(b"compat.."));
    let entry = NewEntry::cubin(architecture("sm_100f"), &new).unwrap();
    assert_eq!((entry.sm, entry.code_version), (100, (1, 8)));
    assert_eq!(entry.flags, Flags::BITS_64 | Flags::FAMILY_SPECIFIC | Flags::COMPAT);
    let bytes = written(&[entry]).unwrap();
    let [entry] = entries(&bytes)[..] else { panic!() };
    assert_eq!(entry.options().unwrap(), Some(&b"compat.."[..]));
    // Its descriptor, a byte 0 that its length does not count, and NUL.
    assert_eq!(bytes[16 + 64..][..24], *b"\x48\0\0\0\x08\0\0\0\0compat..\0\0\0\0\0\0\0");
    assert!(entry.decompress(1 << 10).unwrap().starts_with(&new));

    let without = cubin(8, 0x0600_6402, None);
    let entry = NewEntry::cubin(architecture("sm_100"), &without).unwrap();
    assert_eq!((entry.flags, entry.options), (Flags::BITS_64, None));
}

#[test]
fn what_is_not_the_cubin_asked_for_is_refused() {
    let file = cubin(8, 0x0600_5a04, None);
    let error = NewEntry::cubin(architecture("sm_80"), &file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert_eq!(error.to_string(), "the cubin is for sm_90, expected one for sm_80");
    let mut other = file.clone();
    other[18] = 62;
    for file in [&other[..], b"", b"\x7fELF", &file[..51]] {
        let error = Architecture::of_cubin(file).unwrap_err();
        assert_eq!(error.to_string(), "expected a cubin: a little-endian ELF file for machine 190");
    }
    // A table of sections that is not there has no section .nv.compat.
    for len in 52..cubin(8, 0x0600_6402, Some(b"compat")).len() {
        let file = &cubin(8, 0x0600_6402, Some(b"compat"))[..len];
        let entry = NewEntry::cubin(architecture("sm_100"), file).unwrap();
        assert_eq!(entry.options, None);
    }
}

/// Every line was seen with `fatbinary` 13.5.
#[test]
fn ptx_is_stored_as_fatbinary_stores_it() {
    for (text, stored) in [
        ("a  b\n", "a b\n"),
        ("a\t\t b\n", "a\tb\n"),
        ("a  \r\nb", "a \r\nb"),
        ("a\n\t b\n\n\n   c\n", "a\nb\n\n\nc\n"),
        ("a \x0b  b", "a \x0bb"),
        // Comments.
        ("a // b\n  c\n", "a \nc\n"),
        ("a //b\rc\n", "a \rc\n"),
        ("a // b", "a "),
        ("a /* b */ c\n", "a  c\n"),
        ("a/**/b\n", "ab\n"),
        ("/*\n*/  a", " a"),
        ("a\n  /*x*/  \n b", "a\n \nb"),
        ("a /*/ b */ c", "a  b */ c"),
        ("a /* b\n\n", "a "),
        ("// /* \n a */\n", "\na */\n"),
        ("/* // */ a\n", " a\n"),
        ("/* x *// y\n", "/ y\n"),
        ("a / / b\n", "a / / b\n"),
        // Strings.
        ("\"a  b\"  c\n", "\"a  b\" c\n"),
        ("\"a // b\" // c\n", "\"a // b\" \n"),
        ("\"a /* b\" c */\n", "\"a /* b\" c */\n"),
        ("\"a\\\"  // b\"  c", "\"a\\\"  // b\" c"),
        ("\"a\\\\\"  b", "\"a\\\\\"  b"),
        ("\\\"  a\"  b", "\\\" a\"  b"),
        ("\"a\n  // b", "\"a\n  // b"),
        ("'// b'\n", "'\n"),
        // NULs stay, and one more comes.
        ("a\0  b\n\0", "a\0 b\n\0"),
    ] {
        let text = format!(".version 8.7\n{text}");
        let entry = NewEntry::ptx(architecture("sm_90"), text.as_bytes()).unwrap();
        let found = str::from_utf8(&entry.code).unwrap();
        assert_eq!(found, format!(".version 8.7\n{stored}\0"), "{text:?}");
    }
    // Only a first blank stays at the very start.
    let entry = NewEntry::ptx(architecture("sm_90"), b"  .version 8.7").unwrap();
    assert_eq!(*entry.code, *b" .version 8.7\0");
}

#[test]
fn directives_of_ptx_are_read() {
    let version = |text: &str| {
        let entry = NewEntry::ptx(architecture("sm_90"), text.as_bytes());
        entry.map(|entry| entry.code_version).map_err(|error| error.to_string())
    };
    // As fatbinary finds it.
    for (text, expected) in [
        (".version 8.7\n", (8, 7)),
        (".version\n9.3", (9, 3)),
        ("x.version8.7", (8, 7)),
        (".version 18.27", (18, 2)),
        ("// .version 3.4\n.version 8.7\n", (3, 4)),
    ] {
        assert_eq!(version(text), Ok(expected), "{text:?}");
    }
    let expected = "expected PTX with its version, such as .version 8.7";
    for text in [
        "",
        "x",
        ".version 8\n",
        ".version /**/ 8.7",
        ".version x .version 8.7",
        ".version 65536.7",
        "\0.version 8.7",
    ] {
        assert_eq!(version(text), Err(expected.to_owned()), "{text:?}");
    }

    let of = |text: &str| Architecture::of_ptx(text.as_bytes()).map(|found| found.to_string());
    assert_eq!(of("// .target sm_80\n.target sm_90a, debug\n").as_deref(), Some("sm_90a"));
    assert_eq!(of(".target").as_deref(), None);
    assert_eq!(of("").as_deref(), None);
    for (text, flags) in [
        (".version 8.7 .address_size 64", Flags::BITS_64),
        (".version 8.7 .address_size 32", Flags::empty()),
        (".version 8.7", Flags::empty()),
    ] {
        let entry = NewEntry::ptx(architecture("sm_90"), text.as_bytes()).unwrap();
        assert_eq!(entry.flags, flags);
        assert_eq!(entry.options.as_deref(), Some(&[][..]), "PTX has options always");
    }
}

#[test]
fn modes_compress_what_fatbinary_does() {
    use Compression as C;
    use CompressionMode as M;

    let (none, debug) = (Flags::empty(), Flags::DEBUG);
    for (kind, flags, is_relocatable, expected) in [
        (Kind::PTX, none, false, [C::Zstd(5), C::Zstd(19), C::Lz4(3), C::None]),
        (Kind::LTO_IR, none, false, [C::Zstd(5), C::Zstd(19), C::Lz4(3), C::None]),
        (Kind::ELF, none, false, [C::None, C::Zstd(19), C::None, C::None]),
        (Kind::ELF, debug, false, [C::Zstd(5), C::Zstd(19), C::Lz4(3), C::None]),
        (Kind::ELF, none, true, [C::Zstd(5), C::Zstd(19), C::Lz4(3), C::None]),
    ] {
        let modes = [M::Default, M::Size, M::Speed, M::None];
        let found = modes.map(|mode| mode.compression(kind, flags, is_relocatable));
        assert_eq!(found, expected, "{kind} {flags:?} {is_relocatable}");
    }
}

#[test]
fn architectures_are_read_by_name() {
    for (name, printed) in [("sm_75", "sm_75"), ("sm_90a", "sm_90a"), ("compute_100f", "sm_100f")] {
        assert_eq!(architecture(name).to_string(), printed);
    }
    for name in ["", "sm_", "sm_a", "90", "sm_90b", "sm_90af", "sm_+90", "gfx90a", "sm_4294967296"]
    {
        assert_eq!(Architecture::from_name(name), None, "{name}");
    }
}

#[test]
fn entries_with_several_images_are_made_of_images() {
    let entry = NewEntry::new(Kind::CONCATENATED, architecture("sm_0"), vec![1]);
    let first = NewEntry::new(Kind::ELF, architecture("sm_90"), vec![1]);
    let error = written(&[first, entry]).unwrap_err();
    assert_eq!((error.kind(), error.entry()), (ErrorKind::Unsupported, Some(1)));
    assert_eq!(
        error.to_string(),
        "fatbinary entry 1: several images are written from NewEntry::concatenated, and none of them is several"
    );
}

/// The level that `fatbinary` uses, in one frame of a single segment with its size and without a checksum.
#[test]
fn zstd_is_written_by_libzstd_alone() {
    let code = b"code ".repeat(50);
    let entry = NewEntry::new(Kind::PTX, architecture("sm_90"), &code[..]);
    let result = written(&[entry.with_compression(Compression::Zstd(5))]);
    if cfg!(feature = "zstd") {
        let bytes = result.unwrap();
        let payload = entries(&bytes)[0].payload().unwrap();
        assert_eq!(payload[..5], [0x28, 0xb5, 0x2f, 0xfd, 0x20], "frame header");
        assert_eq!(payload[5], 250, "size");
    } else {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.entry()), (ErrorKind::Unsupported, Some(0)));
        assert_eq!(
            error.to_string(),
            "fatbinary entry 0: this build cannot compress with zstd: it lacks libzstd"
        );
    }
}

#[test]
fn an_entry_that_is_not_in_memory_is_not_kept() {
    let bytes =
        fatbin::fatbin(&[Made { kind: 2, sm: 90, payload: vec![7; 24], ..Made::default() }]);
    let entry = Entry::parse(&bytes[16..][..80], 0, 16, bytes.len() as u64).unwrap();
    let error = NewFatbin::new().keep(&entry).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
}

fn new_entry() -> impl Strategy<Value = NewEntry<'static>> {
    let text = || option::of(vec(any::<u8>(), 0..20));
    let compression = prop_oneof![
        Just(Compression::None),
        Just(Compression::Lz4(3)),
        (-5..=19).prop_map(|level| if cfg!(feature = "zstd") {
            Compression::Zstd(level)
        } else {
            Compression::None
        }),
    ];
    let code = prop_oneof![vec(any::<u8>(), 0..40), vec(0..2_u8, 0..2000)];
    let kind = any::<u16>().prop_filter("is not written", |kind| *kind != 0x100);
    (kind, any::<(u32, u64)>(), any::<(u16, u16)>(), text(), text(), code, compression).prop_map(
        |(kind, (sm, flags), code_version, identifier, options, code, compression)| {
            let mut entry = NewEntry::new(Kind(kind), architecture("sm_1"), code);
            entry.sm = sm;
            entry.flags = Flags::from_bits_retain(flags);
            entry.code_version = code_version;
            entry.identifier = identifier.map(Into::into);
            entry.options = options.map(Into::into);
            entry.compression = compression;
            entry
        },
    )
}

proptest! {
    /// Unknown kinds and flags stay, and any bytes in texts.
    #[test]
    fn what_is_written_is_read(new in vec(new_entry(), 0..5)) {
        let bytes = written(&new).unwrap();
        let found = entries(&bytes);
        prop_assert_eq!(found.len(), new.len());
        for (entry, new) in found.iter().zip(&new) {
            prop_assert_eq!((entry.kind(), entry.version()), (new.kind, 0x101));
            prop_assert_eq!(entry.architecture().sm(), new.sm);
            prop_assert_eq!(entry.code_version(), new.code_version);
            let (codecs, flag) = (0x1_f000, match new.compression {
                Compression::Lz4(3) => 0x2000,
                Compression::Zstd(_) => 0x8000,
                _ => 0,
            });
            prop_assert_eq!(entry.flags().bits(), new.flags.bits() & !codecs | flag);
            prop_assert_eq!(entry.identifier().unwrap(), new.identifier.as_deref());
            prop_assert_eq!(entry.options().unwrap(), new.options.as_deref());
            let code = entry.decompress(1 << 16).unwrap();
            let padding = code.strip_prefix(&*new.code).unwrap();
            prop_assert!(padding.len() < 8 && padding.iter().all(|byte| *byte == 0));
            prop_assert!(entry.codec().is_none() || padding.is_empty());
            prop_assert_eq!(entry.end() % 8, 0);
        }

        // Some entries are kept, one is new.
        let mut edited = NewFatbin::new();
        found.iter().step_by(2).try_for_each(|entry| edited.keep(entry)).unwrap();
        let one = NewEntry::new(Kind::ELF, architecture("sm_90"), &b"new"[..]);
        edited.add(&one).unwrap();
        let bytes = edited.to_vec().unwrap();
        let kept = entries(&bytes);
        prop_assert_eq!(kept.len(), found.len().div_ceil(2) + 1);
        for (kept, found) in kept.iter().zip(found.iter().step_by(2)) {
            prop_assert_eq!(kept.bytes().unwrap(), found.bytes().unwrap());
        }
    }

    #[test]
    fn stored_text_is_no_longer_than_the_text_and_its_nul(text in "[ab\"/*\\\\ \t\n\r]{0,60}") {
        let text = format!(".version 8.7\n{text}");
        let stored = NewEntry::ptx(architecture("sm_90"), text.as_bytes()).unwrap().code;
        prop_assert!(stored.len() <= text.len() + 1 && stored.ends_with(b"\0"));
    }

    /// Any file: an error or an entry, and no panic.
    #[test]
    fn any_cubin_is_survived(
        abi in 6..9_u8,
        flags in any::<u32>(),
        changes in vec((0..220_usize, any::<u8>()), 0..6),
    ) {
        let mut file = cubin(abi, flags, Some(b"compat"));
        for (at, byte) in changes {
            if let Some(found) = file.get_mut(at) {
                *found = byte;
            }
        }
        if let Ok(architecture) = Architecture::of_cubin(&file) {
            let entry = NewEntry::cubin(architecture, &file).unwrap();
            written(&[entry]).unwrap();
        }
    }
}
