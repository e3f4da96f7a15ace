//! The members of packages that may hold device code.

use fat_object::{FileFormat, is_scanned};
use gpu_packages::{Codec, Member, sniff};

/// The number of first bytes by which a file is known as a package, and a member as a file that a walk would read.
pub const HEAD: usize = 512;

/// The most bytes of a compressed member of no known format that is scanned.
const MOST_SCANNED: u64 = 64 << 20;

/// The part of a member that a walk reads.
///
/// Exhaustive: a reader must know each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All of it.
    Whole,
    /// Its start, by which a walk names it: its format may hold device code and is not read, or it is damaged.
    Start,
    /// Nothing: it holds no device code.
    Nothing,
}

impl Reading {
    /// The bytes of a [`Start`](Self::Start).
    pub const START: u64 = 64 << 10;

    /// Returns the part that is read of a member that starts with `head`, of [`HEAD`] bytes. `in_place` if it lies in the package
    /// as it is, so that any part costs nothing.
    #[must_use]
    pub fn of(member: &Member, head: &[u8], in_place: bool) -> Self {
        let format = FileFormat::sniff(head);
        let is_read = format.may_hold_code() || format == FileFormat::Unknown && is_scanned(head);
        if in_place && (is_read || format.may_hold_unread_code()) {
            return Reading::Whole;
        }
        let is_scanned = is_read && format == FileFormat::Unknown;
        if is_read && !(is_scanned && member.size() > MOST_SCANNED) {
            return Reading::Whole;
        }
        // One that is damaged from its start is told.
        let is_named = member.path().to_string().ends_with(".kpack");
        if is_scanned || is_named || format.may_hold_unread_code() {
            return Reading::Start;
        }
        Reading::Nothing
    }
}

/// Returns whether a file that starts like this is looked into where it is compressed.
#[must_use]
pub fn is_looked_into(head: &[u8]) -> bool {
    FileFormat::sniff(head).may_hold_code()
        || sniff(head).is_some()
        || Codec::sniff(head) != Codec::None
}
