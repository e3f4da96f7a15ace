//! A walk of tables only: the same images, from the first kilobytes of compressed bundles.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use bundle_format::text::{self, Leader};
use ccob::{Method, Version, WriteOptions};
use fat_object::{
    FileFormat, Finding, Image, ImageInfo, Listing, Options, Visitor, copy_image, list, walk,
    walk_with_threads,
};
use samples::bundle::{GFX90A, GFX1100, HOST, bundle};
use samples::{example, examples, noise};

const SPIRV: &str = "hip-spirv64-amd-amdhsa--amdgcnspirv";
const NVIDIA: &str = "openmp-nvptx64-nvidia-cuda--sm_80";

fn compressed_as(bundle: &[u8], version: Version, method: Method) -> Vec<u8> {
    let options = WriteOptions::default().with_version(version).with_method(method);
    ccob::compress(bundle, &options).unwrap()
}

fn compressed(bundle: &[u8]) -> Vec<u8> {
    compressed_as(bundle, Version::V3, Method::ZSTD)
}

fn whole(file: &[u8]) -> Listing {
    list(Cursor::new(file), &Options::default()).unwrap()
}

fn by_table(file: &[u8]) -> Listing {
    list(Cursor::new(file), &Options::default().with_tables_only(true)).unwrap()
}

/// Everything but the format.
fn told(image: &ImageInfo) -> String {
    format!(
        "{} {:?} {:?} {:?} {:?} {:?} {} {} {:?} {:?} {:?}",
        image.index(),
        image.path(),
        image.target(),
        image.id(),
        image.bundle_form(),
        image.location(),
        image.offset_in_container(),
        image.size(),
        image.stored_size(),
        image.compression(),
        image.compression_around(),
    )
}

fn findings(listing: &Listing) -> Vec<String> {
    listing.findings().iter().map(ToString::to_string).collect()
}

/// Compares listings; returns how many images were not read.
#[track_caller]
fn assert_same(file: &[u8]) -> usize {
    let (whole, by_table) = (whole(file), by_table(file));
    assert!(by_table.images().iter().map(told).eq(whole.images().iter().map(told)), "{by_table:?}");
    assert_eq!(findings(&by_table), findings(&whole));
    for (read, image) in whole.images().iter().zip(by_table.images()) {
        let expected = match image.compression_around() {
            Some(_) if image.format() == FileFormat::NotRead => FileFormat::NotRead,
            _ => read.format(),
        };
        assert_eq!(image.format(), expected);
        assert_eq!(image.format() == FileFormat::Empty, image.size() == 0);
    }
    by_table.images().iter().filter(|image| image.format() == FileFormat::NotRead).count()
}

#[test]
fn tables_of_real_files_match_their_bundles() {
    let not_read: usize = examples().iter().map(|(_, file)| assert_same(file)).sum();
    assert!(not_read >= 8, "{not_read}");
    for name in ["hip-ccob-v2.hipfb", "hip-ccob-v3.hipfb", "hip-ccob-v3.o", "hip-two-units-ccob.so"]
    {
        assert_ne!(assert_same(&example(name)), 0, "{name}");
    }
}

#[test]
fn code_for_amd_gpus_is_not_read() {
    let code = noise(1, 5000);
    let plain = bundle(&[(HOST, b""), (GFX90A, &code), (GFX1100, b""), (SPIRV, &code)], 4096);
    for version in [Version::V2, Version::V3] {
        for method in [Method::ZLIB, Method::ZSTD] {
            let file = compressed_as(&plain, version, method);
            assert_eq!(assert_same(&file), 2);
            let two = [&file[..], &[0; 100], &file].concat();
            assert_eq!(assert_same(&two), 4);
        }
    }
}

/// Bytes after the table cost nothing.
#[test]
fn the_first_block_is_all_that_is_read() {
    struct Counted<'a>(Cursor<&'a [u8]>, u64);
    impl Read for Counted<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = self.0.read(to)?;
            self.1 += n as u64;
            Ok(n)
        }
    }
    impl Seek for Counted<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    let code = noise(1, 400_000);
    let one = compressed(&bundle(&[(HOST, b""), (GFX90A, &code), (GFX1100, &code)], 4096));
    let file = [&one[..], &one, &one].concat();
    let mut read = Counted(Cursor::new(&file), 0);
    let listing = list(&mut read, &Options::default().with_tables_only(true)).unwrap();
    assert_eq!(listing.images().len(), 9);
    // A block of 128 KiB for each, and as much that is read ahead.
    assert!(read.1 < 3 * 270_000, "{} of {}", read.1, file.len());
    let mut read = Counted(Cursor::new(&file), 0);
    let _ = list(&mut read, &Options::default()).unwrap();
    assert!(read.1 >= file.len() as u64);
}

/// Bundles whose table does not tell everything.
#[test]
fn bundles_are_read_where_the_table_is_not_enough() {
    let code = noise(1, 500);
    let object = example("hip.o");
    let plain = bundle(&[(HOST, b""), (GFX90A, &code)], 4096);
    let text = text::to_vec(Leader::Hash, &[(GFX90A, &b"one\n"[..]), (GFX1100, b"two\n")]).unwrap();
    for (bundle, what) in [
        (bundle(&[(HOST, &object), (GFX90A, &code)], 4096), "a host object with device code"),
        (bundle(&[(GFX90A, &code), (HOST, &object)], 4096), "the same after other code"),
        (bundle(&[(GFX90A, &example("libhip.a")), (GFX1100, &code)], 4096), "an archive"),
        (bundle(&[(NVIDIA, &code), (GFX90A, &code)], 4096), "code for an NVIDIA GPU"),
        (bundle(&[("no ID at all", &code)], 4096), "an entry without a known ID"),
        ([&plain[..], &plain].concat(), "two bundles"),
        ([&plain[..], b"more"].concat(), "a bundle and something else"),
        (text, "a text bundle"),
        (b"nothing that is known".to_vec(), "something else"),
        (plain[..40].to_vec(), "a cut table"),
        (plain[..plain.len() - 1].to_vec(), "a cut image"),
    ] {
        assert_eq!(assert_same(&compressed(&bundle)), 0, "{what}");
    }
    // The one in it is a bundle like any other.
    assert_eq!(assert_same(&compressed(&compressed(&plain))), 1);
    let file = compressed_as(&plain, Version::V1, Method::ZSTD);
    assert_eq!(assert_same(&[&file[..], &file].concat()), 0);

    // Without a look into images, their kind does not matter.
    let file = compressed(&bundle(&[(HOST, &object), (NVIDIA, &code)], 4096));
    let options = Options::default().with_enter_images(false).with_tables_only(true);
    let listing = list(Cursor::new(&file), &options).unwrap();
    let formats: Vec<_> = listing.images().iter().map(ImageInfo::format).collect();
    assert_eq!(formats, [FileFormat::NotRead; 2]);
}

#[test]
fn damage_after_the_table_is_not_reported() {
    let code = noise(1, 300_000);
    let file = compressed(&bundle(&[(HOST, b""), (GFX90A, &code)], 4096));
    let mut wrong_hash = file.clone();
    wrong_hash[24] ^= 1;
    let mut damaged = file.clone();
    let end = damaged.len() - 1000;
    damaged[end..].fill(0xFF);
    for file in [&wrong_hash, &damaged] {
        let listing = by_table(file);
        assert!(listing.is_complete() && listing.images().len() == 2);
        let listing = whole(file);
        assert!(listing.findings()[0].error().ccob().is_some(), "{listing:?}");
    }
    // In the header and in the first block it is found as ever.
    for at in [4, 6, 33] {
        let mut file = file.clone();
        file[at] = 0xEE;
        assert_eq!(assert_same(&file), 0);
        assert!(!by_table(&file).is_complete());
    }
    // A table that overruns the size that the header claims; one that the limit does not allow.
    let mut overrun = file.clone();
    let size = u64::from_le_bytes(*overrun[16..24].first_chunk().unwrap());
    overrun[16..24].copy_from_slice(&(size - 1).to_le_bytes());
    assert_eq!(assert_same(&overrun), 0);
    assert!(!by_table(&overrun).is_complete());
    let options = Options::default().with_max_decompressed(size - 1).with_tables_only(true);
    let listing = list(Cursor::new(&file), &options).unwrap();
    let is_limit = |e: &ccob::Error| e.kind() == ccob::ErrorKind::Limit;
    assert!(listing.findings()[0].error().ccob().is_some_and(is_limit));
}

/// A visitor that reads.
struct Reads(Vec<io::Result<u64>>);

impl Visitor for Reads {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.0.push(io::copy(&mut image.reader(), &mut io::sink()));
        if image.size() > 0 {
            let error = image.pieces(&mut |_| Ok(())).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        panic!("{finding}");
    }
}

#[test]
fn images_that_are_not_read_have_no_bytes() {
    let code = noise(1, 500);
    let file = compressed(&bundle(&[(HOST, b""), (GFX90A, &code)], 4096));
    let options = Options::default().with_tables_only(true);
    let mut reads = Reads(Vec::new());
    walk(Cursor::new(&file), &options, &mut reads).unwrap();
    walk_with_threads(&Cursor::new(&file[..]), None, &options, &mut reads).unwrap();
    for pair in reads.0.chunks(2) {
        assert_eq!(*pair[0].as_ref().unwrap(), 0);
        let error = pair[1].as_ref().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("tables only"), "{error}");
    }
    // A caller that needs them gets them.
    let mut out = Vec::new();
    copy_image(Cursor::new(&file), &options, 1, &mut out).unwrap();
    assert_eq!(out, code);
    let text = by_table(&file).images()[1].to_string();
    assert_eq!(text, format!("{GFX90A} (500 bytes) in ccob:0/bundle:0"));
}

/// A table that is larger than the bundle is worth is read with it, and so within its limits.
#[test]
fn large_tables_are_read_with_the_bundle() {
    let ids: Vec<_> = (0..30_000).map(|n| format!("{GFX90A}-{n}")).collect();
    let layout = bundle_format::layout(ids.iter().map(|id| (&id[..], 1)), 1).unwrap();
    let file = compressed(&layout.to_vec(&vec![&b"x"[..]; ids.len()]).unwrap());
    let listing = by_table(&file);
    assert_eq!(listing.images().len(), ids.len());
    assert!(listing.images().iter().all(|image| image.format() == FileFormat::Unknown));
}

#[cfg(feature = "serde")]
#[test]
fn formats_that_are_not_known_are_null() {
    let file = compressed(&bundle(&[(HOST, b""), (GFX90A, b"code")], 4096));
    let listing = serde_json::to_value(by_table(&file)).unwrap();
    assert_eq!(listing["images"][0]["image_format"], "empty");
    assert!(listing["images"][1]["image_format"].is_null());
}
