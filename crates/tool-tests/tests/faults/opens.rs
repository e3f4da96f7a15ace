//! A command opens each file once, so that all its answers concern the same bytes.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::table::{Inputs, words};
use crate::common::{new_command, stderr};

/// Events of a directory and those below it.
struct Watch(rustix::fd::OwnedFd);

impl Watch {
    fn new(directories: &[&Path]) -> Self {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for directory in directories {
            // The kernel joins equal events that follow each other: reading comes between two openings.
            let events = WatchFlags::OPEN | WatchFlags::ACCESS;
            inotify::add_watch(&watch, *directory, events).unwrap();
        }
        Watch(watch)
    }

    /// Returns how often each file was opened to be read.
    fn opened(&self) -> BTreeMap<String, usize> {
        let mut buffer = [MaybeUninit::uninit(); 1 << 16];
        let (mut reader, mut opened) = (Reader::new(&self.0, &mut buffer), BTreeMap::new());
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
            let Some(name) = event.file_name() else { continue };
            let is_directory = event.events().contains(ReadFlags::ISDIR);
            if event.events().contains(ReadFlags::OPEN) && !is_directory {
                *opened.entry(name.to_string_lossy().into_owned()).or_default() += 1;
            }
        }
        opened
    }
}

#[test]
fn each_file_is_opened_once() {
    for args in [
        "ls IN",
        "ls --formats --hash IN",
        "verify IN",
        "match --gpu gfx1100 IN",
        "kernels IN",
        "size IN",
        "extract IN -o images",
        "thin IN --keep gfx1100 -o out",
        "thin IN --keep gfx1100 --in-place",
        "compress IN --in-place",
    ] {
        for file in ["hip.o", "libbundles.a", "packages.offload", "foo.tar", "lib.so", "env"] {
            let is_directory = file == "env";
            if is_directory && args.ends_with("-o out") {
                continue;
            }
            let inputs = Inputs::new();
            std::fs::create_dir(inputs.path("env")).unwrap();
            std::fs::rename(inputs.path("hip.so"), inputs.path("env/hip.so")).unwrap();
            std::fs::copy(inputs.path("hip.o"), inputs.path("env/bundle.o")).unwrap();
            std::fs::create_dir(inputs.path(".kpack")).unwrap();
            std::fs::rename(inputs.path("g.kpack"), inputs.path(".kpack/g_gfx1100.kpack")).unwrap();
            tar(&inputs);
            let watch = Watch::new(&[inputs.root(), &inputs.path("env"), &inputs.path(".kpack")]);
            let output = inputs.run(&words("offload", &args.replace("IN", file), ["", ""]));
            let opened = watch.opened();
            let text = stderr(&output);
            let wanted = if is_directory { "hip.so" } else { file };
            assert_eq!(opened.get(wanted), Some(&1), "{args} {file}: {opened:?}: {text}");
            // The table of a kernel pack answers for its library, before its images are read.
            let is_judged = args.starts_with("verify") || args.starts_with("match");
            let is_once = |(name, times): (&String, &usize)| {
                *times == 1 || is_judged && *times == 2 && name.ends_with(".kpack")
            };
            assert!(opened.iter().all(is_once), "{args} {file}: {opened:?}: {text}");
        }
    }
}

/// The files of installed variants are compared with what these declare, and wheels are read before variants are made of them.
#[test]
fn files_of_variants_are_opened_once() {
    let inputs = Inputs::new();
    let site = inputs.path("venv/lib/python3.12/site-packages");
    let (foo, info) = (site.join("foo"), site.join("foo-1.0.dist-info"));
    std::fs::create_dir_all(&foo).unwrap();
    std::fs::create_dir_all(&info).unwrap();
    std::fs::rename(inputs.path("hip.so"), foo.join("hip.so")).unwrap();
    let json = r#"{"$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["amd"]},
        "variants": {"fast": {"amd": {"gfx_arch": ["gfx1100"]}}}}"#;
    for (name, text) in [
        ("variant.json", json),
        ("METADATA", "Name: foo\nVersion: 1.0\n"),
        ("RECORD", "foo/hip.so,,\n"),
    ] {
        std::fs::write(info.join(name), text).unwrap();
    }
    let watch = Watch::new(&[&foo]);
    let output = inputs.run(&words("offload", "verify venv", ["", ""]));
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(said.contains("foo/hip.so: ok") && said.contains("1 installed variant"), "{said}");
    assert_eq!(watch.opened().get("hip.so"), Some(&1), "{said}");

    let wheel =
        samples::packages::wheel(&[("foo/hip.so", &std::fs::read(foo.join("hip.so")).unwrap())]);
    let wheel = samples::packages::zip(&wheel, &samples::packages::Around::default());
    std::fs::create_dir(inputs.path("in")).unwrap();
    std::fs::write(inputs.path("in/foo-1.0-py3-none-any.whl"), wheel).unwrap();
    let watch = Watch::new(&[&inputs.path("in")]);
    let make = "variant make in/foo-1.0-py3-none-any.whl --label a -o variants";
    let output = inputs.run(&words("offload", make, ["", ""]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(watch.opened().get("foo-1.0-py3-none-any.whl"), Some(&1));
}

/// Makes a package with a file.
fn tar(inputs: &Inputs) {
    let made =
        new_command("tar").args(["-cf", "foo.tar", "hip.o"]).current_dir(inputs.root()).status();
    assert!(made.unwrap().success());
}
