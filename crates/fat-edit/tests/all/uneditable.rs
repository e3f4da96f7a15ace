//! Containers that are read and not edited.

use std::io::Cursor;

use fat_edit::{Edit, EditOptions, survey};
use fat_object::{Options, has_device_code};
use object_edit::embed;
use samples::hcf::{self, hcf};
use samples::sycl::{self, Form, file, spirv, strip};

#[test]
fn hcf_containers_are_not_edited() {
    let file = hcf(&[hcf::Sample::bitcode(&["kernel"])]);
    let contents = survey(Cursor::new(&file), &Options::default()).unwrap();
    assert_eq!(contents.containers()[0].uneditable(), Some("HCF containers"));
    let mut edit = Edit::new(EditOptions::default().with_allow_empty(true));
    edit.remove(0);
    let error = contents.plan(Cursor::new(&file), &edit).unwrap_err().to_string();
    assert!(error.contains("HCF containers"), "{error}");
}

#[test]
fn registered_sycl_images_are_not_edited() {
    for is_stripped in [false, true] {
        let mut file = file(Form::default(), &[sycl::Sample::plain("spir64", &spirv(1), &["one"])]);
        if is_stripped {
            strip(&mut file.bytes);
        }
        let contents = survey(Cursor::new(&file.bytes), &Options::default()).unwrap();
        assert!(!contents.containers().is_empty());
        assert!(contents.containers().iter().all(|container| container.uneditable().is_some()));
    }
}

/// The question finds what was embedded by the type of its section.
#[test]
fn embedded_offload_binaries_are_found_by_type() {
    let data = |name: &str| samples::example(name);
    let packed = embed(&data("host.o"), &data("packages.offload")).unwrap();
    let (from, to) = (b".llvm.offloading", b".llvm.offloadxxx");
    let at = packed.windows(from.len()).position(|bytes| bytes == from).unwrap();
    let renamed = [&packed[..at], to, &packed[at + from.len()..]].concat();
    assert!(has_device_code(&renamed).unwrap());
}
