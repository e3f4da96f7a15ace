//! LLVM bitcode written bit by bit (LLVM Bitcode File Format).

use samples::bits::{Bits, MODULE, module, wide};

const CONSTANTS: u64 = 11;
const METADATA: u64 = 15;

/// Metadata that lists global variables with device code, `count` times; what they are initialised with is one
/// constant for all.
fn embedding(module: &mut Bits, count: u64) {
    module.record(1, &[2]);
    for _ in 0..count {
        // Name, type, constant, initialiser, private.
        module.record(7, &[0, 0, 0, 1, count + 1, 9]);
    }
    module.block(4, CONSTANTS, |constants| {
        constants.record(8, &wide(b"\x10\xff\x10\xad"));
    });
    module.block(4, METADATA, |metadata| {
        metadata.record(1, &wide(b".llvm.offloading"));
        for global in 0..count {
            metadata.record(2, &[0, global]);
        }
        for global in 0..count {
            metadata.record(3, &[global + 2, 1]);
        }
        metadata.record(4, &wide(b"llvm.embedded.objects"));
        let nodes: Vec<u64> = (0..count).map(|node| count + 1 + node).collect();
        metadata.record(10, &nodes);
    });
}

/// A module of many global variables with device code.
#[must_use]
pub fn bitcode_globals(n: usize) -> Vec<u8> {
    let count = u64::try_from(n / 24).unwrap_or(0);
    module(|module| embedding(module, count))
}

/// Many modules, each with an embedded object.
#[must_use]
pub fn bitcode_modules(n: usize) -> Vec<u8> {
    let mut one = Bits::default();
    one.block(2, MODULE, |module| embedding(module, 1));
    let one = one.bytes();
    Bits::file().raw(&one.repeat(n / one.len())).bytes()
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
        one.bytes()
    };
    module(|module| module.align().raw(&one.repeat(n.div_ceil(one.len()))).done())
}

/// Records of arrays, in a module of metadata that is read more than once.
#[must_use]
pub fn bitcode_arrays(n: usize) -> Vec<u8> {
    module(|module| {
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
    })
}

/// Blocks in blocks, as deep as the size allows.
#[must_use]
pub fn bitcode_nested_blocks(n: usize) -> Vec<u8> {
    let depth = n / 12;
    let mut bits = Bits::file();
    let words = |level: usize| u32::try_from((depth - level) * 3).unwrap_or(u32::MAX);
    bits.fixed(1, 2).vbr(MODULE, 8).vbr(4, 4).align().raw(&words(0).to_le_bytes());
    for level in 1..depth {
        bits.fixed(1, 4).vbr(METADATA, 8).vbr(4, 4).align();
        bits.raw(&words(level).to_le_bytes()).raw(&[0; 4]);
    }
    bits.raw(&[0; 12]).bytes()
}
