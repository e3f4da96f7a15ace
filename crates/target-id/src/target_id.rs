//! Target IDs: a processor and how its features are set.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::amd_processor::{Family, Processor};
use crate::error::{Error, ErrorKind};
use crate::feature::{Feature, Setting};
use crate::processor::{self, GENERIC};
use crate::triple::Triple;

/// A target ID, `<processor>(":"<feature>("+"|"-"))*`, as the Clang Offload Bundler
/// documentation defines it.
///
/// [`Display`](fmt::Display) gives the canonical form: the primary name of the processor,
/// then the features in alphabetical order. Two target IDs are equal if their canonical forms
/// are.
///
/// ```
/// use target_id::{Feature, Setting, TargetId};
///
/// let id = TargetId::parse("gfx90a:xnack+:sramecc-")?;
/// assert_eq!(id.processor(), "gfx90a");
/// assert_eq!(id.setting(&Feature::Xnack), Some(Setting::On));
/// assert_eq!(id.to_string(), "gfx90a:sramecc-:xnack+");
/// # Ok::<(), target_id::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TargetId {
    processor: String,
    info: Option<&'static Processor>,
    /// Sorted by feature, each once.
    features: Vec<(Feature, Setting)>,
}

impl TargetId {
    /// Reads a target ID without its triple: the processor name gives the family.
    ///
    /// AMD GPU processors get their primary name, and their features are checked. NVIDIA's
    /// and Intel's, `amdgcnspirv` and `generic` take no features. A processor this crate
    /// does not know keeps its name and features, as long as these are well-formed.
    ///
    /// One `:` at the end is tolerated, as LLVM does.
    ///
    /// # Errors
    ///
    /// Every [`ErrorKind`](crate::ErrorKind) except `ForeignProcessor` and `NotNvidiaArch`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (name, features) = split(text)?;
        if let Some(info) = Processor::amdgpu(name) {
            Self::known(info, features)
        } else if processor::is_known_processor(name) {
            Self::opaque(name, features)
        } else {
            Self::unknown(text, name, features)
        }
    }

    /// Reads a target ID that stands with a triple, which decides the family.
    ///
    /// With `amdgcn` and `r600` triples, processors of other families are refused. All
    /// other known architectures take any processor name, but no features. With an unknown
    /// architecture, this is [`parse`](Self::parse).
    ///
    /// # Errors
    ///
    /// Every [`ErrorKind`](crate::ErrorKind) except `NotNvidiaArch`.
    pub fn parse_for(triple: &Triple, text: &str) -> Result<Self, Error> {
        let family = if triple.is_amdgpu() {
            Family::AmdGcn
        } else if triple.is_r600() {
            Family::R600
        } else if triple.is_known_arch() {
            let (name, features) = split(text)?;
            return Self::opaque(name, features);
        } else {
            return Self::parse(text);
        };
        let (name, features) = split(text)?;
        if let Some(info) = Processor::in_family(family, name) {
            Self::known(info, features)
        } else if name == GENERIC && family == Family::AmdGcn {
            Self::opaque(name, features)
        } else if processor::is_known_processor(name) {
            let text = format!(
                "target ID names the processor {name:?}, which is not one of the architecture {:?}",
                triple.arch()
            );
            Err(Error::new(ErrorKind::ForeignProcessor, None, text))
        } else {
            Self::unknown(text, name, features)
        }
    }

    /// Reads the spelling of code object V2 and V3, `<processor>("+"<feature>)*`.
    ///
    /// There a feature is named if it is on or may be either, and left out if it is off (LLVM's AMDGPU usage
    /// guide). Named features become [`Setting::On`]; other features that the processor has become
    /// [`Setting::Off`]. So `gfx906+xnack` is `gfx906:sramecc-:xnack+`. `sram-ecc`, the name used then, is
    /// `sramecc`.
    ///
    /// A name without any `+` is valid in both spellings and means different things in
    /// them: call this only for code objects known to be that old. Nothing in this crate
    /// does so on its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyProcessor`](crate::ErrorKind::EmptyProcessor),
    /// [`ErrorKind::EmptyFeature`](crate::ErrorKind::EmptyFeature),
    /// [`ErrorKind::DuplicateFeature`](crate::ErrorKind::DuplicateFeature) or
    /// [`ErrorKind::UnsupportedFeature`](crate::ErrorKind::UnsupportedFeature).
    pub fn parse_v3(text: &str) -> Result<Self, Error> {
        let (name, rest) =
            text.split_once('+').map_or((text, None), |(name, rest)| (name, Some(rest)));
        if name.is_empty() {
            return Err(Error::empty_processor());
        }
        let info = Processor::amdgpu(name);
        let mut listed = Vec::new();
        let mut offset = name.len() + 1;
        for word in rest.into_iter().flat_map(|rest| rest.split('+')) {
            if word.is_empty() {
                return Err(Error::empty_feature(offset));
            }
            let feature = Feature::parse(if word == "sram-ecc" { "sramecc" } else { word });
            listed.push(Listed { feature, setting: Setting::On, offset });
            offset += word.len() + 1;
        }
        let mut features = check(listed, info)?;
        for feature in [Feature::Sramecc, Feature::Xnack] {
            let named = features.iter().any(|(known, _)| *known == feature);
            if !named && info.is_some_and(|info| info.supports(&feature)) {
                features.push((feature, Setting::Off));
            }
        }
        features.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Self { processor: info.map_or(name, |info| info.name()).to_owned(), info, features })
    }

    /// Returns the target ID in the ELF header of an AMD GPU code object, by LLVM's AMDGPU usage guide: its
    /// `e_flags`, and `e_ident[EI_ABIVERSION]`. `None` for a processor this crate does not know.
    ///
    /// Features come from code object V4 on (ABI version 2); older ones have flags that do not distinguish off from any.
    /// LLVM up to 23 gives gfx1250 and gfx1251 both features and a fixed `xnack`, LLVM 24 gives them `xnack` alone: next
    /// to `sramecc`, whatever its setting, the setting of `xnack` does not count.
    #[must_use]
    pub fn from_elf_flags(flags: u32, abi_version: u8) -> Option<Self> {
        const MACHINE: u32 = 0xff;
        const CODE_OBJECT_V4: u8 = 2;
        let info = Processor::from_elf_machine(flags & MACHINE)?;
        let setting = |shift: u32| match (flags >> shift) & 3 {
            2 => Some(Setting::Off),
            3 => Some(Setting::On),
            _ => None,
        };
        let is_fixed = matches!(info.name(), "gfx1250" | "gfx1251") && (flags >> 10) & 3 != 0;
        let settings =
            [(Feature::Sramecc, setting(10)), (Feature::Xnack, setting(8).filter(|_| !is_fixed))];
        let features = settings
            .into_iter()
            .filter(|_| abi_version >= CODE_OBJECT_V4)
            .filter(|(feature, _)| info.supports(feature))
            .filter_map(|(feature, setting)| Some((feature, setting?)))
            .collect();
        Some(Self { processor: info.name().to_owned(), info: Some(info), features })
    }

    /// Returns the target ID of an AMD GPU code object of version 2, by the note `NT_AMD_HSA_ISA_VERSION` (major,
    /// minor, stepping) and `e_flags`; `None` for a processor that has no code objects of this version.
    ///
    /// Steppings mean processors as in AMD's Comgr, 8.0.4 for gfx803, 9.0.1 for gfx900 with `xnack`; gfx908 is in
    /// published files. Bit 0 of the flags says
    /// the same of a processor that the flags do not name. `xnack` is never off here: the note does not distinguish off from any.
    ///
    /// ```
    /// use target_id::TargetId;
    ///
    /// let id = |version, flags| TargetId::from_isa_version(version, flags).map(|id| id.to_string());
    /// assert_eq!(id([8, 0, 3], 0).as_deref(), Some("gfx803"));
    /// assert_eq!(id([9, 0, 1], 0).as_deref(), Some("gfx900:xnack+"));
    /// assert_eq!(id([10, 1, 0], 0), None);
    /// ```
    #[must_use]
    pub fn from_isa_version(version: [u32; 3], flags: u32) -> Option<Self> {
        const XNACK: u32 = 1;
        const MACHINE: u32 = 0xff;
        let name = match version {
            [6, 0, 0..=2] | [7, 0, 0..=5] | [8, 0, 1..=3 | 5] | [8, 1, 0] | [9, 0, 8 | 12] => {
                version
            }
            [8, 0, 0] => [8, 0, 2],
            [8, 0, 4] => [8, 0, 3],
            [9, 0, stepping @ 0..=7] => [9, 0, stepping & !1],
            _ => return None,
        };
        let [major, minor, stepping] = name;
        let info = Processor::amdgpu(&format!("gfx{major}{minor}{stepping:x}"))?;
        let is_on = name != version && major == 9 || flags & MACHINE & !2 == XNACK;
        let is_on = is_on && info.supports(&Feature::Xnack);
        let features = is_on.then_some((Feature::Xnack, Setting::On)).into_iter().collect();
        Some(Self { processor: info.name().to_owned(), info: Some(info), features })
    }

    /// Returns an AMD GPU processor of the tables: features must be its own.
    fn known(info: &'static Processor, features: Option<FeatureText<'_>>) -> Result<Self, Error> {
        let features = read_features(features, Some(info))?;
        Ok(Self { processor: info.name().to_owned(), info: Some(info), features })
    }

    /// Returns a processor whose target IDs have no features.
    fn opaque(name: &str, features: Option<FeatureText<'_>>) -> Result<Self, Error> {
        match features {
            Some(FeatureText { offset, .. }) => {
                let text = format!(
                    "target ID gives {name:?} features at offset {offset}, which that processor does not take"
                );
                Err(Error::new(ErrorKind::UnsupportedFeature, offset, text))
            }
            None => Ok(Self { processor: name.to_owned(), info: None, features: Vec::new() }),
        }
    }

    fn unknown(text: &str, name: &str, features: Option<FeatureText<'_>>) -> Result<Self, Error> {
        if features.is_none()
            && let Ok(old) = Self::parse_v3(name)
            && old.info.is_some()
        {
            let current = old.to_string();
            let text = format!(
                "target ID {text:?} is spelled as in code object V2 or V3; since V4 it is written {current:?}"
            );
            return Err(Error::new(ErrorKind::OldSpelling, None, text));
        }
        let features = read_features(features, None)?;
        Ok(Self { processor: name.to_owned(), info: None, features })
    }

    /// Returns the processor: its primary name if this crate knows it, else the name as written.
    #[must_use]
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Returns the data of the processor, if it is an AMD GPU.
    #[must_use]
    pub fn processor_info(&self) -> Option<&'static Processor> {
        self.info
    }

    /// Returns the features that are set, in alphabetical order.
    pub fn features(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Feature, Setting)> + DoubleEndedIterator + Clone {
        self.features.iter().map(|(feature, setting)| (feature, *setting))
    }

    /// Returns the setting of a feature; `None` means *any*.
    #[must_use]
    pub fn setting(&self, feature: &Feature) -> Option<Setting> {
        self.features.iter().find(|(known, _)| known == feature).map(|(_, setting)| *setting)
    }
}

impl TargetId {
    /// Returns the written parts; everything known of the processor follows from them, or from the triple.
    fn parts(&self) -> (&str, &[(Feature, Setting)]) {
        (&self.processor, &self.features)
    }
}

impl PartialEq for TargetId {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

/// The text after the first `:`; never empty.
#[derive(Clone, Copy)]
struct FeatureText<'a> {
    text: &'a str,
    offset: usize,
}

/// Returns the processor name, and the features if there are any.
fn split(text: &str) -> Result<(&str, Option<FeatureText<'_>>), Error> {
    let (name, features) = text.split_once(':').unwrap_or((text, ""));
    if name.is_empty() {
        return Err(Error::empty_processor());
    }
    let features = FeatureText { text: features, offset: name.len() + 1 };
    Ok((name, (!features.text.is_empty()).then_some(features)))
}

/// A feature as it was found in the text.
struct Listed {
    feature: Feature,
    setting: Setting,
    offset: usize,
}

fn read_features(
    features: Option<FeatureText<'_>>,
    info: Option<&'static Processor>,
) -> Result<Vec<(Feature, Setting)>, Error> {
    let mut listed = Vec::new();
    let Some(FeatureText { text, mut offset }) = features else {
        return Ok(Vec::new());
    };
    // The one `:` at the end that is tolerated.
    for word in text.strip_suffix(':').unwrap_or(text).split(':') {
        let (name, setting) = if let Some(name) = word.strip_suffix('+') {
            (name, Setting::On)
        } else if let Some(name) = word.strip_suffix('-') {
            (name, Setting::Off)
        } else if word.is_empty() {
            return Err(Error::empty_feature(offset));
        } else {
            let text = format!(
                "target ID feature {word:?} at offset {offset} lacks its sign, expected \"+\" or \"-\""
            );
            return Err(Error::new(ErrorKind::MissingSign, offset, text));
        };
        if name.is_empty() {
            return Err(Error::empty_feature(offset));
        }
        listed.push(Listed { feature: Feature::parse(name), setting, offset });
        offset += word.len() + 1;
    }
    check(listed, info)
}

/// Features in order, each one the processor's and there only once.
fn check(
    mut listed: Vec<Listed>,
    info: Option<&'static Processor>,
) -> Result<Vec<(Feature, Setting)>, Error> {
    if let Some(info) = info
        && let Some(other) = listed.iter().find(|listed| !info.supports(&listed.feature))
    {
        let (processor, feature, offset) = (info.name(), other.feature.to_string(), other.offset);
        let text = format!(
            "target ID gives {processor:?} the feature {feature:?} at offset {offset}, which that processor does not have"
        );
        return Err(Error::new(ErrorKind::UnsupportedFeature, offset, text));
    }
    // Stable, so that the second of two equal features is the later one in the text.
    listed.sort_by(|a, b| a.feature.cmp(&b.feature));
    for (first, second) in listed.iter().zip(listed.iter().skip(1)) {
        if first.feature == second.feature {
            let (feature, offset) = (second.feature.to_string(), second.offset);
            let text = format!(
                "target ID repeats the feature {feature:?} at offset {offset}, expected each feature once"
            );
            return Err(Error::new(ErrorKind::DuplicateFeature, offset, text));
        }
    }
    Ok(listed.into_iter().map(|listed| (listed.feature, listed.setting)).collect())
}

/// The canonical form, which [`parse`](TargetId::parse) reads as the target ID that it gave.
impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (feature, setting) in &self.features {
            write!(f, ":{feature}{}", setting.sign())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
