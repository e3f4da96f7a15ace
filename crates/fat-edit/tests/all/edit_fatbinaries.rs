//! Edits of NVIDIA fatbinaries, alone and in programs.

use crate::editing::*;
use fat_edit::{
    Change, CompressOptions, Edit, EditNote, EditOptions, EditPlan, EditableFile, ErrorKind,
    survey_closed,
};
use fat_object::Options;
use nv_fatbin::{Architecture, Compression, Fatbin, Flags, Kind, NewEntry, NewFatbin};
use samples::damage::judge_at;
use samples::linked::{self, AARCH64, EXEC, Linked, Loaded, Pointers, Style};
use samples::linked_pe;
use std::io::Cursor;

const SM: [&str; 3] = ["sm_70", "sm_80", "sm_90a"];

/// The forms that this build can write.
fn compressions() -> Vec<Compression> {
    let zstd = cfg!(feature = "zstd").then_some(Compression::Zstd(5));
    [Compression::None, Compression::Lz4(3)].into_iter().chain(zstd).collect()
}

/// The form that [`compress`] chooses.
fn best() -> Compression {
    compressions().pop().unwrap()
}

fn architecture(name: &str) -> Architecture {
    Architecture::from_name(name).unwrap()
}

/// PTX for this GPU, which says the number some times.
fn ptx(name: &str, number: usize, times: usize) -> Vec<u8> {
    let line = format!("// comment\n.global .u32 number{number};\n");
    format!(".version 8.3\n.target {name}\n.address_size 64\n{}", line.repeat(times)).into_bytes()
}

/// The same as fatbinaries hold it: without comments.
fn as_stored(ptx: &[u8]) -> Vec<u8> {
    let entry = NewEntry::ptx(architecture("sm_70"), ptx).unwrap();
    images(&fatbin(&[entry])).remove(0).1
}

/// An entry of code that no tool looks into.
fn entry(name: &str, seed: u32, size: u32) -> NewEntry<'static> {
    let flags = Flags::BITS_64 | Flags::LINUX | Flags::CUDA;
    NewEntry::new(Kind::PTX, architecture(name), code(seed, size)).with_flags(flags)
}

fn fatbin(entries: &[NewEntry<'_>]) -> Vec<u8> {
    let mut fatbin = NewFatbin::new();
    entries.iter().for_each(|entry| fatbin.add(entry).unwrap());
    fatbin.to_vec().unwrap()
}

/// One entry for each of [`SM`].
fn sample(seed: u32, compression: Compression) -> Vec<u8> {
    let entries = SM.iter().zip(0..).map(|(name, n)| {
        entry(name, seed + n, 3000 + 704 * n + 8 * seed).with_compression(compression)
    });
    fatbin(&entries.collect::<Vec<_>>())
}

/// The bytes of the entries of a fatbinary, headers included.
fn stored(file: &[u8]) -> Vec<Vec<u8>> {
    let fatbin = Fatbin::parse(file).unwrap();
    let range = |entry: &nv_fatbin::Entry<'_>| entry.offset() as usize..entry.end() as usize;
    fatbin.entries().map(|entry| file[range(&entry.unwrap())].to_vec()).collect()
}

fn compress(_: &EditableFile, edit: &mut Edit) {
    edit.compress(CompressOptions::default());
}

fn decompress(_: &EditableFile, edit: &mut Edit) {
    edit.decompress();
}

/// Removes all images for other GPUs.
fn keep(file: &[u8], name: &str, options: EditOptions) -> Result<(EditPlan, Vec<u8>), String> {
    let edit = |contents: &EditableFile, edit: &mut Edit| {
        let others = contents.images().iter().filter(|image| image.target().id() != name);
        others.for_each(|image| edit.remove(image.index()));
    };
    plan_with(file, options, &[], edit).map_err(|error| error.to_string())
}

#[test]
fn entries_that_stay_keep_their_bytes() {
    for compression in compressions() {
        let file = sample(1, compression);
        let (plan, out) = keep(&file, "sm_80", EditOptions::default()).unwrap();
        assert_eq!(stored(&out), stored(&file)[1..2]);
        assert_eq!(plan.containers()[0].change, Change::Edited);
        assert!(keep(&out, "sm_80", EditOptions::default()).unwrap().0.is_unchanged());
    }
}

#[test]
fn a_header_stays_where_no_entry_would() {
    let file = fatbin(&[entry("sm_80", 1, 900), entry("sm_70", 2, 80), entry("sm_75", 3, 500)]);
    let error = keep(&file, "sm_90", EditOptions::default()).unwrap_err();
    assert_eq!(error, "nv-fatbin:0: no image would be left");
    let options = EditOptions::default().with_allow_empty(true);
    let (plan, out) = keep(&file, "sm_90", options.clone()).unwrap();
    assert_eq!(out, NewFatbin::new().to_vec().unwrap());
    assert_eq!(plan.notes(), [EditNote::EmptyFatbinaries { count: 1 }]);
    assert_eq!(plan.notes()[0].to_string(), "1 fatbinary is empty now: no GPU runs its kernels");
    assert!(plan.images().iter().all(|image| image.size_after.is_none()));
    assert!(keep(&out, "sm_90", EditOptions::default()).unwrap().0.is_unchanged());
    // It can get entries again.
    let add = |contents: &EditableFile, edit: &mut Edit| {
        contents.images().iter().for_each(|image| edit.remove(image.index()));
        edit.add(0, "cuda-nvptx64-nvidia-cuda--sm_90", 0);
    };
    let image = ptx("sm_90", 1, 0);
    for file in [&file, &out] {
        let (plan, out) = plan_with(file, options.clone(), &[&image], add).unwrap();
        assert!(plan.notes().is_empty());
        assert_eq!(images(&out)[0].1, as_stored(&image));
    }
}

#[test]
fn wrappers_lead_to_empty_fatbinaries() {
    let fatbins: Vec<_> = (1..=4).map(|n| sample(n * 9, Compression::None)).collect();
    let options = EditOptions::default().with_allow_empty(true);
    let empty = NewFatbin::new().to_vec().unwrap();
    for program in programs(&fatbins) {
        let file = program.build();
        let (_, out) = keep(&file, "sm_90", options.clone()).unwrap();
        linked::check_same(&file, &out);
        assert!(registered(&out) == vec![empty.clone(); 4]);
        assert!(keep(&out, "sm_90", EditOptions::default()).unwrap().0.is_unchanged());
    }
    let file = linked_pe::build_cuda(&fatbins);
    let (_, out) = keep(&file, "sm_90", options).unwrap();
    linked_pe::check_same(&file, &out);
    let found = linked_pe::registered(&out);
    assert!(found.len() == 4 && found.iter().all(|found| found.starts_with(&empty)));
}

#[test]
fn entries_are_replaced_and_added() {
    let (old, new) = (ptx("sm_70", 1, 40), ptx("sm_70", 2, 90));
    let options = NewEntry::ptx(architecture("sm_70"), &old).unwrap().with_options(&b"-O3 "[..]);
    let options =
        options.with_identifier(&b"kernel.cu"[..]).with_flags(Flags::LINUX | Flags::BITS_64);
    for compression in compressions() {
        let file = fatbin(&[options.clone().with_compression(compression), entry("sm_80", 1, 99)]);
        let added = ptx("compute_90a", 3, 5);
        let edit = |_: &EditableFile, edit: &mut Edit| {
            edit.replace(0, 0);
            edit.add(0, "cuda-nvptx64-nvidia-cuda--sm_90a", 1);
        };
        let (_, out) = plan_with(&file, EditOptions::default(), &[&new, &added], edit).unwrap();
        let whole = Fatbin::parse(&out).unwrap();
        let entries: Vec<_> = whole.entries().map(Result::unwrap).collect();
        let first = &entries[0];
        assert_eq!(first.identifier().unwrap(), Some(&b"kernel.cu"[..]));
        assert_eq!(first.options().unwrap(), Some(&b"-O3 "[..]));
        assert_eq!(first.codec().is_some(), compression != Compression::None);
        assert!(first.flags().contains(Flags::LINUX));
        assert_eq!(entries[2].architecture(), architecture("sm_90a"));
        let images = images(&out);
        assert!(images[0].1 == as_stored(&new) && images[2].1 == as_stored(&added));
        assert_eq!(stored(&out)[1], stored(&file)[1]);
    }
}

#[test]
fn architectures_that_no_gpu_has_are_refused() {
    let file = sample(1, Compression::None);
    let any = EditOptions::default().with_any_image(true);
    let edit = |_: &EditableFile, edit: &mut Edit| edit.add(0, "hip-amdgcn-amd-amdhsa--gfx906", 0);
    let error = plan_with(&file, any, &[b"code"], edit).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

#[test]
fn compression_restores_what_decompression_makes() {
    let plain = sample(1, Compression::None);
    let (plan, small) = plan_with(&plain, EditOptions::default(), &[], compress).unwrap();
    assert!(small.len() < plain.len() && plan.notes().is_empty());
    assert_eq!(small, sample(1, best()));
    let (plan, _) = plan_with(&small, EditOptions::default(), &[], compress).unwrap();
    assert!(plan.is_unchanged());
    for compression in compressions() {
        let small = sample(1, compression);
        let (plan, back) = plan_with(&small, EditOptions::default(), &[], decompress).unwrap();
        assert_eq!(back, plain);
        let is_plain = compression == Compression::None;
        let change = if is_plain { Change::Kept } else { Change::Decompressed };
        assert_eq!(plan.containers()[0].change, change);
    }
}

#[test]
fn damaged_code_is_not_decompressed() {
    let mut file = sample(1, Compression::Lz4(3));
    let at = file.len() - 40;
    file[at..].fill(0xff);
    let mut edit = Edit::default();
    edit.decompress();
    let mut input = Cursor::new(&file);
    let plan = surveyed(&file).plan(&mut input, &edit).unwrap();
    let error = plan.write(&mut input, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    // It can go.
    let (_, out) = keep(&file, "sm_80", EditOptions::default()).unwrap();
    assert_eq!(stored(&out), stored(&file)[1..2]);
}

/// A fatbinary of PTX and of some of three cubins, which are compressed as one, by bit.
fn several(compression: Compression, mask: u8) -> Vec<u8> {
    let is_there = |bit: u8| mask >> bit & 1 == 1;
    let ptx = entry("sm_70", 1, 504).with_compression(compression);
    let images: Vec<_> = (SM.iter().zip(1_u8..))
        .filter(|(_, bit)| is_there(*bit))
        .map(|(name, bit)| {
            let code = code(bit.into(), 800 + 8 * u32::from(bit));
            NewEntry::new(Kind::ELF, architecture(name), code).with_flags(Flags::BITS_64)
        })
        .collect();
    let several = NewEntry::concatenated(&images).unwrap().with_compression(compression);
    let several = (!images.is_empty()).then_some(several);
    fatbin(&is_there(0).then_some(ptx).into_iter().chain(several).collect::<Vec<_>>())
}

#[test]
fn images_that_are_compressed_as_one_leave_one_by_one() {
    for compression in compressions() {
        let file = several(compression, 0b1111);
        for mask in 1..0b1111 {
            let edit = |contents: &EditableFile, edit: &mut Edit| {
                let gone = contents.images().iter().filter(|image| mask >> image.index() & 1 == 0);
                gone.for_each(|image| edit.remove(image.index()));
            };
            let (plan, out) = plan_with(&file, EditOptions::default(), &[], edit).unwrap();
            assert!(out == several(compression, mask), "{mask:#b}");
            assert_eq!(plan.containers().len(), 1);
        }
    }
}

#[test]
fn images_that_are_compressed_as_one_are_not_replaced() {
    let file = several(Compression::Lz4(3), 0b1111);
    let any = || EditOptions::default().with_any_image(true);
    let replace = |_: &EditableFile, edit: &mut Edit| edit.replace(2, 0);
    let error = plan_with(&file, any(), &[b"code"], replace).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::Refused,
            "nv-fatbin:0: an image that is compressed as one with others cannot be replaced"
                .to_owned()
        )
    );
    let both = |_: &EditableFile, edit: &mut Edit| {
        edit.replace(0, 0);
        edit.remove(3);
    };
    let image = ptx("sm_70", 7, 9);
    let (_, out) = plan_with(&file, any(), &[&image], both).unwrap();
    assert_eq!(images(&out)[0].1, as_stored(&image));
    assert_eq!(stored(&out)[1], stored(&several(Compression::Lz4(3), 0b0111))[1]);
}

#[test]
fn images_that_are_compressed_as_one_are_decompressed_and_back() {
    let plain = several(Compression::None, 0b1111);
    let (_, small) = plan_with(&plain, EditOptions::default(), &[], compress).unwrap();
    assert!(small == several(best(), 0b1111));
    for compression in compressions() {
        let small = several(compression, 0b1111);
        let (_, back) = plan_with(&small, EditOptions::default(), &[], decompress).unwrap();
        assert!(back == plain);
    }
}

/// Tools that compress and decompress do not open what is compressed.
#[test]
fn images_that_are_compressed_as_one_are_not_opened_to_be_compressed() {
    let plain = several(Compression::None, 0b1111);
    let closed = |file: &[u8], compress: Option<bool>| {
        let contents = survey_closed(Cursor::new(file), &Options::default()).unwrap();
        let mut edit = Edit::default();
        match compress {
            Some(recompress) => {
                edit.compress(CompressOptions::default().with_recompress(recompress));
            }
            None => edit.decompress(),
        }
        run(&contents, file, &[], &edit).unwrap().1
    };
    for compression in compressions() {
        let small = several(compression, 0b1111);
        assert!(closed(&small, None) == plain);
        assert!(closed(&small, Some(true)) == several(best(), 0b1111));
        let expected = if compression == Compression::None { best() } else { compression };
        assert!(closed(&small, Some(false)) == several(expected, 0b1111));
        // A fatbinary that stays, in a file that changes.
        let both = [&small[..], &plain].concat();
        assert!(closed(&both, None) == plain.repeat(2));
    }
}

/// Programs of all layouts with these fatbinaries.
fn programs(fatbins: &[Vec<u8>]) -> Vec<Linked> {
    let mut all = Vec::new();
    for style in [Style::First, Style::Third] {
        let plain = Linked { cuda: true, ..Linked::new(style, fatbins.to_vec()) };
        all.push(Linked { pointers: Pointers::Relr, ..plain.clone() });
        all.push(Linked { pointers: Pointers::Symbols, symbols: false, ..plain.clone() });
        all.push(Linked { e_type: EXEC, pointers: Pointers::Plain, ..plain.clone() });
        all.push(Linked { machine: AARCH64, page: 0x10000, ..plain.clone() });
        all.push(plain);
    }
    all
}

/// The fatbinaries that the wrappers of a library lead to.
fn registered(file: &[u8]) -> Vec<Vec<u8>> {
    let loaded = Loaded::new(file);
    let fatbin = |address| {
        let header = loaded.read(address, 16).unwrap();
        let size = Fatbin::parse_prefix(&header, u64::MAX).unwrap().size();
        loaded.read(address, size).unwrap()
    };
    loaded.registered().into_iter().map(fatbin).collect()
}

#[test]
fn wrappers_lead_to_what_is_left() {
    let fatbins: Vec<_> = (1..=4).map(|n| sample(n * 9, Compression::None)).collect();
    for program in programs(&fatbins) {
        let file = program.build();
        assert!(registered(&file) == fatbins);
        for name in SM {
            let (plan, out) = keep(&file, name, EditOptions::default()).unwrap();
            linked::check_same(&file, &out);
            // A page of 64 KiB stays.
            let is_smaller = out.len() < file.len() && plan.notes().is_empty();
            assert!(is_smaller || program.page > 4096, "{name}");
            let kept = fatbins.iter().map(|old| keep(old, name, EditOptions::default()).unwrap().1);
            assert!(registered(&out) == kept.collect::<Vec<_>>());
            assert!(keep(&out, name, EditOptions::default()).unwrap().0.is_unchanged());
        }
        let (_, small) = plan_with(&file, EditOptions::default(), &[], compress).unwrap();
        let packed: Vec<_> = (1..=4).map(|n| sample(n * 9, best())).collect();
        assert!(registered(&small) == packed);
        let (_, back) = plan_with(&small, EditOptions::default(), &[], decompress).unwrap();
        assert!(back == file);
    }
}

#[test]
fn dlls_lead_to_what_is_left() {
    let fatbins: Vec<_> = (1..=4).map(|n| sample(n * 9, Compression::None)).collect();
    let file = linked_pe::build_cuda(&fatbins);
    for name in SM {
        let (_, out) = keep(&file, name, EditOptions::default()).unwrap();
        linked_pe::check_same(&file, &out);
        assert!(out.len() < file.len(), "{name}");
        let kept = fatbins.iter().map(|old| keep(old, name, EditOptions::default()).unwrap().1);
        let found = linked_pe::registered(&out);
        assert!(kept.zip(&found).all(|(kept, found)| found.starts_with(&kept)), "{name}");
        assert_eq!(found.len(), fatbins.len());
    }
}

#[test]
fn dlls_grow_by_a_section() {
    let packed: Vec<_> = (1..=4).map(|n| sample(n * 9, best())).collect();
    let file = linked_pe::build_cuda(&packed);
    let error = plan_with(&file, EditOptions::default(), &[], decompress).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Host, "{error}");
    let options = EditOptions::default().with_grow(true);
    let (_, out) = plan_with(&file, options, &[], decompress).unwrap();
    assert!(out.windows(8).any(|bytes| bytes == b".nv_old\0"));
    let plain = (1..=4).map(|n| sample(n * 9, Compression::None));
    let found = linked_pe::registered(&out);
    assert!(plain.zip(&found).all(|(plain, found)| found.starts_with(&plain)));
}

#[test]
fn damaged_programs_cause_no_panic() {
    let fatbins: Vec<_> = (1..=2).map(|n| sample(n, Compression::Lz4(3))).collect();
    let file = Linked { cuda: true, ..Linked::new(Style::Third, fatbins) }.build();
    let loaded = Loaded::new(&file);
    let owned = [".nv_fatbin", ".nvFatBinSegment"].map(|name| loaded.section(name));
    let owned = owned.iter().flat_map(|section| {
        section.offset as usize..(section.offset + section.size.min(200)) as usize
    });
    judge_at(&file, owned, oracles::edits::check);
}
