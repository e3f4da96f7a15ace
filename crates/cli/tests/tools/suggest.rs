//! "Did you mean", and what a file has where what was asked for is not in it: as messages, which change nothing of what
//! is printed and how a command ends.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{data, stderr, stdout};

/// Runs `offload` where the example files and a place to write to are.
fn run(place: &Path, args: &str) -> std::process::Output {
    for name in ["hip.o", "hip.hipfb", "hip-two-units-ccob.so"] {
        fs::copy(data(name), place.join(name)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_offload"));
    command.args(args.split(' ')).current_dir(place).output().unwrap()
}

/// The command line, its exit status, and words of what it says.
const CASES: &[(&str, i32, &[&str])] = &[
    // The processor, in all spellings.
    (
        "ls --target gfx1103x hip.o",
        0,
        &["warning: unknown processor gfx1103x; did you mean gfx1103?"],
    ),
    ("ls --target gfx90A hip.o", 0, &["; did you mean gfx90a?"]),
    ("ls --target sm90 hip.o", 0, &["; did you mean sm_90?"]),
    ("ls --target gfx9-gneric hip.o", 0, &["; did you mean gfx9-generic?"]),
    ("ls --target amdgcn-amd-amdhsa-gfx803 hip.o", 0, &["; did you mean gfx803?"]),
    ("ls --target MI3000X hip.o", 0, &["none of its"]),
    (
        "ls --target RX_7900 hip.o",
        2,
        &["RX_7900 names several GPUs: Radeon RX 7900 GRE (gfx1100), "],
    ),
    ("thin --keep 840M hip.o -o out", 2, &["Radeon 840M (gfx1152), GeForce 840M (sm_50)"]),
    (
        "ls --target hip-amdgcn-amd-amdhsa--gfx110A hip.o",
        0,
        &["; did you mean hip-amdgcn-amd-amdhsa--gfx1100?"],
    ),
    ("ls --target gfx90a:xnak+ hip.o", 2, &["; did you mean gfx90a:xnack+?"]),
    ("ls --target gfx90a:xnack hip.o", 2, &["; did you mean gfx90a:xnack+ or gfx90a:xnack-?"]),
    ("match --gpu 1002:ffff hip.o", 2, &["no GPU with PCI ID 1002:ffff is known"]),
    ("match --gpu gfx906:xnak- hip.o", 2, &["; did you mean gfx906:xnack-?"]),
    (
        "match --gpu gfx1155 hip.hipfb",
        1,
        &["unknown processor gfx1155", "did you mean gfx1150 or gfx1151?"],
    ),
    // What the file has.
    (
        "ls --target gfx1101 hip-two-units-ccob.so",
        0,
        &[
            "none of its 6 images serves the given target; it has gfx1100, gfx906; code for gfx11-generic would serve gfx1101, too",
        ],
    ),
    (
        "ls --target openmp-amdgcn-amd-amdhsa--gfx1100 hip.hipfb",
        0,
        &["serves the given target; it has gfx1100\n"],
    ),
    ("ls --target gfx1155 hip.hipfb", 0, &["; it has gfx1100; did you mean gfx1150 or gfx1151?"]),
    (
        "ls --id hip-amdgcn-amd-amdhsa--gfx1100 hip.hipfb",
        0,
        &["did you mean hipv4-amdgcn-amd-amdhsa--gfx1100?"],
    ),
    (
        "extract --target gfx1101 hip.hipfb",
        1,
        &["it has #0 host-", "; code for gfx11-generic would serve gfx1101, too"],
    ),
    (
        "thin --keep gfx1101 hip.hipfb -o out",
        1,
        &["no such image; the file has gfx1100; code for gfx11-generic would serve it"],
    ),
    (
        "thin --keep gfx1103x hip.hipfb -o out",
        2,
        &["unknown processor gfx1103x; did you mean gfx1103?"],
    ),
    ("thin --drop gfx110A hip.hipfb -o out", 2, &["; did you mean gfx1100 or gfx1101?"]),
    (
        "thin --drop hip-amdgcn-amd-amdhsa--gfx110A hip.hipfb -o out",
        1,
        &["did you mean gfx1100? The file has gfx1100"],
    ),
    (
        "remove hip.hipfb --id hip-amdgcn-amd-amdhsa--gfx1100 -o out",
        1,
        &["; did you mean hipv4-amdgcn-amd-amdhsa--gfx1100? There is #0"],
    ),
    ("replace hip.hipfb gfx110A=hip.o -o out", 1, &["; did you mean gfx1100? There is #0"]),
    // Another processor that there is: no slip.
    ("replace hip.hipfb gfx1101=hip.o -o out", 1, &["no image is 'gfx1101'; there is #0"]),
    (
        "unbundle hip.hipfb hip-amdgcn-amd-amdhsa--gfx1101=out",
        1,
        &["; the file has host-x86_64-unknown-linux-gnu-, hipv4-amdgcn-amd-amdhsa--gfx1100\n"],
    ),
    (
        "unbundle hip.hipfb hip-amdgcn-amd-amdhsa--gfx110A=out",
        1,
        &["; did you mean hip-amdgcn-amd-amdhsa--gfx1100?"],
    ),
    // Bundle entry IDs.
    (
        "unbundle hip.hipfb hpi-amdgcn-amd-amdhsa--gfx1100=out",
        1,
        &["unknown offload kind 'hpi'; did you mean hip-amdgcn-amd-amdhsa--gfx1100?"],
    ),
    (
        "add hip.hipfb hpi-amdgcn-amd-amdhsa--gfx1100=hip.o -o out",
        1,
        &["; did you mean hip-amdgcn-amd-amdhsa--gfx1100?"],
    ),
    (
        "add hip.hipfb hip-amdgcn-amd-amdhsa--gfx110A=hip.o --any-image -o out",
        0,
        &["is taken as it is; did you mean hip-amdgcn-amd-amdhsa--gfx1100?"],
    ),
    (
        "bundle -o out hpi-amdgcn-amd-amdhsa--gfx90a=hip.o",
        1,
        &["unknown offloading kind 'hpi'; did you mean hip-amdgcn-amd-amdhsa--gfx90a?"],
    ),
    (
        "bundle -o out hip-amdgcn-amd-amdhsa--gfx90A=hip.o",
        0,
        &["kept as it is; did you mean hip-amdgcn-amd-amdhsa--gfx90a?"],
    ),
    (
        "bundle -o out hip-amdgcn-amd-amdhsa-gfx90A=hip.o",
        0,
        &["is taken as it is; did you mean hip-amdgcn-amd-amdhsa--gfx90a?"],
    ),
    // Packages.
    ("pack -o out kind=hpi,triple=amdgcn-amd-amdhsa,file=hip.o", 1, &["; did you mean hip?"]),
    (
        "pack -o out knd=hip,triple=amdgcn-amd-amdhsa,file=hip.o",
        0,
        &["key 'knd' has no meaning here; did you mean kind?"],
    ),
    (
        "pack -o out kind=hip,triple=amdgcn-amd-amdhas,file=hip.o",
        0,
        &["did you mean amdgcn-amd-amdhsa?"],
    ),
    (
        "pack -o out kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx90A,file=hip.o",
        0,
        &["unknown processor gfx90A; did you mean gfx90a?"],
    ),
    // Names.
    ("wrap --kind opnmp -o out hip.o", 1, &["; did you mean openmp?"]),
    ("wrap --kind hip --abi curent -o out hip.hipfb", 1, &["; did you mean current?"]),
    ("wrap --kind hip --abi 16 -o out hip.hipfb", 1, &["; did you mean legacy?"]),
    ("compress --method zstdd hip.hipfb -o out", 2, &["a similar value exists: 'zstd'"]),
    ("man thn", 1, &["no manual page for 'thn'; did you mean thin?"]),
    ("thim", 2, &["a similar subcommand exists: 'thin'"]),
];

#[test]
fn what_may_have_been_meant() {
    let place = tempfile::tempdir().unwrap();
    for (args, status, words) in CASES {
        let output = run(place.path(), args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(*status), "{args}: {said}");
        for words in *words {
            assert!(said.contains(words), "{args}: {said}");
        }
        assert!(!stdout(&output).contains("did you mean"), "{args}");
    }
}

#[test]
fn what_is_fine_says_nothing() {
    let place = tempfile::tempdir().unwrap();
    for args in [
        "ls --target gfx1100 hip.o",
        "ls --target gfx906:xnack+ hip.o",
        "ls --target hip-amdgcn-amd-amdhsa--gfx1100 hip.o",
        "extract --target gfx1100 hip.hipfb -o images",
        "ls --target 1002:744c hip.hipfb",
        "extract --target rx7900xtx hip.hipfb -o images2",
        "match --gpu Radeon_RX_7900_GRE hip.hipfb",
        "replace hip.hipfb RX-7900-XT=hip.o --any-image -o out",
        "thin --keep w7900 hip.hipfb -o out",
        "gpus gfx1100",
        "thin --keep gfx1100 hip.hipfb -o out",
        "bundle -o out hip-amdgcn-amd-amdhsa--gfx1100=hip.o",
        "bundle -o out hip-amdgcn-amd-amdhsa-gfx1100=hip.o",
        "bundle -o out host-x86_64-unknown-linux-gnu=hip.o openmp-nvptx64-nvidia-cuda--sm_80=hip.o",
        "pack -o out kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx90a:xnack+,feature=x,file=hip.o",
        "pack -o out kind=sycl,triple=spirv64-unknown-unknown,arch=generic,file=hip.o",
        "pack -o out kind=openmp,triple=x86_64-unknown-linux-gnu,arch=skylake,file=hip.o",
        "unbundle hip.hipfb hip-amdgcn-amd-amdhsa--gfx1100=out",
    ] {
        let output = run(place.path(), args);
        let said = stderr(&output);
        let is_doubtful = ["did you mean", "warning"].iter().any(|word| said.contains(word));
        assert!(output.status.success() && !is_doubtful, "{args}: {said}");
    }
}

/// Where LLVM's tools say nothing, neither do those that stand in for them.
#[test]
fn the_drop_in_tools_say_what_llvm_says() {
    let bundler = env!("CARGO_BIN_EXE_clang-offload-bundler");
    let packager = env!("CARGO_BIN_EXE_llvm-offload-binary");
    let input = data("hip.hipfb");
    let input = input.to_str().unwrap();
    let image = format!("--image=file={input},triple=amdgcn-amd-amdhas,arch=gfx90A,kind=hip");
    for (tool, args) in [
        (bundler, &["-type=bc", "-targets=hpi-amdgcn-amd-amdhsa--gfx90a", "-output=/dev/null"][..]),
        (bundler, &["-type=bc", "-targets=hip-amdgcn-amd-amdhsa--gfx90A", "-output=/dev/null"]),
        (packager, &["-o", "/dev/null", &image]),
    ] {
        let input = format!("-input={input}");
        let input = if tool == bundler { &[input.as_str()][..] } else { &[] };
        let output = Command::new(tool).args(args).args(input).output().unwrap();
        assert!(!stderr(&output).contains("did you mean"), "{tool} {args:?}");
    }
}

/// `offload gpus` lists what is accepted.
#[test]
fn names_of_gpus() {
    let place = tempfile::tempdir().unwrap();
    let listed = |args: &str| {
        let output = run(place.path(), args);
        (output.status.code(), stdout(&output), stderr(&output))
    };
    let (status, table, _) = listed("gpus rx-7600");
    assert_eq!(status, Some(0));
    let names: Vec<_> =
        table.lines().skip(1).map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "Radeon RX 7600",
            "Radeon RX 7600 XT",
            "Radeon RX 7600M",
            "Radeon RX 7600M XT",
            "Radeon RX 7600S"
        ]
    );
    let (_, json, _) = listed("gpus --json 8086:56a0");
    assert_eq!(
        json,
        "[\n  {\"name\":\"Arc A770\",\"vendor\":\"Intel\",\"processor\":\"intel_gpu_acm_g10\",\"pci_ids\":[\"8086:56a0\"]}\n]\n"
    );
    let (_, all, _) = listed("gpus");
    assert!(all.lines().count() > 400);
    assert!(listed("gpus pvc").1.contains("intel_gpu_pvc"));
    let (_, vendor, _) = listed("gpus intel");
    assert!(vendor.lines().skip(1).all(|line| line.contains("  Intel  ")));
    assert_eq!(listed("gpus voodoo2 gfx1153").0, Some(1));
    assert_eq!(
        listed("gpus voodoo2"),
        (Some(1), String::new(), "offload: error: voodoo2: no such GPU is known\n".to_owned())
    );
}
