//! Packages: the members that may hold device code.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::num::NonZeroUsize;
use std::sync::Arc;

use fat_object::FileFormat;
use gpu_packages::{
    Codec, Error, ErrorKind, Finding, FindingKind, Member, MemberPath, Options, PackageKind,
    Visitor, Zip, ZipWalker, sniff, walk,
};

use crate::opened::Opened;
use crate::parallel;
use crate::store::{Keep, Store};

/// The first bytes of a file tell whether it is a package, and those of a member whether a walk would read it.
pub(crate) const HEAD: u64 = 512;

/// A package that is open.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) opened: Arc<Opened>,
    pub(crate) form: Form,
}

/// The way to the members of a package.
#[derive(Debug)]
pub(crate) enum Form {
    /// Each can be read by itself.
    Zip(Zip),
    /// A tar file, a Debian package: one member comes after the other.
    Stream(PackageKind),
}

/// The results of the work on a package.
#[derive(Debug)]
pub(crate) struct Found<T> {
    /// The results of the work on members, and the faults of those that cannot be read, in order.
    pub(crate) results: Vec<Result<T, Fault>>,
    /// The number of all members.
    pub(crate) members: usize,
}

/// Something that keeps members from being read.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The member; empty for the package.
    pub(crate) path: MemberPath,
    pub(crate) error: Error,
}

impl Fault {
    /// Returns the fault that a finding is: members are not read, or it is unclear which ones are installed. `verify` reports
    /// the others.
    fn of(finding: Finding) -> Option<Self> {
        use FindingKind::{Ambiguous, Damaged, Duplicate, Encrypted, Unread};
        let is_one = matches!(finding.kind, Unread | Damaged | Encrypted | Ambiguous | Duplicate);
        is_one.then_some(Fault { path: finding.path, error: finding.error })
    }
}

impl Package {
    /// Returns the package that a file is; `None` if it is something else. Copies of pipes are not looked into.
    ///
    /// # Errors
    ///
    /// An error of reading; `InvalidData` for a package that is damaged.
    pub(crate) fn of(opened: &Arc<Opened>) -> io::Result<Option<Self>> {
        if !opened.has_path() {
            return Ok(None);
        }
        let most = usize::try_from(HEAD).unwrap_or(usize::MAX);
        let head = opened.head().get(..most).unwrap_or(opened.head());
        let form = match sniff(head) {
            Some(PackageKind::Zip) => Form::Zip(Zip::read(opened.reader())?),
            Some(kind) => Form::Stream(kind),
            None if FileFormat::sniff(head) == FileFormat::Tar => {
                let text = "tar archive whose first header has a wrong checksum";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            None if is_compressed_tar(head, opened) => Form::Stream(PackageKind::Tar),
            None => return Ok(None),
        };
        Ok(Some(Package { opened: Arc::clone(opened), form }))
    }

    /// Returns the file.
    pub(crate) fn file(&self) -> &File {
        &self.opened.file
    }

    /// Does something with each member that is a file, those of packages in the package among them, and returns the results
    /// that are there, in order. Members of zip archives are read by several threads.
    pub(crate) fn each<T: Send>(
        &self,
        threads: NonZeroUsize,
        work: &(impl Fn(&Member, &mut dyn Read) -> io::Result<Option<T>> + Sync),
    ) -> Found<T> {
        let visitor = || Each { work, found: Found { results: Vec::new(), members: 0 } };
        let fault = |error| Err(Fault { path: MemberPath::default(), error });
        match &self.form {
            Form::Stream(_) => {
                let mut visitor = visitor();
                let reader = BufReader::with_capacity(1 << 16, self.opened.reader());
                let walked = walk(reader, &Options::default(), &mut visitor);
                visitor.found.results.extend(walked.err().map(fault));
                visitor.found
            }
            Form::Zip(zip) => {
                let walker = ZipWalker::new(&Options::default(), zip);
                let faults = walker.findings().into_iter().filter_map(Fault::of);
                let mut all = Found { results: faults.map(Err).collect(), members: 0 };
                let indexes: Vec<usize> = (0..zip.members().len()).collect();
                let read = |index: &usize| {
                    let (mut visitor, reader) = (visitor(), self.opened.reader());
                    let walked = walker.member(*index, reader, &mut visitor);
                    visitor.found.results.extend(walked.err().map(fault));
                    visitor.found
                };
                let _: Result<(), ()> =
                    parallel::in_order(threads, &indexes, read, |_, found: Found<T>| {
                        all.members += found.members;
                        all.results.extend(found.results);
                        Ok(())
                    });
                all
            }
        }
    }
}

/// Returns whether a file is a compressed tar file, or one that claims to be and is damaged.
fn is_compressed_tar(head: &[u8], file: &Opened) -> bool {
    struct Nothing;
    impl Visitor for Nothing {
        fn member(&mut self, _: &Member, _: &mut dyn Read) -> Result<(), Error> {
            Err(Error::refused("the first member is enough"))
        }
    }
    if Codec::sniff(head) == Codec::None {
        return false;
    }
    let reader = BufReader::new(file.reader());
    match walk(reader, &Options::default(), &mut Nothing) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::Refused | ErrorKind::Malformed),
    }
}

struct Each<'w, W, T> {
    work: &'w W,
    found: Found<T>,
}

impl<T, W: Fn(&Member, &mut dyn Read) -> io::Result<Option<T>>> Visitor for Each<'_, W, T> {
    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        self.found.members += 1;
        if member.has_file_contents() {
            self.found.results.extend((self.work)(member, contents)?.map(Ok));
        }
        Ok(())
    }

    fn finding(&mut self, finding: Finding) {
        self.found.results.extend(Fault::of(finding).map(Err));
    }
}

/// Reads a member if a walk would read it as a file: `None` if not.
///
/// # Errors
///
/// Those of the reader, and of a full disk; `FileTooLarge` if more than `max` bytes are to be kept.
pub(crate) fn store(
    contents: &mut dyn Read,
    keep: Keep<'_>,
    max: u64,
) -> io::Result<Option<Store>> {
    let mut head = Vec::new();
    contents.take(HEAD).read_to_end(&mut head)?;
    match may_hold_code(&head) {
        true => Store::read(&head, contents, keep, max).map(Some),
        false => Ok(None),
    }
}

/// Returns whether a walk reads files that start like this.
pub(crate) fn may_hold_code(head: &[u8]) -> bool {
    let format = FileFormat::sniff(head);
    format.is_read() && !matches!(format, FileFormat::Empty | FileFormat::LinkerScript)
}
