//! Commands of the documentation that are not part of a session: blocks that start with three backticks and `sh`, in README.md and
//! docs/. Each command of `offload` is run, in a directory with stand-ins for the files that pages name, and must not be a
//! mistake of its author: an option that is not there, or an argument that is missing. All other programs are in a table, which says
//! where they are run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use samples::server::{Manner, Server};

use crate::common::{data, new_command, tool};
use crate::docs::{book, lines, shown};

/// First words of commands that this test does not run, and the reason.
const ELSEWHERE: [(&str, &str); 32] = [
    ("cargo", "builds for minutes: steps tests, package, llvm, nvidia"),
    (".ci/", "is a step, or a program that steps use"),
    ("fuzz/", "step fuzz"),
    ("LLVM24=", "step llvm24"),
    ("HOSTILE=", "step llvm"),
    ("RIG_FILES=", "step llvm"),
    ("TMPDIR=", "steps versus and doubling"),
    ("export", "sets a variable"),
    ("pip", "steps packages and environment"),
    ("/opt/venv/", "recipes_that_shrink_what_they_install_run, step environment"),
    ("python3", "recipes_that_shrink_what_they_install_run, step environment"),
    ("uvx", "needs the wheel that step bindings_python builds"),
    ("uv", "recipes_that_shrink_what_they_install_run, step environment"),
    ("conda", "recipes_that_shrink_what_they_install_run"),
    ("skopeo", "step images"),
    ("apt", "step deb unpacks the package"),
    ("rattler-build", "needs the compilers of a channel"),
    ("sha256sum", "compares what step dist writes"),
    ("tar", "unpacks what step dist writes"),
    ("unzip", "unpacks what pip downloads"),
    ("clang", "step llvm"),
    ("cc", "step llvm"),
    ("gcc", "step bindings_c"),
    ("rustc", "step llvm"),
    ("cmake", "needs a project"),
    ("COMPILER_PATH=", "needs a project"),
    ("HIPCC_COMPILE_FLAGS_APPEND=", "needs a project"),
    ("mkdir", "makes a directory for commands of other programs"),
    ("cd", "enters such a directory"),
    ("ln", "links programs in such a directory"),
    ("echo", "writes a file in such a directory"),
    ("ls", "lists such a directory"),
];

/// Programs that commands of `offload` hand their output to, or that use what it wrote.
const AFTER: [&str; 12] = [
    "jq",
    "sort",
    "uniq",
    "grep",
    "sed",
    "llvm-readelf",
    "ptxas",
    "spirv-dis",
    "exit",
    "./program",
    "c++filt",
    "less",
];

/// A line that only names commands.
const NAMES: &str = "offload bundle, unbundle, pack, fatbin, wrap";

/// Returns the commands of the blocks of a page, with the numbers of their first lines. Lines that go on are one command.
fn commands(page: &str) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for line in lines(page).into_iter().filter(|line| line.block == Some("sh")) {
        let text = line.text.split("  #").next().unwrap_or("").trim_end();
        let is_more = goes_on || text.starts_with(' ');
        goes_on = text.ends_with(['\\', '|']);
        let text = text.trim_end_matches('\\').trim();
        match commands.last_mut().filter(|_| is_more) {
            Some((_, last)) => *last = format!("{last} {text}"),
            None if text.is_empty() => {}
            None => commands.push((line.number, text.to_owned())),
        }
    }
    commands
}

/// Returns the parts of a command that are programs with arguments.
fn parts(command: &str) -> Vec<String> {
    // A bar between quotes separates nothing.
    let mut quote = None;
    let mut text = String::new();
    for c in command.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        let is_bare = quote.is_none();
        text.push(if is_bare && c == '|' { '\n' } else { c });
    }
    let parts = text.replace("&&", "\n").replace("$(offload", "\noffload");
    parts.lines().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn commands_of_pages_are_right() {
    let tools = Path::new(tool("offload")).parent().unwrap();
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for directory in [".local/share/bash-completion/completions", ".local/share/man/man1", "build"]
    {
        fs::create_dir_all(at(directory)).unwrap();
    }
    fs::write(at("offload.toml"), "[verify]\nenabled = true\n").unwrap();
    let reset = || {
        for name in ["libfoo.so", "foo.so", "old.so", "libbitsandbytes_xpu2025.so", "my-program"] {
            fs::copy(data("hip-two-units-ccob.so"), at(name)).unwrap();
        }
        for name in ["a.o", "foo.whl", "old.whl", "new.whl", "build/hip.o"] {
            fs::copy(data("hip.o"), at(name)).unwrap();
        }
    };
    let server = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Right);
    let (mut wrong, mut count, mut unused) =
        (Vec::new(), 0, BTreeSet::from(ELSEWHERE.map(|(word, _)| word)));
    for page in book() {
        let text = fs::read_to_string(&page).unwrap();
        for (line, command) in commands(&text) {
            let name = format!("{}:{line}: {command}", shown(&page));
            if command.starts_with(NAMES) {
                continue;
            }
            for part in parts(&command) {
                let word = part.split(' ').next().unwrap_or("");
                if word != "offload" {
                    let known = ELSEWHERE.iter().find(|(first, _)| {
                        word == *first || first.ends_with(['/', '=']) && word.starts_with(first)
                    });
                    match known {
                        Some((first, _)) => drop(unused.remove(first)),
                        None if AFTER.contains(&word) || word.starts_with('-') => {}
                        None => wrong.push(format!("{name}\n{word}: say where it is run")),
                    }
                    continue;
                }
                // Pages name directories of other machines: files of this one never change.
                let run = part.trim_end_matches(')').replace("native", "gfx1100");
                let run =
                    run.replace(" /opt/", " opt/").replace("https://example.com", &server.url(""));
                if run.contains(" /") {
                    wrong.push(format!("{name}\nnames a file of the machine that runs the tests"));
                    continue;
                }
                reset();
                let output = new_command("sh")
                    .args(["-c", &run])
                    .current_dir(&place)
                    .env("HOME", place.path())
                    .env("PATH", format!("{}:/usr/bin:/bin", tools.display()))
                    .output()
                    .unwrap();
                // 2 is for a command line that is wrong; files that are not there are 1.
                if !matches!(output.status.code(), Some(0 | 1)) {
                    let said = String::from_utf8_lossy(&output.stderr);
                    wrong.push(format!("{name}\n{}: {said}", output.status));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(unused.is_empty(), "no page has {unused:?}");
    assert!(count > 60, "only {count} commands found");
}
