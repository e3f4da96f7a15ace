//! The machine that tests run on: none of its settings decides a verdict.
#![allow(dead_code, unused_imports, reason = "each test includes this and uses a part")]
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "included by tests; a panic fails the test"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Variables that programs get from the environment of the tests: the ones that find programs and temporary files,
/// the ones that compilers of a user's installation need, and the one of coverage runs.
const PASSED: [&str; 12] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_HOME",
    "LLVM_PROFILE_FILE",
    // Windows.
    "SystemRoot",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "PATHEXT",
];

/// Returns a command for a program: the only way in which tests make one. Its environment, umask, directory and
/// standard input are the same on every machine.
pub fn new_command(path: impl AsRef<OsStr>) -> Command {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let mut command = Command::new(path);
    let passed = PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().env("LC_ALL", "C").envs(passed);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

/// Links `main.rs` in a directory and objects with `rustc` and its default linker, which gets these arguments.
pub fn link_with_rustc(directory: &Path, objects: &[&str], arguments: &[&str]) -> Output {
    let all = objects.iter().chain(arguments).map(|argument| format!("-Clink-arg={argument}"));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    new_command(rustc).arg("main.rs").args(all).current_dir(directory).output().unwrap()
}

/// Makes a directory where programs can be run: they cannot be everywhere that temporary files can be.
pub fn runnable_directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Says that a part of a test cannot run on this machine. This is a failure where `NOT_TESTED=fail` is set, on machines
/// where everything can run.
pub fn not_tested(what: &str) {
    let is_fault = std::env::var_os("NOT_TESTED").is_some_and(|value| value == "fail");
    assert!(!is_fault, "NOT TESTED: {what}");
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !SAID.lock().unwrap().insert(what.to_owned()) {
        return;
    }
    // Not by a macro, whose output the test harness keeps to itself.
    std::io::stderr().write_all(format!("NOT TESTED: {what}\n").as_bytes()).unwrap();
}

/// Time after which a test that waits is one that hangs. No verdict about speed: a busy machine needs far less.
const HANGS: Duration = Duration::from_secs(300);

/// Waits until `look` returns something.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < HANGS, "{what}: not after {HANGS:?}");
        thread::sleep(Duration::from_micros(200));
    }
}

#[cfg(unix)]
pub use unix::{as_nobody, give, is_root, send};

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::chown;
    use std::path::Path;
    use std::process::Child;

    use rustix::process::{Pid, Signal, geteuid, kill_process};

    use super::{new_command, not_tested};

    /// Returns whether this process has the administrator's permissions, at least among the users of its container.
    pub fn is_root() -> bool {
        geteuid().is_root()
    }

    /// Gives a file to another owner or group; `false` where there are no others.
    pub fn give(path: &Path, owner: Option<u32>, group: Option<u32>) -> bool {
        if !is_root() {
            not_tested("only root can give files to others");
            return false;
        }
        let given = chown(path, owner, group);
        if let Err(error) = &given {
            // Containers of users without rights have one owner.
            not_tested(&format!("there is no owner {owner:?}:{group:?} here: {error}"));
        }
        given.is_ok()
    }

    /// Returns the command line for a user without rights; `None` where there is none.
    pub fn as_nobody(words: &[String]) -> Option<Vec<String>> {
        if !is_root() {
            return Some(words.to_vec());
        }
        let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut nobody: Vec<String> = nobody.map(String::from).into();
        nobody.push(words[0].clone());
        // The tool may lie where others must not look.
        let can = new_command(&nobody[0]).args(&nobody[1..]).arg("--help").output();
        if !can.is_ok_and(|output| output.status.success()) {
            not_tested("a user without rights cannot run the tools here");
            return None;
        }
        nobody.extend_from_slice(&words[1..]);
        Some(nobody)
    }

    /// Sends a signal to a process that was not waited for.
    pub fn send(child: &Child, signal: Signal) {
        kill_process(Pid::from_child(child), signal).unwrap();
    }
}

#[cfg(target_os = "linux")]
pub use linux::{has_open, is_ignored, stops_while_writing, written_in};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::process::Child;

    use rustix::process::Signal;

    use super::{send, wait_for};

    /// Returns whether a tool has a file open now.
    pub fn has_open(child: &Child, file: &Path) -> bool {
        let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let file = place(fs::metadata(file).unwrap());
        let open = fs::read_dir(format!("/proc/{}/fd", child.id()));
        let mut open = open.into_iter().flatten().flatten();
        open.any(|entry| fs::metadata(entry.path()).is_ok_and(|open| place(open) == file))
    }

    /// Returns the bytes of the outputs below a directory that a tool has open now; `None` if there are none. Outputs have
    /// no name until they are complete, or one of ours.
    pub fn written_in(child: &Child, directory: &Path) -> Option<u64> {
        let directory = fs::canonicalize(directory).unwrap();
        let open = fs::read_dir(format!("/proc/{}/fd", child.id()));
        let sizes = open.into_iter().flatten().flatten().filter_map(|entry| {
            let to = fs::read_link(entry.path()).ok()?;
            let metadata = fs::metadata(entry.path()).ok()?;
            let name = to.file_name()?.to_str()?;
            let is_output = metadata.nlink() == 0 || name.starts_with(".offload-");
            (metadata.is_file() && is_output && to.starts_with(&directory))
                .then_some(metadata.len())
        });
        sizes.reduce(|sum, size| sum + size)
    }

    /// Stops a tool while it has an output open below a directory; `false` if it ended without being seen then.
    pub fn stops_while_writing(child: &mut Child, directory: &Path) -> bool {
        let is_there = wait_for("the tool writes or ends", || {
            let is_over = child.try_wait().unwrap().is_some();
            written_in(child, directory).map(|_| true).or(is_over.then_some(false))
        });
        if !is_there {
            return false;
        }
        send(child, Signal::STOP);
        // A stopped process does not change, but it may have gone on before it was.
        wait_for("the tool stops", || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let state = stat.rsplit(')').next().unwrap().trim().chars().next();
            matches!(state, Some('T' | 'Z')).then_some(())
        });
        let stopped = written_in(child, directory).is_some();
        if !stopped {
            send(child, Signal::CONT);
            child.wait().unwrap();
        }
        stopped
    }

    /// Returns whether this process ignores a signal, as do the programs that it starts then.
    pub fn is_ignored(signal: Signal) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        mask >> (signal.as_raw() - 1) & 1 == 1
    }
}
