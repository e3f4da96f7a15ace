//! Registration code for device images, of any images and options.

use arbitrary::{Result, Unstructured};
use byte_parts::Layout;
use byte_parts::Part;
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
use wrapper_ir::{
    Abi, Entries, EntryFlags, Error, ErrorKind, Image, Module, OffloadEntry, Target, Wrapper,
};

use crate::assert_message;

const TRIPLES: [&str; 12] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "x86_64-w64-windows-gnu",
    "i386-unknown-linux-gnu",
    "i686-pc-windows-msvc",
    "armv7-unknown-linux-gnueabihf",
    "powerpc-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "x86_64-unknown-linux-gnux32",
    "arm64-apple-darwin",
];

/// Makes images and options from the fuzzer's bytes, and writes their wrapper in every form.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let _ = made(u);
    let _ = entries(&mut Unstructured::new(data));
}

/// Checks entries of any names and numbers: accepted ones have the symbols they were given, in every form.
fn entries(u: &mut Unstructured<'_>) -> Result<()> {
    let (kind, abi) = (*u.choose(&Wrapper::KINDS)?, *u.choose(&Abi::ALL)?);
    let Ok(target) = target(u)? else { return Ok(()) };
    let mut module = Entries::new(kind, abi, target).with_retain(u.arbitrary()?);
    if u.ratio(1, 8)? {
        module = module.with_private_entries(u.arbitrary::<&str>()?);
    }
    let mut names = Vec::new();
    while names.len() < 6 && (names.is_empty() || u.arbitrary()?) {
        let (name, symbol) = (u.arbitrary::<&str>()?, u.arbitrary::<&str>()?);
        let entry = match u.int_in_range(0..=3)? {
            0 => OffloadEntry::kernel(name, symbol),
            1 => OffloadEntry::variable(name, symbol, u.arbitrary()?),
            2 => OffloadEntry::managed(name, symbol, u.arbitrary::<&str>()?, u.arbitrary()?, 8),
            _ => OffloadEntry::kernel(name, symbol)
                .with_flags(EntryFlags::from_bits_retain(u.arbitrary()?))
                .with_data(u.arbitrary()?),
        };
        module = module.with_entry(entry);
        names.push(name);
    }
    let module = match module.module() {
        Ok(module) => module,
        Err(error) => {
            assert_message(&error);
            return Ok(());
        }
    };
    let text = check_text(&module, &[], false);
    assert!(text.matches(" = weak constant ").count() >= names.len(), "{text}");
    let bitcode = check_layout(&module.bitcode().expect("small"), &[], 4, b"BC\xc0\xde");
    let symbols = llvm_bitcode::symbols(&bitcode).expect("can be read").expect("is bitcode");
    assert_eq!(symbols.len(), names.len(), "{text}");
    match module.object() {
        Ok(layout) => drop(check_layout(&layout, &[], 1, b"")),
        Err(error) => assert_message(&error),
    }
    Ok(())
}

/// Checks data that is an image: raw, or an offload binary.
pub fn check_image(data: &[u8]) {
    for kind in Wrapper::KINDS {
        let target = Target::new("x86_64-unknown-linux-gnu").expect("known");
        let wrapper = Wrapper::new(kind, Abi::Current, target);
        check_wrapper(&|wrapper| wrapper, &wrapper, &[data.to_vec()], &[]);
    }
}

fn made(u: &mut Unstructured<'_>) -> Result<()> {
    let kind = *u.choose(&Wrapper::KINDS)?;
    let abi = *u.choose(&Abi::ALL)?;
    let target = match target(u)? {
        Ok(target) => target,
        Err(error) => {
            assert_message(&error);
            return Ok(());
        }
    };
    let options = options(u)?;
    let (mut images, mut ids) = (Vec::new(), Vec::new());
    let single = kind != OffloadKind::OPENMP && u.ratio(9, 10)?;
    let has_ids = u.ratio(1, if abi == Abi::Aomp { 2 } else { 20 })?;
    while images.len() < 5 && (images.is_empty() || (!single && u.arbitrary()?)) {
        images.push(image(u, kind)?);
        if has_ids && u.ratio(19, 20)? {
            ids.push(u.arbitrary::<&str>()?.to_owned());
        }
    }
    check_wrapper(&options, &Wrapper::new(kind, abi, target), &images, &ids);
    Ok(())
}

fn target(u: &mut Unstructured<'_>) -> Result<std::result::Result<Target, Error>> {
    Ok(match u.int_in_range(0..=9)? {
        0 => Target::new(u.arbitrary()?),
        1 => Target::with_data_layout(u.arbitrary()?, u.arbitrary()?),
        2 => Target::with_data_layout(u.choose(&TRIPLES)?, u.arbitrary()?),
        _ => Target::new(u.choose(&TRIPLES)?),
    })
}

/// Options of a wrapper.
type Options = dyn Fn(Wrapper<'static>) -> Wrapper<'static>;

fn options(u: &mut Unstructured<'_>) -> Result<Box<Options>> {
    let retain: Option<bool> = u.arbitrary()?;
    let align: Option<u64> = match u.int_in_range(0..=3)? {
        0 => Some(1 << u.int_in_range(0..=14)?),
        1 => u.arbitrary()?,
        _ => None,
    };
    let relocatable = u.arbitrary()?;
    let suffix = match u.int_in_range(0..=7)? {
        0 => Some(u.arbitrary::<&str>()?.to_owned()),
        1 => Some("suffix_1".to_owned()),
        _ => None,
    };
    let (weak, six) = (u.arbitrary()?, u.arbitrary()?);
    let keep = u.ratio(1, 8)?;
    Ok(Box::new(move |wrapper| {
        let mut wrapper = wrapper.with_relocatable(relocatable).with_weak_image_info(weak);
        wrapper = wrapper.with_llvm_code(six).with_keep_packages(keep);
        if let Some(retain) = retain {
            wrapper = wrapper.with_retain(retain);
        }
        if let Some(align) = align {
            wrapper = wrapper.with_image_align(align);
        }
        if let Some(suffix) = &suffix {
            wrapper = wrapper.with_private_entries(suffix.clone());
        }
        wrapper
    }))
}

/// Makes any bytes, or an offload binary, damaged if the fuzzer chooses so.
fn image(u: &mut Unstructured<'_>, kind: OffloadKind) -> Result<Vec<u8>> {
    if u.arbitrary()? {
        // Bitcode aligns images from some size on.
        let most = if u.ratio(1, 16)? { 200_000 } else { 300 };
        let size = u.int_in_range(0..=most)?;
        let mut image = vec![u.arbitrary()?; size];
        let head = u.bytes(u.len().min(size).min(64))?;
        image[..head.len()].copy_from_slice(head);
        return Ok(image);
    }
    let version = *u.choose(&[FormatVersion::V1, FormatVersion::V2])?;
    let of_kind = match kind {
        OffloadKind::OPENMP => OffloadKind::OPENMP,
        OffloadKind::CUDA => OffloadKind::CUDA,
        OffloadKind::HIP => OffloadKind::HIP,
        _ => OffloadKind::SYCL,
    };
    let most = if version == FormatVersion::V1 { 1 } else { 4 };
    let (mut entries, mut inner) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(u8::from(most == 1)..=most)? {
        let size = u.int_in_range(0..=40)?.min(u.len());
        let bytes = u.bytes(size)?;
        let found = if u.ratio(1, 12)? { OffloadKind(u.arbitrary()?) } else { of_kind };
        let entry = ImageEntry::new(bytes.len() as u64).with_offload_kind(found);
        let arch = u.arbitrary::<&str>()?.replace('\0', "");
        entries.push(entry.with_string("arch", &arch).into_owned());
        inner.push(bytes);
    }
    let layout = offload_binary::layout(version, &entries).expect("few small entries");
    let mut package = layout.to_vec(&inner).expect("as laid out");
    for _ in 0..u.int_in_range(0..=7_u8)?.saturating_sub(4) {
        if u.arbitrary()? {
            let at = u.choose_index(package.len())?;
            package[at] = u.arbitrary()?;
        } else {
            package.truncate(u.int_in_range(0..=package.len())?.max(1));
        }
    }
    if u.ratio(1, 16)? {
        package.push(0);
    }
    Ok(package)
}

/// Checks that the module of these images is the same from growing heads of them, and that every form of it is sound.
fn check_wrapper(
    options: &Options,
    wrapper: &Wrapper<'static>,
    images: &[Vec<u8>],
    ids: &[String],
) {
    let images: Vec<&[u8]> = images.iter().map(|image| &image[..]).collect();
    let module = |heads: &[usize]| {
        let mut wrapper = wrapper.clone();
        for (index, (image, head)) in images.iter().zip(heads).enumerate() {
            let image = Image::new(image.len() as u64, image[..*head].to_vec());
            wrapper = wrapper.with_image(match ids.get(index) {
                Some(id) => image.with_target_id(id.clone()),
                None => image,
            });
        }
        options(wrapper).module()
    };
    let lens: Vec<usize> = images.iter().map(|image| image.len()).collect();
    let whole = module(&lens);
    let mut heads = vec![0; images.len()];
    let grown = loop {
        match module(&heads) {
            Err(error) if error.kind() == ErrorKind::HeadTooShort => {
                let image = error.image().expect("of an image");
                let needed = error.head_needed().expect("has the number of bytes");
                let needed = usize::try_from(needed).expect("asks for no more than there is");
                assert!(heads[image] < needed && needed <= lens[image]);
                heads[image] = needed;
            }
            result => break result,
        }
    };
    match (whole, grown) {
        (Ok(module), Ok(grown)) => check_module(&module, &grown, &images),
        (whole, grown) => {
            // If there are several faults, another may be found first.
            for result in [whole, grown] {
                let error = result.expect_err("both or none can be wrapped");
                assert_ne!(error.kind(), ErrorKind::HeadTooShort);
                assert_message(&error);
            }
        }
    }
}

fn check_module(module: &Module, grown: &Module, images: &[&[u8]]) {
    let text = check_text(module, images, true);
    assert!(check_text(grown, images, true) == text);
    let bitcode = check_layout(&module.bitcode().expect("small"), images, 4, b"BC\xc0\xde");
    let symbols = llvm_bitcode::symbols(&bitcode);
    let symbols = symbols.expect("can be read").expect("is bitcode");
    assert_eq!(symbols.len(), text.lines().filter(|line| is_symbol(line)).count(), "{text}");
    match module.object() {
        Ok(layout) => {
            // ELF, COFF for x86-64 and ARM64.
            const STARTS: [&[u8]; 3] = [b"\x7fELF", b"\x64\x86", b"\x64\xaa"];

            let bytes = check_layout(&layout, images, 1, b"");
            assert!(STARTS.iter().any(|start| bytes.starts_with(start)));
        }
        Err(error) => assert_message(&error),
    }
}

/// Returns whether a line of text defines a variable that other modules see.
fn is_symbol(line: &str) -> bool {
    let elsewhere = ["external", "extern_weak", "internal", "private", "appending"];
    let is_variable = line.starts_with('@') && line.contains(" = ");
    is_variable && !line.split(' ').skip(2).take(4).any(|word| elsewhere.contains(&word))
}

/// Checks that text is lines of printable ASCII, with one end for each beginning of a function.
fn check_text(module: &Module, images: &[&[u8]], has_code: bool) -> String {
    let text = module.ir_to_string(images).expect("the images are these");
    let mut written = Vec::new();
    module.write_ir(&mut written, images.iter().copied()).expect("memory can be written");
    assert!(written == text.as_bytes());
    assert!(
        text.ends_with('\n')
            && text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    );
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert!((count("define ") > 0) == has_code && count("define ") == count("}"));
    assert_eq!((count("target datalayout = \""), count("target triple = \"")), (1, 1));
    for line in text.lines() {
        assert!(line.bytes().filter(|byte| *byte == b'"').count() % 2 == 0, "{line}");
    }
    text
}

/// Checks that a layout has the promised size, with the images in it unchanged, at multiples of `align`.
fn check_layout(layout: &Layout, images: &[&[u8]], align: u64, magic: &[u8]) -> Vec<u8> {
    let bytes = layout.to_vec(images).expect("the images are these");
    assert_eq!(bytes.len() as u64, layout.size());
    assert!(bytes.starts_with(magic));
    let mut written = Vec::new();
    layout.write_to(&mut written, images.iter().copied()).expect("memory can be written");
    assert!(written == bytes);
    let mut at = 0;
    for part in layout.parts().iter() {
        let expected = match part {
            Part::Bytes(bytes) => bytes.to_vec(),
            Part::Zeros(count) => vec![0; count as usize],
            Part::Input(&image, range) => {
                assert_eq!(at as u64 % align, 0);
                assert!(layout.offset(image).is_some());
                images[image][range.start as usize..range.end as usize].to_vec()
            }
        };
        assert!(bytes[at..].starts_with(&expected));
        at += expected.len();
    }
    assert_eq!(at, bytes.len());
    bytes
}
