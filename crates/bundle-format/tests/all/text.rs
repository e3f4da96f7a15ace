//! The text layout: what clang-offload-bundler writes, and what happens to files.

use crate::common::told;
use bundle_format::Error;
use bundle_format::text::{Leader, TextBundle, is_text_bundle, to_vec};
use proptest::prelude::*;

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICE: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const NO_MARKERS: &str =
    "NotABundle: text bundle has no line \"<comment> __CLANG_OFFLOAD_BUNDLE____START__\"";

/// clang-offload-bundler of LLVM 22:
/// `clang-offload-bundler --type=s --input=h --input=e --output=b
/// --targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx906`
/// where h holds `host\n` and e is empty.
const SAMPLE: &str = "
# __CLANG_OFFLOAD_BUNDLE____START__ host-x86_64-unknown-linux-gnu-
host

# __CLANG_OFFLOAD_BUNDLE____END__ host-x86_64-unknown-linux-gnu-

# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx906

# __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx906
";

fn read(text: &str) -> Vec<(String, String)> {
    let bundle = TextBundle::parse(text.as_bytes()).unwrap();
    bundle
        .entries()
        .map(|entry| {
            let start = usize::try_from(entry.offset()).unwrap();
            assert!(text.as_bytes()[start..].starts_with(entry.payload()));
            let content = String::from_utf8(entry.payload().to_vec()).unwrap();
            (entry.id_str().unwrap().to_owned(), content)
        })
        .collect()
}

fn error(text: &str) -> String {
    told(&TextBundle::parse(text.as_bytes()).unwrap_err())
}

/// Changes the first match only.
fn change(from: &str, to: &str) -> String {
    assert!(SAMPLE.contains(from));
    SAMPLE.replacen(from, to, 1)
}

fn entry(id: &str, content: &str) -> (String, String) {
    (id.to_owned(), content.to_owned())
}

#[test]
fn reads_what_the_bundler_writes() {
    let bundle = TextBundle::parse(SAMPLE.as_bytes()).unwrap();
    assert_eq!(bundle.leader(), Leader::Hash);
    assert_eq!(
        bundle.entries().map(|e| (e.index(), e.offset())).collect::<Vec<_>>(),
        [(0, 68), (1, 206)]
    );
    assert_eq!(read(SAMPLE), [entry(HOST, "host\n"), entry(DEVICE, "")]);
}

#[test]
fn writes_what_the_bundler_writes() {
    let entries: [(&str, &[u8]); 2] = [(HOST, b"host\n"), (DEVICE, b"")];
    assert_eq!(to_vec(Leader::Hash, &entries).unwrap(), SAMPLE.as_bytes());
    assert_eq!(to_vec(Leader::Slashes, &[]).unwrap(), b"");
}

#[cfg(feature = "std")]
#[test]
fn text_is_written_to_streams() {
    use bundle_format::text::write_to;
    let entries: [(&str, &[u8]); 2] = [(HOST, b"host\n"), (DEVICE, b"")];
    let mut bytes = Vec::new();
    write_to(&mut bytes, Leader::Hash, &entries).unwrap();
    assert_eq!(bytes, SAMPLE.as_bytes());
    let error = write_to(&mut bytes, Leader::Hash, &[(HOST, b""), ("", b"")]).unwrap_err();
    let error = *error.into_inner().unwrap().downcast::<Error>().unwrap();
    assert_eq!(told(&error), "Id at 0x87: bundle entry 1 at 0x87 has an empty ID");
    assert_eq!(bytes.len(), SAMPLE.len());
}

#[test]
fn file_types_have_leaders() {
    for (types, leader) in [
        (&["i", "ii", "cui", "hipi"][..], Some(Leader::Slashes)),
        (&["d", "s"], Some(Leader::Hash)),
        (&["ll"], Some(Leader::Semicolon)),
        (&["bc", "o", "a", "gch", "ast", "", "S"], None),
    ] {
        for file_type in types {
            assert_eq!(Leader::for_type(file_type), leader, "{file_type}");
        }
    }
}

#[test]
fn every_leader_is_found() {
    for leader in [Leader::Slashes, Leader::Hash, Leader::Semicolon] {
        let bytes = to_vec(leader, &[(HOST, b"text")]).unwrap();
        assert!(is_text_bundle(&bytes));
        let bundle = TextBundle::parse(&bytes).unwrap();
        assert_eq!(bundle.leader(), leader);
        assert_eq!(bundle.entries().next().unwrap().payload(), b"text");
    }
}

#[test]
fn sniffing_takes_the_first_line_that_is_not_empty() {
    assert!(is_text_bundle(&SAMPLE.as_bytes()[..64]));
    assert!(is_text_bundle(&SAMPLE.as_bytes()[1..]));
    assert!(is_text_bundle(SAMPLE.replace('\n', "\r\n").as_bytes()));
    assert!(!is_text_bundle(format!("text\n{SAMPLE}").as_bytes()));
    assert!(!is_text_bundle(b"__CLANG_OFFLOAD_BUNDLE__\0"));
    assert!(!is_text_bundle(b"\n# __CLANG_OFFLOAD_BUNDLE____END__ host"));
    assert!(!is_text_bundle(b"\n# __CLANG_OFFLOAD_BUNDLE____START__"));
    assert!(!is_text_bundle(b""));
    // Text in which parsing finds no marker: a carriage return alone ends no line.
    let marker = b"\r\r# __CLANG_OFFLOAD_BUNDLE____START__ host\n";
    assert!(!is_text_bundle(marker));
    assert_eq!(told(&TextBundle::parse(marker).unwrap_err()), NO_MARKERS);
}

#[test]
fn contents_are_kept_as_they_are() {
    let contents: [&[u8]; 6] = [b"", b"\n", b"\r\n", b"no newline", b"a\n\n\nb\r", b"\xff\0"];
    for content in contents {
        let bytes = to_vec(Leader::Semicolon, &[(HOST, content), (DEVICE, content)]).unwrap();
        let bundle = TextBundle::parse(&bytes).unwrap();
        assert!(bundle.entries().all(|entry| entry.payload() == content), "{content:?}");
    }
}

#[test]
fn a_start_in_the_first_line_counts() {
    assert_eq!(read(&SAMPLE[1..]), read(SAMPLE));
}

#[test]
fn an_end_directly_after_its_start_is_an_empty_entry() {
    let text = change("gfx906\n\n#", "gfx906\n#");
    assert_eq!(read(&text), read(SAMPLE));
}

#[test]
fn the_last_line_needs_no_newline() {
    assert_eq!(read(SAMPLE.trim_end()), read(SAMPLE));
}

#[test]
fn lines_may_end_in_cr_lf() {
    let text = SAMPLE.replace('\n', "\r\n");
    assert_eq!(read(&text), [entry(HOST, "host\r\n"), entry(DEVICE, "")]);
}

#[test]
fn text_outside_of_entries_is_ignored() {
    let text = format!("one\n{}two\n{SAMPLE}three", change("# __CLANG", "# other\n# __CLANG"));
    assert_eq!(read(&text), [read(SAMPLE), read(SAMPLE)].concat());
}

#[test]
fn markers_count_at_the_start_of_a_line_only() {
    let text = change(
        "host\n",
        "x # __CLANG_OFFLOAD_BUNDLE____END__ no\n## __CLANG_OFFLOAD_BUNDLE____END__ no\n",
    );
    assert_eq!(read(&text)[0].1.lines().count(), 2);
    let text = change("host\n", "// __CLANG_OFFLOAD_BUNDLE____END__ no\n");
    assert_eq!(read(&text)[0].1.lines().count(), 1);
}

#[test]
fn a_text_without_markers_is_refused() {
    for text in ["", "__CLANG_OFFLOAD_BUNDLE__", "% __CLANG_OFFLOAD_BUNDLE____START__ a\n"] {
        assert_eq!(error(text), NO_MARKERS, "{text}");
    }
    assert_eq!(told(&TextBundle::parse_with(b"text", Leader::Hash).unwrap_err()), NO_MARKERS);
}

#[test]
fn another_leader_is_refused() {
    let found = TextBundle::parse_with(SAMPLE.as_bytes(), Leader::Slashes).unwrap_err();
    let text = "text bundle has the comment leader \"#\" at 0x1, expected \"//\"";
    assert_eq!(told(&found), format!("OtherForm at 0x1: {text}"));
}

#[test]
fn faults_of_markers_have_their_place() {
    // The form of the first proposal, which was never written.
    let lone = "text\n# __CLANG_OFFLOAD_BUNDLE____END__ host\n";
    let after = format!("{SAMPLE}{lone}");
    let empty = "# __CLANG_OFFLOAD_BUNDLE____START__ \n# __CLANG_OFFLOAD_BUNDLE____END__ \n";
    for (text, expected) in [
        (
            &SAMPLE[..SAMPLE.rfind("\n#").unwrap()],
            "Truncated at 0x8c: text bundle entry 1 at 0x8c has no end marker",
        ),
        (&SAMPLE[..100], "Truncated at 0x1: text bundle entry 0 at 0x1 has no end marker"),
        (lone, "Malformed at 0x5: text bundle has an end marker at 0x5 without a start marker"),
        (
            &after,
            "Malformed at 0x114: text bundle has an end marker at 0x114 without a start marker",
        ),
        (
            &SAMPLE[..205],
            "Truncated at 0x8c: text bundle entry 1 at 0x8c has a start marker without newline",
        ),
        (empty, "Id at 0x0: bundle entry 0 at 0x0 has an empty ID"),
    ] {
        assert_eq!(error(text), expected);
    }
}

#[test]
fn the_end_of_another_entry_is_an_error() {
    // The end of the first entry is missing, so the one of the second is met.
    let text = change("# __CLANG_OFFLOAD_BUNDLE____END__", "# END");
    let expected = format!(
        "Malformed at 0xb3: text bundle entry 0 starts with the ID {HOST:?}, but ends at 0xb3 with the ID {DEVICE:?}"
    );
    assert_eq!(error(&text), expected);
    assert!(text[0xb3..].starts_with("# __CLANG_OFFLOAD_BUNDLE____END__"));
}

#[test]
fn writing_refuses_markers_in_contents() {
    for (content, offset) in [
        ("# __CLANG_OFFLOAD_BUNDLE____END__ ", 0),
        ("a\n# __CLANG_OFFLOAD_BUNDLE____START__ b\n", 2),
    ] {
        let found = to_vec(Leader::Hash, &[(HOST, b""), (DEVICE, content.as_bytes())]).unwrap_err();
        let text = format!("text bundle entry 1 has a marker line in its content at {offset:#x}");
        assert_eq!(told(&found), format!("MarkerInPayload: {text}"));
        // After another leader it is text like any other.
        assert!(to_vec(Leader::Slashes, &[(HOST, content.as_bytes())]).is_ok());
    }
}

#[test]
fn writing_refuses_odd_ids() {
    let line_break = "Id: text bundle entry 0 has an ID with a line break at byte 2";
    let empty = "Id at 0x1: bundle entry 0 at 0x1 has an empty ID";
    for (id, expected) in [("", empty), ("ab\n", line_break), ("ab\r", line_break)] {
        assert_eq!(told(&to_vec(Leader::Hash, &[(id, b"")]).unwrap_err()), expected);
    }
}

proptest! {
    #[test]
    fn written_text_is_read_back(
        entries in prop::collection::vec(
            ("[a-z+:-]{1,20}", "([a\r\n#]|# __CLANG_OFFLOAD_BUNDLE____|END__ |START__ ){0,12}"),
            1..4,
        ),
    ) {
        let borrowed: Vec<(&str, &[u8])> =
            entries.iter().map(|(id, content)| (&id[..], content.as_bytes())).collect();
        // Either it is refused or nothing is lost.
        if let Ok(bytes) = to_vec(Leader::Hash, &borrowed) {
            let bundle = TextBundle::parse(&bytes).unwrap();
            let found: Vec<_> = bundle.entries().map(|e| (e.id_str().unwrap(), e.payload())).collect();
            prop_assert_eq!(found, borrowed);
        }
    }
}
