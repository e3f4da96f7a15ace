//! The files of a report.

use std::collections::BTreeMap;

use device_account::{Account, PackageShare};

use crate::data::Tried;

/// A file or a package, with the accounts of the files in it.
#[derive(Clone, Debug)]
pub struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) accounts: &'a [(String, Account)],
    pub(crate) share: Option<&'a PackageShare>,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) uneditable: Option<String>,
    tried: &'a [BTreeMap<String, Tried>],
}

/// A part of a file that has an account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) name: &'a str,
    pub(crate) account: &'a Account,
    /// Its bytes in the file.
    pub(crate) stored: u64,
    /// Results of `offload thin` for its GPUs, by their names.
    pub(crate) tried: Option<&'a BTreeMap<String, Tried>>,
}

impl<'a> File<'a> {
    /// Creates a file with its account; several if more files belong to it.
    #[must_use]
    pub fn new(name: &'a str, accounts: &'a [(String, Account)]) -> Self {
        File { name, accounts, share: None, path: None, uneditable: None, tried: &[] }
    }

    /// Makes it a package, whose members have these bytes, in the order of the accounts. Default: it is a file.
    #[must_use]
    pub fn with_share(self, share: &'a PackageShare) -> Self {
        File { share: Some(share), ..self }
    }

    /// Sets the path for command lines. Without one there are none.
    #[must_use]
    pub fn with_path(self, path: &[u8]) -> Self {
        File { path: Some(path.to_owned()), ..self }
    }

    /// Sets the reason why `offload thin` cannot change it. Default: it can.
    #[must_use]
    pub fn with_uneditable(self, why: String) -> Self {
        File { uneditable: Some(why), ..self }
    }

    /// Sets the results of trials of `offload thin`, by the names of GPUs, in the order of the accounts. Default: they are
    /// [not known](Tried::Unknown).
    #[must_use]
    pub fn with_tried(self, tried: &'a [BTreeMap<String, Tried>]) -> Self {
        File { tried, ..self }
    }

    /// Returns the accounts with what belongs to them.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'a>> {
        let (stored, tried) = (self.share.map(|share| &share.members), self.tried);
        self.accounts.iter().enumerate().map(move |(at, (name, account))| {
            let of_package = stored.map(|stored| stored.get(at).copied().unwrap_or(0));
            let stored = of_package.unwrap_or(account.size());
            Part { name, account, stored, tried: tried.get(at) }
        })
    }
}
