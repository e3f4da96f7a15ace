//! Packages of version 3, plain and compressed, wherever packages are found.

use std::io::Cursor;

use fat_object::{
    Enter, Event, Listing, Location, Options, Walk, decompress_offload_binary, has_device_code,
    list,
};
use offload_binary::{CompressedBinary, FormatVersion, ImageEntry};

use ccob::{Method, WriteOptions};
use offload_binary::OffloadKind;

const HEADER: usize = 40;

fn package(version: FormatVersion, images: &[&[u8]]) -> Vec<u8> {
    let entry = |image: &&[u8]| {
        ImageEntry::new(image.len() as u64)
            .with_offload_kind(OffloadKind::HIP)
            .with_string("arch", "gfx90a")
            .with_string("triple", "amdgcn-amd-amdhsa")
    };
    let entries: Vec<_> = images.iter().map(entry).collect();
    offload_binary::layout(version, &entries).unwrap().to_vec(images).unwrap()
}

fn plain(image: &[u8]) -> Vec<u8> {
    package(FormatVersion::V3, &[image])
}

fn compressed_with(plain: &[u8], method: Method) -> Vec<u8> {
    let options = WriteOptions::default().with_method(method);
    let stream = ccob::compress_stream(&plain[HEADER..], &options).unwrap();
    let images = offload_binary::OffloadBinary::parse(plain).unwrap().entries().len() as u64;
    let header = CompressedBinary::new(plain.len() as u64, images, stream.len() as u64).unwrap();
    let mut file = [&header.header()[..], &stream].concat();
    file.resize(file.len().next_multiple_of(8), 0);
    file
}

fn compressed(image: &[u8]) -> Vec<u8> {
    compressed_with(&plain(image), Method::ZSTD)
}

fn listed(data: &[u8]) -> Listing {
    list(Cursor::new(data), &Options::default()).unwrap()
}

fn only_finding(data: &[u8], options: &Options) -> String {
    let listing = list(Cursor::new(data), options).unwrap();
    assert_eq!(listing.findings().len(), 1, "{:?}", listing.findings());
    listing.findings()[0].to_string()
}

fn put(data: &mut [u8], at: usize, value: u64) {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn packages_are_compressed_and_decompressed() {
    let plain = package(FormatVersion::V3, &[&[7; 3000], b"", b"second"]);
    for method in [Method::ZSTD, Method::ZLIB] {
        let mut file = compressed_with(&plain, method);
        assert!(file.len() < plain.len() / 5 && file.len().is_multiple_of(8));
        assert_eq!(decompress_offload_binary(&file, plain.len() as u64).unwrap(), plain);
        // The bytes after it are not looked at, and at the end of a file no padding is missed.
        let header = CompressedBinary::parse_prefix(&file, file.len() as u64).unwrap().unwrap();
        assert_eq!(header.padded_size(), file.len() as u64);
        file.truncate(usize::try_from(header.size()).unwrap());
        assert_eq!(decompress_offload_binary(&file, u64::MAX).unwrap(), plain);
        file.extend(b"more");
        assert_eq!(decompress_offload_binary(&file, u64::MAX).unwrap(), plain);

        let error = decompress_offload_binary(&file, plain.len() as u64 - 1).unwrap_err();
        let size = plain.len();
        assert_eq!(
            error.to_string(),
            format!(
                "compressed package expands to {size} bytes, more than the limit of {}",
                size - 1
            )
        );
    }
    assert_eq!(decompress_offload_binary(&plain, 0).unwrap(), plain);
}

#[test]
fn each_image_of_a_concatenation_is_found() {
    let file = [
        compressed_with(&plain(b"one"), Method::ZSTD),
        package(FormatVersion::V1, &[b"two"]),
        compressed_with(&plain(b"three"), Method::ZLIB),
        vec![0; 24],
        package(FormatVersion::V2, &[b"four"]),
        plain(b"five"),
        compressed(b"six"),
    ]
    .concat();
    let listing = listed(&file);
    assert!(listing.is_complete());
    let sizes: Vec<_> = listing.images().iter().map(|image| image.size()).collect();
    assert_eq!(sizes, [3, 3, 5, 4, 4, 3]);
    let methods: Vec<_> = listing
        .images()
        .iter()
        .map(|image| image.compression_around().map(|c| c.method()))
        .collect();
    assert_eq!(methods, [Some("zstd"), None, Some("zlib"), None, None, Some("zstd")]);
    let image = &listing.images()[2];
    assert_eq!(
        image.to_string(),
        "hip-amdgcn-amd-amdhsa--gfx90a (unknown, 5 bytes) in offload-binary:2"
    );
    assert_eq!(image.location(), Location::Decompressed(image.offset_in_container()));
    let mut bytes = Vec::new();
    fat_object::copy_image(Cursor::new(&file), &Options::default(), 2, &mut bytes).unwrap();
    assert_eq!(bytes, b"three");
}

#[test]
fn padding_is_not_read() {
    let one = compressed(b"one");
    let end = CompressedBinary::parse_prefix(&one, 1000).unwrap().unwrap().size();
    let end = usize::try_from(end).unwrap();
    assert!(end < one.len(), "an image without padding after its package: change it");
    let mut two = one.repeat(2);
    two[end..one.len()].fill(1);
    assert_eq!(listed(&two).images().len(), 2);
    assert!(listed(&two).is_complete());
    // Without padding the second one is at the wrong place.
    let close = [&one[..end], &one[..]].concat();
    assert!(!listed(&close).is_complete());
}

#[test]
fn nested_packages_share_the_limits() {
    let inner = compressed(&[0; 100_000]);
    let nested = compressed(&inner);
    assert_eq!(listed(&nested).images().len(), 2);
    let listing = listed(&nested);
    assert_eq!(listing.images()[1].size(), 100_000);
    assert_eq!(listing.images()[1].path().len(), 3);

    let options = Options::default().with_max_decompressed(100_200);
    let finding = only_finding(&nested, &options);
    assert!(finding.contains("more than the limit of "), "{finding}");
    let options = Options::default().with_max_expansion(0).with_max_decompressed(250_000);
    let row = compressed(&[0; 100_000]).repeat(3);
    let finding = only_finding(&row, &options);
    assert!(finding.contains("bytes in total"), "{finding}");

    let mut deep = compressed(b"x");
    for _ in 0..40 {
        deep = compressed(&deep);
    }
    let finding = only_finding(&deep, &Options::default());
    assert!(finding.contains("nested more than 32 deep"), "{finding}");
}

#[test]
fn a_false_size_reserves_no_memory() {
    for (size, expected) in [
        (1 << 50, "expands to 1125899906842624 bytes, more than the limit of 2147483648"),
        (u64::MAX - 7, "more than the limit of 2147483648"),
        (1 << 30, "bytes in total"),
        (1 << 20, "compressed package claims an uncompressed size of 1048536 bytes, its "),
        (184, "compressed package "),
    ] {
        let mut file = compressed(&[0; 1000]);
        put(&mut file, 32, size);
        let options = Options::default().with_max_expansion(0);
        let options = match size {
            // More than is left, and less than may be held at a time.
            0x4000_0000 => {
                file = [compressed(&[0; 1000]), file].concat();
                options.with_max_decompressed((1 << 30) + 1)
            }
            _ => options,
        };
        let finding = only_finding(&file, &options);
        assert!(finding.contains(expected), "{finding}");
        assert!(!finding.contains("bundle"), "{finding}");
    }
    let mut file = compressed_with(&plain(&[0; 1000]), Method::ZLIB);
    put(&mut file, 32, 1 << 20);
    let finding = only_finding(&file, &Options::default());
    assert!(finding.contains("compressed package expands to 1128 bytes, less than"), "{finding}");
    put(&mut file, 32, 184);
    let finding = only_finding(&file, &Options::default());
    assert!(finding.contains("compressed package expands to more than the 144 bytes"), "{finding}");
}

#[test]
fn damage_is_found_with_its_place() {
    let good = compressed(&[0; 1000]);
    let end = good.len();
    let size = CompressedBinary::parse_prefix(&good, 1000).unwrap().unwrap().size();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = good.clone();
        change(&mut file);
        only_finding(&file, &Options::default())
    };
    // No zstd frame starts here, and no zlib stream.
    let finding = with(&|file| file[HEADER] ^= 1);
    assert!(finding.contains("has a faulty zlib stream at 0x2a"), "{finding}");
    let finding = with(&|file| put(file, 8, size - 1));
    assert!(finding.contains("faulty zstd stream at 0x"), "{finding}");
    let finding = with(&|file| {
        file.resize(end + 8, 0);
        put(file, 8, end as u64 + 8);
    });
    assert!(finding.contains("stream"), "{finding}");
    let finding = with(&|file| put(file, 8, 1 << 40));
    assert!(finding.contains("has size 0x10000000000, but only"), "{finding}");
    let finding = with(&|file| put(file, 16, 32));
    assert!(finding.contains("has its entries at 0x20, expected 0x28"), "{finding}");
    let finding = with(&|file| put(file, 24, 1 << 32));
    assert!(finding.contains("has 4294967296 entries at 0x28"), "{finding}");

    // A stream without fault that holds no package.
    let mut body = plain(&[0; 1000]);
    put(&mut body, 64, 1 << 40);
    let stream = ccob::compress_stream(&body[HEADER..], &WriteOptions::default()).unwrap();
    let header = CompressedBinary::new(body.len() as u64, 1, stream.len() as u64).unwrap();
    let file = [&header.header()[..], &stream].concat();
    let finding = only_finding(&file, &Options::default());
    assert!(
        finding.starts_with(
            "offload-binary:0 at byte 0x0 of the decompressed data: offload binary entry 0"
        ),
        "{finding}"
    );
}

#[test]
fn linkers_see_device_code_in_compressed_packages() {
    let file = compressed(b"code");
    assert!(has_device_code(&file).unwrap());
    assert!(has_device_code(&file[..file.len() / 2]).is_err());
    assert!(has_device_code(&plain(b"code")).unwrap());
}

#[test]
fn skippable_frames_are_zstandard() {
    let body = plain(&[1; 500]);
    let frame = ccob::compress_stream(&body[HEADER..], &WriteOptions::default()).unwrap();
    let stream = [&b"\x50\x2a\x4d\x18\x03\0\0\0abc"[..], &frame].concat();
    let header = CompressedBinary::new(body.len() as u64, 1, stream.len() as u64).unwrap();
    let file = [&header.header()[..], &stream].concat();
    match decompress_offload_binary(&file, 1 << 20) {
        Ok(found) => assert_eq!(found, body),
        Err(error) => assert!(error.to_string().contains("zstd"), "{error}"),
    }
}

#[test]
fn compressed_packages_can_be_skipped() {
    let file = [compressed(b"one"), plain(b"two")].concat();
    let mut walk = Walk::new(Cursor::new(&file), &Options::default()).unwrap();
    let mut sizes = Vec::new();
    while let Some(event) = walk.next().unwrap() {
        match event {
            Event::Enter(container) if container.compression().is_some() => {
                walk.answer(Enter::Skip);
            }
            Event::Image(image) => sizes.push(image.size()),
            Event::Finding(finding) => panic!("{finding}"),
            _ => {}
        }
    }
    assert_eq!(sizes, [3]);
}
