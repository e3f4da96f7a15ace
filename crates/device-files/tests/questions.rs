//! The same answers about a file alone, in packages of any form, and through readers that fail.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::rc::Rc;

use device_files::{
    DeviceFile, Fault, FileVisitor, ImageRow, ImageVisitor, Options, copy_image, copy_images,
    each_file, judge, kernels, list,
};
use device_select::Device;
use samples::bundle::{GFX1100, HOST, bundle};
use samples::images::{
    Layer, Layout, Packed, archive, docker_archive, hybrid_archive, linked_archive,
};
use samples::linked::{Linked, Style};
use samples::packages::{Around, Made, deflate, gzip, tar, wheel, zip};
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

/// Answers or codes, each with its text.
type Said = Vec<(&'static str, String)>;

/// Returns the answers for GPUs, and the codes of the errors.
fn answers(file: &[u8], gpus: &[&str]) -> (Said, Said) {
    let gpus: Vec<_> = gpus.iter().map(|gpu| Device::parse(gpu).unwrap()).collect();
    let verdicts = judge(Cursor::new(file), &Options::default(), &gpus).unwrap();
    assert_eq!(verdicts.verdicts.len(), gpus.len(), "one for each GPU: {verdicts:?}");
    let errors = verdicts.findings.iter().filter(|one| one.level == "error");
    let errors = errors.map(|one| (one.code, one.message.clone())).collect();
    let verdicts = verdicts.verdicts.into_iter();
    (verdicts.map(|one| (one.answer, one.message)).collect(), errors)
}

#[test]
fn what_could_not_be_read_is_never_a_no() {
    let gpus = ["sm_90", "gfx1030", "gfx1100"];
    let (cuda, hip) = (example("cuda-fatbin.o"), hip());
    // The member with CUDA's code is damaged.
    let members = [("a.o", &hip), ("b.o", &cuda)].map(|(name, bytes)| Made::new(name, &bytes[..]));
    let mut package = zip(&members, &Around::default());
    let stored = deflate(&cuda);
    let at = package.windows(stored.len()).position(|bytes| bytes == stored).unwrap();
    package[at + stored.len() / 2] ^= 1;
    let cut = gzip(&tar(&[("a.o", &hip)]))[..900].to_vec();
    let damaged = [b"PK\x03\x04", &[255; 90][..]].concat();
    for (file, wanted) in [
        (package, ["unknown", "unknown", "yes"]),
        (cut, ["unknown"; 3]),
        (damaged, ["unknown"; 3]),
        (b"text".to_vec(), ["unknown"; 3]),
        (Vec::new(), ["no"; 3]),
        (zip(&[Made::new("readme.txt", "text")], &Around::default()), ["no"; 3]),
        (hip, ["no", "no", "yes"]),
    ] {
        let (verdicts, errors) = answers(&file, &gpus);
        let found: Vec<_> = verdicts.iter().map(|(answer, _)| *answer).collect();
        assert_eq!(found, wanted, "{verdicts:?}, {errors:?}");
        // The answer "yes" counts the files that were read only, too.
        let is_marked = |answer| answer == "unknown" || answer == "yes" && !errors.is_empty();
        let has_why = verdicts.iter().all(|(answer, why)| {
            is_marked(*answer) == why.starts_with("was not read as a whole; what was")
        });
        assert!(has_why, "{verdicts:?}");
    }
}

/// A deflated member of no known format with a bundle at its start, one of this size in zeros later, and then another bundle.
fn large_member(first: &[u8], zeros: usize) -> Vec<u8> {
    let mut bytes = b"\x01\x02\x03junk\0".repeat(512);
    bytes.extend(first);
    bytes.resize(bytes.len().next_multiple_of(4096) + zeros, 0);
    bytes.extend(example("kernels.hipfb"));
    zip(&[Made::new("x.bin", bytes)], &Around::default())
}

#[test]
fn the_rest_of_a_large_member_is_told() {
    let (small, large) = (1 << 20, 66 << 20);
    for (first, zeros, images) in [
        (example("hip.hipfb"), small, true),
        (example("hip.hipfb"), large, true),
        (vec![], large, false),
    ] {
        let file = large_member(&first, zeros);
        let listing = list(Cursor::new(&file), &Options::default()).unwrap();
        let (verdicts, errors) = answers(&file, &["gfx1030", "gfx908"]);
        let own = kernels(Cursor::new(&file), &Options::default(), None).unwrap();
        let size = u64::try_from(8 * 512 + first.len()).unwrap().next_multiple_of(4096);
        let size = size + zeros as u64 + example("kernels.hipfb").len() as u64;
        assert!(listing.files.iter().all(|file| file.size == size), "{:?}", listing.files);
        assert_eq!(!listing.images.is_empty(), images);
        if zeros == small {
            assert!(errors.is_empty() && own.findings().is_empty(), "{errors:?}");
            continue;
        }
        let text = format!("at byte 0x10000: the last {} bytes are not read", size - 65536);
        for findings in [&listing.findings[..], own.findings()] {
            let [one] = findings else { panic!("{findings:?}") };
            assert!(one.code == "file/unknown" && one.message.starts_with(&text), "{one:?}");
            assert_eq!((one.level, &*one.member, one.offset), ("error", "x.bin", Some(65536)));
        }
        assert!(verdicts.iter().all(|(answer, _)| *answer == "unknown"), "{verdicts:?}");
    }
}

/// Returns a library whose device code was moved out, with this marker.
fn split(marker: &[u8]) -> Vec<u8> {
    let mut code = vec![7; 9000];
    code[..26]
        .copy_from_slice(b"\x7fELF\x02\x01\x01\x40\x04\0\0\0\0\0\0\0\x03\0\xe0\0\x01\0\0\0\0\0");
    code[0x30..0x34].fill(0);
    let unit = bundle(&[(HOST, b""), (GFX1100, &code)], 4096);
    let file = Linked::new(Style::Third, vec![unit]).build();
    let survey = fat_edit::survey(Cursor::new(&file), &fat_object::Options::default()).unwrap();
    let options = fat_edit::EditOptions::default();
    let plan = survey.move_out(Cursor::new(&file), marker, &options).unwrap();
    let mut out = Cursor::new(Vec::new());
    plan.write(Cursor::new(&file), &mut out).unwrap();
    out.into_inner()
}

#[test]
fn split_libraries_have_no_code_of_their_own() {
    let marker = kpack::Marker::new("libx.so", ["x_@GFXARCH@.kpack"]).to_vec().unwrap();
    let sound = split(&marker);
    // Rests of device code, which a scan finds, and no loader.
    let rest = [&sound[..], &vec![0; 4096 - sound.len() % 4096], &example("hip.hipfb")].concat();
    for (file, code, text) in [
        (
            sound,
            "file/unknown",
            "the device code lies in kernel packs, which are not read: libx.so",
        ),
        (rest, "file/unknown", "the device code lies in kernel packs, which are not read: libx.so"),
        (split(b"\xc1 damaged"), "verify/kernel-packs", "marker"),
    ] {
        let (verdicts, errors) = answers(&file, &["gfx1100"]);
        assert_eq!(verdicts[0].0, "unknown", "{verdicts:?}");
        let found = kernels(Cursor::new(&file), &Options::default(), None).unwrap();
        let own = found.findings().iter().map(|one| (one.code, one.message.clone()));
        for errors in [errors, own.collect()] {
            assert!(errors.iter().any(|one| one.0 == code && one.1.contains(text)), "{errors:?}");
        }
    }
}

#[test]
fn kernels_are_those_that_the_gpu_loads() {
    let ask = |file: &[u8], gpu: Option<&str>| {
        let gpu = gpu.map(|gpu| Device::parse(gpu).unwrap());
        let found = kernels(Cursor::new(file), &Options::default(), gpu.as_ref()).unwrap();
        let findings = found.findings().iter().map(|one| (one.code, one.message.clone()));
        (found.rows().count(), findings.collect::<Vec<_>>())
    };
    // gfx900 loads the image for gfx9-generic.
    let (count, findings) = ask(&hip(), Some("gfx900"));
    assert!(count > 0 && findings.is_empty(), "{findings:?}");
    let (count, findings) = ask(&hip(), Some("gfx1030"));
    let [("targets/nothing", text)] = &findings[..] else { panic!("{findings:?}") };
    let start = "none of its 5 images runs on the given target; it has ";
    assert!(count == 0 && text.starts_with(start), "{text}");
    for (file, code) in [
        (b"text".to_vec(), "file/unknown"),
        (b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(), "file/unknown"),
        (Vec::new(), "targets/nothing"),
    ] {
        let (count, findings) = ask(&file, None);
        assert!(count == 0 && findings.len() == 1 && findings[0].0 == code, "{findings:?}");
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

/// Collects the bytes of images, all of them or those of one row.
#[derive(Default)]
struct Taken {
    only: Option<usize>,
    rows: BTreeMap<usize, Vec<u8>>,
    asked: Vec<(String, usize)>,
}

impl ImageVisitor for Taken {
    fn wants(&mut self, row: usize, image: &ImageRow) -> bool {
        assert_eq!(row, self.asked.len());
        self.asked.push((image.member.clone(), image.image.index()));
        self.only.is_none_or(|only| only == row)
    }

    fn bytes(&mut self, row: usize, bytes: &[u8]) -> io::Result<()> {
        self.rows.entry(row).or_default().extend(bytes);
        Ok(())
    }
}

#[test]
fn bytes_of_all_images_come_in_one_pass() {
    let options = Options::default();
    let compressed = tar(&[("a.o", &example("hip-ccob-v3.o")), ("b.o", &hip())]);
    for package in packages().into_iter().map(|one| one.0).chain([gzip(&compressed)]) {
        let listing = list(Cursor::new(&package), &options).unwrap();
        let mut taken = Taken::default();
        copy_images(Cursor::new(&package), &options, &mut taken).unwrap();
        let rows = listing.images.iter().map(|row| (row.member.clone(), row.image.index()));
        assert!(rows.eq(taken.asked.iter().cloned()));
        for (number, row) in listing.images.iter().enumerate() {
            let (mut bytes, place) = (Vec::new(), (&*row.member, row.image.index()));
            copy_image(Cursor::new(&package), &options, place, &mut bytes).unwrap();
            assert!(taken.rows.get(&number).map_or(&[][..], |bytes| bytes) == bytes);
            assert_eq!(bytes.len() as u64, row.image.size());
        }
        let mut one = Taken { only: Some(listing.images.len() - 1), ..Taken::default() };
        copy_images(Cursor::new(&package), &options, &mut one).unwrap();
        assert!(one.rows.into_iter().eq(taken.rows.into_iter().next_back()));
    }
}

#[test]
fn members_of_one_name_are_apart() {
    let bundles = [b'x', b'y'].map(|code| bundle(&[(HOST, b""), (GFX1100, &[code; 9])], 1));
    let package = tar(&[("a.hipfb", &bundles[0]), ("a.hipfb", &bundles[1])]);
    let mut taken = Taken::default();
    copy_images(Cursor::new(&package), &Options::default(), &mut taken).unwrap();
    let places = [0, 1, 0, 1].map(|index| ("a.hipfb".to_owned(), index));
    assert_eq!(taken.asked, places);
    assert_eq!(taken.rows, BTreeMap::from([(1, vec![b'x'; 9]), (3, vec![b'y'; 9])]));
}

#[test]
fn an_image_of_a_damaged_bundle_is_an_error() {
    let mut damaged = example("hip-ccob-v3.hipfb");
    // The hash, which no listing of tables compares.
    damaged[24] ^= 0xff;
    let package = tar(&[("a.o", &hip()), ("b.hipfb", &damaged)]);
    let rows = list(Cursor::new(&package), &Options::default()).unwrap().images.len();
    let mut taken = Taken::default();
    let error = copy_images(Cursor::new(&package), &Options::default(), &mut taken).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().starts_with("b.hipfb: image 0: "), "{error}");
    assert!(rows > 5 && taken.asked.len() == rows);
    assert!(taken.rows.keys().all(|row| *row < 5));
}

/// A reader that counts the bytes that are read.
#[derive(Clone)]
struct Counted<'f>(Cursor<&'f [u8]>, Rc<Cell<u64>>);

impl Read for Counted<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buf)?;
        self.1.set(self.1.get() + read as u64);
        Ok(read)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_package_is_read_only_up_to_the_image() {
    // Bytes that cannot be compressed follow the object.
    let mut hip = hip();
    let mut state = 1_u32;
    hip.extend((0..100_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    }));
    let names: Vec<String> = (0..8).map(|n| format!("{n}.o")).collect();
    let members: Vec<_> = names.iter().map(|name| (&**name, &*hip)).collect();
    let zipped = zip(&wheel(&members), &Around::default());
    for package in [zipped, gzip(&tar(&members))] {
        let cost = |work: &dyn Fn(Counted<'_>)| {
            let count = Rc::new(Cell::new(0));
            work(Counted(Cursor::new(&package), Rc::clone(&count)));
            count.get()
        };
        let one = |member: &str| {
            cost(&|reader| {
                copy_image(reader, &Options::default(), (member, 1), &mut io::sink()).unwrap();
            })
        };
        let listing = cost(&|reader| drop(list(reader, &Options::default()).unwrap()));
        let all = cost(&|reader| {
            let mut taken = Taken::default();
            copy_images(reader, &Options::default(), &mut taken).unwrap();
            assert_eq!(taken.rows.len(), 32);
        });
        assert!(all <= listing + listing / 4, "{all} {listing}");
        assert!(one("0.o") < listing / 2, "{} {listing}", one("0.o"));
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

/// Returns the answers for GPUs, with the container images that they are about.
fn of_images(archive: &[u8], gpus: &[&str]) -> Vec<(Option<String>, &'static str, String)> {
    let gpus: Vec<_> = gpus.iter().map(|gpu| Device::parse(gpu).unwrap()).collect();
    let verdicts = judge(Cursor::new(archive), &Options::default(), &gpus).unwrap();
    let verdicts = verdicts.verdicts.into_iter();
    verdicts.map(|one| (one.image, one.answer, one.message)).collect()
}

#[test]
fn container_images_are_judged_by_the_files_that_they_see() {
    let (hip, cuda) = (hip(), example("cuda-fatbin.o"));
    let layer = |files: &[(&str, &[u8])]| Layer::new(files, Packed::Plain);
    let base = layer(&[("usr/lib/old.o", &hip), ("usr/lib/kept.o", &hip)]);
    let top = layer(&[("usr/lib/.wh.old.o", b""), ("opt/cuda.o", &cuda)]);
    let all = layer(&[("usr/lib/.wh.old.o", b""), ("usr/lib/.wh.kept.o", b""), ("a.o", &cuda)]);
    let wheres = [docker_archive, linked_archive, hybrid_archive];
    for archive in wheres {
        for pack in [|it: &[u8]| it.to_vec(), gzip] {
            let file = pack(&archive(&[base.clone(), top.clone()]));
            let found = of_images(&file, &["gfx1100", "gfx1030", "sm_90"]);
            let answers: Vec<_> = found.iter().map(|(image, answer, _)| (image, *answer)).collect();
            assert_eq!(answers, [(&None, "yes"), (&None, "no"), (&None, "yes")], "{found:?}");
            assert!(found[0].2.ends_with(" in usr/lib/kept.o"), "{found:?}");
            assert!(!found[1].2.contains("old.o"), "{found:?}");
            // All of AMD's code is removed.
            let found = of_images(&pack(&archive(&[base.clone(), all.clone()])), &["gfx1100"]);
            assert_eq!(found[0].1, "no", "{found:?}");
        }
    }
}

#[test]
fn each_of_several_container_images_has_an_answer() {
    let (hip, cuda) = (hip(), example("cuda-fatbin.o"));
    let mut layout = Layout::new();
    let images =
        [("hip", ("a/hip.o", hip)), ("cuda", ("a/cuda.o", cuda))].map(|(tag, (name, file))| {
            let image = layout.image(&[Layer::new(&[(name, &file)], Packed::Gzip)], "");
            format!("{image},\"annotations\":{{\"org.opencontainers.image.ref.name\":\"{tag}\"}}}}")
        });
    let found = of_images(&archive(&layout.finish(&images)), &["gfx1100"]);
    let answers = found.iter().map(|(image, answer, _)| (image.as_deref(), *answer));
    let expected = [(Some("hip, linux/amd64"), "yes"), (Some("cuda, linux/amd64"), "no")];
    assert_eq!(answers.collect::<Vec<_>>(), expected, "{found:?}");
}

#[test]
fn layers_of_no_image_do_not_count_and_files_beside_images_do() {
    let (hip, cuda) = (hip(), example("cuda-fatbin.o"));
    let layer = Layer::new(&[("a.o", &cuda)], Packed::Plain);
    let stale = Layer::new(&[("b.o", &hip)], Packed::Plain);
    let mut files = samples::images::layout(std::slice::from_ref(&layer));
    let blob = stale.blob();
    files.push((format!("blobs/sha256/{}", samples::images::hex(&blob)), blob));
    assert_eq!(of_images(&archive(&files), &["gfx1100"])[0].1, "no");
    files.push(("lib/f.o".to_owned(), hip));
    assert_eq!(of_images(&archive(&files), &["gfx1100"])[0].1, "yes");
}

#[test]
fn an_image_that_cannot_be_read_has_no_sure_answer() {
    let (hip, cuda) = (hip(), example("cuda-fatbin.o"));
    let low = Layer::new(&[("old.o", &hip), ("cuda.o", &cuda)], Packed::Plain);
    let top = Layer::new(&[(".wh.old.o", b"")], Packed::Plain);
    let files = samples::images::layout(&[low, top]);
    let archived = archive(&files);
    let mut cut = files.clone();
    cut.last_mut().unwrap().1.truncate(40);
    for damaged in [archive(&cut), archived[..archived.len() - 1500].to_vec()] {
        let found = of_images(&damaged, &["gfx1100", "gfx1030", "sm_90"]);
        assert!(found.iter().all(|(_, answer, _)| *answer == "unknown"), "{found:?}");
    }
}

#[test]
fn an_image_that_lacks_a_layer_says_nothing_about_another() {
    let (hip, cuda) = (hip(), example("cuda-fatbin.o"));
    let mut made = Layout::new();
    let sound = made.image(&[Layer::new(&[("a.o", &hip)], Packed::Plain)], "") + "}";
    let layer = Layer::new(&[("b.o", &cuda)], Packed::Plain);
    let other = made.image(std::slice::from_ref(&layer), "") + "}";
    let lost = samples::images::hex(&layer.blob());
    let mut files = made.finish(&[sound, other]);
    files.retain(|(name, _)| !name.ends_with(&lost));
    let found = of_images(&archive(&files), &["gfx1030", "gfx1100"]);
    let answers: Vec<_> =
        found.iter().map(|(image, answer, _)| (image.is_some(), *answer)).collect();
    assert_eq!(answers, [(true, "no"), (true, "yes")], "{found:?}");
}

#[test]
fn damage_that_no_image_sees_changes_no_answer() {
    let (hip, cuda) = (hip(), example("cuda-fatbin.o"));
    let low = Layer::new(&[("old.o", &hip[..3000]), ("cuda.o", &cuda)], Packed::Plain);
    let top = Layer::new(&[(".wh.old.o", b"")], Packed::Plain);
    let found = of_images(&docker_archive(&[low, top]), &["gfx1100", "sm_90"]);
    let answers: Vec<_> = found.iter().map(|(_, answer, _)| *answer).collect();
    assert_eq!(answers, ["no", "yes"], "{found:?}");
    assert!(!found[1].2.contains("as a whole"), "{found:?}");
}

#[test]
fn an_image_that_is_not_understood_is_never_a_no() {
    let mut files =
        samples::images::layout(&[Layer::new(&[("a.o", &example("cuda-fatbin.o"))], Packed::Gzip)]);
    let index = files.last_mut().unwrap();
    index.1.truncate(40);
    let found = of_images(&archive(&files), &["gfx1100"]);
    assert_eq!(found[0].1, "unknown", "{found:?}");
}
