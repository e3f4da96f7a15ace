//! The rules of the runtimes, case by case: a container's images, a device, and which image it loads.
//!
//! Sources: HIP's `ExtractFatBinaryUsingCOMGR`, Comgr's `lookUpCodeObject`, `registerLib` of LLVM's libomptarget, NVIDIA's
//! compatibility guides, `getDeviceImage` of `sycl-rt`. See [`device_select`].

use bundle_format::EntryId;
use device_select::{Answer, Candidate, Device, Given, Note, Selection, Support, Unit, select};
use fat_object::FileFormat::{Bitcode, Cubin, Elf, Empty, Fatbinary, Ptx, SpirV, Zstd};
use fat_object::{ContainerKind, FileFormat};

const CODE: FileFormat = Elf { machine: 224 };

/// An image by its bundle entry ID.
fn image(container: ContainerKind, id: &str, format: FileFormat) -> Candidate {
    // As PTX says it itself.
    let id = if format == Ptx { id.replace("sm_", "compute_") } else { id.to_owned() };
    Candidate::new(container, EntryId::parse(&id).unwrap().target(), format)
}

fn container_of(container: ContainerKind, images: &[(&str, FileFormat)]) -> Unit {
    Unit::new(images.iter().map(|(id, format)| image(container, id, *format)).collect())
}

/// HIP entries by target ID.
fn hip(container: ContainerKind, targets: &[&str]) -> Unit {
    let images = targets.iter().map(|target| {
        let id = match *target {
            "host" => "host-x86_64-unknown-linux-gnu-".to_owned(),
            "amdgcnspirv" => "hip-spirv64-amd-amdhsa--amdgcnspirv".to_owned(),
            target => format!("hipv4-amdgcn-amd-amdhsa--{target}"),
        };
        image(container, &id, CODE)
    });
    Unit::new(images.collect())
}

fn cuda(images: &[(&str, FileFormat)]) -> Unit {
    let images = images.iter().map(|(arch, format)| {
        let id = format!("cuda-nvptx64-nvidia-cuda--{arch}");
        image(ContainerKind::NvFatbin, &id, *format)
    });
    Unit::new(images.collect())
}

/// Returns the image that a GPU gets, with the verdict about each image.
fn answer(unit: &Unit, gpu: &str) -> Selection {
    let gpu = Device::parse(gpu).unwrap();
    let selection = select(std::slice::from_ref(unit), &gpu);
    let [answer] = selection.answers() else { panic!("one unit, one answer") };
    assert_eq!(answer.images.len(), unit.candidates().len());
    selection
}

fn only(selection: &Selection) -> &Answer {
    let [answer] = selection.answers() else { panic!("one unit, one answer") };
    answer
}

fn picked(unit: &Unit, gpu: &str) -> Vec<usize> {
    only(&answer(unit, gpu)).loaded().collect()
}

fn reasons(unit: &Unit, gpu: &str) -> Vec<String> {
    let selection = answer(unit, gpu);
    only(&selection).images.iter().map(|image| image.reason().to_string()).collect()
}

/// `yes`, `no`, or a condition.
fn word(given: &Given) -> &str {
    match given {
        Given::Yes => "yes",
        Given::If(condition) => condition.as_str(),
        Given::No => "no",
    }
}

fn given(unit: &Unit, gpu: &str) -> String {
    word(&only(&answer(unit, gpu)).given).to_owned()
}

#[test]
fn hip_takes_native_then_generic_then_portable_code() {
    let all = ["host", "amdgcnspirv", "gfx11-generic", "gfx1100"];
    for container in [ContainerKind::Bundle, ContainerKind::Ccob] {
        for count in 2..=all.len() {
            let unit = hip(container, &all[..count]);
            assert_eq!(picked(&unit, "gfx1100"), [count - 1]);
        }
        let unit = hip(container, &all);
        let said = reasons(&unit, "gfx1100");
        assert_eq!(
            said,
            [
                "is host code",
                "would run, but gfx1100 comes before portable code",
                "would run, but gfx1100 comes before generic code",
                "is an exact match",
            ]
        );
        let said = reasons(&unit, "gfx1030");
        assert_eq!(said[1], "is portable, compiled for gfx1030 when it is loaded");
        assert_eq!(said[2], "is generic code, gfx11-generic does not cover gfx1030");
        assert_eq!(said[3], "is for gfx1100, not for gfx1030");
        assert_eq!(given(&hip(container, &all[2..]), "gfx1030"), "no");
    }
}

#[test]
fn a_plain_bundle_gives_the_first_of_equal_entries() {
    // Entries that must not be in one bundle together.
    let targets = ["gfx90a", "gfx90a:sramecc+:xnack+"];
    let gpu = "gfx90a:sramecc+:xnack+";
    let plain = hip(ContainerKind::Bundle, &targets);
    assert_eq!(picked(&plain, gpu), [0]);
    assert_eq!(reasons(&plain, gpu)[1], "would run, but gfx90a stands before it");
    let compressed = hip(ContainerKind::Ccob, &targets);
    assert_eq!(picked(&compressed, gpu), [1]);
    assert_eq!(
        reasons(&compressed, gpu)[0],
        "would run, but gfx90a:sramecc+:xnack+ is a better match"
    );
    let twins = hip(ContainerKind::Ccob, &["gfx906", "gfx906"]);
    assert_eq!(picked(&twins, "gfx906"), [0]);
    assert_eq!(reasons(&twins, "gfx906")[1], "would run, but gfx906 stands before it");
}

#[test]
fn open_features_become_conditions() {
    let one = hip(ContainerKind::Bundle, &["gfx90a:xnack-"]);
    assert_eq!(given(&one, "gfx90a"), "xnack is off");
    let selection = answer(&one, "gfx90a");
    let [image] = &selection.answers()[0].images[..] else { panic!("one image") };
    assert_eq!(word(&image.given), "xnack is off");
    assert_eq!(image.reason().to_string(), "runs with sramecc on or off");
    assert_eq!(given(&one, "gfx90a:xnack-"), "yes");
    assert_eq!(given(&one, "gfx90a:xnack+"), "no");

    let both = hip(ContainerKind::Bundle, &["gfx90a:xnack-", "gfx90a:xnack+"]);
    let selection = answer(&both, "gfx90a");
    let answer = &selection.answers()[0];
    assert_eq!(answer.given, Given::Yes);
    let given: Vec<_> = answer.images.iter().map(|image| word(&image.given)).collect();
    assert_eq!(given, ["xnack is off", "xnack is on"]);
    let states = answer.images.iter().map(|image| image.given.condition()?.states());
    assert_eq!(states.collect::<Vec<_>>(), [Some(0b0011), Some(0b1100)]);
}

#[test]
fn the_reason_names_a_feature_that_the_gpu_states() {
    let unit = hip(ContainerKind::Bundle, &["gfx90a:sramecc+:xnack-"]);
    for gpu in ["gfx90a:xnack+", "gfx90a:sramecc+:xnack+", "gfx90a:sramecc-:xnack+"] {
        let expected = match gpu {
            "gfx90a:sramecc-:xnack+" => "needs sramecc on, the device has it off",
            _ => "needs xnack off, the device has it on",
        };
        assert_eq!(reasons(&unit, gpu), [expected], "{gpu}");
    }
    // The whole GPU, not what is asked for, decides.
    assert_eq!(given(&unit, "gfx90a:sramecc+"), "xnack is off");
}

#[test]
fn cuda_takes_machine_code_before_ptx_and_the_nearest_of_each() {
    let unit = cuda(&[
        ("sm_75", Ptx),
        ("sm_80", Cubin),
        ("sm_86", Cubin),
        ("sm_86", Ptx),
        ("sm_90a", Cubin),
        ("sm_90", Cubin),
        ("sm_100f", Cubin),
    ]);
    for (gpu, image) in [
        ("sm_80", 1),
        ("sm_86", 2),
        ("sm_89", 2),
        ("sm_75", 0),
        ("sm_100", 6),
        ("sm_103", 6),
        ("sm_110", 3),
        ("sm_120", 3),
    ] {
        assert_eq!(picked(&unit, gpu), [image], "{gpu}");
    }
    // A GPU is not more than its compute capability: the driver takes the code of the narrowest scope.
    assert_eq!((picked(&unit, "sm_90"), picked(&unit, "sm_90a")), (vec![4], vec![4]));
    assert!(picked(&unit, "sm_70").is_empty());
    assert_eq!(
        reasons(&unit, "sm_89"),
        [
            "would run, but sm_86 comes before PTX",
            "would run, but sm_86 is a better match",
            "is code for sm_86, which sm_89 runs",
            "would run, but sm_86 comes before PTX",
            "is code for sm_90a, which runs on compute capability 9.0 only",
            "is code for sm_90, newer than sm_89",
            "is code for sm_100f, newer than sm_89",
        ]
    );
}

#[test]
fn openmp_takes_the_first_package_that_fits() {
    let images = [
        ("openmp-nvptx64-nvidia-cuda--sm_80", Bitcode),
        ("openmp-nvptx64-nvidia-cuda--sm_86", Bitcode),
        ("openmp-amdgcn-amd-amdhsa--gfx90a", Bitcode),
    ];
    let packages = container_of(ContainerKind::OffloadBinary, &images);
    assert_eq!(picked(&packages, "sm_89"), [0]);
    assert_eq!(reasons(&packages, "sm_89")[1], "would run, but sm_80 stands before it");
    assert_eq!(reasons(&packages, "sm_89")[2], "is for another vendor (AMD)");
    assert_eq!(picked(&packages, "gfx90a:xnack+"), [2]);
    // The bundler knows the best one.
    assert_eq!(picked(&container_of(ContainerKind::Bundle, &images), "sm_89"), [1]);
}

#[test]
fn generic_code_in_a_package_is_for_any_processor() {
    let id = "openmp-amdgcn-amd-amdhsa--generic";
    let package = container_of(ContainerKind::OffloadBinary, &[(id, Bitcode)]);
    assert_eq!(given(&package, "gfx90a"), "yes");
    assert_eq!(given(&package, "sm_90"), "no");
    let bundle = container_of(ContainerKind::Bundle, &[(id, Bitcode)]);
    assert_eq!(given(&bundle, "gfx90a"), "no");
}

#[test]
fn hosts_and_unusable_entries_are_for_no_gpu() {
    let bundled = |id: &str, format| image(ContainerKind::Bundle, id, format);
    let unit = Unit::new(vec![
        bundled("host-x86_64-unknown-linux-gnu-", CODE),
        bundled("hip-amdgcn-amd-amdhsa--gfx906", Fatbinary),
        bundled("hip-amdgcn-amd-amdhsa--gfx906", Empty),
        bundled("hip-amdgcn-amd-amdhsa--", CODE),
        bundled("hip-amdgcn-amd-amdhsa--gfx906:xnack", CODE),
    ]);
    let said = reasons(&unit, "gfx906");
    assert_eq!(said[0], "is host code");
    assert_eq!(said[1], "is a fatbinary, whose images are judged on their own");
    assert_eq!(said[2], "is empty");
    assert_eq!(said[3], "names no processor");
    assert!(said[4].starts_with("cannot be compared: "), "{}", said[4]);
    let lto = cuda(&[("sm_90", FileFormat::Unknown)]);
    assert_eq!(reasons(&lto, "sm_90"), ["is neither machine code nor PTX"]);
}

#[test]
fn sycl_takes_spirv_where_no_machine_code_is_named() {
    let unit = container_of(
        ContainerKind::Section,
        &[("sycl-spir64_gen", Zstd), ("sycl-spir64", Zstd), ("sycl-spir64_x86_64", Zstd)],
    );
    assert_eq!(picked(&unit, "intel_gpu_pvc"), [1]);
    let said = reasons(&unit, "bmg_g21");
    assert_eq!(said[0], "is machine code for GPUs that the container does not name");
    assert_eq!(said[2], "is for x86 processors");
    let said = reasons(&unit, "gfx906");
    assert_eq!(said[..2], ["is for another vendor (Intel)", "is SPIR-V, but not for AMD GPUs"]);

    let ahead = container_of(ContainerKind::Section, &[("sycl-spir64_gen", Zstd)]);
    assert_eq!(given(&ahead, "bmg_g21"), "its machine code is for this very GPU");
    assert_eq!(given(&ahead, "sm_90"), "no");
    let amd = hip(ContainerKind::Bundle, &["amdgcnspirv"]);
    assert_eq!(reasons(&amd, "sm_90"), ["is SPIR-V for AMD GPUs"]);
    let portable = container_of(
        ContainerKind::OffloadBinary,
        &[("sycl-spirv64-unknown-unknown--generic", SpirV)],
    );
    assert_eq!(picked(&portable, "bmg_g21"), [0]);
}

fn counted(units: &[Unit], gpu: &str) -> Vec<(bool, Given)> {
    let selection = select(units, &Device::parse(gpu).unwrap());
    let given = |answer: &Answer| match &answer.given {
        Given::Yes => Given::Yes,
        Given::No => Given::No,
        Given::If(condition) => panic!("{condition:?}"),
    };
    selection.answers().iter().map(|answer| (answer.counts(), given(answer))).collect()
}

#[test]
fn containers_of_other_vendors_are_used_if_there_are_no_others() {
    let units = [hip(ContainerKind::Bundle, &["gfx906"]), cuda(&[("sm_80", Cubin)])];
    assert_eq!(counted(&units, "gfx906"), [(true, Given::Yes), (false, Given::No)]);
    assert_eq!(counted(&units, "sm_90"), [(false, Given::No), (true, Given::No)]);
    assert_eq!(counted(&units[..1], "sm_80"), [(true, Given::No)]);
    let host = hip(ContainerKind::Bundle, &["host"]);
    assert_eq!(counted(&[host], "gfx906"), [(true, Given::No)]);
}

fn support(units: &[Unit], gpu: &str) -> Support {
    select(units, &Device::parse(gpu).unwrap()).support()
}

#[test]
fn all_that_hip_registers_is_needed_and_some_of_cuda() {
    let hip = |targets: &[&str]| hip(ContainerKind::Bundle, targets);
    let units = [hip(&["gfx906", "gfx1100"]), hip(&["gfx906"])];
    assert_eq!(support(&units, "gfx906"), Support::Yes);
    assert_eq!(support(&units, "gfx1100"), Support::No);
    assert_eq!(support(&units, "gfx90a"), Support::No);
    assert_eq!(support(&units, "sm_80"), Support::No);
    // Built alike: what one lacks all lack.
    let like = || cuda(&[("sm_80", Cubin), ("sm_90", Cubin)]);
    assert_eq!(support(&[like(), like()], "sm_86"), Support::Yes);
    assert_eq!(support(&[like(), like()], "sm_75"), Support::No);
    // Built unlike: the program chooses.
    let units = [like(), cuda(&[("sm_90", Cubin)]), cuda(&[("sm_100", Cubin)])];
    assert_eq!(support(&units, "sm_90"), Support::Partly);
    assert_eq!(support(&units, "sm_86"), Support::Partly);
    assert_eq!(support(&units, "sm_120"), Support::No);
    // Code that names its only GPU says so.
    let specific = [like(), cuda(&[("sm_90a", Cubin)])];
    assert_eq!(support(&specific, "sm_80"), Support::Yes);
    assert_eq!(support(&specific[1..], "sm_80"), Support::No);
    assert_eq!(support(&[], "sm_80"), Support::No);
}

#[test]
fn lto_ir_counts_where_there_is_nothing_else() {
    let lto_ir = || cuda(&[("sm_75", FileFormat::LtoIr)]);
    assert_eq!(support(&[lto_ir(), cuda(&[("sm_80", Cubin)])], "sm_86"), Support::Yes);
    assert_eq!(support(&[lto_ir(), cuda(&[("sm_80", Cubin)])], "sm_75"), Support::No);
    assert_eq!(support(&[lto_ir()], "sm_86"), Support::Unknown);
    assert_eq!(support(&[lto_ir()], "gfx1100"), Support::No);
}

#[test]
fn tegra_runs_no_machine_code_for_others() {
    let unit = cuda(&[("sm_80", Cubin), ("sm_80", Ptx)]);
    assert_eq!(picked(&unit, "sm_86"), [0]);
    assert_eq!(picked(&unit, "sm_87"), [1]);
    let reason = "is code for sm_80, but sm_87 is Tegra's, which runs no other machine code";
    assert_eq!(reasons(&unit, "sm_87")[0], reason);
    assert_eq!(picked(&cuda(&[("sm_87", Cubin)]), "sm_89"), [0; 0]);
}

#[test]
fn code_for_the_cpu_is_for_no_gpu() {
    let id = "openmp-x86_64-pc-linux-gnu-unknown-generic";
    let unit = container_of(ContainerKind::OffloadBinary, &[(id, CODE)]);
    for gpu in ["gfx90a", "sm_90", "intel_gpu_pvc"] {
        assert_eq!(given(&unit, gpu), "no");
        assert_eq!(reasons(&unit, gpu), ["is code for CPUs (x86_64)"]);
        assert_eq!(support(std::slice::from_ref(&unit), gpu), Support::No);
    }
}

#[test]
fn code_that_is_not_linked_is_loaded_by_nothing() {
    let needs_link = "is not linked: it needs the offload link step";
    for (container, id, is_loaded) in [
        (ContainerKind::Section, "hip-amdgcn-amd-amdhsa--gfx906", false),
        (ContainerKind::Bundle, "hipv4-amdgcn-amd-amdhsa--gfx906", false),
        (ContainerKind::OffloadBinary, "hip-amdgcn-amd-amdhsa--gfx906", false),
        (ContainerKind::Section, "openmp-amdgcn-amd-amdhsa--gfx906", false),
        // OpenMP's plugins compile it.
        (ContainerKind::OffloadBinary, "openmp-amdgcn-amd-amdhsa--gfx906", true),
        (ContainerKind::Hcf, "hip-amdgcn-amd-amdhsa--gfx906", true),
    ] {
        let unit = container_of(container, &[(id, Bitcode)]);
        assert_eq!(given(&unit, "gfx906") == "yes", is_loaded, "{container:?} {id}");
        if !is_loaded {
            assert_eq!(reasons(&unit, "gfx906"), [needs_link]);
            assert_eq!(only(&answer(&unit, "gfx906")).note, Some(Note::Unlinked));
            assert_ne!(reasons(&unit, "gfx90a"), [needs_link]);
        }
    }
}

#[test]
fn cuda_code_is_linked_from_ptx() {
    let part = || cuda(&[("sm_80", Cubin), ("sm_80", Ptx)]).with_section(7, "__nv_relfatbin");
    let linked = || cuda(&[("sm_80", Cubin)]).with_section(7, ".nv_fatbin");
    assert_eq!(
        counted(&[part(), part(), linked()], "sm_90"),
        [(false, Given::Yes), (false, Given::Yes), (true, Given::Yes)]
    );
    assert_eq!(counted(&[part(), linked()], "sm_75"), [(false, Given::No), (true, Given::No)]);
    // A source file without kernels has nothing to link.
    let nothing = image(ContainerKind::NvFatbin, "cuda-nvptx64-nvidia-cuda--sm_80", Cubin);
    let empty = Unit::new(vec![nothing.with_code(false)]).with_section(7, "__nv_relfatbin");
    assert_eq!(
        counted(&[part(), empty, linked()], "sm_90"),
        [(false, Given::Yes), (false, Given::No), (true, Given::Yes)]
    );
    // Images of another object, or images that are not linked yet.
    let other = linked().with_section(8, ".nv_fatbin");
    assert_eq!(counted(&[part(), other], "sm_90"), [(true, Given::Yes), (true, Given::No)]);
    assert_eq!(counted(&[part()], "sm_75"), [(true, Given::No)]);
}

#[test]
fn packages_may_have_files_for_newer_gpus() {
    use device_select::FileSet;

    let set = |files: &[(&str, &[&str])], gpu: &str| {
        let gpu = Device::parse(gpu).unwrap();
        let mut set = FileSet::new([gpu.clone()]);
        for (name, targets) in files {
            let images: Vec<_> = targets.iter().map(|target| (*target, Cubin)).collect();
            let units = [cuda(&images)];
            set.add(name, &units, [(0, &select(&units, &gpu))]);
        }
        set.support(0)
    };
    let main: (&str, &[&str]) = ("a/_C.so", &["sm_75", "sm_80", "sm_90", "sm_120"]);
    let attention: (&str, &[&str]) = ("a/_attention_C.so", &["sm_80", "sm_90a"]);
    let newest: (&str, &[&str]) = ("a/_newest_C.so", &["sm_90a", "sm_100f"]);
    assert_eq!(
        set(&[main, ("a/_moe_C.so", main.1), attention, newest], "sm_75"),
        Some(Support::Partly)
    );
    assert_eq!(set(&[main, attention, newest], "sm_75"), Some(Support::No));
    assert_eq!(set(&[main, newest], "sm_120"), Some(Support::Partly));
    // This one was built before the GPU.
    assert_eq!(set(&[main, attention], "sm_120"), Some(Support::No));
    assert_eq!(set(&[attention, newest], "sm_75"), Some(Support::No));
    assert_eq!(set(&[main], "sm_86"), Some(Support::Yes));
}
