//! Inputs that cannot be read, or change meanwhile.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Output, Stdio};

use super::table::{Inputs, WRITERS, large_bundle, words};
use super::{is_unchanged, refuses, snapshot};
use crate::common::machine::{as_nobody, has_open, not_tested, wait_for, written_in};
use crate::common::{new_command, stderr};

/// All commands that read a file `OUT`.
pub(crate) const READERS: &[(&str, &str)] = &[
    ("offload", "ls OUT"),
    ("offload", "verify OUT"),
    ("offload", "kernels OUT"),
    ("offload", "size OUT"),
    ("offload", "diff OUT four"),
    ("offload", "diff four OUT"),
    ("offload", "match --gpu gfx1100 OUT"),
    ("offload", "extract OUT -o images"),
    ("offload", "unbundle OUT HIP-gfx1100=out"),
    ("offload", "bundle -o out HOST=/dev/null HIP-gfx1100=OUT"),
    ("offload", "bundle -o out HOST=OUT HIP-gfx1100=new"),
    ("offload", "pack -o out kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx1100,file=OUT"),
    ("offload", "compress OUT -o out"),
    ("offload", "decompress OUT -o out"),
    ("offload", "thin OUT -o out --keep gfx1100"),
    ("offload", "shrink OUT -o out --gpu gfx1100"),
    ("offload", "replace four -o out HIP-gfx1100=OUT"),
    ("offload", "split OUT --group g -o out"),
    ("offload", "join OUT -o out"),
    ("offload", "link --print-plan OUT"),
    ("offload", "wrap --kind hip --triple x86_64-unknown-linux-gnu -o out OUT"),
    ("clang-offload-bundler", "-list -type=bc -input=OUT"),
    ("clang-offload-bundler", "-type=bc -unbundle -targets=HIP-gfx1100 -input=OUT -output=out"),
    ("clang-offload-bundler", "-type=a -unbundle -targets=HIP-gfx1100 -input=OUT -output=out"),
    ("llvm-offload-binary", "OUT"),
    ("llvm-offload-binary", "-o out --image=file=OUT,triple=amdgcn-amd-amdhsa,arch=gfx1100"),
    ("llvm-offload-wrapper", "--kind=hip --triple=x86_64-unknown-linux-gnu -o out OUT"),
];

#[test]
fn unreadable_inputs_are_errors() {
    let inputs = Inputs::new();
    fs::create_dir(inputs.path("directory")).unwrap();
    symlink("nowhere", inputs.path("dangling")).unwrap();
    symlink("loop", inputs.path("loop")).unwrap();
    fs::write(inputs.path("secret"), "x").unwrap();
    fs::set_permissions(inputs.path("secret"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(inputs.root(), Permissions::from_mode(0o777)).unwrap();
    let _socket = inputs.make_socket();
    let long = "n".repeat(300);
    for (name, shown, reason) in [
        ("none", "none", "No such file or directory"),
        ("no\nne\u{1b}[1m", "no\\nne\\u{1b}[1m", "No such file or directory"),
        ("dangling", "dangling", "No such file or directory"),
        ("loop", "loop", "Too many levels of symbolic links"),
        ("directory", "directory", "Is a directory"),
        ("four/in", "four/in", "Not a directory"),
        ("socket", "socket", "No such device or address"),
        ("secret", "secret", "Permission denied"),
        (&*long, "nnn", "File name too long"),
    ] {
        for &(tool, args) in READERS {
            // These look into all files of a directory.
            let looks = ["ls", "match", "verify", "kernels", "size", "diff", "extract"];
            if name == "directory" && looks.iter().any(|command| args.starts_with(command)) {
                continue;
            }
            let mut words = words(tool, args, [name, ""]);
            if name == "secret" {
                let Some(nobody) = as_nobody(&words) else { continue };
                words = nobody;
            }
            let output = inputs.run(&words);
            refuses(&output, &[shown, reason], &format!("{tool} {args} of {name:?}"));
            assert!(!inputs.path("out").exists() && !inputs.path("images").exists());
        }
    }
}

#[test]
fn names_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let name = OsStr::from_bytes(b"in\xff\xfe");
    for &(tool, args) in READERS {
        let inputs = Inputs::new();
        let given = if args.contains("type=a") { "libbundles.a" } else { "four" };
        if fs::copy(inputs.path(given), inputs.root().join(name)).is_err() {
            not_tested("names must be text here");
            return;
        }
        let run = |name: &OsStr| {
            let mut command = new_command(&words(tool, "", ["", ""])[0]);
            for word in words(tool, args, ["OUT", ""]).iter().skip(1) {
                let parts: Vec<&[u8]> = match word.split_once("OUT") {
                    Some((start, end)) => vec![start.as_bytes(), name.as_bytes(), end.as_bytes()],
                    None => vec![word.as_bytes()],
                };
                command.arg(OsStr::from_bytes(&parts.concat()));
            }
            command.current_dir(inputs.root()).output().unwrap()
        };
        let expected = run(OsStr::new(given)).status.code();
        assert_eq!(run(name).status.code(), expected, "{tool} {args}");
        let output = run(OsStr::from_bytes(b"none\xff"));
        refuses(&output, &["none\u{fffd}", "No such file"], &format!("{tool} {args}"));
    }
}

/// Pipes are read to their end, whatever a command needs of a file.
#[test]
fn pipes_are_files_too() {
    for &(tool, args) in READERS {
        let inputs = Inputs::new();
        let given = if args.contains("type=a") { "libbundles.a" } else { "four" };
        inputs.make_fifo();
        let named = inputs.run(&words(tool, args, [given, ""]));
        let bytes = fs::read(inputs.path(given)).unwrap();
        let mut child = inputs
            .command(&words(tool, args, ["fifo", ""]))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        inputs.feed(&mut child, |fifo| fifo.write_all(&bytes).unwrap());
        let output = child.wait_with_output().unwrap();
        let what = format!("{tool} {args}: {}", stderr(&output));
        assert_eq!(output.status.code(), named.status.code(), "{what}");
    }
}

#[test]
fn standard_input_that_ends_early_is_an_error() {
    let inputs = Inputs::new();
    let before = snapshot(inputs.root());
    let packed = fs::read(inputs.path("four.ccob")).unwrap();
    let archive = fs::read(inputs.path("libbundles.a")).unwrap();
    for &(tool, args) in READERS {
        // These commands copy the input without reading its contents, or pass it over: any length is right.
        if ["link", "bundle -o", "pack", "-o out --image", "replace"]
            .iter()
            .any(|start| args.starts_with(start))
        {
            continue;
        }
        let bytes = if args.contains("type=a") { &archive } else { &packed };
        if args.starts_with("wrap") || args.starts_with("--kind") {
            continue;
        }
        let mut child = inputs
            .command(&words(tool, args, ["-", ""]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes[..bytes.len() / 2]).unwrap();
        let output = child.wait_with_output().unwrap();
        let what = format!("{tool} {args}: {}", stderr(&output));
        if args == "packages" || args == "OUT" {
            // No package, and that is only warned of.
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{what}");
        is_unchanged(inputs.root(), &before, &what);
    }
}

/// Only what is large needs a temporary directory, and one that cannot be used is named, not the input.
#[test]
fn an_unusable_temporary_directory_is_named() {
    let inputs = Inputs::new();
    large_bundle(&inputs, 1 << 20);
    fs::write(inputs.path("archive"), fs::read(inputs.path("libbundles.a")).unwrap().repeat(9))
        .unwrap();
    fs::write(inputs.path("nothing"), "").unwrap();
    let run = |words: &[String], name: &str, temporary: &str| {
        let mut child = inputs
            .command(words)
            .env("TMPDIR", temporary)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A tool without a place for its input does not read it.
        let _ = child.stdin.take().unwrap().write_all(&fs::read(inputs.path(name)).unwrap());
        let output = child.wait_with_output().unwrap();
        let _ = fs::remove_file(inputs.path("out"));
        let _ = fs::remove_dir_all(inputs.path("images"));
        output
    };
    let usable = std::env::temp_dir();
    for &(tool, args) in READERS {
        let words = words(tool, args, ["-", ""]);
        let large = if args.contains("type=a") { "archive" } else { "large" };
        let output = run(&words, large, "/nonexistent");
        let text = "no temporary file for a copy of the input: '/nonexistent': No such file";
        refuses(&output, &[text], &format!("{tool} {args}"));
        let small = if args.contains("type=a") { "libbundles.a" } else { "four" };
        for small in [small, "nothing"] {
            let [with, without] = [usable.to_str().unwrap(), "/nonexistent"]
                .map(|temporary| run(&words, small, temporary));
            let facts = |output: &Output| (output.status.code(), stderr(output));
            assert_eq!(facts(&with), facts(&without), "{tool} {args}: {small}");
        }
    }
    for writer in WRITERS {
        let mut command = inputs.command(&writer.words(["out", "out2"]));
        let output = command.env("TMPDIR", "/nonexistent").output().unwrap();
        if !output.status.success() {
            refuses(&output, &["no temporary file for ", "'/nonexistent'"], writer.args);
        }
    }
}

/// A run whose complaints alone are of interest.
fn start(inputs: &Inputs, tool: &str, args: &str) -> Child {
    inputs
        .command(&words(tool, args, ["", ""]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The tool has looked at `subject`, and waits at a pipe that is named after it, while that changes.
#[test]
fn an_input_that_changes_before_it_is_copied_is_an_error() {
    for (tool, args) in [
        ("offload", "bundle -o out HOST=/dev/null HIP-gfx1100=new HIP-gfx906=fifo"),
        ("offload", "bundle --compress -o out HOST=/dev/null HIP-gfx1100=new HIP-gfx906=fifo"),
        ("offload", "bundle -o out HOST=host.o HIP-gfx1100=new HIP-gfx906=fifo"),
        (
            "offload",
            "pack -o out kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx1100,file=new,file=fifo",
        ),
        ("offload", "wrap --kind openmp --triple x86_64-unknown-linux-gnu -o out new fifo"),
        (
            "offload",
            "wrap --kind openmp --triple x86_64-unknown-linux-gnu --emit ll -o out new fifo",
        ),
        (
            "clang-offload-bundler",
            "-type=bc -targets=HOST,HIP-gfx1100,HIP-gfx906 -input=/dev/null -input=new -input=fifo -output=out",
        ),
        (
            "llvm-offload-binary",
            "-o out --image=file=new,file=fifo,triple=amdgcn-amd-amdhsa,arch=gfx1100",
        ),
        ("llvm-offload-wrapper", "--kind=openmp --triple=x86_64-unknown-linux-gnu -o out new fifo"),
    ] {
        for what in ["shorter", "longer", "empty", "another"] {
            let inputs = Inputs::new();
            inputs.make_fifo();
            let mut child = start(&inputs, tool, args);
            inputs.feed(&mut child, |fifo| {
                let mut new = OpenOptions::new().write(true).open(inputs.path("new")).unwrap();
                match what {
                    "shorter" => new.set_len(1000).unwrap(),
                    "longer" => new.set_len(100_000).unwrap(),
                    "empty" => new.set_len(0).unwrap(),
                    _ => new.write_all(b"\x7fELF or not").unwrap(),
                }
                fifo.write_all(b"the other image").unwrap();
            });
            let output = child.wait_with_output().unwrap();
            let what = format!("{tool} {args}: {what}");
            refuses(&output, &["'new': the file was changed while it was read"], &what);
            assert!(!inputs.path("out").exists(), "{what}");
        }
        // It may also go.
        let inputs = Inputs::new();
        inputs.make_fifo();
        let mut child = start(&inputs, tool, args);
        inputs.feed(&mut child, |_| fs::remove_file(inputs.path("new")).unwrap());
        let output = child.wait_with_output().unwrap();
        refuses(&output, &["'new': No such file or directory"], args);
        assert!(!inputs.path("out").exists(), "{args}");
    }
}

/// Whenever it happens: an output is there only if it is complete.
#[test]
fn an_input_that_changes_while_it_is_copied_makes_no_output() {
    const SIZE: u64 = 48 << 20;
    let inputs = Inputs::new();
    for (tool, args) in [
        ("offload", "unbundle large HIP-gfx1100=out"),
        ("offload", "extract large --index 0 -o images"),
        ("offload", "remove large --allow-empty --index 0 -o out"),
        ("offload", "replace large HIP-gfx1100=new -o out"),
        ("offload", "bundle -o out HOST=/dev/null HIP-gfx1100=large"),
        (
            "clang-offload-bundler",
            "-type=bc -unbundle -targets=HIP-gfx1100 -input=large -output=out",
        ),
    ] {
        for moment in ["started", "reads", "writes"] {
            for grows in [false, true] {
                large_bundle(&inputs, SIZE);
                let mut child = start(&inputs, tool, args);
                wait_for("the tool is there or ends", || {
                    let is_there = match moment {
                        "started" => true,
                        "reads" => has_open(&child, &inputs.path("large")),
                        _ => written_in(&child, inputs.root()).is_some(),
                    };
                    (is_there || child.try_wait().unwrap().is_some()).then_some(())
                });
                let file = OpenOptions::new().write(true).open(inputs.path("large")).unwrap();
                let size = if grows { 2 * SIZE } else { 4096 + SIZE / 2 };
                file.set_len(size).unwrap();
                let code = child.wait().unwrap().code();
                let out = [inputs.path("out"), inputs.path("images")];
                let there = out.iter().find(|path| path.exists());
                match code {
                    Some(0) => assert!(there.is_some(), "{args}"),
                    // Never by a signal.
                    code => assert!(code == Some(1) && there.is_none(), "{args}: {code:?}"),
                }
                let _ = fs::remove_file(inputs.path("out"));
                let _ = fs::remove_dir_all(inputs.path("images"));
                let names = fs::read_dir(inputs.root()).unwrap();
                let hidden = |name: &str| name.starts_with(".offload-");
                assert!(
                    !names.into_iter().any(|e| hidden(e.unwrap().file_name().to_str().unwrap()))
                );
            }
        }
    }
}

/// So that the table above does not forget a tool.
#[test]
fn every_command_is_in_a_table() {
    let inputs = Inputs::new();
    let help = inputs.run(&words("offload", "--help", ["", ""]));
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Usage:").nth(1).unwrap().split("Options:").next().unwrap();
    let mut seen = 0;
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let command = line.split_whitespace().next().unwrap();
        let is_in = |tool: &str, args: &str| tool == "offload" && args.starts_with(command);
        let written = WRITERS.iter().any(|writer| is_in(writer.tool, writer.args));
        let read = READERS.iter().any(|(tool, args)| is_in(tool, args));
        // These commands read no file, and pages are written as images are: see `outputs`. `check` reads files as `match` and
        // `verify` do, and has a finding for one that cannot be read: see `format`. `variant` knows wheels by their names: see
        // `variants`.
        let reads_none =
            ["check", "completions", "doctor", "explain", "gpus", "help", "man", "variant", "why"]
                .contains(&command);
        assert!(written || read || reads_none, "{command}");
        seen += 1;
    }
    assert!(seen > 10, "{help}");
}
