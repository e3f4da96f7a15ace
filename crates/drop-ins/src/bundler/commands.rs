//! The command lines of `llvm-objcopy` that a dry run prints: what LLVM's tool would run, and ours does by itself.

use std::path::Path;

use bundle_format::MAGIC_TEXT;

/// Adds a section for every entry. The host's holds one zero byte, from a file that does not exist.
pub(super) fn adding<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a Path)>,
    host: &Path,
    output: &Path,
) -> String {
    let mut words = Vec::new();
    for (id, path) in entries {
        words.push(format!("--add-section={MAGIC_TEXT}{id}={}", path.display()));
        words.push(format!("--set-section-flags={MAGIC_TEXT}{id}=readonly,exclude"));
    }
    line(words, host, output)
}

/// Removes the sections of all entries.
pub(super) fn removing(input: &Path, output: &Path) -> String {
    let words = vec!["--regex".to_owned(), format!("--remove-section={MAGIC_TEXT}.*")];
    line(words, input, output)
}

fn line(mut words: Vec<String>, input: &Path, output: &Path) -> String {
    words.insert(0, "llvm-objcopy".to_owned());
    words.push("--".to_owned());
    words.push(input.display().to_string());
    words.push(output.display().to_string());
    let words: Vec<_> = words
        .iter()
        .map(|word| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    words.join(" ")
}
