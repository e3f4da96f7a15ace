//! File headers of COFF objects, plain and large ones, and names of sections.

use object::pe::{
    ANON_OBJECT_HEADER_BIGOBJ_CLASS_ID, AnonObjectHeaderBigobj, IMAGE_FILE_EXECUTABLE_IMAGE,
    IMAGE_SIZEOF_SYMBOL, IMAGE_SIZEOF_SYMBOL_EX, IMAGE_SYM_SECTION_MAX, IMAGE_SYM_SECTION_MAX_EX,
    ImageFileHeader, ImageSectionHeader, Machine,
};
use object::pod::bytes_of;

use super::FORMAT;
use crate::error::{Error, ErrorKind};
use crate::objects::error::ObjectPart;
use crate::pod::{LE, first};

/// First bytes of everything whose header is not the plain one.
const ANONYMOUS: [u8; 4] = [0, 0, 0xff, 0xff];

pub(crate) type Section = ImageSectionHeader;

/// The header of a COFF object.
#[derive(Clone, Copy)]
pub(crate) enum Header {
    Plain(ImageFileHeader),
    Big(AnonObjectHeaderBigobj),
}

impl Header {
    pub(crate) fn read(object: &[u8]) -> Result<Self, Error> {
        let beyond_end = |end: usize| {
            Error::outside(FORMAT, ObjectPart::FileHeader, 0, end as u64, object.len() as u64)
        };
        let field =
            |field, offset, found, expected| Error::field(FORMAT, field, offset, found, expected);
        if object.starts_with(&ANONYMOUS) {
            let len = size_of::<AnonObjectHeaderBigobj>();
            let header: AnonObjectHeaderBigobj = first(object).ok_or_else(|| beyond_end(len))?;
            if header.class_id != ANON_OBJECT_HEADER_BIGOBJ_CLASS_ID {
                let [a, b, c, d, ..] = header.class_id.0;
                let found = u32::from_le_bytes([a, b, c, d]);
                return Err(field("ClassID", 12, found.into(), "0xd1baa1c7 (bigobj) at first"));
            }
            return Ok(Header::Big(header));
        }
        let len = size_of::<ImageFileHeader>();
        let header: ImageFileHeader = first(object).ok_or_else(|| beyond_end(len))?;
        if header.characteristics.get(LE).contains(IMAGE_FILE_EXECUTABLE_IMAGE) {
            return Err(Error::pe_image());
        }
        match header.size_of_optional_header.get(LE) {
            0 => Ok(Header::Plain(header)),
            size => Err(field("SizeOfOptionalHeader", 16, size.into(), "0 in an object")),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Header::Plain(header) => bytes_of(header),
            Header::Big(header) => bytes_of(header),
        }
    }

    pub(crate) fn machine(&self) -> Machine {
        match self {
            Header::Plain(header) => header.machine.get(LE),
            Header::Big(header) => header.machine.get(LE),
        }
    }

    pub(crate) fn sections(&self) -> u64 {
        match self {
            Header::Plain(header) => header.number_of_sections.get(LE).into(),
            Header::Big(header) => header.number_of_sections.get(LE).into(),
        }
    }

    /// Returns the offset of the symbol table, and how many records it has.
    pub(crate) fn symbols(&self) -> (u32, u32) {
        match self {
            Header::Plain(h) => (h.pointer_to_symbol_table.get(LE), h.number_of_symbols.get(LE)),
            Header::Big(h) => (h.pointer_to_symbol_table.get(LE), h.number_of_symbols.get(LE)),
        }
    }

    /// Returns whether it is the header of a large object, which has larger symbols too.
    pub(crate) fn is_big(&self) -> bool {
        matches!(self, Header::Big(_))
    }

    /// Returns the length of a record of the symbol table.
    pub(crate) fn symbol_len(&self) -> usize {
        if self.is_big() { IMAGE_SIZEOF_SYMBOL_EX } else { IMAGE_SIZEOF_SYMBOL }
    }

    /// Returns the header with `new` sections and the symbol table elsewhere.
    pub(crate) fn changed(&self, new: u64, symbols_at: u32) -> Result<Vec<u8>, Error> {
        let (format, limit) = match self {
            Header::Plain(_) => (FORMAT, IMAGE_SYM_SECTION_MAX.into()),
            Header::Big(_) => ("bigobj COFF", IMAGE_SYM_SECTION_MAX_EX.into()),
        };
        let too_many = || {
            let found = self.sections();
            let text = format!(
                "cannot add sections: the {format} object has {found} sections, the limit is {limit}"
            );
            Error::new(ErrorKind::Limit, text)
        };
        let count = u32::try_from(new).ok().filter(|_| new <= limit).ok_or_else(too_many)?;
        let mut header = *self;
        match &mut header {
            Header::Plain(header) => {
                let count = u16::try_from(count).map_err(|_| too_many())?;
                header.number_of_sections.set(LE, count);
                header.pointer_to_symbol_table.set(LE, symbols_at);
            }
            Header::Big(header) => {
                header.number_of_sections.set(LE, count);
                header.pointer_to_symbol_table.set(LE, symbols_at);
            }
        }
        Ok(header.bytes().to_vec())
    }
}

/// Returns the offset of a section's name in the string table, if it is there; no offset if it cannot be read.
#[allow(clippy::option_option, reason = "elsewhere, or nowhere")]
pub(super) fn name_offset(section: &Section) -> Option<Option<u64>> {
    match section.name {
        [b'/', b'/', ref digits @ ..] => {
            let base64 = |digit: u8| DIGITS.iter().position(|&known| known == digit);
            Some(
                digits.iter().try_fold(0, |value, &digit| Some(value * 64 + base64(digit)? as u64)),
            )
        }
        [b'/', ref digits @ ..] => {
            let digits = digits.split(|&b| b == 0).next();
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            Some(digits.and_then(|digits| digits.parse::<u64>().ok()))
        }
        _ => None,
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns a section name in the string table: `/` and the decimal offset, or `//` and the offset in base 64 where
/// seven digits are too few.
pub(crate) fn long_name(offset: u64) -> Option<[u8; 8]> {
    let mut name = [0; 8];
    if offset < 10_000_000 {
        for (to, from) in name.iter_mut().zip(format!("/{offset}").bytes()) {
            *to = from;
        }
        return Some(name);
    }
    let mut rest = offset;
    for to in name.iter_mut().rev().take(6) {
        *to = usize::try_from(rest % 64).ok().and_then(|digit| DIGITS.get(digit).copied())?;
        rest /= 64;
    }
    name[0] = b'/';
    name[1] = b'/';
    (rest == 0).then_some(name)
}
