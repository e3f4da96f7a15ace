//! Tools that are ended from outside.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::table::{Inputs, some_writers, words};
use super::{is_unchanged, snapshot};
use crate::common::Random;
use crate::common::machine::{is_ignored, not_tested, send};

/// Signals that end a tool, and can be waited for: the ones that this process does not ignore, since the tool would
/// ignore them as well.
fn signals() -> impl Iterator<Item = Signal> {
    [Signal::TERM, Signal::INT, Signal::HUP].into_iter().filter(|signal| {
        let is_ignored = is_ignored(*signal);
        if is_ignored {
            not_tested(&format!("the tests were started with {signal:?} ignored"));
        }
        !is_ignored
    })
}

const OLD: &[u8] = b"what was there before";

fn spawn(inputs: &Inputs, words: &[String]) -> Child {
    inputs.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Sends a signal after this number of microseconds, and waits for the end.
fn end(mut child: Child, signal: Signal, moment: u64) -> ExitStatus {
    thread::sleep(Duration::from_micros(moment));
    send(&child, signal);
    child.wait().unwrap()
}

/// Returns whether a process was ended by this signal.
fn is_by(status: ExitStatus, signal: Signal) -> bool {
    status.signal() == Some(signal.as_raw())
}

/// A bundle of this number of images.
fn write_bundle(path: &Path, images: u64) {
    let ids = (0..images).map(|image| format!("hip-amdgcn-amd-amdhsa-n{image}-gfx906"));
    let ids: Vec<_> = ids.collect();
    let size = 32 + images * 80;
    let entries: Vec<_> = ids.iter().zip(size..).map(|(id, at)| (&**id, at, 1)).collect();
    let mut bundle = samples::bundle::header(&entries);
    bundle.resize(usize::try_from(size + images).unwrap(), b'x');
    fs::write(path, bundle).unwrap();
}

/// Neither outputs, nor files that are not complete, nor directories.
#[test]
fn signals_leave_all_outputs_or_none() {
    let (images, tries) = if samples::faulty::is_thorough() { (1500, 12) } else { (400, 3) };
    let inputs = Inputs::new();
    write_bundle(&inputs.path("many"), images);
    let line = words("offload", "extract many -o deep/images", ["", ""]);
    let start = Instant::now();
    assert!(inputs.run(&line).status.success());
    let takes = u64::try_from(start.elapsed().as_micros()).unwrap();
    fs::remove_dir_all(inputs.path("deep")).unwrap();
    let before = snapshot(inputs.root());
    for signal in signals() {
        for moment in 0..=tries {
            let status = match moment {
                // Some outputs are open.
                0 => {
                    let mut child = inputs.stopped_while_writing(&line, Stdio::null, || {
                        let _ = fs::remove_dir_all(inputs.path("deep"));
                    });
                    send(&child, signal);
                    send(&child, Signal::CONT);
                    child.wait().unwrap()
                }
                moment => end(spawn(&inputs, &line), signal, takes * (moment - 1) / tries),
            };
            assert!(status.success() || is_by(status, signal), "{signal:?}: {status}");
            let made = fs::read_dir(inputs.path("deep/images")).map_or(0, Iterator::count);
            assert!(made == 0 || made as u64 == images, "{signal:?}: {made} of {images}");
            assert_eq!(inputs.path("deep").exists(), made > 0, "{signal:?}");
            let _ = fs::remove_dir_all(inputs.path("deep"));
            assert_eq!(snapshot(inputs.root()), before, "{signal:?}");
        }
    }
}

/// A tool that waits for an input is ended by every signal, and leaves nothing.
#[test]
fn signals_end_a_tool_that_waits() {
    let inputs = Inputs::new();
    inputs.make_fifo();
    let before = snapshot(inputs.root());
    for writer in some_writers() {
        let mut line = writer.words(["out", "out2"]);
        for word in line.iter_mut().skip(1) {
            *word = word.replace(writer.input, "fifo");
        }
        for signal in signals().chain([Signal::KILL]) {
            let mut child = spawn(&inputs, &line);
            let fifo = inputs.open_fifo(&mut child);
            send(&child, signal);
            let status = child.wait().unwrap();
            drop(fifo);
            assert!(is_by(status, signal), "{writer:?}: {signal:?}: {status}");
            is_unchanged(inputs.root(), &before, &format!("{writer:?}: {signal:?}"));
        }
    }
}

/// At any moment each output is the old one or the new one, whole.
#[test]
fn outputs_are_old_or_new_whenever_a_tool_is_ended() {
    let tries = if samples::faulty::is_thorough() { 6 } else { 1 };
    let inputs = Inputs::new();
    let mut random = Random::new(7);
    let all: Vec<Signal> = signals().chain([Signal::KILL]).collect();
    for writer in some_writers() {
        let right = inputs.right(writer);
        let start = Instant::now();
        inputs.right(writer);
        let takes = u32::try_from(start.elapsed().as_micros()).unwrap();
        for &signal in &all {
            for _ in 0..tries {
                let names = ["first", "second"];
                names.iter().for_each(|name| fs::write(inputs.path(name), OLD).unwrap());
                let before = snapshot(inputs.root());
                let child = spawn(&inputs, &writer.words(names));
                let moment = random.below(usize::try_from(takes).unwrap());
                let status = end(child, signal, moment as u64);
                assert!(status.success() || is_by(status, signal), "{writer:?}: {status}");
                let mut after = snapshot(inputs.root());
                let mut are_new = Vec::new();
                for (name, new) in names.iter().zip(&right) {
                    let bytes = after.remove(&inputs.path(name)).unwrap().unwrap();
                    assert!(bytes == OLD || bytes == *new, "{writer:?}: half a file");
                    are_new.push(bytes == *new);
                }
                if signal != Signal::KILL {
                    let are_same = are_new.windows(2).all(|two| two[0] == two[1]);
                    assert!(are_same, "{writer:?}: {signal:?}");
                }
                for (path, bytes) in after {
                    if before.get(&path) == Some(&bytes) {
                        continue;
                    }
                    // After its completion and before it gets its name, a file can remain under another name.
                    assert_eq!(signal, Signal::KILL, "{writer:?}: {}", path.display());
                    let name = path.file_name().unwrap().to_str().unwrap();
                    assert!(name.starts_with(".offload-"), "{writer:?}: {name}");
                    fs::remove_file(&path).unwrap();
                }
            }
        }
    }
}
