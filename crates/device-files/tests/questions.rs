//! The same answers about a file alone, in packages of any form, and through readers that fail.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::{self, Cursor, ErrorKind};

use device_files::{
    DeviceFile, Fault, FileVisitor, Options, copy_image, each_file, judge, kernels, list,
};
use device_select::Device;
use samples::packages::{Around, Made, gzip, tar, wheel, zip};
use samples::{example, faulty};

fn hip() -> Vec<u8> {
    example("hip.o")
}

/// Returns packages with the object: its path in them, and whether it lies there as it is.
fn packages() -> Vec<(Vec<u8>, &'static str, bool)> {
    let hip = hip();
    let files: [(&str, &[u8]); 2] = [("a/readme.txt", b"text"), ("a/hip.o", &hip)];
    let members = wheel(&files);
    let packed = zip(&members, &Around::default());
    let stored = members.into_iter().map(|member| Made { method: 0, ..member });
    let stored = zip(&stored.collect::<Vec<_>>(), &Around::default());
    let inner = tar(&files);
    let behind = [&b"\x7fELF no library"[..], &stored].concat();
    vec![
        (packed, "a/hip.o", false),
        (stored, "a/hip.o", true),
        (tar(&files), "a/hip.o", true),
        (gzip(&tar(&files)), "a/hip.o", false),
        (gzip(&hip), "contents", false),
        (tar(&[("layer.tar", &inner)]), "layer.tar:a/hip.o", true),
        (behind, "a/hip.o", true),
    ]
}

#[test]
fn packages_have_the_answers_of_their_members() {
    let (hip, options) = (hip(), Options::default());
    let alone = list(Cursor::new(&hip), &options).unwrap();
    assert!(!alone.is_package && alone.findings.is_empty() && alone.images.len() == 5);
    let gpu = Device::parse("gfx1100").unwrap();
    for (package, path, is_in_place) in packages() {
        let listing = list(Cursor::new(&package), &options).unwrap();
        assert!(listing.is_package, "{path}");
        let found: Vec<_> = listing.images.iter().filter(|row| row.member == path).collect();
        assert_eq!(found.len(), alone.images.len(), "{path}: {listing:?}");
        for (row, own) in found.iter().zip(&alone.images) {
            let values = [row, &own].map(|row| serde_json::to_value(&row.image).unwrap());
            assert_eq!(values[0], values[1]);
            let mut bytes = Vec::new();
            let place = (path, row.image.index());
            copy_image(Cursor::new(&package), &options, place, &mut bytes).unwrap();
            assert_eq!(Some(&*bytes), own.image.bytes_in(&hip), "{path}");
        }
        let verdicts =
            judge(Cursor::new(&package), &options, std::slice::from_ref(&gpu)).unwrap().verdicts;
        assert_eq!((verdicts.len(), verdicts[0].answer), (1, "yes"));
        let names = |file: &[u8]| {
            let found = kernels(Cursor::new(file), &options, Some(&gpu)).unwrap();
            let names: Vec<_> =
                found.rows().map(|row| serde_json::to_value(row.kernel).unwrap()).collect();
            names
        };
        assert!(names(&package) == names(&hip) && !names(&hip).is_empty());
        let mut places = Places(Vec::new());
        each_file(Cursor::new(&package), &options, &mut places).unwrap();
        let place = places.0.iter().find(|(member, _)| member == path).unwrap().1;
        assert_eq!(place.is_some(), is_in_place, "{path}");
        if let Some(at) = place.map(|at| usize::try_from(at).unwrap()) {
            assert!(package[at..].starts_with(&hip), "{path}");
        }
    }
}

/// The files, and their offsets.
struct Places(Vec<(String, Option<u64>)>);

impl FileVisitor for Places {
    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        self.0.push((file.member().to_owned(), file.package_offset()));
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        panic!("{fault:?}");
    }
}

#[test]
fn a_gpu_of_another_vendor_is_refused_with_a_reason() {
    let gpus = ["sm_90", "gfx1100"].map(|gpu| Device::parse(gpu).unwrap());
    let (package, ..) = packages().swap_remove(0);
    let verdicts = judge(Cursor::new(package), &Options::default(), &gpus).unwrap().verdicts;
    let answers: Vec<_> = verdicts.iter().map(|one| (&*one.gpu, one.answer)).collect();
    assert_eq!(answers, [("sm_90", "no"), ("gfx1100", "yes")]);
    assert!(verdicts[0].message.contains("AMD"), "{verdicts:?}");
}

#[test]
fn files_without_device_code_and_damaged_ones_are_told() {
    let gpu = [Device::parse("gfx1100").unwrap()];
    let hip = hip();
    for (file, code) in [
        (b"text".to_vec(), "file/unknown"),
        (Vec::new(), "targets/nothing"),
        (hip[..3000].to_vec(), "verify/host-file"),
        (b"__CLANG_OFFLOAD_BUNDLE__".to_vec(), "verify/malformed"),
        ([b"PK\x03\x04", &[255; 90][..]].concat(), "file/error"),
        (gzip(&tar(&[("a.o", &hip)]))[..900].to_vec(), "file/error"),
    ] {
        let verdicts = judge(Cursor::new(file), &Options::default(), &gpu).unwrap();
        let codes: Vec<_> = verdicts.findings.iter().map(|one| one.code).collect();
        assert!(codes.contains(&code), "{code}: {:?}", verdicts.findings);
    }
}

#[test]
fn members_are_held_within_the_limit() {
    let packed = gzip(&tar(&[("a.o", &hip())]));
    let options = Options::default().with_max_held(9000);
    let listing = list(Cursor::new(packed), &options).unwrap();
    assert!(listing.images.is_empty());
    assert!(listing.findings[0].message.contains("limit of 9000 bytes"), "{:?}", listing.findings);
}

#[test]
fn an_image_that_is_not_there_is_an_error() {
    let (package, ..) = packages().swap_remove(2);
    for (place, text) in
        [(("a/hip.o", 99), "there is no image 99"), (("b.o", 0), "b.o: no such file")]
    {
        let copied = copy_image(Cursor::new(&package), &Options::default(), place, &mut io::sink());
        let error = copied.unwrap_err();
        assert!(
            error.kind() == ErrorKind::NotFound && error.to_string().starts_with(text),
            "{error}"
        );
    }
}

#[test]
fn every_failure_of_the_reader_is_an_error() {
    let files = [hip(), packages().swap_remove(0).0, packages().swap_remove(2).0];
    for file in &files {
        faulty::check_ahead(|rig| {
            let listing = list(rig.stream(file), &Options::default())?;
            if let Some(fault) = listing.findings.into_iter().next() {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, fault.message));
            }
            Ok(listing.images.len())
        });
    }
}
