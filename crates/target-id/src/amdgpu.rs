//! The tables of AMD GPU processors: LLVM 24's AMDGPU usage guide, sections "Processors" and
//! "Generic processors".
//!
//! The numbers are `EF_AMDGPU_MACH` in the same guide, and the values that LLVM 22 and 24 write for all processors they know.
//!
//! gfx940 and gfx941 were removed before LLVM 22. LLVM 22 selects no feature for gfx1250 and gfx1251, LLVM 23 selects
//! `sramecc`, LLVM 24 `xnack`: target IDs of all three are read. gfx1250-strict is new in LLVM 24.

use crate::amd_processor::{Family, Processor};
use crate::feature::Features;

const NONE: Features = Features::NONE;
const XNACK: Features = Features::XNACK;
const BOTH: Features = Features::ALL;

const fn gcn(
    machine: u32,
    name: &'static str,
    aliases: &'static [&'static str],
    features: Features,
) -> Processor {
    Processor {
        machine,
        name,
        aliases,
        family: Family::AmdGcn,
        features,
        covers: &[],
        retired: false,
    }
}

const fn retired(machine: u32, name: &'static str, features: Features) -> Processor {
    Processor {
        machine,
        name,
        aliases: &[],
        family: Family::AmdGcn,
        features,
        covers: &[],
        retired: true,
    }
}

const fn generic(
    machine: u32,
    name: &'static str,
    features: Features,
    covers: &'static [&'static str],
) -> Processor {
    Processor {
        machine,
        name,
        aliases: &[],
        family: Family::AmdGcn,
        features,
        covers,
        retired: false,
    }
}

const fn r600(machine: u32, name: &'static str, aliases: &'static [&'static str]) -> Processor {
    Processor {
        machine,
        name,
        aliases,
        family: Family::R600,
        features: NONE,
        covers: &[],
        retired: false,
    }
}

/// Processors of `amdgcn` triples.
pub(crate) static AMDGCN: &[Processor] = &[
    gcn(0x20, "gfx600", &["tahiti"], NONE),
    gcn(0x21, "gfx601", &["pitcairn", "verde"], NONE),
    gcn(0x3a, "gfx602", &["hainan", "oland"], NONE),
    gcn(0x22, "gfx700", &["kaveri"], NONE),
    gcn(0x23, "gfx701", &["hawaii"], NONE),
    gcn(0x24, "gfx702", &[], NONE),
    gcn(0x25, "gfx703", &["kabini", "mullins"], NONE),
    gcn(0x26, "gfx704", &["bonaire"], NONE),
    gcn(0x3b, "gfx705", &[], NONE),
    gcn(0x28, "gfx801", &["carrizo"], XNACK),
    gcn(0x29, "gfx802", &["iceland", "tonga"], NONE),
    gcn(0x2a, "gfx803", &["fiji", "polaris10", "polaris11"], NONE),
    gcn(0x3c, "gfx805", &["tongapro"], NONE),
    gcn(0x2b, "gfx810", &["stoney"], XNACK),
    gcn(0x2c, "gfx900", &[], XNACK),
    gcn(0x2d, "gfx902", &[], XNACK),
    gcn(0x2e, "gfx904", &[], XNACK),
    gcn(0x2f, "gfx906", &[], BOTH),
    gcn(0x30, "gfx908", &[], BOTH),
    gcn(0x31, "gfx909", &[], XNACK),
    gcn(0x3f, "gfx90a", &[], BOTH),
    gcn(0x32, "gfx90c", &[], XNACK),
    retired(0x40, "gfx940", BOTH),
    retired(0x4b, "gfx941", BOTH),
    gcn(0x4c, "gfx942", &[], BOTH),
    gcn(0x4f, "gfx950", &[], BOTH),
    gcn(0x33, "gfx1010", &[], XNACK),
    gcn(0x34, "gfx1011", &[], XNACK),
    gcn(0x35, "gfx1012", &[], XNACK),
    gcn(0x42, "gfx1013", &[], XNACK),
    gcn(0x36, "gfx1030", &[], NONE),
    gcn(0x37, "gfx1031", &[], NONE),
    gcn(0x38, "gfx1032", &[], NONE),
    gcn(0x39, "gfx1033", &[], NONE),
    gcn(0x3e, "gfx1034", &[], NONE),
    gcn(0x3d, "gfx1035", &[], NONE),
    gcn(0x45, "gfx1036", &[], NONE),
    gcn(0x41, "gfx1100", &[], NONE),
    gcn(0x46, "gfx1101", &[], NONE),
    gcn(0x47, "gfx1102", &[], NONE),
    gcn(0x44, "gfx1103", &[], NONE),
    gcn(0x43, "gfx1150", &[], NONE),
    gcn(0x4a, "gfx1151", &[], NONE),
    gcn(0x55, "gfx1152", &[], NONE),
    gcn(0x58, "gfx1153", &[], NONE),
    gcn(0x57, "gfx1154", &[], NONE),
    gcn(0x5d, "gfx1170", &[], NONE),
    gcn(0x5e, "gfx1171", &[], NONE),
    gcn(0x5c, "gfx1172", &[], NONE),
    gcn(0x48, "gfx1200", &[], NONE),
    gcn(0x4e, "gfx1201", &[], NONE),
    gcn(0x49, "gfx1250", &[], BOTH),
    gcn(0xeb, "gfx1250-strict", &[], XNACK),
    gcn(0x5a, "gfx1251", &[], BOTH),
    gcn(0x50, "gfx1310", &[], NONE),
    generic(
        0x51,
        "gfx9-generic",
        XNACK,
        &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"],
    ),
    generic(0x5f, "gfx9-4-generic", BOTH, &["gfx942", "gfx950"]),
    generic(0x52, "gfx10-1-generic", XNACK, &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    generic(
        0x53,
        "gfx10-3-generic",
        NONE,
        &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    ),
    generic(
        0x54,
        "gfx11-generic",
        NONE,
        &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
            "gfx1154",
        ],
    ),
    generic(0x62, "gfx11-7-generic", NONE, &["gfx1170", "gfx1171", "gfx1172"]),
    generic(0x59, "gfx12-generic", NONE, &["gfx1200", "gfx1201"]),
    generic(0x5b, "gfx12-5-generic", NONE, &["gfx1250", "gfx1251"]),
    generic(0x63, "gfx13-generic", NONE, &["gfx1310"]),
];

/// Processors of `r600` triples: no features, no bundles.
pub(crate) static R600: &[Processor] = &[
    r600(0x01, "r600", &["rv630", "rv635"]),
    r600(0x02, "r630", &[]),
    r600(0x03, "rs880", &["rs780", "rv610", "rv620"]),
    r600(0x04, "rv670", &[]),
    r600(0x05, "rv710", &[]),
    r600(0x06, "rv730", &[]),
    r600(0x07, "rv770", &["rv740"]),
    r600(0x08, "cedar", &["palm"]),
    r600(0x09, "cypress", &["hemlock"]),
    r600(0x0a, "juniper", &[]),
    r600(0x0b, "redwood", &[]),
    r600(0x0c, "sumo", &["sumo2"]),
    r600(0x0d, "barts", &[]),
    r600(0x0e, "caicos", &[]),
    r600(0x0f, "cayman", &["aruba"]),
    r600(0x10, "turks", &[]),
];
