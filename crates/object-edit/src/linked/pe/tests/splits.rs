//! Sections split at bundles that cannot move, and headers that grow for it.

use super::*;

#[test]
fn the_section_is_split_at_the_page_of_a_bundle_that_is_not_aligned() {
    let units = vec![(0, 0x3000), (0x3008, 0x1800), (0x4808, 0x4321)];
    let sample = Sample { bundles: units, ..Sample::default() }.with_lea(1);
    let (new, notes) = edited(&sample, &[0x345, 0x800, 0x1321]);
    // Zeros of the page of the bundle remain.
    assert_eq!(notes, (8, false));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x400, 0x1c00]);
    let found = bundles(&new);
    assert_eq!(found[1].0.address, SLOT_AT as usize + 0x3000);
    assert_eq!(found[1].1[0].start - found[1].0.raw.start, 8);
}

#[test]
fn a_page_that_bundles_share_is_not_split() {
    let bundles = vec![(0, 0x3000), (0x3008, 0xbf8), (0x3c00, 0x4321)];
    let sample = Sample { bundles, ..Sample::default() }.with_lea(2);
    let sample = Sample { exports: vec![SLOT_AT + 0x3008], ..sample };
    let (new, notes) = edited(&sample, &[0x345, 0x108, 0x1321]);
    assert_eq!(notes, (8 + 0xaf0, false));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x400, 0x2000]);
}

#[test]
fn no_section_is_empty_where_the_first_bundle_is_removed() {
    let sample = Sample { wrappers: vec![1, 2], ..Sample::default() }.with_lea(1);
    let (new, notes) = resize(&sample.build(), plain(), &[0, 0x800, 0x1321]).unwrap();
    assert_eq!(notes, (0x3000, false));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x5400]);
    assert_eq!(registered(&new), [(1, 0x800), (2, 0x1321)]);
    let once = resize(&sample.build(), plain(), &[0, 0x400, 0x321]).unwrap().0;
    assert!(resize(&new, plain(), &[0x400, 0x321]).unwrap().0 == once);
}

/// A sample in which exports pin bundles, 8 bytes after the start of a page, and sizes that leave a gap after each.
fn pinned(count: u32, gap: usize) -> (Sample, Vec<usize>) {
    let bundles: Vec<_> = (0..count).map(|n| (n * 0x10000 + 8, 0x10000)).collect();
    let wrappers = (0..bundles.len()).collect();
    let exports = bundles.iter().map(|(at, _)| SLOT_AT + at).collect();
    let sizes = vec![0x10000 - gap; bundles.len()];
    (Sample { bundles, wrappers, exports, ..Sample::default() }, sizes)
}

fn headers_size(file: &[u8]) -> u32 {
    u32_at(file, 0x98 + 60)
}

#[test]
fn headers_grow_where_that_saves_more() {
    // There is room for 9 further headers.
    let (sample, sizes) = pinned(10, 0x2000);
    assert_eq!(headers_size(&edited(&sample, &sizes).0), 0x400);
    let (sample, sizes) = pinned(11, 0x2000);
    let (new, notes) = edited(&sample, &sizes);
    assert_eq!((headers_size(&new), notes), (0x1000, (10 * 8, false)));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0xe200; 11]);
    assert_eq!(sections(&new)[0].raw.start, 0x1000);
    assert_eq!(sample.build().len() - new.len(), 10 * 0x1e00 + 0x2000 - 0xc00);
    // Headers of the old size, and zeros, are smaller.
    let (sample, sizes) = pinned(11, 0x400);
    let (new, notes) = edited(&sample, &sizes);
    assert_eq!((headers_size(&new), notes), (0x400, (0x400 + 9 * 8, false)));
    // All that follows in the file moves, symbols aside: they number sections.
    let (sample, sizes) = pinned(32, 0x2000);
    let sample = Sample { checksum: true, overlay: b"overlay".to_vec(), ..sample };
    let (new, notes) = edited(&sample, &sizes);
    assert_eq!((headers_size(&new), notes), (0x1000, (31 * 8, false)));
    assert!(new.ends_with(b"overlay") && u32_at(&new, 0x98 + 64) == checksum(&new));
    let (once, _) = resize(&sample.build(), plain(), &[0x8000; 32]).unwrap();
    assert!(resize(&new, plain(), &[0x8000; 32]).unwrap().0 == once);
    let sample = Sample { symbols: true, ..sample };
    let (new, notes) = edited(&sample, &sizes);
    assert_eq!((headers_size(&new), notes), (0x400, (31 * 0x2000, false)));
}

#[test]
fn there_are_at_most_96_sections() {
    let (sample, sizes) = pinned(100, 0x2000);
    let (new, notes) = edited(&sample, &sizes);
    // The headers end where the memory of the first section starts.
    let most = (0x1000 - 0x98 - 240) / 40;
    assert_eq!(sections(&new).len(), most);
    let cuts = most as u64 - 6;
    assert_eq!(notes, (cuts * 8 + (99 - cuts) * 0x2000, false));
}

#[test]
fn headers_grow_for_a_new_place() {
    // The section table ends where the headers do.
    let plain = Sample::default().build();
    let (from, to) = (0x98 + 240, 0x400 - 6 * 40);
    let mut old = plain.clone();
    old.copy_within(from..from + 6 * 40, to);
    old[from..to].fill(0);
    old[0x94..0x96].copy_from_slice(&u16::try_from(to - 0x98).unwrap().to_le_bytes());
    let (mut new, _) = run(&old, 0, grow(), zeroing(&plain, 0x9000)).unwrap();
    assert_eq!(headers_size(&new), 0x1000);
    new.copy_within(to..to + 7 * 40, from);
    new[0x94..0x96].copy_from_slice(&[240, 0]);
    same_memory(&plain, &new);
    let last = sections(&new).pop().unwrap();
    assert_eq!((last.address, last.size), (0x10000, 3 * 0x9000));
}
