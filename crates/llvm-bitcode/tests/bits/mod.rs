//! Bitcode written bit by bit.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]

/// Writes a bitstream.
#[derive(Default)]
pub struct Bits(Vec<bool>);

impl Bits {
    pub fn fixed(&mut self, value: u64, width: u32) -> &mut Self {
        self.0.extend((0..width).map(|bit| value >> bit & 1 == 1));
        self
    }

    pub fn vbr(&mut self, mut value: u64, width: u32) -> &mut Self {
        while value >> (width - 1) > 0 {
            self.fixed(value & ((1 << (width - 1)) - 1) | 1 << (width - 1), width);
            value >>= width - 1;
        }
        self.fixed(value, width)
    }

    pub fn align(&mut self) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(32), false);
        self
    }

    /// Ends a chain of calls.
    pub fn done(&mut self) {}

    /// A record without abbreviation, in a block whose abbreviation IDs have four bits.
    pub fn record(&mut self, code: u64, operands: &[u64]) -> &mut Self {
        self.fixed(3, 4).vbr(code, 6).vbr(operands.len() as u64, 6);
        for &operand in operands {
            self.vbr(operand, 6);
        }
        self
    }

    /// A block whose abbreviation IDs have four bits, in one where they have `outer` bits.
    pub fn block(&mut self, outer: u32, id: u64, contents: impl FnOnce(&mut Bits)) -> &mut Self {
        let mut inside = Bits::default();
        contents(&mut inside);
        inside.fixed(0, 4).align();
        self.fixed(1, outer).vbr(id, 8).vbr(4, 4).align();
        self.fixed(inside.0.len() as u64 / 32, 32);
        self.0.extend(inside.0);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let byte =
            |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        self.0.chunks(8).map(byte).collect()
    }
}

pub const BLOCKINFO: u64 = 0;
pub const MODULE: u64 = 8;

pub fn wide(bytes: &[u8]) -> Vec<u64> {
    bytes.iter().copied().map(u64::from).collect()
}

/// A file of raw bitcode with what `contents` writes into a module.
pub fn module(contents: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.fixed(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
    bits.block(2, MODULE, contents);
    bits.bytes()
}
