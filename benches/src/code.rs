//! Machine code to measure with: neither zeros nor noise, and the same on every run.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use twox_hash::XxHash3_64;

use crate::tools::{llvm, run};

/// GPUs that libraries are made for.
pub const GPUS: [&str; 10] = [
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200",
    "gfx1201",
];

/// Code for each of [`GPUS`], any amount of it.
///
/// It is what clang makes of generated HIP kernels: templates with a dozen instances each, as in libraries of linear
/// algebra, one translation unit after the other. More than was compiled is made of it by changing bytes here and
/// there, at the same places for each GPU, as in kernels that differ in constants only. So code for one GPU resembles
/// itself and code for other GPUs, about as in real libraries. Without clang 22 the code comes from this system's
/// libraries, with changes for each GPU.
#[derive(Debug)]
pub struct DeviceCode {
    corpora: Vec<Vec<u8>>,
    units: Vec<Vec<PathBuf>>,
}

impl DeviceCode {
    /// Compiles this many translation units for each GPU, or finds that done in `cache`.
    ///
    /// # Errors
    ///
    /// They cannot be compiled, read or written.
    pub fn new(cache: &Path, units: usize) -> Result<Self, Box<dyn Error>> {
        let Some(clang) = llvm("clang") else {
            return Self::of_libraries(cache);
        };
        let units = compile(&clang, cache, units)?;
        let mut corpora = vec![Vec::new(); GPUS.len()];
        for unit in &units {
            for (path, corpus) in unit.iter().zip(&mut corpora) {
                corpus.extend(fs::read(path)?);
            }
        }
        Ok(Self { corpora, units })
    }

    fn of_libraries(cache: &Path) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(cache)?;
        let path = cache.join("libraries");
        machine_code(&path, 2 << 20, 0)?;
        let code = fs::read(path)?;
        let corpora = (0..GPUS.len()).map(|gpu| {
            let mut code = code.clone();
            change(&mut code, gpu);
            code
        });
        Ok(Self { corpora: corpora.collect(), units: Vec::new() })
    }

    /// Code objects: for each translation unit one for each GPU. None where clang is missing.
    #[must_use]
    pub fn units(&self) -> &[Vec<PathBuf>] {
        &self.units
    }

    /// Writes this many bytes of code for the `gpu`-th GPU.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, path: &Path, gpu: usize, size: u64) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        io::copy(&mut self.code(gpu).take(size), &mut out)?;
        out.flush()
    }

    /// Returns code for the `gpu`-th GPU, without end.
    #[must_use]
    pub fn code(&self, gpu: usize) -> Code<'_> {
        let corpus = self.corpora.get(gpu % GPUS.len()).map_or(&[][..], Vec::as_slice);
        Code { corpus, code: Vec::new(), at: 0, variant: gpu / GPUS.len() }
    }
}

/// Code without end: one variant of the compiled code after the other.
#[derive(Debug)]
pub struct Code<'c> {
    corpus: &'c [u8],
    /// The current variant.
    code: Vec<u8>,
    at: usize,
    /// Number of the next variant.
    variant: usize,
}

impl Read for Code<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.code.len() {
            self.code = self.corpus.to_vec();
            change(&mut self.code, self.variant);
            self.at = 0;
            self.variant += 1;
        }
        let count = self.code.get(self.at..).unwrap_or_default().read(buffer)?;
        self.at += count;
        Ok(count)
    }
}

/// Makes another variant of code, the first being the code itself.
fn change(code: &mut [u8], variant: usize) {
    /// Bytes between changes. Matches of all lengths stay, short ones mostly.
    const STEPS: [usize; 8] = [12, 20, 28, 40, 56, 80, 120, 300];
    /// Bytes that are changed together, about one operand.
    const CHANGED: usize = 3;
    if variant == 0 {
        return;
    }
    let mut random = Random(variant as u64);
    let mut at = 64;
    while let Some(bytes) = code.get_mut(at..at + CHANGED) {
        for byte in bytes {
            *byte ^= u8::try_from(random.below(256)).unwrap_or_default();
        }
        at += STEPS.get(random.below(STEPS.len())).copied().unwrap_or(1) + random.below(8);
    }
}

/// Numbers that look random and are the same each time (a linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    fn of<'a>(&mut self, choice: &[&'a str]) -> &'a str {
        choice.get(self.below(choice.len())).copied().unwrap_or_default()
    }
}

/// Returns the code objects of `units` translation units, each for all GPUs. Code objects in `cache` are not compiled again.
fn compile(clang: &Path, cache: &Path, units: usize) -> Result<Vec<Vec<PathBuf>>, Box<dyn Error>> {
    let version = Command::new(clang).arg("--version").output()?.stdout;
    let mut paths = Vec::new();
    let mut jobs = Vec::new();
    for unit in 0..units {
        let source = source(unit)?;
        let mut hash = XxHash3_64::new();
        hash.write(&version);
        hash.write(source.as_bytes());
        let name = format!("{:016x}", hash.finish());
        fs::create_dir_all(cache)?;
        let file = cache.join(format!("{name}.hip"));
        fs::write(&file, source)?;
        paths.push(GPUS.map(|gpu| cache.join(format!("{name}-{gpu}.o"))).to_vec());
        for gpu in GPUS {
            jobs.push((file.clone(), gpu, cache.join(format!("{name}-{gpu}.o"))));
        }
    }
    jobs.retain(|(.., object)| !object.exists());
    if !jobs.is_empty() {
        eprintln!("compiling kernels: {} code objects", jobs.len());
    }
    let jobs = Mutex::new(jobs.into_iter());
    let failed = Mutex::new(None);
    let compile_next = || -> Option<()> {
        let (source, gpu, object) = jobs.lock().ok()?.next()?;
        // Complete, or not there.
        let partial = object.with_extension("partial");
        let mut args: Vec<_> =
            ["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output"].map(Into::into).to_vec();
        args.extend(["-nogpuinc", "-nogpulib", "-O2", "-c"].map(Into::into));
        args.push(format!("--offload-arch={gpu}").into());
        args.extend([source.into(), "-o".into(), partial.clone().into()]);
        let result = run(clang, &args).map_err(|error| error.to_string());
        if let Err(error) =
            result.and_then(|()| fs::rename(&partial, &object).map_err(|error| error.to_string()))
        {
            *failed.lock().ok()? = Some(error);
            return None;
        }
        Some(())
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| while compile_next().is_some() {});
        }
    });
    match failed.into_inner() {
        Ok(None) => Ok(paths),
        Ok(Some(error)) => Err(error.into()),
        Err(_) => Err("compiling kernels failed".into()),
    }
}

/// A translation unit: kernels that go over tiles, as templates, and instances of them.
fn source(unit: usize) -> Result<String, Box<dyn Error>> {
    const KERNELS: usize = 2;
    let mut random = Random(unit as u64 + 1);
    let mut text = String::from("#define KERNEL __attribute__((global)) void\n");
    for kernel in 0..KERNELS {
        let name = format!("kernel_{unit}_{kernel}");
        writeln!(
            text,
            "template <class T, int TILE, int UNROLL>\n\
            KERNEL {name}(T *a, const T *b, const T *c, int n, int stride) {{\n\
            \x20 static __attribute__((shared)) T tile[64 * TILE];\n\
            \x20 int x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workgroup_id_x();\n\
            \x20 T sum[UNROLL] = {{0}};\n\
            \x20 for (int k = 0; k < n; k += TILE) {{\n\
            \x20   tile[(x * TILE + k) % (64 * TILE)] = b[y * stride + k + x];\n\
            \x20   __builtin_amdgcn_s_barrier();\n\
            #pragma unroll\n\
            \x20   for (int u = 0; u < UNROLL; u++) {{"
        )?;
        for _ in 0..2 + random.below(5) {
            let (step, start, far) = (random.below(64) + 1, random.below(32), random.below(128));
            let (first, second) = (random.of(&["+", "-", "*"]), random.of(&["+", "-", "*"]));
            writeln!(
                text,
                "      sum[u] {first}= tile[(x + u * {step} + {start}) % (64 * TILE)] {second}\n\
                \x20       c[(k + {far}) * stride + u + x];"
            )?;
            if random.below(3) == 0 {
                let (limit, other) = (random.below(1000), random.below(512));
                writeln!(text, "      if (sum[u] > (T){limit}) sum[u] -= b[u + {other}];")?;
            }
        }
        writeln!(
            text,
            "    }}\n    __builtin_amdgcn_s_barrier();\n  }}\n\
            \x20 for (int u = 0; u < UNROLL; u++)\n\
            \x20   a[y * stride + x * UNROLL + u] = sum[u] + (T){};\n}}",
            random.below(100)
        )?;
        for class in ["float", "int", "unsigned", "double"] {
            for shape in ["4, 2", "8, 4", "16, 8", "8, 8"] {
                let pointers = format!("{class} *, const {class} *, const {class} *");
                writeln!(text, "template KERNEL {name}<{class}, {shape}>({pointers}, int, int);")?;
            }
        }
    }
    Ok(text)
}

/// A file of machine code for this machine: its libraries one after the other, from a place on that `seed` decides.
///
/// # Errors
///
/// There are no libraries, or the file cannot be written.
pub fn machine_code(path: &Path, size: u64, seed: usize) -> Result<(), Box<dyn Error>> {
    let mut libraries: Vec<PathBuf> = Vec::new();
    for directory in ["/usr/lib/llvm-22/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"]
    {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        libraries.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.is_file() && path.to_string_lossy().contains(".so")),
        );
    }
    libraries.sort();
    let start = seed * 37 % libraries.len().max(1);
    let mut libraries = libraries.iter().cycle().skip(start);
    let mut file = File::create(path)?;
    let mut left = size;
    while left > 0 {
        let library = libraries.next().ok_or("no libraries to take machine code from")?;
        left -= io::copy(&mut File::open(library)?.take(left), &mut file)?;
    }
    Ok(())
}
