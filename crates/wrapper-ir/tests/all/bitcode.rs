//! Modules as LLVM bitcode, without LLVM. `tool-tests` tests what LLVM makes of them, where
//! its tools are called.

use byte_parts::Part;
use wrapper_ir::{Abi, ErrorKind, Image, Module, OffloadKind, Target, Wrapper};

const LINUX: &str = "x86_64-unknown-linux-gnu";

fn wrapper(kind: OffloadKind, abi: Abi) -> Wrapper<'static> {
    Wrapper::new(kind, abi, Target::new(LINUX).unwrap())
}

/// A module of images of these sizes; nothing looks at them.
fn module_of(sizes: &[u64]) -> Module {
    let head = |size| if size < 4 { &b"\x7fELF"[..size as usize] } else { b"\x7fELF" };
    let images = sizes.iter().map(|&size| Image::new(size, head(size)));
    wrapper(OffloadKind::OPENMP, Abi::Current).with_images(images).module().unwrap()
}

/// Every module that there is of one image.
fn every_module(image: &'static [u8]) -> impl Iterator<Item = Module> {
    let pairs = Wrapper::KINDS.into_iter().flat_map(|kind| Abi::ALL.map(|abi| (kind, abi)));
    pairs.filter_map(move |(kind, abi)| {
        let image = Image::from_bytes(image);
        let image = if abi == Abi::Aomp { image.with_target_id("gfx90a") } else { image };
        match wrapper(kind, abi).with_image(image).module() {
            Ok(module) => Some(module),
            // SYCL of LLVM 22 takes offload binaries only.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Package) => {
                None
            }
            Err(error) => panic!("{kind} {abi}: {error}"),
        }
    })
}

#[test]
fn images_lie_at_words_as_they_are() {
    let image = b"\x7fELF and what follows";
    let mut count = 0;
    for module in every_module(image) {
        let layout = module.bitcode().unwrap();
        let bitcode = layout.to_vec(&[image]).unwrap();
        let at = layout.offset(0).unwrap();
        assert_eq!(at % 4, 0);
        assert_eq!(&bitcode[at as usize..][..image.len()], image);
        assert_eq!(bitcode.len() as u64, layout.size());
        assert_eq!(bitcode.len() % 4, 0);
        count += 1;
    }
    assert_eq!(count, 18);
}

#[test]
fn images_may_have_any_size() {
    let bytes = [0xA5; 70];
    for size in 0..bytes.len() {
        let images = [&bytes[..size], b"", &bytes[size..]];
        let sizes = images.map(|image| image.len() as u64);
        let layout = module_of(&sizes).bitcode().unwrap();
        let bitcode = layout.to_vec(&images).unwrap();
        assert_eq!(bitcode.len() as u64, layout.size());
        let mut streamed = Vec::new();
        layout.write_to(&mut streamed, images).unwrap();
        assert_eq!(streamed, bitcode);
        for (index, image) in images.iter().enumerate() {
            let at = layout.offset(index).map(|at| at as usize);
            assert_eq!(at.is_some(), !image.is_empty());
            assert!(at.is_none_or(|at| at.is_multiple_of(4) && bitcode[at..].starts_with(image)));
        }
    }
}

#[test]
fn only_sizes_matter_until_it_is_written() {
    let layouts = [b"\x7fELF1", b"\x7fELF2"].map(|image| {
        let module =
            wrapper(OffloadKind::HIP, Abi::Current).with_image(Image::from_bytes(image)).module();
        module.unwrap().bitcode().unwrap()
    });
    assert_eq!(format!("{:?}", layouts[0]), format!("{:?}", layouts[1]));
    let parts: Vec<_> = layouts[0].parts().iter().collect();
    let [Part::Bytes(_), Part::Input(0, image), Part::Bytes(_)] = &parts[..] else { panic!() };
    assert_eq!(*image, 0..5);
}

/// The largest image that readers take, and others.
#[test]
fn gigabytes_take_no_memory_to_lay_out() {
    let sizes = [0xFFFF_FFFF, 0xFFFF_FFFE, 0xFFFF_FFFD];
    let layout = module_of(&sizes).bitcode().unwrap();
    let rest = layout.size() - sizes.iter().sum::<u64>();
    assert!(rest < 4 << 16, "{rest}");
    for image in 0..sizes.len() {
        assert_eq!(layout.offset(image).unwrap() % (1 << 16), 0);
    }
    assert_eq!(layout.size() % 4, 0);
}

#[test]
fn an_image_too_long_for_its_record_is_an_error() {
    let error = module_of(&[4, 0x1_0000_0000]).bitcode().unwrap_err();
    assert_eq!((error.kind(), error.image()), (ErrorKind::Limit, Some(1)));
    assert_eq!(
        error.to_string(),
        "device image 1 has 0x100000000 bytes, expected at most 0xffffffff"
    );
}

#[test]
fn images_too_large_together_are_an_error() {
    let error = module_of(&[0xFFFF_FFFF; 4]).bitcode().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let text = error.to_string();
    assert!(text.starts_with("bitcode block has 0x400"), "{text}");
    assert!(text.ends_with(" bytes, expected at most 0x3fffffffc"), "{text}");
}
