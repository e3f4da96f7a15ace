//! `offload kernels` beside LLVM's tools on what clang 22 makes for GPUs of all generations: the metadata as
//! `llvm-readobj --notes` prints it, sizes of code as `llvm-readelf` does, registers as `llvm-objdump` decodes descriptors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common;
use crate::common::{printed_in as run, tool};

const PROCESSORS: [&str; 15] = [
    "gfx803",
    "gfx900",
    "gfx906:xnack+",
    "gfx908",
    "gfx90a:xnack-",
    "gfx942",
    "gfx950",
    "gfx1010",
    "gfx1030",
    "gfx1100",
    "gfx1151",
    "gfx1201",
    "gfx1250",
    "gfx9-generic",
    "gfx12-generic",
];

/// Arguments with names, memory of the launch, and one size of work-groups.
const OPENCL: &str = "kernel __attribute__((reqd_work_group_size(64, 2, 1)))
void add(global float *data, local float *part, float by) { data[0] = part[0] + by; }
kernel void nothing() {}
";

#[test]
fn kernels_are_those_of_llvm_readobj() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(place.join("arguments.cl"), OPENCL).unwrap();
    let hip = common::data("src/kernels.hip");
    let mut compared = (0, 0, 0);
    let is_thorough = samples::faulty::is_thorough();
    let (first, step) = if is_thorough { (0, 1) } else { (1, 3) };
    for processor in PROCESSORS.iter().skip(first).step_by(step) {
        let versions = if processor.ends_with("-generic") { 6..=6 } else { 4..=6 };
        for version in versions {
            let version = format!("-mcode-object-version={version}");
            let of_hip = format!("--offload-arch={processor}");
            let of_cl = format!("-mcpu={processor}");
            let mut for_hip =
                vec!["--target=x86_64-pc-linux-gnu", "-x", "hip", "-nogpuinc", "-nogpulib"];
            for_hip.extend([
                "-Os",
                "--cuda-device-only",
                "--no-gpu-bundle-output",
                &version,
                &of_hip,
            ]);
            for_hip.extend([hip.to_str().unwrap(), "-o", "hip.co"]);
            run(common::llvm("clang"), &for_hip, place);
            let for_cl = [
                "--target=amdgcn-amd-amdhsa",
                "-nogpulib",
                &version,
                &of_cl,
                "arguments.cl",
                "-o",
                "cl.co",
            ];
            run(common::llvm("clang"), &for_cl, place);
            for file in ["hip.co", "cl.co"] {
                let (kernels, fields) =
                    compare(place, file, &format!("{processor} {version} {file}"));
                compared = (compared.0 + 1, compared.1 + kernels, compared.2 + fields);
            }
        }
    }
    let (images, kernels, fields) = compared;
    println!("{images} images, {kernels} kernels, {fields} fields");
    let files = if is_thorough { 41 } else { 13 };
    assert_eq!((images, kernels), (2 * files, 7 * files));
}

/// Compares all kernels of an image; returns how many they are, and the number of fields.
fn compare(place: &Path, file: &str, what: &str) -> (usize, usize) {
    let printed = run(common::llvm("llvm-readobj"), &["--notes", file], place);
    let theirs = metadata(&printed);
    let ours = run(tool("offload"), &["kernels", "--json", file], place);
    let ours: Vec<Value> = common::rows(ours.as_bytes());
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let symbols = run(common::llvm("llvm-readelf"), &["-sW", file], place);
    let sizes: BTreeMap<&str, u64> = symbols
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(3) == Some(&"FUNC"))
        .map(|words| (words[7], words[2].parse().unwrap()))
        .collect();
    let offsets = offsets(place, file);
    let allocated = allocated(place, file, &theirs);
    let mut fields = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let number = |key: &str| {
            theirs.get(key).map_or(Value::Null, |text| json!(text.parse::<u64>().unwrap()))
        };
        let name = theirs[".name"].as_str();
        let is_dynamic = theirs.get(".uses_dynamic_stack").is_some_and(|text| text == "true");
        let private = number(".private_segment_fixed_size");
        let spills =
            [".vgpr_spill_count", ".sgpr_spill_count"].map(|key| number(key).as_u64().unwrap());
        for (field, expected) in [
            ("name", json!(name)),
            ("kind", json!(theirs.get(".kind").map_or("kernel", String::as_str))),
            ("relocatable", json!(false)),
            ("code", json!(sizes[name])),
            ("code_is_estimated", json!(false)),
            ("code_offset", json!(offsets[name])),
            ("descriptor_offset", json!(offsets[&*theirs[".symbol"]])),
            ("registers", number(".vgpr_count")),
            ("allocated", json!(allocated[name])),
            ("accumulators", number(".agpr_count")),
            ("scalars", number(".sgpr_count")),
            ("vgpr_spills", number(".vgpr_spill_count")),
            ("sgpr_spills", number(".sgpr_spill_count")),
            ("spills", json!(spills[0] + spills[1])),
            ("group", number(".group_segment_fixed_size")),
            ("private", if is_dynamic { Value::Null } else { private }),
            ("private_is_unknown", json!(is_dynamic)),
            ("arguments", number(".kernarg_segment_size")),
            ("workgroup", number(".max_flat_workgroup_size")),
            ("wave_size", number(".wavefront_size")),
            (
                "required_workgroup",
                theirs
                    .get(".reqd_workgroup_size")
                    .map_or(Value::Null, |text| serde_json::from_str(text).unwrap()),
            ),
            ("argument_list", serde_json::from_str(&theirs[".args"]).unwrap()),
            ("frame", Value::Null),
            ("barriers", Value::Null),
        ] {
            assert_eq!(ours[field], expected, "{what}: {name}: {field}");
            fields += 1;
        }
    }
    (ours.len(), fields)
}

/// Returns the places of symbols in the file: their addresses, through the segments that `llvm-readelf` prints.
fn offsets(place: &Path, file: &str) -> BTreeMap<String, u64> {
    let printed = run(common::llvm("llvm-readelf"), &["-lsW", file], place);
    let words = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let (mut segments, mut found) = (Vec::new(), BTreeMap::new());
    for words in words {
        if words.first() == Some(&"LOAD") {
            segments.push([1, 2, 4].map(|column| hex(words[column])));
        } else if matches!(words.get(3), Some(&("FUNC" | "OBJECT"))) {
            let (address, size) = (hex(words[1]), words[2].parse::<u64>().unwrap());
            let lies =
                |[_, start, len]: &&[u64; 3]| *start <= address && address + size <= start + len;
            if let Some([offset, start, _]) = segments.iter().find(lies) {
                found.insert(words[7].to_owned(), offset + (address - start));
            }
        }
    }
    found
}

/// Returns the vector registers that descriptors state, by the names of kernels.
fn allocated(
    place: &Path,
    file: &str,
    kernels: &[BTreeMap<String, String>],
) -> BTreeMap<String, u64> {
    let symbols: Vec<&str> = kernels.iter().map(|kernel| &*kernel[".symbol"]).collect();
    let symbols = format!("--disassemble-symbols={}", symbols.join(","));
    let printed = run(common::llvm("llvm-objdump"), &["-D", &symbols, file], place);
    let mut found = BTreeMap::new();
    let mut name = "";
    for line in printed.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some(".amdhsa_kernel") => name = words.next().unwrap(),
            Some(".amdhsa_next_free_vgpr") => {
                found.insert(name.to_owned(), words.next().unwrap().parse().unwrap());
            }
            _ => {}
        }
    }
    found
}

/// Reads the YAML that `llvm-readobj` prints: the members of each kernel. Lists become JSON, and only arguments that
/// the source has are kept.
fn metadata(printed: &str) -> Vec<BTreeMap<String, String>> {
    let mut kernels: Vec<BTreeMap<String, String>> = Vec::new();
    let mut list = String::new();
    let mut arguments: Vec<BTreeMap<String, String>> = Vec::new();
    let lines = printed.lines().skip_while(|line| *line != "amdhsa.kernels:").skip(1);
    for line in lines.take_while(|line| line.starts_with(' ')) {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim_start();
        let (is_item, text) = text.strip_prefix("- ").map_or((false, text), |text| (true, text));
        let (key, value) = text.split_once(':').unwrap_or(("", text));
        let value = value.trim().trim_matches('\'').to_owned();
        match (indent, is_item) {
            (2 | 4, _) => {
                if is_item {
                    kernels.push(BTreeMap::from([(".args".to_owned(), "[]".to_owned())]));
                }
                list = key.to_owned();
                arguments.clear();
                let kernel = kernels.last_mut().unwrap();
                let value = if key == ".args" { "[]".to_owned() } else { value };
                kernel.insert(key.to_owned(), value);
                continue;
            }
            (6, true) if list == ".args" => {
                arguments.push(BTreeMap::from([(key.to_owned(), value)]));
            }
            (8, false) if list == ".args" => {
                arguments.last_mut().unwrap().insert(key.to_owned(), value);
            }
            (6, true) => {
                let kernel = kernels.last_mut().unwrap();
                let items = kernel.get_mut(&list).unwrap();
                let before = items.trim_matches(['[', ']']).to_owned();
                *items = if before.is_empty() {
                    format!("[{value}]")
                } else {
                    format!("[{before},{value}]")
                };
                continue;
            }
            _ => panic!("{line:?}"),
        }
        let visible = arguments.iter().filter(|argument| {
            !argument.get(".value_kind").is_some_and(|kind| kind.starts_with("hidden_"))
        });
        let visible: Vec<Value> = visible
            .map(|argument| {
                let number =
                    |key| argument.get(key).map_or(0, |text: &String| text.parse::<u64>().unwrap());
                json!({
                    "name": argument.get(".name"),
                    "kind": argument.get(".value_kind"),
                    "offset": number(".offset"),
                    "size": number(".size"),
                })
            })
            .collect();
        kernels.last_mut().unwrap().insert(".args".to_owned(), json!(visible).to_string());
    }
    kernels
}
