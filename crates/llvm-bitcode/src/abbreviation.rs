//! Abbreviations: how the operands of a record are written (LLVM Bitcode File Format, "Abbreviations").

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;

use crate::bits::Cursor;
use crate::error::{Error, ErrorKind};

/// Operands of all abbreviations of one block. LLVM's have about a hundred in total.
const MAX_ABBREVIATION_OPERANDS: usize = 1 << 16;

/// Literals of one abbreviation. All other operands take bits of each record, these take time only: records of
/// three bits must not cost more than so much each. LLVM's abbreviations have one, their code, or a few more.
const MAX_LITERALS: usize = 32;

/// The encoding of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Fixed(u32),
    Vbr(u32),
    Char6,
}

impl Encoding {
    /// Bits of an operand; of a variable one, at the least.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Encoding::Fixed(width) | Encoding::Vbr(width) => width,
            Encoding::Char6 => 6,
        }
    }
}

/// One part of an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Literal(u64),
    Scalar(Encoding),
    Array(Encoding),
    Blob,
}

/// The parts of an abbreviation, the record's code first.
pub(crate) type Abbreviation = Rc<[Operand]>;

/// Abbreviations in the order of their IDs, as a block defines them, or as `BLOCKINFO` gives them to one kind of
/// block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Abbreviations {
    list: Rc<Vec<Abbreviation>>,
    operands: usize,
}

impl Abbreviations {
    pub(crate) fn push(&mut self, abbreviation: Abbreviation) -> Result<(), Error> {
        self.operands += abbreviation.len();
        if self.operands > MAX_ABBREVIATION_OPERANDS {
            let limit = MAX_ABBREVIATION_OPERANDS;
            return Err(Error::too_many("operands of abbreviations", limit));
        }
        Rc::make_mut(&mut self.list).push(abbreviation);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<Abbreviation> {
        self.list.get(index).cloned()
    }

    pub(crate) fn append(&mut self, more: &Abbreviations) -> Result<(), Error> {
        more.list.iter().try_for_each(|abbreviation| self.push(Rc::clone(abbreviation)))
    }
}

impl Cursor<'_> {
    /// Returns the definition of an abbreviation, after its ID.
    pub(crate) fn abbreviation(&mut self) -> Result<Abbreviation, Error> {
        let malformed = |cursor: &Self, what| {
            let offset = cursor.offset();
            let message =
                format!("bitcode abbreviation defined before byte {offset:#x} has {what}");
            Err(Error::new(ErrorKind::Malformed, offset, message))
        };
        let count = self.vbr(5)?;
        // The shortest operands take four bits.
        self.need_all(count, 4)?;
        if count > MAX_ABBREVIATION_OPERANDS as u64 {
            return malformed(self, "too many operands");
        }
        let mut operands = Vec::new();
        let mut literals = 0;
        let mut left = count;
        while left > 0 {
            left -= 1;
            let operand = match self.any_operand()? {
                Some(Operand::Array(_)) if left == 1 => match self.any_operand()? {
                    Some(Operand::Scalar(encoding)) => {
                        left = 0;
                        Operand::Array(encoding)
                    }
                    _ => return malformed(self, "an array whose elements are not single values"),
                },
                Some(Operand::Array(_)) => {
                    return malformed(self, "an array elsewhere than before the last operand");
                }
                Some(Operand::Blob) if left > 0 => {
                    return malformed(self, "a blob before the last operand");
                }
                Some(operand) => operand,
                None => return malformed(self, "an operand of an unknown encoding or width"),
            };
            literals += usize::from(matches!(operand, Operand::Literal(_)));
            if literals > MAX_LITERALS {
                return malformed(self, "more than 32 literal values");
            }
            operands.push(operand);
        }
        match operands.first() {
            Some(Operand::Literal(_) | Operand::Scalar(_)) => Ok(operands.into()),
            _ => malformed(self, "no record code"),
        }
    }

    /// Reads one operand of a definition; of an array, without its elements. `None` for encodings that the format
    /// lacks.
    fn any_operand(&mut self) -> Result<Option<Operand>, Error> {
        if self.fixed(1)? == 1 {
            return self.vbr(8).map(|value| Some(Operand::Literal(value)));
        }
        let encoding = self.fixed(3)?;
        let width = match encoding {
            1 | 2 => u32::try_from(self.vbr(5)?),
            _ => Ok(0),
        };
        Ok(match (encoding, width) {
            // LLVM reads fields of no bits as zeros.
            (1 | 2, Ok(0)) => Some(Operand::Literal(0)),
            (1, Ok(width @ 1..=64)) => Some(Operand::Scalar(Encoding::Fixed(width))),
            (2, Ok(width @ 2..=32)) => Some(Operand::Scalar(Encoding::Vbr(width))),
            (3, _) => Some(Operand::Array(Encoding::Char6)),
            (4, _) => Some(Operand::Scalar(Encoding::Char6)),
            (5, _) => Some(Operand::Blob),
            _ => None,
        })
    }
}
