//! Readers and writers that fail, or give little at a time.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use gpu_packages::{
    Error, NewContents, Options, Original, PackageForm, Replacement, RewriteOptions, WheelEdit,
    Zip, rewrite_deb, rewrite_tar, walk,
};

use crate::Seen;
use samples::packages::{self, Around};

type Found = (Vec<(String, Vec<u8>)>, Vec<(gpu_packages::FindingKind, String)>);

fn found(rig: &samples::faulty::Rig, file: &[u8]) -> io::Result<Found> {
    let mut seen = Seen::default();
    walk(rig.stream(file), &Options::default(), &mut seen).map_err(io::Error::from)?;
    Ok((seen.files, seen.findings))
}

fn walked(file: &[u8]) {
    samples::faulty::check(|rig| found(rig, file));
}

#[test]
fn failing_readers_are_errors() {
    let wheel = packages::zip(&packages::wheel(&[("foo/a.so", b"\x7fELF")]), &Around::default());
    walked(&wheel);
    walked(&packages::tar(&[("a", b"x"), ("x.whl", &wheel)]));
    // The decoder of gzip reads its header again after a fault.
    let gzip = packages::gzip(&packages::tar(&[("a", b"x")]));
    samples::faulty::check_ahead(|rig| found(rig, &gzip));
    samples::faulty::check_ahead(|rig| {
        let head = &gzip[..gzip.len().min(512)];
        let form = PackageForm::read(rig.stream(&gzip), head, |_| true).map_err(io::Error::from)?;
        Ok(format!("{form:?}"))
    });
    walked(&packages::deb(&[("a", b"1")], "", <[u8]>::to_vec));
    walked(&packages::rpm(&packages::cpio(&[("a", b"x")])));
}

#[test]
fn failing_streams_end_a_rewrite() {
    let old = packages::zip(&packages::wheel(&[("foo/a.so", b"\x7fELF")]), &Around::default());
    samples::faulty::check(|rig| {
        let mut reader = rig.stream(&old);
        let mut write = || -> Result<Vec<u8>, Error> {
            let zip = Zip::read(&mut reader)?;
            let mut edit = WheelEdit::new(&zip)?;
            edit.replace(0, NewContents::deflate(&b"new"[..], 6, NonZeroUsize::MIN)?);
            let rewrite = edit.plan(&mut reader)?;
            let mut new = Vec::new();
            rewrite.write_to(&mut reader, &mut new)?;
            Ok(new)
        };
        write().map_err(io::Error::from)
    });
    let tar = packages::tar(&[("a", b"x"), ("b", b"y")]);
    let options = RewriteOptions::default();
    let deb = packages::deb(&[("a", b"1")], "", <[u8]>::to_vec);
    let replace = |name: &[u8], _: &mut Original<'_>| {
        Ok((name == b"a").then(|| Replacement::from_bytes(b"new".to_vec())))
    };
    // A stream has no length: it may end after any member.
    for kind in samples::faulty::KINDS {
        let rewrite = |rig: &samples::faulty::Rig| {
            rewrite_tar(rig.stream(&tar), Vec::new(), &options, replace)
        };
        samples::faulty::at_each_call(
            &samples::faulty::Fault::Error(kind),
            rewrite,
            |call, result| {
                assert_eq!(
                    result.map_err(|error| io::Error::from(error).kind()).err(),
                    Some(kind),
                    "{call}"
                );
            },
        );
    }
    samples::faulty::check(|rig| {
        let mut new = Vec::new();
        rewrite_deb(rig.stream(&deb), &mut new, &options, replace).map_err(io::Error::from)?;
        Ok(new)
    });
}

#[test]
fn failing_writers_are_errors() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            match self.0 {
                0 => Err(io::ErrorKind::StorageFull.into()),
                _ => {
                    let written = buf.len().min(self.0);
                    self.0 -= written;
                    Ok(written)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let tar = packages::tar(&[("a", b"x"), ("b", b"y")]);
    for room in [0, 100, 600, 2000] {
        let error = rewrite_tar(&tar[..], Full(room), &RewriteOptions::default(), |_, _| Ok(None))
            .unwrap_err();
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::StorageFull);
    }
    let old = packages::zip(&packages::wheel(&[("foo/a.so", b"\x7fELF")]), &Around::default());
    let zip = Zip::read(io::Cursor::new(&old)).unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    edit.replace(0, NewContents::deflate(&b"new"[..], 6, NonZeroUsize::MIN).unwrap());
    let rewrite = edit.plan(io::Cursor::new(&old)).unwrap();
    for room in [0, 100] {
        let error = rewrite.write_to(io::Cursor::new(&old), Full(room)).unwrap_err();
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::StorageFull);
    }
}
