//! COFF, PE, Mach-O and WebAssembly files.

use samples::{example, find, longs, with};

use super::bundles::sample as plain;
use super::{Family, Form, Held, Truth, held, joined};

/// A COFF object for x86-64 with a bundle in `.hip_fatbin`, a name that lies in the string table, and `.text`.
fn coff_sample() -> (Vec<u8>, Vec<Held>) {
    let (contents, images) = plain();
    let data_at = 20 + 40 * 2;
    let symbols_at = data_at + 4 + contents.len();
    let mut bytes = [0x64, 0x86, 2, 0, 0, 0, 0, 0].to_vec();
    bytes.extend((symbols_at as u32).to_le_bytes());
    bytes.extend([0; 8]);
    let mut section = |name: &[u8; 8], size: usize, at: usize, flags: u32| {
        bytes.extend(name);
        for number in [0, 0, size as u32, at as u32, 0, 0, 0, flags] {
            bytes.extend(number.to_le_bytes());
        }
    };
    section(b".text\0\0\0", 1, data_at, 0x6050_0020);
    section(b"/4\0\0\0\0\0\0", contents.len(), data_at + 4, 0x4000_0040);
    bytes.extend(b"\xc3\0\0\0");
    bytes.extend(contents);
    bytes.extend(16_u32.to_le_bytes());
    bytes.extend(b".hip_fatbin\0");
    (bytes, images)
}

pub fn coff() -> Family {
    let mut family = Family::new("COFF objects", Form::Other);
    let (base, images) = coff_sample();
    let len = base.len() as u32;
    family.holds("as it should be", base.clone(), &images);
    let mut lies = |name: &str, at: usize, values: &[u32]| {
        for value in values {
            family.refused(format!("{name} {value:#x}"), with(&base, at, &value.to_le_bytes()));
        }
    };
    let wild = [1 << 31, u32::MAX - 3, u32::MAX];
    let section = 20 + 40;
    lies("symbols at", 8, &[&[len, len + 1][..], &wild].concat());
    lies("count of symbols", 12, &[&[2, 1 << 16][..], &wild].concat());
    lies("section at", section + 20, &[&[len - 1, len][..], &wild].concat());
    lies("section of size", section + 16, &[&[len, 20, 40][..], &wild].concat());
    let strings = base.len() - 16;
    lies("string table of size", strings, &[&[4, 8, 17, len][..], &wild].concat());
    for count in [5_u16, 0x7fff, 0xffff] {
        let bytes = with(&base, 2, &count.to_le_bytes());
        family.refused(format!("{count} sections"), bytes);
    }
    let large = with(&base, 16, &[0xff, 0xff]);
    family.part("optional header of 65535 bytes", large, &images);
    for name in [
        &b"/16\0\0\0\0\0"[..],
        b"/9999999",
        b"/-4\0\0\0\0\0",
        b"/x\0\0\0\0\0\0",
        b"//AAAAAA",
        b"//______",
    ] {
        let bytes = with(&base, section, name);
        family.part(format!("name {}", name.escape_ascii()), bytes, &images);
    }
    family.part("no sections", with(&base, 2, &[0, 0]), &images);
    let start = find(&base, b"__CLANG_OFFLOAD_BUNDLE__");
    family.refused("malformed bundle", with(&base, start + 24, &longs(&[1 << 32])));
    family.holds("relocations beyond the end", with(&base, section + 24, &[0xff; 4]), &images);
    family
}

fn mach_o_sample() -> (Vec<u8>, Vec<Held>) {
    let (contents, images) = plain();
    let size = contents.len() as u64;
    let data_at = 32 + 72 + 80;
    let mut bytes: Vec<u8> = [0xfeed_facf_u32, 0x0100_0007, 3, 1, 1, 152, 0, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    bytes.extend([0x19_u32, 152].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend([0; 16]);
    bytes.extend(longs(&[0, size, data_at, size]));
    bytes.extend([7_u32, 7, 1, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(b"__hip_fatbin\0\0\0\0__HIP\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend(longs(&[0, size]));
    bytes.extend([data_at as u32, 0, 0, 0, 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    assert_eq!(bytes.len() as u64, data_at);
    bytes.extend(contents);
    (bytes, images)
}

pub fn mach_o() -> Family {
    let mut family = Family::new("Mach-O files", Form::Other);
    let (base, images) = mach_o_sample();
    let len = base.len() as u32;
    family.holds("as it should be", base.clone(), &images);
    let wild = [1 << 31, u32::MAX - 7, u32::MAX];
    let mut lies = |name: &str, at: usize, values: &[u32]| {
        for value in values {
            family.refused(format!("{name} {value:#x}"), with(&base, at, &value.to_le_bytes()));
        }
    };
    lies("count of commands", 16, &[&[2, 1000][..], &wild].concat());
    lies("size of commands", 20, &[&[0, 8, 151, len][..], &wild].concat());
    lies("command of size", 36, &[&[0, 1, 4, 7, 8, 71, 151, 153, len][..], &wild].concat());
    lies("count of sections", 32 + 64, &[&[2, 100][..], &wild].concat());
    lies("section at", 32 + 72 + 48, &[&[len - 1, len][..], &wild].concat());
    for size in [u64::from(len), 1 << 32, 1 << 63, u64::MAX] {
        let bytes = with(&base, 32 + 72 + 40, &longs(&[size]));
        family.refused(format!("section of size {size:#x}"), bytes);
    }
    let start = find(&base, b"__CLANG_OFFLOAD_BUNDLE__");
    family.refused("malformed bundle", with(&base, start + 24, &longs(&[1 << 32])));

    // Universal: big-endian, the magic, the count, then type, subtype, offset, size and alignment of each slice.
    let fat = |count: u32, slices: &[[u32; 5]]| {
        let words: Vec<u32> =
            [0xcafe_babe, count].into_iter().chain(slices.iter().flatten().copied()).collect();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.resize(64, 0);
        [bytes, base.clone()].concat()
    };
    let slice = |at: u32, size: u32| [0x0100_0007, 3, at, size, 0];
    family.holds("universal, one slice", fat(1, &[slice(64, len)]), &images);
    for (name, at, size) in [
        ("beyond the end", 64, len + 1),
        ("at the end", len + 64, 1),
        ("of 4 GiB", 64, u32::MAX),
        ("that wraps round", u32::MAX, len),
        ("that is the file", 0, len + 64),
        ("that is a part of the headers", 8, 20),
        ("that is cut", 64, 100),
        ("that is cut in its first command", 64, 40),
    ] {
        let truth = match at {
            0 | 8 => Truth::Any,
            _ => Truth::Refused,
        };
        family.add(format!("universal, a slice {name}"), fat(1, &[slice(at, size)]), truth);
    }
    family.refused("universal, one slice twice", fat(2, &[slice(64, len), slice(64, len)]));
    family.refused("universal, slices that overlap", fat(2, &[slice(64, len), slice(65, len - 1)]));
    for count in [1000, 1 << 20, u32::MAX] {
        let bytes = fat(count, &[slice(64, len)]);
        family.part(format!("universal, {count} slices"), bytes, &images);
    }
    family
}

/// A number as WebAssembly has it.
fn leb128(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

pub fn wasm() -> Family {
    let mut family = Family::new("WebAssembly modules", Form::Other);
    let (contents, images) = plain();
    let name = b"\x0b.hip_fatbin";
    let module = |section: &[u8]| joined(&[b"\0asm\x01\0\0\0", section]);
    let custom = |len: &[u8], name: &[u8]| module(&[&[0][..], len, name, &contents].concat());
    let len = (name.len() + contents.len()) as u64;
    let base = custom(&leb128(len), name);
    family.holds("as it should be", base.clone(), &images);
    let wide = [len as u8 | 0x80, (len >> 7) as u8 | 0x80, 0x80, 0x80, 0];
    family.holds("length in more bytes than it needs", custom(&wide, name), &images);
    for more in [1, 2, 1 << 14, (1 << 31) - len, (1 << 32) - 1 - len] {
        let bytes = custom(&leb128(len + more), name);
        family.refused(format!("section {more} bytes too long"), bytes);
    }
    family.refused("section one byte too short", custom(&leb128(len - 1), name));
    family.refused("section of 2^32 bytes", custom(&leb128(1 << 32), name));
    family.refused("length that never ends", custom(&[0xff; 20], name));
    family.refused("length of six bytes", custom(&[0x80, 0x80, 0x80, 0x80, 0x80, 0], name));
    for name_len in [&b"\xff\xff\xff\xff\x0f"[..], b"\xff\xff\xff\xff\xff\xff", b"\xff\x7f"] {
        let name = [name_len, &name[1..]].concat();
        let bytes = custom(&leb128((name.len() + contents.len()) as u64), &name);
        family.refused(format!("name of length {}", name_len.escape_ascii()), bytes);
    }
    family.refused("half a section after the end", joined(&[&base, b"\0\x7f"]));
    family.refused("a byte after the end", joined(&[&base, b"\0"]));
    family.refused("malformed bundle", with(&base, 8 + 3 + 12 + 24, &longs(&[1 << 32])));
    let many = module(&[0, 1, 0].repeat(20_000));
    family.holds("twenty thousand sections", many, &[]);
    family.part("another version", with(&base, 4, &[0x0d, 0, 1, 0]), &images);
    family
}

pub fn pe() -> Family {
    let mut family = Family::new("PE images", Form::Other);
    let base = example("hip.dll");
    let images = super::damaged::images_of("hip.dll");
    let header = u32::from_le_bytes(base[0x3c..0x40].try_into().unwrap()) as usize;
    let optional = u16::from_le_bytes(base[header + 20..header + 22].try_into().unwrap());
    let sections = header + 24 + usize::from(optional);
    let section = sections + find(&base[sections..], b".hip_fat");
    let len = base.len() as u32;
    let mut lies = |name: &str, at: usize, values: &[u32]| {
        for value in values {
            family.refused(format!("{name} {value:#x}"), with(&base, at, &value.to_le_bytes()));
        }
    };
    let wild = [1 << 31, u32::MAX - 3, u32::MAX];
    lies("header at", 0x3c, &[&[1, 2, len - 4, len, len + 1][..], &wild].concat());
    lies("section at", section + 20, &[&[len, len + 1][..], &wild].concat());
    lies("section of size", section + 16, &[1, 8, 32]);
    for count in [20_u16, 0x7fff, 0xffff] {
        let bytes = with(&base, header + 6, &count.to_le_bytes());
        family.refused(format!("{count} sections"), bytes);
    }
    for size in [0_u16, 1, 23, 0x7fff, 0xffff] {
        let bytes = with(&base, header + 20, &size.to_le_bytes());
        family.refused(format!("optional header of {size} bytes"), bytes);
    }
    // The smaller of its two sizes is in memory.
    for size in [len, 1 << 31, u32::MAX] {
        let bytes = with(&base, section + 16, &size.to_le_bytes());
        family.part(format!("section of size {size:#x}"), bytes, &images);
    }
    let other = with(&base, header + 24, &0x10b_u16.to_le_bytes());
    family.part("optional header of 32 bits", other, &images);
    for magic in [0_u16, 0xffff] {
        let bytes = with(&base, header + 24, &magic.to_le_bytes());
        family.refused(format!("optional header's magic {magic:#x}"), bytes);
    }
    let bundle = find(&base, b"CCOB");
    for (name, at, value) in
        [("total size", 8, 1_u64 << 40), ("uncompressed size", 16, 1 << 40), ("hash", 24, 0)]
    {
        family.field(&format!("compressed bundle: {name}"), &base, bundle + at, &[value]);
    }
    family.add("DOS header alone", base[..64].to_vec(), Truth::Any);
    family.add("two bytes", b"MZ".to_vec(), Truth::Any);
    let tiny = [held("", b"")];
    family.part("MZ and nothing", [&b"MZ"[..], &[0; 62]].concat(), &tiny);
    family
}
