//! Texts of the licences of everything that is linked in, from the sources that were compiled; equal ones once.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files;
use crate::json::{is_null, items, parse, text};
use crate::process::{Result, Stop, command, read};
use crate::workspace::Workspace;

/// Something with licences: its title, its directory, and its files with texts.
type Part = (String, PathBuf, Vec<PathBuf>);

/// The manifest of a workspace, and the packages in it that are linked.
type Linked = (&'static str, &'static str);

const TOOLS: Linked = ("Cargo.toml", "-p offload-cli -p offload-drop-ins");
const MODULE: Linked = ("bindings/Cargo.toml", "-p offload-python");

/// Writes the texts for the wheel of the Python module and the tool, or with `--tools` for the tools alone.
pub(crate) fn run(_: &Workspace, arguments: &[String]) -> Result {
    let (path, linked): (_, &[Linked]) = match arguments {
        [path] => (path, &[TOOLS, MODULE]),
        [flag, path] if flag == "--tools" => (path, &[TOOLS]),
        _ => return Err(Stop::Misused("expected FILE, or --tools FILE".to_owned())),
    };
    let version = read(command("rustc -vV"))?;
    let triple = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(fs::write(path, of(triple.unwrap_or_default(), linked)?)?)
}

/// Returns all texts of the tools for a target.
pub(crate) fn all(triple: &str) -> Result<String> {
    of(triple, &[TOOLS])
}

fn of(triple: &str, all: &[Linked]) -> Result<String> {
    let sysroot = read(command("rustc --print sysroot"))?;
    let mut parts = vec![standard_library(Path::new(sysroot.trim_end()))];
    for (manifest, names) in all {
        let metadata = "cargo metadata --locked --format-version 1 --filter-platform";
        let of = ["--manifest-path", *manifest];
        let metadata = read(command(metadata).arg(triple).args(of))?;
        let metadata = parse("cargo metadata", &metadata)?;
        let tree = format!("cargo tree --locked {names} -e normal --prefix none -f {{p}} --target");
        let linked = read(command(&tree).arg(triple).args(of))?;
        parts.extend(packages(&metadata, &linked)?);
    }
    let mut titles = HashSet::new();
    parts.retain(|(title, _, _)| titles.insert(title.clone()));
    let mut text = joined(&parts)?;
    let musl = Path::new("/usr/share/doc/musl-tools/copyright");
    if triple.ends_with("musl") && musl.exists() {
        text += "\n=== musl: MIT\n\n";
        text += &files::text(musl)?;
    }
    // Debian's compiler links parts of these into programs for Windows.
    for package in ["mingw-w64-common", "gcc-mingw-w64-base"] {
        let copyright = Path::new("/usr/share/doc").join(package).join("copyright");
        if triple.ends_with("windows-gnu") {
            text += &format!("\n=== {package}\n\n{}", files::text(&copyright)?);
        }
    }
    Ok(text)
}

fn standard_library(sysroot: &Path) -> Part {
    let directory = sysroot.join("share/doc/rust");
    let file = directory.join("COPYRIGHT-library.html");
    let title = "Rust's standard library: MIT OR Apache-2.0";
    (title.to_owned(), directory, file.is_file().then_some(file).into_iter().collect())
}

/// Returns the packages of others that are linked in, by name.
fn packages(metadata: &Value, linked: &str) -> Result<Vec<Part>> {
    let mut packages: Vec<_> = items(metadata, "/packages").collect();
    packages.sort_by_key(|package| text(package, "/name"));
    let mut parts = Vec::new();
    for package in packages {
        let (name, version) = (text(package, "/name"), text(package, "/version"));
        let in_tree = format!("{name} v{version}");
        let is_linked = linked.lines().any(|line| line.split(' ').take(2).eq(in_tree.split(' ')));
        if is_linked && !is_null(package, "/source") {
            let manifest = Path::new(text(package, "/manifest_path"));
            let directory = manifest.parent().unwrap_or(manifest).to_owned();
            let title = format!("{name} {version}: {}", text(package, "/license"));
            let texts = texts(&directory)?;
            parts.push((title, directory, texts));
        }
    }
    Ok(parts)
}

/// Returns the licences of a package, and of what it contains.
fn texts(directory: &Path) -> Result<Vec<PathBuf>> {
    let starts = ["LICEN", "COPYING", "NOTICE"];
    let mut found = Vec::new();
    for path in files::of(directory)? {
        if path.is_dir() {
            found.extend(Some(path.join("LICENSE")).filter(|path| path.is_file()));
        } else if starts.iter().any(|start| files::name(&path).starts_with(start)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the texts of all parts, with the name of the first that has it where a text is there again.
fn joined(parts: &[Part]) -> Result<String> {
    let head =
        "The programs contain these packages, under these licences. Equal texts are here once.\n";
    let mut joined = head.to_owned();
    let mut seen = HashMap::new();
    for (title, directory, files) in parts {
        joined += &format!("\n=== {title}\n");
        let name = title.split(':').next().unwrap_or_default();
        for path in files {
            let text = plain(path)?;
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let first = *seen.entry(words).or_insert(name);
            let path = path.strip_prefix(directory).unwrap_or(path).display();
            if first == name {
                joined += &format!("\n--- {path}\n\n{text}\n");
            } else {
                joined += &format!("--- {path}: as of {first}\n");
            }
        }
    }
    Ok(joined)
}

/// Returns the text of a file, without the marks of HTML.
fn plain(path: &Path) -> Result<String> {
    let text = files::text(path)?;
    let is_html = path.extension().is_some_and(|extension| extension == "html");
    Ok(if is_html { without_tags(&text) } else { text.trim().to_owned() })
}

/// Returns the text of a page of HTML, with one empty line between paragraphs at most.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    for (number, part) in page.split('<').enumerate() {
        let after = part.split_once('>').map(|(_, after)| after);
        match after {
            _ if number == 0 => text += part,
            // The rules between these tags are left out.
            _ if part.starts_with("style") => {}
            Some(after) => text += after,
            None => text += &format!("<{part}"),
        }
    }
    paragraphs(&unescaped(&text))
}

fn paragraphs(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.trim().split('\n') {
        if !line.trim().is_empty() {
            lines.push(line);
        } else if lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push("");
        }
    }
    lines.join("\n")
}

/// Returns a text with characters in place of their names and numbers.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let named = part.split_once(';');
        match named.and_then(|(name, rest)| Some((character(name)?, rest))) {
            Some((one, rest)) => {
                plain.push(one);
                plain += rest;
            }
            None => plain += &format!("&{part}"),
        }
    }
    plain
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hexadecimal = number.strip_prefix('x').map(|digits| u32::from_str_radix(digits, 16));
        return char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?);
    }
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "copy" => Some('©'),
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    use crate::machine::Place;

    #[test]
    fn pages_lose_their_tags() {
        let page = "<html><style>\np { a: b }\n</style>\n<p>A &amp;lt; &lt;b&gt;\n  \n\n\n<b>c</b>\n d</p></html>\n";
        assert_eq!(without_tags(page), "A &lt; <b>\n\nc\n d");
        assert_eq!(unescaped("&#60;a&#x3e; &quot;R&D&quot; &c; &"), "<a> \"R&D\" &c; &");
    }

    #[test]
    fn equal_texts_are_there_once() {
        let place = Place::new().unwrap();
        for name in ["a", "b"] {
            fs::create_dir_all(place.join(name).join("inner")).unwrap();
            fs::write(place.join(name).join("LICENSE-MIT"), "MIT,\nas always\n").unwrap();
            fs::write(place.join(name).join("README"), "no licence\n").unwrap();
        }
        fs::write(place.join("b/inner/LICENSE"), "another\n").unwrap();
        let part = |name: &str| {
            (format!("{name} 1.0.0: MIT"), place.join(name), texts(&place.join(name)).unwrap())
        };
        let text = joined(&[part("a"), part("b")]).unwrap();
        let (_, text) = text.split_once("once.\n").unwrap();
        let expected = "\n=== a 1.0.0: MIT\n\n--- LICENSE-MIT\n\nMIT,\nas always\n\n\
                        === b 1.0.0: MIT\n--- LICENSE-MIT: as of a 1.0.0\n\n--- inner/LICENSE\n\nanother\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn packages_are_those_that_are_linked() {
        let place = Place::new().unwrap();
        let manifest = place.join("Cargo.toml");
        let package = |name: &str, source: &str| {
            format!(
                r#"{{"name": "{name}", "version": "1.0.0", "license": "MIT", "source": {source}, "manifest_path": {manifest:?}}}"#
            )
        };
        let all = [
            package("zip", "\"r\""),
            package("ours", "null"),
            package("ar", "\"r\""),
            package("other", "\"r\""),
        ];
        let metadata =
            serde_json::from_str(&format!(r#"{{"packages": [{}]}}"#, all.join(","))).unwrap();
        let linked = "ours v1.0.0 (/x)\nzip v1.0.0\nar v1.0.0 (*)\nother v1.0.1\n";
        let titles: Vec<_> =
            packages(&metadata, linked).unwrap().into_iter().map(|part| part.0).collect();
        assert_eq!(titles, ["ar 1.0.0: MIT", "zip 1.0.0: MIT"]);
    }
}
