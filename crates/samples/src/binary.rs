//! Offload binaries of `llvm-offload-binary`, once `clang-offload-packager`.

use crate::{hex, longs};

/// The first bytes of an offload binary.
pub const MAGIC: [u8; 4] = [0x10, 0xff, 0x10, 0xad];
/// An object for HIP, without flags: the first 8 bytes of an entry.
pub const KINDS: u64 = 0x0004_0001;
/// Offset of the first entry's fields in version 2.
pub const ENTRY: usize = 32;

/// An image with its strings: keys and values.
pub type Packed<'a> = (&'a [u8], &'a [(&'a str, &'a str)]);

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// Returns an offload binary of version 1.
#[must_use]
pub fn v1(image: &[u8], strings: &[(&str, &str)]) -> Vec<u8> {
    let table_at = 72 + 16 * strings.len() as u64;
    let (mut entries, mut table) = (Vec::new(), vec![0]);
    for text in strings.iter().flat_map(|(key, value)| [key, value]) {
        entries.extend(longs(&[table_at + table.len() as u64]));
        table.extend(text.bytes().chain([0]));
    }
    let strings_len = strings.len() as u64;
    let head = padded([entries, table].concat());
    let image_at = 72 + head.len() as u64;
    let size = (image_at + image.len() as u64).next_multiple_of(8);
    let mut bytes = [MAGIC, [1, 0, 0, 0]].concat();
    bytes.extend(longs(&[size, 32, 40, KINDS, 72, strings_len, image_at, image.len() as u64]));
    bytes.extend(head);
    bytes.extend(image);
    padded(bytes)
}

/// Returns an offload binary of version 1 for a GPU of AMD.
#[must_use]
pub fn amd(arch: &str, image: &[u8]) -> Vec<u8> {
    v1(image, &[("triple", "amdgcn-amd-amdhsa"), ("arch", arch)])
}

/// Returns an offload binary of version 2.
#[must_use]
pub fn v2(images: &[Packed<'_>]) -> Vec<u8> {
    let strings: u64 = images.iter().map(|(_, strings)| strings.len() as u64).sum();
    let strings_at = 32 + 40 * images.len() as u64;
    let table_at = strings_at + 24 * strings;
    let (mut string_entries, mut table) = (Vec::new(), vec![0]);
    for (key, value) in images.iter().flat_map(|(_, strings)| *strings) {
        let key_at = table_at + table.len() as u64;
        let value_at = key_at + key.len() as u64 + 1;
        string_entries.extend(longs(&[key_at, value_at, value.len() as u64]));
        table.extend(key.bytes().chain([0]).chain(value.bytes()).chain([0]));
    }
    let table = padded(table);
    let (mut image_at, mut string_at) = (table_at + table.len() as u64, strings_at);
    let mut entries = Vec::new();
    for (image, strings) in images {
        let (size, count) = (image.len() as u64, strings.len() as u64);
        entries.extend(longs(&[KINDS, string_at, count, image_at, size]));
        string_at += 24 * count;
        image_at += size;
    }
    let size = image_at.next_multiple_of(8);
    let mut bytes = [MAGIC, [2, 0, 0, 0]].concat();
    bytes.extend(longs(&[size, 32, images.len() as u64]));
    bytes.extend([entries, string_entries, table].concat());
    images.iter().for_each(|(image, _)| bytes.extend(*image));
    padded(bytes)
}

/// Returns what LLVM 22.1.8 writes, where `a.o` holds the 11 bytes `hello image`:
/// `llvm-offload-binary -o v1.bin --image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda`.
#[must_use]
pub fn llvm_22() -> Vec<u8> {
    hex("10ff10ad01000000 a000000000000000 2000000000000000 2800000000000000
         0100020000000000 4800000000000000 0200000000000000 9000000000000000
         0b00000000000000 6900000000000000 8900000000000000 6e00000000000000
         7500000000000000 0061726368007472 69706c65006e7670 747836342d6e7669
         6469612d63756461 00736d5f37300000 68656c6c6f20696d 6167650000000000")
}

/// Returns what LLVM 23.1.4 writes for the same command.
#[must_use]
pub fn llvm_23() -> Vec<u8> {
    hex("10ff10ad02000000 b000000000000000 2000000000000000 0100000000000000
         0100020000000000 4800000000000000 0200000000000000 a000000000000000
         0b00000000000000 7900000000000000 9900000000000000 0500000000000000
         7e00000000000000 8500000000000000 1300000000000000 0061726368007472
         69706c65006e7670 747836342d6e7669 6469612d63756461 00736d5f37300000
         68656c6c6f20696d 6167650000000000")
}
