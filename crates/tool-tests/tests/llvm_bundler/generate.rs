//! Command lines by chance, the same in each run.

use super::harness::{Case, VARIABLES};
use crate::common::Random;

pub const TEXT: [&str; 7] = ["i", "ii", "cui", "hipi", "d", "ll", "s"];
pub const BINARY: [&str; 3] = ["bc", "gch", "ast"];

pub const TEXTS: [&str; 11] = [
    "text0",
    "text1",
    "text2",
    "text3",
    "text4",
    "text5",
    "empty",
    "unfinished",
    "crlf",
    "newlines",
    "large",
];
pub const BINARIES: [&str; 12] = [
    "binary0",
    "binary1",
    "binary2",
    "binary3",
    "binary4",
    "binary5",
    "empty",
    "zero",
    "device.o",
    "device.bc",
    "host.bc",
    "large",
];
pub const OBJECTS: [&str; 5] = ["host.o", "debug.o", "host32.o", "hostbe.o", "host.obj"];

/// Hosts in the many ways to spell one, and hosts that are several.
pub const HOSTS: [&str; 15] = [
    "host-x86_64-unknown-linux-gnu",
    "host-x86_64-unknown-linux-gnu-",
    "host-x86_64-unknown-linux-",
    "host-x86_64-unknown-linux--",
    "host-x86_64--linux-gnu",
    "host-x86_64-linux--gnu",
    "host-x86_64---",
    "host-amd64-unknown-linux-gnu",
    "host-ppc64le-ibm-linux-gnu",
    "host-x86_64-pc-windows-",
    "host-x86_64-pc-win32-",
    "host-x86_64-w64-mingw32-",
    "host-armv7-none-linux-androideabi",
    "host-x86_64-apple-macosx11.0-",
    "host-aarch64-suse-linux-gnueabi",
];

pub const AMD: [&str; 9] = [
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-unknown",
    "amdgcn-amd-amdhsa-llvm",
    "amdgcn--amdhsa-",
    "amdgcn-amd-amdpal-",
    "amdgcn-mesa-mesa3d-",
    "amdgcn---",
];
pub const PROCESSORS: [&str; 12] = [
    "gfx600",
    "gfx803",
    "gfx900",
    "gfx906",
    "gfx908",
    "gfx90a",
    "gfx942",
    "gfx1030",
    "gfx1100",
    "gfx1201",
    "gfx9-generic",
    "gfx9-4-generic",
];
/// Processors that have features to choose.
pub const FEATURES: [(&str, &[&str]); 6] = [
    ("gfx900", &[":xnack+", ":xnack-"]),
    ("gfx906", &[":sramecc+:xnack+", ":sramecc+:xnack-", ":sramecc-:xnack+", ":sramecc-:xnack-"]),
    ("gfx908", &[":sramecc+", ":sramecc-"]),
    ("gfx90a", &[":xnack+", ":xnack-"]),
    ("gfx942", &[":sramecc+:xnack+", ":sramecc+:xnack-"]),
    ("gfx9-4-generic", &[":xnack+", ":xnack-"]),
];
pub const OTHER_DEVICES: [&str; 8] = [
    "nvptx64-nvidia-cuda--sm_70",
    "nvptx64-nvidia-cuda--sm_90a",
    "nvptx64-nvidia-cuda-unknown-sm_80",
    "nvptx64-nvidia-cuda-",
    "spirv64-amd-amdhsa-unknown-amdgcnspirv",
    "spirv64----generic",
    "x86_64-unknown-linux-gnu",
    "spirv64-intel-unknown-unknown",
];
/// Mistyped names.
pub const WRONG: [&str; 8] = [
    "hip-amdgcn-amd-amdhsa",
    "hip",
    "",
    "sycl-spirv64-unknown-unknown-",
    "HIP-amdgcn-amd-amdhsa--gfx906",
    "what-ever-there-is-there",
    "host-x86_64",
    "openmp-amdgcn-amdhsa-gfx906",
];

pub trait Chance {
    fn one_in(&mut self, n: usize) -> bool;
}

impl Chance for Random {
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// `-name=value`, `--name value` and so on.
pub fn spell(random: &mut Random, args: &mut Vec<Vec<String>>, name: &str, value: Option<&str>) {
    let dashes = *random.pick(&["-", "--"]);
    args.push(match value {
        None => vec![format!(
            "{dashes}{name}{}",
            random.pick(&["", "", "", "=1", "=true", "=TRUE", "="])
        )],
        Some(value) if random.below(2) == 0 => vec![format!("{dashes}{name}={value}")],
        Some(value) => vec![format!("{dashes}{name}"), value.to_owned()],
    });
}

/// The options of a run in any order, now and then in a response file.
pub fn shuffled(random: &mut Random, mut args: Vec<Vec<String>>, case: &mut Case) {
    // Repeated options are in order.
    let repeated = |arg: &Vec<String>| {
        let name = arg[0].trim_start_matches('-');
        ["input", "output", "targets"].iter().any(|start| name.starts_with(start))
    };
    let mut in_order: Vec<_> = args.iter().filter(|arg| repeated(arg)).cloned().collect();
    random.shuffle(&mut args);
    in_order.reverse();
    for arg in &mut args {
        if repeated(arg) {
            *arg = in_order.pop().unwrap();
        }
    }
    case.args = args.concat();
    if random.one_in(12) {
        let mut text = String::new();
        let separator = *random.pick(&[" ", "\n", " \t ", "\r\n"]);
        let from = random.below(case.args.len());
        for arg in case.args.drain(from..) {
            let quoted = match random.below(3) {
                0 => format!("\"{}\"", arg.replace('\\', "\\\\").replace('"', "\\\"")),
                1 => format!("'{arg}'"),
                _ if arg.is_empty() => "''".to_owned(),
                _ => arg.replace(' ', "\\ "),
            };
            text.push_str(&quoted);
            text.push_str(separator);
        }
        case.files.insert("response".to_owned(), text.into_bytes());
        case.args.push("@response".to_owned());
    }
}

/// A list of files or targets: the option once for each, or once with commas.
pub fn spell_list(
    random: &mut Random,
    args: &mut Vec<Vec<String>>,
    repeatable: &str,
    with_commas: Option<&str>,
    values: &[String],
) {
    match with_commas {
        Some(name) if !values.is_empty() && (repeatable == name || random.one_in(6)) => {
            let cut = if random.one_in(4) { random.below(values.len()) } else { 0 };
            for part in [&values[..cut], &values[cut..]].into_iter().filter(|part| !part.is_empty())
            {
                spell(random, args, name, Some(&part.join(",")));
            }
        }
        _ => {
            for value in values {
                spell(random, args, repeatable, Some(value));
            }
        }
    }
}

pub fn kind(random: &mut Random, hip: bool) -> &'static str {
    const KINDS: [&str; 6] = ["hip", "hipv4", "hipv4", "openmp", "openmp", "openmp"];
    let count = if hip { 3 } else { KINDS.len() };
    KINDS[random.below(count)]
}

pub fn device(random: &mut Random, hip: bool) -> String {
    let kind = kind(random, hip);
    if random.one_in(5) {
        return format!("{kind}-{}", random.pick(&OTHER_DEVICES));
    }
    let processor = *random.pick(&PROCESSORS);
    // All images of a processor state the same features, mostly.
    let features = match FEATURES.iter().find(|(name, _)| *name == processor) {
        Some((_, choice)) if !random.one_in(8) => *random.pick(choice),
        _ => "",
    };
    let target_id =
        if random.one_in(25) { String::new() } else { format!("-{processor}{features}") };
    format!("{kind}-{}{target_id}", random.pick(&AMD))
}

/// Returns the meaning of a target: the kind, three fields of the triple, the target ID.
pub fn meaning(target: &str) -> String {
    let fields: Vec<_> = target.splitn(6, '-').collect();
    let or_unknown = |nth: usize| match fields.get(nth) {
        None | Some(&"") => "unknown",
        Some(field) => field,
    };
    let kind = if fields[0] == "hipv4" { "hip" } else { fields[0] };
    [kind, or_unknown(1), or_unknown(2), or_unknown(3), or_unknown(5)].join("-")
}

/// A run that bundles, mostly a right one.
pub struct Bundling {
    pub file_type: &'static str,
    pub targets: Vec<String>,
    pub case: Case,
    /// The file that it makes; `None` where that is standard output.
    pub output: Option<String>,
}

pub fn bundling(random: &mut Random) -> Bundling {
    let file_type = match random.below(10) {
        0..=3 => *random.pick(&TEXT),
        4..=6 => *random.pick(&BINARY),
        _ => "o",
    };
    let hip = random.one_in(6);
    let mut targets: Vec<String> = Vec::new();
    for _ in 0..random.below(5) {
        let device = device(random, hip);
        let is_new = !targets.iter().any(|other| meaning(other) == meaning(&device));
        if is_new || random.one_in(30) {
            targets.push(device);
        }
    }
    let mut host = usize::MAX;
    let has_none = hip && random.one_in(2) || random.one_in(30);
    if !has_none {
        host = if random.one_in(5) { random.below(targets.len() + 1) } else { 0 };
        let name = if random.one_in(2) { HOSTS[0] } else { *random.pick(&HOSTS) };
        targets.insert(host, name.to_owned());
    }
    if random.one_in(20) {
        let wrong = (*random.pick(&WRONG)).to_owned();
        targets.insert(random.below(targets.len() + 1), wrong);
        host = usize::MAX;
    }

    let mut case = Case::default();
    let mut names = Vec::new();
    for nth in 0..targets.len() {
        let pool: &[&str] = match file_type {
            // A device's image in first place decides the form where there is no host.
            "o" if nth == host && !random.one_in(3) => &OBJECTS,
            _ if TEXT.contains(&file_type) && !random.one_in(6) => &TEXTS,
            _ => &BINARIES,
        };
        let mut name = *random.pick(pool);
        // In sections, one zero byte marks the host.
        if file_type == "o" && name == "zero" {
            name = "empty";
        }
        names.push(format!("in/{name}"));
    }
    if random.one_in(15) && !names.is_empty() {
        let nth = random.below(names.len());
        "-".clone_into(&mut names[nth]);
        case.stdin = format!("piped {}", random.next()).into_bytes();
    }
    if random.one_in(40) && !names.is_empty() {
        let nth = random.below(names.len());
        "missing".clone_into(&mut names[nth]);
    }
    if random.one_in(40) {
        names.pop();
    }

    let mut args = Vec::new();
    spell(random, &mut args, "type", Some(file_type));
    spell_list(random, &mut args, "targets", Some("targets"), &targets);
    spell_list(random, &mut args, "input", Some("inputs"), &names);
    let output = if random.one_in(10) { "-" } else { "out" };
    let with_commas = random.one_in(12).then_some("outputs");
    spell_list(random, &mut args, "output", with_commas, &[output.to_owned()]);
    if random.one_in(4) {
        let align = *random.pick(&["1", "4", "7", "16", "64", "4096", "0x20", "010"]);
        spell(random, &mut args, "bundle-align", Some(align));
    }
    if random.one_in(4) {
        spell(random, &mut args, "compress", None);
        if random.one_in(3) {
            let level = *random.pick(&["1", "9", "-7", "0", "99", "0x3"]);
            spell(random, &mut args, "compression-level", Some(level));
        }
    }
    environment(random, &mut case);
    if random.one_in(4) {
        spell(random, &mut args, "verbose", None);
    }
    for name in ["allow-missing-bundles", "hip-openmp-compatible"] {
        if random.one_in(15) {
            spell(random, &mut args, name, None);
        }
    }
    shuffled(random, args, &mut case);
    Bundling { file_type, targets, case, output: (output != "-").then(|| output.to_owned()) }
}

pub fn environment(random: &mut Random, case: &mut Case) {
    for variable in VARIABLES {
        if random.one_in(25) {
            let value = *random.pick(&["1", "0", "2", "3", "4", "", "true", "x"]);
            case.env.push((variable.to_owned(), value.to_owned()));
        }
    }
}

/// A run that takes apart what was made for `targets`.
pub fn unbundling(random: &mut Random, file_type: &str, targets: &[String], bundle: &[u8]) -> Case {
    let mut case = Case::default();
    case.files.insert("bundle".to_owned(), bundle.to_vec());
    let mut wanted: Vec<String> = targets.iter().filter(|_| !random.one_in(4)).cloned().collect();
    for target in &mut wanted {
        if random.one_in(10) {
            *target = match random.below(4) {
                // Asked with more than the image demands, or with another, equal spelling.
                0 if target.contains("gfx906") && !target.contains(':') => {
                    format!("{target}:xnack+")
                }
                1 if target.starts_with("hip-") => target.replacen("hip-", "hipv4-", 1),
                2 if target.starts_with("hipv4-") => target.replacen("hipv4-", "hip-", 1),
                _ => target.replacen("-unknown-", "--", 1),
            };
        }
    }
    if random.one_in(8) {
        wanted.push(device(random, false));
    }
    if random.one_in(5) {
        random.shuffle(&mut wanted);
    }
    let mut outputs: Vec<_> = (0..wanted.len()).map(|nth| format!("out{nth}")).collect();
    if random.one_in(20) && !outputs.is_empty() {
        let nth = random.below(outputs.len());
        "-".clone_into(&mut outputs[nth]);
    }
    if random.one_in(40) {
        outputs.pop();
    }
    let mut args = Vec::new();
    spell(random, &mut args, "unbundle", None);
    spell(random, &mut args, "type", Some(file_type));
    spell_list(random, &mut args, "targets", Some("targets"), &wanted);
    spell_list(random, &mut args, "output", Some("outputs"), &outputs);
    if random.one_in(15) {
        spell(random, &mut args, "input", Some("-"));
        case.stdin = case.files.remove("bundle").unwrap();
    } else {
        spell_list(random, &mut args, "input", Some("inputs"), &["bundle".to_owned()]);
    }
    if random.one_in(4) {
        spell(random, &mut args, "allow-missing-bundles", None);
    }
    if random.one_in(10) {
        spell(random, &mut args, "hip-openmp-compatible", None);
    }
    if random.one_in(4) {
        spell(random, &mut args, "verbose", None);
    }
    environment(random, &mut case);
    shuffled(random, args, &mut case);
    case
}

pub fn listing(random: &mut Random, file_type: &str, bundle: &[u8]) -> Case {
    let mut case = Case::default();
    let mut args = Vec::new();
    spell(random, &mut args, "list", None);
    spell(random, &mut args, "type", Some(file_type));
    spell(random, &mut args, "input", Some("bundle"));
    if random.one_in(4) {
        spell(random, &mut args, "verbose", None);
    }
    environment(random, &mut case);
    shuffled(random, args, &mut case);
    case.files.insert("bundle".to_owned(), bundle.to_vec());
    case
}
