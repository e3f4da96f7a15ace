//! Linked ELF files made from the fuzzer's bytes, and what a loader and a runtime find in them after an edit.

use arbitrary::{Result, Unstructured};
use ccob::{Version, WriteOptions};
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};

use crate::edits;
use crate::fields::Fields;

use samples::fatbin::{Made, fatbin};
use samples::linked::{
    AARCH64, DYN, EXEC, Header, Linked, Loaded, Pointers, Style, X86_64, check_same_but,
};

const IDS: [&str; 4] = [
    "host-x86_64-unknown-linux-gnu-",
    "hipv4-amdgcn-amd-amdhsa--gfx906",
    "hipv4-amdgcn-amd-amdhsa--gfx90a",
    "hipv4-amdgcn-amd-amdhsa--gfx1100",
];

/// Makes a linked file, damages its headers if the fuzzer likes, and edits it.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok(linked) = linked(u) else { return };
    let file = linked.build();
    let before = registered(&file);
    let mut fields = fields(&file);
    let is_whole = fields.damage(u).unwrap_or(1) == 0;
    let damaged = fields.into_bytes();
    let seed = u.arbitrary().unwrap_or_default();
    edits::check_seeded(&damaged, seed, &|after| {
        if is_whole {
            check_same_but(&file, after, &[".rodata"]);
            check_around(&linked, &file, after);
            check_registered(&before, after);
        }
    });
}

fn linked(u: &mut Unstructured<'_>) -> Result<Linked> {
    let style = *u.choose(&[Style::First, Style::Third])?;
    let mut bundles = Vec::new();
    while bundles.len() < 4 && (bundles.is_empty() || u.arbitrary()?) {
        bundles.push(if u.ratio(1, 4)? { offload_binary(u)? } else { bundle(u)? });
    }
    let machine = *u.choose(&[X86_64, AARCH64])?;
    // As code for x86-64 refers to it.
    let is_referred_to = u.ratio(1, 4)? && machine == X86_64;
    let reference = if is_referred_to { Some(u.choose_index(bundles.len())?) } else { None };
    Ok(Linked {
        e_type: *u.choose(&[EXEC, DYN])?,
        machine,
        page: *u.choose(&[4096, 4096, 0x10000])?,
        pointers: *u.choose(&[
            Pointers::Rela,
            Pointers::Relr,
            Pointers::Symbols,
            Pointers::Plain,
        ])?,
        relocation: if u.ratio(1, 8)? { Some(u.int_in_range(0..=40)?) } else { None },
        interpreter: u.arbitrary()?,
        after: u.arbitrary()?,
        hash: *u.choose(&[72, 600, 6000])?,
        dynamic: u.ratio(7, 8)?,
        note: u.ratio(7, 8)?,
        free_headers: u.int_in_range(0..=2)?,
        symbols: u.arbitrary()?,
        reference,
        rodata: if u.ratio(1, 4)? { Some(beside(u)?) } else { None },
        loaded_headers: *u.choose(&[None, None, Some(0), Some(300)])?,
        ..Linked::new(style, bundles)
    })
}

/// The bytes around fatbinaries in a section of other data.
const AROUND: [u8; 24] = [0xa5; 24];

/// Returns other data with fatbinaries in it.
fn beside(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut data = if u.arbitrary()? { AROUND.to_vec() } else { Vec::new() };
    for _ in 0..u.int_in_range(1..=3)? {
        let mut entries = Vec::new();
        for sm in [75, 80, 90] {
            if entries.is_empty() || u.arbitrary()? {
                let size = *u.choose(&[8, 100, 5000])?;
                entries.push(Made::cubin(sm, &vec![u.int_in_range(1..=255)?; size]));
            }
        }
        data.extend(fatbin(&entries));
        data.extend(AROUND);
    }
    Ok(data)
}

/// Checks that what is beside fatbinaries in a section of other data is as it was.
fn check_around(linked: &Linked, before: &[u8], after: &[u8]) {
    let contents = |file| {
        let loaded = Loaded::new(file);
        loaded.contents(&loaded.section(".rodata")).to_vec()
    };
    let (before, after) = (contents(before), contents(after));
    if linked.rodata.is_none() {
        assert!(before == after);
    }
    let is_around = |bytes: &[u8]| bytes == AROUND;
    for (before, after) in before.windows(AROUND.len()).zip(after.windows(AROUND.len())) {
        assert!(!is_around(before) || is_around(after));
    }
}

/// Returns a bundle of pages, or one that is not aligned, or a compressed one.
fn bundle(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let align = *u.choose(&[4096, 4096, 4096, 1])?;
    let mut payloads = Vec::new();
    for id in IDS {
        let size = match u.int_in_range(0..=4)? {
            0 => continue,
            1 => 0,
            2 => u.int_in_range(1..=100)?,
            3 => u.int_in_range(4080..=4110)?,
            _ => u.int_in_range(4000..=14000)?,
        };
        let byte: u8 = u.arbitrary()?;
        payloads.push((id, (0..size).map(|at| byte.wrapping_add((at / 7) as u8) | 1).collect()));
    }
    let sizes = payloads.iter().map(|(id, payload): &(_, Vec<u8>)| (*id, payload.len() as u64));
    let layout = bundle_format::layout(sizes, align).expect("is small");
    let payloads: Vec<&[u8]> = payloads.iter().map(|(_, payload)| &payload[..]).collect();
    let bytes = layout.to_vec(&payloads).expect("as laid out");
    if u.ratio(1, 4)? {
        let version = *u.choose(&[Version::V2, Version::V3])?;
        return Ok(ccob::compress(&bytes, &WriteOptions::default().with_version(version))
            .expect("is small"));
    }
    Ok(bytes)
}

/// Returns an offload binary of HIP, or of version 1 one for each image.
fn offload_binary(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let version = *u.choose(&[FormatVersion::V1, FormatVersion::V2, FormatVersion::V3])?;
    let mut images = Vec::new();
    for arch in ["gfx906", "gfx90a", "gfx1100"] {
        if images.is_empty() || u.arbitrary()? {
            let size = u.int_in_range(1..=9000)?;
            let byte: u8 = u.arbitrary()?;
            images
                .push((arch, (0..size).map(|at| byte.wrapping_add((at / 7) as u8) | 1).collect()));
        }
    }
    let entry = |(arch, image): &(&'static str, Vec<u8>)| {
        ImageEntry::new(image.len() as u64)
            .with_offload_kind(OffloadKind::HIP)
            .with_string("triple", "amdgpu9.0a-amd-amdhsa")
            .with_string("arch", *arch)
    };
    let entries: Vec<_> = images.iter().map(entry).collect();
    let images: Vec<&[u8]> = images.iter().map(|(_, image)| &image[..]).collect();
    let layout = offload_binary::layout(version, &entries).expect("is small");
    let plain = layout.to_vec(&images).expect("as laid out");
    if version == FormatVersion::V3 && u.arbitrary()? {
        Ok(fat_edit::compress_offload_binary(&plain, &WriteOptions::default()).expect("sound"))
    } else {
        Ok(plain)
    }
}

/// Returns all numbers of the headers, the dynamic section, relocations, symbols and wrappers.
fn fields(file: &[u8]) -> Fields {
    let loaded = Loaded::new(file);
    let mut fields = Fields::of(file.to_vec());
    let mut marks = vec![(16, 2), (18, 2), (24, 8), (32, 8), (40, 8)];
    marks.extend((52..64).step_by(2).map(|at| (at, 2)));
    let segments = loaded.long(32) as usize;
    for at in (0..usize::from(loaded.half(56))).map(|n| segments + 56 * n) {
        marks.extend([(at, 4), (at + 4, 4)]);
        marks.extend((at + 8..at + 56).step_by(8).map(|at| (at, 8)));
    }
    let sections = loaded.long(40) as usize;
    for at in (0..usize::from(loaded.half(60))).map(|n| sections + 64 * n) {
        marks.extend([(at, 4), (at + 4, 4), (at + 40, 4), (at + 44, 4)]);
        marks.extend([8, 16, 24, 32, 48, 56].map(|field| (at + field, 8)));
    }
    let tables = [".dynamic", ".rela.dyn", ".relr.dyn", ".dynsym", ".symtab", ".hipFatBinSegment"];
    for section in loaded.sections().iter().filter(|s| tables.contains(&s.name.as_str())) {
        let range = section.offset as usize..(section.offset + section.size) as usize;
        marks.extend(range.step_by(8).map(|at| (at, 8)));
    }
    for (at, width) in marks {
        fields.mark(at, width);
    }
    fields
}

/// Returns the targets of the wrappers, if each points to device code.
fn registered(file: &[u8]) -> Option<Vec<u64>> {
    let loaded = Loaded::new(file);
    let pointers = loaded.registered();
    pointers.iter().all(|&pointer| section_at(&loaded, pointer).is_some()).then_some(pointers)
}

fn section_at(loaded: &Loaded, address: u64) -> Option<Header> {
    let sections = loaded.sections().into_iter().filter(|section| section.name == ".hip_fatbin");
    sections.into_iter().find(|s| (s.address..s.address + s.size).contains(&address))
}

/// Checks that the wrappers point to bundles that can be read from memory, in the same order as before.
fn check_registered(before: &Option<Vec<u64>>, file: &[u8]) {
    let Some(before) = before else { return };
    let loaded = Loaded::new(file);
    let after = loaded.registered();
    assert_eq!(after.len(), before.len());
    for &address in &after {
        let section = section_at(&loaded, address).expect("leads to device code");
        let size = section.address + section.size - address;
        let memory = loaded.read(address, size).expect("is in memory");
        let magics = [&b"__CLANG_OFFLOAD_BUNDLE__"[..], b"CCOB", &offload_binary::MAGIC];
        assert!(magics.iter().any(|magic| memory.starts_with(magic)));
    }
    let is_sorted = |list: &[u64]| list.windows(2).all(|pair| pair[0] < pair[1]);
    assert_eq!(is_sorted(&after), is_sorted(before));
}
