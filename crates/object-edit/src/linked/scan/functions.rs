//! References that only seem to be some: bytes in the middle of an instruction that decode as another one. A function
//! is decoded from its first instruction on, which tells where each of its instructions starts.

use std::io;
use std::ops::Range;

use byte_parts::Source;

use super::x86_64::decode;
use super::{Suspect, Targets, target};
use crate::tables::sized;

/// Bytes of a function that are decoded; a longer one is taken to refer to what it seems to refer to.
const LONGEST: u64 = 16 << 20;
/// Bytes that are decoded in total: tables of functions may be made to name the same bytes many times.
const MOST: u64 = 256 << 20;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) addresses: Range<u64>,
    /// The offset of its code in the bytes read.
    pub(crate) offset: u64,
}

/// Settles which suspected references of x86-64 code count: those whose instruction belongs to its function, and those
/// where this is unknown. `function` returns the function around an address, if the file has a table of functions.
pub(crate) fn settle(
    source: &mut Source<'_>,
    targets: &mut Targets<'_>,
    function: &mut dyn FnMut(&mut Source<'_>, u64) -> io::Result<Option<Function>>,
) -> io::Result<()> {
    let mut suspects = std::mem::take(&mut targets.suspects);
    suspects.sort_unstable_by_key(|suspect| (suspect.at, suspect.bundle));
    let mut rest = suspects.as_slice();
    let mut budget = MOST;
    while let Some((first, others)) = rest.split_first() {
        let found = function(source, first.at)?.filter(|found| {
            let Range { start, end } = found.addresses;
            (start..end).contains(&first.at) && end - start <= LONGEST.min(budget)
        });
        let Some(found) = found else {
            targets.note(first.bundle, first.at);
            rest = others;
            continue;
        };
        let size = found.addresses.end - found.addresses.start;
        budget -= size;
        let inside = rest.partition_point(|suspect| suspect.at < found.addresses.end);
        let (inside, behind) = rest.split_at_checked(inside).unwrap_or((rest, &[]));
        let code = source.read_range(&sized(found.offset, size))?;
        for suspect in confirmed(found.addresses.start, &code, inside, targets) {
            targets.note(suspect.bundle, suspect.at);
        }
        rest = behind;
    }
    Ok(())
}

/// Returns those of the suspects that are operands of the function's instructions; all, if it does not decode as a
/// whole.
fn confirmed(start: u64, code: &[u8], suspects: &[Suspect], targets: &Targets<'_>) -> Vec<Suspect> {
    let mut out = Vec::new();
    let mut left = suspects.iter().peekable();
    let (mut address, mut bytes) = (start, code);
    while !bytes.is_empty() {
        let Some((instruction, rest)) = decode(bytes).and_then(|instruction| {
            Some((instruction, bytes.split_at_checked(instruction.len)?.1))
        }) else {
            return suspects.to_vec();
        };
        let end = address.wrapping_add(instruction.len as u64);
        while let Some(suspect) = left.next_if(|suspect| suspect.at < end) {
            let start = targets.starts.get(suspect.bundle);
            let is_operand = |at| {
                target(&instruction, address, bytes, at, targets.absolute)
                    .any(|target| start == Some(&target))
            };
            // No instruction before this one ended after it.
            if usize::try_from(suspect.at - address).is_ok_and(is_operand) {
                out.push(*suspect);
            }
        }
        (address, bytes) = (end, rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::{BEFORE, Machine, Scanner};
    use super::*;

    const START: u64 = 0x9000;
    const TEXT: u64 = 0x1000;

    /// Returns the places where the code refers to the bundle, if the table has a function with these places.
    fn found(code: &[u8], function: Option<(u64, u64)>) -> Vec<(usize, u64)> {
        let (starts, slot) = ([START], START..START + 1);
        let mut targets = Targets::new(&starts, &slot, true);
        let block = [&[0; BEFORE][..], code, &[0; BEFORE]].concat();
        Scanner::new(Machine::X86_64, true, Vec::new()).code(TEXT, &block, &mut targets);
        let mut cursor = Cursor::new(code);
        let mut source = Source::new(&mut cursor).unwrap();
        settle(&mut source, &mut targets, &mut |_, _| {
            Ok(function.map(|(start, end)| Function {
                addresses: TEXT + start..TEXT + end,
                offset: start,
            }))
        })
        .unwrap();
        targets.found()
    }

    /// Returns `lea` of the bundle with these bytes before it.
    fn lea_after(before: &[u8]) -> Vec<u8> {
        let next = TEXT + before.len() as u64 + 7;
        let displacement = i32::try_from(START - next).unwrap().to_le_bytes();
        [before, &[0x48, 0x8d, 0x05], &displacement, &[0x90, 0xc3]].concat()
    }

    #[test]
    fn an_instruction_inside_another_one_does_not_count() {
        // movabs, with the last byte of its operand after bytes that read as `lea`
        let code = lea_after(&[0x48, 0xb8]);
        let at = TEXT + 2 + 3;
        assert_eq!(found(&code, None), [(0, at)]);
        assert_eq!(found(&code, Some((0, 11))), []);
        // A function that starts there.
        assert_eq!(found(&code, Some((2, 11))), [(0, at)]);
        // Functions that end in the middle of an instruction, or do not hold it.
        assert_eq!(found(&code, Some((0, 9))), [(0, at)]);
        assert_eq!(found(&code, Some((0, 4))), [(0, at)]);
        // One that does not decode.
        let mut code = code;
        code[10] = 0x06;
        assert_eq!(found(&code, Some((0, 11))), [(0, at)]);
    }

    #[test]
    fn an_instruction_of_a_function_counts() {
        let code = lea_after(&[0x55, 0xb8, 1, 0, 0, 0]);
        let at = TEXT + 6 + 3;
        assert_eq!(found(&code, Some((0, 15))), [(0, at)]);
        // As the second of two that seem to be there.
        let mut code = lea_after(&[0x48, 0xb8]);
        code.truncate(10);
        let twice = lea_after(&code);
        assert_eq!(found(&twice, None), [(0, TEXT + 5)]);
        assert_eq!(found(&twice, Some((0, 19))), [(0, TEXT + 13)]);
    }

    #[test]
    fn candidates_past_the_limit_count() {
        let mut code = Vec::new();
        for _ in 0..100 {
            code = lea_after(&[&code[..], &[0x48, 0xb8]].concat());
            code.pop();
        }
        let end = code.len() as u64;
        assert_eq!(found(&code, Some((0, end))), [(0, TEXT + 10 * 64 + 5)]);
        assert_eq!(found(&code[..640], Some((0, 640))), []);
    }
}
