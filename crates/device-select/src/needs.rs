//! Needs of images: the software that can read them, from a version on.

#[cfg(feature = "files")]
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

#[cfg(feature = "files")]
use fat_object::{ContainerKind, FileFormat, ImageInfo};

/// Software that loads device code.
///
/// Exhaustive: new software must stop the build of a caller that asks for the version of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Software {
    /// NVIDIA's driver, by the number of its branch: 550.
    Driver,
    /// AMD's ROCm: 6.3.
    Rocm,
}

impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Software::Driver => "driver",
            Software::Rocm => "ROCm",
        })
    }
}

/// A version of software, by its first two numbers.
///
/// ```
/// use device_select::Version;
///
/// let driver: Version = "550.54.14".parse()?;
/// assert!(driver > Version::new(535, 183));
/// assert_eq!(driver.to_string(), "550.54");
/// # Ok::<(), device_select::NotAVersion>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u16,
    minor: u16,
}

/// The text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version such as 550 or 6.3")]
#[non_exhaustive]
pub struct NotAVersion;

impl Version {
    /// Creates a version.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Version { major, minor }
    }
}

/// The first two numbers; what follows is not looked at: `550.54.14`, `6.3.0-39`.
impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut numbers = text.trim().split(['.', '-']).map(|number| number.parse().ok());
        let major = numbers.next().flatten().ok_or(NotAVersion)?;
        let minor = match numbers.next() {
            Some(minor) => minor.ok_or(NotAVersion)?,
            None => 0,
        };
        Ok(Version { major, minor })
    }
}

/// Branches of NVIDIA's driver have greater numbers than this one.
const FIRST_BRANCH: u16 = 100;

/// `550` where the second number is 0 and the first one is a branch of NVIDIA's driver.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version { major, minor: 0 } if *major >= FIRST_BRANCH => write!(f, "{major}"),
            Version { major, minor } => write!(f, "{major}.{minor}"),
        }
    }
}

/// Something that an image needs.
///
/// ```
/// use device_select::{Need, Software, Version};
///
/// let need = Need::of_ptx(8, 8).unwrap();
/// assert_eq!((need.software(), need.since()), (Software::Driver, Version::new(575, 0)));
/// assert_eq!(need.to_string(), "driver 575 or later: PTX 8.8");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    software: Software,
    since: Version,
    what: What,
    /// `true` if no release that is known is enough.
    is_unreleased: bool,
}

/// The thing that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum What {
    Ptx(u16, u16),
    Zstd,
    CodeObject(u16),
    CompressedBundle(u16),
    KernelPack,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Ptx(major, minor) => write!(f, "PTX {major}.{minor}"),
            What::Zstd => f.write_str("code in a fatbinary that zstd compressed"),
            What::CodeObject(version) => write!(f, "code object version {version}"),
            What::CompressedBundle(version) => {
                write!(f, "a compressed bundle of version {version}")
            }
            What::KernelPack => f.write_str("kernel packs"),
        }
    }
}

/// `driver 550 or later: PTX 8.4`.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.is_unreleased { ", at least" } else { "" };
        write!(f, "{} {} or later{least}: {}", self.software, self.since, self.what)
    }
}

/// The branch of NVIDIA's driver that came with the release of CUDA that has a version of PTX.
///
/// NVIDIA, "PTX ISA", "Release Notes" (PTX, CUDA), and "CUDA Toolkit Release Notes" (CUDA, driver for Linux). Driver 580 was seen to
/// take PTX up to 9.0 and none after it.
const PTX: [((u16, u16), u16); 27] = [
    ((6, 0), 384),
    ((6, 1), 387),
    ((6, 2), 396),
    ((6, 3), 410),
    ((6, 4), 418),
    ((6, 5), 440),
    ((7, 0), 450),
    ((7, 1), 455),
    ((7, 2), 460),
    ((7, 3), 465),
    ((7, 4), 470),
    ((7, 5), 495),
    ((7, 6), 510),
    ((7, 7), 515),
    ((7, 8), 520),
    ((8, 0), 525),
    ((8, 1), 530),
    ((8, 2), 535),
    ((8, 3), 545),
    ((8, 4), 550),
    ((8, 5), 555),
    ((8, 6), 565),
    ((8, 7), 570),
    ((8, 8), 575),
    ((9, 0), 580),
    ((9, 1), 590),
    ((9, 2), 595),
];

/// The release of ROCm whose compilers and runtime brought a version of the code object (LLVM, "User Guide for AMDGPU Backend";
/// ROCm's release notes). Older ones run everywhere.
const CODE_OBJECT: [(u16, Version); 2] = [(5, Version::new(5, 7)), (6, Version::new(6, 3))];

/// The release of ROCm that reads a version of compressed bundles: LLVM 17, 19 and 21 brought them.
const COMPRESSED_BUNDLE: [(u16, Version); 3] =
    [(1, Version::new(6, 0)), (2, Version::new(6, 2)), (3, Version::new(7, 0))];

/// The first release of ROCm whose runtime looks for device code in kernel packs.
const KERNEL_PACK: Version = Version::new(7, 12);

/// NVIDIA's drivers before this one, and ROCm before that one, are not maintained: what these have is not worth a note.
const OLD_DRIVER: Version = Version::new(535, 0);
const OLD_ROCM: Version = Version::new(6, 0);

/// The release that brought something, in a table in order; what is newer than the table needs a later release than its last one.
/// `None` for what is older than the table.
fn release<T: Ord>(
    table: impl IntoIterator<Item = (T, Version)>,
    wanted: &T,
) -> Option<(Version, bool)> {
    let (mut last, mut is_older) = (None, true);
    for (version, since) in table {
        is_older &= *wanted < version;
        if !is_older && *wanted <= version {
            return Some((since, false));
        }
        last = Some(since);
    }
    let Version { major, minor } = last.filter(|_| !is_older)?;
    // The second number of a driver is a build number.
    let is_driver = major >= FIRST_BRANCH;
    let next = if is_driver { Version::new(major + 1, 0) } else { Version::new(major, minor + 1) };
    Some((next, true))
}

impl Need {
    fn of(software: Software, (since, is_unreleased): (Version, bool), what: What) -> Self {
        Need { software, since, what, is_unreleased }
    }

    /// Returns what a version of PTX needs; `None` if it is older than the table.
    ///
    /// ```
    /// use device_select::{Need, Version};
    ///
    /// // No release that is known here has it.
    /// assert!(Need::of_ptx(99, 0).unwrap().since() > Version::new(595, 71));
    /// ```
    #[must_use]
    pub fn of_ptx(major: u16, minor: u16) -> Option<Self> {
        let table = PTX.map(|(version, branch)| (version, Version::new(branch, 0)));
        let since = release(table, &(major, minor))?;
        Some(Self::of(Software::Driver, since, What::Ptx(major, minor)))
    }

    /// Returns what entries of fatbinaries need that are compressed by zstd, as nvcc does since CUDA 12.4: the driver for it.
    #[must_use]
    pub fn of_zstd() -> Self {
        Self::of(Software::Driver, (Version::new(550, 0), false), What::Zstd)
    }

    /// Returns what a code object for AMD GPUs needs, by its version; `None` if all runtimes load it.
    #[must_use]
    pub fn of_code_object(version: u16) -> Option<Self> {
        let since = release(CODE_OBJECT, &version)?;
        Some(Self::of(Software::Rocm, since, What::CodeObject(version)))
    }

    /// Returns what a compressed bundle of this version needs; `None` for version 0, which does not exist.
    #[must_use]
    pub fn of_compressed_bundle(version: u16) -> Option<Self> {
        let since = release(COMPRESSED_BUNDLE, &version)?;
        Some(Self::of(Software::Rocm, since, What::CompressedBundle(version)))
    }

    /// Returns what a library needs whose device code is in kernel packs.
    #[must_use]
    pub fn of_kernel_packs() -> Self {
        Self::of(Software::Rocm, (KERNEL_PACK, false), What::KernelPack)
    }

    /// Returns the software that is needed.
    #[must_use]
    pub fn software(&self) -> Software {
        self.software
    }

    /// Returns the first version of it that is enough, or the first that may be if no release that is known is.
    #[must_use]
    pub fn since(&self) -> Version {
        self.since
    }

    /// Returns what needs it: `PTX 8.8`.
    #[must_use]
    pub fn what(&self) -> impl fmt::Display {
        self.what
    }

    /// Returns whether all releases that are still maintained are enough.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.since
            <= match self.software {
                Software::Driver => OLD_DRIVER,
                Software::Rocm => OLD_ROCM,
            }
    }
}

/// Returns what an image needs, by the contents that a walk read: nothing for compressed images unless they were
/// [checked](fat_object::Options::with_check_compressed), and nothing for images of compressed bundles if only the
/// [tables](fat_object::Options::with_tables_only) were read.
#[cfg(feature = "files")]
#[must_use]
pub fn needs(image: &ImageInfo) -> Vec<Need> {
    let mut needs: Vec<Need> = needs_of_compression(image).collect();
    if image.container() == ContainerKind::Kpack {
        needs.push(Need::of_kernel_packs());
    }
    match (image.format(), image.code_version()) {
        (FileFormat::Ptx, Some((major, minor))) => needs.extend(Need::of_ptx(major, minor)),
        (FileFormat::Elf { .. }, Some((version, _))) => needs.extend(Need::of_code_object(version)),
        _ => {}
    }
    needs
}

/// Returns what an image needs by how it is compressed, by itself and with others.
///
/// ```
/// use device_select::{Need, needs_of_compression};
/// use fat_object::Options;
///
/// let file = std::fs::File::open("../../examples/data/hip-ccob-v2.hipfb")?;
/// let listing = fat_object::list(file, &Options::default())?;
/// let image = listing.images().last().ok_or("no image")?;
/// assert!(needs_of_compression(image).eq(Need::of_compressed_bundle(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "files")]
pub fn needs_of_compression(image: &ImageInfo) -> impl Iterator<Item = Need> {
    let is_zstd = |compression: fat_object::Compression| compression.method() == "zstd";
    let is_entry = image.container() == ContainerKind::NvFatbin;
    let zstd = is_entry && image.compression().is_some_and(is_zstd);
    let bundle = image.compression_around().and_then(|around| around.format_version());
    let bundle = bundle.and_then(Need::of_compressed_bundle);
    zstd.then(Need::of_zstd).into_iter().chain(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn versions_are_read_and_compared() {
        let version = |text: &str| text.parse::<Version>();
        assert_eq!(version("580.159.04"), Ok(Version::new(580, 159)));
        assert_eq!(version("6.3.0-39"), Ok(Version::new(6, 3)));
        assert_eq!(version(" 550\n"), Ok(Version::new(550, 0)));
        for bad in ["", "x", "6.x", "-1", "99999", "v6"] {
            assert_eq!(version(bad), Err(NotAVersion), "{bad}");
        }
        assert_eq!(Version::new(7, 0).to_string(), "7.0");
        assert_eq!(Version::new(550, 0).to_string(), "550");
        assert!(Version::new(6, 10) > Version::new(6, 9));
    }

    #[test]
    fn tables_are_in_order() {
        assert!(PTX.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        assert!(CODE_OBJECT.is_sorted() && COMPRESSED_BUNDLE.is_sorted());
        assert!(Need::of_ptx(8, 2).unwrap().is_old() && !Need::of_ptx(8, 3).unwrap().is_old());
    }

    #[test]
    fn what_is_newer_than_the_tables_needs_a_later_release() {
        assert_eq!(Need::of_ptx(5, 0), None);
        let text = |need: Option<Need>| need.unwrap().to_string();
        assert_eq!(text(Need::of_ptx(9, 2)), "driver 595 or later: PTX 9.2");
        assert_eq!(text(Need::of_ptx(9, 3)), "driver 596 or later, at least: PTX 9.3");
        assert_eq!(text(Need::of_ptx(99, 0)), "driver 596 or later, at least: PTX 99.0");
        assert_eq!(Need::of_code_object(4), None);
        assert_eq!(
            text(Need::of_code_object(7)),
            "ROCm 6.4 or later, at least: code object version 7"
        );
        let bundle = text(Need::of_compressed_bundle(4));
        assert_eq!(bundle, "ROCm 7.1 or later, at least: a compressed bundle of version 4");
    }
}
