//! Measuring commands: their time, and the memory they need at their peak.
//!
//! A program that measures calls [`child`] first: it starts itself again for each run, because the kernel only keeps
//! the highest memory of all children.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// A command to measure: its name in the table, the program, its arguments.
pub type Measured<'a> = (&'a str, &'a Path, Vec<OsString>);

/// Runs the command that the arguments of this process name, if any, and prints what it took. True when this process
/// was such a child, and is done.
///
/// # Errors
///
/// The command cannot be started.
pub fn child() -> Result<bool, Box<dyn Error>> {
    let Some(command) = std::env::args_os().nth(1) else {
        return Ok(false);
    };
    let start = Instant::now();
    let status = Command::new(command)
        .args(std::env::args_os().skip(2))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let time = start.elapsed();
    let memory = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    println!("{} {memory} {}", time.as_nanos(), status.success());
    Ok(true)
}

/// Builds a tool of this workspace, as users run it, and says where it is.
///
/// # Errors
///
/// The build failed.
pub fn build(tool: &str) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(cargo).args(["build", "--release", "--quiet", "--bin", tool]).status()?;
    if !status.success() {
        return Err(format!("building {tool} failed").into());
    }
    Ok(std::env::current_exe()?.with_file_name(tool))
}

/// LLVM 22's tool of this name, where it is installed.
#[must_use]
pub fn llvm(tool: &str) -> Option<PathBuf> {
    Some(Path::new("/usr/lib/llvm-22/bin").join(tool)).filter(|path| path.exists())
}

/// Runs the commands in turn, `runs` times, and prints their medians; the first is the one that the others are
/// related to. `prepare` is called before each command.
///
/// # Errors
///
/// A command failed.
pub fn measure(
    runs: usize,
    commands: &[Measured<'_>],
    mut prepare: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut samples: Vec<Vec<(Duration, i64)>> = vec![Vec::new(); commands.len()];
    for _ in 0..runs {
        for ((_, program, args), samples) in commands.iter().zip(&mut samples) {
            prepare()?;
            let output = Command::new(std::env::current_exe()?).arg(program).args(args).output()?;
            let line = String::from_utf8(output.stdout)?;
            let mut fields = line.split_whitespace();
            let mut field = || fields.next().ok_or("a measurement failed");
            samples.push((Duration::from_nanos(field()?.parse()?), field()?.parse()?));
            if field()? != "true" {
                return Err(format!("{} {args:?} failed", program.display()).into());
            }
        }
    }
    let mut first = None;
    for ((name, ..), mut samples) in commands.iter().zip(samples) {
        samples.sort();
        let Some(&(time, memory)) = samples.get(samples.len() / 2) else {
            continue;
        };
        let (base, base_name) = *first.get_or_insert((time, *name));
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        let ratio = if base_name == *name {
            String::new()
        } else {
            format!("  {ratio:.2} times {base_name}")
        };
        println!(
            "{name:<44} {:>9.2} ms {:>8.1} MiB{ratio}",
            time.as_secs_f64() * 1e3,
            memory as f64 / 1024.0
        );
    }
    Ok(())
}
