//! Compressed files can be decompressed, to the bytes that they were.

use std::ops::Range;

use crate::editing::*;
use fat_edit::{CompressOptions, EditNote, EditOptions, EditPlan, Error};
use fat_object::Location;
use samples::bundle::{GFX90A, HOST, bundle};
use samples::linked::{EXEC, Linked, Loaded, Pointers, Style};

fn compress(file: &[u8]) -> (EditPlan, Vec<u8>) {
    plan_with(file, EditOptions::default(), &[], |_, edit| {
        edit.compress(CompressOptions::default());
    })
    .unwrap()
}

fn decompress(file: &[u8]) -> Result<Vec<u8>, Error> {
    plan_with(file, EditOptions::default(), &[], |_, edit| edit.decompress()).map(|(_, out)| out)
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A bundle with this number of bytes of code that compresses well.
fn unit(seed: u32, size: u32) -> Vec<u8> {
    bundle(&[(HOST, b""), (GFX90A, &code(seed, size))], 4096)
}

fn library(style: Style, count: u32, operands: Vec<u64>) -> Linked {
    let units = (0..count).map(|n| unit(n + 1, 5000 + n % 7 * 3000)).collect();
    Linked { operands, ..Linked::new(style, units) }
}

/// The addresses of the section with the device code.
fn device_code(file: &[u8]) -> Range<u64> {
    let sections = Loaded::new(file).sections();
    let of = sections.iter().filter(|section| section.name == ".hip_fatbin");
    let start = of.clone().map(|section| section.address).min().unwrap();
    start..of.map(|section| section.address + section.size).max().unwrap()
}

/// Addresses of the bundles, compressed or not.
fn starts(file: &[u8]) -> Vec<u64> {
    let contents = surveyed(file);
    let segments = Loaded::new(file).segments();
    let address = |offset: u64| {
        let segment = segments.iter().find(|segment| {
            segment.kind == 1 && (segment.offset..segment.offset + segment.size).contains(&offset)
        });
        segment.map(|segment| offset - segment.offset + segment.address).unwrap()
    };
    let places = contents.containers().iter().map(|container| match container.location() {
        Location::File(at) => address(at),
        other => unreachable!("{other:?}"),
    });
    places.collect()
}

#[test]
fn files_whose_code_seems_to_refer_to_compressed_bundles_are_restored() {
    for style in [Style::First, Style::Third] {
        let count = 130;
        // Their offsets when nothing keeps them from closing up.
        let free = library(style, count, vec![0; 3]).build();
        let (_, closed_up) = compress(&free);
        let closed_up = starts(&closed_up);
        assert!(closed_up != starts(&free));
        let operands = [1, 41, 129].map(|n: usize| closed_up[n]).to_vec();
        let file = library(style, count, operands).build();
        let (plan, compressed) = compress(&file);
        assert!(compressed.len() * 2 < file.len(), "{} of {}", compressed.len(), file.len());
        assert!(plan.containers().iter().all(|c| c.size_after < c.size_before));
        assert!(!plan.notes().iter().any(|note| matches!(note, EditNote::NotRestored { .. })));
        assert!(decompress(&compressed).unwrap() == file);
    }
}

#[test]
fn files_with_any_code_before_any_bundles_are_restored() {
    let mut numbers = Numbers(13);
    let rounds = if samples::faulty::is_thorough() { 600 } else { 30 };
    let mut differing = 0;
    for round in 0..rounds {
        let style = if numbers.below(2) == 0 { Style::First } else { Style::Third };
        let count = 1 + numbers.below(9) as u32;
        let made = |operands: Vec<u64>| {
            let mut linked = library(style, count, operands);
            linked.after = round % 3 > 0;
            linked.interpreter = round % 4 == 1;
            linked.free_headers = round % 5;
            linked.tail = [0, 1, 0, 39, 300, 4095][round as usize % 6];
            match round % 7 {
                1 => linked.pointers = Pointers::Relr,
                2 => linked.pointers = Pointers::Symbols,
                3 => (linked.e_type, linked.pointers) = (EXEC, Pointers::Plain),
                _ => {}
            }
            linked.build()
        };
        let empty = vec![0; numbers.below(9) as usize];
        let slot = device_code(&made(empty.clone()));
        let page = |_| slot.start + 4096 * numbers.below((slot.end - slot.start) / 4096);
        let file = made(empty.iter().map(page).collect());
        let (plan, compressed) = compress(&file);
        let restored = decompress(&compressed).unwrap();
        let differs = restored.iter().zip(&file).position(|(a, b)| a != b);
        let told = plan.notes().iter().find_map(|note| match note {
            EditNote::NotRestored { offset } => Some(*offset as usize),
            _ => None,
        });
        assert_eq!(differs, told, "{round}");
        differing += u64::from(told.is_some() && round % 5 == 0);
    }
    // Without free program headers it is rare that code keeps a file from coming back.
    assert!(differing * 100 <= rounds, "{differing} of {rounds}");
}
