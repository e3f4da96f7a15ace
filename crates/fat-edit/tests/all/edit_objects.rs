//! Edits of relocatable objects: real ones, and ELF built by hand in every class and byte order.

use crate::bundling;
use crate::editing::{code, hip_binary, images, plan_with, remove, surveyed};
use byte_parts::Part;
use fat_edit::HOST_PLACEHOLDER;
use fat_edit::{CompressOptions, EditOptions, Error, ErrorKind};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use offload_binary::{FormatVersion, ImageEntry, OffloadBinary, OffloadKind};
use samples::bundle::bundle;
use samples::damage::judge;
use samples::elf::*;
use samples::example;

const HOST: &str = samples::bundle::HOST;

/// Names of sections that hold device code; all of it in real objects.
const DEVICE: [&str; 3] = [".hip_fatbin", ".llvm.offloading", "__CLANG_OFFLOAD_BUNDLE__"];

/// Everything that a linker uses, except the contents of device code: name, flags, alignment, contents and relocations of
/// sections, and symbols.
fn host_part(file: &[u8]) -> Vec<String> {
    let file = object::File::parse(file).unwrap();
    let mut lines = Vec::new();
    for section in file.sections() {
        let name = section.name().unwrap();
        if name.starts_with(DEVICE[2]) {
            continue;
        }
        // The names of its sections are in it.
        let is_device = DEVICE.contains(&name) || name == ".strtab" || name == ".symtab";
        let contents = if is_device { &[][..] } else { section.data().unwrap() };
        let relocations = section.relocations().collect::<Vec<_>>();
        let (flags, align) = (section.flags(), section.align());
        lines.push(format!("{name} {flags:?} {align} {contents:?} {relocations:?}"));
    }
    for symbol in file.symbols() {
        let section = symbol.section_index().map(|i| file.section_by_index(i).unwrap());
        let section = section.map(|section| section.name().unwrap().to_owned());
        let (name, kind) = (symbol.name().unwrap(), symbol.kind());
        let is_device = DEVICE.contains(&name);
        let (value, size) = (symbol.address(), if is_device { 0 } else { symbol.size() });
        lines.push(format!("{name} {kind:?} {section:?} {value:#x} {size:#x}"));
    }
    lines
}

/// The object with the images whose indices are not these removed.
fn keep(file: &[u8], kept: &[usize]) -> Result<Vec<u8>, Error> {
    let plan = plan_with(file, EditOptions::default(), &[], |contents, edit| {
        for image in contents.images() {
            let is_host = image.id().is_some_and(|id| id.starts_with("host-"));
            if !kept.contains(&image.index()) && !is_host {
                edit.remove(image.index());
            }
        }
    });
    plan.map(|(_, out)| out)
}

/// Allows new images that are not code objects.
fn any_image() -> EditOptions {
    EditOptions::default().with_any_image(true)
}

fn compress(file: &[u8]) -> Vec<u8> {
    let edit = |_: &_, edit: &mut fat_edit::Edit| edit.compress(CompressOptions::default());
    plan_with(file, EditOptions::default(), &[], edit).unwrap().1
}

fn decompress(file: &[u8]) -> Vec<u8> {
    let edit = |_: &_, edit: &mut fat_edit::Edit| edit.decompress();
    plan_with(file, EditOptions::default(), &[], edit).unwrap().1
}

#[test]
fn any_image_of_a_real_object_can_be_kept() {
    for name in
        ["hip.o", "hip-ccob-v3.o", "hip.obj", "openmp-packager.o", "merged-packager.o", "bundle.o"]
    {
        let file = example(name);
        let all = images(&file);
        let is_host = |id: &str| id.starts_with("host-");
        let devices = (0..all.len()).filter(|&index| !is_host(&all[index].0)).collect::<Vec<_>>();
        for &kept in &devices {
            let result = match keep(&file, &[kept]) {
                // Two offload binaries: each keeps one.
                Err(error) if error.kind() == ErrorKind::Refused && name == "merged-packager.o" => {
                    continue;
                }
                result => result.unwrap_or_else(|error| panic!("{name} {kept}: {error}")),
            };
            let left = images(&result);
            let expected = all.iter().enumerate();
            let expected = expected.filter(|(i, (id, _))| *i == kept || is_host(id));
            assert!(left.iter().eq(expected.map(|(_, image)| image)), "{name} {kept}");
            let is_shorter = result.len() < file.len();
            let is_compressed = ["hip-ccob-v3.o", "hip.obj"].contains(&name);
            assert!(is_shorter || devices.len() == 1 || is_compressed, "{name} {kept}");
            assert!(host_part(&file) == host_part(&result), "{name} {kept}");
            // Again nothing, and narrower at once is the same as in two steps.
            let kept = left.iter().position(|(id, _)| !is_host(id)).unwrap();
            assert!(keep(&result, &[kept]).unwrap() == result, "{name}");
        }
        if devices.len() > 2 {
            let two = keep(&file, &devices[..2]).unwrap();
            let then = images(&two).iter().position(|(id, _)| !is_host(id)).unwrap();
            assert!(keep(&two, &[then]).unwrap() == keep(&file, &devices[..1]).unwrap(), "{name}");
        }
    }
}

#[test]
fn images_of_merged_offload_binaries_are_removed() {
    let file = example("merged-packager.o");
    let all = images(&file);
    assert_eq!(all.len(), 3);
    let result = keep(&file, &[0, 2]).unwrap();
    assert_eq!(images(&result), [all[0].clone(), all[2].clone()]);
    assert!(host_part(&file) == host_part(&result));
}

#[test]
fn decompressing_restores_real_objects() {
    for name in ["hip.o", "hip.obj"] {
        let file = decompress(&example(name));
        let compressed = compress(&file);
        assert!(compressed.len() < file.len(), "{name}");
        assert_eq!(images(&compressed), images(&file));
        assert!(host_part(&compressed) == host_part(&file), "{name}");
        assert!(decompress(&compressed) == file, "{name}");
        assert!(compress(&compressed) == compressed, "{name}");
    }
    let compressed = example("hip-ccob-v3.o");
    assert_eq!(images(&decompress(&compressed)), images(&compressed));
}

#[test]
fn images_of_any_size_take_the_place_of_others() {
    for name in ["hip.o", "hip.obj", "hip-packager.o", "bundle.o"] {
        let file = example(name);
        let all = images(&file);
        let index =
            all.iter().position(|(id, image)| !id.starts_with("host-") && !image.is_empty());
        let index = index.unwrap();
        for size in [0, 1, 4096, all[index].1.len() as u32, 50_001] {
            let new = code(3, size);
            let replace = |_: &_, edit: &mut fat_edit::Edit| edit.replace(index, 0);
            let (plan, out) = plan_with(&file, any_image(), &[&new], replace).unwrap();
            let mut expected = all.clone();
            expected[index].1.clone_from(&new);
            assert_eq!(images(&out), expected, "{name} {size}");
            assert!(host_part(&out) == host_part(&file), "{name} {size}");
            if new.len() != all[index].1.len() {
                continue;
            }
            // As long as before: nothing else changes.
            if let Some(start) = file.windows(new.len()).position(|w| w == &all[index].1[..]) {
                let mut expected = file.clone();
                expected[start..start + new.len()].copy_from_slice(&new);
                let is_coff = name == "hip.obj";
                assert!(out == expected || is_coff, "{name}");
                let copied = plan.parts().iter().all(|part| !matches!(part, Part::Zeros(_)));
                assert!(copied || is_coff);
            }
        }
    }
}

#[test]
fn most_of_an_object_is_copied() {
    let file = example("hip.o");
    let kept = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
        let gfx1100 = |id: &str| id.ends_with("gfx1100");
        let other = |i: &&fat_object::ImageInfo| !i.id().is_some_and(gfx1100) && i.size() > 0;
        contents.images().iter().filter(other).for_each(|image| edit.remove(image.index()));
    };
    let (plan, _) = plan_with(&file, EditOptions::default(), &[], kept).unwrap();
    let new = plan.parts().iter().map(|part| match part {
        Part::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    // The header of the bundle, those of sections that moved, and the file header.
    assert!(new.sum::<usize>() < 2500);
}

#[test]
fn removing_an_offload_binary_keeps_the_others() {
    let file = example("merged-packager.o");
    let options = EditOptions::default().with_allow_empty(true);
    let (_, out) = plan_with(&file, options, &[], |_, edit| edit.remove(0)).unwrap();
    assert_eq!(images(&out), images(&file)[1..]);
    assert!(host_part(&out) == host_part(&file));
}

/// Only its start shows what the section holds: bytes after a removed offload binary take its place, without zeros before
/// them.
#[test]
fn a_first_offload_binary_that_is_removed_leaves_no_zeros() {
    let package = |arch: &str| {
        let entry =
            ImageEntry::new(5).with_offload_kind(OffloadKind::HIP).with_string("arch", arch);
        offload_binary::layout(FormatVersion::V1, &[entry]).unwrap().to_vec(&[b"image"]).unwrap()
    };
    let sections =
        [package("gfx906"), vec![0; 6], package("gfx90a"), vec![0; 3], package("gfx1100")];
    for form in all_elf() {
        let mut form = form;
        form.sections.push(progbits(".any", &sections.concat()));
        let file = form.build();
        assert_eq!(images(&file).len(), 3);
        for kept in [1, 2] {
            let edited = keep(&file, &[kept]).unwrap();
            assert_eq!(images(&edited), images(&file)[kept..=kept]);
        }
    }
}

fn bundles() -> [Vec<u8>; 3] {
    [(1, 100), (2, 33), (3, 64)].map(|(seed, size)| {
        let (first, second) = (code(seed, size), code(seed + 10, 40));
        bundle(
            &[(HOST, b""), (samples::bundle::GFX906, &first), (samples::bundle::GFX1100, &second)],
            16,
        )
    })
}

const BUNDLES: u16 = 1;
const WRAPPERS: u16 = 2;
/// Offsets of the pointers to the bundles in the section of wrappers.
const POINTERS: [usize; 3] = [8, 32, 56];

/// Form of the pointers to bundles in the object built by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pointers {
    /// By the symbol of the section.
    Section,
    /// By a symbol for each.
    Symbols,
    /// By the symbol of the last one.
    Last,
}

/// An object with three bundles in a section, as a relocatable link makes it.
fn wrapped(form: &Elf, pointers: Pointers, explicit: bool) -> (Elf, [u64; 3]) {
    with_bundles(form, pointers, explicit, &bundles())
}

fn with_bundles(
    form: &Elf,
    pointers: Pointers,
    explicit: bool,
    bundles: &[Vec<u8>; 3],
) -> (Elf, [u64; 3]) {
    let mut form = form.clone();
    form.symbol_names = ["first", "second", "third", "end"].map(str::to_owned).to_vec();
    let mut fatbin = Vec::new();
    let starts = [0, 1, 2].map(|index: usize| {
        fatbin.resize(fatbin.len().next_multiple_of(64), 0);
        let start = fatbin.len() as u64;
        fatbin.extend(&bundles[index]);
        start
    });
    let ends = [0, 1, 2].map(|i| starts[i] + bundles[i].len() as u64);
    form.sections =
        [".hip_fatbin", ".hipFatBinSegment", ".rela.hipFatBinSegment", ".symtab", ".data"]
            .map(|name| progbits(name, b"other contents"))
            .to_vec();
    let symbols = [
        form.symbol("", 0, 0, 0),
        form.symbol("", 3, BUNDLES, 0),
        form.sized_symbol("first", BUNDLES, starts[0], ends[0] - starts[0]),
        form.sized_symbol("second", BUNDLES, starts[1], ends[1] - starts[1]),
        form.sized_symbol("third", BUNDLES, starts[2], 0),
        form.sized_symbol("end", BUNDLES, ends[2], 0),
    ];
    let mut segment = b"HIPF".repeat(18);
    let mut relocations = Vec::new();
    for (index, &at) in POINTERS.iter().enumerate() {
        let (symbol, addend) = match pointers {
            Pointers::Section => (1, starts[index] as i64),
            Pointers::Symbols => (2 + index as u64, 0),
            Pointers::Last => (4, starts[index] as i64 - starts[2] as i64),
        };
        let kind = if form.wide { 1 } else { 10 };
        relocations.extend(form.relocation(at as u64, symbol, kind, explicit.then_some(addend)));
        if !explicit {
            let addend = form.long(addend as u64);
            segment[at..at + addend.len()].copy_from_slice(&addend);
        }
    }
    let word = if form.wide { 8 } else { 4 };
    form.sections[0] = Section { align: 64, ..progbits(".hip_fatbin", &fatbin) };
    form.sections[1] = Section { align: word, ..progbits(".hipFatBinSegment", &segment) };
    form.sections[2] = Section {
        kind: if explicit { RELA } else { REL },
        align: word,
        link: 4,
        info: WRAPPERS.into(),
        ..progbits(".rela.hipFatBinSegment", &relocations)
    };
    form.sections[3] = Section {
        kind: SYMTAB,
        align: word,
        link: 6,
        info: 2,
        ..progbits(".symtab", &symbols.concat())
    };
    (form, starts)
}

/// Returns the offsets in the section of the bundles that the wrappers point to.
fn pointed_to(file: &[u8]) -> Vec<u64> {
    let file = object::File::parse(file).unwrap();
    let segment = file.section_by_name(".hipFatBinSegment").unwrap();
    let contents = segment.data().unwrap();
    let target = |(place, relocation): (u64, object::Relocation)| {
        let object::RelocationTarget::Symbol(symbol) = relocation.target() else { panic!() };
        let symbol = file.symbol_by_index(symbol).unwrap();
        let mut addend = relocation.addend();
        if relocation.has_implicit_addend() {
            let place = place as usize;
            let little = file.is_little_endian();
            addend = match (file.is_64(), little) {
                (true, true) => i64::from_le_bytes(contents[place..place + 8].try_into().unwrap()),
                (true, false) => i64::from_be_bytes(contents[place..place + 8].try_into().unwrap()),
                (false, true) => {
                    i32::from_le_bytes(contents[place..place + 4].try_into().unwrap()).into()
                }
                (false, false) => {
                    i32::from_be_bytes(contents[place..place + 4].try_into().unwrap()).into()
                }
            };
        }
        // In 32-bit files the addend is of 32 bits.
        let address = symbol.address().wrapping_add_signed(addend);
        if file.is_64() { address } else { address & 0xffff_ffff }
    };
    segment.relocations().map(target).collect()
}

fn symbol(file: &[u8], name: &str) -> (u64, u64) {
    let file = object::File::parse(file).unwrap();
    let symbol = file.symbol_by_name(name).unwrap();
    (symbol.address(), symbol.size())
}

fn fatbin(file: &[u8]) -> Vec<u8> {
    let file = object::File::parse(file).unwrap();
    file.section_by_name(".hip_fatbin").unwrap().data().unwrap().to_vec()
}

/// Names of sections, and contents of sections that do not change.
fn others(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let file = object::File::parse(file).unwrap();
    let contents = |section: object::Section<'_, '_>| {
        let name = section.name().unwrap().to_owned();
        let same = [".data", ".strtab"].contains(&&*name);
        (name, if same { section.data().unwrap().to_vec() } else { Vec::new() })
    };
    file.sections().map(contents).collect()
}

#[test]
fn wrappers_point_to_their_bundles_in_every_form() {
    for form in all_elf() {
        for pointers in [Pointers::Section, Pointers::Symbols, Pointers::Last] {
            for (explicit, table_first) in [(true, false), (false, false), (true, true)] {
                let (mut form, starts) = wrapped(&form, pointers, explicit);
                form.table_first = table_first;
                let file = form.build();
                assert_eq!(pointed_to(&file), starts, "{pointers:?}");
                let out = remove(&file, &[samples::bundle::GFX906]).unwrap();
                let all = images(&file);
                let left = all.iter().filter(|(id, _)| id != samples::bundle::GFX906).cloned();
                assert_eq!(images(&out), left.collect::<Vec<_>>());
                assert_eq!(others(&out), others(&file));
                let moved = pointed_to(&out);
                let contents = fatbin(&out);
                for (&start, image) in moved.iter().zip(images(&out).chunks(2)) {
                    assert_eq!(start % 64, 0);
                    let contents = &contents[start as usize..];
                    assert!(contents.starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
                    assert!(contents.windows(40).any(|window| window == image[1].1));
                }
                assert!(moved[1] < starts[1] && moved[2] < starts[2], "{pointers:?}");
                let end = contents.len() as u64;
                assert_eq!(
                    ["second", "third", "end"].map(|n| symbol(&out, n).0),
                    [moved[1], moved[2], end]
                );
                // The first image started at an aligned place, and the header is shorter without its entry.
                assert_eq!(symbol(&out, "first"), (0, bundles()[0].len() as u64 - symbol_cut()));
                assert_eq!(remove(&out, &[samples::bundle::GFX906]).unwrap(), out);
            }
        }
    }
}

#[test]
fn wrappers_point_to_their_offload_binaries() {
    // A binary of version 1 goes with its image: the first of a unit has to stay.
    for (version, kept) in [(FormatVersion::V1, 0), (FormatVersion::V2, 1)] {
        let units = [(1, 100), (2, 33), (3, 64)].map(|(seed, size)| {
            let images = [code(seed, size), code(seed + 10, 40)];
            let triple = "amdgcn-amd-amdhsa";
            let [first, second] = &images;
            hip_binary(version, &[(triple, "gfx906", first), (triple, "gfx1100", second)])
        });
        for form in all_elf() {
            for pointers in [Pointers::Section, Pointers::Symbols, Pointers::Last] {
                let (form, starts) = with_bundles(&form, pointers, true, &units);
                let file = form.build();
                assert_eq!(pointed_to(&file), starts);
                let out = keep(&file, &[kept, kept + 2, kept + 4]).unwrap();
                let (all, left) = (images(&file), images(&out));
                assert_eq!(left, [0, 2, 4].map(|first| all[first + kept].clone()));
                assert_eq!(others(&out), others(&file));
                for (start, image) in pointed_to(&out).into_iter().zip(left) {
                    let contents = &fatbin(&out)[start as usize..];
                    let binary = OffloadBinary::parse(contents).unwrap();
                    let entry = binary.entries().next().unwrap();
                    assert_eq!(entry.image(), Some(&image.1[..]), "{version} {pointers:?}");
                }
            }
        }
    }
}

/// Bytes that the first bundle loses.
fn symbol_cut() -> u64 {
    let shorter = bundle(&[(HOST, b""), (samples::bundle::GFX1100, &code(11, 40))], 16);
    (bundles()[0].len() - shorter.len()) as u64
}

#[test]
fn decompressing_restores_objects_of_every_form() {
    for form in all_elf() {
        for pointers in [Pointers::Section, Pointers::Symbols, Pointers::Last] {
            for explicit in [true, false] {
                // Bundles that compressing makes shorter.
                let bundles = [1, 2, 3].map(|seed| {
                    let image = [code(seed, 700), vec![seed as u8; 3000]].concat();
                    bundle(&[(HOST, b""), (samples::bundle::GFX906, &image)], 64)
                });
                let (mut form, starts) = with_bundles(&form, pointers, explicit, &bundles);
                form.trailing = b"more".to_vec();
                let file = form.build();
                assert_eq!(pointed_to(&file), starts);
                let compressed = compress(&file);
                assert!(compressed.len() < file.len());
                for start in pointed_to(&compressed) {
                    assert!(fatbin(&compressed)[start as usize..].starts_with(b"CCOB"));
                }
                assert!(decompress(&compressed) == file, "{pointers:?} {explicit}");
            }
        }
    }
}

/// The error of an edit that moves bundles, after a change of the object.
fn refused(change: impl Fn(&mut Elf)) -> Error {
    let mut form = wrapped(&elf(true, false), Pointers::Section, true).0;
    change(&mut form);
    let file = form.build();
    let error = remove(&file, &[samples::bundle::GFX906]).unwrap_err();
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 150, "{message}");
    error
}

#[test]
fn references_that_cannot_be_adjusted_are_refused() {
    let base = elf(true, false);
    let starts = wrapped(&base, Pointers::Section, true).1;
    let relocation = |addend: i64, kind| base.relocation(8, 1, kind, Some(addend));
    let with =
        |relocation: Vec<u8>| move |form: &mut Elf| form.sections[2].contents = relocation.clone();
    // Relative to its own place: R_X86_64_PC32.
    let error = refused(with(relocation(starts[1] as i64 - 4, 2)));
    assert!(error.to_string().contains("has the unknown type 2"), "{error}");
    // Into a bundle that changes, by a known form.
    let error = refused(with(relocation(starts[1] as i64 + 32, 1)));
    assert!(error.to_string().contains("bundle 1 must move, but"), "{error}");
    let error = refused(with(relocation(-8, 1)));
    assert!(error.to_string().contains("may refer to it"), "{error}");
    // By a symbol far away.
    let error = refused(with(base.relocation(8, 4, 2, Some(-100))));
    assert!(error.to_string().contains("has the unknown type"), "{error}");
    // A relocation in the device code itself.
    let error = refused(|form| form.sections[2].info = BUNDLES.into());
    assert_eq!(error.to_string(), "sections of device code with relocations cannot be edited");
    // A form that is not read.
    let error = refused(|form| form.sections[2].kind = 0x4000_0014);
    assert!(error.to_string().contains("compact relocations"), "{error}");
    // Without addend, at a place that does not exist.
    let error = refused(|form| {
        form.sections[2].kind = REL;
        form.sections[2].contents = base.relocation(80, 1, 1, None);
    });
    assert_eq!(
        error.to_string(),
        "relocation 0 of section 2 applies to 0x50, outside of any contents"
    );
}

#[test]
fn references_that_need_no_adjustment_are_allowed() {
    let base = elf(true, false);
    let starts = wrapped(&base, Pointers::Section, true).1;
    for relocation in [
        // To the first bundle, which stays where it is.
        base.relocation(8, 1, 2, Some(-4)),
        // By a symbol of its own.
        base.relocation(8, 3, 2, Some(-4)),
        base.relocation(8, 4, 4, Some(-4)),
    ] {
        let mut form = wrapped(&base, Pointers::Section, true).0;
        form.sections[2].contents = relocation.clone();
        let out = remove(&form.build(), &[samples::bundle::GFX906]).unwrap();
        let file = object::File::parse(&*out).unwrap();
        let segment = file.section_by_name(".rela.hipFatBinSegment").unwrap();
        assert_eq!(segment.data().unwrap(), relocation);
    }
    // Where nothing moves any form does: only the last bundle becomes shorter.
    let mut form = wrapped(&base, Pointers::Section, true).0;
    form.sections[2].contents = base.relocation(8, 1, 2, Some(starts[2] as i64 - 4));
    let file = form.build();
    let last = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
        edit.remove(contents.images().len() - 1);
    };
    plan_with(&file, EditOptions::default(), &[], last).unwrap();
}

#[test]
fn sections_beyond_the_end_and_shared_bytes_are_refused() {
    let error = refused(|form| {
        form.sections[0].contents.pop();
    });
    assert!(error.kind() == ErrorKind::Damaged, "{error}");
    let (form, _) = wrapped(&elf(true, false), Pointers::Section, true);
    let mut file = form.build();
    let sections = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    // `.data`, number 5, moved into `.hip_fatbin`; and far away.
    let at = sections + 5 * 64 + 24;
    file[at..at + 8].copy_from_slice(&100_u64.to_le_bytes());
    let error = remove(&file, &[samples::bundle::GFX906]).unwrap_err();
    assert_eq!(error.to_string(), "parts of the object at 0x64..0x72 share bytes with others");
    file[at..at + 8].copy_from_slice(&100_000_u64.to_le_bytes());
    let error = remove(&file, &[samples::bundle::GFX906]).unwrap_err();
    assert!(
        error.to_string().contains("section 5") || error.kind() == ErrorKind::Damaged,
        "{error}"
    );
}

#[test]
fn sections_of_a_bundle_are_changed_and_removed() {
    for form in all_elf() {
        let host = wrapped(&form, Pointers::Section, true).0.build();
        let file = bundling::add(
            &host,
            &[
                (HOST, HOST_PLACEHOLDER),
                ("hip-amdgcn-amd-amdhsa--gfx906", b"first"),
                ("hip-amdgcn-amd-amdhsa--gfx90a", b"second"),
                ("hip-amdgcn-amd-amdhsa--gfx1100", b""),
            ],
        );
        let count = images(&file).len();
        let edit = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
            for image in contents.images() {
                match image.id() {
                    Some("hip-amdgcn-amd-amdhsa--gfx906") => edit.remove(image.index()),
                    Some("hip-amdgcn-amd-amdhsa--gfx90a") => edit.replace(image.index(), 0),
                    Some("hip-amdgcn-amd-amdhsa--gfx1100") => edit.replace(image.index(), 1),
                    Some(samples::bundle::GFX906) => edit.remove(image.index()),
                    _ => {}
                }
            }
        };
        let new: [&[u8]; 2] = [b"a longer image than before", b"no longer empty"];
        let (_, out) = plan_with(&file, any_image(), &new, edit).unwrap();
        let left = images(&out);
        assert_eq!(left.len(), count - 4);
        let contents: Vec<&[u8]> = left.iter().rev().map(|(_, bytes)| &**bytes).collect();
        assert_eq!(contents[..3], [new[1], new[0], HOST_PLACEHOLDER]);
        let starts = pointed_to(&out);
        assert!(fatbin(&out)[starts[2] as usize..].starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
        // The rest is the host with its own device code edited.
        let alone = fat_edit::remove_bundle_sections(&out).unwrap();
        let expected = remove(&host, &[samples::bundle::GFX906]).unwrap();
        assert!(host_part(&alone) == host_part(&expected));
        assert_eq!(images(&alone), images(&expected));
    }
}

#[test]
fn sections_after_a_linked_file_are_changed_and_removed() {
    let library = example("hip-two-units.so");
    let entries: [(&str, &[u8]); 3] =
        [(HOST, HOST_PLACEHOLDER), ("hip-a--b-c", b"one"), ("hip-x---y", b"")];
    let file = bundling::add(&library, &entries);
    let edit = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
        for image in contents.images() {
            match image.id() {
                Some("hip-a--b-c") => edit.remove(image.index()),
                Some("hip-x---y") => edit.replace(image.index(), 0),
                _ => {}
            }
        }
    };
    let (_, out) = plan_with(&file, any_image(), &[b"new"], edit).unwrap();
    let mut expected = images(&file);
    let count = expected.len();
    expected[count - 1].1 = b"new".to_vec();
    expected.remove(count - 2);
    assert_eq!(images(&out), expected);
    // The loaded bytes are after the header, and are unchanged.
    let end = object::File::parse(&*library).unwrap();
    let end = end.segments().map(|s| s.file_range().0 + s.file_range().1).max();
    assert!(out[64..end.unwrap() as usize] == library[64..end.unwrap() as usize]);
    assert_eq!(images(&fat_edit::remove_bundle_sections(&out).unwrap()), images(&library));
    // Not together with what is loaded.
    let both = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
        edit.remove(contents.images().len() - 2);
        edit.replace(1, 0);
    };
    let error = plan_with(&file, any_image(), &[b"new"], both).unwrap_err();
    assert!(error.to_string().ends_with("cannot be edited"), "{error}");
    // A section of this name that is loaded.
    let form = Elf { table_first: false, ..elf(true, false) };
    let mut form = wrapped(&form, Pointers::Symbols, true).0;
    form.sections[4].name = "__CLANG_OFFLOAD_BUNDLE__hip-x---y".to_owned();
    let mut file = form.build();
    let sections = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    file[16] = 3;
    file[sections + 5 * 64 + 8] = 2; // SHF_ALLOC
    // A segment of the file header.
    let header = file.len() as u64;
    file.extend([[1_u32, 4].map(u32::to_le_bytes).concat(), vec![0; 24]].concat());
    file.extend([64_u64, 64, 8].map(u64::to_le_bytes).concat());
    file[32..40].copy_from_slice(&header.to_le_bytes());
    file[54..58].copy_from_slice(&[56, 0, 1, 0]);
    let error = remove(&file, &["hip-x---y"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "device code of linked ELF files that is loaded, in other sections than .hip_fatbin, cannot be edited"
    );
}

#[test]
fn damaged_objects_cause_no_panic() {
    let mut samples = Vec::new();
    for (wide, big) in [(false, true), (true, false)] {
        samples.push(wrapped(&elf(wide, big), Pointers::Last, big).0.build());
    }
    samples.push(bundling::add(&samples[0], &bundling::entries()));
    for sample in samples {
        judge(&sample, oracles::edits::check);
    }
}

/// Bytes that no table lists, where an object loses sections: after everything, and before the section headers.
#[test]
fn device_code_outside_sections_stays() {
    let bundle = bundle(&[(HOST, b""), (samples::bundle::GFX906, &code(3, 900))], 1);
    for name in ["bundle.o", "hip-packager.o", "openmp-packager.o"] {
        let object = example(name);
        let table = u64::from_le_bytes(object[40..48].try_into().unwrap()) as usize;
        let mut after = object.clone();
        after.resize(after.len().next_multiple_of(4096), 0);
        after.extend(&bundle);
        let mut before = object[..table].to_vec();
        before.resize(before.len().next_multiple_of(4096), 0);
        before.extend(&bundle);
        before.resize(before.len().next_multiple_of(8), 0);
        let moved = before.len() as u64;
        before[40..48].copy_from_slice(&moved.to_le_bytes());
        before.extend(&object[table..]);
        for file in [after, before] {
            let expected = images(&file).split_off(images(&object).len());
            assert_eq!(expected.len(), 2);
            let options = EditOptions::default().with_allow_empty(true).with_remove_host(true);
            let edit = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
                (0..contents.images().len() - 2).for_each(|index| edit.remove(index));
            };
            let (_, out) = plan_with(&file, options.clone(), &[], edit).unwrap();
            assert_eq!(images(&out), expected, "{name}");
            let at = surveyed(&out).containers()[0].location().offset();
            assert!(at.is_multiple_of(4096) && out.len() < file.len(), "{name}: {at:#x}");
            let parsed = object::File::parse(&*out).unwrap();
            assert!(Object::symbols(&parsed).count() > 0, "{name}");
            // There is nothing more to do.
            assert!(plan_with(&out, options, &[], edit).unwrap().0.is_unchanged());
        }
    }
}
