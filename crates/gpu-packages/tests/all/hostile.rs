//! Packages that are wrong on purpose.

use std::io::{Cursor, Read};

use crate::rules::cases;
use crate::{Seen, seen, seen_with};
use gpu_packages::{
    Codec, Compression, ErrorKind, FindingKind, MemberPath, Options, RewriteOptions, Zip,
    ZipWalker, rewrite_deb, rewrite_tar, unsafe_name, verify, walk,
};
use samples::ar;
use samples::packages::{self, Around, Made};

fn plain(members: &[Made]) -> Vec<u8> {
    packages::zip(members, &Around::default())
}

fn two() -> Vec<Made> {
    let mut members = vec![Made::new("a", "first contents"), Made::new("b", "second contents")];
    for made in &mut members {
        made.method = 0;
    }
    members
}

/// Returns the places of a signature.
fn places(file: &[u8], signature: &[u8; 4]) -> Vec<usize> {
    (0..file.len() - 3).filter(|&at| file[at..].starts_with(signature)).collect()
}

#[test]
fn unsafe_names_are_reported() {
    let names = ["/etc/passwd", "../x", "a/../../x", "C:/x", "a\\..\\b", "a\nb"];
    for name in names {
        assert!(unsafe_name(name.as_bytes()).is_some(), "{name}");
        let file = plain(&[Made::new(name, "x")]);
        assert_eq!(seen(&file).kinds(), [FindingKind::UnsafeName], "{name}");
        let file = packages::tar(&[(name, b"x")]);
        assert_eq!(seen(&file).kinds(), [FindingKind::UnsafeName], "{name}");
        let (_, text) = &seen(&file).findings[0];
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    for name in ["a", "a..b/c", "..a", "a/...", "ä/b"] {
        assert_eq!(unsafe_name(name.as_bytes()), None, "{name}");
    }
    let path = MemberPath::from_names([&b"a\xff\n"[..], b"b"]);
    assert_eq!(path.to_string(), "a\\xff\\n:b");
}

#[test]
fn duplicates_and_overlaps_are_reported() {
    let file = plain(&[Made::new("a", "1"), Made::new("a", "2")]);
    assert_eq!(seen(&file).kinds(), [FindingKind::Duplicate]);
    // Both records lead to one local header.
    let mut file = plain(&two());
    let records = places(&file, b"PK\x01\x02");
    let first = file[records[0]..records[1]].to_vec();
    file.splice(records[1]..records[1] + first.len(), first);
    let kinds = seen(&file).kinds();
    assert!(
        kinds.contains(&FindingKind::Overlap) && kinds.contains(&FindingKind::Gap),
        "{kinds:?}"
    );
    // A member whose data are the next members: the way of a bomb.
    let mut file = plain(&two());
    let local = places(&file, b"PK\x03\x04");
    let record = places(&file, b"PK\x01\x02")[0];
    let len = u32::try_from(local[1] - 31 + 46).unwrap();
    for at in [local[0] + 18, local[0] + 22, record + 20, record + 24] {
        file[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }
    let found = seen(&file);
    assert_eq!(found.kinds(), [FindingKind::Overlap, FindingKind::Damaged], "{:?}", found.findings);
}

#[test]
fn local_headers_that_differ_are_reported() {
    let good = plain(&two());
    let local = places(&good, b"PK\x03\x04")[1];
    // Signature, flags, method, CRC-32, sizes, name.
    for at in [0, 6, 8, 14, 18, 22, 26, 30] {
        let mut file = good.clone();
        file[local + at] ^= 1;
        let zip = Zip::read(Cursor::new(&file)).unwrap();
        let findings = zip.check(Cursor::new(&file)).unwrap();
        let kinds: Vec<_> = findings.iter().map(|finding| finding.kind).collect();
        assert!(kinds.contains(&FindingKind::HeaderMismatch), "{at}: {findings:?}");
        assert_eq!(findings[0].path.name(), b"b");
        assert_eq!(findings[0].error.offset(), Some(local as u64));
    }
    // The version and the time are nobody's concern.
    for at in [4, 10] {
        let mut file = good.clone();
        file[local + at] ^= 1;
        let zip = Zip::read(Cursor::new(&file)).unwrap();
        assert!(zip.check(Cursor::new(&file)).unwrap().is_empty());
    }
}

#[test]
fn contents_are_what_the_directory_says() {
    for method in [0, 8] {
        let mut made = Made::new("a", "contents".repeat(9));
        made.method = method;
        let good = plain(&[made]);
        let record = places(&good, b"PK\x01\x02")[0];
        for (at, kind) in [(16, ErrorKind::Mismatch), (24, ErrorKind::Mismatch)] {
            for change in [1, 0x80] {
                let mut file = good.clone();
                file[record + at] ^= change;
                let zip = Zip::read(Cursor::new(&file)).unwrap();
                let mut bytes = Vec::new();
                let error = zip.open(0, Cursor::new(&file)).unwrap().read_to_end(&mut bytes);
                let error = gpu_packages::Error::from(error.unwrap_err());
                assert_eq!(error.kind(), kind, "{method} {at}: {error}");
                assert!(bytes.len() <= 72 + 0x80);
                assert!(seen(&file).kinds().contains(&FindingKind::Damaged));
            }
        }
    }
    let mut file = plain(&[Made::new("a", "contents".repeat(9))]);
    file[31] = 0xff;
    let verified = verify(Cursor::new(&file), &Options::default()).unwrap();
    assert_eq!(verified.findings[0].error.kind(), ErrorKind::Codec, "{:?}", verified.findings);
    assert!(verified.findings[0].to_string().starts_with("a: malformed compressed data"));
}

#[test]
fn directories_that_lie_are_refused() {
    let good = plain(&two());
    let end = places(&good, b"PK\x05\x06")[0];
    let record = places(&good, b"PK\x01\x02")[0];
    let kind = |file: &[u8]| Zip::read(Cursor::new(file)).unwrap_err().kind();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        kind(&file)
    };
    assert_eq!(with(end + 4, &[1]), ErrorKind::Unsupported);
    assert_eq!(with(end + 8, &[1]), ErrorKind::Unsupported);
    assert_eq!(with(end + 8, &[3, 0, 3, 0]), ErrorKind::Malformed);
    assert_eq!(with(end + 12, &[0xff; 4]), ErrorKind::Malformed);
    assert_eq!(with(end + 12, &[1]), ErrorKind::Malformed);
    assert_eq!(with(end + 16, &[0xff; 4]), ErrorKind::Malformed);
    assert_eq!(with(record, b"XX"), ErrorKind::Malformed);
    assert_eq!(with(record + 20, &[0xff, 0, 0, 0x7f]), ErrorKind::Malformed);
    assert_eq!(with(record + 28, &[0xff, 0xff]), ErrorKind::Malformed);
    assert_eq!(with(record + 34, &[1]), ErrorKind::Malformed);
    assert_eq!(with(record + 42, &[0xff; 3]), ErrorKind::Malformed);
    // Markers of zip64 without their field.
    for at in [20, 24, 42] {
        assert_eq!(with(record + at, &[0xff; 4]), ErrorKind::Malformed);
    }
    assert_eq!(kind(&good[..good.len() - 1]), ErrorKind::NotAPackage);
}

#[test]
fn zip64_records_that_lie_are_refused() {
    let around = Around { is_zip64: true, ..Around::default() };
    let good = packages::zip(&two(), &around);
    let record = places(&good, b"PK\x06\x06")[0];
    let locator = places(&good, b"PK\x06\x07")[0];
    let end = places(&good, b"PK\x05\x06")[0];
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        Zip::read(Cursor::new(&file)).map(drop).map_err(|error| error.kind())
    };
    assert_eq!(with(record, b"PK"), Ok(()));
    for (at, bytes) in [
        (record, &b"XX"[..]),
        (record + 4, &[0xff; 8]),
        (record + 24, &[9, 0, 0, 0, 0, 0, 0, 0, 9]),
        (record + 40, &[0xff; 8]),
        (record + 48, &[0xff; 8]),
        (locator + 8, &[0xff; 8]),
        (end + 8, &[1, 0, 1, 0]),
        (end + 12, &[1, 0, 0, 0]),
    ] {
        match with(at, bytes) {
            Err(ErrorKind::Malformed) => {}
            // The record right before the locator is taken.
            Ok(()) => assert_eq!(at, locator + 8),
            other => panic!("{at}: {other:?}"),
        }
    }
    assert_eq!(with(locator + 4, &[1]), Err(ErrorKind::Unsupported));
}

#[test]
fn hidden_bytes_are_reported() {
    let good = plain(&two());
    let mut file = good.clone();
    file.extend(b"trailing");
    assert_eq!(seen(&file).kinds(), [FindingKind::Gap]);
    let second = places(&good, b"PK\x03\x04")[1];
    let mut members = two();
    members[1].zeros = 5;
    let mut file = plain(&members);
    assert!(seen(&file).findings.is_empty());
    file[second + 2] = 1;
    assert_eq!(seen(&file).kinds(), [FindingKind::Gap]);
}

#[test]
fn encrypted_members_are_reported() {
    let mut file = plain(&two());
    for (signature, at) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let place = places(&file, signature)[0];
        file[place + at] |= 1;
    }
    let found = seen(&file);
    assert_eq!((found.kinds(), found.names()), (vec![FindingKind::Encrypted], vec!["b"]));
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 1 << 20];
    let options = Options::default().with_max_decompressed(1 << 16);
    let packages = [
        plain(&[Made::new("a", &zeros[..])]),
        packages::gzip(&packages::tar(&[("a", &zeros)])),
        plain(&[Made::new("a.zip", plain(&[Made::new("b", &zeros[..])]))]),
        packages::deb(&[("a", &zeros)], ".gz", packages::gzip),
        packages::rpm(&packages::gzip(&packages::cpio(&[("a", &zeros)]))),
    ];
    for file in packages {
        let error = seen_with(&file, &options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains("exceed the limit of 65536 bytes"), "{error}");
        let tar = RewriteOptions::default().with_max_decompressed(1 << 16);
        let rewritten = rewrite_tar(&file[..], Vec::new(), &tar, |_, _| Ok(None));
        assert!(rewritten.is_err());
        let error = verify(Cursor::new(&file), &options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}

#[test]
fn many_inner_bombs_end_at_the_limit_together() {
    let inner = packages::gzip(&packages::tar(&[("a", &vec![0; 20 << 10])]));
    let names: Vec<_> = (0..9).map(|n| format!("{n}.tgz")).collect();
    let files: Vec<_> = names.iter().map(|name| (&name[..], &inner[..])).collect();
    let options = |limit| Options::default().with_max_decompressed(limit);
    assert!(verify(Cursor::new(packages::tar(&files)), &options(1 << 20)).is_ok());
    let error = verify(Cursor::new(packages::tar(&files)), &options(100 << 10)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn nesting_ends_at_the_limit() {
    let mut file = packages::tar(&[("leaf", b"x")]);
    for _ in 0..20 {
        file = packages::gzip(&packages::tar(&[("inner", &file)]));
    }
    let found = seen(&file);
    assert_eq!(found.packages.len(), 8);
    assert_eq!(found.kinds(), [FindingKind::Unread]);
    assert_eq!(found.names(), [["inner"; 8].join(":")]);
    let options = Options::default().with_max_held(10);
    let zip = packages::tar(&[("x.zip", &plain(&two()))]);
    let found = seen_with(&zip, &options).unwrap();
    assert_eq!((found.kinds(), found.names()), (vec![FindingKind::Unread], vec!["x.zip"]));
    assert_eq!(found.files[0].1, plain(&two()));
}

#[test]
fn damaged_inner_packages_end_alone() {
    let tar = packages::tar(&[("x", b"abc"), ("y", b"def")]);
    let mut damaged = tar.clone();
    damaged[1024 + 148] = b'9';
    let outer = packages::tar(&[("a.tar", &damaged), ("b.tar", &tar[..1100]), ("c", b"after")]);
    let found = seen(&outer);
    assert_eq!(found.names(), ["a.tar:x", "b.tar:x", "c"], "{:?}", found.findings);
    assert_eq!(found.kinds(), [FindingKind::Damaged, FindingKind::Damaged]);
    // The outermost one is an error.
    for file in
        [&damaged[..], &tar[..1100], &packages::deb(&[("a", b"")], "", <[u8]>::to_vec)[..900]]
    {
        assert!(walk(Cursor::new(file), &Options::default(), &mut Seen::default()).is_err());
    }
}

#[test]
fn lying_sizes_take_no_memory() {
    // Each promises more than the file has.
    let mut tar = packages::tar(&[("a", b"x")]);
    tar[124..136].copy_from_slice(b"77777777777\0");
    packages::sum(&mut tar[..512]);
    let mut long = packages::tar_header(b"L", 1 << 32, b'L', b"");
    long.extend([0; 1024]);
    let ar = b"!<arch>\ndebian-binary   0           0     0     100644  9999999999`\n".to_vec();
    let mut rpm = packages::rpm(b"");
    let header = rpm.len() - 8;
    rpm[header..].copy_from_slice(&[0xff; 8]);
    let mut cpio = packages::cpio(&[("a", b"x")]);
    cpio[54..62].copy_from_slice(b"ffffffff");
    for file in [tar, long, ar, rpm, packages::rpm(&packages::gzip(&cpio))] {
        let error = seen_with(&file, &Options::default()).err();
        let kind = error.as_ref().map(gpu_packages::Error::kind);
        assert!(matches!(kind, Some(ErrorKind::Truncated | ErrorKind::Limit)), "{error:?}");
    }
}

#[test]
fn sizes_that_no_file_has_are_refused() {
    for size in [u64::MAX, u64::MAX - 511] {
        let mut tar = packages::tar(&[("a", b"x")]);
        tar[124..128].copy_from_slice(b"\x80\0\0\0");
        tar[128..136].copy_from_slice(&size.to_be_bytes());
        packages::sum(&mut tar[..512]);
        let error = seen_with(&tar, &Options::default()).err().unwrap();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(0)), "{error}");
    }
}

#[test]
fn unicode_paths_that_are_cut_short_are_reported() {
    let mut made = Made::new("a", "x");
    made.extra = b"\x75\x70\x04\0\x01\0\0\0".to_vec();
    let found = seen(&plain(&[made]));
    assert_eq!(found.kinds(), [FindingKind::Ambiguous]);
    assert!(found.findings[0].1.contains("its Unicode path is cut short"), "{:?}", found.findings);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn every_part_and_every_changed_byte_is_read() {
    let wheel = plain(&packages::wheel(&[("foo/a.so", b"\x7fELF"), ("b", b"")]));
    let around = Around { is_zip64: true, comment: b"x".to_vec(), ..Around::default() };
    let mut members = two();
    members[0].descriptor = 24;
    members[1].is_zip64 = true;
    let mut samples = vec![wheel, packages::zip(&members, &around)];
    samples.push(packages::tar(&[("./a", b"x"), (&"n".repeat(120), b"y")]));
    samples.push(packages::deb(&[("a", b"1")], ".gz", packages::gzip));
    samples.push(packages::rpm(&packages::gzip(&packages::cpio(&[("a", b"x")]))));
    for codec in [Codec::Xz, Codec::Zstd, Codec::Bzip2, Codec::Gzip] {
        let mut encoder =
            Compression::new(codec).with_level(1).unwrap().encoder(Vec::new()).unwrap();
        std::io::Write::write_all(&mut encoder, &packages::tar(&[("a", b"x")])).unwrap();
        samples.push(encoder.finish().unwrap());
    }
    let samples = samples.into_iter().map(|sample| (sample, 300));
    let odd = cases().into_iter().map(|case| (case.bytes, 40));
    for (sample, places) in samples.chain(odd) {
        let len = sample.len() as u64;
        for at in samples::faulty::places(len, places) {
            let at = usize::try_from(at).unwrap();
            let _ = seen_with(&sample[..at], &Options::default());
            for change in [1, 0x80, 0xff] {
                let mut file = sample.clone();
                file[at] ^= change;
                let _ = seen_with(&file, &Options::default());
                let _ = verify(Cursor::new(&file), &Options::default());
            }
        }
    }
}

/// Takes seconds: asked for each part, something about the whole takes many minutes.
#[test]
fn many_parts_take_linear_time() {
    let count = 50_000;
    let names: Vec<String> = (0..count).map(|n| format!("d/{n:06}")).collect();
    let distinct: Vec<Made> = names.iter().map(|name| Made::new(name, "")).collect();
    let same = vec![Made::new("d/same", ""); count];
    for members in [&distinct, &same] {
        let file = plain(members);
        let zip = Zip::read(Cursor::new(&file)).unwrap();
        let walker = ZipWalker::new(&Options::default(), &zip);
        let mut seen = Seen::default();
        for index in 0..count {
            walker.member(index, Cursor::new(&file), &mut seen).unwrap();
        }
        assert_eq!(seen.files.len(), count);
        let verified = verify(Cursor::new(&file), &Options::default()).unwrap();
        assert_eq!(verified.members, count as u64);
        // One finding for a name, whatever the number of members.
        assert!(verified.findings.len() <= 1, "{}", verified.findings.len());
    }
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
    let mut deb = packages::deb(&files, "", <[u8]>::to_vec);
    assert_eq!(verify(Cursor::new(&deb), &Options::default()).unwrap().recorded, count as u64);
    for n in 0..count {
        deb.extend(ar::raw(&[(&format!("m{n}"), b"")]).split_off(8));
    }
    let options = RewriteOptions::default();
    rewrite_deb(Cursor::new(&deb), std::io::sink(), &options, |_, _| Ok(None)).unwrap();
}
