//! Lines for a terminal, of every command, over files whose every string is hostile.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Write};
use std::process::Output;

use super::table::{Inputs, words};
use crate::common::data;
use crate::help::commands;

/// Strings of files, and what takes their place, which is as long. A line that starts with `^` is a forged one.
const HOSTILE: &[(&str, &str)] = &[
    ("gfx906", "\x1b[7m\n^"),
    ("gfx90a", "\n^\u{202e}\x07"),
    ("gfx1100", "\u{9b}7m\r\n^"),
    ("gfx1030", "\n^\x1b]0;p"),
    ("amdgcn", "\u{202e}\x1b]0"),
    ("amdhsa", "\n^\x1b[7m"),
    ("nvptx64", "\n^\u{2066}\x1bc"),
    ("x86_64", "\x1b[7m\n^"),
    ("sm_70", "\x1b[7m\n"),
    ("sm_80", "\n^\u{200b}"),
    ("scale", "\n^\u{9d}\x07"),
    ("spill", "\x1b[7m\n"),
    ("histogram", "\u{2028}\n^\x1b[7m"),
    ("lib.so", "\x1b[7m\n^"),
];

/// Command lines of commands and tools that read files. `FILE` is a file.
const READERS: &[(&str, &str)] = &[
    ("offload", "ls FILE"),
    ("offload", "ls --tree FILE"),
    ("offload", "ls --json FILE"),
    ("offload", "ls --totals FILE"),
    ("offload", "ls --formats --hash FILE"),
    ("offload", "ls --same FILE"),
    ("offload", "match --gpu gfx1100 FILE"),
    ("offload", "match --gpu gfx906 --gpu sm_80 FILE"),
    ("offload", "match --gpu gfx906 --json FILE"),
    ("offload", "kernels FILE"),
    ("offload", "size FILE"),
    ("offload", "size --duplicates FILE"),
    ("offload", "report FILE -o out"),
    ("offload", "kernels --json FILE"),
    ("offload", "diff FILE hip.o"),
    ("offload", "diff --json hip.o FILE"),
    ("offload", "doctor --prefix env --gpu gfx906"),
    ("offload", "doctor --prefix env --gpu gfx906 --json"),
    ("offload", "verify FILE"),
    ("offload", "verify --format junit FILE"),
    ("offload", "verify --format sarif FILE"),
    ("offload", "check --only gfx900 FILE"),
    ("offload", "check --only gfx900 --format github FILE"),
    ("offload", "ls --format csv FILE"),
    ("offload", "ls --format ndjson FILE"),
    ("offload", "kernels --format markdown FILE"),
    ("offload", "diff --format markdown FILE hip.o"),
    ("offload", "extract FILE -o images"),
    ("offload", "extract FILE -o images --json"),
    ("offload", "unbundle FILE HIP-gfx906=out"),
    ("offload", "thin FILE --keep gfx906 -o out"),
    ("offload", "thin FILE --keep gfx906 --allow-missing --allow-empty --dry-run --json"),
    ("offload", "shrink FILE --gpu gfx906 --plan --why"),
    ("offload", "shrink FILE --gpu gfx906 --plan --json"),
    ("offload", "remove FILE --index 0 -o out"),
    ("offload", "remove FILE --index 0 --dry-run"),
    ("offload", "replace FILE -o out HIP-gfx906=new"),
    ("offload", "add FILE -o out HIP-gfx906=new"),
    ("offload", "compress FILE -o out"),
    ("offload", "decompress FILE -o out"),
    ("offload", "split FILE --group g -o out"),
    ("offload", "join FILE -o out"),
    ("offload", "link --print-plan FILE"),
    ("offload", "wrap --kind hip -o out FILE"),
    ("offload", "bundle -o out HOST=/dev/null HIP-gfx906=FILE"),
    ("offload", "pack -o out kind=hip,file=FILE"),
    ("offload", "fatbin -o out --image FILE"),
    ("clang-offload-bundler", "-list -type=o -input=FILE"),
    ("llvm-offload-binary", "FILE --image=arch=gfx906"),
    ("roc-obj-ls", "FILE"),
];

/// Commands that read no file that a user may have got from others, and `variant`, which is tested in `variants`.
const NO_READERS: &[&str] = &["gpus", "why", "explain", "completions", "man", "help", "variant"];

/// Returns the bytes with hostile strings, if there are such strings.
fn with_hostile_strings(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut hostile = bytes.to_vec();
    for (from, to) in HOSTILE {
        assert_eq!(from.len(), to.len(), "{from}");
        let places = bytes.windows(from.len()).enumerate();
        let places = places.filter(|(_, window)| *window == from.as_bytes());
        places.for_each(|(at, _)| hostile[at..at + to.len()].copy_from_slice(to.as_bytes()));
    }
    (hostile != bytes).then_some(hostile)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns what no line may hold: controls but the line's end, and our styles; characters that turn text, or have no width.
fn deceives(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| {
        let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control() && c != '\n'
    }) {
        let (before, after) = rest.split_at(at);
        let style = after.strip_prefix("\x1b[").and_then(|style| style.split_once('m'));
        let is_style = |style: &str| {
            // No style of ours is inverse.
            style.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') && style != "7"
        };
        match style {
            Some((style, after)) if is_style(style) => rest = after,
            _ => return Some(format!("{before:?} {:?}", after.chars().take(40).collect::<String>())),
        }
    }
    let is_forged = |line: &&str| line.trim_start().starts_with('^');
    text.lines().find(is_forged).map(|line| format!("forged: {line}"))
}

fn check(output: &Output, what: &str) {
    assert!(matches!(output.status.code(), Some(0 | 1)), "{what}: {:?}", output.status);
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(deceives(text), None, "{what}");
    }
}

/// A wheel and an environment in which it is installed.
fn packages(inputs: &Inputs, object: &[u8]) {
    let description = "Name: f\x1b[7m\u{202e}\nVersion: 1\u{9b}7m\r\n";
    let row = "foo/\x1b[7m\u{202e}.o,,\n";
    let files: [(&str, &[u8]); 4] = [
        ("foo/\x1b[7m\u{202e}\n^.o", object),
        ("foo/\x1b[7m\u{202e}.o", object),
        ("foo-1.dist-info/METADATA", description.as_bytes()),
        ("foo-1.dist-info/RECORD", row.as_bytes()),
    ];
    let mut wheel = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        wheel.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        wheel.write_all(bytes).unwrap();
        let path = inputs.path("env/lib/python3.11/site-packages").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::write(inputs.path("hostile-1-py3-none-any.whl"), wheel.finish().unwrap().into_inner())
        .unwrap();
}

#[test]
fn no_string_of_a_file_deceives_a_terminal() {
    let inputs = Inputs::new();
    let mut files: BTreeSet<String> = BTreeSet::new();
    let directories = [data(""), inputs.root().to_owned()];
    for directory in &directories {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if let Some(bytes) =
                path.is_file().then(|| with_hostile_strings(&fs::read(&path).unwrap())).flatten()
            {
                let name = format!("hostile-{name}");
                fs::write(inputs.path(&name), bytes).unwrap();
                files.insert(name);
            }
        }
    }
    packages(&inputs, &fs::read(inputs.path("hostile-hip.o")).unwrap());
    files.insert("hostile-1-py3-none-any.whl".to_owned());
    fs::write(
        inputs.path("hostile.ptx"),
        ".version 8.7\n.target sm_70\x1b[7m\u{202e}\n.address_size 64\n.visible .entry a\u{9b}7m\u{200b}(){}\n",
    )
    .unwrap();
    files.insert("hostile.ptx".to_owned());
    assert!(files.len() > 30, "{}", files.len());
    let (mut commands_tested, mut silent) = (BTreeSet::new(), Vec::new());
    for &(tool, args) in READERS {
        if tool == "offload" {
            commands_tested.insert(args.split(' ').next().unwrap().to_owned());
        }
        let mut is_told = false;
        for file in &files {
            let words = words(tool, &args.replace("FILE", file), ["", ""]);
            let mut command = inputs.command(&words);
            let output = command.env("CLICOLOR_FORCE", "1").output().unwrap();
            check(&output, &format!("{tool} {args}: {file}"));
            let shows =
                |bytes: &[u8]| ["\\u{", "\\u001b"].iter().any(|escape| contains(bytes, escape));
            is_told |= shows(&output.stdout) || shows(&output.stderr);
            for made in ["out", "images"].map(|name| inputs.path(name)) {
                let _ =
                    if made.is_dir() { fs::remove_dir_all(made) } else { fs::remove_file(made) };
            }
            if !args.contains("FILE") {
                break;
            }
        }
        if !is_told {
            silent.push(format!("{tool} {args}"));
        }
    }
    // These print nothing that files hold.
    assert_eq!(
        silent,
        [
            "offload join FILE -o out",
            "offload wrap --kind hip -o out FILE",
            "offload bundle -o out HOST=/dev/null HIP-gfx906=FILE",
            "offload pack -o out kind=hip,file=FILE",
            "offload fatbin -o out --image FILE",
            "llvm-offload-binary FILE --image=arch=gfx906",
        ]
    );
    let known = |name: &String| commands_tested.contains(name) || NO_READERS.contains(&&**name);
    assert_eq!(commands().iter().find(|name| !known(name)), None);
}
