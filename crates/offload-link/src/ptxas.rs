//! The arguments with which NVIDIA's `ptxas` makes an image of PTX, as clang 22 calls it.

use std::ffi::OsString;

use target_id::Triple;

use crate::clang::{LinkFiles, Words};
use crate::error::{Error, ErrorKind};
use crate::plan::Group;

/// Options of `ptxas`, which makes an image for a GPU of NVIDIA from PTX. It links nothing: the code of an image is one file.
#[derive(Clone, Debug)]
pub struct PtxasOptions {
    level: u8,
    arguments: Vec<OsString>,
}

impl Default for PtxasOptions {
    /// Optimises at level 3, the highest.
    fn default() -> Self {
        PtxasOptions { level: 3, arguments: Vec::new() }
    }
}

impl PtxasOptions {
    /// Creates options that optimise at level 3, the highest.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the level of optimisation, from 0 to 3.
    #[must_use]
    pub fn with_level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Adds an argument: `-lineinfo`.
    #[must_use]
    pub fn with_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Returns the arguments of `ptxas`, without its name, for one image.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Architecture`] for targets of other vendors, and for code without a processor.
    /// - [`ErrorKind::Device`] for an image of several inputs, and for an input that is not text.
    pub fn arguments(
        &self,
        group: &Group<'_>,
        files: LinkFiles<'_>,
    ) -> Result<Vec<OsString>, Error> {
        let target = group.target();
        let processor = target.processor();
        if !Triple::parse(target.triple()).is_nvptx() || processor.is_empty() {
            let text = format!("{target}: ptxas makes images for a GPU of NVIDIA, such as sm_90");
            return Err(Error::new(ErrorKind::Architecture, text));
        }
        let code = match group.inputs() {
            [input] => input.code(),
            inputs => {
                let text = format!("{target}: {} inputs: ptxas takes one", inputs.len());
                return Err(Error::new(ErrorKind::Device, text));
            }
        };
        if code.bytes().is_some_and(|bytes| bytes.contains(&0)) {
            let text = format!("{code}: {target}: ptxas takes PTX: expected text");
            return Err(Error::new(ErrorKind::Device, text));
        }
        let mut words = Words::default();
        words.add(["-m64".to_owned(), format!("-O{}", self.level)]);
        words.add(&self.arguments);
        words.add(["--gpu-name", processor, "--output-file"]);
        words.add([files.output]);
        words.add(files.inputs);
        Ok(words.0)
    }
}
