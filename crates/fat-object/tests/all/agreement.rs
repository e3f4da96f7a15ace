//! Images that are for other devices than their containers say, as a walk finds them.

use fat_object::{Disagreement, ErrorKind, Listing, Options, Severity, list_slice};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use samples::bundle::bundle;
use samples::device::{AMD, CUBIN, Head, ZEBIN, amd, new_cubin, old_cubin};
use samples::fatbin::{Made, fatbin};
use target_id::Verdict;

/// A cubin as CUDA 13 writes it, without the number of its GPU.
fn unnumbered() -> Vec<u8> {
    Head { os_abi: 0x41, abi: 8, flags: 4, ..CUBIN }.bytes()
}

/// A code object of an ABI with these flags.
fn old_amd(abi: u8, flags: u32) -> Vec<u8> {
    Head { abi, flags, ..AMD }.bytes()
}

/// An object for another machine.
fn other(machine: u16) -> Vec<u8> {
    Head { machine, ..ZEBIN }.bytes()
}

fn hip(target: &str, image: &[u8]) -> Vec<u8> {
    bundle(
        &[
            ("host-x86_64-unknown-linux-gnu-", b""),
            (&format!("hipv4-amdgcn-amd-amdhsa--{target}"), image),
        ],
        4096,
    )
}

fn listed(file: &[u8]) -> Listing {
    list_slice(file, &Options::default()).unwrap()
}

/// The contradictions of the last image; each is a finding, too.
fn said(file: &[u8]) -> Option<String> {
    said_with(file, &Options::default())
}

fn said_with(file: &[u8], options: &Options) -> Option<String> {
    let listing = list_slice(file, options).unwrap();
    let marks: Vec<_> = listing.images().iter().filter_map(|image| image.disagreement()).collect();
    let mut found = Vec::new();
    for finding in listing.findings() {
        assert_eq!(finding.error().kind(), ErrorKind::Disagreement, "{finding}");
        found.push(finding.error().to_string());
    }
    assert_eq!(marks.len(), found.len());
    for (mark, text) in marks.iter().zip(&found) {
        assert!(text.ends_with(&format!(" and its image disagree: {mark}")), "{text}");
    }
    let last = listing.images().last().unwrap();
    last.disagreement().map(ToString::to_string)
}

#[test]
fn code_for_another_processor_is_marked_and_found() {
    let file = hip("gfx906", &amd(0x549));
    let listing = listed(&file);
    let Some(Disagreement::Target { found, verdict }) = listing.images()[1].disagreement() else {
        panic!()
    };
    assert_eq!(found, "gfx1250");
    assert!(matches!(verdict, Verdict::ProcessorMismatch { .. }));
    assert_eq!(listing.images()[1].disagreement().unwrap().found(), "gfx1250");
    assert!(listing.is_complete(), "no image is missing");
    let [finding] = listing.findings() else { panic!() };
    assert_eq!(finding.severity(), Severity::Warning);
    assert_eq!(finding.location().file_offset(), Some(4096));
    assert_eq!(
        finding.to_string(),
        "bundle:0 at byte 0x1000: entry hipv4-amdgcn-amd-amdhsa--gfx906 and its image disagree: the code \
         object is for gfx1250, not for gfx906"
    );
}

#[test]
fn features_are_compared() {
    for (target, flags, agrees) in [
        ("gfx90a", 0x53f, true),
        ("gfx90a:xnack+", 0x73f, true),
        ("gfx90a:xnack+", 0x53f, true),
        ("gfx90a:xnack-", 0x73f, false),
        ("gfx90a", 0x73f, false),
        ("gfx90a:sramecc+:xnack-", 0xe3f, true),
    ] {
        assert_eq!(said(&hip(target, &amd(flags))).is_none(), agrees, "{target} {flags:#x}");
    }
}

#[test]
fn unknown_targets_are_not_reported() {
    for (target, image) in [
        ("gfx906", amd(0x500)),                 // no processor
        ("gfx906", amd(0x5fe)),                 // newer than the table
        ("gfx9999", amd(0x549)),                // an unknown name
        ("gfx906", amd(0x151 | 1 << 24)),       // a generic processor that covers it
        ("gfx9-generic", amd(0x151 | 2 << 24)), // another version of it
        ("gfx906", old_amd(1, 0x12f)),          // version 3: its xnack is another bit
        ("gfx906", old_amd(0, 1)),              // version 2: flags only
        ("gfx906", old_amd(0, 3)),
        ("gfx906", amd(0x52f)[..40].to_vec()), // cut
        ("gfx906", Vec::new()),                // a placeholder
        ("gfx906", b"anything".to_vec()),
        ("gfx906", b"BC\xc0\xde".to_vec()),
        ("generic", amd(0x52f)),
    ] {
        assert_eq!(said(&hip(target, &image)), None, "{target}");
    }
}

#[test]
fn formats_for_other_devices_are_reported() {
    for (id, image, says) in [
        ("hip-amdgcn-amd-amdhsa--gfx906", new_cubin(80), "cubin where an AMD"),
        ("hip-amdgcn-amd-amdhsa--gfx906", b"\x03\x02\x23\x07".to_vec(), "SPIR-V where"),
        ("hip-amdgcn-amd-amdhsa--gfx906", other(62), "where an AMD GPU code object"),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", amd(0x52f), "where SPIR-V or LLVM bitcode"),
        ("openmp-nvptx64-nvidia-cuda--sm_70", amd(0x52f), "where a cubin, PTX"),
        ("sycl-spir64-unknown-unknown", amd(0x52f), "where SPIR-V"),
    ] {
        let said = said(&bundle(&[(id, &image)], 4096)).unwrap_or_else(|| panic!("{id}"));
        assert!(said.contains(says), "{said}");
    }
    for (id, image) in [
        // LLVM's linker wrapper makes this of SPIR-V for OpenMP.
        ("openmp-spirv64-intel-unknown-", other(205)),
        ("sycl-spir64-unknown-unknown", b"\x28\xb5\x2f\xfd".to_vec()),
        ("sycl-spir64_gen-unknown-unknown", other(205)),
        ("openmp-x86_64-unknown-linux-gnu-", other(62)),
        ("host-x86_64-unknown-linux-gnu-", amd(0x52f)),
    ] {
        assert_eq!(said(&bundle(&[(id, &image)], 4096)), None, "{id}");
    }
}

#[test]
fn text_bundles_may_hold_sources() {
    let text = "# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx906\n//\n.version 7.0\n\
                # __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx906\n";
    let listing = listed(text.as_bytes());
    assert_eq!((listing.images().len(), listing.findings().len()), (1, 0));
}

#[test]
fn compressed_bundles_are_compared_where_they_are_read() {
    if ccob::Method::default().codec().is_none() {
        return;
    }
    let plain = hip("gfx906", &amd(0x549));
    let file = ccob::compress(&plain, &ccob::WriteOptions::default()).unwrap();
    assert_eq!(said(&file).as_deref(), Some("the code object is for gfx1250, not for gfx906"));
    assert_eq!(said_with(&file, &Options::default().with_tables_only(true)), None);
}

fn packaged(arch: &str, triple: &str, kind: ImageKind, image: &[u8]) -> Vec<u8> {
    let entry = ImageEntry::new(image.len() as u64)
        .with_image_kind(kind)
        .with_offload_kind(OffloadKind::OPENMP)
        .with_string("triple", triple)
        .with_string("arch", arch);
    let layout = offload_binary::layout(FormatVersion::V2, &[entry]).unwrap();
    layout.to_vec(&[image]).unwrap()
}

#[test]
fn offload_binaries_are_compared_by_arch_and_kind() {
    let (amdgcn, nvptx) = ("amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda");
    let object = ImageKind::OBJECT;
    assert_eq!(said(&packaged("gfx906", amdgcn, object, &amd(0x52f))), None);
    assert_eq!(said(&packaged("gfx906", amdgcn, object, b"BC\xc0\xde")), None, "linked later");
    assert_eq!(said(&packaged("sm_90", nvptx, object, &new_cubin(90))), None);
    let said_of = |arch, triple, kind, image: &[u8]| {
        let file = packaged(arch, triple, kind, image);
        let listing = listed(&file);
        let text = listing.findings()[0].error().to_string();
        let entry = text.strip_prefix("entry ").and_then(|text| text.split_once(" and ")).unwrap();
        let entry = entry.0.to_owned();
        (entry, said(&file).unwrap())
    };
    let (entry, why) = said_of("gfx906", amdgcn, object, &amd(0x549));
    assert_eq!(entry, "openmp-amdgcn-amd-amdhsa--gfx906");
    assert_eq!(why, "the code object is for gfx1250, not for gfx906");
    let (_, why) = said_of("sm_80", nvptx, ImageKind::CUBIN, &old_cubin(90));
    assert_eq!(why, "the code object is code for sm_90, newer than sm_80");
    let (_, why) = said_of("sm_80", nvptx, ImageKind::PTX, &old_cubin(80));
    assert_eq!(why, "cubin where the offload binary records ptx");
}

/// A fatbinary of one entry: kind, architecture, flags, stored bytes, their size uncompressed.
fn fatbinary(kind: u16, sm: u32, flags: u64, stored: &[u8], size: u64) -> Vec<u8> {
    fatbin(&[Made { kind, sm, flags, payload: stored.to_vec(), size, ..Made::default() }])
}

#[test]
fn entries_of_fatbinaries_are_compared_by_their_numbers() {
    const SPECIFIC: u64 = 0x10_0000;
    const FAMILY: u64 = 0x20_0000;
    let ptx = |target: &str| format!("//\n.version 7.0\n.target {target}, debug\n").into_bytes();
    for (kind, sm, flags, image, says) in [
        (2, 80, 1, old_cubin(80), None),
        (2, 80, 1, new_cubin(80), None),
        (2, 90, SPECIFIC, new_cubin(90), None),
        (2, 100, FAMILY, new_cubin(100), None),
        (2, 86, 1, new_cubin(80), None), // runs there
        (2, 80, 1, new_cubin(86), Some("is code for sm_86, newer than sm_80")),
        (2, 80, 1, old_cubin(70), Some("is code for sm_70")),
        (2, 80, 1, unnumbered(), None), // no number
        (1, 80, 1, ptx("sm_80"), None),
        (1, 90, SPECIFIC, ptx("sm_90a"), None),
        (1, 80, 1, ptx("sm_70"), None),
        (1, 80, 1, ptx("sm_90"), Some("is PTX for compute_90")),
        (2, 80, 1, amd(0x52f), Some("where a cubin, PTX, a fatbinary or LLVM bitcode")),
    ] {
        let said = said(&fatbinary(kind, sm, flags, &image, 0));
        let agrees = match (says, &said) {
            (Some(says), Some(said)) => said.contains(says),
            (says, said) => says.is_none() && said.is_none(),
        };
        assert!(agrees, "sm_{sm}: {said:?}");
    }
}

#[test]
fn compressed_entries_are_compared_on_request() {
    const LZ4: u64 = 0x2000;
    let image = new_cubin(90);
    // One sequence of literals.
    let stored = [&[0xf0, u8::try_from(image.len() - 15).unwrap()][..], &image].concat();
    let checked = Options::default().with_check_compressed(true);
    for (sm, says) in
        [(90, None), (80, Some("the code object is code for sm_90, newer than sm_80"))]
    {
        let file = fatbinary(2, sm, LZ4, &stored, image.len() as u64);
        assert_eq!(said(&file), None);
        assert_eq!(said_with(&file, &checked).as_deref(), says);
    }
    // It is not what its header says.
    for (size, kind) in
        [(65, ErrorKind::Image), (1 << 40, ErrorKind::Limit), (u64::MAX, ErrorKind::Limit)]
    {
        let file = fatbinary(2, 80, LZ4, &stored, size);
        let listing = list_slice(&file, &checked).unwrap();
        assert!(listing.images()[0].disagreement().is_none());
        let kinds = listing.findings().iter().map(|finding| finding.error().kind());
        assert_eq!(kinds.collect::<Vec<_>>(), [kind], "{size}");
    }
}
