//! Search for machine code in ELF files for GPUs.

use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use object::elf::{SHF_EXECINSTR, SHT_NOBITS};

use crate::elf::{FileHeader, Header64, LE, Section64, SectionHeader, first, header64};
use crate::format::FileFormat;
use crate::read::{peek, read_range};

/// Section headers that are looked at. Images without code have two dozen, others code in one of the last.
const LAST_SECTIONS: u64 = 256;

/// Returns whether the ELF file in `window` has code in an executable section; `None` if its last section headers do not
/// tell.
///
/// It is meant for code objects of AMD GPUs and for cubins, whose kernels lie in such sections.
///
/// ```
/// let image = b"no ELF file";
/// assert_eq!(device_code::elf_holds_code(&mut &image[..], &(0..11)).unwrap(), None);
/// ```
///
/// # Errors
///
/// [`Unreadable`](llvm_bitcode::Unreadable)
pub fn elf_holds_code(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
) -> Result<Option<bool>, Unreadable> {
    let head = peek(source, window, size_of::<Header64>())?;
    let Some(header) = header64(&head) else { return Ok(None) };
    // Each kernel of a cubin has a section; linkers of code for AMD GPUs leave an empty one where there is no kernel.
    let is_cubin = FileFormat::sniff(&head) == FileFormat::Cubin;
    let (count, entry) = (u64::from(header.e_shnum(LE)), size_of::<Section64>() as u64);
    let is_known = count > 0 && u64::from(header.e_shentsize(LE)) == entry;
    let table = Window::new(window).sized(header.e_shoff(LE), count * entry);
    let Some(Range { end, .. }) = table.filter(|_| is_known) else { return Ok(None) };
    let looked_at = count.min(LAST_SECTIONS);
    let table = read_range(source, &(end - looked_at * entry..end))?;
    let mut sections = table.chunks_exact(size_of::<Section64>()).rev();
    let has_code = sections.any(|section| {
        first::<Section64>(section).is_some_and(|section| {
            section.sh_flags.get(LE).0 & SHF_EXECINSTR.0 != 0
                && section.sh_type(LE) != SHT_NOBITS
                && (is_cubin || section.sh_size.get(LE) > 0)
        })
    });
    Ok(if has_code { Some(true) } else { (looked_at == count).then_some(false) })
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// Returns an ELF file with sections of these flags and sizes.
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
        elf_holds_code(&mut &*file, &(0..file.len() as u64)).unwrap()
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
    fn code_is_unknown_without_a_sound_table() {
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
}
