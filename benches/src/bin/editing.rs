//! How fast device code in a finished library of 150 MB is edited, and how much memory that takes, beside `cp` of what
//! remains: `cargo run --release -p offload-benches --bin editing`. It takes a C compiler, and 1 GiB where `TMPDIR`
//! points; on a disk, what else is written there disturbs it.
//!
//! The library holds two bundles for ten GPUs each and 2 MB of host code. What is compressed is the code in the
//! directory that the variable `CODE_OBJECTS` names: its ten largest files, as code objects for ten GPUs, in one bundle.
//! Without it, code is made up that is alike from GPU to GPU.
//!
//! Each row is the median of alternating runs in one go; compare ratios, not milliseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use offload_benches::{GPUS, Measured, Sample, alike, build, child, heading, largest_files};
use offload_benches::{machine_code, measure, option};

const RUNS: usize = 9;
const BUNDLES: usize = 2;
/// Of one image: all of them are 148 MB.
const SIZE: u64 = 7_400_000;
const HOST_CODE: u64 = 2_000_000;
const KEPT: &str = "gfx1100";

fn main() -> Result<(), Box<dyn Error>> {
    if child()? {
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let bench = Bench {
        place: place.path(),
        offload: build("offload")?,
        bundler: build("clang-offload-bundler")?,
    };
    machine_code(&bench.path("host"), HOST_CODE, 5)?;
    heading(RUNS);
    bench.thin()?;
    bench.compress()
}

struct Bench<'a> {
    place: &'a Path,
    offload: PathBuf,
    bundler: PathBuf,
}

impl Bench<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    fn thin(&self) -> Result<(), Box<dyn Error>> {
        let mut bundles = Vec::new();
        for bundle in 0..BUNDLES {
            let mut images = Vec::new();
            for gpu in 0..GPUS.len() {
                let image = self.path(&format!("image-{gpu}"));
                machine_code(&image, SIZE, bundle * GPUS.len() + gpu)?;
                images.push(image);
            }
            bundles.push(self.bundle(&format!("bundle-{bundle}"), &images)?);
        }
        let library = self.library("library.so", &bundles)?;
        println!("\none of ten GPUs is kept in a library of {}", megabytes(&library)?);
        let args = |input: &Path, more: &[&str]| -> Vec<OsString> {
            let mut args = vec!["thin".into(), input.into(), "--keep".into(), KEPT.into()];
            args.extend(more.iter().map(Into::into));
            args.extend(["-o".into(), self.path("out").into()]);
            args
        };
        run(&self.offload, &args(&library, &[]))?;
        let remains = self.path("remains");
        fs::rename(self.path("out"), &remains)?;
        println!("{} remain", megabytes(&remains)?);
        let dry = vec![
            "thin".into(),
            library.clone().into(),
            "--keep".into(),
            KEPT.into(),
            "--dry-run".into(),
        ];
        let commands: [Measured<'_>; 4] = [
            ("cp of what remains", Path::new("/bin/cp"), self.copy(&remains)),
            ("cp of the library", Path::new("/bin/cp"), self.copy(&library)),
            ("offload thin", &self.offload, args(&library, &[])),
            ("offload thin --dry-run", &self.offload, dry),
        ];
        let medians = self.measure(&commands)?;
        if let [cp, _, thin, _] = medians[..] {
            let allowed = 1.3 * cp.0 + 0.020;
            println!(
                "allowed: 1.3 times cp and 20 ms, {:.2} ms, which thin takes {:.2} times; 32 MiB",
                allowed * 1e3,
                thin.0 / allowed
            );
        }
        for file in [library, remains] {
            fs::remove_file(file)?;
        }
        Ok(())
    }

    fn compress(&self) -> Result<(), Box<dyn Error>> {
        let mut images = match std::env::var_os("CODE_OBJECTS") {
            Some(directory) => largest_files(Path::new(&directory))?,
            None => {
                let paths: Vec<_> =
                    (0..GPUS.len()).map(|n| self.path(&format!("image-{n}"))).collect();
                for (n, path) in paths.iter().enumerate() {
                    alike(path, n, 15 << 20)?;
                }
                paths
            }
        };
        images.truncate(GPUS.len());
        let bundle = self.bundle("bundle-0", &images)?;
        let library = self.library("library.so", std::slice::from_ref(&bundle))?;
        println!("\na library of {}, compressed", megabytes(&library)?);
        let args = |command: &str, input: &Path| -> Vec<OsString> {
            vec![command.into(), input.into(), "-o".into(), self.path("out").into()]
        };
        run(&self.offload, &args("compress", &library))?;
        let small = self.path("small");
        fs::rename(self.path("out"), &small)?;
        println!("to {}", megabytes(&small)?);
        let commands: [Measured<'_>; 3] = [
            ("offload compress of the bundle alone", &self.offload, args("compress", &bundle)),
            ("offload compress", &self.offload, args("compress", &library)),
            ("cp of what remains", Path::new("/bin/cp"), self.copy(&small)),
        ];
        self.measure(&commands)?;
        println!("\nand decompressed");
        let commands: [Measured<'_>; 2] = [
            ("cp of the library", Path::new("/bin/cp"), self.copy(&library)),
            ("offload decompress", &self.offload, args("decompress", &small)),
        ];
        self.measure(&commands)?;
        run(&self.offload, &args("decompress", &small))?;
        match fs::read(self.path("out"))? == fs::read(&library)? {
            true => Ok(()),
            false => Err("decompressed, the library is another".into()),
        }
    }

    fn measure(&self, commands: &[Measured<'_>]) -> Result<Vec<Sample>, Box<dyn Error>> {
        measure(RUNS, commands, || {
            // Every command starts without an output and with nothing left to write to the disk.
            let _ = fs::remove_file(self.path("out"));
            nix::unistd::sync();
            Ok(())
        })
    }

    fn copy(&self, file: &Path) -> Vec<OsString> {
        vec![file.into(), self.path("out").into()]
    }

    /// A bundle of images, one for each GPU, as HIP's compiler makes them.
    fn bundle(&self, name: &str, images: &[PathBuf]) -> Result<PathBuf, Box<dyn Error>> {
        let mut targets = "host-x86_64-unknown-linux-gnu-".to_owned();
        let mut args: Vec<OsString> = vec!["-type=o".into(), "-bundle-align=4096".into()];
        args.push("-input=/dev/null".into());
        for (image, gpu) in images.iter().zip(GPUS) {
            write!(targets, ",hipv4-amdgcn-amd-amdhsa--{gpu}")?;
            args.push(option("input", image));
        }
        args.push(format!("-targets={targets}").into());
        args.push(option("output", &self.path(name)));
        run(&self.bundler, &args)?;
        Ok(self.path(name))
    }

    /// A shared object of host code and bundles, with a wrapper for each of them.
    fn library(&self, name: &str, bundles: &[PathBuf]) -> Result<PathBuf, Box<dyn Error>> {
        let (source, library) = (self.path("library.s"), self.path(name));
        let mut text = format!(".text\n.incbin {:?}\n", self.path("host"));
        for (n, bundle) in bundles.iter().enumerate() {
            writeln!(text, ".section .hip_fatbin, \"a\", @progbits\n.p2align 12")?;
            writeln!(text, ".Lbundle{n}: .incbin {bundle:?}")?;
            writeln!(text, ".section .hipFatBinSegment, \"aw\", @progbits\n.p2align 3")?;
            writeln!(text, ".long 0x48495046, 1\n.quad .Lbundle{n}, 0")?;
        }
        text.push_str(".section .note.GNU-stack, \"\", @progbits\n");
        fs::write(&source, text)?;
        let args = ["-shared", "-Wl,--build-id", "-o"].map(OsString::from);
        let files = [library.clone().into(), source.into()];
        run(Path::new("cc"), &[&args[..], &files].concat())?;
        Ok(library)
    }
}

fn megabytes(file: &Path) -> Result<String, Box<dyn Error>> {
    let tenths = fs::metadata(file)?.len() / 100_000;
    Ok(format!("{}.{} MB", tenths / 10, tenths % 10))
}

fn run(tool: &Path, args: &[OsString]) -> Result<(), Box<dyn Error>> {
    match Command::new(tool).args(args).stdout(Stdio::null()).status()?.success() {
        true => Ok(()),
        false => Err(format!("{} {args:?} failed", tool.display()).into()),
    }
}
