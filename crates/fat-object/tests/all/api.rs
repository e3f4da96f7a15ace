//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};

use byte_parts::ReadSeek;
use fat_object::{
    BundleForm, Compression, Container, ContainerKind, Disagreement, Error, FileFormat, Finding,
    ImageInfo, Listing, Location, OffloadBinaryEntry, Options, PathStep, Severity, Summary,
    Visitor, list, walk,
};

samples::promises! {
    sent: llvm_bitcode::Error, Listing, Container, Summary;
    owned: Compression, ImageInfo, OffloadBinaryEntry, PathStep, Disagreement, Error, Finding,
        Options;
    value: BundleForm, ContainerKind, FileFormat, Location, Severity;
    copied: BundleForm, Compression, ContainerKind, FileFormat, Location, Severity;
    displayed: ContainerKind, FileFormat, Finding, ImageInfo, Location, PathStep;
    defaulted: Options;
    error: llvm_bitcode::Error, Disagreement, Error;
}

/// A visitor can be made a value of another type, and hands out what outlives the walk.
#[test]
fn visitors_are_objects() {
    struct Gather(Vec<ImageInfo>, Vec<Finding>);
    impl Visitor for Gather {
        fn image(&mut self, image: &mut fat_object::Image<'_, '_>) -> io::Result<()> {
            self.0.push(image.info().clone());
            Ok(())
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            self.1.push(finding.clone());
            Ok(())
        }
    }
    let mut gather = Gather(Vec::new(), Vec::new());
    let visitor: &mut dyn Visitor = &mut gather;
    walk(Cursor::new(b"CCOB"), &Options::default(), visitor).unwrap();
    assert_eq!((gather.0.len(), gather.1.len()), (0, 1));
}

/// Readers are taken by value; `&mut` of a reader is a reader.
#[test]
fn readers_may_be_of_any_kind() {
    fn in_generic_code<R: Read + Seek>(mut input: R) {
        assert!(list(&mut input, &Options::default()).unwrap().is_complete());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hip.hipfb");
    in_generic_code(File::open(path).unwrap());
    in_generic_code(&File::open(path).unwrap());
    let boxed: Box<dyn ReadSeek> = Box::new(File::open(path).unwrap());
    in_generic_code(boxed);
}

#[cfg(feature = "serde")]
#[test]
fn listings_can_be_serialized() {
    fn serialized<T: serde::Serialize>() {}
    serialized::<Compression>();
    serialized::<ContainerKind>();
    serialized::<FileFormat>();
    serialized::<Finding>();
    serialized::<ImageInfo>();
    serialized::<Listing>();
    serialized::<Location>();
    serialized::<PathStep>();
    serialized::<Severity>();

    let bundle = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1).unwrap();
    let mut file = bundle.to_vec(&[b"BC\xc0\xde"]).unwrap();
    file.extend(b"CCOB");
    let listing = list(Cursor::new(&file), &Options::default()).unwrap();
    let finding = listing.findings()[0].to_string();
    let message = serde_json::to_string(&finding).unwrap();
    assert_eq!(
        serde_json::to_string(&listing).unwrap(),
        format!(
            "{{\"format\":\"bundle\",\"size\":93,\"images\":[{{\"index\":0,\"path\":[\"bundle:0\"],\
             \"container\":\"bundle\",\"kind\":\"hip\",\"triple\":\"amdgcn-amd-amdhsa\",\
             \"target\":\"gfx906\",\"id\":\"hip-amdgcn-amd-amdhsa--gfx906\",\"offset\":85,\
             \"offset_in_container\":85,\"size\":4,\"stored_size\":4,\"stored_estimate\":4,\"compression\":null,\
             \"image_format\":\"bitcode\"}}],\"findings\":[{{\"severity\":\"error\",\"path\":[],\
             \"offset\":89,\"message\":{message}}}]}}"
        )
    );
}
