//! Device code of HIP that moves out of linked files, and in again.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::num::NonZeroUsize;

use byte_parts::Source;
use fat_edit::{
    EditOptions, EditPlan, Error, ErrorKind, Join, NewImage, NoWayBack, PackGroup, PackInput,
    Recipe, move_in, moved_out, survey,
};
use fat_object::{ImageInfo, Options, Visitor, walk};
use kpack::{Scheme, Tables};
use object_edit::{Input, Output};

use crate::editing::{code, images, remove, surveyed};
use samples::bundle::{GFX90A, GFX906, GFX1100, HOST, bundle};
use samples::linked::{AARCH64, EXEC, Linked, Loaded, Pointers, Style};
use samples::linked_pe;

const MARKER: &[u8] = b"a marker, whatever is in it";
const FAT: u32 = 0x4849_5046;
const SPLIT: u32 = 0x4b50_4948;

/// A code object for a GPU of AMD's.
fn code_object(seed: u32, size: u32) -> Vec<u8> {
    let mut bytes = code(seed, size);
    let header = b"\x7fELF\x02\x01\x01\x40\x04\0\0\0\0\0\0\0\x03\0\xe0\0\x01\0\0\0";
    bytes[..header.len()].copy_from_slice(header);
    // For any processor.
    bytes[0x30..0x34].fill(0);
    bytes
}

/// A bundle as clang makes it.
fn unit(seed: u32, ids: &[&str]) -> Vec<u8> {
    let codes: Vec<Vec<u8>> =
        (0..).zip(ids).map(|(n, _)| code_object(seed * 5 + n, 7000 + 3000 * n + seed)).collect();
    let mut entries: Vec<(&str, &[u8])> = vec![(HOST, b"")];
    entries.extend(ids.iter().zip(&codes).map(|(id, code)| (*id, &code[..])));
    bundle(&entries, 4096)
}

/// Three units; the second has fewer targets.
fn units() -> Vec<Vec<u8>> {
    vec![unit(1, &[GFX906, GFX1100]), unit(2, &[GFX1100]), unit(3, &[GFX906, GFX90A, GFX1100])]
}

fn layouts() -> Vec<Linked> {
    let mut all = Vec::new();
    for style in [Style::First, Style::Third] {
        for units in [units(), vec![unit(4, &[GFX1100])]] {
            let plain = Linked::new(style, units);
            all.push(Linked { after: false, ..plain.clone() });
            all.push(Linked { pointers: Pointers::Relr, hash: 6000, ..plain.clone() });
            all.push(Linked { pointers: Pointers::Symbols, symbols: false, ..plain.clone() });
            all.push(Linked { e_type: EXEC, pointers: Pointers::Plain, ..plain.clone() });
            all.push(Linked { machine: AARCH64, page: 0x10000, ..plain.clone() });
            all.push(Linked { tail: 5000, ..plain.clone() });
            all.push(plain);
        }
    }
    all
}

fn move_out(file: &[u8]) -> Result<(EditPlan, Vec<u8>), Error> {
    let plan = surveyed(file).move_out(Cursor::new(file), MARKER, &EditOptions::default())?;
    let out = written(&plan, file);
    Ok((plan, out))
}

fn written(plan: &EditPlan, file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    plan.write(Cursor::new(file), &mut out).unwrap();
    out
}

/// The wrappers of an ELF file: the magic, what it leads to in memory, and the last word.
fn wrappers(file: &[u8]) -> Vec<(u32, Vec<u8>, u64)> {
    let loaded = Loaded::new(file);
    let bytes = loaded.contents(&loaded.section(".hipFatBinSegment")).to_vec();
    let read = |(wrapper, address): (&[u8], u64)| {
        let magic = u32::from_le_bytes(wrapper[..4].try_into().unwrap());
        let last = u64::from_le_bytes(wrapper[16..].try_into().unwrap());
        (magic, loaded.read(address, 4096).unwrap(), last)
    };
    bytes.chunks_exact(24).zip(loaded.registered()).map(read).collect()
}

/// Fails unless all else is in its place, in the file of sections and in memory.
fn check_others(old: &[u8], new: &[u8]) {
    let (old, new) = (Loaded::new(old), Loaded::new(new));
    // The device code, wrappers and their relocations, symbols of the section, its name.
    let changed = [
        ".hip_fatbin",
        ".hipFatBinSegment",
        ".rela.dyn",
        ".symtab",
        ".shstrtab",
        ".dynamic",
        ".dynsym",
    ];
    let (before, after) = (old.sections(), new.sections());
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        if before.name == ".hip_fatbin" {
            let ours = (&*after.name, after.address, after.size);
            assert_eq!(ours, (".rocm_kpack_ref", before.address, MARKER.len() as u64));
            continue;
        }
        assert_eq!(before.name, after.name);
        // Program headers may need room.
        let moves =
            [".interp", ".note.gnu.build-id", ".gnu.hash", ".dynsym", ".dynstr", ".relr.dyn"];
        let may_move = moves.contains(&&*before.name) || before.name == ".rela.dyn";
        assert!(may_move || before.address == after.address, "{} moves", before.name);
        if before.kind != 8 && !changed.contains(&&*before.name) {
            assert!(old.contents(before) == new.contents(after), "{}", before.name);
        }
        if after.flags & 2 != 0 && after.kind != 8 && after.size > 0 {
            let memory = new.read(after.address, after.size).unwrap();
            assert!(memory == new.contents(after), "{} lies elsewhere in memory", after.name);
        }
    }
}

/// Makes the file again by a recipe that was stored, with images that lie one after the other.
fn by_recipe(file: &[u8], host: &[u8], plan: &EditPlan) -> Vec<u8> {
    let contents = surveyed(file);
    let recipe = Recipe::of(&contents, plan, Cursor::new(file)).unwrap().unwrap();
    assert_eq!(recipe.host_size(), host.len() as u64);
    let stored = recipe.to_vec();
    assert!(stored.len() < 4000, "{} bytes", stored.len());
    let parsed = Recipe::parse(&stored).unwrap();
    assert_eq!(parsed, recipe);
    let wrappers = contents.hip_wrappers(Cursor::new(file)).unwrap();
    let (mut spool, mut places) = (b"before".to_vec(), Vec::new());
    for (wrapper, target, size) in parsed.images() {
        let container = wrappers[wrapper as usize];
        let packable = contents.packable(container).unwrap();
        let is_it = |image: &&&ImageInfo| image.target().id() == target;
        let id = packable.iter().find(is_it).unwrap().index();
        let at = contents.images().iter().position(|image| image.index() == id).unwrap();
        let bytes = &images(file)[at].1;
        assert_eq!(bytes.len() as u64, size);
        places.push((wrapper, target.to_owned(), spool.len() as u64));
        spool.extend(bytes);
    }
    let place = |wrapper, target: &str| {
        let found = places.iter().find(|(n, name, _)| *n == wrapper && name == target);
        found.map(|(_, _, at)| (0, *at))
    };
    let plan = parsed.plan(place, vec![NewImage::new(Cursor::new(spool.clone()))]).unwrap();
    assert!(parsed.plan(|_, _| None, Vec::new()).is_none());
    written(&plan, host)
}

#[test]
fn device_code_leaves_files_of_every_layout_and_comes_back() {
    for linked in layouts() {
        let file = linked.build();
        let (plan, host) = move_out(&file).unwrap();
        let saved: usize = linked.bundles.iter().map(Vec::len).sum();
        let pages = 3 * usize::try_from(linked.page).unwrap();
        assert!(host.len() + saved <= file.len() + pages, "{linked:?}: {} bytes", host.len());
        check_others(&file, &host);
        for (n, (magic, memory, last)) in (0..).zip(wrappers(&host)) {
            assert_eq!((magic, last), (SPLIT, n), "{linked:?}");
            assert!(memory.starts_with(MARKER), "{linked:?}");
        }
        assert_eq!(by_recipe(&file, &host, &plan), file, "{linked:?}");
        // There is nothing to edit.
        let again = survey(Cursor::new(&host), &Options::default());
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Host);
    }
}

#[test]
fn bundles_that_are_made_anew_lie_where_they_were() {
    for linked in layouts() {
        let file = linked.build();
        let (_, host) = move_out(&file).unwrap();
        let (mut contents, mut offsets, mut bundles) = (Output::new(), Vec::new(), Vec::new());
        for bundle in &linked.bundles {
            contents.pad_to(contents.size().next_multiple_of(4096));
            offsets.push(contents.size());
            let (table, codes) = bundle.split_at(4096);
            contents.push_bytes(table);
            let start = bundles.len() as u64;
            bundles.extend(codes);
            contents.push_input(Input::New(0), start..bundles.len() as u64);
        }
        let codes = vec![NewImage::new(Cursor::new(bundles))];
        let options = EditOptions::default();
        let plan = move_in(Cursor::new(&host), contents, &offsets, codes, &options).unwrap();
        let joined = written(&plan, &host);
        for ((magic, memory, last), bundle) in wrappers(&joined).iter().zip(&linked.bundles) {
            assert_eq!((*magic, *last), (FAT, 0), "{linked:?}");
            assert!(memory.starts_with(&bundle[..100]), "{linked:?}");
        }
        assert_eq!(images(&joined), images(&file), "{linked:?}");
    }
}

#[test]
fn bundles_without_a_wrapper_are_refused() {
    let linked = Linked::new(Style::Third, vec![unit(1, &[GFX1100]), unit(2, &[GFX906])]);
    let mut file = linked.build();
    // The second wrapper leads to the first bundle.
    let entries = Loaded::new(&file).section(".rela.dyn").offset as usize;
    let addend = file[entries + 16..entries + 24].to_vec();
    file[entries + 40..entries + 48].copy_from_slice(&addend);
    let error = move_out(&file).unwrap_err();
    assert!(error.to_string().contains("no wrapper leads to it"), "{error}");
}

#[test]
fn code_that_no_loader_finds_in_packs_is_refused() {
    let refused = |units: Vec<Vec<u8>>, why: &str| {
        let file = Linked::new(Style::Third, units).build();
        let contents = surveyed(&file);
        let wrappers = contents.hip_wrappers(Cursor::new(&file)).unwrap();
        let faults = wrappers.iter().filter_map(|container| contents.packable(*container).err());
        let faults: Vec<Error> = faults.collect();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].kind(), ErrorKind::Refused);
        assert!(faults[0].to_string().contains(why), "{}", faults[0]);
    };
    let with = |id: &str, bytes: &[u8]| {
        let code = code_object(1, 5000);
        bundle(&[(HOST, b""), (GFX906, &code), (id, bytes)], 4096)
    };
    let spirv = [b"\x03\x02\x23\x07\0\x05\x01\0".as_slice(), &[0; 32]].concat();
    let spirv_id = "hipv4-spirv64-amd-amdhsa--amdgcnspirv";
    refused(vec![unit(1, &[GFX906]), with(spirv_id, &spirv)], "SPIR-V");
    refused(vec![with(GFX1100, b"BC\xc0\xde and more that is bitcode")], "bitcode");
    refused(vec![with(GFX1100, b"something else")], "code object");
}

#[test]
fn files_that_are_not_linked_and_files_that_refer_to_bundles_are_refused() {
    for file in [&b"text"[..], &unit(1, &[GFX906])] {
        assert_eq!(move_out(file).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    let linked = Linked { reference: Some(1), ..Linked::new(Style::Third, units()) };
    assert_eq!(move_out(&linked.build()).unwrap_err().kind(), ErrorKind::Host);
    let marker = [b'm'; 5000];
    let file = Linked::new(Style::Third, units()).build();
    let plan = surveyed(&file).move_out(Cursor::new(&file), &marker, &EditOptions::default());
    assert!(plan.is_err(), "a marker of more than a page");
}

#[test]
fn dlls_lose_their_code_and_get_it_back() {
    let file = linked_pe::build(&units());
    let (plan, host) = move_out(&file).unwrap();
    assert!(host.len() + 40_000 < file.len(), "{} of {}", host.len(), file.len());
    assert_eq!(by_recipe(&file, &host, &plan), file);
    assert!(surveyed(&host).images().is_empty());
    // Thinned before, it comes back thinned.
    let thinned = remove(&file, &[GFX906]).unwrap();
    let (plan, host) = move_out(&thinned).unwrap();
    assert_eq!(by_recipe(&thinned, &host, &plan), thinned);
}

#[test]
fn stored_recipes_with_faults_are_none() {
    let file = Linked::new(Style::Third, units()).build();
    let (plan, _) = move_out(&file).unwrap();
    let recipe = Recipe::of(&surveyed(&file), &plan, Cursor::new(&file)).unwrap().unwrap();
    let stored = recipe.to_vec();
    assert!(Recipe::parse(&[]).is_none());
    for len in 1..stored.len() {
        // A cut between two steps is another recipe, that makes another file.
        assert!(Recipe::parse(&stored[..len]).as_ref() != Some(&recipe));
    }
    for at in 0..stored.len() {
        for bit in 0..8 {
            let mut damaged = stored.clone();
            damaged[at] ^= 1 << bit;
            if let Some(parsed) = Recipe::parse(&damaged) {
                assert!(parsed != recipe || parsed.to_vec() == stored);
                // A plan of it neither panics nor needs memory.
                parsed.plan(|_, _| Some((0, u64::MAX)), Vec::new());
            }
        }
    }
    // Numbers of more than 64 bits, a range beyond the file, an unknown step, text that is not UTF-8.
    assert!(Recipe::parse(&[0xff; 11]).is_none());
    assert!(Recipe::parse(&[5, 0, 1, 5]).is_none());
    assert!(Recipe::parse(&[5, 9]).is_none());
    assert!(Recipe::parse(&[5, 3, 0, 1, 1, 0xff]).is_none());
}

/// Splits a library into packs, with code objects compressed or not; returns the library without device code, and the packs.
fn split(file: &[u8], scheme: Scheme) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut group = PackGroup::new("group", ".kpack", scheme);
    let marker = group.marker("lib/libfoo.so");
    let split = surveyed(file).split(Cursor::new(file), &marker, &EditOptions::default()).unwrap();
    assert_eq!(split.no_way_back(), None);
    let mut codes: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let walk = |visitor: &mut dyn Visitor| {
        walk(Cursor::new(file), &Options::default().with_enter_images(false), visitor)
    };
    let mut store = |target: &str, stored: &[u8]| {
        codes.entry(target.to_owned()).or_default().extend(stored);
        Ok(())
    };
    let threads = NonZeroUsize::new(2).unwrap();
    group.pack(&split, (1, threads), walk, &mut store).unwrap();
    let packs = group.layout([&split]).unwrap();
    let packs = packs.iter().map(|pack| {
        assert_eq!(pack.file_name, format!("group_{}.kpack", pack.target));
        pack.parts.to_vec(|_| &codes[&pack.target]).unwrap()
    });
    let packs = packs.collect();
    (written(split.plan(), file), packs)
}

#[test]
fn libraries_are_split_and_joined() {
    // The first two units are one: its wrappers share a bundle when the library is split.
    let same = vec![unit(1, &[GFX906, GFX1100]), unit(1, &[GFX906, GFX1100]), unit(2, &[GFX1100])];
    for (linked, scheme) in [
        (Linked::new(Style::First, units()), Scheme::Zstd),
        (Linked::new(Style::Third, units()), Scheme::Plain),
        (Linked::new(Style::Third, same), Scheme::Zstd),
    ] {
        let file = linked.build();
        let (host, packs) = split(&file, scheme);
        let (marker, wrappers) = moved_out(Cursor::new(&host)).unwrap().unwrap();
        assert_eq!(marker.search_paths(), ["../.kpack/group_@GFXARCH@.kpack"]);
        assert_eq!(wrappers, [0, 1, 2]);
        let read = |pack: &Vec<u8>| {
            Tables::read(&mut Source::of_bytes(pack), &(0..pack.len() as u64)).unwrap().unwrap()
        };
        let tables: Vec<Tables> = packs.iter().map(read).collect();
        let inputs = |count: usize| {
            let packs = packs.iter().zip(&tables).take(count);
            let input = |(pack, tables)| PackInput::new("a pack", tables, Source::of_bytes(pack));
            packs.map(|(pack, tables)| input((&**pack, tables))).collect::<Vec<_>>()
        };
        let spool = || Cursor::new(Vec::new());
        let mut join = Join::new(&marker, &wrappers, inputs(packs.len()));
        assert_eq!(join.used().len(), packs.len());
        let (recipe, hash) = join.way_back(host.len() as u64).unwrap();
        let plan = join.plan_back(&recipe, spool()).unwrap().unwrap();
        let mut out = Vec::new();
        assert_eq!(plan.write_hashed(Cursor::new(&host), &mut out).unwrap(), hash);
        assert_eq!(out, file);
        for compress in [None, Some(fat_edit::new_compression())] {
            let options = EditOptions::default().with_grow(true);
            let compress = compress.as_ref();
            let plan = join.plan_anew(Cursor::new(&host), spool(), compress, &options).unwrap();
            let joined = written(&plan, &host);
            let codes = |file: &[u8]| -> Vec<Vec<u8>> {
                images(file).into_iter().map(|(_, code)| code).collect()
            };
            let (mut left, mut right) = (codes(&joined), codes(&file));
            for codes in [&mut left, &mut right] {
                codes.sort();
                codes.dedup();
            }
            assert_eq!(left, right, "{compress:?}");
        }
        assert!(join.way_back(host.len() as u64 + 1).is_none(), "another file");

        // A pack is missing, then all are; one is damaged.
        let mut join = Join::new(&marker, &wrappers, inputs(packs.len() - 1));
        let (recipe, _) = join.way_back(host.len() as u64).unwrap();
        assert_eq!(join.plan_back(&recipe, spool()).unwrap().unwrap_err(), NoWayBack::Missing);
        assert!(Join::new(&marker, &wrappers, inputs(0)).used().is_empty());
        if scheme == Scheme::Zstd {
            let damaged: Vec<u8> = packs[0].iter().map(|byte| byte ^ 0x55).collect();
            let input = PackInput::new("damaged", &tables[0], Source::of_bytes(&damaged));
            let error = Join::new(&marker, &wrappers, vec![input])
                .plan_anew(Cursor::new(&host), spool(), None, &EditOptions::default())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            assert!(error.to_string().starts_with("damaged: lib/libfoo.so#0 for gfx"), "{error}");
        }
    }
}

#[test]
fn compressed_bundles_come_back() {
    use ccob::{Version, WriteOptions};
    let options = WriteOptions::default;
    for how in [
        options().with_clang_parameters(true),
        options().with_version(Version::V2),
        options().with_level(9),
    ] {
        let bundles = units().into_iter().map(|unit| ccob::compress(&unit, &how).unwrap());
        let file = Linked::new(Style::Third, bundles.collect()).build();
        let (plan, host) = move_out(&file).unwrap();
        let recipe = Recipe::of(&surveyed(&file), &plan, Cursor::new(&file)).unwrap();
        let stored = recipe.unwrap_or_else(|reason| panic!("{how:?}: {reason}")).to_vec();
        let recipe = Recipe::parse(&stored).unwrap();
        assert_eq!(recipe.to_vec(), stored);
        assert_eq!(recipe.host_size(), host.len() as u64);
        assert!(recipe.plan(|_, _| Some((0, 0)), Vec::new()).is_none(), "bundles are not packed");
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 0x41;
            oracles::recipes::check(&damaged);
        }
        let (host, packs) = split(&file, Scheme::Zstd);
        let (marker, wrappers) = moved_out(Cursor::new(&host)).unwrap().unwrap();
        let read = |pack: &Vec<u8>| {
            Tables::read(&mut Source::of_bytes(pack), &(0..pack.len() as u64)).unwrap().unwrap()
        };
        let tables: Vec<Tables> = packs.iter().map(read).collect();
        let input = |(pack, tables)| PackInput::new("a pack", tables, Source::of_bytes(pack));
        let inputs = packs.iter().zip(&tables).map(|(pack, tables)| input((&**pack, tables)));
        let mut join = Join::new(&marker, &wrappers, inputs.collect());
        let compression = join.compression().unwrap();
        assert_eq!(compression.version(), how.version());
        let (recipe, hash) = join.way_back(host.len() as u64).unwrap();
        let spool = || Cursor::new(Vec::new());
        let plan = join.plan_back(&recipe, spool()).unwrap().unwrap();
        let mut out = Vec::new();
        assert_eq!(plan.write_hashed(Cursor::new(&host), &mut out).unwrap(), hash);
        assert_eq!(out, file);
        // New bundles are compressed in the same way, and hold the same.
        let options = EditOptions::default().with_grow(true);
        let plan = join.plan_anew(Cursor::new(&host), spool(), Some(&compression), &options);
        let joined = written(&plan.unwrap(), &host);
        assert_eq!(images(&joined).len(), images(&file).len());
    }
}

/// Returns why the library with these compressed bundles has no way back.
fn no_way_back(bundles: Vec<Vec<u8>>) -> Option<NoWayBack> {
    let file = Linked::new(Style::Third, bundles).build();
    let (plan, _) = move_out(&file).unwrap();
    Recipe::of(&surveyed(&file), &plan, Cursor::new(&file)).unwrap().err()
}

#[test]
fn bundles_that_no_one_level_gives_have_no_way_back() {
    use ccob::{Method, WriteOptions};
    let options = WriteOptions::default;
    let compress = |unit: &[u8], how: WriteOptions| ccob::compress(unit, &how).unwrap();
    let zlib = |level| options().with_method(Method::ZLIB).with_level(level);
    let at = |levels: [i32; 3]| -> Vec<Vec<u8>> {
        units().iter().zip(levels).map(|(unit, level)| compress(unit, zlib(level))).collect()
    };
    assert_eq!(no_way_back(at([9, 9, 9])), None);
    assert_eq!(no_way_back(at([9, 1, 9])), Some(NoWayBack::Levels));
    // Two methods.
    let mut mixed = at([6, 6, 6]);
    mixed[1] = compress(&units()[1], options());
    assert_eq!(no_way_back(mixed), Some(NoWayBack::Levels));
    // The first bundle is so small that many levels give it; one of them gives all.
    let little = bundle(&[(HOST, b""), (GFX906, &code_object(3, 64))], 4096);
    let same = |level| compress(&little, zlib(level));
    assert!(same(6) == same(8), "levels that give the same");
    for level in [6, 8] {
        let others = units().into_iter().skip(1).map(|unit| compress(&unit, zlib(level)));
        let all = [same(level)].into_iter().chain(others).collect();
        assert_eq!(no_way_back(all), None, "{level}");
    }
    assert!(at([6; 3]) != at([8; 3]), "levels that differ");
    // Levels of large bundles are not tried, only the default.
    let large = bundle(&[(HOST, b""), (GFX906, &code_object(3, 300 << 10))], 4096);
    assert_eq!(no_way_back(vec![compress(&large, zlib(6))]), None);
    assert_eq!(no_way_back(vec![compress(&large, zlib(1))]), Some(NoWayBack::Compressor));
    // Another compressor.
    let mut other = compress(&units()[0], zlib(6));
    // The level in the header of the stream, with its check.
    assert_eq!(other[32..34], [0x78, 0x9c]);
    other[33] = 0xda;
    assert_eq!(no_way_back(vec![other]), Some(NoWayBack::Compressor));
}

#[test]
fn bytes_beside_code_objects_are_bounded_over_all_bundles() {
    let with_host = |size: usize, fill: u8| {
        bundle(&[(HOST, &vec![fill; size]), (GFX906, &code_object(fill.into(), 5000))], 4096)
    };
    let compress = |unit: Vec<u8>| ccob::compress(&unit, &ccob::WriteOptions::default()).unwrap();
    let of = |size: usize| vec![with_host(size, 7), with_host(size, 9)];
    let compressed = |size| of(size).into_iter().map(compress).collect();
    assert_eq!(no_way_back(compressed(7 << 20)), None);
    assert_eq!(no_way_back(compressed(9 << 20)), Some(NoWayBack::OtherBytes));
    assert_eq!(no_way_back(of(9 << 20)), Some(NoWayBack::OtherBytes), "also if not compressed");
}

/// Returns a pack of one code object that is there for many targets, with this note about the way back.
fn shared(wrappers: u64, targets: u64, code: &[u8], recipe: &[u8]) -> Vec<u8> {
    let mut new = kpack::NewKpack::new("group", "gfx906", Scheme::Zstd);
    let size = code.len() as u64;
    let mut first = None;
    for (wrapper, target) in (0..wrappers).flat_map(|n| (0..targets).map(move |t| (n, t))) {
        let target = format!("gfx{target}");
        match first {
            None => first = Some(new.add("lib/libfoo.so", wrapper, &target, size)),
            Some(ordinal) => new.add_again("lib/libfoo.so", wrapper, &target, size, ordinal),
        }
    }
    let mut note = vec![0; 8];
    note.extend(kpack::compress(recipe, 1).unwrap());
    new.note("offload:lib/libfoo.so", &note);
    // Bundles were compressed.
    new.note("offload-compressed:lib/libfoo.so", &[2, 1, 0, 22, 0]);
    let stored = kpack::compress(code, 1).unwrap();
    new.layout(&[stored.len() as u64]).unwrap().to_vec(|_| &*stored).unwrap()
}

/// Writes a number as recipes have them.
fn number(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// The images of a bundle, by wrapper and target, and more steps.
type InBundle<'b> = (&'b [(u64, u64)], &'b [u8]);

/// Returns a recipe of bundles with these images: wrapper and target; and more steps.
fn recipe_of(host: u64, size: u64, level: u8, bundles: &[InBundle<'_>]) -> Vec<u8> {
    let mut out = number(host);
    for (images, more) in bundles {
        let mut steps = more.to_vec();
        for (wrapper, target) in *images {
            let target = format!("gfx{target}");
            steps.push(3);
            steps.extend([*wrapper, size, target.len() as u64].into_iter().flat_map(number));
            steps.extend(target.as_bytes());
        }
        // Its form: version 2, zstd, the level, not as clang.
        out.extend([4, 2, 1, 0, level, 0]);
        out.extend(number(100).into_iter().chain(number(steps.len() as u64)));
        out.extend(steps);
    }
    out
}

#[test]
fn packs_do_not_ask_for_more_memory_or_time_than_they_have_code() {
    let file = Linked::new(Style::Third, units()).build();
    let (host, _) = split(&file, Scheme::Plain);
    let (marker, wrappers) = moved_out(Cursor::new(&host)).unwrap().unwrap();
    let code = code_object(1, 50_000);
    let back = |targets: u64, recipe: &[u8], max: u64| {
        let pack = shared(3, targets, &code, recipe);
        let tables = Tables::read(&mut Source::of_bytes(&pack), &(0..pack.len() as u64));
        let tables = tables.unwrap().unwrap();
        let input = PackInput::new("a pack", &tables, Source::of_bytes(&pack));
        let mut join = Join::new(&marker, &wrappers, vec![input]).with_max_decompressed(max);
        let spool = || Cursor::new(Vec::new());
        let compression = join.compression().unwrap();
        assert_eq!(compression.level(), None, "the level of a note is not taken");
        let anew = |join: &mut Join<'_>| {
            let options = EditOptions::default().with_grow(true);
            join.plan_anew(Cursor::new(&host), spool(), Some(&compression), &options).map(|_| ())
        };
        let anew = anew(&mut join).map_err(|error| error.to_string());
        let recipe = join.way_back(host.len() as u64).map(|(recipe, _)| recipe);
        let back = recipe.map(|recipe| join.plan_back(&recipe, spool()).map(|plan| plan.err()));
        (anew, back.map(|back| back.map_err(|error| error.to_string())))
    };
    let host_size = host.len() as u64;
    let images: Vec<(u64, u64)> = (0..40).map(|target| (0, target)).collect();
    let recipe = |bundles: &[InBundle<'_>]| recipe_of(host_size, 50_000, 9, bundles);
    let one = recipe(&[(&images, &[])]);
    let text = "a bundle of 2000000 bytes would exceed the limit of 1000000 bytes";
    let (anew, found) = back(40, &one, 1_000_000);
    assert_eq!((anew, found), (Err(text.to_owned()), Some(Err(text.to_owned()))));
    // One code object.
    let (anew, found) = back(1, &recipe(&[(&images[..1], &[])]), 40_000);
    let text = "a bundle of 50000 bytes would exceed the limit of 40000 bytes";
    assert_eq!((anew, found), (Err(text.to_owned()), Some(Err(text.to_owned()))));
    // The limit allows them, but one code object is not there so often.
    let (anew, found) = back(40, &one, 1 << 30);
    assert_eq!((anew, found), (Ok(()), Some(Ok(Some(NoWayBack::Changed)))));
    // Once each, and with another size than the recipe says.
    let (_, found) = back(1, &recipe(&[(&images[..1], &[])]), 1 << 30);
    assert_eq!(found, Some(Ok(Some(NoWayBack::Codec))));
    // More bundles than wrappers.
    let none: InBundle<'_> = (&[], &[]);
    let (_, found) = back(1, &recipe(&[none; 4]), 1 << 30);
    assert_eq!(found, Some(Ok(Some(NoWayBack::Changed))));
    // A method that no build has is not an error.
    let mut unknown = recipe(&[(&images[..1], &[])]);
    let method = number(host_size).len() + 2;
    unknown[method] = 77;
    let (_, found) = back(1, &unknown, 1 << 30);
    assert_eq!(found, Some(Ok(Some(NoWayBack::Codec))));

    // Recipes that fit no library are not read.
    let zeros = |count: u64| [vec![2], number(count)].concat();
    let is_read = |bundles: &[InBundle<'_>]| Recipe::parse(&recipe(bundles)).is_some();
    assert!(is_read(&[(&[(0, 1), (0, 2)], &[]), (&[(1, 1)], &[])]));
    assert!(!is_read(&[(&[(0, 1), (0, 1)], &[])]), "a target twice");
    assert!(!is_read(&[(&[(0, 1), (1, 1)], &[])]), "two wrappers in a bundle");
    assert!(!is_read(&[(&[(0, 1)], &[]), (&[(0, 2)], &[])]), "two bundles of a wrapper");
    assert!(is_read(&[(&[], &zeros(1 << 29)), (&[], &zeros(1 << 29))]));
    assert!(!is_read(&[(&[], &zeros(1 << 29)), (&[], &zeros((1 << 29) + 1))]), "zeros");
    let levels = |level| Recipe::parse(&recipe_of(host_size, 1, level, &[(&[], &[])])).is_some();
    assert_eq!([0, 22, 23, 254, 255].map(levels), [true, true, false, false, true]);
    let steps = |count: usize| [number(host_size), [2, 1].repeat(count)].concat();
    assert!(Recipe::parse(&steps(1 << 20)).is_some());
    assert!(Recipe::parse(&steps((1 << 20) + 1)).is_none());
}
