//! Packages that LLVM 24 made, edited, and what LLVM 24 reads of the result.
//!
//! Needs LLVM 24 where `LLVM24` points, or in `target/llvm24`, and LLVM 22's `llvm-objcopy`; fails without them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{data, files_in, llvm, llvm24, new_command, offload, printed, stderr};

const ARCHS: [&str; 3] = ["gfx906", "gfx90a", "gfx1100"];

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        for (n, arch) in (1_u8..).zip(ARCHS) {
            // As bitcode begins, which is an image for any GPU.
            let image = [b"BC\xc0\xde".to_vec(), vec![n; 5000 + 777 * usize::from(n)]].concat();
            fs::write(place.path(arch), image).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Runs a tool here, which must succeed.
    fn run(&self, tool: &Path, args: &[String]) {
        let output = new_command(tool).current_dir(self.0.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{} {args:?}: {}", tool.display(), stderr(&output));
    }

    /// Packs the images of all processors.
    fn pack(&self, name: &str, how: &[&str]) {
        let image = |arch: &&str| {
            format!("--image=file={arch},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip")
        };
        let mut args: Vec<String> = ARCHS.iter().map(image).collect();
        args.extend(["-o", name].iter().chain(how).map(ToString::to_string));
        self.run(&llvm24("llvm-offload-binary"), &args);
    }

    /// Edits a file.
    fn edit(&self, args: &[&str], from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        let rest = [from.to_str().unwrap(), "-o", to.to_str().unwrap()];
        let output =
            offload(args[..1].iter().chain(&rest[..1]).chain(&args[1..]).chain(&rest[1..]));
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    }

    /// The images that LLVM 24 finds in a file, by processor.
    fn found(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let place = tempfile::tempdir().unwrap();
        let mut tool = new_command(llvm24("llvm-offload-binary"));
        printed(tool.current_dir(place.path()).arg(self.path(name)));
        let files = files_in(place.path()).into_iter().map(|(name, bytes)| {
            let arch = name.split("-amdhsa-").nth(1).unwrap().split('.').next().unwrap();
            (arch.to_owned(), bytes)
        });
        files.collect()
    }

    fn expected(&self, archs: &[&str]) -> BTreeMap<String, Vec<u8>> {
        archs.iter().map(|arch| ((*arch).to_owned(), self.read(arch))).collect()
    }
}

const METHODS: [&[&str]; 3] = [&[], &["--compress"], &["--compress", "--compression-format=zlib"]];

#[test]
fn edited_packages_are_read() {
    let place = Place::new();
    let image = place.path("gfx906");
    for how in METHODS {
        place.pack("package", how);
        place.edit(&["thin", "--keep", "gfx90a"], "package", "thin");
        assert!(place.found("thin") == place.expected(&["gfx90a"]), "{how:?}");
        place.edit(&["remove", "--index", "1"], "package", "removed");
        assert!(place.found("removed") == place.expected(&["gfx906", "gfx1100"]));
        let new = format!("2={}", image.display());
        place.edit(&["replace", &new], "package", "replaced");
        let mut expected = place.expected(&ARCHS);
        expected.insert("gfx1100".to_owned(), place.read("gfx906"));
        assert!(place.found("replaced") == expected);
        let new = format!("hip-amdgcn-amd-amdhsa--gfx942={}", image.display());
        place.edit(&["add", &new], "package", "added");
        expected = place.expected(&ARCHS);
        expected.insert("gfx942".to_owned(), place.read("gfx906"));
        assert!(place.found("added") == expected);
        let compressed = |name: &str| place.read(name)[32..40] != [0; 8];
        for name in ["thin", "removed", "replaced", "added"] {
            assert_eq!((place.read(name)[4], compressed(name)), (3, !how.is_empty()), "{name}");
        }
    }
}

#[test]
fn compressed_packages_are_read_and_restored() {
    let place = Place::new();
    place.pack("plain", &[]);
    for how in METHODS {
        place.pack("package", how);
        for method in ["zstd", "zlib"] {
            place.edit(&["compress", "--recompress", "--method", method], "package", "small");
            assert!(place.read("small").len() < 1000);
            assert!(place.found("small") == place.expected(&ARCHS));
            place.edit(&["decompress"], "small", "back");
            assert!(place.read("back") == place.read("plain"), "{how:?} {method}");
        }
    }
    // Several; each ends at a multiple of 8.
    fs::write(place.path("several"), [place.read("small"), place.read("plain")].concat()).unwrap();
    place.edit(&["compress"], "several", "small");
    assert!(place.found("small") == place.expected(&ARCHS));
}

#[test]
fn packages_of_objects_are_read() {
    let place = Place::new();
    fs::copy(data("host.o"), place.path("host.o")).unwrap();
    for how in METHODS {
        place.pack("package", how);
        let add = "--add-section=.llvm.offloading=package";
        let flags = "--set-section-flags=.llvm.offloading=exclude";
        let kind = "--set-section-type=.llvm.offloading=0x6fff4c0b";
        let args = [add, flags, kind, "host.o", "fat.o"].map(str::to_owned);
        place.run(&llvm("llvm-objcopy"), &args);
        assert!(place.found("fat.o") == place.expected(&ARCHS));
        place.edit(&["compress"], "fat.o", "small.o");
        assert_eq!(place.read("small.o").len() < place.read("fat.o").len(), how.is_empty());
        assert!(place.found("small.o") == place.expected(&ARCHS));
        place.edit(&["thin", "--keep", "gfx1100"], "small.o", "thin.o");
        assert!(place.found("thin.o") == place.expected(&["gfx1100"]));
        place.edit(&["decompress"], "thin.o", "plain.o");
        assert!(place.found("plain.o") == place.expected(&["gfx1100"]));
    }
}
