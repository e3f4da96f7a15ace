//! Command lines with which the drop-in tools fail, and how their errors relate to those of LLVM's tools.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::new_command;

/// Relation of our error to LLVM's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words {
    /// LLVM's words, then perhaps ours.
    Llvm,
    /// Others, for this reason; `docs/differences.md` lists it.
    Ours(&'static str),
}
pub use Words::{Llvm, Ours};

/// Commands that LLVM takes without an error, and we refuse.
pub const ACCEPTED: Words = Ours("LLVM succeeds");
/// LLVM takes the file for one without bundles.
pub const DAMAGED: Words = Ours("damage is reported as such");
pub const CRASHES: Words = Ours("LLVM crashes");
pub const TARGET: Words = Ours("LLVM drops a processor that it does not know from the name");

pub const TARGETS: &str = "-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx906";

/// A file, and what the bundler does with it: unbundling, listing.
pub const BUNDLES: &[(&str, Words, Words)] = &[
    ("missing", Llvm, Llvm),
    ("dir", Llvm, Llvm),
    ("empty", Llvm, Llvm),
    ("text", Llvm, Llvm),
    ("bundle-40", DAMAGED, ACCEPTED),
    ("bundle-count", CRASHES, CRASHES),
    ("bundle-offset", ACCEPTED, ACCEPTED),
    ("bundle-size", CRASHES, ACCEPTED),
    ("ccob-40", Llvm, Llvm),
    ("ccob-stream", Llvm, Llvm),
    ("ccob-method", Llvm, Llvm),
    ("ccob-version", Ours("the version is named"), Ours("the version is named")),
];

/// The same of archives: unbundling, with `-check-input-archive`.
pub const ARCHIVES: &[(&str, Words, Words)] = &[
    ("missing", Llvm, Llvm),
    ("dir", Llvm, Llvm),
    ("empty", Llvm, Llvm),
    ("short", Llvm, Llvm),
    ("text", Llvm, Llvm),
    ("bundle", Llvm, Llvm),
    ("archive", TARGET, TARGET),
    ("archive-100", DAMAGED, DAMAGED),
];

/// Faults of the command line of the bundler.
pub const COMMANDS: &[(&str, Words)] = &[
    ("", Llvm),
    ("-type=bc -input=a.o -input=b.o -output=o", Llvm),
    ("-type=bc T -input=a.o -output=o", Llvm),
    ("-type=bc T -input=a.o -input=b.o", Llvm),
    ("T -input=a.o -input=b.o -output=o", Llvm),
    ("-type=a T -input=a.o -input=b.o -output=o", Llvm),
    ("-type=xyz T -input=a.o -input=b.o -output=o", Llvm),
    ("-type=xyz T -input=a.o -input=missing -output=o", Llvm),
    ("-type=bc T -input=a.o -input=missing -output=o", Llvm),
    ("-type=bc T -input=a.o -input=dir -output=o", Llvm),
    ("-type=o T -input=missing -input=a.o -output=o", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=o -output=p", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=none/o", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=dir", Llvm),
    ("-type=bc T -inputs=a.o,b.o -input=b.o -output=o", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=o -outputs=p", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=o -bundle-align=x", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=o -bundle-align=0", CRASHES),
    ("-type=bc T -input=a.o -input=b.o -output=o -compression-level=x", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=o -nosuch", Llvm),
    ("-type=bc T -input=a.o -input=b.o -output=o positional", Llvm),
    ("-type=bc T -input=bundle -output=o -output=p -list -unbundle", Llvm),
    ("-list -type=bc -input=bundle -output=o", Llvm),
    ("-list -type=bc -input=bundle T", Llvm),
    ("-list -type=bc", Llvm),
    ("-check-input-archive -type=bc T -input=a.o -input=b.o -output=o", Llvm),
    ("-check-input-archive -unbundle -type=bc T -input=a.o -output=o -output=p", Llvm),
    ("-unbundle -type=bc T -input=a.o -input=b.o -output=o -output=p", Llvm),
    ("-unbundle -type=bc T -input=bundle -output=o", Llvm),
    ("-unbundle -type=bc T -input=bundle -output=none/o -output=p", Llvm),
    ("-unbundle -type=bc -targets=openmp-amdgcn-amd-amdhsa--gfx908 -input=bundle -output=o", Llvm),
    ("-unbundle -type=ll -targets=hip-amdgcn-amd-amdhsa--gfx906 -input=bundle -output=o", DAMAGED),
    ("-type=bc -targets=host -input=a.o -output=o", Llvm),
    ("-type=bc -targets= -input=a.o -output=o", Llvm),
    ("-type=bc -targets=hip-amdgcn-amd-amdhsa -input=a.o -output=o", Llvm),
    ("-type=bc -targets=xyz-amdgcn-amd-amdhsa--gfx906 -input=a.o -output=o", Llvm),
    ("-type=bc -targets=hip-foo-amd-amdhsa--gfx906 -input=a.o -output=o", Llvm),
    ("-type=bc -targets=xyz-foo-amd-amdhsa--gfx906 -input=a.o -output=o", Llvm),
    ("-type=bc -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=a.o -output=o", Llvm),
    ("-type=bc -targets=host-x86_64-a-b-c,host-x86_64-a-b-c -input=a.o -input=a.o -output=o", Llvm),
    ("-type=bc -targets=host-x86_64-a-b-c,host-x86_64-d-e-f -input=a.o -input=a.o -output=o", Llvm),
];

/// A file, and what the packager does with it.
pub const PACKAGES: &[(&str, Words)] = &[
    ("missing", Llvm),
    ("dir", Llvm),
    ("package-40", Llvm),
    ("package-end", Llvm),
    ("package-version", Llvm),
    ("package-size", Llvm),
    ("package-entries", Llvm),
    ("package-more", Llvm),
    ("package-twice", Llvm),
    ("package-strings", CRASHES),
    ("archive-100", Llvm),
    ("elf", ACCEPTED),
];

/// Faults of the command line of the packager.
pub const PACKAGER: &[(&str, Words)] = &[
    ("package -o x", Llvm),
    ("-o x --image=file=missing,triple=t", Llvm),
    ("-o x --image=file=dir,triple=t", Llvm),
    ("-o x --image=triple=t", Llvm),
    ("-o none/x --image=file=a.o,triple=t", Llvm),
    ("-o dir --image=file=a.o,triple=t", Llvm),
    ("-o x --image=foo", Llvm),
    ("-o x --nosuch", Llvm),
    ("package package --image=file=x,triple=t", Llvm),
    ("package --image=triple=t --archive", Llvm),
    ("package --image=file=none/x,triple=t", Llvm),
    ("package --image=file=dir,triple=t", Llvm),
    ("package --image=file=,triple=t", Llvm),
];

/// Faults of the command line of the wrapper.
pub const WRAPPER: &[(&str, Words)] = &[
    ("", Llvm),
    ("a.o -o x", Llvm),
    ("a.o --kind=hip", Ours("`-o` is required, as in LLVM 23")),
    ("--kind=hip -o x", Llvm),
    ("a.o --kind=foo -o x", Llvm),
    ("a.o --kind=hip -o x --nosuch", Llvm),
    ("a.o --kind=hip -o none/x", Llvm),
    ("a.o --kind=hip -o dir", Llvm),
    ("missing --kind=hip -o x", Llvm),
    ("dir --kind=hip -o x", Llvm),
    ("a.o b.o --kind=hip -o x", Llvm),
    ("a.o b.o --kind=cuda -o x", Llvm),
    ("a.o --kind=hip -o x --triple=nonsense", ACCEPTED),
    ("package-end --kind=openmp -o x", ACCEPTED),
];

/// A tool of LLVM's by its name.
pub type Peer = fn(&str) -> PathBuf;

/// Files to go wrong with, made by LLVM's tools.
fn write_files(place: &Path, llvm: Peer) {
    let put = |name: &str, bytes: &[u8]| fs::write(place.join(name), bytes).unwrap();
    let run = |tool: &str, args: &str| {
        let args = args.replace('T', TARGETS);
        let mut command = new_command(llvm(tool));
        let status = command.args(args.split(' ')).current_dir(place).status().unwrap();
        assert!(status.success(), "{tool} {args}");
    };
    let with = |bytes: &[u8], at: usize, new: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    fs::create_dir(place.join("dir")).unwrap();
    put("a.o", b"hello");
    put("b.o", b"other");
    put("empty", b"");
    put("short", b"abc");
    put("text", b"a text, and no archive\n");
    put("elf", &[&b"\x7fELF"[..], &[0xff; 60]].concat());
    run("clang-offload-bundler", "-type=bc T -input=a.o -input=b.o -output=bundle");
    let bundle = fs::read(place.join("bundle")).unwrap();
    put("bundle-40", &bundle[..40]);
    put("bundle-count", &with(&bundle, 24, &[0xff; 8]));
    put("bundle-offset", &with(&bundle, 32, &[0xff; 8]));
    put("bundle-size", &with(&bundle, 40, &[0xff; 8]));
    run("clang-offload-bundler", "-type=bc T -input=a.o -input=b.o -output=ccob -compress");
    let ccob = fs::read(place.join("ccob")).unwrap();
    put("ccob-40", &ccob[..40]);
    put("ccob-stream", &with(&ccob, 40, &[0xff; 4]));
    put("ccob-version", &with(&ccob, 4, &[9]));
    put("ccob-method", &with(&ccob, 6, &[7]));
    run("llvm-offload-binary", "-o package --image=file=a.o,triple=t,arch=x,kind=hip");
    let package = fs::read(place.join("package")).unwrap();
    put("package-40", &package[..40]);
    put("package-end", &package[..package.len() - 3]);
    put("package-more", &[&package, &b"more than a package"[..]].concat());
    put("package-twice", &[&package, &package[..100]].concat());
    put("package-version", &with(&package, 4, &[99]));
    put("package-size", &with(&package, 8, &[0xff; 8]));
    put("package-entries", &with(&package, 16, &[0xff; 8]));
    put("package-strings", &with(&package, 48, &[0xff; 8]));
    run("llvm-ar", "rc archive bundle a.o");
    put("archive-100", &fs::read(place.join("archive")).unwrap()[..100]);
}

/// The first line of an error, after the name of the tool; none if all went well.
fn error(tool: &Path, place: &Path, args: &str) -> Option<String> {
    let args = args.replace('T', TARGETS);
    let output = new_command(tool)
        .args(args.split(' ').filter(|arg| !arg.is_empty()))
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = tool.display().to_string();
    let line = text.lines().find(|line| !line.contains("warning: ")).unwrap_or_default();
    (!output.status.success()).then(|| line.replace(&name, "tool"))
}

/// LLVM's words without details that are a codec's or a parser's own.
fn general(line: &str) -> &str {
    let line = line.split_once("contents: Src size").map_or(line, |(line, _)| line);
    line.split_once(" (").map_or(line, |(line, _)| line)
}

/// Compares the errors of LLVM's tool and ours, which gets these options. `more` adds files.
pub fn compare_with(
    (tool, llvm): (&str, Peer),
    (ours, options): (&str, &str),
    cases: &[(String, Words)],
    more: fn(&Path),
) {
    let place = tempfile::tempdir().unwrap();
    write_files(place.path(), llvm);
    more(place.path());
    let mut complaints = Vec::new();
    for (args, words) in cases {
        let theirs = error(&llvm(tool), place.path(), args);
        let found = error(&PathBuf::from(ours), place.path(), &format!("{options} {args}"));
        let same = match (&theirs, &found) {
            (Some(theirs), Some(found)) => found.starts_with(general(theirs)),
            _ => false,
        };
        if same != (*words == Llvm) || found.is_none() {
            complaints.push(format!("{args}\n  LLVM: {theirs:?}\n  ours: {found:?}, {words:?}"));
        }
    }
    assert!(complaints.is_empty(), "{tool}\n{}", complaints.join("\n"));
}

pub fn cases(cases: &[(&str, Words)]) -> Vec<(String, Words)> {
    cases.iter().map(|(args, words)| ((*args).to_owned(), *words)).collect()
}

/// The cases, but with these words for the commands that contain a text.
pub fn except(
    mut cases: Vec<(String, Words)>,
    exceptions: &[(&str, Words)],
) -> Vec<(String, Words)> {
    for (text, words) in exceptions {
        let mut found = 0;
        for (args, expected) in cases.iter_mut().filter(|(args, _)| args.contains(text)) {
            assert_ne!(expected, words, "{args}");
            *expected = *words;
            found += 1;
        }
        assert!(found > 0, "{text}");
    }
    cases
}

/// All cases of the bundler.
pub fn bundler_cases() -> Vec<(String, Words)> {
    let mut all = cases(COMMANDS);
    for (file, unbundle, list) in BUNDLES {
        let args = format!("-unbundle -type=bc T -output=o -output=p -input={file}");
        all.push((args, *unbundle));
        // LLVM lists nothing of a file that is not a bundle, and succeeds.
        if !matches!(*file, "empty" | "text") {
            all.push((format!("-list -type=bc -input={file}"), *list));
        }
    }
    for (file, unbundle, checked) in ARCHIVES {
        let target = "-targets=hip-amdgcn-amd-amdhsa--gfx907";
        let args = format!("-unbundle -type=a {target} -output=o -input={file}");
        all.push((format!("{args} -check-input-archive"), *checked));
        all.push((args, *unbundle));
    }
    all
}

/// Extraction from these files, into files and into archives.
pub fn extractions(files: &[(&str, Words)]) -> Vec<(String, Words)> {
    let mut all = Vec::new();
    for (file, words) in files {
        all.push((format!("{file} --image=file=x,triple=t"), *words));
        all.push((format!("{file} --image=file=x,triple=t --archive"), *words));
    }
    all
}
