//! Archives of bundles, taken apart for their targets.

use std::io::{self, Cursor};

use crate::common::{
    GFX906, GFX908, HOST, HOST_OBJECT, compressed, fat_object, requests, unbundle, unbundle_thin,
};
use hda_archive::{
    ErrorKind, Member, Options, Unbundling, conflicts, create, entries, no_thin_members,
    write_archive,
};
use samples::ar::{archive, header};
use samples::bundle::bundle;

/// A member of every sort.
fn sample() -> Vec<u8> {
    let plain = bundle(&[(HOST, b""), (GFX906, b"plain"), (GFX908, b"PLAIN")], 1);
    let fat = fat_object(&[(HOST, &[0]), (GFX906, b"in a section")]);
    let packed = compressed(&bundle(&[(GFX906, b"packed"), (GFX908, HOST_OBJECT)], 1));
    archive(&[("plain.o", &plain), ("fat.o", &fat), ("packed.o", &packed), ("text", b"nothing")])
}

#[test]
fn every_target_gets_its_matching_entries() {
    let on = "hip-amdgcn-amd-amdhsa--gfx906:xnack+";
    let found = unbundle(&sample(), &[on, GFX908, HOST, "hip-amdgcn-amd-amdhsa--gfx1100"]).unwrap();
    let amd = |stem: &str, id: &str| format!("{stem}-{id}{stem}.bc");
    assert_eq!(found.names[0], ["plain", "fat", "packed"].map(|stem| amd(stem, GFX906)));
    assert_eq!(found.names[1], ["plain", "packed"].map(|stem| amd(stem, GFX908)));
    assert_eq!(found.names[2], ["plain", "fat"].map(|stem| format!("{stem}-{HOST}{stem}.o")));
    assert_eq!(found.missing, ["hip-amdgcn-amd-amdhsa--gfx1100"]);
    assert_eq!(found.archives[3], b"!<arch>\n");

    // Members as write_archive writes them: the host object is whole again, and objects are in the index.
    let mut expected = Vec::new();
    let members = [&b"plain"[..], b"in a section", b"packed"];
    let members = members.iter().zip(&found.names[0]).map(|(data, name)| Member::new(name, *data));
    write_archive(&mut expected, members).unwrap();
    assert_eq!(found.archives[0], expected);
    let mut expected = Vec::new();
    let members = found.names[2].iter().zip([&b""[..], HOST_OBJECT]);
    write_archive(&mut expected, members.map(|(name, data)| Member::new(name, data))).unwrap();
    assert_eq!(found.archives[2], expected);
    assert_eq!(expected[8..10], *b"/ ");
}

#[test]
fn one_entry_serves_several_targets() {
    let library = archive(&[("a.o", &bundle(&[(GFX906, b"odd")], 1))]);
    let [on, off] = [":xnack+", ":xnack-"].map(|feature| format!("{GFX906}{feature}"));
    let found = unbundle(&library, &[&on, &off, GFX906]).unwrap();
    assert_eq!(found.archives[0], found.archives[1]);
    assert_eq!(found.archives[0], found.archives[2]);
}

#[test]
fn code_for_a_feature_is_not_for_any() {
    let on = format!("{GFX906}:xnack+");
    let library = archive(&[("a.o", &bundle(&[(&on, b"code")], 1))]);
    assert_eq!(unbundle(&library, &[GFX906]).unwrap().missing, [GFX906]);
    // A colon is not for every file system.
    let found = unbundle(&library, &[&on]).unwrap();
    assert_eq!(found.names[0], ["a-hip-amdgcn-amd-amdhsa--gfx906_xnack+a.bc"]);
}

#[test]
fn all_bundles_of_a_member_are_seen() {
    let one = bundle(&[(GFX906, b"one")], 1);
    let two = compressed(&bundle(&[(GFX906, b"two")], 1));
    let three = compressed(&bundle(&[(GFX906, b"three")], 1));
    let zeros = [0; 100];
    let member = [&one[..], &zeros, &two, &zeros, &three, &zeros].concat();
    let found = unbundle(&archive(&[("a.o", &member)]), &[GFX906]).unwrap();
    assert_eq!(found.names[0].len(), 3);
    let text = String::from_utf8_lossy(&found.archives[0]);
    let places = ["one", "two", "three"].map(|word| text.find(word).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn only_the_top_level_counts() {
    let inner = bundle(&[(GFX906, b"inner")], 1);
    // A bundle in an image, an archive in an archive, bundles as text.
    let outer = bundle(&[(GFX908, &inner)], 1);
    let nested = archive(&[("inner.o", &inner)]);
    let text = format!(
        "\n# __CLANG_OFFLOAD_BUNDLE____START__ {GFX906}\nx\n# __CLANG_OFFLOAD_BUNDLE____END__ {GFX906}\n"
    );
    let library =
        archive(&[("outer.o", &outer), ("nested.a", &nested), ("text.o", text.as_bytes())]);
    let found = unbundle(&library, &[GFX906, GFX908]).unwrap();
    assert_eq!(found.missing, [GFX906]);
    assert_eq!(found.names[1].len(), 1);
    // Not even when it is damaged.
    let damaged = archive(&[("nested.a", &nested[..nested.len() - 3])]);
    assert_eq!(unbundle(&damaged, &[GFX906]).unwrap().missing, [GFX906]);
    // Fat binaries for the loader are not even decompressed.
    let mut program = include_bytes!("../../../../examples/data/hip-ccob-v3.o").to_vec();
    let place = program.windows(4).position(|bytes| bytes == b"CCOB").unwrap();
    program[place + 24..place + 60].fill(0xee);
    let library = archive(&[("program.o", &program), ("a.o", &inner)]);
    assert_eq!(unbundle(&library, &[GFX906]).unwrap().names[0].len(), 1);
}

#[test]
fn thin_archives_name_their_members() {
    let name = "some/where/a.o";
    let member = bundle(&[(GFX906, b"code")], 1);
    let library =
        [&b"!<thin>\n"[..], &header("//", 16), b"some/where/a.o/\n", &header("/0", member.len())]
            .concat();
    let mut open = |asked: &[u8]| {
        assert_eq!(asked, name.as_bytes());
        Ok(Box::new(Cursor::new(member.clone())) as _)
    };
    let found = unbundle_thin(&library, &[GFX906], &mut open).unwrap();
    assert_eq!(found.names[0], [format!("a-{GFX906}a.bc")]);
    let mut gone = |_: &[u8]| Err(io::ErrorKind::NotFound.into());
    let error = unbundle_thin(&library, &[GFX906], &mut gone).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.finding().is_some() && error.to_string().contains(name), "{error}");
}

#[test]
fn member_names_need_not_be_utf_8() {
    let member = bundle(&[(GFX906, b"code")], 1);
    let mut library = archive(&[("aXb.o", &member)]);
    let place = library.iter().position(|&byte| byte == b'X').unwrap();
    library[place] = 0xe9;
    let mut input = Cursor::new(&library);
    let options = Options::default();
    let plan =
        Unbundling::plan(&mut input, requests(&[GFX906]), &options, no_thin_members).unwrap();
    let (name, _) = plan.archives()[0].members().next().unwrap();
    assert_eq!(*name, [b"a\xe9b-", GFX906.as_bytes(), b"a\xe9b.bc"].concat());
}

#[test]
fn unmatchable_entries_cause_a_warning() {
    let library = archive(&[("a.o", &bundle(&[("odd", b"x"), (GFX906, b"code")], 1))]);
    let found = unbundle(&library, &[GFX906]).unwrap();
    assert_eq!(found.names[0].len(), 1);
    assert_eq!(found.warnings.len(), 1);
    assert!(found.warnings[0].starts_with("archive member \"a.o\": "), "{:?}", found.warnings);
}

#[test]
fn damaged_code_is_an_error() {
    let object = &HOST_OBJECT[..HOST_OBJECT.len() - 70];
    let library = archive(&[("a.o", &bundle(&[(GFX906, object)], 1))]);
    let error = unbundle(&library, &[GFX906]).unwrap_err();
    assert!(error.to_string().contains(": malformed ELF file: "), "{error}");
    // For other targets it does not matter.
    assert!(unbundle(&library, &[GFX908]).is_ok());
    // Bitcode may be of a newer LLVM.
    let library = archive(&[("a.o", &bundle(&[(GFX906, b"BC\xc0\xde and more")], 1))]);
    let found = unbundle(&library, &[GFX906]).unwrap();
    assert_eq!(found.names[0].len(), 1);
    assert!(found.warnings[0].contains("is not in the index of symbols"), "{:?}", found.warnings);
}

#[test]
fn other_files_are_refused() {
    for (data, kind) in [
        (&b""[..], ErrorKind::Truncated),
        (b"!<arch>", ErrorKind::Truncated),
        (HOST_OBJECT, ErrorKind::NotAnArchive),
    ] {
        let error = unbundle(data, &[GFX906]).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (kind, Some(0)), "{error}");
    }
    assert_eq!(unbundle(b"!<arch>\n", &[GFX906]).unwrap().missing, [GFX906]);
}

#[test]
fn every_truncation_is_an_error() {
    let library = sample();
    let whole = unbundle(&library, &[GFX906, GFX908, HOST]).unwrap();
    // An archive can end after a member.
    let mut ends = vec![8];
    for (name, size) in sizes(&library) {
        let data = library.windows(60).position(|w| *w == header(&format!("{name}/"), size));
        ends.push(data.unwrap() + 60 + size);
    }
    for len in 0..library.len() {
        let found = unbundle(&library[..len], &[GFX906, GFX908, HOST]);
        let at_end = ends.iter().any(|end| (*end..=end.next_multiple_of(2)).contains(&len));
        // The last member is not a bundle; a cut is still an error.
        assert_eq!(found.is_ok(), at_end, "{len} of {}: {found:?}", library.len());
        if let Ok(found) = found {
            assert!(len == library.len() || found.names[0].len() <= whole.names[0].len());
        }
    }
}

fn sizes(library: &[u8]) -> Vec<(String, usize)> {
    let mut at = 8;
    let mut sizes = Vec::new();
    while at < library.len() {
        let text = |range| str::from_utf8(&library[range]).unwrap().trim().to_owned();
        let size: usize = text(at + 48..at + 58).parse().unwrap();
        sizes.push((text(at..at + 16).trim_end_matches('/').to_owned(), size));
        at = (at + 60 + size).next_multiple_of(2);
    }
    sizes
}

/// The walk finds the damage before anything is written.
#[test]
fn damaged_compressed_members_are_errors() {
    let mut packed = compressed(&bundle(&[(GFX906, b"some code"), (GFX908, b"more code")], 1));
    let last = packed.len() - 1;
    packed[last] ^= 1;
    let error = unbundle(&archive(&[("packed.o", &packed)]), &[GFX906]).unwrap_err();
    assert!(error.to_string().starts_with("member:packed.o at byte 0x44: "), "{error}");
}

#[test]
fn an_input_that_changes_is_an_error() {
    let before = archive(&[("a.o", &bundle(&[(GFX906, b"code"), (HOST, b"host")], 1))]);
    let write = |after: &[u8]| {
        let options = Options::default();
        let mut input = Cursor::new(&before);
        let plan = Unbundling::plan(&mut input, requests(&[GFX906]), &options, no_thin_members)?;
        plan.write(&mut Cursor::new(after), [io::sink()], no_thin_members)
    };
    write(&before).unwrap();
    for after in [
        archive(&[("a.o", &bundle(&[(GFX906, b"CODE"), (HOST, b"host")], 1))]),
        archive(&[("b.o", &bundle(&[(GFX906, b"code"), (HOST, b"host")], 1))]),
        archive(&[("a.o", &bundle(&[(GFX906, b"longer code"), (HOST, b"host")], 1))]),
        archive(&[("a.o", &bundle(&[(GFX908, b"code"), (HOST, b"host")], 1))]),
        archive(&[("a.o", &bundle(&[(GFX906, b"code"), (GFX906, b"host")], 1))]),
        archive(&[]),
    ] {
        let error = write(&after).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    }
    // Bytes that no target needs may change.
    write(&archive(&[("a.o", &bundle(&[(GFX906, b"code"), (HOST, b"HOST")], 1))])).unwrap();
}

#[test]
fn archives_are_copied_from_what_lies_in_the_input() {
    let plan = |library: &[u8], ids: &[&str]| {
        let options = Options::default();
        Unbundling::plan(&mut Cursor::new(library), requests(ids), &options, no_thin_members)
            .unwrap()
    };
    // Longer than what is read at one time, and of an odd length.
    let long: Vec<u8> = (0..700_001u32).map(|n| (n % 251) as u8).collect();
    let plain = bundle(&[(HOST, b"h"), (GFX906, &long), (GFX908, b"")], 1);
    let fat = fat_object(&[(HOST, &[0]), (GFX906, b"in a section")]);
    let library = archive(&[("plain.o", &plain), ("fat.o", &fat)]);
    let whole = unbundle(&library, &[GFX906, GFX908]).unwrap();
    let made = plan(&library, &[GFX906, GFX908]);
    let copies = made.copies().unwrap();
    assert_eq!(copies.len(), 2);
    for (copy, archive) in copies.iter().zip(&whole.archives) {
        let mut copied = Vec::new();
        copy.write(&mut Cursor::new(&library), &mut copied).unwrap();
        assert!(copied == *archive);
    }
    // A changed byte of the entries, and an end before theirs.
    let place = library.windows(12).position(|bytes| bytes == b"in a section").unwrap();
    for (at, expected) in [(600_000, 0), (place, 2)] {
        let mut changed = library.clone();
        changed[at] ^= 1;
        let error = copies[0].write(&mut Cursor::new(&changed), io::sink()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
        let expected = format!("the file was changed while it was read, at entry {expected}");
        assert_eq!(error.to_string(), expected);
        copies[1].write(&mut Cursor::new(&changed), io::sink()).unwrap();
    }
    for len in [place + 11, place, 1000, 0] {
        let error = copies[0].write(&mut Cursor::new(&library[..len]), io::sink()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed, "{len}: {error}");
    }
    // Compressed entries, which are not stored as they are written.
    let packed = compressed(&bundle(&[(GFX906, b"packed"), (HOST, b"host")], 1));
    assert!(plan(&archive(&[("packed.o", &packed)]), &[GFX906]).copies().is_none());
    assert!(plan(&library, &[HOST]).copies().is_none());
    assert!(plan(&archive(&[("packed.o", &packed)]), &[GFX908]).copies().is_some());
}

#[test]
fn ids_that_are_not_utf_8_match_nothing() {
    let mut made = bundle(&[("hip-amdgcn-amd-amdhsa--gfx90X", b"odd"), (GFX906, b"code")], 1);
    let place = made.iter().position(|&byte| byte == b'X').unwrap();
    made[place] = 0xff;
    let library = archive(&[("a.o", &made)]);
    let found = unbundle(&library, &[GFX906, "hip-amdgcn-amd-amdhsa--gfx90\u{fffd}"]).unwrap();
    assert_eq!((found.names[0].len(), found.names[1].len()), (1, 0));
    assert_eq!(
        found.warnings,
        [
            "archive member \"a.o\": bundle entry ID \"hip-amdgcn-amd-amdhsa--gfx90\u{fffd}\" has bytes \
          that are not UTF-8"
        ]
    );
}

#[test]
fn there_is_a_writer_for_each_archive() {
    let mut input = Cursor::new(sample());
    let options = Options::default();
    let targets = requests(&[GFX906, GFX908]);
    let plan = Unbundling::plan(&mut input, targets, &options, no_thin_members).unwrap();
    for count in [0, 1, 3] {
        let writers: Vec<_> = (0..count).map(|_| io::sink()).collect();
        let error = plan.write(&mut input, writers, no_thin_members).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(
            error.to_string(),
            format!("expected 2 writers, one per archive, found {count}")
        );
    }
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = plan.write(&mut input, [Full, Full], no_thin_members).unwrap_err();
    assert_eq!((error.kind(), error.archive()), (ErrorKind::Write, Some(0)));
    assert_eq!(error.io().unwrap().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn bundles_are_checked_one_by_one() {
    let on = format!("{GFX906}:xnack+");
    let check = |library: &[u8]| {
        let mut input = Cursor::new(library);
        conflicts(&mut input, &Options::default(), no_thin_members).unwrap()
    };
    let bad = bundle(&[(&on, b"1"), (GFX906, b"2")], 1);
    let message = format!("conflicting TargetIDs [{GFX906}, {on}] found in a.o");
    let fat = fat_object(&[(GFX906, b"1"), (&on, b"2")]);
    let good = bundle(&[(GFX908, b"")], 1);
    for member in [&bad, &compressed(&bad), &fat, &[&good[..], &bad].concat()] {
        let found = check(&archive(&[("good.o", &good), ("a.o", member)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), message);
        assert_eq!((found[0].member(), found[0].ids()), ("a.o", (GFX906, &*on)));
    }
    // In two bundles they may be.
    let apart = [bundle(&[(GFX906, b"")], 1), bundle(&[(&on, b"")], 1)];
    assert!(check(&archive(&[("a.o", &apart.concat())])).is_empty());
    assert!(check(&archive(&[("a.o", &apart[0]), ("b.o", &apart[1])])).is_empty());
}

#[test]
fn entries_are_shown_in_order() {
    let mut seen = Vec::new();
    entries(&mut Cursor::new(sample()), &Options::default(), no_thin_members, |entry| {
        seen.push((entry.member().to_owned(), entry.id().to_owned()));
        Ok(())
    })
    .unwrap();
    let expected = [
        ("plain.o", HOST),
        ("plain.o", GFX906),
        ("plain.o", GFX908),
        ("fat.o", HOST),
        ("fat.o", GFX906),
        ("packed.o", GFX906),
        ("packed.o", GFX908),
    ];
    assert_eq!(seen, expected.map(|(member, id)| (member.to_owned(), id.to_owned())));
    // An error ends it.
    let mut count = 0;
    let input = &mut Cursor::new(sample());
    let error = entries(input, &Options::default(), no_thin_members, |_| {
        count += 1;
        Err(io::Error::other("enough").into())
    })
    .unwrap_err();
    assert_eq!((error.to_string(), count), ("enough".to_owned(), 1));
}

#[test]
fn libraries_are_made_of_bundles_only() {
    let members = || {
        [
            Member::new("a.o", bundle(&[(GFX906, b"code")], 1)),
            Member::new("b.o", fat_object(&[(HOST, &[0]), (GFX906, b"code")])),
            Member::new("c.o", compressed(&bundle(&[(GFX906, b"code")], 1))),
        ]
    };
    let (mut created, mut written) = (Vec::new(), Vec::new());
    create(&mut created, members()).unwrap();
    write_archive(&mut written, members()).unwrap();
    assert_eq!(created, written);
    assert_eq!(unbundle(&created, &[GFX906]).unwrap().names[0].len(), 3);
    let refused = |data: Vec<u8>| {
        let mut out = Vec::new();
        let error = create(&mut out, members().into_iter().chain([Member::new("d.o", data)]));
        assert!(out.is_empty());
        let error = error.unwrap_err();
        assert_eq!(error.member(), Some("d.o"));
        error.kind()
    };
    for data in [HOST_OBJECT, b"", b"text", b"!<arch>\n"] {
        assert_eq!(refused(data.to_vec()), ErrorKind::NotBundled);
    }
    let cut = bundle(&[(GFX906, b"code")], 1);
    assert_eq!(refused(cut[..cut.len() - 1].to_vec()), ErrorKind::Malformed);
}
