//! Files that cost more than they should: Each has roughly `n` bytes.

use samples::elf::{Header, PROGBITS, names, placed};
use samples::{ar, binary, bundle, longs, put};

/// A thin archive that names itself, by a name of one letter.
pub(crate) fn thin_archive(n: usize) -> Vec<u8> {
    ar::thin("a/", 8 + n / 60 * 60, n / 60)
}

/// Compressed bundles in a compressed bundle: each expands to `size`, all together to 1000 times `size`.
pub(crate) fn nested_compressed_bundles(size: usize) -> Vec<u8> {
    let mut bundle = bundle::MAGIC.as_bytes().to_vec();
    bundle.resize(size, 0);
    let inner = ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap();
    ccob::compress(&inner.repeat(1000), &ccob::WriteOptions::default()).unwrap()
}

/// Compressed bundles of version 1, each around a bundle without entries.
pub(crate) fn version_1_in_a_row(n: usize, method: ccob::Method) -> Vec<u8> {
    let options = ccob::WriteOptions::default().with_version(ccob::Version::V1).with_method(method);
    let one = ccob::compress(&bundle::empty(), &options).unwrap();
    one.repeat(n / one.len())
}

/// A package of version 1 whose one entry has strings with one long value.
pub(crate) fn package_with_a_shared_string(n: usize) -> Vec<u8> {
    let count = n / 32;
    let strings = 32 + 40;
    let text = strings + 16 * count;
    let size = text + 16 * count;
    let mut bytes = [binary::MAGIC, [1, 0, 0, 0]].concat();
    bytes.extend(longs(&[size, 32, 40, 0, strings, count, 0, 0].map(|number| number as u64)));
    bytes.extend(longs(&[text as u64; 2]).repeat(count));
    bytes.resize(size - 1, b'a');
    bytes.push(0);
    bytes
}

/// An archive whose members, all empty, share one long name.
pub(crate) fn archive_with_a_shared_name(n: usize) -> Vec<u8> {
    let mut names = vec![b'a'; (n / 2) & !1];
    names.extend(b"/\n");
    let members = ar::member("/0", b"").repeat(n / 2 / 60);
    [&ar::MAGIC[..], &ar::member("//", &names), &members].concat()
}

/// An object of 64 bits: contents from byte 64 on, and sections: name, offset, size.
pub(crate) fn object(contents: &[u8], names: &[u8], sections: &[(u32, u64, u64)]) -> Vec<u8> {
    let sections = sections.iter().map(|&(name, offset, size)| Header {
        name,
        kind: PROGBITS,
        offset,
        size,
        ..Header::default()
    });
    let body = [&[0; 64], contents].concat();
    placed(1, &[], &sections.collect::<Vec<_>>(), names, body)
}

/// An ELF file whose sections all start with one package; its last entry is faulty.
pub(crate) fn sections_at_a_faulty_package(n: usize) -> Vec<u8> {
    let count = n / 2 / 40;
    let size = 32 + 40 * count;
    let mut package = [binary::MAGIC, [2, 0, 0, 0]].concat();
    package.extend(longs(&[size as u64, 32, count as u64]));
    package.resize(size, 0);
    put(&mut package, size - 16, &longs(&[size as u64, 1]));
    let (names, [name]) = names([".abc"]);
    object(&package, &names, &vec![(name, 64, size as u64); n / 2 / 64])
}

/// An ELF file whose sections have one long name.
pub(crate) fn sections_with_a_shared_name(n: usize) -> Vec<u8> {
    let names = [&vec![b'a'; n / 2][..], &[0]].concat();
    object(b"x", &names, &vec![(0, 64, 1); n / 2 / 64])
}

/// An ELF file whose sections have long names that all end like one another.
pub(crate) fn sections_with_overlapping_names(n: usize) -> Vec<u8> {
    let names = [&vec![b'a'; n / 2][..], &[0]].concat();
    let sections: Vec<_> = (0..n / 2 / 64).map(|i| (i as u32, 64, 1)).collect();
    object(b"x", &names, &sections)
}
