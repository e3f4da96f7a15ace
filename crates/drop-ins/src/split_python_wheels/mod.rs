//! `split_python_wheels`: AMD's splitter of wheels into a host wheel and device wheels.

mod arguments;
mod directories;

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use device_select::FileReader;
use kpack::Scheme;

use crate::drop_in;
use crate::llvm_cl::{Kind, Matches, Opt, Tool};
use tool_edits::{WheelParts, WheelSplit};
use tool_inputs::limits::Limits;
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::parallel::Threads;
use tool_kit::style::{self, Out, show};
use tool_kit::{input, report};

const NAME: &str = "split_python_wheels";

const fn required(name: &'static str, value_name: &'static str, help: &'static str) -> Opt {
    Opt { required: true, ..Opt::new(name, Kind::Value, value_name, help) }
}

/// The options of `split_python_wheels`.
pub static TOOL: Tool = Tool {
    overview: "Split a Python wheel into a host wheel without device code, and a device wheel for each GPU. Kernel packs (.kpack) with the device code, and files for single GPUs, go to the device wheels, which pip installs by extras: NAME[device-gfx942].",
    positionals: "",
    min_positionals: 0,
    max_positionals: 0,
    heading: "split_python_wheels options:",
    options: &[
        required("input", "path", "Wheel, or a directory with the files of one"),
        required("output-dir", "directory", "Directory for the new wheels"),
        required(
            "device-package-prefix",
            "prefix",
            "Start of the names of device packages: amd-torch-device",
        ),
        required(
            "overlay-root",
            "directory",
            "Directory in the wheel below which .kpack is placed: torch/",
        ),
        Opt::new(
            "device-requires-dist",
            Kind::List,
            "requirement",
            "Further requirements of device wheels, any number; @GFXARCH@ is the GPU",
        ),
        Opt::new(
            "output-format",
            Kind::Choice(&["wheel", "directory"]),
            "format",
            "Write wheels, or directories with their files (default: wheel)",
        ),
        Opt::new(
            "wheel-type",
            Kind::Choice(&["torch-fat"]),
            "type",
            "Kind of the wheel, which says whose files for single GPUs move: all of --databases",
        ),
        Opt::new(
            "databases",
            Kind::List,
            "name",
            "Libraries whose files for single GPUs move, any number: rocblas, hipblaslt, hipsparselt, aotriton, hip-kernel-provider-asm, miopen",
        ),
        Opt::new(
            "compression",
            Kind::Choice(&["none", "zstd"]),
            "scheme",
            "Compression of kernel packs (default: zstd)",
        ),
        Opt::new(
            "compression-level",
            Kind::Unsigned,
            "level",
            "Level of zstd, 1 to 22 (default: 3)",
        ),
        Opt::new("tmp-dir", Kind::Value, "directory", "Directory for temporary files"),
        Opt::new("verbose", Kind::Bool, "", "Print what is done"),
        Opt::new("jobs", Kind::Unsigned, "n", "Number of threads, also -j (default: 1)"),
        Opt::new(
            "generate-variant-wheel",
            Kind::Bool,
            "",
            "Refused: wheels of PEP 817 are not made",
        ),
        Opt::new("variant-label", Kind::Value, "label", "Ignored without --generate-variant-wheel"),
        Opt::new("clang-offload-bundler", Kind::Value, "path", "Ignored: it is not needed"),
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of split_python_wheels of ROCm\n"
    ),
};

/// Runs `split_python_wheels` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    // As Python's argparse has it.
    let wrong = ExitCode::from(2);
    let change = |args| arguments::joined(&TOOL, args);
    let matches = match drop_in::start_with(&TOOL, NAME, change, wrong) {
        Ok((_, matches)) => matches,
        Err(exit) => return exit,
    };
    let split = Job::new(&matches).and_then(|job| job.run());
    let failure = match split {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::NoCode) => {
            let root = String::from_utf8_lossy(matches.text("overlay-root")).into_owned();
            vec![format!("No fat binaries found under {}/", root.trim_matches('/'))]
        }
        Err(failure) => match failure.complaints() {
            Ok(complaints) => complaints,
            Err(error) => return report::end(NAME, &error),
        },
    };
    // Members of the wheel are named by it and their path.
    let input = input::display(&input::path(matches.text("input")));
    let named = |text: &String| match text.strip_prefix(':') {
        Some(text) => format!("Error: {input}:{text}\n"),
        None => format!("Error: {text}\n"),
    };
    let lines: String = failure.iter().map(named).collect();
    report::say_lines(&lines);
    ExitCode::FAILURE
}

/// A command line that is in order.
struct Job {
    input: PathBuf,
    output: PathBuf,
    prefix: String,
    root: String,
    requires: Vec<String>,
    readers: Vec<FileReader>,
    scheme: Scheme,
    level: i32,
    limits: Limits,
    writes_directories: bool,
    is_verbose: bool,
}

impl Job {
    fn new(matches: &Matches) -> Result<Self, Failure> {
        let text = |name: &str| String::from_utf8_lossy(matches.text(name)).into_owned();
        let texts = |name: &str| {
            let values =
                matches.values(name).map(|value| String::from_utf8_lossy(value).into_owned());
            values.filter(|value| !value.is_empty()).collect::<Vec<_>>()
        };
        if matches.is_on("generate-variant-wheel") {
            let why = "--generate-variant-wheel: wheels of PEP 817 are not made, as its form is no longer the one that is proposed";
            return Err(why.to_owned().into());
        }
        let names = texts("databases");
        let readers = match matches.value("databases") {
            None if matches.value("wheel-type").is_some() => FileReader::ALL.to_vec(),
            _ => names.iter().map(|name| reader(name)).collect::<Result<_, _>>()?,
        };
        let level = matches.unsigned("compression-level").unwrap_or(3);
        let level = i32::try_from(level).ok().filter(|level| (1..=22).contains(level));
        let level = level.ok_or_else(|| {
            format!("--compression-level: expected 1 to 22, found {}", text("compression-level"))
        })?;
        if let Some(directory) = matches.value("tmp-dir") {
            // It is set once in a process.
            let _ = tempfile::env::override_temp_dir(&input::path(directory));
        }
        let jobs = matches.unsigned("jobs").and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        Ok(Job {
            input: input::path(matches.text("input")),
            output: input::path(matches.text("output-dir")),
            prefix: text("device-package-prefix"),
            root: text("overlay-root"),
            requires: texts("device-requires-dist"),
            readers,
            scheme: if matches.text("compression") == b"none" {
                Scheme::Plain
            } else {
                Scheme::Zstd
            },
            level,
            limits: Limits::with_threads(Threads::of(jobs)),
            writes_directories: matches.text("output-format") == b"directory",
            is_verbose: matches.is_on("verbose"),
        })
    }

    fn run(&self) -> Result<(), Failure> {
        let mut out = style::stdout();
        let printed = |error: io::Error| Failure::printing(&error);
        self.print_start(&mut out).map_err(printed)?;
        out.flush().map_err(printed)?;
        if !self.input.exists() {
            return Err(format!("Input does not exist: {}", input::display(&self.input)).into());
        }
        let made = if self.input.is_dir() { Some(directories::pack(&self.input)?) } else { None };
        let path = made.as_ref().map_or(&*self.input, |made| made.path());
        let named = |error| format!("{}: {}", input::display(path), report::reason(&error));
        let opened = Arc::new(Opened::new(path, MaxInput::default()).map_err(named)?);
        let package = Package::of(&opened)?.ok_or_else(|| {
            let input = input::display(&self.input);
            format!("Input must be a .whl file or directory, got: {input}")
        })?;
        let scratch = if self.writes_directories { Some(directories::scratch()?) } else { None };
        let split = WheelSplit {
            output: scratch.as_ref().map_or(&*self.output, |scratch| scratch.path()),
            overlay_root: Some(&self.root),
            device_prefix: Some(&self.prefix),
            device_requires: &self.requires,
            readers: &self.readers,
            scheme: self.scheme,
            level: self.level,
            generator: concat!("offload-split_python_wheels ", env!("CARGO_PKG_VERSION")),
            allow_findings: true,
            drop_signature: true,
            limits: &self.limits,
        };
        let mut parts = split.run(&package)?;
        if scratch.is_some() {
            directories::unpack(&mut parts, &self.output)?;
        }
        let notes = parts.notes.iter().filter(|_| self.is_verbose);
        for note in parts.findings.iter().chain(notes) {
            report::say_lines(&format!("{note}\n"));
        }
        self.print(&parts, &mut out).map_err(printed)?;
        out.flush().map_err(printed)
    }

    fn print_start(&self, out: &mut Out<'_>) -> io::Result<()> {
        let format = if self.writes_directories { "directory" } else { "wheel" };
        show!(out, "Input: {}", input::display(&self.input))?;
        show!(out, "Output: {}", input::display(&self.output))?;
        show!(out, "Device package prefix: {}", self.prefix)?;
        show!(out, "Overlay root: {}", self.root)?;
        show!(out, "Output format: {format}")
    }

    fn print(&self, parts: &WheelParts, out: &mut Out<'_>) -> io::Result<()> {
        for member in parts.members.iter().filter(|_| self.is_verbose) {
            let (before, after) = (member.size, member.split.plan().size());
            show!(out, "  Transformed: {} ({after} bytes, was {before})", member.path)?;
        }
        show!(out)?;
        show!(out, "Split complete:")?;
        show!(out, "  Fat binaries processed: {}", parts.members.len())?;
        show!(out, "  Architectures: {}", parts.targets.join(", "))?;
        show!(out, "  Host wheel: {}", input::display(&parts.host))?;
        for device in &parts.devices {
            let path = input::display(&device.path);
            show!(out, "  Device wheel ({}): {path}", device.group.key())?;
        }
        Ok(())
    }
}

fn reader(name: &str) -> Result<FileReader, String> {
    let found = FileReader::ALL.into_iter().find(|reader| reader.name() == name);
    found.ok_or_else(|| {
        let mut names = FileReader::ALL.map(FileReader::name);
        names.sort_unstable();
        format!("Unknown database handler: {name}. Available: {}", names.join(", "))
    })
}
