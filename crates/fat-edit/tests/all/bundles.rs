//! Facts that the walk tells about the entries of bundles.

use std::io::{self, Cursor, Read};

use bundle_format::text::Leader;
use fat_edit::{HOST_PLACEHOLDER, object_bundle};
use fat_object::{BundleForm, FileFormat, Finding, Image, Options, Visitor, walk};
use samples::example;

/// For each image its form, and the host object for the placeholder of one.
#[derive(Default)]
struct Forms(Vec<(Option<BundleForm>, Option<Vec<u8>>)>);

impl Visitor for Forms {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut host = None;
        if image.format() == FileFormat::HostPlaceholder {
            let mut object = Vec::new();
            image.enclosing_object().unwrap().read_to_end(&mut object)?;
            host = Some(fat_edit::remove_bundle_sections(&object).unwrap().into_owned());
        }
        let form = image.bundle_form();
        assert_eq!(image.enclosing_object().is_some(), form == Some(BundleForm::Section));
        self.0.push((form, host));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        panic!("{finding}");
    }
}

fn forms(bytes: Vec<u8>, options: &Options) -> Vec<(Option<BundleForm>, Option<Vec<u8>>)> {
    let mut forms = Forms::default();
    walk(&mut Cursor::new(bytes), options, &mut forms).unwrap();
    forms.0
}

#[test]
fn entries_report_how_they_are_stored() {
    for (name, form) in [
        ("bundle.bc", BundleForm::Binary),
        ("hip-ccob-v3.hipfb", BundleForm::Binary),
        ("bundle.hipi", BundleForm::Text(Leader::Slashes)),
        ("bundle.ll", BundleForm::Text(Leader::Semicolon)),
        ("bundle.s", BundleForm::Text(Leader::Hash)),
        ("bundle.o", BundleForm::Section),
    ] {
        let forms = forms(example(name), &Options::default());
        assert!(forms.len() > 1, "{name}");
        assert!(forms.iter().all(|(found, _)| *found == Some(form)), "{name}: {forms:?}");
    }
    for name in ["packages.offload", "cuda-fatbin.o"] {
        let forms = forms(example(name), &Options::default());
        assert!(!forms.is_empty() && forms.iter().all(|(form, _)| form.is_none()), "{name}");
    }
}

#[test]
fn the_placeholder_stands_for_the_host_object() {
    let host = example("host.o");
    let entries = [("host-x86_64-unknown-linux-gnu-", 1), ("hip-amdgcn-amd-amdhsa--gfx906", 4)];
    let bundle = object_bundle(&host, &entries).unwrap();
    let object = bundle.to_vec(&[HOST_PLACEHOLDER, b"code"]).unwrap();
    // In an archive, too, where the object does not start at byte 0.
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(format!("{:16}{:32}{:<10}`\n", "fat.o/", "", object.len()).bytes());
    archive.extend(&object);
    for file in [object, archive] {
        let hosts: Vec<_> =
            forms(file, &Options::default()).into_iter().filter_map(|(_, host)| host).collect();
        assert!(hosts == [&host[..]]);
    }
}

#[test]
fn images_are_entered_by_default() {
    // A bundle whose entries are an object with sections of device code, and a bundle.
    let entries = [
        ("host-x86_64-unknown-linux-gnu-", example("hip.o")),
        ("hip-a-b-c-", example("bundle.bc")),
    ];
    let sizes = entries.iter().map(|(id, bytes)| (id, bytes.len() as u64));
    let layout = bundle_format::layout(sizes, 1).unwrap();
    let bundle = layout.to_vec(&[&entries[0].1, &entries[1].1]).unwrap();
    assert!(forms(bundle.clone(), &Options::default()).len() > 4);
    let options = Options::default().with_enter_images(false);
    assert_eq!(forms(bundle, &options).len(), 2);
}

#[test]
fn an_empty_section_is_an_entry() {
    let host = example("host.o");
    let entries = [("host-x86_64-unknown-linux-gnu-", 1), ("hip-amdgcn-amd-amdhsa--gfx906", 0)];
    let bundle = object_bundle(&host, &entries).unwrap();
    let object = bundle.to_vec(&[HOST_PLACEHOLDER, b""]).unwrap();
    assert_eq!(forms(object, &Options::default()).len(), 2);
}

#[test]
fn a_code_object_can_be_the_host() {
    let mut host = example("host.o");
    // `e_machine`: AMDGPU.
    host[18..20].copy_from_slice(&224_u16.to_le_bytes());
    let entries = [("host-x86_64-unknown-linux-gnu-", 1), ("hip-amdgcn-amd-amdhsa--gfx906", 4)];
    let bundle = object_bundle(&host, &entries).unwrap();
    let object = bundle.to_vec(&[HOST_PLACEHOLDER, b"code"]).unwrap();
    assert_eq!(forms(object, &Options::default()).len(), 2);
}
