//! Bundles in the object form: added to objects, found, taken off again, and removed from what is damaged.

use std::borrow::Cow;
use std::io::{self, Cursor};

use crate::bundling::{self, GFX90A, GFX906, HOST, Images, add, coff, entries, there_and_back};
use fat_edit::{HOST_PLACEHOLDER, object_bundle, remove_bundle_sections};
use fat_object::{FileFormat, Options, walk};
use object::{Object, ObjectSection, ObjectSymbol};
use object_edit::ErrorKind;
use samples::elf::*;
use samples::example;

/// Name, contents, flags, alignment and relocations of every section.
fn sections(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    let line = |section: object::Section<'_, '_>| {
        format!(
            "{} {:?} {} {:?} {:?}",
            section.name().unwrap(),
            section.flags(),
            section.align(),
            section.relocations().collect::<Vec<_>>(),
            section.data().unwrap(),
        )
    };
    file.sections().map(line).collect()
}

/// Name of every symbol and of its section.
fn symbols(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    let line = |symbol: object::Symbol<'_, '_>| {
        let index = symbol.section_index();
        let section = index.map(|index| file.section_by_index(index).unwrap());
        let section = section.map(|section| section.name().unwrap().to_owned());
        format!("{:?} {section:?} {:#x} {:?}", symbol.name(), symbol.address(), symbol.scope())
    };
    file.symbols().map(line).collect()
}

const OBJECTS: [&str; 4] = ["host.o", "hip.o", "hip-packager.o", "hip.obj"];

#[test]
fn sections_are_added_to_and_removed_from_real_objects() {
    for name in OBJECTS {
        let object = example(name);
        there_and_back(&object);
        let added = add(&object, &entries());
        let (old, new) = (sections(&object), sections(&added));
        let names = new[old.len()..].iter().map(|line| line.split(' ').next().unwrap());
        let expected = [HOST, GFX906, GFX90A].map(|id| format!("__CLANG_OFFLOAD_BUNDLE__{id}"));
        assert_eq!(names.collect::<Vec<_>>(), expected, "{name}");
        // The table of names grows where it is a section, in ELF.
        for (before, after) in old.iter().zip(&new) {
            assert!(after == before || before.starts_with(".strtab"), "{name}: {before} {after}");
        }
        assert_eq!(symbols(&object), symbols(&added), "{name}");
    }
}

#[test]
fn the_walker_finds_what_was_added() {
    for name in ["host.o", "cpu.obj"] {
        let object = if name == "host.o" { example(name) } else { coff() };
        let added = add(&object, &[(HOST, HOST_PLACEHOLDER), (GFX906, b"image"), (GFX90A, b"x")]);
        let mut images = Images::default();
        walk(&mut Cursor::new(&added), &Options::default(), &mut images).unwrap();
        let found = images.0.iter().map(|(id, _, bytes)| (&**id, &**bytes)).collect::<Vec<_>>();
        assert_eq!(found, [(HOST, HOST_PLACEHOLDER), (GFX906, b"image"), (GFX90A, b"x")]);
        assert_eq!(images.0[0].1, Some(FileFormat::HostPlaceholder), "{name}");
    }
}

#[test]
fn elf_sections_are_those_of_the_bundler() {
    for object in [example("host.o"), elf(false, false).build(), elf(true, true).build()] {
        let added = add(&object, &entries());
        let file = object::File::parse(&*added).unwrap();
        let new = file.sections().filter(|s| s.name().unwrap().starts_with("__CLANG_"));
        let mut count = 0;
        for section in new {
            let object::SectionFlags::Elf { sh_type, sh_flags, .. } = section.flags() else {
                panic!()
            };
            assert_eq!((sh_type.0, sh_flags.0, section.align()), (1, 0x8000_0000, 1));
            count += 1;
        }
        assert_eq!(count, 3);
        // Every byte but the place of the section headers and their number.
        let header = if added[4] == 1 { 52 } else { 64 };
        assert!(added[header..object.len()] == object[header..]);
    }
}

#[test]
fn coff_sections_are_those_of_the_bundler() {
    let object = coff();
    let added = add(&object, &entries());
    // VirtualSize, VirtualAddress, SizeOfRawData, PointerToRawData and Characteristics of the three.
    let contents_at = (object.len() - 18 * 3 - 4 - 13 + 3 * 40) as u32;
    for (number, expected) in [
        [1, 0, 1, contents_at, 0x4000_0800],
        [11, 1, 11, contents_at + 1, 0x4000_0800],
        [0, 12, 0, 0, 0x4000_0800],
    ]
    .iter()
    .enumerate()
    {
        let header = &added[20 + (2 + number) * 40..][..40];
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!([8, 12, 16, 20, 36].map(word), *expected, "{number}");
    }
}

#[test]
fn removing_restores_every_form_of_elf() {
    for mut form in all_elf() {
        for (extended, table_first, trailing) in [
            (false, false, &b""[..]),
            (true, false, b""),
            (false, true, b""),
            (true, true, b"signature"),
            (false, false, &[0; 100]),
        ] {
            (form.extended, form.table_first) = (extended, table_first);
            form.trailing = trailing.to_vec();
            there_and_back(&form.build());
        }
    }
}

#[test]
fn sections_may_exceed_the_count_in_the_elf_header() {
    let mut form = elf(true, false);
    form.sections = vec![progbits(".data", b""); 0xfefa];
    for _ in 0..4 {
        let object = form.build();
        let added = add(&object, &entries()[..2]);
        let file = object::File::parse(&*added).unwrap();
        assert_eq!(file.sections().count(), form.sections.len() + 3);
        assert!(*remove_bundle_sections(&added).unwrap() == *object);
        form.sections.push(progbits(".data", b""));
    }
}

/// `core` is a memory dump.
#[test]
fn other_types_of_elf_are_refused() {
    let mut object = elf(true, false).build();
    for found in [0, 4, 5, 0xfe00] {
        object[16..18].copy_from_slice(&u16::to_le_bytes(found));
        let error = format!(
            "cannot change sections: the ELF file is of type {found}, which does not qualify"
        );
        assert_eq!(object_bundle(&object, &[(HOST, 1)]).unwrap_err().to_string(), error);
        assert_eq!(remove_bundle_sections(&object).unwrap_err().to_string(), error);
    }
}

#[test]
fn linked_files_stay_where_they_are() {
    let library = example("hip-two-units.so");
    there_and_back(&library);
    let added = add(&library, &entries());
    // Every byte but the place of the section headers and their number.
    assert!(added[..0x28] == library[..0x28]);
    assert!(added[0x30..0x3c] == library[0x30..0x3c]);
    assert!(added[0x3e..library.len()] == library[0x3e..]);
}

/// A linked file: section 1 is in the segment, a bundle section is in it as well, another one after it.
fn linked(form: Elf) -> Vec<u8> {
    let mut form = form;
    let (header_len, entry_len) = if form.wide { (64, 56) } else { (52, 32) };
    form.table_first = false;
    let fill = if form.wide { 8 } else { 4 };
    form.sections = vec![
        progbits(".phdr", &vec![0; entry_len]),
        progbits(".text", b"code code code !"),
        progbits("__CLANG_OFFLOAD_BUNDLE__inside", b"inside!!"),
        progbits("__CLANG_OFFLOAD_BUNDLE__outside", b"outside."),
        progbits(".comment", &vec![b'c'; fill]),
    ];
    let mut object = form.build();
    let order = |n: u64| if form.wide { form.long(n) } else { form.word(n as u32) };
    // As the builder aligns nothing, contents follow each other from the end of the header.
    let end = header_len + entry_len + 24;
    let numbers = if form.wide {
        [form.word(1), form.word(5), order(0), order(0), order(0), order(end as u64)].concat()
    } else {
        [1, 0, 0, 0, end as u32].iter().flat_map(|&n| form.word(n)).collect()
    };
    object[header_len..header_len + numbers.len()].copy_from_slice(&numbers);
    let half = |object: &mut [u8], at: usize, n: u16| {
        object[at..at + 2].copy_from_slice(&form.half(n));
    };
    half(&mut object, 16, 2); // ET_EXEC
    let (phoff, phentsize) = if form.wide { (32, 54) } else { (28, 42) };
    let place = order(header_len as u64);
    object[phoff..phoff + place.len()].copy_from_slice(&place);
    half(&mut object, phentsize, entry_len as u16);
    half(&mut object, phentsize + 2, 1);
    object
}

#[test]
fn sections_outside_of_segments_move_and_others_do_not() {
    for form in all_elf() {
        let object = linked(form);
        there_and_back_with_others(&object);
        let rest = remove_bundle_sections(&object).unwrap();
        let file = object::File::parse(&*rest).unwrap();
        let header_len = if object[4] == 2 { 64 } else { 52 };
        let entry_len = if object[4] == 2 { 56 } else { 32 };
        let places =
            file.sections().filter_map(|s| Some((s.name().ok()?.to_owned(), s.file_range()?)));
        let places = places.collect::<std::collections::BTreeMap<_, _>>();
        assert_eq!(places[".text"], (header_len + entry_len, 16));
        // The bytes of what was loaded stay loaded.
        let end = header_len + entry_len + 24;
        assert!(rest[end as usize - 8..end as usize] == *b"inside!!");
        assert_eq!(places[".comment"].0, end);
        assert_eq!(places.len(), 4, "{places:?}");
    }
}

/// Adds to an object that has such sections already.
fn there_and_back_with_others(object: &[u8]) {
    let without = remove_bundle_sections(object).unwrap().into_owned();
    assert!(*remove_bundle_sections(&add(object, &entries())).unwrap() == *without);
    there_and_back(&without);
}

#[test]
fn removing_restores_every_form_of_coff() {
    let object = coff();
    there_and_back(&object);
    there_and_back(&[&object[..], b"trailing"].concat());
    // No string table; one without strings, whose size some tools leave 0.
    let mut short = object[..112 + 54].to_vec();
    short[60..68].copy_from_slice(b".text\0\0\0");
    there_and_back(&short);
    for size in [0u32, 4] {
        there_and_back(&[&short[..], &size.to_le_bytes()].concat());
        there_and_back(&[&short[..], &size.to_le_bytes(), b"\0\0"].concat());
    }
    // No symbol table, and an empty one.
    let mut none = short[..112].to_vec();
    none[12..16].copy_from_slice(&[0; 4]);
    for at in [0u32, 112] {
        none[8..12].copy_from_slice(&at.to_le_bytes());
        there_and_back(&none);
        there_and_back(&[&none[..], b"abcd"].concat()[..112 + if at == 0 { 4 } else { 0 }]);
    }
    // Empty sections that point anywhere: into the headers, at ends, and far away.
    for at in [1u32, 99, 100, 101, 112, 166, 183, 184, 10_000, 0x7fff_ffff] {
        let mut empty = object.clone();
        empty[36..40].copy_from_slice(&[0; 4]);
        empty[40..44].copy_from_slice(&at.to_le_bytes());
        there_and_back(&empty);
    }
}

#[test]
fn objects_without_such_sections_stay() {
    for name in OBJECTS {
        let object = example(name);
        assert!(
            matches!(remove_bundle_sections(&object), Ok(Cow::Borrowed(bytes)) if bytes == object)
        );
    }
}

/// An ELF object with everything that numbers sections, and bundle sections among the others.
fn interleaved(form: Elf) -> Elf {
    let mut form = form;
    form.symbol_names = ["function", "object", "extra.data"].map(str::to_owned).to_vec();
    form.sections = [
        "__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-", // 1
        ".group",
        ".text",
        "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906", // 4
        ".rela.text",
        ".data",
        ".symtab",
        ".symtab_shndx",
    ]
    .map(|name| progbits(name, b"contents"))
    .to_vec();
    let symbols = [
        form.symbol("", 0, 0, 0),
        form.symbol("", 3, 4, 0), // of a section that goes
        form.symbol("", 3, 3, 0),
        form.symbol("function", 0x12, 3, 1),
        form.symbol("object", 0x11, 0xffff, 2), // its section is in .symtab_shndx
        form.symbol("extra.data", 0x11, 0xfff1, 3), // absolute
    ]
    .concat();
    let mut set = |index: usize, kind, contents, link, info| {
        let section = &mut form.sections[index - 1];
        (section.kind, section.contents) = (kind, contents);
        (section.link, section.info) = (link, info);
    };
    let base = elf(form.wide, form.big);
    set(2, GROUP, base.words(&[1, 3, 5]), 7, 3);
    set(5, RELA, base.rela(2), 7, 3);
    set(7, SYMTAB, symbols, 9, 3);
    set(8, SYMTAB_SHNDX, base.words(&[0, 0, 0, 0, 6, 0]), 7, 0);
    form
}

#[test]
fn section_numbers_follow() {
    for form in all_elf() {
        let form = interleaved(form);
        let object = form.build();
        let result = remove_bundle_sections(&object).unwrap();
        let file = object::File::parse(&*result).unwrap();
        let names = file.sections().map(|s| s.name().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(
            names,
            [".group", ".text", ".rela.text", ".data", ".symtab", ".symtab_shndx", ".strtab"]
        );
        let mut expected = symbols(&object);
        let gone = expected.iter_mut().find(|line| line.contains("__CLANG_")).unwrap();
        let mut found = symbols(&result);
        // The symbol of a removed section has no section.
        let index = found.iter().position(|line| line.contains("None 0x0")).unwrap();
        found.remove(index);
        gone.clear();
        expected.retain(|line| !line.is_empty());
        assert_eq!(found, expected);
        let data = |name: &str| file.section_by_name(name).unwrap().data().unwrap().to_vec();
        assert_eq!(data(".group"), form.words(&[1, 2, 3]));
        assert_eq!(data(".symtab_shndx"), form.words(&[0, 0, 0, 0, 4, 0]));
        assert_eq!(data(".rela.text"), form.rela(2));
        assert_eq!(data(".data"), b"contents");
        let relocated = file.section_by_name(".text").unwrap();
        assert_eq!(relocated.relocations().count(), 1);
        assert!(!data(".strtab").windows(9).any(|window| window == b"__CLANG_O"));
        // The table of names is sorted from the end: names that others end with are in those.
        assert!(data(".strtab").windows(11).any(|window| window == b"extra.data\0"));
        assert!(!data(".strtab").windows(7).any(|window| window == b"\0.data\0"));
        assert!(matches!(remove_bundle_sections(&result), Ok(Cow::Borrowed(_))));
        there_and_back(&result);
        // On top of such an object, what was added is taken off first.
        let added = add(&object, &entries());
        assert!(*remove_bundle_sections(&added).unwrap() == *result);
    }
}

fn refused(change: impl Fn(&mut Elf)) -> String {
    let mut form = interleaved(elf(true, false));
    change(&mut form);
    let error = remove_bundle_sections(&form.build()).unwrap_err().to_string();
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 150, "{message}");
    error
}

fn referenced(section: u64, by: u64) -> String {
    format!("cannot remove section {section} of the ELF object: section {by} refers to it")
}

#[test]
fn sections_in_use_are_not_removed() {
    let base = elf(true, false);
    let error = refused(|form| form.sections[4].info = 1);
    assert_eq!(error, referenced(1, 5));
    assert_eq!(
        error.to_string(),
        "cannot remove section 1 of the ELF object: section 5 refers to it"
    );
    assert_eq!(refused(|form| form.sections[5].link = 4), referenced(4, 6));
    let in_group = refused(|form| form.sections[1].contents = base.words(&[1, 3, 4]));
    assert_eq!(in_group, referenced(4, 2));
    // A relocation of the section symbol.
    assert_eq!(refused(|form| form.sections[4].contents = base.rela(1)), referenced(4, 5));
    // A symbol with a name.
    let named = refused(|form| {
        let symbol = form.symbol("function", 0x12, 4, 1);
        form.sections[6].contents[72..96].copy_from_slice(&symbol);
    });
    assert_eq!(named, referenced(4, 7));
    let far = refused(|form| form.sections[7].contents = base.words(&[0, 0, 0, 0, 4, 0]));
    assert_eq!(far, referenced(4, 8));
    let odd = refused(|form| form.sections[6].contents.truncate(100));
    assert!(odd.contains(" header field sh_size at "), "{odd}");
}

#[test]
fn coff_sections_in_use_are_not_removed_and_numbers_follow() {
    // Renamed, the sections are a bundle's.
    let mut object = coff();
    object.extend([0; 32]);
    let name = b"__CLANG_OFFLOAD_BUNDLE__x\0";
    let strings = 112 + 54;
    object[strings..strings + 4].copy_from_slice(&(4 + 26u32).to_le_bytes());
    object[strings + 4..strings + 30].copy_from_slice(name);
    let error = remove_bundle_sections(&object).unwrap_err().to_string();
    let by = "symbol table";
    assert_eq!(error, format!("cannot remove section 2 of the COFF object: {by} refers to it"));
    // The first instead, which the second one is associated with.
    object.copy_within(60..68, 20);
    object[60..68].copy_from_slice(b".text\0\0\0");
    object[112 + 12] = 0; // `first` is undefined now
    let error = remove_bundle_sections(&object).unwrap_err().to_string();
    assert_eq!(error, format!("cannot remove section 1 of the COFF object: {by} refers to it"));
    object[112 + 36 + 14] = 2;
    let result = remove_bundle_sections(&object).unwrap();
    let file = object::File::parse(&*result).unwrap();
    assert_eq!(file.sections().count(), 1);
    assert_eq!(file.section_by_name(".text").unwrap().data().unwrap(), b"second!");
    assert_eq!(
        symbols(&result)[1].split(' ').next_back(),
        symbols(&object)[1].split(' ').next_back()
    );
    assert!(symbols(&result)[1].contains("\".text\""));
}

#[test]
fn contents_must_match_the_layout() {
    let object = example("host.o");
    let bundle = object_bundle(&object, &[(HOST, 1), (GFX906, 100)]).unwrap();
    let inner = |error: io::Error| {
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        error.into_inner().unwrap().downcast::<object_edit::Error>().unwrap().to_string()
    };
    for (len, found) in [(99, 99), (101, 101), (5000, 101)] {
        let contents = [vec![0], vec![1; len]];
        let error = bundle.write_to(io::sink(), contents.iter().map(|c| &**c)).unwrap_err();
        assert_eq!(
            inner(error),
            format!("contents of new section 1 have {found} bytes, 100 were laid out")
        );
        let error = bundle.to_vec(&contents).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "contents of new section 1 have {found} bytes, 100 were laid out",
                found = len as u64
            )
        );
    }
    for count in [0, 1, 3, 9] {
        let mut contents = vec![vec![1; 100]; count];
        if let Some(first) = contents.first_mut() {
            first.truncate(1);
        }
        let error = bundle.to_vec(&contents).unwrap_err().to_string();
        assert_eq!(error, format!("contents for {count} new sections, 2 were laid out"));
        let error = bundle.write_to(io::sink(), contents.iter().map(|c| &**c)).unwrap_err();
        assert_eq!(
            inner(error),
            format!("contents for {found} new sections, 2 were laid out", found = count.min(3))
        );
    }
}

#[test]
fn impossible_layouts_are_refused() {
    let object = example("host.o");
    let error = object_bundle(&object, &[(HOST, 1), ("hip\0", 1)]).unwrap_err().to_string();
    assert_eq!(error, "bundle entry ID 1 has a zero byte at 3, which a section name cannot hold");
    for (object, sizes) in [
        (object, [u64::MAX, 1]),
        (elf(false, false).build(), [u64::from(u32::MAX), 1]),
        (coff(), [u64::from(u32::MAX) - 10, 1]),
        (coff(), [1 << 31, 1 << 31]),
    ] {
        let error = object_bundle(&object, &[(HOST, sizes[0]), (GFX906, sizes[1])]);
        assert_eq!(error.unwrap_err().host().unwrap().kind(), ErrorKind::Limit);
    }
    let many = vec![("x", 0); 0xff00];
    let error = object_bundle(&coff(), &many).unwrap_err().to_string();
    assert_eq!(error, "cannot add sections: the COFF object has 2 sections, the limit is 65279");
}

#[test]
fn other_files_are_refused() {
    for (name, error) in [
        ("hip.dll", "cannot change sections: PE image, only COFF objects qualify"),
        ("hip-macos.o", "cannot change sections: Mach-O objects are not edited"),
        ("hip-macos-universal.o", "cannot change sections: this is not possible in Mach-O"),
        ("libhip.a", "cannot change sections: this is not possible in archives"),
        ("hip.hipfb", "cannot change sections: this is not possible in files of unknown format"),
    ] {
        assert_eq!(
            object_bundle(&example(name), &[(HOST, 1)]).unwrap_err().to_string(),
            error,
            "{name}"
        );
        assert_eq!(
            remove_bundle_sections(&example(name)).unwrap_err().to_string(),
            error,
            "{name}"
        );
    }
}

#[test]
fn damaged_objects_cause_no_panic() {
    let mut samples = vec![add(&coff(), &entries())];
    for form in all_elf() {
        samples.push(add(&form.build(), &entries()));
        samples.push(linked(form.clone()));
        samples.push(interleaved(form).build());
    }
    for sample in samples {
        bundling::judge_damaged(&sample);
    }
}

#[test]
fn coff_relocations_in_the_headers_are_refused() {
    // The number of these relocations lies in the file header, which adding sections changes.
    let mut object = vec![0; 60];
    object[..4].copy_from_slice(&[0x64, 0x86, 1, 0]);
    object[44..48].copy_from_slice(&8_u32.to_le_bytes()); // PointerToRelocations
    object[52..54].fill(0xff); // NumberOfRelocations
    object[56..60].copy_from_slice(&0x0100_0000_u32.to_le_bytes()); // IMAGE_SCN_LNK_NRELOC_OVFL
    let error = "COFF relocation table of section 1 at 0x8..0x12 overlaps the section header table";
    assert_eq!(object_bundle(&object, &[(HOST, 1)]).unwrap_err().to_string(), error);
}
