//! The ends of help texts, from text files, when the program is compiled.
//!
//! Empty lines separate the blocks of such a file. A block that starts with `$ ` is an example: command lines, and what they do as the
//! last line. Other blocks are notes.

use crate::help::Example;

/// Reads the end of the help of a command.
macro_rules! more {
    ($name:literal) => {{
        const TEXT: &str =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/help/", $name, ".txt"));
        const EXAMPLES: [crate::help::Example; crate::more::count(TEXT).0] =
            crate::more::examples(TEXT);
        const NOTES: [&str; crate::more::count(TEXT).1] = crate::more::notes(TEXT);
        More { examples: &EXAMPLES, notes: &NOTES }
    }};
}

/// Splits a text after its first block.
const fn block(text: &'static str) -> (&'static str, &'static str) {
    let text = text.trim_ascii_end();
    let (mut rest, mut at) = (text.as_bytes(), 0);
    while let [_, after @ ..] = rest {
        if let [b'\n', b'\n', ..] = rest {
            let (block, rest) = text.split_at(at);
            return (block, rest.split_at(2).1);
        }
        (rest, at) = (after, at + 1);
    }
    (text, "")
}

/// Splits a block before its last line, if it is an example.
const fn example(block: &'static str) -> Option<Example> {
    let [b'$', b' ', ..] = block.as_bytes() else { return None };
    let mut command = block.as_bytes();
    while let [before @ .., last] = command {
        if *last == b'\n' {
            let (command, does) = block.split_at(before.len());
            return Some((command.split_at(2).1, does.split_at(1).1));
        }
        command = before;
    }
    None
}

/// Returns the numbers of examples and notes.
pub(crate) const fn count(mut text: &'static str) -> (usize, usize) {
    let (mut examples, mut notes) = (0, 0);
    while !text.is_empty() {
        let (first, rest) = block(text);
        match example(first) {
            Some(_) => examples += 1,
            None => notes += 1,
        }
        text = rest;
    }
    (examples, notes)
}

/// Returns the examples, which are counted.
pub(crate) const fn examples<const N: usize>(mut text: &'static str) -> [Example; N] {
    let mut all = [("", ""); N];
    let mut left = all.as_mut_slice();
    while let [place, others @ ..] = left {
        *place = loop {
            let (first, rest) = block(text);
            text = rest;
            if let Some(example) = example(first) {
                break example;
            }
        };
        left = others;
    }
    all
}

/// Returns the notes, which are counted.
pub(crate) const fn notes<const N: usize>(mut text: &'static str) -> [&'static str; N] {
    let mut all = [""; N];
    let mut left = all.as_mut_slice();
    while let [place, others @ ..] = left {
        *place = loop {
            let (first, rest) = block(text);
            text = rest;
            if example(first).is_none() {
                break first;
            }
        };
        left = others;
    }
    all
}
