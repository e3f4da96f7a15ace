//! Objects in Mach-O, read back with the `object` crate.

use object::{
    Architecture, FileFlags, Object, ObjectSection, ObjectSymbol, RelocationFlags,
    RelocationTarget, SectionFlags, SymbolFlags,
};
use wrapper_ir::{Abi, Entries, ErrorKind, Image, OffloadEntry, OffloadKind, Target, Wrapper};

const X86_64: &str = "x86_64-apple-darwin";
const ARM64: &str = "aarch64-apple-darwin";
const IMAGE: &[u8] = b"an image of a few bytes";

fn wrapper(kind: OffloadKind, triple: &str, image: Image<'static>) -> Wrapper<'static> {
    Wrapper::new(kind, Abi::Current, Target::new(triple).unwrap()).image(image)
}

fn current(kind: OffloadKind, triple: &str) -> Vec<u8> {
    let module = wrapper(kind, triple, Image::from_bytes(IMAGE)).module().unwrap();
    module.object().unwrap().to_vec(&[IMAGE]).unwrap()
}

/// Segment, name, address, size, alignment and flags of each section.
fn sections(file: &object::File<'_>) -> Vec<(String, String, u64, u64, u64, u32)> {
    let facts = file.sections().map(|section| {
        let SectionFlags::MachO { flags, .. } = section.flags() else { panic!() };
        let segment = section.segment_name().unwrap().unwrap().to_owned();
        let name = section.name().unwrap().to_owned();
        (segment, name, section.address(), section.size(), section.align(), flags.0)
    });
    facts.collect()
}

#[test]
fn sections_of_mach_o_have_their_flags() {
    const CODE: u32 = 0x8000_0400; // S_ATTR_PURE_INSTRUCTIONS, S_ATTR_SOME_INSTRUCTIONS
    for (triple, architecture, code_align) in
        [(X86_64, Architecture::X86_64, 16), (ARM64, Architecture::Aarch64, 4)]
    {
        let bytes = current(OffloadKind::HIP, triple);
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!(file.architecture(), architecture);
        // MH_SUBSECTIONS_VIA_SYMBOLS
        assert!(matches!(file.flags(), FileFlags::MachO { flags } if flags.0 == 0x2000));
        let found = sections(&file);
        let code_size = found[0].3;
        let expected = [
            ("__TEXT", "__StaticInit", 0, code_size, code_align, CODE),
            // Empty: a byte would come between the entries of other objects.
            ("__LLVM", "offload_entries", (code_size + 7) & !7, 0, 8, 0),
            ("__HIP", "__hip_fatbin", 0x1000, 23, 4096, 0),
            ("__HIP", "__fatbin", 0x1018, 24, 8, 0),
            ("__DATA", "__bss", 0x1098, 8, 8, 1), // S_ZEROFILL
            ("__DATA", "__mod_init_func", 0x1030, 8, 8, 9), // S_MOD_INIT_FUNC_POINTERS
            ("__LD", "__compact_unwind", 0x1038, 96, 8, 0x0200_0000), // S_ATTR_DEBUG
        ];
        let expected = expected.map(|(segment, name, address, size, align, flags)| {
            (segment.to_owned(), name.to_owned(), address, size, align, flags)
        });
        assert_eq!(found, expected, "{triple}");
        let image = file.section_by_name("__hip_fatbin").unwrap();
        assert_eq!(image.data().unwrap(), IMAGE);
    }
}

#[test]
fn symbols_of_mach_o() {
    let bytes = current(OffloadKind::CUDA, X86_64);
    let file = object::File::parse(&*bytes).unwrap();
    let symbols: Vec<_> = file
        .symbols()
        .map(|symbol| (symbol.name().unwrap(), symbol.is_local(), symbol.is_undefined()))
        .collect();
    // Local ones first; the others in the order of their names.
    let expected = [
        ("_.cuda.fatbin_reg", true, false),
        ("_.cuda.fatbin_unreg", true, false),
        ("_.cuda.globals_reg", true, false),
        ("___dummy.__LLVM,offload_entries", true, false),
        ("_.fatbin_image", true, false),
        ("_.fatbin_wrapper", true, false),
        ("_.cuda.binary_handle", true, false),
        ("section$end$__LLVM$offload_entries", false, true),
        ("section$start$__LLVM$offload_entries", false, true),
        ("___cudaRegisterFatBinary", false, true),
        ("___cudaRegisterFatBinaryEnd", false, true),
        ("___cudaRegisterFunction", false, true),
        ("___cudaRegisterManagedVar", false, true),
        ("___cudaRegisterVar", false, true),
        ("___cudaUnregisterFatBinary", false, true),
        ("_atexit", false, true),
    ];
    assert_eq!(symbols, expected);
}

#[test]
fn relocations_of_mach_o() {
    for (triple, address, call) in [(X86_64, 1, 2), (ARM64, 3, 2)] {
        let bytes = current(OffloadKind::HIP, triple);
        let file = object::File::parse(&*bytes).unwrap();
        let relocations = |name: &str| -> Vec<_> {
            let section = file.section_by_name(name).unwrap();
            let facts = section.relocations().map(|(at, relocation)| {
                let RelocationFlags::MachO { r_type, r_pcrel, r_length, .. } = relocation.flags()
                else {
                    panic!()
                };
                let symbol = match relocation.target() {
                    RelocationTarget::Symbol(index) => {
                        file.symbol_by_index(index).unwrap().name().unwrap().to_owned()
                    }
                    RelocationTarget::Section(index) => {
                        file.section_by_index(index).unwrap().name().unwrap().to_owned()
                    }
                    other => panic!("{other:?}"),
                };
                (at, symbol, r_type.0, r_pcrel, r_length)
            });
            facts.collect()
        };
        assert_eq!(relocations("__fatbin"), [(8, "_.fatbin_image".into(), 0, false, 3)]);
        assert_eq!(relocations("__mod_init_func"), [(0, "_.hip.fatbin_reg".into(), 0, false, 3)]);
        let code = relocations("__StaticInit");
        assert!(code.is_sorted_by_key(|relocation| std::cmp::Reverse(relocation.0)));
        let has = |symbol: &str, kind| {
            code.iter().any(|(_, name, found, relative, length)| {
                name == symbol && (*found, *relative, *length) == (kind, true, 2)
            })
        };
        assert!(has("_.fatbin_wrapper", address) && has("_atexit", call), "{code:?}");
        // Those of the section; addresses are in place.
        let unwind = relocations("__compact_unwind");
        let code = "__StaticInit".to_owned();
        let expected = [64, 32, 0].map(|at| (at, code.clone(), 0, false, 3));
        assert_eq!(unwind, expected);
        let section = file.section_by_name("__compact_unwind").unwrap();
        let second = file.symbol_by_name("_.hip.fatbin_unreg").unwrap().address();
        assert_eq!(section.data().unwrap()[32..40], second.to_le_bytes());
    }
}

#[test]
fn entries_are_retained_on_request() {
    for (retain, expected) in [(true, 0xa0), (false, 0x80)] {
        let target = Target::new(ARM64).unwrap();
        let module = Entries::new(OffloadKind::HIP, Abi::Current, target)
            .entry(OffloadEntry::kernel("kernel", "handle"))
            .retain(retain)
            .module()
            .unwrap();
        let bytes = module.object().unwrap().to_vec(&[]).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let entry = file.symbol_by_name("_.offloading.entry.kernel").unwrap();
        // N_NO_DEAD_STRIP, N_WEAK_DEF
        assert!(
            matches!(entry.flags(), SymbolFlags::MachO { n_desc, .. } if n_desc.0 == expected),
            "{:?}",
            entry.flags()
        );
        let names: Vec<_> = sections(&file).into_iter().map(|(_, name, ..)| name).collect();
        assert_eq!(names, ["__text", "__const", "offload_entries"]);
    }
}

#[test]
fn large_images_are_aligned_and_have_a_size_limit() {
    for triple in [X86_64, ARM64] {
        for (size, expected) in [(1 << 20, true), (100, false)] {
            let module =
                wrapper(OffloadKind::CUDA, triple, Image::new(size, b"head".as_slice())).module();
            let layout = module.unwrap().object().unwrap();
            let offset = layout.offset(0).unwrap();
            assert_eq!(offset.is_multiple_of(65536), expected, "{triple}");
            let image = vec![7; usize::try_from(size).unwrap()];
            let bytes = layout.to_vec(&[&image]).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            assert_eq!(file.section_by_name("__nv_fatbin").unwrap().data().unwrap(), image);
        }
        // Places in the file have 32 bits.
        let module =
            wrapper(OffloadKind::CUDA, triple, Image::new(1 << 32, b"head".as_slice())).module();
        let error = module.unwrap().object().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let room = "bytes, but mach-o allows at most 0xffffffff";
        assert!(error.to_string().ends_with(room), "{error}");
    }
    let aligned = wrapper(OffloadKind::HIP, ARM64, Image::from_bytes(IMAGE)).image_align(1 << 15);
    let bytes = aligned.module().unwrap().object().unwrap().to_vec(&[IMAGE]).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.section_by_name("__hip_fatbin").unwrap().align(), 1 << 15);
    assert!(bytes.len() < 10_000);
}

#[test]
fn other_machines_are_refused() {
    for (triple, subtype) in [("x86_64-apple-darwin", 3), ("x86_64h-apple-darwin", 8), (ARM64, 0)] {
        let bytes = current(OffloadKind::HIP, triple);
        assert_eq!(bytes[8..12], u32::to_le_bytes(subtype), "{triple}");
    }
    for triple in ["arm64e-apple-darwin", "arm64_32-apple-watchos", "i686-apple-darwin"] {
        let module = wrapper(OffloadKind::HIP, triple, Image::from_bytes(IMAGE)).module().unwrap();
        let error = module.object().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotNative);
        let start = format!("no native objects for target triple \"{triple}\", expected elf");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}
