//! Writers and images that fail while registration code is written.

use std::io::{self, ErrorKind};

use samples::faulty::{Rig, check_writing};
use wrapper_ir::{Abi, Image, Module, OffloadKind, Target, Wrapper};

const IMAGES: [&[u8]; 3] = [b"code for one device", b"\0\x7f\"\\", b"for another"];

fn module() -> Module {
    let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
    let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target);
    wrapper.with_images(IMAGES.map(Image::from_bytes)).module().unwrap()
}

#[test]
fn faults_of_the_streams_are_the_result() {
    let module = module();
    let text = module.ir_to_string(&IMAGES).unwrap();
    check_writing(text.as_bytes(), |rig, out| {
        module.write_ir(out, IMAGES.map(|image| rig.stream(image)))
    });
    for layout in [module.bitcode().unwrap(), module.object().unwrap()] {
        let expected = layout.to_vec(&IMAGES).unwrap();
        check_writing(&expected, |rig, out| {
            layout.write_to(out, IMAGES.map(|image| rig.stream(image))).map_err(io::Error::from)
        });
    }
}

#[test]
fn an_image_that_ends_early_is_named() {
    let images = || [IMAGES[0], IMAGES[1], b"for a"].map(|image| Rig::sound().stream(image));
    let module = module();
    for error in [
        module.write_ir(io::sink(), images()).unwrap_err(),
        module.bitcode().unwrap().write_to(io::sink(), images()).unwrap_err().into(),
        module.object().unwrap().write_to(io::sink(), images()).unwrap_err().into(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = error.downcast::<byte_parts::Error>().unwrap();
        assert_eq!(error.to_string(), "input 2: expected 11 bytes, found 5");
    }
}
