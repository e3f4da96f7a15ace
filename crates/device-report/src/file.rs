//! The files of a report.

use device_account::{Account, PackageShare};

use crate::tries::Tries;

/// A file or a package, with the accounts of the files in it.
#[derive(Clone, Debug)]
pub struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) accounts: &'a [(String, Account)],
    pub(crate) share: Option<&'a PackageShare>,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) uneditable: Option<String>,
    tries: &'a [Tries],
}

/// A part of a file that has an account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// The path in the package; empty for the file itself.
    pub(crate) path: &'a str,
    pub(crate) account: &'a Account,
    /// Its bytes in the file.
    pub(crate) stored: u64,
    /// Results of `offload thin`.
    pub(crate) tries: Option<&'a Tries>,
}

impl<'a> File<'a> {
    /// Creates a file with its account; several if more files belong to it.
    #[must_use]
    pub fn new(name: &'a str, accounts: &'a [(String, Account)]) -> Self {
        File { name, accounts, share: None, path: None, uneditable: None, tries: &[] }
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

    /// Sets what is known about edits, in the order of the accounts. Default: nothing.
    #[must_use]
    pub fn with_tries(self, tries: &'a [Tries]) -> Self {
        File { tries, ..self }
    }

    /// Returns the accounts with what belongs to them.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'a>> {
        let (file, stored, tries) = (self.name, self.share.map(|share| &share.members), self.tries);
        self.accounts.iter().enumerate().map(move |(at, (name, account))| {
            let of_package = stored.map(|stored| stored.get(at).copied().unwrap_or(0));
            let stored = of_package.unwrap_or(account.size());
            let path = if self.share.is_some() || self.accounts.len() > 1 {
                let path = name.strip_prefix(file).and_then(|path| path.strip_prefix(':'));
                path.unwrap_or(name)
            } else {
                ""
            };
            Part { path, account, stored, tries: tries.get(at) }
        })
    }
}
