//! The walk through any file.

use std::collections::BTreeSet;
use std::io::{self, Cursor, Read};
use std::ops::Range;

use byte_parts::ReadSeek;
use fat_object::{
    Container, ContainerKind, Error, ErrorKind, FileFormat, Finding, Image, ImageInfo, Listing,
    Location, Options, Severity, Visitor, has_device_code, list, list_slice,
    list_with_thin_members, walk,
};

use crate::agreement;

/// The most that a run may have decompressed at one time.
const LIMIT: u64 = 16 << 20;
/// Limit of decompressed bytes in total, beyond that, for each byte of a file.
const EXPANSION: u64 = 64;
/// Members of thin archives that can be opened in one run.
const THIN_LIMIT: usize = 16;

/// Checks the rules of walking.
pub fn check(data: &[u8]) {
    Walk::new(data).run();
}

/// The place of bytes: in the file, in decompressed data, in a thin archive's member, in data copied out of
/// bitcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BytesIn {
    File,
    Decompressed,
    ThinMember,
    Bitcode,
}

fn place(location: Location) -> (BytesIn, u64) {
    match location {
        Location::File(at) => (BytesIn::File, at),
        Location::Decompressed(at) => (BytesIn::Decompressed, at),
        Location::ThinMember(at) => (BytesIn::ThinMember, at),
        Location::Bitcode(at) => (BytesIn::Bitcode, at),
        _ => panic!("a new kind of location: {location:?}"),
    }
}

/// Checks that a walk which knows sections by name and type alone finds the images of a walk that looks into all, where names
/// say so, and no others.
fn compare_by_name(data: &[u8], options: &Options, all: &Listing) {
    let options = options.clone().with_section_starts(false);
    let by_name = list_slice(data, &options).expect("memory can always be read");
    let read = list(Cursor::new(data), &options).expect("memory can always be read");
    assert_eq!(by_name.images(), read.images());
    let key = |image: &ImageInfo| {
        // An image without an ID has a number: how many images the walk met before, in other sections, too.
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let path = image.path().iter().map(|step| match step.kind() {
            ContainerKind::Image if is_number(step.name()) => "image".to_owned(),
            _ => step.to_string(),
        });
        let path: Vec<_> = path.collect();
        (path, format!("{:?}", image.location()), image.size())
    };
    let keys = |listing: &Listing| listing.images().iter().map(key).collect::<BTreeSet<_>>();
    let (all_keys, by_name) = (keys(all), keys(&by_name));
    // The contents of other sections count towards limits.
    if all.findings().iter().any(|finding| finding.error().kind() == ErrorKind::Limit) {
        return;
    }
    assert!(by_name.is_subset(&all_keys), "{by_name:?} {all_keys:?}");
    let is_named = |image: &&ImageInfo| {
        let mut steps = image.path().iter();
        let section = steps.find(|step| step.kind() == ContainerKind::Section);
        section.is_none_or(|section| {
            let starts = [".llvm.offloading", "__CLANG_OFFLOAD_BUNDLE__"];
            let names = [".hip_fatbin", ".nv_fatbin", "__nv_relfatbin"];
            let name = section.name();
            starts.iter().any(|start| name.starts_with(start)) || names.contains(&name)
        })
    };
    for image in all.images().iter().filter(is_named) {
        assert!(by_name.contains(&key(image)), "{image}");
    }
}

/// The limits of a container for its contents.
#[derive(Debug)]
struct Frame {
    kind: ContainerKind,
    is_compressed: bool,
    place: BytesIn,
    range: Range<u64>,
    /// `true` if it can be a section that bitcode will become, which only its contents show.
    in_bitcode: bool,
    /// Errors that were found before it was entered, if only the scan found it.
    scanned_after: Option<usize>,
    /// The ranges of the containers and images directly inside.
    inside: Vec<Range<u64>>,
}

/// A visitor that checks every call.
#[derive(Debug)]
pub struct Walk<'d> {
    data: &'d [u8],
    frames: Vec<Frame>,
    /// Bytes that were there to be walked: the file, what was decompressed, members of thin archives.
    bytes: u64,
    decompressed: u64,
    /// Names of members of thin archives that were asked for.
    pub opened: Vec<Vec<u8>>,
    /// Names of members of the file itself, and where they lie in it.
    pub members: Vec<(Vec<u8>, Range<u64>)>,
    /// The contents of all images in the order of the walk.
    pub images: Vec<Vec<u8>>,
    /// The images as values.
    listed: Vec<ImageInfo>,
    /// `true` if a container of device code was entered.
    has_code: bool,
    /// Images that are for other devices than their containers say, and findings that say so.
    marked: usize,
    disagreements: usize,
    /// The texts of all findings.
    findings: Vec<String>,
    /// The damage that was found.
    pub errors: Vec<String>,
}

impl<'d> Walk<'d> {
    /// Creates a walk through `data`.
    pub fn new(data: &'d [u8]) -> Self {
        let len = data.len() as u64;
        let file = Frame {
            kind: ContainerKind::Member,
            is_compressed: false,
            place: BytesIn::File,
            range: 0..len,
            in_bitcode: false,
            scanned_after: None,
            inside: vec![],
        };
        Walk {
            data,
            frames: vec![file],
            bytes: len,
            decompressed: 0,
            opened: Vec::new(),
            members: Vec::new(),
            images: Vec::new(),
            listed: Vec::new(),
            has_code: false,
            marked: 0,
            disagreements: 0,
            findings: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Runs the walk.
    pub fn run(&mut self) {
        let options = Options::default().with_max_decompressed(LIMIT).with_max_expansion(EXPANSION);
        let depth = 32;
        let options = options.with_max_depth(depth as usize);
        let result = walk(&mut Cursor::new(self.data), &options, self);
        let summary = result.expect("memory can always be read");
        assert_eq!(summary.size, self.data.len() as u64);
        assert_eq!((summary.images, summary.findings), (self.images.len(), self.findings.len()));
        assert_eq!(self.marked, self.disagreements);
        assert_eq!(self.frames.len(), 1);
        assert_disjoint(&mut self.frames[0]);
        // An image takes a descriptor of at least 25 bytes on each level.
        assert!(self.images.len() as u64 <= self.bytes * (depth + 1) / 25);
        self.compare_with_list(&options);
        self.compare_with_tables(&options);
        self.compare_with_answer(summary.format);
    }

    /// Checks that `has_device_code` agrees with a walk, and a walk of bytes in memory with one that reads.
    fn compare_with_answer(&self, format: FileFormat) {
        let answer = has_device_code(self.data);
        // Without files that thin archives name.
        let options = Options::default().with_max_decompressed(LIMIT).with_max_expansion(EXPANSION);
        let read = list(Cursor::new(self.data), &options).expect("memory can always be read");
        let lent = list_slice(self.data, &options).expect("memory can always be read");
        // A reader limits how often headers are read, which costs nothing in memory.
        let limited = |listing: &Listing| {
            let mut kinds = listing.findings().iter().map(|finding| finding.error().kind());
            kinds.any(|kind| matches!(kind, ErrorKind::HostFile | ErrorKind::Archive))
        };
        let texts = |listing: &Listing| -> Vec<_> {
            listing.findings().iter().map(ToString::to_string).collect()
        };
        if !limited(&read) {
            assert_eq!(lent.images(), read.images());
            assert_eq!(texts(&lent), texts(&read));
        }
        // The question concerns sections; a scan reads the rest of them.
        let all = lent;
        let options = options.with_scan(false);
        let lent = list_slice(self.data, &options).expect("memory can be read");
        // A walk of bytes in memory passes over sections by their first bytes.
        let read = list(Cursor::new(self.data), &options).expect("memory can always be read");
        if !limited(&read) {
            assert_eq!(lent.images(), read.images());
            assert_eq!(texts(&lent), texts(&read));
            compare_by_name(self.data, &options, &read);
        }
        assert!(all.images().len() >= lent.images().len());
        for image in all.images() {
            let lies_here = image.location().file_offset().is_some();
            assert_eq!(image.bytes_in(self.data).is_some(), lies_here);
        }
        // An image by itself has no device code in it.
        let is_inside = |image: &ImageInfo| image.container() != ContainerKind::File;
        let holds_images = lent.images().iter().any(is_inside);
        match answer {
            Ok(true) => assert!(self.has_code || !read.findings().is_empty()),
            Ok(false) => {
                assert!(!holds_images && lent.findings().is_empty());
                assert!(!self.has_code && format.is_read());
            }
            Err(_) => {
                assert!(!holds_images);
                assert!(!lent.findings().is_empty() || !format.is_read());
            }
        }
    }

    /// Tables of compressed bundles agree with a walk of all of a file without fault.
    fn compare_with_tables(&self, options: &Options) {
        let options = options.clone().with_enter_images(false);
        let listing = |options: &Options| {
            let mut opened = 0;
            list_with_thin_members(Cursor::new(self.data), options, |name| {
                if opened == THIN_LIMIT || name.is_empty() {
                    return Err(io::ErrorKind::NotFound.into());
                }
                opened += 1;
                Ok(Box::new(Cursor::new(self.data.to_vec())))
            })
            .expect("memory can always be read")
        };
        let whole = listing(&options);
        let by_table = listing(&options.with_tables_only(true));
        if !whole.is_complete() {
            return;
        }
        // Tables do not show what images are.
        let others = |listing: &Listing| -> Vec<_> {
            let findings = listing.findings().iter();
            let is_other = |error: &Error| error.kind() != ErrorKind::Disagreement;
            let others = findings.filter(|finding| is_other(finding.error()));
            others.map(ToString::to_string).collect()
        };
        assert_eq!(others(&by_table), others(&whole));
        assert_eq!(by_table.images().len(), whole.images().len());
        for (image, read) in by_table.images().iter().zip(whole.images()) {
            assert_eq!(
                (image.index(), image.path(), image.target(), image.id(), image.location()),
                (read.index(), read.path(), read.target(), read.id(), read.location())
            );
            assert_eq!(
                (image.offset_in_container(), image.size(), image.compression_around()),
                (read.offset_in_container(), read.size(), read.compression_around())
            );
            if image.format() == read.format() {
                assert_eq!(image.disagreement(), read.disagreement());
            } else {
                assert_eq!(image.format(), FileFormat::NotRead);
                assert!(image.compression_around().is_some() && image.size() > 0);
            }
        }
    }

    /// Checks that a listing has the results of a walk.
    fn compare_with_list(&self, options: &Options) {
        let mut opened = 0;
        let file = Cursor::new(self.data);
        let listing = list_with_thin_members(file, options, |name| {
            if opened == THIN_LIMIT || name.is_empty() {
                return Err(io::ErrorKind::NotFound.into());
            }
            opened += 1;
            Ok(Box::new(Cursor::new(self.data.to_vec())))
        });
        let listing = listing.expect("memory can always be read");
        assert_eq!(listing.size(), self.data.len() as u64);
        assert_eq!(listing.images(), self.listed);
        assert!(listing.images().iter().map(|image| image.index()).eq(0..self.listed.len()));
        assert!(
            listing.findings().iter().map(ToString::to_string).eq(self.findings.iter().cloned())
        );
        assert_eq!(listing.is_complete(), self.errors.is_empty());
        for image in listing.images() {
            assert!(!image.to_string().contains(char::is_control), "{image}");
        }
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("left what was not entered")
    }

    /// Checks that something lies inside of the container entered last.
    fn inside(&mut self, location: Location, size: u64) -> (BytesIn, Range<u64>) {
        let (place, start) = place(location);
        let range = start..start.checked_add(size).expect("ends beyond all files");
        let lies_in = |top: &Frame| {
            place == top.place && top.range.start <= range.start && range.end <= top.range.end
        };
        // Or an object file that was copied out of bitcode has the section.
        if place == BytesIn::Bitcode && self.top().in_bitcode && !lies_in(self.top()) {
            self.top().in_bitcode = false;
            // Copied out of bitcode, where each byte has at least one bit, or is an operand of an abbreviation.
            let [.., around, top] = &mut self.frames[..] else { panic!("the file lies around") };
            let len = |range: &Range<u64>| range.end - range.start;
            let len = (len(&top.range) + 1) * 8 + len(&around.range);
            (top.place, top.range) = (place, 0..len);
            self.bytes += len;
        }
        let top = self.top();
        assert_eq!(place, top.place);
        assert!(
            top.range.start <= range.start && range.end <= top.range.end,
            "{range:?} in {:?} {:?}",
            top.kind,
            top.range
        );
        (place, range)
    }
}

/// Neighbours share no bytes.
fn assert_disjoint(frame: &mut Frame) {
    frame.inside.retain(|range| !range.is_empty());
    frame.inside.sort_by_key(|range| range.start);
    for (a, b) in frame.inside.iter().zip(frame.inside.iter().skip(1)) {
        assert!(a.end <= b.start, "{a:?} and {b:?} in {:?}", frame.kind);
    }
}

impl Visitor for Walk<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        assert_eq!(container.path().len(), self.frames.len());
        assert_eq!(container.path().last().map(|segment| segment.kind()), Some(container.kind()));
        let (kind, size) = (container.kind(), container.size());
        let scanned = container.path().iter().any(|segment| segment.is_found_by_scan());
        self.has_code |= !scanned && !matches!(kind, ContainerKind::Member | ContainerKind::Slice);
        let location = place(container.location());
        let is_thin = kind == ContainerKind::Member && location == (BytesIn::ThinMember, 0);
        let (mut place, mut range) = if is_thin && self.top().place != BytesIn::ThinMember {
            (BytesIn::ThinMember, 0..size)
        } else {
            let (place, range) = self.inside(container.location(), size);
            // An image was there before it was entered.
            if kind != ContainerKind::Image && !is_thin {
                self.top().inside.push(range.clone());
            }
            (place, range)
        };
        if let ([member], BytesIn::File) = (container.path(), place)
            && kind == ContainerKind::Member
        {
            self.members.push((member.name_bytes().to_vec(), range.clone()));
        }
        let is_compressed = container.compression().is_some();
        match kind {
            ContainerKind::OffloadBinary => {}
            kind => assert_eq!(is_compressed, kind == ContainerKind::Ccob),
        }
        if let Some(compression) = container.compression() {
            assert_eq!(compression.stored_size(), size);
            assert!(compression.uncompressed_size() <= LIMIT);
            (place, range) = (BytesIn::Decompressed, 0..compression.uncompressed_size());
            self.bytes += range.end;
            self.decompressed += range.end;
        }
        let name = container.path().last().map(|segment| segment.name());
        let of_bitcode = [".llvm.offloading", ".hip_fatbin", ".nv_fatbin"].map(Some);
        let in_bitcode = kind == ContainerKind::Section && of_bitcode.contains(&name);
        let by_scan = container.path().last().is_some_and(|segment| segment.is_found_by_scan());
        let scanned_after = by_scan.then_some(self.errors.len());
        let inside = vec![];
        let frame = Frame { kind, is_compressed, place, range, in_bitcode, scanned_after, inside };
        self.frames.push(frame);
        let files = self.data.len() as u64 * (1 + self.opened.len() as u64);
        assert!(self.decompressed <= LIMIT + EXPANSION * files);
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        let mut frame = self.frames.pop().expect("left what was not entered");
        assert!(!self.frames.is_empty(), "left what was not entered");
        assert_disjoint(&mut frame);
        // The scan continues inside a damaged part.
        if frame.scanned_after.is_some_and(|before| before < self.errors.len()) {
            self.top().inside.pop();
        }
        // Bytes after the containers of a section for other data are scanned.
        if let (ContainerKind::Section, Some(last)) = (frame.kind, frame.inside.last())
            && let Some(section) = self.top().inside.last_mut()
            && frame.range == *section
        {
            section.end = last.end;
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        assert_eq!(image.index(), self.images.len());
        assert_eq!(image.path().len() + 1, self.frames.len());
        let mut contents = Vec::new();
        image.reader().read_to_end(&mut contents)?;
        let stored = image.compression().map_or(image.size(), |c| c.stored_size());
        assert_eq!(contents.len() as u64, stored);
        match image.compression() {
            None => agreement::check_marked(image, &contents),
            Some(_) => assert_eq!(image.disagreement(), None, "it was not asked for"),
        }
        self.marked += usize::from(image.disagreement().is_some());
        let holds_code = image.holds_code()?;
        assert!(image.size() > 0 || holds_code == Some(false));
        // An empty image lies wherever its container says.
        if stored > 0 {
            let (place, range) = self.inside(image.location(), stored);
            if place == BytesIn::File {
                assert!(contents == self.data[range.start as usize..range.end as usize]);
            }
            self.top().inside.push(range);
        }
        let in_compressed = self.frames.iter().any(|frame| frame.is_compressed);
        assert_eq!(image.compression_around().is_some(), in_compressed);
        self.images.push(contents);
        self.listed.push(image.info().clone());
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        assert_eq!(finding.path().len() + 1, self.frames.len());
        let text = finding.to_string();
        assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
        assert_eq!(text, finding.clone().to_string());
        if finding.severity() == Severity::Error {
            self.errors.push(text.clone());
        }
        self.disagreements += usize::from(finding.error().kind() == ErrorKind::Disagreement);
        self.findings.push(text);
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        if self.opened.len() == THIN_LIMIT || name.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.opened.push(name.to_vec());
        self.bytes += self.data.len() as u64;
        // Some file, so why not this one.
        Ok(Box::new(Cursor::new(self.data.to_vec())))
    }
}
