//! Inputs that may have no end, and paths that are not inputs.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::process::{Output, Stdio};

use super::inputs::READERS;
use super::table::{Inputs, words};
use super::{is_unchanged, refuses, snapshot};
use crate::common::{new_command, stderr, stdout};

fn run(inputs: &Inputs, words: &[String], stdin: impl Into<Stdio>) -> Output {
    inputs.command(words).stdin(stdin).output().unwrap()
}

#[test]
fn devices_are_refused() {
    let inputs = Inputs::new();
    let before = snapshot(inputs.root());
    for &(tool, args) in READERS {
        for device in ["/dev/zero", "/dev/urandom", "/dev/full"] {
            let output = inputs.run(&words(tool, args, [device, ""]));
            refuses(&output, &[device, "is a device: expected a file or a pipe"], args);
            let words = words(tool, args, ["-", ""]);
            let output = run(&inputs, &words, File::open(device).unwrap());
            refuses(&output, &["is a device: expected a file or a pipe"], args);
        }
        // It is empty, by whatever name.
        std::os::unix::fs::symlink("/dev/null", inputs.path("null")).unwrap();
        let empty = inputs.run(&words(tool, args, ["/dev/null", ""]));
        let named = inputs.run(&words(tool, args, ["null", ""]));
        assert_eq!(named.status.code(), empty.status.code(), "{tool} {args}");
        for made in ["null", "out"] {
            let _ = fs::remove_file(inputs.path(made));
        }
        is_unchanged(inputs.root(), &before, args);
    }
}

#[test]
fn pipes_are_read_up_to_a_limit() {
    let inputs = Inputs::new();
    let before = snapshot(inputs.root());
    let bytes = fs::read(inputs.path("four")).unwrap();
    for &(tool, args) in READERS {
        if tool != "offload" {
            continue;
        }
        let with_limit = |limit: usize| {
            let mut line = words(tool, args, ["-", ""]);
            line.splice(2..2, ["--max-input".to_owned(), limit.to_string()]);
            line
        };
        let piped = |limit: usize| {
            let mut command = inputs.command(&with_limit(limit));
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // A tool that reads no further is gone already.
            let _ = child.stdin.take().unwrap().write_all(&bytes);
            child.wait_with_output().unwrap()
        };
        let output = piped(bytes.len() - 1);
        refuses(&output, &["exceeds the limit of ", "for standard input and pipes"], args);
        is_unchanged(inputs.root(), &before, args);
        let right = inputs.run(&words(tool, args, ["four", ""])).status.code();
        let output = piped(bytes.len());
        assert_eq!(output.status.code(), right, "{args}: {}", stderr(&output));
        // A file is not copied, so it has no limit.
        let output = run(&inputs, &with_limit(1), File::open(inputs.path("four")).unwrap());
        assert_eq!(output.status.code(), right, "{args}: {}", stderr(&output));
        let _ = fs::remove_file(inputs.path("out"));
        let _ = fs::remove_dir_all(inputs.path("images"));
    }
}

/// The input is the rest of the file.
#[test]
fn standard_input_may_be_a_file_that_was_read_from() {
    let inputs = Inputs::new();
    let four = fs::read(inputs.path("four")).unwrap();
    fs::write(inputs.path("later"), [b"read", &four[..]].concat()).unwrap();
    let mut later = File::open(inputs.path("later")).unwrap();
    later.seek(SeekFrom::Start(4)).unwrap();
    let line = words("offload", "ls --json -", ["", ""]);
    let output = run(&inputs, &line, later);
    let right = run(&inputs, &line, File::open(inputs.path("four")).unwrap());
    assert!(right.status.success(), "{}", stderr(&right));
    assert_eq!(stdout(&output), stdout(&right));
}

#[test]
fn closed_standard_input_is_an_error() {
    let inputs = Inputs::new();
    let before = snapshot(inputs.root());
    for &(tool, args) in READERS {
        let mut script: Vec<String> =
            ["sh", "-c", "exec <&-; \"$0\" \"$@\""].map(String::from).into();
        script.extend(words(tool, args, ["-", ""]));
        let output = inputs.run(&script);
        refuses(&output, &["closed"], &format!("{tool} {args}"));
        is_unchanged(inputs.root(), &before, args);
    }
}

#[test]
fn files_of_the_kernel_are_regular() {
    let inputs = Inputs::new();
    let nodes = inputs.path("sys/class/kfd/kfd/topology/nodes/0");
    fs::create_dir_all(&nodes).unwrap();
    let line = words("offload", "ls --target native=. OUT", ["four", ""]);
    for is_device in [false, true] {
        let file = nodes.join("properties");
        if is_device {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", file).unwrap();
        } else {
            assert!(new_command("mkfifo").arg(file).status().unwrap().success());
        }
        refuses(&inputs.run(&line), &["no GPU found in ./sys"], "native");
    }
}
