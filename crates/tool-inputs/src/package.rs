//! Packages: the members that may hold device code.

use std::fmt;
use std::io::{self, BufReader, Read};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub use device_files::HEAD;
use device_files::{Reading, is_looked_into};
use fat_object::FileFormat;
use gpu_packages::{
    Codec, Error, Finding, Member, MemberPath, Options, PackageForm, PackageKind, Verified,
    Visitor, Zip, ZipWalker, sniff, verify_with, walk,
};

use crate::limits::Limits;
use crate::remote;
use tool_kit::budget::{Account, Budget};
use tool_kit::opened::Opened;
use tool_kit::parallel;
use tool_kit::store::{Gaps, Keep, Store};

/// The headers of images in members are kept, and nothing else of them.
pub const HEADS: Keep<'static> = Keep::Needed(&Images(&|_| false));

/// The images of members that are kept as a whole, by their bundle entry IDs.
pub struct Images<'k>(pub &'k (dyn Fn(&str) -> bool + Sync));

impl fmt::Debug for Images<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Images")
    }
}

impl Gaps for Images<'_> {
    fn find(&self, chunk: &[u8], start: u64, is_end: bool, found: &mut Vec<Range<u64>>) -> u64 {
        let keeps = |id: &[u8]| std::str::from_utf8(id).is_ok_and(self.0);
        bundle_format::unneeded(chunk, start, is_end, &keeps, found)
    }
}

/// Returns whether a file is a script.
pub(crate) fn is_script(opened: &Opened) -> bool {
    opened.head().starts_with(b"#!")
}

/// A package that is open.
#[derive(Debug)]
pub struct Package {
    /// The file.
    pub opened: Arc<Opened>,
    /// Its form, with the members of a zip file.
    pub form: PackageForm,
}

/// The results of a walk through a package, beside those of its members.
#[derive(Debug, Default)]
pub struct Found {
    /// The number of all members.
    pub(crate) members: usize,
    /// The result of the comparison with checksums and records, if it was asked for.
    pub(crate) verified: Option<Result<Verified, Error>>,
}

/// A function that takes the results of the work on members, and the faults of members that cannot be read, one by one
/// and in order. It breaks where no more are wanted.
pub type Take<'t, T> = dyn FnMut(Result<T, Fault>) -> ControlFlow<()> + 't;

/// Something that keeps members from being read.
#[derive(Debug)]
pub struct Fault {
    /// The member; empty for the package.
    pub(crate) path: MemberPath,
    pub(crate) error: Error,
}

impl Fault {
    /// Returns the fault that a finding is. `verify` reports the others.
    fn of(finding: Finding) -> Option<Self> {
        let is_one = finding.kind.hides_members();
        is_one.then_some(Fault { path: finding.path, error: finding.error })
    }
}

impl Package {
    /// Returns the package that a file is; `None` if it is something else. Copies of pipes are not looked into.
    ///
    /// # Errors
    ///
    /// An error of reading; `InvalidData` for a package that is damaged.
    pub fn of(opened: &Arc<Opened>) -> io::Result<Option<Self>> {
        if !opened.may_be_package() {
            return Ok(None);
        }
        let head = opened.head().get(..HEAD).unwrap_or(opened.head());
        if let Some(remote) = opened.remote() {
            // A stream is one range.
            let is_zip = sniff(head) == Some(PackageKind::Zip);
            if !is_zip && (sniff(head).is_some() || Codec::sniff(head) != Codec::None) {
                remote.ranges.plan(0..opened.len());
            }
        }
        let Some(form) = PackageForm::read(opened.reader(), head, is_looked_into)? else {
            if FileFormat::sniff(head) == FileFormat::Tar {
                let text = "tar archive whose first header has a wrong checksum";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            return Ok(None);
        };
        Ok(Some(Package { opened: Arc::clone(opened), form }))
    }

    /// Returns the zip file after a program or a script.
    ///
    /// # Errors
    ///
    /// An error of reading; `InvalidData` or `Unsupported` for a zip file that is damaged.
    pub(crate) fn behind(opened: &Arc<Opened>) -> io::Result<Option<Self>> {
        if !opened.may_be_package() {
            return Ok(None);
        }
        let zip = Zip::behind(opened.reader())?;
        Ok(zip.map(|zip| Package { opened: Arc::clone(opened), form: PackageForm::Zip(zip) }))
    }

    /// Returns the place of the program before a zip file; `None` for a script.
    pub(crate) fn program(&self) -> Option<Range<u64>> {
        match &self.form {
            PackageForm::Zip(zip) if !is_script(&self.opened) => Some(0..zip.start()),
            _ => None,
        }
    }

    /// Returns how many bytes follow a zip file, if some do.
    pub(crate) fn trailing(&self) -> Option<usize> {
        match &self.form {
            PackageForm::Zip(zip) => Some(zip.trailing()).filter(|&trailing| trailing > 0),
            PackageForm::Stream(_) => None,
        }
    }

    /// Returns whether it is a compressed file, and not a tar file.
    pub fn is_compressed(&self) -> bool {
        matches!(self.form, PackageForm::Stream(PackageKind::Compressed))
    }

    /// Does something with each member that is a file, those of packages in the package among them, and hands over the results
    /// that are there. Members of zip archives are read by several threads, unless they are verified on the way.
    pub fn each<T: Send>(
        &self,
        (limits, budget): (&Limits, &Budget),
        verifies: bool,
        threads: NonZeroUsize,
        work: &(impl Work<T> + Sync),
        take: &mut Take<'_, T>,
    ) -> Found {
        let len = self.opened.len();
        let options = limits.for_package(len);
        let read = |take: &mut Take<'_, T>, walk: &dyn Fn(&mut Each<'_, _, T>) -> _| {
            let mut each = Each::new(work, budget.account(limits.held_of(len)), take);
            let mut walked: Result<(), Error> = walk(&mut each);
            if each.held.has_missed() {
                // Results that were handed over are not handed over again.
                let Each { held, take, taken, .. } = each;
                each = Each { again: taken, ..Each::new(work, held.again(), take) };
                walked = walk(&mut each);
            }
            if let Err(error) = walked {
                let _ = each.hand(Err(Fault { path: MemberPath::default(), error }));
            }
            each.found
        };
        let reader = || BufReader::with_capacity(1 << 16, self.opened.reader());
        match &self.form {
            _ if verifies => read(take, &|each| {
                let verified = verify_with(reader(), &options, each);
                each.found.verified = Some(verified);
                Ok(())
            }),
            PackageForm::Stream(_) => {
                read(take, &|each| walk(reader(), &options, each).map(|_| ()))
            }
            PackageForm::Zip(zip) => {
                let walker = ZipWalker::new(&options, zip);
                let faults = walker.findings().into_iter().filter_map(Fault::of);
                let mut all = Found::default();
                if faults.map(Err).try_for_each(&mut *take).is_break() {
                    return all;
                }
                let indexes: Vec<usize> = (0..zip.members().len()).collect();
                let remote = self.opened.remote().map(|remote| (remote, zip.places()));
                let read = |index: &usize| {
                    let of_server = remote.as_ref().zip(zip.members().get(*index));
                    if let Some(((remote, places), member)) = of_server
                        && !remote::prepare(remote, member, places.get(*index))
                    {
                        return (1, Vec::new());
                    }
                    let mut results = Vec::new();
                    let mut collect = |result| {
                        results.push(result);
                        ControlFlow::Continue(())
                    };
                    let walk = |each: &mut Each<'_, _, T>| {
                        walker.member(*index, self.opened.reader(), each)
                    };
                    let found = read(&mut collect, &walk);
                    (found.members, results)
                };
                // Each thread may hold as much: few bytes, as of a small file, are for one.
                let are_low = limits.held_of(len) < Options::default().held_of(u64::MAX);
                let threads = if are_low { NonZeroUsize::MIN } else { threads };
                let _: Result<(), ()> =
                    parallel::in_order(threads, &indexes, read, |_, (members, results)| {
                        all.members += members;
                        match results.into_iter().try_for_each(&mut *take) {
                            ControlFlow::Continue(()) => Ok(()),
                            ControlFlow::Break(()) => Err(()),
                        }
                    });
                all
            }
        }
    }
}

/// The work on a member, which may hold its bytes.
pub trait Work<T>: Fn(&Member, &mut dyn Read, &mut Account<'_>) -> io::Result<Option<T>> {}

impl<T, W: Fn(&Member, &mut dyn Read, &mut Account<'_>) -> io::Result<Option<T>>> Work<T> for W {}

struct Each<'w, W, T> {
    work: &'w W,
    held: Account<'w>,
    take: &'w mut Take<'w, T>,
    /// The number of results that were handed over, and of results before that, in a walk that was given up.
    taken: usize,
    again: usize,
    /// `true` if no more are wanted.
    is_over: bool,
    found: Found,
}

impl<'w, W, T> Each<'w, W, T> {
    fn new(work: &'w W, held: Account<'w>, take: &'w mut Take<'w, T>) -> Self {
        let found = Found::default();
        Each { work, held, take, taken: 0, again: 0, is_over: false, found }
    }

    fn hand(&mut self, result: Result<T, Fault>) -> Result<(), Error> {
        self.taken += 1;
        if self.taken > self.again && !self.is_over {
            self.is_over = (self.take)(result).is_break();
        }
        if self.is_over { Err(Error::refused("no more members are wanted")) } else { Ok(()) }
    }
}

impl<T, W: Work<T>> Visitor for Each<'_, W, T> {
    fn compressed(&mut self, _: &MemberPath, head: &[u8]) -> bool {
        is_looked_into(head)
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        self.found.members += 1;
        if member.has_file_contents() {
            let result = (self.work)(member, contents, &mut self.held);
            self.held.end_member();
            if self.held.has_missed() {
                return Err(Error::refused("other members hold the bytes"));
            }
            if let Some(result) = result? {
                self.hand(Ok(result))?;
            }
        }
        Ok(())
    }

    fn finding(&mut self, finding: Finding) {
        if let Some(fault) = Fault::of(finding) {
            // The next member ends the walk if no more are wanted.
            let _ = self.hand(Err(fault));
        }
    }

    fn hold(&mut self, bytes: u64) -> bool {
        self.held.set_packages(bytes)
    }
}

/// Reads a member if a walk would read it as a file: `None` if not. It is left where it lies, if it lies in the package as it
/// is and is not to be in a file of its own.
///
/// # Errors
///
/// Errors of the reader, and of a full disk; `FileTooLarge` if more bytes are to be kept than may be held.
pub(crate) fn store(
    (package, member): (&Arc<Opened>, &Member),
    contents: &mut dyn Read,
    keep: Keep<'_>,
    held: &mut Account<'_>,
) -> io::Result<Option<Store>> {
    let mut head = Vec::new();
    contents.take(HEAD as u64).read_to_end(&mut head)?;
    let is_there = |place: &Range<u64>| {
        place.end <= package.len() && remote::is_read_in_place(package, member)
    };
    let place = member.place().filter(is_there).filter(|_| !matches!(keep, Keep::File));
    match (Reading::of(member, &head, place.is_some()), place) {
        (Reading::Whole, Some(place)) => Ok(Some(Store::within(Arc::clone(package), place))),
        (Reading::Whole, None) => Store::read(&head, contents, keep, held).map(Some),
        (Reading::Start, _) => {
            Store::read(&head, &mut contents.take(Reading::START), Keep::All, held).map(Some)
        }
        (Reading::Nothing, _) => Ok(None),
    }
}
