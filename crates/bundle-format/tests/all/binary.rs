//! The binary layout: what clang-offload-bundler writes, and what nobody should have written.

use crate::common::told;
use bundle_format::{Bundle, Error, ErrorKind, MAGIC, bundles};
use byte_parts::Part;
use samples::table::faults;

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICE: &str = "hip-amdgcn-amd-amdhsa--gfx906";

/// clang-offload-bundler of LLVM 22:
/// `clang-offload-bundler --type=bc --bundle-align=16 --input=h --input=d --output=b
/// --targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx906`
/// where h holds `host\n` and d holds `dev1\n`; 165 bytes.
fn sample() -> Vec<u8> {
    let mut data = Vec::new();
    data.extend(b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0");
    data.extend(b"\x90\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0");
    data.extend(b"host-x86_64-unknown-linux-gnu-");
    data.extend(b"\xa0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x1d\0\0\0\0\0\0\0");
    data.extend(b"hip-amdgcn-amd-amdhsa--gfx906\0\0\0\0\0");
    data.extend(b"host\n\0\0\0\0\0\0\0\0\0\0\0");
    data.extend(b"dev1\n");
    data
}

const NO_MAGIC: &str =
    "NotABundle at 0x0: bundle does not start with the magic \"__CLANG_OFFLOAD_BUNDLE__\"";

// Fields of the sample.
const COUNT: usize = 24;
const OFFSET_0: usize = 32;
const SIZE_0: usize = 40;
const LEN_0: usize = 48;
const OFFSET_1: usize = 86;
const SIZE_1: usize = 94;
const LEN_1: usize = 102;
const HEADER_LEN: u64 = 0x8b;

fn with(mut data: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
    data
}

fn error(data: &[u8]) -> Error {
    Bundle::parse(data).unwrap_err()
}

#[test]
fn reads_what_the_bundler_writes() {
    let data = sample();
    let bundle = Bundle::parse(&data).unwrap();
    assert_eq!((bundle.len(), bundle.is_empty()), (2, false));
    assert_eq!((bundle.header_len(), bundle.end()), (HEADER_LEN, 165));
    let found: Vec<_> = bundle
        .entries()
        .map(|e| (e.index(), e.id_str().unwrap(), e.offset(), e.size(), e.payload().unwrap()))
        .collect();
    assert_eq!(found, [(0, HOST, 0x90, 5, &b"host\n"[..]), (1, DEVICE, 0xa0, 5, &b"dev1\n"[..])],);
    assert_eq!(bundle.entries().len(), 2);
}

#[test]
fn writes_what_the_bundler_writes() {
    let layout = bundle_format::layout([(HOST, 5), (DEVICE, 5)], 16).unwrap();
    assert_eq!((layout.sizes(), layout.size()), (&[5, 5][..], 165));
    assert_eq!(
        (layout.offset(0), layout.offset(1), layout.offset(2)),
        (Some(0x90), Some(0xa0), None)
    );
    assert_eq!(
        layout.parts().iter().collect::<Vec<_>>(),
        [
            Part::Bytes(&sample()[..0x8b]),
            Part::Zeros(5),
            Part::Input(&0, 0..5),
            Part::Zeros(11),
            Part::Input(&1, 0..5),
        ]
    );
    assert_eq!(layout.to_vec(&[b"host\n", b"dev1\n"]).unwrap(), sample());
}

#[test]
fn empty_code_objects_have_offsets_and_padding() {
    // As clang-offload-bundler of LLVM 22 with --bundle-align=64 and two empty inputs: 192 bytes.
    let layout = bundle_format::layout([(HOST, 0), (DEVICE, 0)], 64).unwrap();
    assert_eq!((layout.offset(0), layout.offset(1), layout.size()), (Some(192), Some(192), 192));
    let bytes = layout.to_vec(&[b"", b""]).unwrap();
    assert_eq!(bytes.len(), 192);
    assert!(bytes[0x8b..].iter().all(|&byte| byte == 0));
    let bundle = Bundle::parse(&bytes).unwrap();
    assert_eq!(bundle.end(), 192);
    assert_eq!(bundle.entries().map(|e| e.payload()).collect::<Vec<_>>(), [Some(&[][..]); 2]);
}

#[test]
fn any_alignment_is_allowed() {
    let layout = bundle_format::layout([("a", 1), ("b", 1)], 7).unwrap();
    assert_eq!((layout.offset(0), layout.offset(1)), (Some(84), Some(91)));
    let layout = bundle_format::layout([("a", 1), ("b", 1)], 1).unwrap();
    assert_eq!((layout.offset(0), layout.offset(1)), (Some(82), Some(83)));
    assert!(!layout.parts().iter().any(|part| matches!(part, Part::Zeros(_))));
}

#[test]
fn a_bundle_may_be_empty() {
    let bytes = bundle_format::layout::<&str>([], 4096).unwrap().to_vec(&[]).unwrap();
    assert_eq!(bytes.len(), 32);
    let bundle = Bundle::parse(&bytes).unwrap();
    assert!(bundle.is_empty());
    assert_eq!((bundle.header_len(), bundle.end()), (32, 32));
    assert_eq!(bundle.entries().count(), 0);
}

#[test]
fn writing_refuses_what_cannot_be_laid_out() {
    let error =
        |sizes: [(&str, u64); 2], align| told(&bundle_format::layout(sizes, align).unwrap_err());
    let zero = "Layout: bundle alignment is 0, expected at least 1";
    assert_eq!(error([(HOST, 0), (DEVICE, 0)], 0), zero);
    let empty = "Id at 0x39: bundle entry 1 at 0x39 has an empty ID";
    assert_eq!(error([("a", 0), ("", 0)], 1), empty);
    for (sizes, align, entry) in [
        ([u64::MAX, 0], 1, 0),
        ([u64::MAX - 82, 1], 1, 1),
        ([1, 0], 1 << 63, 1),
        ([1, 1], u64::MAX, 0),
    ] {
        assert_eq!(
            error([("a", sizes[0]), ("b", sizes[1])], align),
            format!("Layout: bundle entry {entry} would end beyond the largest offset")
        );
    }
}

#[test]
fn a_wrong_magic_is_an_error_from_its_first_wrong_byte() {
    for len in 0..MAGIC.len() {
        for byte in (0..=255).filter(|&byte| byte != MAGIC[len]) {
            let bytes = [&MAGIC[..len], &[byte]].concat();
            assert_eq!(told(&error(&bytes)), NO_MAGIC);
            assert_eq!(told(&Bundle::parse_prefix(&bytes, 1 << 20).unwrap_err()), NO_MAGIC);
        }
    }
}

#[test]
fn every_truncation_is_reported_as_such() {
    for len in (0..165).step_by(if cfg!(miri) { 13 } else { 1 }) {
        let found = error(&sample()[..len]);
        assert_eq!(found.kind(), ErrorKind::Truncated, "{len} bytes: {found}");
        assert_eq!(found.needed(), None);
        // All of it is there, but not in memory.
        if let Err(found) = Bundle::parse_prefix(&sample()[..len], 165) {
            assert_eq!(found.kind(), ErrorKind::Incomplete, "{len} bytes: {found}");
            assert!(found.needed().unwrap() > u64::try_from(len).unwrap());
        }
        // The same after another one.
        let two = [&sample(), &sample()[..len]].concat();
        if let Some(found) = bundles(&two).nth(1) {
            let found = found.unwrap_err();
            assert!(found.to_string().starts_with("at offset 0xa5: "), "{found}");
            assert!(found.offset().unwrap() >= 165, "{found}");
            assert_eq!(found.kind(), ErrorKind::Truncated, "{len} bytes: {found}");
        }
    }
}

/// [`faults`] says how to read a row.
const FAULTS: &str = "
bundle count=6,max: Truncated at 0x0: bundle has # entries, too many for the 0xa5 bytes of the container
bundle len_0=0: Id at 0x20: bundle entry 0 at 0x20 has an empty ID
bundle len_1=0: Id at 0x56: bundle entry 1 at 0x56 has an empty ID
bundle len_0=86: Truncated at 0x8e: bundle entry 1 has its descriptor at 0x8e, beyond the end of the container at 0xa5
bundle len_1=56,max: Truncated at 0x6e: bundle entry 1 has an ID of @ bytes at 0x6e, beyond the end of the container at 0xa5
bundle offset_1=0xa0 size_1=6: Truncated at 0xa0: bundle entry 1 lies at 0xa0..0xa6, beyond the end of the container at 0xa5
bundle offset_1=166 size_1=0: Truncated at 0xa6: bundle entry 1 lies at 0xa6..0xa6, beyond the end of the container at 0xa5
bundle offset_1=0xa0 size_1=max: Truncated at 0xa0: bundle entry 1 lies at 0xa0..0x1000000000000009f, beyond the end of the container at 0xa5
bundle offset_1=max size_1=max: Truncated at @: bundle entry 1 lies at @..0x1fffffffffffffffe, beyond the end of the container at 0xa5
bundle offset_0=1: Malformed at @: bundle entry 0 lies at @, inside the descriptors, which end at 0x8b
bundle offset_1=0,32,0x8a: Malformed at @: bundle entry 1 lies at @, inside the descriptors, which end at 0x8b
bundle offset_1=0x94: Malformed at @: bundle entries 0 and 1 overlap at @
bundle offset_0=0xa0 offset_1=0x9c: Malformed at 0xa0: bundle entries 1 and 0 overlap at 0xa0
";

#[test]
fn each_fault_has_its_kind_place_and_text() {
    let put = |data: &mut [u8], _: &str, field: &str, value| {
        let at = match field {
            "count" => COUNT,
            "offset_0" => OFFSET_0,
            "len_0" => LEN_0,
            "offset_1" => OFFSET_1,
            "size_1" => SIZE_1,
            _ => LEN_1,
        };
        data[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
    };
    faults(FAULTS, |_| sample(), put, |data| told(&error(data)));
    for len in [0, 31] {
        let text = format!("bundle header needs 32 bytes, but only {len} are there");
        assert_eq!(told(&error(&sample()[..len])), format!("Truncated at 0x0: {text}"));
    }
}

#[test]
fn the_order_of_entries_need_not_be_that_of_contents() {
    let data = with(with(sample(), OFFSET_0, 0xa0), OFFSET_1, 0x90);
    assert_eq!(Bundle::parse(&data).unwrap().end(), 165);
}

#[test]
fn empty_entries_may_lie_anywhere_inside() {
    for offset in [0, 33, 0x92, 0xa2, 165] {
        let data = with(with(sample(), OFFSET_0, offset), SIZE_0, 0);
        let bundle = Bundle::parse(&data).unwrap();
        let entry = bundle.entries().next().unwrap();
        assert_eq!((entry.offset(), entry.payload()), (offset, Some(&[][..])));
        assert_eq!(bundle.end(), 165);
    }
}

#[test]
fn equal_ids_are_kept() {
    let bytes =
        bundle_format::layout([("a", 1), ("a", 1)], 1).unwrap().to_vec(&[b"1", b"2"]).unwrap();
    let bundle = Bundle::parse(&bytes).unwrap();
    let payloads: Vec<_> = bundle.entries().map(|e| e.payload().unwrap()).collect();
    assert_eq!(payloads, [b"1", b"2"]);
}

#[test]
fn ids_need_not_be_utf8() {
    let bytes = bundle_format::layout([(b"a\xff", 0)], 1).unwrap().to_vec(&[b""]).unwrap();
    let entry = Bundle::parse(&bytes).unwrap().entries().next().unwrap();
    assert_eq!(entry.id(), b"a\xff");
    let text = "Id: bundle entry 0 has an ID that is not utf-8 from its byte 1 on";
    assert_eq!(told(&entry.id_str().unwrap_err()), text);
    assert_eq!(format!("{entry:?}"), r#"Entry { index: 0, id: "a\xff", offset: 58, size: 0 }"#);
}

/// Reads with ever longer prefixes; returns their lengths.
fn rounds(data: &[u8], first: usize) -> Vec<usize> {
    let mut rounds = vec![first];
    loop {
        let len = *rounds.last().unwrap();
        match Bundle::parse_prefix(&data[..len], u64::try_from(data.len()).unwrap()) {
            Ok(_) => return rounds,
            Err(error) => {
                let needed = usize::try_from(error.needed().unwrap()).unwrap();
                assert!(needed > len && needed <= data.len());
                rounds.push(needed);
            }
        }
    }
}

#[test]
fn a_prefix_is_enough() {
    let data = sample();
    assert_eq!(rounds(&data, 0), [0, 32, 82, 164]);
    assert_eq!(rounds(&data, 0x8b), [0x8b]);
    let bundle = Bundle::parse_prefix(&data[..0x8b], 165).unwrap();
    assert_eq!((bundle.len(), bundle.end()), (2, 165));
    let entry = bundle.entries().nth(1).unwrap();
    assert_eq!((entry.offset(), entry.size(), entry.payload()), (0xa0, 5, None));
}

#[test]
#[cfg_attr(miri, ignore = "a thousand entries would take Miri an hour, and are as two of them")]
fn a_prefix_of_many_entries_is_enough() {
    let ids: Vec<_> = (0..1000).map(|i| (format!("{DEVICE}-{i}"), 1)).collect();
    let bytes = bundle_format::layout(ids, 1).unwrap().to_vec(&[&b"x"[..]; 1000]).unwrap();
    assert_eq!(rounds(&bytes, 0).len(), 5);
    assert_eq!(rounds(&bytes, 4096).len(), 4);
}

/// Reads as much as is needed; returns the lengths.
fn needed_rounds(data: &[u8]) -> Vec<usize> {
    let mut rounds = vec![0];
    loop {
        let len = *rounds.last().unwrap();
        let needed = usize::try_from(Bundle::header_needed(&data[..len]).unwrap()).unwrap();
        if needed <= len {
            return rounds;
        }
        rounds.push(needed);
    }
}

#[test]
fn needed_headers_are_exact() {
    let data = sample();
    assert_eq!(needed_rounds(&data), [0, 32, 82, 111, 139]);
    let bundle = Bundle::parse(&data).unwrap();
    assert_eq!(bundle.header_len(), 139);
    // For every prefix: the descriptors have as many bytes at least, and more only once more is known.
    let mut before = 0;
    for len in 0..data.len() {
        let needed = Bundle::header_needed(&data[..len]).unwrap();
        assert!((before..=139).contains(&needed), "{len}: {needed}");
        assert_eq!(needed <= len as u64, len >= 139);
        before = needed;
    }
    let empty = bundle_format::layout([("a", 0); 0], 1).unwrap().to_vec(&[&[][..]; 0]).unwrap();
    assert_eq!(needed_rounds(&empty), [0, 32]);
}

#[test]
#[cfg_attr(miri, ignore = "a thousand entries would take Miri an hour, and are as two of them")]
fn needed_headers_of_many_entries_take_few_rounds() {
    let ids: Vec<_> = (0..1000).map(|i| (format!("{DEVICE}-{i}"), 1)).collect();
    let bytes = bundle_format::layout(ids, 1).unwrap().to_vec(&[&b"x"[..]; 1000]).unwrap();
    let rounds = needed_rounds(&bytes);
    assert!(rounds.len() < 20, "{rounds:?}");
    let len = Bundle::parse(&bytes).unwrap().header_len();
    assert_eq!(rounds.last().copied(), usize::try_from(len).ok());
}

#[test]
fn needed_headers_of_damaged_counts_are_large() {
    let error = Bundle::header_needed(b"__CLANG_OFFLOAD_BUNDLEX").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotABundle);
    for (count, needed) in
        [(u64::MAX, u64::MAX), (1 << 40, 32 + (25 << 40)), (u64::MAX / 25, u64::MAX)]
    {
        let data = with(sample()[..32].to_vec(), COUNT, count);
        assert_eq!(Bundle::header_needed(&data).unwrap(), needed);
    }
    let data = with(sample(), LEN_0, u64::MAX);
    assert_eq!(Bundle::header_needed(&data).unwrap(), u64::MAX);
}

#[test]
fn an_empty_entry_needs_nothing_in_memory() {
    let data = with(sample(), SIZE_1, 0);
    let bundle = Bundle::parse_prefix(&data[..0x8b], 165).unwrap();
    assert_eq!(bundle.entries().nth(1).unwrap().payload(), Some(&[][..]));
}

#[test]
fn a_count_alone_allocates_nothing() {
    // Room for 10^15 entries is claimed and cannot be refuted yet.
    let data = with(sample()[..32].to_vec(), COUNT, 1_000_000_000_000_000);
    let error = Bundle::parse_prefix(&data, 1 << 55).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert_eq!(error.needed(), Some(32 + 25_000_000_000_000_000));
}

#[test]
fn concatenated_bundles_are_all_found() {
    let data = [sample(), vec![0; 4096 - 165], sample(), sample(), vec![0; 3]].concat();
    let found: Vec<_> = bundles(&data).map(|result| result.unwrap().0).collect();
    assert_eq!(found, [0, 4096, 4096 + 165]);
    assert!(bundles(&[]).next().is_none());
    assert!(bundles(&[0; 100]).next().is_none());
}

#[test]
fn a_bundle_in_a_payload_is_not_listed() {
    let inner = sample();
    let outer = bundle_format::layout([(HOST, 0), (DEVICE, 165)], 4096)
        .unwrap()
        .to_vec(&[b"", &inner])
        .unwrap();
    let data = [outer, sample()].concat();
    let found: Vec<_> = bundles(&data).map(|result| result.unwrap().0).collect();
    assert_eq!(found, [0, 4096 + 165]);
}

#[test]
fn other_data_is_refused() {
    let trailing = |at| {
        format!("TrailingData at {at}: data at offset {at} is neither a bundle nor zero padding")
    };
    for (data, whole, expected) in [
        (b"xyzzy".to_vec(), 0, NO_MAGIC.to_owned()),
        // Zeros may be the padding of something.
        (b"\0xyzzy".to_vec(), 0, trailing("0x1")),
        ([&sample()[..], b"\0\0CCOB"].concat(), 1, trailing("0xa7")),
    ] {
        let mut iter = bundles(&data);
        assert_eq!(iter.by_ref().take_while(Result::is_ok).count(), whole);
        assert!(iter.next().is_none());
        let error = bundles(&data).nth(whole).unwrap().unwrap_err();
        assert_eq!(told(&error), expected);
    }
}

#[test]
fn a_damaged_bundle_ends_the_walk() {
    let data = [sample(), with(sample(), LEN_0, 0), sample()].concat();
    let mut iter = bundles(&data);
    assert!(iter.next().unwrap().is_ok());
    let error = iter.next().unwrap().unwrap_err();
    let text = "Id at 0xc5: at offset 0xa5: bundle entry 0 at 0x20 has an empty ID";
    assert_eq!(told(&error), text);
    assert_eq!(error.entry(), Some(0));
    assert!(iter.next().is_none());
}
