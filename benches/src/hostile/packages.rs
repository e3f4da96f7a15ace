//! Packages of many members, names, rows or layers.

use samples::ar::{self, member};
use samples::images::{self, Layer, Packed};
use samples::packages::{self, Around, Made, padded, tar_header};
use samples::put;

use super::containers::bundle;

/// The contents of a plain member.
const TEXT: &[u8] = b"A text.\n";
const TEXT_SHA256: &str = "sha256=7ECpoZ-mccxhCL4lEagHJPZusbU09ci4WQwI3kyQ2iU";
const TEXT_MD5: &str = "a0691c0f61f52683bcb05da98fe028c8";

/// Returns a zip file of stored members, with a zip64 record.
fn zip(members: &[(String, &[u8])]) -> Vec<u8> {
    let stored =
        |(name, contents): &(String, &[u8])| Made { method: 0, ..Made::new(name, *contents) };
    let around = Around { is_zip64: true, ..Around::default() };
    packages::zip(&members.iter().map(stored).collect::<Vec<_>>(), &around)
}

/// Returns a member of a tar file.
fn tar_member(name: &str, contents: &[u8], kind: u8) -> Vec<u8> {
    [tar_header(name.as_bytes(), contents.len() as u64, kind, b""), padded(contents)].concat()
}

fn tar(members: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    members.flatten().chain([0; 1024]).collect()
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("foo/{n:07}.txt"))
}

/// Returns a bundle with an image for each of two GPUs.
fn code() -> Vec<u8> {
    let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a"];
    bundle(ids.map(str::to_owned), b"image")
}

/// A zip file of texts.
#[must_use]
pub fn zip_of_texts(n: usize) -> Vec<u8> {
    zip(&names(n / 116).map(|name| (name, TEXT)).collect::<Vec<_>>())
}

/// A zip file of members of one name.
#[must_use]
pub fn zip_of_one_name(n: usize) -> Vec<u8> {
    zip(&vec![("a".to_owned(), TEXT); n / 86])
}

/// A zip file of texts whose local headers have other names than its directory: a finding for each.
#[must_use]
pub fn zip_of_findings(n: usize) -> Vec<u8> {
    let mut file = zip_of_texts(n);
    // A local header, its name and the text.
    let local = 30 + "foo/0000000.txt".len() + TEXT.len();
    (0..n / 116).for_each(|i| put(&mut file, i * local + 30, b"bar"));
    file
}

/// A zip file of bundles.
#[must_use]
pub fn zip_of_bundles(n: usize) -> Vec<u8> {
    let code = code();
    let count = n / (108 + code.len());
    zip(&names(count).map(|name| (name, &code[..])).collect::<Vec<_>>())
}

/// A wheel of texts and one bundle, all of them in its `RECORD`.
#[must_use]
pub fn wheel_of_rows(n: usize) -> Vec<u8> {
    let code = code();
    let mut record: String =
        names(n / 190).map(|name| format!("{name},{TEXT_SHA256},{}\n", TEXT.len())).collect();
    record.push_str("foo/code.hipfb,,\nfoo-1.dist-info/WHEEL,,\nfoo-1.dist-info/RECORD,,\n");
    let mut members: Vec<(String, &[u8])> = names(n / 190).map(|name| (name, TEXT)).collect();
    members.push(("foo/code.hipfb".to_owned(), &code));
    members.push(("foo-1.dist-info/WHEEL".to_owned(), b"Wheel-Version: 1.0\n"));
    members.push(("foo-1.dist-info/RECORD".to_owned(), record.as_bytes()));
    zip(&members)
}

/// A tar file of texts.
#[must_use]
pub fn tar_of_texts(n: usize) -> Vec<u8> {
    tar(names(n / 1024).map(|name| tar_member(&name, TEXT, b'0')))
}

/// A tar file of members of one name.
#[must_use]
pub fn tar_of_one_name(n: usize) -> Vec<u8> {
    tar((0..n / 1024).map(|_| tar_member("a", TEXT, b'0')))
}

/// A tar file of bundles.
#[must_use]
pub fn tar_of_bundles(n: usize) -> Vec<u8> {
    let code = code();
    tar(names(n / 1024).map(|name| tar_member(&name, &code, b'0')))
}

/// A tar file with an extended header before each member, and global ones.
#[must_use]
pub fn tar_of_extended_headers(n: usize) -> Vec<u8> {
    tar(names(n / 4096).map(|name| {
        let global = tar_member("g", b"18 comment=global\n", b'g');
        let extended = tar_member("x", format!("28 path=long/{name}\n").as_bytes(), b'x');
        [global, extended, tar_member(&name, TEXT, b'0')].concat()
    }))
}

/// Returns a layer of a container image with these names, each of the same file.
fn layer(names: &[String], contents: &[u8]) -> Layer {
    let files: Vec<_> = names.iter().map(|name| (&**name, contents)).collect();
    Layer::new(&files, Packed::Plain)
}

/// A container image of layers.
#[must_use]
pub fn image_of_layers(n: usize) -> Vec<u8> {
    let names = |n| [format!("opt/{n:07}.hipfb")];
    let layers: Vec<_> = (0..n / 4096).map(|n| layer(&names(n), &code())).collect();
    images::docker_archive(&layers)
}

/// A container image of a layer of files.
#[must_use]
pub fn image_of_files(n: usize) -> Vec<u8> {
    let names: Vec<_> = names(n / 1024).chain(["opt/code.hipfb".to_owned()]).collect();
    images::docker_archive(&[layer(&names, &code())])
}

/// A container image whose upper layer removes the files of the lower one.
#[must_use]
pub fn image_of_removed_files(n: usize) -> Vec<u8> {
    let count = n / 2048;
    let names: Vec<_> = names(count).chain(["opt/code.hipfb".to_owned()]).collect();
    let removed: Vec<_> = (0..count).map(|n| format!("foo/.wh.{n:07}.txt")).collect();
    images::docker_archive(&[layer(&names, &code()), layer(&removed, b"")])
}

/// A Debian package of these archive members before its data.
fn deb(before: &[Vec<u8>], control: &[Vec<u8>], data: &[Vec<u8>]) -> Vec<u8> {
    let tar = |members: &[Vec<u8>]| tar(members.iter().cloned());
    let start = ar::raw(&[("debian-binary", b"2.0\n"), ("control.tar", &tar(control))]);
    [start, before.concat(), member("data.tar", &tar(data))].concat()
}

/// A Debian package with many empty archive members.
#[must_use]
pub fn deb_of_empty_members(n: usize) -> Vec<u8> {
    let data = tar_member("./usr/code.hipfb", &code(), b'0');
    deb(&vec![member("_a", b""); n / 60], &[], &[data])
}

/// A Debian package of texts, all of them in its `md5sums`.
#[must_use]
pub fn deb_of_rows(n: usize) -> Vec<u8> {
    let count = n / 1080;
    let sums: String = names(count).map(|name| format!("{TEXT_MD5}  {name}\n")).collect();
    let mut data: Vec<_> =
        names(count).map(|name| tar_member(&format!("./{name}"), TEXT, b'0')).collect();
    data.push(tar_member("./usr/code.hipfb", &code(), b'0'));
    deb(&[], &[tar_member("./md5sums", sums.as_bytes(), b'0')], &data)
}
