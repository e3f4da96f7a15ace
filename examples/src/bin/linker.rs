//! A linker for offloading programs: device code is taken out of the inputs, linked for each target, and goes into the
//! program, with code that registers it when the program starts. What `clang-linker-wrapper` does around `cc`.
//!
//! `linker [OPTION]... -o PROGRAM INPUT... [-- LINKER-ARGUMENT...]`
//!
//! Inputs are objects and archives.
//! `--device-linker TRIPLE=COMMAND` links device code for a triple: the words of COMMAND, in which `{arch}` is the
//! target ID, and then `-o IMAGE INPUT...`. Without one, what is for a target has to be one linked image already.
//! `--linker COMMAND` is what links the program, `cc` by default; `--host-triple TRIPLE` what it is for.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use bundle_format::{EntryId, composition};
use fat_object::{Container, ContainerKind, Finding, Image, Options, ReadSeek, Severity, Visitor};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use offload_examples::{Error, about, exit, path_from_bytes, read, run};
use target_id::{Target, Triple, compatible};
use wrapper_ir::{Abi, Kind, Wrapper};

fn main() -> ExitCode {
    exit("linker", CommandLine::parse(env::args_os().skip(1)).and_then(|line| link(&line)))
}

fn link(line: &CommandLine) -> Result<(), Error> {
    let directory = tempfile::tempdir()?; // gone when the program is linked, or is not
    let directory = directory.path();
    let mut collector = Collector { directory, archive: Path::new(""), inputs: Vec::new() };
    for input in &line.inputs {
        collector.collect(input).map_err(about(input))?;
    }
    let mut images = Vec::new();
    for (number, group) in groups(&collector.inputs).into_iter().enumerate() {
        let output = directory.join(format!("image-{number}"));
        images.push(group.link(line, output)?);
    }
    let mut objects = Vec::new();
    for (kind, offload_kind) in [
        (Kind::OpenMp, OffloadKind::OPENMP),
        (Kind::Cuda, OffloadKind::CUDA),
        (Kind::Hip, OffloadKind::HIP),
        (Kind::Sycl, OffloadKind::SYCL),
    ] {
        let images: Vec<_> =
            images.iter().filter(|image| image.kinds.contains(&offload_kind)).collect();
        if !images.is_empty() {
            let object = directory.join(format!("{kind}.o"));
            let wrapped = wrap(kind, offload_kind, &images, &line.host_triple)?;
            fs::write(&object, wrapped).map_err(about(&object))?;
            objects.push(object);
        }
    }
    let mut linker = Command::new(&line.linker);
    run(linker.args(&line.inputs).args(objects).arg("-o").arg(&line.output).args(&line.rest))
}

/// Device code of an input, in a file of its own.
struct Input {
    kind: OffloadKind,
    target: Target,
    is_member: bool,
    file: PathBuf,
}

/// Takes the images out of the sections that compilers put packages into.
struct Collector<'a> {
    directory: &'a Path,
    /// Thin archives name files that lie beside them.
    archive: &'a Path,
    inputs: Vec<Input>,
}

impl<'a> Collector<'a> {
    fn collect(&mut self, input: &'a Path) -> Result<(), Error> {
        self.archive = input;
        let mut options = Options::default();
        options.enter_images = false; // an image is linked as a whole, whatever is in it
        fat_object::walk(&mut File::open(input)?, &options, self)?;
        Ok(())
    }
}

impl Visitor for Collector<'_> {
    /// Only what is to be linked: sections of other names hold what is linked already.
    fn looks_into(&mut self, container: &Container<'_>) -> bool {
        let name = container.path().last().map(|segment| segment.name());
        container.kind() != ContainerKind::Section || name == Some(".llvm.offloading")
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let Some(entry) = image.package_entry() else { return Ok(()) };
        let kind = entry.offload_kind().current();
        let is_member = image.path().iter().any(|step| step.kind() == ContainerKind::Member);
        let file = self.directory.join(format!(
            "input-{}.{}",
            self.inputs.len(),
            image.format().extension()
        ));
        let target = image.target().clone();
        io::copy(&mut image.reader(), &mut File::create_new(&file)?)?;
        self.inputs.push(Input { kind, target, is_member, file });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        match finding.severity() {
            Severity::Warning => Ok(()),
            Severity::Error => Err(io::Error::other(finding.to_string())),
        }
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let directory = self.archive.parent().unwrap_or(Path::new(""));
        Ok(Box::new(File::open(directory.join(path_from_bytes(name)?))?))
    }
}

/// What is linked for one target.
struct Group<'a> {
    target: &'a Target,
    kinds: BTreeSet<OffloadKind>,
    files: Vec<&'a Path>,
}

/// A linked image.
struct Linked<'a> {
    target: &'a Target,
    kinds: BTreeSet<OffloadKind>,
    bytes: Vec<u8>,
}

/// A group for each triple and target ID that objects have code for. Members of archives only complete these: a library
/// for ten GPUs does not make a program for ten GPUs.
///
/// Code goes into every group on whose devices it runs: that for `gfx90a` into those for `gfx90a` and for
/// `gfx90a:xnack+`, that for `gfx90a:xnack+` into the latter only; and code for `generic` everywhere. So does
/// `clang-linker-wrapper` of LLVM 22, if the object for `gfx90a:xnack+` comes first; otherwise it puts code that needs
/// xnack into an image that promises to run without, and not the other way round. Of archives it leaves out members
/// with no symbol that is not there yet.
///
/// Images for more particular targets come first, because the OpenMP runtime takes the first that fits.
fn groups(inputs: &[Input]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for input in inputs.iter().filter(|input| !input.is_member) {
        if !groups.iter().any(|group| is_same(group.target, &input.target)) {
            let (kinds, files) = (BTreeSet::new(), Vec::new());
            groups.push(Group { target: &input.target, kinds, files });
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(triple_and_id(group.target)));
    for group in &mut groups {
        for input in inputs.iter().filter(|input| goes_into(&input.target, group.target)) {
            group.files.push(&input.file);
            // The runtime of a programming model wants images for the targets that its code is compiled for.
            if is_same(&input.target, group.target) {
                group.kinds.insert(input.kind);
            }
        }
    }
    groups
}

fn triple_and_id(target: &Target) -> (&str, &str) {
    (target.triple().map_or("", Triple::as_str), target.id())
}

fn is_same(a: &Target, b: &Target) -> bool {
    triple_and_id(a) == triple_and_id(b)
}

fn goes_into(input: &Target, group: &Target) -> bool {
    // Code of several programming models is linked together.
    let of_any_kind = |target: &Target| Target::new(None, target.triple().cloned(), target.id());
    let (input, group) = (of_any_kind(input), of_any_kind(group));
    let same_triple = input.triple().zip(group.triple()).is_some_and(|(a, b)| a.compatible_with(b));
    same_triple && (input.id() == "generic" || compatible(&input, &group).is_strict())
}

impl<'a> Group<'a> {
    fn link(self, line: &CommandLine, output: PathBuf) -> Result<Linked<'a>, Error> {
        let target = self.target;
        let image = match (line.device_linker(target), &self.files[..]) {
            (Some(command), files) => {
                let mut words = command.split_whitespace();
                let program = words.next().ok_or("a device linker without a name")?;
                let words = words.map(|word| word.replace("{arch}", target.id()));
                run(Command::new(program).args(words).arg("-o").arg(&output).args(files))?;
                output
            }
            (None, [image]) => image.to_path_buf(),
            (None, files) => {
                let (count, triple) = (files.len(), triple_and_id(target).0);
                return Err(format!(
                    "{count} inputs for {target}: --device-linker '{triple}=COMMAND' has to link them"
                )
                .into());
            }
        };
        Ok(Linked { target, kinds: self.kinds, bytes: read(&image)? })
    }
}

/// An object that registers images when its program starts.
fn wrap(
    kind: Kind,
    offload_kind: OffloadKind,
    images: &[&Linked<'_>],
    host: &str,
) -> Result<Vec<u8>, Error> {
    let containers = match kind {
        // Each image in a package of its own, which tells the runtime what it is for.
        Kind::OpenMp => images
            .iter()
            .map(|image| package(FormatVersion::V1, offload_kind, &[image]))
            .collect::<Result<_, _>>()?,
        Kind::Hip => vec![bundle(images, host)?],
        Kind::Sycl => vec![package(FormatVersion::V2, offload_kind, images)?],
        // NVIDIA's `fatbinary` makes one image of those for all GPUs: as the device linker.
        _ => images.iter().map(|image| image.bytes.clone()).collect(),
    };
    let module = Wrapper::new(kind, Abi::Current, wrapper_ir::Target::new(host)?)
        .images(containers.iter().map(|bytes| wrapper_ir::Image::from_bytes(bytes)))
        .module()?;
    let containers: Vec<_> = containers.iter().map(|bytes| &bytes[..]).collect();
    Ok(module.object()?.to_vec(&containers)?)
}

fn package(
    version: FormatVersion,
    kind: OffloadKind,
    images: &[&Linked<'_>],
) -> Result<Vec<u8>, Error> {
    let entry = |image: &&'_ Linked<'_>| {
        let (triple, id) = triple_and_id(image.target);
        let image_kind = ImageKind::from_magic(&image.bytes).unwrap_or(ImageKind::OBJECT);
        let entry = ImageEntry::new(image.bytes.len() as u64).image_kind(image_kind);
        entry.offload_kind(kind).string("arch", id).string("triple", triple).into_owned()
    };
    let entries: Vec<_> = images.iter().map(entry).collect();
    let bytes: Vec<_> = images.iter().map(|image| &image.bytes[..]).collect();
    Ok(offload_binary::Layout::new(version, &entries)?.to_vec(&bytes)?)
}

/// The bundle that the HIP runtime takes: an entry without content for the host, then images at pages of their own.
fn bundle(images: &[&Linked<'_>], host: &str) -> Result<Vec<u8>, Error> {
    let host = format!("host-{host}");
    let mut ids = vec![EntryId::parse(&host)?.standardized()];
    ids.extend(images.iter().map(|image| {
        let kind = Some(target_id::OffloadKind::Hip);
        Target::new(kind, image.target.triple().cloned(), image.target.id()).to_string()
    }));
    if let Some(finding) = composition(ids.iter().map(|id| &id[..])).first() {
        return Err(finding.to_string().into());
    }
    let contents: Vec<_> =
        [&[][..]].into_iter().chain(images.iter().map(|image| &image.bytes[..])).collect();
    let sizes = contents.iter().map(|bytes| bytes.len() as u64);
    Ok(bundle_format::Layout::new(ids.iter().zip(sizes), 4096)?.to_vec(&contents)?)
}

struct CommandLine {
    device_linkers: Vec<(Triple, String)>,
    linker: OsString,
    host_triple: String,
    output: PathBuf,
    inputs: Vec<PathBuf>,
    /// What only the host's linker understands.
    rest: Vec<OsString>,
}

impl CommandLine {
    fn parse(mut args: impl Iterator<Item = OsString>) -> Result<CommandLine, Error> {
        let mut line = CommandLine {
            device_linkers: Vec::new(),
            linker: "cc".into(),
            host_triple: format!("{}-unknown-linux-gnu", env::consts::ARCH),
            output: PathBuf::new(),
            inputs: Vec::new(),
            rest: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{}: no value", arg.display()));
            let text = |value: OsString| {
                value.into_string().map_err(|value| format!("{}: not UTF-8", value.display()))
            };
            match arg.to_str() {
                Some("--device-linker") => {
                    let value = text(value()?)?;
                    let linker = value.split_once('=').ok_or("expected TRIPLE=COMMAND")?;
                    line.device_linkers.push((Triple::parse(linker.0), linker.1.to_owned()));
                }
                Some("--linker") => line.linker = value()?,
                Some("--host-triple") => line.host_triple = text(value()?)?,
                Some("-o") => line.output = value()?.into(),
                Some("--") => line.rest = args.by_ref().collect(),
                _ => line.inputs.push(arg.into()),
            }
        }
        if line.output.as_os_str().is_empty() || line.inputs.is_empty() {
            return Err(
                "usage: linker [OPTION]... -o PROGRAM INPUT... [-- LINKER-ARGUMENT...]".into()
            );
        }
        Ok(line)
    }

    fn device_linker(&self, target: &Target) -> Option<&str> {
        let triple = target.triple()?;
        let linker = self.device_linkers.iter().find(|(of, _)| of.compatible_with(triple))?;
        Some(&linker.1)
    }
}
