//! Behaviour of LLVM's tools beyond the format: the order of strings, and the kind of an image by its file's name.
//!
//! A tool that is to write the same bytes as LLVM's needs this module. Nothing else does.

mod hash22;

use alloc::vec;
use alloc::vec::Vec;

use twox_hash::XxHash3_64;

use crate::ImageKind;

/// A release of LLVM whose tool is to be matched.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Release {
    /// LLVM 22, which writes version 1.
    Llvm22,
    /// LLVM 23, which writes version 2.
    Llvm23,
    /// LLVM 24, which writes version 3. It stores strings in the order of LLVM 23.
    Llvm24,
}

/// The numbers that the releases mix into hashes when they are built without checks of the ABI.
const SEED: u64 = 0xff51_afd7_ed55_8ccd;

/// Returns the order in which `llvm-offload-binary` of `release` stores the strings of one `--image`.
///
/// `keys` are the distinct keys of the option in the order in which they first appear, `file` and
/// `kind` included: these two are not stored, but take part in the placing of the others. Returns
/// the indexes in `keys` of the keys that are stored, in stored order. Repeated keys are passed
/// over.
///
/// The tool collects keys in a hash table and stores them as they lie there, which no
/// documentation promises. As release builds of LLVM 22.1, 23.1 and 24 behave; builds with checks of
/// the ABI have an order of their own in each run. With `Llvm22` a key of more than 64 bytes is
/// placed by its first 64 bytes, which is not where LLVM places it.
///
/// ```
/// use offload_binary::llvm::{Release, string_order};
///
/// // --image=file=a.o,triple=amdgcn-amd-amdhsa,arch=gfx90a,feature=+xnack,kind=hip
/// let keys = ["file", "triple", "arch", "feature", "kind"];
/// assert_eq!(string_order(Release::Llvm22, &keys), [3, 2, 1]);
/// assert_eq!(string_order(Release::Llvm23, &keys), [2, 1, 3]);
/// ```
#[must_use]
pub fn string_order<K: AsRef<[u8]>>(release: Release, keys: &[K]) -> Vec<usize> {
    let mut table = Table { release, buckets: vec![None; 64], len: 0 };
    for (index, key) in keys.iter().enumerate() {
        let hash = hash(release, key.as_ref());
        let is_key = |slot: &Slot| {
            slot.hash == hash
                && keys.get(slot.index).is_some_and(|other| other.as_ref() == key.as_ref())
        };
        table.insert(Slot { hash, index }, is_key);
    }
    let stored = |index: &usize| {
        keys.get(*index).is_some_and(|key| !matches!(key.as_ref(), b"file" | b"kind"))
    };
    table.buckets.into_iter().flatten().map(|slot| slot.index).filter(stored).collect()
}

/// Returns the kind that LLVM's packager of `release` gives an image that starts with `prefix`, in a file of this name:
/// [by its magic](ImageKind::from_magic), or else by the text after the last dot of the name, even in `.o` alone, or
/// else [`NONE`](ImageKind::NONE). LLVM 22 does not know `spv`.
///
/// ```
/// use offload_binary::ImageKind;
/// use offload_binary::llvm::{Release, image_kind};
///
/// assert_eq!(image_kind(Release::Llvm23, b"BC\xc0\xde", "a.o"), ImageKind::BITCODE);
/// assert_eq!(image_kind(Release::Llvm23, b"", "a.spv"), ImageKind::SPIRV);
/// ```
#[must_use]
pub fn image_kind(release: Release, prefix: &[u8], file_name: &str) -> ImageKind {
    let by_name = || {
        let (_, extension) = file_name.rsplit_once('.')?;
        Some(match extension {
            "o" => ImageKind::OBJECT,
            "bc" => ImageKind::BITCODE,
            "cubin" => ImageKind::CUBIN,
            "fatbin" => ImageKind::FATBINARY,
            "s" => ImageKind::PTX,
            "spv" if release != Release::Llvm22 => ImageKind::SPIRV,
            _ => return None,
        })
    };
    ImageKind::from_magic(prefix).or_else(by_name).unwrap_or(ImageKind::NONE)
}

/// Returns the low half of the hash, the only part that the table uses.
fn hash(release: Release, key: &[u8]) -> u32 {
    let hash = match release {
        Release::Llvm22 => hash22::hash(key),
        Release::Llvm23 | Release::Llvm24 => XxHash3_64::oneshot(key) ^ SEED,
    };
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A key in the table.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    index: usize,
}

/// An open-addressing hash table that nothing is ever removed from.
struct Table {
    release: Release,
    /// A power of two of them, at least a quarter free.
    buckets: Vec<Option<Slot>>,
    len: usize,
}

impl Table {
    /// Adds a key unless it is there.
    fn insert(&mut self, slot: Slot, is_key: impl Fn(&Slot) -> bool) {
        let mut bucket = self.find(slot.hash, &is_key);
        if self.buckets.get(bucket).is_some_and(Option::is_some) {
            return;
        }
        self.len += 1;
        if self.len * 4 >= self.buckets.len() * 3 {
            self.grow();
            bucket = self.find(slot.hash, &is_key);
        }
        self.put(bucket, slot);
    }

    /// Doubles the buckets; keys move in the order of the old ones.
    fn grow(&mut self) {
        let buckets = vec![None; self.buckets.len() * 2];
        for slot in core::mem::replace(&mut self.buckets, buckets).into_iter().flatten() {
            let bucket = self.find(slot.hash, |_| false);
            self.put(bucket, slot);
        }
    }

    /// Returns the bucket of the key, or the free one where it belongs.
    fn find(&self, hash: u32, is_key: impl Fn(&Slot) -> bool) -> usize {
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        let mut step = 1;
        while let Some(Some(slot)) = self.buckets.get(bucket)
            && !is_key(slot)
        {
            bucket = bucket.wrapping_add(step) & mask;
            if self.release == Release::Llvm22 {
                step += 1;
            }
        }
        bucket
    }

    fn put(&mut self, bucket: usize, slot: Slot) {
        if let Some(place) = self.buckets.get_mut(bucket) {
            *place = Some(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// Keys with the hashes that `llvm-offload-binary` of LLVM 22.1.8 and 23.1.4 use. Only the
    /// low six bits can be seen from outside.
    fn hashes() -> Vec<(Vec<u8>, u32, u32)> {
        let rows: [(&[u8], usize, u32, u32); 13] = [
            (b"arch", 1, 0xf386_c709, 0xbb52_a285),
            (b"triple", 1, 0x0819_b0d8, 0xf899_1a93),
            (b"file", 1, 0xd4e6_b353, 0x05a5_5b4b),
            (b"kind", 1, 0xc820_7aa5, 0xd46e_f789),
            (b"feature", 1, 0x907b_e7c2, 0x7df0_2cb7),
            (b"producer", 1, 0x501e_46ad, 0xd758_20ff),
            (b"compile-opts", 1, 0x30e6_6573, 0x1d2e_ab15),
            (b"link-opts", 1, 0xec39_4ca6, 0x211d_5469),
            (b"version", 1, 0x1a14_4505, 0x91d2_74b6),
            (b"", 1, 0xc2c5_cc82, 0xd586_180f),
            (b"a", 17, 0x2d34_d923, 0xfb90_75e7),
            (b"a", 33, 0x696e_ebf8, 0xacd2_92c0),
            (b"a", 64, 0xcc36_6e3e, 0x9073_6241),
        ];
        rows.into_iter().map(|(key, times, a, b)| (key.repeat(times), a, b)).collect()
    }

    #[test]
    fn hashes_are_those_of_llvm() {
        for (key, llvm22, llvm23) in hashes() {
            assert_eq!(hash(Release::Llvm22, &key), llvm22, "{}", key.escape_ascii());
            for release in [Release::Llvm23, Release::Llvm24] {
                assert_eq!(hash(release, &key), llvm23, "{}", key.escape_ascii());
            }
        }
    }

    #[test]
    fn keys_are_stored_by_bucket() {
        for release in [Release::Llvm22, Release::Llvm23, Release::Llvm24] {
            assert_eq!(string_order(release, &["file", "triple", "arch", "kind"]), [2, 1]);
        }
        assert_eq!(string_order::<&str>(Release::Llvm22, &[]), []);
    }

    #[test]
    fn the_first_of_two_keys_gets_the_bucket() {
        // Both belong into bucket 2 with LLVM 22.
        assert_eq!(string_order(Release::Llvm22, &["feature", ""]), [0, 1]);
        assert_eq!(string_order(Release::Llvm22, &["", "feature"]), [0, 1]);
    }

    #[test]
    fn repeated_keys_are_skipped() {
        assert_eq!(string_order(Release::Llvm23, &["triple", "arch", "triple"]), [1, 0]);
    }

    #[test]
    fn all_of_many_keys_are_kept() {
        let count = if cfg!(miri) { 20 } else { 1000 };
        let keys: Vec<_> = (0_u32..).take(count).map(u32::to_le_bytes).collect();
        for release in [Release::Llvm22, Release::Llvm23, Release::Llvm24] {
            let mut order = string_order(release, &keys);
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn image_kinds_come_from_magic_or_name() {
        let rows = [
            ("", "x.o", 1),
            ("", ".o", 1),
            ("", "x.bc", 2),
            ("", "x.tar.cubin", 3),
            ("", "x.fatbin", 4),
            ("", "x.s", 5),
            ("", "x.spv", 6),
            ("", "x.O", 0),
            ("", "x.", 0),
            ("", "o", 0),
            ("", "dir.o/x", 0),
            ("", "-", 0),
            ("\x7fELF", "x", 0),
            ("\x7fELF", "x.cubin", 3),
        ];
        for (prefix, name, kind) in rows {
            assert_eq!(
                image_kind(Release::Llvm23, prefix.as_bytes(), name),
                ImageKind(kind),
                "{name}"
            );
        }
        for prefix in [&b"BC\xc0\xde\x35"[..], b"\xde\xc0\x17\x0b"] {
            assert_eq!(image_kind(Release::Llvm23, prefix, "x.o"), ImageKind::BITCODE);
        }
        assert_eq!(ImageKind::from_magic(b"BC\xc0"), None);
        let llvm22 = |name| image_kind(Release::Llvm22, b"", name);
        assert_eq!(llvm22("x.spv"), ImageKind::NONE);
        assert_eq!(llvm22("x.cubin"), ImageKind::CUBIN);
        for kind in (1..9).map(ImageKind) {
            let Some(extension) = kind.extension() else { continue };
            assert_eq!(image_kind(Release::Llvm23, b"", &format!("x.{extension}")), kind);
        }
    }
}
