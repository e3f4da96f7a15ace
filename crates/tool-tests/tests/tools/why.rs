//! `offload why` finds the section of each message, and no other.

use crate::common::{new_command, stdout, tool};

/// The page of docs with a section for each message.
const PAGE: &str = include_str!("../../../cli/src/why/messages.md");

/// Returns the titles and texts of all sections.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGE.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'))
}

/// Returns the titles of the sections that are shown for a text.
fn titles(text: &str) -> Vec<&'static str> {
    let shown = stdout(&new_command(tool("offload")).args(["why", text]).output().unwrap());
    let is_shown = |title: &&str| shown.lines().any(|line| line == *title);
    sections().map(|(title, _)| title).filter(is_shown).collect()
}

#[test]
fn each_message_leads_to_its_section_alone() {
    assert!(sections().count() >= 8);
    for (title, text) in sections() {
        assert!(text.contains("```sh\noffload "), "{title}");
        let also = text.lines().find_map(|line| line.strip_prefix("Also: "));
        let others = also.into_iter().flat_map(|also| also.trim_end_matches('.').split(", "));
        for message in [title].into_iter().chain(others.map(|other| other.trim_matches('`'))) {
            assert_eq!(titles(message), [title], "{message}");
            let printed = format!("RuntimeError: CUDA error: {message} (at foo.cu:12)");
            assert_eq!(titles(&printed), [title], "{printed}");
        }
    }
}

#[test]
fn messages_are_found_in_what_programs_print() {
    let title = "no kernel image is available for execution on the device";
    assert_eq!(titles("no kernel image"), [title]);
    assert_eq!(titles("hipErrorNoBinaryForGpu: Unable to find code object"), [title]);
    let rocblas = "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1032";
    assert_eq!(titles(rocblas), ["Cannot read TensileLibrary.dat"]);
    for nothing in ["", "error", "error 980", "the", "hello world", "segmentation fault"] {
        assert_eq!(titles(nothing), [""; 0], "{nothing}");
    }
}
