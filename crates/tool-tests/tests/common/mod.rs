//! Helpers for the tests of the tools: run `offload`, and find the shipped example files.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "included by tests; a panic fails the test"
)]

pub mod installed;
pub mod machine;
pub mod place;

pub use installed::tool;
pub use machine::new_command;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Deserialize;

/// One object of `offload ls --json`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub file: String,
    pub index: usize,
    pub path: Vec<String>,
    pub container: String,
    pub kind: Option<String>,
    pub triple: Option<String>,
    pub target: Option<String>,
    pub id: Option<String>,
    pub offset: Option<u64>,
    pub offset_in_container: u64,
    pub size: u64,
    pub stored_size: Option<u64>,
    pub stored_estimate: u64,
    pub compression: Option<Compression>,
    /// Null where it was not read.
    pub image_format: Option<String>,
    /// The target that an image holds instead of its own, and the difference in words.
    #[serde(default)]
    pub holds: Option<String>,
    #[serde(default)]
    pub disagreement: Option<String>,
    /// `scan` where no section for device code accounts for the container.
    #[serde(default)]
    pub found_by: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Compression {
    pub method: String,
    pub stored_size: u64,
    pub uncompressed_size: u64,
}

/// A tool of LLVM 22, which must be installed: `/usr/lib/llvm-22`, or where `LLVM` points.
pub fn llvm(tool: &str) -> PathBuf {
    let prefix = std::env::var_os("LLVM").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join("bin").join(tool);
    assert!(path.exists(), "{} is missing: install clang-22, llvm-22 and lld-22", path.display());
    path
}

/// A tool of LLVM 24, which must be unpacked: `target/llvm24`, or where `LLVM24` points.
pub fn llvm24(tool: &str) -> PathBuf {
    unpacked_llvm(24, tool)
}

/// A tool of a newer release of LLVM, which must be unpacked: `target/llvm23`, or where `LLVM23` points.
pub fn unpacked_llvm(release: u32, tool: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let default = target.join(format!("llvm{release}"));
    let prefix = std::env::var_os(format!("LLVM{release}")).map_or(default, PathBuf::from);
    let path = prefix.join("bin").join(tool);
    assert!(path.exists(), "{} is missing: .ci/xtask llvm-unpacked {release}", path.display());
    path
}

/// A tool of NVIDIA's, which must be unpacked: `target/nvidia`, or where `CUDA` points.
pub fn nvidia(tool: &str) -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nvidia");
    let prefix = std::env::var_os("CUDA").map_or(default, PathBuf::from);
    let path = prefix.join("bin").join(tool);
    assert!(path.exists(), "{} is missing: .ci/nvidia --fetch", path.display());
    path.canonicalize().unwrap()
}

/// A program that changes finished ELF files, which must be unpacked: `target/post-link`, or where `POST_LINK` points.
pub fn post_link(name: &str) -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/post-link");
    let path = std::env::var_os("POST_LINK").map_or(default, PathBuf::from).join(name);
    assert!(path.exists(), "{} is missing: .ci/post-link target/post-link", path.display());
    path.canonicalize().unwrap()
}

/// The library that LLVM's tools load: much real machine code. A tool itself where they are linked without one.
pub fn llvm_library() -> PathBuf {
    let tool = llvm("clang");
    let output = new_command("ldd").arg(&tool).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let mut fields = output.lines().map(str::split_whitespace);
    let path = fields.find_map(|mut fields| {
        fields.next()?.starts_with("libLLVM.so").then(|| fields.nth(1)).flatten().map(PathBuf::from)
    });
    path.unwrap_or(tool)
}

/// The command of a tool of LLVM 22.
pub fn llvm_command(tool: &str) -> Command {
    new_command(llvm(tool))
}

/// Runs a command that must succeed, and returns what it prints.
pub fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program in a directory, where it must succeed, and returns what it prints.
pub fn printed_in(program: impl AsRef<OsStr>, args: &[&str], directory: &Path) -> String {
    printed(new_command(program).args(args).current_dir(directory))
}

/// Runs a tool in a directory, with something on standard input.
pub fn run_with(tool: &str, place: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = new_command(tool)
        .args(args)
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A tool that does not read may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The files in a directory and those below it, by name, with their contents.
pub fn files_in(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            let inner = files_in(&entry.path()).into_iter();
            files.extend(inner.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap_or_default());
        }
    }
    files
}

/// A shipped example file.
pub fn data(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// Every shipped example file, sorted by name.
pub fn all_data() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .filter(|path| !path.extension().is_some_and(|ext| ext == "sh" || ext == "md"))
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    files.sort();
    assert!(files.len() > 20, "the example files are missing");
    files
}

pub fn offload<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    new_command(tool("offload")).args(args).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The rows of a file that has nothing wrong in it.
pub fn ls(file: &Path) -> Vec<Row> {
    let output =
        offload(["ls".as_ref(), "--json".as_ref(), "--formats".as_ref(), file.as_os_str()]);
    assert!(output.status.success(), "{}: {}", file.display(), stderr(&output));
    rows(&output.stdout)
}

/// The rows of a JSON document of `offload`.
pub fn rows<T: serde::de::DeserializeOwned>(document: &[u8]) -> Vec<T> {
    try_rows(document)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(document)))
}

/// As [`rows`], of a document that may be none.
pub fn try_rows<T: serde::de::DeserializeOwned>(document: &[u8]) -> serde_json::Result<Vec<T>> {
    let mut document: serde_json::Value = serde_json::from_slice(document)?;
    let rows = match document["command"].as_str() {
        Some("ls" | "extract" | "link") if document.get("images").is_some() => "images",
        Some("ls" | "doctor") => "packages",
        Some("kernels") => "kernels",
        Some("match") => "answers",
        Some("gpus") => "gpus",
        Some("diff") => "changes",
        Some("bundle") => "entries",
        Some("verify" | "check") => "findings",
        _ => "files",
    };
    serde_json::from_value(document[rows].take())
}

/// The bytes of one image, as `extract` gives them.
pub fn extract(file: &Path, index: usize) -> Vec<u8> {
    let index = index.to_string();
    let output = offload([
        "extract".as_ref(),
        file.as_os_str(),
        "--index".as_ref(),
        index.as_ref(),
        "--stdout".as_ref(),
    ]);
    assert!(output.status.success(), "{} #{index}: {}", file.display(), stderr(&output));
    output.stdout
}

/// Returns whether a file is an object with sections of a bundle: ELF, or COFF for x86-64.
pub fn is_object_form(bytes: &[u8]) -> bool {
    let magic = b"__CLANG_OFFLOAD_BUNDLE__";
    (bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"\x64\x86"))
        && bytes.windows(magic.len()).any(|window| window == magic)
}

/// Returns sections with their contents, symbols and relocations of an object, as `llvm-readobj` prints them. Omits
/// their places in the file and those of their names: `llvm-objcopy` lays out the whole object again when it adds
/// sections, ours leaves everything in its place.
pub fn object_facts(readobj: &Path, bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let output = new_command(readobj)
        .args(["--sections", "--section-data", "--symbols", "--relocs"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut facts = Vec::new();
    let (mut name, mut is_table, mut in_data) = (String::new(), false, false);
    for line in stdout(&output).lines() {
        let fact = line.trim_start();
        if let Some(named) = fact.strip_prefix("Name: ") {
            // The name's place in the string table follows.
            name = named.split(" (").next().unwrap().to_owned();
            is_table = false;
            facts.push(name.clone());
            continue;
        }
        is_table |= fact.starts_with("Type: SHT_STRTAB") || fact.starts_with("Type: SHT_SYMTAB");
        in_data = (in_data || fact == "SectionData (") && fact != ")";
        let is_place = ["File: ", "Offset: ", "PointerTo", "StringTable"]
            .iter()
            .any(|start| fact.starts_with(start));
        // objcopy may take the symbol table from this section; linkers do without.
        let is_lost = name == ".llvm_addrsig" && fact.starts_with("Link: ");
        if !(is_place || is_lost || is_table && in_data) {
            facts.push(fact.to_owned());
        }
    }
    facts.join("\n")
}

/// Numbers that are the same in each run (xorshift64*).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.max(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number less than `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % n
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
