//! Entries that hold several images.

use nv_fatbin::{Architecture, Compression, Error, Fatbin, Flags, Kind, NewEntry, NewFatbin};

use crate::make::{Made, fatbin, zstd};

/// A record of the table: an image of a kind at a place, with an identifier.
fn record(sm: u32, at: u32, size: u64, identifier: &str) -> Vec<u8> {
    let made = Made { kind: 2, sm, flags: 1, ..Made::default() };
    let mut record = made.bytes();
    record[4..8].copy_from_slice(&at.to_le_bytes());
    record[8..16].copy_from_slice(&size.to_le_bytes());
    if !identifier.is_empty() {
        record[32..36].copy_from_slice(&1_u32.to_le_bytes());
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

/// Architectures and codes of all images.
fn images(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let entry = Fatbin::parse(bytes)?.entries().next().unwrap()?;
    assert_eq!((entry.kind(), entry.options()?), (Kind::CONCATENATED, None));
    let code = entry.decompress(1 << 20)?;
    let image = |image: nv_fatbin::ConcatenatedImage<'_>| {
        let range = image.range().start as usize..image.range().end as usize;
        assert_eq!(image.kind(), Kind::ELF);
        (image.architecture().to_string(), code[range].to_vec())
    };
    Ok(entry.concatenated()?.into_iter().map(image).collect())
}

#[test]
fn images_lie_in_the_code() {
    let records = [record(80, 0, 8, ""), record(90, 8, 5, "module_1"), record(90, 13, 3, "")];
    let bytes = concatenated(3, &records.concat(), b"\x7fELF1234\x7fELF567");
    let expected = [("sm_80", &b"\x7fELF1234"[..]), ("sm_90", b"\x7fELF5"), ("sm_90", b"67\0")];
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
    let names = names.iter().map(nv_fatbin::ConcatenatedImage::identifier).collect::<Vec<_>>();
    assert_eq!(names, [None, Some(&b"module_1"[..]), None]);
}

#[test]
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
    assert!(error.to_string().contains("expected its identifier in the table"), "{error}");
}

/// Cubins of 5 to 13 bytes, one with a suffix and one with an identifier.
fn new_images() -> Vec<NewEntry<'static>> {
    let image = |(name, code): (&str, &'static str)| {
        let architecture = Architecture::from_name(name).unwrap();
        NewEntry::new(Kind::ELF, architecture, code.as_bytes()).flags(Flags::BITS_64 | Flags::LINUX)
    };
    let images = [("sm_75", "seven"), ("sm_90a", "a cubin of 90"), ("sm_86", "eight six")];
    let mut images: Vec<_> = images.into_iter().map(image).collect();
    images[2] = images[2].clone().identifier(&b"module_1"[..]);
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
    for compression in [Compression::None, Compression::Lz4] {
        let bytes = written(&entry.clone().compression(compression));
        let expected = [
            ("sm_75".to_owned(), b"seven\0\0\0".to_vec()),
            ("sm_90a".to_owned(), b"a cubin of 90\0\0\0".to_vec()),
            ("sm_86".to_owned(), b"eight six\0\0\0\0\0\0\0".to_vec()),
        ];
        assert_eq!(images(&bytes).unwrap(), expected);
    }
}

/// The same bytes as if only these images had been written.
#[test]
fn some_images_stay() {
    let all = new_images();
    let compression = Compression::Lz4;
    let bytes = written(&NewEntry::concatenated(&all).unwrap().compression(compression));
    let entry = Fatbin::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
    for mask in 1..8_usize {
        let keeps = |image: usize| mask >> image & 1 == 1;
        let kept: Vec<_> =
            (0..).zip(&all).filter(|(at, _)| keeps(*at)).map(|(_, one)| one.clone()).collect();
        let expected = written(&NewEntry::concatenated(&kept).unwrap().compression(compression));
        let found = entry.with_images(keeps, compression, 1 << 20).unwrap().unwrap();
        assert_eq!(found, expected[16..], "{mask:#b}");
    }
    assert_eq!(entry.with_images(|_| false, compression, 1 << 20).unwrap(), None);
    assert!(entry.with_images(|_| true, compression, 8).is_err());
}
