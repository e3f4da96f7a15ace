//! Records are read, changed and compared with contents.

use std::io::Cursor;

use gpu_packages::{
    Algorithm, DebRecords, ErrorKind, FindingKind, Hash, Record, set_installed_size, verify,
};
use samples::packages::{self, Around, Made};

fn changed(text: &str, path: &str) -> String {
    let mut record = Record::parse(text.as_bytes()).unwrap();
    let count = record
        .replace(path.as_bytes(), 7, |algorithm| Ok(Hash::of(algorithm, b"changed")))
        .unwrap();
    assert_eq!(count, record.rows().filter(|row| row.path() == path.as_bytes()).count());
    String::from_utf8(record.to_vec()).unwrap()
}

#[test]
fn only_fields_of_the_row_change() {
    let sha256 = Hash::of(Algorithm::Sha256, b"changed");
    let row = |path: &str| format!("{path},{sha256},7");
    let text = "\"a,\"\"b\"\"\",sha256=x,1\r\nc,sha256=y,2\n\nd,,\nlast,sha256=z,3";
    assert_eq!(changed(text, "nothing"), text);
    assert_eq!(
        changed(text, "a,\"b\""),
        text.replace("\"a,\"\"b\"\"\",sha256=x,1", &row("\"a,\"\"b\"\"\""))
    );
    assert_eq!(changed(text, "c"), text.replace("c,sha256=y,2", &row("c")));
    assert_eq!(changed(text, "d"), text);
    assert_eq!(changed(text, "last"), text.replace("last,sha256=z,3", &row("last")));
    // Quoted fields, a size without a hash, a fourth field, rows of one field.
    assert_eq!(changed("a,\"sha256=x\",\"1\",more\n", "a"), format!("{},more\n", row("a")));
    assert_eq!(changed("a,,12\n", "a"), "a,,7\n");
    assert_eq!(changed("a,sha256=x,\n", "a"), format!("a,{sha256},\n"));
    assert_eq!(changed("a\nb,,\n", "a"), "a\nb,,\n");
    let sha512 = Hash::of(Algorithm::Sha512, b"changed");
    assert_eq!(changed("a,sha512=x,1\n", "a"), format!("a,{sha512},7\n"));
    let hex = Hash::of(Algorithm::Sha256, b"").to_hex();
    assert_eq!(
        changed(&format!("a,sha256={hex},1\n"), "a"),
        format!("a,sha256={},7\n", sha256.to_hex())
    );
}

#[test]
fn rows_are_removed_with_their_line() {
    let mut record = Record::parse(b"a,,\r\nb,,\r\nc,,").unwrap();
    assert_eq!((record.remove(b"a"), record.remove(b"c"), record.remove(b"x")), (1, 1, 0));
    assert_eq!(record.to_vec(), b"b,,\r\n");
}

#[test]
fn the_last_change_counts_unless_the_row_is_removed() {
    let mut record = Record::parse(b"a,,1\nb,,1\na,,2\nc,,1\n").unwrap();
    let mut replace = |path: &[u8], size, is_removed| {
        let removed = if is_removed { record.remove(path) } else { 0 };
        let count = record.replace(path, size, |algorithm| Ok(Hash::of(algorithm, b""))).unwrap();
        (removed, count, String::from_utf8(record.to_vec()).unwrap())
    };
    assert_eq!(replace(b"a", 7, false), (0, 2, "a,,7\nb,,1\na,,7\nc,,1\n".into()));
    assert_eq!(replace(b"a", 1, false), (0, 2, "a,,1\nb,,1\na,,1\nc,,1\n".into()));
    assert_eq!(replace(b"b", 7, true), (1, 1, "a,,1\na,,1\nc,,1\n".into()));
    assert_eq!(replace(b"a", 7, true), (2, 2, "c,,1\n".into()));
}

/// Takes seconds: if each search read the longest row, it would take many minutes.
#[test]
fn a_search_reads_no_row_of_another_path() {
    let paths: Vec<String> = (0..50_000).map(|n| format!("d/{n:05}")).collect();
    let long = "n".repeat(1 << 20);
    let text: String = paths.iter().chain([&long]).map(|path| format!("{path},,3\n")).collect();
    let mut record = Record::parse(format!("{text}m{}\n", ",".repeat(1 << 20)).as_bytes()).unwrap();
    for path in &paths {
        let rows: Vec<_> = record.find(path.as_bytes()).map(|row| row.size()).collect();
        assert_eq!(rows, [Some(3)]);
        assert_eq!(record.find(format!("{path}x").as_bytes()).count(), 0);
    }
    assert_eq!((record.find(long.as_bytes()).count(), record.find(b"m").count()), (1, 1));
}

#[test]
fn unknown_algorithms_are_refused() {
    let mut record = Record::parse(b"a,blake3=x,1\n").unwrap();
    let error = record.replace(b"a", 1, |algorithm| Ok(Hash::of(algorithm, b""))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text =
        "RECORD row of a: expected md5, sha256, sha384 or sha512 as algorithm, found 'blake3=x'";
    assert_eq!(error.to_string(), text);
    let error = Record::parse(b"b,,\n\"a,,\n").unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(4)));
}

#[test]
fn hashes_are_read_in_both_forms() {
    for algorithm in [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512] {
        let hash = Hash::of(algorithm, b"abc");
        assert_eq!(Hash::from_hex(algorithm, &hash.to_hex()).as_ref(), Some(&hash));
        let base64 = hash.to_base64();
        assert_eq!(Hash::from_base64(algorithm, &base64).as_ref(), Some(&hash));
        assert_eq!(Hash::from_base64(algorithm, &format!("{base64}=")), Some(hash));
        for bad in ["", "abc", "ä", &base64[1..], &base64.to_lowercase()[1..], "====", "+/"] {
            assert_eq!(Hash::from_base64(algorithm, bad), None, "{bad}");
            assert_eq!(Hash::from_hex(algorithm, bad), None);
        }
    }
    // Bits after the hash.
    let text = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV";
    assert_eq!(Hash::from_base64(Algorithm::Sha256, text), None);
    assert_eq!(
        Hash::of(Algorithm::Sha256, b"abc").to_hex(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn debian_records_are_read_and_changed() {
    let text =
        b"d41d8cd98f00b204e9800998ecf8427e  a\nnot a line\nd41d8cd98f00b204e9800998ecf8427e *./b";
    let mut sums = DebRecords::parse(text);
    assert_eq!(sums.rows().map(|(path, _)| path).collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(sums.to_vec(), text);
    let hash = Hash::of(Algorithm::Md5, b"abc");
    assert!(sums.replace(b"b", &hash) && !sums.replace(b"c", &hash));
    assert!(sums.to_vec().ends_with(b"900150983cd24fb0d6963f7d28e17f72 *./b"));
    let set = |text: &str, change| {
        set_installed_size(text.as_bytes(), change).map(|text| String::from_utf8(text).unwrap())
    };
    assert_eq!(set("A: b\ninstalled-size:5\n", 3).unwrap(), "A: b\ninstalled-size: 8\n");
    assert_eq!(set("Installed-Size: 5\r\n", -9).unwrap(), "Installed-Size: 0\r\n");
    assert_eq!(set("A: b\n", 1).unwrap(), "A: b\n");
    assert_eq!(set("Installed-Size: x\n", 1).unwrap_err().kind(), ErrorKind::Malformed);
}

fn findings(file: &[u8]) -> Vec<String> {
    let verified = verify(Cursor::new(file), &Default::default()).unwrap();
    let kinds = verified.findings.iter().map(|finding| finding.kind);
    assert!(kinds.into_iter().all(|kind| kind == FindingKind::Record), "{:?}", verified.findings);
    verified.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn wrong_records_of_wheels_are_found() {
    let good = packages::wheel(&[("a", b"1"), ("b", b"2")]);
    let wheel = |change: &dyn Fn(&mut Vec<Made>)| {
        let mut members = good.clone();
        change(&mut members);
        findings(&packages::zip(&members, &Around::default()))
    };
    assert_eq!(wheel(&|_| {}), [""; 0]);
    assert_eq!(
        wheel(&|members| members[0].contents = b"x".to_vec()),
        [
            "a: RECORD has the hash sha256=a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s, found sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE"
        ]
    );
    assert_eq!(
        wheel(&|members| members[0].contents = b"12".to_vec()),
        ["a: RECORD has the size 1, found 2"]
    );
    assert_eq!(
        wheel(&|members| drop(members.remove(1))),
        ["b: RECORD lists it, the wheel lacks it"]
    );
    assert_eq!(wheel(&|members| members.push(Made::new("c", ""))), ["c: RECORD does not list it"]);
    let edit = |from: &str, to: &str| {
        wheel(&|members| {
            let record = members.last_mut().unwrap();
            let text = String::from_utf8(record.contents.clone()).unwrap();
            assert!(text.contains(from));
            record.contents = text.replace(from, to).into_bytes();
        })
    };
    let base64 = packages::sha256(b"1");
    let hex = format!("sha256={}", Hash::of(Algorithm::Sha256, b"1").to_hex());
    assert_eq!(
        edit(&base64, &hex),
        [
            "foo-1.0.dist-info/RECORD: 1 hash in hexadecimal digits, expected URL-safe base64: installers that compare hashes refuse the wheel"
        ]
    );
    assert_eq!(
        edit("a,sha256=", "a,sha256=?"),
        [
            "a: RECORD has a hash that cannot be read: 'sha256=?a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s'"
        ]
    );
    assert_eq!(edit(",1\nb", ",one\nb"), ["a: RECORD has a size that is not a number"]);
    assert_eq!(edit("a,sha256=", "a,,\na,sha256="), ["a: RECORD lists it twice"]);
    assert_eq!(
        edit("a,sha256=", "\"a,sha256="),
        ["RECORD: expected a closing quote, found the end (at 0x0)"]
    );
}

#[test]
fn wrong_records_of_debian_packages_are_found() {
    let file = packages::deb(&[("a", b"first"), ("b", b"2")], "", <[u8]>::to_vec);
    assert_eq!(findings(&file), [""; 0]);
    let at = file.windows(5).rposition(|bytes| bytes == b"first").unwrap();
    let mut changed = file.clone();
    changed[at] = b'x';
    let text = "a: md5sums has the hash 8b04d5e3775d298e78455efc5ca404d5, found 6e9ceb395c1e33d507ea05bd5594307e";
    assert_eq!(findings(&changed), [text]);
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn wrong_records_of_conda_packages_are_found() {
    let hash = Hash::of(Algorithm::Sha256, b"abc").to_hex();
    let paths = |hash: &str, size: u64| {
        let row = format!(
            "{{\"_path\": \"lib/a\", \"path_type\": \"hardlink\", \"sha256\": \"{hash}\", \"size_in_bytes\": {size}}}"
        );
        let link = "{\"_path\": \"lib/l\", \"path_type\": \"softlink\", \"sha256\": \"00\", \"size_in_bytes\": 9}";
        format!("{{\"paths\": [{row}, {link}], \"paths_version\": 1}}")
    };
    let check = |json: &str| {
        let info: [(&str, &[u8]); 1] = [("info/paths.json", json.as_bytes())];
        let pkg: [(&str, &[u8]); 1] = [("lib/a", b"abc")];
        let one = findings(&packages::gzip(&packages::tar(&[pkg[0], info[0]])));
        let zstd = |bytes: &[u8]| {
            let mut encoder = gpu_packages::Compression::new(gpu_packages::Codec::Zstd)
                .with_level(1)
                .unwrap()
                .encoder(Vec::new())
                .unwrap();
            std::io::Write::write_all(&mut encoder, bytes).unwrap();
            encoder.finish().unwrap()
        };
        let two =
            findings(&packages::conda(zstd(&packages::tar(&pkg)), zstd(&packages::tar(&info))));
        assert_eq!(one, two);
        one
    };
    assert_eq!(check(&paths(&hash, 3)), [""; 0]);
    assert_eq!(check(&paths(&hash, 4)), ["lib/a: paths.json has the size 4, found 3"]);
    let text = format!("lib/a: paths.json has the hash 00, found {hash}");
    assert_eq!(check(&paths("00", 3)), [text]);
    assert_eq!(check("{}"), ["info/paths.json: info/paths.json: expected a list 'paths'"]);
    assert_eq!(
        check("{\"paths\": [{\"_path\": \"x\"}]}"),
        ["x: paths.json lists it, the package lacks it"]
    );
}

#[test]
fn blobs_of_images_have_their_names() {
    let hex = Hash::of(Algorithm::Sha256, b"abc").to_hex();
    let (good, bad) = (format!("blobs/sha256/{hex}"), format!("blobs/sha256/{}", "0".repeat(64)));
    let file = packages::tar(&[(&good, b"abc"), ("index.json", b"{}")]);
    assert_eq!(findings(&file), [""; 0]);
    let file = packages::tar(&[(&bad, b"abc")]);
    assert_eq!(findings(&file), [format!("{bad}: its name is its hash, found {hex}")]);
}
