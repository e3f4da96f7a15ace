//! The groups of GPUs for which AMD makes device packages.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use target_id::{Family, processor_family, processor_names};

/// Level of a [`PackageGroup`].
///
/// Exhaustive: there are three levels of numbers in the names of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackageLevel {
    /// All processors with one major version: `gfx11`.
    Family,
    /// All processors with one major and one minor version: `gfx115x`, `gfx12_0`.
    SubFamily,
    /// One processor: `gfx1151`.
    Target,
}

/// GPUs that share a device package of AMD's. Code for one target is in the package of the target; files for several are in those of
/// its sub-family or family, which are installed with it.
///
/// Names are those of `rocm-bootstrap` 0.3.0. Its list ends with the processors of its time; here, every processor that LLVM knows
/// has its groups.
///
/// ```
/// use device_select::{PackageGroup, PackageLevel};
///
/// let group = PackageGroup::of("gfx90a:xnack-").unwrap();
/// assert_eq!((group.key(), group.level()), ("gfx90a", PackageLevel::Target));
/// let keys: Vec<_> = PackageGroup::of("gfx1151").unwrap().chain().iter().map(|group| group.key().to_owned()).collect();
/// assert_eq!(keys, ["gfx1151", "gfx115x", "gfx11"]);
/// assert_eq!(PackageGroup::of("gfx12-generic").unwrap().name_part(), "gfx12-0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackageGroup {
    key: String,
    level: PackageLevel,
    /// Major and minor version; no minor version of a family.
    version: (u32, Option<u32>),
}

impl PackageGroup {
    /// Returns the group that code for a target, or a file of this group, goes to. Takes target IDs, generic processors, keys and the
    /// directories of AOTriton (`gfx11xx`). `None` if no processor is in it.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let target = name.split(':').next()?;
        let target = ["-xnack+", "-xnack-", "-sramecc+", "-sramecc-"]
            .iter()
            .fold(target, |target, feature| target.strip_suffix(feature).unwrap_or(target));
        let target = target.strip_suffix("-strict").unwrap_or(target);
        let group = match target.strip_suffix("-generic") {
            Some(generic) => Self::of_generic(generic)?,
            None => Self::of_processor(target).or_else(|| Self::of_key(target))?,
        };
        let is_in = |name: &str| {
            let version = version(name);
            version.is_some_and(|(major, minor)| {
                major == group.version.0 && group.version.1.is_none_or(|of| of == minor)
            })
        };
        processor_names().any(is_in).then_some(group)
    }

    fn of_processor(name: &str) -> Option<Self> {
        let (major, minor) = version(name)?;
        let version = (major, Some(minor));
        Some(PackageGroup { key: name.into(), level: PackageLevel::Target, version })
    }

    /// Returns the group that a generic processor covers, or nearly so: gfx9-generic and gfx12-generic cover the first sub-family.
    fn of_generic(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix("gfx")?;
        match numbers.split_once('-') {
            Some((major, minor)) => Some(Self::sub_family(number(major)?, number(minor)?)),
            None if numbers == "11" => Some(Self::family(11)),
            None => Some(Self::sub_family(number(numbers)?, 0)),
        }
    }

    fn of_key(key: &str) -> Option<Self> {
        let numbers = key.strip_prefix("gfx")?;
        if let Some((major, minor)) = numbers.split_once('_') {
            return Some(Self::sub_family(number(major)?, number(minor)?));
        }
        if let Some(major) = numbers.strip_suffix("xx") {
            return Some(Self::family(number(major)?));
        }
        match numbers.strip_suffix('x') {
            Some(both) => {
                let (major, minor) = both.split_at_checked(both.len().checked_sub(1)?)?;
                Some(Self::sub_family(number(major)?, number(minor)?))
            }
            None => Some(Self::family(number(numbers)?)),
        }
    }

    fn family(major: u32) -> Self {
        let (key, version) = (format!("gfx{major}"), (major, None));
        PackageGroup { key, level: PackageLevel::Family, version }
    }

    fn sub_family(major: u32, minor: u32) -> Self {
        let key = match major {
            11 => format!("gfx{major}{minor}x"),
            _ => format!("gfx{major}_{minor}"),
        };
        PackageGroup { key, level: PackageLevel::SubFamily, version: (major, Some(minor)) }
    }

    /// Returns the name of the group: `gfx1151`, `gfx115x`, `gfx12_0`, `gfx11`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> PackageLevel {
        self.level
    }

    /// Returns the last part of the names of its packages: the key, with `-` for `_`.
    #[must_use]
    pub fn name_part(&self) -> String {
        self.key.replace('_', "-")
    }

    /// Returns the name for people, as `rocm-bootstrap` has it: `RDNA3.5` for `gfx115x`, `gfx1151` for the processor.
    #[must_use]
    pub fn display_name(&self) -> String {
        let name = match self.version {
            _ if self.level == PackageLevel::Target => return self.key.clone(),
            (9, Some(0)) => "Vega",
            (9, Some(4)) => "MI300",
            (9, Some(5)) => "MI350",
            (10, Some(1)) => "RDNA1",
            (10, Some(3)) => "RDNA2",
            (11, Some(5)) => "RDNA3.5",
            (11, _) => "RDNA3",
            (12, Some(0) | None) => "RDNA4",
            _ => return format!("GFX{}", self.key.trim_start_matches("gfx").replace('_', ".")),
        };
        name.into()
    }

    /// Returns the groups whose packages a GPU needs: this one, and the larger ones around it, the largest last.
    #[must_use]
    pub fn chain(&self) -> Vec<Self> {
        let (major, minor) = self.version;
        let mut chain = Vec::from([self.clone()]);
        if self.level == PackageLevel::Target {
            chain.extend(minor.map(|minor| Self::sub_family(major, minor)));
        }
        if self.level != PackageLevel::Family {
            chain.push(Self::family(major));
        }
        chain
    }
}

/// Returns major and minor version of a processor by its name: the last digit of `gfx90a` is the stepping, the one before it the minor
/// version. `None` of generic processors and those of others.
fn version(name: &str) -> Option<(u32, u32)> {
    if name.contains('-') || processor_family(name) != Some(Family::AmdGcn) {
        return None;
    }
    let numbers = name.strip_prefix("gfx")?;
    let (major, rest) = numbers.split_at_checked(numbers.len().checked_sub(2)?)?;
    Some((number(major)?, number(rest.get(..1)?)?))
}

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::{PackageGroup, PackageLevel};

    #[test]
    fn groups_are_those_of_rocm_bootstrap() {
        let chain = |name: &str| -> Vec<String> {
            let group = PackageGroup::of(name).unwrap_or_else(|| panic!("{name}"));
            group.chain().iter().map(|group| group.key().to_owned()).collect()
        };
        for keys in [
            ["gfx900", "gfx9_0", "gfx9"],
            ["gfx90a", "gfx9_0", "gfx9"],
            ["gfx90c", "gfx9_0", "gfx9"],
            ["gfx942", "gfx9_4", "gfx9"],
            ["gfx950", "gfx9_5", "gfx9"],
            ["gfx1013", "gfx10_1", "gfx10"],
            ["gfx1036", "gfx10_3", "gfx10"],
            ["gfx1103", "gfx110x", "gfx11"],
            ["gfx1150", "gfx115x", "gfx11"],
            ["gfx1201", "gfx12_0", "gfx12"],
            ["gfx1251", "gfx12_5", "gfx12"],
        ] {
            assert_eq!(chain(keys[0]), keys);
        }
        assert_eq!(chain("gfx1250-strict"), ["gfx1250", "gfx12_5", "gfx12"]);
        assert_eq!(chain("gfx90a:sramecc+:xnack-"), ["gfx90a", "gfx9_0", "gfx9"]);
        assert_eq!(chain("gfx942-xnack+"), ["gfx942", "gfx9_4", "gfx9"]);
    }

    #[test]
    fn groups_have_several_names() {
        let key = |name: &str| PackageGroup::of(name).map(|group| group.key().to_owned());
        for (names, expected) in [
            (&["gfx11", "gfx11xx", "gfx11-generic"][..], "gfx11"),
            (&["gfx110x", "gfx11_0"], "gfx110x"),
            (&["gfx12_0", "gfx120x", "gfx12-generic"], "gfx12_0"),
            (&["gfx9_0", "gfx9-generic"], "gfx9_0"),
            (&["gfx9_4", "gfx9-4-generic"], "gfx9_4"),
            (&["gfx10_3", "gfx10-3-generic"], "gfx10_3"),
        ] {
            names
                .iter()
                .for_each(|name| assert_eq!(key(name).as_deref(), Some(expected), "{name}"));
        }
        for wrong in ["gfx", "gfx1", "gfx99", "gfx9_7", "gfx113x", "sm_80", "gfx1299", "", "gfx1é"]
        {
            assert_eq!(key(wrong), None, "{wrong}");
        }
        assert_eq!(PackageGroup::of("gfx9").unwrap().level(), PackageLevel::Family);
    }

    #[test]
    fn groups_have_names_for_people() {
        for (key, expected) in [
            ("gfx942", "gfx942"),
            ("gfx9_0", "Vega"),
            ("gfx9_4", "MI300"),
            ("gfx10_3", "RDNA2"),
            ("gfx110x", "RDNA3"),
            ("gfx115x", "RDNA3.5"),
            ("gfx12_5", "GFX12.5"),
            ("gfx9", "GFX9"),
            ("gfx10", "GFX10"),
            ("gfx11", "RDNA3"),
            ("gfx12", "RDNA4"),
        ] {
            assert_eq!(PackageGroup::of(key).unwrap().display_name(), expected, "{key}");
        }
    }
}
