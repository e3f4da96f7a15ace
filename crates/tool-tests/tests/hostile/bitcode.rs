//! LLVM bitcode.

use samples::bits::{BLOCKINFO, Bits, MODULE, module};
use samples::{example, with};

use super::{Family, Form, Held, joined};

/// A module that clang wrote, and what it embeds.
pub fn sample() -> (Vec<u8>, Vec<Held>) {
    let bytes = example("hip-embedded.bc");
    let images = super::damaged::images_of("hip-embedded.bc");
    (bytes, images)
}

fn raw(contents: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut bits = Bits::file();
    contents(&mut bits);
    bits.align();
    bits.bytes()
}

/// The start of a block, with a length in words that need not be true.
fn start(bits: &mut Bits, outer: u32, id: u64, width: u64, len: u64) {
    bits.fixed(1, outer).vbr(id, 8).vbr(width, 4).align().fixed(len, 32).done();
}

pub fn bitcode() -> Family {
    let mut family = Family::new("bitcode", Form::Bitcode);
    let (base, images) = sample();
    family.refused("magic alone", base[..4].to_vec());
    for len in [5, 7, 8, 12, 16, 64, 1000, base.len() / 2] {
        family.refused(format!("cut to {len} bytes"), base[..len].to_vec());
    }
    for len in [0, 1, 0x7fff_ffff, 0xffff_ffff] {
        family.refused(
            format!("module of {len:#x} words"),
            raw(|bits| start(bits, 2, MODULE, 4, len)),
        );
    }
    for width in [0, 1, 33, 64, 1 << 31] {
        let bytes = raw(|bits| start(bits, 2, MODULE, width, 1));
        family.refused(format!("abbreviation IDs of {width} bits"), bytes);
    }
    let deep = raw(|bits| {
        for _ in 0..20_000 {
            start(bits, 4, MODULE, 4, 0x1000);
        }
    });
    family.refused("blocks twenty thousand deep", deep);
    family.refused("no end", raw(|bits| start(bits, 2, MODULE, 4, 1000)));
    family.refused("end outside of a block", raw(|bits| bits.fixed(0, 2).done()));
    let record = |operands: u64| {
        module(|bits| bits.fixed(3, 4).vbr(1, 6).vbr(operands, 6).fixed(0, 64).done())
    };
    for operands in [1000, 1 << 20, (1 << 32) - 1, 1 << 40, u64::MAX] {
        family.refused(format!("record of {operands:#x} operands"), record(operands));
    }
    let vbr = module(|bits| {
        bits.fixed(3, 4).fixed(u64::MAX, 64).fixed(u64::MAX, 64).fixed(u64::MAX, 64).done();
    });
    family.refused("a number that never ends", vbr);
    let abbreviation = |count: u64, contents: &dyn Fn(&mut Bits)| {
        module(|bits| {
            bits.fixed(2, 4).vbr(count, 5).done();
            contents(bits);
        })
    };
    family.refused("abbreviation without operands", abbreviation(0, &|_| {}));
    for count in [1 << 20, (1 << 32) - 1, u64::MAX] {
        family
            .refused(format!("abbreviation of {count:#x} operands"), abbreviation(count, &|_| {}));
    }
    for (name, encoding, value) in [
        ("fixed", 1, 65),
        ("fixed", 1, 1 << 32),
        ("VBR", 2, 33),
        ("VBR", 2, 1 << 20),
        ("none", 7, 0),
    ] {
        let bytes = abbreviation(2, &|bits| {
            bits.fixed(1, 1).vbr(1, 8).fixed(0, 1).fixed(encoding, 3).done();
            if encoding < 3 {
                bits.vbr(value, 5).done();
            }
            bits.fixed(4, 4).fixed(0, 64).done();
        });
        family.refused(format!("abbreviation of {value} bits, {name}"), bytes);
    }
    let unknown = module(|bits| bits.fixed(9, 4).fixed(0, 32).done());
    family.refused("an abbreviation that was not defined", unknown);
    // Arrays and blobs, said to be large; elements of no bits are free.
    for (name, element, len) in [
        ("array of 2^32-1 elements of no bits", Some(0), (1_u64 << 32) - 1),
        ("array of 2^40 elements of no bits", Some(0), 1 << 40),
        ("array of 2^32-1 elements of one bit", Some(1), (1 << 32) - 1),
        ("blob of 2^32-1 bytes", None, (1 << 32) - 1),
        ("blob of 2^63 bytes", None, 1 << 63),
    ] {
        let bytes = abbreviation(if element.is_some() { 3 } else { 2 }, &|bits| {
            bits.fixed(1, 1).vbr(8, 8).fixed(0, 1).done();
            match element {
                Some(width) => bits.fixed(3, 3).fixed(0, 1).fixed(1, 3).vbr(width, 5).done(),
                None => bits.fixed(5, 3).done(),
            }
            bits.fixed(4, 4).vbr(len, 6).align().fixed(0, 64).done();
        });
        family.part(name, bytes, &[]);
    }
    let info = module(|bits| {
        bits.block(4, BLOCKINFO, |bits| {
            bits.record(1, &[u64::MAX]).record(1, &[1 << 32]).record(1, &[]);
        });
    });
    family.part("abbreviations for block 2^64-1", info, &[]);
    // Magic, version, offset, size, CPU type; then the bitcode.
    let wrapper = |offset: u32, size: u32| {
        let words = [0x0b17_c0de, 0, offset, size, 7];
        let head: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        joined(&[&head, &base])
    };
    let len = base.len() as u32;
    family.holds("in a wrapper", wrapper(20, len), &images);
    for (offset, size) in [
        (0, len),
        (20, len + 1),
        (20, u32::MAX),
        (u32::MAX, len),
        (len + 20, 4),
        (0xffff_ffe0, 0x40),
        (21, len - 1),
        (20, 0),
    ] {
        let bytes = wrapper(offset, size);
        family.refused(format!("in a wrapper, at {offset:#x}, of {size:#x} bytes"), bytes);
    }
    let package = with(&base, 0, b"BC\xc0\xde");
    family.holds("as it should be", package, &images);
    family
}
