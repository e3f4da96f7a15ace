//! From linked images to objects that register them: each runtime wants its images in a container of its own.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bundle_format::{EntryId, HIP_ALIGN};
use byte_parts::{Layout, Part, Parts};
use ccob::WriteOptions;
use nv_fatbin::{Architecture, Flags, NewEntry, NewFatbin};
use object_edit::{Renames, rename};
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
use target_id::Triple;
use wrapper_ir::{Abi, Image, Module, Target, Wrapper};

use crate::error::{Error, ErrorKind};
use crate::images::{Images, LinkedImage, in_memory};
use crate::input::is_shared;
use crate::intel;

/// Options of registration code.
#[derive(Clone, Debug)]
pub struct RegisterOptions {
    host_triple: String,
    abi: Abi,
    compression: Option<WriteOptions>,
    relocatable: bool,
    llvm_code: bool,
    names_host: bool,
    private_entries: Option<String>,
}

/// Registration code of one programming model, and the containers that it registers.
#[derive(Debug)]
pub struct Registration {
    kind: OffloadKind,
    containers: Vec<Parts>,
    module: Module,
}

impl RegisterOptions {
    /// Creates options for host objects of LLVM 21 to 23.
    #[must_use]
    pub fn new(host_triple: impl Into<String>) -> Self {
        RegisterOptions {
            host_triple: host_triple.into(),
            abi: Abi::Current,
            compression: None,
            relocatable: false,
            llvm_code: false,
            names_host: false,
            private_entries: None,
        }
    }

    /// Sets the release of the compiler that made the host objects.
    #[must_use]
    pub fn with_abi(mut self, abi: Abi) -> Self {
        self.abi = abi;
        self
    }

    /// Compresses the bundles of HIP.
    #[must_use]
    pub fn with_compression(mut self, compression: Option<WriteOptions>) -> Self {
        self.compression = compression;
        self
    }

    /// Makes code for an object that is linked again: its images are not linked for the device once more.
    #[must_use]
    pub fn with_relocatable(mut self, relocatable: bool) -> Self {
        self.relocatable = relocatable;
        self
    }

    /// Registers only the kernels of host objects that [`host_object`](Self::host_object) returned for the same suffix, which is made
    /// of letters, digits and underscores: the name of a library, or a hash of its objects.
    ///
    /// Otherwise the code registers the kernels of all objects in the program or shared library. Two such registrations in one program,
    /// each with the images of some of the objects, lose kernels: each runtime finds all of them in both, and the images of one
    /// have not all of them. Each library that registers its kernels by itself, such as a crate, needs a suffix of its own.
    ///
    /// For ELF hosts. SYCL needs nothing of the kind: its registration has the kernels of its images.
    #[must_use]
    pub fn with_private_entries(mut self, suffix: impl Into<String>) -> Self {
        self.private_entries = Some(suffix.into());
        self
    }

    /// Returns a host object, or an archive of host objects, as the registration needs it: with
    /// [`with_private_entries`](Self::with_private_entries), its entries are in a section that the code registers and linkers
    /// keep (`SHF_GNU_RETAIN`), and its device code is gone; otherwise, and for shared libraries, it is as it was.
    ///
    /// The device code of all objects has to be in the images. The host may link any member of an archive: add it as a whole, by
    /// [`Inputs::whole_archive`](crate::Inputs::whole_archive).
    ///
    /// ```
    /// use offload_link::{Images, RegisterOptions};
    /// # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data");
    /// # let linked = Images::default();
    ///
    /// let options = RegisterOptions::new("x86_64-unknown-linux-gnu").with_private_entries("my_crate");
    /// let object = std::fs::read(format!("{directory}/host.o"))?;
    /// let to_link = [Some(options.host_object(&object)?.into_owned()), linked.object(&options)?];
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`] for what is neither a relocatable ELF object nor an archive of such, for bitcode, and for files that
    /// contradict themselves.
    pub fn host_object<'a>(&self, object: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
        let Some(suffix) = &self.private_entries else { return Ok(Cow::Borrowed(object)) };
        // Its kernels were registered when it was linked.
        if is_shared(object) {
            return Ok(Cow::Borrowed(object));
        }
        // Linked for the device already.
        let mut renames = Renames::new().without_section(".llvm.offloading");
        let kinds = [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP];
        let sections: BTreeSet<_> = kinds.map(|kind| self.abi.entries_section(kind)).into();
        for section in sections {
            renames = renames.with_section(section, format!("{section}_{suffix}"));
            // Clang's have no such flag: what a library needs at the link of the program, it cannot say there.
            renames = renames.with_retained_section(section);
            // Objects that `-r` linked with registration code have them.
            for bound in ["__start_", "__stop_"].map(|bound| format!("{bound}{section}")) {
                let private = format!("{bound}_{suffix}");
                renames = renames.with_symbol(bound, private);
            }
        }
        rename(object, &renames)
            .map_err(|error| Error::of(ErrorKind::Input, "private entries", error))
    }

    /// Makes the instructions of LLVM's modules: see [`Wrapper::with_llvm_code`].
    #[must_use]
    pub fn with_llvm_code(mut self, llvm_code: bool) -> Self {
        self.llvm_code = llvm_code;
        self
    }

    /// Names the triples of the host and of the images in the bundles of HIP, as LLVM 23 does. Otherwise they have the names
    /// that LLVM 22 gives them for all hosts: `host-x86_64-unknown-linux-gnu`, `hip-amdgcn-amd-amdhsa--gfx90a`.
    #[must_use]
    pub fn with_host_in_bundles(mut self, names_host: bool) -> Self {
        self.names_host = names_host;
        self
    }

    /// Returns the registration code of these options, without images.
    fn wrapper<'a>(&'a self, kind: OffloadKind, host: Target) -> Wrapper<'a> {
        let wrapper = Wrapper::new(kind, self.abi, host)
            .with_relocatable(self.relocatable)
            .with_llvm_code(self.llvm_code);
        match &self.private_entries {
            Some(suffix) => wrapper.with_private_entries(suffix).with_retain(true),
            None => wrapper,
        }
    }
}

impl Images {
    /// Returns the registration code of each programming model that has images.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`] and [`ErrorKind::Registration`].
    pub fn register(&self, options: &RegisterOptions) -> Result<Vec<Registration>, Error> {
        let register = |kind| {
            let containers = container(kind, &self.of(kind), options)?;
            Registration::new(kind, containers, options)
        };
        self.kinds().into_iter().map(register).collect()
    }

    /// Returns the arguments that a compiler which calls the host linker (`cc`, `clang`, `rustc -C link-arg=`, cargo's
    /// `cargo::rustc-link-arg=`) needs to link with [`object`](Self::object), in their order: those of
    /// [`Module::compiler_args`], which says why; none with [`private entries`](RegisterOptions::with_private_entries) of LLVM 19 and later. A linker that links itself does what these tell it: it keeps the sections whose
    /// bounds the object refers to.
    ///
    /// ```
    /// use offload_link::{Images, RegisterOptions};
    /// # let linked: Images = Images::default();
    ///
    /// // In a build script:
    /// for argument in linked.link_args(&RegisterOptions::new("x86_64-unknown-linux-gnu"))? {
    ///     println!("cargo::rustc-link-arg={argument}"); // -Wl,-z,nostart-stop-gc
    /// }
    /// # Ok::<(), offload_link::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registration`].
    pub fn link_args(&self, options: &RegisterOptions) -> Result<&'static [&'static str], Error> {
        let failed = |error| Error::of(ErrorKind::Registration, "registration code", error);
        let host = Target::new(&options.host_triple).map_err(failed)?;
        for kind in self.kinds() {
            // The arguments are the same for all images.
            let wrapper = options.wrapper(kind, host.clone());
            let module =
                wrapper.with_image(Image::from_bytes(b"image")).module().map_err(failed)?;
            if !module.compiler_args().is_empty() {
                return Ok(module.compiler_args());
            }
        }
        Ok(&[])
    }

    /// Returns one object that registers the images of all programming models; `None` without images. It is in memory,
    /// as the images must be: others have [`object_parts`](Self::object_parts).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`] and [`ErrorKind::Registration`].
    pub fn object(&self, options: &RegisterOptions) -> Result<Option<Vec<u8>>, Error> {
        let parts = self.object_parts(options)?;
        parts.map(|parts| in_memory(&parts, "images")).transpose()
    }

    /// Returns the same object as a list of parts, for images that are not in memory.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object); compressed bundles, fatbinaries and the images of SYCL are made in memory.
    pub fn object_parts(&self, options: &RegisterOptions) -> Result<Option<Parts>, Error> {
        let mut registrations = self.register(options)?.into_iter();
        let Some(mut all) = registrations.next() else { return Ok(None) };
        for other in registrations {
            all.containers.extend(other.containers);
            all.module = all
                .module
                .join(other.module)
                .map_err(|error| Error::of(ErrorKind::Registration, "registration code", error))?;
        }
        all.object().map(Some)
    }
}

impl Registration {
    /// Creates the code that registers containers: offload binaries for OpenMP and SYCL, a bundle for HIP, a fatbinary
    /// for CUDA.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registration`] where there is no such code for the kind, the number of containers or the host.
    pub fn new(
        kind: OffloadKind,
        containers: Vec<Parts>,
        options: &RegisterOptions,
    ) -> Result<Self, Error> {
        let failed = |error| Error::of(ErrorKind::Registration, "registration code", error);
        let host = Target::new(&options.host_triple).map_err(failed)?;
        let mut heads: Vec<_> = containers.iter().map(|parts| head(parts, HEAD)).collect();
        let module = loop {
            let images = containers.iter().zip(&heads);
            let images = images.map(|(parts, head)| Image::new(parts.size(), &head[..]));
            match options.wrapper(kind, host.clone()).with_images(images).module() {
                Ok(module) => break module,
                Err(error) if read_more(&error, &containers, &mut heads) => {}
                Err(error) => return Err(failed(error)),
            }
        };
        Ok(Registration { kind, containers, module })
    }

    /// Returns the programming model.
    #[must_use]
    pub fn kind(&self) -> OffloadKind {
        self.kind
    }

    /// Returns the containers. Their inputs are those of the images.
    #[must_use]
    pub fn containers(&self) -> &[Parts] {
        &self.containers
    }

    /// Returns the code, for which the containers are the inputs.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the code and the containers as LLVM bitcode. Its inputs are those of the images.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registration`] where containers are too large for bitcode.
    pub fn bitcode(&self) -> Result<Parts, Error> {
        let layout = self
            .module
            .bitcode()
            .map_err(|error| Error::of(ErrorKind::Registration, "registration code", error))?;
        Ok(filled(&layout, &self.containers))
    }

    /// Returns an object with the code and the containers. Its inputs are those of the images.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registration`] where containers are too large for an object.
    pub fn object(&self) -> Result<Parts, Error> {
        let layout = self
            .module
            .object()
            .map_err(|error| Error::of(ErrorKind::Registration, "registration object", error))?;
        Ok(filled(&layout, &self.containers))
    }
}

/// The first bytes of a container, which tell what it is. The tables of an offload binary may be longer.
const HEAD: u64 = 4096;

/// Returns the first bytes that are in memory, at most `len`.
fn head(parts: &Parts, len: u64) -> Vec<u8> {
    let mut head = Parts::new();
    for part in parts.slice(0..len).iter().take_while(|part| !matches!(part, Part::Input(..))) {
        head.push_part(part);
    }
    // Without memory for it there is no more than before.
    head.to_vec(|_| &[]).unwrap_or_default()
}

/// Takes as much of a container as the error demands; returns `false` if that is not the cause.
fn read_more(error: &wrapper_ir::Error, containers: &[Parts], heads: &mut [Vec<u8>]) -> bool {
    let (Some(image), Some(needed)) = (error.image(), error.head_needed()) else { return false };
    let (Some(parts), Some(had)) = (containers.get(image), heads.get_mut(image)) else {
        return false;
    };
    let head = head(parts, needed);
    let is_more = head.len() > had.len();
    *had = head;
    is_more
}

/// Returns a layout whose inputs are lists of parts themselves.
fn filled(layout: &Layout, inputs: &[Parts]) -> Parts {
    let mut filled = Parts::new();
    for part in layout.parts().iter() {
        match part {
            Part::Input(&input, range) => {
                let parts = inputs.get(input);
                parts.into_iter().for_each(|parts| filled.append_range(parts, range.clone()));
            }
            part => filled.push_part(part),
        }
    }
    filled
}

/// Returns what the runtime of a programming model registers. Its inputs are those of the images.
///
/// # Errors
///
/// [`ErrorKind::Container`] for images that the container has no place for, and for images that are not in memory where
/// their bytes are needed: by compression, fatbinaries, SYCL.
pub fn container(
    kind: OffloadKind,
    images: &[&LinkedImage],
    options: &RegisterOptions,
) -> Result<Vec<Parts>, Error> {
    match kind {
        // Each in an offload binary of its own, which tells the runtime its target.
        OffloadKind::OPENMP => {
            let binary = |image: &&LinkedImage| {
                if intel::wants_file(image.target.triple()) {
                    let image =
                        LinkedImage { parts: intel::file(&image.parts), ..(*image).clone() };
                    offload_binary(FormatVersion::V1, kind, &[&image])
                } else {
                    offload_binary(FormatVersion::V1, kind, &[image])
                }
            };
            images.iter().map(binary).collect()
        }
        OffloadKind::HIP => Ok(vec![bundle(images, options)?]),
        OffloadKind::CUDA => Ok(vec![fatbinary(images, options)?]),
        // SYCL's device linker makes an offload binary.
        OffloadKind::SYCL => match images {
            [image] if head(&image.parts, HEAD).starts_with(&offload_binary::MAGIC) => {
                Ok(vec![image.parts.clone()])
            }
            _ => Ok(vec![offload_binary(FormatVersion::V2, kind, images)?]),
        },
        _ => {
            let text = format!("{kind} bundling is not supported");
            Err(Error::new(ErrorKind::Container, text))
        }
    }
}

fn offload_binary(
    version: FormatVersion,
    kind: OffloadKind,
    images: &[&LinkedImage],
) -> Result<Parts, Error> {
    let entries: Vec<_> = images.iter().map(|image| entry(kind, image)).collect();
    let layout = offload_binary::layout(version, &entries)
        .map_err(|error| Error::of(ErrorKind::Container, "offload binary", error))?;
    let contents: Vec<_> = images.iter().map(|image| image.parts.clone()).collect();
    Ok(filled(&layout, &contents))
}

/// Describes an image, with its strings in LLVM's order.
fn entry(kind: OffloadKind, image: &LinkedImage) -> ImageEntry<'_> {
    ImageEntry::new(image.parts.size())
        .with_image_kind(image.image_kind)
        .with_offload_kind(kind)
        .with_string("triple", image.target.triple())
        .with_string("arch", image.target.processor())
}

/// Returns the entry IDs of the bundle for HIP, as LLVM's tool names them to the bundler: an empty entry for the host, then those of the images.
#[must_use]
pub fn bundle_ids(images: &[&LinkedImage], options: &RegisterOptions) -> Vec<String> {
    let host = if options.names_host {
        &Triple::parse(&options.host_triple).normalized().to_string()
    } else {
        // Runtimes expect this ID, whatever the host is.
        "x86_64-unknown-linux-gnu"
    };
    let id = |image: &&LinkedImage| {
        let (triple, processor) = (image.target.triple(), image.target.processor());
        match (image.target.arch(), options.names_host) {
            ("amdgcnspirv", false) => format!("hip-spirv64-amd-amdhsa--{processor}"),
            (_, false) => format!("hip-amdgcn-amd-amdhsa--{processor}"),
            ("", true) => format!("hip-{triple}-unknown-"),
            (_, true) => format!("hip-{}-{processor}", Triple::parse(triple).bundle_form()),
        }
    };
    [format!("host-{host}")].into_iter().chain(images.iter().map(id)).collect()
}

fn bundle(images: &[&LinkedImage], options: &RegisterOptions) -> Result<Parts, Error> {
    const WHAT: &str = "bundle for HIP";
    let failed = |error| Error::of(ErrorKind::Container, WHAT, error);
    let contents: Vec<_> =
        [Parts::new()].into_iter().chain(images.iter().map(|image| image.parts.clone())).collect();
    let ids = bundle_ids(images, options);
    let ids = ids.iter().map(|id| Ok(EntryId::parse(id)?.canonical()));
    let ids = ids.collect::<Result<Vec<_>, bundle_format::Error>>().map_err(failed)?;
    let sizes = contents.iter().map(Parts::size);
    let layout = bundle_format::layout(ids.iter().zip(sizes), HIP_ALIGN).map_err(failed)?;
    let bundle = filled(&layout, &contents);
    match &options.compression {
        Some(compression) => ccob::compress(&in_memory(&bundle, WHAT)?, compression)
            .map(Parts::from)
            .map_err(|error| Error::of(ErrorKind::Container, WHAT, error)),
        None => Ok(bundle),
    }
}

/// Returns a fatbinary with the entries that NVIDIA's tool makes: cubins as they are.
fn fatbinary(images: &[&LinkedImage], options: &RegisterOptions) -> Result<Parts, Error> {
    // The device linker may have made a fatbinary.
    if let [image] = images
        && head(&image.parts, HEAD).starts_with(&nv_fatbin::MAGIC)
    {
        return Ok(image.parts.clone());
    }
    let bytes = images.iter().map(|image| in_memory(&image.parts, &image.target.to_string()));
    let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
    let host = Triple::parse(&options.host_triple);
    let system = match host.os() {
        os if os.starts_with("linux") => Flags::LINUX,
        os if os.starts_with("windows") => Flags::WINDOWS,
        os if os.starts_with("macos") || os.starts_with("darwin") => Flags::MACOS,
        _ => Flags::empty(),
    };
    let mut fatbinary = NewFatbin::new();
    for (image, bytes) in images.iter().zip(&bytes) {
        let failed = |error| Error::of(ErrorKind::Container, &image.target.to_string(), error);
        let arch = image.target.arch();
        let architecture = Architecture::from_name(arch).ok_or_else(|| {
            let text = format!("{arch} is not an architecture of CUDA: expected one such as sm_90");
            Error::new(ErrorKind::Container, text)
        })?;
        let is_elf = bytes.starts_with(b"\x7fELF");
        let entry = if is_elf {
            NewEntry::cubin(architecture, bytes)
        } else {
            NewEntry::ptx(architecture, bytes)
        };
        let mut entry = entry.map_err(failed)?;
        entry.flags |= system;
        fatbinary.add(&entry).map_err(failed)?;
    }
    fatbinary
        .to_vec()
        .map(Parts::from)
        .map_err(|error| Error::of(ErrorKind::Container, "fatbinary", error))
}
