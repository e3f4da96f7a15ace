//! Host files with SYCL images of Intel's toolchain: what tables describe, and what is found without.

use std::io;

use fat_object::sycl_table::SyclValue;
use fat_object::{
    ContainerKind, ErrorKind, FileFormat, Finding, Image, ImageInfo, Options, Visitor, list_slice,
    walk_slice,
};
use samples::elf::{self, progbits};
use samples::sycl::{self, Form, Sample, file, spirv, strip};
use target_id::OffloadKind;

fn samples() -> Vec<Sample> {
    vec![
        Sample::plain("spir64", &spirv(1), &["one", "another"]).aspects(&[6, 5]),
        Sample::plain("spir64", &spirv(2), &[]).compressed(),
        Sample::plain("spir64_gen", b"machine code", &["one"]).compile_target("intel_gpu_pvc"),
        Sample::plain("spir64", &spirv(3), &["third"]).compressed(),
        Sample::plain("spir64_gen", &spirv(4), &["fourth"]).compressed().compile_target("dg2"),
    ]
}

fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for version in 1..=3 {
        for (is_pe, relocated) in [(false, false), (false, true), (true, false)] {
            for (new_entries, per_table) in [(false, 100), (true, 2)] {
                let form = Form::default();
                let form = Form { version, is_pe, relocated, new_entries, per_table, ..form };
                forms.extend([form, Form { kind: 8, ..form }]);
            }
        }
    }
    forms
}

/// The errors and the images of a file.
fn listed(bytes: &[u8]) -> (Vec<(ErrorKind, String)>, Vec<ImageInfo>) {
    let listing = list_slice(bytes, &Options::default()).unwrap();
    let errors = listing.findings().iter().map(Finding::error);
    let errors = errors.map(|error| (error.kind(), error.to_string()));
    (errors.collect(), listing.images().to_vec())
}

#[test]
fn tables_of_all_versions_describe_each_image() {
    for form in forms() {
        let images = samples();
        let file = file(form, &images);
        for tables_only in [false, true] {
            let options = Options::default().with_tables_only(tables_only);
            let listing = list_slice(&file.bytes, &options).unwrap();
            assert!(listing.findings().is_empty(), "{form:?} {:?}", listing.findings());
            assert_eq!(listing.images().len(), images.len(), "{form:?}");
            for found in listing.images() {
                let offset = found.location().file_offset().unwrap();
                let n = file.images.iter().position(|&at| at as u64 == offset).unwrap();
                let expected = &images[n];
                assert_eq!(found.size(), expected.size);
                assert_eq!(found.stored_size(), Some(expected.stored.len() as u64));
                assert_eq!(found.bytes_in(&file.bytes), Some(&expected.stored[..]));
                assert_eq!(found.target().kind(), Some(&OffloadKind::Sycl));
                assert_eq!(found.target().triple().unwrap().as_str(), expected.target);
                let format = match n {
                    2 => FileFormat::Unknown,
                    _ => FileFormat::SpirV,
                };
                assert_eq!(found.format(), format, "{n}");
                let sycl = found.sycl().unwrap();
                assert_eq!((sycl.version(), sycl.format()), (form.version, expected.format));
                assert_eq!(sycl.kernels().collect::<Vec<_>>(), expected.kernels);
                assert_eq!((sycl.compile_options(), sycl.link_options()), ("", ""));
                let has_sets = form.version > 1;
                let compile_target = expected.compile_target.as_deref().filter(|_| has_sets);
                assert_eq!(sycl.compile_target(), compile_target);
                assert_eq!(found.target().id(), compile_target.unwrap_or_default());
                let aspects = if has_sets { &expected.aspects[..] } else { &[] };
                assert_eq!(sycl.aspects().collect::<Vec<_>>(), aspects);
                let level = sycl.properties().iter().find(|property| property.name() == "optLevel");
                let level = level.map(|property| (property.set(), property.value()));
                let expected = ("SYCL/misc properties", &SyclValue::Number(2));
                assert_eq!(level, has_sets.then_some(expected));
            }
        }
    }
}

/// Decompresses all images, and keeps the errors.
#[derive(Default)]
struct Decompressed(Vec<Result<Option<usize>, String>>);

impl Visitor for Decompressed {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let image = image.code().map(|image| image.map(|image| image.len()));
        self.0.push(image.map_err(|error| error.to_string()));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        assert_eq!(finding.error().kind(), ErrorKind::Limit, "{finding}");
        assert!(finding.to_string().contains("compressed SYCL image"), "{finding}");
        Ok(())
    }
}

#[test]
fn one_image_is_decompressed_within_the_limit() {
    let image = spirv(1);
    let file = file(Form::default(), &[Sample::plain("spir64", &image, &[]).compressed()]);
    let len = image.len() as u64;
    for (limit, is_within) in [(len, true), (len - 1, false)] {
        // The total has room for more.
        let options = Options::default().with_max_decompressed(limit);
        let mut all = Decompressed::default();
        walk_slice(&file.bytes, &options, &mut all).unwrap();
        let expected = if is_within {
            Ok(Some(image.len()))
        } else {
            Err(format!(
                "decompressing this image ({len} bytes) would exceed the limit of {limit} bytes"
            ))
        };
        assert_eq!(all.0, [expected]);
    }
}

#[test]
fn files_without_section_headers_have_the_same_images() {
    let images = samples();
    for form in forms().into_iter().filter(|form| !form.is_pe) {
        let mut file = file(form, &images);
        strip(&mut file.bytes);
        for scan in [false, true] {
            let listing = list_slice(&file.bytes, &Options::default().with_scan(scan)).unwrap();
            let is_hint = |finding: &Finding| finding.error().kind() == ErrorKind::NotRead;
            assert!(listing.findings().iter().all(is_hint), "{:?}", listing.findings());
            assert_eq!(listing.findings().len(), usize::from(!scan));
            assert_eq!(listing.images().len(), images.len(), "{form:?}");
            for found in listing.images() {
                let offset = found.location().file_offset().unwrap();
                let n = file.images.iter().position(|&at| at as u64 == offset).unwrap();
                assert!(found.sycl().unwrap().kernels().eq(&images[n].kernels));
                assert_eq!(found.size(), images[n].size);
                assert_eq!(found.container(), ContainerKind::OutsideSections);
                assert_eq!(found.path()[0].to_string(), "outside-sections:0x1000");
            }
        }
    }
}

#[test]
fn hosts_whose_tables_are_not_read_are_named() {
    for (wide, big, host) in [
        (false, false, "a 32-bit ELF file"),
        (false, true, "a 32-bit ELF file"),
        (true, true, "a big-endian ELF file"),
    ] {
        let mut elf = elf::elf(wide, big);
        elf.sections = vec![
            progbits("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", &[spirv(1), spirv(2)].concat()),
            progbits(".tgtimg", &[0; 16]),
        ];
        let mut bytes = elf.build();
        // An object has no tables yet.
        assert_eq!(listed(&bytes).0, []);
        bytes[16..18].copy_from_slice(&elf.half(3));
        let (errors, found) = listed(&bytes);
        let text = format!(
            "tables of SYCL images are not read: expected a 64-bit little-endian ELF or PE file, found {host}"
        );
        assert_eq!(errors, [(ErrorKind::NotRead, text)]);
        assert_eq!(found.len(), 2);
    }
}

#[test]
fn images_that_tables_describe_are_not_entered() {
    for bytes in [&b"!<arch>\n no member"[..], b"\x7fELF no header"] {
        let image = Sample::plain("spir64_gen", bytes, &["one"]);
        let (errors, found) = listed(&file(Form::default(), &[image]).bytes);
        assert_eq!((errors.len(), found.len()), (0, 1));
    }
}

#[test]
fn images_without_tables_end_where_their_bytes_tell() {
    let images = samples();
    for form in forms() {
        let mut file = file(form, &images);
        for at in &file.tables {
            file.bytes[*at] = 2;
        }
        let (errors, found) = listed(&file.bytes);
        // Machine code does not tell where it ends, and begins its section.
        let is_gap = |(kind, _): &(ErrorKind, _)| *kind == ErrorKind::TrailingData;
        let (gaps, errors): (Vec<_>, Vec<_>) = errors.into_iter().partition(is_gap);
        assert!(gaps.len() <= 1);
        let address = sycl::BASE + file.images[0] as u64;
        let text = format!(
            "section .tgtimg lists 5 SYCL images that no table describes, the first at address {address:#x}"
        );
        assert_eq!(errors, [(ErrorKind::NotRead, text)]);
        assert!(found.iter().all(|image| image.sycl().is_none()));
        let sizes: Vec<_> = found.iter().map(ImageInfo::size).collect();
        assert_eq!(sizes[..3], [28, 28, 28]);
    }
}

#[test]
fn tables_that_contradict_themselves_are_found() {
    let images = samples();
    let file = file(Form::default(), &images);
    let changed = |at: usize, new: &[u8]| {
        let mut bytes = file.bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        listed(&bytes)
    };
    let (descriptors, table) = (&file.descriptors, file.tables[0]);
    let at = descriptors[0] as u64;

    let (errors, found) = changed(descriptors[0], &[4]);
    let head = format!("SYCL image descriptor at {at:#x}: ");
    assert_eq!(errors[0].1, format!("{head}expected version 1, 2 or 3, found 4"));
    assert_eq!(found.iter().filter(|image| image.sycl().is_some()).count(), 0);

    let (errors, found) = changed(descriptors[3], &[2]);
    let [(ErrorKind::HostFile, text), ..] = &errors[..] else { panic!("{errors:?}") };
    assert!(text.contains(": expected version 3 and kind"), "{text}");
    assert!(text.contains(", found version 2 and kind"), "{text}");
    assert_eq!(found.iter().filter(|image| image.sycl().is_some()).count(), 3);

    let (errors, _) = changed(table + 2, &[0xff, 0xff]);
    assert!(errors[0].1.contains("expected 65535 descriptors at address"), "{errors:?}");

    for (field, what) in [(40, "image"), (56, "entries"), (72, "property sets")] {
        let (errors, found) = changed(descriptors[0] + field + 5, &[1]);
        assert!(errors[0].1.starts_with(&format!("{head}{what} at addresses ")), "{errors:?}");
        assert_eq!(found.iter().filter(|image| image.sycl().is_some()).count(), 4);
    }
    for (field, what) in [(8, "target"), (16, "compile options"), (24, "link options")] {
        let (errors, _) = changed(descriptors[0] + field + 5, &[1]);
        assert!(errors[0].1.starts_with(&format!("{head}{what} at address ")), "{errors:?}");
    }

    let (errors, found) = changed(file.tgtimg + 8, &[29]);
    let text = "SYCL image has 28 bytes: expected 29, as in section .tgtimg".to_owned();
    assert_eq!(errors, [(ErrorKind::Image, text)]);
    assert_eq!(found.len(), 5);
    let (errors, _) = changed(file.tgtimg + 16 + 8, &[29]);
    let [(ErrorKind::Image, text)] = &errors[..] else { panic!("{errors:?}") };
    assert!(text.starts_with("compressed SYCL image: "), "{text}");
    let (errors, _) = changed(file.images[1] + 12, &[0]);
    assert!(matches!(errors[..], []), "a changed magic is not SPIR-V: {errors:?}");
    let (errors, _) = changed(file.images[1] + 12 + 7, &[9]);
    let [(ErrorKind::Image, text)] = &errors[..] else { panic!("{errors:?}") };
    assert!(text.starts_with("SPIR-V module of 28 bytes has a malformed header"), "{text}");
    let (errors, _) = changed(file.images[1] + 40, &[9]);
    assert!(matches!(errors[..], [(ErrorKind::TrailingData, _)]), "{errors:?}");
}

/// A bundle with one image.
const BUNDLE: &[u8] =
    b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0\x58\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\
    \x1d\0\0\0\0\0\0\0hip-amdgcn-amd-amdhsa--gfx906\0\0\0code";

#[test]
fn other_containers_in_a_section_of_images_are_found() {
    let images = [Sample::plain("spir64", &spirv(1), &["one"])];
    for is_pe in [false, true] {
        for section in [None, Some("spir64"), Some(".rodata"), Some(".rdata")] {
            let form = Form { is_pe, section, trailing: BUNDLE, ..Form::default() };
            let file = file(form, &images);
            let (errors, found) = listed(&file.bytes);
            // Nothing but images belongs into sections for images.
            let is_gap = |(kind, _): &(ErrorKind, _)| *kind == ErrorKind::TrailingData;
            let is_for_images = section.is_none_or(|name| name == "spir64");
            assert_eq!(errors.len(), usize::from(is_for_images), "{section:?} {errors:?}");
            assert!(errors.iter().all(is_gap), "{errors:?}");
            let [image, other] = &found[..] else { panic!("{found:?}") };
            assert!(image.sycl().is_some());
            assert_eq!(other.bytes_in(&file.bytes), Some(&b"code"[..]));
            assert_eq!(other.id(), Some("hip-amdgcn-amd-amdhsa--gfx906"));
            assert!(other.path()[0].is_found_by_scan());
        }
    }
}

#[test]
fn tables_that_share_bytes_cost_no_more_than_the_file() {
    // Each of many descriptors names the whole image.
    let large = spirv(1).repeat(1000);
    let one = Sample::plain("spir64", &large, &["kernel"]);
    let mut file = file(
        Form::default(),
        &[&[one][..], &vec![Sample::plain("spir64", &[], &[]); 200]].concat(),
    );
    let first = file.bytes[file.descriptors[0]..][..80].to_vec();
    for &at in &file.descriptors {
        file.bytes[at..at + 80].copy_from_slice(&first);
    }
    let (errors, found) = listed(&file.bytes);
    let is_overlap = |(_, text): &(_, String)| text.starts_with("SYCL images overlap: ");
    assert!(errors.iter().any(is_overlap), "{errors:?}");
    assert!(found.len() < 4);
}

#[test]
fn objects_keep_their_one_entry() {
    // Not linked: the table has relocations with symbols, and nothing has an address.
    let images = [Sample::plain("spir64", &spirv(1), &["one"])];
    let mut object = file(Form { relocated: true, ..Form::default() }, &images).bytes;
    object[16] = 1;
    object[56] = 0;
    let (errors, found) = listed(&object);
    assert_eq!((errors.len(), found.len()), (0, 1));
    assert_eq!(found[0].id(), Some("sycl-spir64"));
    let images = [&images[..], &samples()].concat();
    let mut object = file(Form { relocated: true, ..Form::default() }, &images).bytes;
    object[16] = 1;
    object[56] = 0;
    let (_, found) = listed(&object);
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|image| image.id().is_none_or(|id| id == "sycl-spir64_gen")));
}
