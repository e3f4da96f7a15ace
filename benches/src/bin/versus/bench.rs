//! Runs of commands side by side.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use offload_benches::{DeviceCode, Sample, build, llvm, nvidia, sample};
use tempfile::TempDir;
use twox_hash::XxHash3_64;

use crate::machine::{Machine, available_memory};
use crate::operations::Operation;
use crate::options::Options;
use crate::record::{Command, Figures, Measurement, Who};
use crate::report;
use crate::targets::{Target, note, targets};

/// Seconds that all runs of some commands side by side may take together.
const PATIENCE: f64 = 10.0;
/// Seconds for one round of them from which on one must do.
const LONG: f64 = 15.0;

pub(crate) struct Bench {
    pub(crate) options: Options,
    pub(crate) machine: Machine,
    pub(crate) code: DeviceCode,
    place: TempDir,
    tools: PathBuf,
    pub(crate) targets: Vec<Target>,
}

impl Bench {
    /// Builds the tools and the code that they are measured with.
    pub(crate) fn new(options: Options) -> Result<Self, Box<dyn Error>> {
        let tools = build(&[
            "offload",
            "clang-linker-wrapper",
            "clang-offload-bundler",
            "llvm-offload-binary",
            "llvm-offload-wrapper",
        ])?;
        let units = if options.quick { 1 } else { 10 };
        let code = DeviceCode::new(&tools.join("versus-code"), units)?;
        let place = tempfile::Builder::new().prefix("versus").tempdir()?;
        let bundler = llvm("clang-offload-bundler");
        let zstd = Path::new(ZSTD);
        let cuobjdump = nvidia("cuobjdump");
        let others: Vec<&Path> = bundler
            .iter()
            .map(|path| &**path)
            .chain([CP.as_ref(), zstd])
            .chain(cuobjdump.as_deref())
            .collect();
        let machine = Machine::new(place.path(), &others)?;
        Ok(Self { options, machine, code, place, tools, targets: targets() })
    }

    /// Fails where inputs and outputs do not fit.
    pub(crate) fn check_space(&self, operations: &[&Operation]) -> Result<(), Box<dyn Error>> {
        let stat = nix::sys::statvfs::statvfs(self.place.path())?;
        let mut free = stat.blocks_available() as u64 * stat.fragment_size() as u64;
        if self.machine.in_memory() {
            free = free.min(available_memory());
        }
        for operation in operations {
            let largest = operation.chosen_sizes(self.options.max_size).max();
            let needed = largest.map_or(0, |size| size * operation.space);
            if needed > free {
                let [needed, free] = [needed, free].map(|bytes| bytes.div_ceil(1 << 20));
                return Err(format!(
                    "{} needs {needed} MiB where TMPDIR points ({}, {free} MiB free): choose a smaller --max-size",
                    operation.name,
                    self.machine.file_system()
                )
                .into());
            }
        }
        Ok(())
    }

    /// A path for an input, or for an output if its name starts with `out`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Removes all inputs and outputs.
    pub(crate) fn clear(&self) -> Result<(), Box<dyn Error>> {
        Ok(remove(self.place.path(), "")?)
    }

    /// A tool of ours.
    pub(crate) fn ours(&self, tool: &str) -> PathBuf {
        self.tools.join(tool)
    }

    /// A command of ours.
    pub(crate) fn our(&self, name: &str, tool: &str, args: Vec<OsString>) -> Command {
        Command { who: Who::Ours, name: name.to_owned(), program: self.ours(tool), args }
    }

    /// The command that copies a file.
    pub(crate) fn cp(&self, from: &Path) -> Command {
        let args = vec![from.into(), self.path("out").into()];
        Command { who: Who::Cp, name: "cp".to_owned(), program: CP.into(), args }
    }

    /// Runs commands in turn, some times, ours first. LLVM's commands are left out where LLVM is missing or has not
    /// enough memory, others if they are not installed.
    ///
    /// The first time does not count, if there are others: fresh memory is slow on virtual machines. It is
    /// followed by `verify`. Its answers, usually hashes of the outputs, must be the same for all commands for which
    /// it has one.
    pub(crate) fn compare(
        &mut self,
        operation: &Operation,
        what: &str,
        size: u64,
        mut commands: Vec<Command>,
        mut verify: impl FnMut(&Self, &Command) -> Result<Option<u64>, Box<dyn Error>>,
    ) -> Result<Measurement, Box<dyn Error>> {
        let mut note = None;
        let memory = operation.llvm_memory * size;
        let files = if self.machine.in_memory() { size } else { 0 };
        if memory + files > available_memory() {
            let gib = memory.div_ceil(1 << 30);
            note = Some(format!("LLVM 22's tool is left out: it takes about {gib} GiB of memory"));
            commands.retain(|command| command.who != Who::Llvm);
        }
        commands.retain(|command| {
            let there = command.program.exists();
            if !there {
                note = Some(match command.who {
                    Who::Nvidia => format!("{}: not measured: no cuobjdump", command.name),
                    _ => format!("{} is not installed", command.name),
                });
            }
            there
        });
        let mut figures: Vec<Figures> = Vec::new();
        let mut agreed: Option<(String, u64)> = None;
        let start = Instant::now();
        for command in &commands {
            let sample = self.run(command)?;
            let output = outputs(self.place.path())?.iter().map(|(_, size)| size).sum();
            if let Some(hash) = verify(self, command)? {
                match &agreed {
                    Some((name, other)) if *other != hash => {
                        let who = operation.name;
                        return Err(format!("{who}: {name} and {} disagree", command.name).into());
                    }
                    _ => agreed = Some((command.name.clone(), hash)),
                }
            }
            let (who, name) = (command.who, command.name.clone());
            figures.push(Figures { who, name, samples: vec![sample], output });
        }
        let round: f64 = figures.iter().map(Figures::time).sum();
        let overhead = start.elapsed().as_secs_f64() - round;
        let runs = self.options.runs.unwrap_or_else(|| runs(size, round, overhead));
        if !self.options.quick {
            figures.iter_mut().for_each(|figures| figures.samples.clear());
        }
        for _ in usize::from(self.options.quick)..runs {
            for (command, figures) in commands.iter().zip(&mut figures) {
                figures.samples.push(self.run(command)?);
            }
        }
        remove(self.place.path(), "out")?;
        let measurement =
            Measurement { operation: operation.name, what: what.to_owned(), size, figures, note };
        println!("{}", report::rows(&measurement));
        Ok(measurement)
    }

    /// Runs a command that starts without outputs and with nothing left to write to the disk.
    fn run(&self, command: &Command) -> Result<Sample, Box<dyn Error>> {
        remove(self.place.path(), "out")?;
        if !self.machine.in_memory() {
            nix::unistd::sync();
        }
        sample(&command.program, &command.args)
    }

    /// Judges a target by a figure, if there is one.
    pub(crate) fn judge(&mut self, key: &str, figure: Option<f64>) -> Result<(), Box<dyn Error>> {
        if let Some(figure) = figure {
            note(&mut self.targets, key, figure).ok_or("no such target")?;
        }
        Ok(())
    }

    /// Judges the three targets of what only copies.
    pub(crate) fn judge_copy(
        &mut self,
        key: &str,
        result: &Measurement,
    ) -> Result<(), Box<dyn Error>> {
        self.judge(&format!("{key} cp"), result.times(Who::Cp))?;
        self.judge(&format!("{key} llvm"), result.faster_than(Who::Llvm))?;
        self.judge(&format!("{key} memory"), result.ours().map(Figures::memory))
    }

    /// Compares our tool, LLVM's of the same name, and `cp` of the file `whole`. The outputs of the tools must be the same.
    pub(crate) fn compare_copy(
        &mut self,
        operation: &Operation,
        what: &str,
        size: u64,
        tool: &str,
        args: Vec<OsString>,
        whole: &Path,
    ) -> Result<Measurement, Box<dyn Error>> {
        let commands = vec![
            self.our(tool, tool, args.clone()),
            theirs(&format!("LLVM 22's {tool}"), tool, args),
            self.cp(whole),
        ];
        self.compare(operation, what, size, commands, Bench::same_outputs)
    }

    /// A hash of all outputs, for [`Bench::compare`], of tools that write the same; of others none.
    pub(crate) fn same_outputs(&self, command: &Command) -> Result<Option<u64>, Box<dyn Error>> {
        match command.who {
            Who::Ours | Who::Llvm => self.hash_outputs().map(Some),
            Who::Cp | Who::Zstd | Who::Nvidia | Who::Python => Ok(None),
        }
    }

    /// A hash of all outputs.
    pub(crate) fn hash_outputs(&self) -> Result<u64, Box<dyn Error>> {
        let mut hash = XxHash3_64::new();
        let outputs = outputs(self.place.path())?;
        if outputs.is_empty() {
            return Err("no output".into());
        }
        for (path, size) in outputs {
            hash.write(path.file_name().unwrap_or_default().as_encoded_bytes());
            hash.write_u64(size);
            hash_into(&path, &mut hash)?;
        }
        Ok(hash.finish())
    }
}

/// Paths of `cp`, `zstd` and `unzip`.
pub(crate) const CP: &str = "/bin/cp";
pub(crate) const ZSTD: &str = "/usr/bin/zstd";
pub(crate) const UNZIP: &str = "/usr/bin/unzip";

/// LLVM's command, with a program that is not there if it is not installed.
pub(crate) fn theirs(name: &str, tool: &str, args: Vec<OsString>) -> Command {
    let program = llvm(tool).unwrap_or_default();
    Command { who: Who::Llvm, name: name.to_owned(), program, args }
}

/// A hash of a text.
pub(crate) fn hash_text(text: &str) -> u64 {
    XxHash3_64::oneshot(text.as_bytes())
}

/// A hash of a file.
pub(crate) fn hash_file(path: &Path) -> Result<u64, Box<dyn Error>> {
    let mut hash = XxHash3_64::new();
    hash_into(path, &mut hash)?;
    Ok(hash.finish())
}

fn hash_into(path: &Path, hash: &mut XxHash3_64) -> Result<(), Box<dyn Error>> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut buffer)?;
        match buffer.get(..length) {
            None | Some([]) => return Ok(()),
            Some(bytes) => hash.write(bytes),
        }
    }
}

/// Returns an odd number of runs, fewer for slow commands. One run takes `round` seconds and `overhead` more.
fn runs(size: u64, round: f64, overhead: f64) -> usize {
    let most = match size {
        0..=0x1_0000 => 21,
        0x1_0001..=0x100_0000 => 15,
        _ => 9,
    };
    let least = if round > LONG { 1 } else { 3 };
    let fits = |runs: &usize| *runs as f64 * (round + overhead.min(round)) <= PATIENCE;
    (least..most + 1).step_by(2).rev().find(fits).unwrap_or(least)
}

/// Files of the output, and their sizes, sorted.
fn outputs(place: &Path) -> Result<Vec<(PathBuf, u64)>, Box<dyn Error>> {
    let mut outputs = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() && entry.file_name().as_encoded_bytes().starts_with(b"out") {
            outputs.push((entry.path(), metadata.len()));
        }
    }
    outputs.sort();
    Ok(outputs)
}

/// Removes the files and directories whose names start with `prefix`.
fn remove(place: &Path, prefix: &str) -> std::io::Result<()> {
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}
