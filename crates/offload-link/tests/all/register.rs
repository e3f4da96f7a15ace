//! Containers and registration objects.

use bundle_format::Bundle;
use ccob::WriteOptions;
use offload_binary::{ImageKind, OffloadBinary, OffloadKind};
use offload_link::{
    ErrorKind, Images, Inputs, LinkTarget, LinkedImage, Parts, Plan, PlanOptions, RegisterOptions,
    container,
};
use samples::device::old_cubin;

use crate::common::{AMD, HOST, Join, hip, package};

fn images(files: &[&[u8]]) -> Images {
    let mut inputs = Inputs::new();
    for bytes in files {
        inputs.add("file", bytes).unwrap();
    }
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    plan.link(&mut Join).unwrap()
}

/// Returns what is in memory as a whole.
fn bytes(parts: &Parts) -> Vec<u8> {
    parts.to_vec(|_| &[]).unwrap()
}

fn options() -> RegisterOptions {
    RegisterOptions::new(HOST)
}

#[test]
fn images_for_particular_targets_come_first() {
    let images = images(&[&hip(&["gfx1030", "gfx90a", "gfx90a:xnack+", "gfx942"])]);
    let archs: Vec<_> =
        images.of(OffloadKind::HIP).iter().map(|image| image.target.arch().to_owned()).collect();
    assert_eq!(archs, ["gfx942", "gfx90a:xnack+", "gfx1030"]);
    let images = images.of(OffloadKind::HIP);
    let [bundle] = &container(OffloadKind::HIP, &images, &options()).unwrap()[..] else { panic!() };
    let bundle = bytes(bundle);
    let bundle = Bundle::parse(&bundle).unwrap();
    let ids: Vec<_> = bundle.entries().map(|entry| entry.id_str().unwrap().to_owned()).collect();
    let host = "host-x86_64-unknown-linux-gnu-".to_owned();
    let hip = archs.iter().map(|arch| format!("hip-{AMD}--{arch}"));
    assert!([host].into_iter().chain(hip).eq(ids));
    assert!(bundle.entries().skip(1).all(|entry| entry.offset() % 4096 == 0));
}

#[test]
fn openmp_has_an_offload_binary_for_each_image() {
    let images = images(&[&package(OffloadKind::OPENMP, HOST, &["generic"])]);
    let images = images.with_kind(ImageKind::BITCODE);
    let containers = container(OffloadKind::OPENMP, &images.of(OffloadKind::OPENMP), &options());
    let containers = containers.unwrap();
    let container = bytes(&containers[0]);
    let binary = OffloadBinary::parse(&container).unwrap();
    let entry = binary.entries().next().unwrap();
    assert_eq!((entry.triple(), entry.arch()), (Some(HOST), Some("")));
    assert_eq!(entry.image_kind(), ImageKind::BITCODE);
    assert_eq!(entry.image(), Some(&b"generic"[..]));
}

/// LLVM's tool makes a file of this size; a test beside LLVM compares each byte.
#[test]
fn openmp_for_intel_has_elf_files() {
    let module = [7; 104];
    let image = LinkedImage::new(LinkTarget::new("spirv64-intel", ""), module.to_vec().into());
    let containers = container(OffloadKind::OPENMP, &[&image], &options()).unwrap();
    let container = bytes(&containers[0]);
    let binary = OffloadBinary::parse(&container).unwrap();
    let file = binary.entries().next().unwrap().image().unwrap();
    assert_eq!((file.len(), &file[..4]), (672, &b"\x7fELF"[..]));
    assert_eq!(file[0xb0..][..104], module);
}

#[test]
fn bundles_are_compressed_on_request() {
    let images = images(&[&hip(&["gfx90a"])]);
    let options = options().with_compression(Some(WriteOptions::default()));
    let [registration] = &images.register(&options).unwrap()[..] else { panic!() };
    assert!(bytes(&registration.containers()[0]).starts_with(b"CCOB"));
    assert_eq!(registration.kind(), OffloadKind::HIP);
    assert!(bytes(&registration.object().unwrap()).starts_with(b"\x7fELF"));
}

#[test]
fn one_object_registers_all_kinds() {
    let openmp = package(OffloadKind::OPENMP, AMD, &["gfx90a"]);
    let images = images(&[&hip(&["gfx90a"]), &openmp, &hip(&["gfx1030"])]);
    assert_eq!(images.kinds(), [OffloadKind::OPENMP, OffloadKind::HIP]);
    for (host, magic) in [(HOST, &b"\x7fELF"[..]), ("x86_64-pc-windows-msvc", b"\x64\x86")] {
        let object = images.object(&RegisterOptions::new(host)).unwrap().unwrap();
        assert!(object.starts_with(magic), "{host}");
        for name in ["__tgt_register_lib", "__hipRegisterFatBinary"] {
            let found = object.windows(name.len()).any(|window| window == name.as_bytes());
            assert!(found, "{name} for {host}");
        }
    }
    assert!(Images::default().object(&options()).unwrap().is_none());
    // Code without a programming model is linked, and registered nowhere.
    let none = self::images(&[&package(OffloadKind::NONE, AMD, &["gfx90a"])]);
    assert!(none.object(&options()).unwrap().is_none());
}

/// The arguments of a link are those of the modules that are registered.
#[test]
fn links_are_told_to_keep_the_entries() {
    let kinds = [OffloadKind::OPENMP, OffloadKind::HIP, OffloadKind::CUDA, OffloadKind::SYCL];
    for kind in kinds {
        let cubin = old_cubin(80);
        let image = cuda("sm_80", &cubin).with_kinds([kind]);
        let images: Images = [image].into_iter().collect();
        for host in [HOST, "aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"] {
            let options = RegisterOptions::new(host);
            let registrations = images.register(&options).unwrap();
            let of_modules = registrations.iter().flat_map(|it| it.module().compiler_args());
            let arguments = images.link_args(&options).unwrap();
            assert!(arguments.iter().eq(of_modules), "{kind} {host}");
            let is_kept = kind != OffloadKind::SYCL && !host.contains("windows");
            assert_eq!(arguments, if is_kept { &["-Wl,-z,nostart-stop-gc"][..] } else { &[] });
        }
    }
    assert!(Images::default().link_args(&options()).unwrap().is_empty());
}

fn cuda(arch: &str, bytes: &[u8]) -> LinkedImage {
    LinkedImage::new(LinkTarget::new("nvptx64-nvidia-cuda", arch), bytes.to_vec().into())
        .with_kinds([OffloadKind::CUDA])
}

#[test]
fn cuda_has_a_fatbinary() {
    let images: Images =
        [cuda("sm_80", &old_cubin(80)), cuda("sm_90a", &old_cubin(90))].into_iter().collect();
    let [registration] = &images.register(&options()).unwrap()[..] else { panic!() };
    let container = bytes(&registration.containers()[0]);
    let fatbinary = nv_fatbin::Fatbin::parse(&container).unwrap();
    let entries = fatbinary.entries().map(|entry| entry.unwrap().architecture().to_string());
    assert_eq!(entries.collect::<Vec<_>>(), ["sm_90a", "sm_80"]);
    // One that is linked already is taken as it is.
    let again = cuda("sm_80", &container);
    let again: Images = [again].into_iter().collect();
    let copy = again.register(&options()).unwrap();
    assert_eq!(copy[0].containers(), registration.containers());
}

#[test]
fn images_that_do_not_fit_are_errors() {
    let error = |images: Images, host| images.object(&RegisterOptions::new(host)).unwrap_err();
    let wrong = error([cuda("gfx90a", &old_cubin(80))].into_iter().collect(), HOST);
    assert_eq!(wrong.kind(), ErrorKind::Container);
    let expected = "gfx90a is not an architecture of CUDA: expected one such as sm_90";
    assert_eq!(wrong.to_string(), expected);
    let text = error([cuda("sm_80", b"text")].into_iter().collect(), HOST);
    assert_eq!(text.kind(), ErrorKind::Container);
    assert!(text.to_string().starts_with("nvptx64-nvidia-cuda sm_80: "), "{text}");
    let host = error(images(&[&hip(&["gfx90a"])]), "foo-bar");
    assert_eq!(host.kind(), ErrorKind::Registration);
    let mach_o = error(images(&[&package(OffloadKind::OPENMP, HOST, &[""])]), "arm64-apple-macos");
    assert_eq!(mach_o.kind(), ErrorKind::Registration);
}

/// Images that stay in files make the same objects as those in memory.
#[test]
fn images_need_not_be_in_memory() {
    let kinds = [OffloadKind::OPENMP, OffloadKind::HIP];
    let contents = [vec![1; 5000], vec![2; 3]];
    let images = |in_memory: bool| -> Images {
        let image = |(number, arch): (usize, &&str)| {
            let content = &contents[number];
            let parts = if in_memory {
                content.clone().into()
            } else {
                Parts::from_input(number, 0..content.len() as u64)
            };
            LinkedImage::new(LinkTarget::new(AMD, *arch), parts).with_kinds(kinds)
        };
        ["gfx90a", "gfx1030"].iter().enumerate().map(image).collect()
    };
    let object = images(true).object(&options()).unwrap().unwrap();
    let parts = images(false).object_parts(&options()).unwrap().unwrap();
    assert!(parts.to_vec(|&number| &contents[number]).unwrap() == object);
    for (registration, in_memory) in images(false)
        .register(&options())
        .unwrap()
        .iter()
        .zip(images(true).register(&options()).unwrap())
    {
        let bitcode = registration.bitcode().unwrap();
        let bitcode = bitcode.to_vec(|&number| &contents[number]).unwrap();
        assert!(bitcode == bytes(&in_memory.bitcode().unwrap()));
    }
    let error = images(false).object(&options()).unwrap_err();
    let text = "images: expected in memory as a whole";
    assert_eq!((error.kind(), &error.to_string()[..]), (ErrorKind::Container, text));
    let compressed = options().with_compression(Some(WriteOptions::default()));
    let error = images(false).object_parts(&compressed).unwrap_err();
    assert_eq!(error.to_string(), "bundle for HIP: expected in memory as a whole");
}

/// The tables of an offload binary may be longer than what is read of it first.
#[test]
fn offload_binaries_with_long_tables_are_registered() {
    let arch = "x".repeat(10_000);
    let image = package(OffloadKind::SYCL, "spirv64", &[&arch]);
    let linked = |parts: Parts| -> Images {
        let image = LinkedImage::new(LinkTarget::new("spirv64", ""), parts);
        [image.with_kinds([OffloadKind::SYCL])].into_iter().collect()
    };
    let object = linked(image.clone().into()).object(&options()).unwrap().unwrap();
    assert!(object.windows(image.len()).any(|window| window == image));
    let cut = linked(Parts::from(image).slice(0..8000));
    assert_eq!(cut.object(&options()).unwrap_err().kind(), ErrorKind::Registration);
}
