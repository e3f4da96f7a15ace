//! The way from a wrapper to its device code, as a runtime goes it, and back.

use std::io;

use byte_parts::Source;
use fat_object::{Container, ContainerKind, FileFormat, Location, Summary};
use object_edit::{Format, Registered, RegisteredWith, Target, registered};

use crate::inputs::Input;
use tool_kit::opened::MaxInput;

/// The containers in the sections from which runtimes get their code by wrappers.
#[derive(Debug, Default)]
pub(crate) struct Containers(Vec<InSection>);

#[derive(Debug)]
struct InSection {
    with: RegisteredWith,
    /// The offset in the file.
    at: u64,
    place: String,
}

impl Containers {
    /// Adds a container that a walk enters, if it is one of them.
    pub(crate) fn enter(&mut self, container: &Container) {
        use ContainerKind::{Bundle, Ccob, NvFatbin};
        let ([section, own], Location::File(at)) = (container.path(), container.location()) else {
            return;
        };
        let with = match (section.name(), container.kind()) {
            (".hip_fatbin" | ".hip_fat", Bundle | Ccob) => RegisteredWith::Hip,
            (".nv_fatbin" | ".nv_fatb" | "__nv_relfatbin", NvFatbin) => RegisteredWith::Cuda,
            _ => return,
        };
        self.0.push(InSection { with, at, place: format!("{section}/{own}") });
    }
}

/// The wrappers of a file, and what keeps a runtime from the code that they lead to.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    wrappers: Vec<Registered>,
    error: Option<String>,
}

impl Registration {
    /// Reads the wrappers of a linked file; none of another one.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub(crate) fn read(file: &Input, summary: &Summary, max: MaxInput) -> io::Result<Self> {
        let format = match summary.format {
            FileFormat::Elf { .. } => Format::LinkedElf,
            FileFormat::Coff => Format::Pe,
            _ => return Ok(Self::default()),
        };
        let found = file.with_reader(max, |reader| {
            let mut source = Source::new(reader)?;
            let window = 0..source.len();
            Ok(registered(&mut source, &window, format))
        })?;
        Ok(match found {
            Ok(wrappers) => Registration { wrappers, error: None },
            Err(error) if error.kind() == object_edit::ErrorKind::Read => {
                return Err(io::Error::other(error.to_string()));
            }
            Err(error) => Registration { wrappers: Vec::new(), error: Some(error.to_string()) },
        })
    }

    /// Returns the faults: wrappers that lead to no device code, and device code of HIP that none leads to. Programs may load
    /// CUDA's by themselves.
    pub(crate) fn faults(&self, containers: &Containers) -> Vec<String> {
        let of_wrapper = |&Registered { with, wrapper, target }: &Registered| {
            let (runtime, what) = match with {
                RegisteredWith::Hip => ("HIP's", "no bundle starts"),
                RegisteredWith::HipMovedOut => ("HIP's", "no marker of kernel packs starts"),
                RegisteredWith::Cuda => ("CUDA's", "no fatbinary starts"),
            };
            let place = match target {
                Target::Container(_) | Target::Unknown => return None,
                Target::Other(at) => format!("byte {at:#x}, where {what}"),
                Target::Nowhere => "an address of which the file has no byte".to_owned(),
            };
            Some(format!("the wrapper for {runtime} runtime at byte {wrapper:#x} leads to {place}"))
        };
        let error = self.error.iter().map(|error| format!("registration of device code: {error}"));
        let mut faults: Vec<String> =
            error.chain(self.wrappers.iter().filter_map(of_wrapper)).collect();
        let of_hip = containers.0.iter().filter(|one| one.with == RegisteredWith::Hip);
        for InSection { place, .. } in
            of_hip.filter(|one| self.error.is_none() && self.forgets(one))
        {
            faults.push(format!("{place}: no wrapper leads to it, so that no runtime finds it"));
        }
        faults
    }

    /// Returns whether a runtime does not get the code that starts at an offset in the file.
    pub(crate) fn loses(&self, containers: &Containers, at: u64) -> bool {
        let is_misled = |with: RegisteredWith| {
            let mut wrappers = self.wrappers.iter().filter(|one| one.with == with);
            wrappers.any(|one| matches!(one.target, Target::Other(_) | Target::Nowhere))
        };
        containers.0.iter().filter(|one| one.at == at).any(|one| {
            self.error.is_some()
                || self.forgets(one) && (one.with == RegisteredWith::Hip || is_misled(one.with))
        })
    }

    /// Returns whether no wrapper for the runtime leads to a container, although all lead to some.
    fn forgets(&self, container: &InSection) -> bool {
        let mut wrappers = self.wrappers.iter().filter(|one| one.with == container.with).peekable();
        wrappers.peek().is_some()
            && wrappers.all(|one| {
                !matches!(one.target, Target::Unknown)
                    && one.target != Target::Container(container.at)
            })
    }
}
