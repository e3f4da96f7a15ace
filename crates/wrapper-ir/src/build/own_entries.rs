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
    let records = Records::new(&mut module, entries.suffix.as_deref());
    module.retain = entries.retain && module.target.format() != ObjectFormat::Coff;

    let mut declared = BTreeSet::new();
    for symbol in entries.entries.iter().flat_map(|entry| [&entry.address, &entry.auxiliary]) {
        if let Some(symbol) = symbol
            && declared.insert(symbol.as_ref())
        {
            module.globals.push(declaration(symbol));
        }
    }
    let mut kept = Vec::new();
    for (index, entry) in entries.entries.iter().enumerate() {
        let name = records.name_of(entry);
        records.add(&mut module, entry, &numbered(records.text_name, index), name.clone());
        kept.push(name);
    }
    module.keep(kept);
    module
}

/// The form and the place of records of entries.
pub(super) struct Records {
    /// The structure of one.
    pub(super) ty: Type,
    section: Name,
    align: u64,
    prefix: &'static str,
    pub(super) text_name: &'static str,
    text_section: Option<Name>,
}

impl Records {
    /// Adds the structure of a record to the module.
    pub(super) fn new(module: &mut Module, suffix: Option<&str>) -> Self {
        let ty = entry_struct(module);
        let format = module.target.format();
        let section = section(module.abi, module.kind, suffix);
        let section = match format {
            ObjectFormat::Elf => section,
            // Between the bounds of the section, in the order of names.
            ObjectFormat::Coff => format!("{section}$OE").into(),
            ObjectFormat::MachO => Name::Borrowed(MACH_O_SECTION),
        };
        // A runtime reads the section as an array: there must not be padding between entries.
        let align = if module.size_of(&ty).is_multiple_of(8) { 8 } else { module.align_of(&ty) };
        let (prefix, text_name) = match module.abi {
            Abi::Aomp | Abi::Llvm18 => (".omp_offloading.entry.", ".omp_offloading.entry_name"),
            _ => (".offloading.entry.", ".offloading.entry_name"),
        };
        let has_text_section = module.abi.has_common_entries() && format != ObjectFormat::MachO;
        let text_section = has_text_section.then_some(Name::Borrowed(".llvm.rodata.offloading"));
        Records { ty, section, align, prefix, text_name, text_section }
    }

    /// Returns the symbol of the record of an entry.
    pub(super) fn name_of(&self, entry: &OffloadEntry<'_>) -> Name {
        Name::Owned(format!("{}{}", self.prefix, entry.name))
    }

    /// Adds the record of an entry, with the symbol `name`, and its name on devices, with the symbol `text`. Returns the
    /// contents of the record.
    pub(super) fn add(
        &self,
        module: &mut Module,
        entry: &OffloadEntry<'_>,
        text: &Name,
        name: Name,
    ) -> Constant {
        let mut bytes = entry.name.as_bytes().to_vec();
        bytes.push(0);
        module.globals.push(Global {
            unnamed_addr: true,
            section: self.text_section.clone(),
            align: 1,
            ..constant(text.clone(), Constant::Bytes(Cow::Owned(bytes)))
        });
        let init = Constant::Aggregate(self.ty.clone(), fields(module, entry, text));
        module.globals.push(Global {
            linkage: Linkage::Weak,
            section: Some(self.section.clone()),
            align: self.align,
            ..constant(name, init.clone())
        });
        init
    }
}

/// Declares a symbol that the host program defines, for its address.
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
    let flags = int(32, entry.flags.bits().into());
    if module.abi.has_common_entries() {
        vec![
            int(64, 0),
            int(16, 1),
            int(16, number(module.kind)),
            flags,
            host,
            name,
            int(64, entry.size),
            int(64, entry.data),
            address(&entry.auxiliary),
        ]
    } else {
        let size = int(module.target.pointer_bits(), entry.size);
        vec![host, name, size, flags, int(32, entry.data)]
    }
}

/// Returns the kind in records of entries, as in offload binaries.
fn number(kind: OffloadKind) -> u64 {
    kind.0.into()
}
