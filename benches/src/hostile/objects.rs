//! Host files: ELF, COFF, PE, Mach-O, WebAssembly.

use samples::ar::archive;
use samples::binary::v2;
use samples::device::{self, AMD, Head, array, map, note, text};
use samples::elf::{
    Header, LLVM_OFFLOADING, NOTE, PROGBITS, STRTAB, SYMTAB, Segment, names, placed, section,
};
use samples::{longs, put};

use super::containers::bundle;
use super::{half, long, word};

/// An object of these sections: the body starts at byte 64, the names and the headers of sections follow it.
fn elf(body: &[u8], names: &[u8], sections: &[Header]) -> Vec<u8> {
    placed(1, &[], sections, names, [&[0; 64], body].concat())
}

fn two() -> Vec<u8> {
    let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a"];
    bundle(ids.map(str::to_owned), b"code")
}

/// Sections of one name, each with the same contents.
fn elf_of(n: usize, kind: u32, name: &str, contents: &[u8]) -> Vec<u8> {
    let count = n / (64 + contents.len());
    let (names, [name]) = names([name]);
    let size = contents.len() as u64;
    let section = |i: u64| Header { kind, name, offset: 64 + i * size, size, ..Header::default() };
    let sections: Vec<_> = (0..count as u64).map(section).collect();
    elf(&contents.repeat(count), &names, &sections)
}

/// An ELF object with many sections for offload binaries, each with an empty one.
#[must_use]
pub fn elf_of_packages(n: usize) -> Vec<u8> {
    elf_of(n, LLVM_OFFLOADING, ".llvm.offloading", &v2(&[]))
}

/// An ELF object with many sections, each with a bundle of two images.
#[must_use]
pub fn elf_with_bundles(n: usize) -> Vec<u8> {
    elf_of(n, PROGBITS, ".hip_fatbin", &two())
}

/// An archive of an ELF object with many sections, each of them an entry for the object itself.
#[must_use]
pub fn elf_of_hosts(n: usize) -> Vec<u8> {
    let name = "__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-";
    let object = elf_of(n, PROGBITS, name, b"\0");
    archive(&[("a.o", &object)])
}

/// An archive of one bundle of one ELF object whose symbols share one long name.
#[must_use]
pub fn elf_with_long_symbols(n: usize) -> Vec<u8> {
    let count = n / 2 / 24;
    let name = [&b"\0"[..], &b"a".repeat(n / 2), b"\0"].concat();
    let mut body = vec![0; 24];
    for _ in 0..count {
        // Name, global, in the first section.
        body.extend([&word(1)[..], &[0x10, 0], &half(1), &[0; 16]].concat());
    }
    let symbols = body.len();
    body.extend(&name);
    let section = |kind, offset: usize, size: usize, link, entry| Header {
        kind,
        offset: offset as u64,
        size: size as u64,
        link,
        entry,
        ..Header::default()
    };
    let sections =
        [section(SYMTAB, 64, symbols, 2, 24), section(STRTAB, 64 + symbols, name.len(), 0, 0)];
    let object = elf(&body, b"\0", &sections);
    let bundle = bundle(["hip-amdgcn-amd-amdhsa--gfx906".to_owned()], &object);
    archive(&[("a.o", &bundle)])
}

/// An ELF object of many symbol tables over the same symbols, which have no names.
#[must_use]
pub fn elf_of_symbol_tables(n: usize) -> Vec<u8> {
    let size = n / 2 / 24 * 24;
    let of = |kind, size, link| Header { kind, offset: 64, size, link, ..Header::default() };
    let table = Header { entry: 24, ..of(SYMTAB, size as u64, 1) };
    let strings = of(STRTAB, 1, 0);
    let tables = std::iter::repeat_n(table, n / 2 / 64);
    elf(&vec![0; size], b"\0", &std::iter::once(strings).chain(tables).collect::<Vec<_>>())
}

/// A code object for gfx906 with many kernels in its metadata.
#[must_use]
pub fn code_of_kernels(n: usize) -> Vec<u8> {
    let name = |i: usize| format!("k{i:07}");
    let kernel =
        |i| map(&[(".name", text(&name(i))), (".symbol", text(&format!("{}.kd", name(i))))]);
    let count = n / kernel(0).len();
    let kernels: Vec<_> = (0..count).map(kernel).collect();
    let target = text("amdgcn-amd-amdhsa--gfx906");
    let note = note(&map(&[("amdhsa.kernels", array(&kernels)), ("amdhsa.target", target)]));
    device::elf(Head { flags: 0x2f, ..AMD }, &[section(".note", NOTE, note)], &[])
}

fn coff_sections(count: usize, first: usize, contents: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..count {
        bytes.extend(b".hip_fat");
        let at = first + i * contents.len();
        bytes.extend([0, 0, contents.len(), at, 0, 0, 0, 0x4000_0040].map(word).concat());
    }
    (0..count).for_each(|_| bytes.extend(contents));
    bytes
}

/// A COFF object in its form for many sections, all of them empty bundles.
#[must_use]
pub fn coff_of_sections(n: usize) -> Vec<u8> {
    let contents = bundle([], b"");
    let count = n / (40 + contents.len());
    let mut bytes = vec![0, 0, 0xff, 0xff, 2, 0, 0x64, 0x86, 0, 0, 0, 0];
    // The class that says so.
    bytes.extend([0xc7, 0xa1, 0xba, 0xd1, 0xee, 0xba, 0xa9, 0x4b]);
    bytes.extend([0xaf, 0x20, 0xfa, 0xf6, 0x6a, 0xa4, 0xdc, 0xb8]);
    bytes.extend([0, 0, 0, 0, count, 0, 0].map(word).concat());
    bytes.extend(coff_sections(count, 56 + 40 * count, &contents));
    bytes
}

/// A COFF object with as many sections as `n` allows, but no more than there may be, each with a bundle of two images.
#[must_use]
pub fn coff_with_bundles(n: usize) -> Vec<u8> {
    let contents = two();
    let count = (n / (40 + contents.len())).min(0xfeff);
    let symbols = 20 + count * (40 + contents.len());
    let mut bytes = [half(0x8664), half(count)].concat();
    bytes.extend([0, symbols, 0, 0].map(word).concat());
    bytes.extend(coff_sections(count, 20 + 40 * count, &contents));
    bytes.extend(word(4));
    bytes
}

/// A COFF object whose sections have long names, each the end of another.
#[must_use]
pub fn coff_of_long_names(n: usize) -> Vec<u8> {
    let count = (n / 2 / 40).min(0xfeff);
    let symbols = 20 + count * 40;
    let mut bytes = [half(0x8664), half(count)].concat();
    bytes.extend([0, symbols, 0, 0].map(word).concat());
    for i in 0..count {
        let mut section = [0; 40];
        put(&mut section, 0, format!("/{}", 4 + i).as_bytes());
        bytes.extend(section);
    }
    let names = [&b"n".repeat(n / 2), &b"\0"[..]].concat();
    bytes.extend(word(4 + names.len()));
    bytes.extend(names);
    bytes
}

/// A program whose device code was moved out: many wrappers, and a marker with as many paths of kernel packs as a
/// loader reads.
#[must_use]
#[expect(clippy::expect_used, reason = "the paths are short")]
pub fn program_of_wrappers(n: usize) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    let paths: Vec<String> =
        (0..(n / 40).min(2000)).map(|i| format!("/usr/bin/a{i:05}@GFXARCH@")).collect();
    let marker = kpack::Marker::new("a", paths).to_vec().expect("short paths");
    let count = n / 2 / 24;
    let (names, [wrappers, of_marker]) = names([".hipFatBinSegment", ".rocm_kpack_ref"]);
    let start = 64 + 56;
    let marker_at = start + 24 * count as u64;
    let mut bytes = vec![0; 64 + 56];
    for i in 0..count as u64 {
        bytes.extend([&b"HIPK"[..], &word(1), &longs(&[BASE + marker_at, i])].concat());
    }
    bytes.extend(&marker);
    let end = bytes.len() as u64;
    let section = |name, flags, offset, end: u64| Header {
        name,
        kind: PROGBITS,
        flags,
        address: BASE + offset,
        offset,
        size: end - offset,
        align: 8,
        ..Header::default()
    };
    let sections = [section(wrappers, 3, start, marker_at), section(of_marker, 2, marker_at, end)];
    let segment = Segment { kind: 1, flags: 6, start: 0, end, base: BASE };
    placed(2, &[segment], &sections, &names, bytes)
}

/// A PE file with two bundles, and relocations in blocks of one each.
#[must_use]
pub fn pe_of_relocations(n: usize) -> Vec<u8> {
    let count = n / 12;
    // Without the first image of the first, the second is to move.
    let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a"];
    let mut bundle = bundle(ids.map(str::to_owned), &[1; 0x5000]);
    bundle.resize(bundle.len().next_multiple_of(0x1000), 0);
    let bundle = bundle.repeat(2);
    let (headers, align) = (0x400, 0x1000);
    let relocations = count * 12;
    let in_file = [bundle.len(), relocations].map(|len| len.next_multiple_of(0x200));
    let in_memory = [bundle.len(), relocations].map(|len| len.next_multiple_of(align));
    let addresses = [align, align + in_memory[0]];
    let mut bytes = b"MZ".to_vec();
    bytes.resize(60, 0);
    bytes.extend(word(64));
    bytes.extend(b"PE\0\0");
    bytes.extend([half(0x8664), half(2)].concat());
    bytes.extend([0, 0, 0].map(word).concat());
    bytes.extend([half(240), half(0x2022)].concat());
    let optional = bytes.len();
    bytes.resize(optional + 240, 0);
    put(&mut bytes, optional, &half(0x20b));
    put(&mut bytes, optional + 24, &long(0x1_8000_0000));
    put(&mut bytes, optional + 32, &[word(align), word(0x200)].concat());
    put(&mut bytes, optional + 48, &half(6));
    let image = addresses[1] + in_memory[1];
    put(&mut bytes, optional + 56, &[word(image), word(headers)].concat());
    put(&mut bytes, optional + 68, &half(3));
    put(&mut bytes, optional + 108, &word(16));
    put(&mut bytes, optional + 112 + 5 * 8, &[word(addresses[1]), word(relocations)].concat());
    let sections = [(b".hip_fat", bundle.len()), (b".reloc\0\0", relocations)];
    let mut at = headers;
    for ((name, size), (address, stored)) in
        sections.into_iter().zip(addresses.into_iter().zip(in_file))
    {
        bytes.extend(name);
        bytes.extend([size, address, stored, at, 0, 0, 0, 0x4000_0040].map(word).concat());
        at += stored;
    }
    bytes.resize(headers, 0);
    bytes.extend(&bundle);
    bytes.resize(headers + in_file[0], 0);
    for block in 0..count {
        // Each reads a page of the file, for a relocation of no kind, and padding.
        bytes.extend([align, 12].map(word).concat());
        bytes.extend([half(0), half(block % 16)].concat());
    }
    bytes.resize(at, 0);
    bytes
}

fn macho(commands: usize, size: usize) -> Vec<u8> {
    [0xfeed_facf, 0x0100_0007, 3, 1, commands, size, 0, 0].map(word).concat()
}

/// A Mach-O object with commands that say nothing.
#[must_use]
pub fn macho_of_commands(n: usize) -> Vec<u8> {
    let count = n / 8;
    [macho(count, count * 8), [word(0x1b), word(8)].concat().repeat(count)].concat()
}

/// A Mach-O object with many sections, all of them with a bundle without entries.
#[must_use]
pub fn macho_of_sections(n: usize) -> Vec<u8> {
    let contents = bundle([], b"");
    let count = n / (80 + contents.len());
    let size = 72 + 80 * count;
    let mut bytes = macho(1, size);
    let start = bytes.len() + size;
    bytes.extend([0x19, size].map(word).concat());
    bytes.extend([0; 16]);
    let len = count * contents.len();
    bytes.extend([0, len, start, len].map(long).concat());
    bytes.extend([7, 7, count, 0].map(word).concat());
    for i in 0..count {
        bytes.extend(b"__hip_fatbin\0\0\0\0__HIP\0\0\0\0\0\0\0\0\0\0\0");
        let at = i * contents.len();
        bytes.extend([at, contents.len()].map(long).concat());
        bytes.extend([start + at, 0, 0, 0, 0, 0, 0, 0].map(word).concat());
    }
    (0..count).for_each(|_| bytes.extend(&contents));
    bytes
}

/// A universal file of many slices without contents.
#[must_use]
pub fn universal_of_slices(n: usize) -> Vec<u8> {
    let count = n / 20;
    let big = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = [0xcafe_babe, count].map(big).concat();
    let end = 8 + 20 * count;
    for i in 0..count {
        bytes.extend([0x0100_0007, i, end, 0, 0].map(big).concat());
    }
    bytes
}

/// A WebAssembly module of custom sections, each with a bundle of two images.
#[must_use]
pub fn wasm_of_sections(n: usize) -> Vec<u8> {
    let contents = [b"\x0b.hip_fatbin".to_vec(), two()].concat();
    let [low, high] = half(contents.len());
    let head = [0, low & 0x7f | 0x80, low >> 7 | high << 1];
    let one = [&head[..], &contents].concat();
    [b"\0asm\x01\0\0\0".to_vec(), one.repeat(n / one.len())].concat()
}
