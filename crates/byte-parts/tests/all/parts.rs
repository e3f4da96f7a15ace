//! Outputs against the same edits of bytes in memory.

use std::fmt::Debug;
use std::io::{self, Cursor};

use byte_parts::{Error, Layout, Part, Parts, WriteError};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

const INPUTS: [&[u8]; 2] = [b"0123456789", b"abcdef"];

fn bytes(parts: &Parts) -> Vec<u8> {
    let made = parts.to_vec(|&input| INPUTS[input]).unwrap();
    let mut files = INPUTS.map(Cursor::new);
    let mut written = Vec::new();
    parts.write_to(&mut files[..], &mut written).unwrap();
    assert_eq!(made, written);
    assert_eq!(made.len() as u64, parts.size());
    made
}

fn any_part() -> impl Strategy<Value = (Parts, Vec<u8>)> {
    let input = (0..2_usize, 0..7_u64, 0..7_u64).prop_map(|(input, a, b)| {
        let range = a.min(b).min(6)..a.max(b).min(6);
        let bytes = INPUTS[input][range.start as usize..range.end as usize].to_vec();
        (Parts::from_input(input, range), bytes)
    });
    let own = prop::collection::vec(any::<u8>(), 0..5).prop_map(|bytes| {
        let mut parts = Parts::new();
        parts.push_bytes(&bytes);
        (parts, bytes)
    });
    let zeros = (0..5_u64).prop_map(|count| {
        let mut parts = Parts::new();
        parts.push_zeros(count);
        (parts, vec![0; count as usize])
    });
    prop_oneof![input, own, zeros]
}

fn any_parts() -> impl Strategy<Value = (Parts, Vec<u8>)> {
    prop::collection::vec(any_part(), 0..8).prop_map(|list| {
        let mut all = (Parts::new(), Vec::new());
        for (part, bytes) in list {
            all.0.append(&part);
            all.1.extend(bytes);
        }
        all
    })
}

proptest! {
    #[test]
    fn parts_are_their_bytes((parts, expected) in any_parts()) {
        prop_assert_eq!(bytes(&parts), expected.clone());
        prop_assert!(parts.iter().all(|part| part.size() > 0));
        let mut offset = 0;
        for part in parts.iter() {
            for at in offset..offset + part.size() {
                let (start, found) = parts.at(at).unwrap();
                prop_assert_eq!((start, debug(&found)), (offset, debug(&part)));
            }
            offset += part.size();
        }
        prop_assert_eq!(parts.at(offset), None);
    }

    #[test]
    fn slices_have_the_bytes_of_their_range((parts, expected) in any_parts(), a in 0..40_usize, b in 0..40_usize) {
        let slice = bytes(&parts.slice(a as u64..b as u64));
        let end = b.min(expected.len());
        prop_assert_eq!(&slice, expected.get(a..end).unwrap_or_default());
    }

    #[test]
    fn replacing_keeps_the_rest(
        (parts, mut expected) in any_parts(),
        (by, new) in any_parts(),
        at in 0..40_usize,
    ) {
        let mut edited = parts;
        edited.replace(at as u64, &by);
        let end = at + new.len();
        expected.resize(expected.len().max(end).max(at), 0);
        expected.splice(at..end, new);
        prop_assert_eq!(bytes(&edited), expected);
    }

    #[test]
    fn an_edit_of_an_edit_resolves_to_the_first_input((first, before) in any_parts(), (edit, _) in any_parts()) {
        // Input 0 of the second edit is the output of the first.
        let resolved = edit.resolved(|out, &input, range| match input {
            0 => out.append_range(&first, range),
            input => out.push_input(input, range),
        });
        let mut expected = Vec::new();
        for part in edit.iter() {
            match part {
                Part::Bytes(bytes) => expected.extend(bytes),
                Part::Zeros(count) => expected.extend(vec![0; count as usize]),
                Part::Input(&input, range) => {
                    let from = if input == 0 { &before[..] } else { INPUTS[input] };
                    let end = from.len().min(range.end as usize);
                    expected.extend(from.get(range.start as usize..end).unwrap_or_default());
                }
            }
        }
        prop_assert_eq!(bytes(&resolved), expected);
    }
}

#[test]
fn a_range_that_ends_before_it_starts_has_no_bytes() {
    let mut zeros = Parts::new();
    zeros.push_zeros(9);
    let parts = [Parts::from_input(0, 0..9), vec![1; 9].into(), vec![1; 5000].into(), zeros];
    for part in &parts {
        for (start, end) in (0..11).flat_map(|start| (0..=start).map(move |end| (start, end))) {
            assert!(part.slice(start..end).is_empty(), "{part:?} {start} {end}");
        }
    }
    for (start, end) in [(9, 2), (u64::MAX, 0)] {
        assert!(Parts::from_input(0, start..end).is_empty());
    }
}

#[test]
fn neighbours_become_one_part() {
    let mut parts = Parts::from_input(0, 1..3);
    parts.push_input(0, 3..5);
    parts.push_zeros(0);
    parts.push_zeros(1);
    parts.pad_to(7);
    parts.pad_to(3);
    parts.push_bytes(b"x");
    parts.push_bytes(b"");
    parts.push_bytes(b"yz");
    let list: Vec<_> = parts.iter().collect();
    assert_eq!(list, [Part::Input(&0, 1..5), Part::Zeros(3), Part::Bytes(b"xyz")]);
    let mut same = Parts::new();
    list.into_iter().for_each(|part| same.push_part(part));
    assert_eq!(same, parts);
}

#[test]
fn long_bytes_are_shared() {
    let bytes: Vec<u8> = (0..10_000).map(|n| (n % 251) as u8).collect();
    let place = bytes.as_ptr();
    let mut parts: Parts = Parts::new();
    parts.push_bytes(b"<");
    parts.push_vec(bytes.clone());
    parts.push_vec(bytes);
    parts.push_bytes(b">");
    let Some((10_001, Part::Bytes(second))) = parts.at(10_001) else { panic!("{parts:?}") };
    assert_eq!(second.as_ptr(), place);
    let mut twice = parts.slice(3..20_002);
    twice.append(&parts);
    let places: Vec<_> = twice.iter().map(|part| part.size()).collect();
    assert_eq!(places, [9_998, 10_000, 2, 10_000, 10_000, 1]);
    let all = self::bytes(&parts);
    assert_eq!(self::bytes(&twice), [&all[3..], &all].concat());
    // Bytes that others have stay as they are.
    twice.push_bytes(b"!");
    assert_eq!(self::bytes(&parts), all);
}

#[test]
fn sizes_saturate() {
    let mut parts: Parts = Parts::new();
    parts.push_zeros(u64::MAX);
    parts.push_bytes(b"x");
    assert_eq!(parts.size(), u64::MAX);
    let error = parts.to_vec(|_| b"").unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { size: u64::MAX }));
}

fn layout() -> Layout {
    let mut layout = Layout::new([3, 4, 0, 2]);
    layout.push_bytes(b"<");
    layout.push_input(0, 0..3);
    layout.pad_to(6);
    // The second input is not taken, the last in part.
    layout.push_input(2, 0..0);
    layout.push_input(3, 1..2);
    layout.push_bytes(b">");
    layout
}

const PLANNED: [&[u8]; 4] = [b"abc", b"defg", b"", b"hi"];

#[test]
fn layouts_are_written_with_their_inputs() {
    let offsets = [0, 1, 2, 3, 4].map(|input| layout().offset(input));
    assert_eq!(offsets, [Some(1), None, Some(6), Some(6), None]);
    assert_eq!((layout().size(), layout().sizes()), (8, &[3, 4, 0, 2][..]));
    assert_eq!(layout().to_vec(&PLANNED).unwrap(), b"<abc\0\0i>");
    let mut written = Vec::new();
    layout().write_to(&mut written, PLANNED).unwrap();
    assert_eq!(written, b"<abc\0\0i>");
}

/// Returns the debug text of a value that cannot be compared.
fn debug(value: &impl Debug) -> String {
    format!("{value:?}")
}

/// The error of a stream and the error of memory.
fn refused(inputs: &[&[u8]]) -> Error {
    let error = layout().write_to(io::sink(), inputs.iter().copied()).unwrap_err();
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let error = error.downcast::<Error>().unwrap();
    assert_eq!(debug(&layout().to_vec(inputs).unwrap_err()), debug(&error));
    error
}

#[test]
fn other_inputs_than_planned_are_refused() {
    assert!(matches!(refused(&PLANNED[..3]), Error::InputCount { expected: 4, found: 3 }));
    let five = [&PLANNED[..], &[b""]].concat();
    assert!(matches!(refused(&five), Error::InputCount { expected: 4, found: 5 }));
    for (input, bytes, expected, found) in [
        (0, &b"ab"[..], 3, 2),
        (0, b"abcd", 3, 4),
        (1, b"def", 4, 3),
        (1, b"defgh", 4, 5),
        (2, b"x", 0, 1),
        (3, b"", 2, 0),
        (3, b"h", 2, 1),
        (3, b"hij", 2, 3),
    ] {
        let mut inputs = PLANNED;
        inputs[input] = bytes;
        assert_eq!(debug(&refused(&inputs)), debug(&Error::InputSize { input, expected, found }));
    }
}

#[test]
fn files_that_end_early_are_errors() {
    let parts = Parts::from_input(0, 4..11);
    let mut files = INPUTS.map(Cursor::new);
    let error = parts.write_to(&mut files[..], &mut io::sink()).unwrap_err();
    assert!(matches!(
        error,
        WriteError::Input(Error::InputSize { input: 0, expected: 11, found: 10 })
    ));
    let error = Parts::from_input(2, 0..1).write_to(&mut files[..], &mut io::sink()).unwrap_err();
    assert!(matches!(error, WriteError::Input(Error::InputCount { expected: 3, found: 2 })));
    assert!(parts.to_vec(|&input| INPUTS[input]).is_err());
}

#[test]
fn small_parts_are_written_together() {
    let input: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let mut parts = Parts::new();
    for at in 0..20_000 {
        parts.append(&Parts::from_input(0, at * 10..at * 10 + 7));
        parts.push_bytes(b"own");
        parts.push_zeros(2);
    }
    parts.append(&Parts::from_input(0, 0..100_000));
    parts.push_zeros(10_000);
    parts.push_bytes(&[7; 10_000]);
    parts.append(&Parts::from_input(0, 5..6));
    let mut out = Writes { bytes: Vec::new(), calls: 0 };
    parts.write_to(&mut [Cursor::new(&input)][..], &mut out).unwrap();
    assert_eq!(out.bytes, parts.to_vec(|_| &input).unwrap());
    assert!(out.calls < 100, "{} writes", out.calls);
}

struct Writes {
    bytes: Vec<u8>,
    calls: usize,
}

impl io::Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
