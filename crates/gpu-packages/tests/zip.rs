//! Zip archives that are read, refused and written.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use gpu_packages::{Contents, ErrorKind, Zip};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The members of the archive that tests start from.
const MEMBERS: [(&str, &[u8], bool); 4] = [
    ("pkg/", b"", false),
    ("pkg/text", b"some text, some text, some text", true),
    ("pkg/stored", b"stored", false),
    ("pkg-1.0.dist-info/RECORD", b"pkg/text,sha256=x,31\n", true),
];

/// Returns an archive that another crate writes.
fn archive() -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, is_compressed) in MEMBERS {
        let method = match is_compressed {
            true => zip::CompressionMethod::Deflated,
            false => zip::CompressionMethod::Stored,
        };
        let options =
            SimpleFileOptions::default().compression_method(method).unix_permissions(0o755);
        match name.ends_with('/') {
            true => out.add_directory(name, options).unwrap(),
            false => {
                out.start_file(name, options).unwrap();
                out.write_all(bytes).unwrap();
            }
        }
    }
    out.finish().unwrap().into_inner()
}

fn read(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>, gpu_packages::Error> {
    let zip = Zip::read(Cursor::new(archive))?;
    let mut members = Vec::new();
    for member in zip.members() {
        let mut bytes = Vec::new();
        zip.open(member, Cursor::new(archive))?.read_to_end(&mut bytes)?;
        members.push((member.path().to_owned(), bytes));
    }
    Ok(members)
}

fn changed(
    archive: &[u8],
    changes: &[(usize, Option<&[u8]>)],
) -> Result<Vec<u8>, gpu_packages::Error> {
    let zip = Zip::read(Cursor::new(archive))?;
    let mut all = BTreeMap::new();
    for (at, bytes) in changes {
        let contents = bytes.map(|bytes| {
            let mut contents = Contents::like(&zip.members()[*at], 6);
            contents.write_all(bytes).unwrap();
            contents.finish().unwrap()
        });
        all.insert(*at, contents);
    }
    let parts = zip.rewrite(Cursor::new(archive), &all)?;
    Ok(parts.to_vec(|_| archive).unwrap())
}

#[test]
fn members_are_read() {
    let expected = MEMBERS.map(|(name, bytes, _)| (name.to_owned(), bytes.to_vec()));
    assert_eq!(read(&archive()).unwrap(), expected);
    assert_eq!(read(b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").unwrap(), []);
}

#[test]
fn archives_without_changes_are_the_same() {
    assert_eq!(changed(&archive(), &[]).unwrap(), archive());
}

#[test]
fn changed_members_have_their_new_bytes_and_others_keep_theirs() {
    let old = archive();
    let new = changed(&old, &[(1, Some(b"new")), (2, Some(b"new and stored"))]).unwrap();
    let members = read(&new).unwrap();
    assert_eq!((&*members[1].1, &*members[2].1), (&b"new"[..], &b"new and stored"[..]));
    assert_eq!(members[3].1, MEMBERS[3].1);
    // The other crate reads the same, with times and permissions as before.
    let mut theirs = [&old, &new].map(|bytes| zip::ZipArchive::new(Cursor::new(bytes)).unwrap());
    for (at, (name, bytes)) in members.iter().enumerate() {
        let [before, after] = theirs.each_mut().map(|archive| {
            let mut file = archive.by_index(at).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (
                file.name().unwrap().into_owned(),
                file.last_modified(),
                file.unix_mode(),
                file.compression(),
                bytes,
            )
        });
        assert_eq!(
            (&before.0, before.1, before.2, before.3),
            (&after.0, after.1, after.2, after.3)
        );
        assert_eq!((name, bytes), (&after.0, &after.4));
    }
}

#[test]
fn removed_members_are_gone() {
    let new = changed(&archive(), &[(2, None), (0, None)]).unwrap();
    let names: Vec<String> = read(&new).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["pkg/text", "pkg-1.0.dist-info/RECORD"]);
    assert_eq!(zip::ZipArchive::new(Cursor::new(new)).unwrap().len(), 2);
}

/// Returns the place of the record of a member in the directory.
fn record(archive: &[u8], nth: usize) -> usize {
    let starts = archive.windows(4).enumerate().filter(|(_, four)| four == b"PK\x01\x02");
    starts.map(|(at, _)| at).nth(nth).unwrap()
}

#[test]
fn contradictions_are_errors() {
    use ErrorKind::{Io, Malformed, NotThisFormat, Unsupported};
    let fails = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = archive();
        change(&mut bytes);
        let error = read(&bytes).unwrap_err();
        (error.kind(), error.to_string())
    };
    let text = record(&archive(), 1);
    let header = archive()
        .windows(4)
        .enumerate()
        .filter(|(_, four)| four == b"PK\x03\x04")
        .nth(1)
        .unwrap()
        .0;
    for (change, kind, words) in [
        (&|bytes: &mut Vec<u8>| bytes.truncate(40) as _, NotThisFormat, "without its directory"),
        // Another name, method and signature in the header of the member.
        (&|bytes: &mut Vec<u8>| bytes[header + 30] = b'q', Malformed, "another name"),
        (&|bytes: &mut Vec<u8>| bytes[header + 8] = 0, Malformed, "contradicts"),
        (&|bytes: &mut Vec<u8>| bytes[header] = 0, Malformed, "contradicts"),
        // CRC, sizes, method and place in the directory.
        (&|bytes: &mut Vec<u8>| bytes[text + 16] ^= 1, Io, "CRC"),
        (&|bytes: &mut Vec<u8>| bytes[text + 24] = 30, Io, "more bytes"),
        (&|bytes: &mut Vec<u8>| bytes[text + 24] = 32, Io, "lacks 1 bytes"),
        (&|bytes: &mut Vec<u8>| bytes[text + 22] = 0xff, Malformed, "directory starts"),
        (&|bytes: &mut Vec<u8>| bytes[text + 42] = 0, Malformed, "overlap"),
        (
            &|bytes: &mut Vec<u8>| {
                (bytes[text + 10], bytes[header + 8]) = (12, 12);
            },
            Unsupported,
            "method 12",
        ),
        (
            &|bytes: &mut Vec<u8>| {
                bytes[text + 8] |= 1;
                bytes[header + 6] |= 1;
            },
            Unsupported,
            "encrypted",
        ),
    ] as [(&dyn Fn(&mut Vec<u8>), ErrorKind, &str); 11]
    {
        let (found, error) = fails(change);
        assert!(found == kind && error.contains(words), "{words}: {found:?} {error}");
    }
}

#[test]
fn bytes_between_members_are_not_lost() {
    let mut bytes = archive();
    // The sizes of a member lie after it, but no flag says so.
    let text = record(&bytes, 1);
    bytes[text + 20] -= 1;
    let error = changed(&bytes, &[(2, Some(b"x"))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("other bytes than members"), "{error}");
}

#[test]
fn damage_is_an_error_or_changes_only_what_it_hits() {
    let whole = archive();
    for at in 0..whole.len() {
        for bit in [1, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            // The bytes that are read have the CRC that the directory states.
            let Ok(members) = read(&bytes) else { continue };
            assert!(members.len() <= MEMBERS.len(), "byte {at}");
            if let Ok(same) = changed(&bytes, &[]) {
                // Numbers at the end of the directory that nothing reads are made right.
                assert_eq!(read(&same).unwrap(), members, "byte {at}");
            }
            if let Ok(new) = changed(&bytes, &[(1, Some(b"new"))]) {
                let new = read(&new).unwrap();
                for (nth, (new, old)) in new.iter().zip(&members).enumerate() {
                    assert_eq!(new.1 == old.1, nth != 1, "byte {at}");
                }
            }
        }
    }
}
