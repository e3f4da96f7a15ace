//! The account of any file: each byte in one row.

use std::io::{self, Cursor};

use device_account::{Account, Accountant, Amount, By, Copies, ImageShare, Kind, Rows};
use fat_object::{
    Container, ContainerKind, FileFormat, Finding, Image, ImageInfo, Location, Options, Visitor,
    list, walk,
};

use crate::assert_message;

/// The most that a run may have decompressed at one time.
const LIMIT: u64 = 16 << 20;
/// Limit of decompressed bytes in total, beyond that, for each byte of a file.
const EXPANSION: u64 = 64;
/// Bytes of a symbol of an ELF file with 32 bits.
const SMALLEST_SYMBOL: u128 = 16;

const ALL: [By; 6] =
    [By::TargetAndKind, By::Target, By::Kind, By::Function, By::Container, By::Section];

fn options() -> Options {
    Options::default().with_max_decompressed(LIMIT).with_max_expansion(EXPANSION)
}

/// Checks the account of a file, and returns it.
pub fn check(file: &[u8]) -> Account {
    let whole = account(file, true);
    sums(&whole, file.len() as u64);
    images(&whole, file);
    bounds(&whole);
    for finding in whole.findings() {
        assert_message(finding);
    }
    // Functions divide the same bytes.
    let plain = account(file, false);
    for by in ALL.into_iter().filter(|by| *by != By::Function) {
        assert_eq!(plain.rows(by), whole.rows(by), "{by:?}");
    }
    assert_eq!(texts(&plain), texts(&whole));
    assert_eq!((plain.shared(), plain.is_apportioned()), (whole.shared(), whole.is_apportioned()));
    assert!(plain.images().iter().all(|image| image.functions.is_empty()));
    whole
}

fn account(file: &[u8], with_functions: bool) -> Account {
    let mut accountant = Accountant::new().with_functions(with_functions).with_hashes(true);
    walk(Cursor::new(file), &options(), &mut accountant).expect("memory can always be read");
    accountant.finish(Cursor::new(file)).expect("memory can always be read")
}

fn texts(account: &Account) -> Vec<String> {
    account.findings().iter().map(ToString::to_string).collect()
}

/// Checks that rows of each kind add up to the file.
fn sums(account: &Account, len: u64) {
    assert_eq!((account.size(), account.total().stored), (len, len));
    for by in ALL {
        let rows = account.rows(by);
        let sum: Amount = rows.iter().map(|row| row.amount).sum();
        assert_eq!(sum, account.total(), "{by:?}");
        let mut names: Vec<_> = rows.iter().map(|row| (&row.target, &row.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len(), "{by:?}");
        // A package that compresses the file has a part of these bytes.
        let mut part = Rows::default();
        part.add_all(&rows, len / 3);
        let in_part: u64 = part.all().iter().map(|row| row.amount.stored).sum();
        assert!(in_part == len / 3 || rows.is_empty(), "{by:?}");
    }
    for image in account.images() {
        let functions: Amount = image.functions.iter().map(|function| function.amount).sum();
        let whole = image.amount();
        assert!(functions.stored <= whole.stored && functions.plain <= whole.plain);
    }
    for copies in Copies::find([("a", account), ("b", account)]) {
        let all: Amount = copies.copies.iter().map(|copy| copy.amount).sum();
        assert!(copies.copies.len() > 1 && copies.wasted().stored <= all.stored);
    }
}

/// Checks images against the list of a walk, and against a map of the file, byte by byte.
fn images(account: &Account, file: &[u8]) {
    let listing = list(Cursor::new(file), &options()).expect("memory can always be read");
    let listed: Vec<_> = listing.images().iter().filter(|image| has_device_code(image)).collect();
    let index = |image: &ImageShare| image.info.index();
    let indices: Vec<_> = account.images().iter().map(index).collect();
    assert_eq!(indices, listed.iter().map(|image| image.index()).collect::<Vec<_>>());

    let mut map = Map { owners: vec![0; file.len()], around: vec![], next: 0, images: vec![] };
    walk(Cursor::new(file), &options(), &mut map).expect("memory can always be read");
    let has_inner = |kind| {
        let mut steps = listing.images().iter().flat_map(ImageInfo::path);
        steps.any(|step| step.kind() == kind)
    };
    let is_clean =
        account.shared() == 0 && account.findings().is_empty() && !has_inner(ContainerKind::Image);
    for (image, listed) in account.images().iter().zip(listed) {
        assert!(image.hash.is_some() || !account.findings().is_empty(), "{listed}");
        let own = own(&image.kinds);
        let owner = map.images.iter().find(|(index, _)| *index == listed.index());
        let in_file = listed.location().file_offset().is_some();
        if listed.compression_around().is_none() && in_file {
            let marked = map.owners.iter().filter(|other| owner.is_some_and(|it| it.1 == **other));
            assert_eq!(own.stored, marked.count() as u64, "{listed}");
        }
        let is_whole = own.plain == listed.size();
        // A damaged image counts as stored, and it may state any size.
        let stored = listed.compression().map_or(0, |own| own.stored_size());
        let most = listed.size().max(stored);
        assert!(own.plain <= most && (is_whole || !is_clean), "{listed}");
    }
}

/// Returns whether an account divides an image, rather than to count it as host code or a container.
fn has_device_code(image: &ImageInfo) -> bool {
    let Some(own) = image.compression() else {
        let is_container = image.sycl().is_none() && image.format().is_container();
        let is_host = image.target().is_host() || image.format() == FileFormat::HostPlaceholder;
        return image.size() > 0 && !is_container && !is_host;
    };
    own.stored_size() > 0
}

/// Returns what an image has without the header of its entry.
fn own(kinds: &[(Kind, Amount)]) -> Amount {
    kinds.iter().filter(|(kind, _)| *kind != Kind::Container).map(|(_, amount)| *amount).sum()
}

/// Checks that names and functions are bounded by the bytes that were walked.
fn bounds(account: &Account) {
    for image in account.images() {
        // An image may state any size.
        let len = u128::from(image.info.size());
        let names: usize = image.functions.iter().map(|function| function.name.len()).sum();
        // A replacement character takes three bytes.
        assert!(names as u128 <= 3 * (4 * len + (1 << 16)) + len, "{}", image.info);
        assert!(image.functions.len() as u128 <= len / SMALLEST_SYMBOL, "{}", image.info);
    }
}

/// Marks each byte of a file by the image that has it: an independent account, byte by byte.
struct Map {
    /// The number of the container or image that has a byte.
    owners: Vec<usize>,
    around: Vec<(usize, bool)>,
    next: usize,
    images: Vec<(usize, usize)>,
}

impl Map {
    /// Gives bytes that only a container around has to a new owner.
    fn mark(&mut self, location: Location, len: u64) -> usize {
        self.next += 1;
        let is_inside = self.around.iter().all(|(_, is_file)| *is_file);
        if let (Some(start), true) = (location.file_offset(), is_inside) {
            let start = (start as usize).min(self.owners.len());
            let end = (len as usize).saturating_add(start).min(self.owners.len());
            for owner in &mut self.owners[start..end] {
                if *owner == 0 || self.around.iter().any(|(around, _)| around == owner) {
                    *owner = self.next;
                }
            }
        }
        self.next
    }
}

impl Visitor for Map {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        let owner = self.mark(container.location(), container.size());
        self.around.push((owner, container.compression().is_none()));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.around.pop();
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let len = image.compression().map_or(image.size(), |own| own.stored_size());
        let owner = self.mark(image.location(), len);
        self.images.push((image.index(), owner));
        Ok(())
    }

    fn finding(&mut self, _: &Finding) -> io::Result<()> {
        Ok(())
    }
}
