//! The way back from a compressed file: it is planned with the compression, so that no file comes out that cannot be
//! decompressed, and one that would become another file is told.

use std::io::{self, Read as _, SeekFrom};
use std::ops::Range;

use byte_parts::{Part, ReadSeek, Source};
use fat_object::{ContainerKind, Location, Options};
use object_edit::{Input, Output, copy_of, is_copy_of, reader};

use crate::decompress::Decompress;
use crate::dispatch;
use crate::edit::{Edit, EditOptions};
use crate::error::{ErrorKind, Problem};
use crate::inputs::Sources;
use crate::plan::{EditNote, EditPlan};
use crate::planner::{NewContainers, Planner};
use crate::survey::{EditableFile, survey_with};

/// A file as parts of another, and the compressed bundles among the inputs of those parts.
type Plain = (Output, Vec<Decompress>);

/// Bytes compared at once.
const BLOCK: u64 = 64 * 1024;

/// Result of decompressing the compressed file, the best last.
#[derive(Debug)]
enum Back {
    Refused(Problem),
    /// A file that differs from the expected one, the first time at this offset.
    Differs(u64),
    Same,
}

impl Back {
    fn rank(&self) -> u8 {
        match self {
            Back::Refused(_) => 0,
            Back::Differs(_) => 1,
            Back::Same => 2,
        }
    }
}

/// The plan of another edit of a file.
pub(super) type Planning<'p> =
    dyn Fn(&EditableFile, &mut dyn ReadSeek, &Edit) -> Result<EditPlan, Problem> + 'p;

/// Lays out the file with its compressed bundles: closed up, or if the way back from there is lost, with each bundle in its
/// old place.
pub(super) fn lay_out(
    planner: &mut Planner<'_>,
    (source, window): (&mut Source<'_>, &Range<u64>),
    new: &NewContainers,
    plan: &Planning<'_>,
) -> Result<Output, Problem> {
    let contents = planner.contents;
    let expected = expected(contents, source, planner.edit, plan)?;
    let noted = planner.notes.len();
    let mut best: Option<(Output, Vec<EditNote>, Back)> = None;
    for stay in [false, true] {
        planner.stay = stay;
        let laid_out = dispatch::file(planner, source, window, &contents.root, &[], new);
        let splices = match laid_out {
            Ok(splices) if is_copy_of(&splices, window) => return Ok(splices),
            Ok(splices) if best.as_ref().is_some_and(|(first, ..)| *first == splices) => break,
            Ok(splices) => splices,
            Err(error) if error.kind == ErrorKind::Read => return Err(error),
            Err(_) if best.is_some() => break,
            Err(error) => return Err(error),
        };
        let back = way_back(planner, source, (&splices, expected.as_ref()), plan)?;
        let (rank, notes) = (back.rank(), planner.notes.split_off(noted));
        if best.as_ref().is_none_or(|(_, _, best)| best.rank() < rank) {
            best = Some((splices, notes, back));
        }
        if rank == Back::Same.rank() {
            break;
        }
    }
    let Some((splices, notes, back)) = best else { return Err(Problem::input_changed()) };
    planner.notes.truncate(noted);
    planner.notes.extend(notes);
    match (back, expected) {
        (Back::Same, _) => {}
        (Back::Differs(offset), _) => planner.notes.push(EditNote::NotRestored { offset }),
        // So it was before.
        (Back::Refused(_), Expected::Refused) => planner.notes.push(EditNote::NotDecompressible),
        (Back::Refused(why), _) => {
            let message = format!("the compressed file could not be decompressed: {why}");
            return Err(Problem::new(ErrorKind::Refused, message));
        }
    }
    Ok(splices)
}

/// Expected result of decompressing.
enum Expected {
    /// The result without compressing anything: the edited file itself, unless bundles in it are compressed.
    Parts(Plain),
    /// The edited file itself cannot be decompressed.
    Refused,
    /// Images change, too.
    Unknown,
}

impl Expected {
    fn as_ref(&self) -> Option<&Plain> {
        match self {
            Expected::Parts(parts) => Some(parts),
            Expected::Refused | Expected::Unknown => None,
        }
    }
}

fn expected(
    contents: &EditableFile,
    source: &mut Source<'_>,
    edit: &Edit,
    plan: &Planning<'_>,
) -> Result<Expected, Problem> {
    if !edit.images.is_empty() || !edit.added.is_empty() {
        return Ok(Expected::Unknown);
    }
    // Images in fatbinaries may be compressed one by one, or several as one.
    let may_be_compressed = contents.containers.iter().any(|container| {
        container.compression.is_some() || container.kind == ContainerKind::NvFatbin
    });
    if !may_be_compressed {
        return Ok(Expected::Parts((copy_of(&(0..contents.size)), Vec::new())));
    }
    match decompressed(contents, source.reader(), &edit.options, plan) {
        Ok(parts) => Ok(Expected::Parts(parts)),
        Err(error) if error.kind == ErrorKind::Read => Err(error),
        Err(_) => Ok(Expected::Refused),
    }
}

/// Returns the file with its bundles decompressed.
fn decompressed(
    contents: &EditableFile,
    input: &mut dyn ReadSeek,
    options: &EditOptions,
    plan: &Planning<'_>,
) -> Result<Plain, Problem> {
    let mut edit = Edit::new(options.clone().with_grow(false));
    edit.decompress();
    edit.unlimited = true;
    match plan(contents, input, &edit) {
        Ok(plan) => Ok((plan.parts, plan.derived)),
        // Other containers than bundles stay as they are.
        Err(error) if error.kind == ErrorKind::NoBundle => {
            Ok((copy_of(&(0..contents.size)), Vec::new()))
        }
        Err(error) => Err(error),
    }
}

/// Decompresses the new file, if headers and sizes allow, and compares the result with the old one.
fn way_back(
    planner: &mut Planner<'_>,
    source: &mut Source<'_>,
    (new, expected): (&Output, Option<&Plain>),
    plan: &Planning<'_>,
) -> Result<Back, Problem> {
    let mut inputs = Sources::new(planner.images.readers, &planner.derived);
    let mut reader = reader(new, source.reader(), &mut inputs);
    let options = Options::default().with_max_decompressed(u64::MAX);
    let options = options.with_scan(planner.contents.scanned);
    let back = survey_with(&mut reader, &options, true).and_then(|after| {
        let back = decompressed(&after, &mut reader, &planner.edit.options, plan)?;
        Ok((after, back))
    });
    drop(reader);
    let (after, back) = match back {
        Ok(back) => back,
        Err(error) if error.kind == ErrorKind::Read => return Err(error),
        Err(error) => return Ok(Back::Refused(error)),
    };
    let Some(expected) = expected else { return Ok(Back::Same) };
    let before = &planner.contents.containers;
    if before.len() != after.containers.len() {
        return Ok(Back::Differs(0));
    }
    // Their entries are compressed one by one: all bytes are compared.
    if before.iter().any(|container| container.kind == ContainerKind::NvFatbin) {
        let first = first_difference(planner, source, new, expected, &back)?;
        return Ok(first.map_or(Back::Same, Back::Differs));
    }
    let mut plain = Vec::new();
    let (mut old_starts, mut new_starts) = (Vec::new(), Vec::new());
    for (old, new) in before.iter().zip(&after.containers) {
        let (Location::File(from), Location::File(to)) = (old.location, new.location) else {
            continue;
        };
        match (old.compression, new.compression) {
            (None, Some(_)) => plain.push((from..from + old.size, old.index)),
            (Some(_), _) => old_starts.push((from, old.index)),
            (None, None) => {}
        }
        new_starts.push((to, new.index));
    }
    let old = Skeleton::of(expected, &old_starts, |skeleton, range| skeleton.cut(range, &plain));
    let back = Skeleton::of(&back, &new_starts, |skeleton, range| {
        skeleton.rest.append(&new.slice(range.clone()));
    });
    if old.bundles != back.bundles {
        let pairs = old.bundles.iter().zip(&back.bundles);
        let first = pairs.into_iter().find(|(old, back)| old != back);
        return Ok(Back::Differs(first.map_or(0, |(old, back)| old.0.min(back.0))));
    }
    let first = difference(source, &old.rest, &back.rest)?;
    Ok(first.map_or(Back::Same, Back::Differs))
}

/// A file without the contents of the bundles that are compressed on the way.
#[derive(Default)]
struct Skeleton {
    /// Zeros where bundles are.
    rest: Output,
    /// Parts of bundles: where each lies, the index of its container if it has a start, and which part it is.
    bundles: Vec<(u64, Option<usize>, Range<u64>)>,
}

impl Skeleton {
    /// Returns the skeleton of a file. `starts` has the offsets of compressed bundles with their indices, in ascending
    /// order. `copy` takes parts of the file.
    fn of(
        (parts, derived): &Plain,
        starts: &[(u64, usize)],
        copy: impl Fn(&mut Skeleton, Range<u64>),
    ) -> Self {
        let mut skeleton = Skeleton::default();
        for part in parts.iter() {
            match part {
                Part::Input(Input::File, range) => copy(&mut skeleton, range.clone()),
                Part::Input(&Input::Derived(number), range) => {
                    let index = derived.get(number).and_then(|bundle| {
                        let at = bundle.stored.start;
                        let n = starts.binary_search_by_key(&at, |&(start, _)| start).ok()?;
                        starts.get(n).map(|&(_, index)| index)
                    });
                    skeleton.bundle(index, range.clone());
                }
                part => skeleton.rest.push_part(part),
            }
        }
        skeleton
    }

    fn bundle(&mut self, index: Option<usize>, part: Range<u64>) {
        let zeros = part.end - part.start;
        self.bundles.push((self.rest.size(), index, part));
        self.rest.push_zeros(zeros);
    }

    /// Adds a part of the file, in which plain bundles lie in these places.
    fn cut(&mut self, range: Range<u64>, plain: &[(Range<u64>, usize)]) {
        let mut at = range.start;
        let first = plain.partition_point(|(place, _)| place.end <= range.start);
        for (place, index) in plain.iter().skip(first) {
            let (from, to) = (place.start.max(at), place.end.min(range.end));
            if from >= to {
                break;
            }
            self.rest.push_input(Input::File, at..from);
            self.bundle(Some(*index), from - place.start..to - place.start);
            at = to;
        }
        self.rest.push_input(Input::File, at..range.end);
    }
}

/// Returns the first offset at which two files differ: one made of the edited file, and one of the new file.
fn first_difference(
    planner: &Planner<'_>,
    source: &mut Source<'_>,
    new: &Output,
    (old, of_old): &Plain,
    (back, of_back): &Plain,
) -> io::Result<Option<u64>> {
    let mut inputs = Sources::new(planner.images.readers, &planner.derived);
    let (mut of_old, mut of_back) = (Sources::new(&[], of_old), Sources::new(&[], of_back));
    let end = old.size().min(back.size());
    let mut at = 0;
    while at < end {
        let block = at..end.min(at + BLOCK);
        let before = read_block(&mut reader(old, source.reader(), &mut of_old), &block)?;
        let mut new = reader(new, source.reader(), &mut inputs);
        let after = read_block(&mut reader(back, &mut new, &mut of_back), &block)?;
        if let Some(n) = before.iter().zip(&after).position(|(before, after)| before != after) {
            return Ok(Some(at + n as u64));
        }
        at = block.end;
    }
    Ok((old.size() != back.size()).then_some(end))
}

fn read_block(file: &mut dyn ReadSeek, block: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(block.start))?;
    file.take(block.end - block.start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the first offset at which two outputs differ. Both are of the same file, without new images.
fn difference(source: &mut Source<'_>, a: &Output, b: &Output) -> io::Result<Option<u64>> {
    let end = a.size().min(b.size());
    let mut at = 0;
    while at < end {
        let (Some((of_x, x)), Some((of_y, y))) = (a.at(at), b.at(at)) else { break };
        let n = (of_x + x.size()).min(of_y + y.size()) - at;
        let same = match (x, y) {
            (Part::Zeros(_), Part::Zeros(_)) => true,
            (Part::Input(Input::File, x), Part::Input(Input::File, y)) => {
                x.start.wrapping_sub(of_x) == y.start.wrapping_sub(of_y)
            }
            _ => false,
        };
        let n = if same { n } else { n.min(BLOCK) };
        if !same {
            let range = at..at + n;
            let (x, y) = (read(source, &a.slice(range.clone()))?, read(source, &b.slice(range))?);
            if let Some(n) = x.iter().zip(&y).position(|(x, y)| x != y) {
                return Ok(Some(at + n as u64));
            }
        }
        at += n;
    }
    Ok((a.size() != b.size()).then_some(end))
}

fn read(source: &mut Source<'_>, splices: &Output) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut reader(splices, source.reader(), &mut ()), &mut bytes)?;
    Ok(bytes)
}
