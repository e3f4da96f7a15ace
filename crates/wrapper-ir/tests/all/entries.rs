//! Modules of entries: their text, whole, their objects, and what is refused.
//!
//! `BLESS=1 cargo test -p wrapper-ir --test all entries::` regenerates `golden/entries*.ll`. They are compared with what clang emits
//! in `crates/tool-tests/tests/llvm/entries.rs`.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, elf};
use wrapper_ir::{Abi, Entries, EntryFlags, Error, ErrorKind, OffloadEntry, OffloadKind, Target};

const LINUX: &str = "x86_64-unknown-linux-gnu";
const WINDOWS: &str = "x86_64-pc-windows-msvc";
const MAC: &str = "aarch64-apple-darwin";

fn entries(kind: OffloadKind, abi: Abi, triple: &str) -> Entries<'static> {
    Entries::new(kind, abi, Target::new(triple).unwrap())
}

/// Each sort of entries that HIP has.
fn hip() -> Vec<OffloadEntry<'static>> {
    vec![
        OffloadEntry::kernel("_Z5scalePff", "scale_handle"),
        OffloadEntry::variable("table", "table", 0x1_2345_6789).with_flags(EntryFlags::CONSTANT),
        OffloadEntry::managed("pool", "pool.managed", "pool", 8, 16),
        OffloadEntry::variable("surf", "surf", 4).with_flags(EntryFlags::SURFACE).with_data(2),
        OffloadEntry::variable("tex", "tex", 4)
            .with_flags(EntryFlags::TEXTURE | EntryFlags::NORMALIZED)
            .with_data(2),
    ]
}

/// Each sort of entries that OpenMP has, and a name that has to be quoted.
fn openmp() -> Vec<OffloadEntry<'static>> {
    vec![
        OffloadEntry::kernel("__omp_offloading_1_main_l8", ".__omp_offloading_1_main_l8.region_id"),
        OffloadEntry::variable("sum\"\n", "sum", 4),
        OffloadEntry::variable("far_decl_tgt_ref_ptr", "far_decl_tgt_ref_ptr", 8)
            .with_flags(EntryFlags::OPENMP_LINK),
        OffloadEntry::variable("__omp_offloading_1_call_l5", "call", 8)
            .with_flags(EntryFlags::OPENMP_INDIRECT),
        OffloadEntry::requires(8),
    ]
}

/// Entries that fit into the records of every generation.
fn plain() -> Vec<OffloadEntry<'static>> {
    vec![
        OffloadEntry::kernel("scale", "scale_handle"),
        OffloadEntry::variable("table", "table", 1024),
    ]
}

fn check(name: &str, entries: &Entries<'_>) {
    let text = entries.module().unwrap().ir_to_string(&[]).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
}

#[test]
fn text_is_that_of_the_golden_files() {
    let hip_of = |abi, triple| entries(OffloadKind::HIP, abi, triple).with_entries(hip());
    let openmp_of = |abi, triple| entries(OffloadKind::OPENMP, abi, triple);
    check("entries-hip.ll", &hip_of(Abi::Current, LINUX));
    check("entries-hip-24-mach-o.ll", &hip_of(Abi::Llvm24, MAC));
    check("entries-openmp-coff.ll", &openmp_of(Abi::Current, WINDOWS).with_entries(openmp()));
    check(
        "entries-openmp-i386.ll",
        &openmp_of(Abi::Current, "i386-linux-gnu").with_entries(plain()),
    );
    check("entries-openmp-19.ll", &openmp_of(Abi::Llvm19, LINUX).with_entries(plain()));
    check("entries-openmp-18-coff.ll", &openmp_of(Abi::Llvm18, WINDOWS).with_entries(plain()));
    check("entries-openmp-aomp.ll", &openmp_of(Abi::Aomp, LINUX).with_entries(plain()));
    let private = entries(OffloadKind::CUDA, Abi::Current, LINUX)
        .with_private_entries("a1")
        .with_retain(false);
    check("entries-cuda-private.ll", &private.with_entry(OffloadEntry::kernel("scale", "scale")));
}

/// Host objects of a generation have their entries where its registration code looks for them.
#[test]
fn sections_are_those_of_wrappers() {
    for kind in [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP] {
        for abi in Abi::ALL {
            for triple in [LINUX, WINDOWS, MAC, "i386-linux-gnu"] {
                let image = wrapper_ir::Image::from_bytes(b"an image");
                let wrapper = wrapper_ir::Wrapper::new(kind, abi, Target::new(triple).unwrap());
                let wrapper = wrapper.with_image(image).module();
                let module = entries(kind, abi, triple).with_entries(plain()).module();
                let (wrapper, module) = match (wrapper, module) {
                    (Ok(wrapper), Ok(module)) => (wrapper, module),
                    (wrapper, module) => {
                        let errors = (wrapper.unwrap_err(), module.unwrap_err());
                        assert_eq!(format!("{:?}", errors.0), format!("{:?}", errors.1));
                        continue;
                    }
                };
                let (wrapper, text) = (
                    wrapper.ir_to_string(&[b"an image"]).unwrap(),
                    module.ir_to_string(&[]).unwrap(),
                );
                let structure = |text: &str| {
                    text.lines().find(|line| line.starts_with('%')).map(str::to_owned).unwrap()
                };
                assert_eq!(structure(&wrapper), structure(&text));
                // The first variable with such a name that is in a section.
                let of = |text: &str, start: &str| {
                    text.lines().find_map(|line| {
                        let line = line.strip_prefix('@')?;
                        let named = line.trim_start_matches('"').starts_with(start);
                        let section = line.split_once(", section \"").filter(|_| named)?.1;
                        section.split_once('"').map(|(section, _)| section.to_owned())
                    })
                };
                let entry = of(&text, ".offloading.entry.")
                    .or_else(|| of(&text, ".omp_offloading.entry."))
                    .unwrap();
                let expected = match triple {
                    LINUX | "i386-linux-gnu" => of(&wrapper, "__dummy").unwrap(),
                    WINDOWS => of(&wrapper, "__start_").unwrap().replace("$OA", "$OE"),
                    _ => "__LLVM,offload_entries".to_owned(),
                };
                assert_eq!(entry, expected, "{kind} {abi} {triple}");
            }
        }
    }
}

fn elf_section(file: &object::File<'_>, name: &str) -> (u32, u64, u64, u64) {
    let section = file.section_by_name(name).unwrap();
    let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { panic!() };
    (sh_type.0, sh_flags.0, section.size(), section.align())
}

#[test]
fn elf_objects_have_the_entries() {
    const WA: u64 = 3;
    const RETAIN: u64 = 0x20_0000;
    for triple in [LINUX, "aarch64-unknown-linux-gnu", "riscv64gc-unknown-linux-gnu"] {
        let module =
            entries(OffloadKind::HIP, Abi::Current, triple).with_entries(hip()).module().unwrap();
        let bytes = module.object().unwrap().to_vec(&[]).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let expected = (elf::SHT_PROGBITS.0, WA | RETAIN, 5 * 56, 8);
        assert_eq!(elf_section(&file, "llvm_offload_entries"), expected);
        let names = "_Z5scalePff\0table\0pool\0surf\0tex\0";
        let section = file.section_by_name(".llvm.rodata.offloading").unwrap();
        assert_eq!(section.data().unwrap(), names.as_bytes());
        assert!(file.section_by_name(".eh_frame").is_none());

        let entries = file.section_by_name("llvm_offload_entries").unwrap();
        let data = entries.data().unwrap();
        // Version, kind, flags; size, data.
        assert_eq!(data[2 * 56 + 8..][..8], [1, 0, 4, 0, 1, 0, 0, 0]);
        assert_eq!(data[56 + 32..][..8], 0x1_2345_6789_u64.to_le_bytes());
        assert_eq!(data[2 * 56 + 40..][..8], 16_u64.to_le_bytes());
        let mut places = entries.relocations().map(|(at, relocation)| {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { panic!() };
            (at, file.symbol_by_index(symbol).unwrap().name().unwrap())
        });
        assert_eq!(places.next(), Some((16, "scale_handle")));
        assert_eq!(places.next(), Some((24, ".offloading.entry_name")));
        assert_eq!(places.nth(2), Some((2 * 56 + 16, "pool.managed")));
        assert_eq!(places.nth(1), Some((2 * 56 + 48, "pool")));

        let entry = file.symbols().find(|symbol| symbol.name() == Ok(".offloading.entry.pool"));
        let entry = entry.unwrap();
        assert!(entry.is_weak() && entry.address() == 2 * 56 && entry.size() == 56);
        assert!(file.symbol_by_name("pool.managed").unwrap().is_undefined());
    }
    let module =
        entries(OffloadKind::OPENMP, Abi::Current, LINUX).with_entries(openmp()).with_retain(false);
    let bytes = module.module().unwrap().object().unwrap().to_vec(&[]).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(elf_section(&file, "llvm_offload_entries").1, WA);
}

#[test]
fn coff_objects_have_the_entries() {
    for triple in [WINDOWS, "x86_64-pc-windows-gnu", "aarch64-pc-windows-msvc"] {
        let module =
            entries(OffloadKind::OPENMP, Abi::Current, triple).with_entries(openmp()).module();
        let bytes = module.unwrap().object().unwrap().to_vec(&[]).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = file.section_by_name("llvm_offload_entries$OE").unwrap();
        assert_eq!((section.size(), section.align()), (5 * 56, 8));
        // Four addresses, five names.
        assert_eq!(section.relocations().count(), 9);
        assert!(file.section_by_name(".pdata").is_none());
    }
}

#[test]
fn only_unretained_elf_entries_need_arguments_of_the_link() {
    let count = |kind, triple, retain| {
        let entries = entries(kind, Abi::Current, triple).with_entries(plain()).with_retain(retain);
        entries.module().unwrap().compiler_args().len()
    };
    assert_eq!(count(OffloadKind::HIP, LINUX, true), 0);
    assert_eq!(count(OffloadKind::HIP, LINUX, false), 1);
    assert_eq!(count(OffloadKind::HIP, WINDOWS, false), 0);
    assert_eq!(count(OffloadKind::HIP, MAC, false), 0);
}

fn error(entries: &Entries<'_>) -> Error {
    entries.module().unwrap_err()
}

#[test]
fn unsupported_kinds_are_errors() {
    let (kind, abi) = (OffloadKind::SYCL, Abi::Current);
    let found = error(&entries(kind, abi, LINUX));
    assert_eq!(found.kind(), ErrorKind::Unsupported);
    let expected = "sycl registers no offload entries, expected openmp, cuda or hip";
    assert_eq!(found.to_string(), expected);
    let kind = OffloadKind::OPENMP;
    let expected = "abi current has no registration code of kind openmp for mach-o objects";
    assert_eq!(error(&entries(kind, abi, MAC)).to_string(), expected);
    let found = error(&entries(kind, abi, LINUX));
    assert_eq!(found.kind(), ErrorKind::Count);
    assert_eq!(found.to_string(), "no offload entry to emit for openmp");
    let some = entries(kind, abi, WINDOWS).with_entries(plain()).with_private_entries("a");
    let expected = "private entries need elf objects, the target has coff";
    assert_eq!(error(&some).to_string(), expected);
    let some = entries(kind, abi, LINUX).with_entries(plain()).with_private_entries(".");
    assert_eq!(error(&some).kind(), ErrorKind::Invalid);
    let expected = "entries suffix \".\" is not made of letters, digits and underscores";
    assert_eq!(error(&some).to_string(), expected);
}

#[test]
fn malformed_names_are_errors() {
    let some = || entries(OffloadKind::HIP, Abi::Current, LINUX).with_entries(plain());
    for name in ["", "a\0b"] {
        let found = error(&some().with_entry(OffloadEntry::kernel(name, "a")));
        let name = name.escape_debug();
        let expected =
            format!("offload entry 2 has the name \"{name}\", expected text without NUL");
        assert_eq!(found.to_string(), expected);
    }
    for symbol in ["", "a\0b", "llvm.used", ".offloading.entry_name", ".offloading.entry.table"] {
        let place = format!("offload entry 2 is at the symbol \"{}\"", symbol.escape_debug());
        let expected = format!("{place}, expected one that the program defines");
        let found = error(&some().with_entry(OffloadEntry::kernel("a", symbol)));
        assert_eq!(found.to_string(), expected);
        let found = error(&some().with_entry(OffloadEntry::managed("a", "a", symbol, 4, 4)));
        assert_eq!(found.to_string(), expected);
    }
    let found = error(&some().with_entry(OffloadEntry::kernel("scale", "a")));
    assert_eq!(found.kind(), ErrorKind::Invalid);
    assert_eq!(found.to_string(), "offload entries 0 and 2 both have the name \"scale\"");
    // Symbols may be shared, and one may have the name of the kernel.
    let shared = some().with_entry(OffloadEntry::variable("b", "table", 4));
    let text = shared.module().unwrap().ir_to_string(&[]).unwrap();
    assert_eq!(text.matches("@table = external global i8\n").count(), 1);
}

#[test]
fn entries_that_no_runtime_registers_are_errors() {
    let found = |kind, abi, entry| entries(kind, abi, LINUX).with_entry(entry).module().err();
    let variable =
        |flags| OffloadEntry::variable("a", "a", 4).with_flags(EntryFlags::from_bits_retain(flags));
    let managed = || OffloadEntry::managed("a", "a", "b", 4, 4);
    for (kind, abi, entry, flags) in [
        (OffloadKind::HIP, Abi::Current, variable(4), 4),
        (OffloadKind::HIP, Abi::Current, variable(1), 1),
        (OffloadKind::CUDA, Abi::Current, variable(2), 2),
        (OffloadKind::HIP, Abi::Llvm19, managed().with_data(0), 1),
        (OffloadKind::OPENMP, Abi::Current, managed(), 1),
    ] {
        let found = found(kind, abi, entry).unwrap();
        assert_eq!(found.kind(), ErrorKind::Unsupported);
        let expected = format!(
            "offload entry 0 has the flags {flags:#x}, but abi {abi} registers no such variables of kind {kind}"
        );
        assert_eq!(found.to_string(), expected);
    }
    for entry in [OffloadEntry::variable("a", "a", 0), OffloadEntry::managed("a", "a", "b", 0, 4)] {
        let found = found(OffloadKind::CUDA, Abi::Current, entry).unwrap();
        let expected = "offload entry 0 is a variable of 0 bytes, which is registered as a kernel";
        assert_eq!(found.to_string(), expected);
    }
    assert!(found(OffloadKind::CUDA, Abi::Current, managed()).is_none());
    assert!(found(OffloadKind::HIP, Abi::Llvm18, variable(2 | 8).with_data(1)).is_none());
}

#[test]
fn numbers_that_do_not_fit_are_errors() {
    let check = |found: Error, field, value: u64, limit: u64| {
        let room = format!("expected at most {limit:#x}");
        let expected = format!("offload entry 0 has the {field} {value:#x}, {room}");
        assert_eq!((found.kind(), found.to_string()), (ErrorKind::Limit, expected));
    };
    let variable = |size| OffloadEntry::variable("a", "a", size);
    let narrow =
        |size| entries(OffloadKind::HIP, Abi::Current, "i686-linux-gnu").with_entry(variable(size));
    assert!(narrow(0xFFFF_FFFF).module().is_ok());
    let found = error(&narrow(0x1_0000_0000));
    check(found, "size", 0x1_0000_0000, 0xFFFF_FFFF);
    let data = |abi, data| {
        entries(OffloadKind::OPENMP, abi, LINUX).with_entry(variable(4).with_data(data)).module()
    };
    assert!(data(Abi::Current, u64::MAX).is_ok() && data(Abi::Llvm19, 0xFFFF_FFFF).is_ok());
    let found = data(Abi::Llvm19, u64::MAX).unwrap_err();
    check(found, "data", u64::MAX, 0xFFFF_FFFF);
    check(data(Abi::Aomp, 1).unwrap_err(), "data", 1, 0);
}

/// As many as in a large library.
#[test]
fn many_entries_are_written() {
    let names: Vec<_> = (0..5_000).map(|number| format!("kernel{number}")).collect();
    let module = entries(OffloadKind::HIP, Abi::Current, LINUX)
        .with_entries(names.iter().map(|name| OffloadEntry::kernel(name.as_str(), name.as_str())))
        .module()
        .unwrap();
    let bytes = module.object().unwrap().to_vec(&[]).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.section_by_name("llvm_offload_entries").unwrap().size(), 5_000 * 56);
    assert!(module.bitcode().unwrap().size() > 5_000 * 20);
}
