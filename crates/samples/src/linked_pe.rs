//! PE libraries with device code, as linkers lay them out, made without a linker, and what a loader makes of them.

use std::ops::Range;

const BASE: u64 = 0x1_8000_0000;
/// Address at which the file is loaded.
const LOADED_AT: u64 = 0x12_3450_0000;
const PAGE: usize = 0x1000;
const FILE_ALIGNMENT: usize = 0x200;
const OPTIONAL: usize = 0x98;
const DIRECTORIES: usize = OPTIONAL + 112;
const TABLE: usize = OPTIONAL + 240;
const TEXT: usize = 0x1000;
const LOAD_CONFIG: usize = 0x1040;
const METADATA: usize = 0x1180;
const WRAPPERS: usize = 0x2000;
const DEVICE: usize = 0x3000;

fn words(words: &[usize]) -> Vec<u8> {
    words.iter().flat_map(|&word| (word as u32).to_le_bytes()).collect()
}

fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The names of the section of device code and of the section of wrappers, cut to eight bytes, the first word of a
/// wrapper, and the alignment.
type Registration = (&'static str, &'static str, usize, usize);
const HIP: Registration = (".hip_fat", ".hipFatB", 0x4849_5046, PAGE);
const CUDA: Registration = (".nv_fatb", ".nvFatBi", 0x4662_43b1, 8);

/// Returns a library whose section `.hip_fat` holds these units, each on pages of its own. A wrapper in `.hipFatB` leads to each.
#[must_use]
pub fn build(units: &[Vec<u8>]) -> Vec<u8> {
    build_for(&HIP, units, &[0xc3; 0x30], 0)
}

/// Returns the same as an ARM64EC file: its load configuration leads to a code map. All code is for x86-64.
#[must_use]
pub fn build_hybrid(units: &[Vec<u8>]) -> Vec<u8> {
    let mut code = vec![0xc3; 0x30];
    put(&mut code, LOAD_CONFIG - TEXT, &words(&[0x140]));
    put(&mut code, LOAD_CONFIG - TEXT + 200, &(BASE + METADATA as u64).to_le_bytes());
    put(&mut code, METADATA - TEXT, &words(&[1, METADATA + 12, 1, TEXT | 2, 0x1000]));
    build_for(&HIP, units, &code, LOAD_CONFIG)
}

/// Returns the same for fatbinaries in `.nv_fatb`.
#[must_use]
pub fn build_cuda(units: &[Vec<u8>]) -> Vec<u8> {
    build_for(&CUDA, units, &[0xc3; 0x30], 0)
}

/// Returns the same with these contents of `.text`, of a page at most.
#[must_use]
pub fn build_cuda_beside(units: &[Vec<u8>], text: &[u8]) -> Vec<u8> {
    assert!(text.len() <= PAGE);
    build_for(&CUDA, units, text, 0)
}

fn build_for(
    &(device_name, wrappers_name, magic, align): &Registration,
    units: &[Vec<u8>],
    code: &[u8],
    load_config: usize,
) -> Vec<u8> {
    let (mut device, mut wrappers) = (Vec::new(), Vec::new());
    let mut relocations = words(&[WRAPPERS, 8 + 2 * units.len().next_multiple_of(2)]);
    for (n, unit) in units.iter().enumerate() {
        let start = device.len().next_multiple_of(align);
        put(&mut device, start, unit);
        wrappers.extend(words(&[magic, 1]));
        wrappers.extend((BASE + (DEVICE + start) as u64).to_le_bytes());
        wrappers.extend([0; 8]);
        relocations.extend((0xa008 + 24 * n as u16).to_le_bytes());
    }
    relocations.resize(relocations.len().next_multiple_of(4), 0);
    let after = (DEVICE + device.len()).next_multiple_of(PAGE);
    let directory = words(&[after, relocations.len()]);
    let sections = [
        (".text\0\0\0", TEXT, code.to_vec(), 0x6000_0020),
        (wrappers_name, WRAPPERS, wrappers, 0x4000_0040),
        (device_name, DEVICE, device, 0x4000_0040),
        (".reloc\0\0", after, relocations, 0x4200_0040),
    ];

    let mut file = Vec::new();
    put(&mut file, 0, b"MZ");
    put(&mut file, 0x3c, &[0x80]);
    put(&mut file, 0x80, b"PE\0\0\x64\x86\x04\0");
    put(&mut file, 0x94, &[240, 0, 0x22, 0x20, 0x0b, 0x02]);
    put(&mut file, OPTIONAL + 24, &BASE.to_le_bytes());
    put(&mut file, OPTIONAL + 32, &words(&[PAGE, FILE_ALIGNMENT]));
    put(&mut file, OPTIONAL + 56, &words(&[after + PAGE, 0x400]));
    put(&mut file, OPTIONAL + 108, &words(&[16]));
    put(&mut file, DIRECTORIES + 5 * 8, &directory);
    if load_config > 0 {
        put(&mut file, DIRECTORIES + 10 * 8, &words(&[load_config, 0x140]));
    }
    let (mut raw_at, mut initialized) = (0x400, 0);
    for (n, (name, address, contents, flags)) in sections.iter().enumerate() {
        let raw_size = contents.len().next_multiple_of(FILE_ALIGNMENT);
        put(&mut file, TABLE + 40 * n, name.as_bytes());
        let header = words(&[contents.len(), *address, raw_size, raw_at, 0, 0, 0, *flags]);
        put(&mut file, TABLE + 40 * n + 8, &header);
        put(&mut file, raw_at, contents);
        raw_at += raw_size;
        initialized += if flags & 0x40 != 0 { raw_size } else { 0 };
        file.resize(raw_at, 0);
    }
    put(&mut file, OPTIONAL + 8, &words(&[initialized]));
    file
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Names and addresses of all sections.
fn sections(file: &[u8]) -> Vec<(String, Range<usize>)> {
    let header = |n: usize| {
        let at = TABLE + 40 * n;
        let name = String::from_utf8_lossy(&file[at..at + 8]).trim_end_matches('\0').to_owned();
        let start = u32_at(file, at + 12);
        (name, start..start + u32_at(file, at + 8))
    };
    (0..usize::from(file[0x86])).map(header).collect()
}

/// The memory of the loaded file, whose sections must follow each other in it and in the file.
fn load(file: &[u8]) -> Vec<u8> {
    let mut memory = vec![0; u32_at(file, OPTIONAL + 56)];
    let (mut next, mut raw_next) = (PAGE, u32_at(file, OPTIONAL + 60));
    for (n, (name, range)) in sections(file).iter().enumerate() {
        let (raw_size, raw_at) =
            (u32_at(file, TABLE + 40 * n + 16), u32_at(file, TABLE + 40 * n + 20));
        assert_eq!(range.start, next, "a gap before {name}");
        assert_eq!((raw_at, raw_size % FILE_ALIGNMENT), (raw_next, 0), "{name}");
        (next, raw_next) = (range.end.next_multiple_of(PAGE), raw_at + raw_size);
        let len = raw_size.min(next - range.start);
        memory[range.start..][..len].copy_from_slice(&file[raw_at..][..len]);
    }
    assert_eq!((next, raw_next), (memory.len(), file.len()));
    let directory = DIRECTORIES + 5 * 8;
    let start = u32_at(file, directory);
    for at in (start + 8..start + u32_at(file, directory + 4)).step_by(2) {
        let entry = usize::from(u16::from_le_bytes([memory[at], memory[at + 1]]));
        if entry >> 12 == 10 {
            let at = u32_at(&memory, start) + (entry & 0xfff);
            let moved = u64_at(&memory, at) - BASE + LOADED_AT;
            put(&mut memory, at, &moved.to_le_bytes());
        }
    }
    memory
}

/// Returns the memory that each wrapper leads to, up to where the next one leads or the section ends.
#[must_use]
pub fn registered(file: &[u8]) -> Vec<Vec<u8>> {
    let (memory, sections) = (load(file), sections(file));
    let named = |of: &&Registration| sections.iter().any(|(name, _)| name == of.1);
    let &(device_name, wrappers_name, magic, align) =
        [&HIP, &CUDA].into_iter().find(named).unwrap();
    let wrappers = sections.iter().find(|(name, _)| name == wrappers_name).unwrap().1.clone();
    let starts: Vec<_> = wrappers
        .step_by(24)
        .map(|at| {
            assert_eq!(memory[at..at + 8], words(&[magic, 1]));
            (u64_at(&memory, at + 8) - LOADED_AT) as usize
        })
        .collect();
    let unit = |&start: &usize| {
        assert_eq!(start % align, 0, "is aligned");
        let mut device = sections.iter().filter(|(name, _)| name == device_name);
        let section = device.find(|(_, range)| range.contains(&start)).unwrap().1.clone();
        let next = starts.iter().copied().filter(|&next| next > start).min();
        memory[start..next.unwrap_or(section.end).min(section.end)].to_vec()
    };
    starts.iter().map(unit).collect()
}

/// Checks that everything except headers, device code and the pointers to it is in memory where and what it was.
///
/// # Panics
///
/// If it is not.
pub fn check_same(old: &[u8], new: &[u8]) {
    let (before, after) = (load(old), load(new));
    for (name, range) in sections(old) {
        let same = |range: Range<usize>| before[range.clone()] == after[range];
        match &*name {
            ".hip_fat" | ".nv_fatb" => {}
            ".hipFatB" | ".nvFatBi" => assert!(range.step_by(24).all(|at| same(at..at + 8))),
            _ => assert!(same(range), "{name}"),
        }
    }
}
