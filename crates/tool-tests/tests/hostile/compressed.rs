//! Compressed bundles.

use ccob::{Method, Version, WriteOptions};
use samples::bundle::{GFX906, bundle};
use samples::{longs, with};

use super::bundles::sample as plain;
use super::{Family, Form, Held, Truth, held, joined};

const VERSIONS: [Version; 3] = [Version::V1, Version::V2, Version::V3];

/// Returns the offsets of the total size, the uncompressed size, the hash and the stream in a version, and the width of
/// sizes.
fn places(version: Version) -> (Option<usize>, usize, usize, usize, usize) {
    match version {
        Version::V1 => (None, 8, 12, 20, 4),
        Version::V2 => (Some(8), 12, 16, 24, 4),
        _ => (Some(8), 16, 24, 32, 8),
    }
}

/// A compressed bundle of `contents`.
pub fn packed(contents: &[u8], version: Version, method: Method) -> Vec<u8> {
    let options = WriteOptions::default().with_version(version).with_method(method);
    ccob::compress(contents, &options).unwrap()
}

/// One of version 3 with zstd, and what it holds.
pub fn sample() -> (Vec<u8>, Vec<Held>) {
    let (bytes, images) = plain();
    (packed(&bytes, Version::V3, Method::ZSTD), images)
}

fn each() -> impl Iterator<Item = (Version, Method, String)> {
    VERSIONS.into_iter().flat_map(|version| {
        [Method::ZLIB, Method::ZSTD].into_iter().map(move |method| {
            (version, method, format!("version {version:?}, {}: ", method.name().unwrap()))
        })
    })
}

pub fn headers() -> Family {
    let mut family = Family::new("compressed bundles, headers", Form::CompressedBundle);
    let (contents, images) = plain();
    for (version, method, name) in each() {
        let base = packed(&contents, version, method);
        let (total_at, size_at, hash_at, stream_at, width) = places(version);
        let (total, size) = (base.len() as u64, contents.len() as u64);
        let wild: Vec<u64> = [1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 63, u64::MAX]
            .into_iter()
            .filter(|value| width == 8 || u32::try_from(*value).is_ok())
            .collect();
        let mut lies = |what: &str, at: usize, values: &[u64]| {
            for value in values.iter().chain(&wild) {
                let bytes = with(&base, at, &value.to_le_bytes()[..width]);
                family.refused(format!("{name}{what} {value:#x}"), bytes);
            }
        };
        if let Some(at) = total_at {
            let stream = stream_at as u64;
            lies(
                "total size",
                at,
                &[0, 1, 8, stream - 1, stream, stream + 1, total - 1, total + 1, total + 4096],
            );
        }
        lies("uncompressed size", size_at, &[0, 1, size - 1, size + 1, 2 * size, 1 << 24]);
        for hash in [0, u64::MAX] {
            let bytes = with(&base, hash_at, &longs(&[hash]));
            family.refused(format!("{name}hash {hash:#x}"), bytes);
        }
        family.refused(
            format!("{name}one bit of the hash"),
            with(&base, hash_at, &[base[hash_at] ^ 1]),
        );
        for other in [0_u16, 4, 0x100, 0xffff] {
            family
                .refused(format!("{name}as version {other}"), with(&base, 4, &other.to_le_bytes()));
        }
        for other in VERSIONS.into_iter().filter(|other| *other != version) {
            let bytes = with(&base, 4, &[other as u8 + 1]);
            if bytes != base {
                family.refused(format!("{name}as version {other:?}"), bytes);
            }
        }
        for other in [1 - method.0, 2, 0xff, 0xffff] {
            family
                .refused(format!("{name}as method {other}"), with(&base, 6, &other.to_le_bytes()));
        }
        for len in [4, 5, 6, 7, 8, stream_at - 1, stream_at, stream_at + 1, base.len() - 1] {
            family.refused(format!("{name}cut to {len} bytes"), base[..len].to_vec());
        }
        family.holds(format!("{name}as it should be"), base, &images);
    }
    family
}

/// Returns a zstd frame with this many bytes of content, of blocks that repeat a zero.
fn zeros(len: u64, content_size: Option<u64>) -> Vec<u8> {
    const BLOCK: u64 = 128 << 10;
    let mut frame = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    match content_size {
        // Eight bytes of size, one segment; or a window of 128 KiB.
        Some(size) => frame.extend([&[0xe0][..], &longs(&[size])].concat()),
        None => frame.extend([0, 7 << 3]),
    }
    let mut left = len;
    while left > 0 {
        let now = left.min(BLOCK);
        left -= now;
        let head = u32::from(left == 0) | 1 << 1 | (now as u32) << 3;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// Version 3, zstd, with a stream and a promise.
fn around(stream: &[u8], size: u64, hash: u64) -> Vec<u8> {
    let mut bytes = b"CCOB\x03\0\x01\0".to_vec();
    bytes.extend(longs(&[32 + stream.len() as u64, size, hash]));
    bytes.extend(stream);
    bytes
}

/// A zstd frame of stored blocks.
fn stored(contents: &[u8]) -> Vec<u8> {
    let mut frame = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    frame.extend([0xe0]);
    frame.extend(longs(&[contents.len() as u64]));
    let head = 1 | (contents.len() as u32) << 3;
    frame.extend(&head.to_le_bytes()[..3]);
    frame.extend(contents);
    frame
}

pub fn streams() -> Family {
    let mut family = Family::new("compressed bundles, streams", Form::CompressedBundle);
    let (contents, images) = plain();
    let (size, hash) = (contents.len() as u64, ccob::hash(&contents));
    for (version, method, name) in each() {
        let base = packed(&contents, version, method);
        let (total_at, .., stream_at, width) = places(version);
        for what in [&b"x"[..], b"CCOB", &[0xff; 40]] {
            let junk = what.escape_ascii();
            family.refused(format!("{name}{junk} after the end"), joined(&[&base, what]));
            if let Some(at) = total_at {
                // Counted as a part of it.
                let mut inside = joined(&[&base, what]);
                let total = inside.len() as u64;
                inside[at..at + width].copy_from_slice(&total.to_le_bytes()[..width]);
                family.refused(format!("{name}{junk} inside"), inside);
            }
        }
        for zeros in [1, 4096] {
            let behind = joined(&[&base, &vec![0; zeros]]);
            family.holds(format!("{name}{zeros} zeros after the end"), behind, &images);
        }
        let twice = joined(&[&base, &[0; 64], &base]);
        family.holds(format!("{name}twice"), twice, &[&images[..], &images].concat());
        let then_plain = joined(&[&base, &contents]);
        family.holds(
            format!("{name}then a plain one"),
            then_plain,
            &[&images[..], &images].concat(),
        );
        for at in [stream_at, stream_at + 4, (stream_at + base.len()) / 2, base.len() - 1] {
            let damaged = with(&base, at, &[!base[at]]);
            family.part(format!("{name}byte {at} damaged"), damaged, &images);
        }
        let other = bundle(&[(GFX906, b"other code")], 1);
        let text = packed(b"a text, and no bundle", version, method);
        family.refused(format!("{name}no bundle inside"), text);
        family.refused(format!("{name}nothing inside"), packed(b"", version, method));
        family.refused(
            format!("{name}a malformed bundle inside"),
            packed(&other[..40], version, method),
        );
        let nested = packed(&base, version, method);
        let inner: Vec<_> =
            images.iter().map(|image| Held { inner: true, ..image.clone() }).collect();
        family.holds(format!("{name}one in another"), nested, &inner);
        if method == Method::ZSTD {
            let skippable = b"\x57\x2a\x4d\x18\x04\0\0\0CCOB";
            let mut several =
                joined(&[&base[..stream_at], skippable, &base[stream_at..], skippable]);
            if let Some(at) = total_at {
                let total = several.len() as u64;
                several[at..at + width].copy_from_slice(&total.to_le_bytes()[..width]);
            }
            let twice = joined(&[&several, &several]);
            family.holds(format!("{name}skippable frames"), several, &images);
            let images = [&images[..], &images].concat();
            family.holds(format!("{name}skippable frames, twice"), twice, &images);
        }
    }
    family.holds("stored blocks", around(&stored(&contents), size, hash), &images);
    let frame = stored(&contents);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"skip"].concat();
    let (front, behind) = (joined(&[&skippable, &frame]), joined(&[&frame, &skippable]));
    family.holds("skippable frame before", around(&front, size, hash), &images);
    family.holds("skippable frame after", around(&behind, size, hash), &images);
    family.refused("skippable frame alone", around(&skippable, size, hash));
    let endless = [0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff];
    family.refused("skippable frame of 4 GiB", around(&endless, size, hash));
    let halves = [stored(&contents[..100]), stored(&contents[100..])].concat();
    family.holds("two frames", around(&halves, size, hash), &images);
    family.refused("no frame", around(b"", size, hash));
    family.refused("frame without blocks", around(&frame[..13], size, hash));

    let mib = 1 << 20;
    family.refused("64 MiB of zeros", around(&zeros(64 * mib, Some(64 * mib)), 64 * mib, 0));
    family.refused("1 GiB, said to be 1 MiB", around(&zeros(1024 * mib, None), mib, 0));
    family
        .refused("1 GiB, said to be 1 MiB by both", around(&zeros(1024 * mib, Some(mib)), mib, 0));
    family.refused("1 MiB, said to be 1 GiB", around(&zeros(mib, None), 1024 * mib, 0));
    family.refused(
        "1 MiB, said to be 1 GiB by the frame",
        around(&zeros(mib, Some(1024 * mib)), mib, 0),
    );
    family.refused(
        "1 MiB, said to be 1 TiB by both",
        around(&zeros(mib, Some(mib << 20)), mib << 20, 0),
    );
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 1, 0, 0];
    family.refused("window of 3.75 TiB", around(&window, size, hash));
    let dictionary = [0x28, 0xb5, 0x2f, 0xfd, 3, 0x38, 1, 2, 3, 4, 1, 0, 0];
    family.refused("a dictionary that nobody has", around(&dictionary, size, hash));
    let mut deep = contents;
    for _ in 0..100 {
        deep = packed(&deep, Version::V3, Method::ZSTD);
    }
    family.add("a hundred deep", deep, Truth::Any);
    let empty = held(GFX906, b"");
    let tiny = bundle(&[(GFX906, b"")], 1);
    let row: Vec<u8> = (0..300).flat_map(|_| packed(&tiny, Version::V3, Method::ZSTD)).collect();
    family.holds("three hundred in a row", row, &vec![empty; 300]);
    family
}
