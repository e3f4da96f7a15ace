//! Readers that give little at a time, fail, or end early; and writers that fail.

use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom, Write};

use byte_parts::ReadSeek;
use fat_edit::{CompressOptions, Edit, EditOptions, survey};
use fat_object::{Container, Finding, Image, Options, Visitor, walk};
use hda_archive::entries;

use crate::edits::Choices;
use crate::model;

/// The most that may be decompressed.
const LIMIT: u64 = 4 << 20;

/// Reads a file with faults as its last bytes have them.
pub fn check(data: &[u8]) {
    let (_, tail) = data.split_at(data.len().saturating_sub(8));
    let seed = tail.iter().fold(0, |seed: u64, &byte| seed << 8 | u64::from(byte));
    let mut choices = Choices::new(seed);
    check_reads(data, &|input| walked(input), &mut choices);
    check_reads(data, &|input| edited(input, &mut Vec::new()), &mut choices);
    check_reads(data, &|input| listed(input), &mut choices);
    check_writes(data, &mut choices);
}

/// Makes a file and reads it with faults.
pub fn check_model(data: &[u8]) {
    if let Some(file) = model::make(data) {
        check(&file);
    }
}

/// The output, or the error in the file: the same each time, or an error of reading or writing.
type Seen = Result<Vec<String>, String>;
type Task<'t> = dyn Fn(&mut dyn ReadSeek) -> io::Result<Seen> + 't;

fn check_reads(data: &[u8], task: &Task<'_>, choices: &mut Choices) {
    let mut whole = Faulty::new(data, choices.of(u64::MAX));
    let expected = task(&mut whole).expect("memory can always be read");
    let calls = whole.calls;

    // Little at a time, and interrupted.
    let mut short = Faulty::new(data, choices.of(u64::MAX));
    (short.is_short, short.is_interrupted) = (true, true);
    let seen = task(&mut short).expect("not a fault");
    assert!(seen == expected, "{seen:?} for {expected:?}");

    // An error at one call, or at all from there on.
    let mut failing = Faulty::new(data, choices.of(u64::MAX));
    failing.is_short = choices.of(2) == 0;
    failing.fails_at = Some(choices.of(calls + 1));
    failing.goes_on = choices.of(2) == 0;
    match task(&mut failing) {
        Ok(seen) => {
            // A failed read may have been repeated.
            assert!(!failing.has_failed || failing.goes_on, "an error was lost");
            assert!(seen == expected, "{seen:?} for {expected:?}");
        }
        Err(error) => assert!(failing.has_failed && error.kind() == FAULT, "{error}"),
    }

    // A file that is shorter than it was.
    let mut cut = Faulty::new(data, choices.of(u64::MAX));
    cut.is_short = choices.of(2) == 0;
    cut.end = choices.of(data.len() as u64 + 1) as usize;
    match task(&mut cut) {
        // It may have been so short from the start, or is seen to have changed.
        Ok(Err(_)) if cut.has_failed => {}
        Ok(seen) => assert!(seen == expected, "{seen:?} for {expected:?}"),
        Err(error) => {
            assert!(cut.has_failed && error.kind() == ErrorKind::UnexpectedEof, "{error}");
        }
    }
}

fn check_writes(data: &[u8], choices: &mut Choices) {
    let mut whole = Vec::new();
    let is_edited =
        edited(&mut Cursor::new(data), &mut whole).expect("memory can be written").is_ok();
    if !is_edited || whole.is_empty() {
        return;
    }
    let mut disk = Disk { room: choices.of(whole.len() as u64) as usize, written: Vec::new() };
    edited(&mut Cursor::new(data), &mut disk).expect_err("the disk is full");
    assert!(whole.starts_with(&disk.written));
    disk = Disk { room: whole.len(), written: Vec::new() };
    let is_edited = edited(&mut Cursor::new(data), &mut disk).expect("has room").is_ok();
    assert!(is_edited && whole == disk.written);
}

/// The kind of error that is put in.
const FAULT: ErrorKind = ErrorKind::HostUnreachable;

/// A file on a bad medium.
struct Faulty<'d> {
    data: Cursor<&'d [u8]>,
    choices: Choices,
    calls: u64,
    is_short: bool,
    is_interrupted: bool,
    /// The call that fails.
    fails_at: Option<u64>,
    /// `true` if later calls succeed.
    goes_on: bool,
    /// The current end of the file.
    end: usize,
    has_failed: bool,
}

impl<'d> Faulty<'d> {
    fn new(data: &'d [u8], seed: u64) -> Self {
        Faulty {
            data: Cursor::new(data),
            choices: Choices::new(seed),
            calls: 0,
            is_short: false,
            is_interrupted: false,
            fails_at: None,
            goes_on: false,
            end: data.len(),
            has_failed: false,
        }
    }

    fn call(&mut self) -> io::Result<()> {
        let call = self.calls;
        self.calls += 1;
        let fails = |at| if self.goes_on { call == at } else { call >= at };
        if self.fails_at.is_some_and(fails) {
            self.has_failed = true;
            return Err(FAULT.into());
        }
        Ok(())
    }
}

impl Read for Faulty<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.call()?;
        if self.is_interrupted && self.choices.of(4) == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let at = self.data.position().min(self.end as u64) as usize;
        let wanted = match buf.len() {
            len if len > 0 && self.is_short => 1 + self.choices.of(len.min(5000) as u64) as usize,
            len => len,
        };
        let n = wanted.min(self.end - at);
        let rest = self.data.get_ref().len() - at;
        // Bytes that existed when the length was asked for are missing.
        self.has_failed |= n < wanted && n < rest;
        buf[..n].copy_from_slice(&self.data.get_ref()[at..at + n]);
        self.data.set_position((at + n) as u64);
        Ok(n)
    }
}

impl Seek for Faulty<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.call()?;
        self.data.seek(to)
    }
}

/// A place with little space.
struct Disk {
    room: usize,
    written: Vec<u8>,
}

impl Write for Disk {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = buf.len().min(self.room - self.written.len()).min(1000);
        if n == 0 && !buf.is_empty() {
            return Err(ErrorKind::StorageFull.into());
        }
        self.written.extend_from_slice(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn options() -> Options {
    Options::default().with_max_decompressed(LIMIT).with_max_expansion(64)
}

/// Returns bytes as characters.
fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Returns the events of a walk.
fn walked(input: &mut dyn ReadSeek) -> io::Result<Seen> {
    struct Trace(Vec<String>);
    impl Visitor for Trace {
        fn enter(&mut self, container: &Container) -> io::Result<()> {
            let location = container.location();
            self.0.push(format!("{:?} {location:?} {}", container.path().last(), container.size()));
            Ok(())
        }
        fn leave(&mut self) -> io::Result<()> {
            self.0.push("leave".to_owned());
            Ok(())
        }
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            let mut bytes = Vec::new();
            image.reader().read_to_end(&mut bytes)?;
            self.0.push(format!("{:?} {:?} {}", image.id(), image.target(), text(&bytes)));
            Ok(())
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            self.0.push(finding.to_string());
            Ok(())
        }
    }
    let mut trace = Trace(Vec::new());
    let summary = walk(input, &options(), &mut trace)?;
    trace.0.push(format!("{summary:?}"));
    Ok(Ok(trace.0))
}

/// Writes an edit, or returns why it fails: the last image of each container is removed, and all are compressed.
fn edited(input: &mut dyn ReadSeek, out: &mut dyn Write) -> io::Result<Seen> {
    let result: Result<String, fat_edit::Error> = (|| {
        let contents = survey(&mut *input, &options())?;
        let options =
            EditOptions::default().with_threads(1).with_drop_signature(true).with_remove_host(true);
        let mut edit = Edit::new(options);
        for container in contents.containers() {
            if container.images().len() > 1 {
                edit.remove(container.images().end - 1);
            }
        }
        if contents.size() % 2 == 0 {
            edit.compress(CompressOptions::default());
        }
        let plan = contents.plan(&mut *input, &edit)?;
        let mut written = Vec::new();
        plan.write(&mut *input, &mut Both(&mut written, out))?;
        assert_eq!(written.len() as u64, plan.size());
        Ok(text(&written))
    })();
    match result {
        Ok(written) => Ok(Ok(vec![written])),
        Err(error) if error.io().is_some() => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// A writer that also keeps the bytes.
struct Both<'a>(&'a mut Vec<u8>, &'a mut dyn Write);

impl Write for Both<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.1.write(buf)?;
        self.0.extend_from_slice(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.1.flush()
    }
}

/// Returns the entries of a library of device code.
fn listed(input: &mut dyn ReadSeek) -> io::Result<Seen> {
    let mut list = Vec::new();
    let mut no_thin = |_: &[u8]| Err(ErrorKind::NotFound.into());
    let result = entries(input, &options(), &mut no_thin, |entry| {
        list.push(entry.id().to_owned());
        Ok(())
    });
    match result {
        Ok(()) => Ok(Ok(list)),
        Err(error) if error.kind() == hda_archive::ErrorKind::Read => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}
