//! Files of kernel databases, which are for one processor each.

use alloc::format;
use alloc::string::String;

use target_id::{Family, is_known_processor, processor_family};

/// Extensions of code objects and of databases of ROCm's libraries.
const EXTENSIONS: [&str; 9] = ["co", "hsaco", "dat", "db", "fdb", "kdb", "ufdb", "model", "kpack"];
/// Extensions that may follow.
const SUFFIXES: [&str; 3] = [".txt", ".bz2", ".zst"];
/// Words after a processor that are features of a target ID.
const FEATURES: [&str; 4] = ["-xnack+", "-xnack-", "-sramecc+", "-sramecc-"];

/// Returns the target ID that a file of a kernel database is for, by its path; `None` for other files, and for those that
/// all GPUs use.
///
/// ROCm's libraries look for code in files beside them, whose names say the GPU: Tensile's
/// `TensileLibrary_Type_SB_fallback_gfx90a.hsaco`, `Kernels.so-000-gfx90a-xnack-.hsaco`, hipBLASLt's directory `gfx942`, MIOpen's
/// `gfx90a68.kdb` (the processor, and the number of compute units as two or three hexadecimal digits), and kernel packs. A processor
/// counts only as a whole word.
///
/// ```
/// use device_select::database_target;
///
/// let target = |path| database_target(path);
/// assert_eq!(target("lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco").as_deref(), Some("gfx90a:xnack-"));
/// assert_eq!(target("lib/hipblaslt/library/gfx942/extop_fallback.dat").as_deref(), Some("gfx942"));
/// assert_eq!(target("share/miopen/db/gfx90a68.kdb").as_deref(), Some("gfx90a"));
/// assert_eq!(target("lib/rocblas/library/TensileManifest.dat"), None);
/// assert_eq!(target("lib/libgfx942.so"), None);
/// ```
#[must_use]
pub fn database_target(path: &str) -> Option<String> {
    let mut components = path.rsplit(['/', '\\']);
    let name = components.next()?;
    let mut stem = name;
    while let Some(less) = SUFFIXES.iter().find_map(|suffix| stem.strip_suffix(suffix)) {
        stem = less;
    }
    let (stem, extension) = stem.rsplit_once('.')?;
    if !EXTENSIONS.contains(&extension) {
        return None;
    }
    target_in(stem).or_else(|| {
        components.find_map(|directory| {
            let is_processor = is_amdgpu(directory);
            is_processor.then(|| directory.into())
        })
    })
}

/// Returns the target ID in a name, the last one if there are several.
fn target_in(name: &str) -> Option<String> {
    let mut found = None;
    let mut from = 0;
    while let Some(at) = name.get(from..)?.find("gfx").map(|at| from + at) {
        from = at + 3;
        let is_start = name.get(..at)?.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let rest = name.get(at..)?;
        let generic = rest.find("-generic").map(|end| end + "-generic".len());
        let digits = 3 + rest.get(3..)?.bytes().take_while(u8::is_ascii_hexdigit).count();
        let whole = generic.and_then(|end| rest.get(..end)).filter(|word| is_amdgpu(word));
        let word = rest.get(..digits)?;
        let before_units = |n: usize| digits.checked_sub(n).and_then(|end| rest.get(..end));
        let processor = [whole, Some(word), before_units(2), before_units(3)]
            .into_iter()
            .flatten()
            .find(|word| is_amdgpu(word));
        let Some(processor) = processor.filter(|_| is_start) else { continue };
        let mut after = rest.get(processor.len().max(whole.map_or(digits, str::len))..)?;
        if after.starts_with(char::is_alphanumeric) {
            continue;
        }
        let mut target = String::from(processor);
        while let Some(feature) = FEATURES.iter().find(|feature| after.starts_with(**feature)) {
            target = format!("{target}:{}", feature.get(1..)?);
            after = after.get(feature.len()..)?;
        }
        found = Some(target);
    }
    found
}

fn is_amdgpu(name: &str) -> bool {
    is_known_processor(name) && processor_family(name) == Some(Family::AmdGcn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_target() {
        for (path, target) in [
            (
                "TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback_gfx906-xnack-.hsaco",
                "gfx906:xnack-",
            ),
            ("TensileLibrary_lazy_gfx1100.dat", "gfx1100"),
            ("TensileLibrary_gfx90a-sramecc+-xnack-.co", "gfx90a:sramecc+:xnack-"),
            ("Kernels.so-000-gfx1030.hsaco", "gfx1030"),
            ("share\\miopen\\db\\gfx1030_36.HIP.fdb.txt", "gfx1030"),
            ("gfx908_metadata.tn.model", "gfx908"),
            ("gfx90878.db", "gfx908"),
            ("gfx942130.HIP.2_16_0.ufdb.txt.bz2", "gfx942"),
            (".kpack/blas_lib_gfx1100.kpack", "gfx1100"),
            ("x_gfx9-4-generic.co", "gfx9-4-generic"),
            ("library/gfx950/Kernels.co", "gfx950"),
        ] {
            assert_eq!(database_target(path).unwrap_or_default(), target, "{path}");
        }
    }

    #[test]
    fn other_files_have_none() {
        for path in [
            "",
            "gfx906",
            "libgfx906.so",
            "notgfx906.co",
            "x_gfx906z.co",
            "x_gfx9060000.co",
            "x_gfx.co",
            "gfx906.py",
            "gfx906-docs/a.co",
            "TensileManifest.dat",
            "é.co",
            "gfx906é.co",
        ] {
            assert_eq!(database_target(path), None, "{path}");
        }
    }
}
