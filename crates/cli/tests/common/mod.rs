//! What the tests of the tools share: running `offload`, and the shipped example files.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "included by tests; a panic is how a test says no"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
    pub compression: Option<Compression>,
    pub image_format: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Compression {
    pub method: String,
    pub stored_size: u64,
    pub uncompressed_size: u64,
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

pub fn offload<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_offload")).args(args).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The rows of a file that has nothing wrong in it.
pub fn ls(file: &Path) -> Vec<Row> {
    let output = offload(["ls".as_ref(), "--json".as_ref(), file.as_os_str()]);
    assert!(output.status.success(), "{}: {}", file.display(), stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
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

/// Numbers that are the same in each run (xorshift64*).
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
