//! Names of files in lines of output.

use std::borrow::Cow;
use std::io;

use tool_kit::style::{self, HEADING, Out, show};

use crate::inputs::Input;

/// Names of packages, each shown once before its members.
///
/// On a terminal the name of a package has a line of its own, with its members indented below. Elsewhere each line has the whole name
/// of its file, as programs that read it need.
#[derive(Clone, Debug)]
pub struct Headings {
    has_lines: bool,
    /// The package whose members are shown.
    package: Option<String>,
}

impl Headings {
    /// Creates headings for standard output.
    pub fn new() -> Self {
        Headings { has_lines: style::terminal_width() != usize::MAX, package: None }
    }

    /// Returns the name of a file to show, after a line for its package if it is the first member.
    ///
    /// # Errors
    ///
    /// Errors of writing.
    pub fn name<'f>(&mut self, out: &mut Out<'_>, file: &'f Input) -> io::Result<Cow<'f, str>> {
        self.member(out, file.package(), file.name())
    }

    /// Returns the same for the name of a file, and its package if it is a member of one.
    pub(crate) fn member<'f>(
        &mut self,
        out: &mut Out<'_>,
        package: Option<&str>,
        name: &'f str,
    ) -> io::Result<Cow<'f, str>> {
        let member = package.and_then(|package| {
            let member = name.strip_prefix(package)?.strip_prefix(':')?;
            Some((package, member))
        });
        let Some((package, member)) = member.filter(|_| self.has_lines) else {
            self.package = None;
            return Ok(name.into());
        };
        self.is_above(out, package)?;
        Ok(format!("  {member}").into())
    }

    /// Shows a name on a line of its own, unless it is the last one shown; returns `false` where names are in each line.
    ///
    /// # Errors
    ///
    /// Errors of writing.
    pub fn is_above(&mut self, out: &mut Out<'_>, name: &str) -> io::Result<bool> {
        if self.has_lines && self.package.as_deref() != Some(name) {
            show!(out, "{HEADING}{name}{HEADING:#}")?;
            self.started(name);
        }
        Ok(self.has_lines)
    }

    /// Takes it that the name of a package is shown.
    pub fn started(&mut self, package: &str) {
        self.package = Some(package.to_owned());
    }
}

impl Default for Headings {
    fn default() -> Self {
        Headings::new()
    }
}
