//! Containers in bytes of host files that no section for device code accounts for.

use std::io::{self, Cursor};

use ccob::Method;
use fat_object::{
    Container, ContainerKind, ErrorKind, Finding, Image, ImageInfo, Listing, Options, PathStep,
    Visitor, list, list_slice, walk_slice,
};
use offload_binary::{CompressedBinary, FormatVersion};
use samples::elf::{elf, progbits};
use samples::example;
use samples::fatbin::{Made, fatbin};

/// The first of several packages.
fn package() -> Vec<u8> {
    let mut bytes = example("packages.offload");
    let size = offload_binary::OffloadBinary::parse(&bytes).unwrap().size();
    bytes.truncate(usize::try_from(size).unwrap());
    bytes
}

/// The same as version 3, compressed or not. It ends where its stream ends, without padding.
fn package_of_version_3(method: Option<Method>) -> Vec<u8> {
    let plain = offload_binary::convert(&package(), FormatVersion::V3).unwrap();
    let Some(method) = method else { return plain };
    let options = ccob::WriteOptions::default().with_method(method);
    let body = &plain[usize::try_from(FormatVersion::V3.header_len()).unwrap()..];
    let stream = ccob::compress_stream(body, &options).unwrap();
    let images = offload_binary::OffloadBinary::parse(&plain).unwrap().entries().len() as u64;
    let header = CompressedBinary::new(plain.len() as u64, images, stream.len() as u64).unwrap();
    [&header.header()[..], &stream].concat()
}

/// A compressed bundle that does not record its size.
fn first_version(bundle: &[u8]) -> Vec<u8> {
    let options = ccob::WriteOptions::default().with_version(ccob::Version::V1);
    ccob::compress(bundle, &options).unwrap()
}

/// One of each kind, with the number of its images.
fn containers() -> Vec<(&'static str, Vec<u8>, usize)> {
    let images = |bytes: &[u8]| list_slice(bytes, &Options::default()).unwrap().images().len();
    [
        ("bundle:0", example("hip.hipfb")),
        ("ccob:0", first_version(&example("hip.hipfb"))),
        ("ccob:0", example("hip-ccob-v2.hipfb")),
        ("ccob:0", example("hip-ccob-v3.hipfb")),
        ("offload-binary:0", package()),
        ("offload-binary:0", package_of_version_3(None)),
        ("offload-binary:0", package_of_version_3(Some(Method::ZSTD))),
        ("offload-binary:0", package_of_version_3(Some(Method::ZLIB))),
        ("nv-fatbin:0", fatbin(&[Made::cubin(80, b"machine!")])),
    ]
    .map(|(kind, bytes)| {
        let images = images(&bytes);
        assert!(images > 0);
        (kind, bytes, images)
    })
    .into_iter()
    .chain(device_elfs().map(|bytes| ("", bytes, 1)))
    .collect()
}

/// ELF files for GPUs: of AMD with segments, of NVIDIA with the version of CUDA and tables in front, of Intel.
fn device_elfs() -> [Vec<u8>; 4] {
    let bundle = example("hip.hipfb");
    let amd = list_slice(&bundle, &Options::default()).unwrap();
    let amd = amd.images().last().unwrap().bytes_in(&bundle).unwrap().to_vec();
    assert_eq!(amd[18], 224);
    let of_machine = |wide, table_first, machine: u8, version: u8| {
        let mut image = elf(wide, false);
        image.sections.push(progbits(".text", b"machine code"));
        image.table_first = table_first;
        let mut image = image.build();
        (image[18], image[20]) = (machine, version);
        image
    };
    let mut cubin = of_machine(true, true, 190, 0x7b);
    cubin[48..52].copy_from_slice(&0x50_0550_u32.to_le_bytes());
    [amd, cubin, of_machine(false, false, 190, 1), of_machine(true, false, 205, 1)]
}

/// Random bytes, and magics without containers.
fn noise(seed: u32, len: usize) -> Vec<u8> {
    let magics: [&[u8]; 11] = [
        b"\x10\xff\x10\xad",
        b"\x10\xff\x10\xad\x01\0\0\0\x60\0\0\0\0\0\0\0",
        b"CCOB",
        b"CCOB\x02\0\x01\0\x40\0\0\0",
        b"CCOB\x01\0\x01\0\x40\0\0\0",
        b"__CLANG_OFFLOAD_BUNDLE__",
        b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0",
        b"\x7fELF",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xbe\0",
        b"\x50\xed\x55\xba",
        b"\x50\xed\x55\xba\x01\0\x10\0\x40\0\0\0\0\0\0\0",
    ];
    let mut bytes = Vec::new();
    let mut state = seed;
    while bytes.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match (state >> 16) % 64 {
            at @ 0..11 => bytes.extend(magics[at as usize]),
            _ => bytes.extend((state >> 8).to_le_bytes()),
        }
    }
    bytes.truncate(len);
    bytes
}

/// Lists a file in memory, and from a reader, which gives the same.
fn listing(file: &[u8]) -> Listing {
    let lent = list_slice(file, &Options::default()).unwrap();
    let read = list(Cursor::new(file), &Options::default()).unwrap();
    assert_eq!(lent.images(), read.images());
    assert_eq!(texts(&lent), texts(&read));
    lent
}

fn texts(listing: &Listing) -> Vec<String> {
    listing.findings().iter().map(ToString::to_string).collect()
}

fn path(image: &ImageInfo) -> String {
    image.path().iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

fn without_scan(file: &[u8]) -> Listing {
    list_slice(file, &Options::default().with_scan(false)).unwrap()
}

#[test]
fn containers_in_sections_for_other_data_are_found_once() {
    for (kind, container, count) in containers() {
        for (before, after) in [(1, 0), (3, 5), (4096, 1), (262_143, 300_000), (262_100, 70)] {
            let mut section = noise(before, before as usize);
            let place = 64 + section.len();
            section.extend(&container);
            section.extend(noise(7, after));
            let mut host = elf(true, false);
            host.sections = vec![progbits(".rodata", &section), progbits(".data", &noise(9, 999))];
            let file = host.build();
            let found = listing(&file);
            assert_eq!(texts(&found), [""; 0], "{kind} {before}");
            assert_eq!(found.images().len(), count, "{kind} {before}");
            for image in found.images() {
                let expected = match kind {
                    "" => format!("section:.rodata at {place:#x}"),
                    kind => format!("section:.rodata at {place:#x}/{kind}"),
                };
                assert!(path(image).starts_with(&expected), "{}", path(image));
                assert!(image.path()[0].is_found_by_scan());
                assert!(!image.path()[1..].iter().any(PathStep::is_found_by_scan));
            }
            assert_eq!(without_scan(&file).images(), []);
        }
    }
}

#[test]
fn containers_are_found_among_other_sections_and_bytes() {
    let mut host = elf(true, false);
    let several: Vec<u8> = containers().into_iter().flat_map(|(_, bytes, _)| bytes).collect();
    let count: usize = containers().iter().map(|(_, _, images)| images).sum();
    host.sections.insert(0, progbits(".hip_fatbin", &example("hip.hipfb")));
    host.sections.push(progbits(".rodata", &[b"text", &several[..], b"text"].concat()));
    host.trailing = [&several[..], b"!"].concat();
    let file = host.build();
    let end = file.len() - host.trailing.len();
    let found = listing(&file);
    assert_eq!(texts(&found), [""; 0]);
    assert_eq!(found.images().len(), 2 + 2 * count);
    let known = without_scan(&file);
    assert_eq!(known.images(), &found.images()[..2]);
    assert!(path(&found.images()[1]).starts_with("section:.hip_fatbin/bundle:0"));
    assert!(path(&found.images()[2]).starts_with("section:.rodata at "));
    let last = path(&found.images()[2 + count]);
    assert_eq!(last, format!("outside-sections:{end:#x}/bundle:0"));
    // No image is listed twice.
    let stored =
        || found.images().iter().filter(|image| image.size() > 0 && image.stored_size().is_some());
    let mut offsets: Vec<_> = stored().map(|image| image.location().file_offset()).collect();
    offsets.dedup();
    assert_eq!(offsets.len(), stored().count());
}

#[test]
fn loose_images_have_the_target_that_they_state() {
    let images = device_elfs();
    let mut host = elf(true, false);
    host.sections = vec![progbits(".data", &images.concat())];
    let file = host.build();
    let found = listing(&file);
    assert_eq!(texts(&found), [""; 0]);
    let targets: Vec<_> = found.images().iter().map(|image| image.target().to_string()).collect();
    assert!(targets[0].starts_with("amdgcn-amd-amdhsa") && targets[0].contains("gfx"));
    assert!(targets[1].starts_with("nvptx64-nvidia-cuda") && targets[1].ends_with("sm_80"));
    let bytes: Vec<_> = found.images().iter().map(|image| image.bytes_in(&file).unwrap()).collect();
    assert_eq!(bytes, images);
}

/// A program of GCC's has many texts, each with a zero after it.
#[test]
fn ptx_of_gcc_is_found() {
    let ptx = |sm| {
        let head = "// BEGIN PREAMBLE\n.version 6.0\n.target ";
        format!("{head}{sm}\n.address_size 64\n// END PREAMBLE\n.func f() {{ ret; }}\n")
    };
    let (one, two) = (ptx("sm_30"), ptx("sm_80"));
    let text = format!(
        "constant\0{one}\0{two}\0// BEGIN PREAMBLE\n\0{}\0{}",
        ptx("none"),
        &one[..one.len() - 2]
    );
    for before in [0, 262_000, 262_080, 300_000] {
        let mut host = elf(true, false);
        let section = [&vec![b'x'; before][..], text.as_bytes()].concat();
        host.sections = vec![progbits(".rodata", &section)];
        let file = host.build();
        let found = listing(&file);
        assert_eq!(texts(&found), [""; 0]);
        let images: Vec<_> =
            found.images().iter().map(|image| image.bytes_in(&file).unwrap()).collect();
        assert_eq!(images, [one.as_bytes(), two.as_bytes()], "{before}");
        let targets: Vec<_> = found.images().iter().map(|image| image.target().id()).collect();
        assert_eq!(targets, ["sm_30", "sm_80"]);
    }
}

/// A kernel that does nothing, in either byte order. `more` comes after its only function.
fn spirv(is_swapped: bool, capability: u32, more: &[u32]) -> Vec<u8> {
    let instructions: [&[u32]; 16] = [
        &[17, capability],
        &[11, 1, 0x6e65_704f, 0x732e_4c43, 0x6474],
        &[14, 2, 2],
        &[15, 6, 5, 0x66],
        &[3, 3, 102_000],
        &[5, 5, 0x66],
        &[5911, 7],
        &[71, 5, 41, 0x66, 0],
        &[5911, 8],
        &[19, 2],
        &[33, 3, 2],
        &[8, 1, 1, 1],
        &[54, 2, 5, 0, 3],
        &[248, 6],
        &[253],
        &[56],
    ];
    let mut words = vec![0x0723_0203, 0x0001_0400, 6 << 16, 9, 0];
    for instruction in instructions {
        words.push(u32::try_from(instruction.len()).unwrap() << 16 | instruction[0]);
        words.extend(&instruction[1..]);
    }
    words.extend(more);
    let to_bytes = |word: &u32| if is_swapped { word.to_be_bytes() } else { word.to_le_bytes() };
    words.iter().flat_map(to_bytes).collect()
}

const FUNCTION: [u32; 8] = [5 << 16 | 54, 2, 7, 0, 3, 2 << 16 | 248, 8, 1 << 16 | 253];
const FUNCTION_END: u32 = 1 << 16 | 56;

/// Objects of GCC's say that there is more than what is listed.
#[test]
fn intermediate_code_of_gcc_is_named() {
    let mut host = elf(true, false);
    host.sections = vec![
        progbits(".gnu.offload_lto_.decls.dc39e2a0", b"code"),
        progbits(".gnu.offload_lto_main._omp_fn.0.12.dc39e2a0", b"code"),
    ];
    let file = host.build();
    let found = listing(&file);
    assert_eq!(found.images(), []);
    let [finding] = found.findings() else { panic!("{found:?}") };
    assert_eq!(finding.error().kind(), ErrorKind::NotRead);
    assert_eq!(finding.severity(), fat_object::Severity::Warning);
    let error = fat_object::has_device_code(&file).unwrap_err();
    assert!(error.to_string().contains(".gnu.offload_lto_*"), "{error}");
}

/// The header has no size: the last function ends a module.
#[test]
fn modules_of_spirv_end_with_their_last_function() {
    let two = [&FUNCTION[..], &[FUNCTION_END]].concat();
    let debug_information = [5 << 16 | 12, 2, 7, 1, 4];
    let line = [4 << 16 | 8, 1, 7, 7];
    let modules = [
        spirv(false, 6, &[]),
        spirv(true, 6, &[]),
        spirv(false, 1, &[]),
        spirv(false, 6, &two),
        spirv(false, 6, &[&line[..], &two].concat()),
        spirv(false, 6, &debug_information),
    ];
    let others: [&[u8]; 5] = [b"", &[0; 4], b"text", b"\x08\0\x04\0line", b"\x36\0\x05\0\xff\xff"];
    for module in &modules {
        for (other, before) in others.iter().zip([0, 1, 262_123, 262_139, 262_144]) {
            let mut host = elf(true, false);
            let section = [&vec![b'x'; before][..], module, other, module, other].concat();
            host.sections = vec![progbits(".rodata", &section)];
            let file = host.build();
            let found = listing(&file);
            assert_eq!(texts(&found), [""; 0]);
            let images: Vec<_> =
                found.images().iter().map(|image| image.bytes_in(&file).unwrap()).collect();
            assert_eq!(images, [module, module], "{before} {other:x?}");
        }
    }
    let mut host = elf(true, false);
    host.sections = vec![progbits(".data", &modules.concat())];
    let found = listing(&host.build());
    let targets: Vec<_> = found.images().iter().map(|image| image.target().to_string()).collect();
    assert_eq!(targets.len(), modules.len());
    assert!(targets[0].starts_with("spirv64-unknown-unknown"), "{targets:?}");
    assert!(targets[2].starts_with("spirv-unknown-vulkan"), "{targets:?}");
}

/// As compilers of SYCL write them, between names and decorations: a domain, scopes and lists of scopes.
#[test]
fn modules_of_spirv_declare_aliases() {
    let plain = spirv(false, 6, &[]);
    let at = plain.windows(4).position(|word| word == [71, 0, 5, 0]).unwrap();
    let words = [2 << 16 | 5911, 7, 3 << 16 | 5912, 8, 7, 3 << 16 | 5913, 4, 8];
    let aliases: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for (at, is_in_order) in [(at, true), (at + 20, true), (20, false)] {
        let module = [&plain[..at], &aliases, &plain[at..]].concat();
        let mut host = elf(true, false);
        host.sections = vec![progbits("SPIRV Object", &module)];
        let file = host.build();
        let found = listing(&file);
        let images: Vec<_> =
            found.images().iter().map(|image| image.bytes_in(&file).unwrap()).collect();
        assert_eq!(images, if is_in_order { vec![&module[..]] } else { vec![] }, "{at}");
    }
}

#[test]
fn data_that_only_resembles_spirv_is_not_listed() {
    let module = spirv(false, 6, &[]);
    let with = |at: usize, word: u32| {
        let mut module = module.clone();
        module[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        module
    };
    let end = module.len() / 4 - 1;
    let wrong = [
        with(1, 0x0001_0700),
        with(1, 0x0002_0000),
        with(1, 0x0001_0401),
        with(3, 0),
        with(3, u32::MAX),
        // Less than the IDs in use.
        with(3, 5),
        with(4, 1),
        // An extension and nothing where a capability is.
        with(5, 2 << 16 | 10),
        with(5, 0),
        // Another source instead of the memory model.
        with(12, 3 << 16 | 3),
        // No end of the block, and of the function.
        with(end - 1, 1 << 16),
        with(end, 0x7478_6574),
        // Another function starts.
        spirv(false, 6, &FUNCTION),
        spirv(false, 6, &[&FUNCTION[..7], &[FUNCTION_END]].concat()),
    ];
    for (number, wrong) in wrong.iter().enumerate() {
        let mut host = elf(true, false);
        host.sections = vec![progbits(".rodata", &[wrong, &b"text"[..]].concat())];
        assert_eq!(listing(&host.build()).images(), [], "{number}");
    }
    for cut in 1..module.len() {
        let mut host = elf(true, false);
        let (start, rest) = module.split_at(cut);
        host.sections = vec![progbits(".rodata", start), progbits(".data", rest)];
        assert_eq!(listing(&host.build()).images(), [], "{cut}");
    }
}

/// Texts of several compilers, some with a zero after them, some next to other text.
#[test]
fn ptx_is_found_with_its_comments() {
    let ptx =
        |sm: &str, body: &str| format!(".version 8.0\n.target {sm}\n.address_size 64\n{body}");
    let kernel = ".visible .entry f(\n\t.param .u64 a\n)\n{ ret; }";
    let one = format!("//\n// Generated by a compiler\n//\n\n{}\n", ptx("sm_50", kernel));
    let two = format!("\n{}", ptx("sm_90a, debug", kernel));
    let long = ptx("sm_80", &format!("{}{kernel}", "// a comment\n".repeat(100_000)));
    let text = [
        "constant\0",
        &one,
        "\0",
        &two,
        "\0.version %d.%d\n.target %s\0.version \0.target sm_50\0",
        &ptx("sm_50", ""),
        "\0",
        &ptx("%s", kernel),
        "\0",
        &ptx("sm_50", ".func f() { mov.u32 %s, 1; }"),
        "\0",
        &ptx("sm_50", ".func f() {"),
        "\0",
        one.trim_end(),
        "Other text\0",
        &long,
    ]
    .concat();
    for before in [0, 262_000, 262_138, 300_000] {
        let mut host = elf(true, false);
        let section = [&vec![0; before][..], text.as_bytes()].concat();
        host.sections = vec![progbits(".rodata", &section), progbits(".data", b"more text")];
        let file = host.build();
        let found = listing(&file);
        assert_eq!(texts(&found), [""; 0]);
        let images: Vec<_> =
            found.images().iter().map(|image| image.bytes_in(&file).unwrap()).collect();
        let expected = [&one, &two, one.trim_end(), &long].map(str::as_bytes);
        assert!(images == expected, "{before}: {found:?}");
        let targets: Vec<_> = found.images().iter().map(|image| image.target().id()).collect();
        assert_eq!(targets, ["sm_50", "sm_90a", "sm_50", "sm_80"]);
    }
}

/// Each could be taken for the start of all the text after it.
#[test]
fn many_texts_without_zeros_cost_no_more_than_they_have() {
    let text = ".version 8.0\n.target sm_50\n.func f;\n".repeat(5000);
    let mut host = elf(true, false);
    host.sections = vec![progbits(".rodata", text.as_bytes())];
    assert_eq!(listing(&host.build()).images().len(), 5000);
}

#[test]
fn files_without_section_headers_are_scanned() {
    let mut host = elf(true, false);
    host.sections.push(progbits(".rodata", &[&[1], &example("hip.hipfb")[..]].concat()));
    let mut file = host.build();
    file[16] = 3;
    file[40..48].fill(0);
    file[60..64].fill(0);
    let found = listing(&file);
    assert_eq!((found.images().len(), texts(&found)), (2, vec![]));
    assert!(path(&found.images()[0]).starts_with("outside-sections:0x"));
    assert_eq!(without_scan(&file).findings()[0].error().kind(), ErrorKind::NotRead);
}

/// Without a scan these bytes are a fault: they are unknown.
#[test]
fn other_data_may_follow_a_container_at_the_start_of_a_section_for_other_data() {
    let bundle = example("hip.hipfb");
    let mut host = elf(true, false);
    let section = [&bundle[..], &[0; 32], b"text", &bundle, b"text"].concat();
    host.sections.push(progbits(".rodata", &section));
    let file = host.build();
    let found = listing(&file);
    assert_eq!((found.images().len(), texts(&found)), (4, vec![]));
    assert_eq!(path(&found.images()[0]), "section:.rodata/bundle:0");
    assert!(path(&found.images()[2]).starts_with("section:.rodata at "));
    let known = without_scan(&file);
    assert_eq!(known.images().len(), 2);
    assert_eq!(known.findings()[0].error().kind(), ErrorKind::TrailingData);
}

#[test]
fn other_host_files_are_scanned() {
    for name in ["hip.o", "hip-two-units.so"] {
        let file = example(name);
        let known = listing(&file).images().len();
        for (kind, container, count) in containers() {
            let file = [&file[..], b"x", &container].concat();
            assert_eq!(listing(&file).images().len(), known + count, "{name} {kind}");
        }
    }
    let wasm = [b"\0asm\x01\0\0\0\0\x05\x04name" as &[u8], &example("hip.hipfb")].concat();
    assert_eq!(list_slice(&wasm, &Options::default()).unwrap().images().len(), 2);
}

#[test]
fn containers_that_exceed_their_section_are_ignored() {
    for (kind, container, _) in containers() {
        for cut in [1, container.len() / 2] {
            let mut host = elf(true, false);
            let section = [b"x", &container[..container.len() - cut]].concat();
            host.sections = vec![progbits(".rodata", &section), progbits(".data", &container[..9])];
            let found = listing(&host.build());
            // Only the stream of a compressed bundle of version 1 tells its end.
            let is_first = kind == "ccob:0" && container[4] == 1;
            assert!(found.images().is_empty(), "{kind} {cut}");
            assert_eq!(found.findings().is_empty(), !is_first, "{kind} {cut}");
        }
    }
}

/// Offset and size of what a walk enters.
#[derive(Default)]
struct Entered(Vec<(u64, u64)>);

impl Visitor for Entered {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        let offset = container.location().file_offset();
        self.0.extend(offset.map(|offset| (offset, container.size())));
        Ok(())
    }

    fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        assert_eq!(finding.error().container(), Some(ContainerKind::Ccob), "{finding}");
        Ok(())
    }
}

/// Version 1 of compressed bundles records no size.
#[test]
fn found_containers_end_where_their_streams_end() {
    let one = first_version(&example("hip.hipfb"));
    let len = one.len() as u64;
    let cut = &one[..one.len() - 1];
    let mut host = elf(true, false);
    host.sections = vec![progbits(".rodata", &[b"x", &one[..], b"x", &one, b"x", cut].concat())];
    let file = host.build();
    let mut entered = Entered::default();
    walk_slice(&file, &Options::default(), &mut entered).unwrap();
    let (first, second) = (65, 66 + len);
    let header = (second + len + 1, 20);
    assert_eq!(entered.0, [(first, len), (first, len), (second, len), (second, len), header]);
}

/// Many headers that share one long table, which is wrong at its end: reading it for each would cost a multiple of the
/// file.
#[test]
fn too_many_wrong_candidates_end_the_scan() {
    const COUNT: usize = 1000;
    const TABLE: u16 = 65_000;
    let mut section = Vec::new();
    for number in 0..COUNT {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0);
        (header[18], header[52], header[58]) = (224, 64, 64);
        header[40..48].copy_from_slice(&(64 * (COUNT - number) as u64).to_le_bytes());
        header[60..62].copy_from_slice(&TABLE.to_le_bytes());
        section.extend(header);
    }
    section.resize(64 * (COUNT + usize::from(TABLE) - 1), 0);
    section.extend([[0, 0, 0, 0, 1, 0, 0, 0], [0xff; 8], [0xff; 8], [0xff; 8]].concat());
    section.resize(64 * (COUNT + usize::from(TABLE)), 0);
    let mut host = elf(true, false);
    host.sections = vec![progbits(".rodata", &section)];
    let found = listing(&host.build());
    assert_eq!(found.images(), []);
    let error = found.findings()[0].error();
    assert_eq!(error.kind(), ErrorKind::Limit, "{found:?}");
    assert!(error.to_string().starts_with("the scan for containers stopped at "), "{error}");
    assert_eq!(found.findings().len(), 1);
}
