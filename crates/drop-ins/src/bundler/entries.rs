//! The entries of a file's bundles, as the bundler sees them: entries of the file itself, not of bundles in images
//! or in sections for the loader.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use bundle_format::text::{Leader, TextBundle};
use byte_parts::ReadSeek;
use fat_object::{
    BundleForm, Compression, Container, ContainerKind, Enter, ErrorKind, FileFormat, Finding,
    Image, Location, PathStep, Severity, Visitor,
};

use super::job::{FileType, Notes};
use super::verbose;
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::parallel::Threads;
use tool_kit::positioned::Positioned;

/// First bytes of a file, enough to recognise any format.
const HEAD: u64 = 2048;

/// An entry of a bundle.
pub(super) struct Entry<'a, 'e, 's> {
    /// ID as stored.
    pub(super) id: &'a str,
    /// The archive's member that it lies in.
    pub(super) member: Option<&'a str>,
    pub(super) contents: Contents<'a, 'e, 's>,
}

/// The place of the bytes of an entry.
pub(super) enum Contents<'a, 'e, 's> {
    /// In the file: offset and size.
    File(u64, u64),
    /// They have to be read now.
    Now(&'a mut Image<'e, 's>),
    /// The entry means the object that it is a section of.
    Host(&'a mut Image<'e, 's>),
}

/// The result of reading a file.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// `true` if the file is a bundle at all, or an object that has one.
    pub(super) is_bundle: bool,
    /// `true` if the file is an archive.
    pub(super) is_archive: bool,
}

/// Goes through all bundles of a file, plain and compressed, in order. Damage is an error, in the end.
pub(super) fn for_each(
    path: &Path,
    file: &mut File,
    file_type: FileType,
    (limits, opening): (&fat_object::Options, Enter),
    notes: &mut Notes,
    on_entry: &mut dyn FnMut(&mut Entry<'_, '_, '_>) -> io::Result<()>,
) -> Result<Summary, Failure> {
    let name = input::display(path);
    let named = |error: &dyn std::fmt::Display| format!("'{name}': {error}");
    let mut head = Vec::new();
    file.rewind()?;
    Read::take(&mut *file, HEAD).read_to_end(&mut head)?;
    let format = FileFormat::sniff(&head);
    let limits = limits.clone().with_enter_images(false);
    // The loader decompresses sections of an object.
    let bundles = matches!(format, FileFormat::Bundle | FileFormat::CompressedBundle);
    let opens_compressed = bundles || file_type == FileType::Archive;
    let mut finder = Finder {
        input: path,
        file_type,
        on_entry,
        opening: if opens_compressed { opening } else { Enter::Skip },
        summary: Summary::default(),
        misfit: None,
        warnings: Vec::new(),
        errors: Vec::new(),
        bad_compression: Vec::new(),
        compressed: Vec::new(),
        since: Instant::now(),
    };
    let format = if file_type == FileType::Archive || may_be_bundle(format) {
        walk(file, &limits, &mut finder)?.format
    } else {
        format
    };
    let Finder { mut summary, misfit, warnings, mut errors, bad_compression, compressed, .. } =
        finder;
    summary.is_archive = matches!(format, FileFormat::Archive | FileFormat::Deb);
    notes.warnings.extend(warnings.iter().map(|warning| named(warning)));
    for (at, compression, time) in compressed {
        notes.verbose.extend(verbose::read(file, at, compression, time)?);
    }
    if notes.verbose.is_empty() && !head.is_empty() {
        notes.verbose.push("Uncompressed bundle.".to_owned());
    }
    if let FileType::Text(leader) = file_type
        && !format.is_container()
    {
        // Its markers may be further down.
        summary.is_bundle = later_text(file, leader, on_entry).map_err(|error| named(&error))?;
    }
    if let Some(misfit) = misfit.filter(|_| errors.is_empty() && bad_compression.is_empty()) {
        errors.push(misfit);
    }
    if !bad_compression.is_empty() || !errors.is_empty() {
        let bad_compression = bad_compression
            .iter()
            .map(|(words, e)| format!("Failed to decompress input: {words}{}", named(e)));
        let errors = errors.iter().map(|error| named(error));
        return Err(bad_compression.chain(errors).collect::<Vec<_>>().into());
    }
    Ok(summary)
}

/// Walks the file. All cores decompress consecutive compressed bundles.
fn walk(
    file: &File,
    limits: &fat_object::Options,
    visitor: &mut Finder<'_>,
) -> io::Result<fat_object::Summary> {
    let threads = Threads::default().for_walks();
    fat_object::walk_with_threads(&Positioned::new(file), threads, limits, visitor)
}

/// Returns whether a file of this format can be a bundle, or an object with the sections of one. Other files, such
/// as LLVM bitcode, would only take time to walk through.
fn may_be_bundle(format: FileFormat) -> bool {
    matches!(
        format,
        FileFormat::Bundle
            | FileFormat::CompressedBundle
            | FileFormat::Elf { .. }
            | FileFormat::Coff
            | FileFormat::Pe
            | FileFormat::Wasm
            | FileFormat::Ptx
            | FileFormat::LinkerScript
            | FileFormat::Unknown
    )
}

/// Returns whether the file holds a text bundle after other lines. It is read as a whole.
fn later_text(
    file: &mut File,
    leader: Leader,
    on_entry: &mut dyn FnMut(&mut Entry<'_, '_, '_>) -> io::Result<()>,
) -> io::Result<bool> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let bundle = match TextBundle::parse_with(&bytes, leader) {
        Ok(bundle) => bundle,
        Err(error) if error.kind() == bundle_format::ErrorKind::NotABundle => return Ok(false),
        Err(error) => return Err(io::Error::other(error)),
    };
    for entry in bundle.entries() {
        let id = String::from_utf8_lossy(entry.id());
        let contents = Contents::File(entry.offset(), entry.size());
        on_entry(&mut Entry { id: &id, member: None, contents })?;
    }
    Ok(true)
}

struct Finder<'a> {
    input: &'a Path,
    file_type: FileType,
    /// The answer to compressed bundles.
    opening: Enter,
    on_entry: &'a mut dyn FnMut(&mut Entry<'_, '_, '_>) -> io::Result<()>,
    summary: Summary,
    /// A bundle of another form than the type has.
    misfit: Option<String>,
    warnings: Vec<String>,
    errors: Vec<String>,
    /// Errors, too.
    bad_compression: Vec<(&'static str, String)>,
    /// Offset in the file, sizes, and how long it took.
    compressed: Vec<(u64, Compression, Duration)>,
    since: Instant,
}

impl Finder<'_> {
    /// Returns the path from the file, or from a member of an archive: whichever counts as the file. `None` for places
    /// in neither.
    fn way<'p>(&self, path: &'p [PathStep]) -> Option<(Option<&'p str>, &'p [PathStep])> {
        match (self.file_type, path) {
            (FileType::Archive, [member, way @ ..]) if member.kind() == ContainerKind::Member => {
                Some((Some(member.name()), way))
            }
            (FileType::Archive, _) => None,
            (_, way) => Some((None, way)),
        }
    }
}

/// Returns whether bundles that are the file itself lie on this way.
fn is_bundles(way: &[PathStep]) -> bool {
    way.iter().all(|step| matches!(step.kind(), ContainerKind::Bundle | ContainerKind::Ccob))
}

/// Returns whether a section that is an entry lies on this way.
fn is_section(way: &[PathStep]) -> bool {
    matches!(way, [step] if step.kind() == ContainerKind::Section)
}

impl Visitor for Finder<'_> {
    fn opens(&mut self, container: &Container) -> Enter {
        match container.compression() {
            Some(_) => self.opening,
            None => Enter::Open,
        }
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        if container.compression().is_some() && self.opening == Enter::Skip {
            return Ok(());
        }
        let Some((_, way)) = self.way(container.path()) else {
            return Ok(());
        };
        if !way.is_empty() && is_bundles(way) {
            self.summary.is_bundle = true;
            if let (Some(compression), Location::File(at)) =
                (container.compression(), container.location())
            {
                self.compressed.push((at, compression, self.since.elapsed()));
            }
        }
        self.since = Instant::now();
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let (Some(form), Some(id)) = (image.bundle_form(), image.id().map(str::to_owned)) else {
            return Ok(());
        };
        let Some((member, way)) = self.way(image.path()) else {
            return Ok(());
        };
        let counts = match form {
            BundleForm::Section => is_section(way),
            _ => is_bundles(way),
        };
        if !counts {
            return Ok(());
        }
        self.summary.is_bundle = true;
        let fits = match self.file_type {
            FileType::Text(leader) => form == BundleForm::Text(leader),
            FileType::Binary => form == BundleForm::Binary,
            FileType::Object | FileType::Archive => {
                matches!(form, BundleForm::Binary | BundleForm::Section)
            }
        };
        if !fits {
            if self.file_type != FileType::Archive {
                self.misfit.get_or_insert_with(|| misfit(self.file_type, form));
            }
            return Ok(());
        }
        let member = member.map(str::to_owned);
        let size = image.size();
        let contents = match image.location() {
            _ if image.format() == FileFormat::HostPlaceholder => Contents::Host(image),
            Location::File(offset) => Contents::File(offset, size),
            _ => Contents::Now(image),
        };
        (self.on_entry)(&mut Entry { id: &id, member: member.as_deref(), contents })
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let way = match self.way(finding.path()) {
            Some((_, way)) => way,
            // The archive itself.
            None if finding.path().is_empty() => &[],
            None => return Ok(()),
        };
        let error = finding.error();
        let of_bundles = is_bundles(way);
        let of_archive = self.file_type == FileType::Archive;
        let matters = match error.kind() {
            ErrorKind::Composition => is_bundles(way) || is_section(way),
            ErrorKind::Malformed => {
                let container = error.container();
                of_bundles && matches!(container, Some(ContainerKind::Bundle | ContainerKind::Ccob))
            }
            ErrorKind::TrailingData | ErrorKind::UnknownContents => of_bundles,
            ErrorKind::HostFile => {
                way.is_empty() && (of_archive || self.file_type == FileType::Object)
            }
            ErrorKind::Archive | ErrorKind::ThinMember => of_archive,
            ErrorKind::Limit => of_bundles || of_archive,
            ErrorKind::Names => true,
            _ => false,
        };
        if !matters {
            return Ok(());
        }
        let harmless = finding.severity() == Severity::Warning
            // Every bundle before them was found, and what LLVM's tool makes of such a file is right.
            || error.kind() == ErrorKind::TrailingData;
        match (harmless, error.ccob()) {
            (true, _) => self.warnings.push(finding.to_string()),
            (false, Some(error)) => {
                self.bad_compression.push((llvm_words(error), finding.to_string()));
            }
            (false, None) => self.errors.push(finding.to_string()),
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        input::open_thin_member(self.input, name)
    }
}

/// Returns LLVM's words for an error in a compressed bundle.
fn llvm_words(error: &ccob::Error) -> &'static str {
    use ccob::ErrorKind::{EndsEarly, Method, Stream, TrailingData, Truncated};
    match error.kind() {
        Stream | EndsEarly | TrailingData | Truncated => {
            "Could not decompress embedded file contents: "
        }
        Method => "Unknown compressing method: ",
        _ => "",
    }
}

fn misfit(file_type: FileType, form: BundleForm) -> String {
    let name = |form| match form {
        BundleForm::Binary => "a binary bundle".to_owned(),
        BundleForm::Section => "an object with the sections of a bundle".to_owned(),
        BundleForm::Text(leader) => {
            format!("a text bundle with the comment leader \"{}\"", leader.as_str())
        }
        _ => "a bundle of another form".to_owned(),
    };
    let expected = match file_type {
        FileType::Text(leader) => name(BundleForm::Text(leader)),
        _ => name(BundleForm::Binary),
    };
    format!("found {}, expected {expected} for this type", name(form))
}
