//! Kernels of Intel's machine code: the section `.ze_info`, which describes them in YAML (`zeinfo.md` of the Intel Graphics Compiler).
//!
//! The compiler writes a small part of YAML: block mappings and sequences, one scalar or `[ 1, 2, 3 ]` on a line. Nothing else is
//! read.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use object::elf::{SHT_SYMTAB, STT_FUNC, SectionType};
use object::read::elf::{SectionHeader, Sym};

use super::elf::Elf;
use super::{Kernel, Kernels, MOST_KERNELS, Stored, Version, note};
use crate::elf::LE;
use crate::fault::Fault;

/// The type of `.ze_info`.
const SHT_ZEBIN_ZEINFO: SectionType = SectionType(0xff00_0011);
/// The start of the names of sections of code.
const TEXT: &[u8] = b".text.";

pub(super) fn read<'a>(image: &'a [u8], found: &mut Kernels<'a>) {
    let Some(elf) = Elf::read(image, &mut found.faults) else { return };
    let mut info = None;
    let mut code = BTreeMap::new();
    for (index, section) in elf.all() {
        if section.sh_type(LE) == SHT_ZEBIN_ZEINFO {
            let offset = section.sh_offset(LE);
            match elf.data(section) {
                Ok(data) if info.is_none() => info = Some((data, offset)),
                Ok(_) => {
                    let expected = "one section .ze_info";
                    note(&mut found.faults, Fault { offset, expected, found: 2 });
                }
                Err(fault) => note(&mut found.faults, fault),
            }
        } else if let Some(name) = elf.name(section).strip_prefix(TEXT) {
            let range = elf.range_of(elf.address(section), section.sh_size(LE), index);
            code.entry(name).or_insert((section.sh_size(LE), range));
        }
    }
    // An image in the format before zebin has no such section.
    let Some((text, offset)) = info else { return };
    let mut info = Info { found, kernel: None, section: Section::Other };
    info.read(text, offset);
    let table = elf.symbols(&[SHT_SYMTAB]);
    let mut functions = BTreeMap::new();
    for (index, symbol) in table.enumerate() {
        let size = symbol.st_size(LE);
        if symbol.st_type() == STT_FUNC && size != 0 {
            let section = table.symbol_section(LE, symbol, index).ok().flatten();
            let range =
                section.and_then(|section| elf.range_of(symbol.st_value(LE), size, section.0));
            functions.entry(elf.symbol_name(&table, symbol)).or_insert((size, range));
        }
    }
    for kernel in found.kernels.iter_mut().flatten() {
        // A section of code has padding at its end.
        let function = functions.get(kernel.name);
        let Some((size, range)) = function.or(code.get(kernel.name)) else { continue };
        kernel.code_size = Some(*size);
        kernel.is_code_size_estimated = function.is_none();
        kernel.code_range = range.clone();
    }
}

/// A mapping of a kernel.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    /// `execution_env`.
    Environment,
    /// `user_attributes`.
    User,
    Other,
}

/// The kernels while they are read.
struct Info<'k, 'a> {
    found: &'k mut Kernels<'a>,
    kernel: Option<Described<'a>>,
    section: Section,
}

/// A kernel with numbers that count for a thread of the hardware, which runs several work-items.
#[derive(Default)]
struct Described<'a> {
    kernel: Kernel<'a>,
    has_name: bool,
    has_environment: bool,
    private_size: Option<u64>,
    has_stack_calls: bool,
}

impl<'a> Info<'_, 'a> {
    fn read(&mut self, text: &'a [u8], start: u64) {
        let mut is_in_kernels = false;
        // Columns of the dashes of kernels, of their keys, and of the keys of the mapping that is read.
        let (mut dash, mut keys, mut inner) = (None, 0, None);
        let mut rest = text;
        while !rest.is_empty() {
            let offset = start + (text.len() - rest.len()) as u64;
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            rest = after.strip_prefix(b"\n").unwrap_or(after);
            let mut line = line.trim_ascii_end();
            let mut column = line.iter().take_while(|&&byte| byte == b' ').count();
            (_, line) = line.split_at(column);
            if line.is_empty() || line.starts_with(b"#") || line == b"---" || line == b"..." {
                continue;
            }
            let is_item = line == b"-" || line.starts_with(b"- ");
            if column == 0 && !is_item {
                self.finish();
                let (key, value) = pair(line);
                is_in_kernels = key == b"kernels" && self.found.kernels.is_none();
                if is_in_kernels {
                    self.found.kernels = Some(Vec::new());
                } else if key == b"version" {
                    self.found.version = self.found.version.or(version(value));
                }
                continue;
            }
            if !is_in_kernels {
                continue;
            }
            if is_item && dash.is_none_or(|dash| dash == column) {
                self.finish();
                self.kernel = Some(Described::default());
                dash = Some(column);
                let spaces = 1 + line.iter().skip(1).take_while(|&&byte| byte == b' ').count();
                column += spaces;
                (_, line) = line.split_at(spaces);
                keys = column;
            } else if is_item {
                continue;
            }
            if line.is_empty() || self.kernel.is_none() {
                continue;
            }
            let (key, value) = pair(line);
            if column == keys {
                inner = None;
                self.section = match key {
                    b"execution_env" => Section::Environment,
                    b"user_attributes" => Section::User,
                    _ => Section::Other,
                };
                self.of_kernel(key, value, offset);
            } else if column < keys {
                let expected = "a key of a kernel in its column";
                note(&mut self.found.faults, Fault { offset, expected, found: column as u64 });
            } else if *inner.get_or_insert(column) == column {
                self.of_section(key, value, offset);
            }
        }
        self.finish();
    }

    /// Reads a key of a kernel itself.
    fn of_kernel(&mut self, key: &[u8], value: &'a [u8], offset: u64) {
        let Some(described) = &mut self.kernel else { return };
        match key {
            b"name" if described.has_name => once(&mut self.found.faults, offset),
            b"name" => {
                described.has_name = true;
                described.kernel.name = unquoted(value);
            }
            b"execution_env" => described.has_environment = true,
            _ => {}
        }
    }

    /// Reads a key of a mapping of a kernel.
    fn of_section(&mut self, key: &[u8], value: &'a [u8], offset: u64) {
        let Some(described) = &mut self.kernel else { return };
        let faults = &mut self.found.faults;
        let kernel = &mut described.kernel;
        match (self.section, key) {
            (Section::Environment, b"simd_size") => {
                set(&mut kernel.wave_size, number(value), faults, offset);
            }
            (Section::Environment, b"grf_count") => {
                set(&mut kernel.registers_allocated, number(value), faults, offset);
            }
            (Section::Environment, b"barrier_count") => {
                set(&mut kernel.barriers, number(value), faults, offset);
            }
            (Section::Environment, b"slm_size") => {
                set(&mut kernel.group_memory, number(value).map(u64::from), faults, offset);
            }
            (Section::Environment, b"private_size") => {
                set(&mut described.private_size, number(value).map(u64::from), faults, offset);
            }
            (Section::Environment, b"spill_size") => {
                set(&mut kernel.spill_memory, number(value).map(u64::from), faults, offset);
            }
            (Section::Environment, b"has_stack_calls") => {
                described.has_stack_calls = value == b"true";
            }
            (Section::Environment, b"required_work_group_size")
            | (Section::User, b"reqd_work_group_size") => {
                let size = three(value);
                // Both mappings may have it.
                if kernel.required_group_size.is_none() || size.is_none() {
                    set(&mut kernel.required_group_size, size, faults, offset);
                }
            }
            _ => {}
        }
    }

    /// Adds the kernel that was read. Keys that are absent from its environment have the number 0.
    fn finish(&mut self) {
        let Some(described) = self.kernel.take() else { return };
        let (mut kernel, kernels) = (described.kernel, &mut self.found.kernels);
        if described.has_environment {
            kernel.barriers = kernel.barriers.or(Some(0));
            kernel.group_memory = kernel.group_memory.or(Some(0));
            kernel.spill_memory = kernel.spill_memory.or(Some(0));
            kernel.required_group_size = kernel.required_group_size.filter(|size| *size != [0; 3]);
            let of_item = |size: u64| {
                let items = kernel.wave_size.filter(|items| *items > 0)?;
                Some(size.div_ceil(items.into()))
            };
            kernel.private_memory = match of_item(described.private_size.unwrap_or(0)) {
                None => Stored::Absent,
                Some(size) if described.has_stack_calls => Stored::Unknown(size),
                Some(size) => Stored::Known(size),
            };
        }
        if let Some(kernels) = kernels.as_mut().filter(|kernels| kernels.len() < MOST_KERNELS)
            && described.has_name
        {
            kernels.push(kernel);
        }
    }
}

/// Returns the key and the value of a line; an empty key for one that has none.
fn pair(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return (&[], line) };
    let (key, value) = line.split_at(colon);
    (key, value.strip_prefix(b":").unwrap_or(value).trim_ascii())
}

/// Removes quotes around a name. Names of kernels have no characters that YAML writes in another way.
fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'\'', name @ .., b'\''] | [b'"', name @ .., b'"'] => name,
        name => name,
    }
}

fn version(value: &[u8]) -> Option<Version> {
    let text = core::str::from_utf8(unquoted(value)).ok()?;
    let (major, minor) = text.split_once('.')?;
    Some(Version::ZeInfo(major.parse().ok()?, minor.parse().ok()?))
}

fn number(value: &[u8]) -> Option<u32> {
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// Reads `[ 1, 2, 3 ]`.
fn three(value: &[u8]) -> Option<[u32; 3]> {
    let inside = value.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut numbers = inside.split(|&byte| byte == b',').map(|part| number(part.trim_ascii()));
    let size = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(size)
}

/// Sets a number. The first one counts.
fn set<N>(slot: &mut Option<N>, value: Option<N>, faults: &mut Vec<Fault>, offset: u64) {
    match value {
        Some(_) if slot.is_some() => once(faults, offset),
        Some(value) => *slot = Some(value),
        None => note(faults, Fault { offset, expected: "a number", found: 0 }),
    }
}

fn once(faults: &mut Vec<Fault>, offset: u64) {
    note(faults, Fault { offset, expected: "a key once", found: 2 });
}
