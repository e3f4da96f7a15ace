//! Tests of the documentation: links and figures exist, each page is in the book, and sessions show the right output.
//!
//! A session is a block that starts with three backticks and `console`, in README.md and docs/. Its lines `$ COMMAND`
//! are run by `sh`, in an empty directory with `examples/data` for each page, with the tools of this workspace on
//! `PATH`; their output follows them, errors included. A line `...` matches any number of lines. A command
//! that fails has to be followed by `$ echo $?`.

use crate::common::{new_command, tool};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Every Markdown file of the repository, in order, without built and hidden ones.
fn pages() -> Vec<PathBuf> {
    fn collect(directory: &Path, pages: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let built = ["target", "corpus", "artifacts", "coverage"].contains(&&*name);
            if path.is_dir() && !built && !name.starts_with('.') {
                collect(&path, pages);
            } else if name.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    let mut pages = Vec::new();
    // Some files in the root of a checkout do not belong to it.
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    for part in ["benches", "crates", "docs", "examples", "fuzz"] {
        collect(&root().join(part), &mut pages);
    }
    pages.sort();
    pages
}

/// The pages for readers of the project: README.md and the book.
pub(crate) fn book() -> impl Iterator<Item = PathBuf> {
    let (readme, docs) = (root().join("README.md"), root().join("docs"));
    pages().into_iter().filter(move |page| *page == readme || page.starts_with(&docs))
}

/// A path as the messages show it.
pub(crate) fn shown(path: &Path) -> String {
    let parts = path.strip_prefix(root()).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_str().unwrap()).collect::<Vec<_>>().join("/")
}

/// A line of a page: in a fenced block of some language, or of the text.
pub(crate) struct Line<'t> {
    pub(crate) number: usize,
    pub(crate) block: Option<&'t str>,
    pub(crate) text: &'t str,
}

pub(crate) fn lines(page: &str) -> Vec<Line<'_>> {
    let mut block = None;
    let mut lines = Vec::new();
    for (number, text) in page.lines().enumerate() {
        let fence = text.trim_start().strip_prefix("```");
        match (fence, block) {
            (Some(language), None) => block = Some(language.trim()),
            (Some(_), Some(_)) => block = None,
            (None, _) => lines.push(Line { number: number + 1, block, text }),
        }
        if fence.is_some() {
            // The fence itself: an empty line of the text, which ends sessions.
            lines.push(Line { number: number + 1, block: None, text: "" });
        }
    }
    assert!(block.is_none(), "a block is not closed");
    lines
}

/// The text without the parts between backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Returns the names of the headings of a page in links.
fn anchors(page: &str) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut anchors = Vec::new();
    for line in lines(page) {
        let heading = line.text.trim_start_matches('#');
        if line.block.is_some() || heading.len() == line.text.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let text: String = heading.trim().to_lowercase().chars().filter(kept).collect();
        let anchor = text.replace(' ', "-");
        let count = seen.entry(anchor.clone()).or_insert(0);
        anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// Returns the targets of the links of a page, and of its pictures.
fn targets(page: &str) -> Vec<String> {
    let text: Vec<_> =
        lines(page).iter().map(|line| line.block.map_or(line.text, |_| "")).collect();
    let mut targets = Vec::new();
    // Code between backticks may go over several lines, but not further than its paragraph.
    for paragraph in text.join("\n").split("\n\n") {
        let text = without_code(paragraph);
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        targets.extend(inline.map(|(target, _)| target.to_owned()));
        let definitions = text.lines().filter(|line| line.starts_with('['));
        let definitions = definitions.filter_map(|line| line.split_once("]: "));
        targets.extend(definitions.map(|(_, target)| target.to_owned()));
    }
    targets
}

/// Returns the fault of a link of a page.
fn broken(page: &Path, target: &str) -> Option<&'static str> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { page.to_owned() } else { page.parent()?.join(path) };
    if !file.exists() {
        return Some("is not there");
    }
    if !anchor.is_empty() && file.extension().is_some_and(|extension| extension == "md") {
        let text = fs::read_to_string(&file).ok()?;
        if !anchors(&text).iter().any(|found| found == anchor) {
            return Some("has no such heading");
        }
    }
    None
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            // Elsewhere, or an item for rustdoc to find.
            if target.contains("://") || target.contains("::") {
                continue;
            }
            if let Some(what) = broken(&page, &target) {
                wrong.push(format!("{}: {target} {what}", shown(&page)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn pages_of_packages_have_no_links_out_of_them() {
    let mut seen = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let directory = entry.unwrap().path();
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        if manifest.contains("\npublish = false") {
            continue;
        }
        let readme = fs::read_to_string(directory.join("README.md")).unwrap();
        for target in targets(&readme) {
            assert!(!target.starts_with(".."), "{}: {target}", shown(&directory));
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} packages");
}

#[test]
fn every_page_is_in_the_book() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut text = String::new();
    let mut listed: Vec<_> = targets(&summary).iter().map(|page| docs.join(page)).collect();
    listed.sort();
    let pages: Vec<_> = pages().into_iter().filter(|page| page.starts_with(&docs)).collect();
    let pages: Vec<_> = pages.into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, pages, "docs/SUMMARY.md lists each page once");
    for page in book() {
        text += &fs::read_to_string(page).unwrap();
    }
    for directory in ["", "figures"] {
        for entry in fs::read_dir(docs.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "svg") {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(text.contains(&format!("{name})")), "no page shows {}", shown(&path));
            }
        }
    }
}

#[test]
fn rust_blocks_are_compiled() {
    let tests = fs::read_to_string(root().join("examples/src/book.rs")).unwrap();
    for page in book() {
        let text = fs::read_to_string(&page).unwrap();
        for line in lines(&text) {
            let name = shown(&page);
            assert_ne!(line.block, Some(""), "{name}:{}: say what the block is", line.number);
            if line.block.is_some_and(|block| block.starts_with("rust")) {
                let include = format!("include_str!(\"../../{name}\")");
                assert!(tests.contains(&include), "examples/src/book.rs lacks {include}");
            }
        }
    }
}

/// A command of a session, and what it prints.
#[cfg(target_os = "linux")]
struct Step {
    line: usize,
    command: String,
    printed: Vec<String>,
}

#[cfg(target_os = "linux")]
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // The last line: was it part of a session, and does its command go on?
    let (mut session, mut goes_on) = (false, false);
    for line in lines(page) {
        if line.block != Some("console") {
            session = false;
            continue;
        }
        let command = line.text.strip_prefix("$ ");
        if let Some(command) = command {
            steps.push(Step {
                line: line.number,
                command: command.to_owned(),
                printed: Vec::new(),
            });
        } else {
            let step = steps.last_mut().filter(|_| session);
            let step = step.expect("a session starts with a command");
            if goes_on {
                step.command = format!("{}\n{}", step.command, line.text);
            } else {
                step.printed.push(line.text.trim_end().to_owned());
            }
        }
        goes_on = (command.is_some() || goes_on) && line.text.ends_with('\\');
        session = true;
    }
    for step in &mut steps {
        while step.printed.last().is_some_and(String::is_empty) {
            step.printed.pop();
        }
    }
    steps
}

/// Returns true if lines are as expected; `...` matches any number of lines.
#[cfg(target_os = "linux")]
fn agrees(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=printed.len()).any(|skipped| agrees(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed.first() == Some(&&**first) && agrees(rest, &printed[1..]),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn sessions_show_what_tools_print() {
    let tools = Path::new(tool("offload")).parent().unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in book() {
        let text = fs::read_to_string(&page).unwrap();
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("examples")).unwrap();
        let data = place.path().join("examples/data");
        std::os::unix::fs::symlink(root().join("examples/data"), data).unwrap();
        let mut status = 0;
        for step in steps(&text) {
            let at = format!("{}:{}: $ {}", shown(&page), step.line, step.command);
            if status != 0 && !step.command.starts_with("echo $?") {
                wrong.push(format!("{at}\nthe command before it failed"));
            }
            let script = format!("exec 2>&1; (exit {status}); {}", step.command);
            let output = new_command("sh")
                .args(["-c", &script])
                .current_dir(&place)
                .env("PATH", &path)
                .output()
                .unwrap();
            status = output.status.code().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let printed: Vec<_> = said.trim_end().lines().map(str::trim_end).collect();
            if !agrees(&step.printed, &printed) {
                wrong.push(format!("{at}\nprints\n{}", printed.join("\n")));
            }
            count += 1;
        }
        if status != 0 {
            wrong.push(format!("{}: the last command failed", shown(&page)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(count > 20, "only {count} commands found");
}

/// `offload why` prints the sections of a page, which the crate has to have a copy of.
#[test]
fn messages_that_the_tool_explains_are_those_of_the_page() {
    let page = fs::read_to_string(root().join("docs/my-program-says.md")).unwrap();
    assert!(page == include_str!("../../../cli/src/why/messages.md"), "copy the page");
}

/// Programs that make environments, by their arguments: the value after one of these options, or the directory of the program.
#[cfg(target_os = "linux")]
const MAKER: &str = r#"#!/bin/sh
root=${0%/bin/*} kind=lib/python3.12/site-packages/foo last=
for argument; do
    case $last in --target|--python|--prefix|venv) root=$argument ;; --dest) root=$argument kind=. ;; esac
    last=$argument
done
mkdir -p "$root/$kind" "$root/bin"
cp -n "$0" "$root/bin/pip"
cp "$DATA/hip.o" "$root/$kind/foo.whl"
"#;

/// The recipes of pages that install packages run as they are, with programs that install a library of `examples/data`.
#[test]
#[cfg(target_os = "linux")]
fn recipes_that_shrink_what_they_install_run() {
    use std::os::unix::fs::PermissionsExt;
    let tools = Path::new(tool("offload")).parent().unwrap();
    let mut count = 0;
    for page in book().filter(|page| page.starts_with(root().join("docs/recipes"))) {
        let text = fs::read_to_string(&page).unwrap();
        let is_recipe = |line: &Line<'_>| matches!(line.block, Some("dockerfile" | "sh"));
        let script: Vec<_> = lines(&text)
            .into_iter()
            .map(|line| if is_recipe(&line) { line.text } else { "" })
            .collect();
        for recipe in
            script.join("\n").split("\n\n").filter(|text| text.contains("offload shrink /opt/"))
        {
            let place = tempfile::tempdir().unwrap();
            let makers = place.path().join("makers/bin");
            fs::create_dir_all(&makers).unwrap();
            for name in ["pip", "python3", "uv", "conda"] {
                fs::write(makers.join(name), MAKER).unwrap();
                fs::set_permissions(makers.join(name), fs::Permissions::from_mode(0o755)).unwrap();
            }
            let recipe = recipe.trim().replace("RUN ", "").replace("/opt/", "opt/");
            let output = new_command("sh")
                .args(["-ec", &recipe])
                .current_dir(&place)
                .env("PATH", format!("{}:{}:/usr/bin:/bin", makers.display(), tools.display()))
                .env("DATA", root().join("examples/data"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let is_shrunk = said.contains("of code for other GPUs removed from 1 file");
            assert!(
                output.status.success() && is_shrunk,
                "{}: {recipe}\n{said}{}",
                shown(&page),
                String::from_utf8_lossy(&output.stderr)
            );
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} recipes found");
}
