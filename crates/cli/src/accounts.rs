//! The accounts of files, of members of packages among them.

use std::collections::HashMap;
use std::io::{self, Read, SeekFrom};
use std::sync::{Mutex, PoisonError};

use byte_parts::ReadSeek;
use device_account::{Account, Accountant, Amount, PackageShare};
use fat_object::{Severity, Summary};
use gpu_packages::{PackageKind, Zip, ZipMember, sniff};

use tool_inputs::complaint::{self, Complaint};
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_kit::document::Document;
use tool_kit::finding::Finding;
use tool_kit::looked::{Looked, Seen};
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::store::Keep;
use tool_kit::{report, style};

/// A file, or a package with the accounts of its members.
pub(crate) struct Counted<T = ()> {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) accounts: Vec<(String, Account)>,
    /// The results of another look into each file, in the order of the accounts.
    pub(crate) also: Vec<T>,
    /// The bytes of the members, if it is a package.
    pub(crate) share: Option<PackageShare>,
    /// Permissions for what is made of the files.
    pub(crate) permissions: NewPermissions,
    /// The reason why packages of its kind are not changed.
    pub(crate) uneditable: Option<String>,
}

/// Makes the accounts of files, with an accountant for each, and reports what is wrong with them. `also` looks into each file that
/// has images.
pub(crate) fn count<T: Default + Send>(
    inputs: &Inputs,
    limits: &Limits,
    accountant: &(dyn Fn() -> Accountant + Sync),
    also: &(dyn Fn(&Input, &Account, Threads) -> T + Sync),
    document: &mut Document,
) -> io::Result<(Vec<Counted<T>>, Looked)> {
    let mut counted: Vec<Counted<T>> = Vec::new();
    let packages = Packages::default();
    let count = |file: &Input, threads| -> io::Result<_> {
        packages.add(file)?;
        let (account, summary, permissions) = account(file, limits, accountant(), threads)?;
        let has_images = !account.images().is_empty();
        let also = if has_images { also(file, &account, threads) } else { T::default() };
        Ok(((account, also), summary, permissions))
    };
    let looked = inputs.look((limits, Keep::All), "counting", count, |file, result| {
        let ((account, also), summary, permissions) = match result {
            Ok(counted) => counted,
            Err(error) => {
                let reason = report::reason(&error);
                report::error(&format_args!("{}: {reason}", file.name()));
                document.finding(Finding::error("file/error", file.name(), reason))?;
                return Ok(Seen::Faults);
            }
        };
        document.about(file.name(), || Some(complaint::about(&summary)));
        let is_empty = account.images().is_empty();
        if let Some(seen) = file.passed_over(!is_empty, &Ok(summary)) {
            return Ok(seen);
        }
        for finding in account.findings() {
            let complaint = Complaint::new(file.name(), finding);
            complaint.report();
            document.finding(complaint.finding())?;
        }
        if account.shared() > 0 {
            let shared = style::size(account.shared());
            report::note(&format_args!(
                "{}: {shared} belong to several sections or containers: the first has them",
                file.name()
            ));
        }
        let faulty = account.findings().iter().any(|one| one.severity() == Severity::Error);
        let name = file.package().unwrap_or(file.name());
        if counted.last().is_none_or(|last| last.name != name) {
            let (name, size) = (name.to_owned(), account.size());
            counted.push(Counted {
                name,
                size,
                accounts: Vec::new(),
                also: Vec::new(),
                share: None,
                permissions,
                uneditable: None,
            });
        }
        if let Some(last) = counted.last_mut() {
            last.permissions = NewPermissions::of_all([last.permissions, permissions]);
            last.accounts.push((file.name().to_owned(), account));
            last.also.push(also);
        }
        Ok(Seen::faults(faulty))
    })?;
    let packages = packages.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    for one in &mut counted {
        if let Some(package) = packages.get(&one.name) {
            one.share_package(package);
        }
    }
    Ok((counted, looked))
}

fn account(
    file: &Input,
    limits: &Limits,
    mut accountant: Accountant,
    threads: Threads,
) -> io::Result<(Account, Summary, NewPermissions)> {
    let summary = file.walk(limits, &limits.options(), threads, &mut accountant)?;
    let account = file.with_reader(limits.max_input, |reader| accountant.finish(reader))?;
    let permissions = file.open(limits.max_input)?.permissions();
    Ok((account, summary, permissions))
}

/// A package.
struct Package {
    size: u64,
    /// The members of a zip file.
    zip: Option<Zip>,
    kind: Option<PackageKind>,
}

impl Package {
    fn read(reader: &mut dyn ReadSeek) -> io::Result<Self> {
        let size = reader.seek(SeekFrom::End(0))?;
        let zip = Zip::read(&mut *reader).ok();
        let mut head = Vec::new();
        reader.seek(SeekFrom::Start(0))?;
        reader.take(512).read_to_end(&mut head)?;
        let kind = zip.as_ref().map(Zip::kind).or_else(|| sniff(&head));
        Ok(Package { size, zip, kind })
    }
}

/// Packages by their names.
#[derive(Default)]
struct Packages(Mutex<HashMap<String, Package>>);

impl Packages {
    /// Adds the package of a member, unless it is known.
    fn add(&self, member: &Input) -> io::Result<()> {
        let Some(package) = member.package() else { return Ok(()) };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains_key(package) {
            return Ok(());
        }
        if let Some(found) = member.with_package(Package::read) {
            known.insert(package.to_owned(), found?);
        }
        Ok(())
    }
}

impl<T> Counted<T> {
    /// Divides a package by its members.
    fn share_package(&mut self, Package { size, zip, kind }: &Package) {
        self.size = *size;
        let editable = kind.map_or(Ok(()), PackageKind::check_edit);
        self.uneditable = editable.err().map(|why| why.to_string());
        let amount = |member: &ZipMember| Amount::new(member.stored_size(), member.size());
        let members: Option<Vec<_>> = zip.as_ref().map(|zip| {
            zip.members().iter().map(|member| (member.name(), amount(member))).collect()
        });
        let paths = self.accounts.iter().map(|(name, _)| {
            let path = name.strip_prefix(&*self.name).and_then(|path| path.strip_prefix(':'));
            path.unwrap_or(name).as_bytes()
        });
        self.share = Some(PackageShare::of(*size, members.as_deref(), paths));
    }
}
