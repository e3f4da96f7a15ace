//! New zip files and wheels, read by us and by others.

use std::io::{Cursor, Read, Seek, Write, repeat};
use std::num::NonZeroUsize;

use gpu_packages::{
    ErrorKind, NewWheel, NewZip, Options, Record, Storing, Zip, read_record, verify,
};

const ONE: NonZeroUsize = NonZeroUsize::MIN;

#[test]
fn new_zip_files_are_read_by_others() {
    let long: Vec<u8> = (0..2_000_000_u32).flat_map(|n| (n % 251).to_le_bytes()).collect();
    let files: [(&str, u16, &[u8], Storing); 4] = [
        ("a.py", 0o644, b"x = 1\n", Storing::Deflated(6)),
        ("bin/tool", 0o755, b"#!/bin/sh\n", Storing::Plain),
        ("empty", 0o600, b"", Storing::Deflated(9)),
        ("d/\u{e9}.so", 0o644, &long, Storing::Deflated(1)),
    ];
    let written = |threads| {
        let mut zip = NewZip::new(Cursor::new(b"before".to_vec())).unwrap();
        for (name, mode, bytes, storing) in files {
            zip.add(name, mode, bytes, bytes.len() as u64, storing, threads).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    let new = written(ONE);
    assert_eq!(new, written(NonZeroUsize::new(3).unwrap()));
    let ours = Zip::read(Cursor::new(&new)).unwrap();
    assert_eq!(ours.check(Cursor::new(&new)).unwrap().len(), 0);
    let mut theirs = zip::ZipArchive::new(Cursor::new(&new)).unwrap();
    assert_eq!((ours.members().len(), theirs.len()), (4, 4));
    for (name, mode, bytes, storing) in files {
        let mut file = theirs.by_name(name).unwrap();
        assert_eq!(file.unix_mode(), Some(0o100_000 | u32::from(mode)));
        assert_eq!(file.compression() == zip::CompressionMethod::Stored, storing == Storing::Plain);
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == bytes, "{name}");
    }
    let mut zip = NewZip::new(Cursor::new(Vec::new())).unwrap();
    let error = zip.add("a", 0o644, &b"12"[..], 3, Storing::Plain, ONE).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), {
        (ErrorKind::Mismatch, "a: expected contents of 3 bytes, found 2".to_owned())
    });
}

#[test]
fn a_name_is_given_once() {
    let mut zip = NewZip::new(Cursor::new(Vec::new())).unwrap();
    let mut add = |name| zip.add(name, 0o644, &b"12"[..], 2, Storing::Plain, ONE);
    add("a").unwrap();
    add("b").unwrap();
    let error = add("a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.to_string(), "a: a member has this name");
    let new = zip.finish().unwrap().into_inner();
    assert_eq!(Zip::read(Cursor::new(&new)).unwrap().members().len(), 2);
}

#[test]
fn new_wheels_have_a_right_record() {
    let mut wheel = NewWheel::new(Cursor::new(Vec::new()), "foo-1.0.dist-info").unwrap();
    for name in ["foo/a.so", "foo/b,\"c\".so"] {
        wheel.add(name, 0o755, &b"123"[..], 3, Storing::Plain, ONE).unwrap();
    }
    wheel.add_text("WHEEL", "Wheel-Version: 1.0\n").unwrap();
    let new = wheel.finish().unwrap().into_inner();
    let verified = verify(Cursor::new(&new), &Options::default()).unwrap();
    assert_eq!((verified.findings.len(), verified.recorded), (0, 3), "{:?}", verified.findings);
    let zip = Zip::read(Cursor::new(&new)).unwrap();
    let record: Record = read_record(&zip, Cursor::new(&new)).unwrap();
    let paths: Vec<Vec<u8>> = record.rows().map(|row| row.path().to_vec()).collect();
    assert_eq!(paths.last().unwrap(), b"foo-1.0.dist-info/RECORD");
    assert_eq!(paths[1], b"foo/b,\"c\".so");
}

/// A file whose pages of zeros take no memory.
#[derive(Default)]
struct Sparse {
    pages: std::collections::BTreeMap<u64, Vec<u8>>,
    at: u64,
    end: u64,
}

const PAGE: u64 = 4096;

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let within = (self.at % PAGE) as usize;
        let bytes = &bytes[..bytes.len().min(PAGE as usize - within)];
        let page = self.at / PAGE;
        if self.pages.contains_key(&page) || bytes.iter().any(|byte| *byte != 0) {
            let page = self.pages.entry(page).or_insert_with(|| vec![0; PAGE as usize]);
            page[within..within + bytes.len()].copy_from_slice(bytes);
        }
        self.at += bytes.len() as u64;
        self.end = self.end.max(self.at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Read for Sparse {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let within = (self.at % PAGE) as usize;
        let most = (PAGE as usize - within).min(out.len()).min((self.end - self.at) as usize);
        match self.pages.get(&(self.at / PAGE)) {
            Some(page) => out[..most].copy_from_slice(&page[within..within + most]),
            None => out[..most].fill(0),
        }
        self.at += most as u64;
        Ok(most)
    }
}

impl Seek for Sparse {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            std::io::SeekFrom::Start(at) => at,
            std::io::SeekFrom::Current(by) => self.at.checked_add_signed(by).unwrap(),
            std::io::SeekFrom::End(by) => self.end.checked_add_signed(by).unwrap(),
        };
        Ok(self.at)
    }
}

/// Sizes, stored sizes and offsets of more than 32 bits, each by itself: 4 GiB are hashed three times.
#[test]
#[ignore = "takes half a minute"]
fn new_zip_files_may_be_larger_than_4_gib() {
    let large = (4 << 30) + 5;
    for storing in [Storing::Plain, Storing::Deflated(1)] {
        let mut zip = NewZip::new(Sparse::default()).unwrap();
        zip.add("zeros", 0o644, repeat(0).take(large), large, storing, ONE).unwrap();
        zip.add("after", 0o644, &b"x"[..], 1, Storing::Plain, ONE).unwrap();
        let mut new = zip.finish().unwrap();
        let ours = Zip::read(&mut new).unwrap();
        assert_eq!(ours.check(&mut new).unwrap().len(), 0);
        let sizes: Vec<u64> = ours.members().iter().map(gpu_packages::ZipMember::size).collect();
        assert_eq!(sizes, [large, 1]);
        let mut theirs = zip::ZipArchive::new(&mut new).unwrap();
        assert_eq!(theirs.by_name("zeros").unwrap().size(), large);
        let mut text = String::new();
        theirs.by_name("after").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }
}
