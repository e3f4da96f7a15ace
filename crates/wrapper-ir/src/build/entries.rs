//! The entries of the host objects: where they are, and what one looks like.

use super::{
    Abi, Constant, Global, Linkage, Module, Name, ObjectFormat, OffloadKind, Struct, Type,
};
use crate::wrapper::Wrapper;

/// The section of entries in Mach-O, with its segment.
pub(super) const MACH_O_SECTION: &str = "__LLVM,offload_entries";

/// The entries of all host objects in the program or library.
pub(super) struct Entries {
    /// The structure of one.
    pub(super) ty: Type,
    /// The address of the first.
    pub(super) start: Constant,
    /// The address after the last.
    pub(super) stop: Constant,
}

/// Declares the entries, and the symbols that make the linker define their bounds.
pub(super) fn add(module: &mut Module, wrapper: &Wrapper<'_>) -> Entries {
    let format = module.target.format();
    let ty = entry_struct(module);
    let section = match format {
        ObjectFormat::MachO => Name::Borrowed(MACH_O_SECTION),
        _ => section(wrapper.abi, wrapper.kind, wrapper.options.private_entries.as_deref()),
    };
    let (start, stop) = bounds(format, &section);
    module.retain = format != ObjectFormat::Coff
        && match wrapper.abi {
            Abi::Aomp | Abi::Llvm18 => false,
            _ => wrapper.options.retain.unwrap_or(false),
        };

    let none = Type::array(0, ty.clone());
    let bound = Global {
        name: Name::Borrowed(""),
        // Compilers take two variables for different ones, unless they are empty: with the type
        // OpenMP's had once, the loop of CUDA and HIP would not ask whether there is an entry.
        ty: if wrapper.abi == Abi::Aomp { ty.clone() } else { none.clone() },
        linkage: Linkage::External,
        hidden: true,
        constant: true,
        unnamed_addr: false,
        section: None,
        align: 0,
        no_sanitize: false,
        init: None,
    };
    // ELF: an empty variable in the section makes the linker define its bounds.
    let dummy = Global {
        name: dummy_name(wrapper, &section),
        ty: none.clone(),
        section: Some(section.clone()),
        init: Some(Constant::Zero(none.clone())),
        ..bound.clone()
    };
    let first = Constant::symbol(&start);
    let end = Constant::symbol(&stop);
    match (format, wrapper.abi) {
        (ObjectFormat::Elf, _) => {
            module.globals.push(Global { name: start, ..bound.clone() });
            module.globals.push(Global { name: stop, ..bound });
            match wrapper.abi {
                Abi::Aomp | Abi::Llvm18 => module.globals.push(dummy),
                _ => keep_internal(module, dummy),
            }
            Entries { ty, start: first, stop: end }
        }
        // Linkers define the bounds of a section that no object has; this one is always there.
        (ObjectFormat::MachO, _) => {
            module.globals.push(Global { name: start, ..bound.clone() });
            module.globals.push(Global { name: stop, ..bound });
            keep_internal(module, dummy);
            Entries { ty, start: first, stop: end }
        }
        // COFF: sections are sorted by what follows the dollar.
        (ObjectFormat::Coff, Abi::Llvm24) => {
            let one = Type::array(1, ty.clone());
            let place = |name, order: &str| Global {
                name,
                ty: one.clone(),
                linkage: Linkage::WeakOdr,
                section: Some(format!("{section}{order}").into()),
                align: 8,
                init: Some(Constant::Zero(one.clone())),
                ..bound.clone()
            };
            let size = module.size_of(&ty);
            module.globals.push(place(start.clone(), "$OA"));
            module.globals.push(place(stop, "$OZ"));
            let (source, indices) = (Type::Int(8), vec![size]);
            let inbounds = true;
            let first = Constant::Inside { global: start, offset: size, source, indices, inbounds };
            Entries { ty, start: first, stop: end }
        }
        (ObjectFormat::Coff, _) => {
            let place = |name, order: &str| Global {
                name,
                linkage: Linkage::WeakOdr,
                section: Some(format!("{section}{order}").into()),
                init: Some(Constant::Zero(none.clone())),
                ..bound.clone()
            };
            module.globals.push(place(start, "$OA"));
            module.globals.push(place(stop, "$OZ"));
            // Linkers drop an empty section, and its bounds with it: so it has some bytes, before the first bound.
            let contents = Type::bytes(8);
            let dummy = Global {
                ty: contents.clone(),
                section: Some(format!("{section}$A").into()),
                init: Some(Constant::Zero(contents)),
                ..dummy
            };
            keep_internal(module, dummy);
            Entries { ty, start: first, stop: end }
        }
    }
}

/// Adds a variable that only this object sees, and that stays although nothing refers to it.
fn keep_internal(module: &mut Module, variable: Global) {
    let name = variable.name.clone();
    let linkage = Linkage::Internal;
    module.globals.push(Global { linkage, hidden: false, align: 8, ..variable });
    module.keep(vec![name]);
}

/// Adds the structure of an entry.
pub(super) fn entry_struct(module: &mut Module) -> Type {
    use Type::{Int, Pointer};
    let name = match module.abi {
        Abi::Aomp => Name::Borrowed("__tgt_offload_entry"),
        _ => Name::Borrowed("struct.__tgt_offload_entry"),
    };
    let fields = if module.abi.has_common_entries() {
        vec![
            Int(64), // reserved, 0
            Int(16), // version, 1
            Int(16), // kind
            Int(32), // flags
            Pointer, // address
            Pointer, // name
            Int(64), // size
            Int(64), // data
            Pointer, // auxiliary address
        ]
    } else {
        // Address, name, size, flags, data.
        vec![Pointer, Pointer, module.size_type(), Int(32), Int(32)]
    };
    module.structs.push(Struct { name: name.clone(), fields });
    Type::Struct(name)
}

/// Returns the section that the compiler puts entries into, without the parts that depend on the object format.
pub(super) fn section(abi: Abi, kind: OffloadKind, suffix: Option<&str>) -> Name {
    let name = abi.entries_section(kind);
    match suffix {
        None => Name::Borrowed(name),
        Some(suffix) => Name::Owned(format!("{name}_{suffix}")),
    }
}

/// Returns the names of the bounds of the section.
fn bounds(format: ObjectFormat, section: &str) -> (Name, Name) {
    match format {
        ObjectFormat::MachO => (
            Name::Borrowed("\x01section$start$__LLVM$offload_entries"),
            Name::Borrowed("\x01section$end$__LLVM$offload_entries"),
        ),
        _ => (format!("__start_{section}").into(), format!("__stop_{section}").into()),
    }
}

/// Returns the name of the variable that is in the section so that it is there.
fn dummy_name(wrapper: &Wrapper<'_>, section: &str) -> Name {
    match (wrapper.abi, &wrapper.options.private_entries) {
        (Abi::Aomp, None) => Name::Borrowed("__dummy.omp_offloading.entry"),
        (Abi::Aomp, Some(suffix)) => format!("__dummy.omp_offloading.entry_{suffix}").into(),
        _ => format!("__dummy.{section}").into(),
    }
}
