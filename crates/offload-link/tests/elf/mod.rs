//! Small ELF files with symbols.
#![allow(unreachable_pub, reason = "each test includes this")]

/// Symbols of an object: `name` is defined, `-name` is referred to, `?name` is a weak reference, `~name` a weak
/// definition, `=name` a common symbol.
pub type SymbolList<'s> = &'s [&'s str];

/// Returns an ELF file with a symbol table: an object, or a shared library.
pub fn elf(is_shared: bool, symbols: SymbolList<'_>) -> Vec<u8> {
    let (mut table, mut strings) = (vec![0; 24], vec![0]);
    for symbol in symbols {
        let (binding, section, name) = match symbol.split_at(1) {
            ("-", name) => (1, 0, name),
            ("?", name) => (2, 0, name),
            ("~", name) => (2, 0xfff1, name),
            ("=", name) => (1, 0xfff2, name),
            _ => (1, 0xfff1_u16, *symbol),
        };
        table.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
        table.extend([binding << 4, 0]);
        table.extend(section.to_le_bytes());
        table.extend([0; 16]);
        strings.extend(name.as_bytes());
        strings.push(0);
    }
    let names = b"\0.symtab\0.strtab\0.shstrtab\0";
    let kind = if is_shared { 11_u32 } else { 2 };
    let mut headers = vec![0; 64];
    let mut at = 64;
    for (name, kind, bytes, link, size) in
        [(1_u32, kind, &table[..], 2_u32, 24), (9, 3, &strings, 0, 0), (17, 3, names, 0, 0)]
    {
        let len = bytes.len() as u64;
        headers.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
        headers.extend([0, 0, at, len].map(u64::to_le_bytes).concat());
        headers.extend([link.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        headers.extend([1, size].map(u64::to_le_bytes).concat());
        at += len;
    }
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([if is_shared { 3 } else { 1 }, 0, 62, 0, 1, 0, 0, 0]);
    elf.extend([0, 0, at].map(u64::to_le_bytes).concat());
    elf.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 4, 0, 3, 0]);
    [elf, table, strings, names.to_vec(), headers].concat()
}
