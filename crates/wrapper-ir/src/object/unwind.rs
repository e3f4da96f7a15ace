//! Unwinding of the stack in registration code: a runtime it calls may throw, or print where it was called from.

use object::elf;

use super::data::PlacedFunction;
use super::model::{Content, Object, Relocation};
use crate::description::Name;
use crate::error::Error;
use crate::object_format::ObjectFormat;
use crate::to_u64;

// DWARF 5, section 7.24. Offsets are in units of 8 bytes, locations in bytes.
const ADVANCE: u8 = 0x40;
const OFFSET: u8 = 0x80;
const DEFINE_FRAME: u8 = 0x0c;
const DEFINE_FRAME_REGISTER: u8 = 0x0d;
const DEFINE_FRAME_OFFSET: u8 = 0x0e;

/// The rules that all functions of a machine share.
#[derive(Debug)]
pub(super) struct Rules {
    /// Relocation of a 32-bit distance from the field.
    relative: elf::RelocationType,
    /// The number of the register that holds the return address.
    return_address: u8,
    /// The rules at the first instruction.
    start: &'static [u8],
}

/// The frame starts above the return address, which was pushed.
pub(super) const X86_64: Rules = Rules {
    relative: elf::R_X86_64_PC32,
    return_address: 16,
    start: &[DEFINE_FRAME, 7, 8, OFFSET | 16, 1],
};
/// The frame starts at the stack pointer.
pub(super) const AARCH64: Rules =
    Rules { relative: elf::R_AARCH64_PREL32, return_address: 30, start: &[DEFINE_FRAME, 31, 0] };
/// The frame starts at the stack pointer.
pub(super) const RISCV64: Rules =
    Rules { relative: elf::R_RISCV_32_PCREL, return_address: 1, start: &[DEFINE_FRAME, 2, 0] };

/// Returns rules: after this many bytes of code, the frame has this size.
pub(super) fn frame_of(length: usize, frame: u32) -> Vec<u8> {
    let mut bytes = vec![advance(length), DEFINE_FRAME_OFFSET];
    push_leb128(&mut bytes, frame);
    bytes
}

/// Returns the frame of `bti c`, `stp x29, x30, [sp, #-16]!`, `mov x29, sp`.
pub(super) fn frame_of_aarch64() -> Vec<u8> {
    let mut bytes = frame_of(8, 16);
    bytes.extend([OFFSET | 29, 2, OFFSET | 30, 1]);
    bytes.extend([advance(4), DEFINE_FRAME_REGISTER, 29]);
    bytes
}

/// Returns the frame of `addi sp, sp, -frame`, `sd ra, frame - 8(sp)`.
pub(super) fn frame_of_riscv64(frame: u32) -> Vec<u8> {
    let mut bytes = frame_of(4, frame);
    bytes.extend([advance(4), OFFSET | 1, 1]);
    bytes
}

fn advance(length: usize) -> u8 {
    debug_assert!(length < 64, "prologues are short");
    let [low, ..] = length.to_le_bytes();
    ADVANCE | low & 0x3f
}

fn push_leb128(bytes: &mut Vec<u8>, mut value: u32) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

/// Adds `.eh_frame` (Linux Standard Base, "Exception Frames").
pub(super) fn add_eh_frame(
    object: &mut Object,
    rules: &Rules,
    functions: &[PlacedFunction],
) -> Result<(), Error> {
    /// Pointers are distances of 32 bits, `DW_EH_PE_pcrel | DW_EH_PE_sdata4`.
    const POINTERS: u8 = 0x1b;

    if functions.is_empty() {
        return Ok(());
    }
    let mut frames = Vec::new();
    // Common part: version, augmentation, code and data factors (1, -8), augmentation data.
    let mut common = vec![0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, rules.return_address, 1, POINTERS];
    common.extend(rules.start);
    push_record(&mut frames, &common)?;

    let mut relocations = Vec::new();
    for function in functions {
        // The distance to the common part, which is at the start, from the second field.
        let common = u32_of(frames.len() + 4)?;
        let mut record = common.to_le_bytes().to_vec();
        record.extend([0; 4]);
        record.extend(u32_of(function.lowered.size())?.to_le_bytes());
        record.push(0); // augmentation data
        record.extend(&function.lowered.prologue.dwarf);
        let offset = to_u64(frames.len() + 8);
        let (kind, symbol) = (rules.relative.0, function.symbol);
        relocations.push(Relocation { offset, kind, symbol, addend: 0 });
        push_record(&mut frames, &record)?;
    }
    let index = object.section(&Name::Borrowed(".eh_frame"), Content::Unwind);
    let section = object.at(index)?;
    section.align = 8;
    section.relocations = relocations;
    section.push(&frames)
}

/// Adds a record with its length before it, padded with instructions that do nothing.
fn push_record(frames: &mut Vec<u8>, record: &[u8]) -> Result<(), Error> {
    let body = (record.len() + 4).next_multiple_of(8) - 4;
    frames.extend(u32_of(body)?.to_le_bytes());
    let end = frames.len() + body;
    frames.extend(record);
    frames.resize(end, 0);
    Ok(())
}

fn u32_of(size: usize) -> Result<u32, Error> {
    let limit = u32::MAX.into();
    u32::try_from(size).map_err(|_| Error::object_too_large(ObjectFormat::Elf, to_u64(size), limit))
}
