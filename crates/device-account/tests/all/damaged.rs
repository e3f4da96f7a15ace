//! Damaged tables of ELF images are findings, and their bytes are still in rows.

use device_account::Kind;
use fat_object::ErrorKind;
use oracles::accounts::check;
use samples::device::{CUBIN, FUNCTION, elf};
use samples::elf::{Section, progbits};
use samples::fatbin::{Made, fatbin};

const E_SHOFF: usize = 0x28;
const E_SHNUM: usize = 0x3c;
const E_SHSTRNDX: usize = 0x3e;
const SH_TYPE: usize = 4;
const SH_OFFSET: usize = 0x18;
const SH_SIZE: usize = 0x20;
const SH_LINK: usize = 0x28;

fn cubin() -> Vec<u8> {
    let code = Section { flags: 6, ..progbits(".text.one", &[0x55; 64]) };
    let data = Section { flags: 2, ..progbits(".nv.constant0.one", &[0x11; 64]) };
    elf(CUBIN, &[code, data], &[("one", FUNCTION, 0, 1, 0, 64)])
}

fn number(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(image[at..at + 8].try_into().unwrap())
}

/// Returns the place of a field of a section's header.
fn field(image: &[u8], section: usize, field: usize) -> usize {
    usize::try_from(number(image, E_SHOFF)).unwrap() + 64 * section + field
}

/// Changes a cubin, and returns what is found in a fatbinary with it, and how many of its bytes are not understood.
fn found(change: impl Fn(&mut Vec<u8>)) -> (Vec<String>, u64) {
    let mut image = cubin();
    change(&mut image);
    let account = check(&fatbin(&[Made::cubin(80, &image)]));
    let findings = account.findings().iter();
    let texts = findings.clone().map(ToString::to_string).collect();
    assert!(findings.clone().all(|one| one.error().kind() == ErrorKind::Image));
    let kinds = account.images()[0].kinds.iter();
    let lost = kinds.filter(|(kind, _)| *kind == Kind::NotUnderstood);
    (texts, lost.map(|(_, amount)| amount.stored).sum())
}

fn put(image: &mut [u8], at: usize, number: u64) {
    image[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

#[test]
fn sound_tables_are_not_findings() {
    assert_eq!(found(|_| ()), (Vec::new(), 0));
}

#[test]
fn section_headers_after_the_end_leave_nothing_understood() {
    let place =
        "nv-fatbin:0 at byte 0x50: image 0: 0x28: expected the offset of the section headers";
    let len = cubin().len() as u64;
    let (texts, lost) = found(|image| put(image, E_SHOFF, len));
    assert_eq!((texts, lost), (vec![format!("{place}, found {len:#x}")], len));
    let (texts, lost) = found(|image| image[E_SHNUM] = 0xff);
    assert_eq!((texts.len(), lost), (1, len));
    assert!(texts[0].starts_with(place), "{texts:?}");
}

#[test]
fn names_and_ends_of_sections_are_checked() {
    let (texts, lost) = found(|image| {
        let names = usize::from(image[E_SHSTRNDX]);
        let size = field(image, names, SH_SIZE);
        put(image, size, 1);
    });
    assert!(texts.len() == 1 && lost == 0, "{texts:?}");
    assert!(texts[0].contains("expected the offset of a name of a section, found 0x"), "{texts:?}");

    let (texts, lost) = found(|image| {
        let size = field(image, 1, SH_SIZE);
        put(image, size, 1 << 40);
    });
    assert_eq!((texts.len(), lost), (1, 0));
    let expected = "expected a section that ends in the image, found 0x10000000000";
    assert!(texts[0].ends_with(expected), "{texts:?}");
}

#[test]
fn symbols_need_names() {
    let (texts, lost) = found(|image| {
        let table = (0..6).find(|at| image[field(image, *at, SH_TYPE)] == 2).unwrap();
        let link = field(image, table, SH_LINK);
        image[link] = 1;
    });
    let expected = "expected symbols, whose names are in a section of strings, found 0x1";
    assert!(texts.len() == 1 && texts[0].ends_with(expected) && lost == 0, "{texts:?}");
}

#[test]
fn sections_do_not_share_bytes() {
    let (texts, lost) = found(|image| {
        let first = number(image, field(image, 1, SH_OFFSET));
        let second = field(image, 2, SH_OFFSET);
        put(image, second, first + 16);
    });
    assert!(texts.len() == 1 && lost == 0, "{texts:?}");
    assert!(texts[0].contains("expected the end of the section or table before it, found"));

    // The table of sections lies in the first section.
    let (texts, _) = found(|image| {
        let first = number(image, field(image, 1, SH_OFFSET));
        let (size, at) = (image.len() as u64 - first, field(image, 1, SH_SIZE));
        put(image, at, size);
    });
    assert!(texts.len() == 1 && texts[0].contains("before it, found"), "{texts:?}");

    // Tables for NVIDIA's driver are parts of other sections.
    let section = |name| Section { flags: 6, ..progbits(name, &[0x55; 64]) };
    let mut image = elf(CUBIN, &[section(".text.one"), section(".nv.merc.text.one")], &[]);
    let first = number(&image, field(&image, 1, SH_OFFSET));
    let second = field(&image, 2, SH_OFFSET);
    put(&mut image, second, first + 16);
    let account = check(&fatbin(&[Made::cubin(80, &image)]));
    assert!(account.findings().is_empty() && account.shared() == 48, "{:?}", account.findings());
}

#[test]
fn images_of_samples_with_damage_have_an_account() {
    let image = cubin();
    let mut faults = 0;
    samples::damage::judge(&image, |damaged| {
        faults += check(&fatbin(&[Made::cubin(80, damaged)])).findings().len();
    });
    assert!(faults > 0);
}
