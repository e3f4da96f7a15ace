//! Rows of sums, in the order in which their names first appear.

use std::collections::HashMap;

use crate::claims::apportion;
use crate::kind::Amount;

/// A row of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The GPU; `host`, or empty for bytes of no target.
    pub target: String,
    /// The kind, the function, the container or the section; empty in rows of a GPU.
    pub name: String,
    /// Its bytes.
    pub amount: Amount,
}

impl Row {
    /// Creates a row.
    #[must_use]
    pub fn new(target: &str, name: &str, amount: Amount) -> Self {
        Row { target: target.to_owned(), name: name.to_owned(), amount }
    }
}

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
