//! NVIDIA fatbinaries, made from the fuzzer's bytes, and any bytes.

use arbitrary::{Result, Unstructured};
use nv_fatbin::{
    Architecture, Compression, Entry, Fatbin, Flags, Kind, NewEntry, NewFatbin, fatbins,
};
use samples::fatbin::{Made, fatbin, options, zstd};

/// Bytes that an entry may decompress to.
const LIMIT: u64 = 1 << 16;

/// Reads any bytes. Then makes a fatbinary of them and checks that exactly its entries are found, with their code, and that
/// every change of the fuzzer is read within bounds.
pub fn check(data: &[u8]) {
    read(data);
    let u = &mut Unstructured::new(data);
    let Ok(entries) = made(u) else { return };
    let made = entries.iter().map(|(made, _)| made.clone()).collect::<Vec<_>>();
    let mut bytes = fatbin(&made);
    let found = Fatbin::parse(&bytes).expect("it is sound").entries();
    let found = found.collect::<std::result::Result<Vec<_>, _>>().expect("all are sound");
    assert_eq!(found.len(), entries.len());
    for (entry, (made, code)) in found.iter().zip(&entries) {
        assert_eq!((entry.kind().0, entry.flags().bits()), (made.kind, made.flags));
        assert_eq!((entry.architecture().sm(), entry.code_version()), (made.sm, made.version));
        let identifier = made.identifier.map(str::as_bytes);
        assert_eq!(entry.identifier().expect("it lies in the header"), identifier);
        let options = entry.options().expect("they lie in the header");
        assert_eq!(options.is_some(), made.options.is_some());
        let found = entry.decompress(LIMIT).expect("the payload is sound");
        let padding = found.strip_prefix(&code[..]).expect("the code comes out");
        assert!(padding.len() < 8 && padding.iter().all(|&byte| byte == 0));
        assert!(entry.codec().is_none() || padding.is_empty());
    }
    written(&entries, &found);
    read(&bytes);
    crate::fields::change_bytes(u, &mut bytes, 6);
    read(&bytes);
}

/// Writes entries that are not compressed: the same bytes.
fn written(entries: &[(Made, Vec<u8>)], found: &[Entry<'_>]) {
    let any = Architecture::from_name("sm_1").expect("it has a number");
    for (entry, (made, code)) in found.iter().zip(entries) {
        let mut new = NewEntry::new(Kind(made.kind), any, &code[..]);
        new.sm = made.sm;
        new.flags = entry.flags();
        new.code_version = made.version;
        new.identifier = made.identifier.map(|text| text.as_bytes().into());
        // A copy of `.nv.compat` would have a byte 0 before it.
        new.options = made.options.as_ref().map(|_| b"-O3 "[..].into());
        if entry.codec().is_some() || entry.flags().contains(Flags::COMPAT) {
            continue;
        }
        let mut fatbin = NewFatbin::new();
        fatbin.add(&new).expect("it is small");
        assert_eq!(fatbin.entries().next(), entry.bytes());
    }
}

/// Reads all fatbinaries and entries of some bytes.
fn read(bytes: &[u8]) {
    let mut end = 0;
    for found in fatbins(bytes) {
        let (at, fatbin) = match found {
            Ok(found) => found,
            Err(error) => {
                crate::assert_message(&error);
                assert!(error.offset().is_some_and(|offset| offset <= bytes.len() as u64));
                break;
            }
        };
        assert!(at >= end && at + fatbin.size() <= bytes.len() as u64);
        assert_eq!(fatbin.bytes(), &bytes[at as usize..][..fatbin.size() as usize]);
        end = at + fatbin.size();
        let mut next = 16;
        for entry in fatbin.entries() {
            match entry {
                Ok(entry) => {
                    assert_eq!(entry.offset(), next);
                    next = entry.end();
                    read_entry(&entry, &fatbin);
                }
                Err(error) => {
                    crate::assert_message(&error);
                    assert_eq!(error.offset(), Some(next));
                    next = fatbin.size();
                }
            }
        }
        assert_eq!(next, fatbin.size());
        write_again(&fatbin);
    }
}

/// Entries that are kept are there again, byte for byte.
fn write_again(fatbin: &Fatbin<'_>) {
    let Ok(entries) = fatbin.entries().collect::<std::result::Result<Vec<_>, _>>() else { return };
    let mut kept = NewFatbin::new();
    for entry in &entries {
        kept.keep(entry).expect("it is in memory");
    }
    assert_eq!(kept.to_vec().expect("it is in memory"), fatbin.bytes());
}

fn read_entry(entry: &Entry<'_>, fatbin: &Fatbin<'_>) {
    let range = entry.range();
    assert!(range.start >= entry.offset() + 64 && range.end <= entry.end());
    let stored = &fatbin.bytes()[range.start as usize..range.end as usize];
    assert_eq!(entry.payload(), Some(stored));
    let header = &fatbin.bytes()[entry.offset() as usize..range.start as usize];
    for text in [entry.identifier(), entry.options()] {
        match text {
            Ok(Some(text)) => {
                assert!(text.is_empty() || header.windows(text.len()).any(|found| found == text));
            }
            Ok(None) => {}
            Err(error) => crate::assert_message(&error),
        }
    }
    match entry.decompress(LIMIT) {
        Ok(code) => assert_eq!(code.len() as u64, entry.size()),
        Err(error) => crate::assert_message(&error),
    }
    match entry.concatenated() {
        Ok(images) => {
            images.iter().for_each(|image| assert!(image.range().end <= entry.size()));
            some_images(entry, &images);
        }
        Err(error) => crate::assert_message(&error),
    }
}

/// Every second image of an entry that has several is read again from what was written of them.
fn some_images(entry: &Entry<'_>, images: &[nv_fatbin::ConcatenatedImage<'_>]) {
    let Ok(code) = entry.decompress(LIMIT) else { return };
    let written = match entry.with_images(|image| image % 2 == 0, Compression::Lz4(3), LIMIT) {
        Ok(Some(written)) => written,
        Ok(None) => return assert!(images.is_empty()),
        Err(error) => return crate::assert_message(&error),
    };
    let size = written.len() as u64;
    let again = Entry::parse(&written, 0, 0, size).expect("it was just written");
    let new_code = again.decompress(u64::MAX).expect("it was just compressed");
    let new_images = again.concatenated().expect("it was just written");
    assert_eq!(new_images.len(), images.len().div_ceil(2));
    for (new, old) in new_images.iter().zip(images.iter().step_by(2)) {
        let bytes = |code: &[u8], range: std::ops::Range<u64>| {
            code[range.start as usize..range.end as usize].to_vec()
        };
        assert!(bytes(&new_code, new.range()) == bytes(&code, old.range()));
        assert_eq!((new.kind(), new.flags()), (old.kind(), old.flags()));
        assert_eq!(new.architecture(), old.architecture());
        assert_eq!(new.identifier().ok(), old.identifier().ok());
        assert_eq!(new.options().ok(), old.options().ok());
    }
}

/// Entries and their code.
fn made(u: &mut Unstructured<'_>) -> Result<Vec<(Made, Vec<u8>)>> {
    let mut entries = Vec::new();
    for _ in 0..u.int_in_range(0..=5)? {
        let len = u.int_in_range(0..=200)?;
        let code = u.bytes(len)?.to_vec();
        let (codec, payload) = match u.int_in_range(0..=3)? {
            // A size of 0 is the mark of code that is not compressed.
            0 | 1 if code.is_empty() => (0, Vec::new()),
            1 => (0x2000, literals(&code)),
            2 if !code.is_empty() => (0x8000, zstd(&code)),
            _ => (0, code.clone()),
        };
        let identifier = u.arbitrary::<bool>()?.then_some("module_1");
        let at = if identifier.is_some() { 80 } else { 64 };
        let made = Made {
            kind: *u.choose(&[1, 2, 4, 8, 0x20, 0x40, 0x80, 3])?,
            sm: u.int_in_range(0..=200)?,
            flags: codec | u.arbitrary::<u64>()? & !0x1_f000,
            version: u.arbitrary()?,
            identifier,
            options: u.arbitrary::<bool>()?.then(|| options(at, "-O3 ")),
            size: if codec == 0 { 0 } else { code.len() as u64 },
            payload,
        };
        entries.push((made, code));
    }
    Ok(entries)
}

/// An LZ4 block of one sequence of literals.
fn literals(code: &[u8]) -> Vec<u8> {
    let mut block = match code.len() {
        len @ ..15 => vec![(len as u8) << 4],
        _ => vec![0xf0],
    };
    if let Some(mut rest) = code.len().checked_sub(15) {
        while rest >= 255 {
            block.push(255);
            rest -= 255;
        }
        block.push(rest as u8);
    }
    block.extend(code);
    block
}
