//! Compares an edited ELF file with the unedited one as loaders and debuggers see them: all that is not device code is
//! where it was and what it was, or has moved with everything that tells where it is.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Complaints;

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const PT_PHDR: u32 = 6;
const PT_GNU_PROPERTY: u32 = 0x6474_e553;

const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_DYNAMIC: u32 = 6;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHT_DYNSYM: u32 = 11;

const SHF_ALLOC: u64 = 2;

/// The page that kernels map by.
const PAGE: u64 = 0x1000;

/// Sections that can be moved: something says where they are, and it can be changed. With the tag in the dynamic
/// section that does, if one does.
const MOVABLE: [(&str, u64); 11] = [
    (".interp", 0),
    (".gnu.hash", 0x6fff_fef5),
    (".hash", 4),
    (".dynsym", 6),
    (".dynstr", 5),
    (".gnu.version", 0x6fff_fff0),
    (".gnu.version_r", 0x6fff_fffe),
    (".gnu.version_d", 0x6fff_fffc),
    (".rela.dyn", 7),
    (".relr.dyn", 36),
    (".rela.plt", 23),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    kind: u32,
    flags: u64,
    pub address: u64,
    pub offset: u64,
    pub size: u64,
    link: u32,
    info: u32,
    align: u64,
    entry_size: u64,
}

impl Section {
    fn is_allocated(&self) -> bool {
        self.flags & SHF_ALLOC != 0
    }

    fn addresses(&self) -> Range<u64> {
        self.address..self.address + self.size
    }
}

/// A file and its headers.
pub struct Elf<'a> {
    bytes: &'a [u8],
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn text(bytes: &[u8], at: usize) -> String {
    let end = bytes[at..].iter().position(|&byte| byte == 0).unwrap();
    String::from_utf8_lossy(&bytes[at..at + end]).into_owned()
}

impl<'a> Elf<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        assert_eq!(&bytes[..6], b"\x7fELF\x02\x01");
        let table = |at: usize, entry: usize, count: usize| {
            let (start, size, count) = (
                index(u64_at(bytes, at)),
                usize::from(u16_at(bytes, entry)),
                usize::from(u16_at(bytes, count)),
            );
            (0..count).map(move |i| start + i * size)
        };
        let segment = |at| Segment {
            kind: u32_at(bytes, at),
            flags: u32_at(bytes, at + 4),
            offset: u64_at(bytes, at + 8),
            address: u64_at(bytes, at + 16),
            file_size: u64_at(bytes, at + 32),
            memory_size: u64_at(bytes, at + 40),
            align: u64_at(bytes, at + 48),
        };
        let mut sections: Vec<_> = table(40, 58, 60)
            .map(|at| Section {
                name: u32_at(bytes, at).to_string(),
                kind: u32_at(bytes, at + 4),
                flags: u64_at(bytes, at + 8),
                address: u64_at(bytes, at + 16),
                offset: u64_at(bytes, at + 24),
                size: u64_at(bytes, at + 32),
                link: u32_at(bytes, at + 40),
                info: u32_at(bytes, at + 44),
                align: u64_at(bytes, at + 48),
                entry_size: u64_at(bytes, at + 56),
            })
            .collect();
        let names = index(sections[usize::from(u16_at(bytes, 62))].offset);
        for section in &mut sections {
            section.name = text(bytes, names + section.name.parse::<usize>().unwrap());
        }
        Elf { bytes, segments: table(32, 54, 56).map(segment).collect(), sections }
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> &Section {
        let found = self.sections.iter().find(|section| section.name == name);
        found.unwrap_or_else(|| panic!("no section {name}"))
    }

    pub fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.kind == PT_LOAD)
    }

    fn count(&self, kind: u32) -> usize {
        self.segments.iter().filter(|segment| segment.kind == kind).count()
    }

    /// Returns the bytes in a range of memory, if the file loads any there.
    fn memory(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let load = self.loads().find(|load| {
            load.address <= range.start && range.end <= load.address + load.memory_size
        })?;
        let mut bytes = Vec::new();
        for address in range.clone() {
            let at = address - load.address;
            let in_file = || self.bytes.get(index(load.offset + at)).copied();
            bytes.push(if at < load.file_size { in_file()? } else { 0 });
        }
        Some(bytes)
    }

    fn contents(&self, section: &Section) -> &'a [u8] {
        if section.kind == SHT_NOBITS {
            &[]
        } else {
            &self.bytes[index(section.offset)..][..index(section.size)]
        }
    }

    fn device(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| is_device(section))
    }

    /// The addresses of pointers in wrappers.
    fn pointers(&self) -> Vec<u64> {
        let wrappers = self.sections.iter().filter(|section| is_wrappers(&section.name));
        wrappers
            .flat_map(|section| (0..section.size / 24).map(|i| section.address + i * 24 + 8))
            .collect()
    }
}

/// Sections of device code, of HIP and CUDA.
const DEVICE: [&str; 3] = [".hip_fatbin", ".nv_fatbin", "__nv_relfatbin"];

fn is_device(section: &Section) -> bool {
    DEVICE.contains(&section.name.as_str())
}

/// Returns whether a section of this name holds wrappers.
pub fn is_wrappers(name: &str) -> bool {
    name.starts_with(".hipFatBinSegment") || name == ".nvFatBinSegment"
}

/// Returns the complaints about the edited file.
pub fn compare(before: &[u8], after: &[u8]) -> Complaints {
    let (before, after) = (Elf::new(before), Elf::new(after));
    let mut complaints = Complaints::new();
    check_headers(&before, &after, &mut complaints);
    check_segments(&before, &after, &mut complaints);
    check_section_places(&before, &after, &mut complaints);
    check_sections(&before, &after, &mut complaints);
    complaints
}

fn check_headers(before: &Elf<'_>, after: &Elf<'_>, complaints: &mut Complaints) {
    // Only where section headers are and how many headers there are may differ.
    let fixed = [0..32, 48..56, 58..60];
    for range in fixed {
        if before.bytes[range.clone()] != after.bytes[range.clone()] {
            complaints.push(format!("the ELF header differs in bytes {range:?}"));
        }
    }
    if u64_at(after.bytes, 32) != u64_at(before.bytes, 32) {
        complaints.push("the program headers lie elsewhere".into());
    }
}

fn check_segments(before: &Elf<'_>, after: &Elf<'_>, complaints: &mut Complaints) {
    let headers = u64_at(after.bytes, 32);
    let headers_size = 56 * after.segments.len() as u64;
    let mut contents = after.sections.iter().filter(|section| section.kind != SHT_NOBITS);
    if let Some(section) = contents.find(|section| {
        section.offset < headers + headers_size && headers < section.offset + section.size
    }) {
        complaints.push(format!("program headers run over {}", section.name));
    }
    let mut end = 0;
    let mut file_ranges = Vec::new();
    for load in after.loads() {
        let align = load.align.max(PAGE);
        if load.address % align != load.offset % align {
            complaints.push(format!(
                "segment at {:#x}: offset {:#x} does not agree",
                load.address, load.offset
            ));
        }
        if load.address < end {
            complaints
                .push(format!("segment at {:#x}: starts before the one before ends", load.address));
        }
        if load.file_size == 0 && load.memory_size == 0 || load.file_size > load.memory_size {
            complaints.push(format!("segment at {:#x}: has no sensible size", load.address));
        }
        if load.offset + load.file_size > after.bytes.len() as u64 {
            complaints.push(format!("segment at {:#x}: ends beyond the file", load.address));
        }
        file_ranges.push(load.offset..load.offset + load.file_size);
        // Where there is no page of one kernel, there is none of any.
        end = load.address + load.memory_size;
    }
    file_ranges.sort_by_key(|range| range.start);
    for pair in file_ranges.windows(2) {
        if pair[0].end > pair[1].start {
            complaints.push(format!("segments overlap in the file at {:#x}", pair[1].start));
        }
    }
    // All else is as it was.
    let movable = [PT_LOAD, PT_INTERP, PT_NOTE, PT_GNU_PROPERTY, PT_PHDR];
    let fixed = |elf: &Elf<'_>| -> Vec<_> {
        let segments = elf.segments.iter().filter(|segment| !movable.contains(&segment.kind));
        segments.map(|segment| Segment { offset: 0, align: 0, ..segment.clone() }).collect()
    };
    if fixed(before) != fixed(after) {
        complaints.push("segments that are not loaded differ".into());
    }
    for kind in movable {
        let (count, count_after) = (before.count(kind), after.count(kind));
        if kind != PT_LOAD && count != count_after {
            complaints.push(format!("{count_after} segments of type {kind}, not {count}"));
        }
    }
    for segment in &after.segments {
        let inside = |load: &&Segment| {
            load.address <= segment.address
                && segment.address + segment.file_size <= load.address + load.file_size
                && segment.address - load.address + load.offset == segment.offset
        };
        if segment.kind != PT_LOAD && segment.file_size > 0 && after.loads().find(inside).is_none()
        {
            complaints
                .push(format!("segment of type {:#x} lies in none that is loaded", segment.kind));
        }
        if segment.kind == PT_PHDR && (segment.offset, segment.file_size) != (headers, headers_size)
        {
            complaints.push("PT_PHDR tells something else than the ELF header".into());
        }
    }
    // Writable stays writable and code stays code, at each address that a section has.
    for section in
        before.sections.iter().filter(|section| section.is_allocated() && section.size > 0)
    {
        let flags = |elf: &Elf<'_>| {
            let inside = |load: &&Segment| {
                (load.address..load.address + load.memory_size).contains(&section.address)
            };
            elf.loads().find(inside).map(|load| load.flags)
        };
        if !is_movable(section) && !is_device(section) && flags(before) != flags(after) {
            complaints.push(format!("{}: other access", section.name));
        }
    }
}

fn is_movable(section: &Section) -> bool {
    section.kind == SHT_NOTE || MOVABLE.iter().any(|(name, _)| *name == section.name)
}

/// Each section is where its segment has it, and over no other.
fn check_section_places(before: &Elf<'_>, elf: &Elf<'_>, complaints: &mut Complaints) {
    // LIEF leaves .bss so.
    let is_odd = |section: &Section| {
        section.is_allocated() && !section.address.is_multiple_of(section.align)
    };
    let odd = before.sections.iter().filter(|section| section.align > 1 && is_odd(section));
    let odd: Vec<&str> = odd.map(|section| section.name.as_str()).collect();
    let mut ranges = Vec::new();
    for section in elf.sections.iter().filter(|section| section.kind != 0) {
        if section.kind != SHT_NOBITS && section.size > 0 {
            ranges.push((section.offset..section.offset + section.size, &section.name));
        }
        if section.align > 1 && is_odd(section) && !odd.contains(&section.name.as_str()) {
            complaints.push(format!("{}: not aligned", section.name));
        }
        if !section.is_allocated() || section.kind == SHT_NOBITS {
            continue;
        }
        let inside = |load: &&Segment| {
            load.address <= section.address
                && section.address + section.size <= load.address + load.file_size
                && section.address - load.address + load.offset == section.offset
        };
        // An empty one may lie at a border.
        if section.size > 0 && elf.loads().find(inside).is_none() {
            complaints.push(format!("{}: lies in no segment that is loaded", section.name));
        }
    }
    let headers = u64_at(elf.bytes, 40);
    ranges.push((headers..headers + 64 * elf.sections.len() as u64, &elf.sections[0].name));
    ranges.sort_by_key(|(range, _)| range.start);
    for pair in ranges.windows(2) {
        if pair[0].0.end > pair[1].0.start {
            complaints.push(format!("{:?} runs over {:?}", pair[0].1, pair[1].1));
        }
    }
    if ranges.last().unwrap().0.end > elf.bytes.len() as u64 {
        complaints.push("a section or their headers lie beyond the end of the file".into());
    }
}

fn check_sections(before: &Elf<'_>, after: &Elf<'_>, complaints: &mut Complaints) {
    let others = |elf: &Elf<'_>| -> Vec<Section> {
        elf.sections.iter().filter(|section| !is_device(section)).cloned().collect()
    };
    let (sections, sections_after) = (others(before), others(after));
    let names = |sections: &[Section]| -> Vec<String> {
        sections.iter().map(|section| section.name.clone()).collect()
    };
    if names(&sections) != names(&sections_after) {
        complaints.push(format!("other sections: {:?}", names(&sections_after)));
        return;
    }
    if after.device().next().is_none() {
        complaints.push("no section with device code".into());
    }
    let device: Vec<_> = before.device().map(Section::addresses).collect();
    for (section, section_after) in sections.iter().zip(&sections_after) {
        let name = &section.name;
        let fixed = |section: &Section| {
            (section.kind, section.flags, section.size, section.align, section.entry_size)
        };
        if fixed(section) != fixed(section_after) && section.name != ".shstrtab" {
            complaints.push(format!("{name}: another section header"));
            continue;
        }
        let linked = |elf: &Elf<'_>, number: u32| {
            elf.sections.get(number as usize).map(|section| section.name.clone())
        };
        if linked(before, section.link) != linked(after, section_after.link) {
            complaints.push(format!("{name}: linked to another section"));
        }
        if section.address != section_after.address {
            if !is_movable(section) {
                complaints.push(format!(
                    "{name}: at {:#x}, not {:#x}",
                    section_after.address, section.address
                ));
                continue;
            }
            // Only to the start of the file, to where another that may move was, or to where device code was or is.
            let first = before.loads().map(|load| load.address).min().unwrap();
            let near_headers = section_after.address < section.address.max(first + PAGE);
            let in_another = before.sections.iter().any(|other| {
                let addresses = other.address..other.address + other.size;
                is_movable(other) && addresses.contains(&section_after.address)
            });
            let in_device = device.iter().any(|range| range.contains(&section_after.address));
            let beside_device = after.loads().any(|load| {
                let addresses = load.address..load.address + load.memory_size;
                addresses.contains(&section_after.address)
                    && after.device().any(|device| addresses.contains(&device.address))
            });
            if !near_headers && !in_another && !in_device && !beside_device {
                complaints.push(format!("{name}: moved to {:#x}", section_after.address));
            }
        }
        let moved = Moved { before, after };
        check_contents(&moved, section, section_after, complaints);
        if section.is_allocated() && section.flags & 0x400 == 0 {
            let (memory, memory_after) =
                (before.memory(&section.addresses()), after.memory(&section_after.addresses()));
            if memory.is_some() != memory_after.is_some() {
                complaints.push(format!("{name}: not in memory as it was"));
            } else if section.kind == SHT_NOBITS && memory != memory_after {
                complaints.push(format!("{name}: not zero"));
            }
        }
        let in_first_page = |section: &Section| section.offset + section.size <= PAGE;
        if name == ".note.gnu.build-id" && in_first_page(section) && !in_first_page(section_after) {
            complaints.push("the build ID is not in the first page any more".into());
        }
    }
}

/// Both files, to find out what has moved where.
struct Moved<'a> {
    before: &'a Elf<'a>,
    after: &'a Elf<'a>,
}

impl Moved<'_> {
    /// The new address of a section that starts at an address and can be moved.
    fn section(&self, address: u64, tag: u64) -> Option<u64> {
        let (name, _) = MOVABLE.iter().find(|(_, known)| *known == tag)?;
        let find = |elf: &Elf<'_>| {
            elf.sections.iter().find(|section| section.name == *name).map(|section| section.address)
        };
        (find(self.before)? == address).then(|| find(self.after))?
    }

    /// Names of the sections that symbols are in.
    fn section_names(&self) -> (BTreeMap<u16, String>, BTreeMap<u16, String>) {
        let names = |elf: &Elf<'_>| -> BTreeMap<u16, String> {
            elf.sections
                .iter()
                .enumerate()
                .map(|(i, section)| (u16::try_from(i).unwrap(), section.name.clone()))
                .collect()
        };
        (names(self.before), names(self.after))
    }
}

/// Compares contents, by what may differ in sections of the kind.
fn check_contents(
    moved: &Moved<'_>,
    section: &Section,
    section_after: &Section,
    complaints: &mut Complaints,
) {
    let name = &section.name;
    let (bytes, bytes_after) =
        (moved.before.contents(section), moved.after.contents(section_after));
    match section.kind {
        SHT_DYNAMIC => {
            for (entry, entry_after) in bytes.chunks(16).zip(bytes_after.chunks(16)) {
                let (tag, value) = (u64_at(entry, 0), u64_at(entry, 8));
                let expected = moved.section(value, tag).unwrap_or(value);
                if (u64_at(entry_after, 0), u64_at(entry_after, 8)) != (tag, expected) {
                    complaints.push(format!(
                        "{name}: tag {tag:#x} is {:#x}, not {expected:#x}",
                        u64_at(entry_after, 8)
                    ));
                }
            }
        }
        SHT_RELA => {
            let pointers = moved.before.pointers();
            for (entry, entry_after) in bytes.chunks(24).zip(bytes_after.chunks(24)) {
                let is_pointer = pointers.contains(&u64_at(entry, 0));
                if entry[..16] != entry_after[..16]
                    || entry[16..] != entry_after[16..] && !is_pointer
                {
                    complaints
                        .push(format!("{name}: the relocation of {:#x} differs", u64_at(entry, 0)));
                }
            }
        }
        SHT_SYMTAB | SHT_DYNSYM => {
            let (names, names_after) = moved.section_names();
            for (entry, entry_after) in bytes.chunks(24).zip(bytes_after.chunks(24)) {
                let (of, of_after) =
                    (names.get(&u16_at(entry, 6)), names_after.get(&u16_at(entry_after, 6)));
                let is_device = of.is_some_and(|name| DEVICE.contains(&name.as_str()));
                let moves = of.is_some_and(|name| {
                    moved
                        .before
                        .sections
                        .iter()
                        .any(|section| section.name == *name && is_movable(section))
                });
                let is_same = entry[..6] == entry_after[..6]
                    && of == of_after
                    && (is_device || moves || entry[8..] == entry_after[8..]);
                if !is_same {
                    complaints.push(format!("{name}: a symbol in {of:?} differs"));
                }
                // A symbol of what has moved is at the same place in it. Some have the number of a section and lie
                // elsewhere.
                let find = |elf: &Elf<'_>| {
                    elf.sections
                        .iter()
                        .find(|section| Some(&section.name) == of)
                        .map(Section::addresses)
                };
                let (Some(range), Some(range_after)) = (find(moved.before), find(moved.after))
                else {
                    continue;
                };
                let (value, value_after) = (u64_at(entry, 8), u64_at(entry_after, 8));
                let expected = if range.contains(&value) {
                    value - range.start + range_after.start
                } else {
                    value
                };
                if moves && value_after != expected {
                    complaints.push(format!(
                        "{name}: a symbol in {of:?} is at {value_after:#x}, not {expected:#x}"
                    ));
                }
            }
        }
        _ if is_wrappers(name) => {
            for (wrapper, wrapper_after) in bytes.chunks(24).zip(bytes_after.chunks(24)) {
                if wrapper[..8] != wrapper_after[..8] || wrapper[16..] != wrapper_after[16..] {
                    complaints.push(format!("{name}: a wrapper differs in more than its pointer"));
                }
            }
        }
        // Names of sections may be added.
        _ if name == ".shstrtab" && bytes_after.starts_with(bytes) => {}
        _ => {
            if bytes != bytes_after {
                complaints.push(format!("{name}: other contents"));
            }
        }
    }
    // The number of sections of a symbol table stays.
    if section.info != section_after.info && matches!(section.kind, SHT_SYMTAB | SHT_DYNSYM) {
        complaints.push(format!("{name}: another number of local symbols"));
    }
}
