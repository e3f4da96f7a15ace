//! Pipes, devices, links and more, in the place of a file that a tool reads by itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::common::new_command;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Odd {
    /// The file lies elsewhere, and a link in its place leads there.
    Link,
    LinkToDevice,
    Device,
    Pipe,
    Socket,
    Directory,
    TooLarge,
}

pub(crate) const ALL: [Odd; 7] = [
    Odd::Link,
    Odd::LinkToDevice,
    Odd::Device,
    Odd::Pipe,
    Odd::Socket,
    Odd::Directory,
    Odd::TooLarge,
];

impl Odd {
    /// Replaces a file or a directory, which is moved.
    pub(crate) fn replace(self, path: &Path, moved: &Path) {
        fs::rename(path, moved).unwrap();
        match self {
            Odd::Link => symlink(moved, path).unwrap(),
            Odd::LinkToDevice => symlink("/dev/zero", path).unwrap(),
            Odd::Device => {
                // Only root may make one.
                let made = new_command("mknod").arg(path).args(["c", "1", "5"]).output();
                if !made.is_ok_and(|made| made.status.success()) {
                    symlink("/dev/zero", path).unwrap();
                }
            }
            Odd::Pipe => assert!(new_command("mkfifo").arg(path).status().unwrap().success()),
            Odd::Socket => {
                // Names of sockets are short.
                let place = path.parent().unwrap().join("s");
                let bound = UnixListener::bind(&place);
                match bound {
                    Ok(_) => fs::rename(&place, path).unwrap(),
                    Err(_) => symlink("/dev/zero", path).unwrap(),
                }
            }
            Odd::Directory => fs::create_dir(path).unwrap(),
            Odd::TooLarge => {
                let file = fs::File::create(path).unwrap();
                file.set_len((256 << 20) + 1).unwrap();
            }
        }
    }
}

/// The bytes of a file, or of all files of a directory.
pub(crate) fn contents(path: &Path) -> Vec<Vec<u8>> {
    if path.is_file() {
        return vec![fs::read(path).unwrap()];
    }
    let mut files: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| contents(file)).collect()
}
