//! The command line.

use std::error::Error;

use crate::operations::OPERATIONS;

const SMALL: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Options {
    operations: Vec<String>,
    pub(crate) max_size: u64,
    /// Number of runs of each command, instead of as many as fit the time.
    pub(crate) runs: Option<usize>,
    pub(crate) quick: bool,
}

impl Options {
    /// None when asked for help.
    pub(crate) fn parse(
        words: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, Box<dyn Error>> {
        let mut options =
            Self { operations: Vec::new(), max_size: u64::MAX, runs: None, quick: false };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "-h" | "--help" => return Ok(None),
                "--max-size" => options.max_size = size(&value()?)?,
                "--runs" => options.runs = Some(value()?.parse::<usize>()?.max(1)),
                "--quick" => options.quick = true,
                name if OPERATIONS.iter().any(|operation| operation.name == name) => {
                    options.operations.push(word);
                }
                _ => return Err(format!("neither an option nor an operation: {word}").into()),
            }
        }
        if options.quick {
            options.max_size = options.max_size.min(SMALL);
            options.runs = options.runs.or(Some(1));
        }
        Ok(Some(options))
    }

    pub(crate) fn chooses(&self, operation: &str) -> bool {
        self.operations.is_empty() || self.operations.iter().any(|name| name == operation)
    }
}

/// A number of bytes, with a suffix: 64K, 16M, 1G.
fn size(text: &str) -> Result<u64, Box<dyn Error>> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match text.strip_prefix(digits) {
        Some("K") => 10,
        Some("M") => 20,
        Some("G") => 30,
        Some("") => 0,
        _ => return Err(format!("not a size: {text}").into()),
    };
    digits.parse::<u64>()?.checked_mul(1 << shift).ok_or_else(|| "too large a size".into())
}

pub(crate) fn help() {
    println!(
        "Our tools beside LLVM 22's, cp, zstd, llc, cuobjdump and Python's wheel: versus [OPTIONS] [OPERATION...]

  --max-size SIZE  leave larger inputs out (64K, 16M, 1G)
  --runs N         N runs of each command, instead of 3 to 21 as time allows
  --quick          one run, of inputs up to 1 MiB: do all commands work, and agree?

Inputs lie where TMPDIR points: best on a tmpfs (TMPDIR=/dev/shm), for a disk adds its own noise. CODE_OBJECTS names a
directory of real code objects; the ten largest are compressed in the place of generated ones. CUDA names a directory
with NVIDIA's bin/cuobjdump, by default nvidia in the target directory. pip downloads wheels, once; where it cannot, they are not
measured.

Operations (all, where none is named):"
    );
    for operation in OPERATIONS {
        println!("  {:<18} {}", operation.name, operation.about);
    }
}
