//! Does the time of a command grow faster than its input? `cargo run --release -p offload-benches --bin doubling`. With words
//! after `--`, only the inputs and commands whose names contain one of them.
//!
//! Every command of `offload` and every drop-in reads every kind of input in `offload_benches::hostile`, and trees of files, in
//! sizes that double twice: members, names, rows, sections, symbol tables, entries, findings, kernels, targets, layers. The time of
//! all cores counts. Where an exponent is above the limit, the same sizes and those between and after them are measured
//! again, and the least exponent counts. Ends with 1 if one stays above the limit. Put TMPDIR into memory: file systems
//! on disks take more than twice the time for twice as many files.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use offload_benches::{Outcome, build, child, hostile, limited};

/// The largest exponent of a command whose time grows as its input does: sorting, and caches that become too small.
const LIMIT: f64 = 1.15;
/// Seconds of a run that is long enough to be measured; and of one after which the input is not doubled.
const MEASURABLE: f64 = 0.04;
const ENOUGH: f64 = 0.4;
/// Sizes in bytes, each four times the one before.
const SMALLEST: usize = 32 << 10;
const LARGEST: usize = 2 << 20;
/// Runs of a size that is measured again.
const RUNS: usize = 3;

/// A tool with its arguments: `{}` is the input, `{out}` an output, `{dir}` a new directory, `{image}` a device image.
struct Question(&'static str, &'static [&'static str]);

const FILES: &[Question] = &[
    Question("offload", &["ls", "{}"]),
    Question("offload", &["ls", "--json", "{}"]),
    Question("offload", &["ls", "--tree", "--hash", "{}"]),
    Question("offload", &["match", "--gpu", "gfx906,sm_90", "{}"]),
    Question("offload", &["match", "--json", "--gpu", "gfx906", "{}"]),
    Question("offload", &["kernels", "{}"]),
    Question("offload", &["size", "--by", "kernel", "{}"]),
    Question("offload", &["diff", "{}", "{}"]),
    Question("offload", &["report", "{}", "-o", "{out}"]),
    Question("offload", &["verify", "{}"]),
    Question("offload", &["check", "--require", "gfx906", "{}"]),
    Question("offload", &["variant", "show", "{}"]),
    Question("offload", &["extract", "{}", "-o", "{dir}"]),
    Question("offload", &["unbundle", "{}", "hip-amdgcn-amd-amdhsa--gfx906={out}"]),
    Question("offload", &["bundle", "-o", "{out}", "hip-amdgcn-amd-amdhsa--gfx906={}"]),
    Question(
        "offload",
        &["pack", "-o", "{out}", "kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx906,file={}"],
    ),
    Question("offload", &["fatbin", "-o", "{out}", "--image", "sm_90={}"]),
    Question(
        "offload",
        &[
            "thin",
            "{}",
            "--keep",
            "gfx90a",
            "-o",
            "{out}",
            "--allow-missing",
            "--allow-empty",
            "--allow-uneditable",
            "--allow-findings",
        ],
    ),
    Question("offload", &["shrink", "{}", "--gpu", "gfx90a", "-o", "{out}"]),
    Question(
        "offload",
        &[
            "remove",
            "{}",
            "--id",
            "hip-amdgcn-amd-amdhsa--gfx906",
            "-o",
            "{out}",
            "--allow-empty",
            "--allow-uneditable",
            "--allow-findings",
        ],
    ),
    Question(
        "offload",
        &[
            "replace",
            "{}",
            "hip-amdgcn-amd-amdhsa--gfx906={image}",
            "--any-image",
            "--allow-findings",
            "-o",
            "{out}",
        ],
    ),
    Question(
        "offload",
        &[
            "add",
            "{}",
            "hip-amdgcn-amd-amdhsa--gfx1100={image}",
            "--any-image",
            "--allow-findings",
            "-o",
            "{out}",
        ],
    ),
    Question("offload", &["compress", "{}", "-o", "{out}", "--allow-findings"]),
    Question("offload", &["decompress", "{}", "-o", "{out}", "--allow-findings"]),
    Question("offload", &["split", "--group", "g", "{}", "-o", "{dir}"]),
    Question("offload", &["join", "{}", "-o", "{out}"]),
    Question("offload", &["link", "--print-plan", "{}"]),
    Question("offload", &["wrap", "--kind", "hip", "-o", "{out}", "{}"]),
    Question("clang-offload-bundler", &["--list", "--type=o", "--input={}"]),
    Question(
        "clang-offload-bundler",
        &[
            "--unbundle",
            "--type=a",
            "--targets=hip-amdgcn-amd-amdhsa--gfx906",
            "--input={}",
            "--output={out}",
        ],
    ),
    Question("llvm-offload-binary", &["{}", "--image=arch=gfx906,file={out}"]),
    Question(
        "clang-linker-wrapper",
        &[
            "--archive-members=needed",
            "--dry-run",
            "--host-triple=x86_64-unknown-linux-gnu",
            "--linker-path=/bin/true",
            "-o",
            "{out}",
            "{}",
        ],
    ),
    Question("roc-obj-ls", &["{}"]),
];
/// Commands that read no file whose size can be doubled, or only trees.
const OTHERS: [&str; 7] = ["gpus", "why", "explain", "completions", "man", "help", "doctor"];

const TREES: &[(&str, Tree, &[Question])] = &[
    (
        "directory of objects",
        objects,
        &[
            Question("offload", &["ls", "{}"]),
            Question("offload", &["match", "--gpu", "gfx906", "{}"]),
            Question("offload", &["kernels", "{}"]),
            Question("offload", &["verify", "{}"]),
            Question("offload", &["diff", "{}", "{}"]),
            Question("offload", &["extract", "{}", "-o", "{dir}"]),
        ],
    ),
    ("environment of packages", environment, ENVIRONMENT),
    ("environment, rows of one file", rows_of_one_file, ENVIRONMENT),
];
const ENVIRONMENT: &[Question] = &[
    Question("offload", &["doctor", "--prefix", "{}", "--gpu", "gfx906"]),
    Question("offload", &["check", "--require", "gfx906", "{}"]),
    Question("offload", &["shrink", "--plan", "--gpu", "gfx906", "{}"]),
];

/// A function that makes a tree of about this many bytes.
type Tree = fn(&Path, usize) -> io::Result<()>;

fn objects(place: &Path, n: usize) -> io::Result<()> {
    fs::create_dir(place)?;
    let object = hostile::elf_with_bundles(400);
    (0..n / 1024).try_for_each(|i| fs::write(place.join(format!("{i:07}.o")), &object))
}

/// Makes an environment of packages, each with these rows in its list.
fn packages(place: &Path, names: impl Iterator<Item = String>, record: &str) -> io::Result<()> {
    let packages = place.join("lib/python3.11/site-packages");
    fs::create_dir_all(&packages)?;
    fs::write(place.join("pyvenv.cfg"), "home = /usr/bin\n")?;
    fs::write(packages.join("code.o"), hostile::elf_with_bundles(400))?;
    for name in names {
        let info = packages.join(format!("{name}-1.dist-info"));
        fs::create_dir(&info)?;
        fs::write(
            info.join("METADATA"),
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"),
        )?;
        fs::write(info.join("RECORD"), record)?;
    }
    Ok(())
}

fn environment(place: &Path, n: usize) -> io::Result<()> {
    packages(place, (0..n / 2048).map(|i| format!("foo{i:07}")), "code.o,,\n")
}

fn rows_of_one_file(place: &Path, n: usize) -> io::Result<()> {
    packages(place, std::iter::once("foo".to_owned()), &"code.o,,\n".repeat(n / 9))
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if child()? {
        return Ok(ExitCode::SUCCESS);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let place = tempfile::tempdir()?;
    let mut tools: Vec<_> = FILES.iter().map(|question| question.0).collect();
    tools.dedup();
    let tools_at = build(&tools)?;
    every_command_is_here(&tools_at.join("offload"))?;
    std::env::set_current_dir(place.path())?;
    fs::write("image", "an image")?;
    let (nothing, _) = limited(&tools_at.join("offload"), &["--version".into()])?;
    let mut doubling = Doubling { tools: &tools_at, nothing: nothing.1, words, failed: Vec::new() };
    println!("| input | read by | size | time | grows as |");
    println!("|---|---|---:|---:|---:|");
    for (name, make) in hostile::ALL {
        let make = |path: &Path, n| {
            fs::write(path, make(n)).and_then(|()| fs::copy(path, "member").map(drop))
        };
        doubling.measure(name, &make, FILES)?;
    }
    for (name, make, questions) in TREES {
        doubling.measure(name, make, questions)?;
    }
    for failed in &doubling.failed {
        println!("faster than its input: {failed}");
    }
    Ok(if doubling.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails if the tool has a command that is asked about no input.
fn every_command_is_here(offload: &Path) -> Result<(), Box<dyn Error>> {
    let help = String::from_utf8(Command::new(offload).arg("--help").output()?.stdout)?;
    let listed = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = listed.filter_map(|line| line.split_once("  ").map(|(name, _)| name));
    let is_name =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    let asked = |name: &str| FILES.iter().any(|Question(_, args)| args.first() == Some(&name));
    let mut missing = names.filter(is_name).filter(|name| !asked(name) && !OTHERS.contains(name));
    missing.next().map_or(Ok(()), |name| Err(format!("no input for offload {name}").into()))
}

struct Doubling<'a> {
    tools: &'a Path,
    /// Seconds of a run that reads nothing.
    nothing: f64,
    words: Vec<String>,
    failed: Vec<String>,
}

impl Doubling<'_> {
    /// Measures commands on inputs of one kind, and prints what takes long enough.
    fn measure(
        &mut self,
        name: &str,
        make: &dyn Fn(&Path, usize) -> io::Result<()>,
        questions: &[Question],
    ) -> Result<(), Box<dyn Error>> {
        for Question(tool, args) in questions {
            let words = args.iter().take_while(|arg| !arg.contains('{') && **arg != "-o");
            let title = std::iter::once(tool).chain(words).copied().collect::<Vec<_>>().join(" ");
            let is_meant =
                |word: &String| name.contains(word.as_str()) || title.contains(word.as_str());
            if !self.words.is_empty() && !self.words.iter().any(is_meant) {
                continue;
            }
            let row = |size: usize, time: f64, grows: f64| {
                let size = size as f64 / f64::from(1 << 20);
                println!(
                    "| {name} | `{title}` | {size:.2} MiB | {:.0} ms | {grows:.2} |",
                    time * 1e3
                );
            };
            let (mut size, mut times) = self.times(tool, args, make, SMALLEST)?;
            if times.len() < 2 {
                (size, times) = self.times(tool, args, make, SMALLEST / 16)?;
            }
            let [.., before, last] = times[..] else {
                row(size, f64::INFINITY, f64::INFINITY);
                self.failed.push(format!("{name}, {title}: more than {ENOUGH} s for {size} bytes"));
                continue;
            };
            if last < MEASURABLE {
                continue;
            }
            let mut grows = exponent(before, last);
            if grows > LIMIT {
                grows = grows.min(self.again(tool, args, make, size)?);
            }
            row(size, last, grows);
            if grows > LIMIT {
                self.failed.push(format!("{name}, {title}: exponent {grows:.2}"));
            }
        }
        Ok(())
    }

    /// Returns the times for sizes that grow until a run is long enough, and the last size.
    fn times(
        &self,
        tool: &str,
        args: &[&str],
        make: &dyn Fn(&Path, usize) -> io::Result<()>,
        smallest: usize,
    ) -> Result<(usize, Vec<f64>), Box<dyn Error>> {
        let (mut size, mut times) = (smallest, Vec::new());
        loop {
            let time = self.time(tool, args, make, size)?;
            times.push(time);
            if size >= LARGEST || time > ENOUGH {
                return Ok((size, times));
            }
            size *= 4;
        }
    }

    /// Measures a size again, with more runs, and larger ones: returns the least exponent. Where the memory of a run outgrows a
    /// cache the time grows faster once; a loop in a loop does so at every size.
    fn again(
        &self,
        tool: &str,
        args: &[&str],
        make: &dyn Fn(&Path, usize) -> io::Result<()>,
        size: usize,
    ) -> Result<f64, Box<dyn Error>> {
        let mut times = Vec::new();
        for size in [size / 4, size / 2, size, size * 2, size * 4, size * 8] {
            let mut least = f64::INFINITY;
            for _ in 0..RUNS {
                least = least.min(self.time(tool, args, make, size)?);
            }
            times.push(least);
            if least > 5.0 * ENOUGH {
                break;
            }
        }
        let pairs = times.iter().zip(times.iter().skip(2));
        Ok(pairs.map(|(before, last)| exponent(*before, *last)).fold(f64::INFINITY, f64::min))
    }

    /// Returns the seconds of all cores for an input of this size, less the seconds of a run that reads nothing.
    fn time(
        &self,
        tool: &str,
        args: &[&str],
        make: &dyn Fn(&Path, usize) -> io::Result<()>,
        size: usize,
    ) -> Result<f64, Box<dyn Error>> {
        for old in ["input", "output", "directory"].map(Path::new) {
            if old.is_dir() {
                fs::remove_dir_all(old)?;
            } else if old.exists() {
                fs::remove_file(old)?;
            }
        }
        make(Path::new("input"), size)?;
        let names =
            [("{}", "input"), ("{out}", "output"), ("{dir}", "directory"), ("{image}", "image")];
        let fill = |arg: &&str| {
            names.iter().fold((*arg).to_owned(), |arg, (name, path)| arg.replace(name, path)).into()
        };
        let args: Vec<OsString> = args.iter().map(fill).collect();
        let ((_, time, _), outcome) = limited(&self.tools.join(tool), &args)?;
        match outcome {
            Outcome::Exit(0 | 1) => Ok((time - self.nothing).max(1e-4)),
            Outcome::Timeout => Ok(f64::INFINITY),
            outcome => Err(format!("{tool} {args:?}, {size} bytes{}", outcome.text()).into()),
        }
    }
}

/// Returns the exponent of growth over two doublings.
fn exponent(before: f64, last: f64) -> f64 {
    (last / before).log2() / 2.0
}
