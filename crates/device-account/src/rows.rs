//! Rows of sums, in the order in which their names first appear.

use std::collections::HashMap;

use crate::account::{Account, By, Row};
use crate::claims::apportion;
use crate::kind::Amount;

/// Rows of sums, of one account or of several.
#[derive(Debug, Default)]
pub struct Rows {
    all: Vec<Row>,
    by_name: HashMap<(String, String), usize>,
}

impl Rows {
    /// Adds an amount to the row of these names, unless it is nothing.
    pub fn add(&mut self, target: &str, name: &str, amount: Amount) {
        if amount == Amount::default() {
            return;
        }
        let key = (target.to_owned(), name.to_owned());
        let at = *self.by_name.entry(key).or_insert(self.all.len());
        if let Some(row) = self.all.get_mut(at) {
            row.amount += amount;
            return;
        }
        self.all.push(Row::new(target, name, amount));
    }

    /// Adds rows of a file that has only `stored` bytes, as a member of a package that compresses it: they are apportioned.
    pub fn add_all(&mut self, rows: &[Row], stored: u64) {
        let weights: Vec<_> = rows.iter().map(|row| row.amount.stored).collect();
        for (row, stored) in rows.iter().zip(apportion(stored, &weights)) {
            self.add(&row.target, &row.name, Amount::new(stored, row.amount.plain));
        }
    }

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

    /// Returns the rows.
    #[must_use]
    pub fn all(&self) -> &[Row] {
        &self.all
    }

    /// Returns the rows.
    #[must_use]
    pub fn into_all(self) -> Vec<Row> {
        self.all
    }
}
