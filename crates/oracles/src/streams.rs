//! Bitstreams made from the fuzzer's bytes: modules that embed device code, and any blocks and records.

use arbitrary::{Result, Unstructured};

use crate::bitcode;
use crate::model::{self, File};
use crate::walks::Walk;
use samples::bits::{BLOCKINFO, Bits, MODULE};

const CONSTANTS: u64 = 11;
const METADATA: u64 = 15;
const STRTAB: u64 = 23;
const LISTED: &[u8] = b"llvm.embedded.objects";
const SECTION: &[u8] = b".llvm.offloading";
/// Blocks in blocks.
const DEPTH: usize = 4;
/// Abbreviations in a block that are used.
const MOST: usize = 6;

/// Checks a module that embeds files, or any stream.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    if u.ratio(2, 3).unwrap_or(false) {
        let Ok((mut bytes, images)) = embedding(u) else { return };
        let flips = u.int_in_range(0..=3).unwrap_or(1);
        for _ in 0..flips {
            let Ok(bit) = u.choose_index(bytes.len() * 8) else { break };
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let mut walk = Walk::new(&bytes);
        walk.run();
        if flips == 0 {
            assert_eq!(walk.errors, [""; 0]);
            assert!(walk.images == images, "{:?} for {images:?}", walk.images);
        }
        bitcode::check(&bytes);
    } else {
        let mut bits = Bits::default();
        bits.fixed(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
        // The rest is missing when the fuzzer has no more bytes.
        let _ = any_blocks(u, &mut bits);
        let bytes = bits.bytes();
        Walk::new(&bytes).run();
        bitcode::check(&bytes);
    }
}

/// The encoding of operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    Literal(u64),
    Fixed(u32),
    Vbr(u32),
    Char6,
    /// The operands that are left, each as this is.
    Array(Scalar),
    Blob,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar {
    Fixed(u32),
    Vbr(u32),
}

type Abbreviation = Vec<Operand>;

/// The abbreviations that a block can use.
#[derive(Clone, Default)]
struct Known {
    width: u32,
    list: Vec<Abbreviation>,
}

fn define(bits: &mut Bits, width: u32, abbreviation: &[Operand]) {
    let scalar = |bits: &mut Bits, encoding: u64, width: Option<u32>| {
        bits.fixed(0, 1).fixed(encoding, 3);
        if let Some(width) = width {
            bits.vbr(width.into(), 5);
        }
    };
    let arrays = abbreviation.iter().filter(|part| matches!(part, Operand::Array(_))).count();
    bits.fixed(2, width).vbr((abbreviation.len() + arrays) as u64, 5);
    for part in abbreviation {
        match *part {
            Operand::Literal(value) => {
                bits.fixed(1, 1).vbr(value, 8);
            }
            Operand::Fixed(width) => scalar(bits, 1, Some(width)),
            Operand::Vbr(width) => scalar(bits, 2, Some(width)),
            Operand::Char6 => scalar(bits, 4, None),
            Operand::Array(element) => {
                scalar(bits, 3, None);
                match element {
                    Scalar::Fixed(width) => scalar(bits, 1, Some(width)),
                    Scalar::Vbr(width) => scalar(bits, 2, Some(width)),
                }
            }
            Operand::Blob => scalar(bits, 5, None),
        }
    }
}

/// Writes a record, its code first, by an abbreviation; missing operands are zeros.
fn put_abbreviated(bits: &mut Bits, known: &Known, id: usize, operands: &[u64]) {
    bits.fixed(id as u64 + 4, known.width);
    let mut operands = operands.iter().copied();
    for part in &known.list[id] {
        match *part {
            Operand::Literal(_) => drop(operands.next()),
            Operand::Fixed(width) => bits.fixed(operands.next().unwrap_or(0), width).done(),
            Operand::Vbr(width) => {
                // More digits than a number has are not a number.
                bits.vbr(operands.next().unwrap_or(0), width).done();
            }
            Operand::Char6 => bits.fixed(operands.next().unwrap_or(0) & 63, 6).done(),
            Operand::Array(element) => {
                let rest: Vec<u64> = operands.by_ref().collect();
                bits.vbr(rest.len() as u64, 6);
                for operand in rest {
                    match element {
                        Scalar::Fixed(width) => bits.fixed(operand, width),
                        Scalar::Vbr(width) => bits.vbr(operand, width),
                    };
                }
            }
            Operand::Blob => {
                let rest: Vec<u64> = operands.by_ref().collect();
                bits.vbr(rest.len() as u64, 6).align();
                for operand in rest {
                    bits.fixed(operand & 0xff, 8);
                }
                bits.align();
            }
        }
    }
}

fn put_plain(bits: &mut Bits, width: u32, operands: &[u64]) {
    let (code, rest) = operands.split_first().expect("a code");
    bits.fixed(3, width).vbr(*code, 6).vbr(rest.len() as u64, 6);
    for &operand in rest {
        bits.vbr(operand, 6);
    }
}

/// Adds a block, with the length that it has.
fn put_block(bits: &mut Bits, outer: u32, id: u64, width: u32, mut inside: Bits) {
    inside.fixed(0, width).align();
    let bytes = inside.bytes();
    bits.fixed(1, outer).vbr(id, 8).vbr(width.into(), 4).align();
    bits.fixed(bytes.len() as u64 / 4, 32);
    for byte in bytes {
        bits.fixed(byte.into(), 8);
    }
}

/// Ways to write a record of bytes.
fn bytes_abbreviation(u: &mut Unstructured<'_>, code: u64) -> Result<Abbreviation> {
    let first = match u.int_in_range(0..=2)? {
        0 => Operand::Fixed(7),
        1 => Operand::Vbr(3),
        _ => Operand::Literal(code),
    };
    let rest = match u.int_in_range(0..=3)? {
        0 => Operand::Array(Scalar::Fixed(u.int_in_range(9..=64)?)),
        1 => Operand::Array(Scalar::Vbr(u.int_in_range(2..=32)?)),
        2 => Operand::Blob,
        _ => Operand::Array(Scalar::Fixed(8)),
    };
    Ok(vec![first, rest])
}

fn wide(code: u64, bytes: &[u8]) -> Vec<u64> {
    [code].into_iter().chain(bytes.iter().copied().map(u64::from)).collect()
}

/// Makes bitcode, and returns the images that it embeds.
fn embedding(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut files = Vec::new();
    for _ in 0..u.int_in_range(0..=3)? {
        files.push(model::sequence(u, 1)?);
    }
    let width = u.int_in_range(3..=8)?;
    let mut module = Bits::default();
    let functions = u.int_in_range(0..=2)?;
    let version = u.int_in_range(0..=2)?;
    put_plain(&mut module, width, &[1, version]);
    for _ in 0..functions {
        put_plain(&mut module, width, &[8, 0, 4, 0, 0, 0]);
    }
    // For each file: a global variable, a constant, a value of metadata, a node of it and the section's name.
    let first_constant = functions + files.len() as u64;
    let junk = u.int_in_range(0..=2)?;
    for n in 0..files.len() as u64 {
        let initialiser = first_constant + junk + n + 1;
        let place: &[u64] = if version == 2 { &[4, 4] } else { &[] };
        put_plain(&mut module, width, &[&[7], place, &[0, 3, initialiser, 9]].concat());
    }
    let by_info = u.arbitrary()?;
    let string = bytes_abbreviation(u, 8)?;
    if by_info {
        let info_width = u.int_in_range(3..=5)?;
        let mut info = Bits::default();
        put_plain(&mut info, info_width, &[1, CONSTANTS]);
        define(&mut info, info_width, &string);
        put_block(&mut module, width, BLOCKINFO, info_width, info);
    }
    let metadata_first: bool = u.arbitrary()?;
    let constants = constants(u, &files, junk, by_info, string)?;
    let metadata = metadata(u, functions, &files)?;
    let mut blocks = [(CONSTANTS, constants), (METADATA, metadata)];
    if metadata_first {
        blocks.reverse();
    }
    for (id, (inner, inside)) in blocks {
        put_block(&mut module, width, id, inner, inside);
    }
    let mut bits = Bits::default();
    bits.fixed(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
    put_block(&mut bits, 2, MODULE, width, module);
    if version == 2 {
        let mut names = Bits::default();
        define(&mut names, 3, &[Operand::Literal(1), Operand::Blob]);
        let known = Known { width: 3, list: vec![vec![Operand::Literal(1), Operand::Blob]] };
        put_abbreviated(&mut names, &known, 0, &wide(1, b"namedata"));
        put_block(&mut bits, 2, STRTAB, 3, names);
    }
    let mut bytes = bits.bytes();
    if u.ratio(1, 4)? {
        let len = u32::try_from(bytes.len()).expect("is small");
        let header = [0x0b17_c0de, 0, 20, len, 7].map(u32::to_le_bytes).concat();
        bytes = [header, bytes].concat();
    }
    Ok((bytes, files.into_iter().flat_map(|file| file.images).collect()))
}

/// The width of abbreviation IDs in a block, and what is in it.
type Inside = (u32, Bits);

fn constants(
    u: &mut Unstructured<'_>,
    files: &[File],
    junk: u64,
    by_info: bool,
    string: Abbreviation,
) -> Result<Inside> {
    let width = u.int_in_range(3..=6)?;
    let mut known = Known { width, list: Vec::new() };
    let mut bits = Bits::default();
    if by_info {
        known.list.push(string);
    } else {
        define(&mut bits, width, &string);
        known.list.push(string);
    }
    put_plain(&mut bits, width, &[1, 0]);
    for n in 0..junk {
        put_plain(&mut bits, width, &[4, n]);
    }
    put_plain(&mut bits, width, &[1, 1]);
    for file in files {
        let is_cstring = !matches!(known.list[0][0], Operand::Literal(_)) && u.arbitrary()?;
        let record = wide(if is_cstring { 9 } else { 8 }, &file.bytes);
        if u.ratio(1, 4)? {
            put_plain(&mut bits, width, &record);
        } else {
            put_abbreviated(&mut bits, &known, 0, &record);
        }
    }
    Ok((width, bits))
}

fn metadata(u: &mut Unstructured<'_>, functions: u64, files: &[File]) -> Result<Inside> {
    let width = u.int_in_range(3..=6)?;
    let mut bits = Bits::default();
    let strings = [b"other", SECTION];
    if u.arbitrary()? {
        let list = vec![Operand::Literal(35), Operand::Vbr(6), Operand::Vbr(6), Operand::Blob];
        let known = Known { width, list: vec![list] };
        define(&mut bits, width, &known.list[0]);
        let mut lengths = Bits::default();
        for string in strings {
            lengths.vbr(string.len() as u64, 6);
        }
        let lengths = lengths.align().bytes();
        let blob = [&lengths[..], &strings.concat()].concat();
        let record = [&[35, 2, lengths.len() as u64][..], &wide(0, &blob)[1..]].concat();
        put_abbreviated(&mut bits, &known, 0, &record);
    } else {
        for string in strings {
            put_plain(&mut bits, width, &wide(1, string));
        }
    }
    // Strings are 0 and 1.
    let mut nodes = Vec::new();
    for n in 0..files.len() as u64 {
        put_plain(&mut bits, width, &[2, 0, functions + n]);
        let node = if u.arbitrary()? { 3 } else { 5 };
        put_plain(&mut bits, width, &[node, 2 + 2 * n + 1, 2]);
        nodes.push(3 + 2 * n);
    }
    put_plain(&mut bits, width, &wide(4, LISTED));
    put_plain(&mut bits, width, &[&[10], &nodes[..]].concat());
    Ok((width, bits))
}

/// Makes blocks and records of any meaning.
fn any_blocks(u: &mut Unstructured<'_>, bits: &mut Bits) -> Result<()> {
    for _ in 0..u.int_in_range(1..=3)? {
        let id = *u.choose(&[MODULE, MODULE, MODULE, 13, STRTAB, 25])?;
        any_block(u, bits, &Known { width: 2, list: Vec::new() }, id, &[], DEPTH)?;
    }
    Ok(())
}

fn any_block(
    u: &mut Unstructured<'_>,
    bits: &mut Bits,
    outer: &Known,
    id: u64,
    inherited: &[Abbreviation],
    depth: usize,
) -> Result<()> {
    let width = u.int_in_range(2..=6)?;
    let mut known = Known { width, list: inherited.to_vec() };
    let mut inside = Bits::default();
    let mut given: Vec<Abbreviation> = Vec::new();
    let result = any_items(u, &mut inside, &mut known, &mut given, id, depth);
    put_block(bits, outer.width, id, width, inside);
    result
}

fn any_items(
    u: &mut Unstructured<'_>,
    bits: &mut Bits,
    known: &mut Known,
    given: &mut Vec<Abbreviation>,
    id: u64,
    depth: usize,
) -> Result<()> {
    // The rest ends when the fuzzer has no more bytes.
    while !u.is_empty() && u.ratio(15, 16)? {
        let usable = known.list.len().min(MOST).min((1 << known.width) - 4);
        match u.int_in_range(0..=5)? {
            0 if known.width > 2 || known.list.is_empty() => {
                let abbreviation = any_abbreviation(u)?;
                define(bits, known.width, &abbreviation);
                match id {
                    BLOCKINFO => given.push(abbreviation),
                    _ => known.list.push(abbreviation),
                }
            }
            1 if depth > 0 => {
                let inner = *u.choose(&[BLOCKINFO, CONSTANTS, METADATA, 14, 12, 17])?;
                let inherited = if inner == BLOCKINFO { Vec::new() } else { given.clone() };
                any_block(u, bits, known, inner, &inherited, depth - 1)?;
            }
            2 | 3 if usable > 0 => {
                let id = u.choose_index(usable)?;
                put_abbreviated(bits, known, id, &any_record(u)?);
            }
            _ => put_plain(bits, known.width, &any_record(u)?),
        }
    }
    Ok(())
}

fn any_record(u: &mut Unstructured<'_>) -> Result<Vec<u64>> {
    let code = *u.choose(&[1, 2, 3, 4, 5, 7, 8, 9, 10, 14, 16, 18, 35, 36, 38, 39])?;
    match u.int_in_range(0..=5)? {
        0 => Ok(wide(code, LISTED)),
        1 => Ok(wide(code, SECTION)),
        _ => {
            let mut record = vec![code];
            for _ in 0..u.int_in_range(0..=12)? {
                record.push(match u.int_in_range(0..=7)? {
                    0 => u.arbitrary()?,
                    1 => 1 << u.int_in_range(0..=63)?,
                    _ => u.int_in_range(0..=12)?,
                });
            }
            Ok(record)
        }
    }
}

fn any_abbreviation(u: &mut Unstructured<'_>) -> Result<Abbreviation> {
    let mut parts = Vec::new();
    for _ in 0..u.int_in_range(1..=5)? {
        parts.push(match u.int_in_range(0..=5)? {
            0 => Operand::Literal(u.arbitrary()?),
            1 => Operand::Literal(u.int_in_range(0..=40)?),
            2 => Operand::Char6,
            3 => Operand::Vbr(u.int_in_range(2..=32)?),
            _ => Operand::Fixed(u.int_in_range(1..=64)?),
        });
    }
    match u.int_in_range(0..=3)? {
        0 => parts.push(Operand::Blob),
        1 => parts.push(Operand::Array(Scalar::Fixed(u.int_in_range(1..=64)?))),
        2 => parts.push(Operand::Array(Scalar::Vbr(u.int_in_range(2..=32)?))),
        _ => {}
    }
    Ok(parts)
}
