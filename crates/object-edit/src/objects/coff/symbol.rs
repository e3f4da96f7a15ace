//! Records of the symbol table, which are larger in large objects.

use object::pe::{
    IMAGE_SYM_CLASS_STATIC, IMAGE_SYM_SECTION_MAX, ImageSymbol, ImageSymbolEx, SymbolClass,
    SymbolSection, SymbolType,
};
use object::pod::from_bytes_mut;

use super::header::Header;
use crate::pod::{LE, first};

/// A symbol.
pub(crate) struct Symbol {
    pub(crate) value: u32,
    /// From 1; 0 for none.
    pub(crate) section: u32,
    kind: SymbolType,
    class: SymbolClass,
    /// Number of auxiliary records that follow.
    pub(crate) auxiliary: u8,
}

impl Symbol {
    pub(crate) fn read(header: &Header, record: &[u8]) -> Option<Self> {
        if header.is_big() {
            let symbol: ImageSymbolEx = first(record)?;
            return Some(Symbol {
                value: symbol.value.get(LE),
                section: symbol.section_number.get(LE).index().unwrap_or(0),
                kind: symbol.typ.get(LE),
                class: symbol.storage_class,
                auxiliary: symbol.number_of_aux_symbols,
            });
        }
        let symbol: ImageSymbol = first(record)?;
        // The last numbers, read with a sign, mean something else.
        let section = symbol.section_number.get(LE);
        let section = if section > IMAGE_SYM_SECTION_MAX { 0 } else { section };
        Some(Symbol {
            value: symbol.value.get(LE),
            section: section.into(),
            kind: symbol.typ.get(LE),
            class: symbol.storage_class,
            auxiliary: symbol.number_of_aux_symbols,
        })
    }

    /// Returns whether the first auxiliary record describes a section.
    pub(crate) fn is_static(&self) -> bool {
        self.class == IMAGE_SYM_CLASS_STATIC && self.section > 0
    }

    /// Returns whether it may be the definition of a section.
    pub(crate) fn defines(&self) -> bool {
        self.is_static() && self.kind == SymbolType(0) && self.auxiliary > 0
    }
}

/// Gives a symbol another section than the one it has, of a lower number.
pub(crate) fn set_section(header: &Header, record: &mut [u8], section: u32) {
    if header.is_big() {
        if let (Ok((symbol, _)), Ok(section)) =
            (from_bytes_mut::<ImageSymbolEx>(record), i32::try_from(section))
        {
            symbol.section_number.set(LE, SymbolSection(section));
        }
    } else if let (Ok((symbol, _)), Ok(section)) =
        (from_bytes_mut::<ImageSymbol>(record), u16::try_from(section))
    {
        symbol.section_number.set(LE, section);
    }
}
