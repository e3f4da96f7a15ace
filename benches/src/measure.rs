//! Measuring commands: their time, by the clock and of all cores, and the memory they need at their peak.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Cost of one run: time in seconds, time of all cores in seconds, memory at its peak in KiB.
pub type Sample = (f64, f64, f64);

/// The time between looks at files in memory.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the command that the arguments of this process name, if the first is an absolute path, and prints what it
/// took. True when this process was such a child, and is done.
///
/// A program that measures calls this first: it starts itself again for each run, because the kernel only keeps the
/// highest memory of all children.
///
/// Memory is an upper bound: the peak of the largest process (`ru_maxrss`), and the peak of what files in memory without
/// a name (`memfd_create`) hold that the command itself has open, seen every 5 ms. The former does not include the latter.
///
/// # Errors
///
/// The command cannot be started.
pub fn child() -> Result<bool, Box<dyn Error>> {
    let Some(command) = std::env::args_os().nth(1).filter(|arg| Path::new(arg).is_absolute())
    else {
        return Ok(false);
    };
    let start = Instant::now();
    let mut child = Command::new(command)
        .args(std::env::args_os().skip(2))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (done, over) = channel::<()>();
    let files = PathBuf::from(format!("/proc/{}/fd", child.id()));
    let looks = thread::spawn(move || {
        let mut most = 0;
        while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            most = most.max(held(&files));
        }
        most
    });
    let status = child.wait()?;
    let time = start.elapsed();
    drop(done);
    let held = looks.join().unwrap_or_default();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = (usage.user_time() + usage.system_time()).num_microseconds();
    // As shells have it.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
    let memory = usage.max_rss().cast_unsigned() + held;
    println!("{} {cpu} {memory} {} {code}", time.as_nanos(), status.success());
    Ok(true)
}

/// KiB in the files without a name that a process has open: `files` is the directory of its open files.
fn held(files: &Path) -> u64 {
    let entries = fs::read_dir(files).into_iter().flatten().flatten();
    let is_nameless = |path: &Path| {
        fs::read_link(path)
            .is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
    };
    let files = entries.map(|entry| entry.path()).filter(|path| is_nameless(path));
    let files = files.filter_map(|path| fs::metadata(path).ok());
    // A file may be open more than once.
    let held: BTreeMap<u64, u64> = files.map(|file| (file.ino(), file.blocks() / 2)).collect();
    held.values().sum()
}

/// Runs a command once, in a child of this program (see [`child`]).
///
/// # Errors
///
/// The command failed.
pub fn sample(program: &Path, args: &[OsString]) -> Result<Sample, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).arg(program).args(args).output()?;
    let line = String::from_utf8(output.stdout)?;
    let mut fields = line.split_whitespace();
    let mut field = || fields.next().ok_or("a measurement failed");
    let time = Duration::from_nanos(field()?.parse()?).as_secs_f64();
    let cpu = Duration::from_micros(field()?.parse()?).as_secs_f64();
    let memory = field()?.parse()?;
    if field()? != "true" {
        return Err(format!("{} {args:?} failed", program.display()).into());
    }
    Ok((time, cpu, memory))
}

/// The value in the middle, the higher one of two; 0 of none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
