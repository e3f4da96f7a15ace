//! The edit of a package: what is checked before, the members as they are read, the records after.

use std::io::{self, BufReader, Read, Write};

use byte_parts::ReadSeek;

use crate::codec::Codec;
use crate::error::{Error, ErrorKind, Finding};
use crate::hash::{Algorithm, Hash, HashedByAll};
use crate::limits::Options;
use crate::member::Member;
use crate::package::{PackageKind, sniff};
use crate::path::MemberPath;
use crate::record::Record;
use crate::rewrite::{
    Original, Replacement, RewriteOptions, Rewritten, changes_deb, changes_tar, rewrite_deb,
    rewrite_tar,
};
use crate::variant::VariantMetadata;
use crate::visitor::Visitor;
use crate::walk::walk;
use crate::wheel::{WheelEdit, check_wheel, read_record};
use crate::zip::{NewContents, Rewrite, Zip, ZipEdit, ZipMemberReader};

/// The way to the members of a package.
///
/// Exhaustive: a new form must stop the build of a caller, which reads each in its own way.
#[derive(Clone, Debug)]
pub enum PackageForm {
    /// Each can be read by itself.
    Zip(Zip),
    /// One member comes after the other.
    Stream(PackageKind),
}

impl PackageForm {
    /// Returns the form of a package that starts with `head`, of 512 bytes; `None` for another file. A compressed file is one if
    /// it is a tar file, or claims to be one and is damaged; or if `is_wanted` says so of the first bytes of its contents.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use gpu_packages::PackageForm;
    ///
    /// assert!(PackageForm::read(Cursor::new(b"\x7fELF"), b"\x7fELF", |_| true)?.is_none());
    /// # Ok::<(), gpu_packages::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of [`Zip::read`]; [`Io`](ErrorKind::Io) or [`Truncated`](ErrorKind::Truncated) if a compressed file cannot be read.
    pub fn read(
        reader: impl ReadSeek,
        head: &[u8],
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Self>, Error> {
        Ok(match sniff(head) {
            Some(PackageKind::Zip) => Some(PackageForm::Zip(Zip::read(reader)?)),
            Some(kind) => Some(PackageForm::Stream(kind)),
            None => compressed(reader, head, &is_wanted)?.map(PackageForm::Stream),
        })
    }
}

/// Returns the kind of a compressed file whose contents are looked into.
fn compressed(
    reader: impl ReadSeek,
    head: &[u8],
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Option<PackageKind>, Error> {
    struct First<'w>(PackageKind, &'w dyn Fn(&[u8]) -> bool);
    impl Visitor for First<'_> {
        fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
            if path.is_empty() {
                self.0 = kind;
            }
            true
        }

        fn compressed(&mut self, _: &MemberPath, head: &[u8]) -> bool {
            (self.1)(head)
        }

        fn member(&mut self, _: &Member, _: &mut dyn Read) -> Result<(), Error> {
            Err(Error::refused("the first member is enough"))
        }
    }
    if Codec::sniff(head) == Codec::None {
        return Ok(None);
    }
    // Other decoders fail for want of a dictionary or a filter, too.
    let is_damage = |kind| match kind {
        ErrorKind::Malformed => true,
        ErrorKind::Codec | ErrorKind::Mismatch => Codec::sniff(head) == Codec::Gzip,
        _ => false,
    };
    let mut first = First(PackageKind::Tar, is_wanted);
    match walk(BufReader::new(reader), &Options::default(), &mut first) {
        Ok(_) => Ok(Some(first.0)),
        Err(error) if is_damage(error.kind()) || error.kind() == ErrorKind::Refused => {
            Ok(Some(first.0))
        }
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Truncated) => Err(error),
        Err(_) => Ok(None),
    }
}

impl PackageKind {
    /// Fails for packages that are read, not changed: conda's newer ones, RPM packages, compressed files.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ErrorKind::Unsupported), with the reason and what to do instead.
    pub fn check_edit(self) -> Result<(), Error> {
        let why = match self {
            PackageKind::Wheel | PackageKind::Zip | PackageKind::Tar | PackageKind::Deb => {
                return Ok(());
            }
            PackageKind::Compressed => {
                let text = "is compressed as a whole: decompress it first";
                return Err(Error::new(ErrorKind::Unsupported, text));
            }
            PackageKind::Rpm => "the headers of an RPM package sign its contents",
            PackageKind::Conda => "its lists of files are compressed in it",
        };
        let text = format!(
            "{self}: packages of this kind are read, not changed ({why}); edit the files before they are packed, or where they are installed"
        );
        Err(Error::new(ErrorKind::Unsupported, text))
    }
}

/// Changes of a zip file, a wheel or not. Members of a wheel are compared with `RECORD` while they are read.
///
/// ```no_run
/// use std::fs::File;
/// use std::io::Read;
/// use std::num::NonZeroUsize;
/// use gpu_packages::{NewContents, PackageEdit, Zip};
///
/// let mut file = File::open("foo-1.0-py3-none-any.whl")?;
/// let zip = Zip::read(&mut file)?;
/// let mut edit = PackageEdit::new(&zip, &mut file)?;
/// assert!(edit.findings().is_empty(), "it is damaged");
/// let library = zip.find(b"foo/libfoo.so").ok_or("it lacks libfoo.so")?;
/// let (mut reader, mut old) = (edit.open(library, &mut file)?, Vec::new());
/// reader.read_to_end(&mut old)?;
/// let state = reader.finish();
/// assert!(edit.faults(library, &state).is_empty(), "RECORD has another hash");
/// let new = old.iter().map(u8::to_ascii_uppercase).collect::<Vec<_>>();
/// edit.replace(library, NewContents::deflate(&new[..], 6, NonZeroUsize::MIN)?);
/// edit.plan(&mut file, None, false)?.write_to(&mut file, File::create("new.whl")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PackageEdit<'z> {
    zip: &'z Zip,
    /// The `RECORD` of a wheel.
    record: Option<Record>,
    findings: Vec<Finding>,
    new: Vec<(usize, NewContents)>,
    removed: Vec<usize>,
    variant: Option<VariantMetadata>,
}

/// A reader of a member, which computes the hashes that `RECORD` has of it.
#[derive(Debug)]
pub struct CheckedReader<'r>(HashedByAll<ZipMemberReader<'r>>);

impl CheckedReader<'_> {
    /// Returns what was read, for [`PackageEdit::faults`].
    #[must_use]
    pub fn finish(self) -> Vec<Hash> {
        self.0.finish()
    }
}

impl Read for CheckedReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl<'z> PackageEdit<'z> {
    /// Starts an edit, and looks for faults of the package in its headers and `RECORD`.
    ///
    /// # Errors
    ///
    /// Errors of [`PackageKind::check_edit`], [`read_record`] and [`Zip::check`].
    pub fn new(zip: &'z Zip, mut reader: impl ReadSeek) -> Result<Self, Error> {
        zip.kind().check_edit()?;
        let (record, findings) = match zip.kind() {
            PackageKind::Wheel => {
                let record = read_record(zip, &mut reader)?;
                let findings = check_wheel(zip, &record, &mut reader)?;
                (Some(record), findings)
            }
            _ => (None, zip.check(&mut reader)?),
        };
        let (new, removed) = (Vec::new(), Vec::new());
        Ok(PackageEdit { zip, record, findings, new, removed, variant: None })
    }

    /// Returns what is wrong with the package.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Opens a member. To be compared, it must be read to its end.
    ///
    /// # Errors
    ///
    /// Errors of [`Zip::open`].
    pub fn open<'r, R: Read + io::Seek + 'r>(
        &mut self,
        index: usize,
        reader: R,
    ) -> Result<CheckedReader<'r>, Error> {
        let algorithms = self.algorithms(index);
        Ok(CheckedReader(HashedByAll::new(self.zip.open(index, reader)?, &algorithms)))
    }

    /// Returns how a member, which was read to its end, differs from `RECORD`.
    pub fn faults(&mut self, index: usize, read: &[Hash]) -> Vec<String> {
        let Some(record) = &mut self.record else { return Vec::new() };
        let Some(member) = self.zip.members().get(index) else { return Vec::new() };
        let hash = |algorithm| read.iter().find(|hash| hash.algorithm() == algorithm);
        let rows = record.find(member.name());
        rows.filter_map(|row| row.fault(member.size(), hash(row.algorithm()))).collect()
    }

    /// Returns the algorithms of the hashes that `RECORD` has of a member.
    pub fn algorithms(&mut self, index: usize) -> Vec<Algorithm> {
        let name = self.zip.members().get(index).map_or(&[][..], |member| member.name());
        self.record.as_mut().map_or_else(Vec::new, |record| record.algorithms(name))
    }

    /// Replaces the contents of a member.
    pub fn replace(&mut self, index: usize, contents: NewContents) {
        self.new.push((index, contents));
    }

    /// Leaves a member out.
    pub fn remove(&mut self, index: usize) {
        self.removed.push(index);
    }

    /// Makes a wheel a variant, as [`WheelEdit::variant`] does.
    pub fn set_variant(&mut self, metadata: VariantMetadata) {
        self.variant = Some(metadata);
    }

    /// Lays out the new package, of a wheel with its records, a build tag, and without signatures if that is allowed.
    ///
    /// # Errors
    ///
    /// Errors of [`WheelEdit::plan`] and [`ZipEdit::plan`]; [`Refused`](ErrorKind::Refused) for a build tag or a variant of another zip
    /// file.
    pub fn plan(
        self,
        reader: impl ReadSeek,
        build_tag: Option<&str>,
        drops_signature: bool,
    ) -> Result<Rewrite, Error> {
        if self.record.is_some() {
            let mut edit = WheelEdit::new(self.zip)?;
            self.new.into_iter().for_each(|(index, contents)| _ = edit.replace(index, contents));
            self.removed.into_iter().for_each(|index| _ = edit.remove(index));
            if let Some(tag) = build_tag {
                edit.build_tag(tag);
            }
            if let Some(metadata) = &self.variant {
                edit.variant(metadata);
            }
            return edit.drop_signature(drops_signature).plan(reader);
        }
        if build_tag.is_some() {
            return Err(Error::refused("a build tag is for wheels"));
        }
        if self.variant.is_some() {
            return Err(Error::refused("variants are wheels"));
        }
        let mut edit = ZipEdit::new(self.zip);
        self.new.into_iter().for_each(|(index, contents)| _ = edit.replace(index, contents));
        self.removed.into_iter().for_each(|index| _ = edit.remove(index));
        edit.plan(reader)
    }
}

/// Replaces members of a tar file or a Debian package, as [`rewrite_tar`] and [`rewrite_deb`] do.
///
/// # Errors
///
/// Theirs, and errors of [`PackageKind::check_edit`]; a tar file that is a package of conda's is refused after it is written, if it
/// was changed.
pub fn rewrite_stream<'a>(
    kind: PackageKind,
    reader: impl Read + io::Seek,
    out: impl Write,
    options: &RewriteOptions,
    mut change: impl FnMut(&[u8], &mut Original<'_>) -> Result<Option<Replacement<'a>>, Error>,
) -> Result<Rewritten, Error> {
    kind.check_edit()?;
    let mut is_conda = false;
    let change = |name: &[u8], original: &mut Original<'_>| {
        is_conda |= name == b"info/paths.json";
        change(name, original)
    };
    let rewritten = match kind {
        PackageKind::Deb => rewrite_deb(reader, out, options, change),
        _ => rewrite_tar(reader, out, options, change),
    }?;
    if is_conda && rewritten.changed().len() > 0 {
        PackageKind::Conda.check_edit()?;
    }
    Ok(rewritten)
}

/// Returns whether [`rewrite_stream`] would change a member, without the time that compression takes. `change` is asked up to the
/// first change.
///
/// ```
/// use std::io::Cursor;
/// use gpu_packages::{PackageKind, Replacement, RewriteOptions, changes_stream};
///
/// # let mut old = vec![0; 2048];
/// # old[..5].copy_from_slice(b"a.txt");
/// # old[124..136].copy_from_slice(b"00000000003\0");
/// # old[148..156].fill(b' ');
/// # old[257..265].copy_from_slice(b"ustar\x0000");
/// # let sum: u32 = old[..512].iter().map(|&byte| u32::from(byte)).sum();
/// # old[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
/// let removes = |other: &[u8]| {
///     changes_stream(PackageKind::Tar, Cursor::new(&old), &RewriteOptions::default(), |name, _| {
///         Ok((name == other).then(Replacement::removal))
///     })
/// };
/// assert!(removes(b"a.txt")? && !removes(b"b.txt")?);
/// # Ok::<(), gpu_packages::Error>(())
/// ```
///
/// # Errors
///
/// The errors of [`rewrite_stream`]; faults after the first change are not found.
pub fn changes_stream<'a>(
    kind: PackageKind,
    reader: impl Read + io::Seek,
    options: &RewriteOptions,
    change: impl FnMut(&[u8], &mut Original<'_>) -> Result<Option<Replacement<'a>>, Error>,
) -> Result<bool, Error> {
    kind.check_edit()?;
    match kind {
        PackageKind::Deb => changes_deb(reader, options, change),
        _ => changes_tar(reader, options, change),
    }
}

/// The members of a package that its edit does not look into.
///
/// ```
/// let mut unopened = gpu_packages::Unopened::default();
/// unopened.note("data.zip", b"PK\x03\x04");
/// unopened.note("libfoo.so", b"\x7fELF");
/// assert_eq!(unopened.packages, ["data.zip"]);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Unopened {
    /// Packages.
    pub packages: Vec<String>,
    /// Compressed files, which may be packages.
    pub compressed: Vec<String>,
    /// Lists of installed Python packages, which are not corrected.
    pub lists: Vec<String>,
}

impl Unopened {
    /// Notes a member that starts like this; 512 bytes are enough. One that is read again directly is noted once.
    pub fn note(&mut self, name: &str, head: &[u8]) {
        let inner = match (sniff(head), Codec::sniff(head)) {
            (None, Codec::None) => None,
            (None, _) => Some(&mut self.compressed),
            (Some(_), _) => Some(&mut self.packages),
        };
        let list = name.ends_with(".dist-info/RECORD").then_some(&mut self.lists);
        for names in inner.into_iter().chain(list) {
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
    }
}

/// Returns the lists of installed Python packages that have changed files: rows that an edit of the package around them does not
/// follow. Both are names of members.
///
/// ```
/// use gpu_packages::stale_lists;
///
/// let lists = ["site/a-1.dist-info/RECORD".to_owned(), "opt/b-1.dist-info/RECORD".to_owned()];
/// assert_eq!(stale_lists(&lists, ["site/a/liba.so"]), ["site/a-1.dist-info/RECORD"]);
/// ```
pub fn stale_lists<'l, 'c>(
    lists: &'l [String],
    changed: impl IntoIterator<Item = &'c str>,
) -> Vec<&'l str> {
    let mut changed: Vec<&str> = changed.into_iter().collect();
    changed.sort_unstable();
    let has_changed_below = |base: &str| {
        let next = changed.partition_point(|&name| name < base);
        changed.get(next).is_some_and(|name| name.starts_with(base))
    };
    let lists = lists.iter().map(String::as_str).filter(|list| {
        let base = list.rsplit('/').nth(1).and_then(|info| list.split(info).next());
        base.is_some_and(has_changed_below)
    });
    lists.collect()
}
