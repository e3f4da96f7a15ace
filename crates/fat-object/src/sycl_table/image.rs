//! Description of an image, as a table has it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Description of an image in a table of Intel's SYCL toolchain.
#[derive(Debug, PartialEq)]
pub struct SyclImage {
    pub(crate) range: Range<u64>,
    pub(crate) address: u64,
    pub(crate) uncompressed_size: Option<u64>,
    pub(crate) target: Arc<str>,
    pub(crate) version: u16,
    pub(crate) format: u8,
    pub(crate) compile_options: Arc<str>,
    pub(crate) link_options: Arc<str>,
    pub(crate) properties: Vec<SyclProperty>,
    pub(crate) kernels: Vec<Arc<str>>,
}

impl SyclImage {
    /// Returns the place of the image in the source that was read.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the size in bytes before compression, as the section `.tgtimg` records it.
    #[must_use]
    pub fn uncompressed_size(&self) -> Option<u64> {
        self.uncompressed_size
    }

    /// Returns the target: `spir64`, `spir64_gen`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the version of the descriptor: 1, 2 or 3.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Returns the recorded format: 0 unknown, 1 machine code, 2 SPIR-V, 3 LLVM bitcode, 4 compressed by zstd.
    /// The bytes of the image may be of another.
    #[must_use]
    pub fn format(&self) -> u8 {
        self.format
    }

    /// Options for the compiler that makes machine code of the image when it is loaded.
    #[must_use]
    pub fn compile_options(&self) -> &str {
        &self.compile_options
    }

    /// Options for linking the image when it is loaded.
    #[must_use]
    pub fn link_options(&self) -> &str {
        &self.link_options
    }

    /// Returns all properties, in stored order.
    #[must_use]
    pub fn properties(&self) -> &[SyclProperty] {
        &self.properties
    }

    /// Returns the names of the kernels, in stored order.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.kernels.iter().map(|name| &**name)
    }

    /// Returns the device that the image was compiled for ahead of time, such as `intel_gpu_pvc`: the property
    /// `compile_target` of the device requirements.
    #[must_use]
    pub fn compile_target(&self) -> Option<&str> {
        match self.requirement("compile_target")? {
            SyclValue::Bytes(bytes) => {
                std::str::from_utf8(bytes).ok().map(|text| text.trim_end_matches('\0'))
            }
            SyclValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Numbers of the aspects that a device needs to have, as the runtime's `sycl::aspect` has them.
    /// [`aspect_name`] names them.
    pub fn aspects(&self) -> impl Iterator<Item = u32> + '_ {
        let bytes = match self.requirement("aspects") {
            Some(SyclValue::Bytes(bytes)) => &**bytes,
            _ => &[],
        };
        bytes.as_chunks().0.iter().map(|&number| u32::from_le_bytes(number))
    }

    fn requirement(&self, name: &str) -> Option<&SyclValue> {
        let found = self.properties.iter().find(|property| {
            &*property.set == "SYCL/device requirements" && &*property.name == name
        });
        found.map(SyclProperty::value)
    }
}

/// Property of an image in a table of Intel's SYCL toolchain.
#[derive(Debug, PartialEq)]
pub struct SyclProperty {
    pub(crate) set: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) value: SyclValue,
}

impl SyclProperty {
    /// Returns the name of the set of the property: `SYCL/device requirements`.
    #[must_use]
    pub fn set(&self) -> &str {
        &self.set
    }

    /// Returns the name of the property.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of the property.
    #[must_use]
    pub fn value(&self) -> &SyclValue {
        &self.value
    }
}

/// Value of a [`SyclProperty`].
#[derive(PartialEq)]
#[non_exhaustive]
pub enum SyclValue {
    /// A number.
    Number(u64),
    /// Bytes, without the count of bits before them.
    Bytes(Arc<[u8]>),
    /// A text.
    Text(Arc<str>),
    /// A value of a type that is not known, with the number of the type.
    Unknown(u32),
}

impl fmt::Debug for SyclValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyclValue::Number(number) => f.debug_tuple("Number").field(number).finish(),
            SyclValue::Bytes(bytes) => f.debug_tuple("Bytes").field(&bytes.len()).finish(),
            SyclValue::Text(text) => f.debug_tuple("Text").field(text).finish(),
            SyclValue::Unknown(kind) => f.debug_tuple("Unknown").field(kind).finish(),
        }
    }
}

/// Returns the name of an aspect of SYCL, if the SYCL specification has it: `fp64` for 6.
///
/// ```
/// assert_eq!(fat_object::sycl_table::aspect_name(6), Some("fp64"));
/// assert_eq!(fat_object::sycl_table::aspect_name(1000), None);
/// ```
#[must_use]
pub fn aspect_name(number: u32) -> Option<&'static str> {
    const NAMES: [&str; 18] = [
        "host",
        "cpu",
        "gpu",
        "accelerator",
        "custom",
        "fp16",
        "fp64",
        "int64_base_atomics",
        "int64_extended_atomics",
        "image",
        "online_compiler",
        "online_linker",
        "queue_profiling",
        "usm_device_allocations",
        "usm_host_allocations",
        "usm_shared_allocations",
        "usm_restricted_shared_allocations",
        "usm_system_allocations",
    ];
    NAMES.get(usize::try_from(number).ok()?).copied()
}
