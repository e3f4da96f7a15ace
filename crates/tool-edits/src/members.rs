//! The members of a package or an image that is edited, with what became of each.

use device_select::few;
use gpu_packages::Unopened;

use super::report::{FileRow, Stays};
use super::words::left_alone;
use tool_kit::failure::Failure;

/// The members of a package, with what became of each.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) rows: Vec<FileRow>,
    pub(crate) complaints: Vec<String>,
    /// `true` if a member could not be read or written.
    has_failed: bool,
    /// Members with code that no option selects, and the reasons for the first.
    left: Vec<String>,
    why: Vec<String>,
    pub(crate) unopened: Unopened,
    /// Changed files that the records of the package do not list.
    pub(crate) unlisted: Vec<String>,
    pub(crate) has_other_changes: bool,
}

impl Members {
    /// Returns the new contents of a member, and remembers why others have none.
    pub(crate) fn settle<T>(
        &mut self,
        name: &str,
        new: Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        match new {
            Ok(new) => return Ok(new),
            Err(Failure::NoCode) => {}
            Err(Failure::NotConcerned(why)) => {
                if self.left.is_empty() {
                    self.why = why.iter().map(|text| format!(":{name}: {text}")).collect();
                }
                self.left.push(name.to_owned());
            }
            Err(failure) => {
                self.has_failed |= !matches!(failure, Failure::Refused(_));
                let all = failure.complaints()?;
                self.complaints.extend(all.iter().map(|text| format!(":{name}: {text}")));
            }
        }
        Ok(None)
    }

    pub(crate) fn check_complaints(&mut self) -> Result<(), Failure> {
        if self.complaints.is_empty() {
            Ok(())
        } else {
            let complaints = std::mem::take(&mut self.complaints);
            let has_failed = self.has_failed;
            Err(if has_failed { complaints.into() } else { Failure::Refused(complaints) })
        }
    }

    /// Returns the reason why there is no new package. With `shrinks`, a package without code for the targets stays, even if
    /// files in it could go.
    pub(crate) fn check(&mut self, shrinks: bool) -> Result<(), Failure> {
        self.check_complaints()?;
        let is_concerned = |row: &FileRow| match &row.tally {
            tally if shrinks => tally.kept.total() > 0 || tally.unserved > 0,
            _ => !matches!(row.stays, Stays::Unconcerned),
        };
        if self.rows.iter().any(is_concerned) {
            return Ok(());
        }
        if !self.left.is_empty() || !self.rows.is_empty() {
            return Err(Failure::NotConcerned(std::mem::take(&mut self.why)));
        }
        let Unopened { packages, compressed, .. } = &self.unopened;
        let inner: Vec<&String> = packages.iter().chain(compressed).collect();
        Err(if inner.is_empty() {
            Failure::NoCode
        } else {
            let inner = few(inner);
            Failure::refused(format!(
                "no device code, unless in packages in it, which are not changed: {inner}"
            ))
        })
    }

    /// Has all members stay as they are, for this reason.
    pub(crate) fn keep_all(&mut self, why: &str) {
        self.has_other_changes = false;
        self.unlisted.clear();
        let rows = std::mem::take(&mut self.rows).into_iter();
        let keep = |row: FileRow| if row.changed { row.unchanged(why.to_owned()) } else { row };
        self.rows = rows.map(keep).collect();
    }

    pub(crate) fn changes_some(&self) -> bool {
        self.has_other_changes || self.rows.iter().any(|row| row.changed)
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let Members { left, unopened, unlisted, .. } = self;
        let of = |text: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{text}: {}", few(names)))
        };
        let left = (!left.is_empty()).then(|| left_alone(left));
        let packages = of("packages in it are not looked into", &unopened.packages);
        let unlisted = of("its records do not list", unlisted);
        [left, packages, unlisted].into_iter().flatten().collect()
    }
}
