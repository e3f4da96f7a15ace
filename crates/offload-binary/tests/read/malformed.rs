//! Malformed headers, tables, strings and images, truncations and changed bytes.

use offload_binary::{ErrorKind, MAGIC, OffloadBinary, binaries};
use samples::binary::{llvm_22, llvm_23};
use samples::table::faults;

use super::samples::{
    EXTENT, IMAGE_OFFSET, IMAGE_SIZE, KEY, SIZE, STRING_COUNT, Tap, VALUE, VALUE_SIZE, error, only,
    put, v2_two_entries, with,
};
use crate::common::told;
use crate::version3::{compressed, v3};

/// Errors without "offload binary"; [`faults`] says how to read a row.
const FAULTS: &str = "
v1 size=64: Malformed at 0x0: has size 64, expected at least 72
v2 size=32,0: Malformed at 0x0: has size #, expected at least 40
v3 size=0,39,40: Malformed at 0x0: has size #, expected at least 48
v1 size=159: Malformed at 0x0: has size 159, expected a multiple of 8
v3 size=0xb7: Malformed at 0x0: has size 183, expected a multiple of 8
v1 size=168,0xfffffffffffffff8: Truncated at 0x0: has size @, but only 0xa0 bytes are left
v3 size=0xc0: Truncated at 0x0: has size 0xc0, but only 0xb8 bytes are left
v1 entries=0,31: Malformed at @: has its entries at @, inside the header of 32 bytes
v3 entries=0,32: Malformed at @: has its entries at @, inside the header of 40 bytes
v1 entries=121,160,0xffffffffffffffd8,max: Malformed at @: has 1 entries at @, beyond its end at 0xa0
v3 entries=0x1000000000000000: Malformed at @: has 1 entries at @, beyond its end at 0xb8
v2 count=4,0x666666666666667,max: Malformed at 0x20: has # entries at 0x20, beyond its end at 0xb0
v3 count=4,0x1000000000000000: Malformed at 0x28: has # entries at 0x28, beyond its end at 0xb8
v1 count=129,max: Malformed at 0x20: has an entry of @ bytes at 0x20, beyond its end at 0xa0
v1 string_count=6,0x1000000000000000,max: Malformed at 0x48: entry 0 has # string entries at 0x48, beyond the end of the binary at 0xa0
v2 string_count=5,0xaaaaaaaaaaaaaab,max: Malformed at 0x48: entry 0 has # string entries at 0x48, beyond the end of the binary at 0xb0
v3 string_count=5: Malformed at 0x50: entry 0 has 5 string entries at 0x50, beyond the end of the binary at 0xb8
v1 string_offset=136: Malformed at 0x88: entry 0 has 2 string entries at 0x88, beyond the end of the binary at 0xa0
v1 string_offset=0,31,40,71: Malformed at @: entry 0 has its string entries at @, which overlap other tables
v3 string_offset=32: Malformed at @: entry 0 has its string entries at @, which overlap other tables
two string_offset_1=0x70: Malformed at @: entry 1 has its string entries at @, which overlap other tables
v2 string_count=3: Malformed at 0x79: entry 0 has a key or value of string 0 at 0x79, which overlaps a table or an image
v1 key=160,max: Malformed at @: entry 0 has the key of string 0 at @, beyond the end of the binary at 0xa0
v2 key=176,max: Malformed at @: entry 0 has the key of string 0 at @, beyond the end of the binary at 0xb0
v1 value=160,max: Malformed at @: entry 0 has the value of string 0 at @ with 0x0 bytes, beyond the end of the binary at 0xa0
v2 value=172: Malformed at @: entry 0 has the value of string 0 at @ with 0x5 bytes, beyond the end of the binary at 0xb0
v2 value_size=24,max: Malformed at 0x99: entry 0 has the value of string 0 at 0x99 with @ bytes, beyond the end of the binary at 0xb0
v1 key=8,40,75,0x90: Malformed at @: entry 0 has a key or value of string 0 at @, which overlaps a table or an image
v1 value=8,40,75,0x90: Malformed at @: entry 0 has a key or value of string 0 at @, which overlaps a table or an image
v2 value_size=8: Malformed at 0x99: entry 0 has a key or value of string 0 at 0x99, which overlaps a table or an image
v1 image_offset=0x90 image_size=17,max: Malformed at 0x90: entry 0 has an image of @ bytes at 0x90, beyond the end of the binary at 0xa0
v1 image_size=11 image_offset=max: Malformed at @: entry 0 has an image of 0xb bytes at @, beyond the end of the binary at 0xa0
v1 image_size=0 image_offset=161: Malformed at @: entry 0 has an image of 0x0 bytes at @, beyond the end of the binary at 0xa0
v1 image_size=1 image_offset=160: Malformed at @: entry 0 has an image of 0x1 bytes at @, beyond the end of the binary at 0xa0
v3 image_offset=0xb0: Malformed at @: entry 0 has an image of 0xb bytes at @, beyond the end of the binary at 0xb8
v3 image_size=17: Malformed at 0xa8: entry 0 has an image of 0x11 bytes at 0xa8, beyond the end of the binary at 0xb8
v1 image_offset=0,31,32,71,72,103: Malformed at @: entry 0 has its image at @, which overlaps the header or a table
v1 image_offset=0x68: Malformed at 0x69: entry 0 has a key or value of string 0 at 0x69, which overlaps a table or an image
two image_offset_1=0xb1: Malformed at @: entries 0 and 1 have images that overlap at @
compressed size=0: Malformed at 0x0: has size 0, expected at least 41
compressed size=40: EmptyStream at 0x0: has size 40, expected at least 41
compressed size=0x91,max: Truncated at 0x0: has size @, but only 0x90 bytes are left
compressed entries=0,32,48,0x1000: Malformed at @: compressed, has its entries at @, expected 0x28
compressed inflated=1,39,40: Malformed at 0x0: compressed, has inflated size #, expected at least 48
compressed inflated=0xb9: Malformed at 0x0: compressed, has inflated size 185, expected a multiple of 8
compressed count=4,0x1000000000000000: Malformed at 0x28: has # entries at 0x28, beyond its end at 0xb8
";

fn sample(name: &str) -> Vec<u8> {
    match name {
        "v1" => llvm_22(),
        "v2" => llvm_23(),
        "v3" => v3(),
        "two" => v2_two_entries(),
        "compressed" => compressed(),
        _ => panic!("{name}: no such sample"),
    }
}

fn put_field(data: &mut [u8], sample: &str, field: &str, value: u64) {
    let header = if sample == "v3" { 8 } else { 0 };
    let at = match field {
        "size" => SIZE,
        "entries" => 16,
        // The size of the entry in version 1.
        "count" => EXTENT,
        "inflated" => 32,
        "string_offset" => 40 + header,
        "string_count" => STRING_COUNT + header,
        "image_offset" => IMAGE_OFFSET + header,
        "image_size" => IMAGE_SIZE + header,
        "key" => KEY,
        "value" => VALUE,
        "value_size" => VALUE_SIZE,
        // In the second entry.
        "string_offset_1" => 80,
        "image_offset_1" => IMAGE_OFFSET + 40,
        _ => panic!("{field}: no such field"),
    };
    put(data, at, value);
}

#[test]
fn each_fault_has_its_kind_place_and_text() {
    let told = |data: &[u8]| {
        let error = told(&error(data));
        error.replace("compressed offload binary", "compressed,").replace("offload binary ", "")
    };
    faults(FAULTS, sample, put_field, told);
}

#[test]
fn a_truncated_header_is_an_error() {
    for (data, expected) in [
        (&llvm_22()[..31], "needs 32 bytes, but only 31 are left"),
        (&[], "needs 32 bytes, but only 0 are left"),
        // The header of version 3 does not end at 32.
        (&v3()[..39], "needs 40 bytes, but only 39 are left"),
    ] {
        let expected = format!("Truncated at 0x0: offload binary header {expected}");
        assert_eq!(told(&error(data)), expected);
    }
}

#[test]
fn a_wrong_magic_is_an_error_from_its_first_wrong_byte() {
    let check = |bytes: &[u8]| {
        let mut found = [0; 4];
        let len = bytes.len().min(4);
        found[..len].copy_from_slice(&bytes[..len]);
        let error = told(&error(bytes));
        assert_eq!(
            error,
            format!(
                "NotABinary at 0x0: offload binary starts with bytes {found:02x?}, expected [10, ff, 10, ad]"
            )
        );
        assert_eq!(told(&OffloadBinary::parse_prefix(bytes, 1 << 20).unwrap_err()), error);
    };
    for len in 0..4 {
        for byte in (0..=255).filter(|&byte| byte != MAGIC[len]) {
            check(&[&MAGIC[..len], &[byte]].concat());
        }
    }
    check(&llvm_22().tap(|data| data[3] = 0xac));
}

#[test]
fn every_truncation_is_reported_as_such() {
    for data in [llvm_22(), llvm_23(), v2_two_entries()] {
        for len in (0..data.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
            let found = error(&data[..len]);
            assert_eq!(
                (found.kind(), found.needed()),
                (ErrorKind::Truncated, None),
                "{len} bytes: {found}"
            );
            // All of it is there, but not in memory.
            let available = u64::try_from(data.len()).unwrap();
            if let Err(found) = OffloadBinary::parse_prefix(&data[..len], available) {
                assert_eq!(found.kind(), ErrorKind::Incomplete, "{len} bytes: {found}");
                let needed = found.needed().unwrap();
                assert!(needed > u64::try_from(len).unwrap() && needed <= available);
            }
            // The same after another one.
            let two = [llvm_22(), data[..len].to_vec()].concat();
            if let Some(found) = binaries(&two).nth(1) {
                let found = found.unwrap_err();
                let start = "Truncated at 0xa0: offload binary at offset 0xa0: ";
                assert!(told(&found).starts_with(start), "{found}");
                assert!(found.available().unwrap() <= len as u64);
            }
        }
    }
}

/// Every byte that is asked for is one of the binary, and after the last one it can be parsed.
#[test]
fn needed_headers_lie_in_the_binary() {
    for data in [llvm_22(), llvm_23(), v2_two_entries()] {
        let mut len = 0;
        let mut rounds = 0;
        loop {
            let needed = OffloadBinary::header_needed(&data[..len]).unwrap();
            let needed = usize::try_from(needed).unwrap();
            assert!(needed <= data.len());
            if needed <= len {
                break;
            }
            (len, rounds) = (needed, rounds + 1);
        }
        assert!(rounds <= 5);
        OffloadBinary::parse_prefix(&data[..len], u64::MAX).unwrap();
    }
    // Version 2 without entries, as short as can be.
    let numbers = [40_u64, 40, 0].map(u64::to_le_bytes).concat();
    let empty = [&b"\x10\xff\x10\xad\x02\0\0\0"[..], &numbers, &[0; 8]].concat();
    OffloadBinary::parse(&empty).unwrap();
    assert_eq!(OffloadBinary::header_needed(&[]).unwrap(), 32);
    assert_eq!(OffloadBinary::header_needed(&empty[..32]).unwrap(), 40);
    let error = OffloadBinary::header_needed(b"\x10\xff\x10\xae").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotABinary);
}

#[test]
fn an_unsupported_version_is_an_error() {
    for version in [0, 4, 255] {
        let data = llvm_22().tap(|data| data[4] = version);
        let text = format!("offload binary has version {version}, expected 1, 2 or 3");
        assert_eq!(told(&error(&data)), format!("Version at 0x0: {text}"));
    }
}

/// No image, and the last eight bytes are a string without its NUL.
fn unterminated(data: Vec<u8>) -> (Vec<u8>, u64) {
    let size = data.len();
    let data = data.tap(|data| {
        put(data, IMAGE_SIZE, 0);
        data[size - 8..].copy_from_slice(b"no nul..");
        // Bytes after the binary are ignored.
        data.extend([0; 8]);
    });
    (data, u64::try_from(size).unwrap() - 8)
}

#[test]
fn a_string_without_its_nul_is_an_error() {
    for (data, field, name) in
        [(llvm_22(), KEY, "key"), (llvm_23(), KEY, "key"), (llvm_22(), VALUE, "value")]
    {
        let (data, offset) = unterminated(data);
        let text = format!(
            "entry 0 has the {name} of string 0 at {offset:#x} without a nul before the end of the binary"
        );
        let expected = format!("Malformed at {offset:#x}: offload binary {text}");
        assert_eq!(told(&error(&with(data, field, offset))), expected);
    }
    // Version 2 has the size of a value instead.
    let (data, offset) = unterminated(llvm_23());
    let data = with(with(data, VALUE, offset), VALUE_SIZE, 8);
    assert_eq!(only(&data).arch(), Some("no nul.."));
}

#[test]
fn a_string_that_runs_into_the_image_is_an_error() {
    let data = llvm_22().tap(|data| data[0x8e..0x90].copy_from_slice(b"01"));
    let text = "entry 0 has a key or value of string 0 at 0x89, which overlaps a table or an image";
    assert_eq!(told(&error(&data)), format!("Malformed at 0x89: offload binary {text}"));
}

#[test]
fn empty_images_are_nowhere() {
    let data = with(with(v2_two_entries(), IMAGE_OFFSET + 40, 0xb1), IMAGE_SIZE + 40, 0);
    let entries: Vec<_> = OffloadBinary::parse(&data).unwrap().entries().collect();
    assert_eq!(entries[1].image(), Some(&[][..]));
}
