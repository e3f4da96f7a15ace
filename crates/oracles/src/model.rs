//! Well-formed files made from the fuzzer's bytes, and what a walk must find in them.

use arbitrary::{Result, Unstructured};
use bundle_format::Bundle;
use ccob::{Method, Version, WriteOptions};

use crate::bundles;
use crate::walks::Walk;

/// The largest depth of containers.
const DEPTH: usize = 5;
/// Entries, sections or members of one container.
const MOST: usize = 5;

/// Bytes.
pub type Bytes = Vec<u8>;

/// A file and the images in it, in the order in which a walk meets them.
pub(crate) struct File {
    pub(crate) bytes: Bytes,
    pub(crate) images: Vec<Bytes>,
}

/// Makes a file, and damages it if the fuzzer likes.
pub fn check_walk(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok(file) = file(u, DEPTH) else { return };
    let mut bytes = file.bytes;
    let edits = edit(u, &mut bytes).unwrap_or_default();
    let mut walk = Walk::new(&bytes);
    walk.run();
    if edits == 0 {
        assert_eq!(walk.errors, [""; 0]);
        assert!(walk.images == file.images, "{:?} for {:?}", walk.images, file.images);
    }
}

/// Makes a file; damages nothing.
pub fn make(data: &[u8]) -> Option<Bytes> {
    file(&mut Unstructured::new(data), DEPTH).ok().map(|file| file.bytes)
}

/// Lays out a bundle, and damages its descriptors if the fuzzer likes.
pub fn check_bundle(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok((entries, align)) = entries(u) else { return };
    let layout = bundle_format::layout(entries.iter().map(|(id, p)| (id, p.len() as u64)), align);
    let payloads: Vec<&[u8]> = entries.iter().map(|(_, payload)| &payload[..]).collect();
    let mut bytes = layout.expect("no empty IDs").to_vec(&payloads).expect("as laid out");
    let bundle = Bundle::parse(&bytes).expect("what is written can be read");
    assert!(bundle.entries().map(|e| e.id().to_vec()).eq(entries.iter().map(|e| e.0.clone())));
    bundles::check_binary(&bytes);

    let header_len = bundle.header_len() as usize;
    if edit(u, &mut bytes[24..header_len]).is_ok_and(|edits| edits > 0) {
        bundles::check_binary(&bytes);
    }
}

/// Makes IDs, payloads and an alignment.
fn entries(u: &mut Unstructured<'_>) -> Result<(Vec<(Bytes, Bytes)>, u64)> {
    let align = *u.choose(&[1, 2, 7, 8, 64, 256])?;
    let mut entries = Vec::new();
    while entries.len() < 64 && u.arbitrary()? {
        let mut id = bytes(u, 40)?;
        id.push(b'-');
        entries.push((id, bytes(u, 100)?));
    }
    Ok((entries, align))
}

/// Overwrites some numbers. Returns how many.
fn edit(u: &mut Unstructured<'_>, bytes: &mut [u8]) -> Result<usize> {
    let edits = u.int_in_range(0..=3)?;
    for _ in 0..edits {
        let at = u.choose_index(bytes.len().saturating_sub(7))?;
        let number = &mut bytes[at..at + 8];
        let old = u64::from_le_bytes(number.try_into().expect("8 bytes"));
        let new = match u.int_in_range(0..=3)? {
            0 => old.wrapping_add(u.int_in_range(1..=64)?),
            1 => old.wrapping_sub(u.int_in_range(1..=64)?),
            2 => u64::from(u.arbitrary::<u16>()?),
            _ => u.arbitrary()?,
        };
        number.copy_from_slice(&new.to_le_bytes());
    }
    Ok(edits)
}

fn bytes(u: &mut Unstructured<'_>, most: usize) -> Result<Bytes> {
    let len = u.int_in_range(0..=most)?.min(u.len());
    Ok(u.bytes(len)?.to_vec())
}

/// Makes any file that a walk enters.
fn file(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    match u.int_in_range(0..=3)? {
        0 => elf(u, depth),
        1 => archive(u, depth),
        _ => sequence(u, depth),
    }
}

/// Returns a code object, or a file in its place.
pub(crate) fn payload(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    let mut leaf = match u.int_in_range(0..=3)? {
        0 if depth > 0 => {
            let mut file = file(u, depth - 1)?;
            // The file is an image as well.
            file.images.insert(0, file.bytes.clone());
            return Ok(file);
        }
        1 => Vec::new(),
        // Bitcode, which no walk enters.
        _ => b"BC\xc0\xde".to_vec(),
    };
    if !leaf.is_empty() {
        leaf.extend(bytes(u, 40)?);
    }
    Ok(File { bytes: leaf.clone(), images: vec![leaf] })
}

/// Makes some files; returns the images of all of them.
fn several(
    u: &mut Unstructured<'_>,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<File>,
) -> Result<(Vec<Bytes>, Vec<Bytes>)> {
    let (mut files, mut images) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(0..=MOST)? {
        let file = one(u)?;
        files.push(file.bytes);
        images.extend(file.images);
    }
    Ok((files, images))
}

/// Returns successive containers, at least one, each followed by some zeros.
pub(crate) fn sequence(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    let mut all = File { bytes: Vec::new(), images: Vec::new() };
    for _ in 0..u.int_in_range(1..=3)? {
        let next = container(u, depth)?;
        all.bytes.extend(next.bytes);
        all.images.extend(next.images);
        all.bytes.resize(all.bytes.len() + u.int_in_range(0..=16)?, 0);
    }
    Ok(all)
}

pub(crate) fn container(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    match u.int_in_range(0..=4)? {
        0 | 1 => bundle(u, depth),
        2 => compressed(u, depth),
        _ => package(u, depth),
    }
}

fn bundle(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    let (payloads, images) = several(u, |u| payload(u, depth))?;
    let ids = (0..).map(|number| format!("hip-amdgcn-amd-amdhsa--gfx{number}"));
    let sizes = payloads.iter().map(|payload| payload.len() as u64);
    let align = *u.choose(&[1, 8, 64])?;
    let layout = bundle_format::layout(ids.zip(sizes), align).expect("is small");
    let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    Ok(File { bytes: layout.to_vec(&payloads).expect("as laid out"), images })
}

fn compressed(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    let File { bytes, images } = bundle(u, depth)?;
    let options = WriteOptions::default()
        .with_version(*u.choose(&[Version::V1, Version::V2, Version::V3])?)
        .with_method(*u.choose(&[Method::ZLIB, Method::ZSTD])?);
    Ok(File { bytes: ccob::compress(&bytes, &options).expect("is small"), images })
}

/// Makes an offload binary: version 1 with one image, versions 2 and 3 with any number, version 3 perhaps compressed.
fn package(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    let version: u32 = u.int_in_range(1..=3)?;
    let (images, found) = match version {
        1 => payload(u, depth).map(|one| (vec![one.bytes], one.images))?,
        _ => several(u, |u| payload(u, depth))?,
    };
    let (header_len, string_len) = match version {
        1 => (32, 16),
        2 => (32, 24),
        _ => (40, 24),
    };
    // Header, entries, one string entry for each, two strings that all share, images.
    let string_entries_at = header_len + images.len() as u64 * 40;
    let strings_at = string_entries_at + images.len() as u64 * string_len;
    let mut image_at = strings_at + 16;
    let mut body = Vec::new();
    for (index, image) in (0..).zip(&images) {
        let string_at = string_entries_at + index * string_len;
        body.extend(0x0004_0002_u64.to_le_bytes());
        for number in [string_at, 1, image_at, image.len() as u64] {
            body.extend(number.to_le_bytes());
        }
        image_at = (image_at + image.len() as u64).next_multiple_of(8);
    }
    for _ in &images {
        let numbers = [strings_at, strings_at + 5, 6];
        let wanted = if version == 1 { 2 } else { 3 };
        body.extend(numbers.iter().take(wanted).flat_map(|number| number.to_le_bytes()));
    }
    body.extend(b"arch\0gfx906\0\0\0\0\0");
    for image in &images {
        body.extend(image);
        body.resize(body.len().next_multiple_of(8), 0);
    }

    let size = header_len + body.len() as u64;
    let extent = if version == 1 { 40 } else { images.len() as u64 };
    let mut numbers = vec![size, header_len, extent];
    if version == 3 {
        let is_compressed = u.arbitrary()?;
        numbers.push(if is_compressed { size } else { 0 });
        if is_compressed {
            let method = *u.choose(&[Method::ZLIB, Method::ZSTD])?;
            let options = WriteOptions::default().with_method(method);
            body = ccob::compress_stream(&body, &options).expect("is small");
            // The padding is not part of the size.
            numbers[0] = header_len + body.len() as u64;
            body.resize(body.len().next_multiple_of(8), 0);
        }
    }
    let mut bytes = offload_binary::MAGIC.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend(body);
    Ok(File { bytes, images: found })
}

/// Returns a 64-bit object whose sections are all named `.hip_fatbin`.
fn elf(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    const NAMES: &[u8] = b"\0.hip_fatbin\0";
    let (sections, images) = several(u, |u| sequence(u, depth))?;
    let mut bytes = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut header = |name: u32, kind: u32, at: usize, len: usize| {
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for number in [0, 0, at as u64, len as u64, 0, 1, 0] {
            headers.extend(number.to_le_bytes());
        }
        headers.truncate(headers.len() - 8);
        headers.extend(0_u64.to_le_bytes());
    };
    for section in &sections {
        header(1, 1, bytes.len(), section.len());
        bytes.extend(section);
    }
    header(0, 3, bytes.len(), NAMES.len());
    bytes.extend(NAMES);
    let count = (sections.len() + 2) as u16;
    let headers_at = bytes.len() as u64;
    bytes.extend(headers);

    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes[16..20].copy_from_slice(&[1, 0, 62, 0]);
    bytes[20] = 1;
    bytes[40..48].copy_from_slice(&headers_at.to_le_bytes());
    bytes[52] = 64;
    bytes[58] = 64;
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    Ok(File { bytes, images })
}

/// Returns a GNU archive.
fn archive(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    let (members, images) = several(u, |u| match depth {
        0 => sequence(u, 0),
        depth => file(u, depth - 1),
    })?;
    let mut bytes = b"!<arch>\n".to_vec();
    for member in members {
        bytes.extend(format!("{:<16}{:<32}{:<10}`\n", "member.o/", "0", member.len()).bytes());
        bytes.extend(&member);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    Ok(File { bytes, images })
}
