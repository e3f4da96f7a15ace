//! Files and directories may have any name that the system knows: not UTF-8, with line breaks, with what moves cursors.
//! Every command and tool reads and writes them, and prints each on one line.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use super::table::{Inputs, WRITERS, Writer, thin_archive, words};
use crate::common::{Row, new_command, stderr, stdout};

const DIRECTORY: &[u8] = b"d\xff\n\x1b[7m";

/// The odd name in the place of a plain one; the extension stays.
fn odd(name: &str) -> PathBuf {
    let name = [DIRECTORY, b"/\xfe\n", name.as_bytes(), b"\xc3\r", name.as_bytes()].concat();
    PathBuf::from(OsString::from_vec(name))
}

/// The same files, all with odd names, in a directory with an odd name.
fn odd_inputs() -> Inputs {
    let inputs = Inputs::new();
    fs::create_dir(inputs.root().join(OsStr::from_bytes(DIRECTORY))).unwrap();
    for entry in fs::read_dir(inputs.root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::copy(&path, inputs.root().join(odd(name))).unwrap();
        }
    }
    inputs
}

/// A command line with odd names where it has names of files, which are those in `inputs` and what starts with `out`.
fn with_odd_names(inputs: &Inputs, words: &[String]) -> Vec<OsString> {
    let part = |part: &str| {
        let (before, name) = part.rfind('=').map_or(("", part), |at| part.split_at(at + 1));
        let is_file = name.starts_with("out") || inputs.path(name).is_file() && !name.is_empty();
        if is_file && !name.starts_with('/') {
            [before.as_bytes(), odd(name).as_os_str().as_bytes()].concat()
        } else {
            part.as_bytes().to_vec()
        }
    };
    let word = |word: &String| {
        OsString::from_vec(word.split(',').map(part).collect::<Vec<_>>().join(&b','))
    };
    std::iter::once(words[0].clone().into()).chain(words[1..].iter().map(word)).collect()
}

fn run(place: &Path, words: &[OsString]) -> Output {
    new_command(&words[0])
        .args(&words[1..])
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn run_odd(inputs: &Inputs, args: &str) -> Output {
    run(inputs.root(), &with_odd_names(inputs, &words("offload", args, ["", ""])))
}

/// Checks that all output is text without control characters, and that each message is one line.
#[track_caller]
fn is_plain(output: &Output, what: &dyn std::fmt::Debug) {
    for text in [stdout(output), stderr(output)] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{what:?}: {text:?}");
    }
    let message =
        |line: &str| ["error: ", "warning: ", "note: "].iter().any(|word| line.contains(word));
    assert!(stderr(output).lines().all(message), "{what:?}: {}", stderr(output));
}

#[track_caller]
fn works(output: &Output, what: &dyn std::fmt::Debug) {
    assert!(output.status.success(), "{what:?}: {}", stderr(output));
    is_plain(output, what);
}

/// Returns the outputs of a writer that has files with odd names, under odd names.
fn written(inputs: &Inputs, writer: &Writer) -> Vec<Vec<u8>> {
    let names = &["out.bin", "out2.bin"][..1 + usize::from(writer.has_two_outputs())];
    let take = |name: &&str| {
        let path = inputs.root().join(odd(name));
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    };
    names.iter().map(take).collect()
}

#[test]
fn every_writer_takes_and_makes_files_of_any_name() {
    let inputs = odd_inputs();
    for writer in WRITERS {
        let plain = writer.words(["out.bin", "out2.bin"]);
        let right = inputs.right(writer);
        let line = with_odd_names(&inputs, &plain);
        // Members of an archive are called by the file they are from, without line breaks.
        if plain.iter().any(|word| word == "--archive") {
            let output = run(inputs.root(), &line);
            assert_eq!(output.status.code(), Some(1), "{line:?}");
            is_plain(&output, &line);
            continue;
        }
        works(&run(inputs.root(), &line), &line);
        // A page has the name of the file in it.
        assert!(written(&inputs, writer) == right || writer.is_page(), "{line:?}");

        // The same from a response file, which has quotes around what has white space.
        if writer.tool != "offload" {
            let mut response = Vec::new();
            for word in &line[1..] {
                response.extend([b"\"", word.as_bytes(), b"\"\n"].concat());
            }
            let file = inputs.root().join(odd("response"));
            fs::write(&file, &response).unwrap();
            let mut at = OsString::from("@");
            at.push(&file);
            works(&run(inputs.root(), &[line[0].clone(), at]), &line);
            assert!(written(&inputs, writer) == right, "{line:?}, from a response file");
        }
    }
}

#[test]
fn missing_files_and_obstacles_are_named_on_one_line() {
    let inputs = odd_inputs();
    for writer in WRITERS {
        let line = with_odd_names(&inputs, &writer.words(["out.bin", "out2.bin"]));
        let input = inputs.root().join(odd(writer.input));
        let aside = inputs.path("aside");
        fs::rename(&input, &aside).unwrap();
        let missing = run(inputs.root(), &line);
        fs::write(&input, b"!<arch>\nand then something that is not an archive").unwrap();
        let damaged = run(inputs.root(), &line);
        fs::remove_file(&input).unwrap();
        fs::create_dir(&input).unwrap();
        let directory = run(inputs.root(), &line);
        fs::remove_dir(&input).unwrap();
        fs::rename(&aside, &input).unwrap();
        for output in [&missing, &directory] {
            assert_eq!(output.status.code(), Some(1), "{line:?}: {}", stderr(output));
            is_plain(output, &line);
            assert!(stderr(output).contains(writer.input), "{line:?}: {}", stderr(output));
        }
        // Some take any file.
        is_plain(&damaged, &line);

        if writer.takes_a_directory() {
            continue;
        }
        let output = inputs.root().join(odd("out.bin"));
        let _ = fs::remove_file(&output);
        fs::create_dir(&output).unwrap();
        let refused = run(inputs.root(), &line);
        fs::remove_dir(&output).unwrap();
        let _ = fs::remove_file(inputs.root().join(odd("out2.bin")));
        assert_eq!(refused.status.code(), Some(1), "{line:?}: {}", stderr(&refused));
        is_plain(&refused, &line);
        assert!(stderr(&refused).contains("out.bin"), "{line:?}: {}", stderr(&refused));
    }
}

#[test]
fn readers_read_files_of_any_name() {
    let inputs = odd_inputs();
    for args in [
        "ls hip.o",
        "ls --tree hip.o libbundles.a",
        "ls hip.o bundle.o four four.ccob packages.offload",
        "verify hip.o four.ccob libbundles.a",
        "match hip.o --gpu gfx1100",
        "match hip.o --gpu gfx1100 --json",
    ] {
        let output = run_odd(&inputs, args);
        is_plain(&output, &args);
        let plain = inputs.run(&words("offload", args, ["", ""]));
        assert_eq!(output.status.code(), plain.status.code(), "{args}: {}", stderr(&output));
        // As many lines: no name breaks one.
        assert_eq!(stdout(&output).lines().count(), stdout(&plain).lines().count(), "{args}");
    }
}

/// JSON is Unicode: other bytes of a name are U+FFFD there. Everything else is as it is, line breaks too.
#[test]
fn names_in_json_are_exact_but_for_what_is_not_unicode() {
    let inputs = odd_inputs();
    let output = run_odd(&inputs, "ls --json hip.o");
    works(&output, &"ls --json");
    let rows: Vec<Row> = crate::common::rows(&output.stdout);
    let expected = "d\u{fffd}\n\u{1b}[7m/\u{fffd}\nhip.o\u{fffd}\rhip.o";
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row.file == expected), "{rows:?}");
}

#[test]
fn images_are_extracted_into_directories_of_any_name_under_plain_names() {
    let inputs = odd_inputs();
    let mut line: Vec<OsString> =
        with_odd_names(&inputs, &words("offload", "extract hip.o -o", ["", ""]));
    let place = odd("images");
    line.push(place.clone().into());
    let output = run(inputs.root(), &line);
    works(&output, &line);
    let names: Vec<_> = fs::read_dir(inputs.root().join(&place))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(stdout(&output).lines().count(), names.len());
    assert!(names.len() > 1);
    for name in names {
        let name = name.into_string().unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
        assert!(name.ends_with(".hsaco"), "{name}");
    }
}

#[test]
fn files_of_any_name_are_edited_in_place() {
    let inputs = odd_inputs();
    for args in ["thin --in-place --keep gfx1100", "compress --in-place", "decompress --in-place"] {
        // The plain file goes the same way.
        let line = format!("{args} hip.o");
        works(&inputs.run(&words("offload", &line, ["", ""])), &line);
        works(&run_odd(&inputs, &line), &line);
        let odd = fs::read(inputs.root().join(odd("hip.o"))).unwrap();
        assert!(odd == fs::read(inputs.path("hip.o")).unwrap(), "{args}");
    }
}

/// Members of thin archives are files, too; archives have their names in a table.
#[test]
fn thin_archives_name_files_of_any_name() {
    let inputs = odd_inputs();
    let member = b"m\xff\x1b[7m.o";
    fs::copy(inputs.path("hip.o"), inputs.root().join(OsStr::from_bytes(member))).unwrap();
    let size = fs::metadata(inputs.path("hip.o")).unwrap().len();
    fs::write(inputs.path("thin.a"), thin_archive(member, size)).unwrap();

    let images = |args| {
        let output = inputs.run(&words("offload", args, ["", ""]));
        works(&output, &args);
        crate::common::rows::<Row>(&output.stdout)
    };
    let (inside, alone) = (images("ls --json thin.a"), images("ls --json hip.o"));
    assert_eq!(inside.len(), alone.len());
    assert_eq!(inside[0].path[0], "member:m\u{fffd}\u{1b}[7m.o");
    for args in ["ls thin.a", "ls --tree thin.a", "verify thin.a", "extract thin.a -o images"] {
        works(&inputs.run(&words("offload", args, ["", ""])), &args);
    }
    assert_eq!(fs::read_dir(inputs.path("images")).unwrap().count(), 4);

    fs::remove_file(inputs.root().join(OsStr::from_bytes(member))).unwrap();
    let output = inputs.run(&words("offload", "ls thin.a", ["", ""]));
    assert_eq!(output.status.code(), Some(1));
    is_plain(&output, &"ls thin.a");
}

/// Returns whether a terminal could show something else than what is there.
fn deceives(c: char) -> bool {
    c.is_control() && c != '\n'
        || "\u{202e}\u{2066}\u{200b}\u{feff}\u{61c}\u{fe0f}\u{e0041}".contains(c)
}

#[test]
fn texts_from_files_are_escaped() {
    let inputs = Inputs::new();
    let odd = "\u{7f}\u{9b}31m\u{9d}\u{202e}\u{2066}\u{200b}\u{feff}\u{61c}\u{fe0f}\u{e0041}";
    let ids = [
        format!("hipv4-amdgcn-amd-amdhsa--gfx906{odd}"),
        "host-x86_64-unknown-linux-gnu-".to_owned(),
    ];
    let mut bundle = samples::bundle::header(&[(&ids[0], 4096, 4), (&ids[1], 4096, 0)]);
    bundle.resize(4096, 0);
    bundle.extend(b"code");
    let name = format!("in{odd}");
    fs::write(inputs.path(&name), bundle).unwrap();
    let mut shown = [0, 0];
    for args in [
        "ls",
        "ls --tree",
        "ls --json",
        "match --gpu gfx1100",
        "match --json --gpu gfx1100",
        "verify",
        "extract -o images",
        "extract --target gfx90a",
        "unbundle HIP-gfx90a=out",
        "thin --dry-run --keep gfx1100",
        "thin --dry-run --json --allow-findings --keep gfx906",
        "remove --dry-run --json --allow-findings --allow-empty --index 0",
        "compress --dry-run --json --allow-findings",
    ] {
        let mut line = words("offload", args, ["", ""]);
        line.insert(2, name.clone());
        let output = inputs.run(&line);
        let text = [stdout(&output), stderr(&output)].concat();
        assert!(!text.is_empty() && !text.contains(deceives), "{args}: {text:?}");
        shown[0] += usize::from(text.contains("\\u{9b}31m\\u{9d}\\u{202e}\\u{2066}\\u{200b}"));
        if args.contains("--json") && output.status.success() {
            assert!(text.contains("\\u009b31m\\u009d\\u202e\\u2066\\u200b"), "{args}: {text}");
            assert!(text.contains("\\udb40\\udc41"), "{args}: {text}");
            let _: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            shown[1] += 1;
        }
    }
    assert!(shown[0] > 3 && shown[1] > 1, "{shown:?}");
    let archive = thin_archive(name.as_bytes(), fs::metadata(inputs.path(&name)).unwrap().len());
    fs::write(inputs.path("thin.a"), archive).unwrap();
    // The drop-in tools print IDs, too, and all of them what is typed.
    for (tool, args, code) in [
        ("clang-offload-bundler", "-list -type=bc -input=ODD", 0),
        ("clang-offload-bundler", "-list -type=bc -input=none/ODD", 1),
        ("clang-offload-bundler", "-type=bc -unbundle -targets=hip-ODD -input=ODD -output=out", 1),
        (
            "clang-offload-bundler",
            "-type=a -unbundle -debug-only=CodeObjectCompatibility -allow-missing-bundles -targets=HIP-gfx90a -input=thin.a -output=out",
            0,
        ),
        ("clang-offload-bundler", "-type=a -list -input=thin.a", 0),
        ("offload", "ls --tree thin.a", 0),
        ("clang-offload-bundler", "--ODD", 1),
        ("clang-offload-bundler", "-type=bc -bundle-align=ODD", 1),
        ("clang-offload-bundler", "@/dev/zero ODD", 1),
        ("llvm-offload-binary", "none/ODD", 1),
        ("llvm-offload-binary", "--ODD", 1),
        ("llvm-offload-binary", "-o out --image=file=ODD,kind=ODD", 0),
        ("llvm-offload-wrapper", "--kind=ODD", 1),
        ("llvm-offload-wrapper", "--kind=hip --triple=ODD -o out ODD", 1),
        ("clang-offload-wrapper", "-target x86_64-unknown-linux-gnu -o out none/ODD", 1),
        ("clang-linker-wrapper", "--linker-path=none/ODD -o ODD ODD", 1),
        ("clang-linker-wrapper", "--linker-path=ld --dry-run -o ODD -L ODD ODD -r", 0),
        ("clang-linker-wrapper", "--linker-path=ld -o out -lODD", 1),
        ("clang-linker-wrapper", "--linker-path=ld -o out --override-image=ODD=none/ODD", 1),
        ("offload", "link --print-plan none/ODD", 1),
        ("fatbinary", "--create out --image3=kind=ptx,sm=90,file=ODD", 1),
        ("fatbinary", "--create out --image3=kind=ptx,sm=90,file=none/ODD", 1),
        ("fatbinary", "--create out --image3=kind=ODD", 1),
        ("fatbinary", "--options-file ODD/none", 1),
        ("offload", "fatbin -o out --image ODD", 1),
        (
            "split_python_wheels",
            "--input none/ODD --output-dir out --device-package-prefix ODD --overlay-root ODD",
            1,
        ),
        ("split_python_wheels", "--ODD", 2),
        ("roc-obj-ls", "-v ODD", 0),
        ("roc-obj-ls", "none/ODD", 1),
        ("roc-obj-extract", "-v file://ODD", 0),
        ("roc-obj-extract", "-o none/ODD file://ODD", 1),
        ("roc-obj-extract", "file://none/ODD", 1),
        ("offload", "--ODD", 2),
        ("offload", "ODD", 2),
        ("offload", "ls --ODD", 2),
        ("offload", "ls none/ODD", 1),
        ("offload", "ls --json ODD none/ODD", 1),
        ("offload", "match ODD --gpu ODD", 2),
        ("offload", "unbundle ODD HIP-gfx906=ODD HIP-gfx90a=ODD", 2),
        ("offload", "unbundle ODD ODD=out", 1),
        ("offload", "thin ODD --keep ODD -o out", 2),
        ("offload", "bundle -o out ODD=ODD", 1),
        ("offload", "pack -o ODD kind=ODD,file=ODD", 1),
        ("offload", "wrap --kind ODD -o out ODD", 1),
        ("offload", "replace ODD ODD=ODD -o out", 1),
        ("offload", "extract ODD --id ODD", 1),
    ] {
        let line: Vec<_> =
            words(tool, args, ["", ""]).iter().map(|w| w.replace("ODD", &name)).collect();
        let output = inputs.run(&line);
        let text = [stdout(&output), stderr(&output)].concat();
        assert_eq!(output.status.code(), Some(code), "{tool} {args}: {text:?}");
        let text = text.replace('\t', " ");
        assert!(!text.contains(deceives), "{tool} {args}: {text:?}");
        assert!(text.contains("\\u{202e}") || !text.contains("31m"), "{tool} {args}: {text:?}");
    }
}

/// Strings of a file that stand in names of files lead nowhere.
#[test]
fn names_made_of_strings_in_files_stay_in_their_directory() {
    const PACK: &str =
        "pack -o hostile kind=openmp,triple=amdgcn-amd-amdhsa,arch=/../../PWN,file=new";
    let inputs = Inputs::new();
    let pack = inputs.run(&words("offload", PACK, ["", ""]));
    assert!(pack.status.success(), "{}", stderr(&pack));
    let here = "here/below";
    // The names of LLVM's tool lead through these.
    for name in ["hostile-amdgcn-amd-amdhsa-", "out.amdgcn."] {
        fs::create_dir_all(inputs.path(here).join(name)).unwrap();
    }
    fs::write(inputs.path("PWN.o"), "precious").unwrap();
    fs::write(inputs.path("here/PWN.o"), "precious").unwrap();
    let before = super::snapshot(inputs.root());
    for (tool, args) in [
        ("clang-linker-wrapper", "--save-temps --linker-path=/bin/true ../../hostile -o out"),
        ("clang-linker-wrapper", "--linker-path=/bin/true ../../hostile -o out"),
        ("llvm-offload-binary", "../../hostile --image=kind=openmp"),
        ("offload", "extract ../../hostile -o images"),
    ] {
        let mut command = inputs.command(&words(tool, args, ["", ""]));
        let output = command.current_dir(inputs.path(here)).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{tool} {args}: {}", stderr(&output));
        for (path, bytes) in super::snapshot(inputs.root()) {
            let is_here = path.starts_with(inputs.path(here));
            assert!(is_here || before.get(&path) == Some(&bytes), "{tool} {args}: {path:?}");
        }
    }
    let made = super::snapshot(&inputs.path(here)).len();
    assert!(made >= 3, "{made}");
}
