//! Editing device code in PE files as LLVM's and GNU's linkers make them, and the answers of loaders and tools after
//! that.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, and Debian's `binutils-mingw-w64-x86-64`; fails without
//! them. `--ignored` runs the tests that need Wine, in `/usr/lib/wine/wine64` or where `WINE` points.

#[path = "../edit_pe/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Output;

use crate::common::{self, llvm, new_command, offload, stderr};
use rig::dlls::{Dlls, PACKED, PLAIN, SIGNED, TARGETS, accepted, mingw, quiet};
use rig::loader::{Headers, load, registered};
use rig::wine::Wine;

/// Images of each wrapper.
type Registered = Vec<BTreeMap<String, Vec<u8>>>;

fn keep(all: &Registered, targets: &[&str]) -> Registered {
    let kept = |id: &&String| targets.iter().any(|target| id.ends_with(target));
    let filter = |images: &BTreeMap<String, Vec<u8>>| {
        let images = images.iter().filter(|(id, _)| kept(id));
        images.map(|(id, image)| (id.clone(), image.clone())).collect()
    };
    all.iter().map(filter).collect()
}

fn run(args: &[&str]) -> Output {
    offload(args)
}

fn ok(args: &[&str]) -> Output {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

/// Directory for the outputs of a test.
struct Outputs(tempfile::TempDir);

impl Outputs {
    fn new() -> Self {
        Outputs(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

fn input(name: &str) -> String {
    Dlls::shared().path(name).to_str().unwrap().to_owned()
}

/// Memory is what it was, except headers, device code, pointers of wrappers and offsets in the debug directory.
fn same_memory(old: &[u8], new: &[u8]) {
    let headers = Headers::of(old);
    let ((before, _), (mut after, _)) = (load(old), load(new));
    let mut may_differ = vec![0..headers.headers_size];
    for section in headers.named(".hip_fat") {
        may_differ.push(section.memory.start..section.memory.end.next_multiple_of(4096));
    }
    for section in headers.named(".hipFatB") {
        let pointers = section.memory.clone().step_by(24).map(|at| at + 8..at + 16);
        may_differ.extend(pointers);
    }
    let debug = headers.directory(old, 6);
    may_differ.extend(debug.step_by(28).map(|at| at + 24..at + 28));
    for range in may_differ {
        after[range.clone()].copy_from_slice(&before[range]);
    }
    assert!(before == after[..before.len()]);
}

/// The sum of the file's words, as the loader compares it with the field CheckSum.
fn checksum(file: &[u8]) -> usize {
    let mut file = file.to_vec();
    let at = Headers::of(&file).optional + 64;
    file[at..at + 4].fill(0);
    let mut sum = 0;
    for word in file.chunks(2) {
        sum += usize::from(word[0]) + usize::from(*word.get(1).unwrap_or(&0)) * 256;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum + file.len()
}

#[test]
fn thinned_files_have_the_kept_images() {
    let (dlls, outputs) = (Dlls::shared(), Outputs::new());
    for name in PLAIN {
        let old = dlls.read(name);
        let before = registered(&old);
        assert_eq!(before.len(), 3, "{name}");
        assert!(before.iter().all(|images| images.len() == 3), "{name}");
        for target in TARGETS {
            let (input, output) = (input(name), outputs.path(&format!("{target}-{name}")));
            let said = ok(&["thin", &input, "--keep", target, "-o", &output]);
            let new = fs::read(&output).unwrap();
            assert!(registered(&new) == keep(&before, &[target]), "{name} {target}");
            same_memory(&old, &new);
            accepted(Path::new(&output));
            // The images of the others are gone, but where bundles had to stay in a section that cannot be split.
            let images = |all: &Registered| {
                all.iter().flat_map(BTreeMap::values).map(Vec::len).sum::<usize>()
            };
            let gone = images(&before) - images(&registered(&new));
            let alignment = Headers::of(&old).file_alignment;
            match name {
                "gnu-pinned.dll" | "arm64x-pinned.dll" => {
                    assert!(stderr(&said).contains("zero"), "{}", stderr(&said));
                }
                _ => assert!(old.len() - new.len() + 2 * alignment > gone, "{name} {target}"),
            }
            let checked = Headers::of(&new).checksum;
            assert!(checked == 0 || checked == checksum(&new), "{name} {target}");
            assert_eq!(checked == 0, Headers::of(&old).checksum == 0, "{name}");
            // Once more, and in two steps
            let again = outputs.path("again.dll");
            ok(&["thin", &output, "--keep", target, "-o", &again]);
            assert!(fs::read(&again).unwrap() == new, "{name} {target}");
            let two = format!("{target},{}", if target == "gfx90a" { "gfx1030" } else { "gfx90a" });
            ok(&["thin", &input, "--keep", &two, "-o", &again]);
            ok(&["thin", &again, "--keep", target, "--in-place"]);
            assert!(fs::read(&again).unwrap() == new, "{name} {target}");
        }
    }
}

#[test]
fn linkers_checksums_are_ours() {
    let dlls = Dlls::shared();
    for name in ["release.dll", "gnu.dll"] {
        let file = dlls.read(name);
        assert_eq!(Headers::of(&file).checksum, checksum(&file), "{name}");
    }
}

#[test]
fn compressing_is_undone_by_decompressing() {
    let (dlls, outputs) = (Dlls::shared(), Outputs::new());
    for name in PLAIN {
        let old = dlls.read(name);
        let (input, output) = (input(name), outputs.path("compressed.dll"));
        ok(&["compress", &input, "-o", &output]);
        let new = fs::read(&output).unwrap();
        assert!(new.len() * 2 < old.len(), "{name}: {} {}", old.len(), new.len());
        assert!(registered(&new) == registered(&old), "{name}");
        same_memory(&old, &new);
        accepted(Path::new(&output));
        ok(&["decompress", &output, "--in-place"]);
        assert!(fs::read(&output).unwrap() == old, "{name}");
    }
}

#[test]
fn bundles_compressed_by_the_compiler_grow_on_request() {
    let outputs = Outputs::new();
    let input = input(PACKED);
    let old = fs::read(&input).unwrap();
    let output = outputs.path("decompressed.dll");
    let said = run(&["decompress", &input, "-o", &output]);
    assert_eq!(said.status.code(), Some(1));
    assert!(stderr(&said).contains("--grow") && !Path::new(&output).exists());
    ok(&["decompress", &input, "--grow", "-o", &output]);
    let new = fs::read(&output).unwrap();
    assert!(registered(&new) == registered(&old));
    same_memory(&old, &new);
    accepted(Path::new(&output));
    assert_eq!(Headers::of(&new).named(".hip_old").len(), 1);
    // There it can be thinned, and compressed and back.
    ok(&["compress", &output, "--in-place"]);
    ok(&["decompress", &output, "--in-place"]);
    assert!(fs::read(&output).unwrap() == new);
    ok(&["thin", &output, "--keep", "gfx90a", "--in-place"]);
    let thin = fs::read(&output).unwrap();
    assert!(registered(&thin) == keep(&registered(&old), &["gfx90a"]));
    // Thinned as it is, it stays compressed.
    ok(&["thin", &input, "--keep", "gfx90a", "-o", &output]);
    let thin = fs::read(&output).unwrap();
    assert!(registered(&thin) == keep(&registered(&old), &["gfx90a"]) && thin.len() < old.len());
}

#[test]
fn images_are_replaced_by_larger_and_smaller_ones() {
    let (dlls, outputs) = (Dlls::shared(), Outputs::new());
    let image = outputs.path("image");
    for name in PLAIN {
        let old = dlls.read(name);
        let before = registered(&old);
        let id = before[0].keys().find(|id| id.ends_with("gfx1100")).unwrap();
        let (input, output) = (input(name), outputs.path("replaced.dll"));
        for size in [5_000, 300_000] {
            let mut bytes = before[0][id][..4_000].to_vec();
            bytes.resize(size, 7);
            fs::write(&image, &bytes).unwrap();
            let what = format!("{id}={image}");
            let args = ["replace", &input, &what, "--in", "bundle:0", "-o", &output, "--any-image"];
            if size > 100_000 {
                let said = run(&args);
                assert_eq!(said.status.code(), Some(1), "{name}");
                assert!(stderr(&said).contains("--grow"), "{}", stderr(&said));
            }
            let said = run(&[&args[..], &["--grow"]].concat());
            if size > 100_000 && name.contains("pinned") {
                assert_eq!(said.status.code(), Some(1), "{name}");
                assert!(stderr(&said).contains("bundle 1 must move, but 0x"), "{}", stderr(&said));
                continue;
            }
            assert!(said.status.success(), "{name}: {}", stderr(&said));
            let new = fs::read(&output).unwrap();
            let mut expected = before.clone();
            expected[0].insert(id.clone(), bytes.clone());
            assert!(registered(&new) == expected, "{name} {size}");
            same_memory(&old, &new);
            accepted(Path::new(&output));
        }
    }
}

#[test]
fn signed_files_keep_or_lose_their_signature() {
    let outputs = Outputs::new();
    let input = input(SIGNED);
    let old = fs::read(&input).unwrap();
    let output = outputs.path("unsigned.dll");
    let said = run(&["thin", &input, "--keep", "gfx1100", "-o", &output]);
    assert_eq!(said.status.code(), Some(1));
    assert!(stderr(&said).contains("signed") && !Path::new(&output).exists());
    ok(&["thin", &input, "--keep", "gfx1100", "-o", &output, "--drop-signature"]);
    let new = fs::read(&output).unwrap();
    let headers = Headers::of(&new);
    assert_eq!(headers.directory(&new, 4), 0..0);
    assert_eq!(headers.checksum, checksum(&new));
    assert!(registered(&new) == keep(&registered(&old), &["gfx1100"]));
    accepted(Path::new(&output));
}

#[test]
fn edited_files_survive_other_tools() {
    let outputs = Outputs::new();
    for name in PLAIN {
        let (input, thin) = (input(name), outputs.path("thin.dll"));
        ok(&["thin", &input, "--keep", "gfx1100", "-o", &thin]);
        let expected = registered(&fs::read(&thin).unwrap());
        let is_gnu = name.starts_with("gnu");
        let tools: [(Command, &[&str], bool); 6] = [
            (new_command(llvm("llvm-strip")), &["-o"], true),
            (new_command(llvm("llvm-strip")), &["--strip-debug", "-o"], true),
            (new_command(llvm("llvm-objcopy")), &[], true),
            // GNU's tools take sections without contents out of their order, in the linkers' own files, too.
            (mingw("strip"), &["-o"], is_gnu),
            (mingw("strip"), &["-g", "-o"], is_gnu),
            (mingw("objcopy"), &[], is_gnu),
        ];
        for (mut tool, args, is_sound) in tools {
            if !is_sound {
                continue;
            }
            let output = outputs.path("tool.dll");
            match args {
                [] => quiet(tool.args([&thin, &output])),
                _ => quiet(tool.args(args).args([&output, &thin])),
            }
            assert!(registered(&fs::read(&output).unwrap()) == expected, "{name} {tool:?}");
            ok(&["compress", &output, "--in-place"]);
            assert!(registered(&fs::read(&output).unwrap()) == expected, "{name} {tool:?}");
        }
    }
}

#[test]
fn extracted_images_are_unchanged() {
    let (dlls, outputs) = (Dlls::shared(), Outputs::new());
    for name in ["plain.dll", "gnu.dll", PACKED] {
        let all = common::ls(&dlls.path(name));
        for target in TARGETS {
            let output = outputs.path("thin.dll");
            ok(&["thin", &input(name), "--keep", target, "-o", &output]);
            let output = Path::new(&output);
            let kept = common::ls(output).into_iter().filter(|row| row.target.is_some());
            let wanted = all.iter().filter(|row| row.target.as_deref() == Some(target));
            let mut images = 0;
            for (new, old) in kept.zip(wanted) {
                let (new, old) = (
                    common::extract(output, new.index),
                    common::extract(&dlls.path(name), old.index),
                );
                assert!(new == old, "{name} {target}");
                images += 1;
            }
            assert_eq!(images, 3, "{name} {target}");
        }
    }
}

#[test]
#[ignore = "needs Wine"]
fn wine_loads_what_was_edited() {
    let (dlls, outputs, wine) = (Dlls::shared(), Outputs::new(), Wine::new());
    for name in PLAIN {
        // In memory, names are short.
        let is_x86_64 = Headers::of(&dlls.read(name)).machine == 0x8664 && !name.starts_with("arm");
        if !is_x86_64 || name.contains("long-names") {
            continue;
        }
        let edited = outputs.path("edited.dll");
        let before = wine.show(&dlls.path(name));
        assert_eq!(before.matches("gfx1100").count(), 3, "{name}");
        assert!(before.ends_with("000000000000002f "), "{name}: {before}");
        // Entries of the kept target, line by line; the host function still gives the same.
        ok(&["thin", &input(name), "--keep", "gfx1100", "-o", &edited]);
        let after = wine.show(Path::new(&edited));
        let entries = |text: &str| -> Vec<String> {
            let words: Vec<_> = text.split_whitespace().collect();
            let kept = words.windows(2).filter(|pair| pair[0].ends_with("gfx1100"));
            kept.map(|pair| pair.join(" ")).collect()
        };
        assert_eq!(entries(&after), entries(&before), "{name}");
        assert!(!after.contains("gfx90a") && after.ends_with("000000000000002f "), "{name}");
        ok(&["compress", &input(name), "-o", &edited]);
        let after = wine.show(Path::new(&edited));
        assert_eq!(after.lines().count(), 4, "{name}: {after}");
        let grown = ["--in", "bundle:0", "--any-image", "--grow", "-o", &edited];
        if !name.contains("pinned") {
            let image = outputs.path("image");
            fs::write(&image, vec![7; 300_000]).unwrap();
            let what = format!("hipv4-amdgcn-amd-amdhsa--gfx90a={image}");
            ok(&[&["replace", &input(name), &what][..], &grown].concat());
            assert_eq!(entries(&wine.show(Path::new(&edited))), entries(&before), "{name}");
        }
    }
}
