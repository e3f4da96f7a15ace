//! Runs the cases of this directory: `README.md` describes the format.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use crate::common::{data, installed, llvm, new_command};

/// The owner of the tool that runs the commands marked `= llvm`.
#[derive(Clone, Copy, PartialEq)]
pub enum Peer {
    Ours,
    Llvm,
    /// Our tools for Windows, run by Wine.
    Windows,
}

/// Returns the directory of our tools for Windows, and of programs that are made for the cases: `$WINDOWS_TOOLS`.
fn windows_tools() -> PathBuf {
    std::env::var_os("WINDOWS_TOOLS").expect("WINDOWS_TOOLS: see .ci/run windows").into()
}

/// Plays a case and returns its text with what was found in place of what was expected.
pub fn play(text: &str, peer: Peer) -> Result<String, String> {
    let place = tempfile::tempdir().unwrap();
    let mut found = String::new();
    let mut commands = 0;
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        found.push_str(line);
        found.push('\n');
        let outcome = if line.is_empty() || line.starts_with('#') {
            Ok(())
        } else if let Some(rule) = line.strip_prefix("input ") {
            input(place.path(), rule)
        } else if let Some(names) = line.strip_prefix("same ") {
            same(place.path(), names)
        } else if let Some(command) = line.strip_prefix("$ ") {
            commands += 1;
            let is_shared = lines.next_if(|(_, line)| *line == "= llvm").is_some();
            if is_shared {
                found.push_str("= llvm\n");
            }
            let mut errors = String::new();
            while let Some((_, line)) =
                lines.next_if(|(_, line)| line.starts_with(['|', '!', '?', '+', '-']))
            {
                if line.starts_with('!') {
                    let _ = writeln!(errors, "{line}");
                }
            }
            // The words of errors may differ from LLVM's: its own cases in `messages` compare those.
            let is_theirs = is_shared && peer == Peer::Llvm;
            let theirs = is_theirs.then_some(&errors);
            run(place.path(), command, peer, theirs).map(|text| found += &text)
        } else {
            Err("expected '#', 'input', 'same', '$', or what a command above it gives".to_owned())
        };
        outcome.map_err(|error| format!("{}: {line}\n  {error}", index + 1))?;
    }
    if commands == 0 {
        return Err("1: the case has no command".to_owned());
    }
    Ok(found)
}

/// Makes a file: `NAME = TERM + TERM ...`.
fn input(place: &Path, rule: &str) -> Result<(), String> {
    let (name, terms) = rule.split_once(" = ").ok_or("expected 'input NAME = ...'")?;
    let mut words = words(terms)?.into_iter();
    let mut bytes = Vec::new();
    loop {
        let word = words.next().ok_or("expected a text, 'data NAME' or 'file NAME'")?;
        let mut name_of = || words.next().ok_or(format!("expected a name after '{word}'"));
        let mut term = match (&*word, word.strip_prefix('"')) {
            (_, Some(text)) => unescape(text)?,
            ("data", _) => fs::read(data(&name_of()?)).unwrap(),
            ("file", _) => {
                let name = name_of()?;
                fs::read(place.join(&name)).map_err(|error| format!("{name}: {error}"))?
            }
            ("program", _) => fs::read(windows_tools().join(name_of()? + ".exe")).unwrap(),
            _ => return Err(format!("'{word}': expected a text, 'data' or 'file'")),
        };
        loop {
            let Some(word) = words.next() else {
                bytes.extend(term);
                let path = place.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                return fs::write(path, bytes).map_err(|error| format!("{name}: {error}"));
            };
            let mut number = || {
                let number = words.next().ok_or(format!("expected a number after '{word}'"))?;
                number.parse::<usize>().map_err(|error| format!("'{number}': {error}"))
            };
            match &*word {
                "+" => {
                    bytes.extend(term);
                    break;
                }
                "times" => term = term.repeat(number()?),
                "cut" => {
                    let length = number()?;
                    let kept = term.get(..length).ok_or("the term is shorter already")?;
                    term = kept.to_vec();
                }
                "from" => {
                    let kept = term.get(number()?..).ok_or("the offset is past the end")?;
                    term = kept.to_vec();
                }
                "pad" => {
                    let length = term.len().checked_next_multiple_of(number()?);
                    term.resize(length.ok_or("expected a number that is not 0")?, 0);
                }
                "at" => {
                    let offset = number()?;
                    let text = words.next().ok_or("expected a text after the offset")?;
                    let patch = unescape(text.strip_prefix('"').ok_or("expected a text")?)?;
                    let range = term.get_mut(offset..).and_then(|rest| rest.get_mut(..patch.len()));
                    range.ok_or("the patch is past the end")?.copy_from_slice(&patch);
                }
                _ => {
                    return Err(format!(
                        "'{word}': expected '+', 'times', 'cut', 'from', 'pad' or 'at'"
                    ));
                }
            }
        }
    }
}

/// Checks that files have the same bytes, which must be some.
fn same(place: &Path, names: &str) -> Result<(), String> {
    let mut all = Vec::new();
    for name in words(names)? {
        all.push(fs::read(place.join(&name)).map_err(|error| format!("{name}: {error}"))?);
    }
    match &all[..] {
        [first, rest @ ..] if first.is_empty() || rest.is_empty() => {
            Err("expected two files or more that are not empty".to_owned())
        }
        [first, rest @ ..] if rest.iter().all(|bytes| bytes == first) => Ok(()),
        _ => Err("the files differ".to_owned()),
    }
}

/// Splits at spaces. A word in double quotes keeps its first quote; single quotes group within a word.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(first) = chars.next() {
        let mut word = String::new();
        match first {
            ' ' => continue,
            '"' => {
                word.push('"');
                loop {
                    match chars.next().ok_or("a text has no end")? {
                        '"' => break,
                        '\\' => word.extend(['\\', chars.next().ok_or("a text has no end")?]),
                        other => word.push(other),
                    }
                }
            }
            _ => {
                let mut is_quoted = first == '\'';
                if !is_quoted {
                    word.push(first);
                }
                while let Some(next) = chars.next_if(|next| is_quoted || *next != ' ') {
                    if next == '\'' {
                        is_quoted = !is_quoted;
                    } else {
                        word.push(next);
                    }
                }
            }
        }
        words.push(word);
    }
    Ok(words)
}

/// The bytes of a text: `\n`, `\t`, `\r`, `\"`, `\\` and `\xNN` are one byte each.
fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        let (byte, length) = match after.as_bytes().first() {
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b'r') => (b'\r', 1),
            Some(b'x') => {
                let digits = after.get(1..3).ok_or("expected two digits after \\x")?;
                (u8::from_str_radix(digits, 16).map_err(|error| error.to_string())?, 3)
            }
            Some(&quoted @ (b'"' | b'\\')) => (quoted, 1),
            _ => return Err(format!("'\\{after}': unknown escape")),
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    bytes.extend(rest.bytes());
    Ok(bytes)
}

fn ours(name: &str) -> Result<PathBuf, String> {
    let path = installed::find(name).map(PathBuf::from);
    path.ok_or_else(|| format!("'{name}' is not one of our tools"))
}

/// Runs one command and returns what it gave. `theirs`: LLVM's tool runs, and these are the lines of its errors.
fn run(place: &Path, line: &str, peer: Peer, theirs: Option<&String>) -> Result<String, String> {
    let words = words(line)?;
    let Some(start) = words.iter().position(|word| word == "{") else {
        return run_words(place, words, peer, theirs);
    };
    let end = words.iter().position(|word| word == "}").ok_or("expected '}' after '{'")?;
    let choices = words.get(start + 1..end).ok_or("expected '}' after '{'")?;
    let mut first = None;
    for choice in choices.split(|word| word == "|") {
        let line = [&words[..start], choice, &words[end + 1..]].concat();
        let found = run_words(place, line, peer, theirs)?;
        let first = first.get_or_insert_with(|| found.clone());
        if *first != found {
            let choice = choice.join(" ");
            return Err(format!("with '{choice}' it gives something else:\n{first}---\n{found}"));
        }
    }
    Ok(first.unwrap_or_default())
}

/// Returns a path as Wine has it.
fn on_windows(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', r"\")
}

/// Returns the command that runs a tool for Windows, or a program that Wine has.
fn by_wine(name: &str) -> Command {
    let tools = windows_tools();
    let tool = tools.join(name).with_extension("exe");
    let mut command = new_command(std::env::var_os("WINE").expect("WINE: see .ci/run windows"));
    command.env_clear().env("WINEDEBUG", "-all").env("WINEPREFIX", tools.join("prefix"));
    // Names are those of the file system. A program finds the tools, unless the case says otherwise.
    command.env("LC_ALL", "C.UTF-8").env("WINEPATH", on_windows(&tools));
    command.arg(if tool.exists() { tool.as_os_str() } else { OsStr::new(name) });
    command
}

fn run_words(
    place: &Path,
    words: Vec<String>,
    peer: Peer,
    theirs: Option<&String>,
) -> Result<String, String> {
    let mut words = words.into_iter().peekable();
    let mut variables = Vec::new();
    while let Some(word) = words.next_if(|word| word.contains('=')) {
        let (name, value) = word.split_once('=').unwrap();
        variables.push((name.to_owned(), value.to_owned()));
    }
    let name = words.next().ok_or("expected a tool")?;
    let (tool, mut command) = if peer == Peer::Windows {
        (PathBuf::new(), by_wine(&name))
    } else {
        let tool = if theirs.is_some() { llvm(&name) } else { ours(&name)? };
        let mut command = new_command(&tool);
        command.env_clear();
        (tool, command)
    };
    command.envs(variables).current_dir(place).stdin(Stdio::null());
    let mut to = None;
    while let Some(word) = words.next() {
        match &*word {
            "<" => {
                let name = words.next().ok_or("expected a file after '<'")?;
                let file = File::open(place.join(&name));
                command.stdin(file.map_err(|error| format!("{name}: {error}"))?);
            }
            ">" => to = Some(words.next().ok_or("expected a file after '>'")?),
            _ => drop(command.arg(word)),
        }
    }
    make_older(place);
    let before = files(place);
    let output = command.output().map_err(|error| error.to_string())?;
    let mut found = String::new();
    let hidden = match tool.parent() {
        Some(tools) => [format!("{}/", tools.display()), place.display().to_string()],
        // A backslash is doubled before.
        None => [r"\\\\?\\".to_owned(), on_windows(place).replace('\\', r"\\")],
    };
    match to {
        Some(name) => fs::write(place.join(name), &output.stdout).unwrap(),
        None => printed(&mut found, '|', &output.stdout, &hidden),
    }
    let said = without_wine(&output.stderr, peer);
    match theirs {
        Some(errors) => found += errors,
        None => printed(&mut found, '!', &said, &hidden),
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => writeln!(found, "? {code}").unwrap(),
        None => writeln!(found, "? {}", output.status).unwrap(),
    }
    let after = files(place);
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        writeln!(found, "- {name}").unwrap();
    }
    for (name, file) in after.iter().filter(|(name, file)| before.get(*name) != Some(file)) {
        let Some((bytes, _)) = file else {
            writeln!(found, "+ {name}").unwrap();
            continue;
        };
        match std::str::from_utf8(bytes) {
            Ok(text) if text.len() <= 60 => writeln!(found, "+ {name} {text:?}").unwrap(),
            _ => {
                let hash = twox_hash::XxHash3_64::oneshot(bytes);
                writeln!(found, "+ {name} {} bytes, xxh3 {hash:016x}", bytes.len()).unwrap();
            }
        }
    }
    Ok(found)
}

/// Returns what a tool says, without lines of Wine itself and the directory of the tools.
fn without_wine(said: &[u8], peer: Peer) -> Vec<u8> {
    if peer != Peer::Windows {
        return said.to_vec();
    }
    let tools = on_windows(&windows_tools());
    let said = String::from_utf8_lossy(said).replace(&format!(r"{tools}\"), "");
    let own = said.split_inclusive('\n').filter(|line| !line.starts_with("wine: "));
    own.collect::<String>().into_bytes()
}

/// Adds lines with a mark. A last line without an end gets one backslash; a backslash of the output is doubled.
fn printed(found: &mut String, mark: char, bytes: &[u8], hidden: &[String; 2]) {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\\' => text.push_str("\\\\"),
                '\r' => text.push_str("\\r"),
                '\0'..'\t' | '\x0b'..' ' | '\x7f' => {
                    write!(text, "\\x{:02x}", u32::from(char)).unwrap();
                }
                _ => text.push(char),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").unwrap();
        }
    }
    let text = text.replace(&hidden[0], "").replace(&hidden[1], "[PLACE]");
    for line in text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').map_or_else(|| format!("{line}\\"), str::to_owned);
        let space = if line.is_empty() { "" } else { " " };
        writeln!(found, "{mark}{space}{line}").unwrap();
    }
}

/// The contents of all files below a directory, and when they were written, by name; empty directories end in `/`.
fn files(place: &Path) -> BTreeMap<String, Option<(Vec<u8>, SystemTime)>> {
    let mut files = BTreeMap::new();
    for path in paths(place) {
        let name = path.strip_prefix(place).unwrap().display().to_string().replace('\\', "/");
        if path.is_dir() {
            files.insert(name + "/", None);
        } else {
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            files.insert(name, Some((fs::read(&path).unwrap(), time)));
        }
    }
    files
}

/// Gives all files an old time, so that a file that is written again with the same bytes is seen.
fn make_older(place: &Path) {
    for path in paths(place) {
        if let Ok(file) = File::options().append(true).open(path) {
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

/// The files below a directory, and the empty directories.
fn paths(place: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut directories = vec![place.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries: Vec<_> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        if entries.is_empty() && directory != place {
            paths.push(directory);
        }
        let (inner, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
        directories.extend(inner);
        paths.extend(files);
    }
    paths
}

/// Returns the lines in which two texts differ, with the number of the first.
fn difference(expected: &str, found: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = rest.take_while(|(a, b)| a == b).count();
    let mut text = format!("{}:", start + 1);
    for line in &old[start..old.len() - end] {
        write!(text, "\n  expected {line}").unwrap();
    }
    for line in &new[start..new.len() - end] {
        write!(text, "\n  found    {line}").unwrap();
    }
    text
}

/// Checks one case, or writes what it found where `bless` is set.
pub fn check(path: &Path, peer: Peer, bless: bool) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let named = |error| format!("{}:{error}", path.display());
    let found = play(&text, peer).map_err(named)?;
    if found == text {
        return Ok(());
    }
    if bless {
        fs::write(path, found).unwrap();
        return Ok(());
    }
    Err(named(difference(&text, &found)))
}

/// Checks all cases in parallel, or cases whose paths contain `$CASES`; with `Peer::Llvm`, cases that LLVM's tools must
/// agree with.
pub fn check_all(peer: Peer) {
    let cases = if peer == Peer::Windows { "tests/windows" } else { "tests/cases" };
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(cases)];
    let mut paths = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            match path.extension().and_then(OsStr::to_str) {
                Some("case") => paths.push(path),
                Some("md" | "rs") => {}
                _ => panic!("{}: expected NAME.case", path.display()),
            }
        }
    }
    if peer == Peer::Llvm {
        paths.retain(|path| fs::read_to_string(path).unwrap().contains("\n= llvm\n"));
    }
    if let Ok(part) = std::env::var("CASES") {
        paths.retain(|path| path.display().to_string().replace('\\', "/").contains(&part));
    }
    paths.sort();
    assert!(!paths.is_empty(), "there are no such cases");
    let bless = peer != Peer::Llvm && std::env::var_os("BLESS").is_some();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = check(path, peer, bless) {
                        failures.lock().unwrap().push(error);
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    let (failed, all) = (failures.len(), paths.len());
    assert!(failed == 0, "{failed} of {all} cases failed:\n{}", failures.join("\n"));
}
