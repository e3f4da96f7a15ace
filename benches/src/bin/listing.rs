//! How fast `offload` starts and lists, and how much memory that takes, beside LLVM's tools where they are
//! installed: `cargo run --release -p offload-benches --bin listing`.
//!
//! Each row is the median of alternating runs in one go; compare ratios, not milliseconds.

use std::error::Error;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bundle_format::Layout;
use nix::sys::resource::{UsageWho, getrusage};

const RUNS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    // One measurement per process: the kernel keeps only the highest memory of all children.
    if let Some(command) = std::env::args_os().nth(1) {
        let start = Instant::now();
        let status = Command::new(command)
            .args(std::env::args_os().skip(2))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let time = start.elapsed();
        let memory = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
        println!("{} {memory} {}", time.as_nanos(), status.success());
        return Ok(());
    }
    let offload = build()?;
    let place = tempfile::tempdir()?;
    println!("{:<44} {:>10} {:>12}", "median of 15", "time", "peak memory");
    measure(&[("offload --version", &offload, vec!["--version".into()])])?;
    for mib in [1, 64, 1024] {
        let bundle = place.path().join(format!("bundle-{mib}-MiB"));
        make_bundle(&bundle, mib << 20)?;
        println!("\nplain bundle of {mib} MiB, 10 entries");
        let peer = PathBuf::from("/usr/lib/llvm-22/bin/clang-offload-bundler");
        let name = bundle.display().to_string();
        let mut commands: Vec<(&str, &Path, Vec<String>)> =
            vec![("offload ls", &offload, vec!["ls".into(), name.clone()])];
        if peer.exists() {
            let args = vec!["--list".into(), "--type=o".into(), format!("--input={name}")];
            commands.push(("clang-offload-bundler --list", &peer, args));
        }
        measure(&commands)?;
    }
    Ok(())
}

/// Builds the tool, as users run it, and says where it is.
fn build() -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(cargo).args(["build", "--release", "--quiet", "--bin", "offload"]).status()?;
    if !status.success() {
        return Err("building offload failed".into());
    }
    Ok(std::env::current_exe()?.with_file_name("offload"))
}

/// A HIP fat binary: an empty host entry and nine code objects of equal size. Only headers are read, so the payloads
/// may be holes.
fn make_bundle(path: &Path, size: u64) -> Result<(), Box<dyn Error>> {
    let archs = [
        "gfx803",
        "gfx900",
        "gfx906:xnack-",
        "gfx908:xnack-",
        "gfx90a:xnack+",
        "gfx90a:xnack-",
        "gfx942",
        "gfx1030",
        "gfx1100",
    ];
    let mut entries = vec![("host-x86_64-unknown-linux-gnu-".to_owned(), 0)];
    entries.extend(archs.map(|arch| (format!("hipv4-amdgcn-amd-amdhsa--{arch}"), size / 9)));
    let layout = Layout::new(entries.iter().map(|(id, size)| (id.as_bytes(), *size)), 4096)?;
    let mut file = File::create(path)?;
    file.write_all(layout.header_bytes())?;
    for i in 1..entries.len() {
        file.seek(SeekFrom::Start(layout.offset(i).ok_or("no such entry")?))?;
        file.write_all(b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xe0\0")?;
    }
    file.set_len(layout.total_size())?;
    Ok(())
}

/// Runs the commands in turn and prints their medians; the first is the one that the others are related to.
fn measure(commands: &[(&str, &Path, Vec<String>)]) -> Result<(), Box<dyn Error>> {
    let mut samples: Vec<Vec<(Duration, i64)>> = vec![Vec::new(); commands.len()];
    for _ in 0..RUNS {
        for ((_, program, args), samples) in commands.iter().zip(&mut samples) {
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
        let base = *first.get_or_insert(time);
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        let ratio =
            if ratio == 1.0 { String::new() } else { format!("  {ratio:.1} times offload's") };
        println!(
            "{name:<44} {:>7.2} ms {:>8.1} MiB{ratio}",
            time.as_secs_f64() * 1e3,
            memory as f64 / 1024.0
        );
    }
    Ok(())
}
