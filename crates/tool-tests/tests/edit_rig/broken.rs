//! Files with something wrong in them, to see that it is seen.

use super::memory::{Elf, is_wrappers};
use super::zoo::Linked;

/// A file and a way to break it.
pub struct Breaker {
    bytes: Vec<u8>,
}

impl Breaker {
    pub fn new(file: &Linked) -> Self {
        Breaker { bytes: std::fs::read(&file.path).unwrap() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the offset of a section in the file.
    pub fn section(&self, name: &str) -> usize {
        Elf::new(&self.bytes).section(name).offset.try_into().unwrap()
    }

    /// Returns the offset of a section's header in the file.
    pub fn section_header(&self, name: &str) -> usize {
        let elf = Elf::new(&self.bytes);
        let index = elf.sections.iter().position(|section| section.name == name).unwrap();
        usize::try_from(u64::from_le_bytes(self.bytes[40..48].try_into().unwrap())).unwrap()
            + index * 64
    }

    /// Returns the offset of the program header of the segment that holds a section.
    pub fn program_header(&self, kind: u32, section: &str) -> usize {
        let elf = Elf::new(&self.bytes);
        let address = elf.section(section).address;
        let holds = |segment: &super::memory::Segment| {
            segment.kind == kind
                && (segment.address..segment.address + segment.memory_size).contains(&address)
        };
        64 + elf.segments.iter().position(holds).unwrap() * 56
    }

    /// Returns the offset of the first occurrence of some bytes after `from`.
    pub fn find(&self, from: usize, bytes: &[u8]) -> usize {
        from + self.bytes[from..].windows(bytes.len()).position(|window| window == bytes).unwrap()
    }

    /// Changes one byte.
    pub fn flip(mut self, at: usize) -> Self {
        self.bytes[at] ^= 1;
        self
    }

    pub fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Adds to a 64-bit number.
    pub fn add(self, at: usize, number: u64) -> Self {
        let old = u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap());
        let new = old.wrapping_add(number).to_le_bytes();
        self.put(at, &new)
    }

    /// The address that the first relocation at this place of a section of wrappers gives it: where it is stored.
    pub fn relocation_of_wrapper(&self, wrapper: u64) -> usize {
        self.relocation_of_wrapper_field(wrapper, 8)
    }

    /// The same for another field of the wrapper.
    pub fn relocation_of_wrapper_field(&self, wrapper: u64, field: u64) -> usize {
        let elf = Elf::new(&self.bytes);
        let wrappers = elf.sections.iter().find(|section| is_wrappers(&section.name));
        let pointer = wrappers.unwrap().address + wrapper * 24 + field;
        self.find(self.section(".rela.dyn"), &pointer.to_le_bytes()) + 16
    }

    /// Moves the program headers to the end of the file, in a segment of their own, as tools do that need room for one
    /// more. The file loads.
    pub fn move_program_headers(mut self) -> Self {
        let elf = Elf::new(&self.bytes);
        let last = elf.loads().last().unwrap().clone();
        let at = elf.segments.iter().rposition(|segment| *segment == last).unwrap() + 1;
        let count = elf.segments.len();
        let mut headers: Vec<_> =
            self.bytes[64..64 + count * 56].chunks(56).map(<[u8]>::to_vec).collect();
        self.bytes.resize(self.bytes.len().next_multiple_of(0x1000), 0);
        let offset = self.bytes.len() as u64;
        let address = (last.address + last.memory_size).next_multiple_of(0x1000);
        let size = (count as u64 + 1) * 56;
        let load: Vec<u8> = [1 | 4 << 32, offset, address, address, size, size, 0x1000]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        headers.insert(at, load);
        self.bytes.extend(headers.concat());
        let count = u16::try_from(count + 1).unwrap();
        self.put(32, &offset.to_le_bytes()).put(56, &count.to_le_bytes())
    }
}
