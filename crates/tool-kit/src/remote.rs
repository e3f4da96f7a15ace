//! A file on a server with ranges, and the part that was not read.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use byte_parts::Ranges;

/// Returns whether an argument is a URL, of any scheme.
pub fn is_url(argument: &Path) -> bool {
    let Some((scheme, _)) = argument.to_str().and_then(|text| text.split_once("://")) else {
        return false;
    };
    scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// A file on a server, and the part that was not read.
#[derive(Debug)]
pub struct Remote {
    /// Its bytes.
    pub ranges: Ranges,
    scans: bool,
    unread: AtomicUsize,
    /// The number of these that may hold device code.
    hidden: AtomicUsize,
    unsearched: AtomicUsize,
}

impl Remote {
    /// Creates a file without omissions. `scans` says that all of it is read.
    pub fn new(ranges: Ranges, scans: bool) -> Self {
        let [unread, hidden, unsearched] = [(); 3].map(|()| AtomicUsize::new(0));
        Remote { ranges, scans, unread, hidden, unsearched }
    }

    /// Returns whether all is read: host files as a whole, and all members of packages.
    pub fn scans(&self) -> bool {
        self.scans
    }

    /// Counts a member of a package that was not read, because its name is not one of a file with device code. `may_hold_code` says
    /// that it could be one.
    pub fn add_unread(&self, may_hold_code: bool) {
        self.unread.fetch_add(1, Ordering::Relaxed);
        self.hidden.fetch_add(usize::from(may_hold_code), Ordering::Relaxed);
    }

    /// Counts host files that were not searched outside of device sections.
    pub fn add_unsearched(&self, files: usize) {
        self.unsearched.fetch_add(files, Ordering::Relaxed);
    }

    /// Returns whether something was not read that may hold device code.
    pub fn is_partial(&self) -> bool {
        [&self.hidden, &self.unsearched].iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Returns the text about what was not read; empty if all was.
    pub fn left_out(&self) -> String {
        let [unread, hidden, unsearched] = [&self.unread, &self.hidden, &self.unsearched]
            .map(|count| count.load(Ordering::Relaxed));
        let (mut text, mut between) = (String::new(), "");
        let mut add = |part: fmt::Arguments<'_>| {
            text.push_str(between);
            text.push_str(&part.to_string());
            between = "; ";
        };
        if unread > 0 {
            let members = crate::style::count(unread, "member");
            let hidden = match hidden {
                0 => String::new(),
                hidden => format!(" ({hidden} may hold device code)"),
            };
            add(format_args!("{members} not read, by their names{hidden} (--scan)"));
        }
        if unsearched > 0 {
            let files = crate::style::files(unsearched);
            add(format_args!("{files} not searched outside of device sections (--scan)"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths() {
        for url in ["http://x", "https://x/y", "s3://b/k", "file:///x", "HTTP://x"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in ["x", "-", "a.whl:x", "c://x", "/a://b", "://x", "1x://y"] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }
}
