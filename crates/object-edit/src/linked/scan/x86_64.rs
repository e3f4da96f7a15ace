//! Lengths of x86-64 instructions, and where their operands lie. After Intel's manual, volume 2, "Instruction Format"
//! and "Opcode Map", with AMD's 3DNow! and XOP, and with AVX-512 and APX.
//!
//! Encodings that no processor has may pass for instructions; existing ones are never refused or taken for shorter or
//! longer ones.

/// No processor takes a longer instruction.
pub(super) const LONGEST: usize = 15;

/// An instruction. Places count from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) len: usize,
    /// The start of a displacement of 4 bytes.
    pub(super) displacement: Option<usize>,
    /// `true` if that counts from the end of the instruction.
    pub(super) relative: bool,
    /// The start of an immediate value, or of an absolute address of 8 bytes; branches have none.
    pub(super) immediate: Option<usize>,
}

impl Instruction {
    /// Returns the target of a displacement at this offset. `bytes` start with the instruction, which lies at
    /// `address`.
    pub(super) fn relative(&self, at: usize, address: u64, bytes: &[u8]) -> Option<u64> {
        self.displacement.filter(|&place| self.relative && place == at)?;
        let displacement = i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        Some(address.wrapping_add(self.len as u64).wrapping_add_signed(displacement.into()))
    }

    /// Returns the number that may be an address at this place: a displacement that counts from 0 or a register, or
    /// an immediate value.
    pub(super) fn absolute(&self, at: usize, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(at..self.len)?;
        if self.displacement.is_some_and(|place| !self.relative && place == at) {
            return Some(u32::from_le_bytes(*bytes.first_chunk()?).into());
        }
        self.immediate.filter(|&place| place == at)?;
        match bytes.try_into() {
            Ok(long) => Some(u64::from_le_bytes(long)),
            Err(_) => bytes.try_into().ok().map(|short| u32::from_le_bytes(short).into()),
        }
    }
}

/// Operands after the opcode.
#[derive(Clone, Copy)]
enum Form {
    /// An immediate value.
    Plain(Immediate),
    /// A `ModR/M` byte and what it asks for, then an immediate value.
    Operand(Immediate),
    /// The distance of a branch.
    Branch(usize),
}

#[derive(Clone, Copy)]
enum Immediate {
    /// This many bytes.
    Bytes(usize),
    /// 2 bytes where operands have 16 bits, otherwise 4.
    Operand,
    /// As many bytes as the operand has.
    Full,
    /// An address.
    Address,
    /// `TEST`, whose group shares its opcode with others, and the size of its operand.
    Test(bool),
}

const NONE: Immediate = Immediate::Bytes(0);
const BYTE: Immediate = Immediate::Bytes(1);

/// Returns the instruction that the bytes start with.
pub(super) fn decode(bytes: &[u8]) -> Option<Instruction> {
    let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
    let mut reader = Reader { bytes, at: 0 };
    let (mut short, mut short_address, mut repeats, mut rex) = (false, false, false, 0);
    let first = loop {
        match reader.next()? {
            byte @ 0x40..=0x4f => rex = byte,
            byte @ (0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3) => {
                // REX counts only right before the opcode.
                short |= byte == 0x66;
                short_address |= byte == 0x67;
                repeats |= byte == 0xf2;
                rex = 0;
            }
            byte => break byte,
        }
    };
    let mut wide = rex & 8 != 0;
    let form = match first {
        0x0f => match reader.next()? {
            0x38 => Form::Operand(reader.next().map(|_| NONE)?),
            0x3a => Form::Operand(reader.next().map(|_| BYTE)?),
            // EXTRQ and INSERTQ
            0x78 if short || repeats => Form::Operand(Immediate::Bytes(2)),
            opcode => two_byte(opcode)?,
        },
        // VEX
        0xc5 => {
            reader.next()?;
            vector(1, reader.next()?)?
        }
        0xc4 => {
            let map = reader.next()? & 0x1f;
            reader.next()?;
            vector(map, reader.next()?)?
        }
        // EVEX; map 4 has the instructions of one byte, with three operands
        0x62 => {
            let map = reader.next()? & 7;
            let prefix = reader.next()?;
            reader.next()?;
            (wide, short) = (prefix & 0x80 != 0, prefix & 3 == 1);
            match (map, reader.next()?) {
                (4, opcode) => extended(opcode),
                (map, opcode) => vector(map, opcode)?,
            }
        }
        // REX2
        0xd5 => {
            let payload = reader.next()?;
            wide = payload & 8 != 0;
            let opcode = reader.next()?;
            if payload & 0x80 != 0 { two_byte(opcode)? } else { one_byte(opcode)? }
        }
        // XOP: otherwise `POP`
        0x8f if reader.peek()? & 0x1f >= 8 => {
            let map = reader.next()? & 0x1f;
            reader.next()?;
            reader.next()?;
            match map {
                8 => Form::Operand(BYTE),
                9 => Form::Operand(NONE),
                10 => Form::Operand(Immediate::Bytes(4)),
                _ => return None,
            }
        }
        opcode => one_byte(opcode)?,
    };
    let (mut displacement, mut relative, mut group) = (None, false, 0);
    let immediate = match form {
        // Some processors take 2 bytes then, and some 4.
        Form::Branch(4) if short && !wide => return None,
        Form::Branch(size) => {
            reader.skip(size)?;
            return Some(Instruction { len: reader.at, displacement, relative, immediate: None });
        }
        Form::Plain(immediate) => immediate,
        Form::Operand(immediate) => {
            let modrm = reader.next()?;
            group = modrm >> 3 & 7;
            let (mode, operand) = (modrm >> 6, modrm & 7);
            let base = if mode < 3 && operand == 4 { reader.next()? & 7 } else { operand };
            match (mode, base) {
                (0, 5) | (2, _) => {
                    (displacement, relative) = (Some(reader.at), mode == 0 && operand == 5);
                    reader.skip(4)?;
                }
                (1, _) => reader.skip(1)?,
                _ => {}
            }
            immediate
        }
    };
    let operand = if short && !wide { 2 } else { 4 };
    let size = match immediate {
        Immediate::Bytes(size) => size,
        Immediate::Operand => operand,
        Immediate::Full if wide => 8,
        Immediate::Full => operand,
        Immediate::Address if short_address => 4,
        Immediate::Address => 8,
        Immediate::Test(_) if group > 1 => 0,
        Immediate::Test(is_byte) => {
            if is_byte {
                1
            } else {
                operand
            }
        }
    };
    let immediate = (size > 0).then_some(reader.at);
    reader.skip(size)?;
    Some(Instruction { len: reader.at, displacement, relative, immediate })
}

/// Returns the form of the instructions whose opcode is this byte.
fn one_byte(opcode: u8) -> Option<Form> {
    Some(match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => Form::Operand(NONE),
            4 => Form::Plain(BYTE),
            5 => Form::Plain(Immediate::Operand),
            _ => return None,
        },
        0x50..=0x5f | 0x6c..=0x6f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf => {
            Form::Plain(NONE)
        }
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => Form::Operand(NONE),
        0x68 | 0xa9 => Form::Plain(Immediate::Operand),
        0x69 | 0x81 | 0xc7 => Form::Operand(Immediate::Operand),
        0x6a | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe4..=0xe7 => Form::Plain(BYTE),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => Form::Operand(BYTE),
        0x70..=0x7f | 0xe0..=0xe3 | 0xeb => Form::Branch(1),
        0xe8 | 0xe9 => Form::Branch(4),
        0xa0..=0xa3 => Form::Plain(Immediate::Address),
        0xb8..=0xbf => Form::Plain(Immediate::Full),
        0xc2 | 0xca => Form::Plain(Immediate::Bytes(2)),
        0xc8 => Form::Plain(Immediate::Bytes(3)),
        0xc3
        | 0xc9
        | 0xcb
        | 0xcc
        | 0xcf
        | 0xd7
        | 0xec..=0xef
        | 0xf1
        | 0xf4
        | 0xf5
        | 0xf8..=0xfd => Form::Plain(NONE),
        0xf6 | 0xf7 => Form::Operand(Immediate::Test(opcode == 0xf6)),
        _ => return None,
    })
}

/// Returns the form of the instructions whose opcode follows the byte 0x0f.
fn two_byte(opcode: u8) -> Option<Form> {
    Some(match opcode {
        0x04 | 0x0a | 0x0c | 0x24..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f => return None,
        0x05..=0x09
        | 0x0b
        | 0x0e
        | 0x30..=0x37
        | 0x77
        | 0xa0..=0xa2
        | 0xa8..=0xaa
        | 0xc8..=0xcf => Form::Plain(NONE),
        // 3DNow! has its opcode where others have an immediate value.
        0x0f | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => Form::Operand(BYTE),
        0x80..=0x8f => Form::Branch(4),
        _ => Form::Operand(NONE),
    })
}

/// Returns the form of instructions of VEX and EVEX.
fn vector(map: u8, opcode: u8) -> Option<Form> {
    Some(match (map, opcode) {
        (1, 0x77) => Form::Plain(NONE),
        (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) | (3, _) => Form::Operand(BYTE),
        (1 | 2 | 5 | 6, _) => Form::Operand(NONE),
        (7, _) => Form::Operand(Immediate::Bytes(4)),
        _ => return None,
    })
}

/// Returns the form of the instructions in map 4 of EVEX, which APX took over from other maps.
fn extended(opcode: u8) -> Form {
    Form::Operand(match opcode {
        0x24 | 0x2c | 0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => BYTE,
        0x69 | 0x81 | 0xc7 => Immediate::Operand,
        0xf6 | 0xf7 => Immediate::Test(opcode == 0xf6),
        _ => NONE,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.at += count;
        (self.at <= self.bytes.len()).then_some(())
    }
}
