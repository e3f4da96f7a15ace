//! Images whose end nothing but their own bytes tells.

mod elf;
mod ptx;
mod shader;
mod spirv;

use core::fmt;
use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};

use crate::elf::{EM_AMDGPU, EM_INTELGT};
use crate::format::FileFormat;
use crate::metal;

/// Bytes among which a search looks for the start of an image.
#[non_exhaustive]
pub struct Candidate<'h> {
    /// The bytes from the start of the image on: of PTX from the first directive on. It may have any length.
    pub window: Range<u64>,
    /// The first bytes of the window; 96 are enough.
    pub head: &'h [u8],
    /// The first byte that comments before PTX may have: where the image before this one ends.
    pub before: u64,
}

impl<'h> Candidate<'h> {
    /// Creates a candidate without comments before its window.
    #[must_use]
    pub fn new(window: Range<u64>, head: &'h [u8]) -> Self {
        Candidate { before: window.start, window, head }
    }

    /// Sets the first byte that comments before PTX may have. Default: the start of the window.
    #[must_use]
    pub fn with_before(mut self, before: u64) -> Self {
        self.before = before;
        self
    }
}

impl fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("window", &self.window)
            .field("before", &self.before)
            .field("head", &self.head.len())
            .finish_non_exhaustive()
    }
}

/// Returns the place of the image of this format that starts a window; `None` if none does that is in order, or if the
/// format is another than these.
///
/// - PTX names a version and a processor, consists of whole directives, defines something, and has no place that a
///   program fills in (`%s`). It ends before the first byte that is not text, or where other text starts. Comments
///   before it are of it, so that it may start before the window.
/// - A SPIR-V module has a version up to 1.6, a memory model, its instructions in the order of the specification, and at
///   least one function with a body. It ends with the last one.
/// - All headers of segments and sections of an ELF file for a GPU lie in the window, and so do the bytes that they
///   name: the last of these is the end.
/// - Metal libraries and containers of DirectX shaders state their sizes.
///
/// `read` grows by the number of bytes that were looked at, `head` aside.
///
/// ```
/// use device_code::{Candidate, FileFormat, extent};
///
/// let bytes = b"\0// a\n.version 8.0\n.target sm_90\n.visible .func f() { ret; }\n\0more";
/// let candidate = Candidate::new(6..bytes.len() as u64, &bytes[6..]).with_before(0);
/// let place = extent(&mut &bytes[..], &candidate, FileFormat::Ptx, &mut 0)?;
/// assert_eq!(place, Some(1..bytes.len() as u64 - 5));
/// # Ok::<(), llvm_bitcode::Unreadable>(())
/// ```
///
/// # Errors
///
/// [`Unreadable`](llvm_bitcode::Unreadable)
pub fn extent(
    source: &mut dyn ReadAt,
    candidate: &Candidate<'_>,
    format: FileFormat,
    read: &mut u64,
) -> Result<Option<Range<u64>>, Unreadable> {
    let Candidate { window, head, before } = candidate;
    let available = Window::new(window).len();
    let size = match format {
        FileFormat::Ptx => return ptx::range(source, window, head, *before, read),
        FileFormat::SpirV => spirv::size(source, window, head, read)?,
        FileFormat::Cubin
        | FileFormat::IntelBinary
        | FileFormat::Elf { machine: EM_AMDGPU | EM_INTELGT } => {
            elf::size(source, window, head, read)?
        }
        FileFormat::DirectX => shader::directx(head, available),
        FileFormat::MetalLibrary => metal::size(head, available),
        _ => None,
    };
    Ok(size.map(|size| window.start..window.start + size.min(available)))
}
