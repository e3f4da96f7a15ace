//! LLVM bitcode written bit by bit (LLVM Bitcode File Format).

/// Writes a bitstream.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    last: u64,
    used: u32,
}

impl Bits {
    fn fixed(&mut self, value: u64, width: u32) -> &mut Self {
        for bit in 0..width {
            self.last |= (value >> bit & 1) << self.used;
            self.used += 1;
            if self.used == 8 {
                self.bytes.extend(self.last.to_le_bytes().first());
                (self.last, self.used) = (0, 0);
            }
        }
        self
    }

    fn vbr(&mut self, mut value: u64, width: u32) -> &mut Self {
        let more = 1 << (width - 1);
        while value >= more {
            self.fixed(value & (more - 1) | more, width);
            value >>= width - 1;
        }
        self.fixed(value, width)
    }

    fn align(&mut self) -> &mut Self {
        while self.used != 0 || !self.bytes.len().is_multiple_of(4) {
            self.fixed(0, 1);
        }
        self
    }

    /// A record without abbreviation, where abbreviation IDs have four bits.
    fn record(&mut self, code: u64, operands: impl ExactSizeIterator<Item = u64>) -> &mut Self {
        self.fixed(3, 4).vbr(code, 6).vbr(u64::try_from(operands.len()).unwrap_or(0), 6);
        operands.for_each(|operand| {
            self.vbr(operand, 6);
        });
        self
    }

    /// A block in which abbreviation IDs have four bits, in one where they have `outer` bits.
    fn block(&mut self, outer: u32, id: u64, contents: impl FnOnce(&mut Bits)) -> &mut Self {
        let mut inside = Bits::default();
        contents(&mut inside);
        inside.fixed(0, 4).align();
        self.fixed(1, outer).vbr(id, 8).vbr(4, 4).align();
        let words = u32::try_from(inside.bytes.len() / 4).unwrap_or(u32::MAX);
        self.bytes.extend(words.to_le_bytes());
        self.bytes.extend(inside.bytes);
        self
    }
}

const MODULE: u64 = 8;
const CONSTANTS: u64 = 11;
const METADATA: u64 = 15;

fn file(contents: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut bits = Bits { bytes: b"BC\xc0\xde".to_vec(), ..Bits::default() };
    contents(&mut bits);
    bits.bytes
}

fn bytes(text: &[u8]) -> impl ExactSizeIterator<Item = u64> {
    text.iter().copied().map(u64::from)
}

/// Metadata that lists global variables with device code, `count` times; what they are initialised with is one
/// constant for all.
fn embedding(module: &mut Bits, count: u64) {
    module.record(1, [2].into_iter());
    for _ in 0..count {
        // Name, type, constant, initialiser, private.
        module.record(7, [0, 0, 0, 1, count + 1, 9].into_iter());
    }
    module.block(4, CONSTANTS, |constants| {
        constants.record(8, bytes(b"\x10\xff\x10\xad"));
    });
    module.block(4, METADATA, |metadata| {
        metadata.record(1, bytes(b".llvm.offloading"));
        for global in 0..count {
            metadata.record(2, [0, global].into_iter());
        }
        for global in 0..count {
            metadata.record(3, [global + 2, 1].into_iter());
        }
        metadata.record(4, bytes(b"llvm.embedded.objects"));
        let nodes: Vec<u64> = (0..count).map(|node| count + 1 + node).collect();
        metadata.record(10, nodes.into_iter());
    });
}

/// A module of many global variables with device code.
#[must_use]
pub fn bitcode_globals(n: usize) -> Vec<u8> {
    let count = u64::try_from(n / 24).unwrap_or(0);
    file(|bits| {
        bits.block(2, MODULE, |module| embedding(module, count));
    })
}

/// Many modules, each with an embedded object.
#[must_use]
pub fn bitcode_modules(n: usize) -> Vec<u8> {
    let mut one = Bits::default();
    one.block(2, MODULE, |module| embedding(module, 1));
    let mut bytes = b"BC\xc0\xde".to_vec();
    bytes.extend(one.bytes.repeat(n / one.bytes.len()));
    bytes
}

/// Blocks of metadata that each define an abbreviation of as many operands as may be.
#[must_use]
pub fn bitcode_abbreviations(n: usize) -> Vec<u8> {
    let operands = 60_000;
    let one = {
        let mut one = Bits::default();
        one.block(4, METADATA, |block| {
            block.fixed(2, 4).vbr(operands, 5);
            // Characters of six bits.
            (0..operands).for_each(|_| {
                block.fixed(0, 1).fixed(4, 3);
            });
        });
        one.bytes
    };
    file(|bits| {
        bits.block(2, MODULE, |module| {
            module.align();
            (0..n.div_ceil(one.len())).for_each(|_| module.bytes.extend(&one));
        });
    })
}

/// Records of arrays, in a module of metadata that is read more than once.
#[must_use]
pub fn bitcode_arrays(n: usize) -> Vec<u8> {
    file(|bits| {
        bits.block(2, MODULE, |module| {
            module.block(4, METADATA, |block| {
                // Names of kinds, which have no number: an array of numbers in one chunk of two bits each.
                block.fixed(2, 4).vbr(3, 5).fixed(1, 1).vbr(6, 8);
                block.fixed(0, 1).fixed(3, 3).fixed(0, 1).fixed(2, 3).vbr(2, 5);
                for _ in 0..n / 256 {
                    block.fixed(4, 4).vbr(1000, 6);
                    (0..1000).for_each(|_| {
                        block.fixed(0, 2);
                    });
                }
            });
            embedding(module, 1);
        });
    })
}

/// Blocks in blocks, as deep as the size allows.
#[must_use]
pub fn bitcode_nested_blocks(n: usize) -> Vec<u8> {
    let depth = n / 12;
    let mut bits = Bits { bytes: b"BC\xc0\xde".to_vec(), ..Bits::default() };
    let words = |level: usize| u32::try_from((depth - level) * 3).unwrap_or(u32::MAX);
    bits.fixed(1, 2).vbr(MODULE, 8).vbr(4, 4).align();
    bits.bytes.extend(words(0).to_le_bytes());
    for level in 1..depth {
        bits.fixed(1, 4).vbr(METADATA, 8).vbr(4, 4).align();
        bits.bytes.extend(words(level).to_le_bytes());
        bits.bytes.extend([0; 4]);
    }
    bits.bytes.resize(bits.bytes.len() + 12, 0);
    bits.bytes
}
