//! The public API of libraries. Types can grow: a public enum, and a public struct with public fields or without any, is
//! `#[non_exhaustive]`, or a paragraph of its documentation starts with `Exhaustive:` and says why callers may build and match all of it.
//! Builders are named alike.

use std::fs;
use std::path::Path;

use crate::machine;

/// The start of a paragraph that says why a type is exhaustive.
const REASON: &str = "/// Exhaustive: ";

/// The public types of a source that callers can build or match as a whole.
struct Types<'t> {
    /// Types in total, with and without attribute or reason.
    count: usize,
    /// Types without attribute and reason: the number of the line, from 1, and the line.
    silent: Vec<(usize, &'t str)>,
}

fn types(text: &str) -> Types<'_> {
    let text = machine::without_tests(text);
    let lines: Vec<&str> = text.lines().collect();
    let (mut count, mut silent) = (0, Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let definition = line.trim_start();
        let indent = &line[..line.len() - definition.len()];
        let end = format!("{indent}}}");
        let is_end = |line: &&str| *line == end || line.ends_with(';');
        let rest = &lines[at..];
        let is_open = if definition.starts_with("pub enum ") {
            true
        } else if !definition.starts_with("pub struct ") {
            false
        } else if !line.contains('(') && line.ends_with(';') {
            true
        } else if let Some((_, fields)) =
            definition.split_once('(').filter(|_| !line.ends_with('{'))
        {
            let fields = [fields].into_iter().chain(rest.iter().skip(1).copied());
            let last = rest.iter().position(is_end).unwrap_or(0);
            fields.take(last + 1).any(|fields| fields.split([' ', '(']).any(|word| word == "pub"))
        } else {
            let fields = rest.iter().skip(1).take_while(|line| !is_end(line));
            fields.map(|line| line.trim_start()).any(|field| field.starts_with("pub "))
        };
        if !is_open {
            continue;
        }
        count += 1;
        let is_doc = |line: &str| line.starts_with("///");
        let before = lines[..at].iter().rev().map(|line| line.trim_start());
        let mut before = before.take_while(|line| {
            is_doc(line) || !line.is_empty() && !line.ends_with([';', '{', '}'])
        });
        if !before.any(|line| line == "#[non_exhaustive]" || line.starts_with(REASON)) {
            silent.push((at + 1, *line));
        }
    }
    Types { count, silent }
}

/// Returns the names of methods that take `self` and more and give it back changed, with whether the rule allows them.
fn setters(text: &str) -> Vec<(&str, bool)> {
    let text = machine::without_tests(text);
    let methods = text.match_indices("pub fn ").filter_map(|(at, word)| {
        let signature = text[at + word.len()..].split('{').next()?;
        let (arguments, result) = signature.rsplit_once("->")?;
        let takes = arguments.contains("mut self,") && !arguments.contains("&mut self");
        let is_setter = takes && result.contains("Self");
        let name = signature.split(['(', '<']).next().filter(|_| is_setter)?;
        Some((name, name.starts_with("with_") || name.starts_with("without_")))
    });
    methods.collect()
}

/// Calls a function with the place and the text of each source of the libraries.
fn each_source(mut call: impl FnMut(String, &str)) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in fs::read_dir(&crates).unwrap() {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        let is_library = ["publish = false", "tools = true", "[[bin]]"]
            .iter()
            .all(|line| !manifest.lines().any(|other| other == *line));
        let mut files = Vec::new();
        if is_library {
            machine::sources(&path.join("src"), &mut files);
        }
        for file in files {
            let place = file.strip_prefix(&crates).unwrap().display().to_string();
            call(place, &fs::read_to_string(&file).unwrap());
        }
    }
}

#[test]
fn types_of_libraries_can_grow_or_say_why_not() {
    let (mut count, mut silent) = (0, Vec::new());
    each_source(|place, text| {
        let found = types(text);
        count += found.count;
        silent.extend(found.silent.iter().map(|(at, line)| format!("{place}:{at}: {line}")));
    });
    silent.sort();
    assert!(count > 150, "{count}: the sources were not understood");
    let what = "types that are neither `#[non_exhaustive]` nor say `Exhaustive: ...`";
    assert!(silent.is_empty(), "{what}:\n{}", silent.join("\n"));
}

#[test]
fn builders_are_named_alike() {
    let (mut count, mut others) = (0, Vec::new());
    each_source(|place, text| {
        for (name, is_allowed) in setters(text) {
            count += 1;
            others.extend((!is_allowed).then(|| format!("{place}: {name}")));
        }
    });
    assert!(count > 100, "{count}: the sources were not understood");
    assert!(others.is_empty(), "builders that are not `with_NAME`:\n{}", others.join("\n"));
}

#[test]
fn definitions_are_understood() {
    let text = "
/// Numbers;
#[derive(
    Debug,
)]
#[non_exhaustive]
pub struct A {
    /// One.
    pub one: u8,
}
/// Private.
pub struct B {
    one: u8,
    pub(crate) two: u8,
}

pub struct C(pub u8);
pub struct D(u8, fn(u8) -> u8);
pub struct Unit;
pub struct E(
    /// One.
    u8,
    pub u8,
);
/// Letters.
///
/// Exhaustive: there are no more.
#[derive(Debug)]
pub enum F {
    G,
}
pub enum H<T> {
    I(T),
}
#[cfg(test)]
mod tests {
    pub enum J {}
}
";
    let found = types(text);
    assert_eq!(found.count, 6);
    let lines: Vec<&str> = found.silent.iter().map(|(_, line)| *line).collect();
    assert_eq!(
        lines,
        ["pub struct C(pub u8);", "pub struct Unit;", "pub struct E(", "pub enum H<T> {"]
    );
}

#[test]
fn signatures_are_understood() {
    let text = "
    pub fn with_a(mut self, a: u8) -> Self {
    pub fn b<T: Into<u8>>(
        mut self,
        b: T,
    ) -> Option<Self> {
    pub fn c(mut self) -> Self {
    pub fn d(&mut self, d: u8) -> Self {
    fn e(mut self, e: u8) -> Self {
";
    assert_eq!(setters(text), [("with_a", true), ("b", false)]);
}
