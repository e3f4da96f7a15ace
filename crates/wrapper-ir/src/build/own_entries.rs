//! The entries of one host object.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::entries::{MACH_O_SECTION, entry_struct, section};
use super::{
    Abi, Constant, Global, Linkage, Module, Name, ObjectFormat, OffloadKind, Type, constant, empty,
    numbered,
};
use crate::entries::{Entries, OffloadEntry};

/// Starts of names that only the module itself gives.
pub(crate) const RESERVED: [&str; 3] = ["llvm.", ".offloading.entry", ".omp_offloading.entry"];

/// Returns the description of `entries`, which are checked.
pub(crate) fn module(entries: &Entries<'_>) -> Module {
    let mut module =
        empty("offload.entries.module", entries.kind, entries.abi, entries.target.clone());
    let ty = entry_struct(&mut module);
    let format = module.target.format();
    let section = section(entries.abi, entries.kind, entries.suffix.as_deref());
    let section = match format {
        ObjectFormat::Elf => section,
        // Between the bounds of the section, in the order of names.
        ObjectFormat::Coff => format!("{section}$OE").into(),
        ObjectFormat::MachO => Name::Borrowed(MACH_O_SECTION),
    };
    // A runtime reads the section as an array: there must not be padding between entries.
    let align = if module.size_of(&ty).is_multiple_of(8) { 8 } else { module.align_of(&ty) };
    module.retain = entries.retain && format != ObjectFormat::Coff;

    let mut declared = BTreeSet::new();
    for symbol in entries.entries.iter().flat_map(|entry| [&entry.address, &entry.auxiliary]) {
        if let Some(symbol) = symbol
            && declared.insert(symbol.as_ref())
        {
            module.globals.push(declaration(symbol));
        }
    }
    let (prefix, text_name) = match entries.abi {
        Abi::Aomp | Abi::Legacy | Abi::Llvm18 => {
            (".omp_offloading.entry.", ".omp_offloading.entry_name")
        }
        _ => (".offloading.entry.", ".offloading.entry_name"),
    };
    let text_section = match entries.abi {
        Abi::Current | Abi::Llvm24 if format != ObjectFormat::MachO => {
            Some(Name::Borrowed(".llvm.rodata.offloading"))
        }
        _ => None,
    };
    let mut kept = Vec::new();
    for (index, entry) in entries.entries.iter().enumerate() {
        let text = numbered(text_name, index);
        let mut bytes = entry.name.as_bytes().to_vec();
        bytes.push(0);
        module.globals.push(Global {
            unnamed_addr: true,
            section: text_section.clone(),
            align: 1,
            ..constant(text.clone(), Constant::Bytes(Cow::Owned(bytes)))
        });
        let init = Constant::Aggregate(ty.clone(), fields(&module, entry, &text));
        let name = Name::Owned(format!("{prefix}{}", entry.name));
        kept.push(name.clone());
        module.globals.push(Global {
            linkage: Linkage::Weak,
            section: Some(section.clone()),
            align,
            ..constant(name, init)
        });
    }
    module.keep(kept);
    module
}

/// Declares a symbol that the host program defines, of which only the address is used.
fn declaration(symbol: &str) -> Global {
    Global {
        name: Name::Owned(symbol.to_owned()),
        ty: Type::Int(8),
        linkage: Linkage::External,
        constant: false,
        init: None,
        ..constant("", Constant::Null)
    }
}

/// Returns the fields of an entry, whose name is in the variable `text`.
fn fields(module: &Module, entry: &OffloadEntry<'_>, text: &Name) -> Vec<Constant> {
    let int = |bits, value| Constant::Int { bits, value };
    let address = |symbol: &Option<Cow<'_, str>>| match symbol {
        Some(symbol) => Constant::Symbol(Name::Owned(symbol.as_ref().to_owned())),
        None => Constant::Null,
    };
    let (host, name) = (address(&entry.address), Constant::symbol(text));
    let flags = int(32, entry.flags.0.into());
    match module.abi {
        Abi::Current | Abi::Llvm24 => vec![
            int(64, 0),
            int(16, 1),
            int(16, number(module.kind)),
            flags,
            host,
            name,
            int(64, entry.size),
            int(64, entry.data),
            address(&entry.auxiliary),
        ],
        _ => {
            let size = int(module.target.pointer_bits(), entry.size);
            vec![host, name, size, flags, int(32, entry.data)]
        }
    }
}

/// Returns the kind in records of entries, as in offload binaries.
fn number(kind: OffloadKind) -> u64 {
    kind.0.into()
}
