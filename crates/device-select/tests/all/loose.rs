//! Loose images: a file goes only if it is device code as a whole, and no GPU that is asked for loads it.

use std::io::Cursor;

use device_select::{Device, LoosePlace, PlaceVerdict, Rule, Wanted, select, units};
use fat_object::Options;
use samples::bundle::bundle;
use samples::device::{amd, new_cubin, old_cubin};
use samples::fatbin::{Made, fatbin};

const GFX906: u32 = 0x2f;
const GFX90A: u32 = 0x3f;
const GFX1100: u32 = 0x41;

fn keep(ids: &[&str]) -> Rule {
    Rule::keep(ids.iter().map(|id| Wanted::parse(id).unwrap()))
}

/// Returns whether a file stays; `None` if it is not a loose image.
fn needed(rule: &Rule, file: &[u8]) -> Option<bool> {
    let image = rule.loose(Cursor::new(file), &Options::default()).unwrap();
    image.map(|image| image.is_needed())
}

fn ptx(target: &str) -> Vec<u8> {
    format!("//\n.version 8.7\n.target {target}\n.address_size 64\n").into_bytes()
}

/// Files that are for one GPU each, with the files themselves.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for sm in [70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121] {
        let cubin = if sm < 100 { old_cubin(sm) } else { new_cubin(sm) };
        files.push((format!("cubin {sm}"), cubin));
        files.push((format!("PTX {sm}"), ptx(&format!("sm_{sm}"))));
        let entries = [Made::cubin(sm, &old_cubin(sm))];
        files.push((format!("fatbinary {sm}"), fatbin(&entries)));
    }
    files.push(("PTX 90a".to_owned(), ptx("sm_90a")));
    files.push(("PTX 100f".to_owned(), ptx("sm_100f")));
    for (id, flags) in [("gfx906", GFX906), ("gfx90a", GFX90A), ("gfx1100", GFX1100)] {
        files.push((format!("code object {id}"), amd(flags)));
        let entry = format!("hipv4-amdgcn-amd-amdhsa--{id}");
        let host = ("host-x86_64-unknown-linux--", &b""[..]);
        files.push((format!("bundle {id}"), bundle(&[host, (&entry, &amd(flags))], 4096)));
    }
    files
}

/// The rule and the choice of the runtimes are two programs: what a runtime loads stays, and nothing else.
#[test]
fn a_file_goes_unless_a_runtime_loads_it() {
    let gpus = [
        "sm_70", "sm_72", "sm_80", "sm_86", "sm_90", "sm_103", "sm_121", "gfx906", "gfx90a",
        "gfx1100",
    ];
    for (name, file) in files() {
        let units = units(Cursor::new(&file)).unwrap();
        let loads = |gpu: &str| select(&units, &Device::parse(gpu).unwrap()).is_served();
        for gpu in gpus {
            assert_eq!(needed(&keep(&[gpu]), &file), Some(loads(gpu)), "{name} {gpu}");
        }
        let some = loads("sm_86") || loads("gfx90a");
        assert_eq!(needed(&keep(&["sm_86", "gfx90a"]), &file), Some(some), "{name}");
        // A part of a file is not understood, or stays what it was.
        for end in (0..file.len()).step_by(61) {
            let part = needed(&keep(&["sm_86", "gfx90a"]), file.get(..end).unwrap());
            assert!(part != Some(!some) || name.starts_with("PTX"), "{name} {end}");
        }
    }
}

#[test]
fn other_files_are_none() {
    let rule = keep(&["sm_90"]);
    let hip = "hip-amdgcn-amd-amdhsa--gfx906";
    let host = "host-x86_64-unknown-linux--";
    let object = samples::elf::object(vec![]).build();
    let trailing = [fatbin(&[Made::cubin(80, &old_cubin(80))]), b"and more".to_vec()].concat();
    // The operating system of a graphics shader is Mesa's.
    let shader = samples::with(&amd(GFX906), 7, &[0x42]);
    for (name, file) in [
        ("nothing", Vec::new()),
        ("text", b"import os\n".to_vec()),
        ("object", object.clone()),
        ("bundle with an object", bundle(&[(host, &object), (hip, &amd(GFX906))], 1)),
        ("bundle of the host", bundle(&[(host, b"")], 1)),
        ("code of the host", bundle(&[("openmp-x86_64-unknown-linux-gnu-", b"code")], 1)),
        ("trailing bytes", trailing),
        ("SPIR-V", samples::device::spirv(&[])),
        ("shader", shader),
        ("bitcode", b"BC\xc0\xde\x35\x14\0\0".to_vec()),
        ("PTX for nothing", b".version 8.0\n".to_vec()),
    ] {
        assert_eq!(needed(&rule, &file), None, "{name}");
    }
    assert_eq!(needed(&rule, &bundle(&[(host, b""), (hip, &amd(GFX906))], 1)), Some(false));
}

#[test]
fn options_of_the_rule_hold() {
    let wanted = || [Wanted::parse("sm_86").unwrap()];
    let fatbins = fatbin(&[Made::cubin(80, &old_cubin(80)), Made::cubin(90, &old_cubin(90))]);
    let exact = Rule::keep(wanted()).with_exact(true);
    let drop = Rule::drop(wanted());
    for (file, kept, exactly, dropped) in [
        (old_cubin(80), true, false, true),
        (old_cubin(86), true, true, false),
        (ptx("sm_80"), true, false, true),
        // One of two stays: the file is edited.
        (fatbins, true, false, true),
    ] {
        let found = [&keep(&["sm_86"]), &exact, &drop].map(|rule| needed(rule, &file));
        assert_eq!(found, [Some(kept), Some(exactly), Some(dropped)]);
    }
}

/// Returns a rule that drops all images of the place.
fn drop_all() -> Rule {
    Rule::drop(["sm_80", "sm_100", "gfx906"].map(|gpu| Wanted::parse(gpu).unwrap()))
}

#[test]
fn a_place_is_one_question() {
    let images = [old_cubin(80), new_cubin(100), amd(GFX906)];
    for (asked, verdicts) in [
        (&["sm_80"][..], [PlaceVerdict::Thinned; 3]),
        (&["sm_60", "gfx906"], [PlaceVerdict::Thinned; 3]),
        (
            &["sm_60"],
            [PlaceVerdict::NotConcerned, PlaceVerdict::NotConcerned, PlaceVerdict::Thinned],
        ),
        (&[], [PlaceVerdict::Emptied, PlaceVerdict::Emptied, PlaceVerdict::Thinned]),
    ] {
        let rule = if asked.is_empty() { drop_all() } else { keep(asked) };
        let mut place = LoosePlace::default();
        for image in &images {
            let image = rule.loose(Cursor::new(image), &Options::default()).unwrap();
            place.add(&image.unwrap());
        }
        let options = [(false, false), (true, false), (true, true)];
        let found = options.map(|(missing, empty)| place.verdict(&rule, missing, empty));
        assert_eq!(found, verdicts, "{asked:?}");
        assert_eq!((place.images(), &*place.has()), (3, "gfx906, sm_100, sm_80"));
    }
}
