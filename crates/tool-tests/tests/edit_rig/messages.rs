//! Messages of tools that look at ELF files: an edited file must not cause more of them than the unedited one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::zoo::{Linked, World};
use super::{Complaints, run, tool};
use crate::common::llvm;

/// By tool: its exit status, and the lines it says, each without what is different from file to file.
pub type Messages = BTreeMap<&'static str, (Option<i32>, BTreeSet<String>)>;

/// Returns the messages of all tools about a file. `like` is what it is or was.
pub fn messages(like: &Linked, path: &Path) -> Messages {
    let mut messages = Messages::new();
    let mut say = |name: &'static str,
                   tool: &Path,
                   arguments: &[&str],
                   choose: &dyn Fn(&str, bool) -> bool| {
        let output = run(tool, arguments.iter().map(AsRef::as_ref).chain([path.as_os_str()]));
        let mut lines = BTreeSet::new();
        for (stream, is_error) in [(&output.stdout, false), (&output.stderr, true)] {
            let text = String::from_utf8_lossy(stream);
            lines.extend(
                text.lines().filter(|line| choose(line, is_error)).map(|line| normal(line, path)),
            );
        }
        messages.insert(name, (output.status.code(), lines));
    };
    // Some findings are on standard output, between what is there.
    let is_message = |line: &str, is_error: bool| {
        let line = line.to_lowercase();
        let words = [
            "warning",
            "error",
            "corrupt",
            "invalid",
            "<unknown",
            "out of range",
            "beyond the end",
            "overlap",
        ];
        is_error
            || words.iter().any(|word| line.contains(word))
                && !line.contains(".gnu.warning")
                && !line.contains("_z")
    };
    say("readelf", &tool("readelf"), &["-aW"], &is_message);
    say("llvm-readelf", &llvm("llvm-readelf"), &["-aW"], &is_message);
    say("objdump", &tool(binutils(like, "objdump")), &["-hpT"], &is_message);
    say("eu-elflint", &tool("eu-elflint"), &["--gnu-ld"], &|_, _| true);
    if like.world == World::Glibc {
        say("ldd", &tool("ldd"), &[], &|_, _| true);
    }
    let gdb = [
        "-nx",
        "-batch",
        "-ex",
        "info files",
        "-ex",
        "info functions",
        "-ex",
        "info line answers",
        "-ex",
        "disassemble answers",
    ];
    // All that it says of functions stays as it is, but not where sections are.
    let is_section = |line: &str| line.trim_start().starts_with("0x") && line.contains(" - 0x");
    say("gdb", &tool("gdb"), &gdb, &|line, _| !is_section(line));
    messages
}

/// The name of a tool of GNU binutils for the machine of a file.
pub fn binutils(like: &Linked, name: &str) -> &'static str {
    match (like.world, name) {
        (World::AArch64, "strip") => "aarch64-linux-gnu-strip",
        (World::AArch64, "objcopy") => "aarch64-linux-gnu-objcopy",
        (World::AArch64, "objdump") => "aarch64-linux-gnu-objdump",
        (_, "strip") => "strip",
        (_, "objcopy") => "objcopy",
        (_, "objdump") => "objdump",
        _ => panic!("{name}"),
    }
}

/// A line without the file's name and place, numbers of sections and segments, and addresses that are loading's.
fn normal(line: &str, path: &Path) -> String {
    let line = line.replace(path.to_str().unwrap(), "FILE");
    // ldd tells where libraries happened to be mapped.
    let line = line.split(" (0x").next().unwrap();
    let mut parts = line.split(['[', ']']);
    let mut normal = parts.next().unwrap().to_owned();
    for part in parts {
        let is_number = part.trim().bytes().all(|byte| byte.is_ascii_digit());
        normal.push_str(if is_number { "#" } else { part });
    }
    let entry = "program header entry ";
    match normal.split_once(entry) {
        Some((start, rest)) => {
            format!("{start}{entry}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => normal,
    }
}

/// Additional messages that are allowed, both by eu-elflint only: a segment with code is in pieces, and one of them has
/// the code; and sections without contents, which mold places at the start of the file, where a segment is shorter now.
const HARMLESS: [&str; 2] = [
    "loadable segment # is executable but contains no executable sections",
    "section # '.bss' not fully contained in segment of program header entry ",
];

/// Returns the messages about an edited file that there are not about the unedited one.
pub fn compare(before: &Messages, after: &Messages) -> Complaints {
    let mut complaints = Complaints::new();
    for (tool, (status, lines)) in after {
        let (status_before, lines_before) = &before[tool];
        if status != status_before && !HARMLESS.iter().any(|line| lines.contains(*line)) {
            complaints.push(format!("{tool} ends with {status:?}, not {status_before:?}"));
        }
        let lines: BTreeSet<_> =
            lines.iter().filter(|line| !HARMLESS.contains(&line.as_str())).cloned().collect();
        let lines = &lines;
        complaints.extend(lines.difference(lines_before).map(|line| format!("{tool}: {line}")));
        // Its messages about functions are the same, not only no more.
        if *tool == "gdb" || *tool == "ldd" {
            let gone = lines_before.difference(lines);
            complaints.extend(gone.map(|line| format!("{tool} does not say: {line}")));
        }
    }
    complaints
}
