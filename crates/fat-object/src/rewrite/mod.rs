//! Bundles one after the other, as in a file or a section `.hip_fatbin`, with each of them compressed or decompressed.

mod error;

use std::io::{self, Read, Write};
use std::ops::Range;

use bundle_format::binary::Bundle;
use bundle_format::text::{TextBundle, is_text_bundle};
use ccob::{Decompressed, Limits, WriteOptions};

use crate::containers::{bundle_prefix, read_and};
use crate::edit::Change;
use crate::image_format::{ImageFormat, SNIFF_LEN};
use crate::source::{Origin, ReadSeek, Source};

pub use error::RewriteError;

/// The HIP runtime maps bundles by the page: where linkers put one after another, each starts at a multiple of this.
const PAGE: u64 = 4096;

/// How [`compress_bundles`] compresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressOptions {
    /// Method, level, version of the format, threads.
    pub write: WriteOptions,
    /// Whether bundles that are compressed already are decompressed and compressed anew. Otherwise they stay as they
    /// are.
    pub recompress: bool,
    /// How much a compressed bundle may expand to.
    pub limits: Limits,
}

impl CompressOptions {
    /// These options with another method, level, version, number of threads.
    #[must_use]
    pub fn with_write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }

    /// These options, with compressed bundles compressed anew or not.
    #[must_use]
    pub fn with_recompress(mut self, recompress: bool) -> Self {
        self.recompress = recompress;
        self
    }

    /// These options with another limit of what a compressed bundle may expand to.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// What [`compress_bundles`] or [`decompress_bundles`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// Every bundle, in file order.
    pub bundles: Vec<RewrittenBundle>,
    /// Bytes read.
    pub input_size: u64,
    /// Bytes written.
    pub output_size: u64,
}

impl Rewritten {
    /// How many bundles are not what they were.
    #[must_use]
    pub fn changed(&self) -> usize {
        self.bundles.iter().filter(|bundle| bundle.change != Change::Kept).count()
    }
}

/// One bundle before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrittenBundle {
    /// What was done.
    pub change: Change,
    /// Where it lies in the input.
    pub input: Range<u64>,
    /// Where it lies in the output.
    pub output: Range<u64>,
    /// Its size without compression. For a compressed one that was kept this is what its header says.
    pub uncompressed_size: u64,
}

/// Compresses every plain bundle of `input`: a file that is one bundle, binary or text, or binary and compressed
/// bundles one after the other with zeros between them, as in the section `.hip_fatbin`.
///
/// A bundle that starts at a multiple of 4096 starts at one again, with no more zeros in front of it than that takes
/// and whole pages of zeros beyond; elsewhere as many zeros are written as were read. So
/// [`decompress_bundles`] gives back every byte of an input in which all bundles start at such multiples.
///
/// Memory: one bundle at a time, as it is and compressed.
///
/// # Errors
///
/// [`RewriteError`]. A part of the output may be written by then.
///
/// ```
/// use std::io::Cursor;
/// use fat_object::{CompressOptions, compress_bundles, decompress_bundles};
///
/// let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
/// for number in [1u64, 83, 1000, 27] {             // entries; offset, size, ID length of the first
///     bundle.extend(number.to_le_bytes());
/// }
/// bundle.extend(b"hip-amdgcn-amd-amdhsa--gfx1");
/// bundle.resize(83 + 1000, 7);
///
/// let mut compressed = Vec::new();
/// let options = CompressOptions::default();
/// let report = compress_bundles(&mut Cursor::new(&bundle), &mut compressed, &options)?;
/// assert_eq!((report.changed(), report.input_size), (1, 1083));
///
/// let mut back = Vec::new();
/// decompress_bundles(&mut Cursor::new(&compressed), &mut back, &options.limits)?;
/// assert_eq!(back, bundle);
/// # Ok::<(), fat_object::RewriteError>(())
/// ```
pub fn compress_bundles(
    input: &mut dyn ReadSeek,
    out: &mut dyn Write,
    options: &CompressOptions,
) -> Result<Rewritten, RewriteError> {
    rewrite_file(input, out, &Job::Compress(options))
}

/// Decompresses every compressed bundle of `input`, which is what [`compress_bundles`] takes, and verifies its hash.
/// Plain bundles are copied.
///
/// Memory: one bundle at a time, as it is and decompressed.
///
/// # Errors
///
/// [`RewriteError`]. A part of the output may be written by then.
pub fn decompress_bundles(
    input: &mut dyn ReadSeek,
    out: &mut dyn Write,
    limits: &Limits,
) -> Result<Rewritten, RewriteError> {
    rewrite_file(input, out, &Job::Decompress(limits))
}

enum Job<'o> {
    Compress(&'o CompressOptions),
    Decompress(&'o Limits),
}

fn rewrite_file(
    input: &mut dyn ReadSeek,
    out: &mut dyn Write,
    job: &Job<'_>,
) -> Result<Rewritten, RewriteError> {
    let mut source = Source::new(input, Origin::File).map_err(RewriteError::Read)?;
    let all = 0..source.len();
    rewrite_sequence(&mut source, &all, out, job)
}

/// Rewrites the bundles in `window`, whose start is taken to be aligned.
fn rewrite_sequence(
    source: &mut Source<'_>,
    window: &Range<u64>,
    out: &mut dyn Write,
    job: &Job<'_>,
) -> Result<Rewritten, RewriteError> {
    let mut rewriter = Rewriter {
        source,
        window,
        out,
        job,
        report: Rewritten { input_size: window.end - window.start, ..Rewritten::default() },
    };
    let mut at = window.start;
    loop {
        let start = rewriter.source.skip_zeros(&(at..window.end)).map_err(RewriteError::Read)?;
        rewriter.gap(&(at..start))?;
        if start >= window.end {
            return Ok(rewriter.report);
        }
        at = rewriter.bundle(start)?;
    }
}

/// One bundle, and what becomes of it.
struct Step {
    change: Change,
    input: Range<u64>,
    uncompressed_size: u64,
    /// The bytes that replace it; none if it is copied.
    replacement: Option<Vec<u8>>,
    /// How many of them are written already.
    written: usize,
}

struct Rewriter<'a, 's> {
    source: &'a mut Source<'s>,
    window: &'a Range<u64>,
    out: &'a mut dyn Write,
    job: &'a Job<'a>,
    report: Rewritten,
}

impl Rewriter<'_, '_> {
    /// Writes the zeros for those in `gap`, behind which a bundle or the end follows.
    fn gap(&mut self, gap: &Range<u64>) -> Result<(), RewriteError> {
        let (from, to) = (gap.start - self.window.start, gap.end - self.window.start);
        let zeros = if to % PAGE == 0 && gap.end < self.window.end {
            // What aligning took is taken anew; pages beyond that stay.
            let padding = |at: u64| at.wrapping_neg() % PAGE;
            (to - from - padding(from)).saturating_add(padding(self.report.output_size))
        } else {
            to - from
        };
        io::copy(&mut io::repeat(0).take(zeros), &mut self.out).map_err(RewriteError::Write)?;
        self.report.output_size = self.report.output_size.saturating_add(zeros);
        Ok(())
    }

    /// Rewrites the bundle at `start` and returns where it ends.
    fn bundle(&mut self, start: u64) -> Result<u64, RewriteError> {
        let rest = start..self.window.end;
        let head = self.source.peek(&rest, SNIFF_LEN).map_err(RewriteError::Read)?;
        let step = match ImageFormat::sniff(&head) {
            ImageFormat::CompressedBundle => self.compressed(&rest)?,
            ImageFormat::Bundle if is_text_bundle(&head) => self.text(&rest)?,
            ImageFormat::Bundle => self.binary(&rest)?,
            ImageFormat::Unknown => {
                let first = head.into_iter().take(8).collect();
                return Err(RewriteError::Unknown { offset: start, first });
            }
            format => return Err(RewriteError::NotABundle { offset: start, format }),
        };
        let at = self.report.output_size;
        let size = match &step.replacement {
            Some(bytes) => {
                let rest = bytes.get(step.written..).unwrap_or_default();
                self.out.write_all(rest).map_err(RewriteError::Write)?;
                bytes.len() as u64
            }
            None => self.copy(&step.input)?,
        };
        let end = step.input.end;
        self.report.output_size = at.saturating_add(size);
        self.report.bundles.push(RewrittenBundle {
            change: step.change,
            input: step.input,
            output: at..self.report.output_size,
            uncompressed_size: step.uncompressed_size,
        });
        Ok(end)
    }

    fn binary(&mut self, rest: &Range<u64>) -> Result<Step, RewriteError> {
        let prefix = bundle_prefix(self.source, rest).map_err(RewriteError::Read)?;
        let bundle = Bundle::parse_prefix(&prefix, rest.end - rest.start)
            .map_err(|error| RewriteError::at(rest.start, error))?;
        self.plain(rest.start..rest.start + bundle.end())
    }

    /// A text bundle takes all that follows: its end is nowhere recorded.
    fn text(&mut self, rest: &Range<u64>) -> Result<Step, RewriteError> {
        if !self.report.bundles.is_empty() {
            return Err(RewriteError::TextNotAlone { offset: rest.start });
        }
        let bytes = self.source.read_range(rest).map_err(RewriteError::Read)?;
        TextBundle::parse(&bytes).map_err(|error| RewriteError::at(rest.start, error))?;
        drop(bytes);
        self.plain(rest.clone())
    }

    fn plain(&mut self, input: Range<u64>) -> Result<Step, RewriteError> {
        let uncompressed_size = input.end - input.start;
        let Job::Compress(options) = self.job else {
            return Ok(Step {
                change: Change::Kept,
                input,
                uncompressed_size,
                replacement: None,
                written: 0,
            });
        };
        let bytes = self.source.read_range(&input).map_err(RewriteError::Read)?;
        let compressed = ccob::compress(&bytes, &options.write)
            .map_err(|error| RewriteError::at(input.start, error))?;
        let (change, replacement) = (Change::Compressed, Some(compressed));
        Ok(Step { change, input, uncompressed_size, replacement, written: 0 })
    }

    fn compressed(&mut self, rest: &Range<u64>) -> Result<Step, RewriteError> {
        let start = rest.start;
        let at = |error| RewriteError::at(start, error);
        let head = self.source.peek(rest, 32).map_err(RewriteError::Read)?;
        let header = ccob::Header::parse(&head, rest.end - start).map_err(at)?;
        let uncompressed_size = header.uncompressed_size();
        let step = |end, change, replacement| Step {
            change,
            input: start..end,
            uncompressed_size,
            replacement,
            written: 0,
        };
        let options = match self.job {
            Job::Compress(options) => options,
            Job::Decompress(limits) => {
                let (found, written) = self.decompress_to_output(&header, rest, limits)?;
                let end = start + found.consumed;
                let contents = found.data.get(..SNIFF_LEN).unwrap_or(&found.data);
                match ImageFormat::sniff(contents) {
                    ImageFormat::Bundle => {}
                    format => return Err(RewriteError::HoldsNoBundle { offset: start, format }),
                }
                if is_text_bundle(contents) {
                    self.check_alone(start, end)?;
                }
                let step = step(end, Change::Decompressed, Some(found.data));
                return Ok(Step { written, ..step });
            }
        };
        if let (false, Some(size)) = (options.recompress, header.total_size()) {
            return Ok(step(start + size, Change::Kept, None));
        }
        let found = decompress(self.source, &header, rest, &options.limits, &mut |_| {})?;
        let end = start + found.consumed;
        if !options.recompress {
            return Ok(step(end, Change::Kept, None));
        }
        let compressed = ccob::compress(&found.data, &options.write).map_err(at)?;
        Ok(step(end, Change::Recompressed, Some(compressed)))
    }

    /// Decompresses, and writes what there is while the rest is decompressed and hashed. Also returns how much is
    /// written.
    fn decompress_to_output(
        &mut self,
        header: &ccob::Header,
        rest: &Range<u64>,
        limits: &Limits,
    ) -> Result<(Decompressed, usize), RewriteError> {
        let mut written = 0;
        let mut result = Ok(());
        let out = &mut *self.out;
        let found = decompress(self.source, header, rest, limits, &mut |data| {
            if result.is_ok() {
                result = out.write_all(data.get(written..).unwrap_or_default());
                written = written.max(data.len());
            }
        })?;
        result.map_err(RewriteError::Write)?;
        Ok((found, written))
    }

    /// Checks that the bundle at `start..end`, which becomes text, has no neighbours.
    fn check_alone(&mut self, start: u64, end: u64) -> Result<(), RewriteError> {
        let next = self.source.skip_zeros(&(end..self.window.end)).map_err(RewriteError::Read)?;
        match self.report.bundles.is_empty() && next == self.window.end {
            true => Ok(()),
            false => Err(RewriteError::TextNotAlone { offset: start }),
        }
    }

    fn copy(&mut self, range: &Range<u64>) -> Result<u64, RewriteError> {
        const CHUNK: u64 = 1 << 20;
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at.saturating_add(CHUNK));
            let chunk = self.source.read_range(&(at..end)).map_err(RewriteError::Read)?;
            self.out.write_all(&chunk).map_err(RewriteError::Write)?;
            at = end;
        }
        Ok(range.end - range.start)
    }
}

/// Decompresses the compressed bundle that `rest` starts with.
fn decompress(
    source: &mut Source<'_>,
    header: &ccob::Header,
    rest: &Range<u64>,
    limits: &Limits,
    grown: &mut dyn FnMut(&[u8]),
) -> Result<Decompressed, RewriteError> {
    let decompress =
        |stored: &[u8], limits: &Limits| ccob::decompress_growing(stored, limits, grown);
    read_and(decompress, source, rest, header.total_size(), limits)
        .map_err(RewriteError::Read)?
        .map_err(|error| RewriteError::at(rest.start, error))
}
