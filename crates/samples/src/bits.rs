//! LLVM bitcode, written bit by bit.

/// Writes a bitstream.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    last: u8,
    used: u32,
}

impl Bits {
    /// Starts a file of raw bitcode.
    #[must_use]
    pub fn file() -> Self {
        Bits { bytes: b"BC\xc0\xde".to_vec(), ..Bits::default() }
    }

    /// Adds a number of this width.
    pub fn fixed(&mut self, value: u64, width: u32) -> &mut Self {
        for bit in 0..width {
            self.last |= ((value >> bit & 1) as u8) << self.used;
            self.used += 1;
            if self.used == 8 {
                self.bytes.push(self.last);
                (self.last, self.used) = (0, 0);
            }
        }
        self
    }

    /// Adds a number in chunks of this width.
    pub fn vbr(&mut self, mut value: u64, width: u32) -> &mut Self {
        while value >> (width - 1) > 0 {
            self.fixed(value & ((1 << (width - 1)) - 1) | 1 << (width - 1), width);
            value >>= width - 1;
        }
        self.fixed(value, width)
    }

    /// Adds zeros up to a multiple of 32 bits.
    pub fn align(&mut self) -> &mut Self {
        while self.used != 0 || !self.bytes.len().is_multiple_of(4) {
            self.fixed(0, 1);
        }
        self
    }

    /// Adds bytes, after a number of whole bytes.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        assert_eq!(self.used, 0, "bytes within a byte");
        self.bytes.extend(bytes);
        self
    }

    /// Ends a chain of calls.
    pub fn done(&mut self) {}

    /// Adds a record without abbreviation, in a block whose abbreviation IDs have four bits.
    pub fn record(&mut self, code: u64, operands: &[u64]) -> &mut Self {
        self.fixed(3, 4).vbr(code, 6).vbr(operands.len() as u64, 6);
        for &operand in operands {
            self.vbr(operand, 6);
        }
        self
    }

    /// Adds a block whose abbreviation IDs have four bits, in one where they have `outer` bits.
    pub fn block(&mut self, outer: u32, id: u64, contents: impl FnOnce(&mut Bits)) -> &mut Self {
        let mut inside = Bits::default();
        contents(&mut inside);
        inside.fixed(0, 4).align();
        self.fixed(1, outer).vbr(id, 8).vbr(4, 4).align();
        self.raw(&(inside.bytes.len() as u32 / 4).to_le_bytes()).raw(&inside.bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let last = if self.used > 0 { &[self.last][..] } else { &[] };
        [&self.bytes, last].concat()
    }
}

/// ID of a block with abbreviations for others.
pub const BLOCKINFO: u64 = 0;
/// ID of a module's block.
pub const MODULE: u64 = 8;

/// Returns bytes as operands of a record.
#[must_use]
pub fn wide(bytes: &[u8]) -> Vec<u64> {
    bytes.iter().copied().map(u64::from).collect()
}

/// Returns a file of raw bitcode with what `contents` writes into a module.
pub fn module(contents: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut bits = Bits::file();
    bits.block(2, MODULE, contents);
    bits.bytes()
}
