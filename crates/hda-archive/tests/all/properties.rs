//! Properties of any library of bundles, at any place in memory.

use std::io;

use crate::common::{HOST, compressed, fat_object, unbundle};
use hda_archive::{Member, create, write_archive};
use proptest::collection::vec;
use proptest::prelude::*;
use samples::bundle::bundle;
use samples::faulty::at_each_address;

/// Unknown processors, so that a target gets its own code alone.
const TARGETS: [&str; 4] = [
    "hip-amdgcn-amd-amdhsa--gfx20001",
    "hip-amdgcn-amd-amdhsa--gfx20002",
    "openmp-amdgcn-amd-amdhsa--gfx20001",
    "openmp-nvptx64-nvidia-cuda-unknown-sm_99",
];

/// Form in which the entries of a member are stored.
#[derive(Clone, Copy, Debug)]
enum Form {
    Bundle,
    Compressed,
    Sections,
}

/// Name, form, and for each entry the position of its target and its contents.
type Library = Vec<(String, Form, Vec<(usize, Vec<u8>)>)>;

fn library() -> impl Strategy<Value = Library> {
    let form = prop::sample::select(vec![Form::Bundle, Form::Compressed, Form::Sections]);
    // An ID is in a bundle once.
    let entries = prop::collection::btree_map(0..TARGETS.len(), vec(1..=9_u8, 1..40), 1..4);
    let entries = entries.prop_map(|entries| entries.into_iter().collect());
    vec(("[a-z]{1,20}\\.o", form, entries), 0..6)
}

fn members(library: &Library) -> Vec<Member<'_>> {
    library
        .iter()
        .map(|(name, form, entries)| {
            let mut list: Vec<(&str, &[u8])> = vec![(HOST, b"\0")];
            list.extend(entries.iter().map(|(target, code)| (TARGETS[*target], &code[..])));
            let data = match form {
                Form::Bundle => bundle(&list, 1),
                Form::Compressed => compressed(&bundle(&list, 1)),
                Form::Sections => fat_object(&list),
            };
            Member::new(name, data)
        })
        .collect()
}

/// Name and contents of the members of an archive as `ar` documents it, without the index and the table of names.
fn read(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut rest = archive.strip_prefix(b"!<arch>\n").unwrap();
    let (mut names, mut members) = (String::new(), Vec::new());
    while !rest.is_empty() {
        let (header, data) = rest.split_at(60);
        let header = std::str::from_utf8(header).unwrap();
        assert!(header.ends_with("`\n"));
        let size: usize = header[48..58].trim_end().parse().unwrap();
        let contents = data[..size].to_vec();
        rest = &data[size.next_multiple_of(2).min(data.len())..];
        match header[..16].trim_end() {
            "/" | "/SYM64/" => {}
            "//" => names = String::from_utf8(contents).unwrap(),
            name => {
                let name = match name.strip_prefix('/') {
                    Some(at) => names[at.parse().unwrap()..].split("/\n").next().unwrap(),
                    None => name.strip_suffix('/').unwrap(),
                };
                members.push((name.to_owned(), contents));
            }
        }
    }
    members
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn archives_written_are_read(
        members in vec(("[a-z. ]{1,40}", vec(any::<u8>(), 0..60)), 0..8),
    ) {
        let mut archive = Vec::new();
        write_archive(&mut archive, members.iter().map(|(name, data)| Member::new(name, data.clone()))).unwrap();
        prop_assert_eq!(read(&archive), members.clone());
        // The library that was read, written again, is the same.
        let mut again = Vec::new();
        write_archive(&mut again, read(&archive).into_iter().map(|(name, data)| Member::new(name, data))).unwrap();
        prop_assert!(again == archive);
    }

    #[test]
    fn libraries_are_created_and_unbundled(library in library()) {
        let mut archive = Vec::new();
        create(&mut archive, members(&library)).unwrap();
        let stored: Vec<_> = members(&library).iter().map(|m| (m.name().to_owned(), m.data().to_vec())).collect();
        prop_assert!(read(&archive) == stored);

        let found = unbundle(&archive, &TARGETS).unwrap();
        prop_assert_eq!(&found.warnings, &Vec::<String>::new());
        for (target, archive) in found.archives.iter().enumerate() {
            let code: Vec<Vec<u8>> = read(archive).into_iter().map(|(_, code)| code).collect();
            let entries = library.iter().flat_map(|(_, _, entries)| entries);
            let expected: Vec<Vec<u8>> =
                entries.filter(|entry| entry.0 == target).map(|entry| entry.1.clone()).collect();
            prop_assert_eq!(&code, &expected);
            prop_assert_eq!(found.missing.iter().any(|id| id == TARGETS[target]), expected.is_empty());
            let names: Vec<String> = read(archive).into_iter().map(|(name, _)| name).collect();
            prop_assert_eq!(&names, &found.names[target]);
        }
    }

    #[test]
    fn the_place_in_memory_does_not_matter(
        library in library(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut archive = Vec::new();
        create(&mut archive, members(&library)).unwrap();
        if let Some(cut) = cut {
            archive.truncate(cut.index(archive.len()));
        }
        let answer = |archive: &[u8]| format!("{:?}", unbundle(archive, &TARGETS));
        at_each_address(&archive, b'`', answer);
    }
}

#[test]
fn symbols_are_read_at_any_address() {
    let mut with_symbols = 0;
    for (_, data) in samples::examples() {
        let archive = |data: &[u8]| {
            let (mut archive, member) = (Vec::new(), || Member::new("a", data));
            write_archive(&mut archive, [member()]).unwrap();
            let library = create(io::sink(), [member()]).map_err(|error| error.to_string());
            (archive, library)
        };
        let made = at_each_address(&data, b'`', archive);
        // A number of symbols that is not zero, after the header of the index.
        let (archive, _) = made;
        let count = archive.get(68..72).filter(|_| archive.get(8..10) == Some(b"/ "));
        with_symbols += usize::from(count.is_some_and(|count| count != [0; 4]));
    }
    assert!(with_symbols > 5, "{with_symbols}");
}
