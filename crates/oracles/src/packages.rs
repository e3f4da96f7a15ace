//! LLVM's offload binaries.

use arbitrary::{Result as Made, Unstructured};
use offload_binary::{
    CompressedBinary, Entry, Error, ErrorKind, Flags, FormatVersion, ImageEntry, ImageKind,
    OffloadBinary, OffloadKind, StringPair, binaries, convert,
};

use ccob::{Method, WriteOptions};
use fat_edit::compress_offload_binary;
use fat_object::decompress_offload_binary;

use crate::fields::Fields;
use crate::{assert_message, grow_prefix};

/// The most that a compressed offload binary may inflate to.
const LIMIT: u64 = 16 << 20;

/// Checks an offload binary, and several in a row.
pub fn check(data: &[u8]) {
    let binary = OffloadBinary::parse(data);
    check_prefixes(data, &binary);
    match binary {
        Ok(binary) => check_binary(data, &binary),
        Err(error) => assert_message(&error),
    }
    check_sequence(data);
    check_converted(data);
    check_compressed(data);
}

/// Offload binaries of any entries, which are read as they were written; then damaged, if the fuzzer likes.
pub fn check_layout(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok((version, entries, images)) = described(u) else { return };
    let layout = match offload_binary::layout(version, &entries) {
        Ok(layout) => layout,
        Err(error) => {
            let mut strings = entries.iter().flat_map(|entry| &entry.strings);
            let is_v1 = version == FormatVersion::V1;
            assert!(strings.any(|(key, value)| key.contains(&0) || (is_v1 && value.contains(&0))));
            return assert_message(&error);
        }
    };
    let parts: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    let bytes = layout.to_vec(&parts).expect("as laid out");
    assert_eq!(bytes.len() as u64, layout.size());
    let read = contents(&bytes);
    assert!(read.iter().map(|(entry, _)| entry).eq(&entries));
    assert!(read.iter().map(|(_, image)| *image).eq(parts));

    let bytes = match version {
        FormatVersion::V3 if u.ratio(1, 2).unwrap_or(false) => {
            let method = if u.ratio(1, 2).unwrap_or(false) { Method::ZLIB } else { Method::ZSTD };
            let how = WriteOptions::default().with_method(method);
            let compressed = compress_offload_binary(&bytes, &how).expect("was laid out");
            assert!(
                decompress_offload_binary(&compressed, LIMIT).expect("was compressed") == bytes
            );
            compressed
        }
        _ => bytes,
    };
    let mut fields = Fields::of(bytes);
    for at in (8..fields.len().min(2000)).step_by(8) {
        fields.mark(at, if at == 8 { 4 } else { 8 });
        // Kinds are of two bytes, flags of four.
        fields.mark(at + 4, 4);
    }
    fields.mark(4, 4);
    let edits = fields.damage(u).unwrap_or(0);
    let bytes = fields.into_bytes();
    if edits > 0 {
        check(&bytes);
    }
    // Strings with zeros in them are no longer the same in version 1.
    check_converted(&bytes);
}

/// Checks that a compressed offload binary inflates to the size in its header, or gives an error.
fn check_compressed(data: &[u8]) {
    let available = data.len() as u64;
    let Ok(Some(header)) = CompressedBinary::parse_prefix(data, available) else { return };
    assert!(header.size() <= available && header.stream().end == header.size());
    let again = CompressedBinary::parse_prefix(&header.header(), available);
    assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, ()>(Some(header))));
    match decompress_offload_binary(data, LIMIT) {
        Ok(plain) => {
            assert_eq!(plain.len() as u64, header.inflated_size());
            let binary = OffloadBinary::parse(&plain).expect("was checked");
            assert_eq!(binary.entries().len() as u64, header.entry_count());
        }
        Err(error) => assert_message(&error),
    }
}

type Described = (FormatVersion, Vec<ImageEntry<'static>>, Vec<Vec<u8>>);

fn described(u: &mut Unstructured<'_>) -> Made<Described> {
    let version = *u.choose(&[FormatVersion::V1, FormatVersion::V2, FormatVersion::V3])?;
    let (mut entries, mut images) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(0..=6)? {
        let len = u.int_in_range(0..=40)?.min(u.len());
        let image = u.bytes(len)?.to_vec();
        let mut entry = ImageEntry::new(image.len() as u64);
        entry.image_kind = ImageKind(u.int_in_range(0..=8)?);
        entry.offload_kind = OffloadKind(u.int_in_range(0..=9)?);
        entry.flags = Flags::from_bits_retain(u.int_in_range(0..=3)?);
        for _ in 0..u.int_in_range(0..=5)? {
            let key = string(u, &["triple", "arch", "feature", ""])?;
            let value = string(u, &["amdgcn-amd-amdhsa", "gfx90a", "+wavefrontsize64", ""])?;
            entry.strings.push((key.into(), value.into()));
        }
        check_set(&entry);
        entries.push(entry);
        images.push(image);
    }
    Ok((version, entries, images))
}

/// Strings that are set are there once each, with the last value.
fn check_set(pushed: &ImageEntry<'_>) {
    let mut set = ImageEntry::new(pushed.size);
    for (key, value) in &pushed.strings {
        set = set.with_string(key, value);
    }
    for (at, (key, value)) in set.strings.iter().enumerate() {
        let equal = |(other, _): &&StringPair<'_>| other == key;
        assert!(!set.strings[..at].iter().any(|pair| equal(&pair)));
        assert_eq!(pushed.strings.iter().rfind(equal).map(|(_, value)| value), Some(value));
    }
    assert!(
        pushed.strings.iter().all(|(key, _)| set.strings.iter().any(|(other, _)| other == key))
    );
}

fn string(u: &mut Unstructured<'_>, known: &[&str]) -> Made<Vec<u8>> {
    if u.ratio(3, 4)? {
        return Ok(u.choose(known)?.as_bytes().to_vec());
    }
    let len = u.int_in_range(0..=12)?.min(u.len());
    Ok(u.bytes(len)?.to_vec())
}

fn check_prefixes(data: &[u8], whole: &Result<OffloadBinary<'_>, Error>) {
    let parse = |prefix| OffloadBinary::parse_prefix(prefix, data.len() as u64);
    let (prefix, calls) =
        grow_prefix(data, |p| OffloadBinary::parse_prefix(p, data.len() as u64).err()?.needed());
    assert!(calls <= 5, "{calls} calls");
    match (whole, parse(prefix)) {
        (Ok(whole), Ok(binary)) => {
            assert_eq!((whole.version(), whole.size()), (binary.version(), binary.size()));
            assert_eq!(whole.entries().len(), binary.entries().len());
            for (a, b) in whole.entries().zip(binary.entries()) {
                assert!(a.strings().take(100).eq(b.strings().take(100)));
                assert!(b.image().is_none_or(|image| Some(image) == a.image()));
            }
        }
        // If there are several faults, another may be found first.
        (whole, parsed) => assert!(whole.is_err() && parsed.is_err()),
    }
}

/// Asks the same in another way.
fn has_repeated_key(entry: &Entry<'_>) -> bool {
    let mut keys: Vec<_> = entry.strings().map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

fn check_binary(data: &[u8], binary: &OffloadBinary<'_>) {
    assert!(binary.size() <= data.len() as u64 && binary.size() % 8 == 0);
    let data = &data[..binary.size() as usize];
    let inside = |part: &[u8]| {
        part.is_empty() || {
            let (part, all) = (part.as_ptr_range(), data.as_ptr_range());
            all.start <= part.start && part.end <= all.end
        }
    };
    let mut ranges = Vec::new();
    assert!(binary.version() != FormatVersion::V1 || binary.entries().len() == 1);
    for (index, entry) in binary.entries().enumerate() {
        assert_eq!(entry.index(), index);
        let image = entry.image().expect("all is in memory");
        assert_eq!(image.len() as u64, entry.image_size());
        if !image.is_empty() {
            let start = entry.image_offset() as usize;
            assert_eq!(image.as_ptr(), data[start..].as_ptr());
            ranges.push(start..start + image.len());
        }
        for (key, value) in entry.strings() {
            assert!(inside(key) && inside(value) && !key.contains(&0));
        }
        let repeated = entry.repeated_key();
        assert_eq!(repeated.is_some(), has_repeated_key(&entry));
        if let Some(repeated) = repeated {
            let equal = entry.strings().filter(|(key, _)| *key == repeated.key);
            assert!(repeated.count > 1 && equal.count() == repeated.count);
            assert!(repeated.offset < binary.size(), "{repeated:?}");
        }
        for (key, _) in entry.strings().take(8) {
            let Ok(key) = std::str::from_utf8(key) else { continue };
            let last = entry.strings().rfind(|(k, _)| *k == key.as_bytes());
            assert_eq!(entry.get(key), last.map(|(_, value)| value));
        }
        assert!(entry.triple().is_none_or(|triple| Some(triple.as_bytes()) == entry.get("triple")));
    }
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.end <= b.start));
}

fn check_sequence(data: &[u8]) {
    let mut end = 0;
    let mut sequence = binaries(data);
    while let Some(item) = sequence.next() {
        match item {
            Ok((offset, binary)) => {
                assert!(offset >= end && binary.size() > 0);
                assert!(data[end as usize..offset as usize].iter().all(|&byte| byte == 0));
                end = offset + binary.size();
                assert!(end <= data.len() as u64);
            }
            Err(error) => {
                assert_message(&error);
                assert!(sequence.next().is_none());
            }
        }
    }
}

/// Checks that an offload binary written in either version keeps everything.
fn check_converted(data: &[u8]) {
    let v1 = convert(data, FormatVersion::V1);
    match convert(data, FormatVersion::V2) {
        Ok(v2) => {
            let contents = contents(data);
            assert!(contents == self::contents(&v2));
            assert!(convert(&v2, FormatVersion::V2).is_ok_and(|binary| binary == v2));
            match (&v1, &convert(&v2, FormatVersion::V1)) {
                (Ok(v1), again) => assert!(again.as_ref().is_ok_and(|again| again == v1)),
                (Err(error), again) => {
                    let again = again.as_ref().expect_err("as before");
                    assert_eq!(again.to_string(), error.to_string());
                }
            }
            let v3 = convert(data, FormatVersion::V3).expect("as version 2");
            assert!(contents == self::contents(&v3));
            assert!(convert(&v3, FormatVersion::V2).is_ok_and(|binary| binary == v2));
            match v1 {
                Ok(v1) => {
                    assert!(contents == self::contents(&v1));
                    assert!(convert(&v1, FormatVersion::V1).is_ok_and(|binary| binary == v1));
                    assert!(convert(&v1, FormatVersion::V2).is_ok_and(|binary| binary == v2));
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Nul, "{error}"),
            }
        }
        Err(error) => {
            assert!(v1.is_err());
            assert!(error.kind() == ErrorKind::Limit || binaries(data).any(|b| b.is_err()));
        }
    }
}

/// Returns all entries with their images.
fn contents(data: &[u8]) -> Vec<(ImageEntry<'_>, &[u8])> {
    binaries(data)
        .flat_map(|binary| binary.expect("was read before").1.entries())
        .map(|entry| (entry.to_image_entry(), entry.image().expect("all is in memory")))
        .collect()
}
