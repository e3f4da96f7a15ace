//! The entries of the bundles in an archive, as the one walker finds them.

use std::fmt;
use std::io::{self, Read, Seek};
use std::num::NonZeroUsize;

use byte_parts::ReadSeek;
use fat_object::{
    BundleForm, Container, ContainerKind, Enter, FileFormat, Finding, Image, Options, PathStep,
    Severity, Summary, Visitor, walk, walk_with_threads,
};

use crate::error::Error;
use object_edit::remove_sections;

/// Opens the file that a thin archive names.
pub(crate) type OpenThin<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>;

/// Sees one entry after the other. Its first error ends the walk.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&mut Entry<'_, '_, '_>) -> Result<(), Error>;

/// Refuses to open the files that thin archives name, for the parameter `open_thin` of [`entries`] and others.
///
/// Other functions in its place open a file: the name is the one that the archive stores, a path relative to the
/// directory of the archive. It comes from the file; what it may lead to is for the opener to decide.
///
/// # Errors
///
/// Always [`Unsupported`](io::ErrorKind::Unsupported).
pub fn no_thin_members(_name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// An entry of a bundle in a member of an archive.
pub struct Entry<'a, 'e, 's> {
    /// `None` where no archive is walked.
    member: Option<&'a PathStep>,
    bundle: usize,
    image: &'a mut Image<'e, 's>,
}

impl Entry<'_, '_, '_> {
    /// Returns the member's name; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn member(&self) -> &str {
        self.member.map_or("", PathStep::name)
    }

    /// Returns the member's name as the archive stores it.
    #[must_use]
    pub(crate) fn member_bytes(&self) -> &[u8] {
        self.member.map_or(b"", PathStep::name_bytes)
    }

    /// Returns the index of its bundle, from 0, counted through the archive: a member can hold several.
    #[must_use]
    pub(crate) fn bundle(&self) -> usize {
        self.bundle
    }

    /// Returns the bundle entry ID as stored; bytes that are not UTF-8 are replaced by U+FFFD.
    #[must_use]
    pub fn id(&self) -> &str {
        self.image.id().unwrap_or("")
    }

    /// Returns the format, from its first bytes.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.image.format()
    }

    /// Returns whether it is the host's, for which the enclosing object stands.
    fn is_placeholder(&self) -> bool {
        self.format() == FileFormat::HostPlaceholder
    }

    /// Hands out the bytes in pieces. Only host objects that must be restored are held in memory.
    pub(crate) fn pieces(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.is_placeholder() {
            return each(&self.host_object()?);
        }
        let mut failed = None;
        let result = self.image.pieces(&mut |piece| {
            each(piece).map_err(|error| {
                failed = Some(error);
                io::Error::other("the walk was ended")
            })
        });
        match failed {
            Some(error) => Err(error),
            None => result.map_err(Error::from),
        }
    }

    /// Reads all bytes into `data`. For a placeholder, reads the host object without the sections of the bundle.
    pub(crate) fn read_into<'d>(&mut self, data: &'d mut Vec<u8>) -> Result<&'d [u8], Error> {
        if self.is_placeholder() {
            *data = self.host_object()?;
            return Ok(data);
        }
        let out_of_memory = || Error::from(io::Error::from(io::ErrorKind::OutOfMemory));
        let size = usize::try_from(self.image.size()).map_err(|_| out_of_memory())?;
        if let Some(more) = size.checked_sub(data.len()) {
            data.try_reserve_exact(more).map_err(|_| out_of_memory())?;
            data.resize(size, 0);
        }
        // Longer from an earlier entry, it is not filled with zeros again.
        let (data, _) = data.split_at_mut(size);
        self.image.reader().read_exact(data)?;
        Ok(data)
    }

    /// Returns the object for which a placeholder stands.
    fn host_object(&mut self) -> Result<Vec<u8>, Error> {
        let mut object = Vec::new();
        let Some(mut reader) = self.image.enclosing_object() else {
            return Ok(object);
        };
        reader.read_to_end(&mut object)?;
        let restored = remove_sections(&object, bundle_format::MAGIC_TEXT).map_err(|error| {
            Error::malformed(format!("the host object cannot be restored: {error}"))
        })?;
        Ok(restored.into_owned())
    }

    /// Returns the offset of the bytes in the input, if they lie there.
    pub(crate) fn offset(&self) -> Option<u64> {
        if self.is_placeholder() {
            return None;
        }
        self.image.location().file_offset()
    }
}

impl fmt::Debug for Entry<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("member", &self.member())
            .field("bundle", &self.bundle)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// Shows every entry of every bundle in an archive to `each`, in the order of the file.
///
/// Bundles are members themselves, compressed or not, several back to back, or sections of members that are object
/// files. Deeper containers are left to other tools: fat binaries in `.hip_fatbin` sections, archives in archives,
/// bundles in images. The limits of `options` hold, the rest of it is decided here. Members of other kinds are
/// passed over, and so are text bundles, as `clang-offload-bundler` does.
///
/// ```
/// use std::fs::File;
/// use hda_archive::{Options, entries, no_thin_members};
///
/// let library = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/libbundles.a"))?;
/// let mut ids = Vec::new();
/// entries(library, &Options::default(), no_thin_members, |entry| {
///     ids.push(entry.id().to_owned());
///     Ok(())
/// })?;
/// assert!(ids.iter().any(|id| id == "openmp-amdgcn-amd-amdhsa--gfx906"), "{ids:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`NotAnArchive`](crate::ErrorKind::NotAnArchive), [`Truncated`](crate::ErrorKind::Truncated);
/// [`Malformed`](crate::ErrorKind::Malformed) for a malformed archive, a malformed bundle and for an object whose
/// sections cannot be read; what `each` returns. Nothing after a fault is shown.
pub fn entries<R: Read + Seek>(
    mut input: R,
    options: &Options,
    mut open_thin: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
    mut each: impl FnMut(&mut Entry<'_, '_, '_>) -> Result<(), Error>,
) -> Result<(), Error> {
    entries_of(&mut input, options, Hashes::First, &mut open_thin, &mut each)
}

/// When what compressed bundles hold is compared with their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashes {
    /// Before entries are shown.
    First,
    /// While they are shown: what was shown is of no use if [`entries_of`] fails.
    Beside,
    /// Never: it was done.
    Known,
}

/// Visits the entries as [`entries`] does, and compares hashes when `hashes` demands it.
pub(crate) fn entries_of(
    input: &mut dyn ReadSeek,
    options: &Options,
    hashes: Hashes,
    open_thin: OpenThin<'_>,
    each: Each<'_>,
) -> Result<(), Error> {
    check_archive(input)?;
    let mut visitor =
        TopLevel { member_depth: 1, bundles: 0, open_thin, each, hashes, failed: None };
    visitor.walk(options, |options, visitor| walk(input, options, visitor))
}

/// Visits the entries as [`entries_of`] does, with several threads that decompress bundles.
pub(crate) fn entries_with_threads<R: ReadSeek + Clone + Send>(
    input: &R,
    threads: Option<NonZeroUsize>,
    options: &Options,
    hashes: Hashes,
    open_thin: OpenThin<'_>,
    each: Each<'_>,
) -> Result<(), Error> {
    check_archive(&mut input.clone())?;
    let mut visitor =
        TopLevel { member_depth: 1, bundles: 0, open_thin, each, hashes, failed: None };
    visitor.walk(options, |options, visitor| walk_with_threads(input, threads, options, visitor))
}

fn check_archive(input: &mut dyn ReadSeek) -> Result<(), Error> {
    let mut head = Vec::new();
    input.rewind()?;
    Read::take(&mut *input, 8).read_to_end(&mut head)?;
    match FileFormat::sniff(&head) {
        FileFormat::Archive | FileFormat::Deb => Ok(()),
        _ => Err(Error::not_an_archive(&head)),
    }
}

/// Returns whether the data is a bundle, or an object file with the sections of one.
pub(crate) fn is_bundled(data: &[u8], options: &Options) -> Result<bool, Error> {
    let mut found = false;
    let mut each = |_: &mut Entry<'_, '_, '_>| {
        found = true;
        Ok(())
    };
    let mut visitor = TopLevel {
        member_depth: 0,
        bundles: 0,
        open_thin: &mut no_thin_members,
        each: &mut each,
        hashes: Hashes::First,
        failed: None,
    };
    visitor.walk(options, |options, visitor| walk(&mut io::Cursor::new(data), options, visitor))?;
    Ok(found)
}

/// Sees only what lies directly in the members.
struct TopLevel<'v> {
    /// Number of steps to a member: 0 if the walked file is itself a member.
    member_depth: usize,
    bundles: usize,
    open_thin: OpenThin<'v>,
    each: Each<'v>,
    hashes: Hashes,
    /// The error that ended the walk.
    failed: Option<Error>,
}

impl TopLevel<'_> {
    fn walk(
        &mut self,
        options: &Options,
        walk: impl FnOnce(&Options, &mut dyn Visitor) -> io::Result<Summary>,
    ) -> Result<(), Error> {
        let options = options.clone().with_verify_hash(self.hashes != Hashes::Known);
        let options = options.with_enter_images(false).with_scan(false).with_tables_only(false);
        match walk(&options, self) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed.take().unwrap_or(error.into())),
        }
    }

    /// Ends the walk.
    fn fail(&mut self, error: Error) -> io::Error {
        self.failed = Some(error);
        io::Error::other("the walk was ended")
    }

    /// Returns the steps inside the member; `None` outside of one, or in an archive where none is walked.
    fn inside<'p>(&self, path: &'p [PathStep]) -> Option<&'p [PathStep]> {
        path.get(self.member_depth..)
    }
}

impl Visitor for TopLevel<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        // Sections of one object are one bundle, which starts with the member.
        let starts_bundle = match self.inside(container.path()) {
            Some([]) => true,
            Some(inside) => is_bundle(inside),
            None => false,
        };
        self.bundles += usize::from(starts_bundle);
        Ok(())
    }

    fn opens(&mut self, container: &Container) -> Enter {
        match self.inside(container.path()) {
            Some([step]) if step.kind() != ContainerKind::Ccob && !is_bundle_step(step) => {
                Enter::Skip
            }
            _ if self.hashes == Hashes::Beside => Enter::OpenEarly,
            _ => Enter::Open,
        }
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let path = image.info().path();
        let wanted = match self.inside(path) {
            Some([section]) if section.kind() == ContainerKind::Section => {
                image.bundle_form() == Some(BundleForm::Section)
            }
            Some(inside) => is_bundle(inside) && image.bundle_form() == Some(BundleForm::Binary),
            None => false,
        };
        if !wanted {
            return Ok(());
        }
        let member = self.member_depth.checked_sub(1).and_then(|index| path.get(index));
        // Sections of an object that is walked by itself come after no start.
        let bundle = self.bundles.saturating_sub(1);
        let mut entry = Entry { member, bundle, image };
        (self.each)(&mut entry).map_err(|error| self.fail(error))
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        use fat_object::ErrorKind as Fault;

        if finding.severity() != Severity::Error {
            return Ok(());
        }
        let fault = finding.error();
        let matters = match self.inside(finding.path()) {
            // The archive itself. LLVM does not compare the sizes of a thin archive's members.
            None => fault.kind() != Fault::ThinMemberSize,
            // Members other than bundles and objects may have any format.
            Some([]) => match fault.kind() {
                Fault::Archive | Fault::ThinMember => false,
                Fault::HostFile => fault.bitcode().is_none(),
                Fault::Malformed => {
                    matches!(fault.container(), Some(ContainerKind::Bundle | ContainerKind::Ccob))
                }
                _ => true,
            },
            Some([step]) => step.kind() == ContainerKind::Ccob || is_bundle_step(step),
            Some(inside) => is_bundle(inside),
        };
        if matters {
            return Err(self.fail(finding.into()));
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        (self.open_thin)(name)
    }
}

/// Returns whether these steps from a member end in a bundle, compressed or not.
fn is_bundle(inside: &[PathStep]) -> bool {
    let mut kinds = inside.iter().map(PathStep::kind);
    let first = kinds.next();
    let last = match first {
        Some(ContainerKind::Ccob) => kinds.next(),
        first => first,
    };
    last == Some(ContainerKind::Bundle) && kinds.next().is_none()
}

/// Returns whether the step is a bundle, or a section that is an entry of one.
fn is_bundle_step(step: &PathStep) -> bool {
    match step.kind() {
        ContainerKind::Bundle => true,
        ContainerKind::Section => step.name().starts_with(bundle_format::MAGIC_TEXT),
        _ => false,
    }
}
