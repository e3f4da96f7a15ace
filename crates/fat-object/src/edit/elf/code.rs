//! Addresses in machine code and data: what, read as an instruction, would refer to a bundle.
//!
//! Blocks come with [`MARGIN`] bytes before and behind what is to be looked at.

use super::references::{MARGIN, Targets};
use super::relocations::Machine;

const BEFORE: usize = 16;
const _: () = assert!(BEFORE as u64 == MARGIN);

/// Looks at code, section by section.
pub(super) struct Scanner {
    machine: Machine,
    relocated: bool,
    got: Vec<u64>,
    /// What `movz` and `movk` last built in each AArch64 register.
    registers: [u64; 32],
}

impl Scanner {
    /// `got`: what offsets of x86-64's large code model may count from.
    pub(super) fn new(machine: Machine, relocated: bool, got: Vec<u64>) -> Self {
        Scanner { machine, relocated, got, registers: [0; 32] }
    }

    /// Looks at a block of code at `address`.
    pub(super) fn code(&mut self, address: u64, bytes: &[u8], targets: &mut Targets<'_>) {
        match self.machine {
            Machine::X86_64 => self.x86_64(address, bytes, targets),
            Machine::Aarch64 => self.aarch64(address, bytes, targets),
        }
    }

    /// Intel's manual, volume 2, "RIP-Relative Addressing": a displacement of 32 bits behind a ModR/M byte with `mod`
    /// 0 and `r/m` 5, relative to the next instruction; an immediate value of 1, 2 or 4 bytes may lie between.
    /// Branches have no ModR/M byte, and no immediate value.
    fn x86_64(&self, address: u64, bytes: &[u8], targets: &mut Targets<'_>) {
        let windows = bytes.windows(10).skip(BEFORE - 2);
        let count = bytes.len().saturating_sub(2 * BEFORE);
        for (window, at) in windows.take(count).zip(address..) {
            let [rex, modrm, rest @ ..] = window else { continue };
            let Some((displacement, _)) = rest.split_first_chunk::<4>() else { continue };
            let displacement = i64::from(i32::from_le_bytes(*displacement));
            let next = at.wrapping_add(4).wrapping_add_signed(displacement);
            if targets.maybe(next, 4) {
                targets.exact(next, at);
                if modrm & 0xc7 == 5 {
                    for immediate in [1, 2, 4] {
                        targets.exact(next.wrapping_add(immediate), at);
                    }
                }
            }
            // `movabs`, with an offset from the global offset table
            if rex & 0xfe == 0x48
                && modrm & 0xf8 == 0xb8
                && let Ok(offset) = <[u8; 8]>::try_from(rest)
            {
                for got in &self.got {
                    targets.exact(u64::from_le_bytes(offset).wrapping_add(*got), at);
                }
            }
        }
    }

    /// Arm's Architecture Reference Manual, A64: ADRP, ADR, LDR (literal); MOVZ, MOVN and MOVK where addresses are
    /// known to the linker.
    fn aarch64(&mut self, address: u64, bytes: &[u8], targets: &mut Targets<'_>) {
        let code = bytes.get(BEFORE..bytes.len().saturating_sub(BEFORE)).unwrap_or_default();
        for (word, at) in code.as_chunks::<4>().0.iter().zip((address..).step_by(4)) {
            let word = u32::from_le_bytes(*word);
            let bits = |from: u32, count: u32| u64::from(word >> from & ((1 << count) - 1));
            if word & 0x1f00_0000 == 0x1000_0000 {
                let offset = signed(bits(5, 19) << 2 | bits(29, 2), 21);
                match word >> 31 {
                    0 => targets.exact(at.wrapping_add_signed(offset), at),
                    _ => targets.page((at & !0xfff).wrapping_add_signed(offset << 12), at),
                }
            } else if word & 0x3b00_0000 == 0x1800_0000 {
                targets.exact(at.wrapping_add_signed(signed(bits(5, 19) << 2, 21)), at);
            } else if !self.relocated && word & 0x1f80_0000 == 0x1280_0000 {
                let shift = bits(21, 2) * 16;
                let immediate = bits(5, 16) << shift;
                let index = usize::try_from(bits(0, 5)).unwrap_or_default();
                let Some(register) = self.registers.get_mut(index) else { continue };
                match bits(29, 2) {
                    0 => *register = !immediate,
                    2 => *register = immediate,
                    3 => *register = *register & !(0xffff << shift) | immediate,
                    _ => continue,
                }
                targets.exact(*register, at);
            }
        }
    }
}

/// The number in the lower `bits`.
fn signed(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

/// Looks at a block at `address` for addresses as numbers of 8 bytes, and of 4 bytes at multiples of `align`, but for
/// those that are `expected`. (Tables of characters have many numbers like addresses, if read from the middle of one.)
pub(super) fn absolute(
    address: u64,
    bytes: &[u8],
    align: u64,
    targets: &mut Targets<'_>,
    expected: &dyn Fn(u64) -> bool,
) {
    let count = bytes.len().saturating_sub(2 * BEFORE);
    for (window, at) in bytes.windows(8).skip(BEFORE).take(count).zip(address..) {
        let Some((low, _)) = window.split_first_chunk::<4>() else { continue };
        let low = u64::from(u32::from_le_bytes(*low));
        if !targets.maybe(low, 0) || expected(at) {
            continue;
        }
        if at.is_multiple_of(align) {
            targets.exact(low, at);
        }
        if let Ok(word) = <[u8; 8]>::try_from(window) {
            targets.exact(u64::from_le_bytes(word), at);
        }
    }
}
