//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use bundle_format::text::Leader;
use bundle_format::text::TextBundle;
use bundle_format::{
    Bundle, CompositionFinding, Entry, EntryId, Error, ErrorKind, MAGIC, MAGIC_TEXT, Request,
    bundles, text,
};

samples::promises! {
    sent: Bundle<'_>, TextBundle<'_>, CompositionFinding, EntryId<'_>, Error, Entry<'_>;
    owned: Request, text::Entry<'_>;
    value: ErrorKind, Leader;
    copied: Leader, text::Entry<'_>;
    displayed: CompositionFinding, EntryId<'_>;
    error: Error, CompositionFinding;
    unwinds: Bundle<'_>, TextBundle<'_>, CompositionFinding, EntryId<'_>, Error, ErrorKind,
        Leader, Request, Entry<'_>, text::Entry<'_>;
}

#[test]
fn the_magic_is_a_text() {
    assert_eq!(MAGIC, MAGIC_TEXT.as_bytes());
}

/// Views borrow from the data alone: they outlive what they came from.
#[test]
fn views_outlive_their_parser() {
    fn payloads(data: &[u8]) -> Vec<&[u8]> {
        let entries = bundles(data).flat_map(|bundle| bundle.unwrap().1.entries());
        entries.filter_map(|entry| entry.payload()).collect()
    }
    fn first_id(text: &str) -> Result<EntryId<'_>, Error> {
        let bundle = TextBundle::parse(text.as_bytes())?;
        EntryId::parse(bundle.entries().next().unwrap().id_str()?)
    }
    let id = "hip-amdgcn-amd-amdhsa--gfx906";
    let data = bundle_format::layout([(id, 4)], 1).unwrap().to_vec(&[b"code"]).unwrap();
    assert_eq!(payloads(&data), [b"code"]);
    let text = text::to_vec(Leader::Hash, &[(id, b"code")]).unwrap();
    assert_eq!(first_id(core::str::from_utf8(&text).unwrap()).unwrap().as_str(), id);
}

#[test]
fn text_entries_iterate_from_both_ends() {
    let contents: [(&str, &[u8]); 3] = [("a", b"1"), ("b", b"22"), ("c", b"333")];
    let data = text::to_vec(Leader::Hash, &contents).unwrap();
    let bundle = TextBundle::parse(&data).unwrap();
    let mut entries = bundle.entries();
    assert_eq!(entries.next_back().map(|entry| (entry.index(), entry.size())), Some((2, 3)));
    assert_eq!(entries.len(), 2);
    assert_eq!(entries.nth(1).map(|entry| entry.payload()), Some(&b"22"[..]));
    assert!(entries.next().is_none());
}

#[cfg(feature = "std")]
#[test]
fn errors_are_errors_of_io() {
    use std::io;
    use std::io::ErrorKind::{InvalidData, InvalidInput, OutOfMemory};

    let kind = |error: Error| io::Error::from(error).kind();
    assert_eq!(kind(Bundle::parse(b"").unwrap_err()), InvalidData);
    let error = bundle_format::layout([("a", 0)], 0).unwrap_err();
    let text = error.to_string();
    let error = io::Error::from(error);
    assert_eq!(error.kind(), InvalidInput);
    assert_eq!(error.downcast::<Error>().unwrap().to_string(), text);
    assert_eq!(kind(byte_parts::Error::OutOfMemory { size: 1 }.into()), OutOfMemory);
}
