//! The symbols that an object brings into the index of an archive.

use std::io;

use object::{File, Object, ObjectSymbol, SymbolKind};

/// Whether LLVM would make an index for an archive that has only this member.
pub(crate) fn is_object(data: &[u8]) -> bool {
    File::parse(data).is_ok()
}

/// Hands out the names of the symbols that others can link to; false for what is no object.
///
/// Damaged objects are members like any other file: what can be read of their symbols is in the index.
pub(crate) fn defined(
    data: &[u8],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let Ok(file) = File::parse(data) else {
        return Ok(false);
    };
    for symbol in file.symbols() {
        let linkable = symbol.is_global()
            && !symbol.is_undefined()
            && !matches!(symbol.kind(), SymbolKind::File | SymbolKind::Section);
        if let Ok(name) = symbol.name_bytes()
            && linkable
        {
            each(name)?;
        }
    }
    Ok(true)
}
