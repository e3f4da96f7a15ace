//! `clang-offload-bundler` of LLVM 22 and ours, with the same arguments in the same places: the same words, files,
//! bytes and exit status. What is different on purpose stands in [`DIFFERENCES`] and [`ODDITIES`], with the reason.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test says no"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use common::{Random, is_object_form, object_facts};

fn llvm(tool: &str) -> PathBuf {
    let prefix = std::env::var_os("LLVM").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join("bin").join(tool);
    assert!(path.exists(), "{} is missing: install clang-22 and llvm-22", path.display());
    path
}

fn theirs() -> PathBuf {
    llvm("clang-offload-bundler")
}

fn ours() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_clang-offload-bundler"))
}

/// The variables that the tool reads.
const VARIABLES: [&str; 5] = [
    "OFFLOAD_BUNDLER_IGNORE_ENV_VAR",
    "OFFLOAD_BUNDLER_VERBOSE",
    "OFFLOAD_BUNDLER_COMPRESS",
    "OFFLOAD_BUNDLER_COMPRESSION_LEVEL",
    "COMPRESSED_BUNDLE_FORMAT_VERSION",
];

/// One run: what it is given, in a directory of its own, where `in` is the directory of [`inputs`].
#[derive(Clone, Debug, Default)]
struct Case {
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

/// What came of it.
#[derive(Clone, PartialEq)]
struct Outcome {
    /// `None` where a signal ended it.
    status: Option<i32>,
    stdout: Vec<u8>,
    /// The tool's path replaced by `TOOL`, and what depends on speed and compressor by `*`.
    stderr: String,
    /// Permissions and contents by name.
    files: BTreeMap<String, (u32, Vec<u8>)>,
}

impl Case {
    /// Whether an option is given, in either spelling.
    fn has(&self, option: &str) -> bool {
        self.words().iter().any(|word| {
            word.strip_prefix('-')
                .map(|word| word.strip_prefix('-').unwrap_or(word))
                .and_then(|word| word.strip_prefix(option))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    }

    /// How many inputs have this name.
    fn inputs(&self, name: &str) -> usize {
        let words = self.words();
        let mut count = 0;
        for (nth, word) in words.iter().enumerate() {
            let Some(word) = word.strip_prefix('-') else { continue };
            let word = word.strip_prefix('-').unwrap_or(word);
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, value),
                None => (word, words.get(nth + 1).map_or("", |next| next)),
            };
            if option == "input" || option == "inputs" {
                count += value.split(',').filter(|input| *input == name).count();
            }
        }
        count
    }

    /// Arguments and what a response file adds, without the quotes.
    fn words(&self) -> Vec<String> {
        let response = self.files.get("response").map_or(&[][..], |text| text);
        let response = String::from_utf8_lossy(response).replace(['"', '\'', '\\'], "");
        self.args.iter().cloned().chain(response.split_whitespace().map(str::to_owned)).collect()
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bytes: &[u8]| {
            let start = &bytes[..bytes.len().min(300)];
            format!("{} bytes: {}", bytes.len(), start.escape_ascii())
        };
        writeln!(
            f,
            "exit {:?}\nstdout {}\nstderr {}",
            self.status,
            shown(&self.stdout),
            self.stderr
        )?;
        for (name, (mode, bytes)) in &self.files {
            writeln!(f, "{name} {mode:o} {}", shown(bytes))?;
        }
        Ok(())
    }
}

impl Outcome {
    fn bytes(&self, name: &str) -> &[u8] {
        &self.files.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).1
    }

    /// The files besides those that were there.
    fn new_files(&self, case: &Case) -> BTreeMap<&str, &(u32, Vec<u8>)> {
        self.files
            .iter()
            .filter(|(name, (_, bytes))| case.files.get(*name) != Some(bytes))
            .map(|(name, file)| (name.as_str(), file))
            .collect()
    }
}

/// Numbers that differ from run to run, or between releases of libzstd.
fn masked(stderr: &str) -> String {
    const VARYING: [&str; 8] = [
        "Total file size (",
        "Binary size after compression:",
        "Size before decompression:",
        "Compression rate:",
        "Compression ratio:",
        "Compression speed:",
        "Decompression speed:",
        "Original command line:",
    ];
    let mut text = String::new();
    for line in stderr.split_inclusive('\n') {
        match VARYING.iter().find(|start| line.starts_with(**start)) {
            // The shape stays: digits become one `9`.
            Some(_) => {
                let mut was_number = false;
                for c in line.chars() {
                    let is_number = c.is_ascii_digit() || c == ',';
                    if !is_number || !was_number {
                        text.push(if is_number { '9' } else { c });
                    }
                    was_number = is_number;
                }
            }
            None => text.push_str(line),
        }
    }
    text
}

fn run_in(tool: &Path, case: &Case, at: &Path) -> Outcome {
    fs::create_dir_all(at).unwrap();
    symlink(inputs(), at.join("in")).unwrap();
    for (name, bytes) in &case.files {
        fs::write(at.join(name), bytes).unwrap();
    }
    let mut command = Command::new(tool);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.env("LLVM_DISABLE_SYMBOLIZATION", "1");
    command.args(&case.args).envs(case.env.iter().cloned()).current_dir(at);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A tool that does not read its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(&case.stdin);
    let output = child.wait_with_output().unwrap();
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.insert(name, (mode, fs::read(entry.path()).unwrap()));
        }
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Outcome {
        status: output.status.code(),
        stdout: output.stdout,
        stderr: masked(&stderr.replace(&*tool.to_string_lossy(), "TOOL")),
        files,
    }
}

fn run(tool: &Path, case: &Case) -> Outcome {
    let place = tempfile::tempdir().unwrap();
    run_in(tool, case, &place.path().join("here"))
}

/// A run of theirs and one of ours.
fn both(case: &Case) -> (Outcome, Outcome) {
    (run(&theirs(), case), run(&ours(), case))
}

/// The directory of the files that all runs share: contents of all kinds, made once.
fn inputs() -> &'static Path {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    PLACE.get_or_init(make_inputs).path()
}

fn compile(target: &str, arguments: &[&str], output: &Path) {
    let source = output.with_extension("c");
    fs::write(
        &source,
        "int a = 5; int f(int x) { return x + a; } static int b; int *g(void) { return &b; }",
    )
    .unwrap();
    let status = Command::new(llvm("clang"))
        .arg(format!("--target={target}"))
        .args(["-nogpulib", "-nogpuinc", "-c"])
        .args(arguments)
        .arg(&source)
        .arg("-o")
        .arg(output)
        .status()
        .unwrap();
    assert!(status.success());
    fs::remove_file(source).unwrap();
}

fn make_inputs() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let mut random = Random::new(11);
    for nth in 0..6 {
        let mut lines = String::new();
        for line in 0..random.below(30) {
            writeln!(lines, "line {line} of text {nth}, {}", random.next()).unwrap();
        }
        fs::write(at(&format!("text{nth}")), &lines).unwrap();
        let bytes: Vec<u8> =
            (0..1 + random.below(5000)).map(|_| random.next().to_le_bytes()[0]).collect();
        fs::write(at(&format!("binary{nth}")), bytes).unwrap();
    }
    fs::write(at("empty"), "").unwrap();
    fs::write(at("zero"), [0]).unwrap();
    fs::write(at("unfinished"), "no newline at the end").unwrap();
    fs::write(at("crlf"), "dos\r\nlines\r\n").unwrap();
    fs::write(at("newlines"), "\n\n\n").unwrap();
    fs::write(at("large"), "the same again and again\n".repeat(3000)).unwrap();
    fs::write(at("name with space"), "quoted").unwrap();
    compile("x86_64-linux-gnu", &["-O1"], &at("host.o"));
    compile("x86_64-linux-gnu", &["-O0", "-g", "-ffunction-sections"], &at("debug.o"));
    compile("i386-linux-gnu", &["-O1"], &at("host32.o"));
    compile("powerpc64-linux-gnu", &["-O1"], &at("hostbe.o"));
    compile(
        "x86_64-pc-windows-msvc",
        &["-O1", "-mno-incremental-linker-compatible"],
        &at("host.obj"),
    );
    compile("amdgcn-amd-amdhsa", &["-O1", "-mcpu=gfx906"], &at("device.o"));
    compile("amdgcn-amd-amdhsa", &["-O1", "-mcpu=gfx90a", "-emit-llvm"], &at("device.bc"));
    compile("x86_64-linux-gnu", &["-O1", "-emit-llvm"], &at("host.bc"));
    fs::create_dir(at("directory")).unwrap();
    place
}

/// Words as a shell splits them: `''` is an empty one.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| if word == "''" { "" } else { word }.to_owned()).collect()
}

fn case(line: &str) -> Case {
    let mut args = words(line);
    let variables = args.iter().take_while(|word| {
        VARIABLES.iter().any(|v| word.strip_prefix(v).is_some_and(|rest| rest.starts_with('=')))
    });
    let count = variables.count();
    let env = args
        .drain(..count)
        .map(|word| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect();
    Case { args, env, ..Case::default() }
}

/// Both do the same, or one of [`DIFFERENCES`] says why not.
///
/// Not compared: what a failing run leaves behind (LLVM's what it had written so far, ours nothing); the order of lists
/// (of a hash table there, of the file here); the bytes of compressed bundles, whose contents are compared; where in
/// an object its sections lie; which of equally near options a complaint suggests; warnings that only ours gives, those
/// of [`WARNINGS`].
fn compare(case: &Case) -> Result<(Outcome, Outcome), String> {
    let (their, our) = both(case);
    let told = |problem: &str| {
        let (words, files) = (case.args.join(" "), case.files.keys());
        format!("{problem}: {:?} {words} {files:?}\n{}", case.env, unlike(&their, &our))
    };
    for difference in DIFFERENCES {
        if (difference.applies)(case, &their, &our) {
            let holds = (difference.holds)(case, &their, &our);
            return if holds { Ok((their, our)) } else { Err(told(difference.reason)) };
        }
    }
    if our.status != Some(0) && !our.new_files(case).is_empty() {
        return Err(told("ours leaves files"));
    }
    let (a, mut b) = (comparable(case, &their), comparable(case, &our));
    if a.stderr != b.stderr {
        b.stderr = without_own_warnings(&b.stderr);
    }
    if a == b { Ok((their, our)) } else { Err(told("differs")) }
}

/// Parts of the warnings that only ours gives.
const WARNINGS: [&str; 2] = [
    // LLVM lists nothing, silently.
    ": no bundle",
    // One of the two can be had by its exact ID only.
    ", which mean the same",
];

fn without_own_warnings(stderr: &str) -> String {
    let is_own = |line: &&str| {
        line.starts_with("TOOL: warning: ") && WARNINGS.iter().any(|text| line.contains(text))
    };
    stderr.split_inclusive('\n').filter(|line| !is_own(line)).collect()
}

/// An outcome without what need not be equal.
fn comparable(case: &Case, outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    if outcome.status != Some(0) {
        outcome.files.clear();
        outcome.stdout.clear();
    }
    if case.has("list") {
        outcome.stdout = sorted(&outcome.stdout);
    }
    outcome.stdout = facts(outcome.stdout);
    for (_, bytes) in outcome.files.values_mut() {
        *bytes = facts(std::mem::take(bytes));
    }
    let lines =
        outcome.stderr.split_inclusive('\n').map(|line| match line.split_once("Did you mean '") {
            Some((start, _)) => format!("{start}Did you mean ...\n"),
            None => line.to_owned(),
        });
    outcome.stderr = lines.collect();
    outcome
}

/// What counts of a file's bytes.
fn facts(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(b"CCOB") {
        uncompressed_facts(&bytes)
    } else if is_object_form(&bytes) || bytes.starts_with(b"\x64\x86") {
        object_facts(&llvm("llvm-readobj"), &bytes).into_bytes()
    } else {
        bytes
    }
}

/// What two runs do not have in common.
fn unlike(their: &Outcome, our: &Outcome) -> String {
    let start = |bytes: &[u8]| {
        let hash = bytes.iter().fold(0u32, |hash, &b| hash.wrapping_mul(31).wrapping_add(b.into()));
        let text = bytes[..bytes.len().min(40)].escape_ascii();
        format!("{} bytes, {hash:08x}: {text}", bytes.len())
    };
    let mut text = String::new();
    let mut add = |what: &str, theirs: String, ours: String| {
        if theirs != ours {
            writeln!(text, "  {what}, theirs: {theirs}\n  {what},   ours: {ours}").unwrap();
        }
    };
    add("exit", format!("{:?}", their.status), format!("{:?}", our.status));
    add("stderr", their.stderr.clone(), our.stderr.clone());
    add("stdout", start(&their.stdout), start(&our.stdout));
    let names: BTreeSet<_> = their.files.keys().chain(our.files.keys()).collect();
    for name in names {
        let shown = |outcome: &Outcome| match outcome.files.get(name) {
            None => "missing".to_owned(),
            Some((mode, bytes)) => format!("{mode:o} {}", start(bytes)),
        };
        add(name, shown(their), shown(our));
    }
    if text.is_empty() {
        text.push_str("  files of the same size");
    }
    text
}

fn sorted(lines: &[u8]) -> Vec<u8> {
    let mut lines: Vec<_> = lines.split_inclusive(|&b| b == b'\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// The header of a compressed bundle without its own size: version, method, size and hash of what is inside. Together
/// with both tools reading both files this is as good as comparing what is inside.
fn uncompressed_facts(bundle: &[u8]) -> Vec<u8> {
    let version = bundle[4];
    let (total, rest) = match version {
        2 => (u64::from(u32::from_le_bytes(bundle[8..12].try_into().unwrap())), &bundle[12..24]),
        3 => (u64::from_le_bytes(bundle[8..16].try_into().unwrap()), &bundle[16..32]),
        other => panic!("version {other}"),
    };
    assert_eq!(total, bundle.len() as u64);
    [&bundle[..8], rest].concat()
}

/// What ours does on purpose in another way than LLVM 22, where generated runs and the lines below meet it.
struct Difference {
    reason: &'static str,
    /// Whether this is a case of it: theirs, ours.
    applies: fn(&Case, &Outcome, &Outcome) -> bool,
    /// What must be true instead of equality.
    holds: fn(&Case, &Outcome, &Outcome) -> bool,
}

fn succeeds(outcome: &Outcome) -> bool {
    outcome.status == Some(0)
}

/// Whether a run ends with an error of these words and leaves nothing.
fn refuses(case: &Case, outcome: &Outcome, words: &str) -> bool {
    outcome.status == Some(1)
        && outcome.new_files(case).is_empty()
        && outcome
            .stderr
            .lines()
            .any(|line| line.starts_with("TOOL: error: ") && line.contains(words))
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "LLVM crashes: an object as the first input of HIP images only",
        applies: |_, their, _| their.status.is_none(),
        holds: |_, _, our| succeeds(our),
    },
    Difference {
        reason: "two spellings of one ID make a bundle with an entry that nobody gets",
        applies: |_, _, our| our.stderr.contains(" both mean '"),
        holds: |case, _, our| refuses(case, our, "Duplicate targets are not allowed: "),
    },
    Difference {
        reason: "standard input is there once; LLVM takes the second for empty",
        applies: |case, _, _| case.inputs("-") > 1,
        holds: |case, _, our| refuses(case, our, "standard input can be one input only"),
    },
    Difference {
        reason: "objcopy cannot read standard input",
        applies: |case, their, _| {
            case.inputs("-") == 1 && their.stderr.contains("'llvm-objcopy' tool failed")
        },
        holds: |_, _, our| succeeds(our) || our.stderr.contains("Can't find bundles for "),
    },
    Difference {
        reason: "no object is compressed, and nothing is said of a compression",
        applies: |case, their, _| {
            their.stderr.contains("Binary size before compression: 0 bytes")
                && !case.words().iter().any(|word| word.starts_with("in/empty"))
        },
        holds: |case, their, our| {
            let (their, our) = (comparable(case, their), comparable(case, our));
            our.stderr
                .lines()
                .all(|line| line.contains("deprecated") || line.starts_with("Warning"))
                && (their.files, their.stdout) == (our.files, our.stdout)
        },
    },
];

const TEXT: [&str; 7] = ["i", "ii", "cui", "hipi", "d", "ll", "s"];
const BINARY: [&str; 3] = ["bc", "gch", "ast"];

const TEXTS: [&str; 11] = [
    "text0",
    "text1",
    "text2",
    "text3",
    "text4",
    "text5",
    "empty",
    "unfinished",
    "crlf",
    "newlines",
    "large",
];
const BINARIES: [&str; 12] = [
    "binary0",
    "binary1",
    "binary2",
    "binary3",
    "binary4",
    "binary5",
    "empty",
    "zero",
    "device.o",
    "device.bc",
    "host.bc",
    "large",
];
const OBJECTS: [&str; 5] = ["host.o", "debug.o", "host32.o", "hostbe.o", "host.obj"];

/// Hosts in the many ways to spell one, and hosts that are several.
const HOSTS: [&str; 15] = [
    "host-x86_64-unknown-linux-gnu",
    "host-x86_64-unknown-linux-gnu-",
    "host-x86_64-unknown-linux-",
    "host-x86_64-unknown-linux--",
    "host-x86_64--linux-gnu",
    "host-x86_64-linux--gnu",
    "host-x86_64---",
    "host-amd64-unknown-linux-gnu",
    "host-ppc64le-ibm-linux-gnu",
    "host-x86_64-pc-windows-",
    "host-x86_64-pc-win32-",
    "host-x86_64-w64-mingw32-",
    "host-armv7-none-linux-androideabi",
    "host-x86_64-apple-macosx11.0-",
    "host-aarch64-suse-linux-gnueabi",
];

const AMD: [&str; 9] = [
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-unknown",
    "amdgcn-amd-amdhsa-llvm",
    "amdgcn--amdhsa-",
    "amdgcn-amd-amdpal-",
    "amdgcn-mesa-mesa3d-",
    "amdgcn---",
];
const PROCESSORS: [&str; 12] = [
    "gfx600",
    "gfx803",
    "gfx900",
    "gfx906",
    "gfx908",
    "gfx90a",
    "gfx942",
    "gfx1030",
    "gfx1100",
    "gfx1201",
    "gfx9-generic",
    "gfx9-4-generic",
];
/// Those that have features to choose.
const FEATURES: [(&str, &[&str]); 6] = [
    ("gfx900", &[":xnack+", ":xnack-"]),
    ("gfx906", &[":sramecc+:xnack+", ":sramecc+:xnack-", ":sramecc-:xnack+", ":sramecc-:xnack-"]),
    ("gfx908", &[":sramecc+", ":sramecc-"]),
    ("gfx90a", &[":xnack+", ":xnack-"]),
    ("gfx942", &[":sramecc+:xnack+", ":sramecc+:xnack-"]),
    ("gfx9-4-generic", &[":xnack+", ":xnack-"]),
];
const OTHER_DEVICES: [&str; 8] = [
    "nvptx64-nvidia-cuda--sm_70",
    "nvptx64-nvidia-cuda--sm_90a",
    "nvptx64-nvidia-cuda-unknown-sm_80",
    "nvptx64-nvidia-cuda-",
    "spirv64-amd-amdhsa-unknown-amdgcnspirv",
    "spirv64----generic",
    "x86_64-unknown-linux-gnu",
    "spirv64-intel-unknown-unknown",
];
/// What a name can be mistyped as.
const WRONG: [&str; 8] = [
    "hip-amdgcn-amd-amdhsa",
    "hip",
    "",
    "sycl-spirv64-unknown-unknown-",
    "HIP-amdgcn-amd-amdhsa--gfx906",
    "what-ever-there-is-there",
    "host-x86_64",
    "openmp-amdgcn-amdhsa-gfx906",
];

trait Chance {
    fn one_in(&mut self, n: usize) -> bool;
}

impl Chance for Random {
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// `-name=value`, `--name value` and so on.
fn spell(random: &mut Random, args: &mut Vec<Vec<String>>, name: &str, value: Option<&str>) {
    let dashes = *random.pick(&["-", "--"]);
    args.push(match value {
        None => vec![format!(
            "{dashes}{name}{}",
            random.pick(&["", "", "", "=1", "=true", "=TRUE", "="])
        )],
        Some(value) if random.below(2) == 0 => vec![format!("{dashes}{name}={value}")],
        Some(value) => vec![format!("{dashes}{name}"), value.to_owned()],
    });
}

/// The options of a run in any order, now and then in a response file.
fn shuffled(random: &mut Random, mut args: Vec<Vec<String>>, case: &mut Case) {
    // What may be repeated is in order.
    let repeated = |arg: &Vec<String>| {
        let name = arg[0].trim_start_matches('-');
        ["input", "output", "targets"].iter().any(|start| name.starts_with(start))
    };
    let mut in_order: Vec<_> = args.iter().filter(|arg| repeated(arg)).cloned().collect();
    random.shuffle(&mut args);
    in_order.reverse();
    for arg in &mut args {
        if repeated(arg) {
            *arg = in_order.pop().unwrap();
        }
    }
    case.args = args.concat();
    if random.one_in(12) {
        let mut text = String::new();
        let separator = *random.pick(&[" ", "\n", " \t ", "\r\n"]);
        let from = random.below(case.args.len());
        for arg in case.args.drain(from..) {
            let quoted = match random.below(3) {
                0 => format!("\"{}\"", arg.replace('\\', "\\\\").replace('"', "\\\"")),
                1 => format!("'{arg}'"),
                _ if arg.is_empty() => "''".to_owned(),
                _ => arg.replace(' ', "\\ "),
            };
            text.push_str(&quoted);
            text.push_str(separator);
        }
        case.files.insert("response".to_owned(), text.into_bytes());
        case.args.push("@response".to_owned());
    }
}

/// A list of files or targets: the option once for each, or once with commas.
fn spell_list(
    random: &mut Random,
    args: &mut Vec<Vec<String>>,
    repeatable: &str,
    with_commas: Option<&str>,
    values: &[String],
) {
    match with_commas {
        Some(name) if !values.is_empty() && (repeatable == name || random.one_in(6)) => {
            let cut = if random.one_in(4) { random.below(values.len()) } else { 0 };
            for part in [&values[..cut], &values[cut..]].into_iter().filter(|part| !part.is_empty())
            {
                spell(random, args, name, Some(&part.join(",")));
            }
        }
        _ => {
            for value in values {
                spell(random, args, repeatable, Some(value));
            }
        }
    }
}

fn kind(random: &mut Random, hip: bool) -> &'static str {
    if hip || random.one_in(2) { *random.pick(&["hip", "hipv4", "hipv4"]) } else { "openmp" }
}

fn device(random: &mut Random, hip: bool) -> String {
    let kind = kind(random, hip);
    if random.one_in(5) {
        return format!("{kind}-{}", random.pick(&OTHER_DEVICES));
    }
    let processor = *random.pick(&PROCESSORS);
    // All images of a processor state the same features, mostly.
    let features = match FEATURES.iter().find(|(name, _)| *name == processor) {
        Some((_, choice)) if !random.one_in(8) => *random.pick(choice),
        _ => "",
    };
    let target_id =
        if random.one_in(25) { String::new() } else { format!("-{processor}{features}") };
    format!("{kind}-{}{target_id}", random.pick(&AMD))
}

/// What a target comes to: the kind, three fields of the triple, the target ID.
fn meaning(target: &str) -> String {
    let fields: Vec<_> = target.splitn(6, '-').collect();
    let or_unknown = |nth: usize| match fields.get(nth) {
        None | Some(&"") => "unknown",
        Some(field) => field,
    };
    let kind = if fields[0] == "hipv4" { "hip" } else { fields[0] };
    [kind, or_unknown(1), or_unknown(2), or_unknown(3), or_unknown(5)].join("-")
}

/// A run that bundles, mostly a right one.
struct Bundling {
    file_type: &'static str,
    targets: Vec<String>,
    case: Case,
    /// The file that it makes; `None` where that is standard output.
    output: Option<String>,
}

fn bundling(random: &mut Random) -> Bundling {
    let file_type = match random.below(10) {
        0..=3 => *random.pick(&TEXT),
        4..=6 => *random.pick(&BINARY),
        _ => "o",
    };
    let hip = random.one_in(6);
    let mut targets: Vec<String> = Vec::new();
    for _ in 0..random.below(5) {
        let device = device(random, hip);
        let is_new = !targets.iter().any(|other| meaning(other) == meaning(&device));
        if is_new || random.one_in(30) {
            targets.push(device);
        }
    }
    let mut host = usize::MAX;
    if !(hip && random.one_in(2)) && !random.one_in(30) {
        host = if random.one_in(5) { random.below(targets.len() + 1) } else { 0 };
        let name = if random.one_in(2) { HOSTS[0] } else { *random.pick(&HOSTS) };
        targets.insert(host, name.to_owned());
    }
    if random.one_in(20) {
        let wrong = (*random.pick(&WRONG)).to_owned();
        targets.insert(random.below(targets.len() + 1), wrong);
        host = usize::MAX;
    }

    let mut case = Case::default();
    let mut names = Vec::new();
    for nth in 0..targets.len() {
        let pool: &[&str] = match file_type {
            // A device's image in first place decides the form where there is no host.
            "o" if nth == host && !random.one_in(3) => &OBJECTS,
            _ if TEXT.contains(&file_type) && !random.one_in(6) => &TEXTS,
            _ => &BINARIES,
        };
        let mut name = *random.pick(pool);
        // In sections, one zero byte stands for the host.
        if file_type == "o" && name == "zero" {
            name = "empty";
        }
        names.push(format!("in/{name}"));
    }
    if random.one_in(15) && !names.is_empty() {
        let nth = random.below(names.len());
        "-".clone_into(&mut names[nth]);
        case.stdin = format!("piped {}", random.next()).into_bytes();
    }
    if random.one_in(40) && !names.is_empty() {
        let nth = random.below(names.len());
        "missing".clone_into(&mut names[nth]);
    }
    if random.one_in(40) {
        names.pop();
    }

    let mut args = Vec::new();
    spell(random, &mut args, "type", Some(file_type));
    spell_list(random, &mut args, "targets", Some("targets"), &targets);
    spell_list(random, &mut args, "input", Some("inputs"), &names);
    let output = if random.one_in(10) { "-" } else { "out" };
    let with_commas = random.one_in(12).then_some("outputs");
    spell_list(random, &mut args, "output", with_commas, &[output.to_owned()]);
    if random.one_in(4) {
        let align = *random.pick(&["1", "4", "7", "16", "64", "4096", "0x20", "010"]);
        spell(random, &mut args, "bundle-align", Some(align));
    }
    if random.one_in(4) {
        spell(random, &mut args, "compress", None);
        if random.one_in(3) {
            let level = *random.pick(&["1", "9", "-7", "0", "99", "0x3"]);
            spell(random, &mut args, "compression-level", Some(level));
        }
    }
    environment(random, &mut case);
    if random.one_in(4) {
        spell(random, &mut args, "verbose", None);
    }
    for name in ["allow-missing-bundles", "hip-openmp-compatible"] {
        if random.one_in(15) {
            spell(random, &mut args, name, None);
        }
    }
    shuffled(random, args, &mut case);
    Bundling { file_type, targets, case, output: (output != "-").then(|| output.to_owned()) }
}

fn environment(random: &mut Random, case: &mut Case) {
    for variable in VARIABLES {
        if random.one_in(25) {
            let value = *random.pick(&["1", "0", "2", "3", "4", "", "true", "x"]);
            case.env.push((variable.to_owned(), value.to_owned()));
        }
    }
}

/// A run that takes apart what was made for `targets`.
fn unbundling(random: &mut Random, file_type: &str, targets: &[String], bundle: &[u8]) -> Case {
    let mut case = Case::default();
    case.files.insert("bundle".to_owned(), bundle.to_vec());
    let mut wanted: Vec<String> = targets.iter().filter(|_| !random.one_in(4)).cloned().collect();
    for target in &mut wanted {
        if random.one_in(10) {
            *target = match random.below(4) {
                // Asked with more than the image demands, or with another, equal spelling.
                0 if target.contains("gfx906") && !target.contains(':') => {
                    format!("{target}:xnack+")
                }
                1 if target.starts_with("hip-") => target.replacen("hip-", "hipv4-", 1),
                2 if target.starts_with("hipv4-") => target.replacen("hipv4-", "hip-", 1),
                _ => target.replacen("-unknown-", "--", 1),
            };
        }
    }
    if random.one_in(8) {
        wanted.push(device(random, false));
    }
    if random.one_in(5) {
        random.shuffle(&mut wanted);
    }
    let mut outputs: Vec<_> = (0..wanted.len()).map(|nth| format!("out{nth}")).collect();
    if random.one_in(20) && !outputs.is_empty() {
        let nth = random.below(outputs.len());
        "-".clone_into(&mut outputs[nth]);
    }
    if random.one_in(40) {
        outputs.pop();
    }
    let mut args = Vec::new();
    spell(random, &mut args, "unbundle", None);
    spell(random, &mut args, "type", Some(file_type));
    spell_list(random, &mut args, "targets", Some("targets"), &wanted);
    spell_list(random, &mut args, "output", Some("outputs"), &outputs);
    if random.one_in(15) {
        spell(random, &mut args, "input", Some("-"));
        case.stdin = case.files.remove("bundle").unwrap();
    } else {
        spell_list(random, &mut args, "input", Some("inputs"), &["bundle".to_owned()]);
    }
    if random.one_in(4) {
        spell(random, &mut args, "allow-missing-bundles", None);
    }
    if random.one_in(10) {
        spell(random, &mut args, "hip-openmp-compatible", None);
    }
    if random.one_in(4) {
        spell(random, &mut args, "verbose", None);
    }
    environment(random, &mut case);
    shuffled(random, args, &mut case);
    case
}

fn listing(random: &mut Random, file_type: &str, bundle: &[u8]) -> Case {
    let mut case = Case::default();
    let mut args = Vec::new();
    spell(random, &mut args, "list", None);
    spell(random, &mut args, "type", Some(file_type));
    spell(random, &mut args, "input", Some("bundle"));
    if random.one_in(4) {
        spell(random, &mut args, "verbose", None);
    }
    environment(random, &mut case);
    shuffled(random, args, &mut case);
    case.files.insert("bundle".to_owned(), bundle.to_vec());
    case
}

#[derive(Default)]
struct Counts {
    made: AtomicUsize,
    refused: AtomicUsize,
    taken_apart: AtomicUsize,
    missing: AtomicUsize,
    listed: AtomicUsize,
    compressed: AtomicUsize,
    object_form: AtomicUsize,
}

fn add(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// One bundle made by both, listed and taken apart by both.
fn round_trip(seed: u64, counts: &Counts) -> Result<(), String> {
    let random = &mut Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let Bundling { file_type, targets, case, output } = bundling(random);
    let (their, our) = compare(&case)?;
    if their.status != Some(0) || our.status != Some(0) {
        add(&counts.refused);
        return Ok(());
    }
    add(&counts.made);
    let made = |outcome: &Outcome| match &output {
        Some(name) => outcome.bytes(name).to_vec(),
        None => outcome.stdout.clone(),
    };
    let (their, our) = (made(&their), made(&our));
    if their.starts_with(b"CCOB") {
        add(&counts.compressed);
    }
    if file_type == "o" && (their.starts_with(b"\x7fELF") || their.starts_with(b"\x64\x86")) {
        add(&counts.object_form);
    }
    // Equal bytes need not be read twice.
    let bundles = if their == our { vec![their] } else { vec![their, our] };
    let mut theirs_of_each = Vec::new();
    for bundle in bundles {
        let random = &mut random.clone();
        let case = unbundling(random, file_type, &targets, &bundle);
        let (theirs, _) = compare(&case)?;
        add(if succeeds(&theirs) { &counts.taken_apart } else { &counts.missing });
        if random.one_in(2) {
            compare(&listing(random, file_type, &bundle))?;
            add(&counts.listed);
        }
        // From objects of COFF, LLVM does not give back what they were made of.
        let files = theirs.files.into_iter().filter(|(name, (_, bytes))| {
            name.starts_with("out") && !bytes.starts_with(b"\x64\x86")
        });
        theirs_of_each.push((theirs.status, files.collect::<Vec<_>>()));
    }
    if theirs_of_each.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("LLVM gets something else from our bundle: {:?}", case.args));
    }
    Ok(())
}

/// Runs all cases on all cores and says what went wrong in which.
fn all(cases: std::ops::Range<usize>, run: impl Fn(usize) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(cases.start);
    let problems = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= cases.end {
                        break;
                    }
                    if let Err(problem) = run(nth) {
                        problems.lock().unwrap().push(format!("--- case {nth}: {problem}"));
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn bundles_lists_and_unbundles_as_llvm_does() {
    let counts = Counts::default();
    let cases = match std::env::var("CASE") {
        Ok(case) => case.parse().unwrap()..case.parse::<usize>().unwrap() + 1,
        Err(_) => 0..320,
    };
    all(cases.clone(), |nth| round_trip(nth as u64, &counts));
    let said: Vec<_> = [
        ("made", &counts.made, 200),
        ("refused", &counts.refused, 40),
        ("taken apart", &counts.taken_apart, 120),
        ("missing", &counts.missing, 20),
        ("listed", &counts.listed, 80),
        ("compressed", &counts.compressed, 40),
        ("object form", &counts.object_form, 20),
    ]
    .into_iter()
    .map(|(name, counter, least)| (name, counter.load(Ordering::Relaxed), least))
    .collect();
    println!("{said:?}");
    assert!(cases.len() == 1 || said.iter().all(|(_, count, least)| count >= least), "{said:?}");
}

/// `H`, `D` and `E` in the lines below.
const TARGETS: [(&str, &str); 3] = [
    ("H", "host-x86_64-unknown-linux-gnu"),
    ("D", "hip-amdgcn-amd-amdhsa--gfx906"),
    ("E", "openmp-amdgcn-amd-amdhsa--gfx90a"),
];

/// A command line: words, `H`, `D` and `E` for the targets above after `targets=`, variables first.
fn line(text: &str) -> Case {
    let mut case = case(text);
    for arg in &mut case.args {
        if let Some((option, list)) = arg.split_once("targets=") {
            let list: Vec<_> = list
                .split(',')
                .map(|name| TARGETS.iter().find(|(short, _)| *short == name).map_or(name, |t| t.1))
                .collect();
            *arg = format!("{option}targets={}", list.join(","));
        }
    }
    for (name, bytes) in sample_bundles().iter().chain(odd_files()) {
        if case.args.iter().any(|arg| arg.contains(name)) {
            case.files.insert((*name).to_owned(), bytes.clone());
        }
    }
    for (name, text) in RESPONSES {
        if case.args.iter().any(|arg| arg.contains(name)) {
            case.files.insert((*name).to_owned(), text.as_bytes().to_vec());
        }
    }
    case
}

/// Damaged and odd files, by name.
fn odd_files() -> &'static BTreeMap<&'static str, Vec<u8>> {
    static FILES: OnceLock<BTreeMap<&'static str, Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let samples = sample_bundles();
        let (plain, text, packed) =
            (&samples["bundle.bc"], &samples["bundle.s"], &samples["bundle.ccob"]);
        let mut wrong_hash = packed.clone();
        wrong_hash[24] ^= 1;
        let mut cut_packed = packed.clone();
        cut_packed.truncate(packed.len() - 5);
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let two = [&packed[..], &[0; 100], packed].concat();
        BTreeMap::from([
            ("cut-in-table", plain[..100].to_vec()),
            ("cut-in-count", plain[..28].to_vec()),
            ("cut-in-image", plain[..plain.len() - 1].to_vec()),
            ("trailing-zeros", [&plain[..], &[0; 64]].concat()),
            ("two-plain", [&plain[..], &plain[..]].concat()),
            ("two-packed", two),
            ("packed-and-zeros", [&packed[..], &[0; 64]].concat()),
            ("wrong-hash", wrong_hash),
            ("cut-packed", cut_packed),
            ("first-line", text[1..].to_vec()),
            ("junk-before", [b"junk\n", &plain[..]].concat()),
            ("three-fields", string_bundle("openmp-amdgcn-amd-amdhsa-gfx906")),
            ("same-id-twice", string_bundle(HOSTS_ID)),
            ("crlf-text", string(text).replace('\n', "\r\n").into_bytes()),
        ])
    })
}

const HOSTS_ID: &str = "host-x86_64-unknown-linux-gnu-";

/// A binary bundle of the host and one more image.
fn string_bundle(id: &str) -> Vec<u8> {
    let ids = [HOSTS_ID, id];
    let table = 32 + ids.iter().map(|id| 24 + id.len()).sum::<usize>();
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0".to_vec();
    for (nth, id) in ids.iter().enumerate() {
        for number in [table + nth, 1, id.len()] {
            bytes.extend((number as u64).to_le_bytes());
        }
        bytes.extend(id.as_bytes());
    }
    [&bytes[..], b"hd"].concat()
}

const RESPONSES: [(&str, &str); 4] = [
    ("plain.rsp", "-type=s --targets=host-x86_64-unknown-linux-gnu\n-input=in/text0\t-output=out"),
    (
        "quoted.rsp",
        "'-type=s' \"--targets=host-x86_64-unknown-linux-gnu\" -input='in/name with space' -output=o\\ ut",
    ),
    ("nested.rsp", "@plain.rsp -verbose"),
    ("empty.rsp", ""),
];

/// Bundles of `H`, `D` and `E`, made by LLVM, by name: one of each form.
fn sample_bundles() -> &'static BTreeMap<&'static str, Vec<u8>> {
    static SAMPLES: OnceLock<BTreeMap<&'static str, Vec<u8>>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        [
            ("bundle.bc", "-type=bc -targets=H,D,E -input=in/host.bc -input=in/binary0 -input=in/device.bc"),
            ("bundle.s", "-type=s -targets=H,D,E -input=in/text0 -input=in/text1 -input=in/unfinished"),
            ("bundle.o", "-type=o -targets=H,D,E -input=in/host.o -input=in/device.o -input=in/binary1"),
            ("bundle.ccob", "-type=bc -compress -targets=H,D,E -input=in/host.bc -input=in/binary0 -input=in/device.bc"),
            (
                "bundle.ccob2",
                "COMPRESSED_BUNDLE_FORMAT_VERSION=2 -type=s -compress -targets=H,D,E -input=in/text0 -input=in/text1 -input=in/large",
            ),
        ]
        .into_iter()
        .map(|(name, text)| {
            let mut case = case(&format!("{text} -output=out"));
            for arg in &mut case.args {
                if arg.starts_with("-targets=") {
                    *arg = format!("-targets={},{},{}", TARGETS[0].1, TARGETS[1].1, TARGETS[2].1);
                }
            }
            (name, run(&theirs(), &case).bytes("out").to_vec())
        })
        .collect()
    })
}

/// Runs a list of command lines.
fn lines(lines: &[&str]) {
    all(0..lines.len(), |nth| compare(&line(lines[nth])).map(|_| ()));
}

#[test]
fn misuse_is_told_in_the_same_words() {
    lines(&[
        // The parser.
        "",
        "-h",
        "-h -list",
        "-type=o -h",
        "--type",
        "-type",
        "-type=",
        "-type ''",
        "-type= -list -input=bundle.s",
        "--typ=o",
        "---type=o",
        "-Type=o",
        "--TYPE=o",
        "-type=o --bogus",
        "-type=o -bogus -other=3 x",
        "-type=o --unbundl",
        "-type=o --input-file=x",
        "-type=o --output-=x",
        "-type=o -lst",
        "-type=o -comprss",
        "-type=o -o out",
        "-type=o out",
        "-type=o one two",
        "-type=o -- -list",
        "-type=o -",
        "-type=o --",
        "-type=o -unbundle=maybe",
        "-type=o -unbundle=yes -list=no -compress=2",
        "-type=o -list=",
        "-type=o -list=False",
        "-type=o -list=falsE",
        "-type=o -list false",
        "-type=o -unbundle=true -unbundle=false",
        "-type=o -bundle-align",
        "-type=o -bundle-align=",
        "-type=o -bundle-align=x",
        "-type=o -bundle-align=-1",
        "-type=o -bundle-align=4294967296",
        "-type=o -bundle-align=4294967295",
        "-type=o -bundle-align=0x",
        "-type=o -bundle-align=0b11",
        "-type=o -bundle-align=0o17",
        "-type=o -bundle-align=09",
        "-type=o -bundle-align=1.5",
        "-type=o -bundle-align=+4",
        "-type=o -bundle-align=\u{a0}4",
        "-type=o -compression-level",
        "-type=o -compression-level=x",
        "-type=o -compression-level=2147483648",
        "-type=o -compression-level=-2147483648",
        "-type=o -compression-level=-2147483649",
        "-type=o -compression-level=",
        "-type=o -compression-level=--3",
        "-type=o -compression-level=-0x3",
        "-type=o -help=x",
        "-type=o -version=1",
        "-type=o -targets",
        "-type=o -input",
        "-type=o -output",
        "-type=o -inputs",
        "-type --input=h",
        "-bogus -type",
        "-type=o -###=x",
        "-type=o -### -bogus",
        "-bundle-align=x -compression-level=y -unbundle=z",
        "-verbose=x --allow-missing-bundles=x --check-input-archive=x --hip-openmp-compatible=x -compress=x",
        "-type=o @missing.rsp",
        "@missing.rsp",
        "@empty.rsp",
        "-type=o @empty.rsp",
        "@plain.rsp -output",
        "@plain.rsp stray1 stray2",
        "-type=o -j 3",
        // The rows of the table of checks, each with what comes before it.
        "-type=o -input=in/text0 -inputs=in/text0 -output=out -outputs=out -list -unbundle",
        "-type=o -inputs=in/text0 -output=out -outputs=out -list -unbundle",
        "-type=o -inputs=in/text0 -outputs=out -list -unbundle",
        "-type=o -inputs=in/text0,in/text1 -outputs=out -list",
        "-type=o -list",
        "-type=o -list -input=in/text0 -input=in/text1",
        "-type=o -list -input=in/text0 -output=out",
        "-type=o -list -input=in/text0 -outputs=out",
        "-type=o -list -input=in/text0 -outputs=",
        "-type=o -list -input=in/text0 -targets=H",
        "-type=o -list -input=in/text0 -targets=",
        "-type=o -list -input=missing",
        "-type=o -list -input=in/directory",
        "-type=o -list -input=",
        "-type=o -list -check-input-archive -input=in/text0",
        "-type=a -check-input-archive -input=in/text0 -output=out",
        "-type=o -unbundle -check-input-archive -input=in/text0 -output=out",
        "-type=o",
        "-type=o -unbundle",
        "-type=o -input=in/text0",
        "-type=o -targets=H -input=in/text0",
        "-type=o -input=in/text0 -output=out",
        "-type=o -unbundle -input=in/text0 -output=out",
        "-type=o -unbundle -targets=H -output=out",
        "-type=o -unbundle -targets=H -input=in/text0 -input=in/text1 -output=out",
        "-type=o -unbundle -targets=H,D -input=in/text0 -output=out",
        "-type=o -unbundle -targets=H -input=in/text0 -output=out -output=out2",
        "-type=a -targets=H -input=in/text0 -output=out",
        "-type=a -targets=H -input=in/text0 -output=out -output=out2",
        "-type=o -targets=H -input=in/text0 -output=out -output=out2",
        "-type=o -targets=H,D -input=in/text0 -output=out",
        "-type=o -targets=H -output=out",
        "-type=o -targets=H -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=H,H -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=H,D,D -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        "-type=bc -targets= -input=in/text0 -output=out",
        "-type=bc -targets=H, -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=host -input=in/text0 -output=out",
        "-type=bc -targets=host-x86_64-unknown-linux -input=in/text0 -output=out",
        "-type=bc -targets=H,hip-amdgcn-amd-amdhsa -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=H,sycl-spirv64-unknown-unknown- -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=H,x-y-z-w-v-u-t -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=H,---- -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=H,----- -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -unbundle -targets=H,x-y-z-w-v-u-t -input=in/text0 -output=out -output=out2",
        "-type=bc -unbundle -targets=H,host-i386-unknown-linux-gnu -input=in/text0 -output=out -output=out2",
        "-type=bc -targets=H,host-i386-unknown-linux-gnu -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=E -input=in/text0 -output=out",
        "-type=bc -targets=D,E -input=in/text0 -input=in/text1 -output=out",
        "-type=bc -targets=D -input=in/text0 -output=out",
        "-type=bc -targets=H,openmp-amdgcn-amd-amdhsa--gfx906,openmp-amdgcn-amd-amdhsa--gfx906:xnack+ -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        "-type=bc -targets=H,hip-amdgcn-amd-amdhsa--gfx906:xnack+,hip-amdgcn-amd-amdhsa--gfx906:xnack- -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        "-type=bc -targets=H,hip-amdgcn-amd-amdhsa--gfx906:xnack+,hip-amdgcn-amd-amdhsa--gfx906:sramecc+ -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        "-type=bc -unbundle -targets=H,openmp-amdgcn-amd-amdhsa--gfx906,openmp-amdgcn-amd-amdhsa--gfx906:xnack+ -input=in/text0 -output=out -output=out1 -output=out2",
        "-type=bc -targets=H,D -input=missing -input=in/text0 -output=out",
        "-type=bc -targets=H,D -input=in/text0 -input=missing -output=out",
        "-type=bc -targets=H,D -input=in/text0 -input=in/directory -output=out",
        "-type=bc -targets=H,D -input=in/text0 -input= -output=out",
        "-type=bc -targets=H -input=in/text0 -output=in/directory",
        "-type=bc -targets=H -input=in/text0 -output=missing/out",
        "-type=bc -targets=H -input=in/text0 -output=",
        "-type=what -targets=H -input=in/text0 -output=out",
        "-type=what -targets=H -input=missing -output=out",
        "-type=O -targets=H -input=in/text0 -output=out",
        "-type=what -unbundle -targets=H -input=in/text0 -output=out",
        "-type=what -unbundle -targets=H -input=in/empty -output=out",
        "-type=what -list -input=in/text0",
        "-type=bc -unbundle -targets=H -input=missing -output=out",
        "-type=bc -unbundle -targets=H -input=in/directory -output=out",
        "-type=bc -unbundle -targets=H -input=bundle.bc -output=in/directory",
        "-type=bc -unbundle -targets=H -input=bundle.bc -output=missing/out",
        "-type=bc -unbundle -targets=H,hip-amdgcn-amd-amdhsa--gfx908 -input=bundle.bc -output=out -output=out1",
        "-type=s -unbundle -targets=H,hip-amdgcn-amd-amdhsa--gfx908,hip-amdgcn-amd-amdhsa--gfx900 -input=bundle.s -output=out -output=out1 -output=out2",
        "-type=o -unbundle -targets=H,hip-amdgcn-amd-amdhsa--gfx908,hip-amdgcn-amd-amdhsa--gfx900,hip-nvptx64-nvidia-cuda--sm_70 -input=bundle.o -output=out -output=out1 -output=out2 -output=out3",
        // What is no bundle.
        "-type=bc -list -input=in/text0",
        "-type=bc -list -input=in/empty",
        "-type=s -list -input=in/host.o",
        "-type=o -list -input=in/host.o",
        "-type=bc -unbundle -targets=H -input=in/text0 -output=out",
        "-type=o -unbundle -targets=H -input=in/host.o -output=out",
        "-type=o -unbundle -targets=D -input=in/host.o -output=out",
    ]);
}

#[test]
fn right_use_in_its_corners() {
    lines(&[
        "-type s -targets H -input in/text0 -output out",
        "--type=s --targets=H --input=in/text0 --output=out",
        "-type=bc -type=s -targets=H -input=in/text0 -output=out",
        "-type=s -targets=H -targets=D -input=in/text0 -input=in/text1 -output=out",
        "-type=s -targets=H,D -inputs=in/text0,in/text1 -outputs=out",
        "-type=s -targets=H,D -inputs=in/text0 -inputs=in/text1 -output=out",
        "-type=s -targets=H,D -inputs=in/text0, -output=out",
        "-type=s -targets=D,H -input=in/text0 -input=in/text1 -output=out",
        "-type=s -targets=H,D -input=in/text0 -input=in/text1 -output=-",
        "-type=o -targets=H,D -input=in/host.o -input=in/device.o -output=-",
        "-type=o -targets=D,H -input=in/device.o -input=in/host.o -output=out",
        "-type=o -targets=H,D,E -input=in/host.obj -input=in/device.o -input=in/empty -output=out",
        "-type=o -targets=H,D -input=in/empty -input=in/device.o -bundle-align=4096 -output=out",
        "-type=o -targets=H,D -input=/dev/null -input=in/device.o -bundle-align=4096 -output=out",
        "-type=o -targets=H,D -input=/dev/null -input=in/device.o -bundle-align=4096 -compress -output=out",
        "-type=o -targets=H,D -input=in/host.bc -input=in/device.bc -output=out",
        "-type=o -targets=H,D -input=in/host.o -input=in/device.o -compress -verbose -output=out",
        "-type=o -targets=D -input=in/binary0 -output=out",
        "-type=o -targets=H -input=in/host.o -output=out",
        "-type=bc -targets=H,D,E -input=in/empty -input=in/empty -input=in/empty -output=out",
        "-type=bc -targets=H,D,E -input=in/empty -input=in/empty -input=in/empty -compress -output=out",
        "-type=bc -targets=H,D,E -input=in/zero -input=in/zero -input=in/zero -bundle-align=3 -output=out",
        "-type=bc -targets=H -input=in/text0 -output=/dev/null",
        "-unbundle -type=bc -targets=H -input=bundle.bc -output=/dev/null",
        "-unbundle -type=bc -targets=H,D -input=bundle.bc -output=/dev/null -output=out",
        "-type=s -targets=H -input=in/text0 -output=out -list=false -unbundle=0",
        "-type=s -targets=H -input=in/text0 -output=out -allow-missing-bundles -hip-openmp-compatible",
        "-type=s -targets=H -input=in/text0 -output=out --",
        "-type=s -targets=H -input=in/text0 -output=out stray",
        "-type=s -targets=H -input=in/text0 -output=out -- -stray",
        "@plain.rsp",
        "@quoted.rsp",
        "@nested.rsp",
        "@empty.rsp @plain.rsp",
        "-type=bc @plain.rsp",
        "@plain.rsp -type=bc",
        "-type=bc -input=in/text0 -input=bundle.bc -targets=H,D -output=bundle.bc",
        "-type=bc -list -input=bundle.bc",
        "-type=gch -list -input=bundle.bc",
        "-type=o -list -input=bundle.bc",
        "-type=s -list -input=bundle.s",
        "-type=d -list -input=bundle.s",
        "-type=o -list -input=bundle.o",
        "-type=bc -list -input=bundle.ccob -verbose",
        "-type=o -list -input=bundle.ccob",
        "-type=s -list -input=bundle.ccob2 -verbose",
        "-type=bc -list -input=- -verbose",
        "-type=bc -list -inputs=bundle.bc",
        "-unbundle -type=bc -targets=H,D,E -input=bundle.bc -output=a -output=b -output=c",
        "-unbundle -type=bc -targets=E,D,H -inputs=bundle.bc -outputs=a,b,c",
        "-unbundle -type=bc -targets=E -input=bundle.bc -output=a -verbose",
        "-unbundle -type=bc -targets=E -input=bundle.bc -output=-",
        "-unbundle -type=bc -targets=H,D -input=bundle.bc -output=bundle.bc -output=b",
        "-unbundle -type=s -targets=H,D,E -input=bundle.s -output=a -output=b -output=c",
        "-unbundle -type=o -targets=H,D,E -input=bundle.o -output=a -output=b -output=c",
        "-unbundle -type=o -targets=H -input=bundle.o -output=-",
        "-unbundle -type=bc -targets=H,D,E -input=bundle.ccob -output=a -output=b -output=c -verbose",
        "-unbundle -type=s -targets=H,D,E -input=bundle.ccob2 -output=a -output=b -output=c -verbose",
        "-unbundle -type=bc -targets=H,hipv4-amdgcn-amd-amdhsa--gfx906 -input=bundle.bc -output=a -output=b",
        "-unbundle -type=bc -targets=H,hip-amdgcn-amd-amdhsa--gfx906:xnack+ -input=bundle.bc -output=a -output=b",
        "-unbundle -type=bc -targets=hip-amdgcn-amd-amdhsa-unknown-gfx906 -input=bundle.bc -output=a",
        "-unbundle -type=bc -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=bundle.bc -output=a",
        "-unbundle -type=bc -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=bundle.bc -output=a -hip-openmp-compatible",
        "-unbundle -type=bc -targets=hip-amdgcn-amd-amdhsa--gfx90a -input=bundle.bc -output=a -hip-openmp-compatible",
        "-unbundle -type=bc -targets=hip-amdgcn-amd-amdhsa--gfx9-generic -input=bundle.bc -output=a",
        "-unbundle -type=bc -targets=H,hip-amdgcn-amd-amdhsa--gfx908 -input=bundle.bc -output=a -output=b -allow-missing-bundles",
        "-unbundle -type=s -targets=hip-amdgcn-amd-amdhsa--gfx908 -input=bundle.s -output=a -allow-missing-bundles",
        "-unbundle -type=bc -targets=H,D -input=in/text0 -output=a -output=b -allow-missing-bundles",
        "-unbundle -type=o -targets=H,D -input=in/host.o -output=a -output=b -allow-missing-bundles",
        "-unbundle -type=bc -targets=D,E -input=in/text0 -output=a -output=b -allow-missing-bundles",
        "-unbundle -type=bc -targets=H,D -input=in/empty -output=a -output=b -allow-missing-bundles",
        "-unbundle -type=bc -targets=H,D -input=in/empty -output=a -output=b",
    ]);
}

#[test]
fn environment_variables_mean_the_same() {
    let bundle = "-type=bc -targets=H,D -input=in/text0 -input=in/large -output=out";
    let mut commands = Vec::new();
    for variable in VARIABLES {
        for value in [
            "",
            "0",
            "1",
            "2",
            "3",
            "02",
            "0x2",
            "4",
            "-1",
            "9",
            "true",
            "65536",
            "2 ",
            "99999999999",
        ] {
            commands.push((vec![(variable, value)], format!("{bundle} -verbose -compress")));
        }
    }
    for value in ["1", "0", "2", "x"] {
        commands.push((vec![("OFFLOAD_BUNDLER_COMPRESS", value)], bundle.to_owned()));
        commands
            .push((vec![("OFFLOAD_BUNDLER_COMPRESS", value)], format!("{bundle} -compress=false")));
        commands.push((vec![("OFFLOAD_BUNDLER_COMPRESS", value)], format!("{bundle} -compress")));
        let list = "-type=bc -list -input=bundle.ccob";
        for variable in VARIABLES {
            commands.push((vec![(variable, value)], list.to_owned()));
        }
        commands.push((vec![("OFFLOAD_BUNDLER_VERBOSE", value)], format!("{list} -verbose=0")));
        commands.push((
            vec![
                ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value),
                ("COMPRESSED_BUNDLE_FORMAT_VERSION", value),
            ],
            format!("{bundle} -verbose -compress -compression-level=5"),
        ));
        commands.push((
            vec![
                ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value),
                ("COMPRESSED_BUNDLE_FORMAT_VERSION", value),
            ],
            "-bogus".to_owned(),
        ));
        commands.push((
            vec![
                ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value),
                ("COMPRESSED_BUNDLE_FORMAT_VERSION", value),
            ],
            "--help".to_owned(),
        ));
        commands.push((
            vec![
                ("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "1"),
                ("OFFLOAD_BUNDLER_COMPRESS", value),
                ("OFFLOAD_BUNDLER_VERBOSE", value),
                ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value),
                ("COMPRESSED_BUNDLE_FORMAT_VERSION", value),
            ],
            bundle.to_owned(),
        ));
    }
    all(0..commands.len(), |nth| {
        let (variables, text) = &commands[nth];
        let mut case = line(text);
        case.env = variables.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        compare(&case).map(|_| ())
    });
}

#[test]
fn help_is_laid_out_alike() {
    lines(&[
        "-help",
        "--help",
        "-help-list",
        "-type=o -h",
        "-help -bogus",
        "-bogus -help",
        "-list -help",
        "-print-options -type=o -list -input=in/empty",
        "-print-all-options -type=o -list -input=in/empty",
        "-print-options -type=s -targets=H -input=in/text0 -output=out -bundle-align=4 -compression-level=3 -compress",
        "-print-options=0 -type=o -list -input=in/empty",
    ]);
    for option in ["--help-hidden", "--help-list-hidden"] {
        // Ours has an option more, `--debug-only`.
        let (their, our) = both(&case(option));
        let lines = |outcome: &Outcome| -> Vec<String> {
            let text = String::from_utf8(outcome.stdout.clone()).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        let (their, our) = (lines(&their), lines(&our));
        let common: Vec<_> = our.iter().filter(|line| !line.contains("--debug-only")).collect();
        assert_eq!(common, their.iter().collect::<Vec<_>>());
        assert_eq!(our.len(), their.len() + 1);
    }
    // The vendor and the release are those of the tool.
    let (their, our) = both(&case("--version"));
    assert_eq!(our.status, Some(0));
    for outcome in [their, our] {
        let text = String::from_utf8(outcome.stdout).unwrap();
        assert!(text.contains("clang-offload-bundler version "), "{text}");
    }
}

/// What a run comes to: its exit status, and words on standard error or output; or a crash.
#[derive(Clone, Copy, Debug)]
enum End {
    Succeeds(&'static str),
    Fails(&'static str),
    Crashes,
}

use End::{Crashes, Fails, Succeeds};

impl End {
    fn is_that_of(self, outcome: &Outcome) -> bool {
        let says = |words: &str| {
            outcome.stderr.contains(words)
                || String::from_utf8_lossy(&outcome.stdout).contains(words)
        };
        match self {
            Succeeds(words) => outcome.status == Some(0) && says(words),
            Fails(words) => outcome.status == Some(1) && says(words),
            Crashes => outcome.status.is_none(),
        }
    }
}

/// Runs that end otherwise here than with LLVM 22, each on purpose: the line, theirs, ours, why.
const ODDITIES: &[(&str, End, End, &str)] = &[
    (
        "-type=bc -targets=H,D -input=in/text0 -input=in/text1 -output=out -bundle-align=0",
        Crashes,
        Fails("-bundle-align must be at least 1"),
        "division by zero",
    ),
    (
        "-type=o -targets=D -input=in/device.o -output=out",
        Crashes,
        Succeeds(""),
        "HIP images alone, which are objects: a binary bundle",
    ),
    ("-type=bc -list -input=cut-in-table", Succeeds(""), Fails("'cut-in-table': "), "damage is told"),
    (
        "-type=bc -list -input=cut-in-count",
        Succeeds(""),
        Fails("'cut-in-count': "),
        "damage is told",
    ),
    ("-type=bc -list -input=cut-in-image", Crashes, Fails("'cut-in-image': "), "damage is told"),
    (
        "-type=bc -unbundle -targets=H -input=cut-in-image -output=out",
        Crashes,
        Fails("'cut-in-image': "),
        "damage is told",
    ),
    ("-type=bc -list -input=wrong-hash", Succeeds("host-"), Fails("hash"), "the hash is checked"),
    (
        "-type=bc -unbundle -targets=H -input=wrong-hash -output=out",
        Succeeds(""),
        Fails("hash"),
        "the hash is checked",
    ),
    (
        "-type=bc -list -input=two-packed",
        Fails("Src size is incorrect"),
        Succeeds("host-"),
        "several compressed bundles, as in any HIP program of several units",
    ),
    (
        "-type=bc -list -input=packed-and-zeros",
        Fails("Src size is incorrect"),
        Succeeds("host-"),
        "zeros behind a compressed bundle",
    ),
    (
        "-type=s -list -input=first-line",
        Succeeds("hip-"),
        Succeeds("host-"),
        "a marker on the first line",
    ),
    (
        "-type=bc -unbundle -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=three-fields -output=out",
        Fails("Can't find bundles for openmp-amdgcn-amd-amdhsa--gfx906"),
        Succeeds(""),
        "triples of three fields, as clang wrote them once",
    ),
    (
        "-type=s -targets=H,hip-nvptx64-nvidia-cuda-sm_70 -input=in/text0 -input=in/text1 -output=-",
        Succeeds("hip-nvptx64-nvidia-cuda-sm_70-\n"),
        Succeeds("hip-nvptx64-nvidia-cuda-unknown-sm_70\n"),
        "LLVM takes the target ID behind three fields for an environment",
    ),
    (
        "-type=s -targets=host-x86_64-unknown-linux-gnu-foo -input=in/text0 -output=-",
        Succeeds("host-x86_64-unknown-linux-gnu-\n"),
        Succeeds("unknown processor 'foo', kept as it is"),
        "what LLVM does not know it drops",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx940 -input=in/text0 -input=in/text1 -output=-",
        Succeeds("START__ hip-amdgcn-amd-amdhsa--\n"),
        Succeeds("START__ hip-amdgcn-amd-amdhsa--gfx940\n"),
        "what LLVM does not know it drops",
    ),
    (
        "-type=s -targets=H,hip-amdgpu-amd-amdhsa--gfx906 -input=in/text0 -input=in/text1 -output=-",
        Fails("unknown target triple 'amdgpu-amd-amdhsa-'"),
        Succeeds("hip-amdgpu-amd-amdhsa--gfx906"),
        "an architecture of LLVM 23",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx906,hip-amdgcn-amd-amdhsa-unknown-gfx906 -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        Succeeds(""),
        Fails("Duplicate targets are not allowed"),
        "two spellings of one ID make a bundle with an entry that nobody gets",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+,hip-amdgcn-amd-amdhsa--gfx906:xnack- -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        Succeeds(""),
        Fails("Cannot bundle inputs with conflicting targets: "),
        "LLVM looks for a feature in one only of the two",
    ),
    (
        "-type=s -targets=H,D -input=in/text0 -input=bundle.s -output=out",
        Succeeds(""),
        Fails("marker line in its content"),
        "what could not be taken apart again",
    ),
    (
        "-type=s -targets=H,D -input=- -input=- -output=out",
        Succeeds(""),
        Fails("standard input can be one input only"),
        "the second would be empty",
    ),
    (
        "-type=bc -unbundle -targets=H,D -input=bundle.bc -output=a -output=a",
        Succeeds(""),
        Fails("'a': is the output for more than one target"),
        "one of the two would be lost",
    ),
    (
        "-type=s -list -input=bundle.bc",
        Succeeds(""),
        Fails("found a binary bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=bc -list -input=bundle.s",
        Succeeds(""),
        Fails("found a text bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=ll -list -input=bundle.s",
        Succeeds(""),
        Fails("found a text bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=bc -list -input=bundle.o",
        Succeeds(""),
        Fails("found an object"),
        "not nothing, but another form",
    ),
    (
        "-type=s -list -input=bundle.ccob",
        Succeeds(""),
        Fails("found a binary bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=a -list -input=in/text0",
        Succeeds(""),
        Fails("not an archive"),
        "not nothing, but no archive",
    ),
    (
        "-type=o -color",
        Fails("no output file specified!"),
        Fails("Unknown command line argument '-color'"),
        "an option of LLVM's library for messages, which is not in the help",
    ),
    (
        "-### -type=o -targets=H,D -input=in/host.o -input=in/device.o -output=out",
        Succeeds("\"--add-section=__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-="),
        Succeeds("\"--add-section=__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-="),
        "nothing is written in a dry run",
    ),
];

#[test]
fn oddities_end_as_they_should() {
    all(0..ODDITIES.len(), |nth| {
        let (text, theirs, ours, reason) = ODDITIES[nth];
        let case = line(text);
        let (their, our) = both(&case);
        if !theirs.is_that_of(&their) {
            return Err(format!("{text}\nLLVM does not end with {theirs:?}: {their:?}"));
        }
        let dry = case.args[0] == "-###";
        if !ours.is_that_of(&our)
            || ((our.status == Some(1) || dry) && !our.new_files(&case).is_empty())
        {
            return Err(format!("{text}: {reason}\nours does not end with {ours:?}: {our:?}"));
        }
        Ok(())
    });
}

#[test]
fn entries_are_chosen_with_care() {
    // LLVM hands out what it meets first, and each entry once.
    let any = "hip-amdgcn-amd-amdhsa--gfx906";
    let exact = "hip-amdgcn-amd-amdhsa--gfx906:xnack+";
    let other = "hip-amdgcn-amd-amdhsa--gfx906:xnack-";
    let mut made = case("-type=bc -input=in/text0 -input=in/text1 -output=out");
    made.args.push(format!("-targets={},{any}", TARGETS[0].1));
    let bundle = run(&ours(), &made).bytes("out").to_vec();
    let mut asked = case("-type=bc -unbundle -input=bundle -output=a -output=b");
    asked.args.push(format!("-targets={exact},{other}"));
    asked.files.insert("bundle".to_owned(), bundle);
    let (their, our) = both(&asked);
    assert_eq!(their.status, Some(1), "{their:?}");
    assert_eq!(our.status, Some(0), "{our:?}");
    let image = fs::read(inputs().join("text1")).unwrap();
    assert!(our.bytes("a") == image && our.bytes("b") == image);
}

#[test]
fn one_zero_byte_for_a_device_is_no_host() {
    let bundle =
        run(&theirs(), &line("-type=o -targets=H,D -input=in/host.o -input=in/zero -output=out"));
    let mut asked = line("-type=o -unbundle -targets=H,D -input=bundle -output=a -output=b");
    asked.files.insert("bundle".to_owned(), bundle.bytes("out").to_vec());
    let (their, our) = both(&asked);
    assert_eq!((their.bytes("b").len(), our.bytes("b")), (their.bytes("a").len(), &[0][..]));
    assert_eq!(their.bytes("a"), our.bytes("a"));
}
