//! The entries of NVIDIA fatbinaries that stay: the CUDA driver would take them, by NVIDIA's compatibility guides.

use std::io::Cursor;

use device_select::{CodeSizes, Device, PtxJit, Rule, Tally, Wanted, select};
use fat_object::{Listing, Options};
use nv_fatbin::{Architecture, Compression, Kind, NewEntry, NewFatbin};
use samples::device::old_cubin;

/// A fatbinary of entries by name: `sm_90` is a cubin, `compute_90` is PTX, `lto_90` is LTO-IR, `tile_90` is of a kind that the
/// walk does not know.
fn fatbin(entries: &[&str]) -> Vec<u8> {
    let mut fatbin = NewFatbin::new();
    for entry in entries {
        let (kind, number) = entry.split_once('_').unwrap();
        let kind = match kind {
            "sm" => Kind::ELF,
            "compute" => Kind::PTX,
            "lto" => Kind::LTO_IR,
            _ => Kind(0x80),
        };
        let architecture = Architecture::from_name(&format!("sm_{number}")).unwrap();
        let entry = NewEntry::new(kind, architecture, entry.as_bytes());
        fatbin.add(&entry.with_compression(Compression::Lz4(3))).unwrap();
    }
    fatbin.to_vec().unwrap()
}

fn listing(fatbins: &[&[&str]]) -> Listing {
    let file: Vec<u8> = fatbins.iter().flat_map(|entries| fatbin(entries)).collect();
    fat_object::list(Cursor::new(file), &Options::default()).unwrap()
}

/// Returns the rule that `--keep` with these IDs and options gives.
fn rule(asked: &str) -> Rule {
    let (mut wanted, mut exact, mut drop_ptx) = (Vec::new(), false, false);
    for word in asked.split(' ') {
        match word {
            "exact" => exact = true,
            "no-ptx" => drop_ptx = true,
            id => wanted.push(Wanted::parse(id).unwrap()),
        }
    }
    Rule::keep(wanted).with_exact(exact).with_drop_ptx(drop_ptx)
}

/// Returns the positions of what stays, and of what goes although a GPU has nothing else.
fn fates(entries: &[&str], asked: &str) -> (Vec<usize>, Vec<usize>) {
    let fates = rule(asked).fates(listing(&[entries]).images());
    assert_eq!(fates.len(), entries.len());
    let of = |is: &dyn Fn(&device_select::Fate) -> bool| {
        fates.iter().enumerate().filter(|(_, fate)| is(fate)).map(|(n, _)| n).collect()
    };
    (of(&device_select::Fate::stays), of(&|fate| matches!(fate, device_select::Fate::GoesUnserved)))
}

#[test]
fn what_the_driver_takes_stays() {
    let all = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "compute_90", "compute_75"];
    for (asked, stays) in [
        ("sm_75", &[0][..]),
        ("sm_80", &[1]),
        ("sm_89", &[2]),
        ("sm_90", &[3, 4]), // which of them is not documented
        ("sm_100", &[5]),
        ("sm_120 sm_72", &[5]),
        ("sm_80 sm_121", &[1, 5]),
        ("sm_90 compute_90", &[3, 4, 5]),
        ("sm_90 compute_75", &[3, 4, 6]),
        ("sm_90 exact", &[3, 5]),
        ("sm_90a exact", &[4]),
        ("gfx906", &[]),
    ] {
        assert_eq!(fates(&all, asked), (stays.to_vec(), vec![]), "{asked}");
    }
}

#[test]
fn suffixes_families_and_duplicates_count() {
    for (entries, asked, stays) in [
        (&["sm_100", "sm_100f", "sm_100a"][..], "sm_100", &[0, 1, 2][..]),
        (&["sm_100", "sm_100f", "sm_100a"], "sm_103", &[0, 1]),
        (&["sm_100a", "compute_80"], "sm_103", &[1]),
        (&["sm_100f", "compute_80"], "sm_110", &[1]),
        (&["compute_100f", "compute_90"], "sm_103", &[0]),
        (&["compute_100f", "compute_90"], "sm_120", &[1]),
        (&["sm_80", "sm_80", "compute_80"], "sm_80", &[0, 1]),
        (&["sm_101", "compute_80"], "sm_110", &[1]),
    ] {
        assert_eq!(fates(entries, asked), (stays.to_vec(), vec![]), "{entries:?} {asked}");
    }
}

/// LTO-IR is for link steps, not for GPUs. The users of other kinds are not known.
#[test]
fn code_that_no_driver_loads_stays_where_it_may_be_of_use() {
    let entries = ["lto_80", "lto_100", "tile_90", "sm_80", "compute_80"];
    assert_eq!(fates(&entries, "sm_90"), (vec![0, 2, 4], vec![]));
    assert_eq!(fates(&entries, "sm_86"), (vec![0, 2, 3], vec![]));
    assert_eq!(fates(&entries, "sm_80 exact"), (vec![0, 3, 4], vec![]));
}

#[test]
fn what_alone_serves_a_gpu_is_reported_when_it_goes() {
    let entries = ["sm_80", "compute_80"];
    for (asked, stays, unserved) in [
        ("sm_86 no-ptx", &[0][..], &[][..]),
        ("sm_90 no-ptx", &[], &[1]),
        ("sm_80 sm_90 no-ptx", &[0], &[1]),
        ("sm_86 exact", &[], &[0]),
        ("sm_75 no-ptx", &[], &[]), // nothing served it before
        ("sm_80 exact no-ptx", &[0], &[]),
    ] {
        assert_eq!(fates(&entries, asked), (stays.to_vec(), unserved.to_vec()), "{asked}");
    }
}

#[test]
fn each_fatbinary_is_judged_alone() {
    let listing = listing(&[&["sm_80", "compute_80"], &["compute_75"], &["sm_75", "sm_90"]]);
    let fates = rule("sm_80").fates(listing.images());
    let stays: Vec<bool> = fates.iter().map(device_select::Fate::stays).collect();
    assert_eq!(stays, [true, false, true, false, false]);
}

#[test]
fn ptx_is_dropped_by_its_own_name() {
    let listing = listing(&[&["sm_80", "compute_80"]]);
    for (id, stays) in [("compute_80", [true, false]), ("sm_80", [false, false])] {
        let rule = Rule::drop([Wanted::parse(id).unwrap()]);
        let fates = rule.fates(listing.images());
        assert_eq!(fates.iter().map(device_select::Fate::stays).collect::<Vec<_>>(), stays, "{id}");
    }
}

/// The images of an entry that has several, and other entries, are one container.
#[test]
fn images_that_are_compressed_as_one_are_entries() {
    let code = |kind, sm: u8| {
        let architecture = Architecture::from_name(&format!("sm_{sm}")).unwrap();
        NewEntry::new(kind, architecture, old_cubin(sm.into()))
    };
    let images = [75, 80, 86].map(|sm| code(Kind::ELF, sm));
    let several = NewEntry::concatenated(&images).unwrap().with_compression(Compression::Lz4(3));
    let mut fatbin = NewFatbin::new();
    fatbin.add(&code(Kind::PTX, 80).with_compression(Compression::Lz4(3))).unwrap();
    fatbin.add(&several).unwrap();
    let file = fatbin.to_vec().unwrap();
    let listing = fat_object::list(Cursor::new(&file), &Options::default()).unwrap();
    for (asked, stays) in
        [("sm_86", [false, false, false, true]), ("sm_90", [true, false, false, false])]
    {
        let fates = rule(asked).fates(listing.images());
        assert_eq!(
            fates.iter().map(device_select::Fate::stays).collect::<Vec<_>>(),
            stays,
            "{asked}"
        );
    }
    let units = device_select::units(Cursor::new(file)).unwrap();
    assert_eq!(units.iter().map(|unit| unit.candidates().len()).collect::<Vec<_>>(), [4]);
}

/// The variables of the environment that the CUDA driver reads.
#[test]
fn the_driver_may_be_told_to_compile_always_or_never() {
    let file = fatbin(&["sm_80", "compute_75", "lto_80"]);
    let units = device_select::units(Cursor::new(file)).unwrap();
    for (gpu, ptx_jit, loads) in [
        ("sm_86", PtxJit::Needed, &[0][..]),
        ("sm_86", PtxJit::Forced, &[1]),
        ("sm_86", PtxJit::Disabled, &[0]),
        ("sm_90", PtxJit::Needed, &[1]),
        ("sm_90", PtxJit::Disabled, &[]),
    ] {
        let gpu = Device::parse(gpu).unwrap().with_ptx_jit(ptx_jit);
        let selection = select(&units, &gpu);
        let loaded: Vec<usize> = selection.answers().iter().flat_map(|one| one.loaded()).collect();
        assert_eq!(loaded, loads, "{} {ptx_jit:?}", gpu.name());
    }
}

#[test]
fn sums_are_by_kind_and_by_fate() {
    let listing = listing(&[
        &["sm_80", "sm_90", "compute_90", "lto_90"],
        &["sm_80", "compute_80", "tile_90"],
    ]);
    let images = listing.images();
    let size = |ids: &[usize]| ids.iter().map(|&id| images[id].stored_estimate()).sum::<u64>();
    let tally = Tally::of(&rule("sm_90"), images, |image| image.index() != 4);
    let CodeSizes { machine_code, ptx, lto_ir, other, .. } = tally.kept;
    assert_eq!(
        [machine_code, ptx, lto_ir, other],
        [size(&[1]), size(&[5]), size(&[3]), size(&[6])]
    );
    assert_eq!((tally.removed.total(), tally.stuck.total()), (size(&[0, 2]), size(&[4])));
    assert_eq!((tally.stuck.machine_code, tally.unserved), (size(&[4]), 0));
    let without_ptx = Tally::of(&rule("sm_90 no-ptx"), images, |_| true);
    assert_eq!((without_ptx.kept.ptx, without_ptx.unserved), (0, size(&[5])));
    let (mut twice, all) =
        (tally, tally.kept.total() + tally.removed.total() + tally.stuck.total());
    twice += tally;
    assert_eq!(twice.kept.total() + twice.removed.total() + twice.stuck.total(), 2 * all);
}
