//! Bundles, offload binaries, fatbinaries, archives.

use samples::ar::{self, member};
use samples::binary::{self, amd, v1, v2};
use samples::bundle::{MAGIC, bundle_of, text_entry};
use samples::fatbin::{Made, fatbin};

use super::long;

/// A bundle of these IDs; each has the same contents.
pub(super) fn bundle(ids: impl IntoIterator<Item = String>, contents: &[u8]) -> Vec<u8> {
    bundle_of(&ids.into_iter().map(|id| (id, contents)).collect::<Vec<_>>(), 1)
}

fn empty_entries(n: usize, id: impl Fn(usize) -> String) -> Vec<u8> {
    let len = id(n).len() + 25;
    bundle((0..n / len).map(id), b"x")
}

/// Entries for unknown processors, all different.
#[must_use]
pub fn bundle_of_unknown_processors(n: usize) -> Vec<u8> {
    empty_entries(n, |i| format!("hip-amdgcn-amd-amdhsa--gfy{i:07}"))
}

/// Entries with one ID.
#[must_use]
pub fn bundle_of_equal_ids(n: usize) -> Vec<u8> {
    empty_entries(n, |_| "hip-amdgcn-amd-amdhsa--gfx906".to_owned())
}

/// Entries for one processor, half of them with a feature.
#[must_use]
pub fn bundle_of_conflicts(n: usize) -> Vec<u8> {
    empty_entries(n, |i| {
        let feature = [":xnack+", ""].get(i % 2).copied().unwrap_or_default();
        format!("hip-amdgcn-amd-amdhsa--gfx90a{feature}")
    })
}

/// Entries for one processor with as many features as an ID can hold.
#[must_use]
pub fn bundle_of_features(n: usize) -> Vec<u8> {
    empty_entries(n, |i| {
        let features: String = (0..180).map(|f| format!(":{f:03x}+")).collect();
        format!("hip-amdgcn-amd-amdhsa--gfx906{features}:{:03x}-", i % 4096)
    })
}

/// Many entries that fit, and one after them that fits best.
#[must_use]
pub fn bundle_with_the_best_last(n: usize) -> Vec<u8> {
    let id = "hip-amdgcn-amd-amdhsa--gfx90a";
    let ids = (0..n / (id.len() + 25)).map(|_| id.to_owned());
    bundle(ids.chain([format!("{id}:xnack+")]), b"x")
}

/// One very long ID and many short ones.
#[must_use]
pub fn bundle_of_long_and_short_ids(n: usize) -> Vec<u8> {
    let id = |i: usize| format!("hip-amdgcn-amd-amdhsa--gfy{i:07}");
    let long = format!("hip-amdgcn-amd-amdhsa--{}", "g".repeat(n / 2));
    bundle([long].into_iter().chain((0..n / 2 / (id(n).len() + 25)).map(id)), b"x")
}

/// Bundles without entries.
#[must_use]
pub fn bundles_in_a_row(n: usize) -> Vec<u8> {
    bundle([], b"").repeat(n / 32)
}

/// A bundle in a bundle, and so on, deeper than anything is followed.
#[must_use]
pub fn bundles_in_bundles(n: usize) -> Vec<u8> {
    let mut bytes = vec![1; n];
    for _ in 0..64 {
        bytes = bundle(["host-x86_64-unknown-linux-gnu-".to_owned()], &bytes);
    }
    bytes
}

/// One magic after the other.
#[must_use]
pub fn magics(n: usize) -> Vec<u8> {
    let all: [&[u8]; 6] =
        [MAGIC.as_bytes(), b"CCOB", &binary::MAGIC, b"\x7fELF", ar::MAGIC, b"BC\xc0\xde"];
    all.concat().repeat(n / 48)
}

/// A text bundle of short entries.
#[must_use]
pub fn text_bundle_of_entries(n: usize) -> Vec<u8> {
    let entry = |i: usize| text_entry(&format!("hip-amdgcn-amd-amdhsa--gfy{i:07}"), "x");
    (0..n / entry(0).len()).map(entry).collect::<String>().into_bytes()
}

/// Markers that start entries which do not end.
#[must_use]
pub fn text_without_ends(n: usize) -> Vec<u8> {
    let marker = "\n# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx906\n";
    marker.repeat(n / marker.len()).into_bytes()
}

/// Lines that are markers except for their ends.
#[must_use]
pub fn text_of_long_lines(n: usize) -> Vec<u8> {
    let line = "# __CLANG_OFFLOAD_BUNDLE____START__ ";
    let mut text = text_entry("hip-amdgcn-amd-amdhsa--gfx906", "x");
    text.push_str(&line.repeat(n / line.len()));
    text.into_bytes()
}

/// Headers of compressed bundles that each claim 4 GiB.
#[must_use]
pub fn compressed_headers_in_a_row(n: usize) -> Vec<u8> {
    let mut one = b"CCOB\x03\0\x01\0".to_vec();
    one.extend([long(40), long(4 << 30), long(7)].concat());
    one.extend([0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0]);
    one.repeat(n / one.len())
}

/// A compressed bundle of `n` bytes of zlib that expands a thousandfold.
#[must_use]
pub fn zlib_bomb(n: usize) -> Vec<u8> {
    bomb(n * 1000, ccob::Method::ZLIB)
}

/// A compressed bundle of Zstandard that expands to `n` thousand bytes.
#[must_use]
pub fn zstd_bomb(n: usize) -> Vec<u8> {
    bomb(n * 1000, ccob::Method::ZSTD)
}

fn bomb(size: usize, method: ccob::Method) -> Vec<u8> {
    let mut plain = bundle(["hip-amdgcn-amd-amdhsa--gfx906".to_owned()], b"");
    plain.resize(size, 0);
    let options = ccob::WriteOptions::default().with_method(method);
    ccob::compress(&plain, &options).unwrap_or_default()
}

/// Offload binaries of one image each.
#[must_use]
pub fn packages_in_a_row(n: usize) -> Vec<u8> {
    let one = amd("gfx906", b"image");
    one.repeat(n / one.len())
}

/// Offload binaries of one image each, each for another target.
#[must_use]
pub fn packages_of_targets(n: usize) -> Vec<u8> {
    let one = |i: usize| amd(&format!("gfy{i:07}"), b"image");
    (0..n / one(0).len()).flat_map(one).collect()
}

/// An archive whose members are offload binaries of one image each, all for one target.
#[must_use]
pub fn archive_of_packages(n: usize) -> Vec<u8> {
    let one = |i: usize| {
        let image = format!("{i:08}");
        member(&format!("m{i:07}.o/"), &amd("gfx906", image.as_bytes()))
    };
    [ar::MAGIC.to_vec(), (0..n / one(0).len()).flat_map(one).collect()].concat()
}

/// A bundle of PTX with a kernel for each of many targets.
#[must_use]
pub fn bundle_of_kernels(n: usize) -> Vec<u8> {
    let id = |i: usize| format!("cuda-nvptx64-nvidia-cuda--sm_{i:07}");
    let kernel = |i: usize| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k{i:07}()\n{{\nret;\n}}\n"
        )
    };
    let count = n / (24 + id(0).len() + kernel(0).len());
    bundle_of(&(0..count).map(|i| (id(i), kernel(i))).collect::<Vec<_>>(), 1)
}

/// Offload binaries, each the image of another.
#[must_use]
pub fn packages_in_packages(n: usize) -> Vec<u8> {
    let inner = amd("gfx906", b"image");
    let one = v1(&inner, &[("arch", "gfx906")]);
    one.repeat(n / one.len())
}

/// An offload binary of version 1 with many strings.
#[must_use]
pub fn package_of_strings(n: usize) -> Vec<u8> {
    let keys: Vec<String> = (0..n / 26).map(|i| format!("k{i:06}")).collect();
    let strings: Vec<_> = keys.iter().map(|key| (key.as_str(), "v")).collect();
    v1(b"image", &strings)
}

/// An offload binary of version 2 with entries that have neither strings nor an image.
#[must_use]
pub fn package_of_entries(n: usize) -> Vec<u8> {
    v2(&vec![(b"".as_slice(), [].as_slice()); n / 40])
}

/// An NVIDIA fatbinary of empty entries.
#[must_use]
pub fn fatbinary_of_empty_entries(n: usize) -> Vec<u8> {
    fatbin(&vec![Made::cubin(80, b""); n / 64])
}

/// An archive of empty members.
#[must_use]
pub fn archive_of_empty_members(n: usize) -> Vec<u8> {
    [ar::MAGIC.to_vec(), member("a/", b"").repeat(n / 60)].concat()
}

/// An archive whose index names one member again and again.
#[must_use]
pub fn archive_with_one_symbol(n: usize) -> Vec<u8> {
    let count = n / 6;
    let index_len = 4 + 6 * count;
    let at = u32::try_from(8 + 60 + index_len.next_multiple_of(2)).unwrap_or_default();
    let mut index = u32::try_from(count).unwrap_or_default().to_be_bytes().to_vec();
    (0..count).for_each(|_| index.extend(at.to_be_bytes()));
    index.extend(b"a\0".repeat(count));
    let library = member("a.o/", &bundle(["hip-amdgcn-amd-amdhsa--gfx906".to_owned()], b"image"));
    [ar::MAGIC.to_vec(), member("/", &index), library].concat()
}

/// An archive of bundles, as of a device library.
#[must_use]
pub fn archive_of_bundles(n: usize) -> Vec<u8> {
    let ids = [
        "host-x86_64-unknown-linux-gnu-",
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx90a",
    ];
    let one = member("a.o/", &bundle(ids.map(str::to_owned), b"image"));
    [ar::MAGIC.to_vec(), one.repeat(n / one.len())].concat()
}

/// An archive of one member with a very long name, BSD's way, that holds bundles of two images.
#[must_use]
pub fn archive_with_a_long_name(n: usize) -> Vec<u8> {
    let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a"];
    let one = bundle(ids.map(str::to_owned), b"image");
    // Names of images are limited; containers without images do not count.
    let bundles = [one, bundle([], b"").repeat(n / 64)].concat();
    let name = n / 2;
    let mut content = vec![b'a'; name];
    content.extend(bundles);
    [ar::MAGIC.to_vec(), member(&format!("#1/{name}"), &content)].concat()
}

/// An archive in an archive, and so on.
#[must_use]
pub fn archive_of_archives(n: usize) -> Vec<u8> {
    let mut bytes = vec![1; n];
    for _ in 0..64 {
        bytes = [ar::MAGIC.to_vec(), member("a/", &bytes)].concat();
    }
    bytes
}

/// A thin archive that names one file again and again, `member` in its own directory.
#[must_use]
pub fn thin_archive(n: usize) -> Vec<u8> {
    ar::thin("member/", 100, n / 60)
}
