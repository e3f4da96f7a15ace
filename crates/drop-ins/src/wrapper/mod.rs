//! `llvm-offload-wrapper` and `clang-offload-wrapper`: the code that registers device images, made from the images.

pub mod clang;
pub mod llvm;

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wrapper_ir::{Abi, Error, ErrorKind, Image, Module, OffloadKind, Target, Wrapper};

use crate::drop_in;
use crate::fatbinary::Made;
use crate::llvm_cl::{Matches, Tool};
use tool_kit::opened::MaxInput;
use tool_kit::output::Outputs;
use tool_kit::payload::{self, Payload, Payloads};
use tool_kit::permissions::NewPermissions;
use tool_kit::report::reason_first;
use tool_kit::{input, report};

/// Bytes of an image that are read to see what it is. An offload binary that needs more is read again.
const HEAD: usize = 4096;

/// The largest part of an offload binary that is held in memory: its tables and strings, which are small.
const MAX_HEAD: u64 = 16 << 20;

/// The largest offload binary that comes out of a compressed one. Its size is a claim of the file.
const MAX_PLAIN: u64 = 2 << 30;

/// The images to wrap, and the options.
#[derive(Debug)]
pub struct Request {
    /// The runtime that gets the images.
    pub kind: OffloadKind,
    /// The release of LLVM whose runtime it is.
    pub abi: Abi,
    /// The triple of the host.
    pub triple: String,
    /// `true` if the object is linked once more before the host link.
    pub relocatable: bool,
    /// See [`Wrapper::with_retain`].
    pub retain: bool,
    /// See [`Wrapper::with_llvm_code`].
    pub as_llvm: bool,
    /// The paths of the images.
    pub images: Vec<PathBuf>,
    /// Contents that take the place of all images.
    pub made: Option<Made>,
    /// Either none or one for each image.
    pub target_ids: Vec<String>,
    /// Limit for images that are not files.
    pub max_input: MaxInput,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// LLVM IR.
    Text,
    /// LLVM bitcode.
    Bitcode,
    /// An object file.
    Object,
}

impl Emit {
    /// Returns the form that is named, else of the output's extension; bitcode for other extensions.
    pub fn of(named: Option<&str>, output: &Path) -> Self {
        let extension = output.extension().and_then(|extension| extension.to_str());
        match named.or(extension) {
            Some("ll") => Emit::Text,
            Some("o" | "obj") => Emit::Object,
            _ => Emit::Bitcode,
        }
    }
}

/// Registration code whose inputs were all found, and that only needs to be written.
#[derive(Debug)]
pub struct Wrapped {
    module: Module,
    inputs: Vec<Payload>,
}

impl Request {
    /// Looks at every image. Nothing is written yet.
    pub fn wrap(&self) -> io::Result<Wrapped> {
        for id in &self.target_ids {
            let parsed = target_id::TargetId::parse(id);
            parsed.map_err(|error| io::Error::other(format!("'{id}': {error}")))?;
        }
        let target = Target::new(&self.triple).map_err(|error| match error.kind() {
            ErrorKind::UnknownName => {
                io::Error::other(format!("'{}': unsupported target triple", self.triple))
            }
            _ => explain(error, &[]),
        })?;
        let (mut inputs, mut heads) = (Vec::new(), Vec::new());
        if let Some(made) = &self.made {
            let name = self.images.first().map_or(Path::new(""), PathBuf::as_path);
            inputs.push(Payload::of_bytes(name, &made.bytes, made.permissions)?);
            heads.push(made.bytes.get(..16).unwrap_or(&made.bytes).to_vec());
        }
        let images = if self.made.is_none() { &self.images[..] } else { &[] };
        for path in images {
            let again =
                path.as_os_str() == "-" && self.images.iter().filter(|p| *p == path).count() > 1;
            if again {
                return Err(io::Error::other("standard input can be one image only"));
            }
            let (input, head) = Payload::open(path, self.max_input, HEAD as u64)?;
            inputs.push(input);
            heads.push(head);
        }
        loop {
            let error = match self.module(&target, &inputs, &heads) {
                Ok(module) => return Ok(Wrapped { module, inputs }),
                Err(error) => error,
            };
            if !decompress(&error, &mut inputs, &mut heads)?
                && !read_more(&error, &mut inputs, &mut heads)?
            {
                return Err(explain(error, &inputs));
            }
        }
    }

    fn module(
        &self,
        target: &Target,
        inputs: &[Payload],
        heads: &[Vec<u8>],
    ) -> Result<Module, Error> {
        let images =
            inputs.iter().zip(heads).map(|(input, head)| Image::new(input.size(), &head[..]));
        let mut ids = self.target_ids.iter();
        let images = images.map(|image| match ids.next() {
            Some(id) => image.with_target_id(id),
            None => image,
        });
        Wrapper::new(self.kind, self.abi, target.clone())
            .with_images(images)
            .with_relocatable(self.relocatable)
            .with_retain(self.retain)
            .with_llvm_code(self.as_llvm)
            .module()
    }
}

impl Wrapped {
    /// Returns the arguments that a compiler needs to link the module.
    pub fn link_args(&self) -> &'static [&'static str] {
        self.module.compiler_args()
    }

    /// Writes the module; `-` is standard output. On failure there is no output.
    pub fn write(&mut self, emit: Emit, path: &Path) -> io::Result<()> {
        // Sizes that do not fit into a format are found before anything is written.
        let layout = match emit {
            Emit::Text => None,
            Emit::Bitcode => Some(self.module.bitcode()),
            Emit::Object => Some(self.module.object()),
        };
        let layout = layout.transpose().map_err(|error| explain(error, &self.inputs))?;
        let mut outputs = Outputs::default();
        let inputs = &mut self.inputs;
        let how = NewPermissions::of_all(inputs.iter().map(Payload::permissions));
        outputs.write_or_print(path, how, |file| match &layout {
            // From file to file the kernel copies.
            Some(layout) => {
                layout.parts().write_to(&mut Payloads(inputs.iter_mut().collect()), file)?;
                file.flush()
            }
            None => {
                let mut file = BufWriter::with_capacity(1 << 16, file);
                self.module.write_ir(&mut file, inputs.iter_mut().map(Payload::stream))?;
                file.flush()
            }
        })?;
        outputs.commit()
    }
}

/// Reads as much of an image as the error demands; returns `false` if that is not the cause.
fn read_more(error: &Error, inputs: &mut [Payload], heads: &mut [Vec<u8>]) -> io::Result<bool> {
    let (Some(image), Some(needed)) = (error.image(), error.head_needed()) else {
        return Ok(false);
    };
    let (Some(input), Some(head)) = (inputs.get_mut(image), heads.get_mut(image)) else {
        return Ok(false);
    };
    if needed > MAX_HEAD || needed <= head.len() as u64 {
        return Ok(false);
    }
    head.clear();
    input.reader()?.take(needed).read_to_end(head)?;
    Ok(true)
}

/// Puts the plain offload binary in the place of a compressed one, which no runtime reads; false if the error is not
/// about that.
fn decompress(error: &Error, inputs: &mut [Payload], heads: &mut [Vec<u8>]) -> io::Result<bool> {
    let compressed = error.package().and_then(offload_binary::Error::compressed);
    let (Some(image), Some(_)) = (error.image(), compressed) else {
        return Ok(false);
    };
    let (Some(input), Some(head)) = (inputs.get_mut(image), heads.get_mut(image)) else {
        return Ok(false);
    };
    let plain = fat_object::decompress_offload_binary(&input.read()?, MAX_PLAIN)
        .map_err(|error| payload::at(input.path(), &io::Error::other(error)))?;
    *input = input.with_contents(&plain)?;
    *head = plain;
    head.truncate(HEAD);
    Ok(true)
}

/// Returns the error in terms of the command line.
fn explain(error: Error, inputs: &[Payload]) -> io::Error {
    let is_of_file =
        matches!(error.kind(), ErrorKind::Limit | ErrorKind::HeadTooShort | ErrorKind::Package);
    match error.image().filter(|_| is_of_file).and_then(|image| inputs.get(image)) {
        Some(input) => io::Error::other(format!("'{}': {error}", input.path().display())),
        None => io::Error::other(error),
    }
}

/// Returns the triple of this machine, as clang calls it.
pub fn host_triple() -> String {
    use std::env::consts::{ARCH, OS};
    let little = cfg!(target_endian = "little");
    let arch = match ARCH {
        "x86" => "i686",
        "powerpc64" if little => "powerpc64le",
        "mips64" if little => "mips64el",
        "mips" if little => "mipsel",
        arch => arch,
    };
    let vendor = if arch == "x86_64" || arch == "i686" { "pc" } else { "unknown" };
    match OS {
        "macos" => format!("{arch}-apple-darwin"),
        "windows" if cfg!(target_env = "gnu") => format!("{arch}-pc-windows-gnu"),
        "windows" => format!("{arch}-pc-windows-msvc"),
        "linux" => format!("{arch}-{vendor}-linux-gnu"),
        os => format!("{arch}-{vendor}-{os}"),
    }
}

/// Runs a tool with the arguments of this process.
fn run(
    tool: &'static Tool,
    name: &str,
    request: impl Fn(&Matches) -> io::Result<Request>,
) -> ExitCode {
    let (invocation, matches) = match drop_in::start(tool, name) {
        Ok(started) => started,
        Err(exit) => return exit,
    };
    let output = input::path(matches.text("o"));
    let written = request(&matches)
        .and_then(|request| request.wrap())
        .and_then(|mut wrapped| wrapped.write(Emit::Bitcode, &output).map_err(reason_first));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::end(&invocation.typed, &in_llvms_words(error)),
    }
}

/// Returns the error with LLVM's words before it, where it has other ones.
fn in_llvms_words(error: io::Error) -> io::Error {
    let typed = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    match typed.map(Error::kind) {
        Some(ErrorKind::SingleImage) => io::Error::other(format!(
            "CUDA / HIP offloading uses a single fatbinary or offload bundle: {error}"
        )),
        _ => error,
    }
}

/// Returns the names of the kinds that there is registration code for.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    Wrapper::KINDS.into_iter().filter_map(OffloadKind::name)
}

/// Returns the kind of this name.
pub fn kind_named(name: &str) -> Result<OffloadKind, String> {
    let named = Wrapper::KINDS.into_iter().find(|kind| kind.name() == Some(name));
    named
        .ok_or_else(|| format!("unknown offload kind {name:?}, expected openmp, cuda, hip or sycl"))
}

/// Returns the inputs of a command line.
fn images(matches: &Matches) -> Vec<PathBuf> {
    matches.positionals.iter().map(|name| input::path(name)).collect()
}

/// Returns the text of an argument that names no file.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triple_of_the_host_is_supported() {
        let target = Target::new(&host_triple()).unwrap();
        assert_eq!(u32::from(target.pointer_bits()), usize::BITS);
    }

    #[test]
    fn the_extension_chooses_the_output_by_default() {
        for (named, output, expected) in [
            (None, "a.ll", Emit::Text),
            (None, "a.bc", Emit::Bitcode),
            (None, "a.o", Emit::Object),
            (None, "a.obj", Emit::Object),
            (Some("obj"), "a.bc", Emit::Object),
            (None, "-", Emit::Bitcode),
            (Some("ll"), "a.bc", Emit::Text),
            (Some("bc"), "a.ll", Emit::Bitcode),
        ] {
            assert_eq!(Emit::of(named, Path::new(output)), expected, "{named:?} {output}");
        }
    }
}
