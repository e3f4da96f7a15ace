//! Files and directories below an argument that somebody replaces by links during a run.
//!
//! The tools stop at a known place: they have walked through the directory, and wait for a reader of their messages, which
//! are more than a pipe holds.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gpu_packages::{Algorithm, Hash};

use super::snapshot;
use crate::common::{data, new_command, tool};

/// More bytes of messages than a pipe holds.
const LONG: usize = 200;
const DEPTH: usize = 12;
const FAULTY: usize = 60;

/// A directory with faulty files, and after these `z/lib.o`; and one outside, with a file of the same name.
fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let mut deep = place.path().join("env/a");
    (0..DEPTH).for_each(|_| deep.push("d".repeat(LONG)));
    fs::create_dir_all(&deep).unwrap();
    for number in 0..FAULTY {
        fs::write(deep.join(number.to_string()), b"\x10\xff\x10\xad and what cannot be").unwrap();
    }
    for directory in ["env/z", "outside"] {
        fs::create_dir(place.path().join(directory)).unwrap();
        fs::copy(data("hip.o"), place.path().join(directory).join("lib.o")).unwrap();
    }
    let env = place.path().join("env");
    (place, env)
}

/// Runs a tool, and acts when it has walked through the directory. Returns its status and all that it prints.
fn run_and_act(place: &Path, args: &str, act: impl FnOnce()) -> (Option<i32>, String) {
    let (mut prints, writer) = std::io::pipe().unwrap();
    let mut command = new_command(tool("offload"));
    command.args(args.split(' ')).current_dir(place);
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut tool = command.spawn().unwrap();
    // It holds the ends that are written to.
    drop(command);
    let mut text = vec![0];
    prints.read_exact(&mut text).unwrap();
    act();
    prints.read_to_end(&mut text).unwrap();
    (tool.wait().unwrap().code(), String::from_utf8_lossy(&text).into_owned())
}

/// The tool refused the file, and says nothing else of it.
#[track_caller]
fn is_refused(args: &str, (status, text): &(Option<i32>, String), why: &str) {
    assert_eq!(*status, Some(1), "{args}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("lib.o")).collect();
    let line = format!("offload: error: env/z/lib.o: {why}");
    assert!(matches!(lines[..], [one] if one.starts_with(&line)), "{args}: {lines:?}");
}

const COMMANDS: &[&str] = &[
    "thin --in-place --keep gfx1100 env",
    "compress --in-place env",
    "remove --in-place --index 0 env",
    "ls -j1 env",
    "verify -j1 env",
    "extract env -o images",
    "match -j1 --gpu gfx1100 env",
    "kernels -j1 env",
    "size -j1 env",
    "ls -j1 --formats env/a env",
];

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    for args in COMMANDS {
        let (place, env) = place();
        let outside = snapshot(&place.path().join("outside"));
        let printed = run_and_act(place.path(), args, || {
            fs::rename(env.join("z"), place.path().join("aside")).unwrap();
            symlink("../outside", env.join("z")).unwrap();
        });
        is_refused(args, &printed, "a symbolic link, which is not followed");
        assert!(snapshot(&place.path().join("outside")) == outside, "{args}");
        assert!(snapshot(&place.path().join("aside")).into_values().eq(outside.into_values()));
    }
}

#[test]
fn a_file_that_becomes_a_link_leads_nowhere() {
    for args in COMMANDS {
        let (place, env) = place();
        let outside = snapshot(&place.path().join("outside"));
        let printed = run_and_act(place.path(), args, || {
            fs::remove_file(env.join("z/lib.o")).unwrap();
            symlink("../../outside/lib.o", env.join("z/lib.o")).unwrap();
        });
        is_refused(args, &printed, "a symbolic link, which is not followed");
        assert!(snapshot(&place.path().join("outside")) == outside, "{args}");
        assert!(fs::symlink_metadata(env.join("z/lib.o")).unwrap().is_symlink(), "{args}");
    }
}

/// The directory that was named is the same, whatever its name leads to.
#[test]
fn an_argument_that_is_replaced_stays_the_directory_that_was_walked() {
    let (place, env) = place();
    let outside = snapshot(&place.path().join("outside"));
    let args = "compress --in-place env";
    let (_, text) = run_and_act(place.path(), args, || {
        fs::rename(&env, place.path().join("moved")).unwrap();
        symlink("outside", &env).unwrap();
        fs::create_dir(place.path().join("outside/z")).unwrap();
        fs::copy(data("hip.o"), place.path().join("outside/z/lib.o")).unwrap();
    });
    assert!(!text.contains("env/z/lib.o: "), "{}", text.lines().last().unwrap_or_default());
    let new = fs::read(place.path().join("moved/z/lib.o")).unwrap();
    let old = outside.into_values().next().flatten().unwrap();
    assert!(new.len() < old.len());
    for name in ["lib.o", "z/lib.o"] {
        assert!(fs::read(place.path().join("outside").join(name)).unwrap() == old);
    }
}

/// A pipe in the place of a file is not waited for.
#[test]
fn a_file_that_becomes_a_pipe_is_not_opened() {
    let (place, env) = place();
    let printed = run_and_act(place.path(), "ls -j1 env", || {
        fs::remove_file(env.join("z/lib.o")).unwrap();
        let made = new_command("mkfifo").arg(env.join("z/lib.o")).status().unwrap();
        assert!(made.success());
    });
    is_refused("ls", &printed, "not a regular file");
}

/// A list that was read, and somebody puts something else into its place before it is written.
#[test]
fn a_list_that_is_replaced_leads_nowhere() {
    const INFO: &str = "foo-1.0.dist-info";
    type Act = fn(&Path, &Path);
    let acts: [(&str, Act); 4] = [
        ("the directory becomes a link", |env, outside| {
            fs::rename(env.join(INFO), env.join("aside")).unwrap();
            symlink(outside, env.join(INFO)).unwrap();
        }),
        ("the list becomes a link", |env, outside| {
            fs::rename(env.join(INFO).join("RECORD"), env.join("aside")).unwrap();
            symlink(outside.join("RECORD"), env.join(INFO).join("RECORD")).unwrap();
        }),
        ("the directory is another one", |env, outside| {
            fs::rename(env.join(INFO), env.join("aside")).unwrap();
            fs::rename(outside, env.join(INFO)).unwrap();
        }),
        ("the list is a pipe", |env, _| {
            let list = env.join(INFO).join("RECORD");
            fs::remove_file(&list).unwrap();
            assert!(new_command("mkfifo").arg(list).status().unwrap().success());
        }),
    ];
    for (what, act) in acts {
        let (place, env) = place();
        let outside = place.path().join("other.dist-info");
        fs::copy(data("hip.o"), env.join("first.o")).unwrap();
        let hip = fs::read(data("hip.o")).unwrap();
        let hash = Hash::of(Algorithm::Sha256, &hip).to_base64();
        let row = format!(",sha256={hash},{}\n", hip.len());
        let list = format!("first.o{row}z/lib.o{row}");
        for info in [&env.join(INFO), &outside] {
            fs::create_dir(info).unwrap();
            fs::write(info.join("RECORD"), &list).unwrap();
        }
        let (status, text) =
            run_and_act(place.path(), "compress --in-place env", || act(&env, &outside));
        assert_eq!(status, Some(1), "{what}");
        assert!(text.contains("RECORD: "), "{what}: {text}");
        assert!(fs::read(env.join("first.o")).unwrap() != hip, "{what}");
        let lists = snapshot(place.path()).into_iter().filter(|(path, _)| path.ends_with("RECORD"));
        for (path, text) in lists {
            assert!(text.is_none_or(|text| text == list.as_bytes()), "{what}: {}", path.display());
        }
    }
}
