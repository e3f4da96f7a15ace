//! Any members, any change.

use std::io::Cursor;
use std::num::NonZeroUsize;

use crate::seen;
use gpu_packages::{NewContents, Record, Replacement, RewriteOptions, Zip, ZipEdit, rewrite_tar};
use proptest::prelude::*;
use samples::packages::{self, Around, Made};

fn contents() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 0usize..70_000).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn member() -> impl Strategy<Value = Made> {
    let forms = (any::<bool>(), prop_oneof![Just(0), Just(12), Just(16), Just(20), Just(24)]);
    (contents(), any::<bool>(), forms, 0usize..9).prop_map(
        |(contents, is_stored, (is_zip64, descriptor), zeros)| {
            let mut made = Made::new("", contents);
            made.method = if is_stored { 0 } else { 8 };
            (made.is_zip64, made.descriptor, made.zeros) = (is_zip64, descriptor, zeros);
            made
        },
    )
}

fn members() -> impl Strategy<Value = Vec<Made>> {
    proptest::collection::vec(member(), 1..6).prop_map(|mut members| {
        for (index, made) in members.iter_mut().enumerate() {
            made.name = format!("dir/{index}").into_bytes();
        }
        members
    })
}

proptest! {
    #[test]
    fn zip_files_keep_all_but_the_change(
        members in members(),
        is_zip64 in any::<bool>(),
        is_moved in any::<bool>(),
        zeros in 0usize..20,
        index in any::<prop::sample::Index>(),
        new in contents(),
        is_removed in any::<bool>(),
    ) {
        let around = Around { prefix: vec![0; zeros], is_moved, is_zip64, comment: Vec::new() };
        let old = packages::zip(&members, &around);
        let zip = Zip::read(Cursor::new(&old)).unwrap();
        prop_assert!(zip.check(Cursor::new(&old)).unwrap().is_empty());
        let index = index.index(members.len());
        let mut edit = ZipEdit::new(&zip);
        if is_removed {
            edit.remove(index);
        } else {
            edit.replace(index, NewContents::deflate(&new[..], 6, NonZeroUsize::MIN).unwrap());
        }
        let rewrite = edit.plan(Cursor::new(&old)).unwrap();
        let mut file = Vec::new();
        rewrite.write_to(Cursor::new(&old), &mut file).unwrap();
        let mut expected: Vec<_> = members
            .iter()
            .map(|made| (String::from_utf8_lossy(&made.name).into_owned(), made.contents.clone()))
            .collect();
        if is_removed {
            expected.remove(index);
        } else {
            expected[index].1 = new;
        }
        let zip = Zip::read(Cursor::new(&file)).unwrap();
        prop_assert!(zip.check(Cursor::new(&file)).unwrap().is_empty());
        if zeros == 0 && members[0].zeros == 0 && !(is_removed && index == 0) {
            let found = seen(&file);
            prop_assert_eq!(found.files, expected);
            prop_assert!(found.findings.is_empty());
        }
    }

    #[test]
    fn tar_files_keep_all_but_the_change(
        files in proptest::collection::vec(("[a-z]{1,130}", contents()), 1..5),
        index in any::<prop::sample::Index>(),
        new in contents(),
    ) {
        let slices: Vec<_> = files.iter().map(|(name, bytes)| (&name[..], &bytes[..])).collect();
        let old = packages::tar(&slices);
        let name = &files[index.index(files.len())].0;
        let mut file = Vec::new();
        rewrite_tar(&old[..], &mut file, &RewriteOptions::default(), |found, _| {
            Ok((found == name.as_bytes()).then(|| Replacement::from_bytes(new.clone())))
        }).unwrap();
        let expected: Vec<_> = files
            .iter()
            .map(|(found, bytes)| (found.clone(), if found == name { &new } else { bytes }.clone()))
            .collect();
        prop_assert_eq!(seen(&file).files, expected);
    }

    #[test]
    fn records_are_kept(text in "([a-c\",=\r\n]|sha256=)*") {
        if let Ok(record) = Record::parse(text.as_bytes()) {
            prop_assert_eq!(record.to_vec(), text.as_bytes());
        }
    }
}
