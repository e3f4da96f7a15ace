//! Measuring commands: their time, by the clock and of all cores, and the memory they need at their peak.
//!
//! A program that measures calls [`child`] first: it starts itself again for each run, because the kernel only keeps
//! the highest memory of all children.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

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
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = (usage.user_time() + usage.system_time()).num_microseconds();
    println!("{} {cpu} {} {}", time.as_nanos(), usage.max_rss(), status.success());
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

/// What one run took: time in seconds, time of all cores in seconds, memory at its peak in KiB.
type Sample = (f64, f64, f64);

/// The line above the figures of [`measure`].
pub fn heading(runs: usize) {
    let what = format!("median of {runs}");
    println!("{what:<44} {:>12} {:>12} {:>12}", "time", "CPU time", "peak memory");
}

/// Runs the commands in turn, `runs` times, and prints the medians of what they took. The first is the one that the
/// others are related to, by the median of the ratios of runs side by side. `prepare` is called before each command.
///
/// # Errors
///
/// A command failed.
pub fn measure(
    runs: usize,
    commands: &[Measured<'_>],
    mut prepare: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); commands.len()];
    for _ in 0..runs {
        for ((_, program, args), samples) in commands.iter().zip(&mut samples) {
            prepare()?;
            let output = Command::new(std::env::current_exe()?).arg(program).args(args).output()?;
            let line = String::from_utf8(output.stdout)?;
            let mut fields = line.split_whitespace();
            let mut field = || fields.next().ok_or("a measurement failed");
            let nanoseconds = Duration::from_nanos(field()?.parse()?);
            let microseconds = Duration::from_micros(field()?.parse()?);
            let memory = field()?.parse()?;
            samples.push((nanoseconds.as_secs_f64(), microseconds.as_secs_f64(), memory));
            if field()? != "true" {
                return Err(format!("{} {args:?} failed", program.display()).into());
            }
        }
    }
    let mut first: Option<(&str, &[Sample])> = None;
    for ((name, ..), samples) in commands.iter().zip(&samples) {
        let (base_name, base) = *first.get_or_insert((name, samples));
        let ratio = median(samples.iter().zip(base).map(|(sample, base)| sample.0 / base.0));
        let ratio = match base_name == *name {
            true => String::new(),
            false => format!("  {ratio:.2} times {base_name}"),
        };
        println!(
            "{name:<44} {:>9.2} ms {:>9.2} ms {:>8.1} MiB{ratio}",
            median(samples.iter().map(|sample| sample.0)) * 1e3,
            median(samples.iter().map(|sample| sample.1)) * 1e3,
            median(samples.iter().map(|sample| sample.2)) / 1024.0
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A file of machine code: the libraries of this system one after the other, from a place on that `seed` decides.
///
/// # Errors
///
/// There are no libraries, or the file cannot be written.
pub fn machine_code(path: &Path, size: u64, seed: usize) -> Result<(), Box<dyn Error>> {
    let mut libraries: Vec<PathBuf> = Vec::new();
    for directory in ["/usr/lib/llvm-22/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"]
    {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        libraries.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.is_file() && path.to_string_lossy().contains(".so")),
        );
    }
    libraries.sort();
    let start = seed * 37 % libraries.len().max(1);
    let mut libraries = libraries.iter().cycle().skip(start);
    let mut file = File::create(path)?;
    let mut left = size;
    while left > 0 {
        let library = libraries.next().ok_or("no libraries to take machine code from")?;
        left -= io::copy(&mut File::open(library)?.take(left), &mut file)?;
    }
    Ok(())
}

/// One file after the other.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn concatenate(files: &[PathBuf], to: &Path) -> io::Result<()> {
    let mut out = File::create(to)?;
    for file in files {
        io::copy(&mut File::open(file)?, &mut out)?;
    }
    Ok(())
}
