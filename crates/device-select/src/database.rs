//! Files of kernel databases, which are for one processor each.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use target_id::{Family, Target, is_known_processor, processor_family};

/// Directories in which ROCm's libraries look for databases: each with the one that it lies in.
const PLACES: [[&str; 2]; 4] = [
    ["rocblas", "library"],
    ["hipblaslt", "library"],
    ["hipsparselt", "library"],
    ["miopen", "db"],
];
/// Extensions of files of device code, whose targets their images state.
const CODE: [&str; 3] = ["co", "hsaco", "kpack"];
/// Extensions of other files of databases.
const TABLES: [&str; 6] = ["dat", "db", "fdb", "kdb", "ufdb", "model"];
/// Extensions that may follow.
const SUFFIXES: [&str; 4] = [".txt", ".bz2", ".zst", ".zlib"];
/// Words after a processor that are features of a target ID.
const FEATURES: [&str; 4] = ["-xnack+", "-xnack-", "-sramecc+", "-sramecc-"];

/// A file of a kernel database for one processor, by its path.
///
/// ROCm's libraries look for code in files beside them, whose names say the GPU: Tensile's
/// `TensileLibrary_Type_SB_fallback_gfx90a.hsaco`, `Kernels.so-000-gfx90a-xnack-.hsaco`, hipBLASLt's directory `gfx942`, MIOpen's
/// `gfx90a68.kdb` (the processor, and the number of compute units as two or three hexadecimal digits), and kernel packs. A processor
/// counts only as a whole word. All but kernel packs lie in `rocblas/library`, `hipblaslt/library`, `hipsparselt/library` or
/// `miopen/db`.
///
/// ```
/// use device_select::Database;
///
/// let target = |path| Database::at(path).map(|found| found.target().to_owned());
/// assert_eq!(target("lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco").unwrap(), "gfx90a:xnack-");
/// assert_eq!(target("lib/hipblaslt/library/gfx942/extop_fallback.dat").unwrap(), "gfx942");
/// assert_eq!(target("share/miopen/db/gfx90a68.kdb").unwrap(), "gfx90a");
/// assert_eq!(target("lib/rocblas/library/TensileManifest.dat"), None);
/// assert_eq!(target("photos/holiday-gfx942.dat"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    target: String,
    holds: Holds,
    directory: String,
}

/// Contents of a file of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Code,
    /// The selection of kernels of Tensile, in MessagePack.
    Solutions,
    /// A database of MIOpen: SQLite's, or lines of text.
    Table,
    /// A model of MIOpen, in JSON.
    Model,
    Bzip2,
    Zstandard,
    Zlib,
}

impl Database {
    /// Returns what a path says of a file; `None` for other files, and for files that all GPUs use.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        let components: Vec<&str> = path.split(['/', '\\']).collect();
        let (name, directories) = components.split_last()?;
        let mut stem = *name;
        let mut packed = None;
        while let Some(suffix) = SUFFIXES.iter().find(|suffix| stem.ends_with(**suffix)) {
            stem = stem.strip_suffix(suffix)?;
            packed = packed.or(match *suffix {
                ".bz2" => Some(Holds::Bzip2),
                ".zst" => Some(Holds::Zstandard),
                ".zlib" => Some(Holds::Zlib),
                _ => None,
            });
        }
        let (stem, extension) = stem.rsplit_once('.')?;
        let holds = match extension {
            _ if CODE.contains(&extension) => Holds::Code,
            "dat" => Holds::Solutions,
            "model" => Holds::Model,
            _ if TABLES.contains(&extension) => Holds::Table,
            _ => return None,
        };
        let place = (directories.windows(2)).rposition(|two| PLACES.iter().any(|it| it == two));
        let inner = match place {
            Some(place) => directories.get(place + 2..)?,
            None if extension == "kpack" => &[],
            None => return None,
        };
        let directory = || inner.iter().rev().find(|directory| is_amdgpu(directory));
        let target = target_in(stem).or_else(|| directory().map(|&name| name.into()))?;
        // A kernel pack lies beside the others of its libraries.
        let depth = place.map_or(directories.len(), |place| place + 2);
        let directory = directories.get(..depth)?.join("/");
        Some(Database { target, holds: packed.unwrap_or(holds), directory })
    }

    /// Returns the target ID that the file is for.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the directory of the database, in which one library looks for files for any GPU: `lib/rocblas/library`.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Returns the target ID as the target of an image.
    #[must_use]
    pub fn to_target(&self) -> Target {
        Target::new(None, None, &self.target)
    }

    /// Returns whether the file has device code, which states its targets.
    #[must_use]
    pub fn holds_code(&self) -> bool {
        self.holds == Holds::Code
    }

    /// Returns whether a file that starts with these bytes, and holds no device code, can be what its path says. 512 bytes are
    /// enough.
    ///
    /// ```
    /// let database = device_select::Database::at("share/miopen/db/gfx90a68.kdb").unwrap();
    /// assert!(database.is_table(b"SQLite format 3\0"));
    /// assert!(!database.is_table(b"abc"));
    /// ```
    #[must_use]
    pub fn is_table(&self, head: &[u8]) -> bool {
        match self.holds {
            Holds::Code => false,
            Holds::Solutions => matches!(head.first(), Some(0x80..=0x8f | 0xde | 0xdf)),
            Holds::Table => head.starts_with(b"SQLite format 3\0") || is_assignment(head),
            Holds::Model => head.trim_ascii_start().starts_with(b"{"),
            Holds::Bzip2 => head.starts_with(b"BZh"),
            Holds::Zstandard => head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]),
            // RFC 1950: deflate, and the check of the two bytes.
            Holds::Zlib => match head {
                [first @ 0x78, second, ..] => {
                    u16::from_be_bytes([*first, *second]).is_multiple_of(31)
                }
                _ => false,
            },
        }
    }
}

/// Returns whether a text starts with a line of MIOpen's: a key, `=`, and values.
fn is_assignment(head: &[u8]) -> bool {
    let end = head.iter().position(|&byte| byte == b'\n').unwrap_or(head.len());
    let (line, _) = head.split_at(end);
    let is_text = |byte: &u8| byte.is_ascii_graphic() || b" \t\r".contains(byte);
    let equals = line.iter().position(|&byte| byte == b'=');
    equals.is_some_and(|at| at > 0) && line.iter().all(is_text)
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

    fn target(path: &str) -> Option<String> {
        Database::at(path).map(|database| database.target)
    }

    #[test]
    fn names_tell_the_target() {
        for (path, expected) in [
            (
                "rocblas/library/TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback_gfx906-xnack-.hsaco",
                "gfx906:xnack-",
            ),
            ("lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "gfx1100"),
            ("rocblas/library/TensileLibrary_gfx90a-sramecc+-xnack-.co", "gfx90a:sramecc+:xnack-"),
            ("lib/hipsparselt/library/Kernels.so-000-gfx1030.hsaco", "gfx1030"),
            ("share\\miopen\\db\\gfx1030_36.HIP.fdb.txt", "gfx1030"),
            ("miopen/db/gfx908_metadata.tn.model", "gfx908"),
            ("miopen/db/gfx90878.db", "gfx908"),
            ("miopen/db/gfx942130.HIP.2_16_0.ufdb.txt.bz2", "gfx942"),
            (".kpack/blas_lib_gfx1100.kpack", "gfx1100"),
            ("rocblas/library/x_gfx9-4-generic.co", "gfx9-4-generic"),
            ("gfx906/hipblaslt/library/gfx950/Kernels.co", "gfx950"),
        ] {
            assert_eq!(target(path).as_deref().unwrap_or(""), expected, "{path}");
        }
    }

    #[test]
    fn a_directory_is_one_database() {
        for (path, expected) in [
            ("a/rocblas/library/x_gfx906.co", "a/rocblas/library"),
            ("hipblaslt/library/gfx942/extop_gfx942.co", "hipblaslt/library"),
            ("a.whl:lib/.kpack/blas_gfx1100.kpack", "a.whl:lib/.kpack"),
            ("blas_gfx1100.kpack", ""),
        ] {
            assert_eq!(Database::at(path).unwrap().directory(), expected);
        }
    }

    #[test]
    fn other_files_have_none() {
        for path in [
            "",
            "gfx906",
            "gfx906.kpack.txt/x",
            "photo-gfx906.dat",
            "my_gfx906.co",
            "library/my_gfx906.co",
            "rocblas/my_gfx906.co",
            "rocblas/library2/my_gfx906.co",
            "gfx906/rocblas/library/my.co",
            "gfx906/my.kpack",
            "rocblas/library/libgfx906.so",
            "rocblas/library/notgfx906.co",
            "rocblas/library/x_gfx906z.co",
            "rocblas/library/x_gfx9060000.co",
            "rocblas/library/x_gfx.co",
            "rocblas/library/gfx906.py",
            "rocblas/library/gfx906-docs/a.co",
            "rocblas/library/TensileManifest.dat",
            "rocblas/library/é.co",
            "rocblas/library/gfx906é.co",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }

    #[test]
    fn contents_are_those_of_the_extension() {
        let heads: [(&str, &[u8]); 8] = [
            ("rocblas/library/x_gfx906.dat", b"\x82\xa9solutions"),
            ("miopen/db/gfx90678.kdb", b"SQLite format 3\0\x10"),
            ("miopen/db/gfx90678.db.txt", b"64-14-1x1=ConvAsm1x1U:1,8,8\n"),
            ("miopen/db/gfx906_64.HIP.fdb.txt", b"64-14-1x1=miopenConv:0.1,0,a b\n\0"),
            ("miopen/db/gfx908.tn.model", b" {\"architecture\": {"),
            ("miopen/db/gfx90678.kdb.bz2", b"BZh91AY"),
            ("rocblas/library/x_gfx906.dat.zst", b"\x28\xb5\x2f\xfd"),
            ("hipblaslt/library/gfx906/TensileLibrary_gfx906.dat.zlib", b"\x78\x9c\xed"),
        ];
        for (at, (path, head)) in heads.iter().enumerate() {
            let database = Database::at(path).unwrap();
            assert!(database.is_table(head) && !database.holds_code(), "{path}");
            for other in [b"abc", &b""[..], b"=1\n", b"\x7fELF", b"\xff\xd8\xff=1\n"] {
                assert!(!database.is_table(other), "{path}");
            }
            let is_table = |path: &str| path.ends_with("db") || path.ends_with("db.txt");
            for (other, (from, head)) in heads.iter().enumerate() {
                let is_alike = other == at || is_table(path) && is_table(from);
                assert_eq!(database.is_table(head), is_alike, "{path} {from}");
            }
        }
        let code = Database::at("rocblas/library/x_gfx906.co").unwrap();
        assert!(code.holds_code() && !code.is_table(b"\x7fELF"));
    }
}
