//! Addresses in machine code and data: what refers to a bundle.
//!
//! Blocks come with [`MARGIN`] bytes before and after the searched bytes.

mod functions;
mod x86_64;

use std::io;
use std::ops::Range;

use byte_parts::{Source, internal};
use x86_64::{Instruction, LONGEST, decode};

pub(super) use functions::{Function, settle};

/// Bytes scanned at once.
const BLOCK: u64 = 64 * 1024;
/// Bytes before and after a block that are looked at too.
const MARGIN: u64 = 16;
const BEFORE: usize = 16;
/// The number of bytes after the first byte of a field.
const FIELD: usize = 16;
const _: () = assert!(BEFORE as u64 == MARGIN && BEFORE >= LONGEST && FIELD as u64 <= MARGIN);

/// The machine of the host code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

/// Number of apparent references from x86-64 code to a bundle above which it counts as referenced.
const MOST_SUSPECTS: u32 = 64;

/// Four or eight bytes of x86-64 code that are an operand with the address of a bundle, if an instruction starts where
/// one can be decoded that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Suspect {
    bundle: usize,
    at: u64,
}

/// Bundle starts that are looked for, and what was found.
pub(super) struct Targets<'a> {
    starts: &'a [u64],
    slot: &'a Range<u64>,
    /// `true` if code may hold addresses as they are: nothing relocates it.
    absolute: bool,
    /// References for [`settle`] to decide on, with their number for each bundle.
    suspects: Vec<Suspect>,
    suspected: Vec<u32>,
    /// `true` if a wrapper leads to each.
    wrapped: Vec<bool>,
    /// The lower bits that all starts have in common, and what they are.
    mask: u64,
    low: u64,
    /// The place of the first reference to each.
    found: Vec<Option<u64>>,
    /// The number of bundles without a reference so far.
    left: usize,
}

impl<'a> Targets<'a> {
    pub(super) fn new(starts: &'a [u64], slot: &'a Range<u64>, relocated: bool) -> Self {
        let first = starts.first().copied().unwrap_or(0);
        let differences = starts.iter().fold(0x1000, |all, start| all | (start ^ first));
        let mask = (1 << differences.trailing_zeros()) - 1;
        let (found, left) = (vec![None; starts.len()], starts.len());
        let (suspects, suspected) = (Vec::new(), vec![0; starts.len()]);
        let (low, absolute, wrapped) = (first & mask, !relocated, vec![false; starts.len()]);
        Targets { starts, slot, absolute, suspects, suspected, wrapped, mask, low, found, left }
    }

    /// Notes that a wrapper points to this address.
    pub(super) fn wrapped(&mut self, address: u64) {
        let bundle = self.starts.binary_search(&address).ok();
        if let Some(wrapped) = bundle.and_then(|bundle| self.wrapped.get_mut(bundle)) {
            *wrapped = true;
        }
    }

    /// Returns whether a start may be at `address`, or up to `further` bytes after it: most are not.
    #[inline]
    pub(super) fn maybe(&self, address: u64, further: u64) -> bool {
        address.wrapping_add(further).wrapping_sub(self.low) & self.mask <= further
    }

    /// Adds a reference to exactly this address.
    pub(super) fn exact(&mut self, address: u64, at: u64) {
        if self.slot.contains(&address)
            && let Ok(n) = self.starts.binary_search(&address)
        {
            self.note(n, at);
        }
    }

    /// Adds a number of 4 bytes that may be this address.
    fn short(&mut self, address: u64, at: u64) {
        if let Ok(n) = self.starts.binary_search(&address)
            && self.wrapped.get(n) == Some(&false)
        {
            self.note(n, at);
        }
    }

    /// Adds an operand that may be exactly this address.
    fn suspect(&mut self, address: u64, at: u64) {
        let Ok(bundle) = self.starts.binary_search(&address) else { return };
        if self.suspects.last() == Some(&Suspect { bundle, at }) {
            return;
        }
        let Some(count) = self.suspected.get_mut(bundle) else { return };
        *count += 1;
        if *count > MOST_SUSPECTS {
            self.note(bundle, at);
        } else if self.found.get(bundle) == Some(&None) {
            self.suspects.push(Suspect { bundle, at });
        }
    }

    /// Adds a reference to the page of this address.
    pub(super) fn page(&mut self, address: u64, at: u64) {
        let page = address & !0xfff;
        let first = self.starts.partition_point(|&start| start < page);
        let in_page = self.starts.iter().skip(first).take_while(|&start| start & !0xfff == page);
        for n in first..first + in_page.count() {
            self.note(n, at);
        }
    }

    /// Returns the bundle at this address.
    pub(super) fn bundle(&self, address: u64) -> Option<usize> {
        let n = self.starts.partition_point(|&start| start <= address);
        if self.slot.contains(&address) { n.checked_sub(1) } else { None }
    }

    /// Adds a reference to any part of a bundle.
    pub(super) fn within(&mut self, address: u64, at: u64) {
        if let Some(n) = self.bundle(address) {
            self.note(n, at);
        }
    }

    /// Adds a reference with an unknown target.
    pub(super) fn all(&mut self, at: u64) {
        let missing = if self.all_found() { 0 } else { self.starts.len() };
        for n in 0..missing {
            self.note(n, at);
        }
    }

    fn note(&mut self, n: usize, at: u64) {
        if let Some(found @ None) = self.found.get_mut(n) {
            *found = Some(at);
            self.left -= 1;
        }
    }

    pub(super) fn all_found(&self) -> bool {
        self.left == 0
    }

    pub(super) fn found(self) -> Vec<(usize, u64)> {
        let found = self.found.into_iter().enumerate();
        found.filter_map(|(n, at)| at.map(|at| (n, at))).collect()
    }
}

/// Looks at code, section by section.
pub(super) struct Scanner {
    machine: Machine,
    relocated: bool,
    got: Vec<u64>,
    /// The values that `movz` and `movk` last built in each AArch64 register.
    registers: [u64; 32],
}

impl Scanner {
    /// Returns a scanner. `got` has the possible bases of offsets in x86-64's large code model.
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

    /// Visits operands of instructions: displacements from the next instruction, or, where nothing is relocated,
    /// addresses; and numbers that `movabs` adds to the address of the global offset table.
    fn x86_64(&self, address: u64, bytes: &[u8], targets: &mut Targets<'_>) {
        let count = searched(bytes).len();
        for (window, at) in bytes.windows(BEFORE + FIELD).take(count).zip(address..u64::MAX) {
            let Some(window) = window.first_chunk::<{ BEFORE + FIELD }>() else { continue };
            // The byte before an operand: `ModR/M`, or an opcode.
            let before = window[BEFORE - 1];
            let (relative, full) = (before & 0xc7 == 5, before & 0xf8 == 0xb8);
            if !relative && !full && !targets.absolute {
                continue;
            }
            let Some((_, field)) = window.split_last_chunk::<FIELD>() else { continue };
            let Some((low, _)) = field.split_first_chunk::<4>() else { continue };
            let low = u32::from_le_bytes(*low);
            let next = at.wrapping_add(4).wrapping_add_signed(low.cast_signed().into());
            if relative && targets.maybe(next, 4)
                || targets.absolute && targets.maybe(low.into(), 0)
            {
                operand(window, at, targets);
            }
            // `movabs`, with an offset from the global offset table
            if full
                && window[BEFORE - 2] & 0xfe == 0x48
                && let Some(offset) = field.first_chunk()
            {
                for got in &self.got {
                    targets.exact(u64::from_le_bytes(*offset).wrapping_add(*got), at);
                }
            }
        }
    }

    /// Visits addresses in Arm code (Architecture Reference Manual, A64): ADRP, ADR, LDR (literal); MOVZ, MOVN and MOVK
    /// where the linker knows addresses.
    fn aarch64(&mut self, address: u64, bytes: &[u8], targets: &mut Targets<'_>) {
        for (word, at) in
            searched(bytes).as_chunks::<4>().0.iter().zip((address..u64::MAX).step_by(4))
        {
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
                let index = (word & 0x1f) as usize;
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

/// Collects the targets of the bytes from the middle of the window on, which lie at `at`, as an operand of an instruction
/// that starts before them.
fn operand(window: &[u8], at: u64, targets: &mut Targets<'_>) {
    for before in 1..LONGEST {
        let Some(bytes) = window.get(BEFORE - before..) else { continue };
        let Some(instruction) = decode(bytes) else { continue };
        let address = at.wrapping_sub(before as u64);
        for target in target(&instruction, address, bytes, before, targets.absolute) {
            targets.suspect(target, at);
        }
    }
}

/// Returns the addresses that an instruction may have as its operand at this offset in it. `bytes` start with the
/// instruction, which lies at `address`.
fn target(
    instruction: &Instruction,
    address: u64,
    bytes: &[u8],
    at: usize,
    absolute: bool,
) -> impl Iterator<Item = u64> + use<> {
    let number = absolute.then(|| instruction.absolute(at, bytes)).flatten();
    instruction.relative(at, address, bytes).into_iter().chain(number)
}

/// Returns the number in the lower `bits`.
fn signed(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

/// Looks at a block at `address` for addresses as numbers, except `expected` ones.
///
/// Data has addresses of 8 bytes. Numbers of 4 bytes, which no compiler for these machines writes, count for bundles
/// that no wrapper leads to, at multiples of 4: tables of characters have many numbers like addresses.
pub(super) fn absolute(
    address: u64,
    bytes: &[u8],
    targets: &mut Targets<'_>,
    expected: &dyn Fn(u64) -> bool,
) {
    let count = searched(bytes).len();
    for (window, at) in bytes.windows(8).skip(BEFORE).take(count).zip(address..u64::MAX) {
        let Some((low, _)) = window.split_first_chunk::<4>() else { continue };
        let low = u64::from(u32::from_le_bytes(*low));
        if !targets.maybe(low, 0) || expected(at) {
            continue;
        }
        if at.is_multiple_of(4) {
            targets.short(low, at);
        }
        if let Ok(word) = <[u8; 8]>::try_from(window) {
            targets.exact(u64::from_le_bytes(word), at);
        }
    }
}

/// Returns the bytes of a block between its margins.
fn searched(block: &[u8]) -> &[u8] {
    let rest = block.get(BEFORE..);
    let Some((searched, _)) = rest.and_then(<[u8]>::split_last_chunk::<BEFORE>) else {
        internal!("a block without margins");
        return &[];
    };
    searched
}

/// Visits a part of the file, which is loaded to this address, in blocks. Each block has [`MARGIN`] bytes before and
/// after it: bytes of the part, or zeros at its ends. The address is the start of the block without its margins. Stops
/// when `visit` returns `false`.
pub(super) fn blocks(
    source: &mut Source<'_>,
    part: &Range<u64>,
    address: u64,
    visit: &mut dyn FnMut(u64, &[u8]) -> bool,
) -> io::Result<()> {
    let mut start = part.start;
    while start < part.end {
        let end = start + BLOCK.min(part.end - start);
        let (before, after) = (MARGIN.min(start - part.start), MARGIN.min(part.end - end));
        let read = source.read_range(&(start - before..end + after))?;
        let mut bytes = Vec::with_capacity(read.len() + 2 * BEFORE);
        bytes.extend((before..MARGIN).map(|_| 0));
        bytes.extend(read);
        bytes.extend((after..MARGIN).map(|_| 0));
        if !visit(address.wrapping_add(start - part.start), &bytes) {
            break;
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const STARTS: [u64; 3] = [0x1000, 0x2000, 0x3000];
    const SLOT: Range<u64> = 0x1000..0x4000;
    const TEXT: u64 = 0x5000;

    #[test]
    fn references_across_two_blocks_are_found() {
        for (n, at) in (0xfff0..0x10010).zip(0xfff0..) {
            let displacement = 0x3000_u64.wrapping_sub(TEXT + at + 10).to_le_bytes();
            let bytes = [&[0x81, 0x3d][..], &displacement[..4]].concat();
            let mut file = vec![0; 0x12010];
            file[16 + n..16 + n + 6].copy_from_slice(&bytes);
            let mut cursor = Cursor::new(&file);
            let mut source = Source::new(&mut cursor).unwrap();
            let mut targets = Targets::new(&STARTS, &SLOT, true);
            let mut scanner = Scanner::new(Machine::X86_64, true, Vec::new());
            blocks(&mut source, &(16..0x12010), TEXT, &mut |address, bytes| {
                scanner.code(address, bytes, &mut targets);
                true
            })
            .unwrap();
            let no_table = &mut |_: &mut Source<'_>, _| Ok(None);
            settle(&mut source, &mut targets, no_table).unwrap();
            assert_eq!(targets.found(), [(2, TEXT + at + 2)]);
        }
    }

    #[test]
    fn x86_64_offsets_of_the_large_model_are_found() {
        // movabs $offset, %rax
        let bytes = [&[0x48, 0xb8][..], &0x2000_u64.wrapping_sub(0x1234).to_le_bytes()].concat();
        let bytes = [&[0; 16][..], &bytes, &[0; 16]].concat();
        let mut targets = Targets::new(&STARTS, &SLOT, true);
        Scanner::new(Machine::X86_64, true, vec![0x1234]).code(TEXT, &bytes, &mut targets);
        assert_eq!(targets.found(), [(1, TEXT + 2)]);
    }

    #[test]
    fn aarch64_addresses_in_parts_are_found() {
        let starts = [0x40_3000, 0x40_6000];
        let found = |relocated: bool, words: &[u32]| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let bytes = [&[0; 16][..], &code, &[0; 16]].concat();
            let slot = 0x40_3000..0x40_9000;
            let mut targets = Targets::new(&starts, &slot, true);
            let mut scanner = Scanner::new(Machine::Aarch64, relocated, Vec::new());
            scanner.code(0x1000, &bytes, &mut targets);
            targets.found()
        };
        // movz x5, #0x40, lsl 16; nop; movk x5, #0x6000
        let words = [0xd2a0_0805, 0xd503_201f, 0xf28c_0005];
        assert_eq!(found(false, &words), [(1, 0x1008)]);
        assert_eq!(found(true, &words), []);
        // movk x6, #0x6000
        assert_eq!(found(false, &[0xd2a0_0805, 0xd503_201f, 0xf28c_0006]), []);
    }

    #[test]
    fn starts_with_few_common_bits_are_found() {
        let (starts, slot) = ([0x1008, 0x2110, 0x2999], 0x1000..0x4000);
        let mut targets = Targets::new(&starts, &slot, true);
        for start in starts {
            assert!((0..=4).all(|before| targets.maybe(start - before, 4)));
            targets.exact(start, start);
            targets.exact(start + 1, 0);
        }
        assert_eq!(targets.found(), [(0, 0x1008), (1, 0x2110), (2, 0x2999)]);
        let mut targets = Targets::new(&starts, &slot, true);
        targets.page(0x2abc, 7);
        assert_eq!(targets.found(), [(1, 7), (2, 7)]);
    }
}
