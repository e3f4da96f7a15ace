//! Contradictions between entries of the archive's bundles.

use std::fmt;
use std::io::{self, Read, Seek};

use bundle_format::composition;
use byte_parts::ReadSeek;
use fat_object::Options;

use crate::entries::entries;
use crate::error::Error;
use crate::unbundle::is_text;

/// Two entries of one bundle that must not be in it together: of two for one processor, only one has a setting for
/// some feature.
#[derive(Debug)]
pub struct Conflict {
    member: String,
    first: String,
    second: String,
}

impl Conflict {
    /// Returns the member that holds the bundle; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn member(&self) -> &str {
        &self.member
    }

    /// Returns the IDs of the two entries, in the order of their bytes.
    #[must_use]
    pub fn ids(&self) -> (&str, &str) {
        (&self.first, &self.second)
    }
}

/// In the words of `clang-offload-bundler`, up to the archive's name.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { member, first, second } = self;
        write!(
            f,
            "conflicting TargetIDs [{}, {}] found in {}",
            first.escape_debug(),
            second.escape_debug(),
            member.escape_debug()
        )
    }
}

/// Checks every bundle of an archive by the rule for target features: in all target IDs for a processor, or in none
/// (Clang Offload Bundler documentation, "Bundled Code Object Composition").
///
/// As `clang-offload-bundler --check-input-archive`, but compressed bundles are checked as well, all bundles of a
/// member, and it does not matter which of two IDs has the feature.
///
/// ```
/// use std::io::Cursor;
/// use hda_archive::{Member, Options, conflicts, create, no_thin_members};
///
/// let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx906:xnack+"];
/// let bundle = bundle_format::layout(ids.map(|id| (id, 4)), 1)?.to_vec(&[b"one.", b"two."])?;
/// let mut library = Vec::new();
/// create(&mut library, [Member::new("a.bc", bundle)])?;
///
/// let found = conflicts(Cursor::new(library), &Options::default(), no_thin_members)?;
/// assert_eq!((found[0].member(), found[0].ids()), ("a.bc", (ids[0], ids[1])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Errors of [`entries`].
pub fn conflicts<R: Read + Seek>(
    input: R,
    options: &Options,
    open_thin: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
) -> Result<Vec<Conflict>, Error> {
    let mut bundle = Bundle::default();
    let mut found = Vec::new();
    entries(input, options, open_thin, |entry| {
        if bundle.number != Some(entry.bundle()) {
            let next = Bundle {
                number: Some(entry.bundle()),
                member: entry.member().to_owned(),
                ids: Vec::new(),
            };
            std::mem::replace(&mut bundle, next).check(&mut found);
        }
        // Two that are not text may only look like each other.
        if is_text(entry.id()) {
            bundle.ids.push(entry.id().to_owned());
        }
        Ok(())
    })?;
    bundle.check(&mut found);
    Ok(found)
}

/// The IDs of one bundle.
#[derive(Default)]
struct Bundle {
    number: Option<usize>,
    member: String,
    ids: Vec<String>,
}

impl Bundle {
    fn check(mut self, found: &mut Vec<Conflict>) {
        // The order of the bundler's messages.
        self.ids.sort();
        for finding in composition(self.ids.iter().map(String::as_str)) {
            let id = |index: usize| self.ids.get(index).cloned();
            if finding.feature().is_some()
                && let (Some(first), Some(second)) =
                    (finding.first().and_then(id), id(finding.index()))
            {
                found.push(Conflict { member: self.member.clone(), first, second });
            }
        }
    }
}
