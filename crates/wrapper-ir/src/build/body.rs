//! The body of a function, instruction by instruction.

use super::{Block, Constant, Instruction, Local, Name, Operation, Type};
use crate::description::Value;

/// A body as it grows. Instructions go to the end of the last block.
pub(super) struct Body {
    pub(super) parameters: usize,
    pub(super) locals: Vec<Local>,
    pub(super) blocks: Vec<Block>,
}

impl Body {
    /// Creates a body with these parameters, and with the block `entry`.
    pub(super) fn new(parameters: &[Type]) -> Self {
        let local = |ty: &Type| Local { ty: ty.clone(), name: "" };
        Self {
            parameters: parameters.len(),
            locals: parameters.iter().map(local).collect(),
            blocks: vec![Block { name: "entry", instructions: Vec::new() }],
        }
    }

    /// Starts a block.
    pub(super) fn block(&mut self, name: &'static str) {
        self.blocks.push(Block { name, instructions: Vec::new() });
    }

    /// Adds an instruction without a result.
    pub(super) fn run(&mut self, operation: Operation) {
        self.push(None, operation);
    }

    /// Adds an instruction with a result of type `ty`.
    pub(super) fn value(&mut self, name: &'static str, ty: Type, operation: Operation) -> Value {
        let index = self.locals.len();
        self.locals.push(Local { ty, name });
        self.push(Some(index), operation);
        Value::Local(index)
    }

    /// Calls a function that returns nothing.
    pub(super) fn call(&mut self, function: &Name, arguments: Vec<Value>) {
        self.run(Operation::Call { function: function.clone(), arguments });
    }

    /// Calls a function that returns a value of type `ty`.
    pub(super) fn call_for(&mut self, ty: Type, function: &Name, arguments: Vec<Value>) -> Value {
        self.value("", ty, Operation::Call { function: function.clone(), arguments })
    }

    /// Adds a return.
    pub(super) fn ret(mut self) -> Self {
        self.run(Operation::Return);
        self
    }

    fn push(&mut self, result: Option<usize>, operation: Operation) {
        if let Some(block) = self.blocks.last_mut() {
            block.instructions.push(Instruction { result, operation });
        }
    }
}

/// Returns the address of a symbol.
pub(super) fn address(name: &Name) -> Value {
    Value::Constant(Constant::symbol(name))
}

/// Returns a 32-bit integer.
pub(super) fn int32(value: u32) -> Value {
    Value::Constant(Constant::i32(value))
}

/// Returns an integer of this type.
pub(super) fn int(ty: &Type, value: u64) -> Value {
    let bits = if let Type::Int(bits) = ty { *bits } else { 64 };
    Value::Constant(Constant::Int { bits, value })
}

/// Returns the pointer that points nowhere.
pub(super) fn null() -> Value {
    Value::Constant(Constant::Null)
}
