//! From linked images to objects that register them: each runtime wants its images in a container of its own.

use bundle_format::{EntryId, HIP_ALIGN};
use ccob::WriteOptions;
use nv_fatbin::{Architecture, Flags, NewEntry, NewFatbin};
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
use target_id::Triple;
use wrapper_ir::{Abi, Image, Module, Target, Wrapper};

use crate::error::{Error, ErrorKind};
use crate::images::{Images, LinkedImage};

/// Options of registration code.
#[derive(Clone, Debug)]
pub struct RegisterOptions {
    host_triple: String,
    abi: Abi,
    compression: Option<WriteOptions>,
    relocatable: bool,
}

/// Registration code of one programming model, and the containers that it registers.
#[derive(Debug)]
pub struct Registration {
    kind: OffloadKind,
    containers: Vec<Vec<u8>>,
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

    /// Returns one object that registers the images of all programming models; `None` without images.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`] and [`ErrorKind::Registration`].
    pub fn object(&self, options: &RegisterOptions) -> Result<Option<Vec<u8>>, Error> {
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
        containers: Vec<Vec<u8>>,
        options: &RegisterOptions,
    ) -> Result<Self, Error> {
        let failed = |error| Error::of(ErrorKind::Registration, "registration code", error);
        let host = Target::new(&options.host_triple).map_err(failed)?;
        let module = Wrapper::new(kind, options.abi, host)
            .images(containers.iter().map(|bytes| Image::from_bytes(bytes)))
            .relocatable(options.relocatable)
            .module()
            .map_err(failed)?;
        Ok(Registration { kind, containers, module })
    }

    /// Returns the programming model.
    #[must_use]
    pub fn kind(&self) -> OffloadKind {
        self.kind
    }

    /// Returns the containers.
    #[must_use]
    pub fn containers(&self) -> &[Vec<u8>] {
        &self.containers
    }

    /// Returns the code, for which the containers are the inputs.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns an object with the code and the containers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registration`] where containers are too large for an object.
    pub fn object(&self) -> Result<Vec<u8>, Error> {
        object(&self.module, &self.containers)
    }
}

fn object(module: &Module, containers: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
    let bytes: Vec<_> = containers.iter().map(|bytes| &bytes[..]).collect();
    let layout = module.object();
    layout
        .and_then(|layout| Ok(layout.to_vec(&bytes)?))
        .map_err(|error| Error::of(ErrorKind::Registration, "registration object", error))
}

/// Returns what the runtime of a programming model registers.
///
/// # Errors
///
/// [`ErrorKind::Container`] for images that the container has no place for.
pub fn container(
    kind: OffloadKind,
    images: &[&LinkedImage],
    options: &RegisterOptions,
) -> Result<Vec<Vec<u8>>, Error> {
    match kind {
        // Each in an offload binary of its own, which tells the runtime its target.
        OffloadKind::OPENMP => {
            images.iter().map(|image| offload_binary(FormatVersion::V1, kind, &[image])).collect()
        }
        OffloadKind::HIP => Ok(vec![bundle(images, options)?]),
        OffloadKind::CUDA => Ok(vec![fatbinary(images, options)?]),
        // SYCL's device linker makes an offload binary.
        OffloadKind::SYCL => match images {
            [image] if image.bytes.starts_with(&offload_binary::MAGIC) => {
                Ok(vec![image.bytes.clone()])
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
) -> Result<Vec<u8>, Error> {
    let entries: Vec<_> = images.iter().map(|image| entry(kind, image)).collect();
    let bytes: Vec<_> = images.iter().map(|image| &image.bytes[..]).collect();
    let layout = offload_binary::layout(version, &entries);
    let written = layout.and_then(|layout| Ok(layout.to_vec(&bytes)?));
    written.map_err(|error| Error::of(ErrorKind::Container, "offload binary", error))
}

/// Describes an image, with its strings in LLVM's order.
fn entry(kind: OffloadKind, image: &LinkedImage) -> ImageEntry<'_> {
    ImageEntry::new(u64::try_from(image.bytes.len()).unwrap_or(u64::MAX))
        .image_kind(image.image_kind)
        .offload_kind(kind)
        .string("triple", image.target.triple())
        .string("arch", image.target.processor())
}

/// Returns the entry IDs of the bundle for HIP, as LLVM's tool names them to the bundler: an empty entry for the host, then those of the images.
#[must_use]
pub fn bundle_ids(images: &[&LinkedImage]) -> Vec<String> {
    let id = |image: &&LinkedImage| {
        let triple = match image.target.arch() {
            "amdgcnspirv" => "spirv64-amd-amdhsa",
            _ => "amdgcn-amd-amdhsa",
        };
        format!("hip-{triple}--{}", image.target.processor())
    };
    // Runtimes expect this ID, whatever the host is.
    let host = "host-x86_64-unknown-linux-gnu".to_owned();
    [host].into_iter().chain(images.iter().map(id)).collect()
}

fn bundle(images: &[&LinkedImage], options: &RegisterOptions) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::of(ErrorKind::Container, "bundle for HIP", error);
    let contents: Vec<_> =
        [&[][..]].into_iter().chain(images.iter().map(|image| &image.bytes[..])).collect();
    let sizes = contents.iter().map(|bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    let ids = bundle_ids(images);
    let ids = ids.iter().map(|id| Ok(EntryId::parse(id)?.canonical()));
    let ids = ids.collect::<Result<Vec<_>, bundle_format::Error>>().map_err(failed)?;
    let layout = bundle_format::layout(ids.iter().zip(sizes), HIP_ALIGN);
    let bundle = layout.and_then(|layout| Ok(layout.to_vec(&contents)?)).map_err(failed)?;
    match &options.compression {
        Some(compression) => ccob::compress(&bundle, compression)
            .map_err(|error| Error::of(ErrorKind::Container, "bundle for HIP", error)),
        None => Ok(bundle),
    }
}

/// Returns a fatbinary with the entries that NVIDIA's tool makes: cubins as they are.
fn fatbinary(images: &[&LinkedImage], options: &RegisterOptions) -> Result<Vec<u8>, Error> {
    // The device linker may have made a fatbinary.
    if let [image] = images
        && image.bytes.starts_with(&nv_fatbin::MAGIC)
    {
        return Ok(image.bytes.clone());
    }
    let host = Triple::parse(&options.host_triple);
    let system = match host.os() {
        os if os.starts_with("linux") => Flags::LINUX,
        os if os.starts_with("windows") => Flags::WINDOWS,
        os if os.starts_with("macos") || os.starts_with("darwin") => Flags::MACOS,
        _ => Flags::empty(),
    };
    let mut fatbinary = NewFatbin::new();
    for image in images {
        let failed = |error| Error::of(ErrorKind::Container, &image.target.to_string(), error);
        let arch = image.target.arch();
        let architecture = Architecture::from_name(arch).ok_or_else(|| {
            let text = format!("{arch} is not an architecture of CUDA: expected one such as sm_90");
            Error::new(ErrorKind::Container, text)
        })?;
        let is_elf = image.bytes.starts_with(b"\x7fELF");
        let entry = match is_elf {
            true => NewEntry::cubin(architecture, &image.bytes),
            false => NewEntry::ptx(architecture, &image.bytes),
        };
        let mut entry = entry.map_err(failed)?;
        entry.flags |= system;
        fatbinary.add(&entry).map_err(failed)?;
    }
    fatbinary.to_vec().map_err(|error| Error::of(ErrorKind::Container, "fatbinary", error))
}
