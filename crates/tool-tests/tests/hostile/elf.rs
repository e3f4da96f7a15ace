//! ELF objects, executables and libraries.

use samples::binary::{amd, v1};
use samples::bundle::{GFX90A, GFX906, HOST, bundle};
use samples::elf::{LLVM_OFFLOADING, Section, section};
use samples::{elf, example, find, longs, with};

use super::bundles::sample as plain;
use super::{Family, Form, Held, Truth, WILD, held, joined};

const IMAGE: &[u8] = b"an image in a package in an object";

/// Offsets of the fields in a section's header.
const NAME: usize = 0;
const TYPE: usize = 4;
const FLAGS: usize = 8;
const OFFSET: usize = 24;
const SIZE: usize = 32;
const LINK: usize = 40;
const ALIGN: usize = 48;
const ENTSIZE: usize = 56;

/// A relocatable object for x86-64 with these sections: name, type, flags, contents.
fn object(sections: &[(&str, u32, u64, &[u8])]) -> Vec<u8> {
    let sections = sections.iter().map(|&(name, kind, flags, bytes)| Section {
        flags,
        align: 8,
        ..section(name, kind, bytes)
    });
    elf::object(sections.collect()).build()
}

pub fn section_object(sections: &[(String, Vec<u8>)]) -> Vec<u8> {
    let sections: Vec<(&str, u32, u64, &[u8])> =
        sections.iter().map(|(name, bytes)| (&**name, 1, 0x8000_0000, &**bytes)).collect();
    object(&sections)
}

/// An object in which clang embedded a package.
pub fn object_with_package(arch: &str) -> (Vec<u8>, Vec<Held>) {
    let package = amd(arch, IMAGE);
    let bytes = object(&[
        (".text", 1, 6, b"\xc3"),
        (".llvm.offloading", LLVM_OFFLOADING, 0x8000_0000, &package),
    ]);
    (bytes, vec![held(arch, IMAGE)])
}

fn object_with_bundles(contents: &[u8]) -> Vec<u8> {
    object(&[(".text", 1, 6, b"\xc3"), (".hip_fatbin", 1, 2, contents)])
}

/// Adds files with hostile ELF headers, whatever is in section 2 of 4.
fn headers(family: &mut Family, base: &[u8], images: &[Held]) {
    let len = base.len() as u64;
    let table = u64::from_le_bytes(base[40..48].try_into().unwrap());
    let at = |section: usize, field: usize| table as usize + section * 64 + field;

    let offsets = [1, 8, 63, table + 8, table + 64, len - 1, len, len + 1];
    family.field(
        "section headers at",
        base,
        40,
        &[&offsets[..], &WILD, &[u64::MAX - 255]].concat(),
    );
    family.part("no section headers", with(base, 40, &longs(&[0])), images);
    for size in [0_u16, 1, 40, 63, 65, 128, 0xffff] {
        family.refused(
            format!("section headers of {size} bytes"),
            with(base, 58, &size.to_le_bytes()),
        );
    }
    for count in [5_u16, 0x7fff, 0xfeff, 0xffff] {
        family.refused(format!("{count} section headers"), with(base, 60, &count.to_le_bytes()));
    }
    // None is the number in the first header's size; the table of names is in its link.
    let extended = with(base, 60, &[0, 0]);
    family.part("number of section headers is in none", extended.clone(), images);
    family.holds(
        "number of section headers elsewhere",
        with(&extended, at(0, SIZE), &longs(&[4])),
        images,
    );
    for count in [5_u64, 1 << 16, 1 << 26, (1 << 58) + 4, 1 << 63, u64::MAX] {
        let bytes = with(&extended, at(0, SIZE), &longs(&[count]));
        family.refused(format!("{count:#x} section headers, said elsewhere"), bytes);
    }
    for index in [0_u16, 1, 4, 0x7fff, 0xff00, 0xfffe] {
        family.part(
            format!("names in section {index}"),
            with(base, 62, &index.to_le_bytes()),
            images,
        );
    }
    let elsewhere = with(base, 62, &[0xff, 0xff]);
    family.holds(
        "names in a section said elsewhere",
        with(&elsewhere, at(0, LINK), &[3, 0, 0, 0]),
        images,
    );
    family.refused("names in section 2^32-1", with(&elsewhere, at(0, LINK), &[0xff; 4]));

    for name in [0x100_u32, 0x7fff_ffff, 0xffff_ffff] {
        let bytes = with(base, at(2, NAME), &name.to_le_bytes());
        family.refused(format!("name of the section at {name:#x}"), bytes);
        let bytes = with(base, at(1, NAME), &name.to_le_bytes());
        family.part(format!("name of another section at {name:#x}"), bytes, images);
    }
    family.refused("names beyond the end", with(base, at(3, OFFSET), &longs(&[len])));
    family.refused("names of 2^63 bytes", with(base, at(3, SIZE), &longs(&[1 << 63])));
    family.refused("names wrap round", with(base, at(3, OFFSET), &longs(&[u64::MAX - 3])));
    family.refused("names cut in the section's name", with(base, at(3, SIZE), &longs(&[8])));

    let own = u64::from_le_bytes(base[at(2, OFFSET)..at(2, OFFSET) + 8].try_into().unwrap());
    let offsets = [len - 1, len, len + 1];
    family.field("section at", base, at(2, OFFSET), &[&offsets[..], &WILD].concat());
    let wraps = [0_u64.wrapping_sub(own), 0_u64.wrapping_sub(own - 64)];
    family.field("section wraps round: size", base, at(2, SIZE), &wraps);
    let sizes = [len - own + 1, len, len + 1];
    family.field("section of size", base, at(2, SIZE), &[&sizes[..], &WILD].concat());
    family.field("section inside the headers: at", base, at(2, OFFSET), &[0, 8, 64 - 8, table]);
    for size in [1, 4, 8, 24, 31, 40] {
        let bytes = with(base, at(2, SIZE), &longs(&[size]));
        family.refused(format!("section cut to {size} bytes"), bytes);
    }
    // A scan finds what no section names.
    family.part("section of no bytes", with(base, at(2, SIZE), &longs(&[0])), images);
    family.part(
        "section without contents (NOBITS)",
        with(base, at(2, TYPE), &8_u32.to_le_bytes()),
        images,
    );
    for (name, field, value) in [
        ("link", LINK, 0xffff_u64),
        ("link and info", LINK, u64::MAX),
        ("alignment 3", ALIGN, 3),
        ("alignment 2^63", ALIGN, 1 << 63),
        ("alignment 2^64-1", ALIGN, u64::MAX),
        ("entries of 2^64-1 bytes", ENTSIZE, u64::MAX),
        ("all flags but compressed", FLAGS, !0x800),
    ] {
        family.holds(name, with(base, at(2, field), &longs(&[value])), images);
    }
    family.part("compressed, without a header", with(base, at(2, FLAGS), &longs(&[0x800])), images);
    for (name, place, byte) in [
        ("class 0", 4, 0),
        ("class 1 (32 bits)", 4, 1),
        ("class 3", 4, 3),
        ("byte order 0", 5, 0),
        ("the other byte order", 5, 2),
        ("version 0", 6, 0),
        ("type 0", 16, 0),
        ("a core file", 16, 4),
        ("unknown type", 17, 0xfe),
        ("unknown machine", 18, 0xff),
        ("code for AMD's GPUs", 18, 224),
    ] {
        family.part(name, with(base, place, &[byte]), images);
    }
    family.holds("program headers at 2^64-1", with(base, 32, &longs(&[u64::MAX])), images);
    let programs = with(&with(base, 32, &longs(&[u64::MAX])), 54, &[56, 0, 0xff, 0xff]);
    family.part("65535 program headers at 2^64-1", programs, images);
    family.holds("junk after the file", joined(&[base, b"junk"]), images);
}

pub fn packages() -> Family {
    let mut family = Family::new("ELF with packages", Form::PackageObject);
    let (base, images) = object_with_package("gfx906");
    headers(&mut family, &base, &images);
    let package = find(&base, b"\x10\xff\x10\xad");
    for (name, field, value) in [
        ("package of size", 8, 1_u64 << 40),
        ("entries of the package at", 16, 0),
        ("strings of the package:", 48, 1 << 60),
        ("image of the package at", 56, 1 << 40),
        ("image of the package of size", 64, 1 << 40),
        ("image of the package reaches into the next section: size", 64, 100),
        ("key of the package at", 72, 1 << 40),
    ] {
        family.field(name, &base, package + field, &[value]);
    }
    let section =
        |contents: &[u8]| object(&[(".llvm.offloading", LLVM_OFFLOADING, 0x8000_0000, contents)]);
    family.refused("no package", section(b"this is not a package"));
    family.refused("a byte", section(b"x"));
    let sound = v1(IMAGE, &[("arch", "gfx906")]);
    family.refused("junk after the package", section(&joined(&[&sound, b"junk"])));
    family.holds("zeros after the package", section(&joined(&[&sound, &[0; 64]])), &images);
    family.holds("zeros before the package", section(&joined(&[&[0; 64], &sound])), &images);
    let progbits = object(&[(".llvm.offloading", 1, 0x8000_0000, &sound)]);
    family.holds("in a section of another type", progbits, &images);
    let both = vec![(".llvm.offloading", LLVM_OFFLOADING, 0, &*sound); 300];
    family.holds("three hundred sections", object(&both), &vec![held("gfx906", IMAGE); 300]);
    // Two headers for the same bytes.
    let twice = object(&both[..2]);
    let table = u64::from_le_bytes(twice[40..48].try_into().unwrap()) as usize;
    let first = twice[table + 64 + OFFSET..table + 64 + OFFSET + 16].to_vec();
    family.refused("two sections at one place", with(&twice, table + 128 + OFFSET, &first));
    let empty = vec![("", 1, 0, &b""[..]); 60_000];
    family.holds("sixty thousand empty sections", object(&empty), &[]);
    family
}

pub fn bundles() -> Family {
    let mut family = Family::new("ELF with bundles", Form::BundleElf);
    let (contents, images) = plain();
    let base = object_with_bundles(&contents);
    headers(&mut family, &base, &images);
    let start = find(&base, b"__CLANG_OFFLOAD_BUNDLE__");
    let first = start + 32;
    for (name, at, value) in [
        ("count", start + 24, 1_u64 << 32),
        ("count one too large:", start + 24, 4),
        ("entry at", first, 1 << 40),
        ("entry of size", first + 8, 1 << 40),
        ("ID of length", first + 16, 1 << 40),
        ("ID of length", first + 16, 0),
    ] {
        family.field(name, &base, at, &[value]);
    }
    let last = start + 32 + 24 * 2 + HOST.len() + GFX906.len();
    family.field("last entry reaches into the next section: size", &base, last + 8, &[100]);
    family.field("last entry is the next section: at", &base, last, &[contents.len() as u64 + 16]);
    let padded = joined(&[&contents, &[0; 4000]]);
    family.holds("zeros after the end", object_with_bundles(&padded), &images);
    family.refused("junk after the end", object_with_bundles(&joined(&[&contents, b"junk"])));
    family.refused("no bundle", object_with_bundles(b"this is not a bundle"));
    let two = joined(&[&contents, &[0; 100], &contents]);
    family.holds("two bundles", object_with_bundles(&two), &[&images[..], &images].concat());
    let broken = joined(&[&contents, &with(&contents, 24, &longs(&[1 << 40]))]);
    family.refused("the second is malformed", object_with_bundles(&broken));

    family.form = Form::CompressedElf;
    let (packed, inside) = super::compressed::sample();
    family.holds("compressed", object_with_bundles(&packed), &inside);
    let two = joined(&[&packed, &[0; 100], &packed]);
    family.holds("compressed, two", object_with_bundles(&two), &[&inside[..], &inside].concat());
    for (name, at, value) in [
        ("compressed: total size", 8, 0_u64),
        ("compressed: total size", 8, 1 << 40),
        ("compressed: uncompressed size", 16, 1),
        ("compressed: uncompressed size", 16, 1 << 20),
        ("compressed: uncompressed size", 16, 1 << 45),
        ("compressed: hash", 24, 0),
    ] {
        let bytes = with(&packed, at, &longs(&[value]));
        family.refused(format!("{name} {value:#x}"), object_with_bundles(&bytes));
    }
    family
}

/// A library from a linker, with two bundles in `.hip_fatbin`.
pub fn linked() -> Family {
    let mut family = Family::new("linked libraries", Form::BundleElf);
    let library = example("hip-two-units.so");
    let start = find(&library, b"__CLANG_OFFLOAD_BUNDLE__");
    let second = start + 8192;
    assert!(library[second..].starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    for (name, bundle) in [("first", start), ("second", second)] {
        let host = bundle + 32;
        let device = host + 24 + HOST.len();
        let name = |what: &str| format!("{name} bundle: {what}");
        let counts = [0, 1, 3, 4, 1 << 20, 1 << 32, 1 << 63, u64::MAX];
        family.field(&name("count"), &library, bundle + 24, &counts);
        let offsets = [0, 8, 32, 8193, 1 << 20, 1 << 40, u64::MAX - 4095, u64::MAX];
        family.field(&name("image at"), &library, device, &offsets);
        let sizes = [1 << 20, 1 << 32, 1 << 63, 0_u64.wrapping_sub(4096), u64::MAX];
        family.field(&name("image of size"), &library, device + 8, &sizes);
        let lens = [0, 1 << 16, 1 << 32, 1 << 63, 0_u64.wrapping_sub(24), u64::MAX];
        family.field(&name("ID of length"), &library, device + 16, &lens);
        family.refused(name("no magic"), with(&library, bundle, b"X"));
    }
    let hidden = with(&library, start, &[0; 4000]);
    family.add("first bundle: zeros up to its image", hidden, Truth::Any);
    family
}

pub fn object_form() -> Family {
    let mut family = Family::new("objects in the object form", Form::ObjectSections);
    let name = |id: &str| format!("__CLANG_OFFLOAD_BUNDLE__{id}");
    let entry = |id: &str, bytes: &[u8]| (name(id), bytes.to_vec());
    let text = (".text".to_owned(), b"\xc3".to_vec());
    let base = section_object(&[text.clone(), entry(GFX906, b"device"), entry(HOST, b"\0")]);
    let images = [held(GFX906, b"device"), held(HOST, b"\0")];
    family.holds("as it should be", base.clone(), &images);
    let table = u64::from_le_bytes(base[40..48].try_into().unwrap()) as usize;
    let at = |section: usize, field: usize| table + section * 64 + field;
    let len = base.len() as u64;
    family.field("entry at", &base, at(2, OFFSET), &[&[len, len + 1][..], &WILD].concat());
    family.field("entry of size", &base, at(2, SIZE), &[&[len, len + 1][..], &WILD].concat());
    let own = u64::from_le_bytes(base[at(2, OFFSET)..at(2, OFFSET) + 8].try_into().unwrap());
    family.field("entry wraps round: size", &base, at(2, SIZE), &[0_u64.wrapping_sub(own)]);
    family.field("host at", &base, at(3, OFFSET), &[len, 1 << 32, u64::MAX]);
    family.holds(
        "empty entry",
        with(&base, at(2, SIZE), &longs(&[0])),
        &[held(GFX906, b""), images[1].clone()],
    );
    let twice =
        section_object(&[entry(GFX906, b"device"), entry(GFX906, b"other"), entry(HOST, b"\0")]);
    let both = [held(GFX906, b"device"), held(GFX906, b"other"), held(HOST, b"\0")];
    family.holds("one ID twice", twice, &both);
    let nothing = section_object(&[text, entry("", b"device"), entry(HOST, b"\0")]);
    family.add("an empty ID", nothing, Truth::Any);
    for id in ["x", "../../../../../../tmp/offload-hostile", "hip\u{1b}[2J", "a\nb"] {
        let bytes = section_object(&[entry(id, b"device"), entry(HOST, b"\0")]);
        family.holds(format!("ID {id:?}"), bytes, &[held(id, b"device"), held(HOST, b"\0")]);
    }
    let inside = bundle(&[(GFX90A, b"inside")], 1);
    let nested = section_object(&[entry(GFX906, &inside), entry(HOST, b"\0")]);
    let inner = Held { inner: true, ..held(GFX90A, b"inside") };
    family.holds(
        "a bundle in an entry",
        nested,
        &[held(GFX906, &inside), inner, held(HOST, b"\0")],
    );
    family
}
