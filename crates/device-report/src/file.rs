//! The files of a report.

use device_account::{Account, PackageShare};

use crate::quote::quoted;

/// A file or a package, with the accounts of the files in it.
#[derive(Clone, Debug)]
pub struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) accounts: &'a [(String, Account)],
    pub(crate) share: Option<&'a PackageShare>,
    pub(crate) argument: Option<String>,
    pub(crate) uneditable: Option<String>,
}

impl<'a> File<'a> {
    /// Creates a file with its account; several if more files belong to it.
    #[must_use]
    pub fn new(name: &'a str, accounts: &'a [(String, Account)]) -> Self {
        File { name, accounts, share: None, argument: None, uneditable: None }
    }

    /// Makes it a package, whose members have these bytes, in the order of the accounts. Default: it is a file.
    #[must_use]
    pub fn with_share(self, share: &'a PackageShare) -> Self {
        File { share: Some(share), ..self }
    }

    /// Sets the path for command lines. Without one there are none.
    #[must_use]
    pub fn with_path(self, path: &[u8]) -> Self {
        File { argument: Some(quoted(path)), ..self }
    }

    /// Sets the reason why `offload thin` cannot change it. Default: it can.
    #[must_use]
    pub fn with_uneditable(self, why: String) -> Self {
        File { uneditable: Some(why), ..self }
    }

    /// Returns the accounts, each with its bytes in the file.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'a str, &'a Account, u64)> {
        let stored = self.share.map(|share| &share.members);
        self.accounts.iter().enumerate().map(move |(at, (name, account))| {
            let of_package = stored.map(|stored| stored.get(at).copied().unwrap_or(0));
            (&**name, account, of_package.unwrap_or(account.size()))
        })
    }
}
