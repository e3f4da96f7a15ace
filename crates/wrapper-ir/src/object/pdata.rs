//! Unwinding of the stack on Windows: `.pdata` and `.xdata`.

use std::iter;

use object::pe;

use super::data::PlacedFunction;
use super::model::{Content, Object, Relocation, Symbol, SymbolKind};
use crate::description::{Linkage, Name};
use crate::error::Error;
use crate::to_u64;

/// Returns the type of a relocation, as descriptions of relocations have it.
pub(super) const fn coff_kind(kind: pe::RelocationType) -> u32 {
    kind.0 as u32
}

/// The rules of one machine.
#[derive(Debug)]
pub(super) enum Rules {
    /// "x64 exception handling" of Microsoft's documentation.
    X86_64,
    /// "ARM64 exception handling" of Microsoft's documentation.
    Arm64,
}

/// Adds `.pdata` and `.xdata`.
pub(super) fn add(
    object: &mut Object,
    rules: &Rules,
    functions: &[PlacedFunction],
) -> Result<(), Error> {
    if functions.is_empty() {
        return Ok(());
    }
    let unwind = object.section(&Name::Borrowed(".xdata"), Content::Data);
    let table = object.section(&Name::Borrowed(".pdata"), Content::Data);
    let start = object.define(Symbol {
        name: Name::Borrowed(".xdata"),
        section: Some(unwind),
        offset: 0,
        size: 0,
        linkage: Linkage::Internal,
        hidden: false,
        kind: SymbolKind::Label,
    });
    // A distance from the start of the program in memory.
    let relative = coff_kind(match rules {
        Rules::X86_64 => pe::IMAGE_REL_AMD64_ADDR32NB,
        Rules::Arm64 => pe::IMAGE_REL_ARM64_ADDR32NB,
    });
    for function in functions {
        let addend = |offset| i64::try_from(offset).map_err(|_| Error::output_too_large());
        let size = addend(to_u64(function.lowered.size()))?;
        // The end of a function is in the table or in the record.
        let (record, end) = match rules {
            Rules::X86_64 => (Some(unwind_info(function)?), Some((function.symbol, size))),
            Rules::Arm64 => (exception_record(function), None),
        };
        let record = record.ok_or_else(|| {
            let symbol = object.symbols.get(function.symbol);
            Error::not_native(symbol.map_or("", |symbol| &symbol.name), "more than 31 returns")
        })?;
        let section = object.at(unwind)?;
        let at = addend(section.align_to(4)?)?;
        section.push(&record)?;
        let fields = iter::once((function.symbol, 0)).chain(end).chain([(start, at)]);
        let section = object.at(table)?;
        for (symbol, addend) in fields {
            let offset = section.align_to(4)?;
            section.relocations.push(Relocation { offset, kind: relative, symbol, addend });
            section.push(&[0; 4])?;
        }
    }
    Ok(())
}

/// Returns the `UNWIND_INFO` of a function whose prologue only takes bytes from the stack.
fn unwind_info(function: &PlacedFunction) -> Result<Vec<u8>, Error> {
    const ALLOCATE_LARGE: u8 = 1;
    const ALLOCATE_SMALL: u8 = 2;

    let prologue = &function.lowered.prologue;
    let large = |_| Error::internal("a large prologue");
    let length = u8::try_from(prologue.length).map_err(large)?;
    // Units of 8 bytes.
    let units = u16::try_from(prologue.frame / 8).map_err(large)?;
    Ok(match u8::try_from(units) {
        Ok(units @ 1..=16) => {
            let code = (units - 1) << 4 | ALLOCATE_SMALL;
            vec![1, length, 1, 0, length, code, 0, 0]
        }
        _ => {
            let [low, high] = units.to_le_bytes();
            vec![1, length, 2, 0, length, ALLOCATE_LARGE, low, high]
        }
    })
}

/// Returns the `IMAGE_ARM64_RUNTIME_FUNCTION_ENTRY_XDATA` of a function: a header, the places of the epilogues, and a
/// code for each instruction of prologue and epilogues; the prologue backwards. `None` if the function has more
/// epilogues than the header can count.
fn exception_record(function: &PlacedFunction) -> Option<Vec<u8>> {
    const SET_FRAME_POINTER: u8 = 0xe1;
    const NOTHING: u8 = 0xe3;
    const END: u8 = 0xe4;
    /// Saves `x29` and `x30` 16 bytes below the stack pointer, which is moved there.
    const SAVE_PAIR: u8 = 0x81;

    let frame = &function.lowered.prologue;
    // Units of 16 bytes; frames are smaller than 32 KiB.
    let units = u16::try_from(frame.frame / 16).ok()?;
    let allocate = match u8::try_from(units) {
        Ok(0) => vec![],
        Ok(units @ 1..32) => vec![units],
        _ => (0xc000 | units).to_be_bytes().to_vec(),
    };
    // The first instruction is a landing pad.
    let prologue = [&allocate[..], &[SET_FRAME_POINTER, SAVE_PAIR, NOTHING, END]].concat();
    let mut codes = [&prologue[..], &allocate, &[SAVE_PAIR, END]].concat();
    codes.resize(codes.len().next_multiple_of(4), NOTHING);

    // Places and sizes of code in units of 4 bytes, with 18 bits.
    let words = |bytes: usize| u32::try_from(bytes / 4).ok().filter(|words| *words < 1 << 18);
    let count = u32::try_from(frame.epilogues.len()).ok().filter(|count| *count < 32)?;
    let header = words(function.lowered.size())? | count << 22 | words(codes.len())? << 27;
    let mut record = header.to_le_bytes().to_vec();
    for at in &frame.epilogues {
        let first_code = u32::try_from(prologue.len()).ok()?;
        let epilogue = words(at - function.lowered.start)? | first_code << 22;
        record.extend(epilogue.to_le_bytes());
    }
    record.extend(codes);
    Some(record)
}
