//! The way of a runtime from a wrapper to the device code that it registers.

use std::ops::Range;

use byte_parts::Source;

use crate::error::{Error, ErrorKind};
use crate::linked::edit::Format;
use crate::linked::registration::{CUDA, HIP, HIP_MOVED, Registration};
use crate::linked::{elf, pe};

/// A runtime that gets device code by wrappers.
///
/// Exhaustive: a new runtime must stop the build of a caller that knows what each loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisteredWith {
    /// HIP's.
    Hip,
    /// HIP's, with device code in archives beside the file.
    HipMovedOut,
    /// CUDA's.
    Cuda,
}

/// A wrapper, and the place that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registered {
    /// The runtime that it is for.
    pub with: RegisteredWith,
    /// Its offset in the file.
    pub wrapper: u64,
    /// The place that it leads to.
    pub target: Target,
}

/// The place that a wrapper leads to.
///
/// Exhaustive: a new answer must stop the build of a caller that tells faults from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The start of a container, or of a marker where device code was moved out: an offset in the file.
    Container(u64),
    /// Other bytes at an offset in the file: the runtime reads garbage.
    Other(u64),
    /// An address without a byte in the file.
    Nowhere,
    /// Only a loader knows: the pointer has a form that is not read.
    Unknown,
}

/// Returns the wrappers of the linked file in the window and where they lead, in the order of their addresses; none for a file of
/// another format.
///
/// # Errors
///
/// [`Malformed`](crate::ErrorKind::Malformed), also for a wrapper with another magic or version than its section says, and
/// [`Read`](crate::ErrorKind::Read).
pub fn registered(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
) -> Result<Vec<Registered>, Error> {
    let mut all = Vec::new();
    for with in [RegisteredWith::Hip, RegisteredWith::Cuda] {
        let (with, found) = wrappers(source, window, format, with)?;
        for (wrapper, led) in found {
            let target = of(source, window, with.registration(), led)?;
            all.push(Registered { with, wrapper, target });
        }
    }
    Ok(all)
}

impl RegisteredWith {
    fn registration(self) -> &'static Registration {
        match self {
            RegisteredWith::Hip => &HIP,
            RegisteredWith::HipMovedOut => &HIP_MOVED,
            RegisteredWith::Cuda => &CUDA,
        }
    }
}

/// A runtime, and the offset of each of its wrappers with the place that it leads to.
type Found = (RegisteredWith, Vec<(u64, Led)>);

/// Returns the wrappers of a linked file for a runtime, in the order of their addresses. They may be those of device code that
/// was moved out. Another file, or one whose headers cannot be read, has none.
pub(crate) fn wrappers(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
    with: RegisteredWith,
) -> Result<Found, Error> {
    let registration = with.registration();
    let found = match format {
        Format::LinkedElf => elf::moved_out::targets(source, window, registration),
        Format::Pe => pe::moved_out::targets(source, window, registration),
        Format::ElfObject | Format::Coff => Ok(Vec::new()),
    };
    match found {
        Err(error) if error.is_moved_out() && with == RegisteredWith::Hip => {
            wrappers(source, window, format, RegisteredWith::HipMovedOut)
        }
        found => Ok((with, found?)),
    }
}

/// Returns what was read of a file; `None` if it is not of the format, or malformed.
pub(crate) fn readable<T>(file: Result<T, Error>) -> Result<Option<T>, Error> {
    match file {
        Err(error) if error.kind() != ErrorKind::Read => Ok(None),
        file => file.map(Some),
    }
}

/// A place that a pointer leads to: an offset in the file, `Some(None)` for none, `None` if it is not known.
pub(crate) type Led = Option<Option<u64>>;

/// Returns what is at a place.
fn of(
    source: &mut Source<'_>,
    window: &Range<u64>,
    registration: &Registration,
    led: Led,
) -> std::io::Result<Target> {
    Ok(match led {
        None => Target::Unknown,
        Some(None) => Target::Nowhere,
        Some(Some(at)) => {
            let longest = registration.magics.iter().map(|magic| magic.len()).max().unwrap_or(0);
            let head = source.peek(&(at..window.end.max(at)), longest)?;
            if registration.magics.iter().any(|magic| head.starts_with(magic)) {
                Target::Container(at)
            } else {
                Target::Other(at)
            }
        }
    })
}
