//! `clang-linker-wrapper`: device code is taken out of the inputs of a link, linked for each target, and goes into the
//! program with code that registers it. The library `offload-link` decides; files and programs are here.

pub mod clang;
pub mod files;
mod help;
mod libraries;
mod llvm_options;
mod needed;
mod options;
mod override_image;
pub mod programs;
mod relocatable;
pub mod sources;
mod trace;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use byte_parts::{Part, Parts};
use offload_binary::llvm::Release;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_link::{
    ClangOptions, DeviceArgument, Error, ErrorKind, Images, LinkedImage, Plan, PlanOptions,
    RegisterOptions, Registration, bundle_ids, container,
};
use wrapper_ir::Abi;

use clang::Clang;
use files::Files;
use options::{Line, Meaning};
use programs::{Call, Programs, file_name};
use sources::Sources;
use trace::Trace;

pub use help::TOOL;

use crate::llvm_cl::response;
use crate::{bundler, packager, wrapper};
use tool_kit::opened::MaxInput;
use tool_kit::output::Outputs;
use tool_kit::payload::{Payload, Payloads};
use tool_kit::permissions::NewPermissions;
use tool_kit::{input, report, wildcards};

const NAME: &str = "clang-linker-wrapper";

/// Runs `clang-linker-wrapper` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().map(input::bytes);
    let typed = args.next().unwrap_or_else(|| NAME.as_bytes().to_vec());
    let typed = String::from_utf8_lossy(&typed).into_owned();
    let line = response::expand(wildcards::of_arguments(args)).and_then(Line::parse);
    let line = match line {
        Ok(line) => line,
        Err(error) => return fail(&typed, &io::Error::other(error)),
    };
    if let Some(text) = help::requested(&line, NAME) {
        return report::print_help(&typed, &text);
    }
    let programs = Programs {
        is_dry: line.has("dry-run"),
        is_verbose: line.has("wrapper-verbose"),
        is_as_called: line.has("no-canonical-prefixes"),
    };
    let done = match llvm_options::list(&line, programs) {
        Some(listed) => listed,
        None => run(&line, programs).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(exit) => exit,
        Err(error) => fail(&typed, &error),
    }
}

fn fail(typed: &str, error: &io::Error) -> ExitCode {
    let ours = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    let words = ours
        .and_then(Error::finding)
        .and_then(|finding| packager::llvm_words(finding.error(), Release::Llvm22));
    match words {
        Some(words) => report::error_of(typed, &format_args!("{words}: {error}")),
        None => report::error_of(typed, &error),
    }
    ExitCode::FAILURE
}

/// The state of a run.
struct Run<'l> {
    line: &'l Line,
    /// The release of LLVM to follow in everything; none: LLVM 22, mended.
    release: Option<Release>,
    programs: Programs,
    files: Files,
    host_triple: String,
    output: OsString,
    is_relocatable: bool,
    trace: Trace,
}

/// Linked images, and the files that they are in, in the same order.
struct Linked {
    images: Images,
    files: Vec<PathBuf>,
    /// Permissions for what is made of them.
    new: NewPermissions,
}

impl Linked {
    /// Returns the file of an image.
    fn path_of(&self, image: &LinkedImage) -> &OsStr {
        let mut both = self.images.iter().zip(&self.files);
        let found = both.find(|(other, _)| std::ptr::eq(*other, image));
        found.map_or(OsStr::new(""), |(_, path)| path.as_os_str())
    }
}

/// Writes something that is made of images: its inputs are these files.
pub fn write<W: Write + ?Sized>(parts: &Parts, files: &[PathBuf], out: &mut W) -> io::Result<()> {
    let mut inputs = Vec::new();
    // A dry run has no images.
    if parts.iter().any(|part| matches!(part, Part::Input(..))) {
        for path in files {
            inputs.push(Payload::open(path, MaxInput::default(), 0)?.0);
        }
    }
    parts.write_to(&mut Payloads(inputs.iter_mut().collect()), out)
}

fn run(line: &Line, programs: Programs) -> io::Result<()> {
    let emits_container = line.has("emit-fatbin-only");
    if !emits_container {
        linker_path(line)?;
    }
    let mut run = Run {
        line,
        release: release(line)?,
        programs,
        files: Files::new(line.has("save-temps"), programs.is_dry),
        host_triple: line.text("host-triple").unwrap_or_else(wrapper::host_triple),
        output: line.output(),
        is_relocatable: line.all(Meaning::Relocatable).next().is_some(),
        trace: Trace::new(line),
    };
    let jobs = jobs(line)?;
    let linked = match line.values("override-image").next() {
        Some(_) => run.overridden()?,
        None => run.link_devices(jobs)?,
    };
    if linked.images.kinds().is_empty() {
        llvm_options::check(line, programs)?;
    }
    if emits_container {
        run.emit_container(&linked)?;
    } else {
        run.link_host(&linked)?;
    }
    run.trace.write()
}

/// Returns the release of LLVM that is asked for.
fn release(line: &Line) -> io::Result<Option<Release>> {
    match line.text("release").as_deref() {
        None => Ok(None),
        Some("22") => Ok(Some(Release::Llvm22)),
        Some("23") => Ok(Some(Release::Llvm23)),
        Some(other) => {
            Err(io::Error::other(format!("--release={other}: expected 22 or 23, got '{other}'")))
        }
    }
}

/// Returns the number of device links at one time.
fn jobs(line: &Line) -> io::Result<NonZeroUsize> {
    let every_core = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    match line.text("wrapper-jobs").as_deref() {
        None => Ok(every_core()),
        // The server is not asked: one job is always ours.
        Some("jobserver") => Ok(NonZeroUsize::MIN),
        Some(text) => text.parse().map_err(|_| {
            io::Error::other(format!(
                "--wrapper-jobs={text}: expected a positive integer or 'jobserver', got '{text}'"
            ))
        }),
    }
}

impl Run<'_> {
    /// Links the device code of all inputs.
    fn link_devices(&mut self, jobs: NonZeroUsize) -> io::Result<Linked> {
        let line = self.line;
        let members = needed::members(line)?;
        let found =
            self.trace.step("ExtractDeviceCode", || libraries::read(line, jobs, members))?;
        let Sources { inputs, files: sources } = found.sources;
        let wanted = line.values("should-extract").map(|value| value.to_string_lossy());
        let wanted: Vec<_> = wanted
            .flat_map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let options = PlanOptions::default()
            .with_should_extract(wanted)
            .with_members(members)
            .with_roots(needed::host_options(line).roots().iter().cloned().chain(found.names));
        let plan = Plan::new(&inputs, &options)?;
        let mut clang = Clang {
            options: clang_options(line, &plan).with_lto(self.release != Some(Release::Llvm23)),
            programs: self.programs,
            files: &self.files,
            sources: &sources,
            output: self.output.clone(),
            jobs,
            compresses: line.has("compress"),
            images: Vec::new(),
        };
        let mut images = self.trace.step("Link device input", || plan.link(&mut clang))?;
        let paths = clang.images;
        if line.has("embed-bitcode") {
            images = images.with_kind(ImageKind::BITCODE);
        }
        let new = NewPermissions::of_all(sources.iter().map(Payload::permissions));
        Ok(Linked { images, files: paths, new })
    }

    /// Takes the images of `--override-image` instead.
    fn overridden(&self) -> io::Result<Linked> {
        let values = self.line.values("override-image");
        let read = values.map(|value| override_image::read(value, &self.host_triple));
        let read = read.collect::<io::Result<Vec<_>>>()?;
        let new = NewPermissions::of_all(read.iter().map(|(_, _, permissions)| *permissions));
        let (images, files): (Vec<_>, Vec<_>) =
            read.into_iter().map(|(image, file, _)| (image, file)).unzip();
        Ok(Linked { images: images.into_iter().collect(), files, new })
    }

    /// Returns what the runtime of a kind registers, and where the runtime wants one file of all, that file.
    fn containers(&mut self, kind: OffloadKind, linked: &Linked) -> io::Result<Vec<Parts>> {
        let images = linked.images.of(kind);
        let file = self.show_packing(kind, &images, linked)?;
        let is_file = matches!(kind, OffloadKind::HIP | OffloadKind::CUDA);
        let containers = match kind {
            _ if self.programs.is_dry && is_file => vec![Parts::new()],
            OffloadKind::SYCL if self.programs.is_dry => match self.release {
                Some(Release::Llvm23) => vec![Parts::new()],
                // The module describes what is in an offload binary.
                _ => vec![stub()?],
            },
            _ => {
                let options = self.register_options(kind);
                let name = if kind == OffloadKind::HIP { "AMDGPU Fatbinary" } else { "Bundle" };
                self.trace.step(name, || container(kind, &images, &options))?
            }
        };
        // Others read it only where it is to stay.
        if let (Some(path), [container]) = (file, &containers[..])
            && self.line.has("save-temps")
            && !self.programs.is_dry
        {
            files::save(&path, linked.new, |file| write(container, &linked.files, file))?;
        }
        Ok(containers)
    }

    /// Shows the program that LLVM's tool packs images of a kind with, and returns the path of its output.
    fn show_packing(
        &mut self,
        kind: OffloadKind,
        images: &[&LinkedImage],
        linked: &Linked,
    ) -> io::Result<Option<PathBuf>> {
        let start = file_name(&self.output);
        let mut words: Vec<OsString> = Vec::new();
        let program = match kind {
            OffloadKind::HIP => {
                words.extend(["-type=o", "-bundle-align=4096"].map(OsString::from));
                if self.line.has("compress") {
                    words.push("-compress".into());
                }
                if let Some(level) = self.line.value("compression-level") {
                    words.push(joined("-compression-level=", level));
                }
                words.push(
                    format!(
                        "-targets={}",
                        bundle_ids(images, &self.register_options(kind)).join(",")
                    )
                    .into(),
                );
                words.push("-input=/dev/null".into());
                words.extend(images.iter().map(|image| joined("-input=", linked.path_of(image))));
                "clang-offload-bundler"
            }
            OffloadKind::CUDA => {
                let host = wrapper_ir::Target::new(&self.host_triple);
                let bits = host.map_or(64, |target| target.pointer_bits());
                words.extend([format!("-{bits}").into(), OsString::from("--create")]);
                "fatbinary"
            }
            _ => return Ok(None),
        };
        let end = if kind == OffloadKind::HIP { ".hipfb" } else { ".fatbin" };
        let path = self.files.name(&start, end)?;
        if kind == OffloadKind::HIP {
            words.push(joined("-output=", &path));
        } else {
            words.push(path.clone().into_os_string());
            for image in images {
                let arch = image.target.arch();
                let number = arch.strip_prefix("sm_").unwrap_or(arch);
                words.push(joined(
                    &format!("--image3=kind=elf,sm={number},file="),
                    linked.path_of(image),
                ));
            }
        }
        let mut directories = Vec::new();
        if let (OffloadKind::CUDA, Some(cuda)) = (kind, self.line.value("cuda-path")) {
            directories.push(Path::new(cuda).join("bin"));
        }
        // Packed here: the program need not exist.
        let found = self.programs.path_of(program, &directories).unwrap_or_else(|| program.into());
        self.programs.show(&Call::new(found, words));
        Ok(Some(path))
    }

    fn register_options(&self, kind: OffloadKind) -> RegisterOptions {
        let abi = match (self.release, kind) {
            // The runtime is of the release that the default follows; for other kinds all take the same code.
            (Some(Release::Llvm22), _) | (None, OffloadKind::SYCL) => Abi::Llvm22,
            _ => Abi::Current,
        };
        let level = self.line.text("compression-level").and_then(|level| level.parse().ok());
        RegisterOptions::new(&self.host_triple)
            .with_abi(abi)
            .with_llvm_code(self.release.is_some())
            .with_host_in_bundles(self.release == Some(Release::Llvm23))
            .with_compression(bundler::compression(self.line.has("compress"), level))
            .with_relocatable(self.is_relocatable)
    }

    /// Writes the container alone.
    fn emit_container(&mut self, linked: &Linked) -> io::Result<()> {
        let mut written = None;
        for kind in linked.images.kinds() {
            let containers = self.containers(kind, linked)?;
            let (None, [container]) = (&written, &containers[..]) else {
                let text = "Expected a single bundled image for direct fat binary output";
                return Err(io::Error::other(text));
            };
            written = Some(container.clone());
        }
        let Some(container) = written else { return Ok(()) };
        let mut outputs = Outputs::default();
        outputs.write_or_print(Path::new(&self.output), linked.new, |file| {
            write(&container, &linked.files, file)
        })?;
        outputs.commit()
    }

    /// Registers the images in objects, and links these with the host's.
    fn link_host(&mut self, linked: &Linked) -> io::Result<()> {
        let (mut objects, mut needed) = (Vec::new(), &[][..]);
        for kind in linked.images.kinds() {
            let containers = self.containers(kind, linked)?;
            let (object, arguments) = self.register(kind, containers, linked)?;
            objects.push(object);
            needed = if needed.is_empty() { arguments } else { needed };
        }
        let mut arguments = host_arguments(self.line, &objects);
        if drops_sections(self.line) && !self.is_relocatable {
            arguments.extend(needed.iter().map(OsString::from));
        }
        let call = Call::new(linker_path(self.line)?.into(), arguments);
        let programs = self.programs;
        self.trace.step("Execute host linker", || programs.run(&call, &self.files))?;
        if self.is_relocatable {
            relocatable::make_private(
                Path::new(&self.output),
                &self.host_triple,
                self.register_options(OffloadKind::HIP),
                programs,
            )
        } else {
            Ok(())
        }
    }

    /// Makes the object that registers the images of one kind. Returns it, and the arguments that its link may need.
    fn register(
        &mut self,
        kind: OffloadKind,
        containers: Vec<Parts>,
        linked: &Linked,
    ) -> io::Result<(OsString, &'static [&'static str])> {
        let options = self.register_options(kind);
        let registration = Registration::new(kind, containers, &options);
        let registration = registration.map_err(|error| of_host(error, &self.host_triple))?;
        if self.line.has("print-wrapped-module") {
            let mut contents = Vec::new();
            for container in registration.containers() {
                let mut bytes = Vec::new();
                write(container, &linked.files, &mut bytes)?;
                contents.push(bytes);
            }
            let contents: Vec<_> = contents.iter().map(|bytes| &bytes[..]).collect();
            let text = registration.module().ir_to_string(&contents).map_err(io::Error::other)?;
            report::say_lines(&format!("{}\n", text.trim_end()));
        }
        let mut start = file_name(&self.output);
        start.push(format!(".{kind}.image.wrapper"));
        if self.line.has("save-temps") {
            let bitcode = registration.bitcode()?;
            let fill = |file: &mut File| write(&bitcode, &linked.files, file);
            self.files.write(&start, ".bc", linked.new, fill)?;
        }
        // LLVM 23 compiles nothing in a dry run, nor for hosts that have no objects here.
        let compile =
            || if self.programs.is_dry { Ok(Parts::new()) } else { registration.object() };
        let object = self.trace.step("Compile module", compile)?;
        let end = if cfg!(windows) { ".obj" } else { ".o" };
        let path = self
            .files
            .write(&start, end, linked.new, |file| write(&object, &linked.files, file))?;
        Ok((path, registration.module().linker_args()))
    }
}

/// Returns what LLVM 22 takes for the output of SYCL's device linker in a dry run.
fn stub() -> io::Result<Parts> {
    let entry =
        ImageEntry::new(0).with_offload_kind(OffloadKind::SYCL).with_string("symbols", "stub");
    let layout = offload_binary::layout(FormatVersion::V1, &[entry]).map_err(io::Error::other)?;
    Ok(layout.to_vec(&[&[][..]]).map_err(io::Error::other)?.into())
}

/// Returns whether the host linker is `lld` that drops sections, also of entries.
fn drops_sections(line: &Line) -> bool {
    let is_lld = linker_name(line).contains("lld");
    let mut words = line.host.iter().flat_map(|argument| &argument.words);
    is_lld && words.any(|word| word == "--gc-sections" || word == "-gc-sections")
}

/// Returns the path of the host linker.
fn linker_path(line: &Line) -> io::Result<&OsString> {
    let error = "linker path missing, must pass 'linker-path'";
    line.value("linker-path").ok_or_else(|| io::Error::other(error))
}

/// Returns the name of the host linker; empty where no linker is needed.
fn linker_name(line: &Line) -> String {
    let name = line.value("linker-path").map(|path| file_name(path)).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the arguments of the host linker, the objects right after the last output.
fn host_arguments(line: &Line, objects: &[OsString]) -> Vec<OsString> {
    let is_output = |argument: &options::Argument| argument.meaning == Meaning::Output;
    let last = line.host.iter().rposition(is_output);
    let mut words = Vec::new();
    for (index, argument) in line.host.iter().enumerate() {
        words.extend(argument.words.iter().cloned());
        if Some(index) == last {
            words.extend(objects.iter().cloned());
        }
    }
    if last.is_none() {
        words.extend(objects.iter().cloned());
    }
    words
}

fn clang_options(line: &Line, plan: &Plan<'_>) -> ClangOptions {
    let is_for_cpu = plan.groups().iter().any(|group| group.target().is_cpu());
    let arguments = |name| {
        let values = line.values(name).map(|value| match value.to_str() {
            Some(text) => DeviceArgument::parse(text),
            None => DeviceArgument::new(value),
        });
        values.collect::<Vec<_>>()
    };
    let options = ClangOptions::new()
        .with_plugin_options(line.plugin_options())
        .with_mllvm_options(line.values("mllvm").cloned())
        .with_linker_arguments(arguments("device-linker"))
        .with_compiler_arguments(arguments("device-compiler"))
        .with_save_temps(line.has("save-temps"))
        .with_save_temps_on_cpu(linker_name(line).ends_with("lld"))
        .with_bitcode(line.has("embed-bitcode"));
    if is_for_cpu { options.with_host_arguments(cpu_arguments(line)) } else { options }
}

/// Returns the arguments of the host link that device links for a CPU get as well.
fn cpu_arguments(line: &Line) -> Vec<OsString> {
    let words = line.host.iter().flat_map(|argument| match argument.meaning {
        Meaning::Library | Meaning::LibraryPath | Meaning::Rpath => argument.words.clone(),
        Meaning::WholeArchive => vec!["-Wl,--whole-archive".into()],
        Meaning::NoWholeArchive => vec!["-Wl,--no-whole-archive".into()],
        Meaning::Input if libraries::is_library(Path::new(&argument.value)) => {
            argument.words.clone()
        }
        _ => Vec::new(),
    });
    words.collect()
}

/// Returns the error with LLVM's words for a host that there is no code for.
fn of_host(error: Error, triple: &str) -> io::Error {
    let is_unknown =
        error.kind() == ErrorKind::Registration && wrapper_ir::Target::new(triple).is_err();
    if is_unknown {
        io::Error::other(format!(
            "No available targets are compatible with triple \"{triple}\": {error}"
        ))
    } else {
        error.into()
    }
}

fn joined(start: &str, end: impl AsRef<OsStr>) -> OsString {
    let mut joined = OsString::from(start);
    joined.push(end);
    joined
}
