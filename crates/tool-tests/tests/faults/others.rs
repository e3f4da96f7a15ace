//! Files of others: links, programs and directories that somebody puts where a tool writes.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Output, Stdio};

use rustix::process::Signal;

use super::table::{Inputs, large_bundle, some_writers, words};
use super::{is_unchanged, made, refuses, snapshot};
use crate::common::machine::{give, is_root, not_tested, send};
use crate::common::{new_command, stderr};

const OLD: &[u8] = b"what was there before";

/// Everything that makes names up.
const GENERATORS: &[(&str, &str)] = &[
    ("offload", "extract four"),
    ("offload", "extract four.ccob -o images"),
    ("offload", "man --out pages"),
    ("offload", "split hip.so --group g -o out"),
    ("llvm-offload-binary", "packages.offload --image=arch=gfx90a"),
];

#[test]
fn generated_names_never_follow_symbolic_links() {
    for (tool, args) in GENERATORS {
        let inputs = Inputs::new();
        let right = made(&inputs, tool, args);
        assert!(!right.is_empty(), "{tool} {args}");
        fs::create_dir(inputs.path("home")).unwrap();
        fs::write(inputs.path("home/keys"), OLD).unwrap();
        for target in ["home/keys", "home/none", "home", "fifo"] {
            for (path, _) in &right {
                let _ = fs::remove_file(path);
                match target {
                    "fifo" => {
                        assert!(new_command("mkfifo").arg(path).status().unwrap().success());
                    }
                    target => symlink(inputs.path(target), path).unwrap(),
                }
            }
            let output = inputs.run(&words(tool, args, ["", ""]));
            let what = format!("{tool} {args}, {target}: {}", stderr(&output));
            assert!(output.status.success(), "{what}");
            for (path, bytes) in &right {
                assert!(fs::symlink_metadata(path).unwrap().is_file(), "{what}");
                assert!(fs::read(path).unwrap() == *bytes, "{what}");
            }
            assert_eq!(fs::read(inputs.path("home/keys")).unwrap(), OLD, "{what}");
            assert_eq!(fs::read_dir(inputs.path("home")).unwrap().count(), 1, "{what}");
        }
        // A directory is in the way.
        let path = &right[0].0;
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        let output = inputs.run(&words(tool, args, ["", ""]));
        refuses(&output, &["': Is a directory"], args);
    }
}

/// A directory that the user typed may be a link.
#[test]
fn the_directory_of_generated_names_may_be_a_link() {
    let inputs = Inputs::new();
    fs::create_dir(inputs.path("images")).unwrap();
    symlink("images", inputs.path("link")).unwrap();
    let made = made(&inputs, "offload", "extract four -o link");
    assert_eq!(made.len(), 4);
    assert_eq!(fs::read_dir(inputs.path("images")).unwrap().count(), 4);
    symlink("nowhere", inputs.path("dangling")).unwrap();
    for place in ["dangling", "dangling/in"] {
        let before = snapshot(inputs.root());
        let args = format!("extract four -o {place}");
        let output = inputs.run(&words("offload", &args, ["", ""]));
        assert_eq!(output.status.code(), Some(1), "{place}: {}", stderr(&output));
        is_unchanged(inputs.root(), &before, place);
    }
}

/// The mode that an output keeps from a file of this owner that it replaces, and its owner; `None` where there is no such
/// owner.
fn mode_after(
    words: &[String],
    inputs: &Inputs,
    owner: Option<(u32, u32)>,
    mode: u32,
) -> Option<(u32, u32)> {
    let out = inputs.path("out");
    let _ = fs::remove_file(&out);
    fs::write(&out, OLD).unwrap();
    if let Some((user, group)) = owner
        && !give(&out, Some(user), Some(group))
    {
        return None;
    }
    fs::set_permissions(&out, Permissions::from_mode(mode)).unwrap();
    let output = inputs.run(words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    let metadata = fs::metadata(&out).unwrap();
    Some((metadata.mode() & 0o7777, metadata.uid()))
}

/// Run as the administrator, a file of somebody else's with set-user-ID would become one of the administrator's.
#[test]
fn only_the_same_owner_keeps_set_user_id() {
    // Files without names need /proc: without, all of them have names.
    const NAMED: &str = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
    let inputs = Inputs::new();
    let own = fs::metadata(inputs.path("new")).unwrap();
    let own = (own.uid(), own.gid());
    let mut named = 0;
    for writer in some_writers() {
        let plain = writer.words(["out", "out2"]);
        let mut hidden: Vec<String> = ["unshare", "-m", "sh", "-c", NAMED].map(String::from).into();
        hidden.extend_from_slice(&plain);
        let hides = is_root() && inputs.run(&hidden).status.success();
        named += usize::from(hides);
        for words in [Some(plain), hides.then_some(hidden)].into_iter().flatten() {
            // The own file, whoever runs this.
            for mode in [0o4755, 0o2755, 0o6711, 0o640] {
                let now = mode_after(&words, &inputs, None, mode);
                assert_eq!(now, Some((mode, own.0)), "{words:?}");
            }
            if !is_root() {
                continue;
            }
            for (owner, mode, after) in [
                ((65534, 65534), 0o4755, 0o755),
                ((65534, own.1), 0o2755, 0o755),
                ((65534, 65534), 0o7777, 0o777),
                ((own.0, 65534), 0o6755, 0o4755),
            ] {
                let Some(now) = mode_after(&words, &inputs, Some(owner), mode) else { return };
                assert_eq!(now, (after, own.0), "{words:?}: {owner:?} {mode:o}");
            }
        }
    }
    if named == 0 {
        not_tested("/proc cannot be hidden here, so files had no names");
    }
    if !is_root() {
        not_tested("without being root there is no file of somebody else's");
    }
}

/// Runs an edit and has `act` change something while it writes its output. `prepare` makes the files for each run.
fn act_while_writing(
    inputs: &Inputs,
    args: &str,
    prepare: impl Fn(),
    act: impl FnOnce(),
) -> Output {
    let words = words("offload", args, ["", ""]);
    let tool = inputs.stopped_while_writing(&words, Stdio::piped, prepare);
    act();
    send(&tool, Signal::CONT);
    tool.wait_with_output().unwrap()
}

/// A compressed bundle that takes a while to be written uncompressed.
fn slow_bundle(inputs: &Inputs) -> Vec<u8> {
    large_bundle(inputs, 64 << 20);
    let output = inputs.run(&words("offload", "compress large -o slow", ["", ""]));
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read(inputs.path("slow")).unwrap()
}

/// The file that was opened is the one that is replaced, or none is.
#[test]
fn a_newer_file_is_not_replaced_by_an_edit() {
    let inputs = Inputs::new();
    let slow = slow_bundle(&inputs);
    for args in
        ["decompress --in-place large", "decompress -o large large", "decompress -o ./large large"]
    {
        for change in ["rename", "write"] {
            let prepare = || {
                fs::write(inputs.path("large"), &slow).unwrap();
                fs::write(inputs.path("newer"), OLD).unwrap();
            };
            let output = act_while_writing(&inputs, args, prepare, || match change {
                "rename" => fs::rename(inputs.path("newer"), inputs.path("large")).unwrap(),
                _ => {
                    let file = OpenOptions::new().append(true).open(inputs.path("large"));
                    file.unwrap().write_all(b"more").unwrap();
                }
            });
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{args}, {change}: {text}");
            // In its own words before the new file is written.
            assert!(text.contains("large") && text.contains(": the file was "), "{text}");
            let now = fs::read(inputs.path("large")).unwrap();
            let expected = if change == "rename" { OLD } else { &[&slow[..], b"more"].concat() };
            assert!(now == expected, "{args}, {change}");
            let hidden = |name: &str| name.starts_with(".offload-");
            let names = fs::read_dir(inputs.root()).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert!(!names.any(|name| hidden(&name)), "{args}");
        }
    }
}

/// Somebody who may write to the directory makes the link lead to a file that only the user of the tool may replace.
#[test]
fn a_link_that_changes_during_an_edit_is_not_followed() {
    let inputs = Inputs::new();
    let slow = slow_bundle(&inputs);
    fs::create_dir(inputs.path("home")).unwrap();
    fs::write(inputs.path("home/passwd"), OLD).unwrap();
    for args in ["decompress --in-place link", "decompress -o link link"] {
        let prepare = || {
            fs::write(inputs.path("large"), &slow).unwrap();
            let _ = fs::remove_file(inputs.path("link"));
            symlink("large", inputs.path("link")).unwrap();
        };
        let output = act_while_writing(&inputs, args, prepare, || {
            fs::remove_file(inputs.path("link")).unwrap();
            symlink("home/passwd", inputs.path("link")).unwrap();
        });
        assert_eq!(fs::read(inputs.path("home/passwd")).unwrap(), OLD, "{args}");
        // The place of the file was found before.
        assert_eq!(output.status.code(), Some(0), "{args}: {}", stderr(&output));
        assert!(fs::metadata(inputs.path("large")).unwrap().len() > 64 << 20, "{args}");
    }
}
