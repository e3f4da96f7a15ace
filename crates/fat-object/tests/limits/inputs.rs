//! Files that cost more than they should: Each has roughly `n` bytes.

/// Copies numbers into bytes.
fn put<const N: usize>(bytes: &mut [u8], at: usize, number: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&number);
}

fn member(name: &str, content: &[u8]) -> Vec<u8> {
    let mut member = format!("{name:<16}{:<32}{:<10}`\n", "", content.len()).into_bytes();
    member.extend(content);
    member
}

/// A thin archive that names itself, by a name of one letter.
pub(crate) fn thin_archive(n: usize) -> Vec<u8> {
    thin_archive_of(n, 8 + n / 60 * 60)
}

/// A thin archive of files of `size` bytes, with a name of one letter.
pub(crate) fn thin_archive_of(n: usize, size: usize) -> Vec<u8> {
    let mut bytes = b"!<thin>\n".to_vec();
    for _ in 0..n / 60 {
        bytes.extend(format!("{:<16}{:<32}{size:<10}`\n", "a/", "").bytes());
    }
    bytes
}

/// Compressed bundles in a compressed bundle: each expands to `size`, all together to 1000 times `size`.
pub(crate) fn nested_compressed_bundles(size: usize) -> Vec<u8> {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.resize(size, 0);
    let inner = ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap();
    ccob::compress(&inner.repeat(1000), &ccob::WriteOptions::default()).unwrap()
}

/// Compressed bundles of version 1, each around a bundle without entries.
pub(crate) fn version_1_in_a_row(n: usize, method: ccob::Method) -> Vec<u8> {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend([0; 8]);
    let options = ccob::WriteOptions::default().with_version(ccob::Version::V1).with_method(method);
    let one = ccob::compress(&bundle, &options).unwrap();
    one.repeat(n / one.len())
}

/// A package of version 1 whose one entry has strings with one long value.
pub(crate) fn package_with_a_shared_string(n: usize) -> Vec<u8> {
    let count = n / 32;
    let strings = 32 + 40;
    let text = strings + 16 * count;
    let size = text + 16 * count;
    let mut bytes = vec![0; size];
    bytes[..4].copy_from_slice(&[0x10, 0xff, 0x10, 0xad]);
    put(&mut bytes, 4, 1u32.to_le_bytes());
    for (at, number) in [(8, size), (16, 32), (24, 40), (40, strings), (48, count), (56, 0)] {
        put(&mut bytes, at, (number as u64).to_le_bytes());
    }
    for entry in 0..count {
        put(&mut bytes, strings + 16 * entry, (text as u64).to_le_bytes());
        put(&mut bytes, strings + 16 * entry + 8, (text as u64).to_le_bytes());
    }
    bytes[text..size - 1].fill(b'a');
    bytes
}

/// An archive whose members, all empty, share one long name.
pub(crate) fn archive_with_a_shared_name(n: usize) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    let mut names = vec![b'a'; (n / 2) & !1];
    names.extend(b"/\n");
    bytes.extend(member("//", &names));
    for _ in 0..n / 2 / 60 {
        bytes.extend(member("/0", b""));
    }
    bytes
}

/// A 64-bit ELF object: contents from byte 64 on, then the headers of sections: type, offset, size, name. The last
/// one holds the names.
pub(crate) fn elf(contents: &[u8], sections: &[(u32, usize, usize, usize)]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, number) in [(16, 1), (18, 62), (52, 64), (58, 64), (60, sections.len() + 1)] {
        put(&mut bytes, at, u16::try_from(number).unwrap().to_le_bytes());
    }
    put(&mut bytes, 20, 1u32.to_le_bytes());
    put(&mut bytes, 62, u16::try_from(sections.len()).unwrap().to_le_bytes());
    bytes.extend(contents);
    let table = bytes.len().next_multiple_of(8);
    put(&mut bytes, 40, (table as u64).to_le_bytes());
    bytes.resize(table + 64, 0);
    for &(kind, offset, size, name) in sections {
        let mut header = [0; 64];
        put(&mut header, 0, u32::try_from(name).unwrap().to_le_bytes());
        put(&mut header, 4, kind.to_le_bytes());
        put(&mut header, 24, (offset as u64).to_le_bytes());
        put(&mut header, 32, (size as u64).to_le_bytes());
        bytes.extend(header);
    }
    bytes
}

/// An ELF file whose sections all start with one package; its last entry is faulty.
pub(crate) fn sections_at_a_faulty_package(n: usize) -> Vec<u8> {
    let count = n / 2 / 40;
    let size = 32 + 40 * count;
    let mut package = vec![0; size];
    package[..4].copy_from_slice(&[0x10, 0xff, 0x10, 0xad]);
    put(&mut package, 4, 2u32.to_le_bytes());
    for (at, number) in [(8, size), (16, 32), (24, count), (size - 8, 1), (size - 16, size)] {
        put(&mut package, at, (number as u64).to_le_bytes());
    }
    let names = (3, 64 + size, 6, 0);
    let mut sections = vec![(1, 64, size, 1); n / 2 / 64];
    sections.push(names);
    package.extend(b"\0.abc\0");
    elf(&package, &sections)
}

/// An ELF file whose sections have one long name.
pub(crate) fn sections_with_a_shared_name(n: usize) -> Vec<u8> {
    let mut names = vec![b'a'; n / 2];
    names.push(0);
    let mut sections = vec![(1, 64, 1, 0); n / 2 / 64];
    sections.push((3, 64, names.len(), 0));
    elf(&names, &sections)
}

/// An ELF file whose sections have long names that all end like one another.
pub(crate) fn sections_with_overlapping_names(n: usize) -> Vec<u8> {
    let mut names = vec![b'a'; n / 2];
    names.push(0);
    let mut sections: Vec<_> = (0..n / 2 / 64).map(|i| (1, 64, 1, i)).collect();
    sections.push((3, 64, names.len(), 0));
    elf(&names, &sections)
}
