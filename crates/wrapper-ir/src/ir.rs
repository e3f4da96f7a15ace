//! The description as LLVM IR text.

use std::fmt;
use std::io::{self, BufWriter, Read, Write};

use byte_parts::{Inputs, Layout, Streams};

use crate::description::{
    Constant, Function, Global, Instruction, Linkage, Module, Operation, Type, Value, sign_extend,
};
use crate::error::Error;
use crate::escape::{Escape, Escaped};

impl Module {
    /// Writes the module as LLVM IR text, which LLVM 15 and later read, and flushes it. `images` are read once
    /// each, in their order, and never held in memory as a whole.
    ///
    /// The text equals `llvm-dis`'s, without comments. Its length depends on the bytes of the
    /// images: up to three times as many, and a few kilobytes.
    ///
    /// # Errors
    ///
    /// The error of reading or writing, or [`std::io::ErrorKind::InvalidInput`] with a [`byte_parts::Error`] inside if the images
    /// differ from the module's. By then a part of the output is written.
    pub fn write_ir<R: Read>(
        &self,
        writer: impl Write,
        images: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        let mut inputs = Streams::new(&self.inputs, images);
        // For the many small pieces of text; what an image is escaped to is larger, and goes past.
        let mut writer = BufWriter::new(writer);
        let w = &mut writer;
        writeln!(w, "source_filename = \"{}\"", Escaped(self.source_name.as_bytes()))?;
        writeln!(w, "target datalayout = \"{}\"", Escaped(self.target.data_layout().as_bytes()))?;
        writeln!(w, "target triple = \"{}\"", Escaped(self.target.triple().as_bytes()))?;
        writeln!(w)?;
        for structure in &self.structs {
            let fields = Fields(&structure.fields);
            writeln!(w, "%{} = type {{ {fields} }}", Named(&structure.name))?;
        }
        if !self.structs.is_empty() {
            writeln!(w)?;
        }
        for global in &self.globals {
            write!(w, "@{} = {}", Named(&global.name), GlobalHead(global))?;
            match &global.init {
                None => {}
                Some(Constant::Image { blob, .. }) => {
                    w.write_all(b" c\"")?;
                    if let Some(blob) = self.blobs.get(*blob) {
                        let mut escape = Escape::new(&mut *w);
                        inputs.copy(&blob.input, blob.range(), &mut escape)?;
                        escape.finish()?;
                    }
                    w.write_all(b"\"")?;
                }
                Some(init) => write!(w, " {}", Plain(init))?,
            }
            writeln!(w, "{}", GlobalTail(global))?;
        }
        inputs.finish()?;
        for function in &self.functions {
            writeln!(w)?;
            write_function(w, self, function)?;
        }
        w.flush()
    }

    /// Returns the module as LLVM IR text in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Output`](crate::ErrorKind::Output) if the images differ from the module's.
    pub fn ir_to_string(&self, images: &[&[u8]]) -> Result<String, Error> {
        Layout::new(self.inputs.iter().copied()).check_inputs(images)?;
        let mut text = Vec::new();
        // Nothing that is left can fail: memory is read and written.
        let _ = self.write_ir(&mut text, images.iter().copied());
        String::from_utf8(text).map_err(|_| Error::internal("text that is not UTF-8"))
    }
}

fn write_function(w: &mut impl Write, module: &Module, function: &Function) -> io::Result<()> {
    let linkage = match function.linkage {
        Linkage::External => "",
        other => linkage_word(other),
    };
    let keyword = if function.is_declaration() { "declare " } else { "define " };
    let result = Typed(&function.result);
    write!(w, "{keyword}{linkage}{result} @{}(", Named(&function.name))?;
    let names = LocalNames::new(function);
    for (index, ty) in function.parameter_types().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(w, "{comma}{}", Typed(ty))?;
        if !function.is_declaration() {
            write!(w, " {}", names.local(index))?;
        }
    }
    write!(w, ")")?;
    if let Some(section) = &function.section {
        write!(w, " section \"{}\"", Escaped(section.as_bytes()))?;
    }
    if function.is_declaration() {
        return writeln!(w);
    }
    writeln!(w, " {{")?;
    for (index, block) in function.blocks.iter().enumerate() {
        if index != 0 {
            writeln!(w)?;
        }
        writeln!(w, "{}:", Named(block.name))?;
        for instruction in &block.instructions {
            let text = InstructionText { module, function, names: &names, instruction };
            writeln!(w, "  {text}")?;
        }
    }
    writeln!(w, "}}")
}

fn linkage_word(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::External => "external ",
        Linkage::ExternWeak => "extern_weak ",
        Linkage::Weak => "weak ",
        Linkage::WeakOdr => "weak_odr ",
        Linkage::Internal => "internal ",
        Linkage::Appending => "appending ",
    }
}

/// A variable up to its type.
struct GlobalHead<'a>(&'a Global);

impl fmt::Display for GlobalHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let global = self.0;
        let linkage = match global.linkage {
            Linkage::External if global.init.is_some() => "",
            other => linkage_word(other),
        };
        let hidden = if global.hidden { "hidden " } else { "" };
        let unnamed = if global.unnamed_addr { "unnamed_addr " } else { "" };
        let constant = if global.constant { "constant" } else { "global" };
        write!(f, "{linkage}{hidden}{unnamed}{constant} {}", Typed(&global.ty))
    }
}

/// A variable from after its initialiser.
struct GlobalTail<'a>(&'a Global);

impl fmt::Display for GlobalTail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = &self.0.section {
            write!(f, ", section \"{}\"", Escaped(section.as_bytes()))?;
        }
        if self.0.no_sanitize {
            f.write_str(", no_sanitize_address, no_sanitize_hwaddress")?;
        }
        if self.0.align != 0 {
            write!(f, ", align {}", self.0.align)?;
        }
        Ok(())
    }
}

/// A name after `@` or `%`, or before `:`; quoted if it has to be.
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-$._".contains(&byte);
        let digit_first = self.0.bytes().next().is_none_or(|byte| byte.is_ascii_digit());
        if digit_first || !self.0.bytes().all(plain) {
            write!(f, "\"{}\"", Escaped(self.0.as_bytes()))
        } else {
            f.write_str(self.0)
        }
    }
}

/// A type.
struct Typed<'a>(&'a Type);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Void => f.write_str("void"),
            Type::Int(bits) => write!(f, "i{bits}"),
            Type::Pointer => f.write_str("ptr"),
            Type::Array(count, element) => write!(f, "[{count} x {}]", Typed(element)),
            Type::Struct(name) => write!(f, "%{}", Named(name)),
            Type::Tuple(fields) => write!(f, "{{ {} }}", Fields(fields)),
        }
    }
}

/// Types with commas between.
struct Fields<'a>(&'a [Type]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, field) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Typed(field))?;
        }
        Ok(())
    }
}

/// A constant without its type.
struct Plain<'a>(&'a Constant);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Constant::Int { bits, value } => {
                write!(f, "{}", sign_extend(*bits, *value))
            }
            Constant::Null => f.write_str("null"),
            // The caller, which has its bytes, writes an image.
            Constant::Zero(_) | Constant::Image { .. } => f.write_str("zeroinitializer"),
            Constant::Symbol(name) => write!(f, "@{}", Named(name)),
            Constant::Inside { global, source, indices, inbounds, .. } => {
                let inbounds = if *inbounds { "inbounds " } else { "" };
                write!(f, "getelementptr {inbounds}({}, ptr @{}", Typed(source), Named(global))?;
                for index in indices {
                    write!(f, ", i64 {index}")?;
                }
                f.write_str(")")
            }
            Constant::Bytes(bytes) => write!(f, "c\"{}\"", Escaped(bytes)),
            Constant::Array(elements) => write!(f, "[{}]", Constants(elements)),
            Constant::Aggregate(_, fields) => write!(f, "{{ {} }}", Constants(fields)),
        }
    }
}

/// Constants with types, and commas between.
struct Constants<'a>(&'a [Constant]);

impl fmt::Display for Constants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, constant) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {}", Typed(&constant.ty()), Plain(constant))?;
        }
        Ok(())
    }
}

/// The names of the locals of a function: their own, or numbers in the order of locals without
/// a name.
struct LocalNames(Vec<String>);

impl LocalNames {
    fn new(function: &Function) -> Self {
        let mut number = 0_u32;
        let mut name = |own: &str| match own {
            "" => {
                let name = format!("%{number}");
                number += 1;
                name
            }
            own => format!("%{}", Named(own)),
        };
        Self(function.locals.iter().map(|local| name(local.name)).collect())
    }

    fn local(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |name| name)
    }
}

/// One instruction, without indentation.
struct InstructionText<'a> {
    module: &'a Module,
    function: &'a Function,
    names: &'a LocalNames,
    instruction: &'a Instruction,
}

/// A value, without its type.
struct ValueText<'a>(&'a LocalNames, &'a Value);

impl fmt::Display for ValueText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Value::Constant(constant) => write!(f, "{}", Plain(constant)),
            Value::Local(index) => f.write_str(self.0.local(*index)),
        }
    }
}

impl<'a> InstructionText<'a> {
    fn value(&self, value: &'a Value) -> ValueText<'a> {
        ValueText(self.names, value)
    }

    fn block(&self, index: usize) -> Named<'a> {
        Named(self.function.blocks.get(index).map_or("", |block| block.name))
    }

    /// Writes an instruction of two operands of one type.
    fn binary(
        &self,
        f: &mut fmt::Formatter<'_>,
        word: &str,
        left: &'a Value,
        right: &'a Value,
    ) -> fmt::Result {
        let ty = self.function.type_of(left);
        write!(f, "{word} {} {}, {}", Typed(&ty), self.value(left), self.value(right))
    }
}

impl fmt::Display for InstructionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(result) = self.instruction.result {
            write!(f, "{} = ", self.names.local(result))?;
        }
        match &self.instruction.operation {
            Operation::Call { function, arguments } => {
                let callee = self.module.function(function);
                let result = callee.map_or(&Type::Void, |callee| &callee.result);
                write!(f, "call {} @{}(", Typed(result), Named(function))?;
                for (index, argument) in arguments.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let ty = self.function.type_of(argument);
                    write!(f, "{comma}{} {}", Typed(&ty), self.value(argument))?;
                }
                f.write_str(")")
            }
            Operation::Load { ty, pointer, align } => {
                write!(f, "load {}, ptr {}, align {align}", Typed(ty), self.value(pointer))
            }
            Operation::Store { value, pointer, align } => {
                let ty = self.function.type_of(value);
                let (value, pointer) = (self.value(value), self.value(pointer));
                write!(f, "store {} {value}, ptr {pointer}, align {align}", Typed(&ty))
            }
            Operation::Field { source, base, index } => {
                let (source, base) = (Typed(source), self.value(base));
                write!(f, "getelementptr inbounds {source}, ptr {base}, i32 0, i32 {index}")
            }
            Operation::Next { source, base } => {
                let (source, base) = (Typed(source), self.value(base));
                write!(f, "getelementptr inbounds {source}, ptr {base}, i64 1")
            }
            Operation::Equal(left, right) => self.binary(f, "icmp eq", left, right),
            Operation::NotEqual(left, right) => self.binary(f, "icmp ne", left, right),
            Operation::And(left, right) => self.binary(f, "and", left, right),
            Operation::ShiftRight(left, right) => self.binary(f, "lshr", left, right),
            Operation::Truncate { value, to } => {
                let ty = self.function.type_of(value);
                write!(f, "trunc {} {} to {}", Typed(&ty), self.value(value), Typed(to))
            }
            Operation::Phi { ty, incoming } => {
                write!(f, "phi {}", Typed(ty))?;
                for (index, (value, block)) in incoming.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} [ {}, %{} ]", self.value(value), self.block(*block))?;
                }
                Ok(())
            }
            Operation::Branch(block) => write!(f, "br label %{}", self.block(*block)),
            Operation::BranchIf { condition, then, otherwise } => {
                let (then, otherwise) = (self.block(*then), self.block(*otherwise));
                let condition = self.value(condition);
                write!(f, "br i1 {condition}, label %{then}, label %{otherwise}")
            }
            Operation::Switch { value, default, cases } => {
                let ty = self.function.type_of(value);
                let (ty, value) = (Typed(&ty), self.value(value));
                writeln!(f, "switch {ty} {value}, label %{} [", self.block(*default))?;
                for (case, block) in cases {
                    writeln!(f, "    {ty} {case}, label %{}", self.block(*block))?;
                }
                f.write_str("  ]")
            }
            Operation::Return => f.write_str("ret void"),
        }
    }
}
