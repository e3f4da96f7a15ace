//! Objects, read back with the `object` crate.

use std::collections::BTreeMap;

use byte_parts::Part;
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags,
    SymbolSection, elf,
};
use wrapper_ir::{Abi, ErrorKind, Image, OffloadKind, Target, Wrapper};

const X86_64: &str = "x86_64-unknown-linux-gnu";
const AARCH64: &str = "aarch64-unknown-linux-gnu";
const RISCV64: &str = "riscv64-unknown-linux-gnu";
const MSVC: &str = "x86_64-pc-windows-msvc";
const MINGW: &str = "x86_64-w64-windows-gnu";
const MSVC_ARM64: &str = "aarch64-pc-windows-msvc";
const MINGW_ARM64: &str = "aarch64-w64-windows-gnu";
const TRIPLES: [&str; 7] = [X86_64, AARCH64, RISCV64, MSVC, MINGW, MSVC_ARM64, MINGW_ARM64];

fn wrapper<'a>(kind: OffloadKind, abi: Abi, triple: &str, images: &[&'a [u8]]) -> Wrapper<'a> {
    let target = Target::new(triple).unwrap();
    Wrapper::new(kind, abi, target).with_images(images.iter().map(|image| Image::from_bytes(image)))
}

fn write(wrapper: &Wrapper<'_>, images: &[&[u8]]) -> Vec<u8> {
    wrapper.module().unwrap().object().unwrap().to_vec(images).unwrap()
}

/// The object of one image for the current generation.
fn current(kind: OffloadKind, triple: &str) -> Vec<u8> {
    let image: &[u8] = b"an image of a few bytes";
    write(&wrapper(kind, Abi::Current, triple, &[image]), &[image])
}

fn elf_section(file: &object::File<'_>, name: &str) -> Option<(u32, u64, u64)> {
    let section = file.section_by_name(name)?;
    let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { return None };
    Some((sh_type.0, sh_flags.0, section.align()))
}

/// Returns the references of a section: offset, symbol and addend.
fn references(file: &object::File<'_>, name: &str) -> Vec<(u64, String, i64)> {
    let section = file.section_by_name(name).unwrap();
    section
        .relocations()
        .map(|(at, relocation)| {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { panic!() };
            let symbol = file.symbol_by_index(symbol).unwrap();
            (at, symbol.name().unwrap().to_owned(), relocation.addend())
        })
        .collect()
}

#[test]
fn everything_that_is_supported_can_be_written_and_read() {
    let mut written = 0;
    for triple in TRIPLES {
        for kind in Wrapper::KINDS {
            for abi in Abi::ALL {
                let image: &[u8] = b"image";
                let wrapper = wrapper(kind, abi, triple, &[image]);
                let module = match wrapper.module() {
                    Ok(module) => module,
                    Err(error) if error.kind() == ErrorKind::Unsupported => continue,
                    // SYCL of LLVM 22 takes offload binaries only: `sycl_of_llvm_22`.
                    Err(error) if error.kind() == ErrorKind::Package => continue,
                    Err(error) => panic!("{error}"),
                };
                let layout = module.object().unwrap();
                let bytes = layout.to_vec(&[image]).unwrap();
                assert_eq!(bytes, module.object().unwrap().to_vec(&[image]).unwrap());
                let at = usize::try_from(layout.offset(0).unwrap()).unwrap();
                assert!(bytes[at..].starts_with(image));
                let mut streamed = Vec::new();
                layout.write_to(&mut streamed, [image]).unwrap();
                assert_eq!(streamed, bytes);
                check(&bytes, &format!("{triple} {kind} {abi}"));
                written += 1;
            }
        }
    }
    assert_eq!(written, 3 * (6 + 5 + 5 + 2) + 4 * (5 + 5 + 5 + 2));
}

/// Checks the properties of every object.
fn check(bytes: &[u8], what: &str) {
    let file = object::File::parse(bytes).unwrap();
    assert!(file.is_little_endian());
    let mut defined = BTreeMap::new();
    for symbol in file.symbols() {
        let name = symbol.name().unwrap();
        if let SymbolSection::Section(index) = symbol.section() {
            let section = file.section_by_index(index).unwrap();
            assert!(symbol.address() + symbol.size() <= section.size(), "{what}: {name}");
            if symbol.is_global() {
                assert_eq!(defined.insert(name.to_owned(), index), None, "{what}: {name}");
            }
        }
    }
    let mut used = Vec::new();
    for section in file.sections() {
        section.data().unwrap();
        for (at, relocation) in section.relocations() {
            assert!(at + 4 <= section.size(), "{what}");
            let RelocationTarget::Symbol(symbol) = relocation.target() else { panic!("{what}") };
            used.push(symbol);
        }
    }
    // Nothing is asked of the linker that is not needed.
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
        assert!(used.contains(&symbol.index()), "{what}: {}", symbol.name().unwrap());
    }
}

#[test]
fn sections_of_elf_have_their_flags() {
    const A: u64 = 2;
    const WA: u64 = 3;
    const AX: u64 = 6;
    let bytes = current(OffloadKind::OPENMP, X86_64);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.architecture(), Architecture::X86_64);
    let section = |name| elf_section(&file, name);
    assert_eq!(section(".text.startup"), Some((elf::SHT_PROGBITS.0, AX, 16)));
    assert_eq!(section("llvm_offload_entries"), Some((elf::SHT_PROGBITS.0, A, 8)));
    assert_eq!(file.section_by_name("llvm_offload_entries").unwrap().size(), 0);
    assert_eq!(section(".llvm.offloading"), Some((elf::SHT_PROGBITS.0, A, 8)));
    assert_eq!(section(".data.rel.ro"), Some((elf::SHT_PROGBITS.0, WA, 8)));
    assert_eq!(section(".init_array.101"), Some((elf::SHT_INIT_ARRAY.0, WA, 8)));
    assert_eq!(section(".note.GNU-stack"), Some((elf::SHT_PROGBITS.0, 0, 1)));
    assert_eq!(section(".eh_frame"), Some((0x7000_0001, A, 8)));
    assert_eq!(section(".note.gnu.property"), Some((elf::SHT_NOTE.0, A, 8)));

    let bytes = current(OffloadKind::CUDA, AARCH64);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.architecture(), Architecture::Aarch64);
    let section = |name| elf_section(&file, name);
    assert_eq!(section(".nv_fatbin"), Some((elf::SHT_PROGBITS.0, A, 8)));
    assert_eq!(section(".nvFatBinSegment"), Some((elf::SHT_PROGBITS.0, WA, 8)));
    assert_eq!(section(".bss"), Some((elf::SHT_NOBITS.0, WA, 8)));

    let bytes = current(OffloadKind::HIP, RISCV64);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.architecture(), Architecture::Riscv64);
    assert_eq!(elf_section(&file, ".hip_fatbin"), Some((elf::SHT_PROGBITS.0, A, 4096)));
    assert_eq!(elf_section(&file, ".hipFatBinSegment"), Some((elf::SHT_PROGBITS.0, WA, 8)));
}

#[test]
fn tables_of_openmp_refer_to_images_and_entries() {
    let images: [&[u8]; 2] = [b"first", b"second"];
    let bytes = write(&wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &images), &images);
    let file = object::File::parse(&*bytes).unwrap();
    let image = file.section_by_name(".llvm.offloading").unwrap();
    assert_eq!(image.data().unwrap(), b"first\0\0\0second");
    let tables = file.section_by_name(".data.rel.ro").unwrap();
    let mut expected = [0; 96];
    expected[64] = 2;
    assert_eq!(tables.data().unwrap(), expected);
    let start = "__start_llvm_offload_entries";
    let stop = "__stop_llvm_offload_entries";
    let expected = [
        (0, ".omp_offloading.device_image", 0),
        (8, ".omp_offloading.device_image", 5),
        (16, start, 0),
        (24, stop, 0),
        (32, ".omp_offloading.device_image.1", 0),
        (40, ".omp_offloading.device_image.1", 6),
        (48, start, 0),
        (56, stop, 0),
        (72, ".omp_offloading.device_images", 0),
        (80, start, 0),
        (88, stop, 0),
    ];
    let expected = expected.map(|(at, symbol, addend)| (at, symbol.to_owned(), addend));
    assert_eq!(references(&file, ".data.rel.ro"), expected);
    assert_eq!(
        references(&file, ".init_array.101"),
        [(0, ".omp_offloading.descriptor_reg".to_owned(), 0)]
    );
    for bound in [start, stop] {
        let symbol = file.symbol_by_name(bound).unwrap();
        let object::SymbolFlags::Elf { st_info, st_other } = symbol.flags() else { panic!() };
        assert_eq!((st_info.0 >> 4, st_other.0), (1, 2)); // STB_GLOBAL, STV_HIDDEN
        assert!(symbol.is_undefined());
    }
    assert!(file.symbol_by_name("__dummy.llvm_offload_entries").unwrap().is_local());
}

#[test]
fn old_generations_have_destructors() {
    for abi in [Abi::Aomp, Abi::Llvm18] {
        let bytes = write(&wrapper(OffloadKind::OPENMP, abi, X86_64, &[b"i"]), &[b"i"]);
        let file = object::File::parse(&*bytes).unwrap();
        let (kind, ..) = elf_section(&file, ".init_array.1").unwrap();
        assert_eq!(kind, elf::SHT_INIT_ARRAY.0);
        let (kind, ..) = elf_section(&file, ".fini_array.1").unwrap();
        assert_eq!(kind, elf::SHT_FINI_ARRAY.0);
        assert!(file.symbol_by_name("atexit").is_none());
        let dummy = match abi {
            Abi::Llvm18 => "__dummy.omp_offloading_entries",
            _ => "__dummy.omp_offloading.entry",
        };
        assert!(file.symbol_by_name(dummy).unwrap().is_global());
    }
}

#[test]
fn target_ids_lie_one_after_the_other() {
    let image = || Image::from_bytes(b"i").with_target_id("gfx906");
    let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Aomp, Target::new(X86_64).unwrap())
        .with_images([image(), image()]);
    let bytes = write(&wrapper, &[b"i", b"i"]);
    let file = object::File::parse(&*bytes).unwrap();
    // Not to be merged.
    assert_eq!(elf_section(&file, ".offload_arch_list"), Some((elf::SHT_PROGBITS.0, 2, 1)));
    let list = file.section_by_name(".offload_arch_list").unwrap();
    assert_eq!(list.data().unwrap(), b"gfx906\0gfx906\0");
    // Weak references go through the table of addresses.
    let bytes = write(&wrapper.with_weak_image_info(true), &[b"i", b"i"]);
    let file = object::File::parse(&*bytes).unwrap();
    assert!(file.symbol_by_name("__tgt_register_image_info").unwrap().is_weak());
}

#[test]
fn entries_are_retained_on_request() {
    for (abi, retain, expected) in [
        (Abi::Current, None, false),
        (Abi::Current, Some(true), true),
        (Abi::Llvm24, None, false),
        (Abi::Llvm24, Some(true), true),
    ] {
        let mut wrapper = wrapper(OffloadKind::OPENMP, abi, X86_64, &[b"i"]);
        if let Some(retain) = retain {
            wrapper = wrapper.with_retain(retain);
        }
        let bytes = write(&wrapper, &[b"i"]);
        let file = object::File::parse(&*bytes).unwrap();
        let (_, flags, _) = elf_section(&file, "llvm_offload_entries").unwrap();
        assert_eq!(flags & 0x20_0000 != 0, expected);
        assert_eq!(bytes[7], if expected { elf::ELFOSABI_GNU.0 } else { 0 });
    }
    let bytes = current(OffloadKind::OPENMP, "x86_64-unknown-freebsd14.0");
    assert_eq!(bytes[7], elf::ELFOSABI_FREEBSD.0);
}

#[test]
fn only_packages_are_marked_as_such() {
    use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
    let entry = ImageEntry::new(5).with_offload_kind(OffloadKind::OPENMP);
    let package =
        offload_binary::layout(FormatVersion::V1, &[entry]).unwrap().to_vec(&[b"inner"]).unwrap();
    let kind_of = |wrapper: Wrapper<'_>, images: &[&[u8]], name: &str| {
        let bytes = write(&wrapper, images);
        elf_section(&object::File::parse(&*bytes).unwrap(), name).unwrap().0
    };
    let wrapper =
        |images: &[&'static [u8]]| wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, images);
    let package: &'static [u8] = package.leak();
    let name = ".llvm.offloading";
    assert_eq!(kind_of(wrapper(&[package]), &[package], name), 0x6fff_4c0b);
    assert_eq!(kind_of(wrapper(&[package, package]), &[package, package], name), 0x6fff_4c0b);
    assert_eq!(kind_of(wrapper(&[package, b"raw"]), &[package, b"raw"], name), 1);
    assert_eq!(kind_of(wrapper(&[b"raw", package]), &[b"raw", package], name), 1);
    assert_eq!(kind_of(wrapper(&[package]).with_keep_packages(true), &[package], name), 1);
    let name = ".llvm.offloading.relocatable";
    assert_eq!(kind_of(wrapper(&[package]).with_relocatable(true), &[package], name), 1);
}

#[test]
fn large_images_are_in_large_sections() {
    const LARGE: u64 = 0x1000_0000;
    let object = |triple: &str, kind, size| {
        let target = Target::new(triple).unwrap();
        let image = Image::new(size, b"head".as_slice());
        Wrapper::new(kind, Abi::Current, target).with_image(image).module().unwrap().object()
    };
    let layout = object(X86_64, OffloadKind::OPENMP, 1 << 40).unwrap();
    assert!(layout.size() > 1 << 40 && layout.size() < (1 << 40) + 0x20000);
    // Section headers end the file: flags at 8, size at 32.
    let is_large = |triple, kind, size: u64| {
        let layout = object(triple, kind, size).unwrap();
        let Some(Part::Bytes(end)) = layout.parts().iter().last() else { panic!() };
        let headers = end.rchunks_exact(64).filter(|header| header[32..40] == size.to_le_bytes());
        let flags = headers.map(|header| u64::from_le_bytes(header[8..16].try_into().unwrap()));
        flags.fold(0, |all, flags| all | flags) & LARGE != 0
    };
    assert!(!is_large(X86_64, OffloadKind::OPENMP, (1 << 30) - 1));
    assert!(is_large(X86_64, OffloadKind::OPENMP, 1 << 30));
    assert!(is_large(X86_64, OffloadKind::HIP, 1 << 30));
    // Its code tells the address of the image.
    assert!(!is_large(X86_64, OffloadKind::SYCL, 1 << 30));
    assert!(!is_large(AARCH64, OffloadKind::OPENMP, 1 << 30));
    // COFF counts in 32 bits.
    for size in [(1 << 32) - 0x200, 1 << 32] {
        let error = object(MSVC, OffloadKind::CUDA, size).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let room = "bytes, but coff allows at most 0xffffffff";
        assert!(error.to_string().ends_with(room), "{error}");
    }
    object(MSVC, OffloadKind::CUDA, 1 << 31).unwrap();
}

#[test]
fn large_images_start_where_copying_is_fast() {
    for triple in TRIPLES {
        for (size, expected) in [(1 << 20, true), (100, false)] {
            let image = Image::new(size, b"head".as_slice());
            let target = Target::new(triple).unwrap();
            let wrapper = Wrapper::new(OffloadKind::CUDA, Abi::Current, target).with_image(image);
            let layout = wrapper.module().unwrap().object().unwrap();
            let offset = layout.offset(0).unwrap();
            assert_eq!(offset.is_multiple_of(65536), expected, "{triple}");
            let image = vec![7; usize::try_from(size).unwrap()];
            let bytes = layout.to_vec(&[&image]).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            assert_eq!(file.section_by_name(".nv_fatbin").unwrap().data().unwrap(), image);
            check(&bytes, triple);
        }
    }
}

#[test]
fn sections_have_the_alignment_of_images() {
    let align = |triple, align| {
        let wrapper =
            wrapper(OffloadKind::HIP, Abi::Current, triple, &[b"i"]).with_image_align(align);
        wrapper.module().unwrap().object()
    };
    let bytes = align(X86_64, 1 << 20).unwrap().to_vec(&[b"i"]).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(elf_section(&file, ".hip_fatbin").unwrap().2, 1 << 20);
    assert!(bytes.len() < 10_000);
    let bytes = align(MSVC, 8192).unwrap().to_vec(&[b"i"]).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.section_by_name(".hip_fatbin").unwrap().align(), 8192);
}

#[test]
fn sections_of_coff_have_their_flags() {
    const ALIGN: u32 = 0x00f0_0000;
    let flags = |file: &object::File<'_>, name: &str| {
        let section = file.section_by_name(name).unwrap_or_else(|| panic!("{name}"));
        let SectionFlags::Coff { characteristics } = section.flags() else { panic!() };
        characteristics.0 & !ALIGN
    };
    let read = 0x4000_0040; // IMAGE_SCN_CNT_INITIALIZED_DATA, IMAGE_SCN_MEM_READ
    let bytes = current(OffloadKind::CUDA, MSVC);
    let file = object::File::parse(&*bytes).unwrap();
    for name in [".nv_fatbin", ".nvFatBinSegment", ".CRT$XCA00101", ".pdata", ".xdata"] {
        assert_eq!(flags(&file, name), read, "{name}");
    }
    assert_eq!(flags(&file, "llvm_offload_entries$A"), read);
    // Linkers take one of several.
    let shared = read | 0x1000; // IMAGE_SCN_LNK_COMDAT
    assert_eq!(flags(&file, "llvm_offload_entries$OA"), shared);
    assert_eq!(flags(&file, "llvm_offload_entries$OZ"), shared);
    assert!(file.section_by_name(".drectve").is_none());
    assert!(file.symbol_by_name("__cudaRegisterSurface").is_none());

    let bytes = current(OffloadKind::CUDA, MINGW);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(flags(&file, ".ctors.65434"), read | 0x8000_0000);
    let directives = file.section_by_name(".drectve").unwrap();
    assert_eq!(
        directives.data().unwrap(),
        b" -exclude-symbols:__start_llvm_offload_entries \
          -exclude-symbols:__stop_llvm_offload_entries"
    );

    // SYCL of this generation is unregistered by a destructor.
    let bytes = current(OffloadKind::SYCL, MSVC);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(flags(&file, ".CRT$XTA00001"), read);
}

#[test]
fn addends_of_coff_lie_in_the_sections() {
    let bytes = current(OffloadKind::OPENMP, MSVC);
    let file = object::File::parse(&*bytes).unwrap();
    let tables = file.section_by_name(".rdata").unwrap();
    let mut expected = [0; 64];
    expected[8] = 23; // end of the image
    expected[32] = 1; // number of images
    assert_eq!(tables.data().unwrap(), expected);
    // Unwinding: start, end, and what the prologue does.
    let functions = file.section_by_name(".pdata").unwrap();
    let functions = functions.data().unwrap();
    let register = file.symbol_by_name(".omp_offloading.descriptor_reg").unwrap();
    assert_eq!(functions[0..4], [0; 4]);
    let end = u32::from_le_bytes(functions[4..8].try_into().unwrap());
    assert!(end > 10 && register.address() == 0, "{end}");
    let unwind = file.section_by_name(".xdata").unwrap();
    assert_eq!(unwind.data().unwrap()[..8], [1, 8, 1, 0, 8, 0x42, 0, 0]);
}

#[test]
fn unwinding_codes_of_arm64_windows_match_the_code() {
    let bytes = current(OffloadKind::OPENMP, MSVC_ARM64);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.architecture(), Architecture::Aarch64);
    // The start of each function, and what its prologue does.
    let expected = [
        (0, ".omp_offloading.descriptor_reg", 0),
        (4, ".xdata", 0),
        (8, ".omp_offloading.descriptor_unreg", 0),
        (12, ".xdata", 0),
    ];
    let expected = expected.map(|(at, symbol, addend)| (at, symbol.to_owned(), addend));
    assert_eq!(references(&file, ".pdata"), expected);
    let functions = file.section_by_name(".pdata").unwrap();
    assert_eq!(functions.data().unwrap(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0]);
    // 44 bytes of code, one epilogue, two words of codes; the epilogue after 36 bytes, its codes from the fourth on;
    // frame pointer, saved pair, landing pad.
    let unwind = file.section_by_name(".xdata").unwrap();
    let unwind = unwind.data().unwrap();
    assert_eq!(unwind[..4], (11_u32 | 1 << 22 | 2 << 27).to_le_bytes());
    assert_eq!(unwind[4..8], (9_u32 | 4 << 22).to_le_bytes());
    assert_eq!(unwind[8..16], [0xe1, 0x81, 0xe3, 0xe4, 0x81, 0xe4, 0xe3, 0xe3]);
}

#[test]
fn coff_sections_may_have_many_relocations() {
    let image: &[u8] = b"i";
    let images = vec![image; 20_000];
    let bytes = write(&wrapper(OffloadKind::OPENMP, Abi::Current, MSVC, &images), &images);
    let file = object::File::parse(&*bytes).unwrap();
    let tables = file.section_by_name(".rdata").unwrap();
    assert_eq!(tables.relocations().count(), 4 * 20_000 + 3);
}

#[test]
fn other_machines_are_refused() {
    for triple in [
        "i386-unknown-linux-gnu",
        "aarch64_be-unknown-linux-gnu",
        "arm64ec-pc-windows-msvc",
        "arm64-apple-macosx",
        "x86_64-apple-darwin",
    ] {
        let module = wrapper(OffloadKind::CUDA, Abi::Current, triple, &[b"i"]).module().unwrap();
        let error = module.object().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotNative);
        let text = format!(
            "no native objects for target triple \"{triple}\", expected elf for x86-64, aarch64 or riscv64, or coff \
             for x86-64 or aarch64"
        );
        assert_eq!(error.to_string(), text);
    }
}
