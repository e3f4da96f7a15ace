//! Rules for the entries of a bundle.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use target_id::{Feature, Target, conflicts};

use crate::entry_id::EntryId;
use crate::error::{Error, ErrorKind};

/// The longest ID that is compared with others: one long ID in the findings of many short ones would make them a
/// multiple of the bundle.
const MAX_COMPARED: usize = 1024;

/// A rule of composition that the entries of a bundle break. Entries are numbered from 0.
///
/// [`Display`](core::fmt::Display) says which: "bundle entries 0 and 2 both have the ID ...".
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct CompositionFinding(Box<Inner>);

#[derive(Debug)]
struct Inner {
    index: usize,
    first: Option<usize>,
    feature: Option<Feature>,
    message: String,
}

impl CompositionFinding {
    fn new(index: usize, message: String) -> Self {
        CompositionFinding(Box::new(Inner { index, first: None, feature: None, message }))
    }

    /// Creates the finding of two entries that mean the same, whether or not they are spelled the same.
    fn duplicate((first, first_id): (usize, &str), (second, second_id): (usize, &str)) -> Self {
        let ids = if first_id == second_id {
            format!("both have the ID {first_id:?}")
        } else {
            format!("have the IDs {first_id:?} and {second_id:?}, which mean the same")
        };
        let mut finding = Self::new(second, format!("bundle entries {first} and {second} {ids}"));
        finding.0.first = Some(first);
        finding
    }

    /// Creates the finding of two entries for one processor where only one has a setting for this feature: where it is
    /// any for one entry, it has to be any for all.
    fn feature_in_one(
        (first, first_id): (usize, &str),
        (second, second_id): (usize, &str),
        feature: Feature,
    ) -> Self {
        let message = format!(
            "bundle entries {first} and {second} have the IDs {first_id:?} and {second_id:?}; \
             only one of them has a setting for {}",
            feature.as_str().escape_debug()
        );
        let mut finding = Self::new(second, message);
        finding.0.first = Some(first);
        finding.0.feature = Some(feature);
        finding
    }

    /// Returns the entry at fault, the later one if there are two.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// Returns the earlier entry if there are two; `None` if an ID by itself is at fault: no matter where any text may be
    /// one.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.0.first
    }

    /// Returns the feature that only one of two entries sets; `None` for other rules.
    #[must_use]
    pub fn feature(&self) -> Option<&Feature> {
        self.0.feature.as_ref()
    }
}

/// Checks the IDs of the entries of one bundle. Returns the findings in the order of entries.
///
/// The rules are those of the Clang Offload Bundler documentation, "Bundled Code Object
/// Composition", applied to what IDs mean: spelling, order of features and the difference
/// between `hip` and `hipv4` do not count. An ID that cannot be parsed is only compared with equal ones. So is an ID of
/// more than 1024 bytes, which is a finding itself. The spelling of target IDs of code object V2 and V3 is not found
/// wrong. The time grows as n log n, memory with the length of the IDs; two of them are in a finding, of at most 1024
/// bytes each.
///
/// ```
/// use bundle_format::composition;
///
/// let findings = composition([
///     "host-x86_64-unknown-linux-gnu-",
///     "hipv4-amdgcn-amd-amdhsa--gfx906",
///     "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+",
/// ]);
/// assert_eq!((findings.len(), findings[0].index()), (1, 2));
/// assert_eq!(
///     findings[0].to_string(),
///     "bundle entries 1 and 2 have the IDs \"hipv4-amdgcn-amd-amdhsa--gfx906\" and \
///      \"hipv4-amdgcn-amd-amdhsa--gfx906:xnack+\"; only one of them has a setting for xnack"
/// );
/// ```
#[must_use]
pub fn composition<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<CompositionFinding> {
    let mut findings: Vec<CompositionFinding> = Vec::new();
    // The parsed IDs, and the texts of IDs that cannot be parsed.
    let mut valid: Vec<(usize, &str)> = Vec::new();
    let mut targets: Vec<Target> = Vec::new();
    let mut invalid: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, text) in ids.into_iter().enumerate() {
        let id = match (text.len(), text.find(char::is_control)) {
            (len, _) if len > MAX_COMPARED => {
                let message =
                    format!("bundle entry ID has {len} bytes, expected {MAX_COMPARED} at most");
                Err(Error::new(ErrorKind::Id, message))
            }
            (_, Some(at)) => {
                let message =
                    format!("bundle entry ID {text:?} has a control character at its byte {at}");
                Err(Error::new(ErrorKind::Id, message))
            }
            _ => EntryId::parse(text),
        };
        match id {
            Ok(id) => {
                let target = id.target();
                if let Some(error) = invalid_target_id(&target) {
                    let message = format!("bundle entry {index} has the ID {text:?}: {error}");
                    findings.push(CompositionFinding::new(index, message));
                }
                valid.push((index, text));
                targets.push(target);
            }
            Err(error) => {
                let message = format!("bundle entry {index}: {error}");
                findings.push(CompositionFinding::new(index, message));
                let first = *invalid.entry(text).or_insert(index);
                if first != index {
                    findings.push(CompositionFinding::duplicate((first, text), (index, text)));
                }
            }
        }
    }
    for conflict in conflicts(&targets) {
        let (Some(&first), Some(&second)) = (valid.get(conflict.first), valid.get(conflict.second))
        else {
            continue;
        };
        findings.push(match conflict.feature {
            Some(feature) => CompositionFinding::feature_in_one(first, second, feature),
            None => CompositionFinding::duplicate(first, second),
        });
    }
    // Stable: of one entry, what is wrong with its ID comes first.
    findings.sort_by_key(CompositionFinding::index);
    findings
}

/// Returns the error in the target ID, unless the ID is only spelled in an old form.
fn invalid_target_id(target: &Target) -> Option<target_id::Error> {
    if target.id().is_empty() {
        return None;
    }
    target.target_id().err().filter(|error| error.kind() != target_id::ErrorKind::OldSpelling)
}
