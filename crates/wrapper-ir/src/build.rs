//! From what to wrap to the description.

mod body;
mod entries;
mod fatbin;
mod openmp;
pub(crate) mod own_entries;
mod register_entries;
mod runtime_names;
mod sycl;
mod sycl22;

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use crate::OffloadKind;
use crate::abi::Abi;
use crate::description::{
    Blob, Block, Constant, Function, Global, Instruction, Linkage, Local, Module, Name, Operation,
    Role, Startup, Struct, Type,
};
use crate::error::{Error, ErrorKind};
use crate::image::Image;
use crate::object_format::ObjectFormat;
use crate::target::Target;
use crate::wrapper::Wrapper;
use body::Body;

impl Wrapper<'_> {
    /// Returns the description of the module, which the emitters write.
    ///
    /// # Errors
    ///
    /// Every [`ErrorKind`](crate::ErrorKind).
    pub fn module(&self) -> Result<Module, Error> {
        self.check()?;
        module(self)
    }
}

/// Returns the module for `wrapper`, which is checked except for offload binaries.
fn module(wrapper: &Wrapper<'_>) -> Result<Module, Error> {
    let source_name = match wrapper.abi {
        Abi::Aomp => "offload.wrapper.object",
        _ => "offload.wrapper.module",
    };
    let mut module = empty(source_name, wrapper.kind, wrapper.abi, wrapper.target.clone());
    module.inputs = wrapper.images.iter().map(|image| image.size).collect();
    match wrapper.kind {
        OffloadKind::OPENMP => openmp::build(&mut module, wrapper)?,
        OffloadKind::CUDA | OffloadKind::HIP => fatbin::build(&mut module, wrapper)?,
        // Others are refused by now.
        _ if wrapper.abi == Abi::Llvm22 => sycl22::build(&mut module, wrapper)?,
        _ => sycl::build(&mut module, wrapper)?,
    }
    Ok(module)
}

/// Returns an empty module.
fn empty(source_name: &'static str, kind: OffloadKind, abi: Abi, target: Target) -> Module {
    Module {
        source_name,
        kind,
        abi,
        target,
        structs: Vec::new(),
        globals: Vec::new(),
        functions: Vec::new(),
        blobs: Vec::new(),
        inputs: Vec::new(),
        constructors: Vec::new(),
        destructors: Vec::new(),
        kept: Vec::new(),
        retain: false,
    }
}

/// Returns the registered parts of image `index`.
fn parts(wrapper: &Wrapper<'_>, index: usize) -> Result<Vec<Range<u64>>, Error> {
    match wrapper.images.get(index) {
        Some(image) if wrapper.options.keep_packages => Ok(iter::once(0..image.size).collect()),
        Some(image) => image.parts(index, wrapper.kind),
        None => Ok(Vec::new()),
    }
}

/// Returns whether image `index` is an offload binary that was checked.
fn is_package(wrapper: &Wrapper<'_>, index: usize) -> bool {
    let image = wrapper.images.get(index);
    !wrapper.options.keep_packages && image.is_some_and(Image::is_package)
}

/// Returns a constant of this object only, without further properties.
fn constant(name: impl Into<Name>, init: Constant) -> Global {
    Global {
        name: name.into(),
        ty: init.ty(),
        linkage: Linkage::Internal,
        hidden: false,
        constant: true,
        unnamed_addr: false,
        section: None,
        align: 0,
        no_sanitize: false,
        init: Some(init),
    }
}

/// Adds a structure to a module.
fn add_struct(module: &mut Module, name: &'static str, fields: Vec<Type>) -> Type {
    module.structs.push(Struct { name: name.into(), fields });
    Type::Struct(name.into())
}

/// Returns the bytes of a blob.
fn image_bytes(blob: usize, size: u64) -> Constant {
    match size {
        0 => Constant::Zero(Type::bytes(0)),
        _ => Constant::Image { blob, size },
    }
}

/// Returns `base` for the first, `base.N` for the others, as LLVM makes names unique.
fn numbered(base: &'static str, index: usize) -> Name {
    match index {
        0 => Cow::Borrowed(base),
        _ => Cow::Owned(format!("{base}.{index}")),
    }
}

impl Module {
    /// Declares a function of the runtime or of C.
    fn declare(&mut self, name: impl Into<Name>, result: Type, parameters: &[Type]) -> Name {
        let name = name.into();
        let local = |ty: &Type| Local { ty: ty.clone(), name: "" };
        self.functions.push(Function {
            name: name.clone(),
            role: Role::Runtime,
            linkage: Linkage::External,
            section: None,
            result,
            parameters: parameters.len(),
            locals: parameters.iter().map(local).collect(),
            blocks: Vec::new(),
        });
        name
    }

    /// Defines a function that returns nothing and runs when the program is loaded or unloaded.
    fn define(&mut self, name: &Name, role: Role, body: Body) {
        let section = match self.target.format() {
            ObjectFormat::MachO => "__TEXT,__StaticInit",
            _ => ".text.startup",
        };
        self.functions.push(Function {
            name: name.clone(),
            role,
            linkage: Linkage::Internal,
            section: Some(section.into()),
            result: Type::Void,
            parameters: body.parameters,
            locals: body.locals,
            blocks: body.blocks,
        });
    }

    /// Has `function` run when the program is loaded.
    fn run_at_start(&mut self, priority: u32, function: &Name) {
        self.constructors.push(Startup { priority, function: function.clone() });
        self.globals.push(startup_array("llvm.global_ctors", priority, function));
    }

    /// Has `function` run when the program is unloaded.
    fn run_at_end(&mut self, priority: u32, function: &Name) {
        self.destructors.push(Startup { priority, function: function.clone() });
        self.globals.push(startup_array("llvm.global_dtors", priority, function));
    }

    /// Keeps variables that nothing refers to.
    fn keep(&mut self, names: Vec<Name>) {
        let list = if self.retain { "llvm.used" } else { "llvm.compiler.used" };
        self.globals.push(Global {
            linkage: Linkage::Appending,
            constant: false,
            section: Some("llvm.metadata".into()),
            ..constant(list, Constant::Array(names.iter().map(Constant::symbol).collect()))
        });
        self.kept.extend(names);
    }

    /// Returns the type of `size_t`.
    fn size_type(&self) -> Type {
        Type::Int(self.target.pointer_bits())
    }
}

fn startup_array(name: &'static str, priority: u32, function: &Name) -> Global {
    let ty = Type::Tuple(vec![Type::Int(32), Type::Pointer, Type::Pointer]);
    let fields = vec![Constant::i32(priority), Constant::symbol(function), Constant::Null];
    let init = Constant::Array(vec![Constant::Aggregate(ty, fields)]);
    Global { linkage: Linkage::Appending, constant: false, ..constant(name, init) }
}
