/// Error about the inputs of an output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The number of inputs is not the planned one.
    #[error("expected {expected} inputs, found {found}")]
    InputCount {
        /// Planned inputs.
        expected: u64,
        /// Inputs that were given, or one more than were planned.
        found: u64,
    },
    /// An input has another size than was planned.
    #[error("input {input}: expected {expected} bytes, found {found}")]
    InputSize {
        /// Index of the input.
        input: usize,
        /// Planned size in bytes.
        expected: u64,
        /// Size in bytes; of a stream that is too long at most one byte more than was planned.
        found: u64,
    },
    /// Memory for the output cannot be had.
    #[error("the output of {size} bytes does not fit into memory")]
    OutOfMemory {
        /// Size of the output in bytes.
        size: u64,
    },
}

/// Error of writing an output.
#[cfg(feature = "std")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The inputs are not the planned ones.
    #[error("{0}")]
    Input(Error),
    /// An input cannot be read.
    #[error("reading an input: {0}")]
    Read(std::io::Error),
    /// The output cannot be written.
    #[error("writing the output: {0}")]
    Write(std::io::Error),
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
