//! Files of kernel databases for other GPUs, which are deleted as a whole.

use std::io::{self, Read};

use device_select::{Database, Rule};
use fat_object::list;

use tool_kit::positioned::Positioned;

/// The bytes of a file that tell whether it is a table of a database.
const HEAD: u64 = 512;

/// Kernel databases, and the rule that says which of their files stay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Databases<'r> {
    pub(crate) rule: &'r Rule,
}

impl Databases<'_> {
    /// Returns the database that the path of a file leads to, if it is one for other GPUs. Its contents must agree.
    pub(super) fn candidate(&self, path: &str) -> Option<Database> {
        Database::at(path).filter(|database| !self.rule.keeps(&database.to_target()))
    }

    /// Returns whether a file of a database holds what its path says, and nothing for a GPU that stays.
    ///
    /// # Errors
    ///
    /// One of reading the file.
    pub(super) fn goes(
        &self,
        database: &Database,
        contents: Positioned<'_>,
        walk: &fat_object::Options,
    ) -> io::Result<bool> {
        if !database.holds_code() {
            let mut head = Vec::new();
            contents.take(HEAD).read_to_end(&mut head)?;
            return Ok(database.is_table(&head));
        }
        Ok(self.rule.drops_all_of(&list(contents, walk)?))
    }
}
