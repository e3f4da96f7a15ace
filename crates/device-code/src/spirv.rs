//! SPIR-V modules: SPIR-V Specification, "Physical Layout" and "Logical Layout of a Module".

use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use target_id::{Target, Triple};

use crate::fault::Fault;
use crate::read::{HEAD, peek, read_range};

/// Words before the first instruction.
pub(crate) const HEADER_WORDS: usize = 5;

/// Generator of LLVM's and AMD's compilers in modules for AMD GPUs.
const GENERATOR_AMD: u32 = 0xffff;

/// A module's statements about where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Module {
    generator: u32,
    /// 0: logical; 1 and 2: physical, with 32 and 64 bits; others need extensions.
    addressing: u32,
    /// `true` for kernels of OpenCL, SYCL or OpenMP.
    kernel: bool,
    /// `true` for code of graphics pipelines and their compute shaders.
    shader: bool,
}

/// Returns the target of the module that starts with `head`; `None` if its memory model lies beyond, or if it is malformed.
pub(crate) fn target(head: &[u8]) -> Option<Target> {
    let module = Module::parse(head)?;
    let (triple, id) = match module {
        Module { generator: GENERATOR_AMD, .. } => ("spirv64-amd-amdhsa", "amdgcnspirv"),
        Module { shader: true, kernel: false, .. } => ("spirv-unknown-vulkan", ""),
        Module { addressing: 1, .. } => ("spirv32-unknown-unknown", ""),
        Module { addressing: 2, .. } => ("spirv64-unknown-unknown", ""),
        _ => ("spirv-unknown-unknown", ""),
    };
    Some(Target::new(None, Some(Triple::parse(triple)), id))
}

/// Bytes that are read at one time.
const PIECE: u64 = 64 << 10;

/// Returns the fault in the header or in the chain of instructions of the SPIR-V module in `window`; `None` if there is
/// none.
///
/// ```
/// let fault = device_code::check_spirv(&mut &b"\x03\x02\x23\x07"[..], &(0..4))?.unwrap();
/// assert_eq!(fault.expected, "20 bytes or more, a multiple of 4");
/// # Ok::<(), llvm_bitcode::Unreadable>(())
/// ```
///
/// # Errors
///
/// [`Unreadable`](llvm_bitcode::Unreadable)
pub fn check_spirv(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
) -> Result<Option<Fault>, Unreadable> {
    const HEADER: u64 = 4 * HEADER_WORDS as u64;
    let fault = |offset, expected, found| Ok(Some(Fault { offset, expected, found }));
    let len = Window::new(window).len();
    if len < HEADER || !len.is_multiple_of(4) {
        return fault(len, "20 bytes or more, a multiple of 4", len);
    }
    let head = peek(source, window, HEAD)?;
    let is_swapped = is_swapped(&head);
    let version = words(&head, is_swapped).nth(1).unwrap_or(0);
    if version & 0xffff_00ff != 1 << 16 {
        return fault(4, "version 1 (0x10000 and minor number times 0x100)", version.into());
    }
    if Module::parse(&head).is_none() {
        let first = words(&head, is_swapped).nth(HEADER_WORDS).unwrap_or(0);
        return fault(HEADER, "capabilities, extensions, and a memory model", first.into());
    }
    let mut at = HEADER;
    while at < len {
        let piece = at..len.min(at + PIECE);
        let bytes = read_range(source, &(window.start + piece.start..window.start + piece.end))?;
        let mut words = words(&bytes, is_swapped);
        while let Some(first) = words.next() {
            let count = u64::from(first >> 16);
            if count == 0 {
                return fault(at, "an instruction of one word or more", 0);
            }
            if at + 4 * count > len {
                return fault(at, "an instruction that ends with the module or before", count);
            }
            at += 4 * count;
            match usize::try_from(count - 1) {
                Ok(0) => {}
                Ok(operands) => drop(words.nth(operands - 1)),
                Err(_) => break,
            }
        }
    }
    Ok(None)
}

pub(crate) fn is_swapped(head: &[u8]) -> bool {
    head.starts_with(b"\x07\x23\x02\x03")
}

pub(crate) fn words(bytes: &[u8], is_swapped: bool) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).filter_map(|word| word.first_chunk()).map(move |word| {
        if is_swapped { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) }
    })
}

impl Module {
    fn parse(head: &[u8]) -> Option<Self> {
        const OP_EXTENSION: u32 = 10;
        const OP_EXT_INST_IMPORT: u32 = 11;
        const OP_MEMORY_MODEL: u32 = 14;
        const OP_CAPABILITY: u32 = 17;
        const CAPABILITY_SHADER: u32 = 1;
        const CAPABILITY_KERNEL: u32 = 6;
        let mut words = words(head, is_swapped(head));
        let generator = words.nth(2)?;
        let mut module = Module { generator, addressing: 0, kernel: false, shader: false };
        let mut words = words.skip(HEADER_WORDS - 3);
        loop {
            let first = words.next()?;
            let operands = usize::try_from(first >> 16).ok()?.checked_sub(1)?;
            match (first & 0xffff, operands) {
                (OP_CAPABILITY, 1) => match words.next()? {
                    CAPABILITY_SHADER => module.shader = true,
                    CAPABILITY_KERNEL => module.kernel = true,
                    _ => {}
                },
                (OP_EXTENSION | OP_EXT_INST_IMPORT, 1..) => drop(words.nth(operands - 1)?),
                (OP_MEMORY_MODEL, 2) => {
                    module.addressing = words.next()?;
                    return Some(module);
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    fn module(generator: u32, words: &[u32], is_swapped: bool) -> Vec<u8> {
        let header = [0x0723_0203, 0x0001_0400, generator, 9, 0];
        let to_bytes =
            |word: &u32| if is_swapped { word.to_be_bytes() } else { word.to_le_bytes() };
        header.iter().chain(words).flat_map(to_bytes).collect()
    }

    fn named(generator: u32, words: &[u32]) -> Option<String> {
        let name = |is_swapped| {
            let target = target(&module(generator, words, is_swapped))?;
            Some(format!("{} {}", target.triple()?, target.id()))
        };
        assert_eq!(name(false), name(true), "either byte order");
        name(false)
    }

    #[test]
    fn capabilities_and_memory_model_are_read() {
        const CAPABILITY: u32 = 2 << 16 | 17;
        const MEMORY_MODEL: u32 = 3 << 16 | 14;
        let import = [4 << 16 | 11, 1, 0x6e65_704f, 0];
        let kernel = |addressing| {
            [&[CAPABILITY, 4, CAPABILITY, 6][..], &import, &[MEMORY_MODEL, addressing, 2]].concat()
        };
        assert_eq!(named(6, &kernel(2)).as_deref(), Some("spirv64-unknown-unknown "));
        assert_eq!(named(6, &kernel(1)).as_deref(), Some("spirv32-unknown-unknown "));
        assert_eq!(named(6, &kernel(0)).as_deref(), Some("spirv-unknown-unknown "));
        assert_eq!(named(0xffff, &kernel(2)).as_deref(), Some("spirv64-amd-amdhsa amdgcnspirv"));
        let shader = [CAPABILITY, 1, MEMORY_MODEL, 0, 1];
        assert_eq!(named(8 << 16, &shader).as_deref(), Some("spirv-unknown-vulkan "));
        for len in 0..kernel(2).len() - 1 {
            assert_eq!(named(6, &kernel(2)[..len]), None, "cut after {len} words");
        }
        for words in [[0, 0], [1 << 16 | 10, 0], [u32::MAX, 0]] {
            assert_eq!(named(6, &words), None, "{words:x?}");
        }
    }
}
