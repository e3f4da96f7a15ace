//! Search for machine code in ELF files for GPUs.

use std::fmt;
use std::io;
use std::ops::Range;

use ::nv_fatbin::Codec;
use byte_parts::Budget;
use device_code::FileFormat;

use crate::elf::EM_AMDGPU;
use crate::model::Compression;
use crate::source::{Origin, Source, lend};

/// The size of compressed images that are decompressed. Images without code have a few kilobytes.
pub(crate) const MOST_DECOMPRESSED: u64 = 64 << 10;

/// Returns whether the sections of an image in this format show if it has code.
pub(crate) fn is_told(format: FileFormat) -> bool {
    matches!(format, FileFormat::Cubin | FileFormat::Elf { machine: EM_AMDGPU })
}

/// Returns whether the ELF file in `window` has code in an executable section; `None` if its last section headers do
/// not show it.
pub(crate) fn in_elf(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<bool>> {
    lend(source, |source| device_code::elf_holds_code(source, window))
}

/// Returns the same for an image that is compressed by itself, whose stored bytes lie in `window`.
pub(crate) fn in_compressed(
    source: &mut Source<'_>,
    window: &Range<u64>,
    compression: Compression,
    budget: &mut Budget,
) -> io::Result<Option<bool>> {
    let image = decompressed(source, window, compression, MOST_DECOMPRESSED, budget)?;
    let Ok(image) = image else { return Ok(None) };
    in_elf(&mut Source::of_bytes(&image, Origin::Decompressed), &(0..image.len() as u64))
}

/// Memory that images use one after the other, so that it is not taken and given back for each:
/// [`Image::bytes_with`](crate::Image::bytes_with).
#[derive(Default)]
pub struct Memory {
    /// The bytes of a compressed image.
    stored: Vec<u8>,
    pub(crate) code: Vec<u8>,
}

impl Memory {
    /// The most bytes that are kept for other images.
    const MOST: usize = 64 << 20;

    /// Gives back memory that only a large image needed.
    pub fn trim(&mut self) {
        for bytes in [&mut self.stored, &mut self.code] {
            if bytes.capacity() > Self::MOST {
                *bytes = Vec::new();
            }
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("code", &self.code.len()).finish_non_exhaustive()
    }
}

/// The reason why an image was not decompressed.
pub(crate) enum Undone {
    /// It is larger than this number of bytes, the limit.
    Limit(u64),
    /// It is malformed, or no codec can be had.
    Codec(::nv_fatbin::Error),
}

/// Decompresses an image that is compressed by itself, of at most `most` bytes.
pub(crate) fn decompressed(
    source: &mut Source<'_>,
    window: &Range<u64>,
    compression: Compression,
    most: u64,
    budget: &mut Budget,
) -> io::Result<Result<Vec<u8>, Undone>> {
    let mut memory = Memory::default();
    let done = decompressed_into(source, window, compression, most, budget, &mut memory)?;
    Ok(done.map(|()| memory.code))
}

/// Decompresses an image in the same way to the start of this memory.
pub(crate) fn decompressed_into(
    source: &mut Source<'_>,
    window: &Range<u64>,
    compression: Compression,
    most: u64,
    budget: &mut Budget,
    memory: &mut Memory,
) -> io::Result<Result<(), Undone>> {
    let size = compression.uncompressed_size;
    let limit = most.min(budget.left());
    let stored = window.end - window.start;
    if size > limit || stored.div_ceil(2) > most {
        return Ok(Err(Undone::Limit(limit)));
    }
    let codec = Codec::from_name(compression.method).unwrap_or(Codec::Unknown);
    if let Err(error) = codec.check(stored, size) {
        return Ok(Err(Undone::Codec(error)));
    }
    budget.spend(size);
    let Memory { stored: read, code } = memory;
    let stored = match source.bytes(window) {
        Some(stored) => stored,
        None => {
            read.clear();
            source.append_range(window, read)?;
            read
        }
    };
    Ok(codec.decompress_into(stored, size, code).map_err(Undone::Codec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_images_of_some_kilobytes_are_looked_into() {
        let told = |method, stored: &[u8], size, budget: &mut Budget| {
            let own = Compression {
                method,
                format_version: None,
                stored_size: 0,
                uncompressed_size: size,
            };
            let mut source = Source::of_bytes(stored, Origin::File);
            let window = 0..stored.len() as u64;
            in_compressed(&mut source, &window, own, budget).unwrap()
        };
        // Headers of an AMD file whose only section is the null section, and zeros.
        let mut image = b"\x7fELF\x02\x01\x01\x40".to_vec();
        image.resize(300, 0);
        for (field, value) in [(16, 3), (18, 224), (40, 64), (52, 64), (58, 64), (60, 1)] {
            image[field] = value;
        }
        let size = image.len() as u64;
        let mut budget = Budget::new(2 * size);
        // One sequence of literals.
        let lz4 = [&[0xf0, 255, u8::try_from(size - 15 - 255).unwrap()][..], &image].concat();
        assert_eq!(told("lz4", &lz4, size, &mut budget), Some(false));
        assert_eq!(told("lz4", &lz4[1..], size, &mut budget), None);
        assert_eq!(told("lz5", &lz4, size, &mut budget), None);
        assert_eq!(told("lz4", &lz4, size, &mut budget), None, "the budget is spent");

        if ccob::Method::ZSTD.codec().is_some() {
            let options = ccob::WriteOptions::default();
            for (image, expected) in [(image, Some(false)), (vec![0; 65 << 10], None)] {
                let container = ccob::compress(&image, &options).unwrap();
                let stored = &container[ccob::Version::V3.header_len()..];
                let size = image.len() as u64;
                let mut budget = Budget::new(1 << 20);
                assert_eq!(told("zstd", stored, size, &mut budget), expected);
            }
        }
    }
}
