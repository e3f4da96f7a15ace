//! Files that programs of an environment rarely need: headers, static archives, profilers, bitcode, builds for other versions of CUDA,
//! copies.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use crate::hash::Hash;

/// Directories of headers, also of those without extension.
const INCLUDE: &[u8] = b"include";
const HEADERS: [&[u8]; 9] = [b"h", b"hh", b"hpp", b"hxx", b"h++", b"cuh", b"inl", b"ipp", b"tpp"];
/// The starts of the names of libraries of profilers: of CUPTI, of NVIDIA's and of AMD's profilers. Other libraries need some of them.
const PROFILERS: [&[u8]; 10] = [
    b"libcupti",
    b"libnvperf_",
    b"libpcsamplingutil",
    b"libcheckpoint.",
    b"libcuinj64",
    b"librocprof",
    b"libroctracer",
    b"libroctx",
    b"cupti64_",
    b"nvperf_",
];

/// Bytes of files of an environment that programs rarely need, by their kinds. A file is of one kind, the first that fits.
///
/// ```
/// use gpu_packages::Extras;
///
/// let mut extras = Extras::default();
/// extras.add(b"nvidia/cu13/include/cuda.h", 1000, b"/*");
/// extras.add(b"nvidia/cu13/lib/libcudart.so.13", 800, b"\x7fELF");
/// extras.add(b"bitsandbytes/libbitsandbytes_cuda118.so", 5000, b"\x7fELF");
/// extras.add(b"bitsandbytes/libbitsandbytes_cuda130.so", 6000, b"\x7fELF");
/// let all = extras.sums(|_| unreachable!("no two files are of one size"));
/// assert_eq!(all, [("headers", 1000), ("libraries for other versions of CUDA", 5000)]);
/// ```
#[derive(Debug, Default)]
pub struct Extras {
    sums: BTreeMap<Kind, u128>,
    /// The major versions of CUDA's runtimes that are there.
    runtimes: BTreeSet<u32>,
    /// Bytes of libraries for each major version of CUDA, by their names.
    builds: BTreeMap<u32, u128>,
    /// The numbers of the files of each size.
    by_size: HashMap<u64, Vec<usize>>,
    files: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Archive,
    Header,
    Bitcode,
    Profiler,
}

impl Kind {
    fn of(path: &[u8], head: &[u8]) -> Option<Self> {
        let is_deb = head.starts_with(b"!<arch>\ndebian-binary");
        if (head.starts_with(b"!<arch>\n") || head.starts_with(b"!<thin>\n")) && !is_deb {
            return Some(Kind::Archive);
        }
        if head.starts_with(b"BC\xc0\xde") || head.starts_with(b"\xde\xc0\x17\x0b") {
            return Some(Kind::Bitcode);
        }
        let mut names = path.rsplit(|&byte| byte == b'/');
        // An iterator of parts has one at least.
        let name = names.next()?;
        let extension =
            name.iter().rposition(|&byte| byte == b'.').and_then(|at| name.get(at + 1..));
        if names.any(|name| name == INCLUDE) || extension.is_some_and(|it| HEADERS.contains(&it)) {
            return Some(Kind::Header);
        }
        PROFILERS.iter().any(|start| name.starts_with(start)).then_some(Kind::Profiler)
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Archive => "static archives",
            Kind::Header => "headers",
            Kind::Bitcode => "files of LLVM bitcode",
            Kind::Profiler => "libraries of profilers (others need some)",
        }
    }
}

/// Returns the major version of CUDA that a name has after a text: 11 for `_cuda118` and `_cuda`.
fn version_after(name: &[u8], text: &[u8]) -> Option<u32> {
    let at = name.windows(text.len()).position(|part| part == text)?;
    let rest = name.get(at + text.len()..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number: u32 = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
    // `118` is 11.8, and `12` is 12.
    match number {
        9..=99 => Some(number),
        100..=999 => Some(number / 10),
        _ => None,
    }
}

impl Extras {
    /// The number of first bytes of a file that [`add`](Self::add) looks at.
    pub const HEAD: usize = 22;

    /// Adds the next file: its path with `/`, its size, and its first bytes.
    pub fn add(&mut self, path: &[u8], size: u64, head: &[u8]) {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        if size > 0 {
            self.by_size.entry(size).or_default().push(self.files);
        }
        self.files += 1;
        self.runtimes.extend(version_after(name, b"libcudart.so."));
        if let Some(kind) = Kind::of(path, head) {
            *self.sums.entry(kind).or_default() += u128::from(size);
        } else if let Some(version) = version_after(name, b"_cuda") {
            *self.builds.entry(version).or_default() += u128::from(size);
        }
    }

    /// Returns the bytes of each kind that is there. `hash` reads files of equal size, by their numbers in the order in which they were
    /// added, from 0: if it fails, nothing is said of copies. Libraries for other versions of CUDA are known where CUDA's runtime is
    /// in the environment.
    pub fn sums(&self, hash: impl FnMut(usize) -> io::Result<Hash>) -> Vec<(&'static str, u128)> {
        let mut sums: Vec<_> = self.sums.iter().map(|(kind, size)| (kind.name(), *size)).collect();
        let others = self.builds.iter().filter(|(version, _)| !self.runtimes.contains(version));
        let others: u128 = others.map(|(_, size)| size).sum();
        if !self.runtimes.is_empty() && others > 0 {
            sums.push(("libraries for other versions of CUDA", others));
        }
        let copies = self.copies(hash).ok().filter(|copies| *copies > 0);
        sums.extend(copies.map(|copies| ("copies of files", copies)));
        sums
    }

    /// Returns the bytes of files that others are equal to, beyond the first of each.
    fn copies(&self, mut hash: impl FnMut(usize) -> io::Result<Hash>) -> io::Result<u128> {
        let mut copies = 0;
        for (size, files) in self.by_size.iter().filter(|(_, files)| files.len() > 1) {
            let mut known = HashSet::new();
            for &file in files {
                if !known.insert(hash(file)?) {
                    copies += u128::from(*size);
                }
            }
        }
        Ok(copies)
    }
}
