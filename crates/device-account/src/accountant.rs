//! The visitor that makes an account: what the walk comes to claims its bytes.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use byte_parts::{ReadSeek, Source};
use device_code::FileFormat;
use fat_object::{
    Container, ContainerKind, Enter, Finding, Image, ImageInfo, Location, Memory, PathStep,
    Severity, Visitor,
};

use crate::account::Account;
use crate::claims::sized;
use crate::host::{Place, claim_parts};
use crate::image::{Divided, Wanted, divide};
use crate::kind::Kind;
use crate::ledger::{Label, Ledger};

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
    wanted: Wanted,
    memory: Memory,
    ledger: Ledger,
    levels: Vec<Level>,
    /// Host files and archives in the file itself.
    files: Vec<FileAt>,
    /// The claim of a container that is not entered yet.
    asked: Option<usize>,
    findings: Vec<Finding>,
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

impl Level {
    /// The file itself.
    const FILE: Level = Level {
        space: Ledger::FILE,
        depth: 0,
        start: 0,
        size: 0,
        is_bitcode: false,
        is_section: false,
        is_elsewhere: false,
        rest: Ledger::REST,
    };
}

#[derive(Clone, Copy, Debug)]
struct FileAt {
    start: u64,
    size: u64,
    depth: u32,
    rest: usize,
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
            wanted: Wanted::default(),
            memory: Memory::default(),
            ledger: Ledger::new(),
            levels: Vec::new(),
            files: Vec::new(),
            asked: None,
            findings: Vec::new(),
        }
    }

    /// Sets whether the bytes of images are divided by kernels and other functions, too. Default: `false`.
    #[must_use]
    pub fn with_functions(mut self, with_functions: bool) -> Self {
        self.wanted.functions = with_functions;
        self
    }

    /// Sets whether images are hashed, and their functions, if bytes are divided by them: [`Copies::find`](crate::Copies::find)
    /// compares hashes. Default: `false`.
    #[must_use]
    pub fn with_hashes(mut self, with_hashes: bool) -> Self {
        self.wanted.hashes = with_hashes;
        self
    }

    /// Ends the account of the walked file.
    ///
    /// # Errors
    ///
    /// An error of reading.
    pub fn finish(mut self, file: impl ReadSeek) -> io::Result<Account> {
        let mut source = Source::new(file)?;
        let size = source.len();
        let whole = FileAt { start: 0, size, depth: 0, rest: Ledger::REST };
        for FileAt { start, size, depth, rest } in self.files.into_iter().chain([whole]) {
            let window = start..sized(start, size).end.min(source.len());
            let place = Place { space: Ledger::FILE, start, depth };
            let path = self.ledger.path(rest);
            let kind = claim_parts(&mut self.ledger, &mut source, &window, place, &path)?;
            self.ledger.set_kind(rest, kind);
        }
        Ok(self.ledger.settle(size, self.findings))
    }

    /// Returns the container that the walk is in, or the file.
    fn level(&self) -> Level {
        self.levels.last().copied().unwrap_or(Level::FILE)
    }

    /// Goes on in the data that bitcode embeds, if the location says so: its container does not.
    fn enter_bitcode(&mut self, location: Location) {
        let level = self.level();
        if !matches!(location, Location::Bitcode(_)) || level.is_bitcode || level.is_elsewhere {
            return;
        }
        let space = self.ledger.add_space(level.size, false, level.rest);
        let range = sized(level.start, level.size);
        self.ledger.claim(level.space, range, level.depth, Label::Space(space));
        if let Some(last) = self.levels.last_mut() {
            *last =
                Level { space, depth: 0, start: 0, is_bitcode: true, is_section: false, ..level };
        }
    }

    /// Claims the parts of an image that is code for the host. Returns the kind of the bytes between them.
    fn host_image(
        &mut self,
        image: &mut Image<'_, '_>,
        place: Place,
        path: &Arc<[PathStep]>,
    ) -> io::Result<Kind> {
        let Some(bytes) = bytes_of(image, &mut self.memory, &mut self.findings)? else {
            return Ok(Kind::NotUnderstood);
        };
        let (mut source, window) = (Source::of_bytes(&bytes), 0..bytes.len() as u64);
        let kind = claim_parts(&mut self.ledger, &mut source, &window, place, path)?;
        // A text or a placeholder is the host's nevertheless.
        Ok(if kind == Kind::NotUnderstood { Kind::HostOther } else { kind })
    }

    /// Divides the bytes of an image for a device.
    fn divided(&mut self, image: &mut Image<'_, '_>, stored: u64) -> io::Result<Divided> {
        let info = image.info();
        let is_opaque = image.compression().is_some_and(|own| !own.is_known());
        let Some(bytes) = bytes_of(image, &mut self.memory, &mut self.findings)? else {
            return Ok(Divided::of(Kind::NotUnderstood, stored));
        };
        let format = match info.format() {
            // Only NVIDIA's linker reads it.
            FileFormat::LtoIr => FileFormat::LtoIr,
            _ if is_opaque => FileFormat::Unknown,
            _ => FileFormat::sniff(bytes.get(..FileFormat::SNIFF_LEN).unwrap_or(&bytes)),
        };
        let divided = divide(&bytes, info.size(), format, self.wanted);
        self.findings.extend(divided.fault.as_ref().map(|fault| info.finding_of(fault)));
        Ok(divided)
    }
}

/// Returns the bytes of an image, not compressed. `None` if they are damaged, or too many, which is a finding.
fn bytes_of<'i>(
    image: &'i mut Image<'_, '_>,
    memory: &'i mut Memory,
    findings: &mut Vec<Finding>,
) -> io::Result<Option<Cow<'i, [u8]>>> {
    let info = image.info();
    match image.bytes_with(memory) {
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

impl Visitor for Accountant {
    fn opens(&mut self, container: &Container) -> Enter {
        self.enter_bitcode(container.location());
        let level = self.level();
        if level.is_elsewhere || matches!(container.location(), Location::ThinMember(_)) {
            // It is not part of the account, but its faults are found.
            return Enter::Open;
        }
        let range = sized(container.location().offset(), container.size());
        // It stays so if it cannot be opened.
        let path = Arc::from(container.path());
        let rest = self.ledger.add_rest(Kind::NotUnderstood, &path, "");
        self.ledger.claim(level.space, range, level.depth + LEVELS, Label::Rest(rest));
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
                self.ledger.unclaim(around.space);
                level.rest = around.rest;
                level.is_section = container.kind() == ContainerKind::Section;
            }
            ContainerKind::Member | ContainerKind::Slice => {
                self.ledger.set_kind(rest, Kind::HostOther);
                if around.space == Ledger::FILE {
                    self.files.push(FileAt { start, size, depth, rest });
                }
            }
            _ => self.ledger.set_kind(rest, Kind::Container),
        }
        if let Some(compression) = container.compression() {
            let space = self.ledger.add_space(compression.uncompressed_size(), true, rest);
            self.ledger.relabel(around.space, Label::Space(space));
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
        let info = image.info();
        self.enter_bitcode(image.location());
        let Level { space, depth, start: container, is_elsewhere, .. } = self.level();
        let (start, own) = (image.location().offset(), image.compression());
        let stored = own.map_or(image.size(), |own| own.stored_size());
        if is_elsewhere || stored == 0 {
            return Ok(());
        }
        let (range, depth) = (sized(start, stored), depth + LEVELS);
        let is_around = image.sycl().is_none() && image.format().is_container();
        if own.is_none() && (is_around || is_host(info)) {
            let path = Arc::from(image.path());
            let kind = if is_around {
                Kind::Container
            } else {
                self.host_image(image, Place { space, start, depth }, &path)?
            };
            let rest = self.ledger.add_rest(kind, &path, "");
            self.ledger.claim(space, range, depth, Label::Rest(rest));
            return Ok(());
        }
        let divided = self.divided(image, stored)?;
        self.memory.trim();
        let index = self.ledger.add_image(info.clone(), divided);
        if let Some(entry) = info.fatbinary_entry() {
            let at = sized(container, entry.start).end;
            let entry = sized(at, entry.end - entry.start);
            self.ledger.claim(space, entry, depth, Label::Entry(index));
        }
        self.ledger.claim(space, range, depth + 1, Label::Image(index));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push(finding.clone());
        let Level { space, depth, start, size, rest, is_section, is_elsewhere, .. } = self.level();
        // A container that cannot be opened is not understood, and nothing around it.
        let is_inside =
            !is_elsewhere && finding.severity() == Severity::Error && self.asked.take().is_none();
        if is_inside && is_section {
            let rest = self.ledger.add_rest(Kind::NotUnderstood, &Arc::from(finding.path()), "");
            self.ledger.claim(space, sized(start, size), depth, Label::Rest(rest));
            // Once is enough.
            if let Some(level) = self.levels.last_mut() {
                level.is_section = false;
            }
        } else if is_inside {
            self.ledger.set_damaged(rest);
        }
        Ok(())
    }
}
