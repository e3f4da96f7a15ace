//! Kernels of SPIR-V modules ("SPIR-V Specification", "Binary Form").

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Kernel, KernelKind, Kernels, MOST_KERNELS, Version, note, volume};
use crate::fault::Fault;

const ENTRY_POINT: u32 = 15;
const EXECUTION_MODE: u32 = 16;
const FUNCTION: u32 = 54;
/// The execution model of OpenCL's kernels.
const KERNEL: u32 = 6;
/// Execution modes: a work-group of one size, a sub-group of one size, bytes of local memory, the largest work-group, and barriers.
const LOCAL_SIZE: u32 = 17;
const SUBGROUP_SIZE: u32 = 35;
const SHARED_LOCAL_MEMORY_SIZE: u32 = 5618;
const MAX_WORKGROUP_SIZE: u32 = 5893;
const NAMED_BARRIER_COUNT: u32 = 6417;
/// The words of the header.
const HEADER: usize = 5;

pub(super) fn read<'a>(module: &'a [u8], found: &mut Kernels<'a>) {
    let is_swapped = module.starts_with(&[7, 0x23, 2, 3]);
    let words = Words { module, is_swapped };
    let Some(version) = words.get(1).filter(|_| words.get(HEADER - 1).is_some()) else {
        let found_len = module.len() as u64;
        note(
            &mut found.faults,
            Fault { offset: 0, expected: "a header of 20 bytes", found: found_len },
        );
        return;
    };
    let [_, major, minor, _] = version.to_be_bytes();
    found.version = Some(Version::SpirV(major, minor));
    // Kernels with the functions that they start at (several kernels may share one), and what is said of these
    // functions.
    let mut kernels = Vec::new();
    let mut modes: BTreeMap<u32, Modes> = BTreeMap::new();
    let mut at = HEADER;
    while let Some(word) = words.get(at) {
        let (len, opcode) = ((word >> 16) as usize, word & 0xffff);
        let end = at + len;
        if len == 0 || words.get(end.wrapping_sub(1)).is_none() {
            let expected = "an instruction that ends in the module";
            let fault = Fault { offset: at as u64 * 4, expected, found: len as u64 };
            note(&mut found.faults, fault);
            break;
        }
        let operand = |n: usize| words.get(at + n).filter(|_| n < len);
        match opcode {
            ENTRY_POINT => {
                if let (Some(model), Some(id)) = (operand(1), operand(2))
                    && kernels.len() < MOST_KERNELS
                {
                    let kind =
                        if model == KERNEL { KernelKind::Kernel } else { KernelKind::Shader };
                    let name = words.text(at + 3, end);
                    kernels.push((id, Kernel { name, kind, ..Kernel::default() }));
                }
            }
            EXECUTION_MODE => {
                if let (Some(id), Some(mode)) = (operand(1), operand(2)) {
                    let three = || Some([operand(3)?, operand(4)?, operand(5)?]);
                    let modes = modes.entry(id).or_default();
                    match mode {
                        LOCAL_SIZE => modes.local_size = three(),
                        SUBGROUP_SIZE => modes.subgroup_size = operand(3),
                        SHARED_LOCAL_MEMORY_SIZE => modes.local_memory = operand(3),
                        MAX_WORKGROUP_SIZE => modes.max_size = three(),
                        NAMED_BARRIER_COUNT => modes.barriers = operand(3),
                        _ => {}
                    }
                }
            }
            // All entry points stand before the first function.
            FUNCTION => break,
            _ => {}
        }
        at = end;
    }
    let kernels = kernels.into_iter().map(|(id, kernel)| {
        let modes = modes.get(&id).copied().unwrap_or_default();
        let max_size = modes.max_size.map(volume);
        Kernel {
            required_group_size: modes.local_size,
            max_group_size: max_size,
            wave_size: modes.subgroup_size,
            group_memory: modes.local_memory.map(u64::from),
            barriers: modes.barriers,
            ..kernel
        }
    });
    found.kernels = Some(kernels.collect());
}

/// The execution modes of a function.
#[derive(Clone, Copy, Default)]
struct Modes {
    local_size: Option<[u32; 3]>,
    subgroup_size: Option<u32>,
    local_memory: Option<u32>,
    max_size: Option<[u32; 3]>,
    barriers: Option<u32>,
}

/// The words of a module.
#[derive(Clone, Copy)]
struct Words<'a> {
    module: &'a [u8],
    /// `true` if the largest byte comes first.
    is_swapped: bool,
}

impl<'a> Words<'a> {
    fn get(self, at: usize) -> Option<u32> {
        let bytes = self.module.get(at.checked_mul(4)?..)?.first_chunk()?;
        Some(if self.is_swapped { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) })
    }

    /// Returns the text in words, up to its NUL. In modules with the largest byte first its bytes are in another order.
    fn text(self, start: usize, end: usize) -> &'a [u8] {
        let bytes = self.module.get(4 * start..4 * end).filter(|_| !self.is_swapped);
        bytes.and_then(|bytes| bytes.split(|&byte| byte == 0).next()).unwrap_or(b"")
    }
}
