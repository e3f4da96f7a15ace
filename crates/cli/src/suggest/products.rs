//! What GPUs are sold as, for those who type that: the common ones, whose processors their makers have in public tables
//! ("AMD GPU specifications" of ROCm's documentation, NVIDIA's "CUDA GPU Compute Capability").

/// In each line a processor, and names without maker, brand and spaces.
const PRODUCTS: &str = "\
gfx950 mi355x mi350x
gfx942 mi325x mi300x mi300a
gfx90a mi250x mi250 mi210
gfx908 mi100
gfx906 mi60 mi50 vii
gfx1201 rx9070 rx9070xt rx9070gre
gfx1200 rx9060 rx9060xt
gfx1100 rx7900xtx rx7900xt rx7900gre
gfx1101 rx7800xt rx7700xt rx7700
gfx1102 rx7600 rx7600xt
gfx1030 rx6950xt rx6900xt rx6800xt rx6800
gfx1031 rx6750xt rx6700xt
sm_120 rtx5090 rtx5080 rtx5070 rtx5060
sm_100 b200 gb200
sm_90 h100 h200 gh200
sm_89 l4 l40 l40s rtx4090 rtx4080 rtx4070 rtx4060
sm_86 a10 a16 a40 rtx3090 rtx3080 rtx3070 rtx3060
sm_80 a100 a30
sm_75 t4 rtx2080 rtx2070 rtx2060
sm_70 v100";

/// Words that say no more.
const FILLING: [&str; 8] =
    ["amd", "radeon", "instinct", "nvidia", "geforce", "tesla", "ti", "super"];

/// The processor of a product.
pub(super) fn processor(typed: &str) -> Option<&'static str> {
    let lower = typed.to_lowercase();
    let words = lower.split([' ', '-', '_', '(', ')', '™', '®']);
    let name: String = words.filter(|word| !FILLING.contains(word)).collect();
    let name = name.strip_suffix("ti").filter(|name| name.starts_with("rtx")).unwrap_or(&name);
    products().find(|(product, _)| *product == name).map(|(_, processor)| processor)
}

/// All products with their processors.
fn products() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRODUCTS.lines().flat_map(|line| {
        let (processor, names) = line.split_once(' ').unwrap_or((line, ""));
        names.split(' ').map(move |name| (name, processor))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use target_id::is_known_processor;

    #[test]
    fn products_in_all_spellings() {
        for (typed, expected) in [
            ("MI300X", Some("gfx942")),
            ("AMD Instinct MI250X", Some("gfx90a")),
            ("RX 7900 XTX", Some("gfx1100")),
            ("rx7900xtx", Some("gfx1100")),
            ("Radeon VII", Some("gfx906")),
            ("NVIDIA GeForce RTX 3080 Ti", Some("sm_86")),
            ("RTX 4070 SUPER", Some("sm_89")),
            ("rtx3080ti", Some("sm_86")),
            ("H100", Some("sm_90")),
            // Not told which: RTX 4000 is three of them.
            ("RTX 4000", None),
            ("RX 7900", None),
            ("gfx90a", None),
            ("", None),
        ] {
            assert_eq!(processor(typed), expected, "{typed}");
        }
    }

    #[test]
    fn all_lead_somewhere_once() {
        let mut seen = std::collections::BTreeSet::new();
        for (product, processor) in products() {
            assert!(is_known_processor(processor) && seen.insert(product), "{product}");
        }
        assert!(seen.len() > 50);
    }
}
