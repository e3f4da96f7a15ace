//! How fast `clang-offload-bundler` bundles, unbundles, compresses, decompresses and takes device archives apart, and
//! how much memory that takes, beside `cp` and LLVM's tool where it is installed:
//! `cargo run --release -p offload-benches --bin bundling`. It takes 4 GiB where `TMPDIR` points; on a disk, what else
//! is written there disturbs it.
//!
//! What is compressed is the code in the directory that the variable `CODE_OBJECTS` names: its ten largest files, as
//! code objects for ten GPUs. Without it, code is made up that is alike from GPU to GPU.
//!
//! Each row is the median of alternating runs in one go; compare ratios, not milliseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use bundle_format::Layout;
use offload_benches::{
    GPUS, Measured, alike, build, child, concatenate, heading, largest_files, llvm, machine_code,
    measure, option,
};

const MEMBERS: usize = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    if child()? {
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let bench = Bench {
        place: place.path(),
        ours: build("clang-offload-bundler")?,
        offload: build("offload")?,
        theirs: llvm("clang-offload-bundler"),
    };
    bench.small()?;
    bench.large()?;
    bench.compressed()?;
    bench.archive()
}

struct Bench<'a> {
    place: &'a Path,
    ours: PathBuf,
    offload: PathBuf,
    theirs: Option<PathBuf>,
}

impl Bench<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Runs the bundler, and LLVM's, with these arguments, after other commands.
    fn compare(
        &self,
        runs: usize,
        others: &[Measured<'_>],
        args: &[OsString],
    ) -> Result<(), Box<dyn Error>> {
        let mut commands = others.to_vec();
        commands.push(("clang-offload-bundler", &self.ours, args.to_vec()));
        let theirs = self.theirs.iter();
        commands.extend(theirs.map(|tool| ("LLVM 22's", &**tool, args.to_vec())));
        measure(runs, &commands, || {
            // Every command starts without outputs and with nothing left to write to the disk.
            for entry in fs::read_dir(self.place)? {
                let path = entry?.path();
                if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("out")) {
                    fs::remove_file(path)?;
                }
            }
            nix::unistd::sync();
            Ok(())
        })?;
        Ok(())
    }

    fn small(&self) -> Result<(), Box<dyn Error>> {
        const RUNS: usize = 21;
        heading(RUNS);
        let inputs = self.inputs("small", GPUS.len(), |path, n| machine_code(path, 4000, n))?;
        println!("\nbundling ten files of 4 kB");
        self.compare(RUNS, &[], &self.bundle(&inputs, &self.path("out"), &[]))?;
        println!("\nunbundling them");
        let bundle = self.path("bundle");
        self.run(&self.bundle(&inputs, &bundle, &[]))?;
        self.compare(RUNS, &[], &self.unbundle(&bundle))
    }

    fn large(&self) -> Result<(), Box<dyn Error>> {
        const RUNS: usize = 7;
        heading(RUNS);
        let size = (1 << 30) / GPUS.len() as u64;
        let inputs = self.inputs("large", GPUS.len(), |path, n| machine_code(path, size, n))?;
        let whole = self.path("whole");
        concatenate(&inputs, &whole)?;
        let cp = Path::new("/bin/cp");
        let copy: Measured<'_> = ("cp", cp, vec![whole.clone().into(), self.path("out").into()]);
        println!("\nbundling ten files of machine code, 1 GiB together");
        let args = self.bundle(&inputs, &self.path("out"), &[]);
        self.compare(RUNS, std::slice::from_ref(&copy), &args)?;
        let bundle = self.path("bundle");
        self.run(&self.bundle(&inputs, &bundle, &[]))?;
        for input in inputs {
            fs::remove_file(input)?;
        }
        println!("\nunbundling all of it");
        self.compare(RUNS, &[copy], &self.unbundle(&bundle))?;
        fs::remove_file(whole)?;
        Ok(())
    }

    fn compressed(&self) -> Result<(), Box<dyn Error>> {
        const RUNS: usize = 9;
        heading(RUNS);
        let mut inputs = match std::env::var_os("CODE_OBJECTS") {
            Some(directory) => largest_files(Path::new(&directory))?,
            None => self.inputs("code", GPUS.len(), |path, n| alike(path, n, 32 << 20))?,
        };
        inputs.truncate(GPUS.len());
        let mut size = 0;
        for input in &inputs {
            size += fs::metadata(input)?.len();
        }
        println!("\nbundling ten code objects, {} MiB together, compressed", size >> 20);
        self.compare(RUNS, &[], &self.bundle(&inputs, &self.path("out"), &["-compress"]))?;
        for (name, tool) in [("ours", Some(&self.ours)), ("LLVM 22's", self.theirs.as_ref())] {
            if let Some(tool) = tool {
                run(tool, &self.bundle(&inputs, &self.path("out"), &["-compress"]))?;
                println!("{name}: {} bytes", fs::metadata(self.path("out"))?.len());
            }
        }
        let (plain, small) = (self.path("bundle"), self.path("small"));
        self.run(&self.bundle(&inputs, &plain, &[]))?;
        self.run(&self.bundle(&inputs, &small, &["-compress"]))?;
        println!("\nunbundling all of them; ours checks the hash, LLVM's does not");
        self.compare(RUNS, &[], &self.unbundle(&small))?;
        println!("\ncompressing and decompressing the bundle with offload");
        let args = |command: &str, file: &Path| -> Vec<OsString> {
            vec![command.into(), file.into(), "-o".into(), self.path("out").into()]
        };
        let commands: [Measured<'_>; 2] = [
            ("offload compress", &self.offload, args("compress", &plain)),
            ("offload decompress", &self.offload, args("decompress", &small)),
        ];
        measure(RUNS, &commands, || Ok(()))?;
        Ok(())
    }

    fn archive(&self) -> Result<(), Box<dyn Error>> {
        const RUNS: usize = 5;
        heading(RUNS);
        let archive = self.path("device.a");
        make_archive(&archive)?;
        println!("\ntaking an archive of {MEMBERS} bundles for 4 GPUs apart, 250 MiB");
        let mut args = vec!["-type=a".into(), "-unbundle".into(), option("input", &archive)];
        let targets: Vec<_> = GPUS[..4].iter().map(|gpu| id(gpu)).collect();
        args.push(format!("-targets={}", targets.join(",")).into());
        args.extend((0..4).map(|n| option("output", &self.path(&format!("out-{n}.a")))));
        self.compare(RUNS, &[], &args)
    }

    /// Files that `make` makes.
    fn inputs(
        &self,
        name: &str,
        count: usize,
        make: impl Fn(&Path, usize) -> Result<(), Box<dyn Error>>,
    ) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let paths: Vec<_> = (0..count).map(|n| self.path(&format!("{name}-{n}.o"))).collect();
        for (n, path) in paths.iter().enumerate() {
            make(path, n)?;
        }
        Ok(paths)
    }

    fn bundle(&self, inputs: &[PathBuf], to: &Path, more: &[&str]) -> Vec<OsString> {
        let mut targets = "host-x86_64-unknown-linux-gnu-".to_owned();
        let mut args = vec!["-type=o".into(), "-bundle-align=4096".into()];
        args.push("-input=/dev/null".into());
        for (input, gpu) in inputs.iter().zip(GPUS) {
            targets = format!("{targets},{}", id(gpu));
            args.push(option("input", input));
        }
        args.push(format!("-targets={targets}").into());
        args.push(option("output", to));
        args.extend(more.iter().map(Into::into));
        args
    }

    fn unbundle(&self, bundle: &Path) -> Vec<OsString> {
        let targets: Vec<_> = GPUS.iter().map(|gpu| id(gpu)).collect();
        let mut args = vec!["-type=o".into(), "-unbundle".into(), option("input", bundle)];
        args.push(format!("-targets={}", targets.join(",")).into());
        args.extend((0..GPUS.len()).map(|n| option("output", &self.path(&format!("out-{n}")))));
        args
    }

    fn run(&self, args: &[OsString]) -> Result<(), Box<dyn Error>> {
        run(&self.ours, args)
    }
}

fn run(tool: &Path, args: &[OsString]) -> Result<(), Box<dyn Error>> {
    match Command::new(tool).args(args).status()?.success() {
        true => Ok(()),
        false => Err(format!("{} {args:?} failed", tool.display()).into()),
    }
}

fn id(gpu: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{gpu}")
}

/// An archive of bundles, each with code for four GPUs.
fn make_archive(path: &Path) -> Result<(), Box<dyn Error>> {
    const SIZE: usize = 32_000;
    let code_path = path.with_extension("code");
    machine_code(&code_path, 64 << 20, 3)?;
    let mut code = fs::read(&code_path)?;
    fs::remove_file(code_path)?;
    // Nothing may look like an object, which would be a damaged one.
    for piece in code.chunks_exact_mut(SIZE) {
        piece.iter_mut().zip(b"no magic").for_each(|(to, from)| *to = *from);
    }
    let mut chunks = code.chunks_exact(SIZE).cycle();
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(b"!<arch>\n")?;
    for n in 0..MEMBERS {
        let mut entries = vec![("host-x86_64-unknown-linux-gnu-".to_owned(), 0)];
        let mut contents: Vec<&[u8]> = vec![b""];
        for gpu in &GPUS[..4] {
            entries.push((id(gpu), SIZE as u64));
            contents.push(chunks.next().ok_or("no code")?);
        }
        let bundle = Layout::new(entries, 1)?.to_vec(&contents)?;
        let name = format!("m{n}.o/");
        let size = bundle.len();
        writeln!(out, "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, 0, 644)?;
        out.write_all(&bundle)?;
        if size % 2 == 1 {
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}
