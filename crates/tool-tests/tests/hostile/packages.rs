//! Packages: `llvm-offload-binary`'s containers, versions 1 and 2.

use samples::binary::{ENTRY, v1, v2};
use samples::{find, longs, with};

use super::{Family, Form, Held, WILD, held, joined};

const IMAGE: &[u8] = b"the image for gfx906";
const OTHER: &[u8] = b"the image for gfx90a, longer";
const STRINGS: &[(&str, &str)] = &[("arch", "gfx906"), ("triple", "amdgcn-amd-amdhsa")];
const OTHERS: &[(&str, &str)] = &[("arch", "gfx90a"), ("triple", "amdgcn-amd-amdhsa")];

/// A package of version 1 for `gfx906`, and what it holds.
pub fn sample() -> (Vec<u8>, Vec<Held>) {
    (v1(IMAGE, STRINGS), vec![held("gfx906", IMAGE)])
}

/// One of version 2 with two images.
pub fn sample_2() -> (Vec<u8>, Vec<Held>) {
    (v2(&[(IMAGE, STRINGS), (OTHER, OTHERS)]), vec![held("gfx906", IMAGE), held("gfx90a", OTHER)])
}

/// Adds offload binaries that are hostile in the same way in both versions. Strings start at `strings_at`, images at
/// `image_at`.
fn common(family: &mut Family, base: &[u8], strings_at: usize, image_at: usize, images: &[Held]) {
    let size = base.len() as u64;
    family.refused("magic alone", base[..4].to_vec());
    for version in [0_u32, 3, 0x0100_0000, u32::MAX] {
        family.refused(format!("version {version}"), with(base, 4, &version.to_le_bytes()));
    }
    let sizes = [0, 1, 7, 8, 31, 32, 39, 40, 72, size - 8, size - 1, size + 1, size + 8];
    family.field("size", base, 8, &[&sizes[..], &WILD].concat());
    let offsets = [0, 1, 8, 24, 31, 33, 36, 64, 72, size - 40, size - 39, size - 1, size, size + 8];
    family.field("entries at", base, 16, &[&offsets[..], &WILD].concat());
    let wraps = [u64::MAX - 39, u64::MAX - 31, u64::MAX << 5];
    family.field("entries wrap round: at", base, 16, &wraps);

    for (field, name, values) in [
        (0, "image kind", &[0_u16, 2, 5, 7, 0x7fff, 0xffff][..]),
        (2, "offload kind", &[0, 1, 3, 5, 16, 0xffff]),
        (6, "flags", &[0x8000, 0xffff]),
    ] {
        for value in values {
            let bytes = with(base, ENTRY + field, &value.to_le_bytes());
            family.holds(format!("{name} {value}"), bytes, images);
        }
    }

    let first = strings_at as u64;
    let offsets = [0, 8, 31, 32, 40, first - 8, first + 4, size - 8, size - 1, size, size + 1];
    family.field("strings at", base, ENTRY + 8, &[&offsets[..], &WILD].concat());
    let counts = [size / 16, size, 1 << 31, (1 << 60) - 1];
    family.field("count of strings", base, ENTRY + 16, &[&counts[..], &WILD].concat());
    // Times 16 or 24 they come to as many bytes as there are, or none.
    let wraps = [1 << 60, (1 << 60) + 2, (1 << 61) + 2, 0x0aaa_aaaa_aaaa_aaac, 1 << 62];
    family.field("count of strings wraps round:", base, ENTRY + 16, &wraps);

    let image = image_at as u64;
    let length = images[0].bytes.len() as u64;
    let offsets =
        [0, 4, 31, 32, 64, first, image - 16, size - length + 1, size - 1, size, size + 8];
    family.field("image at", base, ENTRY + 24, &[&offsets[..], &WILD].concat());
    let wraps = [0_u64.wrapping_sub(length), 0_u64.wrapping_sub(length - 1), u64::MAX - length];
    family.field("image wraps round: at", base, ENTRY + 24, &wraps);
    let sizes = [size - image + 1, size - image + 8, size, size + 1];
    family.field("image of size", base, ENTRY + 32, &[&sizes[..], &WILD].concat());
    let wraps = [0_u64.wrapping_sub(image), 0_u64.wrapping_sub(image - 8)];
    family.field("image wraps round: size", base, ENTRY + 32, &wraps);

    for (name, at) in [("key", strings_at), ("value", strings_at + 8)] {
        let offsets = [0, 8, 32, 64, first, first + 8, image, image + 3, size, size + 1];
        family.field(&format!("{name} at"), base, at, &[&offsets[..], &WILD].concat());
    }
}

pub fn version_1() -> Family {
    let mut family = Family::new("packages, version 1", Form::Package);
    let (base, images) = sample();
    let size = base.len() as u64;
    let image_at = base.len() - 24;
    common(&mut family, &base, 72, image_at, &images);
    family.refused("version 2, laid out as version 1", with(&base, 4, &[2]));
    for entry_size in [0, 1, 39, 41, 48, size - 32] {
        let bytes = with(&base, 24, &longs(&[entry_size]));
        family.holds(format!("entry size {entry_size}"), bytes, &images);
    }
    family.field("entry size", &base, 24, &[size - 31, size, 1 << 32, 1 << 63, u64::MAX]);

    let without_strings = [held("", IMAGE)];
    family.holds("no strings", with(&base, ENTRY + 16, &longs(&[0])), &without_strings);
    let nowhere = with(&base, ENTRY + 8, &longs(&[u64::MAX, 0]));
    family.holds("no strings, beyond the end", nowhere, &without_strings);
    family.holds("empty image", with(&base, ENTRY + 32, &longs(&[0])), &[held("gfx906", b"")]);
    let part = [held("gfx906", &IMAGE[1..2])];
    let at = longs(&[image_at as u64 + 1, 1]);
    family.holds("image of one byte, at an odd offset", with(&base, ENTRY + 24, &at), &part);
    let padding = [held("gfx906", &base[image_at..])];
    family.holds("image with the padding", with(&base, ENTRY + 32, &longs(&[24])), &padding);
    family.holds("value is the last byte", with(&base, 80, &longs(&[size - 1])), &without_strings);

    // The string table in the last place, and not ended.
    let mut open = v1(b"", &[("arch", "gfx906")]);
    open.truncate(88);
    open.extend(b"arch\0gfx906_open");
    let open = with(&with(&open, 8, &longs(&[104])), 72, &longs(&[88, 93]));
    family.refused("value without its NUL", with(&open, ENTRY + 24, &longs(&[104, 0])));
    let key = with(&with(&open, 72, &longs(&[93])), 92, b"\0");
    family.refused("key without its NUL", with(&key, ENTRY + 24, &longs(&[104, 0])));
    let many: Vec<(String, String)> =
        (0..500).map(|n| (format!("key{n}"), "x".repeat(n))).collect();
    let mut strings: Vec<_> = many.iter().map(|(k, v)| (&**k, &**v)).collect();
    strings.push(("arch", "gfx906"));
    family.holds("five hundred strings", v1(IMAGE, &strings), &images);
    family.holds("empty key", v1(IMAGE, &[("", "x"), ("arch", "gfx906")]), &images);
    for arch in ["gfx906:xnack+", "gfx906 \u{1b}[2J", "gfx906\nFILE", "\u{202e}609xfg", "%s%n"] {
        let bytes = v1(IMAGE, &[("arch", arch)]);
        family.holds(format!("arch {arch:?}"), bytes, &[held(arch, IMAGE)]);
    }
    let long = "gfx906".repeat(20_000);
    family.holds("arch of 120000 bytes", v1(IMAGE, &[("arch", &long)]), &[held(&long, IMAGE)]);
    let inner = v1(OTHER, OTHERS);
    let nested = [held("gfx906", &inner), Held { inner: true, ..held("gfx90a", OTHER) }];
    family.holds("a package in a package", v1(&inner, STRINGS), &nested);
    let broken = with(&inner, ENTRY + 32, &longs(&[1 << 40]));
    let broken = v1(&broken, STRINGS);
    family.add("a broken package in a package", broken, super::Truth::Any);
    family
}

pub fn version_2() -> Family {
    let mut family = Family::new("packages, version 2", Form::Package);
    let (base, images) = sample_2();
    let size = base.len() as u64;
    let strings_at = 32 + 80;
    let image_at = find(&base, IMAGE);
    common(&mut family, &base, strings_at, image_at, &images);
    family.refused("version 1, laid out as version 2", with(&base, 4, &[1]));
    let counts = [3, size / 40, size, 1 << 58, (1 << 60) - 1, 0x0666_6666_6666_6667];
    family.field("count", &base, 24, &[&counts[..], &WILD].concat());
    // Times 40 they come to 0, 16 and 40.
    let wraps = [1 << 61, 0x0666_6666_6666_6666 + 1, (1 << 61) + 1, (1 << 61) + 2];
    family.field("count wraps round:", &base, 24, &wraps);
    family.holds("count 1, the second not counted", with(&base, 24, &longs(&[1])), &images[..1]);
    family.holds("count 0 in a larger one", with(&base, 24, &longs(&[0])), &[]);
    let mut empty = base[..40].to_vec();
    empty[32..].fill(0);
    let empty = with(&with(&empty, 24, &longs(&[0])), 8, &longs(&[40]));
    family.holds("count 0, as LLVM 23 writes it", empty, &[]);

    let sizes = [size, size + 1];
    family.field("size of value", &base, strings_at + 16, &[&sizes[..], &WILD].concat());
    let nul = v2(&[(IMAGE, &[("arch", "gfx\0906")])]);
    family.holds("value with a NUL in it", nul, &[held("gfx\0906", IMAGE)]);
    let second = ENTRY + 40;
    family.field("second image in the first: at", &base, second + 24, &[image_at as u64 + 1]);
    family.field("second image is the first: at", &base, second + 24, &[image_at as u64]);
    family.field(
        "second image's strings are the first's: at",
        &base,
        second + 8,
        &[strings_at as u64],
    );
    let many: Vec<_> = (0..2000).map(|_| (IMAGE, STRINGS)).collect();
    family.holds("two thousand images", v2(&many), &vec![held("gfx906", IMAGE); 2000]);
    family
}

pub fn sequences() -> Family {
    let mut family = Family::new("packages in a row", Form::Package);
    let ((first, one), (second, two)) = (sample(), sample_2());
    let other = v1(OTHER, OTHERS);
    let both = [held("gfx906", IMAGE), held("gfx90a", OTHER)];
    family.holds("two", joined(&[&first, &other]), &both);
    family.holds("versions 1 and 2", joined(&[&first, &second]), &[&one[..], &two].concat());
    family.holds("versions 2 and 1", joined(&[&second, &first]), &[&two[..], &one].concat());
    for zeros in [1, 4, 7, 8, 4096] {
        let zeros = vec![0; zeros];
        let name = |place| format!("{} zeros {place}", zeros.len());
        family.holds(name("behind"), joined(&[&first, &zeros]), &one);
        family.holds(name("between"), joined(&[&first, &zeros, &other]), &both);
    }
    for junk in [&b"x"[..], b"\n", b"\x10\xff\x10", b"\x10\xff\x10\xad", b"CCOB", &[0xff; 72]] {
        let name = junk.escape_ascii();
        family.refused(format!("{name} after the end"), joined(&[&first, junk]));
        family.refused(format!("{name} between"), joined(&[&first, junk, &other]));
    }
    let lies = with(&first, 8, &longs(&[first.len() as u64 + 8]));
    family.refused("the first reaches into the second", joined(&[&lies, &other]));
    let lies = with(&first, 8, &longs(&[(first.len() + other.len()) as u64]));
    family.add("the first is as long as both", joined(&[&lies, &other]), super::Truth::Any);
    let hundred: Vec<u8> = (0..500).flat_map(|_| first.clone()).collect();
    family.holds("five hundred", hundred, &vec![held("gfx906", IMAGE); 500]);
    family
}
