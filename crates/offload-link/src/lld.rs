//! The arguments with which `ld.lld` links device code of AMD's GPUs, as clang 22 calls it.

use std::ffi::OsString;

use crate::clang::{LinkFiles, Words};
use crate::error::{Error, ErrorKind};
use crate::plan::Group;

/// Options of device links by `ld.lld`, for AMD's GPUs. It links objects of the device and bitcode.
#[derive(Clone, Debug, Default)]
pub struct LldOptions {
    has_flavor: bool,
    arguments: Vec<OsString>,
}

impl LldOptions {
    /// Creates options without arguments of their own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the flavor, which a program such as `rust-lld` or `lld` needs that is not called `ld.lld`.
    #[must_use]
    pub fn with_flavor(mut self, has_flavor: bool) -> Self {
        self.has_flavor = has_flavor;
        self
    }

    /// Adds an argument for the linker: `-plugin-opt=O3`.
    #[must_use]
    pub fn with_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Returns the arguments of `ld.lld`, without its name, for one image.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Architecture`] for targets of other vendors.
    pub fn arguments(
        &self,
        group: &Group<'_>,
        files: LinkFiles<'_>,
    ) -> Result<Vec<OsString>, Error> {
        let target = group.target();
        if !target.is_amdgpu() {
            let text = format!("{target}: ld.lld links images for GPUs of AMD");
            return Err(Error::new(ErrorKind::Architecture, text));
        }
        let mut words = Words::default();
        if self.has_flavor {
            words.add(["-flavor", "gnu"]);
        }
        words.add(["--no-undefined", "-shared"]);
        let mut names = target.processor().split(':');
        if let Some(processor) = names.next().filter(|processor| !processor.is_empty()) {
            words.add([format!("-plugin-opt=mcpu={processor}")]);
        }
        words.add(files.inputs);
        words.add(&self.arguments);
        let mut features: Vec<_> = names.collect();
        features.sort_unstable();
        let feature = |text: &str| {
            let name = text.trim_end_matches(['+', '-']);
            format!("{}{name}", text.get(name.len()..).unwrap_or("+"))
        };
        let features: Vec<_> = features.into_iter().map(feature).collect();
        if !features.is_empty() {
            words.add([format!("-plugin-opt=-mattr={}", features.join(","))]);
        }
        words.add(["-o".as_ref(), files.output]);
        Ok(words.0)
    }
}
