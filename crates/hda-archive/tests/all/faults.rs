//! Streams that fail, end early or change while archives are read and written.

use std::io::{self, BufWriter};

use crate::common::{GFX906, GFX908, HOST, HOST_OBJECT, compressed, fat_object, requests};
use hda_archive::{
    Error, ErrorKind, Member, Options, Unbundling, conflicts, create, entries, no_thin_members,
    write_archive,
};
use samples::ar::archive;
use samples::bundle::bundle;
use samples::faulty::{Fault, Rig, Stream, at_each_call, check};

/// Members that are copied from where they lie.
fn plain() -> Vec<u8> {
    let one = bundle(&[(HOST, b""), (GFX906, b"plain"), (GFX908, b"PLAIN")], 1);
    let two = bundle(&[(GFX906, HOST_OBJECT), (GFX908, b"more")], 1);
    archive(&[("one.o", &one), ("two.o", &two), ("text", b"nothing")])
}

/// Members that are decompressed or restored.
fn packed() -> Vec<u8> {
    let fat = fat_object(&[(HOST, &[0]), (GFX906, b"in a section")]);
    let packed = compressed(&bundle(&[(GFX906, b"packed"), (GFX908, HOST_OBJECT)], 1));
    archive(&[("fat.o", &fat), ("packed.o", &packed)])
}

const IDS: [&str; 3] = [GFX906, GFX908, HOST];

fn io_error(error: Error) -> io::Error {
    match error.io() {
        Some(inner) if error.member().is_some() => inner.kind().into(),
        _ => error.into(),
    }
}

fn plan(input: &mut Stream) -> Result<Unbundling, Error> {
    Unbundling::plan(input, requests(&IDS), &Options::default(), no_thin_members)
}

/// Returns the archives that a plan makes of a file; each is as long as promised.
fn write(rig: &Rig, plan: &Unbundling, input: &mut Stream) -> Result<Vec<Vec<u8>>, Error> {
    let mut outs = IDS.map(|_| rig.stream(b""));
    match plan.copies() {
        Some(copies) => {
            for (copy, out) in copies.iter().zip(&mut outs) {
                copy.write(&mut *input, BufWriter::with_capacity(100, out))?;
            }
        }
        None => plan.write(input, &mut outs, no_thin_members)?,
    }
    for (out, planned) in outs.iter().zip(plan.archives()) {
        assert_eq!(out.contents().len() as u64, planned.size());
    }
    Ok(outs.map(|out| out.contents().to_vec()).into())
}

fn unbundled(rig: &Rig, file: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut input = rig.stream(file);
    let plan = plan(&mut input)?;
    write(rig, &plan, &mut input)
}

#[test]
fn unbundling_ends_with_the_error_of_the_stream() {
    for file in [plain(), packed()] {
        check(|rig| unbundled(rig, &file).map_err(io_error));
        // Walked a second time, where copies would do.
        check(|rig| {
            let mut input = rig.stream(&file);
            let plan = plan(&mut input).map_err(io_error)?;
            let mut outs = IDS.map(|_| rig.stream(b""));
            let written = plan.write(&mut input, &mut outs, no_thin_members);
            written.map(|()| outs.map(|out| out.contents().to_vec())).map_err(io_error)
        });
    }
}

#[test]
fn inspecting_ends_with_the_error_of_the_stream() {
    for file in [plain(), packed()] {
        check(|rig| {
            let mut seen = Vec::new();
            entries(&mut rig.stream(&file), &Options::default(), no_thin_members, |entry| {
                seen.push((entry.member().to_owned(), entry.id().to_owned()));
                Ok(())
            })
            .map_err(io_error)?;
            Ok(seen)
        });
        check(|rig| {
            let input = &mut rig.stream(&file);
            let found = conflicts(input, &Options::default(), no_thin_members);
            found.map(|found| format!("{found:?}")).map_err(io_error)
        });
    }
}

#[test]
fn writing_members_ends_with_the_error_of_the_stream() {
    let bundle = bundle(&[(GFX906, b"plain")], 1);
    let members = || [Member::new("a.o", bundle.clone()), Member::new("b.o", bundle.clone())];
    let mut expected = Vec::new();
    create(&mut expected, members()).unwrap();
    check(|rig| {
        let mut out = rig.stream(b"");
        let written = create(BufWriter::new(&mut out), members()).map_err(io_error);
        written.inspect(|()| assert_eq!(out.contents(), expected))
    });
    check(|rig| {
        let mut out = rig.stream(b"");
        let written = write_archive(BufWriter::new(&mut out), members());
        written.inspect(|()| assert_eq!(out.contents(), expected))
    });
}

/// Returns versions that a file may change to.
fn versions(file: &[u8]) -> [Vec<u8>; 5] {
    let (half, mut flipped) = (file.len() / 2, file.to_vec());
    for byte in flipped.iter_mut().skip(half) {
        *byte ^= 0x20;
    }
    let head = file.iter().take(half).copied();
    [Vec::new(), head.collect(), [&[b' '; 70], file].concat(), [file, file].concat(), flipped]
}

#[test]
fn a_file_that_changes_after_inspection_is_noticed() {
    for file in [plain(), packed()] {
        let right = unbundled(&Rig::sound(), &file).unwrap();
        let rig = Rig::sound();
        plan(&mut rig.stream(&file)).unwrap();
        let planned = rig.calls();
        for version in versions(&file) {
            let fault = Fault::Change(file.as_slice().into(), version.into());
            at_each_call(
                &fault,
                |rig| unbundled(rig, &file),
                |call, result| match result {
                    // Bytes that were read before the plan was made may be of both.
                    Ok(archives) if call >= planned => assert!(archives == right, "call {call}"),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::Changed => {}
                    Err(error) => assert!(!error.to_string().is_empty()),
                },
            );
        }
    }
}
