//! Measuring commands that may not end.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::measure::Sample;

/// Seconds that a run may take.
const PATIENCE: &str = "20";
/// KiB of memory that it may have.
const MEMORY: &str = "4194304";
/// Blocks of 512 bytes that each of its outputs may have.
const OUTPUT: &str = "524288";

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An exit status.
    Exit(i32),
    /// It took more than 20 seconds.
    Timeout,
    /// A signal ended it.
    Signal(i32),
}

impl Outcome {
    /// Returns a remark about an end that is not usual.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Outcome::Exit(0 | 1) => String::new(),
            Outcome::Exit(code) => format!(", exit status {code}"),
            Outcome::Timeout => ", given up".to_owned(),
            Outcome::Signal(signal) => format!(", **killed by signal {signal}**"),
        }
    }
}

/// Runs a command once, in a child of this program (see [`child`](crate::child)), with limits of time, memory and output.
///
/// # Errors
///
/// The command cannot be started.
pub fn limited(tool: &Path, args: &[OsString]) -> Result<(Sample, Outcome), Box<dyn Error>> {
    // A tool that grows without bound must not take the machine with it.
    let limited = format!("ulimit -v {MEMORY} -f {OUTPUT}; exec timeout {PATIENCE} \"$@\"");
    let output = Command::new(std::env::current_exe()?)
        .args([
            "/bin/sh".as_ref(),
            "-c".as_ref(),
            limited.as_ref(),
            "sh".as_ref(),
            tool.as_os_str(),
        ])
        .args(args)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut fields = text.split_whitespace().map(str::parse::<f64>);
    let mut field = || fields.next().and_then(Result::ok).ok_or("a measurement failed");
    let (time, cpu, memory) = (field()? / 1e9, field()? / 1e6, field()?);
    let outcome = match text.split_whitespace().last().and_then(|code| code.parse().ok()) {
        Some(124) => Outcome::Timeout,
        Some(code) if code > 128 => Outcome::Signal(code - 128),
        code => Outcome::Exit(code.unwrap_or(-1)),
    };
    Ok(((time, cpu, memory), outcome))
}
