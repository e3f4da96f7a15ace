//! Texts of `--help`: they are recorded, and every example in them runs.
//!
//! `BLESS=1 cargo test -p tool-tests --test tools help::` writes the texts in `tests/help/`, and the page of all commands, again.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{new_command, offload, stderr, stdout, tool};

/// The most lines of a summary (`-h`): those of `offload` are one for each command, and what is around these.
const MOST_LINES: usize = 54;

/// The start of the page of all commands.
const PAGE: &str =
    "# Commands\n\nThe texts of `offload --help` and of each command; a test writes this page.\n";

/// All commands, in the order of `offload --help`.
pub fn commands() -> Vec<String> {
    let help = stdout(&offload(["-h"]));
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    names.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// All pages of help: of `offload`, its commands, and the commands of these, such as `variant show`.
fn pages() -> Vec<String> {
    let mut pages = vec!["offload".to_owned()];
    for command in commands().into_iter().filter(|name| name != "help") {
        let help = stdout(&offload([&*command, "-h"]));
        let after = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let lines = after.map_while(|line| line.strip_prefix("  "));
        let nested = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let names = nested.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help");
        let nested: Vec<_> = names.map(|name| format!("{command} {name}")).collect();
        pages.push(command);
        pages.extend(nested);
    }
    pages
}

/// Returns the words of a command line that asks for a page of help.
fn asking<'a>(command: &'a str, option: &'a str) -> Vec<&'a str> {
    let words = command.split(' ').filter(|word| *word != "offload");
    words.chain([option]).collect()
}

fn help(command: &str, option: &str) -> String {
    let output = offload(asking(command, option));
    assert!(output.status.success() && stderr(&output).is_empty(), "{command} {option}");
    stdout(&output)
}

fn narrow_help(command: &str) -> String {
    let mut offload = new_command(tool("offload"));
    stdout(&offload.args(asking(command, "--help")).env("COLUMNS", "80").output().unwrap())
}

#[test]
fn help_prints_the_recorded_texts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let mut files = BTreeSet::new();
    let mut page = PAGE.to_owned();
    for command in &pages() {
        let (short, long) = (help(command, "-h"), help(command, "--help"));
        assert!(!long.contains('\x1b'), "{command}: colour without a terminal");
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
        // On a terminal of the usual width only commands continue in the next line.
        for line in narrow_help(command).lines() {
            let is_command =
                line.starts_with("  offload ") || line.starts_with("  llvm-") || line.contains('=');
            assert!(is_command || line.chars().count() <= 80, "{command}: {line}");
        }
        let lines = short.lines().count();
        assert!(lines <= MOST_LINES, "{command} -h has {lines} lines, the limit is {MOST_LINES}");
        for text in options(&short) {
            assert!(text.chars().count() <= 80, "{command}: {text}");
        }
        let (examples, title) = match &**command {
            "offload" => (3..=3, "\nStart here:\n"),
            // The command around it has the examples.
            nested if nested.contains(' ') => (0..=0, ""),
            _ => (3..=5, "\nExamples:\n"),
        };
        if !title.is_empty() {
            assert!(long.contains(title) && !short.contains(title), "{command}");
        }
        let (count, command) = (self::examples(&long).len(), &**command);
        assert!(examples.contains(&count), "{command} has {count} examples");

        page += &format!("\n## {command}\n\n```text\n{}\n```\n", long.trim_end());
        let file = format!("{}.txt", command.replace(' ', "-"));
        let text = format!("{short}--- {command} --help\n{long}");
        let path = directory.join(&file);
        files.insert(file);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, text).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, expected, "{}: BLESS=1 if the change is meant", path.display());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(page, std::fs::read_to_string(&path).unwrap(), "BLESS=1 if the change is meant");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(files.contains(&name), "tests/help/{name} belongs to no command");
    }
}

/// Returns the texts of options and arguments in a summary, without defaults and possible values.
fn options(short: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for line in short.lines() {
        let indent = line.len() - line.trim_start().len();
        match line.trim_start().split_once("  ") {
            Some((_, text)) if indent < 8 => texts.push(text.trim_start().to_owned()),
            None if indent > 12 => {
                let text: &mut String = texts.last_mut().unwrap();
                text.push_str(&format!(" {}", line.trim_start()));
            }
            _ => {}
        }
    }
    let parts = texts.into_iter().map(|text| text.split(" [").next().unwrap_or("").to_owned());
    parts.collect()
}

/// A command line of a help text, with or without an explanation.
struct Example {
    line: String,
    is_explained: bool,
}

/// Returns the examples of a help text: a command after two spaces, its explanation below it after more.
fn examples(help: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let is_title = |line: &&str| matches!(*line, "Examples:" | "Start here:");
    let lines = help.lines().skip_while(|line| !is_title(line)).skip(1);
    for line in lines.take_while(|line| !line.is_empty()) {
        match examples.last_mut() {
            Some(last) if last.line.ends_with('\\') => {
                last.line.pop();
                last.line.push_str(line.trim_start());
            }
            Some(last) if line.starts_with("    ") => last.is_explained = true,
            _ => examples.push(Example { line: line.trim().to_owned(), is_explained: false }),
        }
    }
    examples
}

#[test]
fn drop_in_tools_have_help_and_a_manual_page() {
    for tool in [
        tool("clang-offload-bundler"),
        tool("llvm-offload-binary"),
        tool("clang-offload-packager"),
        tool("llvm-offload-wrapper"),
        tool("clang-offload-wrapper"),
        tool("clang-linker-wrapper"),
        tool("fatbinary"),
        tool("roc-obj-extract"),
        tool("roc-obj-ls"),
        tool("split_python_wheels"),
    ] {
        let output = new_command(tool).arg("--help").output().unwrap();
        assert!(output.status.success() && stdout(&output).starts_with("OVERVIEW: "), "{tool}");
        let name = Path::new(tool).file_stem().unwrap().to_str().unwrap();
        assert!(stdout(&offload(["man", name])).contains(".SH \"OPTIONS\""), "{tool}");
    }
}

#[cfg(unix)]
mod runs {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use samples::images::{self, Layer, Packed};
    use samples::packages;

    use super::{commands, examples, help};
    use crate::common::machine::runnable_directory;
    use crate::common::{data, new_command, stderr, stdout, tool};

    /// Programs that examples call and that some machines lack.
    const STAND_INS: &[(&str, &str)] = &[
        ("jq", "cat >/dev/null; echo gfx1100"),
        ("llvm-objdump", "cat >/dev/null"),
        ("llvm-objcopy", "cp kernels.ccob all.bin"),
        ("rocminfo", "echo '  Name: amdgcn-amd-amdhsa--gfx1100'"),
        ("man", "cat >/dev/null"),
        ("python3", "echo env/lib/python3.11/site-packages"),
    ];

    /// A directory with the files that examples name.
    struct Place {
        directory: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let place = Place { directory: runnable_directory() };
            let at = |name: &str| place.directory.path().join(name);
            for (name, original) in [
                ("libfoo.so", "hip-two-units-ccob.so"),
                ("libfoo.old", "hip-two-units.so"),
                ("libfoo.a", "libbundles.a"),
                ("libcuda.a", "cuda-fatbin.o"),
                ("kernels.ccob", "hip-ccob-v3.hipfb"),
                ("fat.o", "bundle.o"),
                ("host.o", "host.o"),
                ("packages.offload", "packages.offload"),
            ] {
                fs::copy(data(original), at(name)).unwrap();
            }
            fs::create_dir(at("lib")).unwrap();
            fs::copy(at("libfoo.old"), at("lib/libfoo.so")).unwrap();
            fs::copy(at("libfoo.so"), at("lib/libbar.so")).unwrap();
            let words = ["split", "lib/libfoo.so", "--prefix", "lib", "--group", "foo"];
            place.offload(&[&words[..], &["-o", "split"]].concat());
            fs::create_dir_all(at("env/lib/python3.11/site-packages/foo-1.0.dist-info")).unwrap();
            let metadata = [("METADATA", "Name: foo\nVersion: 1.0\n"), ("RECORD", "libfoo.so,,\n")];
            for (name, text) in metadata {
                let info = at("env/lib/python3.11/site-packages/foo-1.0.dist-info");
                fs::write(info.join(name), text).unwrap();
            }
            fs::copy(at("libfoo.so"), at("env/lib/python3.11/site-packages/libfoo.so")).unwrap();
            fs::write(at("foo-1.0-py3-none-any.whl"), wheel()).unwrap();
            let library = fs::read(data("hip-two-units.so")).unwrap();
            let layer = Layer::new(&[("usr/lib/libfoo.so", &library)], Packed::Plain);
            fs::write(at("image.tar"), images::docker_archive(&[layer])).unwrap();
            place.offload(&["decompress", "kernels.ccob", "-o", "kernels.hipfb"]);
            for (name, gpu) in [("gfx906", "gfx906"), ("gfx1100", "gfx1100")] {
                let id = format!("hipv4-amdgcn-amd-amdhsa--{gpu}={name}.hsaco");
                place.offload(&["unbundle", "kernels.hipfb", &id]);
                fs::copy(at(&format!("{name}.hsaco")), at(&format!("{name}.img"))).unwrap();
            }
            // The flags of the ELF header: the number of the processor, and any state of both features.
            let mut gfx942 = fs::read(at("gfx906.hsaco")).unwrap();
            gfx942[0x30..0x34].copy_from_slice(&0x54c_u32.to_le_bytes());
            fs::write(at("gfx942.hsaco"), gfx942).unwrap();
            place.offload(&["extract", "packages.offload", "--index", "1", "-o", "out"]);
            let bitcode = fs::read_dir(at("out")).unwrap().next().unwrap().unwrap().path();
            fs::rename(bitcode, at("gfx90a.bc")).unwrap();
            fs::remove_dir(at("out")).unwrap();
            for (name, sm) in [("a.cubin", 80), ("b.cubin", 90)] {
                // The header of an ELF file for NVIDIA's GPUs.
                let mut cubin = b"\x7fELF\x02\x01\x01\x33\x07".to_vec();
                cubin.resize(64, 0);
                (cubin[18], cubin[48]) = (190, sm);
                fs::write(at(name), cubin).unwrap();
            }
            fs::write(at("a.ptx"), ".version 8.7\n.target sm_80\n.address_size 64\n").unwrap();
            place.offload(&["fatbin", "-o", "old.fatbin", "--image", "a.ptx"]);
            fs::write(at("offload.toml"), "[targets]\nrequire = [\"gfx1100\"]\n").unwrap();
            let text = ["host-x86_64-unknown-linux-gnu-", "my gpu", "your gpu"].map(|id| {
                let marker = |which| format!("# __CLANG_OFFLOAD_BUNDLE____{which}__ {id}\n");
                format!("\n{}code\n{}", marker("START"), marker("END"))
            });
            fs::write(at("old.s"), text.concat()).unwrap();
            fs::create_dir(at("bin")).unwrap();
            for (name, script) in STAND_INS {
                let path = at("bin").join(name);
                fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
                fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            }
            for home in
                [".zfunc", ".config/fish/completions", ".local/share/bash-completion/completions"]
            {
                fs::create_dir_all(at(home)).unwrap();
            }
            place
        }

        fn offload(&self, args: &[&str]) {
            let output =
                new_command(tool("offload")).args(args).current_dir(&self.directory).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        }

        fn path(&self) -> std::ffi::OsString {
            let own = [self.directory.path().join("bin"), parent(Path::new(tool("offload")))];
            let others = std::env::var_os("PATH").unwrap_or_default();
            let others = std::env::split_paths(&others).collect::<Vec<_>>();
            std::env::join_paths(own.into_iter().chain(others)).unwrap()
        }
    }

    /// Returns a wheel with a library.
    fn wheel() -> Vec<u8> {
        let library = fs::read(data("hip-two-units.so")).unwrap();
        packages::zip(
            &packages::wheel(&[("foo/libfoo.so", &library)]),
            &packages::Around::default(),
        )
    }

    fn parent(path: &Path) -> PathBuf {
        path.parent().unwrap().to_owned()
    }

    #[test]
    fn every_example_works() {
        let mut wrong = Vec::new();
        let all =
            ["offload".to_owned()].into_iter().chain(commands()).filter(|name| name != "help");
        let template = Place::new();
        for command in all {
            for example in examples(&help(&command, "--help")) {
                let line = &example.line;
                let place = tempfile::tempdir().unwrap();
                let mut copy = new_command("cp");
                let from = template.directory.path().join(".");
                let copied = copy.arg("-R").arg(from).arg(place.path()).status();
                assert!(copied.unwrap().success());
                // A machine without this shell needs no completions for it.
                let shell = if line.starts_with("eval") { "bash" } else { "sh" };
                let Ok(output) = new_command(shell)
                    .args(["-c", line])
                    .current_dir(&place)
                    .env("PATH", template.path())
                    .env("HOME", place.path())
                    .output()
                else {
                    continue;
                };
                // match and check answer by their status.
                let answers = [" match ", " check "].iter().any(|name| line.contains(name));
                let statuses = if answers { 0..=1 } else { 0..=0 };
                let said = stderr(&output);
                if !statuses.contains(&output.status.code().unwrap()) || said.contains("error") {
                    wrong.push(format!("{line}\n{}{said}", stdout(&output)));
                }
                if !example.is_explained {
                    wrong.push(format!("{line}\nit has no explanation"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} examples do not work:\n{}", wrong.len(), wrong.join("\n"));
    }
}
