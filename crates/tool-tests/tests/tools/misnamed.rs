//! Images for other GPUs than their entries say, in every kind of container. The rest is in `cases/misnamed`.

use crate::common::{stderr, stdout};
use crate::wheels::Place;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use samples::bundle::bundle;
use samples::device::{amd, new_cubin};
use samples::fatbin::{Made, fatbin};

/// An offload binary with one image.
fn package(
    version: FormatVersion,
    kind: OffloadKind,
    triple: &str,
    arch: &str,
    image: &[u8],
) -> Vec<u8> {
    let entry = ImageEntry::new(image.len() as u64)
        .with_image_kind(ImageKind::OBJECT)
        .with_offload_kind(kind)
        .with_string("triple", triple)
        .with_string("arch", arch);
    offload_binary::layout(version, &[entry]).unwrap().to_vec(&[image]).unwrap()
}

/// Files of every kind with one image for another GPU than its entry says: name of the kind, target of the entry, target
/// of the image, bytes.
fn misnamed() -> Vec<(String, &'static str, &'static str, Vec<u8>)> {
    let amd = amd(0x549);
    let (amdgcn, amdgpu) = ("amdgcn-amd-amdhsa", "amdgpu9.06-amd-amdhsa");
    let nvptx = "nvptx64-nvidia-cuda";
    let mut files = vec![
        (
            "bundle".to_owned(),
            "gfx906",
            "gfx1250",
            bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx906", &amd)], 4096),
        ),
        (
            "cuda bundle".to_owned(),
            "sm_80",
            "sm_90",
            bundle(&[("cuda-nvptx64-nvidia-cuda--sm_80", &new_cubin(90))], 8),
        ),
        (
            "openmp bundle".to_owned(),
            "sm_80",
            "sm_90",
            bundle(&[("openmp-nvptx64-nvidia-cuda--sm_80", &new_cubin(90))], 8),
        ),
        ("fatbinary".to_owned(), "sm_80", "sm_90", fatbin(&[Made::cubin(80, &new_cubin(90))])),
    ];
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        for (kind, triple, arch, holds, image) in [
            (OffloadKind::HIP, amdgcn, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::HIP, amdgpu, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::OPENMP, amdgcn, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::OPENMP, amdgpu, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::SYCL, amdgcn, "gfx906", "gfx1250", amd.clone()),
            (OffloadKind::CUDA, nvptx, "sm_80", "sm_90", new_cubin(90)),
            (OffloadKind::OPENMP, nvptx, "sm_80", "sm_90", new_cubin(90)),
            (OffloadKind::SYCL, nvptx, "sm_80", "sm_90", new_cubin(90)),
        ] {
            let file = package(version, kind, triple, arch, &image);
            let name = format!("version {version}, {kind}, {triple}");
            if version == FormatVersion::V3 {
                let options = ccob::WriteOptions::default();
                let packed = fat_edit::compress_offload_binary(&file, &options).unwrap();
                files.push((format!("{name}, compressed"), arch, holds, packed));
            }
            files.push((name, arch, holds, file));
        }
    }
    files
}

#[test]
fn every_kind_of_container_is_compared() {
    for (name, named, holds, file) in misnamed() {
        let place = Place::with("file", &file);
        let output = place.offload(&["verify", "file"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let finding = stdout(&output);
        assert!(finding.contains("and its image disagree"), "{name}: {finding}");
        assert!(
            stdout(&place.offload(&["ls", "file"])).contains(&format!("{named} (holds {holds})"))
        );
        for (gpu, row) in [
            (named, format!("no: holds code for {holds}\n")),
            (holds, format!("no: holds code for {holds}, but is called {named}, and runtimes")),
        ] {
            let output = place.offload(&["match", "--gpu", gpu, "file"]);
            assert_eq!(output.status.code(), Some(1), "{name} {gpu}");
            assert!(stdout(&output).contains(&row), "{name} {gpu}: {}", stdout(&output));
            let args = ["thin", "file", "--keep", gpu, "--allow-findings", "-o", "out"];
            let output = place.offload(&args);
            assert_eq!(output.status.code(), Some(1), "{name} {gpu}");
            for (command, status, words) in [
                (&["ls", "file"][..], 0, "none of its 1 images runs on the given target; it has"),
                (&["extract", "file", "-o", "out"], 1, "no image matches; it has"),
            ] {
                let output = place.offload(&[command, &["--target", gpu]].concat());
                let said = stderr(&output);
                assert_eq!(output.status.code(), Some(status), "{name} {gpu}: {said}");
                assert!(said.contains("and its image disagree"), "{said}");
                assert!(said.contains(words), "{said}");
                assert!(said.contains(&format!("{named} (holds {holds})")), "{said}");
                assert!(!place.path("out").exists());
            }
        }
        // The number of the image selects it.
        let output = place.offload(&["extract", "file", "--index", "0", "-o", "out"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains("and its image disagree"));
        assert!(stdout(&output).contains(&format!("(holds {holds})")), "{}", stdout(&output));
    }
}
