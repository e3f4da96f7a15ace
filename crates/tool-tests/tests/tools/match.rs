//! `offload match` where many runs or records are compared. The rest is in `cases/match`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::common::{self, all_data, ls, offload, stderr};
use serde::Deserialize;

/// One object of `offload match --json`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Record {
    file: String,
    path: Vec<String>,
    runtime: Option<String>,
    gpu: String,
    answer: String,
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

fn records(gpus: [&str; 2], file: &Path) -> Vec<Record> {
    let [one, other] = gpus.map(OsStr::new);
    let flags = ["match", "--json", "--gpu"].map(OsStr::new);
    let output = offload(flags.into_iter().chain([one, "--gpu".as_ref(), other, file.as_ref()]));
    let records: Vec<Record> = common::rows(&output.stdout);
    // A file without images has no records.
    let lacks = records.is_empty() || records.iter().any(|record| record.answer == "no");
    // CUDA containers may be for other GPUs.
    let is_cuda = |record: &Record| record.runtime.as_deref() == Some("cuda");
    let is_no = |record: &&Record| record.counted && record.result == "no";
    assert!(records.iter().filter(is_no).all(|record| record.answer == "no" || is_cuda(record)));
    assert_eq!(output.status.code(), Some(i32::from(lacks)), "{}", stderr(&output));
    records
}

#[test]
fn json_has_every_image_of_every_container() {
    for file in all_data() {
        let rows = ls(&file);
        let found = records(["gfx90a", "sm_90"], &file);
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

/// Kind, triple and architecture of the images of a package; PTX where the last field says so.
const LABELS: &[(&str, &str, &str, bool)] = &[
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

/// `thin --keep` retains exactly the images that `match` says the device could load. The one exception:
/// an image without a target ID stays, with a warning, if it has the triple of the device's vendor.
#[test]
fn thin_keeps_the_images_that_match_accepts() {
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
        let records: Vec<Record> = common::rows(&output.stdout);
        let mut expected: Vec<usize> = (records.iter().flat_map(|record| &record.images))
            .filter(|image| image.given != "no" || image.reason.starts_with("would run, but"))
            .map(|image| image.index)
            .collect();
        // Its images do not name their GPU: the runtime can only try them.
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
        assert_eq!(output.status.code(), Some(0), "{gpu}: {}", stderr(&output));
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
