//! Packages of all kinds: looked into, and edited with their records.

use std::fs;
use std::io::Write;

use crate::common::{data, files_in, stderr, stdout};
use crate::wheels::Place;

use samples::ar;
use samples::packages::{self, Around, Made};
use serde_json::Value;

fn hip() -> Vec<u8> {
    fs::read(data("hip.o")).unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = gpu_packages::Compression::new(gpu_packages::Codec::Zstd)
        .with_level(1)
        .unwrap()
        .encoder(Vec::new())
        .unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Returns the rows of images, without the name of the file.
fn images(place: &Place, file: &str) -> Vec<String> {
    let listed = place.succeeds(&["ls", "--json", "--hash", file]);
    let rows = listed.lines().filter(|line| line.contains("\"index\""));
    let name = |row: &str| {
        row.split("\"file\":").nth(1).map(|rest| rest.split('"').nth(1).unwrap().to_owned())
    };
    let rows = rows.map(|row| match name(row) {
        Some(name) => row.replace(&name, "").trim_matches([',', ' ']).to_owned(),
        None => row.trim_matches([',', ' ']).to_owned(),
    });
    rows.collect()
}

/// A bundle with a code object whose section headers lie far from both ends of it.
fn with_headers_in_the_middle(image: &[u8]) -> Vec<u8> {
    let headers = u64::from_le_bytes(image[40..48].try_into().unwrap()) as usize;
    let mut large = image.to_vec();
    large.resize(1 << 20, 0);
    let at = large.len() as u64;
    large[40..48].copy_from_slice(&at.to_le_bytes());
    large.extend(&image[headers..]);
    large.resize(2 << 20, 0);
    let entry = ("hipv4-amdgcn-amd-amdhsa--gfx1100", large.len() as u64);
    bundle_format::layout([entry], 4096).unwrap().to_vec(&[&large]).unwrap()
}

/// Bytes that were not kept at first are read, and the rows of the members before are there once.
#[test]
fn members_are_read_again_where_too_little_was_kept() {
    let hip = hip();
    let place = Place::with("hip.o", &hip);
    place.succeeds(&["extract", "hip.o", "--target", "gfx1100", "-o", "image"]);
    let image = place.path("image/hip.1.hipv4-amdgcn-amd-amdhsa-gfx1100.hsaco");
    let bundle = with_headers_in_the_middle(&fs::read(image).unwrap());
    let files: [(&str, &[u8]); 3] = [("a.o", &hip), ("b.bundle", &bundle), ("c.o", &hip)];
    fs::create_dir(place.path("directory")).unwrap();
    for (name, bytes) in files {
        fs::write(place.path("directory").join(name), bytes).unwrap();
    }
    let deflated = files.map(|(name, bytes)| Made::new(name, bytes));
    fs::write(place.path("a.zip"), packages::zip(&deflated, &Around::default())).unwrap();
    fs::write(place.path("a.tar.zst"), zstd(&packages::tar(&files))).unwrap();
    let ask = ["match", "--json", "--gpu", "gfx1100"];
    let rows = |name: &str, separator| {
        let document = place.succeeds(&[&ask[..], &[name]].concat());
        let document: Value = serde_json::from_str(&document).unwrap();
        document["answers"].to_string().replace(&format!("{name}{separator}"), "")
    };
    let expected = rows("directory", '/');
    assert_eq!(expected.matches("\"runtime\"").count(), 3, "{expected}");
    assert_eq!(rows("a.zip", ':'), expected);
    assert_eq!(rows("a.tar.zst", ':'), expected);
}

#[test]
fn packages_of_all_kinds_are_looked_into() {
    let hip = hip();
    let files: [(&str, &[u8]); 3] =
        [("usr/share/doc/a.txt", b"text"), ("usr/lib/hip.o", &hip), ("empty", b"")];
    let tar = packages::tar(&files);
    let made = files.map(|(name, bytes)| Made::new(name, bytes));
    let zip = packages::zip(&made, &Around::default());
    let nested = packages::tar(&[(
        "one.zip",
        &packages::zip(&[Made::new("in/two.tgz", packages::gzip(&tar))], &Around::default()),
    )]);
    let compressed = packages::zip(
        &[
            Made::new("a.o.zst.gz", packages::gzip(&zstd(&hip))),
            Made::new("text.gz", packages::gzip(b"text")),
        ],
        &Around::default(),
    );
    let place = Place::with("hip.o", &hip);
    let alone = images(&place, "hip.o");
    assert_eq!(alone.len(), 5);
    for (name, bytes, member) in [
        ("a.tar", tar.clone(), "usr/lib/hip.o"),
        ("a.tar.gz", packages::gzip(&tar), "usr/lib/hip.o"),
        ("a.tar.zst", zstd(&tar), "usr/lib/hip.o"),
        ("a.zip", zip.clone(), "usr/lib/hip.o"),
        ("a.deb", packages::deb(&files, ".zst", zstd), "usr/lib/hip.o"),
        ("a.rpm", packages::rpm(&packages::gzip(&packages::cpio(&files))), "usr/lib/hip.o"),
        ("a.conda", packages::conda(zstd(&tar), zstd(&packages::tar(&[]))), "usr/lib/hip.o"),
        ("nested.tar", nested, "one.zip:in/two.tgz:usr/lib/hip.o"),
        // Single files that are compressed.
        ("a.o.gz", packages::gzip(&hip), "contents"),
        ("a.o.zst", zstd(&hip), "contents"),
        ("a.zip.gz", packages::gzip(&zip), "contents:usr/lib/hip.o"),
        ("b.zip", compressed, "a.o.zst.gz:contents:contents"),
    ] {
        fs::write(place.path(name), bytes).unwrap();
        let whole = format!("{name}:{member}");
        assert!(place.succeeds(&["ls", name]).starts_with(&whole), "{name}");
        assert_eq!(images(&place, name), alone, "{name}");
        // A member is an input by itself.
        assert_eq!(images(&place, &whole), alone, "{name}");
        assert!(place.succeeds(&["verify", name]).contains(&format!("{whole}: ok, 5 images")));
        assert_eq!(
            place.succeeds(&["match", "--gpu", "gfx1100", name]),
            format!("{name}: has code for gfx1100 in {member}\n")
        );
        // By itself it is a file like any other.
        let by_name = place.succeeds(&["match", "--gpu", "gfx1100", &whole]);
        assert!(by_name.starts_with(&format!("{whole}  26.3 KiB, ELF\n")), "{by_name}");
        place.fails(&["match", "--gpu", "gfx1201", name], "gfx1201");
        let extracted = place.succeeds(&["extract", name, "--target", "gfx1100", "-o", "images"]);
        assert!(extracted.contains("hip.1.hipv4") || extracted.contains("gfx1100"), "{extracted}");
    }
    let missing = "a.tar:usr/lib/none";
    place.fails(&["ls", missing], "a.tar:usr/lib/none: no such member");
    place.fails(&["ls", "hip.o:usr"], "hip.o: not a package");
    place.fails(&["ls", "none:usr"], "none:usr: No such file");
}

#[test]
fn zip_files_after_programs_in_packages_are_looked_into() {
    let hip = hip();
    let after = |prefix: Vec<u8>| {
        let around = Around { prefix, ..Around::default() };
        packages::zip(&[Made::new("in/hip.o", &hip[..])], &around)
    };
    let program = after(hip.clone());
    let files: [(&str, &[u8]); 2] =
        [("a.pyz", &after(b"#!/usr/bin/env python3\n".to_vec())), ("bin/program", &program)];
    let made = files.map(|(name, bytes)| Made::new(name, bytes));
    let place = Place::with("hip.o", &hip);
    let alone = images(&place, "hip.o");
    for (name, bytes) in [
        ("a.zip", packages::zip(&made, &Around::default())),
        (
            "stored.zip",
            packages::zip(&made.map(|made| Made { method: 0, ..made }), &Around::default()),
        ),
        ("a.tar.zst", zstd(&packages::tar(&files))),
    ] {
        fs::write(place.path(name), bytes).unwrap();
        for member in ["a.pyz:in/hip.o", "bin/program:in/hip.o"] {
            assert_eq!(images(&place, &format!("{name}:{member}")), alone, "{name}:{member}");
        }
        let verified = place.succeeds(&["verify", name]);
        assert!(verified.contains(&format!("{name}:bin/program: ok, 5 images")), "{verified}");
        assert_eq!(images(&place, name).len(), 3 * alone.len());
    }
}

/// Entries of a fatbinary that are compressed in a compressed stream.
#[test]
fn shares_of_images_in_streams_are_those_of_the_file() {
    let fatbinary = fs::read(data("kernels.fatbin")).unwrap();
    let place = Place::with("a.bin", &[b"\x01\0\x02", &packages::gzip(&fatbinary)[..]].concat());
    let listed = place.succeeds(&["ls", "--totals", "a.bin"]);
    let lines = listed.lines().filter(|line| !line.contains("rest of the file"));
    let shares = lines.filter_map(|line| line.strip_suffix(" %")?.split(' ').next_back());
    let shares: Vec<f64> = shares.map(|share| share.parse().unwrap()).collect();
    let sum: f64 = shares.iter().sum();
    assert!(shares.len() == 3 && (90.0..=100.0).contains(&sum), "{listed}");
}

#[test]
fn compressed_files_for_one_gpu_each_are_one_question() {
    let place = Place::with("hip.o", &hip());
    let bundle = fs::read(data("kernels.hipfb")).unwrap();
    fs::create_dir(place.path("pkg")).unwrap();
    fs::write(place.path("pkg/kernel_gfx1100.hipfb.zst"), zstd(&hip())).unwrap();
    fs::write(place.path("pkg/kernel_gfx1030.hipfb.zst"), zstd(&bundle)).unwrap();
    fs::write(place.path("pkg/kernel_gfx1031.hipfb.zst"), zstd(&bundle)).unwrap();
    let files = ["kernel_gfx1030.hipfb.zst", "kernel_gfx1031.hipfb.zst"];
    let zip = files.map(|name| Made::new(name, fs::read(place.path("pkg").join(name)).unwrap()));
    fs::write(place.path("a.zip"), packages::zip(&zip, &Around::default())).unwrap();
    let answer = |gpu: &str| stdout(&place.offload(&["match", "--gpu", gpu, "pkg", "a.zip"]));
    assert_eq!(
        answer("gfx1030"),
        "a.zip: has code for gfx1030 in kernel_gfx*.hipfb.zst:contents\n\
         pkg/kernel_gfx*.hipfb.zst:contents: has code for gfx1030 in 2 of 3 files\n"
    );
    assert_eq!(
        answer("gfx1100"),
        "a.zip: lacks code for gfx1100 in kernel_gfx*.hipfb.zst:contents: built for gfx1030, gfx90a\n\
         pkg/kernel_gfx*.hipfb.zst:contents: has code for gfx1100 in 1 of 3 files\n"
    );
}

#[test]
fn the_damage_of_a_package_is_one_of_each_member() {
    let hip = hip();
    let place = Place::with("hip.o", &hip);
    let noise: Vec<u8> =
        (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut damaged = packages::gzip(&packages::tar(&[("hip.o", &hip), ("noise", &noise)]));
    damaged.truncate(damaged.len() - 1000);
    let nested = packages::tar(&[("in.tgz", &damaged), ("well.o", &hip)]);
    fs::write(place.path("damaged.tgz"), damaged).unwrap();
    fs::write(place.path("nested.tar"), nested).unwrap();
    for member in ["damaged.tgz:hip.o", "nested.tar:in.tgz:hip.o", "nested.tar:in.tgz"] {
        for command in [&["ls"][..], &["kernels"], &["match", "--gpu", "gfx1100"]] {
            let output = place.offload(&[command, &[member]].concat());
            let said = stderr(&output);
            assert!(said.contains("malformed gzip"), "{command:?} {member}: {said}");
            assert_eq!(output.status.code(), Some(1), "{command:?} {member}");
            assert!(!output.stdout.is_empty(), "{command:?} {member}");
        }
    }
    // One of another package is none of it.
    place.succeeds(&["ls", "nested.tar:well.o"]);
}

/// The library's tests have all cases; each here is one way from the library to an exit status.
#[test]
fn no_command_passes_over_what_programs_read_differently() {
    let hip = hip();
    let place = Place::with("hip.o", &hip);
    let plain = |members: &[Made]| packages::zip(members, &Around::default());
    let mut encrypted = plain(&[Made::new("hip.o", &hip[..])]);
    let central = encrypted.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    encrypted[6] |= 1;
    encrypted[central + 8] |= 1;
    let mut link = packages::wheel(&[("foo/hip.o", &hip)]);
    link[0].mode = 0o120_777;
    let mut two_records = packages::wheel(&[("foo/hip.o", &hip)]);
    two_records.push(Made::new("bar-1.0.dist-info/RECORD", ""));
    let global = |header: &[u8]| {
        let mut file = packages::tar_header(b"g", header.len() as u64, b'g', b"");
        file.extend(packages::padded(header));
        [file, packages::tar(&[("hip.o", &hip)])].concat()
    };
    let mut sparse = packages::tar(&[("hip.o", &hip)]);
    sparse[156] = b'S';
    packages::sum(&mut sparse[..512]);
    let mut two_data = packages::deb(&[("hip.o", &hip)], "", <[u8]>::to_vec);
    two_data.extend(
        &ar::raw(&[("data.tar.gz", &packages::gzip(&packages::tar(&[("evil", &hip)])))])[8..],
    );
    for (name, bytes, words) in [
        ("encrypted.zip", encrypted, "encrypted.zip:hip.o: the member is encrypted"),
        ("link.whl", plain(&link), "link.whl:foo/hip.o: a symbolic link by its mode"),
        ("two.whl", plain(&two_records), "two.whl: expected one .dist-info directory, "),
        ("global.tar", global(b"13 path=evil\n"), "global.tar:evil: a global header sets path"),
        ("sparse.tar", sparse, "sparse.tar:hip.o: the map of a sparse file: "),
        (
            "same.tar",
            packages::tar(&[("hip.o", &hip), ("./hip.o", b"")]),
            "same.tar:hip.o: several",
        ),
        ("two.deb", two_data, "two.deb:data.tar.gz: deb: dpkg reads the first data.tar"),
    ] {
        fs::write(place.path(name), bytes).unwrap();
        for command in [
            &["ls", name][..],
            &["ls", "--json", name],
            &["match", "--gpu", "gfx1100", name],
            &["kernels", name],
            &["extract", name, "-o", "images"],
            &["verify", name],
            &["thin", "--keep", "gfx1100", name, "-o", "thinned"],
            &["compress", name, "-o", "thinned"],
        ] {
            place.fails(command, words);
        }
        assert!(!place.path("thinned").exists(), "{name}");
    }
}

/// A hole and a type that is not known are read as GNU tar does.
#[test]
fn sparse_members_are_looked_into_and_not_edited() {
    let hip = hip();
    let mut tar = packages::tar_header(b"hip.o", hip.len() as u64, b'S', b"");
    let size = format!("{:011o}\0", hip.len() + 100);
    tar[386..410].copy_from_slice(format!("00000000000\0{:011o}\0", hip.len()).as_bytes());
    tar[483..495].copy_from_slice(size.as_bytes());
    packages::sum(&mut tar);
    tar.extend(packages::padded(&hip));
    tar.extend(packages::tar(&[("other.o", &hip)]));
    let place = Place::with("a.tar", &tar);
    fs::write(place.path("hip.o"), &hip).unwrap();
    assert_eq!(images(&place, "a.tar:other.o"), images(&place, "hip.o"));
    assert!(place.succeeds(&["ls", "a.tar"]).starts_with("a.tar:hip.o"));
    assert!(place.succeeds(&["verify", "a.tar"]).contains("a.tar:hip.o: ok, 5 images"));
    let thin = ["thin", "--keep", "gfx1100", "a.tar", "-o", "b.tar"];
    place.fails(&thin, "a.tar: hip.o: expected a file that is not sparse");
    assert!(!place.path("b.tar").exists());
}

#[test]
fn match_answers_for_packages_in_a_line() {
    let hip = hip();
    let place = Place::with("hip.o", &hip);
    place.succeeds(&["thin", "--keep", "gfx906", "hip.o", "-o", "small.o"]);
    let small = fs::read(place.path("small.o")).unwrap();
    let files: [(&str, &[u8]); 3] = [("a.o", &hip), ("b.o", &small), ("c.o", &small)];
    fs::write(place.path("a.tar"), packages::tar(&files)).unwrap();
    fs::write(place.path("b.tar"), packages::tar(&files[1..])).unwrap();
    fs::write(place.path("c.tar"), packages::tar(&files[..2])).unwrap();
    let output =
        place.offload(&["match", "--gpu", "gfx1100,sm_90", "a.tar", "b.tar", "c.tar", "hip.o"]);
    assert_eq!(output.status.code(), Some(1));
    let lines = stdout(&output);
    let expected = "a.tar: lacks code for gfx1100 in 2 of 3 files: b.o, c.o: built for ";
    assert!(lines.starts_with(expected), "{lines}");
    assert!(lines.contains("\nb.tar: lacks code for gfx1100 in both files: built for "), "{lines}");
    assert!(
        lines.contains("\nc.tar: lacks code for gfx1100 in 1 of 2 files: b.o: built"),
        "{lines}"
    );
    assert!(!lines.contains("a.tar: lacks code for sm_90"), "{lines}");
}

#[test]
fn lists_of_installed_packages_in_an_archive_are_told() {
    let files: [(&str, &[u8]); 3] = [
        ("site/foo/hip.o", &hip()),
        ("site/foo-1.0.dist-info/RECORD", b"foo/hip.o,,\n"),
        ("other/bar-1.0.dist-info/RECORD", b"bar.py,,\n"),
    ];
    let place = Place::with("a.tar", &packages::tar(&files));
    let output = place.offload(&["thin", "--keep", "gfx1100", "a.tar", "-o", "b.tar"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("a.tar: site/foo-1.0.dist-info/RECORD has sizes"), "{said}");
    assert!(!said.contains("bar-1.0"), "{said}");
}

#[test]
fn packages_in_packages_are_verified() {
    let mut members = packages::wheel(&[("foo/a.py", b"1")]);
    let wheel = |members: &[Made]| packages::zip(members, &Around::default());
    let place = Place::with("a.tar", &packages::tar(&[("in/foo.whl", &wheel(&members))]));
    assert_eq!(
        place.succeeds(&["verify", "a.tar"]),
        "a.tar: ok, tar file, 5 members, 3 with the recorded hash\n"
    );
    members[0].contents = b"2".to_vec();
    fs::write(place.path("a.tar"), packages::tar(&[("in/foo.whl", &wheel(&members))])).unwrap();
    place.fails(&["verify", "a.tar"], "a.tar:in/foo.whl:foo/a.py: RECORD has the hash");
    let mut damaged = wheel(&members);
    let at = damaged.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    damaged[at + 16] ^= 1;
    fs::write(place.path("a.tar"), packages::tar(&[("in/foo.whl", &damaged)])).unwrap();
    let output = place.offload(&["verify", "a.tar"]);
    let lines = stdout(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(lines.contains("a.tar:in/foo.whl:foo/a.py: expected CRC-32"), "{lines}");
    assert!(!lines.contains("lacks it") && !lines.contains("ok"), "{lines}");
}

#[test]
fn names_of_members_are_told_as_they_are() {
    let place = Place::with("a.tar", &packages::tar(&[("b/esc\u{1b}[31m.o", &hip())]));
    let listed = place.succeeds(&["ls", "--json", "a.tar"]);
    assert!(listed.contains("\"a.tar:b/esc\\u001b[31m.o\""), "{listed}");
    assert!(place.succeeds(&["ls", "a.tar"]).starts_with("a.tar:b/esc\\u{1b}[31m.o  "));
    // A frame to skip comes first, as `pzstd` writes it.
    let framed =
        [&b"\x50\x2a\x4d\x18\x04\0\0\0abcd"[..], &zstd(&packages::tar(&[("hip.o", &hip())]))];
    fs::write(place.path("a.tar.zst"), framed.concat()).unwrap();
    assert_eq!(images(&place, "a.tar.zst").len(), 5);
}

#[test]
fn packages_in_packages_have_a_limit() {
    let mut file = packages::tar(&[("hip.o", &hip())]);
    for depth in 1..10 {
        let place = Place::with("a.tar", &file);
        if depth <= 8 {
            assert_eq!(images(&place, "a.tar").len(), 5, "{depth}");
        } else {
            place.fails(&["ls", "a.tar"], "exceeds the limit of 8");
        }
        file = packages::tar(&[("inner.tar", &file)]);
    }
}

#[test]
fn images_of_many_files_are_extracted() {
    let hip = hip();
    let place = Place::with("a.tar", &packages::tar(&[("one/hip.o", &hip), ("two/hip.o", &hip)]));
    let chosen = ["--target", "gfx1100", "-o", "images"];
    place.succeeds(&[&["extract", "a.tar"][..], &chosen].concat());
    let images = Vec::from_iter(files_in(&place.path("images")));
    let [(second, one), (first, two)] = &images[..] else { panic!("{} files", images.len()) };
    assert!(second.starts_with("hip-2.") && one == two, "{second}");
    // A directory, and files by their names.
    fs::create_dir(place.path("dir")).unwrap();
    fs::write(place.path("dir/hip.o"), &hip).unwrap();
    fs::write(place.path("dir/note.txt"), "no code").unwrap();
    for inputs in [&["dir"][..], &["dir/hip.o", "a.tar"]] {
        fs::remove_dir_all(place.path("images")).unwrap();
        place.succeeds(&[&["extract"][..], inputs, &chosen].concat());
        assert_eq!(fs::read(place.path("images").join(first)).unwrap(), *two);
    }
    // One fault, and nothing appears.
    fs::remove_dir_all(place.path("images")).unwrap();
    fs::write(place.path("dir/bad.o"), &hip[..hip.len() / 2]).unwrap();
    place.fails(&[&["extract", "dir"][..], &chosen].concat(), "nothing was written");
    assert!(!place.path("images").exists());
}

#[test]
fn thinned_debs_have_right_records() {
    let hip = hip();
    let database = ("usr/lib/rocblas/library/Kernels.so-000-gfx90a.hsaco", &hip[20480..][..3784]);
    let other = ("usr/lib/rocblas/library/my_gfx90a.hsaco", &b"abc"[..]);
    // Without code for the GPU, the database as a whole would be left alone.
    let kept = ("usr/lib/rocblas/library/kept.co", &hip[8192..][..3208]);
    let copyright = ("usr/share/doc/foo/copyright", &b"mine\n"[..]);
    let files: [(&str, &[u8]); 5] = [("usr/lib/hip.o", &hip), copyright, database, other, kept];
    let deb = packages::deb(&files, ".gz", packages::gzip);
    let place = Place::with("foo.deb", &deb);
    fs::write(place.path("hip.o"), &hip).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "hip.o", "-o", "small.o"]);
    let small = fs::read(place.path("small.o")).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "foo.deb", "-o", "small.deb"]);
    let expected: [(&str, &[u8]); 5] =
        [("usr/lib/hip.o", &small), copyright, database, other, kept];
    // A package that is made of the new files.
    let expected = Place::with("foo.deb", &packages::deb(&expected, ".gz", packages::gzip));
    assert_eq!(images(&place, "small.deb"), images(&expected, "foo.deb"));
    assert_eq!(
        place.succeeds(&["verify", "small.deb"]).lines().next(),
        Some("small.deb: ok, Debian package, 8 members, 5 with the recorded hash")
    );
    // Nothing is left to do.
    let before = fs::read(place.path("small.deb")).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "small.deb", "--in-place"]);
    place.succeeds(&["thin", "--keep", "gfx1100", "small.deb", "-o", "again.deb"]);
    assert!(fs::read(place.path("small.deb")).unwrap() == before);
    assert!(fs::read(place.path("again.deb")).unwrap() == before);
    let thin = ["thin", "--keep", "gfx1100", "--databases", "foo.deb", "-o", "less.deb"];
    place.succeeds(&thin);
    assert_eq!(
        place.succeeds(&["verify", "less.deb"]).lines().next(),
        Some("less.deb: ok, Debian package, 7 members, 4 with the recorded hash")
    );
    let mut signed = deb;
    signed.extend(&ar::raw(&[("_gpgorigin", b"signature")])[8..]);
    fs::write(place.path("foo.deb"), signed).unwrap();
    let thin = ["thin", "--keep", "gfx1100", "foo.deb", "-o", "new.deb"];
    place.fails(&thin, "_gpgorigin: the package is signed");
    assert!(!place.path("new.deb").exists());
    place.succeeds(&[&thin[..], &["--drop-signature"]].concat());
    assert!(fs::read(place.path("new.deb")).unwrap() == before);
}

#[test]
fn debs_that_differ_from_their_record_are_refused() {
    let hip = hip();
    let files: [(&str, &[u8]); 2] = [("usr/lib/hip.o", &hip), ("usr/share/text", b"text")];
    let deb = packages::deb(&files, "", <[u8]>::to_vec);
    let thin = ["thin", "--keep", "gfx1100", "foo.deb", "-o", "small.deb"];
    let place = Place::with("foo.deb", &deb);
    place.succeeds(&thin);
    for (name, bytes) in files {
        fs::remove_file(place.path("small.deb")).unwrap();
        let sum = gpu_packages::Hash::of(gpu_packages::Algorithm::Md5, bytes).to_hex();
        let at = deb.windows(sum.len()).position(|found| found == sum.as_bytes()).unwrap();
        let mut wrong = deb.clone();
        wrong[at..at + sum.len()].fill(b'0');
        fs::write(place.path("foo.deb"), wrong).unwrap();
        place.fails(&thin, &format!("foo.deb:{name}: md5sums has the hash 0"));
        place.fails(&thin, "(allow editing with --allow-findings)");
        assert!(!place.path("small.deb").exists());
        place.succeeds(&[&thin[..], &["--allow-findings"]].concat());
    }
}

#[test]
fn thinned_tar_files_have_all_other_members() {
    let hip = hip();
    let tar = packages::tar(&[("./a/", b""), ("./a/hip.o", &hip), ("./a/note", b"text")]);
    let place = Place::with("hip.o", &hip);
    place.succeeds(&["thin", "--keep", "gfx1100", "hip.o", "-o", "small.o"]);
    let small = fs::read(place.path("small.o")).unwrap();
    let expected = packages::tar(&[("./a/", b""), ("./a/hip.o", &small), ("./a/note", b"text")]);
    fs::write(place.path("a.tar"), &tar).unwrap();
    let dry = place.succeeds(&["thin", "--keep", "gfx1100", "a.tar", "--dry-run", "--json"]);
    assert!(dry.contains(&format!("\"size_after\":{}", expected.len())), "{dry}");
    assert!(fs::read(place.path("a.tar")).unwrap() == tar);
    let printed = place.offload(&["thin", "--keep", "gfx1100", "a.tar", "-o", "-"]);
    assert!(printed.stdout == expected, "{}", stderr(&printed));
    place.succeeds(&["thin", "--keep", "gfx1100", "a.tar", "--in-place"]);
    assert!(fs::read(place.path("a.tar")).unwrap() == expected);
    // Another tool finds the same in a compressed one.
    fs::write(place.path("a.tgz"), packages::gzip(&tar)).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "a.tgz", "-o", "small.tgz"]);
    let file = fs::File::open(place.path("small.tgz")).unwrap();
    let mut bytes = Vec::new();
    std::io::copy(&mut flate2::read::GzDecoder::new(file), &mut bytes).unwrap();
    assert!(bytes == expected);
}

#[test]
fn wheels_get_a_build_tag() {
    let members = packages::wheel(&[("foo/hip.o", &hip())]);
    let name = "foo-1.0-py3-none-any.whl";
    let place = Place::with(name, &packages::zip(&members, &Around::default()));
    fs::create_dir(place.path("out")).unwrap();
    let tag = ["--keep", "gfx1100", "--build-tag", "1gfx1100"];
    place.succeeds(&[&["thin", name, "-o", "out"], &tag[..]].concat());
    let new = place.path("out/foo-1.0-1gfx1100-py3-none-any.whl");
    let mut archive = zip::ZipArchive::new(fs::File::open(new).unwrap()).unwrap();
    let wheel =
        std::io::read_to_string(archive.by_name("foo-1.0.dist-info/WHEEL").unwrap()).unwrap();
    assert!(wheel.contains("Build: 1gfx1100\nTag: py3-none-any\n"), "{wheel}");
    place.succeeds(&["verify", "out"]);
    place.fails(&["thin", name, "-o", "out", "--keep", "gfx1100", "--build-tag", "x"], "build tag");
    fs::write(place.path("hip.o"), hip()).unwrap();
    place.fails(
        &[&["thin", "hip.o", "-o", "out"], &tag[..]].concat(),
        "build tags and variants are for wheels",
    );
    fs::write(place.path("a.tar"), packages::tar(&[("hip.o", &hip())])).unwrap();
    place.fails(
        &[&["thin", "a.tar", "-o", "out"], &tag[..]].concat(),
        "build tags and variants are for wheels",
    );
}

#[test]
fn several_files_go_into_a_directory() {
    let place = Place::with("hip.o", &hip());
    fs::write(place.path("a.tar"), packages::tar(&[("hip.o", &hip())])).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    place.succeeds(&["thin", "hip.o", "a.tar", "--keep", "gfx1100", "-o", "out"]);
    let small = fs::read(place.path("out/hip.o")).unwrap();
    assert!(fs::read(place.path("out/a.tar")).unwrap() == packages::tar(&[("hip.o", &small)]));
    let twice = place.offload(&["thin", "hip.o", "./hip.o", "--keep", "gfx1100", "-o", "out"]);
    assert!(stderr(&twice).contains("two FILEs have the same name"), "{}", stderr(&twice));
}

#[test]
fn what_is_not_changed_is_said() {
    let tar = packages::tar(&[("lib/hip.o", &hip())]);
    let place = Place::with("a.conda", &packages::conda(zstd(&tar), zstd(&packages::tar(&[]))));
    let listed = packages::tar(&[("lib/hip.o", &hip()), ("info/paths.json", b"{\"paths\": []}")]);
    let rpm = packages::rpm(&packages::gzip(&packages::cpio(&[("./hip.o", &hip())])));
    let outer = packages::tar(&[("inner.tar", &tar)]);
    let compressed = packages::tar(&[("inner.tar.gz", &packages::gzip(&tar))]);
    let none = packages::tar(&[("note", b"text")]);
    for (name, bytes, words) in [
        ("a.conda", None, "conda package: packages of this kind are read, not changed"),
        ("conda.tar", Some(listed), "conda package: packages of this kind are read, not changed"),
        ("a.rpm", Some(rpm), "RPM package: packages of this kind are read, not changed"),
        ("outer.tar", Some(outer), "unless in packages in it, which are not changed: inner.tar"),
        ("outer.tgz", Some(compressed), "which are not changed: inner.tar.gz"),
        ("none.tar", Some(none), "none.tar: no device code found"),
    ] {
        if let Some(bytes) = bytes {
            fs::write(place.path(name), bytes).unwrap();
        }
        place.fails(&["thin", "--keep", "gfx1100", name, "-o", "new"], words);
        place.fails(&["thin", "--keep", "gfx1100", name, "--in-place"], words);
        place.fails(&["thin", "--keep", "gfx1100", name, "--dry-run"], words);
        assert!(!place.path("new").exists());
    }
    place.fails(
        &["thin", "--keep", "gfx1100", "outer.tar:inner.tar", "-o", "new"],
        "members are edited with their package",
    );
    fs::write(place.path("image"), hip()).unwrap();
    place.fails(
        &["replace", "outer.tar", "hip-amdgcn-amd-amdhsa--gfx1100=image", "-o", "new"],
        "is a package",
    );
}

#[test]
fn damaged_packages_are_errors() {
    let hip = hip();
    let files: [(&str, &[u8]); 1] = [("usr/lib/hip.o", &hip)];
    let tar = packages::tar(&files);
    let gz = packages::gzip(&tar);
    let place = Place::with("a", b"");
    let mut flipped = gz.clone();
    let middle = gz.len() / 2;
    flipped[middle..middle + 40].fill(0x55);
    let deb = packages::deb(&files, ".gz", packages::gzip);
    for (bytes, what) in [
        (tar[..tar.len() / 2].to_vec(), "a tar file cut short"),
        (gz[..gz.len() / 2].to_vec(), "a compressed one cut short"),
        (flipped, "a compressed one with other bytes"),
        (deb[..deb.len() - 100].to_vec(), "a deb cut short"),
    ] {
        fs::write(place.path("a"), &bytes).unwrap();
        for args in [
            &["ls", "a"][..],
            &["verify", "a"],
            &["match", "--gpu", "gfx1100", "a"],
            &["kernels", "a"],
            &["extract", "a", "-o", "images"],
            &["thin", "a", "--keep", "gfx1100", "-o", "new"],
            &["thin", "a", "--keep", "gfx1100", "--in-place"],
        ] {
            let output = place.offload(args);
            assert_eq!(output.status.code(), Some(1), "{what}: {args:?}: {}", stderr(&output));
        }
        assert!(!place.path("new").exists() && !place.path("images").exists(), "{what}");
        assert!(fs::read(place.path("a")).unwrap() == bytes, "{what}");
    }
}

/// A compressed member of no known format is searched as a whole up to 64 MiB. The tools name the bytes that were not read, whatever was found before them.
#[test]
fn the_rest_of_a_large_member_is_told() {
    let place = Place::with("unused", b"");
    for (first, wanted, is_error) in [
        (fs::read(data("hip.hipfb")).unwrap(), "x.bin: at byte 0x10000: the last ", true),
        (Vec::new(), "x.zip:x.bin (unknown format after its first 64 KiB)", false),
    ] {
        let mut bytes = b"\x01\x02\x03junk\0".repeat(512);
        bytes.extend(first);
        bytes.resize(66 << 20, 0);
        bytes.extend(fs::read(data("kernels.hipfb")).unwrap());
        let (size, members) = (bytes.len(), [Made::new("x.bin", bytes), Made::new("a.o", hip())]);
        fs::write(place.path("x.zip"), packages::zip(&members, &Around::default())).unwrap();
        for command in [&["ls"][..], &["match", "--gpu", "gfx1100"], &["kernels"], &["verify"]] {
            let output = place.offload(&[command, &["x.zip"]].concat());
            let said = stderr(&output) + &stdout(&output);
            assert!(said.contains(wanted), "{command:?}: {said}");
            assert_eq!(output.status.success(), !is_error, "{command:?}: {said}");
        }
        let listed = place.offload(&["ls", "--json", "x.zip"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let finding = &listed["findings"][0];
        assert_eq!(
            (&finding["code"], &finding["file"]),
            (&"file/unknown".into(), &"x.zip:x.bin".into())
        );
        assert_eq!(finding["level"] == "error", is_error, "{finding}");
        assert!(!is_error || listed["files"][0]["size"] == size, "{listed}");
    }
}
