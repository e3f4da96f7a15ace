//! Containers as AdaptiveCpp writes them, and damaged ones.

use fat_object::hcf::{Error, ErrorKind, Hcf};
use samples::hcf::{MARKER, Sample, hcf};

fn parsed(file: &[u8]) -> Result<Hcf, Error> {
    let available = file.len() as u64;
    Hcf::parse(fat_object::hcf::text(file, available)?.unwrap(), available)
}

#[test]
fn images_lie_after_the_text() {
    let samples = [
        Sample::bitcode(&["one", "two"]),
        Sample::new("ptx.sm_70", b".version 7.0\n", &["two"]),
        Sample::new("none", b"", &[]),
    ];
    let file = hcf(&samples);
    let container = parsed(&file).unwrap();
    assert!(container.faults.is_empty());
    assert_eq!(container.end, file.len() as u64);
    assert_eq!(container.images.len(), samples.len());
    let mut images: Vec<_> = container.images.iter().collect();
    // An empty image starts where another one does.
    images.sort_by_key(|image| samples.iter().position(|sample| sample.node == image.node()));
    for (image, sample) in images.into_iter().zip(&samples) {
        let range = image.range();
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert_eq!(file[range], sample.bytes);
        assert_eq!((image.node(), image.format()), (&*sample.node, Some("llvm-ir")));
        assert!(image.kernels().eq(sample.kernels.iter().map(String::as_str)));
    }
}

#[test]
fn the_text_is_found_in_any_prefix_that_has_it() {
    let file = hcf(&[Sample::bitcode(&["kernel"])]);
    let size = file.len() as u64;
    let text = fat_object::hcf::text(&file, size).unwrap().unwrap();
    let needed = text.len() + MARKER.len();
    for len in 0..file.len() {
        let found = fat_object::hcf::text(&file[..len], size).unwrap();
        assert_eq!(found, (len >= needed).then_some(text), "{len}");
    }
    // Nothing after the end of what is available counts.
    let error = fat_object::hcf::text(&file, 100).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::NoMarker, 100));
}

#[test]
fn errors_name_the_place_of_the_damage() {
    let deep = |count: usize| (0..count).map(|n| format!("{{.{n}\n")).collect::<String>();
    let binary = |lines: &str| format!("{{.a\n{{.__binary\n{lines}}}.__binary\n}}.a\n");
    for (lines, says) in [
        ("{.a\n".to_owned(), "node a at 0xc: expected its end"),
        ("{.a\n}.b\n".to_owned(), "byte 0x10: expected the end of the node that was opened last"),
        ("{.a\n{.a\n}.a\n}.a\n".to_owned(), "byte 0x10: expected another name"),
        ("}.root\n".to_owned(), "byte 0xc: expected the end of the node"),
        ("text\n".to_owned(), "byte 0xc: expected key=value, {.node or }.node, found text"),
        ("a\tb\n".to_owned(), "byte 0xc: expected key=value, {.node or }.node, found a\\tb"),
        (deep(33), "expected at most 32 nodes around a node, found {.32"),
        (format!("{{.{}\n", "n".repeat(65_537)), "a name of at most 65536 bytes"),
        (binary("start=0\n"), "node __binary at 0x10: expected size="),
        (binary("size=0\n"), "node __binary at 0x10: expected start="),
        (binary("start=-1\n"), "byte 0x1b: expected a decimal number of 64 bits, found -1"),
        (binary("start=18446744073709551616\n"), "expected a decimal number of 64 bits"),
        (binary("start=0\nsize=5\n"), "image a at 0 of 5 bytes: expected its end in the 4 bytes"),
        (binary("start=18446744073709551615\nsize=2\n"), "of 2 bytes: expected its end in the 4"),
        (binary("start=0\nsize=2\n") + &binary("start=1\nsize=3\n"), "overlaps another image"),
    ] {
        let file = format!("object-id=1\n{lines}{MARKER}code");
        let faults = match parsed(file.as_bytes()) {
            Ok(container) => container.faults,
            Err(error) => vec![error],
        };
        let found = faults[0].to_string();
        assert!(found.starts_with("malformed HCF container: "), "{found}");
        assert!(found.contains(says), "{says}: {found}");
    }
    let text = parsed(format!("{{.a\n}}.a\n{MARKER}").as_bytes()).unwrap_err();
    assert!(text.to_string().ends_with("node root at 0x0: expected object-id=, found none"));
    for file in ["object-id=1\n", "object-id=1\n\0__hipsycl_hcf_binary_appendix"] {
        let found = parsed(file.as_bytes()).unwrap_err();
        assert_eq!((found.kind(), found.offset()), (ErrorKind::NoMarker, 12));
        assert!(found.to_string().contains("found no such marker in 12 bytes"), "{found}");
    }
}
