//! ELF files for Intel's GPUs: zebin, and device binaries from before.
//!
//! Intel's compute runtime, "ZEBIN ELF" and `program_debug_data.h`, `patch_list.h`: sections hold all. In a device binary from
//! before zebin one of them is a program of patch tokens.

use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use object::elf::{SHT_NOBITS, SHT_NULL};
use object::{LittleEndian, Pod};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::elf::{FileHeader, Header32, Header64, LE, SectionHeader, first};
use crate::fault::Fault;
use crate::read::{peek, read_range};

/// Section headers that are read at a time.
const HEADERS: u64 = 512;

const MAGIC: &[u8] = b"CTNI";
const PROGRAM: u64 = size_of::<Program>() as u64;
const KERNEL: u64 = size_of::<KernelHeader>() as u64;

/// Header of a program of patch tokens; the patch list and the kernels follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Program {
    /// [`MAGIC`].
    magic: [u8; 4],
    version: U32,
    device: U32,
    /// Size of pointers.
    pointer_size: U32,
    /// Number of kernels.
    kernels: U32,
    stepping: U32,
    /// Size in bytes of the patch list.
    patch_list: U32,
}

/// Header of a kernel; its parts follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct KernelHeader {
    checksum: U32,
    hash: U64,
    /// Sizes in bytes of the name, of the patch list, of the code, and of three heaps.
    parts: [U32; 6],
    unused: U32,
}

/// Returns the fault in the section table of the ELF file for Intel's GPUs in `window`, or in the headers of its program
/// of patch tokens, if it has one; `None` if there is none.
///
/// ```
/// let fault = device_code::check_intel(&mut &b"\x7fELF\x02\x01\x01"[..], &(0..7))?.unwrap();
/// assert_eq!(fault.to_string(), "0x7: expected a header of 64 bytes, found 0x7");
/// # Ok::<(), llvm_bitcode::Unreadable>(())
/// ```
///
/// # Errors
///
/// [`Unreadable`](llvm_bitcode::Unreadable)
pub fn check_intel(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
) -> Result<Option<Fault>, Unreadable> {
    let head = peek(source, window, size_of::<Header64>())?;
    match head.get(4) {
        Some(1) => sections::<Header32>(source, window, &head, (32, "a header of 52 bytes")),
        _ => sections::<Header64>(source, window, &head, (40, "a header of 64 bytes")),
    }
}

/// Checks the section table. `place` is the place of its offset in the header, `expected` the header.
fn sections<Elf: FileHeader<Endian = LittleEndian>>(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    head: &[u8],
    (place, expected): (u64, &'static str),
) -> Result<Option<Fault>, Unreadable>
where
    Elf::SectionHeader: Pod,
{
    let fault = |offset, expected, found| Ok(Some(Fault { offset, expected, found }));
    let available = Window::new(window).len();
    let Some(header) = first::<Elf>(head) else { return fault(available, expected, available) };
    let entry = size_of::<Elf::SectionHeader>() as u64;
    let (start, count) = (header.e_shoff(LE).into(), u64::from(header.e_shnum(LE)));
    if count > 0 && u64::from(header.e_shentsize(LE)) != entry {
        return fault(place + 18, "the size of a section header", header.e_shentsize(LE).into());
    }
    // An end too large for a number lies past the end of the file, too.
    let end = start.saturating_add(count * entry);
    if end > available {
        return fault(place, "a section table that ends with the file or before", end);
    }
    let mut has_program = false;
    let mut at = start;
    while at < end {
        let piece = at..end.min(at + HEADERS * entry);
        let bytes = read_range(source, &(window.start + piece.start..window.start + piece.end))?;
        for (n, bytes) in (0..).zip(bytes.chunks_exact(size_of::<Elf::SectionHeader>())) {
            let Some(section) = first::<Elf::SectionHeader>(bytes) else { continue };
            if section.sh_type(LE) == SHT_NULL || section.sh_type(LE) == SHT_NOBITS {
                continue;
            }
            let (start, size) = (section.sh_offset(LE).into(), section.sh_size(LE).into());
            let end = start.saturating_add(size);
            if end > available {
                let at = at + n * entry;
                return fault(at, "a section that ends with the file or before", end);
            }
            let bytes = window.start + start..window.start + end;
            // Sections may share bytes: one program is enough.
            if !has_program && peek(source, &bytes, MAGIC.len())? == MAGIC {
                has_program = true;
                if let Some(fault) = program(source, window.start, &(start..end))? {
                    return Ok(Some(fault));
                }
            }
        }
        at = piece.end;
    }
    Ok(None)
}

/// Returns the fault in the headers of the program of patch tokens in a section of the file that starts at `file`.
fn program(
    source: &mut dyn ReadAt,
    file: u64,
    section: &Range<u64>,
) -> Result<Option<Fault>, Unreadable> {
    const KERNEL_END: &str = "a kernel that ends with its section or before";
    let fault = |offset, expected, found| Ok(Some(Fault { offset, expected, found }));
    let Range { start, end } = *section;
    if end - start < PROGRAM {
        return fault(start, "a program header of 28 bytes", end - start);
    }
    let mut program = Program::new_zeroed();
    source.read_exact_at(file + start, program.as_mut_bytes())?;
    let mut at = start + PROGRAM + u64::from(program.patch_list);
    if at > end {
        return fault(start + 24, "a patch list that ends with its section or before", at);
    }
    for _ in 0..program.kernels.get() {
        if at + KERNEL > end {
            return fault(at, KERNEL_END, at + KERNEL);
        }
        let mut kernel = KernelHeader::new_zeroed();
        source.read_exact_at(file + at, kernel.as_mut_bytes())?;
        let kernel_end = at + KERNEL + kernel.parts.map(u64::from).iter().sum::<u64>();
        if kernel_end > end {
            return fault(at, KERNEL_END, kernel_end);
        }
        at = kernel_end;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// A program with a patch list of 4 bytes and these kernels of 24 bytes of code and a name of 4.
    fn tokens(kernels: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let numbers = [1081, 12, 8, kernels, 0, 4, 0];
        bytes.extend(numbers.iter().flat_map(|number: &u32| number.to_le_bytes()));
        for _ in 0..kernels {
            bytes.extend([0; 12]);
            let sizes = [4_u32, 0, 24, 0, 0, 0, 24];
            bytes.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
            bytes.extend(b"add\0");
            bytes.extend([1; 24]);
        }
        bytes
    }

    /// An ELF file with this section after its section table.
    fn elf(section: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 128];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[16..18].copy_from_slice(&[4, 0xff]);
        (file[40], file[52], file[58], file[60]) = (64, 64, 64, 2);
        file[128 + 4..128 + 8].copy_from_slice(&0xff00_0005_u32.to_le_bytes());
        file[128 + 24] = 192;
        file[128 + 32] = u8::try_from(section.len()).unwrap();
        file.extend(section);
        file
    }

    fn fault(file: &[u8]) -> Option<String> {
        let mut source = file;
        check_intel(&mut source, &(0..file.len() as u64)).unwrap().map(|fault| fault.to_string())
    }

    #[test]
    fn sections_and_kernels_lie_in_the_file() {
        let file = elf(&tokens(2));
        assert_eq!(fault(&file), None);
        for cut in 0..file.len() {
            assert!(fault(&file[..cut]).is_some(), "{cut}");
        }
        let message =
            "0x28: expected a section table that ends with the file or before, found 0xc0";
        assert_eq!(fault(&file[..100]).as_deref(), Some(message));
        let message = "0x80: expected a section that ends with the file or before, found 0x168";
        assert_eq!(fault(&file[..200]).as_deref(), Some(message));
        let with = |at: usize, value| {
            let mut file = file.clone();
            file[at] = value;
            fault(&file).unwrap()
        };
        // One kernel more, a longer patch list, a longer name.
        let end = "expected a kernel that ends with its section or before, found";
        assert_eq!(with(192 + 16, 3), alloc::format!("0x168: {end} 0x190"));
        assert_eq!(
            with(192 + 24, 255),
            "0xd8: expected a patch list that ends with its section or before, found 0x1db"
        );
        assert_eq!(with(192 + 32 + 12, 200), alloc::format!("0xe0: {end} 0x1e8"));
        assert_eq!(with(58, 63), "0x3a: expected the size of a section header, found 0x3f");
    }
}
