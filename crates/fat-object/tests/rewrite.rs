//! Compressing and decompressing bundles that lie one after the other.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test says no"
)]

use std::io::Cursor;

use bundle_format::Layout;
use bundle_format::text::Leader;
use ccob::{Limits, Method, Version, WriteOptions};
use fat_object::{
    Change, CompressOptions, Error, ImageFormat, RewriteError, Rewritten, compress_bundles,
    decompress_bundles,
};

/// A HIP fat binary whose code is not the same for two seeds.
fn bundle(seed: u32, size: u32) -> Vec<u8> {
    let code: Vec<u8> = (0..size).map(|i| ((i / 7 * seed) % 251) as u8 | 1).collect();
    let entries = [
        ("host-x86_64-unknown-linux-gnu-", 0),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a", u64::from(size)),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", u64::from(size)),
    ];
    Layout::new(entries, 4096).unwrap().to_vec(&[b"", &code, &code]).unwrap()
}

/// Bundles as a linker puts them: each at a multiple of 4096, the last not padded.
fn paged(bundles: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for bundle in bundles {
        all.resize(all.len().next_multiple_of(4096), 0);
        all.extend(bundle);
    }
    all
}

fn ccob(bundle: &[u8], version: Version, method: Method) -> Vec<u8> {
    ccob::compress(bundle, &WriteOptions::default().with_version(version).with_method(method))
        .unwrap()
}

fn compress_with(input: &[u8], options: &CompressOptions) -> (Vec<u8>, Rewritten) {
    let mut out = Vec::new();
    let report = compress_bundles(&mut Cursor::new(input), &mut out, options).unwrap();
    check(&report, input, &out);
    (out, report)
}

fn compress(input: &[u8]) -> (Vec<u8>, Rewritten) {
    compress_with(input, &CompressOptions::default())
}

fn decompress(input: &[u8]) -> (Vec<u8>, Rewritten) {
    let mut out = Vec::new();
    let report = decompress_bundles(&mut Cursor::new(input), &mut out, &Limits::default()).unwrap();
    check(&report, input, &out);
    (out, report)
}

/// What is true of every report.
fn check(report: &Rewritten, input: &[u8], output: &[u8]) {
    assert_eq!(report.input_size, input.len() as u64);
    assert_eq!(report.output_size, output.len() as u64);
    for bundle in &report.bundles {
        let at = |offset: u64| usize::try_from(offset).unwrap();
        let range = |r: &std::ops::Range<u64>| at(r.start)..at(r.end);
        let (before, after) = (&input[range(&bundle.input)], &output[range(&bundle.output)]);
        assert_eq!(before == after, bundle.change == Change::Kept || before == after);
        for (at, bytes) in [(bundle.input.start, before), (bundle.output.start, after)] {
            let magic = bytes.starts_with(b"CCOB") || bytes.starts_with(b"__CLANG_OFFLOAD_BUNDLE");
            assert!(magic || bytes.starts_with(b"\n"), "at {at}");
        }
        if bundle.input.start % 4096 == 0 {
            assert_eq!(bundle.output.start % 4096, 0);
        }
    }
}

fn changes(report: &Rewritten) -> Vec<Change> {
    report.bundles.iter().map(|bundle| bundle.change).collect()
}

fn compress_error(input: &[u8]) -> RewriteError {
    let options = CompressOptions::default();
    compress_bundles(&mut Cursor::new(input), &mut Vec::new(), &options).unwrap_err()
}

fn decompress_error(input: &[u8]) -> RewriteError {
    decompress_bundles(&mut Cursor::new(input), &mut Vec::new(), &Limits::default()).unwrap_err()
}

#[test]
fn one_bundle_there_and_back() {
    let plain = bundle(1, 10_000);
    let (compressed, report) = compress(&plain);
    assert_eq!(changes(&report), [Change::Compressed]);
    assert_eq!(report.bundles[0].uncompressed_size, plain.len() as u64);
    assert!(compressed.starts_with(b"CCOB\x03\0"));
    assert!(compressed.len() < plain.len());
    let (back, report) = decompress(&compressed);
    assert_eq!(changes(&report), [Change::Decompressed]);
    assert!(back == plain);
}

#[test]
fn every_version_and_method_there_and_back() {
    let plain = paged(&[bundle(1, 10_000), bundle(2, 5000)]);
    for version in [Version::V1, Version::V2, Version::V3] {
        for method in [Method::ZLIB, Method::ZSTD] {
            let write = WriteOptions::default().with_version(version).with_method(method);
            let options = CompressOptions::default().with_write(write);
            let (compressed, report) = compress_with(&plain, &options);
            assert_eq!(changes(&report), [Change::Compressed; 2]);
            let (back, _) = decompress(&compressed);
            assert!(back == plain, "{version} {method}");
        }
    }
}

#[test]
fn bundles_at_pages_come_back_byte_for_byte() {
    let one = bundle(3, 4096 * 2);
    let mut extra = paged(&[bundle(1, 9000), bundle(2, 1)]);
    // pages of zeros in front of a bundle, and zeros behind the last
    extra.resize(extra.len().next_multiple_of(4096) + 3 * 4096, 0);
    extra.extend(&one);
    extra.resize(extra.len() + 77, 0);
    let mut leading = vec![0; 8192];
    leading.extend(&one);
    // a bundle that ends at a page
    let full = paged(&[one.clone(), one.clone(), bundle(5, 100)]);
    for plain in [paged(&[bundle(1, 9000), bundle(2, 1), bundle(3, 5)]), extra, leading, full] {
        let (compressed, _) = compress(&plain);
        let (back, _) = decompress(&compressed);
        assert!(back == plain);
    }
}

#[test]
fn bundles_off_pages_keep_the_zeros_in_front() {
    let mut plain = bundle(1, 3000);
    let first_end = plain.len() as u64;
    plain.extend([0; 24]);
    plain.extend(bundle(2, 3000));
    let (compressed, report) = compress(&plain);
    assert_eq!(report.bundles[1].input.start, first_end + 24);
    assert_eq!(report.bundles[1].output.start, report.bundles[0].output.end + 24);
    assert!(decompress(&compressed).0 == plain);
}

#[test]
fn mixed_files_change_only_what_is_to_change() {
    let (one, two, three) = (bundle(1, 9000), bundle(2, 5000), bundle(3, 200));
    let mixed = paged(&[
        ccob(&one, Version::V2, Method::ZLIB),
        two.clone(),
        ccob(&three, Version::V3, Method::ZSTD),
    ]);
    let plain = paged(&[one.clone(), two.clone(), three.clone()]);

    let (compressed, report) = compress(&mixed);
    assert_eq!(changes(&report), [Change::Kept, Change::Compressed, Change::Kept]);
    assert_eq!(report.changed(), 1);
    assert_eq!(report.bundles[0].uncompressed_size, one.len() as u64);
    assert!(decompress(&compressed).0 == plain);

    let (back, report) = decompress(&mixed);
    assert_eq!(changes(&report), [Change::Decompressed, Change::Kept, Change::Decompressed]);
    assert!(back == plain);

    let options = CompressOptions::default().with_recompress(true);
    let (again, report) = compress_with(&mixed, &options);
    assert_eq!(changes(&report), [Change::Recompressed, Change::Compressed, Change::Recompressed]);
    assert!(again == compress(&plain).0);
}

#[test]
fn nothing_to_do_is_the_same_file() {
    let plain = paged(&[bundle(1, 9000), bundle(2, 5000)]);
    let (same, report) = decompress(&plain);
    assert!(same == plain);
    assert_eq!(report.changed(), 0);
    let (compressed, _) = compress(&plain);
    let (same, report) = compress(&compressed);
    assert!(same == compressed);
    assert_eq!(report.changed(), 0);
    for nothing in [&[][..], &[0; 5000]] {
        let (same, report) = compress(nothing);
        assert_eq!((&same[..], report.bundles.len()), (nothing, 0));
    }
}

#[test]
fn version_1_is_kept_by_the_end_of_its_stream() {
    let (one, two) = (bundle(1, 90_000), bundle(2, 5000));
    let old = paged(&[
        ccob(&one, Version::V1, Method::ZSTD),
        ccob(&two, Version::V1, Method::ZLIB),
        one.clone(),
    ]);
    let (compressed, report) = compress(&old);
    assert_eq!(changes(&report), [Change::Kept, Change::Kept, Change::Compressed]);
    assert!(decompress(&compressed).0 == paged(&[one.clone(), two, one]));
}

#[test]
fn text_bundles_stand_alone() {
    let text = bundle_format::text::to_vec(
        Leader::Hash,
        &[("host-x86_64-unknown-linux-gnu-", b"host\n"), ("hip-amdgcn-amd-amdhsa--gfx906", b"x\n")],
    )
    .unwrap();
    let (compressed, report) = compress(&text);
    assert_eq!(changes(&report), [Change::Compressed]);
    assert!(decompress(&compressed).0 == text);
    assert_eq!(decompress(&text).1.changed(), 0);

    let text_ccob = ccob(&text, Version::V3, Method::ZSTD);
    for input in [
        [text_ccob.clone(), text_ccob.clone()].concat(),
        [bundle(1, 100), text_ccob.clone()].concat(),
        [text_ccob.clone(), bundle(1, 100)].concat(),
    ] {
        let error = decompress_error(&input);
        assert!(matches!(error, RewriteError::TextNotAlone { .. }), "{error}");
    }
    let error = compress_error(&[bundle(1, 100), text].concat());
    assert!(matches!(error, RewriteError::TextNotAlone { offset } if offset > 0), "{error}");
}

#[test]
fn what_is_no_bundle_is_named() {
    let error = compress_error(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    assert!(matches!(error, RewriteError::NotABundle { offset: 0, .. }), "{error}");
    assert_eq!(error.to_string(), "at byte 0x0: a bundle, compressed or not, expected, ELF found");
    let mut input = bundle(1, 100);
    let end = input.len() as u64;
    input.extend(b"\0\0hello you there");
    let error = decompress_error(&input);
    let RewriteError::Unknown { offset, first } = &error else { panic!("{error}") };
    assert_eq!((*offset, &first[..]), (end + 2, &b"hello yo"[..]));

    let nested = ccob(&ccob(&bundle(1, 1), Version::V3, Method::ZSTD), Version::V3, Method::ZLIB);
    let error = decompress_error(&nested);
    let RewriteError::HoldsNoBundle { offset: 0, format } = &error else { panic!("{error}") };
    assert_eq!(*format, ImageFormat::CompressedBundle);
}

#[test]
fn damage_is_reported_where_it_is() {
    let mut input = paged(&[
        ccob(&bundle(1, 900), Version::V3, Method::ZSTD),
        ccob(&bundle(2, 900), Version::V3, Method::ZSTD),
    ]);
    input[4096 + 24] ^= 1; // the hash of the second
    let error = decompress_error(&input);
    let RewriteError::Bundle { offset: 0x1000, error: inner } = &error else { panic!("{error}") };
    assert!(matches!(**inner, Error::Ccob(ccob::Error::HashMismatch { .. })), "{error}");
    assert!(error.to_string().starts_with("at byte 0x1000: compressed bundle hash mismatch"));
    // compressing does not touch it
    assert_eq!(compress(&input).1.changed(), 0);

    let plain = bundle(1, 900);
    let error = compress_error(&plain[..plain.len() - 1]);
    let RewriteError::Bundle { offset: 0, error: inner } = &error else { panic!("{error}") };
    assert!(matches!(**inner, Error::Bundle(bundle_format::Error::EntryBeyondEnd { .. })));
}

#[test]
fn limits_hold() {
    let plain = bundle(1, 9000);
    let input = ccob(&plain, Version::V3, Method::ZSTD);
    let limits = Limits::default().with_max_uncompressed(plain.len() as u64 - 1);
    let mut out = Vec::new();
    let error = decompress_bundles(&mut Cursor::new(&input), &mut out, &limits).unwrap_err();
    let RewriteError::Bundle { error, .. } = &error else { panic!("{error}") };
    assert!(matches!(**error, Error::Ccob(ccob::Error::TooLarge { .. })), "{error}");
}

#[test]
fn no_damage_makes_a_panic() {
    let sample = paged(&[
        ccob(&bundle(1, 100), Version::V1, Method::ZLIB),
        bundle(2, 10),
        ccob(&bundle(3, 100), Version::V3, Method::ZSTD),
    ]);
    let options = CompressOptions::default().with_recompress(true);
    let limits = Limits::default().with_max_uncompressed(1 << 20);
    let options = options.with_limits(limits.clone());
    let run = |input: &[u8]| {
        let _ = compress_bundles(&mut Cursor::new(input), &mut Vec::new(), &options);
        let _ = decompress_bundles(&mut Cursor::new(input), &mut Vec::new(), &limits);
    };
    // all of what is no padding, and some of that
    let places: Vec<_> = (0..sample.len()).filter(|&i| sample[i] != 0 || i % 512 == 0).collect();
    for &end in places.iter().step_by(9) {
        run(&sample[..end]);
    }
    for &at in places.iter().step_by(3) {
        let mut damaged = sample.clone();
        damaged[at] ^= 0x81;
        run(&damaged);
    }
}
