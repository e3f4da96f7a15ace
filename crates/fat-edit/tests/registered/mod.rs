//! Offload binaries that HIP's wrappers lead to, in every form.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]

use ccob::{Method, WriteOptions};
use fat_edit::compress_offload_binary;
use fat_object::decompress_offload_binary;
use offload_binary::{CompressedBinary, FormatVersion, binaries};

use crate::editing::{code, hip_binary};

/// Triples and processors as clang 24 writes them.
pub const TARGETS: [(&str, &str); 3] = [
    ("amdgpu9.06-amd-amdhsa", "gfx906"),
    ("amdgpu9.0a-amd-amdhsa", "gfx90a"),
    ("amdgpu11.00-amd-amdhsa", "gfx1100"),
];

/// Processors and images.
pub type Unit = Vec<(String, Vec<u8>)>;

/// A form of offload binaries.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Plain(FormatVersion),
    Compressed(Method),
}

impl Form {
    pub const ALL: [Form; 5] = [
        Form::Plain(FormatVersion::V1),
        Form::Plain(FormatVersion::V2),
        Form::Plain(FormatVersion::V3),
        Form::Compressed(Method::ZSTD),
        Form::Compressed(Method::ZLIB),
    ];

    /// A translation unit with an image of several pages for each target, which do not become smaller.
    pub fn unit(self, seed: u32) -> Vec<u8> {
        let image = |n| noise(seed * 3 + n, 9000 + 4500 * n + seed * 100);
        let images = [0, 1, 2].map(image);
        match self {
            Form::Plain(version) => binary(version, &images),
            Form::Compressed(method) => {
                let options = WriteOptions::default().with_method(method);
                compress_offload_binary(&binary(FormatVersion::V3, &images), &options).unwrap()
            }
        }
    }

    pub fn units(self, count: u32) -> Vec<Vec<u8>> {
        (1..=count).map(|seed| self.unit(seed)).collect()
    }
}

fn binary(version: FormatVersion, images: &[Vec<u8>]) -> Vec<u8> {
    let entries =
        TARGETS.iter().zip(images).map(|((triple, arch), image)| (*triple, *arch, &image[..]));
    hip_binary(version, &entries.collect::<Vec<_>>())
}

/// Units that compression makes much smaller.
pub fn repetitive_units(version: FormatVersion) -> Vec<Vec<u8>> {
    let image = |seed: u32, n| code(seed * 3 + n, 9000 + 4500 * n);
    (1..4).map(|seed| binary(version, &[0, 1, 2].map(|n| image(seed, n)))).collect()
}

/// Bytes that do not compress, and neither start nor end with a zero.
pub fn noise(seed: u32, size: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1] | 1
    };
    std::iter::repeat_with(next).take(size as usize).collect()
}

/// Images that a runtime finds in the memory that a wrapper leads to.
pub fn contents_of(memory: &[u8]) -> Unit {
    let plain = match CompressedBinary::parse_prefix(memory, memory.len() as u64).unwrap() {
        Some(_) => decompress_offload_binary(memory, 1 << 20).unwrap(),
        None => memory.to_vec(),
    };
    let mut found = Vec::new();
    for binary in binaries(&plain) {
        for entry in binary.unwrap().1.entries() {
            found.push((entry.arch().unwrap().to_owned(), entry.image().unwrap().to_vec()));
        }
    }
    found
}
