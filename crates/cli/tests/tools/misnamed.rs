//! Images for other GPUs than their entries say: no command answers by the name alone.

use std::path::PathBuf;
use std::process::Output;

use crate::common::{Row, stderr, stdout};
use bundle_format::Layout;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
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
            "{file}: {at}: entry hipv4-amdgcn-amd-amdhsa--gfx906 and its image disagree: the code object is \
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
        assert_eq!(stderr(&output).contains("and its image disagree"), marked);

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

/// A cubin for this number, as CUDA 13 writes it.
fn cubin(sm: u32) -> Vec<u8> {
    let mut file = code_object(0x0600_0004 | sm << 8);
    (file[7], file[8], file[18]) = (0x41, 8, 190);
    file
}

/// An offload binary with one image.
fn package(
    version: FormatVersion,
    kind: OffloadKind,
    triple: &str,
    arch: &str,
    image: &[u8],
) -> Vec<u8> {
    let entry = ImageEntry::new(image.len() as u64)
        .image_kind(ImageKind::OBJECT)
        .offload_kind(kind)
        .string("triple", triple)
        .string("arch", arch);
    offload_binary::Layout::new(version, &[entry]).unwrap().to_vec(&[image]).unwrap()
}

/// A fatbinary with one cubin.
fn fatbinary(sm: u8, image: &[u8]) -> Vec<u8> {
    let mut file = b"\x50\xed\x55\xba\x01\x00\x10\x00".to_vec();
    file.extend((64 + image.len() as u64).to_le_bytes());
    let mut entry = vec![2, 0, 1, 1, 64, 0, 0, 0];
    entry.extend((image.len() as u64).to_le_bytes());
    entry.resize(64, 0);
    (entry[28], entry[40]) = (sm, 1);
    [file, entry, image.to_vec()].concat()
}

/// Files of every kind with one image for another GPU than its entry says: the entry's name, and what the image is for.
fn misnamed() -> Vec<(String, &'static str, &'static str, Vec<u8>)> {
    let amd = code_object(0x549);
    let (amdgcn, amdgpu) = ("amdgcn-amd-amdhsa", "amdgpu9.06-amd-amdhsa");
    let nvptx = "nvptx64-nvidia-cuda";
    let nvidia_bundle = |kind: &str| {
        let image = cubin(90);
        let id = format!("{kind}-nvptx64-nvidia-cuda--sm_80");
        let layout = Layout::new([(&id[..], image.len() as u64)], 8).unwrap();
        layout.to_vec(&[&image]).unwrap()
    };
    let mut files = vec![
        ("bundle".to_owned(), "gfx906", "gfx1250", bundle(&[("gfx906", amd.clone())])),
        ("cuda bundle".to_owned(), "sm_80", "sm_90", nvidia_bundle("cuda")),
        ("openmp bundle".to_owned(), "sm_80", "sm_90", nvidia_bundle("openmp")),
        ("fatbinary".to_owned(), "sm_80", "sm_90", fatbinary(80, &cubin(90))),
    ];
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        for (kind, triple, arch, holds, image) in [
            (OffloadKind::HIP, amdgcn, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::HIP, amdgpu, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::OPENMP, amdgcn, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::OPENMP, amdgpu, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::SYCL, amdgcn, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::CUDA, nvptx, "sm_80", "sm_90", cubin(90)),
            (OffloadKind::OPENMP, nvptx, "sm_80", "sm_90", cubin(90)),
            (OffloadKind::SYCL, nvptx, "sm_80", "sm_90", cubin(90)),
        ] {
            let file = package(version, kind, triple, arch, &image);
            let what = format!("version {version}, {kind}, {triple}");
            if version == FormatVersion::V3 {
                let options = ccob::WriteOptions::default();
                let packed = fat_edit::compress_offload_binary(&file, &options).unwrap();
                files.push((format!("{what}, compressed"), arch, holds, packed));
            }
            files.push((what, arch, holds, file));
        }
    }
    files
}

#[test]
fn every_kind_of_container_is_compared() {
    for (what, named, holds, file) in misnamed() {
        let place = Place::new();
        place.write("file", &file);
        let output = place.run(&["verify", "file"]);
        assert_eq!(output.status.code(), Some(1), "{what}");
        let finding = stdout(&output);
        assert!(finding.contains("and its image disagree"), "{what}: {finding}");
        assert!(stdout(&place.run(&["ls", "file"])).contains(&format!("{named} (holds {holds})")));
        for (gpu, row) in [
            (named, format!("no: holds code for {holds}\n")),
            (holds, format!("no: holds code for {holds}, but is called {named}, and runtimes")),
        ] {
            let output = place.run(&["match", "--gpu", gpu, "file"]);
            assert_eq!(output.status.code(), Some(1), "{what} {gpu}");
            assert!(stdout(&output).contains(&row), "{what} {gpu}: {}", stdout(&output));
            let args = ["thin", "file", "--keep", gpu, "--allow-findings", "-o", "out"];
            let output = place.run(&args);
            assert_eq!(output.status.code(), Some(1), "{what} {gpu}");
            for (command, status, words) in [
                (&["ls", "file"][..], 0, "none of its 1 images serves the given target; it has"),
                (&["extract", "file", "-o", "out"], 1, "no image matches; it has"),
            ] {
                let output = place.run(&[command, &["--target", gpu]].concat());
                let said = stderr(&output);
                assert_eq!(output.status.code(), Some(status), "{what} {gpu}: {said}");
                assert!(said.contains("and its image disagree"), "{said}");
                assert!(said.contains(words), "{said}");
                assert!(said.contains(&format!("{named} (holds {holds})")), "{said}");
                assert!(!place.path("out").exists());
            }
        }
        // By its number, the image can be had.
        let output = place.run(&["extract", "file", "--index", "0", "-o", "out"]);
        assert_eq!(output.status.code(), Some(0), "{what}: {}", stderr(&output));
        assert!(stderr(&output).contains("and its image disagree"));
        assert!(stdout(&output).contains(&format!("(holds {holds})")), "{}", stdout(&output));
    }
}

#[test]
fn targets_choose_by_name_and_image() {
    let place = place();
    let id = "hipv4-amdgcn-amd-amdhsa--gfx906";
    for (file, args, chosen) in [
        ("plain", &["--target", "gfx1100"][..], &["gfx1100"][..]),
        ("plain", &["--target", "gfx1100", "--target", "gfx906"], &["gfx1100"]),
        ("plain", &["--target", "gfx1100", "--target", "gfx906", "--exact"], &["gfx1100"]),
        ("plain", &["--target", "gfx1100", "--id", id], &["gfx906", "gfx1100"]),
        ("plain", &["--kind", "hip"], &["gfx906", "gfx1100"]),
        ("packed", &["--check", "--target", "gfx1100", "--target", "gfx906"], &["gfx1100"]),
        // By the table alone.
        ("packed", &["--target", "gfx906"], &["gfx906"]),
    ] {
        let output = place.run(&[&["ls", "--json", file], args].concat());
        let rows: Vec<Row> = serde_json::from_slice(&output.stdout).unwrap();
        let targets: Vec<_> = rows.iter().map(|row| row.target.as_deref().unwrap()).collect();
        assert_eq!(targets, chosen, "{args:?}");
    }
    for file in ["plain", "packed"] {
        let output = place.run(&["extract", file, "--target", "gfx906", "-o", "out"]);
        assert_eq!(output.status.code(), Some(1));
        let words = format!("no image matches; it has #0 {id} (holds gfx1250), #1 ");
        assert!(stderr(&output).contains(&words), "{}", stderr(&output));
        assert!(!place.path("out").exists());
    }
    // Features: the image needs xnack, its entry does not say so.
    place.write("features", &bundle(&[("gfx90a", code_object(0x73f))]));
    for (gpu, status) in [("gfx90a:xnack+", 0), ("gfx90a:xnack-", 1), ("gfx90a", 1)] {
        let output = place.run(&["extract", "features", "--target", gpu, "--stdout"]);
        assert_eq!(output.status.code(), Some(status), "{gpu}: {}", stderr(&output));
    }
    // The recorded kind of image is nothing that runtimes go by.
    let entry = ImageEntry::new(64)
        .image_kind(ImageKind::SPIRV)
        .offload_kind(OffloadKind::OPENMP)
        .string("triple", "nvptx64-nvidia-cuda")
        .string("arch", "sm_90");
    let layout = offload_binary::Layout::new(FormatVersion::V2, &[entry]).unwrap();
    let ptx = [&b"//\n.version 7.0\n.target sm_90\n"[..], &[b'\n'; 34]].concat();
    place.write("kind", &layout.to_vec(&[&ptx]).unwrap());
    let output = place.run(&["extract", "kind", "--target", "sm_90", "--stdout"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("PTX where the offload binary records"),
        "{}",
        stderr(&output)
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
                message.contains("and its image disagree") && message.contains("--allow-findings"),
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
