//! Templates for RISC-V with 64 bits (the RISC-V ELF psABI, LP64 in all variants).
//!
//! Nothing is marked for relaxation, so the linker does not move code, and jumps need no
//! relocations.

use object::elf;

use super::code::{Arithmetic, Assembler, Code, Prologue, Reference, ReferenceTarget, Register};
use crate::description::Name;

const RA: u32 = 1;
const SP: u32 = 2;
const T0: u32 = 5;
const T1: u32 = 6;
const A0: u32 = 10;

const LOAD: u32 = 0x03;
const STORE: u32 = 0x23;
const ADD_IMMEDIATE: u32 = 0x13;
const ADD_WORD_IMMEDIATE: u32 = 0x1b;
const UPPER_IMMEDIATE: u32 = 0x37;
const UPPER_PC: u32 = 0x17;
const OPERATION: u32 = 0x33;
const JUMP: u32 = 0x6f;
/// `funct3` of loads and stores of 64 bits.
const DOUBLE: u32 = 3;

/// Writes machine code.
#[derive(Debug, Default)]
pub(super) struct Riscv64 {
    code: Code,
}

fn number(register: Register) -> u32 {
    match register {
        Register::First => T0,
        Register::Second => T1,
        Register::Argument(index) => A0 + u32::from(index),
        Register::Returned => A0,
    }
}

/// Returns the number of bytes to take from the stack: the return address is at the top.
fn frame_bytes(least: u32) -> u32 {
    (least + 8).next_multiple_of(16)
}

/// Returns an instruction with the lower 12 bits of an immediate.
fn immediate_type(opcode: u32, funct3: u32, to: u32, from: u32, immediate: u32) -> u32 {
    (immediate & 0xfff) << 20 | from << 15 | funct3 << 12 | to << 7 | opcode
}

fn store_type(funct3: u32, from: u32, base: u32, offset: u32) -> u32 {
    (offset >> 5 & 0x7f) << 25
        | from << 20
        | base << 15
        | funct3 << 12
        | (offset & 0x1f) << 7
        | STORE
}

/// Returns the instruction `t0 = t0 op t1`.
fn operation(funct3: u32) -> u32 {
    T1 << 20 | T0 << 15 | funct3 << 12 | T0 << 7 | OPERATION
}

impl Riscv64 {
    /// Sets a register to any integer.
    fn constant(&mut self, to: u32, value: i64) {
        // The lower 12 bits are added with their sign.
        let low = ((value & 0xfff) ^ 0x800).wrapping_sub(0x800);
        let rest = value.wrapping_sub(low);
        let (opcode, base) = match i32::try_from(value) {
            Ok(_) if rest == 0 => (ADD_IMMEDIATE, 0),
            Ok(_) => {
                let upper = (rest & 0xffff_f000) as u32;
                self.code.word(upper | to << 7 | UPPER_IMMEDIATE);
                (ADD_WORD_IMMEDIATE, to)
            }
            Err(_) => {
                self.constant(to, rest >> 12);
                self.code.word(immediate_type(ADD_IMMEDIATE, 1, to, to, 12)); // slli
                (ADD_IMMEDIATE, to)
            }
        };
        if low != 0 || base == 0 {
            let low = (low & 0xfff) as u32;
            self.code.word(immediate_type(opcode, 0, to, base, low));
        }
    }

    /// Adds `auipc` and an instruction that adds the lower bits.
    fn relative(
        &mut self,
        kind: elf::RelocationType,
        to: Register,
        symbol: &Name,
        addend: i64,
        low: u32,
    ) {
        let to = number(to);
        let label = self.code.labels.len();
        let here = self.code.bytes.len();
        self.code.labels.push(here);
        self.code.refer(kind.0, symbol, addend);
        self.code.word(to << 7 | UPPER_PC);
        // The lower bits belong to the distance from the other instruction.
        let at = self.code.bytes.len();
        let target = ReferenceTarget::Label(label);
        let kind = elf::R_RISCV_PCREL_LO12_I.0;
        self.code.references.push(Reference { at, kind, target, addend: 0 });
        self.code.word(low | to << 15 | to << 7);
    }
}

impl Assembler for Riscv64 {
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
        self.code.word(immediate_type(ADD_IMMEDIATE, 0, SP, SP, frame.wrapping_neg()));
        self.code.word(store_type(DOUBLE, RA, SP, frame - 8));
        let dwarf = super::unwind::frame_of_riscv64(frame);
        self.code.prologue = Prologue { length: 8, frame, dwarf, ..Prologue::default() };
    }

    fn leave(&mut self, frame: u32) {
        let frame = frame_bytes(frame);
        self.code.word(immediate_type(LOAD, DOUBLE, RA, SP, frame - 8));
        self.code.word(immediate_type(ADD_IMMEDIATE, 0, SP, SP, frame));
        self.code.word(0x0000_8067); // ret
    }

    fn load_slot(&mut self, to: Register, slot: u32, bits: u16) {
        // Integers of 32 bits are passed with their sign bit repeated above, whatever they are.
        let funct3 = if bits == 32 { 2 } else { DOUBLE };
        self.code.word(immediate_type(LOAD, funct3, number(to), SP, slot));
    }

    fn store_slot(&mut self, from: Register, slot: u32) {
        self.code.word(store_type(DOUBLE, number(from), SP, slot));
    }

    fn immediate(&mut self, to: Register, value: u64, bits: u16) {
        let value = match u32::try_from(value) {
            Ok(value) if bits == 32 => i64::from(value.cast_signed()),
            _ => value.cast_signed(),
        };
        self.constant(number(to), value);
    }

    fn address(&mut self, to: Register, symbol: &Name, addend: i64) {
        self.relative(elf::R_RISCV_PCREL_HI20, to, symbol, addend, ADD_IMMEDIATE);
    }

    fn far_address(&mut self, to: Register, symbol: &Name) {
        self.relative(elf::R_RISCV_GOT_HI20, to, symbol, 0, DOUBLE << 12 | LOAD);
    }

    fn load(&mut self, bits: u16) {
        let funct3 = match bits {
            8 => 4,  // lbu
            16 => 5, // lhu
            32 => 6, // lwu
            _ => DOUBLE,
        };
        self.code.word(immediate_type(LOAD, funct3, T0, T0, 0));
    }

    fn store(&mut self, bits: u16) {
        let funct3 = match bits {
            8 => 0,
            16 => 1,
            32 => 2,
            _ => DOUBLE,
        };
        self.code.word(store_type(funct3, T0, T1, 0));
    }

    fn arithmetic(&mut self, what: Arithmetic) {
        match what {
            Arithmetic::Add => self.code.word(operation(0)),
            Arithmetic::And => self.code.word(operation(7)),
            Arithmetic::ShiftRight => self.code.word(operation(5)),
            Arithmetic::Equal => {
                self.code.word(operation(4)); // xor
                self.code.word(immediate_type(ADD_IMMEDIATE, 3, T0, T0, 1)); // sltiu t0, t0, 1
            }
            Arithmetic::NotEqual => {
                self.code.word(operation(4)); // xor
                self.code.word(T0 << 20 | 3 << 12 | T0 << 7 | OPERATION); // sltu t0, zero, t0
            }
        }
    }

    fn call(&mut self, symbol: &Name) {
        self.code.refer(elf::R_RISCV_CALL_PLT.0, symbol, 0);
        self.code.word(RA << 7 | UPPER_PC); // auipc ra
        self.code.word(RA << 15 | RA << 7 | 0x67); // jalr ra, (ra)
    }

    fn jump(&mut self, block: usize) {
        self.code.jump_here(block);
        self.code.word(JUMP); // jal zero
    }

    fn jump_if(&mut self, block: usize) {
        self.code.word(T0 << 15 | 8 << 7 | 0x63); // beqz t0, over the next one
        self.jump(block);
    }

    fn resolve(&mut self, at: usize, distance: i32) -> Option<()> {
        const REACH: i32 = 1 << 20;
        if !(-REACH..REACH).contains(&distance) {
            return None;
        }
        let offset = distance.cast_unsigned();
        let field = (offset >> 20 & 1) << 31
            | (offset >> 1 & 0x3ff) << 21
            | (offset >> 11 & 1) << 20
            | (offset >> 12 & 0xff) << 12;
        let word = self.code.word_at(at)?;
        *word = (u32::from_le_bytes(*word) | field).to_le_bytes();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of `t0` after instructions that set it.
    fn value_after(code: &[u8]) -> u64 {
        let mut value = 0_i64;
        for word in code.chunks_exact(4) {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            let immediate = i64::from(word.cast_signed() >> 20);
            let from = if word >> 15 & 31 == 0 { 0 } else { value };
            value = match (word & 0x7f, word >> 12 & 7) {
                (UPPER_IMMEDIATE, _) => i64::from((word & 0xffff_f000).cast_signed()),
                (ADD_IMMEDIATE, 0) => from.wrapping_add(immediate),
                (ADD_IMMEDIATE, 1) => from << immediate,
                (ADD_WORD_IMMEDIATE, 0) => {
                    let sum = (from.wrapping_add(immediate) & 0xffff_ffff).cast_unsigned();
                    i64::from(u32::try_from(sum).unwrap().cast_signed())
                }
                _ => panic!("{word:08x}"),
            };
        }
        value.cast_unsigned()
    }

    #[test]
    fn immediates_have_their_values() {
        for bit in 0..64 {
            for near in [-2049, -2048, -1, 0, 1, 7, 2047, 2048, 4095] {
                let value = (1_u64 << bit).wrapping_add_signed(near);
                let mut assembler = Riscv64::default();
                assembler.immediate(Register::First, value, 64);
                assert_eq!(value_after(&assembler.code.bytes), value, "{value:#x}");
                if value <= u32::MAX.into() {
                    let mut assembler = Riscv64::default();
                    assembler.immediate(Register::First, value, 32);
                    // As the calling convention wants it: the sign is repeated.
                    let extended = i64::from(u32::try_from(value).unwrap().cast_signed());
                    let found = value_after(&assembler.code.bytes).cast_signed();
                    assert_eq!(found, extended, "{value:#x}");
                }
            }
        }
    }

    #[test]
    fn jumps_are_resolved() {
        for (distance, expected) in
            [(8, 0x0080_006f_u32), (-8, 0xff9f_f06f), (0x800, 0x0010_006f), (0x1000, 0x0000_106f)]
        {
            let mut assembler = Riscv64::default();
            assembler.jump(0);
            assembler.resolve(0, distance).unwrap();
            assert_eq!(assembler.code.bytes, expected.to_le_bytes(), "{distance:#x}");
        }
        assert_eq!(Riscv64::default().resolve(0, 1 << 20), None);
    }
}
