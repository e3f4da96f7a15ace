//! Archives of `ar`.

use std::fmt::Display;

/// The first bytes of an archive.
pub const MAGIC: &[u8; 8] = b"!<arch>\n";
/// The first bytes of a thin archive.
pub const THIN: &[u8; 8] = b"!<thin>\n";

/// Returns the header of a member, with its name and its size as they are to be in it.
#[must_use]
pub fn header(name: &str, size: impl Display) -> Vec<u8> {
    format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).into_bytes()
}

/// Returns a member, with its name as it is to be in the header.
#[must_use]
pub fn member(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut bytes = [&header(name, contents.len())[..], contents].concat();
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes
}

/// Returns an archive of members, with their names as they are to be in the headers.
#[must_use]
pub fn raw(members: &[(&str, &[u8])]) -> Vec<u8> {
    let members = members.iter().flat_map(|(name, contents)| member(name, contents));
    MAGIC.iter().copied().chain(members).collect()
}

/// Returns an archive of members with short names, as GNU has it.
#[must_use]
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let named = |(name, contents): &(&str, &[u8])| member(&format!("{name}/"), contents);
    MAGIC.iter().copied().chain(members.iter().flat_map(named)).collect()
}

/// Returns a thin archive that names one file of this size many times. The name, with its `/`, is short.
#[must_use]
pub fn thin(name: &str, size: usize, count: usize) -> Vec<u8> {
    [&THIN[..], &header(name, size).repeat(count)].concat()
}
