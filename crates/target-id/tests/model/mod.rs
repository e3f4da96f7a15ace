//! The rules once more, written from the specifications and with nothing of the crate in them: LLVM's "User Guide for
//! AMDGPU Backend" (processors, generic processors, target IDs), the "Clang Offload Bundler" documentation (kinds,
//! compatibility, composition of bundles), LLVM's documentation of triples, and NVIDIA's "CUDA Programming Guide"
//! (compute capabilities, families). Slow, plain, on texts.

pub(crate) mod triples;

use std::collections::BTreeMap;

/// Processor, its alternative names, the features that its target IDs may have: the guide's table "AMDGPU Processors",
/// and the two that LLVM has dropped.
pub(crate) const AMDGCN: &[(&str, &[&str], &str)] = &[
    ("gfx600", &["tahiti"], ""),
    ("gfx601", &["pitcairn", "verde"], ""),
    ("gfx602", &["hainan", "oland"], ""),
    ("gfx700", &["kaveri"], ""),
    ("gfx701", &["hawaii"], ""),
    ("gfx702", &[], ""),
    ("gfx703", &["kabini", "mullins"], ""),
    ("gfx704", &["bonaire"], ""),
    ("gfx705", &[], ""),
    ("gfx801", &["carrizo"], "xnack"),
    ("gfx802", &["iceland", "tonga"], ""),
    ("gfx803", &["fiji", "polaris10", "polaris11"], ""),
    ("gfx805", &["tongapro"], ""),
    ("gfx810", &["stoney"], "xnack"),
    ("gfx900", &[], "xnack"),
    ("gfx902", &[], "xnack"),
    ("gfx904", &[], "xnack"),
    ("gfx906", &[], "sramecc xnack"),
    ("gfx908", &[], "sramecc xnack"),
    ("gfx909", &[], "xnack"),
    ("gfx90a", &[], "sramecc xnack"),
    ("gfx90c", &[], "xnack"),
    ("gfx940", &[], "sramecc xnack"),
    ("gfx941", &[], "sramecc xnack"),
    ("gfx942", &[], "sramecc xnack"),
    ("gfx950", &[], "sramecc xnack"),
    ("gfx1010", &[], "xnack"),
    ("gfx1011", &[], "xnack"),
    ("gfx1012", &[], "xnack"),
    ("gfx1013", &[], "xnack"),
    ("gfx1030", &[], ""),
    ("gfx1031", &[], ""),
    ("gfx1032", &[], ""),
    ("gfx1033", &[], ""),
    ("gfx1034", &[], ""),
    ("gfx1035", &[], ""),
    ("gfx1036", &[], ""),
    ("gfx1100", &[], ""),
    ("gfx1101", &[], ""),
    ("gfx1102", &[], ""),
    ("gfx1103", &[], ""),
    ("gfx1150", &[], ""),
    ("gfx1151", &[], ""),
    ("gfx1152", &[], ""),
    ("gfx1153", &[], ""),
    ("gfx1154", &[], ""),
    ("gfx1170", &[], ""),
    ("gfx1171", &[], ""),
    ("gfx1172", &[], ""),
    ("gfx1200", &[], ""),
    ("gfx1201", &[], ""),
    ("gfx1250", &[], "sramecc xnack"),
    ("gfx1250-strict", &[], "xnack"),
    ("gfx1251", &[], "sramecc xnack"),
    ("gfx1310", &[], ""),
    ("gfx9-generic", &[], "xnack"),
    ("gfx9-4-generic", &[], "sramecc xnack"),
    ("gfx10-1-generic", &[], "xnack"),
    ("gfx10-3-generic", &[], ""),
    ("gfx11-generic", &[], ""),
    ("gfx11-7-generic", &[], ""),
    ("gfx12-generic", &[], ""),
    ("gfx12-5-generic", &[], ""),
    ("gfx13-generic", &[], ""),
];

/// The guide's table "Generic processors".
pub(crate) const GENERIC: &[(&str, &str)] = &[
    ("gfx9-generic", "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c"),
    ("gfx9-4-generic", "gfx942 gfx950"),
    ("gfx10-1-generic", "gfx1010 gfx1011 gfx1012 gfx1013"),
    ("gfx10-3-generic", "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"),
    ("gfx11-generic", "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154"),
    ("gfx11-7-generic", "gfx1170 gfx1171 gfx1172"),
    ("gfx12-generic", "gfx1200 gfx1201"),
    ("gfx12-5-generic", "gfx1250 gfx1251"),
    ("gfx13-generic", "gfx1310"),
];

/// The guide's processors for `r600`.
pub(crate) const R600: &[(&str, &[&str])] = &[
    ("r600", &["rv630", "rv635"]),
    ("r630", &[]),
    ("rs880", &["rs780", "rv610", "rv620"]),
    ("rv670", &[]),
    ("rv710", &[]),
    ("rv730", &[]),
    ("rv770", &["rv740"]),
    ("cedar", &["palm"]),
    ("cypress", &["hemlock"]),
    ("juniper", &[]),
    ("redwood", &[]),
    ("sumo", &["sumo2"]),
    ("barts", &[]),
    ("caicos", &[]),
    ("cayman", &["aruba"]),
    ("turks", &[]),
];

/// Major and minor number, and what its family is.
type Capability = (u32, u32, &'static [(u32, u32)]);

/// Compute capabilities that have a name, and their families if they have one ("Feature Set Compiler
/// Targets"): code for `sm_100f` runs on 10.0 and 10.3.
pub(crate) const NVIDIA: &[Capability] = &[
    (2, 0, &[]),
    (2, 1, &[]),
    (3, 0, &[]),
    (3, 2, &[]),
    (3, 5, &[]),
    (3, 7, &[]),
    (5, 0, &[]),
    (5, 2, &[]),
    (5, 3, &[]),
    (6, 0, &[]),
    (6, 1, &[]),
    (6, 2, &[]),
    (7, 0, &[]),
    (7, 2, &[]),
    (7, 5, &[]),
    (8, 0, &[]),
    (8, 6, &[]),
    (8, 7, &[]),
    (8, 8, &[]),
    (8, 9, &[]),
    (9, 0, &[]),
    (10, 0, &[(10, 0), (10, 3), (10, 7)]),
    (10, 1, &[(10, 1)]),
    (10, 3, &[(10, 3), (10, 7)]),
    (10, 7, &[(10, 7)]),
    (11, 0, &[(11, 0)]),
    (12, 0, &[(12, 0), (12, 1)]),
    (12, 1, &[(12, 1)]),
];

/// The NVIDIA names that LLVM knows as processors: those of the table, with the suffixes there are.
pub(crate) fn nvidia_names() -> Vec<String> {
    let mut names = Vec::new();
    for (major, minor, family) in NVIDIA {
        names.push(format!("sm_{major}{minor}"));
        if (*major, *minor) >= (9, 0) {
            names.push(format!("sm_{major}{minor}a"));
        }
        if !family.is_empty() {
            names.push(format!("sm_{major}{minor}f"));
        }
    }
    names
}

/// Some Intel GPUs: the names of one, with a space between, and the GPUs that run its code.
pub(crate) const INTEL: &[(&str, &str)] = &[
    ("pvc 12.60.7 pvc_sdv", "pvc"),
    ("acm_g10 dg2_g10 ats_m150 12.55.8", "acm_g10 acm_g11 acm_g12"),
    ("acm_g11 dg2_g11 ats_m75 12.56.5", "acm_g11"),
    ("acm_g12 dg2_g12 12.57.0", "acm_g12"),
    ("bmg_g21 20.1.4", "bmg_g21 bmg_g31 lnl_m"),
    ("bmg_g31 20.2.0", "bmg_g31"),
    ("lnl_m 20.4.4", "lnl_m"),
    ("bmg", "bmg bmg_g21 bmg_g31 lnl_m"),
];

/// The first name and the GPUs that run the code.
fn intel(name: &str) -> Option<(&'static str, &'static str)> {
    let short = name.replace('-', "_");
    let short = short.strip_prefix("intel_gpu_").or(short.strip_prefix("xe_")).unwrap_or(&short);
    INTEL
        .iter()
        .find(|(names, _)| names.split(' ').any(|known| known == short))
        .map(|(names, runs)| (names.split(' ').next().unwrap_or(""), *runs))
}

/// The runtime of SYCL wants the very GPU.
fn intel_runs(code: &str, gpu: &str, kind: Option<&str>) -> bool {
    match (intel(code), intel(gpu)) {
        (Some((code, _)), Some((gpu, _))) if kind == Some("sycl") => code == gpu,
        (Some((_, runs)), Some((gpu, _))) => runs.split(' ').any(|known| known == gpu),
        _ => false,
    }
}

/// One side of a comparison. `None` is left open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id<'a> {
    pub(crate) kind: Option<&'a str>,
    pub(crate) triple: Option<&'a str>,
    pub(crate) id: &'a str,
}

/// Answer of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The bundler says yes, with these words.
    Yes(&'static str),
    /// The bundler refuses with these words, and yet a device that is the target runs the code.
    Runs(&'static str),
    /// No, with the bundler's words.
    No(&'static str),
}

/// The bundler's words.
const EXACT: &str = "Compatible: Exact match:";
const COMPATIBLE: &str = "Compatible: Target IDs are compatible";
const KIND_OR_TRIPLE: &str = "Incompatible: Kind/Triple mismatch";
const PROCESSOR: &str = "Incompatible: Processor mismatch";
const MORE_FEATURES: &str = "Incompatible: CodeObject has more features than target";
const NOT_ANY: &str = "Incompatible: Value of CodeObject's non-ANY feature is not matching with Target feature's ANY value";
const NOT_THAT: &str = "Incompatible: Value of CodeObject's non-ANY feature is not matching with Target feature's non-ANY value";

type Features = BTreeMap<String, char>;

/// A processor's primary name and the features that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) processor: String,
    pub(crate) features: Features,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    AmdGcn(&'static str, &'static str),
    R600(&'static str),
    /// NVIDIA's, Intel's, portable AMD code.
    Other,
    Generic,
    Unknown,
}

fn look_up(name: &str) -> Name {
    for (primary, aliases, features) in AMDGCN {
        if *primary == name || aliases.contains(&name) {
            return Name::AmdGcn(primary, features);
        }
    }
    for (primary, aliases) in R600 {
        if *primary == name || aliases.contains(&name) {
            return Name::R600(primary);
        }
    }
    if name == "generic" {
        Name::Generic
    } else if ["amdgcnspirv", "graniterapids"].contains(&name)
        || intel(name).is_some()
        || (name.starts_with("sm_") && nvidia_names().iter().any(|known| known == name))
    {
        Name::Other
    } else {
        Name::Unknown
    }
}

/// Takes a target ID apart, if it is one of its triple.
pub(crate) fn parse(triple: Option<&str>, id: &str) -> Option<Parsed> {
    let mut words: Vec<&str> = id.split(':').collect();
    // One colon at the end is nothing.
    if words.len() > 1 && words.last() == Some(&"") {
        words.pop();
    }
    let name = words.remove(0);
    if name.is_empty() {
        return None;
    }
    let arch = triple.map_or("", triples::arch_family);
    let known = look_up(name);
    // The features that may be set; `None` is any.
    let (processor, allowed) = match (arch, known) {
        ("amdgpu" | "", Name::AmdGcn(primary, features)) => (primary, Some(features)),
        ("r600" | "", Name::R600(primary)) => (primary, Some("")),
        ("amdgpu" | "", Name::Generic) => (name, Some("")),
        ("", Name::Other) => (name, Some("")),
        ("amdgpu" | "r600" | "", Name::Unknown) => {
            // As code object V2 and V3 spelled features; it means something else today.
            let old = name.split('+').next().unwrap_or("");
            let is_old = words.is_empty()
                && matches!(look_up(old), Name::AmdGcn(..) | Name::R600(_))
                && is_v3_spelling(name);
            if is_old {
                return None;
            }
            (name, None)
        }
        // A processor of somebody else's.
        ("amdgpu" | "r600", _) => return None,
        // All other architectures take any name, and no features.
        _ => (name, Some("")),
    };
    let mut features = Features::new();
    for word in words {
        let sign = word.chars().last().filter(|sign| "+-".contains(*sign))?;
        let feature = &word[..word.len() - 1];
        let may = allowed.is_none_or(|allowed| allowed.split(' ').any(|known| known == feature));
        if feature.is_empty() || !may || features.insert(feature.to_owned(), sign).is_some() {
            return None;
        }
    }
    Some(Parsed { processor: processor.to_owned(), features })
}

/// Returns whether each feature after a known processor is one of its own, and there once.
fn is_v3_spelling(text: &str) -> bool {
    let mut words = text.split('+');
    let allowed = match words.next().map(look_up) {
        Some(Name::AmdGcn(_, features)) => features,
        _ => "",
    };
    let mut seen = Vec::new();
    words.all(|word| {
        let word = if word == "sram-ecc" { "sramecc" } else { word };
        let is_new = !seen.contains(&word);
        seen.push(word);
        is_new && !word.is_empty() && allowed.split(' ').any(|known| known == word)
    })
}

/// Returns whether a code object fits a target, as the Clang Offload Bundler documentation and the AMDGPU usage guide
/// have it, and what the bundler says about the two.
pub(crate) fn compatible(code: Id<'_>, target: Id<'_>, hip_openmp: bool) -> Answer {
    let kinds_equal = both(code.kind, target.kind).is_none_or(|(a, b)| a == b);
    let triples_fit = both(code.triple, target.triple).is_none_or(|(a, b)| triples::fit(a, b));
    if kinds_equal && triples_fit && code.id == target.id {
        return Answer::Yes(EXACT);
    }
    if both(code.kind, target.kind).is_some_and(|(a, b)| !kinds_fit(a, b, hip_openmp)) {
        return Answer::No(KIND_OR_TRIPLE);
    }
    if is_portable(code, target) {
        return Answer::Runs(KIND_OR_TRIPLE);
    }
    if !triples_fit {
        return Answer::No(KIND_OR_TRIPLE);
    }
    let (Some(a), Some(b)) = (parse(code.triple, code.id), parse(target.triple, target.id)) else {
        return Answer::No(PROCESSOR);
    };
    let on_amdgpu =
        [code, target].iter().any(|id| id.triple.map(triples::arch_family) == Some("amdgpu"));
    let name = |id: &Parsed| match &id.processor[..] {
        // LLVM 23: names of the first processors of HSA and of all.
        "generic" if on_amdgpu => "gfx600".to_owned(),
        "generic-hsa" if on_amdgpu => "gfx700".to_owned(),
        name => name.to_owned(),
    };
    if name(&a) == name(&b) {
        return match features(&a.features, &b.features) {
            Ok(()) => Answer::Yes(COMPATIBLE),
            Err(words) => Answer::No(words),
        };
    }
    // With the triple of another architecture the name is somebody else's.
    let of_amd = [code, target].iter().all(|id| {
        id.triple.is_none_or(|triple| ["amdgpu", ""].contains(&triples::arch_family(triple)))
    });
    let covers = of_amd
        && GENERIC.iter().any(|(generic, covered)| {
            *generic == a.processor && covered.split(' ').any(|name| name == b.processor)
        });
    match features(&a.features, &b.features) {
        // The bundler goes by names; what else is wrong it says of those only.
        Ok(()) if covers => Answer::Runs(PROCESSOR),
        Err(words) if covers => Answer::No(words),
        _ if nvidia_runs(&a.processor, &b.processor) => Answer::Runs(PROCESSOR),
        _ if intel_runs(&a.processor, &b.processor, code.kind) => Answer::Runs(PROCESSOR),
        _ => Answer::No(PROCESSOR),
    }
}

fn both<'a>(a: Option<&'a str>, b: Option<&'a str>) -> Option<(&'a str, &'a str)> {
    Some((a?, b?))
}

/// "hip and hipv4 are compatible"; `--hip-openmp-compatible`.
fn kinds_fit(a: &str, b: &str, hip_openmp: bool) -> bool {
    let hip = |kind: &str| kind.to_lowercase().starts_with("hip");
    a == b
        || (["hip", "hipv4"].contains(&a) && ["hip", "hipv4"].contains(&b))
        || (hip_openmp && ((a == "openmp" && hip(b)) || (b == "openmp" && hip(a))))
}

/// A code object's features must be set alike in the target; features that it leaves open do not matter.
fn features(code: &Features, target: &Features) -> Result<(), &'static str> {
    if code.len() > target.len() {
        return Err(MORE_FEATURES);
    }
    for (feature, sign) in code {
        match target.get(feature) {
            None => return Err(NOT_ANY),
            Some(other) if other != sign => return Err(NOT_THAT),
            Some(_) => {}
        }
    }
    Ok(())
}

/// SPIR-V, which is compiled when it is loaded: AMD's for all AMD GPUs, other for Intel's.
fn is_portable(code: Id<'_>, target: Id<'_>) -> bool {
    let Some(device) = parse(target.triple, target.id) else {
        return false;
    };
    let is_spirv = |triple: &str| ["spirv", "spir"].contains(&triples::arch_family(triple));
    let vendor = |triple: &str| triple.split('-').nth(1).unwrap_or("").to_owned();
    if code.id == "amdgcnspirv" {
        let is_amd = match look_up(&device.processor) {
            Name::AmdGcn(..) => !device.processor.ends_with("-generic"),
            Name::Unknown => device.processor.starts_with("gfx"),
            _ => false,
        };
        return is_amd
            && code.triple.is_none_or(|triple| {
                triples::arch_family(triple) == "spirv" && vendor(triple) == "amd"
            })
            && target.triple.is_none_or(|triple| {
                triples::arch_family(triple) == "amdgpu" && triples::os(triple) == "amdhsa"
            });
    }
    let is_intel = device.processor == "graniterapids"
        || intel(&device.processor).is_some()
        || device.processor.starts_with("intel_gpu_");
    let other = |triple: &str| is_spirv(triple) && vendor(triple) != "amd";
    is_intel
        && ["", "generic"].contains(&code.id)
        && code.triple.is_some_and(other)
        && target.triple.is_none_or(other)
}

/// Jetson TK1, Nano, TX2, Xavier, Orin, Thor before and after its renaming (NVIDIA's list of CUDA GPUs, by hand).
const TEGRA: [(u32, u32); 7] = [(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)];

/// Returns whether a GPU runs code for a compute capability, both by name; no names but `sm_` and `compute_` ones.
pub(crate) fn nvidia_runs(code: &str, gpu: &str) -> bool {
    let (Some((code, ptx)), Some((gpu, false))) = (capability(code), capability(gpu)) else {
        return false;
    };
    let (name, gpu) = ((code.0, code.1), (gpu.0, gpu.1));
    match code.2 {
        // Architecture-specific.
        'a' => name == gpu,
        // Family-specific, as the table has it.
        'f' => NVIDIA
            .iter()
            .any(|(major, minor, family)| (*major, *minor) == name && family.contains(&gpu)),
        // PTX: the same compute capability and all above.
        _ if ptx => name <= gpu,
        // Machine code: for Tegra on itself; the same major number, and no lower minor one.
        _ if [name, gpu].iter().any(|one| TEGRA.contains(one)) => name == gpu,
        _ => name.0 == gpu.0 && name.1 <= gpu.1,
    }
}

/// Major, minor, suffix; and whether it is PTX.
fn capability(name: &str) -> Option<((u32, u32, char), bool)> {
    if !name.contains('_') {
        return None;
    }
    for (major, minor, _) in NVIDIA {
        for suffix in ["", "a", "f"] {
            for prefix in ["sm_", "compute_"] {
                if name == format!("{prefix}{major}{minor}{suffix}") {
                    let suffix = suffix.chars().next().unwrap_or(' ');
                    return Some(((*major, *minor, suffix), prefix == "compute_"));
                }
            }
        }
    }
    None
}

/// Two entries that do not go together, and why: the feature that one of them lacks, or `None` for the same target
/// twice.
pub(crate) type Conflict = (usize, usize, Option<String>);

/// Returns the conflicts of a bundle of these entries. "Each entry ID must be unique"; "a target feature is set in all
/// target IDs of a processor or in none": an entry is held against the first one of its processor.
pub(crate) fn conflicts(entries: &[Id<'_>]) -> Vec<Conflict> {
    let mut found = Vec::new();
    for second in 0..entries.len() {
        let parsed = parse(entries[second].triple, entries[second].id);
        let group: Vec<usize> =
            (0..second).filter(|&first| meet(entries[first], entries[second])).collect();
        let same =
            |first: &usize| match (parse(entries[*first].triple, entries[*first].id), &parsed) {
                (Some(a), Some(b)) => a == *b,
                (None, None) => entries[*first].id == entries[second].id,
                _ => false,
            };
        if let Some(&first) = group.iter().find(|first| same(first)) {
            found.push((first, second, None));
            continue;
        }
        let Some(&first) = group.first() else { continue };
        let first_parsed = parse(entries[first].triple, entries[first].id);
        let (Some(a), Some(b)) = (first_parsed, parsed) else { continue };
        let mut lone: Vec<&String> = a
            .features
            .keys()
            .filter(|name| !b.features.contains_key(*name))
            .chain(b.features.keys().filter(|name| !a.features.contains_key(*name)))
            .collect();
        lone.sort();
        if let Some(feature) = lone.first() {
            found.push((first, second, Some((*feature).clone())));
        }
    }
    found
}

/// Returns whether two entries may meet on one device.
fn meet(a: Id<'_>, b: Id<'_>) -> bool {
    let kind = |id: Id<'_>| id.kind.map(|kind| kind.replace("hipv4", "hip"));
    let (first, second) = (parse(a.triple, a.id), parse(b.triple, b.id));
    let processors = match (&first, &second) {
        (Some(first), Some(second)) => first.processor == second.processor,
        (None, None) => a.id == b.id,
        _ => false,
    };
    let triples = match (a.triple, b.triple) {
        (Some(a), Some(b)) if first.is_some() => triples::fit_but_for_processors(a, b),
        (Some(a), Some(b)) => triples::same(a, b),
        (None, None) => true,
        _ => false,
    };
    kind(a) == kind(b) && processors && triples
}
