//! The text form of the first proposal: one marker after each code object.

use crate::common::assert_error;
use bundle_format::text::TextBundle;
use bundle_format::text::{Leader, TAIL_LEN, ends_in_marker, is_text_bundle, to_vec};
use bundle_format::{Error, ErrorKind};
use proptest::prelude::*;

/// Written by hand: no tool writes the form.
const SAMPLE: &str = "\
nop
# __CLANG_OFFLOAD_BUNDLE____END__ host
# a comment

# __CLANG_OFFLOAD_BUNDLE____END__ any text, even with __END__ in it
# __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx906
";

fn read(text: &str) -> Vec<(String, String)> {
    let bundle = TextBundle::parse_end_marked(text.as_bytes()).unwrap();
    bundle
        .entries()
        .enumerate()
        .map(|(index, entry)| {
            assert_eq!(entry.index(), index);
            let start = usize::try_from(entry.offset()).unwrap();
            assert!(text.as_bytes()[start..].starts_with(entry.payload()));
            let content = String::from_utf8(entry.payload().to_vec()).unwrap();
            (entry.id_str().unwrap().to_owned(), content)
        })
        .collect()
}

fn entry(id: &str, content: &str) -> (String, String) {
    (id.to_owned(), content.to_owned())
}

fn sample_entries() -> [(String, String); 3] {
    [
        entry("host", "nop\n"),
        entry("any text, even with __END__ in it", "# a comment\n\n"),
        entry("hip-amdgcn-amd-amdhsa--gfx906", ""),
    ]
}

const NO_END_MARKERS: &str =
    "text bundle has no line \"<comment> __CLANG_OFFLOAD_BUNDLE____END__\"";

fn error(text: &str) -> Error {
    TextBundle::parse_end_marked(text.as_bytes()).unwrap_err()
}

fn change(from: &str, to: &str) -> String {
    assert!(SAMPLE.contains(from));
    SAMPLE.replacen(from, to, 1)
}

#[test]
fn content_reaches_up_to_its_marker() {
    assert_eq!(read(SAMPLE), sample_entries());
    let bundle = TextBundle::parse_end_marked(SAMPLE.as_bytes()).unwrap();
    assert_eq!(bundle.leader(), Leader::Hash);
    let offsets: Vec<_> = bundle.entries().map(|entry| entry.offset()).collect();
    assert_eq!(offsets, [0, 43, 124]);
}

#[test]
fn the_spelling_of_the_proposal_is_accepted() {
    let text = SAMPLE.replace("__CLANG_OFFLOAD_BUNDLE____", "OFFLOAD_BUNDLER_MAGIC_STR__");
    assert!(ends_in_marker(text.as_bytes()));
    assert_eq!(read(&text), sample_entries());
}

#[test]
fn every_leader_is_found() {
    for leader in [Leader::Slashes, Leader::Hash, Leader::Semicolon] {
        let text = SAMPLE.replace("# __", &format!("{} __", leader.as_str()));
        assert!(ends_in_marker(text.as_bytes()));
        assert_eq!(TextBundle::parse_end_marked(text.as_bytes()).unwrap().leader(), leader);
        assert_eq!(read(&text), sample_entries());
    }
}

#[test]
fn markers_after_other_leaders_are_content() {
    let text = change("nop\n", "; __CLANG_OFFLOAD_BUNDLE____END__ inner\n");
    assert_eq!(read(&text)[0].1, "; __CLANG_OFFLOAD_BUNDLE____END__ inner\n");
}

#[test]
fn markers_count_at_the_start_of_a_line_only() {
    let text = change("nop\n", "x # __CLANG_OFFLOAD_BUNDLE____END__ no\n## __END__ no\n");
    assert_eq!(read(&text)[0].1.lines().count(), 2);
    // Without a space and an ID it is a comment like any other.
    let text = change("nop\n", "# __CLANG_OFFLOAD_BUNDLE____END__\n");
    assert_eq!(read(&text)[0].1.lines().count(), 1);
}

#[test]
fn the_last_line_needs_no_newline_and_blank_lines_may_follow() {
    for text in [SAMPLE.trim_end().to_owned(), format!("{SAMPLE}\r\n \t\n")] {
        assert!(ends_in_marker(text.as_bytes()));
        assert_eq!(read(&text), sample_entries());
    }
}

#[test]
fn lines_may_end_in_cr_lf() {
    let text = SAMPLE.replace('\n', "\r\n");
    assert!(ends_in_marker(text.as_bytes()));
    let expected = sample_entries().map(|(id, content)| (id, content.replace('\n', "\r\n")));
    assert_eq!(read(&text), expected);
}

#[test]
fn an_id_can_be_there_twice_and_need_not_be_utf_8() {
    let text = b"# __CLANG_OFFLOAD_BUNDLE____END__ \xff\n# __CLANG_OFFLOAD_BUNDLE____END__ \xff";
    let bundle = TextBundle::parse_end_marked(text).unwrap();
    assert!(bundle.entries().all(|entry| entry.id() == b"\xff" && entry.payload().is_empty()));
    assert_eq!(bundle.entries().len(), 2);
}

#[test]
fn the_form_is_recognised_by_the_end_of_the_text() {
    let long = format!("{}{SAMPLE}", "x\n".repeat(TAIL_LEN));
    assert!(ends_in_marker(&long.as_bytes()[long.len() - TAIL_LEN..]));
    assert!(!is_text_bundle(SAMPLE.as_bytes()));
    // Today's form ends so, too.
    assert!(ends_in_marker(&to_vec(Leader::Hash, &[("host", b"text")]).unwrap()));
    for text in [
        "",
        "\n",
        "# __CLANG_OFFLOAD_BUNDLE____END__",
        "# __CLANG_OFFLOAD_BUNDLE____END__\n",
        "# __CLANG_OFFLOAD_BUNDLE____END__host",
        "# __CLANG_OFFLOAD_BUNDLE____START__ host",
        "__CLANG_OFFLOAD_BUNDLE____END__ host",
        " # __CLANG_OFFLOAD_BUNDLE____END__ host",
        "% __CLANG_OFFLOAD_BUNDLE____END__ host",
        "# __CLANG_OFFLOAD_BUNDLE____END__ host\ntext",
        "\0\n# __CLANG_OFFLOAD_BUNDLE____END__ host",
    ] {
        assert!(!ends_in_marker(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn a_text_without_markers_is_refused() {
    for text in ["", "text", "# __CLANG_OFFLOAD_BUNDLE____END__", "__END__ "] {
        assert_error(&error(text), ErrorKind::NotABundle, None, NO_END_MARKERS);
    }
}

#[test]
fn an_empty_id_is_an_error() {
    let text = change("END__ host", "END__ ");
    assert_error(&error(&text), ErrorKind::Id, Some(4), "bundle entry 0 at 0x4 has an empty ID");
    let text = change("END__ host", "END__ \r");
    assert_error(&error(&text), ErrorKind::Id, Some(4), "bundle entry 0 at 0x4 has an empty ID");
    assert!(ends_in_marker(b"# __CLANG_OFFLOAD_BUNDLE____END__ \n"));
}

#[test]
fn content_after_the_last_marker_is_an_error() {
    let text = format!("{SAMPLE}\nnop\n");
    let found = error(&text);
    assert_error(
        &found,
        ErrorKind::Truncated,
        Some(SAMPLE.len() as u64),
        "text bundle entry 3 at 0xbc lies after the last end marker",
    );
}

#[test]
fn a_start_marker_makes_it_another_form() {
    let today = to_vec(Leader::Hash, &[("host", b"text")]).unwrap();
    assert_error(
        &TextBundle::parse_end_marked(&today).unwrap_err(),
        ErrorKind::OtherForm,
        Some(1),
        "text bundle with end markers only has a start marker at 0x1",
    );
    // After any leader, at any place.
    let text = change("nop\n", "nop\n// __CLANG_OFFLOAD_BUNDLE____START__ host\n");
    assert_error(
        &error(&text),
        ErrorKind::OtherForm,
        Some(4),
        "text bundle with end markers only has a start marker at 0x4",
    );
}

#[test]
fn the_reader_of_the_current_form_refuses_it() {
    let found = TextBundle::parse(SAMPLE.as_bytes()).unwrap_err();
    assert_error(
        &found,
        ErrorKind::Malformed,
        Some(4),
        "text bundle has an end marker at 0x4 without a start marker",
    );
}

proptest! {
    /// Text that is written in the form is read back, if its contents end in newlines and have no
    /// markers.
    #[test]
    fn reads_what_the_proposal_describes(
        entries in prop::collection::vec(
            ("[a-z :#-]{1,20}", "(([a\r#]|__END__ |# __){0,6}\n)?"),
            1..5,
        ),
    ) {
        let mut text = String::new();
        for (id, content) in &entries {
            text += &format!("{content}; __CLANG_OFFLOAD_BUNDLE____END__ {id}\n");
        }
        prop_assert!(ends_in_marker(text.as_bytes()));
        prop_assert_eq!(read(&text), entries);
    }
}
