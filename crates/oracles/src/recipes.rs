//! Notes of packs by which split libraries come back, made from the fuzzer's bytes, and any bytes.

use std::collections::BTreeSet;
use std::io::Cursor;

use arbitrary::{Result, Unstructured};
use byte_parts::Source;
use fat_edit::{Join, PackInput, Recipe};
use kpack::{Marker, NewKpack, Scheme, Tables};

/// The library's name in packs.
const NAME: &str = "lib/libfoo.so";

/// The most bytes that a join may hold at one time.
const LIMIT: u64 = 1 << 16;

/// Bytes of a new file that are written.
const MOST_WRITTEN: u64 = 1 << 20;

/// Reads any bytes as a recipe, and as the choices for one. Recipes that are read are followed, with a pack that has the code objects
/// they need, as many as fit in the limit: this ends with a file of the planned size, a reason or an error.
pub fn check(data: &[u8]) {
    follow(data);
    if let Ok(made) = made(&mut Unstructured::new(data)) {
        follow(&made);
    }
}

fn follow(bytes: &[u8]) {
    let Some(recipe) = Recipe::parse(bytes) else { return };
    let again = Recipe::parse(&recipe.to_vec()).expect("it was just written");
    assert_eq!(again, recipe);
    let pack = pack(&recipe);
    let tables = Tables::read(&mut Source::of_bytes(&pack), &(0..pack.len() as u64));
    let tables = tables.expect("it is in memory").expect("it was just written");
    let input = PackInput::new("pack", &tables, Source::of_bytes(&pack));
    let marker = Marker::new(NAME, ["../.kpack/foo_@GFXARCH@.kpack".to_owned()]);
    let wrappers: Vec<u64> = (0..4).collect();
    let mut join = Join::new(&marker, &wrappers, vec![input]).with_max_decompressed(LIMIT);
    let (found, hash) = join.way_back(recipe.host_size()).expect("the pack has it");
    assert_eq!((&found, hash), (&recipe, 7));
    let spool = Cursor::new(Vec::new());
    match join.plan_back(&recipe, spool) {
        Ok(Ok(plan)) if plan.size() <= MOST_WRITTEN && recipe.host_size() <= MOST_WRITTEN => {
            let host = vec![0; recipe.host_size() as usize];
            let mut out = Vec::new();
            plan.write(Cursor::new(host), &mut out).expect("all its parts are there");
            assert_eq!(out.len() as u64, plan.size());
        }
        Ok(Ok(_)) => {}
        Ok(Err(reason)) => crate::assert_message(&reason),
        Err(error) => crate::assert_message(&error),
    }
}

/// A pack with the recipe and its code objects.
fn pack(recipe: &Recipe) -> Vec<u8> {
    let mut new = NewKpack::new("foo", "gfx900", Scheme::Plain);
    let (mut seen, mut stored) = (BTreeSet::new(), Vec::new());
    let mut left = LIMIT;
    for (wrapper, target, size) in recipe.images() {
        if size > left || u32::try_from(wrapper).is_err() || !seen.insert((wrapper, target)) {
            continue;
        }
        left -= size;
        new.add(NAME, wrapper, target, size);
        stored.push(vec![0x5a; size as usize]);
    }
    let note = kpack::compress(&recipe.to_vec(), 1).expect("it is short");
    new.note(&format!("offload:{NAME}"), &[&7_u64.to_le_bytes()[..], &note].concat());
    let sizes: Vec<u64> = stored.iter().map(|code| code.len() as u64).collect();
    let layout = new.layout(&sizes).expect("no target is there twice");
    layout.to_vec(|n| &stored[*n]).expect("sizes match the inputs")
}

/// A recipe as bytes, mostly one that can be read.
fn made(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let host = u.int_in_range(0..=1000)?;
    let mut out = Vec::new();
    number(&mut out, host);
    for _ in 0..u.int_in_range(0..=6)? {
        step(u, &mut out, Some(host))?;
    }
    Ok(out)
}

/// Adds a step; in a bundle there is no host.
fn step(u: &mut Unstructured<'_>, out: &mut Vec<u8>, host: Option<u64>) -> Result<()> {
    match (u.int_in_range(0..=4)?, host) {
        (0_u8, Some(host)) => {
            out.push(0);
            number(out, u.int_in_range(0..=host)?);
            number(out, u.int_in_range(0..=20)?);
        }
        (4, Some(_)) => {
            let mut contents = Vec::new();
            for _ in 0..u.int_in_range(0..=4)? {
                step(u, &mut contents, None)?;
            }
            let level = if u.ratio(1, 2)? { 255 } else { u.int_in_range(0..=23)? };
            out.extend([4, u.int_in_range(1..=3)?, u.int_in_range(0..=2)?, 0, level]);
            out.push(u.int_in_range(0..=1)?);
            number(out, u.int_in_range(0..=200)?);
            number(out, contents.len() as u64);
            out.extend(contents);
        }
        (1, _) => {
            let len = u.int_in_range(0..=20)?;
            out.push(1);
            number(out, len as u64);
            out.extend(u.bytes(len)?);
        }
        (2, _) => {
            out.push(2);
            number(out, if u.ratio(1, 8)? { u.arbitrary()? } else { u.int_in_range(0..=5000)? });
        }
        _ => {
            let target = format!("gfx90{}", u.int_in_range(0..=3)?);
            out.push(3);
            number(out, u.int_in_range(0..=3)?);
            number(out, u.int_in_range(0..=1000)?);
            number(out, target.len() as u64);
            out.extend(target.as_bytes());
        }
    }
    Ok(())
}

/// Writes a number, 7 bits in each byte, the lowest first.
fn number(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
