//! Permissions of outputs: none is more readable than each of its inputs.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::table::{Inputs, WRITERS, thin_archive, words};
use super::{made, snapshot};
use crate::common::machine::give;
use crate::common::{new_command, stderr};
use crate::help::commands;

const OFFLOAD: &str = "offload";
const BUNDLER: &str = "clang-offload-bundler";
const BINARY: &str = "llvm-offload-binary";

/// More that writes files: packages as inputs, and names that are made up.
const OTHERS: [(&str, &str); 7] = [
    (OFFLOAD, "extract hip.o -o images"),
    (OFFLOAD, "extract foo.tar -o images"),
    (OFFLOAD, "extract foo.tar.gz -o images"),
    (OFFLOAD, "split hip.so --group g -o out"),
    (OFFLOAD, "thin foo.tar -o OUT --keep gfx1100"),
    (OFFLOAD, "compress foo.tar -o OUT"),
    (BINARY, "packages.offload --image=arch=gfx90a"),
];

/// Commands that write no file that is made of an input. `link` is tested beside clang, `variant` in `variants`.
const NO_WRITERS: &[&str] = &[
    "ls",
    "match",
    "kernels",
    "size",
    "diff",
    "doctor",
    "gpus",
    "why",
    "verify",
    "check",
    "explain",
    "completions",
    "man",
    "help",
    "link",
    "variant",
];

#[test]
fn outputs_are_as_private_as_each_of_their_inputs() {
    let inputs = Inputs::new();
    for args in ["-cf foo.tar hip.o", "-czf foo.tar.gz hip.o"] {
        let tar = new_command("tar").args(args.split(' ')).current_dir(inputs.root()).status();
        assert!(tar.unwrap().success());
    }
    let set = |name: &str, mode| {
        fs::set_permissions(inputs.path(name), Permissions::from_mode(mode)).unwrap();
    };
    File::create(inputs.path("plain")).unwrap();
    // The umask of the tests, whatever it is.
    let is_all_private =
        fs::metadata(inputs.path("plain")).unwrap().permissions().mode() & 0o077 == 0;
    let mut tested = BTreeSet::new();
    let writers = WRITERS.iter().map(|writer| (writer.tool, writer.args)).chain(OTHERS);
    for (tool, args) in writers {
        let args = args.replace("OUT2", "out2").replace("OUT", "out");
        if tool == OFFLOAD {
            tested.insert(args.split(' ').next().unwrap().to_owned());
        }
        // Words, and what follows the last `=` in them.
        let files = args.split([' ', ',']).map(|word| word.rsplit('=').next().unwrap());
        let files: BTreeSet<_> = files.filter(|word| inputs.path(word).is_file()).collect();
        assert!(!files.is_empty(), "{tool} {args}");
        for private in files.iter().map(Some).chain([None]) {
            files.iter().for_each(|file| set(file, 0o644));
            if let Some(private) = private {
                set(private, 0o600);
            }
            let before = snapshot(inputs.root());
            let made = made(&inputs, tool, &args);
            assert!(!made.is_empty(), "{tool} {args}");
            for (path, _) in &made {
                let mode = fs::metadata(path).unwrap().permissions().mode() & 0o077;
                let what = format!("{tool} {args}: {private:?}: {}: {mode:o}", path.display());
                assert_eq!(mode == 0, private.is_some() || is_all_private, "{what}");
                fs::remove_file(path).unwrap();
            }
            assert_eq!(snapshot(inputs.root()), before);
        }
    }
    // A program stays one.
    set("lib.so", 0o755);
    set("g.kpack", 0o640);
    let joined = made(&inputs, OFFLOAD, "join lib.so g.kpack -o joined");
    let mode = fs::metadata(&joined[0].0).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, if is_all_private { 0o700 } else { 0o750 });
    let known = |command: &String| tested.contains(command) || NO_WRITERS.contains(&&**command);
    assert_eq!(commands().iter().find(|command| !known(command)), None);
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
    fs::set_permissions(inputs.path("four"), Permissions::from_mode(0o640)).unwrap();
    if !give(&inputs.path("four"), None, Some(65534)) {
        return;
    }
    for args in ["unbundle four HIP-gfx1100=out", "thin four -o out --keep gfx1100"] {
        let made = made(&inputs, "offload", args);
        assert_eq!(mode("out"), 0o600, "{args}");
        fs::remove_file(&made[0].0).unwrap();
    }
}
