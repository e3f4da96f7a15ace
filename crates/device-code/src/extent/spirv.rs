//! SPIR-V modules whose end nothing but their own instructions tells.
//!
//! The header has no size. The last function ends a module, except for instructions of debug information after it
//! (SPIR-V Specification, "Logical Layout of a Module").

use alloc::vec::Vec;
use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};

use crate::read::read_range;
use crate::spirv::{HEADER_WORDS, is_swapped, words};

/// Bytes that are read at first, and at most, at one time.
const FIRST_PIECE: u64 = 4 << 10;
const LARGEST_PIECE: u64 = 64 << 10;

/// IDs that a module may have: sixteen times the limit that every device has to support.
const MOST_IDS: u32 = 1 << 26;

/// Version 1.6.
const LAST_VERSION: u32 = 0x0001_0600;

/// Words of an instruction that are looked at.
const KEPT: usize = 4;

/// Opcodes ("Instructions") that order and end depend on.
mod op {
    pub(crate) const LINE: u32 = 8;
    pub(crate) const EXT_INST: u32 = 12;
    pub(crate) const MEMORY_MODEL: u32 = 14;
    pub(crate) const FUNCTION: u32 = 54;
    pub(crate) const FUNCTION_PARAMETER: u32 = 55;
    pub(crate) const FUNCTION_END: u32 = 56;
    pub(crate) const LABEL: u32 = 248;
    pub(crate) const NO_LINE: u32 = 317;
    /// Opcodes of extensions of vendors and of Khronos.
    pub(crate) const FIRST_EXTENSION: u32 = 4096;
    pub(crate) const LAST: u32 = 8191;
    /// Declarations of `SPV_INTEL_memory_access_aliasing`.
    pub(crate) const FIRST_ALIAS: u32 = 5911;
    pub(crate) const LAST_ALIAS: u32 = 5913;
}

/// Returns the size of the module that starts in `window`, whose first bytes are `head`; `None` if none does that
/// is in order.
///
/// It has a version up to 1.6, a memory model, its instructions in the order of the specification, and at least one
/// function with a body. `read` counts the bytes that were looked at.
pub(crate) fn size(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    head: &[u8],
    read: &mut u64,
) -> Result<Option<u64>, Unreadable> {
    let is_swapped = is_swapped(head);
    let mut header = words(head, is_swapped).skip(1);
    let (Some(version), Some(_generator), Some(bound @ 1..=MOST_IDS), Some(0)) =
        (header.next(), header.next(), header.next(), header.next())
    else {
        return Ok(None);
    };
    if version & !0xff00 != 1 << 16 || version > LAST_VERSION {
        return Ok(None);
    }
    let at = 4 * HEADER_WORDS as u64;
    let (piece, piece_start) = (Vec::new(), 0);
    let mut chain = Chain { source, window, is_swapped, at, piece, piece_start, read };
    let mut layout = Layout { part: Part::Header, bound, has_memory_model: false, has_body: false };
    let mut end = None;
    while let Some(instruction) = chain.next()? {
        let Some(part) = layout.next(&instruction) else { break };
        // After the last function, debug information may follow; lines belong to the next function.
        end = match (part, instruction.words[0] & 0xffff) {
            (Part::AfterFunction, op::LINE | op::NO_LINE) => end,
            (Part::AfterFunction, _) => Some(chain.at).filter(|_| layout.has_body),
            _ => None,
        };
        layout.part = part;
    }
    Ok(end)
}

/// The first words of an instruction, and the number of all.
#[derive(Clone, Copy)]
struct Instruction {
    words: [u32; KEPT],
    len: u32,
}

/// The instructions of a module, one after the other.
struct Chain<'a> {
    source: &'a mut dyn ReadAt,
    window: &'a Range<u64>,
    is_swapped: bool,
    /// The next instruction, from the start of the window.
    at: u64,
    piece: Vec<u8>,
    piece_start: u64,
    read: &'a mut u64,
}

impl Chain<'_> {
    /// Returns the next instruction; `None` if none can start here.
    fn next(&mut self) -> Result<Option<Instruction>, Unreadable> {
        let Some(first) = self.word(self.at)? else { return Ok(None) };
        let len = first >> 16;
        let end = self.at + 4 * u64::from(len);
        if len == 0 || end > Window::new(self.window).len() {
            return Ok(None);
        }
        let mut instruction = Instruction { words: [first, 0, 0, 0], len };
        for (at, word) in (self.at + 4..end).step_by(4).zip(instruction.words.iter_mut().skip(1)) {
            let Some(read) = self.word(at)? else { return Ok(None) };
            *word = read;
        }
        self.at = end;
        Ok(Some(instruction))
    }

    fn word(&mut self, at: u64) -> Result<Option<u32>, Unreadable> {
        let index = at.checked_sub(self.piece_start).and_then(|at| usize::try_from(at).ok());
        let word = |piece: &[u8]| words(piece.get(index?..)?, self.is_swapped).next();
        if let Some(word) = word(&self.piece) {
            return Ok(Some(word));
        }
        let Some(Range { start, .. }) = Window::new(self.window).sized(at, 4) else {
            return Ok(None);
        };
        let len = (2 * self.piece.len() as u64).clamp(FIRST_PIECE, LARGEST_PIECE);
        self.piece = read_range(self.source, &(start..self.window.end.min(start + len)))?;
        self.piece_start = at;
        *self.read += self.piece.len() as u64;
        Ok(words(&self.piece, self.is_swapped).next())
    }
}

/// The place in a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Header,
    Capabilities,
    Extensions,
    Imports,
    /// The memory model, and entry points.
    EntryPoints,
    ExecutionModes,
    /// Sources, names and decorations.
    Names,
    /// Types, constants and variables.
    Globals,
    /// A function before its first block.
    FunctionHead,
    Block,
    /// A function between two blocks, or after the last.
    BlockEnd,
    AfterFunction,
}

/// The rules of the order of instructions.
struct Layout {
    part: Part,
    /// All IDs are below.
    bound: u32,
    has_memory_model: bool,
    has_body: bool,
}

impl Layout {
    /// Returns the part of the module that this instruction leads to; `None` if it cannot stand here.
    fn next(&mut self, instruction: &Instruction) -> Option<Part> {
        let [first, a, b, c] = instruction.words;
        let are_ids = |ids: &[u32]| ids.iter().all(|id| (1..self.bound).contains(id));
        match (self.part, first & 0xffff, instruction.len) {
            (part, op::NO_LINE, 1) if part >= Part::Names => Some(part.max(Part::Globals)),
            (part, op::LINE, 4) if part >= Part::Names => {
                are_ids(&[a]).then_some(part.max(Part::Globals))
            }
            // Compilers put these before decorations, the extension wants them among global instructions.
            (part, op::FIRST_ALIAS..=op::LAST_ALIAS, 2..)
                if (Part::EntryPoints..=Part::Globals).contains(&part) =>
            {
                are_ids(&[a]).then_some(part.max(Part::Names))
            }
            (Part::BlockEnd, op::EXT_INST, _) => None,
            (part, op::EXT_INST, 5..) if part >= Part::Names => {
                are_ids(&[a, b, c]).then_some(part.max(Part::Globals))
            }
            (Part::Globals | Part::AfterFunction, op::FUNCTION, 5) => {
                (self.has_memory_model && are_ids(&[a, b])).then_some(Part::FunctionHead)
            }
            (Part::FunctionHead, op::FUNCTION_PARAMETER, 3) => {
                are_ids(&[a, b]).then_some(Part::FunctionHead)
            }
            (Part::FunctionHead | Part::BlockEnd, op::LABEL, 2) => {
                self.has_body = true;
                are_ids(&[a]).then_some(Part::Block)
            }
            (Part::FunctionHead | Part::BlockEnd, op::FUNCTION_END, 1) => Some(Part::AfterFunction),
            (Part::Block, opcode, len) => in_block(opcode, len),
            (part, opcode, len) if part <= Part::Globals => {
                let next = before_functions(part, opcode, len).filter(|next| *next >= part)?;
                if part == Part::Header && next != Part::Capabilities {
                    return None;
                }
                let is_memory_model = opcode == op::MEMORY_MODEL;
                // Exactly one.
                if next >= Part::EntryPoints && is_memory_model == self.has_memory_model {
                    return None;
                }
                self.has_memory_model |= is_memory_model;
                Some(next)
            }
            _ => None,
        }
    }
}

/// Returns the part of a module that an instruction before the functions leads to, from `part`.
fn before_functions(part: Part, opcode: u32, len: u32) -> Option<Part> {
    Some(match (opcode, len) {
        (17, 2) => Part::Capabilities,
        (10, 2..) => Part::Extensions,
        (11, 3..) => Part::Imports,
        (op::MEMORY_MODEL, 3) | (15, 4..) => Part::EntryPoints,
        (16 | 331, 3..) => Part::ExecutionModes,
        (2..=7 | 71..=75 | 330 | 332 | 5632 | 5633, 2..) => Part::Names,
        (1 | 19..=39 | 41..=46 | 48..=52 | 59 | 322 | 323 | 327, 2..) => Part::Globals,
        // Among the names and decorations (`OpAliasScopeDeclINTEL`), or after them.
        (op::FIRST_EXTENSION..=op::LAST, 2..) => part.max(Part::Names),
        _ => return None,
    })
}

/// Returns the part of a module that follows an instruction in a block.
fn in_block(opcode: u32, len: u32) -> Option<Part> {
    match (opcode, len) {
        // Branches, returns and other ends of blocks, also of rays and meshes.
        (249 | 254, 2) | (250, 4 | 6) | (251, 3..) | (252 | 253 | 255, 1) => Some(Part::BlockEnd),
        (4416 | 4448 | 4449 | 5294, _) => Some(Part::BlockEnd),
        (0 | 1 | 57..=70 | 77..=247 | 256..=329 | 333..=403, _) => Some(Part::Block),
        (op::FIRST_EXTENSION..=op::LAST, _) => Some(Part::Block),
        _ => None,
    }
}
