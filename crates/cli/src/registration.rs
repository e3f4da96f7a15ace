//! The way from a wrapper to its device code, as a runtime goes it.

use std::io;

use byte_parts::Source;
use fat_object::{FileFormat, Summary};
use object_edit::{Format, Registered, RegisteredWith, Target, registered};

use crate::inputs::Input;
use crate::opened::MaxInput;

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

    /// Returns the faults: wrappers that lead to no device code.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
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
        error.chain(self.wrappers.iter().filter_map(of_wrapper))
    }

    /// Returns whether no wrapper for HIP's runtime leads to a container that starts there, although all others lead to some.
    pub(crate) fn forgets(&self, container: u64) -> bool {
        let mut of_hip =
            self.wrappers.iter().filter(|one| one.with == RegisteredWith::Hip).peekable();
        of_hip.peek().is_some()
            && self.error.is_none()
            && of_hip.all(|one| {
                !matches!(one.target, Target::Unknown) && one.target != Target::Container(container)
            })
    }
}
