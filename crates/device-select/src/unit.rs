//! Containers as a runtime sees them: sets of images; a device gets one of each.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use fat_object::{ContainerKind, FileFormat};
use target_id::NvidiaArch;

use crate::candidate::Candidate;
use crate::device::Device;
use crate::few::each_once;
use crate::runtime::Runtime;
use crate::vendor::Vendor;

/// The images from which a device gets one: a bundle, a fatbinary, a registered offload binary, all offload binaries of
/// another section, an abstract module of a SYCLBIN, all sections of a bundle in its object form, or all images that a
/// scan found in no container; and of these, what one runtime loads.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The containers from outside in, each as `kind:name`.
    pub(crate) path: Vec<String>,
    pub(crate) runtime: Runtime,
    /// `true` if other images of the same container belong to another runtime.
    pub(crate) is_shared: bool,
    pub(crate) compressed: bool,
    pub(crate) candidates: Vec<Candidate>,
    /// The container around, and that around the section in which the unit lies.
    pub(crate) container: usize,
    pub(crate) host: usize,
    pub(crate) section: String,
    /// `true` if a scan found the images in no container.
    pub(crate) loose: bool,
    /// The abstract module of a SYCLBIN whose images these are.
    pub(crate) module: Option<u32>,
    /// `true` if these are graphics shaders, which the program itself hands to the driver.
    pub(crate) shaders: bool,
    /// The offset of the container in the file, if it starts there as it is.
    pub(crate) offset: Option<u64>,
    /// `true` if no runtime finds it.
    pub(crate) is_lost: bool,
}

impl Unit {
    /// Describes a container by its images, which are taken to be all that one runtime chooses from.
    #[must_use]
    pub fn new(mut candidates: Vec<Candidate>) -> Self {
        for (index, candidate) in candidates.iter_mut().enumerate() {
            candidate.set_index(index);
        }
        let mut runtimes = candidates.iter().map(|image| Runtime::of(image.target().kind()));
        Unit {
            path: Vec::new(),
            runtime: runtimes.find(|one| *one != Runtime::Other).unwrap_or(Runtime::Other),
            is_shared: false,
            compressed: candidates.iter().any(|image| image.container() == ContainerKind::Ccob),
            candidates,
            container: 0,
            host: 0,
            section: String::new(),
            loose: false,
            module: None,
            shaders: false,
            offset: None,
            is_lost: false,
        }
    }

    /// Says that no runtime finds it: nothing that the program registers leads there. No device is given any of its images.
    pub fn set_lost(&mut self) {
        self.is_lost = true;
    }

    /// Returns the offset of its container in the file; for a compressed one, of the outermost. `None` for images in no
    /// container.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Puts the unit into a section of an object: CUDA links code of some sections of the same object when it is
    /// loaded.
    #[must_use]
    pub fn with_section(mut self, object: usize, section: &str) -> Self {
        self.host = object;
        section.clone_into(&mut self.section);
        self.path = vec![format!("section:{section}")];
        self
    }

    /// Returns the containers from outside in, each as `kind:name`.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the runtime that chooses.
    #[must_use]
    pub fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// Returns the images, in file order.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the place in one line. A compressed bundle holds one bundle, which need not be named.
    #[must_use]
    pub fn place(&self) -> String {
        let mut path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match (&path[..], self.candidates.first().map(Candidate::container)) {
            ([.., ccob, "bundle:0"], _) if ccob.starts_with("ccob:") => {
                path.pop();
            }
            ([_], _) if self.module.is_some() => path.insert(0, "offload-binary:*"),
            _ if self.shaders => path.push("loose shaders"),
            _ if self.loose => path.push("loose images"),
            (_, Some(ContainerKind::Section)) => path.push("section:__CLANG_OFFLOAD_BUNDLE__*"),
            ([], Some(ContainerKind::File)) => path.push("the file"),
            (_, Some(ContainerKind::File)) => path.push("member:*"),
            ([], _) => path.push("offload-binary:*"),
            _ => {}
        }
        let place = path.join("/");
        if self.is_shared { format!("{place} ({})", self.runtime) } else { place }
    }

    /// Returns the object file whose relocatable CUDA code it is. The runtime links such code from PTX where the code
    /// that was linked at build time does not fit.
    pub(crate) fn relocatable_in(&self) -> Option<usize> {
        matches!(&*self.section, "__nv_relfatbin" | "__nv_rel").then_some(self.host)
    }

    /// Returns the object file whose CUDA code, which may be linked, it is.
    pub(crate) fn linked_in(&self) -> Option<usize> {
        matches!(&*self.section, ".nv_fatbin" | ".nv_fatb").then_some(self.host)
    }

    /// Returns the number of the abstract module of a SYCLBIN whose images these are.
    #[must_use]
    pub fn module(&self) -> Option<u32> {
        self.module
    }

    /// Returns whether its images lie in no container: a scan found them.
    #[must_use]
    pub fn is_loose(&self) -> bool {
        self.loose
    }

    /// Returns whether these are graphics shaders, which no runtime of GPU computing loads.
    #[must_use]
    pub fn is_graphics(&self) -> bool {
        self.shaders
    }

    /// Returns the vendor whose GPUs it is for, if all its images show it and agree.
    #[must_use]
    pub fn vendor(&self) -> Option<Vendor> {
        let is_code = |candidate: &&Candidate| !candidate.is_host() && !candidate.is_metadata();
        let mut devices = self.candidates.iter().filter(is_code);
        let first = devices.next()?.vendor();
        first.filter(|_| devices.all(|candidate| candidate.vendor() == first))
    }

    /// Returns whether it is for GPUs of another vendor, or for graphics, so that other units decide about this GPU.
    pub(crate) fn is_foreign(&self, gpu: &Device) -> bool {
        self.shaders || self.vendor().is_some_and(|vendor| vendor != gpu.vendor())
    }

    /// Returns the targets that it has code for, each once, in file order: `gfx906`, `gfx906 (holds gfx1250)`.
    #[must_use]
    pub fn built_for(&self) -> Vec<Cow<'_, str>> {
        each_once(self.with_code().map(Candidate::code_for))
    }

    /// Returns the images for devices that may hold kernels.
    fn with_code(&self) -> impl Iterator<Item = &Candidate> {
        let is_nothing =
            |image: &Candidate| image.is_host() || image.is_empty() || image.is_metadata();
        self.candidates.iter().filter(move |candidate| !is_nothing(candidate))
    }

    /// Returns whether its images only describe others.
    pub(crate) fn is_metadata(&self) -> bool {
        !self.candidates.is_empty() && self.candidates.iter().all(Candidate::is_metadata)
    }

    /// Returns whether all its images for devices are known to hold no kernel, and there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.with_code().next().is_none() && !self.candidates.iter().all(Candidate::is_host)
    }

    /// Returns whether all its code is for newer NVIDIA GPUs, or for the features of others.
    pub(crate) fn is_for_newer(&self, gpu: &Device) -> bool {
        let Ok(gpu) = NvidiaArch::parse(gpu.id().processor()) else { return false };
        let is_beyond = |arch: NvidiaArch| {
            !arch.is_portable() || (arch.major(), arch.minor()) > (gpu.major(), gpu.minor())
        };
        let mut images = self.with_code().map(|image| NvidiaArch::parse(image.target().id()));
        images.all(|arch| arch.is_ok_and(is_beyond))
    }

    /// Returns whether the program decides if it is loaded: a kernel of it is asked for, or it is handed to the driver.
    pub(crate) fn is_chosen_by_program(&self) -> bool {
        self.runtime == Runtime::Cuda || self.loose || self.module.is_some()
    }

    /// Returns whether all its code is LTO-IR.
    #[must_use]
    pub fn is_lto_ir(&self) -> bool {
        !self.is_empty() && self.with_code().all(|image| image.format() == FileFormat::LtoIr)
    }

    /// Returns whether all its code uses features that only some NVIDIA GPUs have (`sm_90a`, `sm_100f`).
    #[must_use]
    pub fn is_specific(&self) -> bool {
        let mut images = self.with_code().map(|image| NvidiaArch::parse(image.target().id()));
        !self.is_empty() && images.all(|arch| arch.is_ok_and(|arch| !arch.is_portable()))
    }
}
