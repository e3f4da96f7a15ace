//! Facts from the header of a cubin, and its section `.nv.compat`.

use crate::error::Error;
use crate::kinds::Architecture;

/// The ELF machine of NVIDIA's GPUs.
const EM_CUDA: u16 = 190;

/// The ELF machine of AMD's GPUs.
const EM_AMDGPU: u16 = 224;

/// The type of the section `.nv.compat`.
const COMPAT: u32 = 0x7000_0086;

/// The first ABI that has the SM number in the second byte of the ELF flags: the ABI of CUDA 13.
const ABI_OF_CUDA_13: u8 = 8;

/// The facts of a cubin that its entry repeats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cubin<'data> {
    pub(crate) sm: u32,
    pub(crate) is_64: bool,
    pub(crate) abi_version: u8,
    /// The contents of `.nv.compat`.
    pub(crate) compat: Option<&'data [u8]>,
}

impl<'data> Cubin<'data> {
    pub(crate) fn parse(file: &'data [u8]) -> Result<Self, Error> {
        let is_elf = file.starts_with(b"\x7fELF");
        let message = match field(file, 18).map(u16::from_le_bytes).filter(|_| is_elf) {
            Some(EM_AMDGPU) => {
                "expected a cubin (NVIDIA's code), found code for AMD's GPUs, which bundles hold"
            }
            _ => "expected a cubin: a little-endian ELF file for machine 190",
        };
        Self::read(file).ok_or_else(|| Error::malformed(message))
    }

    fn read(file: &'data [u8]) -> Option<Self> {
        let ident: [u8; 16] = field(file, 0)?;
        let [0x7f, b'E', b'L', b'F', class @ (1 | 2), 1, _, _, abi_version, ..] = ident else {
            return None;
        };
        if u16::from_le_bytes(field(file, 18)?) != EM_CUDA {
            return None;
        }
        let is_64 = class == 2;
        let [old, new, ..]: [u8; 4] = field(file, if is_64 { 48 } else { 36 })?;
        let sm = if abi_version >= ABI_OF_CUDA_13 { new } else { old };
        let compat = if is_64 { compat(file) } else { None };
        Some(Cubin { sm: sm.into(), is_64, abi_version, compat })
    }
}

/// Finds the section `.nv.compat` by its type.
fn compat(file: &[u8]) -> Option<&[u8]> {
    let place = |bytes, at| usize::try_from(u64::from_le_bytes(field(bytes, at)?)).ok();
    let table = file.get(place(file, 40)?..)?;
    let size = usize::from(u16::from_le_bytes(field(file, 58)?));
    let count = usize::from(u16::from_le_bytes(field(file, 60)?));
    let mut sections = table.chunks_exact(size.max(64)).take(count);
    let section = sections.find(|section| field(section, 4) == Some(COMPAT.to_le_bytes()))?;
    file.get(place(section, 24)?..)?.get(..place(section, 32)?)
}

/// Returns the bytes at an offset.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl Architecture {
    /// Returns the architecture of a cubin. A cubin does not say whether it has a suffix.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for what is not a cubin.
    pub fn of_cubin(cubin: &[u8]) -> Result<Self, Error> {
        Ok(Architecture { sm: Cubin::parse(cubin)?.sm, suffix: "" })
    }
}
