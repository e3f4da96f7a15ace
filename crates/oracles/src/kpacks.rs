//! AMD's kernel packs, made from the fuzzer's bytes, and any bytes.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use byte_parts::Source;
use kpack::search::{Loader, Variables, key, lookup, places, subsets};
use kpack::{Kpack, Marker, NewKpack, Scheme, Tables, Wrapper};

/// Bytes that a code object may decompress to.
const LIMIT: u64 = 1 << 16;

/// A code object of a pack that is made: name of the library, wrapper, target, number.
type Made = (String, u64, String, u64);

/// Reads any bytes. Then makes a pack of them and checks that exactly its code objects are found, by a reader in memory, one with
/// seek and a loader, and that every change of the fuzzer is read within bounds.
pub fn check(data: &[u8]) {
    read(data);
    read_others(data);
    let u = &mut Unstructured::new(data);
    let Ok((new, entries, stored)) = made(u) else { return };
    let mut bytes = written(&new, &stored);
    let pack = Kpack::parse(&bytes).expect("it was just written");
    assert_eq!(pack.toc().entries().len(), entries.len());
    for (name, wrapper, arch, number) in &entries {
        let entry = pack.toc().find(&key(name, *wrapper), arch).expect("it was added");
        assert_eq!((entry.kernel_name(), entry.index()), (&**name, Some(*wrapper)));
        assert_eq!((entry.arch(), entry.ordinal()), (&**arch, *number));
        assert_eq!(pack.stored(entry), Some(&stored[*number as usize][..]));
        let hit = lookup(&[pack.toc()], &[arch], entry.key(), Loader::Later).expect("it is there");
        assert_eq!(hit.entry, entry);
    }
    for fault in pack.check() {
        assert_eq!(fault.to_string(), "", "a pack of ours is sound");
    }
    read(&bytes);
    crate::fields::change_bytes(u, &mut bytes, 6);
    read(&bytes);
}

/// Reads a pack, or other bytes.
fn read(bytes: &[u8]) {
    let pack = match Kpack::parse(bytes) {
        Ok(pack) => pack,
        Err(error) => {
            crate::assert_message(&error);
            assert!(error.offset() <= bytes.len() as u64, "{error}");
            return;
        }
    };
    with_seek(bytes, &pack);
    let faults = pack.check();
    for fault in &faults {
        crate::assert_message(fault);
        assert!(fault.offset() <= bytes.len() as u64, "{fault}");
    }
    for entry in pack.toc().entries() {
        let Some(range) = pack.blobs().range(entry) else {
            assert!(!faults.is_empty(), "an entry without code is a fault");
            continue;
        };
        assert!(range.end <= bytes.len() as u64);
        let stored = pack.stored(entry).expect("it lies in the pack");
        assert_eq!(stored.len() as u64, range.end - range.start);
        let found = pack.toc().find(entry.key(), entry.arch());
        assert_eq!(found.is_some(), pack.toc().archs().iter().any(|arch| arch == entry.arch()));
        drop(entry.entry_id());
        if pack.toc().scheme() == Scheme::Zstd && entry.original_size() <= LIMIT {
            match kpack::decompress(stored, entry.original_size()) {
                Ok(code) => assert_eq!(code.len() as u64, entry.original_size()),
                Err(error) => crate::assert_message(&error),
            }
        }
    }
    // Ours has no faults that the pack had not.
    let has_twice = faults.iter().any(|fault| fault.to_string().contains("twice"));
    for odd in [false, true] {
        let mut at = 0;
        let keeps = |_: &kpack::Entry| {
            at += 1;
            !odd || at % 2 == 1
        };
        let (new, numbers) = NewKpack::some_of(pack.toc(), keeps);
        let stored: Option<Vec<&[u8]>> = numbers
            .iter()
            .map(|number| {
                let range = pack.blobs().ranges().get(usize::try_from(*number).ok()?)?;
                Some(&bytes[range.start as usize..range.end as usize])
            })
            .collect();
        let Some(stored) = stored else { continue };
        let again =
            match new.layout(&stored.iter().map(|code| code.len() as u64).collect::<Vec<_>>()) {
                Ok(layout) => layout.to_vec(|n| stored[*n]).expect("sizes match the inputs"),
                Err(error) => {
                    assert!(has_twice, "{error}");
                    continue;
                }
            };
        let new = Kpack::parse(&again).expect("it was just written");
        assert!(odd || new.toc().entries().len() == pack.toc().entries().len());
        let (same, numbers) = NewKpack::some_of(new.toc(), |_| true);
        assert!(numbers.iter().copied().eq(0..stored.len() as u64));
        let sizes: Vec<u64> = stored.iter().map(|code| code.len() as u64).collect();
        let same = same.layout(&sizes).expect("it was read").to_vec(|n| stored[*n]);
        assert_eq!(same.expect("sizes match the inputs"), again);
    }
}

/// A reader that reads no more than the header, the table and lengths finds the same.
fn with_seek(bytes: &[u8], pack: &Kpack<'_>) {
    let tables = Tables::read(&mut Source::of_bytes(bytes), &(0..bytes.len() as u64));
    let tables = tables.expect("it is in memory").expect("the pack was read");
    assert_eq!(tables.blobs().ranges(), pack.blobs().ranges());
}

/// Reads the bytes as the other things of split libraries.
fn read_others(data: &[u8]) {
    match Marker::parse(data) {
        Ok((marker, len)) => {
            assert!(len <= data.len() && !marker.search_paths().is_empty());
            let bytes = marker.to_vec().expect("short texts");
            assert_eq!(Marker::parse(&bytes).expect("it was just written"), (marker, bytes.len()));
        }
        Err(error) => crate::assert_message(&error),
    }
    match Wrapper::parse(data) {
        Ok(wrapper) => assert_eq!(wrapper.to_bytes(), data[..Wrapper::SIZE]),
        Err(error) => crate::assert_message(&error),
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let names = subsets(text);
        assert!(names.len() <= 16 && (names.is_empty() || names.len().is_power_of_two()));
        let marker = ["a_@GFXARCH@".to_owned()];
        let variables = Variables::default().with_prefix(text);
        let named = text.split(':').filter(|path| !path.is_empty()).count();
        assert_eq!(places(&marker, &variables, &[text]).len(), named + names.len());
    }
    let _ = kpack::content_size(data);
}

fn written(new: &NewKpack, stored: &[Vec<u8>]) -> Vec<u8> {
    let sizes: Vec<u64> = stored.iter().map(|code| code.len() as u64).collect();
    let layout = new.layout(&sizes).expect("no target is there twice");
    layout.to_vec(|n| &stored[*n]).expect("sizes match the inputs")
}

/// A pack, its entries, and the code objects as they are stored.
fn made(u: &mut Unstructured<'_>) -> Result<(NewKpack, Vec<Made>, Vec<Vec<u8>>)> {
    let scheme = if u.arbitrary()? { Scheme::Plain } else { Scheme::Zstd };
    let mut new = NewKpack::new("group", "gfx900", scheme).with_family("gfx9");
    let mut seen: BTreeMap<(u8, u64, u8), u64> = BTreeMap::new();
    let (mut entries, mut stored, mut sizes) = (Vec::new(), Vec::<Vec<u8>>::new(), Vec::new());
    for _ in 0..u.int_in_range(0..=8)? {
        let place = (u.int_in_range(0..=2)?, wrapper_number(u)?, u.int_in_range(0..=2)?);
        if seen.contains_key(&place) {
            continue;
        }
        let (name, arch) = (format!("lib/{}.so", place.0), format!("gfx90{}:xnack-", place.2));
        let number = match sizes.len().checked_sub(1) {
            Some(last) if u.ratio(1, 4)? => {
                new.add_again(&name, place.1, &arch, sizes[last], last as u64);
                last as u64
            }
            _ => {
                let len = u.int_in_range(0..=200)?;
                let code = u.bytes(len)?;
                sizes.push(len as u64);
                stored.push(match scheme {
                    Scheme::Plain => code.to_vec(),
                    Scheme::Zstd => kpack::compress(code, 1).expect("it is short"),
                });
                new.add(&name, place.1, &arch, len as u64)
            }
        };
        if u.ratio(1, 3)? {
            new.set_entry_id("hipv4-amdgcn-amd-amdhsa--gfx900:xnack-");
        }
        seen.insert(place, number);
        entries.push((name, place.1, arch, number));
    }
    if u.ratio(1, 3)? {
        let len = u.int_in_range(0..=300)?;
        new.note("offload", u.bytes(len)?);
    }
    Ok((new, entries, stored))
}

/// A number of a wrapper: a small one, or any.
fn wrapper_number(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(if u.ratio(7, 8)? { u.int_in_range(0..=3)? } else { u.arbitrary::<u32>()?.into() })
}
