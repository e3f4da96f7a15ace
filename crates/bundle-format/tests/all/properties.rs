//! Properties of all bundles and entry IDs, at any place in memory.

use bundle_format::text::TextBundle;
use bundle_format::text::{Leader, ends_in_marker, is_text_bundle, to_vec};
use bundle_format::{Bundle, EntryId, bundles, composition};
use proptest::prelude::*;
use samples::faulty::at_each_address;
use target_id::compatible;

/// Miri is a thousand times slower.
const CASES: u32 = if cfg!(miri) { 3 } else { 512 };

type Owned = Vec<(String, Vec<u8>)>;

fn entries(content: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Owned> {
    prop::collection::vec(("[a-z+:-]{1,30}", content), 0..6)
}

fn laid_out(entries: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)], align: u64) -> Vec<u8> {
    let ids = entries.iter().map(|(id, content)| (id, content.as_ref().len() as u64));
    let contents: Vec<&[u8]> = entries.iter().map(|(_, content)| content.as_ref()).collect();
    bundle_format::layout(ids, align).unwrap().to_vec(&contents).unwrap()
}

fn read<'d>(bundle: &Bundle<'d>) -> Vec<(&'d [u8], &'d [u8])> {
    bundle.entries().map(|entry| (entry.id(), entry.payload().unwrap())).collect()
}

/// Everything that the readers of binary bundles say.
fn binary_answers(data: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for found in bundles(data) {
        match found {
            Ok((at, bundle)) => {
                let entries = read(&bundle);
                write!(text, "{at} {} {} {entries:?} ", bundle.end(), bundle.header_len()).unwrap();
            }
            Err(error) => write!(text, "{error:?}").unwrap(),
        }
    }
    let prefix = &data[..data.len() / 2];
    let by_prefix = Bundle::parse_prefix(prefix, data.len() as u64);
    write!(text, "{:?}", by_prefix.map(|bundle| bundle.len())).unwrap();
    text
}

/// Everything that the readers of text bundles say.
fn text_answers(data: &[u8]) -> String {
    let mut text = format!("{} {}", is_text_bundle(data), ends_in_marker(data));
    for leader in [Leader::Hash, Leader::Slashes] {
        let entries =
            TextBundle::parse_with(data, leader).map(|bundle| bundle.entries().collect::<Vec<_>>());
        text += &format!("{entries:?}");
    }
    text + &format!("{:?}", TextBundle::parse(data))
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..60)
}

/// Lines, and text that looks like a marker and is not one.
fn source() -> impl Strategy<Value = Vec<u8>> {
    "([a-z \r\n]{0,9}|# __CLANG|____END__ |__START__){0,8}".prop_map(String::into_bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn binary_bundles_read_and_written_are_the_same(
        files in prop::collection::vec((entries(any_bytes()), 1_u64..70, 0..20_usize), 1..4),
    ) {
        let mut data = Vec::new();
        let mut places = Vec::new();
        for (entries, align, zeros) in &files {
            let bytes = laid_out(entries, *align);
            let bundle = Bundle::parse(&bytes).unwrap();
            prop_assert_eq!(bundle.end(), bytes.len() as u64);
            prop_assert!(bundle.entries().all(|entry| entry.offset() % align == 0));
            prop_assert!(laid_out(&read(&bundle), *align) == bytes);
            places.push(data.len() as u64);
            data.extend(bytes);
            data.resize(data.len() + zeros, 0);
        }
        // One after the other, with zeros between them.
        let found: Vec<_> = bundles(&data).map(Result::unwrap).collect();
        prop_assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), places);
        for ((_, bundle), (entries, _, _)) in found.iter().zip(&files) {
            let expected: Vec<(&[u8], &[u8])> =
                entries.iter().map(|(id, content)| (id.as_bytes(), &content[..])).collect();
            prop_assert_eq!(read(bundle), expected);
        }
    }

    #[test]
    fn text_bundles_read_and_written_are_the_same(
        entries in prop::collection::vec(("[a-z+:-]{1,30}", source()), 1..5),
        slashes in any::<bool>(),
    ) {
        let leader = if slashes { Leader::Slashes } else { Leader::Hash };
        let borrowed: Vec<(&str, &[u8])> =
            entries.iter().map(|(id, content)| (&id[..], &content[..])).collect();
        let bytes = to_vec(leader, &borrowed).unwrap();
        prop_assert!(is_text_bundle(&bytes));
        let bundle = TextBundle::parse(&bytes).unwrap();
        prop_assert_eq!(bundle.leader(), leader);
        let found: Vec<_> =
            bundle.entries().map(|entry| (entry.id_str().unwrap(), entry.payload())).collect();
        prop_assert_eq!(&found, &borrowed);
        prop_assert_eq!(to_vec(leader, &found).unwrap(), bytes);

        // Each spelling of the marker is the other's content.
        let other = if slashes { Leader::Hash } else { Leader::Slashes };
        let once = to_vec(leader, &borrowed).unwrap();
        let nested = to_vec(other, &[("a", &once)]).unwrap();
        let bundle = TextBundle::parse_with(&nested, other).unwrap();
        prop_assert_eq!(bundle.entries().next().unwrap().payload(), &once[..]);
    }

    #[test]
    fn the_place_in_memory_does_not_matter(
        binary in entries(any_bytes()),
        text in prop::collection::vec(("[a-z]{1,9}", source()), 1..4),
        align in 1_u64..70,
        behind in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..20),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let damaged = |mut bytes: Vec<u8>| {
            bytes.extend(&behind);
            if let Some((at, byte)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        };
        at_each_address(&damaged(laid_out(&binary, align)), b'\n', binary_answers);
        let text: Vec<(&str, &[u8])> = text.iter().map(|(id, text)| (&id[..], &text[..])).collect();
        at_each_address(&damaged(to_vec(Leader::Hash, &text).unwrap()), b'\n', text_answers);
    }

    /// IDs whose fields are in their places: standard and canonical forms are forms of themselves, and mean what the
    /// ID means.
    #[test]
    fn other_forms_of_an_id_have_its_meaning(
        kind in "host|hip|hipv4|openmp|sycl|cuda|[a-z]{1,6}",
        triple in prop::sample::select(vec![
            "amdgcn-amd-amdhsa-", "amdgcn-amd-amdhsa-unknown", "amdgcn--amdhsa-", "amdgcn-amd-amdpal-",
            "amdgpu9.06-amd-amdhsa-", "nvptx64-nvidia-cuda-", "x86_64-unknown-linux-gnu", "amd64--linux-",
            "x86_64-pc-windows-msvc", "x86_64-apple-macosx11.0-", "spirv64-amd-amdhsa-", "spirv64---",
        ]),
        id in "((gfx90a|gfx906|gfx9-4-generic|tahiti|gfx9999|sm_90a|generic|amdgcnspirv)(:(xnack|sramecc|foo)[+-]?|[+]xnack){0,3}:?)?",
    ) {
        let text = format!("{kind}-{triple}-{id}");
        let parsed = EntryId::parse(&text).unwrap();
        prop_assert_eq!(parsed.to_string(), text.clone());
        prop_assert!(!parsed.is_three_field(), "{}", text);
        prop_assert_eq!(parsed.kind().to_string(), kind);
        prop_assert_eq!((parsed.triple(), parsed.target_id()), (triple, &id[..]));

        let standard = parsed.standardized();
        let canonical = parsed.canonical();
        let again = |text: &str| {
            let id = EntryId::parse(text).unwrap();
            (id.standardized(), id.canonical())
        };
        prop_assert_eq!(again(&standard), (standard.clone(), canonical.clone()), "{}", text);
        prop_assert_eq!(again(&canonical), (canonical.clone(), canonical.clone()), "{}", text);
        let form = EntryId::parse(&standard).unwrap();
        prop_assert_eq!((form.kind(), form.target_id()), (parsed.kind(), parsed.target_id()));
        prop_assert!(compatible(&form.target(), &parsed.target()).is_strict());
        let form = EntryId::parse(&canonical).unwrap();
        match parsed.target().target_id() {
            Ok(id) => {
                prop_assert_eq!(form.target_id(), id.to_string());
                prop_assert!(compatible(&form.target(), &parsed.target()).is_strict());
                prop_assert!(compatible(&parsed.target(), &form.target()).is_strict());
            }
            Err(_) => prop_assert_eq!(form.target_id(), parsed.target_id()),
        }
        // All three are one entry: no two of them go into a bundle.
        prop_assert_eq!(composition([&text[..], &standard, &canonical]).iter().filter(|finding| finding.first().is_some()).count(), 2);
    }
}
