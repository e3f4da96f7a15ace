//! The cases of `tests/cases`, and their runner. `BLESS=1` writes the outputs into them.

use std::fs;

use crate::runner::{Peer, check, check_all, play};

#[test]
fn all() {
    check_all(Peer::Ours);
}

/// Cases of the tools for Windows, in `tests/windows`, in the same form.
#[test]
#[ignore = "needs Wine: .ci/run windows"]
fn windows() {
    check_all(Peer::Windows);
}

#[test]
fn a_wrong_expectation_fails_and_is_rewritten() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("wrong.case");
    let head = "# A comment.\n\ninput a = \"co\" times 2 at 1 \"\\n\" + data hip.hipfb cut 1\n\
                $ offload ls nowhere\n";
    let tail = "\n# The end.\n$ clang-offload-bundler -type=bc -targets=host-x86_64-unknown-linux-gnu \
                -input=a -output=b < a\n";
    let right =
        format!("{head}! offload: error: nowhere: No such file or directory\n? 1\n{tail}+ b ");
    fs::write(&path, format!("{head}| wrong\n? 3\n{tail}+ c \"\"\n")).unwrap();
    let error = check(&path, Peer::Ours, false).unwrap_err();
    assert!(error.contains("wrong.case:5:\n  expected | wrong\n"), "{error}");
    check(&path, Peer::Ours, true).unwrap();
    check(&path, Peer::Ours, false).unwrap();
    let blessed = fs::read_to_string(&path).unwrap();
    let bundle = blessed.strip_prefix(&right).unwrap();
    assert!(bundle.starts_with("91 bytes, xxh3 ") && bundle.lines().count() == 1, "{blessed}");
}

#[test]
fn inputs_are_made_by_lines() {
    let case = "\
input a = \"co\" times 2 at 1 \"\\n\" + data hip.hipfb cut 1 + \" \\x00\\\\\"
input b/c = file a + file a
input f = \"abcde\" from 2 pad 4
$ clang-offload-bundler -type=bc -targets=host-x86_64-unknown-linux-gnu -input=f -output=d
$ clang-offload-bundler -type=bc -unbundle -targets=host-x86_64-unknown-linux-gnu -input=d -output=e
+ e \"cde\\0\"
$ clang-offload-bundler -type=bc -targets=host-x86_64-unknown-linux-gnu -input=b/c -output=d
$ clang-offload-bundler -type=bc -unbundle -targets=host-x86_64-unknown-linux-gnu -input=d -output=e
+ e \"c\\nco_ \\0\\\\c\\nco_ \\0\\\\\"
";
    let found = play(case, Peer::Ours).unwrap();
    assert_eq!(found.lines().last(), case.lines().last(), "{found}");
    assert!(found.contains("\n+ e \"cde\\0\"\n"), "{found}");
}

#[test]
fn a_command_with_choices_runs_once_with_each() {
    let case = "input a = \"\"\n$ offload ls { a | ./a }\n";
    let error = play(case, Peer::Ours).unwrap_err();
    assert!(error.contains("with './a' it gives something else"), "{error}");
    let case = case.replace("./a", "--rows a");
    let found = play(&case, Peer::Ours).unwrap();
    assert_eq!(found, format!("{case}| a  0 B, empty\n! offload: note: a: the file is empty\n"));
    let error = play(&case.replace('}', ""), Peer::Ours).unwrap_err();
    assert!(error.contains("expected '}' after '{'"), "{error}");
}

#[test]
fn files_that_are_written_again_are_found() {
    let command = "$ clang-offload-bundler -type=bc -targets=host-x86_64-unknown-linux-gnu -input=a -output=b\n";
    let found = play(&format!("input a = \"\"\n{command}{command}"), Peer::Ours).unwrap();
    assert_eq!(found.matches("\n+ b 86 bytes").count(), 2, "{found}");
}

#[test]
fn texts_that_are_not_cases_are_refused() {
    for (text, expected) in [
        ("# Only a comment.\n", "1: the case has no command"),
        ("\n| output\n", "2: | output\n  expected '#'"),
        ("$ sh -c true\n", "1: $ sh -c true\n  'sh' is not one of our tools"),
        ("input a = \"1\"\ninput b = \"2\"\nsame a b\n", "3: same a b\n  the files differ"),
        ("input a = \"\"\nsame a a\n", "2: same a a\n  expected two files or more"),
        ("input a = \"\n", "1: input a = \"\n  a text has no end"),
        ("input a = \"a\" cut 2\n", "the term is shorter already"),
        ("input a = \"a\" at 1 \"b\"\n", "the patch is past the end"),
    ] {
        let error = play(text, Peer::Ours).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
