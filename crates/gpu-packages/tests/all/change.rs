//! Packages are changed, and all but the change stays.

use std::io::{Cursor, Read, Write as _};
use std::num::NonZeroUsize;

use crate::seen;
use gpu_packages::{
    Codec, Compression, ErrorKind, NewContents, Original, PackageKind, Replacement, Rewrite,
    RewriteOptions, WheelEdit, WheelName, Zip, ZipEdit, changes_stream, rewrite_deb, rewrite_tar,
    verify,
};
use samples::ar;
use samples::packages::{self, Around, Made};

fn plain() -> RewriteOptions {
    RewriteOptions::default()
}

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn written(rewrite: &Rewrite, old: &[u8]) -> Vec<u8> {
    let mut new = Vec::new();
    rewrite.write_to(Cursor::new(old), &mut new).unwrap();
    assert_eq!(new.len() as u64, rewrite.size());
    new
}

fn deflated(contents: &[u8]) -> NewContents {
    NewContents::deflate(contents, 6, ONE).unwrap()
}

fn wheel() -> Vec<u8> {
    let library = b"\x7fELF".repeat(5000);
    packages::zip(
        &packages::wheel(&[
            ("foo/__init__.py", b"import os\n"),
            ("foo/a,b.so", &library),
            ("foo/empty", b""),
        ]),
        &Around::default(),
    )
}

#[test]
fn wheels_keep_all_but_the_change() {
    let old = wheel();
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let library = zip.find(b"foo/a,b.so").unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    edit.replace(library, deflated(b"new library"));
    let rewrite = edit.plan(Cursor::new(&old)).unwrap();
    assert_eq!((rewrite.changed(), rewrite.copied(), rewrite.removed()), (2, 4, 0));
    assert_eq!(rewrite.unlisted().len(), 0);
    let new = written(&rewrite, &old);
    let (before, after) = (seen(&old), seen(&new));
    assert_eq!(before.names(), after.names());
    assert!(after.findings.is_empty(), "{:?}", after.findings);
    for ((name, old), (_, new)) in before.files.iter().zip(&after.files) {
        match &name[..] {
            "foo/a,b.so" => assert_eq!(new, b"new library"),
            "foo-1.0.dist-info/RECORD" => {
                let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
                let changed: Vec<_> =
                    old.lines().zip(new.lines()).filter(|(a, b)| a != b).collect();
                assert_eq!(old.lines().count(), new.lines().count());
                assert_eq!(changed.len(), 1, "{changed:?}");
                assert!(changed[0].1.starts_with("\"foo/a,b.so\",sha256="));
                assert!(changed[0].1.ends_with(",11"));
            }
            _ => assert_eq!(old, new, "{name}"),
        }
    }
    let verified = verify(Cursor::new(&new), &Default::default()).unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
    assert_eq!((verified.members, verified.recorded), (6, 5));
    // The bytes before the changed member, local headers and times included.
    let start = usize::try_from(zip.members()[library].offset()).unwrap();
    assert_eq!(old[..start + 14], new[..start + 14]);
}

#[test]
fn without_a_change_the_bytes_are_the_same() {
    let old = wheel();
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    assert_eq!(written(&WheelEdit::new(&zip).unwrap().plan(Cursor::new(&old)).unwrap(), &old), old);
    // With the contents that are there, too, for each form of zip file.
    for descriptor in [0, 12, 16, 20, 24] {
        for (is_zip64, is_end_zip64) in [(false, false), (true, false), (false, true), (true, true)]
        {
            for (prefix, is_moved) in [(&b""[..], false), (&[0; 8], false), (&[0; 8], true)] {
                let mut members = vec![
                    Made::new("a", "aaaa".repeat(99)),
                    Made::new("b/", ""),
                    Made::new("c", "c"),
                ];
                members[2].method = 0;
                members[1].zeros = 3;
                members[0].extra = b"\x55\x54\x05\0\x03abcd".to_vec();
                members[2].comment = b"comment".to_vec();
                for member in &mut members {
                    (member.is_zip64, member.descriptor) = (is_zip64, descriptor);
                }
                let around = Around {
                    prefix: prefix.to_vec(),
                    is_moved,
                    is_zip64: is_end_zip64,
                    comment: b"end".to_vec(),
                };
                let old = packages::zip(&members, &around);
                let zip = Zip::read(Cursor::new(&old)).unwrap();
                let mut edit = ZipEdit::new(&zip);
                edit.replace(2, NewContents::store(&b"c"[..]).unwrap());
                let new = written(&edit.plan(Cursor::new(&old)).unwrap(), &old);
                if descriptor == 0 {
                    assert_eq!(new, old, "{is_zip64} {is_end_zip64} {is_moved}");
                }
                let again = Zip::read(Cursor::new(&new)).unwrap();
                let findings = again.check(Cursor::new(&new)).unwrap();
                assert!(findings.is_empty(), "{findings:?}");
                // A longer one moves what follows.
                let mut edit = ZipEdit::new(&zip);
                edit.replace(0, deflated(&b"0123456789".repeat(1000)));
                let new = written(&edit.plan(Cursor::new(&old)).unwrap(), &old);
                let zip = Zip::read(Cursor::new(&new)).unwrap();
                assert!(zip.check(Cursor::new(&new)).unwrap().is_empty());
                let read = |index| {
                    let mut bytes = Vec::new();
                    zip.open(index, Cursor::new(&new)).unwrap().read_to_end(&mut bytes).unwrap();
                    bytes
                };
                assert_eq!(
                    (read(0), read(1), read(2)),
                    (b"0123456789".repeat(1000), vec![], b"c".to_vec())
                );
            }
        }
    }
}

#[test]
fn members_can_be_removed() {
    let old = wheel();
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    edit.remove(zip.find(b"foo/empty").unwrap());
    let rewrite = edit.plan(Cursor::new(&old)).unwrap();
    assert_eq!((rewrite.changed(), rewrite.removed(), rewrite.copied()), (1, 1, 4));
    let new = written(&rewrite, &old);
    let verified = verify(Cursor::new(&new), &Default::default()).unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
    assert_eq!((verified.members, verified.recorded), (5, 4));
}

#[test]
fn build_tags_are_written() {
    let old = wheel();
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    edit.build_tag("1gfx942");
    let new = written(&edit.plan(Cursor::new(&old)).unwrap(), &old);
    let found = seen(&new);
    let wheel = &found.files.iter().find(|(name, _)| name.ends_with("WHEEL")).unwrap().1;
    let text = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nBuild: 1gfx942\nTag: py3-none-any\n";
    assert_eq!(String::from_utf8_lossy(wheel), text);
    assert!(verify(Cursor::new(&new), &Default::default()).unwrap().findings.is_empty());
    edit.build_tag("gfx942");
    assert_eq!(edit.plan(Cursor::new(&old)).unwrap_err().kind(), ErrorKind::Malformed);
    let with = |name, build| WheelName::parse(name).and_then(|name| name.with_build(build));
    for (old, new) in [
        ("a-1-2-py3-none-any.whl", "a-1-1x-py3-none-any.whl"),
        ("a-1-cp312-cp312-linux-rocm7.whl", "a-1-1x-cp312-cp312-linux-rocm7.whl"),
        ("a-1-2-cp312-cp312-linux-rocm7.whl", "a-1-1x-cp312-cp312-linux-rocm7.whl"),
    ] {
        assert_eq!(with(old, "1x").unwrap().to_string(), new);
    }
    for (name, build) in
        [("a-1.whl", "1"), ("a-1-py3-none-any.zip", "1"), ("a-1-py3-none-any.whl", "1-2")]
    {
        assert_eq!(with(name, build).unwrap_err().kind(), ErrorKind::Malformed);
    }
}

#[test]
fn signed_wheels_are_refused() {
    let mut members = packages::wheel(&[("foo/a.so", b"old")]);
    members.push(Made::new("foo-1.0.dist-info/RECORD.jws", "signature"));
    let old = packages::zip(&members, &Around::default());
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    assert_eq!(edit.signatures().count(), 1);
    edit.replace(0, deflated(b"new"));
    let error = edit.plan(Cursor::new(&old)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Signed);
    assert_eq!(
        error.to_string(),
        "foo-1.0.dist-info/RECORD.jws: the wheel is signed, and a change makes the signature invalid"
    );
    edit.drop_signature(true);
    let rewrite = edit.plan(Cursor::new(&old)).unwrap();
    assert_eq!((rewrite.changed(), rewrite.removed(), rewrite.copied()), (2, 1, 2));
    let new = written(&rewrite, &old);
    let names = seen(&new).files.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert!(!names.iter().any(|name| name.ends_with("jws")), "{names:?}");
    assert!(verify(Cursor::new(&new), &Default::default()).unwrap().findings.is_empty());
}

#[test]
fn changed_members_without_a_row_are_named() {
    let mut members = packages::wheel(&[("foo/a.so", b"old")]);
    members.insert(1, Made::new("foo/unlisted.so", "old"));
    let old = packages::zip(&members, &Around::default());
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    edit.replace(1, deflated(b"new"));
    let rewrite = edit.plan(Cursor::new(&old)).unwrap();
    assert_eq!(rewrite.unlisted().collect::<Vec<_>>(), [b"foo/unlisted.so"]);
    // RECORD itself is written, not given.
    let mut edit = WheelEdit::new(&zip).unwrap();
    edit.replace(zip.members().len() - 1, deflated(b"new"));
    assert_eq!(edit.plan(Cursor::new(&old)).unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn only_plain_zip_files_are_changed() {
    let refused = |file: &[u8], index: usize| {
        let zip = Zip::read(Cursor::new(file)).unwrap();
        let mut edit = ZipEdit::new(&zip);
        edit.replace(index, deflated(b"new"));
        let error = edit.plan(Cursor::new(file)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        error.to_string()
    };
    let members = [Made::new("a", "1"), Made::new("a", "2"), Made::new("b", "3")];
    let file = packages::zip(&members, &Around::default());
    assert_eq!(refused(&file, 1), "a: expected one member of this name, found several (at 0x22)");
    // Copies of the other members are allowed.
    let zip = Zip::read(Cursor::new(&file)).unwrap();
    let mut edit = ZipEdit::new(&zip);
    edit.replace(2, deflated(b"new"));
    assert!(edit.plan(Cursor::new(&file)).is_ok());
    let text = refused(&file, 9);
    assert_eq!(text, "expected a member below 3, found 9");
    let prefix = Around { prefix: b"#!/bin/sh\n".to_vec(), ..Around::default() };
    let text = refused(&packages::zip(&members[1..], &prefix), 0);
    assert_eq!(text, "expected a plain zip file to change: 10 bytes belong to no member (at 0x0)");
    let mut method = members[2].clone();
    method.method = 12;
    let text = refused(&packages::zip(&[method], &Around::default()), 0);
    assert!(text.contains("found method 12"), "{text}");
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let mut contents = Vec::new();
    for index in 0..300_000u32 {
        contents.extend((index.wrapping_mul(index) / 7).to_le_bytes());
    }
    for len in [0, 1, 1000, (512 << 10) - 1, 512 << 10, (512 << 10) + 1, 1 << 20, contents.len()] {
        let contents = &contents[..len];
        let made = [1, 2, 5].map(|threads| {
            let threads = NonZeroUsize::new(threads).unwrap();
            let made = NewContents::deflate(contents, 6, threads).unwrap();
            let mut bytes = Vec::new();
            made.reader().read_to_end(&mut bytes).unwrap();
            assert!(bytes == contents, "{len}");
            let members = [Made::new("a", "")];
            let old = packages::zip(&members, &Around::default());
            let zip = Zip::read(Cursor::new(&old)).unwrap();
            let mut edit = ZipEdit::new(&zip);
            edit.replace(0, made);
            written(&edit.plan(Cursor::new(&old)).unwrap(), &old)
        });
        assert!(made[0] == made[1] && made[1] == made[2], "{len}");
        assert_eq!(seen(&made[0]).files[0].1.len(), len);
    }
}

#[test]
fn new_contents_keep_to_their_limit() {
    let contents: Vec<u8> = (0..1_200_000_u32).map(|n| (n.wrapping_mul(n) >> 5) as u8).collect();
    for method in [0, 8] {
        let mut made = Made::new("a", "old");
        made.method = method;
        let old = packages::zip(&[made], &Around::default());
        let zip = Zip::read(Cursor::new(&old)).unwrap();
        let member = &zip.members()[0];
        assert_eq!(member.method(), method);
        let like = |most| NewContents::like(member, &contents[..], Some(6), ONE, most);
        let size = like(u64::MAX).unwrap().stored_size();
        assert!(like(size).is_ok());
        assert_eq!(like(size - 1).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(like(0).unwrap_err().kind(), ErrorKind::Limit);
    }
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder =
        Compression::new(Codec::Xz).with_level(1).unwrap().encoder(Vec::new()).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn tar_files_keep_all_but_the_change() {
    let old =
        packages::tar(&[("./a", b"1"), ("./usr/lib/b.so", b"old"), ("d/", b""), ("c", &[7; 600])]);
    let mut same = Vec::new();
    let rewritten = rewrite_tar(&old[..], &mut same, &plain(), |_, _| Ok(None)).unwrap();
    assert_eq!((rewritten.members(), rewritten.changed().len()), (4, 0));
    assert_eq!(same, old);
    for compress in [|bytes: &[u8]| bytes.to_vec(), packages::gzip, xz] {
        let old = compress(&old);
        let mut new = Vec::new();
        let contents = vec![9; 1500];
        let rewritten = rewrite_tar(&old[..], &mut new, &plain(), |name, _| {
            Ok((name == b"usr/lib/b.so").then(|| Replacement::from_bytes(contents.clone())))
        })
        .unwrap();
        assert_eq!(rewritten.changed().collect::<Vec<_>>(), [b"usr/lib/b.so"]);
        assert_eq!(Codec::sniff(&new), Codec::sniff(&old));
        let mut expected = seen(&old).files;
        expected[1].1 = contents;
        assert_eq!(seen(&new).files, expected);
    }
}

#[test]
fn sizes_in_pax_records_follow() {
    let mut old = packages::tar_header(b"x", 11, b'x', b"");
    old.extend(packages::padded(b"11 size=03\n"));
    old.extend(packages::tar_header(b"a", 0, b'0', b""));
    old.extend(packages::padded(b"abc"));
    old.extend([0; 1024]);
    let replace = |size: usize, new: &mut Vec<u8>| {
        rewrite_tar(&old[..], new, &plain(), |_, _| {
            Ok(Some(Replacement::from_bytes(vec![1; size])))
        })
    };
    let mut new = Vec::new();
    replace(12, &mut new).unwrap();
    assert_eq!(seen(&new).files, [("a".to_owned(), vec![1; 12])]);
    let error = replace(100, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

#[test]
fn new_contents_have_the_size_that_was_said() {
    let old = packages::tar(&[("a", b"1")]);
    for size in [1, 3] {
        let replace = |_: &[u8], _: &mut Original<'_>| Ok(Some(Replacement::new(size, &b"12"[..])));
        let error = rewrite_tar(&old[..], Vec::new(), &plain(), replace).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn debian_packages_keep_their_records_right() {
    let files: [(&str, &[u8]); 3] =
        [("usr/lib/b.so", &[1; 5000]), ("usr/share/c", b"c"), ("d", b"")];
    for (compress, end) in [(xz as fn(&[u8]) -> Vec<u8>, ".xz"), (packages::gzip, ".gz")] {
        let old = packages::deb(&files, end, compress);
        let rewrite = |old: &[u8], drops: bool, name: &str| {
            let mut new = Vec::new();
            let rewritten = rewrite_deb(
                Cursor::new(old),
                &mut new,
                &plain().with_drop_signature(drops),
                |found, _| {
                    Ok((found == name.as_bytes()).then(|| Replacement::from_bytes(b"new".to_vec())))
                },
            );
            rewritten.map(|rewritten| (rewritten, new))
        };
        let (rewritten, new) = rewrite(&old, false, "none").unwrap();
        assert_eq!((rewritten.changed().len(), &new), (0, &old));
        let (rewritten, new) = rewrite(&old, false, "usr/lib/b.so").unwrap();
        assert_eq!((rewritten.changed().len(), rewritten.unlisted().len()), (1, 0));
        let mut expected = seen(&old).files;
        let found = seen(&new).files;
        let text = String::from_utf8(found[1].1.clone()).unwrap();
        assert!(text.contains("\nInstalled-Size: 2\n"), "{text}");
        (expected[1], expected[2]) = (found[1].clone(), found[2].clone());
        expected[3].1 = b"new".to_vec();
        assert_eq!(found, expected);
        let verified = verify(Cursor::new(&new), &Default::default()).unwrap();
        assert!(verified.findings.is_empty(), "{:?}", verified.findings);
        assert_eq!(verified.recorded, 3);
        // A signature is dropped when told.
        let mut signed = old.clone();
        signed.extend(&ar::raw(&[("_gpgorigin", b"sig")])[8..]);
        assert_eq!(rewrite(&signed, false, "d").unwrap_err().kind(), ErrorKind::Signed);
        assert_eq!(rewrite(&signed, false, "none").unwrap().1, signed);
        let (_, new) = rewrite(&signed, true, "d").unwrap();
        assert!(!seen(&new).names().contains(&"_gpgorigin"));
    }
    // The records are read as the files are: damage is not a fault of the reader.
    let data = packages::gzip(&packages::tar(&[("./d", b"1")]));
    let damaged = ar::raw(&[
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", b"\xfd7zXZ\0and not more"),
        ("data.tar.gz", &data),
    ]);
    let replace = |_: &[u8], _: &mut Original<'_>| Ok(Some(Replacement::from_bytes(Vec::new())));
    let error = rewrite_deb(Cursor::new(&damaged), Vec::new(), &plain(), replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Codec, "{error}");
    let error = rewrite_deb(Cursor::new(b"!<arch>\n"), Vec::new(), &plain(), |_, _| Ok(None));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotAPackage);
}

/// A file of zeros with some bytes in it.
struct Sparse {
    pieces: Vec<(u64, Vec<u8>)>,
    len: u64,
    at: u64,
}

impl Sparse {
    fn new() -> Self {
        Sparse { pieces: Vec::new(), len: 0, at: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.pieces.push((self.len, bytes.to_vec()));
        self.len += bytes.len() as u64;
    }
}

impl Read for Sparse {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = buf.len().min(usize::try_from(self.len.saturating_sub(self.at)).unwrap());
        buf[..len].fill(0);
        for (start, bytes) in &self.pieces {
            for (index, byte) in bytes.iter().enumerate() {
                let place = (start + index as u64).wrapping_sub(self.at);
                if place < len as u64 {
                    buf[usize::try_from(place).unwrap()] = *byte;
                }
            }
        }
        self.at += len as u64;
        Ok(len)
    }
}

impl std::io::Seek for Sparse {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            std::io::SeekFrom::Start(at) => at,
            std::io::SeekFrom::End(by) => self.len.checked_add_signed(by).unwrap(),
            std::io::SeekFrom::Current(by) => self.at.checked_add_signed(by).unwrap(),
        };
        Ok(self.at)
    }
}

/// Places past 4 GiB go into zip64 fields and records that were not there.
#[test]
fn files_may_grow_past_four_gigabytes() {
    let zeros = u64::from(u32::MAX) - 1000;
    let mut members = [Made::new("a", "small"), Made::new("b", ""), Made::new("c", "last")];
    members.iter_mut().for_each(|made| made.method = 0);
    members[1].extra = b"\x55\x54\x05\0\x03abcd".to_vec();
    let file = packages::zip(&members, &Around::default());
    // `b` gets zeros: its sizes, the offset of `c`, and the offset of the directory.
    let records: Vec<_> =
        (0..file.len() - 4).filter(|&at| file[at..].starts_with(b"PK\x01\x02")).collect();
    let locals: Vec<_> =
        (0..file.len() - 4).filter(|&at| file[at..].starts_with(b"PK\x03\x04")).collect();
    let mut changed = file.clone();
    let mut add = |at: usize, value: u64| {
        let old = u32::from_le_bytes(changed[at..at + 4].try_into().unwrap());
        let new = u32::try_from(u64::from(old) + value).unwrap();
        changed[at..at + 4].copy_from_slice(&new.to_le_bytes());
    };
    for at in [locals[1] + 18, locals[1] + 22, records[1] + 20, records[1] + 24] {
        add(at, zeros);
    }
    add(records[2] + 42, zeros);
    add(file.len() - 6, zeros);
    let mut old = Sparse::new();
    old.push(&changed[..locals[2]]);
    old.len += zeros;
    old.push(&changed[locals[2]..]);
    let zip = Zip::read(&mut old).unwrap();
    assert!(zip.check(&mut old).unwrap().is_empty());
    let mut edit = ZipEdit::new(&zip);
    edit.replace(0, NewContents::store(&[1; 2000][..]).unwrap());
    let rewrite = edit.plan(&mut old).unwrap();
    let mut new = Sparse::new();
    for part in rewrite.parts().iter() {
        match part {
            byte_parts::Part::Bytes(bytes) => new.push(bytes),
            byte_parts::Part::Zeros(count) => new.len += count,
            byte_parts::Part::Input(_, range) => {
                // The zeros of `b` are in the middle of a long range.
                let mut bytes =
                    vec![0; usize::try_from((range.end - range.start).min(4096)).unwrap()];
                std::io::Seek::seek(&mut old, std::io::SeekFrom::Start(range.start)).unwrap();
                old.read_exact(&mut bytes).unwrap();
                let end = new.len + (range.end - range.start);
                new.push(&bytes);
                if end > new.len {
                    let mut bytes = [0; 256];
                    std::io::Seek::seek(&mut old, std::io::SeekFrom::Start(range.end - 256))
                        .unwrap();
                    old.read_exact(&mut bytes).unwrap();
                    new.len = end - 256;
                    new.push(&bytes);
                }
            }
        }
    }
    assert_eq!(new.len, rewrite.size());
    let zip = Zip::read(&mut new).unwrap();
    assert!(zip.check(&mut new).unwrap().is_empty());
    assert!(zip.members()[2].offset() > u64::from(u32::MAX));
    assert_eq!(zip.members()[1].size(), zeros);
    let mut text = String::new();
    zip.open(2, &mut new).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "last");
    let theirs = zip::ZipArchive::new(&mut new).unwrap();
    assert_eq!(theirs.len(), 3);
}

#[test]
fn zip_files_may_have_very_many_members() {
    let mut members: Vec<_> = (0..70_000).map(|index| Made::new(&format!("{index}"), "")).collect();
    members.iter_mut().for_each(|made| made.method = 0);
    let around = Around { is_zip64: true, ..Around::default() };
    let old = packages::zip(&members, &around);
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    let mut edit = ZipEdit::new(&zip);
    edit.replace(69_999, deflated(b"new")).remove(5);
    let new = written(&edit.plan(Cursor::new(&old)).unwrap(), &old);
    let zip = Zip::read(Cursor::new(&new)).unwrap();
    assert_eq!(zip.members().len(), 69_999);
    assert!(zip.check(Cursor::new(&new)).unwrap().is_empty());
}

#[test]
fn contents_may_be_read_before_the_decision() {
    let old = packages::tar(&[("a", &[1; 3000]), ("b", b"short"), ("c", &[2; 600]), ("d", b"")]);
    let mut new = Vec::new();
    let rewritten = rewrite_tar(&old[..], &mut new, &plain(), |name, original| {
        let head = original.head().to_vec();
        assert_eq!(head.len() as u64, original.size().min(512));
        match name {
            b"a" | b"b" => {
                let mut bytes = Vec::new();
                original.read_to_end(&mut bytes)?;
                assert!(bytes.starts_with(&head) && bytes.len() as u64 == original.size());
                if name == b"a" {
                    return Ok(Some(Replacement::unchanged(
                        bytes.len() as u64,
                        Cursor::new(bytes),
                    )));
                }
                bytes.reverse();
                Ok(Some(Replacement::from_bytes(bytes)))
            }
            _ => Ok(None),
        }
    })
    .unwrap();
    assert_eq!(rewritten.changed().collect::<Vec<_>>(), [b"b"]);
    let mut expected = seen(&old).files;
    expected[1].1 = b"trohs".to_vec();
    assert_eq!(seen(&new).files, expected);
    let error = rewrite_tar(&old[..], Vec::new(), &plain(), |_, original| {
        original.read_exact(&mut [0])?;
        Ok(None)
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn the_first_change_is_found_without_a_new_package() {
    let deb = packages::deb(&[("a", &[1; 5000]), ("b", b"b"), ("c", b"c")], ".xz", xz);
    let tar = xz(&packages::tar(&[("./a", b"a"), ("./b", b"b"), ("./c", b"c")]));
    for (kind, file) in [(PackageKind::Deb, &deb), (PackageKind::Tar, &tar)] {
        for (name, asked) in [("a", 1), ("b", 2), ("c", 3), ("none", 3)] {
            for removes in [false, true] {
                let mut names = Vec::new();
                let replace = |found: &[u8], _: &mut Original<'_>| {
                    names.push(found.to_vec());
                    Ok(match removes {
                        _ if found != name.as_bytes() => None,
                        true => Some(Replacement::removal()),
                        false => Some(Replacement::from_bytes(b"new".to_vec())),
                    })
                };
                let changes = changes_stream(kind, Cursor::new(file), &plain(), replace).unwrap();
                assert_eq!((changes, names.len()), (name != "none", asked), "{name}");
            }
        }
        // Contents that were read and are given back are not a change.
        let same = |_: &[u8], original: &mut Original<'_>| {
            let mut bytes = Vec::new();
            original.read_to_end(&mut bytes)?;
            Ok(Some(Replacement::unchanged(bytes.len() as u64, Cursor::new(bytes))))
        };
        assert!(!changes_stream(kind, Cursor::new(file), &plain(), same).unwrap());
        let cut = Cursor::new(&file[..file.len() - 100]);
        assert!(changes_stream(kind, cut, &plain(), |_, _| Ok(None)).is_err());
    }
}
