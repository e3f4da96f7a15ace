//! The question for device code, and walks of bytes in memory: both agree with a walk that reads.

use std::io::{self, Cursor, Read};

use fat_object::{
    Container, ContainerKind, Error, ErrorKind, Finding, Image, ImageInfo, Location, Options,
    Visitor, has_device_code, list, list_slice, walk, walk_slice,
};
use samples::{example, examples};

/// Result of a walk.
#[derive(Default)]
struct Seen<'d> {
    data: &'d [u8],
    has_code: bool,
    images: Vec<(ImageInfo, Vec<u8>)>,
    findings: Vec<String>,
}

impl Visitor for Seen<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.has_code |= !matches!(container.kind(), ContainerKind::Member | ContainerKind::Slice);
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        let (lent, listed) = (image.bytes_in(self.data), image.info().clone());
        assert_eq!(lent, listed.bytes_in(self.data));
        match image.location() {
            Location::File(_) => assert_eq!(lent, Some(&bytes[..])),
            _ => assert_eq!(lent, None),
        }
        self.images.push((listed, bytes));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push(finding.to_string());
        Ok(())
    }
}

/// Returns the answer for these bytes, which agrees with walks.
fn ask(data: &[u8]) -> Result<bool, Error> {
    let (mut read, mut lent) = (Seen { data, ..Seen::default() }, Seen { data, ..Seen::default() });
    // The question asks for sections.
    let options = Options::default().with_scan(false);
    let summary = walk(Cursor::new(data), &options, &mut read).unwrap();
    let lent_summary = walk_slice(data, &options, &mut lent).unwrap();
    assert_eq!(format!("{lent_summary:?}"), format!("{summary:?}"));
    assert_eq!(lent.images, read.images);
    assert_eq!(lent.findings, read.findings);
    let answer = has_device_code(data);
    if read.has_code {
        assert!(matches!(answer, Ok(true)), "{answer:?}");
    } else if read.findings.is_empty() && summary.format.is_read() {
        assert!(matches!(answer, Ok(false)), "{answer:?}");
    } else {
        assert!(!matches!(answer, Ok(false)), "{answer:?} {:?}", read.findings);
    }
    answer
}

#[test]
fn example_files_are_answered_right() {
    for (name, bytes) in examples() {
        let answer = ask(&bytes);
        match name.as_str() {
            "host.o" => assert!(!answer.unwrap()),
            // The members lie in other files.
            "libhip-thin.a" => {
                let error = answer.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ThinMember, "{error}");
                assert!(error.to_string().starts_with("at byte 0x"), "{error}");
                assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidData);
            }
            ".gitattributes" | "README.md" | "regenerate.sh" => {
                let error = answer.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotRead);
                assert_eq!(error.to_string(), "files of this format are not read: unknown");
                assert_eq!(io::Error::from(error).kind(), io::ErrorKind::Unsupported);
            }
            _ => assert!(matches!(answer, Ok(true)), "{name}: {answer:?}"),
        }
    }
}

#[test]
fn a_section_is_known_by_name_type_or_start() {
    let hip = example("hip.o");
    let renamed = |from: &[u8], to: &[u8], bytes: &[u8]| {
        assert_eq!(from.len(), to.len());
        let at: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
        assert!(!at.is_empty());
        let mut bytes = bytes.to_vec();
        at.iter().for_each(|at| bytes[*at..*at + to.len()].copy_from_slice(to));
        bytes
    };
    // By what it starts with.
    let nameless = renamed(b".hip_fatbin", b".hip_fatbix", &hip);
    assert!(ask(&nameless).unwrap());
    // By nothing, any more.
    let empty = renamed(b"__CLANG_OFFLOAD_BUNDLE__", b"__CLANG_OFFLOAD_BUNDLX__", &nameless);
    assert!(!ask(&empty).unwrap());
    // By its name, whatever it holds: a walk says that it is damaged.
    let damaged = renamed(b"__CLANG_OFFLOAD_BUNDLE__", b"__CLANG_OFFLOAD_BUNDLX__", &hip);
    assert!(ask(&damaged).unwrap());
    assert!(!list_slice(&damaged, &Options::default()).unwrap().is_complete());
}

/// A walk that does not look into sections of other names finds what names and types say, read and in memory.
#[test]
fn sections_are_found_by_name_and_type_alone() {
    let by_name = Options::default().with_scan(false).with_section_starts(false);
    let count = |bytes: &[u8]| {
        let lent = list_slice(bytes, &by_name).unwrap();
        let read = list(Cursor::new(bytes), &by_name).unwrap();
        assert_eq!(lent.images(), read.images());
        assert!(lent.is_complete() && read.is_complete());
        lent.images().len()
    };
    let all = |bytes: &[u8]| {
        list_slice(bytes, &Options::default().with_scan(false)).unwrap().images().len()
    };
    let renamed = |from: &[u8], bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        for at in 0..bytes.len() - from.len() {
            if bytes[at..].starts_with(from) {
                bytes[at + 1] = b'_';
            }
        }
        bytes
    };
    for name in ["hip.o", "hip.obj", "hip-macos.o", "cuda-fatbin.o", "hip-packager.o", "libhip.a"] {
        let bytes = example(name);
        assert!(count(&bytes) > 0 && count(&bytes) == all(&bytes), "{name}");
    }
    // The type of the section stays.
    let typed = renamed(b".llvm.offloading", &example("hip-packager.o"));
    assert!(count(&typed) > 0 && count(&typed) == all(&typed));
    let by_start = renamed(b".hip_fatbin", &example("hip.o"));
    assert_eq!((count(&by_start), all(&by_start)), (0, count(&example("hip.o"))));
    let archive = samples::ar::archive(&[("host.o", &example("host.o")), ("x.o", &by_start)]);
    assert_eq!((count(&archive), all(&archive)), (0, count(&example("hip.o"))));
    assert!(ask(&archive).unwrap());
}

#[test]
fn damage_that_hides_device_code_is_an_error() {
    // A section beyond the end, without any device code; of a file with device code that is enough.
    let host = example("host.o");
    let cut = |bytes: &[u8]| {
        // The section headers of clang's objects come last: headers that stay name bytes that are gone.
        let mut bytes = bytes.to_vec();
        let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
        let count = usize::from(u16::from_le_bytes(bytes[60..62].try_into().unwrap()));
        let last = table + (count - 1) * 64;
        bytes[last + 24..last + 32].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        bytes
    };
    let error = ask(&cut(&host)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HostFile);
    assert!(error.to_string().contains("beyond the end of the file"), "{error}");
    assert!(ask(&cut(&example("hip.o"))).unwrap());
    // A program whose section headers were removed.
    let mut program = example("hip-two-units.so");
    program[40..48].fill(0);
    program[60..64].fill(0);
    let error = ask(&program).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRead);
    assert!(error.to_string().starts_with("no section headers"), "{error}");
    for packed in [&b"PK\x03\x04"[..], b"\x1f\x8b\x08", b"!<arch>\ndebian-binary   ", b"junk"] {
        assert!(ask(packed).is_err());
    }
    // Nothing, and device images themselves.
    let spirv = [0x0723_0203, 0x1_0000, 0, 1, 0, 2 << 16 | 17, 6, 3 << 16 | 14, 2, 2];
    let spirv: Vec<u8> = spirv.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    for image in [&b""[..], &spirv, b".version 8.0\n.target sm_80\n"] {
        assert!(!ask(image).unwrap());
    }
    assert!(ask(&spirv[..20]).is_err(), "a damaged one");
}

#[test]
fn a_member_is_damaged_as_a_file_is() {
    // The string table of a COFF object comes last, and starts with its size: this one ends after its file.
    let mut object = example("hip.obj");
    let field = |at: usize| u32::from_le_bytes(object[at..at + 4].try_into().unwrap());
    let table = usize::try_from(field(8) + 18 * field(12)).unwrap();
    let len = field(table) + 64;
    object[table..table + 4].copy_from_slice(&len.to_le_bytes());
    assert!(ask(&object).is_err());
    let size = object.len();
    let header = format!("{:<16}{:<32}{size:<10}`\n", "a.obj/", "0");
    let archive = [b"!<arch>\n", header.as_bytes(), &object, &[b'\n'; 100]].concat();
    assert!(ask(&archive).is_err());
}

#[test]
fn images_are_iterated_by_reference() {
    let library = example("libhip.a");
    let listing = list_slice(&library, &Options::default()).unwrap();
    assert_eq!(
        listing.images(),
        list(Cursor::new(&library), &Options::default()).unwrap().images()
    );
    let bounds = library.as_ptr_range();
    for image in listing.images() {
        let bytes = image.bytes_in(&library).unwrap();
        assert_eq!(bytes.len() as u64, image.size());
        assert!(bounds.start <= bytes.as_ptr() && bytes.as_ptr_range().end <= bounds.end);
        // The bytes of another file.
        assert_eq!(image.bytes_in(&library[..10]), None);
    }
    let compressed = example("hip-ccob-v3.o");
    let listing = list_slice(&compressed, &Options::default()).unwrap();
    assert!(listing.images().len() > 1);
    assert!(listing.images().iter().all(|image| image.bytes_in(&compressed).is_none()));
}

/// Tables of SYCL images lie in sections of any name.
#[test]
fn linked_sycl_images_are_device_code() {
    use samples::sycl::{Form, Sample, file};

    let images = [Sample::plain("spir64", b"\x03\x02\x23\x07code", &["one"])];
    for is_pe in [false, true] {
        for section in [None, Some("spir64"), Some(".rodata"), Some(".sycl")] {
            let form = Form { is_pe, section, ..Form::default() };
            assert!(ask(&file(form, &images).bytes).unwrap(), "{is_pe} {section:?}");
        }
    }
}
