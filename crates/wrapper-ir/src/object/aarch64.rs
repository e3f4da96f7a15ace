//! Templates for AArch64 (the procedure call standard AAPCS64).

use object::{elf, pe};

use super::code::{Arithmetic, Assembler, Code, Prologue, Register};
use super::pdata::coff_kind;
use crate::description::Name;

/// Types of the relocations of one format.
#[derive(Debug)]
pub(super) struct Relocations {
    /// The page of an address, in `adrp`.
    page: u32,
    /// The place in the page, in `add`.
    offset: u32,
    /// A call.
    call: u32,
    /// The page of the entry of the global offset table.
    table_page: u32,
    /// The place of the entry in its page, in `ldr`.
    table_offset: u32,
    /// `true` if an addend of any size fits.
    addends: bool,
}

pub(super) const ELF: Relocations = Relocations {
    page: elf::R_AARCH64_ADR_PREL_PG_HI21.0,
    offset: elf::R_AARCH64_ADD_ABS_LO12_NC.0,
    call: elf::R_AARCH64_CALL26.0,
    table_page: elf::R_AARCH64_ADR_GOT_PAGE.0,
    table_offset: elf::R_AARCH64_LD64_GOT_LO12_NC.0,
    addends: true,
};

/// COFF has no global offset table. Its weak references are refused.
pub(super) const COFF: Relocations = Relocations {
    page: coff_kind(pe::IMAGE_REL_ARM64_PAGEBASE_REL21),
    offset: coff_kind(pe::IMAGE_REL_ARM64_PAGEOFFSET_12A),
    call: coff_kind(pe::IMAGE_REL_ARM64_BRANCH26),
    table_page: coff_kind(pe::IMAGE_REL_ARM64_PAGEBASE_REL21),
    table_offset: coff_kind(pe::IMAGE_REL_ARM64_PAGEOFFSET_12L),
    addends: false,
};

/// First operand; 9 to 15 are free.
const X9: u32 = 9;
/// Second operand.
const X10: u32 = 10;
/// Neither an operand nor an argument.
const X16: u32 = 16;
/// The stack pointer.
const SP: u32 = 31;

/// Writes machine code.
#[derive(Debug)]
pub(super) struct Aarch64 {
    relocations: &'static Relocations,
    code: Code,
}

fn number(register: Register) -> u32 {
    match register {
        Register::First => X9,
        Register::Second => X10,
        Register::Argument(index) => index.into(),
        Register::Returned => 0,
    }
}

/// Returns the number of bytes to take from the stack, always a multiple of 16.
fn frame_bytes(least: u32) -> u32 {
    least.next_multiple_of(16)
}

impl Aarch64 {
    pub(super) fn new(relocations: &'static Relocations) -> Self {
        Self { relocations, code: Code::default() }
    }

    fn refer(&mut self, kind: u32, symbol: &Name, addend: i64, word: u32) {
        self.code.refer(kind, symbol, addend);
        self.code.word(word);
    }

    /// Sets a register to a value.
    fn set(&mut self, register: u32, value: u64) {
        let mut opcode = 0xd280_0000; // movz, clears everything else
        for (quarter, bytes) in (0_u32..).zip(value.to_le_bytes().chunks_exact(2)) {
            let part = bytes.iter().rev().fold(0, |part, byte| part << 8 | u32::from(*byte));
            if part != 0 {
                self.code.word(opcode | quarter << 21 | part << 5 | register);
                opcode = 0xf280_0000; // movk
            }
        }
        if value == 0 {
            self.code.word(opcode | register);
        }
    }
}

impl Assembler for Aarch64 {
    fn argument_registers(&self) -> usize {
        8
    }

    fn function_align(&self) -> usize {
        4
    }

    fn code(&mut self) -> &mut Code {
        &mut self.code
    }

    fn enter(&mut self, frame: u32) {
        let frame = frame_bytes(frame);
        self.code.word(0xd503_245f); // bti c
        self.code.word(0xa9bf_7bfd); // stp x29, x30, [sp, #-16]!
        self.code.word(0x9100_03fd); // mov x29, sp
        if frame != 0 {
            self.code.word(0xd100_0000 | frame << 10 | SP << 5 | SP); // sub sp, sp, #frame
        }
        // Unwinding uses x29.
        let dwarf = super::unwind::frame_of_aarch64();
        self.code.prologue = Prologue { frame, dwarf, ..Prologue::default() };
    }

    fn leave(&mut self, frame: u32) {
        let frame = frame_bytes(frame);
        self.code.prologue.epilogues.push(self.code.bytes.len());
        if frame != 0 {
            self.code.word(0x9100_0000 | frame << 10 | SP << 5 | SP); // add sp, sp, #frame
        }
        self.code.word(0xa8c1_7bfd); // ldp x29, x30, [sp], #16
        self.code.word(0xd65f_03c0); // ret
    }

    fn load_slot(&mut self, to: Register, slot: u32, _: u16) {
        self.code.word(0xf940_0000 | (slot / 8) << 10 | SP << 5 | number(to)); // ldr x, [sp, #slot]
    }

    fn store_slot(&mut self, from: Register, slot: u32) {
        self.code.word(0xf900_0000 | (slot / 8) << 10 | SP << 5 | number(from)); // str x, [sp, #slot]
    }

    fn immediate(&mut self, to: Register, value: u64, _: u16) {
        self.set(number(to), value);
    }

    fn address(&mut self, to: Register, symbol: &Name, addend: i64) {
        let (to, kinds) = (number(to), self.relocations);
        let inside = if kinds.addends { addend } else { 0 };
        self.refer(kinds.page, symbol, inside, 0x9000_0000 | to); // adrp
        self.refer(kinds.offset, symbol, inside, 0x9100_0000 | to << 5 | to); // add
        if addend != inside {
            self.set(X16, addend.cast_unsigned());
            self.code.word(0x8b00_0000 | X16 << 16 | to << 5 | to); // add to, to, x16
        }
    }

    fn far_address(&mut self, to: Register, symbol: &Name) {
        let (to, kinds) = (number(to), self.relocations);
        self.refer(kinds.table_page, symbol, 0, 0x9000_0000 | to); // adrp
        self.refer(kinds.table_offset, symbol, 0, 0xf940_0000 | to << 5 | to); // ldr
    }

    fn load(&mut self, bits: u16) {
        let opcode = match bits {
            8 => 0x3940_0000,  // ldrb w9, [x9]
            16 => 0x7940_0000, // ldrh w9, [x9]
            32 => 0xb940_0000, // ldr w9, [x9]
            _ => 0xf940_0000,  // ldr x9, [x9]
        };
        self.code.word(opcode | X9 << 5 | X9);
    }

    fn store(&mut self, bits: u16) {
        let opcode = match bits {
            8 => 0x3900_0000,  // strb w9, [x10]
            16 => 0x7900_0000, // strh w9, [x10]
            32 => 0xb900_0000, // str w9, [x10]
            _ => 0xf900_0000,  // str x9, [x10]
        };
        self.code.word(opcode | X10 << 5 | X9);
    }

    fn arithmetic(&mut self, what: Arithmetic) {
        const COMPARE: u32 = 0xeb0a_013f; // cmp x9, x10
        match what {
            Arithmetic::Add => self.code.word(0x8b0a_0129), // add x9, x9, x10
            Arithmetic::And => self.code.word(0x8a0a_0129), // and x9, x9, x10
            Arithmetic::ShiftRight => self.code.word(0x9aca_2529), // lsr x9, x9, x10
            Arithmetic::Equal => {
                self.code.word(COMPARE);
                self.code.word(0x9a9f_17e9); // cset x9, eq
            }
            Arithmetic::NotEqual => {
                self.code.word(COMPARE);
                self.code.word(0x9a9f_07e9); // cset x9, ne
            }
        }
    }

    fn call(&mut self, symbol: &Name) {
        self.refer(self.relocations.call, symbol, 0, 0x9400_0000); // bl
    }

    fn jump(&mut self, block: usize) {
        self.code.jump_here(block);
        self.code.word(0x1400_0000); // b
    }

    fn jump_if(&mut self, block: usize) {
        self.code.word(0xb400_0000 | 2 << 5 | X9); // cbz x9, over the next one
        self.jump(block);
    }

    fn resolve(&mut self, at: usize, distance: i32) -> Option<()> {
        const REACH: i32 = 1 << 27;
        if !(-REACH..REACH).contains(&distance) {
            return None;
        }
        let word = self.code.word_at(at)?;
        let offset = (distance >> 2).cast_unsigned() & 0x03ff_ffff;
        *word = (u32::from_le_bytes(*word) | offset).to_le_bytes();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_take_as_few_instructions_as_possible() {
        let cases: [(u64, &[u32]); 4] = [
            (0, &[0xd280_0009]),                                  // mov x9, #0
            (56, &[0xd280_0709]),                                 // mov x9, #56
            (0xffff_ffff, &[0xd29f_ffe9, 0xf2bf_ffe9]),           // mov, movk lsl 16
            (0x1234_0000_0000_5678, &[0xd28a_cf09, 0xf2e2_4689]), // mov, movk lsl 48
        ];
        for (value, expected) in cases {
            let mut assembler = Aarch64::new(&ELF);
            assembler.immediate(Register::First, value, 64);
            let expected: Vec<u8> = expected.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(assembler.code.bytes, expected, "{value:#x}");
        }
    }

    #[test]
    fn jumps_are_resolved() {
        for (distance, expected) in [(8, 0x1400_0002_u32), (-8, 0x17ff_fffe)] {
            let mut assembler = Aarch64::new(&ELF);
            assembler.jump(0);
            assembler.resolve(0, distance).unwrap();
            assert_eq!(assembler.code.bytes, expected.to_le_bytes());
        }
        assert_eq!(Aarch64::new(&ELF).resolve(0, 1 << 27), None);
    }
}
