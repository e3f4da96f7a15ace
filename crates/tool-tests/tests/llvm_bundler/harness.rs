//! Running both tools with the same arguments in the same places, and comparing what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::files::inputs;
use crate::common::{is_object_form, object_facts, tool};
pub use crate::common::{llvm, new_command};

pub fn theirs() -> PathBuf {
    llvm("clang-offload-bundler")
}

pub fn ours() -> PathBuf {
    PathBuf::from(tool("clang-offload-bundler"))
}

/// The variables that the tool reads.
pub const VARIABLES: [&str; 5] = [
    "OFFLOAD_BUNDLER_IGNORE_ENV_VAR",
    "OFFLOAD_BUNDLER_VERBOSE",
    "OFFLOAD_BUNDLER_COMPRESS",
    "OFFLOAD_BUNDLER_COMPRESSION_LEVEL",
    "COMPRESSED_BUNDLE_FORMAT_VERSION",
];

/// One run: what it is given, in a directory of its own, where `in` is the directory of [`inputs`].
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub stdin: Vec<u8>,
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Outcome of a case.
#[derive(Clone, PartialEq)]
pub struct Outcome {
    /// `None` where a signal ended it.
    pub status: Option<i32>,
    pub stdout: Vec<u8>,
    /// The tool's path replaced by `TOOL`, and what depends on speed and compressor by `*`.
    pub stderr: String,
    /// Permissions and contents by name.
    pub files: BTreeMap<String, (u32, Vec<u8>)>,
}

impl Case {
    /// Returns whether an option is given, in either spelling.
    pub fn has(&self, option: &str) -> bool {
        self.words().iter().any(|word| {
            word.strip_prefix('-')
                .map(|word| word.strip_prefix('-').unwrap_or(word))
                .and_then(|word| word.strip_prefix(option))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    }

    /// Returns the number of inputs with this name.
    pub fn inputs(&self, name: &str) -> usize {
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
    pub fn words(&self) -> Vec<String> {
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
    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.files.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).1
    }

    /// Returns the files that were not there before.
    pub fn new_files(&self, case: &Case) -> BTreeMap<&str, &(u32, Vec<u8>)> {
        self.files
            .iter()
            .filter(|(name, (_, bytes))| case.files.get(*name) != Some(bytes))
            .map(|(name, file)| (name.as_str(), file))
            .collect()
    }
}

/// Numbers that differ from run to run, or between releases of libzstd.
pub fn masked(stderr: &str) -> String {
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

pub fn run_in(tool: &Path, case: &Case, at: &Path) -> Outcome {
    fs::create_dir_all(at).unwrap();
    symlink(inputs(), at.join("in")).unwrap();
    for (name, bytes) in &case.files {
        fs::write(at.join(name), bytes).unwrap();
    }
    let mut command = new_command(tool);
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

pub fn run(tool: &Path, case: &Case) -> Outcome {
    let place = tempfile::tempdir().unwrap();
    run_in(tool, case, &place.path().join("here"))
}

/// A run of theirs and one of ours.
pub fn both(case: &Case) -> (Outcome, Outcome) {
    (run(&theirs(), case), run(&ours(), case))
}

/// Checks that both do the same, or that one of [`DIFFERENCES`] explains why not.
///
/// Does not compare: files of a failing run (LLVM leaves what it had written so far, ours nothing); the order of lists
/// (of a hash table there, of the file here); the bytes of compressed bundles, whose contents are compared; the places
/// of sections in an object; our option `--release` in help texts; the choice among equally near options in a complaint; warnings that only ours gives, those
/// of [`WARNINGS`].
pub fn compare(case: &Case) -> Result<(Outcome, Outcome), String> {
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
    b.stdout = without_own_option(&b.stdout);
    if a == b { Ok((their, our)) } else { Err(told("differs")) }
}

/// Returns a help text without the option that only ours has.
fn without_own_option(stdout: &[u8]) -> Vec<u8> {
    let lines = stdout.split_inclusive(|&byte| byte == b'\n');
    let others = lines.filter(|line| !line.starts_with(b"  --release=<22|23>"));
    others.flatten().copied().collect()
}

/// Parts of the warnings that only ours gives.
pub const WARNINGS: [&str; 2] = [
    // LLVM lists nothing, silently.
    ": no bundle",
    // One of the two can be had by its exact ID only.
    ", which mean the same",
];

pub fn without_own_warnings(stderr: &str) -> String {
    let is_own = |line: &&str| {
        line.starts_with("TOOL: warning: ") && WARNINGS.iter().any(|text| line.contains(text))
    };
    stderr.split_inclusive('\n').filter(|line| !is_own(line)).collect()
}

/// An outcome without what need not be equal.
pub fn comparable(case: &Case, outcome: &Outcome) -> Outcome {
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

/// Returns the part of a file's bytes that is compared.
pub fn facts(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(b"CCOB") {
        uncompressed_facts(&bytes)
    } else if is_object_form(&bytes) || bytes.starts_with(b"\x64\x86") {
        object_facts(&llvm("llvm-readobj"), &bytes).into_bytes()
    } else {
        bytes
    }
}

/// Describes the differences between two runs.
pub fn unlike(their: &Outcome, our: &Outcome) -> String {
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

pub fn sorted(lines: &[u8]) -> Vec<u8> {
    let mut lines: Vec<_> = lines.split_inclusive(|&b| b == b'\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// Returns the header of a compressed bundle without its own size: version, method, size and hash of the contents. As
/// both tools read both files, this compares the contents.
pub fn uncompressed_facts(bundle: &[u8]) -> Vec<u8> {
    let version = bundle[4];
    let (total, rest) = match version {
        2 => (u64::from(u32::from_le_bytes(bundle[8..12].try_into().unwrap())), &bundle[12..24]),
        3 => (u64::from_le_bytes(bundle[8..16].try_into().unwrap()), &bundle[16..32]),
        other => panic!("version {other}"),
    };
    assert_eq!(total, bundle.len() as u64);
    [&bundle[..8], rest].concat()
}

/// An intended difference from LLVM 22, where generated runs and the lines below meet it.
pub struct Difference {
    pub reason: &'static str,
    /// Returns whether this is a case of it: theirs, ours.
    pub applies: fn(&Case, &Outcome, &Outcome) -> bool,
    /// Returns what must be true instead of equality.
    pub holds: fn(&Case, &Outcome, &Outcome) -> bool,
}

pub fn succeeds(outcome: &Outcome) -> bool {
    outcome.status == Some(0)
}

/// Returns whether a run ends with an error of these words and leaves nothing.
pub fn refuses(case: &Case, outcome: &Outcome, words: &str) -> bool {
    outcome.status == Some(1)
        && outcome.new_files(case).is_empty()
        && outcome
            .stderr
            .lines()
            .any(|line| line.starts_with("TOOL: error: ") && line.contains(words))
}

/// The bytes that our ELF file has after all of theirs.
fn tail<'o>(name: &str, their: &Outcome, our: &'o Outcome) -> Option<&'o [u8]> {
    let (their, our) = (their.bytes(name), our.bytes(name));
    our.strip_prefix(their).filter(|tail| their.starts_with(b"\x7fELF") && !tail.is_empty())
}

pub const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "an archive is listed member by member, not as one file without entries",
        applies: |case, their, _| {
            case.has("list")
                && case.args.iter().any(|arg| arg == "-type=a")
                && their.stderr.contains("ncompressed bundle.")
        },
        holds: |case, their, our| {
            let (their, our) = (comparable(case, their), comparable(case, our));
            (their.status, their.files, their.stdout) == (our.status, our.files, our.stdout)
        },
    },
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
        reason: "two spellings of one triple do not hide a conflict",
        applies: |case, their, our| {
            let conflict = "Cannot bundle inputs with conflicting targets: ";
            let spelled_twice = |words: &[String]| {
                ["-unknown-gfx", "-llvm-gfx"]
                    .iter()
                    .any(|env| words.iter().any(|w| w.contains(env)))
            };
            !their.stderr.contains(conflict)
                && our.stderr.contains(conflict)
                && spelled_twice(&case.words())
        },
        holds: |case, _, our| refuses(case, our, "Cannot bundle inputs with conflicting targets: "),
    },
    Difference {
        reason: "an entry fits the HIP target and the OpenMP target, LLVM's only one of them",
        applies: |case, their, our| {
            case.has("hip-openmp-compatible")
                && their.stderr.contains("Can't find bundles for ")
                && succeeds(our)
        },
        holds: |case, their, our| {
            their
                .new_files(case)
                .iter()
                .all(|(name, (_, bytes))| facts(bytes.clone()) == facts(our.bytes(name).to_vec()))
        },
    },
    Difference {
        reason: "what follows the last section of an ELF host is lost; here it stays",
        applies: |case, their, our| {
            case.has("unbundle")
                && succeeds(their)
                && succeeds(our)
                && their.files.keys().any(|name| tail(name, their, our).is_some())
        },
        holds: |case, their, our| {
            their.files.iter().all(|(name, (_, bytes))| match tail(name, their, our) {
                Some(tail) => case.files.values().any(|input| input.ends_with(tail)),
                None => facts(bytes.clone()) == facts(our.bytes(name).to_vec()),
            })
        },
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
        applies: |_, their, _| their.stderr.contains("Binary size before compression: 0 bytes"),
        holds: |case, their, our| {
            let (their, our) = (comparable(case, their), comparable(case, our));
            our.stderr
                .lines()
                .all(|line| line.contains("deprecated") || line.starts_with("Warning"))
                && (their.files, their.stdout) == (our.files, our.stdout)
        },
    },
];

/// Runs all cases on all cores and says what went wrong in which.
pub fn all(cases: std::ops::Range<usize>, run: impl Fn(usize) -> Result<(), String> + Sync) {
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
