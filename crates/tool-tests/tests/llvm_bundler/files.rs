//! Files to bundle and bundles to take apart, and command lines that name them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use samples::bundle::bundle;

use super::harness::{Case, VARIABLES, llvm, run, theirs};
use crate::common::{Random, new_command};

/// The directory of the files that all runs share: contents of all kinds, made once.
pub fn inputs() -> &'static Path {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    PLACE.get_or_init(make_inputs).path()
}

pub fn compile(target: &str, arguments: &[&str], output: &Path) {
    let source = output.with_extension("c");
    fs::write(
        &source,
        "int a = 5; int f(int x) { return x + a; } static int b; int *g(void) { return &b; }",
    )
    .unwrap();
    let status = new_command(llvm("clang"))
        .arg(format!("--target={target}"))
        .args(["-nogpulib", "-nogpuinc", "-c"])
        .args(arguments)
        .arg(&source)
        .arg("-o")
        .arg(output)
        .status()
        .unwrap();
    assert!(status.success());
    fs::remove_file(source).unwrap();
}

pub fn make_inputs() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let mut random = Random::new(11);
    for nth in 0..6 {
        let mut lines = String::new();
        for line in 0..random.below(30) {
            writeln!(lines, "line {line} of text {nth}, {}", random.next()).unwrap();
        }
        fs::write(at(&format!("text{nth}")), &lines).unwrap();
        let bytes: Vec<u8> =
            (0..1 + random.below(5000)).map(|_| random.next().to_le_bytes()[0]).collect();
        fs::write(at(&format!("binary{nth}")), bytes).unwrap();
    }
    fs::write(at("empty"), "").unwrap();
    fs::write(at("zero"), [0]).unwrap();
    fs::write(at("unfinished"), "no newline at the end").unwrap();
    fs::write(at("crlf"), "dos\r\nlines\r\n").unwrap();
    fs::write(at("newlines"), "\n\n\n").unwrap();
    fs::write(at("large"), "the same again and again\n".repeat(3000)).unwrap();
    fs::write(at("name with space"), "quoted").unwrap();
    compile("x86_64-linux-gnu", &["-O1"], &at("host.o"));
    compile("x86_64-linux-gnu", &["-O0", "-g", "-ffunction-sections"], &at("debug.o"));
    compile("i386-linux-gnu", &["-O1"], &at("host32.o"));
    compile("powerpc64-linux-gnu", &["-O1"], &at("hostbe.o"));
    compile(
        "x86_64-pc-windows-msvc",
        &["-O1", "-mno-incremental-linker-compatible"],
        &at("host.obj"),
    );
    compile("amdgcn-amd-amdhsa", &["-O1", "-mcpu=gfx906"], &at("device.o"));
    compile("amdgcn-amd-amdhsa", &["-O1", "-mcpu=gfx90a", "-emit-llvm"], &at("device.bc"));
    compile("x86_64-linux-gnu", &["-O1", "-emit-llvm"], &at("host.bc"));
    fs::create_dir(at("directory")).unwrap();
    place
}

/// Words as a shell splits them: `''` is an empty one.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| if word == "''" { "" } else { word }.to_owned()).collect()
}

pub fn case(line: &str) -> Case {
    let mut args = words(line);
    let variables = args.iter().take_while(|word| {
        VARIABLES.iter().any(|v| word.strip_prefix(v).is_some_and(|rest| rest.starts_with('=')))
    });
    let count = variables.count();
    let env = args
        .drain(..count)
        .map(|word| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect();
    Case { args, env, ..Case::default() }
}

/// `H`, `D` and `E` in the lines below.
pub const TARGETS: [(&str, &str); 3] = [
    ("H", "host-x86_64-unknown-linux-gnu"),
    ("D", "hip-amdgcn-amd-amdhsa--gfx906"),
    ("E", "openmp-amdgcn-amd-amdhsa--gfx90a"),
];

/// A command line: words, `H`, `D` and `E` for the targets above after `targets=`, variables first.
pub fn line(text: &str) -> Case {
    let mut case = case(text);
    for arg in &mut case.args {
        if let Some((option, list)) = arg.split_once("targets=") {
            let list: Vec<_> = list
                .split(',')
                .map(|name| TARGETS.iter().find(|(short, _)| *short == name).map_or(name, |t| t.1))
                .collect();
            *arg = format!("{option}targets={}", list.join(","));
        }
    }
    for (name, bytes) in sample_bundles().iter().chain(odd_files()) {
        if case.args.iter().any(|arg| arg.contains(name)) {
            case.files.insert((*name).to_owned(), bytes.clone());
        }
    }
    for (name, text) in RESPONSES {
        if case.args.iter().any(|arg| arg.contains(name)) {
            case.files.insert((*name).to_owned(), text.as_bytes().to_vec());
        }
    }
    case
}

/// An archive of the bundles, of a bundle of each form, and of members without one.
pub fn make_archive(place: &Path) -> Vec<u8> {
    let samples = sample_bundles();
    for (name, bytes) in [
        ("first.o", &samples["bundle.o"]),
        ("second.bc", &samples["bundle.bc"]),
        ("a-member-of-a-long-name.o", &samples["bundle.bc"]),
        ("packed.dot.bc", &samples["bundle.ccob"]),
    ] {
        fs::write(place.join(name), bytes).unwrap();
    }
    let status = new_command(llvm("llvm-ar"))
        .args([
            "rcs",
            "made.a",
            "first.o",
            "second.bc",
            "a-member-of-a-long-name.o",
            "packed.dot.bc",
        ])
        .args(["text0", "host.o", "empty"].map(|name| inputs().join(name)))
        .current_dir(place)
        .status()
        .unwrap();
    assert!(status.success());
    fs::read(place.join("made.a")).unwrap()
}

/// Damaged and odd files, by name.
pub fn odd_files() -> &'static BTreeMap<&'static str, Vec<u8>> {
    static FILES: OnceLock<BTreeMap<&'static str, Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let samples = sample_bundles();
        let (plain, text, packed) =
            (&samples["bundle.bc"], &samples["bundle.s"], &samples["bundle.ccob"]);
        let mut wrong_hash = packed.clone();
        wrong_hash[24] ^= 1;
        let mut cut_packed = packed.clone();
        cut_packed.truncate(packed.len() - 5);
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let two = [&packed[..], &[0; 100], packed].concat();
        let archive = make_archive(tempfile::tempdir().unwrap().path());
        BTreeMap::from([
            ("lib.a", archive.clone()),
            ("cut.a", archive[..archive.len() - 2000].to_vec()),
            ("cut-in-table", plain[..100].to_vec()),
            ("cut-in-count", plain[..28].to_vec()),
            ("cut-in-image", plain[..plain.len() - 1].to_vec()),
            ("trailing-zeros", [&plain[..], &[0; 64]].concat()),
            ("two-plain", [&plain[..], &plain[..]].concat()),
            ("two-packed", two),
            ("packed-and-zeros", [&packed[..], &[0; 64]].concat()),
            ("wrong-hash", wrong_hash),
            ("cut-packed", cut_packed),
            ("first-line", text[1..].to_vec()),
            ("junk-before", [b"junk\n", &plain[..]].concat()),
            ("three-fields", string_bundle("openmp-amdgcn-amd-amdhsa-gfx906")),
            ("same-id-twice", string_bundle(HOSTS_ID)),
            ("crlf-text", string(text).replace('\n', "\r\n").into_bytes()),
        ])
    })
}

pub const HOSTS_ID: &str = "host-x86_64-unknown-linux-gnu-";

/// A binary bundle of the host and one more image.
pub fn string_bundle(id: &str) -> Vec<u8> {
    bundle(&[(HOSTS_ID, b"h"), (id, b"d")], 1)
}

pub const RESPONSES: [(&str, &str); 4] = [
    ("plain.rsp", "-type=s --targets=host-x86_64-unknown-linux-gnu\n-input=in/text0\t-output=out"),
    (
        "quoted.rsp",
        "'-type=s' \"--targets=host-x86_64-unknown-linux-gnu\" -input='in/name with space' -output=o\\ ut",
    ),
    ("nested.rsp", "@plain.rsp -verbose"),
    ("empty.rsp", ""),
];

/// Bundles of `H`, `D` and `E`, made by LLVM, by name: one of each form.
pub fn sample_bundles() -> &'static BTreeMap<&'static str, Vec<u8>> {
    static SAMPLES: OnceLock<BTreeMap<&'static str, Vec<u8>>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        [
            ("bundle.bc", "-type=bc -targets=H,D,E -input=in/host.bc -input=in/binary0 -input=in/device.bc"),
            ("bundle.s", "-type=s -targets=H,D,E -input=in/text0 -input=in/text1 -input=in/unfinished"),
            ("bundle.o", "-type=o -targets=H,D,E -input=in/host.o -input=in/device.o -input=in/binary1"),
            ("bundle.ccob", "-type=bc -compress -targets=H,D,E -input=in/host.bc -input=in/binary0 -input=in/device.bc"),
            (
                "bundle.ccob2",
                "COMPRESSED_BUNDLE_FORMAT_VERSION=2 -type=s -compress -targets=H,D,E -input=in/text0 -input=in/text1 -input=in/large",
            ),
        ]
        .into_iter()
        .map(|(name, text)| {
            let mut case = case(&format!("{text} -output=out"));
            for arg in &mut case.args {
                if arg.starts_with("-targets=") {
                    *arg = format!("-targets={},{},{}", TARGETS[0].1, TARGETS[1].1, TARGETS[2].1);
                }
            }
            (name, run(&theirs(), &case).bytes("out").to_vec())
        })
        .collect()
    })
}
