//! Bundle entry IDs: what a code object is for, as one line of text.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use target_id::{OffloadKind, Target, Triple, is_known_processor};

use crate::error::{Error, ErrorKind};

/// A bundle entry ID, taken apart.
///
/// The Clang Offload Bundler documentation gives it the form
/// `<kind>-<arch>-<vendor>-<os>-<environment>[-<target id>]`. Fields of the triple may be empty
/// and the target ID may contain `-`. Nothing but the number of fields is checked: unknown kinds, triples and target
/// IDs are read, too.
///
/// Shorter forms without environment are also read, see [`is_three_field`](Self::is_three_field).
///
/// ```
/// use bundle_format::EntryId;
///
/// # fn main() -> Result<(), bundle_format::Error> {
/// let id = EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+")?;
/// assert_eq!(id.kind(), target_id::OffloadKind::HipV4);
/// assert_eq!(id.triple(), "amdgcn-amd-amdhsa-");
/// assert_eq!(id.target_id(), "gfx90a:xnack+");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EntryId<'a> {
    text: &'a str,
    kind: &'a str,
    triple: &'a str,
    target_id: &'a str,
    three_field: bool,
}

impl<'a> EntryId<'a> {
    /// Splits an ID into its fields.
    ///
    /// # Errors
    ///
    /// [`Id`](crate::ErrorKind::Id) when there are too few fields.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let too_few = || too_few_fields(text);
        let (kind, rest) = text.split_once('-').ok_or_else(too_few)?;
        let is_host = kind == "host";
        let Some(os_end) = nth_dash(rest, 3) else {
            // Without target ID only the triple of a host can be told from a shorter one; Intel's
            // SYCL compiler writes the architecture alone.
            let old_host = is_host && nth_dash(rest, 2).is_some();
            if !old_host && (kind != "sycl" || rest.is_empty()) {
                return Err(too_few());
            }
            return Ok(Self { text, kind, triple: rest, target_id: "", three_field: true });
        };
        let (three_fields, behind_os) = split_at_dash(rest, os_end);
        if !is_host && let Some(target_id) = as_target_id(behind_os) {
            return Ok(Self { text, kind, triple: three_fields, target_id, three_field: true });
        }
        let (triple, target_id) = match nth_dash(rest, 4) {
            Some(environment_end) => split_at_dash(rest, environment_end),
            None => (rest, ""),
        };
        Ok(Self { text, kind, triple, target_id, three_field: false })
    }

    /// Splits an ID as clang-offload-bundler does: the field after the operating system is the environment, whatever it
    /// holds. A target ID there is lost.
    ///
    /// ```
    /// let id = bundle_format::EntryId::parse_as_llvm("openmp-amdgcn-amd-amdhsa-gfx906")?;
    /// assert_eq!(id.standardized(), "openmp-amdgcn-amd-amdhsa--");
    /// # Ok::<(), bundle_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Id`](crate::ErrorKind::Id) when there are too few fields.
    pub fn parse_as_llvm(text: &'a str) -> Result<Self, Error> {
        let too_few = || too_few_fields(text);
        let (kind, rest) = text.split_once('-').ok_or_else(too_few)?;
        nth_dash(rest, 3).ok_or_else(too_few)?;
        let (triple, target_id) = match nth_dash(rest, 4) {
            Some(environment_end) => split_at_dash(rest, environment_end),
            None => (rest, ""),
        };
        Ok(Self { text, kind, triple, target_id, three_field: false })
    }

    /// Returns the ID as given.
    #[must_use]
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns the offload kind.
    #[must_use]
    pub fn kind(&self) -> OffloadKind {
        OffloadKind::parse(self.kind)
    }

    /// Returns the triple as given: four fields, or three in one of the old forms. Fields may be empty;
    /// with an empty environment the text ends in `-`.
    #[must_use]
    pub fn triple(&self) -> &'a str {
        self.triple
    }

    /// Returns the target ID as given, empty if there is none.
    #[must_use]
    pub fn target_id(&self) -> &'a str {
        self.target_id
    }

    /// Returns whether this is the host's entry.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.kind == "host"
    }

    /// Returns whether the triple has no environment field at all, as in files of old LLVM releases:
    /// `hip-amdgcn-amd-amdhsa-gfx906`, read so because what stands in place of the environment is a known
    /// processor, or `host-x86_64-unknown-linux`; or even less, as in the `sycl-spir64_gen` of Intel's SYCL
    /// compiler.
    ///
    /// clang-offload-bundler 22 takes the processor for the environment and loses it, and finds
    /// such a host ID invalid.
    #[must_use]
    pub fn is_three_field(&self) -> bool {
        self.three_field
    }

    /// Returns kind, triple and target ID together, for matching.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::new(Some(self.kind()), Some(Triple::parse(self.triple)), self.target_id)
    }

    /// Returns the ID as clang-offload-bundler 22 writes it into a bundle: the triple normalised to four
    /// fields, the last one empty for AMD's HSA (`amdhsa`), and a `-` before the target ID even
    /// if there is none.
    ///
    /// Unlike there a target ID is never lost: neither one with an unknown processor nor the one
    /// of an old ID without environment.
    ///
    /// ```
    /// let id = bundle_format::EntryId::parse("host-x86_64-linux-gnu-")?;
    /// assert_eq!(id.standardized(), "host-x86_64-unknown-linux-gnu-");
    /// # Ok::<(), bundle_format::Error>(())
    /// ```
    #[must_use]
    pub fn standardized(&self) -> String {
        self.with_target_id(self.target_id)
    }

    /// Returns the ID to write into a bundle: as [`standardized`](Self::standardized), with the target
    /// ID in its canonical form, too: primary name of the processor, features in alphabetical
    /// order.
    ///
    /// The Clang Offload Bundler documentation has tools write this form and read any.
    /// clang-offload-bundler 22 writes features in the order in which they were typed, and
    /// nothing for alternative names of processors (`tahiti`). A target ID that cannot be read,
    /// such as one spelled as in code object V2 or V3, is kept as it is.
    ///
    /// ```
    /// let id = bundle_format::EntryId::parse("hip-amdgcn-amd-amdhsa-gfx90a:xnack+:sramecc-")?;
    /// assert_eq!(id.canonical(), "hip-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+");
    /// # Ok::<(), bundle_format::Error>(())
    /// ```
    #[must_use]
    pub fn canonical(&self) -> String {
        match self.target().target_id() {
            Ok(target_id) => self.with_target_id(&target_id.to_string()),
            Err(_) => self.standardized(),
        }
    }

    fn with_target_id(&self, target_id: &str) -> String {
        format!("{}-{}-{target_id}", self.kind, Triple::parse(self.triple).bundle_form())
    }
}

/// The ID as given.
impl fmt::Display for EntryId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text)
    }
}

#[cold]
fn too_few_fields(id: &str) -> Error {
    let fields = id.split('-').count();
    let message = format!(
        "bundle entry ID {id:?} has {fields} fields between its \"-\", expected \"<kind>-<arch>-<vendor>-<os>-<environment>\" with or without \"-<target id>\""
    );
    Error::new(ErrorKind::Id, message)
}

/// Returns the position of the `n`-th `-`, counted from 1.
fn nth_dash(text: &str, n: usize) -> Option<usize> {
    text.match_indices('-').nth(n.checked_sub(1)?).map(|(at, _)| at)
}

/// Splits at the `-` at `at`.
fn split_at_dash(text: &str, at: usize) -> (&str, &str) {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    (before, after.strip_prefix('-').unwrap_or(after))
}

/// Returns the text after the operating system if it is a target ID and not an environment: its processor is known,
/// in today's spelling or in the spelling of code object V2 and V3 (`gfx906+xnack`).
///
/// clang-offload-bundler writes a single `-` after the processor of such an ID when it takes the processor for the
/// environment.
fn as_target_id(text: &str) -> Option<&str> {
    let processor = text.split_once([':', '+']).map_or(text, |(processor, _)| processor);
    if is_known_processor(processor) {
        return Some(text);
    }
    text.strip_suffix('-').filter(|processor| is_known_processor(processor))
}
