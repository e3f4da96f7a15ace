//! The layout of archives, by bytes.

use hda_archive::{Member, write_archive};
use samples::ar::header;

fn archive(members: Vec<Member>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_archive(&mut bytes, members).unwrap();
    bytes
}

#[test]
fn members_follow_each_other_at_even_places() {
    let bytes = archive(vec![Member::new("p", b"hello image".to_vec()), Member::new("p", b"BB")]);
    let expected =
        [&b"!<arch>\n"[..], &header("p/", 11), b"hello image\n", &header("p/", 2), b"BB"].concat();
    assert_eq!(bytes, expected);
}

#[test]
fn long_names_and_paths_are_in_a_table() {
    let long = "abcdefghijklmnop";
    let bytes = archive(vec![Member::new(long, b"BB"), Member::new("./p", b"CC")]);
    let expected = [
        &b"!<arch>\n"[..],
        format!("{:<48}{:<10}`\n", "//", 24).as_bytes(),
        b"abcdefghijklmnop/\n./p/\n\n",
        &header("/0", 2),
        b"BB",
        &header("/18", 2),
        b"CC",
    ]
    .concat();
    assert_eq!(String::from_utf8(bytes), String::from_utf8(expected));
}

#[test]
fn objects_bring_their_symbols_into_the_index() {
    let object = include_bytes!("../../../../examples/data/host.o");
    let bytes = archive(vec![Member::new("a.o", object.to_vec())]);
    assert_eq!(bytes[8..24], *b"/               ");
    let size: usize = std::str::from_utf8(&bytes[56..66]).unwrap().trim().parse().unwrap();
    let index = &bytes[68..68 + size];
    let count = u32::from_be_bytes(*index.first_chunk().unwrap());
    assert!(count > 0);
    for place in index[4..].chunks(4).take(usize::try_from(count).unwrap()) {
        assert_eq!(usize::try_from(u32::from_be_bytes(place.try_into().unwrap())), Ok(68 + size));
    }
    assert_eq!(bytes[68 + size..].len(), 60 + object.len().next_multiple_of(2));
}

#[test]
fn damaged_objects_are_members_like_others() {
    let object = include_bytes!("../../../../examples/data/host.o");
    for len in (0..object.len()).step_by(37) {
        let bytes = archive(vec![Member::new("a.o", object[..len].to_vec())]);
        assert!(bytes.len() >= 68 + len);
    }
    for place in 0..object.len().min(2000) {
        let mut damaged = object.to_vec();
        damaged[place] ^= 0xff;
        assert!(archive(vec![Member::new("a.o", damaged)]).len() >= 68 + object.len());
    }
}

#[test]
fn names_that_would_break_the_archive_are_refused() {
    for name in ["a\nb", "a\0"] {
        let error = write_archive(Vec::new(), [Member::new(name, b"x")]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("line break or nul"), "{error}");
    }
}

#[test]
fn an_archive_may_be_empty() {
    assert_eq!(archive(Vec::new()), b"!<arch>\n");
}
