//! What a runtime chooses from: the images of a file, sorted into sets of which a device gets one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::Path;

use fat_object::{
    Container, ContainerKind, Disagreement, Error, Finding, Image, ImageFormat, Location, ReadSeek,
    Segment, Visitor,
};
use target_id::{NvidiaArch, NvidiaScope, OffloadKind, Target};

use crate::devices::{Code, Device, Vendor};
use crate::naming::{marked, triple_text};
use crate::{input, report};

/// The runtime that loads images of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(super) enum Runtime {
    Hip,
    Openmp,
    Cuda,
    Sycl,
    /// Of any other kind, or of the host only.
    #[value(skip)]
    Other,
}

impl Runtime {
    fn of(kind: Option<&OffloadKind>) -> Self {
        match kind {
            Some(OffloadKind::Hip | OffloadKind::HipV4) => Runtime::Hip,
            Some(OffloadKind::OpenMp) => Runtime::Openmp,
            Some(OffloadKind::Cuda) => Runtime::Cuda,
            Some(OffloadKind::Sycl) => Runtime::Sycl,
            _ => Runtime::Other,
        }
    }

    pub(super) fn as_str(self) -> Option<&'static str> {
        match self {
            Runtime::Hip => Some("hip"),
            Runtime::Openmp => Some("openmp"),
            Runtime::Cuda => Some("cuda"),
            Runtime::Sycl => Some("sycl"),
            Runtime::Other => None,
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Hip => "HIP",
            Runtime::Openmp => "OpenMP",
            Runtime::Cuda => "CUDA",
            Runtime::Sycl => "SYCL",
            Runtime::Other => "other kinds",
        })
    }
}

/// An image and what it is for.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Position among all images of the file.
    pub(super) index: usize,
    /// What decides whether it fits.
    pub(super) target: Target,
    /// Its target ID as the container has it.
    pub(super) stored_id: String,
    pub(super) id: Option<String>,
    pub(super) format: ImageFormat,
    pub(super) size: u64,
    pub(super) container: ContainerKind,
    /// Presence of machine code; `None` if it is not known.
    pub(super) holds_code: Option<bool>,
    /// The contradiction between the target and the image.
    pub(super) disagreement: Option<Disagreement>,
    /// Its name where it says what there is code for: its [label](Self::label), and what it holds instead.
    code_for: String,
    /// Kernels that a table of SYCL's, or an HCF container, says are in it; `None` if there is neither.
    pub(super) kernels: Option<Vec<String>>,
    /// IP versions of the GPUs that an archive of machine code of SYCL's is for.
    pub(super) gpus: Option<Vec<String>>,
}

impl Candidate {
    fn new(image: &mut Image<'_, '_>) -> io::Result<Self> {
        let candidate = Candidate {
            holds_code: image.holds_code()?,
            kernels: match (image.sycl(), image.hcf()) {
                (Some(sycl), _) => Some(sycl.kernels().map(str::to_owned).collect()),
                (None, Some(hcf)) => Some(hcf.kernels().map(str::to_owned).collect()),
                (None, None) => None,
            },
            // Nothing is known of damaged ones.
            gpus: match image.sycl() {
                Some(_) => image.archived_gpus().unwrap_or_default(),
                None => None,
            },
            index: image.index(),
            target: image.loaded_as().into_owned(),
            stored_id: image.target().id().to_owned(),
            id: image.id().map(str::to_owned),
            format: image.format(),
            size: image.size(),
            container: image.container(),
            disagreement: image.disagreement().cloned(),
            code_for: String::new(),
        };
        let code_for = marked(candidate.label(), image.disagreement());
        Ok(Candidate { code_for, ..candidate })
    }

    /// Returns whether it is known to hold no kernel.
    pub(super) fn is_empty(&self) -> bool {
        self.holds_code == Some(false)
    }

    pub(super) fn is_host(&self) -> bool {
        self.target.kind() == Some(&OffloadKind::Host)
    }

    pub(super) fn code(&self) -> Code<'_> {
        Code {
            target: Cow::Borrowed(&self.target),
            format: self.format,
            size: self.size,
            container: self.container,
            disagreement: self.disagreement.as_ref(),
            is_registered: self.kernels.is_some() && self.container != ContainerKind::Hcf,
            gpus: self.gpus.as_deref(),
        }
    }

    /// The vendor whose runtimes load it, as far as the container tells.
    pub(super) fn vendor(&self) -> Option<Vendor> {
        self.code().vendor()
    }

    /// What it is called: its target ID, else its triple or kind.
    pub(super) fn label(&self) -> &str {
        match self.target.id() {
            "" if self.is_host() => "host",
            "" => triple_text(&self.target)
                .or(self.target.kind().map(OffloadKind::as_str))
                .unwrap_or("(unnamed)"),
            id => id,
        }
    }
}

/// Sections of device code that HIP's wrappers lead to: each bundle or offload binary in them is registered by itself.
const REGISTERED_SECTIONS: [&str; 3] = [".hip_fatbin", ".hip_fat", "__hip_fatbin"];

/// Linkers align what is registered by itself to this.
const PAGE: u64 = 4096;

/// The images of which a device gets one: a bundle, a fatbinary, a registered offload binary, all packages of another
/// section, all sections of a bundle in its object form, or all images that a scan found in no container; and of these,
/// what one runtime loads.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The containers from outside in, each as `kind:name`.
    pub(super) path: Vec<String>,
    pub(super) runtime: Runtime,
    /// Whether other images of the same container belong to another runtime.
    pub(super) is_shared: bool,
    pub(super) compressed: bool,
    pub(super) candidates: Vec<Candidate>,
    /// The container around, and that around the section in which the unit lies.
    container: usize,
    host: usize,
    section: String,
    /// `true` if a scan found the images in no container.
    loose: bool,
    /// `true` if these are graphics shaders, which the program itself hands to the driver.
    shaders: bool,
}

impl Unit {
    /// The place in one line, as messages have it. A compressed bundle holds one bundle, which need not be named.
    pub(super) fn place(&self) -> String {
        let mut path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match (&path[..], self.candidates.first().map(|first| first.container)) {
            ([.., ccob, "bundle:0"], _) if ccob.starts_with("ccob:") => {
                path.pop();
            }
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

    /// The object file of which it is relocatable CUDA code. The runtime links such code from PTX where the code
    /// that was linked at build time does not fit.
    pub(super) fn relocatable_in(&self) -> Option<usize> {
        matches!(&*self.section, "__nv_relfatbin" | "__nv_rel").then_some(self.host)
    }

    /// The object file of which it is CUDA code that may be linked.
    pub(super) fn linked_in(&self) -> Option<usize> {
        matches!(&*self.section, ".nv_fatbin" | ".nv_fatb").then_some(self.host)
    }

    /// Whose GPUs it is for, if all its images say so and agree.
    pub(super) fn vendor(&self) -> Option<Vendor> {
        let mut devices = self.candidates.iter().filter(|candidate| !candidate.is_host());
        let first = devices.next()?.vendor();
        first.filter(|_| devices.all(|candidate| candidate.vendor() == first))
    }

    /// Returns whether other units say what runs on a GPU: it is for GPUs of another vendor, or for graphics.
    pub(super) fn is_foreign(&self, gpu: &Device) -> bool {
        self.shaders || self.vendor().is_some_and(|vendor| vendor != gpu.vendor())
    }

    /// What there is code for, each once, in file order.
    pub(super) fn built_for(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let labels = self.with_code().map(|candidate| &candidate.code_for[..]);
        labels.filter(|label| seen.insert(*label)).collect()
    }

    /// The images for devices that may hold kernels.
    fn with_code(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| !candidate.is_host() && !candidate.is_empty())
    }

    /// Returns whether all its images for devices are known to hold no kernel, and there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.with_code().next().is_none() && !self.candidates.iter().all(Candidate::is_host)
    }

    /// Returns whether all its code uses features that only some NVIDIA GPUs have (`sm_90a`, `sm_100f`).
    pub(super) fn is_specific(&self) -> bool {
        let mut images = self.with_code().map(|image| NvidiaArch::parse(image.target.id()));
        !self.is_empty()
            && images.all(|arch| arch.is_ok_and(|arch| arch.scope() != NvidiaScope::Portable))
    }
}

/// Collects the units of one file, and reports what is wrong in it.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    path: &'a Path,
    file: &'a str,
    only: &'a [Runtime],
    units: Vec<Unit>,
    /// Positions in `units`.
    by_container: HashMap<(usize, Runtime, bool, bool), usize>,
    pub(super) errors: usize,
    /// Size of the files that a thin archive names.
    pub(super) thin_size: u64,
    /// What to say of the file.
    pub(super) complaints: Vec<report::Complaint>,
    /// The containers around.
    around: Vec<Around>,
    containers: usize,
    /// The offload binary in a section of registered ones that was entered last: the first of its unit, and where it ends.
    registered: Option<(Around, u64)>,
}

/// A container around what is walked.
#[derive(Clone, Debug)]
struct Around {
    number: usize,
    /// The name of a section.
    section: Option<String>,
    start: u64,
    /// The containers from outside in, up to the first offload binary of the unit, if it is a registered one.
    unit: Option<Vec<String>>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(path: &'a Path, file: &'a str, only: &'a [Runtime]) -> Self {
        Collector {
            path,
            file,
            only,
            units: Vec::new(),
            by_container: HashMap::new(),
            errors: 0,
            thin_size: 0,
            complaints: Vec::new(),
            around: Vec::new(),
            containers: 0,
            registered: None,
        }
    }

    /// The first offload binary of the unit that this one belongs to, if both are registered. Version 1 has one for each
    /// image, one directly after the other.
    fn registered(&mut self, container: &Container<'_>, new: &Around) -> Option<Around> {
        let section = self.around.last()?;
        let is_registered =
            section.section.as_deref().is_some_and(|name| REGISTERED_SECTIONS.contains(&name));
        if container.kind() != ContainerKind::OffloadBinary || !is_registered {
            return None;
        }
        let into = new.start.saturating_sub(section.start);
        let follows = |(first, end): &(Around, u64)| {
            first.number > section.number && *end == new.start && !into.is_multiple_of(PAGE)
        };
        let path = || container.path().iter().map(|s| format!("{}:{}", s.kind(), s.name()));
        let (first, _) = (self.registered.take().filter(follows))
            .unwrap_or_else(|| (Around { unit: Some(path().collect()), ..new.clone() }, 0));
        let end = new.start.saturating_add(container.size());
        self.registered = Some((first.clone(), end));
        Some(first)
    }

    /// The units, when the walk is over.
    pub(super) fn finish(self) -> Vec<Unit> {
        // Host code belongs to no runtime: it goes with the first one of its container, if there is one.
        let is_device = |unit: &Unit| !unit.candidates.iter().all(Candidate::is_host);
        let mut devices: HashMap<usize, usize> = HashMap::new();
        for unit in self.units.iter().filter(|unit| is_device(unit)) {
            *devices.entry(unit.container).or_default() += 1;
        }
        let (mut units, hosts): (Vec<_>, Vec<_>) = (self.units.into_iter())
            .partition(|unit| is_device(unit) || !devices.contains_key(&unit.container));
        let mut hosts: HashMap<usize, Unit> =
            hosts.into_iter().map(|host| (host.container, host)).collect();
        for unit in &mut units {
            unit.is_shared = devices.get(&unit.container).is_some_and(|count| *count > 1);
            if let Some(host) = hosts.remove(&unit.container) {
                unit.candidates.extend(host.candidates);
                unit.candidates.sort_by_key(|candidate| candidate.index);
            }
        }
        if !self.only.is_empty() {
            units.retain(|unit| self.only.contains(&unit.runtime));
        }
        units
    }
}

impl Visitor for Collector<'_> {
    fn enter(&mut self, container: &Container<'_>) -> io::Result<()> {
        if container.kind() == ContainerKind::Member
            && container.location() == Location::ThinMember(0)
        {
            self.thin_size = self.thin_size.saturating_add(container.size());
        }
        self.containers += 1;
        let section = (container.path().last())
            .filter(|segment| segment.kind() == ContainerKind::Section)
            .map(|segment| segment.name().to_owned());
        let start = match container.location() {
            Location::File(start)
            | Location::Decompressed(start)
            | Location::ThinMember(start)
            | Location::Bitcode(start) => start,
            _ => 0,
        };
        let new = Around { number: self.containers, section, start, unit: None };
        let around = self.registered(container, &new).unwrap_or(new);
        self.around.push(around);
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.around.pop();
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        // Each package holds an image or some, and each section of the object form one, as does each place that a scan
        // found: the runtime chooses among all of them.
        let loose = image.path().last().is_some_and(Segment::is_found_by_scan);
        let parts = loose
            || matches!(
                image.container(),
                ContainerKind::OffloadBinary | ContainerKind::Section | ContainerKind::File
            );
        let unit = self.around.last().and_then(|around| around.unit.as_ref());
        let depth = self.around.len().saturating_sub(usize::from(parts && unit.is_none()));
        let around = self.around.get(..depth).unwrap_or_default();
        let container = around.last().map_or(0, |around| around.number);
        let runtime = Runtime::of(image.target().kind());
        let candidate = Candidate::new(image)?;
        let shaders = loose && candidate.code().is_shader();
        let known = (container, runtime, loose, shaders);
        let known = *self.by_container.entry(known).or_insert(self.units.len());
        if let Some(unit) = self.units.get_mut(known) {
            unit.candidates.push(candidate);
            return Ok(());
        }
        let section_at = around.iter().rposition(|around| around.section.is_some());
        let section = section_at.and_then(|at| around.get(at)?.section.clone());
        let host_at = section_at.and_then(|at| at.checked_sub(1));
        let host = host_at.and_then(|at| around.get(at)).map_or(0, |around| around.number);
        let segments = image.path().get(..depth).unwrap_or(image.path());
        let path = || segments.iter().map(|s| format!("{}:{}", s.kind(), s.name())).collect();
        self.units.push(Unit {
            path: unit.cloned().unwrap_or_else(path),
            runtime,
            is_shared: false,
            compressed: image.compressed_bundle().is_some(),
            candidates: vec![candidate],
            container,
            host,
            section: section.unwrap_or_default(),
            loose,
            shaders,
        });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        if finding.severity() == fat_object::Severity::Error {
            self.errors += 1;
        }
        // The table says it of the image.
        if matches!(finding.error(), Error::Disagreement { .. }) {
            return Ok(());
        }
        self.complaints.push(report::Complaint::new(self.file, finding));
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        input::open_thin_member(self.path, name)
    }
}

#[cfg(test)]
impl Unit {
    /// A unit of images that are called so: bundle entry IDs.
    pub(super) fn of(container: ContainerKind, images: &[(&str, ImageFormat)]) -> Self {
        let candidates: Vec<_> = (images.iter().enumerate())
            .map(|(index, (id, format))| {
                let stored = bundle_format::EntryId::parse(id).unwrap().target();
                let candidate = Candidate {
                    index,
                    // As an image says it.
                    target: match format {
                        ImageFormat::Ptx => {
                            bundle_format::EntryId::parse(&id.replace("sm_", "compute_"))
                                .unwrap()
                                .target()
                        }
                        _ => stored.clone(),
                    },
                    stored_id: stored.id().to_owned(),
                    id: None,
                    format: *format,
                    size: 1,
                    container,
                    holds_code: None,
                    kernels: None,
                    gpus: None,
                    disagreement: None,
                    code_for: String::new(),
                };
                let code_for = candidate.label().to_owned();
                Candidate { code_for, ..candidate }
            })
            .collect();
        let kinds = candidates.iter().map(|candidate| Runtime::of(candidate.target.kind()));
        Unit {
            path: vec!["section:.text".to_owned()],
            runtime: kinds.clone().find(|kind| *kind != Runtime::Other).unwrap_or(Runtime::Other),
            is_shared: false,
            compressed: container == ContainerKind::Ccob,
            candidates,
            container: 0,
            host: 0,
            section: String::new(),
            loose: false,
            shaders: false,
        }
    }

    /// The same in a section of an object file.
    pub(super) fn in_section(mut self, host: usize, section: &str) -> Self {
        self.host = host;
        section.clone_into(&mut self.section);
        self
    }
}
