//! Edits of COFF objects built by hand, with the plain header and the one of large objects.

use crate::bundling;
use crate::editing::{code, hip_binary, images, plan_with, remove};
use fat_edit::{CompressOptions, EditOptions};
use object::{Object, ObjectSection, ObjectSymbol};
use offload_binary::FormatVersion;
use samples::bundle::{GFX906, GFX1100, HOST, bundle};
use samples::damage::judge;

const AMD64: u16 = 0x8664;
const ARM64: u16 = 0xaa64;
const I386: u16 = 0x14c;
const ARMNT: u16 = 0x1c4;

const POINTERS: [usize; 3] = [8, 32, 56];

/// An object with three bundles in a section, three pointers to them in another one, and a third section.
#[derive(Clone)]
struct Coff {
    big: bool,
    machine: u16,
    /// Type of the relocations.
    kind: u16,
    width: usize,
    /// The pointers are to symbols of their own.
    symbols: bool,
    /// Sections have checksums.
    checksums: bool,
    bundles: [Vec<u8>; 3],
}

impl Coff {
    fn new(big: bool, machine: u16, kind: u16, width: usize, symbols: bool) -> Self {
        let bundles = [(1, 100), (2, 33), (3, 64)].map(|(seed, size)| {
            let (first, second) = (code(seed, size), code(seed + 10, 40));
            bundle(&[(HOST, b""), (GFX906, &first), (GFX1100, &second)], 16)
        });
        Coff { big, machine, kind, width, symbols, checksums: true, bundles }
    }

    fn starts(&self) -> [u64; 3] {
        let second = self.bundles[0].len().next_multiple_of(64);
        let third = (second + self.bundles[1].len()).next_multiple_of(64);
        [0, second as u64, third as u64]
    }

    fn build(&self) -> Vec<u8> {
        let starts = self.starts();
        let mut fatbin = Vec::new();
        for (start, bundle) in starts.iter().zip(&self.bundles) {
            fatbin.resize(*start as usize, 0);
            fatbin.extend(bundle);
        }
        let mut wrappers = b"HIPF".repeat(18);
        let mut relocations = Vec::new();
        // Symbols: two sections with an auxiliary one each, then those of the bundles.
        for (index, at) in POINTERS.into_iter().enumerate() {
            let (symbol, addend) =
                if self.symbols { (4 + index as u32, 0) } else { (0, starts[index]) };
            wrappers[at..at + self.width].copy_from_slice(&addend.to_le_bytes()[..self.width]);
            relocations.extend((at as u32).to_le_bytes());
            relocations.extend(symbol.to_le_bytes());
            relocations.extend(self.kind.to_le_bytes());
        }
        let contents = [fatbin, wrappers, b"others".to_vec()];

        let header_len = if self.big { 56 } else { 20 };
        let mut at = header_len + 3 * 40;
        let mut headers = Vec::new();
        let mut body = Vec::new();
        for (number, (name, align)) in
            [(b".hip_fat", 7_u32), (b".hipFatB", 4), (b".data\0\0\0", 1)].into_iter().enumerate()
        {
            let of_section = if number == 1 { &relocations[..] } else { &[] };
            let size = contents[number].len();
            let relocations_at = if of_section.is_empty() { 0 } else { at + size };
            headers.extend(name);
            headers.extend([0, 0, size as u32, at as u32].map(u32::to_le_bytes).concat());
            headers.extend([relocations_at as u32, 0].map(u32::to_le_bytes).concat());
            headers.extend([(of_section.len() / 10) as u16, 0].map(u16::to_le_bytes).concat());
            headers.extend((0x4000_0040 | align << 20).to_le_bytes());
            body.extend(&contents[number]);
            body.extend(of_section);
            at += size + of_section.len();
        }

        let mut symbols = Vec::new();
        let mut symbol = |name: &[u8], value: u64, section: u32, defined: Option<&[u8]>| {
            let (class, auxiliary) = if defined.is_some() { (3, 1) } else { (2, 0) };
            let mut entry = name.to_vec();
            entry.resize(8, 0);
            entry.extend((value as u32).to_le_bytes());
            entry.extend(&section.to_le_bytes()[..if self.big { 4 } else { 2 }]);
            entry.extend([0, 0, class, auxiliary]);
            symbols.extend(&entry);
            if let Some(contents) = defined {
                let mut definition = (contents.len() as u32).to_le_bytes().to_vec();
                definition.extend([0; 4]);
                let checksum = if self.checksums { crc(contents) } else { 0 };
                definition.extend(checksum.to_le_bytes());
                definition.resize(entry.len(), 0);
                symbols.extend(definition);
            }
        };
        symbol(b".hip_fat", 0, 1, Some(&contents[0]));
        symbol(b".hipFatB", 0, 2, Some(&contents[1]));
        for (name, value) in [&b"first"[..], b"second", b"third"].into_iter().zip(starts) {
            symbol(name, value, 1, None);
        }
        symbol(b"end", contents[0].len() as u64, 1, None);
        // As GNU's linker keeps them of sections that it put together.
        symbol(b".hip_fat", starts[1], 1, Some(&self.bundles[1]));
        symbol(b".hip_fat", starts[2], 1, Some(&self.bundles[2]));
        symbol(b".hipFatB", 24, 2, Some(&contents[1][24..48]));
        let count = (symbols.len() / if self.big { 20 } else { 18 }) as u32;

        let mut file = Vec::new();
        if self.big {
            file.extend([0, 0, 0xff, 0xff, 2, 0]);
            file.extend(self.machine.to_le_bytes());
            file.extend([0; 4]);
            file.extend(0xd1ba_a1c7_u32.to_le_bytes());
            file.extend([0xee, 0xba, 0xa9, 0x4b, 0xaf, 0x20, 0xfa, 0xf6, 0x6a, 0xa4, 0xdc, 0xb8]);
            file.extend([0; 16]);
            file.extend([3, at as u32, count].map(u32::to_le_bytes).concat());
        } else {
            file.extend([self.machine, 3].map(u16::to_le_bytes).concat());
            file.extend([0, at as u32, count, 0].map(u32::to_le_bytes).concat());
        }
        [file, headers, body, symbols, 4_u32.to_le_bytes().to_vec(), b"more".to_vec()].concat()
    }
}

/// CRC-32 as compilers write it, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

fn contents(file: &[u8], name: &str) -> Vec<u8> {
    let file = object::File::parse(file).unwrap();
    file.section_by_name(name).unwrap().data().unwrap().to_vec()
}

/// Returns the offsets in the section of the bundles that the pointers lead to.
fn pointed_to(file: &[u8], width: usize) -> Vec<u64> {
    let object = object::File::parse(file).unwrap();
    let wrappers = object.section_by_name(".hipFatB").unwrap();
    let data = wrappers.data().unwrap();
    let target = |(at, relocation): (u64, object::Relocation)| {
        let object::RelocationTarget::Symbol(symbol) = relocation.target() else { panic!() };
        let mut addend = [0; 8];
        addend[..width].copy_from_slice(&data[at as usize..][..width]);
        object.symbol_by_index(symbol).unwrap().address() + u64::from_le_bytes(addend)
    };
    wrappers.relocations().map(target).collect()
}

/// Size and checksum in the auxiliary symbols of the two sections.
fn definitions(file: &[u8], big: bool) -> [[u32; 2]; 2] {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (table, len) = if big { (word(48) as usize, 20) } else { (word(8) as usize, 18) };
    [1, 3].map(|number| [0, 8].map(|at| word(table + number * len + at)))
}

fn forms() -> Vec<Coff> {
    let mut forms = Vec::new();
    for (machine, kind, width) in [
        (AMD64, 1, 8),
        (AMD64, 2, 4),
        (AMD64, 3, 4),
        (AMD64, 11, 4),
        (ARM64, 14, 8),
        (ARM64, 1, 4),
        (I386, 6, 4),
        (I386, 7, 4),
        (ARMNT, 1, 4),
    ] {
        for (big, symbols) in [(false, false), (false, true), (true, false), (true, true)] {
            forms.push(Coff::new(big, machine, kind, width, symbols));
        }
    }
    forms
}

#[test]
fn pointers_and_checksums_follow_in_every_form() {
    for mut form in forms() {
        for checksums in [true, false] {
            form.checksums = checksums;
            let file = form.build();
            assert_eq!(pointed_to(&file, form.width), form.starts());
            let out = remove(&file, &[GFX906]).unwrap();
            // As if it had been built so.
            let mut expected = form.clone();
            for (seed, bundle) in (11..).zip(&mut expected.bundles) {
                *bundle = samples::bundle::bundle(&[(HOST, b""), (GFX1100, &code(seed, 40))], 16);
            }
            assert_eq!(pointed_to(&out, form.width), expected.starts());
            assert!(out == expected.build(), "{:x} {}", form.machine, form.kind);
            let lens = [".hip_fat", ".hipFatB"].map(|name| contents(&out, name));
            let checksum = |bytes: &[u8]| if checksums { crc(bytes) } else { 0 };
            let expected = lens.map(|bytes| [bytes.len() as u32, checksum(&bytes)]);
            assert_eq!(definitions(&out, form.big), expected);
        }
    }
}

#[test]
fn pointers_follow_offload_binaries() {
    let triple = "amdgpu9.06-amd-amdhsa";
    for mut form in forms() {
        let [mut before, mut after] = [Vec::new(), Vec::new()];
        for seed in [1, 2, 3] {
            let images = [code(seed, 70 * seed), code(seed + 10, 40)];
            let all = [(triple, "gfx906", &images[0][..]), (triple, "gfx90a", &images[1])];
            before.push(hip_binary(FormatVersion::V2, &all));
            after.push(hip_binary(FormatVersion::V2, &all[1..]));
        }
        form.bundles = before.try_into().unwrap();
        let (_, out) = plan_with(&form.build(), EditOptions::default(), &[], |_, edit| {
            [0, 2, 4].into_iter().for_each(|index| edit.remove(index));
        })
        .unwrap();
        let expected = Coff { bundles: after.try_into().unwrap(), ..form.clone() };
        assert!(out == expected.build(), "{:x} {}", form.machine, form.kind);
    }
}

#[test]
fn decompressing_restores_compressed_objects() {
    for mut form in forms() {
        form.bundles = [1, 2, 3].map(|seed| {
            let image = [code(seed, 700), vec![seed as u8; 3000]].concat();
            bundle(&[(HOST, b""), (GFX906, &image)], 64)
        });
        let file = form.build();
        let compress = |_: &_, edit: &mut fat_edit::Edit| edit.compress(CompressOptions::default());
        let decompress = |_: &_, edit: &mut fat_edit::Edit| edit.decompress();
        let (_, compressed) = plan_with(&file, EditOptions::default(), &[], compress).unwrap();
        assert!(compressed.len() < file.len());
        let fatbin = contents(&compressed, ".hip_fat");
        for start in pointed_to(&compressed, form.width) {
            assert!(fatbin[start as usize..].starts_with(b"CCOB"));
        }
        assert_eq!(definitions(&compressed, form.big)[0][1], crc(&fatbin));
        let (_, back) = plan_with(&compressed, EditOptions::default(), &[], decompress).unwrap();
        assert!(back == file);
    }
}

/// Allows new images that are not code objects.
fn any_image() -> EditOptions {
    EditOptions::default().with_any_image(true)
}

#[test]
fn checksums_of_new_images_are_omitted() {
    let file = Coff::new(false, AMD64, 1, 8, false).build();
    let replace = |_: &_, edit: &mut fat_edit::Edit| edit.replace(1, 0);
    let new = [&b"an image"[..]];
    let (_, out) = plan_with(&file, any_image(), &new, replace).unwrap();
    assert_eq!(images(&out)[1].1, new[0]);
    let fatbin = contents(&out, ".hip_fat");
    assert_eq!(definitions(&out, false)[0], [fatbin.len() as u32, 0]);
}

#[test]
fn references_that_cannot_be_adjusted_are_refused() {
    let refused = |form: &Coff| remove(&form.build(), &[GFX906]).unwrap_err();
    // IMAGE_REL_AMD64_REL32: fine for the symbol of a bundle, not for the symbol of the section.
    let by_symbols = Coff::new(false, AMD64, 4, 4, true);
    remove(&by_symbols.build(), &[GFX906]).unwrap();
    let error = refused(&Coff::new(false, AMD64, 4, 4, false));
    assert!(error.to_string().contains("has the unknown type 4"), "{error}");
    // To the inside of a bundle.
    let form = Coff::new(false, AMD64, 1, 8, false);
    let mut file = form.build();
    let wrappers = file.windows(4).position(|window| window == b"HIPF").unwrap();
    file[wrappers + POINTERS[1]] += 16;
    let error = remove(&file, &[GFX906]).unwrap_err();
    assert!(error.to_string().contains("bundle 1 must move, but"), "{error}");
    // At a place that the section does not have.
    let mut file = form.build();
    let relocations = wrappers + 72;
    file[relocations] = 65;
    let error = remove(&file, &[GFX906]).unwrap_err();
    let expected = "relocation 0 of section 2 applies to 0x41, outside of any contents";
    assert_eq!(error.to_string(), expected);
    // The pointer of 32 bits at the end is one of the other.
    let mut short = Coff::new(false, AMD64, 2, 4, false).build();
    short[relocations] = 68;
    let error = remove(&short, &[GFX906]).map(drop).err();
    assert!(error.is_none_or(|error| !error.to_string().contains("outside of any contents")));
}

#[test]
fn other_symbols_keep_their_values() {
    let out = remove(&Coff::new(false, AMD64, 1, 8, true).build(), &[GFX906]).unwrap();
    let object = object::File::parse(&*out).unwrap();
    let value = |name: &str| object.symbol_by_name(name).unwrap().address();
    assert_eq!(value("first"), 0);
    assert_eq!(value("end"), contents(&out, ".hip_fat").len() as u64);
}

#[test]
fn sections_of_a_bundle_are_changed_and_removed() {
    for big in [false, true] {
        let host = Coff::new(big, AMD64, 1, 8, false).build();
        let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a", "hip-x---y"];
        let entries: [(&str, &[u8]); 4] =
            [(HOST, &[0]), (ids[0], b"first"), (ids[1], b"second"), (ids[2], b"")];
        let file = bundling::add(&host, &entries);
        let edit = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
            for image in contents.images() {
                match image.id() {
                    Some(id) if id == ids[0] => edit.remove(image.index()),
                    Some(id) if id == ids[1] => edit.replace(image.index(), 0),
                    Some(id) if id == ids[2] => edit.replace(image.index(), 1),
                    Some(GFX906) => edit.remove(image.index()),
                    _ => {}
                }
            }
        };
        let new: [&[u8]; 2] = [b"a longer image than before", b"no longer empty"];
        let (_, out) = plan_with(&file, any_image(), &new, edit).unwrap();
        let left: Vec<_> = images(&out).into_iter().rev().map(|(_, bytes)| bytes).collect();
        assert_eq!(left[..3], [new[1], new[0], &[0]]);
        assert_eq!(pointed_to(&out, 8), pointed_to(&remove(&host, &[GFX906]).unwrap(), 8));
        let alone = fat_edit::remove_bundle_sections(&out).unwrap();
        assert_eq!(images(&alone), images(&remove(&host, &[GFX906]).unwrap()));
    }
}

#[test]
fn damaged_objects_cause_no_panic() {
    for big in [false, true] {
        judge(&Coff::new(big, AMD64, 1, 8, big).build(), oracles::edits::check);
    }
}
