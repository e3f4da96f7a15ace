//! Packages that programs could read differently: each is read as pip, dpkg and GNU tar read it, or has a finding.
//!
//! `.ci/run packages` asks these programs about the same table.

use std::io::Cursor;

use crate::seen;
use gpu_packages::{
    FindingKind, Options, Original, PackageKind, Replacement, RewriteOptions, WheelEdit, Zip,
    rewrite_deb, rewrite_tar, verify,
};
use samples::ar;
use samples::packages::{self, Around, Made};

/// The program that decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Peer {
    Pip,
    Dpkg,
    Tar,
    /// `zipfile` of Python.
    Python,
}

/// A package, and what is right.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) peer: Peer,
    /// The files that the peer extracts; `None` if it fails.
    pub(crate) extracts: Option<Vec<(&'static str, Vec<u8>)>>,
    pub(crate) findings: Vec<FindingKind>,
    /// A finding of `verify` only.
    pub(crate) verified: Option<FindingKind>,
    /// Files that are looked into although the peer does not extract them, and the reverse.
    pub(crate) more: Vec<(&'static str, Vec<u8>)>,
    pub(crate) fewer: Vec<&'static str>,
}

impl Case {
    fn new(name: &'static str, peer: Peer, bytes: Vec<u8>) -> Self {
        let (findings, more, fewer) = (Vec::new(), Vec::new(), Vec::new());
        Case { name, bytes, peer, extracts: None, findings, verified: None, more, fewer }
    }

    fn extracts(mut self, name: &'static str, contents: &[u8]) -> Self {
        self.extracts.get_or_insert_default().push((name, contents.to_vec()));
        self
    }

    fn more(mut self, name: &'static str, contents: &[u8]) -> Self {
        self.more.push((name, contents.to_vec()));
        self
    }

    fn fewer(mut self, name: &'static str) -> Self {
        self.fewer.push(name);
        self
    }

    fn verified(mut self, kind: FindingKind) -> Self {
        self.verified = Some(kind);
        self
    }

    fn finding(mut self, kind: FindingKind) -> Self {
        self.findings.push(kind);
        self
    }
}

/// All cases. Files of wheels and of `control.tar` are not named.
pub(crate) fn cases() -> Vec<Case> {
    [zips(), wheels(), tars(), sparse_tars(), debs()].into_iter().flatten().collect()
}

use FindingKind::{Ambiguous, Damaged, Duplicate, Encrypted, Gap, Record, Unread, UnsafeName};

/// Contents that are not a path.
fn code() -> Vec<u8> {
    b"\x7fELF and more".repeat(500)
}

fn zip(members: &[Made]) -> Vec<u8> {
    packages::zip(members, &Around::default())
}

fn zips() -> Vec<Case> {
    let case = |name, bytes| Case::new(name, Peer::Python, bytes);
    let with_mode = |contents: &[u8]| {
        let mut made = Made::new("a.so", contents);
        made.mode = 0o120_777;
        zip(&[made])
    };
    let mut encrypted = zip(&[Made::new("a.so", code())]);
    let central = find(&encrypted, b"PK\x01\x02");
    encrypted[6] |= 1;
    encrypted[central + 8] |= 1;
    let mut unicode = Made::new("a.so", "x");
    unicode.extra = unicode_path(b"a.so", b"evil");
    let mut same = Made::new("a.so", "x");
    same.extra = unicode_path(b"a.so", b"a.so");
    let mut twice = Made::new("a.so", "x");
    twice.extra = b"\x01\0\x08\0eightbyt".repeat(2);
    let mut trailing = Made::new("a.so", [&packages::deflate(b"text")[..], b"hidden"].concat());
    trailing.method = 0;
    let directory = Made::new("a/", "x");
    vec![
        case("symlink mode", with_mode(&code())).extracts("a.so", &code()).finding(Ambiguous),
        case("symlink", with_mode(b"b.so")).extracts("a.so", b"b.so").fewer("a.so"),
        case("encrypted", encrypted).finding(Encrypted),
        // Versions of Python from 3.13 extract it as `evil`.
        case("Unicode path", zip(&[unicode])).extracts("a.so", b"x").finding(Ambiguous),
        case("Unicode path that is the name", zip(&[same])).extracts("a.so", b"x"),
        case("two zip64 fields", zip(&[twice])).extracts("a.so", b"x").finding(Ambiguous),
        case("two zip64 ends", two_zip64_ends()).more("a.so", b"x").finding(Gap),
        case("bytes after the deflate stream", deflated(zip(&[trailing]), b"text"))
            .extracts("a.so", b"text")
            .finding(Damaged)
            .fewer("a.so"),
        case("directory with contents", zip(&[directory])).finding(Ambiguous),
        case("two members of one name", zip(&[Made::new("a", "1"), Made::new("a", "2")]))
            .extracts("a", b"2")
            .more("a", b"1")
            .finding(Duplicate),
    ]
}

fn unicode_path(name: &[u8], path: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(name);
    let size = u16::try_from(path.len() + 5).unwrap();
    let data = [&[1][..], &crc.sum().to_le_bytes(), path].concat();
    [&0x7075u16.to_le_bytes()[..], &size.to_le_bytes(), &data].concat()
}

/// Makes a stored member, the only one, a deflated one with these contents.
fn deflated(mut file: Vec<u8>, contents: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(contents);
    let central = find(&file, b"PK\x01\x02");
    for (method, sums) in [(8, 14), (central + 10, central + 16)] {
        file[method] = 8;
        file[sums..sums + 4].copy_from_slice(&crc.sum().to_le_bytes());
        file[sums + 8..sums + 12].copy_from_slice(&(contents.len() as u32).to_le_bytes());
    }
    file
}

/// The second record lies in the data of the first, to which the locator points.
fn two_zip64_ends() -> Vec<u8> {
    let around = Around { is_zip64: true, ..Around::default() };
    let mut file = packages::zip(&[Made::new("a.so", "x")], &around);
    let record = find(&file, b"PK\x06\x06");
    let mut second = file[record..record + 56].to_vec();
    // It places the directory where the first one says, as seen from itself.
    second[40..48].copy_from_slice(&file[record + 40..record + 48]);
    file[record + 4..record + 12].copy_from_slice(&100u64.to_le_bytes());
    file.splice(record + 56..record + 56, second);
    file
}

pub(crate) fn find(file: &[u8], bytes: &[u8]) -> usize {
    file.windows(bytes.len()).position(|window| window == bytes).unwrap()
}

fn wheels() -> Vec<Case> {
    let case = |name, members: &[Made]| Case::new(name, Peer::Pip, zip(members));
    let whole = || packages::wheel(&[("foo/a.so", &code())]);
    let mut link = whole();
    link[0].mode = 0o120_777;
    let mut path = packages::wheel(&[("foo/a.so", b"b.so")]);
    path[0].mode = 0o120_777;
    let without = whole().into_iter().filter(|made| !made.name.ends_with(b"/RECORD"));
    let with = |name: &str| whole().into_iter().chain([Made::new(name, "")]).collect::<Vec<_>>();
    let installed = |name: &str| Made::new(&format!("{name}.dist-info/INSTALLER"), "pip\n");
    let environment =
        [&with("bar-1.0.dist-info/RECORD")[..], &[installed("foo-1.0"), installed("bar-1.0")]];
    vec![
        case("wheel", &whole()).extracts("foo/a.so", &code()),
        case("wheel with a symlink mode", &link).extracts("foo/a.so", &code()).finding(Ambiguous),
        case("wheel with a symlink", &path).extracts("foo/a.so", b"b.so").finding(Ambiguous),
        case("wheel without RECORD", &without.collect::<Vec<_>>())
            .more("foo/a.so", &code())
            .finding(Record),
        case("wheel with two RECORD", &with("bar-1.0.dist-info/RECORD"))
            .more("foo/a.so", &code())
            .finding(Ambiguous),
        case("wheel with another dist-info", &with("bar.dist-info/x"))
            .more("foo/a.so", &code())
            .finding(Ambiguous),
        case("wheel with a file dist-info", &with("x.dist-info"))
            .more("foo/a.so", &code())
            .finding(Ambiguous),
        case("unlisted RECORD below", &with("foo/x.dist-info/RECORD"))
            .extracts("foo/a.so", &code())
            .extracts("foo/x.dist-info/RECORD", b"")
            .verified(Record),
        case("environment", &environment.concat()).more("foo/a.so", &code()),
    ]
}

/// Returns headers and contents of a member of a tar file.
fn member(name: &str, kind: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = packages::tar_header(name.as_bytes(), contents.len() as u64, kind, b"");
    out.extend(packages::padded(contents));
    out
}

fn tar_of(parts: &[Vec<u8>]) -> Vec<u8> {
    [&parts.concat()[..], &[0; 1024]].concat()
}

/// Returns a pax header of records.
fn pax(kind: u8, records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let digits = (1..).find(|digits| (rest.len() + digits).to_string().len() == *digits);
        text += &format!("{}{rest}", rest.len() + digits.unwrap());
    }
    member("pax", kind, text.as_bytes())
}

fn tars() -> Vec<Case> {
    let case = |name, parts: &[Vec<u8>]| Case::new(name, Peer::Tar, tar_of(parts));
    let file = |name: &str, contents: &str| member(name, b'0', contents.as_bytes());
    let link = |name: &[u8], to: &[u8]| packages::tar_header(name, 0, b'1', to);
    vec![
        case("unknown type", &[member("a", b'Z', b"x"), file("b", "y")])
            .extracts("a", b"x")
            .extracts("b", b"y"),
        case("contiguous file", &[member("a", b'7', b"x")]).extracts("a", b"x"),
        case("old names", &[member("a", b'N', b"x")]).extracts("a", b"x"),
        case("directory with a list", &[member("d", b'D', b"Yx\0\0"), file("b", "y")])
            .extracts("b", b"y"),
        case("label", &[member("label", b'V', b""), file("b", "y")]).extracts("b", b"y"),
        // Some programs extract the rest of the file.
        case("file of another volume", &[member("a", b'M', b"x")]).more("a", b"x").finding(Unread),
        case("global comment", &[pax(b'g', &[("comment", "x")]), file("a", "x")])
            .extracts("a", b"x"),
        case("global path", &[pax(b'g', &[("path", "evil")]), file("a", "x")])
            .extracts("evil", b"x")
            .finding(Ambiguous),
        case(
            "global path and a path",
            &[pax(b'g', &[("path", "evil")]), pax(b'x', &[("path", "good")]), file("a", "x")],
        )
        .extracts("good", b"x")
        .finding(Ambiguous),
        case("global path of two", &[pax(b'g', &[("path", "e")]), file("a", "x"), file("b", "y")])
            .extracts("e", b"y")
            .more("e", b"x")
            .finding(Ambiguous)
            .finding(Duplicate),
        case("global size", &[pax(b'g', &[("size", "1025")]), file("a", "x"), file("hidden", "y")])
            .extracts("a", &[packages::padded(b"x"), file("hidden", "y")].concat()[..1025])
            .finding(Ambiguous),
        case(
            "global linkpath",
            &[file("a", "x"), pax(b'g', &[("linkpath", "a")]), link(b"b", b"missing")],
        )
        .extracts("a", b"x")
        .extracts("b", b"x")
        .fewer("b")
        .finding(Ambiguous),
        case(
            "path and a long name",
            &[pax(b'x', &[("path", "pax")]), member("L", b'L', b"long\0"), file("a", "x")],
        )
        .extracts("pax", b"x"),
        case(
            "long name and a path",
            &[member("L", b'L', b"long\0"), pax(b'x', &[("path", "pax")]), file("a", "x")],
        )
        .extracts("pax", b"x"),
        case("two members of one name", &[file("a", "1"), file("./a", "2")])
            .extracts("a", b"2")
            .more("a", b"1")
            .finding(Duplicate),
        case(
            "three members of one name",
            &[file("d//a", "1"), file("d/./a", "2"), file("d/a", "3")],
        )
        .extracts("d/a", b"3")
        .more("d/./a", b"2")
        .more("d//a", b"1")
        .finding(Duplicate),
        case(
            "repeated directory",
            &[member("d/", b'5', b""), file("d/a", "x"), member("./d", b'5', b"")],
        )
        .extracts("d/a", b"x"),
        case("global path that leaves", &[pax(b'g', &[("path", "../evil")]), file("a", "x")])
            .more("../evil", b"x")
            .finding(UnsafeName)
            .finding(Ambiguous),
    ]
}

/// A file with holes: stored parts, and the whole. A part of no bytes gives GNU tar the end of the file.
fn holes() -> (Vec<u8>, Vec<u8>) {
    let mut whole = vec![0; 3000];
    whole[512..1024].fill(b'a');
    whole[2048..2051].fill(b'b');
    ([vec![b'a'; 512], vec![b'b'; 3]].concat(), whole)
}

/// Returns the header of a sparse file of GNU's format, whose real size is 3000.
fn old_sparse(stored: u64, parts: &[(u64, u64)], has_more: bool) -> Vec<u8> {
    let mut header = packages::tar_header(b"a", stored, b'S', b"");
    header[257..265].copy_from_slice(b"ustar  \0");
    for (at, (offset, len)) in parts.iter().enumerate() {
        put_part(&mut header[386 + at * 24..], *offset, *len);
    }
    header[482] = u8::from(has_more);
    header[483..495].copy_from_slice(format!("{:011o}\0", 3000).as_bytes());
    packages::sum(&mut header);
    header
}

fn put_part(to: &mut [u8], offset: u64, len: u64) {
    to[..12].copy_from_slice(format!("{offset:011o}\0").as_bytes());
    to[12..24].copy_from_slice(format!("{len:011o}\0").as_bytes());
}

fn sparse_tars() -> Vec<Case> {
    let case = |name, parts: &[Vec<u8>]| Case::new(name, Peer::Tar, tar_of(parts));
    let (stored, whole) = holes();
    let len = stored.len() as u64;
    let parts = [(512, 512), (2048, 3), (3000, 0)];
    let data = packages::padded(&stored);
    let after = || member("b", b'0', b"y");
    let mut many = [(0, 0); 4];
    many[3] = (512, 512);
    let mut block = vec![0; 512];
    put_part(&mut block, 2048, 3);
    put_part(&mut block[24..], 3000, 0);
    let lines = |text: &str| [packages::padded(text.as_bytes()), stored.clone()].concat();
    let version_1 = |text: &str| {
        let keys = [
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.minor", "0"),
            ("GNU.sparse.name", "a"),
            ("GNU.sparse.realsize", "3000"),
        ];
        vec![pax(b'x', &keys), member("GNUSparseFile.0/a", b'0', &lines(text)), after()]
    };
    let version_0 = |map: &[(&str, &str)], name: &str| {
        let keys = [&[("GNU.sparse.size", "3000"), ("GNU.sparse.numblocks", "3")], map].concat();
        vec![pax(b'x', &keys), member(name, b'0', &stored), after()]
    };
    let numbers = [
        ("GNU.sparse.offset", "512"),
        ("GNU.sparse.numbytes", "512"),
        ("GNU.sparse.offset", "2048"),
        ("GNU.sparse.numbytes", "3"),
        ("GNU.sparse.offset", "3000"),
        ("GNU.sparse.numbytes", "0"),
    ];
    let map = [("GNU.sparse.name", "a"), ("GNU.sparse.map", "512,512,2048,3,3000,0")];
    let is = |case: Case| case.extracts("a", &whole).extracts("b", b"y");
    vec![
        is(case("sparse", &[old_sparse(len, &parts, false), data.clone(), after()])),
        is(case(
            "sparse, map in two blocks",
            &[old_sparse(len, &many, true), block, data.clone(), after()],
        )),
        is(case("sparse, pax 0.0", &version_0(&numbers, "a"))),
        is(case("sparse, pax 0.1", &version_0(&map, "GNUSparseFile.0/a"))),
        is(case("sparse, pax 1.0", &version_1("3\n512\n512\n2048\n3\n3000\n0\n"))),
        case(
            "sparse, parts past the end",
            &[old_sparse(len, &[(512, 512), (2998, 3)], false), data.clone(), after()],
        )
        .extracts("a", b"")
        .fewer("a")
        .extracts("b", b"y")
        .finding(Unread),
        case(
            "sparse, bytes that no part has",
            &[old_sparse(len, &[(512, 512), (3000, 0)], false), data.clone(), after()],
        )
        .extracts("a", &[vec![0; 512], vec![b'a'; 512], vec![0; 1976]].concat())
        .fewer("a")
        .extracts("b", b"y")
        .finding(Unread),
        case("sparse, pax 1.0, no numbers", &version_1("x\n512\n512\n2048\n3\n"))
            .extracts("a", b"")
            .fewer("a")
            .extracts("b", b"y")
            .finding(Unread),
        case("sparse, pax 1.0, more parts than there are", &version_1("9\n512\n512\n2048\n3\n"))
            .extracts("a", b"")
            .fewer("a")
            .extracts("b", b"y")
            .finding(Unread),
    ]
}

fn debs() -> Vec<Case> {
    let case = |name, parts: &[(&str, &[u8])]| Case::new(name, Peer::Dpkg, ar::raw(parts));
    let control = "Package: foo\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@example.org>\nDescription: none\n";
    let control = packages::gzip(&packages::tar(&[("./control", control.as_bytes())]));
    let data = packages::gzip(&packages::tar(&[("./a", b"x")]));
    let other = packages::gzip(&packages::tar(&[("./evil", b"e")]));
    let plain = packages::tar(&[("./a", b"x")]);
    let twice = packages::gzip(&packages::tar(&[("./a", b"1"), ("./a", b"2")]));
    let format = ("debian-binary", &b"2.0\n"[..]);
    let (c, d) = (("control.tar.gz", &control[..]), ("data.tar.gz", &data[..]));
    let is = |case: Case| case.extracts("a", b"x");
    vec![
        is(case("deb", &[format, c, d])),
        is(case("deb, format 2.1", &[("debian-binary", b"2.1\n"), c, d])),
        is(case("deb, plain data", &[format, c, ("data.tar", &plain)])),
        is(case("deb, signature", &[format, c, d, ("_gpgorigin", b"x")])),
        is(case("deb, member after", &[format, c, d, ("more", b"x")])),
        case("deb, format 3.0", &[("debian-binary", b"3.0\n"), c, d])
            .more("a", b"x")
            .finding(Ambiguous),
        case("deb, format 2.", &[("debian-binary", b"2.\n"), c, d])
            .more("a", b"x")
            .finding(Ambiguous),
        is(case(
            "deb, two data",
            &[format, c, d, ("data.tar", &packages::tar(&[("./evil", b"e")]))],
        ))
        .more("data.tar:evil", b"e")
        .finding(Ambiguous),
        is(case("deb, two data of one name", &[format, c, d, ("data.tar.gz", &other)]))
            .more("data.tar.gz:evil", b"e")
            .finding(Ambiguous),
        case("deb, data.tarfoo", &[format, c, ("data.tarfoo", &other), d])
            .more("a", b"x")
            .more("data.tarfoo:evil", b"e")
            .finding(Ambiguous),
        case("deb, two controls", &[format, c, ("control.tar", &packages::tar(&[])), d])
            .more("a", b"x")
            .finding(Ambiguous),
        case("deb, member before", &[format, c, ("more", b"x"), d])
            .more("a", b"x")
            .finding(Ambiguous),
        case("deb, data first", &[format, d, c])
            .more("a", b"x")
            .finding(Ambiguous)
            .finding(Ambiguous)
            .finding(Unread),
        case("deb, name of another compression", &[format, c, ("data.tar.xz", &data)])
            .more("a", b"x")
            .finding(Ambiguous),
        case("deb, lzma", &[format, c, ("data.tar.lzma", &data)])
            .more("data.tar.lzma:a", b"x")
            .finding(Ambiguous)
            .finding(Unread),
        case("deb, two files of one name", &[format, c, ("data.tar.gz", &twice)])
            .extracts("a", b"2")
            .more("a", b"1")
            .finding(Duplicate),
    ]
}

/// Returns the files that decide, sorted: not those of `control.tar`, and no metadata of wheels.
pub(crate) fn files(found: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let is_metadata = |name: &str| {
        let first = name.split('/').next().unwrap_or_default();
        first.ends_with(".dist-info")
            || name.starts_with("control.tar")
            || ["debian-binary", "_gpgorigin", "more"].contains(&name)
    };
    let mut files: Vec<_> = found.into_iter().filter(|(name, _)| !is_metadata(name)).collect();
    files.sort();
    files
}

#[test]
fn packages_are_read_as_their_programs_do_or_have_a_finding() {
    for case in cases() {
        let found = seen(&case.bytes);
        let mut expected: Vec<(String, Vec<u8>)> = (case.extracts.iter().flatten())
            .filter(|(name, _)| !case.fewer.contains(name))
            .chain(&case.more)
            .map(|(name, contents)| ((*name).to_owned(), contents.clone()))
            .collect();
        expected.sort();
        assert_eq!(found.kinds(), case.findings, "{}: {:?}", case.name, found.findings);
        let names = |files: &[(String, Vec<u8>)]| {
            files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let files = files(found.files);
        assert_eq!(names(&files), names(&expected), "{}", case.name);
        assert!(files == expected, "{}: other contents", case.name);
        let verified = verify(Cursor::new(&case.bytes), &Options::default()).unwrap();
        let kinds: Vec<_> = verified.findings.iter().map(|finding| finding.kind).collect();
        for kind in case.findings.iter().chain(&case.verified) {
            assert!(kinds.contains(kind), "{}: {:?}", case.name, verified.findings);
        }
        // Without a finding, nothing else is looked into, and nothing is left out.
        if case.findings.is_empty() && case.name != "symlink" {
            assert!(case.fewer.is_empty(), "{}", case.name);
            assert_eq!(case.more.is_empty(), case.extracts.is_some(), "{}", case.name);
        }
    }
}

#[test]
fn edits_keep_what_they_do_not_change_or_refuse() {
    let options = RewriteOptions::default();
    for case in cases() {
        let mut new = Vec::new();
        let has = |kind| case.findings.contains(&kind);
        match case.peer {
            Peer::Tar => {
                rewrite_tar(&case.bytes[..], &mut new, &options, |_, _| Ok(None)).unwrap();
                assert!(new == case.bytes, "{}: a copy differs", case.name);
                let empty = |name: &[u8], _: &mut Original<'_>| {
                    Ok((name != b"b").then(|| Replacement::from_bytes(Vec::new())))
                };
                let changed = rewrite_tar(&case.bytes[..], Vec::new(), &options, empty);
                let is_sparse = case.name.contains("sparse") && !has(Unread);
                let is_refused = is_sparse || case.name == "global size" || has(Duplicate);
                assert_eq!(changed.is_err(), is_refused, "{}: {changed:?}", case.name);
            }
            Peer::Dpkg => {
                let copy =
                    rewrite_deb(Cursor::new(&case.bytes), &mut new, &options, |_, _| Ok(None));
                let is_refused = has(Ambiguous) && !case.name.contains("another compression");
                assert_eq!(copy.is_err(), is_refused, "{}: {copy:?}", case.name);
                assert!(is_refused || new == case.bytes, "{}: a copy differs", case.name);
            }
            Peer::Pip => {
                let zip = Zip::read(Cursor::new(&case.bytes)).unwrap();
                let is_plain = case.name == "environment";
                assert_eq!(zip.kind() == PackageKind::Zip, is_plain, "{}", case.name);
                let is_right = case.extracts.is_some();
                assert_eq!(WheelEdit::new(&zip).is_ok(), is_right, "{}", case.name);
            }
            Peer::Python => {}
        }
    }
}
