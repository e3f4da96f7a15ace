//! A linker for offloading programs: device code is taken out of the inputs, linked for each target, and goes into the
//! program, with code that registers it when the program starts. `clang-linker-wrapper` does the same around `cc`.
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
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use fat_object::{Container, ContainerKind, Enter, Image, Options, ReadSeek, Visitor};
use offload_binary::OffloadKind;
use offload_examples::{Error, about, exit, path_from_bytes, read, run};
use target_id::{Target, Triple, compatible};
use wrapper_ir::Wrapper;

#[path = "linker/command_line.rs"]
mod command_line;
#[path = "linker/wrap.rs"]
mod wrap;

use command_line::CommandLine;
use wrap::wrap;

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
    for kind in Wrapper::KINDS {
        let images: Vec<_> = images.iter().filter(|image| image.kinds.contains(&kind)).collect();
        if !images.is_empty() {
            let object = directory.join(format!("{kind}.o"));
            let wrapped = wrap(kind, &images, &line.host_triple)?;
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

/// Takes the images out of the sections that compilers put offload binaries into.
struct Collector<'a> {
    directory: &'a Path,
    /// Thin archives name files that lie beside them.
    archive: &'a Path,
    inputs: Vec<Input>,
}

impl<'a> Collector<'a> {
    fn collect(&mut self, input: &'a Path) -> Result<(), Error> {
        self.archive = input;
        // An image is linked as a whole, whatever is in it.
        let options = Options::default().with_enter_images(false);
        fat_object::walk(&mut File::open(input)?, &options, self)?;
        Ok(())
    }
}

impl Visitor for Collector<'_> {
    /// Only what is to be linked: sections of other names hold what is linked already.
    fn opens(&mut self, container: &Container) -> Enter {
        let name = container.path().last().map(|segment| segment.name());
        match container.kind() {
            ContainerKind::Section if name != Some(".llvm.offloading") => Enter::Skip,
            _ => Enter::Open,
        }
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let Some(entry) = image.offload_binary_entry() else { return Ok(()) };
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

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let directory = self.archive.parent().unwrap_or(Path::new(""));
        Ok(Box::new(File::open(directory.join(path_from_bytes(name)?))?))
    }
}

/// Inputs of the device link for one target.
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
/// xnack into an image that promises to run without, and not the other way round.
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
