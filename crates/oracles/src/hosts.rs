//! Host files made from the fuzzer's bytes: ELF, COFF, PE, Mach-O and WebAssembly, with device code in sections.

use arbitrary::{Result, Unstructured};

use crate::fields::Fields;
use crate::model;
use crate::walks::Walk;
use crate::{edits, objects};

/// Sections with something in them.
const MOST: usize = 4;
/// Sections that hold device code and nothing else.
const DEVICE: [&str; 6] = [
    ".hip_fatbin",
    ".llvm.offloading",
    ".llvm.offloading.1",
    ".nv_fatbin",
    "__hip_fatbin",
    "__nv_relfatbin",
];
const ENTRIES: [&str; 3] = [
    "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a",
    "__CLANG_OFFLOAD_BUNDLE__openmp-nvptx64-nvidia-cuda--sm_70",
    "__CLANG_OFFLOAD_BUNDLE__",
];
const PLAIN: [&str; 3] = [".text", ".a-name-longer-than-sixteen", ".data"];

/// Bytes that start no container.
const MAGICS: [&[u8]; 9] = [
    b"text",
    b"CCOB\x02\0\x01\0",
    b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0",
    b"\x10\xff\x10\xad\x01\0\0\0",
    b"\x50\xed\x55\xba\x01\0\x10\0",
    b"\x7fELF\x02\x01\x01",
    b"\x03\x02\x23\x07\0\x04\x01\0",
    b"\x07\x23\x02\x03\0\x01\x04\0",
    b"\n.version 8.0\n.target sm_%d\n",
];

/// A host file, and the images in it, in the order in which a walk meets them.
pub(crate) struct Host {
    pub(crate) fields: Fields,
    pub(crate) images: Vec<Vec<u8>>,
}

/// The kind of a section.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Device,
    /// A bundle entry itself.
    Entry,
    /// Known by what it starts with.
    Unnamed,
    Plain,
}

struct Section {
    name: String,
    role: Role,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Elf,
    Coff { big: bool },
    Pe,
    MachO,
    Wasm,
}

/// Makes a host file, and damages its headers if the fuzzer likes.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok(mut host) = host(u, 2) else { return };
    let is_whole = host.fields.damage(u).unwrap_or(1) == 0;
    let bytes = host.fields.into_bytes();
    let mut walk = Walk::new(&bytes);
    walk.run();
    if is_whole {
        assert_eq!(walk.errors, [""; 0]);
        assert!(walk.images == host.images, "{:?} for {:?}", walk.images, host.images);
    }
    match u.int_in_range(0..=3) {
        Ok(0) => edits::check_seeded(&bytes, u.arbitrary().unwrap_or_default(), &|_| {}),
        Ok(1 | 2) => objects::check(&bytes),
        _ => {}
    }
}

pub(crate) fn host(u: &mut Unstructured<'_>, depth: usize) -> Result<Host> {
    if depth > 0 && u.ratio(1, 6)? {
        return universal(u, depth - 1);
    }
    let format = *u.choose(&[
        Format::Elf,
        Format::Elf,
        Format::Coff { big: false },
        Format::Coff { big: true },
        Format::Pe,
        Format::MachO,
        Format::Wasm,
    ])?;
    one(u, depth, format)
}

fn one(u: &mut Unstructured<'_>, depth: usize, format: Format) -> Result<Host> {
    let (sections, images) = sections(u, depth, format)?;
    let fields = match format {
        Format::Elf => elf(u, &sections)?,
        Format::Coff { big } => coff(u, big, &sections)?,
        Format::Pe => pe(u, &sections)?,
        Format::MachO => mach_o(u, &sections)?,
        Format::Wasm => wasm(u, &sections)?,
    };
    Ok(Host { fields, images })
}

fn sections(
    u: &mut Unstructured<'_>,
    depth: usize,
    format: Format,
) -> Result<(Vec<Section>, Vec<Vec<u8>>)> {
    let (mut sections, mut images) = (Vec::new(), Vec::new());
    // Containers that only a scan finds come after the rest.
    let mut scanned = Vec::new();
    for _ in 0..u.int_in_range(0..=MOST)? {
        let role =
            *u.choose(&[Role::Device, Role::Device, Role::Entry, Role::Unnamed, Role::Plain])?;
        let role = match role {
            // Eight and sixteen bytes are not enough for an ID.
            Role::Entry if matches!(format, Format::Pe | Format::MachO) => Role::Plain,
            role => role,
        };
        let name = match role {
            Role::Device if format == Format::Pe => ".hip_fat",
            Role::Device if format == Format::MachO => *u.choose(&DEVICE[3..])?,
            Role::Device => *u.choose(&DEVICE)?,
            Role::Entry => *u.choose(&ENTRIES)?,
            Role::Unnamed | Role::Plain => *u.choose(&PLAIN)?,
        };
        let file = match role {
            Role::Device => model::sequence(u, depth.min(1))?,
            // Only what comes first gives it away, which may be empty after an edit.
            Role::Unnamed => model::container(u, depth.min(1))?,
            Role::Entry => model::payload(u, 0)?,
            Role::Plain => {
                let len = u.int_in_range(0..=40)?;
                let mut bytes = vec![b't'; len];
                if len > 0 && u.arbitrary()? {
                    let inside =
                        if u.ratio(1, 3)? { loose(u)? } else { model::container(u, depth.min(1))? };
                    bytes.extend(inside.bytes);
                    bytes.extend(MAGICS[u.int_in_range(0..=MAGICS.len() - 1)?]);
                    scanned.extend(inside.images);
                }
                model::File { bytes, images: Vec::new() }
            }
        };
        // A bundle of no entries gives nothing away.
        let is_empty_bundle = file.bytes.starts_with(b"__CLANG") && file.bytes[24..32] == [0; 8];
        if !(role == Role::Unnamed && is_empty_bundle) {
            images.extend(file.images);
        }
        sections.push(Section { name: name.to_owned(), role, bytes: file.bytes });
    }
    images.extend(scanned);
    Ok((sections, images))
}

/// Makes an image in no container, whose end only its own bytes show: PTX or SPIR-V.
fn loose(u: &mut Unstructured<'_>) -> Result<model::File> {
    let bytes = if u.arbitrary()? { ptx(u)? } else { spirv(u)? };
    // The next bytes are neither text nor an instruction.
    Ok(model::File { bytes: [b"\n", &bytes[..], &[0; 4]].concat(), images: vec![bytes] })
}

/// Returns a text with functions.
fn ptx(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const PARTS: [&[u8]; 6] = [
        b".func f() { { ret; } // }\n }\n",
        b".extern .func (.param .b32 r) g (.param .b32 %s1);",
        b".global .b8 text[2] = {37, 0};\n",
        b"/* .version { */",
        b".file 1 \"a.cu\"\n",
        b".pragma \"{\";",
    ];
    let mut text = b"// a comment\n.version 8.0\n.target sm_80\n".to_vec();
    for _ in 0..u.int_in_range(0..=6)? {
        text.extend(*u.choose(&PARTS)?);
    }
    text.extend(PARTS[0]);
    Ok(text)
}

/// Returns a module with functions, in either byte order.
fn spirv(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut file = Fields::new(u.arbitrary()?);
    for word in [0x0723_0203, 0x0001_0400, 6 << 16, 10, 0] {
        file.word(word);
    }
    let mut add = |instruction: &[usize]| {
        file.word(instruction.len() << 16 | instruction[0]);
        for &word in &instruction[1..] {
            file.word(word);
        }
    };
    add(&[17, u.int_in_range(0..=12)?]);
    add(&[14, u.int_in_range(0..=2)?, 2]);
    for _ in 0..u.int_in_range(0..=3)? {
        add(&[5, u.arbitrary::<u16>()?.into(), 0x66]);
    }
    add(&[19, 2]);
    for _ in 0..u.int_in_range(1..=3)? {
        add(&[54, 2, u.int_in_range(1..=9)?, 0, 3]);
        for _ in 0..u.int_in_range(0..=2)? {
            add(&[55, 2, 4]);
        }
        add(&[248, 6]);
        for _ in 0..u.int_in_range(0..=3)? {
            add(&[u.int_in_range(57..=70)?, u.arbitrary::<u32>()? as usize]);
        }
        add(&[253]);
        add(&[56]);
    }
    Ok(file.into_bytes())
}

/// Returns the ranges of contents that follow each other from `at` on.
fn places(at: usize, align: usize, sections: &[Section]) -> (Vec<usize>, usize) {
    let mut end = at;
    let place = |section: &Section| {
        let start = end.next_multiple_of(align);
        end = start + section.bytes.len();
        start
    };
    let places = sections.iter().map(place).collect();
    (places, end)
}

/// Adds the contents where they belong.
fn put_contents(fields: &mut Fields, places: &[usize], sections: &[Section]) {
    for (&place, section) in places.iter().zip(sections) {
        fields.put(&vec![0; place - fields.len()]).put(&section.bytes);
    }
}

/// Objects of both classes and byte orders, with symbols and relocations, and numbers beyond the header.
fn elf(u: &mut Unstructured<'_>, sections: &[Section]) -> Result<Fields> {
    let (wide, big, extended): (bool, bool, bool) = u.arbitrary()?;
    let has_symbols: bool = u.arbitrary()?;
    let kind = *u.choose(&[1, 1, 1, 2, 3])?;
    let align = *u.choose(&[1, 8, 4096])?;
    let (header_len, entry_len) = if wide { (64, 64) } else { (52, 40) };
    let address = if wide { 8 } else { 4 };

    let mut names = vec![0];
    let mut name_of = |name: &str| {
        let at = names.len();
        names.extend(name.bytes().chain([0]));
        at
    };
    let section_names: Vec<usize> = sections.iter().map(|section| name_of(&section.name)).collect();
    let table_names = [".symtab", ".rela.text", ".shstrtab"].map(name_of);

    let mut symbols = Fields::new(big);
    let mut relocations = Fields::new(big);
    let symbol_len = if wide { 24 } else { 16 };
    symbols.put(&vec![0; symbol_len]);
    let mut put_symbol = |info: u64, section: usize, value: usize, size: usize| {
        symbols.word(0);
        if wide {
            symbols.number(info, 1).put(&[0]).half(section).long(value).long(size);
        } else {
            symbols.word(value).word(size).number(info, 1).put(&[0]).half(section);
        }
    };
    for (n, section) in sections.iter().enumerate() {
        put_symbol(3, n + 1, 0, 0);
        put_symbol(0x11, n + 1, section.bytes.len() / 2, 4);
        let symbol = 2 * n + 1;
        let info = if wide { (symbol as u64) << 32 | 1 } else { (symbol as u64) << 8 | 1 };
        relocations.number(0, address).number(info, address).number(0, address);
    }

    let (places, end) = places(header_len, align, sections);
    let symbols_at = end.next_multiple_of(8);
    let relocations_at = symbols_at + symbols.len();
    let names_at = relocations_at + relocations.len();
    let table_at = (names_at + names.len()).next_multiple_of(8);
    let more = if has_symbols { 3 } else { 1 };
    let count = 1 + sections.len() + more;
    let (count_here, names_here) = if extended { (0, 0xffff) } else { (count, count - 1) };

    let mut file = Fields::new(big);
    file.put(b"\x7fELF").put(&[1 + u8::from(wide), 1 + u8::from(big), 1]).pad(16, 0);
    file.half(kind).half(62).word(1).number(0, address).number(0, address);
    file.number(table_at as u64, address).word(0).half(header_len);
    file.half(0).half(0).half(entry_len).half(count_here).half(names_here);
    put_contents(&mut file, &places, sections);
    file.pad(8, 0).append(&symbols).append(&relocations).put(&names).pad(8, 0);
    let mut header = |numbers: [usize; 10]| {
        let [name, kind, flags, at, offset, size, link, info, align, entry] = numbers;
        file.word(name).word(kind);
        for number in [flags, at, offset, size] {
            file.number(number as u64, address);
        }
        file.word(link).word(info).number(align as u64, address).number(entry as u64, address);
    };
    let (size, link) = if extended { (count, count - 1) } else { (0, 0) };
    header([0, 0, 0, 0, 0, size, link, 0, 0, 0]);
    for (n, section) in sections.iter().enumerate() {
        let is_typed = section.role == Role::Device && section.name.starts_with(".llvm");
        let kind = if is_typed { 0x6fff_4c0b } else { 1 };
        let flags = if section.role == Role::Entry { 0x8000_0000 } else { 2 };
        let size = section.bytes.len();
        header([section_names[n], kind, flags, 0, places[n], size, 0, 0, align, 0]);
    }
    if has_symbols {
        let (index, names) = (sections.len() + 1, count - 1);
        header([table_names[0], 2, 0, 0, symbols_at, symbols.len(), names, 1, 8, symbol_len]);
        let len = relocations.len();
        header([table_names[1], 4, 0x40, 0, relocations_at, len, index, 1, 8, 3 * address]);
    }
    header([table_names[2], 3, 0, 0, names_at, names.len(), 0, 0, 1, 0]);
    Ok(file)
}

/// Makes objects, plain and for many sections, with symbols and long names.
fn coff(u: &mut Unstructured<'_>, big: bool, sections: &[Section]) -> Result<Fields> {
    let has_symbols: bool = u.arbitrary()?;
    let align = *u.choose(&[1, 4, 16])?;
    let (header_len, symbol_len) = if big { (56, 20) } else { (20, 18) };
    let (places, end) = places(header_len + 40 * sections.len(), align, sections);
    let relocations = if has_symbols { 1 } else { 0 };
    let symbols_at = end + 10 * relocations * sections.len();
    let symbols = if has_symbols { 2 * sections.len() } else { 0 };

    let mut file = Fields::new(false);
    if big {
        file.put(b"\0\0\xff\xff\x02\0\x64\x86").word(0);
        file.put(b"\xc7\xa1\xba\xd1\xee\xba\xa9\x4b\xaf\x20\xfa\xf6\x6a\xa4\xdc\xb8").put(&[0; 16]);
        file.word(sections.len()).word(symbols_at).word(symbols);
    } else {
        file.put(b"\x64\x86").half(sections.len()).word(0).word(symbols_at).word(symbols);
        file.half(0).half(0);
    }
    let mut names = Vec::new();
    for (n, section) in sections.iter().enumerate() {
        if section.name.len() <= 8 {
            file.put(section.name.as_bytes()).put(&vec![0; 8 - section.name.len()]);
        } else {
            file.put(b"/").decimal(names.len() + 4, 7, 0);
            names.extend(section.name.bytes().chain([0]));
        }
        let relocations_at = end + 10 * relocations * n;
        file.word(0).word(0).word(section.bytes.len()).word(places[n]).word(relocations_at).word(0);
        file.half(relocations).half(0).word(0x4000_0040);
    }
    put_contents(&mut file, &places, sections);
    for n in 0..if has_symbols { sections.len() } else { 0 } {
        file.word(0).word(2 * n).half(1);
    }
    for (n, section) in sections.iter().enumerate().take(symbols) {
        // The section's own symbol, and what it says of the section.
        file.put(b"section\0").word(0).number(n as u64 + 1, if big { 4 } else { 2 }).half(0);
        file.number(3, 1).number(1, 1);
        file.word(section.bytes.len()).half(1).half(0).word(0).half(0).put(&[0; 4]);
        file.put(&vec![0; symbol_len - 18]);
    }
    file.word(names.len() + 4).put(&names);
    Ok(file)
}

/// Makes linked files, for 32 and 64 bits.
fn pe(u: &mut Unstructured<'_>, sections: &[Section]) -> Result<Fields> {
    let wide: bool = u.arbitrary()?;
    // One that is wrong.
    let checksum = u.int_in_range(0..=1)?;
    let optional_len = if wide { 240 } else { 224 };
    let headers_len = 64 + 24 + optional_len + 40 * (sections.len() + 1);
    let first = headers_len.next_multiple_of(512);
    let (places, end) = places(first, 512, sections);

    let mut file = Fields::new(false);
    file.put(b"MZ").put(&[0; 58]).word(64).put(b"PE\0\0");
    file.half(if wide { 0x8664 } else { 0x14c }).half(sections.len()).word(0).word(0).word(0);
    file.half(optional_len).half(0x22);
    file.half(if wide { 0x20b } else { 0x10b }).put(&[14, 0]).word(512).word(0).word(0);
    file.word(0x1000).word(0x1000);
    if !wide {
        file.word(0);
    }
    let address = if wide { 8 } else { 4 };
    let memory = |n: usize| 0x1000 * (n + 1) + places.get(n).map_or(0, |place| place / 4096 * 4096);
    file.number(0x1_8000_0000_u64 & u64::MAX >> (64 - 8 * address), address);
    file.word(4096).word(512).half(6).half(0).half(0).half(0).half(6).half(0).word(0);
    file.word(memory(sections.len()) + 0x10_0000).word(first).word(checksum).half(3).half(0x160);
    for _ in 0..4 {
        file.number(0x1000, address);
    }
    file.word(0).word(16);
    for _ in 0..16 {
        file.word(0).word(0);
    }
    for (n, section) in sections.iter().enumerate() {
        let name = &section.name.as_bytes()[..section.name.len().min(8)];
        file.put(name).put(&vec![0; 8 - name.len()]);
        let size = section.bytes.len();
        file.word(size).word(memory(n)).word(size.next_multiple_of(512)).word(places[n]);
        file.word(0).word(0).half(0).half(0).word(0x4000_0040);
    }
    put_contents(&mut file, &places, sections);
    file.put(&vec![0; end.next_multiple_of(512) - file.len()]);
    Ok(file)
}

/// Objects of both classes and byte orders, with all sections in one segment.
fn mach_o(u: &mut Unstructured<'_>, sections: &[Section]) -> Result<Fields> {
    let (wide, big, has_symbols): (bool, bool, bool) = u.arbitrary()?;
    let address = if wide { 8 } else { 4 };
    let header_len = if wide { 32 } else { 28 };
    let (segment_len, section_len) = if wide { (72, 80) } else { (56, 68) };
    let commands_len =
        segment_len + section_len * sections.len() + if has_symbols { 24 } else { 0 };
    let first = header_len + commands_len;
    let (places, end) = places(first, 8, sections);
    let symbol_len = if wide { 16 } else { 12 };

    let mut file = Fields::new(big);
    file.word(if wide { 0xfeed_facf } else { 0xfeed_face });
    file.word(if wide { 0x100_0007 } else { 7 }).word(3).word(1);
    file.word(1 + usize::from(has_symbols)).word(commands_len).word(0);
    if wide {
        file.word(0);
    }
    file.word(if wide { 0x19 } else { 1 }).word(segment_len + section_len * sections.len());
    file.put(&[0; 16]);
    for number in [0, end - first, first, end - first] {
        file.number(number as u64, address);
    }
    file.word(7).word(7).word(sections.len()).word(0);
    for (section, &place) in sections.iter().zip(&places) {
        let name = &section.name.as_bytes()[..section.name.len().min(16)];
        file.put(name).put(&vec![0; 16 - name.len()]);
        file.put(b"__DATA").put(&[0; 10]);
        file.number((place - first) as u64, address).number(section.bytes.len() as u64, address);
        file.word(place).word(3).word(0).word(0).word(0).word(0).word(0);
        if wide {
            file.word(0);
        }
    }
    if has_symbols {
        file.word(2).word(24).word(end).word(1).word(end + symbol_len).word(4);
    }
    put_contents(&mut file, &places, sections);
    if has_symbols {
        file.word(1).number(0xe, 1).number(1, 1).half(0).number(0, address).put(b"\0_a\0");
    }
    Ok(file)
}

/// Makes custom sections, with other sections between them.
fn wasm(u: &mut Unstructured<'_>, sections: &[Section]) -> Result<Fields> {
    let mut file = Fields::new(false);
    file.put(b"\0asm").word(1);
    for section in sections {
        if u.ratio(1, 4)? {
            let len = u.int_in_range(0..=20)?;
            file.number(u.int_in_range(1..=12)?, 1).leb128(len).put(&vec![0; len]);
        }
        file.number(0, 1).leb128(5 + section.name.len() + section.bytes.len());
        file.leb128(section.name.len()).put(section.name.as_bytes()).put(&section.bytes);
    }
    Ok(file)
}

/// Makes Mach-O files for several processors.
fn universal(u: &mut Unstructured<'_>, depth: usize) -> Result<Host> {
    let wide: bool = u.arbitrary()?;
    let (mut slices, mut images) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(1..=3)? {
        let slice = one(u, depth, Format::MachO)?;
        images.extend(slice.images);
        slices.push(slice.fields);
    }
    let mut file = Fields::new(true);
    file.word(if wide { 0xcafe_babf } else { 0xcafe_babe }).word(slices.len());
    let address = if wide { 8 } else { 4 };
    let mut at = 8 + slices.len() * if wide { 32 } else { 20 };
    for (n, slice) in slices.iter().enumerate() {
        at = at.next_multiple_of(8);
        file.word(*[0x100_0007, 0x100_000c, 7].get(n).unwrap_or(&1)).word(3);
        file.number(at as u64, address).number(slice.len() as u64, address).word(3);
        if wide {
            file.word(0);
        }
        at += slice.len();
    }
    for slice in &slices {
        file.pad(8, 0).append(slice);
    }
    Ok(Host { fields: file, images })
}
