//! The machine and the tools that the figures are for.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Debug)]
pub(crate) struct Machine {
    processor: String,
    pub(crate) cores: usize,
    memory: u64,
    kernel: String,
    file_system: String,
    tools: Vec<String>,
}

impl Machine {
    /// This machine, with inputs in `place`, and the first lines that tools say of their versions.
    pub(crate) fn new(place: &Path, tools: &[&Path]) -> Result<Self, Box<dyn Error>> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
        let processor = processor.unwrap_or("unknown").trim_start_matches(['\t', ' ', ':']);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            processor: processor.to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            memory: meminfo("MemTotal"),
            kernel: kernel.trim().to_owned(),
            file_system: file_system(place)?,
            tools: tools.iter().filter_map(|tool| version(tool)).collect(),
        })
    }

    /// Returns whether inputs lie in memory.
    pub(crate) fn in_memory(&self) -> bool {
        self.file_system == "tmpfs"
    }

    /// The kind of file system of the inputs.
    pub(crate) fn file_system(&self) -> &str {
        &self.file_system
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, memory, kernel, file_system, tools } = self;
        let memory = (memory + (1 << 29)) >> 30;
        write!(f, "{processor}, {cores} cores, {memory} GiB of memory, Linux {kernel}, ")?;
        write!(f, "inputs on {file_system}; {}", tools.join("; "))
    }
}

/// Bytes of memory that can be had now.
pub(crate) fn available_memory() -> u64 {
    meminfo("MemAvailable")
}

fn meminfo(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

/// The kind of the file system that has the longest mount point above `place`.
fn file_system(place: &Path) -> Result<String, Box<dyn Error>> {
    let place = place.canonicalize()?;
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        place.starts_with(point).then_some((point.len(), kind))
    });
    Ok(mounts.max_by_key(|(length, _)| *length).map_or("unknown", |(_, kind)| kind).to_owned())
}

/// The line in which a tool says its version.
fn version(tool: &Path) -> Option<String> {
    let output = Command::new(tool).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_date = |line: &str| ["Copyright", "Built"].iter().any(|word| line.starts_with(word));
    let mut lines = text.lines().filter(|line| !is_date(line));
    let line = lines.find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    Some(line.trim_matches(['*', ' ']).trim_end_matches(", by Yann Collet").to_owned())
}
