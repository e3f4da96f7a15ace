//! Helpers for the tests of the commands that edit device code in files: places full of files, and checks of the
//! results.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "included by tests; a panic fails the test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;

use crate::common::{data, extract, ls, new_command, stderr, tool};

/// A directory with code objects in `images/`, each named after its target.
pub struct Place {
    directory: tempfile::TempDir,
    targets: Vec<String>,
}

impl Place {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let images = directory.path().join("images");
        fs::create_dir(&images).unwrap();
        let file = data("hip.o");
        let mut targets = Vec::new();
        for row in ls(&file) {
            let Some(target) = row.target else { continue };
            fs::write(images.join(&target), extract(&file, row.index)).unwrap();
            targets.push(target);
        }
        assert_eq!(targets, ["gfx1100", "gfx9-generic", "gfx906:xnack+", "gfx90a:sramecc+:xnack-"]);
        Place { directory, targets }
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Runs `offload` there.
    pub fn run(&self, args: &[&str]) -> Output {
        new_command(tool("offload")).args(args).current_dir(self.root()).output().unwrap()
    }

    /// Runs it, and expects that all is well.
    pub fn ok(&self, args: &[&str]) -> Output {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    }

    /// A bundle of all images, as clang makes it.
    pub fn bundle(&self, name: &str) -> PathBuf {
        let mut args: Vec<_> = ["bundle", "-o", name, "host-x86_64-unknown-linux-gnu-=/dev/null"]
            .map(String::from)
            .to_vec();
        args.extend(
            self.targets
                .iter()
                .map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}=images/{target}")),
        );
        self.ok(&args.iter().map(String::as_str).collect::<Vec<_>>());
        self.path(name)
    }
}

/// The bundle entry IDs of a file, in order.
pub fn ids(file: &Path) -> Vec<String> {
    ls(file).into_iter().map(|row| row.id.unwrap()).collect()
}

pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All files of a place, with bytes and times.
pub struct Snapshot {
    root: PathBuf,
    files: BTreeMap<PathBuf, (Vec<u8>, SystemTime)>,
}

impl Snapshot {
    pub fn of(place: &Place) -> Self {
        let root = place.root().to_owned();
        let mut files = BTreeMap::new();
        collect(&root, &mut files);
        Snapshot { root, files }
    }

    /// Nothing appeared, went or changed.
    pub fn is_unchanged(&self) {
        let mut now = BTreeMap::new();
        collect(&self.root, &mut now);
        let names = |files: &BTreeMap<PathBuf, _>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&now), names(&self.files));
        for (path, before) in &self.files {
            assert!(now[path] == *before, "{} changed", path.display());
        }
    }
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, (Vec<u8>, SystemTime)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            files.insert(path.clone(), (fs::read(&path).unwrap(), time));
        }
    }
}
