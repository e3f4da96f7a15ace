//! The way back from a file without its device code, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};
use std::ops::Range;

use byte_parts::{Part, Source};
use ccob::{Header, Method, ReadOptions, Version, WriteOptions};
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
    /// A compressed bundle, by the steps of its contents, which are images and few bytes.
    Bundle {
        form: CompressedForm,
        size: u64,
        steps: Vec<Step>,
    },
}

/// The form of a compressed bundle: what gives its bytes again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompressedForm {
    pub(crate) version: Version,
    pub(crate) method: Method,
    /// The level; the default one without.
    pub(crate) level: Option<u8>,
    /// `true` for clang's parameters of libzstd, `false` for ours.
    pub(crate) as_clang: bool,
}

impl CompressedForm {
    /// Returns the version and the method of a compressed bundle, by its first bytes.
    pub(crate) fn of_header(header: &[u8], size: u64) -> Option<Self> {
        let header = Header::parse(header, size).ok()?;
        let (version, method) = (header.version(), header.method());
        Some(CompressedForm { version, method, level: None, as_clang: true })
    }

    /// Finds the parameters and the level that give these bytes again: the default level, or for small bundles any.
    fn with_level_of(self, stored: &[u8], plain: &[u8]) -> Option<Self> {
        let all = if plain.len() <= SMALL { MOST_LEVEL } else { 0 };
        let levels = [None].into_iter().chain((1..=all).map(Some));
        let mut forms = levels.flat_map(|level| {
            [true, false].map(|as_clang| CompressedForm { level, as_clang, ..self })
        });
        forms.find(|form| form.gives(stored, plain))
    }

    fn gives(self, stored: &[u8], plain: &[u8]) -> bool {
        ccob::compress(plain, &self.options()).is_ok_and(|bytes| bytes == stored)
    }

    pub(crate) fn options(self) -> WriteOptions {
        let options = WriteOptions::default().with_version(self.version).with_method(self.method);
        options.with_level(self.level.map(i32::from)).with_clang_parameters(self.as_clang)
    }

    /// Returns it as bytes, for [`parse`](Self::parse).
    pub(crate) fn to_bytes(self) -> [u8; 5] {
        let version = self.version.number().to_le_bytes()[0];
        let [method, high] = self.method.0.to_le_bytes();
        // No level is 255.
        [version, method, high, self.level.unwrap_or(u8::MAX), u8::from(self.as_clang)]
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [version, method, high, level, as_clang @ 0..=1] = *bytes else { return None };
        let version = Version::from_number(u16::from(version))?;
        let method = Method(u16::from_le_bytes([method, high]));
        let level = Some(level).filter(|level| *level != u8::MAX);
        Some(CompressedForm { version, method, level, as_clang: as_clang == 1 })
    }
}

/// A compressed bundle in a file.
struct FoundBundle {
    form: CompressedForm,
    size: u64,
    steps: Vec<Step>,
}

/// Something in a file that packs have, by its place.
enum Found {
    Image { wrapper: u64, target: String, size: u64 },
    Bundle(FoundBundle),
}

impl Found {
    fn size(&self) -> u64 {
        match self {
            Found::Image { size, .. } | Found::Bundle(FoundBundle { size, .. }) => *size,
        }
    }

    fn step(&self) -> Step {
        match self {
            Found::Image { wrapper, target, size } => {
                Step::Image { wrapper: *wrapper, target: target.clone(), size: *size }
            }
            Found::Bundle(FoundBundle { form, size, steps }) => {
                Step::Bundle { form: *form, size: *size, steps: steps.clone() }
            }
        }
    }
}

/// The first byte of a step.
const HOST: u8 = 0;
const BYTES: u8 = 1;
const ZEROS: u8 = 2;
const IMAGE: u8 = 3;
const BUNDLE: u8 = 4;

/// The most bytes that are in neither: more would be device code in another form.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes that are read at once.
const CHUNK: u64 = 1 << 20;

/// The most bytes of a bundle for which all levels are tried.
const SMALL: usize = 256 << 10;
/// The highest level of libzstd.
const MOST_LEVEL: u8 = 22;

/// Fewer zeros are bytes.
const FEWEST_ZEROS: usize = 64;

impl Recipe {
    /// Describes a surveyed file by the result of [`move_out`](EditableFile::move_out). `None` if it has compressed bundles that no
    /// level gives again: their bytes depend on who compressed them, and with which release of the codec.
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
        let mut source = Source::new(&mut input).map_err(Problem::from)?;
        let mut found: BTreeMap<u64, Found> = BTreeMap::new();
        // The level of the first bundle is the level of all.
        let mut form = None;
        for (n, container) in (0_u64..).zip(&wrappers) {
            let Some(container) = contents.containers.get(*container) else { continue };
            let mut images = BTreeMap::new();
            for image in contents.packable(container.index)? {
                let target = image.target().id().to_owned();
                let described = Found::Image { wrapper: n, target, size: image.size() };
                images.entry(image.location().offset()).or_insert(described);
            }
            let place = match (container.kind, container.location) {
                (ContainerKind::Bundle, Location::File(_)) => {
                    images.into_iter().for_each(|(at, image)| {
                        found.entry(at).or_insert(image);
                    });
                    continue;
                }
                (ContainerKind::Ccob, Location::File(start)) => start..start + container.size,
                _ => return Ok(None),
            };
            if found.contains_key(&place.start) {
                continue;
            }
            let bundle = compressed(&mut source, &place, (&mut form, images), contents)?;
            let Some(bundle) = bundle else { return Ok(None) };
            found.insert(place.start, Found::Bundle(bundle));
        }
        Ok(describe(contents.size, plan, &mut source, &found).map_err(Problem::from)?)
    }

    /// Returns the size of the file without device code, in bytes.
    #[must_use]
    pub fn host_size(&self) -> u64 {
        self.host_size
    }

    /// Returns the images that it needs: the number of the wrapper, the target, the size.
    pub fn images(&self) -> impl Iterator<Item = (u64, &str, u64)> {
        let all = self.steps.iter().flat_map(|step| match step {
            Step::Bundle { steps, .. } => &**steps,
            step => std::slice::from_ref(step),
        });
        all.filter_map(|step| match step {
            Step::Image { wrapper, target, size } => Some((*wrapper, &**target, *size)),
            _ => None,
        })
    }

    /// Returns the compressed bundles that it needs, each with its form, its size, and its contents. `place` is as for
    /// [`plan`](Self::plan).
    #[cfg_attr(
        not(any(feature = "ruzstd", feature = "zstd")),
        allow(dead_code, reason = "only kernel packs need them, which are compressed with zstd")
    )]
    pub(crate) fn bundles(
        &self,
        mut place: impl FnMut(u64, &str) -> Option<(usize, u64)>,
    ) -> Option<Vec<(CompressedForm, u64, Output)>> {
        let mut bundles = Vec::new();
        for step in &self.steps {
            let Step::Bundle { form, size, steps } = step else { continue };
            let mut parts = Output::new();
            for step in steps {
                push(&mut parts, step, &mut place)?;
            }
            bundles.push((*form, *size, parts));
        }
        Some(bundles)
    }

    /// Plans the file. `place` returns the number of the input in `images` that an image lies in, and its offset there; `None`
    /// if there is none, and then no plan. There is none either for a file with compressed bundles: [`Join`](crate::Join) makes these.
    pub fn plan(
        &self,
        place: impl FnMut(u64, &str) -> Option<(usize, u64)>,
        images: Vec<NewImage>,
    ) -> Option<EditPlan> {
        self.plan_with(place, [], images)
    }

    /// Plans the file with its compressed bundles, in their order: the number of the input, and the offset there.
    pub(crate) fn plan_with(
        &self,
        mut place: impl FnMut(u64, &str) -> Option<(usize, u64)>,
        bundles: impl IntoIterator<Item = (usize, u64)>,
        images: Vec<NewImage>,
    ) -> Option<EditPlan> {
        let (mut parts, mut bundles) = (Output::new(), bundles.into_iter());
        for step in &self.steps {
            match step {
                Step::Bundle { size, .. } => {
                    let (input, offset) = bundles.next()?;
                    parts.push_input(Input::New(input), offset..offset.checked_add(*size)?);
                }
                step => push(&mut parts, step, &mut place)?,
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
        write_steps(&mut out, &self.steps);
        out
    }

    /// Reads what [`to_vec`](Self::to_vec) wrote; `None` for anything else.
    #[must_use]
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let host_size = read(&mut bytes)?;
        Some(Recipe { host_size, steps: read_steps(bytes, host_size, false)? })
    }
}

fn write_steps(out: &mut Vec<u8>, steps: &[Step]) {
    let mut before = 0;
    for step in steps {
        match step {
            Step::Host(range) => {
                out.push(HOST);
                // Most ranges follow each other.
                number(out, range.start.wrapping_sub(before));
                number(out, range.end - range.start);
                before = range.end;
            }
            Step::Bytes(bytes) => {
                out.push(BYTES);
                number(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            Step::Zeros(count) => {
                out.push(ZEROS);
                number(out, *count);
            }
            Step::Image { wrapper, target, size } => {
                out.push(IMAGE);
                number(out, *wrapper);
                number(out, *size);
                number(out, target.len() as u64);
                out.extend_from_slice(target.as_bytes());
            }
            Step::Bundle { form, size, steps } => {
                let mut contents = Vec::new();
                write_steps(&mut contents, steps);
                out.push(BUNDLE);
                out.extend_from_slice(&form.to_bytes());
                number(out, *size);
                number(out, contents.len() as u64);
                out.extend_from_slice(&contents);
            }
        }
    }
}

/// Reads steps; those in a bundle are small enough for memory: images of packs, each once, and few bytes.
fn read_steps(mut bytes: &[u8], host_size: u64, in_bundle: bool) -> Option<Vec<Step>> {
    let bytes = &mut bytes;
    let (mut steps, mut before) = (Vec::new(), 0_u64);
    while let Some((kind, rest)) = bytes.split_first() {
        *bytes = rest;
        steps.push(match *kind {
            HOST if !in_bundle => {
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
            BUNDLE if !in_bundle => {
                let form = CompressedForm::parse(take(bytes, 5)?)?;
                let size = read(bytes)?;
                let len = read(bytes)?;
                let steps = read_steps(take(bytes, len)?, host_size, true)?;
                Step::Bundle { form, size, steps }
            }
            _ => return None,
        });
    }
    (!in_bundle || is_small(&steps)).then_some(steps)
}

/// Returns whether a bundle has each image once, and few bytes that are in none.
fn is_small(steps: &[Step]) -> bool {
    let mut known = BTreeSet::new();
    let mut bytes = 0_u128;
    for step in steps {
        match step {
            Step::Image { wrapper, target, .. } if !known.insert((wrapper, target)) => {
                return false;
            }
            Step::Zeros(count) => bytes += u128::from(*count),
            Step::Bytes(more) => bytes += more.len() as u128,
            _ => {}
        }
    }
    bytes <= u128::from(MOST_BYTES)
}

/// Adds a step other than a bundle.
fn push(
    parts: &mut Output,
    step: &Step,
    place: &mut impl FnMut(u64, &str) -> Option<(usize, u64)>,
) -> Option<()> {
    match step {
        Step::Host(range) => parts.push_input(Input::File, range.clone()),
        Step::Bytes(bytes) => parts.push_bytes(bytes),
        Step::Zeros(count) => parts.push_zeros(*count),
        Step::Image { wrapper, target, size } => {
            let (input, offset) = place(*wrapper, target)?;
            parts.push_input(Input::New(input), offset..offset.checked_add(*size)?);
        }
        Step::Bundle { .. } => return None,
    }
    Some(())
}

/// Describes a compressed bundle by its images; `None` if its bytes do not come again. `form` is the form of the last one, whose level is
/// tried first and alone.
fn compressed(
    source: &mut Source<'_>,
    place: &Range<u64>,
    (known, images): (&mut Option<CompressedForm>, BTreeMap<u64, Found>),
    contents: &EditableFile,
) -> Result<Option<FoundBundle>, Problem> {
    let size = place.end - place.start;
    let stored = source.read_range(place)?;
    let options = ReadOptions::default().with_max_decompressed(contents.max_decompressed);
    let plain = ccob::decompress(&stored, &options).map_err(Problem::of_pack)?.data;
    let of_header = CompressedForm::of_header(&stored, size);
    let form = match (*known, of_header) {
        (Some(known), Some(_)) => Some(known).filter(|form| form.gives(&stored, &plain)),
        (None, Some(form)) => form.with_level_of(&stored, &plain),
        (_, None) => None,
    };
    let Some(form) = form else { return Ok(None) };
    *known = Some(form);
    let (mut steps, mut at) = (Vec::new(), 0_u64);
    let end = plain.len() as u64;
    for (start, image) in &images {
        let Some(next) =
            start.checked_add(image.size()).filter(|next| *start >= at && *next <= end)
        else {
            return Ok(None);
        };
        push_bytes(&mut steps, slice(&plain, at..*start));
        steps.push(image.step());
        at = next;
    }
    push_bytes(&mut steps, slice(&plain, at..end));
    Ok(is_small(&steps).then_some(FoundBundle { form, size, steps }))
}

/// Returns a range of bytes; none if it is not there.
fn slice(bytes: &[u8], range: Range<u64>) -> &[u8] {
    let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or(&[])
}

/// Describes a file by the parts of it that the plan keeps, and by its images and compressed bundles.
fn describe(
    size: u64,
    plan: &EditPlan,
    source: &mut Source<'_>,
    found: &BTreeMap<u64, Found>,
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
            let next = found.range(at..).next().filter(|(place, _)| **place < start);
            let until = next.map_or(start, |(place, _)| *place);
            while at < until {
                let end = until.min(at + CHUNK);
                bytes += push_bytes(&mut steps, &source.read_range(&(at..end))?);
                if bytes > MOST_BYTES {
                    return Ok(None);
                }
                at = end;
            }
            if let Some((_, found)) = next {
                steps.push(found.step());
                at += found.size();
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
