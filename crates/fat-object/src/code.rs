//! Search for machine code in ELF files for GPUs.

use std::io;
use std::ops::Range;

use byte_parts::Budget;
use object::elf::{SHF_EXECINSTR, SHT_NOBITS};

use crate::elf::{FileHeader, Header64, LE, Section64, SectionHeader, first, header64};
use crate::file_format::{EM_AMDGPU, FileFormat, SNIFF_LEN};
use crate::model::Compression;
use crate::source::{Origin, Source};

/// The size of compressed images that are decompressed. Those without code have a few kilobytes.
pub(crate) const MOST_DECOMPRESSED: u64 = 64 << 10;

/// Section headers that are looked at. Images without code have two dozen, others code in one of the last.
const LAST_SECTIONS: u64 = 256;

/// Returns whether the sections of such an image tell.
pub(crate) fn is_told(format: FileFormat) -> bool {
    matches!(format, FileFormat::Cubin | FileFormat::Elf { machine: EM_AMDGPU })
}

/// Returns whether the ELF file in `window` has code in an executable section; `None` if its last section headers do not
/// tell.
pub(crate) fn in_elf(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<bool>> {
    let head = source.peek(window, size_of::<Header64>())?;
    let Some(header) = header64(&head) else { return Ok(None) };
    // Each kernel of a cubin has a section; linkers of code for AMD GPUs leave an empty one where there is no kernel.
    let is_cubin = FileFormat::sniff(&head) == FileFormat::Cubin;
    let (count, entry) = (u64::from(header.e_shnum(LE)), size_of::<Section64>() as u64);
    let start = window.start.saturating_add(header.e_shoff(LE));
    let end = start.saturating_add(count * entry);
    if count == 0 || u64::from(header.e_shentsize(LE)) != entry || end > window.end {
        return Ok(None);
    }
    let looked_at = count.min(LAST_SECTIONS);
    let table = source.read_range(&(end - looked_at * entry..end))?;
    let mut sections = table.chunks_exact(size_of::<Section64>()).rev();
    let has_code = sections.any(|section| {
        first::<Section64>(section).is_some_and(|section| {
            section.sh_flags.get(LE).0 & SHF_EXECINSTR.0 != 0
                && section.sh_type(LE) != SHT_NOBITS
                && (is_cubin || section.sh_size.get(LE) > 0)
        })
    });
    Ok(match has_code {
        true => Some(true),
        false => (looked_at == count).then_some(false),
    })
}

/// The same for an image that is compressed by itself, whose stored bytes lie in `window`.
pub(crate) fn in_compressed(
    source: &mut Source<'_>,
    window: &Range<u64>,
    compression: Compression,
    budget: &mut Budget,
) -> io::Result<Option<bool>> {
    let Some(image) = decompressed(source, window, compression, MOST_DECOMPRESSED, budget)? else {
        return Ok(None);
    };
    in_elf(&mut Source::of_bytes(&image, Origin::Decompressed), &(0..image.len() as u64))
}

/// Returns the first bytes of an image that is compressed by itself, as many as tell what it is; `None` where it cannot be
/// decompressed, or has more than `most` bytes.
pub(crate) fn decompressed_head(
    source: &mut Source<'_>,
    window: &Range<u64>,
    compression: Compression,
    most: u64,
    budget: &mut Budget,
) -> io::Result<Option<Vec<u8>>> {
    let mut image = decompressed(source, window, compression, most, budget)?;
    if let Some(image) = &mut image {
        image.truncate(SNIFF_LEN);
        image.shrink_to_fit();
    }
    Ok(image)
}

/// Decompresses an image that is compressed by itself; `None` if it has more than `most` bytes, is malformed, or of an
/// unknown method, or if the budget is spent.
pub(crate) fn decompressed(
    source: &mut Source<'_>,
    window: &Range<u64>,
    compression: Compression,
    most: u64,
    budget: &mut Budget,
) -> io::Result<Option<Vec<u8>>> {
    let size = compression.uncompressed_size;
    let stored = window.end - window.start;
    // No codec makes more of a byte, but Zstandard of zeros.
    let is_likely = size / 1024 <= stored;
    if size > most || stored > most.saturating_mul(2) || !is_likely || !budget.take(size) {
        return Ok(None);
    }
    let stored = source.read_range(window)?;
    Ok(inflate(&stored, compression))
}

/// Decompresses an image that is compressed by itself; `None` if it is damaged, or its method is not known.
pub(crate) fn inflate(stored: &[u8], compression: Compression) -> Option<Vec<u8>> {
    let size = compression.uncompressed_size;
    match compression.method {
        "lz4" => {
            let len = usize::try_from(size).unwrap_or(usize::MAX);
            lz4_flex::block::decompress(stored, len).ok().filter(|image| image.len() == len)
        }
        "zstd" => ccob::decompress_stream(ccob::Method::ZSTD, stored, size).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with sections of these flags and sizes.
    fn elf(sections: &[(u64, u64)]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(64, 0);
        file[18] = 224;
        file[40] = 64;
        file[58] = 64;
        file[60..62].copy_from_slice(&u16::try_from(sections.len()).unwrap().to_le_bytes());
        for (flags, size) in sections {
            let at = file.len();
            file.resize(at + 64, 0);
            file[at + 4] = 1;
            file[at + 8..at + 16].copy_from_slice(&flags.to_le_bytes());
            file[at + 32..at + 40].copy_from_slice(&size.to_le_bytes());
        }
        file
    }

    const EMPTY: [(u64, u64); 4] = [(0, 0), (2, 32), (6, 0), (3, 64)];

    fn holds_code(file: &[u8]) -> Option<bool> {
        let mut source = Source::of_bytes(file, Origin::File);
        in_elf(&mut source, &(0..file.len() as u64)).unwrap()
    }

    #[test]
    fn code_is_in_executable_sections() {
        assert_eq!(holds_code(&elf(&EMPTY)), Some(false));
        assert_eq!(holds_code(&elf(&[EMPTY[0], (6, 1), EMPTY[1]])), Some(true));
        let mut no_bits = elf(&[EMPTY[0], (6, 1)]);
        no_bits[64 + 64 + 4] = 8;
        assert_eq!(holds_code(&no_bits), Some(false));
        let mut cubin = elf(&EMPTY);
        cubin[18] = 190;
        assert_eq!(holds_code(&cubin), Some(true));
        assert_eq!(holds_code(&[&cubin[..60], &[2], &cubin[61..]].concat()), Some(false));
    }

    #[test]
    fn what_the_table_does_not_tell_is_unknown() {
        let sound = elf(&EMPTY);
        for cut in 0..sound.len() {
            assert_eq!(holds_code(&sound[..cut]), None, "{cut}");
        }
        for (at, byte) in [(4, 1), (5, 2), (58, 40), (60, 0), (60, 5), (40, 65), (47, 255)] {
            let mut file = sound.clone();
            file[at] = byte;
            assert_eq!(holds_code(&file), None, "{at}");
        }
        let mut many = vec![(6, 1)];
        many.resize(256, (0, 0));
        assert_eq!(holds_code(&elf(&many)), Some(true));
        many.push((0, 0));
        assert_eq!(holds_code(&elf(&many)), None);
    }

    #[test]
    fn compressed_images_of_some_kilobytes_are_looked_into() {
        let told = |method, stored: &[u8], size, budget: &mut Budget| {
            let own = Compression { method, stored_size: 0, uncompressed_size: size };
            let mut source = Source::of_bytes(stored, Origin::File);
            let window = 0..stored.len() as u64;
            in_compressed(&mut source, &window, own, budget).unwrap()
        };
        let image = elf(&EMPTY);
        let size = image.len() as u64;
        let mut budget = Budget::new(3 * size);
        // One sequence of literals.
        let lz4 = [&[0xf0, 255, u8::try_from(size - 15 - 255).unwrap()][..], &image].concat();
        assert_eq!(told("lz4", &lz4, size, &mut budget), Some(false));
        assert_eq!(told("lz4", &lz4[1..], size, &mut budget), None);
        assert_eq!(told("lz5", &lz4, size, &mut budget), None);
        assert_eq!(told("lz4", &lz4, size, &mut budget), None, "the budget is spent");

        if ccob::Method::ZSTD.codec().is_some() {
            let options = ccob::WriteOptions::default();
            for (image, expected) in [(elf(&EMPTY), Some(false)), (vec![0; 65 << 10], None)] {
                let container = ccob::compress(&image, &options).unwrap();
                let stored = &container[ccob::Version::V3.header_len()..];
                let size = image.len() as u64;
                let mut budget = Budget::new(1 << 20);
                assert_eq!(told("zstd", stored, size, &mut budget), expected);
            }
        }
    }
}
