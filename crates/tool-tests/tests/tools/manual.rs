//! Manual pages and completions. Errors are in `cases/manual`.

use std::fs;

use crate::common::installed::TOOLS;
use crate::common::{new_command, offload, stderr, stdout, tool};
use crate::help::commands;

/// The macros and requests that all formatters of pages know.
const REQUESTS: [&str; 12] =
    [".TH", ".SH", ".SS", ".PP", ".TP", ".IP", ".RS", ".RE", ".nf", ".fi", ".nh", ".ad"];

#[test]
fn manual_pages_are_complete_and_portable() {
    let place = tempfile::tempdir().unwrap();
    let output = offload(["man".as_ref(), "--out".as_ref(), place.path().as_os_str()]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    let mut names = Vec::new();
    for entry in fs::read_dir(place.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let page = fs::read_to_string(&path).unwrap();
        let title = format!(".TH \"{}\" \"1\" ", name.to_uppercase());
        assert!(page.starts_with(&title) && page.is_ascii(), "{name}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
            assert_eq!(
                page.matches(&format!(".SH \"{section}\"\n")).count(),
                1,
                "{name}: {section}"
            );
        }
        let is_offload = name.starts_with("offload");
        for section in ["EXAMPLES", "ENVIRONMENT"] {
            assert_eq!(page.contains(&format!(".SH \"{section}\"\n")), is_offload, "{name}");
        }
        let mut is_title = false;
        for line in page.lines() {
            let request = line.split(' ').next().unwrap();
            let is_request = line.starts_with(['.', '\'']);
            assert!(!is_request || REQUESTS.contains(&request), "{name}: {line}");
            // A paragraph after a title begins without this request.
            assert!(!(is_title && request == ".PP"), "{name}: {line}");
            is_title = matches!(request, ".SH" | ".SS");
            assert!(!line.is_empty() && !line.ends_with(' '), "{name}: '{line}'");
        }
        // A page alone is the same.
        let short = name.strip_prefix("offload-").unwrap_or(&name);
        for asked in [&*name, short] {
            let output = offload(["man", asked]);
            assert!(output.status.success() && stdout(&output) == page, "{asked}");
        }
        // Each reference leads to a page.
        let also = page.split(".SH \"SEE ALSO\"").nth(1).unwrap().replace("\\-", "-");
        for other in also.lines().filter_map(|line| line.strip_prefix("\\fB")) {
            let other = other.split("\\fR(1)").next().unwrap();
            let file = place.path().join(format!("{other}.1"));
            assert!(file.exists() && other != name, "{name} names {other}");
        }
        names.push(name);
    }
    // One for each tool, and one for each command of `offload`.
    let commands = commands().into_iter().filter(|name| name != "help");
    assert_eq!(names.len(), TOOLS.len() + commands.count(), "{names:?}");
}

#[test]
fn each_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = offload(["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = stdout(&output);
        // For these two clap_complete writes commands and options only.
        let has_values = !["elvish", "powershell"].contains(&shell);
        for word in ["decompress", "max-decompressed"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        for word in ["gfx90a", "sm_90", "aomp", "zlib", "hipi", "clang-offload-bundler"] {
            assert!(!has_values || script.contains(word), "{shell}: {word}");
        }
        // Obsolete processors are left out.
        assert!(!script.contains("cayman") && !script.contains("gfx940"), "{shell}");
    }
    assert_eq!(offload(["completions", "tcsh"]).status.code(), Some(2));
}

/// Returns the words that bash offers for the last of some words, in a directory with one file.
#[cfg(unix)]
fn completed(words: &[&str]) -> Option<Vec<String>> {
    const ASK: &str = r#"
        eval "$("$0" completions bash)" || exit 1
        compopt() { :; }
        COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        function=$(complete -p offload | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" offload "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("libfoo.so"), "").unwrap();
    let mut bash = new_command("bash");
    bash.args(["--norc", "-c", ASK, tool("offload")]).args(words);
    // A machine without bash needs no test.
    let output = bash.current_dir(place).output().ok()?;
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    Some(stdout(&output).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

#[cfg(unix)]
#[test]
fn bash_completes_commands_options_values_and_files() {
    for (words, offered) in [
        (&["offload", "m"][..], &["match", "man"][..]),
        (&["offload", "thin", "--ke"], &["--keep"]),
        (&["offload", "match", "--gpu", "gfx110"], &["gfx1100", "gfx1101", "gfx1102", "gfx1103"]),
        (&["offload", "match", "--gpu", "gfx9-"], &[]),
        (
            &["offload", "match", "--gpu", "rx760"],
            &["rx7600", "rx7600m", "rx7600mxt", "rx7600s", "rx7600xt"],
        ),
        (&["offload", "thin", "--keep", "mi300"], &["mi300a", "mi300x"]),
        // Lists are completed after each comma, and names of files are not lists.
        (&["offload", "match", "--gpu", "sm_80,gfx1101"], &["sm_80,gfx1101"]),
        (
            &["offload", "thin", "--keep", "gfx906,sm_80,mi300"],
            &["gfx906,sm_80,mi300a", "gfx906,sm_80,mi300x"],
        ),
        (&["offload", "thin", "--drop", "gfx906,"], &[]),
        (&["offload", "thin", "a,libf"], &[]),
        (&["offload", "thin", "--keep", "gfx9-"], &["gfx9-4-generic", "gfx9-generic"]),
        (&["offload", "ls", "--target", "sm_9"], &["sm_90", "sm_90a"]),
        (&["offload", "wrap", "--kind", ""], &["openmp", "cuda", "hip", "sycl"]),
        (&["offload", "wrap", "--abi", "c"], &["current"]),
        (&["offload", "wrap", "--emit", ""], &["ll", "bc", "obj"]),
        (&["offload", "bundle", "--type", "h"], &["hipi"]),
        (&["offload", "compress", "--method", ""], &["zstd", "zlib"]),
        (&["offload", "match", "--kind", "s"], &["sycl"]),
        (&["offload", "completions", "f"], &["fish"]),
        (&["offload", "completions", "ba"], &["bash"]),
        (&["offload", "man", "clang-offload-w"], &["clang-offload-wrapper"]),
        (&["offload", "help", "deco"], &["decompress"]),
        (&["offload", "thin", "-o", "libf"], &["libfoo.so"]),
        // No words: then bash offers files.
        (&["offload", "ls", ""], &[]),
        (&["offload", "ls", "libf"], &[]),
    ] {
        let Some(completed) = completed(words) else { return };
        assert_eq!(completed, offered, "{words:?}");
    }
}
