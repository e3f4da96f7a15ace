use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::error::Error;
use crate::parts::Parts;

/// The layout of a container: an output that takes inputs of known sizes.
///
/// Inputs are numbered from 0. Parts of an input come in ascending order of inputs, so that each can be a stream that is
/// read once; an input may be left out, or taken in part. Every offset is known before a byte of an input is read.
pub struct Layout {
    parts: Parts,
    sizes: Vec<u64>,
    /// Start of each input in the output, once it is placed.
    offsets: Vec<Option<u64>>,
}

impl Layout {
    /// Creates an empty output, for inputs of these sizes in bytes.
    #[must_use]
    pub fn new(sizes: impl IntoIterator<Item = u64>) -> Self {
        let sizes: Vec<u64> = sizes.into_iter().collect();
        Self { parts: Parts::new(), offsets: vec![None; sizes.len()], sizes }
    }

    /// Appends a range of bytes of an input. Where the first one lies is the [`offset`](Self::offset) of the input,
    /// also if it is empty.
    pub fn push_input(&mut self, input: usize, range: Range<u64>) {
        if let Some(offset) = self.offsets.get_mut(input) {
            offset.get_or_insert(self.parts.size());
        }
        self.parts.push_input(input, range);
    }

    /// Appends bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.parts.push_bytes(bytes);
    }

    /// Appends zeros.
    pub fn push_zeros(&mut self, count: u64) {
        self.parts.push_zeros(count);
    }

    /// Appends zeros up to an offset in the output, if it is shorter.
    pub fn pad_to(&mut self, offset: u64) {
        self.parts.pad_to(offset);
    }

    /// Returns the output.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the size of the output in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.parts.size()
    }

    /// Returns the sizes of the inputs in bytes.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Returns where the bytes of an input start, in bytes from the start of the output; `None` for one that the
    /// output does not take.
    #[must_use]
    pub fn offset(&self, input: usize) -> Option<u64> {
        self.offsets.get(input).copied().flatten()
    }

    /// Checks that inputs in memory are the planned ones.
    ///
    /// # Errors
    ///
    /// [`Error::InputCount`] and [`Error::InputSize`] if they are not.
    pub fn check_inputs(&self, inputs: &[&[u8]]) -> Result<(), Error> {
        let (expected, found) = (self.sizes.len() as u64, inputs.len() as u64);
        if expected != found {
            return Err(Error::InputCount { expected, found });
        }
        for (input, (&expected, bytes)) in self.sizes.iter().zip(inputs).enumerate() {
            let found = bytes.len() as u64;
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
        // An input that was not planned has no bytes: the parts that take some of it are errors.
        self.parts.to_vec(|&input| inputs.get(input).copied().unwrap_or_default())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("size", &self.size())
            .field("offsets", &self.offsets)
            .field("sizes", &self.sizes)
            .finish_non_exhaustive()
    }
}
