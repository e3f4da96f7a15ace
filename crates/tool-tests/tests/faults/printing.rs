//! Readers of the output that leave early, and outputs without room.

use std::fs::File;
use std::io::pipe;
use std::process::Stdio;

use super::refuses;
use super::table::{Inputs, words};
use crate::common::stderr;

/// Everything that prints to standard output.
const PRINTERS: &[(&str, &str)] = &[
    ("offload", "--help"),
    ("offload", "-h"),
    ("offload", "--version"),
    ("offload", "help thin"),
    ("offload", "wrap --help"),
    ("offload", "completions zsh"),
    ("offload", "gpus"),
    ("offload", "why hipErrorNoBinaryForGpu"),
    ("offload", "gpus --json"),
    ("offload", "gpus --format csv"),
    ("offload", "explain targets/missing"),
    ("offload", "check --require gfx1100 hip.o"),
    ("offload", "check --require gfx1100 --format sarif hip.o"),
    ("offload", "ls --format markdown hip.o"),
    ("offload", "ls --format ndjson hip.o"),
    ("offload", "verify --format junit hip.o"),
    ("offload", "extract four -o images --json"),
    ("offload", "man"),
    ("offload", "man clang-offload-bundler"),
    ("offload", "ls hip.o"),
    ("offload", "ls --tree hip.o"),
    ("offload", "ls --json hip.o"),
    ("offload", "match --gpu gfx1100 hip.o"),
    ("offload", "match --gpu gfx1100 --json hip.o"),
    ("offload", "size hip.o"),
    ("offload", "size --by kernel --json hip.o"),
    ("offload", "verify hip.o"),
    ("offload", "extract four -o images"),
    ("offload", "extract four --index 1 --stdout"),
    ("offload", "bundle -o out HOST=/dev/null HIP-gfx1100=new"),
    ("offload", "bundle --json -o out HOST=/dev/null HIP-gfx1100=new"),
    ("offload", "bundle -o - HOST=/dev/null HIP-gfx1100=new"),
    ("offload", "unbundle four HIP-gfx1100=out"),
    ("offload", "unbundle four HIP-gfx1100=out HIP-gfx90a:sramecc+:xnack-=-"),
    ("offload", "pack -o out kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx1100,file=new"),
    ("offload", "pack -o - kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx1100,file=new"),
    ("offload", "thin four -o out --keep gfx1100"),
    ("offload", "thin four -o out --keep gfx1100 --json"),
    ("offload", "thin four -o - --keep gfx1100"),
    ("offload", "shrink four -o out --gpu gfx1100 --why"),
    ("offload", "shrink four --gpu gfx1100 --plan --json"),
    ("offload", "compress four -o -"),
    ("offload", "wrap --kind hip --triple x86_64-unknown-linux-gnu -o - four"),
    ("clang-offload-bundler", "--help"),
    ("clang-offload-bundler", "--version"),
    ("clang-offload-bundler", "-list -type=o -input=bundle.o"),
    ("clang-offload-bundler", "-type=bc -unbundle -targets=HIP-gfx1100 -input=four -output=-"),
    (
        "clang-offload-bundler",
        "-type=a -unbundle -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=libbundles.a -output=-",
    ),
    ("llvm-offload-binary", "--help"),
    ("llvm-offload-binary", "packages.offload"),
    ("llvm-offload-binary", "packages.offload --image=file=-,arch=gfx90a"),
    ("llvm-offload-wrapper", "--kind=hip --triple=x86_64-unknown-linux-gnu -o - four"),
    ("offload", "fatbin -o - --image asm"),
    ("fatbinary", "--help"),
    ("roc-obj-ls", "-v four"),
    ("split_python_wheels", "--help"),
    ("roc-obj-extract", "--help"),
    ("roc-obj-extract", "-v file://four"),
    ("roc-obj-extract", "file://four -o -"),
];

#[test]
fn a_reader_that_leaves_ends_a_tool_quietly() {
    for &(tool, args) in PRINTERS {
        let inputs = Inputs::new();
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = inputs.command(&words(tool, args, ["", ""])).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{tool} {args}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{tool} {args}");
    }
}

#[test]
fn output_that_cannot_be_printed_is_an_error() {
    for &(tool, args) in PRINTERS {
        let inputs = Inputs::new();
        let full = File::create("/dev/full").unwrap();
        let output = inputs.command(&words(tool, args, ["", ""])).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{tool} {args}: {}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains("<stdout>: No space left on device"), "{tool} {args}: {text}");
        assert_eq!(text.lines().filter(|line| line.contains("No space")).count(), 1, "{text}");
    }
}

#[test]
fn unprinted_errors_keep_the_exit_status() {
    let inputs = Inputs::new();
    for (tool, args, code) in [
        ("offload", "ls none", 1),
        ("offload", "verify none", 1),
        ("offload", "--bad", 2),
        ("offload", "thin four --in-place --keep gfx1234", 1),
        ("offload", "bundle -o out HOST=none", 1),
        ("clang-offload-bundler", "-list -type=bc -input=none", 1),
        ("clang-offload-bundler", "-list -type=bc -input=host.o", 0),
        ("clang-offload-bundler", "--bad", 1),
        ("llvm-offload-binary", "none", 1),
        ("clang-offload-packager", "--bad", 1),
        ("llvm-offload-wrapper", "-o out none", 1),
    ] {
        let (reader, closed) = pipe().unwrap();
        drop(reader);
        for stderr in [Stdio::from(File::create("/dev/full").unwrap()), Stdio::from(closed)] {
            let words = words(tool, args, ["", ""]);
            let status = inputs.command(&words).stdout(Stdio::null()).stderr(stderr).status();
            assert_eq!(status.unwrap().code(), Some(code), "{tool} {args}");
        }
    }
}

#[test]
fn a_tool_runs_without_any_standard_stream() {
    let inputs = Inputs::new();
    for &(tool, args) in PRINTERS {
        let mut script: Vec<String> =
            ["sh", "-c", "exec <&- >&- 2>&-; \"$0\" \"$@\""].map(String::from).into();
        script.extend(words(tool, args, ["", ""]));
        let status = inputs.command(&script).status().unwrap();
        assert_eq!(status.code(), Some(i32::from(prints_data(args))), "{tool} {args}");
    }
}

/// Returns whether it prints what a file would hold.
fn prints_data(args: &str) -> bool {
    ["--stdout", "-o - ", "=-,"].iter().any(|part| args.contains(part)) || args.ends_with('-')
}

/// Rust's runtime opens `/dev/null` for reading and writing in its place. Some callers do as well, to hear nothing.
#[test]
fn closed_standard_output_is_an_error_for_data() {
    let inputs = Inputs::new();
    let mut data = 0;
    for &(tool, args) in PRINTERS {
        let line = words(tool, args, ["", ""]);
        let mut closed: Vec<String> =
            ["sh", "-c", "exec >&-; \"$0\" \"$@\""].map(String::from).into();
        closed.extend_from_slice(&line);
        let closed = inputs.run(&closed);
        let null = |reads: bool| {
            let null = File::options().read(reads).write(true).open("/dev/null").unwrap();
            inputs.command(&line).stdout(null).output().unwrap()
        };
        for output in [&closed, &null(true)] {
            if prints_data(args) {
                refuses(output, &["<stdout>: closed"], args);
            } else {
                assert_eq!(output.status.code(), Some(0), "{tool} {args}");
            }
        }
        assert_eq!(null(false).status.code(), Some(0), "{tool} {args}");
        data += usize::from(prints_data(args));
    }
    assert!(data > 8, "{data}");
}
