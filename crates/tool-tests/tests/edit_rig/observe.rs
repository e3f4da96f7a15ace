//! Runs files on the stand-in for the runtime, and tells what that found registered.

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use super::zoo::{Linked, Shape, World};
use crate::common::machine::wait_for;

use super::{Complaints, command, said, tool};

/// Behaviour of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Answers of its host code, and the build ID in its memory.
    pub answers: String,
    /// Log of its registrations, in order.
    pub log: String,
    /// Bytes found at each registered address.
    pub containers: Vec<Vec<u8>>,
}

/// Loads or runs `path`, which is the file `like` or came out of it.
pub fn observe(like: &Linked, path: &Path) -> Result<Seen, String> {
    let out = tempfile::tempdir().unwrap();
    let output = start(like, path, &out);
    if !output.status.success() || !output.stderr.is_empty() {
        return Err(format!("does not run: {}: {}", output.status, said(&output)));
    }
    let read = |name: &str| fs::read(out.path().join(name));
    let log = read("log").map_err(|_| "registers nothing".to_owned())?;
    let mut containers = Vec::new();
    while let Ok(container) = read(&format!("container-{}", containers.len())) {
        containers.push(container);
    }
    Ok(Seen {
        answers: String::from_utf8_lossy(&output.stdout).into_owned(),
        log: String::from_utf8_lossy(&log).into_owned(),
        containers,
    })
}

fn start(like: &Linked, path: &Path, out: &TempDir) -> Output {
    let prefix = like.world.prefix();
    let libraries = like.place.join(format!("{prefix}runtime"));
    let loader = like.place.join(format!("{prefix}loader"));
    let mut words = match like.shape {
        Shape::Shared => vec![loader.as_path(), path],
        _ => vec![path],
    };
    let emulator = tool("qemu-aarch64");
    if like.world == World::AArch64 {
        words.splice(
            0..0,
            [emulator.as_path(), Path::new("-L"), Path::new("/usr/aarch64-linux-gnu")],
        );
    }
    let mut command = command(words[0]);
    command.args(&words[1..]).env("RIG_OUT", out.path()).env("LD_LIBRARY_PATH", libraries);
    if like.world == World::AArch64 {
        // The emulator is a program of this machine, that knows no library of the other.
        let libraries = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH").unwrap();
        let setting = format!("LD_LIBRARY_PATH={}", libraries.1.unwrap().to_str().unwrap());
        command.env("QEMU_SET_ENV", setting).env_remove("LD_LIBRARY_PATH");
    }
    wait_for("the file can be run", || {
        let output = command.output().unwrap();
        // Another thread may have started a process while this one wrote the file, which is open there until it runs.
        (!String::from_utf8_lossy(&output.stderr).contains("Text file busy")).then_some(output)
    })
}

/// Returns the complaints about the host side of an edited file.
pub fn compare_host(before: &Seen, after: &Seen) -> Complaints {
    let mut complaints = Complaints::new();
    if before.answers != after.answers {
        complaints.push(format!("host code answers {:?}, not {:?}", after.answers, before.answers));
    }
    // Where the unedited file has something odd, the edited one may be better.
    let is_odd = |line: &&str| line.ends_with("not aligned");
    let mut odd = after.log.lines().filter(is_odd);
    let plain = |log: &str| log.lines().filter(|line| !is_odd(line)).collect::<Vec<_>>().join("\n");
    if plain(&before.log) != plain(&after.log) || odd.any(|line| !before.log.contains(line)) {
        complaints.push(format!("registers\n{}, not\n{}", after.log, before.log));
    }
    complaints
}
