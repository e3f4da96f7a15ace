//! Other crates read and write the same zip files.

use std::io::{Cursor, Read, Write};
use std::num::NonZeroUsize;

use crate::seen;
use gpu_packages::{NewContents, Zip, ZipEdit};
use samples::packages::{self, Around, Made};
use zip::write::SimpleFileOptions;

/// Members as the crate `zip` writes them, streamed or not.
fn by_zip(is_streamed: bool) -> Vec<u8> {
    let options = SimpleFileOptions::default();
    let write = |writer: &mut dyn Write, name: &str| {
        writer.write_all(name.repeat(100).as_bytes()).unwrap();
    };
    if is_streamed {
        let mut writer = zip::ZipWriter::new_stream(Vec::new());
        for (name, large) in [("a", false), ("d/b", true)] {
            writer.start_file(name, options.large_file(large)).unwrap();
            write(&mut writer, name);
        }
        return writer.finish().unwrap().into_inner();
    }
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_directory("d", options).unwrap();
    for (name, large) in [("a", false), ("d/b", true)] {
        writer.start_file(name, options.large_file(large).unix_permissions(0o755)).unwrap();
        write(&mut writer, name);
    }
    writer.add_symlink("link", "a", options).unwrap();
    writer.finish().unwrap().into_inner()
}

#[test]
fn files_of_the_crate_zip_are_read_and_changed() {
    for is_streamed in [false, true] {
        let old = by_zip(is_streamed);
        let found = seen(&old);
        assert!(found.findings.is_empty(), "{:?}", found.findings);
        assert_eq!(found.names(), ["a", "d/b"]);
        let zip = Zip::read(Cursor::new(&old)).unwrap();
        let mut edit = ZipEdit::new(&zip);
        let index = zip.find(b"d/b").unwrap();
        edit.replace(index, NewContents::deflate(&b"new"[..], 9, NonZeroUsize::MIN).unwrap());
        let mut new = Vec::new();
        edit.plan(Cursor::new(&old)).unwrap().write_to(Cursor::new(&old), &mut new).unwrap();
        let mut peer = zip::ZipArchive::new(Cursor::new(&new)).unwrap();
        let mut text = String::new();
        peer.by_name("d/b").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "new");
        let mut text = String::new();
        peer.by_name("a").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a".repeat(100));
        if !is_streamed {
            assert_eq!(peer.by_name("d/b").unwrap().unix_mode(), Some(0o100_755));
            assert!(peer.by_name("link").unwrap().is_symlink());
        }
    }
}

#[test]
fn rawzip_sees_the_same_directory() {
    for (is_zip64, descriptor) in [(false, 0), (true, 0), (false, 16), (true, 24)] {
        let mut members =
            vec![Made::new("a", "aaaa".repeat(99)), Made::new("b/", ""), Made::new("b/c", "c")];
        for made in &mut members {
            (made.is_zip64, made.descriptor) = (is_zip64, descriptor);
        }
        let around = Around { is_zip64, ..Around::default() };
        let old = packages::zip(&members, &around);
        let zip = Zip::read(Cursor::new(&old)).unwrap();
        let mut edit = ZipEdit::new(&zip);
        edit.replace(0, NewContents::store(&b"new"[..]).unwrap());
        let mut new = Vec::new();
        edit.plan(Cursor::new(&old)).unwrap().write_to(Cursor::new(&old), &mut new).unwrap();
        for file in [old, new] {
            let ours = Zip::read(Cursor::new(&file)).unwrap();
            let theirs = rawzip::ZipArchive::from_slice(&file[..]).unwrap();
            assert_eq!(theirs.entries_hint(), 3);
            let mut entries = theirs.entries();
            for member in ours.members() {
                let entry = entries.next_entry().unwrap().unwrap();
                assert_eq!(AsRef::<[u8]>::as_ref(&entry.file_path()), member.name());
                assert_eq!(entry.uncompressed_size_hint(), member.size());
                assert_eq!(entry.compressed_size_hint(), member.stored_size());
                assert_eq!(entry.local_header_offset(), member.offset());
                assert_eq!(entry.crc32(), member.crc32());
            }
            assert!(entries.next_entry().unwrap().is_none());
        }
    }
}
