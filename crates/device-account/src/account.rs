//! The account of a file: a visitor of its walk claims bytes, and each byte goes to one claim.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::{ReadSeek, Source, Window};
use device_code::FileFormat;
use fat_object::{
    Container, ContainerKind, Enter, Finding, HostPartKind, Image, ImageInfo, Location, PathStep,
    Severity, Visitor, host_parts,
};
use twox_hash::XxHash3_128;

use crate::claims::{Claim, apportion, resolve, sized};
use crate::image::{Divided, divide};
use crate::kind::{Amount, ByKind, Kind, OF_IMAGES};
use crate::rows::{Row, Rows};

/// Depths of claims between two containers: the container, parts of a host file in it, entries, images.
const LEVELS: u32 = 4;

/// A visitor that makes the account of a file.
///
/// ```
/// use device_account::{Accountant, By};
/// use fat_object::{Options, walk};
///
/// let mut file = std::fs::File::open("../../examples/data/hip-two-units-ccob.so")?;
/// let mut accountant = Accountant::new();
/// walk(&mut file, &Options::default(), &mut accountant)?;
/// let account = accountant.finish(&mut file)?;
/// assert_eq!(account.total().stored, file.metadata()?.len());
/// for row in account.rows(By::TargetAndKind) {
///     println!("{} {}: {} bytes", row.target, row.name, row.amount.stored);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Accountant {
    with_functions: bool,
    spaces: Vec<Space>,
    levels: Vec<Level>,
    images: Vec<Seen>,
    rest: Vec<Rest>,
    /// Host files and archives in the file itself, with their rests.
    files: Vec<FileAt>,
    /// The claim of a container that is not entered yet.
    asked: Option<usize>,
    findings: Vec<Finding>,
}

/// Bytes that offsets count in: the file, and what was decompressed.
#[derive(Debug)]
struct Space {
    size: u64,
    is_compressed: bool,
    claims: Vec<Claim<Label>>,
}

/// The owner of claimed bytes.
#[derive(Clone, Copy, Debug)]
enum Label {
    Rest(usize),
    /// The header of an image's entry in its container, and its padding.
    Entry(usize),
    Image(usize),
    /// A compressed container.
    Space(usize),
}

/// A container that the walk is in.
#[derive(Clone, Copy, Debug)]
struct Level {
    space: usize,
    depth: u32,
    start: u64,
    size: u64,
    is_bitcode: bool,
    /// `true` for a section whose bytes that no container has are not understood.
    is_section: bool,
    /// `true` in a file that a thin archive names.
    is_elsewhere: bool,
    rest: usize,
}

/// Bytes of no image.
#[derive(Clone, Debug)]
struct Rest {
    kind: Kind,
    path: Arc<[PathStep]>,
    section: String,
    amount: Amount,
    is_damaged: bool,
}

#[derive(Clone, Copy, Debug)]
struct FileAt {
    start: u64,
    size: u64,
    depth: u32,
    rest: usize,
}

/// An image that was visited.
#[derive(Debug)]
struct Seen {
    info: ImageInfo,
    divided: Divided,
    hash: Option<u128>,
    entry: Amount,
    stored: u64,
    /// Its bytes that no other image got, where it is not compressed by itself.
    got: u64,
}

impl Default for Accountant {
    fn default() -> Self {
        Self::new()
    }
}

impl Accountant {
    /// Creates a visitor of one walk.
    #[must_use]
    pub fn new() -> Self {
        Accountant {
            with_functions: false,
            spaces: vec![Space { size: 0, is_compressed: false, claims: Vec::new() }],
            levels: Vec::new(),
            images: Vec::new(),
            rest: vec![Rest::new(Kind::NotUnderstood, Arc::default(), "")],
            files: Vec::new(),
            asked: None,
            findings: Vec::new(),
        }
    }

    /// Sets whether the bytes of images are divided by kernels and other functions, too. Default: `false`.
    #[must_use]
    pub fn with_functions(self, with_functions: bool) -> Self {
        Accountant { with_functions, ..self }
    }

    /// Returns the level of what comes next: the file, or a container.
    fn level(&self) -> Level {
        let file = Level {
            space: 0,
            depth: 0,
            start: 0,
            size: 0,
            is_bitcode: false,
            is_section: false,
            is_elsewhere: false,
            rest: 0,
        };
        self.levels.last().copied().unwrap_or(file)
    }

    /// Adds bytes of no image.
    fn add_rest(&mut self, kind: Kind, path: &Arc<[PathStep]>, section: &str) -> usize {
        self.rest.push(Rest::new(kind, Arc::clone(path), section));
        self.rest.len() - 1
    }

    fn claim(&mut self, space: usize, range: Range<u64>, depth: u32, label: Label) {
        if let Some(space) = self.spaces.get_mut(space) {
            space.claims.push(Claim::new(range, depth, label));
        }
    }

    /// Starts new bytes. A rest gets the bytes that nobody claims.
    fn add_space(&mut self, size: u64, is_compressed: bool, rest: usize) -> usize {
        let all = Claim::new(0..size, 0, Label::Rest(rest));
        self.spaces.push(Space { size, is_compressed, claims: vec![all] });
        self.spaces.len() - 1
    }

    /// Goes on in the data that bitcode embeds, if the location says so: its container does not.
    fn enter_bitcode(&mut self, location: Location) {
        let level = self.level();
        if !matches!(location, Location::Bitcode(_)) || level.is_bitcode || level.is_elsewhere {
            return;
        }
        let space = self.add_space(level.size, false, level.rest);
        let range = sized(level.start, level.size);
        self.claim(level.space, range, level.depth, Label::Space(space));
        if let Some(last) = self.levels.last_mut() {
            *last =
                Level { space, depth: 0, start: 0, is_bitcode: true, is_section: false, ..level };
        }
    }

    /// Claims the parts of a host file that starts there.
    fn host(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        (space, start, depth): (usize, u64, u32),
        path: &Arc<[PathStep]>,
    ) -> io::Result<Kind> {
        let head = source.peek(window, FileFormat::SNIFF_LEN)?;
        let format = FileFormat::sniff(&head);
        let around = match format {
            FileFormat::Elf { .. } => Kind::Padding,
            FileFormat::Coff | FileFormat::Pe | FileFormat::MachO => Kind::HostOther,
            FileFormat::Wasm => return Ok(Kind::HostOther),
            FileFormat::Bitcode => return Ok(Kind::HostCode),
            FileFormat::Archive | FileFormat::Deb => return Ok(Kind::Container),
            other if other.is_container() => return Ok(Kind::Container),
            _ => return Ok(Kind::NotUnderstood),
        };
        let Some(parts) = host_parts(source, window)? else { return Ok(Kind::NotUnderstood) };
        let whole = Window::new(&sized(start, Window::new(window).len()));
        for part in parts {
            let kind = match part.kind {
                HostPartKind::Headers => Kind::HostHeaders,
                HostPartKind::DeviceCode => Kind::Container,
                HostPartKind::Registration => Kind::Registration,
                HostPartKind::Code => Kind::HostCode,
                HostPartKind::Symbols => Kind::HostSymbols,
                HostPartKind::Relocations => Kind::HostRelocations,
                HostPartKind::Debug => Kind::HostDebug,
                _ => Kind::HostData,
            };
            // A file that was cut short has no bytes there.
            let end = part.range.end.min(whole.len());
            let Some(range) = whole.part(part.range.start.min(end)..end) else { continue };
            let rest = self.add_rest(kind, path, &part.name);
            self.claim(space, range, depth + 1, Label::Rest(rest));
        }
        Ok(around)
    }

    /// Claims the bytes of an image.
    fn add_image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let info = image.info();
        self.enter_bitcode(image.location());
        let level = self.level();
        let (start, own) = (image.location().offset(), image.compression());
        let stored = own.map_or(image.size(), |own| own.stored_size());
        if level.is_elsewhere || stored == 0 {
            return Ok(());
        }
        let depth = level.depth + LEVELS;
        let range = sized(start, stored);
        let (format, path) = (image.format(), Arc::from(image.path()));
        let is_around = own.is_none() && image.sycl().is_none() && format.is_container();
        if is_around || (own.is_none() && is_host(info)) {
            let kind = if is_around {
                Kind::Container
            } else {
                let bytes = bytes_of(image, &mut self.findings)?.unwrap_or(Cow::Borrowed(&[]));
                let window = 0..bytes.len() as u64;
                let mut source = Source::of_bytes(&bytes);
                self.host(&mut source, &window, (level.space, start, depth), &path)?
            };
            // A text or a placeholder is the host's nevertheless.
            let kind = match kind {
                Kind::NotUnderstood if is_host(info) => Kind::HostOther,
                kind => kind,
            };
            let rest = self.add_rest(kind, &path, "");
            self.claim(level.space, range, depth, Label::Rest(rest));
            return Ok(());
        }
        let with_functions = self.with_functions;
        let is_opaque = own.is_some_and(|own| !own.is_known());
        let (divided, hash) = match bytes_of(image, &mut self.findings)? {
            None => (Divided::of(Kind::NotUnderstood, stored), None),
            Some(bytes) => {
                let hash = XxHash3_128::oneshot(&bytes);
                let size = info.size();
                let divided = if info.format() == FileFormat::LtoIr {
                    // Only NVIDIA's linker reads it.
                    Divided::of(Kind::LtoIr, size)
                } else if is_opaque {
                    Divided::of(Kind::NotUnderstood, size)
                } else {
                    let head = bytes.get(..FileFormat::SNIFF_LEN).unwrap_or(&bytes);
                    divide(&bytes, size, FileFormat::sniff(head), with_functions)
                };
                (divided, Some(hash))
            }
        };
        let index = self.images.len();
        if let Some(entry) = info.fatbinary_entry() {
            let at = sized(level.start, entry.start).end;
            let entry = sized(at, entry.end - entry.start);
            self.claim(level.space, entry, depth, Label::Entry(index));
        }
        self.claim(level.space, range, depth + 1, Label::Image(index));
        let (info, entry) = (info.clone(), Amount::default());
        self.images.push(Seen { info, divided, hash, entry, stored: 0, got: 0 });
        Ok(())
    }

    /// Ends the account of the walked file.
    ///
    /// # Errors
    ///
    /// An error of reading.
    pub fn finish(mut self, file: impl ReadSeek) -> io::Result<Account> {
        let mut source = Source::new(file)?;
        let size = source.len();
        for FileAt { start, size, depth, rest } in std::mem::take(&mut self.files) {
            let Some(path) = self.rest.get(rest).map(|rest| Arc::clone(&rest.path)) else {
                continue;
            };
            let window = start..sized(start, size).end.min(source.len());
            let kind = self.host(&mut source, &window, (0, start, depth), &path)?;
            self.set_kind(rest, kind);
        }
        let kind = self.host(&mut source, &(0..size), (0, 0, 0), &Arc::default())?;
        self.set_kind(0, kind);
        if let Some(file) = self.spaces.first_mut() {
            file.size = size;
            file.claims.push(Claim::new(0..size, 0, Label::Rest(0)));
        }
        Ok(self.settle(size))
    }

    fn set_kind(&mut self, rest: usize, kind: Kind) {
        if let Some(rest) = self.rest.get_mut(rest) {
            rest.kind = if rest.is_damaged { Kind::NotUnderstood } else { kind };
        }
    }

    /// Gives each byte to one claim.
    fn settle(mut self, size: u64) -> Account {
        let mut shared = 0;
        let mut is_apportioned = false;
        // The bytes in the file of each space. A space comes before the spaces in it.
        let mut stored = vec![0; self.spaces.len()];
        stored.iter_mut().take(1).for_each(|file| *file = size);
        for (at, space) in std::mem::take(&mut self.spaces).into_iter().enumerate() {
            let mut got = vec![0; space.claims.len()];
            shared += resolve(space.size, &space.claims, u32::MAX, |claim, range| {
                if let Some(got) = got.get_mut(claim) {
                    *got += range.end - range.start;
                }
            });
            let of_space = stored.get(at).copied().unwrap_or(0);
            is_apportioned |= space.is_compressed;
            let parts = apportion(of_space, &got);
            for ((claim, plain), in_file) in space.claims.iter().zip(got).zip(parts) {
                let amount = Amount::new(in_file, plain);
                match claim.label {
                    Label::Rest(rest) => {
                        if let Some(rest) = self.rest.get_mut(rest) {
                            rest.amount += amount;
                        }
                    }
                    Label::Entry(image) => {
                        if let Some(image) = self.images.get_mut(image) {
                            image.entry += amount;
                        }
                    }
                    Label::Image(image) => {
                        if let Some(image) = self.images.get_mut(image) {
                            image.stored += in_file;
                            image.got += plain;
                        }
                    }
                    Label::Space(space) => {
                        if let Some(stored) = stored.get_mut(space) {
                            *stored += in_file;
                        }
                    }
                }
            }
        }
        is_apportioned |= self.images.iter().any(|image| image.info.compression().is_some());
        shared += self.images.iter().map(|image| image.divided.shared).sum::<u64>();
        Account {
            size,
            images: self.images.into_iter().map(Seen::share).collect(),
            rest: self.rest.into_iter().filter(|rest| rest.amount != Amount::default()).collect(),
            shared,
            is_apportioned,
            findings: self.findings,
        }
    }
}

/// Returns the bytes of an image, not compressed. `None` if they are damaged, or too many, which is a finding.
fn bytes_of<'i>(
    image: &'i mut Image<'_, '_>,
    findings: &mut Vec<Finding>,
) -> io::Result<Option<Cow<'i, [u8]>>> {
    let info = image.info();
    match image.bytes() {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            findings.push(info.finding(error));
            Ok(None)
        }
        bytes => bytes.map(Some),
    }
}

/// Returns whether an image is code for the host.
fn is_host(info: &ImageInfo) -> bool {
    info.target().is_host() || info.format() == FileFormat::HostPlaceholder
}

impl Divided {
    fn of(kind: Kind, bytes: u64) -> Self {
        Divided { kinds: ByKind::of(kind, bytes), ..Divided::default() }
    }
}

impl Rest {
    fn new(kind: Kind, path: Arc<[PathStep]>, section: &str) -> Self {
        let section = section.to_owned();
        Rest { kind, path, section, amount: Amount::default(), is_damaged: false }
    }

    /// Returns the target in rows.
    fn target(&self) -> &'static str {
        if self.kind.is_host() { "host" } else { "" }
    }
}

impl Visitor for Accountant {
    fn opens(&mut self, container: &Container) -> Enter {
        self.enter_bitcode(container.location());
        let level = self.level();
        if level.is_elsewhere || matches!(container.location(), Location::ThinMember(_)) {
            // It is not part of the account, but its faults are found.
            return Enter::Open;
        }
        let path = Arc::from(container.path());
        let start = container.location().offset();
        let range = sized(start, container.size());
        // It stays so if it cannot be opened.
        let rest = self.add_rest(Kind::NotUnderstood, &path, "");
        self.claim(level.space, range, level.depth + LEVELS, Label::Rest(rest));
        self.asked = Some(rest);
        Enter::Open
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        let around = self.level();
        let Some(rest) = self.asked.take() else {
            self.levels.push(Level { is_elsewhere: true, ..around });
            return Ok(());
        };
        let (start, size) = (container.location().offset(), container.size());
        let depth = around.depth + LEVELS;
        let mut level = Level { depth, start, size, rest, is_section: false, ..around };
        match container.kind() {
            // The file around says what these are.
            ContainerKind::Section | ContainerKind::OutsideSections | ContainerKind::Image => {
                if let Some(space) = self.spaces.get_mut(around.space) {
                    space.claims.pop();
                }
                level.rest = around.rest;
                level.is_section = container.kind() == ContainerKind::Section;
            }
            ContainerKind::Member | ContainerKind::Slice => {
                self.set_kind(rest, Kind::HostOther);
                if around.space == 0 {
                    self.files.push(FileAt { start, size, depth, rest });
                }
            }
            _ => self.set_kind(rest, Kind::Container),
        }
        if let Some(compression) = container.compression() {
            let space = self.add_space(compression.uncompressed_size(), true, rest);
            let own = self.spaces.get_mut(around.space).and_then(|it| it.claims.last_mut());
            own.into_iter().for_each(|claim| claim.label = Label::Space(space));
            level = Level { space, depth: 0, start: 0, ..level };
        }
        self.levels.push(level);
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.levels.pop();
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.add_image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push(finding.clone());
        let Level { space, depth, start, size, rest, is_section, is_elsewhere, .. } = self.level();
        if is_elsewhere {
            return Ok(());
        }
        // A container that cannot be opened is not understood, and nothing around it.
        if finding.severity() == Severity::Error && self.asked.take().is_none() {
            if is_section {
                let rest = self.add_rest(Kind::NotUnderstood, &Arc::from(finding.path()), "");
                self.claim(space, sized(start, size), depth, Label::Rest(rest));
                // Once is enough.
                if let Some(level) = self.levels.last_mut() {
                    level.is_section = false;
                }
            } else if let Some(rest) = self.rest.get_mut(rest) {
                (rest.kind, rest.is_damaged) = (Kind::NotUnderstood, true);
            }
        }
        Ok(())
    }
}

/// An image, and the bytes that it has in the file.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImageShare {
    /// The image.
    pub info: ImageInfo,
    /// Its bytes by their kinds. The header of its entry in a fatbinary is of the kind [`Container`](Kind::Container).
    pub kinds: Vec<(Kind, Amount)>,
    /// Its functions, each with its part of these bytes, if they were asked for.
    pub functions: Vec<FunctionShare>,
    /// The bytes that belong to no function, by their kinds.
    pub rest: Vec<(Kind, Amount)>,
    /// A hash of its bytes, not compressed: XXH3 of 128 bits. `None` if they could not be read.
    pub hash: Option<u128>,
}

/// A kernel or another function, and the bytes that it has in the file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FunctionShare {
    /// The name as stored, mangled.
    pub name: String,
    /// Its bytes: code, constants, symbols and what describes it.
    pub amount: Amount,
    /// A hash of its machine code and constants; `None` if it has none, or if relocations change their sections: what they
    /// refer to is not compared.
    pub hash: Option<u128>,
}

impl ImageShare {
    /// Returns all its bytes.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.kinds.iter().map(|(_, amount)| *amount).sum()
    }

    /// Returns the name of its target.
    #[must_use]
    pub fn target(&self) -> String {
        self.info.total_name()
    }
}

impl Seen {
    fn share(self) -> ImageShare {
        let Seen { info, divided, hash, entry, stored, got } = self;
        // Functions first, so that they and the rest of each kind add up to the image.
        let mut weights = Vec::new();
        let mut left = divided.kinds;
        for function in &divided.functions {
            for kind in OF_IMAGES {
                let bytes = function.kinds.get(kind);
                left.take(kind, bytes);
                weights.push(bytes);
            }
        }
        weights.extend(OF_IMAGES.map(|kind| left.get(kind)));
        // Another image may have got some of its bytes.
        let plain = match info.compression() {
            None => apportion(got, &weights),
            Some(_) => weights.clone(),
        };
        let parts = apportion(stored, &weights);
        let mut sums = OF_IMAGES.map(|kind| (kind, Amount::default()));
        let mut rest = sums;
        let mut functions: Vec<FunctionShare> = divided
            .functions
            .into_iter()
            .map(|it| FunctionShare { name: it.name, amount: Amount::default(), hash: it.hash })
            .collect();
        for (at, (stored, plain)) in parts.into_iter().zip(plain).enumerate() {
            let amount = Amount::new(stored, plain);
            if let Some((_, sum)) = sums.get_mut(at % OF_IMAGES.len()) {
                *sum += amount;
            }
            if let Some(function) = functions.get_mut(at / OF_IMAGES.len()) {
                function.amount += amount;
            } else if let Some((_, sum)) = rest.get_mut(at % OF_IMAGES.len()) {
                *sum += amount;
            }
        }
        let with_entry = |kinds: [(Kind, Amount); OF_IMAGES.len()]| {
            let all = kinds.into_iter().chain([(Kind::Container, entry)]);
            all.filter(|(_, amount)| *amount != Amount::default()).collect()
        };
        let (kinds, rest) = (with_entry(sums), with_entry(rest));
        ImageShare { info, kinds, functions, rest, hash }
    }
}

/// The account of a file: each of its bytes once.
#[derive(Debug)]
pub struct Account {
    size: u64,
    images: Vec<ImageShare>,
    rest: Vec<Rest>,
    shared: u64,
    is_apportioned: bool,
    findings: Vec<Finding>,
}

/// The grouping of rows.
///
/// Exhaustive: a caller names the group that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The GPU, and the kind of bytes.
    TargetAndKind,
    /// The GPU.
    Target,
    /// The kind of bytes.
    Kind,
    /// The GPU, and the kernel or function.
    Function,
    /// The innermost container.
    Container,
    /// The section of the host file.
    Section,
}

impl Account {
    /// Returns the size of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the images, in file order.
    #[must_use]
    pub fn images(&self) -> &[ImageShare] {
        &self.images
    }

    /// Returns how many bytes two containers, images or sections claim: the first one has them.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Returns whether bytes of compressed data were apportioned to what is in it.
    #[must_use]
    pub fn is_apportioned(&self) -> bool {
        self.is_apportioned
    }

    /// Returns what the walk found wrong, and images that could not be read.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the sum of all rows: [`size`](Self::size) bytes are stored.
    #[must_use]
    pub fn total(&self) -> Amount {
        let images = self.images.iter().map(ImageShare::amount);
        images.chain(self.rest.iter().map(|rest| rest.amount)).sum()
    }

    /// Returns the rows of bytes that belong to no image, by kind: of `host`, and of no target.
    #[must_use]
    pub fn rest(&self) -> Vec<Row> {
        let mut rows = Rows::default();
        for rest in &self.rest {
            rows.add(rest.target(), rest.kind.as_str(), rest.amount);
        }
        rows.into_all()
    }

    /// Returns the rows in groups, in file order. They add up to the [total](Self::total).
    #[must_use]
    pub fn rows(&self, by: By) -> Vec<Row> {
        let mut rows = Rows::default();
        for image in &self.images {
            let target = image.target();
            match by {
                By::TargetAndKind => image.kinds.iter().for_each(|(kind, amount)| {
                    rows.add(&target, kind.as_str(), *amount);
                }),
                By::Kind => image.kinds.iter().for_each(|(kind, amount)| {
                    rows.add("", kind.as_str(), *amount);
                }),
                By::Target => rows.add(&target, "", image.amount()),
                By::Function => {
                    let mut left = image.amount();
                    for function in &image.functions {
                        rows.add(&target, &function.name, function.amount);
                        left = left.without(function.amount);
                    }
                    rows.add(&target, "", left);
                }
                By::Container => rows.add("", &path(image.info.path()), image.amount()),
                By::Section => rows.add("", &section(image.info.path(), ""), image.amount()),
            }
        }
        for rest in &self.rest {
            let target = rest.target();
            let kind = rest.kind.as_str();
            match by {
                By::TargetAndKind | By::Function => rows.add(target, kind, rest.amount),
                By::Kind => rows.add("", kind, rest.amount),
                By::Target => rows.add(target, "", rest.amount),
                By::Container => rows.add("", &path(&rest.path), rest.amount),
                By::Section => rows.add("", &section(&rest.path, &rest.section), rest.amount),
            }
        }
        rows.into_all()
    }
}

/// Returns a path as text.
fn path(path: &[PathStep]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

/// Returns the place of the section that leads to something, or that it is; empty outside of sections.
fn section(path: &[PathStep], own: &str) -> String {
    let files = path.iter().filter(|step| step.kind() == ContainerKind::Member);
    let sections = path.iter().filter(|step| step.kind() == ContainerKind::Section);
    let mut names: Vec<_> = files.map(PathStep::name).collect();
    let first = sections.map(PathStep::name).next();
    // The scan names a section and an offset.
    let first = first.map(|name| name.split_once(" at 0x").map_or(name, |(name, _)| name));
    names.extend(first.or(Some(own)).filter(|name| !name.is_empty()));
    names.join(":")
}
