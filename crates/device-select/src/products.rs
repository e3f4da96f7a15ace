//! The names and PCI IDs of GPUs, and their processors.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use target_id::{Family, IntelGpu, Processor, may_be_processor, processor_family, processor_names};

use crate::not_a_device::NotADevice;
use crate::vendor::Vendor;

/// A line for each product and processor.
const TABLE: &str = include_str!("gpus.txt");

/// A product, or several with one name and one processor.
#[derive(Debug)]
pub struct Product {
    processor: &'static str,
    name: &'static str,
    /// PCI device IDs, four hexadecimal digits each, with a space between.
    devices: &'static str,
}

impl Product {
    /// Returns all products, by vendor, processor and name. The table is not complete.
    ///
    /// ```
    /// let cards = device_select::Product::all().filter(|product| product.processor() == "gfx1201");
    /// assert!(cards.into_iter().any(|product| product.name() == "Radeon RX 9070 XT"));
    /// ```
    pub fn all() -> impl Iterator<Item = Product> {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| {
            let (processor, rest) = line.split_once(": ")?;
            let (name, devices) = rest.split_once(':')?;
            Some(Product { processor, name, devices })
        })
    }

    /// Returns the processor: `gfx1102`.
    #[must_use]
    pub fn processor(&self) -> &'static str {
        self.processor
    }

    /// Returns the name without the maker's: `Radeon RX 7600`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the maker.
    #[must_use]
    pub fn vendor(&self) -> Option<Vendor> {
        Vendor::of_processor(self.processor)
    }

    /// Returns PCI IDs as `lspci -nn` prints them: `1002:744c`.
    pub fn pci_ids(&self) -> impl Iterator<Item = String> {
        let vendor = match self.vendor() {
            Some(Vendor::Amd) => "1002",
            Some(Vendor::Nvidia) => "10de",
            Some(Vendor::Intel) | None => "8086",
        };
        self.devices.split_whitespace().map(move |device| format!("{vendor}:{device}"))
    }

    /// Returns whether a text is the processor, the vendor, a PCI ID, or a part of the name.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let key = key(text);
        self.processor == text
            || self.is_short(text)
            || self.vendor().is_some_and(|vendor| vendor.as_str().eq_ignore_ascii_case(text))
            || match pci_id(text) {
                Some(wanted) => self.pci_ids().any(|id| id == wanted),
                None => !key.is_empty() && self.key().contains(&key),
            }
    }

    /// Returns whether a text is another name of the processor: `pvc`, `ACM-G10`, `xe-pvc`.
    fn is_short(&self, text: &str) -> bool {
        processor_by_name(text).is_some_and(|name| name == self.processor)
    }

    /// Returns the part of the name that differs from product to product: `rx7600xt`.
    #[must_use]
    pub fn key(&self) -> String {
        key(self.name)
    }
}

/// Returns the processors that compilers of today know, by their primary names; those of hardware have `true`.
///
/// ```
/// let processors: Vec<_> = device_select::processors().collect();
/// assert!(processors.contains(&("gfx1100", true)) && processors.contains(&("gfx11-generic", false)));
/// ```
pub fn processors() -> impl Iterator<Item = (&'static str, bool)> {
    processor_names().filter_map(|name| {
        let is_gpu = match processor_family(name)? {
            Family::R600 => return None,
            Family::Intel => IntelGpu::find(name).is_some_and(|gpu| !gpu.is_generic()),
            family => {
                let info = Processor::amdgpu(name);
                let is_old = info.is_none_or(|info| info.name() != name || info.is_retired());
                if family == Family::AmdGcn && is_old {
                    return None;
                }
                info.map_or(family == Family::Nvptx, |info| !info.is_generic())
            }
        };
        Some((name, is_gpu))
    })
}

/// Returns the processor by a name that target IDs do not have: an Intel GPU in any spelling and letter case, or
/// an architecture of AMD's triples (`amdgpu9.50`).
fn processor_by_name(text: &str) -> Option<&'static str> {
    let text = text.trim().to_ascii_lowercase();
    let intel = IntelGpu::find(&text).map(IntelGpu::name);
    intel.or_else(|| Processor::from_architecture(&text).map(Processor::name))
}

/// Returns the processor in other spellings: `GFX1100`, `SM_86`, `sm86`, and the compute capability `8.6`.
fn respelled(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.strip_prefix("sm").map(|rest| rest.trim_start_matches(['_', '-', ' ']));
    let capability = || {
        let (major, minor) = lower.split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        let digits = minor.strip_suffix(['a', 'f']).unwrap_or(minor);
        let is_one = is_number(major) && is_number(digits) && digits.len() == 1;
        is_one.then(|| format!("{major}{minor}"))
    };
    let name = match number.map(ToOwned::to_owned).or_else(capability) {
        Some(number) => format!("sm_{number}"),
        None => lower,
    };
    may_be_processor(&name).then_some(name)
}

/// Replaces the name of a product, its PCI ID, or another name or spelling of its processor by the processor: `MI300X:xnack+`
/// becomes `gfx942:xnack+`, `xe-pvc` becomes `intel_gpu_pvc`, the compute capability `8.6` becomes `sm_86`. Returns other texts
/// unchanged.
///
/// # Errors
///
/// The text names several products with several processors, or a GPU of Apple's, or is a PCI ID that is not known.
pub fn target_id(text: &str) -> Result<Cow<'_, str>, NotADevice> {
    let (name, features) = match text.find(':') {
        Some(at) if pci_id(text).is_none() => text.split_at(at),
        _ => (text, ""),
    };
    if let Some(processor) = processor_by_name(name) {
        return Ok(Cow::Owned(format!("{processor}{features}")));
    }
    if may_be_processor(name) {
        return Ok(Cow::Borrowed(text));
    }
    if let Some(processor) = respelled(name) {
        return Ok(Cow::Owned(format!("{processor}{features}")));
    }
    Ok(match processor(name)? {
        Some(processor) => Cow::Owned(format!("{processor}{features}")),
        None if is_of_apple(name) => return Err(NotADevice::Apple(name.trim().to_owned())),
        None => Cow::Borrowed(text),
    })
}

/// Returns whether it is a name like `Apple M3` or `M3 Max`.
fn is_of_apple(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let is_chip = |name: &str| {
        let rest = name
            .strip_prefix('m')
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        let is_numbered = rest.is_some_and(|rest| (2..=3).contains(&(name.len() - rest.len())));
        is_numbered && ["", " pro", " max", " ultra"].contains(&rest.unwrap_or("?"))
    };
    name.starts_with("apple ") || is_chip(&name)
}

/// Returns the processor of a product; `None` if nothing is called so.
fn processor(typed: &str) -> Result<Option<&'static str>, NotADevice> {
    if let Some(id) = pci_id(typed) {
        let found: Vec<_> =
            Product::all().filter(|p| p.pci_ids().any(|known| known == id)).collect();
        return match found[..] {
            [] => Err(NotADevice::UnknownPciId(id)),
            _ => one(typed, &found).map(Some),
        };
    }
    let wanted = key(typed);
    if wanted.is_empty() {
        return Ok(None);
    }
    let those = |is_meant: &dyn Fn(&Product) -> bool| -> Vec<_> {
        Product::all().filter(|product| is_meant(product)).collect()
    };
    // From the strictest way to read it to the loosest: only the last one does not name a product.
    let mut found = those(&|p| p.key() == wanted);
    if found.is_empty() {
        let short = shorter(&wanted);
        found = those(&|p| {
            let key = p.key();
            let has_words = LINES.iter().all(|word| !wanted.contains(word) || key.contains(word));
            has_words && shorter(&key) == short
        });
    }
    if !found.is_empty() {
        return one(typed, &found).map(Some);
    }
    let parts = those(&|p| is_part(&wanted, &p.key()));
    // A number is enough for people: `3060`.
    let has_number = wanted.bytes().filter(u8::is_ascii_digit).count() >= 3;
    match (wanted.len(), &parts[..]) {
        (3.., [_, ..]) if has_number => one(typed, &parts).map(Some),
        (3.., [_, ..]) => Err(several(typed, &parts)),
        _ => Ok(None),
    }
}

/// Returns the processor of all these products.
fn one(typed: &str, found: &[Product]) -> Result<&'static str, NotADevice> {
    match found.first() {
        Some(first) if found.iter().all(|other| other.processor == first.processor) => {
            Ok(first.processor)
        }
        _ => Err(several(typed, found)),
    }
}

fn several(typed: &str, found: &[Product]) -> NotADevice {
    let choices = found.iter().map(|p| format!("{} ({})", p.name, p.processor)).collect();
    NotADevice::Several { typed: typed.trim().to_owned(), choices }
}

/// Words that tell no product from another.
const FILLERS: [&str; 28] = [
    "amd",
    "ati",
    "radeon",
    "instinct",
    "nvidia",
    "geforce",
    "tesla",
    "intel",
    "arc",
    "tm",
    "r",
    "graphics",
    "gpu",
    "data",
    "center",
    "laptop",
    "mobile",
    "generation",
    "edition",
    "workstation",
    "server",
    "embedded",
    "oem",
    "accelerator",
    "pcie",
    "nvl",
    "hbm3",
    "hbm3e",
];

/// Makers and brands that may stand before a name without a space.
const PREFIXES: [&str; 8] =
    ["amd", "radeon", "instinct", "nvidia", "geforce", "tesla", "intel", "arc"];

/// Names of product lines, which people leave out.
const LINES: [&str; 4] = ["quadro", "pro", "ada", "blackwell"];

/// Returns a name in lower case, without spaces, fillers and sizes of memory: `NVIDIA H100-SXM5-80GB` is `h100`.
fn key(name: &str) -> String {
    let lower = name.to_lowercase().replace("max-q", " ").replace(['™', '®'], " ");
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let key: String = words.filter(|word| !FILLERS.contains(word) && !is_size(word)).collect();
    let mut key = &key[..];
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix)) {
        key = rest;
    }
    key.to_owned()
}

/// Returns whether a word is a size or a form, such as `80gb` or `sxm5`.
fn is_size(word: &str) -> bool {
    let number = word.strip_suffix("gb").or(word.strip_prefix("sxm"));
    number.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()))
}

fn shorter(key: &str) -> String {
    LINES.iter().fold(key.to_owned(), |key, word| key.replace(word, ""))
}

/// Returns whether a part is in a key, and does not start or end in a number there.
fn is_part(part: &str, key: &str) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let splits_number = |before: &str, after: &str| {
        is_digit(before.chars().next_back()) && is_digit(after.chars().next())
    };
    key.match_indices(part).any(|(at, _)| {
        let (before, rest) = key.split_at(at);
        let (_, after) = rest.split_at(part.len());
        !splits_number(before, part) && !splits_number(part, after)
    })
}

/// Returns the PCI ID that a text is, in lower case: `1002:744c`, `[10DE:2684]`, `0x8086:0x56a0`.
fn pci_id(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let (vendor, device) = text.split_once(':')?;
    let number = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_id = digits.len() == 4 && digits.bytes().all(|c| c.is_ascii_hexdigit());
        is_id.then(|| digits.to_ascii_lowercase())
    };
    Some(format!("{}:{}", number(vendor)?, number(device)?))
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;

    use super::*;

    fn order(product: &Product) -> (&'static str, usize, String, String) {
        let vendor = product.vendor().unwrap().as_str();
        // Shorter numbers are less.
        let digits = if vendor == "Intel" { 0 } else { product.processor.len() };
        (vendor, digits, product.processor.to_owned(), natural(product.name))
    }

    /// Returns a sort key: texts sort by the numbers in them.
    fn natural(name: &str) -> String {
        let mut padded = String::new();
        let mut digits = String::new();
        for c in name.to_lowercase().chars().chain([' ']) {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            if !digits.is_empty() {
                padded.push_str(&format!("{digits:0>8}"));
                digits.clear();
            }
            padded.push(c);
        }
        padded
    }

    #[test]
    fn gpus_of_apple_are_known_as_such() {
        for name in ["Apple M3", "M3", "M2 Ultra", "m10 pro", "Apple A17 Pro"] {
            let found = target_id(name);
            assert!(matches!(&found, Err(NotADevice::Apple(typed)) if typed == name), "{name}");
        }
        for name in ["M", "M395X", "Mali", "M3 Foo", "applet"] {
            assert!(!matches!(target_id(name), Err(NotADevice::Apple(_))), "{name}");
        }
    }

    #[test]
    fn every_product_in_the_table_is_found() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        let all: Vec<_> = Product::all().collect();
        assert_eq!(all.len(), lines);
        assert!(lines > 400, "{lines}");
        let mut seen = BTreeSet::new();
        for product in &all {
            assert!(may_be_processor(product.processor), "{product:?}");
            assert!(seen.insert((product.processor, product.key())), "{product:?}");
            for id in product.pci_ids() {
                assert_eq!(pci_id(&id), Some(id), "{product:?}");
            }
            // Each name means itself.
            match target_id(product.name) {
                Ok(id) => {
                    assert!(id == product.processor || product.key().is_empty(), "{product:?}");
                }
                Err(NotADevice::Several { choices, .. }) => {
                    let own = format!("{} ({})", product.name, product.processor);
                    assert!(choices.contains(&own), "{product:?}: {choices:?}");
                }
                Err(other) => panic!("{product:?}: {other}"),
            }
        }
        for pair in all.windows(2) {
            assert!(order(&pair[0]) < order(&pair[1]), "{:?} is before {:?}", pair[0], pair[1]);
        }
    }

    #[test]
    fn names_are_read_in_all_spellings() {
        for (typed, expected) in [
            ("RX 7600", "gfx1102"),
            ("rx7600", "gfx1102"),
            ("RX-7600 XT", "gfx1102"),
            ("Radeon RX 7600", "gfx1102"),
            ("radeonrx7600xt", "gfx1102"),
            ("AMD Radeon™ RX 7900 XTX", "gfx1100"),
            ("RX 9070 XT", "gfx1201"),
            ("Radeon VII", "gfx906"),
            ("W7900", "gfx1100"),
            ("AMD Radeon 780M Graphics", "gfx1103"),
            ("MI300X", "gfx942"),
            ("AMD Instinct MI250X", "gfx90a"),
            ("MI300X:xnack+", "gfx942:xnack+"),
            ("GTX 1080", "sm_61"),
            ("NVIDIA GeForce GTX 1080 Ti", "sm_61"),
            ("NVIDIA GeForce GTX 1060 6GB", "sm_61"),
            ("gtx1060", "sm_61"),
            ("RTX 4070 SUPER", "sm_89"),
            ("rtx3080ti", "sm_86"),
            ("NVIDIA A100-SXM4-80GB", "sm_80"),
            ("NVIDIA H100 80GB HBM3", "sm_90"),
            ("Tesla V100-SXM2-16GB", "sm_70"),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "sm_120"),
            ("RTX PRO 6000", "sm_120"),
            ("NVIDIA RTX 6000 Ada Generation", "sm_89"),
            ("P4000", "sm_61"),
            ("GB10", "sm_121"),
            ("A770", "intel_gpu_acm_g10"),
            ("Intel(R) Arc(TM) A770 Graphics", "intel_gpu_acm_g10"),
            ("Arc B580", "intel_gpu_bmg_g21"),
            ("bmg_g21", "intel_gpu_bmg_g21"),
            ("amdgpu9.50", "gfx950"),
            ("amdgpu9.50:xnack+", "gfx950:xnack+"),
            ("amdgpu12.50s", "gfx1250-strict"),
            ("amdgpu11", "gfx11-generic"),
            ("xe-bmg-g21", "intel_gpu_bmg_g21"),
            ("intel_gpu_12_60_7", "intel_gpu_pvc"),
            ("12.60.7", "intel_gpu_pvc"),
            ("xe_35.11.0", "intel_gpu_cri"),
            ("dg2-g10", "intel_gpu_acm_g10"),
            ("intel_gpu_new", "intel_gpu_new"),
            ("Flex 170", "intel_gpu_acm_g10"),
            ("Data Center GPU Max 1550", "intel_gpu_pvc"),
            ("pvc", "intel_gpu_pvc"),
            ("PVC", "intel_gpu_pvc"),
            ("acm-g11", "intel_gpu_acm_g11"),
            ("1002:744c", "gfx1100"),
            ("10de:2684", "sm_89"),
            ("[10DE:2684]", "sm_89"),
            ("0x8086:0x56a0", "intel_gpu_acm_g10"),
        ] {
            assert_eq!(target_id(typed).unwrap(), expected, "{typed}");
        }
    }

    #[test]
    fn unknown_names_are_unchanged() {
        for typed in [
            "gfx90a:xnack+",
            "gfx9-generic",
            "sm_86",
            "gfx1103x",
            "generic",
            "",
            " ",
            "RX",
            "my gpu",
            "AMD",
        ] {
            assert_eq!(target_id(typed).unwrap(), typed);
        }
    }

    #[test]
    fn ambiguous_names_are_errors() {
        for (typed, words) in [
            (
                "RTX 4000",
                "RTX 4000 names several GPUs: Quadro RTX 4000 (sm_75), RTX 4000 Ada (sm_89), RTX PRO 4000 Blackwell (sm_120)",
            ),
            ("GTX 750", "GeForce GTX 750 (sm_50), GeForce GTX 750 (sm_52)"),
            ("840M", "Radeon 840M (gfx1152), GeForce 840M (sm_50)"),
            ("Titan X", "GeForce GTX TITAN X (sm_52), TITAN X Pascal (sm_61)"),
            ("Iris Xe", "Iris Xe Graphics (intel_gpu_adl_p), Iris Xe Graphics (intel_gpu_tgllp)"),
            ("Quadro", "and "),
            ("1002:15d8", "Picasso (gfx902), Raven 2 (gfx909)"),
            ("1002:ffff", "no GPU with PCI ID 1002:ffff is known"),
        ] {
            let said = target_id(typed).unwrap_err().to_string();
            assert!(said.contains(words), "{typed}: {said}");
        }
    }
}
