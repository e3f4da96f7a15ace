use alloc::vec::Vec;

use crate::error::Error;
use crate::parts::Parts;
use crate::to_u64;

/// An output that takes inputs of known sizes: the layout of a container.
///
/// Inputs are numbered from 0. Parts of an input come in ascending order of inputs, so that each can be a stream that is
/// read once; an input may be left out, or taken in part.
#[derive(Debug)]
pub struct Plan {
    /// The output.
    pub parts: Parts,
    sizes: Vec<u64>,
}

impl Plan {
    /// Creates an empty output, for inputs of these sizes in bytes.
    #[must_use]
    pub fn new(sizes: impl IntoIterator<Item = u64>) -> Self {
        Self { parts: Parts::new(), sizes: sizes.into_iter().collect() }
    }

    /// Returns the sizes of the inputs in bytes.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Checks that inputs in memory are the planned ones.
    ///
    /// # Errors
    ///
    /// [`Error::InputCount`] and [`Error::InputSize`] if they are not.
    pub fn check_inputs(&self, inputs: &[&[u8]]) -> Result<(), Error> {
        let (expected, found) = (to_u64(self.sizes.len()), to_u64(inputs.len()));
        if expected != found {
            return Err(Error::InputCount { expected, found });
        }
        for (input, (&expected, bytes)) in self.sizes.iter().zip(inputs).enumerate() {
            let found = to_u64(bytes.len());
            if expected != found {
                return Err(Error::InputSize { input, expected, found });
            }
        }
        Ok(())
    }

    /// Returns the output in memory.
    ///
    /// # Errors
    ///
    /// [`Error::InputCount`] and [`Error::InputSize`] if the inputs are not the planned ones, [`Error::OutOfMemory`].
    pub fn to_vec(&self, inputs: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.check_inputs(inputs)?;
        self.parts.to_vec(|&input| inputs.get(input).copied().unwrap_or_default())
    }
}
