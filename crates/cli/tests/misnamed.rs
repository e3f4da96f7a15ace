//! Images for other GPUs than their entries say: no command answers by the name alone.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test says no"
)]

mod common;

use std::path::PathBuf;
use std::process::Output;

use bundle_format::Layout;
use common::{Row, stderr, stdout};
use tempfile::TempDir;

/// A directory in which `offload` runs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        let offload = env!("CARGO_BIN_EXE_offload");
        std::process::Command::new(offload).args(args).current_dir(self.0.path()).output().unwrap()
    }
}

/// The header of a code object, V5.
fn code_object(flags: u32) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    file.resize(64, 0);
    file[18] = 224;
    file[48..52].copy_from_slice(&flags.to_le_bytes());
    file
}

fn bundle(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let ids: Vec<_> = entries
        .iter()
        .map(|(target, image)| (format!("hipv4-amdgcn-amd-amdhsa--{target}"), image.len() as u64))
        .collect();
    let sizes = ids.iter().map(|(id, size)| (&id[..], *size));
    let images: Vec<&[u8]> = entries.iter().map(|(_, image)| &image[..]).collect();
    Layout::new(sizes, 4096).unwrap().to_vec(&images).unwrap()
}

/// A bundle whose entry for gfx906 holds code for gfx1250, beside a sound one; and the same, compressed.
fn place() -> Place {
    let place = Place::new();
    let file = bundle(&[("gfx906", code_object(0x549)), ("gfx1100", code_object(0x541))]);
    place.write("plain", &file);
    let options = ccob::WriteOptions::default();
    place.write("packed", &ccob::compress(&file, &options).unwrap());
    place
}

#[test]
fn verify_finds_it_compressed_or_not() {
    let place = place();
    for (file, at) in [
        ("plain", "bundle:0 at byte 0x1000"),
        ("packed", "ccob:0/bundle:0 at byte 0x1000 of the decompressed data"),
    ] {
        let output = place.run(&["verify", file]);
        assert_eq!(output.status.code(), Some(1));
        let expected = format!(
            "{file}: {at}: entry hipv4-amdgcn-amd-amdhsa--gfx906 holds another image than it says: the code object is \
             for gfx1250, not for gfx906\n"
        );
        assert_eq!(stdout(&output), expected);
    }
}

#[test]
fn ls_marks_it() {
    let place = place();
    for (args, marked) in [
        (&["ls", "plain"][..], true),
        (&["ls", "packed", "--check"], true),
        (&["ls", "packed"], false),
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        let marks = text.matches("gfx906 (holds gfx1250)").count();
        assert_eq!(marks, if marked { 2 } else { 0 }, "in the table and the totals: {text}");
        assert_eq!(stderr(&output).contains("holds another image than it says"), marked);

        let output = place.run(&[args, &["--json"]].concat());
        let rows: Vec<Row> = serde_json::from_slice(&output.stdout).unwrap();
        let (first, second) = (&rows[0], &rows[1]);
        assert_eq!(first.target.as_deref(), Some("gfx906"), "as stored");
        assert_eq!(first.holds.as_deref(), marked.then_some("gfx1250"));
        let words = "the code object is for gfx1250, not for gfx906";
        assert_eq!(first.disagreement.as_deref(), marked.then_some(words));
        assert_eq!((&second.holds, &second.disagreement), (&None, &None));
    }
    let tree = stdout(&place.run(&["ls", "plain", "--tree"]));
    assert!(tree.contains("gfx906 (holds gfx1250)  ELF"), "{tree}");
}

#[test]
fn match_says_no_and_why() {
    let place = place();
    let named = "gfx906 (holds gfx1250)";
    for (gpu, status, row, conclusion) in [
        ("gfx906", 1, "no: holds code for gfx1250", format!("built for {named}, gfx1100")),
        (
            "gfx1250",
            1,
            "no: holds code for gfx1250, but is called gfx906, and runtimes choose by that",
            format!("built for {named}, gfx1100"),
        ),
        ("gfx1100", 0, "no: is for gfx906, not for gfx1100", "has code for gfx1100".to_owned()),
    ] {
        for args in
            [&["match", "--gpu", gpu, "plain"][..], &["match", "--gpu", gpu, "--check", "packed"]]
        {
            let output = place.run(args);
            assert_eq!(output.status.code(), Some(status), "{gpu}");
            let text = stdout(&output);
            assert!(text.contains(row), "{text}");
            let last = text.lines().last().unwrap();
            assert!(last.ends_with(&conclusion), "{last}");
            assert_eq!(stderr(&output), "", "the table says it");
        }
    }
    let by_table = place.run(&["match", "--gpu", "gfx906", "packed"]);
    assert_eq!(by_table.status.code(), Some(0), "by the table alone");
    let output = place.run(&["match", "--json", "--gpu", "gfx906", "plain"]);
    let records: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let image = &records[0]["images"][0];
    assert_eq!(
        (&image["given"], &image["reason"]),
        (&"no".into(), &"holds code for gfx1250".into())
    );
}

#[test]
fn match_knows_of_features_and_formats() {
    let place = Place::new();
    place.write("features", &bundle(&[("gfx90a", code_object(0x73f))]));
    let output = place.run(&["match", "--gpu", "gfx90a", "features"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("if xnack is on"), "{}", stdout(&output));
    let output = place.run(&["match", "--gpu", "gfx90a:xnack-", "features"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("no: holds code for gfx90a:xnack+"), "{}", stdout(&output));

    place.write("format", &bundle(&[("gfx906", b"\x03\x02\x23\x07".to_vec())]));
    let output = place.run(&["match", "--gpu", "gfx906", "format"]);
    assert_eq!(output.status.code(), Some(1));
    let reason = "no: holds SPIR-V where an AMD GPU code object or LLVM bitcode is expected";
    assert!(stdout(&output).contains(reason), "{}", stdout(&output));
}

#[test]
fn edits_refuse_it_and_thin_says_what_goes() {
    let place = place();
    for file in ["plain", "packed"] {
        for command in [
            &["thin", "--keep", "gfx1100"][..],
            &["remove", "--id", "hipv4-amdgcn-amd-amdhsa--gfx1100"],
            &["replace", "gfx1100=plain"],
        ] {
            let args = [&command[..1], &[file], &command[1..], &["-o", "out"]].concat();
            let output = place.run(&args);
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            let message = stderr(&output);
            assert!(
                message.contains("holds another image than it says")
                    && message.contains("--allow-findings"),
                "{message}"
            );
        }
        let keep = |gpu| place.run(&["thin", file, "--keep", gpu, "--allow-findings", "-o", "out"]);
        let output = keep("gfx1100");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let said = "--keep gfx1100 removes images that hold other code than their entries say: \
                    gfx906 (holds gfx1250)";
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        for gpu in ["gfx906", "gfx1250"] {
            std::fs::remove_file(place.path("out")).unwrap_or_default();
            let output = keep(gpu);
            assert_eq!(output.status.code(), Some(1), "{gpu}");
            let message = stderr(&output);
            let expected = format!(
                "--keep {gpu}: no such image; the file has gfx906 (holds gfx1250), gfx1100"
            );
            assert!(message.contains(&expected), "{message}");
        }
    }
    let output =
        place.run(&["thin", "plain", "--drop", "gfx906", "--allow-findings", "-o", "cured"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&place.run(&["verify", "cured"])), "cured: ok, 1 image in 1 container\n");
}

#[test]
fn drop_in_tools_say_no_more_than_llvms() {
    let place = place();
    place.write("image", &code_object(0x549));
    for (tool, args) in [
        (
            env!("CARGO_BIN_EXE_llvm-offload-binary"),
            &[
                "-o",
                "packages",
                "--image=file=image,triple=amdgcn-amd-amdhsa,arch=gfx906,kind=openmp",
            ][..],
        ),
        (env!("CARGO_BIN_EXE_llvm-offload-binary"), &["packages", "--image=file=out,arch=gfx906"]),
        (
            env!("CARGO_BIN_EXE_clang-offload-bundler"),
            &[
                "--unbundle",
                "--type=o",
                "--input=plain",
                "--output=code",
                "--targets=hipv4-amdgcn-amd-amdhsa--gfx906",
            ],
        ),
    ] {
        let mut tool = std::process::Command::new(tool);
        let output = tool.args(args).current_dir(place.0.path()).output().unwrap();
        assert_eq!((output.status.code(), &stderr(&output)[..]), (Some(0), ""), "{args:?}");
    }
    let verified = place.run(&["verify", "packages"]);
    assert_eq!(verified.status.code(), Some(1));
    let expected = "the code object is for gfx1250, not for gfx906";
    assert!(stdout(&verified).contains(expected), "{}", stdout(&verified));
}
