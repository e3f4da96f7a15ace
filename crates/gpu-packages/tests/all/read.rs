//! Packages of all kinds are read.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write as _};

use crate::{Seen, seen};
use gpu_packages::{
    Codec, Compression, Error, ErrorKind, Finding, FindingKind, Member, MemberPath, Options,
    PackageKind, TarKind, TarReader, Visitor, Zip, ZipWalker, sniff, verify, walk,
};
use samples::packages::{self, Around, Made};

const FILES: [(&str, &[u8]); 3] =
    [("usr/lib/libfoo.so", b"\x7fELF and more"), ("usr/share/empty", b""), ("a b", b"hello")];

fn compressed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Compression::new(codec).encoder(Vec::new()).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn owned(prefix: &str, files: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(name, bytes)| (format!("{prefix}{name}"), bytes.to_vec())).collect()
}

fn made() -> Vec<Made> {
    FILES.iter().map(|(name, bytes)| Made::new(name, *bytes)).collect()
}

#[test]
fn zip_files_of_all_forms_are_read() {
    for descriptor in [0, 12, 16, 20, 24] {
        for is_zip64 in [false, true] {
            for (prefix, is_moved) in [(&b""[..], false), (b"#!/bin/sh\n", false), (b"abc", true)] {
                for method in [0, 8] {
                    let mut members = made();
                    for member in &mut members {
                        (member.descriptor, member.is_zip64) = (descriptor, is_zip64);
                        member.method = method;
                        member.comment = b"PK\x05\x06".to_vec();
                    }
                    let around = Around {
                        prefix: prefix.to_vec(),
                        is_moved,
                        is_zip64,
                        comment: b"a comment".to_vec(),
                    };
                    let file = packages::zip(&members, &around);
                    let zip = Zip::read(Cursor::new(&file)).unwrap();
                    assert_eq!(zip.members().len(), 3);
                    let found = zip.check(Cursor::new(&file)).unwrap();
                    let gaps = usize::from(!prefix.is_empty());
                    assert_eq!(found.len(), gaps, "{descriptor} {is_zip64} {found:?}");
                    if prefix.is_empty() {
                        let seen = seen(&file);
                        assert_eq!(seen.files, owned("", &FILES));
                        assert_eq!(seen.packages, [(String::new(), PackageKind::Zip)]);
                    }
                }
            }
        }
    }
}

#[test]
fn wheels_are_told_by_their_record() {
    let file = packages::zip(&packages::wheel(&FILES), &Around::default());
    let seen = seen(&file);
    assert_eq!(seen.packages, [(String::new(), PackageKind::Wheel)]);
    assert_eq!(seen.files[..3], owned("", &FILES));
    assert_eq!(seen.files.len(), 6);
    assert!(seen.findings.is_empty(), "{:?}", seen.findings);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn tar_files_are_read_through_each_codec() {
    let long = format!("{}/x", "d".repeat(150));
    let files = [("./usr/lib/libfoo.so", FILES[0].1), (&long, b"long"), ("d/", b"")];
    let file = packages::tar(&files);
    for codec in [Codec::None, Codec::Gzip, Codec::Xz, Codec::Zstd, Codec::Bzip2] {
        let file = compressed(codec, &file);
        let found = Codec::sniff(&file);
        assert_eq!(found, codec);
        let seen = seen(&file);
        assert_eq!(seen.names(), ["usr/lib/libfoo.so", &long], "{codec}");
        assert_eq!(seen.packages, [(String::new(), PackageKind::Tar)]);
        assert!(seen.findings.is_empty());
    }
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn streams_may_have_several_parts() {
    let file = packages::tar(&FILES);
    let (start, end) = file.split_at(700);
    for codec in [Codec::Gzip, Codec::Xz, Codec::Zstd, Codec::Bzip2] {
        let mut parts = compressed(codec, start);
        parts.extend(compressed(codec, end));
        assert_eq!(seen(&parts).files, owned("", &FILES), "{codec}");
    }
    // A skippable frame.
    let mut parts = compressed(Codec::Zstd, start);
    parts.extend(b"\x50\x2a\x4d\x18\x03\0\0\0abc");
    parts.extend(compressed(Codec::Zstd, end));
    assert_eq!(seen(&parts).files, owned("", &FILES));
}

#[test]
fn tar_extensions_are_read() {
    let mut file = Vec::new();
    let record = b"20 path=pax/name/ab\n30 mtime=1700000000.123456789\n10 size=5\n";
    file.extend(packages::tar_header(b"x", record.len() as u64, b'x', b""));
    file.extend(packages::padded(record));
    file.extend(packages::tar_header(b"short", 0, b'0', b""));
    file.extend(packages::padded(b"hello"));
    // A prefix, a symbolic link, a hard link with a size, a device.
    let mut header = packages::tar_header(b"name", 2, b'0', b"");
    header[345..351].copy_from_slice(b"prefix");
    packages::sum(&mut header);
    file.extend(header);
    file.extend(packages::padded(b"ab"));
    file.extend(packages::tar_header(b"link", 0, b'2', b"prefix/name"));
    file.extend(packages::tar_header(b"hard", 100, b'1', b"prefix/name"));
    file.extend(packages::tar_header(b"dev", 0, b'3', b""));
    // A size of base 256, and the old way to say directory.
    let mut header = packages::tar_header(b"big", 0, b'0', b"");
    header[124..136].copy_from_slice(b"\x80\0\0\0\0\0\0\0\0\0\0\x03");
    packages::sum(&mut header);
    file.extend(header);
    file.extend(packages::padded(b"xyz"));
    file.extend(packages::tar_header(b"olddir/", 0, 0, b""));
    file.extend([0; 1024]);
    let mut tar = TarReader::new(&file[..]);
    let mut found = Vec::new();
    while let Some(member) = tar.next_member().unwrap() {
        let name = String::from_utf8(member.name().to_vec()).unwrap();
        found.push((name, member.kind(), member.size()));
    }
    let expected = [
        ("pax/name/ab", TarKind::File, 5),
        ("prefix/name", TarKind::File, 2),
        ("link", TarKind::Symlink, 0),
        ("hard", TarKind::HardLink, 0),
        ("dev", TarKind::Other, 0),
        ("big", TarKind::File, 3),
        ("olddir/", TarKind::Directory, 0),
    ];
    assert_eq!(found, expected.map(|(name, kind, size)| (name.to_owned(), kind, size)));
    let seen = seen(&file);
    assert_eq!(seen.names(), ["pax/name/ab", "prefix/name", "big"]);
    let link = |name: &str| (name.to_owned(), b"prefix/name".to_vec());
    assert_eq!(seen.links, [link("link"), link("hard")]);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn debian_packages_show_installed_paths() {
    for (codec, end) in
        [(Codec::None, ""), (Codec::Gzip, ".gz"), (Codec::Xz, ".xz"), (Codec::Zstd, ".zst")]
    {
        let file = packages::deb(&FILES, end, |bytes| compressed(codec, bytes));
        let seen = seen(&file);
        let mut expected = vec!["debian-binary", "control.tar:control", "control.tar:md5sums"];
        expected.extend(FILES.map(|(name, _)| name));
        assert_eq!(seen.names(), expected);
        assert_eq!(seen.packages, [(String::new(), PackageKind::Deb)]);
        assert!(seen.findings.is_empty(), "{:?}", seen.findings);
    }
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn rpm_packages_are_read() {
    for codec in [Codec::Gzip, Codec::Xz, Codec::Zstd] {
        let payload = compressed(codec, &packages::cpio(&[("./usr/lib/a.so", b"abc"), ("b", b"")]));
        let file = packages::rpm(&payload);
        let seen = seen(&file);
        assert_eq!(seen.files, owned("", &[("usr/lib/a.so", b"abc"), ("b", b"")]));
        assert_eq!(seen.packages, [(String::new(), PackageKind::Rpm)]);
    }
}

#[test]
fn rpm_packages_with_large_files_name_them_in_the_header() {
    // DIRINDEXES, BASENAMES, DIRNAMES, LONGFILESIZES.
    let data =
        b"\0\0\0\x01\0\0\0\0a.so\0b\0/usr/\0/usr/lib/\0___\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02";
    let entries: [[u32; 4]; 4] =
        [[1116, 4, 0, 2], [1117, 8, 8, 2], [1118, 8, 15, 2], [5008, 5, 34, 2]];
    assert_eq!(data[34..42], [0, 0, 0, 0, 0, 0, 0, 3]);
    let mut file = packages::rpm(b"");
    file.truncate(file.len() - 8);
    file.extend([4, u32::try_from(data.len()).unwrap()].map(u32::to_be_bytes).concat());
    file.extend(entries.concat().into_iter().flat_map(u32::to_be_bytes));
    file.extend(data);
    let start = file.len();
    for (index, contents) in ["abc", "de"].iter().enumerate() {
        file.extend(format!("07070X{index:08x}\0\0{contents}").as_bytes());
        file.resize(start + (file.len() - start).next_multiple_of(4), 0);
    }
    file.extend(&packages::cpio(&[]));
    let found = seen(&file);
    assert_eq!(found.files, owned("", &[("usr/lib/a.so", b"abc"), ("usr/b", b"de")]));
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    // Values that are not there.
    for (at, value) in [(8, 9), (8, 200), (12, 9), (12, 200)] {
        let mut file = file.clone();
        let entry = start - data.len() - 64;
        for index in 0..4 {
            file[entry + index * 16 + at + 3] = value;
        }
        let _ = crate::seen_with(&file, &Options::default());
    }
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn conda_packages_have_no_layers() {
    let pkg = packages::tar(&[("lib/libfoo.so", b"\x7fELF")]);
    let info = packages::tar(&[("info/paths.json", b"{}")]);
    let file = packages::conda(compressed(Codec::Zstd, &pkg), compressed(Codec::Zstd, &info));
    let found = seen(&file);
    assert_eq!(found.names(), ["metadata.json", "lib/libfoo.so", "info/paths.json"]);
    assert_eq!(found.packages, [(String::new(), PackageKind::Conda)]);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn packages_in_packages_are_read() {
    let wheel = packages::zip(&packages::wheel(&[("foo/a.so", b"\x7fELF")]), &Around::default());
    let layer = packages::tar(&[("opt/foo.whl", &wheel), ("bin/x", b"x")]);
    let image = packages::tar(&[
        ("blobs/sha256/00", &compressed(Codec::Gzip, &layer)),
        ("blobs/sha256/01", &compressed(Codec::Zstd, &layer)),
        ("index.json", b"{}"),
        ("notes.txt.gz", &compressed(Codec::Gzip, b"not a tar file")),
        ("fake.zip", b"PK\x03\x04 but not a zip file"),
    ]);
    let found = seen(&image);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    let kinds: Vec<_> = found.packages.iter().map(|(path, kind)| (&path[..], *kind)).collect();
    let expected = [
        ("", PackageKind::Tar),
        ("blobs/sha256/00", PackageKind::Tar),
        ("blobs/sha256/00:opt/foo.whl", PackageKind::Wheel),
        ("blobs/sha256/01", PackageKind::Tar),
        ("blobs/sha256/01:opt/foo.whl", PackageKind::Wheel),
    ];
    assert_eq!(kinds, expected);
    let names = found.names();
    assert!(names.contains(&"blobs/sha256/01:opt/foo.whl:foo/a.so"), "{names:?}");
    assert!(names.contains(&"blobs/sha256/00:bin/x"));
    let file = |name: &str| found.files.iter().find(|(found, _)| found == name).unwrap().1.clone();
    assert_eq!(file("notes.txt.gz"), compressed(Codec::Gzip, b"not a tar file"));
    assert_eq!(file("fake.zip"), b"PK\x03\x04 but not a zip file");
}

#[test]
fn visitors_may_stay_outside() {
    struct Outside(Seen);
    impl Visitor for Outside {
        fn package(&mut self, path: &MemberPath, _: PackageKind) -> bool {
            path.is_empty()
        }

        fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
            self.0.member(member, contents)
        }
    }
    let inner = packages::zip(&made(), &Around::default());
    let tar = packages::tar(&[("a", b"1")]);
    let gz = compressed(Codec::Gzip, &tar);
    let files: [(&str, &[u8]); 3] = [("x.zip", &inner), ("x.tar", &tar), ("x.tgz", &gz)];
    let mut outside = Outside(Seen::default());
    walk(Cursor::new(packages::tar(&files)), &Options::default(), &mut outside).unwrap();
    assert_eq!(outside.0.files, owned("", &files));
}

#[test]
fn threads_read_members_of_a_zip_file() {
    let inner = compressed(Codec::Gzip, &packages::tar(&[("x", b"abc")]));
    let mut members = made();
    members.push(Made::new("inner.tar.gz", inner));
    let file = packages::zip(&members, &Around::default());
    let zip = Zip::read(Cursor::new(&file)).unwrap();
    let walker = ZipWalker::new(&Options::default(), &zip);
    let found: Vec<Seen> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..zip.members().len())
            .map(|index| {
                let (walker, file) = (&walker, &file);
                scope.spawn(move || {
                    let mut seen = Seen::default();
                    walker.member(index, Cursor::new(file), &mut seen).unwrap();
                    seen
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let all: Vec<_> = found.into_iter().flat_map(|seen| seen.files).collect();
    assert_eq!(all, seen(&file).files);
    assert_eq!(all[3], ("inner.tar.gz:x".to_owned(), b"abc".to_vec()));
}

#[test]
fn other_files_are_not_packages() {
    let elf = b"\x7fELF".repeat(300);
    let gz = compressed(Codec::Gzip, b"text");
    for bytes in [&b""[..], b"PK", &elf, &gz, b"!<arch>\nfoo.o/          "] {
        let error =
            walk(Cursor::new(bytes), &Options::default(), &mut Seen::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAPackage, "{error}");
        assert_eq!(sniff(bytes), None);
    }
}

#[test]
fn contents_that_are_not_compressed_have_a_place() {
    let tar = packages::tar(&FILES);
    let mut members = made();
    members.iter_mut().for_each(|member| member.method = 0);
    let zip = packages::zip(&members, &Around::default());
    let deflated = packages::zip(&made(), &Around::default());
    // `seen` compares the places with the contents.
    for (file, places) in [
        (tar.clone(), 3),
        (zip.clone(), 3),
        (deflated, 0),
        (compressed(Codec::Gzip, &tar), 0),
        (packages::deb(&FILES, "", <[u8]>::to_vec), 0),
        (
            packages::tar(&[
                ("in.tar", &tar),
                ("in.tgz", &compressed(Codec::Gzip, &tar)),
                ("in.zip", &zip),
            ]),
            3,
        ),
    ] {
        assert_eq!(seen(&file).places.len(), places);
    }
}

#[test]
fn contents_that_are_not_read_are_passed_over() {
    struct Names(Vec<String>);
    impl Visitor for Names {
        fn member(&mut self, member: &Member, _: &mut dyn Read) -> Result<(), Error> {
            self.0.push(member.path().to_string());
            Ok(())
        }
    }
    struct Counted(Cursor<Vec<u8>>, usize);
    impl Read for Counted {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buf)?;
            self.1 += read;
            Ok(read)
        }
    }
    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let large = vec![7; 1 << 20];
    let file = packages::tar(&[("a", &large), ("b", b"x"), ("c", &large)]);
    let mut counted = Counted(Cursor::new(file.clone()), 0);
    let mut names = Names(Vec::new());
    walk(&mut counted, &Options::default(), &mut names).unwrap();
    assert_eq!(names.0, ["a", "b", "c"]);
    assert!(counted.1 < 10_000, "{}", counted.1);
    // The file must have what is passed over.
    let short = file[..file.len() - 4096].to_vec();
    let error = walk(Cursor::new(short), &Options::default(), &mut names).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
}

/// Enters compressed files of text.
struct OfText(Seen);

impl Visitor for OfText {
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        self.0.package(path, kind)
    }

    fn compressed(&mut self, _: &MemberPath, head: &[u8]) -> bool {
        assert!(head.len() <= 512);
        head.starts_with(b"text")
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        self.0.member(member, contents)
    }

    fn finding(&mut self, finding: Finding) {
        self.0.finding(finding);
    }
}

#[test]
fn compressed_files_are_entered_if_that_is_wanted() {
    let text = b"text ".repeat(1000);
    let (wanted, other) = (compressed(Codec::Gzip, &text), compressed(Codec::Gzip, b"other"));
    let tar = packages::tar(&[
        ("a.gz", &wanted[..]),
        ("b.gz", &other),
        ("c.gz", &wanted[..wanted.len() - 9]),
    ]);
    let walked = |bytes: &[u8]| {
        let mut of_text = OfText(Seen::default());
        walk(Cursor::new(bytes), &Options::default(), &mut of_text).map(|kind| (kind, of_text.0))
    };
    let (kind, seen) = walked(&tar).unwrap();
    assert_eq!(kind, PackageKind::Tar);
    assert_eq!(seen.files[0], ("a.gz:contents".to_owned(), text.clone()));
    assert_eq!(seen.files[1], ("b.gz".to_owned(), other.clone()));
    assert_eq!(seen.packages[1], ("a.gz".to_owned(), PackageKind::Compressed));
    // The end of a damaged one is missed.
    assert_eq!(seen.kinds(), [FindingKind::Damaged]);
    let (kind, seen) = walked(&wanted).unwrap();
    assert_eq!((kind, seen.files), (PackageKind::Compressed, vec![("contents".to_owned(), text)]));
    assert_eq!(walked(&other).err().unwrap().kind(), ErrorKind::NotAPackage);
}

#[test]
fn zip_files_behind_programs_are_found() {
    let members = made();
    for is_moved in [false, true] {
        let around = Around { prefix: b"\x7fELF program".to_vec(), is_moved, ..Around::default() };
        let file = packages::zip(&members, &around);
        let zip = Zip::behind(Cursor::new(&file)).unwrap().unwrap();
        assert_eq!((zip.members().len(), zip.start()), (3, 12));
        // It ends where the file ends.
        let longer = [&file[..], b"\n"].concat();
        assert!(Zip::behind(Cursor::new(&longer)).unwrap().is_none());
    }
    let plain = packages::zip(&members, &Around::default());
    assert!(Zip::behind(Cursor::new(&plain)).unwrap().is_none());
    for file in [&b"\x7fELF PK\x05\x06 and more than twenty-two bytes"[..], b"", b"#!"] {
        assert!(Zip::behind(Cursor::new(file)).unwrap().is_none());
    }
    // A magic whose next bytes fit by chance.
    let chance = [&b"\x7fELF PK\x05\x06"[..], &[7; 16], b"\0\0"].concat();
    assert!(Zip::behind(Cursor::new(&chance)).unwrap().is_none());
    // Scripts may have bytes at the end.
    let script = Around { prefix: b"#!/bin/sh\n".to_vec(), ..Around::default() };
    let longer = [&packages::zip(&members, &script)[..], b"signature"].concat();
    assert_eq!(Zip::behind(Cursor::new(&longer)).unwrap().unwrap().start(), 10);
    let bytes = [b"#!/bin/sh\nPK\x05\x06".to_vec(), vec![7; 30]].concat();
    assert!(Zip::behind(Cursor::new(&bytes)).unwrap().is_none());
}

#[test]
fn damaged_zip_files_behind_programs_are_errors() {
    for prefix in [&b"\x7fELF program"[..], b"#!/bin/sh\n"] {
        let around = Around { prefix: prefix.to_vec(), is_moved: true, ..Around::default() };
        let file = packages::zip(&made(), &around);
        let end = file.len() - 22;
        let with = |at: usize, bytes: &[u8]| {
            let mut file = file.clone();
            file[end + at..end + at + bytes.len()].copy_from_slice(bytes);
            Zip::behind(Cursor::new(&file)).unwrap_err().to_string()
        };
        let offset = u32::from_le_bytes(file[end + 16..end + 20].try_into().unwrap());
        let text = with(16, &u32::MAX.to_le_bytes());
        assert!(text.contains("at 0xffffffff does not fit before its end"), "{text}");
        for wrong in [offset - 1, offset + 1] {
            let (text, len) = (with(16, &wrong.to_le_bytes()), prefix.len());
            let found = u64::from(offset) + len as u64 - u64::from(wrong);
            let expected = format!("the first member lies at {found:#x}: expected a local header");
            assert!(
                text.contains(&expected) && text.ends_with(&format!("(at {end:#x})")),
                "{text}"
            );
        }
        assert!(with(8, b"\x09\0\x09\0").contains("promises 9 members, the directory has 3"));
    }
}

#[test]
fn zip_files_behind_programs_are_walked_and_verified() {
    let around = |prefix: &[u8]| Around { prefix: prefix.to_vec(), ..Around::default() };
    let (program, script) = (around(b"\x7fELF program"), around(b"#!/bin/sh\n"));
    let inner = [
        Made::new("program", packages::zip(&made(), &program)),
        Made::new("script", packages::zip(&made(), &script)),
    ];
    let mut expected = vec![("program".to_owned(), program.prefix.clone())];
    expected.extend(owned("program:", &FILES));
    expected.extend(owned("script:", &FILES));
    for method in [0, 8] {
        let inner = inner.clone().map(|made| Made { method, ..made });
        let outer = seen(&packages::zip(&inner, &script));
        assert_eq!(outer.files, expected);
        assert!(outer.findings.is_empty(), "{:?}", outer.findings);
    }
    let stored: Vec<Made> = made().into_iter().map(|made| Made { method: 0, ..made }).collect();
    let mut damaged = packages::zip(&stored, &script);
    let at = damaged.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    damaged[at] ^= 1;
    let verified = verify(Cursor::new(&damaged), &Options::default()).unwrap();
    let [finding] = &verified.findings[..] else { panic!("{:?}", verified.findings) };
    assert_eq!((verified.kind, finding.error.offset()), (PackageKind::Zip, Some(10)));
    assert!(finding.to_string().contains("expected CRC-32"), "{finding}");
}

#[test]
fn damage_of_gzip_streams_has_a_place() {
    let read = |stream: &[u8]| {
        let mut bytes = Vec::new();
        let read = Codec::Gzip.decoder(stream).unwrap().read_to_end(&mut bytes);
        (bytes, read.err().map(|error| error.to_string()))
    };
    let (one, two) = (packages::gzip(b"contents"), packages::gzip(b"more"));
    let both = [&one[..], &two].concat();
    assert_eq!(read(&both), (b"contentsmore".to_vec(), None));
    // A name, a comment, an extra field and a checksum of the header.
    let head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\x03\x02\0abname\0comment\0\x01\x02";
    assert_eq!(read(&[head, &one[10..]].concat()), (b"contents".to_vec(), None));
    let (end, start) = (both.len(), one.len());
    let wrong = |at: usize| {
        let mut bytes = both.clone();
        bytes[at] ^= 1;
        read(&bytes)
    };
    for (at, place, text) in [
        (end - 8, end - 8, "expected CRC-32 "),
        (end - 4, end - 4, "expected 5 bytes of contents, found 4"),
        (start - 4, start - 4, "expected 9 bytes of contents, found 8"),
        (start, start, "expected a header, 1f 8b 08 and flags below 20, found [1e, 8b, 08, 00]"),
    ] {
        let (bytes, error) = wrong(at);
        let expected = format!("malformed gzip data: byte {place:#x}: {text}");
        assert!(error.as_ref().is_some_and(|error| error.starts_with(&expected)), "{error:?}");
        assert_eq!(bytes.len(), if at < end - 8 { 8 } else { 12 });
    }
    for len in (0..end).filter(|&len| len != start) {
        assert!(read(&both[..len]).1.unwrap().contains(", found the end"), "{len}");
    }
}
