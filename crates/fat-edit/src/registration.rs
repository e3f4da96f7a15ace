//! The way from a wrapper to its device code, as a runtime goes it, and back.

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
        let (containers, format) = match format {
            FileFormat::Elf { .. } => (self.0, Format::LinkedElf),
            FileFormat::Coff | FileFormat::Pe => (self.0, Format::Pe),
            _ => return Ok(Registration::default()),
        };
        let mut source = Source::new(input)?;
        let window = 0..source.len();
        let (wrappers, error) = match registered(&mut source, &window, format) {
            Ok(wrappers) => (wrappers, None),
            Err(error) if error.kind() == object_edit::ErrorKind::Read => {
                return Err(io::Error::other(error.to_string()));
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Ok(Registration { containers, wrappers, error })
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
    containers: Vec<InSection>,
    wrappers: Vec<Registered>,
    error: Option<String>,
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
        let forgotten = of_hip.filter(|one| self.forgets(one)).map(|one| {
            format!("{}: no wrapper leads to it, so that no runtime finds it", one.place)
        });
        self.wrappers.iter().filter_map(of_wrapper).chain(forgotten).collect()
    }

    /// Returns whether a runtime does not get the code that starts at an offset in the file.
    #[must_use]
    pub fn loses(&self, at: u64) -> bool {
        let is_misled = |with: RegisteredWith| {
            let mut wrappers = self.wrappers.iter().filter(|one| one.with == with);
            wrappers.any(|one| matches!(one.target, Target::Other(_) | Target::Nowhere))
        };
        self.containers.iter().filter(|one| one.at == at).any(|one| {
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
