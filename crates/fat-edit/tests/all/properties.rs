//! Properties of any images in any objects, at any place in memory.

use samples::faulty::at_each_address;
use samples::{elf, example, examples};
#[path = "../images/mod.rs"]
mod images;

use std::fmt::Write;
use std::io::{self, Cursor, Read};

use crate::bundling::{self, add};
use fat_edit::survey;
use fat_edit::{HOST_PLACEHOLDER, object_bundle, remove_bundle_sections};
use fat_object::{Container, Finding, Image, Options, Visitor, walk};
use images::{Images, found, image, package};
use object_edit::{NewSections, embed};
use offload_binary::{FormatVersion, OffloadKind};
use proptest::prelude::*;

/// Everything that a walk says, and the contents of all images.
#[derive(Default)]
struct Log(String);

impl Visitor for Log {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        writeln!(
            self.0,
            "{:?} {:?} {} {:?}",
            container.path(),
            container.location(),
            container.size(),
            container.compression()
        )
        .unwrap();
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.0.push_str("left\n");
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        let (id, target, format) = (image.id(), image.target(), image.format());
        let place = (image.location(), image.size(), image.compression());
        writeln!(self.0, "{id:?} {target:?} {format:?} {place:?} {bytes:?}").unwrap();
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        writeln!(self.0, "{:?}: {finding}", finding.severity()).unwrap();
        Ok(())
    }
}

/// Everything that the readers of whole files say.
fn answers(file: &[u8]) -> String {
    let mut log = Log::default();
    let summary = walk(&mut Cursor::new(file), &Options::default(), &mut log).unwrap();
    let mut text = log.0;
    writeln!(text, "{summary:?}").unwrap();
    let contents = survey(&mut Cursor::new(file), &Options::default());
    writeln!(text, "{contents:?}").unwrap();
    writeln!(text, "{:?}", embed(file, b"contents")).unwrap();
    let bundle =
        object_bundle(file, &[("host-x86_64-unknown-linux-gnu-", 1), ("hip-a-b-c-d-gfx906", 5)]);
    let bundle = bundle.map(|bundle| bundle.to_vec(&[HOST_PLACEHOLDER, b"image"]));
    writeln!(text, "{bundle:?}").unwrap();
    writeln!(text, "{:?}", remove_bundle_sections(file)).unwrap();
    writeln!(text, "{:?}", llvm_bitcode::symbols(file)).unwrap();
    text
}

/// Every example file, of any format: a reader that needs its numbers aligned fails on some.
#[test]
fn the_place_of_a_file_in_memory_does_not_matter() {
    let mut read = 0;
    for (name, bytes) in examples() {
        println!("{name}");
        let answers = at_each_address(&bytes, b'_', answers);
        read += usize::from(answers.contains("image") || answers.contains("Object"));
    }
    assert!(read > 20, "{read}");
}

/// The same of what lies at odd places in a file: tables of an object, and members of an archive.
#[test]
fn the_place_of_an_object_in_a_file_does_not_matter() {
    for form in elf::all_elf() {
        at_each_address(&form.build(), b'_', answers);
    }
    let found = |file: &[u8]| {
        let mut images = bundling::Images::default();
        walk(&mut Cursor::new(file), &Options::default(), &mut images).unwrap();
        images.0
    };
    for name in ["bundle.o", "hip.o", "hip.obj", "hip-macos.o", "hip-ccob-v3.o"] {
        let object = example(name);
        let expected = found(&object);
        assert!(!expected.is_empty(), "{name}");
        // Members start at even places; what is before them moves them by two.
        for before in 0..8 {
            let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", "0");
            let mut archive = b"!<arch>\n".to_vec();
            archive.extend(header("a.txt/", before * 2).bytes());
            archive.resize(archive.len() + before * 2, b'x');
            archive.extend(header("b.o/", object.len()).bytes());
            archive.extend(&object);
            archive.resize(archive.len().next_multiple_of(2), b'\n');
            assert!(found(&archive) == expected, "{name} after {before}");
        }
    }
}

/// Objects without device code, of every format that is written.
fn hosts() -> Vec<Vec<u8>> {
    let mut hosts = vec![example("host.o"), bundling::coff()];
    hosts.extend(elf::all_elf().map(|form| form.build()));
    hosts
}

/// Hosts that bundles can be put into, but offload binaries cannot.
fn more_hosts() -> Vec<Vec<u8>> {
    let mut hosts = hosts();
    hosts.push(b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x0b".to_vec());
    hosts
}

proptest! {
    #[test]
    fn offload_binaries_are_embedded_and_found(
        host in any::<prop::sample::Index>(),
        sections in prop::collection::vec((any::<bool>(), prop::collection::vec(image(60), 0..4)), 1..4),
    ) {
        let mut object = host.get(&hosts()).clone();
        let mut expected = Images::new();
        for (is_v1, images) in &sections {
            let version = if *is_v1 { FormatVersion::V1 } else { FormatVersion::V2 };
            let package = package(version, OffloadKind::HIP, images);
            if package.is_empty() {
                continue;
            }
            let embedding = NewSections::offloading(&object, package.len() as u64).unwrap();
            let made = embedding.to_vec(&[&package]).unwrap();
            let range = embedding.contents_ranges().next().unwrap();
            prop_assert!(made[range.start as usize..range.end as usize] == package);
            object = made;
            expected.extend(images.clone());
        }
        prop_assert_eq!(found(&object), expected);
    }

    #[test]
    fn bundles_are_added_found_and_removed(
        host in any::<prop::sample::Index>(),
        images in prop::collection::btree_map("gfx[2-8][0-9]{4}:xnack[+-]", prop::collection::vec(1..=9_u8, 1..60), 0..4),
        has_host in any::<bool>(),
    ) {
        let host = host.get(&more_hosts()).clone();
        prop_assert!(found(&host).is_empty());
        let ids: Vec<String> = images.keys().map(|id| format!("hip-amdgcn-amd-amdhsa--{id}")).collect();
        let mut entries: Vec<(&str, &[u8])> =
            ids.iter().map(String::as_str).zip(images.values().map(Vec::as_slice)).collect();
        if has_host {
            entries.insert(0, (bundling::HOST, HOST_PLACEHOLDER));
        }
        let object = add(&host, &entries);
        let walked = bundling::walked(&object);
        let read: Vec<(&str, &[u8])> =
            walked.iter().map(|(id, _, bytes)| (&id[..], &bytes[..])).collect();
        prop_assert_eq!(&read, &entries);
        prop_assert!(*remove_bundle_sections(&object).unwrap() == *host);
        // The images that were read, written again, give the same object.
        prop_assert!(add(&host, &read) == object);
    }
}
