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
use crate::no_way_back::NoWayBack;
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

    /// Returns the forms to try for a bundle of this size, each once: the default level, and for small bundles all levels.
    fn all(self, len: usize) -> Vec<Self> {
        let (levels, default, parameters) = match self.method.codec() {
            None => return Vec::new(),
            // It has one level.
            Some("ruzstd") => (0, 0, &[true][..]),
            Some("libzstd") => (MOST_LEVEL, 3, &[true, false][..]),
            Some(_) => (MOST_OF_ZLIB, 6, &[true][..]),
        };
        let last = if len <= SMALL { levels } else { 0 };
        let levels = (1..=last).filter(|level| *level != default).map(Some);
        let with = |level| {
            parameters.iter().map(move |as_clang| CompressedForm {
                level,
                as_clang: *as_clang,
                ..self
            })
        };
        [None].into_iter().chain(levels).flat_map(with).collect()
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
        let level = match level {
            u8::MAX => None,
            0..=MOST_LEVEL => Some(level),
            _ => return None,
        };
        Some(CompressedForm { version, method, level, as_clang: as_clang == 1 })
    }
}

/// The search for one form that gives all compressed bundles of a file.
struct Search {
    /// The forms that gave all bundles up to here; `None` before the first.
    forms: Option<Vec<CompressedForm>>,
    /// Bytes that may still be compressed to tell forms apart.
    left: u64,
}

impl Search {
    /// Drops the forms that do not give this bundle.
    fn narrow(&mut self, stored: &[u8], plain: &[u8]) -> Result<(), NoWayBack> {
        let header = CompressedForm::of_header(stored, stored.len() as u64);
        let header = header.ok_or(NoWayBack::Compressor)?;
        let (forms, reason) = match self.forms.take() {
            Some(forms) => (forms, NoWayBack::Levels),
            None => (header.all(plain.len()), NoWayBack::Compressor),
        };
        let mut kept = Vec::new();
        for (tried, form) in forms.into_iter().enumerate() {
            match self.left.checked_sub(plain.len() as u64) {
                Some(left) => self.left = left,
                // Clang's parameters and ours.
                None if tried < 2 && kept.is_empty() => {}
                None => break,
            }
            if form.gives(stored, plain) {
                kept.push(form);
            }
        }
        let is_found = !kept.is_empty();
        self.forms = Some(kept);
        is_found.then_some(()).ok_or(reason)
    }
}

/// The most that a recipe still may hold, so that reading it and following it have bounds.
struct Budget {
    steps: u64,
    bytes: u64,
    /// Zeros in compressed bundles.
    zeros: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { steps: MOST_STEPS, bytes: MOST_BYTES, zeros: MOST_ZEROS }
    }
}

impl Budget {
    fn step(&mut self) -> Result<(), NoWayBack> {
        self.steps = self.steps.checked_sub(1).ok_or(NoWayBack::TooLarge)?;
        Ok(())
    }

    fn bytes(&mut self, count: u64) -> Result<(), NoWayBack> {
        self.bytes = self.bytes.checked_sub(count).ok_or(NoWayBack::OtherBytes)?;
        Ok(())
    }

    fn zeros(&mut self, count: u64, in_bundle: bool) -> Result<(), NoWayBack> {
        let count = if in_bundle { count } else { 0 };
        self.zeros = self.zeros.checked_sub(count).ok_or(NoWayBack::OtherBytes)?;
        Ok(())
    }
}

/// Something in a file that packs have, by its place.
enum Found {
    Image { wrapper: u64, target: String, size: u64 },
    Bundle { size: u64, steps: Vec<Step> },
}

impl Found {
    fn size(&self) -> u64 {
        match self {
            Found::Image { size, .. } | Found::Bundle { size, .. } => *size,
        }
    }

    /// Returns its step; `form` is the form of all compressed bundles.
    fn into_step(self, form: Option<CompressedForm>) -> Option<Step> {
        Some(match self {
            Found::Image { wrapper, target, size } => Step::Image { wrapper, target, size },
            Found::Bundle { size, steps } => Step::Bundle { form: form?, size, steps },
        })
    }
}

/// The first byte of a step.
const HOST: u8 = 0;
const BYTES: u8 = 1;
const ZEROS: u8 = 2;
const IMAGE: u8 = 3;
const BUNDLE: u8 = 4;

/// The largest recipe that is stored, and read.
#[cfg_attr(
    not(any(feature = "ruzstd", feature = "zstd")),
    allow(dead_code, reason = "only kernel packs need it, which are compressed with zstd")
)]
pub(crate) const MOST_OF_RECIPE: u64 = 64 << 20;
/// The most steps.
const MOST_STEPS: u64 = 1 << 20;
/// The most bytes that are in neither: more would be device code in another form.
const MOST_BYTES: u64 = 16 << 20;
/// The most zeros in compressed bundles, between code objects.
const MOST_ZEROS: u64 = 1 << 30;
/// Bytes that are read at once.
const CHUNK: u64 = 1 << 20;

/// The most bytes of a bundle for which all levels are tried.
const SMALL: usize = 256 << 10;
/// The highest level of libzstd.
const MOST_LEVEL: u8 = 22;
/// The highest level of zlib, by `miniz_oxide`.
const MOST_OF_ZLIB: u8 = 10;
/// The most bytes that are compressed to find a form, beyond twice for each bundle.
const MOST_TRIED: u64 = 64 << 20;

/// Fewer zeros are bytes.
const FEWEST_ZEROS: usize = 64;

impl Recipe {
    /// Describes a surveyed file by the result of [`move_out`](EditableFile::move_out). A reason, if that is not possible: the bytes
    /// of compressed bundles depend on who compressed them, and with which release of the codec.
    ///
    /// # Errors
    ///
    /// Errors of [`hip_wrappers`](EditableFile::hip_wrappers), and of reading.
    pub fn of<R: Read + Seek>(
        contents: &EditableFile,
        plan: &EditPlan,
        mut input: R,
    ) -> Result<Result<Self, NoWayBack>, Error> {
        let wrappers = contents.hip_wrappers(&mut input)?;
        let mut source = Source::new(&mut input).map_err(Problem::from)?;
        let mut found: BTreeMap<u64, Found> = BTreeMap::new();
        // One form for all.
        let mut search = Search { forms: None, left: MOST_TRIED };
        let mut budget = Budget::default();
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
                _ => return Ok(Err(NoWayBack::Layout)),
            };
            if found.contains_key(&place.start) {
                continue;
            }
            let options = ReadOptions::default().with_max_decompressed(contents.max_decompressed);
            let stored = source.read_range(&place).map_err(Problem::from)?;
            let plain = ccob::decompress(&stored, &options).map_err(Problem::of_pack)?.data;
            let steps = search.narrow(&stored, &plain);
            match steps.and_then(|()| steps_of(&plain, images, &mut budget)) {
                Ok(steps) => {
                    let size = place.end - place.start;
                    found.insert(place.start, Found::Bundle { size, steps })
                }
                Err(reason) => return Ok(Err(reason)),
            };
        }
        let form = search.forms.and_then(|forms| forms.first().copied());
        let described = describe(contents.size, plan, &mut source, (found, form), budget);
        Ok(described.map_err(Problem::from)?)
    }

    /// Returns the size of the file without device code, in bytes.
    #[must_use]
    pub fn host_size(&self) -> u64 {
        self.host_size
    }

    /// Returns the reason, if the file that it gives has another hash than the one that was split.
    #[must_use]
    pub fn of_other_hash(&self) -> NoWayBack {
        let has_bundles = self.bundle_sizes().next().is_some();
        if has_bundles { NoWayBack::ChangedOrCodec } else { NoWayBack::Changed }
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

    /// Returns the sizes of the contents of its compressed bundles, in bytes.
    pub(crate) fn bundle_sizes(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().filter_map(|step| {
            let Step::Bundle { steps, .. } = step else { return None };
            Some(steps.iter().map(Step::size).fold(0, u64::saturating_add))
        })
    }

    /// Returns the number of the bytes of compressed bundles that are in no image.
    #[cfg_attr(
        not(any(feature = "ruzstd", feature = "zstd")),
        allow(dead_code, reason = "only kernel packs need it, which are compressed with zstd")
    )]
    pub(crate) fn bundle_bytes(&self) -> u64 {
        let in_bundles = self.steps.iter().flat_map(|step| match step {
            Step::Bundle { steps, .. } => &**steps,
            _ => &[],
        });
        let others = in_bundles.filter(|step| !matches!(step, Step::Image { .. }));
        others.map(Step::size).fold(0, u64::saturating_add)
    }

    /// Returns the compressed bundles that it needs, each with its form, its size, and its contents; `None` for contents that lack an
    /// image. `place` is as for [`plan`](Self::plan).
    #[cfg_attr(
        not(any(feature = "ruzstd", feature = "zstd")),
        allow(dead_code, reason = "only kernel packs need it, which are compressed with zstd")
    )]
    pub(crate) fn bundles<'r>(
        &'r self,
        mut place: impl FnMut(u64, &str) -> Option<(usize, u64)> + 'r,
    ) -> impl Iterator<Item = (CompressedForm, u64, Option<Output>)> + 'r {
        self.steps.iter().filter_map(move |step| {
            let Step::Bundle { form, size, steps } = step else { return None };
            let mut parts = Output::new();
            let all = steps.iter().try_for_each(|step| push(&mut parts, step, &mut place));
            Some((*form, *size, all.map(|()| parts)))
        })
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
        let mut reader =
            StepReader { host_size, budget: Budget::default(), known: BTreeSet::new() };
        Some(Recipe { host_size, steps: reader.steps(bytes, false)? })
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

/// Reader of steps. A bundle has images of one wrapper, each target once, and few bytes; a wrapper has one bundle.
struct StepReader {
    host_size: u64,
    budget: Budget,
    /// The wrappers of the bundles up to here.
    known: BTreeSet<u64>,
}

impl StepReader {
    fn steps(&mut self, mut bytes: &[u8], in_bundle: bool) -> Option<Vec<Step>> {
        let bytes = &mut bytes;
        let (mut steps, mut before) = (Vec::new(), 0_u64);
        while let Some((kind, rest)) = bytes.split_first() {
            *bytes = rest;
            self.budget.step().ok()?;
            steps.push(match *kind {
                HOST if !in_bundle => {
                    let start = before.wrapping_add(read(bytes)?);
                    let end =
                        start.checked_add(read(bytes)?).filter(|end| *end <= self.host_size)?;
                    before = end;
                    Step::Host(start..end)
                }
                BYTES => {
                    let len = read(bytes)?;
                    self.budget.bytes(len).ok()?;
                    Step::Bytes(take(bytes, len)?.to_vec())
                }
                ZEROS => {
                    let count = read(bytes)?;
                    self.budget.zeros(count, in_bundle).ok()?;
                    Step::Zeros(count)
                }
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
                    let steps = self.steps(take(bytes, len)?, true)?;
                    self.check_bundle(&steps)?;
                    Step::Bundle { form, size, steps }
                }
                _ => return None,
            });
        }
        Some(steps)
    }

    /// Returns `None` for images of several wrappers, of a wrapper that has a bundle already, or of one target twice.
    fn check_bundle(&mut self, steps: &[Step]) -> Option<()> {
        let (mut of, mut targets) = (None, BTreeSet::new());
        for step in steps {
            let Step::Image { wrapper, target, .. } = step else { continue };
            if *of.get_or_insert(*wrapper) != *wrapper || !targets.insert(target) {
                return None;
            }
        }
        of.is_none_or(|wrapper| self.known.insert(wrapper)).then_some(())
    }
}

impl Step {
    /// Returns the number of bytes that it gives.
    fn size(&self) -> u64 {
        match self {
            Step::Host(range) => range.end - range.start,
            Step::Bytes(bytes) => bytes.len() as u64,
            Step::Zeros(size) | Step::Image { size, .. } | Step::Bundle { size, .. } => *size,
        }
    }
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

/// Describes the contents of a compressed bundle by its images.
fn steps_of(
    plain: &[u8],
    images: BTreeMap<u64, Found>,
    budget: &mut Budget,
) -> Result<Vec<Step>, NoWayBack> {
    let (mut steps, mut at, mut targets) = (Vec::new(), 0_u64, BTreeSet::new());
    let end = plain.len() as u64;
    for (start, image) in images {
        let next = start.checked_add(image.size());
        let next = next.filter(|next| start >= at && *next <= end).ok_or(NoWayBack::Layout)?;
        push_bytes(&mut steps, slice(plain, at..start), (budget, true))?;
        budget.step()?;
        let step = image.into_step(None).ok_or(NoWayBack::Layout)?;
        if let Step::Image { target, .. } = &step
            && !targets.insert(target.clone())
        {
            return Err(NoWayBack::Layout);
        }
        steps.push(step);
        at = next;
    }
    push_bytes(&mut steps, slice(plain, at..end), (budget, true))?;
    Ok(steps)
}

/// Returns a range of bytes; none if it is not there.
fn slice(bytes: &[u8], range: Range<u64>) -> &[u8] {
    let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or(&[])
}

/// Describes a file by the parts of it that the plan keeps, and by its images and compressed bundles, which have this form.
fn describe(
    size: u64,
    plan: &EditPlan,
    source: &mut Source<'_>,
    (mut found, form): (BTreeMap<u64, Found>, Option<CompressedForm>),
    mut budget: Budget,
) -> std::io::Result<Result<Recipe, NoWayBack>> {
    let mut kept: Vec<(Range<u64>, u64)> = Vec::new();
    let mut at = 0;
    for part in plan.parts.iter() {
        if let Part::Input(Input::File, range) = &part {
            kept.push((range.clone(), at));
        }
        at += part.size();
    }
    kept.sort_by_key(|(range, _)| range.start);
    let (mut steps, mut at) = (Vec::new(), 0_u64);
    let end = (size..size, 0);
    for (range, host) in kept.into_iter().chain([end]) {
        // A range may be there twice.
        let start = range.start.max(at);
        while at < start {
            let next = found.range(at..).next().map(|(place, _)| *place);
            let next = next.filter(|place| *place < start);
            let until = next.unwrap_or(start);
            while at < until {
                let end = until.min(at + CHUNK);
                let bytes = source.read_range(&(at..end))?;
                if let Err(reason) = push_bytes(&mut steps, &bytes, (&mut budget, false)) {
                    return Ok(Err(reason));
                }
                at = end;
            }
            if let Some(found) = next.and_then(|place| found.remove(&place)) {
                at += found.size();
                let step = found.into_step(form).ok_or(NoWayBack::Layout);
                match budget.step().and(step) {
                    Ok(step) => steps.push(step),
                    Err(reason) => return Ok(Err(reason)),
                }
            }
        }
        if range.end > at {
            let into = at - range.start;
            if let Err(reason) = budget.step() {
                return Ok(Err(reason));
            }
            steps.push(Step::Host(host + into..host + (range.end - range.start)));
            at = range.end;
        }
    }
    let host_size = plan.parts.size();
    Ok(if at == size { Ok(Recipe { host_size, steps }) } else { Err(NoWayBack::Layout) })
}

/// Adds bytes, and longer runs of zeros as such. The flag is `true` in a bundle.
fn push_bytes(
    steps: &mut Vec<Step>,
    mut bytes: &[u8],
    (budget, in_bundle): (&mut Budget, bool),
) -> Result<(), NoWayBack> {
    while !bytes.is_empty() {
        budget.step()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros >= FEWEST_ZEROS || zeros == bytes.len() {
            budget.zeros(zeros as u64, in_bundle)?;
            steps.push(Step::Zeros(zeros as u64));
            (_, bytes) = bytes.split_at(zeros);
            continue;
        }
        let is_run = |at: &usize| {
            bytes.get(*at..at + FEWEST_ZEROS).is_some_and(|run| run.iter().all(|byte| *byte == 0))
        };
        let next = (zeros..bytes.len()).find(is_run).unwrap_or(bytes.len());
        let (more, rest) = bytes.split_at(next);
        budget.bytes(next as u64)?;
        steps.push(Step::Bytes(more.to_vec()));
        bytes = rest;
    }
    Ok(())
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
