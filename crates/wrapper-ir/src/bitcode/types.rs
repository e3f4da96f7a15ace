//! The table of types: every type that a module mentions, by number.

use std::collections::BTreeMap;

use llvm_bitcode::Writer;

use crate::bitcode::codes;
use crate::description::{Function, Module, Type};
use crate::error::Error;
use crate::to_u64;

/// Gives types their numbers.
#[derive(Debug, Default)]
pub(crate) struct Types<'m> {
    /// The numbers of named structures.
    structs: BTreeMap<&'m str, u64>,
    /// The numbers of the others, by their records.
    numbers: BTreeMap<Record, u64>,
    /// All, in the order of their numbers: parts first, readers want them so.
    entries: Vec<Entry<'m>>,
}

/// A code and its operands.
type Record = (u64, Vec<u64>);

#[derive(Debug)]
enum Entry<'m> {
    /// A structure of this name and the types of its fields.
    Struct(&'m str, Vec<u64>),
    Other(Record),
}

impl<'m> Types<'m> {
    /// Creates the table of the named structures of a module; further types are added at their first use.
    pub(crate) fn new(module: &'m Module) -> Result<Self, Error> {
        let mut types = Self::default();
        for structure in &module.structs {
            let fields = types.numbers(&structure.fields)?;
            types.structs.insert(&structure.name, types.next());
            types.entries.push(Entry::Struct(&structure.name, fields));
        }
        Ok(types)
    }

    /// Returns the number of a type.
    pub(crate) fn number(&mut self, ty: &Type) -> Result<u64, Error> {
        let record = match ty {
            Type::Void => (codes::TYPE_VOID, Vec::new()),
            Type::Int(bits) => (codes::TYPE_INTEGER, vec![u64::from(*bits)]),
            Type::Pointer => (codes::TYPE_OPAQUE_POINTER, vec![0]),
            Type::Array(count, element) => (codes::TYPE_ARRAY, vec![*count, self.number(element)?]),
            Type::Struct(name) => {
                let number = self.structs.get(name.as_ref()).copied();
                return number.ok_or_else(|| Error::unknown_name(name));
            }
            Type::Tuple(fields) => {
                let mut operands = vec![0];
                operands.extend(self.numbers(fields)?);
                (codes::TYPE_STRUCT_ANON, operands)
            }
        };
        Ok(self.record(record))
    }

    /// Returns the number of the type of a function.
    pub(crate) fn function(&mut self, function: &Function) -> Result<u64, Error> {
        let mut operands = vec![0, self.number(&function.result)?];
        for parameter in function.parameter_types() {
            operands.push(self.number(parameter)?);
        }
        Ok(self.record((codes::TYPE_FUNCTION, operands)))
    }

    /// Writes the table, to which nothing can be added any more.
    pub(crate) fn write(&self, stream: &mut Writer) -> Result<(), Error> {
        stream.enter_block(codes::TYPE_BLOCK, 4);
        stream.record(codes::TYPE_NUMENTRY, &[self.next()]);
        for entry in &self.entries {
            match entry {
                Entry::Struct(name, fields) => {
                    stream.text_record(codes::TYPE_STRUCT_NAME, &[], name.as_bytes());
                    // Not packed.
                    let operands: Vec<u64> =
                        std::iter::once(0).chain(fields.iter().copied()).collect();
                    stream.record(codes::TYPE_STRUCT_NAMED, &operands);
                }
                Entry::Other((code, operands)) => stream.record(*code, operands),
            }
        }
        Ok(stream.end_block()?)
    }

    fn numbers(&mut self, types: &[Type]) -> Result<Vec<u64>, Error> {
        types.iter().map(|ty| self.number(ty)).collect()
    }

    fn record(&mut self, record: Record) -> u64 {
        let next = self.next();
        *self.numbers.entry(record).or_insert_with_key(|record| {
            self.entries.push(Entry::Other(record.clone()));
            next
        })
    }

    /// Returns the number of types: the index of the next.
    fn next(&self) -> u64 {
        to_u64(self.entries.len())
    }
}
