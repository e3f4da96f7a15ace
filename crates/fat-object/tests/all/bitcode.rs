//! Device code embedded in LLVM bitcode: a module that clang wrote, modules written here bit by bit, and
//! damaged ones. The tests of the tool show that LLVM extracts the same bytes.

use std::io::{self, Cursor, Read};

use fat_object::{
    Container, ContainerKind, FileFormat, Finding, Image, Location, Options, Visitor, walk,
};

use llvm_bitcode::ErrorKind;
use samples::ar::archive;
use samples::binary::v1;
use samples::bits::{BLOCKINFO, Bits, module, wide};
use samples::bundle::bundle;
use samples::example;

/// Everything that a walk sees: images, sections and findings.
#[derive(Default)]
struct Collect {
    images: Vec<(String, Location, Vec<u8>)>,
    sections: Vec<(Location, u64)>,
    errors: Vec<String>,
    /// Kind, place and text of what is wrong with bitcode.
    bitcode: Vec<Bitcode>,
}

#[derive(Debug)]
struct Bitcode {
    kind: ErrorKind,
    offset: Option<u64>,
    text: String,
}

impl Visitor for Collect {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        if container.kind() == ContainerKind::Section {
            self.sections.push((container.location(), container.size()));
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        let path: Vec<_> = image.path().iter().map(ToString::to_string).collect();
        self.images.push((path.join("/"), image.location(), bytes));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.errors.push(finding.to_string());
        if let Some(error) = finding.error().bitcode() {
            let (kind, offset, text) = (error.kind(), error.offset(), error.to_string());
            self.bitcode.push(Bitcode { kind, offset, text });
        }
        Ok(())
    }
}

fn collect(bytes: &[u8]) -> Collect {
    let mut collect = Collect::default();
    walk(&mut Cursor::new(bytes), &Options::default(), &mut collect).unwrap();
    collect
}

/// The images of a file with no findings: paths, places and bytes.
fn images(bytes: &[u8]) -> Vec<(String, Location, Vec<u8>)> {
    let seen = collect(bytes);
    assert_eq!(seen.errors, [""; 0]);
    seen.images
}

const CONSTANTS: u64 = 11;
const METADATA: u64 = 15;

const LISTED: &[u8] = b"llvm.embedded.objects";
const SECTION: &[u8] = b".llvm.offloading";

/// Version 2, a function, then a global variable (value 1) with an initialiser.
fn globals(bits: &mut Bits, initialiser: u64) {
    bits.record(1, &[2]);
    bits.record(8, &[0, 4, 0, 0, 0]);
    bits.record(7, &[4, 4, 0, 3, initialiser + 1, 9]);
}

/// Metadata: strings 0 and 1, value 2, node 3, and the list of the node.
fn metadata(bits: &mut Bits) {
    bits.block(4, METADATA, |bits| {
        bits.record(1, &wide(b"other")).record(1, &wide(SECTION)).record(2, &[0, 1]);
        bits.record(3, &[3, 2]);
        list(bits, &[3]);
    });
}

fn list(bits: &mut Bits, nodes: &[u64]) {
    bits.record(4, &wide(LISTED)).record(10, nodes);
}

/// A module that embeds a constant, which follows a number as value 3.
fn embedding(constant: impl FnOnce(&mut Bits)) -> Vec<u8> {
    module(|bits| {
        globals(bits, 3);
        bits.block(4, CONSTANTS, |bits| {
            bits.record(1, &[0]).record(4, &[7]);
            bits.record(1, &[1]);
            constant(bits);
        });
        metadata(bits);
    })
}

/// The finding of a file with nothing but one.
fn error(bytes: &[u8]) -> Bitcode {
    let mut seen = collect(bytes);
    assert_eq!(seen.images, []);
    assert_eq!(seen.errors.len(), 1, "{:?}", seen.errors);
    seen.bitcode.pop().unwrap()
}

#[test]
fn bitcode_of_clang_has_its_image() {
    let bytes = example("hip-embedded.bc");
    let seen = collect(&bytes);
    assert_eq!(seen.errors, [""; 0]);
    let [(path, location, image)] = &seen.images[..] else { panic!("{:?}", seen.images) };
    assert_eq!(path, "section:.llvm.offloading/offload-binary:0");
    assert_eq!(*location, Location::Bitcode(144));
    assert_eq!(location.file_offset(), None);
    assert_eq!((image.len(), FileFormat::sniff(image)), (4412, FileFormat::Bitcode));
    // The package lies in the file shifted by some bits: read it there once more.
    let [(Location::File(start), 4560)] = seen.sections[..] else { panic!("{:?}", seen.sections) };
    let start = usize::try_from(start).unwrap();
    let shifted: Vec<_> = (0..8)
        .map(|shift| -> Vec<u8> {
            let pair = |i: usize| u16::from_le_bytes([bytes[i], bytes[i + 1]]) >> shift;
            (start..start + 4560).map(|i| pair(i).to_le_bytes()[0]).collect()
        })
        .filter(|package| package.starts_with(&[0x10, 0xff, 0x10, 0xad]))
        .collect();
    assert_eq!(shifted.len(), 1);
    assert_eq!(shifted[0][144..144 + 4412], image[..]);
}

#[test]
fn truncated_bitcode_has_images_or_errors() {
    let bytes = example("hip-embedded.bc");
    for len in (0..bytes.len()).rev().step_by(if cfg!(debug_assertions) { 5 } else { 1 }) {
        let seen = collect(&bytes[..len]);
        // The bytes after the module are not needed.
        assert!(seen.images.is_empty() || len > 7000, "{len}");
        assert!(!seen.images.is_empty() || !seen.errors.is_empty() || len < 4, "{len}");
    }
}

#[test]
fn strings_may_lack_an_abbreviation() {
    let package = v1(b"image", &[]);
    let found = images(&embedding(|bits| bits.record(8, &wide(&package)).done()));
    let [(_, Location::Bitcode(80), image)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(image, b"image");
}

#[test]
fn strings_may_have_abbreviations() {
    // The abbreviations: one of BLOCKINFO's, one of the block's own, one with the code as operand.
    for (id, own) in [(4, false), (5, true), (6, true)] {
        let package = v1(b"image", &[]);
        let bytes = module(|bits| {
            bits.block(4, BLOCKINFO, |bits| {
                bits.record(1, &[9]).fixed(2, 4).vbr(1, 5).fixed(1, 1).vbr(77, 8);
                bits.record(1, &[CONSTANTS]);
                // [8, array, fixed 8]
                bits.fixed(2, 4).vbr(3, 5).fixed(1, 1).vbr(8, 8);
                bits.fixed(0, 1).fixed(3, 3).fixed(0, 1).fixed(1, 3).vbr(8, 5);
            });
            globals(bits, 2);
            bits.block(4, CONSTANTS, |bits| {
                if own {
                    // [8, vbr 6, array, vbr 9]
                    bits.fixed(2, 4).vbr(4, 5).fixed(1, 1).vbr(8, 8);
                    bits.fixed(0, 1).fixed(2, 3).vbr(6, 5);
                    bits.fixed(0, 1).fixed(3, 3).fixed(0, 1).fixed(2, 3).vbr(9, 5);
                    // [fixed 4, blob]
                    bits.fixed(2, 4).vbr(2, 5).fixed(0, 1).fixed(1, 3).vbr(4, 5);
                    bits.fixed(0, 1).fixed(5, 3);
                }
                bits.fixed(id, 4);
                match id {
                    4 => {
                        bits.vbr(package.len() as u64, 6);
                        package.iter().for_each(|&b| bits.fixed(b.into(), 8).done());
                    }
                    5 => {
                        bits.vbr(package[0].into(), 6).vbr(package.len() as u64 - 1, 6);
                        package[1..].iter().for_each(|&b| bits.vbr(b.into(), 9).done());
                    }
                    // The position in this block is that in the file: all blocks are aligned.
                    _ => {
                        bits.fixed(8, 4).vbr(package.len() as u64, 6).align();
                        package.iter().for_each(|&b| bits.fixed(b.into(), 8).done());
                        bits.align();
                    }
                }
            });
            metadata(bits);
        });
        let found = images(&bytes);
        assert_eq!((found.len(), &found[0].2[..]), (1, &b"image"[..]), "{id}");
    }
}

#[test]
fn a_string_may_lack_its_last_zero() {
    // With one zero at the very end this is not a package, but unknown contents.
    let seen = collect(&embedding(|bits| {
        // [9, array, char6]: "ab"
        bits.fixed(2, 4).vbr(3, 5).fixed(1, 1).vbr(9, 8).fixed(0, 1).fixed(3, 3);
        bits.fixed(0, 1).fixed(4, 3);
        bits.fixed(4, 4).vbr(2, 6).fixed(0, 6).fixed(1, 6);
    }));
    let expected =
        "unrecognized data: expected a bundle, package or fatbinary (first bytes [61, 62, 00])";
    let place = "section:.llvm.offloading at byte 0x0 of the embedded data: ";
    assert_eq!(seen.errors, [format!("{place}{expected}")]);
}

#[test]
fn strings_of_metadata_may_be_in_one_record() {
    let package = v1(b"image", &[]);
    let bytes = module(|bits| {
        globals(bits, 2);
        bits.block(4, CONSTANTS, |bits| bits.record(8, &wide(&package)).done());
        bits.block(4, METADATA, |bits| {
            // [35, vbr 6, vbr 6, blob]: lengths, then characters
            bits.fixed(2, 4).vbr(4, 5).fixed(1, 1).vbr(35, 8);
            bits.fixed(0, 1).fixed(2, 3).vbr(6, 5).fixed(0, 1).fixed(2, 3).vbr(6, 5);
            bits.fixed(0, 1).fixed(5, 3);
            let mut blob = Bits::default();
            let strings = [&b"some"[..], b"", b".llvm.offloadinG", SECTION, b"more"];
            strings.iter().for_each(|s| blob.vbr(s.len() as u64, 6).done());
            blob.align();
            let mut blob = blob.bytes();
            let chars = blob.len() as u64;
            blob.extend(strings.concat());
            bits.fixed(4, 4).vbr(5, 6).vbr(chars, 6).vbr(blob.len() as u64, 6).align();
            blob.iter().for_each(|&b| bits.fixed(b.into(), 8).done());
            bits.align();
            // 5: the value; 6, 7 and 8: nodes with each of the strings of that length, and a string out of reach
            bits.record(2, &[0, 1]).record(3, &[6, 3]).record(3, &[6, 4]).record(3, &[6, 1]);
            list(bits, &[8, 6, 7]);
        });
    });
    assert_eq!(images(&bytes).len(), 1);
}

#[test]
fn blocks_and_records_may_be_in_any_order() {
    let (first, second) = (v1(b"first", &[]), v1(b"second", &[]));
    let bytes = module(|bits| {
        bits.block(4, METADATA, |bits| {
            list(bits, &[0, 1]);
            // nodes 0 and 1 before what they refer to: 3, 4 and the string 2
            bits.record(6, &[1, 100]).record(3, &[4, 3]).record(5, &[5, 3, 1]);
            bits.record(1, &wide(SECTION)).record(38, &[9, 9]).record(39, &[9]);
            bits.record(2, &[0, 2]).record(2, &[0, 0]);
        });
        // the first version: without a place of the name
        bits.record(1, &[1]).record(7, &[4, 3, 5, 9]).record(14, &[0, 0, 0]);
        bits.record(7, &[4, 3, 6, 9]).record(18, &[0]);
        bits.block(4, CONSTANTS, |bits| bits.record(8, &wide(&second)).done());
        bits.block(4, 12, |bits| bits.record(99, &[]).done());
        bits.block(4, CONSTANTS, |bits| bits.record(1, &[5]).record(8, &wide(&first)).done());
    });
    let images = images(&bytes);
    let images: Vec<_> = images.iter().map(|image| &image.2[..]).collect();
    assert_eq!(images, [&b"first"[..], b"second"]);
}

#[test]
fn globals_with_equal_contents_are_walked_once() {
    let package = v1(b"image", &[]);
    let bytes = module(|bits| {
        bits.record(1, &[2]);
        for _ in 0..2 {
            bits.record(7, &[4, 4, 0, 3, 3, 9]);
        }
        bits.block(4, CONSTANTS, |bits| bits.record(8, &wide(&package)).done());
        bits.block(4, METADATA, |bits| {
            bits.record(1, &wide(SECTION)).record(2, &[0, 0]).record(2, &[0, 1]);
            bits.record(3, &[2, 1]).record(3, &[3, 1]);
            list(bits, &[3, 4, 3, 3]);
        });
    });
    assert_eq!(images(&bytes).len(), 1);
}

#[test]
fn other_globals_are_skipped() {
    let cases: [(&str, &[u64], u64); 5] = [
        ("another section", &[3, 1], 4),
        ("one operand", &[3], 4),
        ("no global", &[0, 2], 4),
        ("no name", &[3, 0], 4),
        ("no initialiser", &[3, 2], 0),
    ];
    for (what, node, initialiser) in cases {
        let bytes = module(|bits| {
            bits.record(1, &[2]).record(8, &[0; 5]).record(7, &[4, 4, 0, 3, initialiser, 9]);
            bits.block(4, CONSTANTS, |bits| bits.record(4, &[7]).record(8, &[1, 2]).done());
            bits.block(4, METADATA, |bits| {
                bits.record(1, &wide(b"other")).record(1, &wide(SECTION)).record(2, &[0, 1]);
                bits.record(3, node);
                list(bits, &[3]);
            });
        });
        assert_eq!(images(&bytes), [], "{what}");
    }
    // A function, and an initialiser of zeros, undefined or poison.
    images(&module(|bits| {
        globals(bits, 2);
        bits.block(4, METADATA, |bits| {
            bits.record(1, &wide(SECTION)).record(2, &[0, 0]).record(3, &[2, 1]);
            list(bits, &[2]);
        });
    }));
    for code in [2, 3, 26] {
        images(&embedding(|bits| bits.record(code, &[]).done()));
    }
    // Other named metadata.
    images(&module(|bits| {
        bits.block(4, METADATA, |bits| {
            bits.record(4, &wide(b"llvm.embedded.object")).record(10, &[9]);
            bits.record(4, &wide(b"llvm.embedded.objectss")).record(10, &[9]);
        });
    }));
}

#[test]
fn several_modules_and_padding_are_read() {
    let bytes = embedding(|bits| bits.record(8, &wide(&v1(b"image", &[]))).done());
    // what other blocks lie around modules is skipped
    let mut other = Bits::default();
    other.block(2, 23, |bits| bits.record(1, &[0; 9]).done());
    let mut file = bytes[..4].to_vec();
    for _ in 0..3 {
        file.extend(&bytes[4..]);
        file.extend(other.bytes());
    }
    file.extend(b"\n\n\n");
    assert_eq!(images(&file).len(), 3);
    // A fault after the second does not hide the first two.
    file.truncate(file.len() - 3 - other.bytes().len());
    let len = file.len();
    file[len - bytes.len() + 4] ^= 2;
    let seen = collect(&file);
    assert_eq!((seen.images.len(), seen.errors.len()), (2, 1));
    let text = &seen.bitcode[0].text;
    assert!(text.starts_with("bitcode has abbreviation ID 3 at byte"), "{text}");
}

/// The wrapper's header: 20 bytes.
fn wrapper(offset: u32, size: u32) -> Vec<u8> {
    [0x0B17_C0DE, 0, offset, size, 0x0100_0007].into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn bitcode_in_the_wrapper_is_read() {
    let raw = embedding(|bits| bits.record(8, &wide(&v1(b"image", &[]))).done());
    let size = u32::try_from(raw.len()).unwrap();
    let mut file = wrapper(22, size);
    file.extend([0, 0]);
    file.extend(&raw);
    file.extend(b"after the end");
    let (inside, outside) = (collect(&file), collect(&raw));
    assert_eq!(inside.errors, [""; 0]);
    assert_eq!(inside.images, outside.images);
    let (Location::File(inside), Location::File(outside)) =
        (inside.sections[0].0, outside.sections[0].0)
    else {
        panic!("{:?}", inside.sections)
    };
    assert_eq!(inside, outside + 22);

    let damaged = error(&file[..19]);
    assert_eq!((damaged.kind, damaged.offset), (ErrorKind::Truncated, Some(0)));
    assert_eq!(damaged.text, "bitcode wrapper needs 20 bytes, 19 are there");
    let available = file.len() as u64;
    file[12..16].fill(0xff);
    assert_eq!(
        error(&file).text,
        format!(
            "bitcode wrapper places the bitcode at 0x16..0x100000015, beyond the end of the file at {available:#x}"
        )
    );
    file.splice(..16, wrapper(21, size).into_iter().take(16));
    let found = error(&file);
    assert_eq!((found.kind, found.offset), (ErrorKind::NotBitcode, Some(21)));
    let expected = "bitcode at 0x15 starts with [00, 42, 43, c0], expected 42 43 c0 de";
    assert_eq!(found.text, expected);
    let expected = "bitcode at 0x14 starts with [], expected 42 43 c0 de";
    assert_eq!(error(&wrapper(20, 0)).text, expected);
}

#[test]
fn bitcode_in_archives_and_for_the_host_is_read() {
    let host = embedding(|bits| bits.record(8, &wide(&v1(b"image", &[]))).done());
    let found = images(&archive(&[("host.bc", &host)]));
    assert_eq!(found.len(), 1);
    assert!(found[0].0.starts_with("member:host.bc/section:.llvm.offloading/"));

    // In a bundle, only the host's entry is walked.
    let ids = ["host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--gfx1"];
    let found = images(&bundle(&ids.map(|id| (id, &host[..])), 4));
    let paths: Vec<_> = found.iter().map(|image| &image.0[..]).collect();
    let inside = format!("bundle:0/image:{}/section:.llvm.offloading/offload-binary:0", ids[0]);
    assert_eq!(paths, ["bundle:0", &inside, "bundle:0"]);
}

#[test]
fn no_more_is_held_than_allowed() {
    let package = v1(&[7; 1000], &[]);
    let bytes = embedding(|bits| bits.record(8, &wide(&package)).done());
    let mut options = Options::default().with_max_decompressed(1080);
    let mut seen = Collect::default();
    walk(&mut Cursor::new(&bytes), &options, &mut seen).unwrap();
    assert_eq!((seen.images.len(), seen.errors.len()), (1, 0));
    options = options.with_max_decompressed(1079);
    let mut seen = Collect::default();
    walk(&mut Cursor::new(&bytes), &options, &mut seen).unwrap();
    let [found] = &seen.bitcode[..] else { panic!("{:?}", seen.errors) };
    assert_eq!(found.kind, ErrorKind::Limit);
    let text = &found.text;
    assert!(text.starts_with("bitcode embeds 1080 bytes of device code at byte"), "{text}");
    assert!(text.ends_with(", more than the limit of 1079"), "{text}");
}

#[test]
fn constants_that_are_not_bytes_are_errors() {
    // an aggregate, and 32-bit numbers
    for code in [7, 22] {
        let found = error(&embedding(|bits| bits.record(code, &[1, 2]).done()));
        let expected = format!("is initialised by a constant of code {code} at byte");
        assert!(found.text.contains(&expected), "{found:?}");
    }
    let found = error(&embedding(|bits| bits.record(8, &[16, 256]).done()));
    assert!(found.text.starts_with("bitcode record of code 8 before"), "{found:?}");
}

#[test]
fn dangling_references_are_errors() {
    let damaged = |node: u64, value: u64, initialiser: u64, listed: u64| {
        error(&module(|bits| {
            globals(bits, initialiser);
            bits.block(4, CONSTANTS, |bits| bits.record(8, &wide(&v1(b"image", &[]))).done());
            bits.block(4, METADATA, |bits| {
                bits.record(1, &wide(SECTION)).record(2, &[0, value]).record(3, &[node, 1]);
                list(bits, &[listed]);
            });
        }))
    };
    for (found, missing) in [
        (damaged(2, 1, 2, 3), "metadata node 3"),
        (damaged(9, 1, 2, 2), "metadata operand 8"),
        (damaged(2, 7, 2, 2), "global variable 7"),
        (damaged(2, 1, 3, 2), "constant 3"),
    ] {
        assert_eq!((found.kind, found.offset), (ErrorKind::Malformed, None));
        let leads = format!("llvm.embedded.objects refers to {missing}, which does not exist");
        assert!(found.text.ends_with(&leads), "{found:?}");
    }
}

#[test]
fn malformed_lists_of_strings_are_errors() {
    // without a blob; with an offset beyond it; with lengths that reach into the characters, or beyond the end
    for (chars, blob) in
        [(4, None), (9, Some(*b"\0\0\0\0abcd")), (0, Some([0; 8])), (4, Some([9; 8]))]
    {
        let found = error(&module(|bits| {
            globals(bits, 2);
            bits.block(4, METADATA, |bits| {
                // [35, 6 bits, 6 bits, blob]
                bits.fixed(2, 4).vbr(4, 5).fixed(1, 1).vbr(35, 8);
                bits.fixed(0, 1).fixed(1, 3).vbr(6, 5).fixed(0, 1).fixed(1, 3).vbr(6, 5);
                bits.fixed(0, 1).fixed(5, 3);
                match blob {
                    None => bits.record(35, &[2, chars, 1, 1]).done(),
                    Some(blob) => {
                        bits.fixed(4, 4).fixed(2, 6).fixed(chars, 6).vbr(8, 6).align();
                        blob.iter().for_each(|&b| bits.fixed(b.into(), 8).done());
                    }
                }
                bits.record(3, &[1, 2]);
                list(bits, &[2]);
            });
        }));
        assert!(found.text.starts_with("bitcode record of code 35 before"), "{found:?}");
    }
}

#[test]
fn malformed_streams_are_errors() {
    let found = error(b"BC\xc0\xde\0\0\0");
    assert_eq!((found.kind, found.offset), (ErrorKind::NotBitcode, Some(4)));
    assert_eq!(found.text, "bitcode ends at byte 0x4 without a module");
    let missing = error(&module(|bits| bits.fixed(3, 4).vbr(99, 6).vbr(1 << 40, 6).done()));
    assert_eq!(missing.kind, ErrorKind::Truncated, "{missing:?}");
    let undefined = module(|bits| bits.fixed(5, 4).done());
    let long = module(|bits| {
        bits.fixed(3, 4);
        (0..13).for_each(|_| bits.fixed(0x3f, 6).done());
    });
    for (bytes, expected) in [
        (
            &b"BC\xc0\xde\x15\0\0\0\0\0\0\0\0\0\0\0"[..],
            "has abbreviation IDs of 0 bits, expected 1 to 32",
        ),
        (
            b"BC\xc0\xde\x21\x0c\0\0\x01\0\0\0",
            "bitcode block 8 lies at 0xc..0x10, beyond the end of its parent block at 0xc",
        ),
        (&undefined, "bitcode record at byte 0xc uses abbreviation 5, which is not defined"),
        (&long, "does not fit into 64 bits"),
        // A block without an end.
        (
            b"BC\xc0\xde\x21\x0c\0\0\x01\0\0\0\x0b\xe0\xff\xff",
            "beyond the end of its block at 0x10",
        ),
    ] {
        let found = error(bytes);
        assert!(found.text.ends_with(expected), "{found:?}");
    }
}

#[test]
fn malformed_abbreviations_are_errors() {
    type Write = fn(&mut Bits);
    let literal: Write = |bits| bits.fixed(1, 1).vbr(1, 8).done();
    let array: Write = |bits| bits.fixed(0, 1).fixed(3, 3).done();
    let blob: Write = |bits| bits.fixed(0, 1).fixed(5, 3).done();
    let wide: Write = |bits| bits.fixed(0, 1).fixed(1, 3).vbr(65, 5).done();
    let narrow: Write = |bits| bits.fixed(0, 1).fixed(2, 3).vbr(1, 5).done();
    let unknown: Write = |bits| bits.fixed(0, 1).fixed(6, 3).done();
    let cases: [(&[Write], &str); 10] = [
        (&[], "no record code"),
        (&[blob], "no record code"),
        (&[literal, blob, literal], "a blob before the last operand"),
        (&[literal, array], "an array elsewhere than before the last operand"),
        (&[literal, array, literal], "an array whose elements are not single values"),
        (&[literal, array, blob], "an array whose elements are not single values"),
        (&[literal, wide], "an operand of an unknown encoding or width"),
        (&[literal, narrow], "an operand of an unknown encoding or width"),
        (&[literal, unknown], "an operand of an unknown encoding or width"),
        (&[literal; 33], "more than 32 literal values"),
    ];
    for (operands, expected) in cases {
        let found = error(&module(|bits| {
            bits.fixed(2, 4).vbr(operands.len() as u64, 5);
            operands.iter().for_each(|write| write(bits));
        }));
        let text = &found.text;
        assert!(text.starts_with("bitcode abbreviation defined before byte"), "{text}");
        assert!(text.ends_with(&format!(" has {expected}")), "{text}");
    }
}

#[test]
fn counts_have_limits() {
    // Abbreviations, operands of the list: no more than a limit is held of either.
    let found = error(&module(|bits| {
        for _ in 0..70_000 {
            bits.fixed(2, 4).vbr(1, 5).fixed(1, 1).vbr(0, 8);
        }
    }));
    assert_eq!(found.text, "bitcode has more than 65536 operands of abbreviations");
    let found = error(&module(|bits| {
        bits.block(4, METADATA, |bits| list(bits, &vec![0; (1 << 20) + 1]));
    }));
    assert_eq!((found.kind, found.offset), (ErrorKind::Limit, None));
    assert_eq!(found.text, "bitcode has more than 1048576 embedded objects");
    // An array of a great many elements of no bits.
    let found = error(&module(|bits| {
        bits.fixed(2, 4).vbr(3, 5).fixed(1, 1).vbr(8, 8).fixed(0, 1).fixed(3, 3);
        bits.fixed(0, 1).fixed(1, 3).vbr(0, 5);
        bits.fixed(4, 4).vbr(u64::MAX, 6);
    }));
    assert_eq!(found.kind, ErrorKind::Malformed, "{found:?}");
    // Many empty blocks below many abbreviations that they inherit.
    images(&module(|bits| {
        bits.block(4, BLOCKINFO, |bits| {
            bits.record(1, &[METADATA]);
            for _ in 0..60_000 {
                bits.fixed(2, 4).vbr(1, 5).fixed(1, 1).vbr(0, 8);
            }
        });
        for _ in 0..20_000 {
            bits.block(4, METADATA, |_| {});
        }
    }));
}

#[test]
fn literals_without_bits_are_read_in_bounded_time() {
    // Records of four bits, each with as many operands as there may be without taking a bit.
    let records = 250_000;
    let bytes = module(|bits| {
        bits.fixed(2, 4).vbr(32, 5);
        (0..32).for_each(|_| bits.fixed(1, 1).vbr(77, 8).done());
        (0..records).for_each(|_| bits.fixed(4, 4).done());
    });
    assert!(bytes.len() < records);
    // Half a second without optimisation; half a minute if every record could have 30,000.
    samples::faulty::within(20, || {
        images(&bytes);
        assert_eq!(llvm_bitcode::symbols(&bytes).unwrap(), Some(vec![]));
    });
}
