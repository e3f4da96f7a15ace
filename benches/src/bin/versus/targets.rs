//! Promises and results.

/// A figure that something is promised about.
#[derive(Debug)]
pub(crate) struct Target {
    key: &'static str,
    pub(crate) what: &'static str,
    limit: Limit,
    unit: &'static str,
    figure: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    const fn new(key: &'static str, what: &'static str, limit: Limit, unit: &'static str) -> Self {
        Self { key, what, limit, unit, figure: None }
    }

    /// Returns the promise as text.
    pub(crate) fn promise(&self) -> String {
        match self.limit {
            Limit::AtMost(limit) => format!("at most {limit}{}", self.unit),
            Limit::AtLeast(limit) => format!("at least {limit}{}", self.unit),
        }
    }

    /// Returns the result as text, if it was measured.
    pub(crate) fn figure(&self) -> Option<String> {
        Some(format!("{:.2}{}", self.figure?, self.unit))
    }

    /// `met`, `missed`, or that it was not measured.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.figure, self.limit) {
            (None, _) => "not measured",
            (Some(figure), Limit::AtMost(limit)) if figure <= limit => "met",
            (Some(figure), Limit::AtLeast(limit)) if figure >= limit => "met",
            _ => "missed",
        }
    }
}

/// Notes a figure; `None` if there is no such target.
pub(crate) fn note(targets: &mut [Target], key: &str, figure: f64) -> Option<()> {
    targets.iter_mut().find(|target| target.key == key)?.figure = Some(figure);
    Some(())
}

const CP: &str = " x cp";
const LLVM: &str = " x faster than LLVM";
const CUOBJDUMP: &str = " x faster than cuobjdump";
const BY_HAND: &str = " x less than wheel unpack, thin, wheel pack";
const MIB: &str = " MiB";
const TIMES: &str = " x the time";
const BUNDLE_ALONE: &str = " x compressing its bundle alone";
const CP_OF_ONE: &str = " x cp of what one GPU needs";
const CP_OF_REST: &str = " x (1.3 x cp of what remains + 20 ms)";
const INFLATING: &str = " x inflating its ELF members";

/// All targets.
pub(crate) fn targets() -> Vec<Target> {
    use Limit::{AtLeast, AtMost};
    let target = Target::new;
    vec![
        target("ls time", "ls, 1 GiB: time", AtMost(10.0), " ms"),
        target("ls memory", "ls, 1 GiB: memory", AtMost(16.0), MIB),
        target("kernels time", "kernels, 10,000 of them: time", AtMost(300.0), " ms"),
        target("kernels memory", "the same: memory", AtMost(64.0), MIB),
        target("pack cp", "pack, 1 GiB", AtMost(1.2), CP),
        target("pack llvm", "pack, 1 GiB", AtLeast(2.0), LLVM),
        target("pack memory", "pack, 1 GiB: memory", AtMost(16.0), MIB),
        target("extract cp", "extract, 1 GiB", AtMost(1.2), CP),
        target("extract llvm", "extract, 1 GiB", AtLeast(2.0), LLVM),
        target("extract memory", "extract, 1 GiB: memory", AtMost(16.0), MIB),
        target("parse", "parse a package in memory: time per entry", AtMost(1000.0), " ns"),
        target("parse growth", "the same with entries of 1 GiB, not 1 KiB", AtMost(1.5), TIMES),
        target("bundle small", "bundle, 4 KiB: whole process", AtLeast(5.0), LLVM),
        target("unbundle small", "unbundle, 4 KiB: whole process", AtLeast(5.0), LLVM),
        target("bundle cp", "bundle, 1 GiB", AtMost(1.2), CP),
        target("bundle llvm", "bundle, 1 GiB", AtLeast(2.0), LLVM),
        target("bundle memory", "bundle, 1 GiB: memory", AtMost(16.0), MIB),
        target("unbundle cp", "unbundle, 1 GiB", AtMost(1.2), CP),
        target("unbundle llvm", "unbundle, 1 GiB", AtLeast(2.0), LLVM),
        target("unbundle memory", "unbundle, 1 GiB: memory", AtMost(16.0), MIB),
        target("compress llvm", "bundle -compress, 340 MiB for ten GPUs", AtLeast(2.0), LLVM),
        target("compress size", "the same: size of the output", AtMost(1.0), " x LLVM's"),
        target("decompress llvm", "unbundle it, hash checked", AtLeast(1.0), LLVM),
        target("hda llvm", "HDA of 2,000 members for 4 GPUs", AtLeast(2.0), LLVM),
        target("hda memory", "the same: memory beyond the largest member", AtMost(16.0), MIB),
        target("hda elf llvm", "HDA of 500 compressed members, hash checked", AtLeast(1.0), LLVM),
        target(
            "hda elf memory",
            "the same: memory beyond the largest member, for each core",
            AtMost(16.0),
            MIB,
        ),
        target("openmp bitcode llvm", "wrap 150 MB, OpenMP, bitcode", AtLeast(10.0), LLVM),
        target("openmp bitcode cp", "the same", AtMost(1.3), CP),
        target("openmp bitcode memory", "the same: memory", AtMost(32.0), MIB),
        target("hip bitcode llvm", "wrap 150 MB, HIP, bitcode", AtLeast(10.0), LLVM),
        target("hip bitcode cp", "the same", AtMost(1.3), CP),
        target("hip bitcode memory", "the same: memory", AtMost(32.0), MIB),
        target("openmp object llvm", "wrap 150 MB, OpenMP, object", AtLeast(30.0), LLVM),
        target("openmp object cp", "the same", AtMost(1.3), CP),
        target("openmp object memory", "the same: memory", AtMost(32.0), MIB),
        target("hip object llvm", "wrap 150 MB, HIP, object", AtLeast(30.0), LLVM),
        target("hip object cp", "the same", AtMost(1.3), CP),
        target("hip object memory", "the same: memory", AtMost(32.0), MIB),
        target("link llvm", "link 200 objects for four GPUs", AtLeast(5.0), LLVM),
        target("link memory", "the same: memory", AtMost(0.1), " x LLVM's"),
        target("thin time", "thin a library of 150 MB to one of ten GPUs", AtMost(1.0), CP_OF_REST),
        target("thin memory", "the same: memory", AtMost(32.0), MIB),
        target("library time", "compress a library of 150 MB", AtMost(1.1), BUNDLE_ALONE),
        target("library cores", "the same: cores busy, of all", AtLeast(0.75), " of the cores"),
        target("split time", "split a library of 150 MB for ten GPUs: time", AtMost(0.5), " s"),
        target("split memory", "the same: memory", AtMost(64.0), MIB),
        target("join time", "join it: time", AtMost(0.5), " s"),
        target("join memory", "the same: memory", AtMost(64.0), MIB),
        target("ls cuda time", "ls, a CUDA library of 500 MB: time", AtMost(1.0), CP_OF_ONE),
        target("ls cuda memory", "the same: memory", AtMost(16.0), MIB),
        target(
            "thin cuda time",
            "thin a CUDA library of 500 MB to one of six GPUs",
            AtMost(1.0),
            CP_OF_REST,
        ),
        target("thin cuda memory", "the same: memory", AtMost(32.0), MIB),
        target("extract zstd", "extract 340 MiB from zstd, one core", AtLeast(1.0), CUOBJDUMP),
        target("extract LZ4", "extract 340 MiB from LZ4, one core", AtLeast(1.0), CUOBJDUMP),
        target("ls wheel", "ls, a ROCm wheel of 73 MB: CPU time", AtMost(1.0), INFLATING),
        target("ls tar", "ls, a tar file of 150 MB: time", AtMost(1.15), " x cat"),
        target("ls tar.zst", "ls, the same as tar.zst: CPU time", AtMost(1.15), " x zstd -dc"),
        target("verify deb", "verify, the same as deb, xz: CPU time", AtMost(1.4), " x dpkg-deb"),
        target("ls files", "ls, 10,000 small objects: time", AtMost(150.0), " ms"),
        target("match members memory", "match, 15,970 in a wheel: memory", AtMost(64.0), MIB),
        target(
            "thin wheel time",
            "thin a ROCm wheel of 73 MB to one of nine GPUs: CPU time",
            AtMost(2.5),
            " s",
        ),
        target("thin wheel memory", "the same: memory", AtMost(150.0), MIB),
        target("thin wheel by hand", "the same: CPU time", AtLeast(3.0), BY_HAND),
    ]
}
