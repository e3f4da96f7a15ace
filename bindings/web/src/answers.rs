//! The answers that the page asks for, as JSON.

use std::cmp::Reverse;
use std::io::{self, Read, Seek};

use device_account::{Account, Accountant, Amount, PackageShare};
use device_files::{DeviceFile, Fault, FileVisitor, Options, Survey, each_file, survey};
use device_report::{File, Note, Report, Shell};
use device_select::{Device, Product};
use fat_object::{TargetTotal, TargetTotals};
use gpu_packages::{PackageKind, Zip, ZipMember};
use serde_json::{Value, json};

/// The most bytes that are held at one time: a page has 4 GiB.
const MOST_HELD: u64 = 1 << 30;

fn options() -> Options {
    Options::default().with_max_held(MOST_HELD)
}

/// A file that was dropped.
#[derive(Debug, Default)]
pub struct Dropped {
    survey: Survey,
}

impl Dropped {
    /// Reads the images of a file.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    pub fn read<R: Read + Seek + Clone>(reader: R) -> io::Result<Self> {
        Ok(Dropped { survey: survey(reader, &options())? })
    }

    /// Returns the images: `images`, `files`, `findings`, `is_package`; and `targets`: `name`, `images`, `size`, the largest first.
    pub fn listing(&self) -> Value {
        let mut totals = TargetTotals::default();
        self.survey.listing.images.iter().for_each(|row| totals.add(&row.image));
        let mut totals = Vec::from_iter(totals.all());
        totals.sort_by_key(|total| Reverse(total.size));
        let target =
            |one: &&TargetTotal| json!({"name": one.name, "images": one.images, "size": one.size});
        let targets: Value = totals.iter().map(target).collect();
        let mut value = serde_json::to_value(&self.survey.listing).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("targets".to_owned(), targets);
        }
        value
    }

    /// Returns the answers for a GPU: `gpu`, `answers`, `verdicts`, `findings`; or `error`.
    pub fn judge(&self, gpu: &str) -> Value {
        let device = match Device::parse(gpu) {
            Ok(device) => device,
            Err(error) => return json!({"error": error.to_string(), "near": error.near(gpu)}),
        };
        let mut value = serde_json::to_value(self.survey.judge(std::slice::from_ref(&device)))
            .unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("gpu".to_owned(), device.name().into());
            fields.insert("doubt".to_owned(), device.doubt().into());
            let advice = (!device.is_unknown()).then(|| device.compiler_options());
            fields.insert("advice".to_owned(), advice.into());
        }
        value
    }
}

/// Returns the products that a user may name: `name`, `processor`.
pub fn products() -> Value {
    Product::all().map(|one| json!({"name": one.name(), "processor": one.processor()})).collect()
}

/// Returns the data of the report of a file.
///
/// # Errors
///
/// Errors of reading.
pub fn report<R: Read + Seek + Clone>(reader: R, name: &str) -> io::Result<Value> {
    let mut accounts =
        Accounts { name, accounts: Vec::new(), notes: Vec::new(), is_package: false };
    each_file(reader.clone(), &options(), &mut accounts)?;
    let Accounts { accounts, notes, is_package, .. } = accounts;
    let share = if is_package { Some(share(reader, name, &accounts)?) } else { None };
    let mut file = File::new(name, &accounts).with_path(name.as_bytes());
    if let Some((share, why)) = &share {
        file = file.with_share(share);
        if let Some(why) = why {
            file = file.with_uneditable(why.clone());
        }
    }
    let report = Report::new(&[file], notes, Shell::Posix);
    serde_json::to_value(report).map_err(io::Error::from)
}

/// Divides a package by its members; returns also why packages of its kind are not changed.
fn share<R: Read + Seek + Clone>(
    mut reader: R,
    name: &str,
    accounts: &[(String, Account)],
) -> io::Result<(PackageShare, Option<String>)> {
    let size = reader.seek(io::SeekFrom::End(0))?;
    reader.rewind()?;
    let mut head = Vec::new();
    reader.by_ref().take(512).read_to_end(&mut head)?;
    let zip = Zip::read(reader).ok();
    let kind = zip.as_ref().map(Zip::kind).or_else(|| gpu_packages::sniff(&head));
    let why = kind.map_or(Ok(()), PackageKind::check_edit).err().map(|why| why.to_string());
    let amount = |member: &ZipMember| Amount::new(member.stored_size(), member.size());
    let members: Option<Vec<_>> =
        zip.as_ref().map(|zip| zip.members().iter().map(|one| (one.name(), amount(one))).collect());
    let paths = accounts.iter().map(|(path, _)| {
        let path = path.strip_prefix(name).and_then(|path| path.strip_prefix(':')).unwrap_or(path);
        path.as_bytes()
    });
    Ok((PackageShare::of(size, members.as_deref(), paths), why))
}

struct Accounts<'a> {
    name: &'a str,
    accounts: Vec<(String, Account)>,
    notes: Vec<Note>,
    is_package: bool,
}

impl Accounts<'_> {
    fn note(&mut self, fault: &Fault) {
        let file = self.path(&fault.member);
        let note = if fault.level == "error" { Note::error } else { Note::warning };
        self.notes.push(note(&file, &fault.message));
    }

    fn path(&self, member: &str) -> String {
        if member.is_empty() { self.name.to_owned() } else { format!("{}:{member}", self.name) }
    }
}

impl FileVisitor for Accounts<'_> {
    fn package(&mut self) {
        self.is_package = true;
    }

    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let options = file.options().clone();
        let mut accountant = Accountant::new().with_functions(true);
        file.walk(&options, &mut accountant)?;
        let account = accountant.finish(file.reader())?;
        for finding in account.findings() {
            self.note(&Fault::new(file.member(), finding));
        }
        if !account.images().is_empty() || file.package_member().is_none() {
            self.accounts.push((self.path(file.member()), account));
        }
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        self.note(&fault);
        Ok(())
    }
}
