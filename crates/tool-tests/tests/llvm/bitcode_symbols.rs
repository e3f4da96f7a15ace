//! The symbols of bitcode that clang 22 compiles now, as `llvm-ar` enters them into an archive's index.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::path::{Path, PathBuf};

use crate::common::{llvm_command as llvm, printed as run};

/// A directory whose files are bitcode to compare.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    fn compile(&self, name: &str, source: &Path, args: &[&str]) -> PathBuf {
        let output = self.path(name);
        run(llvm("clang")
            .args(["-w", "-c", "-emit-llvm", "-o"])
            .arg(&output)
            .args(args)
            .arg(source));
        output
    }

    /// The names in the index of an archive of this one file.
    fn index(&self, file: &Path) -> Vec<String> {
        let archive = self.path("index.a");
        let _ = std::fs::remove_file(&archive);
        run(llvm("llvm-ar").args(["--format=gnu", "rcs"]).arg(&archive).arg(file));
        let bytes = std::fs::read(&archive).unwrap();
        assert!(bytes.starts_with(b"!<arch>\n/ "), "{} is in no index", file.display());
        let count = u32::from_be_bytes(bytes[68..72].try_into().unwrap());
        let names = &bytes[72 + 4 * usize::try_from(count).unwrap()..];
        let names = names.split(|&byte| byte == 0).take(usize::try_from(count).unwrap());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Compares, and returns the names; there must be at least `at_least`.
    fn check(&self, file: &Path, at_least: usize) -> Vec<String> {
        let bytes = std::fs::read(file).unwrap();
        let ours = names(&bytes);
        assert_eq!(ours, self.index(file), "{}", file.display());
        assert!(ours.len() >= at_least, "{}: {ours:?}", file.display());
        if let Some(table) = llvm_bitcode::symbol_table(&bytes).unwrap() {
            assert_eq!(linker_symbols(&table), self.listed(file), "{}", file.display());
        }
        ours
    }

    /// The symbols that `llvm-nm` lists: symbols that other objects see, with `U`, `w`, `C`, `W` or `D` for the rest.
    fn listed(&self, file: &Path) -> Vec<String> {
        let output = llvm("llvm-nm").args(["-P", "--quiet"]).arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter_map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            // The name may have spaces; an address and a size may follow the letter.
            let at = words
                .iter()
                .rposition(|word| word.len() == 1 && word.as_bytes()[0].is_ascii_alphabetic())?;
            let letter = match words[at] {
                "U" | "C" => words[at],
                "w" | "v" => "w",
                "W" | "V" => "W",
                letter if letter.as_bytes()[0].is_ascii_uppercase() => "D",
                _ => return None,
            };
            Some(format!("{letter} {}", words[..at].join(" ")))
        });
        let mut lines: Vec<_> = lines.collect();
        lines.sort();
        lines
    }

    /// Compares with and without the symbol table that LLVM writes for linkers.
    fn check_both(&self, file: &Path, at_least: usize) -> Vec<String> {
        let names = self.check(file, at_least);
        assert_eq!(self::names(&without_symtab(file)), names, "{} without", file.display());
        names
    }
}

/// The same of the table that linkers read.
fn linker_symbols(table: &llvm_bitcode::SymbolTable<'_>) -> Vec<String> {
    let seen = table.iter().filter(|symbol| symbol.is_global() && !symbol.is_format_specific());
    let line = |symbol: llvm_bitcode::LinkerSymbol<'_>| {
        let letter = match (symbol.is_undefined(), symbol.is_weak()) {
            (true, true) => "w",
            (true, false) => "U",
            (false, _) if symbol.is_common() => "C",
            (false, true) => "W",
            (false, false) => "D",
        };
        format!("{letter} {}", String::from_utf8_lossy(symbol.name()))
    };
    let mut lines: Vec<_> = seen.map(line).collect();
    lines.sort();
    lines
}

fn names(bytes: &[u8]) -> Vec<String> {
    let names = llvm_bitcode::symbols(bytes).unwrap().unwrap();
    names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// The file with a symbol table of a version that nobody has written yet.
fn without_symtab(file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(file).unwrap();
    // The block's header: ID 25, abbreviation IDs of three bits. Then the blob, whose first word is the version.
    let block = bytes.windows(4).rposition(|word| word == [0x65, 0x0c, 0, 0]).unwrap();
    assert_eq!(bytes[block + 16..block + 20], [3, 0, 0, 0], "{}", file.display());
    bytes[block + 16] = 0xfe;
    bytes
}

const C: &str = "
int variable = 1, common;
#if __has_feature(tls)
__thread int of_thread = 2;
#endif
static int local; const char constant[] = \"text\";
extern int elsewhere, maybe __attribute__((weak));
__attribute__((weak)) int weak_variable = 3;
__attribute__((visibility(\"hidden\"))) int hidden = 4;
__attribute__((visibility(\"protected\"))) int kept = 4;
__attribute__((used)) static int used_local = 5;
int function(void) { return local++ + elsewhere + !&maybe; }
static int local_function(void) { return used_local; }
__attribute__((weak)) int weak_function(void) { return local_function(); }
inline int available(void) { return 6; }
__attribute__((visibility(\"hidden\"))) void hidden_function(void) { available(); }
int renamed(void) __asm__(\"another name\"); int renamed(void) { return 7; }
";

const CXX: &str = "
template <class T> struct Box { T value; virtual ~Box() {} T get() { return value; } static int count; };
template <class T> int Box<T>::count;
struct Base { virtual int work(); };
int Base::work() { return Box<int>().get() + Box<int>::count; }
template struct Box<long>;
namespace { struct Hidden : Base { int work() { return 1; } }; int secret; }
Base *make() { static Base base; secret++; return &base; }
inline int inlined() { static int calls; return calls++; }
#if __has_feature(tls)
thread_local
#endif
Box<int> per_thread;
int both() { return inlined() + per_thread.get(); }
";

#[test]
fn symbols_of_c_are_those_of_llvm_for_many_targets() {
    let place = Place::new();
    let source = place.write("c.c", C);
    for target in [
        "x86_64-unknown-linux-gnu",
        "i686-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "riscv64-unknown-linux-gnu",
        "amdgcn-amd-amdhsa",
        "nvptx64-nvidia-cuda",
        "spirv64-unknown-unknown",
        "x86_64-pc-windows-msvc",
        "i686-pc-windows-msvc",
        "x86_64-w64-windows-gnu",
        "x86_64-apple-macosx",
        "arm64-apple-ios",
        "wasm32-unknown-unknown",
        "powerpc64-ibm-aix",
        "bpfel",
    ] {
        for (level, common) in [("-O0", "-fcommon"), ("-O2", "-fno-common")] {
            let target = format!("--target={target}");
            let file = place.compile("c.bc", &source, &[&target, level, common, "-nogpulib"]);
            place.check_both(&file, 10);
        }
    }
}

#[test]
fn symbols_of_cxx_are_those_of_llvm_at_every_optimisation() {
    let place = Place::new();
    let source = place.write("cxx.cpp", CXX);
    for args in [
        &["-O0"][..],
        &["-O2"],
        &["-flto"],
        &["-flto=thin", "-O2"],
        &["-flto=thin", "-fsplit-lto-unit", "-fvisibility=hidden", "-fwhole-program-vtables"],
        &["-g", "-O1"],
        &["-femulated-tls"],
        &["--target=x86_64-apple-macosx"],
        &["--target=x86_64-pc-windows-msvc"],
    ] {
        let file = place.compile("cxx.bc", &source, args);
        place.check_both(&file, 12);
    }
}

#[test]
fn symbols_of_device_code_are_those_of_llvm() {
    let place = Place::new();
    let hip = place.write(
        "kernel.hip",
        "#define D __attribute__((device))
         D int counter; __attribute__((constant)) int table[4];
         D static int hidden; D int help(int *p) { return *p + hidden; }
         template <class T> __attribute__((global)) void kernel(T *p) { *p += help((int *)p) + table[1]; }
         template __attribute__((global)) void kernel<int>(int *);
         D void (*pointer)(int *) = nullptr;",
    );
    let gpu = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib"];
    for more in [&["-fgpu-rdc"][..], &["-O3"]] {
        let args = [&gpu, &["--offload-arch=gfx90a"][..], more].concat();
        place.check_both(&place.compile("hip.bc", &hip, &args), 3);
    }
    let openmp = place.write(
        "target.c",
        "#pragma omp declare target
         int shared; int help(int n) { return n + shared; }
         #pragma omp end declare target
         int main(void) { int n = 0;
         #pragma omp target teams distribute parallel for map(tofrom: n)
         for (int i = 0; i < 9; i++) n += help(i);
         return n; }",
    );
    let host = place.path("host.bc");
    let fopenmp = ["-fopenmp", "-Xclang", "-disable-O0-optnone"];
    for target in ["amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda"] {
        let targets = format!("-fopenmp-targets={target}");
        run(llvm("clang")
            .args(["-w", "-c", "-emit-llvm", "-nogpuinc", "-nogpulib", "--offload-host-only", "-o"])
            .arg(&host)
            .args(fopenmp)
            .arg(&targets)
            .arg(&openmp));
        place.check_both(&host, 1);
        let device = place.path("device.bc");
        run(llvm("clang")
            .args([
                "-cc1",
                "-triple",
                target,
                "-aux-triple",
                "x86_64-unknown-linux-gnu",
                "-fopenmp",
            ])
            .args(["-fopenmp-is-target-device", "-fopenmp-host-ir-file-path"])
            .arg(&host)
            .args(["-emit-llvm-bc", "-o"])
            .arg(&device)
            .arg(&openmp));
        place.check_both(&device, 3);
    }
}

/// A fixture of `fat-object`'s tests.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../llvm-bitcode/tests/data").join(name)
}

#[test]
fn fixtures_are_current() {
    let place = Place::new();
    place.check(&fixture("symbols.bc"), 11);
    place.check(&fixture("assembly.bc"), 3);
    place.check(&fixture("version-1.bc"), 4);
    // They are what LLVM makes of their sources.
    let (again, source) = (place.path("again.bc"), fixture("symbols.ll"));
    run(llvm("llvm-as").arg("-o").arg(&again).arg(&source));
    place.check(&again, 11);
}

#[test]
fn outputs_of_other_tools_have_the_same_symbols() {
    let place = Place::new();
    let source = place.write("cxx.cpp", CXX);
    let file = place.compile("plain.bc", &source, &["-O1"]);
    let text = place.path("plain.ll");
    run(llvm("llvm-dis").arg("-o").arg(&text).arg(&file));
    let output = place.path("output.bc");
    run(llvm("llvm-as").arg("-o").arg(&output).arg(&text));
    place.check_both(&output, 12);
    run(llvm("opt")
        .args(["-passes=internalize", "-internalize-public-api-list=_Z4makev"])
        .args(["-o"])
        .arg(&output)
        .arg(&file));
    assert_eq!(place.check_both(&output, 1), ["_Z4makev"]);
    let mut link = llvm("llvm-link");
    run(link.arg("-o").arg(&output).arg(&file).arg(fixture("assembly.bc")));
    // llvm-link and llvm-as know no assembly: with some, they write no symbol table.
    let names = names(&std::fs::read(&output).unwrap());
    let mut index = place.index(&output);
    assert_eq!(index.split_off(index.len() - 2), ["weak_in_assembly", "in_assembly"]);
    assert_eq!(names, index);
    run(llvm("opt").args(["-module-summary", "-o"]).arg(&output).arg(&file));
    place.check_both(&output, 12);
    run(llvm("opt")
        .args(["-passes=thinlto-pre-link<O2>", "-thinlto-bc", "-o"])
        .arg(&output)
        .arg(&file));
    place.check_both(&output, 12);
}

#[test]
fn symbols_of_several_modules_are_those_of_llvm() {
    let place = Place::new();
    let source = place.write("cxx.cpp", CXX);
    let split =
        ["-flto=thin", "-fsplit-lto-unit", "-fvisibility=hidden", "-fwhole-program-vtables"];
    let split = place.compile("split.bc", &source, &split);
    assert_eq!(count_modules(&split), 2);
    place.check_both(&split, 12);
    // Neither way writes a symbol table, and the second has one string table for all.
    let plain = place.compile("plain.bc", &source, &["-O2"]);
    let output = place.path("cat.bc");
    for binary in [true, false] {
        let mut cat = llvm("llvm-cat");
        if binary {
            cat.arg("-b");
        }
        run(cat.arg("-o").arg(&output).args([&plain, &plain, &plain]));
        assert_eq!(count_modules(&output), 3);
        place.check(&output, 36);
    }
    // A file after a file, each with a symbol table of its own.
    let mut bytes = std::fs::read(&split).unwrap();
    bytes.extend(&std::fs::read(&plain).unwrap()[4..]);
    std::fs::write(&output, bytes).unwrap();
    assert_eq!(count_modules(&output), 3);
    place.check(&output, 24);
}

fn count_modules(file: &Path) -> usize {
    let dump = llvm("llvm-bcanalyzer").arg("-dump").arg(file).output().unwrap();
    String::from_utf8_lossy(&dump.stdout).matches("\n<MODULE_BLOCK").count()
}

#[test]
fn symbols_of_inline_assembly_are_those_of_llvm() {
    let place = Place::new();
    let source = place.write(
        "assembly.c",
        "__asm__(\".globl one\\none: .long 1\\nlocal: .long 2\\n.globl two\\ntwo: .long 3\\n.set alias, one\\n.globl alias\");
         extern int one; int *address(void) { return &one; }",
    );
    for target in ["x86_64-unknown-linux-gnu", "amdgcn-amd-amdhsa", "arm64-apple-ios", "avr"] {
        let target = format!("--target={target}");
        let file = place.compile("assembly.bc", &source, &[&target, "-nogpulib"]);
        let names = place.check(&file, 4);
        // This is what the symbol table alone tells.
        assert_eq!(self::names(&without_symtab(&file)), names[..1]);
    }
    // Without an assembly parser there is no symbol table. llvm-ar crashes here.
    let file = place.compile("assembly.bc", &source, &["--target=spirv64-unknown-unknown"]);
    assert_eq!(names(&std::fs::read(file).unwrap()), ["address"]);
}
