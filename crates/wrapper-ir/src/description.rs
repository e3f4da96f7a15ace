//! The description of a module of registration code or entries: what every emitter walks over.
//!
//! It is LLVM IR as data, as much of it as registration code needs. Symbols are referred to by
//! name, the values of a function by number: first its parameters, then the results of its
//! instructions in their order, which is how LLVM numbers them.
//!
//! Emitters go through the lists of a [`Module`] in their order.

use std::borrow::Cow;
use std::ops::Range;

use crate::OffloadKind;
use crate::abi::Abi;
use crate::target::Target;

/// The name of a symbol or type.
pub(crate) type Name = Cow<'static, str>;

/// A module of registration code, or of the entries of a host object, made by a [`Wrapper`](crate::Wrapper) or by
/// [`Entries`](crate::Entries).
#[derive(Debug)]
pub struct Module {
    pub(crate) source_name: &'static str,
    pub(crate) kind: OffloadKind,
    pub(crate) abi: Abi,
    pub(crate) target: Target,
    pub(crate) structs: Vec<Struct>,
    pub(crate) globals: Vec<Global>,
    pub(crate) functions: Vec<Function>,
    /// Ranges of inputs: the bytes of each [`Constant::Image`].
    pub(crate) blobs: Vec<Blob>,
    /// Size of each input in bytes.
    pub(crate) inputs: Vec<u64>,
    pub(crate) constructors: Vec<Startup>,
    pub(crate) destructors: Vec<Startup>,
    pub(crate) kept: Vec<Name>,
    pub(crate) retain: bool,
}

/// A function that runs when the program or library is loaded or unloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Startup {
    /// Order: constructors run in ascending order, destructors in descending order, after and
    /// before those without a priority, which count as 65535.
    pub(crate) priority: u32,
    /// The function.
    pub(crate) function: Name,
}

/// Bytes of an input that are put into the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    /// The index of the input.
    pub(crate) input: usize,
    /// The first byte that is taken.
    pub(crate) offset: u64,
    /// The number of bytes.
    pub(crate) size: u64,
    /// `true` if they are one valid offload binary.
    pub(crate) package: bool,
}

impl Blob {
    /// Returns its range in the input.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.size
    }
}

/// A type. Functions have no type here: their parameters and result give it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    /// No value.
    Void,
    /// An integer of this many bits: 1, 8, 16, 32 or 64.
    Int(u16),
    /// A pointer, of no particular type.
    Pointer,
    /// This many elements of a type.
    Array(u64, Box<Type>),
    /// The structure of this name.
    Struct(Name),
    /// A structure without a name.
    Tuple(Vec<Type>),
}

/// A structure with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Struct {
    /// Name, without the `%` of LLVM's text.
    pub(crate) name: Name,
    /// The types of its fields, laid out as C does.
    pub(crate) fields: Vec<Type>,
}

/// The visibility of a symbol, and the handling of several of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Linkage {
    /// Visible to every object; one defines it.
    External,
    /// Every object; null if none defines it.
    ExternWeak,
    /// Visible to every object; several may define it, and the linker takes one. In COFF objects, visible to this object only.
    Weak,
    /// Every object; several may define it, all alike.
    WeakOdr,
    /// This object only.
    Internal,
    /// The arrays with names that start with `llvm.`, which native objects do not have.
    Appending,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Global {
    /// Name. A leading `\x01` says that the rest is the name in the object, without the prefix of the target.
    pub(crate) name: Name,
    /// The type of its contents.
    pub(crate) ty: Type,
    /// The symbol's linkage.
    pub(crate) linkage: Linkage,
    /// Not seen outside the program or library it is linked into.
    pub(crate) hidden: bool,
    /// Never written, once it is relocated.
    pub(crate) constant: bool,
    /// Its address does not matter, only its contents.
    pub(crate) unnamed_addr: bool,
    /// The section, if it has to be a certain one.
    pub(crate) section: Option<Name>,
    /// Alignment in bytes, a power of two; 0 for its type's.
    pub(crate) align: u64,
    /// The address sanitizers must not put anything around it.
    pub(crate) no_sanitize: bool,
    /// Initial value; `None` for a declaration.
    pub(crate) init: Option<Constant>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    /// An integer; a negative one is that modulo two to the width.
    Int {
        /// Width in bits.
        bits: u16,
        /// Its value.
        value: u64,
    },
    /// The pointer that points nowhere.
    Null,
    /// Zeros of this type, which is an array or structure.
    Zero(Type),
    /// The address of a variable or function.
    Symbol(Name),
    /// An address inside a variable, or one past its end.
    Inside {
        /// The variable.
        global: Name,
        /// The number of bytes after its start, more than 0.
        offset: u64,
        /// The type LLVM's `getelementptr` steps by.
        source: Type,
        /// 64-bit indices.
        indices: Vec<u64>,
        /// `true` if the `getelementptr` is an inbounds one.
        inbounds: bool,
    },
    /// Bytes, an array of 8-bit integers.
    Bytes(Cow<'static, [u8]>),
    /// The bytes of [`Module::blobs`] with this index, an array of 8-bit integers, not empty.
    Image {
        /// The index of the blob.
        blob: usize,
        /// Size in bytes.
        size: u64,
    },
    /// The elements of an array that has at least one.
    Array(Vec<Constant>),
    /// The fields of the structure of this type, a [`Type::Struct`] or [`Type::Tuple`].
    Aggregate(Type, Vec<Constant>),
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: Name,
    pub(crate) role: Role,
    /// The function's linkage.
    pub(crate) linkage: Linkage,
    /// The section, if it has to be a certain one.
    pub(crate) section: Option<Name>,
    /// The type of its result.
    pub(crate) result: Type,
    /// The number of its parameters: the first of `locals`.
    pub(crate) parameters: usize,
    /// Parameters, then the results of the instructions, in their order.
    pub(crate) locals: Vec<Local>,
    /// Body, the first block first; empty for a declaration.
    pub(crate) blocks: Vec<Block>,
}

/// The purpose of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    /// Belongs to the runtime or to C: declared only.
    Runtime,
    /// Runs when the program or library is loaded, and registers its images.
    Register,
    /// Runs when it is unloaded.
    Unregister,
    /// Called by [`Register`](Self::Register) with the handle of the fatbinary: registers every
    /// entry of CUDA and HIP.
    RegisterEntries,
}

/// A value of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) ty: Type,
    /// Name, for reading only; may be empty.
    pub(crate) name: &'static str,
}

/// Instructions one after the other; the last one and no other is a [terminator].
///
/// [terminator]: Operation::is_terminator
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Name, for reading only. Not empty, and not a name of a local.
    pub(crate) name: &'static str,
    /// The instructions.
    pub(crate) instructions: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// The local it defines, an index into [`Function::locals`], if it has a result.
    pub(crate) result: Option<usize>,
    pub(crate) operation: Operation,
}

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A constant: an integer, null, or an address.
    Constant(Constant),
    /// A parameter or result, by its index in [`Function::locals`].
    Local(usize),
}

/// The operation of an instruction. Blocks are given by their index in [`Function::blocks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Calls a function.
    Call {
        /// The function, one of the module.
        function: Name,
        arguments: Vec<Value>,
    },
    /// Reads from memory.
    Load {
        /// The type to read.
        ty: Type,
        /// The address.
        pointer: Value,
        /// Alignment there, in bytes.
        align: u64,
    },
    /// Writes to memory.
    Store {
        /// The value to write.
        value: Value,
        /// The address.
        pointer: Value,
        /// Alignment there, in bytes.
        align: u64,
    },
    /// The address of a field: an inbounds `getelementptr`.
    Field {
        /// The structure.
        source: Type,
        /// Its address.
        base: Value,
        /// The field: the 32-bit indices 0 and this one.
        index: u32,
    },
    /// The address after an element: an inbounds `getelementptr`.
    Next {
        /// The type of the element.
        source: Type,
        /// Its address.
        base: Value,
    },
    /// `true` if two values are the same, a 1-bit integer.
    Equal(Value, Value),
    /// `true` if two values are not the same, a 1-bit integer.
    NotEqual(Value, Value),
    /// The bits that both values have.
    And(Value, Value),
    /// The first value moved right by as many bits as the second says; zeros come in.
    ShiftRight(Value, Value),
    /// The low bits of an integer.
    Truncate {
        /// The integer.
        value: Value,
        /// The type of the result.
        to: Type,
    },
    /// The value for the block that control comes from.
    Phi {
        /// The type of the values.
        ty: Type,
        /// Values and blocks. Locals may be defined further down.
        incoming: Vec<(Value, usize)>,
    },
    /// Continues in another block.
    Branch(usize),
    /// Continues in one of two blocks.
    BranchIf {
        /// A 1-bit integer.
        condition: Value,
        /// The block for 1.
        then: usize,
        /// The block for 0.
        otherwise: usize,
    },
    /// Continues in the block for a value.
    Switch {
        /// An integer.
        value: Value,
        /// The block for other values.
        default: usize,
        /// Values, of as many bits, and blocks.
        cases: Vec<(u64, usize)>,
    },
    /// Returns nothing.
    Return,
}

impl Operation {
    /// Returns whether control does not go on to the next instruction.
    pub(crate) fn is_terminator(&self) -> bool {
        matches!(self, Self::Branch(_) | Self::BranchIf { .. } | Self::Switch { .. } | Self::Return)
    }
}

/// The layout of a structure, from [`Module::struct_layout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StructLayout {
    /// The offset of each field in bytes.
    pub(crate) offsets: Vec<u64>,
    /// Size of the structure in bytes, a multiple of its alignment.
    pub(crate) size: u64,
    /// Alignment in bytes.
    pub(crate) align: u64,
}

impl Type {
    /// Returns `count` bytes.
    pub(crate) fn bytes(count: u64) -> Self {
        Self::Array(count, Box::new(Self::Int(8)))
    }

    /// Returns `count` elements of type `element`.
    pub(crate) fn array(count: u64, element: Self) -> Self {
        Self::Array(count, Box::new(element))
    }
}

impl Constant {
    /// Returns a 32-bit integer.
    pub(crate) fn i32(value: u32) -> Self {
        Self::Int { bits: 32, value: value.into() }
    }

    /// Returns the address of a symbol.
    pub(crate) fn symbol(name: &Name) -> Self {
        Self::Symbol(name.clone())
    }

    /// Returns the address `offset` bytes into the variable `global`, which holds `size` bytes, in the form of the
    /// generation.
    pub(crate) fn inside_bytes(abi: Abi, global: &Name, size: u64, offset: u64) -> Self {
        if offset == 0 {
            return Self::symbol(global);
        }
        let (source, indices) = match abi {
            Abi::Llvm24 => (Type::Int(8), vec![offset]),
            _ => (Type::bytes(size), vec![0, offset]),
        };
        Self::Inside { global: global.clone(), offset, source, indices, inbounds: false }
    }

    /// Returns the type.
    pub(crate) fn ty(&self) -> Type {
        match self {
            Self::Int { bits, .. } => Type::Int(*bits),
            Self::Null | Self::Symbol(_) | Self::Inside { .. } => Type::Pointer,
            Self::Zero(ty) | Self::Aggregate(ty, _) => ty.clone(),
            Self::Bytes(bytes) => Type::bytes(crate::to_u64(bytes.len())),
            Self::Image { size, .. } => Type::bytes(*size),
            Self::Array(elements) => Type::array(
                crate::to_u64(elements.len()),
                elements.first().map_or(Type::Int(8), Self::ty),
            ),
        }
    }
}

impl Function {
    /// Returns whether it has no body.
    pub(crate) fn is_declaration(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the types of its parameters.
    pub(crate) fn parameter_types(&self) -> impl Iterator<Item = &Type> {
        self.locals.iter().take(self.parameters).map(|local| &local.ty)
    }

    /// Returns the type of a value of this function; [`Type::Void`] for a local it does not have.
    pub(crate) fn type_of(&self, value: &Value) -> Type {
        match value {
            Value::Constant(constant) => constant.ty(),
            Value::Local(index) => {
                self.locals.get(*index).map_or(Type::Void, |local| local.ty.clone())
            }
        }
    }
}

impl Module {
    /// Returns the variable of this name.
    #[cfg(test)]
    pub(crate) fn global(&self, name: &str) -> Option<&Global> {
        self.globals.iter().find(|global| global.name == name)
    }

    /// Returns the function of this name.
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Returns the structure of this name.
    pub(crate) fn structure(&self, name: &str) -> Option<&Struct> {
        self.structs.iter().find(|structure| structure.name == name)
    }

    /// Returns the fields of a structure, none for another type.
    pub(crate) fn fields<'a>(&'a self, ty: &'a Type) -> &'a [Type] {
        match ty {
            Type::Struct(name) => self.structure(name).map_or(&[], |found| &found.fields),
            Type::Tuple(fields) => fields,
            _ => &[],
        }
    }

    /// Returns the size of a type in bytes on the target: 0 for [`Type::Void`].
    pub(crate) fn size_of(&self, ty: &Type) -> u64 {
        match ty {
            Type::Void => 0,
            Type::Int(bits) => u64::from(*bits).div_ceil(8),
            Type::Pointer => self.target.pointer_bytes(),
            Type::Array(count, element) => self.size_of(element) * count,
            Type::Struct(_) | Type::Tuple(_) => self.struct_layout(self.fields(ty)).size,
        }
    }

    /// Returns the alignment of a type in bytes on the target.
    pub(crate) fn align_of(&self, ty: &Type) -> u64 {
        match ty {
            Type::Void => 1,
            Type::Int(64) => self.target.i64_align(),
            Type::Int(_) => self.size_of(ty),
            Type::Pointer => self.target.pointer_bytes(),
            Type::Array(_, element) => self.align_of(element),
            Type::Struct(_) | Type::Tuple(_) => self.struct_layout(self.fields(ty)).align,
        }
    }

    /// Returns the layout of a structure on the target.
    pub(crate) fn struct_layout(&self, fields: &[Type]) -> StructLayout {
        let mut layout = StructLayout { offsets: Vec::new(), size: 0, align: 1 };
        for field in fields {
            let align = self.align_of(field).max(1);
            // Structures of a few integers and pointers: nothing near 2⁶⁴.
            let offset = layout.size.next_multiple_of(align);
            layout.offsets.push(offset);
            layout.size = offset + self.size_of(field);
            layout.align = layout.align.max(align);
        }
        layout.size = layout.size.next_multiple_of(layout.align);
        layout
    }
}

/// Returns an integer of `bits` bits, from 1 to 64, as LLVM writes it: with its highest bit as the sign.
pub(crate) fn sign_extend(bits: u16, value: u64) -> i64 {
    let unused = 64 - u32::from(bits);
    (value << unused).cast_signed() >> unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entries, Image, OffloadEntry, Wrapper};

    /// Returns offsets and size of a structure, as clang 22 lays it out (`-fdump-record-layouts`).
    fn layout(kind: OffloadKind, abi: Abi, triple: &str, name: &str) -> (Vec<u64>, u64) {
        let mut image = Image::from_bytes(b"x");
        if abi == Abi::Aomp {
            image = image.with_target_id("gfx906");
        }
        let wrapper = Wrapper::new(kind, abi, Target::new(triple).unwrap()).with_image(image);
        let module = wrapper.module().unwrap();
        let fields = &module.structure(name).unwrap().fields;
        let layout = module.struct_layout(fields);
        (layout.offsets, layout.size)
    }

    #[test]
    fn entries_are_laid_out_as_by_clang() {
        let entry = |triple| {
            layout(OffloadKind::OPENMP, Abi::Current, triple, "struct.__tgt_offload_entry")
        };
        let narrow = vec![0, 8, 10, 12, 16, 20, 24, 32, 40];
        assert_eq!(entry("x86_64-unknown-linux-gnu"), (vec![0, 8, 10, 12, 16, 24, 32, 40, 48], 56));
        assert_eq!(entry("i386-unknown-linux-gnu"), (narrow.clone(), 44));
        assert_eq!(entry("i686-pc-windows-msvc"), (narrow.clone(), 48));
        assert_eq!(entry("armv7-unknown-linux-gnueabihf"), (narrow, 48));
    }

    #[test]
    fn old_entries_have_five_fields() {
        let entry = |triple| layout(OffloadKind::OPENMP, Abi::Aomp, triple, "__tgt_offload_entry");
        assert_eq!(entry("x86_64-unknown-linux-gnu"), (vec![0, 8, 16, 24, 28], 32));
        assert_eq!(entry("i386-unknown-linux-gnu"), (vec![0, 4, 8, 12, 16], 20));
    }

    #[test]
    fn tables_are_laid_out_as_by_clang() {
        let wide = |kind, name| layout(kind, Abi::Current, "aarch64-unknown-linux-gnu", name);
        let narrow = |kind, name| layout(kind, Abi::Current, "powerpc-unknown-linux-gnu", name);
        assert_eq!(wide(OffloadKind::OPENMP, "__tgt_device_image"), (vec![0, 8, 16, 24], 32));
        assert_eq!(narrow(OffloadKind::OPENMP, "__tgt_device_image"), (vec![0, 4, 8, 12], 16));
        assert_eq!(wide(OffloadKind::OPENMP, "__tgt_bin_desc"), (vec![0, 8, 16, 24], 32));
        assert_eq!(narrow(OffloadKind::OPENMP, "__tgt_bin_desc"), (vec![0, 4, 8, 12], 16));
        assert_eq!(wide(OffloadKind::HIP, "fatbin_wrapper"), (vec![0, 4, 8, 16], 24));
        assert_eq!(narrow(OffloadKind::HIP, "fatbin_wrapper"), (vec![0, 4, 8, 12], 16));
        let info = |triple| layout(OffloadKind::OPENMP, Abi::Aomp, triple, "__tgt_image_info");
        assert_eq!(info("x86_64-unknown-linux-gnu"), (vec![0, 4, 8, 16, 24], 32));
        assert_eq!(info("i386-unknown-linux-gnu"), (vec![0, 4, 8, 12, 16], 20));
    }

    /// Checks the conditions that every emitter relies on.
    #[test]
    fn descriptions_meet_the_conditions_of_emitters() {
        let triples = ["x86_64-unknown-linux-gnu", "i686-pc-windows-msvc", "aarch64-apple-darwin"];
        for kind in Wrapper::KINDS {
            for abi in Abi::ALL {
                for triple in triples {
                    let target = Target::new(triple).unwrap();
                    let wrapper =
                        Wrapper::new(kind, abi, target).with_image(Image::from_bytes(b"an image"));
                    if let Ok(module) = wrapper.module() {
                        check(&module);
                    }
                    let target = Target::new(triple).unwrap();
                    let entries = [OffloadEntry::kernel("a", "b"), OffloadEntry::kernel("b", "b")];
                    if let Ok(module) =
                        Entries::new(kind, abi, target).with_entries(entries).module()
                    {
                        check(&module);
                    }
                }
            }
        }
    }

    fn check(module: &Module) {
        let functions = module.functions.iter().map(|function| &function.name);
        let mut names: Vec<_> = module.globals.iter().map(|global| &global.name).collect();
        names.extend(functions);
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        for global in &module.globals {
            if let Some(init) = &global.init {
                assert_eq!(init.ty(), global.ty, "{}", global.name);
                check_constant(module, init);
            }
        }
        for function in &module.functions {
            check_function(module, function);
        }
        let called = |name: &Name| module.function(name).is_some_and(|f| !f.is_declaration());
        assert!(module.constructors.iter().all(|startup| called(&startup.function)));
        assert!(module.destructors.iter().all(|startup| called(&startup.function)));
    }

    fn check_constant(module: &Module, constant: &Constant) {
        match constant {
            Constant::Symbol(name) => {
                assert!(module.global(name).is_some() || module.function(name).is_some());
            }
            Constant::Inside { global, offset, .. } => {
                let size = module.size_of(&module.global(global).unwrap().ty);
                assert!((1..=size).contains(offset));
            }
            Constant::Array(elements) => {
                assert!(!elements.is_empty());
                elements.iter().for_each(|element| {
                    assert_eq!(element.ty(), elements[0].ty());
                    check_constant(module, element);
                });
            }
            Constant::Aggregate(ty, fields) => {
                let types: Vec<Type> = fields.iter().map(Constant::ty).collect();
                assert_eq!(types, module.fields(ty));
                fields.iter().for_each(|field| check_constant(module, field));
            }
            _ => {}
        }
    }

    fn check_function(module: &Module, function: &Function) {
        let mut next = function.parameters;
        for block in &function.blocks {
            assert!(!block.name.is_empty());
            assert!(function.locals.iter().all(|local| local.name != block.name));
            let (last, others) = block.instructions.split_last().unwrap();
            assert!(last.operation.is_terminator());
            assert!(others.iter().all(|other| !other.operation.is_terminator()));
            for instruction in &block.instructions {
                if let Some(result) = instruction.result {
                    assert_eq!(result, next, "{}", function.name);
                    next += 1;
                }
                if let Operation::Call { function: callee, arguments } = &instruction.operation {
                    let callee = module.function(callee).unwrap();
                    let types: Vec<Type> =
                        arguments.iter().map(|argument| function.type_of(argument)).collect();
                    assert!(callee.parameter_types().eq(&types), "{}", callee.name);
                    assert_eq!(instruction.result.is_none(), callee.result == Type::Void);
                }
            }
        }
        assert_eq!(next, function.locals.len());
    }

    #[test]
    fn integers_are_sign_extended() {
        assert_eq!(sign_extend(32, 0xFFFF_FFFF), -1);
        assert_eq!(sign_extend(32, 0x7FFF_FFFF), 0x7FFF_FFFF);
        assert_eq!(sign_extend(64, 0xFFFF_FFFF), 0xFFFF_FFFF);
        assert_eq!(sign_extend(16, 0x8000), -0x8000);
        assert_eq!(sign_extend(1, 1), -1);
        assert_eq!(sign_extend(64, u64::MAX), -1);
    }
}
