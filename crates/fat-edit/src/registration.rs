//! The way from a wrapper to its device code, as a runtime goes it, and back.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek};

use byte_parts::Source;
use fat_object::{Container, ContainerKind, FileFormat, Location};
use object_edit::{Format, Registered, RegisteredWith, Target, registered};

/// The containers of a file in the sections from which runtimes get their code by wrappers: a walk
/// [adds](Self::enter) them.
#[derive(Debug, Default)]
pub struct Registrable(Vec<InSection>);

#[derive(Debug)]
struct InSection {
    with: RegisteredWith,
    /// The offset in the file.
    at: u64,
    place: String,
}

impl Registrable {
    /// Adds a container that a walk enters, if it is one of them.
    pub fn enter(&mut self, container: &Container) {
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

    /// Reads the wrappers of the file, of the format that the walk found. Files that are not linked have none.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    pub fn registration<R: Read + Seek>(
        self,
        format: FileFormat,
        input: R,
    ) -> io::Result<Registration> {
        let (mut containers, format) = match format {
            FileFormat::Elf { .. } => (self.0, Format::LinkedElf),
            FileFormat::Coff | FileFormat::Pe => (self.0, Format::Pe),
            _ => return Ok(Registration::default()),
        };
        let mut source = Source::new(input)?;
        let window = 0..source.len();
        let (wrappers, error) = match registered(&mut source, &window, format) {
            Ok(wrappers) => (wrappers, None),
            Err(error) if error.kind() == object_edit::ErrorKind::Read => return Err(error.into()),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        containers.sort_by_key(|one| one.at);
        let of = |with| Ends::of(wrappers.iter().filter(|one| one.with == with));
        let (hip, cuda) = (of(RegisteredWith::Hip), of(RegisteredWith::Cuda));
        Ok(Registration { containers, wrappers, hip, cuda, error })
    }
}

/// The wrappers of a file, and what keeps a runtime from the code that they lead to.
///
/// ```
/// use std::fs::File;
///
/// use fat_edit::Registrable;
/// use fat_object::{Container, Image, Options, Visitor};
///
/// struct Enters(Registrable);
///
/// impl Visitor for Enters {
///     fn enter(&mut self, container: &Container) -> std::io::Result<()> {
///         self.0.enter(container);
///         Ok(())
///     }
///
///     fn image(&mut self, _: &mut Image<'_, '_>) -> std::io::Result<()> {
///         Ok(())
///     }
/// }
///
/// let mut file = File::open("../../examples/data/hip-two-units.so")?;
/// let mut enters = Enters(Registrable::default());
/// let summary = fat_object::walk(&mut file, &Options::default(), &mut enters)?;
/// let registration = enters.0.registration(summary.format, &mut file)?;
/// assert_eq!(registration.faults(), [""; 0]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Registration {
    /// By offset.
    containers: Vec<InSection>,
    wrappers: Vec<Registered>,
    hip: Ends,
    cuda: Ends,
    error: Option<String>,
}

/// The ends to which the wrappers for one runtime lead.
#[derive(Debug, Default)]
struct Ends {
    /// The offsets of containers.
    containers: BTreeSet<u64>,
    /// One leads to where only a loader knows.
    is_unknown: bool,
    /// One leads to no container.
    is_misled: bool,
}

impl Ends {
    fn of<'r>(wrappers: impl Iterator<Item = &'r Registered>) -> Self {
        let mut ends = Ends::default();
        for wrapper in wrappers {
            match wrapper.target {
                Target::Container(at) => drop(ends.containers.insert(at)),
                Target::Unknown => ends.is_unknown = true,
                Target::Other(_) | Target::Nowhere => ends.is_misled = true,
            }
        }
        ends
    }

    /// Returns whether no wrapper leads to a container at an offset, although all lead to some.
    fn forget(&self, at: u64) -> bool {
        let any = self.is_misled || !self.containers.is_empty();
        any && !self.is_unknown && !self.containers.contains(&at)
    }
}

impl Registration {
    /// Returns the faults: wrappers that lead to no device code, and device code of HIP that none leads to. Programs may load
    /// CUDA's by themselves.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let of_wrapper = |&Registered { with, wrapper, target, .. }: &Registered| {
            let (runtime, what) = match with {
                RegisteredWith::Hip => ("HIP's", "no bundle starts"),
                RegisteredWith::HipMovedOut => ("HIP's", "no marker of kernel packs starts"),
                RegisteredWith::Cuda => ("CUDA's", "no fatbinary starts"),
            };
            let place = match target {
                Target::Container(_) | Target::Unknown => return None,
                Target::Other(at) => format!("byte {at:#x}, where {what}"),
                Target::Nowhere => "an address without a byte in the file".to_owned(),
            };
            Some(format!("the wrapper for {runtime} runtime at byte {wrapper:#x} leads to {place}"))
        };
        if let Some(error) = &self.error {
            return vec![format!("registration of device code: {error}")];
        }
        let of_hip = self.containers.iter().filter(|one| one.with == RegisteredWith::Hip);
        let forgotten = of_hip.filter(|one| self.hip.forget(one.at)).map(|one| {
            format!("{}: no wrapper leads to it, so that no runtime finds it", one.place)
        });
        self.wrappers.iter().filter_map(of_wrapper).chain(forgotten).collect()
    }

    /// Returns whether a runtime does not get the code that starts at an offset in the file.
    #[must_use]
    pub fn loses(&self, at: u64) -> bool {
        let start = self.containers.partition_point(|one| one.at < at);
        let mut here = self.containers.iter().skip(start).take_while(|one| one.at == at);
        here.any(|one| {
            let is_bad = one.with == RegisteredWith::Hip || self.ends(one.with).is_misled;
            self.error.is_some() || is_bad && self.ends(one.with).forget(at)
        })
    }

    /// Returns where the wrappers for a runtime lead, to which containers in sections belong.
    fn ends(&self, with: RegisteredWith) -> &Ends {
        match with {
            RegisteredWith::Hip | RegisteredWith::HipMovedOut => &self.hip,
            RegisteredWith::Cuda => &self.cuda,
        }
    }
}
