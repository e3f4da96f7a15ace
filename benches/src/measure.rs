//! Measuring commands: their time, by the clock and of all cores, and the memory they need at their peak.

use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Cost of one run: time in seconds, time of all cores in seconds, memory at its peak in KiB.
pub type Sample = (f64, f64, f64);

/// Runs the command that the arguments of this process name, if the first is an absolute path, and prints what it
/// took. True when this process was such a child, and is done.
///
/// A program that measures calls this first: it starts itself again for each run, because the kernel only keeps the
/// highest memory of all children.
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
    let status = Command::new(command)
        .args(std::env::args_os().skip(2))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let time = start.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = (usage.user_time() + usage.system_time()).num_microseconds();
    // As shells have it.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
    println!("{} {cpu} {} {} {code}", time.as_nanos(), usage.max_rss(), status.success());
    Ok(true)
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
