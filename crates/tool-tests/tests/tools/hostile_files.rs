//! The libraries refuse hostile files, or read exactly what is in them.

use crate::hostile::{Scale, Truth, all};
use crate::library;

#[test]
fn every_file_is_refused_or_read_correctly() {
    let files = all(if samples::faulty::is_thorough() { Scale::Full } else { Scale::Long });
    assert!(files.len() > 1000, "only {}", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        if let Err(problem) = library::check(file) {
            wrong.push(format!("{}: {}: {problem}", file.family, file.name));
        }
    }
    let shown: Vec<_> = wrong.iter().take(60).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), files.len(), shown.join("\n"));
}

/// Some files must be refused, some must be read, and no file is made twice.
#[test]
fn files_are_of_both_kinds_and_have_unique_names() {
    let files = all(Scale::Short);
    let refused = files.iter().filter(|file| matches!(file.truth, Truth::Refused)).count();
    let holds = files.iter().filter(|file| matches!(file.truth, Truth::Holds(_))).count();
    assert!(refused > 500 && holds > 100, "{refused} {holds}");
    let mut names: Vec<_> = files.iter().map(|file| (file.family, &file.name)).collect();
    names.sort();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
