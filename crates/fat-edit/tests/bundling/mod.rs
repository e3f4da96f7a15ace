//! Helpers of the tests of the object form.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    unreachable_pub,
    dead_code,
    reason = "a test fails by panicking; not every test uses all"
)]

use std::io::{self, Cursor, Read};

use fat_edit::{HOST_PLACEHOLDER, object_bundle, remove_bundle_sections};
use fat_object::{BundleForm, FileFormat, Finding, Image, Options, Visitor, walk};

pub const HOST: &str = "host-x86_64-unknown-linux-gnu-";
pub const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
pub const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+";

pub fn add(object: &[u8], entries: &[(&str, &[u8])]) -> Vec<u8> {
    let sizes = entries.iter().map(|(id, bytes)| (*id, bytes.len() as u64)).collect::<Vec<_>>();
    let contents = entries.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>();
    let bundle = object_bundle(object, &sizes).unwrap();
    let result = bundle.to_vec(&contents).unwrap();
    assert_eq!(result.len() as u64, bundle.total_size());
    for (range, contents) in bundle.contents_ranges().zip(&contents) {
        assert!(result[range.start as usize..range.end as usize] == **contents);
    }
    let mut written = Vec::new();
    bundle.write_to(&mut written, contents).unwrap();
    assert!(written == result);
    result
}

pub fn entries() -> [(&'static str, &'static [u8]); 3] {
    [(HOST, HOST_PLACEHOLDER), (GFX906, b"first image"), (GFX90A, b"")]
}

/// A COFF object with two sections, the second with a long name, and three symbols, two of it.
pub fn coff() -> Vec<u8> {
    let mut object = [0x64, 0x86, 2, 0, 0, 0, 0, 0].to_vec();
    object.extend(112u32.to_le_bytes()); // after headers and contents
    object.extend([3, 0, 0, 0, 0, 0, 0, 0]);
    for (name, size, at) in [(b".data\0\0\0", 5u32, 100u32), (b"/4\0\0\0\0\0\0", 7, 105)] {
        object.extend(name);
        object.extend([0, 0, size, at, 0, 0, 0, 0x4030_0040].map(u32::to_le_bytes).concat());
    }
    object.extend(b"DATA!second!");
    for (name, section, class, auxiliary) in [(b"first\0\0\0", 1, 2, 0), (b"assoc\0\0\0", 2, 3, 1)]
    {
        object.extend(name);
        object.extend([0, 0, 0, 0, section, 0, 0, 0, class, auxiliary]);
    }
    object.extend([7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0, 0]); // with section 1
    object.extend(17u32.to_le_bytes());
    object.extend(b"longer_name!\0");
    object
}

/// Adds [`entries`] in several forms, and takes them off again.
pub fn there_and_back(object: &[u8]) {
    let [host, first, empty] = entries();
    for list in [&[][..], &[host], &[empty], &[host, first, empty], &[empty, first, first, host]] {
        let added = add(object, list);
        assert!(*remove_bundle_sections(&added).unwrap() == *object, "{list:?}");
        let twice = add(&added, list);
        assert!(*remove_bundle_sections(&twice).unwrap() == *object, "{list:?}");
    }
}

#[derive(Default)]
pub struct Images(pub Vec<(String, Option<FileFormat>, Vec<u8>)>);

impl Visitor for Images {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.0.push((image.id().unwrap().to_owned(), Some(image.format()), bytes));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        panic!("{finding}");
    }
}

/// ID, format and contents of all entries; each must be of the object form and know its object.
pub fn walked(object: &[u8]) -> Vec<(String, FileFormat, Vec<u8>)> {
    struct Entries(Vec<u8>, Vec<(String, FileFormat, Vec<u8>)>);
    impl Visitor for Entries {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            assert_eq!(image.bundle_form(), Some(BundleForm::Section));
            let mut object = Vec::new();
            image.enclosing_object().unwrap().read_to_end(&mut object)?;
            assert!(object == self.0);
            let mut bytes = Vec::new();
            image.reader().read_to_end(&mut bytes)?;
            self.1.push((image.id().unwrap().to_owned(), image.format(), bytes));
            Ok(())
        }

        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            panic!("{finding}");
        }
    }
    let mut entries = Entries(object.to_vec(), Vec::new());
    walk(&mut Cursor::new(object), &Options::default(), &mut entries).unwrap();
    entries.1
}

/// Checks that the walker finds [`entries`] in a bundle of an object; the empty one may be gone.
pub fn found(object: &[u8]) {
    let found = walked(&add(object, &entries()));
    let ids = found.iter().map(|(id, format, bytes)| (&**id, *format, &**bytes));
    let mut expected = vec![
        (HOST, FileFormat::HostPlaceholder, HOST_PLACEHOLDER),
        (GFX906, FileFormat::Unknown, &b"first image"[..]),
    ];
    let ids = ids.collect::<Vec<_>>();
    if ids.len() == 3 {
        expected.push((GFX90A, FileFormat::Empty, b""));
    }
    assert_eq!(ids, expected);
}

/// Judges a sample cut short and changed: the device code in it is found, and what is added comes off.
pub fn judge_damaged(sample: &[u8]) {
    samples::damage::judge(sample, |bytes| {
        oracles::objects::check(bytes);
        oracles::walks::check(bytes);
    });
}

fn walk_quietly(bytes: &[u8]) {
    struct Quiet;
    impl Visitor for Quiet {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            io::copy(&mut image.reader(), &mut io::sink()).map(drop)
        }

        fn finding(&mut self, _: &Finding) -> io::Result<()> {
            Ok(())
        }
    }
    walk(&mut Cursor::new(bytes), &Options::default(), &mut Quiet).unwrap();
}
