//! Files of others: links, programs and directories that somebody puts where a tool writes.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::table::{Inputs, large_bundle, some_writers, thin_archive, words};
use super::{is_root, is_unchanged, refuses, snapshot};
use crate::common::stderr;

const OFFLOAD: &str = "offload";
const BUNDLER: &str = "clang-offload-bundler";
const BINARY: &str = "llvm-offload-binary";

const OLD: &[u8] = b"what was there before";

/// Everything that makes names up.
const GENERATORS: [(&str, &str); 5] = [
    ("offload", "extract four"),
    ("offload", "extract four.ccob -o images"),
    ("offload", "man --out pages"),
    ("offload", "split hip.so --group g -o out"),
    ("llvm-offload-binary", "packages.offload --image=arch=gfx90a"),
];

/// The files that a tool made.
fn made(inputs: &Inputs, tool: &str, args: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let before = snapshot(inputs.root());
    let output = inputs.run(&words(tool, args, ["", ""]));
    assert!(output.status.success(), "{tool} {args}: {}", stderr(&output));
    let after = snapshot(inputs.root());
    let made = after.into_iter().filter(|(path, _)| !before.contains_key(path));
    made.map(|(path, bytes)| (path, bytes.unwrap())).collect()
}

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
                        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
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

/// The mode that an output may keep from a file of this owner that it replaces.
fn mode_after(words: &[String], inputs: &Inputs, owner: (u32, u32), mode: u32) -> (u32, u32) {
    let out = inputs.path("out");
    let _ = fs::remove_file(&out);
    fs::write(&out, OLD).unwrap();
    chown(&out, Some(owner.0), Some(owner.1)).unwrap();
    fs::set_permissions(&out, Permissions::from_mode(mode)).unwrap();
    let output = inputs.run(words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    let metadata = fs::metadata(&out).unwrap();
    (metadata.mode() & 0o7777, metadata.uid())
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
                assert_eq!(mode_after(&words, &inputs, own, mode), (mode, own.0), "{words:?}");
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
                let now = mode_after(&words, &inputs, owner, mode);
                assert_eq!(now, (after, own.0), "{words:?}: {owner:?} {mode:o}");
            }
        }
    }
    if named == 0 {
        eprintln!("NOT TESTED: /proc cannot be hidden here, so files had no names");
    }
    if !is_root() {
        eprintln!("NOT TESTED: without being root there is no file of somebody else's");
    }
}

/// Stops a tool while it has a file open, and does something then.
fn while_open(mut child: Child, file: &Path, act: impl FnOnce()) -> Option<std::process::Output> {
    let opened = fs::metadata(file).unwrap();
    let id = child.id();
    let signal = |signal: &str| {
        let kill = format!("kill -{signal} {id}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    let descriptors = PathBuf::from(format!("/proc/{id}/fd"));
    let has_it_open = || {
        let open = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::metadata(entry.path()).ok())
            .any(|open| (open.dev(), open.ino()) == (opened.dev(), opened.ino()))
    };
    while !has_it_open() {
        // It was too fast.
        if child.try_wait().unwrap().is_some() {
            return None;
        }
    }
    signal("STOP");
    // A stopped process does not change, but it may have gone on before it was.
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim().chars().next()
    };
    while !matches!(state(), Some('T' | 'Z')) {
        std::thread::yield_now();
    }
    let in_time = has_it_open();
    if in_time {
        act();
    }
    signal("CONT");
    let output = child.wait_with_output().unwrap();
    in_time.then_some(output)
}

fn start(inputs: &Inputs, args: &str) -> Child {
    inputs
        .command(&words("offload", args, ["", ""]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

const TRIES: u32 = 200;

/// The file that was opened is the one that is replaced, or none is.
#[test]
fn a_newer_file_is_not_replaced_by_an_edit() {
    for args in
        ["compress --in-place large", "compress -o large large", "compress -o ./large large"]
    {
        for change in ["rename", "write"] {
            let inputs = Inputs::new();
            let done = (0..TRIES).find_map(|_| {
                large_bundle(&inputs, 16 << 20);
                fs::write(inputs.path("newer"), OLD).unwrap();
                let child = start(&inputs, args);
                while_open(child, &inputs.path("large"), || match change {
                    "rename" => fs::rename(inputs.path("newer"), inputs.path("large")).unwrap(),
                    _ => {
                        let file = OpenOptions::new().append(true).open(inputs.path("large"));
                        file.unwrap().write_all(b"more").unwrap();
                    }
                })
            });
            let output = done.unwrap();
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{args}, {change}: {text}");
            // In its own words before the new file is written.
            assert!(text.contains("large") && text.contains(": the file was "), "{text}");
            let now = fs::read(inputs.path("large")).unwrap();
            match change {
                "rename" => assert_eq!(now, OLD, "{args}"),
                _ => assert!(now.ends_with(b"more"), "{args}"),
            }
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
    for args in ["compress --in-place link", "compress -o link link"] {
        let inputs = Inputs::new();
        fs::create_dir(inputs.path("home")).unwrap();
        fs::write(inputs.path("home/passwd"), OLD).unwrap();
        let done = (0..TRIES).find_map(|_| {
            large_bundle(&inputs, 16 << 20);
            let _ = fs::remove_file(inputs.path("link"));
            symlink("large", inputs.path("link")).unwrap();
            let child = start(&inputs, args);
            while_open(child, &inputs.path("large"), || {
                fs::remove_file(inputs.path("link")).unwrap();
                symlink("home/passwd", inputs.path("link")).unwrap();
            })
        });
        let output = done.unwrap();
        assert_eq!(fs::read(inputs.path("home/passwd")).unwrap(), OLD, "{args}");
        let size = fs::metadata(inputs.path("large")).unwrap().len();
        match output.status.code() {
            // The place had been found before.
            Some(0) => assert!(size < 1 << 20, "{args}"),
            code => {
                assert_eq!((code, size > 16 << 20), (Some(1), true), "{args}: {}", stderr(&output));
            }
        }
    }
}

/// Images of a file that others may not read are no more readable.
#[test]
fn images_are_as_private_as_their_file() {
    let inputs = Inputs::new();
    let mode = |name: &str| fs::metadata(inputs.path(name)).unwrap().permissions().mode() & 0o7777;
    // The umask of the tests, whatever it is.
    File::create(inputs.path("plain")).unwrap();
    let plain = mode("plain");
    let is_made_with = |tool: &str, args: &str, private: u32, expected: u32| {
        let made = made(&inputs, tool, args);
        assert_eq!(made.len(), 1, "{args}");
        let now = mode(made[0].0.strip_prefix(inputs.root()).unwrap().to_str().unwrap());
        assert_eq!(now, expected & plain, "{args}: {private:o}");
        fs::remove_file(&made[0].0).unwrap();
    };
    for (private, expected) in [(0o600, 0o600), (0o644, 0o644), (0o400, 0o600), (0o755, 0o644)] {
        for file in ["four", "four.ccob"] {
            fs::set_permissions(inputs.path(file), Permissions::from_mode(private)).unwrap();
            for (tool, args) in [
                (OFFLOAD, "unbundle FILE HIP-gfx1100=out"),
                (OFFLOAD, "extract FILE -o images --target gfx1100"),
                (BUNDLER, "-type=bc -unbundle -targets=HIP-gfx1100 -input=FILE -output=out"),
            ] {
                is_made_with(tool, &args.replace("FILE", file), private, expected);
            }
        }
        for (file, tool, args) in [
            (
                "libbundles.a",
                BUNDLER,
                "-type=a -unbundle -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=FILE -output=out",
            ),
            ("packages.offload", BINARY, "FILE --image=file=out,arch=gfx90a"),
            ("packages.offload", BINARY, "FILE --image=arch=gfx90a"),
            ("packages.offload", BINARY, "FILE --archive --image=file=out,arch=gfx90a"),
        ] {
            fs::set_permissions(inputs.path(file), Permissions::from_mode(private)).unwrap();
            is_made_with(tool, &args.replace("FILE", file), private, expected);
        }
        // Standard input may be such a file.
        let four = File::open(inputs.path("four")).unwrap();
        let line = words(OFFLOAD, "unbundle - HIP-gfx1100=out", ["", ""]);
        assert!(inputs.command(&line).stdin(four).status().unwrap().success());
        assert_eq!(mode("out"), expected & plain, "{private:o}");
        fs::remove_file(inputs.path("out")).unwrap();
    }
    // The members of a thin archive are inputs as well.
    for (file, tool, args) in [
        ("hip.o", OFFLOAD, "unbundle thin.a HIP-gfx1100=out"),
        ("hip.o", OFFLOAD, "extract thin.a -o images --target gfx1100"),
        (
            "bundle.o",
            BUNDLER,
            "-type=a -unbundle -targets=hip-amdgcn-amd-amdhsa--gfx906:xnack- -input=thin.a -output=out",
        ),
        ("packages.offload", BINARY, "thin.a --image=file=out,arch=gfx90a"),
    ] {
        let size = fs::metadata(inputs.path(file)).unwrap().len();
        fs::write(inputs.path("thin.a"), thin_archive(file.as_bytes(), size)).unwrap();
        for mode in [0o600, 0o644] {
            fs::set_permissions(inputs.path(file), Permissions::from_mode(mode)).unwrap();
            is_made_with(tool, args, mode, mode);
        }
    }
    // A pipe tells nothing.
    let pipe = "\"$0\" \"$@\" && cat four | \"$0\" thin - --keep gfx1100 -o out2";
    let mut script: Vec<String> =
        ["sh", "-c", &format!("cat four | {pipe}")].map(String::from).into();
    script.extend(words(OFFLOAD, "unbundle - HIP-gfx1100=out", ["", ""]));
    let output = inputs.run(&script);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!([mode("out"), mode("out2")], [plain; 2]);
    for name in ["out", "out2"] {
        fs::remove_file(inputs.path(name)).unwrap();
    }
    // The group of the new file may be another one.
    if !is_root() {
        eprintln!("NOT TESTED: without being root there is no file of another group");
        return;
    }
    fs::set_permissions(inputs.path("four"), Permissions::from_mode(0o640)).unwrap();
    chown(inputs.path("four"), None, Some(65534)).unwrap();
    for args in ["unbundle four HIP-gfx1100=out", "thin four -o out --keep gfx1100"] {
        let made = made(&inputs, "offload", args);
        assert_eq!(mode("out"), 0o600, "{args}");
        fs::remove_file(&made[0].0).unwrap();
    }
}
