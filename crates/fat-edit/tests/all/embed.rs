//! Packages added to real objects, to objects built here in every form of ELF and COFF, and to damaged ones.

use std::io::{self, Cursor, Read};

use fat_object::{Finding, Image, Options, Visitor, walk};
use object::{Object, ObjectSection, ObjectSymbol};
use object_edit::{ErrorKind, NewSections, embed};
use samples::damage::judge;
use samples::elf::{Elf, all_elf, elf, progbits};
use samples::example;

const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;

#[derive(Default)]
struct Images(Vec<(String, Vec<u8>)>);

impl Visitor for Images {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.0.push((image.target().to_string(), bytes));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        panic!("{finding}");
    }
}

fn images(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut images = Images::default();
    walk(&mut Cursor::new(bytes), &Options::default(), &mut images).unwrap();
    images.0
}

/// Name, contents, relocations, flags, alignment and address of every section, as another reader sees them.
fn sections(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    file.sections()
        .map(|section| {
            format!(
                "{} {:?} {:?} {} {:#x} {} {:?} {:?}",
                section.index(),
                section.name().unwrap(),
                section.flags(),
                section.align(),
                section.address(),
                section.size(),
                section.relocations().collect::<Vec<_>>(),
                section.data().unwrap(),
            )
        })
        .collect()
}

fn symbols(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    file.symbols().map(|symbol| format!("{:?} {symbol:?}", symbol.name().unwrap())).collect()
}

/// Embeds and compares before and after; returns the result.
fn check(object: &[u8], contents: &[u8]) -> Vec<u8> {
    let embedding = NewSections::offloading(object, contents.len() as u64).unwrap();
    let result = embed(object, contents).unwrap();
    let mut written = Vec::new();
    embedding.write_to(&mut written, [contents]).unwrap();
    assert!(written == result);
    assert_eq!(result.len() as u64, embedding.total_size());
    let range = embedding.contents_ranges().next().unwrap();
    assert_eq!(range.start % 8, 0);
    assert_eq!(result[range.start as usize..range.end as usize], *contents);

    let (old, mut new) = (sections(object), sections(&result));
    let last = new.pop().unwrap();
    assert!(last.contains("\".llvm.offloading\""), "{last}");
    // The table of section names grows where it is a section, in ELF.
    for (before, after) in old.iter().zip(&new) {
        if before != after {
            let (before, after) = (before.strip_suffix(']').unwrap(), after);
            let contents = |line: &str| line[line.rfind('[').unwrap()..].to_owned();
            assert!(before.contains("strtab"), "{before} {after}");
            assert!(contents(after).starts_with(&contents(before)));
        }
    }
    assert_eq!(old.len(), new.len());
    assert!(symbols(object) == symbols(&result));
    let file = object::File::parse(&*result).unwrap();
    let section = file.sections().last().unwrap();
    assert_eq!(section.file_range().unwrap().0, range.start);
    assert_eq!(section.align(), 8);
    assert_eq!(section.size(), (contents.len() as u64).next_multiple_of(8));
    assert!(section.data().unwrap()[contents.len()..].iter().all(|&b| b == 0));
    result
}

#[test]
fn real_objects_get_the_package_and_keep_the_rest() {
    let package = example("packages.offload");
    let added = images(&package);
    assert_eq!(added.len(), 5);
    for name in [
        "host.o",
        "hip.o",
        "hip-ccob-v3.o",
        "hip-packager.o",
        "openmp-packager.o",
        "merged-packager.o",
        "bundle.o",
        "cuda-fatbin.o",
        "hip.obj",
    ] {
        let object = example(name);
        let mut expected = images(&object);
        expected.extend(added.iter().cloned());
        let once = check(&object, &package);
        assert!(images(&once) == expected, "{name}");
        // Again: the name is there already, and nothing of the first time is left over.
        let twice = check(&once, &package);
        expected.extend(added.iter().cloned());
        assert!(images(&twice) == expected, "{name}");
        assert!(twice.len() - once.len() < package.len() + 64 + 16, "{name}");
        // The old table of names is left over where it is not at the end: the bytes that objcopy added follow.
        let left_over = if name == "bundle.o" { 0x242 } else { 0 };
        assert!(once.len() - object.len() < package.len() + 64 + 17 + 24 + left_over, "{name}");
        check(&object, b"");
        check(&object, b"1234567");
    }
}

#[test]
fn elf_contents_stay_at_their_offsets() {
    for name in ["host.o", "hip.o", "bundle.o"] {
        let object = example(name);
        let result = check(&object, &example("packages.offload"));
        let ranges = |bytes: &[u8]| {
            let file = object::File::parse(bytes).unwrap();
            let named = |section: &object::Section<'_, '_>| section.name() != Ok(".strtab");
            file.sections().filter(named).map(|s| s.file_range()).collect::<Vec<_>>()
        };
        let (old, new) = (ranges(&object), ranges(&result));
        assert_eq!(old, new[..new.len() - 1], "{name}");
    }
}

#[test]
fn other_files_are_refused() {
    for (name, error) in [
        (
            "hip-two-units.so",
            "cannot change sections: the ELF file is of type 3, which does not qualify",
        ),
        ("hip.dll", "cannot change sections: PE image, only COFF objects qualify"),
        ("hip-macos.o", "cannot change sections: Mach-O objects are not edited"),
        ("hip-macos-universal.o", "cannot change sections: this is not possible in Mach-O"),
        ("libhip.a", "cannot change sections: this is not possible in archives"),
        ("libhip-thin.a", "cannot change sections: this is not possible in archives"),
        ("hip-embedded.bc", "cannot change sections: this is not possible in LLVM bitcode"),
        ("hip.hipfb", "cannot change sections: this is not possible in files of unknown format"),
        (
            "packages.offload",
            "cannot change sections: this is not possible in files of unknown format",
        ),
        ("README.md", "cannot change sections: this is not possible in files of unknown format"),
    ] {
        assert_eq!(
            NewSections::offloading(&example(name), 8).unwrap_err().to_string(),
            error,
            "{name}"
        );
    }
    let empty = "cannot change sections: this is not possible in empty files";
    assert_eq!(NewSections::offloading(b"", 8).unwrap_err().to_string(), empty);
    // A short import object, as import libraries hold them, and an object of the Microsoft compiler's /GL.
    for head in [b"\0\0\xff\xff\0\0\x64\x86", b"\0\0\xff\xff\x01\0\x64\x86"] {
        let mut import = head.to_vec();
        import.resize(80, 0);
        let unknown = "cannot change sections: this is not possible in files of unknown format";
        assert_eq!(NewSections::offloading(&import, 8).unwrap_err().to_string(), unknown);
    }
}

#[test]
fn contents_must_be_as_long_as_laid_out() {
    let object = example("host.o");
    let embedding = NewSections::offloading(&object, 100).unwrap();
    for (contents, found) in [(vec![1; 99], 99), (vec![1; 101], 101), (vec![1; 5000], 101)] {
        let error = embedding.write_to(io::sink(), [&*contents]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let inner = error.into_inner().unwrap().downcast::<object_edit::Error>().unwrap();
        assert_eq!(
            inner.to_string(),
            format!("contents of new section 0 have {found} bytes, 100 were laid out")
        );
        let found = contents.len() as u64;
        let error = embedding.to_vec(&[&contents]).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("contents of new section 0 have {found} bytes, 100 were laid out")
        );
    }
}

#[test]
fn a_layout_needs_no_contents() {
    let host = example("host.o");
    let embedding = NewSections::offloading(&host, 1 << 50).unwrap();
    assert_eq!(
        embedding.contents_ranges().next().unwrap().end
            - embedding.contents_ranges().next().unwrap().start,
        1 << 50
    );
    assert_eq!(embedding.to_vec(&[b""]).unwrap_err().kind(), ErrorKind::Contents);
    let most = u64::MAX;
    assert_eq!(
        NewSections::offloading(&host, most).unwrap_err().to_string(),
        format!(
            "cannot lay out the object: {most:#x} does not fit an offset or size of ELF, the limit is {most:#x}"
        )
    );
    assert!(NewSections::offloading(&host, u64::MAX - 100).is_err());
    let elf32 = elf(false, false).build();
    let coff = example("hip.obj");
    for (object, format) in [(&elf32, "ELF"), (&coff, "COFF")] {
        for len in [u64::from(u32::MAX) - 100, u64::from(u32::MAX), 1 << 32, 1 << 60, u64::MAX] {
            let error = NewSections::offloading(object, len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit);
            let error = error.to_string();
            let value = error.strip_prefix("cannot lay out the object: 0x").unwrap();
            let rest =
                format!(" does not fit an offset or size of {format}, the limit is 0xffffffff");
            let value = u64::from_str_radix(value.strip_suffix(&rest).unwrap(), 16).unwrap();
            assert!(value > 0xffff_0000, "{value:#x}");
        }
        assert!(NewSections::offloading(object, (1 << 32) - 100_000).is_ok());
    }
}

fn elf_type_and_flags(bytes: &[u8]) -> (u32, u64) {
    let file = object::File::parse(bytes).unwrap();
    match file.sections().last().unwrap().flags() {
        object::SectionFlags::Elf { sh_type, sh_flags, .. } => (sh_type.0, sh_flags.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_class_and_byte_order_of_elf_is_supported() {
    for form in all_elf() {
        let object = form.build();
        let result = check(&object, b"contents of the section!");
        assert_eq!(elf_type_and_flags(&result), (SHT_LLVM_OFFLOADING, 0x8000_0000));
        // Header and .data; names and table are where they are in every such file: after everything else.
        let header_len = if form.wide { 64 } else { 52 };
        let start = result.windows(8).position(|w| w == b"contents").unwrap();
        assert_eq!(start, (header_len + 5usize).next_multiple_of(8));
        assert_eq!(result[header_len..header_len + 5], *b"DATA!");
        let names = result.windows(17).position(|w| w == b".llvm.offloading\0").unwrap();
        assert_eq!(result[names - 15..names], *b"\0.strtab\0.data\0");
    }
}

#[test]
fn existing_names_are_used() {
    for name in [".llvm.offloading", ".rela.llvm.offloading"] {
        for mut form in all_elf() {
            form.symbol_names = vec![name.to_owned()];
            let result = check(&form.build(), b"12345678");
            assert_eq!(result.windows(16).filter(|w| w == b".llvm.offloading").count(), 1);
        }
    }
}

#[test]
fn headers_elsewhere_and_trailing_bytes_stay() {
    for mut form in all_elf() {
        form.table_first = true;
        let object = form.build();
        let result = check(&object, b"12345678");
        // The old table is dead, but in the way.
        assert_eq!(
            result[64..object.len() - form.names().0.len()],
            object[64..object.len() - form.names().0.len()]
        );
        form.trailing = b"signature".to_vec();
        for table_first in [true, false] {
            form.table_first = table_first;
            let object = form.build();
            let result = check(&object, b"12345678");
            assert_eq!(result[64..object.len()], object[64..]);
        }
        form.trailing = vec![0; 100];
        let object = form.build();
        assert!(check(&object, b"12345678").len() < object.len());
    }
}

#[test]
fn numbers_may_exceed_the_elf_header() {
    for mut form in all_elf() {
        form.extended = true;
        check(&form.build(), b"12345678");
        form.extended = false;
        for count in [0xfefe, 0xfeff, 0xff00, 0x10000] {
            form.names_first = count % 2 == 0;
            form.sections.resize(count - 2, progbits(".data", b""));
            let object = form.build();
            let result = embed(&object, b"12345678").unwrap();
            let file = object::File::parse(&*result).unwrap();
            assert_eq!(file.sections().count(), count, "{count:#x}");
            assert_eq!(file.sections().last().unwrap().name(), Ok(".llvm.offloading"));
            let at = if form.wide { 60 } else { 48 };
            let small = count + 1 < 0xff00;
            assert_eq!(result[at..at + 2] != [0, 0], small, "{count:#x}");
        }
    }
}

fn elf_error(change: impl Fn(&mut Vec<u8>)) -> String {
    let mut object = elf(true, false).build();
    change(&mut object);
    NewSections::offloading(&object, 8).unwrap_err().to_string()
}

/// Offset of the section headers of `elf(true, false)`: header, 5 bytes, 15 of names, padding.
const TABLE: usize = 88;

#[test]
fn malformed_elf_headers_are_errors() {
    let field = |field, offset: u64, found: u64, expected| {
        format!("ELF header field {field} at {offset:#x} is {found:#x}, expected {expected}")
    };
    assert_eq!(elf_error(|o| o[4] = 3), field("e_ident[EI_CLASS]", 4, 3, "1 or 2"));
    assert_eq!(elf_error(|o| o[5] = 0), field("e_ident[EI_DATA]", 5, 0, "1 or 2"));
    for file_type in [0, 2, 3, 4] {
        let found = u16::from(file_type);
        assert_eq!(
            elf_error(|o| o[16] = file_type),
            format!(
                "cannot change sections: the ELF file is of type {found}, which does not qualify"
            )
        );
    }
    assert_eq!(
        elf_error(|o| o[40] = 0),
        "cannot change sections: the ELF object has no section header table"
    );
    assert_eq!(
        elf_error(|o| o[60] = 0),
        "cannot change sections: the ELF object has no section header table"
    ); // e_shnum and null's size
    assert_eq!(
        elf_error(|o| o[62] = 0),
        "cannot change sections: the ELF object has no table of section names"
    );
    assert_eq!(elf_error(|o| o[58] = 40), field("e_shentsize", 0, 40, "64 in a 64-bit file"));
    assert_eq!(elf_error(|o| o[62] = 3), field("e_shstrndx", 0, 3, "the index of a section"));
    assert_eq!(elf_error(|o| o[62] = 1), field("e_shstrndx", 0, 1, "the index of a string table"));
    let part = "section name table";
    let error = format!("ELF {part} that ends at 0x54 has no zero byte at its end");
    assert_eq!(elf_error(|o| o[83] = b'a'), error);
}

#[test]
fn elf_parts_beyond_the_end_are_refused() {
    let beyond = |part, start: u64, end: u64, available: u64| {
        format!(
            "ELF {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
        )
    };
    let whole = 280;
    assert_eq!(elf(true, false).build().len(), whole);
    let whole = whole as u64;
    assert_eq!(elf_error(|o| o.truncate(5)), beyond("file header", 0, 16, 5));
    assert_eq!(elf_error(|o| o.truncate(63)), beyond("file header", 0, 64, 63));
    assert_eq!(elf_error(|o| o.truncate(100)), beyond("section header table", 88, 152, 100));
    assert_eq!(elf_error(|o| o.truncate(279)), beyond("section header table", 88, 280, 279));
    assert_eq!(elf_error(|o| o[60] = 4), beyond("section header table", 88, 88 + 4 * 64, whole));
    assert_eq!(
        elf_error(|o| o[40..48].copy_from_slice(&[0xff; 8])),
        beyond("section header table", u64::MAX, u64::MAX, whole)
    );
    assert_eq!(
        elf_error(|o| {
            o[60] = 0;
            o[TABLE + 32..TABLE + 40].copy_from_slice(&[0xff; 8]);
        }),
        beyond("section header table", 88, u64::MAX, whole)
    );
    assert_eq!(
        elf_error(|o| o[TABLE + 64 + 33] = 1), // .data's size
        beyond("section 1", 64, 64 + 0x105, whole)
    );
    assert_eq!(
        elf_error(|o| o[TABLE + 128 + 25] = 1), // offset of the names
        beyond("section name table", 0x145, 0x154, whole)
    );
    assert_eq!(
        elf_error(|o| {
            o[54] = 56; // program headers
            o[56] = 9;
        }),
        beyond("program header table", 0, 9 * 56, whole)
    );
    // Sections that occupy no bytes may say anything.
    let mut object = elf(true, false).build();
    object[TABLE + 64 + 4] = 8; // SHT_NOBITS
    object[TABLE + 64 + 33] = 1;
    NewSections::offloading(&object, 8).unwrap();
}

/// A COFF object built by hand: `.text` with 6 bytes and one relocation, one symbol.
struct Coff {
    big: bool,
    sections: u32,
    /// Relocations of `.text`; 0xffff and more are counted in the first.
    relocations: u32,
    symbols: bool,
    strings: Option<Vec<u8>>,
    trailing: Vec<u8>,
}

fn coff(big: bool) -> Coff {
    let strings = Some(b"\x0c\0\0\0abcdefg\0".to_vec());
    Coff { big, sections: 1, relocations: 1, symbols: true, strings, trailing: Vec::new() }
}

impl Coff {
    fn build(&self) -> Vec<u8> {
        let header_len = if self.big { 56 } else { 20 };
        let raw_at = header_len + self.sections * 40;
        let relocations_at = raw_at + 6;
        let overflow = self.relocations >= 0xffff;
        let stored = self.relocations + u32::from(overflow);
        let symbols_at = if self.symbols { relocations_at + stored * 10 } else { 0 };
        let symbols = u32::from(self.symbols);
        let mut file = Vec::new();
        if self.big {
            file.extend(b"\0\0\xff\xff\x02\0\x64\x86\0\0\0\0\xc7\xa1\xba\xd1\xee\xba\xa9\x4b");
            file.extend(b"\xaf\x20\xfa\xf6\x6a\xa4\xdc\xb8\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
            for number in [self.sections, symbols_at, symbols] {
                file.extend(number.to_le_bytes());
            }
        } else {
            file.extend(b"\x64\x86");
            file.extend((self.sections as u16).to_le_bytes());
            for number in [0, symbols_at, symbols, 0] {
                file.extend(number.to_le_bytes());
            }
        }
        for number in 0..self.sections {
            let (at, size) = if number == 0 { (raw_at, 6) } else { (0, 0) };
            let (table, count) = if number == 0 { (relocations_at, stored) } else { (0, 0) };
            file.extend(b".text\0\0\0");
            for number in [0, 0, size, at, table, 0] {
                file.extend(number.to_le_bytes());
            }
            file.extend((count.min(0xffff) as u16).to_le_bytes());
            file.extend(0u16.to_le_bytes());
            let flags = if overflow && number == 0 { 0x6100_0020 } else { 0x6000_0020u32 };
            file.extend(flags.to_le_bytes());
        }
        file.extend(b"\x90\x90\x90\x90\x90\xc3");
        if overflow {
            file.extend(stored.to_le_bytes());
            file.extend([0; 6]);
        }
        for _ in 0..self.relocations {
            file.extend(b"\x01\0\0\0\0\0\0\0\x01\0");
        }
        if self.symbols {
            let name = if self.strings.as_ref().is_some_and(|s| s.len() > 4) {
                b"\0\0\0\0\x04\0\0\0"
            } else {
                b"function"
            };
            file.extend(name);
            file.extend([0; 4]); // value
            file.extend(&[1, 0, 0, 0][..if self.big { 4 } else { 2 }]);
            file.extend([0x20, 0, 2, 0]);
            if let Some(strings) = &self.strings {
                file.extend(strings);
            }
        }
        file.extend(&self.trailing);
        file
    }
}

fn coff_flags(bytes: &[u8]) -> u32 {
    let file = object::File::parse(bytes).unwrap();
    match file.sections().last().unwrap().flags() {
        object::SectionFlags::Coff { characteristics } => characteristics.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn coff_objects_may_lack_tables() {
    for big in [false, true] {
        let result = check(&coff(big).build(), b"contents");
        assert_eq!(coff_flags(&result), 0x0240_0800);
        // An empty string table, and the one that cvtres writes.
        for strings in [vec![4, 0, 0, 0], vec![0; 4]] {
            let result = check(&Coff { strings: Some(strings), ..coff(big) }.build(), b"contents");
            assert!(result.ends_with(b"\x15\0\0\0.llvm.offloading\0"));
        }
        // None at all is too little for other readers; the result is good.
        let result = embed(&Coff { strings: None, ..coff(big) }.build(), b"contents").unwrap();
        assert!(result.ends_with(b"\x15\0\0\0.llvm.offloading\0"));
        assert!(sections(&result)[1].contains("\".llvm.offloading\""));
        let result = check(&Coff { symbols: false, ..coff(big) }.build(), b"contents");
        assert!(result.ends_with(b"contents\x15\0\0\0.llvm.offloading\0"));
        let strings = Some(b"\x15\0\0\0.llvm.offloading\0".to_vec());
        let object = Coff { strings, ..coff(big) }.build();
        let result = check(&object, b"contents");
        assert!(result.ends_with(b"\x15\0\0\0.llvm.offloading\0"));
        let result = check(&Coff { trailing: b"more".to_vec(), ..coff(big) }.build(), b"contents");
        assert!(result.ends_with(b"\x1d\0\0\0abcdefg\0.llvm.offloading\0more"));
        for relocations in [0, 2, 0xfffe, 0xffff, 0x10001] {
            check(&Coff { relocations, ..coff(big) }.build(), b"contents");
        }
    }
}

#[test]
fn coff_contents_move_by_one_header() {
    let object = coff(false).build();
    let result = check(&object, b"contents");
    let raw = result.windows(6).position(|w| w == b"\x90\x90\x90\x90\x90\xc3").unwrap();
    assert_eq!(raw, 60 + 40);
    assert_eq!(result[raw..raw + 16], object[60..76]);
    assert_eq!(result[60..68], *b"/12\0\0\0\0\0");
    // Contents at the next multiple of 8, then symbols as they were.
    assert_eq!(result[116..128], *b"\0\0\0\0contents");
    assert_eq!(result[128..146], object[76..94]);
}

#[test]
fn long_string_tables_need_names_in_base_64() {
    for (len, name) in [(9_999_999, *b"/9999999"), (10_000_000, *b"//AAmJaA")] {
        let mut strings = vec![b'a'; len - 1];
        strings[..4].copy_from_slice(&(len as u32).to_le_bytes());
        strings.push(0);
        let object = Coff { strings: Some(strings), ..coff(true) }.build();
        let result = embed(&object, b"contents").unwrap();
        assert_eq!(result[96..104], name);
        let file = object::File::parse(&*result).unwrap();
        assert_eq!(file.sections().last().unwrap().name(), Ok(".llvm.offloading"));
    }
}

#[test]
fn coff_runs_out_of_section_numbers() {
    check(&Coff { sections: 0xfefe, ..coff(false) }.build(), b"contents");
    let full = Coff { sections: 0xfeff, ..coff(false) }.build();
    assert_eq!(
        embed(&full, b"contents").unwrap_err().to_string(),
        "cannot add sections: the COFF object has 65279 sections, the limit is 65279"
    );
    check(&Coff { sections: 0xfeff, ..coff(true) }.build(), b"contents");
    check(&Coff { sections: 0x12345, ..coff(true) }.build(), b"contents");
}

fn coff_error(big: bool, change: impl Fn(&mut Vec<u8>)) -> String {
    let mut object = coff(big).build();
    change(&mut object);
    NewSections::offloading(&object, 8).unwrap_err().to_string()
}

#[test]
fn malformed_coff_objects_are_errors() {
    let beyond = |part, start: u64, end: u64, available: u64| {
        format!(
            "COFF {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
        )
    };
    let overlap = |part, start: u64, end: u64, other| {
        format!("COFF {part} at {start:#x}..{end:#x} overlaps the {other}")
    };
    let whole = 60 + 6 + 10 + 18 + 12;
    assert_eq!(coff(false).build().len() as u64, whole);
    assert_eq!(coff_error(true, |o| o.truncate(40)), beyond("file header", 0, 56, 40));
    assert_eq!(
        coff_error(true, |o| o[12] = 0),
        "COFF header field ClassID at 0xc is 0xd1baa100, expected 0xd1baa1c7 (bigobj) at first"
    );
    for (big, at, offset) in [(false, 8, 12), (true, 48, 52)] {
        assert_eq!(
            coff_error(big, |o| o[at..at + 4].fill(0)),
            format!(
                "COFF header field NumberOfSymbols at {offset:#x} is 0x1, expected 0 without a symbol table"
            )
        );
    }
    assert_eq!(
        coff_error(false, |o| o[18] = 2),
        "cannot change sections: PE image, only COFF objects qualify"
    );
    assert_eq!(coff_error(false, |o| o.truncate(59)), beyond("section header table", 20, 60, 59));
    assert_eq!(coff_error(false, |o| o[2] = 3), beyond("section header table", 20, 140, whole));
    assert_eq!(
        coff_error(true, |o| o[44..48].copy_from_slice(&[0xff; 4])),
        beyond("section header table", 56, 56 + 40 * 0xffff_ffff, whole + 36 + 2)
    );
    assert_eq!(coff_error(false, |o| o[9] = 1), beyond("symbol table", 332, 350, whole));
    assert_eq!(
        coff_error(false, |o| o[8] = 59),
        overlap("symbol table", 59, 77, "section header table")
    );
    assert_eq!(coff_error(false, |o| o.truncate(97)), beyond("string table", 94, 98, 97));
    assert_eq!(coff_error(false, |o| o.truncate(105)), beyond("string table", 94, 106, 105));
    assert_eq!(
        coff_error(false, |o| o[105] = b'h'),
        "COFF string table that ends at 0x6a has no zero byte at its end"
    );
    // Fields of the section header: size at 16, contents at 20, relocations at 24, line numbers at 28.
    assert_eq!(coff_error(false, |o| o[36] = 100), beyond("section 1", 60, 160, whole));
    assert_eq!(
        coff_error(false, |o| o[40] = 59),
        overlap("section 1", 59, 65, "section header table")
    );
    assert_eq!(coff_error(false, |o| o[36] = 17), overlap("section 1", 60, 77, "symbol table"));
    assert_eq!(
        coff_error(false, |o| o[52] = 2),
        overlap("relocation table of section 1", 66, 86, "symbol table")
    );
    assert_eq!(
        coff_error(false, |o| {
            o[48] = 100;
            o[54] = 2;
        }),
        beyond("line number table of section 1", 100, 112, whole)
    );
    // The number of relocations in the first of them.
    let object = Coff { relocations: 0xffff, ..coff(false) }.build();
    let mut damaged = object.clone();
    damaged[68] = 9;
    assert_eq!(
        NewSections::offloading(&damaged, 8).unwrap_err().to_string(),
        beyond("relocation table of section 1", 66, 66 + 10 * 0x9_0000, object.len() as u64)
    );
    // Uninitialised data occupies no bytes.
    let mut object = coff(false).build();
    object[56] = 0x80;
    object[36] = 100;
    NewSections::offloading(&object, 8).unwrap();
}

#[test]
fn damaged_objects_cause_no_panic() {
    let mut objects: Vec<Vec<u8>> = all_elf().map(|form| form.build()).collect();
    objects.extend(all_elf().map(|form| Elf { extended: true, ..form }.build()));
    objects.extend([
        coff(false).build(),
        coff(true).build(),
        example("host.o"),
        example("hip.obj"),
    ]);
    let try_it = |object: &[u8]| {
        if let Ok(embedding) = NewSections::offloading(object, 13) {
            let result = embedding.to_vec(&[b"some contents"]).unwrap();
            assert_eq!(result.len() as u64, embedding.total_size());
            let range = embedding.contents_ranges().next().unwrap();
            assert_eq!(result[range.start as usize..range.end as usize], *b"some contents");
            return true;
        }
        false
    };
    let mut good = 0;
    for object in &objects {
        judge(object, |damaged| good += usize::from(try_it(damaged)));
    }
    assert!(good > objects.len(), "{good}");
}

#[test]
fn accepted_objects_accept_another_section() {
    let mut objects: Vec<Vec<u8>> = all_elf().map(|form| form.build()).collect();
    objects.extend(all_elf().map(|form| Elf { extended: true, ..form }.build()));
    objects.extend([coff(false).build(), coff(true).build(), example("hip.obj")]);
    // A fixed seed, so that a failure can be repeated.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut object = objects[random(objects.len())].clone();
        for _ in 0..1 + random(4) {
            let at = random(object.len().min(400));
            let len = object.len() as u64;
            let numbers = [
                0,
                1,
                0xff,
                0xff00,
                0xffff,
                u64::MAX - 7,
                u64::MAX,
                len - 1,
                len,
                random(500) as u64,
            ];
            let number = numbers[random(numbers.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random(4)].min(object.len() - at);
            object[at..at + width].copy_from_slice(&number[..width]);
        }
        let len = [13, 13, u64::MAX, u64::MAX - 200, 1 << 32][random(5)];
        let Ok(embedding) = NewSections::offloading(&object, len) else { continue };
        if len == 13 {
            let result = embedding.to_vec(&[b"some contents"]).unwrap();
            embed(&result, b"more").unwrap();
            accepted += 1;
        }
    }
    assert!(accepted > 2_000, "{accepted}");
}
