//! Measuring commands: their time, by the clock and of all cores, and the memory they need at their peak.
//!
//! A program that measures calls [`child`] first: it starts itself again for each run, because the kernel only keeps
//! the highest memory of all children.
#![forbid(unsafe_code)]

pub mod hostile;

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// GPUs that libraries are made for.
pub const GPUS: [&str; 10] = [
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200",
    "gfx1201",
];

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
    // As shells have it.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
    println!("{} {cpu} {} {} {code}", time.as_nanos(), usage.max_rss(), status.success());
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
pub type Sample = (f64, f64, f64);

/// The line above the figures of [`measure`].
pub fn heading(runs: usize) {
    let what = format!("median of {runs}");
    println!("{what:<44} {:>12} {:>12} {:>12}", "time", "CPU time", "peak memory");
}

/// Runs the commands in turn, `runs` times, and prints the medians of what they took. The first is the one that the
/// others are related to, by the median of the ratios of runs side by side. `prepare` is called before each command.
/// Answers the medians: time in seconds, time of all cores in seconds, memory at its peak in KiB.
///
/// # Errors
///
/// A command failed.
pub fn measure(
    runs: usize,
    commands: &[Measured<'_>],
    mut prepare: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Vec<Sample>, Box<dyn Error>> {
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
    let mut medians = Vec::new();
    for ((name, ..), samples) in commands.iter().zip(&samples) {
        let (base_name, base) = *first.get_or_insert((name, samples));
        let ratio = median(samples.iter().zip(base).map(|(sample, base)| sample.0 / base.0));
        let ratio = match base_name == *name {
            true => String::new(),
            false => format!("  {ratio:.2} times {base_name}"),
        };
        let time = median(samples.iter().map(|sample| sample.0));
        let cpu = median(samples.iter().map(|sample| sample.1));
        let memory = median(samples.iter().map(|sample| sample.2));
        println!(
            "{name:<44} {:>9.2} ms {:>9.2} ms {:>8.1} MiB{ratio}",
            time * 1e3,
            cpu * 1e3,
            memory / 1024.0
        );
        medians.push((time, cpu, memory));
    }
    Ok(medians)
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

/// The files of a directory, the largest first.
///
/// # Errors
///
/// It cannot be read.
pub fn largest_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.path()));
    }
    files.sort();
    Ok(files.into_iter().rev().map(|(_, path)| path).collect())
}

/// So many bytes of code for the `n`-th of ten GPUs: much of it as for the others, some of it not.
///
/// # Errors
///
/// As of [`machine_code`].
pub fn alike(path: &Path, n: usize, size: u64) -> Result<(), Box<dyn Error>> {
    machine_code(path, size, 0)?;
    let mut bytes = fs::read(path)?;
    for (at, byte) in bytes.iter_mut().enumerate().step_by(250) {
        if (at / 250).is_multiple_of(n / 3 + 2) {
            *byte = byte.wrapping_add(u8::try_from(n)?);
        }
    }
    Ok(fs::write(path, bytes)?)
}

/// An option as LLVM's tools take it: `-name=path`.
#[must_use]
pub fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("-{name}="));
    option.push(path);
    option
}
