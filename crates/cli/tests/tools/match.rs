//! `offload match` where many runs or records are compared. The rest is in `cases/match`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{self, all_data, data, ls, offload, stderr, stdout};
use serde::Deserialize;

/// One object of `offload match --json`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Record {
    file: String,
    path: Vec<String>,
    runtime: Option<String>,
    gpu: String,
    result: String,
    condition: Option<String>,
    counted: bool,
    note: Option<String>,
    images: Vec<Image>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Image {
    index: usize,
    kind: Option<String>,
    triple: Option<String>,
    target: Option<String>,
    id: Option<String>,
    image_format: Option<String>,
    size: u64,
    holds_code: Option<bool>,
    given: String,
    condition: Option<String>,
    reason: String,
}

fn run(args: &[&str], files: &[&Path]) -> Output {
    let files = files.iter().map(|file| file.as_os_str());
    offload(["match"].iter().chain(args).map(OsStr::new).chain(files))
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn records(args: &[&str], files: &[&Path]) -> Vec<Record> {
    let output = run(&[&["--json"], args].concat(), files);
    let records: Vec<Record> = serde_json::from_slice(&output.stdout).unwrap();
    // A file without images has no records.
    let lacks =
        records.is_empty() || records.iter().any(|record| record.counted && record.result == "no");
    assert_eq!(code(&output), Some(i32::from(lacks)), "{}", stderr(&output));
    records
}

/// The last line.
fn conclusion(output: &Output) -> String {
    stdout(output).lines().last().unwrap_or_default().to_owned()
}

/// A bundle for HIP with an image for each of these targets.
fn bundle(targets: &[&str]) -> Vec<u8> {
    let ids: Vec<_> = targets.iter().map(|t| format!("hipv4-amdgcn-amd-amdhsa--{t}")).collect();
    let table = 32 + ids.iter().map(|id| 24 + id.len()).sum::<usize>();
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((ids.len() as u64).to_le_bytes());
    for (n, id) in ids.iter().enumerate() {
        for number in [table + 8 * n, 8, id.len()] {
            bytes.extend((number as u64).to_le_bytes());
        }
        bytes.extend(id.as_bytes());
    }
    bytes.extend(vec![b'x'; 8 * ids.len()]);
    bytes
}

/// An ELF file for a GPU with one section, of code if it has any bytes.
fn elf(machine: u8, code: u8) -> Vec<u8> {
    let mut file = vec![0; 64 + 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    for (at, byte) in [(18, machine), (40, 64), (58, 64), (60, 1)] {
        file[at] = byte;
    }
    for (at, byte) in [(4, 1), (8, if code > 0 { 6 } else { 2 }), (32, code)] {
        file[64 + at] = byte;
    }
    file
}

/// A fatbinary of cubins: architecture, suffix, bytes of code, and whether it is compressed.
fn fatbinary(cubins: &[(u32, &str, u8, bool)]) -> Vec<u8> {
    let mut entries = Vec::new();
    for (sm, suffix, code, compressed) in cubins {
        let cubin = elf(190, *code);
        // LZ4: one sequence of literals.
        let stored = match compressed {
            true => [&[0xf0, 128 - 15][..], &cubin].concat(),
            false => cubin.clone(),
        };
        let padded = stored.len().next_multiple_of(8);
        let mut header = vec![0; 64];
        let flags = u64::from(*suffix == "a") << 20 | u64::from(*compressed) << 13;
        let (stored_size, size) = match compressed {
            true => (stored.len(), cubin.len()),
            false => (0, 0),
        };
        for (at, number) in [
            (0, 2 | 0x0101 << 16 | 64 << 32),
            (8, padded as u64),
            (16, stored_size as u64),
            (24, 7 | 1 << 16 | u64::from(*sm) << 32),
            (40, flags),
            (56, size as u64),
        ] {
            header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        entries.extend(header);
        entries.extend(&stored);
        entries.resize(entries.len() + padded - stored.len(), 0);
    }
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(entries);
    bytes
}

#[test]
fn images_without_kernels_neither_serve_nor_fail_a_gpu() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("library.fatbin");
    let full = |sm| (sm, "", 8, false);
    let only = |sm| (sm, "a", 8, false);
    let empty = |sm| (sm, "", 0, true);
    let concluded = |all: &[Vec<u8>], gpu: &str| {
        fs::write(&file, all.concat()).unwrap();
        let output = run(&["--gpu", gpu], &[&file]);
        let line = conclusion(&output);
        (code(&output).unwrap(), line.split_once(": ").unwrap().1.to_owned())
    };
    let said = |code, words: &str| (code, words.to_owned());
    let both = fatbinary(&[full(80), full(90)]);
    let none = fatbinary(&[empty(80), empty(90)]);
    let new = fatbinary(&[empty(80), full(90)]);
    assert_eq!(
        concluded(&[both.clone(), none.clone(), both.clone()], "sm_80"),
        said(0, "both containers with kernels have code for sm_80")
    );
    let text = stdout(&run(&["--gpu", "sm_80"], &[&file]));
    assert!(text.contains("  nv-fatbin:1 (no kernels)\n"), "{text}");
    assert!(text.contains("yes: is for this very target; it holds no kernels"), "{text}");
    // The runtime takes the image without kernels: the program wants none on this GPU.
    assert_eq!(concluded(&[both.clone(), new.clone()], "sm_80"), said(0, "has code for sm_80"));
    assert_eq!(
        concluded(&[both.clone(), new, none.clone()], "sm_90"),
        said(0, "both containers with kernels have code for sm_90")
    );
    assert_eq!(
        concluded(&[both.clone(), none.clone()], "sm_75"),
        said(1, "has no code for sm_75: built for sm_80, sm_90")
    );
    assert_eq!(
        concluded(std::slice::from_ref(&none), "sm_80"),
        said(1, "has no kernels for sm_80")
    );
    // What is compressed may hold code.
    assert_eq!(
        concluded(&[both.clone(), fatbinary(&[(90, "", 8, true)]), none.clone()], "sm_80"),
        said(
            1,
            "1 of 2 containers with kernels has code for sm_80; nv-fatbin:1 has none: built for sm_90"
        )
    );

    // Features of other GPUs are for programs that ask for them.
    let hopper = fatbinary(&[only(90)]);
    let blackwell = fatbinary(&[only(120), empty(80)]);
    let all = [both, hopper.clone(), none, hopper.clone(), blackwell];
    assert_eq!(
        concluded(&all, "sm_90"),
        said(0, "3 of 4 containers with kernels have code for sm_90; 1 is for sm_120a only")
    );
    let found = records(&["--gpu", "sm_86"], &[&file]);
    let facts: Vec<_> = (found.iter())
        .map(|r| (&r.result[..], r.counted, r.note.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        facts,
        [
            ("yes", true, ""),
            ("no", false, "for the features of other GPUs"),
            ("yes", false, "no kernels"),
            ("no", false, "for the features of other GPUs"),
            ("yes", false, "no kernels"),
        ]
    );
    let held: Vec<_> = found[4].images.iter().map(|image| image.holds_code).collect();
    assert_eq!(held, [Some(true), Some(false)]);
    assert_eq!(
        concluded(&[hopper.clone(), hopper], "sm_80"),
        said(1, "has no code for sm_80: built for sm_90a")
    );
}

#[test]
fn code_objects_without_kernels_do_not_count() {
    let place = tempfile::tempdir().unwrap();
    let [full, empty] = [elf(224, 8), elf(224, 0)].map(|elf| {
        let path = place.path().join("image");
        fs::write(&path, elf).unwrap();
        let out = place.path().join("out.hipfb");
        let entry = format!("hipv4-amdgcn-amd-amdhsa--gfx906={}", path.display());
        let made = offload([OsStr::new("bundle"), "-o".as_ref(), out.as_ref(), entry.as_ref()]);
        assert!(made.status.success(), "{}", stderr(&made));
        fs::read(out).unwrap()
    });
    let file = place.path().join("library");
    fs::write(&file, [&full[..], &empty].concat()).unwrap();
    let found = records(&["--gpu", "gfx906", "--gpu", "gfx1100"], &[&file]);
    let facts: Vec<_> = (found.iter())
        .map(|r| (&r.gpu[..], &r.result[..], r.counted, r.images[0].holds_code))
        .collect();
    assert_eq!(
        facts,
        [
            ("gfx906", "yes", true, Some(true)),
            ("gfx1100", "no", true, Some(true)),
            ("gfx906", "yes", false, Some(false)),
            ("gfx1100", "no", false, Some(false)),
        ]
    );
    // The image stays where a runtime would load it.
    let out = place.path().join("thin");
    let args = ["thin", "--keep", "gfx906", "-o"].map(OsStr::new);
    let thin = offload(args.into_iter().chain([out.as_os_str(), file.as_os_str()]));
    assert!(thin.status.success(), "{}", stderr(&thin));
    assert_eq!(ls(&out).len(), 2);
}

/// Bundles one behind another, as in a section.
fn bundles(place: &tempfile::TempDir, all: &[&[&str]]) -> std::path::PathBuf {
    let path = place.path().join("a.hipfb");
    let mut bytes = Vec::new();
    for targets in all {
        bytes.extend(bundle(targets));
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
    }
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn containers_without_code_are_named() {
    let place = tempfile::tempdir().unwrap();
    let concluded = |all: &[&[&str]], gpu: &str| {
        let file = bundles(&place, all);
        let output = run(&["--gpu", gpu], &[&file]);
        let line = conclusion(&output);
        (code(&output).unwrap(), line.split_once(": ").unwrap().1.to_owned())
    };
    let (old, new): (&[&str], &[&str]) = (&["gfx906", "gfx908"], &["gfx906", "gfx1100"]);
    assert_eq!(
        concluded(&[new, old, new], "gfx1100"),
        (
            1,
            "2 of 3 containers have code for gfx1100; bundle:1 has none: built for gfx906, gfx908"
                .to_owned()
        )
    );
    assert_eq!(
        concluded(&[old, new, old, old], "gfx1100"),
        (1, "1 of 4 containers has code for gfx1100; bundle:0 and 2 more have none: built for gfx906, gfx908".to_owned())
    );
    assert_eq!(
        concluded(&[old, new], "gfx1030"),
        (1, "has no code for gfx1030: built for gfx906, gfx908, gfx1100".to_owned())
    );
    assert_eq!(
        concluded(&[new; 3], "gfx1100"),
        (0, "all 3 containers have code for gfx1100".to_owned())
    );
    let many: Vec<[&str; 1]> =
        ["gfx1100", "gfx900", "gfx902", "gfx904", "gfx909", "gfx909"].map(|name| [name]).to_vec();
    let many: Vec<&[&str]> = many.iter().map(|names| &names[..]).collect();
    let (_, words) = concluded(&many, "gfx1100");
    assert!(words.ends_with("bundle:3 has none: built for gfx904; 2 more have none"), "{words}");
    let mixed: &[&[&str]] = &[&["gfx90a:xnack-"], &["gfx90a"]];
    assert_eq!(
        concluded(mixed, "gfx90a"),
        (0, "both containers have code for gfx90a, 1 of them if xnack is off".to_owned())
    );
    assert_eq!(
        concluded(&[&["gfx90a:xnack-"], &["gfx90a:xnack+"]], "gfx90a"),
        (0, "both containers have code for gfx90a, 2 of them on a condition".to_owned())
    );
    assert_eq!(
        concluded(mixed, "gfx90a:xnack+"),
        (1, "1 of 2 containers has code for gfx90a:xnack+; bundle:0 has none: built for gfx90a:xnack-".to_owned())
    );
    let empty = run(&["--gpu", "gfx906"], &[&bundles(&place, &[&[]])]);
    assert_eq!((code(&empty), &stdout(&empty)[..]), (Some(1), ""));
}

#[test]
fn containers_that_look_alike_are_shown_once() {
    let output = run(&["--gpu", "gfx906"], &[&data("hip-two-units-ccob.so")]);
    let text = stdout(&output);
    assert!(text.contains("  section:.hip_fatbin/ccob:0 and 1 more like it\n"), "{text}");
    assert_eq!(text.matches("=>").count(), 1, "{text}");
    let place = tempfile::tempdir().unwrap();
    let file = bundles(&place, &[&["gfx906"], &["gfx908"], &["gfx906"]]);
    let text = stdout(&run(&["--gpu", "gfx906"], &[&file]));
    assert!(text.contains("  bundle:0 and 1 more like it\n"), "{text}");
    assert!(
        text.contains(
            "  bundle:1
"
        ),
        "{text}"
    );
}

#[test]
fn json_has_every_image_of_every_container() {
    for file in all_data() {
        let rows = ls(&file);
        let found = records(&["--gpu", "gfx90a", "--gpu", "sm_90"], &[&file]);
        for gpu in ["gfx90a", "sm_90"] {
            let images = found.iter().filter(|record| record.gpu == gpu).flat_map(|r| &r.images);
            let mut indices: Vec<_> = images.clone().map(|image| image.index).collect();
            indices.sort_unstable();
            let expected: Vec<_> = rows.iter().map(|row| row.index).collect();
            assert_eq!(indices, expected, "{}", file.display());
            for image in images {
                let row = &rows[image.index];
                assert_eq!((&image.target, &image.id), (&row.target, &row.id));
                assert_eq!((&image.kind, &image.triple), (&row.kind, &row.triple));
                assert_eq!(image.size, row.size);
                // Images of compressed bundles are not read.
                let is_read = row.container != "ccob" || row.size == 0;
                let expected = row.image_format.as_ref().filter(|_| is_read);
                assert_eq!(image.image_format.as_ref(), expected, "{image:?}");
                assert!(!image.reason.is_empty(), "{image:?}");
                assert_eq!(image.condition.is_some(), image.given == "if", "{image:?}");
            }
        }
        for record in &found {
            assert!(["yes", "if", "no"].contains(&&record.result[..]));
            assert_eq!(record.condition.is_some(), record.result == "if");
            let given = record.images.iter().any(|image| image.given != "no");
            assert_eq!(given, record.result != "no", "{record:?}");
        }
    }
}

#[test]
fn what_can_be_tried_is_said_once() {
    let place = tempfile::tempdir().unwrap();
    let file = bundles(&place, &[&["gfx1030", "gfx1100"], &["gfx1030"]]);
    let output = run(&["--gpu", "gfx1031"], &[&file, &file]);
    assert_eq!(code(&output), Some(1));
    assert_eq!(stderr(&output).matches("HSA_OVERRIDE_GFX_VERSION=10.3.0").count(), 1);
    for (gpu, all) in
        [("gfx1031", &[&["gfx1030"][..], &["gfx1100"]][..]), ("gfx1101", &[&["gfx1100"]])]
    {
        let output = run(&["--gpu", gpu], &[&bundles(&place, all)]);
        assert!(!stderr(&output).contains("HSA_OVERRIDE"), "{gpu}");
    }
}

/// Kind, triple and architecture of the images of a package; PTX where the last field says so.
const LABELS: [(&str, &str, &str, bool); 30] = [
    ("hip", "amdgcn-amd-amdhsa", "gfx906", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx906:xnack+", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx90a:sramecc+:xnack-", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx942", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx1100", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx9-generic", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx9-4-generic:xnack+", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx11-generic", false),
    ("hip", "spirv64-amd-amdhsa", "amdgcnspirv", false),
    ("hip", "amdgcn-amd-amdhsa", "gfx1155", false),
    ("openmp", "amdgcn-amd-amdhsa", "gfx90a", false),
    ("openmp", "amdgcn-amd-amdhsa", "generic", false),
    ("openmp", "nvptx64-nvidia-cuda", "sm_80", false),
    ("openmp", "nvptx64-nvidia-cuda", "generic", false),
    ("openmp", "spirv64-intel-unknown", "", false),
    ("cuda", "nvptx64-nvidia-cuda", "sm_70", true),
    ("cuda", "nvptx64-nvidia-cuda", "sm_80", false),
    ("cuda", "nvptx64-nvidia-cuda", "sm_86", false),
    ("cuda", "nvptx64-nvidia-cuda", "sm_90a", false),
    ("cuda", "nvptx64-nvidia-cuda", "sm_90a", true),
    ("cuda", "nvptx64-nvidia-cuda", "sm_100f", false),
    ("cuda", "nvptx64-nvidia-cuda", "sm_120a", false),
    ("sycl", "spir64", "", false),
    ("sycl", "spir64_gen", "", false),
    ("sycl", "spir64_x86_64", "", false),
    ("sycl", "spir64_fpga", "", false),
    ("sycl", "spirv64-unknown-unknown", "generic", false),
    ("sycl", "spir64_gen", "intel_gpu_pvc", false),
    ("sycl", "spir64_gen", "bmg_g21", false),
    ("hip", "amdgcn-amd-amdhsa", "", false),
];

/// `thin --keep` retains exactly the images that `match` says the device could load. The one exception in here:
/// an image without a target ID stays, with a warning, if its triple is that of the device's vendor.
#[test]
fn thin_and_match_have_one_rule() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let package = path("package");
    let mut args = vec!["pack".into(), "-o".into(), package.clone().into_os_string()];
    for (n, (kind, triple, arch, is_ptx)) in LABELS.iter().enumerate() {
        let file = path(&format!("image{n}"));
        let head = if *is_ptx { ".version 6.0\n" } else { "machine code " };
        fs::write(&file, format!("{head}{n}")).unwrap();
        let arch = if arch.is_empty() { String::new() } else { format!(",arch={arch}") };
        args.push(format!("kind={kind},triple={triple}{arch},file={}", file.display()).into());
    }
    let packed = offload(&args);
    assert!(packed.status.success(), "{}", stderr(&packed));
    assert_eq!(ls(&package).len(), LABELS.len());

    for gpu in [
        "gfx906",
        "gfx906:xnack-",
        "gfx90a",
        "gfx90a:xnack+",
        "gfx942",
        "gfx942:xnack-",
        "gfx950",
        "gfx1100",
        "gfx1151",
        "gfx1030",
        "gfx803",
        "gfx1155",
        "gfx1156",
        "tahiti",
        "sm_60",
        "sm_75",
        "sm_80",
        "sm_89",
        "sm_90",
        "sm_100",
        "sm_103",
        "sm_120",
        "sm_121",
        "sm_140",
        "bmg_g21",
        "intel_gpu_pvc",
        "intel_gpu_acm_g10",
        "intel_gpu_new_one",
    ] {
        let args = ["match", "--json", "--gpu", gpu].map(OsStr::new);
        let output = offload(args.into_iter().chain([package.as_os_str()]));
        let records: Vec<Record> = serde_json::from_slice(&output.stdout).unwrap();
        let mut expected: Vec<usize> = (records.iter().flat_map(|record| &record.images))
            .filter(|image| image.given != "no" || image.reason.starts_with("would do, but"))
            .map(|image| image.index)
            .collect();
        // Nothing says whether its images are for this GPU: the runtime, too, can only try.
        let unnamed = |kind: &str| {
            LABELS.iter().position(|label| (label.0, label.1, label.2) == (kind, "spir64_gen", ""))
        };
        if gpu.starts_with("intel") || gpu == "bmg_g21" {
            expected.extend(unnamed("sycl"));
        }
        if gpu.starts_with("gfx") || gpu == "tahiti" {
            expected.push(LABELS.len() - 1);
        }
        expected.sort_unstable();

        let out = path("out");
        let args = ["thin", "--keep", gpu, "-o"].map(OsStr::new);
        let output = offload(args.into_iter().chain([out.as_os_str(), package.as_os_str()]));
        assert_eq!(code(&output), Some(0), "{gpu}: {}", stderr(&output));
        let all = ls(&package);
        let is = |a: &common::Row, b: &common::Row| {
            (&a.kind, &a.triple, &a.target, &a.image_format)
                == (&b.kind, &b.triple, &b.target, &b.image_format)
        };
        let found: Vec<usize> = (ls(&out).iter())
            .map(|kept| all.iter().position(|row| is(row, kept)).unwrap())
            .collect();
        let name = |n: &usize| format!("{}-{}--{}", LABELS[*n].0, LABELS[*n].1, LABELS[*n].2);
        assert_eq!(
            found.iter().map(name).collect::<Vec<_>>(),
            expected.iter().map(name).collect::<Vec<_>>(),
            "{gpu}"
        );
    }
}
