//! Packages, byte by byte, whole or wrong on purpose.

use std::io::Write;

use sha2::Digest as _;

use crate::ar;

/// A member of a zip file.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its name.
    pub name: Vec<u8>,
    /// Its contents, not compressed.
    pub contents: Vec<u8>,
    /// 0 stored, 8 deflated.
    pub method: u16,
    /// Size of the data descriptor: 0, 12, 16, 20 or 24.
    pub descriptor: usize,
    /// Sizes and offset in the zip64 extra field.
    pub is_zip64: bool,
    /// Another extra field.
    pub extra: Vec<u8>,
    /// Its mode.
    pub mode: u32,
    /// Its comment.
    pub comment: Vec<u8>,
    /// Zeros before the local header.
    pub zeros: usize,
}

impl Made {
    /// Creates a deflated member.
    #[must_use]
    pub fn new(name: &str, contents: impl Into<Vec<u8>>) -> Self {
        Made {
            name: name.as_bytes().to_vec(),
            contents: contents.into(),
            method: 8,
            descriptor: 0,
            is_zip64: false,
            extra: Vec::new(),
            mode: 0o100_644,
            comment: Vec::new(),
            zeros: 0,
        }
    }
}

/// The rest of a zip file.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Bytes before the first member.
    pub prefix: Vec<u8>,
    /// Offsets count from the end of the prefix.
    pub is_moved: bool,
    /// The end has the form for large files.
    pub is_zip64: bool,
    /// The comment of the whole.
    pub comment: Vec<u8>,
}

/// Returns a deflate stream.
#[must_use]
pub fn deflate(contents: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::new(6);
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Returns a gzip stream.
#[must_use]
pub fn gzip(contents: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::new(6);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

fn crc(contents: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(contents);
    crc.sum()
}

fn size(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

fn u16_of(value: usize) -> [u8; 2] {
    u16::try_from(value).unwrap().to_le_bytes()
}

fn u32_of(value: u64) -> [u8; 4] {
    u32::try_from(value).unwrap().to_le_bytes()
}

const MARK: [u8; 4] = [0xff; 4];

/// Returns a zip file.
#[must_use]
pub fn zip(members: &[Made], around: &Around) -> Vec<u8> {
    let mut file = around.prefix.clone();
    let base = if around.is_moved { size(&file) } else { 0 };
    let mut directory = Vec::new();
    for made in members {
        file.extend(vec![0; made.zeros]);
        let data = if made.method == 8 { deflate(&made.contents) } else { made.contents.clone() };
        let sums = [u64::from(crc(&made.contents)), size(&data), size(&made.contents)];
        let offset = size(&file) - base;
        let flags = if made.descriptor > 0 { 8u16 } else { 0 };
        let version = if made.is_zip64 { 45u16 } else { 20 };
        let mut common = flags.to_le_bytes().to_vec();
        common.extend(made.method.to_le_bytes());
        common.extend([0x21, 0x43, 0x65, 0x57]);

        file.extend(b"PK\x03\x04");
        file.extend(version.to_le_bytes());
        file.extend(&common);
        let mut extra = made.extra.clone();
        if made.descriptor > 0 {
            file.extend([0; 12]);
        } else if made.is_zip64 {
            file.extend(u32_of(sums[0]));
            file.extend([MARK, MARK].concat());
            extra.extend(b"\x01\0\x10\0");
            extra.extend([sums[2].to_le_bytes(), sums[1].to_le_bytes()].concat());
        } else {
            file.extend(sums.map(u32_of).concat());
        }
        file.extend(u16_of(made.name.len()));
        file.extend(u16_of(extra.len()));
        file.extend(&made.name);
        file.extend(extra);
        file.extend(&data);
        if matches!(made.descriptor, 16 | 24) {
            file.extend(b"PK\x07\x08");
        }
        match made.descriptor {
            0 => {}
            12 | 16 => file.extend(sums.map(u32_of).concat()),
            _ => {
                file.extend(u32_of(sums[0]));
                file.extend([sums[1].to_le_bytes(), sums[2].to_le_bytes()].concat());
            }
        }

        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(version.to_le_bytes());
        directory.extend(&common);
        let mut extra = made.extra.clone();
        directory.extend(u32_of(sums[0]));
        if made.is_zip64 {
            directory.extend([MARK, MARK].concat());
            extra.extend(b"\x01\0\x18\0");
            extra.extend([sums[2], sums[1], offset].map(u64::to_le_bytes).concat());
        } else {
            directory.extend([u32_of(sums[1]), u32_of(sums[2])].concat());
        }
        directory.extend(u16_of(made.name.len()));
        directory.extend(u16_of(extra.len()));
        directory.extend(u16_of(made.comment.len()));
        directory.extend([0; 4]);
        directory.extend((made.mode << 16).to_le_bytes());
        directory.extend(if made.is_zip64 { MARK } else { u32_of(offset) });
        directory.extend(&made.name);
        directory.extend(extra);
        directory.extend(&made.comment);
    }
    let offset = size(&file) - base;
    let directory_size = size(&directory);
    file.extend(directory);
    let count = members.len() as u64;
    if around.is_zip64 {
        let record_at = size(&file) - base;
        file.extend(b"PK\x06\x06");
        file.extend(44u64.to_le_bytes());
        file.extend([45, 0, 45, 0]);
        file.extend([0; 8]);
        file.extend([count, count, directory_size, offset].map(u64::to_le_bytes).concat());
        file.extend(b"PK\x06\x07\0\0\0\0");
        file.extend(record_at.to_le_bytes());
        file.extend(1u32.to_le_bytes());
    }
    file.extend(b"PK\x05\x06\0\0\0\0");
    if around.is_zip64 {
        file.extend([0xff; 12]);
    } else {
        file.extend([u16_of(members.len()), u16_of(members.len())].concat());
        file.extend([u32_of(directory_size), u32_of(offset)].concat());
    }
    file.extend(u16_of(around.comment.len()));
    file.extend(&around.comment);
    file
}

/// Returns the hash of a file as `RECORD` has it.
#[must_use]
pub fn sha256(contents: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = "sha256=".to_owned();
    for bytes in sha2::Sha256::digest(contents).chunks(3) {
        let bits = (0..3).fold(0, |bits, n| bits << 8 | u32::from(*bytes.get(n).unwrap_or(&0)));
        let digit = |n: usize| char::from(DIGITS[(bits >> (18 - 6 * n)) as usize & 63]);
        text.extend((0..=bytes.len()).map(digit));
    }
    text
}

/// Returns a wheel of these files, with its metadata and `RECORD`.
#[must_use]
pub fn wheel(files: &[(&str, &[u8])]) -> Vec<Made> {
    let mut members: Vec<_> = files.iter().map(|(name, bytes)| Made::new(name, *bytes)).collect();
    let info = "foo-1.0.dist-info";
    let wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n";
    members.push(Made::new(&format!("{info}/WHEEL"), wheel));
    let metadata = "Metadata-Version: 2.1\nName: foo\nVersion: 1.0\n";
    members.push(Made::new(&format!("{info}/METADATA"), metadata));
    let mut record = String::new();
    for made in &members {
        let hash = sha256(&made.contents);
        let name = String::from_utf8(made.name.clone()).unwrap();
        let name = if name.contains(',') { format!("\"{name}\"") } else { name };
        record += &format!("{name},{hash},{}\n", made.contents.len());
    }
    record += &format!("{info}/RECORD,,\n");
    members.push(Made::new(&format!("{info}/RECORD"), record));
    members
}

/// Returns a header of a tar file.
#[must_use]
pub fn tar_header(name: &[u8], size: u64, kind: u8, link: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    header[100..107].copy_from_slice(b"0000644");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[136..147].copy_from_slice(b"14000000000");
    header[156] = kind;
    header[157..157 + link.len()].copy_from_slice(link);
    header[257..265].copy_from_slice(b"ustar\x0000");
    sum(&mut header);
    header
}

/// Corrects the checksum of a header.
pub fn sum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Returns bytes with zeros up to a multiple of 512.
#[must_use]
pub fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.resize(bytes.len().next_multiple_of(512), 0);
    out
}

/// Returns a tar file; names that end with `/` are directories.
#[must_use]
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, contents) in files {
        let kind = if name.ends_with('/') { b'5' } else { b'0' };
        if name.len() > 100 {
            out.extend(tar_header(b"././@LongLink", size(name.as_bytes()) + 1, b'L', b""));
            out.extend(padded(&[name.as_bytes(), b"\0"].concat()));
        }
        out.extend(tar_header(name.as_bytes(), size(contents), kind, b""));
        out.extend(padded(contents));
    }
    out.extend([0; 1024]);
    out
}

/// Returns a Debian package of these files, compressed as `compress` does.
#[must_use]
pub fn deb(files: &[(&str, &[u8])], end: &str, compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut sums = String::new();
    let mut kib = 0;
    for (name, contents) in files {
        sums += &format!("{:x}  {name}\n", md5::compute(contents));
        kib += contents.len().div_ceil(1024);
    }
    let control = format!(
        "Package: foo\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <n@example.org>\nInstalled-Size: {kib}\nDescription: none\n"
    );
    let control = tar(&[("./control", control.as_bytes()), ("./md5sums", sums.as_bytes())]);
    let dotted: Vec<_> = files.iter().map(|(name, _)| format!("./{name}")).collect();
    let files: Vec<_> =
        dotted.iter().zip(files).map(|(name, (_, contents))| (&name[..], *contents)).collect();
    ar::raw(&[
        ("debian-binary", b"2.0\n"),
        (&format!("control.tar{end}"), &compress(&control)),
        (&format!("data.tar{end}"), &compress(&tar(&files))),
    ])
}

/// Returns a cpio file.
#[must_use]
pub fn cpio(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let end: [(&str, &[u8]); 1] = [("TRAILER!!!", b"")];
    for (name, contents) in files.iter().chain(&end) {
        let mut fields = [0; 13];
        (fields[1], fields[6], fields[11]) = (0o100_644, contents.len(), name.len() + 1);
        out.extend(b"070701");
        out.extend(fields.map(|field| format!("{field:08x}").into_bytes()).concat());
        out.extend(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(contents);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// Returns an RPM package around a payload.
#[must_use]
pub fn rpm(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 96];
    out[..4].copy_from_slice(b"\xed\xab\xee\xdb");
    // A signature header with one entry, whose 5 bytes of data are padded to 8, and an empty header.
    out.extend(b"\x8e\xad\xe8\x01\0\0\0\0\0\0\0\x01\0\0\0\x05");
    out.extend(b"\0\0\x03\xe8\0\0\0\x07\0\0\0\0\0\0\0\x05hello");
    out.extend([0; 3]);
    out.extend(b"\x8e\xad\xe8\x01\0\0\0\0\0\0\0\0\0\0\0\0");
    out.extend_from_slice(payload);
    out
}

/// Returns a conda package of version 2. The parts must be Zstandard frames.
#[must_use]
pub fn conda(pkg: Vec<u8>, info: Vec<u8>) -> Vec<u8> {
    let mut members = vec![
        Made::new("metadata.json", "{\"conda_pkg_format_version\": 2}"),
        Made::new("pkg-foo-1.0-0.tar.zst", pkg),
        Made::new("info-foo-1.0-0.tar.zst", info),
    ];
    for made in &mut members {
        made.method = 0;
    }
    zip(&members, &Around::default())
}
