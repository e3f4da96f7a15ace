//! Rows of packages.

use std::collections::HashMap;

use crate::account::{Account, By};
use crate::kind::Amount;
use crate::rows::Rows;

impl Rows {
    /// Adds a package of `size` bytes with the accounts of its members, by their paths. `members` are the paths of all its members, if
    /// it compresses each by itself, with their bytes in the package: what remains is a row of other members, and one of the
    /// package itself. Otherwise only the package has bytes in the file.
    pub fn add_package<'a>(
        &mut self,
        by: By,
        size: u64,
        members: Option<&[(&'a [u8], Amount)]>,
        accounts: impl IntoIterator<Item = (&'a [u8], &'a Account)>,
    ) {
        let name = |text: &'static str| if by == By::Target { "" } else { text };
        let stored = members.and_then(|members| {
            members.iter().try_fold(0_u64, |sum, (_, amount)| sum.checked_add(amount.stored))
        });
        // Members of damaged files share bytes.
        let own = stored.and_then(|stored| size.checked_sub(stored));
        let mut others: HashMap<&[u8], Vec<Amount>> = HashMap::new();
        for (path, amount) in members.filter(|_| own.is_some()).into_iter().flatten().rev() {
            others.entry(path).or_default().push(*amount);
        }
        for (path, account) in accounts {
            let member = others.get_mut(path).and_then(Vec::pop);
            self.add_all(&account.rows(by), member.map_or(0, |amount| amount.stored));
        }
        others.into_values().flatten().for_each(|it| self.add("", name("other-members"), it));
        match own {
            Some(own) => self.add("", name("package-overhead"), Amount::new(own, own)),
            None => self.add("", name("package"), Amount::new(size, 0)),
        }
    }
}
