//! The bodies of functions.

use llvm_bitcode::{Writer, signed};

use crate::bitcode::codes;
use crate::bitcode::constants::Constants;
use crate::bitcode::types::Types;
use crate::description::{Constant, Function, Instruction, Module, Operation, Type, Value};
use crate::error::{Error, ErrorKind};
use crate::to_u64;

/// Writes bodies. It is done twice, since tables come first in a file: once for the types and
/// constants that are met, and once to stay.
#[derive(Debug)]
pub(crate) struct Bodies<'m, 't> {
    pub(crate) module: &'m Module,
    pub(crate) types: &'t mut Types<'m>,
    pub(crate) constants: &'t mut Constants<'m>,
}

/// One body.
struct Body<'m, 't, 'b> {
    bodies: &'b mut Bodies<'m, 't>,
    function: &'m Function,
    /// The number of its first parameter.
    first: u64,
    /// The number of its locals that are defined so far.
    defined: usize,
}

impl<'m> Bodies<'m, '_> {
    /// Writes the bodies of all functions that have one.
    pub(crate) fn write(&mut self, stream: &mut Writer) -> Result<(), Error> {
        let first = self.constants.end();
        for function in self.module.functions.iter().filter(|found| !found.is_declaration()) {
            stream.enter_block(codes::FUNCTION_BLOCK, 4);
            stream.record(codes::FUNCTION_DECLAREBLOCKS, &[to_u64(function.blocks.len())]);
            let mut body = Body { bodies: self, function, first, defined: function.parameters };
            for block in &function.blocks {
                for instruction in &block.instructions {
                    body.instruction(stream, instruction)?;
                }
            }
            write_names(stream, function, first)?;
            stream.end_block()?;
        }
        Ok(())
    }
}

impl Body<'_, '_, '_> {
    /// Instructions refer to values by how far back they are, counted from here.
    fn here(&self) -> u64 {
        self.first + to_u64(self.defined)
    }

    fn ty(&mut self, ty: &Type) -> Result<u64, Error> {
        self.bodies.types.number(ty)
    }

    /// Returns the number of a value.
    fn absolute(&mut self, value: &Value) -> Result<u64, Error> {
        match value {
            Value::Constant(constant) => self.bodies.constants.number(constant, self.bodies.types),
            Value::Local(local) if *local < self.function.locals.len() => {
                Ok(self.first + to_u64(*local))
            }
            Value::Local(local) => Err(self.unknown_local(*local)),
        }
    }

    /// Returns the distance back to a defined value.
    fn relative(&mut self, value: &Value) -> Result<u64, Error> {
        match value {
            Value::Local(local) if *local >= self.defined => Err(self.unknown_local(*local)),
            // On the first pass constants may still move up: what is written then is not kept.
            _ => Ok(self.here().saturating_sub(self.absolute(value)?)),
        }
    }

    fn unknown_local(&self, local: usize) -> Error {
        let function = self.function.name.escape_debug();
        let text =
            format!("function \"{function}\" refers to local {local} where it is not defined");
        Error::new(ErrorKind::Invalid, text)
    }

    fn instruction(&mut self, stream: &mut Writer, instruction: &Instruction) -> Result<(), Error> {
        self.operation(stream, &instruction.operation)?;
        // Values have the numbers of their order.
        match instruction.result {
            None => Ok(()),
            Some(local) if local == self.defined => {
                self.defined += 1;
                Ok(())
            }
            Some(local) => Err(self.unknown_local(local)),
        }
    }

    fn operation(&mut self, stream: &mut Writer, operation: &Operation) -> Result<(), Error> {
        let (code, operands) = match operation {
            Operation::Call { function, arguments } => {
                return self.call(stream, function, arguments);
            }
            Operation::Load { ty, pointer, align } => (
                codes::INST_LOAD,
                vec![self.relative(pointer)?, self.ty(ty)?, log_align(*align), 0],
            ),
            Operation::Store { value, pointer, align } => {
                let (pointer, value) = (self.relative(pointer)?, self.relative(value)?);
                (codes::INST_STORE, vec![pointer, value, log_align(*align), 0])
            }
            Operation::Field { source, base, index } => {
                self.element(source, base, &[Constant::i32(0), Constant::i32(*index)])?
            }
            Operation::Next { source, base } => {
                self.element(source, base, &[Constant::Int { bits: 64, value: 1 }])?
            }
            Operation::Equal(left, right) => {
                (codes::INST_CMP2, self.binary(left, right, codes::CMP_EQ)?)
            }
            Operation::NotEqual(left, right) => {
                (codes::INST_CMP2, self.binary(left, right, codes::CMP_NE)?)
            }
            Operation::And(left, right) => {
                (codes::INST_BINOP, self.binary(left, right, codes::BINOP_AND)?)
            }
            Operation::ShiftRight(left, right) => {
                (codes::INST_BINOP, self.binary(left, right, codes::BINOP_LSHR)?)
            }
            Operation::Truncate { value, to } => {
                (codes::INST_CAST, vec![self.relative(value)?, self.ty(to)?, codes::CAST_TRUNC])
            }
            Operation::Phi { ty, incoming } => {
                let mut operands = vec![self.ty(ty)?];
                for (value, block) in incoming {
                    operands.push(self.signed_relative(value)?);
                    operands.push(to_u64(*block));
                }
                (codes::INST_PHI, operands)
            }
            Operation::Branch(block) => (codes::INST_BR, vec![to_u64(*block)]),
            Operation::BranchIf { condition, then, otherwise } => {
                let condition = self.relative(condition)?;
                (codes::INST_BR, vec![to_u64(*then), to_u64(*otherwise), condition])
            }
            Operation::Switch { value, default, cases } => {
                let ty = self.function.type_of(value);
                let mut operands = vec![self.ty(&ty)?, self.relative(value)?, to_u64(*default)];
                for (case, block) in cases {
                    operands.push(self.case(&ty, *case)?);
                    operands.push(to_u64(*block));
                }
                (codes::INST_SWITCH, operands)
            }
            Operation::Return => (codes::INST_RET, Vec::new()),
        };
        stream.record(code, &operands);
        Ok(())
    }

    fn call(&mut self, stream: &mut Writer, name: &str, arguments: &[Value]) -> Result<(), Error> {
        let callee = self.bodies.module.function(name);
        let callee = callee.ok_or_else(|| Error::unknown_name(name))?;
        let symbol = self.bodies.constants.symbol(name)?;
        let mut operands = vec![
            0,
            codes::CALL_EXPLICIT_TYPE,
            self.bodies.types.function(callee)?,
            // Symbols have the first numbers.
            self.here() - symbol,
        ];
        for argument in arguments {
            operands.push(self.relative(argument)?);
        }
        stream.record(codes::INST_CALL, &operands);
        Ok(())
    }

    /// Returns an inbounds `getelementptr`.
    fn element(
        &mut self,
        source: &Type,
        base: &Value,
        indices: &[Constant],
    ) -> Result<(u64, Vec<u64>), Error> {
        let mut operands = vec![codes::GEP_INBOUNDS, self.ty(source)?, self.relative(base)?];
        for index in indices {
            operands.push(self.relative(&Value::Constant(index.clone()))?);
        }
        Ok((codes::INST_GEP, operands))
    }

    fn binary(&mut self, left: &Value, right: &Value, code: u64) -> Result<Vec<u64>, Error> {
        Ok(vec![self.relative(left)?, self.relative(right)?, code])
    }

    /// Returns the distance to a value, which is negative for an operand of a phi that is defined later.
    fn signed_relative(&mut self, value: &Value) -> Result<u64, Error> {
        let (here, absolute) = (self.here(), self.absolute(value)?);
        // Numbers of values are far below 2⁶³.
        Ok(signed(here.cast_signed().wrapping_sub(absolute.cast_signed())))
    }

    /// Returns the number of the value of a case: a constant, which is not counted from here.
    fn case(&mut self, ty: &Type, value: u64) -> Result<u64, Error> {
        let bits = if let Type::Int(bits) = ty { *bits } else { 64 };
        self.absolute(&Value::Constant(Constant::Int { bits, value }))
    }
}

/// Writes the names of locals and blocks, which are for reading only.
fn write_names(stream: &mut Writer, function: &Function, first: u64) -> Result<(), Error> {
    stream.enter_block(codes::SYMTAB_BLOCK, 4);
    for (number, local) in (first..).zip(&function.locals) {
        if !local.name.is_empty() {
            stream.text_record(codes::SYMTAB_VALUE, &[number], local.name.as_bytes());
        }
    }
    for (number, block) in (0..).zip(&function.blocks) {
        stream.text_record(codes::SYMTAB_BLOCK_NAME, &[number], block.name.as_bytes());
    }
    Ok(stream.end_block()?)
}

/// Returns an alignment as records have it: 0 for none, else one more than the power of two.
pub(crate) fn log_align(align: u64) -> u64 {
    align.checked_ilog2().map_or(0, |log| u64::from(log) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_stored_as_logarithms() {
        assert_eq!([0, 1, 2, 8, 4096, 1 << 32].map(log_align), [0, 1, 2, 4, 13, 33]);
    }
}
