//! Registration code as objects in COFF, compared with what clang 22 makes of the same module, and linked.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::common::llvm;
use crate::common::place::Place;
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

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
    Wrapper::new(kind, abi, target).with_images(images.iter().map(|image| Image::from_bytes(image)))
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
            name = next.trim_end_matches(':').to_owned();
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
            place.put("ours.obj", object(&wrapper(kind, abi, triple, &images), &images));
            place.put("again.obj", object(&wrapper(kind, abi, triple, &images), &images));
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
    place.put("ours.obj", object(&wrapper, &[FATBIN]));
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
