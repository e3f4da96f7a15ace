//! New zip files and wheels, read by us and by others.

use std::io::{Cursor, Read, Seek, Write, repeat};
use std::num::NonZeroUsize;

use gpu_packages::{
    ErrorKind, NewWheel, NewZip, Options, Record, Storing, WheelMetadata, Zip, read_record, verify,
};
use samples::packages::{self, Around, Made};

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

#[test]
fn members_are_copied_as_they_are_stored() {
    let long: Vec<u8> = (0..300_000_u32).flat_map(|n| (n % 251).to_le_bytes()).collect();
    let mut old = NewWheel::new(Cursor::new(Vec::new()), "a-1.dist-info").unwrap();
    for (name, mode, bytes, storing) in [
        ("a/x,y.py", 0o644, &b"x = 1\n"[..], Storing::Plain),
        ("a/tool", 0o755, &long, Storing::Deflated(9)),
    ] {
        old.add(name, mode, bytes, bytes.len() as u64, storing, ONE).unwrap();
    }
    let old = old.finish().unwrap().into_inner();
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut new = NewWheel::new(Cursor::new(Vec::new()), "b-1.dist-info").unwrap();
    for index in [1, 0] {
        new.copy(&zip, index, Cursor::new(&old)).unwrap();
    }
    new.add_text("WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n").unwrap();
    let error = new.copy(&zip, 9, Cursor::new(&old)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let new = new.finish().unwrap().into_inner();
    let copied = Zip::read(Cursor::new(&new)).unwrap();
    for (from, to) in [(0, 1), (1, 0)] {
        let [from, to] = [&zip.members()[from], &copied.members()[to]];
        assert_eq!((from.name(), from.size(), from.crc32()), (to.name(), to.size(), to.crc32()));
        assert_eq!((from.method(), from.stored_size()), (to.method(), to.stored_size()));
        assert_eq!(from.unix_mode(), to.unix_mode());
    }
    // Its records are right, and others read the same.
    let verified = verify(Cursor::new(&new), &Options::default()).unwrap();
    assert_eq!((verified.recorded, verified.findings.len()), (3, 0));
    let mut theirs = zip::ZipArchive::new(Cursor::new(&new)).unwrap();
    let mut found = Vec::new();
    theirs.by_name("a/tool").unwrap().read_to_end(&mut found).unwrap();
    assert!(found == long);

    // Contents that do not have their checksum are not copied.
    let mut damaged = old.clone();
    let at = damaged.windows(6).position(|part| part == b"x = 1\n").unwrap();
    damaged[at] ^= 1;
    let mut new = NewWheel::new(Cursor::new(Vec::new()), "b-1.dist-info").unwrap();
    let error = new.copy(&zip, 0, Cursor::new(&damaged)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
}

/// A wheel with these texts.
fn with_metadata(metadata: &str, wheel: &str) -> Vec<u8> {
    let mut new = NewWheel::new(Cursor::new(Vec::new()), "a_b-1.0.dist-info").unwrap();
    new.add_text("METADATA", metadata).unwrap();
    new.add_text("WHEEL", wheel).unwrap();
    new.finish().unwrap().into_inner()
}

fn metadata(metadata: &str, wheel: &str) -> Result<WheelMetadata, gpu_packages::Error> {
    let bytes = with_metadata(metadata, wheel);
    WheelMetadata::read(&Zip::read(Cursor::new(&bytes)).unwrap(), Cursor::new(&bytes))
}

const TAG: &str = "Wheel-Version: 1.0\nTag: py3-none-any\n";

#[test]
fn metadata_name_wheels_that_belong_together() {
    let host = metadata("Name: a-b\nVersion: 1.0+rocm7-1\n", TAG).unwrap();
    assert_eq!((host.name(), host.version()), ("a-b", "1.0+rocm7-1"));
    assert_eq!(host.file_name("a-b-gfx942"), "a_b_gfx942-1.0+rocm7_1-py3-none-any.whl");
    assert_eq!(host.directory("a-b-gfx942"), "a_b_gfx942-1.0+rocm7_1.dist-info");
    for (tags, set) in [
        ("Tag: py2-none-any\nTag: py3-none-any\n", "py2.py3-none-any"),
        ("Build: 1x\nTag: cp311-abi3-linux\nTag: cp311-abi3-win\n", "1x-cp311-abi3-linux.win"),
        // These tags are not a set.
        ("Tag: py2-none-any\nTag: cp311-abi3-linux\n", "py2-none-any"),
    ] {
        let host =
            metadata("Name: a\nVersion: 1\n", &format!("Wheel-Version: 1.0\n{tags}")).unwrap();
        assert_eq!(host.file_name("a"), format!("a-1-{set}.whl"));
        let text = host.wheel_text("test");
        assert_eq!(
            text,
            format!("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n{tags}")
        );
    }
    for (text, wheel, words) in [
        ("Version: 1\n", TAG, "METADATA: expected a field Name"),
        ("Name: a\n\nVersion: 1\n", TAG, "METADATA: expected a field Version"),
        ("Name: ../a\nVersion: 1\n", TAG, "METADATA: expected a field Name without slashes"),
        ("Name: a\nVersion: 1\n", "Wheel-Version: 1.0\n", "WHEEL: expected a field Tag"),
        (
            "Name: a\nVersion: 1\n",
            "Tag: py3-any\n",
            "WHEEL: expected a tag PYTHON-ABI-PLATFORM, found 'py3-any'",
        ),
        ("Name: a\nVersion: 1\n", "Tag: py3-none-../a\n", "found 'py3-none-../a'"),
    ] {
        let error = metadata(text, wheel).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn lines_go_to_the_end_of_the_fields() {
    for (old, new) in [
        ("Name: a\nVersion: 1\n\nText.\n\nX: y\n", "Name: a\nVersion: 1\nA: b\n\nText.\n\nX: y\n"),
        (
            "Name: a\r\nVersion: 1\r\n\r\nText.\r\n",
            "Name: a\r\nVersion: 1\r\nA: b\r\n\r\nText.\r\n",
        ),
        ("Name: a\nVersion: 1\n", "Name: a\nVersion: 1\nA: b\n"),
        ("Name: a\nVersion: 1", "Name: a\nVersion: 1\nA: b\n"),
    ] {
        let found = metadata(old, TAG).unwrap().with_lines(&["A: b".to_owned()]);
        assert_eq!(String::from_utf8(found.clone()).unwrap(), new);
        let new = metadata(new, TAG).unwrap();
        let (back, count) = new.without_last_lines(|line| line == "A: b");
        assert_eq!(count, 1);
        assert_eq!(String::from_utf8(back).unwrap().trim_end(), old.trim_end());
    }
}

#[test]
fn copies_say_which_system_made_them() {
    // Made on DOS: the attributes have no mode, and a mode of 0 would let nobody read the file.
    let mut old = packages::zip(&[Made { mode: 0, ..Made::new("a", "1") }], &Around::default());
    let record = b"PK\x01\x02\x14\x03";
    let at = old.windows(record.len()).position(|part| part == record).unwrap();
    old[at + 5] = 0;
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut new = NewZip::new(Cursor::new(Vec::new())).unwrap();
    new.copy(&zip, 0, Cursor::new(&old)).unwrap();
    new.add("b", 0o644, &b"1"[..], 1, Storing::Plain, ONE).unwrap();
    let new = new.finish().unwrap().into_inner();
    let zip = Zip::read(Cursor::new(&new)).unwrap();
    let modes: Vec<_> = zip.members().iter().map(|member| member.unix_mode()).collect();
    assert_eq!(modes, [None, Some(0o100_644)]);
}
