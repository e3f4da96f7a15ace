//! Edits of linked ELF files.

use crate::editing::*;
use fat_edit::{CompressOptions, EditNote, EditOptions, EditPlan, Error, ErrorKind};
use samples::bundle::{GFX90A, GFX906, GFX1100, HOST, bundle};
use samples::damage::judge_at;
use samples::linked::{self, AARCH64, EXEC, Header, Linked, Loaded, Pointers, Segment, Style};

const IDS: [&str; 3] = [GFX906, GFX90A, GFX1100];

/// Bundles with an image per target, of several pages.
fn bundles(count: u32) -> Vec<Vec<u8>> {
    let unit = |seed| {
        let codes: Vec<Vec<u8>> =
            (0..3).map(|n| code(seed * 3 + n, 9000 + 4500 * n + seed * 100)).collect();
        let entries = [(HOST, &b""[..])].into_iter();
        let entries: Vec<_> =
            entries.chain(IDS.into_iter().zip(codes.iter().map(Vec::as_slice))).collect();
        bundle(&entries, 4096)
    };
    (1..=count).map(unit).collect()
}

/// Files of all layouts that must come out well.
fn layouts() -> Vec<Linked> {
    let mut all = Vec::new();
    for count in [1, 3] {
        // The first segment holds nothing but headers.
        all.push(Linked {
            e_type: EXEC,
            pointers: Pointers::Plain,
            dynamic: false,
            note: false,
            ..Linked::new(Style::Third, bundles(count))
        });
    }
    for style in [Style::First, Style::Third] {
        for count in [1, 3] {
            let plain = Linked::new(style, bundles(count));
            all.push(Linked { interpreter: true, ..plain.clone() });
            all.push(Linked { after: false, ..plain.clone() });
            all.push(Linked { pointers: Pointers::Relr, hash: 6000, ..plain.clone() });
            all.push(Linked { pointers: Pointers::Symbols, symbols: false, ..plain.clone() });
            all.push(Linked {
                e_type: EXEC,
                pointers: Pointers::Plain,
                interpreter: true,
                ..plain.clone()
            });
            all.push(Linked { free_headers: 2, ..plain.clone() });
            for after in [0, 300] {
                all.push(Linked { loaded_headers: Some(after), ..plain.clone() });
            }
            all.push(Linked { machine: AARCH64, page: 0x10000, ..plain.clone() });
            all.push(plain);
        }
        // The second bundle has to stay.
        all.push(Linked { reference: Some(1), ..Linked::new(style, bundles(3)) });
    }
    all
}

fn others(kept: &str) -> Vec<&'static str> {
    IDS.into_iter().filter(|id| *id != kept).collect()
}

fn thin(file: &[u8], kept: &str) -> Vec<u8> {
    remove(file, &others(kept)).unwrap()
}

fn compress(file: &[u8]) -> Result<(EditPlan, Vec<u8>), Error> {
    plan_with(file, EditOptions::default(), &[], |_, edit| {
        edit.compress(CompressOptions::default());
    })
}

fn decompress(file: &[u8], grow: bool) -> Result<(EditPlan, Vec<u8>), Error> {
    let options = EditOptions::default().with_grow(grow);
    plan_with(file, options, &[], |_, edit| edit.decompress())
}

/// The images of these targets, and the host entries.
fn images_of(file: &[u8], ids: &[&str]) -> Vec<(String, Vec<u8>)> {
    let wanted = |id: &str| id == HOST || ids.contains(&id);
    images(file).into_iter().filter(|(id, _)| wanted(id)).collect()
}

/// Returns the images that the runtime finds by the wrappers, as a walk over those bundles sees them.
fn registered_images(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let loaded = Loaded::new(file);
    let section = |address: u64| -> Header {
        let sections = loaded.sections().into_iter();
        sections
            .filter(|s| s.name == ".hip_fatbin")
            .find(|s| (s.address..s.address + s.size).contains(&address))
            .unwrap()
    };
    let mut found = Vec::new();
    for address in loaded.registered() {
        assert_eq!(address % 4096, 0, "bundles start on pages");
        assert!(loaded.read(address, 4096).is_some(), "the first page can be read");
        let section = section(address);
        let size = section.address + section.size - address;
        let memory = loaded.read(address, size).unwrap();
        found.extend(images(&first_bundle(&memory)));
    }
    found
}

/// The first of some bundles one after the other.
fn first_bundle(bytes: &[u8]) -> Vec<u8> {
    let contents = surveyed(bytes);
    let ends = contents.containers().iter().map(fat_edit::EditableContainer::size);
    bytes[..ends.clone().next().unwrap() as usize].to_vec()
}

/// As [`linked::check_same`], and that links and segments are those of the same sections.
fn check_same(old: &[u8], new: &[u8]) {
    linked::check_same(old, new);
    let (old, new) = (Loaded::new(old), Loaded::new(new));
    assert_eq!(new.long(32), 64, "the table of program headers stays");
    let others = |file: &Loaded| -> Vec<(String, String)> {
        let sections = file.sections();
        let others = sections.iter().filter(|section| section.name != ".hip_fatbin");
        let linked = |section: &Header| sections[section.link as usize].name.clone();
        others.map(|section| (section.name.clone(), linked(section))).collect()
    };
    assert_eq!(others(&old), others(&new));
    let place = |file: &Loaded, name: &str| {
        file.sections().into_iter().find(|s| s.name == name).map(|s| (s.offset, s.address, s.size))
    };
    for (kind, name) in [(3, ".interp"), (4, ".note.gnu.build-id"), (2, ".dynamic"), (7, ".tdata")]
    {
        let segment = new.segments().into_iter().find(|segment| segment.kind == kind);
        assert_eq!(segment.map(|s| (s.offset, s.address, s.size)), place(&new, name));
    }
    check_symbols(&new);
}

/// Section symbols have the addresses of their sections, others the section that holds them.
fn check_symbols(file: &Loaded) {
    let sections = file.sections();
    for table in sections.iter().filter(|section| section.kind == 2 || section.kind == 11) {
        for at in (table.offset + 24..table.offset + table.size).step_by(24) {
            let (info, index) = (file.bytes[at as usize + 4], file.half(at + 6));
            let section = &sections[usize::from(index)];
            let value = file.long(at + 8);
            match info & 15 {
                3 if section.name != ".hip_fatbin" => assert_eq!(value, section.address),
                6 => assert_eq!(section.name, ".tdata"),
                _ => {
                    let range = section.address..section.address + section.size.max(1);
                    assert!(range.contains(&value), "symbol {value:#x} not in {section:?}");
                }
            }
        }
    }
}

#[test]
fn one_target_is_kept_in_every_layout() {
    for linked in layouts() {
        let file = linked.build();
        let before = images(&file);
        assert_eq!(registered_images(&file), before, "{linked:?}");
        for kept in IDS {
            let thinned = thin(&file, kept);
            check_same(&file, &thinned);
            assert_eq!(registered_images(&thinned), images_of(&file, &[kept]));
            assert_eq!(remove(&thinned, &others(kept)).unwrap(), thinned, "idempotent");
            let page = linked.page.max(4096) as usize;
            let gone: usize = before
                .iter()
                .filter(|(id, _)| others(kept).contains(&id.as_str()))
                .map(|(_, b)| b.len())
                .sum();
            let slack = (linked.bundles.len() + 1) * page + 2 * 4096 * linked.bundles.len();
            assert!(
                thinned.len() + gone <= file.len() + slack,
                "{gone} of {} in {kept}",
                file.len()
            );
        }
    }
}

#[test]
fn removing_in_two_steps_is_removing_at_once() {
    for linked in layouts() {
        let file = linked.build();
        let twice = remove(&remove(&file, &[GFX90A]).unwrap(), &[GFX1100]).unwrap();
        assert_eq!(twice, remove(&file, &[GFX90A, GFX1100]).unwrap());
    }
}

#[test]
fn decompressing_gives_back_what_was_compressed() {
    for linked in layouts() {
        let file = linked.build();
        let (plan, compressed) = compress(&file).unwrap();
        assert_eq!(plan.notes(), []);
        check_same(&file, &compressed);
        assert_eq!(registered_images(&compressed), images(&file));
        assert!(compressed.len() < file.len() || linked.page > 4096);
        assert_eq!(compress(&compressed).unwrap().1, compressed, "idempotent");
        assert!(decompress(&compressed, false).unwrap().1 == file, "{linked:?}");
        // Thinning what is compressed is compressing what is thin, except bundles that closed up for nothing else.
        let thinned = remove(&compressed, &[GFX906]).unwrap();
        let back = decompress(&thinned, false).unwrap().1;
        assert!(back == remove(&file, &[GFX906]).unwrap() || linked.page > 4096, "{linked:?}");
    }
}

#[test]
fn a_hole_at_the_end_needs_no_program_header() {
    for style in [Style::First, Style::Third] {
        let file = Linked { after: false, ..Linked::new(style, bundles(1)) }.build();
        let thinned = thin(&file, GFX906);
        let (old, new) = (Loaded::new(&file), Loaded::new(&thinned));
        assert_eq!(old.segments().len(), new.segments().len());
        assert_eq!(old.section(".gnu.hash"), new.section(".gnu.hash"));
    }
}

#[test]
fn bundles_are_packed_into_one_section() {
    for style in [Style::First, Style::Third] {
        let file = Linked::new(style, bundles(3)).build();
        let thinned = Loaded::new(&thin(&file, GFX906));
        let sections = thinned.sections();
        assert_eq!(sections.iter().filter(|s| s.name == ".hip_fatbin").count(), 1);
        assert_eq!(thinned.loads().len(), Loaded::new(&file).loads().len() + 1);
        let hip = thinned.section(".hip_fatbin");
        assert_eq!(thinned.registered(), [0, 4, 8].map(|page| hip.address + page * 4096));
    }
}

#[test]
fn a_bundle_that_code_refers_to_stays() {
    for style in [Style::First, Style::Third] {
        let file = Linked { reference: Some(1), ..Linked::new(style, bundles(3)) }.build();
        let new = Loaded::new(&thin(&file, GFX906));
        let before = Loaded::new(&file).registered();
        let after = new.registered();
        assert_eq!(before[..2], after[..2]);
        assert_eq!(after[2], after[1] + 4 * 4096, "the third closes up to the second");
        assert_eq!(new.sections().iter().filter(|s| s.name == ".hip_fatbin").count(), 2);
        assert_eq!(new.loads().len(), Loaded::new(&file).loads().len() + 2);
    }
}

#[test]
fn one_section_moves_and_the_note_follows_the_table() {
    let file = Linked { interpreter: true, ..Linked::new(Style::Third, bundles(1)) }.build();
    let new = Loaded::new(&thin(&file, GFX906));
    let headers = new.segments().len() as u64;
    assert_eq!(new.section(".interp").offset, 64 + 56 * headers);
    assert!(new.section(".note.gnu.build-id").offset < 4096);
    let hip = new.section(".hip_fatbin");
    let hash = new.section(".gnu.hash");
    assert_eq!(hash.address, (hip.address + hip.size).next_multiple_of(8));
    assert_eq!(new.section(".dynsym").address, Loaded::new(&file).section(".dynsym").address);
}

#[test]
fn free_room_for_headers_is_used_first() {
    let file = Linked { free_headers: 2, ..Linked::new(Style::Third, bundles(1)) }.build();
    let new = Loaded::new(&thin(&file, GFX906));
    assert_eq!(new.section(".gnu.hash"), Loaded::new(&file).section(".gnu.hash"));
}

#[test]
fn unremovable_bytes_of_a_static_program_become_zeros() {
    let linked = Linked {
        e_type: EXEC,
        dynamic: false,
        pointers: Pointers::Plain,
        ..Linked::new(Style::Third, bundles(1))
    };
    let file = linked.build();
    let (plan, thinned) = plan_with(&file, EditOptions::default(), &[], |contents, edit| {
        for image in contents.images() {
            if image.id().is_some_and(|id| others(GFX906).contains(&id)) {
                edit.remove(image.index());
            }
        }
    })
    .unwrap();
    let kept = 4096 + 9100_u64.next_multiple_of(4096);
    let all = linked.bundles[0].len() as u64 & !4095;
    assert_eq!(plan.notes(), [EditNote::Zeroed { bytes: all - kept }]);
    assert_eq!(thinned.len(), file.len());
    assert_eq!(registered_images(&thinned), images_of(&file, &[GFX906]));
    check_same(&file, &thinned);
    assert!(decompress(&compress(&file).unwrap().1, false).unwrap().1 == file);
}

#[test]
fn as_many_holes_are_made_as_there_is_room_for_headers() {
    // Pointers of an unknown form keep all bundles where they are.
    let linked = Linked { relocation: Some(6), ..Linked::new(Style::Third, bundles(90)) };
    let file = linked.build();
    let thinned = thin(&file, GFX906);
    check_same(&file, &thinned);
    assert_eq!(images(&thinned), images_of(&file, &[GFX906]));
    let (old, new) = (Loaded::new(&file), Loaded::new(&thinned));
    let holes = new.loads().len() - old.loads().len();
    assert!((60..90).contains(&holes), "{holes}");
    assert_eq!(new.sections().iter().filter(|s| s.name == ".hip_fatbin").count(), holes);
    assert!(new.section(".note.gnu.build-id").offset < 4060);
    // The next edit can start from that.
    let compressed = compress(&thinned).unwrap().1;
    check_same(&file, &compressed);
    assert!(decompress(&compressed, false).unwrap().1 == thinned);
}

#[test]
fn large_pages_become_small_where_that_is_safe() {
    for style in [Style::First, Style::Third] {
        let file = Linked { page: 0x20_0000, ..Linked::new(style, bundles(1)) }.build();
        let thinned = thin(&file, GFX906);
        check_same(&file, &thinned);
        assert!(thinned.len() + 0x6000 < file.len());
        // The first one tells what it was.
        let (first, others) = (0x20_0000, 4096);
        let aligned = |load: &Segment| if load.offset == 0 { first } else { others };
        assert!(Loaded::new(&thinned).loads().iter().all(|load| load.align == aligned(load)));
        let again = thin(&thinned, GFX906);
        assert!(again == thinned);
        let compressed = compress(&file).unwrap().1;
        assert!(compressed.len() < file.len());
        check_same(&file, &compressed);
        assert!(decompress(&compressed, false).unwrap().1 == file);
        // AArch64 has systems with such pages.
        let file = Linked { page: 0x10000, machine: AARCH64, ..Linked::new(style, bundles(1)) };
        let thinned = thin(&file.build(), GFX906);
        assert!(Loaded::new(&thinned).loads().iter().all(|load| load.align == 0x10000));
    }
}

/// A file whose bundles the compiler compressed.
fn compressed(linked: &Linked) -> Linked {
    let ccob = |bundle: &Vec<u8>| ccob::compress(bundle, &ccob::WriteOptions::default()).unwrap();
    Linked { bundles: linked.bundles.iter().map(ccob).collect(), ..linked.clone() }
}

#[test]
fn device_code_grows_only_when_it_may() {
    for linked in layouts() {
        if !linked.after || linked.reference.is_some() {
            continue;
        }
        let file = compressed(&linked).build();
        let error = decompress(&file, false).unwrap_err();
        assert!(error.to_string().contains("allow the file to grow"), "{error}");
        let (_, grown) = decompress(&file, true).unwrap();
        check_same(&file, &grown);
        assert_eq!(registered_images(&grown), images(&linked.build()), "{linked:?}");
        let new = Loaded::new(&grown);
        let last = new.loads().pop().unwrap();
        let hip = new.section(".hip_fatbin");
        assert_eq!((last.flags, last.address, last.offset), (4, hip.address, hip.offset));
        // Bundles that are edited again stay where they are now.
        let thinned = thin(&grown, GFX90A);
        check_same(&file, &thinned);
        assert_eq!(registered_images(&thinned), images_of(&grown, &[GFX90A]));
        assert_eq!(Loaded::new(&thinned).section(".hip_fatbin").address, hip.address);
        let again = compress(&grown).unwrap().1;
        check_same(&file, &again);
        assert!(decompress(&again, false).unwrap().1 == grown, "{linked:?}");
    }
}

#[test]
fn a_larger_image_closes_the_gap_again() {
    let file = Linked::new(Style::Third, bundles(1)).build();
    let thinned = thin(&file, GFX906);
    // It has to look like what the entry is for: LLVM bitcode.
    let code = |seed: u32, size: u32| [b"BC\xc0\xde".to_vec(), code(seed, size - 4)].concat();
    let image = code(99, 20_000);
    let replace = |file: &[u8], image: &[u8], grow| {
        let options = EditOptions::default().with_grow(grow);
        plan_with(file, options, &[image], |contents, edit| {
            let wanted = contents.images().iter().find(|i| i.id() == Some(GFX906)).unwrap();
            edit.replace(wanted.index(), 0);
        })
    };
    let (_, larger) = replace(&thinned, &image, false).unwrap();
    assert!(larger.len() > thinned.len());
    assert_eq!(registered_images(&larger)[1].1, image);
    check_same(&file, &larger);
    let huge = code(98, 60_000);
    let error = replace(&thinned, &huge, false).unwrap_err();
    assert!(error.to_string().contains("allow the file to grow"), "{error}");
    let (_, grown) = replace(&thinned, &huge, true).unwrap();
    assert_eq!(registered_images(&grown)[1].1, huge);
    check_same(&file, &grown);
    // An image of the same size: nothing else changes.
    let (plan, same) = replace(&file, &code(97, 9100), false).unwrap();
    assert_eq!(same.len(), file.len());
    let changed = same.iter().zip(&file).filter(|(a, b)| a != b).count();
    assert!(changed <= 9100, "{changed} {}", plan.size());
}

#[test]
fn an_empty_edit_changes_nothing() {
    for linked in layouts() {
        let file = linked.build();
        let (plan, out) = plan_with(&file, EditOptions::default(), &[], |_, _| ()).unwrap();
        assert!(plan.is_unchanged() && out == file);
    }
}

#[test]
fn a_member_of_an_archive_is_edited_as_a_file() {
    let file = Linked::new(Style::First, bundles(2)).build();
    let archive = |member: &[u8]| {
        let mut bytes = Vec::new();
        let mut builder = ar::Builder::new(&mut bytes);
        for (name, member) in [("odd", &b"other"[..]), ("lib.so", member)] {
            let header = ar::Header::new(name.into(), member.len() as u64);
            builder.append(&header, member).unwrap();
        }
        bytes
    };
    assert_eq!(thin(&archive(&file), GFX906), archive(&thin(&file, GFX906)));
}

#[test]
fn bytes_after_the_section_headers_stay() {
    let linked = Linked::new(Style::Third, bundles(1));
    let mut file = linked.build();
    file.extend(b"appended");
    let thinned = thin(&file, GFX906);
    assert!(thinned.ends_with(b"appended"));
    check_same(&file, &thinned);
    assert!(decompress(&compress(&file).unwrap().1, false).unwrap().1 == file);
}

/// Changes bytes of the file, and tries to remove all but one target.
/// As patchelf 0.19 leaves them: nobody reads section headers in memory, but what follows them there.
#[test]
fn section_headers_in_a_segment_change_in_their_place() {
    let linked = Linked { loaded_headers: Some(300), ..Linked::new(Style::Third, bundles(3)) };
    let is_referred_to = Linked { reference: Some(1), ..linked.clone() };
    for (linked, grows) in [(linked, false), (is_referred_to, true)] {
        let file = linked.build();
        let thinned = thin(&file, GFX906);
        let (old, new) = (Loaded::new(&file), Loaded::new(&thinned));
        let (last, new_last) = (old.loads().pop().unwrap(), new.loads().pop().unwrap());
        assert_eq!((last.address, last.size), (new_last.address, new_last.size));
        let after = |file: &Loaded| file.read(last.address + last.size - 300, 300);
        assert_eq!(after(&old), after(&new));
        assert_eq!(old.long(40), last.offset);
        // A gap on both sides of the bundle that stays needs two sections more.
        let is_larger = new.half(60) > old.half(60);
        assert_eq!((is_larger, new.long(40) != new_last.offset), (grows, grows));
    }
}

fn refused(file: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Error {
    let mut file = file.to_vec();
    change(&mut file);
    remove(&file, &others(GFX906)).unwrap_err()
}

fn sample() -> Vec<u8> {
    Linked::new(Style::Third, bundles(2)).build()
}

/// The offset of the header of a section.
fn header_of(file: &[u8], name: &str) -> usize {
    let loaded = Loaded::new(file);
    let n = loaded.sections().iter().position(|section| section.name == name).unwrap();
    loaded.long(40) as usize + 64 * n
}

/// The offset of the nth loadable segment's header.
fn load_header(file: &[u8], n: usize) -> usize {
    let loaded = Loaded::new(file);
    let loads = loaded.segments().into_iter().enumerate().filter(|(_, segment)| segment.kind == 1);
    64 + 56 * loads.map(|(index, _)| index).nth(n).unwrap()
}

#[test]
fn another_machine_is_refused() {
    let error = refused(&sample(), |file| file[18] = 243);
    assert!(error.to_string().contains("unsupported ELF: neither x86-64 nor AArch64"), "{error}");
}

#[test]
fn the_other_byte_order_and_class_are_refused() {
    // The walk finds nothing in them, or damage.
    for change in [(4, 1), (5, 2)] {
        refused(&sample(), |file| file[change.0] = change.1);
    }
}

#[test]
fn an_extended_program_header_count_is_refused() {
    let error = refused(&sample(), |file| file[56..58].fill(0xff));
    assert!(error.to_string().contains("unsupported ELF: "), "{error}");
}

#[test]
fn a_file_without_section_headers_is_not_edited() {
    let error = refused(&sample(), |file| {
        file[40..48].fill(0);
        file[60..64].fill(0);
    });
    // A scan finds the bundles.
    assert!(error.to_string().contains("containers that only a scan finds"), "{error}");
}

#[test]
fn overlapping_segments_are_refused() {
    let file = sample();
    let at = load_header(&file, 1);
    let error =
        refused(&file, |file| file[at + 40..at + 48].copy_from_slice(&0x9000_u64.to_le_bytes()));
    assert!(error.to_string().contains("inconsistent program headers: "), "{error}");
    let error = refused(&file, |file| {
        for field in [32, 40] {
            file[at + field..at + field + 8].copy_from_slice(&0x1100_u64.to_le_bytes());
        }
    });
    assert!(error.to_string().contains("inconsistent program headers: "), "{error}");
}

#[test]
fn a_segment_on_other_pages_than_its_bytes_is_refused() {
    let file = sample();
    let at = load_header(&file, 3);
    let error = refused(&file, |file| file[at + 8] ^= 8);
    assert!(error.to_string().contains("inconsistent program headers: "), "{error}");
}

#[test]
fn a_segment_beyond_the_end_is_refused() {
    let file = sample();
    let at = load_header(&file, 3);
    let error = refused(&file, |file| file[at + 35] = 1);
    assert!(error.to_string().contains("a segment lies at "), "{error}");
}

#[test]
fn device_code_outside_of_the_segments_is_refused() {
    let file = sample();
    let at = header_of(&file, ".hip_fatbin");
    let error = refused(&file, |file| file[at + 20] = 1);
    assert!(error.to_string().contains("inconsistent program headers: "), "{error}");
    let error = refused(&file, |file| file[at + 8] = 0);
    assert!(error.to_string().contains("inconsistent program headers: "), "{error}");
}

#[test]
fn another_section_between_bundles_is_refused() {
    let file = sample();
    let hip = Loaded::new(&file).section(".hip_fatbin");
    let at = header_of(&file, ".rodata");
    let error = refused(&file, |file| {
        file[at + 16..at + 24].copy_from_slice(&(hip.address + 0x5000).to_le_bytes());
    });
    assert!(error.to_string().contains("inconsistent program headers: "), "{error}");
}

#[test]
fn a_wrapper_to_no_bundle_is_refused() {
    let file = sample();
    let rela = Loaded::new(&file).section(".rela.dyn");
    let error = refused(&file, |file| file[rela.offset as usize + 24 + 16] = 16);
    assert!(error.to_string().contains("wrapper 1 at "), "{error}");
}

#[test]
fn device_code_outside_the_file_is_not_edited() {
    let file = sample();
    let wrappers = Loaded::new(&file).section(".hipFatBinSegment");
    let at = wrappers.offset as usize;
    let error = refused(&file, |file| file[at..at + 4].copy_from_slice(b"HIPK"));
    assert!(error.to_string().contains("device code was moved out of this file"), "{error}");
}

#[test]
fn a_bundle_that_must_move_and_cannot_is_refused() {
    let linked = compressed(&Linked::new(Style::Third, bundles(2)));
    let file = Linked { reference: Some(1), ..linked.clone() }.build();
    let error = decompress(&file, true).unwrap_err();
    assert!(error.to_string().contains("bundle 1 must move, but"), "{error}");
    // R_X86_64_GLOB_DAT
    let file = Linked { relocation: Some(6), ..linked }.build();
    let error = decompress(&file, true).unwrap_err();
    assert!(error.to_string().contains("has the unknown type 6"), "{error}");
}

#[test]
fn a_program_header_without_room_is_refused() {
    let linked = Linked {
        e_type: EXEC,
        dynamic: false,
        pointers: Pointers::Plain,
        ..Linked::new(Style::Third, bundles(1))
    };
    let file = compressed(&linked).build();
    let error = decompress(&file, true).unwrap_err();
    assert!(error.to_string().contains("no room for another program header"), "{error}");
}

#[test]
fn truncated_files_cause_no_panic() {
    let file = Linked { interpreter: true, ..Linked::new(Style::First, bundles(1)) }.build();
    let tables = Loaded::new(&file).long(40) as usize;
    for len in (0..1024).chain((1024..tables).step_by(509)).chain(tables - 64..file.len()) {
        assert!(remove(&file[..len], &others(GFX906)).is_err(), "{len}");
    }
}

/// Every byte of headers and sections, except most of the device code.
fn owned(file: &[u8]) -> impl Iterator<Item = usize> {
    let loaded = Loaded::new(file);
    let tables = [0..64 + 56 * u64::from(loaded.half(56)), loaded.long(40)..file.len() as u64];
    let sections = loaded.sections().into_iter().filter(|section| section.kind != 8);
    let sections = sections.map(|section| {
        let size = if section.name == ".hip_fatbin" { 150 } else { section.size };
        section.offset..section.offset + size
    });
    tables.into_iter().chain(sections).flatten().map(|at| at as usize)
}

#[test]
fn damaged_libraries_cause_no_panic() {
    let code = code(5, 3 * 4096);
    let bundles =
        [GFX906, GFX90A].map(|id| bundle(&[(HOST, b""), (GFX1100, &code), (id, &code)], 4096));
    let file = |style| Linked { interpreter: true, ..Linked::new(style, bundles.to_vec()) }.build();
    // One that was edited before, with pieces and evicted sections.
    for file in [file(Style::First), remove(&file(Style::Third), &[GFX906]).unwrap()] {
        judge_at(&file, owned(&file), oracles::edits::check);
    }
}

#[test]
fn sections_of_other_kinds_are_not_edited() {
    let mut file = sample();
    // The names of both sections have as many letters.
    let names = Loaded::new(&file).section(".shstrtab");
    let range = names.offset as usize..(names.offset + names.size) as usize;
    let at = file[range.clone()].windows(11).position(|w| w == b".hip_fatbin").unwrap();
    file[range.start + at..][..11].copy_from_slice(b".nv_fatbin\0");
    let error = remove(&file, &others(GFX906)).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported, "{error}");
}

/// Tables make room for program headers only where they can be put back.
#[test]
fn sections_in_another_order_are_restored() {
    let file = samples::example("hip-two-units.so");
    let headers = u64::from_le_bytes(file[40..48].try_into().unwrap());
    let headers = usize::try_from(headers).unwrap();
    let header = |n: usize| headers + 64 * n..headers + 64 * (n + 1);
    for (one, other) in [(2, 3), (2, 5), (2, 6)] {
        let mut swapped = file.clone();
        swapped[header(one)].copy_from_slice(&file[header(other)]);
        swapped[header(other)].copy_from_slice(&file[header(one)]);
        let compressed = compress(&swapped).unwrap().1;
        assert!(compressed != swapped);
        assert!(decompress(&compressed, false).unwrap().1 == swapped, "{one} {other}");
    }
}
