//! An unmodified clang 22 that finds our `clang-offload-bundler` before its own compiles and links the same files.
//!
//! clang looks for the bundler in the directories of `-B`, then beside itself, then in `PATH`; here it is a link in a
//! directory of `-B`, which leads to LLVM's tool in one run and to ours in the next. All else is equal, paths too,
//! because clang hashes command lines and paths into symbols.
//!
//! clang 22 calls the bundler for HIP with `--no-offload-new-driver` only. OpenMP and CUDA do without.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use crate::common::{data, extract, llvm, ls, new_command, object_facts, tool};

fn theirs() -> PathBuf {
    llvm("clang-offload-bundler")
}

fn ours() -> PathBuf {
    PathBuf::from(tool("clang-offload-bundler"))
}

/// Two units: a kernel that calls a function of the other.
const SOURCES: [(&str, &str); 5] = [
    ("lone.hip", "#include \"hip-minimal.h\"\n__device__ int lone(int x) { return x; }\n"),
    ("host.c", "int host(void) { return 3; }\n"),
    (
        "a.hip",
        "#include \"hip-minimal.h\"\n\
         __device__ int other(int x);\n\
         __global__ void kernel(int *p) { *p = other(1); }\n\
         void *address() { return (void *)kernel; }\n",
    ),
    ("b.hip", "#include \"hip-minimal.h\"\n__device__ int other(int x) { return x + 2; }\n"),
    (
        "one.hip",
        "#include \"hip-minimal.h\"\n\
         __global__ void kernel(int *p) { *p = 1; }\n\
         void *address() { return (void *)kernel; }\n\
         int main() { return 0; }\n",
    ),
];

/// Steps in one directory.
struct Scenario {
    /// Commands: `HIP` is clang with the options that all compilations share, `LINK` for linking device code as well;
    /// `ar` and `clang` are tools of LLVM.
    steps: &'static [&'static str],
    /// Number of times that clang calls the bundler, in all steps together.
    runs: usize,
    /// True if there is compressed data in the results, which is compared decompressed.
    compressed: bool,
}

const fn plain(runs: usize, steps: &'static [&'static str]) -> Scenario {
    Scenario { steps, runs, compressed: false }
}

const fn compressed(runs: usize, steps: &'static [&'static str]) -> Scenario {
    Scenario { steps, runs, compressed: true }
}

const HIP: &str = "clang -nogpuinc -nogpulib --no-offload-new-driver";
const TWO: &str = "--offload-arch=gfx906 --offload-arch=gfx90a";
const LINK: &str = "clang -nogpulib --no-offload-new-driver -fgpu-rdc --hip-link -no-hip-rt -shared -nostdlib -fuse-ld=lld";

const SCENARIOS: &[Scenario] = &[
    // Without -fgpu-rdc: a fat binary in the object.
    plain(1, &["HIP TWO -c one.hip"]),
    plain(1, &["HIP --offload-arch=gfx1100 -c one.hip"]),
    plain(
        1,
        &[
            "HIP --offload-arch=gfx90a:xnack- --offload-arch=gfx90a:xnack+ --offload-arch=gfx906:sramecc+:xnack- -c one.hip",
        ],
    ),
    plain(
        1,
        &[
            "HIP --offload-arch=gfx9-generic --offload-arch=gfx11-generic -mcode-object-version=6 -c one.hip",
        ],
    ),
    plain(1, &["HIP TWO -O2 -g -c one.hip -MMD"]),
    plain(
        1,
        &["HIP TWO --target=x86_64-pc-windows-msvc -mno-incremental-linker-compatible -c one.hip"],
    ),
    plain(
        2,
        &[
            "HIP TWO -fPIC -c one.hip",
            "HIP TWO -no-hip-rt -fPIC -shared -nostdlib -fuse-ld=lld one.hip -o one.so",
        ],
    ),
    compressed(1, &["HIP TWO --offload-compress -c one.hip"]),
    compressed(1, &["HIP TWO --offload-compress --offload-compression-level=9 -c one.hip"]),
    compressed(1, &["HIP TWO --offload-compress -c one.hip --cuda-device-only"]),
    plain(1, &["HIP TWO -save-temps -c one.hip"]),
    compressed(1, &["HIP TWO -save-temps --offload-compress -c one.hip"]),
    // Other outputs, bundled as text and as bitcode.
    plain(1, &["HIP TWO -S one.hip"]),
    plain(1, &["HIP TWO -E one.hip -o one.hipi"]),
    plain(1, &["HIP TWO -E one.hip"]),
    plain(1, &["HIP TWO -M one.hip"]),
    plain(1, &["HIP TWO -M one.hip -MF one.d"]),
    plain(1, &["HIP TWO -c -emit-llvm one.hip"]),
    plain(1, &["HIP TWO -S -emit-llvm one.hip"]),
    plain(1, &["HIP TWO -emit-ast one.hip"]),
    // The device's side alone.
    plain(1, &["HIP TWO -c --cuda-device-only one.hip"]),
    plain(1, &["HIP TWO -c --cuda-device-only --gpu-bundle-output one.hip"]),
    plain(0, &["HIP TWO -c --cuda-device-only --no-gpu-bundle-output one.hip"]),
    plain(1, &["HIP TWO -S --cuda-device-only --gpu-bundle-output one.hip"]),
    plain(1, &["HIP TWO -E --cuda-device-only --gpu-bundle-output one.hip -o one.hipi"]),
    plain(1, &["HIP TWO -c -emit-llvm --cuda-device-only --gpu-bundle-output one.hip"]),
    plain(1, &["HIP TWO -S -emit-llvm --cuda-device-only --gpu-bundle-output one.hip"]),
    plain(1, &["HIP TWO -fgpu-rdc -c --cuda-device-only --gpu-bundle-output a.hip"]),
    // The bundle is taken apart again.
    plain(3, &["HIP TWO -E one.hip -o one.hipi", "HIP TWO -c one.hipi"]),
    plain(
        5,
        &[
            "HIP TWO -fPIC -fgpu-rdc -E a.hip -o a.hipi",
            "HIP TWO -fPIC -fgpu-rdc -c a.hipi",
            "HIP TWO -fPIC -fgpu-rdc -S a.hipi",
        ],
    ),
    plain(3, &["HIP TWO -fgpu-rdc -S a.hip", "HIP TWO -fgpu-rdc --hip-link -c a.s"]),
    plain(3, &["HIP TWO -fgpu-rdc -c -emit-llvm a.hip", "HIP TWO -fgpu-rdc --hip-link -c a.bc"]),
    plain(3, &["HIP TWO -fgpu-rdc -S -emit-llvm a.hip", "HIP TWO -fgpu-rdc --hip-link -c a.ll"]),
    // With -fgpu-rdc: bitcode of the device in sections of the object, linked later.
    plain(1, &["HIP TWO -fgpu-rdc -save-temps -c a.hip"]),
    plain(
        1,
        &[
            "HIP TWO --target=x86_64-pc-windows-msvc -mno-incremental-linker-compatible -fgpu-rdc -c a.hip",
        ],
    ),
    plain(
        7,
        &[
            "HIP TWO -fPIC -fgpu-rdc -c a.hip",
            "HIP TWO -fPIC -fgpu-rdc -c b.hip",
            "LINK TWO a.o b.o -o lib.so",
        ],
    ),
    plain(
        7,
        &[
            "HIP --offload-arch=gfx90a:xnack+ -fPIC -O2 -g -fgpu-rdc -c a.hip b.hip",
            "LINK --offload-arch=gfx90a:xnack+ a.o b.o -o lib.so",
        ],
    ),
    plain(7, &["HIP TWO -fPIC -fgpu-rdc -c a.hip b.hip", "LINK TWO -save-temps a.o b.o -o lib.so"]),
    compressed(
        7,
        &[
            "HIP TWO -fPIC -fgpu-rdc --offload-compress -c a.hip b.hip",
            "LINK TWO --offload-compress a.o b.o -o lib.so",
        ],
    ),
    // The linker has the undefined symbol of the other unit to complain about, or no code for the device at all.
    plain(4, &["HIP TWO -fPIC -fgpu-rdc -c a.hip", "LINK TWO a.o -o lib.so"]),
    plain(4, &["HIP TWO -fPIC -fgpu-rdc -c b.hip", "LINK --offload-arch=gfx1100 b.o -o lib.so"]),
    plain(
        6,
        &[
            "clang -fPIC -c host.c",
            "HIP TWO -fPIC -fgpu-rdc -c b.hip",
            "LINK TWO b.o host.o -o lib.so",
        ],
    ),
    // Libraries of such objects.
    plain(
        7,
        &[
            "HIP TWO -fPIC -fgpu-rdc -c a.hip b.hip",
            "ar rcs libb.a b.o",
            "LINK TWO a.o -L. -lb -o lib.so",
        ],
    ),
    plain(
        8,
        &[
            "HIP TWO -fPIC -fgpu-rdc -c a.hip b.hip",
            "ar rcs libb.a a.o b.o",
            "HIP TWO -fPIC -fgpu-rdc -c lone.hip",
            "LINK TWO lone.o libb.a -o lib.so",
        ],
    ),
];

fn expand(step: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in step.split(' ') {
        let long = match word {
            "HIP" => HIP,
            "LINK" => LINK,
            "TWO" => TWO,
            word => word,
        };
        words.extend(long.split(' ').map(str::to_owned));
    }
    words
}

/// Runs a step with the bundler that `tools` has.
fn step(step: &str, tools: &Path, at: &Path, dry: bool) -> Output {
    let words = expand(step);
    let is_clang = words[0] == "clang";
    let mut command = new_command(llvm(if is_clang { "clang" } else { "llvm-ar" }));
    if is_clang {
        command.arg("-B").arg(tools);
        if dry {
            command.arg("-###");
        }
    }
    command.args(&words[1..]).current_dir(at).stdin(Stdio::null());
    command.output().unwrap()
}

type Files = BTreeMap<String, (u32, Vec<u8>)>;

fn files(at: &Path) -> Files {
    fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, (mode, fs::read(&path).unwrap()))
        })
        .collect()
}

/// Temporary names that clang invents: `/tmp/a-gfx906-0b642c.out`.
fn without_temporary_names(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let directory = std::env::temp_dir();
    let start = directory.join("a").to_string_lossy().trim_end_matches('a').to_owned();
    let mut rest = &*text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once(&start) {
        let end = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.:+".contains(c)))
            .unwrap_or(after.len());
        let name: Vec<_> = after[..end]
            .split('-')
            .map(|part| match part.split_once('.') {
                Some((_, extension)) => format!("*.{extension}"),
                None => part.to_owned(),
            })
            .collect();
        plain.push_str(before);
        plain.push_str("TMP/");
        plain.push_str(&name.join("-"));
        rest = &after[end..];
    }
    plain + rest
}

/// Results of all steps: the exit status and the output of each, and the files at the end.
#[derive(PartialEq)]
struct Outcome {
    said: Vec<(Option<i32>, String, String)>,
    files: Files,
}

fn perform(scenario: &Scenario, bundler: &Path, place: &Path) -> Outcome {
    let (tools, at) = (place.join("tools"), place.join("work"));
    for directory in [&tools, &at] {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir(directory).unwrap();
    }
    symlink(bundler, tools.join("clang-offload-bundler")).unwrap();
    for (name, text) in SOURCES {
        fs::write(at.join(name), text).unwrap();
    }
    fs::copy(data("src/hip-minimal.h"), at.join("hip-minimal.h")).unwrap();
    // `-emit-ast` writes down when its sources were changed.
    for entry in fs::read_dir(&at).unwrap() {
        let file = fs::File::options().append(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    }
    let said = scenario
        .steps
        .iter()
        .map(|text| {
            let output = step(text, &tools, &at, false);
            let (stdout, stderr) = (&output.stdout, &output.stderr);
            (output.status.code(), without_temporary_names(stdout), without_temporary_names(stderr))
        })
        .collect();
    Outcome { said, files: files(&at) }
}

/// Returns how often clang would run our bundler: as `-###` prints, after the steps were done and all files are there.
fn runs(scenario: &Scenario, place: &Path) -> usize {
    let (tools, at) = (place.join("tools"), place.join("work"));
    let start = format!(" \"{}\" ", tools.join("clang-offload-bundler").display());
    scenario
        .steps
        .iter()
        .filter(|text| !text.starts_with("ar"))
        .map(|text| step(text, &tools, &at, true))
        .map(|output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().filter(|line| line.starts_with(&start)).count()
        })
        .sum()
}

/// The images in a file, decompressed, with the IDs; nothing where there is none.
fn images(file: &Path) -> Vec<(Vec<String>, Option<String>, Vec<u8>)> {
    let rows = ls(file);
    rows.into_iter().map(|row| (row.path, row.id, extract(file, row.index))).collect()
}

/// The files of two runs are the same: compressed ones in their contents, objects except the places of their sections.
fn compare_files(scenario: &Scenario, theirs: &Files, ours: &Files) -> Result<(), String> {
    let names =
        |files: &Files| files.iter().map(|(name, file)| (name.clone(), file.0)).collect::<Vec<_>>();
    if names(theirs) != names(ours) {
        return Err(format!("files: {:?}, theirs {:?}", names(ours), names(theirs)));
    }
    for (name, (_, their)) in theirs {
        let our = &ours[name].1;
        if their == our {
            continue;
        }
        let is_object =
            |bytes: &[u8]| bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"\x64\x86");
        if name.ends_with(".o") && is_object(their) && is_object(our) {
            let readobj = llvm("llvm-readobj");
            if object_facts(&readobj, their) == object_facts(&readobj, our) {
                continue;
            }
        }
        // Made by `llvm-ar` of the objects that are compared above.
        if name == "libb.a" {
            continue;
        }
        // With the fat binary as a string in it.
        let is_intermediate = name.ends_with(".bc") || name.ends_with(".s");
        if scenario.compressed && is_intermediate {
            continue;
        }
        if !scenario.compressed {
            return Err(format!("{name} differs: {} bytes, theirs {}", our.len(), their.len()));
        }
        let place = tempfile::tempdir().unwrap();
        let [a, b] = [("theirs", their), ("ours", our)].map(|(who, bytes)| {
            let path = place.path().join(who);
            fs::write(&path, bytes).unwrap();
            images(&path)
        });
        if a != b || a.is_empty() {
            return Err(format!("{name}: other images inside"));
        }
    }
    Ok(())
}

fn compare(scenario: &Scenario) -> Result<(), String> {
    let place = tempfile::tempdir().unwrap();
    let their = perform(scenario, &theirs(), place.path());
    let our = perform(scenario, &ours(), place.path());
    for (nth, (a, b)) in their.said.iter().zip(&our.said).enumerate() {
        if a != b {
            return Err(format!("{}\nours {b:?}\ntheirs {a:?}", scenario.steps[nth]));
        }
    }
    compare_files(scenario, &their.files, &our.files)?;
    match runs(scenario, place.path()) {
        runs if runs == scenario.runs => Ok(()),
        runs => Err(format!("clang runs the bundler {runs} times, not {}", scenario.runs)),
    }
}

#[test]
fn clang_makes_the_same_with_our_bundler() {
    let next = AtomicUsize::new(0);
    let problems = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(scenario) = SCENARIOS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = compare(scenario) {
                        problems.lock().unwrap().push(format!("{:?}: {problem}", scenario.steps));
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
