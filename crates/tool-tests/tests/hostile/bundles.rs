//! Binary bundles.

use samples::bundle::{GFX90A, GFX906, HOST, bundle, bundle_of};
use samples::{find, longs, with};

use super::{Family, Form, Held, Truth, WILD, held, joined};

const ONE: &[u8] = b"code object for gfx906";
const TWO: &[u8] = b"code object for gfx90a, longer";

/// A bundle for two processors and an empty host, and what it holds.
pub fn sample() -> (Vec<u8>, Vec<Held>) {
    let bytes = bundle(&[(HOST, b""), (GFX906, ONE), (GFX90A, TWO)], 16);
    (bytes, vec![held(HOST, b""), held(GFX906, ONE), held(GFX90A, TWO)])
}

pub fn fields() -> Family {
    let mut family = Family::new("bundles", Form::Bundle);
    let (base, images) = sample();
    let size = base.len() as u64;
    let first = 32 + 24 + HOST.len();
    let second = first + 24 + GFX906.len();
    let header = (second + 24 + GFX90A.len()) as u64;
    let one_at = find(&base, ONE) as u64;
    let two_at = find(&base, TWO) as u64;

    family.refused("magic alone", base[..24].to_vec());
    family.holds("no entries", with(&base[..32], 24, &longs(&[0])), &[]);
    let counts = [0, 1, 2, 4, 5, size / 25, size, 1 << 31, (1 << 32) + 3, 1 << 56, 1 << 61];
    family.field("count", &base, 24, &[&counts[..], &WILD].concat());

    for (nth, at, payload) in [(1, first, ONE), (2, second, TWO)] {
        let len = payload.len() as u64;
        let name = |what: &str| format!("entry {nth} {what}");
        let offsets = [0, 1, 24, 31, 32, header - 1, size - len + 1, size - 1, size, size + 1];
        family.field(&name("at"), &base, at, &[&offsets[..], &WILD].concat());
        let wraps =
            [0_u64.wrapping_sub(len), 0_u64.wrapping_sub(len - 1), 0_u64.wrapping_sub(len + 8)];
        family.field(&name("wraps round: at"), &base, at, &wraps);
        let sizes = [size, size + 1, size - one_at + 1];
        family.field(&name("of size"), &base, at + 8, &[&sizes[..], &WILD].concat());
        let own_at = if nth == 1 { one_at } else { two_at };
        let wraps = [0_u64.wrapping_sub(own_at), 0_u64.wrapping_sub(own_at - 32)];
        family.field(&name("wraps round: size"), &base, at + 8, &wraps);
        // The last ID may end early: nobody says what is between the table and the first image.
        let short: &[u64] = if nth == 1 { &[1, 22] } else { &[] };
        let lens = [0, size, size + 1, 0_u64.wrapping_sub(24), 0_u64.wrapping_sub(at as u64 + 24)];
        family.field(&name("ID of length"), &base, at + 16, &[short, &lens[..], &WILD].concat());
    }
    // The first one is damaged: LLVM has seen nothing by then.
    family.field("entry 0 at", &base, 32, &[size + 1, 1 << 32, u64::MAX]);
    family.field("entry 0 of size", &base, 40, &[size, 1 << 63, u64::MAX]);
    family.field("entry 0 ID of length", &base, 48, &[0, 1, size, 1 << 63, u64::MAX]);
    let empty = [held(HOST, b""), held(GFX906, b""), held(GFX90A, TWO)];
    family.holds("empty entry at 0", with(&base, first, &longs(&[0, 0])), &empty);
    family.holds("empty entry at the end", with(&base, first, &longs(&[size, 0])), &empty);
    family.field(
        "empty entry beyond the end: at",
        &with(&base, first + 8, &longs(&[0])),
        first,
        &[size + 1, u64::MAX],
    );
    family.field(
        "entry 1 is entry 2: at",
        &with(&base, first + 8, &longs(&[TWO.len() as u64])),
        first,
        &[two_at],
    );
    family.field("entry 1 reaches into entry 2: size", &base, first + 8, &[two_at - one_at + 1]);
    family.field(
        "entry 2 starts in entry 1: at",
        &base,
        second,
        &[one_at + 1, one_at + ONE.len() as u64 - 1],
    );

    let swapped = with(&base, first, &longs(&[two_at, TWO.len() as u64]));
    let swapped = with(&swapped, second, &longs(&[one_at, ONE.len() as u64]));
    family.holds(
        "images in another order",
        swapped,
        &[held(HOST, b""), held(GFX906, TWO), held(GFX90A, ONE)],
    );
    let apart = bundle(&[(GFX906, ONE), (GFX90A, TWO)], 65_536);
    family.holds("64 KiB between images", apart, &[held(GFX906, ONE), held(GFX90A, TWO)]);
    family.holds("as it should be", base, &images);
    let many: Vec<_> = (0..3000).map(|n| format!("hipv4-amdgcn-amd-amdhsa--gfx{n}")).collect();
    let entries: Vec<_> = many.iter().map(|id| (id.as_str(), ONE)).collect();
    let images: Vec<_> = many.iter().map(|id| held(id, ONE)).collect();
    family.holds("three thousand entries", bundle(&entries, 1), &images);
    let magic =
        b"in the image: __CLANG_OFFLOAD_BUNDLE__, and CCOB\x03\0\x01\0, and \x10\xff\x10\xad";
    family.holds("magics in an image", bundle(&[(GFX906, magic)], 1), &[held(GFX906, magic)]);
    family
}

pub fn ids() -> Family {
    let mut family = Family::new("bundle entry IDs", Form::Bundle);
    let twice = bundle(&[(GFX906, ONE), (GFX906, TWO)], 1);
    family.holds("twice", twice, &[held(GFX906, ONE), held(GFX906, TWO)]);
    let on = format!("{GFX906}:xnack+");
    let conflict = bundle(&[(GFX906, ONE), (&on, TWO)], 1);
    family.holds("conflicting", conflict, &[held(GFX906, ONE), held(&on, TWO)]);
    let long = format!("{GFX906}{}", "-x".repeat(50_000));
    for id in [
        "x",
        "-",
        "hip",
        "host",
        "----",
        "-----",
        "hipv4-amdgcn-amd-amdhsa-gfx906",
        "hipv4-amdgcn-amd-amdhsa--",
        "hipv4-amdgcn-amd-amdhsa--gfx906:",
        "hipv4-amdgcn-amd-amdhsa--gfx906::",
        "hipv4-amdgcn-amd-amdhsa--gfx906:xnack",
        "hipv4-amdgcn-amd-amdhsa--gfx906:+",
        "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc+:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx999",
        "hipv4-amdgcn-amd-amdhsa--gfx906 ",
        " hipv4-amdgcn-amd-amdhsa--gfx906",
        "HIPV4-AMDGCN-AMD-AMDHSA--GFX906",
        "hipv4-amdgcn-amd-amdhsa--gfx906\0",
        "hipv4-amdgcn-amd-amdhsa--gfx906\nhost-x86_64-unknown-linux-gnu-",
        "hipv4-amdgcn-amd-amdhsa--gfx906\r",
        "hipv4-amdgcn-amd-amdhsa--\u{1b}]0;x\u{7}gfx906",
        "hipv4-amdgcn-amd-amdhsa--\u{202e}609xfg",
        "../../../../../../tmp/offload-hostile",
        "hipv4-amdgcn-amd-amdhsa--../../../../tmp/offload-hostile",
        "/tmp/offload-hostile",
        "%s%s%s%n",
        &long,
    ] {
        let bytes = bundle(&[(id, ONE)], 1);
        let name: String = id.chars().take(60).collect();
        family.holds(format!("{name:?}"), bytes, &[held(id, ONE)]);
    }
    let binary = bundle_of(&[(b"hipv4-amdgcn-amd-amdhsa--gfx906\xff\xfe", ONE)], 1);
    family.holds(
        "not UTF-8",
        binary,
        &[held("hipv4-amdgcn-amd-amdhsa--gfx906\u{fffd}\u{fffd}", ONE)],
    );
    family
}

pub fn sequences() -> Family {
    let mut family = Family::new("bundles in a row", Form::Bundle);
    let (first, images) = sample();
    let second = bundle(&[(GFX906, TWO)], 1);
    let both = [&images[..], &[held(GFX906, TWO)]].concat();
    family.holds("two", joined(&[&first, &second]), &both);
    for zeros in [1, 7, 4096] {
        let zeros = vec![0; zeros];
        family.holds(
            format!("{} zeros after the end", zeros.len()),
            joined(&[&first, &zeros]),
            &images,
        );
        family.holds(
            format!("{} zeros between", zeros.len()),
            joined(&[&first, &zeros, &second]),
            &both,
        );
    }
    for junk in
        [&b"x"[..], b"\n", b"__CLANG_OFFLOAD_BUNDLE", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"ELF"]
    {
        family.refused(format!("{} after the end", junk.escape_ascii()), joined(&[&first, junk]));
        family
            .refused(format!("{} between", junk.escape_ascii()), joined(&[&first, junk, &second]));
    }
    let last = with(&second, 32, &longs(&[1 << 40]));
    family.refused("the second is malformed", joined(&[&first, &last]));
    family.add("junk in front", joined(&[b"junk", &first]), Truth::Any);
    let nested = bundle(&[(GFX90A, &second)], 1);
    let inner = Held { inner: true, ..held(GFX906, TWO) };
    family.holds("a bundle in a bundle", nested, &[held(GFX90A, &second), inner]);
    let inside = with(&second, 32, &longs(&[u64::MAX]));
    family.refused_inside("a malformed bundle in a bundle", bundle(&[(GFX90A, &inside)], 1));
    let mut deep = second;
    let mut layers = vec![held(GFX906, TWO)];
    for _ in 0..12 {
        layers.insert(0, held(GFX90A, &deep));
        deep = bundle(&[(GFX90A, &deep)], 1);
    }
    layers.iter_mut().skip(1).for_each(|layer| layer.inner = true);
    family.holds("twelve deep", deep.clone(), &layers);
    for _ in 0..500 {
        deep = bundle(&[(GFX90A, &deep)], 1);
    }
    family.add("five hundred deep", deep, Truth::Any);
    family
}
