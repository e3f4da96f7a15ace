//! From the functions of a module to machine code.
//!
//! Every instruction becomes a template of its own: operands come out of stack slots into registers, the result
//! goes into a stack slot. The code is not the fastest possible; it can be checked by eye, runs once, and spends
//! its time in the runtime it calls.

use std::collections::{BTreeMap, BTreeSet};

use crate::description::{
    Block, Constant, Function, Instruction, Linkage, Module, Name, Operation, Type, Value,
};
use crate::error::Error;
use crate::to_u64;

/// A register by what it is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// First operand and result of an operation.
    First,
    /// Second operand of an operation.
    Second,
    /// Argument of a call, or parameter, counted from 0. Fewer than [`Assembler::argument_registers`].
    Argument(u8),
    /// The result of a call.
    Returned,
}

/// The operation on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    And,
    ShiftRight,
    Equal,
    NotEqual,
}

/// Writes the templates of one machine and calling convention.
///
/// Registers hold 64 bits. Slots are identified by their distance from the stack pointer in bytes, which
/// is a multiple of 8 below [`FRAME_LIMIT`]. Integers of fewer bits are kept with zeros above.
pub(super) trait Assembler {
    /// Returns the number of arguments in registers; the others go on the stack, 8 bytes each.
    fn argument_registers(&self) -> usize;
    /// Returns the number of bytes between the stack pointer and the first argument on the stack.
    fn home_bytes(&self) -> u64 {
        0
    }
    /// Returns the alignment of functions in bytes.
    fn function_align(&self) -> usize;
    /// Returns the code to append to.
    fn code(&mut self) -> &mut Code;

    /// Starts a function, with at least `frame` bytes on the stack.
    fn enter(&mut self, frame: u32);
    /// Ends it.
    fn leave(&mut self, frame: u32);
    /// Reads a slot. An argument of `bits` bits is extended as the calling convention demands.
    fn load_slot(&mut self, to: Register, slot: u32, bits: u16);
    /// Writes a slot.
    fn store_slot(&mut self, from: Register, slot: u32);
    /// Sets a register to an integer, extended like a slot.
    fn immediate(&mut self, to: Register, value: u64, bits: u16);
    /// Sets a register to an address near the code.
    fn address(&mut self, to: Register, symbol: &Name, addend: i64);
    /// Sets a register to the address of a symbol that may be anywhere, or nowhere.
    fn far_address(&mut self, to: Register, symbol: &Name);
    /// Reads `bits` bits at the address in the first register into it.
    fn load(&mut self, bits: u16);
    /// Writes `bits` bits of the first register to the address in the second.
    fn store(&mut self, bits: u16);
    /// Computes an operation on the first register and the second, into the first.
    fn arithmetic(&mut self, what: Arithmetic);
    /// Calls a function.
    fn call(&mut self, symbol: &Name);
    /// Jumps to a block, to be filled in.
    fn jump(&mut self, block: usize);
    /// Jumps to a block if the first register, which holds 0 or 1, holds 1.
    fn jump_if(&mut self, block: usize);
    /// Fills in a jump at `at` over `distance` bytes.
    fn resolve(&mut self, at: usize, distance: i32) -> Option<()>;
}

/// Stack frames are smaller: what the immediates of every machine reach.
pub(super) const FRAME_LIMIT: u64 = 2000;

/// Machine code as it is written.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) bytes: Vec<u8>,
    pub(super) references: Vec<Reference>,
    /// Places in `bytes` that other references refer to.
    pub(super) labels: Vec<usize>,
    /// Jumps to fill in: where they are, and the block they go to.
    jumps: Vec<(usize, usize)>,
    /// The unwinding of the function that was entered last.
    pub(super) prologue: Prologue,
}

/// The effect of a function's prologue on the stack.
#[derive(Clone, Debug, Default)]
pub(super) struct Prologue {
    /// Length in bytes.
    pub(super) length: usize,
    /// Bytes taken from the stack.
    pub(super) frame: u32,
    /// The effect as DWARF call frame instructions.
    pub(super) dwarf: Vec<u8>,
    /// The offsets of the epilogues.
    pub(super) epilogues: Vec<usize>,
}

/// A place in the code that the linker fills in.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The offset in the code.
    pub(super) at: usize,
    /// The type of the relocation.
    pub(super) kind: u32,
    pub(super) target: ReferenceTarget,
    pub(super) addend: i64,
}

/// The target of a reference in the code.
#[derive(Clone, Debug)]
pub(super) enum ReferenceTarget {
    Symbol(Name),
    /// Index into [`Code::labels`].
    Label(usize),
}

impl Code {
    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds an instruction of 32 bits.
    pub(super) fn word(&mut self, word: u32) {
        self.push(&word.to_le_bytes());
    }

    /// Records that the next bytes refer to a symbol.
    pub(super) fn refer(&mut self, kind: u32, symbol: &Name, addend: i64) {
        let (at, target) = (self.bytes.len(), ReferenceTarget::Symbol(symbol.clone()));
        self.references.push(Reference { at, kind, target, addend });
    }

    /// Records that the next bytes are a jump to a block.
    pub(super) fn jump_here(&mut self, block: usize) {
        self.jumps.push((self.bytes.len(), block));
    }

    /// Returns the 32 bits at `at`.
    pub(super) fn word_at(&mut self, at: usize) -> Option<&mut [u8; 4]> {
        self.bytes.get_mut(at..)?.first_chunk_mut()
    }
}

/// A function in the code.
#[derive(Debug)]
pub(super) struct Lowered {
    /// Start in the code.
    pub(super) start: usize,
    /// End in the code.
    pub(super) end: usize,
    pub(super) prologue: Prologue,
}

impl Lowered {
    /// Returns its size in bytes.
    pub(super) fn size(&self) -> usize {
        self.end - self.start
    }
}

/// Adds a function to the code of `assembler`.
///
/// # Errors
///
/// [`ErrorKind::NotNative`](crate::ErrorKind::NotNative) for what registration code does not do.
pub(super) fn lower(
    module: &Module,
    function: &Function,
    assembler: &mut impl Assembler,
) -> Result<Lowered, Error> {
    let start = assembler.code().bytes.len();
    let slots = Slots::of(function, assembler)?;
    let mut lowering = Lowering { module, function, assembler, slots, starts: Vec::new() };
    lowering.function()?;
    let prologue = std::mem::take(&mut assembler.code().prologue);
    Ok(Lowered { start, end: assembler.code().bytes.len(), prologue })
}

fn not_lowered(function: &Function, what: &'static str) -> Error {
    Error::not_native(&function.name, what)
}

/// The stack slots of values.
#[derive(Debug, Default)]
struct Slots {
    /// The slots of used locals.
    locals: BTreeMap<usize, u32>,
    /// The slots of a phi's next value, until its block is entered.
    incoming: BTreeMap<usize, u32>,
    /// Bytes on the stack.
    frame: u32,
}

impl Slots {
    fn of(function: &Function, assembler: &impl Assembler) -> Result<Self, Error> {
        let mut used = BTreeSet::new();
        let mut phis = Vec::new();
        // On the stack below the slots: the arguments of the call that has most of them.
        let mut frame = 0;
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            for value in operands(&instruction.operation) {
                if let Value::Local(local) = value {
                    used.insert(*local);
                }
            }
            match &instruction.operation {
                Operation::Call { arguments, .. } => {
                    // None, if there are registers for all.
                    let rest = arguments.len().saturating_sub(assembler.argument_registers());
                    frame = frame.max(assembler.home_bytes() + stack_bytes(rest));
                }
                Operation::Phi { .. } => phis.extend(instruction.result),
                _ => {}
            }
        }
        let mut slots = Self::default();
        let mut place = || {
            let slot = u32::try_from(frame).ok()?;
            frame += 8;
            (frame < FRAME_LIMIT).then_some(slot)
        };
        let too_many = || not_lowered(function, "more values than fit on the stack");
        for local in used {
            let ty = function.locals.get(local).map(|local| &local.ty);
            if !matches!(ty, Some(Type::Int(1..=64) | Type::Pointer)) {
                return Err(not_lowered(function, "a value of another type"));
            }
            slots.locals.insert(local, place().ok_or_else(too_many)?);
        }
        for phi in phis {
            slots.incoming.insert(phi, place().ok_or_else(too_many)?);
        }
        slots.frame = u32::try_from(frame).map_err(|_| too_many())?;
        Ok(slots)
    }
}

/// Returns the number of bytes that this many arguments take on the stack.
fn stack_bytes(arguments: usize) -> u64 {
    to_u64(arguments) * 8
}

/// Returns the operands of an instruction.
fn operands(operation: &Operation) -> Vec<&Value> {
    match operation {
        Operation::Call { arguments, .. } => arguments.iter().collect(),
        Operation::Load { pointer, .. } => vec![pointer],
        Operation::Store { value, pointer, .. } => vec![value, pointer],
        Operation::Field { base, .. } | Operation::Next { base, .. } => vec![base],
        Operation::Equal(first, second)
        | Operation::NotEqual(first, second)
        | Operation::And(first, second)
        | Operation::ShiftRight(first, second) => vec![first, second],
        Operation::Truncate { value, .. } | Operation::Switch { value, .. } => vec![value],
        Operation::Phi { incoming, .. } => incoming.iter().map(|(value, _)| value).collect(),
        Operation::BranchIf { condition, .. } => vec![condition],
        Operation::Branch(_) | Operation::Return => Vec::new(),
    }
}

struct Lowering<'a, A> {
    module: &'a Module,
    function: &'a Function,
    assembler: &'a mut A,
    slots: Slots,
    /// The starts of blocks.
    starts: Vec<usize>,
}

/// Bits of a register.
const WHOLE: u16 = 64;

impl<A: Assembler> Lowering<'_, A> {
    fn function(&mut self) -> Result<(), Error> {
        if self.function.parameters > self.assembler.argument_registers() {
            return Err(self.fault("parameters on the stack"));
        }
        self.assembler.enter(self.slots.frame);
        for (register, parameter) in (0..).zip(0..self.function.parameters) {
            if let Some(slot) = self.slots.locals.get(&parameter) {
                self.assembler.store_slot(Register::Argument(register), *slot);
            }
        }
        let function = self.function;
        for (index, block) in function.blocks.iter().enumerate() {
            let start = self.assembler.code().bytes.len();
            self.starts.push(start);
            self.block(index, block)?;
        }
        for (at, block) in std::mem::take(&mut self.assembler.code().jumps) {
            let to = self.starts.get(block).ok_or_else(|| self.fault("a jump to no block"))?;
            let distance = i64::try_from(*to).ok().zip(i64::try_from(at).ok());
            let distance = distance.and_then(|(to, at)| i32::try_from(to.checked_sub(at)?).ok());
            distance
                .and_then(|distance| self.assembler.resolve(at, distance))
                .ok_or_else(|| self.fault("a jump too far"))?;
        }
        Ok(())
    }

    fn fault(&self, what: &'static str) -> Error {
        not_lowered(self.function, what)
    }

    fn block(&mut self, index: usize, block: &Block) -> Result<(), Error> {
        for instruction in &block.instructions {
            if instruction.operation.is_terminator() {
                self.feed_phis(index)?;
            }
            self.instruction(index, instruction)?;
        }
        Ok(())
    }

    /// Stores the values that a block passes to each phi. A phi takes its value when it is reached, so that a phi which
    /// feeds another one passes its old value.
    fn feed_phis(&mut self, from: usize) -> Result<(), Error> {
        let function = self.function;
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            let Operation::Phi { incoming, .. } = &instruction.operation else { continue };
            let slot = instruction.result.and_then(|phi| self.slots.incoming.get(&phi)).copied();
            for (value, _) in incoming.iter().filter(|(_, block)| *block == from) {
                self.value(Register::First, value, WHOLE)?;
                self.assembler.store_slot(
                    Register::First,
                    slot.ok_or_else(|| self.fault("a phi without a result"))?,
                );
            }
        }
        Ok(())
    }

    fn instruction(&mut self, index: usize, instruction: &Instruction) -> Result<(), Error> {
        let next = index + 1;
        match &instruction.operation {
            Operation::Call { function, arguments } => {
                self.arguments(arguments)?;
                self.assembler.call(function);
                if let Some(slot) = self.result_slot(instruction) {
                    self.assembler.store_slot(Register::Returned, slot);
                    let bits = self.bits(&self.result_type(instruction))?;
                    if bits < WHOLE {
                        self.assembler.load_slot(Register::First, slot, WHOLE);
                        self.mask(bits);
                        self.assembler.store_slot(Register::First, slot);
                    }
                }
                return Ok(());
            }
            Operation::Load { ty, pointer, .. } => {
                self.value(Register::First, pointer, WHOLE)?;
                let bits = self.memory_bits(ty)?;
                self.assembler.load(bits);
            }
            Operation::Store { value, pointer, .. } => {
                let bits = self.memory_bits(&self.function.type_of(value))?;
                self.value(Register::First, value, WHOLE)?;
                self.value(Register::Second, pointer, WHOLE)?;
                self.assembler.store(bits);
                return Ok(());
            }
            Operation::Field { source, base, index } => {
                let layout = self.module.struct_layout(self.module.fields(source));
                let offset = usize::try_from(*index).ok().and_then(|at| layout.offsets.get(at));
                let offset = *offset.ok_or_else(|| self.fault("a field that is not there"))?;
                self.step(base, offset)?;
            }
            Operation::Next { source, base } => self.step(base, self.module.size_of(source))?,
            Operation::Equal(first, second) => self.two(first, second, Arithmetic::Equal)?,
            Operation::NotEqual(first, second) => self.two(first, second, Arithmetic::NotEqual)?,
            Operation::And(first, second) => self.two(first, second, Arithmetic::And)?,
            Operation::ShiftRight(first, second) => {
                self.two(first, second, Arithmetic::ShiftRight)?;
            }
            Operation::Truncate { value, to } => {
                self.value(Register::First, value, WHOLE)?;
                let bits = self.bits(to)?;
                self.mask(bits);
            }
            Operation::Phi { .. } => {
                let slot = instruction.result.and_then(|phi| self.slots.incoming.get(&phi));
                let slot = *slot.ok_or_else(|| self.fault("a phi without a result"))?;
                self.assembler.load_slot(Register::First, slot, WHOLE);
            }
            Operation::Branch(block) => {
                self.go_on(*block, next);
                return Ok(());
            }
            Operation::BranchIf { condition, then, otherwise } => {
                self.value(Register::First, condition, WHOLE)?;
                self.assembler.jump_if(*then);
                self.go_on(*otherwise, next);
                return Ok(());
            }
            Operation::Switch { value, default, cases } => {
                for (case, block) in cases {
                    self.value(Register::First, value, WHOLE)?;
                    self.assembler.immediate(Register::Second, *case, WHOLE);
                    self.assembler.arithmetic(Arithmetic::Equal);
                    self.assembler.jump_if(*block);
                }
                self.go_on(*default, next);
                return Ok(());
            }
            Operation::Return => {
                self.assembler.leave(self.slots.frame);
                return Ok(());
            }
        }
        if let Some(slot) = self.result_slot(instruction) {
            self.assembler.store_slot(Register::First, slot);
        }
        Ok(())
    }

    fn go_on(&mut self, block: usize, next: usize) {
        if block != next {
            self.assembler.jump(block);
        }
    }

    /// Returns the slot of a result that is used.
    fn result_slot(&self, instruction: &Instruction) -> Option<u32> {
        self.slots.locals.get(&instruction.result?).copied()
    }

    fn result_type(&self, instruction: &Instruction) -> Type {
        let result = instruction.result.map(Value::Local);
        result.map_or(Type::Void, |result| self.function.type_of(&result))
    }

    fn arguments(&mut self, arguments: &[Value]) -> Result<(), Error> {
        let registers = self.assembler.argument_registers();
        // Arguments on the stack first: they pass through a register.
        for (argument, value) in arguments.iter().enumerate().skip(registers) {
            let on_stack = stack_bytes(argument - registers);
            let slot = u32::try_from(self.assembler.home_bytes() + on_stack);
            let slot = slot.map_err(|_| self.fault("too many arguments"))?;
            self.argument(Register::First, value)?;
            self.assembler.store_slot(Register::First, slot);
        }
        for (register, value) in (0..).zip(arguments).take(registers) {
            self.argument(Register::Argument(register), value)?;
        }
        Ok(())
    }

    fn argument(&mut self, to: Register, value: &Value) -> Result<(), Error> {
        let bits = self.bits(&self.function.type_of(value))?;
        self.value(to, value, bits)
    }

    fn value(&mut self, to: Register, value: &Value, bits: u16) -> Result<(), Error> {
        match value {
            Value::Local(local) => {
                let slot = self.slots.locals.get(local).copied();
                let slot = slot.ok_or_else(|| self.fault("a value that is not there"))?;
                self.assembler.load_slot(to, slot, bits);
            }
            Value::Constant(Constant::Int { value, .. }) => {
                self.assembler.immediate(to, *value, bits);
            }
            Value::Constant(Constant::Null) => self.assembler.immediate(to, 0, bits),
            Value::Constant(Constant::Symbol(symbol)) => {
                let function = self.module.function(symbol);
                if function.is_some_and(|found| found.linkage == Linkage::ExternWeak) {
                    self.assembler.far_address(to, symbol);
                } else {
                    self.assembler.address(to, symbol, 0);
                }
            }
            Value::Constant(Constant::Inside { global, offset, .. }) => {
                let addend = i64::try_from(*offset);
                let addend = addend.map_err(|_| self.fault("an address too far"))?;
                self.assembler.address(to, global, addend);
            }
            Value::Constant(_) => return Err(self.fault("a constant that fits no register")),
        }
        Ok(())
    }

    /// Loads two values into the first and the second register, and computes an operation into the first.
    fn two(&mut self, first: &Value, second: &Value, what: Arithmetic) -> Result<(), Error> {
        self.value(Register::First, first, WHOLE)?;
        self.value(Register::Second, second, WHOLE)?;
        self.assembler.arithmetic(what);
        Ok(())
    }

    /// Computes an address plus `bytes`.
    fn step(&mut self, base: &Value, bytes: u64) -> Result<(), Error> {
        self.value(Register::First, base, WHOLE)?;
        if bytes != 0 {
            self.assembler.immediate(Register::Second, bytes, WHOLE);
            self.assembler.arithmetic(Arithmetic::Add);
        }
        Ok(())
    }

    /// Zeros above the low bits.
    fn mask(&mut self, bits: u16) {
        if bits < WHOLE {
            let mask = (1_u64 << bits).wrapping_sub(1);
            self.assembler.immediate(Register::Second, mask, WHOLE);
            self.assembler.arithmetic(Arithmetic::And);
        }
    }

    fn bits(&self, ty: &Type) -> Result<u16, Error> {
        match ty {
            Type::Int(bits @ 1..=64) => Ok(*bits),
            Type::Pointer => Ok(WHOLE),
            _ => Err(self.fault("a value of another type")),
        }
    }

    /// Bits of a value in memory: whole bytes.
    fn memory_bits(&self, ty: &Type) -> Result<u16, Error> {
        match self.bits(ty)? {
            bits @ (8 | 16 | 32 | 64) => Ok(bits),
            _ => Err(self.fault("an integer of another size in memory")),
        }
    }
}
