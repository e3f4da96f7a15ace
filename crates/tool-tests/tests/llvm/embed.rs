//! Packages added to objects that clang 22 compiles now, as LLVM's tools, its linkers and GNU binutils see them.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, and GNU binutils; fails without them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::common::{self, llvm_command as llvm, new_command, printed as run};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/packages.offload")
}

/// Keys of the images in the package; the two for `sm_70` have the same.
const IMAGES: [&str; 4] = [
    "kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx90a",
    "kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx1100",
    "kind=cuda,triple=nvptx64-nvidia-cuda,arch=sm_70",
    "kind=sycl,triple=spirv64-unknown-unknown",
];

const SOURCE: &str = "
int shared = 3;
static int counter;
static const char *const names[] = {\"one\", \"two\"};
int work(int n) { return ++counter + n; }
__attribute__((weak)) const char *name(int n) { return names[n & 1]; }
int more(int n) { return work(n) + shared + *name(n); }
int main(void) { return more(0) == 1; }
";

/// Objects for `target` in a directory of their own: as compiled, with our section, with clang's.
struct Objects {
    place: tempfile::TempDir,
    plain: PathBuf,
    ours: PathBuf,
    clangs: PathBuf,
}

fn compile(target: &str, args: &[&str], source: &str, output: &Path) {
    let file = output.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let target = format!("--target={target}");
    run(llvm("clang").args([&target, "-O1", "-c", "-o"]).arg(output).args(args).arg(&file));
}

fn objects(target: &str, args: &[&str]) -> Objects {
    let place = tempfile::tempdir().unwrap();
    let [plain, ours, clangs] = ["plain.o", "ours.o", "clangs.o"].map(|n| place.path().join(n));
    compile(target, args, SOURCE, &plain);
    let option = format!("-fembed-offload-object={}", package().display());
    compile(target, &[args, &["-Xclang", &option]].concat(), SOURCE, &clangs);
    embed(&plain, &ours);
    Objects { place, plain, ours, clangs }
}

fn embed(from: &Path, to: &Path) {
    let object = std::fs::read(from).unwrap();
    let contents = std::fs::File::open(package()).unwrap();
    let embedding =
        object_edit::NewSections::offloading(&object, contents.metadata().unwrap().len()).unwrap();
    embedding.write_to(std::fs::File::create(to).unwrap(), [contents]).unwrap();
    assert_eq!(std::fs::metadata(to).unwrap().len(), embedding.total_size());
}

/// Returns the number of images that `llvm-objdump --offloading` finds.
fn count_images(file: &Path) -> usize {
    run(llvm("llvm-objdump").arg("--offloading").arg(file)).matches("OFFLOADING IMAGE").count()
}

/// The images that `llvm-offload-binary` takes out of a file, the last of each of [`IMAGES`].
fn extracted(file: &Path) -> Vec<Vec<u8>> {
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("image");
    IMAGES
        .iter()
        .map(|keys| {
            let option = format!("--image=file={},{keys}", image.display());
            run(llvm("llvm-offload-binary").arg(file).arg(option));
            let bytes = std::fs::read(&image).unwrap_or_else(|e| panic!("{keys}: {e}"));
            std::fs::remove_file(&image).unwrap();
            bytes
        })
        .collect()
}

/// Lines of `after` that `before` does not have, in order, and the other way round.
fn differences(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let normal = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let (before, after) = (normal(before), normal(after));
    let without = |a: &[String], b: &[String]| {
        let b: std::collections::HashSet<_> = b.iter().collect();
        a.iter().filter(|line| !b.contains(line)).cloned().collect()
    };
    (without(&before, &after), without(&after, &before))
}

/// The fields of a section in the output of `llvm-readobj --sections`, as it prints them, without place and number.
fn section_fields(file: &Path, name: &str) -> Vec<Vec<String>> {
    let printed = run(llvm("llvm-readobj").arg("--sections").arg(file));
    let own = ["Index:", "Number:", "Name:", "Offset:", "PointerToRawData:"];
    printed
        .split("  Section {")
        .filter(|section| section.contains(&format!("Name: {name} (")))
        .map(|section| {
            let lines = section.lines().map(str::trim);
            let end = |line: &&str| *line != "}";
            let kept = lines.take_while(end);
            kept.filter(|line| !own.iter().any(|o| line.starts_with(o))).map(String::from).collect()
        })
        .collect()
}

#[test]
fn every_kind_of_elf_takes_a_package() {
    for (target, args) in [
        ("x86_64-linux-gnu", &[][..]),
        ("x86_64-linux-gnu", &["-g", "-ffunction-sections", "-fdata-sections"]),
        ("x86_64-linux-gnu", &["-fno-integrated-as"]), // GNU as: names apart from symbol names
        ("x86_64-linux-gnu", &["-Wa,--crel,--allow-experimental-crel"]),
        ("x86_64-linux-gnux32", &[]),
        ("aarch64-linux-gnu", &[]),
        ("aarch64_be-linux-gnu", &["-g"]),
        ("riscv64-linux-gnu", &[]),
        ("i386-linux-gnu", &["-g"]),
        ("powerpc64-linux-gnu", &[]),
        ("powerpc-linux-gnu", &["-ffunction-sections"]),
        ("arm-linux-gnueabi", &[]),
        ("mips64-linux-gnu", &[]),
        ("s390x-linux-gnu", &[]),
    ] {
        let o = objects(target, args);
        assert_eq!(count_images(&o.ours), 5, "{target}");
        assert!(extracted(&o.ours) == extracted(&package()), "{target}");

        let fields = section_fields(&o.ours, ".llvm.offloading");
        assert_eq!(fields.len(), 1, "{target}");
        // GNU as does not know the type and makes it PROGBITS, which LLVM's tools do not look into.
        if !args.contains(&"-fno-integrated-as") {
            assert_eq!(fields, section_fields(&o.clangs, ".llvm.offloading"), "{target}");
        }

        // Headers, symbols, relocations, notes, unwinding tables: only numbers of the section header table and
        // the place of names change, and one section is added.
        let printed = |file: &Path| run(llvm("llvm-readelf").arg("-aW").arg(file));
        let (gone, added) = differences(&printed(&o.plain), &printed(&o.ours));
        let expected = |line: &String| {
            [
                "Start of section headers:",
                "Number of section headers:",
                "There are ",
                ".strtab STRTAB",
                ".shstrtab STRTAB",
                "] .llvm.offloading LLVM_OFFLOADING ",
                "None ", // the list of sections in no segment
            ]
            .iter()
            .any(|known| line.contains(known))
        };
        assert!(gone.iter().chain(&added).all(expected), "{target}: {gone:?} {added:?}");
        assert!(gone.len() >= 3 && added.len() == gone.len() + 1, "{target}: {gone:?} {added:?}");

        // Contents, disassembled and as bytes.
        let dump = |file: &Path| {
            let printed = run(llvm("llvm-objdump").args(["-drs", "--debug-vars"]).arg(file));
            printed.split_once("file format").unwrap().1.to_owned()
        };
        let (before, after) = (dump(&o.plain), dump(&o.ours));
        let (gone, _) = differences(&before, &after);
        // Only the table of names is longer, which shows in its last line.
        assert!(gone.len() <= 1, "{target}: {gone:?}");
    }
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn elf_may_have_more_sections_than_the_header_counts() {
    let place = tempfile::tempdir().unwrap();
    // The null section, .strtab, .text and .symtab come with them; the header counts up to 0xfeff sections.
    for count in [0xfeff_u32 - 5, 0xfeff - 4, 70_000] {
        let mut source = String::new();
        for number in 0..count {
            writeln!(source, ".section .s{number},\"a\",@progbits\n.byte {}", number & 255)
                .unwrap();
        }
        let [assembly, plain, ours] =
            ["many.s", "plain.o", "ours.o"].map(|name| place.path().join(name));
        std::fs::write(&assembly, source).unwrap();
        for target in ["x86_64-linux-gnu", "powerpc-linux-gnu"] {
            let target = format!("--target={target}");
            run(llvm("clang").args([&target, "-c", "-o"]).arg(&plain).arg(&assembly));
            embed(&plain, &ours);
            assert_eq!(count_images(&ours), 5, "{count}");
            assert!(extracted(&ours) == extracted(&package()), "{count}");
            let printed = |file: &Path| run(llvm("llvm-readelf").arg("-SW").arg(file));
            let (gone, added) = differences(&printed(&plain), &printed(&ours));
            assert!(gone.len() <= 3, "{count}: {gone:?}"); // number of headers, null section, names
            assert_eq!(added.len(), gone.len() + 1, "{count}: {added:?}");
            let number = |line: &String| line.contains(&format!("There are {} section", count + 5));
            assert!(added.iter().any(number), "{count}: {added:?}");
        }
    }
}

#[test]
fn every_kind_of_coff_takes_a_package() {
    for (target, args) in [
        ("x86_64-pc-windows-msvc", &[][..]),
        ("x86_64-pc-windows-msvc", &["-g", "-gcodeview", "-ffunction-sections"]),
        ("i686-pc-windows-msvc", &[]),
        ("aarch64-pc-windows-msvc", &[]),
        ("x86_64-w64-windows-gnu", &["-g"]),
    ] {
        let o = objects(target, args);
        compare_coff(&o.plain, &o.ours, target);
        let fields = section_fields(&o.ours, ".llvm.offloading");
        assert_eq!(fields.len(), 1, "{target}");
        assert_eq!(fields, section_fields(&o.clangs, ".llvm.offloading"), "{target}");
    }
}

fn compare_coff(plain: &Path, ours: &Path, what: &str) {
    assert_eq!(count_images(ours), 5, "{what}");
    assert!(extracted(ours) == extracted(&package()), "{what}");
    // All fields but offsets; contents, symbols, relocations, CodeView.
    let printed = |file: &Path| {
        let args = ["--all", "--section-data", "--codeview"];
        let printed = run(llvm("llvm-readobj").args(args).arg(file));
        let own = ["File:", "PointerTo", "SectionCount:", "StringTableSize:"];
        let kept = |line: &&str| !own.iter().any(|o| line.trim_start().starts_with(o));
        printed.lines().filter(kept).map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, after) = (printed(plain), printed(ours));
    // All new bytes are in one place: the new section.
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (left, right) = (&before[same..], &after[same..]);
    let added = right.len() - left.len();
    assert!(right[added..] == *left, "{what}");
    assert!(right[..added].iter().any(|line| line.contains("Name: .llvm.offloading")), "{what}");
    let sections = right[..added].iter().filter(|line| line.contains("Section {")).count();
    assert_eq!(sections, 1, "{what}");
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn coff_may_have_many_sections() {
    let place = tempfile::tempdir().unwrap();
    // .text, .data and .bss come with them.
    for (count, big) in [(65_279 - 4, false), (65_279 - 2, true), (70_000, true)] {
        let mut source = String::new();
        for number in 0..count {
            writeln!(source, ".section .s{number},\"dr\"\n.byte {}", number & 255).unwrap();
        }
        let [assembly, plain, ours] =
            ["many.s", "plain.obj", "ours.obj"].map(|name| place.path().join(name));
        std::fs::write(&assembly, source).unwrap();
        let target = "--target=x86_64-pc-windows-msvc";
        run(llvm("clang").args([target, "-c", "-o"]).arg(&plain).arg(&assembly));
        assert_eq!(std::fs::read(&plain).unwrap().starts_with(b"\0\0\xff\xff"), big);
        embed(&plain, &ours);
        compare_coff(&plain, &ours, &count.to_string());
    }
}

/// A second object to link with the first.
fn other(place: &Path, target: &str) -> PathBuf {
    let [plain, ours] = ["other.o", "other-ours.o"].map(|name| place.join(name));
    compile(target, &[], "int other(void) { return 7; }", &plain);
    embed(&plain, &ours);
    ours
}

#[test]
fn linkers_take_embedded_elf() {
    for target in ["x86_64-linux-gnu", "powerpc64-linux-gnu", "i386-linux-gnu"] {
        let o = objects(target, &[]);
        let other = other(o.place.path(), target);
        let twice = o.place.path().join("twice.o");
        embed(&other, &twice);
        let mut linkers = vec![common::llvm("ld.lld")];
        if target.starts_with("x86_64") {
            linkers.push("ld".into());
        }
        for linker in linkers {
            let joined = o.place.path().join("joined.o");
            run(new_command(&linker).arg("-r").args([&o.ours, &twice]).arg("-o").arg(&joined));
            assert_eq!(section_fields(&joined, ".llvm.offloading").len(), 1, "{target}");
            assert_eq!(count_images(&joined), 15, "{target}");
            assert!(extracted(&joined) == extracted(&package()), "{target}");
        }
    }

    let o = objects("x86_64-linux-gnu", &[]);
    for linker in [common::llvm("ld.lld"), "ld".into()] {
        let linked = |object: &Path| {
            let output = o.place.path().join("linked");
            run(new_command(&linker).args(["-e", "main", "-o"]).arg(&output).arg(object));
            std::fs::read(&output).unwrap()
        };
        // The section is gone, and nothing else is different.
        assert!(linked(&o.ours) == linked(&o.plain), "{}", linker.display());
    }
}

#[test]
fn the_linker_wrapper_finds_the_images() {
    let o = objects("x86_64-linux-gnu", &[]);
    let linker = format!("--linker-path={}", common::llvm("ld.lld").display());
    let planned = |object: &Path| {
        let mut command = llvm("clang-linker-wrapper");
        command.args(["--dry-run", "--host-triple=x86_64-unknown-linux-gnu", &linker, "--"]);
        let output = command.arg(object).args(["-o", "out"]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{printed}");
        // Temporary files have names of their own.
        let words = printed.split_whitespace();
        words.filter(|word| !word.contains("/tmp/")).map(String::from).collect::<Vec<_>>()
    };
    let plan = planned(&o.ours);
    for word in ["-mcpu=gfx90a", "-mcpu=gfx1100", "-march=sm_70", "spirv64-unknown-unknown"] {
        assert!(plan.iter().any(|planned| planned.contains(word)), "{word}: {plan:?}");
    }
    let normal = |plan: Vec<String>| -> Vec<String> {
        plan.into_iter().filter(|word| !word.ends_with(".o") && !word.contains("out")).collect()
    };
    assert_eq!(normal(plan), normal(planned(&o.clangs)));
}

#[test]
fn coff_linkers_drop_the_section() {
    let o = objects("x86_64-pc-windows-msvc", &["-Brepro"]);
    let linked = |object: &Path| {
        let output = o.place.path().join("linked.dll");
        let mut command = llvm("lld-link");
        command.args(["/dll", "/noentry", "/brepro", "/export:more"]).arg(object);
        let mut option = std::ffi::OsString::from("/out:");
        option.push(&output);
        run(command.arg(option));
        std::fs::read(&output).unwrap()
    };
    assert!(linked(&o.ours) == linked(&o.plain));
}

#[test]
fn binutils_and_objcopy_take_embedded_objects() {
    let o = objects("x86_64-linux-gnu", &["-g"]);
    let contents = std::fs::read(package()).unwrap();
    let llvm_objcopy = common::llvm("llvm-objcopy");
    let llvm_strip = common::llvm("llvm-strip");
    for (tool, args, stays) in [
        (Path::new("objcopy"), &[][..], true),
        (Path::new("objcopy"), &["--strip-debug"], true),
        (Path::new("strip"), &["-g"], true),
        (&llvm_objcopy, &[], true),
        (&llvm_strip, &["-g"], true),
        (Path::new("objcopy"), &["--remove-section=.llvm.offloading"], false),
        (&llvm_objcopy, &["--remove-section=.llvm.offloading"], false),
    ] {
        let changed = o.place.path().join("changed.o");
        let mut command = new_command(tool);
        command.args(args).arg(&o.ours);
        if tool.ends_with("strip") || tool.ends_with("llvm-strip") {
            command.arg("-o");
        }
        run(command.arg(&changed));
        assert_eq!(count_images(&changed), if stays { 5 } else { 0 }, "{command:?}");
    }
    let dumped = o.place.path().join("dumped");
    let mut option = std::ffi::OsString::from("--dump-section=.llvm.offloading=");
    option.push(&dumped);
    run(new_command("objcopy").arg(option).arg(&o.ours).arg(o.place.path().join("copy.o")));
    assert!(std::fs::read(&dumped).unwrap() == contents);
    run(new_command("readelf").arg("-aW").arg(&o.ours));

    // COFF, of both headers.
    let o = objects("x86_64-pc-windows-msvc", &[]);
    let [big, ours, copy] = ["big.obj", "ours.obj", "copy.obj"].map(|n| o.place.path().join(n));
    run(new_command("objcopy").args(["-O", "pe-bigobj-x86-64"]).arg(&o.plain).arg(&big));
    assert!(std::fs::read(&big).unwrap().starts_with(b"\0\0\xff\xff"));
    embed(&big, &ours);
    compare_coff(&big, &ours, "bigobj by GNU objcopy");
    run(new_command("objcopy").arg(&ours).arg(&copy));
    assert_eq!(count_images(&copy), 5);
    for target in ["x86_64-pc-windows-msvc", "i686-pc-windows-msvc"] {
        let o = objects(target, &[]);
        let changed = o.place.path().join("changed.obj");
        for tool in [Path::new("objcopy"), &llvm_objcopy] {
            run(new_command(tool).arg(&o.ours).arg(&changed));
            assert_eq!(count_images(&changed), 5, "{target}");
        }
        let dump = |file: &Path| run(new_command("objdump").args(["-dr", "-t"]).arg(file));
        let (gone, _) = differences(&dump(&o.plain), &dump(&o.ours));
        assert!(gone.iter().all(|line| line.contains("file format")), "{gone:?}");
    }
}
