//! The machines whose code a file holds: hybrid files, ARM64EC and ARM64X, have code for ARM64 and for x86-64.
//!
//! After `winnt.h` (`IMAGE_ARM64EC_METADATA`) and LLVM's `chpe_range_entry`.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use object::pe::IMAGE_FILE_MACHINE_ARM64;
use object::{LittleEndian, U32};

use super::file::File;
use crate::linked::scan::Machine;
use crate::pod::{LE, entries, first};
use crate::tables::sized;

const X86_64: &[Machine] = &[Machine::X86_64];
const AARCH64: &[Machine] = &[Machine::Aarch64];
const BOTH: &[Machine] = &[Machine::X86_64, Machine::Aarch64];
/// Linkers sort code by machine: a map has few ranges. The map of a file with more is not read.
const MOST_RANGES: u64 = 4096;
/// Bytes of an instruction for ARM64, and the alignment of ranges.
const WORD: u64 = 4;
/// Bytes of the longest instruction for x86-64.
const LONGEST: u64 = 15;
/// `Version`, `CodeMap` and `CodeMapCount` of the metadata.
const METADATA_SIZE: u64 = 12;
/// `StartOffset` and `Length` of a range.
const RANGE_SIZE: u64 = 8;

/// Ranges of addresses with a machine.
type Ranges = Vec<(Range<u64>, Machine)>;

/// The machines of a file's code. Addresses count from the image base.
pub(super) enum Code {
    /// All code is for one machine.
    One(Machine),
    /// Any code may be for either machine.
    Any,
    /// The code in these ranges, which are in ascending order, is for these machines. Other code may be for either.
    Mapped(Ranges),
}

impl Code {
    /// Reads the code map of a hybrid file. Without a map that can be read, code may be for either machine.
    pub(super) fn read(source: &mut Source<'_>, file: &File) -> io::Result<Code> {
        if file.is_hybrid() == Some(false) {
            let is_arm = file.coff.machine.get(LE) == IMAGE_FILE_MACHINE_ARM64;
            return Ok(Code::One(if is_arm { Machine::Aarch64 } else { Machine::X86_64 }));
        }
        let config = file.load_config.as_ref();
        let at = config
            .and_then(|config| config.chpe_metadata_pointer.get(LE).checked_sub(file.image_base()));
        let map = at.map(|at| code_map(source, file, at)).transpose()?;
        Ok(map.flatten().map_or(Code::Any, Code::Mapped))
    }

    /// Returns the machine, if there is one only.
    pub(super) fn only(&self) -> Option<Machine> {
        if let Code::One(machine) = self { Some(*machine) } else { None }
    }

    /// Returns parts of the code at these addresses, with the machines that each may be for.
    ///
    /// A map need not be right to the byte, so parts for x86-64 have the bytes around them with which an instruction may share
    /// their ends.
    pub(super) fn parts(&self, memory: &Range<u64>) -> Vec<(Range<u64>, &[Machine])> {
        let ranges = match self {
            Code::One(machine) => return vec![(memory.clone(), std::slice::from_ref(machine))],
            Code::Any => return vec![(memory.clone(), BOTH)],
            Code::Mapped(ranges) => ranges,
        };
        let wide = |part: &Range<u64>| {
            let (before, after) = (part.start - memory.start, memory.end - part.end);
            part.start - before.min(LONGEST)..part.end + after.min(LONGEST)
        };
        let (mut parts, mut at) = (Vec::new(), memory.start);
        let mut push = |part: Range<u64>, machines: &[Machine]| {
            if !part.is_empty() && machines.contains(&Machine::X86_64) {
                parts.push((wide(&part), X86_64));
            }
            if !part.is_empty() && machines.contains(&Machine::Aarch64) {
                parts.push((part, AARCH64));
            }
        };
        for (range, machine) in ranges {
            let part = range.start.max(memory.start)..range.end.min(memory.end);
            if part.is_empty() {
                continue;
            }
            push(at..part.start, BOTH);
            // The next words for ARM64 may start in the last bytes for x86-64.
            at = part.end - part.end % WORD;
            push(part, std::slice::from_ref(machine));
        }
        push(at..memory.end, BOTH);
        parts
    }
}

/// Returns the map of the metadata at an address; `None` if it is not one that is known.
fn code_map(source: &mut Source<'_>, file: &File, at: u64) -> io::Result<Option<Ranges>> {
    let Some(end) = at.checked_add(METADATA_SIZE) else { return Ok(None) };
    let metadata = file.read_at(source, &(at..end))?;
    let Some([version, map, count]) = metadata
        .and_then(|bytes| first::<[U32<LittleEndian>; 3]>(&bytes))
        .map(|words| words.map(|word| u64::from(word.get(LE))))
    else {
        return Ok(None);
    };
    if !matches!(version, 1 | 2) || !(1..=MOST_RANGES).contains(&count) {
        return Ok(None);
    }
    let Some(bytes) = file.read_at(source, &sized(map, count * RANGE_SIZE))? else {
        return Ok(None);
    };
    let (mut ranges, mut end) = (Vec::new(), 0);
    for words in entries::<[U32<LittleEndian>; 2]>(&bytes) {
        let [start, size] = words.map(|word| u64::from(word.get(LE)));
        let machine = match start % WORD {
            // ARM64, ARM64EC
            0 | 1 => Machine::Aarch64,
            2 => Machine::X86_64,
            _ => return Ok(None),
        };
        let range = sized(start - start % WORD, size);
        if range.start < end {
            return Ok(None);
        }
        end = range.end;
        ranges.push((range, machine));
    }
    Ok(Some(ranges))
}
