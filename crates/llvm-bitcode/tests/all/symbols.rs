//! The symbols of bitcode: modules that LLVM 22 wrote (`data/README.md`), modules written here bit by bit, and
//! damaged ones. The tests of the tools show that the names are those of `llvm-ar`.

use std::path::Path;

use llvm_bitcode::{Error, ErrorKind, symbol_table, symbols};
use samples::bits::{BLOCKINFO, Bits, MODULE, module, wide};

const TYPES: u64 = 17;
const CONSTANTS: u64 = 11;
const FUNCTION: u64 = 12;
const VALUE_SYMTAB: u64 = 14;
const STRTAB: u64 = 23;
const SYMTAB: u64 = 25;

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(path).unwrap()
}

fn names(bytes: &[u8]) -> Vec<String> {
    let names = symbols(bytes).unwrap().unwrap();
    names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
}

fn error(bytes: &[u8]) -> Error {
    symbols(bytes).unwrap_err()
}

/// The names in the index that `llvm-ar --format=gnu rcs` makes of `symbols.bc`.
const SYMBOLS: [&str; 11] = [
    "_linkonce",
    "_stdcall@12",
    "@fastcall@12",
    "_external",
    "exact",
    "?question",
    "_common",
    "_weak",
    "_appending",
    "_alias",
    "_ifunc",
];
/// The same for `assembly.bc`.
const ASSEMBLY: [&str; 3] = ["in_c", "weak_in_assembly", "in_assembly"];

/// Returns the offset of the symbol table that LLVM writes for linkers.
fn symtab(bytes: &[u8]) -> usize {
    // The header of block 25 with abbreviation IDs of three bits, its length, an abbreviation, a length.
    bytes.windows(4).rposition(|word| word == [0x65, 0x0c, 0, 0]).unwrap() + 16
}

/// The file with one word of that symbol table changed.
fn with_word(mut bytes: Vec<u8>, index: usize, value: u32) -> Vec<u8> {
    let at = symtab(&bytes) + index * 4;
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[test]
fn other_data_has_no_symbols() {
    for bytes in [&b""[..], b"BC", b"BC\xc0\xdf", b"\x7fELF", b"\xde\xc0\x17", b"!<arch>\n"] {
        assert_eq!(symbols(bytes).unwrap(), None);
    }
}

#[test]
fn names_are_read_from_the_symbol_table() {
    assert_eq!(names(&data("symbols.bc")), SYMBOLS);
    assert_eq!(names(&data("assembly.bc")), ASSEMBLY);
}

/// Returns the symbols of the table that linkers read, each with a letter as `llvm-nm` has it for global ones.
fn linker_symbols(bytes: &[u8]) -> Vec<String> {
    let table = symbol_table(bytes).unwrap().unwrap();
    let line = |symbol: llvm_bitcode::LinkerSymbol<'_>| {
        let letter = match () {
            () if symbol.is_format_specific() => '-',
            () if !symbol.is_global() => 'l',
            () if symbol.is_undefined() && symbol.is_weak() => 'w',
            () if symbol.is_undefined() => 'U',
            () if symbol.is_common() => 'C',
            () if symbol.is_weak() => 'W',
            () => 'D',
        };
        format!("{letter} {}", str::from_utf8(symbol.name()).unwrap())
    };
    let mut lines: Vec<_> = table.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn linkers_see_references_and_kinds_of_definitions() {
    let bytes = data("symbols.bc");
    assert_eq!(
        linker_symbols(&bytes),
        [
            "- L_private",
            "- _in_metadata",
            "- _llvm.mine",
            "C _common",
            "D ?question",
            "D @fastcall@12",
            "D _alias",
            "D _appending",
            "D _external",
            "D _ifunc",
            "D _stdcall@12",
            "D exact",
            "U _copied_function",
            "U _copy",
            "U _declared",
            "U _declared_function",
            "W _linkonce",
            "W _weak",
            "l _internal",
            "l _internal_alias",
            "l _resolve",
            "w _maybe"
        ]
    );
    let table = symbol_table(&bytes).unwrap().unwrap();
    assert_eq!(table.triple(), b"i686-pc-windows-msvc");
    assert_eq!(table.linker_options(), b"");
    let bytes = data("assembly.bc");
    assert_eq!(
        linker_symbols(&bytes),
        ["D in_assembly", "D in_c", "W weak_in_assembly", "l local"]
    );
    assert!(symbol_table(&bytes).unwrap().unwrap().iter().all(|symbol| !symbol.is_used()));
}

#[test]
fn references_are_in_a_sound_table_only() {
    assert!(symbol_table(b"\x7fELF").unwrap().is_none());
    assert!(symbol_table(&data("version-1.bc")).unwrap().is_none());
    assert_eq!(symbol_table(b"BC\xc0\xde").unwrap_err().kind(), ErrorKind::NotBitcode);
    let table = data("symbols.bc");
    for (word, value) in [(0, 2), (4, 2), (7, 0xffff_fff0), (8, u32::MAX), (22, 0xffff)] {
        let damaged = with_word(table.clone(), word, value);
        assert!(symbol_table(&damaged).unwrap().is_none(), "{word} {value}");
    }
    // The flags of the first symbol: `llvm.used` and undefined.
    let first = 76 / 4 + 3;
    let changed = with_word(table.clone(), first + 5, 1 << 3 | 1 << 7);
    let symbol = symbol_table(&changed).unwrap().unwrap().iter().next().unwrap();
    assert!(symbol.is_used() && symbol.is_undefined() && !symbol.is_global());
    for len in 4..table.len() {
        let _ = symbol_table(&table[..len]);
    }
}

#[test]
fn the_wrapper_is_skipped() {
    let raw = data("symbols.bc");
    let mut bytes = Vec::new();
    for word in [0x0b17_c0de, 0, 21, u32::try_from(raw.len()).unwrap(), 7] {
        bytes.extend(u32::to_le_bytes(word));
    }
    // Any place will do.
    bytes.push(0);
    bytes.extend(&raw);
    bytes.extend([0; 12]);
    assert_eq!(names(&bytes), SYMBOLS);
    bytes[12] = bytes[12].wrapping_add(100);
    assert_eq!((error(&bytes).kind(), error(&bytes).offset()), (ErrorKind::Truncated, Some(21)));
    let short = error(&bytes[..19]);
    assert_eq!(short.to_string(), "bitcode wrapper needs 20 bytes, 19 are there");
}

#[test]
fn invalid_symbol_tables_are_ignored() {
    let table = data("symbols.bc");
    let without =
        SYMBOLS.map(|name| name.strip_suffix("@12").unwrap_or(name).replace('@', "_").to_string());
    // version; number of modules; offset and number of symbols; offset and length of a name
    let first_symbol = 76 + 12;
    for (word, value) in [
        (0, 2),
        (0, 4),
        (4, 0),
        (4, 2),
        (7, 0xffff_fff0),
        (8, 0xffff),
        (8, u32::MAX),
        (first_symbol / 4, 0xffff),
        (first_symbol / 4 + 1, u32::MAX),
    ] {
        assert_eq!(names(&with_word(table.clone(), word, value)), without, "{word} {value}");
    }
    // Names that are only in the symbol table are missing then.
    assert_eq!(names(&with_word(data("assembly.bc"), 0, 9)), ["in_c"]);
}

#[test]
fn modules_may_follow_each_other() {
    // Two files, and with them two symbol tables, neither about both.
    let (mut bytes, second) = (data("assembly.bc"), data("symbols.bc"));
    bytes.extend(&second[4..]);
    let names = names(&bytes);
    assert_eq!((names.len(), &*names[0], &*names[1]), (12, "in_c", "_linkonce"));
}

fn blob(bits: &mut Bits, id: u64, bytes: &[u8]) {
    bits.block(2, id, |bits| {
        // [1, blob]
        bits.fixed(2, 4).vbr(2, 5).fixed(1, 1).vbr(1, 8).fixed(0, 1).fixed(5, 3);
        bits.fixed(4, 4).vbr(bytes.len() as u64, 6).align();
        bytes.iter().for_each(|&byte| bits.fixed(byte.into(), 8).done());
        bits.align();
    });
}

/// A file of a module and a string table.
fn with_strings(strings: &[u8], contents: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.fixed(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
    bits.block(2, MODULE, contents);
    blob(&mut bits, STRTAB, strings);
    bits.bytes()
}

/// Version 2 and variables at these places of the string table.
fn variables(places: &[(u64, u64)]) -> impl FnOnce(&mut Bits) {
    move |bits| {
        bits.record(1, &[2]);
        for &(start, len) in places {
            bits.record(7, &[start, len, 0, 3, 1, 0, 0, 0]);
        }
    }
}

#[test]
fn names_are_ranges_of_the_string_table() {
    assert_eq!(
        names(&with_strings(b"oneother", variables(&[(0, 3), (2, 6), (0, 3)]))),
        ["one", "eother", "one"]
    );
    for (start, len) in [(0, 9), (9, 0), (8, 1), (u64::MAX, 1), (1, u64::MAX)] {
        let found = error(&with_strings(b"oneother", variables(&[(0, 3), (start, len)])));
        assert_eq!((found.kind(), found.offset()), (ErrorKind::Malformed, None));
        let end = u128::from(start) + u128::from(len);
        let place = format!("{start:#x}..{end:#x} of the string table, beyond its end at 0x8");
        assert_eq!(found.to_string(), format!("bitcode symbol has its name at {place}"));
    }
    let none = module(variables(&[(0, 3)]));
    let place = "0x0..0x3 of the string table, beyond its end at 0x0";
    assert_eq!(error(&none).to_string(), format!("bitcode symbol has its name at {place}"));
    // Without a name, LLVM gives one.
    let unnamed = with_strings(b"ab", variables(&[(0, 0), (0, 1), (1, 0)]));
    assert_eq!(names(&unnamed), ["__unnamed_1", "a", "__unnamed_2"]);
}

#[test]
fn a_stream_has_at_most_as_many_bytes_as_bits_can_be_counted() {
    let mut source = &b"BC\xc0\xde"[..];
    for end in [(1 << 60) + 1, u64::MAX] {
        let error = llvm_bitcode::Reader::new(&mut source, 0..end).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
    assert!(llvm_bitcode::Reader::new(&mut source, 0..4).is_ok());
}

#[test]
fn names_of_mach_o_have_a_prefix() {
    let bytes = with_strings(b"one\x01two?x", |bits| {
        bits.record(3, &wide(b"e-m:o-i64:64"));
        variables(&[(0, 3), (3, 4), (7, 2), (0, 0)])(bits);
    });
    assert_eq!(names(&bytes), ["_one", "two", "_?x", "___unnamed_1"]);
}

#[test]
fn order_and_linkage_are_those_of_llvm() {
    let bytes = with_strings(b"abcdefghijklmnopqrst", |bits| {
        bits.record(1, &[2]).record(5, &wide(b".data")).record(5, &wide(b"llvm.metadata"));
        bits.record(18, &[0, 1, 0, 0, 9, 0]); // ifunc
        bits.record(14, &[1, 1, 0, 0, 9, 0]).record(9, &[2, 1, 0, 9, 0]); // aliases
        bits.record(14, &[3, 1, 0, 0, 9, 3]);
        for linkage in 0..20 {
            bits.record(7, &[linkage, 1, 0, 3, 1, linkage, 0, linkage % 2]);
        }
        bits.record(7, &[0, 1, 0, 3, 1, 0, 0, 2]).record(7, &[0, 1, 0, 3, 0, 0, 0, 0]);
        bits.record(8, &[4, 1, 0, 0, 0, 0]).record(8, &[5, 1, 0, 0, 1, 0]);
        bits.record(8, &[6, 1, 0, 0, 0, 3]);
    });
    let variables = ('a'..='t').filter(|name| !['d', 'j', 'm', 'n', 'o'].contains(name));
    let expected: Vec<String> =
        ['e'].into_iter().chain(variables).chain(['b', 'c', 'a']).map(String::from).collect();
    assert_eq!(names(&bytes), expected);
}

#[test]
fn truncated_records_are_errors() {
    for (code, operands) in
        [(7, &[0, 1, 0, 3, 1][..]), (8, &[0, 1, 0, 0, 0]), (14, &[0, 1]), (18, &[0, 1, 0, 0, 0])]
    {
        let found =
            error(&with_strings(b"a", |bits| bits.record(1, &[2]).record(code, operands).done()));
        let start = format!("bitcode record of code {code} before byte");
        assert!(found.to_string().starts_with(&start), "{found}");
    }
}

/// A module of version 1, which names its values itself. LLVM reads it: types, initialisers and bodies are there.
fn version_1() -> Vec<u8> {
    module(|bits| {
        bits.record(1, &[1]);
        bits.block(4, BLOCKINFO, |bits| {
            bits.record(1, &[VALUE_SYMTAB]);
            // [1, vbr 8, array, char6]
            bits.fixed(2, 4).vbr(4, 5).fixed(1, 1).vbr(1, 8);
            bits.fixed(0, 1).fixed(2, 3).vbr(8, 5);
            bits.fixed(0, 1).fixed(3, 3).fixed(0, 1).fixed(4, 3);
        });
        bits.block(4, TYPES, |bits| {
            // i32, void, void (), i32 *
            bits.record(1, &[4]).record(7, &[32]).record(2, &[]).record(21, &[0, 1]);
            bits.record(8, &[0, 0]);
        });
        bits.record(2, &wide(b"arm64-apple-ios")).record(3, &wide(b"e-m:o-i64:64"));
        // values 0 to 2: variables, one of them local; 3 and 4: functions, one only declared; 5: an alias
        bits.record(7, &[0, 2, 7, 0, 0, 0]).record(7, &[0, 2, 7, 3, 0, 0]);
        bits.record(7, &[0, 2, 7, 19, 0, 0]);
        bits.record(8, &[2, 0, 0, 0, 0, 0, 0, 0]).record(8, &[2, 0, 1, 0, 0, 0, 0, 0]);
        bits.record(14, &[0, 0, 0, 0]);
        bits.block(4, CONSTANTS, |bits| bits.record(1, &[0]).record(4, &[84]).done());
        bits.block(4, FUNCTION, |bits| {
            bits.record(1, &[1]).record(10, &[]);
            // Names of blocks are none of the module's.
            bits.block(4, VALUE_SYMTAB, |bits| bits.record(2, &[0, 'x'.into()]).done());
        });
        bits.block(4, VALUE_SYMTAB, |bits| {
            for (value, name) in [(4, "declared"), (1, "local"), (2, "linkonce"), (5, "alias")] {
                bits.record(1, &[&[value], &wide(name.as_bytes())[..]].concat());
            }
            bits.fixed(4, 4).vbr(0, 8).vbr(3, 6).fixed(0, 6).fixed(1, 6).fixed(2, 6);
            bits.record(1, &[&[3], &wide(b"function")[..]].concat());
        });
    })
}

#[test]
fn modules_may_lack_a_string_table() {
    let bytes = version_1();
    assert!(bytes == data("version-1.bc"));
    assert_eq!(names(&bytes), ["_function", "_abc", "_linkonce", "_alias"]);
}

#[test]
fn names_that_share_bytes() {
    // Each name is long, the file is not.
    let strings = [b'a'; 4000];
    let error = error(&with_strings(&strings, variables(&[(0, 4000); 200])));
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("bytes of symbol names for its length"), "{error}");
    // The symbol table is no way around.
    let mut bits = Bits::default();
    bits.fixed(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
    bits.block(2, MODULE, variables(&[(0, 1)]));
    let mut table: Vec<u32> = vec![3, 0, 0, 0, 1, 0, 0, 76, 2000];
    table.resize(19, 0);
    (0..2000).for_each(|_| table.extend([0, 4000, 0, 4000, u32::MAX, 1 << 10]));
    let table: Vec<u8> = table.into_iter().flat_map(u32::to_le_bytes).collect();
    blob(&mut bits, SYMTAB, &table);
    blob(&mut bits, STRTAB, &strings);
    assert_eq!(names(&bits.bytes()), ["a"]);
}

#[test]
fn the_length_limits_the_number_of_symbols() {
    // [7, 0, 0, ...]: a variable of four bits
    let bytes = module(|bits| {
        bits.record(1, &[2]).fixed(2, 4).vbr(10, 5).fixed(1, 1).vbr(7, 8);
        for value in [0, 0, 0, 3, 1, 0, 0, 0, 0] {
            bits.fixed(1, 1).vbr(value, 8);
        }
        (0..100_000).for_each(|_| bits.fixed(4, 4).done());
    });
    let limit = bytes.len() / 4;
    let expected = format!("bitcode has more than {limit} symbols for its length");
    assert_eq!(error(&bytes).to_string(), expected);
}

#[test]
fn truncated_bitcode_has_all_names_or_is_an_error() {
    for name in ["symbols.bc", "assembly.bc", "version-1.bc"] {
        let bytes = data(name);
        let all = symbols(&bytes).unwrap();
        for len in 4..bytes.len() {
            match symbols(&bytes[..len]) {
                Ok(names) => assert_eq!(names, all, "{name} {len}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}
