//! Device images in no container, made from the fuzzer's bytes: what they say about themselves is read as it was written.

use arbitrary::{Result, Unstructured};
use fat_object::{ContainerKind, Listing, Options, image_target, list_slice};
use target_id::Target;

use crate::assert_message;
use samples::bits::{module, wide};

/// An image, and what is known about it.
struct Made {
    bytes: Vec<u8>,
    /// Triple and target ID.
    target: Option<(String, String)>,
    /// Bytes that may follow without any effect on the image.
    trailer: &'static [u8],
}

/// Makes an image that states a target; then any bytes, which state the same in an archive.
pub fn check(data: &[u8]) {
    drop(check_any(data));
    let u = &mut Unstructured::new(data);
    let Ok(Made { mut bytes, target, trailer }) = made(u) else { return };
    let named = |bytes: &[u8]| image_target(bytes).map(|target| names(&target));
    assert_eq!(named(&bytes), target, "{}", bytes.escape_ascii());
    let listing = check_any(&bytes);
    // PTX has to name its target, and a walk says if it does not.
    let is_complete = target.is_some() || !bytes.starts_with(b"//");
    assert_eq!(listing.findings().is_empty(), is_complete, "{}", bytes.escape_ascii());
    let [image] = listing.images() else { panic!("{} images", listing.images().len()) };
    assert_eq!(names(image.target()), target.clone().unwrap_or_default());
    bytes.extend(trailer);
    assert_eq!(named(&bytes), target, "with a trailer");
    for _ in 0..u.int_in_range(0..=4).unwrap_or(0) {
        let Ok(at) = u.choose_index(bytes.len()) else { break };
        bytes[at] = u.arbitrary().unwrap_or(0);
    }
    if u.arbitrary().unwrap_or(false) {
        bytes.truncate(u.int_in_range(0..=bytes.len()).unwrap_or(0));
    }
    drop(check_any(&bytes));
}

/// Checks any file: one image in no container is the whole file and has the target that it states, in an archive as
/// well.
fn check_any(bytes: &[u8]) -> Listing {
    let list = |bytes: &[u8]| {
        let listing = list_slice(bytes, &Options::default()).expect("memory does not fail");
        listing.findings().iter().for_each(assert_message);
        listing
    };
    let listing = list(bytes);
    let stated = image_target(bytes);
    if let [image] = listing.images()
        && image.container() == ContainerKind::File
        && image.path().is_empty()
    {
        assert_eq!(image.bytes_in(bytes), Some(bytes));
        assert_eq!(names(image.target()), stated.as_ref().map(names).unwrap_or_default());
        let len = bytes.len();
        let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{len:<10}`\n", "image.o/", 0, 0, 0, 644);
        let pad = if len % 2 == 1 { "\n" } else { "" };
        let archive = [b"!<arch>\n", header.as_bytes(), bytes, pad.as_bytes()].concat();
        let archived = list(&archive);
        let [member] = archived.images() else { panic!("{} images", archived.images().len()) };
        assert_eq!(
            (member.target(), member.format(), member.bytes_in(&archive)),
            (image.target(), image.format(), Some(bytes))
        );
        assert_eq!(archived.findings().len(), listing.findings().len());
    }
    listing
}

fn names(target: &Target) -> (String, String) {
    let triple = target.triple().map(ToString::to_string).unwrap_or_default();
    (triple, target.id().to_owned())
}

fn made(u: &mut Unstructured<'_>) -> Result<Made> {
    match u.int_in_range(0..=5)? {
        0 => spirv(u),
        1 => ptx(u),
        2 => amd(u),
        3 => cubin(u),
        4 => bitcode(u),
        _ => intel(u),
    }
}

/// Returns a module: capabilities, extensions, imports, a memory model, and any instructions.
fn spirv(u: &mut Unstructured<'_>) -> Result<Made> {
    let generator: u32 = *u.choose(&[0, 8 << 16, 0x6000e, 0xffff, 0x1_ffff])?;
    let minor = u.int_in_range(0..=6_u32)?;
    let mut words = vec![0x0723_0203, 1 << 16 | minor << 8, generator, u.arbitrary()?, 0];
    let mut instruction = |code: u32, operands: &[u32]| {
        let count = u32::try_from(operands.len() + 1).expect("short");
        words.push(count << 16 | code);
        words.extend(operands);
    };
    let mut capabilities = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let capability = *u.choose(&[1, 6, 4, 11, 5604])?;
        capabilities.push(capability);
        instruction(17, &[capability]);
    }
    for _ in 0..u.int_in_range(0..=2)? {
        let code = *u.choose(&[10, 11])?;
        instruction(code, &vec![u.arbitrary()?; u.int_in_range(1..=5)?]);
    }
    let addressing = *u.choose(&[0, 1, 2, 5348])?;
    instruction(14, &[addressing, u.int_in_range(0..=3)?]);
    for _ in 0..u.int_in_range(0..=3)? {
        instruction(u.int_in_range(0..=0xffff)?, &vec![u.arbitrary()?; u.int_in_range(0..=9)?]);
    }
    let is_shader = capabilities.contains(&1) && !capabilities.contains(&6);
    let (triple, id) = match addressing {
        _ if generator == 0xffff => ("spirv64-amd-amdhsa", "amdgcnspirv"),
        _ if is_shader => ("spirv-unknown-vulkan", ""),
        1 => ("spirv32-unknown-unknown", ""),
        2 => ("spirv64-unknown-unknown", ""),
        _ => ("spirv-unknown-unknown", ""),
    };
    let is_big = u.arbitrary()?;
    let bytes =
        words.iter().flat_map(|word| if is_big { word.to_be_bytes() } else { word.to_le_bytes() });
    Ok(Made { bytes: bytes.collect(), target: Some(pair(triple, id)), trailer: b"\0\0" })
}

/// Makes PTX: a comment, by which it is recognised, and directives among blanks and comments.
fn ptx(u: &mut Unstructured<'_>) -> Result<Made> {
    let mut text = "//\n".to_owned();
    let mut put = |u: &mut Unstructured<'_>, word: &str| {
        text += word;
        let between = [" ", "\n", "\t\r\n", " // .target sm_10\n", " /* sm_10, * / */ ", "/**/\n"];
        u.choose(&between).map(|blank| text += blank)
    };
    put(u, ".version 8.3")?;
    let id = *u.choose(&["sm_52", "sm_90a", "sm_100f", "sm_120"])?;
    let is_named = !u.ratio(1, 8)?;
    if is_named {
        put(u, ".target")?;
        let options = u.int_in_range(0..=2)?;
        put(u, &format!("{id}{}", if options > 0 { "," } else { "" }))?;
        for option in 0..options {
            put(u, if option + 1 < options { "debug," } else { "texmode_independent" })?;
        }
    } else {
        // Another directive would make it a text of another kind.
        put(u, "/**/")?;
    }
    let bits = *u.choose(&["64", "32"])?;
    let has_size = u.arbitrary()?;
    if has_size {
        put(u, ".address_size")?;
        put(u, bits)?;
    }
    put(u, ".visible")?;
    let triple = if has_size && bits == "32" { "nvptx-nvidia-cuda" } else { "nvptx64-nvidia-cuda" };
    let target = is_named.then(|| pair(triple, id));
    Ok(Made { bytes: text.into_bytes(), target, trailer: b".target sm_10" })
}

/// Name, number in the flags, and whether there are the features `sramecc` and `xnack`.
const AMD: [(&str, u32, bool, bool); 8] = [
    ("gfx803", 0x2a, false, false),
    ("gfx900", 0x2c, false, true),
    ("gfx906", 0x2f, true, true),
    ("gfx90a", 0x3f, true, true),
    ("gfx942", 0x4c, true, true),
    ("gfx1030", 0x36, false, false),
    ("gfx1100", 0x41, false, false),
    ("", 0xfe, false, false),
];
/// ISA versions of code objects of version 2.
const ISA: [([u32; 3], &str); 6] = [
    ([7, 0, 1], "gfx701"),
    ([8, 0, 0], "gfx802"),
    ([8, 0, 4], "gfx803"),
    ([9, 0, 0], "gfx900"),
    ([9, 0, 7], "gfx906:xnack+"),
    ([9, 0, 12], "gfx90c"),
];

/// Returns a code object of any version.
fn amd(u: &mut Unstructured<'_>) -> Result<Made> {
    let &(name, number, sramecc, xnack) = u.choose(&AMD)?;
    let bits = u.int_in_range(0..=15_u32)?;
    let abi = *u.choose(&[0x40, 0x40, 0x41, 0x42])?;
    let version = u.int_in_range(0..=4)?;
    // Compilers of version 2 did not name the processor at first: the lowest bit is `xnack`, the next a trap handler.
    let is_old = (abi, version) == (0x40, 0) && u.arbitrary()?;
    let flags = if is_old { u.int_in_range(0..=3)? } else { number | bits << 8 };
    let mut elf = Elf::new(2, 224, abi, version, flags);
    let mut id = if is_old { "" } else { name }.to_owned();
    if version >= 2 {
        for (feature, shift, is_there) in [("sramecc", 2, sramecc), ("xnack", 0, xnack)] {
            match bits >> shift & 3 {
                2 if is_there => id += &format!(":{feature}-"),
                3 if is_there => id += &format!(":{feature}+"),
                _ => {}
            }
        }
    }
    let mut notes = any_notes(u)?;
    if u.arbitrary()? {
        let &(isa, by_note) = u.choose(&ISA)?;
        let numbers: Vec<u8> =
            [7 << 16 | 4].iter().chain(&isa).flat_map(|number| number.to_le_bytes()).collect();
        notes.extend(note(b"AMD\0", 3, &[&numbers, &b"AMD\0AMDGPU\0"[..]].concat()));
        if (abi, version) == (0x40, 0) {
            let is_on = is_old && flags & 1 == 1 && ["gfx900", "gfx90c"].contains(&by_note);
            id = format!("{by_note}{}", if is_on { ":xnack+" } else { "" });
        }
    }
    if u.arbitrary()? {
        elf.segment(4, notes);
    } else {
        elf.section(7, notes);
    }
    let triple = match abi {
        0x40 => "amdgcn-amd-amdhsa",
        0x41 => "amdgcn-amd-amdpal",
        _ => "amdgcn-amd-mesa3d",
    };
    Ok(Made { bytes: elf.bytes(), target: Some(pair(triple, &id)), trailer: b"more" })
}

/// Returns a cubin of either layout of flags.
fn cubin(u: &mut Unstructured<'_>) -> Result<Made> {
    let number = *u.choose(&[52_u32, 75, 89, 90, 100, 120])?;
    let version = *u.choose(&[7, 8])?;
    let flags = if version == 7 { number << 16 | 0x500 | number } else { 0x600_0002 | number << 8 };
    let mut elf = Elf::new(2, 190, 0x33, version, flags);
    elf.section(1, vec![0; 8]);
    let mut records = vec![2, 3, u.arbitrary()?, 0, 4, 11, 2, 0, 2, 9];
    let is_special: bool = u.arbitrary()?;
    records.extend([2, 9, u8::from(is_special), 0]);
    let has_section = u.arbitrary()?;
    if has_section {
        elf.section(0x7000_0086, records);
    }
    let suffix = if has_section && is_special && number >= 90 { "a" } else { "" };
    let target = Some(pair("nvptx64-nvidia-cuda", &format!("sm_{number}{suffix}")));
    Ok(Made { bytes: elf.bytes(), target, trailer: b"more" })
}

/// Architecture, release and revision of Intel's GPUs, and their names; families of products, and theirs.
const IP_VERSIONS: [([u32; 3], &str); 4] = [
    ([12, 60, 7], "intel_gpu_pvc"),
    ([20, 1, 0], "intel_gpu_bmg_g21"),
    ([12, 74, 63], "intel_gpu_arl_h"),
    ([99, 255, 7], "intel_gpu_99_255_7"),
];
const FAMILIES: [(u32, &str); 3] = [(1270, "intel_gpu_dg2"), (1271, "intel_gpu_pvc"), (33, "")];

/// Returns an image of either class, with the notes in sections.
fn intel(u: &mut Unstructured<'_>) -> Result<Made> {
    let mut elf = Elf::new(*u.choose(&[1, 2])?, 205, 0, 0, 0);
    let mut notes = any_notes(u)?;
    let mut name = "";
    if u.arbitrary()? {
        let &(family, by_family) = u.choose(&FAMILIES)?;
        notes.extend(note(b"IntelGT\0", 1, &family.to_le_bytes()));
        name = by_family;
    }
    if u.arbitrary()? {
        let &([architecture, release, revision], by_version) = u.choose(&IP_VERSIONS)?;
        let number = architecture << 22 | release << 14 | revision;
        notes.extend(note(b"IntelGT\0", 6, &number.to_le_bytes()));
        name = by_version;
    }
    for _ in 0..u.int_in_range(0..=2)? {
        elf.section(7, b"metrics".to_vec());
    }
    elf.section(7, notes);
    elf.section(*u.choose(&[1, 0xff00_0011])?, b"a kernel".to_vec());
    let target = (!name.is_empty()).then(|| pair("spir64_gen-unknown-unknown", name));
    Ok(Made { bytes: elf.bytes(), target, trailer: b"more" })
}

/// Returns a module whose functions have lists of attributes; each list has one group, and some name a processor.
fn bitcode(u: &mut Unstructured<'_>) -> Result<Made> {
    const TRIPLES: [(&str, &str); 4] = [
        ("amdgcn-amd-amdhsa", "gfx90a"),
        ("nvptx64-nvidia-cuda", "sm_80"),
        ("r600-unknown-unknown", "cedar"),
        ("amdgpu9.0a-amd-amdhsa", "gfx90a"),
    ];
    let &(triple, name) = u.choose(&TRIPLES)?;
    let mut groups = Vec::new();
    let mut lists = Vec::new();
    for number in 1..=u.int_in_range(0..=4_u64)? {
        let of_function = u.ratio(4, 5)?;
        let mut group = vec![number, if of_function { 0xffff_ffff } else { 1 }];
        for _ in 0..u.int_in_range(0..=3)? {
            let form = u.int_in_range(0..=6_u64)?;
            group.push(form);
            match form {
                0 | 5 => group.push(u.int_in_range(0..=99)?),
                1 | 6 => group.extend([u.int_in_range(0..=99)?, u.arbitrary()?]),
                2 => {
                    // Not a form: what follows is not read.
                    group.extend(wide(b"\x04target-cpu\0other\0"));
                    break;
                }
                3 => group.extend(wide(b"target-cpu\0")),
                _ => group.extend(wide(b"target-features\0target-cpu\0")),
            }
        }
        let is_read = !group.ends_with(&wide(b"other\0"));
        let named = *u.choose(&[Some(name), Some("other"), None])?;
        if let Some(named) = named {
            group.push(4);
            group.extend(wide(format!("target-cpu\0{named}\0").as_bytes()));
        }
        lists.push(named.filter(|_| of_function && is_read));
        groups.push(group);
    }
    let mut names = Vec::new();
    let mut functions = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let is_declared: bool = u.arbitrary()?;
        let list = u.int_in_range(0..=lists.len() + 1)?;
        if !is_declared {
            names.push(list.checked_sub(1).and_then(|list| *lists.get(list)?));
        }
        functions.push([0, 1, 2, 0, u64::from(is_declared), 0, list as u64, 0]);
    }
    let id = match names.first() {
        Some(Some(first)) if names.iter().all(|name| *name == Some(first)) => first,
        _ => "",
    };
    let bytes = module(|module| {
        module.record(1, &[2]);
        module.block(4, 10, |block| groups.iter().for_each(|group| block.record(3, group).done()));
        let numbers = groups.iter().map(|group| group[0]);
        module.block(4, 9, |block| numbers.for_each(|group| block.record(2, &[group]).done()));
        module.record(2, &wide(triple.as_bytes()));
        functions.iter().for_each(|function| module.record(8, function).done());
    });
    Ok(Made { bytes, target: Some(pair(triple, id)), trailer: b"\0\0\0\0" })
}

fn pair(triple: &str, id: &str) -> (String, String) {
    (triple.to_owned(), id.to_owned())
}

/// Makes notes that do not name the target.
fn any_notes(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut notes = Vec::new();
    for _ in 0..u.int_in_range(0..=2)? {
        let (owner, kind) =
            *u.choose(&[(&b"GNU\0"[..], 3), (b"AMD\0", 1), (b"IntelGT\0", 4), (b"", 6)])?;
        let len = u.int_in_range(0..=20)?;
        notes.extend(note(owner, kind, u.bytes(len)?));
    }
    Ok(notes)
}

fn note(owner: &[u8], kind: u32, description: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for number in [owner.len() as u32, description.len() as u32, kind] {
        note.extend(number.to_le_bytes());
    }
    for part in [owner, description] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    note
}

/// An ELF file, little-endian.
struct Elf {
    class: u8,
    machine: u16,
    abi: u8,
    version: u8,
    flags: u32,
    /// Types and contents.
    segments: Vec<(u32, Vec<u8>)>,
    sections: Vec<(u32, Vec<u8>)>,
}

impl Elf {
    fn new(class: u8, machine: u16, abi: u8, version: u8, flags: u32) -> Self {
        Elf { class, machine, abi, version, flags, segments: Vec::new(), sections: Vec::new() }
    }

    fn segment(&mut self, kind: u32, contents: Vec<u8>) {
        self.segments.push((kind, contents));
    }

    fn section(&mut self, kind: u32, contents: Vec<u8>) {
        self.sections.push((kind, contents));
    }

    /// Returns the file: header, segments, contents of sections, and their headers: an empty one, the names, and the
    /// others.
    fn bytes(&self) -> Vec<u8> {
        let [header, segment, section] = if self.class == 1 { [52, 32, 40] } else { [64, 56, 64] };
        // A number of 32 bits in files of that class.
        let wide = |number: usize| match self.class {
            1 => (number as u32).to_le_bytes().to_vec(),
            _ => (number as u64).to_le_bytes().to_vec(),
        };
        let word = |number: u32| number.to_le_bytes().to_vec();
        let half = |number: usize| (number as u16).to_le_bytes().to_vec();
        let mut at = header + segment * self.segments.len();
        let mut contents: Vec<u8> = Vec::new();
        let mut place = |bytes: &[u8]| {
            let start = at;
            contents.extend(bytes);
            at += bytes.len();
            (start, bytes.len())
        };
        let names = place(b"\0");
        let segments: Vec<_> =
            self.segments.iter().map(|(kind, bytes)| (*kind, place(bytes))).collect();
        let mut sections = vec![(0, (0, 0)), (3, names)];
        sections.extend(self.sections.iter().map(|(kind, bytes)| (*kind, place(bytes))));
        let mut file = [b"\x7fELF", &[self.class, 1, 1, self.abi, self.version][..]].concat();
        file.resize(16, 0);
        file.extend([half(1), half(self.machine.into()), word(1), wide(0)].concat());
        let phoff = if segments.is_empty() { 0 } else { header };
        file.extend(
            [wide(phoff), wide(at), word(self.flags), half(header), half(segment)].concat(),
        );
        file.extend([half(segments.len()), half(section), half(sections.len()), half(1)].concat());
        for (kind, (start, len)) in segments {
            let [start, len, zero] = [wide(start), wide(len), wide(0)];
            let [kind, flags] = [word(kind), word(0)];
            file.extend(match self.class {
                1 => [kind, start, zero.clone(), zero.clone(), len.clone(), len, flags, zero]
                    .concat(),
                _ => [kind, flags, start, zero.clone(), zero.clone(), len.clone(), len, zero]
                    .concat(),
            });
        }
        file.extend(contents);
        for (kind, (start, len)) in sections {
            let parts = [word(0), word(kind), wide(0), wide(0), wide(start), wide(len)];
            file.extend([parts.concat(), word(0), word(0), wide(0), wide(0)].concat());
        }
        file
    }
}
