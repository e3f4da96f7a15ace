//! Entries that hold several images.

use nv_fatbin::{Architecture, Compression, Error, Fatbin, Flags, Kind, NewEntry, NewFatbin};
use samples::fatbin::{Made, fatbin, zstd};

/// A record of the table: an image of a kind at a place, with an identifier.
fn record(sm: u32, at: u32, size: u64, identifier: &str) -> Vec<u8> {
    let made = Made { kind: 2, sm, flags: 1, ..Made::default() };
    let mut record = made.bytes();
    record[4..8].copy_from_slice(&at.to_le_bytes());
    record[8..16].copy_from_slice(&size.to_le_bytes());
    if !identifier.is_empty() {
        record[32..36].copy_from_slice(&64_u32.to_le_bytes());
        record[36..40].copy_from_slice(&(identifier.len() as u32).to_le_bytes());
        record.extend(identifier.as_bytes());
        record.push(0);
        record.resize(record.len().next_multiple_of(8), 0);
    }
    record
}

fn concatenated(count: u32, records: &[u8], code: &[u8]) -> Vec<u8> {
    let size = 8 + records.len() as u32;
    let table = [&count.to_le_bytes()[..], &size.to_le_bytes(), records].concat();
    fatbin(&[Made {
        kind: 0x100,
        flags: 0x8001,
        options: Some(table),
        payload: zstd(code),
        size: code.len() as u64,
        ..Made::default()
    }])
}

/// Kinds and architectures, and codes, of all images.
fn images(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let entry = Fatbin::parse(bytes)?.entries().next().unwrap()?;
    assert_eq!((entry.kind(), entry.options()?), (Kind::CONCATENATED, None));
    let code = entry.decompress(1 << 20)?;
    let image = |image: nv_fatbin::ConcatenatedImage<'_>| {
        let range = image.range().start as usize..image.range().end as usize;
        (format!("{} {}", image.kind(), image.architecture()), code[range].to_vec())
    };
    Ok(entry.concatenated()?.into_iter().map(image).collect())
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn images_lie_in_the_code() {
    let records = [record(80, 0, 8, ""), record(90, 8, 5, "module_1"), record(90, 13, 3, "")];
    let bytes = concatenated(3, &records.concat(), b"\x7fELF1234\x7fELF567");
    let expected =
        [("elf sm_80", &b"\x7fELF1234"[..]), ("elf sm_90", b"\x7fELF5"), ("elf sm_90", b"67\0")];
    let found = images(&bytes);
    // The last one reaches beyond the code.
    assert_eq!(
        found.unwrap_err().to_string(),
        "fatbinary entry 0 at 0x10: image 2 of its table: expected its image in the code of the entry"
    );
    let bytes = concatenated(3, &records.concat(), b"\x7fELF1234\x7fELF567\0");
    let found = images(&bytes).unwrap();
    let found = found.iter().map(|(name, code)| (&name[..], &code[..])).collect::<Vec<_>>();
    assert_eq!(found, expected);
    let entry = Fatbin::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
    let names = entry.concatenated().unwrap();
    let names = names.iter().map(|image| image.identifier().unwrap()).collect::<Vec<_>>();
    assert_eq!(names, [None, Some(&b"module_1"[..]), None]);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn tables_are_as_long_as_they_say() {
    let records = record(80, 0, 8, "");
    for (count, expected) in [
        (2, "image 1 of its table: expected 64 bytes"),
        (0, "image 0 of its table: expected the end"),
    ] {
        let error = images(&concatenated(count, &records, b"\x7fELF1234")).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let named = record(80, 0, 8, "a name");
    let error = images(&concatenated(1, &named[..68], b"\x7fELF1234")).unwrap_err();
    assert!(
        error.to_string().contains("expected its identifier and options in the table"),
        "{error}"
    );
}

/// Cubins of 5 to 13 bytes, two with a suffix, one with an identifier and one with its `.nv.compat`, and PTX with options.
fn new_images() -> Vec<NewEntry<'static>> {
    let image = |(name, code): (&str, &'static str)| {
        let architecture = Architecture::from_name(name).unwrap();
        NewEntry::new(Kind::ELF, architecture, code.as_bytes())
            .with_flags(Flags::BITS_64 | Flags::LINUX)
    };
    let images = [("sm_75", "seven"), ("sm_90a", "a cubin of 90"), ("sm_86", "eight six")];
    let mut images: Vec<_> = images.into_iter().map(image).collect();
    images[2] = images[2].clone().with_identifier(&b"module_1"[..]);
    let ptx = NewEntry::new(Kind::PTX, Architecture::from_name("sm_75").unwrap(), &b"text"[..]);
    images.push(ptx.with_identifier(&b"name"[..]).with_options(&b"-O3"[..]));
    images[3].flags |= Flags::BITS_64 | Flags::LINUX;
    let hundred = Architecture::from_name("sm_100f").unwrap();
    let hundred = NewEntry::new(Kind::ELF, hundred, &b"hundred"[..]);
    let flags = Flags::BITS_64 | Flags::LINUX | Flags::COMPAT;
    images.push(hundred.with_flags(flags).with_options(&b"\x02\x09compat"[..]));
    images
}

fn written(entry: &NewEntry<'_>) -> Vec<u8> {
    let mut fatbin = NewFatbin::new();
    fatbin.add(entry).unwrap();
    fatbin.to_vec().unwrap()
}

#[test]
fn what_is_written_is_read() {
    let entry = NewEntry::concatenated(&new_images()).unwrap();
    assert_eq!((entry.sm, entry.flags), (0, Flags::BITS_64 | Flags::LINUX));
    for compression in [Compression::None, Compression::Lz4(3)] {
        let bytes = written(&entry.clone().with_compression(compression));
        let expected = [
            ("elf sm_75".to_owned(), b"seven\0\0\0".to_vec()),
            ("elf sm_90a".to_owned(), b"a cubin of 90\0\0\0".to_vec()),
            ("elf sm_86".to_owned(), b"eight six\0\0\0\0\0\0\0".to_vec()),
            ("ptx sm_75".to_owned(), b"text\0\0\0\0".to_vec()),
            ("elf sm_100f".to_owned(), b"hundred\0".to_vec()),
        ];
        assert_eq!(images(&bytes).unwrap(), expected);
        let entry = Fatbin::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
        let images = entry.concatenated().unwrap();
        let texts = images.iter().map(|one| [one.identifier().unwrap(), one.options().unwrap()]);
        let expected: [[Option<&[u8]>; 2]; 5] = [
            [None, None],
            [None, None],
            [Some(b"module_1"), None],
            [Some(b"name"), Some(b"-O3")],
            [None, Some(b"\x02\x09compat")],
        ];
        assert!(texts.eq(expected));
    }
}

/// The same bytes as if only these images had been written.
#[test]
fn some_images_stay() {
    let all = new_images();
    let compression = Compression::Lz4(3);
    let bytes = written(&NewEntry::concatenated(&all).unwrap().with_compression(compression));
    let entry = Fatbin::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
    for mask in 1..32_usize {
        let keeps = |image: usize| mask >> image & 1 == 1;
        let kept: Vec<_> =
            (0..).zip(&all).filter(|(at, _)| keeps(*at)).map(|(_, one)| one.clone()).collect();
        let expected =
            written(&NewEntry::concatenated(&kept).unwrap().with_compression(compression));
        let found = entry.with_images(keeps, compression, 1 << 20).unwrap().unwrap();
        assert_eq!(found, expected[16..], "{mask:#b}");
    }
    assert_eq!(entry.with_images(|_| false, compression, 1 << 20).unwrap(), None);
    assert!(entry.with_images(|_| true, compression, 8).is_err());
}

/// PTX, cubins, and cubins with `.nv.compat` become one entry each, if there are two or more; the others come first.
#[test]
fn images_of_a_kind_are_joined() {
    let entry = |name: &'static str| {
        let (kind, number) = name.split_once(' ').unwrap();
        let architecture = Architecture::from_name(&format!("sm_{number}")).unwrap();
        let kind = match kind {
            "ptx" => Kind::PTX,
            "lto" => Kind::LTO_IR,
            _ => Kind::ELF,
        };
        let flags = if name.starts_with("compat") { Flags::COMPAT } else { Flags::empty() };
        NewEntry::new(kind, architecture, name.as_bytes()).with_flags(flags)
    };
    let joined = |names: &[&'static str]| {
        let entries = names.iter().map(|name| entry(name)).collect();
        let joined = nv_fatbin::concatenate(entries).unwrap();
        let codes = joined.iter().map(|entry| {
            String::from_utf8(entry.code.to_vec()).unwrap().replace('\0', " ").trim().to_owned()
        });
        codes.collect::<Vec<_>>().join("|")
    };
    assert_eq!(joined(&["elf 75", "ptx 75", "elf 80"]), "ptx 75|elf 75  elf 80");
    assert_eq!(joined(&["elf 75", "ptx 75", "compat 100"]), "elf 75|ptx 75|compat 100");
    assert_eq!(joined(&["lto 75", "lto 80"]), "lto 75|lto 80");
    assert_eq!(
        joined(&["compat 100", "ptx 75", "compat 120", "ptx 80", "elf 75", "elf 80", "lto 75"]),
        "lto 75|ptx 75  ptx 80|elf 75  elf 80|compat 100      compat 120"
    );
    let several = NewEntry::concatenated(&[entry("elf 75")]).unwrap();
    assert!(NewEntry::concatenated(&[several]).is_err());
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn records_with_wrong_places_are_errors() {
    let mut named = record(80, 0, 8, "a name");
    let images_of = |record: &[u8]| images(&concatenated(1, record, b"\x7fELF1234"));
    assert!(images_of(&named).is_ok());
    // An identifier in the fields before it, and options that lie in the next record.
    named[32..36].copy_from_slice(&1_u32.to_le_bytes());
    let bytes = concatenated(1, &named[..64], b"\x7fELF1234");
    let entry = Fatbin::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
    let error = entry.concatenated().unwrap()[0].identifier().unwrap_err();
    assert!(error.to_string().contains("its identifier at 0x1..0x7"), "{error}");
    named[20..24].copy_from_slice(&72_u32.to_le_bytes());
    let error = images_of(&named).unwrap_err();
    assert!(error.to_string().contains("expected its identifier and options"), "{error}");
}
