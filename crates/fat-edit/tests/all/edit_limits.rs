//! Files that take too much time or memory in an editor that visits every pair of two things: each file has tens of
//! thousands of both.

use crate::editing::{code, images, plan_with};
use fat_edit::{EditNote, EditOptions, Error};
use samples::bundle::{GFX90A, GFX906, bundle};
use samples::elf::{Header, NOBITS, NOTE, PROGBITS, RELA, STRTAB, SYMTAB, Segment, names, placed};
use samples::linked::{DYN, EXEC};

const OBJECT: u16 = 1;
const DYNAMIC: u32 = 6;

const WRITE: u64 = 1;
const ALLOC: u64 = 2;

const LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;

const READ: u32 = 4;
const READ_WRITE: u32 = 6;

const MANY: usize = 20_000;

/// A part of the file loaded to the address that is its offset.
fn load(flags: u32, start: u64, end: u64) -> Segment {
    Segment { kind: LOAD, flags, start, end, base: 0 }
}

/// A bundle of two images.
fn two(seed: u32, size: u32) -> Vec<u8> {
    let (first, second) = (code(seed, size), code(seed + 1, size));
    bundle(&[(GFX906, &first), (GFX90A, &second)], 1)
}

fn wrapper(bundle: u64) -> Vec<u8> {
    [&0x4849_5046_u32.to_le_bytes()[..], &[1, 0, 0, 0], &bundle.to_le_bytes(), &[0; 8]].concat()
}

/// Removes every image for gfx906.
fn thin(file: &[u8]) -> Result<(Vec<u8>, Vec<EditNote>), Error> {
    let thin = plan_with(file, EditOptions::default(), &[], |contents, edit| {
        for image in contents.images().iter().filter(|image| image.target().id() == "gfx906") {
            edit.remove(image.index());
        }
    });
    thin.map(|(plan, file)| (file, plan.notes().to_vec()))
}

fn padded(body: &mut Vec<u8>, to: usize) -> u64 {
    body.resize(body.len().next_multiple_of(to), 0);
    body.len() as u64
}

#[test]
fn pointers_to_any_bundle_are_refused_in_bounded_time() {
    let (names, [fatbin, wrappers]) = names([".hip_fatbin", ".hipFatBinSegment"]);
    let mut body = vec![0; 4096];
    for _ in 0..MANY {
        body.extend(two(1, 4));
    }
    let fatbin_end = body.len() as u64;
    let wrappers_at = padded(&mut body, 4096);
    // Nothing relocates them in a file that has to be.
    (0..MANY).for_each(|_| body.extend(wrapper(1)));
    let end = body.len() as u64;
    let section = |name, flags, start: u64, end: u64| Header {
        name,
        kind: PROGBITS,
        flags,
        address: start,
        offset: start,
        size: end - start,
        align: 8,
        ..Header::default()
    };
    let sections = [
        section(fatbin, ALLOC, 4096, fatbin_end),
        section(wrappers, ALLOC | WRITE, wrappers_at, end),
    ];
    let segments = [load(READ, 0, fatbin_end), load(READ_WRITE, wrappers_at, end)];
    let file = placed(DYN, &segments, &sections, &names, body);
    let options = EditOptions::default().with_grow(true).with_any_image(true);
    let image = code(3, 10_000);
    let error = plan_with(&file, options, &[&image], |_, edit| edit.replace(0, 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "bundle 0 must move, but the relocation at {:#x} has the unknown type 0",
            wrappers_at + 8
        )
    );
}

#[test]
fn notes_that_each_move_the_next_are_placed_in_bounded_time() {
    let (names, [fatbin, note]) = names([".hip_fatbin", ".note"]);
    // The program headers fill the first page.
    let mut body = vec![0; 4096];
    let notes_at = body.len() as u64;
    body.extend(code(5, MANY as u32));
    let fatbin_at = padded(&mut body, 4096) + 4096;
    body.resize(fatbin_at as usize, 0);
    body.extend(two(1, 20_000));
    let fatbin_end = body.len() as u64;
    let end = padded(&mut body, 16) + 16;
    body.resize(end as usize, 7);
    let section = |name, kind, start: u64, end: u64| Header {
        name,
        kind,
        flags: ALLOC,
        address: start,
        offset: start,
        size: end - start,
        align: 1,
        ..Header::default()
    };
    let mut sections: Vec<_> =
        (notes_at..).take(MANY).map(|at| section(note, NOTE, at, at + 1)).collect();
    sections.push(section(fatbin, PROGBITS, fatbin_at, fatbin_end));
    sections.push(section(0, PROGBITS, end - 16, end));
    let mut segments = vec![load(READ, 0, end)];
    while segments.len() < 72 {
        // A segment of an unknown type.
        segments.push(Segment { kind: 0x6000_0000, flags: READ, start: 0, end: 0, base: 0 });
    }
    let file = placed(DYN, &segments, &sections, &names, body);
    let (new, notes) = thin(&file).unwrap();
    assert_eq!(notes, []);
    assert_eq!(new.len(), file.len() - 4 * 4096);
    assert_eq!(images(&new), [(GFX90A.to_owned(), code(2, 20_000))]);
    // All of them are one program header further on.
    assert_eq!(new[4096 + 56..][..MANY], code(5, MANY as u32));
}

/// A program with two bundles, many wrappers, many sections of one long name, and a long dynamic section.
#[test]
fn many_sections_wrappers_and_tags_are_read_in_bounded_time() {
    let long = format!(".hip_fatbin{}", "x".repeat(1 << 20));
    let (names, [fatbin, wrappers, dynamic, long]) =
        names([".hip_fatbin", ".hipFatBinSegment", ".dynamic", &long]);
    let mut body = vec![0; 4096];
    body.extend(two(1, 20_000));
    let second = padded(&mut body, 4096);
    body.extend(two(3, 20_000));
    let fatbin_end = body.len() as u64;
    let wrappers_at = padded(&mut body, 4096);
    (0..MANY).for_each(|n| body.extend(wrapper([4096, second][n % 2])));
    let wrappers_end = body.len() as u64;
    (0..MANY).for_each(|_| body.extend([3, fatbin_end + 1].map(u64::to_le_bytes).concat()));
    let end = body.len() as u64;
    let section = |name, kind, flags, start: u64, end: u64| Header {
        name,
        kind,
        flags,
        address: start,
        offset: start,
        size: end - start,
        align: 8,
        ..Header::default()
    };
    let mut sections = vec![
        section(fatbin, PROGBITS, ALLOC, 4096, fatbin_end),
        section(wrappers, PROGBITS, ALLOC | WRITE, wrappers_at, wrappers_end),
        section(dynamic, DYNAMIC, ALLOC | WRITE, wrappers_end, end),
    ];
    sections.resize(MANY, Header { name: long, kind: NOBITS, ..Header::default() });
    let segments = [
        load(READ, 0, fatbin_end),
        load(READ_WRITE, wrappers_at, end),
        Segment { kind: PT_DYNAMIC, flags: READ_WRITE, start: wrappers_end, end, base: 0 },
    ];
    let file = placed(EXEC, &segments, &sections, &names, body);
    let (new, _) = thin(&file).unwrap();
    let kept = [2, 4].map(|seed| (GFX90A.to_owned(), code(seed, 20_000)));
    assert_eq!(images(&new), kept);
    assert!(new.len() < file.len() - 36_000);
}

#[test]
fn sections_of_the_whole_file_are_refused() {
    let (names, [fatbin]) = names([".hip_fatbin"]);
    let mut body = vec![0; 4096];
    body.extend(two(1, 500_000));
    let end = body.len() as u64;
    let section = Header {
        name: fatbin,
        kind: PROGBITS,
        flags: ALLOC,
        address: 4096,
        offset: 4096,
        size: end - 4096,
        align: 8,
        ..Header::default()
    };
    let mut sections = vec![section];
    sections.resize(MANY, Header { kind: SYMTAB, offset: 0, size: end, ..Header::default() });
    let file = placed(DYN, &[load(READ, 0, end)], &sections, &names, body);
    let error = thin(&file).unwrap_err();
    assert_eq!(error.to_string(), "inconsistent program headers: sections share bytes");
}

#[test]
fn objects_of_many_sections_are_edited_in_bounded_time() {
    let (names, ids) = names([
        "__CLANG_OFFLOAD_BUNDLE__hipv4-amdgcn-amd-amdhsa--gfx906",
        "__CLANG_OFFLOAD_BUNDLE__hipv4-amdgcn-amd-amdhsa--gfx90a",
    ]);
    let mut body = vec![0; 64];
    let mut sections = Vec::new();
    for n in 0..MANY {
        let (name, offset) = (ids[n % 2], body.len() as u64);
        sections.push(Header { name, kind: PROGBITS, offset, size: 1, ..Header::default() });
        body.push(n as u8 | 1);
        // All in one place, and of the kinds that others refer to.
        let name = if n % 4 == 0 { ids[0] } else { 0 };
        let kind = [PROGBITS, STRTAB, SYMTAB][n % 3];
        sections.push(Header { name, kind, offset: 64, ..Header::default() });
    }
    let file = placed(OBJECT, &[], &sections, &names, body);
    let (new, _) = thin(&file).unwrap();
    let left = images(&new);
    assert_eq!(left.len(), MANY / 2);
    assert!(
        left.iter().zip(0..).all(|((id, code), n)| id == GFX90A && *code == [(2 * n) as u8 + 1])
    );
}

#[test]
fn objects_of_many_bundles_and_symbols_are_edited_in_bounded_time() {
    let (names, [fatbin, _]) = names([".hip_fatbin", ""]);
    let mut body = vec![0; 64];
    let mut sections = Vec::new();
    let (mut symbols, mut relocations) = (vec![0; 24], Vec::new());
    let many = MANY as u64 / 2;
    let symbol = |section: u64, value: u64, size: u64| {
        [&[0, 0, 0, 0, 1, 0][..], &(section as u16).to_le_bytes()]
            .into_iter()
            .chain([&value.to_le_bytes()[..], &size.to_le_bytes()])
            .collect::<Vec<_>>()
            .concat()
    };
    let two = two(1, 4);
    let size = two.len() as u64;
    // One section for each bundle, and one of as many bundles.
    for section in 1..=many {
        let offset = body.len() as u64;
        body.extend(&two);
        let (kind, align) = (PROGBITS, 1);
        sections.push(Header { name: fatbin, kind, offset, size, align, ..Header::default() });
        symbols.extend(symbol(section, 0, size));
    }
    let offset = body.len() as u64;
    let (kind, all) = (PROGBITS, size * many);
    sections.push(Header { name: fatbin, kind, offset, size: all, align: 1, ..Header::default() });
    for n in 0..many {
        body.extend(&two);
        symbols.extend(symbol(many + 1, n * size, size));
        let place = [n * 8, many << 32 | 1, n * size];
        relocations.extend(place.map(u64::to_le_bytes).concat());
    }
    let count = sections.len() as u32;
    let tables = [(SYMTAB, symbols, [0, 1]), (RELA, relocations, [count + 1, count + 3])];
    for (kind, table, [link, info]) in tables {
        let (offset, size) = (body.len() as u64, table.len() as u64);
        sections.push(Header { kind, offset, size, link, info, align: 8, ..Header::default() });
        body.extend(table);
    }
    let (offset, size) = (body.len() as u64, many * 8);
    sections.push(Header { kind: PROGBITS, offset, size, align: 8, ..Header::default() });
    body.resize(body.len() + size as usize, 0);
    let file = placed(OBJECT, &[], &sections, &names, body);
    let (new, _) = thin(&file).unwrap();
    let left = images(&new);
    assert_eq!(left.len(), 2 * many as usize);
    assert!(left.iter().all(|(id, image)| id == GFX90A && *image == code(2, 4)));
}

#[test]
fn coff_sections_with_many_definitions_are_edited_in_bounded_time() {
    let bundle = two(1, 500_000);
    let start = 20 + 40;
    let count = 2 * MANY as u32;
    let mut file = [0x8664_u16, 1].map(u16::to_le_bytes).concat();
    file.extend([0, start + bundle.len() as u32, count, 0].map(u32::to_le_bytes).concat());
    file.extend(b".hip_fat");
    file.extend([0, 0, bundle.len() as u32, start, 0, 0, 0, 0x40].map(u32::to_le_bytes).concat());
    file.extend(&bundle);
    for _ in 0..MANY {
        file.extend(b".hip_fat\0\0\0\0\x01\0\0\0\x03\x01");
        file.extend([bundle.len() as u32, 0, 7].map(u32::to_le_bytes).concat());
        file.extend([0; 6]);
    }
    file.extend(4_u32.to_le_bytes());
    let (new, _) = thin(&file).unwrap();
    assert_eq!(images(&new), [(GFX90A.to_owned(), code(2, 500_000))]);
}
