//! The bytes of packages: of members, and of what is around them.

use std::collections::HashMap;

use crate::account::{Account, By};
use crate::kind::Amount;
use crate::rows::Rows;

/// The bytes that members of a package have in it, and the rest. They add up to the size of the package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageShare {
    /// The bytes in the package of each member of interest.
    pub members: Vec<u64>,
    /// The bytes of `other-members` and of `package-overhead`, or of `package` if only the package has bytes in the file.
    pub rest: Vec<(&'static str, Amount)>,
}

impl PackageShare {
    /// Divides a package of `size` bytes. `members` are the paths of all its members, if it compresses each by itself, with their
    /// bytes in the package; `paths` are the members of interest.
    pub fn of<'a>(
        size: u64,
        members: Option<&[(&'a [u8], Amount)]>,
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        let stored = members.and_then(|members| {
            members.iter().try_fold(0_u64, |sum, (_, amount)| sum.checked_add(amount.stored))
        });
        // Members of damaged files share bytes.
        let own = stored.and_then(|stored| size.checked_sub(stored));
        let mut others: HashMap<&[u8], Vec<Amount>> = HashMap::new();
        for (path, amount) in members.filter(|_| own.is_some()).into_iter().flatten().rev() {
            others.entry(path).or_default().push(*amount);
        }
        let mut stored_of = |path| others.get_mut(path).and_then(Vec::pop);
        let stored = paths.into_iter().map(|path| stored_of(path).map_or(0, |it| it.stored));
        let members = stored.collect();
        let rest = match own {
            Some(own) => vec![
                ("other-members", others.into_values().flatten().sum()),
                ("package-overhead", Amount::new(own, own)),
            ],
            None => vec![("package", Amount::new(size, 0))],
        };
        PackageShare { members, rest }
    }
}

impl Rows {
    /// Adds a package, divided by its members, with their accounts in the same order.
    pub fn add_package<'a>(
        &mut self,
        by: By,
        share: &PackageShare,
        accounts: impl IntoIterator<Item = &'a Account>,
    ) {
        for (account, stored) in accounts.into_iter().zip(&share.members) {
            self.add_all(&account.rows(by), *stored);
        }
        for (name, amount) in &share.rest {
            self.add("", if by == By::Target { "" } else { name }, *amount);
        }
    }
}
