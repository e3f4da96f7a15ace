//! Outputs that cannot be written, or are something else than a new file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use super::table::{Inputs, some_writers, words};
use super::{is_unchanged, refuses, snapshot};
use crate::common::machine::{as_nobody, give, is_root, not_tested, runnable_directory, wait_for};
use crate::common::{new_command, stderr};

const OLD: &[u8] = b"what was there before";

#[test]
fn a_full_device_is_an_error() {
    let inputs = Inputs::new();
    fs::write(inputs.path("old"), OLD).unwrap();
    let before = snapshot(inputs.root());
    for writer in some_writers() {
        // The other output is written first, and has to wait for this one.
        for outputs in [["/dev/full", "old"], ["old", "/dev/full"]] {
            if outputs[0] == "old" && !writer.has_two_outputs() {
                continue;
            }
            let output = inputs.run(&writer.words(outputs));
            let what = format!("{writer:?}");
            refuses(&output, &["'/dev/full': No space left on device"], &what);
            is_unchanged(inputs.root(), &before, &what);
        }
    }
}

/// Files may not be larger than 512 bytes: writing fails as it does on a full disk.
#[test]
fn a_file_that_cannot_grow_is_an_error() {
    let inputs = Inputs::new();
    for name in ["old", "old2"] {
        fs::write(inputs.path(name), OLD).unwrap();
    }
    let before = snapshot(inputs.root());
    for (trap, code) in [("trap '' XFSZ; ", Some(1)), ("", None)] {
        for writer in some_writers() {
            let what = format!("{writer:?}");
            let script = format!("{trap}ulimit -f 1; exec \"$0\" \"$@\"");
            let mut limited: Vec<String> = ["sh", "-c", &script].map(String::from).into();
            limited.extend(writer.words(["old", "old2"]));
            let output = inputs.run(&limited);
            assert_eq!(output.status.code(), code, "{what}: {}", stderr(&output));
            if code.is_some() {
                // Some make temporary files first.
                let words: &[&str] = if stderr(&output).contains("no temporary file") {
                    &["File too large (TMPDIR sets the directory)"]
                } else {
                    &["'old", "': File too large"]
                };
                refuses(&output, words, &what);
            }
            is_unchanged(inputs.root(), &before, &what);
        }
    }
}

/// A disk of 12 KiB, with 8 KiB on it.
#[test]
fn a_full_disk_is_an_error() {
    const SCRIPT: &str = "mount -t tmpfs -o size=12k none small && \
        head -c 4096 /dev/zero > small/old && head -c 4096 /dev/zero > small/old2 || exit 99
        \"$0\" \"$@\"; status=$?
        ls -A small | tr '\\n' ' '; cat small/old small/old2 | wc -c
        exit $status";
    let inputs = Inputs::new();
    fs::create_dir(inputs.path("small")).unwrap();
    let mut tested = 0;
    for writer in some_writers() {
        let right = inputs.right(writer);
        // The first fits, the second does not: none of them appears.
        if right.iter().map(|bytes| bytes.len().next_multiple_of(4096)).sum::<usize>() <= 4096 {
            continue;
        }
        let mut script: Vec<String> =
            ["unshare", "-rm", "sh", "-c", SCRIPT].map(String::from).into();
        script.extend(writer.words(["small/old", "small/old2"]));
        let Ok(output) = inputs.command(&script).output() else {
            not_tested("no unshare here");
            return;
        };
        if output.status.code() == Some(99) || stderr(&output).starts_with("unshare: ") {
            not_tested(&format!("nothing can be mounted here: {}", stderr(&output)));
            return;
        }
        let what = format!("{writer:?}");
        refuses(&output, &["'small/old", "': No space left on device"], &what);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "old old2 8192\n", "{what}");
        tested += 1;
    }
    assert!(tested > 4, "{tested}");
}

#[test]
fn places_where_no_file_can_be_are_errors() {
    let inputs = Inputs::new();
    fs::create_dir(inputs.path("directory")).unwrap();
    symlink("loop", inputs.path("loop")).unwrap();
    let _socket = inputs.make_socket();
    fs::write(inputs.path("old"), OLD).unwrap();
    let before = snapshot(inputs.root());
    let long = "n".repeat(300);
    for writer in some_writers() {
        for (place, reason) in [
            ("directory", "'directory': Is a directory"),
            ("directory/", "'directory/': Is a directory"),
            ("none/out", "'none/out': No such file or directory"),
            ("no\nne\u{1b}[1m/out", "'no\\nne\\u{1b}[1m/out': No such file or directory"),
            ("four/out", "'four/out': Not a directory"),
            ("loop", "'loop': Too many levels of symbolic links"),
            ("socket", "'socket': No such device or address"),
            (&*long, "': File name too long"),
        ] {
            if writer.takes_a_directory() && place.starts_with("directory") {
                continue;
            }
            let what = format!("{writer:?} to {place:?}");
            refuses(&inputs.run(&writer.words([place, "old"])), &[reason], &what);
            is_unchanged(inputs.root(), &before, &what);
            if writer.has_two_outputs() {
                refuses(&inputs.run(&writer.words(["old", place])), &[reason], &what);
                is_unchanged(inputs.root(), &before, &what);
            }
        }
    }
}

#[test]
fn a_directory_that_cannot_be_written_to_is_an_error() {
    let inputs = Inputs::new();
    fs::create_dir(inputs.path("closed")).unwrap();
    fs::write(inputs.path("closed/old"), OLD).unwrap();
    fs::set_permissions(inputs.path("closed/old"), Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(inputs.path("closed"), Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(inputs.root(), Permissions::from_mode(0o755)).unwrap();
    let before = snapshot(inputs.root());
    for writer in some_writers() {
        for name in ["closed/old", "closed/new"] {
            let Some(words) = as_nobody(&writer.words([name, "closed/new2"])) else { return };
            let what = format!("{writer:?}");
            let reason = format!("'{name}': Permission denied");
            let reason = if writer.has_two_outputs() { "': Permission denied" } else { &reason };
            refuses(&inputs.run(&words), &[reason], &what);
            is_unchanged(inputs.root(), &before, &what);
        }
    }
    fs::set_permissions(inputs.path("closed"), Permissions::from_mode(0o755)).unwrap();
}

/// The one thing that fails only when all outputs are complete: in a directory like /tmp, a file of somebody else's
/// cannot be replaced.
#[test]
fn a_file_that_cannot_be_replaced_is_an_error() {
    let inputs = Inputs::new();
    let shared = inputs.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(inputs.root(), Permissions::from_mode(0o755)).unwrap();
    if !is_root() {
        not_tested("there is no file of somebody else's without being root");
        return;
    }
    for writer in some_writers() {
        let right = inputs.right(writer);
        fs::write(shared.join("old"), OLD).unwrap();
        fs::set_permissions(shared.join("old"), Permissions::from_mode(0o666)).unwrap();
        let before = snapshot(inputs.root());
        let what = format!("{writer:?}");
        let reason = "'shared/old': Operation not permitted";
        let words = writer.words(["shared/old", "shared/znew"]);
        let Some(words) = as_nobody(&words) else { return };
        refuses(&inputs.run(&words), &[reason], &what);
        is_unchanged(inputs.root(), &before, &what);
        if !writer.has_two_outputs() {
            continue;
        }
        let words = as_nobody(&writer.words(["shared/anew", "shared/old"])).unwrap();
        refuses(&inputs.run(&words), &[reason], &what);
        is_unchanged(inputs.root(), &before, &what);
        // One of their own is whole, the old one or the new one.
        fs::write(shared.join("own"), OLD).unwrap();
        if !give(&shared.join("own"), Some(65534), Some(65534)) {
            return;
        }
        let words = as_nobody(&writer.words(["shared/own", "shared/old"])).unwrap();
        refuses(&inputs.run(&words), &[reason], &what);
        let own = fs::read(shared.join("own")).unwrap();
        assert!(own == OLD || own == right[0], "{what}");
        fs::remove_file(shared.join("own")).unwrap();
        is_unchanged(inputs.root(), &before, &what);
    }
}

#[test]
fn links_stay_links() {
    for writer in some_writers() {
        let inputs = Inputs::new();
        let right = inputs.right(writer);
        let what = format!("{writer:?}");
        let ok = |name: &str| {
            let output = inputs.run(&writer.words([name, "second"]));
            assert!(output.status.success(), "{what} to {name}: {}", stderr(&output));
        };
        let is_link = |name: &str| fs::symlink_metadata(inputs.path(name)).unwrap().is_symlink();
        fs::create_dir(inputs.path("in")).unwrap();
        fs::write(inputs.path("in/old"), OLD).unwrap();
        fs::hard_link(inputs.path("in/old"), inputs.path("hard")).unwrap();
        symlink("in/old", inputs.path("soft")).unwrap();
        ok("soft");
        assert!(is_link("soft") && fs::read(inputs.path("in/old")).unwrap() == right[0], "{what}");
        // Another name of the old file is a file of its own.
        assert!(fs::read(inputs.path("hard")).unwrap() == OLD, "{what}");
        fs::hard_link(inputs.path("hard"), inputs.path("other")).unwrap();
        ok("other");
        assert!(fs::read(inputs.path("hard")).unwrap() == OLD, "{what}");
        assert!(fs::read(inputs.path("other")).unwrap() == right[0], "{what}");
        // A missing file is made.
        symlink("in/new", inputs.path("dangling")).unwrap();
        ok("dangling");
        assert!(is_link("dangling"), "{what}");
        assert!(fs::read(inputs.path("in/new")).unwrap() == right[0], "{what}");
        // The names of a process for its files lead to them, too.
        let here = format!("/proc/self/cwd/{}", "in/old");
        if Path::new("/proc/self/cwd").exists() {
            ok(&here);
        }
        fs::write(inputs.path("in/old"), OLD).unwrap();
        if Path::new("/dev/fd/3").parent().unwrap().exists() {
            let mut script: Vec<String> =
                ["sh", "-c", "exec 3<in/old; exec \"$0\" \"$@\""].map(String::from).into();
            script.extend(writer.words(["/dev/fd/3", "second"]));
            assert!(inputs.run(&script).status.success(), "{what}");
            assert!(fs::read(inputs.path("in/old")).unwrap() == right[0], "{what}");
        }
    }
}

#[test]
fn devices_and_pipes_are_written_to() {
    let inputs = Inputs::new();
    inputs.make_fifo();
    for writer in some_writers() {
        let right = inputs.right(writer);
        let what = format!("{writer:?}");
        let before = snapshot(&inputs.path("."));
        let output = inputs.run(&writer.words(["/dev/null", "/dev/zero"]));
        assert!(output.status.success(), "{what}: {}", stderr(&output));

        let mut child = inputs
            .command(&writer.words(["fifo", "/dev/null"]))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // It can be opened without anybody who writes, and read when all is written.
        let fifo = OpenOptions::new().read(true).write(true).open(inputs.path("fifo")).unwrap();
        let mut read = vec![0; right[0].len()];
        (&fifo).read_exact(&mut read).unwrap();
        assert!(child.wait().unwrap().success() && read == right[0], "{what}");

        // However standard output is called, it is not replaced: others write there, too.
        for stdout in ["/dev/stdout", "/proc/self/fd/1"] {
            let mut script: Vec<String> =
                ["sh", "-c", "echo first; \"$0\" \"$@\" && echo last"].map(String::from).into();
            script.extend(writer.words([stdout, "/dev/null"]));
            let out = File::create(inputs.path("shared")).unwrap();
            let done = inputs.command(&script).stdout(out).stderr(Stdio::null()).status().unwrap();
            assert!(done.success(), "{what}");
            let written = fs::read(inputs.path("shared")).unwrap();
            fs::remove_file(inputs.path("shared")).unwrap();
            assert!(written.starts_with(b"first\n") && written.ends_with(b"last\n"), "{what}");
            let holds = written.windows(right[0].len()).any(|window| window == right[0]);
            assert!(holds, "{what} to {stdout}");
        }
        is_unchanged(&inputs.path("."), &before, &what);
    }
}

#[test]
fn a_program_that_runs_can_be_replaced() {
    let program = ["/bin/cat", "/usr/bin/cat"].into_iter().find(|path| Path::new(path).exists());
    for writer in some_writers() {
        let inputs = Inputs::in_directory(runnable_directory());
        let right = inputs.right(writer);
        fs::copy(program.unwrap(), inputs.path("program")).unwrap();
        // A program that another test starts at the same time holds the copy open for writing until it is running.
        let mut child = wait_for("the copy can be run", || {
            // It waits until its input ends.
            match new_command(inputs.path("program")).stdin(Stdio::piped()).spawn() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => None,
                child => Some(child.unwrap()),
            }
        });
        let output = inputs.run(&writer.words(["program", "second"]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(output.status.success(), "{writer:?}: {}", stderr(&output));
        assert!(fs::read(inputs.path("program")).unwrap() == right[0], "{writer:?}");
        // It stays a program.
        let mode = fs::metadata(inputs.path("program")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{writer:?}");
    }
}

#[test]
fn an_output_may_be_the_input() {
    // A page in the place of a library is a mistake, and refused.
    for writer in some_writers().filter(|writer| !writer.is_page()) {
        let input = writer.input;
        let mut spelled: Vec<String> =
            ["", "./", "in/../"].map(|start| format!("{start}{input}")).into();
        spelled.extend(["soft", "hard"].map(String::from));
        for name in spelled {
            let inputs = Inputs::new();
            let right = inputs.right(writer);
            let old = fs::read(inputs.path(input)).unwrap();
            fs::create_dir(inputs.path("in")).unwrap();
            symlink(input, inputs.path("soft")).unwrap();
            fs::hard_link(inputs.path(input), inputs.path("hard")).unwrap();
            let what = format!("{writer:?} to {name}");
            let output = inputs.run(&writer.words([&name, "second"]));
            assert!(output.status.success(), "{what}: {}", stderr(&output));
            assert!(fs::read(inputs.path(&name)).unwrap() == right[0], "{what}");
            assert!(fs::symlink_metadata(inputs.path("soft")).unwrap().is_symlink(), "{what}");
            // The other name of it keeps what it had.
            let other = if name == "hard" { input } else { "hard" };
            assert!(fs::read(inputs.path(other)).unwrap() == old, "{what}");
        }
    }
}

#[test]
fn the_files_of_a_directory_appear_together_or_not_at_all() {
    for (args, files) in [("extract four -o", 4), ("man --out", 42)] {
        let inputs = Inputs::new();
        let write = |to: &str| words("offload", &format!("{args} {to}"), ["", ""]);
        let before = snapshot(inputs.root());
        let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
        for to in ["a/b/c", "."] {
            let mut limited: Vec<String> = ["sh", "-c", script].map(String::from).into();
            limited.extend(write(to));
            refuses(&inputs.run(&limited), &["': File too large"], to);
            is_unchanged(inputs.root(), &before, to);
            // Nor is there a directory that was made for them.
            assert!(!inputs.path("a").exists());
        }
        refuses(&inputs.run(&write("four/in")), &["'four/in': Not a directory"], args);
        refuses(&inputs.run(&write("four")), &["'four': Not a directory"], args);
        is_unchanged(inputs.root(), &before, args);
        assert!(inputs.run(&write("a/b/c")).status.success());
        assert_eq!(fs::read_dir(inputs.path("a/b/c")).unwrap().count(), files);
    }
}
