//! The way back from a file without its device code, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};
use std::ops::Range;

use byte_parts::{Part, Source};
use fat_object::{ContainerKind, Location};
use object_edit::{Input, Output};

use crate::edit::NewImage;
use crate::error::{Error, Problem};
use crate::plan::EditPlan;
use crate::survey::EditableFile;

/// A description of a file by the file without its device code, its images, and the few bytes that are in neither. So
/// [`plan`](Self::plan) makes the same file again, whatever linker made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    host_size: u64,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// A range of the file without device code.
    Host(Range<u64>),
    Bytes(Vec<u8>),
    Zeros(u64),
    /// The image for this target of the bundle that a wrapper leads to.
    Image {
        wrapper: u64,
        target: String,
        size: u64,
    },
}

/// The first byte of a step.
const HOST: u8 = 0;
const BYTES: u8 = 1;
const ZEROS: u8 = 2;
const IMAGE: u8 = 3;

/// The most bytes that are in neither: more would be device code in another form.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes that are read at once.
const CHUNK: u64 = 1 << 20;

/// Fewer zeros are bytes.
const FEWEST_ZEROS: usize = 64;

impl Recipe {
    /// Describes a surveyed file by the result of [`move_out`](EditableFile::move_out). `None` if it has compressed bundles: their
    /// bytes depend on who compressed them.
    ///
    /// # Errors
    ///
    /// Errors of [`hip_wrappers`](EditableFile::hip_wrappers), and of reading.
    pub fn of<R: Read + Seek>(
        contents: &EditableFile,
        plan: &EditPlan,
        mut input: R,
    ) -> Result<Option<Self>, Error> {
        let wrappers = contents.hip_wrappers(&mut input)?;
        let mut images: BTreeMap<u64, (u64, u64, String)> = BTreeMap::new();
        for (n, container) in (0_u64..).zip(&wrappers) {
            let Some(container) = contents.containers.get(*container) else { continue };
            if container.kind != ContainerKind::Bundle {
                return Ok(None);
            }
            for image in contents.packable(container.index)? {
                if let Location::File(start) = image.location() {
                    let described = (image.size(), n, image.target().id().to_owned());
                    images.entry(start).or_insert(described);
                }
            }
        }
        let mut source = Source::new(&mut input).map_err(Problem::from)?;
        Ok(describe(contents.size, plan, &mut source, &images).map_err(Problem::from)?)
    }

    /// Returns the size of the file without device code, in bytes.
    #[must_use]
    pub fn host_size(&self) -> u64 {
        self.host_size
    }

    /// Returns the images that it needs: the number of the wrapper, the target, the size.
    pub fn images(&self) -> impl Iterator<Item = (u64, &str, u64)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Image { wrapper, target, size } => Some((*wrapper, &**target, *size)),
            _ => None,
        })
    }

    /// Plans the file. `place` returns the number of the input in `images` that an image lies in, and its offset there; `None`
    /// if there is none, and then no plan.
    pub fn plan(
        &self,
        mut place: impl FnMut(u64, &str) -> Option<(usize, u64)>,
        images: Vec<NewImage>,
    ) -> Option<EditPlan> {
        let mut parts = Output::new();
        for step in &self.steps {
            match step {
                Step::Host(range) => parts.push_input(Input::File, range.clone()),
                Step::Bytes(bytes) => parts.push_bytes(bytes),
                Step::Zeros(count) => parts.push_zeros(*count),
                Step::Image { wrapper, target, size } => {
                    let (input, offset) = place(*wrapper, target)?;
                    parts.push_input(Input::New(input), offset..offset.checked_add(*size)?);
                }
            }
        }
        Some(EditPlan {
            parts,
            derived: Vec::new(),
            new_images: images,
            input_size: self.host_size,
            containers: Vec::new(),
            images: Vec::new(),
            notes: Vec::new(),
            needs: BTreeSet::new(),
        })
    }

    /// Returns the recipe as bytes, for [`parse`](Self::parse).
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, self.host_size);
        let mut before = 0;
        for step in &self.steps {
            match step {
                Step::Host(range) => {
                    out.push(HOST);
                    // Most ranges follow each other.
                    number(&mut out, range.start.wrapping_sub(before));
                    number(&mut out, range.end - range.start);
                    before = range.end;
                }
                Step::Bytes(bytes) => {
                    out.push(BYTES);
                    number(&mut out, bytes.len() as u64);
                    out.extend_from_slice(bytes);
                }
                Step::Zeros(count) => {
                    out.push(ZEROS);
                    number(&mut out, *count);
                }
                Step::Image { wrapper, target, size } => {
                    out.push(IMAGE);
                    number(&mut out, *wrapper);
                    number(&mut out, *size);
                    number(&mut out, target.len() as u64);
                    out.extend_from_slice(target.as_bytes());
                }
            }
        }
        out
    }

    /// Reads what [`to_vec`](Self::to_vec) wrote; `None` for anything else.
    #[must_use]
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let host_size = read(bytes)?;
        let (mut steps, mut before) = (Vec::new(), 0_u64);
        while let Some((kind, rest)) = bytes.split_first() {
            *bytes = rest;
            steps.push(match *kind {
                HOST => {
                    let start = before.wrapping_add(read(bytes)?);
                    let end = start.checked_add(read(bytes)?).filter(|end| *end <= host_size)?;
                    before = end;
                    Step::Host(start..end)
                }
                BYTES => {
                    let len = read(bytes)?;
                    Step::Bytes(take(bytes, len)?.to_vec())
                }
                ZEROS => Step::Zeros(read(bytes)?),
                IMAGE => {
                    let (wrapper, size) = (read(bytes)?, read(bytes)?);
                    let len = read(bytes)?;
                    let target = String::from_utf8(take(bytes, len)?.to_vec()).ok()?;
                    Step::Image { wrapper, target, size }
                }
                _ => return None,
            });
        }
        Some(Recipe { host_size, steps })
    }
}

/// Describes a file by the parts of it that the plan keeps, and by its images.
fn describe(
    size: u64,
    plan: &EditPlan,
    source: &mut Source<'_>,
    images: &BTreeMap<u64, (u64, u64, String)>,
) -> std::io::Result<Option<Recipe>> {
    let mut kept: Vec<(Range<u64>, u64)> = Vec::new();
    let mut at = 0;
    for part in plan.parts.iter() {
        if let Part::Input(Input::File, range) = &part {
            kept.push((range.clone(), at));
        }
        at += part.size();
    }
    kept.sort_by_key(|(range, _)| range.start);
    let (mut steps, mut bytes, mut at) = (Vec::new(), 0_u64, 0_u64);
    let end = (size..size, 0);
    for (range, host) in kept.into_iter().chain([end]) {
        // A range may be there twice.
        let start = range.start.max(at);
        while at < start {
            let next = images.range(at..).next().filter(|(image, _)| **image < start);
            let until = next.map_or(start, |(image, _)| *image);
            while at < until {
                let end = until.min(at + CHUNK);
                bytes += push_bytes(&mut steps, &source.read_range(&(at..end))?);
                if bytes > MOST_BYTES {
                    return Ok(None);
                }
                at = end;
            }
            if let Some((_, (size, wrapper, target))) = next {
                let (wrapper, target, size) = (*wrapper, target.clone(), *size);
                steps.push(Step::Image { wrapper, target, size });
                at += size;
            }
        }
        if range.end > at {
            let into = at - range.start;
            steps.push(Step::Host(host + into..host + (range.end - range.start)));
            at = range.end;
        }
    }
    let host_size = plan.parts.size();
    Ok((at == size).then_some(Recipe { host_size, steps }))
}

/// Adds bytes, and longer runs of zeros as such. Returns the number of the others.
fn push_bytes(steps: &mut Vec<Step>, mut bytes: &[u8]) -> u64 {
    let mut count = 0_u64;
    while !bytes.is_empty() {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros >= FEWEST_ZEROS || zeros == bytes.len() {
            steps.push(Step::Zeros(zeros as u64));
            (_, bytes) = bytes.split_at(zeros);
            continue;
        }
        let is_run = |at: &usize| {
            bytes.get(*at..at + FEWEST_ZEROS).is_some_and(|run| run.iter().all(|byte| *byte == 0))
        };
        let next = (zeros..bytes.len()).find(is_run).unwrap_or(bytes.len());
        let (more, rest) = bytes.split_at(next);
        steps.push(Step::Bytes(more.to_vec()));
        count += next as u64;
        bytes = rest;
    }
    count
}

/// Writes a number, 7 bits in each byte, the lowest first.
fn number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        match number {
            0 => return out.push(low & 0x7f),
            _ => out.push(low | 0x80),
        }
    }
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take<'b>(bytes: &mut &'b [u8], len: u64) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    Some(taken)
}
