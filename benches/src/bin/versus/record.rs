//! Measurements and their results.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_benches::{Sample, median};

/// Maker of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Ours,
    Llvm,
    Nvidia,
    /// `cp`, the measure of what only copies, and other programs that do nothing else.
    Cp,
    Zstd,
    /// Python's packages and `zipfile`, and `unzip`.
    Python,
}

/// A command to measure.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) who: Who,
    /// Name in tables.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
}

/// Times and memory of the runs of a command.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) who: Who,
    pub(crate) name: String,
    pub(crate) samples: Vec<Sample>,
    /// Bytes of what it wrote.
    pub(crate) output: u64,
}

impl Figures {
    /// Seconds.
    pub(crate) fn time(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.0))
    }

    /// Seconds of all cores.
    pub(crate) fn cpu(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.1))
    }

    /// MiB at the peak, with files in memory that have no name.
    pub(crate) fn memory(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.2)) / 1024.0
    }

    /// Returns the ratio of its time to the time of `other`: the median of runs side by side.
    pub(crate) fn ratio(&self, other: &Self) -> f64 {
        median(self.samples.iter().zip(&other.samples).map(|(a, b)| a.0 / b.0))
    }

    /// Returns the ratio of its CPU time to the CPU time of `other`: the median of runs side by side.
    pub(crate) fn cpu_ratio(&self, other: &Self) -> f64 {
        median(self.samples.iter().zip(&other.samples).map(|(a, b)| a.1 / b.1))
    }
}

/// Commands that did the same, side by side.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) operation: &'static str,
    /// Name of the input, if the operation has several.
    pub(crate) what: String,
    /// Bytes of input.
    pub(crate) size: u64,
    /// Figures of each command; of ours first.
    pub(crate) figures: Vec<Figures>,
    /// Reason why a command is missing.
    pub(crate) note: Option<String>,
}

impl Measurement {
    /// The figures of our tool, the first one where there are several.
    pub(crate) fn ours(&self) -> Option<&Figures> {
        self.of(Who::Ours)
    }

    pub(crate) fn of(&self, who: Who) -> Option<&Figures> {
        self.figures.iter().find(|figures| figures.who == who)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Figures> {
        self.figures.iter().find(|figures| figures.name == name)
    }

    /// Returns the time of the other's tool divided by ours.
    pub(crate) fn faster_than(&self, who: Who) -> Option<f64> {
        Some(self.of(who)?.ratio(self.ours()?))
    }

    /// Returns the time of our tool divided by the other's.
    pub(crate) fn times(&self, who: Who) -> Option<f64> {
        Some(self.ours()?.ratio(self.of(who)?))
    }
}

/// A size in words: 4 KiB, 150 MB.
pub(crate) fn size_name(size: u64) -> String {
    match size {
        0 => String::new(),
        _ if size.is_multiple_of(1 << 30) => format!("{} GiB", size >> 30),
        _ if size.is_multiple_of(1 << 20) => format!("{} MiB", size >> 20),
        _ if size.is_multiple_of(1 << 10) && size < 1 << 20 => format!("{} KiB", size >> 10),
        _ if size >= 1_000_000 => format!("{} MB", (size + 500_000) / 1_000_000),
        _ => format!("{} kB", size / 1000),
    }
}
