//! Bundles in the object form for WebAssembly modules: custom sections at the end.

use std::io::{self, Cursor};

use crate::bundling::{self, GFX906, HOST, add, entries, found, there_and_back, walked};
use fat_edit::{object_bundle, remove_bundle_sections};
use fat_object::{Finding, Image, Options, Visitor, walk};

/// One function without a body's worth: a type section, a code section, and custom ones.
fn module(custom: &[(&str, &[u8])]) -> Vec<u8> {
    let mut module =
        b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x0b".to_vec();
    for (name, contents) in custom {
        module.push(0);
        module.push((1 + name.len() + contents.len()) as u8);
        module.push(name.len() as u8);
        module.extend(name.as_bytes());
        module.extend(*contents);
    }
    module
}

#[test]
fn removing_restores_modules() {
    for module in [
        b"\0asm\x01\0\0\0".to_vec(),
        module(&[]),
        module(&[("linking", b"\x02"), ("reloc.CODE", b"\x02\0"), ("name", b"")]),
    ] {
        there_and_back(&module);
        found(&module);
    }
}

/// `llvm-objcopy --add-section=__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906=FILE` of LLVM 22 appends
/// the same.
#[test]
fn the_bytes_are_those_of_objcopy() {
    let module = module(&[]);
    let mut expected = module.clone();
    expected
        .extend(b"\0\xbb\x80\x80\x80\0\x35__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906");
    expected.extend(b"image");
    assert_eq!(add(&module, &[(GFX906, b"image")]), expected);
}

/// Relocations of `.debug_info`, and symbols, have section numbers.
#[test]
fn removed_sections_leave_their_numbers() {
    let entry = ("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a", &b"one"[..]);
    let linking = ("linking", &b"\x02"[..]);
    let reloc = ("reloc.CODE", &b"\x02\0"[..]);
    let object = module(&[entry, linking, entry, reloc, entry, entry]);
    assert_eq!(walked(&object).len(), 4);
    let rest = remove_bundle_sections(&object).unwrap();
    let mut expected = module(&[]);
    let place = b"\0\x91\x80\x80\x80\0\x10.objcopy.removed";
    expected.extend(place);
    expected.extend(&module(&[linking])[expected.len() - place.len()..]);
    expected.extend(place);
    expected.extend(&module(&[reloc])[module(&[]).len()..]);
    assert_eq!(*rest, expected);
    there_and_back(&rest);
    assert_eq!(*remove_bundle_sections(&add(&object, &entries())).unwrap(), *rest);
}

fn refused(bytes: &[u8]) -> String {
    let error = object_bundle(bytes, &[(HOST, 1)]).unwrap_err().to_string();
    assert_eq!(remove_bundle_sections(bytes).unwrap_err().to_string(), error);
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 150, "{message}");
    error
}

#[test]
fn malformed_modules_are_errors() {
    let field = |field, offset: u64, found: u64, expected| {
        format!(
            "WebAssembly header field {field} at {offset:#x} is {found:#x}, expected {expected}"
        )
    };
    let version = "01 00 00 00, the version of a module";
    assert_eq!(refused(b"\0asm\x0d\0\x01\0"), field("version", 4, 13, version));
    assert_eq!(refused(b"\0asm"), field("version", 4, 0, version));
    let number = "a number in at most five bytes, of 32 bits";
    let header = b"\0asm\x01\0\0\0";
    for size in [&b""[..], b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\0"] {
        let found = size.first().copied().unwrap_or_default().into();
        let bytes = [&header[..], b"\x01", size].concat();
        assert_eq!(refused(&bytes), field("section size", 9, found, number));
    }
    let (format, part) = ("WebAssembly", "section 1");
    let bytes = [&header[..], b"\x01\x01_\x03\x05four"].concat();
    let (start, end, available) = (13, 18, 17);
    assert_eq!(
        refused(&bytes),
        format!(
            "{format} {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
        )
    );
    let name = "length of a section name";
    let expected = "at most the length of the section";
    assert_eq!(refused(&[&header[..], b"\0\x02\x02n"].concat()), field(name, 10, 2, expected));
    assert_eq!(refused(&[&header[..], b"\0\0"].concat()), field(name, 10, 0, number));
    let module = module(&[]);
    let error = object_bundle(&module, &[(HOST, u64::from(u32::MAX))]).unwrap_err().to_string();
    assert!(error.contains(" does not fit an offset or size of WebAssembly"), "{error}");
    assert!(object_bundle(&module, &[(HOST, u64::MAX)]).is_err());
}

#[test]
fn the_walk_reports_truncated_modules() {
    struct Seen(usize, Vec<String>);
    impl Visitor for Seen {
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            self.0 += 1;
            Ok(())
        }

        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            self.1.push(finding.to_string());
            Ok(())
        }
    }
    let mut object = add(&module(&[]), &entries());
    object.pop();
    let mut seen = Seen(0, Vec::new());
    let summary = walk(&mut Cursor::new(&object), &Options::default(), &mut seen).unwrap();
    assert_eq!((summary.format.to_string(), seen.0), ("WebAssembly".to_owned(), 2));
    assert_eq!(
        seen.1,
        [
            "at byte 0x0: malformed WebAssembly file: no section that ends inside the file starts at 0x9d"
        ]
    );
    // A component is not a module.
    let mut seen = Seen(0, Vec::new());
    walk(&mut Cursor::new(b"\0asm\x0d\0\x01\0junk"), &Options::default(), &mut seen).unwrap();
    assert_eq!((seen.0, seen.1.len()), (0, 0));
}

#[test]
fn damaged_modules_cause_no_panic() {
    bundling::judge_damaged(&add(&module(&[("linking", b"\x02")]), &entries()));
}
