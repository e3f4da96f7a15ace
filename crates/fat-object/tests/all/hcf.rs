//! HCF containers of AdaptiveCpp, as files and in host files.

use std::io::Cursor;

use fat_object::{ContainerKind, FileFormat, Listing, Options, list, list_slice};
use samples::elf::{elf, progbits};
use samples::hcf::{MARKER, Sample, hcf, text};

fn listing(file: &[u8]) -> Listing {
    let lent = list_slice(file, &Options::default()).unwrap();
    let read = list(Cursor::new(file), &Options::default()).unwrap();
    assert_eq!(lent.images(), read.images());
    assert_eq!(findings(&lent), findings(&read));
    lent
}

fn findings(listing: &Listing) -> Vec<String> {
    listing.findings().iter().map(ToString::to_string).collect()
}

fn path(listing: &Listing, index: usize) -> String {
    let path = listing.images()[index].path();
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

fn ptx() -> Sample {
    Sample::new("ptx.sm_70", b".version 7.0\n.target sm_70\n.address_size 64\n", &["two"])
}

#[test]
fn a_file_has_an_image_for_each_node() {
    let images = [Sample::bitcode(&["one", "two"]), ptx(), Sample::new("none", b"", &[])];
    let file = hcf(&images);
    let found = listing(&file);
    assert_eq!(found.format(), FileFormat::Hcf);
    assert_eq!(findings(&found), [""; 0]);
    assert_eq!(found.images().len(), 3);
    for (image, expected) in found.images().iter().zip(&images) {
        assert_eq!(image.container(), ContainerKind::Hcf);
        assert_eq!(image.bytes_in(&file).unwrap(), expected.bytes);
        let hcf = image.hcf().unwrap();
        assert_eq!((hcf.node(), hcf.format()), (&*expected.node, Some("llvm-ir")));
        assert!(hcf.kernels().eq(expected.kernels.iter().map(String::as_str)));
    }
    let kinds: Vec<_> = found.images().iter().map(|image| image.target().to_string()).collect();
    assert_eq!(kinds[0], "sycl-");
    assert!(kinds[1].starts_with("sycl-nvptx64-nvidia-cuda") && kinds[1].ends_with("sm_70"));
    assert_eq!(path(&found, 0), "hcf:0");
}

#[test]
fn host_files_are_scanned_for_containers() {
    let container = hcf(&[Sample::bitcode(&["kernel"])]);
    // The magic lies across the pieces that are read, too.
    for before in [1, 64, 262_070, 262_075, 262_079, 262_143 - 64, 300_000] {
        let section = [&vec![b'x'; before][..], &container, b"object-id=", &container].concat();
        let mut host = elf(true, false);
        host.sections = vec![progbits(".rodata", &section)];
        let file = host.build();
        let found = listing(&file);
        assert_eq!((findings(&found), found.images().len()), (vec![], 2), "{before}");
        assert_eq!(path(&found, 0), format!("section:.rodata at {:#x}/hcf:0", 64 + before));
        assert!(found.images()[0].path()[0].is_found_by_scan());
        let without = list_slice(&file, &Options::default().with_scan(false)).unwrap();
        assert!(without.images().is_empty());
    }
}

#[test]
fn a_magic_alone_is_not_a_container() {
    let container = hcf(&[Sample::bitcode(&["kernel"])]);
    let cut = &container[..container.len() - 1];
    let empty = [text(&[]).as_bytes(), MARKER.as_bytes()].concat();
    for bytes in [b"object-id=1\n".as_slice(), b"object-id=x\n", b"obje", cut, &empty] {
        let mut host = elf(true, false);
        host.sections = vec![progbits(".rodata", &[b"x", bytes, b"\0"].concat())];
        let found = listing(&host.build());
        // The byte after the cut container is its last one.
        let expected = usize::from(bytes == cut);
        assert_eq!((findings(&found), found.images().len()), (vec![], expected));
        host.sections = vec![progbits(".rodata", &[b"x", bytes].concat())];
        assert_eq!(listing(&host.build()).images().len(), 0);
    }
}

#[test]
fn damage_is_a_finding() {
    let found = findings(&listing(b"object-id=1\n\0__hipsycl_hcf_binary_appendix"));
    assert!(found[0].contains("found no such marker in 12 bytes"), "{found:?}");
    let found = findings(&listing(format!("object-id=1\n{{.a\n{MARKER}code").as_bytes()));
    assert!(found[0].ends_with("node a at 0xc: expected its end, found none"), "{found:?}");
    // Other images are found nevertheless.
    let file = hcf(&[Sample::bitcode(&[]), ptx()]);
    let found = listing(&file[..file.len() - 1]);
    assert_eq!((found.images().len(), found.findings().len()), (1, 1));
}

#[test]
fn long_names_of_kernels_are_counted_for_each_image() {
    let kernel = "k".repeat(60_000);
    let images: Vec<_> = (0..2000).map(|n| Sample::new(&format!("i{n}"), b"x", &[])).collect();
    let providers: String = (0..2000).map(|n| format!("{{.i{n}\n}}.i{n}\n")).collect();
    let text = text(&images).replace(
        "{.kernels\n",
        &format!("{{.kernels\n{{.{kernel}\n{{.image-providers\n{providers}}}.image-providers\n}}.{kernel}\n"),
    );
    let file = [text.as_bytes(), MARKER.as_bytes(), &[b'x'; 2000]].concat();
    let found = listing(&file);
    assert!(found.images().len() < 1500, "{}", found.images().len());
    assert!(findings(&found)[0].contains("names and strings exceed the limit of"));
}
