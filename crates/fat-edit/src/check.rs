//! The check of every edit: the new file, read before it is written, holds the images that are to be in it, and no
//! others.
//!
//! A container or an image that is a copied range of the edited file is known by that range, and a new image by its
//! number: their bytes are not read. All others are compared by hash.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, SeekFrom};
use std::ops::Range;

use bundle_format::text::is_text_bundle;
use byte_parts::{Part, ReadSeek, Source};
use device_select::Need;
use fat_object::{
    Container, ContainerKind, Enter, Finding, Image, ImageInfo, Location, Options, PathStep,
    Visitor, walk, walk_slice,
};
use object_edit::{Input, Output, copy_of, reader};

use crate::decompress::{Decompress, Stored};
use crate::edit::NewImage;
use crate::error::Problem;
use crate::image_hash::{Hash, hash, is_padded};
use crate::inputs::Sources;
use crate::nv_fatbin;
use crate::plan::EditPlan;
use crate::survey::EditableFile;
use crate::wishes::Wish;
use crate::write::refused;

/// The range of a container in the edited file: its start and its end.
type Extent = (u64, u64);

/// The bytes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    /// This range of the edited file.
    Old(u64, u64),
    /// This range of the new image with this number.
    New(usize, u64, u64),
    /// Bytes with this hash.
    Hash(u64),
}

/// An image that is not empty.
#[derive(Clone, Debug)]
struct Known {
    path: Vec<PathStep>,
    /// Bundle entry ID, or target.
    name: String,
    /// Bytes; 0 in a fatbinary, which pads its images.
    size: u64,
    content: Content,
}

impl Known {
    fn of(image: &ImageInfo, content: Content) -> Self {
        let name = image.id().map_or_else(|| image.target().to_string(), str::to_owned);
        Known { path: image.path().to_vec(), name, size: size(image), content }
    }

    fn key(&self) -> (String, u64, Content) {
        (self.name.clone(), self.size, self.content)
    }

    /// Returns the key of a new image, whose container may name its target in another way.
    fn nameless_key(&self) -> (u64, Content) {
        (self.size, self.content)
    }
}

fn size(image: &ImageInfo) -> u64 {
    if is_padded(image.container()) { 0 } else { image.size() }
}

/// A container of the edited file, as it is expected in the new one.
struct Old {
    place: Extent,
    /// `true` if that is one in the edited file itself.
    is_in_file: bool,
    /// `true` if nothing in it changes.
    stays: bool,
    /// `true` if the survey did not open it.
    is_closed: bool,
    /// Images that stay.
    images: Vec<Known>,
}

/// The images that a new file has to hold.
pub(crate) struct Expected {
    old: Vec<Old>,
    new: Vec<Known>,
}

impl Expected {
    /// Expects all images of a surveyed file with these wishes.
    pub(crate) fn new(contents: &EditableFile, wish: impl Fn(&ImageInfo) -> Wish) -> Self {
        let mut expected = Expected { old: Vec::new(), new: Vec::new() };
        let whole = copy_of(&(0..contents.size));
        for container in &contents.containers {
            let start = container.location.offset();
            let is_in_file = matches!(container.location, Location::File(_));
            let mut old = Old {
                place: (start, start + container.size),
                is_in_file,
                stays: is_in_file,
                is_closed: container.compression.is_some() && !contents.is_open,
                images: Vec::new(),
            };
            for image in contents.images_in(container) {
                let wish = wish(image);
                old.stays &= wish == Wish::Keep;
                match wish {
                    Wish::Remove => {}
                    Wish::Keep if image.size() == 0 || old.is_closed => {}
                    Wish::Keep => {
                        let hash = contents.hashes.get(&image.index()).copied();
                        let content = copied(&whole, image).or(hash.map(Content::Hash));
                        old.images.extend(content.map(|content| Known::of(image, content)));
                    }
                    Wish::Replace(new) => expected.add(container.kind, new.number, new.size),
                }
            }
            expected.old.push(old);
        }
        expected
    }

    /// Expects a new image in a container of this kind.
    pub(crate) fn add(&mut self, container: ContainerKind, number: usize, size: u64) {
        if size > 0 {
            self.new.push(Known {
                path: Vec::new(),
                name: format!("new image {number}"),
                size: if is_padded(container) { 0 } else { size },
                content: Content::New(number, 0, size),
            });
        }
    }

    /// Expects the images of these bytes, made of new images.
    pub(crate) fn add_contents(
        &mut self,
        contents: &Output,
        images: &[NewImage],
        source: &mut Source<'_>,
    ) -> Result<(), Problem> {
        let file = File { parts: contents, derived: &[], images };
        self.new
            .extend(file.find(source, Gather::new(&file), &options(&Options::default()))?.images);
        Ok(())
    }
}

const SURPLUS: &str = "would be there, which is not expected";

/// Checks that a planned file holds the expected images, and no others. Returns what the containers that are not copied need.
pub(crate) fn check(
    contents: &EditableFile,
    source: &mut Source<'_>,
    plan: &EditPlan,
    expected: Expected,
) -> Result<BTreeSet<Need>, Problem> {
    if plan.is_unchanged() {
        return Ok(BTreeSet::new());
    }
    let checked = check_changed(contents, source, plan, expected);
    let is_damaged = |bundle: &Decompress| bundle.read(source.reader()).is_err();
    if checked.is_err() && plan.derived.iter().any(is_damaged) {
        // It is decompressed only when the new file is written, which fails and says why.
        return Ok(BTreeSet::new());
    }
    checked
}

fn check_changed(
    contents: &EditableFile,
    source: &mut Source<'_>,
    plan: &EditPlan,
    expected: Expected,
) -> Result<BTreeSet<Need>, Problem> {
    // A scan reads the whole file: it is for files in which one has found something.
    let options = options(&contents.options).with_scan(contents.has_scanned());
    let file = File { parts: &plan.parts, derived: &plan.derived, images: &plan.new_images };
    let whole: BTreeSet<Extent> =
        expected.old.iter().filter(|old| old.stays).map(|old| old.place).collect();
    let found = file.find(source, Gather { whole: &whole, ..Gather::new(&file) }, &options)?;
    let mut kept: BTreeMap<Extent, usize> = BTreeMap::new();
    found.whole.iter().for_each(|(place, _)| *kept.entry(*place).or_default() += 1);
    let (mut missing, mut closed) = (Vec::new(), BTreeSet::new());
    for old in expected.old {
        match kept.get_mut(&old.place).filter(|left| old.stays && **left > 0) {
            Some(left) => *left -= 1,
            None if old.is_closed => {
                closed.insert(old.place);
            }
            None => {
                let (start, end) = old.place;
                let entries = contents.closed_entries.range((start, 0)..(end, 0));
                closed.extend(entries.filter(|_| old.is_in_file));
                missing.extend(old.images);
            }
        }
    }
    let is_surplus = |place: &Extent| kept.get(place).is_some_and(|left| *left > 0);
    if let Some((_, path)) = found.whole.into_iter().rfind(|(place, _)| is_surplus(place)) {
        return Err(Problem::not_as_expected(&path, &format!("the container {SURPLUS}")));
    }
    let mut surplus = found.images;
    cancel(&mut missing, &mut surplus, Known::key);
    let mut missing_new = expected.new;
    cancel(&mut missing_new, &mut surplus, Known::nameless_key);

    if !(missing.is_empty() && missing_new.is_empty() && surplus.is_empty() && closed.is_empty()) {
        hash_old(contents, source, &mut missing, &closed)?;
        missing_new.iter_mut().try_for_each(|image| hash_new(image, &plan.new_images))?;
        let wanted = copies(&surplus);
        if !wanted.is_empty() {
            let gather = Gather { whole: &whole, hashed: &wanted, ..Gather::new(&file) };
            hashed(&mut surplus, &file.find(source, gather, &options)?.hashes);
        }
        cancel(&mut missing, &mut surplus, Known::key);
        cancel(&mut missing_new, &mut surplus, Known::nameless_key);
    }
    let lost = missing.into_iter().chain(missing_new).next();
    match (lost, surplus.into_iter().next()) {
        (Some(image), _) => Err(image.wrong("would be lost")),
        (None, Some(image)) => Err(image.wrong(SURPLUS)),
        (None, None) => Ok(found.needs),
    }
}

impl Known {
    fn wrong(self, what: &'static str) -> Problem {
        let what = format!("image {} {what}", self.name.escape_debug());
        Problem::not_as_expected(&self.path, &what)
    }
}

/// Removes pairs with the same key.
fn cancel<K: Ord>(missing: &mut Vec<Known>, surplus: &mut Vec<Known>, key: impl Fn(&Known) -> K) {
    let mut there: BTreeMap<K, usize> = BTreeMap::new();
    surplus.iter().for_each(|image| *there.entry(key(image)).or_default() += 1);
    let mut paired: BTreeMap<K, usize> = BTreeMap::new();
    let take = |from: &mut BTreeMap<K, usize>, image: &Known| {
        from.get_mut(&key(image)).filter(|left| **left > 0).map(|left| *left -= 1).is_some()
    };
    missing.retain(|image| {
        let is_there = take(&mut there, image);
        if is_there {
            *paired.entry(key(image)).or_default() += 1;
        }
        !is_there
    });
    surplus.retain(|image| !take(&mut paired, image));
}

/// Returns the contents that have no hash yet.
fn copies(images: &[Known]) -> BTreeSet<Content> {
    let contents = images.iter().map(|image| image.content);
    contents.filter(|content| !matches!(content, Content::Hash(_))).collect()
}

/// Puts hashes in the place of copied ranges.
fn hashed(images: &mut [Known], hashes: &BTreeMap<Content, u64>) {
    for image in images {
        image.content =
            hashes.get(&image.content).map_or(image.content, |hash| Content::Hash(*hash));
    }
}

/// Hashes images of the edited file, and adds those of containers that the survey did not open.
fn hash_old(
    contents: &EditableFile,
    source: &mut Source<'_>,
    missing: &mut Vec<Known>,
    closed: &BTreeSet<Extent>,
) -> Result<(), Problem> {
    let wanted = copies(missing);
    if wanted.is_empty() && closed.is_empty() {
        return Ok(());
    }
    let parts = copy_of(&(0..contents.size));
    let file = File { parts: &parts, derived: &[], images: &[] };
    let gather = Gather { hashed: &wanted, opened: Some(closed), ..Gather::new(&file) };
    let options = options(&contents.options).with_scan(contents.has_scanned());
    let found = file.find(source, gather, &options)?;
    hashed(missing, &found.hashes);
    // Only what was opened is not a copy of the file.
    missing
        .extend(found.images.into_iter().filter(|image| matches!(image.content, Content::Hash(_))));
    Ok(())
}

fn hash_new(image: &mut Known, images: &[NewImage]) -> Result<(), Problem> {
    let Content::New(number, start, end) = image.content else { return Ok(()) };
    let available = images.len();
    let new = images.get(number).ok_or_else(|| Problem::no_new_image(number, available))?;
    let mut new = new.reader();
    new.seek(SeekFrom::Start(start))?;
    let (mut left, mut hash) = ((&mut *new).take(end - start), Hash::default());
    let read = if image.size == 0 {
        let mut code = Vec::new();
        left.read_to_end(&mut code)?;
        hash.add(&nv_fatbin::as_stored(&code));
        code.len() as u64
    } else {
        io::copy(&mut left, &mut hash)?
    };
    if read != end - start {
        return Err(Problem::input_changed());
    }
    image.content = Content::Hash(hash.finish());
    Ok(())
}

/// Returns the options of walks over files whose contents the survey has seen, within its limits.
fn options(of_survey: &Options) -> Options {
    let options = of_survey.clone().with_enter_images(false);
    options.with_max_decompressed(u64::MAX).with_max_expansion(u64::MAX).with_verify_hash(false)
}

/// A file that is not written yet.
struct File<'a> {
    parts: &'a Output,
    derived: &'a [Decompress],
    images: &'a [NewImage],
}

impl File<'_> {
    fn find(
        &self,
        source: &mut Source<'_>,
        mut gather: Gather<'_>,
        options: &Options,
    ) -> Result<WalkResult, Problem> {
        let walked = match self.text_bundle(source.reader()).map_err(refused)? {
            Some(text) => walk_slice(&text, options, &mut gather),
            None => {
                let mut inputs = Sources::new(self.images, self.derived).with_prefixes();
                walk(reader(self.parts, source.reader(), &mut inputs), options, &mut gather)
            }
        };
        walked.map_err(refused)?;
        Ok(gather.found)
    }

    /// Returns the file, if it is a text bundle that is decompressed: walks read all of a text, which is in memory once then.
    fn text_bundle(&self, file: &mut dyn ReadSeek) -> io::Result<Option<Vec<u8>>> {
        let Some((_, Part::Input(Input::Derived(number), range))) = self.parts.at(0) else {
            return Ok(None);
        };
        match self.derived.get(*number).filter(|_| range == (0..self.parts.size())) {
            Some(bundle) if is_text_bundle(&bundle.prefix(file)?) => bundle.read(file).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the one of these places of the edited file that the container is a copy of, or is decompressed from.
    fn origin(&self, container: &Container, places: &BTreeSet<Extent>) -> Option<Extent> {
        let Location::File(start) = container.location() else { return None };
        match origin(self.parts, start..start + container.size())? {
            (Input::File, range) => places.get(&(range.start, range.end)).copied(),
            (Input::Derived(number), range) => {
                let derived = self.derived.get(number)?;
                let is_whole = derived.form != Stored::FatbinEntry && range == (0..derived.size);
                // With or without the padding after it.
                let Range { start, end } = derived.stored;
                places.range((start, 0)..=(start, end)).next_back().copied().filter(|_| is_whole)
            }
            (Input::New(_), _) => None,
        }
    }
}

/// Returns the range of an input that these bytes of the file are a copy of.
fn origin(parts: &Output, range: Range<u64>) -> Option<(Input, Range<u64>)> {
    let (start, part) = parts.at(range.start)?;
    let Part::Input(&input, whole) = part else { return None };
    let from = whole.start + (range.start - start);
    let to = from.checked_add(range.end - range.start)?;
    (to <= whole.end).then_some((input, from..to))
}

/// Returns the contents of an image that is a copied range.
fn copied(parts: &Output, image: &ImageInfo) -> Option<Content> {
    let Location::File(start) = image.location() else { return None };
    match origin(parts, start..start.checked_add(image.stored_size()?)?)? {
        (Input::File, range) => Some(Content::Old(range.start, range.end)),
        (Input::New(number), range) => Some(Content::New(number, range.start, range.end)),
        (Input::Derived(_), _) => None,
    }
}

/// Result of a walk.
#[derive(Default)]
struct WalkResult {
    /// Containers that are copied as a whole, by their places in the edited file, and where they are now.
    whole: Vec<(Extent, Vec<PathStep>)>,
    /// All other images.
    images: Vec<Known>,
    /// The needs of these, by how they are compressed.
    needs: BTreeSet<Need>,
    /// Hashes of copied images that were asked for.
    hashes: BTreeMap<Content, u64>,
}

/// Finds images.
struct Gather<'a> {
    file: &'a File<'a>,
    /// Containers of the edited file that are not looked into where they are copied.
    whole: &'a BTreeSet<Extent>,
    /// The compressed containers to be opened, if not all are.
    opened: Option<&'a BTreeSet<Extent>>,
    /// Images that are hashed although they are copied.
    hashed: &'a BTreeSet<Content>,
    /// Containers entered and not left, from one that is copied as a whole inwards.
    inside: usize,
    found: WalkResult,
}

impl<'a> Gather<'a> {
    /// Opens all containers, and hashes images only where it must.
    fn new(file: &'a File<'a>) -> Self {
        const NONE: &BTreeSet<Extent> = &BTreeSet::new();
        const NOTHING: &BTreeSet<Content> = &BTreeSet::new();
        let found = WalkResult::default();
        Gather { file, whole: NONE, opened: None, hashed: NOTHING, inside: 0, found }
    }

    /// Returns the place of a container that is copied and need not be looked into.
    fn whole(&self, container: &Container) -> Option<Extent> {
        self.file.origin(container, self.whole)
    }
}

impl Visitor for Gather<'_> {
    fn opens(&mut self, container: &Container) -> Enter {
        let is_closed = |opened: &BTreeSet<Extent>| {
            let Location::File(start) = container.location() else { return false };
            let known = opened.range((start, 0)..).next();
            container.compression().is_some() && known.is_none_or(|known| known.0 != start)
        };
        if self.whole(container).is_some() || self.opened.is_some_and(is_closed) {
            Enter::Skip
        } else {
            Enter::Open
        }
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        if self.inside > 0 {
            self.inside += 1;
        } else if let Some(place) = self.whole(container) {
            self.found.whole.push((place, container.path().to_vec()));
            self.inside = 1;
        }
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        // Most containers are in none of these.
        self.inside = self.inside.saturating_sub(1);
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if self.inside > 0 || image.size() == 0 {
            return Ok(());
        }
        let copied = copied(self.file.parts, image);
        let content = match copied {
            Some(content) => {
                if self.hashed.contains(&content) && !self.found.hashes.contains_key(&content) {
                    self.found.hashes.insert(content, hash(image)?);
                }
                content
            }
            None => Content::Hash(hash(image)?),
        };
        self.found.images.push(Known::of(image, content));
        self.found.needs.extend(device_select::needs_of_compression(image));
        Ok(())
    }

    /// Passes over faults: what they hide is missing then.
    fn finding(&mut self, _: &Finding) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use object_edit::of_bytes;

    use super::*;
    use crate::edit::{Edit, EditOptions};
    use crate::survey::survey;

    const ID: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a";

    fn bundle(code: &[u8]) -> Vec<u8> {
        let layout = bundle_format::layout([(ID, code.len() as u64)], 1).unwrap();
        layout.to_vec(&[code]).unwrap()
    }

    /// Checks an edit that removes the first image of these two bundles, of 9 and 11 bytes, but gives this output.
    fn checked(edit: &Edit, output: impl Fn(Range<u64>, Range<u64>) -> Output) -> String {
        let (first, second) = (bundle(b"BC\xc0\xdefirst"), bundle(b"BC\xc0\xdesecond!"));
        let split = first.len() as u64;
        let mut file = Cursor::new([first, second].concat());
        let contents = survey(&mut file, &Options::default()).unwrap();
        let size = contents.size();
        let plan = contents.plan(&mut file, edit).unwrap();
        let plan = EditPlan { parts: output(0..split, split..size), ..plan };
        let mut source = Source::new(&mut file).unwrap();
        let is_gone = |index| edit.images.contains_key(&index);
        let wish =
            |image: &ImageInfo| if is_gone(image.index()) { Wish::Remove } else { Wish::Keep };
        match check(&contents, &mut source, &plan, Expected::new(&contents, wish)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn another_file_than_expected_is_found() {
        let kept = Edit::default();
        let mut removed = Edit::new(EditOptions::default().with_allow_empty(true));
        removed.remove(0);
        let both = |first: Range<u64>, second: Range<u64>| copy_of(&(first.start..second.end));
        let padded = |first: Range<u64>, second: Range<u64>| {
            let mut parts = copy_of(&first);
            parts.pad_to(4096);
            parts.append(&copy_of(&second));
            parts
        };
        let lost = format!("self-check failed: image {ID} would be lost");
        let surplus =
            format!("self-check failed: image {ID} would be there, which is not expected");
        assert_eq!(checked(&removed, |_, second| copy_of(&second)), "");
        assert_eq!(checked(&kept, padded), "");
        assert_eq!(checked(&kept, |_, _| of_bytes(bundle(b"x"))), format!("bundle:0: {lost}"));
        assert_eq!(checked(&kept, |first, _| copy_of(&first)), format!("bundle:1: {lost}"));
        assert_eq!(checked(&removed, padded), format!("bundle:0: {surplus}"));
        // The same bytes in another form are the same image; others of that size are not.
        let anew = |code: &'static [u8]| {
            move |first: Range<u64>, _: Range<u64>| {
                let mut parts = copy_of(&first);
                parts.push_vec(bundle(code));
                parts
            }
        };
        assert_eq!(checked(&kept, anew(b"BC\xc0\xdesecond!")), "");
        assert_eq!(checked(&kept, anew(b"BC\xc0\xdesecond?")), format!("bundle:1: {lost}"));
        let twice = |first: Range<u64>, second: Range<u64>| {
            let mut parts = both(first, second.clone());
            parts.append(&copy_of(&second));
            parts
        };
        let all =
            "bundle:2: self-check failed: the container would be there, which is not expected";
        assert_eq!(checked(&kept, twice), all);
    }
}
