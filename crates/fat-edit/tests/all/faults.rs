//! Streams that fail, end early or change while files are walked, surveyed, edited and embedded into.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::editing::*;
use byte_parts::ReadSeek;
use ccob::WriteOptions;
use fat_edit::{
    CompressOptions, Edit, EditOptions, EditableFile, Error, ErrorKind, NewImage, survey,
};
use fat_edit::{HOST_PLACEHOLDER, object_bundle};
use fat_object::{Finding, Image, Options, Visitor, walk};
use object_edit::NewSections;
use samples::bundle::{GFX90A, GFX906, GFX1100, HOST, bundle};
use samples::faulty::{Fault, Rig, Stream, at_each_call};
use samples::{example_path, examples};

/// Every fourth example file, or all if tests are thorough.
fn some_examples() -> impl Iterator<Item = (String, Vec<u8>)> {
    examples().into_iter().step_by(if samples::faulty::is_thorough() { 1 } else { 4 })
}

fn hash(data: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

/// Everything that a walk says.
struct Listener<'r> {
    rig: &'r Rig,
    said: Vec<String>,
}

impl Visitor for Listener<'_> {
    fn enter(&mut self, container: &fat_object::Container) -> io::Result<()> {
        self.said.push(format!("{container:?}"));
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        assert!(image.compression().is_some() || bytes.len() as u64 == image.size());
        let object = image.enclosing_object().map(|mut object| {
            let mut bytes = Vec::new();
            object.read_to_end(&mut bytes).map(|_| bytes)
        });
        let hash = hash(&(bytes, object.transpose()?));
        let holds_code = image.holds_code()?;
        self.said.push(format!("{image:?} {hash:x} {holds_code:?}"));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.said.push(finding.to_string());
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let name = std::str::from_utf8(name).unwrap();
        let name = Path::new(name).file_name().unwrap().to_str().unwrap();
        Ok(Box::new(self.rig.stream(&std::fs::read(example_path(name))?)))
    }
}

fn walked(rig: &Rig, file: &[u8]) -> io::Result<Vec<String>> {
    let mut listener = Listener { rig, said: Vec::new() };
    let summary = walk(&mut rig.stream(file), &Options::default(), &mut listener)?;
    listener.said.push(format!("{summary:?}"));
    Ok(listener.said)
}

#[test]
fn a_walk_ends_with_the_error_of_the_stream() {
    for (name, file) in some_examples() {
        println!("{name}");
        samples::faulty::check(|rig| walked(rig, &file));
    }
}

/// As an error of `std::io`; what is none of reading or writing becomes one that no stream has.
fn io_error(error: Error) -> io::Error {
    match error.kind() {
        ErrorKind::Read | ErrorKind::Write => error.into(),
        ErrorKind::InputChanged => io::ErrorKind::UnexpectedEof.into(),
        _ => io::Error::other(error),
    }
}

#[test]
fn a_survey_ends_with_the_error_of_the_stream() {
    for (name, file) in some_examples() {
        if survey(&mut io::Cursor::new(&file), &Options::default()).is_err() {
            continue;
        }
        println!("{name}");
        samples::faulty::check(|rig| {
            let contents = survey(&mut rig.stream(&file), &Options::default());
            contents.map(|contents| format!("{contents:?}")).map_err(io_error)
        });
    }
}

/// Edit of a file.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Remove,
    Replace,
    Add,
    Compress,
    Decompress,
}

impl Doing {
    const ALL: [Self; 5] =
        [Doing::Remove, Doing::Replace, Doing::Add, Doing::Compress, Doing::Decompress];

    fn edit(self, contents: &EditableFile, rig: &Rig) -> Edit {
        let options =
            EditOptions::default().with_allow_empty(true).with_any_image(true).with_grow(true);
        let image = NewImage::new(rig.stream(NEW_IMAGE));
        let mut edit = Edit::new(options).with_images([image]);
        match self {
            Doing::Remove => edit.remove(contents.images().len().saturating_sub(1)),
            Doing::Replace => edit.replace(0, 0),
            Doing::Add => edit.add(0, GFX1100.replace("gfx1100", "gfx1201"), 0),
            Doing::Compress => edit.compress(
                CompressOptions::default().with_write(WriteOptions::default().with_level(1)),
            ),
            Doing::Decompress => edit.decompress(),
        }
        edit
    }
}

const NEW_IMAGE: &[u8] = b"a new image that is not very long";

/// The new file.
fn edited(rig: &Rig, file: &[u8], doing: Doing) -> io::Result<Vec<u8>> {
    let mut input = rig.stream(file);
    let options = Options::default();
    let contents = survey(&mut input, &options).map_err(io_error)?;
    let edit = doing.edit(&contents, rig);
    let plan = contents.plan(&mut input, &edit).map_err(io_error)?;
    let mut out = rig.stream(b"");
    plan.write(&mut input, &mut out).map_err(io_error)?;
    assert_eq!(out.contents().len() as u64, plan.size());
    Ok(out.contents().to_vec())
}

#[test]
fn an_edit_ends_with_the_error_of_the_stream() {
    // One of each kind: an edit of a linked file makes hundreds of calls.
    const FILES: [&str; 8] = [
        "bundle.ll",
        "bundle.o",
        "hip-ccob-v3.hipfb",
        "hip-packager.o",
        "hip-two-units.so",
        "hip.dll",
        "hip.hipfb",
        "libbundles.a",
    ];
    let mut edits = 0;
    for (name, file) in some_examples() {
        for doing in Doing::ALL {
            if !FILES.contains(&&*name) {
                continue;
            }
            let result = edited(&Rig::sound(), &file, doing);
            let Ok(new) = result else { continue };
            if new == file {
                continue;
            }
            println!("{name} {doing:?}");
            edits += 1;
            // An edited linked file is read back before it is written.
            samples::faulty::check_ahead(|rig| {
                let edited = edited(rig, &file, doing);
                // Nothing is called damaged, or impossible, for a fault of the stream.
                edited.inspect_err(|error| {
                    let is_end = error.kind() == io::ErrorKind::UnexpectedEof;
                    assert!(is_end || error.get_ref().is_none(), "{error}");
                })
            });
        }
    }
    assert!(edits > if samples::faulty::is_thorough() { 12 } else { 4 }, "{edits}");
}

#[test]
fn embedding_ends_with_the_error_of_the_stream() {
    let object =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/host.o"))
            .unwrap();
    let contents = code(3, 300);
    let embedding = NewSections::offloading(&object, contents.len() as u64).unwrap();
    let expected = embedding.to_vec(&[&contents]).unwrap();
    samples::faulty::check_writing(&expected, |rig, out| {
        embedding.write_to(out, [rig.stream(&contents)])
    });
    let sizes = [(HOST, HOST_PLACEHOLDER.len() as u64), (GFX906, contents.len() as u64)];
    let bundle = object_bundle(&object, &sizes).unwrap();
    let expected = bundle.to_vec(&[HOST_PLACEHOLDER, &contents[..]]).unwrap();
    samples::faulty::check_writing(&expected, |rig, out| {
        bundle.write_to(out, [HOST_PLACEHOLDER, &contents[..]].map(|entry| rig.stream(entry)))
    });
}

/// Returns versions that a file may change to.
fn versions(file: &[u8]) -> [Vec<u8>; 5] {
    let (half, mut flipped) = (file.len() / 2, file.to_vec());
    flipped[half..].iter_mut().for_each(|byte| *byte ^= 0x20);
    let head = file[..half].to_vec();
    [Vec::new(), head, [&[b' '; 70], file].concat(), [file, file].concat(), flipped]
}

/// Runs an operation once for every call and version that the file may be of from then on. There is no telling what
/// comes of it, but nothing panics.
fn while_it_changes<T>(file: &[u8], mut run: impl FnMut(&Rig) -> T, mut judge: impl FnMut(u64, T)) {
    for version in versions(file) {
        at_each_call(&Fault::Change(file.into(), version.into()), &mut run, &mut judge);
    }
}

#[test]
fn a_file_may_change_while_it_is_walked() {
    for (name, file) in examples() {
        if !["bundle.s", "cuda-fatbin.o", "hip-ccob-v3.o", "hip-packager.o", "hip.dll", "libhip.a"]
            .contains(&&*name)
        {
            continue;
        }
        // Images are as long as they say, or an error.
        while_it_changes(&file, |rig| walked(rig, &file), |_, result| drop(result));
    }
}

#[test]
fn a_file_that_changes_after_planning_gives_no_other_output() {
    for (name, doing) in [
        ("hip.hipfb", Doing::Remove),
        ("hip-ccob-v3.hipfb", Doing::Decompress),
        ("hip-packager.o", Doing::Replace),
        ("hip-two-units.so", Doing::Remove),
        ("libbundles.a", Doing::Compress),
    ] {
        let file = &examples().into_iter().find(|(other, _)| other == name).unwrap().1;
        let size = edited(&Rig::sound(), file, doing).unwrap().len();
        let run = |rig: &Rig| {
            let mut input = rig.stream(file);
            let contents = survey(&mut input, &Options::default()).map_err(io_error)?;
            let edit = doing.edit(&contents, rig);
            let plan = contents.plan(&mut input, &edit).map_err(io_error)?;
            let planned = rig.calls();
            let mut out = rig.stream(b"");
            plan.write(&mut input, &mut out).map_err(io_error)?;
            Ok::<_, io::Error>((planned, plan.size(), out.contents().len()))
        };
        while_it_changes(file, run, |call, result| {
            let Ok((planned, promised, written)) = result else { return };
            // The file has the promised length, with any contents.
            assert_eq!(promised, written as u64, "{name} {doing:?}: call {call}");
            assert!(call < planned || written == size, "{name} {doing:?}: call {call}");
        });
    }
}

/// A file with a bad place.
struct Bad {
    stream: Stream,
    at: u64,
}

impl Read for Bad {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let at = self.stream.stream_position()?;
        let len = usize::try_from(self.at.saturating_sub(at)).unwrap().min(buf.len());
        if len == 0 && !buf.is_empty() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.stream.read(&mut buf[..len])
    }
}

impl Seek for Bad {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.stream.seek(to)
    }
}

#[test]
fn an_error_names_the_bad_file() {
    let file = bundle(&[(HOST, b""), (GFX906, &code(3, 9000)), (GFX90A, &code(5, 9000))], 4096);
    let contents = surveyed(&file);
    let rig = Rig::sound();
    let edit = Doing::Replace.edit(&contents, &rig);
    let plan = contents.plan(&mut rig.stream(&file), &edit).unwrap();
    let mut bad = Bad { stream: rig.stream(&file), at: 15000 };
    let error = plan.write(&mut bad, &mut io::sink()).unwrap_err();
    assert!(error.kind() == ErrorKind::Read, "{error}");
    // Everything fits into one chunk of a copy, or does not.
    for room in [0, 100, 9000, 15000] {
        let mut out = vec![0; room];
        let error = plan.write(&mut rig.stream(&file), &mut out[..]);
        let kind = error.as_ref().err().map(Error::kind);
        assert_eq!(kind, Some(ErrorKind::Write), "{error:?}");
    }
}
