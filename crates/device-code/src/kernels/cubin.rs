//! Kernels of cubins: their symbols, sections and attributes. NVIDIA does not document them; the meanings were observed with
//! `cuobjdump` and `ptxas` of CUDA 10 to 13.

use alloc::vec;
use alloc::vec::Vec;

use object::elf::{SHT_NOBITS, SHT_SYMTAB, STT_FUNC, SectionType};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use super::elf::Elf;
use super::{Kernel, Kernels, MOST_KERNELS, Stored, Version, note, volume};
use crate::elf::LE;
use crate::fault::Fault;

/// The type of `.nv.info` sections.
const SHT_CUDA_INFO: SectionType = SectionType(0x7000_0000);
/// The mark of a kernel in a symbol.
const STO_CUDA_ENTRY: u8 = 0x10;
/// The first ABI that has barriers as an attribute.
const ABI_OF_CUDA_13: u8 = 8;
/// Shared memory that the compiler reserves in linked code for `sm_90` and later.
const RESERVED: u64 = 1024;
/// A number of the stack that is not known.
const UNKNOWN: u32 = u32::MAX;

pub(super) fn read<'a>(image: &'a [u8], found: &mut Kernels<'a>) {
    let Some(elf) = Elf::read(image, &mut found.faults) else { return };
    found.is_relocatable = elf.is_relocatable();
    let version = elf.known_abi_version(ABI_OF_CUDA_13, &mut found.faults);
    found.version = Some(Version::CubinAbi(version));
    // Sections that share bytes are read as often as the image is long.
    let mut left = image.len();
    let cubin = Cubin::read(&elf);
    let mut kernels = cubin.kernels(&elf);
    for (index, section) in elf.all() {
        let owner = cubin.owner(section.sh_info(LE));
        if section.sh_type(LE) == SHT_CUDA_INFO {
            match elf.data(section) {
                Ok(data) => {
                    let Some(more) = left.checked_sub(data.len()) else { break };
                    left = more;
                    let records = Records { bytes: data, offset: section.sh_offset(LE) };
                    cubin.attributes(records, owner, &mut kernels, &mut found.faults);
                }
                Err(fault) => note(&mut found.faults, fault),
            }
            continue;
        }
        let Some(kernel) = owner.and_then(|owner| kernels.get_mut(owner)).filter(|_| index != 0)
        else {
            continue;
        };
        let (name, size) = (elf.name(section), section.sh_size(LE));
        if name.starts_with(b".nv.shared.")
            && (section.sh_type(LE) == SHT_NOBITS || !cubin.is_linked)
        {
            // Sections without bytes have any size.
            kernel.group_memory = Some(kernel.group_memory.unwrap_or(0).saturating_add(size));
        } else if let Some(bank) = bank(name) {
            kernel.constants.push((bank, size));
        }
    }
    for kernel in &mut kernels {
        cubin.complete(kernel);
    }
    found.kernels = Some(kernels);
}

/// Returns the number of a bank of constants: 0 for `.nv.constant0.NAME`.
fn bank(name: &[u8]) -> Option<u32> {
    let rest = name.strip_prefix(b".nv.constant")?;
    let dot = rest.iter().position(|&byte| byte == b'.')?;
    core::str::from_utf8(rest.get(..dot)?).ok()?.parse().ok()
}

/// The kernels of a file, by the numbers of their symbols and sections.
struct Cubin {
    /// Symbols of kernels, in order, with the section of their code.
    symbols: Vec<(usize, usize)>,
    /// The kernel of each section, by number.
    by_section: Vec<Option<usize>>,
    is_linked: bool,
    sm: u32,
    has_new_abi: bool,
}

impl Cubin {
    fn read(elf: &Elf<'_>) -> Self {
        let table = elf.symbols(&[SHT_SYMTAB]);
        let mut symbols = Vec::new();
        let mut by_section = vec![None; elf.sections.len()];
        for (index, symbol) in table.enumerate() {
            let section = usize::from(symbol.st_shndx(LE).0);
            let section = match table.symbol_section(LE, symbol, index) {
                Ok(Some(index)) => index.0,
                _ => section,
            };
            let is_kernel =
                symbol.st_type() == STT_FUNC && symbol.st_other().0 & STO_CUDA_ENTRY != 0;
            if !is_kernel || section == 0 || symbols.len() >= MOST_KERNELS {
                continue;
            }
            if let Some(kernel) = by_section.get_mut(section) {
                *kernel = kernel.or(Some(symbols.len()));
            }
            symbols.push((index.0, section));
        }
        let flags = elf.header.e_flags(LE).0;
        let has_new_abi = elf.abi_version() >= ABI_OF_CUDA_13;
        let sm = if has_new_abi { flags >> 8 & 0xff } else { flags & 0xff };
        Cubin { symbols, by_section, is_linked: !elf.is_relocatable(), sm, has_new_abi }
    }

    /// Returns the kernel whose code is in a section.
    fn owner(&self, section: u32) -> Option<usize> {
        *self.by_section.get(usize::try_from(section).ok()?)?
    }

    /// Returns the kernel of a symbol.
    fn of_symbol(&self, symbol: u32) -> Option<usize> {
        let symbol = usize::try_from(symbol).ok()?;
        self.symbols.binary_search_by_key(&symbol, |(index, _)| *index).ok()
    }

    /// Returns the kernels with what symbols and headers of their code say.
    fn kernels<'a>(&self, elf: &Elf<'a>) -> Vec<Kernel<'a>> {
        let table = elf.symbols(&[SHT_SYMTAB]);
        let kernels = self.symbols.iter().map(|(symbol, section)| {
            let symbol = table.symbol(object::read::SymbolIndex(*symbol)).ok();
            let (address, size) =
                symbol.map(|symbol| (symbol.st_value(LE), symbol.st_size(LE))).unzip();
            let name = symbol.map(|symbol| elf.symbol_name(&table, symbol));
            let flags = elf.section(*section).map(|section| section.sh_flags(LE).0);
            let barriers = flags.filter(|_| !self.has_new_abi);
            let barriers = barriers.map(|flags| u32::try_from(flags >> 20 & 0x7f).unwrap_or(0));
            Kernel {
                name: name.unwrap_or(b""),
                code_size: size,
                code_range: address
                    .zip(size)
                    .and_then(|(address, size)| elf.range_of(address, size, *section)),
                wave_size: Some(32),
                barriers,
                ..Kernel::default()
            }
        });
        kernels.collect()
    }

    /// Reads attributes, of one kernel or of the kernels that they name. Attributes of unknown forms end a section.
    fn attributes(
        &self,
        records: Records<'_>,
        owner: Option<usize>,
        kernels: &mut [Kernel<'_>],
        faults: &mut Vec<Fault>,
    ) {
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(fault) => return note(faults, fault),
            };
            let number = |at: usize| {
                record.payload.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
            };
            let of_symbol = || Some((self.of_symbol(number(0)?)?, number(4)?));
            let three = || Some([number(0)?, number(4)?, number(8)?]);
            match record.attribute {
                0x2f | 0x11 | 0x12 => {
                    let Some((at, value)) = of_symbol() else { continue };
                    let Some(kernel) = kernels.get_mut(at) else { continue };
                    let is_same = match record.attribute {
                        0x2f => *kernel.registers.get_or_insert(value) == value,
                        0x11 => *kernel.frame.get_or_insert(value.into()) == u64::from(value),
                        _ if !self.is_linked => true,
                        _ => {
                            let stack = match value {
                                UNKNOWN => Stored::Unknown(0),
                                value => Stored::Known(value.into()),
                            };
                            if kernel.private_memory == Stored::Absent {
                                kernel.private_memory = stack;
                            }
                            kernel.private_memory == stack
                        }
                    };
                    if !is_same {
                        let expected = "the value of an earlier attribute";
                        note(
                            faults,
                            Fault { offset: record.offset, expected, found: value.into() },
                        );
                    }
                }
                attribute => {
                    let Some(kernel) = owner.and_then(|owner| kernels.get_mut(owner)) else {
                        continue;
                    };
                    match attribute {
                        0x05 => {
                            kernel.max_group_size = three().map(volume);
                        }
                        0x10 => kernel.required_group_size = three(),
                        0x19 => kernel.arguments_size = Some(record.value.into()),
                        0x1b => {
                            kernel.max_registers =
                                Some(record.value.into()).filter(|most| *most != 255);
                        }
                        0x4c => kernel.barriers = Some(u32::from(record.value & 0xff)),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Adds what follows from other facts.
    fn complete(&self, kernel: &mut Kernel<'_>) {
        if self.has_new_abi {
            kernel.barriers = kernel.barriers.or(Some(0));
        }
        if !self.is_linked {
            // The linker gives shared memory its size.
            kernel.group_memory = kernel.group_memory.filter(|size| *size != 0);
            return;
        }
        let size = kernel.group_memory.unwrap_or(0);
        let reserved = if self.sm >= 90 && size >= RESERVED { RESERVED } else { 0 };
        kernel.group_memory = Some(size - reserved);
        kernel.group_memory_reserved = Some(reserved);
        if kernel.private_memory != Stored::Absent || kernel.frame.is_some() {
            let frame = kernel.frame.unwrap_or(0);
            if let Stored::Unknown(_) = kernel.private_memory {
                kernel.private_memory = Stored::Unknown(frame);
            }
        }
    }
}

/// An attribute.
struct Record<'a> {
    /// The place in the image.
    offset: u64,
    attribute: u8,
    /// The value of an attribute without payload.
    value: u16,
    payload: &'a [u8],
}

/// The attributes of a section: form, attribute, and a number or a length of 16 bits.
struct Records<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        let fault = |expected, found| Some(Err(Fault { offset, expected, found }));
        if self.bytes.is_empty() {
            return None;
        }
        let Some(([form, attribute, low, high], rest)) = self.bytes.split_first_chunk() else {
            let left = self.bytes.len() as u64;
            self.bytes = &[];
            return fault("four bytes of an attribute", left);
        };
        let (form, attribute) = (*form, *attribute);
        let value = u16::from_le_bytes([*low, *high]);
        let len = match form {
            1..=3 => 0,
            4 => usize::from(value),
            _ => {
                self.bytes = &[];
                return fault("an attribute of form 1 to 4", form.into());
            }
        };
        let Some((payload, rest)) = rest.split_at_checked(len) else {
            self.bytes = &[];
            return fault("an attribute that ends in its section", len as u64);
        };
        self.bytes = rest;
        self.offset = offset + 4 + len as u64;
        Some(Ok(Record { offset, attribute, value, payload }))
    }
}
