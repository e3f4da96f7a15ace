//! `--wrapper-time-trace`: the times of the steps, as Chrome shows them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;
use std::{fs, io};

use serde_json::json;

use super::options::Line;

/// Times of steps.
#[derive(Debug)]
pub(super) struct Trace {
    path: Option<PathBuf>,
    start: Instant,
    /// Shorter steps are left out.
    granularity: u128,
    events: Vec<serde_json::Value>,
}

impl Trace {
    pub(super) fn new(line: &Line) -> Self {
        let granularity = line.text("wrapper-time-trace-granularity");
        Trace {
            path: line.value("wrapper-time-trace").cloned().map(OsString::into),
            start: Instant::now(),
            granularity: granularity.and_then(|text| text.parse().ok()).unwrap_or(500),
            events: Vec::new(),
        }
    }

    /// Does a step, and notes the time that it takes.
    pub(super) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let from = self.start.elapsed().as_micros();
        let result = work();
        let took = self.start.elapsed().as_micros() - from;
        if self.path.is_some() && took >= self.granularity {
            let (from, took) = (u64::try_from(from).ok(), u64::try_from(took).ok());
            self.events.push(
                json!({ "pid": 1, "tid": 1, "ph": "X", "ts": from, "dur": took, "name": name }),
            );
        }
        result
    }

    /// Writes the file, if one is wanted.
    pub(super) fn write(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        fs::write(path, json!({ "traceEvents": self.events }).to_string())
    }
}
