//! The listing of a file.

use std::fs::File;
use std::io::{self, Cursor};

use fat_object::{
    ContainerKind, Error, ErrorKind, FileFormat, Finding, Image, Listing, Location, Options,
    Severity, Visitor, copy_image, list, list_with_thin_members, walk,
};
use samples::example_path;

fn listed(name: &str) -> Listing {
    list(File::open(example_path(name)).unwrap(), &Options::default()).unwrap()
}

#[test]
fn an_object_with_a_bundle_is_listed() {
    let listing = listed("hip.o");
    assert_eq!(listing.size(), std::fs::metadata(example_path("hip.o")).unwrap().len());
    assert_eq!(listing.format(), FileFormat::Elf { machine: 62 });
    assert!(listing.findings().is_empty() && listing.is_complete());
    let lines: Vec<_> = listing.images().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines[..3],
        [
            "host-x86_64-unknown-linux-gnu- (empty, 0 bytes) in section:.hip_fatbin/bundle:0",
            "hipv4-amdgcn-amd-amdhsa--gfx1100 (ELF, 3208 bytes) in section:.hip_fatbin/bundle:0",
            "hipv4-amdgcn-amd-amdhsa--gfx9-generic (ELF, 2752 bytes) in section:.hip_fatbin/bundle:0",
        ]
    );
    let image = &listing.images()[1];
    assert_eq!(image.index(), 1);
    assert_eq!(image.container(), ContainerKind::Bundle);
    assert_eq!(image.target().id(), "gfx1100");
    assert_eq!(image.stored_size(), Some(3208));
    assert_eq!(image.path().len(), 2);
    assert!(image.location().file_offset() > Some(image.offset_in_container()));
}

#[test]
fn listings_iterate_by_reference_and_by_value() {
    let mut file = File::open(example_path("hip.o")).unwrap();
    let listing = list(&mut file, &Options::default()).unwrap();
    let borrowed: Vec<_> = listing.images().to_vec();
    assert_eq!(borrowed, listing.images());
    let dynamic: &mut dyn byte_parts::ReadSeek = &mut file;
    assert_eq!(list(dynamic, &Options::default()).unwrap().images(), borrowed);
}

#[test]
fn in_compressed_bundles_nothing_has_an_offset() {
    let listing = listed("hip-ccob-v3.hipfb");
    let image = &listing.images()[1];
    assert_eq!(image.container(), ContainerKind::Ccob);
    assert_eq!((image.stored_size(), image.compression()), (None, None));
    assert_eq!(image.compression_around().unwrap().method(), "zstd");
    assert!(matches!(image.location(), Location::Decompressed(at) if at > 0));
}

#[test]
fn packages_keep_their_strings() {
    let listing = listed("packages.offload");
    let entry = listing.images()[0].offload_binary_entry().unwrap();
    assert_eq!(entry.get("triple"), Some(&b"amdgcn-amd-amdhsa"[..]));
    assert!(entry.strings().len() >= 2);
}

#[test]
fn odd_ids_are_escaped() {
    let layout = bundle_format::layout([("hip-\u{1b}[31m-a-b-c-\n", 4)], 1).unwrap();
    let bundle = layout.to_vec(&[b"BC\xc0\xde"]).unwrap();
    let listing = list(Cursor::new(bundle), &Options::default()).unwrap();
    let line = listing.images()[0].to_string();
    assert_eq!(line, "hip-\\u{1b}[31m-a-b-c-\\n (LLVM bitcode, 4 bytes) in bundle:0");

    let entries = [offload_binary::ImageEntry::new(0)];
    let layout = offload_binary::layout(offload_binary::FormatVersion::V1, &entries).unwrap();
    let package = layout.to_vec(&[b""]).unwrap();
    let listing = list(Cursor::new(package), &Options::default()).unwrap();
    assert_eq!(listing.images()[0].to_string(), "image 0 (empty, 0 bytes) in offload-binary:0");
}

#[test]
fn damage_is_listed_with_its_place() {
    let mut bytes = std::fs::read(example_path("hip.hipfb")).unwrap();
    // The size of the second image.
    let end = bytes.len() as u64;
    let at = 24 + 8 + 24 + "host-x86_64-unknown-linux-gnu-".len();
    bytes[at + 8..at + 16].copy_from_slice(&end.to_le_bytes());
    let listing = list(Cursor::new(&bytes), &Options::default()).unwrap();
    assert!(listing.images().is_empty() && !listing.is_complete());
    let finding = &listing.findings()[0];
    assert_eq!((finding.severity(), finding.location()), (Severity::Error, Location::File(0)));
    assert!(finding.path().is_empty());
    assert_eq!(finding.error().container(), Some(ContainerKind::Bundle));
    assert!(finding.to_string().starts_with("at byte 0x0: bundle entry 1 "), "{finding}");
}

#[test]
fn thin_archives_need_an_opener() {
    let name = "libhip-thin.a";
    let listing = listed(name);
    assert!(!listing.is_complete() && listing.images().is_empty());
    assert_eq!(listing.findings()[0].error().kind(), ErrorKind::ThinMember);

    let open = |name: &[u8]| -> io::Result<Box<dyn byte_parts::ReadSeek>> {
        Ok(Box::new(File::open(example_path(std::str::from_utf8(name).unwrap()))?))
    };
    let file = File::open(example_path(name)).unwrap();
    let listing = list_with_thin_members(file, &Options::default(), open).unwrap();
    assert!(listing.is_complete() && !listing.images().is_empty());
    assert!(matches!(listing.images()[1].location(), Location::ThinMember(_)));
}

#[test]
fn ptx_is_loaded_under_another_name() {
    let id = "cuda-nvptx64-nvidia-cuda--sm_80";
    let layout = bundle_format::layout([(id, 13), (id, 4)], 1).unwrap();
    let bundle = layout.to_vec(&[b".version 7.0\n", b"BC\xc0\xde"]).unwrap();
    let listing = list(Cursor::new(bundle), &Options::default()).unwrap();
    let (ptx, other) = (&listing.images()[0], &listing.images()[1]);
    assert_eq!((ptx.target().id(), ptx.loaded_as().id()), ("sm_80", "compute_80"));
    assert_eq!(ptx.loaded_as().triple(), ptx.target().triple());
    assert_eq!(*other.loaded_as(), *other.target());
}

#[test]
fn images_are_copied_by_their_index() {
    let copied = |index| {
        let mut out = Vec::new();
        let file = File::open(example_path("hip-ccob-v3.o")).unwrap();
        copy_image(file, &Options::default(), index, &mut out).map(|len| (len, out))
    };
    let listing = listed("hip-ccob-v3.o");
    for image in listing.images() {
        let (len, bytes) = copied(image.index()).unwrap();
        assert_eq!((len, bytes.len() as u64), (image.size(), image.size()));
        assert_eq!(FileFormat::sniff(&bytes), image.format());
    }
    let error = copied(listing.images().len()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    // An error of the writer is its own.
    let file = File::open(example_path("hip.o")).unwrap();
    let error = copy_image(file, &Options::default(), 1, &mut [0; 7][..]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}

/// By default a caller gets errors, and no warnings.
#[test]
fn visitors_end_at_errors() {
    struct Indifferent;
    impl Visitor for Indifferent {
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            Ok(())
        }
    }
    let error = walk(Cursor::new(b"CCOB"), &Options::default(), &mut Indifferent).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let inner = error.get_ref().unwrap();
    let finding = inner.downcast_ref::<Finding>().unwrap();
    assert_eq!(finding.error().container(), Some(ContainerKind::Ccob));
    let (text, error) = (error.to_string(), Error::from(error));
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Malformed, text));
    let layout = bundle_format::layout([("odd", 0)], 1).unwrap();
    let bundle = layout.to_vec(&[b""]).unwrap();
    let summary = walk(Cursor::new(bundle), &Options::default(), &mut Indifferent).unwrap();
    assert_eq!((summary.images, summary.findings), (1, 1));
}
