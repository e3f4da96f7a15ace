//! Entries that hold several images.

use nv_fatbin::{Error, Fatbin, Kind};

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
