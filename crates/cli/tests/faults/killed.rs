//! Tools that are ended from outside.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Random;
use crate::snapshot;
use crate::table::{Inputs, WRITERS};

const OLD: &[u8] = b"what was there before";

/// At any moment each output is the old one or the new one, whole.
#[test]
fn outputs_are_old_or_new_whenever_a_tool_is_ended() {
    const TRIES: u32 = 6;
    let inputs = Inputs::new();
    let mut random = Random::new(7);
    let (mut ended, mut leftovers) = (0, 0);
    for writer in &WRITERS {
        let right = inputs.right(writer);
        let start = Instant::now();
        inputs.right(writer);
        let takes = u32::try_from(start.elapsed().as_micros()).unwrap();
        for signal in ["KILL", "TERM", "INT"] {
            for _ in 0..TRIES {
                let names = ["first", "second"];
                names.iter().for_each(|name| fs::write(inputs.path(name), OLD).unwrap());
                let before = snapshot(inputs.root());
                let mut child = inputs
                    .command(&writer.words(names))
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                let moment = random.below(usize::try_from(takes).unwrap());
                thread::sleep(Duration::from_micros(moment as u64));
                let id = child.id().to_string();
                Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().unwrap();
                ended += usize::from(!child.wait().unwrap().success());
                let mut after = snapshot(inputs.root());
                for (name, new) in names.iter().zip(&right) {
                    let bytes = after.remove(&inputs.path(name)).unwrap().unwrap();
                    assert!(bytes == OLD || bytes == *new, "{writer:?}: half a file");
                }
                for (path, bytes) in after {
                    if before.get(&path) == Some(&bytes) {
                        continue;
                    }
                    // Between its completion and its name, a file can be left behind under another one.
                    let name = path.file_name().unwrap().to_str().unwrap();
                    assert!(name.starts_with(".offload-"), "{writer:?}: {name}");
                    fs::remove_file(&path).unwrap();
                    leftovers += 1;
                }
            }
        }
    }
    println!("{ended} were ended, {leftovers} files were left behind");
    assert!(ended > 20, "{ended}");
}
