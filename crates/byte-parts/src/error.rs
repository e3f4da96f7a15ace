use core::fmt;

/// Error about the inputs of an output. Exhaustive, so that a format can translate it into errors of its own.
#[derive(Debug)]
pub enum Error {
    /// The number of inputs is not the planned one.
    InputCount {
        /// Planned inputs.
        expected: u64,
        /// Inputs that were given, or one more than were planned.
        found: u64,
    },
    /// An input has another size than was planned.
    InputSize {
        /// Index of the input.
        input: usize,
        /// Planned size in bytes.
        expected: u64,
        /// Size in bytes; of a stream that is too long at most one byte more than was planned.
        found: u64,
    },
    /// Memory for the output cannot be had.
    OutOfMemory {
        /// Size of the output in bytes.
        size: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InputCount { expected, found } => {
                write!(f, "expected {expected} inputs, found {found}")
            }
            Self::InputSize { input, expected, found } => {
                write!(f, "input {input}: expected {expected} bytes, found {found}")
            }
            Self::OutOfMemory { size } => {
                write!(f, "the output of {size} bytes does not fit into memory")
            }
        }
    }
}

impl core::error::Error for Error {}

/// Error of writing an output.
#[cfg(feature = "std")]
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The inputs are not the planned ones.
    Input(Error),
    /// An input cannot be read.
    Read(std::io::Error),
    /// The output cannot be written.
    Write(std::io::Error),
}

#[cfg(feature = "std")]
impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => fmt::Display::fmt(error, f),
            Self::Read(error) => write!(f, "reading an input: {error}"),
            Self::Write(error) => write!(f, "writing the output: {error}"),
        }
    }
}

#[cfg(feature = "std")]
impl core::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // Its text is the whole text.
            Self::Input(error) => core::error::Error::source(error),
            Self::Read(error) | Self::Write(error) => Some(error),
        }
    }
}

#[cfg(feature = "std")]
impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Input(error)
    }
}

/// The error of the input or output; wrong inputs are [`InvalidInput`](std::io::ErrorKind::InvalidInput), with the
/// [`Error`] inside.
#[cfg(feature = "std")]
impl From<WriteError> for std::io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Input(error) => Self::new(std::io::ErrorKind::InvalidInput, error),
            WriteError::Read(error) | WriteError::Write(error) => error,
        }
    }
}
