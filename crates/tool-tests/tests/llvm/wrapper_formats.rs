//! Registration code as objects in COFF and Mach-O, compared with what clang 22 makes of the same module, and linked.
//!
//! Mach-O programs run, too: the linker puts a runtime into them that needs no system (`wrapper/macho.c`), and a loader puts
//! them where they want to be (`wrapper/macho_loader.c`).
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, Debian's cross compiler for AArch64, and `qemu-user`; fails
//! without them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::common::llvm;
use crate::common::place::Place;
use wrapper_ir::{Abi, Entries, Image, OffloadEntry, OffloadKind, Target, Wrapper};

const WINDOWS: [&str; 4] = [
    "x86_64-pc-windows-msvc",
    "x86_64-w64-windows-gnu",
    "aarch64-pc-windows-msvc",
    "aarch64-w64-windows-gnu",
];

/// A fatbinary of 16 bytes.
const FATBIN: &[u8] = b"\x50\xed\x55\xba\x01\x00\x10\x00fatbin\x00\xff";

/// The wrapper of images that are in memory.
fn wrapper<'a>(kind: OffloadKind, abi: Abi, triple: &str, images: &[&'a [u8]]) -> Wrapper<'a> {
    let target = Target::new(triple).unwrap();
    Wrapper::new(kind, abi, target).images(images.iter().map(|image| Image::from_bytes(image)))
}

fn object(wrapper: &Wrapper<'_>, images: &[&[u8]]) -> Vec<u8> {
    wrapper.module().unwrap().object().unwrap().to_vec(images).unwrap()
}

/// A section as LLVM's tools print it.
#[derive(Debug, Default, PartialEq)]
struct Section {
    /// Size, alignment and flags: lines of `llvm-readobj`.
    facts: BTreeMap<String, String>,
    /// Bytes in hexadecimal.
    contents: String,
    /// Place, type and symbol of each relocation.
    relocations: BTreeSet<String>,
}

/// The sections of an object, by name.
fn sections(place: &Place, object: &str, facts: &[&str]) -> BTreeMap<String, Section> {
    let mut found = BTreeMap::<String, Section>::new();
    let text = place.run(llvm("llvm-readobj"), &["--sections", object]);
    for block in text.split("  Section {\n").skip(1) {
        let mut section = Section::default();
        let mut name = String::new();
        for line in block.lines() {
            let Some((key, value)) = line.trim().split_once([':', '[']) else { continue };
            let (key, value) = (key.trim(), value.trim());
            if key == "Name" {
                name = value.split(" (").next().unwrap().to_owned();
            } else if key == "Characteristics" {
                // LLVM gives some variables more than the alignment of their type.
                let flags = value.trim_matches(['(', ')']).trim_start_matches("0x");
                let flags = u32::from_str_radix(flags, 16).unwrap() & !0x00f0_0000;
                section.facts.insert(key.to_owned(), format!("{flags:#x}"));
            } else if facts.contains(&key) {
                section.facts.insert(key.to_owned(), value.to_owned());
            }
        }
        assert!(found.insert(name, section).is_none(), "{text}");
    }
    let mut name = String::new();
    for line in place.run(llvm("llvm-objdump"), &["--full-contents", object]).lines() {
        if let Some(next) = line.strip_prefix("Contents of section ") {
            name = next.trim_end_matches(':').rsplit(',').next().unwrap().to_owned();
        } else if let Some(section) = found.get_mut(&name)
            && !line.starts_with('<')
        {
            // The place, then up to four words.
            let bytes = line.trim_start().split("  ").next().unwrap();
            section.contents.extend(bytes.split(' ').skip(1));
        }
    }
    for line in place.run(llvm("llvm-objdump"), &["--reloc", object]).lines() {
        if let Some(next) = line.strip_prefix("RELOCATION RECORDS FOR [") {
            name = next.trim_end_matches("]:").to_owned();
        } else if let Some(section) = found.get_mut(&name)
            && line.starts_with("0")
        {
            section.relocations.insert(line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    found
}

/// Names of symbols with the letter of `nm`.
fn symbols(place: &Place, object: &str) -> BTreeSet<String> {
    let text = place.run(llvm("llvm-nm"), &["--format=posix", object]);
    let words = text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    words.collect()
}

/// The functions that code calls, as often as it does.
fn calls(section: &Section) -> Vec<String> {
    let branch = |line: &&String| line.contains("BRANCH") || line.contains("REL32");
    let symbol = |line: &String| line.split(' ').nth(2).unwrap().to_owned();
    let names = section.relocations.iter().filter(branch).map(symbol);
    let mut names: Vec<String> = names.filter(|name| name.contains("egister")).collect();
    names.sort();
    names
}

/// Clang's object for the module has the same sections with the same bytes and relocations, and the same symbols.
fn compare_with_clang(place: &Place, triple: &str, wrapper: &Wrapper<'_>, ours: &str) {
    const FACTS: [&str; 2] = ["RawDataSize", "Characteristics"];

    let text = wrapper.module().unwrap().ir_to_string(&[FATBIN]).unwrap();
    place.put("clang.ll", text.as_bytes());
    let target = format!("--target={triple}");
    let warnings = "-Wno-override-module";
    place.run(llvm("clang"), &[&target, warnings, "-c", "clang.ll", "-o", "clang.obj"]);
    let mut theirs = sections(place, "clang.obj", &FACTS);
    // Empty, or of use to linkers that optimize.
    for name in [".text", ".data", ".llvm_addrsig"] {
        theirs.remove(name);
    }
    theirs.retain(|name, section| name != ".bss" || section.facts["RawDataSize"] != "0");
    let ours_sections = sections(place, ours, &FACTS);
    // The table of a switch.
    theirs.retain(|name, _| name != ".rdata" || ours_sections.contains_key(name));
    let names: Vec<_> = ours_sections.keys().collect();
    assert_eq!(names, theirs.keys().collect::<Vec<_>>(), "{triple}");
    for (name, section) in &ours_sections {
        let expected = &theirs[name];
        match name.as_str() {
            ".text.startup" => assert_eq!(calls(section), calls(expected), "{triple}"),
            ".pdata" | ".xdata" => {
                assert_eq!(section.facts["Characteristics"], expected.facts["Characteristics"]);
            }
            // Several objects may have them.
            _ if name.contains("$O") => assert_eq!(section.contents, expected.contents),
            // The variable in it has no bytes. In clang's object it has one, which would shift the entries after it.
            "offload_entries" => {
                assert_eq!(section.facts["Size"], "0x0");
                assert_eq!(expected.facts["Size"], "0x1");
                assert_eq!(section.facts["Alignment"], expected.facts["Alignment"]);
            }
            _ => assert_eq!(section, expected, "{triple} {name}"),
        }
    }
    let of_sections = |symbol: &String| theirs.contains_key(symbol.split(' ').next().unwrap());
    let unused = [".text t", ".data d", ".bss b", "@feat.00 a"];
    let ours: BTreeSet<_> =
        symbols(place, ours).into_iter().filter(|symbol| !of_sections(symbol)).collect();
    // LLVM has a weak reference for a definition that several objects may have.
    let theirs: BTreeSet<_> = symbols(place, "clang.obj")
        .into_iter()
        .filter(|symbol| !of_sections(symbol) && !unused.contains(&symbol.as_str()))
        .filter(|symbol| !symbol.starts_with(".weak."))
        .map(|symbol| symbol.replace(" W", " R"))
        .collect();
    assert_eq!(ours, theirs, "{triple}");
}

/// An entry of a host object for Windows, with a program around it.
const WINDOWS_PROGRAM: &[u8] = b"
typedef unsigned long long u64;
struct entry { u64 r; unsigned short version, kind; unsigned flags; void *a; const char *n; u64 s, d; void *x; };
#ifdef ENTRIES
__attribute__((section(\"llvm_offload_entries$OE\"), used, aligned(8)))
const struct entry one = {0, 1, 2, 0, (void *)1, \"one\", 0, 0, 0};
__attribute__((section(\"llvm_offload_entries$OE\"), used, aligned(8)))
const struct entry two = {0, 1, 2, 0, (void *)2, \"two\", 0, 0, 0};
#endif
int atexit(void (*f)(void)) { return 0; }
void __tgt_register_lib(void *d) {}
void __tgt_unregister_lib(void *d) {}
void *__cudaRegisterFatBinary(void *d) { return d; }
void __cudaRegisterFatBinaryEnd(void *d) {}
void __cudaUnregisterFatBinary(void *d) {}
int __cudaRegisterFunction(void *h) { return 0; }
void __cudaRegisterVar(void *h) {}
void __cudaRegisterManagedVar(void *h) {}
int mainCRTStartup(void) { return 0; }
";

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn objects_for_windows_are_linked_and_agree_with_clang() {
    let place = Place::new();
    place.put("program.c", WINDOWS_PROGRAM);
    let images: [&[u8]; 1] = [FATBIN];
    for triple in WINDOWS {
        for (kind, abi) in [
            (OffloadKind::OPENMP, Abi::Current),
            (OffloadKind::OPENMP, Abi::Llvm24),
            (OffloadKind::CUDA, Abi::Current),
            (OffloadKind::CUDA, Abi::Llvm24),
        ] {
            let image = vec![place.put("image", FATBIN)];
            place.llvm_object(kind, triple, &image, "theirs.obj");
            place.put("ours.obj", &object(&wrapper(kind, abi, triple, &images), &images));
            place.put("again.obj", &object(&wrapper(kind, abi, triple, &images), &images));
            place.run(llvm("llvm-readobj"), &["--all", "ours.obj"]);
            let code = place.run(llvm("llvm-objdump"), &["-dr", "ours.obj"]);
            assert!(!code.contains("<unknown>"), "{code}");
            compare_with_clang(&place, triple, &wrapper(kind, abi, triple, &images), "ours.obj");
            for entries in [0, 2] {
                let target = format!("--target={triple}");
                let mut arguments = vec![&target[..], "-c", "program.c", "-o", "program.obj"];
                arguments.extend(["-ffreestanding", "-fno-builtin", "-Wno-everything"]);
                if entries != 0 {
                    arguments.push("-DENTRIES");
                }
                place.run(llvm("clang"), &arguments);
                let mut programs = vec![&["ours.obj"][..], &["ours.obj", "again.obj"]];
                // LLVM 24 counts from another place than LLVM 22.
                if abi == Abi::Current {
                    programs.push(&["ours.obj", "theirs.obj"]);
                    programs.push(&["theirs.obj", "ours.obj"]);
                }
                for objects in programs {
                    link_windows(&place, triple, objects, kind, abi, entries);
                }
            }
        }
    }
}

/// Links, and compares the bounds of the entries with what they should be.
fn link_windows(
    place: &Place,
    triple: &str,
    objects: &[&str],
    kind: OffloadKind,
    abi: Abi,
    entries: u64,
) {
    let map = if triple.ends_with("msvc") {
        let mut arguments = vec!["/nodefaultlib", "/subsystem:console", "/entry:mainCRTStartup"];
        arguments.extend(["/map:map", "/out:program.exe", "program.obj"]);
        arguments.extend(objects);
        place.run(llvm("lld-link"), &arguments);
        fs::read_to_string(place.path("map")).unwrap()
    } else {
        let machine = if triple.starts_with("x86_64") { "i386pep" } else { "arm64pe" };
        let mut arguments = vec!["-m", machine, "--subsystem", "console"];
        arguments.extend(["-e", "mainCRTStartup", "-o", "program.exe", "program.obj"]);
        arguments.extend(objects);
        place.run(llvm("ld.lld"), &arguments);
        String::new()
    };
    let what = format!("{kind} {abi} {triple} {objects:?} {entries}\n{map}");
    // The descriptor and the loop hold what the map does not say: look at the program itself.
    let program = fs::read(place.path("program.exe")).unwrap();
    let tables = if kind == OffloadKind::OPENMP { Some(descriptor(&program)) } else { None };
    if let Some((count, start, stop)) = tables {
        assert_eq!(count, 1, "{what}");
        assert_eq!(stop - start, entries * 56, "{what}");
    }
}

/// The descriptor in a linked program: how many images, start and end of the entries.
fn descriptor(program: &[u8]) -> (u32, u64, u64) {
    let long = |at: usize| u64::from_le_bytes(program[at..at + 8].try_into().unwrap());
    let base = 0x1_4000_0000..0x1_4100_0000_u64;
    // {1, images, start, stop} with pointers into the program, where start ≤ stop.
    let at = (0..program.len() - 32)
        .step_by(8)
        .find(|at| {
            long(*at) == 1
                && (1..4).all(|field| base.contains(&long(at + 8 * field)))
                && long(at + 16) <= long(at + 24)
        })
        .unwrap();
    (1, long(at + 16), long(at + 24))
}

/// `llvm-readobj` reads the instructions of prologue and epilogue out of the unwinding codes.
#[test]
fn unwinding_codes_of_arm64_windows_match_the_code() {
    let place = Place::new();
    let triple = "aarch64-pc-windows-msvc";
    let wrapper = wrapper(OffloadKind::HIP, Abi::Current, triple, &[FATBIN]);
    place.put("ours.obj", &object(&wrapper, &[FATBIN]));
    let text = place.run(llvm("llvm-readobj"), &["--unwind", "ours.obj"]);
    let functions: Vec<_> = text.split("RuntimeFunction {").skip(1).collect();
    assert_eq!(functions.len(), 3, "{text}");
    let code = place.run(llvm("llvm-objdump"), &["-d", "--no-show-raw-insn", "ours.obj"]);
    let is_code = |line: &&str| line.starts_with(' ') && line.contains('\t');
    let code: Vec<&str> = code.lines().filter(is_code).collect();
    for function in functions {
        let number = |key: &str| {
            let line = function.lines().find(|line| line.trim().starts_with(key)).unwrap();
            line.trim_end().trim_end_matches(')').rsplit([' ', '(']).next().unwrap().to_owned()
        };
        let start = usize::from_str_radix(number("Function: ").trim_start_matches("0x"), 16);
        let start = start.unwrap() / 4;
        let size = number("FunctionLength: ").parse::<usize>().unwrap() / 4;
        let codes = |part: &str| -> Vec<String> {
            let (_, rest) = function.split_once(part).unwrap();
            let lines =
                rest.lines().skip(1).take_while(|line| !line.contains(']') || line.contains(';'));
            lines.map(|line| line.split("; ").nth(1).unwrap().replace("fp", "x29")).collect()
        };
        // Spaces and the names of numbers differ.
        let plain = |line: &str| {
            let text = line.split_once('\t').map_or(line, |(_, text)| text);
            let text = text.split("//").next().unwrap().replace(['\t', ' '], "");
            let number = |hex: &str| i64::from_str_radix(hex, 16).unwrap().to_string();
            match text.split_once("0x") {
                Some((before, after)) => {
                    let end = after.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(after.len());
                    format!("{before}{}{}", number(&after[..end]), &after[end..])
                }
                None => text,
            }
        };
        let is = |code: &str, instruction: &str| {
            let instruction = plain(instruction);
            let code = plain(code).replace("sub sp,", "subsp,");
            match code.as_str() {
                "nop" => instruction == "btic",
                "end" => true,
                _ => instruction == code || instruction.replace("sp,sp", "sp") == code,
            }
        };
        let prologue = codes("Prologue [");
        for (code_text, instruction) in prologue.iter().rev().skip(1).zip(&code[start..]) {
            assert!(is(code_text, instruction), "{code_text}: {instruction}");
        }
        let at = start + number("StartOffset: ").parse::<usize>().unwrap();
        let epilogue = codes("Opcodes [");
        assert_eq!(at + epilogue.len(), start + size, "{function}");
        for (code_text, instruction) in epilogue.iter().zip(&code[at..]) {
            assert!(is(code_text, instruction), "{code_text}: {instruction}");
        }
        assert!(code[start + size - 1].ends_with("ret"), "{function}");
    }
}

const MACH_O: [&str; 2] = ["x86_64-apple-macosx11", "arm64-apple-macosx11"];

#[test]
fn mach_o_objects_register_as_with_clang() {
    let place = Place::new();
    for triple in MACH_O {
        for kind in [OffloadKind::CUDA, OffloadKind::HIP] {
            for abi in [Abi::Current, Abi::Llvm24] {
                let wrapper = wrapper(kind, abi, triple, &[FATBIN]);
                place.put("ours.o", &object(&wrapper, &[FATBIN]));
                place.run(llvm("llvm-readobj"), &["--all", "ours.o"]);
                let code = place.run(llvm("llvm-objdump"), &["-dr", "ours.o"]);
                assert!(code.contains("egister") && !code.contains("<unknown>"), "{code}");
                compare_mach_o(&place, triple, &wrapper);
                let theirs = run_mach_o(&place, triple, kind, "clang.o");
                let ours = run_mach_o(&place, triple, kind, "ours.o");
                assert_eq!(ours, theirs, "{triple} {kind} {abi}");
                assert!(ours.contains("function &pointer &kernel kernel kernel 1 null"), "{ours}");
                assert!(ours.ends_with("main\nunregister &pointer\n"), "{ours}");
                linked_mach_o(&place, triple);
            }
        }
    }
}

/// Clang's object for the module has the same sections with the same bytes and relocations, and the same symbols in the
/// same tables.
fn compare_mach_o(place: &Place, triple: &str, wrapper: &Wrapper<'_>) {
    const FACTS: [&str; 5] = ["Segment", "Size", "Alignment", "Type", "Attributes"];

    let text = wrapper.module().unwrap().ir_to_string(&[FATBIN]).unwrap();
    place.put("clang.ll", text.as_bytes());
    let target = format!("--target={triple}");
    place.run(llvm("clang"), &[&target, "-Wno-override-module", "-c", "clang.ll", "-o", "clang.o"]);
    let ours = sections(place, "ours.o", &FACTS);
    let mut theirs = sections(place, "clang.o", &FACTS);
    // Empty, the same as in the section for compact unwinding, the table of a switch.
    for name in ["__text", "__eh_frame", "__const"] {
        theirs.remove(name);
    }
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{triple}");
    for (name, section) in &ours {
        let expected = &theirs[name];
        match name.as_str() {
            "__StaticInit" => {
                assert_eq!(section.facts["Segment"], expected.facts["Segment"]);
                assert_eq!(calls(section), calls(expected), "{triple}");
            }
            "__compact_unwind" => {
                assert_eq!(section.facts, expected.facts);
                assert_eq!(section.relocations, expected.relocations);
            }
            // The variable in it has no bytes. In clang's object it has one, which would shift the entries after it.
            "offload_entries" => {
                assert_eq!(section.facts["Size"], "0x0");
                assert_eq!(expected.facts["Size"], "0x1");
                assert_eq!(section.facts["Alignment"], expected.facts["Alignment"]);
            }
            _ => assert_eq!(section, expected, "{triple} {name}"),
        }
    }
    let names = |object| {
        let mut symbols = symbols(place, object);
        symbols.retain(|symbol| !symbol.starts_with("ltmp"));
        symbols
    };
    assert_eq!(names("ours.o"), names("clang.o"), "{triple}");
    let header = |object| {
        let text = place.run(llvm("llvm-readobj"), &["--file-headers", object]);
        let of_file =
            |line: &&str| line.contains("Cpu") || line.contains("Flags") || line.contains("MH_");
        text.lines().filter(of_file).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(header("ours.o"), header("clang.o"));
    assert_eq!(system(place, "ours.o"), system(place, "clang.o"), "{triple}");
}

/// Links a program, runs its initializers and its main function, and returns what it says.
fn run_mach_o(place: &Place, triple: &str, kind: OffloadKind, object: &str) -> String {
    let (arch, emulator) = if triple.starts_with("arm64") {
        ("arm64", Some(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]))
    } else {
        ("x86_64", None)
    };
    let (target, runtime) = (format!("--target={triple}"), format!("-DRUNTIME=__{kind}"));
    let number = format!("-DKIND={}", if kind == OffloadKind::HIP { 4 } else { 2 });
    let options = [&target, "-ffreestanding", "-fno-stack-protector", &runtime, &number];
    place.compile(llvm("clang"), "macho.c", "runtime.o", &options);
    // Where nothing has to be moved, addresses are in the file.
    let mut arguments = vec!["-arch", arch, "-platform_version", "macos", "11", "11"];
    arguments.extend(["-e", "_main", "-o", "program", "runtime.o", object]);
    if emulator.is_none() {
        arguments.push("-no_pie");
    }
    place.run(llvm("ld64.lld"), &arguments);
    let symbols = place.run(llvm("llvm-nm"), &["program"]);
    let put = symbols.lines().find(|line| line.ends_with(" _put")).unwrap();
    let (put, _) = put.split_once(' ').unwrap();
    match emulator {
        Some([emulator, option, sysroot]) => {
            place.compile("aarch64-linux-gnu-gcc", "macho_loader.c", "loader.o", &[]);
            place.run("aarch64-linux-gnu-gcc", &["loader.o", "-o", "loader"]);
            place.run(emulator, &[option, sysroot, "loader", "program", put])
        }
        None => {
            place.compile(llvm("clang"), "macho_loader.c", "loader.o", &[]);
            place.run(llvm("clang"), &["loader.o", "-o", "loader"]);
            place.run(place.path("loader"), &["program", put])
        }
    }
}

/// A program for a later system has offsets of initializers, pointers that are moved, and unwinding; with `-dead_strip`, too.
fn linked_mach_o(place: &Place, triple: &str) {
    let arch = triple.split('-').next().unwrap();
    for options in [&[][..], &["-dead_strip"]] {
        let mut arguments = vec!["-arch", arch, "-platform_version", "macos", "14", "14"];
        arguments.extend(["-e", "_main", "-o", "linked", "runtime.o", "ours.o"]);
        arguments.extend(options);
        place.run(llvm("ld64.lld"), &arguments);
        let symbols = place.run(llvm("llvm-nm"), &["linked"]);
        let address = |name: &str| {
            let line = symbols.lines().find(|line| line.ends_with(name)).unwrap();
            u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        let found = sections(place, "linked", &[]);
        let offset = address(".fatbin_reg") - address("__mh_execute_header");
        let offset: String = u32::try_from(offset)
            .unwrap()
            .to_le_bytes()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(found["__init_offsets"].contents, offset);
        let moved = place.run(llvm("llvm-objdump"), &["--macho", "--dyld-info", "linked"]);
        let (at, to) = (address("_.fatbin_wrapper") + 8, address("_.fatbin_image"));
        let line = moved.lines().find(|line| line.contains(&format!("{at:#X}").replace('X', "x")));
        let line = line.unwrap_or_else(|| panic!("{at:x}: {moved}"));
        assert!(line.contains("rebase") && line.ends_with(&format!("0x{to:X}")), "{line}");
        let unwind = place.run(llvm("llvm-objdump"), &["--macho", "--unwind-info", "linked"]);
        let encoding = if arch == "arm64" { "0x04000000" } else { "0x02020000" };
        assert!(unwind.contains(encoding), "{unwind}");
    }
}

/// System and version, machine and its kind.
fn system(place: &Place, object: &str) -> Option<(String, String, String)> {
    let text = place.run(llvm("llvm-objdump"), &["--private-headers", object]);
    let words = |key: &str| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|words| words.first() == Some(&key))
    };
    let machine = words("MH_MAGIC_64").unwrap()[1..4].join(" ");
    if let Some(platform) = words("platform") {
        return Some((platform[1].into(), words("minos").unwrap()[1].into(), machine));
    }
    let command = text.lines().find_map(|line| line.trim().strip_prefix("cmd LC_VERSION_MIN_"))?;
    let name = match command {
        "MACOSX" => "macos",
        "IPHONEOS" => "ios",
        "WATCHOS" => "watchos",
        other => panic!("{other}"),
    };
    // There are no such devices with x86-64.
    let simulator = machine.starts_with("X86_64") && name != "macos";
    let name = if simulator { format!("{name}simulator") } else { name.into() };
    Some((name, words("version").unwrap()[1].into(), machine))
}

/// Systems and their lowest versions are those of clang, for all targets of rustc.
#[test]
fn systems_of_mach_o_are_those_of_clang() {
    let place = Place::new();
    place.put("empty.ll", b"define void @f() {\n ret void\n}\n");
    let golden = include_str!("../../../wrapper-ir/tests/golden/rustc-targets.txt");
    let mut compared = 0;
    for line in golden.lines().filter(|line| line.ends_with("mach-o object")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, llvm_triple] = [words[0], words[1]];
        let triple = if llvm_triple == "-" { name } else { llvm_triple };
        place.put(
            "ours.o",
            &object(&wrapper(OffloadKind::HIP, Abi::Current, name, &[FATBIN]), &[FATBIN]),
        );
        let target = format!("--target={triple}");
        let arguments = [&target, "-Wno-override-module", "-c", "empty.ll", "-o", "empty.o"];
        place.run(llvm("clang"), &arguments);
        let ours = system(&place, "ours.o");
        assert!(ours.is_some(), "{name}");
        // clang 22 states none for tvOS.
        if let Some(expected) = system(&place, "empty.o") {
            assert_eq!(ours, Some(expected), "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 13);
}

/// The linker leaves out what is in the segment `__LLVM`, from clang as from us. `docs/formats/registration.md` says so.
#[test]
fn lld_drops_entries_of_mach_o() {
    let place = Place::new();
    for triple in MACH_O {
        let wrapper = wrapper(OffloadKind::HIP, Abi::Current, triple, &[FATBIN]);
        place.put("ours.o", &object(&wrapper, &[FATBIN]));
        let entries = Entries::new(OffloadKind::HIP, Abi::Current, Target::new(triple).unwrap())
            .entry(OffloadEntry::kernel("kernel", "handle"));
        let layout = entries.module().unwrap().object().unwrap();
        place.put("entries.o", &layout.to_vec(&[]).unwrap());
        assert_eq!(
            sections(&place, "entries.o", &["Size"])["offload_entries"].facts["Size"],
            "0x38"
        );
        let arch = triple.split('-').next().unwrap();
        let mut arguments = vec!["-arch", arch, "-platform_version", "macos", "14", "14", "-dylib"];
        arguments.extend(["-undefined", "dynamic_lookup", "-o", "library", "ours.o", "entries.o"]);
        place.run(llvm("ld64.lld"), &arguments);
        assert_eq!(sections(&place, "library", &["Size"])["offload_entries"].facts["Size"], "0x0");
    }
}
