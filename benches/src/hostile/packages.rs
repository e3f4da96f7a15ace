//! Packages of many members, names, rows or layers.

use super::containers::{bundle, member};
use super::{half, long, put, word};

/// The contents of a plain member.
const TEXT: &[u8] = b"A text.\n";
const TEXT_SHA256: &str = "sha256=7ECpoZ-mccxhCL4lEagHJPZusbU09ci4WQwI3kyQ2iU";
const TEXT_MD5: &str = "a0691c0f61f52683bcb05da98fe028c8";

/// Returns the CRC-32 of zip files.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// Returns a zip file of stored members, with a zip64 record.
fn zip(members: &[(String, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    // Members share few contents.
    let mut last: (&[u8], u32) = (b"", 0);
    for (name, contents) in members {
        if last.0 != *contents {
            last = (contents, crc32(contents));
        }
        let offset = file.len();
        let sums = [last.1.to_le_bytes(), word(contents.len()), word(contents.len())].concat();
        // No flags, stored, at the first of January 1980.
        let common = [&[0, 0, 0, 0, 0, 0, 0x21, 0][..], &sums, &half(name.len()), &[0; 2]].concat();
        file.extend([b"PK\x03\x04\x0a\0", &common[..], name.as_bytes(), contents].concat());
        let place = [&[0; 6][..], &word(0o100_644 << 16), &word(offset)].concat();
        directory
            .extend([b"PK\x01\x02\x14\x03\x0a\0", &common[..], &place, name.as_bytes()].concat());
    }
    let [at, size, count] = [file.len(), directory.len(), members.len()];
    file.extend(directory);
    let record = file.len();
    file.extend([&b"PK\x06\x06"[..], &long(44), &[45, 0, 45, 0], &[0; 8]].concat());
    file.extend([count, count, size, at].map(long).concat());
    file.extend([&b"PK\x06\x07\0\0\0\0"[..], &long(record), &word(1)].concat());
    file.extend([&b"PK\x05\x06\0\0\0\0"[..], &[0xff; 12], &[0; 2]].concat());
    file
}

/// Returns a header of a tar file.
fn tar_header(name: &str, size: usize, kind: u8) -> Vec<u8> {
    let mut header = vec![0; 512];
    put(&mut header, 0, name.as_bytes());
    put(&mut header, 100, b"0000644");
    put(&mut header, 124, format!("{size:011o}").as_bytes());
    put(&mut header, 136, b"14000000000");
    put(&mut header, 148, b"        ");
    put(&mut header, 156, &[kind]);
    put(&mut header, 257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Returns a member of a tar file.
fn tar_member(name: &str, contents: &[u8], kind: u8) -> Vec<u8> {
    let mut bytes = tar_header(name, contents.len(), kind);
    bytes.extend(contents);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn tar(members: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes: Vec<u8> = members.flatten().collect();
    bytes.extend([0; 1024]);
    bytes
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

/// An image of containers: layers, each a tar file.
#[must_use]
pub fn image_of_layers(n: usize) -> Vec<u8> {
    let layer = tar([tar_member("opt/code.hipfb", &code(), b'0')].into_iter());
    tar((0..n / (512 + layer.len()))
        .map(|n| tar_member(&format!("{n:07}/layer.tar"), &layer, b'0')))
}

/// A Debian package of these archive members before its data.
fn deb(before: &[Vec<u8>], control: &[Vec<u8>], data: &[Vec<u8>]) -> Vec<u8> {
    let tar = |members: &[Vec<u8>]| tar(members.iter().cloned());
    let mut bytes = [b"!<arch>\n".to_vec(), member("debian-binary", b"2.0\n")].concat();
    bytes.extend(member("control.tar", &tar(control)));
    bytes.extend(before.concat());
    bytes.extend(member("data.tar", &tar(data)));
    bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zip_files() {
        assert_eq!(crc32(TEXT), 0x9868_3ba1);
    }
}
