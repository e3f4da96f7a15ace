//! Templates for x86-64, with the calling conventions of the System V ABI and of Windows.

use object::{elf, pe};

use super::code::{Arithmetic, Assembler, Code, Prologue, Register};
use super::pdata::coff_kind;
use crate::description::Name;

/// The differences between platforms.
#[derive(Debug)]
pub(super) struct Convention {
    /// Numbers of the registers that hold arguments.
    arguments: &'static [u8],
    /// Bytes that a caller keeps free for the callee.
    home_bytes: u64,
    /// Relocation of a 32-bit distance from the end of the field.
    near: u32,
    /// Relocation of the distance of a call.
    call: u32,
    /// Relocation of the distance to an entry of the global offset table.
    table: u32,
    /// The value that the field must hold for the linker to count from its end.
    addend: i64,
}

/// The System V ABI, in ELF.
pub(super) const SYSTEM_V: Convention = Convention {
    arguments: &[RDI, RSI, RDX, RCX, 8, 9],
    home_bytes: 0,
    near: elf::R_X86_64_PC32.0,
    call: elf::R_X86_64_PLT32.0,
    table: elf::R_X86_64_GOTPCREL.0,
    addend: -4,
};

/// Microsoft's convention, in COFF.
pub(super) const WINDOWS: Convention = Convention {
    arguments: &[RCX, RDX, 8, 9],
    home_bytes: 32,
    near: coff_kind(pe::IMAGE_REL_AMD64_REL32),
    call: coff_kind(pe::IMAGE_REL_AMD64_REL32),
    table: coff_kind(pe::IMAGE_REL_AMD64_REL32),
    addend: 0,
};

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RSI: u8 = 6;
const RDI: u8 = 7;
/// Neither convention passes anything in it or wants it back.
const R11: u8 = 11;

/// Writes machine code.
#[derive(Debug)]
pub(super) struct X86 {
    convention: &'static Convention,
    code: Code,
}

impl X86 {
    pub(super) fn new(convention: &'static Convention) -> Self {
        Self { convention, code: Code::default() }
    }

    fn number(&self, register: Register) -> u8 {
        match register {
            Register::First | Register::Returned => RAX,
            Register::Second => R11,
            Register::Argument(index) => {
                self.convention.arguments.get(usize::from(index)).copied().unwrap_or(RAX)
            }
        }
    }

    /// Adds `opcode` with a 64-bit register and a place on the stack.
    fn on_stack(&mut self, opcode: u8, register: u8, slot: u32) {
        let rex = 0x48 | (register >> 3) << 2;
        let modrm = (register & 7) << 3 | 0b100;
        match i8::try_from(slot) {
            Ok(near) => self.code.push(&[rex, opcode, 0x40 | modrm, 0x24, near.cast_unsigned()]),
            Err(_) => {
                self.code.push(&[rex, opcode, 0x80 | modrm, 0x24]);
                self.code.push(&slot.to_le_bytes());
            }
        }
    }

    /// Adds `opcode` with a 64-bit register and a place that the linker fills in.
    fn on_symbol(&mut self, opcode: u8, register: u8, kind: u32, symbol: &Name, addend: i64) {
        let rex = 0x48 | (register >> 3) << 2;
        self.code.push(&[rex, opcode, (register & 7) << 3 | 0b101]);
        self.code.refer(kind, symbol, addend + self.convention.addend);
        self.code.push(&[0; 4]);
    }

    /// Returns the number of bytes to take from the stack, which is then aligned to 16 at calls.
    fn frame(least: u32) -> u32 {
        // The return address is there already.
        (least + 8).next_multiple_of(16) - 8
    }

    /// Adds an `add` (0xC4) or `sub` (0xEC) of the stack pointer.
    fn stack_pointer(&mut self, modrm: u8, by: u32) {
        match i8::try_from(by) {
            Ok(by) => self.code.push(&[0x48, 0x83, modrm, by.cast_unsigned()]),
            Err(_) => {
                self.code.push(&[0x48, 0x81, modrm]);
                self.code.push(&by.to_le_bytes());
            }
        }
    }
}

impl Assembler for X86 {
    fn argument_registers(&self) -> usize {
        self.convention.arguments.len()
    }

    fn home_bytes(&self) -> u64 {
        self.convention.home_bytes
    }

    fn function_align(&self) -> usize {
        16
    }

    fn code(&mut self) -> &mut Code {
        &mut self.code
    }

    fn enter(&mut self, frame: u32) {
        let start = self.code.bytes.len();
        let frame = Self::frame(frame);
        self.code.push(&[0xf3, 0x0f, 0x1e, 0xfa]); // endbr64
        self.stack_pointer(0xec, frame);
        let length = self.code.bytes.len() - start;
        let dwarf = super::unwind::frame_of(length, frame + 8);
        self.code.prologue = Prologue { length, frame, dwarf, ..Prologue::default() };
    }

    fn leave(&mut self, frame: u32) {
        self.stack_pointer(0xc4, Self::frame(frame));
        self.code.push(&[0xc3]); // ret
    }

    fn load_slot(&mut self, to: Register, slot: u32, _: u16) {
        self.on_stack(0x8b, self.number(to), slot);
    }

    fn store_slot(&mut self, from: Register, slot: u32) {
        self.on_stack(0x89, self.number(from), slot);
    }

    fn immediate(&mut self, to: Register, value: u64, _: u16) {
        let register = self.number(to);
        let (high, low) = (register >> 3, 0xb8 | (register & 7));
        match u32::try_from(value) {
            Ok(value) => {
                if high != 0 {
                    self.code.push(&[0x41]);
                }
                self.code.push(&[low]); // mov r32, imm32 clears what is above
                self.code.push(&value.to_le_bytes());
            }
            Err(_) => {
                self.code.push(&[0x48 | high, low]);
                self.code.push(&value.to_le_bytes());
            }
        }
    }

    fn address(&mut self, to: Register, symbol: &Name, addend: i64) {
        // lea
        self.on_symbol(0x8d, self.number(to), self.convention.near, symbol, addend);
    }

    fn far_address(&mut self, to: Register, symbol: &Name) {
        // mov from the global offset table
        self.on_symbol(0x8b, self.number(to), self.convention.table, symbol, 0);
    }

    fn load(&mut self, bits: u16) {
        self.code.push(match bits {
            8 => &[0x0f, 0xb6, 0x00],  // movzx eax, byte [rax]
            16 => &[0x0f, 0xb7, 0x00], // movzx eax, word [rax]
            32 => &[0x8b, 0x00],       // mov eax, [rax]
            _ => &[0x48, 0x8b, 0x00],  // mov rax, [rax]
        });
    }

    fn store(&mut self, bits: u16) {
        self.code.push(match bits {
            8 => &[0x41, 0x88, 0x03],        // mov [r11], al
            16 => &[0x66, 0x41, 0x89, 0x03], // mov [r11], ax
            32 => &[0x41, 0x89, 0x03],       // mov [r11], eax
            _ => &[0x49, 0x89, 0x03],        // mov [r11], rax
        });
    }

    fn arithmetic(&mut self, what: Arithmetic) {
        self.code.push(match what {
            Arithmetic::Add => &[0x4c, 0x01, 0xd8], // add rax, r11
            Arithmetic::And => &[0x4c, 0x21, 0xd8], // and rax, r11
            // mov rcx, r11; shr rax, cl
            Arithmetic::ShiftRight => &[0x4c, 0x89, 0xd9, 0x48, 0xd3, 0xe8],
            // cmp rax, r11; sete al; movzx eax, al
            Arithmetic::Equal => &[0x4c, 0x39, 0xd8, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0],
            // cmp rax, r11; setne al; movzx eax, al
            Arithmetic::NotEqual => &[0x4c, 0x39, 0xd8, 0x0f, 0x95, 0xc0, 0x0f, 0xb6, 0xc0],
        });
    }

    fn call(&mut self, symbol: &Name) {
        self.code.push(&[0xe8]);
        self.code.refer(self.convention.call, symbol, self.convention.addend);
        self.code.push(&[0; 4]);
    }

    fn jump(&mut self, block: usize) {
        self.code.push(&[0xe9]);
        self.code.jump_here(block);
        self.code.push(&[0; 4]);
    }

    fn jump_if(&mut self, block: usize) {
        self.code.push(&[0x85, 0xc0, 0x0f, 0x85]); // test eax, eax; jnz
        self.code.jump_here(block);
        self.code.push(&[0; 4]);
    }

    fn resolve(&mut self, at: usize, distance: i32) -> Option<()> {
        // Counted from the end of the field.
        *self.code.word_at(at)? = distance.checked_sub(4)?.to_le_bytes();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(write: impl Fn(&mut X86)) -> Vec<u8> {
        let mut assembler = X86::new(&SYSTEM_V);
        write(&mut assembler);
        assembler.code.bytes
    }

    #[test]
    fn immediates() {
        let first = |value| code(|to| to.immediate(Register::First, value, 64));
        assert_eq!(first(0xffff_ffff), [0xb8, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(first(1 << 32), [0x48, 0xb8, 0, 0, 0, 0, 1, 0, 0, 0]);
        let second = code(|to| to.immediate(Register::Second, 56, 64));
        assert_eq!(second, [0x41, 0xbb, 56, 0, 0, 0]);
        let fifth = code(|to| to.immediate(Register::Argument(4), 1 << 40, 64));
        assert_eq!(fifth, [0x49, 0xb8, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn slots_have_short_and_long_offsets() {
        let load = |slot| code(|to| to.load_slot(Register::Argument(5), slot, 64));
        assert_eq!(load(0x78), [0x4c, 0x8b, 0x4c, 0x24, 0x78]); // mov r9, [rsp + 0x78]
        assert_eq!(load(0x80), [0x4c, 0x8b, 0x8c, 0x24, 0x80, 0, 0, 0]);
    }

    #[test]
    fn the_stack_is_aligned() {
        for least in (0..2000).step_by(8) {
            let frame = X86::frame(least);
            assert!(frame >= least && frame < least + 16 && frame % 16 == 8, "{least}");
        }
    }
}
