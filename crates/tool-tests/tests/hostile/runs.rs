//! Running a tool that may crash, never end, or take all memory.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

use crate::common::{files_in, new_command};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Processor time in seconds.
    pub seconds: u64,
    /// Address space in MiB.
    pub memory: u64,
    /// Size of one written file, in MiB.
    pub file: u64,
}

pub const LIMITS: Limits = Limits { seconds: 10, memory: 4096, file: 64 };

/// Time after which a tool is one that waits for ever, on a machine with other work.
const WALL: Duration = Duration::from_secs(600);

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
    /// Not by itself, or with a file that had no end.
    Limit,
}

#[derive(Debug)]
pub struct Run {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// New files by name, also those in new directories.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Runs a tool in a directory of its own, with these files in it.
pub fn run(program: &Path, args: &[String], inputs: &[(&str, &[u8])], limits: Limits) -> Run {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().join("here");
    fs::create_dir(&here).unwrap();
    for (name, bytes) in inputs {
        fs::write(here.join(name), bytes).unwrap();
    }
    let [out, err] = ["stdout", "stderr"].map(|name| place.path().join(name));
    let ulimits = format!(
        "ulimit -c 0; ulimit -v {}; ulimit -t {}; ulimit -f {}; exec \"$@\"",
        limits.memory << 10,
        limits.seconds,
        limits.file << 11,
    );
    let mut child = new_command("/bin/sh")
        .args(["-c", &ulimits, "sh"])
        .arg(program)
        .args(args)
        .current_dir(&here)
        .env("TMPDIR", place.path())
        .env("LLVM_DISABLE_SYMBOLIZATION", "1")
        .env("LLVM_DISABLE_CRASH_REPORT", "1")
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > WALL => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let written = [&out, &err].map(|file| fs::metadata(file).unwrap().len());
    let mut files = files_in(&here);
    files.retain(|name, _| !inputs.iter().any(|(input, _)| input == name));
    let largest = files.values().map(|file| file.len() as u64).chain(written).max();
    let end = match status.map(|status| (status.code(), status.signal())) {
        // The signal for a file that is too long may be one that nobody notices.
        _ if largest >= Some(limits.file << 20) => End::Limit,
        Some((Some(code), _)) => End::Exit(code),
        Some((None, Some(signal))) if ![SIGKILL, SIGXCPU, SIGXFSZ].contains(&signal) => {
            End::Signal(signal)
        }
        _ => End::Limit,
    };
    let stderr = String::from_utf8_lossy(&fs::read(err).unwrap()).into_owned();
    Run { end, stdout: fs::read(out).unwrap(), stderr, files }
}
