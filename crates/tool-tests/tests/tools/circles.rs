//! Files of a crate use each other in one direction: what two files need lies in a third below them. A file and the folder of its name
//! are one thing with parts, and may: the parts use what their file declares.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::machine;

/// The path of a module below the root of its crate.
type Module = Vec<String>;

/// Returns the paths of a tree of `use`: `a::{b, c::d}` is two.
fn paths(tree: &str) -> Vec<String> {
    let Some((prefix, inner)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap().trim().to_owned()];
    };
    let inner = inner.trim_end().trim_end_matches('}');
    let (mut all, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = &inner[start..at];
                let part = paths(part).into_iter().filter(|path| !path.is_empty());
                all.extend(part.map(|path| prefix.trim().to_owned() + &path));
                start = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// Returns the code of a file, without comments and unit tests.
fn code(text: &str) -> String {
    let text = machine::without_tests(text);
    // A name that only documentation uses does not count.
    let text = text.replace("#[cfg(doc)]\nuse ", "// ");
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join(" ")
}

/// The trees after `use`, with whether they are public.
fn uses(code: &str) -> Vec<(bool, &str)> {
    let starts = code.match_indices("use ").filter(|(at, _)| {
        code[..*at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == ';')
    });
    let tree = |(at, word): (usize, &str)| {
        let is_public = code[..at].trim_end().ends_with(['b', ')']);
        Some((is_public, code[at + word.len()..].split_once(';')?.0))
    };
    starts.filter_map(tree).collect()
}

/// A crate: its modules, with the code of each.
struct Crate(BTreeMap<Module, String>);

impl Crate {
    fn read(source: &Path) -> Self {
        let mut files = Vec::new();
        machine::sources(source, &mut files);
        let mut modules = BTreeMap::new();
        for path in files {
            let relative = path.strip_prefix(source).unwrap().with_extension("");
            let mut module: Module =
                relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.last().is_some_and(|last| ["mod", "lib"].contains(&last.as_str())) {
                module.pop();
            }
            let is_other = ["bin", "main", "tests"];
            if !module.iter().any(|part| is_other.contains(&part.as_str())) {
                modules.insert(module, code(&fs::read_to_string(&path).unwrap()));
            }
        }
        Crate(modules)
    }

    /// Returns the file in which something lies that a module names by this path: also where another file passes its name on.
    fn file_of(&self, from: &Module, path: &str, depth: usize) -> Option<Module> {
        let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
        let mut module = from.clone();
        match parts.first() {
            Some(&"crate") => module.clear(),
            Some(&"self") => {}
            Some(&"super") => {
                while parts.first() == Some(&"super") {
                    module.pop();
                    parts.remove(0);
                }
                parts.insert(0, "");
            }
            _ => {
                // A module below this one.
                let mut below = module.clone();
                below.push((*parts.first()?).to_owned());
                self.0.contains_key(&below).then_some(())?;
                parts.insert(0, "");
            }
        }
        parts.remove(0);
        while let Some(part) = parts.first() {
            let mut below = module.clone();
            below.push((*part).to_owned());
            if !self.0.contains_key(&below) {
                break;
            }
            module = below;
            parts.remove(0);
        }
        let Some(name) = parts.first().filter(|_| depth < 8) else { return Some(module) };
        let passed_on = uses(self.0.get(&module)?).into_iter().filter(|(is_public, _)| *is_public);
        let mut passed_on = passed_on.flat_map(|(_, tree)| paths(tree));
        let target = passed_on.find(|path| path.rsplit("::").next() == Some(name));
        match target.and_then(|path| self.file_of(&module, &path, depth + 1)) {
            Some(target) => Some(target),
            None => Some(module),
        }
    }

    /// Returns the files that each file uses.
    fn arrows(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let arrows =
            self.0.iter().filter(|(module, _)| !module.is_empty()).map(|(module, code)| {
                let mut named: Vec<String> =
                    uses(code).into_iter().flat_map(|(_, tree)| paths(tree)).collect();
                for start in ["crate::", "super::"] {
                    for (at, _) in code.match_indices(start) {
                        let end =
                            code[at..].find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
                        named.push(code[at..end.map_or(code.len(), |end| at + end)].to_owned());
                    }
                }
                let used = named.iter().filter_map(|path| self.file_of(module, path, 0));
                let is_part = |other: &Module| other.starts_with(module);
                (module, used.filter(|other| !is_part(other) && !other.is_empty()).collect())
            });
        arrows.collect()
    }

    /// Returns the circles: the files of each reach each other.
    fn circles(&self) -> Vec<Vec<Module>> {
        let arrows = self.arrows();
        let reached = |from: &Module| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = next.pop() {
                for other in arrows.get(&module).into_iter().flatten() {
                    if seen.insert(other.clone()) {
                        next.push(other.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            arrows.keys().map(|module| (*module, reached(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, all) in &reached {
            let back = all
                .iter()
                .filter(|other| reached.get(other).is_some_and(|of| of.contains(*module)));
            let circle: Vec<Module> = back.cloned().collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}

#[test]
fn files_use_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut arrows = 0;
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let source = path.join("src");
        if !source.exists() {
            continue;
        }
        let of = Crate::read(&source);
        arrows += of.arrows().values().map(BTreeSet::len).sum::<usize>();
        for circle in of.circles() {
            found.push(format!("{}:", path.file_name().unwrap().display()));
            for (from, to) in of.arrows().iter().filter(|(from, _)| circle.contains(from)) {
                let to = to.iter().filter(|to| circle.contains(to));
                let to: Vec<String> = to.map(|to| to.join("/")).collect();
                found.push(format!("    {} uses {}", from.join("/"), to.join(", ")));
            }
        }
    }
    assert!(arrows > 1000, "{arrows}: the sources were not understood");
    assert!(found.is_empty(), "files that use each other in circles:\n{}", found.join("\n"));
}

#[test]
fn sources_are_understood() {
    assert_eq!(paths("crate::{a::{B, c}, d as e}"), ["crate::a::B", "crate::a::c", "crate::d"]);
    let modules = [
        (vec![], "pub use a::Thing; mod a; mod b;"),
        (vec!["a"], "use crate::b::help; // use crate::c::no;\n"),
        (vec!["b"], "fn x() { crate::Thing::new() }"),
    ];
    let module = |parts: Vec<&str>| parts.into_iter().map(String::from).collect::<Module>();
    let of = Crate(modules.map(|(parts, text)| (module(parts), code(text))).into());
    assert_eq!(of.circles(), [vec![module(vec!["a"]), module(vec!["b"])]]);
}
