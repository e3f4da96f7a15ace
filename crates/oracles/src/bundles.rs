//! Bundles, binary and text.

use bundle_format::text::TextBundle;
use bundle_format::text::{is_text_bundle, to_vec, write_to};
use bundle_format::{Bundle, Entry, Error, ErrorKind, bundles};
use byte_parts::Part;

use crate::{assert_message, grow_prefix};

/// Checks a binary bundle, and several in a row.
pub fn check_binary(data: &[u8]) {
    let bundle = Bundle::parse(data);
    check_prefixes(data, &bundle);
    match bundle {
        Ok(bundle) => check_bundle(data, &bundle),
        Err(error) => assert_message(&error),
    }
    check_sequence(data);
}

fn check_prefixes(data: &[u8], whole: &Result<Bundle<'_>, Error>) {
    let parse = |prefix| Bundle::parse_prefix(prefix, data.len() as u64);
    let (prefix, calls) =
        grow_prefix(data, |p| Bundle::parse_prefix(p, data.len() as u64).err()?.needed());
    // Each asks for twice as much.
    assert!(calls <= 20, "{calls} calls");
    match (whole, parse(prefix)) {
        (Ok(whole), Ok(bundle)) => {
            assert!(whole.entries().eq(bundle.entries()));
            assert_eq!((whole.end(), whole.header_len()), (bundle.end(), bundle.header_len()));
            assert!(bundle.header_len() <= prefix.len() as u64);
        }
        // With too few bytes for a header, none of them are looked at.
        (Err(whole), Err(parsed))
            if whole.kind() == ErrorKind::NotABundle && parsed.kind() == ErrorKind::Truncated => {}
        (whole, parsed) => {
            assert_eq!(
                format!("{:?}", whole.as_ref().err()),
                format!("{:?}", parsed.as_ref().err())
            );
        }
    }
}

fn check_bundle(data: &[u8], bundle: &Bundle<'_>) {
    assert!(bundle.header_len() <= bundle.end() && bundle.end() <= data.len() as u64);
    let entries: Vec<Entry<'_>> = bundle.entries().collect();
    assert_eq!(entries.len(), bundle.len());
    assert_eq!(bundle.entries().len(), entries.len());
    let mut ranges = Vec::new();
    for (index, entry) in (0..).zip(&entries) {
        assert_eq!(entry.index(), index);
        assert!(!entry.id().is_empty());
        let payload = entry.payload().expect("all is in memory");
        assert_eq!(payload.len() as u64, entry.size());
        if entry.size() > 0 {
            let range = entry.offset() as usize..(entry.offset() + entry.size()) as usize;
            assert_eq!(payload.as_ptr_range(), data[range.clone()].as_ptr_range());
            assert!(range.start as u64 >= bundle.header_len());
            ranges.push(range);
        }
    }
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.end <= b.start));
    check_rewritten(bundle, &entries);
}

/// Lays out the same IDs and code objects and checks the result.
fn check_rewritten(bundle: &Bundle<'_>, entries: &[Entry<'_>]) {
    let payloads: Vec<&[u8]> = entries.iter().filter_map(Entry::payload).collect();
    let align = [1, 3, 8, 256][entries.len() % 4];
    let layout =
        bundle_format::layout(entries.iter().map(|e| (e.id(), e.size())), align).expect("fits");
    let bytes = layout.to_vec(&payloads).expect("as laid out");
    assert_eq!(bytes.len() as u64, layout.size());
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.size() > 0) {
        let place = layout.offset(index).and_then(|offset| layout.parts().at(offset));
        assert_eq!(
            place,
            Some((layout.offset(index).unwrap(), Part::Input(&index, 0..entry.size())))
        );
    }
    let mut written = Vec::new();
    layout.write_to(&mut written, payloads.iter().copied()).expect("as laid out");
    assert!(written == bytes);

    let again = Bundle::parse(&bytes).expect("what is written can be read");
    assert_eq!(again.len(), bundle.len());
    for ((entry, new), payload) in entries.iter().zip(again.entries()).zip(payloads) {
        assert_eq!(new.id(), entry.id());
        assert_eq!(new.offset() % align, 0);
        assert!(new.payload() == Some(payload));
    }
}

fn check_sequence(data: &[u8]) {
    let mut end = 0;
    let mut sequence = bundles(data);
    while let Some(item) = sequence.next() {
        match item {
            Ok((offset, bundle)) => {
                assert!(offset >= end && bundle.end() > 0);
                assert!(data[end as usize..offset as usize].iter().all(|&byte| byte == 0));
                end = offset + bundle.end();
                assert!(end <= data.len() as u64);
                let single = Bundle::parse(&data[offset as usize..]).expect("was read before");
                assert!(single.entries().eq(bundle.entries()));
            }
            Err(error) => {
                assert_message(&error);
                assert!(sequence.next().is_none());
            }
        }
    }
}

/// Checks a text bundle.
pub fn check_text(data: &[u8]) {
    let bundle = match TextBundle::parse(data) {
        Ok(bundle) => bundle,
        Err(error) => {
            assert!(!is_text_bundle(data) || error.kind() != ErrorKind::NotABundle);
            return assert_message(&error);
        }
    };
    let mut end = 0;
    for (index, entry) in bundle.entries().enumerate() {
        assert_eq!(entry.index(), index);
        assert!(!entry.id().is_empty() && !entry.id().contains(&b'\n'));
        assert!(entry.offset() >= end);
        let start = entry.offset() as usize;
        assert!(data[start..].starts_with(entry.payload()));
        end = entry.offset() + entry.size();
    }

    let Ok(entries) =
        bundle.entries().map(|e| Ok((e.id_str()?, e.payload()))).collect::<Result<Vec<_>, Error>>()
    else {
        return;
    };
    let bytes = match to_vec(bundle.leader(), &entries) {
        Ok(bytes) => bytes,
        // A start marker between the markers is content, but what was it meant to be?
        Err(error) if matches!(error.kind(), ErrorKind::MarkerInPayload | ErrorKind::Id) => return,
        Err(error) => panic!("{error}"),
    };
    let mut written = Vec::new();
    write_to(&mut written, bundle.leader(), &entries).expect("checked");
    assert!(written == bytes);
    let again = TextBundle::parse(&bytes).expect("what is written can be read");
    assert_eq!(again.leader(), bundle.leader());
    assert!(is_text_bundle(&bytes));
    let parts = |bundle: &TextBundle<'_>| -> Vec<(Vec<u8>, Vec<u8>)> {
        bundle.entries().map(|e| (e.id().to_vec(), e.payload().to_vec())).collect()
    };
    assert_eq!(parts(&again), parts(&bundle));
}
