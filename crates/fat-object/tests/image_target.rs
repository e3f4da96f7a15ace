//! The targets that images state about themselves.
#![forbid(unsafe_code)]

mod bits;

use std::io;

use bits::{module, wide};
use fat_object::{Image, ImageFormat, Options, Visitor, image_target, walk_slice};

const TRIPLE: u64 = 2;
const GLOBALVAR: u64 = 7;

/// Bitcode for this target.
fn bitcode(triple: &str) -> Vec<u8> {
    module(|module| {
        module.record(1, &[2]);
        module.block(4, 9, |attributes| attributes.record(3, &[1, 2]).done());
        module.record(TRIPLE, &wide(triple.as_bytes()));
    })
}

#[test]
fn bitcode_states_a_triple() {
    let stated = |image: &[u8]| image_target(image).map(|target| target.to_string());
    assert_eq!(stated(&bitcode("amdgcn-amd-amdhsa")).as_deref(), Some("amdgcn-amd-amdhsa--"));
    assert_eq!(stated(&module(|module| module.record(1, &[2]).done())), None);
    let late = module(|module| {
        module.record(GLOBALVAR, &[0, 0]);
        module.record(TRIPLE, &wide(b"nvptx64-nvidia-cuda"));
    });
    assert_eq!(stated(&late), None, "it stands before the global values");
    let long = vec![u64::from(b'a'); 5000];
    assert_eq!(stated(&module(|module| module.record(TRIPLE, &long).done())), None);
    let sound = bitcode("amdgcn-amd-amdhsa");
    for len in 0..sound.len() {
        assert!(stated(&sound[..len]).is_none_or(|triple| triple == "amdgcn-amd-amdhsa--"));
    }
}

/// The target that the file states for each image, and the one that the image states itself.
#[derive(Default)]
struct Both(Vec<(String, Option<String>)>);

impl Visitor for Both {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let own = image.own_target()?.map(|target| target.id().to_owned());
        self.0.push((image.target().id().to_owned(), own));
        Ok(())
    }
}

#[test]
fn images_in_containers_state_their_own() {
    let mut code_object = b"\x7fELF\x02\x01\x01\x40\x04".to_vec();
    code_object.resize(64, 0);
    code_object[18] = 224;
    code_object[48..52].copy_from_slice(&0x549_u32.to_le_bytes());
    let ids = ["host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx906"];
    let layout = bundle_format::Layout::new([(ids[0], 0), (ids[1], 64)], 1).unwrap();
    let bundle = layout.to_vec(&[&[], &code_object]).unwrap();
    let mut both = Both::default();
    walk_slice(&bundle, &Options::default(), &mut both).unwrap();
    let named = ("gfx906".to_owned(), Some("gfx1250".to_owned()));
    assert_eq!(both.0, [(String::new(), None), named]);
}

/// An entry of a fatbinary: PTX, compressed by zstd.
#[test]
fn compressed_ptx_states_its_own() {
    let ptx = b".target sm_52\n.address_size 64\n\0";
    if ccob::Method::ZSTD.codec().is_none() {
        return;
    }
    let container = ccob::compress(ptx, &ccob::WriteOptions::default()).unwrap();
    let mut stored = container[ccob::Version::V3.header_len()..].to_vec();
    let exact = u32::try_from(stored.len()).unwrap();
    stored.resize(stored.len().next_multiple_of(8), 0);
    let mut entry = [0; 64];
    entry[0] = 1;
    entry[4] = 64;
    entry[8] = u8::try_from(stored.len()).unwrap();
    entry[16..20].copy_from_slice(&exact.to_le_bytes());
    entry[28] = 50;
    entry[41] = 0x80;
    entry[56] = u8::try_from(ptx.len()).unwrap();
    let mut fatbin = b"\x50\xed\x55\xba\x01\0\x10\0".to_vec();
    fatbin.extend((64 + stored.len() as u64).to_le_bytes());
    fatbin.extend(entry);
    fatbin.extend(stored);
    let mut both = Both::default();
    let summary = walk_slice(&fatbin, &Options::default(), &mut both).unwrap();
    assert_eq!((summary.format, summary.findings), (ImageFormat::Fatbinary, 0));
    assert_eq!(both.0, [("sm_50".to_owned(), Some("sm_52".to_owned()))]);
}

/// HIP compiled with `-flto`: no metadata lists the global with the bundle.
#[test]
fn bundles_in_plain_globals_of_bitcode() {
    const CONSTANTS: u64 = 11;
    let layout = bundle_format::Layout::new([("hipv4-amdgcn-amd-amdhsa--gfx906", 4)], 1).unwrap();
    let bundle = layout.to_vec(&[b"code"]).unwrap();
    let with = |triple: &str, strings: &[&[u8]]| {
        module(|module| {
            module.record(1, &[2]).record(TRIPLE, &wide(triple.as_bytes()));
            module.block(4, CONSTANTS, |constants| {
                constants.record(1, &[0]);
                for string in strings {
                    constants.record(8, &wide(string));
                }
            });
        })
    };
    let host = "x86_64-pc-linux-gnu";
    let list = |file: &[u8]| fat_object::list_slice(file, &Options::default()).unwrap();
    let listing = list(&with(host, &[b"text", &bundle, b"", &bundle]));
    assert!(listing.findings().is_empty());
    let texts: Vec<String> = listing.iter().map(ToString::to_string).collect();
    let text = "hipv4-amdgcn-amd-amdhsa--gfx906 (unknown, 4 bytes) in section:.hip_fatbin/bundle:0";
    assert_eq!(texts, [text, text]);
    // The magic alone, as in programs that read bundles, a damaged bundle, and code for a device.
    for file in [
        with(host, &[b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"]),
        with(host, &[&bundle[..bundle.len() - 1]]),
        with("spirv64-unknown-unknown", &[&bundle]),
    ] {
        let listing = list(&file);
        let texts: Vec<String> = listing.iter().map(ToString::to_string).collect();
        assert!(texts.iter().all(|text| !text.contains("section")), "{texts:?}");
        assert!(listing.findings().is_empty(), "{:?}", listing.findings());
    }
}
