//! From the description to sections and symbols.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Assembler, Code, Lowered, ReferenceTarget, lower};
use super::model::{Content, Object, Relocation, Symbol, SymbolKind, advance};
use crate::description::{Constant, Global, Linkage, Module, Name};
use crate::error::Error;
use crate::object_format::ObjectFormat;
use crate::to_u64;

/// The section of code, which is the first.
const CODE: usize = 0;

/// A function in the section of code.
#[derive(Debug)]
pub(super) struct PlacedFunction {
    /// Index of the symbol.
    pub(super) symbol: usize,
    pub(super) lowered: Lowered,
}

/// Builds the sections and symbols of a module, without the parts that depend on the format. `pointer` is the type of
/// the relocation that fills in an address.
pub(super) fn build(
    module: &Module,
    mut assembler: impl Assembler,
    pointer: u32,
) -> Result<(Object, Vec<PlacedFunction>), Error> {
    let kept = if module.retain {
        module.kept.iter().map(AsRef::as_ref).collect()
    } else {
        BTreeSet::new()
    };
    let globals = module.globals.iter().map(|global| (global.name.as_ref(), global)).collect();
    let mut builder = Builder { module, pointer, kept, globals, object: Object::default() };
    let functions = builder.functions(&mut assembler)?;
    for global in module.globals.iter().filter(|global| global.linkage != Linkage::Appending) {
        if let Some(init) = &global.init {
            builder.variable(global, init)?;
        }
    }
    let code = std::mem::take(assembler.code());
    builder.references(&code)?;
    builder.object.at(CODE)?.push(&code.bytes)?;
    for (startups, content) in
        [(&module.constructors, Content::Constructors), (&module.destructors, Content::Destructors)]
    {
        let mut startups: Vec<_> = startups.iter().collect();
        startups.sort_by_key(|startup| startup.priority);
        for startup in startups {
            let name = startup_section(module, content, startup.priority);
            let index = builder.object.section(&name, content);
            builder.pointer(index, &startup.function, 0)?;
        }
    }
    Ok((builder.object, functions))
}

struct Builder<'a> {
    module: &'a Module,
    pointer: u32,
    /// Variables that the linker must keep.
    kept: BTreeSet<&'a str>,
    /// Variables by name.
    globals: BTreeMap<&'a str, &'a Global>,
    object: Object,
}

fn not_native(symbol: &Name, what: &'static str) -> Error {
    Error::not_native(symbol, what)
}

impl Builder<'_> {
    /// Lowers the functions and defines their symbols. The assembler keeps the code.
    fn functions(&mut self, assembler: &mut impl Assembler) -> Result<Vec<PlacedFunction>, Error> {
        /// Filler between functions, which traps: `int3`.
        const FILLER: u8 = 0xcc;

        let defined = || self.module.functions.iter().filter(|found| !found.is_declaration());
        let name = defined().find_map(|function| function.section.clone());
        let name = name.unwrap_or(Name::Borrowed(".text"));
        let section = self.object.section(&name, Content::Code);
        self.object.at(section)?.align = to_u64(assembler.function_align());
        let mut functions = Vec::new();
        for function in defined() {
            let align = assembler.function_align();
            let bytes = &mut assembler.code().bytes;
            bytes.resize(bytes.len().next_multiple_of(align), FILLER);
            let lowered = lower(self.module, function, assembler)?;
            let symbol = self.object.define(Symbol {
                name: function.name.clone(),
                section: Some(section),
                offset: to_u64(lowered.start),
                size: to_u64(lowered.size()),
                linkage: function.linkage,
                hidden: false,
                kind: SymbolKind::Function,
            });
            functions.push(PlacedFunction { symbol, lowered });
        }
        Ok(functions)
    }

    /// Relocations of the code.
    fn references(&mut self, code: &Code) -> Result<(), Error> {
        let mut labels = Vec::new();
        for (number, at) in code.labels.iter().enumerate() {
            labels.push(self.object.define(Symbol {
                name: format!(".Lpcrel_hi{number}").into(),
                section: Some(CODE),
                offset: to_u64(*at),
                size: 0,
                linkage: Linkage::Internal,
                hidden: false,
                kind: SymbolKind::Label,
            }));
        }
        for reference in &code.references {
            let symbol = match &reference.target {
                ReferenceTarget::Symbol(name) => self.symbol(name)?,
                ReferenceTarget::Label(label) => {
                    let label = labels.get(*label).copied();
                    label.ok_or_else(|| Error::internal("a reference to no label"))?
                }
            };
            let offset = to_u64(reference.at);
            let relocation =
                Relocation { offset, kind: reference.kind, symbol, addend: reference.addend };
            self.object.at(CODE)?.relocations.push(relocation);
        }
        Ok(())
    }

    /// Adds a variable to its section.
    fn variable(&mut self, global: &Global, init: &Constant) -> Result<(), Error> {
        let (name, content) = self.place(global, init);
        let index = self.object.section(&name, content);
        let align = global.align.max(self.module.align_of(&global.ty));
        let retain = self.kept.contains(global.name.as_ref());
        let section = self.object.at(index)?;
        section.writable |= !global.constant;
        section.retain |= retain;
        let offset = section.align_to(align)?;
        self.object.define(Symbol {
            name: global.name.clone(),
            section: Some(index),
            offset,
            size: self.module.size_of(&global.ty),
            linkage: global.linkage,
            hidden: global.hidden,
            kind: SymbolKind::Variable,
        });
        self.constant(index, global, init)
    }

    /// Returns the section of a variable.
    fn place(&self, global: &Global, init: &Constant) -> (Name, Content) {
        if let Some(name) = &global.section {
            let package = match init {
                Constant::Image { blob, .. } => {
                    self.module.blobs.get(*blob).is_some_and(|blob| blob.package)
                }
                _ => false,
            };
            let content = if package { Content::Packages } else { Content::Data };
            return (name.clone(), content);
        }
        let (name, content) = match init {
            Constant::Null | Constant::Zero(_) if !global.constant => (".bss", Content::Zeros),
            _ if !global.constant => (".data", Content::Data),
            // Windows moves programs without asking whether pages are written to.
            _ if self.module.target.format() == ObjectFormat::Coff => (".rdata", Content::Data),
            _ if has_pointers(init) => (".data.rel.ro", Content::Data),
            _ => (".rodata", Content::Data),
        };
        (Name::Borrowed(name), content)
    }

    /// Adds a constant to a section, at its end, which has the right alignment.
    fn constant(&mut self, index: usize, global: &Global, value: &Constant) -> Result<(), Error> {
        match value {
            Constant::Int { bits, value } => {
                let bytes = value.to_le_bytes();
                let size = usize::from(*bits).div_ceil(8);
                self.object.at(index)?.push(bytes.get(..size).unwrap_or(&bytes))
            }
            Constant::Null => self.object.at(index)?.push(&[0; 8]),
            Constant::Zero(ty) => {
                let size = self.module.size_of(ty);
                self.object.at(index)?.push_zeros(size)
            }
            Constant::Symbol(symbol) => self.pointer(index, symbol, 0),
            Constant::Inside { global: symbol, offset, .. } => {
                let addend = i64::try_from(*offset);
                let addend = addend.map_err(|_| not_native(symbol, "an address too far"))?;
                self.pointer(index, symbol, addend)
            }
            Constant::Bytes(bytes) => self.object.at(index)?.push(bytes),
            Constant::Image { blob, .. } => {
                let found = self.module.blobs.get(*blob);
                let blob = found.ok_or_else(|| not_native(&global.name, "no such image"))?.clone();
                let section = self.object.at(index)?;
                if section.content == Content::Packages && !blob.package {
                    section.content = Content::Data;
                }
                section.push_image(&blob)
            }
            Constant::Array(elements) => {
                elements.iter().try_for_each(|element| self.constant(index, global, element))
            }
            Constant::Aggregate(ty, fields) => {
                let layout = self.module.struct_layout(self.module.fields(ty));
                if layout.offsets.len() != fields.len() {
                    return Err(not_native(&global.name, "other fields than its structure"));
                }
                let start = self.object.at(index)?.size;
                for (offset, field) in layout.offsets.iter().zip(fields) {
                    self.fill(index, start, *offset)?;
                    self.constant(index, global, field)?;
                }
                self.fill(index, start, layout.size)
            }
        }
    }

    /// Adds zeros up to `offset` after `start`.
    fn fill(&mut self, index: usize, start: u64, offset: u64) -> Result<(), Error> {
        let section = self.object.at(index)?;
        let end = advance(start, offset)?;
        let count = end.checked_sub(section.size);
        section.push_zeros(count.ok_or_else(|| Error::internal("a field larger than its type"))?)
    }

    /// Adds an address.
    fn pointer(&mut self, index: usize, symbol: &Name, addend: i64) -> Result<(), Error> {
        let (kind, symbol) = (self.pointer, self.symbol(symbol)?);
        let section = self.object.at(index)?;
        let offset = section.align_to(8)?;
        section.relocations.push(Relocation { offset, kind, symbol, addend });
        section.push(&[0; 8])
    }

    /// Returns the symbol of a variable or function; one that is not defined yet is declared, and becomes
    /// defined when its definition comes.
    fn symbol(&mut self, name: &Name) -> Result<usize, Error> {
        if let Some(symbol) = self.object.find(name) {
            return Ok(symbol);
        }
        let (linkage, hidden) = match (self.globals.get(name.as_ref()), self.module.function(name))
        {
            (Some(global), _) => (global.linkage, global.hidden),
            (None, Some(function)) => (function.linkage, false),
            (None, None) => return Err(not_native(name, "neither defined nor declared")),
        };
        Ok(self.object.define(Symbol {
            name: name.clone(),
            section: None,
            offset: 0,
            size: 0,
            linkage,
            hidden,
            kind: SymbolKind::Label,
        }))
    }
}

/// Returns whether the loader has to fill something in.
fn has_pointers(constant: &Constant) -> bool {
    match constant {
        Constant::Symbol(_) | Constant::Inside { .. } => true,
        Constant::Array(parts) | Constant::Aggregate(_, parts) => parts.iter().any(has_pointers),
        _ => false,
    }
}

/// Returns the section for a pointer to a function that runs at the start or at the end, as LLVM's code
/// generator names it.
fn startup_section(module: &Module, content: Content, priority: u32) -> Name {
    /// The priority of functions without one.
    const DEFAULT: u32 = 65535;

    let at_start = content == Content::Constructors;
    let target = &module.target;
    if target.format() != ObjectFormat::Coff {
        let name = if at_start { ".init_array" } else { ".fini_array" };
        return match priority {
            DEFAULT => name.into(),
            _ => format!("{name}.{priority}").into(),
        };
    }
    if target.is_mingw() {
        let name = if at_start { ".ctors" } else { ".dtors" };
        return match priority {
            DEFAULT => name.into(),
            // They run from the end.
            _ => format!("{name}.{:05}", DEFAULT - priority).into(),
        };
    }
    // Microsoft's runtime goes through these in the order of their names, with its own parts at
    // 200 (C) and 400 (L).
    let what = if at_start { 'C' } else { 'T' };
    match priority {
        DEFAULT if at_start => ".CRT$XCU".into(),
        DEFAULT => ".CRT$XTX".into(),
        0..200 => format!(".CRT$X{what}A{priority:05}").into(),
        200 => format!(".CRT$X{what}C").into(),
        201..400 => format!(".CRT$X{what}C{priority:05}").into(),
        400 => format!(".CRT$X{what}L").into(),
        _ => format!(".CRT$X{what}T{priority:05}").into(),
    }
}
