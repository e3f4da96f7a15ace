//! The targets that images state about themselves.

use std::io;

use fat_object::{FileFormat, Image, Options, Visitor, image_target, walk_slice};
use samples::bits::{module, wide};

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

/// A group of attributes of a function: one without a value, one with a number, a text alone, and these.
fn group(number: u64, index: u64, attributes: &[(&str, &str)]) -> Vec<u64> {
    let mut operands = vec![number, index, 0, 18, 1, 60, 7, 3];
    operands.extend(wide(b"convergent\0"));
    for (key, value) in attributes {
        operands.push(4);
        operands.extend(wide(format!("{key}\0{value}\0").as_bytes()));
    }
    operands
}

const FUNCTION: u64 = 0xffff_ffff;
const CPU: &str = "target-cpu";

/// Bitcode for this target with functions: whether each is only declared, and its list of attributes, from 1.
fn with_functions(triple: &str, groups: &[Vec<u64>], functions: &[(u64, u64)]) -> Vec<u8> {
    module(|module| {
        module.record(1, &[2]);
        module.block(4, 10, |block| {
            for group in groups {
                block.record(3, group).done();
            }
        });
        // Each list has a group of a parameter, and one of those above.
        module.block(4, 9, |block| {
            for group in groups {
                let list: Vec<_> = [77].into_iter().chain(group.first().copied()).collect();
                block.record(2, &list).done();
            }
        });
        module.record(TRIPLE, &wide(triple.as_bytes()));
        for (is_declared, list) in functions {
            module.record(8, &[0, 1, 2, 0, *is_declared, 0, *list, 0]);
        }
        module.block(4, 12, |body| body.record(8, &[0, 1, 2, 0, 0, 0, 0]).done());
    })
}

#[test]
fn functions_of_bitcode_name_a_processor() {
    let cpu = |number, name| group(number, FUNCTION, &[("no-trapping-math", "true"), (CPU, name)]);
    let groups = [
        cpu(5, "gfx90a"),
        cpu(3, "gfx906"),
        cpu(9, "gfx90a"),
        group(4, FUNCTION, &[("target-features", "+16-bit-insts")]),
        group(6, 1, &[(CPU, "gfx90a")]),
        cpu(7, "generic"),
        cpu(8, "gfx\n"),
        vec![10, FUNCTION, 8, 1, 2, 3],
    ];
    let stated = |triple: &str, functions: &[(u64, u64)]| {
        image_target(&with_functions(triple, &groups, functions)).unwrap().id().to_owned()
    };
    for (functions, expected) in [
        (&[(0, 1)][..], "gfx90a"),
        (&[(0, 1), (0, 3), (0, 1)], "gfx90a"),
        (&[(1, 2), (0, 1), (1, 0)], "gfx90a"),
        (&[(0, 1), (0, 2)], ""),
        (&[(0, 1), (0, 0)], ""),
        (&[(0, 1), (0, 4)], ""),
        (&[(0, 5)], ""),
        (&[(0, 6)], ""),
        (&[(0, 7)], ""),
        (&[(0, 8)], ""),
        (&[(0, 99)], ""),
        (&[(0, u64::MAX)], ""),
        (&[(1, 1)], ""),
        (&[], ""),
    ] {
        assert_eq!(stated("amdgcn-amd-amdhsa", functions), expected, "{functions:?}");
        assert_eq!(stated("x86_64-unknown-linux-gnu", functions), "", "{functions:?}");
    }
    let sound = with_functions("nvptx64-nvidia-cuda", &[cpu(1, "sm_80")], &[(0, 1)]);
    assert_eq!(image_target(&sound).unwrap().id(), "sm_80");
    for len in 0..sound.len() {
        let id = image_target(&sound[..len]).map(|target| target.id().to_owned());
        assert!(id.is_none_or(|id| id.is_empty() || id == "sm_80"), "{len}");
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
    let layout = bundle_format::layout([(ids[0], 0), (ids[1], 64)], 1).unwrap();
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
    assert_eq!((summary.format, summary.findings), (FileFormat::Fatbinary, 0));
    assert_eq!(both.0, [("sm_50".to_owned(), Some("sm_52".to_owned()))]);
}

/// HIP compiled with `-flto`: no metadata lists the global with the bundle.
#[test]
fn bundles_in_plain_globals_of_bitcode_are_found() {
    const CONSTANTS: u64 = 11;
    let layout = bundle_format::layout([("hipv4-amdgcn-amd-amdhsa--gfx906", 4)], 1).unwrap();
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
    let texts: Vec<String> = listing.images().iter().map(ToString::to_string).collect();
    let text = "hipv4-amdgcn-amd-amdhsa--gfx906 (unknown, 4 bytes) in section:.hip_fatbin/bundle:0";
    assert_eq!(texts, [text, text]);
    // The magic alone, as in programs that read bundles, a damaged bundle, and code for a device.
    for file in [
        with(host, &[b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"]),
        with(host, &[&bundle[..bundle.len() - 1]]),
        with("spirv64-unknown-unknown", &[&bundle]),
    ] {
        let listing = list(&file);
        let texts: Vec<String> = listing.images().iter().map(ToString::to_string).collect();
        assert!(texts.iter().all(|text| !text.contains("section")), "{texts:?}");
        assert!(listing.findings().is_empty(), "{:?}", listing.findings());
    }
}
