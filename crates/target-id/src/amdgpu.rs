//! The tables of AMD GPU processors: LLVM 23's AMDGPU usage guide, sections "Processors" and
//! "Generic processors".
//!
//! gfx940 and gfx941 were removed before LLVM 22. LLVM 22 selects no feature for gfx1250 and
//! gfx1251, LLVM 23 selects `sramecc`.

use crate::feature::Features;
use crate::processor::{Family, Processor};

const NONE: Features = Features::empty();
const SRAMECC: Features = Features::SRAMECC;
const XNACK: Features = Features::XNACK;
const BOTH: Features = Features::all();

const fn gcn(
    name: &'static str,
    aliases: &'static [&'static str],
    features: Features,
) -> Processor {
    Processor { name, aliases, family: Family::AmdGcn, features, covers: &[], retired: false }
}

const fn retired(name: &'static str, features: Features) -> Processor {
    Processor { name, aliases: &[], family: Family::AmdGcn, features, covers: &[], retired: true }
}

const fn generic(
    name: &'static str,
    features: Features,
    covers: &'static [&'static str],
) -> Processor {
    Processor { name, aliases: &[], family: Family::AmdGcn, features, covers, retired: false }
}

const fn r600(name: &'static str, aliases: &'static [&'static str]) -> Processor {
    Processor { name, aliases, family: Family::R600, features: NONE, covers: &[], retired: false }
}

/// Processors of `amdgcn` triples.
pub(crate) static AMDGCN: &[Processor] = &[
    gcn("gfx600", &["tahiti"], NONE),
    gcn("gfx601", &["pitcairn", "verde"], NONE),
    gcn("gfx602", &["hainan", "oland"], NONE),
    gcn("gfx700", &["kaveri"], NONE),
    gcn("gfx701", &["hawaii"], NONE),
    gcn("gfx702", &[], NONE),
    gcn("gfx703", &["kabini", "mullins"], NONE),
    gcn("gfx704", &["bonaire"], NONE),
    gcn("gfx705", &[], NONE),
    gcn("gfx801", &["carrizo"], XNACK),
    gcn("gfx802", &["iceland", "tonga"], NONE),
    gcn("gfx803", &["fiji", "polaris10", "polaris11"], NONE),
    gcn("gfx805", &["tongapro"], NONE),
    gcn("gfx810", &["stoney"], XNACK),
    gcn("gfx900", &[], XNACK),
    gcn("gfx902", &[], XNACK),
    gcn("gfx904", &[], XNACK),
    gcn("gfx906", &[], BOTH),
    gcn("gfx908", &[], BOTH),
    gcn("gfx909", &[], XNACK),
    gcn("gfx90a", &[], BOTH),
    gcn("gfx90c", &[], XNACK),
    retired("gfx940", BOTH),
    retired("gfx941", BOTH),
    gcn("gfx942", &[], BOTH),
    gcn("gfx950", &[], BOTH),
    gcn("gfx1010", &[], XNACK),
    gcn("gfx1011", &[], XNACK),
    gcn("gfx1012", &[], XNACK),
    gcn("gfx1013", &[], XNACK),
    gcn("gfx1030", &[], NONE),
    gcn("gfx1031", &[], NONE),
    gcn("gfx1032", &[], NONE),
    gcn("gfx1033", &[], NONE),
    gcn("gfx1034", &[], NONE),
    gcn("gfx1035", &[], NONE),
    gcn("gfx1036", &[], NONE),
    gcn("gfx1100", &[], NONE),
    gcn("gfx1101", &[], NONE),
    gcn("gfx1102", &[], NONE),
    gcn("gfx1103", &[], NONE),
    gcn("gfx1150", &[], NONE),
    gcn("gfx1151", &[], NONE),
    gcn("gfx1152", &[], NONE),
    gcn("gfx1153", &[], NONE),
    gcn("gfx1154", &[], NONE),
    gcn("gfx1170", &[], NONE),
    gcn("gfx1171", &[], NONE),
    gcn("gfx1172", &[], NONE),
    gcn("gfx1200", &[], NONE),
    gcn("gfx1201", &[], NONE),
    gcn("gfx1250", &[], SRAMECC),
    gcn("gfx1251", &[], SRAMECC),
    gcn("gfx1310", &[], NONE),
    generic("gfx9-generic", XNACK, &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    generic("gfx9-4-generic", BOTH, &["gfx942", "gfx950"]),
    generic("gfx10-1-generic", XNACK, &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    generic(
        "gfx10-3-generic",
        NONE,
        &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    ),
    generic(
        "gfx11-generic",
        NONE,
        &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
            "gfx1154",
        ],
    ),
    generic("gfx11-7-generic", NONE, &["gfx1170", "gfx1171", "gfx1172"]),
    generic("gfx12-generic", NONE, &["gfx1200", "gfx1201"]),
    generic("gfx12-5-generic", NONE, &["gfx1250", "gfx1251"]),
    generic("gfx13-generic", NONE, &["gfx1310"]),
];

/// Processors of `r600` triples: no features, no bundles.
pub(crate) static R600: &[Processor] = &[
    r600("r600", &["rv630", "rv635"]),
    r600("r630", &[]),
    r600("rs880", &["rs780", "rv610", "rv620"]),
    r600("rv670", &[]),
    r600("rv710", &[]),
    r600("rv730", &[]),
    r600("rv770", &["rv740"]),
    r600("cedar", &["palm"]),
    r600("cypress", &["hemlock"]),
    r600("juniper", &[]),
    r600("redwood", &[]),
    r600("sumo", &["sumo2"]),
    r600("barts", &[]),
    r600("caicos", &[]),
    r600("cayman", &["aruba"]),
    r600("turks", &[]),
];
