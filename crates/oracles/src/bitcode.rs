//! The symbols of bitcode.

use crate::assert_message;

/// Checks any file: as it is, and in a wrapper at two places, where the same must be found.
pub fn check(data: &[u8]) {
    let is_bitcode = data.starts_with(b"BC\xc0\xde") || data.starts_with(b"\xde\xc0\x17\x0b");
    match llvm_bitcode::symbols(data) {
        Ok(None) => {
            assert!(!is_bitcode);
            assert!(llvm_bitcode::symbol_table(data).is_ok_and(|table| table.is_none()));
        }
        Ok(Some(names)) => {
            linker_table(data, &names);
            assert!(is_bitcode);
            assert!(names.len() <= data.len() / 4);
            assert!(names.iter().map(Vec::len).sum::<usize>() <= data.len() * 16);
        }
        Err(error) => {
            assert!(is_bitcode);
            assert_message(&error);
        }
    }
    if let Ok(Some(table)) = llvm_bitcode::symbol_table(data) {
        assert!(is_bitcode && table.iter().count() <= data.len() / 24);
    }
    let [near, far] = [(20, 7), (27, 0)].map(|(before, after)| {
        let mut file = Vec::new();
        for word in [0x0b17_c0de, 0, before, u32::try_from(data.len()).expect("short"), 7] {
            file.extend(u32::to_le_bytes(word));
        }
        file.resize(before as usize, 0);
        file.extend(data);
        file.resize(file.len() + after, 0);
        llvm_bitcode::symbols(&file).ok()
    });
    assert_eq!(near, far);
}

/// Checks the table that linkers read: its definitions equal an archive's index.
fn linker_table(data: &[u8], names: &[Vec<u8>]) {
    let table = llvm_bitcode::symbol_table(data).expect("bitcode with symbols");
    let Some(table) = table else { return };
    let definitions = table.iter().filter(|symbol| {
        symbol.is_global() && !symbol.is_undefined() && !symbol.is_format_specific()
    });
    let definitions: Vec<_> = definitions.map(|symbol| symbol.name()).collect();
    let is_short = definitions.iter().map(|name| name.len()).sum::<usize>() <= data.len() * 16;
    assert!(!is_short || definitions == names, "{names:?}");
}
