//! Each byte of a file belongs to one row, whatever the file is.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod damaged;

use std::fs;
use std::io::Cursor;
use std::path::Path;

use device_account::{Account, Accountant, Amount, By, Copies, Rows};
use fat_object::{ErrorKind, Options, walk};
use oracles::accounts::check;
use samples::device::{CUBIN, FUNCTION, elf};
use samples::elf::{RELA, Section, progbits, section};
use samples::fatbin::{Made, fatbin, zstd};

fn options() -> Options {
    Options::default().with_max_decompressed(64 << 20)
}

fn account(file: &[u8]) -> Account {
    let mut accountant = Accountant::new().with_functions(true).with_hashes(true);
    walk(Cursor::new(file), &options(), &mut accountant).unwrap();
    accountant.finish(Cursor::new(file)).unwrap()
}

/// Returns the examples, with their names.
fn examples() -> Vec<(String, Vec<u8>)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let files = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn examples_add_up() {
    let (mut images, mut functions) = (0, 0);
    for (name, file) in examples() {
        println!("{name}");
        let account = check(&file);
        images += account.images().len();
        functions += account.images().iter().map(|image| image.functions.len()).sum::<usize>();
        let not_understood =
            account.rows(By::Kind).into_iter().find(|row| row.name == "not-understood");
        // Sources and assembly are text, which no GPU loads.
        let is_text = [".ll", ".hipi", ".s"].iter().any(|end| name.ends_with(end));
        let is_known = !account.images().is_empty() && !is_text;
        assert!(not_understood.is_none() || !is_known, "{name}: {not_understood:?}");
    }
    assert!(images > 50 && functions > 20, "{images} images, {functions} functions");
}

#[test]
fn copies_are_found() {
    let file = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hip.o")).unwrap();
    let one = account(&file);
    let copies = Copies::find([("a", &one), ("b", &one)]);
    let images = copies.iter().filter(|copies| copies.function.is_none());
    let wasted: Amount = images.map(Copies::wasted).sum();
    let all: Amount = one.images().iter().map(|image| image.amount()).sum();
    assert_eq!(wasted, all);
    let kernel = copies.iter().find(|copies| copies.function.is_some()).unwrap();
    assert!(kernel.copies.len() >= 2 && kernel.wasted().plain > 0);
    assert!(kernel.copies[0].place.starts_with("a "));
    assert!(Copies::find([("a", &one)]).iter().all(|copies| copies.function.is_some()));
}

#[test]
fn damaged_images_are_findings_and_no_copies() {
    let entry = |sm, code: &[u8]| Made {
        flags: 0x8000 | 1,
        size: 200,
        ..Made::cubin(sm, &[&[0x28, 0xb5, 0x2f, 0xfd], code].concat())
    };
    let file = fatbin(&[entry(80, b"\xff no block"), entry(80, b"\xff nor here")]);
    let account = check(&file);
    let findings: Vec<_> = account.findings().iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].starts_with("nv-fatbin:0 at byte 0x50: image 0: "), "{findings:?}");
    assert!(account.findings().iter().all(|one| one.error().kind() == ErrorKind::Image));
    assert!(account.images().iter().all(|image| image.hash.is_none()));
    assert_eq!(Copies::find([("a", &account), ("b", &account)]), []);

    // Larger than the walk may hold.
    let code = [0x55; 200];
    let file = fatbin(&[Made { payload: zstd(&code), ..entry(80, b"") }]);
    let mut accountant = Accountant::new();
    let options = options().with_max_decompressed(100);
    walk(Cursor::new(&file), &options, &mut accountant).unwrap();
    let account = accountant.finish(Cursor::new(&file)).unwrap();
    assert_eq!(account.findings()[0].error().kind(), ErrorKind::Limit);
    assert_eq!(Copies::find([("a", &account), ("b", &account)]), []);
}

/// Returns a cubin with two kernels of the same code, which call different functions.
fn cubin_with(relocations: &[(u32, u64)]) -> Vec<u8> {
    let code = |name| Section { flags: 6, ..progbits(name, &[0x55; 32]) };
    let mut sections = vec![code(".text.one"), code(".text.two"), code(".text.f"), code(".text.g")];
    for (of, symbol) in relocations {
        let relocation = samples::elf::elf(true, false).rela(*symbol);
        let info = *of;
        sections.push(Section { info, ..section(".rela.text", RELA, relocation) });
    }
    let symbols = ["one", "two", "f", "g"].into_iter().zip(1_u16..);
    let symbols: Vec<_> = symbols.map(|(name, at)| (name, FUNCTION, 0, at, 0, 32)).collect();
    elf(CUBIN, &sections, &symbols)
}

#[test]
fn functions_with_relocations_are_not_compared() {
    let copies = |relocations: &[(u32, u64)]| {
        let account = check(&fatbin(&[Made::cubin(80, &cubin_with(relocations))]));
        let functions = &account.images()[0].functions;
        assert_eq!(functions.len(), 4);
        let hashes: Vec<_> = functions.iter().map(|function| function.hash.is_some()).collect();
        let copies = Copies::find([("a", &account)]);
        let copies: Vec<_> = copies.iter().map(|copies| copies.copies.len()).collect();
        (hashes, copies)
    };
    assert_eq!(copies(&[]), (vec![true; 4], vec![4]));
    // The kernels refer to f and to g.
    assert_eq!(copies(&[(1, 3), (2, 4)]), (vec![false, false, true, true], vec![2]));
}

#[test]
fn hashes_of_functions_tell_code_and_constants_apart() {
    let cubin = |code: &[u8], constants: &[u8]| {
        let code = Section { flags: 6, ..progbits(".text.one", code) };
        let constants = Section { flags: 2, ..progbits(".nv.constant0.one", constants) };
        let file = elf(CUBIN, &[code, constants], &[("one", FUNCTION, 0, 1, 0, 8)]);
        check(&fatbin(&[Made::cubin(80, &file)])).images()[0].functions[0].hash.unwrap()
    };
    let hash = cubin(&[1; 16], &[2; 8]);
    assert_eq!(hash, cubin(&[1; 16], &[2; 8]));
    for other in [cubin(&[1; 8], &[2; 16]), cubin(&[2; 8], &[1; 16]), cubin(&[1; 16], &[3; 8])] {
        assert_ne!(hash, other);
    }
}

#[test]
fn sums_of_files_with_holes_are_bounded() {
    let half = Amount::new(1 << 63, 1 << 63);
    let sum: Amount = [half, half].into_iter().sum();
    assert_eq!((sum.stored, sum.plain), (u64::MAX, u64::MAX));
    let mut rows = Rows::default();
    (0..3).for_each(|_| rows.add("", "", half));
    assert_eq!(rows.into_all()[0].amount, sum);
}

#[test]
fn only_compressed_bytes_are_apportioned() {
    let told = |name: &str| {
        let (_, file) = examples().into_iter().find(|(other, _)| other == name).unwrap();
        account(&file).is_apportioned()
    };
    for (name, is_apportioned) in [
        ("hip-embedded.bc", false),
        ("hip.o", false),
        ("hip-two-units-ccob.so", true),
        ("cuda-fatbin.o", true),
    ] {
        assert_eq!(told(name), is_apportioned, "{name}");
    }
}
