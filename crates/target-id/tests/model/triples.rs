//! Triples of a few words, with what each word means as LLVM's documentation of triples has it.

/// Word of the first field, architecture, sub-architecture, object format where no other is named.
pub(crate) const ARCHS: &[(&str, &str, &str, &str)] = &[
    ("amdgcn", "amdgpu", "", "elf"),
    ("amdgpu", "amdgpu", "", "elf"),
    ("amdgpu9", "amdgpu", "9", "elf"),
    ("amdgpu9.00", "amdgpu", "9.00", "elf"),
    ("amdgpu9.06", "amdgpu", "9.06", "elf"),
    ("amdgpu9.4", "amdgpu", "9.4", "elf"),
    ("amdgpu9.42", "amdgpu", "9.42", "elf"),
    ("amdgpu12.5", "amdgpu", "12.5", "elf"),
    ("amdgpu12.50", "amdgpu", "12.50", "elf"),
    ("amdgpu12.50s", "amdgpu", "12.50s", "elf"),
    // Unknown: each is equal to itself only.
    ("amdgpu99", "amdgpu", "?99", "elf"),
    ("amdgpufoo", "amdgpu", "?foo", "elf"),
    ("r600", "r600", "", "elf"),
    ("nvptx64", "nvptx64", "", "elf"),
    ("nvptx", "nvptx", "", "elf"),
    ("spirv64", "spirv64", "", "spirv"),
    ("spirv64v1.6", "spirv64", "v1.6", "spirv"),
    ("spirv32", "spirv32", "", "spirv"),
    ("spir64", "spir64", "", "elf"),
    ("x86_64", "x86_64", "", "host"),
    ("amd64", "x86_64", "", "host"),
    ("aarch64", "aarch64", "", "host"),
    ("arm64", "aarch64", "", "host"),
    ("armv7", "arm", "v7", "host"),
    ("thumbv7", "arm", "v7", "host"),
    ("armv6", "arm", "v6", "host"),
    ("riscv64", "riscv64", "", "elf"),
    // No architectures: only each itself.
    ("foo", "", "", "host"),
    ("", "", "", "host"),
];

/// Vendors; what is not known is like none.
pub(crate) const VENDORS: &[(&str, &str)] = &[
    ("amd", "amd"),
    ("apple", "apple"),
    ("nvidia", "nvidia"),
    ("intel", "intel"),
    ("pc", "pc"),
    ("", ""),
    ("unknown", ""),
    ("w64", ""),
    ("hsa", ""),
];

/// Systems, whatever their version.
pub(crate) const SYSTEMS: &[(&str, &str)] = &[
    ("amdhsa", "amdhsa"),
    ("amdhsa1.2", "amdhsa"),
    ("amdpal", "amdpal"),
    ("cuda", "cuda"),
    ("linux", "linux"),
    ("linux5.4", "linux"),
    ("windows", "windows"),
    ("win32", "windows"),
    ("macosx11.0", "macos"),
    ("ios", "ios"),
    ("", ""),
    ("none", ""),
];

/// Environments, and the object format that they end in.
pub(crate) const ENVIRONMENTS: &[(&str, &str, &str)] = &[
    ("", "", ""),
    ("unknown", "", ""),
    ("gnu", "gnu", ""),
    ("gnux32", "gnux32", ""),
    ("gnuelf", "gnu", "elf"),
    ("gnucoff", "gnu", "coff"),
    ("elf", "", "elf"),
    ("macho", "", "macho"),
    ("musl", "musl", ""),
    ("msvc", "msvc", ""),
    ("llvm", "llvm", ""),
    ("macabi", "macabi", ""),
    ("sm_70", "", ""),
];

fn field(triple: &str, index: usize) -> &str {
    triple.splitn(4, '-').nth(index).unwrap_or("")
}

fn arch(triple: &str) -> (&'static str, &'static str, &'static str) {
    let (_, arch, sub, format) =
        ARCHS.iter().find(|known| known.0 == field(triple, 0)).expect("a word of the list");
    (arch, sub, format)
}

/// Returns the family of the target IDs of its entries: `amdgpu`, `r600`, `spirv`, `spir`, `other`, or nothing for an
/// unknown architecture.
pub(crate) fn arch_family(triple: &str) -> &'static str {
    match arch(triple).0 {
        "spirv64" | "spirv32" => "spirv",
        "spir64" => "spir",
        known @ ("amdgpu" | "r600" | "") => known,
        _ => "other",
    }
}

/// The system.
pub(crate) fn os(triple: &str) -> &'static str {
    SYSTEMS.iter().find(|known| known.0 == field(triple, 2)).expect("a word of the list").1
}

fn vendor(triple: &str) -> &'static str {
    VENDORS.iter().find(|known| known.0 == field(triple, 1)).expect("a word of the list").1
}

/// Environment and object format.
fn environment(triple: &str) -> (&'static str, &'static str) {
    let (_, environment, format) =
        ENVIRONMENTS.iter().find(|known| known.0 == field(triple, 3)).expect("a word of the list");
    let default = match (arch(triple).2, os(triple)) {
        ("host", "windows") => "coff",
        ("host", "macos" | "ios") => "macho",
        ("host", _) => "elf",
        (format, _) => format,
    };
    (environment, if format.is_empty() { default } else { format })
}

/// Returns whether code for one is code for the other.
pub(crate) fn fit(a: &str, b: &str) -> bool {
    let subs = || {
        let (a, b) = (arch(a), arch(b));
        // A sub-architecture of AMD's goes with its family, and with none.
        let of_family = |a: &str, b: &str| match b {
            "9" => ["9.00", "9.06"].contains(&a),
            "9.4" => a == "9.42",
            "12.5" => a == "12.50",
            "" => !a.starts_with('?'),
            _ => false,
        };
        a.0 != "amdgpu" || a.1 == b.1 || of_family(a.1, b.1) || of_family(b.1, a.1)
    };
    a == b || (fit_but_for_processors(a, b) && subs())
}

/// The same with sub-architectures of AMD's as they are.
pub(crate) fn same(a: &str, b: &str) -> bool {
    fit_but_for_processors(a, b) && arch(a).1 == arch(b).1
}

/// The same without a look at sub-architectures of AMD's, which name processors.
pub(crate) fn fit_but_for_processors(a: &str, b: &str) -> bool {
    let (x, y) = (arch(a), arch(b));
    let subs = x.0 == "amdgpu" || x.1 == y.1;
    let archs = x.0 == y.0 && (!x.0.is_empty() || field(a, 0) == field(b, 0));
    let apple = vendor(a) == "apple";
    let mingw = os(a) == "windows"
        && environment(a).0 == "gnu"
        && ![vendor(a), vendor(b)].contains(&"apple");
    archs
        && subs
        && os(a) == os(b)
        && (mingw || vendor(a) == vendor(b))
        && (apple && vendor(b) == "apple" || environment(a) == environment(b))
}
