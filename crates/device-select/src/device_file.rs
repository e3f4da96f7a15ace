//! Files for some GPUs, which AMD's device packages take from the packages of their libraries.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::database::Database;
use crate::package_group::PackageGroup;

/// A library of ROCm that reads files for single GPUs, or for groups of them, beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileReader {
    /// rocBLAS: `rocblas/library`.
    Rocblas,
    /// hipBLASLt: `hipblaslt/library`.
    Hipblaslt,
    /// hipSPARSELt: `hipsparselt/library`.
    Hipsparselt,
    /// AOTriton: `aotriton.images/amd-gfx942`.
    Aotriton,
    /// hipDNN's engine with assembled kernels: `hip_kernel_provider/asm_kernels/gfx942`.
    HipKernelProvider,
    /// MIOpen: `miopen/db`, and libraries `libMIOpenCK..._gfx942.so`.
    Miopen,
}

impl FileReader {
    /// All of them, in the order in which AMD's splitter asks.
    pub const ALL: [Self; 6] = [
        Self::Rocblas,
        Self::Hipblaslt,
        Self::Hipsparselt,
        Self::Aotriton,
        Self::HipKernelProvider,
        Self::Miopen,
    ];

    /// Returns the name that AMD's splitter has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rocblas => "rocblas",
            Self::Hipblaslt => "hipblaslt",
            Self::Hipsparselt => "hipsparselt",
            Self::Aotriton => "aotriton",
            Self::HipKernelProvider => "hip-kernel-provider-asm",
            Self::Miopen => "miopen",
        }
    }

    /// Returns the last directories of the path of a database.
    fn directories(self) -> [&'static str; 2] {
        match self {
            Self::Rocblas => ["rocblas", "library"],
            Self::Hipblaslt => ["hipblaslt", "library"],
            Self::Hipsparselt => ["hipsparselt", "library"],
            // The directory with the images of a GPU follows it.
            Self::Aotriton => ["", "aotriton.images"],
            Self::HipKernelProvider => ["hip_kernel_provider", "asm_kernels"],
            Self::Miopen => ["miopen", "db"],
        }
    }
}

/// A file that only some GPUs need, by its path: it belongs into the device package of these.
///
/// ```
/// use device_select::{DeviceFile, FileReader};
///
/// let file = DeviceFile::at("torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2").unwrap();
/// assert_eq!((file.reader(), file.group().key()), (FileReader::Aotriton, "gfx11"));
/// let file = DeviceFile::at("lib/rocblas/library/TensileLibrary_gfx90a-xnack+.co").unwrap();
/// assert_eq!((file.target(), file.group().key()), ("gfx90a:xnack+", "gfx90a"));
/// // All files below the directory of a GPU are for it.
/// assert_eq!(DeviceFile::at("lib/hipblaslt/library/gfx942/TensileManifest.txt").unwrap().target(), "gfx942");
/// assert!(DeviceFile::at("lib/hipblaslt/library/TensileManifest.txt").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFile {
    reader: FileReader,
    target: String,
    group: PackageGroup,
}

impl DeviceFile {
    /// Returns what a path, with `/`, says of a file; `None` for files that all GPUs need, and for those of other libraries. Any
    /// file below the directory of a GPU is for it, also a kernel pack; those of `.kpack` belong to no library.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let (name, directories) = parts.split_last()?;
        let below = |reader: FileReader| {
            let [outer, inner] = reader.directories();
            let is_it = |at: &usize| {
                let before = at.checked_sub(1).and_then(|at| directories.get(at));
                let is_in = outer.is_empty() || before.is_some_and(|part| *part == outer);
                is_in && directories.get(*at).is_some_and(|part| *part == inner)
            };
            directories.get((0..directories.len()).find(is_it)? + 1..)
        };
        let found = FileReader::ALL.into_iter().find_map(|reader| {
            let target = match (below(reader), reader) {
                (Some(below), FileReader::Aotriton) => below.first()?.strip_prefix("amd-")?.into(),
                (Some(below), FileReader::HipKernelProvider) => (*below.first()?).into(),
                (Some(_), FileReader::Miopen) => database(path)?,
                (Some(below), _) => match database(path) {
                    Some(target) => target,
                    None => colons(below.first()?),
                },
                (None, FileReader::Miopen) => composable_kernels(name)?.into(),
                (None, _) => return None,
            };
            Some((reader, target))
        });
        let (reader, target) = found?;
        let group = PackageGroup::of(&target)?;
        Some(DeviceFile { reader, target, group })
    }

    /// Returns the library that reads the file.
    #[must_use]
    pub fn reader(&self) -> FileReader {
        self.reader
    }

    /// Returns the target ID, or the name of the group, that the path has: `gfx90a:xnack+`, `gfx11xx`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the GPUs that need it.
    #[must_use]
    pub fn group(&self) -> &PackageGroup {
        &self.group
    }
}

/// Returns the target of a file of a database with the name of a GPU.
fn database(path: &str) -> Option<String> {
    let found = Database::at(path).filter(|_| !path.ends_with(".kpack"))?;
    Some(found.target().to_string())
}

/// Returns a target ID as images have it, of one in a file name.
fn colons(name: &str) -> String {
    name.replace("-xnack", ":xnack").replace("-sramecc", ":sramecc")
}

/// Returns the GPU of a library of MIOpen with kernels of Composable Kernel.
fn composable_kernels(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("lib").unwrap_or(name).strip_prefix("MIOpenCK")?;
    let stem = rest.split_once(".so").or_else(|| rest.split_once(".dll"))?.0;
    let (_, target) = stem.rsplit_once('_')?;
    Some(target).filter(|target| target.starts_with("gfx"))
}

#[cfg(test)]
mod tests {
    use super::{DeviceFile, FileReader};

    #[test]
    fn paths_tell_library_and_gpus() {
        for (path, reader, target, key) in [
            (
                "rocblas/library/TensileLibrary_lazy_gfx1100.dat",
                FileReader::Rocblas,
                "gfx1100",
                "gfx1100",
            ),
            (
                "lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco",
                FileReader::Rocblas,
                "gfx90a:xnack-",
                "gfx90a",
            ),
            (
                "rocblas/library/x_gfx90a-sramecc+-xnack-.co",
                FileReader::Rocblas,
                "gfx90a:sramecc+:xnack-",
                "gfx90a",
            ),
            (
                "hipblaslt/library/gfx950/TensileLibrary_fallback.dat",
                FileReader::Hipblaslt,
                "gfx950",
                "gfx950",
            ),
            (
                "hipblaslt/library/gfx90a-xnack+/notes",
                FileReader::Hipblaslt,
                "gfx90a:xnack+",
                "gfx90a",
            ),
            (
                "hipblaslt/library/TensileLibrary_gfx942.dat.zlib",
                FileReader::Hipblaslt,
                "gfx942",
                "gfx942",
            ),
            ("hipsparselt/library/Kernels_gfx942.co", FileReader::Hipsparselt, "gfx942", "gfx942"),
            (
                "lib/aotriton.images/amd-gfx120x/a/b.aks2",
                FileReader::Aotriton,
                "gfx120x",
                "gfx12_0",
            ),
            ("aotriton.images/amd-gfx90a/b.aks2", FileReader::Aotriton, "gfx90a", "gfx90a"),
            (
                "e/hip_kernel_provider/asm_kernels/gfx950/x/y.co",
                FileReader::HipKernelProvider,
                "gfx950",
                "gfx950",
            ),
            ("share/miopen/db/gfx942130.HIP.fdb.txt", FileReader::Miopen, "gfx942", "gfx942"),
            ("lib/libMIOpenCKGroupedConv_gfx942.so.1", FileReader::Miopen, "gfx942", "gfx942"),
            ("bin/MIOpenCKx_gfx1100.dll", FileReader::Miopen, "gfx1100", "gfx1100"),
        ] {
            let file = DeviceFile::at(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(
                (file.reader(), file.target(), file.group().key()),
                (reader, target, key),
                "{path}"
            );
        }
    }

    #[test]
    fn other_files_are_for_all() {
        for path in [
            "",
            "lib/libtorch_hip.so",
            "rocblas/library/TensileManifest.dat",
            "rocblas/TensileLibrary_gfx942.dat",
            "rocblas/library/blas_gfx942.kpack",
            "hipblaslt/library/extra/notes.txt",
            "aotriton.images/readme.txt",
            "aotriton.images/amd-gfx77xx/a.aks2",
            "asm_kernels/gfx942/a.co",
            "miopen/db/notes.txt",
            "lib/libMIOpenCK.so",
            "lib/libMIOpenCK_other.so",
        ] {
            assert_eq!(DeviceFile::at(path), None, "{path}");
        }
    }
}
