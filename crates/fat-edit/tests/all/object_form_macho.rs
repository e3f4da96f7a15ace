//! Bundles in the object form for Mach-O objects: a binary bundle in `__LLVM,__offload_bundle`.

use std::borrow::Cow;

use crate::bundling::{self, GFX90A, GFX906, HOST, add, entries, found, there_and_back, walked};
use fat_edit::{object_bundle, remove_bundle_sections};
use object::read::macho::FatArch;
use object::{Object, ObjectSection, ObjectSymbol};
use samples::example;

/// A section of an object built by hand.
#[derive(Clone)]
struct Section {
    segment: &'static str,
    name: &'static str,
    contents: Vec<u8>,
    flags: u32,
    /// Both words of each.
    relocations: Vec<[u32; 2]>,
}

/// A Mach-O object built by hand.
#[derive(Clone)]
struct MachO {
    wide: bool,
    big: bool,
    cputype: u32,
    sections: Vec<Section>,
    /// `n_type` and `n_sect`.
    symbols: Vec<[u8; 2]>,
    /// More load commands.
    commands: Vec<u32>,
}

const SYMTAB: u32 = 2;
const DYSYMTAB: u32 = 0xb;
const DATA_IN_CODE: u32 = 0x29;
const BUILD_VERSION: u32 = 0x32;

fn section(segment: &'static str, name: &'static str, contents: &[u8]) -> Section {
    Section { segment, name, contents: contents.to_vec(), flags: 0, relocations: Vec::new() }
}

fn macho(wide: bool, big: bool) -> MachO {
    let mut text = section("__TEXT", "__text", b"code code code !");
    let mut form = MachO {
        wide,
        big,
        cputype: if wide { 0x0100_0007 } else { 7 },
        sections: Vec::new(),
        symbols: vec![[0x0f, 1], [0x0f, 2], [0x01, 0]],
        commands: vec![BUILD_VERSION, SYMTAB, DYSYMTAB, DATA_IN_CODE],
    };
    text.relocations = vec![form.relocation(2, false), form.relocation(0, true)];
    let mut bss = section("__DATA", "__bss", b"123456789");
    bss.flags = 1;
    form.sections = vec![text, section("__DATA", "__data", b"DATA!"), bss];
    form
}

fn all() -> impl Iterator<Item = MachO> {
    [(true, false), (false, false), (true, true), (false, true)]
        .into_iter()
        .map(|(wide, big)| macho(wide, big))
}

impl MachO {
    fn word(&self, n: u32) -> [u8; 4] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn words(&self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.word(word)).collect()
    }

    fn long(&self, n: u64) -> Vec<u8> {
        match (self.wide, self.big) {
            (true, true) => n.to_be_bytes().to_vec(),
            (true, false) => n.to_le_bytes().to_vec(),
            (false, _) => self.word(n as u32).to_vec(),
        }
    }

    /// Returns a relocation of a section, or of a symbol, at address 0.
    fn relocation(&self, number: u32, external: bool) -> [u32; 2] {
        if self.big {
            [0, number << 8 | 2 << 5 | u32::from(external) << 4]
        } else {
            [0, number | 2 << 25 | u32::from(external) << 27]
        }
    }

    fn build(&self) -> Vec<u8> {
        let (header_len, segment_len, section_len) =
            if self.wide { (32, 72, 80) } else { (28, 56, 68) };
        let command_len = |&cmd: &u32| match cmd {
            DYSYMTAB => 80,
            DATA_IN_CODE => 16,
            _ => 24,
        };
        let commands_len = segment_len
            + self.sections.len() * section_len
            + self.commands.iter().map(command_len).sum::<usize>();
        let start = header_len + commands_len;
        let zerofill = |section: &Section| section.flags == 1;
        let mut data = Vec::<u8>::new();
        let (mut headers, mut address) = (Vec::new(), 0);
        let data_len: usize =
            self.sections.iter().filter(|s| !zerofill(s)).map(|s| s.contents.len()).sum();
        let mut relocations_at = (start + data_len).next_multiple_of(8);
        let mut relocations = Vec::new();
        for section in &self.sections {
            for name in [section.name, section.segment] {
                let mut name = name.as_bytes().to_vec();
                name.resize(16, 0);
                headers.extend(name);
            }
            let offset = if zerofill(section) { 0 } else { start + data.len() };
            let count = section.relocations.len();
            headers.extend(self.long(address));
            headers.extend(self.long(section.contents.len() as u64));
            let reloff = if count == 0 { 0 } else { relocations_at };
            headers.extend(self.words(&[offset as u32, 0, reloff as u32, count as u32]));
            headers.extend(self.words(&[section.flags, 0x1111, 0x2222]));
            if self.wide {
                headers.extend(self.word(0x3333));
            }
            relocations.extend(section.relocations.iter().flat_map(|words| self.words(words)));
            relocations_at += count * 8;
            if !zerofill(section) {
                data.extend(&section.contents);
            }
            address += section.contents.len() as u64;
        }
        let mut file = self.words(&[
            if self.wide { 0xfeed_facf } else { 0xfeed_face },
            self.cputype,
            0,
            1,
            self.commands.len() as u32 + 1,
            commands_len as u32,
            0x2000,
        ]);
        file.resize(header_len, 0);
        let segment = if self.wide { 0x19 } else { 1 };
        let cmdsize = segment_len + self.sections.len() * section_len;
        file.extend(self.words(&[segment, cmdsize as u32]));
        file.extend([0; 16]);
        file.extend([0, address, start as u64, data.len() as u64].map(|n| self.long(n)).concat());
        file.extend(self.words(&[7, 7, self.sections.len() as u32, 0]));
        file.extend(headers);
        let symbols_at = relocations_at as u32;
        let symbols_len = self.symbols.len() as u32 * if self.wide { 16 } else { 12 };
        let strings_at = symbols_at + symbols_len;
        for &cmd in &self.commands {
            let mut words = vec![0; command_len(&cmd) / 4];
            words[0] = cmd;
            words[1] = command_len(&cmd) as u32;
            match cmd {
                SYMTAB => {
                    let count = self.symbols.len() as u32;
                    words[2..].copy_from_slice(&[symbols_at, count, strings_at, 4]);
                }
                DATA_IN_CODE => words[2..].copy_from_slice(&[strings_at + 4, 0]),
                _ => words[2] = 1,
            }
            file.extend(self.words(&words));
        }
        assert_eq!(file.len(), start);
        file.extend(data);
        file.resize(file.len().next_multiple_of(8), 0);
        file.extend(relocations);
        assert_eq!(file.len(), symbols_at as usize);
        for [kind, number] in &self.symbols {
            file.extend(self.word(1));
            file.extend([*kind, *number, 0, 0]);
            file.extend(self.long(0));
        }
        file.extend(b"\0s\0\0");
        file
    }
}

/// Name, contents, flags and relocations of every section.
fn sections(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    let line = |section: object::Section<'_, '_>| {
        let relocations = section.relocations().collect::<Vec<_>>();
        let data = section.data().unwrap();
        let (name, flags) = (section.name().unwrap(), section.flags());
        format!("{name} {:#x} {flags:?} {relocations:?} {data:?}", section.address())
    };
    file.sections().map(line).collect()
}

fn symbols(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    file.symbols().map(|s| format!("{:?} {:?}", s.name(), s.section())).collect()
}

#[test]
fn removing_restores_objects_of_every_form() {
    for form in all() {
        let object = form.build();
        there_and_back(&object);
        there_and_back(&[&object[..], b"trailing"].concat());
        found(&object);
        let mut other = form.clone();
        other.commands.reverse();
        other.sections.reverse();
        there_and_back(&other.build());
        other.sections.clear();
        other.symbols.clear();
        there_and_back(&other.build());
        other.commands.clear();
        there_and_back(&other.build());
    }
}

#[test]
fn removing_restores_real_objects() {
    let mut objects = vec![example("hip-macos.o")];
    let universal = example("hip-macos-universal.o");
    let slices = object::read::macho::MachOFatFile32::parse(&*universal).unwrap();
    for slice in slices.arches() {
        objects.push(slice.data(&*universal).unwrap().to_vec());
    }
    assert_eq!(objects.len(), 3);
    for object in objects {
        there_and_back(&object);
        let added = add(&object, &entries());
        let (old, new) = (sections(&object), sections(&added));
        assert_eq!(old, new[..old.len()]);
        assert_eq!(new.len(), old.len() + 1);
        assert_eq!(symbols(&object), symbols(&added));
    }
}

/// The bytes of the smallest one, as documented.
#[test]
fn the_section_holds_a_binary_bundle() {
    let object = macho(true, false).build();
    let added = add(&object, &[(HOST, b"\0"), (GFX906, b"image")]);
    let file = object::File::parse(&*added).unwrap();
    let section = file.section_by_name("__offload_bundle").unwrap();
    assert_eq!(section.segment_name().unwrap(), Some("__LLVM"));
    let object::SectionFlags::MachO { flags, .. } = section.flags() else { panic!() };
    assert_eq!((flags.0, section.align(), section.address()), (0, 1, 30));
    let mut expected = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    expected.extend([2u64, 139, 1, 30].map(u64::to_le_bytes).concat());
    expected.extend(HOST.as_bytes());
    expected.extend([140u64, 5, 29].map(u64::to_le_bytes).concat());
    expected.extend(GFX906.as_bytes());
    expected.extend(b"\0image");
    expected.extend([0; 7]);
    assert_eq!(section.data().unwrap(), expected);
    assert_eq!(added.len(), object.len() + 80 + 152);
}

#[test]
fn objects_without_bundles_stay() {
    for form in all() {
        let object = form.build();
        assert!(matches!(remove_bundle_sections(&object), Ok(Cow::Borrowed(b)) if b == object));
    }
}

/// Bundles among the other sections, as if a relocatable link had sorted them.
fn interleaved(form: &MachO) -> MachO {
    let mut bundle = section("__LLVM", "__offload_bundle", b"");
    let entry = [(GFX90A, 3)];
    let layout = bundle_format::layout(entry, 1).unwrap();
    bundle.contents = layout.to_vec(&[b"abc"]).unwrap();
    let mut form = form.clone();
    form.sections.insert(1, bundle.clone());
    form.sections.push(bundle);
    form.sections[0].relocations = vec![form.relocation(3, false), form.relocation(2, true)];
    form.symbols = vec![[0x0f, 1], [0x0f, 3], [0x01, 0], [0x24, 4]];
    form
}

#[test]
fn section_numbers_follow() {
    for form in all() {
        let mixed = interleaved(&form);
        let object = mixed.build();
        assert_eq!(walked(&object).len(), 2);
        let rest = remove_bundle_sections(&object).unwrap();
        let mut expected = form.clone();
        expected.sections[0].relocations =
            vec![form.relocation(2, false), form.relocation(2, true)];
        expected.symbols = vec![[0x0f, 1], [0x0f, 2], [0x01, 0], [0x24, 3]];
        let expected = expected.build();
        let file = object::File::parse(&*rest).unwrap();
        assert_eq!(file.sections().count(), 3);
        let without_address = |bytes: &[u8]| {
            let lines = sections(bytes).into_iter();
            lines
                .map(|line| line.split(' ').filter(|w| !w.starts_with("0x")).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(without_address(&rest), without_address(&expected));
        assert_eq!(symbols(&rest), symbols(&expected));
        assert!(!rest.windows(8).any(|window| window == b"__CLANG_"));
        there_and_back(&rest);
        assert!(*remove_bundle_sections(&add(&object, &entries())).unwrap() == *rest);
    }
}

#[test]
fn addends_are_not_section_numbers() {
    let mut form = interleaved(&macho(true, false));
    form.cputype = 0x0100_000c;
    form.sections[0].relocations = vec![[0, 10 << 28 | 3]];
    let object = form.build();
    let rest = remove_bundle_sections(&object).unwrap();
    assert!(rest.windows(8).any(|window| window == [0, 0, 0, 0, 3, 0, 0, 0xa0]));
}

#[test]
fn sections_in_use_are_not_removed() {
    let referenced =
        |by| format!("cannot remove section 2 of the Mach-O object: {by} refers to it");
    let base = interleaved(&macho(true, false));
    let mut form = base.clone();
    form.symbols[1] = [0x0f, 2];
    let error = remove_bundle_sections(&form.build()).unwrap_err().to_string();
    assert_eq!(error, referenced("symbol table"));
    let mut form = base.clone();
    form.sections[0].relocations[0] = form.relocation(2, false);
    let error = remove_bundle_sections(&form.build()).unwrap_err().to_string();
    assert_eq!(error, referenced("relocation table of section 1"));
    let mut form = base;
    form.sections[1].relocations = vec![form.relocation(0, true)];
    let error = remove_bundle_sections(&form.build()).unwrap_err().to_string();
    assert_eq!(error, referenced("relocation table of section 2"));
    assert_eq!(
        error.to_string(),
        "cannot remove section 2 of the Mach-O object: relocation table of section 2 refers to it"
    );
}

/// The same error from adding and removing, after a word was changed.
fn refused(at: usize, word: u32) -> String {
    let mut object = macho(true, false).build();
    object[at..at + 4].copy_from_slice(&word.to_le_bytes());
    let error = object_bundle(&object, &[(HOST, 1)]).unwrap_err().to_string();
    assert_eq!(remove_bundle_sections(&object).unwrap_err().to_string(), error);
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 150, "{message}");
    error
}

const SEGMENT: usize = 32;
const SECTIONS: usize = SEGMENT + 72;
const COMMANDS: usize = SECTIONS + 3 * 80;

fn field(field: &'static str, offset: u64, found: u64, expected: &'static str) -> String {
    format!("Mach-O header field {field} at {offset:#x} is {found:#x}, expected {expected}")
}

#[test]
fn malformed_load_commands_are_errors() {
    assert_eq!(
        refused(12, 2),
        "cannot change sections: Mach-O file of type 2, only relocatable objects (type 1) qualify"
    );
    let end = macho(true, false).build().len() as u64;
    let error = refused(20, 0x1_0000);
    let (part, available) = ("load commands", end);
    let beyond = |part, start: u64, end: u64| {
        format!(
            "Mach-O {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
        )
    };
    assert_eq!(error, beyond(part, 32, 0x1_0020));
    assert_eq!(
        refused(16, 6),
        field("sizeofcmds", 0, 456, "room for as many load commands as ncmds says")
    );
    assert_eq!(refused(16, 0), "cannot change sections: the Mach-O object has no segment");
    let expected = "a multiple of 4 inside the load commands";
    let at = COMMANDS as u64;
    assert_eq!(refused(COMMANDS + 4, 10), field("cmdsize", at, 10, expected));
    assert_eq!(refused(COMMANDS + 4, 4), field("cmdsize", at, 4, expected));
    assert_eq!(refused(COMMANDS + 4, 0x1000), field("cmdsize", at, 0x1000, expected));
    let unknown = format!(
        "cannot change sections: Mach-O load command 1 at {at:#x} is of the unknown kind 0x77"
    );
    assert_eq!(refused(COMMANDS, 0x77), unknown);
    assert_eq!(
        unknown.to_string(),
        "cannot change sections: Mach-O load command 1 at 0x158 is of the unknown kind 0x77"
    );
    let expected = "one segment of the file's class";
    assert_eq!(refused(COMMANDS, 1), field("cmd", at, 1, expected));
    assert_eq!(refused(COMMANDS, 0x19), field("cmd", at, 0x19, expected));
    let expected = "the length of such a load command";
    let found = refused(COMMANDS, DYSYMTAB);
    assert!(found.contains(" header field cmdsize at "), "{found} {expected}");
    let expected = "the length of a segment's load command";
    assert_eq!(refused(SEGMENT + 64, 2), field("cmdsize", 32, 312, expected));
}

#[test]
fn parts_beyond_the_end_are_errors() {
    let object = macho(true, false).build();
    let available = object.len() as u64;
    let start = COMMANDS as u64 + 24 + 24 + 80 + 16;
    let beyond = |part, start: u64, end: u64| {
        format!(
            "Mach-O {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
        )
    };
    let misplaced = |part, start: u64, end: u64, expected| {
        format!("Mach-O {part} lies at {start:#x}..{end:#x}, expected {expected}")
    };
    assert_eq!(refused(SEGMENT + 48, 0x1000), beyond("segment", start, start + 0x1000));
    let expected = "an offset after the load commands";
    assert_eq!(refused(SEGMENT + 40, 0), field("fileoff", 32, 0, expected));
    let part = "section 1";
    let expected = "inside the segment";
    assert_eq!(refused(SECTIONS + 48, 0), misplaced(part, 0, 16, expected));
    assert_eq!(refused(SECTIONS + 40, 32), misplaced(part, start, start + 32, expected));
    assert_eq!(refused(SECTIONS + 40, 0x1000), beyond(part, start, start + 0x1000));
    let part = "relocation table of section 1";
    let expected = "after the contents of the sections";
    assert_eq!(refused(SECTIONS + 56, 0x40), misplaced(part, 0x40, 0x50, expected));
    let (part, symbols) = ("symbol table", COMMANDS + 24 + 8);
    assert_eq!(refused(symbols, 0x1000), beyond(part, 0x1000, 0x1030));
    assert_eq!(refused(symbols + 8, 0x1000), beyond("string table", 0x1000, 0x1004));
    let (at, expected) = (symbols + 16, 0x1000 + 8);
    let indirect = at + 56;
    let part = "table of load command 3";
    let mut changed = object;
    changed[indirect..indirect + 4].copy_from_slice(&0x1000u32.to_le_bytes());
    changed[indirect + 4..indirect + 8].copy_from_slice(&2u32.to_le_bytes());
    let error = remove_bundle_sections(&changed).unwrap_err().to_string();
    assert_eq!(error, beyond(part, 0x1000, expected));
}

#[test]
fn impossible_layouts_are_refused() {
    let object = macho(true, false).build();
    let error = object_bundle(&object, &[(HOST, 1), ("", 1)]).unwrap_err().to_string();
    assert_eq!(
        error,
        "bundle entry ID 1 is empty, which the bundle of a Mach-O object cannot hold"
    );
    for size in [u64::MAX, u64::MAX - 200, 1 << 32, u64::from(u32::MAX) - 100] {
        let error = object_bundle(&object, &[(HOST, 1), (GFX906, size)]).unwrap_err().to_string();
        assert!(error.contains(" does not fit an offset or size of Mach-O"), "{error}");
    }
    let mut form = macho(true, false);
    form.sections.resize(254, section("__DATA", "__data", b""));
    there_and_back_once(&form.build());
    form.sections.push(section("__DATA", "__data", b""));
    let error = object_bundle(&form.build(), &[(HOST, 1)]).unwrap_err().to_string();
    let limit = 255;
    assert_eq!(
        error,
        format!("cannot add sections: the Mach-O object has 255 sections, the limit is {limit}")
    );
    // Addresses of 32 bits.
    let mut narrow = macho(false, false).build();
    narrow[28 + 28..28 + 32].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = object_bundle(&narrow, &[(HOST, 1)]).unwrap_err().to_string();
    assert!(error.contains(" does not fit "), "{error}");
}

fn there_and_back_once(object: &[u8]) {
    assert!(*remove_bundle_sections(&add(object, &entries())).unwrap() == *object);
}

#[test]
fn damaged_objects_cause_no_panic() {
    for form in all() {
        bundling::judge_damaged(&add(&form.build(), &entries()));
        bundling::judge_damaged(&interleaved(&form).build());
    }
}
